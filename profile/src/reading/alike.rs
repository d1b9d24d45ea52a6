//! Samples that differ in nothing but their time, taken together.
//!
//! # Cost
//! A block of a thousand samples keeps each address and each stack once, and says by a place which of them a
//! sample has. Other threads take blocks apart and count the samples with the same places, about 50 ns a sample;
//! what remains here is to look up what a block has different, about as much. Where what an address
//! means changes within a block, or a sample's time matters, samples are taken one by one, as
//! [`Reading::samples`] does.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hashbrown::HashMap;
use meikyo_recording::layout::SegmentFile;
use meikyo_recording::segment::{ReadSegmentError, SegmentReader};
use meikyo_recording::{CodedReader, CodedRows, PackedRows, ReadError, TableSchema};

use super::passes::{Columns, SampleFrames, ends};
use super::stacks::index;
use super::{Alike, Goes, Reading, Seen, stack_hash};
use crate::symbols::Process;
use crate::tables::samples;
use crate::wanted::{Wanted, fits};

/// Blocks that are handed to a thread at once, so that threads do not wait for each other at each.
const BLOCKS_AT_ONCE: usize = 16;
/// How often that is done before an answer is waited for.
const AHEAD: usize = 3;
/// Threads that take blocks apart at most.
const THREADS_MAX: usize = 4;

/// The columns that tell samples apart, and where they stand here; what processes follow from is the thread.
const WANTED: [usize; 6] = [
    samples::HOST.position(),
    samples::CPU.position(),
    samples::TID.position(),
    samples::PID.position(),
    samples::ADDRESS.position(),
    samples::STACK.position(),
];
const HOST: usize = 0;
const CPU: usize = 1;
const PID: usize = 3;
const ADDRESS: usize = 4;
const STACK: usize = 5;

/// A block that was taken apart.
enum Taken {
    Counted(Box<Counted>),
    /// It is kept otherwise, or what must be one is not.
    Whole(PackedRows),
    Unfit,
}

/// The samples of a block by what tells them apart.
struct Counted {
    block: PackedRows,
    rows: CodedRows,
    host: Option<u64>,
    cpu: u64,
    /// Places of the process, of the address and of the stack, and how many samples have them.
    groups: Vec<([u32; 3], u32)>,
    /// By place of a stack.
    hashes: Vec<u64>,
}

/// Takes blocks apart one after another.
struct Counter {
    schema: TableSchema,
    reader: CodedReader,
    /// How many samples have the same places.
    counts: HashMap<[u32; 3], u32>,
}

impl Counter {
    fn new() -> Self {
        Self { schema: samples::schema(), reader: CodedReader::default(), counts: HashMap::new() }
    }

    fn count(&mut self, block: PackedRows) -> Taken {
        let rows = match self.reader.read(&block, &self.schema, &WANTED) {
            Ok(Some(rows)) => rows,
            Ok(None) => return Taken::Whole(block),
            Err(_) => return Taken::Unfit,
        };
        let (Some(host), Some(cpu)) = (rows.only(HOST), rows.only(CPU)) else {
            return Taken::Whole(block);
        };
        let places = [PID, ADDRESS, STACK].map(|at| rows.places(at));
        self.counts.clear();
        for row in 0..rows.rows() {
            // A column with one value has no places.
            let key = places.map(|of| of.get(row).copied().unwrap_or(0));
            *self.counts.entry(key).or_default() += 1;
        }
        let mut groups: Vec<_> = self.counts.iter().map(|(key, count)| (*key, *count)).collect();
        groups.sort_unstable();
        let hashes = (0..rows.different(STACK))
            .map(|place| stack_hash(rows.text(STACK, place).unwrap_or_default()))
            .collect();
        Taken::Counted(Box::new(Counted {
            block,
            host,
            cpu: cpu.unwrap_or(0),
            groups,
            hashes,
            rows,
        }))
    }
}

/// Threads that take blocks apart. What is put in comes out in the same order.
struct Counters {
    to: Vec<SyncSender<Vec<PackedRows>>>,
    from: Vec<Receiver<Vec<Taken>>>,
    gathered: Vec<PackedRows>,
    /// How many lots were handed over, and how many came back.
    handed: usize,
    came: usize,
}

