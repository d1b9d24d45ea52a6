//! How long an MPI program takes on a fabric, before anything is cabled.
//!
//! From the ground up:
//! - [`Network`]: the lanes of a fabric and the way of every stream, which are those of its plan;
//! - [`Actor`], [`Step`], [`Message`]: a program as a communication schedule;
//! - [`RankProgram`]: a program rank by rank, which every method can run;
//! - [`flow`]: the program on the network, streams sharing lanes max-min fairly;
//! - [`packet`]: rank by rank and frame by frame, through switches with queues and pause frames;
//! - [`Loads`]: what is true however streams share, and what follows if they are staggered;
//! - [`hpl`] and [`npb`]: the skeletons of HPL and of the NAS Parallel Benchmarks, these with
//!   [`collective`] operations by the algorithms of their library;
//! - [`trace`]: programs as they were recorded;
//! - [`Input`]: machine and program as a file says them; [`predict`] joins all of it.
//!
//! Why `models` knows `fabric`: paths come from the plan and are never worked out a second time, and
//! two engines meet in a composition. What a wiring could be as other topologies ([`variant`]) stands
//! here too, since both the command line and the benches ask for it.

mod background;
mod bounds;
pub mod collective;
mod course;
pub mod flow;
pub mod hpl;
mod input;
mod network;
pub mod npb;
pub mod packet;
mod placement;
mod program;
mod ranks;
mod routes;
mod sharing;
mod small_queues;
pub mod trace;
mod variants;

use meikyo_fabric::{Plan, Wiring};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{Bytes, Nanos};

use crate::completions::count_f64;
use background::Streams;
use flow::FlowRun;
use hpl::Hpl;
use npb::{Npb, WrongRanks};
use packet::{PacketError, PacketRun};

pub use background::{Background, WrongBackground};
pub use bounds::{Bounds, Loads, bounds, loads};
pub use course::Courses;
pub use input::{Input, Method, Program, Replay, Settings, Skeleton};
pub use network::{Lane, LaneEnd, LanePlace, Network, Rates};
pub use placement::{Deal, Placement, TooManyRanks, WrongList};
pub use program::{Actor, Heard, LookAgain, Message, Messaging, Step, Stream};
pub use ranks::{Op, RankActor, RankProgram, Script, Steps, connection};
pub use sharing::Congestion;
pub use variants::{TopologyKind, VariantError, variant};

/// What is predicted of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// How long it takes.
    pub time: Nanos,
    /// Its rate, in [`Prediction::unit`].
    pub rate: f64,
    /// What the rate is counted in.
    pub unit: &'static str,
    /// Iterations that were run of all that there are, if these are fewer: the time follows from them.
    pub sampled: Option<[u32; 2]>,
    /// What it cannot be faster than, and what it would take without any overlap.
    pub bounds: Bounds,
    /// On what the processes spend their time, as shares of the whole that add up to at most 1.
    pub breakdown: Vec<(&'static str, f64)>,
    /// The lanes that carry most for their rate, the busiest first.
    pub busiest: Vec<Busy>,
    /// Data of programs on each lane in the whole run, those within hosts included.
    pub carried: Vec<(LanePlace, Bytes)>,
    /// The same over time, in the same order, if the input asks for it; of lanes within hosts by the flow
    /// method only. Where iterations were run of all that there are, they are stretched.
    pub courses: Option<Courses>,
    /// What happened to frames; nothing by the flow method.
    pub frames: Option<Frames>,
}

/// What happened to the frames of a run, or of the iterations that were run of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Frames, counted on each cable that they went along.
    pub hops: u64,
    /// Frames that were lost, and sent again.
    pub lost: u64,
    /// How often a pause frame stopped somebody.
    pub stops: u64,
}

/// How busy a lane is.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy {
    /// The lane in words.
    pub lane: String,
    /// What went over it in the whole run.
    pub carried: Bytes,
    /// That, as a share of what it could have carried in that time.
    pub share: f64,
}

/// Why nothing is predicted.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// More ranks than slots.
    #[error("the ranks do not fit")]
    Placement(#[source] TooManyRanks),
    /// A list of hosts that does not fit ranks or fabric.
    #[error(transparent)]
    List(WrongList),
    /// Background traffic that cannot be.
    #[error(transparent)]
    Background(WrongBackground),
    /// The benchmark does not run on so many ranks.
    #[error(transparent)]
    Ranks(WrongRanks),
    /// The matrix is larger than the memory of all hosts.
    #[error("the matrix of {matrix} is larger than the memory of {hosts} hosts with {memory} each")]
    Memory {
        /// The size of the matrix.
        matrix: Bytes,
        /// How many hosts there are.
        hosts: usize,
        /// What each host gives to the matrix.
        memory: Bytes,
    },
    /// HPL rank by rank has more messages than are simulated.
    #[error(
        "HPL rank by rank has about {messages:.0} messages, more than {} million",
        HPL_MESSAGES_MAX / 1e6
    )]
    TooManyMessages {
        /// How many it has.
        messages: f64,
    },
    /// The run does not end.
    #[error("the program does not end")]
    Deadlock(#[source] flow::Deadlock),
    /// The run frame by frame does not end.
    #[error(transparent)]
    Packet(PacketError),
}

