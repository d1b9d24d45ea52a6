//! The order in which rows go into Parquet files: by hour, by labels, then by time.
//!
//! Rows are not sorted. A first pass over the frames of a table gives every row the number of its
//! series (the rows that agree in their hour and in all labels) and counts the rows of each; sorting
//! the series then tells where each row belongs. Rows come in order of time; where time did go
//! backwards (late rows, a stepped clock), the series concerned is sorted by itself later.
//!
//! In memory are 2 octets a row (4 where a table has more than 65,536 series), and some 100 a series.

use std::collections::BTreeMap;

use super::frames::{Payload, TableFrames};
use super::{CompactError, misfit, sort_columns};
use crate::layout::hour_of;
use crate::log::ColumnView;
use crate::schema::{ColumnKind, TableSchema};

/// Stands for a label that is null, or whose text damage took.
const NO_SYMBOL: u32 = u32::MAX;

/// The label that rows of different tables are joined by.
const DEVICE: &str = "device";

/// Hours for which the series of every symbol of the first label stand in a plain table.
const DENSE_HOURS: usize = 4;

/// The rows of one table of a segment by their series.
#[derive(Debug)]
pub(super) struct SeriesIndex {
    /// By row, in the order of the log.
    ids: Ids,
    series: Vec<Series>,
    /// The series in the order of the files.
    order: Vec<u32>,
    /// The columns that rows are sorted by.
    label_columns: Vec<usize>,
    /// Their symbols, series after series.
    labels: Vec<u32>,
    /// Which of them is the device.
    device: Option<usize>,
    facts: Vec<ColumnFacts>,
}

/// A series of the segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series {
    /// In hours since the epoch.
    pub(super) hour: i64,
    pub(super) rows: u32,
    /// Octets of all texts in its rows.
    pub(super) text_octets: u64,
    /// Whether no row is earlier than the one before it in the log.
    pub(super) in_order: bool,
    last_time: i64,
}

/// What is known of a column of all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnFacts {
    /// No row is null.
    pub(super) full: bool,
    /// Every row is.
    pub(super) all_null: bool,
}

/// The series of every row: the low half of its number, and the high one where a number needs it.
#[derive(Debug, Default)]
struct Ids {
    low: Vec<u16>,
    high: Vec<u16>,
}

impl Ids {
    fn extend(&mut self, ids: &[u32]) {
        let [low, high] = [0, 16].map(|shift| {
            move |id: &u32| u16::try_from(id >> shift & 0xffff).expect("16 bits are left")
        });
        if !self.high.is_empty() || ids.iter().any(|id| id >> 16 != 0) {
            self.high.resize(self.low.len(), 0);
            self.high.extend(ids.iter().map(high));
        }
        self.low.extend(ids.iter().map(low));
    }

    /// The numbers of `count` rows from `first` on.
    fn each(&self, first: usize, count: usize) -> impl Iterator<Item = u32> {
        let low = &self.low[first..first + count];
        let high = self.high.get(first..first + count).unwrap_or_default();
        let high = high.iter().copied().chain(std::iter::repeat(0));
        low.iter().zip(high).map(|(&low, high)| u32::from(high) << 16 | u32::from(low))
    }

    fn bytes(&self) -> usize {
        2 * (self.low.capacity() + self.high.capacity())
    }
}

impl SeriesIndex {
    /// Reads all frames of a table; `None` when one of them is damaged, or has rows of another time
    /// than its header says.
    pub(super) fn new(
        table: &TableFrames<'_>,
        symbols: &[Option<String>],
    ) -> Result<Option<Self>, CompactError> {
        let mut hours = Hours::default();
        let label_columns = sort_columns(table.schema);
        let mut levels: Vec<_> = label_columns.iter().map(|_| Level::default()).collect();
        let rows = table.frames.iter().map(super::frames::Frame::rows).sum();
        let mut ids = Ids { low: Vec::with_capacity(rows), high: Vec::new() };
        let mut series = Vec::new();
        let none = ColumnFacts { full: true, all_null: true };
        let mut facts = vec![none; table.schema.columns.len()];
        let (mut nodes, mut numbers) = (Vec::new(), Vec::new());
        let mut payload = Payload::default();
        if table.schema.columns.is_empty() {
            return Err(misfit(
                table.segment,
                table.frames.first().map_or(0, |first| first.sequence),
            ));
        }
        for frame in table.frames {
            if !table.read(frame, &mut payload)? {
                return Ok(None);
            }
            let views =
                table.columns(frame, &payload.octets).filter(|views| frame.has_times(&views[0]));
            let Some(views) = views else { return Ok(None) };
            for (facts, view) in facts.iter_mut().zip(&views) {
                facts.full &= view.is_full();
                facts.all_null &= view.is_all_null();
            }
            hours.of_rows(&views[0], frame, &mut nodes);
            for (level, &column) in levels.iter_mut().zip(&label_columns) {
                symbols_of(&views[column], symbols, frame.rows(), &mut numbers);
                level.descend(&mut nodes, &numbers, symbols.len());
            }
            count(&views, table.schema, &nodes, &mut series);
            ids.extend(&nodes);
        }
        let (order, labels) = sorted(&hours, &levels, symbols);
        for (id, series) in series.iter_mut().enumerate() {
            series.hour = hours.found[hour_of_series(&levels, id)];
        }
        let is_device = |&column: &usize| table.schema.columns[column].name == DEVICE;
        let device = label_columns.iter().position(is_device);
        Ok(Some(Self { ids, series, order, label_columns, labels, device, facts }))
    }

