//! The search: one step of one tree after the other.

use super::begin::{Begun, BegunTree};
use super::{Balancing, Suits, exactly};
use crate::routing::Net;
use crate::routing::order::ChannelOrder;
use crate::routing::waiting::Waiting;

/// No channel leads to the source of a tree, nor to what is not in it.
const NONE: u32 = u32::MAX;
/// The powers that are weighed with, one after the other.
const POWERS: [i32; 2] = [4, 16];
/// Most times that all channels are looked at with one power.
const ROUNDS_MAX: usize = 24;
/// Only changes by more than this part of the sum on the busiest channel count.
const LEAST_GAIN: f64 = 1e-9;

/// A tree of a source.
struct Tree {
    source: usize,
    hosts: f64,
    /// The channel by which each switch is reached.
    by: Vec<u32>,
    /// Hosts on each switch and beyond it.
    beyond: Vec<u32>,
    /// The channels to the other switches that send in it; these stay where they are.
    joints: Vec<usize>,
    /// The hosts that send on each of those switches and beyond it, 0 for others; nothing at all where the
    /// source sends alone.
    sending: Vec<f64>,
}

impl Tree {
    fn new(net: &Net, begun: &BegunTree) -> Self {
        let beyond = begun.walk.hosts_beyond(net).into_iter().map(small).collect();
        let by = begun.walk.by.iter().map(|by| by.map_or(NONE, small)).collect();
        let source = begun.walk.order[0];
        let mut sending = Vec::new();
        if !begun.joints.is_empty() {
            let mut hosts = vec![0; net.switches()];
            begun.joints.iter().for_each(|&to| hosts[net.head(to)] = net.hosts[net.head(to)]);
            sending = begun.walk.beyond(net, hosts).into_iter().map(exactly).collect();
            sending[source] = 0.0;
        }
        let (hosts, joints) = (exactly(begun.hosts), begun.joints.clone());
        Self { source, hosts, by, beyond, joints, sending }
    }

    /// The hosts that send over a channel away from the source, and those that send back.
    fn senders(&self, net: &Net, channel: usize) -> (f64, f64) {
        let back = self.sending.get(net.head(channel)).copied().unwrap_or(0.0);
        (self.hosts - back, back)
    }

    /// Whether a switch stays where it is.
    fn keeps(&self, switch: usize) -> bool {
        self.sending.get(switch).is_some_and(|hosts| *hosts > 0.0)
    }

    /// The channels by which others send to a switch, on the way to the source.
    fn joining<'a>(&'a self, net: &'a Net, at: usize) -> impl Iterator<Item = usize> + 'a {
        let joints = self.joints.iter().copied();
        joints.filter(move |&joint| net.tail(joint) == at).map(|joint| joint ^ 1)
    }

    fn before(&self, switch: usize) -> Option<usize> {
        let by = self.by[switch];
        (by != NONE).then_some(by as usize)
    }
}

/// A count of switches, channels or hosts, which fit in 32 bits.
fn small(count: usize) -> u32 {
    u32::try_from(count).expect("a fabric has fewer than 2^32 channels and hosts")
}

/// Distances of all switches from one, in trunks; the largest number where there is no way.
fn distances(net: &Net, from: usize) -> Vec<u16> {
    let far = |distance: Option<usize>| distance.and_then(|far| u16::try_from(far).ok());
    net.distances(from).into_iter().map(|distance| far(distance).unwrap_or(u16::MAX)).collect()
}

pub(super) struct Search<'a> {
    net: &'a Net,
    how: Balancing,
    trees: Vec<Tree>,
    /// Distances of all switches, source by source, where only shortest paths will do.
    distances: Vec<Vec<u16>>,
    /// What a cable of each channel carries, in pairs of hosts.
    load: Vec<f64>,
    /// One by the cables of each channel.
    per_cable: Vec<f64>,
    order: ChannelOrder,
    /// How many trees let a channel wait for another.
    turns: Vec<u32>,
    left: u64,
    power: i32,
    scale: f64,
    /// Where each switch is on the way back from the one that is looked at: the mark of that look and
    /// the number of channels between the two.
    back: Vec<(u32, u32)>,
    look: u32,
    way: Vec<usize>,
    /// By how much the sum becomes less if the first channels of the way are used no longer.
    saved: Vec<f64>,
}

impl<'a> Search<'a> {
    pub(super) fn new(net: &'a Net, begun: Begun, how: Balancing, work: u64) -> Self {
        let order = ChannelOrder::new(net, &begun.order);
        let trees: Vec<Tree> = begun.trees.iter().map(|tree| Tree::new(net, tree)).collect();
        let per_cable: Vec<f64> =
            (0..net.channels()).map(|channel| 1.0 / exactly(net.cables(channel).max(1))).collect();
        let distances = match how.suits {
            Suits::All => Vec::new(),
            Suits::Shortest => (0..net.switches()).map(|at| distances(net, at)).collect(),
        };
        let turns = if how.pauses { vec![0; Waiting::places(net)] } else { Vec::new() };
        let mut search = Self {
            net,
            how,
            trees: Vec::new(),
            distances,
            load: vec![0.0; net.channels()],
            per_cable,
            order,
            turns,
            left: work,
            power: POWERS[0],
            scale: 1.0,
            back: vec![(0, 0); net.switches()],
            look: 0,
            way: Vec::new(),
            saved: Vec::new(),
        };
        for tree in trees {
            search.begin(&tree);
            search.trees.push(tree);
        }
        search
    }

