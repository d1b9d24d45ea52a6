//! `meikyo bench fabric`: plans and proofs of VLAN fabrics, from the paper's sizes to 100,000 hosts.
//!
//! Each row is worked out by a process of its own, so that its memory is its own. What is printed of a
//! plan is what the checker found in the configuration, not what the planner meant.

mod search;

use std::process::{Command, Stdio};
use std::time::Instant;

use meikyo_console::benches::fabric::FabricArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::{
    CheckOptions, Pattern, PlanError, PlanOptions, SwitchModel, Topology, Verdict, cable_uniform,
    check, loads, plan,
};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::placement::own_usage;
use crate::progress;

/// What is planned and proven: topology, routing, hosts per switch, model, and whether a plan is to be
/// there: shortest paths on long rings could deadlock and have to be refused.
type Case = (&'static str, &'static str, usize, &'static str, Verdict);

const PAPER: &str = "powerconnect-6248";
const GENERIC: &str = "generic";

const CASES: [Case; 34] = [
    ("tree 8", "auto", 28, PAPER, Verdict::Good),
    ("star 6", "auto", 11, PAPER, Verdict::Good),
    ("complete 8", "auto", 28, PAPER, Verdict::Good),
    ("complete 6", "auto", 11, PAPER, Verdict::Good),
    ("mesh 4x2", "auto", 28, PAPER, Verdict::Good),
    ("torus 4x2", "auto", 28, PAPER, Verdict::Good),
    ("hypercube 3", "auto", 28, PAPER, Verdict::Good),
    ("ring 4", "minimal", 28, PAPER, Verdict::Good),
    ("ring 8", "minimal", 28, PAPER, Verdict::Refused),
    ("ring 8", "acyclic", 28, PAPER, Verdict::Good),
    ("mesh 8x8", "auto", 10, GENERIC, Verdict::Good),
    ("torus 4x4", "auto", 10, GENERIC, Verdict::Good),
    ("torus 4x4x4", "auto", 10, GENERIC, Verdict::Good),
    ("torus 8x8", "dimension-order", 10, GENERIC, Verdict::Refused),
    ("torus 8x8", "acyclic", 10, GENERIC, Verdict::Good),
    ("hypercube 6", "auto", 10, GENERIC, Verdict::Good),
    ("hyperx 8x8", "auto", 10, GENERIC, Verdict::Good),
    ("hyperx 16x16", "auto", 10, GENERIC, Verdict::Good),
    ("leaf-spine 48+16", "auto", 16, GENERIC, Verdict::Good),
    ("random-regular 64 degree 8 seed 1", "minimal", 10, GENERIC, Verdict::Refused),
    ("random-regular 64 degree 8 seed 1", "acyclic", 10, GENERIC, Verdict::Good),
    ("dragonfly 9x4 global 2", "auto", 10, GENERIC, Verdict::Good),
    ("fat-tree 4", "auto", 2, GENERIC, Verdict::Good),
    ("fat-tree 24", "auto", 12, GENERIC, Verdict::Good),
    ("random-regular 256 degree 8 seed 1", "auto", 10, GENERIC, Verdict::Good),
    ("mesh 10x10x10", "auto", 10, GENERIC, Verdict::Good),
    ("torus 10x10x10", "auto", 10, GENERIC, Verdict::Good),
    ("hyperx 10x10x10", "auto", 10, GENERIC, Verdict::Good),
    ("fat-tree 36", "auto", 18, GENERIC, Verdict::Good),
    ("random-regular 1000 degree 8 seed 1", "auto", 10, GENERIC, Verdict::Good),
    ("random-regular 1000 degree 8 seed 1", "auto", 10, "generic-128k", Verdict::Good),
    ("random-regular 4000 degree 8 seed 1", "auto", 25, "generic-256k", Verdict::Good),
    ("mesh 40x100", "auto", 25, "generic-256k", Verdict::Good),
    ("fat-tree 56", "auto", 64, "generic-256k", Verdict::Good),
];

/// One plan and its proof. Without a plan there is nothing to be said of VLANs.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    topology: String,
    hosts: usize,
    switches: usize,
    links: usize,
    routing: String,
    vlans: Option<usize>,
    table_entries_max: Option<u64>,
    link_load_max: Option<u64>,
    /// Pairs on a cable of the busiest trunk by the mean of all cables.
    busiest_by_mean: Option<f64>,
    deadlock_free: Option<bool>,
    verdict: String,
    plan_s: f64,
    check_s: Option<f64>,
    peak_rss_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    rows: Vec<Row>,
}

/// Plans, proves and prints; the answer is whether every verdict is what it has to be.
pub(crate) fn run(args: &FabricArgs) -> Result<Answer, Failure> {
    if args.search {
        return search::run(args.json);
    }
    let machine = Machine::observe();
    let (rows, answer) = match &args.only {
        Some(topology) => {
            let row = row(topology, args)?;
            let answer = if row.verdict == word(Verdict::Good) { Answer::Yes } else { Answer::No };
            (vec![row], answer)
        }
        None => all()?,
    };
    let report = Report { schema: "meikyo.bench.fabric/1", machine, rows };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(answer)
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Refused => "refused",
    }
}

