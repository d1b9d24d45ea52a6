//! Blocks told by what changed: for a line between two ends that both have the blocks before.
//!
//! The readings of one interval differ from those of the one before by little, and their labels not at
//! all. A [`DeltaEncoder`] tells a block by how its rows differ from the last rows of the same labels; a
//! [`DeltaDecoder`] that was told all blocks before makes the same octets of it, which their checksum
//! proves. Nothing of that is stored: a block that was told so is whole where it arrives.
//!
//! Both ends have a [`History`]: the texts that were told, and for each table its rows by their labels
//! (a *slot* each), with the last value of each column and its last change. What the encoder cannot tell
//! in this way (free texts, blocks of another version) it leaves to be sent as it is.
//!
//! # Cost
//! What did not change is found by comparing; a value that did costs some 20 ns, most of it for the
//! compression of the magnitudes.

mod values;

use std::collections::BTreeMap;

use self::values::{Teller, Values, has_nulls, take_values};
use super::magnitudes::{self, Magnitudes};
use super::sections::{
    Section, SectionReader, SectionWriter, put_varint, take_varint, unzigzag, zigzag,
};
use super::{
    BODY_MAX, CELLS_MAX, Column, ColumnBuffer, ColumnKind, ColumnView, FIXED_LEN, HAS_ORIGIN_AT,
    Octets, Origin, Prefix, STORED, Source, UnpackError, VALUES, VERSION_1, encode_column, kind_of,
    le_u32, narrow_u32, origin_of, put_origin, text,
};
use crate::packed::PackedRows;
use crate::schema::{Meaning, TableSchema};

/// Values that a history remembers at most: slots times columns, of all tables.
const REMEMBERED_MAX: usize = 1 << 20;

/// Octets of texts that a history remembers at most.
const WORDS_BYTES_MAX: usize = 1 << 22;

/// Tables of a history.
const TABLES_MAX: usize = 256;

/// The first octet of a block: what was told before still counts, or both ends begin anew.
const GOES_ON: u8 = 0;
const BEGINS: u8 = 1;

/// What both ends know.
#[derive(Debug, Default)]
struct History {
    words: Vec<String>,
    words_bytes: usize,
    tables: Vec<Table>,
    remembered: usize,
}

/// The rows of one table.
#[derive(Debug)]
struct Table {
    /// Octets 28 to the end of the names of columns, as they stand before an origin.
    names: Vec<u8>,
    kinds: Vec<ColumnKind>,
    /// The columns whose texts say which row it is.
    keys: Vec<usize>,
    slots: BTreeMap<Vec<u32>, u32>,
    /// How many slots there are.
    known: usize,
    /// The texts of each slot, key by key.
    texts: Vec<u32>,
    /// By column and slot, the last value and what it was above the one before.
    last: Vec<Vec<(u64, u64)>>,
    source: Option<(Source, u64)>,
    /// What the last block had, for who looks it up: its texts as they lay in it and which words they
    /// are, and the slots of its rows.
    texts_told: (Vec<u8>, Vec<u32>),
    rows_told: (Vec<u32>, Vec<u32>),
}

impl Table {
    fn new(names: Vec<u8>, kinds: Vec<ColumnKind>, keys: Vec<usize>) -> Self {
        let last = kinds.iter().map(|_| Vec::new()).collect();
        let (slots, known, texts) = (BTreeMap::new(), 0, Vec::new());
        let (texts_told, rows_told) = Default::default();
        Self { names, kinds, keys, slots, known, texts, last, source: None, texts_told, rows_told }
    }

    /// A new slot of these texts.
    fn add_slot(&mut self, key: Vec<u32>) {
        self.texts.extend_from_slice(&key);
        self.slots.insert(key, narrow_u32(self.known));
        self.known += 1;
        self.last.iter_mut().for_each(|column| column.push((0, 0)));
    }
}

impl Table {
    /// The texts of a slot; `None` where there is none.
    fn texts_of(&self, slot: usize) -> Option<&[u32]> {
        let width = self.keys.len();
        (slot < self.known).then(|| &self.texts[slot * width..(slot + 1) * width])
    }

    /// The values of a key, which follow from the slots if all of them have it.
    fn key_values(&self, column: usize, slots: &[u32]) -> Option<Values> {
        let key = self.keys.iter().position(|&key| key == column)?;
        let width = self.keys.len();
        let words = slots.iter().map(|&slot| self.texts[slot as usize * width + key]);
        let bits = words.map(|word| (word != NO_TEXT).then_some(u64::from(word)));
        Some(Values { bits: bits.collect::<Option<_>>()?, nulls: None })
    }
}

