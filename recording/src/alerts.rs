//! Alerts of a recording: what its events say was raised, cleared, acknowledged and silenced.
//!
//! The writer of a recording decides what is alerted of and leaves events of four kinds in the table
//! `events`: [`RAISED`], [`CLEARED`], [`ACKNOWLEDGED`], [`SILENCED`]. Each has the device, the object
//! (which value or table; none where it is the device as a whole) and a text that begins with the
//! rule's name and a colon. `count` of [`SILENCED`] is the span in µs. Rule, device and object
//! together name an alert; what is raised again after it was cleared is a new one.

use std::collections::BTreeMap;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use meikyo_units::{Nanos, WallTime};

use crate::read::{Problem, ReadError, Recording, Selection};
use crate::tables;

/// Something is not as it should be.
pub const RAISED: &str = "alert_raised";
/// It is again, or nothing can say so any more.
pub const CLEARED: &str = "alert_cleared";
/// Somebody has seen it.
pub const ACKNOWLEDGED: &str = "alert_acknowledged";
/// It is to be quiet for some time, also when it is raised again.
pub const SILENCED: &str = "alert_silenced";

/// What an event says of an alert, in the order in which they count at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertEventKind {
    /// The rule holds from now on.
    Raised,
    /// A person has seen it.
    Acknowledged,
    /// [`SILENCED`] for this long.
    Silenced(Nanos),
    /// The rule holds no more.
    Cleared,
}

/// An event of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertEvent {
    /// Instant of the event.
    pub at: WallTime,
    /// What happened to the alert.
    pub kind: AlertEventKind,
    /// The device; empty for the collector itself.
    pub device: String,
    /// Value or table; none for the device as a whole.
    pub object: Option<String>,
    /// For people; it begins with the rule's name and a colon.
    pub text: String,
}

/// A time at which something was said, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Instant at which it was said.
    pub at: WallTime,
    /// For people.
    pub text: String,
}

/// One alert, from when it was raised until it is cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The rule that found it.
    pub rule: String,
    /// The device; empty for the collector itself.
    pub device: String,
    /// Value or table; none for the device as a whole.
    pub object: Option<String>,
    /// When and why it was raised.
    pub raised: Said,
    /// When and why it was cleared; none while it is raised.
    pub cleared: Option<Said>,
    /// That somebody has seen it.
    pub acknowledged: Option<Said>,
    /// Until when it is to be quiet.
    pub silenced_until: Option<WallTime>,
}

impl Alert {
    /// Whether it waits for a person at `now`: raised, not acknowledged, not silenced.
    pub fn is_pressing(&self, now: WallTime) -> bool {
        self.cleared.is_none()
            && self.acknowledged.is_none()
            && self.silenced_until.is_none_or(|until| until <= now)
    }
}

impl AlertEvent {
    /// An event by the columns of `events`; `None` if it is not about an alert.
    pub fn new(
        at: WallTime,
        kind: &str,
        (device, object): (Option<&str>, Option<&str>),
        text: &str,
        count: Option<u64>,
    ) -> Option<Self> {
        let kind = match kind {
            RAISED => AlertEventKind::Raised,
            CLEARED => AlertEventKind::Cleared,
            ACKNOWLEDGED => AlertEventKind::Acknowledged,
            SILENCED => {
                let span = Nanos::new(count.unwrap_or(0).saturating_mul(1_000));
                AlertEventKind::Silenced(span)
            }
            _ => return None,
        };
        let (device, object) = (device.unwrap_or_default().to_owned(), object.map(str::to_owned));
        Some(Self { at, kind, device, object, text: text.to_owned() })
    }

    /// The name of the rule.
    pub fn rule(&self) -> &str {
        self.text.split_once(": ").map_or(&self.text, |(rule, _)| rule)
    }
}

/// The alerts that events in any order tell of, in the order in which they were raised.
///
/// Events about an alert that is not raised say nothing; one that is raised again without having
/// been cleared goes on. Time is `n log n` in the number of events.
pub fn fold(mut events: Vec<AlertEvent>) -> Vec<Alert> {
    events.sort_by_key(|event| (event.at, event.kind));
    let mut alerts: Vec<Alert> = Vec::new();
    let mut newest: BTreeMap<(String, String, Option<String>), usize> = BTreeMap::new();
    for event in events {
        let key = (event.rule().to_owned(), event.device.clone(), event.object.clone());
        let known = newest.get(&key).copied();
        let open = known.filter(|&position| alerts[position].cleared.is_none());
        let said = Said { at: event.at, text: event.text };
        match (event.kind, open) {
            (AlertEventKind::Raised, None) => {
                let silenced = known.and_then(|position| alerts[position].silenced_until);
                newest.insert(key.clone(), alerts.len());
                alerts.push(Alert {
                    rule: key.0,
                    device: key.1,
                    object: key.2,
                    raised: said,
                    cleared: None,
                    acknowledged: None,
                    silenced_until: silenced.filter(|until| *until > event.at),
                });
            }
            (AlertEventKind::Cleared, Some(position)) => alerts[position].cleared = Some(said),
            (AlertEventKind::Acknowledged, Some(position)) => {
                alerts[position].acknowledged = Some(said);
            }
            (AlertEventKind::Silenced(span), Some(position)) => {
                alerts[position].silenced_until = Some(event.at + span);
            }
            (AlertEventKind::Raised, Some(_)) | (_, None) => {}
        }
    }
    alerts
}

