//! Samples that differ in nothing but their time, taken together.
//!
//! # Cost
//! Other threads take blocks apart and count the samples with the same process, address and stack over all blocks of
//! a segment. A block keeps each stack once, so that of a sample remain its address and one look-up, 30 ns in all;
//! taking a block of a thousand samples apart costs as much again. What a thread has counted is handed on once, when
//! the segment has been read. Where what an address means changes within a block, or a sample's time matters,
//! samples are taken one by one, as [`Reading::samples`] does.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hashbrown::HashMap;
use meikyo_recording::layout::SegmentFile;
use meikyo_recording::segment::{ReadSegmentError, SegmentReader};
use meikyo_recording::{CodedReader, CodedRows, PackedRows, ReadError, TableSchema};

use super::passes::{Columns, SampleFrames, ends};
use super::stacks::{Texts, index};
use super::{Alike, Goes, Reading, Seconds, Seen, stack_hash};
use crate::report::{Ends, wider};
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

/// What samples are told apart by beside process, address and stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Those of all CPUs of a host are alike.
    Hosts,
    Cpus,
}

/// Samples that a pass has met.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) samples: u64,
    /// When the first and the last one was taken.
    pub(crate) span: Option<Ends>,
    pub(crate) seconds: Seconds,
}

impl Passed {
    /// Notes a sample; whether there may be more than so many.
    pub(crate) fn note(&mut self, seen: &Seen<'_>, limit: u64) -> Goes {
        self.samples += 1;
        self.span = wider(self.span, seen.time);
        self.seconds.note(seen);
        if self.samples > limit { Goes::NoFurther } else { Goes::On }
    }
}

/// When what addresses mean changed, which threads may look at.
struct Changes {
    hosts: BTreeMap<String, usize>,
    of_processes: HashMap<(usize, u64), Vec<i64>>,
    of_kernels: BTreeMap<usize, Vec<i64>>,
}

impl Changes {
    fn of(reading: &Reading<'_>) -> Self {
        let hosts = reading.hosts.iter().map(|(name, host)| (name.to_string(), *host)).collect();
        let of_process = |(process, changes): (Process, _)| ((process.host, process.pid), changes);
        let of_processes = reading.spaces.all_changes().map(of_process).collect();
        let of_kernels = reading.kernels.keys().map(|&host| (host, reading.kernel_changes(host)));
        Self { hosts, of_processes, of_kernels: of_kernels.collect() }
    }
}

/// How many changes there were before all of some instants; `None` where one lies between them.
fn steady(changes: Option<&Vec<i64>>, (from, until): Ends) -> Option<usize> {
    let changes = changes.map(Vec::as_slice).unwrap_or_default();
    let before = changes.partition_point(|&at| at <= from);
    (before == changes.partition_point(|&at| at <= until)).then_some(before)
}

/// A process between two changes of what its addresses mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Space {
    host: usize,
    /// 0 where CPUs are not told apart.
    cpu: u64,
    pid: u64,
    /// Changes before it, of the process and of the kernel.
    changes: [usize; 2],
}

/// What samples that are alike have in common: the numbers of space and stack, and the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Same {
    space: u32,
    stack: u32,
    address: u64,
}

/// Takes blocks apart one after another, and counts their samples.
struct Counter<'a> {
    wanted: &'a Wanted,
    changes: &'a Changes,
    apart: Apart,
    schema: TableSchema,
    reader: CodedReader,
    counted: Counted,
}

/// What was counted.
#[derive(Default)]
struct Counted {
    /// Each with a time within it.
    spaces: Vec<(Space, i64)>,
    numbers: HashMap<Space, u32>,
    stacks: Texts,
    counts: HashMap<Same, u64>,
    passed: Passed,
}

/// A block that cannot be counted by what it keeps.
enum Left {
    /// Its samples must be taken one by one.
    Whole(PackedRows),
    /// What must be a block is none.
    Unfit,
}

/// What is said of some blocks: those that are left, and how many samples all threads have counted by now.
type Said = (Vec<Left>, u64);

impl<'a> Counter<'a> {
    fn new(wanted: &'a Wanted, changes: &'a Changes, apart: Apart) -> Self {
        let (schema, reader) = (samples::schema(), CodedReader::default());
        Self { wanted, changes, apart, schema, reader, counted: Counted::default() }
    }

