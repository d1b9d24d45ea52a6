//! Live switches against the plan: VLANs by port, and neighbours by the cable list.
//!
//! Who reads switches (over SNMP: Q-BRIDGE-MIB, LLDP-MIB) fills an [`Observed`] in the words of this
//! crate, ports by their numbers; what differs comes back as [`Finding`]s.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    CableEnd, Configuration, HostId, PortNumber, PortSettings, SwitchId, SwitchSettings, TrunkEnd,
    Vlan, VlanSet, Wiring, cables,
};

/// What a switch says of itself. Ports of a bundle each have what the bundle has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The VLAN of frames without a tag (`dot1qPvid`).
    pub pvids: BTreeMap<PortNumber, Vlan>,
    /// The VLANs that ports are members of (`dot1qVlanStaticEgressPorts`).
    pub members: BTreeMap<PortNumber, VlanSet>,
    /// The VLANs whose frames lose their tag (`dot1qVlanStaticUntaggedPorts`).
    pub untagged: BTreeMap<PortNumber, VlanSet>,
    /// Who is heard at a port over LLDP: several where a card speaks for itself beside its host.
    pub neighbours: BTreeMap<PortNumber, Vec<Neighbour>>,
    /// Hosts whose addresses were learned in some VLAN, and where (`dot1qTpFdbPort`).
    pub learned: BTreeSet<(HostId, Vlan, PortNumber)>,
}

/// Who is heard at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The name that it gives itself (`lldpRemSysName`); empty if none.
    pub name: String,
    /// The port that it sends from (`lldpRemPortId`), if it is the number of one.
    pub port: Option<PortNumber>,
}

impl Neighbour {
    fn in_words(&self) -> String {
        let there = self.port.map_or_else(String::new, |port| format!(", port {port}"));
        format!("`{}`{there}", self.name)
    }
}

/// What is not as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Frames without a tag are in another VLAN.
    Pvid {
        /// The port whose PVID differs.
        port: PortNumber,
        /// The PVID that is planned.
        planned: Vlan,
        /// As found; `None`: the switch says nothing of the port.
        found: Option<Vlan>,
    },
    /// The port is in other VLANs, or in some with tags where it should be without.
    Members {
        /// The port whose VLANs differ.
        port: PortNumber,
        /// As planned: without tags, with tags.
        planned: Box<[VlanSet; 2]>,
        /// What the switch says, in the same order.
        found: Box<[VlanSet; 2]>,
    },
    /// Nothing is heard where a cable to a switch is planned.
    Missing {
        /// The port at which nothing is heard.
        port: PortNumber,
        /// The far end: switch and port.
        planned: (SwitchId, PortNumber),
    },
    /// Somebody else is heard at a port than is planned there.
    Elsewhere {
        /// The port whose cable goes elsewhere.
        port: PortNumber,
        /// Who should be there: the name of a host, or a switch and its port; `None`: nobody.
        planned: Option<String>,
        /// Who is heard there, as it names itself.
        found: String,
    },
    /// Two cables have changed places.
    Swapped {
        /// Their ports, the lower first.
        ports: [PortNumber; 2],
    },
    /// A host is heard at another port of its switch than it is plugged into.
    HostElsewhere {
        /// The host, which is plugged into this switch.
        host: HostId,
        /// The ports that the cable list gives the host.
        planned: Vec<PortNumber>,
        /// The port at which its address was learned.
        found: PortNumber,
    },
    /// A host of another switch was learned off the way that frames of the VLAN take to it.
    LearnedElsewhere {
        /// The host, which is plugged into another switch.
        host: HostId,
        /// The VLAN in which its address was learned.
        vlan: Vlan,
        /// Where the way begins; empty if the VLAN does not lead to the host.
        planned: Vec<PortNumber>,
        /// The port at which its address was learned.
        found: PortNumber,
    },
}

