//! The sequential order with every event handled twice and once more in a second model: a fault of a
//! handler that only Time Warp would meet, found where it is made.
//!
//! Each event is handled, its changes are undone, the state is compared with the one before, and
//! the event is handled again; both times must come to the same. States are cloned and compared whole,
//! so the cost grows with their size.
//!
//! What was decided when the model was built stays decided in all of that: a `HashMap` in a state keeps
//! its hasher when it is cloned, and with it the order of its entries. So the same event is handled in a
//! second, freshly built model as well (the twin), whose hash maps have hashers of their own; it, too,
//! must come to the same.

mod compare;
mod marked;

use crate::context::{Counters, Lp};
use crate::effects::Effects;
use crate::fault::{Fault, Problem};
use crate::key::Event;
use crate::options::Options;
use crate::panics::{self, Handling};
use crate::rules::Rules;
use crate::share::{self, Location, Share};
use crate::statistics::{Observer, Origin};

use compare::{comparable, differs, same_events, same_outputs};
use marked::MarkedLog;

pub(crate) use compare::same_start;

type Handled<L> = Effects<<L as Lp>::Message, MarkedLog>;

/// Handles every event up to `options.until` twice, and once in `twin`; gives how many there were.
pub(crate) fn run<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    mut twin: Option<&mut Share<L>>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<u64, Box<Fault>> {
    let limit = options.until.as_nanos().saturating_add(1);
    let mut handled = 0;
    loop {
        if !share.ledger.lines.is_empty() {
            observer.lines(&share.ledger.lines);
            share.ledger.lines.clear();
        }
        let Some(event) = share.queue.pop_before(limit) else { return Ok(handled) };
        if share.withdrawn.takes(&event) {
            continue;
        }
        let (key, lp) = (event.key(), event.destination);
        let location = share.layout.locate(rules, lp);
        let checked = twice(rules, share, location, event).and_then(|effects| {
            if let Some(twin) = &mut twin {
                as_in_twin(rules, share, twin, location, &effects)?;
            }
            Ok(effects)
        });
        let effects = checked.map_err(|problem| share::fault(rules, lp, Some(key), *problem))?;
        for sequence in effects.withdrawn {
            share.withdrawn.insert(lp, sequence);
        }
        for event in effects.sent {
            share.queue.push(event);
        }
        for output in effects.outputs {
            share.ledger.output(Origin { key, lp, member: location.member }, output);
        }
        if rules.traced {
            share.ledger.trace(location.local, &key);
        }
        handled += 1;
    }
}

fn twice<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    location: Location,
    event: Event<L::Message>,
) -> Result<Handled<L>, Box<Problem>> {
    let slot = &share.slots[location.local];
    let (before, counters) = (slot.state.clone(), slot.counters);
    comparable(&slot.state, &before)?;
    let mut first = once(rules, share, location, event.clone())?;
    let after = share.slots[location.local].state.clone();
    comparable(&share.slots[location.local].state, &after)?;
    undo(share, location, &mut first, &before, counters)?;
    let second = once(rules, share, location, event)?;
    let state = &share.slots[location.local].state;
    let difference = if *state != after {
        format!("the second time the state became another: {}", differs(&after, state))
    } else if !same_events(&first.sent, &second.sent)? {
        "the second time it sent other events".to_owned()
    } else if first.withdrawn != second.withdrawn {
        "the second time it cancelled other events".to_owned()
    } else if !same_outputs(&first.outputs, &second.outputs) {
        "the second time it gave out something else".to_owned()
    } else {
        return Ok(second);
    };
    Err(Box::new(Problem::Unrepeatable { difference }))
}

/// Handles the twin's next event, which is the one that came to `effects` in `share`, and compares.
fn as_in_twin<L: Lp>(
    rules: &Rules,
    share: &Share<L>,
    twin: &mut Share<L>,
    location: Location,
    effects: &Handled<L>,
) -> Result<(), Box<Problem>> {
    let same = "the twin has sent the same events";
    let mut event = twin.queue.pop_before(u64::MAX).expect(same);
    while twin.withdrawn.takes(&event) {
        event = twin.queue.pop_before(u64::MAX).expect(same);
    }
    let lp = event.destination;
    let handled = once(rules, twin, location, event)?;
    let [state, other] = [share, &*twin].map(|share| &share.slots[location.local].state);
    let difference = if state != other {
        format!("the state became another: {}", differs(state, other))
    } else if !same_events(&effects.sent, &handled.sent)? {
        "it sent other events".to_owned()
    } else if effects.withdrawn != handled.withdrawn {
        "it cancelled other events".to_owned()
    } else if !same_outputs(&effects.outputs, &handled.outputs) {
        "it gave out something else".to_owned()
    } else {
        for sequence in handled.withdrawn {
            twin.withdrawn.insert(lp, sequence);
        }
        for event in handled.sent {
            twin.queue.push(event);
        }
        return Ok(());
    };
    Err(Box::new(Problem::Rebuilt { difference }))
}

fn once<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    location: Location,
    event: Event<L::Message>,
) -> Result<Handled<L>, Box<Problem>> {
    let mut effects = Effects::new(MarkedLog::default());
    let slot = &mut share.slots[location.local];
    let handling = Handling::Committed;
    panics::caught(handling, || share::handle(rules, slot, location.group, event, &mut effects))?;
    effects.problem.take().map_or(Ok(effects), Err)
}

/// Undoes the changes of an event and compares the state with the one `before`.
fn undo<L: Lp>(
    share: &mut Share<L>,
    location: Location,
    effects: &mut Handled<L>,
    before: &L,
    counters: Counters,
) -> Result<(), Box<Problem>> {
    let slot = &mut share.slots[location.local];
    slot.counters = counters;
    if L::COPIED {
        slot.state = before.clone();
        return Ok(());
    }
    let unclaimed = effects.log.revert(&mut slot.state);
    let difference = match unclaimed {
        Ok(()) if slot.state == *before => return Ok(()),
        Ok(()) => differs(before, &slot.state),
        Err(unclaimed) if slot.state == *before => unclaimed.to_string(),
        Err(unclaimed) => format!("{}; {unclaimed}", differs(before, &slot.state)),
    };
    Err(Box::new(Problem::Escape { difference }))
}
