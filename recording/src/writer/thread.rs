//! The writer thread: encodes what is queued, one write for all of it, and reports.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use meikyo_units::{Nanos, WallTime};

use super::compactor::{Compactor, End};
use super::home::{self, Found, Home};
use super::pace::Pace;
use super::queue::{Message, Shared};
use super::recovery;
use super::sync::{Confirmed, Ended, Request, SyncData, Syncer};
use super::{Incident, IncidentKind, Kept, SegmentsBy, StreamOptions, WhenFull, WhenRemoved};
use crate::batch::Batch;
use crate::compact::CompactError;
use crate::format::Kind;
use crate::layout;
use crate::log::{Head, Ordinal, encode_head, encode_rows, encode_symbols};
use crate::packed::PackedRows;
use crate::progress::{Progress, ProgressWriter};
use crate::segment::{INDEX_EVERY, IndexBuilder, ended};
use crate::system_calls::{give_memory_back, thread_cpu_ns};

/// Octets after which what is encoded is written, even if more is queued: bounds the buffer.
const WRITE_AT: usize = 4 << 20;

/// How long a segment waits for late rows once the clock has left its span and nothing comes.
const IDLE_GRACE: Nanos = Nanos::from_secs(10);

/// How long the thread sleeps when nothing is queued, at least and at most: it then looks whether
/// a sync or the end of a segment is due.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(10), LOOK_EVERY);

/// How often the thread looks whether the recording is where it was.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Why a stream was not closed in full.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The last rows could not be synced to the disk.
    #[error("the last rows of stream `{stream}` may not be on the disk")]
    Sync {
        /// The stream that was written.
        stream: String,
        /// What the system said.
        source: io::Error,
    },
    /// A segment could not be compacted; its rows are in the log and are read from there.
    #[error("a segment of stream `{stream}` could not be compacted; its rows stay in the log")]
    Compact {
        /// The stream that was written.
        stream: String,
        /// What stopped the compaction.
        source: CompactError,
    },
    /// A thread of the writer ended before its time: a bug.
    #[error("the writer of the stream ended by a panic; what was reported kept is in the log")]
    Panicked,
}

/// What a writer thread begins with.
pub(super) struct Start {
    pub(super) dir: PathBuf,
    pub(super) head: Head,
    pub(super) options: StreamOptions,
    pub(super) home: Home,
    pub(super) next_sequence: u64,
    /// The last sequence number that was handed to the kernel before.
    pub(super) last_sequence: u64,
    /// Old segments that are to be compacted.
    pub(super) leftovers: Vec<PathBuf>,
}

#[derive(Debug)]
pub(super) struct WriterThread(JoinHandle<Result<(), CloseError>>);

impl WriterThread {
    pub(super) fn start(
        start: Start,
        shared: Arc<Shared>,
        sync_data: SyncData,
    ) -> Result<Self, io::Error> {
        let stream_dir = layout::stream_dir(&start.dir, &start.head.stream);
        let syncer = Syncer::start(Arc::clone(&shared), stream_dir, sync_data)?;
        let compactor = if start.options.compact {
            let (leftovers, shared) = (start.leftovers.clone(), Arc::clone(&shared));
            let stream = &start.head.stream;
            Some(Compactor::start(&start.dir, stream, &start.options, leftovers, shared)?)
        } else {
            None
        };
        let mut writer = Writer::new(start, shared, syncer, compactor);
        std::thread::Builder::new()
            .name("recording-writer".into())
            .spawn(move || writer.run())
            .map(Self)
    }

    pub(super) fn join(self) -> Result<(), CloseError> {
        self.0.join().unwrap_or(Err(CloseError::Panicked))
    }
}

/// The segment that is being written.
struct OpenSegment {
    path: PathBuf,
    /// Sequence number of its head.
    first: u64,
    /// `None` until the first write.
    file: Option<Arc<File>>,
    /// Its length: whole frames only.
    bytes: u64,
    /// The span of time that it is for, in multiples of `segment_span` since the epoch.
    slot: i64,
    /// Rows by table, those in the buffer included.
    rows: Vec<usize>,
    /// Symbols that its frames define, those in the buffer included.
    symbols: usize,
    /// Symbols that its written frames define.
    symbols_kept: usize,
    /// Directories in which its name was not asked to be on the disk yet.
    directories: Vec<PathBuf>,
    /// What its written frames are, and its length when that was written beside it last.
    index: IndexBuilder,
    indexed_bytes: u64,
    /// Told to whoever syncs it.
    ended: Ended,
}

