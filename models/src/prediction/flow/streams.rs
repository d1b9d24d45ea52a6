//! The streams that are under way, their rates, and when the next of them ends.
//!
//! What all of them need at every event is in lists of numbers by stream, which processors go through several at a time; streams
//! that have ended leave gaps there that the next ones fill.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use meikyo_undo::Forget;
use meikyo_units::{Bytes, Nanos};

use super::FlowOptions;
use crate::completions::count_f64;
use crate::prediction::course::Course;
use crate::prediction::network::{LanePlace, Network};
use crate::prediction::program::Stream;
use crate::prediction::routes::Routes;
use crate::prediction::sharing::{Congestion, Sharing, least};
use crate::prediction::small_queues::bytes_at_card;

/// A stream under way, or a gap.
#[derive(Debug, Clone, Copy)]
struct Active {
    set: usize,
    /// Its way.
    forth: usize,
    /// That of its acknowledgements; nothing within a host.
    back: Option<usize>,
    /// What of it the courses of its lanes do not have yet.
    untold: u64,
    /// Whether its sender waits until it is handed over.
    held: bool,
}

/// How far a set of streams has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// No more of it is left than its windows hold, so that its sender has handed over all of it.
    HandedOver,
    /// All of it is there.
    Whole,
}

/// The rates of all lanes, and what acknowledgements leave of them.
#[derive(Debug)]
struct Capacities {
    whole: Vec<f64>,
    left: Vec<f64>,
    /// The lanes of which less is left than the whole.
    taken: Vec<usize>,
    acknowledged_share: f64,
}

