//! The fabric as the page draws it: where switches stand, what joins them, which VLANs run there.
//!
//! Whoever starts the server plans the fabric and says it here; the server plans nothing.

use serde::Serialize;
use utoipa::ToSchema;

/// A fabric as the page draws it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FabricBody {
    /// The cluster's name.
    pub name: String,
    /// Its switches; other lists name them by their places here.
    pub switches: Vec<FabricSwitchBody>,
    /// What joins them.
    pub trunks: Vec<FabricTrunkBody>,
    /// The VLANs that are planned.
    pub vlans: Vec<FabricVlanBody>,
}

/// A switch of the drawing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FabricSwitchBody {
    /// Its name, as in the label `device`.
    pub name: String,
    /// Where it stands, to the right; neighbours are about 1 apart.
    pub x: f64,
    /// Where it stands, downward.
    pub y: f64,
    /// How many hosts it has.
    pub hosts: usize,
    /// Their names, folded.
    pub host_names: String,
}

/// A link between two switches, or several that are aggregated.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FabricTrunkBody {
    /// Both ends.
    pub ends: [FabricEndBody; 2],
    /// What all of its cables carry in one direction, in bit/s.
    pub rate_bits_per_s: u64,
    /// The VLANs that run over it, by their identifiers.
    pub vlans: Vec<u16>,
}

/// One end of a trunk.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FabricEndBody {
    /// The place of the switch in the list.
    pub switch: usize,
    /// Its interfaces, one a cable, as its agent calls them.
    pub interfaces: Vec<String>,
}

/// A VLAN that is planned.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FabricVlanBody {
    /// Its identifier.
    pub vlan: u16,
    /// `frames`, `failures` or `management`.
    pub purpose: &'static str,
    /// The places of the switches whose hosts send in it.
    pub sources: Vec<usize>,
}