/// A block that can be told by what changed, taken apart.
struct Parsed<'a> {
    prefix: Prefix<'a>,
    origin: Origin,
    /// The names of table and columns, as if the block had no origin.
    names: Vec<u8>,
    /// `None` of those that the last block of the table had.
    texts: Option<Vec<&'a str>>,
    texts_count: usize,
    texts_octets: &'a [u8],
    columns: Vec<Column<'a>>,
}

impl<'a> Parsed<'a> {
    /// Takes a block apart; `None` when it has free texts, or stands otherwise than [`payload_of`] makes
    /// blocks. `history` has the texts of the last block.
    fn of(rows: &'a PackedRows, history: &History) -> Option<Self> {
        let prefix = Prefix::read(rows.payload()).ok()?;
        if prefix.version != VERSION_1 || prefix.compression != STORED {
            return None;
        }
        let origin = prefix.origin.clone().filter(|origin| origin.first == origin.last)?;
        let mut names = rows.payload()[NAMES_AT..prefix.names_end].to_vec();
        names[HAS_ORIGIN_AT - NAMES_AT] = 0;
        let mut octets = Octets(prefix.body);
        let told = history.tables.iter().find(|table| table.names == names);
        let told = told.map(|table| &table.texts_told);
        let told = told.filter(|told| !told.0.is_empty() && prefix.body.starts_with(&told.0));
        let (texts, texts_count) = match told {
            Some((told, words)) => {
                octets.take(told.len())?;
                (None, words.len())
            }
            None => {
                let texts = texts_of(&mut octets)?;
                let count = texts.len();
                (Some(texts), count)
            }
        };
        let texts_octets = &prefix.body[..prefix.body.len() - octets.0.len()];
        let mut columns = Vec::with_capacity(prefix.columns.len());
        for &(kind, name) in &prefix.columns {
            let column = Column::decode(&mut octets, prefix.rows, (kind, name))?;
            let is_free_text = kind == ColumnKind::Text && !column.view.is_all_null();
            if column.start.is_some() || is_free_text {
                return None;
            }
            columns.push(column);
        }
        is_canonical(&columns, prefix.rows, texts_count).then_some(Self {
            prefix,
            origin,
            names,
            texts,
            texts_count,
            texts_octets,
            columns,
        })
    }
}

/// Where a payload begins to be the same for all blocks of a table.
const NAMES_AT: usize = 28;

/// Tells blocks by what changed.
#[derive(Debug, Default)]
pub struct DeltaEncoder {
    history: History,
    words: BTreeMap<String, u32>,
    sections: SectionWriter,
    teller: Teller,
}

impl DeltaEncoder {
    /// An encoder whose other end knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The block as it is told to a decoder that was told all blocks before; `None` when it is to be sent
    /// as it is, which changes nothing. `schema` says which columns are labels.
    pub fn encode(&mut self, rows: &PackedRows, schema: &TableSchema) -> Option<Vec<u8>> {
        let mut block = Parsed::of(rows, &self.history)?;
        let mut out = Vec::with_capacity(8 * block.prefix.rows + FIXED_LEN);
        out.push(self.make_room(&mut block)?);
        self.sections.begin();
        let at = self.table_of(&block, schema, &mut out);
        let count = block.prefix.rows;
        put_varint(count as u64, &mut out);
        out.extend_from_slice(&rows.checksum().to_le_bytes());
        put_source(&mut self.history.tables[at], &block.origin, &mut out);
        let words = self.words_of(at, &block, &mut out);
        let (history, sections, teller) = (&mut self.history, &mut self.sections, &mut self.teller);
        let table = &mut history.tables[at];
        let keys = keys_of(&table.keys, &block.columns, count, &words);
        let (slots, new) = put_slots(table, &keys, count, sections, &mut out);
        history.remembered += new * table.kinds.len();
        teller.begin(&slots);
        for (at, column) in block.columns.iter().enumerate() {
            if table.keys.contains(&at) && !has_nulls(column, count) {
                continue;
            }
            let is_symbol = table.kinds[at] == ColumnKind::Symbol;
            let words = is_symbol.then_some(&*words);
            teller.put(column, words, &mut table.last[at], sections, &mut out);
        }
        table.rows_told = (keys, slots);
        Some(out)
    }

