//! What templates are given: the settings of a switch in the words of its dialect.

use std::collections::BTreeMap;

use minijinja::Value;

use super::Dialect;
use super::names::{bundle_interface, fastpath_list, port_name};
use super::open_vswitch::MANAGE_PORT;
use super::state::SwitchState;
use crate::{Bundling, PortNumber, PortSettings, SwitchId, Vlan, VlanSet, Wiring};

/// A change of a switch, in the words of a dialect.
pub(super) struct Page<'a> {
    pub(super) dialect: Dialect,
    pub(super) wiring: &'a Wiring,
    pub(super) switch: SwitchId,
    pub(super) before: &'a SwitchState,
    pub(super) after: &'a SwitchState,
    /// Whether the switch is in its blank state before.
    pub(super) fresh: bool,
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
        let (before, after) = (&self.before.settings, &self.after.settings);
        let interfaces = self.interfaces();
        let changed = |interface: &&Interface<'_>| {
            self.fresh || interface.was != Some(interface.port) || !interface.joining.is_empty()
        };
        let shown: Vec<Value> =
            interfaces.iter().filter(changed).map(|interface| self.interface(interface)).collect();
        let all: Vec<Value> =
            interfaces.iter().map(|interface| self.interface(interface)).collect();
        let pause = |ports: &[PortSettings]| ports.first().map(|port| port.flow_control);
        let new_pause = pause(&after.ports);
        let pause_changed =
            new_pause.is_some() && (self.fresh || new_pause != pause(&before.ports));
        let ageing = after.ageing.filter(|_| self.fresh || before.ageing != after.ageing);
        let never = after.ageing.is_none() && (self.fresh || before.ageing.is_some());
        let protocol = self.fresh || before.spanning_tree != after.spanning_tree;
        let management = self.after.management.filter(|vlan| Some(*vlan) != self.before.management);
        let left = self.before.management.filter(|vlan| Some(*vlan) != self.after.management);
        record([
            ("switch", Value::from(&self.wiring.switches[self.switch.place()].name)),
            ("fresh", Value::from(self.fresh)),
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
            ("bundles_removed", self.bundles_removed(&interfaces)),
            ("interfaces", Value::from(shown)),
            ("relearn", Value::from(self.fresh || self.members_change())),
            ("all", Value::from(all)),
            ("floods", self.floods()),
            ("managed", Value::from(self.after.management.map(Vlan::id))),
            ("manage_port", Value::from(MANAGE_PORT)),
            ("timeout_s", Value::from(after.ageing.map_or(0, |span| span.get() / 1_000_000_000))),
        ])
    }

    fn interfaces(&self) -> Vec<Interface<'_>> {
        let (before, after) = (self.before, &self.after.settings);
        let numbers = before.numbers_for(after);
        let mut interfaces = Vec::new();
        for (port, number) in after.ports.iter().zip(numbers) {
            let name = match number {
                Some(number) if self.dialect == Dialect::PowerConnect => number.to_string(),
                Some(number) => bundle_interface(number),
                None => port_name(self.dialect, port.ports[0]),
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
        let mut before = self.before.settings.ports.iter();
        match number {
            None => before.find(|own| own.bundle.is_none() && own.ports == port.ports),
            Some(number) => before.find(|own| {
                own.bundle == port.bundle
                    && own.bundle.is_some()
                    && self.before.number_of(&own.ports) == Some(number)
            }),
        }
    }

    /// Whether any port is in other VLANs than before, so that what was learned may be wrong.
    fn members_change(&self) -> bool {
        let members = |state: &SwitchState| -> Vec<(PortNumber, VlanSet, VlanSet)> {
            let ports = state.settings.ports.iter();
            ports.map(|own| (own.ports[0], own.untagged.clone(), own.tagged.clone())).collect()
        };
        members(self.before) != members(self.after)
    }

    /// The ports that are open before and not after.
    fn closed(&self) -> Vec<PortNumber> {
        let mut ports: Vec<PortNumber> =
            self.before.settings.ports.iter().flat_map(|own| own.ports.clone()).collect();
        ports.retain(|port| self.after.port(*port).is_none());
        ports.sort();
        ports
    }

    /// The ports that leave a bundle and stay open.
    fn leaving(&self, interfaces: &[Interface<'_>]) -> Vec<PortNumber> {
        let bundles = self.before.settings.ports.iter().filter(|own| own.bundle.is_some());
        let mut ports: Vec<PortNumber> = Vec::new();
        for own in bundles {
            let number = self.before.number_of(&own.ports);
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

    fn bundles_removed(&self, interfaces: &[Interface<'_>]) -> Value {
        let numbers = self.before.settings.ports.iter().filter(|own| own.bundle.is_some());
        let gone = numbers.filter_map(|own| {
            let number = self.before.number_of(&own.ports)?;
            let kept = interfaces
                .iter()
                .any(|new| new.number == Some(number) && new.port.bundle == own.bundle);
            (!kept).then(|| bundle_interface(number))
        });
        Value::from(gone.collect::<Vec<String>>())
    }

    /// Ports in the dialect's words: one list for FASTPATH, several names elsewhere.
    fn list(&self, ports: &[PortNumber]) -> Value {
        if self.dialect == Dialect::PowerConnect {
            return Value::from(fastpath_list(ports));
        }
        let names: Vec<String> = ports.iter().map(|port| port_name(self.dialect, *port)).collect();
        Value::from(names)
    }

    fn interface(&self, interface: &Interface<'_>) -> Value {
        let Interface { port, number, name, was, joining } = interface;
        // A FASTPATH port that was alone and open keeps what it had; every other begins anew.
        let delivered = match self.dialect {
            Dialect::PowerConnect if port.accept_tagged => VlanSet::from_iter([Vlan::DEFAULT]),
            _ => VlanSet::EMPTY,
        };
        let kept = was.filter(|was| was.accept_tagged == port.accept_tagged);
        let reset = !self.fresh && was.is_none();
        let (old_untagged, old_tagged) = kept
            .map_or((delivered, VlanSet::EMPTY), |was| (was.untagged.clone(), was.tagged.clone()));
        let old_pvid = kept.and_then(|was| was.pvid);
        let moved = VlanSet::from_iter(old_pvid.filter(|vlan| Some(*vlan) != port.pvid));
        let untagged = port.untagged.difference(&old_untagged);
        let tagged = port.tagged.difference(&old_tagged);
        let untagged_set = untagged.union(&moved.intersection(&port.untagged));
        let tagged_set = tagged.union(&moved.intersection(&port.tagged));
        let removed = old_untagged.union(&old_tagged).difference(&port.members());
        // What a port that was shut had is not known.
        let paused = |one: &&PortNumber| {
            self.before.port(**one).map(|was| was.flow_control) == Some(port.flow_control)
        };
        let pause = port.ports.iter().filter(|one| !paused(one));
        let pause: Vec<String> = pause.map(|port| port_name(self.dialect, *port)).collect();
        let ports: Vec<String> =
            port.ports.iter().map(|port| port_name(self.dialect, *port)).collect();
        let bundle = port.bundle.map(|bundling| match bundling {
            Bundling::Lacp => "lacp",
            Bundling::Static => "static",
        });
        let pvid_untagged = port.pvid.is_some_and(|vlan| port.untagged.contains(vlan));
        record([
            ("name", Value::from(name)),
            ("number", Value::from(*number)),
            ("bundle", Value::from(bundle)),
            ("ports", Value::from(ports)),
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
            ("untagged_runs", runs(&untagged_set)),
            ("tagged_runs", runs(&tagged_set)),
            ("removed_runs", runs(&removed)),
            ("flow_control", Value::from(port.flow_control)),
            ("pause_set", Value::from(pause)),
        ])
    }

    /// For each VLAN the actions that send a frame to all its ports: those with tags first.
    fn floods(&self) -> Value {
        let Self { after, .. } = self;
        let flood = |vlan: Vlan| {
            let to = |is_member: fn(&PortSettings, Vlan) -> bool| {
                let ports = after.settings.ports.iter().filter(move |port| is_member(port, vlan));
                ports.map(|port| format!("output:{}", port.ports[0]))
            };
            let mut actions: Vec<String> = to(|port, vlan| port.tagged.contains(vlan)).collect();
            let mut rest: Vec<String> = to(|port, vlan| port.untagged.contains(vlan)).collect();
            if after.management == Some(vlan) {
                rest.push(format!("output:{MANAGE_PORT}"));
            }
            if !rest.is_empty() {
                actions.push("strip_vlan".to_owned());
                actions.append(&mut rest);
            }
            (!actions.is_empty()).then(|| {
                let actions = Value::from(actions.join(","));
                record([("vlan", Value::from(vlan.id())), ("actions", actions)])
            })
        };
        Value::from(after.settings.vlans.iter().filter_map(flood).collect::<Vec<Value>>())
    }

    /// What is plugged in, for a comment.
    fn peer(&self, port: &PortSettings) -> String {
        let own = |ports: &[PortNumber]| ports.iter().any(|one| port.ports.contains(one));
        let hosts = &self.wiring.hosts;
        if let Some(host) = hosts.iter().find(|host| host.switch == self.switch && own(&host.ports))
        {
            return format!("host {}", host.name);
        }
        let mut trunks = self.wiring.trunks.iter().flat_map(|trunk| {
            let [one, other] = &trunk.ends;
            [(one, other), (other, one)]
        });
        match trunks.find(|(near, _)| near.switch == self.switch && own(&near.ports)) {
            Some((_, far)) => {
                let ports: Vec<String> = far.ports.iter().map(ToString::to_string).collect();
                let name = &self.wiring.switches[far.switch.place()].name;
                format!("trunk to {name}, port {}", ports.join("+"))
            }
            None => "nothing is plugged in".to_owned(),
        }
    }
}

fn record<const N: usize>(pairs: [(&'static str, Value); N]) -> Value {
    Value::from(BTreeMap::from(pairs))
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
