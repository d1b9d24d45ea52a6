//! Alerts: the rules of the cluster file, held against every answer.
//!
//! A device that a rule is for has its watches compiled when its plan, or the rules, are set: which
//! of its series each rule looks at. A device without a rule costs a comparison with null a poll.
//! What is found is written into `events` on changes only: `alert_raised`, `alert_cleared`, and what
//! people said to it, `alert_acknowledged`, `alert_silenced`. The text of each begins with the rule's
//! name and a colon; [`meikyo_recording::alerts`] reads them back.
//!
//! # Cost
//! 170 instructions a watched gauge and 330 a watched counter a poll (counted with `callgrind` against
//! the farm, with and without rules), which is 20 and 40 ns at the pace of the poll core; 200 octets a
//! watch.

mod answer;
mod compile;
mod standing;
mod text;
mod update_rate;

use std::sync::Arc;

use meikyo_cluster::{AlertRule, Condition, LevelUnit, Side, Threshold};
use meikyo_recording::Symbol;
use meikyo_recording::alerts::{CLEARED, RAISED};
use meikyo_recording::counter::{Bounds, Width};
use meikyo_units::{Nanos, WallTime};

pub use self::answer::{AlertAction, AlertAnswer, AlertAnswerError};
pub(super) use self::compile::{compile, counter};

use self::standing::{Standing, Turn, Zone};
use self::update_rate::{Refresh, UpdateRate};
use crate::freshness::{Class, Source};
use crate::poll::device::{Device, Pending};
use crate::poll::request::{Answer, Layout, Reading};
use crate::poll::rows::{Event, Rows};
use crate::poll::series::Series;
use crate::tables::{Table, object_name, schema};

/// How often it is looked whether devices are silent.
const LOOK_EVERY: Nanos = Nanos::SECOND;

/// A table that moved within this span, in ns, is not frozen: the least silence of a finding.
const RECENTLY: i64 = 10_000_000_000;

/// Devices whose watches are compiled at a time after the rules have changed: what takes less than
/// a millisecond, so that no interval waits for it.
const COMPILED_AT_ONCE: usize = 64;

/// Everything that is watched on one device.
#[derive(Debug)]
pub(super) struct DeviceAlerts {
    rules: Arc<[AlertRule]>,
    /// In the order of the device's series.
    values: Vec<ValueWatch>,
    silences: Vec<SilenceWatch>,
    frozen: Vec<FrozenWatch>,
}

/// What questions and answers need of a device's alerts where nothing is to be told. It lies beside
/// what else they need of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watching {
    /// When the first question was due that is not answered yet; none when the last one was.
    unanswered: Option<WallTime>,
    /// An alert stands that says so.
    is_silent: bool,
    /// Rules look at values.
    pub(super) values: bool,
}

/// A value: what it is stays the same from plan to plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ValueKey {
    table: Table,
    instance: Option<Symbol>,
    column: usize,
}

/// One value that one rule looks at.
#[derive(Debug)]
struct ValueWatch {
    rule: usize,
    key: ValueKey,
    /// Position among the device's series.
    series: usize,
    /// Position of its row in the device's plan.
    row: usize,
    counter: Option<Counter>,
    /// Where in its row the size is that a share is of; `None` where the rule says no share.
    size: Option<usize>,
    standing: Standing,
    /// The name under which it is raised.
    object: Option<Box<str>>,
}

/// What is needed to make a rate of a counter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counter {
    rate: UpdateRate,
    every: Nanos,
    width: CounterWidth,
    /// Octets, and not packets: what an interface's speed says of them.
    octets: bool,
    /// Where in its row the interface's speed and the time of its last discontinuity are.
    speed: Option<usize>,
    discontinuity: Option<usize>,
    /// The time of the last discontinuity.
    discontinued: Option<u64>,
}

/// How wide a counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CounterWidth {
    /// Said by the agent's type only.
    #[default]
    Unknown,
    Narrow,
    Wide,
}

#[derive(Debug)]
struct SilenceWatch {
    rule: usize,
    standing: Standing,
    /// Since when the device had been silent when it was raised.
    since: WallTime,
}

