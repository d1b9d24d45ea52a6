//! The values of one column, condensed to spans of time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringDictionaryBuilder, UInt64Array};
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;

use crate::rate::Span;
use crate::schema::{Column, ColumnKind, Meaning};

/// The states of a (device, interval), from best to worst.
pub(super) const STATES_FROM_BEST: [&str; 5] = ["ok", "late", "skipped", "error", "missed"];

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
#[derive(Debug, Default)]
pub(super) struct States {
    cells: Vec<usize>,
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
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "a mean; 53 bits are exact enough")]
    pub(super) fn add_u64(&mut self, slot: usize, value: u64) {
        let number = Number { least: value, greatest: value, sum: value as f64, count: 1 };
        self.cells[slot].add(&number);
    }

    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "a mean; 53 bits are exact enough")]
    pub(super) fn add_i64(&mut self, slot: usize, value: i64) {
        let ordered = value.cast_unsigned() ^ SIGN;
        let number = Number { least: ordered, greatest: ordered, sum: value as f64, count: 1 };
        self.cells[slot].add(&number);
    }

    #[inline]
    pub(super) fn add_f64(&mut self, slot: usize, value: f64) {
        let bits = value.to_bits();
        let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
        let number = Number { least: ordered, greatest: ordered, sum: value, count: 1 };
        self.cells[slot].add(&number);
    }
}

impl States {
    #[inline]
    pub(super) fn worst(&mut self, slot: usize, word: &str) {
        let known = STATES_FROM_BEST.iter().position(|known| *known == word);
        let rank = known.unwrap_or_else(|| {
            let next = STATES_FROM_BEST.len() + self.others.len();
            *self.others.entry(word.to_owned()).or_insert(next)
        });
        self.cells[slot] = self.cells[slot].max(rank + 1);
    }

    fn word(&self, cell: usize) -> Option<&str> {
        let rank = cell.checked_sub(1)?;
        let known = STATES_FROM_BEST.get(rank).copied();
        let other = || self.others.iter().find(|(_, other)| **other == rank);
        known.or_else(|| other().map(|(word, _)| word.as_str()))
    }
}

/// Adds a span of constant rate to the cells that it touches; `base` is the ordinal of the first.
#[expect(clippy::cast_precision_loss, reason = "a rate; 53 bits are exact enough")]
pub(super) fn add_span(cells: &mut [Rate], span: &Span, base: i64, width: i64) {
    let rate = span.per_second();
    let mut from = span.from;
    let mut slot = usize::try_from(from.div_euclid(width) - base).unwrap_or(0);
    while from < span.to && slot < cells.len() {
        let end = (from.div_euclid(width) + 1).saturating_mul(width).min(span.to);
        let covered_ns = end - from;
        let increase = rate * covered_ns as f64 / 1e9;
        cells[slot].add(&Rate { least: rate, greatest: rate, increase, covered_ns });
        from = end;
        slot += 1;
    }
}

impl Cells {
    pub(super) fn new(column: &Column) -> Self {
        match column.meaning {
            Meaning::State => Self::States(States::default()),
            Meaning::Counter32 | Meaning::Counter64 => Self::Rates(Vec::new()),
            Meaning::Gauge | Meaning::Label => {
                Self::Numbers(Numbers { kind: column.kind, cells: Vec::new() })
            }
        }
    }

    /// No cells, of the same kind as these.
    pub(super) fn same_kind(&self) -> Self {
        match self {
            Self::Numbers(numbers) => {
                Self::Numbers(Numbers { kind: numbers.kind, cells: Vec::new() })
            }
            Self::Rates(_) => Self::Rates(Vec::new()),
            Self::States(_) => Self::States(States::default()),
        }
    }

    /// Makes them `count` empty cells.
    pub(super) fn reset(&mut self, count: usize) {
        match self {
            Self::Numbers(numbers) => {
                numbers.cells.clear();
                numbers.cells.resize(count, NO_NUMBER);
            }
            Self::Rates(rates) => {
                rates.clear();
                rates.resize(count, NO_RATE);
            }
            Self::States(states) => {
                states.cells.clear();
                states.cells.resize(count, 0);
            }
        }
    }

