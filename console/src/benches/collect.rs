//! The arguments of `meikyo bench collect`.

use std::str::FromStr;

use clap::Args;
use meikyo_units::Nanos;

use crate::arguments::interval;

/// How agents are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// SNMPv1, community `public`.
    V1,
    /// SNMPv2c, community `public`; `private` for writing.
    V2c,
    /// SNMPv3 authPriv with SHA-256 and AES-128.
    V3,
}

/// Run the collector against simulated agents: completion, jitter, CPU, bytes a value, all verified.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct CollectArgs {
    /// How many agents
    #[arg(long, default_value_t = 241, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub agents: u32,
    /// Span between two intervals
    #[arg(long, default_value = "100ms", value_name = "SPAN", value_parser = interval)]
    pub every: Nanos,
    /// How long to measure
    #[arg(long = "for", default_value = "30s", value_name = "SPAN")]
    pub span: Nanos,
    /// SNMP version: 1, 2c, or 3 (authPriv, SHA-256 and AES-128)
    #[arg(long = "version", default_value = "2c", value_name = "VERSION", value_parser = parse_speech)]
    pub speech: Speech,
    /// Run collector and farm with real-time priority
    #[arg(long)]
    pub realtime: bool,
    /// How long agents cache their values, for example 3s or 0.6s..1.2s
    #[arg(long, default_value = "none", value_name = "SPAN")]
    pub cache: String,
    /// Compare all agents, this share of which never answers, with the others alone, in alternating
    /// pairs
    #[arg(long, value_name = "PERCENT")]
    pub dead: Option<Percent>,
    /// The paper's figure 3 (32 to 241 agents, six sets of values) or 4 (the parts of an interval)
    #[arg(long, value_parser = ["3", "4"], conflicts_with_all = ["dead", "agents"])]
    pub figure: Option<String>,
    /// Also run a bare loop that only sends and receives, against the same farm
    #[arg(long)]
    pub bare: bool,
    /// Number of runs; prints the medians and every run
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

fn parse_speech(text: &str) -> Result<Speech, String> {
    match text {
        "1" => Ok(Speech::V1),
        "2c" => Ok(Speech::V2c),
        "3" => Ok(Speech::V3),
        _ => Err("allowed are `1`, `2c` and `3`".into()),
    }
}

/// A whole number of per cent below 100: `50%`.
#[derive(Debug, Clone, Copy)]
pub struct Percent(pub u32);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim_end_matches('%').parse().ok().filter(|number| *number < 100);
        number.map(Self).ok_or_else(|| format!("`{text}` is not a share; write for example `50%`"))
    }
}
