//! The packet method: every frame of every message, through switches that store and forward.
//!
//! Hosts and switches are LPs of `sim`, so that a run is the same under every scheduler. Ranks and
//! messages are as in [`super::flow`]: eager ones at once, larger ones announced and asked for, both by
//! frames of their own here. What differs is between them:
//!
//! - a card sends one frame of each message in turn, as long as nobody stops it;
//! - a switch sends a frame on once it has arrived whole, in the order of arrival at each port, with a
//!   queue in front of it;
//! - **with pause frames** (802.3x) an input whose share of the memory is used up stops its sender,
//!   with all that the sender has for other ports (head-of-line blocking), and nothing is lost unless the
//!   shared memory is smaller than the shares;
//! - **without**, a frame that finds the queue of its port full is lost, and its host sends it again
//!   after a time-out: what TCP does at worst;
//! - **with TCP** ([`Tcp`]) each pair of ranks has a connection with windows that open and close,
//!   acknowledgements that take room on the way back, and time-outs where nothing else finds a loss.
//!   Its frames wait at the card in the order in which the windows let them go.
//!
//! A frame is one event at each switch; that it leaves a queue is none of its own (module `agenda`), unless the
//! switch has nothing else to do for as long as a frame takes, or lets a sender go on with it. Full frames of a
//! message that follow each other are one event together, as long as nothing comes between (module
//! `switch::train`). Without TCP a host hears of whole messages. At one instant frames arrive in the order of their inputs, then pause frames,
//! and then frames leave. Not modelled are addresses that switches have not learned, and frames of
//! the switches' own.

mod agenda;
mod cards;
mod coming;
mod connection;
mod host;
mod keys;
mod known;
mod port;
mod signal;
mod switch;
mod tcp;
mod ways;

use std::sync::Arc;

use meikyo_sim::{Context, Lp, LpId, Model, Options, RunError, Scheduler, run_built};
use meikyo_undo::variants;
use meikyo_units::{Bytes, Nanos, SimTime};

use super::background::BACKGROUND;
use super::course::{Course, Courses};
use super::flow::{Deadlock, Waiting};
use super::network::Network;
use super::placement::Placement;
use super::program::Messaging;
use super::ranks::{RankProgram, number};

use host::{Host, Program};

pub(crate) use cards::Cards;
pub(crate) use keys::declare;
pub(crate) use known::Shared;
pub(crate) use port::Port;
pub(crate) use signal::{Kind, Name, Signal};
pub(crate) use switch::Switch;

pub use tcp::{Control, Stack, Tcp};

