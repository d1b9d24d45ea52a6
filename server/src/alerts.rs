//! Alerts: what the collector found by its rules, and what people said to it.
//!
//! The server only reads what the events of a recording say ([`meikyo_recording::alerts`]), and asks
//! the running measurement to note what a person says ([`meikyo_recording::control`]).

use axum::http::StatusCode;
use meikyo_live::Opened;
use meikyo_recording::alerts::{self, Alert};
use meikyo_recording::control::{self, AlertRequest, AlertWord, Request};
use meikyo_units::WallTime;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::errors::ApiError;

/// Most alerts that are over which are answered with, the newest.
const CLEARED_MAX: usize = 200;
/// Longest time for which an alert can be silenced, µs: 30 days.
const SILENCE_US_MAX: u64 = 30 * 86_400_000_000;

/// An alert as the API describes it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AlertBody {
    /// What it is called in addresses.
    pub(crate) id: String,
    /// The id of the recording that says it.
    pub(crate) recording: String,
    /// The rule that found it.
    pub(crate) rule: String,
    /// The device; null for the collector itself.
    pub(crate) device: Option<String>,
    /// Value or table that it concerns; null for the device as a whole.
    pub(crate) object: Option<String>,
    /// For people.
    pub(crate) text: Option<String>,
    /// `raised` or `cleared`.
    pub(crate) state: &'static str,
    /// When it was raised.
    pub(crate) raised_us: i64,
    /// When it was cleared; null while it is raised.
    pub(crate) cleared_us: Option<i64>,
    /// When it was acknowledged since; null when not.
    pub(crate) acknowledged_us: Option<i64>,
    /// Until when it is silenced; null when not.
    pub(crate) silenced_until_us: Option<i64>,
}

/// Whether anything is alerted of.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct AlertRulesBody {
    /// Whether rules are set, as far as the recording says.
    pub(crate) set: bool,
}

/// What is asked for when an alert is silenced.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SilenceRequest {
    /// For how long, at most 30 days.
    pub(crate) for_us: u64,
}

impl AlertBody {
    fn new(recording: &str, alert: &Alert) -> Self {
        let us = |at: WallTime| at.as_nanos().div_euclid(1_000);
        Self {
            id: id_of(alert),
            recording: recording.to_owned(),
            rule: alert.rule.clone(),
            device: Some(alert.device.clone()).filter(|device| !device.is_empty()),
            object: alert.object.clone(),
            text: Some(alert.raised.text.clone()),
            state: if alert.cleared.is_none() { "raised" } else { "cleared" },
            raised_us: us(alert.raised.at),
            cleared_us: alert.cleared.as_ref().map(|said| us(said.at)),
            acknowledged_us: alert.acknowledged.as_ref().map(|said| us(said.at)),
            silenced_until_us: alert.silenced_until.map(us),
        }
    }
}

/// The name of one alert: what is raised again is another one.
fn id_of(alert: &Alert) -> String {
    let (at, object) = (alert.raised.at.as_nanos(), alert.object.as_deref().unwrap_or_default());
    let text = format!("{}\n{}\n{object}\n{at}", alert.rule, alert.device);
    Sha256::digest(text.as_bytes()).iter().take(8).map(|octet| format!("{octet:02x}")).collect()
}

/// Raised ones first, newest first.
fn in_order(mut alerts: Vec<Alert>) -> Vec<Alert> {
    alerts.sort_by_key(|alert| (alert.cleared.is_some(), -alert.raised.at.as_nanos()));
    let raised = alerts.partition_point(|alert| alert.cleared.is_none());
    alerts.truncate(raised + CLEARED_MAX);
    alerts
}

/// The alerts of a recording in their order, and how many files of it could not be read; those are
/// remembered.
fn all(opened: &Opened) -> Result<(Vec<Alert>, usize), ApiError> {
    let (found, problems) = alerts::read(&opened.recording)?;
    for problem in &problems {
        opened.problem(problem);
    }
    Ok((in_order(found), problems.len()))
}

/// The alerts of a recording, raised ones first, newest first, and how many files could not be read
/// that may hold some. Blocks.
pub(crate) fn read(opened: &Opened) -> Result<(Vec<AlertBody>, usize), ApiError> {
    let (found, problems) = all(opened)?;
    Ok((found.iter().map(|alert| AlertBody::new(&opened.id, alert)).collect(), problems))
}

/// Acknowledges an alert, or silences it for some time. Blocks.
pub(crate) fn say(
    opened: &Opened,
    id: &str,
    silence: Option<SilenceRequest>,
) -> Result<(), ApiError> {
    let Some(alert) = all(opened)?.0.into_iter().find(|alert| id_of(alert) == id) else {
        return Err(ApiError::unknown(format!("there is no alert `{id}`"), "alert"));
    };
    let (action, for_us) = match silence {
        None => (AlertWord::Acknowledge, None),
        Some(SilenceRequest { for_us }) if for_us == 0 || for_us > SILENCE_US_MAX => {
            let text = format!("`for_us` is above 0 and at most {SILENCE_US_MAX}");
            return Err(ApiError::bad(text, "for_us"));
        }
        Some(SilenceRequest { for_us }) => (AlertWord::Silence, Some(for_us)),
    };
    let (rule, device, object) = (alert.rule, alert.device, alert.object);
    let request = Request::Alert(AlertRequest { action, rule, device, object, for_us, by: None });
    control::ask(opened.recording.dir(), &request).map_err(|error| {
        let text = format!(
            "only a running measurement can note that, on the machine that measures: {error}"
        );
        ApiError::new(StatusCode::CONFLICT, text, "recording")
    })
}

#[cfg(test)]
mod tests {
    use meikyo_recording::alerts::Said;
    use meikyo_units::Nanos;

    use super::*;

    #[test]
    fn raised_ones_come_first_and_every_raise_has_its_own_name() {
        let alert = |second: u64, cleared: bool| {
            let at = WallTime::default() + Nanos::from_secs(second);
            let said = Said { at, text: "busy: x is 9, above 8".into() };
            Alert {
                rule: "busy".into(),
                device: "node1".into(),
                object: Some("x".into()),
                raised: said.clone(),
                cleared: cleared.then_some(said),
                acknowledged: None,
                silenced_until: None,
            }
        };
        let history = (1..=400).map(|second| alert(second, second % 100 != 0)).collect();
        let ordered: Vec<AlertBody> =
            in_order(history).iter().map(|alert| AlertBody::new("r", alert)).collect();
        let raised: Vec<_> = ordered[..5].iter().map(|body| body.raised_us / 1_000_000).collect();
        assert_eq!(raised, [400, 300, 200, 100, 399]);
        assert_eq!(ordered.len(), 4 + CLEARED_MAX);
        let ids: std::collections::BTreeSet<_> = ordered.iter().map(|body| &body.id).collect();
        assert_eq!(ids.len(), ordered.len());
    }
}
