//! What the columns of a table are.
//!
//! An engine declares its tables once, as data; the recording keeps them without knowing what they
//! measure. The schema is written into every log segment and Parquet file, so that a recording can
//! be read without the program that wrote it.

use serde::{Deserialize, Serialize};

/// A table that an engine fills.
///
/// Its first column is always `time`, the due instant of the interval in ns since the epoch that
/// `recording.toml` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// Name, which is also its directory.
    pub name: String,
    /// One sentence for people.
    pub doc: String,
    /// The columns in their fixed order; the first is `time`.
    pub columns: Vec<Column>,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name as in DuckDB and pandas, with its unit where it has one: `received_us`.
    pub name: String,
    /// How values are kept.
    pub kind: ColumnKind,
    /// What values mean, which decides how they are summarised.
    pub meaning: Meaning,
    /// One sentence for people: unit and source.
    pub doc: String,
}

/// How the values of a column are kept. Every kind is nullable but [`ColumnKind::Time`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Nanoseconds since the epoch; Parquet `TIMESTAMP(NANOS, UTC)`.
    Time,
    /// One of a bounded set of texts, interned per stream; Parquet `STRING`, dictionary encoded.
    Symbol,
    /// Free text or octets that are UTF-8; Parquet `STRING`.
    Text,
    /// Unsigned integer; Parquet `UINT_64`.
    U64,
    /// Signed integer; Parquet `INT_64`.
    I64,
    /// IEEE double; Parquet `DOUBLE`.
    F64,
}

/// What the values of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Names the row: time, device, interface. Rows of one series agree in all labels but `time`.
    Label,
    /// A quantity that goes up and down; summaries keep min, mean, max.
    Gauge,
    /// A count since some start, which wraps at 2^32 (SNMP Counter32) or resets.
    Counter32,
    /// A count since some start, which wraps at 2^64 or resets.
    Counter64,
    /// The state of an interval; summaries keep the worst.
    State,
    /// Explains the row rather than measuring: which PDU carried it, how wide its counters are.
    /// Summaries leave it out.
    Detail,
}

impl TableSchema {
    /// A table of the given name whose first column is `time`.
    pub fn new(name: &str, doc: &str, columns: Vec<Column>) -> Self {
        let time =
            Column::new("time", ColumnKind::Time, Meaning::Label, "due instant of the interval");
        let columns = std::iter::once(time).chain(columns).collect();
        Self { name: name.into(), doc: doc.into(), columns }
    }

    /// The position of the column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl Column {
    /// A column of the given name, kind and meaning.
    pub fn new(name: &str, kind: ColumnKind, meaning: Meaning, doc: &str) -> Self {
        Self { name: name.into(), kind, meaning, doc: doc.into() }
    }
}
