//! The values of one column, told by how they differ from the last ones of the same slots.

use super::super::Column;
use super::super::Octets;
use super::super::magnitudes::{self, Magnitudes};
use super::super::sections::{
    Section, SectionReader, SectionWriter, put_varint, take_varint, unzigzag, zigzag,
};

/// Forms of a column.
const ALL_NULL: u8 = 0;
const FULL: u8 = 1;
const NULLABLE: u8 = 2;

/// How the values of a column are told: not at all, since none has changed; by the change that all have in
/// common; or by a number each: its change, that beyond the change before, that beyond the row before,
/// its change beyond that of the row before.
const SAME: u8 = 0;
const STEP: u8 = 1;
const CHANGE: u8 = 2;
const SECOND: u8 = 3;
const ROW: u8 = 4;
const CHANGE_BY_ROW: u8 = 5;
const BY_NUMBERS: [u8; 4] = [CHANGE, SECOND, ROW, CHANGE_BY_ROW];

/// A column of a block, taken apart.
pub(super) struct Values {
    /// Raw bits by row, words of the history for symbols; whatever where it is null.
    pub(super) bits: Vec<u64>,
    pub(super) nulls: Option<Vec<bool>>,
}

impl Values {
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls[row])
    }
}

pub(super) fn has_nulls(column: &Column<'_>, rows: usize) -> bool {
    let view = &column.view;
    view.is_all_null() || !view.is_full() && (0..rows).any(|row| view.is_null(row))
}

/// A column of a block; `None` when all rows are null. Symbols become words.
pub(super) fn values_of(
    column: &Column<'_>,
    rows: usize,
    words: Option<&Vec<u32>>,
) -> Option<Values> {
    let view = &column.view;
    if view.is_all_null() {
        return None;
    }
    let nulls = (!view.is_full()).then(|| (0..rows).map(|row| view.is_null(row)).collect());
    let mut bits = Vec::with_capacity(rows);
    view.each((0..rows).map(|row| (row, row)), |_, value| bits.push(value));
    let mut values = Values { bits, nulls };
    if let Some(words) = words {
        for row in 0..rows {
            let is_null = values.is_null(row);
            let place = usize::try_from(values.bits[row]).ok().filter(|_| !is_null);
            values.bits[row] = place.map_or(0, |place| u64::from(words[place]));
        }
    }
    Some(values)
}

/// Tells the values of a column, and remembers them.
pub(super) fn put_values(
    values: Option<Values>,
    slots: &[u32],
    last: &mut [(u64, u64)],
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) {
    let Some(values) = values else { return out.push(ALL_NULL) };
    match &values.nulls {
        None => out.push(FULL),
        Some(nulls) => {
            out.push(NULLABLE);
            let octets = nulls.chunks(8).map(|part| {
                part.iter().rev().fold(0_u8, |octet, &is_null| octet << 1 | u8::from(is_null))
            });
            sections.put(&octets.collect::<Vec<u8>>(), out);
        }
    }
    let mut told = Told { rows: Vec::with_capacity(values.bits.len()) };
    match &values.nulls {
        None => {
            let rows = values.bits.iter().zip(slots);
            rows.for_each(|(&bits, &slot)| told.add(bits, &mut last[slot as usize]));
        }
        Some(nulls) => {
            let rows = values.bits.iter().zip(slots).zip(nulls).filter(|(_, is_null)| !**is_null);
            rows.for_each(|((&bits, &slot), _)| told.add(bits, &mut last[slot as usize]));
        }
    }
    told.put(sections, out);
}

/// A value, its change, and the change before.
type Row = (u64, u64, u64);

/// What can be told of the values of a column.
#[derive(Debug)]
struct Told {
    /// Those that have a value.
    rows: Vec<Row>,
}

impl Told {
    fn add(&mut self, bits: u64, last: &mut (u64, u64)) {
        let change = bits.wrapping_sub(last.0);
        self.rows.push((bits, change, last.1));
        *last = (bits, change);
    }

