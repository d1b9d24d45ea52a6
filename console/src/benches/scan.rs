//! The arguments of `meikyo bench scan`.

use clap::Args;

/// Measure what it costs to verify checksums while a recording is read, against reading without.
#[derive(Debug, Args)]
pub struct ScanArgs {
    /// Rows of the recording, in millions
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub millions: u64,
    /// Alternating scans with and without verification; the medians are compared
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
