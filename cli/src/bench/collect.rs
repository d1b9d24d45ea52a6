//! `meikyo bench collect`: the whole collector against a farm, every kept value compared with the
//! farm's truth.

mod compaction;
mod dead;
mod figures;
mod numbers;
mod report;
mod run;

use std::str::FromStr;

use clap::Args;
use meikyo_units::Nanos;
use serde_json::json;

use crate::bench::cluster_text::Speech;
use crate::bench::collect::numbers::{Numbers, medians, to_json};
use crate::bench::collect::run::Plan;
use crate::bench::machine::Machine;
use crate::bench::progress;
use crate::bench::values::Values;
use crate::failure::{Answer, Failure};
use crate::output;

/// The collector against simulated agents: completion, jitter, CPU, bytes a value, all verified.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub(crate) struct CollectArgs {
    /// How many agents
    #[arg(long, default_value_t = 241, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    agents: u32,
    /// Span between two intervals
    #[arg(long, default_value = "100ms", value_name = "DURATION", value_parser = crate::args::interval)]
    every: Nanos,
    /// How long to measure
    #[arg(long = "for", default_value = "30s", value_name = "DURATION")]
    span: Nanos,
    /// What is spoken: 1, 2c, or 3 (authPriv, SHA-256 and AES-128)
    #[arg(long = "version", default_value = "2c", value_name = "VERSION", value_parser = parse_speech)]
    speech: Speech,
    /// Collector and farm with real-time priority
    #[arg(long)]
    realtime: bool,
    /// Agents that read their values only so often, for example 3s or 0.6s..1.2s
    #[arg(long, default_value = "none", value_name = "DURATION")]
    cache: String,
    /// Compare N agents of which so many never answer with the others alone, in alternated pairs
    #[arg(long, value_name = "PERCENT")]
    dead: Option<Percent>,
    /// The paper's figure 3 (32 to 241 agents, six sets of values) or 4 (the parts of an interval)
    #[arg(long, value_parser = ["3", "4"], conflicts_with_all = ["dead", "agents"])]
    figure: Option<String>,
    /// A bare loop that only sends and receives, against the same farm, beside
    #[arg(long)]
    bare: bool,
    /// How often to repeat; the medians are printed, and every run
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A whole number of per cent below 100: `50%`.
#[derive(Debug, Clone, Copy)]
struct Percent(u32);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim_end_matches('%').parse().ok().filter(|number| *number < 100);
        number.map(Self).ok_or_else(|| format!("`{text}` is not a share; write for example `50%`"))
    }
}

fn parse_speech(text: &str) -> Result<Speech, String> {
    match text {
        "1" => Ok(Speech::V1),
        "2c" => Ok(Speech::V2c),
        "3" => Ok(Speech::V3),
        _ => Err("allowed are `1`, `2c` and `3`".into()),
    }
}

impl CollectArgs {
    fn plan(&self) -> Plan {
        Plan {
            agents: self.agents,
            dead: 0,
            values: Values::Five,
            every: self.every,
            span: self.span,
            speech: self.speech,
            realtime: self.realtime,
            cache: self.cache.clone(),
            bare: self.bare,
        }
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
        runs.push(run::once(&args.plan())?);
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
