//! The ways that blocks go between hosts, to be encoded and to be rebuilt.
//!
//! One parity block is folded along a chain: the first host sends its block, every next one folds its
//! own onto it, and the last keeps the result. To encode, the chain of word `c` begins at host `c` and
//! goes around the ring, as in the `SCore` paper. To rebuild, it goes through the survivors, the one
//! behind the lost host first. All hosts are in all chains at once, so that every link carries the same.
//!
//! Several parity blocks are made where all data blocks come together, on one of the hosts that keep
//! some of them, which sends the others on: (k+m-1)/k of an image per host, against m times the image
//! along a chain. To rebuild, survivors take turns at gathering.
//!
//! To turn the parity of one generation into that of the next, what changed is gathered where the parity lies,
//! also with one parity block: hosts change different octets, and a sum along a chain would carry those of all hosts
//! before, where this way every host sends what it changed and no more.

use std::collections::BTreeSet;

use crate::geometry::Geometry;
use crate::layout::{Layout, Shard};

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Parity is made of all images.
    Encode,
    /// Parity of an earlier generation is made that of this one, by what changed.
    Update,
    /// What these hosts had is made of what the others have.
    Rebuild(BTreeSet<usize>),
    /// What one host had is made of what those have that are not lost, too.
    RebuildOne {
        /// All hosts that do not have it, the one that is rebuilt among them.
        lost: BTreeSet<usize>,
        /// The host that is rebuilt.
        place: usize,
    },
}

impl Job {
    /// The hosts that have nothing to give.
    pub const fn lost(&self) -> Option<&BTreeSet<usize>> {
        match self {
            Self::Encode | Self::Update => None,
            Self::Rebuild(lost) | Self::RebuildOne { lost, .. } => Some(lost),
        }
    }

    /// Whether a host gets by it what it had.
    pub fn rebuilds(&self, host: usize) -> bool {
        match self {
            Self::Encode | Self::Update => false,
            Self::Rebuild(lost) => lost.contains(&host),
            Self::RebuildOne { place, .. } => *place == host,
        }
    }
}

/// A block on a host.
pub type Stop = (usize, Shard);

/// The way of one code word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// From the first stop through all others, folded on the way, to who keeps the result.
    Chain {
        /// Whose blocks are folded, in this order.
        stops: Vec<Stop>,
        /// Who keeps the result.
        keeper: Stop,
    },
    /// To one host, which codes.
    Gather {
        /// Whose blocks are needed.
        sources: Vec<Stop>,
        /// Who codes.
        at: usize,
        /// Who keeps what comes of it.
        results: Vec<Stop>,
    },
}

/// The ways of all code words.
#[derive(Debug, Clone)]
pub struct Schedule {
    geometry: Geometry,
    job: Job,
    /// By stripe modulo the number of hosts, and by word.
    routes: Vec<Vec<Option<Route>>>,
}

/// More hosts are lost than the scheme makes up for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the loss of {lost:?} is more than `{scheme}` on {hosts} hosts survives")]
pub struct Unsurvivable {
    lost: BTreeSet<usize>,
    scheme: crate::layout::Scheme,
    hosts: usize,
}

impl Schedule {
    /// The ways of a job.
    ///
    /// # Errors
    /// When more hosts are lost than the scheme makes up for.
    pub fn new(geometry: Geometry, job: Job) -> Result<Self, Unsurvivable> {
        let layout = *geometry.layout();
        if let Some(lost) = job.lost()
            && !layout.survives(lost)
        {
            let (lost, scheme, hosts) = (lost.clone(), layout.scheme(), layout.hosts());
            return Err(Unsurvivable { lost, scheme, hosts });
        }
        let route = |turn, word| match &job {
            Job::Encode if layout.parity() == 1 => Some(chain_route(&layout, word)),
            Job::Encode | Job::Update => Some(gather_route(&layout, word)),
            Job::Rebuild(lost) => rebuild_route(&layout, lost, lost, (turn, word)),
            Job::RebuildOne { lost, place } => {
                rebuild_route(&layout, lost, &[*place].into(), (turn, word))
            }
        };
        let hosts = layout.hosts();
        let of_turn = |turn| (0..hosts).map(|word| route(turn, word)).collect();
        let routes = (0..hosts).map(of_turn).collect();
        Ok(Self { geometry, job, routes })
    }

