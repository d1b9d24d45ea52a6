//! Walks over a forest of trunks.

use super::Net;

/// The trunks of a forest, switch by switch.
#[derive(Debug)]
pub(crate) struct Adjacent<'a> {
    net: &'a Net,
    first: Vec<usize>,
    channels: Vec<usize>,
}

impl<'a> Adjacent<'a> {
    /// The forest of these trunks.
    pub(crate) fn new(net: &'a Net, trunks: &[usize]) -> Self {
        let mut first = vec![0; net.switches() + 1];
        for &trunk in trunks {
            net.ends(trunk).iter().for_each(|&end| first[end + 1] += 1);
        }
        for switch in 0..net.switches() {
            first[switch + 1] += first[switch];
        }
        let mut next = first.clone();
        let mut channels = vec![0; 2 * trunks.len()];
        for &trunk in trunks {
            for channel in [2 * trunk, 2 * trunk + 1] {
                let slot = &mut next[net.tail(channel)];
                channels[*slot] = channel;
                *slot += 1;
            }
        }
        Self { net, first, channels }
    }

    /// The channels that leave a switch.
    pub(crate) fn from(&self, switch: usize) -> &[usize] {
        &self.channels[self.first[switch]..self.first[switch + 1]]
    }

    /// Everything that is reached from a switch.
    pub(crate) fn walk(&self, source: usize) -> Walk {
        let mut walk = Walk::begin(self.net, source);
        let mut next = 0;
        while let Some(&at) = walk.order.get(next) {
            next += 1;
            for &channel in self.from(at) {
                // Not back by the trunk that it was reached by.
                if walk.by[at].is_none_or(|by| by / 2 != channel / 2) {
                    walk.reach(self.net, channel);
                }
            }
        }
        walk
    }
}

/// A tree, grown from its source.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// Every switch that is reached, none before the one that it is reached from.
    pub(crate) order: Vec<usize>,
    /// The channel by which each switch is reached.
    pub(crate) by: Vec<Option<usize>>,
}

impl Walk {
    /// Only the source.
    pub(crate) fn begin(net: &Net, source: usize) -> Self {
        Self { order: vec![source], by: vec![None; net.switches()] }
    }

    /// Goes along a channel to a switch that was not reached.
    pub(crate) fn reach(&mut self, net: &Net, channel: usize) {
        let to = net.head(channel);
        self.by[to] = Some(channel);
        self.order.push(to);
    }

    /// Whether a switch was reached.
    pub(crate) fn has(&self, switch: usize) -> bool {
        self.by[switch].is_some() || self.order[0] == switch
    }

    /// The number of trunks from the source to a switch that was reached.
    pub(crate) fn depth(&self, net: &Net, mut at: usize) -> usize {
        let mut depth = 0;
        while let Some(channel) = self.by[at] {
            at = net.tail(channel);
            depth += 1;
        }
        depth
    }

    /// The number of hosts on each switch and beyond it.
    pub(crate) fn hosts_beyond(&self, net: &Net) -> Vec<usize> {
        self.beyond(net, net.hosts.clone())
    }

    /// The sum of `of` over each switch and all beyond it.
    pub(crate) fn beyond(&self, net: &Net, mut of: Vec<usize>) -> Vec<usize> {
        for &switch in self.order.iter().rev() {
            if let Some(channel) = self.by[switch] {
                of[net.tail(channel)] += of[switch];
            }
        }
        of
    }

    /// The channels that frames to hosts hold, each with the next one of their path.
    pub(crate) fn waits<'a>(&'a self, net: &'a Net) -> impl Iterator<Item = (usize, usize)> + 'a {
        let beyond = self.hosts_beyond(net);
        let to_hosts = self.order.iter().filter(move |&&switch| beyond[switch] > 0);
        to_hosts.filter_map(|&switch| {
            let after = self.by[switch]?;
            Some((self.by[net.tail(after)]?, after))
        })
    }

    /// The channels that it uses, and the pairs of hosts on each.
    pub(crate) fn loads<'a>(&'a self, net: &'a Net) -> impl Iterator<Item = (usize, usize)> + 'a {
        let beyond = self.hosts_beyond(net);
        let from = net.hosts[self.order[0]];
        self.order.iter().filter_map(move |&at| Some((self.by[at]?, from * beyond[at])))
    }

    /// The trunks that lead to hosts, least first.
    pub(crate) fn needed(&self, net: &Net) -> Vec<usize> {
        let beyond = self.hosts_beyond(net);
        let mut trunks: Vec<usize> = self
            .order
            .iter()
            .filter(|&&switch| beyond[switch] > 0)
            .filter_map(|&switch| self.by[switch].map(|channel| channel / 2))
            .collect();
        trunks.sort_unstable();
        trunks
    }
}
