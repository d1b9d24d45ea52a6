//! What the page asked for, as the browser tells it: how many requests a panel had under way, and
//! when it was asked what a panel shows.

use std::collections::BTreeMap;

use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

/// A request of the page to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) panel: String,
    /// The time that it asks for.
    window: String,
    pub(crate) sent: WallTime,
    /// When its answer was there, or it was given up; `None`: it is under way.
    pub(crate) ended: Option<WallTime>,
    /// Whether there is an answer.
    pub(crate) answered: bool,
}

/// All requests so far.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    by_id: BTreeMap<String, Request>,
    /// What the browser's clock showed when the epoch began, in s: known from the first request on.
    epoch_s: Option<f64>,
    /// Octets of answers, by panel.
    octets: BTreeMap<String, f64>,
}

impl Requests {
    /// Takes what the browser told (domain `Network` of the Chrome DevTools Protocol).
    pub(crate) fn take(&mut self, told: &[Value]) {
        for message in told {
            let parameters = &message["params"];
            let (Some(id), Some(clock_s)) =
                (parameters["requestId"].as_str(), parameters["timestamp"].as_f64())
            else {
                continue;
            };
            match message["method"].as_str() {
                Some("Network.requestWillBeSent") => self.begin(id, clock_s, parameters),
                Some("Network.loadingFinished") => {
                    self.end(id, clock_s, true);
                    self.count(id, parameters["encodedDataLength"].as_f64().unwrap_or(0.0));
                }
                Some("Network.loadingFailed") => self.end(id, clock_s, false),
                _ => {}
            }
        }
    }

    fn begin(&mut self, id: &str, clock_s: f64, parameters: &Value) {
        let Some(wall_s) = parameters["wallTime"].as_f64() else { return };
        let epoch_s = *self.epoch_s.get_or_insert(wall_s - clock_s);
        let url = parameters["request"]["url"].as_str().unwrap_or_default();
        let Some((panel, window)) = panel_of(url) else { return };
        let sent = wall(epoch_s + clock_s);
        // A picture asks for states, then for the values of the same time.
        if panel != STATES {
            let states = self.by_id.values_mut().filter(|of| of.panel == STATES);
            let newest = states.filter(|of| of.window == window).max_by_key(|of| of.sent);
            if let Some(states) = newest {
                states.panel.clone_from(&panel);
            }
        }
        let request = Request { panel, window, sent, ended: None, answered: false };
        self.by_id.insert(id.to_owned(), request);
    }

    fn end(&mut self, id: &str, clock_s: f64, answered: bool) {
        let (Some(request), Some(epoch_s)) = (self.by_id.get_mut(id), self.epoch_s) else { return };
        request.ended = Some(wall(epoch_s + clock_s));
        request.answered = answered;
    }

    fn count(&mut self, id: &str, octets: f64) {
        let Some(request) = self.by_id.get(id) else { return };
        *self.octets.entry(request.panel.clone()).or_default() += octets;
    }

    /// The octets of answers that each panel got.
    pub(crate) const fn octets(&self) -> &BTreeMap<String, f64> {
        &self.octets
    }

    /// The most that one panel had under way at once, and which panel that was.
    pub(crate) fn most_under_way(&self) -> Option<(usize, &str)> {
        let mut changes: BTreeMap<&str, Vec<(WallTime, bool)>> = BTreeMap::new();
        for request in self.by_id.values() {
            let of_panel = changes.entry(&request.panel).or_default();
            of_panel.push((request.sent, true));
            of_panel.extend(request.ended.map(|ended| (ended, false)));
        }
        let most = |mut changes: Vec<(WallTime, bool)>| {
            // At the same instant one ends before the next begins.
            changes.sort();
            let (mut under_way, mut most) = (0_usize, 0);
            for (_, begins) in changes {
                under_way = if begins { under_way + 1 } else { under_way.saturating_sub(1) };
                most = most.max(under_way);
            }
            most
        };
        changes.into_iter().map(|(panel, changes)| (most(changes), panel)).max()
    }

    /// When the newest answer that a panel had at `at` was asked for.
    pub(crate) fn asked(&self, panel: &str, at: WallTime) -> Option<WallTime> {
        let of_panel = self.by_id.values().filter(|request| request.panel == panel);
        let there = of_panel
            .filter(|request| request.answered && request.ended.is_some_and(|ended| ended <= at));
        there.map(|request| request.sent).max()
    }

