//! What the columns of a table are.
//!
//! An engine declares each of its tables once, with [`crate::table!`]: the columns with their type,
//! unit and words for people, which of them name the row, which are shown first, what they are
//! joined with, and what the table as a whole is for ([`Role`]). Whoever writes gets typed
//! [`Handle`]s from the declaration, whoever reads gets the declaration itself: it is written into
//! every log segment and Parquet file, so that a recording can be read without the program that
//! wrote it.
//!
//! Readers ask [`TableSchema::role`], [`Column::unit`] and the like instead of looking into the
//! fields: recordings of before 2026-11 have neither roles nor units, and what they leave out is
//! derived in one place, [`mod@earlier`].

mod check;
pub mod earlier;
mod handle;
pub mod reference;
pub mod role;
mod state;
mod table;
mod unit;

use serde::{Deserialize, Serialize};

pub use check::{COLUMNS_MAX, SchemaError};
pub use handle::{Cell, Handle, Name, Text, Values};
pub use role::Role;
pub use state::State;
pub use unit::Unit;

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
    /// What the rows are for readers who do not know the table's name; see [`TableSchema::role`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What people call the table as a heading: `Disks`; see [`TableSchema::title`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a device has several of, each with rows of its own; `None` where a device has one row
    /// an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// The parts of a device that a table has a series for each of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// One of them: `interface`.
    pub noun: String,
    /// What the one with the greatest value is: `busiest`.
    pub greatest: String,
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
    /// What values are counted in; see [`Column::unit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// One or two words for people: `disk used`; see [`Column::words`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Place among the columns of all tables that are shown without being asked for, from 1; `None`
    /// for those that are only shown when chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u8>,
    /// Whether its newest value is listed as a number among the facts about a device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
    /// The column that is looked at together with it: the other direction of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The table whose row of the same `time` (and device, where both have one) and of the same
    /// value in the column of the same name explains this row; see [`TableSchema::answers`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<String>,
    /// What it says of the other values of its row; see [`TableSchema::hint`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// The words of a state, from best to worst; see [`Column::order`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
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

/// What a column says of the other values of its row, for the rates of its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Which answer of the device brought the row: with `time` and the device it leads to the row
    /// of role [`Role::Answers`] that has the receive time.
    Answer,
    /// The device's uptime when its counters last began anew, hundredths of a second.
    Discontinuity,
    /// How wide the row's counters of octets and packets are: 32 or 64.
    CounterBits,
    /// What the line carries at most, 10^6 bit/s.
    LineRate,
}

impl Hint {
    /// Every hint; its discriminant is its place here.
    pub const ALL: [Self; 4] =
        [Self::Answer, Self::Discontinuity, Self::CounterBits, Self::LineRate];
}

impl TableSchema {
    /// A table of the given name whose first column is `time`.
    pub fn new(name: &str, doc: &str, columns: Vec<Column>) -> Self {
        let time =
            Column::new("time", ColumnKind::Time, Meaning::Label, "due instant of the interval");
        let columns = std::iter::once(time).chain(columns).collect();
        let (role, title, part) = (None, None, None);
        Self { name: name.into(), doc: doc.into(), columns, role, title, part }
    }

    /// The same table for this purpose.
    #[must_use]
    pub fn for_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// The same table whose `time` is something else than the due instant of an interval.
    #[must_use]
    pub fn timed(mut self, doc: &str) -> Self {
        self.columns[0].doc = doc.into();
        self
    }

    /// The same table under this heading.
    #[must_use]
    pub fn titled(mut self, title: &str) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same table with a series for each `noun` of a device, of which the one with the greatest
    /// value is called the `greatest` one.
    #[must_use]
    pub fn parted(mut self, noun: &str, greatest: &str) -> Self {
        self.part = Some(Part { noun: noun.into(), greatest: greatest.into() });
        self
    }

    /// The position of the column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// What the rows are.
    pub fn role(&self) -> Role {
        self.role.unwrap_or_else(|| earlier::role(self))
    }

    /// What people call the table as a heading.
    pub fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| earlier::title(&self.name))
    }

    /// What a device has several of in this table.
    pub fn part(&self) -> Option<Part> {
        self.part.clone().or_else(|| earlier::part(self))
    }

    /// The position of the column that gives a hint to the others of its row.
    pub fn hint(&self, hint: Hint) -> Option<usize> {
        let declared = self.columns.iter().position(|column| column.hint == Some(hint));
        declared.or_else(|| earlier::hint(self, hint))
    }

    /// The name of the table of role [`Role::Answers`] that has the receive times of this one's
    /// rows; `None` where rows do not come from answers.
    pub fn answers(&self) -> Option<&str> {
        match self.role {
            Some(_) => self.columns[self.hint(Hint::Answer)?].joins.as_deref(),
            None => earlier::answers(self),
        }
    }
}

impl Column {
    /// A column of the given name, kind and meaning.
    pub fn new(name: &str, kind: ColumnKind, meaning: Meaning, doc: &str) -> Self {
        Self {
            name: name.into(),
            kind,
            meaning,
            doc: doc.into(),
            unit: None,
            words: None,
            shown: None,
            listed: false,
            beside: None,
            joins: None,
            hint: None,
            order: Vec::new(),
        }
    }

    /// What values are counted in; `None` for plain numbers and for what is no number.
    pub fn unit(&self) -> Option<Unit> {
        self.unit.or_else(|| Unit::of_name(&self.name))
    }

    /// One or two words for people.
    pub fn words(&self) -> String {
        self.words.clone().unwrap_or_else(|| earlier::words(&self.name))
    }

    /// Whether it counts up, so that it is looked at as a rate.
    pub fn counts(&self) -> bool {
        matches!(self.meaning, Meaning::Counter32 | Meaning::Counter64)
    }

    /// The words of a state, from best to worst; empty for other columns.
    pub fn order(&self) -> Vec<String> {
        match self.meaning {
            Meaning::State if self.order.is_empty() => State::words(),
            _ => self.order.clone(),
        }
    }

    /// The same column counted in this.
    #[must_use]
    pub fn in_unit(mut self, unit: Unit) -> Self {
        self.unit = Some(unit);
        self
    }

    /// The same column in people's words.
    #[must_use]
    pub fn called(mut self, words: &str) -> Self {
        self.words = Some(words.into());
        self
    }

    /// The same column shown without being asked for, in this place.
    #[must_use]
    pub fn shown(mut self, place: u8) -> Self {
        self.shown = Some(place);
        self
    }

    /// The same column listed as a number among the facts about a device.
    #[must_use]
    pub fn listed(mut self) -> Self {
        self.listed = true;
        self
    }

    /// The same column looked at together with another one of its table.
    #[must_use]
    pub fn beside(mut self, column: &str) -> Self {
        self.beside = Some(column.into());
        self
    }

    /// The same column leading to rows of another table.
    #[must_use]
    pub fn joins(mut self, table: &str) -> Self {
        self.joins = Some(table.into());
        self
    }

    /// The same column giving a hint to the others of its row.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The same column with the words of its states, from best to worst.
    #[must_use]
    pub fn ordered(mut self, words: Vec<String>) -> Self {
        self.order = words;
        self
    }
}
