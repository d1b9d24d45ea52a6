//! Small fabrics built by hand: every VLAN a tree that the test names.

use meikyo_fabric::dialect::Dialect;
use meikyo_fabric::{
    Configuration, Host, HostSettings, PortNumber, PortSettings, Priming, Switch, SwitchId,
    SwitchModel, SwitchSettings, Trunk, TrunkEnd, TrunkId, Vlan, VlanSet, Wiring,
};
use meikyo_units::{BitsPerSecond, Nanos};

use crate::shapes::{self, vlan};

/// The dialect of this name.
fn named(dialect: &str) -> Dialect {
    dialect.parse().expect("the tests use dialects that there are")
}

/// The dialect of the Dell PowerConnect 6200 series.
pub(crate) fn powerconnect() -> Dialect {
    named("powerconnect-6248")
}

/// The dialect of Open vSwitch.
pub(crate) fn open_vswitch() -> Dialect {
    named("open-vswitch")
}

/// Switches with two hosts each on ports 1 and 2, and trunks of one cable between these pairs of
/// switches, on the ports from 5 on.
pub(crate) fn wiring(model: &str, switches: usize, trunks: &[(usize, usize)]) -> Wiring {
    wiring_of_bundles(model, switches, trunks, 1)
}

/// The same with several cables a trunk.
pub(crate) fn wiring_of_bundles(
    model: &str,
    switches: usize,
    trunks: &[(usize, usize)],
    cables: u16,
) -> Wiring {
    let model = SwitchModel {
        name: model.into(),
        ageing_min: Nanos::from_secs(10),
        ageing_max: Some(Nanos::from_secs(1_000_000)),
        ..shapes::model()
    };
    let mut free = vec![5_u16; switches];
    let mut end = |switch: usize| {
        let first = free[switch];
        free[switch] += cables;
        TrunkEnd {
            switch: SwitchId::new(switch),
            ports: (first..first + cables).map(PortNumber).collect(),
        }
    };
    let host = |switch: usize, number: u16| Host {
        name: format!("h{}", 2 * switch + usize::from(number) - 1),
        switch: SwitchId::new(switch),
        ports: vec![PortNumber(number)],
        mac: None,
    };
    Wiring {
        switches: (0..switches)
            .map(|place| Switch { name: format!("sw{place}"), model: model.clone() })
            .collect(),
        hosts: (0..switches).flat_map(|switch| [host(switch, 1), host(switch, 2)]).collect(),
        trunks: trunks.iter().map(|&(one, other)| Trunk { ends: [end(one), end(other)] }).collect(),
        rate: BitsPerSecond::GIGABIT,
    }
}

/// VLANs 101 and on over these trunks; the hosts of each switch send in the VLAN of its place in
/// `pvids`. Every VLAN is primed by broadcasts.
pub(crate) fn configuration(
    wiring: &Wiring,
    trees: &[Vec<usize>],
    pvids: &[usize],
) -> Configuration {
    let all: VlanSet = (0..trees.len()).map(|tree| vlan(101 + tree)).collect();
    let over = |trunk: usize| -> VlanSet {
        let trees = trees.iter().enumerate().filter(|(_, tree)| tree.contains(&trunk));
        trees.map(|(tree, _)| vlan(101 + tree)).collect()
    };
    let mut switches: Vec<SwitchSettings> = pvids
        .iter()
        .map(|&pvid| {
            let host = |port: u16| PortSettings {
                ports: vec![PortNumber(port)],
                bundle: None,
                pvid: Some(vlan(101 + pvid)),
                untagged: all.clone(),
                tagged: VlanSet::EMPTY,
                accept_tagged: true,
                flow_control: true,
            };
            SwitchSettings {
                vlans: all.clone(),
                ports: vec![host(1), host(2)],
                ageing: Some(Nanos::from_secs(1_000)),
                spanning_tree: false,
            }
        })
        .collect();
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        for end in &trunk.ends {
            switches[end.switch.place()].ports.push(PortSettings {
                ports: end.ports.clone(),
                bundle: (end.ports.len() > 1).then_some(meikyo_fabric::Bundling::Lacp),
                pvid: None,
                untagged: VlanSet::EMPTY,
                tagged: over(place),
                accept_tagged: true,
                flow_control: true,
            });
        }
    }
    Configuration {
        switches,
        hosts: vec![HostSettings::Untagged; wiring.hosts.len()],
        host_bundling: meikyo_fabric::Bundling::Lacp,
        priming: Priming::Broadcast(Box::new(all)),
    }
}

/// The path of a frame in a VLAN between two switches, by walking all ways without a trunk: the
/// channels in order, as (trunk, whether it is walked from its first end).
pub(crate) fn path(
    wiring: &Wiring,
    configuration: &Configuration,
    vlan: Vlan,
    (from, to): (usize, usize),
    without: Option<TrunkId>,
) -> Option<Vec<(usize, bool)>> {
    walk(wiring, configuration, vlan, (from, to), without, &mut vec![from])
}

fn walk(
    wiring: &Wiring,
    configuration: &Configuration,
    vlan: Vlan,
    (from, to): (usize, usize),
    without: Option<TrunkId>,
    on: &mut Vec<usize>,
) -> Option<Vec<(usize, bool)>> {
    if from == to {
        return Some(Vec::new());
    }
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        let [one, other] = &trunk.ends;
        let first = one.switch.place() == from;
        if Some(TrunkId::new(place)) == without || !(first || other.switch.place() == from) {
            continue;
        }
        let next = if first { other.switch.place() } else { one.switch.place() };
        let is_member = |end: &TrunkEnd| {
            let ports = &configuration.switches[end.switch.place()].ports;
            ports.iter().any(|port| port.ports == end.ports && port.tagged.contains(vlan))
        };
        if on.contains(&next) || !is_member(one) || !is_member(other) {
            continue;
        }
        on.push(next);
        if let Some(mut rest) = walk(wiring, configuration, vlan, (next, to), without, on) {
            rest.insert(0, (place, first));
            return Some(rest);
        }
        on.pop();
    }
    None
}
