//! `--dead 50%`: what the silent half costs the rest, in alternated pairs.

use meikyo_console::benches::collect::{CollectArgs, Percent};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use serde_json::json;

use crate::collect::numbers::{Numbers, to_json};
use crate::collect::planned;
use crate::collect::report::figure;
use crate::collect::run::{Plan, once};
use crate::machine::Machine;
use crate::progress;
use crate::statistics::Observations;

/// Completion of the live devices with the dead ones, by that without them.
const REACH_RATIO: f64 = 1.05;
/// Pairs when nothing else is asked for.
const PAIRS: u32 = 5;

/// Runs the pairs; the answer is whether the median ratio is within reach.
pub(crate) fn run(args: &CollectArgs, share: Percent) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let dead = args.agents * share.0 / 100;
    let live = args.agents - dead;
    let pairs = if args.runs > 1 { args.runs } else { PAIRS };
    let mut results = Vec::new();
    for pair in 1..=pairs {
        progress(&format!("pair {pair} of {pairs}"));
        let alone = || once(&Plan { agents: live, dead: 0, ..planned(args) });
        let beside = || once(&Plan { agents: live, dead, ..planned(args) });
        // Alternated, so that a machine that grows warm or busy favours neither.
        results.push(if pair % 2 == 1 {
            let alone = alone()?;
            (alone, beside()?)
        } else {
            let beside = beside()?;
            (alone()?, beside)
        });
    }
    let ratios = results.iter().map(|(alone, beside)| completion(beside) / completion(alone));
    let ratios: Vec<f64> = ratios.collect();
    let ratio = Observations::new(ratios.clone()).median().unwrap_or(f64::INFINITY);
    if args.json {
        let pairs: Vec<_> = results
            .iter()
            .map(|(alone, beside)| {
                json!({ "alone": to_json(&alone.entries()), "beside_dead": to_json(&beside.entries()) })
            })
            .collect();
        output::print_json(&json!({
            "schema": "meikyo.bench.collect.dead/1",
            "machine": machine,
            "agents_live": live,
            "agents_dead": dead,
            "ratio_median": ratio,
            "ratios": ratios,
            "pairs": pairs,
        }))?;
    } else {
        let mut table = TextTable::new(&["pair", "alone, µs", "beside the dead, µs", "ratio"]);
        for (number, ((alone, beside), ratio)) in (1..).zip(results.iter().zip(&ratios)) {
            let number: u32 = number;
            table.row([
                number.to_string(),
                figure(completion(alone)),
                figure(completion(beside)),
                format!("{ratio:.3}"),
            ]);
        }
        output::print(&format!(
            "{machine}\n{live} live agents alone, and beside {dead} that never answer: due instant \
             until the last live answer is kept, median\n{table}median ratio {ratio:.3} (reach \
             {REACH_RATIO})\n"
        ))?;
    }
    let right = results.iter().all(|(alone, beside)| alone.values_wrong + beside.values_wrong == 0);
    Ok(if right && ratio <= REACH_RATIO { Answer::Yes } else { Answer::No })
}

fn completion(run: &Numbers) -> f64 {
    run.completion_us.median().unwrap_or(f64::NAN)
}
