//! The tables that the SNMP engine fills.
//!
//! Each is declared once, below: name, type, unit, words and place of every column. Positions,
//! readers, `/metrics`, the page, `meikyo top` and `docs/tables.md` follow from it. Every table has
//! its full column set in every recording; what is not measured is null. `time` is the interval's
//! due instant in all of them; the kernel's receive time stands once, in `polls`.
//!
//! A value table begins with the device and, where a device has several rows, with what the row is
//! about; its last column is the PDU that carried the row.

use std::sync::LazyLock;

use meikyo_recording::schema::{Handle, Hint, TableSchema, Unit};
use meikyo_recording::{Symbol, table};

pub use meikyo_recording::schema::State;
pub use meikyo_recording::tables::{clocks, events};

/// Makes the list of tables: the discriminant of each is its position in [`schemas`].
macro_rules! list {
    ($($(#[$doc:meta])* $table:ident = $module:ident;)+) => {
        /// A table of the SNMP engine; the discriminant is its position in [`schemas`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum Table {
            $($(#[$doc])* $table),+
        }

        impl Table {
            /// Every table, in the order of their positions.
            pub const ALL: [Self; [$($module::NAME),+].len()] = [$(Self::$table),+];

            fn declared(self) -> TableSchema {
                match self {
                    $(Self::$table => $module::schema()),+
                }
            }
        }
    };
}

list! {
    /// One row a (device, interval, PDU): state, receive time, agent uptime.
    Polls = polls;
    /// One row an interval: what the collector itself did.
    Intervals = intervals;
    /// One row a batch of requests handed to the kernel.
    Batches = batches;
    /// Interface counters, by name.
    Interfaces = interfaces;
    /// Disk space, by path.
    Storage = storage;
    /// Load averages.
    Load = load;
    /// CPU time counters.
    Cpu = cpu;
    /// RAM and swap space, what is free and what caches take.
    Memory = memory;
    /// Temperatures, fans, power, voltages and currents, by sensor.
    Sensors = sensors;
    /// Objects that the cluster file names by OID, with typed values.
    Objects = objects;
    /// How often each value is really updated.
    Freshness = freshness;
    /// What happened: resets, renumbering, missing objects, marks.
    Events = events;
    /// Real time against monotonic time.
    Clocks = clocks;
}

impl Table {
    /// The position among a stream's tables.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The table of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| schema(*table).name == name)
    }
}

/// Where every value table has the device.
pub(crate) const DEVICE: Handle<Symbol> = interfaces::DEVICE;
/// Where every value table with several rows a device has what the row is about.
pub(crate) const INSTANCE: Handle<Symbol> = interfaces::INTERFACE;

/// The schemas of all tables, in the order of [`Table::ALL`].
pub fn schemas() -> Vec<TableSchema> {
    ALL.clone()
}

/// The schema of one table.
pub fn schema(table: Table) -> &'static TableSchema {
    &ALL[table.index()]
}

/// The text of `docs/tables.md`: what a reader of a recording finds in its tables.
pub fn reference() -> String {
    format!(
        "# Tables\n\nWhat the columns of a recording are. This page is written by the declarations \
         themselves: `cargo run -p meikyo-snmp --example tables > docs/tables.md`.\n\nEvery table \
         begins with `time`, the due instant of the interval. Labels name the row; rows that agree \
         in all of them are one series. Counters are shown as rates a second. Details explain the \
         row and are left out of summaries.\n{}",
        meikyo_recording::schema::reference::markdown(&ALL)
    )
}

/// The name under which `events` speak of a value: table, instance where there is one, column.
pub(crate) fn object_name(table: Table, instance: Option<&str>, column: usize) -> String {
    let TableSchema { name, columns, .. } = schema(table);
    let column = &columns[column].name;
    instance.map_or_else(
        || format!("{name}.{column}"),
        |instance| format!("{name}.{instance}.{column}"),
    )
}

static ALL: LazyLock<Vec<TableSchema>> =
    LazyLock::new(|| Table::ALL.into_iter().map(Table::declared).collect());

table! {
    /// How each device's interval ended, and when its answers were received.
    pub polls: Answers, "polls", "one row a (device, interval, PDU)", titled("Answers");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    PDU: u64, Detail, "pdu", "ordinal of the PDU in the device's interval";
    STATE: Symbol, State, "state", "ok, late, skipped, error or missed", ordered(State::words());
    REASON: Symbol, Detail, "reason", "why skipped or error; null otherwise";
    BATCH: u64, Detail, "batch", "the batch that carried the request, see `batches`",
        joins("batches");
    RECEIVED_US: i64, Gauge, "received_us", "kernel receive time of the answer, µs after `time`",
        in_unit(Unit::Microseconds);
    UPTIME_CS: u64, Gauge, "uptime_cs",
        "sysUpTime.0 of the same answer, hundredths of a second",
        in_unit(Unit::Centiseconds), called("uptime");
}

table! {
    /// What the collector itself did.
    pub intervals: Health, "intervals", "one row an interval: what the collector itself did",
        titled("Intervals");
    INTERVAL_US: u64, Gauge, "interval_us", "span between two intervals, µs",
        in_unit(Unit::Microseconds);
    DEVICES: u64, Gauge, "devices", "devices due";
    OK: u64, Gauge, "ok", "devices that ended ok";
    LATE: u64, Gauge, "late", "devices that ended late";
    MISSED: u64, Gauge, "missed", "devices that ended missed";
    ERRORS: u64, Gauge, "errors", "devices that ended in error";
    SKIPPED: u64, Gauge, "skipped", "devices that ended skipped";
    START_US: i64, Gauge, "start_us", "when the first request was handed over, µs after `time`",
        in_unit(Unit::Microseconds);
    SENT_US: i64, Gauge, "sent_us", "when the last request was handed over, µs after `time`",
        in_unit(Unit::Microseconds);
    COMPLETE_US: i64, Gauge, "complete_us", "when the last answer was received, µs after `time`",
        in_unit(Unit::Microseconds);
    KEPT_US: i64, Gauge, "kept_us", "when the last row was handed to the kernel, µs after `time`",
        in_unit(Unit::Microseconds);
    STALLED: u64, Gauge, "stalled", "1 if our own late wake-up spoiled the interval, else 0";
    SOCKET_DROPS: u64, Counter64, "socket_drops",
        "datagrams that our own socket dropped (SO_RXQ_OVFL)";
    STRAYS: u64, Counter64, "strays", "datagrams that belong to no open request";
    UNREADABLE: u64, Counter64, "unreadable",
        "datagrams that were cut, not SNMP, or of another community";
}

table! {
    /// When requests were handed to the kernel.
    pub batches: Requests, "batches", "one row a batch of requests handed to the kernel",
        titled("Batches");
    BATCH: u64, Detail, "batch", "ordinal of the batch in its interval";
    SENT_US: i64, Gauge, "sent_us", "when the batch was handed to the kernel, µs after `time`",
        in_unit(Unit::Microseconds);
    REQUESTS: u64, Gauge, "requests", "requests in the batch";
}

table! {
    /// Interface counters (IF-MIB, RFC 2863).
    pub interfaces: Readings, "interfaces", "interface counters, by name (IF-MIB, RFC 2863)",
        titled("Interfaces"), parted("interface", "busiest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    INTERFACE: Symbol, Label, "interface", "ifName, or ifDescr where there is none";
    IN_OCTETS: u64, Counter64, "in_octets", "ifHCInOctets, or ifInOctets where there is none",
        in_unit(Unit::Octets), called("received"), shown(2), beside("out_octets");
    OUT_OCTETS: u64, Counter64, "out_octets", "ifHCOutOctets, or ifOutOctets",
        in_unit(Unit::Octets), called("sent"), shown(1), beside("in_octets");
    IN_PACKETS: u64, Counter64, "in_packets", "ifHCInUcastPkts, or ifInUcastPkts",
        in_unit(Unit::Packets), called("packets received"), beside("out_packets");
    OUT_PACKETS: u64, Counter64, "out_packets", "ifHCOutUcastPkts, or ifOutUcastPkts",
        in_unit(Unit::Packets), called("packets sent"), beside("in_packets");
    IN_ERRORS: u64, Counter32, "in_errors", "ifInErrors",
        in_unit(Unit::Errors), called("receive errors"), shown(8);
    OUT_ERRORS: u64, Counter32, "out_errors", "ifOutErrors",
        in_unit(Unit::Errors), called("send errors");
    IN_DISCARDS: u64, Counter32, "in_discards", "ifInDiscards",
        in_unit(Unit::Discards), called("receive discards");
    OUT_DISCARDS: u64, Counter32, "out_discards", "ifOutDiscards",
        in_unit(Unit::Discards), called("send discards");
    SPEED_MBPS: u64, Gauge, "speed_mbps", "ifHighSpeed, 10^6 bit/s",
        in_unit(Unit::MegabitsPerSecond), called("link speed"), hint(Hint::LineRate);
    OPER_STATUS: u64, Gauge, "oper_status", "ifOperStatus: 1 up, 2 down", called("link state");
    COUNTER_BITS: u64, Detail, "counter_bits",
        "32 or 64: how wide the octet and packet counters are", hint(Hint::CounterBits);
    DISCONTINUITY_CS: u64, Detail, "discontinuity_cs",
        "ifCounterDiscontinuityTime, sysUpTime of the last one",
        in_unit(Unit::Centiseconds), hint(Hint::Discontinuity);
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Disk space (UCD-SNMP-MIB, HOST-RESOURCES-MIB).
    pub storage: Readings, "storage", "disk space, by path",
        titled("Disks"), parted("disk", "fullest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    PATH: Symbol, Label, "path", "mount point";
    TOTAL_BYTES: u64, Gauge, "total_bytes", "dskTotal, or hrStorageSize",
        in_unit(Unit::Bytes), called("disk size"), listed();
    USED_BYTES: u64, Gauge, "used_bytes", "dskUsed, or hrStorageUsed",
        in_unit(Unit::Bytes), called("disk used"), shown(4), listed();
    AVAILABLE_BYTES: u64, Gauge, "available_bytes",
        "dskAvail; null where the agent has only hrStorage",
        in_unit(Unit::Bytes), called("disk available");
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Load averages (UCD-SNMP-MIB).
    pub load: Readings, "load", "load averages (UCD-SNMP-MIB laLoadInt)", titled("Load");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    LOAD_1MIN: f64, Gauge, "load_1min", "runnable tasks, mean of 1 minute",
        in_unit(Unit::Tasks), called("load, 1 min"), shown(3), listed();
    LOAD_5MIN: f64, Gauge, "load_5min", "runnable tasks, mean of 5 minutes",
        in_unit(Unit::Tasks), called("load, 5 min"), listed();
    LOAD_15MIN: f64, Gauge, "load_15min", "runnable tasks, mean of 15 minutes",
        in_unit(Unit::Tasks), called("load, 15 min"), listed();
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// CPU time (UCD-SNMP-MIB).
    pub cpu: Readings, "cpu", "CPU time by kind (UCD-SNMP-MIB ssCpuRaw*)", titled("CPU");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    USER_TICKS: u64, Counter32, "user_ticks",
        "ssCpuRawUser, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU user"), shown(6);
    NICE_TICKS: u64, Counter32, "nice_ticks",
        "ssCpuRawNice, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU nice");
    SYSTEM_TICKS: u64, Counter32, "system_ticks",
        "ssCpuRawSystem, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU system"), shown(7);
    IDLE_TICKS: u64, Counter32, "idle_ticks",
        "ssCpuRawIdle, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU idle");
    WAIT_TICKS: u64, Counter32, "wait_ticks",
        "ssCpuRawWait, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU wait");
    INTERRUPT_TICKS: u64, Counter32, "interrupt_ticks",
        "ssCpuRawInterrupt, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU interrupt");
    SOFTIRQ_TICKS: u64, Counter32, "softirq_ticks",
        "ssCpuRawSoftIRQ, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU softirq");
    STEAL_TICKS: u64, Counter32, "steal_ticks",
        "ssCpuRawSteal, hundredths of a second over all CPUs",
        in_unit(Unit::Ticks), called("CPU steal");
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// RAM and swap space as the UCD-SNMP-MIB tells them.
    pub memory: Readings, "memory", "memory (UCD-SNMP-MIB mem*)", titled("Memory");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    TOTAL_BYTES: u64, Gauge, "total_bytes", "memTotalReal",
        in_unit(Unit::Bytes), called("memory"), listed();
    AVAILABLE_BYTES: u64, Gauge, "available_bytes",
        "memAvailReal: free, without buffers and cache",
        in_unit(Unit::Bytes), called("memory free"), shown(5), listed();
    BUFFER_BYTES: u64, Gauge, "buffer_bytes", "memBuffer",
        in_unit(Unit::Bytes), called("memory in buffers");
    CACHED_BYTES: u64, Gauge, "cached_bytes", "memCached",
        in_unit(Unit::Bytes), called("memory in cache"), listed();
    SWAP_TOTAL_BYTES: u64, Gauge, "swap_total_bytes", "memTotalSwap",
        in_unit(Unit::Bytes), called("swap"), listed();
    SWAP_AVAILABLE_BYTES: u64, Gauge, "swap_available_bytes", "memAvailSwap",
        in_unit(Unit::Bytes), called("swap free"), listed();
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Sensors. Each has its value in the column of its unit; the others are null in its rows.
    pub sensors: Readings, "sensors",
        "sensors, by name (ENTITY-SENSOR-MIB, RFC 3433; LM-SENSORS-MIB)",
        titled("Sensors"), parted("sensor", "greatest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    SENSOR: Symbol, Label, "sensor", "entPhysicalName, entPhysicalDescr, or lm*SensorsDevice";
    CELSIUS: f64, Gauge, "celsius", "entPhySensorValue of type celsius, or lmTempSensorsValue",
        in_unit(Unit::Celsius), called("temperature"), shown(9), listed();
    RPM: f64, Gauge, "rpm", "entPhySensorValue of type rpm, or lmFanSensorsValue",
        in_unit(Unit::RevolutionsPerMinute), called("fan speed"), shown(10), listed();
    WATTS: f64, Gauge, "watts", "entPhySensorValue of type watts",
        in_unit(Unit::Watts), called("power"), shown(11), listed();
    VOLTS: f64, Gauge, "volts",
        "entPhySensorValue of types voltsAC and voltsDC, or lmVoltSensorsValue",
        in_unit(Unit::Volts), called("voltage"), listed();
    AMPERES: f64, Gauge, "amperes", "entPhySensorValue of type amperes",
        in_unit(Unit::Amperes), called("current"), listed();
    OPER_STATUS: u64, Gauge, "oper_status",
        "entPhySensorOperStatus: 1 ok, 2 unavailable, 3 nonoperational", called("sensor state");
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Any other object. Which column holds its value is chosen by the agent's type.
    pub objects: Readings, "objects", "any other object, by name or OID",
        titled("Other objects"), parted("object", "greatest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    OBJECT: Symbol, Label, "object", "as written in the cluster file, with its instance";
    COUNTER: u64, Counter64, "counter", "Counter64 or Counter32";
    INTEGER: i64, Gauge, "integer", "INTEGER, Gauge32 or TimeTicks";
    REAL: f64, Gauge, "real", "a value of a simulated series";
    TEXT: Text, Gauge, "text",
        "OCTET STRING as UTF-8 or hexadecimal, OBJECT IDENTIFIER, IpAddress";
    PDU: u64, Detail, "pdu", "the PDU that carried the row, see `polls`",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// How often agents really update values.
    pub freshness: Findings, "freshness",
        "how often the agent really updates a value; a row when it is found out or changes",
        titled("Freshness");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    TABLE: Symbol, Label, "table", "the table of the value";
    INSTANCE: Symbol, Label, "instance",
        "interface, path or object; null where the table has none";
    COLUMN: Symbol, Label, "column", "the column of the value";
    CLASS: Symbol, Detail, "class", "every_poll, periodic, irregular, unchanged or frozen";
    PERIOD_US: u64, Detail, "period_us", "mean span between updates",
        in_unit(Unit::Microseconds);
    PHASE_US: i64, Detail, "phase_us", "an update instant, µs after `time`",
        in_unit(Unit::Microseconds);
    PERIOD_US_MIN: u64, Detail, "period_us_min", "least span seen between updates",
        in_unit(Unit::Microseconds);
    PERIOD_US_MAX: u64, Detail, "period_us_max", "greatest span seen between updates",
        in_unit(Unit::Microseconds);
    SOURCE: Symbol, Detail, "source", "observed, or declared (nsCacheTable)";
}

#[cfg(test)]
mod tests {
    use meikyo_recording::schema::Role;
    use meikyo_recording::{ColumnKind, Meaning};

    use super::*;

    #[test]
    fn positions_and_names_agree() {
        let names: Vec<_> = schemas().into_iter().map(|schema| schema.name).collect();
        for table in Table::ALL {
            assert_eq!(schema(table).name, names[table.index()]);
            assert_eq!(Table::named(&names[table.index()]), Some(table));
        }
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn every_table_keeps_what_its_role_promises() {
        for table in schemas() {
            assert_eq!(table.role().lacks(&table), None, "{}", table.name);
            let joined = table.columns.iter().filter_map(|column| column.joins.as_deref());
            for name in joined {
                assert!(Table::named(name).is_some(), "{} joins `{name}`", table.name);
            }
            for column in &table.columns {
                let beside = column.beside.as_deref();
                assert!(beside.is_none_or(|name| table.column(name).is_some()), "{column:?}");
                assert!(!column.counts() || column.kind == ColumnKind::U64, "{column:?}");
            }
        }
    }

    #[test]
    fn value_tables_begin_with_the_device_and_end_with_the_pdu() {
        for table in schemas().into_iter().filter(|table| table.role() == Role::Readings) {
            let labels: Vec<_> = meikyo_recording::series::labels(&table).collect();
            let second = table.part.is_some().then_some(INSTANCE.position());
            let wanted: Vec<_> = std::iter::once(DEVICE.position()).chain(second).collect();
            assert_eq!(labels, wanted, "{}", table.name);
            assert_eq!(table.hint(Hint::Answer), Some(table.columns.len() - 1));
            assert_eq!(table.answers(), Some(polls::NAME));
            assert!(table.columns.iter().all(|column| column.meaning != Meaning::State));
        }
    }

    #[test]
    fn no_two_columns_are_shown_in_the_same_place() {
        let columns = schemas().into_iter().flat_map(|table| table.columns);
        let mut places: Vec<_> = columns.filter_map(|column| column.shown).collect();
        places.sort_unstable();
        let all: Vec<_> = (1..).take(places.len()).collect();
        assert_eq!(places, all);
    }
}
