//! The payload of packed rows: made, and taken apart.
//!
//! A payload is a prefix that says what the rows are, and a body. In a body of version 2, which is
//! written, each column has a form of its own (`packed/columns.rs`) and what is compressed is
//! compressed by itself. A body of version 1 is compressed as a whole; its columns are those of the
//! codec of rows, or differences from row to row where these are narrower. Who reads a payload turns
//! it into one of the codec of rows for the reader's own schema: columns are found by name, and those
//! that the block does not have are null. So all code behind that knows one form only.
//!
//! Every size that a payload claims is compared with a limit before memory is taken for it.

mod columns;
pub(crate) mod delta;
mod error;
mod magnitudes;
mod met;
mod sections;
mod steps;

use std::borrow::Cow;

use super::decode::{ColumnView, Octets, column_of};
use super::encode::{FORM_ALL_NULL, FORM_FULL, FORM_NULLABLE, encode_column};
use super::{le_u32, le_u64, narrow_u32};
use crate::batch::{Batch, ColumnBuffer};
use crate::origin::{NAME_MAX, Origin, Source};
use crate::schema::{ColumnKind, TableSchema};
pub(crate) use columns::CodedColumn;
pub use error::{PackError, UnpackError};
use sections::{Section, put_varint, take_varint};
pub(crate) use sections::{SectionReader, SectionWriter};

/// The version of the payload that is written.
pub(crate) const VERSION: u8 = 2;

/// The first version, which is still read.
const VERSION_1: u8 = 1;

/// Octets of a body before it is compressed, at most.
pub(crate) const BODY_MAX: usize = 1 << 24;

/// Values of a block at most: rows times columns. They take 8 octets each once they are read.
pub(crate) const CELLS_MAX: usize = 1 << 20;

/// Texts of a block at most: no value has more than one.
const TEXTS_MAX: u64 = CELLS_MAX as u64;

/// Octets of the prefix before the names.
const FIXED_LEN: usize = 32;

/// Where the prefix says how many octets the body has.
const PLAIN_LEN_AT: usize = 24;

/// The octet that is 1 if an origin stands behind the names of the columns, else 0.
const HAS_ORIGIN_AT: usize = 29;

/// A body that is stored, or whose sections say themselves how they are kept.
const STORED: u8 = 0;
/// A body of version 1 that is one frame of zstd.
const ZSTD: u8 = 1;

/// A column whose values stand as in the codec of rows.
const VALUES: u8 = 0;
/// A column that holds the difference of each value to the one before it that is not null; 8 octets
/// in front are what the first one is a difference to.
const DIFFERENCES: u8 = 1;

/// What a payload says about itself before its body.
#[derive(Debug)]
pub(crate) struct Prefix<'a> {
    version: u8,
    compression: u8,
    pub(crate) rows: usize,
    /// The least and the greatest `time` of the rows.
    pub(crate) times: (i64, i64),
    body_len: usize,
    pub(crate) table: &'a str,
    /// The columns that the rows were written with.
    columns: Vec<(ColumnKind, &'a str)>,
    /// Where the block comes from.
    pub(crate) origin: Option<Origin>,
    /// Octets before the origin, or before the body where there is none.
    names_end: usize,
    body: &'a [u8],
}

