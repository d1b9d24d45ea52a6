//! The truth file: what every agent of a farm really held when it was asked.
//!
//! Little-endian, no padding. Head: `MKTRUTH1`, agents (u32), hosts (u32), seed (u64), span of a
//! step in ns (u64), start in ns since the Unix epoch (i64). Then records, each with its kind first:
//!
//! | kind (u8) | then |
//! | --- | --- |
//! | 1, a list of objects | number (u32), objects (u16), for each: octets (u8) and content octets of its OID, octets (u8) and text of its subject |
//! | 2, a request | flags (u8), agent (u32), request id (i32), received (i64, ns), sent (i64, ns), sysUpTime (u32), list (u32), error status (u8), values (u16), each value answered (u64), and with flag 64 each value that was really held (u64) |
//! | 3, an event | agent (u32), at (i64, ns), what (u8) |
//!
//! A list names those objects of a GET that move, in the order of the request, before the first
//! request that refers to it. Counters of 32 bits are given with all 64 that stand behind them;
//! a packet counter, a load (hundredths) and so on as the number that is answered. The subject is
//! the interface or the path that the object really belonged to, whatever its index.

use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use meikyo_units::{Nanos, WallTime};
use thiserror::Error;

use super::machine::Held;
use crate::Oid;

const MAGIC: &[u8; 8] = b"MKTRUTH1";
const KIND_LIST: u8 = 1;
const KIND_REQUEST: u8 = 2;
const KIND_EVENT: u8 = 3;
/// The list of a request without values.
const NO_LIST: u32 = u32::MAX;

/// Octets that are handed to the writer's thread at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks on their way to the disk; beyond, the farm waits, since a truth with holes is none.
const CHUNKS_MAX: usize = 64;

/// What happened to a request; a sum of these.
pub mod flag {
    /// Nothing was answered, or what was got lost.
    pub const LOST: u8 = 1;
    /// The answer was held back as a late one.
    pub const LATE: u8 = 2;
    /// The answer was sent twice.
    pub const DUPLICATED: u8 = 4;
    /// The answer was cut off.
    pub const TRUNCATED: u8 = 8;
    /// The answer had another request id.
    pub const WRONG_ID: u8 = 16;
    /// The request itself got lost, or the agent was dead: nothing was read or written for it.
    pub const REQUEST_LOST: u8 = 32;
    /// Some values came from a cache: those that were really held follow.
    pub const CACHED: u8 = 64;
    /// The answer was a report.
    pub const REPORT: u8 = 128;
}

/// What a farm was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruthHead {
    /// How many agents.
    pub agents: u32,
    /// How many of them, the first ones, are hosts.
    pub hosts: u32,
    /// The farm's seed.
    pub seed: u64,
    /// Span between two changes of the counters.
    pub step: Nanos,
    /// When the farm started.
    pub start: WallTime,
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthObject {
    /// The OID that was asked for.
    pub oid: Oid,
    /// The interface's name or the disk's path; empty for objects of the whole machine.
    pub subject: String,
}

/// What a person or a script did to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TruthEventKind {
    /// The agent restarted.
    Restart = 1,
    /// The machine restarted.
    Reboot = 2,
    /// The interfaces got other indexes.
    Renumber = 3,
    /// The interface counters started from 0.
    Reset = 4,
}

impl TruthEventKind {
    const ALL: [Self; 4] = [Self::Restart, Self::Reboot, Self::Renumber, Self::Reset];
}

/// A record of a truth file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TruthRecord {
    /// An agent was asked.
    Request(TruthRequest),
    /// Something was done to an agent.
    Event {
        /// The agent's ordinal.
        agent: u32,
        /// Instant at which it was done.
        at: WallTime,
        /// What happened to the agent.
        kind: TruthEventKind,
    },
}

