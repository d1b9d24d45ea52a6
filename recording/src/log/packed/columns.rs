//! Columns of a body of version 2, each in the form that fits what it holds.
//!
//! | form | fits | what is kept |
//! | --- | --- | --- |
//! | none | nulls | nothing |
//! | plain | doubles, and what no other form takes | the column as in version 1 |
//! | steps | times, counters | first value, usual step, and how far each step is from it |
//! | dictionary | addresses, threads, words, texts | each value once, in order, and its place by row |
//! | by another | what follows from another column, as a process does from its thread | a value for each entry of the other's dictionary |
//!
//! The form is chosen from counts of bits, never by trying: who packs is beside the work that is
//! measured.

use super::magnitudes::{self, Magnitudes, bits_of};
use super::met::{Met, hash_of, hash_of_text};
use super::sections::{
    Section, SectionReader, SectionWriter, put_varint, take_varint, unzigzag, zigzag,
};
use super::steps::Steps;
use super::{
    BODY_MAX, CELLS_MAX, Column as PlainColumn, FORM_ALL_NULL, FORM_FULL, FORM_NULLABLE, Octets,
    le_u64, narrow_u32, put_column as put_plain_column,
};
use crate::batch::{Batch, ColumnBuffer};
use crate::schema::ColumnKind;

const NONE: u8 = 0;
const PLAIN: u8 = 1;
const STEPS: u8 = 2;
const DICTIONARY: u8 = 3;
const BY_ANOTHER: u8 = 4;

/// Octets that tell a place among at most [`CELLS_MAX`] entries.
const PLANES_MAX: usize = 3;

/// What the rows of a column have, as places in the list of its different values.
struct Places {
    /// By row; 0 is null where the column has nulls. None where all rows have the same one.
    of_rows: Vec<u32>,
    /// How many different ones there are, null among them.
    count: usize,
}

/// Appends the columns of the rows of `batch`.
pub(super) fn put(batch: &mut Batch, sections: &mut SectionWriter, out: &mut Vec<u8>) {
    let rows = batch.rows;
    let mut dictionaries: Vec<Option<Places>> = Vec::with_capacity(batch.columns.len());
    for column in &mut batch.columns {
        let places = put_column(column, rows, &dictionaries, sections, out);
        dictionaries.push(places);
    }
}

/// Appends a column; the places of its values where it became a dictionary.
fn put_column(
    column: &mut ColumnBuffer,
    rows: usize,
    earlier: &[Option<Places>],
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) -> Option<Places> {
    if column.bits.is_empty() {
        out.push(NONE);
        return None;
    }
    column.pad(rows);
    let is_full = column.nulls.iter().all(|&word| word == 0);
    match column.kind {
        ColumnKind::Text => return Some(put_texts(column, is_full, sections, out)),
        ColumnKind::Time if is_full => {
            out.push(STEPS);
            Steps::of(&column.bits).put(&column.bits, sections, out);
            return None;
        }
        ColumnKind::Time | ColumnKind::F64 => {}
        ColumnKind::U64 | ColumnKind::I64 | ColumnKind::Symbol => {
            return put_integers(column, is_full, earlier, sections, out);
        }
    }
    out.push(PLAIN);
    let mut plain = Vec::new();
    put_plain_column(column, rows, &mut plain);
    sections.put(&plain, out);
    None
}

