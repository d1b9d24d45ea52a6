//! Samples by function, thread, process or CPU: what a recording of a profile says.

use std::collections::BTreeMap;

use meikyo_recording::read::Problem;
use meikyo_recording::{ReadError, Recording};
use meikyo_units::WallTime;

use crate::reading::stacks::{Callers, Stacks, index};
use crate::reading::{Goes, Name, OffSpans, Reading, Seconds, Seen};
use crate::symbols::{Symbols, Unnamed};
use crate::wanted::Wanted;

/// What samples are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Function and file.
    Function,
    /// The file that the instruction is from.
    File,
    /// Process, by the name of its first thread.
    Process,
    /// Thread, by its name.
    Thread,
    /// CPU and host.
    Cpu,
    /// Control group.
    Cgroup,
    /// Job, by its control group.
    Job,
    /// Name of the host that was sampled, for recordings of many.
    Host,
}

impl By {
    /// Everything that samples can be counted by.
    pub const ALL: [Self; 8] = [
        Self::Function,
        Self::File,
        Self::Process,
        Self::Thread,
        Self::Cpu,
        Self::Cgroup,
        Self::Job,
        Self::Host,
    ];

    /// How a person types it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::File => "file",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Cpu => "cpu",
            Self::Cgroup => "cgroup",
            Self::Job => "job",
            Self::Host => "host",
        }
    }

    /// What it is, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Function => "Function and file",
            Self::File => "The file that the sampled instruction is from",
            Self::Process => "Name of the process",
            Self::Thread => "Name of the thread",
            Self::Cpu => "CPU and host",
            Self::Cgroup => "Control group, where those were kept",
            Self::Job => "Job of Slurm, container or unit, where control groups were kept",
            Self::Host => "Host",
        }
    }
}

/// Which samples are counted, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// What samples are counted by.
    pub by: By,
    /// Which samples are counted.
    pub wanted: Wanted,
    /// What is counted.
    pub of: Of,
}

/// What a report counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// What was sampled, one by one.
    Samples,
    /// What hosts summed up: of each second the places of code with most samples, and how many there were in
    /// all.
    Summaries,
    /// How long threads were off the CPU, ns, by where they left it outside of the kernel.
    OffCpu,
}

/// A line of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The function, thread, process, CPU or control group.
    pub name: String,
    /// Where the function lies; empty where the line is of no function.
    pub file: String,
    /// Samples in it.
    pub own: u64,
    /// Samples in it and in what it called; as `own` where stacks were not kept.
    pub total: u64,
}

/// What was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What was lost, in the word of the table `losses`.
    pub what: String,
    /// Samples or records, depending on what was lost.
    pub count: u64,
}

/// Samples counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// All samples that were counted; of time off the CPU, ns.
    pub samples: u64,
    /// Samples beside them that are known as sums of their second only, which [`Of::Summaries`] counts.
    pub summed_up: u64,
    /// Of time off the CPU, how often threads left, and how long others ran in their place.
    pub off_cpu: Option<OffCpuSums>,
    /// The time of the first and the last of them.
    pub span: Option<(WallTime, WallTime)>,
    /// Lines with most samples first; ties by name.
    pub lines: Vec<Line>,
    /// Samples whose address has no name, by reason.
    pub unnamed: Vec<(Unnamed, u64)>,
    /// What was lost in the span.
    pub losses: Vec<Loss>,
    /// What is wrong with the recording.
    pub problems: Vec<Problem>,
}

/// Time off the CPU in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuSums {
    /// How often threads left their CPU.
    pub spans: u64,
    /// How long others ran in the place of threads that could have run, ns.
    pub preempted_ns: u64,
}

impl OffCpuSums {
    pub(crate) fn add(&mut self, of: &OffSpans) {
        self.spans += of.spans;
        self.preempted_ns += if of.is_preempted { of.ns } else { 0 };
    }
}

/// What two reports differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The name of the line.
    pub name: String,
    /// Where the function lies.
    pub file: String,
    /// Samples in it, before and after.
    pub own: [u64; 2],
    /// Share of all samples before and after, millionths.
    pub share_ppm: [u64; 2],
}

