//! Small fabrics with good configurations, made by hand: each switch with hosts has a VLAN that is its
//! tree of ways up and down, so nothing waits in circles.

use std::collections::BTreeMap;

use meikyo_cluster::Tagging;
use meikyo_fabric::{
    Bundling, Configuration, Host, HostId, HostSettings, Learning, Parts, PlanOptions, PortNumber,
    PortSettings, Priming, Representative, Switch, SwitchId, SwitchModel, SwitchSettings, Topology,
    Trunk, TrunkEnd, Vlan, VlanSet, Wiring, cable, plan,
};
use meikyo_units::{BitsPerSecond, Nanos};

use crate::random::Random;

/// Switches, the links between them, and how many hosts each has.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) links: Vec<(usize, usize)>,
    pub(crate) hosts: Vec<usize>,
}

/// How a fabric is wired and taught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Cables of every trunk.
    pub(crate) cables: u16,
    pub(crate) directed: bool,
    pub(crate) host_tagged: bool,
    pub(crate) host_bundling: Bundling,
}

pub(crate) const PLAIN: Style =
    Style { cables: 1, directed: false, host_tagged: false, host_bundling: Bundling::Static };

fn grid(width: usize, height: usize, is_torus: bool) -> Vec<(usize, usize)> {
    let mut links = Vec::new();
    for y in 0..height {
        for x in 0..width {
            if x + 1 < width || (is_torus && width > 2) {
                links.push((y * width + x, y * width + (x + 1) % width));
            }
            if y + 1 < height || (is_torus && height > 2) {
                links.push((y * width + x, (y + 1) % height * width + x));
            }
        }
    }
    links
}

/// The topologies that the tests run on.
pub(crate) fn shapes(random: &mut Random) -> Vec<Shape> {
    let shape = |name, switches: usize, links| Shape { name, links, hosts: vec![2; switches] };
    let complete = (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))).collect();
    let tree = vec![(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)];
    let leaf_spine = (0..4).flat_map(|leaf| (4..7).map(move |spine| (leaf, spine))).collect();
    let mut shapes = vec![
        shape("ring of 4", 4, grid(4, 1, true)),
        shape("torus 4x2", 8, grid(4, 2, true)),
        shape("mesh 4x2", 8, grid(4, 2, false)),
        shape("complete 6", 6, complete),
        shape("tree", 6, tree),
        Shape { name: "leaf-spine", links: leaf_spine, hosts: vec![3, 2, 2, 3, 0, 0, 0] },
    ];
    for name in ["random 1", "random 2"] {
        let mut links: Vec<(usize, usize)> = (1..7).map(|b| (random.below(b), b)).collect();
        while links.len() < 11 {
            let (a, b) = (random.below(7), random.below(7));
            if a < b && !links.contains(&(a, b)) {
                links.push((a, b));
            }
        }
        let hosts = (0..7).map(|_| 1 + random.below(2)).collect();
        shapes.push(Shape { name, links, hosts });
    }
    shapes
}

pub(crate) fn vlan(id: usize) -> Vlan {
    u16::try_from(id).ok().and_then(Vlan::new).expect("1 to 4094")
}

pub(crate) fn model() -> SwitchModel {
    SwitchModel {
        name: "model-48".into(),
        ports: 48,
        table_entries: 8_000,
        vlans: 1_024,
        vlan_ids: (2..=4_093).map(vlan).collect(),
        bundle_ports: 8,
        bundles: 48,
        multi_untagged: true,
        learning: Learning::Independent,
        ageing_min: Nanos::from_secs(10),
        ageing_max: Some(Nanos::from_secs(100_000)),
        default_vlan_stays: false,
    }
}

/// What is plugged into what: hosts first, then trunks, in the order of ports.
pub(crate) fn wire(shape: &Shape, cables: u16) -> Wiring {
    let mut next = vec![1_u16; shape.hosts.len()];
    let mut take = |switch: usize, ports: u16| -> Vec<PortNumber> {
        next[switch] += ports;
        (next[switch] - ports..next[switch]).map(PortNumber).collect()
    };
    let mut hosts = Vec::new();
    for (switch, &count) in shape.hosts.iter().enumerate() {
        for _ in 0..count {
            let name = format!("h{}", hosts.len());
            // The first host of all has two ports.
            let ports = take(switch, if hosts.is_empty() { 2 } else { 1 });
            hosts.push(Host { name, switch: SwitchId::new(switch), ports, mac: None });
        }
    }
    let mut end =
        |switch: usize| TrunkEnd { switch: SwitchId::new(switch), ports: take(switch, cables) };
    let trunks = shape.links.iter().map(|&(a, b)| Trunk { ends: [end(a), end(b)] }).collect();
    let switch = |place| Switch { name: format!("s{place}"), model: model() };
    let switches = (0..shape.hosts.len()).map(switch).collect();
    Wiring { switches, hosts, trunks, rate: BitsPerSecond::GIGABIT }
}

