//! Samples for other programs: the text of `perf script`, pprof, speedscope.
//!
//! Functions have their names in all of them, so that they mean something on a machine that has none of the
//! files. Only the text keeps the time of each sample; pprof has none, and speedscope puts one sample behind
//! the other.

mod hashing;
mod perf_script;
mod pprof;
mod protobuf;
mod speedscope;

use std::collections::BTreeMap;
use std::io;

use meikyo_recording::read::Problem;
use meikyo_recording::{ReadError, Recording};

use crate::reading::stacks::{Callers, Numbered, Stacks};
use crate::reading::{Goes, Name, Reading, Seen};
use crate::report::wider;
use crate::symbols::Symbols;
use crate::wanted::Wanted;
pub use hashing::{Hashing, Named};

/// What samples are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text that `perf script` prints: one host, every sample with its time.
    PerfScript,
    /// `profile.proto` of pprof, compressed with gzip.
    Pprof,
    /// The file format of speedscope, a profile for each thread.
    Speedscope,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::PerfScript, Self::Pprof, Self::Speedscope];

    /// How a person types it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerfScript => "perf-script",
            Self::Pprof => "pprof",
            Self::Speedscope => "speedscope",
        }
    }

    /// What it is, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::PerfScript => "Text as `perf script` prints it, for FlameGraph and FlameScope",
            Self::Pprof => "Protobuf, compressed, for `go tool pprof`, Pyroscope and Parca",
            Self::Speedscope => "JSON for speedscope, a profile for each thread",
        }
    }
}

/// What is written.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// Which samples.
    pub wanted: Wanted,
    /// What the file is written for.
    pub format: Format,
    /// Which names are hashed.
    pub hashing: Hashing,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Samples that were written.
    pub samples: u64,
    /// What is wrong with the recording.
    pub problems: Vec<Problem>,
}

/// Why samples could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The recording has no samples or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The text has no room for the name of a host.
    #[error("the samples are of {} hosts, and this format is of one: {}", hosts.len(), hosts.join(", "))]
    ManyHosts {
        /// Their names, of which one can be chosen.
        hosts: Vec<String>,
    },
    /// What was written cannot be kept.
    #[error("cannot write what was read")]
    Write(#[from] io::Error),
}

/// Writes the wanted samples of a recording.
///
/// # Errors
/// When the recording has no samples or cannot be read, when they are of several hosts and the format is of
/// one, or when they cannot be written.
pub fn export(
    recording: &Recording,
    ExportOptions { wanted, format, hashing }: &ExportOptions,
    out: &mut dyn io::Write,
) -> Result<Exported, ExportError> {
    let mut symbols = Symbols::of_this_host();
    let mut reading = Reading::new(recording, &mut symbols, &wanted.hosts)?;
    let met = Met::read(&mut reading, wanted, (*format, hashing))?;
    reading.look_up(met.stacks.places().iter())?;
    let samples = met.samples;
    match format {
        Format::PerfScript => perf_script::write(&mut reading, (wanted, hashing), met, out)?,
        Format::Pprof => pprof::write(&reading, hashing, &met, out)?,
        Format::Speedscope => speedscope::write(&reading, hashing, &met, out)?,
    }
    out.flush()?;
    Ok(Exported { samples, problems: reading.problems })
}

/// A thread or process as it was called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Ran {
    host: Name,
    called: Name,
    id: u64,
}

/// A sample as it is put behind the others of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    ran: u32,
    time: i64,
    stack: u32,
    period_ns: u64,
}

/// Samples as they were met.
struct Met {
    stacks: Stacks,
    /// Processes for pprof, threads for speedscope.
    ran: Numbered<Ran>,
    /// Samples, and the time that they stand for, by what ran and stack.
    counts: BTreeMap<(u32, u32), [u64; 2]>,
    in_time: Vec<Placed>,
    /// Each host as it is written, and as it is called.
    hosts: BTreeMap<usize, [Name; 2]>,
    samples: u64,
    span: Option<(i64, i64)>,
    /// Whether it is known of every sample how much time it stands for.
    is_timed: bool,
}

impl Met {
    fn read(
        reading: &mut Reading<'_>,
        wanted: &Wanted,
        (format, hashing): (Format, &Hashing),
    ) -> Result<Self, ExportError> {
        let mut met = Self {
            stacks: Stacks::new(Callers::Kept),
            ran: Numbered::new(),
            counts: BTreeMap::new(),
            in_time: Vec::new(),
            hosts: BTreeMap::new(),
            samples: 0,
            span: None,
            is_timed: true,
        };
        let periods = reading.periods(&wanted.hosts)?;
        reading.samples(wanted, |reading, seen| {
            let stack = met.stacks.number_of(reading, seen);
            met.samples += 1;
            met.span = wider(met.span, seen.time);
            met.hosts.entry(seen.host).or_insert_with(|| {
                let name = reading.host_name(seen.host);
                [hashing.name(Named::Host, &name), name]
            });
            let period = periods.at(seen);
            met.is_timed &= period.is_some();
            let period_ns = period.unwrap_or(0);
            match format {
                Format::PerfScript => {}
                Format::Pprof => {
                    let called = reading.called(seen.time, seen.process());
                    let ran = met.ran_by(seen, hashing.name(Named::Process, &called), seen.pid);
                    let [samples, time_ns] = met.counts.entry((ran, stack)).or_default();
                    *samples += 1;
                    *time_ns += period_ns;
                }
                Format::Speedscope => {
                    let called = reading.called(seen.time, seen.thread());
                    let ran = met.ran_by(seen, hashing.name(Named::Process, &called), seen.tid);
                    met.in_time.push(Placed { ran, time: seen.time, stack, period_ns });
                }
            }
            Goes::On
        })?;
        if format == Format::PerfScript && met.hosts.len() > 1 {
            let hosts = met.hosts.values().map(|[_, name]| name.to_string()).collect();
            return Err(ExportError::ManyHosts { hosts });
        }
        met.in_time.sort_unstable();
        Ok(met)
    }

    fn ran_by(&mut self, seen: &Seen<'_>, called: Name, id: u64) -> u32 {
        let [host, _] = self.hosts[&seen.host].clone();
        self.ran.number(&Ran { host, called, id })
    }
}