/// A rule about values that stand still, for one agent table: it moves or it does not, as a whole.
#[derive(Debug)]
struct FrozenWatch {
    rule: usize,
    table: Table,
    /// Positions among the device's series.
    series: Vec<usize>,
    /// One of them that was found to be frozen.
    found: Option<usize>,
    standing: Standing,
}

/// The answer that is looked at.
pub(super) struct Seen<'a> {
    pub(super) layout: &'a Layout,
    pub(super) pending: &'a Pending,
    pub(super) answer: &'a Answer,
    pub(super) received: WallTime,
    /// The agent restarted since the last one.
    pub(super) restarted: bool,
    /// Its uptime is another than last time.
    pub(super) uptime_moved: bool,
}

impl Watching {
    /// A question is sent.
    #[inline]
    pub(super) fn asked(&mut self, due: WallTime) {
        self.unanswered.get_or_insert(due);
    }

    /// The collector itself slept: what was not answered meanwhile says nothing.
    fn slept(&mut self, now: WallTime) {
        if let Some(since) = &mut self.unanswered {
            *since = now;
        }
    }

    /// The real-time clock was set.
    pub(super) fn clock_stepped(&mut self, moved: &dyn Fn(WallTime) -> WallTime) {
        self.unanswered = self.unanswered.map(moved);
    }
}

/// An answer came, good or not.
#[inline]
pub(super) fn answered(device: &mut Device, received: WallTime, rows: &mut Rows) {
    device.watching.unanswered = None;
    if std::mem::take(&mut device.watching.is_silent)
        && let Some(alerts) = &mut device.alerts
    {
        alerts.heard(received, device.name, rows);
    }
}

impl DeviceAlerts {
    /// Reads what an answer will need, and makes nothing of it.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.values.iter().fold(0, |sum, watch| sum ^ watch.series) as u64
    }

    /// Ends the alerts that the device is silent.
    #[cold]
    fn heard(&mut self, received: WallTime, device: Symbol, rows: &mut Rows) {
        for watch in &mut self.silences {
            if watch.standing.observe(received, Zone::Back, Nanos::ZERO) == Some(Turn::Cleared) {
                let text =
                    text::answers_again(&self.rules[watch.rule], received.since(watch.since));
                let at = watch.standing.tell(received);
                rows.event(
                    at,
                    CLEARED,
                    Event { device: Some(device), text: &text, ..Event::default() },
                );
            }
        }
    }

    /// Looks whether the device has been silent for too long.
    fn look_for_silence(&mut self, now: WallTime, device: &mut Device, rows: &mut Rows) {
        let Some(since) = device.watching.unanswered else { return };
        for watch in &mut self.silences {
            let Condition::Silent { span } = self.rules[watch.rule].condition else { continue };
            let zone = if now.since(since) > span { Zone::Beyond } else { Zone::Between };
            if watch.standing.observe(now, zone, Nanos::ZERO) == Some(Turn::Raised) {
                watch.since = since;
                device.watching.is_silent = true;
                let text = text::silent(&self.rules[watch.rule], span);
                let at = watch.standing.tell(now);
                rows.event(
                    at,
                    RAISED,
                    Event { device: Some(device.name), text: &text, ..Event::default() },
                );
            }
        }
    }

    /// Holds an answer against the rules.
    pub(super) fn look_at(&mut self, seen: &Seen<'_>, device: &Device, rows: &mut Rows) {
        if seen.restarted {
            self.values.iter_mut().for_each(ValueWatch::interrupt);
        }
        let due = seen.pending.due;
        for (position, target) in seen.layout.rows.iter().enumerate() {
            if seen.answer.renamed.contains(&position) {
                continue;
            }
            let (begin, end) = (target.series, target.series + target.values.len());
            let readings = &seen.answer.values[target.values.clone()];
            let first = self.values.partition_point(|watch| watch.series < begin);
            let watches = self.values[first..].iter_mut().take_while(|watch| watch.series < end);
            for watch in watches {
                let rule = &self.rules[watch.rule];
                let Condition::Threshold(threshold) = &rule.condition else { continue };
                let series = &device.series[watch.series];
                let Some(value) = watch.value(due, readings, watch.series - begin, series) else {
                    continue;
                };
                let Some(value) =
                    value.in_unit(threshold.raise.unit(), of_row(readings, watch.size))
                else {
                    continue;
                };
                let zone = zone(threshold, value);
                if let Some(turn) = watch.standing.observe(due, zone, threshold.lasting) {
                    let text = text::threshold(threshold, zone, value);
                    watch.write(turn, due, rule, &text, device, rows);
                }
            }
        }
    }

    /// A value was found to be frozen.
    pub(super) fn found_frozen(&mut self, series: usize) {
        for watch in &mut self.frozen {
            if watch.series.binary_search(&series).is_ok() {
                watch.found = Some(series);
            }
        }
    }

    /// Looks whether tables have come to stand still, or move again.
    fn look_for_frozen(&mut self, now: WallTime, device: &Device, rows: &mut Rows) {
        for watch in &mut self.frozen {
            let moved = device.activity[watch.table.index()].newest();
            let recently = now.as_nanos().saturating_sub(moved) < RECENTLY;
            let found = watch.found.is_some_and(|series| is_frozen(&device.series[series]));
            let zone = match (recently, found) {
                (true, _) => Zone::Back,
                (false, true) => Zone::Beyond,
                (false, false) => Zone::Between,
            };
            if let Some(turn) = watch.standing.observe(now, zone, Nanos::ZERO) {
                let text = text::frozen(&self.rules[watch.rule], turn, watch.table);
                let object = Some(schema(watch.table).name.as_str());
                let event = Event { device: Some(device.name), object, text: &text, count: None };
                rows.event(watch.standing.tell(now), kind(turn), event);
            }
        }
    }

    /// The real-time clock was set.
    pub(super) fn clock_stepped(&mut self) {
        self.values.iter_mut().for_each(ValueWatch::interrupt);
    }
}

