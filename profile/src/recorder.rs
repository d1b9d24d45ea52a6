//! The loop of a host that is profiled: drains the rings, makes blocks, keeps to the budget.
//!
//! One thread does all of it. Once a second it wakes, takes what the kernel has written for each CPU,
//! and hands on a block of samples for every (CPU, second) that is over, and blocks of what explains
//! them. Where they go (a recording, another host) is not its business.

mod cgroup_names;
mod mapped_files;
mod of_cpu;
mod perf_maps;
pub(crate) mod side_band;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::io;

use meikyo_recording::{PackError, PackedRows};
use meikyo_sockets::PollFd;
use meikyo_units::Nanos;

use crate::analysis::Summary;
use crate::block::{BlockOptions, Sample};
use crate::flight::{FlightOptions, FlightRecorder, Grabbed};
use crate::governor::{Change, Governor, Observation};
use crate::jobs::job_of;
pub use crate::off_cpu::OffCpuCounts;
use crate::off_cpu::{OffCpu, Reason, Told};
use crate::records::{Record, Way};
use crate::sampler::{CallChains, OpenSamplerError, Sampler, SamplerOptions, Target};
pub use crate::unwinding::Unwinding;
use crate::unwinding::{End, Unwinder};
use crate::wanted::fits;
use crate::{clock, disturbance, existing};
use cgroup_names::CgroupNames;
pub use mapped_files::MappedAt;
use of_cpu::OfCpu;
use perf_maps::Which;
use side_band::SideBand;

/// Of a comparison of clocks that differs by more than this from the last, the clock was set.
const CLOCK_STEP: u64 = 1_000_000;

/// The shortest span that blocks are of.
const PACE_MIN: Nanos = Nanos::from_millis(50);

/// The kernel has written a sample this long after its time at the latest.
const WRITTEN_WITHIN: Nanos = Nanos::from_millis(10);

/// How long after a second its samples are taken from the kernel: at least, and how far hosts are apart in that.
const BEHIND_MIN: Nanos = Nanos::from_millis(20);
const BEHIND_APART: Nanos = Nanos::from_millis(256);

/// The least span that is observed and governed by: a second, as near as turns come.
const OBSERVED_LEAST: Nanos = Nanos::from_millis(900);
/// How much later than it happened something is told at the most, ns.
const TOLD_LATE: u64 = 1_000_000;

/// How often the perf maps of processes that run are read.
const MAPS_EVERY: Nanos = Nanos::from_secs(60);

/// How a host is profiled.
#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// The host's name.
    pub host: String,
    /// How samples are taken.
    pub sampling: SamplerOptions,
    /// Whether times are rounded down to whole microseconds.
    pub whole_microseconds: bool,
    /// The share of the host's CPUs that sampling may take, millionths; `None` for any.
    pub budget_ppm: Option<u64>,
    /// How often everything that is there is written down anew, so that what is left of a long recording
    /// explains itself when its begin is gone; `None` for once.
    pub retell_every: Option<Nanos>,
    /// Seconds are summed up, and samples stay here until they are wanted; `None` to hand on all samples.
    pub flight: Option<FlightOptions>,
}

