//! Payloads are taken apart here; no octets can make this panic.

use super::encode::{FORM_ALL_NULL, FORM_FULL, FORM_NULLABLE};
use super::{Head, le_u32, le_u64};
use crate::batch::Batch;
use crate::schema::{ColumnKind, TableSchema};

/// The head of a segment from its payload; `None` when it is not one.
pub(crate) fn head_of(payload: &[u8]) -> Option<Head> {
    let head: Head = serde_json::from_slice(payload).ok()?;
    // Whoever reads rows takes the first column for their times.
    head.tables.iter().all(|table| table.check_form().is_ok()).then_some(head)
}

/// The number of the first symbol and the texts; `None` when the payload is not of that codec.
pub(crate) fn symbols_of(payload: &[u8], count: usize) -> Option<(usize, Vec<String>)> {
    let mut octets = Octets(payload);
    let first = usize::try_from(le_u32(octets.take(4)?, 0)).ok()?;
    let mut texts = Vec::new();
    for _ in 0..count {
        let len = usize::try_from(le_u32(octets.take(4)?, 0)).ok()?;
        texts.push(String::from_utf8(octets.take(len)?.to_vec()).ok()?);
    }
    octets.0.is_empty().then_some((first, texts))
}

/// One column of a frame, its values where they lie in the payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnView<'a> {
    /// Octets a value above `base`: 0, 1, 2, 4 or 8.
    pub(super) width: u8,
    pub(super) base: u64,
    /// One bit a row, set where it is null; empty where no row is.
    pub(super) nulls: &'a [u8],
    pub(super) values: &'a [u8],
    /// Octets of texts; the column's values are end offsets in them.
    pub(super) octets: &'a [u8],
    /// Whether every row is null.
    all_null: bool,
}

impl<'a> ColumnView<'a> {
    const ALL_NULL: Self =
        Self { width: 0, base: 0, nulls: &[], values: &[], octets: &[], all_null: true };

    /// Whether no row has a value.
    pub(crate) fn is_all_null(&self) -> bool {
        self.all_null
    }

    /// Whether every row has a value.
    pub(crate) fn is_full(&self) -> bool {
        !self.all_null && self.nulls.is_empty()
    }

    /// Whether `row` has no value.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.all_null
            || (!self.nulls.is_empty()
                && self.nulls.get(row / 8).is_none_or(|octet| octet >> (row % 8) & 1 == 1))
    }

    /// The raw bits that all rows with a value have, where the payload says that they have the same.
    pub(crate) fn constant(&self) -> Option<u64> {
        (self.width == 0).then_some(self.base)
    }

    /// The raw bits of `row`, whatever they are where it is null.
    #[inline]
    pub(crate) fn bits(&self, row: usize) -> u64 {
        let above = match self.width {
            0 => 0,
            1 => u64::from(self.values[row]),
            2 => u64::from(u16::from_le_bytes([self.values[2 * row], self.values[2 * row + 1]])),
            4 => u64::from(le_u32(self.values, 4 * row)),
            _ => le_u64(self.values, 8 * row),
        };
        self.base.wrapping_add(above)
    }

    /// Hands `(row, to)` on as `to` and the raw bits of the row; the width is looked at once.
    #[inline]
    pub(crate) fn each(
        &self,
        rows: impl Iterator<Item = (usize, usize)>,
        mut take: impl FnMut(usize, u64),
    ) {
        let base = self.base;
        match self.width {
            0 => rows.for_each(|(_, to)| take(to, base)),
            1 => rows.for_each(|(row, to)| take(to, base.wrapping_add(self.values[row].into()))),
            2 => {
                let (values, _) = self.values.as_chunks();
                let above = |row: usize| u16::from_le_bytes(values[row]).into();
                rows.for_each(|(row, to)| take(to, base.wrapping_add(above(row))));
            }
            4 => {
                let (values, _) = self.values.as_chunks();
                let above = |row: usize| u32::from_le_bytes(values[row]).into();
                rows.for_each(|(row, to)| take(to, base.wrapping_add(above(row))));
            }
            _ => {
                let (values, _) = self.values.as_chunks();
                let above = |row: usize| u64::from_le_bytes(values[row]);
                rows.for_each(|(row, to)| take(to, base.wrapping_add(above(row))));
            }
        }
    }

    /// The text of `row`; `None` where it is null, or its offsets lie outside of the payload.
    pub(crate) fn text(&self, row: usize) -> Option<&'a str> {
        if self.is_null(row) {
            return None;
        }
        let begin = if row == 0 { 0 } else { self.bits(row - 1) };
        let range = usize::try_from(begin).ok()?..usize::try_from(self.bits(row)).ok()?;
        std::str::from_utf8(self.octets.get(range)?).ok()
    }
}

