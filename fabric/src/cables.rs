//! The cables of a fabric: what is plugged into each port, for the person who plugs.

use std::fmt;

use crate::{HostId, PortNumber, SwitchId, TrunkId, Wiring};

/// What is plugged into a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cable {
    /// The port of the switch whose cables are listed.
    pub port: PortNumber,
    /// What the other end of the cable is plugged into.
    pub to: CableEnd,
    /// Which cable it is of those that are aggregated, the first being 1, and how many they are.
    pub of_bundle: (usize, usize),
}

/// The far end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CableEnd {
    /// A host; which of its own ports it is, nobody says.
    Host(HostId),
    /// A port of another switch.
    Switch {
        /// The trunk that the cable is part of.
        trunk: TrunkId,
        /// The switch at the other end.
        switch: SwitchId,
        /// The port that it is plugged into.
        port: PortNumber,
    },
}

/// The cables of a switch, by port. Every cable between switches is in the lists of both.
pub fn cables(wiring: &Wiring, switch: SwitchId) -> Vec<Cable> {
    let mut list = Vec::new();
    for (place, host) in wiring.hosts.iter().enumerate().filter(|(_, host)| host.switch == switch) {
        for (number, port) in (1..).zip(&host.ports) {
            let to = CableEnd::Host(HostId::new(place));
            list.push(Cable { port: *port, to, of_bundle: (number, host.ports.len()) });
        }
    }
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        let [one, other] = &trunk.ends;
        for (near, far) in [(one, other), (other, one)] {
            if near.switch != switch {
                continue;
            }
            for (number, (port, beyond)) in (1..).zip(near.ports.iter().zip(&far.ports)) {
                let trunk = TrunkId::new(place);
                let to = CableEnd::Switch { trunk, switch: far.switch, port: *beyond };
                list.push(Cable { port: *port, to, of_bundle: (number, near.ports.len()) });
            }
        }
    }
    list.sort_by_key(|cable| cable.port);
    list
}

/// A list for printing: one line for each cable, one block for each switch.
#[derive(Debug, Clone, Copy)]
pub struct CableList<'a> {
    /// The wiring whose cables are listed.
    pub wiring: &'a Wiring,
    /// The switch; `None`: all of them.
    pub switch: Option<SwitchId>,
}

impl fmt::Display for CableList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wiring, switch } = *self;
        let all = (0..wiring.switches.len()).map(SwitchId::new);
        let mut gap = "";
        for own in all.filter(|own| switch.is_none_or(|only| only == *own)) {
            let list = cables(wiring, own);
            let switch = &wiring.switches[own.place()];
            let (used, ports) = (list.len(), switch.model.ports);
            writeln!(f, "{gap}{} ({}): {used} of {ports} ports", switch.name, switch.model.name)?;
            for Cable { port, to, of_bundle: (number, cables) } in list {
                write!(f, "  port {port:>4}  ")?;
                match to {
                    CableEnd::Host(host) => write!(f, "{}", wiring.hosts[host.place()].name)?,
                    CableEnd::Switch { switch, port, .. } => {
                        write!(f, "{}, port {port}", wiring.switches[switch.place()].name)?;
                    }
                }
                match cables {
                    1 => writeln!(f)?,
                    _ => writeln!(f, "  (cable {number} of {cables})")?,
                }
            }
            gap = "\n";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parts, SwitchModel, Topology, cable};

    fn wiring() -> Wiring {
        let graph = "ring 3".parse::<Topology>().unwrap().graph();
        let mut parts =
            Parts::uniform(&graph, &SwitchModel::named("powerconnect-6248").unwrap(), 2);
        parts.cables_per_link = 2;
        cable(&graph, parts).unwrap()
    }

    #[test]
    fn every_cable_between_switches_is_in_both_lists() {
        let wiring = wiring();
        let mut ends = 0;
        for place in 0..3 {
            let own = SwitchId::new(place);
            for cable in cables(&wiring, own) {
                if let CableEnd::Switch { trunk, switch, port } = cable.to {
                    let back = cables(&wiring, switch).into_iter().find(|far| far.port == port);
                    let to = CableEnd::Switch { trunk, switch: own, port: cable.port };
                    assert_eq!(back.unwrap().to, to);
                    ends += 1;
                }
            }
        }
        assert_eq!(ends, 3 * 2 * 2);
    }

    #[test]
    fn a_list_names_port_and_other_end() {
        let wiring = wiring();
        let list = CableList { wiring: &wiring, switch: Some(SwitchId::new(0)) };
        insta::assert_snapshot!(list.to_string(), @r##"
    s0 (powerconnect-6248): 6 of 48 ports
      port    1  h0
      port    2  h1
      port   45  s1, port 45  (cable 1 of 2)
      port   46  s1, port 46  (cable 2 of 2)
      port   47  s2, port 45  (cable 1 of 2)
      port   48  s2, port 46  (cable 2 of 2)
    "##);
    }
}
