//! Which channels wait for which: what can deadlock when full switches pause their neighbours.
//!
//! A frame that holds a channel waits for the next one of its path. Pause frames (IEEE 802.3x) hold
//! whole links, so a cycle of waiting channels never dissolves.

use super::{Net, Walk};

/// Pairs of channels, the first of which waits for the second.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    /// Where the bits of each channel begin: one for each channel that leaves its head.
    base: Vec<usize>,
    bits: Vec<u64>,
}

impl Waiting {
    pub(crate) fn new(net: &Net) -> Self {
        let mut base = Vec::with_capacity(net.channels());
        let mut next = 0;
        for channel in 0..net.channels() {
            base.push(next);
            next += net.from(net.head(channel)).len();
        }
        Self { base, bits: vec![0; next.div_ceil(64)] }
    }

    /// How many pairs there can be.
    pub(super) fn places(net: &Net) -> usize {
        (0..net.channels()).map(|channel| net.from(net.head(channel)).len()).sum()
    }

    /// Takes a pair away.
    pub(super) fn remove(&mut self, net: &Net, before: usize, after: usize) {
        let bit = self.bit(net, before, after);
        self.bits[bit / 64] &= !(1 << (bit % 64));
    }

    /// Takes all pairs away.
    pub(super) fn clear(&mut self) {
        self.bits.fill(0);
    }

    /// The place of a pair among all that there can be: `after` leaves the head of `before`.
    pub(super) fn bit(&self, net: &Net, before: usize, after: usize) -> usize {
        let links = net.from(net.tail(after));
        // Links are sorted by switch, then by channel.
        let to = net.head(after);
        let at = links.partition_point(|link| (link.to, link.channel) < (to, after));
        self.base[before] + at
    }

    /// Adds a pair; false if it was there.
    pub(crate) fn insert(&mut self, net: &Net, before: usize, after: usize) -> bool {
        let bit = self.bit(net, before, after);
        let word = &mut self.bits[bit / 64];
        let new = *word & (1 << (bit % 64)) == 0;
        *word |= 1 << (bit % 64);
        new
    }

    pub(crate) fn contains(&self, net: &Net, before: usize, after: usize) -> bool {
        let bit = self.bit(net, before, after);
        self.bits[bit / 64] & (1 << (bit % 64)) != 0
    }

    /// Adds what the frames of a source tree wait for; `beyond` is its [`Walk::hosts_beyond`].
    pub(crate) fn add(&mut self, net: &Net, walk: &Walk, beyond: &[usize]) {
        for &switch in &walk.order {
            if let Some(after) = walk.by[switch]
                && beyond[switch] > 0
                && let Some(before) = walk.by[net.tail(after)]
            {
                self.insert(net, before, after);
            }
        }
    }

    /// The channels that wait for no other, for one that waits for none, and so on, taken away: a
    /// cycle among the rest; `None` if nothing is left.
    pub(crate) fn cycle(&self, net: &Net) -> Option<Vec<usize>> {
        let mut waits: Vec<usize> =
            (0..net.channels()).map(|channel| self.after(net, channel).count()).collect();
        let mut before = vec![Vec::new(); net.channels()];
        for channel in 0..net.channels() {
            self.after(net, channel).for_each(|after| before[after].push(channel));
        }
        let mut free: Vec<usize> = (0..net.channels()).filter(|&at| waits[at] == 0).collect();
        while let Some(channel) = free.pop() {
            for &one in &before[channel] {
                waits[one] -= 1;
                if waits[one] == 0 {
                    free.push(one);
                }
            }
        }
        let mut at = waits.iter().position(|&waits| waits > 0)?;
        let mut seen = vec![None; net.channels()];
        let mut path = Vec::new();
        while seen[at].is_none() {
            seen[at] = Some(path.len());
            path.push(at);
            at = self.after(net, at).find(|&after| waits[after] > 0)?;
        }
        seen[at].map(|begin| path.split_off(begin))
    }

    /// The channels that a channel waits for.
    fn after<'a>(&'a self, net: &'a Net, before: usize) -> impl Iterator<Item = usize> + 'a {
        let links = net.from(net.head(before));
        links.iter().enumerate().filter_map(move |(at, link)| {
            let bit = self.base[before] + at;
            (self.bits[bit / 64] & (1 << (bit % 64)) != 0).then_some(link.channel)
        })
    }
}
