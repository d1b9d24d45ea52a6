//! What is allowed and costs: cables that carry far more than others, or nothing, or less than they
//! could.
//!
//! Nothing here refuses a fabric. Loads are those of every host sending to every other one, from the
//! plan or from the checker; both have theirs in [`Loads`].

use std::collections::BTreeMap;
use std::fmt;

use crate::{Busiest, Configuration, HostId, Loads, PortNumber, SwitchId, TrunkId, Wiring};

/// A cable that carries more than so many times the mean is warned of.
pub const HOT_SPOT_RATIO: f64 = 3.0;

/// Something that works and that somebody would want to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// One cable carries more than [`HOT_SPOT_RATIO`] times the mean of all.
    HotSpot {
        /// The direction of the trunk.
        busiest: Busiest,
        /// Pairs of hosts on a cable and direction, over all trunks.
        mean: f64,
    },
    /// No frame between hosts goes over a trunk.
    Idle {
        /// The trunk without frames.
        trunk: TrunkId,
    },
    /// Several links join the same two switches and are not one bundle.
    Parallel {
        /// The trunks, the first of them first.
        trunks: Vec<TrunkId>,
    },
    /// A bundle of a trunk goes on with fewer cables: the others are shut at one end at least.
    DegradedTrunk {
        /// The trunk whose bundle lacks cables.
        trunk: TrunkId,
        /// Cables that are open at both ends and carry frames.
        in_use: usize,
    },
    /// A bundle of a host goes on with fewer cables.
    DegradedHost {
        /// The host whose bundle lacks cables.
        host: HostId,
        /// Cables that are open at both ends and carry frames.
        in_use: usize,
    },
}

/// What the wiring and the loads of all pairs give cause to warn of, the worst first.
pub fn warnings(wiring: &Wiring, loads: &Loads) -> Vec<Warning> {
    let mut found = Vec::new();
    let mean = loads.mean(wiring);
    if let Some(busiest) = loads.busiest(wiring)
        && busiest.pairs_per_cable > HOT_SPOT_RATIO * mean
    {
        found.push(Warning::HotSpot { busiest, mean });
    }
    let mut between: BTreeMap<[SwitchId; 2], Vec<TrunkId>> = BTreeMap::new();
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        let mut ends = trunk.ends.each_ref().map(|end| end.switch);
        ends.sort_unstable();
        between.entry(ends).or_default().push(TrunkId::new(place));
    }
    found.extend(
        between
            .into_values()
            .filter(|trunks| trunks.len() > 1)
            .map(|trunks| Warning::Parallel { trunks }),
    );
    let idle = loads.pairs.iter().zip(&wiring.trunks).enumerate();
    let idle = idle.filter(|(_, (pairs, trunk))| **pairs == [0, 0] && trunk.cables() > 0);
    found.extend(idle.map(|(place, _)| Warning::Idle { trunk: TrunkId::new(place) }));
    found
}

/// What settings give cause to warn of: the loads, links that are no bundles, bundles that lack cables.
pub(crate) fn of_settings(
    wiring: &Wiring,
    configuration: &Configuration,
    loads: &Loads,
) -> Vec<Warning> {
    // Links that the settings bundle with others are one trunk there, and counted with the first.
    let is_bundled = |trunk: &TrunkId| {
        let end = &wiring.trunks[trunk.place()].ends[0];
        let ports = &configuration.switches[end.switch.place()].ports;
        let set = ports.iter().find(|set| set.ports.iter().any(|port| end.ports.contains(port)));
        set.is_some_and(|set| set.ports.iter().any(|port| !end.ports.contains(port)))
    };
    let mut found = degraded(wiring, configuration);
    found.extend(warnings(wiring, loads));
    found.retain(|warning| match warning {
        Warning::Idle { trunk } => !is_bundled(trunk),
        Warning::Parallel { trunks } => !trunks.iter().all(is_bundled),
        _ => true,
    });
    found
}

