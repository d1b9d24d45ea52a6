//! `meikyo profile agent`: samples of this host to a server, while they are taken.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted, real};
use meikyo_profile::flight::FlightOptions;
use meikyo_profile::governor::percent;
use meikyo_profile::recorder::{Recorder, RecorderOptions};
use meikyo_profile::sampler;
use meikyo_profile::{BLOCK_OCTETS_MAX, STREAM, tables};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::{BLOCK_BYTES_MAX, SpoolLimits};
use meikyo_transport::shell::{StartError, Target, UplinkStatus};
use meikyo_transport::wire::Declared;
use meikyo_units::{Bytes, Nanos, WallTime};
use serde::Serialize;

use super::door::{Door, Reply};
use super::outlet::Outlet;
use super::sampling::{
    OffCpuSummary, SamplingArgs, UnwindingSummary, explained, tell_what_is_missing,
};
use super::teller::{Teller, build_id_in};
use crate::receiver;
use crate::this_host::{ROOTS, host_name, stop_on_signals};

// What finds no room in a block of the transport would be refused there.
const _: () = assert!(BLOCK_OCTETS_MAX <= BLOCK_BYTES_MAX, "blocks of samples can be sent");

/// How often it is looked whether somebody asks for samples that stay here; a signal may go unnoticed for as long, at
/// most: it ends the wait, too.
const LOOK: Nanos = Nanos::from_millis(500);

/// The same where all samples are sent: no more often than there are any, since each look on a busy host costs as much
/// as packing a hundred samples.
const LOOK_SENDING: Nanos = Nanos::SECOND;

/// How often everything that is there is written down anew.
const RETELL_EVERY: Nanos = Nanos::from_secs(3_600);

/// How often the state of the connection is said, at most.
const SAY_EVERY: Nanos = Nanos::from_secs(10);

/// How long the end waits for the server to have everything.
const LAST_PATIENCE: Nanos = Nanos::from_secs(10);

/// Sample everything on this host, and send the samples to a server immediately
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The server that runs `meikyo serve --ingest`, as `https://mon.example:8420`; `http` on loopback only
    #[arg(long, value_name = "URL")]
    server: String,
    /// File with a token of role `ingest`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The trusted certificate authorities, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    tls_roots: PathBuf,
    /// The sender's name, which the token must allow [default: this host's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Directory in which unsent blocks survive a restart [default: they wait in memory]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Limit of unsent blocks; beyond it the oldest are dropped, and the recording reports them
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    spool_max: Bytes,
    /// End after this span, for example 30s
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<Nanos>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Print the summary at the end as JSON
    #[arg(long)]
    json: bool,
    // Last, since it has a heading, which options behind it would stand under, too.
    #[command(flatten)]
    summing: SummingArgs,
}

/// Samples that stay on the host until they are wanted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Summing up")]
struct SummingArgs {
    /// Send a summary of each second of each CPU, and samples only around findings, of --raw-job and when
    /// `meikyo profile grab` asks for them
    #[arg(long)]
    summary: bool,
    /// Also send all samples of the seconds and CPUs on which this job runs (slurm:123, unit:*); can be repeated
    #[arg(long = "raw-job", value_name = "JOB", requires = "summary")]
    raw_jobs: Vec<String>,
    /// How long samples are kept on this host
    #[arg(long, value_name = "SPAN", default_value = "60s", requires = "summary")]
    ring: Nanos,
    /// Limit of what is kept on this host; beyond it the oldest samples are dropped
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "summary")]
    ring_max: Bytes,
}

/// What was sent.
#[derive(Debug, Serialize)]
struct Summary {
    schema: &'static str,
    samples: u64,
    samples_sent: u64,
    samples_forgotten: u64,
    blocks: u64,
    bytes_per_sample: f64,
    other_bytes: u64,
    /// Of all tables.
    rows: u64,
    blocks_acknowledged: u64,
    blocks_waiting: u64,
    blocks_dropped: u64,
    lost: u64,
    throttled: u64,
    rate_changes: u64,
    period_ns: u64,
    interrupt_ns: u64,
    disturbance_percent: f64,
    budget_percent: Option<f64>,
    processes_unreadable: u64,
    unwinding: Option<UnwindingSummary>,
    off_cpu: Option<OffCpuSummary>,
}

