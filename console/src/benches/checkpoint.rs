//! The arguments of `meikyo bench checkpoint`.

use std::path::PathBuf;

use clap::Args;
use meikyo_units::{BitsPerSecond, Bytes};

/// Checkpoint and rebuild groups of emulated hosts over shaped links, compared with the line rate
/// and the model.
///
/// Hosts are network namespaces with links that token buckets shape; this needs root. Without --hosts a table of
/// groups is measured, how long a program stands still, and how soon the data of a lost host can be read
/// again.
#[derive(Debug, Args)]
pub struct CheckpointBenchArgs {
    /// Measure one group of this size
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=16))]
    pub hosts: Option<u8>,
    /// Its scheme: partner, ring, rs2 to rs8
    #[arg(long, default_value = "ring", requires = "hosts")]
    pub scheme: String,
    /// The rate of a link
    #[arg(long, default_value = "1Gbit/s", requires = "hosts")]
    pub rate: BitsPerSecond,
    /// Links per host
    #[arg(long, default_value_t = 1, requires = "hosts", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub links: u8,
    /// Data of each host
    #[arg(long, default_value = "128MiB")]
    pub bytes: Bytes,
    /// Data of the program whose stop is measured beside the table
    #[arg(long, value_name = "SIZE", default_value = "256MiB", conflicts_with = "hosts")]
    pub stop_bytes: Bytes,
    /// The rate of a host's disk [default: as fast as memory]
    #[arg(long, value_name = "RATE")]
    pub disk: Option<BitsPerSecond>,
    /// Where checkpoints are written
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub directory: PathBuf,
    /// Runs of each group; the medians are printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
