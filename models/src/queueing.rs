//! Queues whose behaviour is known exactly: what a simulation is checked against, and shows first.
//!
//! [`Open`] is a queue with Poisson arrivals (M/M/c, M/D/1), [`Closed`] a network of customers that think
//! and then queue at one of several stations (the machine repair model, and more).

mod closed;
mod open;

use meikyo_sim::Context;
use meikyo_units::Nanos;

use crate::parameters::{Parameters, choice};

pub use closed::{Closed, Job, Member};
pub use open::{Open, QueueEvent, Station};

/// How long a server works for one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Exponentially distributed around this mean.
    Exponential(Nanos),
    /// Exactly this long, every time.
    Constant(Nanos),
}

/// How service times are distributed: the key `service_times`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceTimes {
    Exponential,
    Constant,
}
choice!(ServiceTimes { Exponential = "exponential", Constant = "constant" });

impl Service {
    /// Declares `service` and `service_times`.
    fn declare(parameters: &mut Parameters<'_>) -> Self {
        let mean =
            parameters.positive_span("service", Nanos::from_micros(1), "The mean service time.");
        let times = parameters.choice(
            "service_times",
            ServiceTimes::Exponential,
            "Distribution of service times.",
        );
        match times.get() {
            ServiceTimes::Exponential => Self::Exponential(mean),
            ServiceTimes::Constant => Self::Constant(mean),
        }
    }

    /// The mean over many services.
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
