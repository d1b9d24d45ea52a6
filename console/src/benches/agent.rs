//! The arguments of `meikyo bench agent`.

use clap::Args;
use meikyo_units::Nanos;

/// Measure the CPU time of a real snmpd while it is polled, with its caches and freshened.
#[derive(Debug, Args)]
pub struct AgentCostArgs {
    /// Span between two readings
    #[arg(long, value_name = "SPAN", default_value = "100ms")]
    pub every: Nanos,
    /// Length of each of the four phases: idle, asked for sysUpTime.0 alone, polled, freshened
    #[arg(long = "for", default_value = "20s", value_name = "SPAN")]
    pub span: Nanos,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
