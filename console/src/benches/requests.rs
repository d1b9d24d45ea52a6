//! The arguments of `meikyo bench requests`.

use clap::Args;

/// Make the paper's table: a process for each request, against the engine.
#[derive(Debug, Args)]
pub struct RequestsArgs {
    /// Requests that the shell really sends to each of the two agents; its time for 10,000 is
    /// extrapolated
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub shell_requests: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