    /// When the last of those that were sent before `at` had ended; `None` while one has not.
    pub(crate) fn all_ended(&self, at: WallTime) -> Option<WallTime> {
        let before = self.by_id.values().filter(|request| request.sent <= at);
        before.map(|request| request.ended).try_fold(at, |latest, ended| Some(latest.max(ended?)))
    }
}

fn wall(seconds: f64) -> WallTime {
    WallTime::from_nanos(Nanos::from_secs_f64(seconds).get().cast_signed())
}

/// What states are called until it is known which picture they are for.
const STATES: &str = "states";

/// The panel that asks for an address of the API, and the time that it asks for; `None` for anything
/// else.
fn panel_of(url: &str) -> Option<(String, String)> {
    let (_, rest) = url.split_once("/api/v1/")?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let what = path.rsplit('/').next()?;
    let parameters: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let parameter = |name: &str| {
        let found = parameters.iter().find(|(found, _)| *found == name);
        found.map_or("", |(_, value)| *value)
    };
    let panel = match what {
        // The web socket is no request.
        "live" => return None,
        "readings" | "freshness" => "reading".into(),
        "health" | "events" => "time bar".into(),
        "range" if !parameter("fold").is_empty() => "time bar".into(),
        "range" => {
            let kind = if parameter("device").is_empty() { "strip" } else { "chart" };
            format!("{kind} {} {}", parameter("table"), parameter("column"))
        }
        other => other.into(),
    };
    let window = ["from", "to", "width", "device"].map(parameter).join(" ");
    Some((panel, window))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(id: &str, at: f64, path: &str) -> Value {
        let url = format!("http://host/api/v1/recordings/1/{path}");
        json!({ "method": "Network.requestWillBeSent", "params": {
            "requestId": id, "timestamp": at, "wallTime": at + 100.0, "request": { "url": url } } })
    }

    fn ended(id: &str, at: f64, how: &str) -> Value {
        json!({ "method": format!("Network.{how}"), "params": { "requestId": id, "timestamp": at } })
    }

    #[test]
    fn what_a_panel_has_under_way_is_counted_and_what_it_shows_has_an_age() {
        let at = |seconds: i64| WallTime::from_nanos((100 + seconds) * 1_000_000_000);
        let mut requests = Requests::default();
        requests.take(&[
            sent("1", 1.0, "health?from=1"),
            sent("2", 2.0, "range?table=load&column=load_1min&fold=1"),
            sent("3", 2.0, "range?table=load&column=load_1min&width=5"),
            ended("1", 3.0, "loadingFinished"),
            sent("4", 3.0, "events"),
            ended("2", 4.0, "loadingFailed"),
            ended("4", 5.0, "loadingFinished"),
        ]);
        assert_eq!(requests.most_under_way(), Some((2, "time bar")));
        assert_eq!(requests.asked("time bar", at(2)), None);
        assert_eq!(requests.asked("time bar", at(4)), Some(at(1)), "a failure is no answer");
        assert_eq!(requests.asked("time bar", at(5)), Some(at(3)));
        assert_eq!(requests.all_ended(at(1)), Some(at(3)));
        assert_eq!(requests.all_ended(at(2)), None, "the strip's is under way");
    }

    #[test]
    fn states_belong_to_the_picture_of_the_same_time() {
        let mut requests = Requests::default();
        let mut at = 0.0;
        for (id, path) in [
            ("1", "states?from=1&to=9&width=5&device=a"),
            ("2", "states?from=2&to=9&width=5&device=a"),
            ("3", "range?table=load&column=load_1min&from=1&to=9&width=5&device=a"),
            ("4", "range?table=memory&column=free&from=2&to=9&width=5&device=a"),
        ] {
            at += 1.0;
            requests.take(&[sent(id, at, path)]);
        }
        let panels: Vec<_> = requests.by_id.values().map(|of| of.panel.as_str()).collect();
        let [load, memory] = ["chart load load_1min", "chart memory free"];
        assert_eq!(panels, [load, memory, load, memory]);
    }
}