fn put_integers(
    column: &ColumnBuffer,
    is_full: bool,
    earlier: &[Option<Places>],
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) -> Option<Places> {
    if is_full && column.bits.windows(2).all(|pair| pair[0] == pair[1]) {
        put_dictionary(&column.bits[..1], 1, is_full, sections, out);
        return Some(Places { of_rows: Vec::new(), count: 1 });
    }
    let (values, places) = distinct(column, is_full);
    if places.count > 1 {
        let decides =
            |places_of: &&Option<Places>| places_of.as_ref().is_some_and(|of| of.count > 1);
        for (at, another) in earlier.iter().enumerate().filter(|(_, another)| decides(another)) {
            let Some(another) = another else { continue };
            if let Some(by) = follows(&places, another) {
                put_by_another(at, &by, &values, is_full, sections, out);
                return None;
            }
        }
        if is_full && column.kind != ColumnKind::Symbol {
            let most = dictionary_bits(&values, places.of_rows.len());
            if Steps::may_take_less(&column.bits, most) {
                let steps = Steps::of(&column.bits);
                if steps.bits(&column.bits) < most {
                    out.push(STEPS);
                    steps.put(&column.bits, sections, out);
                    return None;
                }
            }
        }
    }
    put_dictionary(&values, places.count, is_full, sections, out);
    put_places(&places, sections, out);
    Some(places)
}

/// Appends the different values of a column, which have so many places.
fn put_dictionary(
    values: &[u64],
    count: usize,
    is_full: bool,
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&[DICTIONARY, u8::from(!is_full)]);
    put_varint(count as u64, out);
    magnitudes::put(gaps(values), sections, out);
}

/// The different values of a column of integers in order, and the place of each row's one.
fn distinct(column: &ColumnBuffer, is_full: bool) -> (Vec<u64>, Places) {
    const NULL: u32 = u32::MAX;
    let mut met = Met::default();
    let mut of_rows: Vec<u32> = Vec::with_capacity(column.bits.len());
    let mut before = None;
    for (row, &bits) in column.bits.iter().enumerate() {
        let number = match before {
            _ if !is_full && column.is_null(row) => NULL,
            Some((known, number)) if known == bits => number,
            _ => {
                let number = met.number(bits, hash_of(bits));
                before = Some((bits, number));
                number
            }
        };
        of_rows.push(number);
    }
    let mut order: Vec<(u64, u32)> = met.values.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let first = u32::from(!is_full);
    let mut places = vec![0; order.len()];
    for (place, &(_, number)) in (first..).zip(&order) {
        places[number as usize] = place;
    }
    // Nothing is met as number `NULL`, which has no place.
    of_rows.iter_mut().for_each(|of| *of = places.get(*of as usize).copied().unwrap_or(0));
    let count = order.len() + usize::from(!is_full);
    (order.into_iter().map(|(value, _)| value).collect(), Places { of_rows, count })
}

/// What each value is above the one before it, the first above 0.
fn gaps(values: &[u64]) -> impl Iterator<Item = u64> {
    let before = std::iter::once(&0).chain(values);
    values.iter().zip(before).map(|(value, before)| value.wrapping_sub(*before))
}

/// The place in `places` that follows from each place in `another`; `None` when it does not follow.
fn follows(places: &Places, another: &Places) -> Option<Vec<u32>> {
    let mut by = vec![u32::MAX; another.count];
    for (&place, &other) in places.of_rows.iter().zip(&another.of_rows) {
        let known = &mut by[other as usize];
        if *known == u32::MAX {
            *known = place;
        } else if *known != place {
            return None;
        }
    }
    // Every entry of a dictionary stands for a row, but null in one that has a place for it.
    by.iter_mut().filter(|place| **place == u32::MAX).for_each(|place| *place = 0);
    Some(by)
}

fn put_by_another(
    another: usize,
    by: &[u32],
    values: &[u64],
    is_full: bool,
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&[BY_ANOTHER, u8::from(!is_full)]);
    put_varint(another as u64, out);
    let first = u32::from(!is_full);
    if !is_full {
        let there: Vec<u8> = by.iter().map(|&place| u8::from(place > 0)).collect();
        sections.put(&there, out);
    }
    let mut before = 0;
    let present = by.iter().filter(|&&place| is_full || place > 0);
    let numbers = present.map(|&place| {
        let value = values[(place - first) as usize];
        zigzag(value.wrapping_sub(std::mem::replace(&mut before, value)))
    });
    magnitudes::put(numbers, sections, out);
}

