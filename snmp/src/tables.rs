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
        "# Tables\n\nThis page lists the tables and columns of a measured recording. It is generated from \
         the declarations in the code: `cargo run -p meikyo-snmp --example tables > docs/tables.md`.\n\n\
         Every table begins with `time`, in most of them the instant at which the interval was due. \
         Labels identify what a row is about; rows with the same labels form a series. Counters are \
         displayed as rates per second. Details explain a row and are not summarised.\n{}",
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
    pub polls: Answers, "polls", "one row per device, interval and PDU: whether and when the agent answered",
        titled("Answers");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    PDU: u64, Detail, "pdu", "number of the PDU within the interval of its device, from 0";
    STATE: Symbol, State, "state", "how the interval ended: ok, late, skipped, error or missed", ordered(State::words());
    REASON: Symbol, Detail, "reason", "why the state is skipped or error; null otherwise";
    BATCH: u64, Detail, "batch", "batch in which the request was sent",
        joins("batches");
    RECEIVED_US: i64, Gauge, "received_us", "when the kernel received the answer, relative to `time`; null without an answer",
        in_unit(Unit::Microseconds);
    UPTIME_CS: u64, Gauge, "uptime_cs",
        "sysUpTime.0 from the same answer: time since the agent started",
        in_unit(Unit::Centiseconds), called("uptime");
}

table! {
    /// What the collector itself did.
    pub intervals: Health, "intervals", "one row per interval: how the collector itself performed",
        titled("Intervals");
    INTERVAL_US: u64, Gauge, "interval_us", "time between two intervals",
        in_unit(Unit::Microseconds);
    DEVICES: u64, Gauge, "devices", "devices that were to be polled";
    OK: u64, Gauge, "ok", "devices that answered within the interval";
    LATE: u64, Gauge, "late", "devices that answered after the interval, but before the timeout";
    MISSED: u64, Gauge, "missed", "devices that did not answer before the timeout";
    ERRORS: u64, Gauge, "errors", "devices whose answer was an error or could not be used";
    SKIPPED: u64, Gauge, "skipped", "devices that were not asked; `polls.reason` says why";
    START_US: i64, Gauge, "start_us", "when the first request was passed to the kernel, relative to `time`",
        in_unit(Unit::Microseconds);
    SENT_US: i64, Gauge, "sent_us", "when the last request was passed to the kernel, relative to `time`",
        in_unit(Unit::Microseconds);
    COMPLETE_US: i64, Gauge, "complete_us", "when the kernel received the last answer, relative to `time`",
        in_unit(Unit::Microseconds);
    KEPT_US: i64, Gauge, "kept_us", "when the last row was written to the log, relative to `time`",
        in_unit(Unit::Microseconds);
    STALLED: u64, Gauge, "stalled", "1 if the collector woke up too late to measure the interval well, else 0";
    SOCKET_DROPS: u64, Counter64, "socket_drops",
        "datagrams that the kernel dropped because the collector's receive buffer was full (SO_RXQ_OVFL)";
    STRAYS: u64, Counter64, "strays", "datagrams received that match no outstanding request";
    UNREADABLE: u64, Counter64, "unreadable",
        "datagrams received that were truncated, not SNMP, or from another community";
}

table! {
    /// When requests were handed to the kernel.
    pub batches: Requests, "batches", "one row per batch of requests that one system call passed to the kernel",
        titled("Batches");
    BATCH: u64, Detail, "batch", "number of the batch within its interval, from 0";
    SENT_US: i64, Gauge, "sent_us", "when the batch was passed to the kernel, relative to `time`",
        in_unit(Unit::Microseconds);
    REQUESTS: u64, Gauge, "requests", "number of requests in the batch";
}

