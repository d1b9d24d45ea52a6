//! How long an MPI program takes on a fabric, before anything is cabled.
//!
//! From the ground up:
//! - [`Network`]: the lanes of a fabric and the way of every stream, which are those of its plan;
//! - [`Actor`], [`Step`], [`Message`]: a program as a communication schedule;
//! - [`flow`]: the program on the network, streams sharing lanes max-min fairly;
//! - [`Bounds`]: what is true however streams share;
//! - [`hpl`]: the skeleton of HPL;
//! - [`Input`]: machine and program as a file says them; [`predict_hpl`] joins all of it.
//!
//! Why `models` knows `fabric`: paths come from the plan and are never worked out a second time, and
//! two engines meet in a composition. What a wiring could be as other topologies ([`variant`]) stands
//! here too, since both the command line and the benches ask for it.

mod bounds;
pub mod flow;
pub mod hpl;
mod input;
mod network;
mod placement;
mod program;
mod sharing;
mod variants;

use meikyo_fabric::{Plan, Wiring};
use meikyo_units::{Bytes, Nanos};

use crate::completions::count_f64;

pub use bounds::{Bounds, bounds};
pub use input::{Input, Settings};
pub use network::{Lane, LanePlace, Network, Rates};
pub use placement::{Deal, Placement, TooManyRanks};
pub use program::{Actor, Heard, Message, Messaging, Step, Stream};
pub use sharing::Congestion;
pub use variants::{TopologyKind, VariantError, variant};

/// What is predicted of a run of HPL.
#[derive(Debug, Clone, PartialEq)]
pub struct HplPrediction {
    /// How long it takes, by the flow method.
    pub time: Nanos,
    /// Its rate.
    pub gflops: f64,
    /// What it cannot be faster than, and what it would take without any overlap.
    pub bounds: Bounds,
    /// On what the processes spend their time, as shares of the whole that add up to at most 1.
    pub breakdown: Vec<(&'static str, f64)>,
    /// The lanes that carry most for their rate, the busiest first.
    pub busiest: Vec<Busy>,
    /// Sets of streams that were moved.
    pub sets: u64,
    /// How often the rates of streams were worked out.
    pub solutions: u64,
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    /// More ranks than slots.
    #[error("the grid does not fit")]
    Ranks(#[source] TooManyRanks),
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
    /// The run does not end.
    #[error("the program does not end")]
    Deadlock(#[source] flow::Deadlock),
}

/// How many lanes [`HplPrediction::busiest`] lists at most.
const BUSIEST_MAX: usize = 10;

/// Predicts a run of HPL on a wiring under a plan, by the flow method.
///
/// # Errors
/// If ranks or matrix do not fit the hosts.
pub fn predict_hpl(
    wiring: &Wiring,
    plan: &Plan,
    input: &Input,
) -> Result<HplPrediction, PredictError> {
    let network = Network::new(wiring, plan, input.rates, input.seed);
    let run = input.hpl;
    let placement =
        Placement::new(input.deal, run.ranks(), network.hosts(), input.slots, input.seed)
            .map_err(PredictError::Ranks)?;
    if let Some(memory) = input.memory {
        let hosts = network.hosts();
        let all = u128::from(memory.get()) * hosts as u128;
        if u128::from(run.matrix().get()) > all {
            return Err(PredictError::Memory { matrix: run.matrix(), hosts, memory });
        }
    }
    let bounds = bounds(&network, run.actors(&network, &placement));
    let flow = flow::run(&network, run.actors(&network, &placement), input.flow)
        .map_err(PredictError::Deadlock)?;
    let spent_s = flow.time.as_secs_f64() * count_f64(run.columns as u64);
    Ok(HplPrediction {
        time: flow.time,
        gflops: run.gflops(flow.time),
        bounds,
        breakdown: flow
            .spent
            .iter()
            .map(|(what, span)| (*what, span.as_secs_f64() / spent_s))
            .collect(),
        busiest: busiest(&network, &flow),
        sets: flow.sets,
        solutions: flow.solutions,
    })
}

/// The busiest lanes of a run; those within hosts are not cables and left out.
fn busiest(network: &Network, run: &flow::FlowRun) -> Vec<Busy> {
    let time_s = run.time.as_secs_f64();
    let lanes = network.lanes().iter().zip(&run.carried).enumerate();
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
