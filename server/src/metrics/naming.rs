//! How columns are called in Prometheus: seconds and bytes, whatever the recording counts in.

use meikyo_recording::Column;
use meikyo_recording::schema::Unit;

/// A column as Prometheus sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exported {
    /// The metric's name.
    pub(crate) name: String,
    /// What a value is multiplied by.
    factor: f64,
    /// What it is divided by: a hundredth of a second times 0.01 would not be what people write.
    divisor: f64,
}

impl Exported {
    /// A value of the recording in the unit that the name says.
    pub(crate) fn in_base_unit(&self, value: f64) -> f64 {
        value * self.factor / self.divisor
    }
}

/// Endings of columns by unit, the endings that say a base unit, and what values are multiplied with and
/// divided by.
const BASE_UNITS: [(Unit, &str, &str, f64, f64); 7] = [
    (Unit::Octets, "_octets", "_bytes", 1.0, 1.0),
    (Unit::Ticks, "_ticks", "_seconds", 1.0, 1e2),
    (Unit::Centiseconds, "_cs", "_seconds", 1.0, 1e2),
    (Unit::Microseconds, "_us", "_seconds", 1.0, 1e6),
    (Unit::Nanoseconds, "_ns", "_seconds", 1.0, 1e9),
    (Unit::MegabitsPerSecond, "_mbps", "_bytes_per_second", 125_000.0, 1.0),
    (Unit::PerSecond, "_per_s", "_per_second", 1.0, 1.0),
];

/// How a column of a table is called, and what becomes of its values.
pub(crate) fn exported(table: &str, column: &Column) -> Exported {
    let base = BASE_UNITS.iter().find_map(|(unit, ending, instead, factor, divisor)| {
        let stem = column.name.strip_suffix(ending).filter(|_| column.unit() == Some(*unit))?;
        Some((format!("{stem}{instead}"), *factor, *divisor))
    });
    let (own, factor, divisor) = base.unwrap_or_else(|| (column.name.clone(), 1.0, 1.0));
    let (table, own) = (plain(table), plain(&own));
    // `load` has `load_1min`, and a counter that is named so alone says so by its ending.
    let name = match own.strip_prefix(&format!("{table}_")) {
        Some(rest) => format!("meikyo_{table}_{rest}"),
        None if own == "counter" => format!("meikyo_{table}"),
        None => format!("meikyo_{table}_{own}"),
    };
    let ending = if column.counts() { "_total" } else { "" };
    Exported { name: format!("{name}{ending}"), factor, divisor }
}

/// A name of letters, digits and `_`.
pub(crate) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use meikyo_recording::{ColumnKind, Meaning};

    use super::*;

    #[test]
    fn names_say_base_units_and_values_are_in_them() {
        let of = |table, name, meaning| {
            let exported = exported(table, &Column::new(name, ColumnKind::U64, meaning, ""));
            let one = exported.in_base_unit(1.0);
            (exported.name, one)
        };
        let is = |name: &str, scale| (name.to_owned(), scale);
        let counter = Meaning::Counter64;
        let gauge = Meaning::Gauge;
        assert_eq!(
            of("interfaces", "in_octets", counter),
            is("meikyo_interfaces_in_bytes_total", 1.0)
        );
        assert_eq!(
            of("interfaces", "speed_mbps", gauge),
            is("meikyo_interfaces_speed_bytes_per_second", 125_000.0)
        );
        assert_eq!(of("cpu", "idle_ticks", counter), is("meikyo_cpu_idle_seconds_total", 0.01));
        assert_eq!(of("polls", "received_us", gauge), is("meikyo_polls_received_seconds", 1e-6));
        assert_eq!(of("polls", "uptime_cs", gauge), is("meikyo_polls_uptime_seconds", 1e-2));
        assert_eq!(of("load", "load_1min", gauge), is("meikyo_load_1min", 1.0));
        assert_eq!(of("storage", "used_bytes", gauge), is("meikyo_storage_used_bytes", 1.0));
        assert_eq!(of("objects", "counter", counter), is("meikyo_objects_total", 1.0));
        assert_eq!(of("a table", "über", gauge), is("meikyo_a_table__ber", 1.0));
    }
}
