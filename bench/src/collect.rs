//! `meikyo bench collect`: the whole collector against a farm, every kept value compared with the
//! farm's truth.

mod compaction;
mod dead;
mod figures;
mod numbers;
mod report;
mod run;

use meikyo_console::benches::collect::CollectArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use serde_json::json;

use crate::collect::numbers::{Numbers, medians, to_json};
use crate::collect::run::Plan;
use crate::machine::Machine;
use crate::progress;
use crate::values::Values;

/// One run as it was asked for.
fn planned(args: &CollectArgs) -> Plan {
    Plan {
        agents: args.agents,
        dead: 0,
        values: Values::Five,
        every: args.every,
        span: args.span,
        speech: args.speech,
        realtime: args.realtime,
        cache: args.cache.clone(),
        bare: args.bare,
    }
}

/// Runs the bench; the answer is whether every kept value is what the agent held, and compaction
/// stayed within its bounds where a segment ended meanwhile.
pub(crate) fn run(args: &CollectArgs) -> Result<Answer, Failure> {
    match (&args.figure, args.dead) {
        (Some(figure), _) if figure == "4" => figures::four(args),
        (Some(_), _) => figures::three(args),
        (None, Some(share)) => dead::run(args, share),
        (None, None) => repeated(args),
    }
}

fn repeated(args: &CollectArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        if args.runs > 1 {
            progress(&format!("run {number} of {}", args.runs));
        }
        runs.push(run::once(&planned(args))?);
    }
    let medians = medians(&runs);
    if args.json {
        let each: Vec<_> = runs.iter().map(|run| to_json(&run.entries())).collect();
        let mut document = to_json(&medians);
        document["schema"] = json!("meikyo.bench.collect/1");
        document["machine"] = json!(machine);
        document["runs"] = json!(each);
        output::print_json(&document)?;
    } else {
        output::print(&format!("{machine}\n{}", report::text(&medians, &runs)))?;
    }
    Ok(answer(&runs))
}

/// No when any kept value differs from what its agent held, or a compaction took more than it may.
fn answer<'a>(runs: impl IntoIterator<Item = &'a Numbers>) -> Answer {
    let is_bad = |run: &Numbers| run.values_wrong > 0 || !run.compactions.excess().is_empty();
    if runs.into_iter().any(is_bad) { Answer::No } else { Answer::Yes }
}
