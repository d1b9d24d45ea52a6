//! Octets and CPU time of a real collector that sends what it measures.

use std::collections::BTreeMap;

use meikyo_console::benches::afar::AfarBenchArgs;
use meikyo_console::benches::collect::Speech;
use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_recording::{Recording, Selection};
use meikyo_units::{Nanos, WallTime};

use super::made::Made;
use crate::cluster_text::ClusterText;
use crate::collector::{Collector, CollectorPlan, Sending};
use crate::farm_process::{FarmPlan, FarmProcess};
use crate::live::http::get;
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, Usage, wait_until};
use crate::progress;
use crate::statistics::Observations;
use crate::values::Values;

/// How often each device is asked.
const EVERY: Nanos = Nanos::from_millis(100);

/// What was sent of what was kept.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    pub(super) values: u64,
}

impl Sent {
    pub(super) fn per_value(&self) -> f64 {
        real(self.bytes) / real(self.values.max(1))
    }
}

/// How often it is looked at what a collector's threads have used: what they use after the last time is not counted.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// How long the end may take.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// While somebody watches, a request of the server comes so many looks after the one before.
const LOOKS_A_REQUEST: u64 = 50;

/// What a collector does with its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sends {
    Nothing,
    Unwatched,
    /// Somebody looks at the cluster at the receiver.
    Watched,
}

/// A run of a collector: what it used, the polls it made, and what it sent.
struct Run {
    usage: Usage,
    /// By name, what its threads used.
    threads: BTreeMap<String, Nanos>,
    polls: u64,
    sent: Option<Sent>,
}

impl Run {
    fn us_per_poll(&self, cpu: Nanos) -> f64 {
        cpu.as_secs_f64() * 1e6 / real(self.polls.max(1))
    }

    /// CPU time a poll of the threads that another run did not have.
    fn beyond(&self, other: &Self) -> f64 {
        let own = self.threads.iter().filter(|(name, _)| !other.threads.contains_key(*name));
        self.us_per_poll(own.fold(Nanos::ZERO, |sum, (_, &cpu)| sum + cpu))
    }
}

/// Measures and sends for a while, with agents whose caches are as old as that.
pub(super) fn bytes(args: &AfarBenchArgs, cache: &str) -> Result<Sent, Failure> {
    let run = run(args, cache, Sends::Unwatched)?;
    run.sent.ok_or_else(|| Failure::new("the collector did not say what it sent"))
}

/// What sending costs, µs of CPU time a poll, by pair of runs.
pub(super) struct SenderCost {
    /// Of the threads that only a collector that sends has.
    pub(super) threads: Observations,
    /// The same while somebody watches.
    pub(super) watched: Observations,
    /// What the whole process used beyond one that does not send.
    pub(super) difference: Observations,
    /// Of the thread that polls, which hands its rows over: by rows that are made up.
    pub(super) handing_over: f64,
}

/// What a poll costs more when its rows are sent.
pub(super) fn sender(args: &AfarBenchArgs) -> Result<SenderCost, Failure> {
    let (mut threads, mut watched, mut difference) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..args.pairs {
        progress(&format!("afar: the sender's CPU time, pair {} of {}", pair + 1, args.pairs));
        // Who is first changes with the pair.
        let mut order = [Sends::Unwatched, Sends::Nothing];
        order.rotate_left(usize::from(pair % 2 == 1));
        let mut runs = [run(args, "0s", order[0])?, run(args, "0s", order[1])?];
        runs.rotate_left(usize::from(pair % 2 == 1));
        let [with, without] = &runs;
        threads.push(with.beyond(without));
        difference.push(with.us_per_poll(with.usage.cpu) - without.us_per_poll(without.usage.cpu));
        watched.push(run(args, "0s", Sends::Watched)?.beyond(without));
    }
    let [threads, watched, difference] = [threads, watched, difference].map(Observations::new);
    progress("afar: handing rows over to the sender");
    let handing_over = handing_over(args)?;
    Ok(SenderCost { threads, watched, difference, handing_over })
}

