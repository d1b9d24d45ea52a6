//! Counters that began anew: told as events, with the device and what it concerns.
//!
//! A counter began anew when `ifCounterDiscontinuityTime` (RFC 2863) says so, or when it is less than
//! it was and cannot have wrapped. A restart of the agent, which is an event of its own, says so of
//! every counter. Agents that cache show the new sign at once and the lesser value later: what falls
//! soon after a sign is not told again.

use meikyo_recording::counter::{Bounds, Width, step};
use meikyo_units::{Nanos, WallTime};

use crate::poll::alerts::{Seen, counter};
use crate::poll::device::Device;
use crate::poll::repeats::Repeated;
use crate::poll::request::Reading;
use crate::poll::rows::{Event, Rows};
use crate::tables::{Table, interfaces, schema};

/// The column of `interfaces` that says when its counters began anew.
const DISCONTINUITY: usize = interfaces::DISCONTINUITY_CS.position();

/// How long a cache may show a counter as it was: that of net-snmp's interfaces is 3 s, and switches
/// refresh every 30 s at the slowest.
const CACHED_MAX: Nanos = Nanos::from_secs(60);

/// Within this span a counter of unknown speed is expected to be refreshed.
const REFRESH_MAX: Nanos = Nanos::from_secs(5);

/// Rows of one interval that are told by themselves; of more, the number.
const ROWS_MAX: usize = 3;

/// A value that says that counting began anew.
#[derive(Debug, Clone, Copy)]
struct Sign {
    /// Position of the row in the layout.
    row: usize,
    /// Position of the value in the row.
    slot: usize,
    /// The value before, and when that was read.
    before: u64,
    read: i64,
}

/// What is known of a device's resets.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// Of the answer that is looked at.
    signs: Vec<Sign>,
    /// Of the interval, which may take several answers.
    found: Vec<Found>,
    /// Rows, by their first series, that told of one a short while ago without a lesser value.
    recent: Vec<(usize, WallTime)>,
    /// When the agent restarted.
    restarted: WallTime,
}

/// One row whose counters began anew, or one counter that was set to a greater value.
#[derive(Debug)]
struct Found {
    /// Table and instance, and the column of one counter.
    name: String,
    text: String,
    counters: u64,
}

impl Resets {
    /// Takes a value that is another than before; whether it says that counting began anew.
    #[inline]
    pub(super) fn changed(
        &mut self,
        (row, slot): (usize, usize),
        (table, column): (Table, usize),
        (before, read): (u64, i64),
        reading: Reading,
    ) -> bool {
        let fell = match reading {
            Reading::Counter(now) => now < before,
            Reading::Unsigned(now) if now < before => {
                let counts = schema(table).columns[column].counts();
                // Linux takes ticks back that it had counted as idle or waiting (proc(5)).
                counts && (table != Table::Cpu || now < before / 2)
            }
            _ => false,
        };
        let is_sign = fell || (table == Table::Interfaces && column == DISCONTINUITY);
        if is_sign {
            self.signs.push(Sign { row, slot, before, read });
        }
        is_sign
    }

    /// Takes a counter that was set to a greater value, which is told with the others of its interval.
    pub(super) fn jumped(&mut self, name: String, text: String) {
        self.found.push(Found { name, text, counters: 1 });
    }

    /// The real-time clock was set.
    pub(super) fn clock_stepped(&mut self, moved: &dyn Fn(WallTime) -> WallTime) {
        self.restarted = moved(self.restarted);
        for (_, at) in &mut self.recent {
            *at = moved(*at);
        }
    }
}

