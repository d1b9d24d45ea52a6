//! The end of a running recording's log, read while it is written.
//!
//! Segments are read behind where they were read last; one that has been compacted meanwhile stays
//! readable through its open file, and the next one follows it. Only frames of tables that somebody
//! wants are decoded. Nothing here can be felt by the writer: what is read is in the page cache.

use std::collections::BTreeMap;

use meikyo_recording::files;
use meikyo_recording::layout::SegmentFile;
use meikyo_recording::log::FrameHeader;
use meikyo_recording::rate::{Finding, Updates};
use meikyo_recording::read::Problem;
use meikyo_recording::schema::role::{answers, findings, health};
use meikyo_recording::schema::{Name, Role, State};
use meikyo_recording::segment::{ReadSegmentError, SegmentReader};
use meikyo_recording::tables::events;
use meikyo_recording::{Batch, ColumnKind, ReadError, TableSchema};

use crate::frames::{Event, Interval};
use crate::opened::Opened;
use crate::readings::{Poll, Polls, Readings};
use crate::wish::Wish;

/// From `time` on the value of `series` (device, table, instance, column) is updated so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) series: [String; 4],
    pub(super) time: i64,
    pub(super) updates: Updates,
}

/// Rows that one look at the log takes at most: who is behind catches up in several, and memory does not
/// grow with how far that is.
const ROWS_MAX: usize = 50_000;

/// What a chunk of the log held, as far as it is wanted.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) polls: Polls,
    /// By wish.
    pub(super) readings: Vec<Readings>,
    pub(super) intervals: Vec<Interval>,
    pub(super) events: Vec<Event>,
    /// Findings about freshness.
    pub(super) findings: Vec<Found>,
    /// The newest due instant of the rows, ns since the epoch.
    pub(super) newest: i64,
    /// Rows that were read for it.
    rows: usize,
}

impl Chunk {
    /// Empties it for the next rows; polls are remembered a little longer.
    pub(super) fn begin(&mut self, wishes: &[&Wish]) {
        self.polls.begin_chunk();
        self.readings = wishes.iter().map(|wish| Readings::new(wish.columns.len())).collect();
        self.intervals.clear();
        self.events.clear();
        self.findings.clear();
        self.rows = 0;
    }

    /// Whether nothing came that a viewer sees.
    pub(super) fn is_empty(&self) -> bool {
        self.readings.iter().all(|readings| readings.due.is_empty())
            && self.intervals.is_empty()
            && self.events.is_empty()
            && self.polls.newest().next().is_none()
    }
}

/// The log of a recording from some instant on.
#[derive(Debug, Default)]
pub(super) struct Tail {
    streams: BTreeMap<String, Stream>,
    /// Rows that are all before this instant are passed over.
    from: i64,
}

/// One stream's newest segment.
#[derive(Debug)]
struct Stream {
    first: u64,
    reader: SegmentReader,
    batches: Vec<Batch>,
    /// Whether a look ended before everything was read.
    has_more: bool,
    /// Series by table and symbols of the labels, in this segment.
    series: BTreeMap<(usize, Vec<Option<u64>>), u32>,
}

impl Stream {
    /// Opens a segment where rows can lie that are wanted and not all before `from`.
    fn open(
        segment: SegmentFile,
        from: i64,
        wishes: &[&Wish],
    ) -> Result<Option<Self>, ReadSegmentError> {
        let first = segment.first;
        let wanted = |table: &TableSchema, (_, greatest): (i64, i64)| {
            greatest >= from && is_wanted(table, wishes)
        };
        let Some(reader) = SegmentReader::open_where(segment, wanted)? else {
            return Ok(None);
        };
        let tables = reader.head().tables.iter().enumerate();
        let batches = tables.map(|(table, schema)| Batch::new(table, schema)).collect();
        Ok(Some(Self { first, reader, batches, has_more: false, series: BTreeMap::new() }))
    }
}

impl Tail {
    /// The log from `from` on.
    pub(super) fn new(from: i64) -> Self {
        Self { streams: BTreeMap::new(), from }
    }

    /// Whether there are rows that the last look did not take.
    pub(super) fn has_more(&self) -> bool {
        self.streams.values().any(|stream| stream.has_more)
    }

    /// Reads what the open segments hold by now; whether there was anything.
    pub(super) fn read(
        &mut self,
        opened: &Opened,
        wishes: &[&Wish],
        chunk: &mut Chunk,
    ) -> Result<bool, ReadError> {
        let mut read = false;
        for stream in self.streams.values_mut() {
            if stream.reader.refresh()? || stream.has_more {
                read |= drain(stream, self.from, opened, wishes, chunk)?;
            }
        }
        Ok(read)
    }

