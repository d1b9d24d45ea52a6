//! The arguments of `meikyo bench live`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use meikyo_units::Nanos;

/// Watch the page in a real browser: how soon, how smooth, how much of the past.
#[derive(Debug, Args)]
pub struct LiveArgs {
    /// How long to watch the live and the replayed page
    #[arg(long = "for", default_value = "60s", value_name = "SPAN")]
    pub span: Nanos,
    /// Run only these parts of the bench
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    pub only: Vec<Part>,
    /// Where the recordings made under virtual time are kept for the next run
    #[arg(long, default_value = "target/bench-live", value_name = "DIR")]
    pub recordings: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Time from a reading's arrival to the screen, 256 devices
    Paint,
    /// 10,000 devices with 4 values each
    Replay,
    /// A day of 256 devices
    History,
    /// What ten viewers cost the collector
    Viewers,
    /// Memory of a server with ten viewers, and of `top`, at 1,000 devices
    Memory,
    /// Server and browser on one core with a program that never sleeps
    BusyCore,
    /// 1 Mbit/s and 100 ms between browser and server; needs root
    SlowLine,
    /// 10,000 devices that are read once a second
    ManyDevices,
}
