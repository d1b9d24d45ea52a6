//! What schemas of earlier versions leave out, derived from names.
//!
//! Before 2026-11 a schema said name, kind, meaning and one sentence of each column, and readers
//! knew tables by their names. Such schemas stand in the segments and files of old recordings, and
//! in tables that a program builds with [`TableSchema::new`] alone. This is the only place that
//! knows those names; what cannot be derived (words for people, what is shown first) is missing,
//! and a reader then shows the column's name.

use super::role::Role;
use super::{ColumnKind, Hint, Meaning, Part, TableSchema};

/// The tables that had their meaning by name.
const ROLES: [(&str, Role); 6] = [
    ("polls", Role::Answers),
    ("intervals", Role::Health),
    ("batches", Role::Requests),
    ("freshness", Role::Findings),
    ("events", Role::Events),
    ("clocks", Role::Clocks),
];

/// Endings of names that say the unit, which words leave out.
const UNITS: [&str; 6] = ["_bytes", "_octets", "_ticks", "_us", "_cs", "_mbps"];

/// The role of a table that states none.
pub(super) fn role(table: &TableSchema) -> Role {
    let named = ROLES.iter().find(|(name, _)| *name == table.name);
    named.map_or(Role::Readings, |(_, role)| *role)
}

/// The column that gave a hint by its name.
pub(super) fn hint(table: &TableSchema, hint: Hint) -> Option<usize> {
    let name = match hint {
        _ if table.role.is_some() => return None,
        Hint::Answer => "pdu",
        Hint::Discontinuity => "discontinuity_cs",
        Hint::CounterBits => "counter_bits",
        Hint::LineRate => "speed_mbps",
    };
    table.column(name)
}

/// The table with the receive times: every table with devices was joined with `polls`.
pub(super) fn answers(table: &TableSchema) -> Option<&'static str> {
    let (name, role) = ROLES[0];
    (table.role() != role && table.column("device").is_some()).then_some(name)
}

/// A heading made of a table's name.
pub(super) fn title(name: &str) -> String {
    let spaced = name.replace('_', " ");
    let mut letters = spaced.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}

/// Words made of a column's name.
pub(super) fn words(name: &str) -> String {
    let bare = UNITS.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    bare.replace('_', " ")
}

/// What a device has several of: whatever its second label names.
pub(super) fn part(table: &TableSchema) -> Option<Part> {
    let mut labels = table
        .columns
        .iter()
        .filter(|column| column.meaning == Meaning::Label && column.kind != ColumnKind::Time);
    let is_device = labels.next().is_some_and(|label| label.name == "device");
    let second = labels.next().filter(|_| is_device && table.role.is_none())?;
    Some(Part { noun: second.name.clone(), greatest: "greatest".into() })
}

#[cfg(test)]
mod tests {
    use super::super::{Column, Unit};
    use super::*;

    /// The head of a segment as the version of 2026-10 wrote it.
    const WRITTEN: &str = r#"{"name":"interfaces","doc":"interface counters","columns":[
        {"name":"time","kind":"time","meaning":"label","doc":"due instant of the interval"},
        {"name":"device","kind":"symbol","meaning":"label","doc":""},
        {"name":"interface","kind":"symbol","meaning":"label","doc":""},
        {"name":"in_octets","kind":"u64","meaning":"counter64","doc":""},
        {"name":"counter_bits","kind":"u64","meaning":"detail","doc":""},
        {"name":"pdu","kind":"u64","meaning":"detail","doc":""}]}"#;

    #[test]
    fn a_schema_that_says_nothing_of_roles_means_what_its_names_meant() {
        let table: TableSchema = serde_json::from_str(WRITTEN).unwrap();
        assert_eq!((table.role(), table.answers()), (Role::Readings, Some("polls")));
        assert_eq!(table.hint(Hint::Answer), Some(5));
        assert_eq!(table.hint(Hint::CounterBits), Some(4));
        assert_eq!(table.hint(Hint::LineRate), None);
        assert_eq!(table.columns[3].unit(), Some(Unit::Octets));
        assert_eq!(table.columns[3].words(), "in");
        assert_eq!(table.part().map(|part| part.noun), Some("interface".into()));
        // What was read is written as it was: checksums over it hold.
        let compact: String = WRITTEN.lines().map(str::trim_start).collect();
        assert_eq!(serde_json::to_string(&table).unwrap(), compact);
    }

    #[test]
    fn a_table_with_a_role_is_not_guessed_at() {
        let columns = || vec![Column::new("pdu", ColumnKind::U64, Meaning::Detail, "")];
        let old = TableSchema::new("polls", "", columns());
        let new = TableSchema::new("polls", "", columns()).for_role(Role::Readings);
        assert_eq!((old.role(), new.role()), (Role::Answers, Role::Readings));
        assert_eq!((old.hint(Hint::Answer), new.hint(Hint::Answer)), (Some(1), None));
        assert_eq!((old.answers(), new.answers()), (None, None));
    }
}
