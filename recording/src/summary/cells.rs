//! The values of one column, condensed to spans of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{
    Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, Float64Array, Int64Array,
    PrimitiveArray, StringDictionaryBuilder, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;

use super::Slot;
use crate::rate::Span;
use crate::schema::{Column, ColumnKind, Meaning};
use crate::series;

/// The condensed values of one column, a cell a span.
#[derive(Debug)]
pub(super) enum Cells {
    Numbers(Numbers),
    Rates(Vec<Rate>),
    States(States),
}

/// Cells of a gauge. Values are kept as unsigned integers of the same order, so that the least and
/// the greatest are exact for all kinds.
#[derive(Debug)]
pub(super) struct Numbers {
    kind: ColumnKind,
    cells: Vec<Number>,
}

#[derive(Debug, Clone, Copy)]
struct Number {
    least: u64,
    greatest: u64,
    sum: f64,
    count: u64,
}

/// A cell of a counter's rate, per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    least: f64,
    greatest: f64,
    increase: f64,
    covered_ns: i64,
}

/// Cells of a state: the rank of the worst and one more, 0 where there is none.
#[derive(Debug)]
pub(super) struct States {
    cells: Vec<usize>,
    /// Words from best to worst, as the column declares them.
    order: Vec<String>,
    /// Words that have no known rank, in order of appearance.
    others: BTreeMap<String, usize>,
}

const NO_NUMBER: Number = Number { least: u64::MAX, greatest: 0, sum: 0.0, count: 0 };
const NO_RATE: Rate =
    Rate { least: f64::INFINITY, greatest: f64::NEG_INFINITY, increase: 0.0, covered_ns: 0 };
const SIGN: u64 = 1 << 63;

impl Number {
    fn add(&mut self, other: &Self) {
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.sum += other.sum;
        self.count += other.count;
    }
}

impl Rate {
    fn add(&mut self, other: &Self) {
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.increase += other.increase;
        self.covered_ns += other.covered_ns;
    }
}

impl Numbers {
    /// Adds the rows of a column to their slots.
    #[expect(clippy::cast_precision_loss, reason = "a mean; 53 bits are exact enough")]
    pub(super) fn add_column(&mut self, column: &ArrayRef, slots: &[Slot]) {
        match column.data_type() {
            DataType::UInt64 => {
                let column = column.as_primitive::<UInt64Type>();
                self.add(column, slots, |value| (value, value as f64));
            }
            DataType::Int64 => {
                let column = column.as_primitive::<Int64Type>();
                self.add(column, slots, |value| (value.cast_unsigned() ^ SIGN, value as f64));
            }
            DataType::Float64 => {
                let column = column.as_primitive::<Float64Type>();
                self.add(column, slots, |value| {
                    let bits = value.to_bits();
                    (if bits & SIGN == 0 { bits | SIGN } else { !bits }, value)
                });
            }
            _ => {}
        }
    }

    fn add<T: ArrowPrimitiveType>(
        &mut self,
        column: &PrimitiveArray<T>,
        slots: &[Slot],
        of: impl Fn(T::Native) -> (u64, f64),
    ) {
        let number = |value: T::Native| {
            let (ordered, sum) = of(value);
            Number { least: ordered, greatest: ordered, sum, count: 1 }
        };
        let full = column.null_count() == 0;
        for Slot { slot, rows } in slots {
            let mut cell = self.cells[*slot];
            if full {
                column.values()[rows.clone()].iter().for_each(|&value| cell.add(&number(value)));
            } else {
                let valid = rows.clone().filter(|&row| column.is_valid(row));
                valid.for_each(|row| cell.add(&number(column.value(row))));
            }
            self.cells[*slot] = cell;
        }
    }
}

impl States {
    /// Adds the rows of a column to their slots.
    pub(super) fn add_column(&mut self, column: &ArrayRef, slots: &[Slot]) {
        let Some(texts) = series::Texts::new(column) else { return };
        // States stay the same for long, so that the last one is mostly the next one too.
        let mut last = ("", 0);
        let mut runs = Vec::new();
        for Slot { slot, rows } in slots {
            runs.clear();
            texts.split(rows.clone(), &mut runs);
            for word in runs.iter().filter_map(|run| texts.get(run.start)) {
                if word != last.0 || last.1 == 0 {
                    last = (word, self.rank(word) + 1);
                }
                self.cells[*slot] = self.cells[*slot].max(last.1);
            }
        }
    }

    fn rank(&mut self, word: &str) -> usize {
        let known = self.order.iter().position(|known| known == word);
        known.unwrap_or_else(|| {
            let next = self.order.len() + self.others.len();
            *self.others.entry(word.to_owned()).or_insert(next)
        })
    }

    fn word(&self, cell: usize) -> Option<&str> {
        let rank = cell.checked_sub(1)?;
        let known = self.order.get(rank).map(String::as_str);
        let other = || self.others.iter().find(|(_, other)| **other == rank);
        known.or_else(|| other().map(|(word, _)| word.as_str()))
    }
}