table! {
    /// Interface counters (IF-MIB, RFC 2863).
    pub interfaces: Readings, "interfaces", "traffic, errors and state of network interfaces (IF-MIB, RFC 2863)",
        titled("Interfaces"), parted("interface", "busiest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    INTERFACE: Symbol, Label, "interface", "ifName; ifDescr if the agent has no ifName";
    IN_OCTETS: u64, Counter64, "in_octets", "octets received: ifHCInOctets, or ifInOctets if the agent has no 64-bit counter",
        in_unit(Unit::Octets), called("received"), shown(2), beside("out_octets");
    OUT_OCTETS: u64, Counter64, "out_octets", "octets sent: ifHCOutOctets or ifOutOctets",
        in_unit(Unit::Octets), called("sent"), shown(1), beside("in_octets");
    IN_PACKETS: u64, Counter64, "in_packets", "unicast packets received: ifHCInUcastPkts or ifInUcastPkts",
        in_unit(Unit::Packets), called("packets received"), beside("out_packets");
    OUT_PACKETS: u64, Counter64, "out_packets", "unicast packets sent: ifHCOutUcastPkts or ifOutUcastPkts",
        in_unit(Unit::Packets), called("packets sent"), beside("in_packets");
    IN_ERRORS: u64, Counter32, "in_errors", "packets received with errors: ifInErrors",
        in_unit(Unit::Errors), called("receive errors"), shown(8);
    OUT_ERRORS: u64, Counter32, "out_errors", "packets not sent because of errors: ifOutErrors",
        in_unit(Unit::Errors), called("send errors");
    IN_DISCARDS: u64, Counter32, "in_discards", "intact packets dropped on receipt: ifInDiscards",
        in_unit(Unit::Discards), called("receive discards");
    OUT_DISCARDS: u64, Counter32, "out_discards", "intact packets dropped before sending: ifOutDiscards",
        in_unit(Unit::Discards), called("send discards");
    SPEED_MBPS: u64, Gauge, "speed_mbps", "nominal speed: ifHighSpeed",
        in_unit(Unit::MegabitsPerSecond), called("link speed"), hint(Hint::LineRate);
    OPER_STATUS: u64, Gauge, "oper_status", "ifOperStatus: 1 up, 2 down, 3 to 7 as in RFC 2863", called("link state");
    COUNTER_BITS: u64, Detail, "counter_bits",
        "width of the octet and packet counters: 32 or 64", hint(Hint::CounterBits);
    DISCONTINUITY_CS: u64, Detail, "discontinuity_cs",
        "sysUpTime when a counter was last interrupted: ifCounterDiscontinuityTime",
        in_unit(Unit::Centiseconds), hint(Hint::Discontinuity);
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Disk space (UCD-SNMP-MIB, HOST-RESOURCES-MIB).
    pub storage: Readings, "storage", "size and use of file systems (UCD-SNMP-MIB dskTable, HOST-RESOURCES-MIB hrStorageTable)",
        titled("Disks"), parted("disk", "fullest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    PATH: Symbol, Label, "path", "mount point";
    TOTAL_BYTES: u64, Gauge, "total_bytes", "size of the file system: dskTotal or hrStorageSize",
        in_unit(Unit::Bytes), called("disk size"), listed();
    USED_BYTES: u64, Gauge, "used_bytes", "space in use: dskUsed or hrStorageUsed",
        in_unit(Unit::Bytes), called("disk used"), shown(4), listed();
    AVAILABLE_BYTES: u64, Gauge, "available_bytes",
        "space that unprivileged users can still fill: dskAvail; null if the agent has only hrStorageTable",
        in_unit(Unit::Bytes), called("disk available");
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Load averages (UCD-SNMP-MIB).
    pub load: Readings, "load", "load averages of the operating system (UCD-SNMP-MIB laLoadInt)", titled("Load");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    LOAD_1MIN: f64, Gauge, "load_1min", "runnable tasks, averaged over 1 minute",
        in_unit(Unit::Tasks), called("load, 1 min"), shown(3), listed();
    LOAD_5MIN: f64, Gauge, "load_5min", "runnable tasks, averaged over 5 minutes",
        in_unit(Unit::Tasks), called("load, 5 min"), listed();
    LOAD_15MIN: f64, Gauge, "load_15min", "runnable tasks, averaged over 15 minutes",
        in_unit(Unit::Tasks), called("load, 15 min"), listed();
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// CPU time (UCD-SNMP-MIB).
    pub cpu: Readings, "cpu", "CPU time by what it was spent on, summed over all CPUs in hundredths of a second (UCD-SNMP-MIB ssCpuRaw*)", titled("CPU");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    USER_TICKS: u64, Counter32, "user_ticks",
        "user code: ssCpuRawUser",
        in_unit(Unit::Ticks), called("CPU user"), shown(6);
    NICE_TICKS: u64, Counter32, "nice_ticks",
        "user code of lowered priority: ssCpuRawNice",
        in_unit(Unit::Ticks), called("CPU nice");
    SYSTEM_TICKS: u64, Counter32, "system_ticks",
        "kernel code: ssCpuRawSystem",
        in_unit(Unit::Ticks), called("CPU system"), shown(7);
    IDLE_TICKS: u64, Counter32, "idle_ticks",
        "idle: ssCpuRawIdle",
        in_unit(Unit::Ticks), called("CPU idle");
    WAIT_TICKS: u64, Counter32, "wait_ticks",
        "idle with I/O outstanding: ssCpuRawWait",
        in_unit(Unit::Ticks), called("CPU wait");
    INTERRUPT_TICKS: u64, Counter32, "interrupt_ticks",
        "hardware interrupts: ssCpuRawInterrupt",
        in_unit(Unit::Ticks), called("CPU interrupt");
    SOFTIRQ_TICKS: u64, Counter32, "softirq_ticks",
        "software interrupts: ssCpuRawSoftIRQ",
        in_unit(Unit::Ticks), called("CPU softirq");
    STEAL_TICKS: u64, Counter32, "steal_ticks",
        "taken by the hypervisor for other guests: ssCpuRawSteal",
        in_unit(Unit::Ticks), called("CPU steal");
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// RAM and swap space as the UCD-SNMP-MIB tells them.
    pub memory: Readings, "memory", "main memory and swap space (UCD-SNMP-MIB mem*)", titled("Memory");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    TOTAL_BYTES: u64, Gauge, "total_bytes", "size of main memory: memTotalReal",
        in_unit(Unit::Bytes), called("memory"), listed();
    AVAILABLE_BYTES: u64, Gauge, "available_bytes",
        "free memory, buffers and cache not counted as free: memAvailReal",
        in_unit(Unit::Bytes), called("memory free"), shown(5), listed();
    BUFFER_BYTES: u64, Gauge, "buffer_bytes", "memory used for buffers: memBuffer",
        in_unit(Unit::Bytes), called("memory in buffers");
    CACHED_BYTES: u64, Gauge, "cached_bytes", "memory used for the page cache: memCached",
        in_unit(Unit::Bytes), called("memory in cache"), listed();
    SWAP_TOTAL_BYTES: u64, Gauge, "swap_total_bytes", "size of swap space: memTotalSwap",
        in_unit(Unit::Bytes), called("swap"), listed();
    SWAP_AVAILABLE_BYTES: u64, Gauge, "swap_available_bytes", "free swap space: memAvailSwap",
        in_unit(Unit::Bytes), called("swap free"), listed();
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Sensors. Each has its value in the column of its unit; the others are null in its rows.
    pub sensors: Readings, "sensors",
        "temperatures, fan speeds, power, voltages and currents (ENTITY-SENSOR-MIB, RFC 3433; LM-SENSORS-MIB)",
        titled("Sensors"), parted("sensor", "greatest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    SENSOR: Symbol, Label, "sensor", "name of the sensor: entPhysicalName, entPhysicalDescr or lm*SensorsDevice";
    CELSIUS: f64, Gauge, "celsius", "temperature: entPhySensorValue of type celsius, or lmTempSensorsValue",
        in_unit(Unit::Celsius), called("temperature"), shown(9), listed();
    RPM: f64, Gauge, "rpm", "fan speed: entPhySensorValue of type rpm, or lmFanSensorsValue",
        in_unit(Unit::RevolutionsPerMinute), called("fan speed"), shown(10), listed();
    WATTS: f64, Gauge, "watts", "power: entPhySensorValue of type watts",
        in_unit(Unit::Watts), called("power"), shown(11), listed();
    VOLTS: f64, Gauge, "volts",
        "voltage: entPhySensorValue of type voltsAC or voltsDC, or lmVoltSensorsValue",
        in_unit(Unit::Volts), called("voltage"), listed();
    AMPERES: f64, Gauge, "amperes", "current: entPhySensorValue of type amperes",
        in_unit(Unit::Amperes), called("current"), listed();
    OPER_STATUS: u64, Gauge, "oper_status",
        "entPhySensorOperStatus: 1 ok, 2 unavailable, 3 nonoperational", called("sensor state");
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// Any other object. Which column holds its value is chosen by the agent's type.
    pub objects: Readings, "objects", "objects that the cluster file names individually; the type of an object decides which column holds its value",
        titled("Other objects"), parted("object", "greatest");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    OBJECT: Symbol, Label, "object", "name or OID as in the cluster file, with the instance";
    COUNTER: u64, Counter64, "counter", "value of a Counter32 or Counter64";
    INTEGER: i64, Gauge, "integer", "value of an INTEGER, Gauge32 or TimeTicks";
    REAL: f64, Gauge, "real", "value of a simulated series";
    TEXT: Text, Gauge, "text",
        "value of an OCTET STRING (as UTF-8, else hexadecimal), OBJECT IDENTIFIER or IpAddress";
    PDU: u64, Detail, "pdu", "PDU whose answer contained the row",
        joins("polls"), hint(Hint::Answer);
}

table! {
    /// How often agents really update values.
    pub freshness: Findings, "freshness",
        "how often the agent updates each value; one row when this is known or changes",
        titled("Freshness");
    DEVICE: Symbol, Label, "device", "name in the cluster file";
    TABLE: Symbol, Label, "table", "table that holds the value";
    INSTANCE: Symbol, Label, "instance",
        "interface, path or object of the value; null if the table has one row per device";
    COLUMN: Symbol, Label, "column", "column that holds the value";
    CLASS: Symbol, Detail, "class", "how the agent updates the value: every_poll, periodic, irregular, unchanged (only this value does not change) or frozen (nothing in the same table of the agent changes)";
    PERIOD_US: u64, Detail, "period_us", "mean time between updates",
        in_unit(Unit::Microseconds);
    PHASE_US: i64, Detail, "phase_us", "when an update happened, relative to `time`",
        in_unit(Unit::Microseconds);
    PERIOD_US_MIN: u64, Detail, "period_us_min", "shortest time observed between updates",
        in_unit(Unit::Microseconds);
    PERIOD_US_MAX: u64, Detail, "period_us_max", "longest time observed between updates",
        in_unit(Unit::Microseconds);
    SOURCE: Symbol, Detail, "source", "observed in the values, or declared by the agent (nsCacheTable)";
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
