//! A parallel discrete event simulation kernel whose results do not depend on how it is run.
//!
//! A model is made of logical processes ([`Lp`]): each has a state, and ONE handler for the messages
//! that others send it. Groups of LPs are joined by declared links with a least delay, and that is all
//! a scheduler needs to know:
//!
//! ```
//! use meikyo_sim::{Context, Lp, LpId, Model, Options, Scheduler, run};
//! use meikyo_undo::{Cell, fields};
//! use meikyo_units::Nanos;
//!
//! /// A ring of stations that hand a token on.
//! #[derive(Clone, Debug, PartialEq)]
//! struct Station {
//!     next: LpId,
//!     seen: Cell<u64>,
//! }
//! fields!(Station { seen });
//!
//! impl Lp for Station {
//!     type Message = u32; // hops left
//!
//!     fn start(&mut self, context: &mut impl Context<u32>) {
//!         context.send(context.me(), Nanos::ZERO, 100);
//!     }
//!
//!     fn handle(&mut self, hops: u32, context: &mut impl Context<u32>) {
//!         self.seen.add(context, 1);
//!         if hops > 0 {
//!             let walk = context.exponential(Nanos::from_micros(5));
//!             context.send(self.next, Nanos::from_micros(1) + walk, hops - 1);
//!         }
//!     }
//! }
//!
//! let ring = || {
//!     let mut model = Model::new(42);
//!     let stations = model.group("stations", 50);
//!     model.link(stations, stations, Nanos::from_micros(1));
//!     model.fill(stations, |me| Station { next: LpId::new((me.get() + 1) % 50), seen: Cell::new(0) });
//!     model
//! };
//! let one = run(ring(), &Options::new(Scheduler::Sequential, 1))?;
//! let two = run(ring(), &Options::new(Scheduler::Optimistic, 2))?;
//! assert_eq!(one.events, 50 * 101);
//! assert_eq!(one.lps, two.lps);
//! # Ok::<(), meikyo_sim::RunError>(())
//! ```
//!
//! # Why results do not depend on the run
//!
//! An event is ordered by a key that its sender gives it ([`EventKey`]); random numbers are a function
//! of the seed, the LP and how many it has drawn; what handlers give out (statistics, series, lines)
//! counts when the event is committed, LP by LP in the order of the keys. So the sequential order is
//! the meaning of a model, and a scheduler is right if nobody can tell it from that one.
//!
//! # Schedulers
//!
//! [`Scheduler::Sequential`] needs nothing but the queue. [`Scheduler::Conservative`] derives from the
//! links how far each thread may go alone. [`Scheduler::Optimistic`] is Time Warp: it runs ahead, and
//! takes back from the undo log ([`meikyo_undo`]) what came too early. [`Scheduler::Check`] handles
//! every event twice and finds what the log does not know; with [`run_built()`] it also
//! handles it in a second model, and finds what depends on how the first one happened to be built. [`Scheduler::Auto`] begins with threads
//! and falls back to one when they mostly wait for each other.
//!
//! # Over ranks
//!
//! With the feature `mpi`, the processes that `mpirun` started run one model together: each joins the
//! others (`Membership`) and hands [`Options::ranks`] to the runs, which must be the same on all of
//! them. A rank makes the whole model, runs its own part of it on one thread, and in the end has the
//! whole [`Outcome`]; lines and progress are told on the first rank. Messages, and what fields and
//! collections of `undo` hold, must then be `serde`'s. A fault ends all ranks with the same error; a
//! rank that dies is `mpirun`'s to notice, which ends the others.
//!
//! This crate starts threads while [`run()`] runs, and none after; it reads the clock only to judge
//! itself.

mod check;
mod conservative;
mod context;
mod direct;
mod fault;
mod key;
mod links;
mod meeting;
mod model;
mod noted;
mod optimistic;
#[cfg(feature = "mpi")]
mod over_ranks;
mod panics;
mod partition;
mod queue;
mod random;
mod ranks;
mod rules;
mod run;
mod sequential;
mod share;
mod statistics;
mod telling;

pub use context::{Context, Lp};
pub use fault::{Fault, Problem, RunError};
pub use key::{EventKey, LpId};
pub use model::{Group, Model};
#[cfg(feature = "mpi")]
pub use ranks::Membership;
pub use ranks::Ranks;
pub use run::{Effort, Options, Outcome, Scheduler, run, run_built, run_observed};
pub use statistics::{
    Line, LineContent, Observer, Progress, Series, Statistic, StatisticResult, Tally, Unobserved,
};
