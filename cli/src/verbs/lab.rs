//! `meikyo lab`: a whole emulated cluster on this machine.

mod commands;
mod exec;
mod failover;
pub(crate) mod roles;
mod status;
mod up;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use meikyo_cluster::{Cluster, MacAddress, load};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_fabric::{Configuration, Described, Wiring, describe, plan};
use meikyo_lab::{Directory, Record};
use meikyo_units::Nanos;

use crate::verbs::config::explained;
use crate::verbs::fabric::misdescribed;

/// Run the fabric of a cluster file on this machine, with Linux bridges as its switches.
///
/// Hosts are network namespaces. Where the kernel lacks bridges with VLAN filtering, the lab runs
/// inside user-mode Linux (Debian package user-mode-linux), which can read this machine's system
/// directories and write to one directory of its own.
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start the fabric of a cluster file, with the settings of its plan
    Up(up::UpArgs),
    /// Run a command on a host, a switch or the manager
    Exec(exec::ExecArgs),
    /// Show which lab runs, with its hosts, switches and cut links
    Status(status::StatusArgs),
    /// Prime the switches: every host sends the frames that teach switches where it is
    Prime(commands::PrimeArgs),
    /// Check that every pair uses its planned path and that nothing floods
    Verify(verify::VerifyArgs),
    /// Cut a link between two switches
    Cut(commands::CutArgs),
    /// Mend a link that was cut
    Mend(commands::CutArgs),
    /// Cut links one after the other, apply their failure plans, and measure how long pairs are
    /// disconnected
    Failover(failover::FailoverArgs),
    /// End the lab and remove everything that belongs to it
    Down(status::DownArgs),
}

/// What brings a lab up.
const UP: &str = "meikyo lab up --cluster cluster.toml";

/// Which lab is meant.
#[derive(Debug, Args)]
struct Which {
    /// The lab's directory; by default one per user
    #[arg(long, value_name = "DIR", env = meikyo_lab::DIRECTORY_VARIABLE)]
    lab: Option<PathBuf>,
}

impl Which {
    fn directory(&self) -> Result<Directory, Failure> {
        Ok(Directory::at(&self.lab.clone().unwrap_or_else(Directory::usual))?)
    }

    /// The directory of a lab that was brought up, and what was written down of it.
    fn record(&self) -> Result<(Directory, Record), Failure> {
        let directory = self.directory()?;
        let record = directory.record().map_err(|error| Failure::new(error).hint(UP))?;
        Ok((directory, record))
    }
}

/// Runs the verb.
///
/// # Errors
/// If there is nothing to run a lab on, no lab runs, or what is asked for cannot be done in it.
pub(crate) fn run(args: &LabArgs) -> Result<Answer, Failure> {
    match &args.what {
        What::Up(args) => up::run(args),
        What::Exec(args) => exec::run(args),
        What::Status(args) => status::run(args),
        What::Prime(args) => commands::prime(args),
        What::Verify(args) => verify::run(args),
        What::Cut(args) => commands::set_link(args, false),
        What::Mend(args) => commands::set_link(args, true),
        What::Failover(args) => failover::run(args),
        What::Down(args) => status::down(args),
    }
}

/// What a lab of a cluster file runs.
struct Model {
    cluster: Cluster,
    wiring: Wiring,
    /// As the switches' own texts say it.
    configuration: Configuration,
}

/// The fabric of a cluster file with the settings that the texts for its switches say, once those are
/// Linux bridges.
fn model(file: &std::path::Path) -> Result<Model, Failure> {
    let hint = "docs/cluster-file.md says what `[fabric]` and `[[links]]` allow";
    let cluster = load(file).map_err(|error| explained(error, hint.to_owned()))?;
    let Described { mut wiring, options } =
        describe(&cluster).map_err(|error| Failure::new(misdescribed(file, &error)).hint(hint))?;
    for (place, host) in wiring.hosts.iter_mut().enumerate() {
        host.mac.get_or_insert_with(|| MacAddress(meikyo_lab::host_mac(place)));
    }
    let plan = plan(&wiring, &options)?;
    let configuration = meikyo_lab::as_bridges(&wiring, &plan.configuration(&wiring))?;
    Ok(Model { cluster, wiring, configuration })
}

/// A span as typed, in whole milliseconds.
fn milliseconds(text: &str) -> Result<u32, String> {
    let span: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let whole = span.get().is_multiple_of(1_000_000).then_some(span.get() / 1_000_000);
    let whole = whole.and_then(|span| u32::try_from(span).ok()).filter(|span| *span > 0);
    whole.ok_or_else(|| "write whole milliseconds, from 1ms to 30d".to_owned())
}

fn say(line: &str) {
    output::say(line);
}
