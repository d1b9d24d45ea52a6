//! How streams share lanes: max-min fairly, by progressive filling.
//!
//! The rates of all streams rise together until a lane is full; the streams on it stop there, the
//! others go on (Bertsekas and Gallager, "Data Networks", section 6.5.2). Beyond that:
//!
//! - **Pause frames.** A cable behind a switch port whose queue fills makes the switch stop who feeds
//!   it, and what a card cannot send for one stream it cannot send for the others behind it either. So
//!   where a lane with many streams stops a stream, the others of the same card stop at the same rate.
//!   How many are many follows from the size of a queue and of a window ([`Congestion`]): fewer cannot
//!   fill it.
//! - **Full lanes** with that many streams carry a share of their rate only.
//!
//! Who is on which lane is kept from one solution to the next. A solution is linear in the streams' lanes, and in an eighth of
//! the used lanes times the number of different rates. It follows from the streams and the order in which they began, whatever
//! was there before.

use meikyo_units::Bytes;

/// What happens to lanes that more streams want than their queue has room for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Congestion {
    /// Streams whose windows together just fit into the queue of a port.
    pub streams_max: usize,
    /// Whether the queue stops its senders by pause frames when it is full.
    pub pause: bool,
    /// The share of its rate that a lane carries then.
    pub full_share: f64,
    /// What each stream has in the queue of the lane that limits it: its window. At the card of its own host a part of that
    /// waits (module `small_queues`). What else goes by that lane waits behind it, messages that are no streams too. Its sender
    /// goes on when no more is left than that.
    pub window: Bytes,
}

impl Congestion {
    /// No queue is ever full: plain max-min fairness.
    pub const NONE: Self =
        Self { streams_max: usize::MAX, pause: false, full_share: 1.0, window: Bytes::new(0) };
}

/// So many lanes are looked at together.
const GROUP: usize = 8;

/// A number of each lane of a group.
type Group = [f64; GROUP];

/// A lane that has streams.
#[derive(Debug)]
struct Used {
    lane: usize,
    /// Its streams in the order in which they began.
    streams: Vec<usize>,
    /// Where it comes among lanes that are full at once: by the number of its first stream, then along the way of that.
    turn: u64,
}

/// Lanes while rates rise, by place. Where there is no lane, no stream is open.
#[derive(Debug, Clone, Copy, Default)]
struct Rising {
    /// What the stopped streams leave of its rate, and how many of its streams are not stopped.
    left: Group,
    open: Group,
    /// Whether any of these has stopped since the levels were worked out.
    has_changed: bool,
}

/// A stream that shares lanes.
#[derive(Debug, Clone, Default)]
struct Sharer {
    /// How many began before it.
    number: u64,
    /// The places of its lanes, the card that sends it first.
    way: Vec<usize>,
    /// The lane that limits it.
    limit: usize,
}

/// The streams on all lanes, and their rates. Streams are called by numbers, which are used again.
#[derive(Debug)]
pub(crate) struct Sharing {
    congestion: Congestion,
    /// Of each lane whether it has a queue in a switch.
    congests: Vec<bool>,
    /// The lanes that have streams, and of all lanes their places among them.
    used: Vec<Used>,
    places: Vec<Option<usize>>,
    /// Lists of lanes that have no streams any more.
    spare: Vec<Vec<usize>>,
    /// For each place what is left of the lane, the rate at which it is full, and the least of each group of these.
    rising: Vec<Rising>,
    levels: Vec<Group>,
    leasts: Vec<f64>,
    sharers: Vec<Sharer>,
    /// For each stream its rate; 0 where there is none.
    rates: Vec<f64>,
    /// All streams in the order in which they began.
    order: Vec<usize>,
    begun: u64,
    /// The places of lanes that are full at the present level, by their turns.
    full: Vec<(u64, usize)>,
}

