//! One job of a [`Schedule`] carried out: blocks go over connections while their hosts read, fold, code and
//! keep.
//!
//! Every connection has a thread at each end. A host begins a block only while fewer than
//! [`ExchangeOptions::window`] of its own are under way, and is told by whoever keeps the result that one
//! has arrived, so that a group of N hosts never has more than N windows of blocks in memory, whatever
//! is slow: links, hosts or disks. Several connections to one host take blocks from one queue, so that
//! the faster link carries more.

mod begin;
mod receive;
mod update;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use meikyo_units::Bytes;

use crate::coding::CodingError;
use crate::frame::{Head, HeadError, Kind};
use crate::increment;
use crate::layout::Shard;
use crate::pace::Pace;
use crate::schedule::Schedule;
use crate::tls::{Inbound, Outbound};

/// What a host has.
pub trait Blocks: Sync {
    /// A block of this host, which may be shorter than others at the end of an image. `scratch` is memory
    /// that can be used for it.
    ///
    /// # Errors
    /// When it cannot be read, or is not what was stored.
    fn block<'a>(
        &'a self,
        stripe: u32,
        shard: Shard,
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]>;

    /// Whether a block is another than in the generation that is updated. Of a job of
    /// [`Update`](crate::schedule::Job::Update), [`Blocks::block`] gives the difference of those that are.
    fn is_changed(&self, _stripe: u32, _shard: Shard) -> bool {
        true
    }
}

/// What a host keeps.
pub trait Keep: Sync {
    /// Keeps a block, or what changed in it; waits while too much is waiting to be written.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn keep(&self, stripe: u32, shard: Shard, octets: Vec<u8>) -> io::Result<()>;

