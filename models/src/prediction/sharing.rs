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
//! Work is linear in the streams' lanes, and in lanes times the number of different rates.

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
    /// What each stream has in the queue of the lane that limits it: its window. What else goes by that lane waits
    /// behind it, messages that are no streams too.
    pub window: Bytes,
}

impl Congestion {
    /// No queue is ever full: plain max-min fairness.
    pub const NONE: Self =
        Self { streams_max: usize::MAX, pause: false, full_share: 1.0, window: Bytes::new(0) };
}

/// The way of one stream: its lanes, the card that sends it first.
pub(crate) type Way = Vec<usize>;

/// Works rates out; keeps its lists from one time to the next.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// For each lane, what the stopped streams leave of its rate.
    left: Vec<f64>,
    /// For each lane, the streams on it that are not stopped.
    open: Vec<usize>,
    /// For each lane, all streams on it.
    total: Vec<usize>,
    /// For each lane, where its streams begin in `streams`.
    first: Vec<usize>,
    streams: Vec<usize>,
    used: Vec<usize>,
    full: Vec<usize>,
    /// For each stream the lane that limits it.
    limits: Vec<usize>,
}

impl Sharing {
    /// Gives each way its rate. A lane's rate is in `capacities`; `congests` says of a lane whether it
    /// has a queue in a switch.
    pub(crate) fn solve<'a>(
        &mut self,
        capacities: &[f64],
        congests: &[bool],
        ways: impl Iterator<Item = &'a Way> + Clone,
        congestion: Congestion,
        rates: &mut Vec<f64>,
    ) {
        self.index(capacities, ways.clone());
        for &lane in &self.used {
            if congests[lane] && self.total[lane] > congestion.streams_max {
                self.left[lane] *= congestion.full_share;
            }
        }
        let ways: Vec<&Way> = ways.collect();
        rates.clear();
        rates.resize(ways.len(), f64::NAN);
        self.limits.clear();
        self.limits.resize(ways.len(), 0);
        while let Some(level) = self.next_level() {
            let mut at = 0;
            while let Some(&lane) = self.full.get(at) {
                at += 1;
                let pauses =
                    congestion.pause && congests[lane] && self.total[lane] > congestion.streams_max;
                for place in self.first[lane]..self.first[lane] + self.total[lane] {
                    let stream = self.streams[place];
                    if !rates[stream].is_nan() {
                        continue;
                    }
                    self.stop(stream, ways[stream], level, rates);
                    self.limits[stream] = lane;
                    // All that this card sends stops with it.
                    if pauses && let Some(&card) = ways[stream].first() {
                        for place in self.first[card]..self.first[card] + self.total[card] {
                            let other = self.streams[place];
                            if rates[other].is_nan() {
                                self.stop(other, ways[other], level, rates);
                                self.limits[other] = card;
                            }
                        }
                    }
                }
            }
        }
        for &lane in &self.used {
            self.total[lane] = 0;
        }
    }

    /// For each stream the lane that limits it, as it was found last.
    pub(crate) fn limits(&self) -> &[usize] {
        &self.limits
    }

    /// Lists the streams of each lane that is used.
    fn index<'a>(&mut self, capacities: &[f64], ways: impl Iterator<Item = &'a Way> + Clone) {
        self.left.resize(capacities.len(), 0.0);
        self.open.resize(capacities.len(), 0);
        self.total.resize(capacities.len(), 0);
        self.first.resize(capacities.len(), 0);
        self.used.clear();
        for &lane in ways.clone().flatten() {
            if self.total[lane] == 0 {
                self.used.push(lane);
            }
            self.total[lane] += 1;
        }
        let mut first = 0;
        for &lane in &self.used {
            self.left[lane] = capacities[lane];
            self.first[lane] = first;
            self.open[lane] = 0;
            first += self.total[lane];
        }
        self.streams.resize(first, 0);
        for (stream, way) in ways.enumerate() {
            for &lane in way {
                self.streams[self.first[lane] + self.open[lane]] = stream;
                self.open[lane] += 1;
            }
        }
    }

    /// The rate at which the next lanes are full, which are put into `full`; `None` if all streams are
    /// stopped.
    fn next_level(&mut self) -> Option<f64> {
        // Lanes whose levels differ by rounding only are one level.
        const SAME: f64 = 1.0 + 1e-12;
        let level = |lane: &usize| self.left[*lane].max(0.0) / real(self.open[*lane]);
        let open = self.used.iter().filter(|&&lane| self.open[lane] > 0);
        let least = open.clone().map(level).min_by(f64::total_cmp)?;
        self.full.clear();
        self.full.extend(open.filter(|lane| level(lane) <= least * SAME));
        Some(least)
    }

    fn stop(&mut self, stream: usize, way: &Way, level: f64, rates: &mut [f64]) {
        rates[stream] = level;
        for &lane in way {
            self.left[lane] -= level;
            self.open[lane] -= 1;
        }
    }
}

fn real(count: usize) -> f64 {
    crate::completions::count_f64(u64::try_from(count).expect("a count fits in 64 bits"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn solved(capacities: &[f64], ways: &[Way], congestion: Congestion) -> Vec<f64> {
        let mut rates = Vec::new();
        let congests = vec![true; capacities.len()];
        Sharing::default().solve(capacities, &congests, ways.iter(), congestion, &mut rates);
        rates
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
        fn rates_are_those_of_a_chain_of_linear_programs(
            capacities in prop::collection::vec(1_u32..20, 6),
            ways in prop::collection::vec(prop::sample::subsequence((0..6).collect::<Vec<usize>>(), 1..4), 1..9),
        ) {
            let capacities: Vec<f64> = capacities.into_iter().map(f64::from).collect();
            let rates = solved(&capacities, &ways, Congestion::NONE);
            for (rate, expected) in rates.iter().zip(by_linear_programs(&capacities, &ways)) {
                prop_assert!((rate - expected).abs() < 1e-6, "{rates:?}, {expected}");
            }
        }
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
