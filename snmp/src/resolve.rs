//! From what a person wrote to the object instances that are asked.
//!
//! `interface:eth0` and `disk:/` are names; an agent answers for numbers, which it gives out anew
//! when it restarts. [`walks_for`] says which subtrees of an agent hold the names, [`plan`] reads
//! them and makes the [`DevicePlan`]. Each row of it carries a guard, the object that names it, so
//! that the poll core notices when the numbers move.
//!
//! Nothing is sent from here, and nothing is guessed: what the agent does not have is a [`Problem`]
//! with its place in the cluster file and what the agent has instead, and the rest is measured.

mod disks;
mod interfaces;
mod names;
mod objects;
mod problem;
mod scalars;
mod sensors;
mod walked;

use meikyo_cluster::{Access, Device, Measure, PartKind, What};
use meikyo_units::Nanos;

use crate::plan::{Convert, DevicePlan, RowPlan, ValuePlan, Watched};
use crate::tables::{self, Table, schema};
use crate::{Oid, Value};

pub(crate) use problem::view_line;
pub use problem::{Fault, Problem};
use walked::Walked;

/// `sysUpTime` (RFC 3418).
const SYS_UP_TIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3];

/// `nsCacheTimeout` (NET-SNMP-AGENT-MIB), indexed by the root of the cached table; in seconds.
pub(crate) const NS_CACHE_TIMEOUT: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 1, 5, 3, 1, 2];

/// `ifTable` (RFC 2863): the root of net-snmp's interface cache, which fills `ifXTable` too.
pub(crate) const IF_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2];

/// Most objects of a device that are watched: they all travel with one request.
const WATCHED_MAX: usize = 16;

/// The subtrees that must be walked for [`plan`], without doubles.
pub fn walks_for(device: &Device) -> Vec<Oid> {
    let mut walks = vec![Oid::from_slice(SYS_UP_TIME), Oid::from_slice(NS_CACHE_TIMEOUT)];
    for measure in &device.measure {
        match &measure.what {
            What::Interface(_) | What::Interfaces => walks.extend(interfaces::walks()),
            What::Disk(_) => walks.extend(disks::walks()),
            What::Load => walks.extend(scalars::LOAD.walks()),
            What::Cpu => walks.extend(scalars::CPU.walks()),
            What::Memory => walks.extend(scalars::MEMORY.walks()),
            What::Uptime => {}
            What::Parts { kind, .. } => {
                walks.extend(parts(kind).into_iter().flat_map(|of| (of.walks)()))
            }
            What::Object(name) => walks.extend(objects::walk(name)),
        }
    }
    walks.sort();
    walks.dedup();
    walks
}

/// What the device is asked, and what of the wanted it does not have. `varbinds` holds what the walks
/// of [`walks_for`] returned, in any order.
///
/// A plan without rows still asks for `sysUpTime.0`, which every request carries: that is all that
/// `uptime` needs.
pub fn plan(device: &Device, varbinds: &[(Oid, Value)]) -> (DevicePlan, Vec<Problem>) {
    let walked = Walked::new(varbinds);
    let (mut rows, mut problems, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    let mut watched = Vec::new();
    if walked.below(SYS_UP_TIME).next().is_none() {
        problems.push(Problem::hidden(device, None, "sysUpTime", &[SYS_UP_TIME]));
    }
    for measure in &device.measure {
        let mut wanted = Wanted {
            device,
            measure,
            rows: &mut rows,
            problems: &mut problems,
            watched: &mut watched,
            remarks: &mut remarks,
        };
        match &measure.what {
            What::Interface(name) => interfaces::one(&mut wanted, &walked, name),
            What::Interfaces => interfaces::all(&mut wanted, &walked),
            What::Disk(path) => disks::one(&mut wanted, &walked, path),
            What::Load => scalars::LOAD.resolve(&mut wanted, &walked),
            What::Cpu => scalars::CPU.resolve(&mut wanted, &walked),
            What::Memory => scalars::MEMORY.resolve(&mut wanted, &walked),
            What::Uptime => {}
            What::Parts { kind, name } => {
                if let Some(of) = parts(kind) {
                    (of.resolve)(&mut wanted, &walked, name.as_deref());
                }
            }
            What::Object(name) => objects::one(&mut wanted, &walked, name),
        }
    }
    if device.measure.iter().any(|measure| is_of_interfaces(&measure.what)) {
        watched.extend(interfaces::watched(&walked));
    }
    let mut rows = merged(rows);
    for row in &mut rows {
        row.declared_refresh = declared_refresh(varbinds, row);
    }
    remarks.dedup();
    watched.dedup();
    // An SNMPv1 agent refuses a request that names an object which it does not have.
    watched.retain(|watched| {
        watched.seen.is_some() || !matches!(device.snmp.access, Access::V1 { .. })
    });
    watched.truncate(WATCHED_MAX);
    let (name, address) = (device.name.clone(), device.address);
    (DevicePlan { name, address, rows, watched, remarks, requests: 0 }, problems)
}

/// How the parts of one kind are found.
struct Parts {
    /// The table that they go to.
    table: &'static str,
    walks: fn() -> Vec<Oid>,
    /// All of them, or the one of a name.
    resolve: fn(&mut Wanted<'_>, &Walked<'_>, Option<&str>),
}

/// What there is beside interfaces and disks; a test compares it with what the cluster file knows.
const PARTS: [Parts; 1] =
    [Parts { table: tables::sensors::NAME, walks: sensors::walks, resolve: sensors::resolve }];

fn parts(kind: &PartKind) -> Option<&'static Parts> {
    PARTS.iter().find(|parts| parts.table == kind.table)
}

