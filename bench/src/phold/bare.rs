//! The bare loop beside PHOLD: the same events in the same order, by the kernel's own queue and random
//! numbers, and nothing of the kernel around them.
//!
//! States are plain numbers in an array: there are no links, no groups, no contexts and nobody to be told
//! anything. What a simulation adds to that is the ratio. The loop must end in the states that the kernel
//! ends in.

use std::io;

use meikyo_console::output::real;
use meikyo_models::phold::{Phold, chained, worked};
use meikyo_sim::bare::{Draws, Pending};
use meikyo_sim::{EventKey, LpId};
use meikyo_units::{Nanos, SimTime};

use crate::placement::own_usage;

/// What the loop took, and where it ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bare {
    /// CPU time of one event in ns, the beginning included.
    pub(super) cpu_ns_per_event: f64,
    /// The digests of all LPs as one number.
    pub(super) state_hash: u64,
}

/// An LP of the load.
#[derive(Clone, Copy, Default)]
struct Holder {
    sent: u64,
    drawn: u64,
    events: u64,
    digest: u64,
}

/// Runs `phold` to the events at `last`.
pub(super) fn run(phold: &Phold, last: SimTime) -> io::Result<Bare> {
    let before = own_usage()?.cpu;
    let holders = hold(phold, last);
    let used = own_usage()?.cpu.saturating_sub(before);
    let events: u64 = holders.iter().map(|holder| holder.events).sum();
    let state_hash = holders.iter().fold(0, |hash, holder| chained(hash, holder.digest));
    Ok(Bare { cpu_ns_per_event: used.as_secs_f64() * 1e9 / real(events.max(1)), state_hash })
}

fn hold(phold: &Phold, last: SimTime) -> Vec<Holder> {
    let mut holders = vec![Holder::default(); phold.lps as usize];
    let mut pending = Pending::default();
    let rest = phold.mean.saturating_sub(phold.lookahead);
    for (lp, holder) in (0..).map(LpId::new).zip(&mut holders) {
        for _ in 0..phold.events_per_lp {
            let delay = Draws::new(phold.seed, lp, &mut holder.drawn).exponential(rest);
            let key = sent(lp, &mut holder.sent, SimTime::START, phold.lookahead + delay, 0);
            push(&mut pending, key, lp, 0);
        }
    }
    while let Some((key, lp, message)) = pending.pop(last) {
        let holder = &mut holders[lp.get() as usize];
        holder.events += 1;
        let event =
            key.time.as_nanos() ^ key.sequence.rotate_left(40) ^ u64::from(key.source.get());
        holder.digest = chained(holder.digest, event);
        let message = worked(message, phold.work);
        let mut draws = Draws::new(phold.seed, lp, &mut holder.drawn);
        let remote = draws.uniform() < phold.remote;
        let destination = if remote { LpId::new(draws.below(phold.lps)) } else { lp };
        let delay = phold.lookahead + draws.exponential(rest);
        let next = sent(lp, &mut holder.sent, key.time, delay, key.depth);
        push(&mut pending, next, destination, message);
    }
    holders
}

/// The key of the event that `lp` sends next.
fn sent(lp: LpId, count: &mut u64, now: SimTime, delay: Nanos, depth: u32) -> EventKey {
    let depth = if delay == Nanos::ZERO { depth + 1 } else { 0 };
    let sequence = *count;
    *count += 1;
    EventKey { time: now + delay, depth, priority: 0, source: lp, sequence }
}

fn push(pending: &mut Pending<u64>, key: EventKey, destination: LpId, message: u64) {
    if key.time < SimTime::END {
        pending.push(key, destination, message);
    }
}
