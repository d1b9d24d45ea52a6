//! Rows of one table on their way into the recording, in columns.
//!
//! The collector fills a batch without allocating once its buffers have grown: pushing a value is a
//! store of 64 bits. A column that a row does not mention is null in it and costs nothing until the
//! next value of that column is pushed.

use crate::schema::{Cell, ColumnKind, Handle, TableSchema};

/// An interned text of one stream, see [`crate::StreamWriter::symbol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub(crate) u32);

impl Symbol {
    /// Which of the stream's symbols it is; they count up from zero.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Rows of one table, column by column.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(crate) table: usize,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<ColumnBuffer>,
}

/// The values of one column: 64 raw bits each, or octets.
#[derive(Debug, Clone)]
pub(crate) struct ColumnBuffer {
    pub(crate) kind: ColumnKind,
    /// Raw bits; for [`ColumnKind::Text`] the end offset into `octets`.
    pub(crate) bits: Vec<u64>,
    /// One bit a row, set where the value is null; shorter than the column when the rest is not.
    pub(crate) nulls: Vec<u64>,
    /// Octets of texts.
    pub(crate) octets: Vec<u8>,
}

impl Batch {
    /// An empty batch for the table at position `table` of a stream's tables.
    pub fn new(table: usize, schema: &TableSchema) -> Self {
        let columns = schema.columns.iter().map(|column| ColumnBuffer::new(column.kind)).collect();
        Self { table, rows: 0, columns }
    }

    /// The position of the batch's table among the stream's tables.
    pub fn table(&self) -> usize {
        self.table
    }

    /// The number of rows begun.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Begins a row; values pushed from now on belong to it. `time` is in ns since the epoch.
    #[inline]
    pub fn begin_row(&mut self, time: i64) {
        self.rows += 1;
        self.columns[0].bits.push(time.cast_unsigned());
    }

    /// Puts a value into a column of the row begun last. The handle must be of the batch's table.
    #[inline]
    pub fn put<C: Cell>(&mut self, column: Handle<C>, value: C::Put<'_>) {
        C::put(self, column.position(), value);
    }

    /// Puts an unsigned integer into `column` of the row begun last: for columns that are only
    /// known when the program runs, as all `put_` with a position; see [`Batch::put`].
    #[inline]
    pub fn put_u64(&mut self, column: usize, value: u64) {
        debug_assert_eq!(self.columns[column].kind, ColumnKind::U64);
        self.columns[column].put(self.rows - 1, value);
    }

    /// Puts a signed integer into `column` of the row begun last.
    #[inline]
    pub fn put_i64(&mut self, column: usize, value: i64) {
        debug_assert_eq!(self.columns[column].kind, ColumnKind::I64);
        self.columns[column].put(self.rows - 1, value.cast_unsigned());
    }

    /// Puts a double into `column` of the row begun last.
    #[inline]
    pub fn put_f64(&mut self, column: usize, value: f64) {
        debug_assert_eq!(self.columns[column].kind, ColumnKind::F64);
        self.columns[column].put(self.rows - 1, value.to_bits());
    }

    /// Puts an interned text into `column` of the row begun last.
    #[inline]
    pub fn put_symbol(&mut self, column: usize, value: Symbol) {
        debug_assert_eq!(self.columns[column].kind, ColumnKind::Symbol);
        self.columns[column].put(self.rows - 1, u64::from(value.0));
    }

    /// Puts a free text into `column` of the row begun last.
    pub fn put_text(&mut self, column: usize, value: &str) {
        debug_assert_eq!(self.columns[column].kind, ColumnKind::Text);
        self.columns[column].put_octets(self.rows - 1, value.as_bytes());
    }

    /// The raw bits of a value: the integer, the bits of the double, the number of the symbol, the
    /// end of the text; `None` where it is null.
    pub fn bits(&self, column: usize, row: usize) -> Option<u64> {
        let column = &self.columns[column];
        (!column.is_null(row)).then(|| column.bits[row])
    }

    /// A free text; `None` where it is null or not UTF-8.
    pub fn text(&self, column: usize, row: usize) -> Option<&str> {
        let end = usize::try_from(self.bits(column, row)?).ok()?;
        let column = &self.columns[column];
        let before =
            row.checked_sub(1).map_or(Some(0), |before| usize::try_from(column.bits[before]).ok());
        std::str::from_utf8(column.octets.get(before?..end)?).ok()
    }