    fn take(&mut self, block: PackedRows) -> Option<Left> {
        match self.reader.read(&block, &self.schema, &WANTED) {
            Ok(Some(rows)) => {
                self.count(&rows, block.times()).is_none().then_some(Left::Whole(block))
            }
            Ok(None) => Some(Left::Whole(block)),
            Err(_) => Some(Left::Unfit),
        }
    }

    /// Counts the samples of a block; `None` where they must be taken one by one, and none was counted.
    fn count(&mut self, rows: &CodedRows, span: Ends) -> Option<()> {
        let (host, cpu) = (rows.only(HOST)?, rows.only(CPU)?.unwrap_or(0));
        let host = host.and_then(|host| rows.word(host)).unwrap_or_default();
        if !fits(&self.wanted.hosts, host) || !self.wanted.has(cpu, 0) {
            return Some(());
        }
        // Of a host that nothing explains, the name would have to be handed on.
        let host = *self.changes.hosts.get(host)?;
        let second_of = |at: i64| at.div_euclid(1_000_000_000);
        let kernel = steady(self.changes.of_kernels.get(&host), span)?;
        if second_of(span.0) != second_of(span.1) {
            return None;
        }
        let of_cpu = if self.apart == Apart::Cpus { cpu } else { 0 };
        let spaces: Vec<u32> = (0..rows.kept(PID))
            .map(|place| {
                let pid = rows.bits(PID, place).unwrap_or(0);
                let own = steady(self.changes.of_processes.get(&(host, pid)), span)?;
                let space = Space { host, cpu: of_cpu, pid, changes: [own, kernel] };
                Some(self.counted.space(space, span.0))
            })
            .collect::<Option<_>>()?;
        let counted = &mut self.counted;
        let stacks: Vec<u32> = (0..rows.kept(STACK))
            .map(|place| {
                let text = rows.text(STACK, place).unwrap_or_default();
                counted.stacks.number(text, stack_hash(text))
            })
            .collect();
        // Most samples of a stack have the address of the first one: these are looked up once.
        let mut of_stacks: Vec<Option<(Same, u64)>> = vec![None; stacks.len()];
        for row in 0..rows.rows() {
            let address = rows.bits(ADDRESS, rows.place(ADDRESS, row)).unwrap_or(0);
            let space = spaces[rows.place(PID, row)];
            let place = rows.place(STACK, row);
            let same = Same { space, stack: stacks[place], address };
            match &mut of_stacks[place] {
                Some((first, count)) if *first == same => *count += 1,
                Some(_) => *counted.counts.entry(same).or_default() += 1,
                none => *none = Some((same, 1)),
            }
        }
        for (same, count) in of_stacks.into_iter().flatten() {
            *counted.counts.entry(same).or_default() += count;
        }
        let Passed { samples, span: all, seconds } = &mut counted.passed;
        *samples += rows.rows() as u64;
        *all = wider(wider(*all, span.0), span.1);
        seconds.note(&Seen::in_second(span.0, host, cpu));
        Some(())
    }
}

impl Counted {
    /// The number of a space, which has a time.
    fn space(&mut self, space: Space, time: i64) -> u32 {
        *self.numbers.entry(space).or_insert_with(|| {
            self.spaces.push((space, time));
            u32::try_from(self.spaces.len() - 1).expect("fewer processes than samples")
        })
    }

    /// Hands all on.
    fn tell<'a>(
        &self,
        reading: &mut Reading<'a>,
        passed: &mut Passed,
        take: &mut impl FnMut(&mut Reading<'a>, &Alike<'_>),
    ) {
        passed.samples += self.passed.samples;
        if let Some((from, until)) = self.passed.span {
            passed.span = wider(wider(passed.span, from), until);
        }
        passed.seconds.join(&self.passed.seconds);
        // In an order that is the same whenever it is asked.
        let mut counts: Vec<_> = self.counts.iter().collect();
        counts.sort_unstable();
        for (same, &count) in counts {
            let (Space { host, cpu, pid, .. }, time) = self.spaces[index(same.space)];
            let (stack, hash) = self.stacks.get(same.stack);
            let address = same.address;
            let seen = Seen { time, host, cpu, pid, tid: pid, address, cgroup: None, stack };
            take(reading, &Alike { seen, count, hash });
        }
    }
}

