//! What is built inside: spaces (a switch or a host each), cables, bundles, bridges.
//!
//! A blueprint is made from a wiring and its configuration and holds nothing that a kernel does not
//! understand, so that the part inside needs to know nothing of fabrics. It decides every name, index
//! and address, so that nothing has to be asked back while the lab is set up.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use meikyo_fabric::dialect::{HostTextError, bundle_interface, host_text, port_interface};
use meikyo_fabric::{
    Bundling, Configuration, HostId, PortNumber, PortSettings, Switch, Vlan, VlanSet, Wiring,
};
use meikyo_units::{BitsPerSecond, Nanos};
use serde::{Deserialize, Serialize};

/// The space of the manager: it reaches the agents of all hosts and switches over links of their own.
pub const MANAGER: &str = "manager";
/// The interface of a host in the fabric.
pub const HOST_INTERFACE: &str = "eth0";
/// The interface of hosts and switches in the management network.
pub const MANAGEMENT_INTERFACE: &str = "mgmt0";
/// The bridge of a switch.
pub const BRIDGE: &str = "br0";

/// What the settings' "never" becomes: ten times the longest span that a switch of the paper has.
const AGEING_NEVER: Nanos = Nanos::from_secs(10_000_000);
/// The longest name of a network interface, and of a space as a host name.
const NAME_BYTES_MAX: usize = 63;
/// Hosts have the addresses 10.0.0.1 and following, those of the management network 10.128.0.1.
const HOSTS_MAX: usize = 0x7f_fff0;

/// Indices of devices, given here so that they need not be asked. Those of switch ports differ between
/// switches, too: the kernel tells a bridge at once that a cable carries only if its ends differ, and
/// else up to a second later.
const BRIDGE_INDEX: u32 = 2;
const MANAGEMENT_INDEX: u32 = 3;
const HOST_INDEX: u32 = 4;
const PORT_INDEX: u32 = 100;
const SWITCH_INDEX: u32 = 0x2_0000;
const BUNDLE_INDEX: u32 = 0x1_0000;

/// Everything that is built inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// The spaces: switches first, then hosts, then the manager if there is one.
    pub spaces: Vec<Space>,
    /// Cables between ports, each with two ends.
    pub cables: Vec<Cable>,
    /// The rate that every cable is shaped to, in bit/s; `None` leaves them as fast as the machine.
    pub rate: Option<u64>,
}

/// A network namespace with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Its name: that of the switch or the host.
    pub name: String,
    /// Host or switch, with what either needs.
    pub role: Role,
    /// Bundles of devices.
    pub bundles: Vec<Bundle>,
    /// The address of the management interface, in a network of 9 bits.
    pub management: Option<Ipv4Addr>,
}

/// What a space is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A switch with its bridge.
    Switch(Bridge),
    /// A host with its address in the fabric, in a network of 9 bits.
    Host {
        /// Internet address.
        address: Ipv4Addr,
        /// Ethernet address.
        mac: [u8; 6],
        /// A batch for `tc` by which the host tags its frames, if it does.
        rules: Option<String>,
    },
    /// The manager: a plain bridge of the management network.
    Manager,
}

/// A bridge with VLAN filtering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridge {
    /// After how long an address is forgotten, in hundredths of a second.
    pub ageing_centiseconds: u32,
    /// Whether the spanning tree protocol runs.
    pub spanning_tree: bool,
    /// The ports, in order.
    pub ports: Vec<BridgePort>,
}

/// A port of a bridge: a device, or a bundle of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgePort {
    /// The device's name.
    pub device: String,
    /// The device's index.
    pub index: u32,
    /// The VLAN of frames without a tag.
    pub pvid: Option<u16>,
    /// VLANs that go out without a tag.
    pub untagged: Vec<u16>,
    /// VLANs that go out with one.
    pub tagged: Vec<u16>,
}

/// Devices that are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The name of the whole.
    pub device: String,
    /// The index that its interface is given.
    pub index: u32,
    /// The Ethernet address; `None` leaves it to the kernel.
    pub mac: Option<[u8; 6]>,
    /// Whether LACP is spoken.
    pub lacp: bool,
    /// The indices of the devices.
    pub members: Vec<u32>,
}

/// A cable between two spaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// Which traffic the cable carries.
    pub purpose: Purpose,
    /// The interface at either end.
    pub ends: [CableEnd; 2],
}

