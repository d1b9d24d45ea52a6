//! Parts of a table: a few series whose rows fit into bounded memory, put in order.
//!
//! Each part takes a pass over the frames of its table that it has rows in, and every row is written
//! where the part has it. Rows of a frame lie far from each other there, those of a series in neighbouring frames
//! beside each other: so some frames are read at a time, and taken column by column, while the lines of memory that they
//! share are in the cache. Nothing is in memory but the values of the part and these frames.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, StringBuilder, TimestampNanosecondArray, UInt64Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Int32Type, SchemaRef};
use arrow::error::ArrowError;

use super::frames::{Payload, TableFrames};
use super::order::{SeriesIndex, known};
use super::{CompactError, changed, parquet_error};
use crate::log::ColumnView;
use crate::schema::ColumnKind;

/// Frames that are read at a time at most, and octets of them after which no other is.
const FRAMES_AT_ONCE: usize = 16;
const OCTETS_AT_ONCE: usize = 512 << 10;

/// Rows of a part at most.
pub(super) const PART_ROWS_MAX: usize = 1 << 18;

/// Some series of one hour, in their order, or some rows of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) hour: i64,
    pub(super) series: Vec<u32>,
    /// The first row of the series, where it is one that is divided, and how many rows.
    from: u32,
    rows: usize,
}

impl Part {
    /// All rows of some series.
    pub(super) fn of(index: &SeriesIndex, series: impl Iterator<Item = u32>) -> Self {
        let series: Vec<_> = series.collect();
        let rows = series.iter().map(|&id| index.series()[id as usize].rows as usize).sum();
        let hour = series.first().map_or(0, |&id| index.series()[id as usize].hour);
        Self { hour, series, from: 0, rows }
    }
}

/// Divides the series of a table into parts.
///
/// `room` is how many octets a part may take; `beside` tells what a series needs elsewhere that the
/// series before it in the part does not. A series that is not in order of time is one part whatever
/// it takes.
pub(super) fn divide(
    index: &SeriesIndex,
    row_octets: usize,
    room: usize,
    mut beside: impl FnMut(Option<u32>, u32) -> usize,
) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut filled = 0;
    let mut before = None;
    for &id in index.order() {
        let series = index.series()[id as usize];
        let texts = usize::try_from(series.text_octets).expect("they stand in a segment");
        let rows = series.rows as usize;
        let own = (rows * row_octets).saturating_add(texts);
        let octets = own.saturating_add(beside(before, id));
        let fits = |part: &&mut Part| {
            part.hour == series.hour
                && part.from == 0
                && filled + octets <= room
                && part.rows + rows <= PART_ROWS_MAX
        };
        if let Some(part) = parts.last_mut().filter(fits) {
            part.series.push(id);
            part.rows += rows;
            filled += octets;
            before = Some(id);
            continue;
        }
        let share = (room / 2 / (own / rows.max(1)).max(1)).clamp(1, PART_ROWS_MAX);
        let share = if series.in_order { share } else { rows };
        for from in (0..rows).step_by(share.max(1)) {
            let part_rows = share.min(rows - from);
            let from = u32::try_from(from).expect("a segment is bounded by its rows");
            parts.push(Part { hour: series.hour, series: vec![id], from, rows: part_rows });
        }
        filled = if rows > share { room } else { own.saturating_add(beside(None, id)) };
        before = Some(id);
    }
    parts
}

/// Brings rows of the log into the columns of a file.
#[derive(Debug)]
pub(super) struct Gatherer<'a> {
    table: TableFrames<'a>,
    index: &'a SeriesIndex,
    symbols: &'a [Option<String>],
    schema: SchemaRef,
    /// The columns that are wanted.
    columns: Vec<usize>,
    /// Texts of the symbols by their numbers; at least one, so that there is a dictionary.
    texts: ArrayRef,
    /// Where rows are null in every part, by type.
    nulls: Vec<(DataType, ArrayRef)>,
}

/// One row of a frame, and where the part has it.
type Taken = (usize, usize);

/// A frame that was read, and which of its rows the part has.
#[derive(Default)]
struct Read {
    at: usize,
    payload: Payload,
    taken: Vec<Taken>,
}