impl Sharing {
    /// No stream on any lane; `congests` says of each lane whether it has a queue in a switch.
    pub(crate) fn new(congests: Vec<bool>, congestion: Congestion) -> Self {
        Self {
            congestion,
            places: vec![None; congests.len()],
            congests,
            used: Vec::new(),
            spare: Vec::new(),
            rising: Vec::new(),
            levels: Vec::new(),
            leasts: Vec::new(),
            sharers: Vec::new(),
            rates: Vec::new(),
            order: Vec::new(),
            begun: 0,
            full: Vec::new(),
        }
    }

    /// Puts a stream onto the lanes of its way; it has no rate until all rates are worked out.
    pub(crate) fn add(&mut self, stream: usize, way: &[usize]) {
        while self.sharers.len() <= stream {
            self.sharers.push(Sharer::default());
            self.rates.push(0.0);
        }
        for (step, &lane) in way.iter().enumerate() {
            let place = self.places[lane].unwrap_or_else(|| self.use_lane(lane, step));
            self.used[place].streams.push(stream);
            self.sharers[stream].way.push(place);
        }
        self.sharers[stream].number = self.begun;
        self.begun += 1;
        self.order.push(stream);
    }

    /// Gives a place to a lane whose first stream is the one that begins.
    fn use_lane(&mut self, lane: usize, step: usize) -> usize {
        let place = self.used.len();
        let streams = self.spare.pop().unwrap_or_default();
        self.used.push(Used { lane, streams, turn: turn(self.begun, step) });
        self.places[lane] = Some(place);
        place
    }

    /// Takes streams off their lanes.
    pub(crate) fn remove(&mut self, streams: &[usize]) {
        for &stream in streams {
            self.rates[stream] = f64::NAN;
            while let Some(place) = self.sharers[stream].way.pop() {
                self.leave(stream, place);
            }
        }
        let rates = &self.rates;
        self.order.retain(|stream| !rates[*stream].is_nan());
        for &stream in streams {
            self.rates[stream] = 0.0;
        }
    }

    fn leave(&mut self, stream: usize, place: usize) {
        let sharers = &self.sharers;
        let own = &mut self.used[place];
        let number = sharers[stream].number;
        let at = own.streams.binary_search_by_key(&number, |other| sharers[*other].number);
        let at = at.expect("it is on its lanes");
        own.streams.remove(at);
        match own.streams.first() {
            None => self.give_up(place),
            Some(&first) if at == 0 => {
                let Sharer { number, way, .. } = &sharers[first];
                let step = way.iter().position(|other| *other == place);
                own.turn = turn(*number, step.expect("it is on its way"));
            }
            Some(_) => {}
        }
    }

    /// A lane has no stream any more: the last one that has takes its place.
    fn give_up(&mut self, place: usize) {
        let Used { lane, streams, .. } = self.used.swap_remove(place);
        self.places[lane] = None;
        self.spare.push(streams);
        let last = self.used.len();
        if let Some(moved) = self.used.get(place) {
            self.places[moved.lane] = Some(place);
            for &stream in &moved.streams {
                let way = self.sharers[stream].way.iter_mut();
                way.filter(|of| **of == last).for_each(|of| *of = place);
            }
        }
    }

    /// All streams in the order in which they began.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// How many streams began before this one.
    pub(crate) fn number(&self, stream: usize) -> u64 {
        self.sharers[stream].number
    }

    /// The rate of each stream, as it was found last.
    pub(crate) fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The lane that limits a stream, as it was found last.
    pub(crate) fn limit(&self, stream: usize) -> usize {
        self.sharers[stream].limit
    }

    /// What a stream would have if everybody on the lanes of its way had the same: the least of these shares.
    pub(crate) fn least_share(&self, stream: usize, capacities: &[f64]) -> f64 {
        let used = self.sharers[stream].way.iter().map(|place| &self.used[*place]);
        let shares = used.map(|own| capacities[own.lane] / real(own.streams.len()));
        shares.fold(f64::INFINITY, lesser)
    }