/// What cables, switches and hosts are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketOptions {
    /// What hosts and their library do with messages.
    pub messaging: Messaging,
    /// From port to port beyond a frame's own time: the cable, and what the switch needs. Not 0.
    pub hop_delay: Nanos,
    /// Whether full queues stop their senders by pause frames.
    pub pause: bool,
    /// What an input may hold with pause frames, and an output without.
    pub port_buffer: Bytes,
    /// What all queues of a switch may hold together, if that is less than all of them.
    pub memory: Option<Bytes>,
    /// When a lost frame is sent again; with TCP, what its time-outs are beyond the round trip at least.
    pub time_out: Nanos,
    /// Frames of a million that a switch finds spoiled, and forgets.
    pub spoiled_ppm: u32,
    /// TCP, unless frames are sent as fast as the cards can.
    pub tcp: Option<Tcp>,
    /// Whether token buckets make the rate of cables, as in labs of namespaces: after a rest a frame passes at once,
    /// and the next one waits for as long as the frame would take; no preamble, gap or least size is counted.
    pub shaped: bool,
    /// Whether it is told what lanes carry over time.
    pub courses: bool,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketRun {
    /// When the last rank was done.
    pub time: Nanos,
    /// What all ranks spent on each thing that they named.
    pub spent: Vec<(&'static str, Nanos)>,
    /// For each lane what data went over it; those that were sent again count again.
    pub carried: Vec<Bytes>,
    /// The same over time, if [`PacketOptions::courses`] asks for it; nothing of lanes within hosts.
    pub courses: Option<Courses>,
    /// Frames, counted on each lane that they went along.
    pub hops: u64,
    /// Frames that were lost, and sent again.
    pub lost: u64,
    /// How often a pause frame stopped somebody.
    pub stops: u64,
    /// The most octets that waited in any switch at once.
    pub queued_max: Bytes,
    /// Events of the simulation.
    pub events: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// Nothing is left to happen, and ranks wait.
    #[error("the program does not end{}", in_words(stopped))]
    Deadlock {
        /// Who waits for whom.
        source: Deadlock,
        /// Ports that pause frames have stopped, by the names of their lanes: a cycle of them never
        /// goes on.
        stopped: Vec<String>,
    },
    /// The simulation ends.
    #[error("the simulation fails")]
    Simulation(#[source] RunError),
}

fn in_words(stopped: &[String]) -> String {
    const TOLD_MAX: usize = 4;
    if stopped.is_empty() {
        return String::new();
    }
    let told = stopped[..stopped.len().min(TOLD_MAX)].join("; ");
    format!("; {} ports are stopped by pause frames: {told}", stopped.len())
}

/// A device of the fabric.
#[derive(Clone, Debug, PartialEq)]
enum Device {
    Host(Host),
    Switch(Switch),
}
variants!(Device { Host(Host), Switch(Switch) });

impl Lp for Device {
    type Message = Signal;

    fn start(&mut self, context: &mut impl Context<Signal>) {
        if let Self::Host(host) = self {
            host.start(context);
        }
    }

    fn handle(&mut self, signal: Signal, context: &mut impl Context<Signal>) {
        match self {
            Self::Host(host) => host.handle(signal, context),
            Self::Switch(switch) => switch.handle(signal, context),
        }
    }
}

/// Runs a program on a network, one event after the other.
///
/// # Errors
/// If ranks wait for messages that nobody sends, or ports for each other.
pub fn run(
    network: &Network,
    program: &RankProgram,
    placement: &Placement,
    options: PacketOptions,
) -> Result<PacketRun, PacketError> {
    run_under(network, program, placement, options, &Options::new(Scheduler::Sequential, 1))
}

/// As [`run`], under any scheduler.
///
/// # Errors
/// As [`run`], and where the scheduler refuses.
pub fn run_under(
    network: &Network,
    program: &RankProgram,
    placement: &Placement,
    options: PacketOptions,
    scheduling: &Options,
) -> Result<PacketRun, PacketError> {
    run_counted(network, (program, program.ranks()), placement, options, scheduling)
}

/// As [`run_under`]: of the program's ranks only the first ones count, and others make traffic beside them.
pub(super) fn run_counted(
    network: &Network,
    (program, counted): (&RankProgram, usize),
    placement: &Placement,
    options: PacketOptions,
    scheduling: &Options,
) -> Result<PacketRun, PacketError> {
    let hosts = (0..program.ranks()).map(|rank| placement.host(rank)).collect();
    let shared = Shared::new(network.clone(), &program.pairs(), hosts, options);
    let program = Program::new(program.clone(), counted);
    run_shared(&Arc::new(shared), &Arc::new(program), scheduling)
}

fn run_shared(
    shared: &Arc<Shared>,
    program: &Arc<Program>,
    scheduling: &Options,
) -> Result<PacketRun, PacketError> {
    let outcome = run_built(|| model(shared, program), scheduling, &mut meikyo_sim::Unobserved);
    let outcome = outcome.map_err(PacketError::Simulation)?;
    result(shared, program, &outcome.lps, outcome.events)
}

fn model(shared: &Arc<Shared>, program: &Arc<Program>) -> Model<Device> {
    let network = &shared.network;
    let mut model = Model::new(0);
    let hosts = model.group("hosts", number(network.hosts()));
    let switches = model.group("switches", number(network.switches()));
    shared.link(&mut model, switches, &[hosts]);
    let place = |lp: LpId| usize::try_from(lp.get()).expect("32 bits are a place");
    model.fill(hosts, |lp| {
        Device::Host(Host::new(Arc::clone(shared), Arc::clone(program), place(lp)))
    });
    let first = network.hosts();
    let switch = |lp| Device::Switch(Switch::new(Arc::clone(shared), place(lp) - first));
    model.fill(switches, switch);
    model
}

fn result(
    shared: &Shared,
    program: &Program,
    devices: &[Device],
    events: u64,
) -> Result<PacketRun, PacketError> {
    let network = &shared.network;
    let mut spent = vec![0; program.names.len()];
    let mut run = PacketRun {
        time: Nanos::ZERO,
        spent: Vec::new(),
        carried: vec![Bytes::default(); network.lanes().len()],
        courses: None,
        hops: 0,
        lost: 0,
        stops: 0,
        queued_max: Bytes::default(),
        events,
    };
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut stopped = Vec::new();
    let mut courses = vec![Course::default(); network.lanes().len()];
    let (mut last, mut all_done) = (0, true);
    for device in devices {
        let ports: Vec<_> = match device {
            Device::Host(host) => {
                last = last.max(host.done_at().unwrap_or(0));
                all_done &= host.done_at().is_some();
                host.add_spent(&mut spent);
                waiting.extend(host.waiting());
                run.carried[host.within_lane] = Bytes::new(host.within.get());
                host.cards.ports().collect()
            }
            Device::Switch(switch) => {
                run.lost += switch.lost();
                run.stops += switch.stops();
                run.queued_max = run.queued_max.max(Bytes::new(switch.octets_max()));
                switch.ports().collect()
            }
        };
        for port in ports {
            let lane = usize::try_from(port.lane).expect("32 bits are a place");
            run.carried[lane] = port.carried();
            run.hops += port.frames();
            if let Some(course) = port.course() {
                courses[lane].clone_from(course);
            }
            if port.is_stopped() {
                stopped.push(network.lane_name(lane));
            }
        }
    }
    let time = SimTime::from_nanos(last).since(SimTime::START);
    if !all_done {
        let actors = program.counted;
        let source = Deadlock { after: time, actors, waiting };
        return Err(PacketError::Deadlock { source, stopped });
    }
    let names = program.names.iter().zip(spent).filter(|(name, _)| **name != BACKGROUND);
    run.spent = names.map(|(name, nanos)| (*name, Nanos::new(nanos))).collect();
    run.time = time;
    run.courses = shared.options.courses.then(|| Courses::new(courses, time));
    Ok(run)
}

#[cfg(test)]
mod tests;
