//! Alerts of the whole core: rules are set, devices are looked at, and people answer.

use meikyo_cluster::AlertRule;
use meikyo_recording::alerts::{ACKNOWLEDGED, Alert, CLEARED, SILENCED};
use meikyo_units::{Nanos, WallTime};

use super::compile::{Raised, compile, withdraw};
use super::{COMPILED_AT_ONCE, LOOK_EVERY};
use crate::poll::Poller;
use crate::poll::rows::Event;

/// Longest time for which an alert can be silenced.
const SILENCE_MAX: Nanos = Nanos::from_secs(30 * 86_400);

/// Longest name of a person, in bytes.
const BY_BYTES_MAX: usize = 64;

/// What a person says to an alert that is raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertAnswer {
    /// Name of the rule.
    pub rule: String,
    /// Name of the device.
    pub device: String,
    /// What it is about, as the alert says it; none for a silent device.
    pub object: Option<String>,
    /// Whether to acknowledge it or to silence it.
    pub action: AlertAction,
    /// Who says it, if known.
    pub by: Option<String>,
}

/// What can be said to an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertAction {
    /// Somebody has seen it.
    Acknowledge,
    /// It is to be quiet for this long, also when it is cleared and raised again.
    Silence(Nanos),
}

/// Why an answer was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlertAnswerError {
    /// No such device is measured.
    #[error("no device is named `{0}`")]
    NoDevice(String),
    /// The alert is not raised.
    #[error("{wanted} is not raised; raised for the device: {raised}")]
    NotRaised {
        /// The alert.
        wanted: String,
        /// Those that are.
        raised: String,
    },
    /// The span is none, or too long.
    #[error("an alert can be silenced for up to {SILENCE_MAX}, not for {0}")]
    Span(Nanos),
    /// The name cannot be kept.
    #[error("a name has at most {BY_BYTES_MAX} bytes and no control characters")]
    By,
}

impl Poller {
    /// Sets the rules. What stands by rules that stay the same goes on; devices follow a few at a
    /// time, so that no interval waits for it.
    pub fn set_alerts(&mut self, rules: Vec<AlertRule>) {
        self.alerts = rules.into();
        self.to_compile = (0..).take(self.devices.len()).collect();
    }

    /// Clears alerts that an earlier measurement into the same recording left raised; what still
    /// holds is raised anew.
    pub fn clear_left(&mut self, now: WallTime, left: &[Alert]) {
        for alert in left {
            let device = Some(self.rows.symbol(&alert.device));
            let text = format!("{}: the measurement began anew", alert.rule);
            let object = alert.object.as_deref();
            self.rows.event(now, CLEARED, Event { device, object, text: &text, count: None });
        }
    }

    /// Compiles the watches of one device, whose plan is new.
    pub(in crate::poll) fn watch(&mut self, ordinal: u32, now: WallTime) {
        let device = &mut self.devices[ordinal as usize];
        compile(device, &self.alerts, now, &mut self.rows);
    }

    /// Goes on with devices whose watches are of earlier rules.
    pub(in crate::poll) fn compile_some(&mut self, now: WallTime) {
        let rest = self.to_compile.len().saturating_sub(COMPILED_AT_ONCE);
        for ordinal in self.to_compile.split_off(rest) {
            if !self.devices[ordinal as usize].removed {
                self.watch(ordinal, now);
            }
        }
    }

    /// Once a second: looks for what no answer tells.
    pub(in crate::poll) fn look_for_alerts(&mut self, now: WallTime) {
        if now < self.look_at || self.alerts.is_empty() {
            return;
        }
        self.look_at = now.floor(LOOK_EVERY) + LOOK_EVERY;
        for device in &mut self.devices {
            let Some(mut alerts) = device.alerts.take() else { continue };
            alerts.look_for_silence(now, device, &mut self.rows);
            alerts.look_for_frozen(now, device, &mut self.rows);
            device.alerts = Some(alerts);
        }
    }

    /// Silence counts from now on: the collector itself slept.
    pub(in crate::poll) fn alerts_slept(&mut self, now: WallTime) {
        for device in &mut self.devices {
            device.watching.slept(now);
        }
    }

    /// Clears what is raised for a device that is no longer measured.
    pub(in crate::poll) fn withdraw_alerts(&mut self, ordinal: u32, now: WallTime, why: &str) {
        withdraw(&mut self.devices[ordinal as usize], now, why, &mut self.rows);
    }

    /// Writes down what a person says to a raised alert.
    ///
    /// # Errors
    /// [`AlertAnswerError`] when there is no such alert, or what is said cannot be kept.
    pub fn answer_alert(
        &mut self,
        now: WallTime,
        answer: &AlertAnswer,
    ) -> Result<(), AlertAnswerError> {
        if let AlertAction::Silence(span) = answer.action
            && (span == Nanos::ZERO || span > SILENCE_MAX)
        {
            return Err(AlertAnswerError::Span(span));
        }
        let by = match answer.by.as_deref() {
            Some(by) if by.len() > BY_BYTES_MAX || by.contains(char::is_control) => {
                return Err(AlertAnswerError::By);
            }
            Some(by) if !by.trim().is_empty() => format!(" by {}", by.trim()),
            _ => String::new(),
        };
        let is_meant = |device: &&_| is_named(device, &answer.device);
        let Some(device) = self.devices.iter().find(is_meant) else {
            return Err(AlertAnswerError::NoDevice(answer.device.clone()));
        };
        let raised: Vec<Raised<'_>> =
            device.alerts.iter().flat_map(|alerts| alerts.raised()).collect();
        let meant = raised.iter().find(|raised| {
            raised.rule.name == answer.rule && raised.object == answer.object.as_deref()
        });
        let Some(meant) = meant else {
            let names: Vec<_> =
                raised.iter().map(|raised| name(&raised.rule.name, raised.object)).collect();
            return Err(AlertAnswerError::NotRaised {
                wanted: name(&answer.rule, answer.object.as_deref()),
                raised: if names.is_empty() { "none".into() } else { names.join(", ") },
            });
        };
        let (kind, count, said) = match answer.action {
            AlertAction::Acknowledge => (ACKNOWLEDGED, None, "acknowledged".to_owned()),
            AlertAction::Silence(span) => {
                (SILENCED, Some(span.as_micros()), format!("silenced for {span}"))
            }
        };
        let at = meant.standing.clone().tell(now);
        let text = format!("{}: {said}{by}", answer.rule);
        let object = answer.object.as_deref();
        let event = Event { device: Some(device.name), object, text: &text, count };
        self.rows.event(at, kind, event);
        Ok(())
    }
}

fn is_named(device: &crate::poll::device::Device, name: &str) -> bool {
    !device.removed && &*device.label == name
}

fn name(rule: &str, object: Option<&str>) -> String {
    object.map_or_else(|| format!("`{rule}`"), |object| format!("`{rule}` of `{object}`"))
}
