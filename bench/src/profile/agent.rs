//! What `meikyo profile agent` uses while every CPU is busy: draining, packing and sending all samples.
//!
//! An agent sends to a `meikyo serve --ingest`. The clock of its CPU time is read once it has gone on for a while and
//! at the end of a span: what it used between them is what going on costs, without its start and its end. Every
//! sample that it counted must be in the recording.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_profile::tables::samples;
use meikyo_recording::{Recording, Selection};
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;
use serde_json::Value;

use crate::collector::product;
use crate::live::http::get_from;
use crate::placement::{Placed, Placement, Usage, spawn, wait_until};
use crate::profile::waking;
use crate::progress;

/// What an agent samples of each CPU, and how often it sends while somebody watches.
const SAMPLES_A_SECOND: u64 = 1_000;
const LIVE_BLOCK: Nanos = Nanos::from_millis(100);

/// How long an agent goes on before its clock is read, and after it is read for the last time.
const START: Nanos = Nanos::from_secs(4);
const END: Nanos = Nanos::SECOND;

/// How long everything may take beside sampling.
pub(super) const PATIENCE: Nanos = Nanos::from_secs(60);

/// How an agent is tried.
#[derive(Debug, Clone, Copy)]
struct Variant {
    name: &'static str,
    options: &'static [&'static str],
    /// Whether somebody watches meanwhile, so that it sends ten times a second.
    is_watched: bool,
    /// What it may take of a core for each that is sampled, %, in a release build.
    reach_percent: f64,
}

const VARIANTS: [Variant; 3] = [
    Variant { name: "plain", options: &[], is_watched: false, reach_percent: 0.02 },
    Variant { name: "watched", options: &[], is_watched: true, reach_percent: 0.04 },
    Variant {
        name: "with callers",
        options: &["--stacks"],
        is_watched: false,
        reach_percent: 0.03,
    },
];

/// What an agent used while it went on.
#[derive(Debug, Serialize)]
pub(super) struct AgentRow {
    variant: &'static str,
    cpus: usize,
    samples: u64,
    lost: u64,
    bytes_per_sample: f64,
    other_bytes: u64,
    cpu_percent_of_a_sampled_core: f64,
    reach_cpu_percent: f64,
    /// The same of a thread that wakes up as often and only sends as many octets.
    waking_cpu_percent: f64,
    /// The same if it also packs as many samples, made beforehand and without callers.
    packing_cpu_percent: f64,
    start_cpu_ms: f64,
    peak_rss_bytes: u64,
}

/// Profiles this host with all CPUs busy, for a span, in each way.
pub(super) fn measured(
    steady: &str,
    directory: &Path,
    span: Nanos,
) -> Result<Vec<AgentRow>, Failure> {
    VARIANTS.iter().map(|variant| one(steady, directory, span, *variant)).collect()
}

fn one(steady: &str, directory: &Path, span: Nanos, variant: Variant) -> Result<AgentRow, Failure> {
    let cpus = std::thread::available_parallelism()?.get();
    let name = variant.name;
    progress(&format!("agent, {name}, {cpus} busy CPUs, {span}"));
    let dir = directory.join(format!("received-{}", name.replace(' ', "-")));
    let (server, url) = server(&dir)?;
    let watcher = variant.is_watched.then(|| Watcher::start(&url, &dir));
    let busy = (0..cpus).map(|_| {
        let mut program = Command::new(steady);
        program.arg("1000000000").stdout(Stdio::null());
        spawn(program, Placement::default())
    });
    let busy: Vec<Placed> = busy.collect::<Result<_, _>>()?;
    let sent = sent(&url, &directory.join("agent"), span, variant.options)?;
    let bytes_per_sample = sent.summary["bytes_per_sample"].as_f64().unwrap_or_default();
    let [waking, packing] = only_waking(variant, cpus, bytes_per_sample, span)?;
    drop((busy, watcher));
    server.terminate()?;
    let (status, _) = server.wait(PATIENCE)?;
    if !status.success() {
        return Err(Failure::new(format!("the server ended with {status}")));
    }
    let count = |name: &str| sent.summary[name].as_u64().unwrap_or_default();
    let (made, there) = (count("samples"), received(&dir)?);
    if made != there {
        return Err(Failure::new(format!("{there} samples of {made} are in the recording")));
    }
    let [(start, started), (end, ended)] = sent.readings;
    let going_on = share(ended.saturating_sub(started), end.since(start));
    Ok(AgentRow {
        variant: name,
        reach_cpu_percent: variant.reach_percent,
        cpus,
        samples: made,
        lost: count("lost"),
        bytes_per_sample,
        other_bytes: count("other_bytes"),
        cpu_percent_of_a_sampled_core: 100.0 * going_on / real(cpus as u64),
        waking_cpu_percent: 100.0 * waking / real(cpus as u64),
        packing_cpu_percent: 100.0 * packing / real(cpus as u64),
        start_cpu_ms: (real(started.get()) - going_on * real(START.get())) / 1e6,
        peak_rss_bytes: sent.usage.peak_rss.get(),
    })
}

