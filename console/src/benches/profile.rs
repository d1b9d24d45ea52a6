//! The arguments of `meikyo bench profile`.

use clap::{Args, ValueEnum};
use meikyo_units::Nanos;

/// Measure what samples of several kinds of program take, field by field, what taking them costs beside
/// `perf record`, and what sending them costs beside `InfluxDB` and its Python client
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// How long to sample each kind of program
    #[arg(long = "for", value_name = "SPAN", default_value = "10s")]
    pub span: Nanos,
    /// Run only these parts of the bench
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// What samples of kinds of program take
    Programs,
    /// The CPU time of the agent
    Agent,
    /// From a sample to whoever watches
    Latency,
    /// Flame graphs of one and ten million samples
    Flames,
    /// Names of functions beside those of perf
    Names,
    /// Samples through Influx and through this system, as the paper sent them
    Transfer,
}
