//! The static method: what follows from how much is computed and carried, whatever is shared when.

use meikyo_units::{Bytes, Nanos};

use super::network::Network;
use super::program::{Actor, Heard, Step, Stream};
use super::ranks::number;
use super::routes::Routes;
use crate::analysis::{ClosedNetwork, Station};
use crate::completions::count_f64;

/// What bounds a program's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// What the actor that computes most computes.
    pub compute: Nanos,
    /// What the busiest lane needs to carry all that goes over it.
    pub busiest_lane: Nanos,
}

impl Bounds {
    /// No run is shorter: neither can an actor compute two things at once, nor a lane carry more than
    /// its rate.
    pub fn least(&self) -> Nanos {
        self.compute.max(self.busiest_lane)
    }

    /// The time if nothing is computed while the busiest lane carries. Not a bound: a run can take
    /// longer, by waiting for one lane after the other.
    pub fn in_turn(&self) -> Nanos {
        self.compute + self.busiest_lane
    }
}

/// What actors compute and lanes carry, whenever that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Loads {
    /// What bounds the time.
    pub bounds: Bounds,
    /// What each actor computes.
    pub computed: Vec<Nanos>,
    /// Data on each lane.
    pub carried: Vec<Bytes>,
}

impl Loads {
    /// The time if actors keep no step with each other: mean value analysis of a closed network in which each of them computes
    /// and then queues for the busiest lane, round and round. Not less than the bounds allow.
    pub fn staggered(&self) -> Nanos {
        let actors = number(self.computed.len()).max(1);
        let share = |span: Nanos| Nanos::from_secs_f64(span.as_secs_f64() / f64::from(actors));
        let sum = self.computed.iter().fold(Nanos::ZERO, |sum, span| sum + *span);
        let demand = share(self.bounds.busiest_lane);
        let lane = Station { name: "busiest lane".to_owned(), demand, count: 1 };
        let network = ClosedNetwork { delay: share(sum), stations: vec![lane] };
        let values = network.mean_values(actors);
        let round = network.delay + Nanos::from_secs_f64(values.response_s);
        round.max(self.bounds.least())
    }
}

/// Walks through every actor by itself, as if each message were there when it is asked for.
pub fn bounds<A: Actor>(network: &Network, actors: Vec<A>) -> Bounds {
    loads(network, actors).bounds
}

/// As [`bounds()`], with what they follow from.
pub fn loads<A: Actor>(network: &Network, actors: Vec<A>) -> Loads {
    let mut carried = vec![Bytes::default(); network.lanes().len()];
    let mut routes = Routes::new(network);
    let mut carry = |streams: &[Stream]| {
        for stream in streams {
            let route = routes.of(stream.forth());
            for &lane in routes.way(route) {
                carried[lane] = Bytes::new(carried[lane].get() + stream.bytes.get());
            }
        }
    };
    let mut computed = Vec::with_capacity(actors.len());
    for mut actor in actors {
        let mut own = Nanos::ZERO;
        loop {
            match actor.next(&Heard::new(&|_, _| true)) {
                Step::Compute { span, .. } => own += span,
                Step::Send(message) => carry(&message.streams),
                Step::Move { streams, .. } => carry(&streams),
                Step::Receive { .. } | Step::Wait { .. } | Step::WaitFor { .. } => {}
                Step::Done => break,
            }
        }
        computed.push(own);
    }
    let needs = network.lanes().iter().zip(&carried);
    let needs = needs.map(|(lane, bytes)| count_f64(bytes.get()) / lane.bytes_per_s);
    let busiest_lane = Nanos::from_secs_f64(needs.fold(0.0, f64::max));
    let compute = computed.iter().copied().max().unwrap_or(Nanos::ZERO);
    Loads { bounds: Bounds { compute, busiest_lane }, computed, carried }
}
