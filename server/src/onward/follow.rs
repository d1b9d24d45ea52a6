//! The thread that reads what was written and posts it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use meikyo_live::line_protocol::Lines;
use meikyo_live::values::{Value, Values};
use meikyo_recording::files;
use meikyo_recording::layout::{ParquetFile, SegmentFile};
use meikyo_recording::read::Wanted;
use meikyo_recording::segment::SegmentReader;
use meikyo_recording::summary::SUFFIX;
use meikyo_recording::{Batch, ColumnKind, Recording, Selection, TableSchema};
use meikyo_units::{Nanos, WallTime, glob};

use super::remote_write::{Body, Part, Series};
use super::sent::{Place, Sent};
use super::target::{Line, Posted};
use super::{BODY_MAX, Form, OnwardOptions, SharedCounts};

/// How long is waited before a request is made again, at first and at most.
const AGAIN_AFTER: Nanos = Nanos::from_millis(500);
const AGAIN_AFTER_MAX: Nanos = Nanos::from_secs(15);

/// Why the thread does not go on with what it does.
#[derive(Debug)]
pub(super) enum Halt {
    /// The server ends.
    Ended,
    /// Something cannot be read.
    Unreadable(io::Error),
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Unreadable(io::Error::other(error))
    }
}

/// A segment that is read on.
#[derive(Debug)]
struct Open {
    first: u64,
    reader: SegmentReader,
    /// By the position of the table; `None` for those that are not sent.
    rows: Vec<Option<Rows>>,
    batches: Vec<Batch>,
    /// The last frame of rows that was passed, sent or not.
    last: u64,
}

/// What becomes of the rows of a table.
#[derive(Debug)]
enum Rows {
    Lines(Lines),
    Series(Series),
}

/// What waits to be posted.
#[derive(Debug, Default)]
struct Waiting {
    /// Lines, and how many they are.
    text: String,
    rows: u64,
    /// Values of series.
    values: Body,
    /// By stream: the last frame whose rows are in it, or were.
    up_to: BTreeMap<String, Place>,
}

/// What is posted at once.
#[derive(Debug)]
enum Request {
    Lines(String, u64),
    Series(Part),
}

impl Request {
    /// The rows or values in it.
    fn count(&self) -> u64 {
        match self {
            Self::Lines(_, rows) => *rows,
            Self::Series(part) => part.values(),
        }
    }

    fn halves(&self) -> Option<[Self; 2]> {
        match self {
            Self::Lines(..) => None,
            Self::Series(part) => part.halves().map(|halves| halves.map(Self::Series)),
        }
    }
}

impl Waiting {
    fn len(&self) -> usize {
        self.text.len() + self.values.len()
    }

    fn take(&mut self) -> Vec<Request> {
        let rows = std::mem::take(&mut self.rows);
        let text = std::mem::take(&mut self.text);
        let lines = (!text.is_empty()).then_some(Request::Lines(text, rows));
        lines.into_iter().chain(self.values.take().into_iter().map(Request::Series)).collect()
    }

    /// Adds a row, whose value in each column `value` gives.
    fn push<'a>(&mut self, rows: &mut Rows, value: impl Fn(usize) -> Value<'a>) {
        match rows {
            Rows::Lines(lines) => self.rows += u64::from(lines.push(&mut self.text, value)),
            Rows::Series(series) => series.push(&mut self.values, value),
        }
    }
}

impl Rows {
    /// Begins a block of rows.
    fn begin_block(&mut self) {
        if let Self::Lines(lines) = self {
            lines.begin_block();
        }
    }
}

/// The thread's work.
#[derive(Debug)]
pub(super) struct Follower {
    dir: PathBuf,
    /// The cluster that the recording is of.
    cluster: Option<String>,
    options: OnwardOptions,
    line: Line,
    counts: SharedCounts,
    sent: Sent,
    open: BTreeMap<String, Open>,
    /// Streams whose place was compared with their log.
    compared: BTreeSet<String>,
    waiting: Waiting,
    has_looked: bool,
    is_told: bool,
}

