//! What differs between two states of a switch, port by port.

use std::collections::BTreeSet;
use std::fmt;

use super::state::SwitchState;
use crate::{Bundling, PortNumber, PortSettings, Vlan, VlanSet};

/// One setting that differs between two states of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The port, or the first of the bundle; `None` if it is about the whole switch.
    pub port: Option<PortNumber>,
    /// The setting: `pvid`, `untagged`, `tagged`, `ageing` ..
    pub what: &'static str,
    /// As it was, or is meant to be.
    pub before: String,
    /// As it is, or was found.
    pub after: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, what, before, after } = self;
        if let Some(port) = port {
            write!(f, "port {port}: ")?;
        }
        write!(f, "{what} {before} -> {after}")
    }
}

/// One setting of a port, for people.
type Telling = fn(&PortSettings) -> String;

/// What differs: the switch as a whole first, then its ports in order.
pub fn differences(before: &SwitchState, after: &SwitchState) -> Vec<Difference> {
    let mut list = List { port: None, found: Vec::new() };
    let (old, new) = (&before.settings, &after.settings);
    let span = |state: &SwitchState| {
        state.settings.ageing.map_or_else(|| "never".to_owned(), |span| span.to_string())
    };
    list.add("vlans", set(&old.vlans), set(&new.vlans));
    list.add("ageing", span(before), span(after));
    list.add("spanning tree", on(old.spanning_tree), on(new.spanning_tree));
    list.add("management", vlan(before.management), vlan(after.management));
    let numbers: BTreeSet<PortNumber> =
        old.ports.iter().chain(&new.ports).flat_map(|port| port.ports.clone()).collect();
    for number in numbers {
        list.port = Some(number);
        let (was, is) = (before.port(number), after.port(number));
        list.add("bundle", bundle(was, number), bundle(is, number));
        // What a bundle is set to is told once, at its first port.
        let told = |port: Option<&PortSettings>| {
            port.is_some_and(|port| port.ports.first() != Some(&number))
        };
        if told(was) && told(is) {
            continue;
        }
        let all: [(&'static str, Telling); 5] = [
            ("pvid", |port| vlan(port.pvid)),
            ("untagged", |port| set(&port.untagged)),
            ("tagged", |port| set(&port.tagged)),
            ("tagged frames", |port| {
                (if port.accept_tagged { "accepted" } else { "dropped" }).into()
            }),
            ("flow control", |port| on(port.flow_control)),
        ];
        match (was, is) {
            (Some(was), Some(is)) => {
                all.iter().for_each(|(what, text)| list.add(what, text(was), text(is)));
            }
            _ => list.add("is", open(was), open(is)),
        }
    }
    list.found
}

struct List {
    port: Option<PortNumber>,
    found: Vec<Difference>,
}

impl List {
    fn add(&mut self, what: &'static str, before: String, after: String) {
        if before != after {
            self.found.push(Difference { port: self.port, what, before, after });
        }
    }
}

fn on(is: bool) -> String {
    (if is { "on" } else { "off" }).to_owned()
}

fn set(vlans: &VlanSet) -> String {
    if vlans.is_empty() { "none".to_owned() } else { vlans.to_string() }
}

fn vlan(vlan: Option<Vlan>) -> String {
    vlan.map_or_else(|| "none".to_owned(), |vlan| vlan.to_string())
}

fn open(port: Option<&PortSettings>) -> String {
    let Some(port) = port else { return "shut down".to_owned() };
    format!(
        "open (pvid {}, untagged {}, tagged {})",
        vlan(port.pvid),
        set(&port.untagged),
        set(&port.tagged)
    )
}

fn bundle(port: Option<&PortSettings>, number: PortNumber) -> String {
    let Some((port, bundling)) = port.and_then(|port| Some((port, port.bundle?))) else {
        return "none".to_owned();
    };
    let protocol = match bundling {
        Bundling::Lacp => "LACP",
        Bundling::Static => "static",
    };
    let others: Vec<String> =
        port.ports.iter().filter(|one| **one != number).map(ToString::to_string).collect();
    match others.is_empty() {
        true => format!("{protocol}, alone"),
        false => format!("{protocol}, with {}", others.join("+")),
    }
}