    /// Memory for a block, of what was kept before where there is some.
    fn memory(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// The connections of a host for one job.
#[derive(Debug, Default)]
pub struct Links {
    /// To each host that it sends to, one or more.
    pub outbound: BTreeMap<usize, Vec<Outbound>>,
    /// From hosts that send to it.
    pub inbound: Vec<(usize, Inbound)>,
    /// How fast may be sent, where that is limited.
    pub pace: Option<Arc<Pace>>,
}

impl Links {
    /// A way to break all of them from elsewhere.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn breaker(&self) -> io::Result<Breaker> {
        let outbound = self.outbound.values().flatten().map(Outbound::socket);
        let inbound = self.inbound.iter().map(|(_, lane)| lane.socket());
        Ok(Breaker { sockets: outbound.chain(inbound).collect::<Result<_, _>>()? })
    }
}

/// Breaks the connections of a job, so that it ends.
#[derive(Debug)]
pub struct Breaker {
    sockets: Vec<TcpStream>,
}

impl Breaker {
    /// Breaks them.
    pub fn cut(&self) {
        for socket in &self.sockets {
            // It may have ended by itself.
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

/// How a job is carried out.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeOptions {
    /// Blocks of a host that may be under way at once.
    pub window: usize,
    /// A connection that has nothing to carry says that it lives so often.
    pub idle: Duration,
}

impl ExchangeOptions {
    /// Eight blocks, 2 MiB by default: 16 ms of a gigabit link, against some 1 ms that a block is on its
    /// way through a busy host.
    pub const DEFAULT: Self = Self { window: 8, idle: Duration::from_secs(4) };
}

/// Why a job did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// A connection broke.
    #[error("the connection with the host at place {place} broke")]
    Peer {
        /// The place of the host at its other end.
        place: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A host sent what does not belong to the job.
    #[error("the host at place {place} sent what is not of this job: {what}")]
    Foreign {
        /// The place of the host that sent it.
        place: usize,
        /// What it was.
        what: String,
    },
    /// A block of this host cannot be read.
    #[error("a block of this host cannot be read")]
    Read(#[source] io::Error),
    /// A block cannot be kept.
    #[error("a block cannot be written")]
    Keep(#[source] io::Error),
    /// Blocks do not make a code word.
    #[error("blocks cannot be coded")]
    Coding(#[source] CodingError),
    /// There is no connection to a host that is sent to.
    #[error("there is no connection to the host at place {0}")]
    NoLink(usize),
}

/// What a job moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Octets of blocks that this host sent.
    pub sent: Bytes,
    /// Octets of blocks that it received.
    pub received: Bytes,
}

/// What is to be sent.
struct Outgoing {
    head: Head,
    payload: Payload,
    /// Who may begin another block once this is sent.
    credits: Vec<usize>,
}

enum Payload {
    /// A block of this host, read when it is sent.
    Own(u32, Shard),
    Octets(Vec<u8>),
    Nothing,
}

/// What waits for one host.
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    lanes: usize,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Outgoing>,
    is_closed: bool,
}

/// Blocks that come together on this host.
struct Gathering {
    parts: Vec<Option<Vec<u8>>>,
    sources: Vec<usize>,
}

#[derive(Default)]
struct State {
    under_way: usize,
    arrived: u64,
    /// Results on their way to be sent, whose sources may then begin another block.
    owed: u64,
    /// Of what has arrived, what was to be coded here.
    gathered: u64,
    gathering: BTreeMap<(u32, usize), Gathering>,
    /// By code word and source, the stripes in which that source's blocks have not changed.
    same: BTreeMap<(usize, usize), update::Runs>,
    /// In how many stripes a code word has changed.
    coded: BTreeMap<usize, u32>,
    failure: Option<ExchangeError>,
    moved: Moved,
}

struct Exchange<'a> {
    schedule: &'a Schedule,
    me: usize,
    blocks: &'a dyn Blocks,
    keep: &'a dyn Keep,
    queues: BTreeMap<usize, Queue>,
    state: Mutex<State>,
    changed: Condvar,
    breaker: Breaker,
    pace: Option<Arc<Pace>>,
    window: usize,
    idle: Duration,
}

/// A lock that no thread panics under: what it guards is changed in single steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics under this lock")
}

/// Carries out this host's part of a job, and returns when it is done: everything that it keeps was kept,
/// and everything that it sends was sent.
///
/// # Errors
/// The first thing that went wrong; all connections are broken then, so that the others notice.
///
/// # Panics
/// Only if `blocks` or `keep` panics.
pub fn exchange(
    schedule: &Schedule,
    me: usize,
    blocks: &dyn Blocks,
    keep: &dyn Keep,
    links: Links,
    options: ExchangeOptions,
) -> Result<Moved, ExchangeError> {
    let breaker = links.breaker().map_err(|source| ExchangeError::Peer { place: me, source })?;
    let queue = |lanes: &Vec<Outbound>| Queue {
        waiting: Mutex::default(),
        changed: Condvar::new(),
        lanes: lanes.len(),
    };
    let exchange = Exchange {
        schedule,
        me,
        blocks,
        keep,
        queues: links.outbound.iter().map(|(place, lanes)| (*place, queue(lanes))).collect(),
        state: Mutex::default(),
        changed: Condvar::new(),
        breaker,
        pace: links.pace.clone(),
        idle: options.idle,
        // Gathering needs a stripe of its own under way, or two hosts wait for each other's block.
        window: options
            .window
            .max(1)
            .max(2 * schedule.geometry().layout().hosts() * usize::from(schedule.gathers())),
    };
    thread::scope(|scope| {
        for (place, lanes) in links.outbound {
            for lane in lanes {
                let exchange = &exchange;
                scope.spawn(move || exchange.guarded(|| exchange.send_all(place, lane)));
            }
        }
        for (place, lane) in links.inbound {
            let exchange = &exchange;
            scope.spawn(move || exchange.guarded(|| exchange.receive_all(place, lane)));
        }
        exchange.guarded(|| exchange.begin_all());
        exchange.close();
    });
    let state = exchange.state.into_inner().expect("no thread panics under this lock");
    state.failure.map_or(Ok(state.moved), Err)
}

impl Exchange<'_> {
    /// Runs a part; what fails first is why everything ends.
    fn guarded(&self, part: impl FnOnce() -> Result<(), ExchangeError>) {
        let Err(error) = part() else { return };
        let mut state = locked(&self.state);
        if state.failure.is_none() {
            state.failure = Some(error);
        }
        drop(state);
        self.breaker.cut();
        self.close();
        self.changed.notify_all();
    }

