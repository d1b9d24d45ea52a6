//! `meikyo simulate`: a scenario file, run once or many times.

mod plot;
mod progress;
mod record;
mod results;
mod study;
mod sweep;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, counted};
use meikyo_console::ranks;
use meikyo_console::scheduling::Scheduling;
use meikyo_models::Report;
use meikyo_models::replications::PERCENTILES;
use meikyo_models::scenario::Scenario;
use meikyo_sim::{Confidence, Histogram, LpId, Scheduler, StatisticResult, Tally};
use meikyo_units::{Nanos, SimTime};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::verbs::simulate::sweep::Sweep;

/// How to come by a scenario.
const NO_FILE: &str = "scenarios to begin with are examples/simulate-*.toml of the source, and \
                       docs/simulation-models.md has every model with its keys";
/// Waiting LPs that are named in text.
const WAITING_NAMED: usize = 8;
/// Bins of a histogram in JSON at most, and in text.
const BINS_MAX: usize = 64;
const SKETCHED_MAX: usize = 12;

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
    /// Run this many times, each time with the next seed, and report means with confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: u32,
    /// Confidence level of the intervals, for example 99% [default: 95%]
    #[arg(long, value_name = "PERCENT", requires = "replications", allow_hyphen_values = true)]
    confidence: Option<Confidence>,
    /// Leave the beginning out of the statistics: a span, or `auto` to detect when they settle
    #[arg(long, value_name = "SPAN|auto", allow_hyphen_values = true)]
    warmup: Option<WarmUpArg>,
    #[command(flatten)]
    scheduling: Scheduling,
    /// Handle every event twice, undoing its changes in between, and name what is not undone
    #[arg(long, conflicts_with_all = ["scheduler", "threads", "memory_limit"])]
    check: bool,
    /// Simulated time to run, for example 10s [default: until no events are left]
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true)]
    until: Option<Nanos>,
    /// Write the model's time series into a recording in this directory
    #[arg(long, value_name = "RECORDING", conflicts_with_all = ["sweep", "replications"])]
    out: Option<PathBuf>,
    /// Show every statistic of every LP
    #[arg(long, conflicts_with_all = ["sweep", "replications", "csv"])]
    per_lp: bool,
    /// Draw a figure over the first swept key, or without a sweep the histogram of a statistic
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The figure or statistic that is drawn [default: the model's first]
    #[arg(long, value_name = "NAME", requires = "svg")]
    plot: Option<String>,
    /// Print comma-separated values: a line of names, and a line for each combination of values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the scenario; the answer is no when LPs wait for something that nobody will send.
pub(crate) fn run(args: &SimulateArgs) -> Result<Answer, Failure> {
    let mut scenario = args.scenario()?;
    if !args.is_study() {
        if let Some(WarmUpArg::Span(span)) = args.warmup {
            scenario.leave_out(span)?;
        }
        return once(args, &scenario);
    }
    if ranks::joined().count() > 1 {
        return Err(Failure::new(
            "replications and sweeps run on one machine, not over several ranks",
        )
        .hint("run it without `mpirun`, or each point separately: --set servers=4"));
    }
    study::run(args, &scenario)
}

/// What to leave out at the beginning of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WarmUpArg {
    /// As much as it takes until statistics settle.
    Auto,
    Span(Nanos),
}

impl FromStr for WarmUpArg {
    type Err = <Nanos as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Span) }
    }
}

impl SimulateArgs {
    /// Whether several runs are asked for, or what is made of them.
    fn is_study(&self) -> bool {
        let several = !self.sweep.is_empty() || self.replications > 1;
        several || self.csv || self.svg.is_some() || self.warmup == Some(WarmUpArg::Auto)
    }

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
        if let Some(WarmUpArg::Span(span)) = self.warmup {
            options.statistics_from = SimTime::START + span;
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
    for (share, name) in PERCENTILES {
        document[name] = json!(statistic.quantile(share));
    }
    document["histogram"] = bins(&statistic.histogram);
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
        "deviation": tally.deviation(),
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
    row("scheduler", scheduler(report));
    row("result", format!("{:016x}", report.result_digest));
    let percentiles = PERCENTILES.map(|(_, name)| name);
    let mut headings = vec!["statistic", "group", "count", "mean", "deviation", "least"];
    headings.extend(percentiles.into_iter().chain(["greatest", "spread"]));
    let mut statistics = TextTable::new(&headings);
    for statistic in &report.statistics {
        let percentiles = PERCENTILES.map(|(share, _)| statistic.quantile(share));
        let row = tally_row(&statistic.name, &statistic.group, &statistic.total(), percentiles);
        statistics.row(row.into_iter().chain([sketch(&statistic.histogram)]));
        for (place, tally) in statistic.per_lp.iter().enumerate().filter(|_| args.per_lp) {
            let lp = format!("{} {place}", statistic.group);
            statistics.row(tally_row(&statistic.name, &lp, tally, [None; 4]));
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

/// How the model was run; one queue on one thread needs no number of them.
fn scheduler(report: &Report) -> String {
    let effort = &report.effort;
    let (scheduler, threads, ranks) = (effort.scheduler, effort.threads_used, effort.ranks);
    match scheduler {
        "sequential" => scheduler.to_owned(),
        // Each of which is one thread.
        _ if ranks > 1 => format!("{scheduler} over {ranks} ranks"),
        _ => format!("{scheduler} on {}", counted(threads, "thread")),
    }
}

fn tally_row(name: &str, who: &str, tally: &Tally, percentiles: [Option<f64>; 4]) -> Vec<String> {
    let known = |value: f64| (tally.count > 0).then_some(value);
    let numbers = [tally.mean(), tally.deviation(), known(tally.least)];
    let numbers = numbers.into_iter().chain(percentiles).chain([known(tally.greatest)]);
    let texts = [name.to_owned(), who.to_owned(), tally.count.to_string()];
    texts.into_iter().chain(numbers.map(|value| value.map(number).unwrap_or_default())).collect()
}

/// A histogram as bins with their bounds; values that are 0 are a bin from 0 to 0.
fn bins(histogram: &Histogram) -> Value {
    let bins = histogram.bins(BINS_MAX);
    bins.iter().map(|bin| json!({"from": bin.from, "to": bin.to, "count": bin.count})).collect()
}

/// A histogram in a few characters: bins whose bounds grow by the same factor, the fullest as high as
/// a line.
fn sketch(histogram: &Histogram) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bins = histogram.bins(SKETCHED_MAX);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or_default();
    let height = |count: u64| match count {
        0 => ' ',
        _ => {
            let eighths = usize::try_from(u128::from(count) * 8 / u128::from(most));
            HEIGHTS[eighths.expect("at most 8").saturating_sub(1)]
        }
    };
    bins.iter().map(|bin| height(bin.count)).collect()
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