impl OpenSegment {
    /// Writes the index beside the segment. Readers do without one that the system refuses.
    fn write_index(&mut self) {
        self.indexed_bytes = self.bytes;
        if let Some(index) = self.index.index() {
            drop(index.write(&self.path));
        }
    }

    /// Writes what the segment holds beside it and into the list of those that have ended.
    fn note_end(&mut self) {
        self.write_index();
        if let Some(index) = self.index.index() {
            drop(ended::note(&self.path, index));
        }
    }
}

struct PendingMark {
    token: u64,
    /// Rows before it, since the mark before, that are in the buffer.
    unwritten_rows: u64,
    /// Rows before it, since the mark before, that were dropped.
    lost_rows: u64,
}

/// The system refuses writes since some write on.
struct Refused {
    rows: u64,
}

struct Writer {
    dir: PathBuf,
    head: Head,
    options: StreamOptions,
    shared: Arc<Shared>,
    syncer: Syncer,
    compactor: Option<Compactor>,
    next_sequence: u64,
    /// The last sequence number in the log, with the frames in the buffer and without.
    previous: u64,
    previous_kept: u64,
    progress: ProgressWriter,
    symbols: Vec<String>,
    segment: Option<OpenSegment>,
    /// The span of the segment before.
    slot_before: Option<i64>,
    home: Home,
    /// The recording is not where it was.
    is_away: bool,
    last_look: Instant,
    /// Encoded frames that are not written yet.
    buffer: Vec<u8>,
    buffered_frames: u64,
    unwritten_rows: u64,
    lost_rows: u64,
    marks: Vec<PendingMark>,
    written: Vec<Batch>,
    refused: Option<Refused>,
    bytes_kept: u64,
    /// Octets kept that no sync was asked for yet.
    unsynced: bool,
    pace: Pace,
    /// When rows were written last.
    last_rows: Instant,
}

/// Whether the thread goes on.
enum Next {
    Continue,
    Close { compact: bool },
}

impl Writer {
    fn new(
        start: Start,
        shared: Arc<Shared>,
        syncer: Syncer,
        compactor: Option<Compactor>,
    ) -> Self {
        let stream_dir = layout::stream_dir(&start.dir, &start.head.stream);
        let pace = Pace::new(start.options.sync_every.to_std(), monotonic());
        Self {
            dir: start.dir,
            head: start.head,
            options: start.options,
            shared,
            syncer,
            compactor,
            next_sequence: start.next_sequence,
            previous: start.last_sequence,
            previous_kept: start.last_sequence,
            progress: ProgressWriter::new(stream_dir),
            symbols: Vec::new(),
            segment: None,
            slot_before: None,
            home: start.home,
            is_away: false,
            last_look: monotonic(),
            buffer: Vec::new(),
            buffered_frames: 0,
            unwritten_rows: 0,
            lost_rows: 0,
            marks: Vec::new(),
            written: Vec::new(),
            refused: None,
            bytes_kept: 0,
            unsynced: false,
            pace,
            last_rows: monotonic(),
        }
    }

    fn run(&mut self) -> Result<(), CloseError> {
        let mut messages = Vec::new();
        let mut kept = Vec::new();
        loop {
            self.shared.wait_for_messages(&mut messages, self.patience());
            let mut next = Next::Continue;
            let mut answers = Vec::new();
            for message in messages.drain(..) {
                match message {
                    Message::Batch(batch) => self.append(batch),
                    Message::Packed(table, rows) => self.append_packed(table, &rows),
                    Message::Symbols(mut symbols) => self.symbols.append(&mut symbols),
                    Message::Mark { token, lost_rows } => self.pend_mark(token, lost_rows),
                    Message::Sync { answer } => answers.push(answer),
                    Message::Close { compact } => next = Next::Close { compact },
                }
            }
            self.write();
            self.return_marks(&mut kept);
            self.shared.give_back(&mut kept, &mut self.written);
            self.shared.counters.write_cpu_ns.set(thread_cpu_ns());
            self.sync(answers);
            self.end_idle_segment();
            self.look_for_recording();
            if self.shared.memory_is_free.swap(false, Ordering::Relaxed) {
                // Not on the compactor's thread: who waits for an allocation would wait for its turn.
                give_memory_back();
            }
            if let Next::Close { compact } = next {
                return self.close(compact);
            }
        }
    }

