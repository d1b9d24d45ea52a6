//! `/metrics`: the newest value of every series and Meikyo's own health, as Prometheus text
//! (exposition format 0.0.4).
//!
//! Counters are handed out as they are, so that Prometheus can take its own rates; it sees one
//! reading of the 150 that came since it asked last. Values of recordings that nobody writes any
//! more, and values that have not come for five minutes, are left out: that is how Prometheus knows
//! that they are gone. A device never is: `meikyo_device_up` says 0 of one that is dead
//! ([`devices`]). All values are in base units, which their names say ([`naming`]).

mod devices;
mod metric;
pub(crate) mod naming;
pub(crate) mod newest;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use meikyo_live::Opened;
use meikyo_recording::alerts;
use meikyo_units::WallTime;

use crate::access::Tokens;
use crate::counts::Closed;
use crate::errors::ApiError;
use crate::ingest::Taken;
use crate::notify::NotifyCounts;
use crate::onward::OnwardCounts;
use crate::routes::senders::{self, SenderBody};
use crate::state::Server;
use metric::{Metric, escaped, own, real};

/// Most values that are handed out.
const VALUES_MAX: usize = 400_000;

/// The text. Blocks while logs are read.
pub(crate) fn text_of(server: &Server) -> Result<String, ApiError> {
    let now = WallTime::now();
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut all = server.newest.lock();
    for opened in &server.catalog.all() {
        let running = opened.is_running();
        let id = format!("recording=\"{}\"", escaped(&opened.id));
        own(
            &mut metrics,
            "recording_running",
            "1 while somebody writes the recording",
            &id,
            if running { 1.0 } else { 0.0 },
        );
        if running {
            let of = all.entry(opened.id.clone()).or_default();
            of.refresh(opened, now)?;
            of.devices.tell(&mut metrics, opened, now)?;
            of.tell_ages(&mut metrics, opened, now);
            alerts_of(&mut metrics, opened)?;
        } else {
            all.remove(&opened.id);
        }
        let help =
            "files of the recording that are missing, damaged or do not belong, as far as met";
        own(&mut metrics, "recording_problems", help, &id, count(opened.problems_met().len()));
        let Some(of) = all.get(&opened.id) else { continue };
        for (name, metric) in &of.metrics {
            let into = metrics.entry(name.clone()).or_default();
            into.counter = metric.counter;
            into.help.clone_from(&metric.help);
            let values = metric.values.iter();
            into.values.extend(values.map(|(labels, value)| (labels.clone(), *value)));
        }
    }
    drop(all);
    of_server(&mut metrics, server);
    if let Some(bytes) = resident_bytes() {
        own(&mut metrics, "server_resident_bytes", "memory of this process", "", bytes);
    }
    Ok(rendered(&metrics))
}

/// The alerts that are raised.
fn alerts_of(metrics: &mut BTreeMap<String, Metric>, opened: &Opened) -> Result<(), ApiError> {
    let help = "1 while the rule's alert of the device is raised";
    // Without an alert, too, so that one can tell that there is none.
    metrics.entry("meikyo_alert".to_owned()).or_default().help = help.to_owned();
    let (alerts, problems) = alerts::read(&opened.recording)?;
    for problem in &problems {
        opened.problem(problem);
    }
    for alert in alerts.iter().filter(|alert| alert.cleared.is_none()) {
        let mut labels = format!(
            "recording=\"{}\",rule=\"{}\",device=\"{}\"",
            escaped(&opened.id),
            escaped(&alert.rule),
            escaped(&alert.device)
        );
        if let Some(object) = &alert.object {
            labels += &format!(",object=\"{}\"", escaped(object));
        }
        own(metrics, "alert", help, &labels, 1.0);
    }
    Ok(())
}

/// Who is connected, and what was refused, closed and lost.
fn of_server(metrics: &mut BTreeMap<String, Metric>, server: &Server) {
    let (connections, viewers) = (&server.connections, &server.viewers);
    let help = "connections that are open, WebSockets not counted";
    own(metrics, "server_connections", help, "", count(connections.held()));
    let help = "sockets of viewers that are open";
    own(metrics, "server_viewers", help, "", count(viewers.held()));
    let help = "requests refused since their client asked too often";
    own(metrics, "server_refused_requests_total", help, "", real(server.access.rates.refused()));
    let help = "tokens refused unseen since their client showed too many wrong ones";
    let tokens = server.access.tokens.as_ref().map_or(0, Tokens::refused);
    own(metrics, "server_refused_tokens_total", help, "", real(tokens));
    let help = "connections that were closed or not taken, by reason";
    for why in Closed::ALL {
        let by_rooms = match why {
            Closed::Displaced => connections.displaced() + viewers.displaced(),
            Closed::Full => connections.refused() + viewers.refused(),
            _ => 0,
        };
        let labels = format!("reason=\"{}\"", why.name());
        let closed = real(server.counts.closed(why) + by_rooms);
        own(metrics, "server_closed_connections_total", help, &labels, closed);
    }
    let help = "steps that viewers who were too slow did not get";
    own(metrics, "server_lost_steps_total", help, "", real(server.counts.lost_steps()));
    if let Some(taken) = &server.taken {
        let taken = taken.lock().expect("whoever holds the counts only copies them").clone();
        of_ingest(metrics, &taken);
        of_senders(metrics, &senders::known(server));
    }
    for (form, counts) in &server.onward {
        let counts = *counts.lock().expect("whoever holds the counts only copies or adds");
        of_onward(metrics, form.name(), &counts);
    }
    for (to, counts) in &server.told {
        let counts = *counts.lock().expect("whoever holds the counts only copies or adds");
        of_told(metrics, to, &counts);
    }
}