    /// How the block begins: history is given up where the block might find no room in it; `None` when it
    /// would find none in an empty one.
    fn make_room(&mut self, block: &mut Parsed<'_>) -> Option<u8> {
        let values = block.prefix.rows.saturating_mul(block.columns.len());
        let (texts, octets) = (block.texts_count, block.texts_octets.len());
        if values > REMEMBERED_MAX || octets > WORDS_BYTES_MAX {
            return None;
        }
        let history = &self.history;
        let has_room = history.remembered + values <= REMEMBERED_MAX
            && history.words_bytes + octets <= WORDS_BYTES_MAX
            && history.words.len() + texts <= CELLS_MAX
            && history.tables.len() < TABLES_MAX;
        if has_room {
            return Some(GOES_ON);
        }
        (self.history, self.words) = Default::default();
        // What was told before is not known any more.
        block.texts = Some(texts_of(&mut Octets(block.texts_octets))?);
        Some(BEGINS)
    }

    /// The position of the block's table, which is told if it is new.
    fn table_of(&mut self, block: &Parsed<'_>, schema: &TableSchema, out: &mut Vec<u8>) -> usize {
        let tables = &mut self.history.tables;
        if let Some(at) = tables.iter().position(|table| table.names == block.names) {
            put_varint(at as u64, out);
            return at;
        }
        let columns = block.prefix.columns();
        let is_key = |at: &usize| {
            let (kind, name) = columns[*at];
            let of_schema = schema.columns.iter().find(|column| column.name == name);
            kind == ColumnKind::Symbol
                && of_schema.is_some_and(|column| column.meaning == Meaning::Label)
        };
        let keys: Vec<usize> = (0..columns.len()).filter(is_key).collect();
        let kinds = columns.iter().map(|(kind, _)| *kind).collect();
        put_varint(tables.len() as u64, out);
        self.sections.put(&block.names, out);
        put_varint(columns.len() as u64, out);
        put_varint(keys.len() as u64, out);
        keys.iter().for_each(|&key| put_varint(key as u64, out));
        tables.push(Table::new(block.names.clone(), kinds, keys));
        tables.len() - 1
    }

    /// The words that the texts of a block are, of which new ones are told.
    fn words_of(&mut self, at: usize, block: &Parsed<'_>, out: &mut Vec<u8>) -> Vec<u32> {
        let Some(texts) = &block.texts else {
            put_varint(0, out);
            return self.history.tables[at].texts_told.1.clone();
        };
        let mut new = Vec::new();
        let mut words = Vec::with_capacity(texts.len());
        for text in texts {
            if let Some(&word) = self.words.get(*text) {
                words.push(word);
                continue;
            }
            let word = narrow_u32(self.history.words.len());
            self.words.insert((*text).to_owned(), word);
            self.history.words.push((*text).to_owned());
            self.history.words_bytes += text.len();
            new.push(*text);
            words.push(word);
        }
        put_varint(new.len() as u64, out);
        if !new.is_empty() {
            let mut octets = Vec::new();
            for text in new {
                put_varint(text.len() as u64, &mut octets);
                octets.extend_from_slice(text.as_bytes());
            }
            self.sections.put(&octets, out);
        }
        self.history.tables[at].texts_told = (block.texts_octets.to_vec(), words.clone());
        words
    }
}

/// Makes blocks of what a [`DeltaEncoder`] tells.
#[derive(Debug, Default)]
pub struct DeltaDecoder {
    history: History,
    reader: SectionReader,
}

impl DeltaDecoder {
    /// A decoder that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The block that is told. After an error nothing more can be decoded.
    ///
    /// # Errors
    /// When the octets are not those of an encoder that told the same blocks before.
    pub fn decode(&mut self, octets: &[u8]) -> Result<PackedRows, UnpackError> {
        const WRONG: UnpackError =
            UnpackError::Malformed { what: "what changed is not told whole" };
        let (payload, checksum) = self.payload_of(octets).ok_or(WRONG)?;
        PackedRows::received(payload, checksum)
    }