impl Finding {
    /// In words; the switch is named by who prints it.
    pub fn in_words(&self, wiring: &Wiring) -> String {
        let switch = |switch: SwitchId| &wiring.switches[switch.place()].name;
        match self {
            Self::Pvid { port, planned, found: Some(found) } => {
                format!("port {port}: PVID is {found}, planned is {planned}")
            }
            Self::Pvid { port, planned, found: None } => {
                format!("port {port}: the switch says no PVID, planned is {planned}")
            }
            Self::Members { port, planned, found } => {
                let [untagged, tagged] = &**planned;
                let [now_untagged, now_tagged] = &**found;
                format!(
                    "port {port}: VLANs without a tag are {now_untagged:?} and with one \
                     {now_tagged:?}, planned are {untagged:?} and {tagged:?}"
                )
            }
            Self::Missing { port, planned: (far, there) } => {
                format!("port {port}: nothing is heard of `{}`, port {there}", switch(*far))
            }
            Self::Elsewhere { port, planned: Some(planned), found } => {
                format!("port {port}: the cable goes to {found}, planned is {planned}")
            }
            Self::Elsewhere { port, planned: None, found } => {
                format!("port {port}: {found} is plugged in, nothing is planned")
            }
            Self::Swapped { ports: [one, other] } => {
                format!("ports {one} and {other}: their cables have changed places")
            }
            Self::HostElsewhere { host, planned, found } => {
                let (host, planned) = (&wiring.hosts[host.place()].name, joined(planned));
                format!("port {found}: `{host}` is heard here, planned is port {planned}")
            }
            Self::LearnedElsewhere { host, vlan, planned, found } => {
                let host = &wiring.hosts[host.place()].name;
                let way = if planned.is_empty() {
                    "which does not lead to it".to_owned()
                } else {
                    format!("where the way to it is port {}", joined(planned))
                };
                format!("port {found}: `{host}` was learned here in VLAN {vlan}, {way}")
            }
        }
    }
}

/// The ports of a bundle in words.
fn joined(ports: &[PortNumber]) -> String {
    ports.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
}

/// What is not as planned at a switch: settings first, then cables, by port.
pub fn verify(
    wiring: &Wiring,
    configuration: &Configuration,
    switch: SwitchId,
    observed: &Observed,
) -> Vec<Finding> {
    let mut findings = verify_settings(&configuration.switches[switch.place()], observed);
    links(wiring, switch, observed, &mut findings);
    learned(wiring, configuration, switch, observed, &mut findings);
    findings
}

/// Which ports of a switch have other VLANs than these settings.
pub fn verify_settings(settings: &SwitchSettings, observed: &Observed) -> Vec<Finding> {
    let mut findings = Vec::new();
    for own in &settings.ports {
        for port in &own.ports {
            settings_at(*port, own, observed, &mut findings);
        }
    }
    findings
}

fn learned(
    wiring: &Wiring,
    configuration: &Configuration,
    switch: SwitchId,
    observed: &Observed,
    findings: &mut Vec<Finding>,
) {
    let (mut ways, mut told) = (BTreeMap::new(), BTreeSet::new());
    for &(host, vlan, found) in &observed.learned {
        let own = &wiring.hosts[host.place()];
        if own.switch == switch {
            // In each VLAN, and once is enough.
            if !own.ports.contains(&found) && told.insert((host, found)) {
                let planned = own.ports.clone();
                findings.push(Finding::HostElsewhere { host, planned, found });
            }
            continue;
        }
        let ways =
            ways.entry(vlan).or_insert_with(|| ways_from(wiring, configuration, switch, vlan));
        let planned = ways.get(&own.switch).copied().unwrap_or_default();
        if !planned.contains(&found) {
            let planned = planned.to_vec();
            findings.push(Finding::LearnedElsewhere { host, vlan, planned, found });
        }
    }
}

/// By which ports of a switch the frames of a VLAN go to the other switches, where they can.
fn ways_from<'a>(
    wiring: &'a Wiring,
    configuration: &Configuration,
    from: SwitchId,
    vlan: Vlan,
) -> BTreeMap<SwitchId, &'a [PortNumber]> {
    let carries = |end: &TrunkEnd| {
        let mut ports = configuration.switches[end.switch.place()].ports.iter();
        ports.any(|own| own.is_member(vlan) && own.ports.iter().any(|own| end.ports.contains(own)))
    };
    let mut next: BTreeMap<SwitchId, Vec<(&[PortNumber], SwitchId)>> = BTreeMap::new();
    for [one, other] in wiring.trunks.iter().map(|trunk| &trunk.ends) {
        if carries(one) && carries(other) {
            next.entry(one.switch).or_default().push((&one.ports, other.switch));
            next.entry(other.switch).or_default().push((&other.ports, one.switch));
        }
    }
    let mut ways: BTreeMap<SwitchId, &[PortNumber]> = BTreeMap::new();
    let mut reached = VecDeque::from([from]);
    while let Some(at) = reached.pop_front() {
        for &(ports, to) in next.get(&at).into_iter().flatten() {
            if to != from && !ways.contains_key(&to) {
                ways.insert(to, ways.get(&at).copied().unwrap_or(ports));
                reached.push_back(to);
            }
        }
    }
    ways
}