/// Adds a span of constant rate to the cells that it touches; `base` is the ordinal of the first.
#[expect(clippy::cast_precision_loss, reason = "a rate; 53 bits are exact enough")]
pub(super) fn add_span(cells: &mut [Rate], span: &Span, base: i64, width: i64) {
    let rate = span.per_second();
    let first = span.from.div_euclid(width);
    let mut from = span.from;
    let mut border = (first + 1).saturating_mul(width);
    let skipped = usize::try_from(first - base).expect("no span begins before the first cell");
    for cell in cells.iter_mut().skip(skipped) {
        let end = border.min(span.to);
        let covered_ns = end - from;
        let increase = rate * covered_ns as f64 / 1e9;
        cell.add(&Rate { least: rate, greatest: rate, increase, covered_ns });
        if end == span.to {
            break;
        }
        from = end;
        border = border.saturating_add(width);
    }
}

/// Folds `width` cells into one, the first `offset` slots into a group, in place: a group never
/// lies behind its first cell.
pub(super) fn fold<T: Copy>(
    cells: &mut Vec<T>,
    offset: usize,
    width: usize,
    slots: usize,
    none: T,
    add: impl Fn(&mut T, &T),
) {
    let mut from = 0;
    for slot in 0..slots {
        let end = ((slot + 1) * width - offset).min(cells.len());
        let mut folded = none;
        cells[from..end].iter().for_each(|cell| add(&mut folded, cell));
        cells[slot] = folded;
        from = end;
    }
    cells.truncate(slots);
}

impl Cells {
    pub(super) fn new(column: &Column) -> Self {
        match column.meaning {
            Meaning::State => Self::States(States {
                cells: Vec::new(),
                order: column.order(),
                others: BTreeMap::new(),
            }),
            Meaning::Counter32 | Meaning::Counter64 => Self::Rates(Vec::new()),
            Meaning::Gauge | Meaning::Label | Meaning::Detail => {
                Self::Numbers(Numbers { kind: column.kind, cells: Vec::new() })
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.cells.is_empty(),
            Self::Rates(rates) => rates.is_empty(),
            Self::States(states) => states.cells.is_empty(),
        }
    }

    /// Appends cells without a value until there are `count`.
    fn pad(&mut self, count: usize) {
        match self {
            Self::Numbers(numbers) => numbers.cells.resize(count, NO_NUMBER),
            Self::Rates(rates) => rates.resize(count, NO_RATE),
            Self::States(states) => states.cells.resize(count, 0),
        }
    }

    /// Makes them `count` empty cells.
    pub(super) fn reset(&mut self, count: usize) {
        match self {
            Self::Numbers(numbers) => numbers.cells.clear(),
            Self::Rates(rates) => rates.clear(),
            Self::States(states) => states.cells.clear(),
        }
        self.pad(count);
    }

    pub(super) fn none_at(&self, slot: usize) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.cells.get(slot).is_none_or(|cell| cell.count == 0),
            Self::Rates(rates) => rates.get(slot).is_none_or(|cell| cell.covered_ns == 0),
            Self::States(states) => states.cells.get(slot).is_none_or(|cell| *cell == 0),
        }
    }

    /// Folds `width` cells into one, the first `offset` slots into a group.
    pub(super) fn fold(&mut self, offset: usize, width: usize, slots: usize) {
        if self.is_empty() {
            return;
        }
        match self {
            Self::Numbers(numbers) => {
                fold(&mut numbers.cells, offset, width, slots, NO_NUMBER, Number::add);
            }
            Self::Rates(rates) => fold(rates, offset, width, slots, NO_RATE, Rate::add),
            Self::States(states) => {
                let worst = |worst: &mut usize, cell: &usize| *worst = (*worst).max(*cell);
                fold(&mut states.cells, offset, width, slots, 0, worst);
            }
        }
    }
}

/// The columns of a summary table that describe one column, row by row as they come.
#[derive(Debug)]
pub(super) enum Columns {
    Numbers { kind: ColumnKind, numbers: Described<u64> },
    Rates(Described<f64>),
    States(States),
}

/// Least, mean and greatest of every row, and what the mean is weighted by: readings, or the time
/// covered in µs.
#[derive(Debug)]
pub(super) struct Described<T> {
    least: Vec<T>,
    mean: Vec<f64>,
    greatest: Vec<T>,
    weight: Vec<u64>,
    valid: NullBufferBuilder,
}

impl<T: Copy + Default> Described<T> {
    fn new() -> Self {
        Self {
            least: Vec::new(),
            mean: Vec::new(),
            greatest: Vec::new(),
            weight: Vec::new(),
            valid: NullBufferBuilder::new(0),
        }
    }

    fn push(&mut self, (least, mean, greatest): (T, f64, T), weight: u64) {
        self.least.push(least);
        self.mean.push(mean);
        self.greatest.push(greatest);
        self.weight.push(weight);
        self.valid.append_non_null();
    }