    /// The least and the greatest time of the rows, ns since the epoch; 0 without rows.
    pub fn times(&self) -> (i64, i64) {
        let times = self.columns[0].bits.iter().map(|bits| bits.cast_signed());
        let both = times.map(|time| (time, time));
        both.reduce(|(least, greatest), (time, _)| (least.min(time), greatest.max(time)))
            .unwrap_or_default()
    }

    /// Puts copies of another batch's rows behind its own.
    ///
    /// # Panics
    /// If that batch has other columns.
    pub fn append(&mut self, rows: &Self) {
        assert_eq!(rows.columns.len(), self.columns.len(), "rows are of the same table");
        let before = self.rows;
        for (own, new) in self.columns.iter_mut().zip(&rows.columns) {
            own.append(before, new, rows.rows);
        }
        self.rows += rows.rows;
    }

    /// Empties the batch and keeps its buffers.
    pub fn clear(&mut self) {
        self.rows = 0;
        for column in &mut self.columns {
            column.bits.clear();
            column.nulls.clear();
            column.octets.clear();
        }
    }
}

impl ColumnBuffer {
    pub(crate) fn new(kind: ColumnKind) -> Self {
        Self { kind, bits: Vec::new(), nulls: Vec::new(), octets: Vec::new() }
    }

    /// Whether the value of `row` is null; rows past the last value are.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        row >= self.bits.len()
            || self.nulls.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Appends the `rows` rows of a column to the `before` of this one.
    fn append(&mut self, before: usize, new: &Self, rows: usize) {
        if new.bits.is_empty() {
            return;
        }
        self.pad(before);
        let octets = self.octets.len() as u64;
        if new.kind == ColumnKind::Text {
            self.bits.extend(new.bits.iter().map(|end| end + octets));
            self.octets.extend_from_slice(&new.octets);
        } else {
            self.bits.extend_from_slice(&new.bits);
        }
        if new.nulls.iter().any(|&word| word != 0) {
            for row in (0..new.bits.len()).filter(|&row| new.is_null(row)) {
                self.set_null(before + row);
            }
        }
        self.pad(before + rows);
    }

    /// Makes a value null.
    pub(crate) fn set_null(&mut self, row: usize) {
        if self.nulls.len() <= row / 64 {
            self.nulls.resize(row / 64 + 1, 0);
        }
        self.nulls[row / 64] |= 1 << (row % 64);
    }

    #[inline]
    fn put(&mut self, row: usize, bits: u64) {
        if self.bits.len() < row {
            self.pad(row);
        }
        debug_assert_eq!(self.bits.len(), row, "one value a row and column");
        self.bits.push(bits);
    }

    fn put_octets(&mut self, row: usize, octets: &[u8]) {
        if self.bits.len() < row {
            self.pad(row);
        }
        debug_assert_eq!(self.bits.len(), row, "one value a row and column");
        self.octets.extend_from_slice(octets);
        self.bits.push(self.octets.len() as u64);
    }

    /// Fills the column with nulls up to `rows` rows.
    pub(crate) fn pad(&mut self, rows: usize) {
        let filler = if self.kind == ColumnKind::Text { self.octets.len() as u64 } else { 0 };
        while self.bits.len() < rows {
            self.set_null(self.bits.len());
            self.bits.push(filler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, Meaning};

    #[test]
    fn columns_that_a_row_does_not_mention_are_null_in_it() {
        let schema = TableSchema::new(
            "t",
            "a table",
            vec![
                Column::new("a", ColumnKind::U64, Meaning::Gauge, ""),
                Column::new("b", ColumnKind::Text, Meaning::Gauge, ""),
            ],
        );
        let mut batch = Batch::new(0, &schema);
        for row in 0..200 {
            batch.begin_row(row);
            if row % 70 == 69 {
                batch.put_u64(1, row.cast_unsigned());
            }
            if row == 150 {
                batch.put_text(2, "here");
            }
        }
        for row in 0..200 {
            assert_eq!(batch.columns[1].is_null(row), row % 70 != 69, "row {row}");
            assert_eq!(batch.columns[2].is_null(row), row != 150, "row {row}");
        }
        assert_eq!(batch.columns[1].bits[139], 139);
        assert_eq!(batch.columns[2].bits[150], 4);
        assert_eq!(batch.columns[2].octets, b"here");
        assert_eq!((batch.text(2, 150), batch.text(2, 149)), (Some("here"), None));
        batch.clear();
        assert_eq!(batch.rows(), 0);
    }
}