impl ValueWatch {
    /// Values before this moment and after it do not follow each other.
    fn interrupt(&mut self) {
        self.standing.interrupt();
        if let Some(counter) = &mut self.counter {
            counter.rate.interrupt();
            counter.discontinued = None;
        }
    }

    /// What is to be compared, if it is known.
    #[inline]
    fn value(
        &mut self,
        due: WallTime,
        readings: &[Reading],
        slot: usize,
        series: &Series,
    ) -> Option<Value> {
        let whole = |thousandths| Some(Value { thousandths, counter: false, whole: true });
        match (readings[slot], &mut self.counter) {
            (Reading::Unsigned(number) | Reading::Counter(number), Some(counter)) => {
                let thousandths = counter.observe(due, number, readings, series)?;
                Some(Value { thousandths, counter: true, whole: false })
            }
            (Reading::Unsigned(number) | Reading::Counter(number), None) => {
                // Saturates, and is then above every threshold.
                whole(i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(1_000))
            }
            (Reading::Signed(integer), _) => whole(integer.saturating_mul(1_000)),
            (Reading::Real(real), _) => {
                let thousandths = rounded(real * 1_000.0);
                Some(Value { thousandths, counter: false, whole: false })
            }
            (Reading::Missing | Reading::Text { .. }, _) => None,
        }
    }

    /// Writes down that the alert was raised or cleared.
    fn write(
        &mut self,
        turn: Turn,
        due: WallTime,
        rule: &AlertRule,
        text: &str,
        device: &Device,
        rows: &mut Rows,
    ) {
        let object = self.object.get_or_insert_with(|| {
            let instance = device.rows[self.row].instance.as_deref();
            object_name(self.key.table, instance, self.key.column).into()
        });
        let text = format!("{}: {object} {text}", rule.name);
        let event =
            Event { device: Some(device.name), object: Some(object), text: &text, count: None };
        rows.event(self.standing.tell(due), kind(turn), event);
        if turn == Turn::Cleared {
            self.object = None;
        }
    }
}

