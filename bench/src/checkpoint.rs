//! `meikyo bench checkpoint`: groups of emulated hosts write and rebuild checkpoints over shaped links.
//!
//! Hosts are network namespaces of this process: a thread that entered one makes its sockets there, and so
//! do the threads that it starts. TLS, checksums and writing are on. What lies in the directories
//! afterwards is compared with the images and with parity computed from them.

mod daemons;
mod group;
mod line;
mod loss;
mod stop;

use meikyo_checkpoint::layout::{Layout, Scheme};
use meikyo_console::benches::checkpoint::CheckpointBenchArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, bytes_text};
use meikyo_units::BitsPerSecond;
use serde::Serialize;

use crate::machine::Machine;
use crate::progress;
use group::{Case, Figures};
use loss::Loss;
use stop::{Saved, Stop};

/// Least shares of the line, as issue and paper want them.
const REACH_ENCODE: f64 = 0.95;
const REACH_REBUILD: f64 = 0.90;
const REACH_CODE: f64 = 0.80;
/// Hosts of which ring parity has to reach its share; two cores carry larger groups at the share of codes.
const REACH_HOSTS_MAX: usize = 6;
/// Most that may be sent for what changed, with one parity block; with m of them m times as much.
const REACH_DELTA: f64 = 1.05;
/// Most that model and measurement may differ.
const REACH_MODEL: f64 = 0.10;

/// What the paper measured: 400 MB a host, 8 hosts, two gigabit links each.
#[derive(Debug, Serialize)]
struct Paper {
    hosts: usize,
    bytes_per_host: u64,
    links: usize,
    measured_s: f64,
    encode_bytes_per_s_per_host: f64,
    line_share: f64,
}

const PAPER: Paper = Paper {
    hosts: 8,
    bytes_per_host: 400_000_000,
    links: 2,
    measured_s: 100.0,
    encode_bytes_per_s_per_host: 5e6,
    line_share: 0.02,
};

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    groups: Vec<Row>,
    stop: Option<Stop>,
    loss: Option<Loss>,
    paper: Paper,
}

/// One group's figures, with what they have to reach.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    figures: Figures,
    encode_line_share: f64,
    /// What the scheme sends, at the line's rate, over what was measured.
    bound_share: f64,
    rebuild_line_share: f64,
    model_error: f64,
    delta_sent_per_dirty: f64,
    reached: bool,
}

/// Runs the bench; the answer is whether every group reached what it has to.
pub(crate) fn run(args: &CheckpointBenchArgs) -> Result<Answer, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new("hosts are network namespaces, which only root can make")
            .hint("run `meikyo bench checkpoint` as root"));
    }
    let machine = Machine::observe();
    let mut groups = Vec::new();
    for case in cases(args)? {
        progress(&format!("{} on {} hosts, {} a link", case.scheme, case.hosts, case.rate));
        groups.push(row(group::measure(&case)?));
    }
    let (mut stop, mut loss) = (None, None);
    if args.hosts.is_none() {
        progress(&format!("the stop of a program with {}", args.stop_bytes));
        stop = Some(stop::measure(args.stop_bytes, &args.directory, args.rounds)?);
        progress(&format!("the loss of a host with {}", args.bytes));
        loss = Some(loss::measure(args.bytes, &args.directory, args.rounds)?);
    }
    let reached = groups.iter().all(|row| row.reached)
        && stop.as_ref().is_none_or(|stop| stop.reached)
        && loss.as_ref().is_none_or(|loss| loss.reached);
    if args.json {
        let schema = "meikyo.bench.checkpoint/1";
        output::print_json(&Report { schema, machine, groups, stop, loss, paper: PAPER })?;
    } else {
        let behind = stop.as_ref().map(stop_text).into_iter();
        let behind = behind.chain(loss.as_ref().map(loss::text)).collect::<String>();
        output::print(&text(&machine, &groups, &behind))?;
    }
    Ok(if reached { Answer::Yes } else { Answer::No })
}

fn cases(args: &CheckpointBenchArgs) -> Result<Vec<Case<'_>>, Failure> {
    let case = |hosts: usize, scheme, rate, links| Case {
        hosts,
        scheme,
        rate,
        links,
        bytes: args.bytes,
        disk: args.disk,
        directory: &args.directory,
        rounds: args.rounds,
    };
    if let Some(hosts) = args.hosts {
        let scheme: Scheme = args.scheme.parse()?;
        Layout::new(scheme, hosts.into())?;
        return Ok(vec![case(hosts.into(), scheme, args.rate, args.links.into())]);
    }
    let mbit = |rate: u64| BitsPerSecond::new(rate * 1_000_000);
    Ok(vec![
        case(3, Scheme::Ring, mbit(1_000), 1),
        case(4, Scheme::Ring, mbit(1_000), 1),
        case(5, Scheme::Ring, mbit(500), 1),
        case(6, Scheme::Ring, mbit(500), 1),
        case(4, Scheme::Ring, mbit(250), 1),
        case(8, Scheme::Ring, mbit(500), 1),
        case(4, Scheme::Ring, mbit(250), 2),
        case(8, Scheme::Ring, mbit(250), 2),
        case(4, Scheme::ReedSolomon(2), mbit(500), 1),
        case(6, Scheme::ReedSolomon(2), mbit(500), 1),
    ])
}