/// Takes the signs of an answer; whether something is to be told of the interval.
pub(super) fn gather(device: &mut Device, seen: &Seen<'_>) -> bool {
    let signs = std::mem::take(&mut device.resets.signs);
    let now = seen.received;
    if seen.restarted {
        device.resets.restarted = now;
    }
    if now.since(device.resets.restarted) >= CACHED_MAX {
        device.resets.recent.retain(|&(_, at)| now.since(at) < CACHED_MAX);
        for of_row in signs.chunk_by(|a, b| a.row == b.row) {
            let found = of_one_row(device, seen, of_row);
            device.resets.found.extend(found);
        }
    }
    !device.resets.found.is_empty()
}

/// Writes down what was found; whether something of it was held back.
pub(super) fn tell(device: &mut Device, due: WallTime, rows: &mut Rows) -> bool {
    let found = std::mem::take(&mut device.resets.found);
    let mut held_back = false;
    let mut write = |object: Option<&str>, text: &str, count| {
        let repeats = device.repeats.get_or_insert_default();
        if repeats.admit(Repeated::Reset, due) {
            let event = Event { device: Some(device.name), object, text, count: Some(count) };
            rows.event(due, "reset", event);
        } else {
            held_back = true;
        }
    };
    if found.len() <= ROWS_MAX {
        for one in &found {
            write(Some(&one.name), &one.text, one.counters);
        }
    } else {
        let first: Vec<_> = found[..ROWS_MAX].iter().map(|one| one.name.as_str()).collect();
        let others = found.len() - ROWS_MAX;
        let text = format!("counters began anew: {} and {others} others", first.join(", "));
        write(None, &text, found.len() as u64);
    }
    held_back
}

/// What the signs of one row say.
fn of_one_row(device: &mut Device, seen: &Seen<'_>, signs: &[Sign]) -> Option<Found> {
    let target = &seen.layout.rows[signs[0].row];
    let readings = &seen.answer.values[target.values.clone()];
    let plan = &device.rows[seen.layout.planned[signs[0].row]];
    let column = |sign: &Sign| target.columns[sign.slot];
    let discontinued =
        signs.iter().any(|sign| target.table == Table::Interfaces && column(sign) == DISCONTINUITY);
    let fell = signs.iter().filter(|sign| {
        let (Reading::Unsigned(now) | Reading::Counter(now)) = readings[sign.slot] else {
            return false;
        };
        let own = counter(plan, column(sign));
        let unknown = Bounds { width: width(sign.before), fastest_per_s: None };
        let bounds = own.and_then(|own| own.bounds(readings)).unwrap_or(unknown);
        let elapsed = WallTime::from_nanos(sign.read);
        let elapsed = seen.received.since(elapsed).max(REFRESH_MAX);
        now < sign.before && step(sign.before, now, elapsed, bounds).increase().is_none()
    });
    let (mut counters, mut first) = (0, None);
    for sign in fell.filter(|sign| column(sign) != DISCONTINUITY) {
        counters += 1;
        first.get_or_insert(*sign);
    }
    let known = device.resets.recent.iter().any(|&(series, _)| series == target.series);
    let text = match first {
        _ if discontinued => {
            if counters == 0 {
                device.resets.recent.push((target.series, seen.received));
            }
            "ifCounterDiscontinuityTime changed: its counters began anew".to_owned()
        }
        Some(sign) if !known => {
            let name = &schema(target.table).columns[column(&sign)].name;
            let (Reading::Unsigned(now) | Reading::Counter(now)) = readings[sign.slot] else {
                return None;
            };
            format!("{name} fell from {} to {now}: counting began anew", sign.before)
        }
        _ => return None,
    };
    let table = &schema(target.table).name;
    let name = match &plan.instance {
        Some(instance) => format!("{table}.{instance}"),
        None => table.clone(),
    };
    Some(Found { name, text, counters })
}

/// How wide a counter is at least, by a value that it had.
fn width(value: u64) -> Width {
    if value > u64::from(u32::MAX) { Width::Bits64 } else { Width::Bits32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_the_discontinuity_is_that_of_the_schema() {
        assert_eq!(schema(Table::Interfaces).column("discontinuity_cs"), Some(DISCONTINUITY));
    }
}
