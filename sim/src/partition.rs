//! The partition of a model: which LPs belong to which part, and what lookahead each part has.
//!
//! One worker runs each part. The partition is made once, before a run, from the declared groups and
//! links alone; it never looks at events, and no LP changes its part while a run lasts.
//!
//! Cost: the groups and the links, times the parts; nothing grows with the square of the groups.

use crate::key::LpId;
use crate::links::NO_LINK;
use crate::rules::Rules;

/// Where links without delay may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZeroDelay {
    /// Only within a part, so that every part has a lookahead.
    StaysInside,
    /// Also from one part to another.
    MayCross,
}

/// LPs divided into parts, one for each thread or rank.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// For each group, the first LP of each part's block, and the end of the group.
    bounds: Vec<Vec<u32>>,
    parts: usize,
    /// For each part, the least delay of a link from it to another part, in ns.
    lookaheads: Vec<u64>,
}

impl Partition {
    /// At most `parts` parts of about as much work each: an LP is 1 unless the model says otherwise. If links of `zero_delay` must stay inside
    /// a part, groups that such links join are in the same part.
    pub(crate) fn new(rules: &Rules, parts: usize, zero_delay: ZeroDelay) -> Self {
        let roots = pinned_together(rules, zero_delay);
        let mut lps = vec![0_u64; rules.groups()];
        for (group, root) in roots.iter().enumerate() {
            lps[root.unwrap_or(group)] += work(rules, group);
        }
        let mut pinned: Vec<usize> =
            (0..rules.groups()).filter(|group| roots[*group] == Some(*group)).collect();
        pinned.sort_by_key(|root| std::cmp::Reverse(lps[*root]));
        let mut load = vec![0_u64; parts.max(1)];
        let mut home_of_root = vec![None; rules.groups()];
        for root in pinned {
            let part = (0..load.len()).min_by_key(|part| load[*part]);
            let part = part.expect("there is at least one part");
            load[part] += lps[root];
            home_of_root[root] = Some(part);
        }
        let home: Vec<Option<usize>> =
            roots.iter().map(|root| root.and_then(|root| home_of_root[root])).collect();
        let free: u64 = (0..rules.groups())
            .filter(|group| home[*group].is_none())
            .map(|group| work(rules, group))
            .sum();
        let shares = even_shares(&load, free);
        let mut divided = Divided { work: 0, given: vec![0; load.len()] };
        let mut bounds = Vec::new();
        for (group, home) in home.iter().enumerate() {
            bounds.push(block_bounds(rules, group, *home, &shares, &mut divided));
        }
        let mut partition = Self { bounds, parts: load.len(), lookaheads: Vec::new() };
        partition.drop_empty_parts();
        partition.lookaheads = partition.lookaheads(rules);
        partition
    }

    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    /// The part that an LP of `group` belongs to.
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

    /// The LPs of `group` in `part`, from the first to before the second.
    pub(crate) fn block(&self, group: usize, part: usize) -> (u32, u32) {
        (self.bounds[group][part], self.bounds[group][part + 1])
    }