/// What a cable is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// A host's link.
    Host,
    /// A link between switches.
    Trunk,
    /// A link to the manager, which is neither shaped nor part of the fabric.
    Management,
}

/// An end of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableEnd {
    /// The place of the space in [`Blueprint::spaces`].
    pub space: usize,
    /// The device's name.
    pub device: String,
    /// The device's index.
    pub index: u32,
    /// The Ethernet address; `None` leaves it to the kernel.
    pub mac: Option<[u8; 6]>,
}

/// What is chosen beside the fabric.
#[derive(Debug, Clone, Copy)]
pub struct BlueprintOptions {
    /// The rate that every cable is shaped to; `None` leaves them as fast as the machine is.
    pub rate: Option<BitsPerSecond>,
    /// Whether there is a manager with a link to every host and switch.
    pub management: bool,
}

/// A fabric cannot be built here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlueprintError {
    /// Two of them would share one space.
    #[error("the name `{0}` is there twice, or is that of the manager")]
    NameTwice(String),
    /// It becomes a host name and a file name.
    #[error(
        "the name `{0}` cannot be a host name: letters, digits, `-`, `_` and `.`, at most 63 bytes"
    )]
    Name(String),
    /// More hosts than addresses.
    #[error("{0} hosts are more than the {HOSTS_MAX} addresses of the lab")]
    Hosts(usize),
    /// A configuration of other switches and hosts.
    #[error("the configuration is of {0} switches and {1} hosts, the wiring has {2} and {3}")]
    Counts(usize, usize, usize, usize),
    /// A cable without settings at one end would be silently dead.
    #[error("port {port} of `{switch}` is in two bundles, or set twice")]
    PortTwice {
        /// The switch that cannot be set up.
        switch: String,
        /// The port that cannot be set up.
        port: u16,
    },
    /// Linux bridges have no such setting.
    #[error(
        "port {port} of `{switch}` is to refuse frames with a tag, which a Linux bridge cannot"
    )]
    RefusesTags {
        /// The switch that cannot be set up.
        switch: String,
        /// The port that cannot be set up.
        port: u16,
    },
    /// Hosts that tag need rules of their own.
    #[error(transparent)]
    Rules(#[from] HostTextError),
}

impl Blueprint {
    /// What to build for a fabric.
    ///
    /// # Errors
    /// [`BlueprintError`] if bridges and namespaces cannot be that.
    pub fn new(
        wiring: &Wiring,
        configuration: &Configuration,
        options: &BlueprintOptions,
    ) -> Result<Self, BlueprintError> {
        check(wiring, configuration)?;
        let mut spaces = Vec::new();
        for (place, (switch, settings)) in
            wiring.switches.iter().zip(&configuration.switches).enumerate()
        {
            let ageing = settings.ageing.unwrap_or(AGEING_NEVER).get() / 10_000_000;
            let ports = bridge_ports(place, switch, &settings.ports)?;
            let bridge = Bridge {
                // Saturates at 497 days, which a bridge takes for never.
                ageing_centiseconds: u32::try_from(ageing).unwrap_or(u32::MAX),
                spanning_tree: settings.spanning_tree,
                ports,
            };
            spaces.push(Space {
                name: switch.name.clone(),
                role: Role::Switch(bridge),
                bundles: switch_bundles(place, &settings.ports),
                management: None,
            });
        }
        for (place, host) in wiring.hosts.iter().enumerate() {
            let mac = mac_of(wiring, place);
            let rules = host_text(wiring, configuration, HostId::new(place), HOST_INTERFACE)?;
            let bundles = host_bundle(mac, host.ports.len(), lacp_at(configuration, host));
            spaces.push(Space {
                name: host.name.clone(),
                role: Role::Host { address: host_address(place), mac, rules },
                bundles: bundles.into_iter().collect(),
                management: None,
            });
        }
        let rate = options.rate.map(BitsPerSecond::get);
        let mut blueprint = Self { spaces, cables: cables(wiring), rate };
        if options.management {
            blueprint.add_management();
        }
        Ok(blueprint)
    }

    /// The place of the space of this name.
    pub fn space(&self, name: &str) -> Option<usize> {
        self.spaces.iter().position(|space| space.name == name)
    }