#[derive(Debug)]
pub(super) struct Streams<'a> {
    routes: Routes<'a>,
    congestion: Congestion,
    patience: usize,
    capacities: Capacities,
    congests: Vec<bool>,
    /// Sets that are not begun.
    prepared: Vec<Option<Vec<Stream>>>,
    /// For each set the streams that are under way, and those of them that its sender waits for.
    open: Vec<usize>,
    held: Vec<usize>,
    active: Vec<Active>,
    /// For each stream what is left of it until it is handed over or there; infinite in gaps.
    bytes_left: Vec<f64>,
    /// How long that took when rates were worked out last.
    left_s: Vec<f64>,
    /// For each stream what is left of it from then on.
    last_bytes: Vec<f64>,
    gaps: BinaryHeap<Reverse<usize>>,
    /// For each way how many streams are under way on it.
    under_way: Vec<usize>,
    carried: Vec<Bytes>,
    /// For each lane what it carries over time, if that is asked for.
    courses: Option<Vec<Course>>,
    sharing: Sharing,
    /// How long as many windows as the queue of each lane has room for take on it; a card has room for all.
    windows_s: Vec<f64>,
    /// How long what goes by each lane waits there behind the windows of streams, and the lanes where it does.
    queued_s: Vec<f64>,
    queued: Vec<usize>,
    /// Whether that is still so. It is worked out when it is asked for.
    queues_hold: bool,
    /// Streams that end or are handed over at the same instant.
    ending: Vec<usize>,
    /// The instant for which `bytes_left` holds, and the one from which `left_s` counts.
    as_of: u64,
    solved_at: u64,
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
        let congests: Vec<bool> = lanes.iter().map(|lane| congests(lane.place)).collect();
        let whole: Vec<f64> = lanes.iter().map(|lane| lane.bytes_per_s).collect();
        let window = count_f64(congestion.window.get());
        let windows = window * count_f64(wide(congestion.streams_max));
        let windows_s = |(capacity, congests): (&f64, &bool)| {
            if *congests { windows / capacity } else { f64::INFINITY }
        };
        Self {
            routes: Routes::new(network),
            congestion,
            patience,
            prepared: Vec::new(),
            open: Vec::new(),
            held: Vec::new(),
            active: Vec::new(),
            bytes_left: Vec::new(),
            left_s: Vec::new(),
            last_bytes: Vec::new(),
            gaps: BinaryHeap::new(),
            under_way: Vec::new(),
            carried: vec![Bytes::default(); lanes.len()],
            courses: courses.then(|| vec![Course::default(); lanes.len()]),
            sharing: Sharing::new(congests.clone(), congestion),
            windows_s: whole.iter().zip(&congests).map(windows_s).collect(),
            congests,
            queued_s: vec![0.0; lanes.len()],
            queued: Vec::new(),
            queues_hold: false,
            capacities: Capacities {
                left: whole.clone(),
                whole,
                taken: Vec::new(),
                acknowledged_share: network.rates().acknowledged_share(),
            },
            ending: Vec::new(),
            as_of: 0,
            solved_at: 0,
            begun: false,
            freed: 0,
            solutions: 0,
        }
    }

    /// Gives a set its number; nothing moves yet.
    pub(super) fn prepare(&mut self, streams: Vec<Stream>) -> usize {
        self.prepared.push(Some(streams));
        self.open.push(0);
        self.held.push(0);
        self.prepared.len() - 1
    }

    /// Begins a set; gives how far it is at once. If its sender waits, it is handed over as soon as no stream has more left
    /// than its window; otherwise it is whole at its end, and nothing before.
    pub(super) fn begin(&mut self, set: usize, waits: bool, now: u64) -> Option<Reached> {
        let window = self.congestion.window.get();
        let streams = self.prepared[set].take().expect("a set begins once");
        self.advance(now);
        for stream in streams.iter().filter(|stream| stream.bytes > Bytes::default()) {
            let forth = self.routes.of(stream.forth());
            let acknowledged = stream.from != stream.to && self.capacities.acknowledged_share > 0.0;
            let back = acknowledged.then(|| self.routes.of(stream.back()));
            for &lane in self.routes.way(forth) {
                self.carried[lane] = Bytes::new(self.carried[lane].get() + stream.bytes.get());
            }
            let most = forth.max(back.unwrap_or(forth));
            if self.under_way.len() <= most {
                self.under_way.resize(most + 1, 0);
            }
            self.under_way[forth] += 1;
            let own = self.gap();
            // Within a host there is no window: a sender waits for its receiver.
            let last = if waits && stream.from != stream.to { window } else { 0 };
            let first = stream.bytes.get().saturating_sub(last);
            if last > 0 && first > 0 {
                self.bytes_left[own] = count_f64(first);
                self.last_bytes[own] = count_f64(last);
            } else {
                self.bytes_left[own] = count_f64(stream.bytes.get());
                self.last_bytes[own] = 0.0;
            }
            let held = waits && first > 0;
            self.held[set] += usize::from(held);
            self.active[own] = Active { set, forth, back, untold: stream.bytes.get(), held };
            self.sharing.add(own, self.routes.way(forth));
            self.open[set] += 1;
            self.begun = true;
        }
        match (self.open[set], self.held[set]) {
            (0, _) => Some(Reached::Whole),
            (_, 0) if waits => Some(Reached::HandedOver),
            _ => None,
        }
    }

    /// The first place that no stream has.
    fn gap(&mut self) -> usize {
        // Those beyond the end were given up there. None is left when the lists grow.
        while let Some(Reverse(gap)) = self.gaps.pop() {
            if gap < self.active.len() {
                return gap;
            }
        }
        self.active.push(Active { set: 0, forth: 0, back: None, untold: 0, held: false });
        self.bytes_left.push(f64::INFINITY);
        self.left_s.push(f64::INFINITY);
        self.last_bytes.push(0.0);
        self.active.len() - 1
    }

    /// When the next stream ends, if nothing else begins; rates hold from `now` on.
    pub(super) fn next_end(&mut self, now: u64) -> Option<u64> {
        let under_way = self.sharing.order().len();
        let waited = self.patience == 0 || self.freed * self.patience > under_way;
        if self.begun || (self.freed > 0 && waited) {
            self.solve(now);
        }
        (under_way > 0).then(|| end_of(self.solved_at, least(&self.left_s)))
    }

    /// Ends the streams whose end is `now`, and hands over those of which a window is left; gives the sets of which that
    /// is true of all streams, those that are handed over first.
    pub(super) fn ended(&mut self, now: u64) -> Vec<(usize, Reached)> {
        self.advance(now);
        // A little more than may have ended, since ends are rounded.
        let about_s = Nanos::new(now - self.solved_at + 2).as_secs_f64();
        let mut ending = std::mem::take(&mut self.ending);
        let (all, solved_at) = (self.left_s.iter().enumerate(), self.solved_at);
        let ends =
            |&(_, &left_s): &(usize, &f64)| left_s <= about_s && end_of(solved_at, left_s) <= now;
        ending.extend(all.filter(ends).map(|(own, _)| own));
        ending.sort_unstable_by_key(|own| self.sharing.number(*own));
        let mut reached = Vec::new();
        ending.retain(|&own| {
            let last = std::mem::take(&mut self.last_bytes[own]);
            let Active { set, held, .. } = &mut self.active[own];
            if std::mem::take(held) {
                self.held[*set] -= 1;
                if self.held[*set] == 0 {
                    reached.push((*set, Reached::HandedOver));
                }
            }
            if last > 0.0 {
                self.bytes_left[own] = last;
                self.left_s[own] += last / self.sharing.rates()[own];
            }
            last <= 0.0
        });
        self.sharing.remove(&ending);
        self.queues_hold = false;
        for own in ending.drain(..) {
            if let Some(courses) = &mut self.courses {
                let way = self.routes.way(self.active[own].forth);
                self.active[own].tell(courses, way, [now.saturating_sub(1), now], 0);
            }
            let Active { set, forth, .. } = self.active[own];
            self.under_way[forth] -= 1;
            self.bytes_left[own] = f64::INFINITY;
            self.left_s[own] = f64::INFINITY;
            self.gaps.push(Reverse(own));
            self.freed += 1;
            self.open[set] -= 1;
            if self.open[set] == 0 {
                reached.push((set, Reached::Whole));
            }
        }
        self.ending = ending;
        let kept = self.bytes_left.iter().rposition(|left| left.is_finite()).map_or(0, |at| at + 1);
        self.active.truncate(kept);
        self.bytes_left.truncate(kept);
        self.left_s.truncate(kept);
        self.last_bytes.truncate(kept);
        if kept == 0 {
            self.freed = 0;
        }
        reached
    }

    fn solve(&mut self, now: u64) {
        self.advance(now);
        self.capacities.restore();
        self.take_acknowledgements();
        self.sharing.solve(&self.capacities.left);
        self.queues_hold = false;
        let rates = self.sharing.rates();
        for ((left_s, bytes), rate) in self.left_s.iter_mut().zip(&self.bytes_left).zip(rates) {
            *left_s = bytes / rate;
        }
        self.solved_at = now;
        self.begun = false;
        self.freed = 0;
        self.solutions += 1;
    }

    /// Puts the window of each stream, or what is left of it, into the queue of the lane that limits it. Most of what a host's
    /// own card cannot send stays with its connection ([`bytes_at_card`]).
    fn queue(&mut self) {
        for lane in self.queued.drain(..) {
            self.queued_s[lane] = 0.0;
        }
        let window = count_f64(self.congestion.window.get());
        let rates = self.sharing.rates();
        // One that has just begun has no rate, and nothing on its way.
        for &own in self.sharing.order().iter().filter(|own| rates[**own] > 0.0) {
            let lane = self.sharing.limit(own);
            let left = self.bytes_left[own] + self.last_bytes[own];
            let most =
                if self.congests[lane] { window } else { bytes_at_card(rates[own]).min(window) };
            let span_s = left.min(most) / self.capacities.whole[lane];
            self.queued_s[lane] = (self.queued_s[lane] + span_s).min(self.windows_s[lane]);
            self.queued.push(lane);
        }
    }

    /// How long what is said about a set that has not begun waits behind the windows of others on its way, or on the way
    /// back: the longest time of all its streams.
    pub(super) fn queued(&mut self, set: usize, back: bool) -> Nanos {
        if self.congestion.window == Bytes::default() || self.sharing.order().is_empty() {
            return Nanos::ZERO;
        }
        if !std::mem::replace(&mut self.queues_hold, true) {
            self.queue();
        }
        let mut longest_s = 0.0_f64;
        let streams = self.prepared[set].iter().flatten();
        for stream in streams.filter(|stream| stream.from != stream.to) {
            let route = self.routes.of(if back { stream.back() } else { stream.forth() });
            let way = self.routes.way(route).iter();
            longest_s = longest_s.max(way.map(|&lane| self.queued_s[lane]).sum());
        }
        Nanos::from_secs_f64(longest_s)
    }

    /// Takes from the lanes what the acknowledgements of all streams need at the rates that were found last; streams
    /// that have just begun are taken to have what each has on the fullest lane of its way.
    ///
    /// Where data go in the other direction of the same connection, these carry the acknowledgements. The rates that
    /// follow need a little more or less for them, a share of a share, which counts from the next time on.
    fn take_acknowledgements(&mut self) {
        let Self { sharing, capacities, active, under_way, routes, .. } = self;
        for &own in sharing.order() {
            let Some(back) = active[own].back.filter(|back| under_way[*back] == 0) else {
                continue;
            };
            let found = sharing.rates()[own];
            let rate =
                if found > 0.0 { found } else { sharing.least_share(own, &capacities.whole) };
            capacities.take(routes.way(back), rate * capacities.acknowledged_share);
        }
    }

    /// Takes from every stream what has gone since the last time.
    fn advance(&mut self, now: u64) {
        if now <= self.as_of {
            return;
        }
        self.queues_hold = false;
        let span_s = Nanos::new(now - self.as_of).as_secs_f64();
        for (left, rate) in self.bytes_left.iter_mut().zip(self.sharing.rates()) {
            let after = *left - rate * span_s;
            *left = if after > 0.0 { after } else { 0.0 };
        }
        if let Some(courses) = &mut self.courses {
            for &own in self.sharing.order() {
                let way = self.routes.way(self.active[own].forth);
                let left = rounded(self.bytes_left[own] + self.last_bytes[own]);
                self.active[own].tell(courses, way, [self.as_of, now], left);
            }
        }
        self.as_of = now;
    }

    pub(super) fn carried(&self) -> Vec<Bytes> {
        self.carried.clone()
    }

    pub(super) fn into_courses(self) -> Option<Vec<Course>> {
        self.courses
    }

    pub(super) fn sets(&self) -> u64 {
        wide(self.prepared.len())
    }

    pub(super) fn solutions(&self) -> u64 {
        self.solutions
    }
}

