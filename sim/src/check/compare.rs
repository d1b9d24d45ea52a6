//! What is compared, and how a difference is told.

use std::fmt::Debug;

use crate::context::Lp;
use crate::fault::{Fault, Problem};
use crate::key::{Event, LpId};
use crate::queue::Queue;
use crate::rules::Rules;
use crate::share::{self, Share};
use crate::statistics::Output;

/// Whether a state is equal to its own copy: one that holds a NaN is not.
pub(super) fn comparable<L: PartialEq + Debug>(state: &L, copy: &L) -> Result<(), Box<Problem>> {
    if state == copy { Ok(()) } else { Err(incomparable("its state", state)) }
}

fn incomparable(what: &str, value: &impl Debug) -> Box<Problem> {
    let text = format!("{value:#?}");
    let mut way = Way::default();
    let nan = text.lines().find(|line| {
        way.pass(line);
        line.trim().trim_end_matches(',').ends_with("NaN")
    });
    let place = match nan {
        Some(line) => format!("in `{way}`: `{}` is not equal to itself", trimmed(line)),
        None => "no NaN is shown in it; is its `PartialEq` or `Clone` written by hand?".to_owned(),
    };
    Box::new(Problem::Incomparable { what: what.to_owned(), place })
}

/// Whether the same was sent both times.
pub(super) fn same_events<M: PartialEq + Clone + Debug>(
    one: &[Event<M>],
    other: &[Event<M>],
) -> Result<bool, Box<Problem>> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (a, b) in one.iter().zip(other) {
        if (a.key(), a.destination) != (b.key(), b.destination) {
            return Ok(false);
        }
        if a.message != b.message {
            let itself = a.message == a.message.clone();
            return if itself { Ok(false) } else { Err(incomparable("a message", &a.message)) };
        }
    }
    Ok(true)
}

/// Whether the same was given out both times, numbers compared bit for bit.
pub(super) fn same_outputs(one: &[Output], other: &[Output]) -> bool {
    let same = |a: &Output, b: &Output| match (a, b) {
        (Output::Tally { statistic: a, value: x }, Output::Tally { statistic: b, value: y })
        | (Output::Record { series: a, value: x }, Output::Record { series: b, value: y }) => {
            a == b && x.to_bits() == y.to_bits()
        }
        (Output::Print(a), Output::Print(b)) => a == b,
        _ => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b))
}

/// Compares two models, each built anew and started.
pub(crate) fn same_start<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    twin: &mut Share<L>,
) -> Result<(), Box<Fault>> {
    let rebuilt = |lp: LpId, difference: String| {
        share::fault(rules, lp, None, Problem::Rebuilt { difference })
    };
    for (lp, (slot, other)) in (0..).map(LpId).zip(share.slots.iter().zip(&twin.slots)) {
        comparable(&slot.state, &slot.state.clone())
            .map_err(|problem| share::fault(rules, lp, None, *problem))?;
        if slot.state != other.state {
            return Err(rebuilt(
                lp,
                format!("its state is {}", differs(&slot.state, &other.state)),
            ));
        }
        if slot.counters != other.counters {
            return Err(rebuilt(lp, "it drew other random numbers or sent other events".into()));
        }
    }
    let [events, others] = [&mut share.queue, &mut twin.queue].map(sorted);
    let longer = if events.len() < others.len() { &others } else { &events };
    for (at, event) in longer.iter().enumerate() {
        let pair =
            [&events, &others].map(|list| list.get(at).map_or(&[][..], std::slice::from_ref));
        let lp = event.key().source;
        let same = same_events(pair[0], pair[1])
            .map_err(|problem| share::fault(rules, lp, None, *problem))?;
        if !same {
            return Err(rebuilt(lp, "it sent other events".to_owned()));
        }
    }
    let lines = [&share.ledger.lines, &twin.ledger.lines];
    if lines[0] != lines[1] {
        let lp = lines[0].iter().zip(lines[1]).find(|(a, b)| a != b).map_or(LpId(0), |(a, _)| a.lp);
        return Err(rebuilt(lp, "it gave out something else".to_owned()));
    }
    events.into_iter().for_each(|event| share.queue.push(event));
    others.into_iter().for_each(|event| twin.queue.push(event));
    twin.ledger.lines.clear();
    Ok(())
}

/// Takes everything out of `queue`, in the order of the keys.
fn sorted<M>(queue: &mut Queue<M>) -> Vec<Event<M>> {
    let mut events = Vec::new();
    queue.take_all(|event| events.push(event));
    events.sort_unstable_by(Event::order);
    events
}

/// The structs and fields around a line of a value's `Debug` text.
#[derive(Default)]
struct Way(Vec<String>);

impl Way {
    /// Follows the structs that `line` opens or closes.
    fn pass(&mut self, line: &str) {
        let text = line.trim();
        if let Some(name) = text.strip_suffix(['{', '(', '[']) {
            let name = name.trim_end_matches([' ', ':']);
            self.0.push(name.split(':').next().unwrap_or(name).trim().to_owned());
        } else if text.starts_with(['}', ')', ']']) {
            self.0.pop();
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(String::as_str).filter(|name| !name.is_empty());
        f.write_str(&names.collect::<Vec<_>>().join("."))
    }
}

fn trimmed(line: &str) -> &str {
    line.trim().trim_end_matches(',')
}

/// The first field of two states that differs, with its way through the structs around it.
pub(super) fn differs(before: &impl Debug, after: &impl Debug) -> String {
    let (before, after) = (format!("{before:#?}"), format!("{after:#?}"));
    let mut way = Way::default();
    let mut lines = before.lines().zip(after.lines());
    let found = lines.find(|(old, new)| {
        if old == new {
            way.pass(old);
        }
        old != new
    });
    match found {
        Some((old, new)) => format!("in `{way}`: `{}` became `{}`", trimmed(old), trimmed(new)),
        None => "in what `Debug` does not show".to_owned(),
    }
}
