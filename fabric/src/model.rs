//! The switch models that are known by name: those of the vendors, and generic ones.
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
    fn model(&self) -> SwitchModel {
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
        }
    }
}

impl SwitchModel {
    /// The names of the models that are built in: those whose vendor's commands are known, the generic
    /// ones, and those that are refused.
    pub fn names() -> impl Iterator<Item = &'static str> {
        crate::dialect::built_in_models().map(|facts| facts.name)
    }

    /// The built-in model of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        let mut known = crate::dialect::built_in_models();
        known.find(|facts| facts.name == name).map(ModelFacts::model)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_switch_of_the_paper_is_known() {
        let model = SwitchModel::named("powerconnect-6248").unwrap();
        assert_eq!((model.ports, model.table_entries, model.vlans), (48, 8_000, 1_024));
        assert_eq!(model.vlan_ids.to_string(), "2-4093");
        assert!(SwitchModel::names().all(|name| SwitchModel::named(name).is_some()));
        assert_eq!(SwitchModel::named("powerconnect"), None);
    }

    #[test]
    fn no_two_models_have_the_same_name() {
        let names: BTreeSet<&str> = SwitchModel::names().collect();
        assert_eq!(names.len(), SwitchModel::names().count());
    }
}