/// The events of alerts in a batch of rows of [`tables::events`].
pub fn events(rows: &RecordBatch) -> Vec<AlertEvent> {
    let times = rows
        .column_by_name("time")
        .and_then(|column| column.as_primitive_opt::<TimestampNanosecondType>());
    let (Some(times), Some(kinds)) = (times, tables::events::EVENT.values_in(rows)) else {
        return Vec::new();
    };
    let (devices, objects) =
        (tables::events::DEVICE.values_in(rows), tables::events::OBJECT.values_in(rows));
    let (said, counts) =
        (tables::events::TEXT.values_in(rows), tables::events::COUNT.values_in(rows));
    (0..rows.num_rows())
        .filter_map(|row| {
            AlertEvent::new(
                WallTime::from_nanos(times.value(row)),
                kinds.get(row)?,
                (
                    devices.and_then(|texts| texts.get(row)),
                    objects.and_then(|texts| texts.get(row)),
                ),
                said.and_then(|texts| texts.get(row)).unwrap_or_default(),
                counts.and_then(|counts| counts.get(row)),
            )
        })
        .collect()
}

/// The alerts of a recording, and the files that could not be read wholly.
///
/// # Errors
/// As [`Recording::scan`]; a recording without events has no alerts.
pub fn read(recording: &Recording) -> Result<(Vec<Alert>, Vec<Problem>), ReadError> {
    let kinds = [RAISED, CLEARED, ACKNOWLEDGED, SILENCED].map(str::to_owned).to_vec();
    let selection = Selection {
        labels: vec![(tables::events::EVENT.name().into(), kinds)],
        ..Selection::all(tables::events::NAME)
    };
    let mut scan = match recording.scan(&selection) {
        Err(ReadError::UnknownTable { .. }) => return Ok((Vec::new(), Vec::new())),
        scan => scan?,
    };
    let mut found = Vec::new();
    for rows in &mut scan {
        found.extend(events(&rows?));
    }
    Ok((fold(found), scan.problems().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(second: i64, kind: &str, object: Option<&str>, text: &str, us: u64) -> AlertEvent {
        let at = WallTime::from_nanos(second * 1_000_000_000);
        AlertEvent::new(at, kind, (Some("sw1"), object), text, Some(us)).unwrap()
    }

    #[test]
    fn events_in_any_order_become_alerts_with_what_was_said_to_them() {
        let mut events = vec![
            event(1, RAISED, Some("x"), "busy: x is 9, above 8", 0),
            event(1, RAISED, Some("x"), "idle: x is 9, above 2", 0),
            event(2, ACKNOWLEDGED, Some("x"), "busy: acknowledged by anna", 0),
            event(3, SILENCED, Some("x"), "idle: silenced for 10s", 10_000_000),
            event(4, CLEARED, Some("x"), "idle: x is 1 again", 0),
            event(5, RAISED, Some("x"), "idle: x is 9, above 2", 0),
            event(6, RAISED, None, "silent: no answer", 0),
            event(7, CLEARED, Some("y"), "busy: nobody raised this", 0),
        ];
        events.reverse();
        let alerts = fold(events);
        let names: Vec<_> = alerts.iter().map(|alert| alert.rule.as_str()).collect();
        assert_eq!(names, ["idle", "busy", "idle", "silent"]);
        let at = |second: i64| WallTime::from_nanos(second * 1_000_000_000);
        let pressing = |second| -> Vec<usize> {
            (0..4).filter(|&position| alerts[position].is_pressing(at(second))).collect()
        };
        assert_eq!(alerts[0].cleared.as_ref().map(|said| said.at), Some(at(4)));
        assert_eq!(alerts[1].acknowledged.as_ref().map(|said| said.at), Some(at(2)));
        // The silence goes on over the alert that was raised anew, and ends.
        assert_eq!(alerts[2].silenced_until, Some(at(13)));
        assert_eq!(pressing(6), [3]);
        assert_eq!(pressing(13), [2, 3]);
    }

    #[test]
    fn what_is_raised_twice_goes_on_and_a_silence_that_is_over_is_gone() {
        let alerts = fold(vec![
            event(1, RAISED, None, "silent: no answer", 0),
            event(2, ACKNOWLEDGED, None, "silent: acknowledged", 0),
            event(3, RAISED, None, "silent: no answer", 0),
            event(4, SILENCED, None, "silent: silenced for 1s", 1_000_000),
            event(5, CLEARED, None, "silent: it answers again", 0),
            event(9, RAISED, None, "silent: no answer", 0),
        ]);
        assert_eq!(alerts.len(), 2);
        assert!(alerts[0].acknowledged.is_some());
        assert_eq!((alerts[1].silenced_until, &alerts[1].acknowledged), (None, &None));
    }
}
