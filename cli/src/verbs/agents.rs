//! `meikyo agents`: a farm of simulated agents.

use std::net::Ipv4Addr;

use clap::Args;
use meikyo_snmp::farm::{self, Cache, CounterStart, Farm, FarmOptions, Faults, Stop};
use meikyo_units::{Nanos, WallTime};

use crate::failure::{Answer, Failure};

/// Run simulated hosts and switches that answer SNMP, each on a loopback address of its own.
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// How many hosts.
    #[arg(long, default_value_t = 64, value_name = "N")]
    count: u32,
    /// How many switches of 48 ports; their addresses follow those of the hosts.
    #[arg(long, default_value_t = 0, value_name = "N")]
    switches: u32,
    /// UDP port of all agents; 0 takes a free one.
    #[arg(long, default_value_t = 16_100)]
    port: u16,
    /// Address of the first agent.
    #[arg(long, default_value_t = Ipv4Addr::new(127, 1, 0, 1), value_name = "ADDRESS")]
    first: Ipv4Addr,
    /// Interfaces of each host, lo included.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=250))]
    interfaces: u32,
    /// Span between two changes of the counters.
    #[arg(long, default_value = "100ms", value_name = "SPAN")]
    step: Nanos,
    /// How often agents really read their values: none (at every request), 3s, 0.6s..1.2s.
    #[arg(long, default_value = "none", value_name = "SPAN")]
    cache: Cache,
    /// Start the counters shortly before they wrap at so many bits.
    #[arg(long, value_name = "BITS", value_parser = ["32", "64"])]
    wrap: Option<String>,
    /// Faults of all agents, for example loss=5% or delay=2ms; can be repeated.
    #[arg(long = "fault", value_name = "FAULT=VALUE")]
    faults: Vec<String>,
    /// Everything random follows from this number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl AgentsArgs {
    fn options(&self) -> Result<FarmOptions, Failure> {
        let mut faults = Faults::default();
        for setting in &self.faults {
            faults.set(setting)?;
        }
        Ok(FarmOptions {
            first: self.first,
            interfaces: self.interfaces,
            step: self.step,
            cache: self.cache,
            counters: match self.wrap.as_deref() {
                Some("32") => CounterStart::Before32BitWrap,
                Some(_) => CounterStart::Before64BitWrap,
                None => CounterStart::Random,
            },
            faults,
            seed: self.seed,
            ..FarmOptions::new(self.count, self.switches)
        })
    }
}

/// Runs the farm until it is interrupted.
///
/// # Errors
/// If a setting is wrong or the port cannot be bound.
pub(crate) fn run(args: &AgentsArgs) -> Result<Answer, Failure> {
    let options = args.options()?;
    let (agents, first) = (options.agents(), options.first);
    let mut farm = Farm::new(options, WallTime::now());
    let (stop, trigger) = Stop::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, trigger.try_clone()?)?;
    }
    let ready = |port| {
        #[expect(clippy::print_stderr, reason = "says to people and scripts that it is ready")]
        {
            eprintln!("ready: {agents} agents at {first}:{port} and the addresses after it");
        }
    };
    let report = farm::run(&mut farm, args.port, &stop, ready)?;
    #[expect(clippy::print_stderr, reason = "a last word for people")]
    {
        eprintln!(
            "{} requests, {} answers, {} lost on purpose, {} refused by the kernel",
            report.farm.requests, report.farm.answers, report.farm.lost, report.refused
        );
    }
    Ok(Answer::Yes)
}