/// HPL by packets has at most so many messages: its program takes 3 GB then, and its run hours.
const HPL_MESSAGES_MAX: f64 = 2e7;

/// How many lanes [`Prediction::busiest`] lists at most.
const BUSIEST_MAX: usize = 10;

/// Predicts a program on a wiring under a plan.
///
/// # Errors
/// If the program does not fit the hosts, does not run on so many ranks, or does not end.
pub fn predict(wiring: &Wiring, plan: &Plan, input: &Input) -> Result<Prediction, PredictError> {
    let network = Network::new(wiring, plan, input.rates, input.seed);
    let ranks = input.program.ranks();
    let placement = match &input.list {
        Some(list) => {
            let names = wiring.hosts.iter().map(|host| host.name.as_str());
            Placement::listed(list, ranks, names).map_err(PredictError::List)?
        }
        None => Placement::new(input.deal, ranks, network.hosts(), input.slots, input.seed)
            .map_err(PredictError::Placement)?,
    };
    let streams = Streams::new(wiring, &input.background).map_err(PredictError::Background)?;
    // Whatever the method: what leaves nothing is refused.
    let left = streams.taken_from(&network, ranks).map_err(PredictError::Background)?;
    let network = if input.method == Method::Packet { network } else { left };
    let fabric = Fabric { network: &network, placement: &placement, streams: &streams };
    match &input.program {
        Program::Hpl(hpl) => predict_hpl(&fabric, input, hpl),
        Program::Npb(npb) => predict_npb(&fabric, input, npb),
        Program::Trace(replay) => {
            let Replay { trace, units_per_s, collectives } = replay;
            let program = trace.program(*units_per_s, collectives);
            predict_trace(&fabric, input, &program)
        }
    }
}

/// What a program runs on.
struct Fabric<'a> {
    network: &'a Network,
    placement: &'a Placement,
    streams: &'a Streams,
}

fn predict_hpl(fabric: &Fabric<'_>, input: &Input, hpl: &Hpl) -> Result<Prediction, PredictError> {
    if let Some(memory) = input.memory {
        let hosts = fabric.network.hosts();
        let all = u128::from(memory.get()) * hosts as u128;
        if u128::from(hpl.matrix().get()) > all {
            return Err(PredictError::Memory { matrix: hpl.matrix(), hosts, memory });
        }
    }
    if input.method == Method::Packet {
        let messages = hpl.messages();
        if messages > HPL_MESSAGES_MAX {
            return Err(PredictError::TooManyMessages { messages });
        }
        let program = hpl.program(&hpl.drawn_pivots());
        let (outcome, bounds) = run_ranks(fabric, input, &program)?;
        return Ok(outcome.told(
            fabric.network,
            bounds,
            (hpl.gflops(outcome.time), "GFLOPS"),
            None,
        ));
    }
    let Fabric { network, placement, .. } = *fabric;
    let loads = loads(network, hpl.actors(network, placement));
    let outcome = if input.method == Method::Static {
        Outcome::of_loads(&loads)
    } else {
        let run = flow::run(network, hpl.actors(network, placement), input.flow);
        Outcome::of_flow(run.map_err(PredictError::Deadlock)?, hpl.columns)
    };
    Ok(outcome.told(fabric.network, loads.bounds, (hpl.gflops(outcome.time), "GFLOPS"), None))
}

fn predict_npb(fabric: &Fabric<'_>, input: &Input, npb: &Npb) -> Result<Prediction, PredictError> {
    let program = npb.program().map_err(PredictError::Ranks)?;
    let (outcome, bounds) = run_ranks(fabric, input, &program)?;
    let [sampled, all] = [npb.sampled(), npb.iterations()];
    let of_all = |count: u64| {
        let whole = u128::from(count) * u128::from(all) / u128::from(sampled);
        u64::try_from(whole).expect("a run of less than 584 years, and fewer than 2^64 octets")
    };
    let whole = |span: Nanos| Nanos::new(of_all(span.get()));
    let rate = (npb.mops_per_rank(whole(outcome.time)), "Mop/s for each rank");
    let told = outcome.told(fabric.network, bounds, rate, Some([sampled, all]));
    let bounds =
        Bounds { compute: whole(bounds.compute), busiest_lane: whole(bounds.busiest_lane) };
    let carried = |(place, data): (LanePlace, Bytes)| (place, Bytes::new(of_all(data.get())));
    let carried = told.carried.iter().copied().map(carried).collect();
    let courses = told.courses.map(|courses| courses.stretched(of_all));
    Ok(Prediction { time: whole(outcome.time), bounds, carried, courses, ..told })
}

