//! The arguments of `meikyo bench predict`.

use clap::{Args, ValueEnum};

/// Predict programs beside what was measured: by the paper, every row with its error, or in namespaces of this machine.
#[derive(Debug, Args)]
pub struct PredictBenchArgs {
    /// Number of seeds to predict each row with, for hashing and pivots; the first one counts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: u16,
    /// Run real Open MPI on 8 hosts behind switches, in namespaces of this machine with cables of 4 Mbit/s, and
    /// predict the same; as root, half an hour, or half a minute for `short`
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "full", conflicts_with = "seeds")]
    pub lab: Option<LabExtent>,
    /// Only predict the runs of HPL, by streams, and tell what all of them take
    #[arg(long, conflicts_with_all = ["lab", "cost"])]
    pub hpl: bool,
    /// Only measure what a frame costs beside an event of PHOLD, and what a second thread saves
    #[arg(long, conflicts_with_all = ["seeds", "lab"])]
    pub cost: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How much is measured in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabExtent {
    /// Three topologies with one cable and two for each link, messages of three sizes
    Full,
    /// Two topologies, short messages
    Short,
}