    /// The switches, with their places.
    pub fn switches(&self) -> impl Iterator<Item = (usize, &Space)> {
        self.spaces.iter().enumerate().filter(|(_, space)| matches!(space.role, Role::Switch(_)))
    }

    /// The hosts, with their places among the spaces.
    pub fn hosts(&self) -> impl Iterator<Item = (usize, &Space)> {
        self.spaces.iter().enumerate().filter(|(_, space)| matches!(space.role, Role::Host { .. }))
    }

    fn add_management(&mut self) {
        let manager = self.spaces.len();
        for (place, space) in self.spaces.iter_mut().enumerate() {
            space.management = Some(management_address(place + 1));
            let at_manager = port_index(place);
            let ends = [
                CableEnd {
                    space: place,
                    device: MANAGEMENT_INTERFACE.into(),
                    index: MANAGEMENT_INDEX,
                    mac: None,
                },
                CableEnd {
                    space: manager,
                    device: format!("m{}", place + 1),
                    index: at_manager,
                    mac: None,
                },
            ];
            self.cables.push(Cable { purpose: Purpose::Management, ends });
        }
        self.spaces.push(Space {
            name: MANAGER.into(),
            role: Role::Manager,
            bundles: Vec::new(),
            management: Some(management_address(0)),
        });
    }
}

/// The Internet address of the host at this place, in 10.0.0.0/9.
pub fn host_address(place: usize) -> Ipv4Addr {
    address(0x0a00_0001, place)
}

/// The Ethernet address of a host: the one that the wiring has, else one by its place.
fn mac_of(wiring: &Wiring, place: usize) -> [u8; 6] {
    wiring.hosts[place].mac.map_or_else(|| host_mac(place), |mac| mac.0)
}

/// The Ethernet address of the host at this place, if it has none: locally administered.
pub fn host_mac(place: usize) -> [u8; 6] {
    let [_, high, middle, low] = host_address(place).octets();
    [0x02, 0x6d, 0x6b, high, middle, low]
}

/// The index of the bridge in the space of a switch.
pub(crate) const fn bridge_index() -> u32 {
    BRIDGE_INDEX
}

/// The index of the management interface, the manager's bridge included.
pub(crate) const fn management_index() -> u32 {
    MANAGEMENT_INDEX
}

/// The index of a host's interface in the fabric.
pub(crate) const fn host_index() -> u32 {
    HOST_INDEX
}

fn management_address(place: usize) -> Ipv4Addr {
    address(0x0a80_0001, place)
}

fn address(first: u32, place: usize) -> Ipv4Addr {
    let place = u32::try_from(place).expect("there are fewer hosts than addresses");
    Ipv4Addr::from(first + place)
}

/// The index of a port of a switch.
fn switch_port_index(switch: usize, port: PortNumber) -> u32 {
    let switch = u32::try_from(switch).expect("a wiring has fewer than 2^14 switches");
    (switch + 1) * SWITCH_INDEX + u32::from(port.0)
}

/// The index of a bundle of a switch.
fn bundle_index(switch: usize, number: u16) -> u32 {
    switch_port_index(switch, PortNumber(number)) + BUNDLE_INDEX
}

fn port_index(place: usize) -> u32 {
    PORT_INDEX + u32::try_from(place).expect("a space has fewer than 2^32 devices")
}

/// Refuses what cannot be built, before anything is.
fn check(wiring: &Wiring, configuration: &Configuration) -> Result<(), BlueprintError> {
    let counts = (configuration.switches.len(), configuration.hosts.len());
    if counts != (wiring.switches.len(), wiring.hosts.len()) {
        let there = (wiring.switches.len(), wiring.hosts.len());
        return Err(BlueprintError::Counts(counts.0, counts.1, there.0, there.1));
    }
    if wiring.switches.len() + wiring.hosts.len() > HOSTS_MAX {
        return Err(BlueprintError::Hosts(wiring.hosts.len()));
    }
    let mut names = BTreeSet::from([MANAGER]);
    let switches = wiring.switches.iter().map(|switch| switch.name.as_str());
    for name in switches.chain(wiring.hosts.iter().map(|host| host.name.as_str())) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
        if !is_name || name.len() > NAME_BYTES_MAX {
            return Err(BlueprintError::Name(name.into()));
        }
        if !names.insert(name) {
            return Err(BlueprintError::NameTwice(name.into()));
        }
    }
    Ok(())
}