fn settings_at(
    port: PortNumber,
    settings: &PortSettings,
    observed: &Observed,
    findings: &mut Vec<Finding>,
) {
    let found = observed.pvids.get(&port).copied();
    if let Some(planned) = settings.pvid.filter(|planned| Some(*planned) != found) {
        findings.push(Finding::Pvid { port, planned, found });
    }
    let set = |sets: &BTreeMap<PortNumber, VlanSet>| sets.get(&port).cloned().unwrap_or_default();
    let (members, untagged) = (set(&observed.members), set(&observed.untagged));
    let found = [members.intersection(&untagged), members.difference(&untagged)];
    let planned = [settings.untagged.clone(), settings.tagged.clone()];
    if found != planned {
        let (planned, found) = (Box::new(planned), Box::new(found));
        findings.push(Finding::Members { port, planned, found });
    }
}

/// Whether the neighbour may be the planned one: what it does not say is taken as right.
fn is_there(wiring: &Wiring, to: CableEnd, heard: &Neighbour) -> bool {
    // A name may come with its domain.
    let named = |name: &str| {
        let short = heard.name.split('.').next().unwrap_or_default();
        heard.name.is_empty() || heard.name == name || short == name
    };
    match to {
        CableEnd::Host(host) => named(&wiring.hosts[host.place()].name),
        CableEnd::Switch { switch, port, .. } => {
            named(&wiring.switches[switch.place()].name)
                && heard.port.is_none_or(|there| there == port)
        }
    }
}

fn links(wiring: &Wiring, switch: SwitchId, observed: &Observed, findings: &mut Vec<Finding>) {
    let planned: BTreeMap<PortNumber, CableEnd> =
        cables(wiring, switch).into_iter().map(|cable| (cable.port, cable.to)).collect();
    let heard = |port: PortNumber| observed.neighbours.get(&port).map_or(&[][..], Vec::as_slice);
    let goes_to = |port: PortNumber, heard: &[Neighbour]| {
        let to = planned.get(&port);
        to.is_some_and(|to| heard.iter().any(|own| is_there(wiring, *to, own)))
    };
    let is_wrong = |port: PortNumber| !heard(port).is_empty() && !goes_to(port, heard(port));
    let ports: BTreeSet<PortNumber> =
        planned.keys().chain(observed.neighbours.keys()).copied().collect();
    let mut told = BTreeSet::new();
    for &port in &ports {
        if is_wrong(port) && told.insert(port) {
            // A wrong neighbour that is right at another port, whose neighbour is right here.
            let swapped = |other: &PortNumber| {
                let is_free = is_wrong(*other) && !told.contains(other);
                is_free && goes_to(*other, heard(port)) && goes_to(port, heard(*other))
            };
            findings.push(if let Some(&other) = ports.iter().find(|other| swapped(other)) {
                told.insert(other);
                Finding::Swapped { ports: [port, other] }
            } else {
                let found: Vec<_> = heard(port).iter().map(Neighbour::in_words).collect();
                let planned = planned.get(&port).map(|to| end_name(wiring, *to));
                Finding::Elsewhere { port, planned, found: found.join(" and ") }
            });
        } else if let Some(CableEnd::Switch { switch, port: there, .. }) = planned.get(&port)
            && heard(port).is_empty()
        {
            findings.push(Finding::Missing { port, planned: (*switch, *there) });
        }
    }
}

