//! The sequential scheduler: one thread, one queue, all events in the order of their keys.
//!
//! This order is the meaning of a model. The other schedulers must commit the same.

use std::time::Instant;

use meikyo_units::{Nanos, SimTime};

use crate::context::Lp;
use crate::coordinator::now;
use crate::fault::Fault;
use crate::key::{EventKey, LpId};
use crate::panics::{self, Handling};
use crate::rules::Rules;
use crate::share::{self, Share};
use crate::statistics::{Observer, Progress};
use crate::window::{self, OnlyPart, Window};

/// How many events are handled between two tellings of progress.
const WINDOW: u64 = 8192;

/// How far a sequential run goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The last instant whose events are handled.
    pub(crate) until: SimTime,
    /// When it pauses, if it shall, although events are left.
    pub(crate) pause: Option<Instant>,
    /// How many events the run has handled before this part of it.
    pub(crate) events: u64,
}

/// Handles every event up to `extent.until` or until it pauses; gives how many there were, and whether
/// that was all.
pub(crate) fn run<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    extent: Extent,
    observer: &mut dyn Observer,
) -> Result<(u64, bool), Box<Fault>> {
    let before = extent.until.as_nanos().saturating_add(1);
    let window = Window { before, events_max: WINDOW };
    let mut events = 0;
    let mut at: Option<(EventKey, LpId)> = None;
    loop {
        let result = panics::caught(Handling::Committed, || {
            window::handle_events(rules, share, window, &mut OnlyPart, &mut at)
        });
        if !share.ledger.lines.is_empty() {
            observer.lines(&share.ledger.lines);
            share.ledger.lines.clear();
        }
        let problem = match result {
            Ok((handled, None)) => {
                events += handled;
                if handled < WINDOW {
                    return Ok((events, true));
                }
                if extent.pause.is_some_and(|pause| now() >= pause) {
                    return Ok((events, false));
                }
                observer.progress(&Progress {
                    virtual_time: at.map_or(SimTime::START, |(key, _)| key.time),
                    events: extent.events + events,
                    handled: extent.events + events,
                    rollbacks: 0,
                    gvt_lag: Nanos::ZERO,
                });
                continue;
            }
            Ok((_, Some(problem))) => *problem,
            Err(panicked) => panicked,
        };
        let (key, lp) = at.expect("only an event goes wrong");
        return Err(share::fault(rules, lp, Some(key), problem));
    }
}