    /// Opens segments that are new, and reads them; whether there was anything.
    pub(super) fn advance(
        &mut self,
        opened: &Opened,
        wishes: &[&Wish],
        chunk: &mut Chunk,
    ) -> Result<bool, ReadError> {
        let mut read = false;
        let listing = files::list_hours(opened.recording.dir(), |_, _| false)?;
        for segment in listing.segments {
            let name = segment.stream.clone();
            if let Some(stream) = self.streams.get_mut(&name) {
                if segment.first <= stream.first {
                    continue;
                }
                // What was written into the old one until the new one began.
                if stream.reader.refresh()? || stream.has_more {
                    read |= drain(stream, self.from, opened, wishes, chunk)?;
                }
                // The rest of it comes before the new one.
                if stream.has_more {
                    continue;
                }
            }
            if let Some(mut stream) = Stream::open(segment, self.from, wishes)? {
                read |= drain(&mut stream, self.from, opened, wishes, chunk)?;
                self.streams.insert(name, stream);
            }
        }
        Ok(read)
    }
}

/// Whether rows of a table are wanted: those that every viewer needs, and those that one wishes for.
fn is_wanted(table: &TableSchema, wishes: &[&Wish]) -> bool {
    matches!(table.role(), Role::Answers | Role::Health | Role::Events | Role::Findings)
        || wishes.iter().any(|wish| wish.table.name == table.name)
}

/// Reads everything behind the cursor of a segment.
fn drain(
    stream: &mut Stream,
    from: i64,
    opened: &Opened,
    wishes: &[&Wish],
    chunk: &mut Chunk,
) -> Result<bool, ReadError> {
    let tables = &stream.reader.head().tables;
    let names: Vec<_> = tables.iter().map(|table| table.name.clone()).collect();
    let roles: Vec<_> = tables.iter().map(TableSchema::role).collect();
    let wanted: Vec<_> = tables.iter().map(|table| is_wanted(table, wishes)).collect();
    let mut read = false;
    stream.has_more = false;
    let is_wanted = |header: &FrameHeader| wanted[header.table] && header.greatest_time >= from;
    while let Some(header) = stream.reader.next_rows(is_wanted)? {
        let table = header.table;
        if stream.reader.decode(&header, &mut stream.batches[table]).is_err() {
            // The reader counts it, and it is told below.
            continue;
        }
        read = true;
        chunk.newest = chunk.newest.max(header.greatest_time);
        match roles[table] {
            Role::Answers => take_polls(stream, table, opened, chunk),
            Role::Health => take_intervals(stream, table, chunk),
            Role::Events => take_events(stream, table, chunk),
            Role::Findings => take_findings(stream, table, chunk),
            Role::Readings | Role::Requests | Role::Clocks | Role::Samples | Role::Context => {}
        }
        for (position, wish) in wishes.iter().enumerate() {
            if wish.table.name == names[table] {
                take_readings(stream, table, opened, wish, &mut chunk.readings[position]);
            }
        }
        chunk.rows += stream.batches[table].rows();
        if chunk.rows >= ROWS_MAX {
            stream.has_more = true;
            break;
        }
    }
    if let Some(what) = stream.reader.problem(None) {
        opened.problem(&Problem { path: stream.reader.path().to_path_buf(), what });
    }
    Ok(read)
}

/// The time of a row, ns since the epoch.
fn due(batch: &Batch, row: usize) -> i64 {
    batch.bits(0, row).map_or(0, u64::cast_signed)
}

/// The series of a row.
fn series_of(stream: &mut Stream, table: usize, row: usize, opened: &Opened) -> u32 {
    let Stream { reader, batches, series, .. } = stream;
    let schema = &reader.head().tables[table];
    let batch = &batches[table];
    let labels = meikyo_recording::series::labels(schema);
    let symbols: Vec<_> = labels.map(|label| batch.bits(label, row)).collect();
    *series.entry((table, symbols)).or_insert_with_key(|(_, symbols)| {
        let text = |symbol: &Option<u64>| {
            symbol.and_then(|symbol| reader.symbol(symbol)).unwrap_or_default().to_owned()
        };
        let labels = symbols.iter().map(text).collect();
        opened.with_known_series(schema, |series| series.ordinal(labels))
    })
}