/// Counts the samples of a recording.
///
/// # Errors
/// When the recording has no samples or cannot be read.
///
/// # Panics
/// Never: each sample has an address.
pub fn report(recording: &Recording, options: &ReportOptions) -> Result<Report, ReadError> {
    let mut symbols = Symbols::of_this_host();
    let Counted { mut reading, stacks, counts, summed_up, off_cpu, span } =
        count(recording, &mut symbols, options)?;
    let frames: Vec<_> = stacks.places().iter().map(|place| reading.frame(place)).collect();
    let empty: Name = "".into();
    let mut lines: BTreeMap<(Name, Name), (u64, u64)> = BTreeMap::new();
    let mut unnamed: BTreeMap<Unnamed, u64> = BTreeMap::new();
    for ((stack, other), count) in &counts {
        let stack = stacks.stack(*stack);
        let innermost = stack.first().map(|&place| index(place)).expect("a stack has an address");
        if let Some(reason) = reading.reason(&stacks.places()[innermost]) {
            *unnamed.entry(reason).or_default() += count;
        }
        let of_stack: Vec<(Name, Name)> = match options.by {
            By::Function => stack.iter().map(|&place| frames[index(place)].clone()).collect(),
            By::File => vec![(frames[innermost].1.clone(), empty.clone())],
            _ => vec![(other.clone(), empty.clone())],
        };
        for (at, frame) in of_stack.iter().enumerate() {
            let line = lines.entry(frame.clone()).or_default();
            line.0 += if at == 0 { *count } else { 0 };
            // A function that calls itself is there once.
            line.1 += if of_stack[..at].contains(frame) { 0 } else { *count };
        }
    }
    let mut lines: Vec<Line> = lines
        .into_iter()
        .map(|((name, file), (own, total))| Line {
            name: name.to_string(),
            file: file.to_string(),
            own,
            total,
        })
        .collect();
    lines.sort_by(|one, other| {
        (other.own, other.total, &one.name).cmp(&(one.own, one.total, &other.name))
    });
    Ok(Report {
        samples: counts.values().sum(),
        summed_up,
        off_cpu,
        span,
        lines,
        unnamed: unnamed.into_iter().collect(),
        losses: losses(&mut reading, &options.wanted)?,
        problems: reading.problems,
    })
}

/// Samples counted by their stacks and what else they are counted by.
struct Counted<'a> {
    reading: Reading<'a>,
    stacks: Stacks,
    counts: BTreeMap<(u32, Name), u64>,
    summed_up: u64,
    off_cpu: Option<OffCpuSums>,
    span: Option<(WallTime, WallTime)>,
}

fn count<'a>(
    recording: &'a Recording,
    symbols: &'a mut Symbols,
    options: &ReportOptions,
) -> Result<Counted<'a>, ReadError> {
    let mut reading = Reading::new(recording, symbols, &options.wanted.hosts)?;
    let callers = if options.by == By::Function { Callers::Kept } else { Callers::LeftOut };
    let mut stacks = Stacks::new(callers);
    let mut counts: BTreeMap<(u32, Name), u64> = BTreeMap::new();
    let (mut span, mut off_cpu) = (None, None);
    let (mut seconds, mut summed_up) = (Seconds::default(), 0);
    let mut take = |reading: &mut Reading<'_>, seen: &Seen<'_>, samples: u64| {
        span = wider(span, seen.time);
        let other = name_of(reading, seen, options.by);
        *counts.entry((stacks.number_of(reading, seen), other)).or_default() += samples;
    };
    match options.of {
        Of::Samples => {
            reading.samples(&options.wanted, |reading, seen| {
                seconds.note(seen);
                take(reading, seen, 1);
                Goes::On
            })?;
            if reading.has_summaries() {
                reading.summaries(&options.wanted, |_, seen, samples| {
                    summed_up += if seconds.has(seen) { 0 } else { samples };
                })?;
            }
        }
        Of::Summaries => reading.summaries(&options.wanted, take)?,
        Of::OffCpu => {
            let mut sums = OffCpuSums::default();
            reading.off_cpu(&options.wanted, |reading, seen, of| {
                sums.add(&of);
                take(reading, seen, of.ns);
            })?;
            off_cpu = Some(sums);
        }
    }
    reading.look_up(stacks.places().iter())?;
    Ok(Counted { reading, stacks, counts, summed_up, off_cpu, span: span.map(walls) })
}

