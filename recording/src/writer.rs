//! Writing one stream of a recording.
//!
//! The engine fills [`Batch`]es on its own thread and hands them over; a writer thread takes all
//! that is queued, encodes it and hands it to the kernel in **one** write. What the kernel has
//! survives a kill of the process, and is reported through marks ([`StreamWriter::mark`],
//! [`StreamWriter::take_kept`]). A second thread asks for the disk (`fdatasync`) once a
//! [`StreamOptions::sync_every`], so that a slow disk delays no report; a third compacts finished
//! segments in the background.
//!
//! What a poll of 4 rows costs in CPU time and octets is in `docs/recording-format.md`, with the
//! command that measured it.
//!
//! Nothing here blocks the engine under [`WhenFull::Drop`]: a full queue, a full disk or a
//! directory that became read-only make rows that are **counted** ([`StreamWriter::counters`]) and
//! reported once per change ([`StreamWriter::take_incidents`]).

mod compactor;
mod counters;
mod home;
mod pace;
mod queue;
mod recovery;
mod sync;
mod synced;
mod thread;

pub use counters::WriterCounters;
pub use recovery::OpenStreamError;
pub use synced::{Synced, Watermark};
pub use thread::CloseError;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use meikyo_units::{Nanos, WallTime};

use crate::batch::{Batch, Symbol};
use crate::format::Kind;
use crate::origin::{Arrived, Received};
use crate::packed::PackedRows;
use crate::retention::Keep;
use crate::schema::TableSchema;
use crate::symbols::Symbols;
use queue::{Message, Shared};

/// How a stream is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOptions {
    /// How often what was written is forced to the disk, in the long run: after a quiet time, a few times at
    /// once. Bounds what a power cut takes.
    pub sync_every: Nanos,
    /// Rows of one table at which a segment ends.
    pub segment_rows: usize,
    /// Segments end at multiples of this span since the epoch.
    pub segment_span: Nanos,
    /// Whose time says to which span rows belong.
    pub segments_by: SegmentsBy,
    /// Batches that may wait for the writer thread.
    pub queue_batches: usize,
    /// How long rows are kept, by table.
    pub keep: Keep,
    /// What happens when the queue is full.
    pub when_full: WhenFull,
    /// What happens when somebody removes the recording, or moves it away.
    pub when_removed: WhenRemoved,
    /// Whether finished segments are compacted to Parquet.
    pub compact: bool,
}

impl StreamOptions {
    /// What a collector uses: synced every second, segments of 10 minutes or 8 million rows,
    /// everything kept, nothing blocks.
    pub const COLLECTOR: Self = Self {
        sync_every: Nanos::SECOND,
        segment_rows: 8_000_000,
        segment_span: Nanos::from_secs(600),
        segments_by: SegmentsBy::Rows,
        queue_batches: 4_096,
        keep: Keep::FOREVER,
        when_full: WhenFull::Drop,
        when_removed: WhenRemoved::Renew,
        compact: true,
    };
}

/// Which instant decides in which span of time a segment lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentsBy {
    /// The greatest `time` of the rows: a segment holds one span of them.
    Rows,
    /// The clock when they are written. Rows that are caught up with stand between new ones, and must
    /// not end a segment with every block.
    Arrival,
}

/// What [`StreamWriter::submit`] does when the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The rows are dropped and counted: real time does not wait.
    Drop,
    /// The caller waits, also for compaction: virtual time can.
    Wait,
}

/// What a writer does whose recording is removed while it writes; it looks for that four times a second.
///
/// In both cases the rows of the segment that was being written count as dropped, unless the
/// recording was only moved away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenRemoved {
    /// It begins a new recording at the same path, but not in another file system than before:
    /// that of a disk that was unmounted is not the one to be filled.
    Renew,
    /// It drops and counts all rows from then on.
    Drop,
}