/// What a poll's rows take a thread that hands them over ten times a second, µs of CPU time.
fn handing_over(args: &AfarBenchArgs) -> Result<f64, Failure> {
    let scratch = tempfile::tempdir()?;
    let received = scratch.path().join("received");
    let server = ServerProcess::start_ingesting(&received, Placement::elsewhere(false))?;
    let mut made = Made::start(server.authority(), "bench", args.devices)?;
    let (mut taken, mut intervals) = (Nanos::ZERO, 0_u32);
    let begin = WallTime::now().floor(EVERY);
    while EVERY * u64::from(intervals) < args.span {
        intervals += 1;
        let due = begin + EVERY * u64::from(intervals);
        wait_until(due)?;
        taken += made.timed_interval(due)?;
    }
    made.finish(PATIENCE)?;
    Ok(taken.as_secs_f64() * 1e6 / (f64::from(intervals) * f64::from(args.devices)))
}

fn run(args: &AfarBenchArgs, cache: &str, sends: Sends) -> Result<Run, Failure> {
    let scratch = tempfile::tempdir()?;
    let farm = FarmProcess::start(&FarmPlan {
        agents: args.devices,
        cache,
        step: EVERY,
        truth: &scratch.path().join("truth"),
        speech: Speech::V2c,
        placement: Placement::elsewhere(false),
    })?;
    let devices = farm.devices(0..args.devices);
    let measure = Values::Five.measure();
    let text = ClusterText {
        name: "bench",
        devices: &devices,
        speech: Speech::V2c,
        every: EVERY,
        measure,
    };
    let cluster_file = text.write(scratch.path())?;
    let received = scratch.path().join("received");
    let server = (sends != Sends::Nothing)
        .then(|| ServerProcess::start_ingesting(&received, Placement::elsewhere(false)))
        .transpose()?;
    let (own, spool) = (scratch.path().join("own"), scratch.path().join("spool"));
    let url = server.as_ref().map(|server| server.url.trim_end_matches('/').to_owned());
    let collector = Collector::start_sending(
        &CollectorPlan {
            cluster_file: &cluster_file,
            recording: &own,
            span: args.span,
            placement: Placement::default(),
            realtime: false,
            freshen: false,
        },
        url.as_deref().map(|to| Sending { to, spool: &spool, trust: None }),
    )?;
    let (mut threads, mut looks) = (BTreeMap::new(), 0_u64);
    collector.watch(LOOK_EVERY, |process| {
        threads.extend(process.threads()?);
        looks += 1;
        match &server {
            Some(server) if sends == Sends::Watched && looks % LOOKS_A_REQUEST == 1 => {
                get(server, "api/v1/senders").map(drop)
            }
            _ => Ok(()),
        }
    })?;
    let mut by_name: BTreeMap<String, Nanos> = BTreeMap::new();
    for ((_, name), ran) in threads {
        *by_name.entry(name).or_default() += ran;
    }
    let (usage, said) = collector.finish_with_summary()?;
    drop(server);
    farm.finish()?;
    let polls = said["requests"].as_u64().unwrap_or(0);
    let sent = match sends {
        Sends::Nothing => None,
        _ => Some(compared(&own, &received.join("clusters/bench"), &said)?),
    };
    Ok(Run { usage, threads: by_name, polls, sent })
}

/// What was sent, once the receiver's recording is found to have what the collector's own has.
fn compared(
    own: &std::path::Path,
    received: &std::path::Path,
    said: &serde_json::Value,
) -> Result<Sent, Failure> {
    if said["sent"]["blocks_waiting"] != 0 {
        return Err(Failure::new(format!("not everything was delivered: {said}")));
    }
    let (kept, there) = (values(own)?, values(received)?);
    if kept != there || kept == 0 {
        return Err(Failure::new(format!(
            "the collector kept {kept} values, and the receiver has {there}"
        )));
    }
    let bytes = said["sent"]["bytes_written"].as_u64().unwrap_or(u64::MAX);
    Ok(Sent { bytes, values: kept })
}

/// The values of the paper's five that a recording has.
fn values(dir: &std::path::Path) -> Result<u64, Failure> {
    let recording = Recording::open(dir)?;
    let mut count = 0;
    for measured in Values::Five.list() {
        let table = meikyo_snmp::tables::schema(measured.table);
        let selection = Selection {
            columns: Some(vec![measured.column.to_owned()]),
            ..Selection::all(&table.name)
        };
        for batch in recording.scan(&selection)? {
            let batch = batch?;
            let column = batch.column_by_name(measured.column);
            let there = column.map_or(0, |column| column.len() - column.null_count());
            count += there as u64;
        }
    }
    Ok(count)
}
