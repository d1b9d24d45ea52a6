//! What a model declared, in the form that is asked for every event.

use meikyo_units::{Nanos, SimTime};

use crate::fault::Problem;
use crate::key::LpId;
use crate::links::{Link, Links, NO_LINK};
use crate::options::Options;

/// With at most so many inner bounds of groups, an LP's group is found by reading them one by one; with
/// more, it is kept in a table.
const FEW: usize = 8;

/// A statistic as the model declared it, with the group whose LPs may tally it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) group: usize,
}

/// Groups, links and limits of a model, while it is declared.
#[derive(Clone, Debug)]
pub(crate) struct Declarations {
    pub(crate) seed: u64,
    /// The first LP of each group, and the number of all LPs.
    pub(crate) starts: Vec<u32>,
    pub(crate) names: Vec<String>,
    pub(crate) group_links: Vec<Link>,
    pub(crate) lp_links: Vec<Link>,
    pub(crate) statistics: Vec<Declared>,
    pub(crate) series: Vec<String>,
    /// For each group, the work of its LPs if that was declared: sums over its first 0, 1, ... LPs.
    pub(crate) weights: Vec<Option<Vec<u64>>>,
}

/// Groups, links and limits of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    pub(crate) seed: u64,
    /// The first LP of each group, and the number of all LPs.
    pub(crate) starts: Vec<u32>,
    pub(crate) names: Vec<String>,
    /// Links by which every LP of one group may send to every LP of another.
    pub(crate) group_links: Links,
    /// Links by which one LP may send to one other.
    pub(crate) lp_links: Links,
    pub(crate) statistics: Vec<Declared>,
    pub(crate) series: Vec<String>,
    pub(crate) weights: Vec<Option<Vec<u64>>>,
    /// The longest chain of events without delay.
    pub(crate) steps_max: u32,
    pub(crate) traced: bool,
    /// What is tallied before this does not count.
    pub(crate) statistics_from: SimTime,
    pub(crate) timelines: bool,
    /// The group of each LP; empty with few groups.
    group_of_lp: Vec<u32>,
}

impl Rules {
    pub(crate) fn new(declared: Declarations, options: &Options) -> Self {
        let Declarations {
            seed,
            starts,
            names,
            group_links,
            lp_links,
            statistics,
            series,
            weights,
        } = declared;
        let lps = *starts.last().expect("the first group starts at LP 0");
        let group_of_lp = if names.len() > FEW + 1 {
            let sizes = starts.windows(2).map(|bounds| (bounds[1] - bounds[0]) as usize);
            (0..).zip(sizes).flat_map(|(group, size)| std::iter::repeat_n(group, size)).collect()
        } else {
            Vec::new()
        };
        Self {
            seed,
            group_links: Links::new(names.len(), group_links),
            lp_links: Links::new(lps as usize, lp_links),
            starts,
            names,
            statistics,
            series,
            weights,
            steps_max: options.steps_max,
            traced: options.traced,
            statistics_from: options.statistics_from,
            timelines: options.timelines,
            group_of_lp,
        }
    }

    #[inline]
    pub(crate) fn lps(&self) -> u32 {
        *self.starts.last().expect("the first group starts at LP 0")
    }

    pub(crate) fn groups(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn group_name(&self, group: usize) -> &str {
        &self.names[group]
    }

    /// The group of an LP that exists.
    #[inline]
    pub(crate) fn group_of(&self, lp: LpId) -> usize {
        if self.names.len() == 1 {
            return 0;
        }
        let inner = &self.starts[1..self.names.len()];
        if inner.len() <= FEW {
            inner.iter().map(|start| usize::from(lp.get() >= *start)).sum()
        } else {
            self.group_of_lp[lp.get() as usize] as usize
        }
    }

    /// Whether `lp` of `group` may send to `destination`, another LP, after `delay`.
    #[inline]
    pub(crate) fn permits(
        &self,
        lp: LpId,
        group: usize,
        destination: LpId,
        delay: Nanos,
    ) -> Result<(), Box<Problem>> {
        if destination.get() >= self.lps() {
            return Err(Box::new(Problem::UnknownLp { destination, count: self.lps() }));
        }
        let to = self.group_of(destination);
        let groups = Link::groups(group, to, delay);
        let mut least = self.group_links.least(groups.from, groups.to);
        if delay.get() >= least && least != NO_LINK {
            return Ok(());
        }
        least = least.min(self.lp_links.least(lp.get(), destination.get()));
        if delay.get() >= least && least != NO_LINK {
            return Ok(());
        }
        let (from, to) = (self.names[group].clone(), self.names[to].clone());
        Err(Box::new(if least == NO_LINK {
            Problem::NoLink { destination, from, to }
        } else {
            Problem::TooSoon { destination, delay, least: Nanos::new(least), from, to }
        }))
    }

    /// Every link, as its two groups and its delay in ns, and as its two LPs where it joins only those.
    pub(crate) fn links(&self) -> impl Iterator<Item = (usize, usize, Option<[LpId; 2]>, u64)> {
        let groups = self.group_links.iter();
        let groups = groups.map(|link| (link.from as usize, link.to as usize, None, link.least));
        let lps = self.lp_links.iter().map(|link| {
            let [from, to] = [link.from, link.to].map(LpId);
            (self.group_of(from), self.group_of(to), Some([from, to]), link.least)
        });
        groups.chain(lps)
    }
}