/// What a sample is counted by beside its stack.
fn name_of(reading: &mut Reading<'_>, seen: &Seen<'_>, by: By) -> Name {
    match by {
        By::Function | By::File => reading.word(""),
        By::Process => reading.called(seen.time, seen.process()),
        By::Thread => reading.called(seen.time, seen.thread()),
        By::Cpu => {
            let text = format!("{} CPU {}", reading.host_name(seen.host), seen.cpu);
            reading.word(&text)
        }
        By::Host => reading.host_name(seen.host),
        By::Cgroup => reading.cgroup(seen).unwrap_or_else(|| reading.word(NOT_KNOWN)),
        By::Job => reading.job(seen).unwrap_or_else(|| reading.word(NOT_KNOWN)),
    }
}

/// What stands for a name that is not known.
pub const NOT_KNOWN: &str = "[unknown]";

/// The first and the last instant, ns since the epoch.
pub(crate) type Ends = (i64, i64);

/// A span that holds one more instant.
pub(crate) fn wider(span: Option<Ends>, time: i64) -> Option<Ends> {
    Some(span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))))
}

pub(crate) fn walls((first, last): Ends) -> (WallTime, WallTime) {
    (WallTime::from_nanos(first), WallTime::from_nanos(last))
}

/// What was lost of the wanted samples.
pub(crate) fn losses(reading: &mut Reading<'_>, wanted: &Wanted) -> Result<Vec<Loss>, ReadError> {
    let lost = reading.losses(wanted)?;
    Ok(lost.into_iter().map(|(what, count)| Loss { what, count }).collect())
}

/// Compares two reports line by line, those that differ most in their share first.
///
/// # Panics
/// When a line has more samples than its report, which none has that [`report`] made.
pub fn compare(before: &Report, after: &Report) -> Vec<Difference> {
    let mut of_lines: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    for (at, report) in [before, after].into_iter().enumerate() {
        for line in &report.lines {
            of_lines.entry((&line.name, &line.file)).or_default()[at] += line.own;
        }
    }
    let share = |count: u64, of: u64| {
        let ppm = u128::from(count) * 1_000_000 / u128::from(of.max(1));
        u64::try_from(ppm).expect("a share is at most 1")
    };
    let mut differences: Vec<Difference> = of_lines
        .into_iter()
        .filter(|(_, own)| *own != [0, 0])
        .map(|((name, file), own)| Difference {
            name: name.to_owned(),
            file: file.to_owned(),
            own,
            share_ppm: [share(own[0], before.samples), share(own[1], after.samples)],
        })
        .collect();
    differences.sort_by_key(|it| std::cmp::Reverse(it.share_ppm[0].abs_diff(it.share_ppm[1])));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(lines: &[(&str, u64)]) -> Report {
        let line = |(name, own): &(&str, u64)| Line {
            name: (*name).to_owned(),
            file: String::new(),
            own: *own,
            total: *own,
        };
        Report {
            samples: lines.iter().map(|line| line.1).sum(),
            summed_up: 0,
            off_cpu: None,
            span: None,
            lines: lines.iter().map(line).collect(),
            unnamed: vec![],
            losses: vec![],
            problems: vec![],
        }
    }

    #[test]
    fn what_differs_most_in_its_share_comes_first() {
        let before = report_of(&[("a", 50), ("b", 50)]);
        let after = report_of(&[("a", 100), ("b", 60), ("c", 40)]);
        let found = compare(&before, &after);
        let shares: Vec<_> = found.iter().map(|it| (&*it.name, it.own, it.share_ppm)).collect();
        assert_eq!(shares[0], ("b", [50, 60], [500_000, 300_000]));
        assert_eq!(shares[1], ("c", [0, 40], [0, 200_000]));
        assert_eq!(shares[2], ("a", [50, 100], [500_000, 500_000]));
    }
}
