//! One run for each combination of values, spread over the cores.

use std::io::{IsTerminal as _, Write as _};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_models::Report;
use meikyo_models::scenario::{RunError, Scenario};
use meikyo_sim::{Scheduler, Unobserved};
use serde_json::{Value, json};

use super::{SimulateArgs, figures, number};

/// Runs of a sweep at most.
const RUNS_MAX: usize = 100_000;

/// A key and the values that it takes one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sweep {
    key: String,
    values: Vec<String>,
}

impl FromStr for Sweep {
    type Err = String;

    /// `servers=1,2,4`, `clients=11..88:11` (the last included), and both mixed.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| format!("`{text}` has no values; write `clients=11..88:11`"))?;
        let mut all = Vec::new();
        for part in values.split(',') {
            match part.split_once("..") {
                Some((first, rest)) => all.extend(range(part, first, rest)?),
                None if part.trim().is_empty() => {
                    return Err(format!("`{text}` has an empty value"));
                }
                None => all.push(part.trim().to_owned()),
            }
        }
        Ok(Self { key: key.trim().to_owned(), values: all })
    }
}

fn range(part: &str, first: &str, rest: &str) -> Result<Vec<String>, String> {
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let parse = |number: &str| -> Result<u64, String> {
        number.trim().parse().map_err(|_| format!("`{part}` is not FIRST..LAST:STEP"))
    };
    let (first, last, step) = (parse(first)?, parse(last)?, parse(step)?);
    if step == 0 || last < first || (last - first) / step >= RUNS_MAX as u64 {
        return Err(format!("`{part}` is empty or has more than {RUNS_MAX} values"));
    }
    Ok((0..=(last - first) / step).map(|n| (first + n * step).to_string()).collect())
}

/// Runs every combination and prints one table.
///
/// # Errors
/// If a value is refused, or a run ends with a fault.
pub(super) fn run(args: &SimulateArgs, scenario: &Scenario) -> Result<Answer, Failure> {
    for (place, sweep) in args.sweep.iter().enumerate() {
        if args.sweep[..place].iter().any(|other| other.key == sweep.key) {
            return Err(Failure::new(format!("the key `{}` is swept twice", sweep.key))
                .hint("name all its values at once: --sweep servers=1,2,4"));
        }
    }
    let points = points(&args.sweep)?;
    let mut scenarios = Vec::new();
    for point in &points {
        let mut scenario = scenario.clone();
        for (sweep, value) in args.sweep.iter().zip(point) {
            scenario.set(&sweep.key, value)?;
        }
        scenarios.push(scenario);
    }
    let reports = run_all(args, &scenarios)?;
    if args.json {
        let rows = points.iter().zip(&reports).map(|(point, report)| row(args, point, report));
        let rows: Vec<Value> = rows.collect();
        output::print_json(&json!({"schema": "meikyo.simulate.sweep/1", "rows": rows}))?;
    } else {
        output::print(&table(args, &points, &reports).to_string())?;
    }
    let waits = reports.iter().any(|report| !report.waiting.is_empty());
    Ok(if waits { Answer::No } else { Answer::Yes })
}

fn points(sweeps: &[Sweep]) -> Result<Vec<Vec<String>>, Failure> {
    let count = sweeps.iter().map(|sweep| sweep.values.len()).product::<usize>();
    if count > RUNS_MAX {
        return Err(Failure::new(format!("{count} runs are more than {RUNS_MAX}")));
    }
    Ok(sweeps.iter().fold(vec![Vec::new()], |points, sweep| {
        let longer = |point: &Vec<String>, value: &String| {
            point.iter().chain([value]).cloned().collect::<Vec<_>>()
        };
        let longer = &longer;
        points
            .iter()
            .flat_map(|point| sweep.values.iter().map(move |value| longer(point, value)))
            .collect()
    }))
}

/// A thread that panics ends the scope in which they all run.
const NO_PANIC: &str = "no thread panicked while it told of its run";

fn run_all(args: &SimulateArgs, scenarios: &[Scenario]) -> Result<Vec<Report>, Failure> {
    let mut options = args.options();
    let at_once = options.threads.min(scenarios.len());
    if options.scheduler == Scheduler::Auto {
        options.scheduler = Scheduler::Sequential;
    }
    let next = AtomicUsize::new(0);
    let none: Vec<Option<Result<Report, RunError>>> = scenarios.iter().map(|_| None).collect();
    let done = Mutex::new((none, 0));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(scenario) = scenarios.get(at)
                {
                    let report = scenario.run(&options, &mut Unobserved);
                    let mut done = done.lock().expect(NO_PANIC);
                    done.0[at] = Some(report);
                    done.1 += 1;
                    show_bar(done.1, scenarios.len());
                }
            });
        }
    });
    let (done, _) = done.into_inner().expect(NO_PANIC);
    let reports = done.into_iter().map(|report| report.expect("every run was carried out"));
    Ok(reports.collect::<Result<_, RunError>>()?)
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

fn row(args: &SimulateArgs, point: &[String], report: &Report) -> Value {
    let mut row = figures(report);
    for (sweep, value) in args.sweep.iter().zip(point) {
        let parsed = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
        row.insert(sweep.key.clone(), parsed);
    }
    row.insert("events".to_owned(), json!(report.events));
    row.insert("bottleneck".to_owned(), json!(report.bottleneck.as_ref().map(|(name, _)| name)));
    row.insert("busy_share".to_owned(), json!(report.bottleneck.as_ref().map(|(_, busy)| busy)));
    Value::Object(row)
}

fn table(args: &SimulateArgs, points: &[Vec<String>], reports: &[Report]) -> TextTable {
    let figures: Vec<&str> =
        reports.first().map(|r| r.figures.iter().map(|f| f.name).collect()).unwrap_or_default();
    let keys = args.sweep.iter().map(|sweep| sweep.key.as_str());
    let headings: Vec<&str> =
        keys.chain(figures.iter().copied()).chain(["busy_%", "bottleneck"]).collect();
    let mut table = TextTable::new(&headings);
    for (point, report) in points.iter().zip(reports) {
        let values = figures.iter().map(|name| report.figure(name).map(number).unwrap_or_default());
        let (bottleneck, busy) = match &report.bottleneck {
            Some((name, busy)) => (name.clone(), format!("{:.1}", busy * 100.0)),
            None => (String::new(), String::new()),
        };
        table.row(point.iter().cloned().chain(values).chain([busy, bottleneck]));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_and_ranges_with_their_last() {
        let values = |text: &str| text.parse::<Sweep>().unwrap().values.join(" ");
        assert_eq!(values("clients=11..88:11"), "11 22 33 44 55 66 77 88");
        assert_eq!(values("servers=1,2,4..6"), "1 2 4 5 6");
        assert_eq!(values("net_startup=10us,32us"), "10us 32us");
    }

    #[test]
    fn wrong_sweeps_say_what_to_write() {
        let message = |text: &str| text.parse::<Sweep>().unwrap_err();
        assert_eq!(message("clients"), "`clients` has no values; write `clients=11..88:11`");
        assert_eq!(message("clients=9..1"), "`9..1` is empty or has more than 100000 values");
        assert_eq!(message("clients=1..x"), "`1..x` is not FIRST..LAST:STEP");
        assert_eq!(message("clients=1,,2"), "`clients=1,,2` has an empty value");
    }
}
