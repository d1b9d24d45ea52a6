//! Reads the shell scripts that set up a bridge of Open vSwitch with flows.
//!
//! `native-untagged` ports keep the tags of all VLANs but one, so a port that is an untagged member of
//! several needs flows. The flows of a text replace those that are there; what was learned stays unless
//! ports are in other VLANs than before.

use std::collections::{BTreeMap, BTreeSet};

use super::MANAGE_PORT;
use super::flows::Flows;
use crate::dialect::linux::interface_port;
use crate::dialect::reading::{Line, ParseError, statements};
use crate::dialect::state::SwitchState;
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, VlanSet};

struct Machine<'a> {
    model: &'a SwitchModel,
    spanning_tree: bool,
    ports: BTreeSet<PortNumber>,
    manages: bool,
    pause: BTreeMap<PortNumber, bool>,
    flows: Option<Flows>,
    /// Whether it forwards by itself when a controller is gone, without regard to VLANs.
    standalone: bool,
}

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let settings = &before.settings;
    let numbers = || settings.ports.iter().flat_map(|port| port.ports.iter().copied());
    let mut machine = Machine {
        model,
        spanning_tree: settings.spanning_tree,
        ports: numbers().collect(),
        manages: before.management.is_some(),
        pause: settings.ports.iter().map(|port| (port.ports[0], port.flow_control)).collect(),
        flows: None,
        standalone: false,
    };
    let mut in_flows = false;
    for line in statements(text, '#') {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match (in_flows, words.as_slice()) {
            (true, ["END"]) => in_flows = false,
            (true, _) => machine.flows.get_or_insert_default().add(line)?,
            (false, ["set", "-e"]) => {}
            (false, ["ovs-ofctl", "add-flows", "br0", "-", "<<'END'"]) => {
                in_flows = true;
                machine.flows = Some(Flows::default());
            }
            (false, ["ovs-vsctl", words @ ..]) => machine.vsctl(line, words)?,
            // Where the switch itself is reached: nothing that frames of others depend on.
            (false, ["ip", "addr" | "address", "add" | "replace", _, "dev", "manage"])
                if machine.manages => {}
            (false, ["ethtool", "--pause" | "-A", name, "rx", rx, "tx", tx])
            | (false, ["ethtool", "--pause" | "-A", name, "rx", rx @ "off", "tx", tx, "||", ":"]) =>
            {
                let (true, Some(port)) = (rx == tx, interface_port(name)) else {
                    return Err(line.wrong("pause frames of ports are on or off both ways"));
                };
                machine.pause.insert(port, *rx == "on");
            }
            _ => {
                let allowed = "allowed are `ovs-vsctl`, `ovs-ofctl add-flows` and `ethtool`";
                return Err(line.wrong(format!("is not understood; {allowed}")));
            }
        }
    }
    if in_flows {
        return Err(ParseError::whole("the flows have no `END`".to_owned()));
    }
    machine.state(before)
}

