//! The arguments of `meikyo bench predict`.

use clap::Args;

/// Predict programs beside what the paper measured: every row, with its error.
#[derive(Debug, Args)]
pub struct PredictBenchArgs {
    /// Number of seeds to predict each row with, for hashing and pivots; the first one counts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: u16,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