/// Threads that count blocks.
struct Counters<'scope> {
    to: Vec<SyncSender<Vec<PackedRows>>>,
    from: Vec<Receiver<Said>>,
    threads: Vec<std::thread::ScopedJoinHandle<'scope, Counted>>,
    /// How many samples each has counted, as far as it has said so.
    samples: Vec<u64>,
    gathered: Vec<PackedRows>,
    /// How many lots were handed over, and how many came back.
    handed: usize,
    came: usize,
}

impl<'scope> Counters<'scope> {
    fn start<'env>(
        scope: &'scope std::thread::Scope<'scope, 'env>,
        new: impl Fn() -> Counter<'env> + Send + Copy + 'scope,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let (mut to, mut from, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..processors.min(THREADS_MAX) {
            let (sender, blocks) = sync_channel::<Vec<PackedRows>>(AHEAD);
            let (said, receiver) = sync_channel::<Said>(AHEAD);
            threads.push(scope.spawn(move || {
                let mut counter = new();
                for lot in blocks {
                    let left = lot.into_iter().filter_map(|block| counter.take(block)).collect();
                    if said.send((left, counter.counted.passed.samples)).is_err() {
                        break;
                    }
                }
                counter.counted
            }));
            to.push(sender);
            from.push(receiver);
        }
        let samples = vec![0; threads.len()];
        Self { to, from, threads, samples, gathered: Vec::new(), handed: 0, came: 0 }
    }
}

impl Counters<'_> {
    /// Puts a block in; what comes back meanwhile.
    fn put(&mut self, block: PackedRows) -> Option<Said> {
        self.gathered.push(block);
        if self.gathered.len() < BLOCKS_AT_ONCE {
            return None;
        }
        self.hand_over();
        (self.handed - self.came >= AHEAD * self.to.len()).then(|| self.take())
    }

    fn hand_over(&mut self) {
        let lot = std::mem::take(&mut self.gathered);
        let thread = self.handed % self.to.len();
        self.handed += 1;
        self.to[thread].send(lot).expect("a thread goes on as long as something can be sent to it");
    }

    /// What is said of the next lot.
    fn take(&mut self) -> Said {
        let thread = self.came % self.from.len();
        self.came += 1;
        let said = self.from[thread].recv().expect("a thread answers each lot that it gets");
        let (left, samples) = said;
        self.samples[thread] = samples;
        (left, self.samples.iter().sum())
    }

    /// What has not come back yet; `None` when that is all.
    fn rest(&mut self) -> Option<Said> {
        if !self.gathered.is_empty() {
            self.hand_over();
        }
        (self.came < self.handed).then(|| self.take())
    }

    /// What was counted, once all has come back.
    fn end(self) -> impl Iterator<Item = Counted> {
        drop(self.to);
        self.threads.into_iter().map(|thread| thread.join().expect("counting does not panic"))
    }
}

impl<'a> Reading<'a> {
    /// Goes through the samples that are wanted as [`Reading::samples`] does, those together that differ in nothing
    /// but their time, thread and control group, which are not told then; in no order. What was met is noted; once it
    /// is more than `limit`, the pass ends.
    pub(crate) fn alike(
        &mut self,
        wanted: &Wanted,
        apart: Apart,
        limit: u64,
        passed: &mut Passed,
        take: impl FnMut(&mut Self, &Alike<'_>),
    ) -> Result<(), ReadError> {
        // Who chooses among the samples of a block looks at each of them.
        let by_name = [&wanted.processes, &wanted.threads, &wanted.jobs, &wanted.visible];
        let chooses = !wanted.pids.is_empty() || by_name.iter().any(|names| !names.is_empty());
        let changes = Changes::of(self);
        let mut pass = Pass { wanted, changes: &changes, apart, limit, passed, take };
        self.each_file(
            wanted,
            &mut pass,
            |reading, rows, pass| {
                reading.samples_of(rows, wanted, &mut |reading, seen| pass.one(reading, seen))
            },
            |reading, segment, pass| {
                if chooses {
                    let mut one = |reading: &mut Self, seen: &Seen<'_>| pass.one(reading, seen);
                    return reading.samples_in(segment, wanted, &mut one);
                }
                pass.segment(reading, segment)
            },
        )
    }
}

/// A pass over samples.
struct Pass<'p, T> {
    wanted: &'p Wanted,
    changes: &'p Changes,
    apart: Apart,
    limit: u64,
    passed: &'p mut Passed,
    take: T,
}

