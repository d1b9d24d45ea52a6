//! Units of columns, which their names end in.

use meikyo_recording::{Column, Meaning};

/// Endings of names and what they mean; the last words first.
const UNITS: [(&str, &str); 14] = [
    ("_per_s", "/s"),
    ("_octets", "octets"),
    ("_packets", "packets"),
    ("_errors", "errors"),
    ("_discards", "discards"),
    ("_bytes", "bytes"),
    ("_ticks", "ticks"),
    ("_mbps", "Mbit/s"),
    ("_us", "us"),
    ("_ns", "ns"),
    ("_cs", "cs"),
    ("_1min", "tasks"),
    ("_5min", "tasks"),
    ("_15min", "tasks"),
];

/// The unit of a column's values as they are drawn, counters as rates a second; in ASCII, since it
/// goes into headers. Empty where there is none.
pub(crate) fn unit_of(column: &Column) -> String {
    let found = UNITS.iter().find(|(ending, _)| column.name.ends_with(ending));
    let unit = found.map_or("", |(_, unit)| *unit);
    if is_counter(column) { format!("{unit}/s") } else { unit.to_owned() }
}

/// Whether a column is a counter, and so drawn as its rate.
pub(crate) fn is_counter(column: &Column) -> bool {
    matches!(column.meaning, Meaning::Counter32 | Meaning::Counter64)
}

/// The word for a column's meaning.
pub(crate) fn meaning_of(column: &Column) -> &'static str {
    match column.meaning {
        Meaning::Label => "label",
        Meaning::Gauge => "gauge",
        Meaning::Counter32 | Meaning::Counter64 => "counter",
        Meaning::State => "state",
        Meaning::Detail => "detail",
    }
}

#[cfg(test)]
mod tests {
    use meikyo_recording::ColumnKind;

    use super::*;

    #[test]
    fn counters_are_rates_and_gauges_are_not() {
        let unit = |name, meaning| unit_of(&Column::new(name, ColumnKind::U64, meaning, ""));
        assert_eq!(unit("in_octets", Meaning::Counter64), "octets/s");
        assert_eq!(unit("used_bytes", Meaning::Gauge), "bytes");
        assert_eq!(unit("oper_status", Meaning::Gauge), "");
        assert_eq!(unit("strays", Meaning::Counter64), "/s");
    }
}
