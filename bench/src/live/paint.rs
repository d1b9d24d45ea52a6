//! From the reading's arrival to the screen: 256 live devices, a real farm, collector, server and
//! browser.

use std::collections::BTreeMap;

use meikyo_console::failure::Failure;
use meikyo_snmp::tables::Table;
use meikyo_units::{Nanos, WallTime};

use crate::live::browser::{Browser, WINDOW};
use crate::live::cells;
use crate::live::measurement::{EVERY, Measurement};
use crate::live::server_process::ServerProcess;
use crate::reading::{self, integers};
use crate::statistics::Observations;

const DEVICES: u32 = 256;
/// Names are resolved and the page has settled before the window begins.
const SETTLE: Nanos = Nanos::from_secs(8);
/// Intervals at the ends of the window that need not have been seen in it.
const MARGIN: u64 = 5;

/// From the kernel's receive time of an interval's last answer until a picture of the screen showed
/// the interval, in ms, by interval.
pub(crate) fn run(span: Nanos) -> Result<Observations, Failure> {
    let measurement = Measurement::start(DEVICES, SETTLE + span + Nanos::from_secs(4), false)?;
    let server = ServerProcess::start(&measurement.recording)?;
    let mut browser = Browser::start(&measurement.scratch.path().join("profile"))?;
    browser.open(&format!("{}#cluster?bench=1", server.url))?;
    browser.wait_for("window.__meikyo && window.__meikyo.paints > 10")?;
    let shots = shots(&mut browser, WallTime::now() + span)?;
    let last = browser.number("window.__meikyo.lastPaintedInterval")?;
    drop(browser);
    let (recording, _scratch) = measurement.finish()?;
    let latencies = latencies(&shots, &arrivals(&recording, EVERY)?)?;
    let newest = shots.last().map_or(0.0, |shot| f64::from(shot.interval));
    // The number on the screen is the one that the page says it painted, modulo 2^32.
    if (last % 4_294_967_296.0 - newest).abs() > 10.0 {
        return Err(Failure::new(format!(
            "the screen showed interval {newest}, the page says {last}"
        )));
    }
    Ok(latencies)
}

/// When a picture of the screen was complete, and the number in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shot {
    pub(crate) at: WallTime,
    pub(crate) interval: u32,
}

/// Looks at the screen once; `None` if it shows no number.
pub(crate) fn shoot(browser: &mut Browser) -> Result<Option<Shot>, Failure> {
    let corner = (0, WINDOW.1 - cells::SIZE.1);
    let picture = browser.screenshot(corner, cells::SIZE)?;
    let at = WallTime::now();
    Ok(cells::read(&picture).map(|interval| Shot { at, interval }))
}

/// Looks at the screen again and again until `end`.
pub(crate) fn shots(browser: &mut Browser, end: WallTime) -> Result<Vec<Shot>, Failure> {
    let mut shots: Vec<Shot> = Vec::new();
    while WallTime::now() < end {
        shots.extend(shoot(browser)?);
    }
    if shots.is_empty() {
        return Err(Failure::new("no picture of the screen shows the number of an interval"));
    }
    Ok(shots)
}

/// By the number of the interval modulo 2^32, when its last answer was received.
pub(crate) fn arrivals(
    recording: &std::path::Path,
    every: Nanos,
) -> Result<BTreeMap<u32, WallTime>, Failure> {
    let recording = meikyo_recording::Recording::open(recording)?;
    let mut arrivals = BTreeMap::new();
    let wanted = reading::selection(Table::Intervals, &["time", "complete_us"], None);
    for batch in recording.scan(&wanted)? {
        let batch = batch?;
        let times = integers(&batch, "time")?;
        for (time, complete) in times.into_iter().zip(integers(&batch, "complete_us")?) {
            let (Some(time), Some(complete)) = (time, complete) else { continue };
            let due = WallTime::from_nanos(time);
            arrivals.insert(low(due, every), WallTime::from_nanos(time + complete * 1_000));
        }
    }
    Ok(arrivals)
}

/// The number of the interval that was due then, modulo 2^32.
pub(crate) fn low(due: WallTime, every: Nanos) -> u32 {
    let ordinal = due.as_nanos().cast_unsigned() / every.get();
    u32::try_from(ordinal & u64::from(u32::MAX)).expect("masked to 32 bits")
}

/// For every interval that arrived while the screen was watched, the span until a picture showed it
/// or a later one, in ms.
pub(crate) fn latencies(
    shots: &[Shot],
    arrivals: &BTreeMap<u32, WallTime>,
) -> Result<Observations, Failure> {
    let (Some(first), Some(last)) = (shots.first(), shots.last()) else {
        return Ok(Observations::default());
    };
    let mut observed = Vec::new();
    let mut at = 0;
    let begin = first.at + EVERY * MARGIN;
    let end = last.at.before(EVERY * MARGIN);
    for (&interval, &received) in arrivals {
        if received < begin || received > end {
            continue;
        }
        while shots.get(at).is_some_and(|shot| shot.interval < interval) {
            at += 1;
        }
        let Some(shot) = shots.get(at) else {
            return Err(Failure::new(format!("interval {interval} was never on the screen")));
        };
        observed.push(shot.at.since(received).as_secs_f64() * 1e3);
    }
    Ok(Observations::new(observed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_ends_with_the_first_picture_that_shows_the_interval_or_a_later_one() {
        let at = |millis: i64| WallTime::from_nanos(millis * 1_000_000);
        let shots: Vec<_> = [(0, 1), (1_000, 10), (1_150, 11), (1_300, 13), (3_000, 30)]
            .map(|(millis, interval)| Shot { at: at(millis), interval })
            .into();
        let arrivals = [(10, at(990)), (11, at(1_090)), (12, at(1_190)), (13, at(1_290))].into();
        let latencies = latencies(&shots, &arrivals).unwrap();
        assert_eq!(latencies.len(), 4);
        assert_eq!(latencies.least(), Some(10.0));
        assert_eq!(latencies.percentile(99), Some(110.0));
        assert_eq!(latencies.median(), Some(35.0));
    }
}