/// Every case in a process of its own.
fn all() -> Result<(Vec<Row>, Answer), Failure> {
    #[derive(Deserialize)]
    struct Child {
        rows: Vec<Row>,
    }
    let mut rows = Vec::new();
    let mut answer = Answer::Yes;
    for (topology, routing, hosts, model, verdict) in CASES {
        progress(&format!("{topology}, {routing}"));
        let output = Command::new(std::env::current_exe()?)
            .args(["fabric", "--json", "--only", topology, "--routing", routing])
            .args(["--hosts-per-switch", &hosts.to_string(), "--model", model])
            .stderr(Stdio::inherit())
            .output()?;
        let child: Child = serde_json::from_slice(&output.stdout).map_err(|_| {
            Failure::new(format!("`{topology}` gave no result ({})", output.status))
        })?;
        for row in child.rows {
            if row.verdict != word(verdict) {
                progress(&format!("wrong: {topology}, {routing}: {}", row.verdict));
                answer = Answer::No;
            }
            rows.push(row);
        }
    }
    Ok((rows, answer))
}

/// Plans and proves one fabric here.
fn row(topology: &Topology, args: &FabricArgs) -> Result<Row, Failure> {
    let model = SwitchModel::named(&args.model).ok_or_else(|| {
        let known: Vec<&str> = SwitchModel::names().collect();
        Failure::new(format!("`{}` is no model", args.model))
            .hint(format!("known are {}", known.join(", ")))
    })?;
    let wiring = cable_uniform(topology, &model, args.hosts_per_switch)?;
    let start = now();
    let routing = args.routing;
    let options = PlanOptions { routing, ..PlanOptions::new(Some(topology.clone())) };
    let plan = plan(&wiring, &options);
    let mut row = Row {
        topology: topology.to_string(),
        hosts: wiring.hosts.len(),
        switches: wiring.switches.len(),
        links: wiring.trunks.iter().map(meikyo_fabric::Trunk::cables).sum(),
        routing: routing.word().to_owned(),
        vlans: None,
        table_entries_max: None,
        link_load_max: None,
        busiest_by_mean: None,
        deadlock_free: None,
        verdict: word(Verdict::Refused).to_owned(),
        plan_s: 0.0,
        check_s: None,
        peak_rss_bytes: 0,
    };
    match plan {
        Err(error) => {
            progress(&error.to_string());
            row.deadlock_free = matches!(error, PlanError::Deadlock { .. }).then_some(false);
            row.plan_s = start.elapsed().as_secs_f64();
        }
        Ok(plan) => {
            let planned = loads(&wiring, &plan, Pattern::AllToAll);
            let configuration = plan.configuration(&wiring);
            row.plan_s = start.elapsed().as_secs_f64();
            let start = now();
            let report = check(&wiring, &configuration, &CheckOptions::INTACT);
            row.check_s = Some(start.elapsed().as_secs_f64());
            let passes = planned.pairs.iter().flatten().sum::<u64>();
            let followed = report.loads.iter().map(|load| load.pairs).sum::<u64>();
            row.routing = plan.routing.word().to_owned();
            row.vlans = Some(report.vlans);
            row.table_entries_max = Some(report.table_entries_max());
            row.link_load_max = Some(report.link_load_max());
            let busiest = planned.busiest(&wiring).map(|busiest| busiest.pairs_per_cable);
            row.busiest_by_mean = busiest.map(|busiest| busiest / planned.mean(&wiring));
            row.deadlock_free = Some(report.deadlock_free);
            if passes == followed {
                row.verdict = word(report.verdict()).to_owned();
            } else {
                progress(&format!("wrong: {passes} passes of trunks planned, {followed} found"));
            }
        }
    }
    row.peak_rss_bytes = own_usage()?.peak_rss.get();
    Ok(row)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures wall time")]
fn now() -> Instant {
    Instant::now()
}

fn text(report: &Report) -> String {
    let mut table = TextTable::new(&[
        "topology", "hosts", "switches", "links", "routing", "VLANs", "entries", "load", "by mean",
        "verdict", "plan s", "check s", "MB",
    ]);
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for row in &report.rows {
        table.row([
            row.topology.clone(),
            row.hosts.to_string(),
            row.switches.to_string(),
            row.links.to_string(),
            row.routing.clone(),
            known(row.vlans.map(|value| value.to_string())),
            known(row.table_entries_max.map(|value| value.to_string())),
            known(row.link_load_max.map(|value| value.to_string())),
            known(row.busiest_by_mean.map(|value| format!("{value:.2}"))),
            row.verdict.clone(),
            format!("{:.4}", row.plan_s),
            known(row.check_s.map(|value| format!("{value:.4}"))),
            (row.peak_rss_bytes / 1_000_000).to_string(),
        ]);
    }
    format!("{table}\n{}", report.machine)
}