/// Samples and sends until the span is over or the person ends it.
pub(super) fn run(args: &AgentArgs) -> Result<Answer, Failure> {
    let stop = stop_on_signals()?;
    let target = {
        let token = receiver::token(args.token_file.as_deref())?;
        receiver::target("--server", &args.server, &args.tls_roots, token)?
    };
    let everything = sampler::Target::Everything;
    let options = args.recorder_options();
    let mut recorder = Recorder::open(&everything, None, &options).map_err(explained)?;
    tell_what_is_missing(recorder.counts().unreadable);
    let door = options.flight.as_ref().map(|_| Door::open(&args.sender_name())).transpose()?;
    let mut outlet = args.outlet(target)?;
    let teller = Teller::start(&options.host)?;
    recorder.begin()?;
    attend(args, &mut recorder, (&teller, door.as_ref()), &stop, &mut outlet)?;
    recorder.finish(&mut |block| outlet.put(block))?;
    let is_told = |status: &UplinkStatus| status.sender.is_welcome || status.trouble.is_some();
    outlet.wait(LAST_PATIENCE, is_told);
    let (offered, rows) = (outlet.offered, outlet.rows);
    // Nobody who cannot be reached is waited for.
    let has_all = |status: &UplinkStatus| {
        let spool = status.sender.spool;
        (status.accepted_blocks >= offered && spool.blocks + spool.gaps == 0)
            || status.trouble.is_some()
    };
    let status = outlet.wait(LAST_PATIENCE, has_all);
    let is_delivered = status.trouble.is_none() && outlet.finish(LAST_PATIENCE);
    let summary = args.summary(&recorder, &status, rows);
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&summary.text())?;
    }
    if !is_delivered {
        let waiting = summary.blocks_waiting;
        output::say(&match &args.spool {
            Some(dir) => format!(
                "meikyo: {waiting} blocks did not reach the server; they are in `{}` and are sent the next time",
                dir.display()
            ),
            None => format!(
                "meikyo: {waiting} blocks are lost, since the server was not reached; --spool DIR keeps them"
            ),
        });
    }
    Ok(if is_delivered && summary.blocks_dropped == 0 { Answer::Yes } else { Answer::No })
}