impl Machine<'_> {
    fn vsctl(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        for command in words.split(|word| *word == "--") {
            match command {
                ["--may-exist", "add-br", "br0"] | ["add-br", "br0"] => self.standalone = true,
                ["set", "bridge", "br0", options @ ..] => self.options(line, options)?,
                ["set", "interface", "manage", "type=internal", "ofport_request=65000"] => {}
                ["set", "interface", name, request] => {
                    let number = request.strip_prefix("ofport_request=");
                    let number = number.and_then(|number| number.parse().ok()).map(PortNumber);
                    if number.is_none() || number != interface_port(name) {
                        return Err(line.wrong("the number of a port is that in its name"));
                    }
                }
                ["--may-exist", "add-port", "br0", name] | ["add-port", "br0", name] => {
                    if *name == "manage" {
                        self.manages = true;
                    } else {
                        self.ports.insert(self.port(line, name)?);
                    }
                }
                ["del-port", "br0", "manage"] if self.manages => self.manages = false,
                ["del-port", "br0", name] => {
                    if !self.ports.remove(&self.port(line, name)?) {
                        return Err(line.wrong(format!("`{name}` is not in the bridge")));
                    }
                }
                _ => {
                    return Err(
                        line.wrong("is not understood (docs/fabric-deployment.md lists what is)")
                    );
                }
            }
        }
        Ok(())
    }

    fn options(&mut self, line: Line<'_>, options: &[&str]) -> Result<(), ParseError> {
        for option in options {
            match *option {
                "fail_mode=secure" => self.standalone = false,
                "stp_enable=true" => self.spanning_tree = true,
                "stp_enable=false" => self.spanning_tree = false,
                _ => return Err(line.wrong(format!("the option `{option}` is not understood"))),
            }
        }
        Ok(())
    }

    fn port(&self, line: Line<'_>, name: &str) -> Result<PortNumber, ParseError> {
        let most = self.model.ports;
        let port = interface_port(name).filter(|port| port.0 <= most);
        port.ok_or_else(|| line.wrong(format!("`{name}` is no port; they are swp1 to swp{most}")))
    }

    fn state(self, before: &SwitchState) -> Result<SwitchState, ParseError> {
        if self.standalone {
            return Err(ParseError::whole(
                "without `fail_mode=secure` the bridge passes frames on by itself, whatever their VLAN, \
                 when its controller is gone"
                    .to_owned(),
            ));
        }
        let mut settings =
            SwitchSettings { spanning_tree: self.spanning_tree, ..before.settings.clone() };
        let mut management = before.management.filter(|_| self.manages);
        let Some(flows) = &self.flows else {
            settings.ports.retain(|port| self.ports.contains(&port.ports[0]));
            return Ok(SwitchState { settings, management, bundles: BTreeMap::new() });
        };
        let Some(ageing) = flows.ageing else {
            return Err(ParseError::whole("no flow of table 1 learns addresses".to_owned()));
        };
        let known = |port: &u16| {
            self.ports.contains(&PortNumber(*port)) || (*port == MANAGE_PORT && self.manages)
        };
        if let Some(port) = flows.ports().into_iter().find(|port| !known(port)) {
            let problem = format!("flows name port {port}, which is not in the bridge");
            return Err(ParseError::whole(problem));
        }
        let ports = self.ports.iter().map(|port| self.settings(flows, *port));
        settings.ports = ports.collect::<Result<_, _>>()?;
        settings.ageing = ageing;
        if self.manages {
            management = flows.pvids.get(&MANAGE_PORT).copied();
        }
        Ok(SwitchState { settings, management, bundles: BTreeMap::new() }.normal(false))
    }

    fn settings(&self, flows: &Flows, port: PortNumber) -> Result<PortSettings, ParseError> {
        let member = |untagged: bool| -> VlanSet {
            let vlans = flows.floods.iter().filter(|(_, (with, without))| {
                (if untagged { without } else { with }).contains(&port.0)
            });
            vlans.map(|(vlan, _)| *vlan).collect()
        };
        let (untagged, tagged) = (member(true), member(false));
        let members = untagged.union(&tagged);
        let wrong = |what: String| Err(ParseError::whole(format!("flows of port {port}: {what}")));
        if let Some(vlan) =
            members.iter().find(|vlan| !flows.agrees(port.0, *vlan, untagged.contains(*vlan)))
        {
            return wrong(format!("known and unknown addresses of VLAN {vlan} are not sent alike"));
        }
        let taken = flows.taken.get(&port.0).cloned().unwrap_or_default();
        if !taken.is_empty() && taken != members {
            return wrong(format!("tags {taken} are taken, of VLANs {members}"));
        }
        let pvid = flows.pvids.get(&port.0).copied();
        if let Some(vlan) = pvid.filter(|vlan| !members.contains(*vlan)) {
            return wrong(format!("frames without a tag are in VLAN {vlan}, which it is not in"));
        }
        Ok(PortSettings {
            ports: vec![port],
            bundle: None,
            pvid,
            untagged,
            tagged,
            accept_tagged: !taken.is_empty(),
            flow_control: self.pause.get(&port).copied().unwrap_or(false),
        })
    }
}
