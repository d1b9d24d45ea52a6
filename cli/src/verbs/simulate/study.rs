//! Several runs of a scenario, spread over the cores: one for each combination of values of a sweep, and
//! of each of those as many as replications are asked for.

mod csv;
mod json;
mod text;

use std::io::{IsTerminal as _, Write as _};

use meikyo_console::failure::{Answer, Failure};
use meikyo_console::{output, side_by_side};
use meikyo_models::Report;
use meikyo_models::replications::{self, WarmUp, figures, statistics, warm_up};
use meikyo_models::scenario::{RunError, Scenario};
use meikyo_sim::{Confidence, Options, Scheduler, Unobserved};
use meikyo_units::{Nanos, SimTime};

use super::results::{Point, Study};
use super::sweep::{RUNS_MAX, points};
use super::{SimulateArgs, WarmUpArg, plot};

/// One run that is to be done.
struct Run {
    scenario: Scenario,
    options: Options,
}

/// Carries the study out and prints it.
///
/// # Errors
/// If a value is refused, or a run ends with a fault.
pub(super) fn run(args: &SimulateArgs, scenario: &Scenario) -> Result<Answer, Failure> {
    let study = carry_out(args, scenario)?;
    if let Some(file) = &args.svg {
        plot::write(file, args.plot.as_deref(), &study)?;
    }
    if args.json {
        output::print_json(&json::document(&study))?;
    } else if args.csv {
        output::print_document(&csv::rows(&study))?;
    } else {
        output::print(&text::tables(&study))?;
    }
    let mut reports = study.points.iter().flat_map(|point| &point.reports);
    let waits = reports.any(|report| !report.waiting.is_empty());
    Ok(if waits { Answer::No } else { Answer::Yes })
}

fn carry_out<'a>(args: &'a SimulateArgs, scenario: &Scenario) -> Result<Study<'a>, Failure> {
    let points = points(&args.sweep)?;
    let replications = args.replications as usize;
    if points.len().saturating_mul(replications) > RUNS_MAX {
        let runs = points.len().saturating_mul(replications);
        return Err(Failure::new(format!("{runs} runs are more than {RUNS_MAX}")));
    }
    let mut scenarios = Vec::new();
    for point in &points {
        let mut scenario = scenario.clone();
        for (sweep, value) in args.sweep.iter().zip(point) {
            scenario.set(&sweep.key, value)?;
        }
        scenarios.push(scenario);
    }
    let warm_ups = warm_ups(args, &scenarios)?;
    let mut runs = Vec::new();
    for (scenario, warm_up) in scenarios.iter().zip(&warm_ups) {
        let span = warm_up.as_ref().map(|warm_up| warm_up.span);
        runs.extend(replicated(args, scenario, span)?);
    }
    let mut reports = run_all(args, &runs)?.into_iter();
    let confidence = args.confidence.unwrap_or(Confidence::USUAL);
    let points = points.into_iter().zip(warm_ups).map(|(values, warm_up)| {
        let reports: Vec<Report> = reports.by_ref().take(replications).collect();
        let figures = figures(&reports, confidence);
        let statistics = statistics(&reports, confidence);
        Point { values, reports, figures, statistics, warm_up }
    });
    let keys = args.sweep.iter().map(|sweep| sweep.key.as_str()).collect();
    Ok(Study { args, model: scenario.model(), keys, confidence, points: points.collect() })
}

/// The runs of one point, which leave out what comes before `warm_up`.
fn replicated(
    args: &SimulateArgs,
    scenario: &Scenario,
    warm_up: Option<Nanos>,
) -> Result<Vec<Run>, Failure> {
    let mut scenario = scenario.clone();
    let mut options = args.options();
    if let Some(span) = warm_up {
        scenario.leave_out(span)?;
        options = options.statistics_from(SimTime::START + span);
    }
    let run = |index| {
        let scenario = match args.replications {
            1 => scenario.clone(),
            _ => replications::replication(&scenario, index)?,
        };
        Ok(Run { scenario, options })
    };
    (0..args.replications).map(run).collect()
}

/// What each of `scenarios` is to leave out, as it was asked for: where that is to be found out, all
/// runs are done once only for that.
fn warm_ups(args: &SimulateArgs, scenarios: &[Scenario]) -> Result<Vec<Option<WarmUp>>, Failure> {
    let given = |span| WarmUp { span, statistic: None, settles: true };
    match args.warmup {
        None => Ok(scenarios.iter().map(|_| None).collect()),
        Some(WarmUpArg::Span(span)) => Ok(scenarios.iter().map(|_| Some(given(span))).collect()),
        Some(WarmUpArg::Auto) => {
            let mut runs = Vec::new();
            for scenario in scenarios {
                runs.extend(replicated(args, scenario, None)?);
            }
            runs.iter_mut().for_each(|run| run.options = run.options.timelines());
            let reports = run_all(args, &runs)?;
            let points = reports.chunks(args.replications as usize);
            Ok(points.map(|reports| Some(warm_up(reports))).collect())
        }
    }
}

fn run_all(args: &SimulateArgs, runs: &[Run]) -> Result<Vec<Report>, Failure> {
    let at_once = args.options().threads.min(runs.len());
    let run = |run: &Run| {
        let mut options = run.options;
        if options.scheduler == Scheduler::Auto && at_once > 1 {
            options.scheduler = Scheduler::Sequential;
        }
        run.scenario.run(&options, &mut Unobserved)
    };
    let reports = side_by_side::each(runs, at_once, run, |done| show_bar(done, runs.len()));
    Ok(reports.into_iter().collect::<Result<_, RunError>>()?)
}

fn show_bar(done: usize, all: usize) {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let filled = done * 40 / all;
        let end = if done == all { "\r\x1b[K" } else { "" };
        let bar = format!("\r[{:<40}] {done} of {all} runs{end}", "#".repeat(filled));
        drop(stderr.write_all(bar.as_bytes()));
    }
}
