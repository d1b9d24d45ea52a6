//! What a viewer wants to see of a table.

use meikyo_recording::schema::Hint;
use meikyo_recording::{Column, TableSchema};

/// What viewers want of a table: the columns, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The table, as its recording declares it.
    pub table: TableSchema,
    /// Positions of the columns, in the viewer's order.
    pub columns: Vec<usize>,
}

impl Wish {
    /// What the table says of the columns, in the viewer's order.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().map(|&column| &self.table.columns[column])
    }

    /// Positions of the columns that say how counters count, in the order of [`Hint::ALL`]; `None`
    /// where the table has none.
    pub(crate) fn hints(&self) -> [Option<usize>; 4] {
        Hint::ALL.map(|hint| self.table.hint(hint))
    }

    /// Their names.
    pub(crate) fn hint_names(&self) -> [Option<&str>; 4] {
        self.hints().map(|hint| hint.map(|hint| self.table.columns[hint].name.as_str()))
    }
}