/// A mark that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The token given to [`StreamWriter::mark`].
    pub token: u64,
    /// When the last write before the mark had returned.
    pub at: WallTime,
    /// Sequence number of the last frame that had then been handed to the kernel; they are on the
    /// disk once [`Synced::sequence`] is at least this.
    pub sequence: u64,
    /// Rows submitted since the mark before that were dropped; everything else is kept.
    pub lost_rows: u64,
}

/// Something that a person should know about, once per change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// When it was noticed.
    pub at: WallTime,
    /// What went wrong, or was put right.
    pub kind: IncidentKind,
    /// Rows that it concerns, where it does.
    pub rows: u64,
    /// One sentence for people.
    pub text: String,
}

/// What can go wrong while rows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncidentKind {
    /// The log of an earlier run ended inside a frame; the torn tail was cut.
    TornTail,
    /// Octets inside the log of an earlier run are damaged.
    Damage,
    /// The queue is full, rows are being dropped.
    QueueFull,
    /// The system refuses writes, rows are being dropped.
    DiskRefused,
    /// Rows are kept again; `rows` were dropped meanwhile.
    Resumed,
    /// A segment could not be compacted; it stays in the log and is tried again later.
    CompactionFailed,
    /// Rows older than `keep` were deleted.
    Deleted,
    /// Somebody removed the recording or a segment, or moved or replaced the recording; `rows` were
    /// in what was removed.
    Removed,
    /// A new recording was begun where one was removed.
    Renewed,
}

impl IncidentKind {
    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TornTail => "torn_tail",
            Self::Damage => "damage",
            Self::QueueFull => "queue_full",
            Self::DiskRefused => "disk_refused",
            Self::Resumed => "resumed",
            Self::CompactionFailed => "compaction_failed",
            Self::Deleted => "deleted",
            Self::Removed => "removed",
            Self::Renewed => "renewed",
        }
    }
}

/// Packed rows are of a table that the stream does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stream has no table `{table}`: its tables are declared when it is opened")]
pub struct UnknownTableError {
    /// The table of the rows.
    pub table: String,
}

/// What a stream wrote in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseReport {
    /// The last counters.
    pub counters: WriterCounters,
}

/// The one writer of a stream.
#[derive(Debug)]
pub struct StreamWriter {
    tables: Vec<TableSchema>,
    symbols: Symbols,
    options: StreamOptions,
    shared: Arc<Shared>,
    thread: Option<thread::WriterThread>,
    kept: Vec<Kept>,
    empty: Vec<Vec<Batch>>,
    /// Rows dropped at the queue since the last mark.
    lost_rows: u64,
    /// Rows dropped at the queue since it became full; `None` while it is not.
    full: Option<u64>,
    /// The blocks from elsewhere that the stream had when it was opened.
    received: Received,
    arrived: Vec<Arrived>,
    /// Holds the stream's lock as long as the writer lives.
    _lock: File,
}

impl StreamWriter {
    /// Opens the stream `stream` of the recording in `dir` for writing; makes both where needed.
    ///
    /// What an earlier writer left is put right first: a torn tail is cut and counted, Parquet files
    /// that a crash left beside their segment are removed, old segments are compacted in the
    /// background.
    ///
    /// # Errors
    /// When another writer has the stream, the recording is of another kind or a newer format, or
    /// the directory cannot be written.
    pub fn open(
        dir: &Path,
        kind: Kind,
        stream: &str,
        tables: Vec<TableSchema>,
        options: StreamOptions,
    ) -> Result<Self, OpenStreamError> {
        let sync_data = Box::new(File::sync_data);
        Self::open_synced_by(sync_data, dir, kind, (stream, tables), options)
    }

