//! The thread that drives the receiver and writes the recording.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use meikyo_live::Catalog;
use meikyo_recording::format::IdentityError;
use meikyo_recording::schema::Role;
use meikyo_recording::{
    Kind, PackedRows, SegmentsBy, StreamOptions, StreamWriter, TableSchema, WhenFull, WhenRemoved,
    devices, format,
};
use meikyo_transport::{
    Now, OnDisk, Output, Place, Receiver, ReceiverCounts, SenderState, SessionId, Ticket,
};
use meikyo_units::{Nanos, WallTime, in_one_line};
use tokio::sync::mpsc;

use super::files::Files;
use super::{Debuginfod, Event, Inbox, clusters, turns};
use crate::watching::{self, Watching};

/// How often the recording is forced to the disk, which is what senders are acknowledged by.
const SYNC_EVERY: Nanos = Nanos::from_millis(250);

/// How long rows are written to a segment of a stream that is not compacted.
const SEGMENT_SPAN: Nanos = Nanos::from_secs(86_400);

/// Why rows cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The directory is not a recording that can be written to.
    #[error("cannot write received rows to `{path}`")]
    Recording {
        /// Directory named for received rows.
        path: PathBuf,
        /// What it is instead.
        source: IdentityError,
    },
    /// The directory holds something else.
    #[error("`{path}` is no recording, and it is not empty")]
    Foreign {
        /// Directory that holds other files.
        path: PathBuf,
    },
    /// Another server writes to it.
    #[error("another server is receiving rows into `{path}`")]
    Taken {
        /// Directory that the other server has locked.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} `{path}`")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start the thread that receives rows")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

/// What was taken so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken {
    pub(crate) counts: ReceiverCounts,
    /// Senders that have a session.
    pub(crate) senders: usize,
    /// All that were heard of.
    pub(crate) known: Vec<SenderState>,
}

/// How often what is known of senders is told anew.
const KNOWN_EVERY: Nanos = Nanos::from_millis(250);

/// The thread; it ends, and the recording is closed, when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    dir: PathBuf,
    inbox: Inbox,
    taken: Arc<Mutex<Taken>>,
    fate: Fate,
    thread: Option<JoinHandle<()>>,
    /// Keeps other servers out of the recording.
    _lock: File,
}

/// Whether the thread has panicked, and who is woken when it does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fate(Arc<Mutex<(bool, Option<UnixStream>)>>);

impl Fate {
    /// Whether it has.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().0
    }

    /// Writes an octet to a socket when it does, and at once when it has.
    pub(crate) fn wake(&self, waker: UnixStream) {
        let mut state = self.state();
        if state.0 {
            tell(&waker);
        }
        state.1 = Some(waker);
    }

    fn state(&self) -> MutexGuard<'_, (bool, Option<UnixStream>)> {
        self.0.lock().expect("nothing that holds it can panic")
    }
}

/// Wakes whoever waits at a socket; one that is full wakes, too.
fn tell(mut waker: &UnixStream) {
    drop(waker.write(&[0]));
}

/// Says so when the thread ends by a panic.
struct Told(Fate);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.state();
            state.0 = true;
            state.1.iter().for_each(tell);
        }
    }
}

/// The recording that rows are taken into, before they are.
#[derive(Debug)]
pub(crate) struct Taking {
    dir: PathBuf,
    lock: File,
}

impl Taking {
    /// Makes sure of the recording in `dir`, which is made where there is none.
    pub(crate) fn prepare(dir: &Path) -> Result<Self, KeeperError> {
        refuse_foreign(dir)?;
        make(dir)?;
        Ok(Self { dir: dir.into(), lock: lock(dir)? })
    }

    /// Takes rows; recordings of clusters are added to `catalog`, those that are there and those that
    /// are made.
    pub(crate) fn start(
        self,
        catalog: Arc<Catalog>,
        watching: Watching,
        debuginfod: Option<Debuginfod>,
    ) -> Result<Keeper, KeeperError> {
        let Self { dir, lock } = self;
        let clusters = clusters::found(&dir).map_err(|source| KeeperError::System {
            doing: "list the clusters in",
            path: dir.clone(),
            source,
        })?;
        clusters.iter().for_each(|cluster| show(&catalog, cluster));
        let (inbox, events) = Inbox::new();
        let (taken, fate) = (Arc::default(), Fate::default());
        let told = Told(fate.clone());
        let files = Files::start(&dir, inbox.clone(), debuginfod);
        let files = files.map_err(|source| KeeperError::Thread { source })?;
        let own_dir = dir.clone();
        let mut work = Work {
            dir,
            catalog,
            receiver: Receiver::new(),
            writers: BTreeMap::new(),
            distrusted: BTreeSet::new(),
            outboxes: BTreeMap::new(),
            begun: monotonic(),
            watching,
            files,
            taken: Arc::clone(&taken),
            known_at: Nanos::ZERO,
        };
        let thread = std::thread::Builder::new()
            .name("ingest".into())
            .spawn(move || {
                let _told = told;
                work.run(events);
            })
            .map_err(|source| KeeperError::Thread { source })?;
        Ok(Keeper { dir: own_dir, inbox, taken, fate, thread: Some(thread), _lock: lock })
    }
}

