//! What a person types after `meikyo bench`. The benches themselves are a program of their own,
//! `meikyo-bench`, which carries what only they need; `meikyo` knows their arguments, so that help,
//! manual pages and completions are whole, and starts it.

pub mod afar;
pub mod agent;
pub mod checkpoint;
pub mod collect;
pub mod fabric;
pub mod live;
pub mod metadata;
pub mod phold;
pub mod predict;
pub mod profile;
pub mod requests;
pub mod scan;

use clap::{Args, Subcommand};

use crate::benches::afar::AfarBenchArgs;
use crate::benches::agent::AgentCostArgs;
use crate::benches::checkpoint::CheckpointBenchArgs;
use crate::benches::collect::CollectArgs;
use crate::benches::fabric::FabricArgs;
use crate::benches::live::LiveArgs;
use crate::benches::metadata::MetadataArgs;
use crate::benches::phold::PholdArgs;
use crate::benches::predict::PredictBenchArgs;
use crate::benches::profile::ProfileArgs;
use crate::benches::requests::RequestsArgs;
use crate::benches::scan::ScanArgs;

/// Measure Meikyo itself on this machine, beside the numbers of the papers.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The bench to run.
    #[command(subcommand)]
    pub bench: Bench,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "the help of each is that of its arguments")]
pub enum Bench {
    Collect(CollectArgs),
    Requests(RequestsArgs),
    Agent(AgentCostArgs),
    Scan(ScanArgs),
    Profile(ProfileArgs),
    Live(LiveArgs),
    Afar(AfarBenchArgs),
    Phold(PholdArgs),
    Metadata(MetadataArgs),
    Fabric(FabricArgs),
    Predict(PredictBenchArgs),
    Checkpoint(CheckpointBenchArgs),
}
