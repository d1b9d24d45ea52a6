//! Sampling: events on every CPU, and the rings that they write into.
//!
//! Everything that runs is sampled by one event a CPU. Its timer goes on while the CPU is idle, though
//! no sample is taken then; events that belong to a control group or to threads have a timer only
//! while one of those runs (`docs/profiling.md` has the figures of both).

use std::fs::File;
use std::io;
use std::path::PathBuf;

use meikyo_units::Nanos;

use crate::clock;
pub use crate::perf_event::Clock;
use crate::perf_event::{Event, EventOptions, Subject};
use crate::records::{self, Carried, Record};
use crate::ring::Ring;

/// Octets of the ring of a CPU: four seconds of samples without stacks at 1 kHz.
const RING: usize = 128 << 10;

/// Octets of it with stacks: a second of samples with some fifty callers each.
const RING_WITH_STACKS: usize = 512 << 10;

/// Addresses of a chain that are kept at most; longer ones are cut, and counted.
pub const STACK_MAX: u16 = 127;

/// Whose samples are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Of everything that runs on any CPU.
    Everything,
    /// Of the threads in control groups of version 2 and in those below them, by their directories.
    Cgroups(Vec<PathBuf>),
    /// Of some threads and of all that they begin.
    Threads(Vec<u32>),
}

/// How the samples of different CPUs lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Spread over the span between two samples, so that they do not all disturb at once.
    Staggered,
    /// At the same time, so that a barrier waits for one of them and not for each in turn.
    Aligned,
}

/// How samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerOptions {
    /// What drives them.
    pub clock: Clock,
    /// Span between two samples of a CPU.
    pub period: Nanos,
    /// How those of different CPUs lie to each other.
    pub phase: Phase,
    /// Whether callers are kept, found by frame pointers.
    pub stacks: bool,
    /// Whether control groups are kept.
    pub cgroups: bool,
    /// Whether the threads are only sampled once they call execve(2).
    pub on_exec: bool,
}

