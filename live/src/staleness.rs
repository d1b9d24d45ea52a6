//! When values are old and when a device is silent: the one rule that the page, the terminal and
//! `/metrics` have.
//!
//! - A device is **silent** when nothing was heard of it for 3 s, or for two of its own intervals if
//!   these are longer ([`is_silent`]).
//! - The **age** of its values is the time since its newest answer was received, and how old the
//!   oldest value in that answer was: one that the agent updates every 3 s was up to 3 s old, one
//!   that stands still against its usual updates has been old since it was found to ([`Held`]).

use std::collections::BTreeMap;

use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::findings;
use meikyo_recording::{ReadError, Selection};
use meikyo_units::{Nanos, WallTime};

use crate::columns::{number, signed, text, times};
use crate::opened::{FileProblem, Opened};

/// A device that is asked more often is silent when it has not answered for so long.
pub const SILENT_AFTER: Nanos = Nanos::from_secs(3);

/// Whether a device of which nothing was heard for some time is silent. `interval` is the span
/// between two of its requests, if it is known.
pub fn is_silent(unheard: Nanos, interval: Option<Nanos>) -> bool {
    let two = interval.map_or(Nanos::ZERO, |interval| Nanos::new(interval.get().saturating_mul(2)));
    unheard >= SILENT_AFTER.max(two)
}

/// The value of a device that has been old for longest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalest {
    /// The device that it is a value of.
    pub device: String,
    /// Table, instance and column of the value, with spaces between; empty where all values of the
    /// device are as old as its answer.
    pub object: String,
    /// How old it is.
    pub age: Nanos,
}

/// How the values of one device are updated by its agent, as far as answers hold older ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held(Vec<(String, Update)>);

/// How old one value in an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Update {
    /// Updated every so often; `phase` is an instant at which it was, ns since the epoch.
    Periodic { period: Nanos, phase: Option<i64> },
    /// Not updated any more since then, against its habit.
    Frozen { since: WallTime },
}

impl Update {
    fn behind(self, answered: WallTime) -> Nanos {
        match self {
            Self::Frozen { since } => answered.since(since),
            Self::Periodic { period, phase: None } => period,
            Self::Periodic { period, phase: Some(phase) } => {
                let since = i128::from(answered.as_nanos()) - i128::from(phase);
                let since = since.rem_euclid(i128::from(period.get()));
                Nanos::new(u64::try_from(since).expect("it is less than the period"))
            }
        }
    }
}

impl Held {
    /// How old the oldest value was in an answer that was received at `answered`, and which one it is.
    /// Where only the period is known it is taken for a whole period old.
    pub fn behind(&self, answered: WallTime) -> (Nanos, &str) {
        let oldest = self.0.iter().max_by_key(|(_, update)| update.behind(answered));
        oldest.map_or((Nanos::ZERO, ""), |(object, update)| (update.behind(answered), object))
    }

    /// How old the oldest value is at `now`, of a device whose newest answer was received at `answered`.
    pub fn age(&self, answered: WallTime, now: WallTime) -> Nanos {
        now.since(answered) + self.behind(answered).0
    }
}

/// What was found out about how an agent updates one value.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'a> {
    /// When it was found out, ns since the epoch.
    pub time: i64,
    /// The device whose value it is.
    pub device: &'a str,
    /// Table, instance and column of the value; the instance is empty where the table has none.
    pub object: [&'a str; 3],
    /// The class, as in [`findings::CLASS`].
    pub class: Option<&'a str>,
    /// Mean span between updates.
    pub period: Option<Nanos>,
    /// An instant of an update, ns since the epoch.
    pub phase: Option<i64>,
}

/// The newest findings about each value.
#[derive(Debug, Default)]
pub struct Findings(BTreeMap<[String; 4], (i64, Option<Update>)>);

impl Findings {
    /// Takes a finding, in whatever order they come.
    pub fn take(&mut self, finding: Finding<'_>) {
        let Finding { time, device, object: [table, instance, column], class, .. } = finding;
        let period = finding.period.filter(|period| *period > Nanos::ZERO);
        let update = match (class, period) {
            (Some("frozen"), _) => Some(Update::Frozen { since: WallTime::from_nanos(time) }),
            (Some("periodic"), Some(period)) => {
                Some(Update::Periodic { period, phase: finding.phase })
            }
            // What nobody has changed is as new as the answer that says so.
            _ => None,
        };
        let key = [device, table, instance, column].map(str::to_owned);
        let of = self.0.entry(key).or_insert((time, update));
        if time >= of.0 {
            *of = (time, update);
        }
    }