fn is_of_interfaces(what: &What) -> bool {
    matches!(what, What::Interface(_) | What::Interfaces)
}

/// How long the agent says that it keeps the values of a row before it reads them anew
/// (nsCacheTable of net-snmp), zero for not at all; `None` if it says nothing of them.
pub fn declared_refresh(walked: &[(Oid, Value)], row: &RowPlan) -> Option<Nanos> {
    let asked = row.values.iter().find(|value| !matches!(value.convert, Convert::Constant(_)))?;
    let object = match row.table {
        Table::Interfaces => IF_TABLE,
        _ => asked.oid.as_slice(),
    };
    let timeout = Oid::from_slice(NS_CACHE_TIMEOUT);
    walked
        .iter()
        .filter_map(|(oid, value)| Some((oid.below(&timeout)?, value.as_u64()?)))
        .filter(|(root, _)| object.starts_with(root))
        .max_by_key(|(root, _)| root.len())
        .map(|(_, seconds)| Nanos::from_secs(seconds))
}

/// One measurement on its way into a plan.
struct Wanted<'a> {
    device: &'a Device,
    measure: &'a Measure,
    rows: &'a mut Vec<RowPlan>,
    problems: &'a mut Vec<Problem>,
    watched: &'a mut Vec<Watched>,
    remarks: &'a mut Vec<String>,
}

impl Wanted<'_> {
    /// Whether the person wants this column; all, unless some are named.
    fn wants(&self, column: &str) -> bool {
        self.measure.columns.is_empty() || self.measure.columns.iter().any(|name| name == column)
    }

    /// Whether this column is asked for by name.
    fn insists_on(&self, column: &str) -> bool {
        self.measure.columns.iter().any(|name| name == column)
    }

    fn every(&self) -> Nanos {
        self.measure.every.unwrap_or(self.device.snmp.interval)
    }

    fn problem(&mut self, fault: Fault, has: Vec<String>) {
        self.problems.push(Problem::new(self.device, self.measure, fault, has));
    }

    /// Nothing is visible below these subtrees.
    fn hidden(&mut self, what: &str, subtrees: &[&[u32]]) {
        self.problems.push(Problem::hidden(self.device, Some(self.measure), what, subtrees));
    }
}

/// One value of a table's column, which must be one of its schema.
fn value(table: Table, column: &str, oid: Oid, convert: Convert) -> ValuePlan {
    let column = schema(table).column(column).expect("columns are named as in the schema");
    ValuePlan { column, oid, convert }
}

/// The rows with every value once: what is wanted twice is asked as often as wanted most often.
fn merged(rows: Vec<RowPlan>) -> Vec<RowPlan> {
    let mut merged: Vec<RowPlan> = Vec::with_capacity(rows.len());
    for mut row in rows {
        for other in &mut merged {
            if other.table != row.table || other.instance != row.instance {
                continue;
            }
            let (slower, faster) =
                if row.every < other.every { (other, &mut row) } else { (&mut row, other) };
            slower.values.retain(|value| !faster.values.iter().any(|v| v.column == value.column));
        }
        let same_row = |other: &&mut RowPlan| {
            other.table == row.table && other.instance == row.instance && other.every == row.every
        };
        match merged.iter_mut().find(same_row) {
            Some(other) => {
                other.named |= row.named;
                other.values.append(&mut row.values);
            }
            None => merged.push(row),
        }
    }
    let asks = |row: &RowPlan| {
        row.values.iter().any(|value| !matches!(value.convert, Convert::Constant(_)))
    };
    merged.retain(asks);
    for row in &mut merged {
        row.values.sort_by_key(|value| value.column);
    }
    merged
}

#[cfg(test)]
mod tests;
