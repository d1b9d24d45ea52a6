//! The sequential order with every event handled twice: a fault of a handler that only Time Warp
//! would meet, found where it is made.
//!
//! Each event is handled, its changes are taken back, the state is compared with the one before, and
//! the event is handled again; both times must come to the same. States are cloned and compared whole,
//! so the cost grows with their size.

use std::panic::{AssertUnwindSafe, catch_unwind};

use meikyo_undo::{Mark, UndoLog};

use crate::context::{Counters, Lp};
use crate::fault::{Fault, Problem};
use crate::key::Event;
use crate::noted::Noted;
use crate::rules::Rules;
use crate::run::Options;
use crate::share::{self, Seat, Share};
use crate::statistics::{Observer, Origin};

/// Handles every event up to `options.until` twice; gives how many there were.
pub(crate) fn run<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<u64, Box<Fault>> {
    let limit = options.until.as_nanos().saturating_add(1);
    let mut handled = 0;
    while let Some(event) = share.queue.pop_before(limit) {
        let (key, lp) = (event.key(), event.destination);
        let seat = share.layout.seat(rules, lp);
        let noted = twice(rules, share, seat, event)
            .map_err(|problem| share::fault(rules, lp, Some(key), *problem))?;
        for event in noted.sent {
            share.queue.push(event);
        }
        for output in noted.outputs {
            share.ledger.output(Origin { key, lp, member: seat.member }, output);
        }
        if rules.traced {
            share.ledger.trace(seat.local, &key);
        }
        if !share.ledger.lines.is_empty() {
            observer.lines(&share.ledger.lines);
            share.ledger.lines.clear();
        }
        handled += 1;
    }
    Ok(handled)
}

fn twice<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    seat: Seat,
    event: Event<L::Message>,
) -> Result<Noted<L::Message, UndoLog>, Box<Problem>> {
    let slot = &share.slots[seat.local];
    let (before, counters) = (slot.state.clone(), slot.counters);
    let mut first = once(rules, share, seat, event.clone())?;
    let after = share.slots[seat.local].state.clone();
    take_back(share, seat, &mut first, &before, counters)?;
    let second = once(rules, share, seat, event)?;
    let state = &share.slots[seat.local].state;
    let difference = if *state != after {
        Some(format!("the second time the state became another: {}", differs(&after, state)))
    } else if !same(&first.sent, &second.sent) {
        Some("the second time it sent other events".to_owned())
    } else if first.outputs != second.outputs {
        Some("the second time it gave out something else".to_owned())
    } else {
        None
    };
    difference.map_or(Ok(second), |difference| Err(Box::new(Problem::Unrepeatable { difference })))
}

fn once<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    seat: Seat,
    event: Event<L::Message>,
) -> Result<Noted<L::Message, UndoLog>, Box<Problem>> {
    let mut noted = Noted::new(UndoLog::new());
    let slot = &mut share.slots[seat.local];
    catch_unwind(AssertUnwindSafe(|| share::handle(rules, slot, seat.group, event, &mut noted)))
        .map_err(|payload| {
            Box::new(Problem::Panicked { message: share::panic_message(payload.as_ref()) })
        })?;
    noted.problem.take().map_or(Ok(noted), Err)
}

/// Takes the changes of an event back and compares the state with the one `before`.
fn take_back<L: Lp>(
    share: &mut Share<L>,
    seat: Seat,
    noted: &mut Noted<L::Message, UndoLog>,
    before: &L,
    counters: Counters,
) -> Result<(), Box<Problem>> {
    let slot = &mut share.slots[seat.local];
    slot.counters = counters;
    if L::COPIED {
        slot.state = before.clone();
        return Ok(());
    }
    let escape = |difference| Box::new(Problem::Escape { difference });
    let end = noted.log.mark();
    noted
        .log
        .revert(Mark::default(), end, &mut slot.state)
        .map_err(|unclaimed| escape(unclaimed.to_string()))?;
    if slot.state == *before {
        return Ok(());
    }
    Err(escape(differs(before, &slot.state)))
}

fn same<M: PartialEq>(one: &[Event<M>], other: &[Event<M>]) -> bool {
    let content = |event: &Event<M>| (event.key(), event.destination);
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| content(a) == content(b) && a.message == b.message)
}

/// The first field of two states that differs, with its way through the structs around it.
fn differs(before: &impl std::fmt::Debug, after: &impl std::fmt::Debug) -> String {
    let (before, after) = (format!("{before:#?}"), format!("{after:#?}"));
    let mut way: Vec<&str> = Vec::new();
    let mut lines = before.lines().zip(after.lines());
    let found = lines.find(|(old, new)| {
        if old == new {
            let text = old.trim();
            if let Some(name) = text.strip_suffix(['{', '(', '[']) {
                way.push(name.trim_end_matches([' ', ':']));
            } else if text.starts_with(['}', ')', ']']) {
                way.pop();
            }
        }
        old != new
    });
    let names = way.iter().map(|step| step.split(':').next().unwrap_or(step).trim());
    let way = names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(".");
    match found {
        Some((old, new)) => {
            format!(
                "in `{way}`: `{}` became `{}`",
                old.trim().trim_end_matches(','),
                new.trim().trim_end_matches(',')
            )
        }
        None => format!("in `{way}`: it has another length"),
    }
}