/// Why sampling cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenSamplerError {
    /// The system does not let this process do so.
    #[error("sampling is not permitted")]
    Permission(#[source] io::Error),
    /// The machine does not have the clock.
    #[error("this machine counts no cycles for this system")]
    NoCycles(#[source] io::Error),
    /// There is no such control group of version 2.
    #[error("`{path}` is no control group of version 2")]
    Cgroup {
        /// Its directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The thread has ended.
    #[error("thread {tid} is not there")]
    Thread {
        /// The thread.
        tid: u32,
        /// What the system said.
        source: io::Error,
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
    is_of_threads: bool,
    is_of_everything: bool,
    unread: u64,
}

#[derive(Debug)]
struct OfCpu {
    cpu: u32,
    /// Unmapped before its event is closed.
    ring: Ring,
    /// Those that take samples.
    sampling: Vec<Event>,
    /// The one that tells what is mapped and begun, where no other does.
    telling: Option<Event>,
}

impl Sampler {
    /// Opens events and rings; nothing is sampled before [`Sampler::enable`].
    ///
    /// # Errors
    /// When the system permits or has less than is asked for.
    pub fn open(target: &Target, options: SamplerOptions) -> Result<Self, OpenSamplerError> {
        let online = online_cpus().map_err(|source| OpenSamplerError::System {
            doing: "read which CPUs there are, here",
            cpu: 0,
            source,
        })?;
        let cgroups = opened(target)?;
        let cpus = online.into_iter().map(|cpu| OfCpu::open(cpu, target, &cgroups, &options));
        let cpus = cpus.collect::<Result<_, _>>()?;
        let is_of_threads = matches!(target, Target::Threads(_));
        let is_of_everything = *target == Target::Everything;
        Ok(Self { cpus, options, is_of_threads, is_of_everything, unread: 0 })
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
        Carried { callers: self.options.stacks, cgroup: self.options.cgroups }
    }

    /// How long rings are filled at most before they must be drained.
    pub fn drain_every(&self) -> Nanos {
        if self.options.stacks { Nanos::from_millis(250) } else { Nanos::SECOND }
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
            of.telling.iter().try_for_each(Event::enable)?;
            if !self.options.on_exec && !self.is_of_threads {
                let share = match self.options.phase {
                    Phase::Staggered => period * at / count,
                    Phase::Aligned => 0,
                };
                let turns = (at * LEAD).div_ceil(period) * period;
                clock::wait_until(begin + turns + share);
            }
            if !self.options.on_exec {
                of.sampling.iter().try_for_each(Event::enable)?;
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
            .flat_map(|of| of.sampling.iter().chain(&of.telling))
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

    /// Hands on what the kernel has told since the last call, CPU by CPU.
    pub fn drain(&mut self, mut take: impl FnMut(u32, Record<'_>)) {
        let carried = self.carried();
        for of in &mut self.cpus {
            of.ring.drain(|octets| match records::read(octets, carried) {
                Some(record) => take(of.cpu, record),
                None => self.unread += 1,
            });
        }
    }

    /// Records since the last call that were not laid out as this program knows them.
    pub fn take_unread(&mut self) -> u64 {
        std::mem::take(&mut self.unread)
    }
}

impl OfCpu {
    fn open(
        cpu: u32,
        target: &Target,
        cgroups: &[File],
        options: &SamplerOptions,
    ) -> Result<Self, OpenSamplerError> {
        let event = |subject, options: &EventOptions| {
            Event::open(subject, cpu, options)
                .map_err(|source| refused(source, cpu, subject, options))
        };
        let chain_max = if options.stacks { STACK_MAX } else { 0 };
        let of_threads = matches!(target, Target::Threads(_));
        let sampling = EventOptions {
            clock: Some(options.clock),
            period: options.period,
            chain_max,
            user_chains_only: false,
            cgroups: options.cgroups,
            side_band: of_threads,
            inherit: of_threads,
            on_exec: options.on_exec,
        };
        let telling = EventOptions { clock: None, side_band: true, ..sampling };
        let mut sampled = Vec::new();
        match target {
            Target::Everything => sampled.push(event(Subject::Everything, &sampling)?),
            Target::Cgroups(_) => {
                for cgroup in cgroups {
                    sampled.push(event(Subject::Cgroup(cgroup), &sampling)?);
                }
            }
            Target::Threads(threads) => {
                for &tid in threads {
                    sampled.push(event(Subject::Thread(tid), &sampling)?);
                }
            }
        }
        let telling = if of_threads { None } else { Some(event(Subject::Everything, &telling)?) };
        let system = |doing| move |source| OpenSamplerError::System { doing, cpu, source };
        let mut events = telling.iter().chain(&sampled);
        let first = events.next().ok_or_else(|| {
            system("sample nothing")(io::Error::from(io::ErrorKind::InvalidInput))
        })?;
        let bytes = if options.stacks { RING_WITH_STACKS } else { RING };
        let ring = Ring::map(first.file(), bytes).map_err(|source| OpenSamplerError::Ring {
            cpu,
            bytes,
            source,
        })?;
        for other in events {
            other.output_to(first).map_err(system("join the records of two events"))?;
        }
        Ok(Self { cpu, ring, sampling: sampled, telling })
    }
}

/// What a refusal of the kernel means.
fn refused(
    source: io::Error,
    cpu: u32,
    subject: Subject<'_>,
    options: &EventOptions,
) -> OpenSamplerError {
    match (source.raw_os_error(), subject, options.clock) {
        (Some(libc::EACCES | libc::EPERM), ..) => OpenSamplerError::Permission(source),
        (Some(libc::ESRCH), Subject::Thread(tid), _) => OpenSamplerError::Thread { tid, source },
        (Some(libc::ENOENT | libc::EOPNOTSUPP), _, Some(Clock::Cycles)) => {
            OpenSamplerError::NoCycles(source)
        }
        _ => OpenSamplerError::System { doing: "open an event", cpu, source },
    }
}

/// The directories of the control groups of a target.
fn opened(target: &Target) -> Result<Vec<File>, OpenSamplerError> {
    let Target::Cgroups(paths) = target else { return Ok(Vec::new()) };
    let open = |path: &PathBuf| {
        let is_one = std::fs::metadata(path.join("cgroup.procs"));
        let opened = is_one.and_then(|_| File::open(path));
        opened.map_err(|source| OpenSamplerError::Cgroup { path: path.clone(), source })
    };
    paths.iter().map(open).collect()
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
    use super::parse_cpus;

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpus("0"), Some(vec![0]));
        assert_eq!(parse_cpus("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!([parse_cpus(""), parse_cpus("a-b")], [None, None]);
    }
}
