//! The tables that the SNMP engine fills.
//!
//! Every table has its full column set in every recording; what is not measured is null. `time` is
//! the interval's due instant in all of them; the kernel's receive time stands once, in `polls`.

use std::sync::LazyLock;

use meikyo_recording::schema::{Column, ColumnKind, Meaning, TableSchema};

/// A table of the SNMP engine; the discriminant is its position in [`schemas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Table {
    /// One row a (device, interval, PDU): state, receive time, agent uptime.
    Polls,
    /// One row an interval: what the collector itself did.
    Intervals,
    /// One row a batch of requests handed to the kernel.
    Batches,
    /// Interface counters, by name.
    Interfaces,
    /// Disk space, by path.
    Storage,
    /// Load averages.
    Load,
    /// CPU time counters.
    Cpu,
    /// Memory.
    Memory,
    /// Any other object.
    Objects,
    /// How often each value is really updated.
    Freshness,
    /// What happened: resets, renumbering, missing objects, marks.
    Events,
    /// Real time against monotonic time.
    Clocks,
}

impl Table {
    /// Every table, in the order of their positions.
    pub const ALL: [Self; 12] = [
        Self::Polls,
        Self::Intervals,
        Self::Batches,
        Self::Interfaces,
        Self::Storage,
        Self::Load,
        Self::Cpu,
        Self::Memory,
        Self::Objects,
        Self::Freshness,
        Self::Events,
        Self::Clocks,
    ];

    /// The position among a stream's tables.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The state in which a (device, interval) ended; the greater is the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Answered within the interval.
    Ok = 0,
    /// Answered after the interval and before the timeout; the values are kept.
    Late = 1,
    /// Not asked, see the reason.
    Skipped = 2,
    /// Answered with an error, or with a packet that could not be used.
    Error = 3,
    /// Not answered within the timeout, or before a request of a later interval was.
    Missed = 4,
}

impl State {
    /// Every state, from best to worst.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Late, Self::Skipped, Self::Error, Self::Missed];

    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Late => "late",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::Missed => "missed",
        }
    }
}

fn symbol(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::Symbol, Meaning::Label, doc)
}

fn gauge(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::U64, Meaning::Gauge, doc)
}

fn signed(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::I64, Meaning::Gauge, doc)
}

fn real(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::F64, Meaning::Gauge, doc)
}

fn counter64(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::U64, Meaning::Counter64, doc)
}

fn counter32(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::U64, Meaning::Counter32, doc)
}

fn text(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::Text, Meaning::Gauge, doc)
}

fn word(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::Symbol, Meaning::Detail, doc)
}

fn detail(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::U64, Meaning::Detail, doc)
}

fn signed_detail(name: &str, doc: &str) -> Column {
    Column::new(name, ColumnKind::I64, Meaning::Detail, doc)
}

/// Last column of every table whose values come from answers: with `time` and `device` it leads to
/// the row of `polls` that has the receive time.
fn pdu() -> Column {
    detail("pdu", "the PDU that carried the row, see `polls`")
}

fn device() -> Column {
    symbol("device", "name in the cluster file")
}

/// The schemas of all tables, in the order of [`Table::ALL`].
pub fn schemas() -> Vec<TableSchema> {
    ALL.clone()
}

/// The schema of one table.
pub fn schema(table: Table) -> &'static TableSchema {
    &ALL[table.index()]
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
    LazyLock::new(|| Table::ALL.into_iter().map(declared).collect());

