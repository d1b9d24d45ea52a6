//! The hosts of a switch, dealt out to forests so that the busiest channels carry less.
//!
//! Beside its own forest a switch may send in those of others, if its paths there suit the routing and,
//! where switches pause each other, wait in no cycle with all that is sent already. No forest is added:
//! VLANs stay as few as they are. Hosts are moved one by one, each to where the sum of the fourth powers
//! of the loads becomes least; that weighs the busiest channels most.
//!
//! A round looks at sources x hosts x forests x switches places: some millions for 64 switches.

use meikyo_cluster::Routing;

use super::order::ChannelOrder;
use super::{Adjacent, Net, Routes, Walk};

/// Beyond so many switches a round takes too long.
const SWITCHES_MAX: usize = 128;
/// How often all switches are looked at.
const ROUNDS_MAX: usize = 8;

/// What paths in the forests of others have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suits {
    /// No longer in sum than in the switch's own forest: shortest where those are.
    Shortest,
    /// Of any length.
    All,
}

impl Suits {
    /// What a routing allows; `None` if nothing, or if there are too many switches.
    pub(crate) fn allowed_by(routing: Routing, net: &Net) -> Option<Self> {
        match routing {
            _ if net.switches() > SWITCHES_MAX => None,
            Routing::Acyclic => Some(Self::All),
            Routing::Minimal => Some(Self::Shortest),
            // Other forests hold paths of another order of dimensions, or of another root.
            Routing::DimensionOrder | Routing::UpDown | Routing::Auto => None,
        }
    }
}

/// A forest in which a switch may send.
struct Choice {
    forest: usize,
    walk: Walk,
    /// What one host puts on each channel, in pairs of hosts.
    loads: Vec<(usize, i128)>,
    hosts: usize,
    refused: bool,
}

impl Choice {
    fn new(net: &Net, forest: usize, walk: Walk, hosts: usize) -> Self {
        let beyond = walk.hosts_beyond(net);
        let used = walk.order.iter().filter(|&&at| beyond[at] > 0);
        let load = |&at: &usize| {
            let hosts = i128::try_from(beyond[at]).expect("a count fits in 127 bits");
            Some((walk.by[at]?, hosts))
        };
        let loads = used.filter_map(load).collect();
        Self { forest, walk, loads, hosts, refused: false }
    }

    fn length(&self) -> i128 {
        self.loads.iter().map(|(_, pairs)| pairs).sum()
    }

    /// Puts the load of some hosts on the channels, or takes it off.
    fn add_load(&self, load: &mut [i128], hosts: i128) {
        self.loads.iter().for_each(|&(channel, pairs)| load[channel] += hosts * pairs);
    }

    /// By how much the sum of the fourth powers grows with one host more.
    fn growth(&self, load: &[i128]) -> i128 {
        let growth = |&(channel, pairs): &(usize, i128)| {
            (load[channel] + pairs).pow(4) - load[channel].pow(4)
        };
        self.loads.iter().map(growth).sum()
    }
}

/// For each switch the forests of its hosts, at most `spread` different ones; `None` if nothing is
/// gained over the best forest for all of them.
pub(crate) fn dealt(
    net: &Net,
    routes: &Routes,
    suits: Suits,
    pauses: bool,
    spread: usize,
) -> Option<Vec<Vec<usize>>> {
    if spread < 2 {
        return None;
    }
    let mut choices = choices(net, routes, suits);
    let mut order = ChannelOrder::new(net, &(0..net.channels()).collect::<Vec<_>>());
    let mut load = vec![0; net.channels()];
    for own in choices.iter().filter_map(|own| own.first()) {
        if pauses && !order.admit(net, &own.walk) {
            return None;
        }
        let hosts = i128::try_from(own.hosts).expect("a count fits in 127 bits");
        own.add_load(&mut load, hosts);
    }
    let before = load.iter().max().copied();
    for _ in 0..ROUNDS_MAX {
        let mut moved = false;
        for choices in &mut choices {
            while let Some((from, to)) = best_move(choices, &mut load, spread) {
                if pauses && !order.admit(net, &choices[to].walk) {
                    choices[to].refused = true;
                    continue;
                }
                choices[from].hosts -= 1;
                choices[from].add_load(&mut load, -1);
                choices[to].hosts += 1;
                choices[to].add_load(&mut load, 1);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let forests = |own: &Vec<Choice>| -> Vec<usize> {
        own.iter().flat_map(|own| std::iter::repeat_n(own.forest, own.hosts)).collect()
    };
    (load.iter().max().copied() < before).then(|| choices.iter().map(forests).collect())
}

/// For each switch its own forest with all its hosts, then the others.
fn choices(net: &Net, routes: &Routes, suits: Suits) -> Vec<Vec<Choice>> {
    let forests: Vec<Adjacent<'_>> =
        routes.forests.iter().map(|trunks| Adjacent::new(net, trunks)).collect();
    let of = |source: usize| {
        let Some(&best) = routes.choices[source].first() else { return Vec::new() };
        let own = Choice::new(net, best, forests[best].walk(source), net.hosts[source]);
        let length = own.length();
        let others = (0..forests.len()).filter(|&at| at != best).filter_map(|at| {
            let walk = forests[at].walk(source);
            let other =
                net.sources().all(|to| walk.has(to)).then(|| Choice::new(net, at, walk, 0))?;
            (suits == Suits::All || other.length() <= length).then_some(other)
        });
        let others: Vec<Choice> = others.collect();
        std::iter::once(own).chain(others).collect()
    };
    (0..net.switches()).map(of).collect()
}

/// The move of one host from a forest to another that makes the sum least; `None` if none makes it less.
fn best_move(choices: &[Choice], load: &mut [i128], spread: usize) -> Option<(usize, usize)> {
    let used = choices.iter().filter(|own| own.hosts > 0).count();
    let mut best: Option<(i128, (usize, usize))> = None;
    for (from, own) in choices.iter().enumerate().filter(|(_, own)| own.hosts > 0) {
        own.add_load(load, -1);
        let stays = own.growth(load);
        for (to, other) in
            choices.iter().enumerate().filter(|(to, own)| *to != from && !own.refused)
        {
            if other.hosts == 0 && used >= spread + usize::from(own.hosts == 1) {
                continue;
            }
            let change = other.growth(load) - stays;
            if change < 0 && best.is_none_or(|(least, _)| change < least) {
                best = Some((change, (from, to)));
            }
        }
        own.add_load(load, 1);
    }
    best.map(|(_, places)| places)
}