impl Counter {
    /// Takes a value of the counter; its rate in thousandths a second.
    fn observe(
        &mut self,
        due: WallTime,
        number: u64,
        readings: &[Reading],
        series: &Series,
    ) -> Option<i64> {
        if let Some(at) = of_row(readings, self.discontinuity)
            && self.discontinued.replace(at).is_some_and(|before| before != at)
        {
            self.rate.interrupt();
        }
        let bounds = self.bounds(readings);
        self.rate.observe(due, number, bounds, refresh(series, self.every), self.every)
    }

    /// What the values of its row say of how it grows; `None` where a wrap cannot be told from a reset.
    pub(super) fn bounds(&self, readings: &[Reading]) -> Option<Bounds> {
        let speed = of_row(readings, self.speed).filter(|&mbps| mbps > 0);
        match (self.width, speed) {
            (CounterWidth::Wide, mbps) => {
                Some(Bounds::of_interface(Width::Bits64, self.octets, mbps))
            }
            // Without a speed a reset may look like a wrap, which would be a false peak.
            (CounterWidth::Narrow, Some(mbps)) => {
                Some(Bounds::of_interface(Width::Bits32, self.octets, Some(mbps)))
            }
            (CounterWidth::Narrow, None) | (CounterWidth::Unknown, _) => None,
        }
    }
}

/// A whole number of a row, where it is asked for and there.
fn of_row(readings: &[Reading], slot: Option<usize>) -> Option<u64> {
    match readings[slot?] {
        Reading::Unsigned(number) => Some(number),
        _ => None,
    }
}

/// A value as it is compared.
#[derive(Debug, Clone, Copy)]
struct Value {
    thousandths: i64,
    /// Per second.
    counter: bool,
    /// A whole number that does not count.
    whole: bool,
}

impl Value {
    /// Octets become bits where the rule says bits, and amounts shares of `size`; `None` where that
    /// is not known, or is nothing.
    fn in_unit(self, unit: LevelUnit, size: Option<u64>) -> Option<Self> {
        let thousandths = match unit {
            LevelUnit::BitsPerSecond => self.thousandths.saturating_mul(8),
            LevelUnit::PercentOfSize => {
                let share = (i128::from(self.thousandths) * 100).checked_div(i128::from(size?))?;
                // Saturates, and is then above every threshold.
                i64::try_from(share).unwrap_or(i64::MAX)
            }
            _ => self.thousandths,
        };
        Some(Self { thousandths, ..self })
    }
}

/// Where a value lies.
#[inline]
fn zone(threshold: &Threshold, value: Value) -> Zone {
    let thousandths = value.thousandths;
    let clear = threshold.cleared_at(value.whole).thousandths();
    let raise = threshold.raise.thousandths();
    let (beyond, back) = match threshold.side {
        Side::Above => (thousandths > raise, thousandths <= clear),
        Side::Below => (thousandths < raise, thousandths >= clear),
    };
    match (beyond, back) {
        (true, _) => Zone::Beyond,
        (false, true) => Zone::Back,
        (false, false) => Zone::Between,
    }
}

/// How often the agent refreshes a value, as far as polling has shown it.
fn refresh(series: &Series, every: Nanos) -> Refresh {
    match series.freshness.finding() {
        Some(finding) if finding.source == Source::Observed => match finding.class {
            Class::EveryPoll => Refresh::Every(every),
            Class::Periodic { period, .. } => Refresh::Every(period),
            Class::Irregular { greatest, .. } => Refresh::Every(greatest),
            Class::Unchanged => Refresh::Unknown,
            Class::Frozen => Refresh::Stopped,
        },
        _ => Refresh::Unknown,
    }
}

fn is_frozen(series: &Series) -> bool {
    series.freshness.finding().is_some_and(|finding| finding.class == Class::Frozen)
}

const fn kind(turn: Turn) -> &'static str {
    match turn {
        Turn::Raised => RAISED,
        Turn::Cleared => CLEARED,
    }
}

/// The nearest whole number; what does not fit is the greatest or the least.
#[expect(clippy::cast_possible_truncation, reason = "saturates, which is what is wanted")]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}
