//! The arguments of `meikyo bench fabric`.

use clap::Args;
use meikyo_fabric::Topology;

/// Make plans and proofs of fabrics up to 100,000 hosts: VLANs, table entries, loads, times, memory.
#[derive(Debug, Args)]
pub struct FabricArgs {
    /// Only this topology, as `torus 4x4`, in this process
    #[arg(long, value_name = "TOPOLOGY")]
    pub only: Option<Topology>,
    /// Hosts on each switch that has some, with --only
    #[arg(long, default_value_t = 10, requires = "only")]
    pub hosts_per_switch: usize,
    /// The model of the switches, with --only
    #[arg(long, default_value = "generic", requires = "only")]
    pub model: String,
    /// The routing, with --only
    #[arg(long, default_value = "auto", requires = "only", value_parser = routing)]
    pub routing: meikyo_cluster::Routing,
    /// Compare plans with the best of 100 searches from other seeds and with the fractional bound,
    /// on fabrics of 5 to 30 switches, with and without pause frames
    #[arg(long, conflicts_with = "only")]
    pub search: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

fn routing(text: &str) -> Result<meikyo_cluster::Routing, String> {
    use meikyo_cluster::Routing::{Acyclic, Auto, DimensionOrder, Minimal, UpDown};
    let all = [Auto, DimensionOrder, Minimal, UpDown, Acyclic];
    all.into_iter().find(|routing| routing.word() == text).ok_or_else(|| {
        let known = all.map(|routing| format!("`{}`", routing.word())).join(", ");
        format!("known are {known}")
    })
}
