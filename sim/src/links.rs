//! Who may send to whom, and how far ahead at least.
//!
//! Links are kept as lists of what leaves each group or LP, so that memory and the time to build them
//! grow with the links that are declared and not with the square of the groups: a fabric may have a
//! group for each of its switches. Looking one up costs a few comparisons where a group has few links,
//! and about one look into a table where it has many.

use meikyo_units::Nanos;

use crate::key::LpId;

/// The delay of a link that does not exist: no event ever comes that late.
pub(crate) const NO_LINK: u64 = u64::MAX;

/// Lists that are at most this long are read from the beginning; for longer ones there is a table.
const SHORT: usize = 8;
/// An empty place in a table.
const NOBODY: u32 = u32::MAX;

/// A link that was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The least delay in ns.
    pub(crate) least: u64,
}

/// Links from and to numbered things, as adjacency lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// Where the list of each origin begins, and where the last one ends; empty without links.
    starts: Vec<u32>,
    /// Ordered by origin, then destination; one for each pair.
    links: Vec<Link>,
    /// Where each link of a long list stands in `links`, at the first free place from its hash on; at least
    /// half of the places, whose number is a power of two, are free. Empty without long lists.
    table: Vec<u32>,
}

impl Links {
    /// The lists of `declared` links between `count` things. Of links between the same two, the one with
    /// the smallest delay counts.
    pub(crate) fn new(count: usize, mut declared: Vec<Link>) -> Self {
        if declared.is_empty() {
            return Self::default();
        }
        declared.sort_unstable();
        declared.dedup_by_key(|link| (link.from, link.to));
        let mut starts = vec![0; count + 1];
        for link in &declared {
            starts[link.from as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut own = Self { starts, links: declared, table: Vec::new() };
        own.fill_table();
        own
    }

    fn fill_table(&mut self) {
        let long: Vec<u32> = (self.starts.windows(2))
            .map(|bounds| bounds[0]..bounds[1])
            .filter(|list| list.len() > SHORT)
            .flatten()
            .collect();
        if long.is_empty() {
            return;
        }
        self.table = vec![NOBODY; (2 * long.len()).next_power_of_two()];
        for at in long {
            let Link { from, to, .. } = self.links[at as usize];
            let mut place = self.place(from, to);
            while self.table[place] != NOBODY {
                place = (place + 1) & (self.table.len() - 1);
            }
            self.table[place] = at;
        }
    }

    /// Where in the table a link is looked for first.
    #[inline]
    fn place(&self, from: u32, to: u32) -> usize {
        // Multiplied by the golden ratio of 32 bits (Knuth): neighbours are spread evenly.
        let hash = (from.wrapping_mul(0x85eb_ca6b) ^ to).wrapping_mul(0x9e37_79b9);
        (hash >> 8) as usize & (self.table.len() - 1)
    }

    /// The link of a long list, if there is one.
    #[inline]
    fn looked_up(&self, from: u32, to: u32) -> Option<&Link> {
        let mut place = self.place(from, to);
        loop {
            let link = self.links.get(self.table[place] as usize)?;
            if (link.from, link.to) == (from, to) {
                return Some(link);
            }
            place = (place + 1) & (self.table.len() - 1);
        }
    }

    /// Every link, ordered by origin, then destination.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Link> {
        self.links.iter()
    }

    /// The least delay in ns; [`NO_LINK`] where none is declared.
    #[inline]
    pub(crate) fn least(&self, from: u32, to: u32) -> u64 {
        let at = from as usize;
        let [Some(start), Some(end)] = [at, at + 1].map(|at| self.starts.get(at)) else {
            return NO_LINK;
        };
        let leaving = &self.links[*start as usize..*end as usize];
        let found = if leaving.len() <= SHORT {
            leaving.iter().find(|link| link.to == to)
        } else {
            self.looked_up(from, to)
        };
        found.map_or(NO_LINK, |link| link.least)
    }
}

impl Link {
    pub(crate) fn groups(from: usize, to: usize, least: Nanos) -> Self {
        let number = |group| u32::try_from(group).expect("a model has fewer than 2^32 groups");
        Self { from: number(from), to: number(to), least: least.get() }
    }

    pub(crate) fn lps(from: LpId, to: LpId, least: Nanos) -> Self {
        Self { from: from.get(), to: to.get(), least: least.get() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_smallest_declared_delay_of_each_pair_is_found(
            declared in proptest::collection::vec((0_u32..20, 0_u32..40, 0_u64..9), 0..200)
        ) {
            let mut truth: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for (from, to, least) in &declared {
                let known = truth.entry((*from, *to)).or_insert(*least);
                *known = (*known).min(*least);
            }
            let links = declared.iter().map(|(from, to, least)| Link {
                from: *from,
                to: *to,
                least: *least,
            });
            let links = Links::new(40, links.collect());
            for from in 0..41 {
                for to in 0..41 {
                    let expected = truth.get(&(from, to)).copied().unwrap_or(NO_LINK);
                    prop_assert_eq!(links.least(from, to), expected);
                }
            }
            prop_assert_eq!(links.iter().count(), truth.len());
        }
    }
}
