//! Which devices answer, since when not, and how their intervals ended.

use std::collections::BTreeMap;

use meikyo_live::columns::{number, signed, text, times};
use meikyo_live::staleness::{self, Held};
use meikyo_live::{Device, Opened};
use meikyo_recording::schema::role::{answers, health};
use meikyo_recording::schema::{Name, Role};
use meikyo_recording::{ReadError, Selection};
use meikyo_units::{Nanos, WallTime};

use super::metric::{Metric, escaped, own, real};
use crate::errors::ApiError;

/// How an interval of a device can end, and the column that counts it.
pub(super) const STATES: [(&str, Name<u64>); 5] = [
    ("ok", health::OK),
    ("late", health::LATE),
    ("missed", health::MISSED),
    ("error", health::ERRORS),
    ("skipped", health::SKIPPED),
];

/// How far back intervals are counted that ended since the last question, at most.
const COUNTED_MAX: Nanos = Nanos::from_secs(3_600);

/// The devices of one recording, remembered between two questions.
#[derive(Debug, Default)]
pub(super) struct Devices {
    heard: BTreeMap<String, Heard>,
    /// Intervals of devices by state since the server began, in the order of [`STATES`].
    ended: [u64; 5],
    /// The due instant of the newest interval that was counted.
    counted_to: Option<WallTime>,
}

/// What was heard of one device.
#[derive(Debug, Default)]
struct Heard {
    /// When its newest answer was received.
    answered: Option<WallTime>,
    /// The due instant of its newest interval.
    due: Option<WallTime>,
    /// Between its two newest intervals.
    interval: Option<Nanos>,
}

impl Devices {
    /// Reads what came since `from`, and of intervals what was not counted.
    pub(super) fn refresh(
        &mut self,
        opened: &Opened,
        from: WallTime,
        now: WallTime,
    ) -> Result<(), ReadError> {
        if let Some(table) = opened.table_for(Role::Answers)? {
            self.hear(opened, &table.name, from)?;
        }
        if let Some(table) = opened.table_for(Role::Health)? {
            self.count(opened, &table.name, from, now)?;
        }
        Ok(())
    }

    fn hear(&mut self, opened: &Opened, table: &str, from: WallTime) -> Result<(), ReadError> {
        let columns = ["time", answers::DEVICE.name(), answers::RECEIVED_US.name()];
        let selection = Selection {
            columns: Some(columns.map(str::to_owned).to_vec()),
            from: Some(from),
            ..Selection::all(table)
        };
        for batch in opened.recording.scan(&selection)? {
            let batch = batch?;
            let received = signed(&batch, answers::RECEIVED_US.name());
            for (row, &time) in times(&batch).iter().enumerate() {
                let device = text(&batch, answers::DEVICE.name(), row).unwrap_or_default();
                if !self.heard.contains_key(device) {
                    self.heard.insert(device.to_owned(), Heard::default());
                }
                let heard = self.heard.get_mut(device).expect("it was put there");
                let due = WallTime::from_nanos(time);
                match heard.due {
                    Some(known) if due > known => {
                        (heard.due, heard.interval) = (Some(due), Some(due.since(known)));
                    }
                    None => heard.due = Some(due),
                    Some(_) => {}
                }
                if let Some(after_us) = received.get(row).copied().flatten() {
                    let at = time.saturating_add(after_us.saturating_mul(1_000));
                    heard.answered = heard.answered.max(Some(WallTime::from_nanos(at)));
                }
            }
        }
        Ok(())
    }

    /// An interval is written when it is over, in the order of due instants: each is counted once.
    fn count(
        &mut self,
        opened: &Opened,
        table: &str,
        from: WallTime,
        now: WallTime,
    ) -> Result<(), ReadError> {
        let counted = self.counted_to.map(|to| to + Nanos::new(1));
        let columns = std::iter::once("time").chain(STATES.map(|(_, of)| of.name()));
        let selection = Selection {
            columns: Some(columns.map(str::to_owned).collect()),
            from: Some(counted.unwrap_or(from).max(now.before(COUNTED_MAX))),
            ..Selection::all(table)
        };
        for batch in opened.recording.scan(&selection)? {
            let batch = batch?;
            for (ended, (_, of)) in self.ended.iter_mut().zip(STATES) {
                *ended += number(&batch, of.name()).iter().flatten().sum::<u64>();
            }
            let newest = times(&batch).iter().copied().max().map(WallTime::from_nanos);
            self.counted_to = self.counted_to.max(newest);
        }
        Ok(())
    }

    /// Tells of every device that is measured, whether it answers or not.
    pub(super) fn tell(
        &self,
        metrics: &mut BTreeMap<String, Metric>,
        opened: &Opened,
        now: WallTime,
    ) -> Result<(), ApiError> {
        let recording = format!("recording=\"{}\"", escaped(&opened.id));
        let mut devices = opened.devices()?;
        // Rows also name devices that have been taken out of the cluster file, for ever.
        if devices.iter().any(|device| device.role != "unknown") {
            devices.retain(|device| device.role != "unknown");
        }
        let (held, unknown) = (staleness::held(opened, now, &mut Vec::new())?, Held::default());
        for device in &devices {
            let labels = format!("{recording},device=\"{}\"", escaped(&device.name));
            let held = held.get(&device.name).unwrap_or(&unknown);
            self.tell_of(metrics, (device, held), &labels, now);
        }
        for ((state, _), ended) in STATES.iter().zip(self.ended) {
            let help = "intervals of devices that ended so, since this server began to count";
            let labels = format!("{recording},state=\"{state}\"");
            own(metrics, "polls_total", help, &labels, real(ended));
        }
        Ok(())
    }

    fn tell_of(
        &self,
        metrics: &mut BTreeMap<String, Metric>,
        (device, held): (&Device, &Held),
        labels: &str,
        now: WallTime,
    ) {
        let heard = self.heard.get(&device.name);
        let answered = heard.and_then(|heard| heard.answered);
        let interval = heard.and_then(|heard| heard.interval);
        let is_up = answered.is_some_and(|at| !staleness::is_silent(now.since(at), interval));
        let help = "1 while the device answers, 0 when it has been silent for 3 s or two intervals";
        own(metrics, "device_up", help, labels, if is_up { 1.0 } else { 0.0 });
        let help = "1; the labels say what kind of device it is, and in which group it stands";
        let group = escaped(device.group.as_deref().unwrap_or_default());
        let about = format!("{labels},role=\"{}\",group=\"{group}\"", device.role);
        own(metrics, "device_info", help, &about, 1.0);
        if let Some(at) = answered {
            let age = held.age(at, now).as_secs_f64();
            let help = "how old the oldest value of the device is at its agent";
            own(metrics, "device_age_seconds", help, labels, age);
            let help = "when the newest answer of the device was received, since the epoch";
            let seconds = at.since(WallTime::default()).as_secs_f64();
            own(metrics, "device_last_answer_timestamp_seconds", help, labels, seconds);
        }
    }
}