    fn has_failed(&self) -> bool {
        locked(&self.state).failure.is_some()
    }

    /// Nothing more is put into the queues.
    fn close(&self) {
        for queue in self.queues.values() {
            locked(&queue.waiting).is_closed = true;
            queue.changed.notify_all();
        }
    }

    fn push(&self, place: usize, outgoing: Outgoing) -> Result<(), ExchangeError> {
        let queue = self.queues.get(&place).ok_or(ExchangeError::NoLink(place))?;
        debug_assert!(queue.lanes > 0, "a host that is sent to has a connection");
        locked(&queue.waiting).frames.push_back(outgoing);
        queue.changed.notify_one();
        Ok(())
    }

    /// Lets whoever began a block begin another.
    fn credit(&self, place: usize) -> Result<(), ExchangeError> {
        if place == self.me {
            self.credited();
            return Ok(());
        }
        let head = Head::bare(Kind::Credit);
        self.push(place, Outgoing { head, payload: Payload::Nothing, credits: Vec::new() })
    }

    fn credited(&self) {
        let mut state = locked(&self.state);
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }

    /// One connection's sending end: takes blocks from the queue of its host until that is closed.
    fn send_all(&self, place: usize, mut lane: Outbound) -> Result<(), ExchangeError> {
        let queue = &self.queues[&place];
        let broke = |source| ExchangeError::Peer { place, source };
        let (mut scratch, mut packed) = (Vec::new(), Vec::new());
        let mut sent = 0;
        loop {
            let mut waiting = locked(&queue.waiting);
            let mut is_idle = false;
            while waiting.frames.is_empty() && !waiting.is_closed && !is_idle {
                let waited = queue.changed.wait_timeout(waiting, self.idle);
                let (next, timeout) = waited.expect("no thread panics under this lock");
                (waiting, is_idle) = (next, timeout.timed_out());
            }
            let next = waiting.frames.pop_front();
            let is_over = waiting.is_closed;
            drop(waiting);
            let Some(outgoing) = next else {
                if is_over {
                    break;
                }
                lane.send(&Head::bare(Kind::Idle).octets(), &[]).map_err(broke)?;
                continue;
            };
            if self.has_failed() {
                return Ok(());
            }
            let Outgoing { mut head, payload, credits } = outgoing;
            let octets: &[u8] = match &payload {
                Payload::Own(stripe, shard) => {
                    let block = self.blocks.block(*stripe, *shard, &mut scratch);
                    let block = block.map_err(ExchangeError::Read)?;
                    if self.is_update() {
                        let word_len =
                            self.schedule.geometry().word_len(*stripe, usize::from(head.word));
                        increment::pack(block, word_len, &mut packed);
                        &packed
                    } else {
                        block
                    }
                }
                Payload::Octets(octets) => octets,
                Payload::Nothing => &[],
            };
            if head.kind != Kind::Same {
                head.len = u32::try_from(octets.len()).expect("a block's length fits 32 bits");
            }
            if let Some(pace) = &self.pace {
                pace.wait_for(octets.len());
            }
            lane.send(&head.octets(), octets).map_err(broke)?;
            sent += octets.len() as u64;
            if !credits.is_empty() {
                credits.into_iter().try_for_each(|place| self.credit(place))?;
                locked(&self.state).owed -= 1;
                self.changed.notify_all();
            }
        }
        locked(&self.state).moved.sent += Bytes::new(sent);
        if self.has_failed() {
            return Ok(());
        }
        lane.send(&Head::bare(Kind::End).octets(), &[]).map_err(broke)?;
        lane.close();
        Ok(())
    }
}

impl From<(usize, HeadError)> for ExchangeError {
    fn from((place, error): (usize, HeadError)) -> Self {
        Self::Foreign { place, what: error.to_string() }
    }
}