/// Bundles of which some cables are in use and others are shut.
fn degraded(wiring: &Wiring, configuration: &Configuration) -> Vec<Warning> {
    let is_set = |switch: SwitchId, port: PortNumber| {
        let ports = &configuration.switches[switch.place()].ports;
        ports.iter().any(|settings| settings.ports.contains(&port))
    };
    let trunks = wiring.trunks.iter().enumerate().map(|(place, trunk)| {
        let [one, other] = &trunk.ends;
        let cables = one.ports.iter().zip(&other.ports);
        let is_up = |(near, far): &(&PortNumber, &PortNumber)| {
            is_set(one.switch, **near) && is_set(other.switch, **far)
        };
        let in_use = cables.filter(is_up).count();
        (trunk.cables(), in_use, Warning::DegradedTrunk { trunk: TrunkId::new(place), in_use })
    });
    let hosts = wiring.hosts.iter().enumerate().map(|(place, host)| {
        let in_use = host.ports.iter().filter(|&&port| is_set(host.switch, port)).count();
        (host.ports.len(), in_use, Warning::DegradedHost { host: HostId::new(place), in_use })
    });
    let is_degraded = |(cables, in_use, _): &(usize, usize, Warning)| (1..*cables).contains(in_use);
    trunks.chain(hosts).filter(is_degraded).map(|(_, _, warning)| warning).collect()
}

impl Warning {
    /// What it is, in one word for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::HotSpot { .. } => "hot_spot",
            Self::Idle { .. } => "idle_trunk",
            Self::Parallel { .. } => "parallel_links",
            Self::DegradedTrunk { .. } => "degraded_trunk",
            Self::DegradedHost { .. } => "degraded_host",
        }
    }

    /// The warning in words, with the names that the wiring has.
    pub const fn in_words<'a>(&'a self, wiring: &'a Wiring) -> WarningInWords<'a> {
        WarningInWords { warning: self, wiring }
    }
}

/// A warning as a sentence, with the names of switches and hosts: what `Display` prints.
#[derive(Debug, Clone, Copy)]
pub struct WarningInWords<'a> {
    warning: &'a Warning,
    wiring: &'a Wiring,
}

impl fmt::Display for WarningInWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wiring = self.wiring;
        let trunk = |trunk: TrunkId| wiring.trunk_name(trunk);
        match self.warning {
            Warning::HotSpot { busiest, mean } => {
                let switch = |at: SwitchId| &wiring.switches[at.place()].name;
                write!(
                    f,
                    "a cable from `{}` to `{}` carries {:.0} pairs of hosts, {:.1} times the mean of \
                     {mean:.0}",
                    switch(busiest.from),
                    switch(busiest.to),
                    busiest.pairs_per_cable,
                    busiest.pairs_per_cable / mean,
                )
            }
            Warning::Idle { trunk: idle } => {
                write!(f, "no frame between hosts goes over `{}`", trunk(*idle))
            }
            Warning::Parallel { trunks } => write!(
                f,
                "{} links join `{}` and are not one bundle, so that each VLAN uses one of them; \
                 `cables = {}` in one `[[links]]` makes them a bundle",
                trunks.len(),
                trunks.first().map_or_else(String::new, |first| trunk(*first)),
                trunks.iter().map(|trunk| wiring.trunks[trunk.place()].cables()).sum::<usize>(),
            ),
            Warning::DegradedTrunk { trunk: its, in_use } => write!(
                f,
                "the bundle `{}` uses {in_use} of its {} cables: the others are shut",
                trunk(*its),
                wiring.trunks[its.place()].cables(),
            ),
            Warning::DegradedHost { host, in_use } => {
                let host = &wiring.hosts[host.place()];
                write!(
                    f,
                    "host `{}` uses {in_use} of its {} cables: the others are shut at `{}`",
                    host.name,
                    host.ports.len(),
                    wiring.switches[host.switch.place()].name,
                )
            }
        }
    }
}