    /// How long the thread sleeps if nothing is queued: until a sync is due, if one is wanted.
    fn patience(&self) -> Duration {
        let wait = if self.unsynced { self.pace.wait(monotonic()) } else { LOOK_EVERY };
        wait.clamp(PATIENCE.0, PATIENCE.1)
    }

    /// Encodes the rows of a batch; writes and begins a new segment where they need one.
    fn append(&mut self, mut batch: Batch) {
        let rows = batch.rows();
        let times = &batch.columns[0].bits;
        let greatest = times.iter().map(|bits| bits.cast_signed()).max().unwrap_or(0);
        self.make_room(batch.table(), rows, greatest);
        let ordinal = self.take_ordinal();
        if encode_rows(&mut batch, ordinal, &mut self.buffer).is_some() {
            self.count_buffered(batch.table(), rows);
        } else {
            self.previous = ordinal.before.unwrap_or(0);
            self.lost_rows += rows as u64;
            self.shared.counters.rows_dropped.add(rows as u64);
            let text = format!("a batch of {rows} rows is larger than a frame can be");
            self.report(IncidentKind::DiskRefused, rows as u64, text);
        }
        batch.clear();
        self.written.push(batch);
        if self.buffer.len() >= WRITE_AT {
            self.write();
        }
    }

    /// Puts a header around packed rows.
    fn append_packed(&mut self, table: usize, rows: &PackedRows) {
        self.make_room(table, rows.rows(), rows.times().1);
        let ordinal = self.take_ordinal();
        rows.encode_frame(table, ordinal, &mut self.buffer);
        self.count_buffered(table, rows.rows());
        if self.buffer.len() >= WRITE_AT {
            self.write();
        }
    }

    fn count_buffered(&mut self, table: usize, rows: usize) {
        self.buffered_frames += 1;
        self.unwritten_rows += rows as u64;
        if let Some(segment) = &mut self.segment {
            segment.rows[table] += rows;
        }
    }

    /// Ends the segment if rows of a table do not belong into it, the last of them at `greatest`;
    /// begins one where there is none.
    fn make_room(&mut self, table: usize, rows: usize, greatest: i64) {
        let at = match self.options.segments_by {
            SegmentsBy::Rows => greatest,
            SegmentsBy::Arrival => WallTime::now().as_nanos(),
        };
        let slot = at.div_euclid(span_ns(self.options.segment_span));
        let limit = self.options.segment_rows;
        if let Some(segment) = &self.segment {
            let full = segment.rows[table].saturating_add(rows) > limit && segment.rows[table] > 0;
            // Rows of the span before are late answers; of any earlier one, a clock stepped back.
            // What was under way at a step is still of the span before it.
            let other_span =
                (slot > segment.slot || slot < segment.slot - 1) && self.slot_before != Some(slot);
            if full || other_span {
                self.write();
                self.end_segment();
            }
        }
        self.begin_frames(slot);
    }

    /// Puts what must stand before rows into the buffer: a segment's head, symbols not yet in it.
    fn begin_frames(&mut self, slot: i64) {
        if self.segment.is_none() {
            let ordinal = self.take_ordinal();
            self.segment = Some(OpenSegment {
                path: layout::segment_path(&self.dir, &self.head.stream, ordinal.sequence),
                first: ordinal.sequence,
                file: None,
                bytes: 0,
                slot,
                rows: vec![0; self.head.tables.len()],
                symbols: 0,
                symbols_kept: 0,
                directories: Vec::new(),
                index: IndexBuilder::new(&self.head),
                indexed_bytes: 0,
                ended: Ended::default(),
            });
            encode_head(&self.head, ordinal, &mut self.buffer);
            self.buffered_frames += 1;
        }
        let defined = self.segment.as_ref().map_or(0, |segment| segment.symbols);
        if defined < self.symbols.len() {
            let ordinal = self.take_ordinal();
            encode_symbols(&self.symbols[defined..], defined, ordinal, &mut self.buffer);
            self.buffered_frames += 1;
            if let Some(segment) = &mut self.segment {
                segment.symbols = self.symbols.len();
            }
        }
    }