    /// Gives each stream its rate; a lane's is in `capacities`.
    pub(crate) fn solve(&mut self, capacities: &[f64]) {
        self.begin(capacities);
        while let Some(level) = self.next_level() {
            for at in 0..self.full.len() {
                self.fill(self.full[at].1, level);
            }
        }
    }

    /// No stream is stopped.
    fn begin(&mut self, capacities: &[f64]) {
        let Congestion { streams_max, full_share, .. } = self.congestion;
        for &stream in &self.order {
            self.rates[stream] = f64::NAN;
        }
        let groups = self.used.len().div_ceil(GROUP);
        self.rising.clear();
        self.rising.resize(groups, Rising { has_changed: true, ..Rising::default() });
        self.levels.resize(groups, [f64::INFINITY; GROUP]);
        self.leasts.resize(groups, f64::INFINITY);
        for (rising, used) in self.rising.iter_mut().zip(self.used.chunks(GROUP)) {
            for (at, own) in used.iter().enumerate() {
                let is_full_of_windows = own.is_full_of_windows(&self.congests, streams_max);
                let share = if is_full_of_windows { full_share } else { 1.0 };
                rising.left[at] = capacities[own.lane] * share;
                rising.open[at] = real(own.streams.len());
            }
        }
    }

    /// The rate at which the next lanes are full, which are put into `full`; `None` if all streams are stopped.
    fn next_level(&mut self) -> Option<f64> {
        // Lanes whose levels differ by rounding only are one level.
        const SAME: f64 = 1.0 + 1e-12;
        for (at, group) in self.rising.iter_mut().enumerate() {
            if std::mem::take(&mut group.has_changed) {
                self.levels[at] = group.levels();
                self.leasts[at] = least_of(&self.levels[at]);
            }
        }
        let level = least(&self.leasts);
        if level.is_infinite() {
            return None;
        }
        self.full.clear();
        let most = level * SAME;
        for (group, _) in self.leasts.iter().enumerate().filter(|(_, least)| **least <= most) {
            for (at, _) in self.levels[group].iter().enumerate().filter(|(_, own)| **own <= most) {
                let place = group * GROUP + at;
                self.full.push((self.used[place].turn, place));
            }
        }
        self.full.sort_unstable();
        Some(level)
    }

    /// Stops what goes by a full lane.
    fn fill(&mut self, place: usize, level: f64) {
        let Congestion { streams_max, pause, .. } = self.congestion;
        let pauses = pause && self.used[place].is_full_of_windows(&self.congests, streams_max);
        for at in 0..self.used[place].streams.len() {
            let stream = self.used[place].streams[at];
            if !self.stop(stream, place, level) || !pauses {
                continue;
            }
            // All that this card sends stops with it.
            let card = self.sharers[stream].way[0];
            for at in 0..self.used[card].streams.len() {
                let other = self.used[card].streams[at];
                self.stop(other, card, level);
            }
        }
    }

    /// Stops a stream at this rate; gives whether it was not stopped before.
    fn stop(&mut self, stream: usize, limit: usize, level: f64) -> bool {
        if !self.rates[stream].is_nan() {
            return false;
        }
        self.rates[stream] = level;
        let sharer = &mut self.sharers[stream];
        sharer.limit = self.used[limit].lane;
        for &place in &sharer.way {
            let (group, at) = (&mut self.rising[place / GROUP], place % GROUP);
            group.left[at] -= level;
            group.open[at] -= 1.0;
            group.has_changed = true;
        }
        true
    }
}

impl Used {
    /// Whether more streams want a lane of a switch than its queue has room for.
    fn is_full_of_windows(&self, congests: &[bool], streams_max: usize) -> bool {
        self.streams.len() > streams_max && congests[self.lane]
    }
}

impl Rising {
    /// The rate at which each lane is full. All at once, as processors can.
    #[inline]
    fn levels(&self) -> Group {
        std::array::from_fn(|at| {
            let (left, open) = (self.left[at], self.open[at]);
            let level = if left > 0.0 { left } else { 0.0 } / open;
            if open > 0.0 { level } else { f64::INFINITY }
        })
    }
}

