//! The arguments of `meikyo bench profile`.

use clap::Args;
use meikyo_units::Nanos;

/// Measure what samples of several kinds of program take, field by field, and what taking them costs
/// beside `perf record`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// How long to sample each kind of program
    #[arg(long = "for", value_name = "SPAN", default_value = "10s")]
    pub span: Nanos,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