fn predict_trace(
    fabric: &Fabric<'_>,
    input: &Input,
    program: &RankProgram,
) -> Result<Prediction, PredictError> {
    const HOUR_S: f64 = 3600.0;
    let (outcome, bounds) = run_ranks(fabric, input, program)?;
    let rate = (HOUR_S / outcome.time.as_secs_f64(), "runs an hour");
    Ok(outcome.told(fabric.network, bounds, rate, None))
}

/// Runs a program that is known rank by rank.
fn run_ranks(
    fabric: &Fabric<'_>,
    input: &Input,
    program: &RankProgram,
) -> Result<(Outcome, Bounds), PredictError> {
    let Fabric { network, placement, .. } = *fabric;
    let loads = loads(network, program.actors(placement));
    let outcome = match input.method {
        Method::Static => Outcome::of_loads(&loads),
        Method::Flow => {
            let run = flow::run(network, program.actors(placement), input.flow);
            Outcome::of_flow(run.map_err(PredictError::Deadlock)?, program.ranks())
        }
        Method::Packet => {
            let run = run_packets(fabric, input, program, &loads.bounds);
            Outcome::of_packet(run.map_err(PredictError::Packet)?, program.ranks())
        }
    };
    Ok((outcome, loads.bounds))
}

/// Runs a program frame by frame, with traffic of others beside it for as long as it takes.
fn run_packets(
    fabric: &Fabric<'_>,
    input: &Input,
    program: &RankProgram,
    bounds: &Bounds,
) -> Result<PacketRun, PacketError> {
    let Fabric { network, placement, streams } = *fabric;
    if streams.is_empty() {
        return packet::run(network, program, placement, input.packet);
    }
    let sequential = Options::new(Scheduler::Sequential, 1);
    let mut until = bounds.in_turn() * 2 + Nanos::from_millis(1);
    loop {
        let (all, places) = streams.beside(program, placement, until);
        let counted = (&all, program.ranks());
        let run = packet::run_counted(network, counted, &places, input.packet, &sequential)?;
        if run.time <= until {
            return Ok(run);
        }
        until = run.time * 2;
    }
}

/// What a method says of what was run.
struct Outcome {
    time: Nanos,
    /// Who spent that time, each all of it.
    actors: usize,
    spent: Vec<(&'static str, Nanos)>,
    carried: Vec<Bytes>,
    courses: Option<Courses>,
    frames: Option<Frames>,
}

impl Outcome {
    fn of_loads(loads: &Loads) -> Self {
        let Loads { computed, carried, .. } = loads;
        let sum = computed.iter().fold(Nanos::ZERO, |sum, span| sum + *span);
        Self {
            time: loads.staggered(),
            actors: computed.len(),
            spent: vec![("compute", sum)],
            carried: carried.clone(),
            courses: None,
            frames: None,
        }
    }

    fn of_flow(run: FlowRun, actors: usize) -> Self {
        let FlowRun { time, spent, carried, courses, .. } = run;
        Self { time, actors, spent, carried, courses, frames: None }
    }

    fn of_packet(run: PacketRun, actors: usize) -> Self {
        let PacketRun { time, spent, carried, courses, hops, lost, stops, .. } = run;
        let frames = Some(Frames { hops, lost, stops });
        Self { time, actors, spent, carried, courses, frames }
    }

    fn told(
        &self,
        network: &Network,
        bounds: Bounds,
        (rate, unit): (f64, &'static str),
        sampled: Option<[u32; 2]>,
    ) -> Prediction {
        let all_s = self.time.as_secs_f64() * count_f64(self.actors as u64);
        let share = |&(what, span): &(&'static str, Nanos)| (what, span.as_secs_f64() / all_s);
        Prediction {
            time: self.time,
            rate,
            unit,
            sampled: sampled.filter(|[run, all]| run < all),
            bounds,
            breakdown: self.spent.iter().map(share).collect(),
            busiest: self.busiest(network),
            carried: self.carried(network),
            courses: self.courses.clone(),
            frames: self.frames,
        }
    }

    fn carried(&self, network: &Network) -> Vec<(LanePlace, Bytes)> {
        let places = network.lanes().iter().map(|lane| lane.place);
        places.zip(self.carried.iter().copied()).collect()
    }

    /// The busiest lanes; those within hosts are not cables and left out.
    fn busiest(&self, network: &Network) -> Vec<Busy> {
        let time_s = self.time.as_secs_f64();
        let lanes = network.lanes().iter().zip(&self.carried).enumerate();
        let mut busy: Vec<(usize, Bytes, f64)> = lanes
            .filter(|(_, (lane, _))| !matches!(lane.place, LanePlace::Within { .. }))
            .map(|(at, (lane, &carried))| {
                (at, carried, count_f64(carried.get()) / (lane.bytes_per_s * time_s))
            })
            .collect();
        busy.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.0.cmp(&other.0)));
        busy.truncate(BUSIEST_MAX);
        let told = |(at, carried, share)| Busy { lane: network.lane_name(at), carried, share };
        busy.into_iter().map(told).collect()
    }
}