/// Why profiling ends.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Sampling cannot begin.
    #[error("cannot sample this host")]
    Open(#[from] OpenSamplerError),
    /// The kernel refused to begin, to stop or to change the rate.
    #[error("cannot {doing}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Rows do not fit into a block.
    #[error("cannot pack rows")]
    Pack(#[from] PackError),
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Samples that were taken.
    pub samples: u64,
    /// Samples in blocks that were handed on: all of them, but where they stay here until they are wanted.
    pub handed_on: u64,
    /// Blocks of samples that were handed on.
    pub blocks: u64,
    /// Octets of these blocks.
    pub sample_bytes: u64,
    /// Octets of the blocks of everything else.
    pub other_bytes: u64,
    /// Records that found no room in a ring.
    pub lost: u64,
    /// Stacks that were cut at [`crate::sampler::STACK_MAX`] addresses.
    pub cut: u64,
    /// Time off the CPU, where that is recorded.
    pub off_cpu: Option<OffCpuCounts>,
    /// What finding callers by `.eh_frame` took and left out, where they are found so.
    pub unwinding: Option<Unwinding>,
    /// Times that the kernel stopped sampling for a while.
    pub throttled: u64,
    /// Processes whose mappings could not be read when sampling began.
    pub unreadable: u64,
    /// Changes of the rate after the start.
    pub rate_changes: u64,
}

/// Profiles this host.
#[derive(Debug)]
pub struct Recorder {
    sampler: Sampler,
    /// Who finds callers, where the kernel does not.
    unwinder: Option<Unwinder>,
    /// Who is off the CPU, where that is recorded.
    off_cpu: Option<OffCpu>,
    /// The processes whose threads and mappings are read; `None` for all.
    pids: Option<Vec<u32>>,
    cpus: Vec<OfCpu>,
    flight: Option<FlightRecorder>,
    /// Patterns of jobs whose samples are handed on in any case, and the control groups of those that were met.
    jobs: Vec<String>,
    wanted_cgroups: BTreeSet<u64>,
    /// The second in which the rate changed last, and the span between samples before.
    rate_changed: (i64, Nanos),
    side: SideBand,
    cgroup_names: CgroupNames,
    governor: Governor,
    /// What a sample takes.
    interrupt: Nanos,
    offset: clock::Offset,
    /// The span that blocks are of while somebody watches; `None` for whole seconds.
    pace: Option<Nanos>,
    next_turn: u64,
    /// How long after a second its samples are taken from the kernel.
    behind: Nanos,
    retell_every: Option<Nanos>,
    retell_at: u64,
    maps_at: u64,
    observed: Observed,
    counts: Counts,
    disturbance_ppm: u64,
}

/// Where the observation of a second began.
#[derive(Debug, Clone, Copy)]
struct Observed {
    at: u64,
    own: u64,
    samples: u64,
}

impl Recorder {
    /// Opens everything; nothing is sampled before [`Recorder::begin`].
    ///
    /// `pids` are the processes whose threads and mappings are read; `None` for all. They are read once
    /// the kernel tells of what follows: here, or in [`Recorder::begin`] where the events that take
    /// samples tell it.
    ///
    /// # Errors
    /// When the system permits or has less than is asked for.
    pub fn open(
        target: &Target,
        pids: Option<&[u32]>,
        options: &RecorderOptions,
    ) -> Result<Self, RecordError> {
        let system = |doing| move |source| RecordError::System { doing, source };
        let mut sampling = options.sampling;
        let mut governor = Governor::new(sampling.period, options.budget_ppm);
        let interrupt = disturbance::measure().map_err(|source| match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => OpenSamplerError::Permission(source).into(),
            _ => system("measure what a sample takes")(source),
        })?;
        governor.begin(interrupt);
        sampling.period = governor.period();
        let sampler = Sampler::open(target, sampling)?;
        let block = BlockOptions {
            stacks: sampling.stacks.is_some(),
            cgroups: sampling.cgroups,
            whole_microseconds: options.whole_microseconds,
        };
        let flight = options.flight.as_ref();
        let of_cpu = |cpu| OfCpu::new(&options.host, cpu, block, flight.is_some());
        let mut recorder = Self {
            cpus: sampler.cpus().map(of_cpu).collect(),
            flight: flight.map(FlightRecorder::new),
            jobs: flight.map(|flight| flight.jobs.clone()).unwrap_or_default(),
            wanted_cgroups: BTreeSet::new(),
            rate_changed: (i64::MIN, sampling.period),
            unwinder: matches!(sampling.stacks, Some(CallChains::EhFrame { .. }))
                .then(Unwinder::default),
            off_cpu: sampling.off_cpu.then(OffCpu::default),
            sampler,
            pids: pids.map(<[u32]>::to_vec),
            side: SideBand::new(&options.host),
            cgroup_names: CgroupNames::default(),
            governor,
            interrupt,
            offset: clock::offset(),
            pace: None,
            next_turn: clock::monotonic(),
            behind: behind(&options.host),
            retell_every: options.retell_every,
            retell_at: u64::MAX,
            maps_at: 0,
            observed: Observed { at: 0, own: 0, samples: 0 },
            counts: Counts::default(),
            disturbance_ppm: 0,
        };
        if !recorder.sampler.tells_only_while_sampling() {
            let refused = system("be told what is mapped and begun");
            recorder.sampler.tell().map_err(refused)?;
            recorder.write_down_what_is_there();
        }
        Ok(recorder)
    }

    /// Writes down what there is, as of a time before it is read: what the kernel tells from then on is
    /// newer than that.
    fn write_down_what_is_there(&mut self) {
        let monotonic = clock::monotonic();
        let now = self.wall(monotonic);
        let there = existing::read(self.pids.as_deref());
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.there(monotonic, &there, self.pids.is_none());
        }
        self.counts.unreadable = there.unreadable;
        self.side.clock(now, self.offset);
        for thread in &there.threads {
            self.side.thread_there(now, thread);
        }
        for mapping in &there.mappings {
            self.side.mapping(now, mapping);
        }
        self.side.forget_told();
        self.cgroup_names.forget_met();
        if let Some(every) = self.retell_every {
            self.retell_at = clock::monotonic() + every.get();
        }
    }

    /// What a sample takes from the thread that it interrupts.
    pub fn interrupt(&self) -> Nanos {
        self.interrupt
    }

    /// The span between two samples of a CPU as it is now.
    pub fn period(&self) -> Nanos {
        self.governor.period()
    }

    /// The share of the host's CPUs that sampling took in the second that was observed last, millionths.
    pub fn disturbance_ppm(&self) -> u64 {
        self.disturbance_ppm
    }

    /// Where the file with a build ID was mapped last, if this recorder has told of it.
    pub fn file(&self, build_id: &str) -> Option<MappedAt> {
        self.side.file(build_id)
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether CPUs are interrupted also while they are idle.
    pub fn interrupts_idle(&self) -> bool {
        self.sampler.interrupts_idle()
    }

    /// Begins to sample.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(&mut self) -> Result<(), RecordError> {
        let refused = |source| RecordError::System { doing: "begin to sample", source };
        self.sampler.enable().map_err(refused)?;
        if self.sampler.tells_only_while_sampling() {
            self.write_down_what_is_there();
        }
        self.write_rate("start", None);
        let at = clock::monotonic();
        self.rate_changed.0 = second_of(self.wall(at));
        self.next_turn = self.turn_after(at);
        self.observed = Observed { at, own: clock::process_cpu(), samples: 0 };
        Ok(())
    }

    /// The monotonic clock, since some start.
    pub fn now(&self) -> Nanos {
        Nanos::new(clock::monotonic())
    }

    /// Waits for a part of the span to the next turn, or until a signal comes or something `beside`; whether a turn
    /// is due, or one that only drains.
    pub fn wait(&mut self, part: Nanos, beside: &[PollFd<'_>]) -> bool {
        let now = clock::monotonic();
        let until = self.next_turn.min(now + part.get());
        let must_drain = self.sampler.wait_until(until, beside);
        must_drain || clock::monotonic() >= self.next_turn
    }

    /// Takes what the kernel has told, and hands on the blocks that are whole.
    ///
    /// # Errors
    /// When the kernel refuses another rate, or rows do not fit into a block.
    pub fn turn(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), RecordError> {
        let began = clock::monotonic();
        self.drain(sink)?;
        let now = clock::monotonic();
        if now < self.next_turn {
            return Ok(());
        }
        // From turn to turn, so that none comes later than the one before.
        self.next_turn = self.turn_after(self.next_turn).max(now);
        // A CPU on which nothing ran since has no later sample that ends its block.
        let over = self.wall(began.saturating_sub(WRITTEN_WITHIN.get()));
        self.end_seconds(second_of(over), sink)?;
        if self.pace.is_some() {
            self.end_blocks(sink)?;
        }
        if now - self.observed.at >= OBSERVED_LEAST.get() {
            self.compare_clocks();
            self.govern(now)?;
            if now >= self.retell_at {
                self.write_down_what_is_there();
            }
            let are_all_due = now >= self.maps_at;
            if are_all_due {
                self.maps_at = now + MAPS_EVERY.get();
            }
            self.read_perf_maps(if are_all_due { Which::All } else { Which::Ended }, sink)?;
            self.write_off_cpu();
            self.flush_side_band(sink)?;
        }
        Ok(())
    }

    /// Stops sampling and hands on everything that is left.
    ///
    /// # Errors
    /// As [`Recorder::turn`].
    pub fn finish(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), RecordError> {
        let refused = |source| RecordError::System { doing: "stop sampling", source };
        self.sampler.disable().map_err(refused)?;
        self.drain(sink)?;
        if let Some(off) = &mut self.off_cpu {
            let (now, offset) = (clock::monotonic(), self.offset.ns);
            off.end(now, |time| time.cast_signed().wrapping_add(offset));
        }
        self.write_off_cpu();
        // The last second is not whole.
        self.rate_changed = (second_of(self.wall(clock::monotonic())), self.period());
        self.end_seconds(i64::MAX, sink)?;
        let observed = self.observe(clock::monotonic()).map(|it| it.disturbance_ppm());
        if let Some(disturbance) = observed.filter(|_| self.disturbance_ppm == 0) {
            self.disturbance_ppm = disturbance;
        }
        self.write_rate("end", observed);
        self.read_perf_maps(Which::Last, sink)?;
        self.flush_side_band(sink)
    }

    fn read_perf_maps(
        &mut self,
        which: Which,
        sink: &mut impl FnMut(PackedRows),
    ) -> Result<(), RecordError> {
        let now = self.wall(clock::monotonic());
        let counts = &mut self.counts;
        Ok(self.side.perf_maps(now, which, &mut |block| count_other(counts, block, sink))?)
    }

    fn drain(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), RecordError> {
        // What is told later than this may be missing of some CPU.
        let told_until = clock::monotonic().saturating_sub(TOLD_LATE);
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.begin_turn();
            self.sampler.look_ahead(|record| unwinder.told(&record));
            unwinder.all_told();
        }
        let over = self.drain_samples();
        self.drain_leaving(told_until);
        if let Some(unwinder) = &mut self.unwinder {
            self.counts.unwinding = Some(unwinder.end_turn());
        }
        let unread = self.sampler.take_unread();
        if unread > 0 {
            self.side.lost(self.wall(clock::monotonic()), "unread", None, unread);
        }
        self.hand_on(over, sink)
    }

    /// Takes the samples and what is told beside them from the rings; what is over by that.
    fn drain_samples(&mut self) -> Over {
        let offset = self.offset.ns;
        let period_of = self.period_of();
        let unwinder = &mut self.unwinder;
        let (cpus, side, counts) = (&mut self.cpus, &mut self.side, &mut self.counts);
        let (names, jobs, wanted) = (&mut self.cgroup_names, &self.jobs, &mut self.wanted_cgroups);
        let off_cpu = &mut self.off_cpu;
        let mut over = Over::default();
        let mut sample = Sample::default();
        // Records come CPU by CPU.
        let mut at = 0;
        let wall = |time: u64| time.cast_signed().wrapping_add(offset);
        self.sampler.drain(|cpu, record| match record {
            Record::Sample { time: taken, ids, address, chain, user, cgroup, .. } => {
                if cpus[at].cpu != cpu {
                    at = cpus.iter().position(|of| of.cpu == cpu).expect("one that is sampled");
                }
                let of = &mut cpus[at];
                let time = wall(taken);
                of.go_on_to(second_of(time), &period_of, &mut over);
                if let Some((cgroup, path)) = cgroup.and_then(|cgroup| names.met(cgroup)) {
                    side.cgroup(time, cgroup, &path);
                    if !jobs.is_empty() && job_of(&path).is_some_and(|job| fits(jobs, &job)) {
                        wanted.insert(cgroup);
                    }
                }
                sample.time = time;
                (sample.tid, sample.pid) = (ids.tid, ids.pid);
                (sample.address, sample.cgroup) = (address, cgroup);
                sample.callers.clear();
                sample.callers.extend(chain.callers());
                let end = match (unwinder.as_mut(), user) {
                    (Some(unwinder), Some(user)) => {
                        unwinder.add_callers((taken, ids.pid), &user, &mut sample)
                    }
                    _ => End::of_kernel_chain(chain),
                };
                of.push(&sample, cgroup.is_some_and(|cgroup| wanted.contains(&cgroup)));
                counts.samples += 1;
                counts.cut += u64::from(end == End::Full);
                if let Some(loss) = end.loss() {
                    side.lost(time, loss, Some(cpu), 1);
                }
            }
            Record::Lost { count } => {
                counts.lost += count;
                side.lost(wall(clock::monotonic()), "ring_full", Some(cpu), count);
            }
            Record::Throttle => {
                counts.throttled += 1;
                side.lost(wall(clock::monotonic()), "throttled", Some(cpu), 1);
            }
            told => {
                if let (Some(off), Record::Exit { time, ids }) = (off_cpu.as_mut(), &told) {
                    off.told(*time, cpu, *ids, Told::Ended);
                }
                side.told(&told, wall);
            }
        });
        over
    }

    /// Takes from the rings which threads left their CPUs and came back.
    fn drain_leaving(&mut self, told_until: u64) {
        let Some(off) = &mut self.off_cpu else { return };
        let (unwinder, side) = (&mut self.unwinder, &mut self.side);
        let (names, offset) = (&mut self.cgroup_names, self.offset.ns);
        let wall = |time: u64| time.cast_signed().wrapping_add(offset);
        self.sampler.drain_leaving(|cpu, record| match record {
            Record::Sample { time, ids, address, chain, user, cgroup, .. } => {
                let (tid, pid, callers) = (ids.tid, ids.pid, chain.callers().collect());
                let mut sample = Sample { time: wall(time), tid, pid, address, cgroup, callers };
                if let (Some(unwinder), Some(user)) = (unwinder.as_mut(), user) {
                    let end = unwinder.add_callers((time, pid), &user, &mut sample);
                    if let Some(loss) = end.loss() {
                        side.lost(sample.time, loss, Some(cpu), 1);
                    }
                }
                if let Some((cgroup, path)) = cgroup.and_then(|cgroup| names.met(cgroup)) {
                    side.cgroup(sample.time, cgroup, &path);
                }
                off.told(time, cpu, ids, Told::At(Box::new(sample)));
            }
            Record::Switch { time, ids, way } => {
                let told = match way {
                    Way::In => Told::Back,
                    Way::OutToWait => Told::Left(Reason::Waiting),
                    Way::OutPreempted => Told::Left(Reason::Preempted),
                };
                off.told(time, cpu, ids, told);
            }
            Record::Lost { count } => {
                off.lost(count);
                side.lost(wall(clock::monotonic()), "off_cpu_ring_full", Some(cpu), count);
            }
            Record::Throttle => side.lost(wall(clock::monotonic()), "throttled", Some(cpu), 1),
            _ => {}
        });
        off.settle(told_until, wall);
        self.counts.off_cpu = Some(off.counts());
    }

    /// Writes down the time off the CPU since the last call.
    fn write_off_cpu(&mut self) {
        if let Some(off) = &mut self.off_cpu {
            off.take().for_each(|(same, spans)| self.side.off_cpu(&same, &spans));
            self.counts.off_cpu = Some(off.counts());
        }
    }

    fn turn_every(&self) -> u64 {
        let longest = self.sampler.drain_every();
        self.pace.map_or(longest, |pace| pace.clamp(PACE_MIN, longest.max(PACE_MIN))).get()
    }

    /// When the turn after the one at `at` is. Those of whole seconds come soon after a second is over, so that its
    /// samples do not wait for most of the next one; how soon is a matter of the host, so that not all send at once.
    fn turn_after(&self, at: u64) -> u64 {
        let every = self.turn_every();
        if every != Nanos::SECOND.get() {
            return at + every;
        }
        let into = self.wall(at).wrapping_sub(self.behind.get().cast_signed());
        at + every - into.rem_euclid(every.cast_signed()).unsigned_abs()
    }

    /// Hands on blocks of this span from now on, for whoever watches, or of whole seconds again. Each sample is
    /// in one block all the same. Where samples stay here until they are wanted, nothing changes.
    pub fn set_pace(&mut self, pace: Option<Nanos>) {
        if self.flight.is_none() && pace != self.pace {
            self.pace = pace;
            self.cpus.iter_mut().for_each(|of| of.writer.set_haste(pace.is_some()));
            self.next_turn = self.next_turn.min(clock::monotonic() + self.turn_every());
        }
    }

    /// Ends the block of each CPU, whether its second is over or not.
    fn end_blocks(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), RecordError> {
        let mut over = Over::default();
        for of in &mut self.cpus {
            of.end_block(&mut over);
        }
        self.hand_on(over, sink)
    }

    /// Ends what is over of each CPU before a second.
    fn end_seconds(
        &mut self,
        before: i64,
        sink: &mut impl FnMut(PackedRows),
    ) -> Result<(), RecordError> {
        let (period_of, mut over) = (self.period_of(), Over::default());
        for of in &mut self.cpus {
            of.end_before(before, &period_of, &mut over);
        }
        self.hand_on(over, sink)
    }

    /// The span between two samples in a second; `None` where it changed.
    fn period_of(&self) -> impl Fn(i64) -> Option<u64> + use<> {
        let ((changed, before), now) = (self.rate_changed, self.period());
        move |second| match second.cmp(&changed) {
            Ordering::Less => Some(before.get()),
            Ordering::Equal => None,
            Ordering::Greater => Some(now.get()),
        }
    }

    /// Hands on what is over, or keeps it until it is wanted.
    fn hand_on(
        &mut self,
        over: Over,
        sink: &mut impl FnMut(PackedRows),
    ) -> Result<(), RecordError> {
        let counts = &mut self.counts;
        let mut counted = |rows: PackedRows| {
            count_block(counts, &rows);
            sink(rows);
        };
        for (block, is_wanted) in over.blocks {
            match (block?, &mut self.flight) {
                (None, _) => {}
                (Some(rows), Some(flight)) => flight.take(rows, is_wanted, &mut counted),
                (Some(rows), None) => counted(rows),
            }
        }
        for (second, cpu, summary) in over.summaries {
            let begin = second.saturating_mul(1_000_000_000);
            self.side.summary(begin, cpu, &summary);
            if let (false, Some(flight)) = (summary.findings.is_empty(), &mut self.flight) {
                flight.found(begin, &mut counted);
            }
        }
        if let Some(flight) = &mut self.flight {
            flight.forget(clock::monotonic().cast_signed().wrapping_add(self.offset.ns));
        }
        Ok(())
    }

    /// Hands on the samples of a span until now that have stayed here; `None` where all are handed on
    /// anyway.
    ///
    /// # Errors
    /// As [`Recorder::turn`].
    pub fn grab(
        &mut self,
        last: Nanos,
        sink: &mut impl FnMut(PackedRows),
    ) -> Result<Option<Grabbed>, RecordError> {
        if self.flight.is_none() {
            return Ok(None);
        }
        // What is in the rings is of the span, too.
        self.drain(sink)?;
        self.end_blocks(sink)?;
        let now = self.wall(clock::monotonic());
        // Saturates: a longer span than the epoch's age is all that there is.
        let from = now.saturating_sub(i64::try_from(last.get()).unwrap_or(i64::MAX));
        let counts = &mut self.counts;
        let grabbed = self.flight.as_mut().map(|flight| {
            flight.grab(from, &mut |rows| {
                count_block(counts, &rows);
                sink(rows);
            })
        });
        Ok(grabbed)
    }

    /// Samples that stayed here until they were forgotten, and those that wait here.
    pub fn not_handed_on(&self) -> (u64, u64) {
        self.flight.as_ref().map_or((0, 0), |flight| (flight.forgotten(), flight.waiting()))
    }

    fn flush_side_band(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), RecordError> {
        let counts = &mut self.counts;
        Ok(self.side.flush(&mut |block| count_other(counts, block, sink))?)
    }

    /// Notices when the clock of the day was set.
    fn compare_clocks(&mut self) {
        let offset = clock::offset();
        if offset.ns.abs_diff(self.offset.ns) > CLOCK_STEP {
            self.offset = offset;
            self.side.clock(self.wall(offset.at), offset);
        }
    }

    /// Looks at what the second took, and changes the rate where the budget asks for it.
    fn govern(&mut self, now: u64) -> Result<(), RecordError> {
        let Some(observed) = self.observe(now) else { return Ok(()) };
        self.disturbance_ppm = observed.disturbance_ppm();
        let before = self.period();
        let Some(change) = self.governor.observe(&observed) else { return Ok(()) };
        let refused = |source| RecordError::System { doing: "change the rate", source };
        self.sampler.set_period(self.governor.period()).map_err(refused)?;
        self.rate_changed = (second_of(self.wall(now)), before);
        self.counts.rate_changes += 1;
        let reason = match change {
            Change::Slower => "budget",
            Change::Faster => "recovered",
        };
        self.write_rate(reason, Some(self.disturbance_ppm));
        Ok(())
    }

    /// What was taken since the last observation; `None` before sampling began.
    fn observe(&mut self, now: u64) -> Option<Observation> {
        let before = self.observed;
        let (own, samples) = (clock::process_cpu(), self.counts.samples);
        self.observed = Observed { at: now, own, samples };
        let span = now.checked_sub(before.at).filter(|&span| span > 0 && before.at > 0)?;
        let cpus = self.cpus.len() as u64;
        let interrupts = if self.sampler.interrupts_idle() {
            cpus * span / self.governor.period().get().max(1)
        } else {
            samples - before.samples
        };
        Some(Observation {
            span: Nanos::new(span),
            cpus,
            interrupts,
            interrupt: self.interrupt,
            own: Nanos::new(own - before.own),
        })
    }

    fn write_rate(&mut self, reason: &str, disturbance_ppm: Option<u64>) {
        let time = self.wall(clock::monotonic());
        let period = self.governor.period();
        let budget = self.governor.budget_ppm();
        self.side.rate(time, reason, [period, self.interrupt], [disturbance_ppm, budget]);
    }

    /// A monotonic time as ns since the epoch.
    fn wall(&self, monotonic: u64) -> i64 {
        monotonic.cast_signed().wrapping_add(self.offset.ns)
    }
}

/// What is over of CPUs: blocks, and whether they are handed on in any case; seconds, summed up.
#[derive(Default)]
struct Over {
    blocks: Vec<(Result<Option<PackedRows>, PackError>, bool)>,
    summaries: Vec<(i64, u32, Summary)>,
}

/// How long after a second a host takes its samples from the kernel.
fn behind(host: &str) -> Nanos {
    let of_name = host.bytes().fold(0_u8, |sum, octet| sum.wrapping_mul(31).wrapping_add(octet));
    BEHIND_MIN + Nanos::new(BEHIND_APART.get() / 256 * u64::from(of_name))
}

/// The second that an instant is of.
fn second_of(ns: i64) -> i64 {
    ns.div_euclid(1_000_000_000)
}

fn count_block(counts: &mut Counts, block: &PackedRows) {
    counts.blocks += 1;
    counts.handed_on += block.rows() as u64;
    counts.sample_bytes += block.payload().len() as u64;
}

fn count_other(counts: &mut Counts, block: PackedRows, sink: &mut impl FnMut(PackedRows)) {
    counts.other_bytes += block.payload().len() as u64;
    sink(block);
}

/// The threads that a process has.
pub fn threads_of(pid: u32) -> Vec<u32> {
    existing::threads_of(pid)
}
