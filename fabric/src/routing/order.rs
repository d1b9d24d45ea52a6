//! An order of channels in which none waits for an earlier one, kept up to date with every pair that is
//! allowed (Pearce and Kelly 2006). Every pair is decided once: refused, it stays refused until refusals
//! are forgotten.

use super::waiting::Waiting;
use super::{Net, Walk};

/// Most steps of all searches together, after which no more pairs are allowed: an upper bound of the
/// time, some tenths of a second.
const STEPS_MAX: usize = 40_000_000;

/// Channels in an order in which none waits for an earlier one.
pub(super) struct ChannelOrder {
    place: Vec<usize>,
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    allowed: Waiting,
    refused: Waiting,
    seen: Vec<bool>,
    steps: usize,
}

impl ChannelOrder {
    /// Channels that do not wait yet, in this order.
    pub(super) fn new(net: &Net, order: &[usize]) -> Self {
        let channels = net.channels();
        let mut place = vec![0; channels];
        order.iter().enumerate().for_each(|(at, &channel)| place[channel] = at);
        Self {
            place,
            after: vec![Vec::new(); channels],
            before: vec![Vec::new(); channels],
            allowed: Waiting::new(net),
            refused: Waiting::new(net),
            seen: vec![false; channels],
            steps: 0,
        }
    }

    /// Lets one channel wait for another; false if that would close a cycle.
    pub(super) fn allow(&mut self, net: &Net, before: usize, after: usize) -> bool {
        if self.allowed.contains(net, before, after) {
            return true;
        }
        if self.refused.contains(net, before, after) {
            return false;
        }
        let ordered = self.place[before] < self.place[after];
        if !ordered && (self.steps >= STEPS_MAX || !self.reorder(before, after)) {
            self.refused.insert(net, before, after);
            return false;
        }
        self.allowed.insert(net, before, after);
        self.after[before].push(after);
        self.before[after].push(before);
        true
    }

    /// Lets the channels of all paths of a walk wait for each other; false if that would close a cycle.
    pub(super) fn admit(&mut self, net: &Net, walk: &Walk) -> bool {
        let pairs: Vec<_> = walk.waits(net).collect();
        pairs.into_iter().all(|(before, after)| self.allow(net, before, after))
    }

    /// Lets a channel no longer wait for another. What was refused because of it is still refused, until
    /// [`ChannelOrder::forget_refusals`].
    pub(super) fn release(&mut self, net: &Net, before: usize, after: usize) {
        if self.allowed.contains(net, before, after) {
            self.allowed.remove(net, before, after);
            self.after[before].retain(|&other| other != after);
            self.before[after].retain(|&other| other != before);
        }
    }

    /// Lets pairs be decided anew that were refused.
    pub(super) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// The place of a pair, for lists of what is counted of each.
    pub(super) fn place_of(&self, net: &Net, before: usize, after: usize) -> usize {
        self.allowed.bit(net, before, after)
    }

    /// Moves what `after` leads to behind what leads to `before`; false if these meet.
    fn reorder(&mut self, before: usize, after: usize) -> bool {
        let (low, high) = (self.place[after], self.place[before]);
        let Some(mut later) = self.forward(after, before, high) else { return false };
        let mut earlier = self.backward(before, low);
        let by_place = |&channel: &usize| self.place[channel];
        later.sort_unstable_by_key(by_place);
        earlier.sort_unstable_by_key(by_place);
        let moved: Vec<usize> = earlier.into_iter().chain(later).collect();
        let mut places: Vec<usize> = moved.iter().map(|&channel| self.place[channel]).collect();
        places.sort_unstable();
        for (channel, place) in moved.into_iter().zip(places) {
            self.place[channel] = place;
        }
        true
    }

    /// What a channel leads to up to a place; `None` if `end` is among it.
    fn forward(&mut self, from: usize, end: usize, high: usize) -> Option<Vec<usize>> {
        let mut found = vec![from];
        self.seen[from] = true;
        let mut next = 0;
        let mut meets = false;
        while let Some(&at) = found.get(next) {
            next += 1;
            self.steps += self.after[at].len();
            for &to in &self.after[at] {
                meets |= to == end;
                if !self.seen[to] && self.place[to] < high {
                    self.seen[to] = true;
                    found.push(to);
                }
            }
            if meets {
                break;
            }
        }
        found.iter().for_each(|&channel| self.seen[channel] = false);
        (!meets).then_some(found)
    }

    /// What leads to a channel down to a place.
    fn backward(&mut self, to: usize, low: usize) -> Vec<usize> {
        let mut found = vec![to];
        self.seen[to] = true;
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            self.steps += self.before[at].len();
            for &from in &self.before[at] {
                if !self.seen[from] && self.place[from] > low {
                    self.seen[from] = true;
                    found.push(from);
                }
            }
        }
        found.iter().for_each(|&channel| self.seen[channel] = false);
        found
    }
}