    /// Adds what a tree carries, and what waits in it.
    fn begin(&mut self, tree: &Tree) {
        let all = f64::from(tree.beyond[tree.source]);
        for at in 0..self.net.switches() {
            let Some(channel) = tree.before(at) else { continue };
            let (out, back) = tree.senders(self.net, channel);
            let beyond = f64::from(tree.beyond[at]);
            self.load[channel] += out * beyond * self.per_cable[channel];
            self.load[channel ^ 1] += back * (all - beyond) * self.per_cable[channel];
            if self.how.pauses {
                let before: Vec<usize> = self.before(tree, channel).collect();
                before.into_iter().for_each(|before| self.begin_to_wait(before, channel));
                if tree.keeps(at)
                    && let Some(beyond) = tree.before(self.net.tail(channel))
                {
                    self.begin_to_wait(channel ^ 1, beyond ^ 1);
                }
            }
        }
    }

    /// The channels that frames hold in a tree when they wait for one that leads away from the source.
    fn before<'b>(&'b self, tree: &'b Tree, channel: usize) -> impl Iterator<Item = usize> + 'b {
        let tail = self.net.tail(channel);
        let joining = tree.joining(self.net, tail).filter(move |joint| joint ^ 1 != channel);
        tree.before(tail).into_iter().chain(joining)
    }

    fn begin_to_wait(&mut self, before: usize, channel: usize) {
        let allowed = self.order.allow(self.net, before, channel);
        assert!(allowed, "the order that a search begins with is that of its trees");
        let place = self.order.place_of(self.net, before, channel);
        self.turns[place] += 1;
    }

    pub(super) fn busiest(&self) -> f64 {
        self.load.iter().copied().fold(0.0, f64::max)
    }

    pub(super) const fn work_left(&self) -> u64 {
        self.left
    }

    /// The source and the trunks of each tree, those of the sources in order.
    pub(super) fn trees(&self) -> Vec<(usize, Vec<usize>)> {
        let sources = self.trees.iter().map(|tree| tree.source);
        let mut trees: Vec<(usize, Vec<usize>)> = sources.zip(self.trunks()).collect();
        trees.sort_by_key(|(source, _)| *source);
        trees
    }

    /// The trunks of each tree, in the order in which the trees were given.
    pub(super) fn trunks(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        self.trees.iter().map(|tree| {
            let led_to = (0..self.net.switches()).filter(|&at| tree.beyond[at] > 0);
            let mut trunks: Vec<usize> =
                led_to.filter_map(|at| Some(tree.before(at)? / 2)).collect();
            trunks.sort_unstable();
            trunks
        })
    }

    /// Looks at all channels, the busiest first, until nothing is gained or the work is done.
    pub(super) fn run(&mut self) {
        for power in POWERS {
            self.power = power;
            for _ in 0..ROUNDS_MAX {
                self.scale = self.busiest().max(1.0);
                let mut channels: Vec<usize> =
                    (0..self.net.channels()).filter(|&channel| self.load[channel] > 0.0).collect();
                channels.sort_by(|&one, &other| {
                    self.load[other].total_cmp(&self.load[one]).then(one.cmp(&other))
                });
                self.order.forget_refusals();
                let before = self.sum();
                for channel in channels {
                    self.relieve(channel);
                    if self.left == 0 {
                        return;
                    }
                }
                if before - self.sum() < before * 1e-3 {
                    break;
                }
            }
        }
    }

    fn sum(&self) -> f64 {
        self.load.iter().map(|&load| self.weigh(load)).sum()
    }

    fn weigh(&self, load: f64) -> f64 {
        (load / self.scale).powi(self.power)
    }

    /// Leads trees that use a channel another way.
    fn relieve(&mut self, channel: usize) {
        let at = self.net.head(channel);
        let number = small(channel);
        for tree in 0..self.trees.len() {
            let its = &self.trees[tree];
            if its.by[at] == number && its.beyond[at] > 0 && !its.keeps(at) {
                self.improve(tree, at);
            }
        }
        let looked_at = u64::from(small(self.trees.len() / 8));
        self.left = self.left.saturating_sub(looked_at);
    }

    /// Reaches a switch of a tree by the channel that makes the sum least.
    fn improve(&mut self, tree: usize, at: usize) {
        self.walk_back(tree, at);
        let own = self.way[0];
        let mut choices: Vec<(f64, usize)> = Vec::new();
        for link in self.net.from(at) {
            let channel = link.channel ^ 1;
            if channel != own
                && let Some(change) = self.change(tree, at, channel)
                && change < -LEAST_GAIN
            {
                choices.push((change, channel));
            }
        }
        choices.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        for (_, channel) in choices {
            if self.wait_instead(tree, at, channel) {
                self.lead(tree, at, channel);
                return;
            }
        }
    }