    fn put(&self, sections: &mut SectionWriter, out: &mut Vec<u8>) {
        let Some(&(_, first, _)) = self.rows.first() else { return out.push(SAME) };
        if self.rows.iter().all(|&(_, change, _)| change == first) {
            if first == 0 {
                return out.push(SAME);
            }
            out.push(STEP);
            return put_varint(zigzag(first), out);
        }
        let mode = self.shortest();
        out.push(mode);
        magnitudes::put(self.numbers(mode), sections, out);
    }

    /// The way that takes the fewest bits, of equal ones the first.
    fn shortest(&self) -> u8 {
        let (mut sums, mut before) = ([0_u64; 4], (0, 0, 0));
        for &row in &self.rows {
            for (sum, number) in sums.iter_mut().zip(numbers_of(row, before)) {
                *sum += bits_of(number);
            }
            before = row;
        }
        let shortest = BY_NUMBERS.into_iter().zip(sums).min_by_key(|(_, bits)| *bits);
        shortest.expect("there are four").0
    }

    fn numbers(&self, mode: u8) -> impl Iterator<Item = u64> + '_ {
        let at = BY_NUMBERS.iter().position(|of| *of == mode).expect("it is one of the four");
        let mut before = (0, 0, 0);
        let number = move |&row: &Row| numbers_of(row, std::mem::replace(&mut before, row))[at];
        self.rows.iter().map(number)
    }
}

/// What a row is told by, in the order of [`BY_NUMBERS`]; `before` is the row before it.
#[inline]
fn numbers_of((bits, change, change_before): Row, before: Row) -> [u64; 4] {
    [
        zigzag(change),
        zigzag(change.wrapping_sub(change_before)),
        zigzag(bits.wrapping_sub(before.0)),
        zigzag(change.wrapping_sub(before.1)),
    ]
}

/// The bits of a number, and those of its magnitude as a rule.
fn bits_of(number: u64) -> u64 {
    u64::from(u64::BITS - number.leading_zeros())
}

/// Takes the values of a column, and remembers them; the inner `None` says that all are null.
#[expect(clippy::option_option, reason = "a damaged column and one without values differ")]
pub(super) fn take_values(
    rows: usize,
    slots: &[u32],
    last: &mut [(u64, u64)],
    octets: &mut Octets<'_>,
    room: &mut usize,
    reader: &mut SectionReader,
) -> Option<Option<Values>> {
    let nulls = match octets.take(1)?[0] {
        ALL_NULL => return Some(None),
        FULL => None,
        NULLABLE => {
            let told = Section::decode(octets, room)?.octets(reader)?;
            if told.len() != rows.div_ceil(8) {
                return None;
            }
            Some((0..rows).map(|row| told[row / 8] >> (row % 8) & 1 == 1).collect::<Vec<bool>>())
        }
        _ => return None,
    };
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
    let there = (0..rows).filter(|&row| !is_null(row)).count();
    let mode = octets.take(1)?[0];
    let numbers = match mode {
        SAME => vec![0; there],
        STEP => vec![take_varint(octets)?; there],
        _ if BY_NUMBERS.contains(&mode) => {
            Magnitudes::decode(octets, there, room)?.numbers(reader)?
        }
        _ => return None,
    };
    let (mut bits, mut row_before) = (vec![0; rows], (0_u64, 0_u64));
    let with_value = (0..rows).filter(|&row| !is_null(row));
    for (row, number) in with_value.zip(numbers) {
        let (value, before) = &mut last[slots[row] as usize];
        let number = unzigzag(number);
        let new = match mode {
            SECOND => value.wrapping_add(before.wrapping_add(number)),
            ROW => row_before.0.wrapping_add(number),
            CHANGE_BY_ROW => value.wrapping_add(row_before.1.wrapping_add(number)),
            _ => value.wrapping_add(number),
        };
        *before = new.wrapping_sub(*value);
        *value = new;
        row_before = (new, *before);
        bits[row] = new;
    }
    Some(Some(Values { bits, nulls }))
}
