//! `meikyo simulate`: a scenario file, run once or over a sweep of parameters.

mod progress;
mod record;
mod sweep;

use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_console::ranks;
use meikyo_console::scheduling::Scheduling;
use meikyo_models::Report;
use meikyo_models::scenario::Scenario;
use meikyo_sim::{LpId, Scheduler, StatisticResult, Tally};
use meikyo_units::{Nanos, SimTime};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::verbs::simulate::sweep::Sweep;

/// How to come by a scenario.
const NO_FILE: &str = "scenarios to begin with are examples/simulate-*.toml of the source, and \
                       docs/simulation-models.md has every model with its keys";
/// Waiting LPs that are named in text.
const WAITING_NAMED: usize = 8;

/// Simulate the system that a scenario file describes
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct SimulateArgs {
    /// The scenario, for example examples/simulate-metadata.toml
    file: PathBuf,
    /// Set a key of the scenario: servers=4
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run once for each value, and for each combination of several keys: clients=11..88:11
    /// servers=1,2,4
    #[arg(long, value_name = "KEY=VALUES", num_args = 1..)]
    sweep: Vec<Sweep>,
    #[command(flatten)]
    scheduling: Scheduling,
    /// Handle every event twice, undoing its changes in between, and name what is not undone
    #[arg(long, conflicts_with_all = ["scheduler", "threads", "memory_limit"])]
    check: bool,
    /// Simulated time to run, for example 10s [default: until no events are left]
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true)]
    until: Option<Nanos>,
    /// Write the model's time series into a recording in this directory
    #[arg(long, value_name = "RECORDING", conflicts_with = "sweep")]
    out: Option<PathBuf>,
    /// Show every statistic of every LP
    #[arg(long)]
    per_lp: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the scenario; the answer is no when LPs wait for something that nobody will send.
pub(crate) fn run(args: &SimulateArgs) -> Result<Answer, Failure> {
    let scenario = args.scenario()?;
    if args.sweep.is_empty() {
        return once(args, &scenario);
    }
    if ranks::joined().count() > 1 {
        return Err(Failure::new("a sweep runs on one machine, not over several ranks")
            .hint("run it without `mpirun`, or each point separately: --set servers=4"));
    }
    sweep::run(args, &scenario)
}

impl SimulateArgs {
    fn scenario(&self) -> Result<Scenario, Failure> {
        let file = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).map_err(|error| {
            Failure::new(format!("cannot read `{file}`: {error}")).hint(NO_FILE)
        })?;
        let mut scenario = Scenario::parse(&text, &file)?;
        for setting in &self.set {
            let pair = setting.split_once('=').filter(|(key, _)| !key.trim().is_empty());
            let (key, value) = pair.ok_or_else(|| {
                Failure::new(format!("`{setting}` sets nothing")).hint("--set servers=4")
            })?;
            scenario.set(key.trim(), value.trim())?;
        }
        if self.out.is_some() {
            scenario.give_series();
        }
        Ok(scenario)
    }

    fn options(&self) -> meikyo_sim::Options {
        let mut options = self.scheduling.options();
        if self.check {
            (options.scheduler, options.threads) = (Scheduler::Check, 1);
        }
        options.until(self.until.map_or(SimTime::END, |until| SimTime::START + until))
    }
}

fn once(args: &SimulateArgs, scenario: &Scenario) -> Result<Answer, Failure> {
    let mut observer = progress::Teller::new(scenario, args.json);
    if let Some(dir) = args.out.as_ref().filter(|_| ranks::joined().is_first()) {
        observer.record(record::Recorder::open(dir, scenario)?);
    }
    let report = scenario.run(&args.options(), &mut observer);
    let finished = observer.finish();
    let report = report?;
    finished?;
    if args.json {
        output::print_json(&document(args, scenario, &report))?;
    } else {
        output::print(&text(args, scenario, &report))?;
    }
    Ok(if report.waiting.is_empty() { Answer::Yes } else { Answer::No })
}

#[derive(Debug, Serialize)]
struct Effort {
    scheduler: &'static str,
    threads_used: usize,
    ranks: usize,
    events_handled: u64,
    rollbacks: u64,
    set_back_most: Vec<Value>,
    undo_records: u64,
    meetings: u64,
}

