//! `meikyo bench fabric --search`: whether plans are near what long searches find.
//!
//! A plan is made in about a second, whatever there is to choose from. Here each is compared with the best
//! of 100 searches, each from a beginning of its own and until nothing is gained any more. Both choose
//! among the same trees, so that the comparison says what the bound on the planner's work costs.

use meikyo_cluster::Routing;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::{
    CheckOptions, Pattern, PlanOptions, SwitchModel, Topology, Verdict, cable_uniform, check,
    loads, plan, searched,
};
use serde::Serialize;

use super::now;
use crate::machine::Machine;
use crate::progress;

/// Searches for each fabric.
const SEEDS: u64 = 100;
/// A plan may leave so many times more on its busiest cable than the best search.
const RATIO_MAX: f64 = 1.1;

/// Topology, hosts on each switch, and whether switches pause each other.
const CASES: [(&str, usize, bool); 10] = [
    ("torus 5x3", 2, true),
    ("torus 6x5", 1, true),
    ("dragonfly 5x4", 2, true),
    ("dragonfly 5x4", 2, false),
    ("random-regular 10 degree 3 seed 1", 3, true),
    ("random-regular 10 degree 3 seed 1", 3, false),
    ("random-regular 20 degree 4 seed 1", 2, true),
    ("random-regular 20 degree 4 seed 1", 2, false),
    ("random-regular 20 degree 4 seed 3", 2, true),
    ("random-regular 20 degree 4 seed 3", 2, false),
];

#[derive(Debug, Serialize)]
struct Row {
    topology: String,
    hosts: usize,
    flow_control: bool,
    vlans: usize,
    busiest_cable_pairs: f64,
    best_of_searches_pairs: Option<f64>,
    verdict: &'static str,
    plan_s: f64,
    search_s: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    searches: u64,
    rows: Vec<Row>,
}

/// Plans, searches and prints; the answer is whether every plan is proven and near the best search.
pub(super) fn run(json: bool) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let mut rows = Vec::new();
    let mut answer = Answer::Yes;
    for (topology, hosts, pauses) in CASES {
        progress(&format!(
            "{topology}, {}",
            if pauses { "pause frames" } else { "no pause frames" }
        ));
        let row = row(topology, hosts, pauses)?;
        let near = row
            .best_of_searches_pairs
            .is_none_or(|best| row.busiest_cable_pairs <= RATIO_MAX * best);
        if !near || row.verdict != super::word(Verdict::Good) {
            progress(&format!("wrong: {topology}"));
            answer = Answer::No;
        }
        rows.push(row);
    }
    let report = Report { schema: "meikyo.bench.fabric.search/1", machine, searches: SEEDS, rows };
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(answer)
}

fn row(text: &str, hosts: usize, flow_control: bool) -> Result<Row, Failure> {
    let topology: Topology =
        text.parse().map_err(|error| Failure::new(format!("`{text}`: {error}")))?;
    let model = SwitchModel::named(super::GENERIC)
        .ok_or_else(|| Failure::new("the generic model is built in"))?;
    let wiring = cable_uniform(&topology, &model, hosts)?;
    let routing = if flow_control { Routing::Acyclic } else { Routing::Auto };
    let spread = Some(hosts.max(2));
    let options = PlanOptions { routing, flow_control, spread, ..PlanOptions::new(Some(topology)) };
    let start = now();
    let plan = plan(&wiring, &options)?;
    let plan_s = start.elapsed().as_secs_f64();
    let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
    let busiest = loads(&wiring, &plan, Pattern::AllToAll).busiest(&wiring);
    let start = now();
    let best = searched(&wiring, &options, SEEDS)?;
    Ok(Row {
        topology: text.to_owned(),
        hosts: wiring.hosts.len(),
        flow_control,
        vlans: plan.working.len(),
        busiest_cable_pairs: busiest.map_or(0.0, |busiest| busiest.pairs_per_cable),
        best_of_searches_pairs: best,
        verdict: super::word(report.verdict()),
        plan_s,
        search_s: start.elapsed().as_secs_f64(),
    })
}

fn text(report: &Report) -> String {
    let mut table = TextTable::new(&[
        "topology", "hosts", "pauses", "VLANs", "busiest", "best", "verdict", "plan s", "search s",
    ]);
    for row in &report.rows {
        table.row([
            row.topology.clone(),
            row.hosts.to_string(),
            (if row.flow_control { "yes" } else { "no" }).to_owned(),
            row.vlans.to_string(),
            format!("{:.0}", row.busiest_cable_pairs),
            row.best_of_searches_pairs.map_or_else(|| "-".to_owned(), |best| format!("{best:.0}")),
            row.verdict.to_owned(),
            format!("{:.3}", row.plan_s),
            format!("{:.1}", row.search_s),
        ]);
    }
    format!("{table}\n{}", report.machine)
}