    /// The blocks.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What is done.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// The way of a code word; `None` where nothing is to be done.
    pub fn route(&self, stripe: u32, word: usize) -> Option<&Route> {
        let turn = stripe as usize % self.routes.len();
        let route = self.routes.get(turn)?.get(word)?.as_ref()?;
        (stripe < self.geometry.stripes() && self.geometry.word_len(stripe, word) > 0)
            .then_some(route)
    }

    /// All ways, in the order in which they are begun: stripe by stripe, and of each the words in an order
    /// that begins with the host's own.
    pub fn routes_from(&self, host: usize) -> impl Iterator<Item = (u32, usize, &Route)> {
        let hosts = self.geometry.layout().hosts();
        (0..self.geometry.stripes()).flat_map(move |stripe| {
            let words = (0..hosts).map(move |distance| (host + distance) % hosts);
            words.filter_map(move |word| Some((stripe, word, self.route(stripe, word)?)))
        })
    }

    /// Whether blocks come together on the host that codes, in place of being folded on their way.
    pub fn gathers(&self) -> bool {
        self.job == Job::Update || self.geometry.layout().parity() > 1
    }

    /// How many stripes a code word has: those behind are beyond the ends of all its images.
    pub fn stripes_of(&self, word: usize) -> u32 {
        let has = |stripe| self.geometry.word_len(stripe, word) > 0;
        let (mut least, mut beyond) = (0, self.geometry.stripes());
        while least < beyond {
            let middle = least + (beyond - least) / 2;
            if has(middle) { least = middle + 1 } else { beyond = middle }
        }
        least
    }

    /// Which hosts send to which, acknowledgements included.
    pub fn links(&self) -> BTreeSet<(usize, usize)> {
        let mut links = BTreeSet::new();
        for route in self.routes.iter().flatten().flatten() {
            match route {
                Route::Chain { stops, keeper } => {
                    let hosts: Vec<usize> =
                        stops.iter().chain([keeper]).map(|(host, _)| *host).collect();
                    links.extend(hosts.windows(2).map(|pair| (pair[0], pair[1])));
                    links.insert((keeper.0, stops[0].0));
                }
                Route::Gather { sources, at, results } => {
                    for (source, _) in sources {
                        links.extend([(*source, *at), (*at, *source)]);
                    }
                    links.extend(results.iter().map(|(keeper, _)| (*at, *keeper)));
                }
            }
        }
        links.retain(|(from, to)| from != to);
        links
    }
}

/// The blocks of data, and those of parity.
fn stops_of(layout: &Layout, word: usize) -> (Vec<Stop>, Vec<Stop>) {
    let stop = |shard| (layout.host_of(word, shard), shard);
    let data = (0..layout.data()).map(Shard::Data).map(stop).collect();
    (data, (0..layout.parity()).map(Shard::Parity).map(stop).collect())
}

fn chain_route(layout: &Layout, word: usize) -> Route {
    let (stops, parity) = stops_of(layout, word);
    Route::Chain { stops, keeper: parity[0] }
}

fn gather_route(layout: &Layout, word: usize) -> Route {
    let (sources, results) = stops_of(layout, word);
    Route::Gather { sources, at: results[0].0, results }
}