fn share(cpu: Nanos, span: Nanos) -> f64 {
    real(cpu.get()) / real(span.get().max(1))
}

/// The share of a core that a thread takes which wakes up as often as the agent and only sends as much, and which
/// also packs as many samples.
fn only_waking(
    variant: Variant,
    cpus: usize,
    bytes: f64,
    span: Nanos,
) -> Result<[f64; 2], Failure> {
    let every = if variant.is_watched { LIVE_BLOCK } else { Nanos::SECOND };
    let samples = SAMPLES_A_SECOND * every.get() / Nanos::SECOND.get();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some kB")]
    let octets = (real(samples * cpus as u64) * bytes) as usize;
    let sent = vec![0; octets];
    let waking = waking::cost(every, span, move |out| out.extend_from_slice(&sent))?;
    let cpus = u32::try_from(cpus).map_err(std::io::Error::other)?;
    let packing = waking::cost(
        every,
        span,
        waking::packing(cpus, samples.cast_signed(), variant.is_watched),
    )?;
    Ok([waking, packing].map(|cost| share(cost, span)))
}

/// The row for people.
pub(super) fn text(row: &AgentRow) -> String {
    let AgentRow { variant, cpu_percent_of_a_sampled_core, reach_cpu_percent, .. } = row;
    let (waking, packing) = (row.waking_cpu_percent, row.packing_cpu_percent);
    format!(
        "agent, {variant}, all CPUs busy, drained, packed and sent: {cpu_percent_of_a_sampled_core:.4} % of a core \
         for each that is sampled (aim {reach_cpu_percent} in a release build); {waking:.4} % for waking up as often \
         and sending as many octets alone, {packing:.4} % for that and packing as many samples\n"
    )
}

/// Somebody who looks at the newest samples once a second, until this is dropped.
struct Watcher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(url: &str, dir: &Path) -> Self {
        let (stop, stopped) = channel::<()>();
        let authority = url.split('/').nth(2).unwrap_or_default().to_owned();
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let path = format!("api/v1/recordings/{name}/heat?from=-1s&watch=true");
        let thread = std::thread::spawn(move || {
            let every = Nanos::SECOND.to_std();
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // Before there are samples there is no map.
                drop(get_from(&authority, &path));
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A server that takes rows, and its address.
pub(super) fn server(dir: &Path) -> Result<(Placed, String), Failure> {
    let mut command = product()?;
    command.args(["serve", "--listen", "127.0.0.1:0", "--ingest"]).arg(dir);
    // Without a directory it serves the `recording` where it is started, if there is one.
    command.current_dir(dir.parent().unwrap_or(dir));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = spawn(command, Placement::default())?;
    let said = server.child().stderr.take().ok_or_else(|| Failure::new("no standard error"))?;
    let mut lines = BufReader::new(said).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let url = first.strip_prefix("serving at ").map(|url| url.trim_end_matches('/').to_owned());
    let url = url.ok_or_else(|| Failure::new(format!("the server does not serve: {first}")))?;
    // What it says later must find a reader.
    std::thread::spawn(move || lines.for_each(drop));
    Ok((server, url))
}

/// What an agent did.
struct Sent {
    summary: Value,
    /// When its clock of CPU time was read, and what it said.
    readings: [(WallTime, Nanos); 2],
    usage: Usage,
}

/// Samples and sends for a span, and a while before and after it.
fn sent(url: &str, summary: &Path, span: Nanos, options: &[&str]) -> Result<Sent, Failure> {
    let whole = START + span + END;
    let mut command = product()?;
    command.args(["profile", "agent", "--budget", "none", "--json", "--server", url]);
    command.args(["--for", &format!("{}s", whole.as_secs_f64())]).args(options);
    command.stdin(Stdio::null()).stdout(File::create(summary)?).stderr(Stdio::null());
    let begin = WallTime::now();
    let agent = spawn(command, Placement::default())?;
    let reading = |at: WallTime| {
        wait_until(at)?;
        Ok::<_, Failure>((WallTime::now(), agent.cpu()?))
    };
    let readings = [reading(begin + START)?, reading(begin + START + span)?];
    let (status, usage) = agent.wait(whole + PATIENCE)?;
    let text = std::fs::read_to_string(summary)?;
    if !status.success() {
        return Err(Failure::new(format!("the agent ended with {status}: {text}")));
    }
    let summary = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("the agent's summary: {error}")))?;
    Ok(Sent { summary, readings, usage })
}

/// Samples that are in a recording.
pub(super) fn received(dir: &Path) -> Result<u64, Failure> {
    let recording = Recording::open(dir)?;
    let mut there = 0;
    for rows in recording.scan(&Selection::all(samples::NAME))? {
        there += rows?.num_rows() as u64;
    }
    Ok(there)
}
