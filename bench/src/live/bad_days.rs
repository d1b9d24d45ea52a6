//! Days on which page and server have little: one busy core for both, a slow line between them, or
//! 10,000 devices.
//!
//! What is on the screen is read from its pixels, what the page asked for is told by the browser, and
//! what stands beside its facts is read from its document, all of it several times a second. A fact
//! whose answer was asked for more than two seconds ago has its age beside it, or is counted; so is a
//! header whose newest interval is two seconds newer than that on the screen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use meikyo_console::failure::Failure;
use meikyo_spaces::line::{self, Condition, Line, LinePlan};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, WallTime};
use serde::Serialize;
use serde_json::Value;

use crate::live::browser::Browser;
use crate::live::door::{BROWSER_OPTIONS, Door, needs_root};
use crate::live::measurement::{EVERY, Measurement};
use crate::live::paint::{self, Shot};
use crate::live::requests::Requests;
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, place_thread, wait_until};

/// What makes the day bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Server and browser share one core with a program that never rests.
    BusyCore,
    /// 1 Mbit/s and 100 ms in either direction between browser and server.
    SlowLine,
    /// 10,000 devices, read once a second.
    ManyDevices,
}

const LINE: LinePlan = LinePlan {
    rate: BitsPerSecond::new(1_000_000),
    delay: Nanos::from_millis(100),
    queue: Bytes::new(32 << 10),
    lost_per_million: 0,
};
/// From the opening of the page until what it shows counts.
const SETTLE: Nanos = Nanos::from_secs(20);
/// How long the page is watched when the trouble is over.
const AFTER: Nanos = Nanos::from_secs(8);
/// Names are resolved before a page is opened that shows them.
const RESOLVING: Nanos = Nanos::from_secs(3);
/// A fact that is older has its age beside it (`OLD_MS` of `web/src/views/told.tsx`).
const OLD: Nanos = Nanos::from_secs(2);
/// The page looks twice a second how old its facts are, and the bench cannot look at the same instant.
const SLACK: Nanos = Nanos::from_secs(1);
/// A screen that is so far behind is not live.
const BEHIND: Nanos = Nanos::from_millis(500);
/// Between two looks at what stands beside the facts.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// What was seen on a bad day.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct BadDay {
    /// From an interval's last answer to a picture of the screen that shows it.
    pub(crate) paint_ms_median: f64,
    /// The same.
    pub(crate) paint_ms_p99: f64,
    /// The most requests that one panel had under way.
    pub(crate) requests_in_flight_max: u32,
    /// How often a fact was seen that was older than 2 s without its age.
    pub(crate) facts_without_age: u32,
    /// From the end of the trouble until the screen is live and all that was asked before is answered;
    /// absent where it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovered_ms: Option<f64>,
}

impl Trouble {
    const fn devices(self) -> u32 {
        match self {
            Self::BusyCore | Self::SlowLine => 256,
            Self::ManyDevices => 10_000,
        }
    }

    /// How often devices are read. Ten times a second 10,000 take agents and collector more than half of
    /// two cores, which they have elsewhere in earnest.
    const fn every(self) -> Nanos {
        match self {
            Self::BusyCore | Self::SlowLine => EVERY,
            Self::ManyDevices => Nanos::SECOND,
        }
    }

    /// Where agents and collector are: elsewhere, where their core is not needed here.
    fn places(self) -> (Placement, Placement) {
        match self {
            Self::BusyCore => (Placement::elsewhere(false), Placement::elsewhere(false)),
            Self::SlowLine | Self::ManyDevices => (Placement::default(), Placement::default()),
        }
    }
}

/// Watches the page for `span` of trouble, and for a while after it.
pub(super) fn run(trouble: Trouble, span: Nanos) -> Result<BadDay, Failure> {
    let every = trouble.every();
    let whole = RESOLVING + SETTLE + span + AFTER + Nanos::from_secs(15);
    let measurement = Measurement::start_at((trouble.devices(), every), whole, trouble.places())?;
    wait_until(WallTime::now() + RESOLVING)?;
    let mut scene = Scene::set(trouble, &measurement)?;
    scene.browser.watch_network()?;
    scene.browser.open(&scene.address)?;
    scene.browser.wait_for("window.__meikyo && window.__meikyo.paints > 0")?;
    scene.browser.evaluate("document.querySelector('button[aria-controls=alerts]').click()")?;
    let mut seen = Seen { every, ..Seen::default() };
    seen.watch(&mut scene.browser, WallTime::now() + SETTLE)?;
    let begin = WallTime::now();
    seen.watch(&mut scene.browser, begin + span)?;
    let end = WallTime::now();
    scene.relieve()?;
    seen.watch(&mut scene.browser, end + AFTER)?;
    let last = scene.browser.number("window.__meikyo.lastPaintedInterval")?;
    scene.end()?;
    let (recording, _scratch) = measurement.finish()?;
    seen.compare_with_page(last)?;
    let mut arrivals = paint::arrivals(&recording, every)?;
    arrivals.retain(|_, received| *received >= begin && *received <= end);
    let latencies = paint::latencies(&seen.shots, &arrivals)?;
    let (Some(paint_ms_median), Some(paint_ms_p99), Some((most, panel))) =
        (latencies.median(), latencies.percentile(99), seen.requests.most_under_way())
    else {
        return Err(Failure::new("the page painted nothing, or asked for nothing"));
    };
    crate::progress(&format!("live: {most} requests under way at most, of the panel `{panel}`"));
    for (panel, octets) in seen.requests.octets() {
        crate::progress(&format!("live: {octets:.0} octets for `{panel}`"));
    }
    for untold in seen.untold.iter().take(5) {
        crate::progress(&format!("live: {untold}"));
    }
    let count = |count: usize| {
        u32::try_from(count).map_err(|_| Failure::new(format!("{count} is no count of this bench")))
    };
    Ok(BadDay {
        paint_ms_median,
        paint_ms_p99,
        requests_in_flight_max: count(most)?,
        facts_without_age: count(seen.untold.len())?,
        recovered_ms: (trouble != Trouble::ManyDevices)
            .then(|| seen.recovered(end).map_or(f64::INFINITY, |span| span.as_secs_f64() * 1e3)),
    })
}