impl Follower {
    pub(super) fn new(
        (dir, cluster): (PathBuf, Option<String>),
        options: OnwardOptions,
        line: Line,
        counts: SharedCounts,
    ) -> Self {
        let sent = Sent::read(&dir, options.form, &line.shown());
        Self {
            dir,
            cluster,
            options,
            line,
            counts,
            sent,
            open: BTreeMap::new(),
            compared: BTreeSet::new(),
            waiting: Waiting::default(),
            has_looked: false,
            is_told: false,
        }
    }

    /// Sends what was written since the last time.
    ///
    /// # Errors
    /// [`Halt::Ended`] when the other end of `stopped` is gone; what cannot be read is tried again.
    pub(super) fn go_on(&mut self, stopped: &Receiver<()>) -> Result<(), Halt> {
        match self.look(stopped) {
            Ok(()) => self.is_told = false,
            Err(Halt::Ended) => return Err(Halt::Ended),
            Err(Halt::Unreadable(error)) if !self.is_told => {
                let dir = self.dir.display();
                tracing::warn!(%error, %dir, "rows cannot be sent on; it is tried again");
                self.is_told = true;
            }
            Err(Halt::Unreadable(_)) => {}
        }
        Ok(())
    }

    fn look(&mut self, stopped: &Receiver<()>) -> Result<(), Halt> {
        let listing = files::list_hours(&self.dir, |_, _| false)?;
        let mut streams: BTreeMap<String, Vec<SegmentFile>> = BTreeMap::new();
        for segment in listing.segments {
            streams.entry(segment.stream.clone()).or_default().push(segment);
        }
        let mut without: BTreeSet<String> =
            self.open.keys().filter(|stream| !streams.contains_key(*stream)).cloned().collect();
        if !std::mem::replace(&mut self.has_looked, true) {
            let files = self.files(|_| true)?;
            let names = files.into_iter().map(|file| file.name.stream);
            without.extend(names.filter(|name| !streams.contains_key(name)));
        }
        for (stream, segments) in streams {
            self.of_stream(&stream, segments, stopped)?;
        }
        // Streams that were closed: all that is left of them are files.
        for stream in without {
            self.finish_gone(&stream, &[], stopped)?;
            self.of_files(&stream, u64::MAX, stopped)?;
        }
        self.post(stopped)
    }

    /// The last frame of a stream whose rows are sent, or wait to be.
    fn place(&self, stream: &str) -> Option<u64> {
        let waits = self.waiting.up_to.get(stream).copied();
        waits.or_else(|| self.sent.place_of(stream)).map(|place| place.frame)
    }

    /// Notes that the rows of a stream up to a frame wait to be sent.
    fn reach(&mut self, stream: &str, frame: u64, payload_crc: Option<u32>) {
        self.waiting.up_to.insert(stream.to_owned(), Place { frame, payload_crc });
    }

    /// Goes back to the begin of a segment that lost frames which were sent already, as happens to what a
    /// machine that loses power has not synced: others have their numbers since.
    fn compare(&mut self, stream: &str, segments: &[SegmentFile]) -> Result<(), Halt> {
        if !self.compared.insert(stream.to_owned()) {
            return Ok(());
        }
        let Some(place) = self.sent.place_of(stream) else { return Ok(()) };
        let before = segments.iter().rev().find(|segment| segment.first <= place.frame);
        let Some(segment) = before else { return Ok(()) };
        let is_last = segments.last().is_some_and(|last| last.first == segment.first);
        let (mut last, mut found) = (0, None);
        let reader = SegmentReader::from_file(segment.file.try_clone()?, &segment.path)?;
        if let Some(mut reader) = reader {
            reader.next_rows(|header| {
                last = header.sequence;
                if header.sequence == place.frame {
                    found = Some(header.payload_crc);
                }
                false
            })?;
        }
        let is_other = place.payload_crc.is_some() && found != place.payload_crc;
        if (is_last && last < place.frame) || is_other {
            let first = segment.first;
            tracing::warn!(stream, first, "frames that were sent are not in the log any more");
            self.reach(stream, first.saturating_sub(1), None);
        }
        Ok(())
    }