/// A request that an agent got, or would have got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthRequest {
    /// The sum of its [`flag`]s.
    pub flags: u8,
    /// The agent's ordinal.
    pub agent: u32,
    /// The request's id; 0 if it could not be read.
    pub request_id: i32,
    /// When it was read from the socket.
    pub received: WallTime,
    /// When its answer was to leave.
    pub sent: WallTime,
    /// sysUpTime, hundredths of a second.
    pub uptime_cs: u32,
    /// The error status of the answer.
    pub error_status: u8,
    /// The objects that move; empty unless it is a GET that was answered without an error.
    pub objects: Arc<[TruthObject]>,
    /// What was answered, by object.
    pub answered: Vec<u64>,
    /// What was really held at that moment, by object: differs where the agent caches.
    pub held: Vec<u64>,
}

/// What the farm knows of a request, for [`TruthLog::request`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) flags: u8,
    pub(super) agent: u32,
    pub(super) request_id: i32,
    pub(super) received: WallTime,
    pub(super) sent: WallTime,
    pub(super) uptime_cs: u64,
    pub(super) error_status: u8,
    pub(super) list: Option<u32>,
}

/// The octets of a truth file as they come, to be taken away by whoever keeps them.
#[derive(Debug)]
pub(super) struct TruthLog {
    pub(super) bytes: Vec<u8>,
    /// Which lists were written, by number.
    lists: Vec<bool>,
}

impl TruthLog {
    pub(super) fn new(head: TruthHead) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&head.agents.to_le_bytes());
        bytes.extend_from_slice(&head.hosts.to_le_bytes());
        bytes.extend_from_slice(&head.seed.to_le_bytes());
        bytes.extend_from_slice(&head.step.get().to_le_bytes());
        bytes.extend_from_slice(&head.start.as_nanos().to_le_bytes());
        Self { bytes, lists: Vec::new() }
    }

    /// Whether this list has to be written before a request refers to it; counts as written then.
    #[inline]
    pub(super) fn is_new(&mut self, list: u32) -> bool {
        let list = usize::try_from(list).expect("a list has a number of 32 bits");
        if list >= self.lists.len() {
            self.lists.resize(list + 1, false);
        }
        !std::mem::replace(&mut self.lists[list], true)
    }

    pub(super) fn list<'a>(
        &mut self,
        number: u32,
        objects: impl Iterator<Item = (&'a [u8], &'a str)>,
    ) {
        self.bytes.push(KIND_LIST);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        let count_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        let mut count = 0_u16;
        for (oid, subject) in objects {
            for part in [oid, subject.as_bytes()] {
                // Saturates: what is longer is cut.
                let length = u8::try_from(part.len()).unwrap_or(u8::MAX);
                self.bytes.push(length);
                self.bytes.extend_from_slice(&part[..usize::from(length)]);
            }
            count += 1;
        }
        self.bytes[count_at..count_at + 2].copy_from_slice(&count.to_le_bytes());
    }

    #[inline]
    pub(super) fn request(&mut self, seen: &Seen, values: &[Held]) {
        let values = if seen.list.is_some() { values } else { &[] };
        let cached = values.iter().any(|value| value.answered != value.live);
        let out = &mut self.bytes;
        out.push(KIND_REQUEST);
        out.push(seen.flags | if cached { flag::CACHED } else { 0 });
        out.extend_from_slice(&seen.agent.to_le_bytes());
        out.extend_from_slice(&seen.request_id.to_le_bytes());
        out.extend_from_slice(&seen.received.as_nanos().to_le_bytes());
        out.extend_from_slice(&seen.sent.as_nanos().to_le_bytes());
        let uptime = u32::try_from(seen.uptime_cs & 0xffff_ffff).expect("masked to 32 bits");
        out.extend_from_slice(&uptime.to_le_bytes());
        out.extend_from_slice(&seen.list.unwrap_or(NO_LIST).to_le_bytes());
        out.push(seen.error_status);
        out.extend_from_slice(
            &u16::try_from(values.len()).expect("a message has 64 KiB at most").to_le_bytes(),
        );
        for value in values {
            out.extend_from_slice(&value.answered.to_le_bytes());
        }
        if cached {
            for value in values {
                out.extend_from_slice(&value.live.to_le_bytes());
            }
        }
    }

    pub(super) fn event(&mut self, agent: u32, at: WallTime, kind: TruthEventKind) {
        self.bytes.push(KIND_EVENT);
        self.bytes.extend_from_slice(&agent.to_le_bytes());
        self.bytes.extend_from_slice(&at.as_nanos().to_le_bytes());
        self.bytes.push(kind as u8);
    }
}

