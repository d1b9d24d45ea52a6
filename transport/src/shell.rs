//! The sender's shell: one thread, one connection at a time, no runtime.
//!
//! [`Uplink::offer`] hands a block to the thread by a bounded queue and never waits: whoever measures
//! is not slowed by a line, a disk or a receiver. The thread sleeps in `poll` until there is
//! something to do; connections are made by a thread of their own, so that blocks go to the spool
//! meanwhile.

mod connect;
mod forward;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use meikyo_recording::PackedRows;
use meikyo_recording::devices::Device;
use meikyo_units::{Nanos, WallTime, in_one_line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use connect::{ConnectError, Target, Upgraded, ask, vouched, web_socket, with_port};
use connect::{Connecting, Line};
pub use forward::{Forward, ForwardError, Handle, Panicked};

use crate::limits::{ASKED_MAX, QUEUE_BLOCKS_MAX, UNWRITTEN_BYTES_MAX};
use crate::now::Now;
use crate::sender::{OfferError, OpenSenderError, Sender, SenderOptions, SenderStatus, Skipped};
use crate::spool::Directory;
use crate::wire::{Ask, Declared};

/// Octets that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Why a sender cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The spool's directory cannot be used.
    #[error("cannot use `{path}` as a spool")]
    Spool {
        /// Directory named for the spool.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The sender cannot begin.
    #[error(transparent)]
    Sender(#[from] OpenSenderError),
    /// The system gives no thread or no pipe.
    #[error("cannot start the sender's thread")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

/// How an uplink stands.
#[derive(Debug, Clone)]
pub struct UplinkStatus {
    /// What the core says.
    pub sender: SenderStatus,
    /// Blocks that were accepted: in the spool, with a number.
    pub accepted_blocks: u64,
    /// Octets that were handed to connections, before TLS.
    pub written_bytes: u64,
    /// Why there is no connection, the last that was said.
    pub trouble: Option<String>,
}

impl UplinkStatus {
    /// Whether it was said that nothing more comes, and the receiver has everything on its disk.
    pub fn is_delivered(&self) -> bool {
        let spool = self.sender.spool;
        self.sender.is_finished && spool.blocks + spool.gaps == 0
    }
}

#[derive(Debug)]
enum Order {
    Rows(String, PackedRows),
    /// Nothing more comes.
    Finish,
}

#[derive(Debug)]
struct Shared {
    status: Mutex<Option<UplinkStatus>>,
    changed: Condvar,
    /// How many wait for it to change.
    waiting: AtomicUsize,
    /// What the receiver wants to be told.
    asked: Mutex<VecDeque<Ask>>,
    /// What found no room in the queue, by stream.
    skipped: Mutex<BTreeMap<String, Skipped>>,
    /// What is to be told of the devices.
    facts: Mutex<Option<Vec<Device>>>,
    /// The tables of each stream; nothing else is taken.
    declared: BTreeMap<String, BTreeSet<String>>,
}

/// A sender that runs.
#[derive(Debug)]
pub struct Uplink {
    orders: SyncSender<Order>,
    waker: UnixStream,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A lock whose values are replaced as a whole, so that a panic elsewhere leaves them right.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Uplink {
    /// Starts a sender; its spool is in memory when no directory is given.
    ///
    /// # Errors
    /// When the spool cannot be used, or the system gives no thread.
    pub fn start(
        target: Target,
        options: SenderOptions,
        spool: Option<&Path>,
    ) -> Result<Self, StartError> {
        let unusable = |path: &Path| {
            let path = path.to_path_buf();
            move |source| StartError::Spool { path, source }
        };
        let files = spool.map(|path| Directory::open(path).map_err(unusable(path))).transpose()?;
        let tables = |declared: &Declared| {
            let names = declared.tables.iter().map(|table| table.name.clone());
            (declared.stream.clone(), names.collect())
        };
        let declared = options.streams.iter().map(tables).collect();
        let sender = Sender::open(options, files)?;
        let refused = |source| StartError::Thread { source };
        let (woken, waker) = UnixStream::pair().map_err(refused)?;
        woken.set_nonblocking(true).map_err(refused)?;
        waker.set_nonblocking(true).map_err(refused)?;
        let (orders, waiting) = sync_channel(QUEUE_BLOCKS_MAX);
        let shared = Arc::new(Shared {
            status: Mutex::new(None),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            asked: Mutex::default(),
            skipped: Mutex::default(),
            facts: Mutex::default(),
            declared,
        });
        let mut uplink = Thread {
            sender,
            target,
            waiting,
            woken,
            own_waker: waker.try_clone().map_err(refused)?,
            shared: Arc::clone(&shared),
            begun: monotonic(),
            line: None,
            is_readable: false,
            connecting: None,
            unwritten: Vec::new(),
            written: 0,
            accepted: 0,
            trouble: None,
        };
        uplink.publish();
        let thread = std::thread::Builder::new()
            .name("uplink".into())
            .spawn(move || uplink.run())
            .map_err(refused)?;
        Ok(Self { orders, waker, shared, thread: Some(thread) })
    }

    /// Hands over rows of a stream; never waits. What finds no room is counted, and told to the
    /// receiver as a gap; so is a block that is too long.
    ///
    /// # Errors
    /// When the stream or the table was not declared: nobody can be told of these rows.
    pub fn offer(&self, stream: &str, rows: PackedRows) -> Result<(), OfferError> {
        self.offer_all(stream, [rows])
    }

    /// The same of several blocks, for all of which the thread is woken once.
    ///
    /// # Errors
    /// When the stream or a table was not declared; the blocks before that one were taken.
    pub fn offer_all(
        &self,
        stream: &str,
        blocks: impl IntoIterator<Item = PackedRows>,
    ) -> Result<(), OfferError> {
        let queued = blocks.into_iter().try_for_each(|rows| self.enqueue(stream, rows));
        wake(&self.waker);
        queued
    }

    fn enqueue(&self, stream: &str, rows: PackedRows) -> Result<(), OfferError> {
        let tables = self.shared.declared.get(stream);
        if !tables.is_some_and(|tables| tables.contains(rows.table())) {
            let (stream, table) = (stream.to_owned(), rows.table().to_owned());
            return Err(OfferError::Undeclared { stream, table });
        }
        let (count, times) = (rows.rows() as u64, rows.times());
        match self.orders.try_send(Order::Rows(stream.to_owned(), rows)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                let (from_ns, until_ns) = times;
                self.note_skipped(stream, Skipped { blocks: 1, rows: count, from_ns, until_ns });
            }
        }
        Ok(())
    }

    /// The next thing that the receiver wants to be told.
    pub fn next_asked(&self) -> Option<Ask> {
        locked(&self.shared.asked).pop_front()
    }

    /// Tells of rows of a stream that were dropped before they were offered, as if they had found no
    /// room in the queue.
    pub fn skip(&self, stream: &str, skipped: Skipped) {
        self.note_skipped(stream, skipped);
        wake(&self.waker);
    }

    fn note_skipped(&self, stream: &str, new: Skipped) {
        let mut skipped = locked(&self.shared.skipped);
        skipped.entry(stream.to_owned()).and_modify(|all| all.add(new)).or_insert(new);
    }

    /// Says what is known of the devices of the cluster, in this session and in later ones.
    pub fn tell_devices(&self, devices: Vec<Device>) {
        *locked(&self.shared.facts) = Some(devices);
        wake(&self.waker);
    }

    /// How it stands.
    ///
    /// # Panics
    /// Never: a status is there before the thread is.
    pub fn status(&self) -> UplinkStatus {
        locked(&self.shared.status).clone().expect("it was published before the thread began")
    }

    /// Waits until `holds` is true of the status, or `patience` is over; the status then.
    ///
    /// # Panics
    /// Never: a status is there before the thread is.
    pub fn wait(
        &self,
        patience: Nanos,
        mut holds: impl FnMut(&UplinkStatus) -> bool,
    ) -> UplinkStatus {
        let lacks = |status: &mut Option<UplinkStatus>| !status.as_ref().is_some_and(&mut holds);
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        // What the receiver says is listened to now.
        wake(&self.waker);
        let status = locked(&self.shared.status);
        let waited = self.shared.changed.wait_timeout_while(status, patience.to_std(), lacks);
        // As in `locked`: a panic elsewhere leaves a status as it was published.
        let status = waited.unwrap_or_else(PoisonError::into_inner).0.clone();
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
        status.expect("it was published before the thread began")
    }

    /// Says that nothing more comes, and waits until the receiver has everything on its disk, or
    /// `patience` is over. How the uplink stands then, see [`UplinkStatus::is_delivered`].
    pub fn finish(mut self, patience: Nanos) -> UplinkStatus {
        // A full queue is emptied by the thread: this waits for it. Where that has ended, nothing more
        // is delivered.
        if self.orders.send(Order::Finish).is_ok() {
            wake(&self.waker);
            self.wait(patience, UplinkStatus::is_delivered);
        }
        self.end();
        self.status()
    }

    fn end(&mut self) {
        // The thread ends when nobody can give it orders.
        let (nobody, _) = sync_channel(1);
        self.orders = nobody;
        wake(&self.waker);
        if let Some(thread) = self.thread.take() {
            // A panic there has told of itself, and the spool keeps what it had.
            drop(thread.join());
        }
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        self.end();
    }
}

/// Wakes the thread; a pipe that is full wakes it, too.
fn wake(waker: &UnixStream) {
    let mut waker = waker;
    drop(waker.write(&[0]));
}

#[expect(clippy::disallowed_methods, reason = "the shell reads the clock for its core")]
fn monotonic() -> Instant {
    Instant::now()
}

struct Thread {
    sender: Sender<Directory>,
    target: Target,
    waiting: Receiver<Order>,
    woken: UnixStream,
    own_waker: UnixStream,
    shared: Arc<Shared>,
    begun: Instant,
    line: Option<Line>,
    /// Whether the line may hold something to read.
    is_readable: bool,
    connecting: Option<Connecting>,
    /// What the system has not taken yet.
    unwritten: Vec<u8>,
    written: u64,
    accepted: u64,
    trouble: Option<String>,
}

impl Thread {
    fn now(&self) -> Now {
        let passed = monotonic().duration_since(self.begun).as_nanos();
        let passed = u64::try_from(passed).expect("584 years do not pass");
        // The core's clock does not begin at zero, so that "two seconds ago" is an instant.
        Now { monotonic: Nanos::from_secs(60) + Nanos::new(passed), wall: WallTime::now() }
    }

    fn run(&mut self) {
        loop {
            // What was acknowledged meanwhile makes room for what is handed over.
            self.listen();
            if !self.take_orders() {
                return;
            }
            self.tell_devices();
            let now = self.now();
            if let Err(error) = self.sender.tick(now) {
                self.close(&error.to_string());
            }
            self.connect();
            self.converse();
            self.publish();
            self.sleep();
        }
    }

    /// Takes what was handed over; whether anybody can still hand over anything.
    fn take_orders(&mut self) -> bool {
        loop {
            let now = self.now();
            match self.waiting.try_recv() {
                Ok(Order::Rows(stream, rows)) => match self.sender.offer(now, &stream, &rows) {
                    Ok(_) => self.accepted += 1,
                    // The receiver is told of it, and people by the status.
                    Err(error) => self.trouble = Some(in_one_line(&error)),
                },
                Ok(Order::Finish) => {
                    self.skip();
                    self.sender.finish(now);
                }
                Err(TryRecvError::Empty) => {
                    self.skip();
                    return true;
                }
                Err(TryRecvError::Disconnected) => {
                    // The spool keeps it for the next life, or for who is told in this one.
                    self.skip();
                    return false;
                }
            }
        }
    }

    fn skip(&mut self) {
        let skipped = std::mem::take(&mut *locked(&self.shared.skipped));
        for (stream, skipped) in skipped {
            self.sender.skip(&stream, skipped);
        }
    }

    fn tell_devices(&mut self) {
        let devices = locked(&self.shared.facts).take();
        if let Some(Err(error)) = devices.map(|devices| self.sender.tell_devices(devices)) {
            self.trouble = Some(in_one_line(&error));
        }
    }

    fn connect(&mut self) {
        let now = self.now();
        if let Some(connecting) = self.connecting.take_if(|connecting| connecting.is_done()) {
            match connecting.outcome() {
                Ok((line, first)) => {
                    self.line = Some(line);
                    self.is_readable = true;
                    self.trouble = None;
                    self.sender.connected(now);
                    self.hear(&first);
                }
                Err(error) => {
                    self.trouble = Some(error);
                    self.sender.disconnected(now, chance());
                }
            }
        }
        if self.line.is_none() && self.connecting.is_none() && self.sender.wants_connection(now) {
            match Connecting::begin(&self.target, &self.own_waker) {
                Ok(connecting) => self.connecting = Some(connecting),
                Err(error) => {
                    self.trouble = Some(error.to_string());
                    self.sender.disconnected(now, chance());
                }
            }
        }
    }

    /// Reads what can be without waiting.
    fn listen(&mut self) {
        let mut octets = [0; READ_BYTES];
        while self.is_readable {
            let Some(line) = &mut self.line else { return };
            match line.read(&mut octets) {
                Ok(0) => return self.close("the receiver closed the connection"),
                Ok(count) => {
                    // What comes while this is heard wakes the thread.
                    self.is_readable = count == octets.len() || line.holds_octets();
                    self.hear(&octets[..count]);
                }
                Err(error) if is_later(&error) => self.is_readable = false,
                Err(error) => return self.close(&error.to_string()),
            }
        }
    }

    /// Reads and writes what can be without waiting.
    fn converse(&mut self) {
        self.listen();
        loop {
            let now = self.now();
            while self.unwritten.len() < UNWRITTEN_BYTES_MAX
                && let Some(frame) = self.sender.poll_transmit(now)
            {
                self.unwritten.extend_from_slice(&frame);
            }
            let Some(line) = &mut self.line else { return };
            let written = if self.unwritten.is_empty() {
                line.flush().map(|()| 0)
            } else {
                line.write(&self.unwritten)
            };
            match written {
                Ok(0) => return,
                Ok(count) => {
                    self.written += count as u64;
                    self.unwritten.drain(..count);
                }
                Err(error) if is_later(&error) => return,
                Err(error) => return self.close(&error.to_string()),
            }
        }
    }

    fn hear(&mut self, octets: &[u8]) {
        let now = self.now();
        if let Err(error) = self.sender.handle(now, octets) {
            self.close(&error.to_string());
        }
        let mut asked = locked(&self.shared.asked);
        while asked.len() < ASKED_MAX
            && let Some(ask) = self.sender.next_asked()
        {
            asked.push_back(ask);
        }
    }

    fn close(&mut self, why: &str) {
        self.line = None;
        self.unwritten.clear();
        self.trouble = Some(why.to_owned());
        let now = self.now();
        self.sender.disconnected(now, chance());
    }

    fn publish(&self) {
        let sender = self.sender.status();
        let status = UplinkStatus {
            sender,
            accepted_blocks: self.accepted,
            written_bytes: self.written,
            trouble: self.trouble.clone(),
        };
        *locked(&self.shared.status) = Some(status);
        if self.is_waited_for() {
            self.shared.changed.notify_all();
        }
    }

    /// Whether somebody waits for what is published.
    fn is_waited_for(&self) -> bool {
        self.shared.waiting.load(Ordering::SeqCst) > 0
    }

    /// Sleeps until something can be read or written, somebody wakes the thread, or it is time. Acknowledgements
    /// that nothing waits for do not end it: on a busy host waking up costs more than reading them.
    fn sleep(&mut self) {
        let now = self.now();
        let wait = self.sender.next_wakeup(now).saturating_sub(now.monotonic);
        // While a connection is being made its thread wakes this one.
        let wait = if self.connecting.is_some() { wait.max(Nanos::from_millis(200)) } else { wait };
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.get() / 1_000_000_000).expect("waits are seconds"),
            tv_nsec: i64::try_from(wait.get() % 1_000_000_000).expect("it is below a billion"),
        };
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        let hears_later = self.sender.can_hear_later() && !self.is_waited_for();
        if let Some(line) = &self.line {
            let mut wanted = if hears_later { PollFlags::RDHUP } else { PollFlags::IN };
            if !self.unwritten.is_empty() || line.wants_write() {
                wanted |= PollFlags::OUT;
            }
            fds.push(PollFd::new(line.socket(), wanted));
        }
        // Where the system cannot say, everything is looked at.
        let is_known = poll(&mut fds, Some(&timeout)).is_ok();
        let may_read =
            |fd: &PollFd<'_>| !is_known || !fd.revents().difference(PollFlags::OUT).is_empty();
        let is_woken = fds.first().is_some_and(may_read);
        let is_filled = fds.get(1).is_some_and(may_read);
        drop(fds);
        self.is_readable =
            is_filled || hears_later || self.line.as_ref().is_some_and(Line::holds_octets);
        let mut octets = [0; 256];
        while is_woken
            && matches!((&self.woken).read(&mut octets), Ok(count) if count == octets.len())
        {
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Any number: it spreads when senders come back.
fn chance() -> u64 {
    let mut octets = [0; 8];
    let read =
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets));
    // Without it all senders wait for the same time, which is no fault.
    drop(read);
    u64::from_le_bytes(octets)
}
