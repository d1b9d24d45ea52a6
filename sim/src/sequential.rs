//! One thread, one queue, all events in the order of their keys.

use meikyo_units::{Nanos, SimTime};

use crate::context::Lp;
use crate::direct::{self, Nowhere, Stretch};
use crate::fault::Fault;
use crate::key::{EventKey, LpId};
use crate::panics::{self, Handling};
use crate::rules::Rules;
use crate::share::{self, Share};
use crate::statistics::{Observer, Progress};

/// Events between two looks at what the observer wants.
const ROUND: u64 = 8192;

/// How far a sequential run goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The last instant.
    pub(crate) until: SimTime,
    /// Events handled before.
    pub(crate) events: u64,
}

/// Handles every event up to `extent.until`; gives how many there were.
pub(crate) fn run<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    extent: Extent,
    observer: &mut dyn Observer,
) -> Result<u64, Box<Fault>> {
    let stretch = Stretch { before: extent.until.as_nanos().saturating_add(1), most: ROUND };
    let mut events = 0;
    loop {
        let mut at: Option<(EventKey, LpId)> = None;
        let round = panics::caught(Handling::Committed, || {
            direct::events(rules, share, stretch, &mut Nowhere, &mut at)
        });
        if !share.ledger.lines.is_empty() {
            observer.lines(&share.ledger.lines);
            share.ledger.lines.clear();
        }
        let key = at.map(|(key, _)| key);
        let problem = match round {
            Ok((handled, None)) => {
                events += handled;
                if handled < ROUND {
                    return Ok(events);
                }
                observer.progress(&Progress {
                    virtual_time: key.map_or(SimTime::START, |key| key.time),
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
        let lp = at.map_or(LpId(0), |(_, lp)| lp);
        return Err(share::fault(rules, lp, key, problem));
    }
}
