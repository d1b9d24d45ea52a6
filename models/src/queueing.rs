//! Queues whose behaviour is known exactly: what a simulation is checked against, and shows first.
//!
//! [`Open`] is a queue with Poisson arrivals (M/M/c, M/D/1), [`Closed`] a network of customers that think
//! and then queue at one of several stations (the machine repair model, and more).

mod closed;
mod open;

use meikyo_sim::Context;
use meikyo_units::Nanos;

pub use closed::{Closed, Job, Member};
pub use open::{Open, QueueEvent, Station};

/// How long services take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Exponentially distributed around this mean.
    Exponential(Nanos),
    /// This long.
    Constant(Nanos),
}

impl Service {
    /// The mean.
    pub fn mean(self) -> Nanos {
        match self {
            Self::Exponential(mean) | Self::Constant(mean) => mean,
        }
    }

    fn draw<M>(self, context: &mut impl Context<M>) -> Nanos {
        match self {
            Self::Exponential(mean) => context.exponential(mean),
            Self::Constant(time) => time,
        }
    }
}