    /// Numbers are never used twice, also not for frames that could not be written.
    fn take_ordinal(&mut self) -> Ordinal {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let before = Some(std::mem::replace(&mut self.previous, sequence));
        Ordinal { sequence, before }
    }

    /// Hands the buffer to the kernel in one write, or drops and counts its rows.
    fn write(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let Some(mut segment) = self.segment.take() else { return };
        let written = if self.is_away {
            Err(io::Error::new(io::ErrorKind::NotFound, "the recording is not there any more"))
        } else {
            write_to(&mut segment, &self.buffer)
        };
        match written {
            Ok(()) => {
                segment.index.add_all(&self.buffer);
                if segment.bytes - segment.indexed_bytes >= INDEX_EVERY {
                    segment.write_index();
                }
                self.previous_kept = self.previous;
                let progress = Progress { first: segment.first, last: self.previous };
                if self.progress.note(progress).is_err() {
                    self.shared.counters.disk_errors.add(1);
                }
                self.segment = Some(segment);
                self.count_written();
            }
            Err(error) => {
                self.previous = self.previous_kept;
                self.count_refused(&error);
                self.segment = self.cut_back(segment);
            }
        }
        self.buffer.clear();
        self.buffered_frames = 0;
        self.unwritten_rows = 0;
    }

    fn count_written(&mut self) {
        let bytes = self.buffer.len() as u64;
        let rows = self.marks.iter().map(|mark| mark.unwritten_rows).sum::<u64>();
        let counters = &self.shared.counters;
        counters.rows_kept.add(rows + self.unwritten_rows);
        counters.bytes_kept.add(bytes);
        counters.frames.add(self.buffered_frames);
        counters.writes.add(1);
        self.bytes_kept += bytes;
        self.unsynced = true;
        self.last_rows = monotonic();
        for mark in &mut self.marks {
            mark.unwritten_rows = 0;
        }
        if let Some(Refused { rows }) = self.refused.take() {
            let text = format!("rows are kept again; {rows} rows were dropped");
            self.report(IncidentKind::Resumed, rows, text);
        }
    }

    fn count_refused(&mut self, error: &io::Error) {
        let mut rows = self.unwritten_rows;
        self.lost_rows += self.unwritten_rows;
        for mark in &mut self.marks {
            rows += mark.unwritten_rows;
            mark.lost_rows += std::mem::take(&mut mark.unwritten_rows);
        }
        self.shared.counters.disk_errors.add(1);
        self.shared.counters.rows_dropped.add(rows);
        if self.refused.is_none() {
            let dir = self.dir.display();
            let text = format!("cannot write to `{dir}`, rows are dropped and counted: {error}");
            self.report(IncidentKind::DiskRefused, rows, text);
        }
        self.refused.get_or_insert(Refused { rows: 0 }).rows += rows;
    }

    /// Removes what a refused write left of itself; a segment that cannot be cut is not gone on with.
    fn cut_back(&self, mut segment: OpenSegment) -> Option<OpenSegment> {
        let file = segment.file.as_ref()?;
        if segment.bytes == 0 {
            drop(fs::remove_file(&segment.path));
            return None;
        }
        if file.set_len(segment.bytes).is_err() {
            let file = Arc::clone(file);
            let confirms = Confirmed { bytes: self.bytes_kept, sequence: self.previous_kept };
            let OpenSegment { ended, directories, .. } = segment;
            ended.note();
            self.syncer.ask(Request { file, ended, confirms, directories, answer: None });
            self.compact(segment.path);
            return None;
        }
        segment.symbols = segment.symbols_kept;
        Some(segment)
    }

    fn pend_mark(&mut self, token: u64, dropped_at_queue: u64) {
        self.marks.push(PendingMark {
            token,
            unwritten_rows: std::mem::take(&mut self.unwritten_rows),
            lost_rows: std::mem::take(&mut self.lost_rows) + dropped_at_queue,
        });
    }