fn declared(table: Table) -> TableSchema {
    match table {
        Table::Polls => polls(),
        Table::Intervals => intervals(),
        Table::Batches => TableSchema::new(
            "batches",
            "one row a batch of requests handed to the kernel",
            vec![
                detail("batch", "ordinal of the batch in its interval"),
                signed("sent_us", "when the batch was handed to the kernel, µs after `time`"),
                gauge("requests", "requests in the batch"),
            ],
        ),
        Table::Interfaces => interfaces(),
        Table::Storage => TableSchema::new(
            "storage",
            "disk space, by path",
            vec![
                device(),
                symbol("path", "mount point"),
                gauge("total_bytes", "dskTotal, or hrStorageSize"),
                gauge("used_bytes", "dskUsed, or hrStorageUsed"),
                gauge("available_bytes", "dskAvail; null where the agent has only hrStorage"),
                pdu(),
            ],
        ),
        Table::Load => TableSchema::new(
            "load",
            "load averages (UCD-SNMP-MIB laLoadInt)",
            vec![
                device(),
                real("load_1min", "runnable tasks, mean of 1 minute"),
                real("load_5min", "runnable tasks, mean of 5 minutes"),
                real("load_15min", "runnable tasks, mean of 15 minutes"),
                pdu(),
            ],
        ),
        Table::Cpu => cpu(),
        Table::Memory => memory(),
        Table::Objects => objects(),
        Table::Freshness => freshness(),
        Table::Events => TableSchema::new(
            "events",
            "what happened",
            vec![
                symbol("device", "name in the cluster file; null for the collector itself"),
                symbol(
                    "event",
                    "kind: restart, reset, failing, missing_object, mark, alert_raised, and others",
                ),
                symbol("object", "interface, disk or object that it concerns"),
                text("text", "for people"),
                detail("count", "how many, where the kind counts something"),
            ],
        ),
        Table::Clocks => clocks(),
    }
}

fn polls() -> TableSchema {
    TableSchema::new(
        "polls",
        "one row a (device, interval, PDU)",
        vec![
            device(),
            detail("pdu", "ordinal of the PDU in the device's interval"),
            Column::new(
                "state",
                ColumnKind::Symbol,
                Meaning::State,
                "ok, late, skipped, error or missed",
            ),
            word("reason", "why skipped or error; null otherwise"),
            detail("batch", "the batch that carried the request, see `batches`"),
            signed("received_us", "kernel receive time of the answer, µs after `time`"),
            Column::new(
                "uptime_cs",
                ColumnKind::U64,
                Meaning::Gauge,
                "sysUpTime.0 of the same answer, hundredths of a second",
            ),
        ],
    )
}

fn intervals() -> TableSchema {
    TableSchema::new(
        "intervals",
        "one row an interval: what the collector itself did",
        vec![
            gauge("interval_us", "span between two intervals, µs"),
            gauge("devices", "devices due"),
            gauge("ok", "devices that ended ok"),
            gauge("late", "devices that ended late"),
            gauge("missed", "devices that ended missed"),
            gauge("errors", "devices that ended in error"),
            gauge("skipped", "devices that ended skipped"),
            signed("start_us", "when the first request was handed over, µs after `time`"),
            signed("sent_us", "when the last request was handed over, µs after `time`"),
            signed("complete_us", "when the last answer was received, µs after `time`"),
            signed("kept_us", "when the last row was handed to the kernel, µs after `time`"),
            gauge("stalled", "1 if our own late wake-up spoiled the interval, else 0"),
            counter64("socket_drops", "datagrams that our own socket dropped (SO_RXQ_OVFL)"),
            counter64("strays", "datagrams that belong to no open request"),
            counter64("unreadable", "datagrams that were cut, not SNMP, or of another community"),
        ],
    )
}

fn interfaces() -> TableSchema {
    TableSchema::new(
        "interfaces",
        "interface counters, by name (IF-MIB, RFC 2863)",
        vec![
            device(),
            symbol("interface", "ifName, or ifDescr where there is none"),
            counter64("in_octets", "ifHCInOctets, or ifInOctets where there is none"),
            counter64("out_octets", "ifHCOutOctets, or ifOutOctets"),
            counter64("in_packets", "ifHCInUcastPkts, or ifInUcastPkts"),
            counter64("out_packets", "ifHCOutUcastPkts, or ifOutUcastPkts"),
            counter32("in_errors", "ifInErrors"),
            counter32("out_errors", "ifOutErrors"),
            counter32("in_discards", "ifInDiscards"),
            counter32("out_discards", "ifOutDiscards"),
            gauge("speed_mbps", "ifHighSpeed, 10^6 bit/s"),
            gauge("oper_status", "ifOperStatus: 1 up, 2 down"),
            detail("counter_bits", "32 or 64: how wide the octet and packet counters are"),
            detail("discontinuity_cs", "ifCounterDiscontinuityTime, sysUpTime of the last one"),
            pdu(),
        ],
    )
}

