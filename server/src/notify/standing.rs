//! What is to be said of alerts, and what was.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use meikyo_recording::alerts::Alert;
use meikyo_recording::unfinished::{Durability, replace_file};
use meikyo_units::{Nanos, WallTime};
use serde::{Deserialize, Serialize};

/// An alert as it is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Told {
    /// The device; empty for the collector itself.
    pub(super) device: String,
    /// Value or table; null for the device as a whole.
    pub(super) object: Option<String>,
    /// When it was raised, µs since 1970.
    pub(super) raised_us: i64,
    /// When it was cleared, µs since 1970; null while it lasts.
    pub(super) cleared_us: Option<i64>,
    /// Why it was raised, or cleared.
    pub(super) text: String,
}

impl Told {
    fn new(alert: &Alert) -> Self {
        let said = alert.cleared.as_ref().unwrap_or(&alert.raised);
        Self {
            device: alert.device.clone(),
            object: alert.object.clone(),
            raised_us: alert.raised.at.as_nanos() / 1_000,
            cleared_us: alert.cleared.as_ref().map(|said| said.at.as_nanos() / 1_000),
            text: said.text.clone(),
        }
    }

    /// What names it.
    fn key(&self) -> Key {
        (self.device.clone(), self.object.clone(), self.raised_us)
    }
}

type Key = (String, Option<String>, i64);

/// Why something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Alerts were raised, or some of them are over and others last.
    Raised,
    /// Nothing has changed, and they last.
    Repeated,
    /// All that were told are over.
    Resolved,
}

/// What is said of the alerts of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) rule: String,
    pub(super) status: Status,
    /// Those that last and nobody has seen.
    pub(super) raised: Vec<Told>,
    /// Those that were told before and are over.
    pub(super) resolved: Vec<Told>,
}

/// The notice as a document.
#[derive(Debug, Serialize)]
pub(super) struct NoticeBody<'a> {
    /// Of this document.
    version: u16,
    recording: &'a str,
    rule: &'a str,
    status: Status,
    raised: &'a [Told],
    resolved: &'a [Told],
}

impl Notice {
    pub(super) fn document<'a>(&'a self, recording: &'a str) -> NoticeBody<'a> {
        let Self { rule, status, raised, resolved } = self;
        NoticeBody { version: 1, recording, rule, status: *status, raised, resolved }
    }

    /// A line for people.
    pub(super) fn subject(&self, recording: &str) -> String {
        let of = |count: usize| match count {
            1 => "1 alert".to_owned(),
            _ => format!("{count} alerts"),
        };
        let what = match self.status {
            Status::Raised => of(self.raised.len()),
            Status::Repeated => format!("{} still", of(self.raised.len())),
            Status::Resolved => format!("{} resolved", of(self.resolved.len())),
        };
        format!("Meikyo {recording}: {}: {what}", self.rule)
    }

    /// All of it for people.
    pub(super) fn text(&self, recording: &str) -> String {
        let mut text = format!("Rule {} in {recording}\n", self.rule);
        for (title, alerts) in [("Raised", &self.raised), ("Resolved", &self.resolved)] {
            if alerts.is_empty() {
                continue;
            }
            text += &format!("\n{title}:\n");
            for alert in alerts {
                let at = WallTime::from_nanos(alert.raised_us.saturating_mul(1_000));
                let device = if alert.device.is_empty() { "the collector" } else { &alert.device };
                let object = alert.object.as_ref().map(|of| format!(" {of}")).unwrap_or_default();
                text += &format!("  {at}  {device}{object}\n    {}\n", alert.text);
            }
        }
        text
    }
}

/// What was told of a rule.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OfRule {
    told: Vec<Told>,
    told_us: i64,
    /// Since when there is something new to tell.
    #[serde(skip)]
    changed: Option<WallTime>,
}

/// What was told of the alerts of a recording.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Standing {
    /// What is not later was over before anybody was to be told.
    since_us: i64,
    rules: BTreeMap<String, OfRule>,
}

