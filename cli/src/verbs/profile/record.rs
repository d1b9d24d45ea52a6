//! `meikyo profile record`: samples of this host into a recording.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgGroup, Args};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted, real};
use meikyo_profile::governor::percent;
use meikyo_profile::recorder::{Counts, Recorder, threads_of};
use meikyo_profile::sampler::Target;
use meikyo_profile::{HeldProgram, STREAM, tables};
use meikyo_recording::{
    IncidentKind, Kind, OpenStreamError, PackedRows, StreamOptions, StreamWriter,
};
use meikyo_units::Nanos;
use serde::Serialize;

use super::sampling::{
    OffCpuSummary, SamplingArgs, UnwindingSummary, explained, tell_what_is_missing,
};
use crate::this_host::stop_on_signals;

/// How long the end of the span and of processes is not looked at, at most; the end of the program that
/// was started and other signals end the wait. Who wakes more often costs more than sampling itself.
const LOOK: Nanos = Nanos::from_millis(500);

/// Sample a program, processes or everything on this host into a recording
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["all", "pid", "cgroup", "command"])))]
pub(crate) struct RecordArgs {
    /// Sample everything on this host
    #[arg(long)]
    all: bool,
    /// Sample the process with this number and its children. Can be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Sample the threads of a control group (version 2) and of those below it; CPUs are only
    /// interrupted while one of them runs. Can be repeated
    #[arg(long, value_name = "DIR", conflicts_with = "off_cpu")]
    cgroup: Vec<PathBuf>,
    /// The program to start and sample, with its arguments; its children are sampled too
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// The recording to write; an existing one is continued
    #[arg(long, value_name = "RECORDING", default_value = "recording", env = "MEIKYO_RECORDING")]
    out: PathBuf,
    /// End after this span, for example 30s
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<Nanos>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
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
    unwinding: Option<UnwindingSummary>,
    off_cpu: Option<OffCpuSummary>,
}

/// Records until the program or the span is over, or the person ends it.
pub(super) fn run(args: &RecordArgs) -> Result<Answer, Failure> {
    let stop = stop_on_signals()?;
    // Heard, it ends a wait; what it says is asked of the system.
    signal_hook::flag::register(signal_hook::consts::SIGCHLD, Arc::default())?;
    // No program is started that could not be written down.
    let (early, mut program) = if args.command.is_empty() {
        (None, None)
    } else {
        (Some(writer(&args.out)?), Some(HeldProgram::start(&args.command)?))
    };
    let (target, pids) = args.target(program.as_ref());
    let mut recorder = Recorder::open(
        &target,
        pids.as_deref(),
        &args.sampling.options(!args.command.is_empty(), None),
    )
    .map_err(explained)?;
    let mut writer = early.map_or_else(|| writer(&args.out), Ok)?;
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
        output::say(
            "meikyo: nothing was sampled: it did not run for as long as the time between two samples",
        );
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
        let is_due = recorder.wait(left.map_or(LOOK, |left| left.min(LOOK)), &[]);
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
            budget_percent: self.sampling.budget_percent(),
            interrupts_idle: recorder.interrupts_idle(),
            processes_unreadable: counts.unreadable,
            rows_dropped,
            unwinding: counts.unwinding.map(UnwindingSummary::of),
            off_cpu: counts.off_cpu.map(OffCpuSummary::of),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let hz = 1e9 / real(self.period_ns.max(1));
        let mut text = format!(
            "{} in {}, {:.2} bytes a sample; {hz:.0} Hz a CPU, a sample takes {:.1} us, \
             {:.2} % of the host\n",
            counted(self.samples, "sample"),
            counted(self.blocks, "block"),
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
        text += &self.unwinding.as_ref().map(|of| of.text(self.samples)).unwrap_or_default();
        text + &self.off_cpu.as_ref().map(OffCpuSummary::text).unwrap_or_default()
    }
}

/// The writer of a recording of profiles.
pub(super) fn writer(out: &Path) -> Result<StreamWriter, Failure> {
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
