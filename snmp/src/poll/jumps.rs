//! Counters that grew by more than their port can carry: told as events, since no rate shows it.
//!
//! Without the port's speed in the same row nothing is said. What falls is told elsewhere.

use meikyo_recording::counter::{Bounds, Delta, Width};
use meikyo_units::{Nanos, WallTime};

use crate::freshness::Class;
use crate::poll::alerts::Seen;
use crate::poll::request::{Reading, RowTarget};
use crate::poll::series::Series;
use crate::tables::{Table, interfaces, object_name};

/// Columns of `interfaces` that a speed limits.
const OCTETS: [usize; 2] = [interfaces::IN_OCTETS.position(), interfaces::OUT_OCTETS.position()];
const PACKETS: [usize; 2] = [interfaces::IN_PACKETS.position(), interfaces::OUT_PACKETS.position()];

/// What the slowest port that says its speed, of 1 Mbit/s, carries of packets in a second: less is
/// never a jump.
const LEAST: u64 = 1_600;

/// A counter that was set to a greater value.
#[derive(Debug)]
pub(super) struct Jump {
    column: usize,
    increase: u64,
    elapsed: Nanos,
    speed_mbps: u64,
}

/// Whether a counter of an interface that was `before` at the last poll has jumped.
#[inline]
pub(super) fn find(
    series: &mut Series,
    before: u64,
    seen: &Seen<'_>,
    target: &RowTarget,
    slot: usize,
) -> Option<Jump> {
    let Reading::Unsigned(now) = seen.answer.values[target.values.start + slot] else {
        return None;
    };
    let column = target.columns[slot];
    let octets = OCTETS.contains(&column);
    if !octets && !PACKETS.contains(&column) {
        return None;
    }
    let least = now.checked_sub(before).is_some_and(|increase| increase >= LEAST);
    if seen.restarted || !least {
        return None;
    }
    let speed =
        target.columns.iter().position(|&column| column == interfaces::SPEED_MBPS.position())?;
    let Reading::Unsigned(speed_mbps) = seen.answer.values[target.values.start + speed] else {
        return None;
    };
    let bounds = Bounds::of_interface(Width::Bits64, octets, Some(speed_mbps));
    let elapsed = counted_for(series, seen.received)?;
    match series.steps.step(before, now, elapsed, bounds) {
        Delta::Beyond(increase) => Some(Jump { column, increase, elapsed, speed_mbps }),
        _ => None,
    }
}

/// For how long the agent had counted what an update shows that is seen at `received`; `None` at the
/// first one, since nobody knows how old the value before was.
fn counted_for(series: &Series, received: WallTime) -> Option<Nanos> {
    let since = |at: i64| received.since(WallTime::from_nanos(at));
    let updated = series.freshness.updated()?;
    let polled = since(series.freshness.polled());
    match series.freshness.finding().map(|finding| finding.class) {
        Some(Class::EveryPoll) => Some(polled),
        Some(Class::Periodic { period, .. }) => Some(period.max(polled)),
        Some(Class::Irregular { greatest, .. }) => Some(greatest.max(polled)),
        Some(Class::Unchanged | Class::Frozen) | None => Some(since(updated)),
    }
}

impl Jump {
    /// Name of the counter, and what it would have meant.
    #[cold]
    pub(super) fn in_words(&self, interface: Option<&str>) -> (String, String) {
        let Self { increase, elapsed, speed_mbps, .. } = *self;
        let per_second = u128::from(increase) * 1_000_000_000 / u128::from(elapsed.get().max(1));
        let object = object_name(Table::Interfaces, interface, self.column);
        let unit = if OCTETS.contains(&self.column) { "octets" } else { "packets" };
        let text = format!(
            "the counter was set anew: it is greater by {increase} after {elapsed}, which would be \
             {per_second} {unit} a second at a port of {speed_mbps} Mbit/s"
        );
        (object, text)
    }
}