    /// As [`StreamWriter::open`], with a way of syncing that a test chooses.
    fn open_synced_by(
        sync_data: sync::SyncData,
        dir: &Path,
        kind: Kind,
        (stream, tables): (&str, Vec<TableSchema>),
        options: StreamOptions,
    ) -> Result<Self, OpenStreamError> {
        let recovered = recovery::recover(dir, kind, stream, &tables)?;
        let shared = Arc::new(Shared::new(options.queue_batches));
        if recovered.is_synced {
            shared.watermark.advance(recovered.last_found, 0);
        } else {
            shared.watermark.stop();
        }
        shared.counters.torn_bytes_cut.set(recovered.torn_bytes);
        for incident in recovered.incidents {
            shared.report(incident);
        }
        let lock = recovered.lock;
        let refused = |source| OpenStreamError::System {
            doing: "keep the lock of",
            path: dir.into(),
            source,
        };
        let home = home::Home::new(dir, stream, lock.try_clone().map_err(refused)?);
        let thread = thread::WriterThread::start(
            thread::Start {
                dir: dir.into(),
                head: crate::log::Head {
                    format: crate::format::FORMAT_VERSION,
                    kind,
                    stream: stream.into(),
                    tables: tables.clone(),
                },
                options: options.clone(),
                home,
                next_sequence: recovered.next_sequence,
                last_sequence: recovered.last_sequence,
                leftovers: recovered.leftovers,
            },
            Arc::clone(&shared),
            sync_data,
        )
        .map_err(|source| OpenStreamError::Thread { source })?;
        Ok(Self {
            empty: tables.iter().map(|_| Vec::new()).collect(),
            tables,
            symbols: Symbols::default(),
            options,
            shared,
            thread: Some(thread),
            kept: Vec::new(),
            lost_rows: 0,
            full: None,
            received: recovered.received,
            arrived: recovered.arrived.into(),
            _lock: lock,
        })
    }

