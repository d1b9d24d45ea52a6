//! Alerts: what the collector found by its rules, and what people said to it.
//!
//! An alert is rows in `events`: `alert_raised` and `alert_cleared`, which the collector writes, and
//! `alert_acknowledged` and `alert_silenced`, which it writes when it is asked to at its control
//! socket. The server only reads, and asks. What belongs together has the same device and object;
//! the `id` is made of both.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use meikyo_recording::{ReadError, Selection};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::catalog::Opened;
use crate::errors::ApiError;
use crate::follow::frames::Event;
use crate::rows::all_events;

/// The control socket in a running recording's directory.
const SOCKET: &str = "control.sock";
/// How long the measurement may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in octets.
const ANSWER_MAX: u64 = 64 << 10;
/// Longest time for which an alert can be silenced, µs: 30 days.
const SILENCE_US_MAX: u64 = 30 * 86_400_000_000;

/// One alert.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AlertBody {
    /// What it is called in addresses.
    pub(crate) id: String,
    /// The recording.
    pub(crate) recording: String,
    /// The device; null for the collector itself.
    pub(crate) device: Option<String>,
    /// Rule or value that it concerns.
    pub(crate) object: Option<String>,
    /// For people.
    pub(crate) text: Option<String>,
    /// `raised` or `cleared`.
    pub(crate) state: &'static str,
    /// When it was raised last.
    pub(crate) raised_us: i64,
    /// When it was cleared; null while it is raised.
    pub(crate) cleared_us: Option<i64>,
    /// When it was acknowledged since; null when not.
    pub(crate) acknowledged_us: Option<i64>,
    /// Until when it is silenced; null when not.
    pub(crate) silenced_until_us: Option<i64>,
}

/// What is asked for when an alert is silenced.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SilenceRequest {
    /// For how long, at most 30 days.
    pub(crate) for_us: u64,
}

/// What the control socket is asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Request<'a> {
    Alert { kind: &'a str, text: &'a str },
}

/// What it answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Done,
    Refused(String),
}

/// The name of what has that device and object.
fn id_of(device: Option<&str>, object: Option<&str>) -> String {
    let text = format!("{}\n{}", device.unwrap_or_default(), object.unwrap_or_default());
    Sha256::digest(text.as_bytes()).iter().take(8).map(|octet| format!("{octet:02x}")).collect()
}

/// The alerts of a recording, raised ones first, newest first. Blocks.
pub(crate) fn read(opened: &Opened) -> Result<Vec<AlertBody>, ApiError> {
    let kinds = ["alert_raised", "alert_cleared", "alert_acknowledged", "alert_silenced"];
    let selection = Selection {
        labels: vec![("event".into(), kinds.map(str::to_owned).to_vec())],
        ..Selection::all("events")
    };
    let events = match opened.recording.table("events") {
        Ok(_) => all_events(opened, &selection)?,
        Err(ReadError::UnknownTable { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut alerts = BTreeMap::new();
    for event in &events {
        take(&opened.id, event, &mut alerts);
    }
    let mut alerts: Vec<_> = alerts.into_values().collect();
    alerts.sort_by_key(|alert| (alert.cleared_us.is_some(), -alert.raised_us));
    Ok(alerts)
}

fn take(recording: &str, event: &Event, alerts: &mut BTreeMap<String, AlertBody>) {
    let time_us = event.time.div_euclid(1_000);
    match event.event.as_str() {
        "alert_raised" => {
            let id = id_of(event.device.as_deref(), event.object.as_deref());
            let silenced = alerts.get(&id).and_then(|before| before.silenced_until_us);
            let alert = AlertBody {
                id: id.clone(),
                recording: recording.to_owned(),
                device: event.device.clone(),
                object: event.object.clone(),
                text: event.text.clone(),
                state: "raised",
                raised_us: time_us,
                cleared_us: None,
                acknowledged_us: None,
                silenced_until_us: silenced,
            };
            alerts.insert(id, alert);
        }
        "alert_cleared" => {
            let id = id_of(event.device.as_deref(), event.object.as_deref());
            if let Some(alert) = alerts.get_mut(&id) {
                alert.state = "cleared";
                alert.cleared_us = Some(time_us);
            }
        }
        said => {
            // What people said names the alert in its text: `ID`, or `ID for N us`.
            let mut words = event.text.as_deref().unwrap_or_default().split(' ');
            let Some(alert) = words.next().and_then(|id| alerts.get_mut(id)) else { return };
            if said == "alert_acknowledged" {
                alert.acknowledged_us = Some(time_us);
            } else if let Some(span) = words.nth(1).and_then(|span| span.parse::<i64>().ok()) {
                alert.silenced_until_us = Some(time_us.saturating_add(span));
            }
        }
    }
}

/// Acknowledges an alert, or silences it for some time. Blocks.
pub(crate) fn say(
    opened: &Opened,
    alert: &str,
    silence: Option<SilenceRequest>,
) -> Result<(), ApiError> {
    let (kind, text) = match silence {
        None => ("alert_acknowledged", alert.to_owned()),
        Some(SilenceRequest { for_us }) if for_us == 0 || for_us > SILENCE_US_MAX => {
            let text = format!("`for_us` is above 0 and at most {SILENCE_US_MAX}");
            return Err(ApiError::bad(text, "for_us"));
        }
        Some(SilenceRequest { for_us }) => ("alert_silenced", format!("{alert} for {for_us} us")),
    };
    let refused = |text: String| ApiError::new(StatusCode::CONFLICT, text, "recording");
    match ask(opened.recording.dir(), &Request::Alert { kind, text: &text }) {
        Ok(Reply::Done) => Ok(()),
        Ok(Reply::Refused(why)) => Err(refused(format!("the measurement refused: {why}"))),
        Err(error) => Err(refused(format!(
            "no measurement is writing this recording, and only it can note that: {error}"
        ))),
    }
}

fn ask(dir: &Path, request: &Request<'_>) -> io::Result<Reply> {
    // Through the directory's descriptor, since the name of a socket has at most 108 octets.
    let handle = File::open(dir)?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", handle.as_raw_fd());
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_device_and_object_are_one_alert() {
        let id = id_of(Some("node1"), Some("load"));
        assert_ne!(id, id_of(Some("node1load"), None));
        let event = |time: i64, kind: &str, text: &str| Event {
            time: time * 1_000,
            device: Some("node1".into()),
            event: kind.into(),
            object: Some("load".into()),
            text: Some(text.into()),
            count: None,
        };
        let mut alerts = BTreeMap::new();
        for event in [
            event(1, "alert_raised", "load above 8"),
            event(2, "alert_acknowledged", &id),
            event(3, "alert_silenced", &format!("{id} for 100 us")),
            event(4, "alert_cleared", ""),
        ] {
            take("r", &event, &mut alerts);
        }
        let alert = &alerts[&id];
        assert_eq!(
            (alert.state, alert.cleared_us, alert.acknowledged_us),
            ("cleared", Some(4), Some(2))
        );
        assert_eq!(alert.silenced_until_us, Some(103));
        take("r", &event(9, "alert_raised", "again"), &mut alerts);
        let alert = &alerts[&id];
        assert_eq!((alert.state, alert.raised_us, alert.acknowledged_us), ("raised", 9, None));
        assert_eq!(alert.silenced_until_us, Some(103));
    }
}