/// Server and browser, and what troubles them.
struct Scene {
    browser: Browser,
    _server: ServerProcess,
    /// What the browser opens.
    address: String,
    busy: Option<Busy>,
    line: Option<Line>,
}

impl Scene {
    fn set(trouble: Trouble, measurement: &Measurement) -> Result<Self, Failure> {
        let profile = measurement.scratch.path().join("profile");
        let recording = &measurement.recording;
        match trouble {
            Trouble::BusyCore => {
                let here = Placement { core: Some(0), realtime: false };
                let server = ServerProcess::start_at(recording, here)?;
                let browser = Browser::start_at(&profile, here, &[])?;
                Ok(Self::of(browser, server, "", (Some(Busy::begin(here)), None)))
            }
            Trouble::ManyDevices => {
                let server = ServerProcess::start(recording)?;
                Ok(Self::of(Browser::start(&profile)?, server, "", (None, None)))
            }
            Trouble::SlowLine => {
                let line = Line::make().map_err(needs_root)?;
                let door = Door::make(measurement.scratch.path(), line::ONE)?;
                let serve = || {
                    ServerProcess::start_with(recording, Placement::default(), |command| {
                        door.open(command);
                    })
                };
                let server = line.one.within(serve)??;
                let browse = || Browser::start_at(&profile, Placement::default(), &BROWSER_OPTIONS);
                let browser = line.other.within(browse)??;
                line.set(Condition::As(LINE));
                let token = format!("?token={}", door.token);
                Ok(Self::of(browser, server, &token, (None, Some(line))))
            }
        }
    }

    fn of(
        browser: Browser,
        server: ServerProcess,
        query: &str,
        (busy, line): (Option<Busy>, Option<Line>),
    ) -> Self {
        let address = format!("{}{query}#cluster?bench=1", server.url);
        Self { browser, _server: server, address, busy, line }
    }

    /// Ends the trouble.
    fn relieve(&mut self) -> Result<(), Failure> {
        if let Some(busy) = self.busy.take() {
            busy.end()?;
        }
        if let Some(line) = &self.line {
            line.set(Condition::Free);
        }
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        drop(self.browser);
        let Some(line) = self.line else { return Ok(()) };
        let carried = line.carried();
        crate::progress(&format!(
            "live: {} came over the line, {} packets did not",
            carried.bytes, carried.dropped
        ));
        Ok(line.finish()?)
    }
}

/// A program that never rests, as a thread.
struct Busy {
    rest: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Busy {
    fn begin(place: Placement) -> Self {
        let rest = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&rest);
        let thread = std::thread::spawn(move || {
            place_thread(place)?;
            while !told.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(())
        });
        Self { rest, thread }
    }

    fn end(self) -> Result<(), Failure> {
        self.rest.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        Ok(ended.map_err(|_| Failure::new("the busy thread has panicked"))??)
    }
}

/// The panels whose facts are asked for again and again, as [`Requests`] name them, and where they
/// stand.
const FACTS: [(&str, &str); 4] = [
    ("inventory", "section[aria-label=Collector]"),
    ("time bar", ".health"),
    ("time bar", "section[aria-label=Devices] h2.gap"),
    ("alerts", "aside[aria-label=Alerts]"),
];

/// What was seen of a page.
#[derive(Default)]
struct Seen {
    /// How often devices are read.
    every: Nanos,
    shots: Vec<Shot>,
    requests: Requests,
    /// Facts that were older than they said, in words.
    untold: Vec<String>,
}