    pub(super) fn none_at(&self, slot: usize) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.cells[slot].count == 0,
            Self::Rates(rates) => rates[slot].covered_ns == 0,
            Self::States(states) => states.cells[slot] == 0,
        }
    }

    /// Folds `width` cells into one, the first `offset` slots into a group.
    pub(super) fn fold(&mut self, offset: usize, width: usize, slots: usize) {
        match self {
            Self::Numbers(numbers) => {
                let mut folded = vec![NO_NUMBER; slots];
                for (slot, cell) in numbers.cells.iter().enumerate() {
                    folded[(slot + offset) / width].add(cell);
                }
                numbers.cells = folded;
            }
            Self::Rates(rates) => {
                let mut folded = vec![NO_RATE; slots];
                for (slot, cell) in rates.iter().enumerate() {
                    folded[(slot + offset) / width].add(cell);
                }
                *rates = folded;
            }
            Self::States(states) => {
                let mut folded = vec![0; slots];
                for (slot, cell) in states.cells.iter().enumerate() {
                    let worst = &mut folded[(slot + offset) / width];
                    *worst = (*worst).max(*cell);
                }
                states.cells = folded;
            }
        }
    }

    /// Appends the cell of `from` at `slot`, which is of the same kind.
    pub(super) fn push_from(&mut self, from: &Self, slot: usize) {
        match (self, from) {
            (Self::Numbers(to), Self::Numbers(from)) => to.cells.push(from.cells[slot]),
            (Self::Rates(to), Self::Rates(from)) => to.push(from[slot]),
            (Self::States(to), Self::States(from)) => {
                to.cells.push(0);
                if let Some(word) = from.word(from.cells[slot]) {
                    to.worst(to.cells.len() - 1, word);
                }
            }
            _ => unreachable!("outputs are made of the same columns"),
        }
    }

    /// Appends the columns of the summary table.
    pub(super) fn into_columns(self, columns: &mut Vec<ArrayRef>) -> Result<(), ArrowError> {
        match self {
            Self::Numbers(numbers) => number_columns(&numbers, columns),
            Self::Rates(rates) => rate_columns(&rates, columns),
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

#[expect(clippy::cast_precision_loss, reason = "a mean; 53 bits are exact enough")]
fn number_columns(numbers: &Numbers, columns: &mut Vec<ArrayRef>) {
    let extreme = |of: fn(&Number) -> u64| -> ArrayRef {
        let ordered = numbers.cells.iter().map(|cell| (cell.count > 0).then(|| of(cell)));
        match numbers.kind {
            ColumnKind::I64 => {
                let values = ordered.map(|value| value.map(|value| (value ^ SIGN).cast_signed()));
                Arc::new(values.collect::<Int64Array>())
            }
            ColumnKind::F64 => {
                let bits = |value: u64| if value & SIGN == 0 { !value } else { value ^ SIGN };
                let values = ordered.map(|value| value.map(|value| f64::from_bits(bits(value))));
                Arc::new(values.collect::<Float64Array>())
            }
            _ => Arc::new(ordered.collect::<UInt64Array>()),
        }
    };
    let cells = &numbers.cells;
    let mean = |cell: &Number| (cell.count > 0).then(|| cell.sum / cell.count as f64);
    columns.push(extreme(|cell| cell.least));
    columns.push(Arc::new(cells.iter().map(mean).collect::<Float64Array>()));
    columns.push(extreme(|cell| cell.greatest));
    columns.push(Arc::new(UInt64Array::from_iter_values(cells.iter().map(|cell| cell.count))));
}

#[expect(clippy::cast_precision_loss, reason = "a mean; 53 bits are exact enough")]
fn rate_columns(rates: &[Rate], columns: &mut Vec<ArrayRef>) {
    let column = |of: fn(&Rate) -> f64| -> ArrayRef {
        let values = rates.iter().map(|cell| (cell.covered_ns > 0).then(|| of(cell)));
        Arc::new(values.collect::<Float64Array>())
    };
    columns.push(column(|cell| cell.least));
    columns.push(column(|cell| cell.increase * 1e9 / cell.covered_ns as f64));
    columns.push(column(|cell| cell.greatest));
    let covered = rates.iter().map(|cell| cell.covered_ns.unsigned_abs() / 1_000);
    columns.push(Arc::new(UInt64Array::from_iter_values(covered)));
}
