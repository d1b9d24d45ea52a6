//! The streams that are under way, their rates, and when the next of them ends.

use std::collections::BTreeMap;

use meikyo_undo::Forget;
use meikyo_units::{Bytes, Nanos};

use super::FlowOptions;
use crate::completions::count_f64;
use crate::prediction::course::Course;
use crate::prediction::network::{LanePlace, Network};
use crate::prediction::program::Stream;
use crate::prediction::sharing::{Congestion, Sharing, Way};

/// A stream under way.
#[derive(Debug)]
struct Active {
    stream: Stream,
    way: Way,
    /// That of its acknowledgements; empty within a host.
    way_back: Way,
    set: usize,
    bytes_left: f64,
    bytes_per_s: f64,
    ends: u64,
    /// What of it the courses of its lanes do not have yet.
    untold: u64,
}

#[derive(Debug)]
pub(super) struct Streams<'a> {
    network: &'a Network,
    congestion: Congestion,
    patience: usize,
    capacities: Vec<f64>,
    congests: Vec<bool>,
    /// Sets that are not begun.
    prepared: Vec<Option<Vec<Stream>>>,
    /// For each set the streams that are under way.
    open: Vec<usize>,
    active: Vec<Active>,
    /// How many are under way from host to host with a label.
    under_way: BTreeMap<(usize, usize, u64), usize>,
    /// Ways of streams that ended, to be used again.
    spare: Vec<Way>,
    carried: Vec<Bytes>,
    /// For each lane what it carries over time, if that is asked for.
    courses: Option<Vec<Course>>,
    sharing: Sharing,
    rates: Vec<f64>,
    /// What acknowledgements leave of each lane.
    left: Vec<f64>,
    acknowledged_share: f64,
    /// How long what goes by each lane waits there behind the windows of streams.
    queued_s: Vec<f64>,
    /// The instant for which `bytes_left` holds.
    as_of: u64,
    next_end: Option<u64>,
    begun: bool,
    freed: usize,
    solutions: u64,
}

impl<'a> Streams<'a> {
    pub(super) fn new(network: &'a Network, options: FlowOptions) -> Self {
        let FlowOptions { congestion, patience, courses, .. } = options;
        let lanes = network.lanes();
        let congests =
            |place: LanePlace| matches!(place, LanePlace::Cable { .. } | LanePlace::ToHost { .. });
        Self {
            network,
            congestion,
            patience,
            capacities: lanes.iter().map(|lane| lane.bytes_per_s).collect(),
            congests: lanes.iter().map(|lane| congests(lane.place)).collect(),
            prepared: Vec::new(),
            open: Vec::new(),
            active: Vec::new(),
            under_way: BTreeMap::new(),
            spare: Vec::new(),
            carried: vec![Bytes::default(); lanes.len()],
            courses: courses.then(|| vec![Course::default(); lanes.len()]),
            sharing: Sharing::default(),
            rates: Vec::new(),
            left: Vec::new(),
            acknowledged_share: network.rates().acknowledged_share(),
            queued_s: vec![0.0; lanes.len()],
            as_of: 0,
            next_end: None,
            begun: false,
            freed: 0,
            solutions: 0,
        }
    }

    /// Gives a set its number; nothing moves yet.
    pub(super) fn prepare(&mut self, streams: Vec<Stream>) -> usize {
        self.prepared.push(Some(streams));
        self.open.push(0);
        self.prepared.len() - 1
    }

    /// Begins a set; gives whether it had nothing to move.
    pub(super) fn begin(&mut self, set: usize, now: u64) -> bool {
        let streams = self.prepared[set].take().expect("a set begins once");
        self.advance(now);
        for stream in streams.iter().filter(|stream| stream.bytes > Bytes::default()) {
            let mut way = self.spare.pop().unwrap_or_default();
            self.network.route(stream.from, stream.to, stream.label, &mut way);
            for &lane in &way {
                self.carried[lane] = Bytes::new(self.carried[lane].get() + stream.bytes.get());
            }
            let mut way_back = self.spare.pop().unwrap_or_default();
            if stream.from != stream.to && self.acknowledged_share > 0.0 {
                self.network.route(stream.to, stream.from, stream.label_back, &mut way_back);
            }
            *self.under_way.entry(stream.forth()).or_default() += 1;
            self.active.push(Active {
                stream: *stream,
                way,
                way_back,
                set,
                bytes_left: count_f64(stream.bytes.get()),
                bytes_per_s: 0.0,
                ends: u64::MAX,
                untold: stream.bytes.get(),
            });
            self.open[set] += 1;
            self.begun = true;
        }
        self.open[set] == 0
    }

    /// When the next stream ends, if nothing else begins; rates hold from `now` on.
    pub(super) fn next_end(&mut self, now: u64) -> Option<u64> {
        let waited = self.patience == 0 || self.freed * self.patience > self.active.len();
        if self.begun || (self.freed > 0 && waited) {
            self.solve(now);
        }
        self.next_end
    }