/// The columns of a frame of `rows` rows; `None` when the payload is not of that schema.
pub(crate) fn columns_of<'a>(
    payload: &'a [u8],
    rows: usize,
    schema: &TableSchema,
) -> Option<Vec<ColumnView<'a>>> {
    let mut octets = Octets(payload);
    let mut columns = Vec::with_capacity(schema.columns.len());
    for column in &schema.columns {
        columns.push(column_of(&mut octets, rows, column.kind)?);
    }
    octets.0.is_empty().then_some(columns)
}

pub(super) fn column_of<'a>(
    octets: &mut Octets<'a>,
    rows: usize,
    kind: ColumnKind,
) -> Option<ColumnView<'a>> {
    let form = octets.take(1)?[0];
    if form == FORM_ALL_NULL {
        return Some(ColumnView::ALL_NULL);
    }
    if form != FORM_FULL && form != FORM_NULLABLE {
        return None;
    }
    let width = octets.take(1)?[0];
    if !matches!(width, 0 | 1 | 2 | 4 | 8) {
        return None;
    }
    let base = le_u64(octets.take(8)?, 0);
    let nulls = if form == FORM_NULLABLE { octets.take(rows.div_ceil(8))? } else { &[] };
    let values = octets.take(rows.checked_mul(usize::from(width))?)?;
    let texts = if kind == ColumnKind::Text {
        let len = usize::try_from(le_u32(octets.take(4)?, 0)).ok()?;
        octets.take(len)?
    } else {
        &[]
    };
    Some(ColumnView { width, base, nulls, values, octets: texts, all_null: false })
}

/// Decodes the rows of a frame into `batch`; `None` when the payload is not of that schema.
///
/// Columns without any value stay empty, as in a batch that is being filled.
pub(crate) fn decode_rows(
    payload: &[u8],
    rows: usize,
    schema: &TableSchema,
    batch: &mut Batch,
) -> Option<()> {
    batch.clear();
    let views = columns_of(payload, rows, schema)?;
    for (view, column) in views.iter().zip(&mut batch.columns) {
        if view.all_null {
            continue;
        }
        column.bits.extend((0..rows).map(|row| view.bits(row)));
        column.octets.extend_from_slice(view.octets);
        if !view.nulls.is_empty() {
            column.nulls.resize(rows.div_ceil(64), 0);
            for row in (0..rows).filter(|&row| view.is_null(row)) {
                column.nulls[row / 64] |= 1 << (row % 64);
            }
        }
        if column.kind == ColumnKind::Text && (0..rows).any(|row| !view.offsets_fit(row)) {
            return None;
        }
    }
    batch.rows = rows;
    Some(())
}

impl ColumnView<'_> {
    fn offsets_fit(&self, row: usize) -> bool {
        self.is_null(row) || self.text(row).is_some()
    }
}

/// Octets that are taken apart from their begin.
pub(super) struct Octets<'a>(pub(super) &'a [u8]);

impl<'a> Octets<'a> {
    /// The next `len` octets; `None` when there are fewer.
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }
}
