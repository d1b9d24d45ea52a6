//! The thread that drives the receiver and writes the recording.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use meikyo_recording::format::IdentityError;
use meikyo_recording::{
    Kind, StreamOptions, StreamWriter, TableSchema, WhenFull, WhenRemoved, format,
};
use meikyo_transport::{Now, Output, Receiver, ReceiverCounts, SessionId, Ticket};
use meikyo_units::{Nanos, WallTime};
use tokio::sync::mpsc;

use super::{Event, Inbox};

/// How often the recording is forced to the disk, which is what senders are acknowledged by.
const SYNC_EVERY: Nanos = Nanos::from_millis(250);

/// Segments end by their rows, or after a day: what is caught up with is of other hours than what
/// comes live, and must not end a segment with every block.
const SEGMENT_SPAN: Nanos = Nanos::from_secs(86_400);

/// Why rows cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The directory is not a recording that can be written to.
    #[error("cannot write rows that are sent to `{path}`")]
    Recording {
        /// The directory.
        path: PathBuf,
        /// Where rows were to be written.
        source: IdentityError,
    },
    /// The system gives no thread.
    #[error("cannot start the thread that takes rows")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
}

/// What was taken so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) counts: ReceiverCounts,
    pub(crate) senders: usize,
}

/// The thread; it ends, and the recording is closed, when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    inbox: Inbox,
    taken: Arc<Mutex<Taken>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Takes rows into the recording in `dir`, which is made where there is none.
    pub(crate) fn start(dir: &Path) -> Result<Self, KeeperError> {
        format::create(dir, Kind::Measured)
            .map_err(|source| KeeperError::Recording { path: dir.into(), source })?;
        let (inbox, events) = Inbox::new();
        let taken = Arc::default();
        let mut work = Work {
            dir: dir.into(),
            receiver: Receiver::new(),
            writers: BTreeMap::new(),
            outboxes: BTreeMap::new(),
            begun: monotonic(),
            taken: Arc::clone(&taken),
        };
        let thread = std::thread::Builder::new()
            .name("ingest".into())
            .spawn(move || work.run(events))
            .map_err(|source| KeeperError::Thread { source })?;
        Ok(Self { inbox, taken, thread: Some(thread) })
    }

    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// Where what was taken can be read.
    pub(crate) fn taken(&self) -> Arc<Mutex<Taken>> {
        Arc::clone(&self.taken)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.inbox.tell_blocking(Event::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that takes rows has panicked");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell reads the clock for its core")]
fn monotonic() -> Instant {
    Instant::now()
}

/// A stream of the recording.
struct Stream {
    writer: StreamWriter,
    tables: Vec<TableSchema>,
    /// Blocks that the kernel has, with the last frame behind each.
    written: VecDeque<(u64, Ticket)>,
}

struct Work {
    dir: PathBuf,
    receiver: Receiver,
    writers: BTreeMap<String, Stream>,
    outboxes: BTreeMap<SessionId, mpsc::Sender<Vec<u8>>>,
    begun: Instant,
    taken: Arc<Mutex<Taken>>,
}

impl Work {
    fn now(&self) -> Now {
        let passed = monotonic().duration_since(self.begun).as_nanos();
        let passed = u64::try_from(passed).expect("584 years do not pass");
        Now { monotonic: Nanos::new(passed), wall: WallTime::now() }
    }

    fn run(&mut self, mut events: mpsc::Receiver<Event>) {
        while let Some(event) = events.blocking_recv() {
            let now = self.now();
            match event {
                Event::Connected { session, permit, outbox } => {
                    self.outboxes.insert(session, outbox);
                    self.receiver.connected(now, session, permit);
                }
                Event::Octets { session, octets } => self.receiver.handle(now, session, &octets),
                Event::Gone(session) => self.leave(session),
                Event::Tick => self.receiver.tick(now),
                Event::Stop => break,
            }
            self.do_what_is_asked();
            self.acknowledge();
            self.do_what_is_asked();
            self.publish();
        }
        self.end();
    }

    fn publish(&self) {
        let (counts, senders) = (self.receiver.counts(), self.receiver.senders().count());
        let mut told = self.taken.lock().expect("whoever holds the counts only copies them");
        *told = Taken { counts, senders };
    }

