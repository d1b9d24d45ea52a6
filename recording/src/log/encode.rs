//! Frames are made here: head, symbols, rows.

use super::{Codec, FrameHeader, HEADER_LEN, Head, PAYLOAD_MAX, ROWS_MAX, narrow_u32};
use crate::batch::{Batch, ColumnBuffer};
use crate::schema::ColumnKind;

/// A column without any value: this octet is all of it.
pub(super) const FORM_ALL_NULL: u8 = 0;
/// Every row has a value.
pub(super) const FORM_FULL: u8 = 1;
/// A bitmap says which rows are null.
pub(super) const FORM_NULLABLE: u8 = 2;

/// Where a frame stands in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ordinal {
    pub(crate) sequence: u64,
    /// The sequence number that was written before it; `None` where that is not known.
    pub(crate) before: Option<u64>,
}

/// Appends the frame of a segment's head to `out`.
pub(crate) fn encode_head(head: &Head, ordinal: Ordinal, out: &mut Vec<u8>) {
    let start = begin(out);
    serde_json::to_writer(&mut *out, head).expect("a head has only string keys");
    finish(
        out,
        start,
        FrameFacts { codec: Codec::Head, table: 0, rows: 0, ordinal, times: (0, 0) },
    );
}

/// Appends the frame of `symbols` to `out`; the first of them has the number `first`.
pub(crate) fn encode_symbols(
    symbols: &[String],
    first: usize,
    ordinal: Ordinal,
    out: &mut Vec<u8>,
) {
    let start = begin(out);
    out.extend_from_slice(&narrow_u32(first).to_le_bytes());
    for symbol in symbols {
        out.extend_from_slice(&narrow_u32(symbol.len()).to_le_bytes());
        out.extend_from_slice(symbol.as_bytes());
    }
    let rows = symbols.len();
    finish(
        out,
        start,
        FrameFacts { codec: Codec::Symbols, table: 0, rows, ordinal, times: (0, 0) },
    );
}

/// Appends the frame of the rows of `batch` to `out`; returns its least and greatest time.
///
/// Returns `None`, and appends nothing, when the rows do not fit into a frame.
pub(crate) fn encode_rows(
    batch: &mut Batch,
    ordinal: Ordinal,
    out: &mut Vec<u8>,
) -> Option<(i64, i64)> {
    let rows = batch.rows;
    let start = begin(out);
    let mut times = (0, 0);
    for (index, column) in batch.columns.iter_mut().enumerate() {
        let range = encode_column(column, rows, out);
        if index == 0 {
            times = range;
        }
    }
    if out.len() - start - HEADER_LEN > PAYLOAD_MAX || rows > ROWS_MAX {
        out.truncate(start);
        return None;
    }
    let facts = FrameFacts { codec: Codec::Rows, table: batch.table, rows, ordinal, times };
    finish(out, start, facts);
    Some(times)
}

/// Appends one column; returns its least and greatest value as signed integers.
pub(super) fn encode_column(
    column: &mut ColumnBuffer,
    rows: usize,
    out: &mut Vec<u8>,
) -> (i64, i64) {
    if column.bits.is_empty() {
        out.push(FORM_ALL_NULL);
        return (0, 0);
    }
    column.pad(rows);
    let sign = sign_of(column.kind);
    let full = column.nulls.iter().all(|&word| word == 0);
    let (least, greatest) =
        if full { range(&column.bits, sign) } else { range_sparse(column, sign) };
    let base = least ^ sign;
    let width = width_of(greatest - least);
    out.push(if full { FORM_FULL } else { FORM_NULLABLE });
    out.push(width);
    out.extend_from_slice(&base.to_le_bytes());
    if !full {
        let start = out.len();
        column.nulls.resize(rows.div_ceil(64), 0);
        out.extend(column.nulls.iter().flat_map(|word| word.to_le_bytes()));
        out.truncate(start + rows.div_ceil(8));
        // A null text repeats the end of the text before it, which the next one begins at.
        let overwritten = if column.kind == ColumnKind::Text { 0 } else { rows };
        for row in 0..overwritten {
            if column.nulls[row / 64] >> (row % 64) & 1 == 1 {
                column.bits[row] = base;
            }
        }
    }
    match width {
        0 => {}
        1 => put_narrow::<1>(&column.bits, base, out),
        2 => put_narrow::<2>(&column.bits, base, out),
        4 => put_narrow::<4>(&column.bits, base, out),
        _ => put_narrow::<8>(&column.bits, base, out),
    }
    if column.kind == ColumnKind::Text {
        out.extend_from_slice(&narrow_u32(column.octets.len()).to_le_bytes());
        out.extend_from_slice(&column.octets);
    }
    (base.cast_signed(), (greatest ^ sign).cast_signed())
}

/// The bit that makes unsigned order agree with the kind's order.
pub(super) fn sign_of(kind: ColumnKind) -> u64 {
    match kind {
        ColumnKind::Time | ColumnKind::I64 => 1 << 63,
        ColumnKind::Symbol | ColumnKind::Text | ColumnKind::U64 | ColumnKind::F64 => 0,
    }
}

fn range(bits: &[u64], sign: u64) -> (u64, u64) {
    bits.iter().fold((u64::MAX, 0), |(least, greatest), bits| {
        let key = bits ^ sign;
        (least.min(key), greatest.max(key))
    })
}

/// The range of the values that are not null; texts are end offsets, which nulls repeat.
fn range_sparse(column: &ColumnBuffer, sign: u64) -> (u64, u64) {
    if column.kind == ColumnKind::Text {
        return range(&column.bits, sign);
    }
    let mut least = u64::MAX;
    let mut greatest = 0;
    for (row, bits) in column.bits.iter().enumerate() {
        let null = column.nulls.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
        if !null {
            least = least.min(bits ^ sign);
            greatest = greatest.max(bits ^ sign);
        }
    }
    if least > greatest { (sign, sign) } else { (least, greatest) }
}

fn width_of(range: u64) -> u8 {
    match range {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

fn put_narrow<const WIDTH: usize>(bits: &[u64], base: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bits.len() * WIDTH, 0);
    for (chunk, bits) in out[start..].chunks_exact_mut(WIDTH).zip(bits) {
        chunk.copy_from_slice(&bits.wrapping_sub(base).to_le_bytes()[..WIDTH]);
    }
}

struct FrameFacts {
    codec: Codec,
    table: usize,
    rows: usize,
    ordinal: Ordinal,
    times: (i64, i64),
}

fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.resize(start + HEADER_LEN, 0);
    start
}

fn finish(out: &mut [u8], start: usize, facts: FrameFacts) {
    let (header, payload) = out[start..].split_at_mut(HEADER_LEN);
    let FrameFacts { codec, table, rows, ordinal, times } = facts;
    let frame = FrameHeader {
        codec,
        table,
        rows,
        sequence: ordinal.sequence,
        before: ordinal.before,
        least_time: times.0,
        greatest_time: times.1,
        payload_len: payload.len(),
        payload_crc: crc32fast::hash(payload),
    };
    header.copy_from_slice(&frame.encoded());
}