impl<'a> Gatherer<'a> {
    /// A gatherer of the columns at some positions of a table.
    pub(super) fn new(
        table: TableFrames<'a>,
        index: &'a SeriesIndex,
        symbols: &'a [Option<String>],
        columns: Vec<usize>,
    ) -> Result<Self, ArrowError> {
        let texts = symbols.iter().map(|symbol| symbol.as_deref().unwrap_or_default());
        let none = symbols.is_empty().then_some("");
        let texts = Arc::new(StringArray::from_iter_values(texts.chain(none)));
        let schema = Arc::new(crate::series::arrow_schema(table.schema).project(&columns)?);
        let mut nulls: Vec<(DataType, ArrayRef)> = Vec::new();
        let longest = index.series().iter().map(|series| series.rows as usize).max().unwrap_or(0);
        let rows: usize = index.series().iter().map(|series| series.rows as usize).sum();
        let longest = rows.min(PART_ROWS_MAX).max(longest);
        for (field, &column) in schema.fields().iter().zip(&columns) {
            let kind = field.data_type();
            if index.facts(column).all_null && nulls.iter().all(|(known, _)| known != kind) {
                nulls.push((kind.clone(), new_null_array(kind, longest)));
            }
        }
        Ok(Self { table, index, symbols, schema, columns, texts, nulls })
    }

    /// The segment that the rows are of.
    pub(super) fn segment(&self) -> &Path {
        self.table.segment
    }

    /// Octets that a row takes in a part.
    pub(super) fn row_octets(&self) -> usize {
        let octets = |&column: &usize| match self.table.schema.columns[column].kind {
            _ if self.index.facts(column).all_null => 0,
            ColumnKind::Symbol => 4,
            ColumnKind::Text => 12,
            ColumnKind::Time | ColumnKind::U64 | ColumnKind::I64 | ColumnKind::F64 => 8,
        };
        self.columns.iter().map(octets).sum()
    }

    /// The rows of a part, in order.
    pub(super) fn batch(&self, part: &Part) -> Result<RecordBatch, CompactError> {
        let mut places = Places::new(self.index, part);
        let mut columns: Vec<_> =
            self.columns.iter().map(|&column| self.begin(column, part.rows)).collect();
        let frames = self.table.frames;
        let mut reads: Vec<Read> = Vec::new();
        let (mut at, mut first) = (0, 0);
        while at < frames.len() {
            let (mut count, mut octets) = (0, 0);
            while at < frames.len() && count < FRAMES_AT_ONCE && octets < OCTETS_AT_ONCE {
                if reads.len() == count {
                    reads.push(Read::default());
                }
                let read = &mut reads[count];
                places.locate(self.index.of_rows(first, frames[at].rows()), &mut read.taken);
                if !read.taken.is_empty() {
                    // It was looked at in the first pass; nobody writes the segment any more.
                    if !self.table.read(&frames[at], &mut read.payload)? {
                        return Err(changed(self.table.segment));
                    }
                    read.at = at;
                    octets += read.payload.octets.len();
                    count += 1;
                }
                first += frames[at].rows();
                at += 1;
            }
            self.put(&reads[..count], &mut columns)?;
        }
        self.sort_by_time(part, &mut columns);
        self.finish(part, columns).map_err(parquet_error(self.table.segment))
    }

    /// Takes the rows of some frames.
    fn put(&self, reads: &[Read], columns: &mut [Values]) -> Result<(), CompactError> {
        let frames = reads.iter().map(|read| (&self.table.frames[read.at], &read.payload.octets));
        let views = frames.map(|(frame, octets)| self.table.columns(frame, octets));
        let views: Vec<Vec<ColumnView<'_>>> =
            views.collect::<Option<_>>().ok_or_else(|| changed(self.table.segment))?;
        for (values, &column) in columns.iter_mut().zip(&self.columns) {
            for (read, views) in reads.iter().zip(&views) {
                values.put(&views[column], &read.taken, self.symbols);
            }
        }
        Ok(())
    }

    fn begin(&self, column: usize, rows: usize) -> Values {
        let facts = self.index.facts(column);
        let is_label = self.index.label_columns().contains(&column);
        let kind = match self.table.schema.columns[column].kind {
            _ if facts.all_null || is_label => Bits::Known,
            ColumnKind::Symbol => Bits::Keys(vec![0; rows]),
            ColumnKind::Text => Bits::Texts(vec![(0, 0); rows], String::new()),
            ColumnKind::Time | ColumnKind::U64 | ColumnKind::I64 | ColumnKind::F64 => {
                Bits::Numbers(vec![0; rows])
            }
        };
        // Also a symbol that every row has can be one whose text damage took.
        let nullable = !facts.full || matches!(kind, Bits::Keys(_));
        let valid = if nullable && !matches!(kind, Bits::Known) {
            vec![u8::MAX; rows.div_ceil(8)]
        } else {
            Vec::new()
        };
        Values { bits: kind, valid, any_null: false }
    }

