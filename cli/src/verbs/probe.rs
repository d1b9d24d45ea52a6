//! `meikyo probe`: what devices answer, before a run.

mod device;
mod file;

use clap::Args;
use meikyo_cluster::load;
use meikyo_console::failure::{Answer, Failure};
use meikyo_units::Nanos;

use crate::known_devices;
use crate::row_arguments::ClusterArgument;
use crate::verbs::config::explained;

/// Ask one device or the whole cluster: what answers, how fast and how fresh.
///
/// With DEVICE, Meikyo also measures what polling costs the device. Without it, every device is asked
/// once; silent hosts, refused credentials and missing objects are listed with a remedy each, and the
/// exit code is 1 if there are any.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// A host or switch of the cluster file
    #[arg(value_name = "DEVICE")]
    device: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgument,
    /// How long to watch the device for updates; a cache of 3 s needs 10 s
    #[arg(long = "for", value_name = "SPAN", default_value = "12s")]
    watch: Nanos,
    /// Time between two requests meanwhile
    #[arg(long, value_name = "SPAN", default_value = "20ms")]
    every: Nanos,
    /// Process number of the device's agent, if it runs on this host: measures its CPU time while
    /// the device is polled at its interval
    #[arg(long, value_name = "PID", requires = "device")]
    agent_pid: Option<u32>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// If the cluster file is wrong, does not hold the device, or the system gives no socket. A device
/// that does not answer is an answer, and it is no.
pub(crate) fn run(args: &ProbeArgs) -> Result<Answer, Failure> {
    let cluster = load(&args.cluster.file).map_err(|error| {
        explained(error, "`meikyo config check` tells everything that is wrong with it".to_owned())
    })?;
    match &args.device {
        None => file::run(args, &cluster),
        Some(name) => {
            let device = cluster.devices.iter().find(|device| &device.name == name);
            let device = device.ok_or_else(|| {
                let names = cluster.devices.iter().map(|device| device.name.clone());
                known_devices::unknown(&args.cluster.file, name, &names.collect::<Vec<_>>())
            })?;
            device::run(args, &cluster, device)
        }
    }
}