fn row(figures: Figures) -> Row {
    let encode_line_share = figures.encode_bytes_per_s_per_host / figures.line_bytes_per_s;
    let bound_s = output::real(figures.sent_bytes) / figures.line_bytes_per_s;
    let bound_share = bound_s / figures.measured_s;
    let rebuild_line_share = figures.rebuild_bytes_per_s / figures.line_bytes_per_s;
    let model_error = (figures.model_s - figures.measured_s).abs() / figures.measured_s;
    let is_asked = figures.hosts <= REACH_HOSTS_MAX && !figures.scheme.starts_with("rs");
    let least = if is_asked { REACH_ENCODE } else { REACH_CODE };
    let delta_sent_per_dirty =
        output::real(figures.delta_sent_bytes) / output::real(figures.dirty_bytes.max(1));
    let parity = figures.scheme.strip_prefix("rs").and_then(|number| number.parse().ok());
    let reached = bound_share >= least
        && rebuild_line_share >= REACH_REBUILD
        && model_error <= REACH_MODEL
        && delta_sent_per_dirty <= REACH_DELTA * parity.unwrap_or(1.0);
    Row {
        figures,
        encode_line_share,
        bound_share,
        rebuild_line_share,
        model_error,
        delta_sent_per_dirty,
        reached,
    }
}

/// The stop of a program, as a table.
fn stop_text(stop: &Stop) -> String {
    let mut table =
        TextTable::new(&["stop", "stop ms", "at most", "call ms", "copied ahead", "in the stop"]);
    let mut row = |name: &str, saved: &Saved, reach: f64| {
        table.row([
            name.to_owned(),
            format!("{:.3}", saved.stop_ms),
            format!("{reach:.3}"),
            format!("{:.1}", saved.call_ms),
            bytes_text(saved.ahead_bytes),
            bytes_text(saved.residue_bytes),
        ]);
    };
    row("10 % dirty", &stop.dirty, stop.reach_stop_ms);
    row("half of it cooled", &stop.cooled, stop.reach_cooled_stop_ms);
    let kept = if stop.copies_ahead {
        if stop.reached { "reached" } else { "not reached" }
    } else {
        "not judged: this kernel does not tell what is written (Linux 6.7 does)"
    };
    format!("A program with {}; {kept}\n{table}\n", bytes_text(stop.bytes))
}

fn text(machine: &Machine, groups: &[Row], behind: &str) -> String {
    let mut table = TextTable::new(&[
        "scheme",
        "hosts",
        "links",
        "link",
        "line MB/s",
        "encode MB/s",
        "of bound",
        "rebuild MB/s",
        "of line",
        "CPU s/GB",
        "sent/dirty",
        "measured s",
        "model s",
        "reached",
    ]);
    let mega = |rate: f64| format!("{:.1}", rate / 1e6);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for row in groups {
        let figures = &row.figures;
        table.row([
            figures.scheme.clone(),
            figures.hosts.to_string(),
            figures.links.to_string(),
            figures.link.to_string(),
            mega(figures.line_bytes_per_s),
            mega(figures.encode_bytes_per_s_per_host),
            percent(row.bound_share),
            mega(figures.rebuild_bytes_per_s),
            percent(row.rebuild_line_share),
            format!("{:.2}", figures.cpu_s_per_gb),
            format!("{:.3}", row.delta_sent_per_dirty),
            format!("{:.3}", figures.measured_s),
            format!("{:.3}", figures.model_s),
            if row.reached { "yes" } else { "no" }.to_owned(),
        ]);
    }
    format!(
        "{machine}\n\n{table}\n{behind}The SCore paper: {} hosts, {} each, {} links: {:.0} s, {:.0} MB/s, \
         {:.0} % of the line.\n",
        PAPER.hosts,
        bytes_text(PAPER.bytes_per_host),
        PAPER.links,
        PAPER.measured_s,
        PAPER.encode_bytes_per_s_per_host / 1e6,
        PAPER.line_share * 100.0
    )
}
