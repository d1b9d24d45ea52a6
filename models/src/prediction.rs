//! How long an MPI program takes on a fabric, before anything is cabled.
//!
//! From the ground up:
//! - [`Network`]: the lanes of a fabric and the way of every stream, which are those of its plan;
//! - [`Actor`], [`Step`], [`Message`]: a program as a communication schedule;
//! - [`RankProgram`]: a program rank by rank, which every method can run;
//! - [`flow`]: the program on the network, streams sharing lanes max-min fairly;
//! - [`packet`]: rank by rank and frame by frame, through switches with queues and pause frames;
//! - [`Bounds`]: what is true however streams share;
//! - [`hpl`] and [`npb`]: the skeletons of HPL and of the NAS Parallel Benchmarks, these with
//!   [`collective`] operations by the algorithms of their library;
//! - [`trace`]: programs as they were recorded;
//! - [`Input`]: machine and program as a file says them; [`predict`] joins all of it.
//!
//! Why `models` knows `fabric`: paths come from the plan and are never worked out a second time, and
//! two engines meet in a composition. What a wiring could be as other topologies ([`variant`]) stands
//! here too, since both the command line and the benches ask for it.

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
use meikyo_units::{Bytes, Nanos};

use crate::completions::count_f64;
use flow::FlowRun;
use hpl::Hpl;
use npb::{Npb, WrongRanks};
use packet::{PacketError, PacketRun};

pub use bounds::{Bounds, bounds};
pub use course::Courses;
pub use input::{Input, Method, Program, Replay, Settings, Skeleton};
pub use network::{Lane, LaneEnd, LanePlace, Network, Rates};
pub use placement::{Deal, Placement, TooManyRanks};
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
    let placement = Placement::new(input.deal, ranks, network.hosts(), input.slots, input.seed)
        .map_err(PredictError::Placement)?;
    match &input.program {
        Program::Hpl(hpl) => predict_hpl(&network, &placement, input, hpl),
        Program::Npb(npb) => predict_npb(&network, &placement, input, npb),
        Program::Trace(replay) => {
            let Replay { trace, units_per_s, collectives } = replay;
            let program = trace.program(*units_per_s, collectives);
            predict_trace(&network, &placement, input, &program)
        }
    }
}

fn predict_hpl(
    network: &Network,
    placement: &Placement,
    input: &Input,
    hpl: &Hpl,
) -> Result<Prediction, PredictError> {
    if let Some(memory) = input.memory {
        let hosts = network.hosts();
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
        let (outcome, bounds) = run_ranks(network, placement, input, &program)?;
        return Ok(outcome.told(network, bounds, (hpl.gflops(outcome.time), "GFLOPS"), None));
    }
    let bounds = bounds(network, hpl.actors(network, placement));
    let run = flow::run(network, hpl.actors(network, placement), input.flow);
    let run = run.map_err(PredictError::Deadlock)?;
    let outcome = Outcome::of_flow(run, hpl.columns);
    Ok(outcome.told(network, bounds, (hpl.gflops(outcome.time), "GFLOPS"), None))
}

fn predict_npb(
    network: &Network,
    placement: &Placement,
    input: &Input,
    npb: &Npb,
) -> Result<Prediction, PredictError> {
    let program = npb.program().map_err(PredictError::Ranks)?;
    let (outcome, bounds) = run_ranks(network, placement, input, &program)?;
    let [sampled, all] = [npb.sampled(), npb.iterations()];
    let of_all = |count: u64| {
        let whole = u128::from(count) * u128::from(all) / u128::from(sampled);
        u64::try_from(whole).expect("a run of less than 584 years, and fewer than 2^64 octets")
    };
    let whole = |span: Nanos| Nanos::new(of_all(span.get()));
    let rate = (npb.mops_per_rank(whole(outcome.time)), "Mop/s for each rank");
    let told = outcome.told(network, bounds, rate, Some([sampled, all]));
    let bounds =
        Bounds { compute: whole(bounds.compute), busiest_lane: whole(bounds.busiest_lane) };
    let carried = |(place, data): (LanePlace, Bytes)| (place, Bytes::new(of_all(data.get())));
    let carried = told.carried.iter().copied().map(carried).collect();
    let courses = told.courses.map(|courses| courses.stretched(of_all));
    Ok(Prediction { time: whole(outcome.time), bounds, carried, courses, ..told })
}

fn predict_trace(
    network: &Network,
    placement: &Placement,
    input: &Input,
    program: &RankProgram,
) -> Result<Prediction, PredictError> {
    const HOUR_S: f64 = 3600.0;
    let (outcome, bounds) = run_ranks(network, placement, input, program)?;
    let rate = (HOUR_S / outcome.time.as_secs_f64(), "runs an hour");
    Ok(outcome.told(network, bounds, rate, None))
}

/// Runs a program that is known rank by rank.
fn run_ranks(
    network: &Network,
    placement: &Placement,
    input: &Input,
    program: &RankProgram,
) -> Result<(Outcome, Bounds), PredictError> {
    let bounds = bounds(network, program.actors(placement));
    let outcome = match input.method {
        Method::Flow => {
            let run = flow::run(network, program.actors(placement), input.flow);
            Outcome::of_flow(run.map_err(PredictError::Deadlock)?, program.ranks())
        }
        Method::Packet => {
            let run = packet::run(network, program, placement, input.packet);
            Outcome::of_packet(run.map_err(PredictError::Packet)?, program.ranks())
        }
    };
    Ok((outcome, bounds))
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