/// Keeps what a farm's truth says in a file, on a thread of its own.
#[derive(Debug)]
pub struct TruthWriter {
    chunks: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl TruthWriter {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let (chunks, full) = sync_channel::<Vec<u8>>(CHUNKS_MAX);
        let (back, empty) = sync_channel(CHUNKS_MAX);
        let thread = std::thread::Builder::new().name("truth".into()).spawn(move || {
            for mut chunk in full {
                file.write_all(&chunk)?;
                chunk.clear();
                // Without room for it the buffer is simply freed.
                drop(back.try_send(chunk));
            }
            Ok(())
        })?;
        Ok(Self { chunks, empty, thread })
    }

    /// Takes the octets away if there are enough of them.
    pub fn append(&mut self, bytes: &mut Vec<u8>) {
        if bytes.len() >= CHUNK_BYTES {
            self.send(bytes);
        }
    }

    fn send(&mut self, bytes: &mut Vec<u8>) {
        let empty = self.empty.try_recv().unwrap_or_default();
        // The thread ends early only with an error, which `finish` returns.
        drop(self.chunks.send(std::mem::replace(bytes, empty)));
    }

    /// Writes what is left and closes the file.
    ///
    /// # Errors
    ///
    /// The first error of the disk.
    ///
    /// # Panics
    ///
    /// If the writer's thread did.
    pub fn finish(mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.send(bytes);
        drop(self.chunks);
        self.thread.join().expect("the writer's thread does not panic")
    }
}

/// Why a truth file cannot be read.
#[derive(Debug, Error)]
pub enum ReadTruthError {
    /// The file cannot be read.
    #[error("cannot read the truth file")]
    Read(#[source] io::Error),
    /// The file is no truth file of this version.
    #[error("the file does not begin with `MKTRUTH1`")]
    Magic,
    /// A record makes no sense.
    #[error("record {record} of the truth file is damaged")]
    Damaged {
        /// 0 for the first.
        record: u64,
    },
}

impl From<io::Error> for ReadTruthError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// A truth file being read: an iterator over its records in the order in which they were written.
#[derive(Debug)]
pub struct Truth<R> {
    head: TruthHead,
    source: R,
    lists: Vec<Arc<[TruthObject]>>,
    nothing: Arc<[TruthObject]>,
    record: u64,
    failed: bool,
}

/// Opens a truth file.
///
/// # Errors
///
/// If it cannot be read or is none.
pub fn read(path: &Path) -> Result<Truth<BufReader<File>>, ReadTruthError> {
    read_from(BufReader::with_capacity(1 << 20, File::open(path)?))
}

/// Reads truth from anything.
///
/// # Errors
///
/// If it cannot be read or is none.
pub fn read_from<R: Read>(mut source: R) -> Result<Truth<R>, ReadTruthError> {
    if read_array::<8>(&mut source)? != *MAGIC {
        return Err(ReadTruthError::Magic);
    }
    let head = TruthHead {
        agents: u32::from_le_bytes(read_array(&mut source)?),
        hosts: u32::from_le_bytes(read_array(&mut source)?),
        seed: u64::from_le_bytes(read_array(&mut source)?),
        step: Nanos::new(u64::from_le_bytes(read_array(&mut source)?)),
        start: WallTime::from_nanos(i64::from_le_bytes(read_array(&mut source)?)),
    };
    let nothing = Arc::from([]);
    Ok(Truth { head, source, lists: Vec::new(), nothing, record: 0, failed: false })
}

fn read_array<const N: usize>(source: &mut impl Read) -> io::Result<[u8; N]> {
    let mut octets = [0; N];
    source.read_exact(&mut octets)?;
    Ok(octets)
}

impl<R: Read> Truth<R> {
    /// What the farm was.
    pub fn head(&self) -> TruthHead {
        self.head
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], ReadTruthError> {
        Ok(read_array(&mut self.source)?)
    }

