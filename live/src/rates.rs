//! Readings become what is drawn: gauges as they are, counters as their newest known rate.

use std::collections::BTreeSet;
use std::sync::Arc;

use meikyo_recording::Meaning;
use meikyo_recording::counter::{Bounds, Reading, Width};
use meikyo_recording::rate::{Edges, Freshness, Updates};
use meikyo_recording::schema::role::answers;
use meikyo_recording::schema::{Hint, Unit};

use crate::drawable::label_names;
use crate::frames::Frame;
use crate::opened::Opened;
use crate::readings::{Poll, Polls, Readings, number};
use crate::wish::Wish;

/// The newest rate of one counter of one series.
#[derive(Debug, Clone)]
struct Rate {
    edges: Edges,
    updates: Updates,
    /// The rate of the last span that closed, and its end.
    last: Option<(f64, i64)>,
}

/// The values of one table as time goes on.
#[derive(Debug)]
pub(crate) struct Values {
    wish: Wish,
    name: Arc<str>,
    columns: Arc<[String]>,
    /// The device of each series, as the table of answers numbers it; `None` for a table without devices.
    devices: Vec<Option<u32>>,
    /// The series of each device.
    of_device: Vec<Vec<u32>>,
    /// By series and wanted column.
    rates: Vec<Vec<Option<Rate>>>,
}

impl Values {
    pub(crate) fn new(wish: Wish) -> Self {
        let columns: Vec<_> = wish.wanted().map(|column| column.name.clone()).collect();
        Self {
            name: wish.table.name.as_str().into(),
            columns: columns.into(),
            wish,
            devices: Vec::new(),
            of_device: Vec::new(),
            rates: Vec::new(),
        }
    }

    pub(crate) fn wish(&self) -> &Wish {
        &self.wish
    }

    /// What some readings bring; polls without an answer bring rows without values.
    pub(crate) fn frame(
        &mut self,
        opened: &Opened,
        readings: &Readings,
        polls: &Polls,
        freshness: &Freshness,
    ) -> Frame {
        self.learn_series(opened, readings, freshness);
        let mut frame = Frame {
            table: Arc::clone(&self.name),
            columns: Arc::clone(&self.columns),
            values: vec![Vec::new(); self.columns.len()],
            ..Frame::default()
        };
        for row in 0..readings.due.len() {
            self.push_row(readings, row, polls, &mut frame);
        }
        self.push_silent(polls, &mut frame);
        let rows = frame.times.len();
        let whole = frame.values.iter().all(|column| column.len() == rows)
            && [frame.series.len(), frame.states.len(), frame.ages_ms.len()] == [rows; 3];
        assert!(whole, "the columns of a frame of `{}` differ in length", self.name);
        frame
    }

    /// Rows for the series of devices that did not answer.
    fn push_silent(&self, polls: &Polls, frame: &mut Frame) {
        for (device, due, poll) in polls.newest().filter(|(_, _, poll)| poll.received.is_none()) {
            let of_device = self.of_device.get(device as usize);
            for &series in of_device.into_iter().flatten() {
                frame.times.push(due);
                frame.series.push(series);
                frame.states.push(poll.state);
                frame.ages_ms.push(f32::NAN);
                frame.values.iter_mut().for_each(|column| column.push(f32::NAN));
            }
        }
    }

    fn push_row(&mut self, readings: &Readings, row: usize, polls: &Polls, frame: &mut Frame) {
        let (due, series) = (readings.due[row], readings.series[row]);
        let device = self.devices.get(series as usize).copied().flatten();
        let poll =
            device.and_then(|device| polls.find(device, due, readings.hint(Hint::Answer, row)));
        let at = poll.and_then(|poll| poll.received).unwrap_or(due);
        let mut age_ns = None;
        let rates = &mut self.rates[series as usize];
        for (position, column) in self.wish.columns.iter().enumerate() {
            let column = &self.wish.table.columns[*column];
            let bits = readings.values[position][row];
            let value = match (&mut rates[position], bits) {
                (_, None) => f64::NAN,
                (None, Some(bits)) => {
                    age_ns.get_or_insert(0);
                    number(column.kind, bits)
                }
                (Some(rate), Some(value)) => {
                    let reading = reading(readings, row, at, value, poll);
                    let narrow = column.meaning == Meaning::Counter32
                        || readings.hint(Hint::CounterBits, row) == Some(32);
                    let width = if narrow { Width::Bits32 } else { Width::Bits64 };
                    let octets = column.unit() == Some(Unit::Octets);
                    let speed = readings.hint(Hint::LineRate, row);
                    rate.push(reading, Bounds::of_interface(width, octets, speed));
                    match rate.last {
                        Some((per_s, to)) => {
                            age_ns = age_ns.max(Some(at.saturating_sub(to)));
                            per_s
                        }
                        None => f64::NAN,
                    }
                }
            };
            frame.values[position].push(narrowed(value));
        }
        frame.times.push(due);
        frame.series.push(series);
        frame.states.push(poll.map_or(0, |poll| poll.state));
        frame.ages_ms.push(age_ns.map_or(f32::NAN, millis));
    }