    fn return_marks(&mut self, kept: &mut Vec<Kept>) {
        if self.marks.is_empty() {
            return;
        }
        let (at, sequence) = (WallTime::now(), self.previous_kept);
        let marks = self.marks.drain(..);
        kept.extend(marks.map(|PendingMark { token, lost_rows, .. }| Kept {
            token,
            at,
            sequence,
            lost_rows,
        }));
    }

    /// Asks for a sync when one is due, or wanted by `answers`.
    fn sync(&mut self, answers: Vec<SyncSender<Result<(), io::Error>>>) {
        let file = self.segment.as_ref().and_then(|segment| segment.file.clone());
        let Some(file) = file else {
            for answer in answers {
                let refused = || io::Error::other("the system refuses writes");
                let result = if self.refused.is_some() { Err(refused()) } else { Ok(()) };
                drop(answer.send(result));
            }
            return;
        };
        let now = monotonic();
        let due = self.pace.wait(now).is_zero();
        if answers.is_empty() && !(due && self.unsynced && !self.syncer.is_busy()) {
            return;
        }
        self.pace.begun(now);
        self.unsynced = false;
        let mut answers = answers.into_iter();
        self.ask_for_sync(&file, answers.next());
        for answer in answers {
            self.ask_for_sync(&file, Some(answer));
        }
    }

    fn ask_for_sync(
        &mut self,
        file: &Arc<File>,
        answer: Option<SyncSender<Result<(), io::Error>>>,
    ) {
        let segment = self.segment.as_mut();
        let (ended, directories) = segment.map_or_else(Default::default, |segment| {
            (segment.ended.clone(), std::mem::take(&mut segment.directories))
        });
        let confirms = Confirmed { bytes: self.bytes_kept, sequence: self.previous_kept };
        let file = Arc::clone(file);
        self.syncer.ask(Request { file, ended, confirms, directories, answer });
    }

    /// Ends a segment whose span is over when no row comes that would.
    fn end_idle_segment(&mut self) {
        if self.head.kind != Kind::Measured {
            return;
        }
        if monotonic().duration_since(self.last_rows) < IDLE_GRACE.to_std() {
            return;
        }
        let span = span_ns(self.options.segment_span);
        let slot = WallTime::now().before(IDLE_GRACE).as_nanos().div_euclid(span);
        if self.segment.as_ref().is_some_and(|segment| slot > segment.slot) {
            self.end_segment();
        }
    }

    /// Ends the segment; everything in it is written.
    fn end_segment(&mut self) {
        // What a stranger removed is noticed before compaction may: from then on nobody can tell.
        let file = self.segment.as_ref().and_then(|segment| segment.file.as_deref());
        if file.is_some_and(home::is_removed) {
            self.notice();
        }
        if let Some(segment) = &self.segment {
            segment.ended.note();
        }
        if let Some(file) = self.segment.as_ref().and_then(|segment| segment.file.clone()) {
            self.ask_for_sync(&file, None);
        }
        let Some(mut segment) = self.segment.take() else { return };
        self.slot_before = Some(segment.slot);
        if segment.bytes > 0 {
            segment.note_end();
            self.compact(segment.path);
        }
    }

    fn compact(&self, segment: PathBuf) {
        if let Some(compactor) = &self.compactor {
            compactor.push(segment);
            if self.options.when_full == WhenFull::Wait {
                compactor.wait_for_room();
            }
        }
    }

    /// Looks whether the recording is still there, now and then.
    fn look_for_recording(&mut self) {
        let now = monotonic();
        if now.duration_since(self.last_look) >= LOOK_EVERY {
            self.last_look = now;
            self.look_now();
        }
    }

    fn look_now(&mut self) {
        let found = self.notice();
        let renews = self.options.when_removed == WhenRemoved::Renew;
        if found != Found::Stream && renews && self.home.has_file_system() {
            self.renew();
        }
    }

