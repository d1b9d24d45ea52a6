//! `meikyo profile record`: samples of this host into a recording.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgGroup, Args, ValueEnum};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, real};
use meikyo_profile::governor::percent;
use meikyo_profile::recorder::{Counts, RecordError, Recorder, RecorderOptions, threads_of};
use meikyo_profile::sampler::{Clock, OpenSamplerError, Phase, SamplerOptions, Target};
use meikyo_profile::{HeldProgram, STREAM, kernel_has_names, tables};
use meikyo_recording::{
    IncidentKind, Kind, OpenStreamError, PackedRows, StreamOptions, StreamWriter,
};
use meikyo_units::Nanos;
use serde::Serialize;

use crate::verbs::measure::{host_name, stop_on_signals};

/// How long the end of the span and of processes is not looked at, at most; the end of the program that
/// was started and other signals end the wait. Who wakes more often costs more than sampling itself.
const LOOK: Nanos = Nanos::from_millis(500);

/// Sample a program, processes or everything on this host into a recording
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["all", "pid", "cgroup", "command"])))]
pub(crate) struct RecordArgs {
    /// Everything that runs on this host
    #[arg(long)]
    all: bool,
    /// The process with that number and what it begins; can be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// The threads of a control group of version 2 and of those below it; CPUs are only interrupted
    /// while one of them runs. Can be repeated
    #[arg(long, value_name = "DIR")]
    cgroup: Vec<PathBuf>,
    /// The program that is started, with its arguments; what it begins is sampled too
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// The recording that is written; an earlier one is continued
    #[arg(long, value_name = "DIR", default_value = "recording", env = "MEIKYO_RECORDING")]
    out: PathBuf,
    /// End after this span, for example 30s
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<Nanos>,
    /// Samples per second on each busy CPU
    #[arg(long, value_name = "COUNT", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    hz: u64,
    /// Keep the callers too, found by frame pointers
    #[arg(long)]
    stacks: bool,
    /// Keep the control group of each sample
    #[arg(long)]
    cgroups: bool,
    /// What drives the samples
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = ClockChoice::CpuClock)]
    clock: ClockChoice,
    /// Timing of samples across CPUs
    #[arg(long, value_enum, value_name = "PHASE", default_value_t = PhaseChoice::Staggered)]
    phase: PhaseChoice,
    /// The share of the host that sampling may take, above which it samples less often; `none` for any
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = budget)]
    budget: Budget,
    /// Round times down to whole microseconds, which saves more than an octet a sample
    #[arg(long)]
    microseconds: bool,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockChoice {
    /// A timer of each CPU, which every machine has
    CpuClock,
    /// Cycles of the processor, where it counts them for this system
    Cycles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PhaseChoice {
    /// Spread over the span between two samples
    Staggered,
    /// All at the same time
    Aligned,
}

/// A share of the host in millionths; none limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Budget(Option<u64>);

fn budget(text: &str) -> Result<Budget, String> {
    if text == "none" {
        return Ok(Budget(None));
    }
    let refused = || format!("`{text}` is no share: write for example `0.5%` or `none`");
    let number = text.strip_suffix('%').ok_or_else(refused)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if part.len() > 4 || part.is_empty() || !part.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err(refused());
    }
    let whole: u64 = whole.parse().map_err(|_| refused())?;
    let part: u64 = format!("{part:0<4}").parse().map_err(|_| refused())?;
    let ppm = whole.saturating_mul(10_000).saturating_add(part);
    if ppm == 0 || ppm > 1_000_000 { Err(refused()) } else { Ok(Budget(Some(ppm))) }
}

/// What a profile came to.
#[derive(Debug, Serialize)]
struct Summary {
    schema: &'static str,
    recording: PathBuf,
    samples: u64,
    blocks: u64,
    bytes_per_sample: f64,
    other_bytes: u64,
    lost: u64,
    stacks_cut: u64,
    throttled: u64,
    rate_changes: u64,
    period_ns: u64,
    interrupt_ns: u64,
    disturbance_percent: f64,
    budget_percent: Option<f64>,
    interrupts_idle: bool,
    processes_unreadable: u64,
    rows_dropped: u64,
}

