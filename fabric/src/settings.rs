//! What is set on switches and hosts: what vendors' texts say, what the checker proves.
//!
//! Nothing here says why: trees, routes and loads are the planner's. The parsers of vendors' texts
//! give these types, too, so that what is proven is what will be typed.

use std::collections::BTreeMap;

use meikyo_units::Nanos;

use crate::{HostId, PortNumber, Vlan, VlanSet};

/// The settings of a whole fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// One for each switch of the wiring, in its order.
    pub switches: Vec<SwitchSettings>,
    /// One for each host of the wiring, in its order.
    pub hosts: Vec<HostSettings>,
    /// How hosts with several cables bundle them: the other end of every bundle of a host.
    pub host_bundling: Bundling,
    /// How switches are taught where hosts are.
    pub priming: Priming,
}

/// The settings of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSettings {
    /// The VLANs that are defined.
    pub vlans: VlanSet,
    /// Every port that is used or set to something; a bundle is one. In the order of their first
    /// port.
    pub ports: Vec<PortSettings>,
    /// The span after which an address that was not seen is forgotten; `None`: never.
    pub ageing: Option<Nanos>,
    /// Whether a spanning tree protocol runs. It would block trunks without regard to VLANs.
    pub spanning_tree: bool,
}

/// The settings of a port, or of several that are one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSettings {
    /// The ports; several are a bundle.
    pub ports: Vec<PortNumber>,
    /// The protocol of the bundle; `None` for a port alone.
    pub bundle: Option<Bundling>,
    /// The VLAN of frames that come in without a tag; `None`: such frames are dropped.
    pub pvid: Option<Vlan>,
    /// The VLANs whose frames go out without a tag.
    pub untagged: VlanSet,
    /// The VLANs whose frames go out with a tag.
    pub tagged: VlanSet,
    /// Whether frames come in that have a tag: of VLANs that the port is a member of (ingress
    /// filtering is always on).
    pub accept_tagged: bool,
    /// Whether pause frames are sent and obeyed (IEEE 802.3x).
    pub flow_control: bool,
}

impl PortSettings {
    /// Whether frames of the VLAN come in and go out here.
    pub const fn is_member(&self, vlan: Vlan) -> bool {
        self.untagged.contains(vlan) || self.tagged.contains(vlan)
    }

    /// The VLANs that the port is a member of.
    pub fn members(&self) -> VlanSet {
        self.untagged.union(&self.tagged)
    }
}

/// How the ports of a bundle agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bundling {
    /// Both ends are just set so.
    Static,
    /// By LACP (IEEE 802.1AX): a cable whose other end says nothing is left out.
    Lacp,
}

/// What a host does with the frames that it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSettings {
    /// Frames go out without a tag, and the switch port decides: *switch-tagged*.
    Untagged,
    /// Frames to these hosts go out with the tag of a VLAN, all others without one: *host-tagged*.
    Tagged(BTreeMap<HostId, Vlan>),
}

/// How switches are taught where hosts are.
///
/// A frame from `a` to `b` and its answer go in different VLANs, so a switch would not learn `b` in
/// the VLAN in which it looks `b` up, and would flood the frame, always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Priming {
    /// Nobody teaches them: only for fabrics in which answers take the same VLAN.
    None,
    /// Every host sends one broadcast, tagged, in each of these VLANs: every switch then knows every
    /// host in each of them.
    Broadcast(Box<VlanSet>),
    /// Each of the `representatives` sends one broadcast, tagged, in its VLAN; then every host sends
    /// one frame, tagged, to each representative in the VLAN of that: the switches on the way then
    /// know it, and no others.
    Directed(Vec<Representative>),
}

/// A host that others send to when they prime a VLAN: one for each switch whose hosts send in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Representative {
    /// The VLAN that it sends its broadcast in.
    pub vlan: Vlan,
    /// The host, on the switch that sends in the VLAN.
    pub host: HostId,
}
