//! A reference of tables for people, as Markdown: what `docs/tables.md` is made of.

use super::{Column, ColumnKind, Meaning, Role, TableSchema};

/// A section for each table, in the given order: what it is for, and its columns with type, unit,
/// meaning, words for people and source.
pub fn markdown(tables: &[TableSchema]) -> String {
    tables.iter().map(section).collect()
}

fn section(table: &TableSchema) -> String {
    let TableSchema { name, doc, .. } = table;
    let mut text = format!("\n## `{name}`\n\n");
    text += &format!("{}: {doc}. {}", table.title(), purpose(table.role()));
    if let Some(part) = table.part() {
        text += &format!(" Each {} of a device is a series.", part.noun);
    }
    for column in &table.columns {
        if let Some(joined) = &column.joins {
            text += &format!(
                " `{}` refers to the row of `{joined}` with the same `time` and value.",
                column.name
            );
        }
    }
    text += "\n\n| column | type | unit | meaning | displayed as | description |\n";
    text += "| --- | --- | --- | --- | --- | --- |\n";
    for column in &table.columns {
        let Column { name, doc, .. } = column;
        let unit = column.unit().map_or("", |unit| unit.symbol());
        let words = match column.meaning {
            Meaning::Gauge | Meaning::Counter32 | Meaning::Counter64 => column.words(),
            Meaning::Label | Meaning::State | Meaning::Detail => String::new(),
        };
        let (kind, meaning) = (kind(column.kind), meaning(column.meaning));
        text += &format!("| `{name}` | {kind} | {unit} | {meaning} | {words} | {doc} |\n");
    }
    text
}

fn purpose(role: Role) -> &'static str {
    match role {
        Role::Readings => "Readings of devices.",
        Role::Answers => "Readers find the devices here, and the times at which readings arrived.",
        Role::Health => "Readers judge from it how well an interval was measured.",
        Role::Requests => "Round-trip times are computed from it.",
        Role::Findings => {
            "Rates are computed from one update to the next, which readers find here."
        }
        Role::Events => "Alerts are among them.",
        Role::Clocks => "With it the clocks of several hosts can be aligned.",
        Role::Samples => "Readers count its rows.",
        Role::Context => "It is needed to interpret other tables.",
    }
}

fn kind(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Time => "time",
        ColumnKind::Symbol => "word",
        ColumnKind::Text => "text",
        ColumnKind::U64 => "u64",
        ColumnKind::I64 => "i64",
        ColumnKind::F64 => "f64",
    }
}

fn meaning(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Label => "label",
        Meaning::Gauge => "gauge",
        Meaning::Counter32 => "counter, 32 bits",
        Meaning::Counter64 => "counter, 64 bits",
        Meaning::State => "state",
        Meaning::Detail => "detail",
    }
}