impl Seen {
    /// Watches the page until `end`.
    fn watch(&mut self, browser: &mut Browser, end: WallTime) -> Result<(), Failure> {
        let mut look_at = WallTime::now();
        while WallTime::now() < end {
            let told = if WallTime::now() >= look_at {
                look_at = WallTime::now() + LOOK_EVERY;
                Some(browser.evaluate(&look())?)
            } else {
                None
            };
            // After what is told, so that the screen has had the time to show it.
            let shot = paint::shoot(browser)?;
            self.shots.extend(shot);
            if let Some(told) = told {
                self.requests.take(&browser.take_network());
                self.judge(&told, shot);
            }
        }
        Ok(())
    }

    /// Compares the ages that the page tells with those that its facts have.
    fn judge(&mut self, told: &Value, shot: Option<Shot>) {
        let Some(at_ms) = told["at"].as_f64() else { return };
        let at = WallTime::from_nanos(Nanos::from_secs_f64(at_ms / 1e3).get().cast_signed());
        for ((panel, _), age) in FACTS.iter().zip(told["ages"].as_array().into_iter().flatten()) {
            let Some(asked) = self.requests.asked(panel, at) else { continue };
            let really = at.since(asked);
            if really > OLD + SLACK && age.as_str() == Some("") {
                self.untold.push(format!("`{panel}` is {really} old and does not say so"));
            }
        }
        let age = told["newest"].as_f64().map(Nanos::from_secs_f64);
        if let (Some(age), Some(shot)) = (age, shot) {
            let (claimed, shown) = (at.before(age), shot.at.before(behind(shot, self.every)));
            if claimed.since(shown) > OLD {
                let text = format!(
                    "the header's newest is {} newer than the screen's",
                    claimed.since(shown)
                );
                self.untold.push(text);
            }
        }
    }

    /// From `end`, the end of the trouble, until the screen stays live and all requests from before
    /// have ended; `None` when that was not seen.
    fn recovered(&self, end: WallTime) -> Option<Nanos> {
        let after: Vec<_> = self.shots.iter().filter(|shot| shot.at >= end).collect();
        let last_behind = after.iter().rposition(|shot| behind(**shot, self.every) > BEHIND);
        let live = match last_behind {
            None => Some(end),
            Some(position) => after.get(position + 1).map(|shot| shot.at),
        };
        let answered = self.requests.all_ended(end);
        live.zip(answered).map(|(live, answered)| live.max(answered).since(end))
    }

    /// The number on the screen is the one that the page says it painted, modulo 2^32.
    fn compare_with_page(&self, last: f64) -> Result<(), Failure> {
        let newest = self.shots.last().map_or(0.0, |shot| f64::from(shot.interval));
        if (last % 4_294_967_296.0 - newest).abs() > 20.0 {
            let text = format!("the screen showed interval {newest}, the page says {last}");
            return Err(Failure::new(text));
        }
        Ok(())
    }
}

/// How long before a picture was taken the interval was due that it shows.
fn behind(shot: Shot, every: Nanos) -> Nanos {
    let ordinal = shot.at.as_nanos().cast_unsigned() / every.get();
    let low = ordinal & u64::from(u32::MAX);
    Nanos::new(low.saturating_sub(u64::from(shot.interval)) * every.get())
}

/// An expression that tells what stands beside the facts: for each panel the text of its age, null
/// where the panel is not there; how old the header calls the newest interval, in s.
fn look() -> String {
    let places: Vec<_> = FACTS.iter().map(|(_, place)| *place).collect();
    let places = serde_json::to_string(&places).expect("texts become JSON");
    format!(
        "(() => {{
  const age = (place) => {{ const at = document.querySelector(place); return at === null ? null : at.querySelector('.age, .unread')?.textContent ?? ''; }};
  const said = /newest ([\\d.]+)\\s*(µs|ms|s|min|h) ago/.exec(document.querySelector('.now .sub')?.textContent ?? '');
  const unit = {{ 'µs': 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 }};
  return {{ at: performance.timeOrigin + performance.now(), ages: {places}.map(age), newest: said === null ? null : Number(said[1]) * unit[said[2]] }};
}})()"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shot(at_ms: i64, interval: u32) -> Shot {
        Shot { at: WallTime::from_nanos(at_ms * 1_000_000), interval }
    }

    #[test]
    fn the_screen_has_recovered_when_it_stays_live() {
        let end = WallTime::from_nanos(10_000_000_000);
        let shots = vec![
            shot(9_000, 60),
            shot(10_050, 99),
            shot(10_900, 100),
            shot(11_000, 108),
            shot(11_100, 110),
        ];
        assert_eq!(behind(shots[0], EVERY), Nanos::from_secs(3));
        let mut seen = Seen { every: EVERY, shots, ..Seen::default() };
        assert_eq!(seen.recovered(end), Some(Nanos::SECOND));
        seen.shots.truncate(3);
        assert_eq!(seen.recovered(end), None);
        seen.shots.truncate(2);
        assert_eq!(seen.recovered(end), Some(Nanos::ZERO));
    }
}
