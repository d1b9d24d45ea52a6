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

/// A column of a block that is put together.
pub(super) struct Values {
    /// Raw bits by row, words of the history for symbols; whatever where it is null.
    pub(super) bits: Vec<u64>,
    pub(super) nulls: Option<Vec<bool>>,
}

pub(super) fn has_nulls(column: &Column<'_>, rows: usize) -> bool {
    let view = &column.view;
    view.is_all_null() || !view.is_full() && (0..rows).any(|row| view.is_null(row))
}

/// To choose how values are told, all rows are looked at where they are fewer than that; else so many one behind the
/// other, and as many again so many rows further on.
const LOOKED_AT_ALL: usize = 1_024;
const LOOKED_AT: usize = 64;
const LOOKED_AT_EVERY: usize = 256;

/// A value, its change, and the change before.
type Row = (u64, u64, u64);

/// Tells the columns of a block.
#[derive(Debug, Default)]
pub(super) struct Teller {
    /// Rows of one slot that stand one behind the other: the slot, and where they end.
    runs: Vec<(usize, usize)>,
    /// Raw bits by row, words of the history for symbols; whatever where it is null.
    bits: Vec<u64>,
    /// Those that have a value.
    rows: Vec<Row>,
}

impl Teller {
    /// Begins with a block whose rows have these slots.
    pub(super) fn begin(&mut self, slots: &[u32]) {
        self.runs.clear();
        let mut end = 0;
        self.runs.extend(slots.chunk_by(|slot, next| slot == next).map(|run| {
            end += run.len();
            (run[0] as usize, end)
        }));
    }

    /// Tells the values of a column, and remembers them. Symbols become words.
    pub(super) fn put(
        &mut self,
        column: &Column<'_>,
        words: Option<&[u32]>,
        last: &mut [(u64, u64)],
        sections: &mut SectionWriter,
        out: &mut Vec<u8>,
    ) {
        let view = &column.view;
        if view.is_all_null() {
            return out.push(ALL_NULL);
        }
        if view.is_full() {
            out.push(FULL);
            if let Some(same) = view.constant()
                && let bits = words.map_or(same, |words| u64::from(words[place_of(same)]))
                && self.runs.iter().all(|&(slot, _)| last[slot] == (bits, 0))
            {
                return out.push(SAME);
            }
            self.read(column, words);
            self.compare(last);
        } else {
            out.push(NULLABLE);
            let count = self.count();
            let octets = (0..count).step_by(8).map(|from| {
                let rows = (from..count.min(from + 8)).rev();
                rows.fold(0_u8, |octet, row| octet << 1 | u8::from(view.is_null(row)))
            });
            sections.put(&octets.collect::<Vec<u8>>(), out);
            self.read(column, None);
            self.rows.clear();
            let mut begin = 0;
            for &(slot, end) in &self.runs {
                for row in (begin..end).filter(|&row| !view.is_null(row)) {
                    let bits = self.bits[row];
                    let bits = words.map_or(bits, |words| u64::from(words[place_of(bits)]));
                    let (before, change_before) = last[slot];
                    let change = bits.wrapping_sub(before);
                    self.rows.push((bits, change, change_before));
                    last[slot] = (bits, change);
                }
                begin = end;
            }
        }
        self.tell(sections, out);
    }

    /// How many rows there are.
    fn count(&self) -> usize {
        self.runs.last().map_or(0, |&(_, end)| end)
    }

    /// Reads the bits of all rows.
    fn read(&mut self, column: &Column<'_>, words: Option<&[u32]>) {
        let (count, bits) = (self.count(), &mut self.bits);
        bits.clear();
        bits.reserve(count);
        column.view.each((0..count).map(|row| (row, row)), |_, value| bits.push(value));
        if let Some(words) = words {
            bits.iter_mut().for_each(|bits| *bits = u64::from(words[place_of(*bits)]));
        }
    }

    /// Notes the changes of all rows.
    fn compare(&mut self, last: &mut [(u64, u64)]) {
        self.rows.resize(self.bits.len(), (0, 0, 0));
        let mut begin = 0;
        for &(slot, end) in &self.runs {
            let (mut before, mut change_before) = last[slot];
            for (row, &bits) in self.rows[begin..end].iter_mut().zip(&self.bits[begin..end]) {
                let change = bits.wrapping_sub(before);
                *row = (bits, change, change_before);
                (before, change_before) = (bits, change);
            }
            last[slot] = (before, change_before);
            begin = end;
        }
    }

    fn tell(&self, sections: &mut SectionWriter, out: &mut Vec<u8>) {
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
        match mode {
            CHANGE => self.put_numbers(|row, _| change_of(row), sections, out),
            SECOND => self.put_numbers(|row, _| second_of(row), sections, out),
            ROW => self.put_numbers(row_of, sections, out),
            _ => self.put_numbers(change_by_row_of, sections, out),
        }
    }

    /// Tells what `number` makes of each row and the one before.
    fn put_numbers(
        &self,
        number: impl Fn(Row, Row) -> u64,
        sections: &mut SectionWriter,
        out: &mut Vec<u8>,
    ) {
        let mut before = (0, 0, 0);
        let numbers = self.rows.iter().map(|&row| number(row, std::mem::replace(&mut before, row)));
        magnitudes::put(numbers, sections, out);
    }

    /// The way that takes the fewest bits, of equal ones the first; of many rows a part is looked at.
    fn shortest(&self) -> u8 {
        let every = if self.rows.len() < LOOKED_AT_ALL { LOOKED_AT } else { LOOKED_AT_EVERY };
        let mut sums = [0_u64; 4];
        for part in self.rows.chunks(every) {
            let mut before = part[0];
            for &row in part.iter().take(LOOKED_AT).skip(1) {
                for (sum, number) in sums.iter_mut().zip(numbers_of(row, before)) {
                    *sum += bits_of(number);
                }
                before = row;
            }
        }
        let shortest = BY_NUMBERS.into_iter().zip(sums).min_by_key(|(_, bits)| *bits);
        shortest.expect("there are four").0
    }
}

/// A text's place among those of a block.
fn place_of(bits: u64) -> usize {
    usize::try_from(bits).expect("it was compared with the texts")
}

/// What a row is told by, in the order of [`BY_NUMBERS`]; `before` is the row before it.
#[inline]
fn numbers_of(row: Row, before: Row) -> [u64; 4] {
    [change_of(row), second_of(row), row_of(row, before), change_by_row_of(row, before)]
}

fn change_of((_, change, _): Row) -> u64 {
    zigzag(change)
}

fn second_of((_, change, change_before): Row) -> u64 {
    zigzag(change.wrapping_sub(change_before))
}

fn row_of((bits, ..): Row, (bits_before, ..): Row) -> u64 {
    zigzag(bits.wrapping_sub(bits_before))
}

fn change_by_row_of((_, change, _): Row, (_, change_of_row_before, _): Row) -> u64 {
    zigzag(change.wrapping_sub(change_of_row_before))
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
