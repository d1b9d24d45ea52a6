//! Open vSwitch: shell scripts of `ovs-vsctl` and flows.

mod flows;
mod parser;

use minijinja::Value;

use super::Language;
use crate::dialect::linux::{self, ScriptedBridge};
use crate::dialect::page;
use crate::dialect::state::SwitchState;
use crate::model::{GENERIC, ModelFacts};
use crate::{PortSettings, SwitchSettings, Vlan};

const NAME: &str = "open-vswitch";

/// The number of the port by which the machine itself hears the management VLAN.
const MANAGE_PORT: u16 = 65_000;

/// `other_config:mac-table-size` goes to 1,000,000; ports are as in `OpenFlow` 1.0.
static MODELS: [ModelFacts; 1] = [ModelFacts {
    name: NAME,
    ports: 1_023,
    table_entries: 1_000_000,
    bundles: 1_023,
    // `other_config:mac-aging-time`; what is less than 15 s is taken for 15 s.
    ageing_s_min: 15,
    ageing_s_max: Some(3_600),
    ..GENERIC
}];

static LANGUAGE: Language =
    linux::language(NAME, &MODELS, include_str!("template.j2"), parser::read);

/// A bridge of Open vSwitch with flows of its own.
pub(super) static OPEN_VSWITCH: ScriptedBridge = ScriptedBridge {
    language: &LANGUAGE,
    takes_tagged: false,
    check_port,
    check_switch,
    own_variables: |after| {
        vec![("floods", floods(after)), ("manage_port", Value::from(MANAGE_PORT))]
    },
};

fn check_port(port: &PortSettings) -> Result<(), String> {
    if port.accept_tagged && port.members().is_empty() {
        return Err("flows that take tags of no VLAN are none".into());
    }
    if port.bundle.is_some() {
        return Err(
            "Open vSwitch spreads frames over a bundle only without flows, and flows are needed \
             here; use single links, or the dialect `linux-bridge`"
                .into(),
        );
    }
    Ok(())
}

fn check_switch(settings: &SwitchSettings) -> Result<(), String> {
    let Some(span) = settings.ageing else { return Ok(()) };
    let seconds = span.get() / 1_000_000_000;
    if !(1..=65_535).contains(&seconds) || span.get() % 1_000_000_000 != 0 {
        return Err(format!(
            "an ageing time of {span}: allowed are 1 to 65535 whole seconds, or never"
        ));
    }
    Ok(())
}

/// For each VLAN the actions that send a frame to all its ports: those with tags first.
fn floods(after: &SwitchState) -> Value {
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
            page::record([("vlan", Value::from(vlan.id())), ("actions", actions)])
        })
    };
    Value::from(after.settings.vlans.iter().filter_map(flood).collect::<Vec<Value>>())
}