fn bridge_ports(
    place: usize,
    switch: &Switch,
    ports: &[PortSettings],
) -> Result<Vec<BridgePort>, BlueprintError> {
    let (mut seen, mut bundle) = (BTreeSet::new(), 0);
    let mut bridge_ports = Vec::new();
    for port in ports {
        for &number in &port.ports {
            if !seen.insert(number) {
                let (switch, port) = (switch.name.clone(), number.0);
                return Err(BlueprintError::PortTwice { switch, port });
            }
        }
        let Some(&first) = port.ports.first() else { continue };
        // A tagged frame of the VLAN that untagged ones get anyway does no harm.
        let only_own = port.pvid.into_iter().collect::<VlanSet>() == port.members();
        if !port.accept_tagged && !only_own {
            let (switch, port) = (switch.name.clone(), first.0);
            return Err(BlueprintError::RefusesTags { switch, port });
        }
        bridge_ports.push(bridge_port(place, port, first, &mut bundle));
    }
    Ok(bridge_ports)
}

/// What a port of a switch is as a port of its bridge; `bundle` is the number of the last bundle.
fn bridge_port(
    switch: usize,
    port: &PortSettings,
    first: PortNumber,
    bundle: &mut u16,
) -> BridgePort {
    let (device, index) = if port.bundle.is_some() {
        *bundle += 1;
        (bundle_interface(*bundle), bundle_index(switch, *bundle))
    } else {
        (port_interface(first), switch_port_index(switch, first))
    };
    BridgePort {
        device,
        index,
        pvid: port.pvid.map(Vlan::id),
        untagged: port.untagged.iter().map(Vlan::id).collect(),
        tagged: port.tagged.iter().map(Vlan::id).collect(),
    }
}

fn switch_bundles(switch: usize, ports: &[PortSettings]) -> Vec<Bundle> {
    let bundles = ports.iter().filter(|port| port.bundle.is_some());
    let bundle = |(number, port): (u16, &PortSettings)| Bundle {
        device: bundle_interface(number),
        index: bundle_index(switch, number),
        mac: None,
        lacp: port.bundle == Some(Bundling::Lacp),
        members: port.ports.iter().map(|&port| switch_port_index(switch, port)).collect(),
    };
    (1..).zip(bundles).map(bundle).collect()
}

/// Whether the switch speaks LACP at the ports of this host.
fn lacp_at(configuration: &Configuration, host: &meikyo_fabric::Host) -> bool {
    let ports = &configuration.switches[host.switch.place()].ports;
    let own = ports.iter().find(|port| port.ports.first() == host.ports.first());
    own.is_some_and(|port| port.bundle == Some(Bundling::Lacp))
}

fn host_bundle(mac: [u8; 6], ports: usize, lacp: bool) -> Option<Bundle> {
    (ports > 1).then(|| Bundle {
        device: HOST_INTERFACE.into(),
        index: HOST_INDEX,
        mac: Some(mac),
        lacp,
        members: (0..ports).map(port_index).collect(),
    })
}

fn cables(wiring: &Wiring) -> Vec<Cable> {
    let switches = wiring.switches.len();
    let mut cables = Vec::new();
    for (place, host) in wiring.hosts.iter().enumerate() {
        for (nth, &port) in host.ports.iter().enumerate() {
            let alone = host.ports.len() == 1;
            let own = CableEnd {
                space: switches + place,
                device: if alone { HOST_INTERFACE.into() } else { format!("eth{}", nth + 1) },
                index: if alone { HOST_INDEX } else { port_index(nth) },
                mac: alone.then(|| mac_of(wiring, place)),
            };
            let ends = [switch_end(host.switch.place(), port), own];
            cables.push(Cable { purpose: Purpose::Host, ends });
        }
    }
    for trunk in &wiring.trunks {
        let [one, other] = &trunk.ends;
        for (&port, &other_port) in one.ports.iter().zip(&other.ports) {
            let ends = [
                switch_end(one.switch.place(), port),
                switch_end(other.switch.place(), other_port),
            ];
            cables.push(Cable { purpose: Purpose::Trunk, ends });
        }
    }
    cables
}

fn switch_end(switch: usize, port: PortNumber) -> CableEnd {
    let index = switch_port_index(switch, port);
    CableEnd { space: switch, device: port_interface(port), index, mac: None }
}