impl Standing {
    /// What was noted; where there is nothing, everything that lasts is told, and nothing that is over.
    pub(super) fn read(file: &Path, now: WallTime) -> Self {
        let noted = std::fs::read(file).ok();
        let noted = noted.and_then(|octets| serde_json::from_slice(&octets).ok());
        noted.unwrap_or_else(|| Self { since_us: now.as_nanos() / 1_000, rules: BTreeMap::new() })
    }

    /// Writes it down.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        replace_file(file, &serde_json::to_vec_pretty(self)?, Durability::Kernel)
    }

    /// What is to be told now of all alerts of the recording, and how many came and went since the last look
    /// without being told.
    pub(super) fn look(
        &mut self,
        now: WallTime,
        alerts: &[Alert],
        group_wait: Nanos,
        repeat_every: Nanos,
    ) -> (Vec<Notice>, u64) {
        let mut by_rule: BTreeMap<&str, Vec<&Alert>> = BTreeMap::new();
        for alert in alerts {
            by_rule.entry(&alert.rule).or_default().push(alert);
        }
        let (mut notices, mut untold, mut over_us) = (Vec::new(), 0, self.since_us);
        for (rule, alerts) in by_rule {
            let of = self.rules.entry(rule.to_owned()).or_default();
            let is_told = |told: &Told| of.told.iter().any(|known| known.key() == told.key());
            let raised: Vec<Told> =
                alerts.iter().filter(|of| of.is_pressing(now)).map(|of| Told::new(of)).collect();
            let over =
                alerts.iter().filter(|alert| alert.cleared.is_some()).map(|of| Told::new(of));
            let (resolved, unknown): (Vec<Told>, Vec<Told>) = over.partition(is_told);
            for cleared_us in unknown.iter().filter_map(|told| told.cleared_us) {
                untold += u64::from(cleared_us > self.since_us);
                over_us = over_us.max(cleared_us);
            }
            let is_new = raised.iter().any(|told| !is_told(told)) || !resolved.is_empty();
            let waited = now.since(*of.changed.get_or_insert(now));
            if !is_new {
                of.changed = None;
            }
            let since_told = now.since(WallTime::from_nanos(of.told_us.saturating_mul(1_000)));
            let status = if is_new {
                if raised.is_empty() { Status::Resolved } else { Status::Raised }
            } else {
                Status::Repeated
            };
            let is_due = if is_new {
                waited >= group_wait
            } else {
                !raised.is_empty() && since_told >= repeat_every
            };
            if is_due {
                notices.push(Notice { rule: rule.to_owned(), status, raised, resolved });
            }
        }
        self.since_us = over_us;
        (notices, untold)
    }

    /// A notice was told.
    pub(super) fn told(&mut self, now: WallTime, notice: &Notice) {
        let of = self.rules.entry(notice.rule.clone()).or_default();
        of.told.retain(|known| !notice.resolved.iter().any(|over| over.key() == known.key()));
        for told in &notice.raised {
            if !of.told.iter().any(|known| known.key() == told.key()) {
                of.told.push(told.clone());
            }
        }
        of.told_us = now.as_nanos() / 1_000;
        of.changed = None;
        // Nobody is told a second time that these are over.
        let over = notice.resolved.iter().filter_map(|told| told.cleared_us).max();
        self.since_us = self.since_us.max(over.unwrap_or(i64::MIN));
    }
}

#[cfg(test)]
mod tests {
    use meikyo_recording::alerts::Said;

    use super::*;

    const WAIT: Nanos = Nanos::from_secs(10);
    const REPEAT: Nanos = Nanos::from_secs(3_600);

    fn at(seconds: u64) -> WallTime {
        WallTime::from_nanos(1_795_294_799_000_000_000) + Nanos::from_secs(seconds)
    }

    fn alert(device: &str, raised: u64, cleared: Option<u64>) -> Alert {
        let said = |seconds: u64| Said { at: at(seconds), text: "silent: no answer".into() };
        Alert {
            rule: "silent".into(),
            device: device.into(),
            object: None,
            raised: said(raised),
            cleared: cleared.map(said),
            acknowledged: None,
            silenced_until: None,
        }
    }