    /// Sorts the rows of series whose time did not only rise.
    fn sort_by_time(&self, part: &Part, columns: &mut [Values]) {
        let mut begin = 0;
        for &id in &part.series {
            let series = self.index.series()[id as usize];
            let end = begin + (series.rows as usize).min(part.rows);
            if !series.in_order {
                let Some(Bits::Numbers(times)) = columns.first().map(|times| &times.bits) else {
                    return;
                };
                let mut order: Vec<_> = (begin..end).collect();
                order.sort_by_key(|&row| times[row].cast_signed());
                columns.iter_mut().for_each(|values| values.reorder(begin, &order));
            }
            begin = end;
        }
    }

    fn finish(&self, part: &Part, columns: Vec<Values>) -> Result<RecordBatch, ArrowError> {
        let arrays: Result<Vec<_>, _> = columns
            .into_iter()
            .zip(&self.columns)
            .zip(self.schema.fields())
            .map(|((values, &column), field)| {
                if self.index.facts(column).all_null {
                    let nulls = self.nulls.iter().find(|(kind, _)| kind == field.data_type());
                    let (_, nulls) = nulls.expect("made for every type that is null");
                    return Ok(nulls.slice(0, part.rows));
                }
                let label = self.index.label_columns().iter().position(|&label| label == column);
                match label {
                    Some(label) => self.label(part, label),
                    None => self.array(values, self.table.schema.columns[column].kind, part.rows),
                }
            })
            .collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays?)
    }

    /// A column that rows are sorted by: one symbol a series.
    fn label(&self, part: &Part, label: usize) -> Result<ArrayRef, ArrowError> {
        let mut keys = Vec::with_capacity(part.rows);
        let mut nulls = arrow::array::NullBufferBuilder::new(part.rows);
        for &id in &part.series {
            let rows = (self.index.series()[id as usize].rows as usize).min(part.rows);
            let symbol = self.index.label(id, label);
            keys.resize(keys.len() + rows, symbol.map_or(0, key_of));
            match symbol {
                Some(_) => nulls.append_n_non_nulls(rows),
                None => nulls.append_n_nulls(rows),
            }
        }
        self.symbols(keys, nulls.finish())
    }

    fn symbols(&self, keys: Vec<i32>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let keys = Int32Array::new(keys.into(), nulls);
        let texts = Arc::clone(&self.texts);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts)?))
    }

    fn array(&self, values: Values, kind: ColumnKind, rows: usize) -> Result<ArrayRef, ArrowError> {
        let Values { bits, valid, any_null } = values;
        let valid = any_null.then(|| BooleanBuffer::new(valid.into(), 0, rows));
        let nulls = valid.map(NullBuffer::new);
        Ok(match (bits, kind) {
            (Bits::Keys(keys), _) => self.symbols(keys, nulls)?,
            (Bits::Texts(places, octets), _) => Arc::new(texts(&places, &octets, nulls.as_ref())),
            (Bits::Numbers(bits), ColumnKind::Time) => {
                let times = TimestampNanosecondArray::new(signed(bits), None);
                Arc::new(times.with_timezone("UTC"))
            }
            (Bits::Numbers(bits), ColumnKind::I64) => {
                Arc::new(Int64Array::new(signed(bits), nulls))
            }
            (Bits::Numbers(bits), ColumnKind::F64) => {
                let rows = bits.len();
                let doubles = ScalarBuffer::new(Buffer::from_vec(bits), 0, rows);
                Arc::new(Float64Array::new(doubles, nulls))
            }
            (Bits::Numbers(bits), _) => Arc::new(UInt64Array::new(bits.into(), nulls)),
            (Bits::Known, _) => unreachable!("known columns are not gathered"),
        })
    }
}

fn signed(bits: Vec<u64>) -> ScalarBuffer<i64> {
    let rows = bits.len();
    ScalarBuffer::new(Buffer::from_vec(bits), 0, rows)
}

fn key_of(symbol: u32) -> i32 {
    i32::try_from(symbol).expect("a writer makes far fewer than 2^31 symbols")
}

