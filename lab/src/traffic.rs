//! Frames and pings between hosts, sent and counted by one process inside: no program per host.
//!
//! It runs in the machine that hosts and switches are in, and reaches into their namespaces.

mod frames;
mod outage;
mod ping;
mod tables;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use meikyo_spaces::netlink::{Netlink, NetlinkError};
use meikyo_spaces::process;
use rustix::thread::LinkNameSpaceType;
use serde::{Deserialize, Serialize};

use crate::blueprint::Blueprint;
use crate::network;

/// Something to be done or found out inside, in one go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Every host pings every other one, over the Internet protocol.
    PingAll {
        /// How long an answer is waited for, in milliseconds.
        patience_ms: u32,
    },
    /// Sends frames and counts where they arrive.
    Send {
        /// The frames, in this order.
        frames: Vec<Frame>,
        /// Whether ports are counted after every frame, for its path; else only after all.
        each: bool,
        /// For how long nothing must arrive until all has, in milliseconds.
        quiet_ms: u32,
    },
    /// Sends bytes as they are from a host: from this host, these bytes.
    SendRaw(Vec<(usize, Vec<u8>)>),
    /// The names of switches and hosts.
    Names,
    /// What every switch has learned.
    Tables,
    /// What every port has counted.
    Counters,
    /// Forgets what switches have learned.
    Flush,
    /// Cuts a cable or mends it, by its place in the blueprint.
    SetCable {
        /// The cable's place among those of the blueprint.
        cable: usize,
        /// Whether it carries frames.
        up: bool,
    },
    /// Cuts cables, gives host ports other VLANs, waits until pairs answer; then puts all back.
    Outage {
        /// The cables, by their places in the blueprint.
        cables: Vec<usize>,
        /// Which ports get which VLAN.
        moves: Vec<PortMove>,
        /// The hosts that lose each other, in parts; empty if none do.
        parts: Vec<Vec<usize>>,
        /// How long an answer to a ping is waited for, in milliseconds.
        patience_ms: u32,
        /// How long pairs may take to answer again, in milliseconds.
        deadline_ms: u32,
    },
}

/// A port of a switch that gets another VLAN for frames without a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMove {
    /// The switch, by its place among switches.
    pub switch: usize,
    /// The port's device.
    pub device: String,
    /// The VLAN that the port is a member of.
    pub vlan: u16,
}

/// How an outage went. Pairs are from, to; times are from the cut on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Pairs that had no answer while the cable was cut and no port moved.
    pub lost_at_cut: Vec<(usize, usize)>,
    /// When both ends had noticed, in microseconds.
    pub noticed_us: u64,
    /// When all ports had their VLANs, in microseconds.
    pub applied_us: u64,
    /// When the last of the pairs of one part answered, in microseconds; `None` if some never did.
    pub answered_us: Option<u64>,
    /// Pairs of one part that did not answer until the deadline.
    pub lost: Vec<(usize, usize)>,
}

/// A frame of the shortest length, of a protocol of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// From this host, by its place among hosts.
    pub from: usize,
    /// To this host; `None` is a broadcast.
    pub to: Option<usize>,
    /// With the tag of a VLAN.
    pub vlan: Option<u16>,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// Of [`Task::PingAll`].
    Pinged {
        /// How many pairs were tried, each direction for itself.
        pairs: usize,
        /// Those without an answer: from, to.
        lost: Vec<(usize, usize)>,
    },
    /// Of [`Task::Send`], by frame.
    Sent(Vec<Trace>),
    /// Of [`Task::Names`].
    Names {
        /// The switches, in order.
        switches: Vec<String>,
        /// The hosts, in order.
        hosts: Vec<String>,
    },
    /// Of [`Task::Tables`], by switch.
    Tables(Vec<Vec<Entry>>),
    /// Of [`Task::Counters`], by switch.
    Counters(Vec<BTreeMap<String, Counters>>),
    /// Of [`Task::Outage`].
    Outage(Outage),
    /// Of the others.
    Nothing,
}

/// Where a frame went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// How many copies each host received; hosts without are left out.
    pub copies: BTreeMap<usize, usize>,
    /// How many frames each port sent while this one was on its way: switch, device, frames. Only if
    /// asked for; of the last frame if only once.
    pub sent_by: Vec<(usize, String, u64)>,
}

/// An address that a switch has learned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// The VLAN that the address was learned in.
    pub vlan: u16,
    /// The address.
    pub mac: [u8; 6],
    /// At this device of the switch.
    pub device: String,
}