impl Capacities {
    /// Nothing is taken.
    fn restore(&mut self) {
        for lane in self.taken.drain(..) {
            self.left[lane] = self.whole[lane];
        }
    }

    /// Takes so much from each lane of a way.
    fn take(&mut self, way: &[usize], loss: f64) {
        for &lane in way {
            // Streams whose ways there are one cable's and back another's do not fill that one.
            let (whole, left) = (self.whole[lane], self.left[lane]);
            if left >= whole {
                self.taken.push(lane);
            }
            self.left[lane] = (left - loss).max(whole / 2.0);
        }
    }
}

impl Active {
    /// Tells its lanes what went over them in a span at whose end so much is left.
    fn tell(&mut self, courses: &mut [Course], way: &[usize], span: [u64; 2], left: u64) {
        let gone = self.untold.saturating_sub(left);
        if gone > 0 {
            self.untold -= gone;
            for &lane in way {
                courses[lane].add_evenly(span, gone, &mut Forget);
            }
        }
    }
}

/// When a stream ends that takes so long: to the nearest nanosecond, but no end is where it began.
fn end_of(solved_at: u64, left_s: f64) -> u64 {
    solved_at.saturating_add(Nanos::from_secs_f64(left_s).get().max(1))
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).expect("a count fits in 64 bits")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "octets that are left, which are not negative; `as` saturates"
)]
fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}
