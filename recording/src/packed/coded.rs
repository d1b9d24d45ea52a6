//! Packed rows as a block keeps them: each different value once, and which of them each row has.
//!
//! Who counts rows that are alike need not take a block apart row by row: of a thousand samples of a
//! processor a few hundred differ in more than their time.

use super::PackedRows;
use crate::log::packed::{self, Coded, CodedColumn, SectionReader, UnpackError};
use crate::schema::TableSchema;

/// Reads blocks one after another.
#[derive(Debug, Default)]
pub struct CodedReader(SectionReader);

/// Some columns of the rows of a block, each by its place among those that were wanted.
#[derive(Debug)]
pub struct CodedRows {
    columns: Vec<CodedColumn>,
    words: Vec<String>,
    rows: usize,
}

impl CodedReader {
    /// The columns of a block that stand at some positions of its table; `None` where the block keeps one of
    /// them otherwise, as earlier versions did. Then [`PackedRows::unpack`] tells what the rows have.
    ///
    /// # Errors
    /// When the block is of another table, or its body is not what it says.
    pub fn read(
        &mut self,
        block: &PackedRows,
        schema: &TableSchema,
        wanted: &[usize],
    ) -> Result<Option<CodedRows>, UnpackError> {
        let coded = packed::coded(&block.payload, schema, wanted, &mut self.0)?;
        let with_rows = |Coded { columns, words }| CodedRows { columns, words, rows: block.rows };
        Ok(coded.map(with_rows))
    }
}

impl CodedRows {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The word that the value of a column of symbols stands for.
    pub fn word(&self, value: u64) -> Option<&str> {
        self.words.get(usize::try_from(value).ok()?).map(String::as_str)
    }

    /// How many different values a column has, null among them.
    pub fn different(&self, at: usize) -> usize {
        match &self.columns[at] {
            CodedColumn::Null => 1,
            CodedColumn::Numbers { entries, .. } | CodedColumn::ByAnother { entries, .. } => {
                entries.len()
            }
            CodedColumn::Texts { entries, .. } => entries.count(),
        }
    }

    /// Which of its different values each row has of a column; none where it has one only.
    pub fn places(&self, at: usize) -> &[u32] {
        match &self.columns[at] {
            CodedColumn::Null => &[],
            CodedColumn::Numbers { places, .. } | CodedColumn::Texts { places, .. } => places,
            CodedColumn::ByAnother { another, .. } => self.places(*another),
        }
    }

    /// The bits at a place of a column of integers or symbols; `None` of null.
    pub fn bits(&self, at: usize, place: usize) -> Option<u64> {
        match &self.columns[at] {
            CodedColumn::Null | CodedColumn::Texts { .. } => None,
            CodedColumn::Numbers { entries, .. } | CodedColumn::ByAnother { entries, .. } => {
                entries.get(place).copied().flatten()
            }
        }
    }

    /// The text at a place of a column of texts; `None` of null.
    pub fn text(&self, at: usize, place: usize) -> Option<&str> {
        match &self.columns[at] {
            CodedColumn::Texts { entries, .. } => entries.get(place),
            _ => None,
        }
    }

    /// The value that all rows have of a column of integers or symbols: `None` where they differ, `Some(None)` of
    /// null.
    pub fn only(&self, at: usize) -> Option<Option<u64>> {
        match &self.columns[at] {
            CodedColumn::Null => Some(None),
            CodedColumn::Numbers { entries, .. } if entries.len() == 1 => Some(entries[0]),
            _ => None,
        }
    }
}