fn rebuild_route(
    layout: &Layout,
    lost: &BTreeSet<usize>,
    rebuilt: &BTreeSet<usize>,
    (turn, word): (usize, usize),
) -> Option<Route> {
    let stops: Vec<Stop> =
        layout.shards().map(|shard| (layout.host_of(word, shard), shard)).collect();
    let (mut missing, mut left): (Vec<Stop>, Vec<Stop>) =
        stops.into_iter().partition(|(host, _)| lost.contains(host));
    missing.retain(|(host, _)| rebuilt.contains(host));
    let &first = missing.first()?;
    if layout.parity() == 1 {
        let distance = |host: usize| (host + layout.hosts() - first.0) % layout.hosts();
        left.sort_by_key(|(host, _)| distance(*host));
        return Some(Route::Chain { stops: left, keeper: first });
    }
    // Whoever codes has a block of its own; as many as the code needs are enough.
    let at = (turn + word) % left.len();
    left.rotate_left(at);
    left.truncate(layout.data());
    Some(Route::Gather { at: left[0].0, sources: left, results: missing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Scheme;

    fn schedule(scheme: Scheme, hosts: usize, job: Job) -> Schedule {
        let layout = Layout::new(scheme, hosts).unwrap();
        let geometry = Geometry::new(layout, 64, vec![64 * 60; hosts]).unwrap();
        Schedule::new(geometry, job).unwrap()
    }

    /// Blocks that each host sends, and receives.
    fn traffic(schedule: &Schedule) -> (Vec<usize>, Vec<usize>) {
        let hosts = schedule.geometry().layout().hosts();
        let (mut sent, mut received) = (vec![0; hosts], vec![0; hosts]);
        let mut goes = |from: usize, to: usize| {
            if from != to {
                sent[from] += 1;
                received[to] += 1;
            }
        };
        for (_, _, route) in schedule.routes_from(0) {
            match route {
                Route::Chain { stops, keeper } => {
                    let all: Vec<_> = stops.iter().chain([keeper]).collect();
                    all.windows(2).for_each(|pair| goes(pair[0].0, pair[1].0));
                }
                Route::Gather { sources, at, results } => {
                    sources.iter().for_each(|(source, _)| goes(*source, *at));
                    results.iter().for_each(|(keeper, _)| goes(*at, *keeper));
                }
            }
        }
        (sent, received)
    }

    #[test]
    fn in_a_ring_every_host_sends_its_image_once_and_only_to_its_neighbour() {
        for hosts in 3..=8 {
            let ring = schedule(Scheme::Ring, hosts, Job::Encode);
            let blocks = usize::try_from(ring.geometry().image_blocks(0)).unwrap();
            let padded = blocks.next_multiple_of(hosts - 1);
            let (sent, received) = traffic(&ring);
            for count in sent.into_iter().chain(received) {
                assert!(count >= blocks && count <= padded, "{count} {blocks}");
            }
            assert!(ring.links().iter().all(|(from, to)| (from + 1) % hosts == *to));
        }
    }

    #[test]
    fn a_code_sends_what_the_model_says() {
        for (parity, hosts) in [(2, 4), (2, 6), (3, 6)] {
            let code = schedule(Scheme::ReedSolomon(parity), hosts, Job::Encode);
            let (sent, received) = traffic(&code);
            let blocks = 60 * (hosts - 1) / (hosts - parity);
            for count in sent.into_iter().chain(received) {
                assert!(count.abs_diff(blocks) <= hosts, "{count} {blocks}");
            }
        }
    }

    #[test]
    fn a_rebuild_loads_who_receives_with_what_is_rebuilt_and_who_sends_evenly() {
        for (scheme, hosts, lost) in [
            (Scheme::Ring, 6, vec![2]),
            (Scheme::ReedSolomon(2), 6, vec![2]),
            (Scheme::ReedSolomon(2), 6, vec![1, 4]),
            (Scheme::Partner, 4, vec![0, 2]),
        ] {
            let lost: BTreeSet<usize> = lost.into_iter().collect();
            let rebuild = schedule(scheme, hosts, Job::Rebuild(lost.clone()));
            let layout = rebuild.geometry().layout();
            let stripes = rebuild.geometry().stripes() as usize;
            let rebuilt = stripes * (layout.data() + layout.parity());
            let (sent, received) = traffic(&rebuild);
            let senders: BTreeSet<usize> = rebuild
                .links()
                .iter()
                .map(|&(from, _)| from)
                .filter(|at| !lost.contains(at))
                .collect();
            let mean = sent.iter().sum::<usize>() / senders.len();
            for host in 0..hosts {
                assert!(received[host] <= rebuilt, "{scheme} {host}: {}", received[host]);
                assert!(sent[host] <= mean + stripes / 2, "{scheme} {host}: {sent:?}");
            }
            assert!(lost.iter().all(|&host| sent[host] == 0 && received[host] > 0));
        }
    }

    #[test]
    fn too_many_losses_are_refused_with_what_is_lost() {
        let layout = Layout::new(Scheme::Ring, 4).unwrap();
        let geometry = Geometry::new(layout, 64, vec![64; 4]).unwrap();
        let error = Schedule::new(geometry, Job::Rebuild([1, 2].into())).unwrap_err();
        assert_eq!(error.to_string(), "the loss of {1, 2} is more than `ring` on 4 hosts survives");
    }
}