    /// The lookahead of `part`: nothing that it sends is handled by another part earlier than so many
    /// ns after the event that sent it. [`NO_LINK`] if the part sends nothing to others.
    pub(crate) fn lookahead(&self, part: usize) -> u64 {
        self.lookaheads[part]
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

    fn lookaheads(&self, rules: &Rules) -> Vec<u64> {
        let lives = |group: usize, part: usize| {
            let (first, end) = self.block(group, part);
            first < end
        };
        // The first and the last part where each group lives.
        let extents: Vec<Option<(usize, usize)>> = (0..rules.groups())
            .map(|group| {
                let mut parts = (0..self.parts).filter(|part| lives(group, *part));
                let first = parts.next()?;
                Some((first, parts.next_back().unwrap_or(first)))
            })
            .collect();
        let mut lookaheads = vec![NO_LINK; self.parts];
        let mut join = |part: usize, least: u64| lookaheads[part] = lookaheads[part].min(least);
        for (from, to, lps, least) in rules.links() {
            if let Some([a, b]) = lps {
                let part = self.part_of(from, a);
                if part != self.part_of(to, b) {
                    join(part, least);
                }
                continue;
            }
            let (Some((first, last)), Some(ends)) = (extents[from], extents[to]) else { continue };
            for part in (first..=last).filter(|part| lives(from, *part)) {
                if ends != (part, part) {
                    join(part, least);
                }
            }
        }
        lookaheads
    }
}

/// How much work of the groups that may be divided each part takes.
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

/// The work of the groups that are divided already.
struct Divided {
    work: u64,
    /// How much of it the first 1, 2, ... parts have.
    given: Vec<u64>,
}

/// Where the blocks of a group begin. What the groups before leave over by rounding, this one evens
/// out.
fn block_bounds(
    rules: &Rules,
    group: usize,
    home: Option<usize>,
    shares: &[u64],
    divided: &mut Divided,
) -> Vec<u32> {
    let (first, end) = (rules.starts[group], rules.starts[group + 1]);
    let total = shares.iter().sum::<u64>().max(1);
    let rounded = |count: u64, sum: u64| {
        let [count, sum, total] = [count, sum, total].map(u128::from);
        u64::try_from((2 * count * sum + total) / (2 * total)).expect("a share of all work")
    };
    let (mut sum, mut bound) = (0, first);
    let mut bounds = vec![first];
    if home.is_none() {
        divided.work += work(rules, group);
    }
    for (part, share) in shares.iter().enumerate() {
        sum += share;
        bound = match home {
            Some(home) if part < home => first,
            Some(_) => end,
            None => {
                let here = rounded(divided.work, sum).saturating_sub(divided.given[part]);
                let bound = bound.max(end.min(first + lps_with(rules, group, here)));
                divided.given[part] += work_of_first(rules, group, bound - first);
                bound
            }
        };
        bounds.push(bound);
    }
    if let Some(last) = bounds.last_mut() {
        *last = end;
    }
    bounds
}

/// How many of the first LPs of a group have about so much `work`.
fn lps_with(rules: &Rules, group: usize, work: u64) -> u32 {
    let lps = match &rules.weights[group] {
        None => work,
        Some(sums) => {
            let after = sums.partition_point(|sum| *sum <= work).min(sums.len() - 1);
            let nearer = sums[after].abs_diff(work) < work.abs_diff(sums[after.saturating_sub(1)]);
            let lps = if nearer { after } else { after.saturating_sub(1) };
            u64::try_from(lps).expect("an LP's number has 32 bits")
        }
    };
    u32::try_from(lps).expect("a part of a group is no larger than it")
}

/// The work of the first `lps` LPs of a group.
fn work_of_first(rules: &Rules, group: usize, lps: u32) -> u64 {
    match &rules.weights[group] {
        None => u64::from(lps),
        Some(sums) => sums[lps as usize],
    }
}

fn work(rules: &Rules, group: usize) -> u64 {
    work_of_first(rules, group, rules.starts[group + 1] - rules.starts[group])
}

/// For each group that a link without delay touches, the group that stands for all that such links
/// join it with, itself among them; none for the others, which may be divided.
fn pinned_together(rules: &Rules, zero_delay: ZeroDelay) -> Vec<Option<usize>> {
    let mut pinned = vec![false; rules.groups()];
    if zero_delay == ZeroDelay::MayCross {
        return vec![None; rules.groups()];
    }
    let mut parent: Vec<usize> = (0..rules.groups()).collect();
    for (from, to, lps, least) in rules.links() {
        let itself = lps.is_some_and(|[a, b]| a == b);
        if least == 0 && !itself {
            let (a, b) = (root(&mut parent, from), root(&mut parent, to));
            parent[b] = a;
            pinned[from] = true;
            pinned[to] = true;
        }
    }
    let pinned = pinned.into_iter().enumerate();
    pinned.map(|(group, pinned)| pinned.then(|| root(&mut parent, group))).collect()
}

/// Where the chain of parents from `group` ends; makes it half as long on the way.
fn root(parent: &mut [usize], mut group: usize) -> usize {
    while parent[group] != group {
        parent[group] = parent[parent[group]];
        group = parent[group];
    }
    group
}

#[cfg(test)]
mod tests {
    use meikyo_units::Nanos;

