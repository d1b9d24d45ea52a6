//! What most models need, in one line: `use meikyo_sim::prelude::*;`.
//!
//! `#[derive(State)]` as it stands here needs no other crate but this one.

pub use meikyo_undo::state::State;
pub use meikyo_undo::{Cell, Deque, Held, List, Map, ModelState as State};
pub use meikyo_units::{Nanos, SimTime};

pub use crate::{
    Confidence, Context, Group, Handle, Interval, Lp, LpId, Model, Options, Outcome, RunError,
    Scheduler, Series, Statistic, Tally, Unobserved, run, run_built,
};
