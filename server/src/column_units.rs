//! Units, meanings and roles of tables and columns in the words of the API.

use meikyo_recording::schema::Role;
use meikyo_recording::{Column, Meaning, TableSchema};

/// The unit of a column's values as they are drawn, counters as rates a second; in ASCII, since it
/// goes into headers. Empty where there is none.
pub(crate) fn unit_of(column: &Column) -> String {
    let unit = column.unit().map_or("", |unit| unit.word());
    if column.counts() { format!("{unit}/s") } else { unit.to_owned() }
}

/// The word for what a table is for.
pub(crate) fn role_of(table: &TableSchema) -> &'static str {
    match table.role() {
        Role::Readings => "readings",
        Role::Answers => "answers",
        Role::Health => "health",
        Role::Requests => "requests",
        Role::Findings => "findings",
        Role::Events => "events",
        Role::Clocks => "clocks",
        Role::Samples => "samples",
        Role::Context => "context",
    }
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