/// What a device has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Whether it is switched on; the ends of a cable that was cut are not.
    pub up: bool,
    /// Frames that came in.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that went out.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// A task could not be done.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It is asked for outside of a lab.
    #[error("this is no lab: there is no blueprint")]
    NoLab,
    /// A host, switch or cable that does not exist.
    #[error("there is no {kind} {place}")]
    Unknown {
        /// What was looked for: a host, a switch or a cable.
        kind: &'static str,
        /// Its place among those of its kind.
        place: usize,
    },
    /// A namespace or a socket.
    #[error("cannot {doing} in `{space}`")]
    Io {
        /// The operation that failed, in words.
        doing: &'static str,
        /// Namespace in which it failed.
        space: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// A routing socket.
    #[error("cannot ask `{space}`")]
    Netlink {
        /// Namespace that was asked.
        space: String,
        /// The error of the routing socket.
        #[source]
        source: NetlinkError,
    },
}

/// Does a task; only for a process inside.
///
/// # Errors
/// [`TaskError`]; what was done until then remains.
pub(crate) fn perform(task: &Task) -> Result<Done, TaskError> {
    let blueprint = crate::inside::blueprint_inside().ok_or(TaskError::NoLab)?;
    let inside = Inside { blueprint };
    match task {
        Task::PingAll { patience_ms } => ping::all(&inside, *patience_ms),
        Task::Send { frames, each, quiet_ms } => frames::send(&inside, frames, *each, *quiet_ms),
        Task::SendRaw(frames) => frames::send_raw(&inside, frames).map(|()| Done::Nothing),
        Task::Names => {
            let names = |spaces: Vec<usize>| {
                spaces.into_iter().map(|space| inside.name(space).to_owned()).collect()
            };
            Ok(Done::Names { switches: names(inside.switches()), hosts: names(inside.hosts()) })
        }
        Task::Tables => tables::tables(&inside),
        Task::Counters => Ok(Done::Counters(tables::Counting::open(&inside)?.read(&inside)?)),
        Task::Flush => tables::flush(&inside).map(|()| Done::Nothing),
        Task::SetCable { cable, up } => {
            tables::set_cable(&inside, *cable, *up).map(|()| Done::Nothing)
        }
        Task::Outage { cables, moves, parts, patience_ms, deadline_ms } => {
            let plan = outage::Plan { cables, moves, parts };
            outage::run(&inside, &plan, *patience_ms, *deadline_ms).map(Done::Outage)
        }
    }
}

/// The spaces that this process reaches into.
struct Inside {
    blueprint: Blueprint,
}

impl Inside {
    /// The places of the hosts among the spaces.
    fn hosts(&self) -> Vec<usize> {
        self.blueprint.hosts().map(|(place, _)| place).collect()
    }

    /// The places of the switches among the spaces.
    fn switches(&self) -> Vec<usize> {
        self.blueprint.switches().map(|(place, _)| place).collect()
    }

    /// The place of a host among the spaces.
    fn host(&self, place: usize) -> Result<usize, TaskError> {
        let found = self.blueprint.hosts().nth(place).map(|(place, _)| place);
        found.ok_or(TaskError::Unknown { kind: "host", place })
    }

    fn name(&self, space: usize) -> &str {
        &self.blueprint.spaces[space].name
    }

    fn failed(&self, space: usize, doing: &'static str) -> impl Fn(io::Error) -> TaskError + use<> {
        let space = self.name(space).to_owned();
        move |source| TaskError::Io { doing, space: space.clone(), source }
    }

    /// Opens something in the namespace of a space; this process stays there.
    fn within<T>(
        &self,
        space: usize,
        doing: &'static str,
        open: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, TaskError> {
        let failed = self.failed(space, doing);
        let namespace = File::open(network::namespace_path(self.name(space))).map_err(&failed)?;
        process::enter(&namespace, LinkNameSpaceType::Network).map_err(&failed)?;
        open().map_err(&failed)
    }

    fn netlink(&self, space: usize) -> Result<Netlink, TaskError> {
        self.within(space, "enter", || Ok(()))?;
        Netlink::open().map_err(self.refused(space))
    }

    fn refused(&self, space: usize) -> impl Fn(NetlinkError) -> TaskError + use<> {
        let space = self.name(space).to_owned();
        move |source| TaskError::Netlink { space: space.clone(), source }
    }
}