    /// Sends what the segments of a stream hold, in their order.
    fn of_stream(
        &mut self,
        stream: &str,
        segments: Vec<SegmentFile>,
        stopped: &Receiver<()>,
    ) -> Result<(), Halt> {
        self.compare(stream, &segments)?;
        let firsts: Vec<u64> = segments.iter().map(|segment| segment.first).collect();
        self.finish_gone(stream, &firsts, stopped)?;
        for (segment, next) in
            segments.into_iter().zip(firsts.iter().skip(1).map(Some).chain([None]))
        {
            let end = next.map(|first| first.saturating_sub(1));
            if end.is_some_and(|end| self.place(stream).is_some_and(|place| end <= place)) {
                continue;
            }
            self.of_files(stream, segment.first.saturating_sub(1), stopped)?;
            let known = self.open.remove(stream).filter(|open| open.first == segment.first);
            let open = match known {
                Some(open) => Some(open),
                None => self.opened(segment)?,
            };
            let Some(mut open) = open else { continue };
            self.read_on(stream, &mut open, stopped)?;
            match end {
                // Another one follows it: nothing was appended to it since it was listed, and frames between
                // the two are in Parquet files or gone.
                Some(end) => {
                    let place = self.place(stream).unwrap_or(0).max(open.last.min(end));
                    self.reach(stream, place, None);
                    self.of_files(stream, end, stopped)?;
                }
                None => drop(self.open.insert(stream.to_owned(), open)),
            }
        }
        Ok(())
    }

    /// Reads a segment to its end that was deleted while it was read: its file is still there.
    fn finish_gone(
        &mut self,
        stream: &str,
        there: &[u64],
        stopped: &Receiver<()>,
    ) -> Result<(), Halt> {
        if self.open.get(stream).is_none_or(|open| there.contains(&open.first)) {
            return Ok(());
        }
        let Some(mut open) = self.open.remove(stream) else { return Ok(()) };
        self.read_on(stream, &mut open, stopped)
    }

    fn rows_of(&self, table: &TableSchema) -> Option<Rows> {
        let patterns = &self.options.tables;
        let is_wanted = patterns.is_empty()
            || patterns.iter().any(|pattern| glob::matches(pattern, &table.name));
        if !is_wanted {
            return None;
        }
        match self.options.form {
            Form::Lines(layout) => {
                let lines = Lines::new(table, layout);
                Some(Rows::Lines(match &self.cluster {
                    Some(cluster) => lines.of_cluster(cluster),
                    None => lines,
                }))
            }
            Form::RemoteWrite => {
                let own = self.dir.file_name().map(|name| name.to_string_lossy().into_owned());
                Series::new(table, &own.unwrap_or_default()).map(Rows::Series)
            }
        }
    }

    /// Opens a segment; `None` when it holds nothing yet.
    fn opened(&self, segment: SegmentFile) -> Result<Option<Open>, Halt> {
        let first = segment.first;
        let reader = SegmentReader::from_file(segment.file, &segment.path)?;
        Ok(reader.map(|reader| {
            let tables = &reader.head().tables;
            let rows = tables.iter().map(|table| self.rows_of(table)).collect();
            let batches = tables.iter().enumerate().map(|(at, table)| Batch::new(at, table));
            let batches = batches.collect();
            Open { first, reader, rows, batches, last: first }
        }))
    }