impl Counters {
    fn start<'scope>(scope: &'scope std::thread::Scope<'scope, '_>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let (mut to, mut from) = (Vec::new(), Vec::new());
        for _ in 0..processors.min(THREADS_MAX) {
            let (sender, blocks) = sync_channel::<Vec<PackedRows>>(AHEAD);
            let (taken, receiver) = sync_channel(AHEAD);
            scope.spawn(move || {
                let mut counter = Counter::new();
                for lot in blocks {
                    let lot = lot.into_iter().map(|block| counter.count(block)).collect();
                    if taken.send(lot).is_err() {
                        return;
                    }
                }
            });
            to.push(sender);
            from.push(receiver);
        }
        Self { to, from, gathered: Vec::new(), handed: 0, came: 0 }
    }

    /// Puts a block in; what comes out meanwhile.
    fn put(&mut self, block: PackedRows) -> Vec<Taken> {
        self.gathered.push(block);
        if self.gathered.len() < BLOCKS_AT_ONCE {
            return Vec::new();
        }
        self.hand_over();
        if self.handed - self.came < AHEAD * self.to.len() { Vec::new() } else { self.take() }
    }

    fn hand_over(&mut self) {
        let lot = std::mem::take(&mut self.gathered);
        let thread = self.handed % self.to.len();
        self.handed += 1;
        self.to[thread].send(lot).expect("a thread goes on as long as something can be sent to it");
    }

    /// The next lot.
    fn take(&mut self) -> Vec<Taken> {
        let thread = self.came % self.from.len();
        self.came += 1;
        self.from[thread].recv().expect("a thread sends a lot for each that it gets")
    }

    /// What has not come out yet; empty when that is all.
    fn rest(&mut self) -> Vec<Taken> {
        if !self.gathered.is_empty() {
            self.hand_over();
        }
        if self.came < self.handed { self.take() } else { Vec::new() }
    }
}

impl Reading<'_> {
    /// Goes through the samples that are wanted as [`Reading::samples`] does, those of a block together that differ in
    /// nothing but their time, thread and control group, which are not told then.
    pub(crate) fn alike(
        &mut self,
        wanted: &Wanted,
        mut take: impl FnMut(&mut Self, &Alike<'_>) -> Goes,
    ) -> Result<(), ReadError> {
        // Who chooses among the samples of a block looks at each of them.
        let by_name = [&wanted.processes, &wanted.threads, &wanted.jobs, &wanted.visible];
        if !wanted.pids.is_empty() || by_name.iter().any(|patterns| !patterns.is_empty()) {
            return self.samples(wanted, |reading, seen| take(reading, &Alike::one(*seen)));
        }
        self.each_file(
            wanted,
            &mut take,
            |reading, rows, take| {
                reading.samples_of(rows, wanted, &mut |reading, seen| {
                    take(reading, &Alike::one(*seen))
                })
            },
            |reading, segment, take| reading.alike_in(segment, wanted, take),
        )
    }

    /// The samples of a segment, and what is wrong with it if anything.
    fn alike_in(
        &mut self,
        segment: SegmentFile,
        wanted: &Wanted,
        take: &mut impl FnMut(&mut Self, &Alike<'_>) -> Goes,
    ) -> Result<(Goes, Option<String>), ReadSegmentError> {
        let ends_with = segment.ends_with;
        let [from, until] = ends(wanted);
        let Some(mut frames) = SampleFrames::open(segment, wanted)? else {
            return Ok((Goes::On, None));
        };
        let mut pass = Pass { wanted, changes: BTreeMap::new() };
        let goes = std::thread::scope(|scope| {
            let mut counters = Counters::start(scope);
            while let Some(frame) = frames.next()? {
                let is_whole = frame.least_time >= from && frame.greatest_time < until;
                if let Some(block) = frames.reader.packed_rows(&frame).filter(|_| is_whole) {
                    for taken in counters.put(block) {
                        if pass.take(self, taken, &mut frames.reader, take) == Goes::NoFurther {
                            return Ok(Goes::NoFurther);
                        }
                    }
                    continue;
                }
                let mut each =
                    |reading: &mut Self, seen: &Seen<'_>| take(reading, &Alike::one(*seen));
                let goes = self.samples_of_next(&mut frames, &frame, wanted, &mut each);
                if goes == Goes::NoFurther {
                    return Ok(goes);
                }
            }
            loop {
                let rest = counters.rest();
                if rest.is_empty() {
                    return Ok(Goes::On);
                }
                for taken in rest {
                    if pass.take(self, taken, &mut frames.reader, take) == Goes::NoFurther {
                        return Ok(Goes::NoFurther);
                    }
                }
            }
        });
        match goes {
            Ok(Goes::On) => Ok((Goes::On, frames.reader.problem(ends_with))),
            Ok(Goes::NoFurther) => Ok((Goes::NoFurther, None)),
            Err(error) => Err(error),
        }
    }
}

/// A pass over blocks.
struct Pass<'a> {
    wanted: &'a Wanted,
    /// By host and process, when what its addresses mean changed; without a process, of the kernel.
    changes: BTreeMap<(usize, Option<u64>), Vec<i64>>,
}