fn cpu() -> TableSchema {
    let ticks = |name: &str, object: &str| {
        counter32(name, &format!("{object}, hundredths of a second over all CPUs"))
    };
    TableSchema::new(
        "cpu",
        "CPU time by kind (UCD-SNMP-MIB ssCpuRaw*)",
        vec![
            device(),
            ticks("user_ticks", "ssCpuRawUser"),
            ticks("nice_ticks", "ssCpuRawNice"),
            ticks("system_ticks", "ssCpuRawSystem"),
            ticks("idle_ticks", "ssCpuRawIdle"),
            ticks("wait_ticks", "ssCpuRawWait"),
            ticks("interrupt_ticks", "ssCpuRawInterrupt"),
            ticks("softirq_ticks", "ssCpuRawSoftIRQ"),
            ticks("steal_ticks", "ssCpuRawSteal"),
            pdu(),
        ],
    )
}

fn memory() -> TableSchema {
    TableSchema::new(
        "memory",
        "memory (UCD-SNMP-MIB mem*)",
        vec![
            device(),
            gauge("total_bytes", "memTotalReal"),
            gauge("available_bytes", "memAvailReal: free, without buffers and cache"),
            gauge("buffer_bytes", "memBuffer"),
            gauge("cached_bytes", "memCached"),
            gauge("swap_total_bytes", "memTotalSwap"),
            gauge("swap_available_bytes", "memAvailSwap"),
            pdu(),
        ],
    )
}

fn objects() -> TableSchema {
    TableSchema::new(
        "objects",
        "any other object, by name or OID",
        vec![
            device(),
            symbol("object", "as written in the cluster file, with its instance"),
            counter64("counter", "Counter64 or Counter32"),
            signed("integer", "INTEGER, Gauge32 or TimeTicks"),
            real("real", "a value of a simulated series"),
            text("text", "OCTET STRING as UTF-8 or hexadecimal, OBJECT IDENTIFIER, IpAddress"),
            pdu(),
        ],
    )
}

fn freshness() -> TableSchema {
    TableSchema::new(
        "freshness",
        "how often the agent really updates a value; a row when it is found out or changes",
        vec![
            device(),
            symbol("table", "the table of the value"),
            symbol("instance", "interface, path or object; null where the table has none"),
            symbol("column", "the column of the value"),
            word("class", "every_poll, periodic, irregular, unchanged or frozen"),
            detail("period_us", "mean span between updates"),
            signed_detail("phase_us", "an update instant, µs after `time`"),
            detail("period_us_min", "least span seen between updates"),
            detail("period_us_max", "greatest span seen between updates"),
            word("source", "observed, or declared (nsCacheTable)"),
        ],
    )
}

fn clocks() -> TableSchema {
    TableSchema::new(
        "clocks",
        "real time against monotonic time",
        vec![
            symbol("host", "whose clock"),
            detail("monotonic_ns", "CLOCK_MONOTONIC at `time`"),
            signed_detail("ntp_offset_ns", "estimated offset of the real-time clock (adjtimex)"),
            detail("ntp_error_ns", "its estimated error; null when not synchronised"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_names_agree() {
        let names: Vec<_> = schemas().into_iter().map(|schema| schema.name).collect();
        for table in Table::ALL {
            assert_eq!(schema(table).name, names[table.index()]);
        }
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
