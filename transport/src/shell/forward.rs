//! Rows that an engine writes batch by batch, on their way to an uplink.
//!
//! [`Forward::submit`] copies rows into a bounded queue and never waits; a thread of low priority
//! makes blocks of what has come, and offers them. While the receiver wants them often, since somebody
//! watches or other collectors stand by, it waits until nothing has come for a moment, so that the rows of
//! an interval of many devices share a block; else for a second. What finds no room in the queue is told
//! to the receiver as a gap.
//!
//! The queue is a mutex and a batch per table: an engine may run at real-time priority on the thread's
//! core, where spinning for it would never end. The answers of an interval come in many pieces; the thread
//! is woken by the first of them, and looks again when the last may have come.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use meikyo_recording::devices::Device;
use meikyo_recording::{Batch, Gather, Symbol, TableSchema, lower_priority};
use meikyo_units::Nanos;

use super::{Uplink, UplinkStatus, monotonic};
use crate::limits::{BLOCK_BYTES_MAX, QUEUE_ROWS_MAX};
use crate::sender::Skipped;

/// While the receiver wants blocks often, one is made when nothing has come for so long ...
const QUIET: Duration = Duration::from_millis(10);

/// ... or its first rows have waited for as long as the receiver says, and for so long at most.
const HOLD_WANTED: Duration = Duration::from_millis(100);

/// How long the first rows of a block wait while nobody waits for them: blocks of many intervals are fewer to
/// make, to write to a spool and to send.
const HOLD: Duration = Duration::from_secs(1);

/// So many rows are taken before they are due: the queue is to have room for what comes next.
const ROWS_AT_ONCE: usize = QUEUE_ROWS_MAX / 16;

/// Octets of a block at most: whole blocks go when a spool is full, and a window has room for several.
const OCTETS_MAX: usize = BLOCK_BYTES_MAX / 2;

/// The rows of a stream cannot be forwarded.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the thread that forwards rows")]
pub struct ForwardError(#[source] std::io::Error);

/// Forwards the rows of one stream.
#[derive(Debug)]
pub struct Forward {
    shared: Arc<Shared>,
    symbols: u32,
    thread: Option<JoinHandle<Uplink>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    status: Mutex<UplinkStatus>,
}

#[derive(Debug, Default)]
struct Queue {
    words: Vec<String>,
    /// The rows of each table.
    batches: Vec<Batch>,
    rows: usize,
    /// When the newest of them came.
    last: Option<Instant>,
    /// Rows that found no room.
    skipped: Option<Skipped>,
    rows_dropped: u64,
    devices: Option<Vec<Device>>,
    is_over: bool,
    /// Whether the thread waits for a first row.
    waits: bool,
}

impl Shared {
    /// A panic elsewhere leaves the queue whole: it is only pushed to and emptied.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Forward {
    /// Forwards rows of `tables` as the stream `stream` of an uplink that declares it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        uplink: Uplink,
        stream: &str,
        tables: Vec<TableSchema>,
    ) -> Result<Self, ForwardError> {
        let status = uplink.status();
        let wanted = wanted_by(&status);
        let status = Mutex::new(status);
        let empty = || tables.iter().enumerate().map(|(at, of)| Batch::new(at, of)).collect();
        let (batches, taken): (Vec<_>, Vec<_>) = (empty(), empty());
        let queue = Mutex::new(Queue { batches, ..Queue::default() });
        let shared = Arc::new(Shared { queue, work: Condvar::new(), status });
        let work = Work {
            shared: Arc::clone(&shared),
            uplink,
            stream: stream.to_owned(),
            words: Vec::new(),
            tables: tables.into_iter().map(Gather::new).collect(),
            taken,
            pending: None,
            wanted,
        };
        let thread = std::thread::Builder::new()
            .name("forward".into())
            .spawn(move || {
                lower_priority();
                work.run()
            })
            .map_err(ForwardError)?;
        Ok(Self { shared, symbols: 0, thread: Some(thread) })
    }

    /// Learns the text of the next symbol; they count up from zero.
    ///
    /// # Panics
    /// If one was left out.
    pub fn define(&mut self, symbol: Symbol, text: &str) {
        assert_eq!(symbol.number(), self.symbols, "symbols come in their order");
        self.symbols += 1;
        self.shared.queue().words.push(text.to_owned());
    }

    /// Takes a copy of rows whose table stands at that position among the stream's. Never waits; whether
    /// there was room.
    ///
    /// # Panics
    /// If the stream has no such table.
    pub fn submit(&self, rows: &Batch) -> bool {
        let mut queue = self.shared.queue();
        if queue.rows + rows.rows() > QUEUE_ROWS_MAX {
            queue.rows_dropped += rows.rows() as u64;
            let (from_ns, until_ns) = rows.times();
            let new = Skipped { blocks: 1, rows: rows.rows() as u64, from_ns, until_ns };
            match &mut queue.skipped {
                Some(skipped) => skipped.add(new),
                none => *none = Some(new),
            }
            return false;
        }
        let before = queue.rows;
        queue.rows += rows.rows();
        queue.batches[rows.table()].append(rows);
        queue.last = Some(monotonic());
        let are_many = before < ROWS_AT_ONCE && queue.rows >= ROWS_AT_ONCE;
        let wakes = std::mem::take(&mut queue.waits) || are_many;
        drop(queue);
        if wakes {
            self.shared.work.notify_one();
        }
        true
    }

    /// Rows that found no room so far.
    pub fn rows_dropped(&self) -> u64 {
        self.shared.queue().rows_dropped
    }

    /// What others than the engine may do with it.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// Makes blocks of everything that was taken, and gives the uplink back.
    ///
    /// # Errors
    /// When the thread has panicked, which has told of itself.
    pub fn end(mut self) -> Result<Uplink, Panicked> {
        self.stop();
        let thread = self.thread.take().ok_or(Panicked)?;
        thread.join().map_err(|_| Panicked)
    }

    fn stop(&self) {
        self.shared.queue().is_over = true;
        self.shared.work.notify_one();
    }
}

