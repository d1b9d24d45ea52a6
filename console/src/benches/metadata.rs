//! The arguments of `meikyo bench metadata`.

use std::path::PathBuf;

use clap::Args;

/// Draw the paper's figures of the metadata service, each point checked against theory.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct MetadataArgs {
    /// Figures to draw [default: all]
    #[arg(long, value_parser = clap::value_parser!(u8).range(5..=10), value_delimiter = ',')]
    pub figure: Vec<u8>,
    /// Other numbers of servers than the figure's
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096), value_delimiter = ',')]
    pub servers: Vec<u16>,
    /// Other numbers of clients than the figure's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000), value_delimiter = ',')]
    pub clients: Vec<u32>,
    /// Creates of each client in figures 5 to 8
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..))]
    pub creates: u32,
    /// Creates of each client in figures 9 and 10
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub parallel_creates: u32,
    /// Write each figure as a picture into this directory: figure5.svg and so on
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