impl<'a, T: FnMut(&mut Reading<'a>, &Alike<'_>)> Pass<'_, T> {
    /// Takes a sample by itself.
    fn one(&mut self, reading: &mut Reading<'a>, seen: &Seen<'_>) -> Goes {
        (self.take)(reading, &Alike::one(*seen));
        self.passed.note(seen, self.limit)
    }

    /// The samples of a segment, and what is wrong with it if anything.
    fn segment(
        &mut self,
        reading: &mut Reading<'a>,
        segment: SegmentFile,
    ) -> Result<(Goes, Option<String>), ReadSegmentError> {
        let ends_with = segment.ends_with;
        let Some(mut frames) = SampleFrames::open(segment, self.wanted)? else {
            return Ok((Goes::On, None));
        };
        let (wanted, changes, apart) = (self.wanted, self.changes, self.apart);
        let goes = std::thread::scope(|scope| {
            let mut counters = Counters::start(scope, move || Counter::new(wanted, changes, apart));
            let goes = self.frames(reading, &mut frames, &mut counters)?;
            let counted = counters.end();
            if goes == Goes::On {
                counted.for_each(|counted| counted.tell(reading, self.passed, &mut self.take));
            }
            Ok(goes)
        });
        match goes {
            Ok(Goes::On) => Ok((Goes::On, frames.reader.problem(ends_with))),
            Ok(Goes::NoFurther) => Ok((Goes::NoFurther, None)),
            Err(error) => Err(error),
        }
    }

    /// Has the blocks of a segment counted, and takes what else there is by itself.
    fn frames(
        &mut self,
        reading: &mut Reading<'a>,
        frames: &mut SampleFrames,
        counters: &mut Counters<'_>,
    ) -> Result<Goes, ReadSegmentError> {
        let [from, until] = ends(self.wanted);
        while let Some(frame) = frames.next()? {
            let is_whole = frame.least_time >= from && frame.greatest_time < until;
            let goes = match frames.reader.packed_rows(&frame).filter(|_| is_whole) {
                Some(block) => match counters.put(block) {
                    Some(said) => self.said(reading, said, &mut frames.reader),
                    None => Goes::On,
                },
                None => {
                    let wanted = self.wanted;
                    let mut one =
                        |reading: &mut Reading<'a>, seen: &Seen<'_>| self.one(reading, seen);
                    reading.samples_of_next(frames, &frame, wanted, &mut one)
                }
            };
            if goes == Goes::NoFurther {
                return Ok(goes);
            }
        }
        while let Some(said) = counters.rest() {
            if self.said(reading, said, &mut frames.reader) == Goes::NoFurther {
                return Ok(Goes::NoFurther);
            }
        }
        Ok(Goes::On)
    }

    /// Takes what a thread has left of some blocks.
    fn said(
        &mut self,
        reading: &mut Reading<'a>,
        (left, counted): Said,
        reader: &mut SegmentReader,
    ) -> Goes {
        for left in left {
            if self.left(reading, left, reader) == Goes::NoFurther {
                return Goes::NoFurther;
            }
        }
        if self.passed.samples + counted <= self.limit {
            return Goes::On;
        }
        // Nobody hears of them any more but that they are too many.
        self.passed.samples += counted;
        Goes::NoFurther
    }

    /// Takes the samples of a block one by one.
    fn left(&mut self, reading: &mut Reading<'a>, left: Left, reader: &mut SegmentReader) -> Goes {
        let schema = samples::schema();
        let unpacked = match left {
            Left::Whole(block) => block.unpack(&schema).ok(),
            Left::Unfit => None,
        };
        let Some((batch, words)) = unpacked else {
            reader.count_unfit();
            return Goes::On;
        };
        let name =
            |place| usize::try_from(place).ok().and_then(|at| words.get(at)).map(String::as_str);
        let wanted = self.wanted;
        let mut one = |reading: &mut Reading<'a>, seen: &Seen<'_>| self.one(reading, seen);
        reading.samples_of_frame(&batch, &Columns::of(&schema), (wanted, name), &mut one)
    }
}
