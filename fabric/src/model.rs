//! What is said of a switch model that is known by name, and the generic models.
//!
//! Figures are those of the makers' data sheets as far as known here; a cluster file may give others.

use meikyo_units::Nanos;

use crate::{Learning, SwitchModel, Vlan, VlanSet};

/// What sets one model apart from [`GENERIC`]. All of them learn each VLAN's addresses apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelFacts {
    pub(crate) name: &'static str,
    /// Ports are 1 to this.
    pub(crate) ports: u16,
    /// Most addresses that are known at once, over all VLANs.
    pub(crate) table_entries: u32,
    /// Most VLANs at once.
    pub(crate) vlans: u16,
    /// The first and the last VLAN that can be used; VLAN 1 is there always.
    pub(crate) vlan_ids: (u16, u16),
    /// Most ports of one bundle.
    pub(crate) bundle_ports: u16,
    /// Most bundles.
    pub(crate) bundles: u16,
    /// Whether a port can be an untagged member of several VLANs at once.
    pub(crate) multi_untagged: bool,
    /// The shortest and the longest ageing time; no longest: addresses can be kept for ever.
    pub(crate) ageing_s_min: u64,
    pub(crate) ageing_s_max: Option<u64>,
}

/// A switch of 64 ports that can do what is usual today.
pub(crate) const GENERIC: ModelFacts = ModelFacts {
    name: "generic",
    ports: 64,
    table_entries: 65_536,
    vlans: 4094,
    vlan_ids: (2, 4094),
    bundle_ports: 16,
    bundles: 64,
    multi_untagged: true,
    // The range of the ageing time in IEEE 802.1Q, table 8-6.
    ageing_s_min: 10,
    ageing_s_max: Some(1_000_000),
};

/// Models of no vendor: switches as such, of three sizes.
pub(crate) static GENERICS: [ModelFacts; 3] = [
    GENERIC,
    ModelFacts {
        name: "generic-128k",
        ports: 128,
        table_entries: 131_072,
        bundles: 128,
        ..GENERIC
    },
    ModelFacts {
        name: "generic-256k",
        ports: 256,
        table_entries: 262_144,
        bundles: 256,
        ..GENERIC
    },
];

impl ModelFacts {
    /// The model as the planner and the checker take it.
    pub(crate) fn model(&self) -> SwitchModel {
        let (first, last) = self.vlan_ids;
        SwitchModel {
            name: self.name.into(),
            ports: self.ports,
            table_entries: self.table_entries,
            vlans: self.vlans,
            vlan_ids: (first..=last).filter_map(Vlan::new).collect::<VlanSet>(),
            bundle_ports: self.bundle_ports,
            bundles: self.bundles,
            multi_untagged: self.multi_untagged,
            learning: Learning::Independent,
            ageing_min: Nanos::from_secs(self.ageing_s_min),
            ageing_max: self.ageing_s_max.map(Nanos::from_secs),
            default_vlan_stays: false,
        }
    }
}
