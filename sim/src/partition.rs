//! Which LPs live together, and how far apart in time the parts are.

use crate::key::LpId;
use crate::rules::{NO_LINK, Rules};

/// Whether parts must be apart in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Every link between two parts has a delay.
    InTime,
    /// Links between parts may have none.
    InSpace,
}

/// LPs divided into parts, one for each thread or rank.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// For each group, the first LP of each part's block, and the end of the group.
    bounds: Vec<Vec<u32>>,
    parts: usize,
    /// For each part, the least delay of a link from it to another part in ns.
    reach: Vec<u64>,
}

impl Partition {
    /// At most `parts` parts of about as many LPs each. If they are to be `apart` in time, no link
    /// without delay leads from one to another: groups that are linked without delay live together.
    pub(crate) fn new(rules: &Rules, parts: usize, apart: Apart) -> Self {
        let together = Together::new(rules, apart);
        let mut load = vec![0_u64; parts.max(1)];
        let mut home = vec![None; rules.groups()];
        let mut pinned: Vec<usize> =
            (0..rules.groups()).filter(|group| together.root(*group) == *group).collect();
        pinned.retain(|root| together.pinned[*root]);
        pinned.sort_by_key(|root| std::cmp::Reverse(together.lps(rules, *root)));
        for root in pinned {
            let part = (0..load.len()).min_by_key(|part| load[*part]).unwrap_or(0);
            load[part] += together.lps(rules, root);
            for group in (0..rules.groups()).filter(|group| together.root(*group) == root) {
                home[group] = Some(part);
            }
        }
        let free: u64 = (0..rules.groups())
            .filter(|group| home[*group].is_none())
            .map(|group| u64::from(size(rules, group)))
            .sum();
        let shares = even_shares(&load, free);
        let mut before = 0;
        let mut bounds = Vec::new();
        for (group, home) in home.iter().enumerate() {
            bounds.push(block_bounds(rules, group, *home, before, &shares));
            if home.is_none() {
                before += u64::from(size(rules, group));
            }
        }
        let mut partition = Self { bounds, parts: load.len(), reach: Vec::new() };
        partition.drop_empty_parts();
        partition.reach = partition.reaches(rules);
        partition
    }

    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    /// The part where an LP of `group` lives.
    #[inline]
    pub(crate) fn part_of(&self, group: usize, lp: LpId) -> usize {
        if self.parts == 1 {
            return 0;
        }
        let inner = &self.bounds[group][1..self.parts];
        if inner.len() <= 8 {
            inner.iter().map(|bound| usize::from(lp.get() >= *bound)).sum()
        } else {
            inner.partition_point(|bound| lp.get() >= *bound)
        }
    }

    /// The LPs of `group` that live in `part`, from the first to before the second.
    pub(crate) fn block(&self, group: usize, part: usize) -> (u32, u32) {
        (self.bounds[group][part], self.bounds[group][part + 1])
    }

    /// The earliest that something of `part` can be anywhere else, in ns after `part`'s next event;
    /// [`NO_LINK`] if it never can.
    pub(crate) fn reach(&self, part: usize) -> u64 {
        self.reach[part]
    }

    fn drop_empty_parts(&mut self) {
        let kept: Vec<usize> = (0..self.parts)
            .filter(|part| self.bounds.iter().any(|bounds| bounds[*part] < bounds[part + 1]))
            .collect();
        for bounds in &mut self.bounds {
            let end = bounds[self.parts];
            *bounds = kept.iter().map(|part| bounds[*part]).chain([end]).collect();
        }
        self.parts = kept.len();
    }

    fn reaches(&self, rules: &Rules) -> Vec<u64> {
        let lives = |group: usize, part: usize| {
            let (first, end) = self.block(group, part);
            first < end
        };
        let mut reach = vec![NO_LINK; self.parts];
        for from in 0..rules.groups() {
            for to in 0..rules.groups() {
                for part in (0..self.parts).filter(|part| lives(from, *part)) {
                    if (0..self.parts).any(|other| other != part && lives(to, other)) {
                        reach[part] = reach[part].min(rules.least(from, to));
                    }
                }
            }
        }
        reach
    }
}

/// How many LPs of the groups that may be divided each part takes.
fn even_shares(load: &[u64], free: u64) -> Vec<u64> {
    let mut shares = vec![0; load.len()];
    let mut order: Vec<usize> = (0..load.len()).collect();
    order.sort_by_key(|part| load[*part]);
    let (mut left, mut open) = (free, order.len());
    for part in order.iter().rev() {
        // The fullest part first: it takes nothing if the others can stay below it.
        let below: u64 = order[..open].iter().map(|other| load[*other]).sum();
        let level = (below + left).div_ceil(u64::try_from(open).expect("few parts"));
        shares[*part] = level.saturating_sub(load[*part]).min(left);
        left -= shares[*part];
        open -= 1;
    }
    shares
}

