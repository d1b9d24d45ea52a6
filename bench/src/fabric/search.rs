//! `meikyo bench fabric --search`: whether plans are near what long searches find.
//!
//! A plan is made in about a second, whatever there is to choose from. Here each is compared with the best
//! of 100 searches, each from a beginning of its own and until nothing is gained any more. Both choose
//! among the same trees, so that the comparison says what the bound on the planner's work costs.

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

/// Without pause frames a plan may leave so many times the fractional bound on its busiest cable.
const RATIO_OF_BOUND_MAX: f64 = 1.25;

/// A fabric, and what foreign programs say of it.
struct Case {
    topology: &'static str,
    hosts: usize,
    /// VLANs that the hosts of a switch are spread over, if the fabric is planned with that, too: tori
    /// keep the fewest VLANs otherwise.
    spread: Option<usize>,
    /// The least that fractional shortest paths leave on the busiest cable, in pairs of hosts: the
    /// solution of a linear program.
    bound: f64,
    /// What DFSSSP of `OpenSM` leaves there, with as many virtual lanes as it wants.
    dfsssp: Option<f64>,
}

const fn case(topology: &'static str, hosts: usize, bound: f64, dfsssp: Option<f64>) -> Case {
    Case { topology, hosts, spread: None, bound, dfsssp }
}

const fn spread(spread: usize, case: Case) -> Case {
    Case { spread: Some(spread), ..case }
}

const CASES: [Case; 10] = [
    case("ring 5", 2, 12.0, Some(12.0)),
    case("torus 4x4", 2, 32.0, Some(46.0)),
    case("torus 5x3", 2, 36.0, Some(44.0)),
    spread(2, case("torus 5x3", 2, 36.0, Some(44.0))),
    case("torus 6x5", 1, 22.5, None),
    spread(2, case("torus 6x5", 2, 90.0, None)),
    case("dragonfly 5x4 global 1", 2, 64.0, Some(82.0)),
    case("random-regular 10 degree 3 seed 1", 3, 63.0, Some(72.0)),
    case("random-regular 20 degree 4 seed 1", 2, 45.2, Some(56.0)),
    case("random-regular 20 degree 4 seed 3", 2, 50.6, Some(72.0)),
];

#[derive(Debug, Serialize)]
struct Row {
    topology: String,
    hosts: usize,
    spread: Option<usize>,
    flow_control: bool,
    vlans: usize,
    busiest_cable_pairs: f64,
    best_of_searches_pairs: Option<f64>,
    fractional_bound_pairs: f64,
    dfsssp_pairs: Option<f64>,
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
    for (case, pauses) in CASES.iter().flat_map(|case| [(case, true), (case, false)]) {
        let topology = case.topology;
        progress(&format!(
            "{topology}, {}",
            if pauses { "pause frames" } else { "no pause frames" }
        ));
        let row = row(case, pauses)?;
        if !row.is_reached() {
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

impl Row {
    /// Whether the plan is proven, and its busiest cable carries no more than it may.
    fn is_reached(&self) -> bool {
        let busiest = self.busiest_cable_pairs;
        let near_search =
            self.best_of_searches_pairs.is_none_or(|best| busiest <= RATIO_MAX * best);
        let near_bound = self.flow_control
            || busiest <= RATIO_OF_BOUND_MAX * self.fractional_bound_pairs
                && self.dfsssp_pairs.is_none_or(|dfsssp| busiest <= dfsssp);
        near_search && near_bound && self.verdict == super::word(Verdict::Good)
    }
}

fn row(case: &Case, flow_control: bool) -> Result<Row, Failure> {
    let Case { topology: text, hosts, .. } = *case;
    let topology: Topology =
        text.parse().map_err(|error| Failure::new(format!("`{text}`: {error}")))?;
    let model = SwitchModel::named(super::GENERIC)
        .ok_or_else(|| Failure::new("the generic model is built in"))?;
    let wiring = cable_uniform(&topology, &model, hosts)?;
    let options =
        PlanOptions { flow_control, spread: case.spread, ..PlanOptions::new(Some(topology)) };
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
        spread: case.spread,
        flow_control,
        vlans: plan.working.len(),
        busiest_cable_pairs: busiest.map_or(0.0, |busiest| busiest.pairs_per_cable),
        best_of_searches_pairs: best,
        fractional_bound_pairs: case.bound,
        dfsssp_pairs: case.dfsssp,
        verdict: super::word(report.verdict()),
        plan_s,
        search_s: start.elapsed().as_secs_f64(),
    })
}

fn text(report: &Report) -> String {
    let mut table = TextTable::new(&[
        "topology", "hosts", "spread", "pauses", "VLANs", "busiest", "best", "bound", "DFSSSP",
        "reached", "plan s", "search s",
    ]);
    let known = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.0}"));
    for row in &report.rows {
        table.row([
            row.topology.clone(),
            row.hosts.to_string(),
            row.spread.map_or_else(|| "-".to_owned(), |spread| spread.to_string()),
            (if row.flow_control { "yes" } else { "no" }).to_owned(),
            row.vlans.to_string(),
            format!("{:.0}", row.busiest_cable_pairs),
            known(row.best_of_searches_pairs),
            format!("{:.1}", row.fractional_bound_pairs),
            known(row.dfsssp_pairs),
            (if row.is_reached() { "yes" } else { "no" }).to_owned(),
            format!("{:.3}", row.plan_s),
            format!("{:.1}", row.search_s),
        ]);
    }
    format!("{table}\n{}", report.machine)
}