impl<'a> Prefix<'a> {
    /// Reads the prefix of a payload; the body is not looked at.
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, UnpackError> {
        const SHORT: UnpackError = UnpackError::Malformed { what: "its prefix is cut off" };
        match payload.first() {
            None => return Err(SHORT),
            Some(&(VERSION | VERSION_1)) => {}
            Some(&found) => return Err(UnpackError::Version { found }),
        }
        let version = payload[0];
        let mut octets = Octets(payload);
        let fixed = octets.take(FIXED_LEN).ok_or(SHORT)?;
        let count = usize::from(u16::from_le_bytes([fixed[2], fixed[3]]));
        let [rows, body_len] = [4, 24].map(|at| le_u32(fixed, at) as usize);
        let times = (le_u64(fixed, 8).cast_signed(), le_u64(fixed, 16).cast_signed());
        let compressed_most = if version == VERSION_1 { ZSTD } else { STORED };
        if fixed[1] > compressed_most || fixed[HAS_ORIGIN_AT] > 1 || fixed[30..] != [0; 2] {
            return Err(UnpackError::Malformed { what: "it is compressed in an unknown way" });
        }
        if rows == 0 || count == 0 || times.0 > times.1 {
            return Err(UnpackError::Malformed { what: "it has no rows, or no times" });
        }
        let cells = rows.saturating_mul(count);
        for (what, found, limit) in
            [("values", cells, CELLS_MAX), ("octets in its body", body_len, BODY_MAX)]
        {
            if found > limit {
                return Err(UnpackError::TooLarge { what, found, limit });
            }
        }
        let table = text(octets.take(fixed[28].into()).ok_or(SHORT)?)?;
        let mut columns = Vec::new();
        for _ in 0..count {
            let &[kind, length] = octets.take(2).ok_or(SHORT)? else { return Err(SHORT) };
            let kind = kind_of(kind)?;
            columns.push((kind, text(octets.take(length.into()).ok_or(SHORT)?)?));
        }
        if columns.first().is_none_or(|(kind, _)| *kind != ColumnKind::Time) {
            return Err(UnpackError::Malformed { what: "its first column is no time" });
        }
        let names_end = payload.len() - octets.0.len();
        let origin = match fixed[HAS_ORIGIN_AT] {
            0 => None,
            _ => Some(origin_of(&mut octets)?),
        };
        let (compression, body) = (fixed[1], octets.0);
        Ok(Self {
            version,
            compression,
            rows,
            times,
            body_len,
            table,
            columns,
            origin,
            names_end,
            body,
        })
    }

    /// The columns that the rows were written with.
    pub(crate) fn columns(&self) -> &[(ColumnKind, &'a str)] {
        &self.columns
    }

    /// Whether the rows are of a table.
    fn is_of(&self, schema: &TableSchema) -> Result<(), UnpackError> {
        if self.table == schema.name {
            return Ok(());
        }
        Err(UnpackError::Table { found: self.table.to_owned(), expected: schema.name.clone() })
    }

    /// Where the rows have a column of a table.
    fn position_of(&self, wanted: &crate::schema::Column) -> Option<usize> {
        self.columns.iter().position(|column| *column == (wanted.kind, &*wanted.name))
    }

    /// The body of version 1 as it was before it was compressed.
    fn body(&self) -> Result<Cow<'a, [u8]>, UnpackError> {
        const WRONG: UnpackError = UnpackError::Malformed { what: "its body is damaged" };
        let body = match self.compression {
            STORED => Cow::Borrowed(self.body),
            _ => Cow::Owned(zstd::bulk::decompress(self.body, self.body_len).map_err(|_| WRONG)?),
        };
        if body.len() == self.body_len { Ok(body) } else { Err(WRONG) }
    }
}

/// Takes an origin: the names of sender and stream, each behind its length, and three numbers.
fn origin_of(octets: &mut Octets<'_>) -> Result<Origin, UnpackError> {
    const SHORT: UnpackError = UnpackError::Malformed { what: "its origin is cut off" };
    let mut name = || {
        let length = usize::from(octets.take(1).ok_or(SHORT)?[0]);
        text(octets.take(length).ok_or(SHORT)?).map(str::to_owned)
    };
    let (sender, stream) = (name()?, name()?);
    let numbers = octets.take(24).ok_or(SHORT)?;
    let [boot, first, last] = [0, 8, 16].map(|at| le_u64(numbers, at));
    if first > last {
        return Err(UnpackError::Malformed { what: "its origin ends before it begins" });
    }
    Ok(Origin { source: Source { sender, boot, stream }, first, last })
}

