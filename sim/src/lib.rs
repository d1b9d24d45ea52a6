//! A parallel discrete event simulation kernel whose results do not depend on how it is run.
//!
//! A model is made of logical processes ([`Lp`]): each has a state, and ONE handler for the messages
//! that others send it. Groups of LPs are joined by declared links with a least delay, and that is all
//! a scheduler needs to know:
//!
//! ```
//! use meikyo_sim::prelude::*;
//!
//! /// A ring of stations that hand a token on.
//! #[derive(Clone, Debug, PartialEq, State)]
//! struct Station {
//!     #[state(fixed)]
//!     next: LpId,
//!     seen: Cell<u64>,
//! }
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
//! [`Scheduler::Sequential`] needs nothing but the queue. The parallel schedulers divide the LPs into
//! parts with a worker each, a thread or an MPI rank. After every window the workers exchange reports,
//! and derive from them and from the declared links the global virtual time (GVT), before which
//! everything is final, and a horizon, before which nothing of one part can reach another.
//! [`Scheduler::Conservative`] handles events up to the horizon and no further.
//! [`Scheduler::Optimistic`] is Time Warp: it runs ahead of the horizon, and rolls back from the undo log
//! ([`meikyo_undo`]) what a straggler shows to have come too early. [`Scheduler::Auto`] starts
//! conservatively, goes on with one queue where that handles more events a second, and tries threads again
//! at doubling intervals.
//!
//! Threads do the parts of a model as a crew: in every window each part is done once, by whichever thread
//! comes first. While one thread alone is faster, because another program takes a core, the others sleep.
//!
//! [`Scheduler::Check`] handles every event twice and finds what the log does not know; with
//! [`run_built()`] it also handles it in a second model, and finds what depends on how the first one
//! happened to be built.
//!
//! # Over ranks
//!
//! The processes that `mpirun` started run one model together: each joins the
//! others ([`Membership`]) and hands [`Options::ranks`] to the runs, which must be the same on all of
//! them. A rank makes the whole model, runs its own part of it on one thread, and in the end has the
//! whole [`Outcome`]; only the first rank's observer hears of lines and progress. Messages, and what
//! fields and collections of `undo` hold, must implement `serde`'s traits. A fault ends all ranks with
//! the same error; when a rank dies, `mpirun` notices and ends the others.
//!
//! This crate starts threads only while [`run()`] runs. It reads the clock only to tell progress and to
//! judge whether parallel work pays.

pub mod bare;
pub mod prelude;

mod options;
mod run;

mod confidence;
mod context;
mod fault;
mod histogram;
mod key;
mod links;
mod model;
mod outcome;
mod random;
mod rules;
mod statistics;
mod timeline;

mod effects;
mod panics;
mod partition;
mod queue;
mod setup;
mod share;
mod window;
mod withdrawn;

mod check;
mod conservative;
mod optimistic;
mod sequential;

mod coordinator;
mod exchange;
mod ranks;
mod sync;
mod threads;
mod transport;

pub use meikyo_undo as undo;

pub use confidence::{Confidence, ConfidenceError, Interval};
pub use context::{Context, Handle, Lp};
pub use fault::{Fault, Problem, RunError};
pub use histogram::{Bin, Histogram};
pub use key::{EventKey, LpId};
pub use model::{Group, Model};
pub use options::{Options, Scheduler};
pub use outcome::{Effort, Outcome};
pub use ranks::Membership;
pub use ranks::Ranks;
pub use run::{run, run_built, run_observed};
pub use statistics::{
    Line, LineContent, Observer, Progress, Series, Statistic, StatisticResult, Tally, Unobserved,
};
pub use timeline::Timeline;