    /// Appends rows without a value until there are `count`.
    fn pad(&mut self, count: usize) {
        self.valid.append_n_nulls(count - self.weight.len());
        self.least.resize(count, T::default());
        self.mean.resize(count, 0.0);
        self.greatest.resize(count, T::default());
        self.weight.resize(count, 0);
    }

    fn into_columns(
        mut self,
        columns: &mut Vec<ArrayRef>,
        of: impl Fn(Vec<T>, Option<NullBuffer>) -> ArrayRef,
    ) {
        let nulls = self.valid.finish();
        columns.push(of(self.least, nulls.clone()));
        columns.push(Arc::new(Float64Array::new(self.mean.into(), nulls.clone())));
        columns.push(of(self.greatest, nulls));
        columns.push(Arc::new(UInt64Array::from(self.weight)));
    }
}

impl Columns {
    pub(super) fn new(column: &Column) -> Self {
        match Cells::new(column) {
            Cells::Numbers(numbers) => {
                Self::Numbers { kind: numbers.kind, numbers: Described::new() }
            }
            Cells::Rates(_) => Self::Rates(Described::new()),
            Cells::States(states) => Self::States(states),
        }
    }

    /// Appends rows without a value until there are `count`.
    pub(super) fn pad(&mut self, count: usize) {
        match self {
            Self::Numbers { numbers, .. } => numbers.pad(count),
            Self::Rates(rates) => rates.pad(count),
            Self::States(states) => states.cells.resize(count, 0),
        }
    }

    /// Appends the cell of `from` at `slot`, which is of the same kind, as the row `at`.
    #[expect(clippy::cast_precision_loss, reason = "a mean; 53 bits are exact enough")]
    pub(super) fn push(&mut self, from: &Cells, slot: usize, at: usize) {
        if from.none_at(slot) {
            return self.pad(at + 1);
        }
        match (self, from) {
            (Self::Numbers { numbers, .. }, Cells::Numbers(from)) => {
                let cell = from.cells[slot];
                let mean = cell.sum / cell.count as f64;
                numbers.push((cell.least, mean, cell.greatest), cell.count);
            }
            (Self::Rates(rates), Cells::Rates(from)) => {
                let cell = from[slot];
                let mean = cell.increase * 1e9 / cell.covered_ns as f64;
                let rate = (to_24_bits(cell.least), to_24_bits(mean), to_24_bits(cell.greatest));
                rates.push(rate, cell.covered_ns.unsigned_abs() / 1_000);
            }
            (Self::States(to), Cells::States(from)) => {
                let rank = from.word(from.cells[slot]).map(|word| to.rank(word) + 1);
                to.cells.push(rank.unwrap_or(0));
            }
            _ => unreachable!("outputs are made of the same columns"),
        }
    }

    /// Appends the columns.
    pub(super) fn into_columns(self, columns: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
        match self {
            Self::Numbers { kind: ColumnKind::I64, numbers } => {
                numbers.into_columns(columns, |values, nulls| {
                    let signed = |value: u64| (value ^ SIGN).cast_signed();
                    let values: Vec<_> = values.into_iter().map(signed).collect();
                    Arc::new(Int64Array::new(values.into(), nulls))
                });
            }
            Self::Numbers { kind: ColumnKind::F64, numbers } => {
                numbers.into_columns(columns, |values, nulls| {
                    let bits = |value: u64| if value & SIGN == 0 { !value } else { value ^ SIGN };
                    let values: Vec<_> =
                        values.into_iter().map(|value| f64::from_bits(bits(value))).collect();
                    Arc::new(Float64Array::new(values.into(), nulls))
                });
            }
            Self::Numbers { numbers, .. } => numbers.into_columns(columns, |values, nulls| {
                Arc::new(UInt64Array::new(values.into(), nulls))
            }),
            Self::Rates(rates) => rates.into_columns(columns, |values, nulls| {
                Arc::new(Float64Array::new(values.into(), nulls))
            }),
            Self::States(states) => {
                let mut words = StringDictionaryBuilder::<Int32Type>::new();
                for cell in &states.cells {
                    match states.word(*cell) {
                        Some(word) => drop(words.append(word)?),
                        None => words.append_null(),
                    }
                }
                columns.push(Arc::new(words.finish()));
            }
        }
        Ok(())
    }
}

/// Rounds to 24 significant bits, 6e-8 of the value. Receive times are known to 1 µs, a rate
/// between polls 0.1 s apart to 1e-5; the digits behind that are noise, and noise does not compress.
fn to_24_bits(rate: f64) -> f64 {
    const DROPPED: u32 = f64::MANTISSA_DIGITS - 24;
    let half = 1_u64 << (DROPPED - 1);
    f64::from_bits((rate.to_bits() + half) >> DROPPED << DROPPED)
}