fn end_name(wiring: &Wiring, to: CableEnd) -> String {
    match to {
        CableEnd::Host(host) => format!("`{}`", wiring.hosts[host.place()].name),
        CableEnd::Switch { switch, port, .. } => {
            format!("`{}`, port {port}", wiring.switches[switch.place()].name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanOptions, SwitchModel, Topology, cable_uniform, plan};

    fn ring() -> (Wiring, Configuration) {
        let topology: Topology = "ring 4".parse().unwrap();
        let model = SwitchModel::named("powerconnect-6248").unwrap();
        let wiring = cable_uniform(&topology, &model, 2).unwrap();
        let plan = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
        let configuration = plan.configuration(&wiring);
        (wiring, configuration)
    }

    /// What a switch says that is exactly as planned.
    fn as_planned(wiring: &Wiring, configuration: &Configuration, switch: SwitchId) -> Observed {
        let mut observed = Observed::default();
        for own in &configuration.switches[switch.place()].ports {
            for port in &own.ports {
                observed.pvids.insert(*port, own.pvid.unwrap_or(Vlan::DEFAULT));
                observed.members.insert(*port, own.members());
                observed.untagged.insert(*port, own.untagged.clone());
            }
        }
        for cable in cables(wiring, switch) {
            if let CableEnd::Switch { switch, port, .. } = cable.to {
                let name = wiring.switches[switch.place()].name.clone();
                observed.neighbours.insert(cable.port, vec![Neighbour { name, port: Some(port) }]);
            }
        }
        observed
    }

    #[test]
    fn what_is_planned_is_found_without_a_word() {
        let (wiring, configuration) = ring();
        for place in 0..4 {
            let switch = SwitchId::new(place);
            let observed = as_planned(&wiring, &configuration, switch);
            assert_eq!(verify(&wiring, &configuration, switch, &observed), vec![]);
        }
    }

    #[test]
    fn each_difference_is_told_by_port() {
        let (wiring, configuration) = ring();
        let switch = SwitchId::new(0);
        let told = |change: fn(&mut Observed)| {
            let mut observed = as_planned(&wiring, &configuration, switch);
            change(&mut observed);
            let findings = verify(&wiring, &configuration, switch, &observed);
            findings.iter().map(|own| own.in_words(&wiring)).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(told(|own| {
            own.pvids.insert(PortNumber(1), Vlan::DEFAULT);
        }), @"port 1: PVID is 1, planned is 101");
        insta::assert_snapshot!(told(|own| {
            own.members.get_mut(&PortNumber(47)).unwrap().insert(Vlan::DEFAULT);
        }), @"port 47: VLANs without a tag are {} and with one {1,101}, planned are {} and {101}");
        insta::assert_snapshot!(told(|own| {
            own.neighbours.remove(&PortNumber(47));
        }), @"port 47: nothing is heard of `s1`, port 47");
        insta::assert_snapshot!(told(|own| {
            let one = own.neighbours.remove(&PortNumber(47)).unwrap();
            let other = own.neighbours.insert(PortNumber(48), one).unwrap();
            own.neighbours.insert(PortNumber(47), other);
        }), @"ports 47 and 48: their cables have changed places");
        insta::assert_snapshot!(told(|own| {
            let stranger = Neighbour { name: "office".into(), port: Some(PortNumber(3)) };
            own.neighbours.insert(PortNumber(48), vec![stranger.clone()]);
            own.neighbours.insert(PortNumber(9), vec![stranger]);
        }), @r##"
    port 9: `office`, port 3 is plugged in, nothing is planned
    port 48: the cable goes to `office`, port 3, planned is `s3`, port 47
    "##);
        insta::assert_snapshot!(told(|own| {
            own.learned.insert((HostId::new(0), Vlan::new(101).unwrap(), PortNumber(2)));
        }), @"port 2: `h0` is heard here, planned is port 1");
        // VLAN 101 is the ring without the trunk from `s2` to `s3`, and `h4` is at `s2`.
        insta::assert_snapshot!(told(|own| {
            own.learned.insert((HostId::new(4), Vlan::new(101).unwrap(), PortNumber(48)));
            own.learned.insert((HostId::new(4), Vlan::new(999).unwrap(), PortNumber(47)));
            own.learned.insert((HostId::new(4), Vlan::new(101).unwrap(), PortNumber(47)));
        }), @r##"
    port 48: `h4` was learned here in VLAN 101, where the way to it is port 47
    port 47: `h4` was learned here in VLAN 999, which does not lead to it
    "##);
        insta::assert_snapshot!(told(|own| {
            own.neighbours.get_mut(&PortNumber(48)).unwrap()[0].name += ".example.org";
            let card = Neighbour { name: String::new(), port: None };
            own.neighbours.get_mut(&PortNumber(47)).unwrap().insert(0, card);
        }), @"");
    }
}
