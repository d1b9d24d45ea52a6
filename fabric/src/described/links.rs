//! A wiring that is written link by link.
//!
//! Ports that are named are taken first; then, in the order of the file, hosts get the lowest free ports
//! of their switch and trunks the highest.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::{Device, Fabric, Link, LinkEnd};

use super::{DescribeError, wrong};
use crate::{Host, PortNumber, Switch, SwitchId, SwitchModel, Trunk, TrunkEnd, Wiring};

const KEY: &str = "links.between";

/// The wiring of the links.
pub(super) fn wire(
    fabric: &Fabric,
    switches: Vec<Switch>,
    hosts: &[&Device],
) -> Result<Wiring, DescribeError> {
    let names: BTreeMap<&str, usize> =
        switches.iter().enumerate().map(|(at, switch)| (switch.name.as_str(), at)).collect();
    let mut panels: Vec<Panel<'_>> = switches.iter().map(Panel::new).collect();
    for link in &fabric.links {
        for end in &link.ends {
            if let Some(&at) = names.get(end.device.as_str()) {
                panels[at].reserve(link, end)?;
            }
        }
    }
    let mut of_hosts: BTreeMap<&str, (SwitchId, Vec<PortNumber>)> = BTreeMap::new();
    let mut trunks = Vec::new();
    for link in &fabric.links {
        let [one, other] = link.ends.each_ref().map(|end| names.get(end.device.as_str()).copied());
        match (one, other) {
            (Some(one), Some(other)) => {
                let ends = [
                    panels[one].end(SwitchId::new(one), link, &link.ends[0], Side::Highest)?,
                    panels[other].end(SwitchId::new(other), link, &link.ends[1], Side::Highest)?,
                ];
                trunks.push(Trunk { ends });
            }
            (Some(at), None) | (None, Some(at)) => {
                let [first, second] = &link.ends;
                let (switch, host) = if one.is_some() { (first, second) } else { (second, first) };
                let end = panels[at].end(SwitchId::new(at), link, switch, Side::Lowest)?;
                if of_hosts.insert(host.device.as_str(), (end.switch, end.ports)).is_some() {
                    let text = format!(
                        "`{}` is linked twice; several cables are one link with `cables`",
                        host.device
                    );
                    return Err(wrong(link.place, KEY, text));
                }
            }
            (None, None) => {
                let text = format!("`{}` is no switch", link.ends[0].device);
                return Err(wrong(link.place, KEY, text));
            }
        }
    }
    let hosts = hosts
        .iter()
        .map(|host| {
            let (switch, ports) = of_hosts.remove(host.name.as_str()).ok_or_else(|| {
                wrong(host.place, "hosts.name", format!("`{}` is linked to no switch", host.name))
            })?;
            Ok(Host { name: host.name.clone(), switch, ports, mac: host.mac })
        })
        .collect::<Result<Vec<Host>, DescribeError>>()?;
    Ok(Wiring { switches, hosts, trunks, rate: fabric.rate.value })
}

#[derive(Clone, Copy)]
enum Side {
    Lowest,
    Highest,
}

/// The ports of a switch that are taken.
struct Panel<'a> {
    name: &'a str,
    model: &'a SwitchModel,
    taken: BTreeSet<u16>,
    bundles: u16,
}

impl<'a> Panel<'a> {
    fn new(switch: &'a Switch) -> Self {
        Self { name: &switch.name, model: &switch.model, taken: BTreeSet::new(), bundles: 0 }
    }

    /// Takes the ports that are named.
    fn reserve(&mut self, link: &Link, end: &LinkEnd) -> Result<(), DescribeError> {
        for &port in &end.ports {
            if port == 0 || port > self.model.ports {
                let text = format!(
                    "`{}` ({}) has no port {port}; its ports are 1 to {}",
                    self.name, self.model.name, self.model.ports
                );
                return Err(wrong(link.place, KEY, text));
            }
            if !self.taken.insert(port) {
                let text = format!("port {port} of `{}` is used twice", self.name);
                return Err(wrong(link.place, KEY, text));
            }
        }
        Ok(())
    }

    /// The end of a link at this switch: the ports that it names, or free ones.
    fn end(
        &mut self,
        switch: SwitchId,
        link: &Link,
        end: &LinkEnd,
        side: Side,
    ) -> Result<TrunkEnd, DescribeError> {
        let count = usize::try_from(link.cables).expect("machines of 32 bits and more");
        if count > 1 {
            self.check_bundle(link, count)?;
        }
        if !end.ports.is_empty() {
            let ports = end.ports.iter().copied().map(PortNumber).collect();
            return Ok(TrunkEnd { switch, ports });
        }
        let free = (1..=self.model.ports).filter(|port| !self.taken.contains(port));
        let mut ports: Vec<u16> = match side {
            Side::Lowest => free.take(count).collect(),
            Side::Highest => free.rev().take(count).collect(),
        };
        if ports.len() < count {
            let text = format!(
                "`{}` ({}) has {} free ports left of {}, {count} are needed",
                self.name,
                self.model.name,
                ports.len(),
                self.model.ports
            );
            return Err(wrong(link.place, KEY, text));
        }
        ports.sort_unstable();
        self.taken.extend(&ports);
        Ok(TrunkEnd { switch, ports: ports.into_iter().map(PortNumber).collect() })
    }

    fn check_bundle(&mut self, link: &Link, count: usize) -> Result<(), DescribeError> {
        self.bundles += 1;
        let (ports, bundles) = (self.model.bundle_ports, self.model.bundles);
        let of = format!("`{}` ({})", self.name, self.model.name);
        if count > usize::from(ports) {
            let text = format!("a bundle of {count} is more than {of} allows: {ports}");
            return Err(wrong(link.place, "links.cables", text));
        }
        if self.bundles > bundles {
            let text = format!("{of} allows {bundles} bundles, this is one more");
            return Err(wrong(link.place, "links.cables", text));
        }
        Ok(())
    }
}