    fn leave(&mut self, session: SessionId) {
        self.outboxes.remove(&session);
        self.receiver.disconnected(session);
    }

    fn do_what_is_asked(&mut self) {
        while let Some(output) = self.receiver.poll_output() {
            match output {
                Output::Open { stream, tables, after } => self.open(&stream, &tables, after),
                Output::Store { ticket, stream, rows } => {
                    let Some(known) = self.writers.get_mut(&stream) else {
                        self.receiver.lost(&stream, ticket);
                        continue;
                    };
                    match known.writer.packed(rows) {
                        Ok(()) => known.writer.mark(ticket),
                        // The receiver compared the table; a block that cannot be stored is lost.
                        Err(_) => self.receiver.lost(&stream, ticket),
                    }
                }
                Output::Send { session, octets } => {
                    let outbox = self.outboxes.get(&session);
                    if outbox.is_some_and(|outbox| outbox.try_send(octets).is_err()) {
                        // It reads nothing: it comes again when it can.
                        self.leave(session);
                    }
                }
                // Without an outbox the task sends what waits, and ends.
                Output::Close { session, code } => {
                    tracing::info!(session, ?code, "a sender was sent away");
                    self.leave(session);
                }
            }
        }
    }

    fn open(&mut self, stream: &str, tables: &[TableSchema], after: Ticket) {
        // What was handed over goes to the kernel first.
        self.writers.remove(stream);
        let options = StreamOptions {
            sync_every: SYNC_EVERY,
            segment_span: SEGMENT_SPAN,
            when_full: WhenFull::Wait,
            when_removed: WhenRemoved::Drop,
            ..StreamOptions::COLLECTOR
        };
        let now = self.now();
        let opened =
            StreamWriter::open(&self.dir, Kind::Measured, stream, tables.to_vec(), options);
        match opened {
            Ok(writer) if writer.synced().is_stopped => {
                self.receiver.not_opened(stream, "its disk refuses to sync what it has");
            }
            Ok(writer) => {
                self.receiver.opened(now, (stream, tables), after, writer.received());
                let (tables, written) = (tables.to_vec(), VecDeque::new());
                self.writers.insert(stream.to_owned(), Stream { writer, tables, written });
            }
            Err(error) => {
                let mut text = error.to_string();
                let mut cause = error.source();
                while let Some(error) = cause {
                    text = format!("{text}: {error}");
                    cause = error.source();
                }
                tracing::warn!(stream, error = text, "rows that are sent cannot be written");
                self.receiver.not_opened(stream, &text);
            }
        }
    }

    /// Tells the receiver what is on the disk by now, and what never will be.
    fn acknowledge(&mut self) {
        let mut to_open = Vec::new();
        for (name, stream) in &mut self.writers {
            for incident in stream.writer.take_incidents() {
                tracing::warn!(stream = name, text = incident.text, "the recording of sent rows");
            }
            for kept in stream.writer.take_kept() {
                if kept.lost_rows > 0 {
                    self.receiver.lost(name, kept.token);
                } else {
                    stream.written.push_back((kept.sequence, kept.token));
                }
            }
            let synced = stream.writer.synced();
            let mut last = None;
            while let Some((_, ticket)) =
                stream.written.pop_front_if(|(sequence, _)| *sequence <= synced.sequence)
            {
                last = Some(ticket);
            }
            if let Some(ticket) = last {
                self.receiver.synced(name, ticket);
            }
            if synced.is_stopped {
                to_open.push((name.clone(), stream.tables.clone()));
            }
        }
        // Nobody knows what the disk has behind the watermark: the stream is read again.
        for (name, tables) in to_open {
            let after = self.receiver.last_ticket();
            self.open(&name, &tables, after);
        }
    }

    /// Says good-bye to all, and closes the recording.
    fn end(&mut self) {
        self.receiver.end();
        self.do_what_is_asked();
        for (name, stream) in std::mem::take(&mut self.writers) {
            if let Err(error) = stream.writer.close() {
                tracing::warn!(stream = name, %error, "the recording of sent rows was not closed");
            }
        }
    }
}
