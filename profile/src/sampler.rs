//! Sampling: events on every CPU, and the rings that they write into.
//!
//! Everything that runs is sampled by one event a CPU. Its timer goes on while the CPU is idle, though
//! no sample is taken then; events that belong to a control group or to threads have a timer only
//! while one of those runs (`docs/profiling.md` has the figures of both).

mod attaching;

use std::fs::File;
use std::io;
use std::path::PathBuf;

use meikyo_sockets::{PollFd, PollFlags, wait};
use meikyo_units::Nanos;

use crate::clock;
pub use crate::perf_event::Clock;
use crate::perf_event::{Event, EventOptions, Subject, TakenBy};
use crate::records::{self, Carried, Record};
use crate::ring::Ring;
use attaching::{Owners, allow_descriptors, attach, outermost};

/// Octets of the ring of a CPU: four seconds of samples without stacks at 1 kHz.
const RING: usize = 128 << 10;

/// Octets of it with stacks: half a second of samples with as many callers as are kept, and as much as
/// the kernel lets every user map (`kernel.perf_event_mlock_kb`).
const RING_WITH_STACKS: usize = 512 << 10;

/// Octets of the ring of a CPU for what leaves it and comes back, and how often it is drained at least: room for
/// some 30,000 switches a second with their callers.
const RING_OFF_CPU: usize = 1 << 20;
const DRAIN_OFF_CPU: Nanos = Nanos::from_millis(100);

/// Half a ring takes the samples of at least this span: it is made larger where they come faster.
const HALF_RING_MIN: Nanos = Nanos::from_millis(20);

/// Rings are drained no more often, and no less often.
const DRAIN_MIN: Nanos = Nanos::from_millis(1);
const DRAIN_MAX: Nanos = Nanos::SECOND;

/// Addresses of a chain that are kept at most; longer ones are cut, and counted.
pub const STACK_MAX: u16 = 127;

/// Whose samples are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Of everything that runs on any CPU.
    Everything,
    /// Of the threads in control groups of version 2 and in those below them, by their directories.
    Cgroups(Vec<PathBuf>),
    /// Of the threads of some processes and of all that they begin.
    Processes(Vec<u32>),
}

/// Timing of samples across CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Spread over the span between two samples, so that they do not all disturb at once.
    Staggered,
    /// At the same time, so that a barrier waits for one of them and not for each in turn.
    Aligned,
}

/// How callers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallChains {
    /// By frame pointers, which the kernel follows.
    FramePointers,
    /// By what compilers wrote about their functions (`.eh_frame`), from a copy of the registers and of
    /// so many octets of the stack, a multiple of 8.
    EhFrame {
        /// Octets of a stack that are copied.
        copied: u16,
    },
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerOptions {
    /// What drives them.
    pub clock: Clock,
    /// Span between two samples of a CPU.
    pub period: Nanos,
    /// Timing of samples across CPUs.
    pub phase: Phase,
    /// How callers are found; `None` where they are not kept.
    pub stacks: Option<CallChains>,
    /// Whether control groups are kept.
    pub cgroups: bool,
    /// Whether it is told when threads leave their CPUs, from where, and when they are back.
    pub off_cpu: bool,
    /// Whether the processes are only sampled once they call execve(2).
    pub on_exec: bool,
}

