//! A sender with its machine and its disk, and what it made.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

use meikyo_recording::{Column, ColumnKind, Meaning, PackedRows, Packer, TableSchema};
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::wire::Declared;
use meikyo_transport::{Files, Sender, SenderOptions};
use meikyo_units::{Bytes, Nanos, SimTime};
use meikyo_worlds::{Disk, DiskError, random};

pub(crate) const STREAM: &str = "s";

/// The cluster that collectors measure which stand by for each other, and what they are called together.
pub(crate) const CLUSTER: &str = "c";
pub(crate) const IDENTITY: &str = "c:m";

pub(crate) fn table() -> TableSchema {
    let value = Column::new("value", ColumnKind::U64, Meaning::Gauge, "which row it is");
    TableSchema::new("t", "", vec![value])
}

/// The disk of a sender, which outlives the sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedDisk(pub(crate) Rc<RefCell<Disk>>);

fn refused(error: DiskError) -> io::Error {
    let kind = match error {
        DiskError::Full => io::ErrorKind::StorageFull,
        DiskError::Missing => io::ErrorKind::NotFound,
    };
    io::Error::from(kind)
}

impl Files for SharedDisk {
    fn names(&mut self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().names().map(str::to_owned).collect())
    }

    fn append(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let octets = parts.concat();
        self.0.borrow_mut().append(name, &octets).map_err(refused)
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        self.0.borrow().read(name).map(<[u8]>::to_vec).map_err(refused)
    }

    fn read_at(&mut self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let octets = self.read(name)?;
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let part = octets.get(at..at + len).map(<[u8]>::to_vec);
        part.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.0.borrow_mut().sync(name).map_err(refused)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.borrow_mut().remove(name).map_err(refused)
    }
}

/// What was made: the rows of every number.
pub(crate) type Made = BTreeMap<(u64, u64), Vec<u64>>;

/// A sender's machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// Whether it is one of several collectors that measure the same, [`CLUSTER`]'s.
    stands_by: bool,
    /// Rows of intervals that are in no block yet: time and value.
    pub(crate) waiting: Vec<(SimTime, u64)>,
    /// Intervals whose rows were offered, by what they were due at.
    pub(crate) measured: BTreeSet<SimTime>,
    pub(crate) sender: Option<Sender<SharedDisk>>,
    pub(crate) disk: Option<SharedDisk>,
    /// By how much its clock is ahead of the world's, ns.
    pub(crate) skew_ns: i64,
    /// How often it was switched on.
    pub(crate) machine: u64,
    pub(crate) boot: u64,
    pub(crate) made: Made,
    /// When each number was made, and when the receiver first had it.
    pub(crate) made_at: BTreeMap<(u64, u64), SimTime>,
    pub(crate) came_at: BTreeMap<(u64, u64), SimTime>,
    pub(crate) connection: Option<u64>,
    pub(crate) wakes_at: Option<SimTime>,
    /// Blocks that earlier lives dropped.
    pub(crate) dropped: u64,
    pub(crate) power_cuts: u64,
    pub(crate) kills: u64,
    pub(crate) is_finished: bool,
    /// Whether its disk ever had no room: blocks are in memory then.
    pub(crate) disk_was_full: bool,
}

impl Machine {
    pub(crate) fn new(name: String, on_disk: bool, skew_ns: i64) -> Self {
        Self {
            stands_by: name.starts_with(IDENTITY),
            waiting: Vec::new(),
            measured: BTreeSet::new(),
            name,
            sender: None,
            disk: on_disk.then(SharedDisk::default),
            skew_ns,
            machine: 1,
            boot: 0,
            made: Made::new(),
            made_at: BTreeMap::new(),
            came_at: BTreeMap::new(),
            connection: None,
            wakes_at: None,
            dropped: 0,
            power_cuts: 0,
            kills: 0,
            is_finished: false,
            disk_was_full: false,
        }
    }

    /// Starts the sender in a new life.
    pub(crate) fn start(&mut self, spool_bytes: u64, catch_up: Option<Bytes>) {
        self.boot += 1;
        let declared = Declared { stream: STREAM.into(), tables: vec![table()] };
        let options = SenderOptions {
            name: self.name.clone(),
            cluster: self.stands_by.then(|| CLUSTER.to_owned()),
            identity: self.stands_by.then(|| IDENTITY.to_owned()),
            boot: self.boot,
            machine: format!("machine {}", self.machine),
            streams: vec![declared],
            spool: SpoolLimits { bytes: Bytes::new(spool_bytes), blocks: 2_000 },
            catch_up,
        };
        self.sender = Some(Sender::open(options, self.disk.clone()).unwrap());
    }

    /// Stops it where it stands.
    pub(crate) fn stop(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.dropped += sender.status().spool.dropped_blocks;
        }
        self.connection = None;
        self.waiting.clear();
    }

    /// Rows that say by themselves whose they are.
    pub(crate) fn rows(&self, number: u64, count: u64) -> Vec<u64> {
        (0..count).map(|row| self.boot << 40 | number << 16 | row).collect()
    }
}

/// Rows as a block; `noise` spreads their times, so that it does not shrink to nothing.
pub(crate) fn packed(at: SimTime, values: &[u64], noise: u64) -> PackedRows {
    let mut packer = Packer::new(table());
    let begin = super::world::wall(at, 0).as_nanos();
    for (row, value) in (0..).zip(values) {
        let spread = i64::try_from(random::draw(noise, row) % 1_000_000).unwrap();
        packer.batch().begin_row(begin + spread);
        packer.batch().put_u64(1, *value);
    }
    packer.pack().unwrap()
}

/// Rows of intervals as a block.
pub(crate) fn packed_intervals(rows: &[(SimTime, u64)]) -> PackedRows {
    let mut packer = Packer::new(table());
    for (at, value) in rows {
        packer.batch().begin_row(super::world::wall(*at, 0).as_nanos());
        packer.batch().put_u64(1, *value);
    }
    packer.pack().unwrap()
}

/// The shortest wait that a wake-up is worth.
pub(crate) const TICK: Nanos = Nanos::from_micros(100);