    /// Looks and tells what there is; the states, and the devices that were raised and resolved.
    fn look(
        standing: &mut Standing,
        seconds: u64,
        alerts: &[Alert],
    ) -> Vec<(Status, Vec<String>, Vec<String>)> {
        let (notices, _) = standing.look(at(seconds), alerts, WAIT, REPEAT);
        notices.iter().for_each(|notice| standing.told(at(seconds), notice));
        let devices = |of: &[Told]| of.iter().map(|told| told.device.clone()).collect();
        let all = notices.iter();
        all.map(|of| (of.status, devices(&of.raised), devices(&of.resolved))).collect()
    }

    #[test]
    fn alerts_of_a_rule_are_told_together_again_and_when_they_are_over() {
        let mut standing = Standing { since_us: at(0).as_nanos() / 1_000, ..Standing::default() };
        let (a, b) = (alert("a", 1, None), alert("b", 5, None));
        assert_eq!(look(&mut standing, 1, std::slice::from_ref(&a)), []);
        assert_eq!(look(&mut standing, 10, &[a.clone(), b.clone()]), []);
        let both = vec!["a".to_owned(), "b".to_owned()];
        let told = look(&mut standing, 11, &[a.clone(), b.clone()]);
        assert_eq!(told, [(Status::Raised, both.clone(), vec![])]);
        assert_eq!(look(&mut standing, 3_600, &[a.clone(), b.clone()]), []);
        let told = look(&mut standing, 3_611, &[a.clone(), b.clone()]);
        assert_eq!(told, [(Status::Repeated, both, vec![])]);
        // One of them is over, then the other one.
        let a = alert("a", 1, Some(3_620));
        assert_eq!(look(&mut standing, 3_620, &[a.clone(), b.clone()]), []);
        let told = look(&mut standing, 3_630, &[a.clone(), b]);
        assert_eq!(told, [(Status::Raised, vec!["b".to_owned()], vec!["a".to_owned()])]);
        let b = alert("b", 5, Some(3_640));
        look(&mut standing, 3_640, &[a.clone(), b.clone()]);
        let told = look(&mut standing, 3_650, &[a.clone(), b.clone()]);
        assert_eq!(told, [(Status::Resolved, vec![], vec!["b".to_owned()])]);
        assert_eq!(look(&mut standing, 9_999, &[a, b]), []);
    }

    #[test]
    fn who_has_seen_an_alert_is_not_reminded_and_what_came_and_went_is_counted() {
        let mut standing = Standing { since_us: at(0).as_nanos() / 1_000, ..Standing::default() };
        let mut seen = alert("a", 1, None);
        look(&mut standing, 1, &[seen.clone()]);
        assert_eq!(look(&mut standing, 20, &[seen.clone()]).len(), 1);
        seen.acknowledged = Some(Said { at: at(30), text: "silent: I see".into() });
        assert_eq!(look(&mut standing, 9_000, &[seen.clone()]), []);
        let brief = alert("b", 9_001, Some(9_002));
        let (notices, untold) =
            standing.look(at(9_003), &[seen.clone(), brief.clone()], WAIT, REPEAT);
        assert_eq!((notices, untold), (vec![], 1));
        let (_, untold) = standing.look(at(9_004), &[seen, brief], WAIT, REPEAT);
        assert_eq!(untold, 0, "it is counted once");
    }

    #[test]
    fn what_was_told_is_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("told.json");
        let mut standing = Standing::read(&file, at(0));
        let lasting = [alert("a", 1, None)];
        look(&mut standing, 1, &lasting);
        assert_eq!(look(&mut standing, 11, &lasting).len(), 1);
        standing.write(&file).unwrap();
        let mut again = Standing::read(&file, at(12));
        look(&mut again, 12, &lasting);
        assert_eq!(look(&mut again, 30, &lasting), []);
        // While it was away the alert was cleared.
        let over = [alert("a", 1, Some(20))];
        look(&mut again, 40, &over);
        assert_eq!(look(&mut again, 50, &over).len(), 1);
    }
}
