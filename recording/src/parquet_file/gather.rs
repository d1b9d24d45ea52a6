//! Rows of the log, brought into the columns of a file.
//!
//! The rows of a part lie all over the frames of a segment, and every frame has its own width of a
//! value. They are taken frame by frame, so that the width is looked at once a frame and not once a
//! value, and put where the order has them.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, StringBuilder, TimestampNanosecondArray, UInt64Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{Int32Type, SchemaRef};
use arrow::error::ArrowError;

use crate::compact::{PART_ROWS_MAX, Place, Rows};
use crate::schema::{ColumnKind, TableSchema};

/// Brings rows of the log into the columns of a file.
#[derive(Debug)]
pub(crate) struct Gatherer<'a> {
    rows: &'a Rows<'a>,
    table: &'a TableSchema,
    schema: SchemaRef,
    /// Texts of the symbols by their numbers; at least one, so that there is a dictionary.
    symbols: ArrayRef,
    /// By column, nulls for the longest part, where no row has a value.
    nulls: Vec<Option<ArrayRef>>,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(
        rows: &'a Rows<'a>,
        table: &'a TableSchema,
        symbols: &[Option<String>],
    ) -> Self {
        let texts = symbols.iter().map(|symbol| symbol.as_deref().unwrap_or_default());
        let none = symbols.is_empty().then_some("");
        let symbols = Arc::new(StringArray::from_iter_values(texts.chain(none)));
        let schema = crate::series::arrow_schema(table);
        let longest = rows.len().min(PART_ROWS_MAX);
        let nulls = schema.fields().iter().enumerate().map(|(position, field)| {
            rows.is_all_null(position).then(|| new_null_array(field.data_type(), longest))
        });
        let nulls = nulls.collect();
        Self { rows, table, schema, symbols, nulls }
    }

    /// The rows at `places`, in that order.
    pub(crate) fn batch(&self, places: &[Place]) -> Result<RecordBatch, ArrowError> {
        let frames = ByFrame::new(places);
        let columns = self.table.columns.iter().enumerate();
        let columns: Result<Vec<_>, _> = columns
            .map(|(position, column)| match (&self.nulls[position], column.kind) {
                (Some(nulls), _) => Ok(nulls.slice(0, places.len())),
                (None, ColumnKind::Text) => Ok(Arc::new(self.texts(places, position)) as ArrayRef),
                (None, kind) => self.column(&frames, position, kind),
            })
            .collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns?)
    }

    fn column(
        &self,
        frames: &ByFrame,
        column: usize,
        kind: ColumnKind,
    ) -> Result<ArrayRef, ArrowError> {
        let nulls = self.nulls(frames, column);
        Ok(match kind {
            ColumnKind::Time => {
                let values = self.values(frames, column, u64::cast_signed).into();
                Arc::new(TimestampNanosecondArray::new(values, None).with_timezone("UTC"))
            }
            ColumnKind::I64 => {
                let values = self.values(frames, column, u64::cast_signed).into();
                Arc::new(Int64Array::new(values, nulls))
            }
            ColumnKind::U64 => {
                Arc::new(UInt64Array::new(self.values(frames, column, |bits| bits).into(), nulls))
            }
            ColumnKind::F64 => {
                let values = self.values(frames, column, f64::from_bits).into();
                Arc::new(Float64Array::new(values, nulls))
            }
            ColumnKind::Symbol | ColumnKind::Text => {
                let known = self.symbols.len() as u64;
                let key = |bits| if bits < known { i32::try_from(bits).unwrap_or(0) } else { 0 };
                let keys = Int32Array::new(self.values(frames, column, key).into(), nulls);
                let symbols = Arc::clone(&self.symbols);
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, symbols)?)
            }
        })
    }

    fn values<T: Copy + Default>(
        &self,
        frames: &ByFrame,
        column: usize,
        of: impl Fn(u64) -> T + Copy,
    ) -> Vec<T> {
        let mut values = vec![T::default(); frames.rows.len()];
        for (frame, rows) in frames.iter() {
            let rows = rows.iter().map(|row| (row.row as usize, row.to as usize));
            self.rows.view(column, frame).each(rows, |to, bits| values[to] = of(bits));
        }
        values
    }

    /// Which rows are not null; `None` when all are not.
    fn nulls(&self, frames: &ByFrame, column: usize) -> Option<NullBuffer> {
        if self.rows.is_full(column) {
            return None;
        }
        let mut valid = vec![u8::MAX; frames.rows.len().div_ceil(8)];
        let mut any = false;
        for (frame, rows) in frames.iter() {
            let view = self.rows.view(column, frame);
            if view.is_full() {
                continue;
            }
            for row in rows.iter().filter(|row| view.is_null(row.row as usize)) {
                valid[row.to as usize / 8] &= !(1 << (row.to % 8));
                any = true;
            }
        }
        let valid = BooleanBuffer::new(valid.into(), 0, frames.rows.len());
        any.then(|| NullBuffer::new(valid))
    }

    fn texts(&self, places: &[Place], column: usize) -> StringArray {
        let mut texts = StringBuilder::new();
        for &place in places {
            let (view, row) = self.rows.at(place, column);
            texts.append_option(view.text(row));
        }
        texts.finish()
    }
}

/// The rows of a part by the frames that they lie in.
#[derive(Debug)]
struct ByFrame {
    rows: Vec<FrameRow>,
    /// The frames in their order, and where the rows of each end.
    frames: Vec<(usize, usize)>,
}

/// A row of a frame, and where the part has it.
#[derive(Debug, Clone, Copy, Default)]
struct FrameRow {
    row: u32,
    to: u32,
}

impl ByFrame {
    fn new(places: &[Place]) -> Self {
        let count = places.iter().map(|place| place.frame as usize + 1).max().unwrap_or(0);
        let mut ends = vec![0; count];
        for place in places {
            ends[place.frame as usize] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        // Until a row is put, what stands for the end of its frame's rows is their begin.
        let mut rows = vec![FrameRow::default(); places.len()];
        for (to, place) in (0..).zip(places) {
            let end = &mut ends[place.frame as usize];
            rows[*end] = FrameRow { row: place.row, to };
            *end += 1;
        }
        let mut begin = 0;
        let used = |&(_, end): &(usize, usize)| std::mem::replace(&mut begin, end) < end;
        Self { rows, frames: ends.into_iter().enumerate().filter(used).collect() }
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &[FrameRow])> {
        let mut begin = 0;
        self.frames
            .iter()
            .map(move |&(frame, end)| (frame, &self.rows[std::mem::replace(&mut begin, end)..end]))
    }
}
