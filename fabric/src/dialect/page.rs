//! What templates are given: the settings of a switch in the words of its vendor.

use std::collections::BTreeMap;

use minijinja::Value;

use super::state::SwitchState;
use super::vendors::Vendor;
use crate::{Bundling, PortNumber, PortSettings, SwitchId, SwitchModel, Vlan, VlanSet, Wiring};

/// A change of a switch.
pub(super) struct Change<'a> {
    pub(super) wiring: &'a Wiring,
    pub(super) switch: SwitchId,
    pub(super) before: &'a SwitchState,
    pub(super) after: &'a SwitchState,
    /// Whether the switch is in its blank state before.
    pub(super) fresh: bool,
}

/// A change in the words of a vendor.
pub(super) struct Page<'a> {
    pub(super) vendor: &'static dyn Vendor,
    pub(super) change: &'a Change<'a>,
}

/// A port or bundle after the change.
struct Interface<'a> {
    port: &'a PortSettings,
    number: Option<u16>,
    name: String,
    /// As it was; `None` if it was not there, or not so.
    was: Option<&'a PortSettings>,
    joining: Vec<PortNumber>,
}

impl Page<'_> {
    /// The variables of the template. `docs/fabric-deployment.md` says what each is.
    pub(super) fn variables(&self) -> Value {
        let Change { wiring, switch, before: was, after: is, fresh } = *self.change;
        let (before, after) = (&was.settings, &is.settings);
        let interfaces = self.interfaces();
        let changed = |interface: &&Interface<'_>| {
            fresh || interface.was != Some(interface.port) || !interface.joining.is_empty()
        };
        let shown: Vec<Value> =
            interfaces.iter().filter(changed).map(|interface| self.interface(interface)).collect();
        let all: Vec<Value> =
            interfaces.iter().map(|interface| self.interface(interface)).collect();
        let pause = |ports: &[PortSettings]| ports.first().map(|port| port.flow_control);
        let new_pause = pause(&after.ports);
        let pause_changed = new_pause.is_some() && (fresh || new_pause != pause(&before.ports));
        let ageing = after.ageing.filter(|_| fresh || before.ageing != after.ageing);
        let never = after.ageing.is_none() && (fresh || before.ageing.is_some());
        let protocol = fresh || before.spanning_tree != after.spanning_tree;
        let management = is.management.filter(|vlan| Some(*vlan) != was.management);
        let left = was.management.filter(|vlan| Some(*vlan) != is.management);
        let common = [
            ("switch", Value::from(&wiring.switches[switch.place()].name)),
            ("fresh", Value::from(fresh)),
            ("vlans", without_default(&after.vlans)),
            ("vlans_added", without_default(&after.vlans.difference(&before.vlans))),
            ("vlans_removed", without_default(&before.vlans.difference(&after.vlans))),
            ("spanning_tree", Value::from(protocol.then_some(after.spanning_tree))),
            ("flow_control", Value::from(new_pause.filter(|_| pause_changed))),
            ("ageing_s", Value::from(ageing.map(|span| span.get() / 1_000_000_000))),
            ("ageing_cs", Value::from(ageing.map(|span| span.get() / 10_000_000))),
            ("ageing_never", Value::from(never)),
            ("management", Value::from(management.map(Vlan::id))),
            ("management_before", Value::from(left.map(Vlan::id))),
            ("closed", self.list(&self.closed())),
            ("leaving", self.list(&self.leaving(&interfaces))),
            ("left", self.left(&interfaces)),
            ("bundles_removed", self.bundles_removed(&interfaces)),
            ("interfaces", Value::from(shown)),
            ("relearn", Value::from(fresh || self.members_change())),
            ("all", Value::from(all)),
            ("managed", Value::from(is.management.map(Vlan::id))),
            ("timeout_s", Value::from(after.ageing.map_or(0, |span| span.get() / 1_000_000_000))),
        ];
        record(common.into_iter().chain(self.vendor.own_variables(is)))
    }

    fn model(&self) -> &SwitchModel {
        &self.change.wiring.switches[self.change.switch.place()].model
    }

    fn port_name(&self, port: PortNumber) -> String {
        self.vendor.port_name(self.model(), port)
    }

    fn interfaces(&self) -> Vec<Interface<'_>> {
        let (before, after) = (self.change.before, &self.change.after.settings);
        let numbers = before.numbers_for(after);
        let mut interfaces = Vec::new();
        for (port, number) in after.ports.iter().zip(numbers) {
            let name = match number {
                Some(number) => self.vendor.bundle_name(number),
                None => self.port_name(port.ports[0]),
            };
            let was = self.was(port, number);
            let held = was.map_or(&[][..], |was| &was.ports);
            let mut joining = port.ports.clone();
            joining.retain(|one| port.bundle.is_some() && !held.contains(one));
            interfaces.push(Interface { port, number, name, was, joining });
        }
        interfaces
    }

    /// The port alone as it was, or the bundle of the same number and protocol.
    fn was(&self, port: &PortSettings, number: Option<u16>) -> Option<&PortSettings> {
        let mut before = self.change.before.settings.ports.iter();
        match number {
            None => before.find(|own| own.bundle.is_none() && own.ports == port.ports),
            Some(number) => before.find(|own| {
                own.bundle == port.bundle
                    && own.bundle.is_some()
                    && self.change.before.number_of(&own.ports) == Some(number)
            }),
        }
    }

    /// Whether any port is in other VLANs than before, so that what was learned may be wrong.
    fn members_change(&self) -> bool {
        let members = |state: &SwitchState| -> Vec<(PortNumber, VlanSet, VlanSet)> {
            let ports = state.settings.ports.iter();
            ports.map(|own| (own.ports[0], own.untagged.clone(), own.tagged.clone())).collect()
        };
        members(self.change.before) != members(self.change.after)
    }

    /// The ports that are open before and not after.
    fn closed(&self) -> Vec<PortNumber> {
        let mut ports: Vec<PortNumber> =
            self.change.before.settings.ports.iter().flat_map(|own| own.ports.clone()).collect();
        ports.retain(|port| self.change.after.port(*port).is_none());
        ports.sort();
        ports
    }

    /// The ports that leave a bundle and stay open.
    fn leaving(&self, interfaces: &[Interface<'_>]) -> Vec<PortNumber> {
        let bundles = self.change.before.settings.ports.iter().filter(|own| own.bundle.is_some());
        let mut ports: Vec<PortNumber> = Vec::new();
        for own in bundles {
            let number = self.change.before.number_of(&own.ports);
            let stays = |port: &PortNumber| {
                interfaces.iter().any(|new| {
                    new.port.ports.contains(port)
                        && new.number == number
                        && new.port.bundle == own.bundle
                })
            };
            ports.extend(own.ports.iter().filter(|port| !stays(port)));
        }
        ports.sort();
        ports
    }

    /// The same ports with the bundle that each leaves.
    fn left(&self, interfaces: &[Interface<'_>]) -> Value {
        let ports = self.leaving(interfaces).into_iter().map(|port| {
            let number = self.change.before.number_of(&[port]);
            record([("port", Value::from(self.port_name(port))), ("number", Value::from(number))])
        });
        Value::from(ports.collect::<Vec<Value>>())
    }

    fn bundles_removed(&self, interfaces: &[Interface<'_>]) -> Value {
        let numbers = self.change.before.settings.ports.iter().filter(|own| own.bundle.is_some());
        let gone = numbers.filter_map(|own| {
            let number = self.change.before.number_of(&own.ports)?;
            let kept = interfaces
                .iter()
                .any(|new| new.number == Some(number) && new.port.bundle == own.bundle);
            (!kept).then(|| self.vendor.bundle_name(number))
        });
        Value::from(gone.collect::<Vec<String>>())
    }

    /// The VLANs that are there before the change, or after it; VLAN 1 always.
    fn defined(&self) -> VlanSet {
        let mut vlans = self.change.before.settings.vlans.union(&self.change.after.settings.vlans);
        vlans.insert(Vlan::DEFAULT);
        vlans
    }

    /// Ports in the vendor's words: one text where a command takes several ports, names elsewhere.
    fn list(&self, ports: &[PortNumber]) -> Value {
        match self.vendor.port_list(self.model(), ports) {
            Some(list) => Value::from(list),
            None => self.names(ports),
        }
    }

    fn names<'p>(&self, ports: impl IntoIterator<Item = &'p PortNumber>) -> Value {
        Value::from(ports.into_iter().map(|port| self.port_name(*port)).collect::<Vec<String>>())
    }

    fn interface(&self, interface: &Interface<'_>) -> Value {
        let Interface { port, number, name, was, joining } = interface;
        // A port that was alone and open, and stays in its mode, keeps what it had; others begin anew.
        let delivered = self.vendor.initial_members(port);
        let kept = was.filter(|was| was.accept_tagged == port.accept_tagged);
        let reset = !self.change.fresh && was.is_none();
        let (old_untagged, old_tagged) = kept
            .map_or((delivered, VlanSet::EMPTY), |was| (was.untagged.clone(), was.tagged.clone()));
        let old_pvid = kept.and_then(|was| was.pvid);
        let moved = VlanSet::from_iter(old_pvid.filter(|vlan| Some(*vlan) != port.pvid));
        let untagged = port.untagged.difference(&old_untagged);
        let tagged = port.tagged.difference(&old_tagged);
        let untagged_set = untagged.union(&moved.intersection(&port.untagged));
        let tagged_set = tagged.union(&moved.intersection(&port.tagged));
        let removed = old_untagged.union(&old_tagged).difference(&port.members());
        let not_members = self.defined().difference(&port.members());
        // What a port that was shut had is not known.
        let paused = |one: &&PortNumber| {
            self.change.before.port(**one).map(|was| was.flow_control) == Some(port.flow_control)
        };
        let pause = self.names(port.ports.iter().filter(|one| !paused(one)));
        let ports = self.names(&port.ports);
        let bundle = port.bundle.map(|bundling| match bundling {
            Bundling::Lacp => "lacp",
            Bundling::Static => "static",
        });
        let pvid_untagged = port.pvid.is_some_and(|vlan| port.untagged.contains(vlan));
        record([
            ("name", Value::from(name)),
            ("number", Value::from(*number)),
            ("bundle", Value::from(bundle)),
            ("ports", ports),
            ("port", Value::from(port.ports[0].0)),
            ("numbers", Value::from(port.ports.iter().map(|port| port.0).collect::<Vec<u16>>())),
            ("joining", self.list(joining)),
            ("peer", Value::from(self.peer(port))),
            ("opened", Value::from(was.is_none())),
            ("reset", Value::from(reset)),
            ("accept_tagged", Value::from(port.accept_tagged)),
            ("pvid", Value::from(port.pvid.map(Vlan::id))),
            ("pvid_untagged", Value::from(pvid_untagged)),
            ("untagged", Value::from(port.untagged.to_string())),
            ("tagged", Value::from(port.tagged.to_string())),
            ("untagged_vlans", ids(&port.untagged)),
            ("tagged_vlans", ids(&port.tagged)),
            ("members", ids(&port.members())),
            ("untagged_added", Value::from(untagged.to_string())),
            ("tagged_added", Value::from(tagged.to_string())),
            ("removed", Value::from(removed.to_string())),
            ("not_members", Value::from(not_members.to_string())),
            ("untagged_runs", runs(&untagged_set)),
            ("tagged_runs", runs(&tagged_set)),
            ("removed_runs", runs(&removed)),
            ("flow_control", Value::from(port.flow_control)),
            ("pause_set", pause),
        ])
    }

    /// What is plugged in, for a comment.
    fn peer(&self, port: &PortSettings) -> String {
        let own = |ports: &[PortNumber]| ports.iter().any(|one| port.ports.contains(one));
        let hosts = &self.change.wiring.hosts;
        if let Some(host) =
            hosts.iter().find(|host| host.switch == self.change.switch && own(&host.ports))
        {
            return format!("host {}", host.name);
        }
        let mut trunks = self.change.wiring.trunks.iter().flat_map(|trunk| {
            let [one, other] = &trunk.ends;
            [(one, other), (other, one)]
        });
        match trunks.find(|(near, _)| near.switch == self.change.switch && own(&near.ports)) {
            Some((_, far)) => {
                let ports: Vec<String> = far.ports.iter().map(ToString::to_string).collect();
                let name = &self.change.wiring.switches[far.switch.place()].name;
                format!("trunk to {name}, port {}", ports.join("+"))
            }
            None => "nothing is plugged in".to_owned(),
        }
    }
}

/// Variables by their names.
pub(super) fn record(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::from(pairs.into_iter().collect::<BTreeMap<&'static str, Value>>())
}

fn without_default(vlans: &VlanSet) -> Value {
    let mut vlans = vlans.clone();
    vlans.remove(Vlan::DEFAULT);
    Value::from(vlans.to_string())
}

fn ids(vlans: &VlanSet) -> Value {
    Value::from(vlans.iter().map(Vlan::id).collect::<Vec<u16>>())
}

/// Each run of neighbouring VLANs by itself: `101-104`.
fn runs(vlans: &VlanSet) -> Value {
    let list = vlans.to_string();
    let runs: Vec<String> =
        list.split(',').filter(|run| !run.is_empty()).map(str::to_owned).collect();
    Value::from(runs)
}