    fn payload_of(&mut self, octets: &[u8]) -> Option<(Vec<u8>, u32)> {
        let mut octets = Octets(octets);
        let mut room = BODY_MAX;
        match octets.take(1)?[0] {
            GOES_ON => {}
            BEGINS => self.history = History::default(),
            _ => return None,
        }
        let at = take_size(&mut octets)?;
        if at == self.history.tables.len() && at < TABLES_MAX {
            let table = self.take_table(&mut octets, &mut room)?;
            self.history.tables.push(table);
        }
        let rows = take_size(&mut octets)?;
        let table = self.history.tables.get_mut(at)?;
        if rows == 0 || rows.checked_mul(table.kinds.len())? > CELLS_MAX {
            return None;
        }
        let checksum = le_u32(octets.take(4)?, 0);
        let origin = take_source(table, &mut octets)?;
        self.take_words(&mut octets, &mut room)?;
        let (history, reader) = (&mut self.history, &mut self.reader);
        let table = &mut history.tables[at];
        let left = (REMEMBERED_MAX - history.remembered) / table.kinds.len();
        let most = (left, history.words.len());
        let (slots, new) = take_slots(table, rows, most, &mut octets, &mut room, reader)?;
        history.remembered += new * table.kinds.len();
        let mut columns = Vec::with_capacity(table.kinds.len());
        for at in 0..table.kinds.len() {
            let column = match table.key_values(at, &slots) {
                Some(values) => Some(values),
                None => {
                    let last = &mut table.last[at];
                    take_values(rows, &slots, last, &mut octets, &mut room, reader)?
                }
            };
            columns.push(column);
        }
        if !octets.0.is_empty() {
            return None;
        }
        Some((payload_of(table, &history.words, rows, &origin, columns)?, checksum))
    }

    fn take_table(&mut self, octets: &mut Octets<'_>, room: &mut usize) -> Option<Table> {
        let names = Section::decode(octets, room)?.octets(&mut self.reader)?.into_owned();
        let count = take_size(octets)?;
        let kinds = kinds_of(&names, count)?;
        let mut keys = Vec::new();
        for _ in 0..take_size(octets)? {
            let key = take_size(octets)?;
            let is_next = keys.last().is_none_or(|&before| before < key);
            if !is_next || kinds.get(key) != Some(&ColumnKind::Symbol) {
                return None;
            }
            keys.push(key);
        }
        Some(Table::new(names, kinds, keys))
    }

    fn take_words(&mut self, octets: &mut Octets<'_>, room: &mut usize) -> Option<()> {
        let count = take_varint(octets)?;
        if count == 0 {
            return Some(());
        }
        let told = Section::decode(octets, room)?.octets(&mut self.reader)?;
        let mut told = Octets(&told);
        for _ in 0..count {
            let length = take_size(&mut told)?;
            let word = std::str::from_utf8(told.take(length)?).ok()?;
            self.history.words_bytes += word.len();
            // An empty text takes memory, too.
            if self.history.words_bytes > WORDS_BYTES_MAX || self.history.words.len() >= CELLS_MAX {
                return None;
            }
            self.history.words.push(word.to_owned());
        }
        told.0.is_empty().then_some(())
    }
}

/// What stands for the text of a key that is null.
const NO_TEXT: u32 = u32::MAX;

/// The texts of a body of version 1.
fn texts_of<'a>(octets: &mut Octets<'a>) -> Option<Vec<&'a str>> {
    let count = le_u32(octets.take(4)?, 0) as usize;
    let mut texts = Vec::with_capacity(count.min(CELLS_MAX));
    for _ in 0..count {
        let length = le_u32(octets.take(4)?, 0) as usize;
        texts.push(text(octets.take(length)?).ok()?);
    }
    Some(texts)
}

fn take_size(octets: &mut Octets<'_>) -> Option<usize> {
    usize::try_from(take_varint(octets)?).ok()
}

/// Hands on each row that has a value, with its raw bits.
fn each_value(view: &ColumnView<'_>, rows: usize, take: impl FnMut(usize, u64)) {
    if view.is_full() {
        view.each((0..rows).map(|row| (row, row)), take);
    } else if !view.is_all_null() {
        let there = (0..rows).filter(|&row| !view.is_null(row));
        view.each(there.map(|row| (row, row)), take);
    }
}