/// The links of the tree of a switch: first as far up as ways go, then down.
fn tree(shape: &Shape, root: usize) -> Vec<usize> {
    let count = shape.hosts.len();
    let mut level = vec![usize::MAX; count];
    level[0] = 0;
    for round in 0..count {
        for &(a, b) in &shape.links {
            for (a, b) in [(a, b), (b, a)] {
                if level[a] == round && level[b] == usize::MAX {
                    level[b] = round + 1;
                }
            }
        }
    }
    let mut reached = vec![root];
    let mut links = Vec::new();
    for goes_up in [true, false] {
        let mut at = 0;
        while let Some(&from) = reached.get(at) {
            for (link, &(a, b)) in shape.links.iter().enumerate() {
                let Some(to) = [(a, b), (b, a)].iter().find(|ends| ends.0 == from).map(|e| e.1)
                else {
                    continue;
                };
                let is_up = (level[to], to) < (level[from], from);
                if is_up == goes_up && !reached.contains(&to) {
                    reached.push(to);
                    links.push(link);
                }
            }
            at += 1;
        }
    }
    links
}

/// A fabric with a good configuration.
pub(crate) fn good(shape: &Shape, style: Style) -> (Wiring, Configuration) {
    let wiring = wire(shape, style.cables);
    let sources: Vec<usize> = (0..shape.hosts.len()).filter(|&s| shape.hosts[s] > 0).collect();
    let vlan_of = |switch: usize| vlan(101 + switch);
    let all: VlanSet = sources.iter().map(|&switch| vlan_of(switch)).collect();
    let mut on_link = vec![VlanSet::EMPTY; shape.links.len()];
    for &source in &sources {
        tree(shape, source).into_iter().for_each(|link| {
            on_link[link].insert(vlan_of(source));
        });
    }
    let mut switches = vec![
        SwitchSettings {
            vlans: all.clone(),
            ports: Vec::new(),
            ageing: Some(Nanos::from_secs(100_000)),
            spanning_tree: false,
        };
        shape.hosts.len()
    ];
    let bundle = |ports: &[PortNumber], kind| (ports.len() > 1).then_some(kind);
    for host in &wiring.hosts {
        let sends = if style.host_tagged { sources[0] } else { host.switch.place() };
        switches[host.switch.place()].ports.push(PortSettings {
            ports: host.ports.clone(),
            bundle: bundle(&host.ports, style.host_bundling),
            pvid: Some(vlan_of(sends)),
            untagged: all.clone(),
            tagged: VlanSet::EMPTY,
            accept_tagged: true,
            flow_control: true,
        });
    }
    for (trunk, vlans) in wiring.trunks.iter().zip(on_link) {
        for end in &trunk.ends {
            switches[end.switch.place()].ports.push(PortSettings {
                ports: end.ports.clone(),
                bundle: bundle(&end.ports, Bundling::Lacp),
                pvid: None,
                untagged: VlanSet::EMPTY,
                tagged: vlans.clone(),
                accept_tagged: true,
                flow_control: true,
            });
        }
    }
    let ids = || (0..wiring.hosts.len()).map(HostId::new);
    let hosts = wiring.hosts.iter().map(|host| {
        let tag = vlan_of(host.switch.place());
        match style.host_tagged {
            false => HostSettings::Untagged,
            true => HostSettings::Tagged(ids().map(|to| (to, tag)).collect::<BTreeMap<_, _>>()),
        }
    });
    let hosts = hosts.collect();
    let first_of = |switch: usize| ids().find(|h| wiring.hosts[h.place()].switch.place() == switch);
    let known = |&switch: &usize| Representative {
        vlan: vlan_of(switch),
        host: first_of(switch).expect("sources have hosts"),
    };
    let priming = match style.directed {
        true => Priming::Directed(sources.iter().map(known).collect()),
        false => Priming::Broadcast(Box::new(all)),
    };
    let host_bundling = style.host_bundling;
    (wiring, Configuration { switches, hosts, host_bundling, priming })
}

/// What the planner makes of a topology and options drawn at random, and what they are.
pub(crate) fn planned(random: &mut Random) -> (String, Wiring, Configuration) {
    let texts = [
        "ring 4",
        "ring 5",
        "torus 4x2",
        "mesh 4x2",
        "complete 6",
        "tree 8",
        "leaf-spine 4+3",
        "hypercube 3",
        "random-regular 8 degree 3 seed 1",
        "random-regular 8 degree 3 seed 2",
    ];
    loop {
        let text = *random.one_of(&texts);
        let topology: Topology = text.parse().expect("a topology");
        let graph = topology.graph();
        let mut parts = Parts::uniform(&graph, &model(), 2);
        parts.ports_per_host = if random.once_in(5) { 2 } else { 1 };
        parts.cables_per_link = if random.once_in(3) { 2 } else { 1 };
        let wiring = cable(&graph, parts).expect("enough ports");
        let mut options = PlanOptions::new(Some(topology));
        options.spare = random.once_in(3);
        options.spread = random.once_in(2).then(|| 1 + random.below(3));
        options.flow_control = !random.once_in(8);
        if random.once_in(4) {
            options.management = Some(vlan(4_000));
            options.manager = random.once_in(2).then(|| HostId::new(0));
        }
        if random.once_in(6) {
            options.tagging = Tagging::Host;
        }
        let tagging = options.tagging;
        let name = format!(
            "{text}, planned, spare {} spread {:?} management {:?} tagging {tagging:?}",
            options.spare, options.spread, options.management
        );
        // What cannot be planned is for the planner's own tests.
        if let Ok(plan) = plan(&wiring, &options) {
            let configuration = plan.configuration(&wiring);
            return (name, wiring, configuration);
        }
    }
}
