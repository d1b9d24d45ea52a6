//! The payload of packed rows: made, and taken apart.
//!
//! A payload is a prefix that says what the rows are, and a body that is compressed as a whole.
//! Columns in the body are those of the codec of rows, or differences from row to row where these
//! are narrower. Who reads it turns it into a payload of the codec of rows for the reader's own
//! schema: columns are found by name, and those that the block does not have are null. So all code
//! behind that knows one form only.
//!
//! Every size that a payload claims is compared with a limit before memory is taken for it.

use std::borrow::Cow;

use super::decode::{ColumnView, Octets, column_of};
use super::encode::{FORM_ALL_NULL, FORM_FULL, FORM_NULLABLE, encode_column};
use super::{le_u32, le_u64, narrow_u32};
use crate::batch::{Batch, ColumnBuffer};
use crate::packed::{PackError, UnpackError};
use crate::schema::{ColumnKind, TableSchema};

/// The version of the payload that is written, and the only one that is read.
pub(crate) const VERSION: u8 = 1;

/// Octets of a body before it is compressed, at most.
pub(crate) const BODY_MAX: usize = 1 << 24;

/// Values of a block at most: rows times columns. They take 8 octets each once they are read.
pub(crate) const CELLS_MAX: usize = 1 << 20;

/// Octets of the prefix before the names.
const FIXED_LEN: usize = 32;

/// The level of zstd: blocks are compressed where the rows are made, beside the work that is
/// measured.
const LEVEL: i32 = 1;

const STORED: u8 = 0;
const ZSTD: u8 = 1;

/// A column whose values stand as in the codec of rows.
const VALUES: u8 = 0;
/// A column that holds the difference of each value to the one before it that is not null; 8 octets
/// in front are what the first one is a difference to.
const DIFFERENCES: u8 = 1;

/// What a payload says about itself before its body.
#[derive(Debug)]
pub(crate) struct Prefix<'a> {
    compression: u8,
    pub(crate) rows: usize,
    /// The least and the greatest `time` of the rows.
    pub(crate) times: (i64, i64),
    body_len: usize,
    pub(crate) table: &'a str,
    /// The columns that the rows were written with.
    columns: Vec<(ColumnKind, &'a str)>,
    body: &'a [u8],
}

impl<'a> Prefix<'a> {
    /// Reads the prefix of a payload; the body is not looked at.
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, UnpackError> {
        const SHORT: UnpackError = UnpackError::Malformed { what: "its prefix is cut off" };
        match payload.first() {
            None => return Err(SHORT),
            Some(&VERSION) => {}
            Some(&found) => return Err(UnpackError::Version { found }),
        }
        let mut octets = Octets(payload);
        let fixed = octets.take(FIXED_LEN).ok_or(SHORT)?;
        let count = usize::from(u16::from_le_bytes([fixed[2], fixed[3]]));
        let [rows, body_len] = [4, 24].map(|at| le_u32(fixed, at) as usize);
        let times = (le_u64(fixed, 8).cast_signed(), le_u64(fixed, 16).cast_signed());
        if fixed[1] > ZSTD || fixed[29..] != [0; 3] {
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
        Ok(Self { compression: fixed[1], rows, times, body_len, table, columns, body: octets.0 })
    }

    /// The body as it was before it was compressed.
    fn body(&self) -> Result<Cow<'a, [u8]>, UnpackError> {
        const WRONG: UnpackError = UnpackError::Malformed { what: "its body is damaged" };
        let body = match self.compression {
            STORED => Cow::Borrowed(self.body),
            _ => Cow::Owned(zstd::bulk::decompress(self.body, self.body_len).map_err(|_| WRONG)?),
        };
        if body.len() == self.body_len { Ok(body) } else { Err(WRONG) }
    }
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
) -> Result<Vec<u8>, PackError> {
    let limited = |what, found, limit| {
        if found > limit { Err(PackError::TooLarge { what, found, limit }) } else { Ok(()) }
    };
    let (rows, count) = (batch.rows, schema.columns.len());
    if rows == 0 {
        return Err(PackError::Empty);
    }
    limited("values", rows.saturating_mul(count), CELLS_MAX)?;
    let mut body = Vec::new();
    body.extend_from_slice(&narrow_u32(texts.len()).to_le_bytes());
    for text in texts {
        limited("octets in a text", text.len(), BODY_MAX)?;
        body.extend_from_slice(&narrow_u32(text.len()).to_le_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    let times = batch.columns[0].bits.iter().map(|bits| bits.cast_signed());
    let (least, greatest) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
    for column in &mut batch.columns {
        put_column(column, rows, &mut body);
    }
    limited("octets", body.len(), BODY_MAX)?;
    let compressed = zstd::bulk::compress(&body, LEVEL).ok();
    let compressed = compressed.filter(|compressed| compressed.len() < body.len());
    let mut out = Vec::new();
    out.extend_from_slice(&[VERSION, if compressed.is_some() { ZSTD } else { STORED }]);
    let columns =
        u16::try_from(count).map_err(|_| PackError::Name { name: schema.name.clone() })?;
    out.extend_from_slice(&columns.to_le_bytes());
    out.extend_from_slice(&narrow_u32(rows).to_le_bytes());
    out.extend_from_slice(&least.to_le_bytes());
    out.extend_from_slice(&greatest.to_le_bytes());
    out.extend_from_slice(&narrow_u32(body.len()).to_le_bytes());
    let length = |name: &str| {
        u8::try_from(name.len()).map_err(|_| PackError::Name { name: name.to_owned() })
    };
    out.extend_from_slice(&[length(&schema.name)?, 0, 0, 0]);
    out.extend_from_slice(schema.name.as_bytes());
    for column in &schema.columns {
        out.extend_from_slice(&[number_of(column.kind), length(&column.name)?]);
        out.extend_from_slice(column.name.as_bytes());
    }
    out.extend_from_slice(&compressed.unwrap_or(body));
    Ok(out)
}

/// Appends a column in the narrower of its two forms.
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
/// cannot take any more.
///
/// # Errors
/// When the payload is not of this version, not of that table, or not what it says.
pub(crate) fn unpack(
    payload: &[u8],
    schema: &TableSchema,
    mut number: impl FnMut(&str) -> Option<u64>,
    out: &mut Vec<u8>,
) -> Result<usize, UnpackError> {
    let prefix = Prefix::read(payload)?;
    if prefix.table != schema.name {
        let found = prefix.table.to_owned();
        return Err(UnpackError::Table { found, expected: schema.name.clone() });
    }
    let body = prefix.body()?;
    let mut octets = Octets(&body);
    let wrong = |what| UnpackError::Malformed { what };
    let numbers =
        texts_of(&mut octets, &mut number).ok_or_else(|| wrong("its texts are damaged"))?;
    let mut columns = Vec::with_capacity(prefix.columns.len());
    for (kind, name) in &prefix.columns {
        let column = Column::take(&mut octets, prefix.rows, (*kind, name));
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

/// The reader's numbers of the texts of a body, by their places.
fn texts_of(
    octets: &mut Octets<'_>,
    number: &mut impl FnMut(&str) -> Option<u64>,
) -> Option<Vec<u64>> {
    let count = le_u32(octets.take(4)?, 0);
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
    /// Takes the next column of a body; `None` when it is not one.
    fn take(
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
