//! What is plugged into what: switches, hosts, trunks. The common ground of planner and checker.

use std::fmt;

use meikyo_cluster::MacAddress;
use meikyo_units::{BitsPerSecond, Nanos};

use crate::VlanSet;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The one at this place of its list.
            ///
            /// # Panics
            /// If the place is beyond `u32`.
            pub fn new(place: usize) -> Self {
                Self(u32::try_from(place).expect("a wiring has fewer than 2^32 parts of a kind"))
            }

            /// Its place in its list.
            pub const fn place(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A switch, by its place in [`Wiring::switches`].
    SwitchId
}
index! {
    /// A host, by its place in [`Wiring::hosts`].
    HostId
}
index! {
    /// A trunk, by its place in [`Wiring::trunks`].
    TrunkId
}

/// A port of a switch as it is printed on its front: 1 is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNumber(pub u16);

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The cables of a fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    /// Every switch; a [`SwitchId`] is a place in this list.
    pub switches: Vec<Switch>,
    /// Every host; a [`HostId`] is a place in this list.
    pub hosts: Vec<Host>,
    /// Every link between two switches; what is aggregated is one trunk.
    pub trunks: Vec<Trunk>,
    /// The rate of one port.
    pub rate: BitsPerSecond,
}

/// A switch of the wiring: its name, and what its model can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Its name in the cluster file.
    pub name: String,
    /// The limits of its model.
    pub model: SwitchModel,
}

/// What a kind of switch can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchModel {
    /// The name of the model, as `powerconnect-6248`.
    pub name: String,
    /// The number of ports: they are 1 to this.
    pub ports: u16,
    /// Most addresses that the forwarding table holds, over all VLANs.
    pub table_entries: u32,
    /// Most VLANs at the same time.
    pub vlans: u16,
    /// The identifiers that may be used.
    pub vlan_ids: VlanSet,
    /// Most ports of one bundle (link aggregation).
    pub bundle_ports: u16,
    /// Most bundles that can be set at once.
    pub bundles: u16,
    /// Whether a port may be an untagged member of several VLANs at once.
    pub multi_untagged: bool,
    /// Whether each VLAN has table entries of its own.
    pub learning: Learning,
    /// The shortest span after which an address that was not seen can be forgotten.
    pub ageing_min: Nanos,
    /// The longest span after which an address that was not seen is forgotten; `None`: never.
    pub ageing_max: Option<Nanos>,
    /// Whether its ports stay in VLAN 1, whatever is set.
    pub default_vlan_stays: bool,
}

/// How a switch learns where addresses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learning {
    /// Each VLAN has its own entries (IVL).
    Independent,
    /// One entry for an address, whatever the VLAN (SVL).
    Shared,
}

/// A host of the wiring, and where it is plugged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name in the cluster file.
    pub name: String,
    /// The switch that it is plugged into.
    pub switch: SwitchId,
    /// The ports of the switch that it has; several are a bundle.
    pub ports: Vec<PortNumber>,
    /// Its Ethernet address, where it is known: hosts that tag by destination need it.
    pub mac: Option<MacAddress>,
}

/// One link between two switches, or several that are aggregated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trunk {
    /// Both ends; cable `n` goes from `ports[n]` of the one to `ports[n]` of the other.
    pub ends: [TrunkEnd; 2],
}

/// One end of a trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkEnd {
    /// The switch at this end.
    pub switch: SwitchId,
    /// Its ports, in the order of the cables.
    pub ports: Vec<PortNumber>,
}

impl Wiring {
    /// Both ends of a trunk: `sw1:sw2`.
    pub fn trunk_name(&self, trunk: TrunkId) -> String {
        let ends = self.trunks[trunk.place()].ends.each_ref();
        ends.map(|end| self.switches[end.switch.place()].name.as_str()).join(":")
    }
}

impl Trunk {
    /// How many cables it has.
    pub fn cables(&self) -> usize {
        self.ends[0].ports.len()
    }

    /// The end at `switch`, and the other one; `None` if the trunk does not go there.
    pub fn seen_from(&self, switch: SwitchId) -> Option<(&TrunkEnd, &TrunkEnd)> {
        let [one, other] = &self.ends;
        if one.switch == switch {
            Some((one, other))
        } else if other.switch == switch {
            Some((other, one))
        } else {
            None
        }
    }
}
