//! What one device is asked, with every name resolved to an OID: the input of the poll core.
//!
//! `resolve` makes a plan from the cluster file and from what the agent's tables said; the poll core
//! packs the rows into as few PDUs as fit. A row never spans PDUs, so its values are of one moment.

use std::net::SocketAddr;

use meikyo_units::Nanos;

use crate::Oid;
use crate::tables::Table;

/// Everything that one device is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevicePlan {
    /// Name of the device.
    pub name: String,
    /// Where its agent listens.
    pub address: SocketAddr,
    /// The rows, in the order in which they are asked.
    pub rows: Vec<RowPlan>,
    /// What is looked at now and then to notice that the names must be resolved again.
    pub watched: Vec<Watched>,
    /// What a person should know of the names, a sentence each.
    pub remarks: Vec<String>,
    /// How many requests it took to find the names.
    pub requests: u32,
}

/// An object whose change means that an agent's tables have other rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// For example `ifNumber.0`.
    pub oid: Oid,
    /// What it was when the names were resolved; `None` if it was not there, and then any value is
    /// a change.
    pub seen: Option<u64>,
}

/// One row of a value table, written at every interval of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlan {
    /// The table that the row goes to.
    pub table: Table,
    /// The second label after the device: interface name, disk path, object name; `None` where the
    /// table has none.
    pub instance: Option<String>,
    /// What must be true of the agent's answer for the row to be the one that was planned.
    pub guard: Option<Guard>,
    /// Whether the cluster file names the row (`interface:eth0`, and not `interfaces`).
    pub named: bool,
    /// The values, by column.
    pub values: Vec<ValuePlan>,
    /// Span between two readings.
    pub every: Nanos,
    /// How long the agent says that it keeps these values before it reads them anew; zero for not
    /// at all, `None` if it says nothing.
    pub declared_refresh: Option<Nanos>,
}

/// An object that travels in the same PDU as a row and names it, so that a renumbered table is
/// noticed before a wrong value is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// For example `ifName.3`.
    pub oid: Oid,
    /// The octets that it must hold, for example `eth0`.
    pub expected: Vec<u8>,
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePlan {
    /// Position of the column in the table's schema.
    pub column: usize,
    /// The object instance.
    pub oid: Oid,
    /// How the agent's value becomes the column's.
    pub convert: Convert,
}

/// How an agent's value becomes a column's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Convert {
    /// A whole number as it is: counters, gauges, time ticks.
    Unsigned,
    /// A signed whole number as it is.
    Signed,
    /// A whole number times this factor (kB to bytes, allocation units to bytes).
    Scaled(u64),
    /// The low 32 bits; the high 32 bits come from the other object (`dskUsedHigh`); both together
    /// times the factor.
    LowHigh {
        /// The object with the high 32 bits.
        high: Oid,
        /// Factor to the column's unit.
        factor: u64,
    },
    /// A whole number times this power of ten: -2 for hundredths (`laLoadInt`). What is 10^9 or
    /// more away from 0 only says that the value is beyond what can be told (RFC 3433,
    /// `EntitySensorValue`) and is missing.
    Decimal(i8),
    /// Nothing is asked: the column holds this number (`counter_bits`).
    Constant(u64),
    /// Whatever the agent says; the column is chosen by its type (table `objects` only).
    AsTyped,
}
