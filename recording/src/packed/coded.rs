//! Packed rows as a block keeps them: most columns have each different value once, and which of them each row has.
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
    /// them otherwise, as earlier versions did. Then [`PackedRows::unpack`] tells what the rows have, and whether
    /// its times are what the block says, which is not looked at here.
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

    /// How many values a column keeps, null among them: each different one once, or one for each row.
    pub fn kept(&self, at: usize) -> usize {
        match &self.columns[at] {
            CodedColumn::Null => 1,
            CodedColumn::Each(values) => values.len(),
            CodedColumn::Numbers { entries, .. } | CodedColumn::ByAnother { entries, .. } => {
                entries.len()
            }
            CodedColumn::Texts { entries, .. } => entries.count(),
        }
    }

    /// Which of the values that a column keeps a row has.
    #[inline]
    pub fn place(&self, at: usize, row: usize) -> usize {
        match &self.columns[at] {
            CodedColumn::Null => 0,
            CodedColumn::Each(_) => row,
            // A column that keeps one value only has no places.
            CodedColumn::Numbers { places, .. } | CodedColumn::Texts { places, .. } => {
                places.get(row).map_or(0, |&place| place as usize)
            }
            CodedColumn::ByAnother { another, .. } => self.place(*another, row),
        }
    }

    /// The bits at a place of a column of integers or symbols; `None` of null.
    #[inline]
    pub fn bits(&self, at: usize, place: usize) -> Option<u64> {
        match &self.columns[at] {
            CodedColumn::Null | CodedColumn::Texts { .. } => None,
            CodedColumn::Each(values) => values.get(place).copied(),
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
            CodedColumn::Each(values) => {
                let first = values.first()?;
                values.iter().all(|value| value == first).then_some(Some(*first))
            }
            _ => None,
        }
    }
}
