//! `meikyo bench`: the product's own numbers, each checked against the truth before it is printed.
//!
//! The collector and the farm run as processes of their own, from this very binary, each pinned to
//! its core; what is reported of the collector is what the kernel says of the whole process.

mod agent_cost;
mod bare;
mod cluster_text;
mod collect;
mod collector;
mod fabric;
mod farm_process;
mod live;
mod machine;
mod metadata;
mod paper;
mod phold;
mod placement;
mod reading;
mod real_agent;
mod requests;
mod shell;
pub(crate) mod statistics;
mod values;
mod verification;

use clap::{Args, Subcommand};

use crate::failure::{Answer, Failure};
use crate::ranks;

/// Measure Meikyo itself on this machine, with the paper's numbers beside.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    Collect(collect::CollectArgs),
    Requests(requests::RequestsArgs),
    Agent(agent_cost::AgentCostArgs),
    Live(live::LiveArgs),
    Phold(phold::PholdArgs),
    Metadata(metadata::MetadataArgs),
    Fabric(fabric::FabricArgs),
}

/// Runs a bench; the answer is no when what it kept was wrong, or what it promises was not reached.
///
/// # Errors
/// If it could not be carried out.
pub(crate) fn run(args: &BenchArgs) -> Result<Answer, Failure> {
    match &args.bench {
        Bench::Collect(args) => collect::run(args),
        Bench::Requests(args) => requests::run(args),
        Bench::Agent(args) => agent_cost::run(args),
        Bench::Live(args) => live::run(args),
        Bench::Phold(args) => ranks::over(|| phold::run(args)),
        Bench::Metadata(args) => ranks::over(|| metadata::run(args)),
        Bench::Fabric(args) => fabric::run(args),
    }
}

/// Says on standard error how far a bench is.
fn progress(text: &str) {
    if !ranks::joined().is_first() {
        return;
    }
    crate::output::say(text);
}