    /// Notes that what the stream's log holds may not be on the disk, since a sync of it failed:
    /// whoever opens it next writes it anew. A writer does so itself; this is for one whose disk
    /// refused that, too.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn distrust(dir: &Path, stream: &str) -> Result<(), std::io::Error> {
        crate::unsynced::note(&crate::layout::stream_dir(dir, stream))
    }

    /// The symbol of `text`, the same for the same text as long as the writer lives.
    ///
    /// # Panics
    /// After 2^32 different texts.
    pub fn symbol(&mut self, text: &str) -> Symbol {
        self.symbols.intern(text)
    }

    /// An empty batch for the table at position `table`, with the buffers of one that was written.
    pub fn batch(&mut self, table: usize) -> Batch {
        if self.empty[table].is_empty() {
            for batch in self.shared.take_written() {
                self.empty[batch.table].push(batch);
            }
        }
        self.empty[table].pop().unwrap_or_else(|| Batch::new(table, &self.tables[table]))
    }

    /// Hands the rows of `batch` to the writer thread.
    ///
    /// Under [`WhenFull::Drop`] this never waits for anything but a queue's lock.
    pub fn submit(&mut self, mut batch: Batch) {
        if batch.rows() == 0 {
            self.empty[batch.table].push(batch);
            return;
        }
        self.hand_over_symbols();
        let rows = batch.rows() as u64;
        if let Err(refused) = self.hand_over_rows(Message::Batch(batch), rows)
            && let Message::Batch(refused) = refused
        {
            batch = refused;
            batch.clear();
            self.empty[batch.table].push(batch);
        }
    }

    /// Hands a block of packed rows to the writer thread, which writes its octets as they are.
    ///
    /// Waits, or drops and counts, as [`StreamWriter::submit`] does. Whether the rows were kept is
    /// told by the next mark.
    ///
    /// # Errors
    /// When the stream has no table of the block's name.
    pub fn packed(&mut self, rows: PackedRows) -> Result<(), UnknownTableError> {
        let table = self.tables.iter().position(|table| table.name == rows.table());
        let table = table.ok_or_else(|| UnknownTableError { table: rows.table().to_owned() })?;
        let count = rows.rows() as u64;
        // What was refused is counted; nobody needs its buffers again.
        drop(self.hand_over_rows(Message::Packed(table, rows), count));
        Ok(())
    }

    /// Queues rows; counts and tells of those that find no room.
    fn hand_over_rows(&mut self, message: Message, rows: u64) -> Result<(), Message> {
        let Err(refused) = self.shared.push_rows(message, self.options.when_full) else {
            if let Some(rows) = self.full.take() {
                let text = format!("the writer follows again; {rows} rows were dropped");
                self.report(IncidentKind::Resumed, rows, text);
            }
            return Ok(());
        };
        self.lost_rows += rows;
        self.shared.counters.rows_dropped.add(rows);
        self.shared.counters.batches_dropped.add(1);
        if self.full.is_none() {
            let limit = self.options.queue_batches;
            let text = format!("the writer does not follow: {limit} batches are waiting");
            self.report(IncidentKind::QueueFull, rows, text);
        }
        *self.full.get_or_insert(0) += rows;
        Err(refused)
    }

    /// Asks to be told when everything submitted before has been handed to the kernel.
    pub fn mark(&mut self, token: u64) {
        let lost_rows = std::mem::take(&mut self.lost_rows);
        self.shared.push(Message::Mark { token, lost_rows });
    }

    /// The marks that came back since the last call, in their order.
    pub fn take_kept(&mut self) -> impl Iterator<Item = Kept> {
        self.kept.clear();
        self.shared.take_kept(&mut self.kept);
        self.kept.drain(..)
    }

    /// What happened since the last call that a person should know.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        self.shared.take_incidents()
    }

    /// The counters as they are now.
    pub fn counters(&self) -> WriterCounters {
        self.shared.counters.snapshot()
    }

    /// How far the stream is on the disk.
    pub fn synced(&self) -> Synced {
        self.shared.watermark.get()
    }

    /// Blocks from elsewhere that the stream's segments held when it was opened, in the order in which they
    /// arrived, and of many the newest. Those that were compacted are not among them.
    pub fn take_arrived(&mut self) -> Vec<Arrived> {
        std::mem::take(&mut self.arrived)
    }

    /// Which blocks from elsewhere the stream had when it was opened; all of them are on the disk
    /// unless [`Synced::is_stopped`].
    pub fn received(&self) -> &Received {
        &self.received
    }

    /// Where any thread can read and wait for how far the stream is on the disk.
    pub fn watermark(&self) -> Watermark {
        self.shared.watermark.clone()
    }

    /// Waits until everything submitted is on the disk (`fdatasync`).
    ///
    /// # Errors
    /// When the system refused to write or to sync; what was dropped is counted.
    pub fn sync_now(&mut self) -> Result<(), std::io::Error> {
        self.hand_over_symbols();
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.shared.push(Message::Sync { answer });
        answered.recv().unwrap_or_else(|_| Err(std::io::Error::other("the writer has ended")))
    }

    /// Writes everything submitted, syncs it, compacts every segment and unlocks the stream.
    ///
    /// # Errors
    /// When something of that failed; rows that are kept stay in the log and are read from there.
    pub fn close(mut self) -> Result<CloseReport, CloseError> {
        self.hand_over_symbols();
        let Some(thread) = self.thread.take() else {
            return Ok(CloseReport { counters: self.counters() });
        };
        self.shared.push(Message::Close { compact: self.options.compact });
        thread.join()?;
        Ok(CloseReport { counters: self.counters() })
    }

    fn hand_over_symbols(&mut self) {
        let fresh = self.symbols.take_fresh();
        if !fresh.is_empty() {
            let texts = fresh.into_iter().map(|(_, text)| text).collect();
            self.shared.push(Message::Symbols(texts));
        }
    }

    fn report(&self, kind: IncidentKind, rows: u64, text: String) {
        self.shared.report(Incident { at: WallTime::now(), kind, rows, text });
    }
}

impl Drop for StreamWriter {
    /// Hands what is queued to the kernel; what is left to compact stays for the next writer.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.push(Message::Close { compact: false });
            // The error was for the caller of `close`; the counters have it too.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests;