/// Why sampling cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenSamplerError {
    /// The system does not let this process do so.
    #[error("sampling is not permitted")]
    Permission(#[source] io::Error),
    /// The machine does not have the clock.
    #[error("this machine does not count cycles")]
    NoCycles(#[source] io::Error),
    /// Callers by `.eh_frame` are found on one kind of processor only.
    #[error("callers by .eh_frame are found on x86-64 only")]
    EhFrame,
    /// Control groups are sampled by events that do not tell when their threads leave a CPU.
    #[error("time off the CPU is not known of control groups")]
    OffCpuOfCgroups,
    /// There is no such control group of version 2.
    #[error("`{path}` is no control group of version 2")]
    Cgroup {
        /// Its directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// None of the processes has a thread that could be sampled.
    #[error("there is no process {}", list(pids))]
    Processes {
        /// The processes.
        pids: Vec<u32>,
    },
    /// More descriptors are needed than this process may open.
    #[error(
        "{subjects} threads or control groups on {cpus} CPUs need {needed} descriptors, and this \
         process may open {limit}"
    )]
    Descriptors {
        /// Threads or control groups that there were.
        subjects: usize,
        /// CPUs that are sampled.
        cpus: usize,
        /// Descriptors that they need.
        needed: u64,
        /// Descriptors that this process may open.
        limit: u64,
    },
    /// The ring of a CPU cannot be mapped.
    #[error("cannot map {bytes} octets of records for CPU {cpu}")]
    Ring {
        /// The CPU whose ring it was to be.
        cpu: u32,
        /// Octets that were asked for.
        bytes: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("cannot {doing} on CPU {cpu}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The CPU that was to be sampled.
        cpu: u32,
        /// What the system said.
        source: io::Error,
    },
}

/// Events and rings of every CPU.
#[derive(Debug)]
pub struct Sampler {
    cpus: Vec<OfCpu>,
    options: SamplerOptions,
    is_of_processes: bool,
    is_of_everything: bool,
    /// Octets of the ring of a CPU.
    ring: usize,
    /// Whether the kernel wakes who waits when half of a ring is filled, so that it need not be drained before.
    rings_wake: bool,
    /// Whose samples an event's are, where threads can have inherited one beside their own.
    owners: Option<Owners>,
    unread: u64,
}

#[derive(Debug)]
struct OfCpu {
    cpu: u32,
    /// Unmapped before its event is closed.
    ring: Ring,
    /// How far it is drained next, where that was looked ahead to; `None` for all that there is.
    until: Option<u64>,
    /// Those that take samples.
    sampling: Vec<Event>,
    /// The one that tells what is mapped and begun, where no other does.
    telling: Option<Event>,
    /// What tells of threads that leave the CPU, where that is asked for.
    leaving: Option<Leaving>,
}

/// What tells of threads that leave a CPU: rings of their own, so that no sample is displaced.
#[derive(Debug)]
struct Leaving {
    /// Unmapped before its events are closed.
    ring: Ring,
    until: Option<u64>,
    events: Vec<Event>,
}

impl Sampler {
    /// Opens events and rings; nothing is sampled before [`Sampler::enable`].
    ///
    /// # Errors
    /// When the system permits or has less than is asked for.
    pub fn open(target: &Target, options: SamplerOptions) -> Result<Self, OpenSamplerError> {
        if copied(&options) > 0 && !cfg!(target_arch = "x86_64") {
            return Err(OpenSamplerError::EhFrame);
        }
        if options.off_cpu && matches!(target, Target::Cgroups(_)) {
            return Err(OpenSamplerError::OffCpuOfCgroups);
        }
        let online = online_cpus().map_err(|source| OpenSamplerError::System {
            doing: "read which CPUs there are, here",
            cpu: 0,
            source,
        })?;
        let cgroups = opened(target)?;
        allow_descriptors(cgroups.len() * online.len());
        let is_of_processes = matches!(target, Target::Processes(_));
        let is_of_everything = *target == Target::Everything;
        let (attached, owners) = match target {
            Target::Processes(pids) => attach(pids, &online, &events(&options, true))?,
            _ => (Vec::new(), None),
        };
        let leaving = match target {
            Target::Processes(pids) if options.off_cpu => {
                attach(pids, &online, &leaving_events(&options, true))?.0
            }
            _ => Vec::new(),
        };
        let mut leaving = leaving.into_iter();
        let ring = ring_bytes(&options, is_of_processes);
        let mut attached = attached.into_iter();
        let open = |cpu| {
            let attached = attached.next().unwrap_or_default();
            let mut of = OfCpu::open(cpu, attached, &cgroups, (&options, is_of_everything, ring))?;
            if options.off_cpu {
                let attached = leaving.next().unwrap_or_default();
                of.leaving = Some(Leaving::open(cpu, attached, &options)?);
            }
            Ok(of)
        };
        let cpus = online.into_iter().map(open).collect::<Result<_, _>>()?;
        // Events of threads end with these, and then wake for ever.
        let rings_wake = !is_of_processes && !options.off_cpu;
        let unread = 0;
        Ok(Self {
            cpus,
            options,
            is_of_processes,
            is_of_everything,
            ring,
            rings_wake,
            owners,
            unread,
        })
    }

    /// The numbers of the CPUs that are sampled, in their order.
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = u32> {
        self.cpus.iter().map(|of| of.cpu)
    }

    /// Whether an interrupt comes also when nothing that is sampled runs.
    pub fn interrupts_idle(&self) -> bool {
        self.is_of_everything
    }

    /// What samples carry.
    pub fn carried(&self) -> Carried {
        carried(&self.options, self.is_of_processes)
    }

    /// How long rings are filled at most before they must be drained.
    pub fn drain_every(&self) -> Nanos {
        if self.rings_wake {
            return DRAIN_MAX;
        }
        let longest = if self.options.off_cpu { DRAIN_OFF_CPU } else { DRAIN_MAX };
        longest.min(drain_every(self.options.period, self.ring, self.record_bytes()))
    }

    /// Waits until the monotonic clock shows `until`, a signal comes, or something `beside`, or a ring has to be
    /// drained; whether one has.
    ///
    /// The kernel wakes for every half of a ring that it has written, wherever the last drain was. What is a
    /// quarter or less leaves room for that half, and waits.
    pub(crate) fn wait_until(&mut self, until: u64, beside: &[PollFd<'_>]) -> bool {
        let is_soon = drain_every(self.options.period, self.ring, self.record_bytes());
        let watches_rings = self.rings_wake && is_soon < DRAIN_MAX;
        if !watches_rings && beside.is_empty() {
            clock::wait_until(until);
            return false;
        }
        let span = Nanos::new(until.saturating_sub(clock::monotonic()));
        let mut fds = beside.to_vec();
        if watches_rings {
            let telling = self.cpus.iter().filter_map(|of| of.telling.as_ref());
            fds.extend(telling.map(|telling| PollFd::new(telling.file(), PollFlags::IN)));
        }
        let waited = wait(&mut fds, Some(span));
        if !watches_rings {
            return false;
        }
        let ends = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let goes_on = waited.is_ok() && !fds.iter().skip(beside.len()).any(ends);
        drop(fds);
        // What does not wait any more is drained as often as it may have to be.
        self.rings_wake = goes_on;
        self.cpus.iter().any(|of| of.ring.unread() > self.ring as u64 / 4)
    }

    fn record_bytes(&self) -> usize {
        record_bytes(&self.options, self.carried())
    }

    /// Whether it is told what is mapped and begun only while samples are taken: the events of threads
    /// do both.
    pub fn tells_only_while_sampling(&self) -> bool {
        self.is_of_processes
    }

    /// Lets the kernel tell what is mapped, named, begun and ended, before anything is sampled.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn tell(&self) -> io::Result<()> {
        self.cpus.iter().flat_map(|of| &of.telling).try_for_each(Event::enable)
    }

    /// Begins to sample, with the phase of each CPU where it is to be.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable(&self) -> io::Result<()> {
        // Enabling takes tens of microseconds, and the timer of a CPU begins with it.
        const LEAD: u64 = 200_000;
        let period = self.options.period.get();
        let count = self.cpus.len() as u64;
        let begin = (clock::monotonic() / period + 1) * period + LEAD;
        for (at, of) in (0_u64..).zip(&self.cpus) {
            if !self.options.on_exec && !self.is_of_processes {
                let share = match self.options.phase {
                    Phase::Staggered => period * at / count,
                    Phase::Aligned => 0,
                };
                let turns = (at * LEAD).div_ceil(period) * period;
                clock::wait_until(begin + turns + share);
            }
            if !self.options.on_exec {
                let leaving = of.leaving.iter().flat_map(|leaving| &leaving.events);
                of.sampling.iter().chain(leaving).try_for_each(Event::enable)?;
            }
        }
        Ok(())
    }

    /// Stops sampling; what is in the rings can still be drained.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self) -> io::Result<()> {
        self.cpus
            .iter()
            .flat_map(|of| {
                let leaving = of.leaving.iter().flat_map(|leaving| &leaving.events);
                of.sampling.iter().chain(&of.telling).chain(leaving)
            })
            .try_for_each(Event::disable)
    }

    /// Sets the span between two samples of a CPU.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_period(&mut self, period: Nanos) -> io::Result<()> {
        for event in self.cpus.iter().flat_map(|of| &of.sampling) {
            event.set_period(self.options.clock, period)?;
        }
        self.options.period = period;
        Ok(())
    }

    /// Hands on what the kernel has told beside samples since the last call of [`Sampler::drain`], of all
    /// CPUs, and lets the next call of it take no sample that was taken later than this.
    pub fn look_ahead(&mut self, mut take: impl FnMut(Record<'_>)) {
        let carried = self.carried();
        for of in &mut self.cpus {
            of.until = Some(of.ring.head());
            if let Some(leaving) = &mut of.leaving {
                leaving.until = Some(leaving.ring.head());
            }
        }
        for of in &mut self.cpus {
            of.ring.look_ahead(
                |header| !records::is_sample(header),
                |octets| {
                    if let Some(record) = records::read(octets, carried) {
                        take(record);
                    }
                },
            );
        }
    }

    /// Hands on what the kernel has told since the last call, CPU by CPU.
    pub fn drain(&mut self, mut take: impl FnMut(u32, Record<'_>)) {
        let carried = self.carried();
        let (owners, unread) = (&mut self.owners, &mut self.unread);
        for of in &mut self.cpus {
            let until = of.until.take().unwrap_or_else(|| of.ring.head());
            of.ring.drain(until, |octets| match records::read(octets, carried) {
                Some(record) => {
                    if owners.as_mut().is_none_or(|owners| owners.takes(&record)) {
                        take(of.cpu, record);
                    }
                }
                None => *unread += 1,
            });
        }
        if let Some(owners) = owners {
            owners.forget_ended();
        }
    }

    /// Hands on what the kernel has told of threads that left their CPUs and came back, CPU by CPU.
    pub fn drain_leaving(&mut self, mut take: impl FnMut(u32, Record<'_>)) {
        let carried = Carried { callers: true, ..self.carried() };
        let unread = &mut self.unread;
        for of in &mut self.cpus {
            let Some(leaving) = &mut of.leaving else { continue };
            let until = leaving.until.take().unwrap_or_else(|| leaving.ring.head());
            leaving.ring.drain(until, |octets| match records::read(octets, carried) {
                Some(record) => take(of.cpu, record),
                None => *unread += 1,
            });
        }
    }

    /// Records since the last call that were not laid out as this program knows them.
    pub fn take_unread(&mut self) -> u64 {
        std::mem::take(&mut self.unread)
    }
}

impl OfCpu {
    /// Opens the events of a CPU but those of threads, which are `attached` already, and its ring.
    fn open(
        cpu: u32,
        attached: Vec<Event>,
        cgroups: &[File],
        (options, is_of_everything, bytes): (&SamplerOptions, bool, usize),
    ) -> Result<Self, OpenSamplerError> {
        let event = |subject, options: &EventOptions| {
            Event::open(subject, cpu, options)
                .map_err(|source| refused(source, cpu, subject, options))
        };
        let is_of_threads = !attached.is_empty();
        let options = events(options, is_of_threads);
        let mut sampling = attached;
        if is_of_everything {
            sampling.push(event(Subject::Everything, &options)?);
        }
        for cgroup in cgroups {
            sampling.push(event(Subject::Cgroup(cgroup), &options)?);
        }
        let telling = EventOptions { taken_by: TakenBy::Nothing, side_band: true, ..options };
        let telling =
            if is_of_threads { None } else { Some(event(Subject::Everything, &telling)?) };
        let ring = ring_of(cpu, telling.iter().chain(&sampling), bytes)?;
        Ok(Self { cpu, ring, until: None, sampling, telling, leaving: None })
    }
}

impl Leaving {
    /// Opens the events of a CPU but those of threads, which are `attached` already, and their ring.
    fn open(
        cpu: u32,
        attached: Vec<Event>,
        options: &SamplerOptions,
    ) -> Result<Self, OpenSamplerError> {
        let options = leaving_events(options, !attached.is_empty());
        let mut events = attached;
        if events.is_empty() {
            let subject = Subject::Everything;
            let opened = Event::open(subject, cpu, &options);
            events.push(opened.map_err(|source| refused(source, cpu, subject, &options))?);
        }
        let ring = ring_of(cpu, &events, RING_OFF_CPU)?;
        Ok(Self { ring, until: None, events })
    }
}

/// Maps a ring of so many octets for some events of a CPU.
fn ring_of<'a>(
    cpu: u32,
    events: impl IntoIterator<Item = &'a Event>,
    bytes: usize,
) -> Result<Ring, OpenSamplerError> {
    let system = |doing| move |source| OpenSamplerError::System { doing, cpu, source };
    let mut events = events.into_iter();
    let first = events
        .next()
        .ok_or_else(|| system("sample nothing")(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let ring = Ring::map(first.file(), bytes).map_err(|source| OpenSamplerError::Ring {
        cpu,
        bytes,
        source,
    })?;
    for other in events {
        other.output_to(first).map_err(system("join the records of two events"))?;
    }
    Ok(ring)
}

/// What the events that take samples do.
fn events(options: &SamplerOptions, of_threads: bool) -> EventOptions {
    EventOptions {
        taken_by: TakenBy::Clock(options.clock),
        period: options.period,
        chain_max: if options.stacks.is_some() { STACK_MAX } else { 0 },
        user_chains_only: false,
        copied: copied(options),
        cgroups: options.cgroups,
        events: of_threads,
        side_band: of_threads,
        inherit: of_threads,
        on_exec: options.on_exec,
    }
}

/// What the events do that tell of threads which leave their CPUs.
fn leaving_events(options: &SamplerOptions, of_threads: bool) -> EventOptions {
    EventOptions {
        taken_by: TakenBy::Leaving,
        chain_max: STACK_MAX,
        side_band: false,
        ..events(options, of_threads)
    }
}

fn carried(options: &SamplerOptions, of_threads: bool) -> Carried {
    Carried {
        callers: options.stacks.is_some(),
        user: copied(options) > 0,
        cgroup: options.cgroups,
        event: of_threads,
    }
}

/// Octets of a stack that are copied with each sample.
fn copied(options: &SamplerOptions) -> u16 {
    match options.stacks {
        Some(CallChains::EhFrame { copied }) => copied,
        Some(CallChains::FramePointers) | None => 0,
    }
}

/// Octets of a sample in a ring at most.
fn record_bytes(options: &SamplerOptions, carried: Carried) -> usize {
    /// Header, instruction, thread, time.
    const PLAIN: usize = 32;
    /// Marks of contexts that a chain has at most (`kernel.perf_event_max_contexts_per_stack`).
    const MARKS_MAX: usize = 8;
    let chain = 8 * (1 + MARKS_MAX + usize::from(STACK_MAX));
    // Form, registers, and the octets of the stack between two numbers.
    let user = 8 * (1 + records::REGISTERS + 2) + usize::from(copied(options));
    let parts =
        [(carried.callers, chain), (carried.user, user), (carried.cgroup, 8), (carried.event, 8)];
    PLAIN + parts.iter().map(|&(is_there, octets)| if is_there { octets } else { 0 }).sum::<usize>()
}

/// Octets of the ring of a CPU, half of which take the samples of [`HALF_RING_MIN`].
fn ring_bytes(options: &SamplerOptions, of_threads: bool) -> usize {
    let record = record_bytes(options, carried(options, of_threads)) as u64;
    let samples = HALF_RING_MIN.get().div_ceil(options.period.get().max(1));
    let needed = usize::try_from(2 * samples * record).expect("samples of 20 ms fit into memory");
    let least = if options.stacks.is_some() { RING_WITH_STACKS } else { RING };
    least.max(needed.next_power_of_two())
}

/// How long half of a ring takes all samples of a CPU, whatever their stacks are.
fn drain_every(period: Nanos, ring: usize, record: usize) -> Nanos {
    let samples = (ring / 2 / record) as u64;
    // Saturates: the longest span is cut to a second anyway.
    let span = Nanos::new(period.get().saturating_mul(samples));
    span.clamp(DRAIN_MIN, DRAIN_MAX)
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// What a refusal of the kernel means.
fn refused(
    source: io::Error,
    cpu: u32,
    subject: Subject<'_>,
    options: &EventOptions,
) -> OpenSamplerError {
    match (source.raw_os_error(), subject, options.taken_by) {
        (Some(libc::EACCES | libc::EPERM), ..) => OpenSamplerError::Permission(source),
        (Some(libc::ENOENT | libc::EOPNOTSUPP), _, TakenBy::Clock(Clock::Cycles)) => {
            OpenSamplerError::NoCycles(source)
        }
        _ => OpenSamplerError::System { doing: "open an event", cpu, source },
    }
}

/// The directories of the control groups of a target, but those below another one, whose samples
/// would be taken twice.
fn opened(target: &Target) -> Result<Vec<File>, OpenSamplerError> {
    let Target::Cgroups(paths) = target else { return Ok(Vec::new()) };
    let real = |path: &PathBuf| {
        let is_one = std::fs::metadata(path.join("cgroup.procs"));
        let real = is_one.and_then(|_| path.canonicalize());
        real.map_err(|source| OpenSamplerError::Cgroup { path: path.clone(), source })
    };
    let real = outermost(paths.iter().map(real).collect::<Result<_, _>>()?);
    let open = |path: PathBuf| {
        File::open(&path).map_err(|source| OpenSamplerError::Cgroup { path, source })
    };
    real.into_iter().map(open).collect()
}

/// The CPUs that are online.
fn online_cpus() -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    parse_cpus(text.trim()).ok_or_else(|| io::Error::other(format!("`{text}` lists no CPUs")))
}

/// A list of CPUs as the kernel writes it: `0-3,8`.
fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus).filter(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpus("0"), Some(vec![0]));
        assert_eq!(parse_cpus("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!([parse_cpus(""), parse_cpus("a-b")], [None, None]);
    }

    #[test]
    fn rings_take_every_sample_between_two_drains_whatever_the_rate() {
        let copied = CallChains::EhFrame { copied: 16_384 };
        for (stacks, hz) in [None, Some(CallChains::FramePointers), Some(copied)]
            .into_iter()
            .flat_map(|stacks| [1, 50, 1_000, 4_000, 20_000, 100_000].map(|hz| (stacks, hz)))
        {
            let options = SamplerOptions {
                clock: Clock::CpuClock,
                period: Nanos::new(1_000_000_000 / hz),
                phase: Phase::Staggered,
                stacks,
                cgroups: true,
                off_cpu: false,
                on_exec: false,
            };
            let ring = ring_bytes(&options, true);
            let record = record_bytes(&options, carried(&options, true));
            let every = drain_every(options.period, ring, record);
            let samples = every.get() / options.period.get();
            let filled = usize::try_from(samples).unwrap() * record;
            assert!(filled <= ring / 2, "{filled} of {ring} octets at {hz} Hz");
            assert!(every >= HALF_RING_MIN, "{every} at {hz} Hz");
            // No more often than it must be, nor are rings larger.
            assert!(every == Nanos::SECOND || filled > ring / 2 - 2 * record, "{every} at {hz} Hz");
            assert!(stacks.is_some() || hz > 1_000 || (every == Nanos::SECOND && ring == RING));
        }
    }
}