    /// Makes room for series that are new.
    fn learn_series(&mut self, opened: &Opened, readings: &Readings, freshness: &Freshness) {
        let most = readings.series.iter().max().map_or(0, |most| *most as usize + 1);
        if most <= self.rates.len() {
            return;
        }
        let labels = opened.with_known_series(&self.wish.table, |series| series.labels().to_vec());
        let names = label_names(&self.wish.table);
        let device_label = names.iter().position(|name| name == answers::DEVICE.name());
        for labels in &labels[self.rates.len()..] {
            let device = device_label.and_then(|label| labels.get(label));
            let instance = names.iter().position(|name| name != answers::DEVICE.name());
            let instance = instance.and_then(|label| labels.get(label));
            let rate = |column: &meikyo_recording::Column| {
                column.counts().then(|| {
                    let of =
                        (device.map_or("", String::as_str), instance.map_or("", String::as_str));
                    let timeline =
                        freshness.timeline(of.0, &self.wish.table.name, of.1, &column.name);
                    Rate { edges: Edges::default(), updates: timeline.at(i64::MAX), last: None }
                })
            };
            let number = device.and_then(|device| opened.device_number(device));
            let series = u32::try_from(self.rates.len()).expect("fewer than 2^32 series");
            self.rates.push(self.wish.wanted().map(rate).collect());
            self.devices.push(number);
            if let Some(number) = number {
                let number = number as usize;
                if self.of_device.len() <= number {
                    self.of_device.resize(number + 1, Vec::new());
                }
                self.of_device[number].push(series);
            }
        }
    }

    /// Looks anew at how often the values of some devices are updated.
    pub(crate) fn refresh(
        &mut self,
        opened: &Opened,
        freshness: &Freshness,
        devices: &BTreeSet<String>,
    ) {
        let names = label_names(&self.wish.table);
        let device_label = names.iter().position(|name| name == answers::DEVICE.name());
        let instance_label = names.iter().position(|name| name != answers::DEVICE.name());
        let (rates, columns) = (&mut self.rates, &self.columns);
        opened.with_known_series(&self.wish.table, |series| {
            for (labels, rates) in series.labels().iter().zip(rates) {
                let text = |label: Option<usize>| {
                    label.and_then(|label| labels.get(label)).map_or("", String::as_str)
                };
                let (device, instance) = (text(device_label), text(instance_label));
                if !devices.contains(device) {
                    continue;
                }
                for (rate, column) in rates.iter_mut().zip(&**columns) {
                    let Some(rate) = rate else { continue };
                    let timeline =
                        freshness.timeline(device, &self.wish.table.name, instance, column);
                    rate.updates = timeline.at(i64::MAX);
                }
            }
        });
    }
}

impl Rate {
    fn push(&mut self, reading: Reading, bounds: Bounds) {
        let mut last = self.last;
        self.edges.push(reading, self.updates, bounds, |span| {
            last = Some((span.per_second(), span.to));
        });
        self.last = last;
    }
}

fn reading(readings: &Readings, row: usize, at: i64, value: u64, poll: Option<Poll>) -> Reading {
    Reading {
        at,
        asked: Some(readings.due[row]),
        value,
        uptime_cs: poll.and_then(|poll| poll.uptime_cs),
        discontinuity_cs: readings.hint(Hint::Discontinuity, row),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "for drawing: 24 bits are sent")]
fn narrowed(value: f64) -> f32 {
    value as f32
}

#[expect(clippy::cast_precision_loss, reason = "for drawing: 24 bits are sent")]
fn millis(ns: i64) -> f32 {
    ns as f32 / 1e6
}