    /// Ends the streams whose end is `now`; gives the sets that are whole.
    pub(super) fn ended(&mut self, now: u64) -> Vec<usize> {
        self.advance(now);
        let mut whole = Vec::new();
        let mut at = 0;
        while let Some(stream) = self.active.get(at) {
            if stream.ends > now {
                at += 1;
                continue;
            }
            // The order of those that are left is part of the result, as far as rounding is.
            let mut stream = self.active.remove(at);
            if let Some(courses) = &mut self.courses {
                stream.tell(courses, [now.saturating_sub(1), now], 0);
            }
            for mut way in [stream.way, stream.way_back] {
                way.clear();
                self.spare.push(way);
            }
            let forth = stream.stream.forth();
            let others = self.under_way.get_mut(&forth).expect("it was under way");
            *others -= 1;
            if *others == 0 {
                self.under_way.remove(&forth);
            }
            self.freed += 1;
            self.open[stream.set] -= 1;
            if self.open[stream.set] == 0 {
                whole.push(stream.set);
            }
        }
        self.next_end = self.active.iter().map(|stream| stream.ends).min();
        if self.active.is_empty() {
            self.freed = 0;
        }
        whole
    }

    fn solve(&mut self, now: u64) {
        self.advance(now);
        self.left.clone_from(&self.capacities);
        self.share();
        if self.acknowledged_share > 0.0 && self.take_acknowledgements() {
            self.share();
        }
        self.queue();
        for (stream, &rate) in self.active.iter_mut().zip(&self.rates) {
            stream.bytes_per_s = rate;
            // To the nearest nanosecond, but no end is where it began.
            let left = Nanos::from_secs_f64(stream.bytes_left / rate).get();
            stream.ends = now.saturating_add(left.max(1));
        }
        self.next_end = self.active.iter().map(|stream| stream.ends).min();
        self.begun = false;
        self.freed = 0;
        self.solutions += 1;
    }

    /// Shares out what is left of the lanes.
    fn share(&mut self) {
        let ways = self.active.iter().map(|stream| &stream.way);
        let rates = &mut self.rates;
        self.sharing.solve(&self.left, &self.congests, ways, self.congestion, rates);
    }

    /// Puts the window of each stream, or what is left of it, into the queue of the lane that limits it. What a host's own
    /// card cannot send stays with its connection (TCP small queues).
    fn queue(&mut self) {
        let window = count_f64(self.congestion.window.get());
        if window > 0.0 {
            self.queued_s.fill(0.0);
            let most = window * places_f64(self.congestion.streams_max);
            for (active, &lane) in self.active.iter().zip(self.sharing.limits()) {
                if !self.congests[lane] {
                    continue;
                }
                let span_s = active.bytes_left.min(window) / self.capacities[lane];
                let most_s = most / self.capacities[lane];
                self.queued_s[lane] = (self.queued_s[lane] + span_s).min(most_s);
            }
        }
    }

    /// How long what is said about a set that has not begun waits behind the windows of others on its way, or on the way
    /// back: the longest time of all its streams.
    pub(super) fn queued(&self, set: usize, back: bool) -> Nanos {
        if self.congestion.window == Bytes::default() || self.active.is_empty() {
            return Nanos::ZERO;
        }
        let mut way = Way::default();
        let mut longest_s = 0.0_f64;
        let streams = self.prepared[set].iter().flatten();
        for stream in streams.filter(|stream| stream.from != stream.to) {
            let (from, to, label) = if back { stream.back() } else { stream.forth() };
            way.clear();
            self.network.route(from, to, label, &mut way);
            longest_s = longest_s.max(way.iter().map(|&lane| self.queued_s[lane]).sum());
        }
        Nanos::from_secs_f64(longest_s)
    }

    /// Takes from the lanes what the acknowledgements of all streams need at their rates; gives whether any do.
    ///
    /// Where data go in the other direction of the same connection, these carry the acknowledgements. Rates
    /// become lower by that, so that acknowledgements need less: a share of a share, which is left out.
    fn take_acknowledgements(&mut self) -> bool {
        let mut any = false;
        for (active, rate) in self.active.iter().zip(&self.rates) {
            if active.way_back.is_empty() || self.under_way.contains_key(&active.stream.back()) {
                continue;
            }
            any = true;
            for &lane in &active.way_back {
                // Streams whose ways there are one cable's and back another's do not fill that one.
                let least = self.capacities[lane] / 2.0;
                let left = self.left[lane] - rate * self.acknowledged_share;
                self.left[lane] = left.max(least);
            }
        }
        any
    }

    /// Takes from every stream what has gone since the last time.
    fn advance(&mut self, now: u64) {
        let span_s = Nanos::new(now - self.as_of).as_secs_f64();
        if now > self.as_of {
            for stream in &mut self.active {
                stream.bytes_left = (stream.bytes_left - stream.bytes_per_s * span_s).max(0.0);
                if let Some(courses) = &mut self.courses {
                    stream.tell(courses, [self.as_of, now], rounded(stream.bytes_left));
                }
            }
            self.as_of = now;
        }
    }

    pub(super) fn carried(&self) -> Vec<Bytes> {
        self.carried.clone()
    }

    pub(super) fn into_courses(self) -> Option<Vec<Course>> {
        self.courses
    }

    pub(super) fn sets(&self) -> u64 {
        u64::try_from(self.prepared.len()).expect("a count fits in 64 bits")
    }

    pub(super) fn solutions(&self) -> u64 {
        self.solutions
    }
}

impl Active {
    /// Tells its lanes what went over them in a span at whose end so much is left.
    fn tell(&mut self, courses: &mut [Course], span: [u64; 2], left: u64) {
        let gone = self.untold.saturating_sub(left);
        if gone > 0 {
            self.untold -= gone;
            for &lane in &self.way {
                courses[lane].add_evenly(span, gone, &mut Forget);
            }
        }
    }
}

fn places_f64(count: usize) -> f64 {
    count_f64(u64::try_from(count).expect("a count fits in 64 bits"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "octets that are left, which are not negative; `as` saturates"
)]
fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}