/// Records until the program or the span is over, or the person ends it.
pub(super) fn run(args: &RecordArgs) -> Result<Answer, Failure> {
    let stop = stop_on_signals()?;
    // Heard, it ends a wait; what it says is asked of the system.
    signal_hook::flag::register(signal_hook::consts::SIGCHLD, Arc::default())?;
    // Nothing is started that could not be written down.
    let mut writer = writer(&args.out)?;
    let mut program = match args.command.first() {
        Some(_) => Some(HeldProgram::start(&args.command)?),
        None => None,
    };
    let (target, pids) = args.target(program.as_ref());
    let mut recorder =
        Recorder::open(&target, pids.as_deref(), &args.options()).map_err(explained)?;
    let mut unknown = None;
    let mut sink = |block: PackedRows| {
        if let Err(error) = writer.packed(block) {
            unknown = Some(error);
        }
    };
    recorder.begin()?;
    tell_what_is_missing(recorder.counts().unreadable);
    if let Some(program) = &mut program {
        program.release()?;
    }
    let status = attend(args, &mut recorder, program.as_mut(), &stop, &mut sink)?;
    recorder.finish(&mut sink)?;
    assert!(unknown.is_none(), "the stream has every table of a profile");
    for incident in writer.take_incidents() {
        if incident.kind != IncidentKind::Resumed {
            output::say(&format!("meikyo: {}", incident.text));
        }
    }
    let rows_dropped = writer.close()?.counters.rows_dropped;
    let summary = args.summary(&recorder, rows_dropped);
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&summary.text())?;
    }
    if summary.samples == 0 {
        output::say("meikyo: nothing was sampled: nothing of it ran for as long as a sample takes");
    }
    Ok(match status {
        Some(code) if code != 0 => Answer::Exit(code),
        _ if rows_dropped > 0 => Answer::No,
        // Whoever has a program profiled gets its own answer.
        None if summary.samples == 0 => Answer::No,
        _ => Answer::Yes,
    })
}