/// Whether the texts stand in the order in which the columns of symbols name them first, none of them
/// in vain.
fn is_canonical(columns: &[Column<'_>], rows: usize, texts: usize) -> bool {
    let mut next = 0;
    for column in columns.iter().filter(|column| column.kind == ColumnKind::Symbol) {
        let mut is_next = true;
        each_value(&column.view, rows, |_, place| {
            is_next &= place <= next;
            next += u64::from(place == next);
        });
        if !is_next {
            return false;
        }
    }
    next == texts as u64
}

/// The kinds of the columns that names tell; `None` when they are not names.
fn kinds_of(names: &[u8], count: usize) -> Option<Vec<ColumnKind>> {
    let mut octets = Octets(names);
    let &[length, 0, 0, 0] = octets.take(FIXED_LEN - NAMES_AT)? else { return None };
    text(octets.take(length.into())?).ok()?;
    let mut kinds = Vec::new();
    for _ in 0..count {
        let &[kind, length] = octets.take(2)? else { return None };
        kinds.push(kind_of(kind).ok()?);
        text(octets.take(length.into())?).ok()?;
    }
    let is_time = kinds.first() == Some(&ColumnKind::Time);
    (is_time && octets.0.is_empty()).then_some(kinds)
}

fn put_source(table: &mut Table, origin: &Origin, out: &mut Vec<u8>) {
    match &mut table.source {
        Some((known, number)) if *known == origin.source => {
            out.push(0);
            put_varint(zigzag(origin.first.wrapping_sub(number.wrapping_add(1))), out);
            *number = origin.first;
        }
        other => {
            out.push(1);
            put_origin(origin, out).expect("it stands in a block");
            *other = Some((origin.source.clone(), origin.first));
        }
    }
}

fn take_source(table: &mut Table, octets: &mut Octets<'_>) -> Option<Origin> {
    match octets.take(1)?[0] {
        0 => {
            let change = unzigzag(take_varint(octets)?);
            let (source, number) = table.source.as_mut()?;
            *number = number.wrapping_add(1).wrapping_add(change);
            Some(Origin { source: source.clone(), first: *number, last: *number })
        }
        1 => {
            let origin = origin_of(octets).ok().filter(|origin| origin.first == origin.last)?;
            table.source = Some((origin.source.clone(), origin.first));
            Some(origin)
        }
        _ => None,
    }
}

/// The words of the keys of all rows, row by row.
fn keys_of(keys: &[usize], columns: &[Column<'_>], rows: usize, words: &[u32]) -> Vec<u32> {
    let mut all = vec![NO_TEXT; rows * keys.len()];
    for (key, &at) in keys.iter().enumerate() {
        each_value(&columns[at].view, rows, |row, place| {
            let place = usize::try_from(place).expect("it was compared with the texts");
            all[row * keys.len() + key] = words[place];
        });
    }
    all
}

/// Tells the slots of rows with these keys; the slots, and how many of them are new.
fn put_slots(
    table: &mut Table,
    keys: &[u32],
    rows: usize,
    sections: &mut SectionWriter,
    out: &mut Vec<u8>,
) -> (Vec<u32>, usize) {
    let known = table.known;
    let (slots, new_keys) = if table.rows_told.0 == keys && table.rows_told.1.len() == rows {
        (table.rows_told.1.clone(), Vec::new())
    } else {
        slots_of(table, keys, rows)
    };
    put_varint(u64::from(slots[0]), out);
    let steps = slots
        .windows(2)
        .map(|pair| zigzag(u64::from(pair[1]).wrapping_sub(u64::from(pair[0])).wrapping_sub(1)));
    if steps.clone().all(|step| step == 0) {
        out.push(0);
    } else {
        out.push(1);
        magnitudes::put(steps, sections, out);
    }
    if !new_keys.is_empty() {
        magnitudes::put(new_keys.into_iter(), sections, out);
    }
    (slots, table.known - known)
}

/// The slots of rows with these keys, and the texts of new ones, as they are told.
fn slots_of(table: &mut Table, keys: &[u32], rows: usize) -> (Vec<u32>, Vec<u64>) {
    let (mut slots, mut new_keys) = (Vec::with_capacity(rows), Vec::new());
    let (width, mut before) = (table.keys.len(), None);
    let key_of = |row: usize| &keys[row * width..(row + 1) * width];
    while slots.len() < rows {
        let key = key_of(slots.len());
        // Rows are of the same slot as the one before or of the next as a rule, which is seen by comparing.
        let others = slots.len() + 1..rows;
        let end = others.into_iter().find(|&row| !key_of(row).iter().eq(key)).unwrap_or(rows);
        let follows = before.map_or(0, |slot: usize| slot + 1);
        let is_next = table.texts_of(follows).is_some_and(|texts| texts.iter().eq(key));
        let known = if is_next { Some(follows) } else { None };
        let known = known.or_else(|| table.slots.get(key).map(|&slot| slot as usize));
        let slot = known.unwrap_or_else(|| {
            new_keys.extend(key.iter().map(|&word| u64::from(word.wrapping_add(1))));
            table.add_slot(key.to_vec());
            table.known - 1
        });
        slots.resize(end, narrow_u32(slot));
        before = Some(slot);
    }
    (slots, new_keys)
}

/// Takes slots, of which as many as `most` may be new; the slots, and how many are.
fn take_slots(
    table: &mut Table,
    rows: usize,
    (most, words): (usize, usize),
    octets: &mut Octets<'_>,
    room: &mut usize,
    reader: &mut SectionReader,
) -> Option<(Vec<u32>, usize)> {
    let first = take_varint(octets)?;
    let steps = match octets.take(1)?[0] {
        0 => None,
        1 => Some(Magnitudes::decode(octets, rows - 1, room)?.numbers(reader)?),
        _ => return None,
    };
    let known = table.known;
    let (mut slots, mut slot, mut count) = (Vec::with_capacity(rows), first, known as u64);
    for row in 0..rows {
        if row > 0 {
            let step = steps.as_ref().map_or(0, |steps| unzigzag(steps[row - 1]));
            slot = slot.wrapping_add(1).wrapping_add(step);
        }
        if slot > count {
            return None;
        }
        count += u64::from(slot == count);
        slots.push(u32::try_from(slot).ok()?);
    }
    let new = usize::try_from(count).ok()? - known;
    if new > most {
        return None;
    }
    let width = table.keys.len();
    if new > 0 && width > 0 {
        let keys = Magnitudes::decode(octets, new * width, room)?.numbers(reader)?;
        for key in keys.chunks(width) {
            let word = |&number: &u64| match number {
                0 => Some(NO_TEXT),
                _ => u32::try_from(number - 1).ok().filter(|word| (*word as usize) < words),
            };
            let key: Option<Vec<u32>> = key.iter().map(word).collect();
            table.add_slot(key?);
        }
    } else {
        (0..new).for_each(|_| table.add_slot(Vec::new()));
    }
    Some((slots, new))
}

/// The octets of a block of version 1.
fn payload_of(
    table: &Table,
    words: &[String],
    rows: usize,
    origin: &Origin,
    columns: Vec<Option<Values>>,
) -> Option<Vec<u8>> {
    let mut places: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut texts, mut body) = (Vec::new(), Vec::new());
    let mut times = (0, 0);
    for (at, (values, &kind)) in columns.into_iter().zip(&table.kinds).enumerate() {
        let mut column = ColumnBuffer::new(kind);
        if let Some(Values { bits, nulls }) = values {
            if kind == ColumnKind::Text {
                return None;
            }
            column.bits = bits;
            if let Some(nulls) = nulls {
                column.nulls = vec![0; rows.div_ceil(64)];
                for row in (0..rows).filter(|&row| nulls[row]) {
                    column.nulls[row / 64] |= 1 << (row % 64);
                }
            }
            if kind == ColumnKind::Symbol {
                place_words(&mut column, words, &mut places, &mut texts)?;
            }
        }
        body.push(VALUES);
        let range = encode_column(&mut column, rows, &mut body);
        if at == 0 {
            times = range;
        }
    }
    let mut plain = narrow_u32(texts.len()).to_le_bytes().to_vec();
    for text in texts {
        plain.extend_from_slice(&narrow_u32(text.len()).to_le_bytes());
        plain.extend_from_slice(text.as_bytes());
    }
    plain.extend_from_slice(&body);
    let mut out = vec![VERSION_1, STORED];
    out.extend_from_slice(&u16::try_from(table.kinds.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&narrow_u32(rows).to_le_bytes());
    out.extend_from_slice(&times.0.to_le_bytes());
    out.extend_from_slice(&times.1.to_le_bytes());
    out.extend_from_slice(&u32::try_from(plain.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&table.names);
    out[HAS_ORIGIN_AT] = 1;
    put_origin(origin, &mut out).ok()?;
    out.extend_from_slice(&plain);
    Some(out)
}

/// Puts places among the texts of the block where words of the history are.
fn place_words<'a>(
    column: &mut ColumnBuffer,
    words: &'a [String],
    places: &mut BTreeMap<u64, u64>,
    texts: &mut Vec<&'a str>,
) -> Option<()> {
    let mut before = None;
    for row in 0..column.bits.len() {
        if column.is_null(row) {
            continue;
        }
        let word = column.bits[row];
        let place = match before {
            Some((known, place)) if known == word => place,
            _ => match places.get(&word) {
                Some(&place) => place,
                None => {
                    texts.push(words.get(usize::try_from(word).ok()?)?.as_str());
                    let place = texts.len() as u64 - 1;
                    places.insert(word, place);
                    place
                }
            },
        };
        before = Some((word, place));
        column.bits[row] = place;
    }
    Some(())
}

#[cfg(test)]
mod tests;
