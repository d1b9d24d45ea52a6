//! The arguments of `meikyo bench afar`.

use clap::{Args, ValueEnum};
use meikyo_units::Nanos;

/// Measure what it takes to send readings to another machine: octets, CPU time of both ends, delays.
#[derive(Debug, Args)]
pub struct AfarBenchArgs {
    /// How long each measurement runs
    #[arg(long = "for", default_value = "20s", value_name = "SPAN")]
    pub span: Nanos,
    /// Devices of a cluster
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5_000))]
    pub devices: u32,
    /// Senders of the receiver's part, each of one cluster
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub senders: u32,
    /// How long the line is cut before the sender catches up
    #[arg(long, default_value = "10min", value_name = "SPAN")]
    pub cut: Nanos,
    /// Pairs of measurements, with sending and without, for the sender's CPU time
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub pairs: u32,
    /// Run only these parts of the bench
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    pub only: Vec<Part>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Octets on the line per value that is kept
    Bytes,
    /// What a poll costs the sender more
    Sender,
    /// The share of a core that the receiver needs
    Receiver,
    /// Catching up after a cut, at 20 Mbit/s and 100 ms round trip
    CatchUp,
    /// From the reading to the screen of a real browser, over 100 ms round trip, without loss and with 1 % (needs root)
    Screen,
    /// All clusters of the receiver's part on the page of a real browser, and one of them
    Clusters,
}
