//! A selection with its names resolved.

use std::ops::RangeInclusive;

use arrow::datatypes::SchemaRef;

use super::listing::Wanted as WantedFiles;
use super::wanted::Wanted;
use super::{ReadError, Selection};
use crate::layout;
use crate::schema::{ColumnKind, TableSchema};
use crate::series;

/// A selection with its names resolved.
#[derive(Debug)]
pub(super) struct Plan {
    /// The table whole.
    pub(super) table: TableSchema,
    /// Positions of the wanted columns, in the order in which they are wanted.
    pub(super) columns: Vec<usize>,
    /// Positions of label columns, and the texts of which a row has one.
    pub(super) labels: Vec<(usize, Wanted)>,
    /// The least `time`.
    pub(super) from: i64,
    /// The first `time` not wanted any more.
    pub(super) to: i64,
    /// Schema of the batches.
    pub(super) arrow: SchemaRef,
}

impl Plan {
    pub(super) fn new(table: TableSchema, selection: &Selection) -> Result<Self, ReadError> {
        let position = |name: &String| {
            table.column(name).ok_or_else(|| ReadError::UnknownColumn {
                table: table.name.clone(),
                column: name.clone(),
                known: table.columns.iter().map(|column| column.name.clone()).collect(),
            })
        };
        let columns: Vec<usize> = match &selection.columns {
            Some(names) => names.iter().map(position).collect::<Result<_, _>>()?,
            None => (0..table.columns.len()).collect(),
        };
        let mut labels = Vec::new();
        for (name, texts) in &selection.labels {
            labels.push((position(name)?, Wanted::new(texts)));
        }
        let wanted = TableSchema {
            columns: columns.iter().map(|&column| table.columns[column].clone()).collect(),
            ..table.clone()
        };
        Ok(Self {
            arrow: series::arrow_schema(&wanted),
            columns,
            labels,
            from: selection.from.map_or(i64::MIN, |from| from.as_nanos()),
            to: selection.to.map_or(i64::MAX, |to| to.as_nanos()),
            table,
        })
    }

    /// The files that have wanted instants.
    pub(super) fn files(&self) -> WantedFiles<'_> {
        let end = self.to.saturating_sub(1);
        let (first, last) = (layout::hour_of(self.from), layout::hour_of(end));
        // No hour where the selection ends before it begins.
        let hours = if self.from < self.to { first..=last } else { RangeInclusive::new(1, 0) };
        WantedFiles { table: Some(&self.table.name), hours }
    }

    /// Whether one of the instants is wanted.
    pub(super) fn wants_span(&self, least: i64, greatest: i64) -> bool {
        least < self.to && greatest >= self.from
    }

    /// Whether all of the instants are wanted.
    pub(super) fn wants_all_of(&self, least: i64, greatest: i64) -> bool {
        least >= self.from && greatest < self.to
    }

    /// Positions of `time` and of the labels that rows are chosen by.
    pub(super) fn choosing(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(0).chain(self.labels.iter().map(|(label, _)| *label))
    }
}

/// Whether a column can hold labels that rows are chosen by.
pub(super) fn is_text(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Symbol | ColumnKind::Text)
}