/// The same payload with another origin, or with one where it had none.
///
/// # Errors
/// When a name does not fit, or the numbers go back.
pub(crate) fn with_origin(payload: &[u8], origin: &Origin) -> Result<Vec<u8>, PackError> {
    let prefix = Prefix::read(payload).expect("a block that was made or received has its prefix");
    let Source { sender, stream, .. } = &origin.source;
    let mut out = Vec::with_capacity(payload.len() + sender.len() + stream.len() + 26);
    out.extend_from_slice(&payload[..prefix.names_end]);
    out[HAS_ORIGIN_AT] = 1;
    put_origin(origin, &mut out)?;
    out.extend_from_slice(prefix.body);
    Ok(out)
}

/// Appends an origin as it stands in a payload.
fn put_origin(origin: &Origin, out: &mut Vec<u8>) -> Result<(), PackError> {
    let Source { sender, boot, stream } = &origin.source;
    let length = |name: &String| {
        let fits = u8::try_from(name.len()).ok().filter(|_| name.len() <= NAME_MAX);
        fits.ok_or_else(|| PackError::Name { name: name.clone() })
    };
    if origin.first > origin.last {
        return Err(PackError::Origin { first: origin.first, last: origin.last });
    }
    for name in [sender, stream] {
        out.push(length(name)?);
        out.extend_from_slice(name.as_bytes());
    }
    for number in [*boot, origin.first, origin.last] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    Ok(())
}

fn text(octets: &[u8]) -> Result<&str, UnpackError> {
    std::str::from_utf8(octets).map_err(|_| UnpackError::Malformed { what: "a name is no UTF-8" })
}

const KINDS: [ColumnKind; 6] = [
    ColumnKind::Time,
    ColumnKind::Symbol,
    ColumnKind::Text,
    ColumnKind::U64,
    ColumnKind::I64,
    ColumnKind::F64,
];

fn kind_of(number: u8) -> Result<ColumnKind, UnpackError> {
    let kind = KINDS.get(usize::from(number)).copied();
    kind.ok_or(UnpackError::Malformed { what: "a column is of an unknown kind" })
}

fn number_of(kind: ColumnKind) -> u8 {
    let at = KINDS.iter().position(|known| *known == kind).expect("every kind is listed");
    u8::try_from(at).expect("there are six")
}

/// The payload of the rows of `batch`, whose symbols are the places of their texts in `texts`.
pub(crate) fn pack(
    schema: &TableSchema,
    batch: &mut Batch,
    texts: &[String],
    sections: &mut SectionWriter,
) -> Result<Vec<u8>, PackError> {
    let limited = |what, found, limit| {
        if found > limit { Err(PackError::TooLarge { what, found, limit }) } else { Ok(()) }
    };
    let (rows, count) = (batch.rows, schema.columns.len());
    if rows == 0 {
        return Err(PackError::Empty);
    }
    limited("values", rows.saturating_mul(count), CELLS_MAX)?;
    let columns_octets: usize = batch.columns.iter().map(|column| column.octets.len()).sum();
    limited("octets of texts", columns_octets, BODY_MAX)?;
    limited("texts", texts.len(), CELLS_MAX)?;
    sections.begin();
    // Samples take about as many octets, beside what their texts do.
    let (mut body, mut words) = (Vec::with_capacity(4 * rows + 256), Vec::new());
    put_varint(texts.len() as u64, &mut body);
    for text in texts {
        put_varint(text.len() as u64, &mut words);
        words.extend_from_slice(text.as_bytes());
        limited("octets in texts", words.len(), BODY_MAX)?;
    }
    if !texts.is_empty() {
        sections.put(&words, &mut body);
    }
    let times = batch.times();
    columns::put(batch, sections, &mut body);
    limited("octets", sections.plain_len, BODY_MAX)?;
    let mut out = prefix(VERSION, schema, rows, times, sections.plain_len)?;
    out.extend_from_slice(&body);
    Ok(out)
}