/// The outside's end of a [`Forward`], which an engine's thread has.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Says what is known of the devices of the cluster.
    pub fn tell_devices(&self, devices: Vec<Device>) {
        self.0.queue().devices = Some(devices);
        self.0.work.notify_one();
    }

    /// How the uplink stands.
    pub fn status(&self) -> UplinkStatus {
        // It is replaced as a whole, also by a thread that panics after.
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The thread that forwards rows has panicked.
#[derive(Debug, thiserror::Error)]
#[error("the thread that forwards rows has panicked")]
pub struct Panicked;

impl Drop for Forward {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop();
            // A panic there has told of itself.
            drop(thread.join());
        }
    }
}

fn wanted_by(status: &UplinkStatus) -> Option<Duration> {
    status.sender.pace.map(Nanos::to_std)
}

struct Work {
    shared: Arc<Shared>,
    uplink: Uplink,
    stream: String,
    words: Vec<String>,
    /// The rows of each table.
    tables: Vec<Gather>,
    /// Empty batches, which change places with those of the queue.
    taken: Vec<Batch>,
    /// When the oldest row that is in no block came, and the newest.
    pending: Option<(Instant, Instant)>,
    /// How often blocks are wanted, where they are.
    wanted: Option<Duration>,
}

impl Work {
    fn run(mut self) -> Uplink {
        loop {
            let (is_due, is_over) = self.take();
            if is_due || is_over {
                self.offer();
            }
            let status = self.uplink.status();
            self.wanted = wanted_by(&status);
            // It is replaced as a whole, also by a thread that panics after.
            *self.shared.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
            if is_over {
                return self.uplink;
            }
        }
    }

    /// Waits for rows, or until a block is due, and takes what there is; whether one is due, and whether nothing
    /// more comes. Rows that are not due stay in the queue as long as there is room: they need not be put together.
    fn take(&mut self) -> (bool, bool) {
        let mut queue = self.shared.queue();
        let now = monotonic();
        let wait = self.due().map_or(HOLD, |due| due.saturating_duration_since(now));
        // Rows that come while others wait are looked for when these are due, or are many.
        let enough = if self.pending.is_some() { ROWS_AT_ONCE } else { 1 };
        queue.waits = enough == 1;
        let is_idle =
            |queue: &mut Queue| queue.rows < enough && queue.devices.is_none() && !queue.is_over;
        let waited = self.shared.work.wait_timeout_while(queue, wait, is_idle);
        // Rows are put in whole, also by a thread that panics after.
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waits = false;
        if let Some(last) = queue.last {
            self.pending = Some((self.pending.map_or(last, |(first, _)| first), last));
        }
        let is_over = queue.is_over;
        let is_due = self.due().is_some_and(|due| due <= monotonic());
        let takes_rows = is_due || is_over || queue.rows >= ROWS_AT_ONCE;
        if takes_rows {
            std::mem::swap(&mut queue.batches, &mut self.taken);
            (queue.rows, queue.last) = (0, None);
        }
        self.words.append(&mut queue.words);
        let (skipped, devices) = (queue.skipped.take(), queue.devices.take());
        drop(queue);
        if let Some(skipped) = skipped {
            self.uplink.skip(&self.stream, skipped);
        }
        if let Some(devices) = devices {
            self.uplink.tell_devices(devices);
        }
        if takes_rows {
            for (batch, table) in self.taken.iter_mut().zip(&mut self.tables) {
                if batch.rows() > 0 {
                    table.append(batch);
                }
            }
        }
        (is_due, is_over)
    }

    /// When blocks are made of what has come; `None` when nothing has.
    fn due(&self) -> Option<Instant> {
        let (first, last) = self.pending?;
        Some(match self.wanted {
            Some(every) => (first + every.min(HOLD_WANTED)).min(last + QUIET),
            None => first + HOLD,
        })
    }

    /// Makes blocks of what has come and offers them.
    fn offer(&mut self) {
        self.pending = None;
        let mut made = Vec::new();
        for table in &mut self.tables {
            if table.rows() == 0 {
                continue;
            }
            let (rows, (from_ns, until_ns)) = (table.rows() as u64, table.times());
            match table.pack(&self.words, OCTETS_MAX) {
                Ok(blocks) => made.extend(blocks),
                // Texts that no block takes.
                Err(_) => {
                    let skipped = Skipped { blocks: 1, rows, from_ns, until_ns };
                    self.uplink.skip(&self.stream, skipped);
                }
            }
        }
        let offered = self.uplink.offer_all(&self.stream, made);
        offered.expect("every table of the stream is declared");
    }
}