/// The turn of a lane by the number of its first stream, and where it is on the way of that.
fn turn(number: u64, step: usize) -> u64 {
    const STEPS_MAX: u64 = 1 << 16;
    let step = u64::try_from(step).expect("a place fits in 64 bits");
    assert!(step < STEPS_MAX, "a way of {step} lanes");
    number * STEPS_MAX + step
}

/// The least of many numbers, infinite if there are none. Several at once, as processors can.
pub(crate) fn least(values: &[f64]) -> f64 {
    let mut leasts = [f64::INFINITY; GROUP];
    let (whole, rest) = values.as_chunks::<GROUP>();
    for chunk in whole {
        for (least, &value) in leasts.iter_mut().zip(chunk) {
            *least = lesser(value, *least);
        }
    }
    rest.iter().copied().fold(least_of(&leasts), lesser)
}

#[inline]
fn least_of(group: &Group) -> f64 {
    let [a, b, c, d, e, f, g, h] = *group;
    let [one, other] = [[a, b, c, d], [e, f, g, h]];
    let [a, b, c, d] = std::array::from_fn(|at| lesser(one[at], other[at]));
    lesser(lesser(a, c), lesser(b, d))
}

/// The lesser of two numbers that are some.
#[inline]
fn lesser(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

fn real(count: usize) -> f64 {
    crate::completions::count_f64(u64::try_from(count).expect("a count fits in 64 bits"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Way = Vec<usize>;

    fn shared(capacities: &[f64], ways: &[Way], congestion: Congestion) -> Sharing {
        let mut sharing = Sharing::new(vec![true; capacities.len()], congestion);
        ways.iter().enumerate().for_each(|(stream, way)| sharing.add(stream, way));
        sharing.solve(capacities);
        sharing
    }

    fn solved(capacities: &[f64], ways: &[Way], congestion: Congestion) -> Vec<f64> {
        shared(capacities, ways, congestion).rates().to_vec()
    }

    /// The rate of each of these streams to the last bit, and the lane that limits it.
    fn told(sharing: &Sharing, streams: &[usize]) -> Vec<(u64, usize)> {
        let told = |&stream: &usize| (sharing.rates()[stream].to_bits(), sharing.limit(stream));
        streams.iter().map(told).collect()
    }

    fn ways(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Way>> {
        let way = prop::sample::subsequence((0..6).collect::<Vec<usize>>(), 1..4).prop_shuffle();
        prop::collection::vec(way, count)
    }

    fn capacities() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((1_u32..20).prop_map(f64::from), 6)
    }

    fn congestion() -> impl Strategy<Value = Congestion> {
        (1_usize..6, any::<bool>(), 0.5..=1.0).prop_map(|(streams_max, pause, full_share)| {
            Congestion { streams_max, pause, full_share, ..Congestion::NONE }
        })
    }

    /// The most that the least of the streams in `raised` can have, if the others have `fixed`: the
    /// linear program "maximise t, with t for each raised stream, within all lanes", whose only
    /// variable makes it a minimum over lanes.
    fn most_of_least(capacities: &[f64], ways: &[Way], fixed: &[Option<f64>]) -> f64 {
        (0..capacities.len())
            .filter_map(|lane| {
                let on = |stream: &usize| ways[*stream].contains(&lane);
                let streams: Vec<usize> = (0..ways.len()).filter(on).collect();
                let raised = streams.iter().filter(|&&stream| fixed[stream].is_none()).count();
                let taken: f64 = streams.iter().filter_map(|&stream| fixed[stream]).sum();
                (raised > 0).then(|| (capacities[lane] - taken) / real(raised))
            })
            .fold(f64::INFINITY, f64::min)
    }

    /// Max-min fairness by a chain of linear programs: raise the least as far as it goes, fix each
    /// stream that cannot have more without another one having less, and go on.
    fn by_linear_programs(capacities: &[f64], ways: &[Way]) -> Vec<f64> {
        let mut fixed = vec![None; ways.len()];
        while fixed.iter().any(Option::is_none) {
            let least = most_of_least(capacities, ways, &fixed);
            let mut stuck = Vec::new();
            for stream in 0..ways.len() {
                if fixed[stream].is_some() {
                    continue;
                }
                // Can this one have more while the others keep the least?
                let others: Vec<Option<f64>> = (0..ways.len())
                    .map(|other| if other == stream { None } else { fixed[other].or(Some(least)) })
                    .collect();
                if most_of_least(capacities, ways, &others) <= least * (1.0 + 1e-9) {
                    stuck.push(stream);
                }
            }
            assert!(!stuck.is_empty());
            stuck.into_iter().for_each(|stream| fixed[stream] = Some(least));
        }
        fixed.into_iter().flatten().collect()
    }

    proptest! {
        #[test]
        fn streams_that_were_there_before_leave_no_trace(
            capacities in capacities(),
            congestion in congestion(),
            ways in ways(2..20),
            gone in prop::collection::vec(any::<bool>(), 20),
            back in ways(0..6),
        ) {
            let mut sharing = shared(&capacities, &ways, congestion);
            let (gone, stay): (Vec<usize>, Vec<usize>) = (0..ways.len()).partition(|at| gone[*at]);
            sharing.remove(&gone);
            // Those that come take the numbers of those that went.
            let numbers: Vec<usize> = gone.into_iter().chain(ways.len()..).take(back.len()).collect();
            numbers.iter().zip(&back).for_each(|(number, way)| sharing.add(*number, way));
            sharing.solve(&capacities);
            let fresh: Vec<Way> = stay.iter().map(|at| ways[*at].clone()).chain(back).collect();
            let streams = [stay, numbers].concat();
            prop_assert_eq!(sharing.order(), &streams[..]);
            let fresh_streams: Vec<usize> = (0..fresh.len()).collect();
            let fresh = shared(&capacities, &fresh, congestion);
            prop_assert_eq!(told(&sharing, &streams), told(&fresh, &fresh_streams));
        }

        #[test]
        fn rates_are_those_of_a_chain_of_linear_programs(
            capacities in capacities(),
            ways in ways(1..9),
        ) {
            let rates = solved(&capacities, &ways, Congestion::NONE);
            for (rate, expected) in rates.iter().zip(by_linear_programs(&capacities, &ways)) {
                prop_assert!((rate - expected).abs() < 1e-6, "{rates:?}, {expected}");
            }
        }
    }

    #[test]
    fn the_least_of_any_count_is_found() {
        for count in 0..40_u32 {
            for place in 0..count {
                let value = |at: u32| if at == place { 0.5 } else { f64::from(at + 1) };
                let values: Vec<f64> = (0..count).map(value).collect();
                assert_eq!(least(&values).to_bits(), 0.5_f64.to_bits());
            }
        }
        assert!(least(&[]).is_infinite());
    }

    #[test]
    fn a_full_queue_stops_all_that_its_senders_send() {
        // Card 0 sends over the full cable 4 and, by itself, to card 3; cards 1 and 2 share cable 4.
        let capacities = [12.0, 12.0, 12.0, 12.0, 6.0];
        let ways = vec![vec![0, 4], vec![1, 4], vec![2, 4], vec![0, 3]];
        let plain = solved(&capacities, &ways, Congestion::NONE);
        assert_eq!(plain, [2.0, 2.0, 2.0, 10.0]);
        let paused = Congestion { streams_max: 2, pause: true, ..Congestion::NONE };
        assert_eq!(solved(&capacities, &ways, paused), [2.0; 4]);
        // Where the windows of all three fit into the queue it is never full.
        let roomy = Congestion { streams_max: 3, ..paused };
        assert_eq!(solved(&capacities, &ways, roomy), plain);
        let lossy = Congestion { streams_max: 2, full_share: 0.5, ..Congestion::NONE };
        assert_eq!(solved(&capacities, &ways, lossy), [1.0, 1.0, 1.0, 11.0]);
    }
}