    /// Notes the way from a switch back to the source of its tree.
    fn walk_back(&mut self, tree: usize, from: usize) {
        let its = &self.trees[tree];
        let beyond = f64::from(its.beyond[from]);
        self.look += 1;
        self.way.clear();
        self.saved.clear();
        self.saved.push(0.0);
        let (mut at, mut count, mut saved) = (from, 0, 0.0);
        loop {
            self.back[at] = (self.look, count);
            let Some(channel) = its.before(at) else { break };
            saved -= self.growth(its, channel, -beyond);
            self.way.push(channel);
            self.saved.push(saved);
            count += 1;
            at = self.net.tail(channel);
        }
        self.left = self.left.saturating_sub(u64::from(count));
    }

    /// By how much the sum changes if a switch is reached by this channel; `None` if it cannot be.
    fn change(&mut self, tree: usize, to: usize, by: usize) -> Option<f64> {
        let its = &self.trees[tree];
        let beyond = f64::from(its.beyond[to]);
        let tail = self.net.tail(by);
        if tail != its.source && its.by[tail] == NONE {
            return None;
        }
        if let Some(distances) = self.distances.get(its.source)
            && distances[tail].saturating_add(1) != distances[to]
        {
            return None;
        }
        let most = *self.saved.last()?;
        let (mut channel, mut cost) = (by, 0.0);
        loop {
            cost += self.growth(its, channel, beyond);
            self.left = self.left.saturating_sub(1);
            let at = self.net.tail(channel);
            let (look, place) = self.back[at];
            if look == self.look {
                // Back at the switch itself: it would be reached from beyond it.
                return (place > 0).then(|| cost - self.saved[place as usize]);
            }
            if cost >= most {
                return None;
            }
            channel = its.before(at)?;
        }
    }

    /// By how much the sum grows if so many hosts more are beyond a channel of a tree: what is sent to
    /// them passes it, and what those beyond it send to them no longer comes back.
    fn growth(&self, tree: &Tree, channel: usize, beyond: f64) -> f64 {
        let (out, back) = tree.senders(self.net, channel);
        let per_cable = self.per_cable[channel];
        let change = |channel: usize, pairs: f64| {
            let load = self.load[channel];
            self.weigh(load + pairs * per_cable) - self.weigh(load)
        };
        let away = change(channel, out * beyond);
        if back > 0.0 { away + change(channel ^ 1, -back * beyond) } else { away }
    }

    /// Lets channels wait as they have to if a switch is reached by another channel, and no longer as they
    /// had to before; false if some would wait in a cycle, and nothing is changed.
    fn wait_instead(&mut self, tree: usize, at: usize, by: usize) -> bool {
        if !self.how.pauses {
            return true;
        }
        let its = &self.trees[tree];
        let pairs_with = |channel: usize| {
            let before = self.before(its, channel).map(move |before| (before, channel));
            let beyond =
                self.net.from(at).iter().filter(|link| its.before(link.to) == Some(link.channel));
            before.chain(beyond.map(move |link| (channel, link.channel)))
        };
        let new: Vec<(usize, usize)> = pairs_with(by).collect();
        let old: Vec<(usize, usize)> = pairs_with(self.way[0]).collect();
        for (done, &(before, after)) in new.iter().enumerate() {
            if !self.order.allow(self.net, before, after) {
                self.release_unused(&new[..done]);
                return false;
            }
        }
        for (before, after) in new {
            let place = self.order.place_of(self.net, before, after);
            self.turns[place] += 1;
        }
        for &(before, after) in &old {
            let place = self.order.place_of(self.net, before, after);
            self.turns[place] -= 1;
        }
        self.release_unused(&old);
        true
    }

    fn release_unused(&mut self, pairs: &[(usize, usize)]) {
        for &(before, after) in pairs {
            if self.turns[self.order.place_of(self.net, before, after)] == 0 {
                self.order.release(self.net, before, after);
            }
        }
    }

    /// Reaches a switch of a tree by another channel.
    fn lead(&mut self, tree: usize, at: usize, by: usize) {
        let its = &mut self.trees[tree];
        let hosts = its.beyond[at];
        let mut step = |its: &mut Tree, channel: usize, more: bool| {
            let (out, back) = its.senders(self.net, channel);
            let change = f64::from(hosts) * self.per_cable[channel];
            let change = if more { change } else { -change };
            self.load[channel] += out * change;
            self.load[channel ^ 1] -= back * change;
            let tail = self.net.tail(channel);
            if more {
                its.beyond[tail] += hosts;
            } else {
                its.beyond[tail] -= hosts;
            }
        };
        for &channel in &self.way {
            step(its, channel, false);
        }
        its.by[at] = small(by);
        let mut next = Some(by);
        while let Some(channel) = next {
            step(its, channel, true);
            next = its.before(self.net.tail(channel));
        }
    }
}