/// Appends the octets of the places, the lowest ones of all rows first.
fn put_places(places: &Places, sections: &mut SectionWriter, out: &mut Vec<u8>) {
    let mut octets = std::mem::take(&mut sections.octets);
    for plane in 0..planes_of(places.count) {
        octets.clear();
        octets.extend(places.of_rows.iter().map(|place| place.to_le_bytes()[plane]));
        sections.put(&octets, out);
    }
    sections.octets = octets;
}

/// Octets that tell one of `count` places.
fn planes_of(count: usize) -> usize {
    match count {
        0 | 1 => 0,
        2..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => PLANES_MAX,
    }
}

fn dictionary_bits(values: &[u64], rows: usize) -> u64 {
    let places = u64::from(usize::BITS - values.len().leading_zeros()) * rows as u64;
    gaps(values).map(bits_of).sum::<u64>() + places
}

fn put_texts(
    column: &ColumnBuffer,
    is_full: bool,
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) -> Places {
    let first = u32::from(!is_full);
    let mut met = Met::default();
    let mut of_rows: Vec<u32> = Vec::with_capacity(column.bits.len());
    let mut begin = 0;
    for (row, &end) in column.bits.iter().enumerate() {
        let end = usize::try_from(end).expect("an offset in memory");
        let text = &column.octets[begin..end];
        begin = end;
        let number = (!column.is_null(row)).then(|| met.number(text, hash_of_text(text)));
        of_rows.push(number.map_or(0, |number| number + first));
    }
    let mut texts: Vec<(&[u8], u32)> = met.values.into_iter().zip(first..).collect();
    texts.sort_unstable();
    let count = texts.len() + usize::from(!is_full);
    let mut sorted = vec![0; count];
    for (place, (_, met)) in (first..).zip(&texts) {
        sorted[*met as usize] = place;
    }
    of_rows.iter_mut().for_each(|place| *place = sorted[*place as usize]);
    out.extend_from_slice(&[DICTIONARY, u8::from(!is_full)]);
    put_varint(count as u64, out);
    let (mut shared, mut lengths, mut octets) = (Vec::new(), Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for (text, _) in texts {
        let same = text.iter().zip(before).take_while(|(one, other)| one == other).count();
        shared.push(same as u64);
        lengths.push((text.len() - same) as u64);
        octets.extend_from_slice(&text[same..]);
        before = text;
    }
    magnitudes::put(shared.into_iter(), sections, out);
    magnitudes::put(lengths.into_iter(), sections, out);
    sections.put(&octets, out);
    let places = Places { of_rows, count };
    put_places(&places, sections, out);
    places
}

/// A column as it lies in a body.
#[derive(Debug)]
enum Form<'a> {
    None,
    Plain(Section<'a>),
    Steps { first: u64, step: u64, unit: u64, apart: Magnitudes<'a> },
    Dictionary { entries: Entries<'a>, places: PlacesTaken<'a> },
    ByAnother { another: usize, there: Option<Section<'a>>, values: Magnitudes<'a> },
}

#[derive(Debug)]
enum Entries<'a> {
    Numbers(Magnitudes<'a>),
    Texts { shared: Magnitudes<'a>, lengths: Magnitudes<'a>, octets: Section<'a> },
}

#[derive(Debug, Clone, Copy)]
struct PlacesTaken<'a> {
    count: usize,
    has_null: bool,
    planes: [Option<Section<'a>>; PLANES_MAX],
}

/// The columns of a body, none of which is read before it is asked for.
pub(super) struct Columns<'a, 'r> {
    rows: usize,
    kinds: Vec<ColumnKind>,
    forms: Vec<Form<'a>>,
    reader: &'r mut SectionReader,
}

impl<'a, 'r> Columns<'a, 'r> {
    /// Decodes the columns of a body of `rows` rows; `None` when it is not that.
    pub(super) fn decode(
        octets: &mut Octets<'a>,
        kinds: impl Iterator<Item = ColumnKind>,
        rows: usize,
        room: &mut usize,
        reader: &'r mut SectionReader,
    ) -> Option<Self> {
        let mut columns = Self { rows, kinds: kinds.collect(), forms: Vec::new(), reader };
        for at in 0..columns.kinds.len() {
            let form = columns.take_form(octets, columns.kinds[at], room)?;
            columns.forms.push(form);
        }
        Some(columns)
    }

    fn take_form(
        &mut self,
        octets: &mut Octets<'a>,
        kind: ColumnKind,
        room: &mut usize,
    ) -> Option<Form<'a>> {
        Some(match octets.take(1)?[0] {
            NONE => Form::None,
            PLAIN => Form::Plain(Section::decode(octets, room)?),
            STEPS if kind != ColumnKind::Text => {
                let fixed = octets.take(24)?;
                let [first, step, unit] = [0, 8, 16].map(|at| le_u64(fixed, at));
                let apart = Magnitudes::decode(octets, self.rows - 1, room)?;
                Form::Steps { first, step, unit, apart }
            }
            DICTIONARY => {
                let has_null = take_flag(octets)?;
                let count = usize::try_from(take_varint(octets)?).ok()?;
                let entries = count.checked_sub(usize::from(has_null))?;
                if count == 0 || count > CELLS_MAX {
                    return None;
                }
                let entries = if kind == ColumnKind::Text {
                    let shared = Magnitudes::decode(octets, entries, room)?;
                    let lengths = Magnitudes::decode(octets, entries, room)?;
                    Entries::Texts { shared, lengths, octets: Section::decode(octets, room)? }
                } else {
                    Entries::Numbers(Magnitudes::decode(octets, entries, room)?)
                };
                let mut planes = [None; PLANES_MAX];
                for plane in planes.iter_mut().take(planes_of(count)) {
                    let section = Section::decode(octets, room)?;
                    *plane = Some(section).filter(|section| section.len == self.rows);
                    (*plane)?;
                }
                Form::Dictionary { entries, places: PlacesTaken { count, has_null, planes } }
            }
            BY_ANOTHER if kind != ColumnKind::Text => {
                let has_null = take_flag(octets)?;
                let another = usize::try_from(take_varint(octets)?).ok()?;
                let Some(Form::Dictionary { places, .. }) = self.forms.get(another) else {
                    return None;
                };
                let count = places.count;
                let mut values = count;
                let mut there = None;
                if has_null {
                    let section = Section::decode(octets, room)?;
                    let present = section.octets(self.reader)?;
                    if present.len() != count || present.iter().any(|&octet| octet > 1) {
                        return None;
                    }
                    values = present.iter().filter(|&&octet| octet == 1).count();
                    there = Some(section);
                }
                let values = Magnitudes::decode(octets, values, room)?;
                Form::ByAnother { another, there, values }
            }
            _ => return None,
        })
    }

    /// A column as the block keeps it: `Some(None)` where it is plain, `None` when it is damaged.
    pub(super) fn coded(&mut self, at: usize) -> Option<Option<CodedColumn>> {
        let reader = &mut *self.reader;
        Some(Some(match &self.forms[at] {
            Form::None => CodedColumn::Null,
            Form::Plain(_) => return Some(None),
            Form::Steps { first, step, unit, apart } => {
                CodedColumn::Each(stepped([*first, *step, *unit], apart, reader)?.collect())
            }
            Form::Dictionary { entries: Entries::Numbers(gaps), places } => {
                let mut value = 0_u64;
                let numbers = gaps.numbers(reader)?.into_iter().map(|gap| {
                    value = value.wrapping_add(gap);
                    Some(value)
                });
                let null = places.has_null.then_some(None);
                let entries = null.into_iter().chain(numbers).collect();
                let places = *places;
                CodedColumn::Numbers { entries, places: self.checked_places(places)? }
            }
            Form::Dictionary { entries: Entries::Texts { shared, lengths, octets }, places } => {
                let (shared, lengths) = (shared.numbers(reader)?, lengths.numbers(reader)?);
                let octets = octets.octets(reader)?;
                let entries = CodedTexts {
                    has_null: places.has_null,
                    texts: Texts::of(&shared, &lengths, &octets)?,
                };
                let places = *places;
                CodedColumn::Texts { entries, places: self.checked_places(places)? }
            }
            Form::ByAnother { another, .. } => {
                let another = *another;
                CodedColumn::ByAnother { entries: self.entries_by_another(at)?, another }
            }
        }))
    }

    /// The places of the rows, each of which is that of an entry; none where there is one entry only.
    fn checked_places(&mut self, places: PlacesTaken<'_>) -> Option<Vec<u32>> {
        if places.count == 1 {
            return Some(Vec::new());
        }
        let count = narrow_u32(places.count);
        let of_rows = self.places(places)?;
        of_rows.iter().all(|&place| place < count).then_some(of_rows)
    }

    /// Appends a column in the codec of rows; `None` when it is damaged, or a symbol has no text.
    pub(super) fn put(&mut self, at: usize, numbers: &[u64], out: &mut Vec<u8>) -> Option<()> {
        let kind = self.kinds[at];
        match &self.forms[at] {
            Form::None => out.push(FORM_ALL_NULL),
            Form::Plain(section) => {
                let plain = section.octets(self.reader)?;
                let mut octets = Octets(&plain);
                let column = PlainColumn::decode(&mut octets, self.rows, (kind, ""))?;
                if !octets.0.is_empty() {
                    return None;
                }
                column.put(self.rows, numbers, out)?;
            }
            Form::Steps { first, step, unit, apart } => {
                let values = stepped([*first, *step, *unit], apart, self.reader)?;
                begin_full(out);
                for value in values {
                    put_number(value, kind, numbers, out)?;
                }
            }
            Form::Dictionary { entries: Entries::Numbers(gaps), places } => {
                let mut value = 0_u64;
                let entries: Vec<u64> = gaps.numbers(self.reader)?;
                let entries = entries.into_iter().map(|gap| {
                    value = value.wrapping_add(gap);
                    mapped(value, kind, numbers)
                });
                let entries: Vec<u64> = entries.collect::<Option<_>>()?;
                let null = places.has_null.then_some(None);
                let entries: Vec<Option<u64>> =
                    null.into_iter().chain(entries.into_iter().map(Some)).collect();
                let places = *places;
                self.put_entries(&entries, places, out)?;
            }
            Form::Dictionary { entries: Entries::Texts { shared, lengths, octets }, places } => {
                let reader = &mut *self.reader;
                let shared = shared.numbers(reader)?;
                let lengths = lengths.numbers(reader)?;
                let octets = octets.octets(reader)?;
                let texts = Texts::of(&shared, &lengths, &octets)?;
                let places = *places;
                self.put_texts(&texts, places, out)?;
            }
            Form::ByAnother { another, .. } => {
                let Form::Dictionary { places, .. } = &self.forms[*another] else { return None };
                let places = *places;
                let entries = self.entries_by_another(at)?.into_iter().map(|entry| match entry {
                    Some(value) => mapped(value, kind, numbers).map(Some),
                    None => Some(None),
                });
                let entries: Vec<Option<u64>> = entries.collect::<Option<_>>()?;
                self.put_entries(&entries, places, out)?;
            }
        }
        Some(())
    }

    /// What the rows of a column have that follows from another one, by the places of that one.
    fn entries_by_another(&mut self, at: usize) -> Option<Vec<Option<u64>>> {
        let Form::ByAnother { another, there, values } = &self.forms[at] else { return None };
        let there = there.as_ref().map(|there| there.octets(self.reader));
        let there = there.map_or(Some(None), |there| there.map(Some))?;
        let mut value = 0_u64;
        let mut values = values.numbers(self.reader)?.into_iter().map(|number| {
            value = value.wrapping_add(unzigzag(number));
            value
        });
        let Form::Dictionary { places, .. } = &self.forms[*another] else { return None };
        let is_there = |at: usize| there.as_ref().is_none_or(|there| there[at] == 1);
        (0..places.count)
            .map(|at| if is_there(at) { values.next().map(Some) } else { Some(None) })
            .collect()
    }

    /// Appends the entries that the rows have in the codec of rows.
    fn put_entries(
        &mut self,
        entries: &[Option<u64>],
        places: PlacesTaken<'a>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        if let [entry] = entries {
            match entry {
                None => out.push(FORM_ALL_NULL),
                Some(value) => {
                    out.extend_from_slice(&[FORM_FULL, 0]);
                    out.extend_from_slice(&value.to_le_bytes());
                }
            }
            return Some(());
        }
        let of_rows = self.places(places)?;
        if entries.iter().all(Option::is_some) {
            let entries: Vec<u64> = entries.iter().copied().flatten().collect();
            begin_full(out);
            for place in of_rows {
                out.extend_from_slice(&entries.get(place as usize)?.to_le_bytes());
            }
            return Some(());
        }
        let values: Vec<Option<u64>> = of_rows
            .into_iter()
            .map(|place| entries.get(place as usize).copied())
            .collect::<Option<_>>()?;
        out.extend_from_slice(&[FORM_NULLABLE, 8]);
        out.extend_from_slice(&0_u64.to_le_bytes());
        put_nulls(values.iter().map(Option::is_none), out);
        for value in values {
            out.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
        }
        Some(())
    }

    fn put_texts(
        &mut self,
        texts: &Texts,
        places: PlacesTaken<'a>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let first = u32::from(places.has_null);
        let of_rows = self.places(places)?;
        out.extend_from_slice(&[if places.has_null { FORM_NULLABLE } else { FORM_FULL }, 8]);
        out.extend_from_slice(&0_u64.to_le_bytes());
        if places.has_null {
            put_nulls(of_rows.iter().map(|&place| place == 0), out);
        }
        let mut octets = Vec::new();
        for place in of_rows {
            if place >= first {
                octets.extend_from_slice(texts.get((place - first) as usize)?.as_bytes());
                if octets.len() > BODY_MAX {
                    return None;
                }
            }
            out.extend_from_slice(&(octets.len() as u64).to_le_bytes());
        }
        out.extend_from_slice(&narrow_u32(octets.len()).to_le_bytes());
        out.extend_from_slice(&octets);
        Some(())
    }

    /// The places of the rows, which may lie beyond the entries.
    fn places(&mut self, places: PlacesTaken<'_>) -> Option<Vec<u32>> {
        let mut of_rows = vec![0_u32; self.rows];
        for (plane, section) in places.planes.iter().enumerate() {
            let Some(section) = section else { break };
            let octets = section.octets(self.reader)?;
            for (place, &octet) in of_rows.iter_mut().zip(octets.iter()) {
                *place |= u32::from(octet) << (8 * plane);
            }
        }
        Some(of_rows)
    }
}

/// The values of rows of which is kept how far each step is from the usual one.
fn stepped(
    [first, step, unit]: [u64; 3],
    apart: &Magnitudes<'_>,
    reader: &mut SectionReader,
) -> Option<impl Iterator<Item = u64>> {
    let mut value = first;
    let behind = apart.numbers(reader)?.into_iter().map(move |number| {
        let apart = unzigzag(number).wrapping_mul(unit);
        value = value.wrapping_add(step).wrapping_add(apart);
        value
    });
    Some(std::iter::once(first).chain(behind))
}

/// A column of rows as a block keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CodedColumn {
    /// Every row is null.
    Null,
    /// A number of each row, none of which is null.
    Each(Vec<u64>),
    /// Integers, or the places of words.
    Numbers {
        /// The different values; null, if there are nulls, is the first.
        entries: Vec<Option<u64>>,
        /// Which of them each row has; none where there is one only.
        places: Vec<u32>,
    },
    /// As numbers, of texts.
    Texts {
        entries: CodedTexts,
        /// Which of them each row has; none where there is one only.
        places: Vec<u32>,
    },
    /// Values that follow from those of another column, as a process does from its thread.
    ByAnother {
        /// The values by the places of the other column.
        entries: Vec<Option<u64>>,
        /// Which column of the block that is.
        another: usize,
    },
}