impl Pass<'_> {
    fn take<'a>(
        &mut self,
        reading: &mut Reading<'a>,
        taken: Taken,
        reader: &mut SegmentReader,
        take: &mut impl FnMut(&mut Reading<'a>, &Alike<'_>) -> Goes,
    ) -> Goes {
        let block = match taken {
            Taken::Counted(counted) => match self.take_counted(reading, &counted, take) {
                Some(goes) => return goes,
                None => counted.block,
            },
            Taken::Whole(block) => block,
            Taken::Unfit => {
                reader.count_unfit();
                return Goes::On;
            }
        };
        let schema = samples::schema();
        let Ok((batch, words)) = block.unpack(&schema) else {
            reader.count_unfit();
            return Goes::On;
        };
        let name =
            |place| usize::try_from(place).ok().and_then(|at| words.get(at)).map(String::as_str);
        let mut each =
            |reading: &mut Reading<'a>, seen: &Seen<'_>| take(reading, &Alike::one(*seen));
        let columns = Columns::of(&schema);
        reading.samples_of_frame(&batch, &columns, (self.wanted, name), &mut each)
    }

    /// Takes the samples of a block together; `None` where they must be taken one by one.
    fn take_counted<'a>(
        &mut self,
        reading: &mut Reading<'a>,
        counted: &Counted,
        take: &mut impl FnMut(&mut Reading<'a>, &Alike<'_>) -> Goes,
    ) -> Option<Goes> {
        let Counted { block, rows, host, cpu, groups, hashes } = counted;
        let name = host.and_then(|host| rows.word(host)).unwrap_or_default();
        if !fits(&self.wanted.hosts, name) {
            return Some(Goes::On);
        }
        if !self.wanted.has(*cpu, 0) {
            return Some(Goes::On);
        }
        let host = reading.host(Some(name));
        let bits = |at, place: u32| rows.bits(at, index(place));
        let (from, until) = block.times();
        let second_of = |at: i64| at.div_euclid(1_000_000_000);
        let is_of_one_second = second_of(from) == second_of(until);
        let is_steady = is_of_one_second
            && self.is_steady(reading, (host, None), from, until)
            && (0..rows.different(PID)).all(|place| {
                let pid = rows.bits(PID, place).unwrap_or(0);
                self.is_steady(reading, (host, Some(pid)), from, until)
            });
        if !is_steady {
            return None;
        }
        for &([process, address, stack], count) in groups {
            let pid = bits(PID, process).unwrap_or(0);
            let seen = Seen {
                time: from,
                host,
                cpu: *cpu,
                pid,
                tid: pid,
                address: bits(ADDRESS, address).unwrap_or(0),
                cgroup: None,
                stack: rows.text(STACK, index(stack)).unwrap_or_default(),
            };
            let hash = match hashes.get(index(stack)) {
                Some(&hash) => hash,
                None => stack_hash(seen.stack),
            };
            let alike = Alike { seen, count: count.into(), until, hash };
            if take(reading, &alike) == Goes::NoFurther {
                return Some(Goes::NoFurther);
            }
        }
        Some(Goes::On)
    }

    /// Whether what addresses mean stays the same from the first to the last of some instants.
    fn is_steady(
        &mut self,
        reading: &Reading<'_>,
        of: (usize, Option<u64>),
        from: i64,
        until: i64,
    ) -> bool {
        let changes = self.changes.entry(of).or_insert_with_key(|&(host, pid)| match pid {
            Some(pid) => reading.changes(Process { host, pid }),
            None => reading.kernel_changes(host),
        });
        changes.partition_point(|&at| at <= from) == changes.partition_point(|&at| at <= until)
    }
}