    /// The series by their numbers.
    pub(super) fn series(&self) -> &[Series] {
        &self.series
    }

    /// The numbers of the series in the order of the files.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The numbers of the series of `count` rows from row `first` of the log on.
    pub(super) fn of_rows(&self, first: usize, count: usize) -> impl Iterator<Item = u32> {
        self.ids.each(first, count)
    }

    /// The columns that rows are sorted by.
    pub(super) fn label_columns(&self) -> &[usize] {
        &self.label_columns
    }

    /// The symbol that a series has in the label column number `label`; `None` where it has none.
    pub(super) fn label(&self, series: u32, label: usize) -> Option<u32> {
        let symbol = self.labels[series as usize * self.label_columns.len() + label];
        (symbol != NO_SYMBOL).then_some(symbol)
    }

    /// The symbol of the device of a series.
    pub(super) fn device(&self, series: u32) -> Option<u32> {
        self.label(series, self.device?)
    }

    /// What is known of a column.
    pub(super) fn facts(&self, column: usize) -> ColumnFacts {
        self.facts[column]
    }

    /// Octets that grow with the rows.
    pub(super) fn bytes(&self) -> usize {
        self.ids.bytes()
    }
}

/// Counts the rows of a frame to their series.
fn count(views: &[ColumnView<'_>], schema: &TableSchema, nodes: &[u32], series: &mut Vec<Series>) {
    let most = nodes.iter().max().map_or(0, |&node| node as usize + 1);
    if series.len() < most {
        let new = Series { hour: 0, rows: 0, text_octets: 0, in_order: true, last_time: i64::MIN };
        series.resize(most, new);
    }
    views[0].each((0..nodes.len()).map(|row| (row, row)), |row, bits| {
        let (series, time) = (&mut series[nodes[row] as usize], bits.cast_signed());
        series.rows += 1;
        series.in_order &= series.last_time <= time;
        series.last_time = time;
    });
    let texts = views.iter().zip(&schema.columns);
    for (view, _) in
        texts.filter(|(view, column)| column.kind == ColumnKind::Text && !view.is_all_null())
    {
        for (row, &node) in nodes.iter().enumerate() {
            let octets = view.text(row).map_or(0, str::len);
            series[node as usize].text_octets += octets as u64;
        }
    }
}

/// The symbols of a label column, [`NO_SYMBOL`] where there is none.
fn symbols_of(
    view: &ColumnView<'_>,
    symbols: &[Option<String>],
    rows: usize,
    numbers: &mut Vec<u32>,
) {
    numbers.clear();
    numbers.resize(rows, NO_SYMBOL);
    view.each((0..rows).map(|row| (row, row)), |row, bits| {
        if let Some(symbol) = known(symbols, bits) {
            numbers[row] = symbol;
        }
    });
    if !view.is_full() {
        (0..rows).filter(|&row| view.is_null(row)).for_each(|row| numbers[row] = NO_SYMBOL);
    }
}

/// The symbol of that number; `None` when damage took its text.
#[inline]
pub(super) fn known(symbols: &[Option<String>], bits: u64) -> Option<u32> {
    let at = usize::try_from(bits).ok()?;
    symbols.get(at)?.as_ref()?;
    u32::try_from(bits).ok()
}

/// The hours of rows, numbered as they are met.
#[derive(Debug, Default)]
struct Hours {
    found: Vec<i64>,
    numbers: BTreeMap<i64, u32>,
}

impl Hours {
    /// The numbers of the hours of a frame's rows.
    fn of_rows(
        &mut self,
        times: &ColumnView<'_>,
        frame: &super::frames::Frame,
        nodes: &mut Vec<u32>,
    ) {
        let (least, greatest) = (hour_of(frame.least_time), hour_of(frame.greatest_time));
        nodes.clear();
        let number = self.number(least);
        nodes.resize(frame.rows(), number);
        if least != greatest {
            times.each((0..frame.rows()).map(|row| (row, row)), |row, bits| {
                nodes[row] = self.number(hour_of(bits.cast_signed()));
            });
        }
    }

    fn number(&mut self, hour: i64) -> u32 {
        *self.numbers.entry(hour).or_insert_with(|| {
            self.found.push(hour);
            narrow(self.found.len() - 1)
        })
    }
}

/// One label: numbers for what the labels before it and its own symbol say together.
#[derive(Debug, Default)]
struct Level {
    /// What is before, and the symbol, by number.
    pairs: Vec<(u32, u32)>,
    numbers: BTreeMap<(u32, u32), u32>,
    /// For the first [`DENSE_HOURS`] numbers of what is before and every symbol, the number and 1.
    dense: Vec<Vec<u32>>,
    /// What came last under each number of what is before, and what came next after each number:
    /// the interfaces of a device come in the same order in every interval.
    last: Vec<u32>,
    following: Vec<u32>,
}

impl Level {
    /// Replaces what the labels before say of each row by what this one says, too.
    fn descend(&mut self, nodes: &mut [u32], symbols: &[u32], symbol_count: usize) {
        for (node, &symbol) in nodes.iter_mut().zip(symbols) {
            *node = self.number(*node, symbol, symbol_count);
        }
    }

    #[inline]
    fn number(&mut self, before: u32, symbol: u32, symbol_count: usize) -> u32 {
        let at = before as usize;
        if symbol != NO_SYMBOL
            && let Some(&number) = self.dense.get(at).and_then(|all| all.get(symbol as usize))
            && number > 0
        {
            return number - 1;
        }
        if let Some(&last) = self.last.get(at)
            && let Some(&next) = self.following.get(last as usize)
            && self.pairs[next as usize] == (before, symbol)
        {
            self.last[at] = next;
            return next;
        }
        self.find(before, symbol, symbol_count)
    }

    #[cold]
    fn find(&mut self, before: u32, symbol: u32, symbol_count: usize) -> u32 {
        let new = narrow(self.pairs.len());
        let number = *self.numbers.entry((before, symbol)).or_insert(new);
        if number == new {
            self.pairs.push((before, symbol));
            self.following.push(new);
        }
        let at = before as usize;
        if at < DENSE_HOURS && symbol != NO_SYMBOL {
            self.dense.resize_with(self.dense.len().max(at + 1), Vec::new);
            self.dense[at].resize(symbol_count, 0);
            self.dense[at][symbol as usize] = number + 1;
        }
        if self.last.len() <= at {
            self.last.resize(at + 1, number);
        }
        let last = std::mem::replace(&mut self.last[at], number);
        self.following[last as usize] = number;
        number
    }
}

/// The number of the hour of a series.
fn hour_of_series(levels: &[Level], id: usize) -> usize {
    levels.iter().rev().fold(id, |node, level| level.pairs[node].0 as usize)
}

/// The series in the order of their hours and labels, and the symbols of their labels.
fn sorted(hours: &Hours, levels: &[Level], symbols: &[Option<String>]) -> (Vec<u32>, Vec<u32>) {
    let ranks = ranks_of(symbols);
    let rank = |symbol: u32| ranks.get(symbol as usize).copied().unwrap_or(0);
    let mut places = places_by(hours.found.len(), |hour| (hours.found[hour], 0_u32));
    for level in levels {
        places = places_by(level.pairs.len(), |node| {
            let (before, symbol) = level.pairs[node];
            (places[before as usize], rank(symbol))
        });
    }
    let mut order = vec![0; places.len()];
    for (id, &place) in places.iter().enumerate() {
        order[place as usize] = narrow(id);
    }
    let mut labels = vec![NO_SYMBOL; order.len() * levels.len()];
    for id in 0..order.len() {
        let mut node = id;
        for (at, level) in levels.iter().enumerate().rev() {
            let (before, symbol) = level.pairs[node];
            labels[id * levels.len() + at] = symbol;
            node = before as usize;
        }
    }
    (order, labels)
}

/// The place of each of `count` things when they are sorted by a key.
fn places_by<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut order: Vec<_> = (0..count).collect();
    order.sort_by_key(|&at| key(at));
    let mut places = vec![0; count];
    for (place, at) in order.into_iter().enumerate() {
        places[at] = narrow(place);
    }
    places
}

/// For each symbol its rank among the texts; 0 is for null.
fn ranks_of(symbols: &[Option<String>]) -> Vec<u32> {
    let places = places_by(symbols.len(), |symbol| &symbols[symbol]);
    places.into_iter().map(|place| place + 1).collect()
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("a segment is bounded by its rows")
}