    /// Notices that the recording or its segment is gone, or that the recording is back.
    fn notice(&mut self) -> Found {
        let found = self.home.look();
        if self.is_away {
            self.is_away = found != Found::Stream;
            return found;
        }
        let file = self.segment.as_ref().and_then(|segment| segment.file.as_deref());
        let is_removed = file.is_some_and(home::is_removed);
        if found != Found::Stream || is_removed {
            self.leave(found, is_removed);
        }
        found
    }

    /// Lets go of a segment that was removed, or of a recording.
    fn leave(&mut self, found: Found, is_removed: bool) {
        if self.shared.watermark.get().sequence < self.previous_kept {
            // Some of it was not on the disk yet, and is gone.
            self.shared.watermark.stop();
        }
        let segment = self.segment.take().filter(|_| is_removed);
        let rows = segment.as_ref().map_or(0, |segment| segment.rows.iter().sum::<usize>()) as u64;
        self.shared.counters.rows_kept.subtract(rows);
        self.shared.counters.rows_dropped.add(rows);
        self.lost_rows += rows;
        self.is_away = found != Found::Stream;
        let path = match &segment {
            Some(segment) if !self.is_away => segment.path.display(),
            _ => self.dir.display(),
        };
        let happened = if self.is_away { found.words(is_removed) } else { "was removed" };
        let lost =
            if rows > 0 { format!("; its last {rows} rows went with it") } else { String::new() };
        let text = format!("`{path}` {happened} while it was written{lost}");
        self.report(IncidentKind::Removed, rows, text);
        self.refused.get_or_insert(Refused { rows: 0 }).rows += rows;
    }

    /// Begins a new recording where there was one.
    fn renew(&mut self) {
        let Head { kind, stream, tables, .. } = &self.head;
        let Ok(recovered) = recovery::recover(&self.dir, *kind, stream, tables) else {
            // Rows are dropped and counted; the next look tries again.
            return;
        };
        self.home = Home::new(&self.dir, stream, recovered.lock);
        self.next_sequence = self.next_sequence.max(recovered.next_sequence);
        (self.previous, self.previous_kept) = (recovered.last_sequence, recovered.last_sequence);
        self.is_away = false;
        recovered.incidents.into_iter().for_each(|incident| self.shared.report(incident));
        recovered.leftovers.into_iter().for_each(|segment| self.compact(segment));
        let text = format!("a new recording was begun at `{}`", self.dir.display());
        self.report(IncidentKind::Renewed, 0, text);
    }

    fn close(&mut self, compact: bool) -> Result<(), CloseError> {
        self.notice();
        let file = self.segment.as_ref().and_then(|segment| segment.file.clone());
        let synced = file.map_or(Ok(()), |file| file.sync_data());
        self.end_segment();
        let stream = || self.head.stream.clone();
        if let Some(compactor) = self.compactor.take() {
            let end = if compact { End::Finish } else { End::Leave };
            let compacted = compactor.end(end);
            compacted.map_err(|source| CloseError::Compact { stream: stream(), source })?;
        }
        synced.map_err(|source| CloseError::Sync { stream: stream(), source })
    }

    fn report(&self, kind: IncidentKind, rows: u64, text: String) {
        self.shared.report(Incident { at: WallTime::now(), kind, rows, text });
    }
}

/// Writes whole frames to the end of a segment, which is made if it has no file yet.
fn write_to(segment: &mut OpenSegment, frames: &[u8]) -> Result<(), io::Error> {
    let file = match &segment.file {
        Some(file) => Arc::clone(file),
        None => {
            if let Some(dir) = segment.path.parent() {
                fs::create_dir_all(dir)?;
            }
            let file = OpenOptions::new().append(true).create_new(true).open(&segment.path)?;
            // The stream's, the log's and the recording's: each may be new.
            segment.directories =
                segment.path.ancestors().skip(1).take(3).map(Into::into).collect();
            Arc::clone(segment.file.insert(Arc::new(file)))
        }
    };
    (&*file).write_all(frames)?;
    segment.bytes += frames.len() as u64;
    segment.symbols_kept = segment.symbols;
    Ok(())
}

fn span_ns(span: Nanos) -> i64 {
    span.get().clamp(1, i64::MAX.unsigned_abs()).cast_signed()
}

#[expect(clippy::disallowed_methods, reason = "group commits are spaced by the time that passes")]
fn monotonic() -> Instant {
    Instant::now()
}