/// What senders sent, and what they told to be missing.
fn of_ingest(metrics: &mut BTreeMap<String, Metric>, taken: &Taken) {
    own(metrics, "ingest_senders", "senders that are connected", "", count(taken.senders));
    let counts = taken.counts;
    for (name, help, count) in [
        ("sessions", "sessions that senders began", counts.sessions),
        ("refused", "sessions that the receiver ended", counts.refused),
        ("blocks", "blocks that were taken, those that tell of gaps among them", counts.blocks),
        ("rows", "rows in them", counts.rows),
        ("bytes", "octets of them", counts.bytes),
        ("repeated_blocks", "blocks that came again and were not stored twice", counts.repeated),
        ("gaps", "gaps that were told", counts.gaps),
        ("missing_rows", "rows that were told to be missing", counts.missing_rows),
    ] {
        own(metrics, &format!("ingest_{name}_total"), help, "", real(count));
    }
}

/// How each sender stands.
fn of_senders(metrics: &mut BTreeMap<String, Metric>, senders: &[SenderBody]) {
    for sender in senders {
        let cluster = sender.cluster.as_deref().unwrap_or_default();
        let labels =
            format!("cluster=\"{}\",sender=\"{}\"", escaped(cluster), escaped(&sender.sender));
        let connected = f64::from(u8::from(sender.connected));
        own(metrics, "ingest_sender_connected", "1 while it is connected", &labels, connected);
        let active = f64::from(u8::from(sender.active));
        let help = "1 while the newest rows are taken from it, 0 while it stands by";
        own(metrics, "ingest_sender_active", help, &labels, active);
        for (name, help, us) in [
            ("lag", "how old its newest row is, its clock set right", sender.lag_us),
            ("clock_offset", "how far its clock is behind the server's", sender.clock_offset_us),
        ] {
            if let Some(us) = us {
                let seconds = real(us.unsigned_abs()) / 1e6 * if us < 0 { -1.0 } else { 1.0 };
                own(metrics, &format!("ingest_sender_{name}_seconds"), help, &labels, seconds);
            }
        }
        let help = "rows that it told to be missing";
        own(metrics, "ingest_sender_missing_rows_total", help, &labels, real(sender.missing_rows));
    }
}

/// What was sent on to a neighbour.
fn of_onward(metrics: &mut BTreeMap<String, Metric>, to: &str, counts: &OnwardCounts) {
    let help = "1 while rows are not taken and wait in the recording";
    own(metrics, &format!("{to}_failing"), help, "", f64::from(u8::from(counts.is_failing)));
    for (name, help, count) in [
        ("rows", "rows, or values of them, that were taken", counts.rows),
        ("bytes", "octets that were posted", counts.bytes),
        ("refused_rows", "rows, or values of them, that were refused", counts.refused_rows),
        ("gone_frames", "frames that were deleted before their rows were sent", counts.gone_frames),
        ("failed_requests", "requests that failed and were made again", counts.failed_requests),
    ] {
        own(metrics, &format!("{to}_{name}_total"), help, "", real(count));
    }
}

/// What was told of alerts.
fn of_told(metrics: &mut BTreeMap<String, Metric>, to: &str, counts: &NotifyCounts) {
    let help = "1 while alerts cannot be told";
    own(metrics, &format!("{to}_failing"), help, "", f64::from(u8::from(counts.is_failing)));
    for (name, help, count) in [
        ("messages", "messages of alerts that were taken", counts.messages),
        ("refused_messages", "messages of alerts that were refused for good", counts.refused),
        ("failed_messages", "tries to tell of alerts that failed", counts.failed),
        (
            "untold_alerts",
            "alerts that came and went before they could be told",
            counts.untold_alerts,
        ),
    ] {
        own(metrics, &format!("{to}_{name}_total"), help, "", real(count));
    }
}

fn rendered(metrics: &BTreeMap<String, Metric>) -> String {
    let mut text = String::new();
    let mut left = VALUES_MAX;
    for (name, metric) in metrics {
        let kind = if metric.counter { "counter" } else { "gauge" };
        let help = metric.help.replace('\\', "\\\\").replace('\n', " ");
        let head = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        head.expect("writing to a string cannot fail");
        for (labels, (_, value)) in metric.values.iter().take(left) {
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            writeln!(text, "{name}{braces} {value}").expect("writing to a string cannot fail");
        }
        left = left.saturating_sub(metric.values.len());
    }
    text
}

/// What this process has in memory.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(real(kib * 1_024))
}

fn count(number: usize) -> f64 {
    real(u64::try_from(number).expect("a length has at most 64 bits"))
}