    use super::*;
    use crate::links::Link;
    use crate::options::{Options, Scheduler};
    use crate::rules::Declarations;

    fn rules(sizes: &[u32], links: &[(usize, usize, u64)]) -> Rules {
        let mut starts = vec![0];
        starts.extend(sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        }));
        let links =
            links.iter().map(|(from, to, delay)| Link::groups(*from, *to, Nanos::new(*delay)));
        let declared = Declarations {
            seed: 0,
            starts,
            names: (0..sizes.len()).map(|group| format!("g{group}")).collect(),
            group_links: links.collect(),
            lp_links: Vec::new(),
            statistics: Vec::new(),
            series: Vec::new(),
            weights: vec![None; sizes.len()],
        };
        Rules::new(declared, &Options::new(Scheduler::Sequential, 1))
    }

    #[test]
    fn every_lp_lives_in_one_part_and_the_parts_are_even() {
        let rules = rules(&[10, 7, 90], &[(0, 1, 5), (1, 2, 7), (2, 0, 9)]);
        for parts in 1..6 {
            let partition = Partition::new(&rules, parts, ZeroDelay::StaysInside);
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
    fn parts_have_as_much_work_and_not_as_many_lps() {
        // The first LP is as much work as all others together; then weights grow.
        let mut rules = rules(&[101, 40], &[(0, 1, 5), (1, 0, 5)]);
        let sums = |weights: &mut dyn Iterator<Item = u64>| {
            let sums = weights.scan(0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            });
            Some(std::iter::once(0).chain(sums).collect::<Vec<u64>>())
        };
        rules.weights[0] = sums(&mut (0..101).map(|lp| if lp == 0 { 140 } else { 1 }));
        let partition = Partition::new(&rules, 2, ZeroDelay::StaysInside);
        assert_eq!(partition.block(0, 0), (0, 1));
        assert_eq!((partition.block(0, 1), partition.block(1, 1)), ((1, 101), (101, 141)));
        rules.weights[0] = sums(&mut (1..=101));
        rules.weights[1] = sums(&mut std::iter::repeat_n(0, 40));
        for parts in 2..6 {
            let partition = Partition::new(&rules, parts, ZeroDelay::StaysInside);
            let work = |part| {
                let (first, end) = partition.block(0, part);
                (first..end).map(|lp| u64::from(lp) + 1).sum::<u64>()
            };
            let work: Vec<u64> = (0..partition.parts()).map(work).collect();
            assert!(work.iter().max().unwrap() - work.iter().min().unwrap() <= 202, "{work:?}");
        }
    }

    #[test]
    fn groups_linked_without_delay_live_together_and_the_others_fill_up() {
        let rules = rules(&[10, 10, 30], &[(0, 1, 0), (1, 2, 4), (2, 2, 6), (2, 0, 3)]);
        let partition = Partition::new(&rules, 2, ZeroDelay::StaysInside);
        assert_eq!(partition.block(0, 0), (0, 10));
        assert_eq!(partition.block(1, 0), (10, 20));
        assert_eq!(partition.block(2, 0), (20, 25));
        assert_eq!(partition.lookahead(0), 4);
        assert_eq!(partition.lookahead(1), 3);
    }

    #[test]
    fn a_cycle_without_delay_over_everything_is_one_part() {
        let rules = rules(&[4, 4], &[(0, 1, 0), (1, 0, 0)]);
        assert_eq!(Partition::new(&rules, 8, ZeroDelay::StaysInside).parts(), 1);
        assert_eq!(Partition::new(&rules, 8, ZeroDelay::MayCross).parts(), 8);
    }
}