    fn short(&mut self) -> Result<Vec<u8>, ReadTruthError> {
        let [length] = self.number()?;
        let mut octets = vec![0; length.into()];
        self.source.read_exact(&mut octets)?;
        Ok(octets)
    }

    fn list(&mut self) -> Result<(), ReadTruthError> {
        let damaged = ReadTruthError::Damaged { record: self.record };
        let number = u32::from_le_bytes(self.number()?);
        let count = u16::from_le_bytes(self.number()?);
        let mut objects = Vec::with_capacity(count.into());
        for _ in 0..count {
            let (oid, subject) = (self.short()?, self.short()?);
            let (Ok(oid), Ok(subject)) = (Oid::decode(&oid), String::from_utf8(subject)) else {
                return Err(damaged);
            };
            objects.push(TruthObject { oid, subject });
        }
        let number = usize::try_from(number).expect("a list has a number of 32 bits");
        // Numbers count up, but for lists that were not answered at first.
        if number > self.lists.len() + (1 << 16) {
            return Err(damaged);
        }
        if number >= self.lists.len() {
            self.lists.resize(number + 1, self.nothing.clone());
        }
        self.lists[number] = objects.into();
        Ok(())
    }

    fn request(&mut self) -> Result<TruthRequest, ReadTruthError> {
        let [flags] = self.number()?;
        let agent = u32::from_le_bytes(self.number()?);
        let request_id = i32::from_le_bytes(self.number()?);
        let received = WallTime::from_nanos(i64::from_le_bytes(self.number()?));
        let sent = WallTime::from_nanos(i64::from_le_bytes(self.number()?));
        let uptime_cs = u32::from_le_bytes(self.number()?);
        let list = u32::from_le_bytes(self.number()?);
        let [error_status] = self.number()?;
        let count = usize::from(u16::from_le_bytes(self.number()?));
        let known = usize::try_from(list).ok().and_then(|list| self.lists.get(list)).cloned();
        let objects = if list == NO_LIST { Some(self.nothing.clone()) } else { known };
        let Some(objects) = objects.filter(|objects| objects.len() == count) else {
            return Err(ReadTruthError::Damaged { record: self.record });
        };
        let answered = self.values(count)?;
        let cached = flags & flag::CACHED != 0;
        let held = if cached { self.values(count)? } else { answered.clone() };
        Ok(TruthRequest {
            flags,
            agent,
            request_id,
            received,
            sent,
            uptime_cs,
            error_status,
            objects,
            answered,
            held,
        })
    }

    fn values(&mut self, count: usize) -> Result<Vec<u64>, ReadTruthError> {
        (0..count).map(|_| Ok(u64::from_le_bytes(self.number()?))).collect()
    }

    fn record(&mut self) -> Result<Option<TruthRecord>, ReadTruthError> {
        loop {
            let mut kind = [0];
            if self.source.read(&mut kind)? == 0 {
                return Ok(None);
            }
            let record = match kind {
                [KIND_LIST] => {
                    self.list()?;
                    self.record += 1;
                    continue;
                }
                [KIND_REQUEST] => TruthRecord::Request(self.request()?),
                [KIND_EVENT] => {
                    let agent = u32::from_le_bytes(self.number()?);
                    let at = WallTime::from_nanos(i64::from_le_bytes(self.number()?));
                    let [what] = self.number()?;
                    let kind = TruthEventKind::ALL.into_iter().find(|kind| *kind as u8 == what);
                    let damaged = ReadTruthError::Damaged { record: self.record };
                    TruthRecord::Event { agent, at, kind: kind.ok_or(damaged)? }
                }
                _ => return Err(ReadTruthError::Damaged { record: self.record }),
            };
            self.record += 1;
            return Ok(Some(record));
        }
    }
}

impl<R: Read> Iterator for Truth<R> {
    type Item = Result<TruthRecord, ReadTruthError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.record().transpose();
        self.failed = matches!(record, Some(Err(_)));
        record
    }
}