/// Turns the recorder until the end; how the program ended, if one was started and has.
fn attend(
    args: &RecordArgs,
    recorder: &mut Recorder,
    mut program: Option<&mut HeldProgram>,
    stop: &Arc<AtomicBool>,
    sink: &mut impl FnMut(PackedRows),
) -> Result<Option<u8>, Failure> {
    let begin = recorder.now();
    loop {
        let left = args.span.map(|span| (begin + span).saturating_sub(recorder.now()));
        let is_due = recorder.wait(left.map_or(LOOK, |left| left.min(LOOK)));
        if is_due {
            recorder.turn(sink)?;
        }
        if let Some(program) = program.as_deref_mut()
            && let Some(code) = program.ended()?
        {
            return Ok(Some(code));
        }
        let is_over = args.span.is_some_and(|span| recorder.now() >= begin + span);
        let is_gone =
            !args.pid.is_empty() && args.pid.iter().all(|&pid| threads_of(pid).is_empty());
        if is_over || is_gone || stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
}

impl RecordArgs {
    fn options(&self) -> RecorderOptions {
        RecorderOptions {
            host: host_name(),
            sampling: SamplerOptions {
                clock: match self.clock {
                    ClockChoice::CpuClock => Clock::CpuClock,
                    ClockChoice::Cycles => Clock::Cycles,
                },
                period: Nanos::new(1_000_000_000 / self.hz),
                phase: match self.phase {
                    PhaseChoice::Staggered => Phase::Staggered,
                    PhaseChoice::Aligned => Phase::Aligned,
                },
                stacks: self.stacks,
                cgroups: self.cgroups,
                on_exec: !self.command.is_empty(),
            },
            whole_microseconds: self.microseconds,
            budget_ppm: self.budget.0,
        }
    }

    /// Whose samples are taken, and the processes that are looked at first.
    fn target(&self, program: Option<&HeldProgram>) -> (Target, Option<Vec<u32>>) {
        let mut pids = program.map_or_else(|| self.pid.clone(), |program| vec![program.pid()]);
        pids.sort_unstable();
        pids.dedup();
        if !pids.is_empty() {
            (Target::Processes(pids.clone()), Some(pids))
        } else if self.all {
            (Target::Everything, None)
        } else {
            (Target::Cgroups(self.cgroup.clone()), None)
        }
    }

    fn summary(&self, recorder: &Recorder, rows_dropped: u64) -> Summary {
        let Counts { samples, blocks, sample_bytes, other_bytes, .. } = recorder.counts();
        let counts = recorder.counts();
        Summary {
            schema: "meikyo.profile.record/1",
            recording: self.out.clone(),
            samples,
            blocks,
            bytes_per_sample: real(sample_bytes) / real(samples.max(1)),
            other_bytes,
            lost: counts.lost,
            stacks_cut: counts.cut,
            throttled: counts.throttled,
            rate_changes: counts.rate_changes,
            period_ns: recorder.period().get(),
            interrupt_ns: recorder.interrupt().get(),
            disturbance_percent: percent(recorder.disturbance_ppm()),
            budget_percent: self.budget.0.map(percent),
            interrupts_idle: recorder.interrupts_idle(),
            processes_unreadable: counts.unreadable,
            rows_dropped,
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let hz = 1e9 / real(self.period_ns.max(1));
        let mut text = format!(
            "{} samples in {} blocks, {:.2} bytes a sample; {hz:.0} Hz a CPU, a sample takes {:.1} us, \
             {:.2} % of the host\n",
            self.samples,
            self.blocks,
            self.bytes_per_sample,
            real(self.interrupt_ns) / 1_000.0,
            self.disturbance_percent,
        );
        for (count, what) in [
            (self.lost, "records found no room in a ring"),
            (self.stacks_cut, "stacks were cut at 127 addresses"),
            (self.throttled, "times the kernel stopped sampling for a while"),
            (self.rows_dropped, "rows were dropped by the writer"),
        ] {
            if count > 0 {
                text += &format!("{count} {what}\n");
            }
        }
        text
    }
}

fn writer(out: &Path) -> Result<StreamWriter, Failure> {
    // Blocks are smaller than Parquet files of the same rows: they stay as they are.
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    StreamWriter::open(out, Kind::Measured, STREAM, tables::all(), options).map_err(|error| {
        let hint = match &error {
            OpenStreamError::Locked { .. } => {
                "another `meikyo profile record` writes there; end it, or name another `--out`"
            }
            _ => "name another directory with `--out`",
        };
        Failure::new(error).hint(hint)
    })
}

/// Says what will stay without a name, before a program runs; `unreadable` processes hide what they have
/// mapped.
fn tell_what_is_missing(unreadable: u64) {
    if unreadable > 0 {
        let processes = if unreadable == 1 { "process" } else { "processes" };
        output::say(&format!(
            "meikyo: {unreadable} running {processes}: functions stay unnamed, since reading what is mapped \
             there needs CAP_SYS_PTRACE"
        ));
    }
    if !kernel_has_names() {
        output::say(
            "meikyo: the kernel: functions stay unnamed, since reading its addresses needs CAP_SYSLOG",
        );
    }
}

/// A failure with what to do about it.
fn explained(error: RecordError) -> Failure {
    let hint = match &error {
        RecordError::Open(OpenSamplerError::Permission(_)) => {
            "run it as root, or once: setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep PATH_OF_MEIKYO"
        }
        RecordError::Open(OpenSamplerError::NoCycles(_)) => "sample by time: `--clock cpu-clock`",
        RecordError::Open(OpenSamplerError::Cgroup { .. }) => {
            "name a directory below the place where cgroup2 is mounted: see `grep cgroup2 /proc/mounts`"
        }
        RecordError::Open(OpenSamplerError::Processes { .. }) => {
            "`ps -e` lists the processes that there are"
        }
        RecordError::Open(OpenSamplerError::Descriptors { .. }) => {
            "raise the limit (`ulimit -n 1048576`, as root), or sample the host: `--all`"
        }
        RecordError::Open(OpenSamplerError::Ring { .. }) => {
            "raise the limit: sysctl kernel.perf_event_mlock_kb=4096"
        }
        _ => return Failure::new(error),
    };
    Failure::new(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::{Budget, budget};

    #[test]
    fn budgets_are_shares_of_the_host() {
        assert_eq!(budget("0.5%"), Ok(Budget(Some(5_000))));
        assert_eq!(budget("2%"), Ok(Budget(Some(20_000))));
        assert_eq!(budget("0.0001%"), Ok(Budget(Some(1))));
        assert_eq!(budget("none"), Ok(Budget(None)));
        for wrong in ["", "0.5", "0%", "101%", "1.00001%", "-1%", "1.%", "x%"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }
}