/// Where the blocks of a group begin. `before` LPs of other groups are divided already: what one
/// group leaves over by rounding, the next ones even out.
fn block_bounds(
    rules: &Rules,
    group: usize,
    home: Option<usize>,
    before: u64,
    shares: &[u64],
) -> Vec<u32> {
    let (first, end) = (rules.starts[group], rules.starts[group + 1]);
    let total = shares.iter().sum::<u64>().max(1);
    let rounded = |count: u64, sum: u64| (2 * count * sum + total) / (2 * total);
    let (mut sum, mut bound) = (0, first);
    let mut bounds = vec![first];
    for (part, share) in shares.iter().enumerate() {
        sum += share;
        bound = match home {
            Some(home) if part < home => first,
            Some(_) => end,
            None => {
                let after = before + u64::from(end - first);
                let here = rounded(after, sum).saturating_sub(rounded(before, sum));
                let here = u32::try_from(here).expect("a part of a group is no larger than it");
                bound.max(end.min(first + here))
            }
        };
        bounds.push(bound);
    }
    if let Some(last) = bounds.last_mut() {
        *last = end;
    }
    bounds
}

fn size(rules: &Rules, group: usize) -> u32 {
    rules.starts[group + 1] - rules.starts[group]
}

/// Groups that links without delay join.
struct Together {
    parent: Vec<usize>,
    /// Whether a link without delay touches the group, by root.
    pinned: Vec<bool>,
}

impl Together {
    fn new(rules: &Rules, apart: Apart) -> Self {
        let groups = rules.groups();
        let mut together = Self { parent: (0..groups).collect(), pinned: vec![false; groups] };
        if apart == Apart::InSpace {
            return together;
        }
        for from in 0..groups {
            for to in (0..groups).filter(|to| rules.least(from, *to) == 0) {
                let (a, b) = (together.root(from), together.root(to));
                together.parent[b] = a;
                together.pinned[a] = true;
            }
        }
        together
    }

    fn root(&self, mut group: usize) -> usize {
        while self.parent[group] != group {
            group = self.parent[group];
        }
        group
    }

    fn lps(&self, rules: &Rules, root: usize) -> u64 {
        (0..rules.groups())
            .filter(|group| self.root(*group) == root)
            .map(|group| u64::from(size(rules, group)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(sizes: &[u32], links: &[(usize, usize, u64)]) -> Rules {
        let groups = sizes.len();
        let mut starts = vec![0];
        starts.extend(sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        }));
        let mut least = vec![NO_LINK; groups * groups];
        for (from, to, delay) in links {
            least[from * groups + to] = *delay;
        }
        Rules {
            seed: 0,
            starts,
            names: (0..groups).map(|group| format!("g{group}")).collect(),
            least,
            statistics: Vec::new(),
            series: Vec::new(),
            steps_max: 1,
            traced: false,
        }
    }

    #[test]
    fn every_lp_lives_in_one_part_and_the_parts_are_even() {
        let rules = rules(&[10, 7, 90], &[(0, 1, 5), (1, 2, 7), (2, 0, 9)]);
        for parts in 1..6 {
            let partition = Partition::new(&rules, parts, Apart::InTime);
            let mut count = vec![0; partition.parts()];
            for lp in (0..107).map(LpId) {
                let group = rules.group_of(lp);
                let part = partition.part_of(group, lp);
                let (first, end) = partition.block(group, part);
                assert!((first..end).contains(&lp.get()));
                count[part] += 1;
            }
            assert_eq!(count.iter().sum::<u32>(), 107);
            assert!(count.iter().max().unwrap() - count.iter().min().unwrap() <= 4, "{count:?}");
        }
    }

    #[test]
    fn groups_linked_without_delay_live_together_and_the_others_fill_up() {
        let rules = rules(&[10, 10, 30], &[(0, 1, 0), (1, 2, 4), (2, 2, 6), (2, 0, 3)]);
        let partition = Partition::new(&rules, 2, Apart::InTime);
        assert_eq!(partition.block(0, 0), (0, 10));
        assert_eq!(partition.block(1, 0), (10, 20));
        assert_eq!(partition.block(2, 0), (20, 25));
        assert_eq!(partition.reach(0), 4);
        assert_eq!(partition.reach(1), 3);
    }

    #[test]
    fn a_cycle_without_delay_over_everything_is_one_part() {
        let rules = rules(&[4, 4], &[(0, 1, 0), (1, 0, 0)]);
        assert_eq!(Partition::new(&rules, 8, Apart::InTime).parts(), 1);
        assert_eq!(Partition::new(&rules, 8, Apart::InSpace).parts(), 8);
    }
}