    /// How agents update values that their answers hold older ones of, by device.
    pub fn held(self) -> BTreeMap<String, Held> {
        let mut held: BTreeMap<String, Held> = BTreeMap::new();
        for ([device, table, instance, column], (_, update)) in self.0 {
            let Some(update) = update else { continue };
            let instance = if instance.is_empty() { instance } else { format!(" {instance}") };
            let object = format!("{table}{instance} {column}");
            held.entry(device).or_default().0.push((object, update));
        }
        held
    }
}

/// The findings about freshness of a recording that count at some instant, by device; `problems` takes
/// what could not be read.
///
/// # Errors
/// When the recording cannot be read.
pub fn held(
    opened: &Opened,
    to: WallTime,
    problems: &mut Vec<FileProblem>,
) -> Result<BTreeMap<String, Held>, ReadError> {
    let Some(table) = opened.table_for(Role::Findings)? else { return Ok(BTreeMap::new()) };
    let selection = Selection { to: Some(to), ..Selection::all(&table.name) };
    let mut newest = Findings::default();
    let mut scan = opened.recording.scan(&selection)?;
    for batch in &mut scan {
        let batch = batch?;
        let (periods, phases) =
            (number(&batch, findings::PERIOD_US.name()), signed(&batch, findings::PHASE_US.name()));
        for (row, &time) in times(&batch).iter().enumerate() {
            let label = |name: &str| text(&batch, name, row).unwrap_or_default();
            let object = [findings::TABLE, findings::INSTANCE, findings::COLUMN];
            let after_us = phases.get(row).copied().flatten();
            newest.take(Finding {
                time,
                device: label(findings::DEVICE.name()),
                object: object.map(|of| label(of.name())),
                class: text(&batch, findings::CLASS.name(), row),
                period: periods.get(row).copied().flatten().map(Nanos::from_micros),
                phase: after_us.map(|us| time.saturating_add(us.saturating_mul(1_000))),
            });
        }
    }
    problems.extend(scan.problems().iter().map(|problem| opened.problem(problem)));
    Ok(newest.held())
}

/// Of devices that answer, the value that is oldest at `now`: of each its name, when its newest answer was
/// received, and how its values are updated.
pub fn stalest<'a>(
    answering: impl IntoIterator<Item = (&'a str, WallTime, &'a Held)>,
    now: WallTime,
) -> Option<Stalest> {
    let age = |of: &(&str, WallTime, &Held)| of.2.age(of.1, now);
    // The first of several that are as old.
    let older = |one, other| if age(&other) > age(&one) { other } else { one };
    let (device, answered, held) = answering.into_iter().reduce(older)?;
    let object = held.behind(answered).1.to_owned();
    Some(Stalest { device: device.to_owned(), object, age: held.age(answered, now) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn at(tenths: i64) -> WallTime {
        WallTime::from_nanos(tenths * SECOND / 10)
    }

    #[test]
    fn a_device_is_silent_after_three_seconds_or_two_of_its_intervals() {
        let seconds = Nanos::from_secs;
        assert!(!is_silent(Nanos::from_millis(2_999), None));
        assert!(is_silent(seconds(3), None));
        assert!(is_silent(seconds(3), Some(Nanos::from_millis(100))));
        assert!(!is_silent(seconds(59), Some(seconds(30))));
        assert!(is_silent(seconds(60), Some(seconds(30))));
    }

    #[test]
    fn the_oldest_value_of_an_answer_counts_and_the_time_since() {
        let period = Nanos::from_secs(3);
        // Updated at 1 s, 4 s, 7 s ...
        let cached = ("in_octets".to_owned(), Update::Periodic { period, phase: Some(SECOND) });
        let known = Held(vec![cached]);
        assert_eq!(known.behind(at(40)), (Nanos::ZERO, "in_octets"));
        assert_eq!(known.behind(at(69)), (Nanos::from_millis(2_900), "in_octets"));
        assert_eq!(known.age(at(69), at(71)), Nanos::from_millis(3_100));
        // Before the phase as well as after it.
        assert_eq!(known.behind(at(9)).0, Nanos::from_millis(2_900));
        let unknown = ("load".to_owned(), Update::Periodic { period, phase: None });
        let frozen = ("user_ticks".to_owned(), Update::Frozen { since: at(10) });
        let all = Held(vec![unknown, frozen]);
        assert_eq!(all.behind(at(20)), (period, "load"));
        assert_eq!(all.behind(at(90)), (Nanos::from_secs(8), "user_ticks"));
        assert_eq!(Held::default().behind(at(90)), (Nanos::ZERO, ""));

        let answering = [("node1", at(80), &Held::default()), ("node2", at(90), &all)];
        let stalest = stalest(answering, at(91)).expect("two devices answer");
        assert_eq!((stalest.device.as_str(), stalest.object.as_str()), ("node2", "user_ticks"));
        assert_eq!(stalest.age, Nanos::from_millis(8_100));
        assert_eq!(super::stalest([], at(91)), None);
    }
}