    /// Takes frames of a segment that came since the last time.
    fn read_on(
        &mut self,
        stream: &str,
        open: &mut Open,
        stopped: &Receiver<()>,
    ) -> Result<(), Halt> {
        let mut place = self.place(stream).unwrap_or(0);
        open.reader.refresh()?;
        loop {
            let (rows, last) = (&open.rows, &mut open.last);
            let header = open.reader.next_rows(|header| {
                *last = header.sequence;
                header.sequence > place && rows.get(header.table).is_some_and(Option::is_some)
            })?;
            let Some(header) = header else { return Ok(()) };
            place = header.sequence;
            let batch = &mut open.batches[header.table];
            // What cannot be read is told by whoever reads the recording.
            if open.reader.decode(&header, batch).is_ok()
                && let Some(rows) = &mut open.rows[header.table]
            {
                let schema = &open.reader.head().tables[header.table];
                rows.begin_block();
                for row in 0..batch.rows() {
                    let value = |column| value_of(schema, batch, &open.reader, column, row);
                    self.waiting.push(rows, value);
                    if self.waiting.len() >= BODY_MAX {
                        self.post(stopped)?;
                    }
                }
            }
            self.reach(stream, place, Some(header.payload_crc));
        }
    }

    /// Sends what only Parquet files have of the frames of a stream up to one, and counts frames that are in
    /// neither. Where nothing was sent before, nothing is missed before what there is.
    fn of_files(&mut self, stream: &str, up_to: u64, stopped: &Receiver<()>) -> Result<(), Halt> {
        let before = self.place(stream);
        let place = before.unwrap_or(0);
        if place >= up_to {
            return Ok(());
        }
        let files = self.files(|file| {
            let name = &file.name;
            name.stream == stream && name.last > place && name.first <= up_to
        })?;
        let (mut expected, mut gone) = (before.map(|place| place + 1), 0);
        for file in files {
            let (first, last) = (file.name.first, file.name.last);
            gone += expected.map_or(0, |expected| first.saturating_sub(expected));
            expected = Some(expected.map_or(last + 1, |expected| expected.max(last + 1)));
            self.of_file(file, stopped)?;
        }
        let to_be = up_to.saturating_add(1);
        if up_to < u64::MAX {
            gone += expected.map_or(0, |expected| to_be.saturating_sub(expected));
        }
        self.counts().gone_frames += gone;
        let reached = if up_to < u64::MAX { Some(up_to) } else { expected.map(|next| next - 1) };
        if let Some(reached) = reached {
            self.reach(stream, reached, None);
        }
        Ok(())
    }

    /// The Parquet files of tables that are not summaries, in the order of their frames.
    fn files(&self, is_wanted: impl Fn(&ParquetFile) -> bool) -> Result<Vec<ParquetFile>, Halt> {
        let listing = Recording::open(&self.dir)?.listing(&Wanted::ALL)?;
        let files = listing.parquet.into_iter();
        let is_own = |file: &ParquetFile| !file.table.ends_with(SUFFIX);
        let mut files: Vec<_> = files.filter(|file| is_own(file) && is_wanted(file)).collect();
        files.sort_by(|a, b| {
            (a.name.first, &a.table, a.hour).cmp(&(b.name.first, &b.table, b.hour))
        });
        Ok(files)
    }