fn texts(places: &[(u32, u32)], octets: &str, nulls: Option<&NullBuffer>) -> StringArray {
    let mut texts = StringBuilder::with_capacity(places.len(), octets.len());
    for (row, &(begin, len)) in places.iter().enumerate() {
        let text = octets.get(begin as usize..begin as usize + len as usize);
        texts.append_option(text.filter(|_| nulls.is_none_or(|nulls| nulls.is_valid(row))));
    }
    texts.finish()
}

/// Where the next row of each series belongs.
struct Places {
    /// By series: the next place among all rows of the part's series; `u32::MAX` of others.
    next: Vec<u32>,
    from: u32,
    rows: u32,
}

impl Places {
    fn new(index: &SeriesIndex, part: &Part) -> Self {
        let mut next = vec![u32::MAX; index.series().len()];
        let mut begin = 0;
        for &id in &part.series {
            next[id as usize] = begin;
            begin += index.series()[id as usize].rows;
        }
        let rows = u32::try_from(part.rows).expect("a segment is bounded by its rows");
        Self { next, from: part.from, rows }
    }

    /// Which of a frame's rows the part has, and where.
    fn locate(&mut self, ids: impl Iterator<Item = u32>, taken: &mut Vec<Taken>) {
        taken.clear();
        for (row, id) in ids.enumerate() {
            let next = &mut self.next[id as usize];
            if *next == u32::MAX {
                continue;
            }
            let place = next.wrapping_sub(self.from);
            *next += 1;
            if place < self.rows {
                taken.push((row, place as usize));
            }
        }
    }
}

/// The values of one column of a part.
struct Values {
    bits: Bits,
    /// One bit a row, set where it has a value; empty where every row has.
    valid: Vec<u8>,
    any_null: bool,
}

enum Bits {
    Numbers(Vec<u64>),
    Keys(Vec<i32>),
    /// Where the text of each row begins, its octets, and the texts.
    Texts(Vec<(u32, u32)>, String),
    /// What the rows have is known without them.
    Known,
}

impl Values {
    /// Takes rows of a frame.
    fn put(&mut self, view: &ColumnView<'_>, taken: &[Taken], symbols: &[Option<String>]) {
        if matches!(self.bits, Bits::Known) {
            return;
        }
        if view.is_all_null() {
            taken.iter().for_each(|&(_, to)| self.set_null(to));
            return;
        }
        match &mut self.bits {
            Bits::Numbers(numbers) => view.each(taken.iter().copied(), |to, bits| {
                numbers[to] = bits;
            }),
            Bits::Keys(keys) => {
                let (valid, any_null) = (&mut self.valid, &mut self.any_null);
                view.each(taken.iter().copied(), |to, bits| match known(symbols, bits) {
                    Some(symbol) => keys[to] = key_of(symbol),
                    None => {
                        valid[to / 8] &= !(1 << (to % 8));
                        *any_null = true;
                    }
                });
            }
            Bits::Texts(places, octets) => {
                for &(row, to) in taken {
                    let text = view.text(row).unwrap_or_default();
                    let begin = octets.len();
                    octets.push_str(text);
                    let narrow = |count| u32::try_from(count).expect("a part is far below 4 GiB");
                    places[to] = (narrow(begin), narrow(text.len()));
                }
            }
            Bits::Known => {}
        }
        if !view.is_full() {
            for &(row, to) in taken {
                if view.is_null(row) {
                    self.set_null(to);
                }
            }
        }
    }

    fn set_null(&mut self, to: usize) {
        self.valid[to / 8] &= !(1 << (to % 8));
        self.any_null = true;
    }

    /// Puts the rows of `order` one after another from `begin` on.
    fn reorder(&mut self, begin: usize, order: &[usize]) {
        fn reordered<T: Copy>(values: &mut [T], begin: usize, order: &[usize]) {
            let new: Vec<_> = order.iter().map(|&row| values[row]).collect();
            values[begin..begin + new.len()].copy_from_slice(&new);
        }
        match &mut self.bits {
            Bits::Numbers(numbers) => reordered(numbers, begin, order),
            Bits::Keys(keys) => reordered(keys, begin, order),
            Bits::Texts(places, _) => reordered(places, begin, order),
            Bits::Known => {}
        }
        if !self.valid.is_empty() {
            let bits: Vec<_> =
                order.iter().map(|&row| self.valid[row / 8] >> (row % 8) & 1).collect();
            for (to, bit) in (begin..).zip(bits) {
                self.valid[to / 8] = self.valid[to / 8] & !(1 << (to % 8)) | bit << (to % 8);
            }
        }
    }
}