/// The different texts of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodedTexts {
    /// Whether the first place is that of null.
    has_null: bool,
    texts: Texts,
}

impl CodedTexts {
    /// How many there are, null among them.
    pub(crate) fn count(&self) -> usize {
        self.texts.ends.len() + usize::from(self.has_null)
    }

    /// The text at a place; `None` of null.
    pub(crate) fn get(&self, place: usize) -> Option<&str> {
        self.texts.get(place.checked_sub(usize::from(self.has_null))?)
    }
}

/// Texts one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Texts {
    octets: String,
    ends: Vec<usize>,
}

impl Texts {
    /// The texts of a dictionary, put together from what each shares with the one before it; `None`
    /// when they are no texts, or too long to be ones that somebody packed.
    fn of(shared: &[u64], lengths: &[u64], octets: &[u8]) -> Option<Self> {
        let lengths_of_all = shared.iter().chain(lengths);
        let room = lengths_of_all.fold(0_u64, |sum, &length| sum.saturating_add(length));
        let room = usize::try_from(room).ok().filter(|room| *room <= BODY_MAX)?;
        let (mut whole, mut ends) = (Vec::with_capacity(room), Vec::with_capacity(shared.len()));
        let (mut rest, mut before) = (octets, 0..0);
        for (&shared, &length) in shared.iter().zip(lengths) {
            let (shared, length) = (usize::try_from(shared).ok()?, usize::try_from(length).ok()?);
            let (own, behind) = rest.split_at_checked(length)?;
            rest = behind;
            if shared > before.len() {
                return None;
            }
            let begin = whole.len();
            whole.extend_from_within(before.start..before.start + shared);
            whole.extend_from_slice(own);
            before = begin..whole.len();
            ends.push(whole.len());
        }
        let octets = String::from_utf8(whole).ok().filter(|_| rest.is_empty())?;
        ends.iter().all(|&end| octets.is_char_boundary(end)).then_some(Self { octets, ends })
    }

    fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.octets.get(begin..end)
    }
}

fn take_flag(octets: &mut Octets<'_>) -> Option<bool> {
    match octets.take(1)?[0] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn begin_full(out: &mut Vec<u8>) {
    out.extend_from_slice(&[FORM_FULL, 8]);
    out.extend_from_slice(&0_u64.to_le_bytes());
}

/// The raw bits that a value has for the reader.
fn mapped(value: u64, kind: ColumnKind, numbers: &[u64]) -> Option<u64> {
    match kind {
        ColumnKind::Symbol => numbers.get(usize::try_from(value).ok()?).copied(),
        _ => Some(value),
    }
}

fn put_number(value: u64, kind: ColumnKind, numbers: &[u64], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&mapped(value, kind, numbers)?.to_le_bytes());
    Some(())
}

/// Appends a bit for each row, set where it is null.
fn put_nulls(nulls: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    let begin = out.len();
    for (row, is_null) in nulls.enumerate() {
        if row % 8 == 0 {
            out.push(0);
        }
        if is_null {
            out[begin + row / 8] |= 1 << (row % 8);
        }
    }
}
