//! The data pages of a symbol column.

use crate::parquet_file::chunk::{DataPage, PAGE_ROWS};
use crate::parquet_file::hybrid::Hybrid;

/// The index of rows that are null.
pub(super) const NULL: u32 = u32::MAX;

/// Rows one after the other that have the same text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) index: u32,
    pub(super) rows: usize,
}

/// The data page of those rows.
pub(super) fn data_page(runs: &[Run], texts: &[String], width: u8) -> DataPage {
    let mut levels = Hybrid::new(1, Vec::new());
    let mut indexes = Hybrid::new(width, vec![width]);
    let (mut rows, mut nulls) = (0, 0);
    for run in runs {
        rows += run.rows;
        levels.put(u32::from(run.index != NULL), run.rows);
        if run.index == NULL {
            nulls += run.rows;
        } else {
            indexes.put(run.index, run.rows);
        }
    }
    let octets = |(least, greatest): (&str, &str)| (least.into(), greatest.into());
    DataPage {
        rows,
        nulls,
        bounds: bounds(runs, texts).map(octets),
        levels: levels.finish(),
        values: indexes.finish(),
        compressed: None,
    }
}

/// The least and the greatest text of those rows; `None` when all are null.
pub(super) fn bounds<'a>(runs: &[Run], texts: &'a [String]) -> Option<(&'a str, &'a str)> {
    let used = runs.iter().filter(|run| run.index != NULL);
    let texts = used.map(|run| texts[run.index as usize].as_str());
    Some((texts.clone().min()?, texts.max()?))
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
