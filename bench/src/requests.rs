//! `meikyo bench requests`: the paper's table. 10,000 requests to each of two agents, by `snmpget`
//! processes in the background from a shell, against this engine.
//!
//! The engine asks in intervals, so the requests are ten intervals of 1,000 to each agent, with every
//! value written to a recording; its time is the sum of the intervals' times from the due instant
//! until the last value is kept.

mod engine;

use meikyo_console::benches::collect::Speech;
use meikyo_console::benches::requests::RequestsArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_units::Nanos;
use serde::Serialize;

use crate::farm_process::{FarmPlan, FarmProcess};
use crate::machine::Machine;
use crate::paper::requests as paper;
use crate::placement::Placement;
use crate::progress;
use crate::requests::engine::EngineRun;
use crate::shell::{self, ShellRun};
use crate::values::Values;
use crate::verification;
use crate::verification::Verdict;

/// The engine is at least so many times faster.
const REACH_RATIO: f64 = 200.0;

/// Both sides, with the paper's beside.
#[derive(Debug, Serialize)]
struct Comparison {
    schema: &'static str,
    machine: Machine,
    requests_each: u64,
    engine_s: f64,
    values_verified: u64,
    values_wrong: u64,
    shell_requests_run_each: u64,
    shell_run_s: f64,
    shell_values: u64,
    shell_s: f64,
    shell_is_extrapolated: bool,
    ratio: f64,
    paper_engine_s: f64,
    paper_shell_s: f64,
    paper_ratio: f64,
}

/// Runs both; the answer is whether the engine is so many times faster.
pub(crate) fn run(args: &RequestsArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let scratch = tempfile::tempdir()?;
    let truth = scratch.path().join("truth");
    let farm = FarmProcess::start(&FarmPlan {
        agents: 2,
        cache: "none",
        step: Nanos::from_millis(100),
        truth: &truth,
        speech: Speech::V2c,
        placement: Placement::default(),
    })?;
    progress("the engine: 10,000 requests to each of two agents");
    let engine = engine::run(&farm, scratch.path())?;
    progress(&format!("the shell: {} snmpget processes for each agent", args.shell_requests));
    let agents = [farm.address(0), farm.address(1)];
    let shell = shell::run(agents, args.shell_requests, &engine.objects)?;
    farm.finish()?;
    let verdict = verification::compare(&engine.recording, &truth, Values::Five, &engine.agents)?;
    for line in &verdict.examples {
        progress(line);
    }
    let comparison = compare(machine, &engine, &shell, &verdict);
    if args.json {
        output::print_json(&comparison)?;
    } else {
        output::print(&text(&comparison))?;
    }
    let right = comparison.values_wrong == 0 && comparison.values_verified > 0;
    Ok(if right && comparison.ratio >= REACH_RATIO { Answer::Yes } else { Answer::No })
}

fn compare(
    machine: Machine,
    engine: &EngineRun,
    shell: &ShellRun,
    verdict: &Verdict,
) -> Comparison {
    let shell_s = shell.extrapolated_s(paper::EACH);
    Comparison {
        schema: "meikyo.bench.requests/1",
        machine,
        requests_each: paper::EACH,
        engine_s: engine.seconds,
        values_verified: verdict.values_equal,
        values_wrong: verdict.values_wrong,
        shell_requests_run_each: shell.each,
        shell_run_s: shell.wall.as_secs_f64(),
        shell_values: shell.values,
        shell_s,
        shell_is_extrapolated: shell.each != paper::EACH,
        ratio: shell_s / engine.seconds,
        paper_engine_s: paper::ENGINE_S,
        paper_shell_s: paper::SHELL_S,
        paper_ratio: paper::RATIO,
    }
}

fn text(comparison: &Comparison) -> String {
    let Comparison { machine, requests_each, engine_s, shell_s, ratio, .. } = comparison;
    let Comparison { shell_requests_run_each: run_each, shell_run_s, shell_values, .. } =
        comparison;
    let Comparison { values_verified, paper_engine_s, paper_shell_s, paper_ratio, .. } = comparison;
    let how = if comparison.shell_is_extrapolated {
        format!("extrapolated from {run_each} to each, which took {shell_run_s:.1} s")
    } else {
        "all of them run".into()
    };
    let mut table = output::TextTable::new(&["", "here, s", "the paper, s"]);
    table.row([
        "snmpget from a shell".into(),
        format!("{shell_s:.1}"),
        format!("{paper_shell_s:.0}"),
    ]);
    table.row(["this engine".into(), format!("{engine_s:.3}"), format!("{paper_engine_s:.1}")]);
    table.row(["ratio".into(), format!("{ratio:.0}"), format!("{paper_ratio:.0}")]);
    format!(
        "{machine}\n{requests_each} requests to each of two agents\n{table}the shell's time is {how} \
         ({shell_values} values came); {values_verified} values that the engine kept equal the truth\n",
    )
}