/// As [`pack`], in a body of version 1 that is stored: the columns as in the codec of rows. That takes
/// a fraction of the time, and more octets.
pub(crate) fn pack_plain(
    schema: &TableSchema,
    batch: &mut Batch,
    texts: &[&str],
) -> Result<Vec<u8>, PackError> {
    let limited = |what, found, limit| {
        if found > limit { Err(PackError::TooLarge { what, found, limit }) } else { Ok(()) }
    };
    let rows = batch.rows;
    if rows == 0 {
        return Err(PackError::Empty);
    }
    limited("values", rows.saturating_mul(schema.columns.len()), CELLS_MAX)?;
    limited("texts", texts.len(), CELLS_MAX)?;
    let columns_octets: usize = batch.columns.iter().map(|column| column.octets.len()).sum();
    let texts_octets: usize = texts.iter().map(|text| text.len()).sum();
    limited("octets of texts", columns_octets.saturating_add(texts_octets), BODY_MAX)?;
    let mut out = prefix(VERSION_1, schema, rows, batch.times(), 0)?;
    let begin = out.len();
    // Half of the octets of all values at most, as a rule.
    let most = texts_octets + 4 * (texts.len() + rows * schema.columns.len()) + FIXED_LEN;
    out.reserve_exact(most + columns_octets);
    out.extend_from_slice(&narrow_u32(texts.len()).to_le_bytes());
    for text in texts {
        out.extend_from_slice(&narrow_u32(text.len()).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    for column in &mut batch.columns {
        out.push(VALUES);
        encode_column(column, rows, &mut out);
    }
    let len = out.len() - begin;
    limited("octets", len, BODY_MAX)?;
    out[PLAIN_LEN_AT..PLAIN_LEN_AT + 4].copy_from_slice(&narrow_u32(len).to_le_bytes());
    Ok(out)
}

/// What stands before a stored body of so many octets, without an origin.
fn prefix(
    version: u8,
    schema: &TableSchema,
    rows: usize,
    (least, greatest): (i64, i64),
    plain_len: usize,
) -> Result<Vec<u8>, PackError> {
    let mut out = vec![version, STORED];
    let columns = u16::try_from(schema.columns.len())
        .map_err(|_| PackError::Name { name: schema.name.clone() })?;
    out.extend_from_slice(&columns.to_le_bytes());
    out.extend_from_slice(&narrow_u32(rows).to_le_bytes());
    out.extend_from_slice(&least.to_le_bytes());
    out.extend_from_slice(&greatest.to_le_bytes());
    out.extend_from_slice(&narrow_u32(plain_len).to_le_bytes());
    let length = |name: &str| {
        u8::try_from(name.len()).map_err(|_| PackError::Name { name: name.to_owned() })
    };
    out.extend_from_slice(&[length(&schema.name)?, 0, 0, 0]);
    out.extend_from_slice(schema.name.as_bytes());
    for column in &schema.columns {
        out.extend_from_slice(&[number_of(column.kind), length(&column.name)?]);
        out.extend_from_slice(column.name.as_bytes());
    }
    Ok(out)
}

/// Appends a column of version 1 in the narrower of its two forms.
fn put_column(column: &mut ColumnBuffer, rows: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    out.push(VALUES);
    encode_column(column, rows, out);
    let has_differences = matches!(
        column.kind,
        ColumnKind::Time | ColumnKind::U64 | ColumnKind::I64 | ColumnKind::Text
    );
    if column.bits.is_empty() || !has_differences {
        return;
    }
    let Some(first) = (0..rows).find(|&row| !column.is_null(row)) else { return };
    // Texts begin at 0, also behind nulls, which repeat the end before them.
    let start = if column.kind == ColumnKind::Text { 0 } else { column.bits[first] };
    let mut before = start;
    let differences = (0..rows).map(|row| {
        if column.is_null(row) {
            return 0;
        }
        column.bits[row].wrapping_sub(std::mem::replace(&mut before, column.bits[row]))
    });
    let mut differences = ColumnBuffer {
        kind: ColumnKind::I64,
        bits: differences.collect(),
        nulls: column.nulls.clone(),
        octets: Vec::new(),
    };
    let mut other = vec![DIFFERENCES];
    other.extend_from_slice(&start.to_le_bytes());
    encode_column(&mut differences, rows, &mut other);
    if column.kind == ColumnKind::Text {
        other.extend_from_slice(&narrow_u32(column.octets.len()).to_le_bytes());
        other.extend_from_slice(&column.octets);
    }
    if other.len() < out.len() - begin {
        out.truncate(begin);
        out.extend_from_slice(&other);
    }
}

/// Turns a payload of packed rows into one of the codec of rows for `schema`, in `out`; returns the
/// number of rows. `number` gives the number that a text has for the reader; `None` when it
/// cannot take any more. `reader` may be used for one payload after another.
///
/// # Errors
/// When the payload is not of this version, not of that table, or not what it says.
pub(crate) fn unpack(
    payload: &[u8],
    schema: &TableSchema,
    mut number: impl FnMut(&str) -> Option<u64>,
    reader: &mut SectionReader,
    out: &mut Vec<u8>,
) -> Result<usize, UnpackError> {
    let prefix = Prefix::read(payload)?;
    prefix.is_of(schema)?;
    if prefix.version != VERSION_1 {
        return unpack_sections(&prefix, schema, number, reader, out);
    }
    let body = prefix.body()?;
    let mut octets = Octets(&body);
    let wrong = |what| UnpackError::Malformed { what };
    let numbers =
        texts_of(&mut octets, &mut number).ok_or_else(|| wrong("its texts are damaged"))?;
    let mut columns = Vec::with_capacity(prefix.columns.len());
    for (kind, name) in &prefix.columns {
        let column = Column::decode(&mut octets, prefix.rows, (*kind, name));
        columns.push(column.ok_or_else(|| wrong("a column is damaged"))?);
    }
    if !octets.0.is_empty() {
        return Err(wrong("something is behind its columns"));
    }
    compare_times(&columns[0], &prefix)?;
    out.clear();
    for wanted in &schema.columns {
        let of_name =
            |column: &&Column<'_>| column.name == wanted.name && column.kind == wanted.kind;
        match columns.iter().find(of_name) {
            None => out.push(FORM_ALL_NULL),
            Some(column) => {
                column
                    .put(prefix.rows, &numbers, out)
                    .ok_or_else(|| wrong("a value has no text"))?;
            }
        }
    }
    Ok(prefix.rows)
}

/// A body of version 2 whose sections were found.
struct SectionedBody<'a, 'r> {
    /// The reader's numbers of the texts, by their places.
    numbers: Vec<u64>,
    columns: columns::Columns<'a, 'r>,
}

impl<'a, 'r> SectionedBody<'a, 'r> {
    fn read(
        prefix: &Prefix<'a>,
        reader: &'r mut SectionReader,
        mut number: impl FnMut(&str) -> Option<u64>,
    ) -> Result<Self, UnpackError> {
        let wrong = |what| UnpackError::Malformed { what };
        let mut octets = Octets(prefix.body);
        let mut room = prefix.body_len;
        let numbers = words_of(&mut octets, &mut room, reader, &mut number);
        let numbers = numbers.ok_or_else(|| wrong("its texts are damaged"))?;
        let kinds = prefix.columns.iter().map(|(kind, _)| *kind);
        let columns = columns::Columns::decode(&mut octets, kinds, prefix.rows, &mut room, reader);
        let columns = columns.ok_or_else(|| wrong("a column is damaged"))?;
        if !octets.0.is_empty() || room > 0 {
            return Err(wrong("something is behind its columns"));
        }
        Ok(Self { numbers, columns })
    }

    /// The column of the times in the codec of rows.
    fn times(&mut self, prefix: &Prefix<'_>) -> Result<Vec<u8>, UnpackError> {
        const WRONG: UnpackError = UnpackError::Malformed { what: "its times are damaged" };
        let mut times = Vec::new();
        self.columns.put(0, &self.numbers, &mut times).ok_or(WRONG)?;
        let view = column_of(&mut Octets(&times), prefix.rows, ColumnKind::Time).ok_or(WRONG)?;
        compare_times(&Column { kind: ColumnKind::Time, name: "", start: None, view }, prefix)?;
        Ok(times)
    }
}

/// As [`unpack`], of a body of version 2.
fn unpack_sections(
    prefix: &Prefix<'_>,
    schema: &TableSchema,
    number: impl FnMut(&str) -> Option<u64>,
    reader: &mut SectionReader,
    out: &mut Vec<u8>,
) -> Result<usize, UnpackError> {
    let wrong = |what| UnpackError::Malformed { what };
    let mut body = SectionedBody::read(prefix, reader, number)?;
    let times = body.times(prefix)?;
    let SectionedBody { numbers, mut columns } = body;
    out.clear();
    for wanted in &schema.columns {
        match prefix.position_of(wanted) {
            None => out.push(FORM_ALL_NULL),
            Some(0) => out.extend_from_slice(&times),
            Some(at) => columns
                .put(at, &numbers, out)
                .ok_or_else(|| wrong("a column is damaged, or a value has no text"))?,
        }
    }
    Ok(prefix.rows)
}

/// Columns of a block as it keeps them, and its words.
pub(crate) struct Coded {
    pub(crate) columns: Vec<CodedColumn>,
    pub(crate) words: Vec<String>,
}

/// The columns of a payload that stand at some positions of the table, as the payload keeps them; `None` where one of
/// them is plain, or follows from one that is not wanted. Its times are not read unless they are wanted.
///
/// # Errors
/// As [`unpack`].
pub(crate) fn coded(
    payload: &[u8],
    schema: &TableSchema,
    wanted: &[usize],
    reader: &mut SectionReader,
) -> Result<Option<Coded>, UnpackError> {
    let prefix = Prefix::read(payload)?;
    prefix.is_of(schema)?;
    if prefix.version == VERSION_1 {
        return Ok(None);
    }
    let mut words = Vec::new();
    let number = |word: &str| {
        words.push(word.to_owned());
        u64::try_from(words.len() - 1).ok()
    };
    let mut body = SectionedBody::read(&prefix, reader, number)?;
    let there: Vec<Option<usize>> =
        wanted.iter().map(|&at| prefix.position_of(&schema.columns[at])).collect();
    let mut columns = Vec::with_capacity(wanted.len());
    for at in &there {
        let column = at.map_or(Some(Some(CodedColumn::Null)), |at| body.columns.coded(at));
        let column = column.ok_or(UnpackError::Malformed { what: "a column is damaged" })?;
        let Some(mut column) = column else { return Ok(None) };
        if let CodedColumn::ByAnother { another, .. } = &mut column {
            let Some(found) = there.iter().position(|at| *at == Some(*another)) else {
                return Ok(None);
            };
            *another = found;
        }
        columns.push(column);
    }
    Ok(Some(Coded { columns, words }))
}

/// The reader's numbers of the texts of a body of version 2, by their places.
fn words_of(
    octets: &mut Octets<'_>,
    room: &mut usize,
    reader: &mut SectionReader,
    number: &mut impl FnMut(&str) -> Option<u64>,
) -> Option<Vec<u64>> {
    let count = take_varint(octets)?;
    if count == 0 {
        return Some(Vec::new());
    }
    if count > TEXTS_MAX {
        return None;
    }
    let words = Section::decode(octets, room)?.octets(reader)?;
    let (mut words, mut numbers) = (Octets(&words), Vec::new());
    for _ in 0..count {
        let length = usize::try_from(take_varint(&mut words)?).ok()?;
        numbers.push(number(std::str::from_utf8(words.take(length)?).ok()?)?);
    }
    words.0.is_empty().then_some(numbers)
}

/// The reader's numbers of the texts of a body of version 1, by their places.
fn texts_of(
    octets: &mut Octets<'_>,
    number: &mut impl FnMut(&str) -> Option<u64>,
) -> Option<Vec<u64>> {
    let count = le_u32(octets.take(4)?, 0);
    if u64::from(count) > TEXTS_MAX {
        return None;
    }
    let mut numbers = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(le_u32(octets.take(4)?, 0)).ok()?;
        numbers.push(number(std::str::from_utf8(octets.take(length)?).ok()?)?);
    }
    Some(numbers)
}

/// Every row has a time, and none lies outside of what the prefix says: readers pass over blocks by
/// that.
fn compare_times(times: &Column<'_>, prefix: &Prefix<'_>) -> Result<(), UnpackError> {
    let within = |bits: u64| (prefix.times.0..=prefix.times.1).contains(&bits.cast_signed());
    if times.view.is_full() && times.bits(prefix.rows).all(|(_, bits)| within(bits)) {
        return Ok(());
    }
    Err(UnpackError::Malformed { what: "its times are not those of its prefix" })
}

/// A column of a body.
struct Column<'a> {
    kind: ColumnKind,
    name: &'a str,
    /// What the first difference is to, where the column holds differences.
    start: Option<u64>,
    view: ColumnView<'a>,
}