fn document(args: &SimulateArgs, scenario: &Scenario, report: &Report) -> Value {
    let name = |lp: LpId| scenario.lp_name(lp);
    let effort = Effort {
        scheduler: report.effort.scheduler,
        threads_used: report.effort.threads_used,
        ranks: report.effort.ranks,
        events_handled: report.effort.handled,
        rollbacks: report.effort.rollbacks,
        set_back_most: report
            .effort
            .setbacks
            .iter()
            .map(|(lp, times)| json!({"lp": name(*lp), "times": times}))
            .collect(),
        undo_records: report.effort.undo_records,
        meetings: report.effort.windows,
    };
    json!({
        "schema": "meikyo.simulate/1",
        "file": args.file.display().to_string(),
        "model": report.model,
        "events": report.events,
        "end_ns": report.end.as_nanos().to_string(),
        "figures": figures(report),
        "notes": report.notes,
        "bottleneck": report.bottleneck.as_ref().map(busy),
        "busiest": report.busiest.iter().map(busy).collect::<Vec<_>>(),
        "events_per_group": report.events_per_group.iter()
            .map(|(group, events)| (group.clone(), json!(events))).collect::<Map<_, _>>(),
        "statistics": report.statistics.iter()
            .map(|statistic| statistic_document(statistic, args.per_lp)).collect::<Vec<_>>(),
        "events_left": report.events_left,
        "waiting": report.waiting.iter()
            .map(|(lp, what)| json!({"lp": name(*lp), "waits_for": what})).collect::<Vec<_>>(),
        "result_digest": format!("{:016x}", report.result_digest),
        "effort": effort,
    })
}

fn figures(report: &Report) -> Map<String, Value> {
    report.figures.iter().map(|figure| (figure.name.to_owned(), json!(figure.value))).collect()
}

fn busy((resource, share): &(String, f64)) -> Value {
    json!({"resource": resource, "busy_share": share})
}

fn statistic_document(statistic: &StatisticResult, per_lp: bool) -> Value {
    let mut document = tally(&statistic.total());
    document["name"] = json!(statistic.name);
    document["group"] = json!(statistic.group);
    if per_lp {
        document["per_lp"] = statistic.per_lp.iter().map(tally).collect();
    }
    document
}

fn tally(tally: &Tally) -> Value {
    let known = |value: f64| (tally.count > 0).then_some(value);
    json!({
        "count": tally.count,
        "sum": tally.sum,
        "mean": tally.mean(),
        "least": known(tally.least),
        "greatest": known(tally.greatest),
    })
}

fn text(args: &SimulateArgs, scenario: &Scenario, report: &Report) -> String {
    let mut summary = TextTable::default();
    let mut row = |name: &str, value: String| summary.row([name.to_owned(), value]);
    row("model", report.model.to_owned());
    row("events", report.events.to_string());
    row("simulated", output::span_text(Nanos::new(report.end.as_nanos())));
    for figure in &report.figures {
        row(figure.name, number(figure.value));
    }
    if let Some((resource, share)) = &report.bottleneck {
        row("bottleneck", format!("{resource}, {:.1} % busy", share * 100.0));
    }
    row("scheduler", format!("{} on {}", report.effort.scheduler, threads(report)));
    row("result", format!("{:016x}", report.result_digest));
    let mut statistics =
        TextTable::new(&["statistic", "group", "count", "mean", "least", "greatest"]);
    for statistic in &report.statistics {
        statistics.row(tally_row(&statistic.name, &statistic.group, &statistic.total()));
        for (place, tally) in statistic.per_lp.iter().enumerate().filter(|_| args.per_lp) {
            let lp = format!("{} {place}", statistic.group);
            statistics.row(tally_row(&statistic.name, &lp, tally));
        }
    }
    let mut text = format!("{summary}\n{statistics}");
    if !report.notes.is_empty() {
        text.push('\n');
        text.extend(report.notes.iter().map(|note| format!("note: {note}\n")));
    }
    if let Some(cascade) = report.effort.cascade(|lp| scenario.lp_name(lp)) {
        text.push_str(&format!("\n{cascade}\n"));
    }
    if !report.waiting.is_empty() {
        let named = report.waiting.iter().take(WAITING_NAMED);
        let named =
            named.map(|(lp, what)| format!("  {} waits for {what}\n", scenario.lp_name(*lp)));
        let count = report.waiting.len();
        text.push_str(&format!("\n{count} LPs wait, but no events are left:\n"));
        text.extend(named);
    }
    text
}

fn threads(report: &Report) -> String {
    let (threads, ranks) = (report.effort.threads_used, report.effort.ranks);
    let over = if ranks > 1 { format!(" over {ranks} ranks") } else { String::new() };
    format!("{threads} thread{}{over}", if threads == 1 { "" } else { "s" })
}

fn tally_row(name: &str, who: &str, tally: &Tally) -> [String; 6] {
    let known = |value: f64| if tally.count > 0 { number(value) } else { String::new() };
    [
        name.to_owned(),
        who.to_owned(),
        tally.count.to_string(),
        tally.mean().map(number).unwrap_or_default(),
        known(tally.least),
        known(tally.greatest),
    ]
}

/// A number with the digits that matter.
pub(crate) fn number(value: f64) -> String {
    if value.fract().abs() < f64::EPSILON && value.abs() < 1e15 {
        format!("{value:.0}")
    } else if value.abs() >= 1000.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.4}")
    }
}