impl Keeper {
    /// What becomes of the thread.
    pub(crate) fn fate(&self) -> Fate {
        self.fate.clone()
    }

    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// The directory that the recordings are below.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
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

fn make(dir: &Path) -> Result<(), KeeperError> {
    let refused = |source| KeeperError::Recording { path: dir.into(), source };
    format::create(dir, Kind::Measured).map_err(refused).map(drop)
}

/// Adds a recording to those that are served. One that cannot be read is written nevertheless.
fn show(catalog: &Catalog, dir: &Path) {
    if let Err(error) = catalog.add(dir) {
        let error = in_one_line(&error);
        tracing::warn!(error, dir = %dir.display(), "a recording of a cluster is not served");
    }
}

/// A directory with files that are no recording stays as it is.
fn refuse_foreign(dir: &Path) -> Result<(), KeeperError> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(KeeperError::System { doing: "list", path: dir.into(), source });
        }
    };
    if entries.next().is_some() && !dir.join(format::FILE_NAME).exists() {
        return Err(KeeperError::Foreign { path: dir.into() });
    }
    Ok(())
}

/// Locks the recording against other servers; each of its streams has a lock besides.
fn lock(dir: &Path) -> Result<File, KeeperError> {
    let path = dir.join(format::FILE_NAME);
    let system = |doing, source| KeeperError::System { doing, path: path.clone(), source };
    let file = File::open(&path).map_err(|source| system("open", source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(KeeperError::Taken { path: dir.into() }),
        Err(TryLockError::Error(source)) => Err(system("lock", source)),
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
    catalog: Arc<Catalog>,
    receiver: Receiver,
    writers: BTreeMap<Place, Stream>,
    /// Streams that the disk refused to sync, until that is noted beside them.
    distrusted: BTreeSet<Place>,
    outboxes: BTreeMap<SessionId, mpsc::Sender<Vec<u8>>>,
    begun: Instant,
    watching: Watching,
    files: Files,
    taken: Arc<Mutex<Taken>>,
    known_at: Nanos,
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
                Event::Tick => {
                    self.receiver.tick(now);
                    self.receiver.set_pace(self.watching.paces(watching::now()));
                }
                Event::Ask { sender, stream, words } => {
                    // One that is gone is not told; whoever maps the file next is.
                    self.receiver.ask(&sender, &stream, &words);
                }
                Event::Found { stream, rows } => self.write_found(stream, rows),
                Event::Stop => break,
                #[cfg(test)]
                Event::Panic => panic!("a test asked for it"),
            }
            self.do_what_is_asked();
            self.acknowledge();
            self.do_what_is_asked();
            self.publish();
        }
        self.end();
    }

    /// Writes rows that no sender has sent.
    fn write_found(&mut self, stream: String, rows: PackedRows) {
        let place = Place { cluster: None, stream };
        // A stream that cannot be written at the moment goes without; hosts are asked again.
        if let Some(known) = self.writers.get_mut(&place)
            && let Err(error) = known.writer.packed(rows)
        {
            let error = in_one_line(&error);
            tracing::warn!(%place, error, "functions of a file cannot be written");
        }
    }

    fn publish(&mut self) {
        let (counts, senders) = (self.receiver.counts(), self.receiver.senders().count());
        let now = self.now().monotonic;
        let known = (now >= self.known_at).then(|| self.receiver.known().cloned().collect());
        let mut told = self.taken.lock().expect("whoever holds the counts only copies them");
        (told.counts, told.senders) = (counts, senders);
        if let Some(known) = known {
            told.known = known;
            self.known_at = now + KNOWN_EVERY;
        }
    }

    fn leave(&mut self, session: SessionId) {
        self.outboxes.remove(&session);
        self.receiver.disconnected(session);
    }

    fn do_what_is_asked(&mut self) {
        while let Some(output) = self.receiver.poll_output() {
            match output {
                Output::Open { place, tables, after } => self.open(&place, &tables, after),
                Output::Store { ticket, place, rows } => {
                    if place.cluster.is_none() {
                        self.files.pass(monotonic(), &place.stream, &rows);
                    }
                    let Some(known) = self.writers.get_mut(&place) else {
                        self.receiver.lost(&place, ticket);
                        continue;
                    };
                    match known.writer.packed(rows) {
                        Ok(()) => known.writer.mark(ticket),
                        // The receiver compared the table; a block that cannot be stored is lost.
                        Err(_) => self.receiver.lost(&place, ticket),
                    }
                }
                Output::Facts { cluster, devices } => {
                    let dir = clusters::dir_of(&self.dir, Some(&cluster));
                    if let Err(error) = devices::write(&dir, &devices) {
                        let error = in_one_line(&error);
                        tracing::warn!(error, cluster, "its devices are known by their rows only");
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

    fn open(&mut self, place: &Place, tables: &[TableSchema], after: Ticket) {
        // What was handed over goes to the kernel first.
        self.writers.remove(place);
        let (dir, stream) = (clusters::dir_of(&self.dir, place.cluster.as_deref()), &place.stream);
        if let Err(error) = make(&dir) {
            return self.receiver.not_opened(place, &in_one_line(&error));
        }
        // The writer has noted it, if the disk let it.
        if self.distrusted.contains(place)
            && let Err(error) = StreamWriter::distrust(&dir, stream)
        {
            let text = format!("its disk refused to sync it, and cannot note that: {error}");
            return self.receiver.not_opened(place, &text);
        }
        self.distrusted.remove(place);
        // Parquet files of samples are larger than their blocks.
        let compact = !tables.iter().any(|table| table.role() == Role::Samples);
        let usual = StreamOptions::COLLECTOR;
        let options = StreamOptions {
            sync_every: SYNC_EVERY,
            segment_span: if compact { usual.segment_span } else { SEGMENT_SPAN },
            segments_by: SegmentsBy::Arrival,
            when_full: WhenFull::Wait,
            when_removed: WhenRemoved::Drop,
            compact,
            ..usual
        };
        let now = self.now();
        let opened = StreamWriter::open(&dir, Kind::Measured, stream, tables.to_vec(), options);
        match opened {
            Ok(writer) if writer.synced().is_stopped => {
                self.receiver.not_opened(place, "its disk refuses to sync what it has");
            }
            Ok(mut writer) => {
                let arrived = writer.take_arrived();
                let received = writer.received().clone();
                let before = match &place.cluster {
                    Some(_) => turns::read(&dir, tables),
                    None => Ok(Default::default()),
                };
                let on_disk = match before {
                    Ok((turns, newest_ns)) => OnDisk { received, turns, newest_ns, arrived },
                    Err(error) => {
                        let text = format!("what it has cannot be read: {}", in_one_line(&error));
                        return self.receiver.not_opened(place, &text);
                    }
                };
                self.receiver.opened(now, (place, tables), after, &on_disk);
                let (tables, written) = (tables.to_vec(), VecDeque::new());
                self.writers.insert(place.clone(), Stream { writer, tables, written });
                show(&self.catalog, &dir);
            }
            Err(error) => {
                let text = in_one_line(&error);
                tracing::warn!(%place, error = text, "rows that are sent cannot be written");
                self.receiver.not_opened(place, &text);
            }
        }
    }

    /// Tells the receiver what is on the disk by now, and what never will be.
    fn acknowledge(&mut self) {
        let mut to_open = Vec::new();
        for (place, stream) in &mut self.writers {
            for incident in stream.writer.take_incidents() {
                tracing::warn!(%place, text = incident.text, "the recording of sent rows");
            }
            for kept in stream.writer.take_kept() {
                if kept.lost_rows > 0 {
                    self.receiver.lost(place, kept.token);
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
                self.receiver.synced(place, ticket);
            }
            if synced.is_stopped {
                to_open.push((place.clone(), stream.tables.clone()));
            }
        }
        // Nobody knows what the disk has behind the watermark: the stream is read again.
        for (place, tables) in to_open {
            self.distrusted.insert(place.clone());
            let after = self.receiver.last_ticket();
            self.open(&place, &tables, after);
        }
    }

    /// Says good-bye to all, and closes the recording.
    fn end(&mut self) {
        self.receiver.end();
        self.do_what_is_asked();
        for (place, stream) in std::mem::take(&mut self.writers) {
            if let Err(error) = stream.writer.close() {
                tracing::warn!(%place, %error, "the recording of sent rows was not closed");
            }
        }
    }
}
