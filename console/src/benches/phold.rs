//! The arguments of `meikyo bench phold`.

use clap::Args;

use crate::scheduling::Scheduling;

/// Run PHOLD on the simulation kernel, checked against its own invariants and the sequential run.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct PholdArgs {
    /// Logical processes
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub lps: u32,
    /// Events that each of them starts with
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub events_per_lp: u32,
    /// The probability that an event goes to an LP drawn from all LPs
    #[arg(long, default_value_t = 0.1, value_parser = probability)]
    pub remote: f64,
    /// The least delay, in seconds of simulated time
    #[arg(long, default_value_t = 0.1, value_parser = seconds)]
    pub lookahead: f64,
    /// The mean delay, in seconds of simulated time
    #[arg(long, default_value_t = 1.0, value_parser = delay)]
    pub mean: f64,
    /// The last instant, in seconds of simulated time
    #[arg(long, default_value_t = 1000.0, value_parser = seconds)]
    pub end: f64,
    /// Dependent xorshift64 steps in each event
    #[arg(long, default_value_t = 0)]
    pub work: u32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How to run it.
    #[command(flatten)]
    pub scheduling: Scheduling,
    /// Also measure as many operations on the standard library's heap
    #[arg(long)]
    pub bare: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

fn probability(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    (0.0..=1.0).contains(&value).then_some(value).ok_or_else(|| "allowed are 0 to 1".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    (0.0..=1e9).contains(&value).then_some(value).ok_or_else(|| "allowed are 0 to 1e9".to_owned())
}

/// A mean delay: without one the simulated time would stand still.
fn delay(text: &str) -> Result<f64, String> {
    let value = seconds(text)?;
    (value >= 1e-9).then_some(value).ok_or_else(|| "allowed are 1e-9 to 1e9".to_owned())
}