impl<'a> Column<'a> {
    /// Decodes the next column of a body; `None` when it is not one.
    fn decode(
        octets: &mut Octets<'a>,
        rows: usize,
        (kind, name): (ColumnKind, &'a str),
    ) -> Option<Self> {
        let start = match octets.take(1)?[0] {
            VALUES => None,
            DIFFERENCES => Some(le_u64(octets.take(8)?, 0)),
            _ => return None,
        };
        Some(Self { kind, name, start, view: column_of(octets, rows, kind)? })
    }

    /// Whether each row is null, and its raw bits; a null has those of the value before it.
    fn bits(&self, rows: usize) -> impl Iterator<Item = (bool, u64)> + '_ {
        let mut before = self.start.unwrap_or(0);
        (0..rows).map(move |row| {
            let (is_null, bits) = (self.view.is_null(row), self.view.bits(row));
            before = match (is_null, self.start.is_some()) {
                (true, true) => before,
                (false, true) => before.wrapping_add(bits),
                // A null text repeats the end of the text before it, which is its value.
                (_, false) => bits,
            };
            (is_null, before)
        })
    }

    /// Appends the column in the codec of rows; `None` when a symbol has no text.
    fn put(&self, rows: usize, numbers: &[u64], out: &mut Vec<u8>) -> Option<()> {
        let view = &self.view;
        if view.is_all_null() {
            out.push(FORM_ALL_NULL);
            return Some(());
        }
        out.push(if view.is_full() { FORM_FULL } else { FORM_NULLABLE });
        let is_symbol = self.kind == ColumnKind::Symbol;
        if is_symbol || self.start.is_some() {
            out.push(8);
            out.extend_from_slice(&0_u64.to_le_bytes());
            out.extend_from_slice(view.nulls);
            for (is_null, bits) in self.bits(rows) {
                let bits = match (is_symbol, is_null) {
                    (false, _) => bits,
                    (true, true) => 0,
                    (true, false) => *numbers.get(usize::try_from(bits).ok()?)?,
                };
                out.extend_from_slice(&bits.to_le_bytes());
            }
        } else {
            out.push(view.width);
            out.extend_from_slice(&view.base.to_le_bytes());
            out.extend_from_slice(view.nulls);
            out.extend_from_slice(view.values);
        }
        if self.kind == ColumnKind::Text {
            out.extend_from_slice(&narrow_u32(view.octets.len()).to_le_bytes());
            out.extend_from_slice(view.octets);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
