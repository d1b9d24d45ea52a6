//! Figures 9 and 10: how long the parallel schedulers take.

use std::num::NonZeroU32;
use std::time::Instant;

use meikyo_console::benches::metadata::MetadataArgs;
use meikyo_console::failure::Failure;
use meikyo_console::output::TextTable;
use meikyo_console::ranks;
use meikyo_models::Report;
use meikyo_models::metadata_service::Metadata;
use meikyo_sim::{Options, Scheduler, Unobserved};
use serde_json::{Value, json};

use super::picture::{Axis, Line, Lines};
use crate::placement::own_usage;
use crate::progress;

/// Servers in the paper's figures 9 and 10.
const SERVERS: u16 = 128;
/// LPs that each switch is divided into.
const SWITCH_LPS: u32 = 64;

/// A run of one scheduler.
#[derive(Debug, Clone)]
pub(super) struct Run {
    figure: u8,
    scheduler: &'static str,
    threads: usize,
    ranks: usize,
    servers: u16,
    clients: u32,
    wall_s: f64,
    cpu_s: f64,
    events: u64,
    rollbacks: u64,
    /// Whether it ended as the sequential run did.
    pub(super) same_result: bool,
    /// The sequential run's time over this one's.
    speedup: f64,
}

impl Run {
    pub(super) fn row(&self) -> Value {
        json!({
            "figure": self.figure,
            "scheduler": self.scheduler,
            "threads": self.threads,
            "ranks": self.ranks,
            "servers": self.servers,
            "clients": self.clients,
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "events": self.events,
            "rollbacks": self.rollbacks,
            "speedup": self.speedup,
            "right": self.same_result,
        })
    }
}

/// Runs each number of clients sequentially and with 1 thread and more, or over the ranks that `mpirun`
/// started. The first rank runs them sequentially and has the runs, the others have none.
///
/// # Errors
/// If a run ends with a fault.
pub(super) fn run(args: &MetadataArgs, figure: u8) -> Result<Vec<Run>, Failure> {
    let (parallel, name) = match figure {
        9 => (Scheduler::Optimistic, "optimistic"),
        _ => (Scheduler::Conservative, "conservative"),
    };
    let servers = args.servers.first().copied().unwrap_or(SERVERS);
    let clients: &[u32] = if args.clients.is_empty() { &[1024, 2048, 4096] } else { &args.clients };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = ranks::joined();
    let threads_max = if ranks.count() > 1 { 1 } else { cores };
    let threads: Vec<usize> = std::iter::successors(Some(1), |threads| Some(threads * 2))
        .take_while(|t| *t <= threads_max)
        .collect();
    let mut runs = Vec::new();
    for clients in clients.iter().copied() {
        progress(&format!("figure {figure}: {clients} clients"));
        let mut metadata = Metadata::paper(servers, clients, args.parallel_creates);
        metadata.switch_lps = NonZeroU32::new(SWITCH_LPS).expect("64 is not 0");
        let alone = Options::new(Scheduler::Sequential, 1);
        let truth = ranks.is_first().then(|| timed(&metadata, &alone)).transpose()?;
        let run = |timed: &Timed, truth: &Timed, scheduler, threads| Run {
            figure,
            scheduler,
            threads,
            ranks: timed.report.effort.ranks,
            servers,
            clients,
            wall_s: timed.wall_s,
            cpu_s: timed.cpu_s,
            events: timed.report.events,
            rollbacks: timed.report.effort.rollbacks,
            same_result: timed.report.result_digest == truth.report.result_digest
                && timed.report.figures == truth.report.figures,
            speedup: truth.wall_s / timed.wall_s,
        };
        runs.extend(truth.as_ref().map(|truth| run(truth, truth, "sequential", 1)));
        for threads in threads.iter().copied() {
            let timed = timed(&metadata, &Options { ranks, ..Options::new(parallel, threads) })?;
            runs.extend(truth.as_ref().map(|truth| run(&timed, truth, name, threads)));
        }
    }
    Ok(runs)
}

/// A run and what it took.
#[derive(Debug)]
struct Timed {
    report: Report,
    wall_s: f64,
    cpu_s: f64,
}

fn timed(metadata: &Metadata, options: &Options) -> Result<Timed, Failure> {
    let before = own_usage()?.cpu;
    let start = now();
    let report = metadata.run(options, &mut Unobserved)?;
    let wall_s = start.elapsed().as_secs_f64();
    let cpu_s = own_usage()?.cpu.saturating_sub(before).as_secs_f64();
    Ok(Timed { report, wall_s, cpu_s })
}

/// The runs as a table.
pub(super) fn table(runs: &[Run]) -> String {
    let mut table = TextTable::new(&[
        "clients",
        "scheduler",
        "threads",
        "ranks",
        "wall_s",
        "cpu_s",
        "speed-up",
        "rollbacks",
        "events",
        "right",
    ]);
    for run in runs {
        table.row([
            run.clients.to_string(),
            run.scheduler.to_owned(),
            run.threads.to_string(),
            run.ranks.to_string(),
            format!("{:.3}", run.wall_s),
            format!("{:.3}", run.cpu_s),
            format!("{:.2}", run.speedup),
            run.rollbacks.to_string(),
            run.events.to_string(),
            if run.same_result { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    table.to_string()
}

/// The runs as the lines of a picture.
pub(super) fn lines(runs: &[Run]) -> Lines {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs.iter().filter(|run| run.scheduler != "sequential") {
        let name = format!("{} clients", run.clients);
        let threads = u32::try_from(run.threads * run.ranks).expect("fewer than 2^32 threads");
        let at = (f64::from(threads), run.wall_s);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(at),
            None => lines.push(Line { name, points: vec![at] }),
        }
    }
    Lines {
        x: Axis { name: "threads or ranks".to_owned() },
        y: Axis { name: "seconds".to_owned() },
        lines,
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures the time that passes")]
fn now() -> Instant {
    Instant::now()
}
