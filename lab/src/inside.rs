//! The part inside: the first process of the lab, which sets it up and starts commands in it.
//!
//! It is the same program in a machine of its own (user-mode Linux) and in namespaces of the host's
//! kernel; only what has to be mounted and loaded differs.

mod commands;
mod mounts;
mod services;
mod session;
mod tagging;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use meikyo_spaces::process;
use meikyo_units::{WallTime, in_one_line};
use serde::{Deserialize, Serialize};

use crate::blueprint::Blueprint;
use crate::kernel_modules;
use crate::network;
use crate::protocol::{self, Kind, Ready, Step};
use crate::system;

/// Where the blueprint lies in the lab's directory.
pub(crate) const BLUEPRINT: &str = "blueprint.json";
/// Where the orders lie in the lab's directory.
pub(crate) const ORDERS: &str = "orders.json";
/// Where a process inside finds the blueprint, whoever it is.
pub(crate) const BLUEPRINT_INSIDE: &str = "/run/meikyo/blueprint.json";
/// Where the program is found inside.
pub(crate) const PROGRAMS_INSIDE: &str = "/run/meikyo/bin";
/// The serial line of user-mode Linux that is the channel.
const LINE: (&str, u32, u32) = ("/dev/ttyS0", 4, 64);
/// The descriptor that is the channel in namespaces.
pub(crate) const CHANNEL: i32 = 3;

/// What the part inside has to know beside the blueprint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// Whether this is a machine of its own.
    pub(crate) machine: bool,
    /// The directory of the kernel's modules, with `modules.dep`, if they are to be loaded.
    pub(crate) modules: Option<PathBuf>,
    /// The one directory of the host that may be written.
    pub(crate) files: PathBuf,
    /// What can be read beside the system's directories.
    pub(crate) read: Vec<PathBuf>,
    /// Programs that are started on every host and switch, as `snmpd`, when all is set up.
    pub(crate) services: Vec<Service>,
}

/// A program that runs in a space as long as the lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Service {
    /// The host or switch that the service runs on.
    pub space: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The UDP port that it listens on; the lab is up when it does.
    pub udp_port: u16,
}

/// Why the lab cannot be set up, as a text: it goes over the channel.
type SetUpError = Box<dyn std::error::Error>;

/// Sets the lab up and serves commands until it is told to end; only for the first process of a lab.
///
/// Returns the exit code of the process, if it returns.
pub(crate) fn run(directory: &Path) -> u8 {
    let orders = match read_json::<Orders>(&directory.join(ORDERS)) {
        Ok(orders) => orders,
        Err(error) => return say(&*error),
    };
    // Where the root is the host's, devices have to be there before the channel is.
    let channel = match open_channel(&orders) {
        Ok(channel) => channel,
        Err(error) => return say(&*error),
    };
    let mut greeting = protocol::GREETING.to_vec();
    let served = match set_up(&orders, directory) {
        Ok((ready, lab)) => {
            let ready = serde_json::to_vec(&ready).expect("numbers and texts have a JSON form");
            protocol::encode(&mut greeting, protocol::LAB, Kind::Ready, &ready);
            session::serve(channel, greeting, &lab)
        }
        Err(error) => {
            let text = in_one_line(&*error);
            let text = &text.as_bytes()[..text.len().min(protocol::FRAME_BYTES_MAX)];
            protocol::encode(&mut greeting, protocol::LAB, Kind::Failed, text);
            session::serve(channel, greeting, &session::Lab::default())
        }
    };
    system::sync();
    if orders.machine {
        // Whoever started the machine ends it when it does not do so itself.
        drop(system::power_off());
    }
    u8::from(served.is_err())
}

/// Before there is a channel, the console is all there is.
#[expect(clippy::print_stderr, reason = "goes to the lab's console")]
fn say(error: &dyn std::error::Error) -> u8 {
    eprintln!("meikyo lab: {}", in_one_line(error));
    1
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, SetUpError> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The blueprint of the lab that this process is in; `None` outside of any.
pub(crate) fn blueprint_inside() -> Option<Blueprint> {
    serde_json::from_slice(&std::fs::read(BLUEPRINT_INSIDE).ok()?).ok()
}

fn open_channel(orders: &Orders) -> Result<OwnedFd, SetUpError> {
    if !orders.machine {
        return Ok(process::inherited(CHANNEL)?);
    }
    mounts::devices()?;
    let (path, major, minor) = LINE;
    if !Path::new(path).exists() {
        system::make_device(Path::new(path), major, minor)?;
    }
    let line = File::options().read(true).write(true).open(path)?;
    system::make_raw(&line)?;
    Ok(line.into())
}

fn set_up(orders: &Orders, directory: &Path) -> Result<(Ready, session::Lab), SetUpError> {
    let blueprint: Blueprint = read_json(&directory.join(BLUEPRINT))?;
    let mut steps = Steps { last: WallTime::now(), steps: Vec::new() };
    mounts::set_up(orders)?;
    std::fs::write(BLUEPRINT_INSIDE, serde_json::to_vec(&blueprint)?)?;
    let names: String = blueprint.spaces.iter().map(commands::hosts_line).collect();
    std::fs::write(commands::HOSTS_FILE, format!("127.0.0.1 localhost\n{names}"))?;
    steps.done("mounts");
    if let Some(modules) = &orders.modules {
        kernel_modules::load(modules)?;
        steps.done("modules");
    }
    widen_limits();
    let home = File::open("/proc/thread-self/ns/net")?;
    network::set_up(&blueprint, &home)?;
    tagging::set_up(&blueprint)?;
    steps.done("network");
    let lab = session::Lab::new(&blueprint);
    if !orders.services.is_empty() {
        services::start(&lab, &orders.services)?;
        steps.done("services");
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok((Ready { kernel: kernel.trim().into(), steps: steps.steps }, lab))
}

/// One machine is many: what a kernel allows for one host's neighbours and waiting frames is too little
/// for hundreds. Namespaces of another machine may not change it, and do with what there is.
fn widen_limits() {
    let neighbours = ["gc_thresh1", "gc_thresh2", "gc_thresh3"]
        .map(|name| format!("/proc/sys/net/ipv4/neigh/default/{name}"));
    let backlog = "/proc/sys/net/core/netdev_max_backlog".to_owned();
    for path in neighbours.into_iter().chain([backlog]) {
        if std::fs::write(path, "1000000").is_err() {
            return;
        }
    }
}

struct Steps {
    last: WallTime,
    steps: Vec<Step>,
}

impl Steps {
    fn done(&mut self, step: &str) {
        let now = WallTime::now();
        let took_ms = now.since(self.last).as_micros() / 1_000;
        self.steps.push(Step { step: step.into(), took_ms });
        self.last = now;
    }
}
