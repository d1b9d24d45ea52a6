//! Whether what is shown can be trusted: how the last intervals ended, who is silent, what is old.

use meikyo_live::Interval;
use meikyo_live::staleness::{self, Stalest};
use meikyo_snmp::tables::State;
use meikyo_units::{Nanos, WallTime};

use super::Model;

/// The intervals that count, ns.
const LOOK_BACK: i64 = 10_000_000_000;
/// Intervals that are remembered at most.
const INTERVALS_MAX: usize = 10_000;

/// Of the last 10 s, and of this moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::top) struct Health {
    /// Device intervals of the last 10 s.
    pub(in crate::top) all: u64,
    /// Of these ended in time.
    pub(in crate::top) ok: u64,
    /// Device intervals that ended late.
    pub(in crate::top) late: u64,
    /// Missed, in error or skipped.
    pub(in crate::top) missing: u64,
    /// Intervals a second; `None` before two ended.
    pub(in crate::top) intervals_per_s: Option<f64>,
    /// Devices that are silent, by ordinal.
    pub(in crate::top) silent: Vec<usize>,
    /// Of the devices that answer the one whose values are oldest, and how old they are.
    pub(in crate::top) stalest: Option<Stalest>,
}

impl Model {
    pub(super) fn take_interval(&mut self, interval: Interval) {
        // A past that is read up to where live begins holds the same intervals.
        let at = self.intervals.partition_point(|known| known.time < interval.time);
        if self.intervals.get(at).is_some_and(|known| known.time == interval.time) {
            return;
        }
        self.intervals.insert(at, interval);
        let newest = self.intervals.back().map_or(0, |interval| interval.time);
        while self.intervals.len() > INTERVALS_MAX
            || self.intervals.front().is_some_and(|first| first.time < newest - LOOK_BACK)
        {
            self.intervals.pop_front();
        }
    }

    /// The health at an instant, ns since the epoch.
    pub(in crate::top) fn health(&self, now: i64) -> Health {
        let mut health = Health::default();
        for interval in &self.intervals {
            health.ok += interval.ok;
            health.late += interval.late;
            health.missing += interval.missed + interval.errors + interval.skipped;
        }
        health.all = health.ok + health.late + health.missing;
        health.intervals_per_s = self.rate();
        let instant = WallTime::from_nanos;
        // Nobody is called silent before he could have been heard.
        let watched = self.oldest.map(|oldest| instant(now).since(instant(oldest)));
        for (ordinal, device) in self.devices.iter().enumerate() {
            let since = device.answered.map(|answered| instant(now).since(instant(answered)));
            let since = since.or_else(|| watched.filter(|_| device.state != Some(State::Ok)));
            if since.is_some_and(|since| staleness::is_silent(since, device.interval)) {
                health.silent.push(ordinal);
            }
        }
        let silent = &health.silent;
        let answering = self.devices.iter().enumerate().filter_map(|(ordinal, device)| {
            let is_silent = silent.binary_search(&ordinal).is_ok();
            let answered = device.answered.filter(|_| !is_silent)?;
            Some((device.name.as_str(), instant(answered), &device.held))
        });
        health.stalest = staleness::stalest(answering, instant(now));
        health
    }

    fn rate(&self) -> Option<f64> {
        let (first, last) = (self.intervals.front()?, self.intervals.back()?);
        let span = u64::try_from(last.time - first.time).ok().filter(|span| *span > 0)?;
        let count = u32::try_from(self.intervals.len() - 1).ok()?;
        Some(f64::from(count) / Nanos::new(span).as_secs_f64())
    }
}
