//! A parallel discrete event simulation kernel whose results do not depend on how it is run.
mod check;
mod conservative;
mod context;
mod direct;
mod fault;
mod key;
mod meeting;
mod model;
mod optimistic;
mod partition;
mod queue;
mod random;
mod rules;
mod run;
mod sequential;
mod share;
mod statistics;

pub use context::{Context, Lp};
pub use fault::{Fault, Problem, RunError};
pub use key::{EventKey, LpId};
pub use model::{Group, Model};
pub use run::{Effort, Options, Outcome, Scheduler, run, run_observed};
pub use statistics::{
    Line, LineContent, Observer, Progress, Series, Statistic, StatisticResult, Tally, Unobserved,
};
