//! The data pages of a symbol column.

use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page};
use parquet::errors::ParquetError;

use crate::parquet_file::hybrid::Hybrid;

/// Rows of a data page.
pub(in crate::parquet_file) const PAGE_ROWS: usize = 20_000;

/// The index of rows that are null.
pub(super) const NULL: u32 = u32::MAX;

/// Rows one after the other that have the same text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) index: u32,
    pub(super) rows: usize,
}

/// A data page that was not written yet.
#[derive(Debug)]
pub(super) struct DataPage<'a> {
    pub(super) rows: usize,
    pub(super) nulls: usize,
    /// The least and the greatest text; `None` when all rows are null.
    pub(super) bounds: Option<(&'a str, &'a str)>,
    levels: Vec<u8>,
    indexes: Vec<u8>,
}

impl<'a> DataPage<'a> {
    pub(super) fn new(runs: &[Run], texts: &'a [String], width: u8) -> Self {
        let mut levels = Hybrid::new(1, Vec::new());
        let mut indexes = Hybrid::new(width, vec![width]);
        let mut page = Self { rows: 0, nulls: 0, bounds: None, levels: vec![], indexes: vec![] };
        // The run before, so that null rows between equal levels do not end a run of levels.
        let mut level = (0, 0);
        for run in runs {
            page.rows += run.rows;
            let defined = u32::from(run.index != NULL);
            if level.0 != defined {
                levels.put(level.0, std::mem::take(&mut level.1));
                level.0 = defined;
            }
            level.1 += run.rows;
            if run.index == NULL {
                page.nulls += run.rows;
                continue;
            }
            indexes.put(run.index, run.rows);
            let text = texts[run.index as usize].as_str();
            let (least, greatest) = page.bounds.get_or_insert((text, text));
            *least = text.min(least);
            *greatest = text.max(greatest);
        }
        levels.put(level.0, level.1);
        page.levels = levels.finish();
        page.indexes = indexes.finish();
        page
    }

    pub(super) fn compressed(self) -> Result<CompressedPage, ParquetError> {
        let def_levels_byte_len = narrow(self.levels.len())?;
        let mut buf = self.levels;
        buf.extend_from_slice(&self.indexes);
        let size = buf.len();
        let page = Page::DataPageV2 {
            buf: buf.into(),
            num_values: narrow(self.rows)?,
            encoding: Encoding::RLE_DICTIONARY,
            num_nulls: narrow(self.nulls)?,
            num_rows: narrow(self.rows)?,
            def_levels_byte_len,
            rep_levels_byte_len: 0,
            is_compressed: false,
            statistics: None,
        };
        Ok(CompressedPage::new(page, size))
    }
}

/// The runs of each page; a run that crosses the border of a page is cut.
pub(super) fn pages_of(runs: &[Run]) -> Vec<Vec<Run>> {
    let mut pages = Vec::new();
    let mut page = Vec::new();
    let mut room = PAGE_ROWS;
    for run in runs {
        let mut rest = run.rows;
        while rest > 0 {
            let rows = rest.min(room);
            page.push(Run { rows, ..*run });
            rest -= rows;
            room -= rows;
            if room == 0 {
                pages.push(std::mem::take(&mut page));
                room = PAGE_ROWS;
            }
        }
    }
    if !page.is_empty() {
        pages.push(page);
    }
    pages
}

/// A count of rows or octets as the format has it; they are bounded by the rows of a group.
pub(super) fn signed<T: TryInto<i64>>(count: T) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

pub(super) fn narrow<T: TryFrom<usize>>(count: usize) -> Result<T, ParquetError> {
    T::try_from(count).map_err(|_| ParquetError::General(format!("a page of {count} octets")))
}