    fn of_file(&mut self, file: ParquetFile, stopped: &Receiver<()>) -> Result<(), Halt> {
        let recording = Recording::open(&self.dir)?;
        let table = recording.table(&file.table)?;
        let Some(mut own) = self.rows_of(&table) else { return Ok(()) };
        let selection = Selection::all(&file.table);
        own.begin_block();
        for rows in recording.scan_file(file, table, &selection)? {
            let rows = rows?;
            let columns: Vec<_> = rows.columns().iter().map(Values::new).collect();
            for row in 0..rows.num_rows() {
                self.waiting.push(&mut own, |column| columns[column].value(row));
                if self.waiting.len() >= BODY_MAX {
                    self.post(stopped)?;
                }
            }
        }
        Ok(())
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, super::OnwardCounts> {
        self.counts.lock().expect("whoever holds the counts only copies or adds")
    }

    /// Posts what waits, as often as it takes, and notes how far that is.
    fn post(&mut self, stopped: &Receiver<()>) -> Result<(), Halt> {
        let mut requests: VecDeque<Request> = self.waiting.take().into();
        while let Some(request) = requests.pop_front() {
            let (posted, bytes) = self.post_one(&request, stopped)?;
            match (&posted, request.halves()) {
                // What is refused as a whole may be so for a part of it.
                (Posted::Refused { .. }, Some([earlier, later])) => {
                    requests.push_front(later);
                    requests.push_front(earlier);
                }
                _ => self.count(&posted, request.count(), bytes),
            }
        }
        if self.waiting.up_to.is_empty() {
            return Ok(());
        }
        for (stream, place) in std::mem::take(&mut self.waiting.up_to) {
            self.sent.note(&stream, place);
        }
        if let Err(error) = self.sent.write() {
            // Nothing is lost by that: after a restart rows are sent again.
            tracing::debug!(%error, "how far rows were sent cannot be written down");
        }
        Ok(())
    }

    /// Posts a request until it is answered; the answer, and the octets that were posted.
    fn post_one(&self, request: &Request, stopped: &Receiver<()>) -> Result<(Posted, u64), Halt> {
        let packed;
        let octets = match request {
            Request::Lines(text, _) => text.as_bytes(),
            Request::Series(part) => {
                packed = part.octets();
                &packed
            }
        };
        let mut again_after = AGAIN_AFTER;
        loop {
            match self.line.post(octets, self.options.form.content(), request.count()) {
                Ok(posted) => return Ok((posted, octets.len() as u64)),
                Err(error) => {
                    let was_failing = {
                        let mut counts = self.counts();
                        counts.failed_requests += 1;
                        std::mem::replace(&mut counts.is_failing, true)
                    };
                    if !was_failing {
                        let target = self.line.shown();
                        tracing::warn!(target, %error, "rows are not taken; they wait in the recording");
                    }
                    let waited = stopped.recv_timeout(again_after.to_std());
                    if waited != Err(RecvTimeoutError::Timeout) {
                        return Err(Halt::Ended);
                    }
                    again_after = (again_after + again_after).min(AGAIN_AFTER_MAX);
                }
            }
        }
    }

    fn count(&self, posted: &Posted, all: u64, bytes: u64) {
        let refused = match posted {
            Posted::Taken => 0,
            Posted::Refused { rows, .. } => (*rows).min(all),
        };
        let mut counts = self.counts();
        counts.rows += all - refused;
        counts.bytes += bytes;
        let is_first = counts.refused_rows == 0;
        counts.refused_rows += refused;
        counts.is_failing = false;
        drop(counts);
        if let Posted::Refused { text, .. } = posted
            && is_first
        {
            tracing::warn!(text, "rows are refused; all that are refused are counted");
        }
    }
}

/// A value of a batch that was read from the log.
fn value_of<'a>(
    schema: &TableSchema,
    batch: &'a Batch,
    reader: &'a SegmentReader,
    column: usize,
    row: usize,
) -> Value<'a> {
    let kind = schema.columns[column].kind;
    if kind == ColumnKind::Text {
        return batch.text(column, row).map_or(Value::Missing, Value::Text);
    }
    let Some(bits) = batch.bits(column, row) else { return Value::Missing };
    match kind {
        ColumnKind::Time => Value::Time(WallTime::from_nanos(bits.cast_signed())),
        ColumnKind::Symbol => reader.symbol(bits).map_or(Value::Missing, Value::Text),
        ColumnKind::U64 => Value::Unsigned(bits),
        ColumnKind::I64 => Value::Signed(bits.cast_signed()),
        ColumnKind::F64 => Value::Real(f64::from_bits(bits)),
        ColumnKind::Text => Value::Missing,
    }
}
