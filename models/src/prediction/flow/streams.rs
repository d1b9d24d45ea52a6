//! The streams that are under way, their rates, and when the next of them ends.

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
    way: Way,
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
    /// Ways of streams that ended, to be used again.
    spare: Vec<Way>,
    carried: Vec<Bytes>,
    /// For each lane what it carries over time, if that is asked for.
    courses: Option<Vec<Course>>,
    sharing: Sharing,
    rates: Vec<f64>,
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
            spare: Vec::new(),
            carried: vec![Bytes::default(); lanes.len()],
            courses: courses.then(|| vec![Course::default(); lanes.len()]),
            sharing: Sharing::default(),
            rates: Vec::new(),
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
            let untold = stream.bytes.get();
            let bytes_left = count_f64(untold);
            let (bytes_per_s, ends) = (0.0, u64::MAX);
            self.active.push(Active { way, set, bytes_left, bytes_per_s, ends, untold });
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
            stream.way.clear();
            self.spare.push(stream.way);
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
        let ways = self.active.iter().map(|stream| &stream.way);
        self.sharing.solve(
            &self.capacities,
            &self.congests,
            ways,
            self.congestion,
            &mut self.rates,
        );
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "octets that are left, which are not negative; `as` saturates"
)]
fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}
