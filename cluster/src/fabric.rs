//! The fabric as the file describes it: topology, links, models of switches. What they mean for
//! ports and VLANs is worked out elsewhere.

mod read;

use meikyo_units::{BitsPerSecond, Nanos};

use crate::Place;

pub(crate) use read::read_fabric;

/// Something that the file says, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated<T> {
    /// What the file says, or the default where it says nothing.
    pub value: T,
    /// The line to name when something is wrong with it.
    pub place: Place,
}

/// The sections `fabric` and `links`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fabric {
    /// Where the section `fabric` begins.
    pub place: Place,
    /// The topology by name, as `torus 4x2`; `None`: the links say it.
    pub topology: Option<Stated<String>>,
    /// Cables of each trunk of a named topology.
    pub cables: Stated<u32>,
    /// Hosts on each switch of a named topology; `None`: all hosts, dealt out evenly.
    pub hosts_per_switch: Option<Stated<u32>>,
    /// Ports of each host, bundled.
    pub ports_per_host: Stated<u32>,
    /// How the paths between hosts are chosen.
    pub routing: Stated<Routing>,
    /// Who chooses the VLAN of a frame.
    pub tagging: Stated<Tagging>,
    /// The VLANs that may be used, as `101-4093`; `None`: what the models allow.
    pub vlans: Option<Stated<String>>,
    /// The VLAN in which switches are managed.
    pub management_vlan: Option<Stated<u32>>,
    /// The host that manages the switches.
    pub manager: Option<Stated<String>>,
    /// Whether spare VLANs are planned, for the failure of any one link.
    pub spare: Stated<bool>,
    /// How the two ends of a bundle agree.
    pub bundling: Stated<BundleProtocol>,
    /// Whether pause frames are sent and obeyed (IEEE 802.3x).
    pub flow_control: Stated<bool>,
    /// After which span switches forget an address; `None`: as late as their models can.
    pub ageing: Option<Stated<Nanos>>,
    /// The rate of a port.
    pub rate: Stated<BitsPerSecond>,
    /// The model of switches that name none.
    pub model: Option<Stated<String>>,
    /// Models that the file describes, by name.
    pub models: Vec<Model>,
    /// Links, in the order of the file, unfolded.
    pub links: Vec<Link>,
}

/// How the paths between hosts are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Routing {
    /// What suits the topology and cannot deadlock.
    Auto,
    /// One dimension after the other.
    DimensionOrder,
    /// The shortest path between each pair of switches.
    Minimal,
    /// First up, then down, seen from a root.
    UpDown,
    /// Trees grown so that no cycle of waiting arises.
    Acyclic,
}

/// Who chooses the VLAN of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tagging {
    /// The switch port that it comes in by.
    Switch,
    /// The host that sends it.
    Host,
}

/// How the ends of a bundle agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleProtocol {
    /// By LACP (IEEE 802.1AX).
    Lacp,
    /// Both ends are just set so.
    Static,
}

/// A model of switches that the file describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The name by which switches refer to it.
    pub name: String,
    /// Where its section begins.
    pub place: Place,
    /// The built-in model that it is like; what is not written is as there.
    pub like: Option<Stated<String>>,
    /// How many ports it has, numbered from 1.
    pub ports: Option<u32>,
    /// Addresses that its table holds.
    pub table_entries: Option<u32>,
    /// VLANs at the same time.
    pub vlans: Option<u32>,
    /// Most ports of one bundle.
    pub bundle_ports: Option<u32>,
    /// Whether a port may be an untagged member of several VLANs.
    pub multi_untagged: Option<bool>,
    /// Whether it has one entry for an address over all VLANs.
    pub shared_learning: Option<bool>,
    /// The shortest span after which it can be made to forget an address.
    pub ageing_min: Option<Nanos>,
    /// The longest span after which it forgets an address.
    pub ageing_max: Option<Nanos>,
    /// Whether ports stay in VLAN 1, whatever is set.
    pub vlan_1_stays: Option<bool>,
}

/// One link, or several that are aggregated: two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What it joins, in the order of the file.
    pub ends: [LinkEnd; 2],
    /// How many cables are aggregated; 1 is a plain link.
    pub cables: u32,
    /// Where its section begins.
    pub place: Place,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    /// The name of the host or switch.
    pub device: String,
    /// The ports of a switch, one for each cable; empty: whichever are free.
    pub ports: Vec<u16>,
}