fn take_polls(stream: &mut Stream, table: usize, opened: &Opened, chunk: &mut Chunk) {
    let at = |name: &str| stream.reader.head().tables[table].column(name);
    let (pdu, state) = (at(answers::PDU.name()), at(answers::STATE.name()));
    let (received, uptime) = (at(answers::RECEIVED_US.name()), at(answers::UPTIME_CS.name()));
    for row in 0..stream.batches[table].rows() {
        let device = series_of(stream, table, row, opened);
        let batch = &stream.batches[table];
        let bits = |column: Option<usize>| batch.bits(column?, row);
        let due = due(batch, row);
        let word = bits(state).and_then(|symbol| stream.reader.symbol(symbol));
        let after = bits(received).map(|us| us.cast_signed().saturating_mul(1_000));
        let poll = Poll {
            pdu: bits(pdu),
            received: after.map(|after| due.saturating_add(after)),
            uptime_cs: bits(uptime),
            state: word.map_or(u8::MAX, State::rank),
        };
        chunk.polls.add(device, due, poll);
    }
}

fn take_readings(
    stream: &mut Stream,
    table: usize,
    opened: &Opened,
    wish: &Wish,
    readings: &mut Readings,
) {
    let schema = stream.reader.head().tables[table].clone();
    let position = |column: usize| {
        let column = &wish.table.columns[column];
        let found = schema.column(&column.name);
        found.filter(|&found| schema.columns[found].kind == column.kind)
    };
    let columns: Vec<_> = wish.columns.iter().map(|&column| position(column)).collect();
    let hints = wish.hints().map(|hint| hint.and_then(position));
    for row in 0..stream.batches[table].rows() {
        let series = series_of(stream, table, row, opened);
        let batch = &stream.batches[table];
        readings.due.push(due(batch, row));
        readings.series.push(series);
        for (values, column) in readings.values.iter_mut().zip(&columns) {
            values.push(column.and_then(|column| batch.bits(column, row)));
        }
        for (values, column) in readings.hints.iter_mut().zip(hints) {
            values.push(column.and_then(|column| batch.bits(column, row)));
        }
    }
}

fn take_intervals(stream: &Stream, table: usize, chunk: &mut Chunk) {
    let (schema, batch) = (&stream.reader.head().tables[table], &stream.batches[table]);
    for row in 0..batch.rows() {
        let bits = |name: &str| batch.bits(schema.column(name)?, row);
        let count = |of: Name<u64>| bits(of.name()).unwrap_or(0);
        chunk.intervals.push(Interval {
            time: due(batch, row),
            ok: count(health::OK),
            late: count(health::LATE),
            missed: count(health::MISSED),
            errors: count(health::ERRORS),
            skipped: count(health::SKIPPED),
            complete_us: bits(health::COMPLETE_US.name()).map(u64::cast_signed),
        });
    }
}

fn take_events(stream: &Stream, table: usize, chunk: &mut Chunk) {
    let (schema, batch) = (&stream.reader.head().tables[table], &stream.batches[table]);
    let text = |name: &str, row: usize| text_of(stream, schema, batch, name, row);
    for row in 0..batch.rows() {
        chunk.events.push(Event {
            time: due(batch, row),
            device: text(events::DEVICE.name(), row),
            event: text(events::EVENT.name(), row).unwrap_or_default(),
            object: text(events::OBJECT.name(), row),
            text: text(events::TEXT.name(), row),
            count: schema.column(events::COUNT.name()).and_then(|column| batch.bits(column, row)),
        });
    }
}

fn take_findings(stream: &Stream, table: usize, chunk: &mut Chunk) {
    let (schema, batch) = (&stream.reader.head().tables[table], &stream.batches[table]);
    for row in 0..batch.rows() {
        let text = |name: &str| text_of(stream, schema, batch, name, row);
        let bits = |name: &str| batch.bits(schema.column(name)?, row);
        let time = due(batch, row);
        let class = text(findings::CLASS.name());
        let finding = Finding {
            class: class.as_deref(),
            period_us: bits(findings::PERIOD_US.name()),
            period_us_max: bits(findings::PERIOD_US_MAX.name()),
            phase_us: bits(findings::PHASE_US.name()).map(u64::cast_signed),
        };
        let Some(updates) = finding.updates(time) else { continue };
        let series = [findings::DEVICE, findings::TABLE, findings::INSTANCE, findings::COLUMN];
        let series = series.map(|label| text(label.name()).unwrap_or_default());
        chunk.findings.push(Found { series, time, updates });
    }
}

fn text_of(
    stream: &Stream,
    schema: &TableSchema,
    batch: &Batch,
    name: &str,
    row: usize,
) -> Option<String> {
    let column = schema.column(name)?;
    match schema.columns[column].kind {
        ColumnKind::Text => batch.text(column, row).map(str::to_owned),
        _ => stream.reader.symbol(batch.bits(column, row)?).map(str::to_owned),
    }
}