/// Turns the recorder until the end, and says how the connection stands when that changes.
fn attend(
    args: &AgentArgs,
    recorder: &mut Recorder,
    (teller, door): (&Teller, Option<&Door>),
    stop: &Arc<AtomicBool>,
    outlet: &mut Outlet,
) -> Result<(), Failure> {
    let begin = recorder.now();
    let (mut said, mut say_at) = (None, begin);
    let look = if door.is_some() { LOOK } else { LOOK_SENDING };
    loop {
        let left = args.span.map(|span| (begin + span).saturating_sub(recorder.now()));
        let (most, beside) = outlet.wait_for();
        let wait = [Some(look), left, most].into_iter().flatten().min().unwrap_or(look);
        let is_due = recorder.wait(wait, &beside);
        drop(beside);
        outlet.has_waited();
        if is_due {
            recorder.turn(&mut |block| outlet.put(block))?;
        }
        while let Some(asked) = door.and_then(Door::next) {
            let grabbed = recorder.grab(asked.last, &mut |block| outlet.put(block))?;
            let nothing = || Reply::Refused("it sends all samples as they are taken".into());
            asked.answer(&grabbed.map_or_else(nothing, Reply::from));
        }
        while let Some(ask) = outlet.next_asked() {
            // Of other files than it has mapped itself the host tells nothing.
            if let Some(build_id) = build_id_in(&ask.words)
                && let Some(at) = recorder.file(build_id)
            {
                teller.tell(build_id, at);
            }
        }
        std::iter::from_fn(|| teller.next()).for_each(|block| outlet.put(block));
        outlet.turn();
        let status = outlet.status();
        recorder.set_pace(status.sender.pace);
        let now = recorder.now();
        let state = Some((status.sender.is_welcome, status.trouble.clone()));
        if now >= say_at && state != said {
            output::say(&format!("meikyo: {}", receiver::state(&status, &args.server)));
            (said, say_at) = (state, now + SAY_EVERY);
        }
        if args.span.is_some_and(|span| now >= begin + span) || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

impl AgentArgs {
    fn sender_name(&self) -> String {
        self.name.clone().unwrap_or_else(host_name)
    }

    fn recorder_options(&self) -> RecorderOptions {
        let mut options = self.sampling.options(false, Some(RETELL_EVERY));
        let SummingArgs { summary, raw_jobs, ring, ring_max } = &self.summing;
        options.flight = summary.then(|| FlightOptions {
            span: *ring,
            bytes: *ring_max,
            jobs: raw_jobs.clone(),
        });
        // The job of a sample is known by its control group.
        options.sampling.cgroups |= !raw_jobs.is_empty();
        options
    }

    fn outlet(&self, target: Target) -> Result<Outlet, Failure> {
        let options = SenderOptions {
            name: self.sender_name(),
            cluster: None,
            identity: None,
            boot: WallTime::now().as_nanos().cast_unsigned(),
            machine: receiver::machine()?,
            streams: vec![Declared { stream: STREAM.to_owned(), tables: tables::all() }],
            spool: SpoolLimits { bytes: self.spool_max, ..SpoolLimits::STANDARD },
            catch_up: None,
        };
        Outlet::open(target, options, self.spool.as_deref()).map_err(|error| {
            let is_of_spool = matches!(error, StartError::Spool { .. });
            let failure = Failure::new(error);
            if is_of_spool {
                failure.hint("name a directory that only this agent writes to with `--spool`")
            } else {
                failure
            }
        })
    }

    fn summary(&self, recorder: &Recorder, status: &UplinkStatus, rows: u64) -> Summary {
        let counts = recorder.counts();
        let (forgotten, waiting) = recorder.not_handed_on();
        let spool = status.sender.spool;
        Summary {
            schema: "meikyo.profile.agent/1",
            samples: counts.samples,
            samples_sent: counts.handed_on,
            samples_forgotten: forgotten + waiting,
            blocks: counts.blocks,
            bytes_per_sample: real(counts.sample_bytes) / real(counts.handed_on.max(1)),
            other_bytes: counts.other_bytes,
            rows,
            blocks_acknowledged: status.sender.acknowledged_blocks,
            blocks_waiting: spool.blocks,
            blocks_dropped: spool.dropped_blocks,
            lost: counts.lost,
            throttled: counts.throttled,
            rate_changes: counts.rate_changes,
            period_ns: recorder.period().get(),
            interrupt_ns: recorder.interrupt().get(),
            disturbance_percent: percent(recorder.disturbance_ppm()),
            budget_percent: self.sampling.budget_percent(),
            processes_unreadable: counts.unreadable,
            unwinding: counts.unwinding.map(UnwindingSummary::of),
            off_cpu: counts.off_cpu.map(OffCpuSummary::of),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!(
            "{} sent in {}, {:.2} bytes a sample; the server has {}; {:.2} % of the \
             host\n",
            counted(self.samples_sent, "sample"),
            counted(self.blocks, "block"),
            self.bytes_per_sample,
            counted(self.blocks_acknowledged, "block"),
            self.disturbance_percent,
        );
        for (count, what) in [
            (self.samples_forgotten, "samples were only summed up"),
            (self.lost, "records found no room in a ring"),
            (self.throttled, "times the kernel stopped sampling for a while"),
            (self.blocks_waiting, "blocks did not reach the server"),
            (self.blocks_dropped, "blocks found no room in the spool"),
        ] {
            if count > 0 {
                text += &format!("{count} {what}\n");
            }
        }
        text += &self.unwinding.as_ref().map(|of| of.text(self.samples)).unwrap_or_default();
        text + &self.off_cpu.as_ref().map(OffCpuSummary::text).unwrap_or_default()
    }
}
