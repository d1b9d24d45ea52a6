//! The switch models that are known by name.
//!
//! Figures are those of the makers' data sheets as far as known here; a cluster file may give others.

use meikyo_units::Nanos;

use crate::{Learning, SwitchModel, Vlan, VlanSet};

/// What sets one model apart from [`GENERIC`].
struct Known {
    name: &'static str,
    ports: u16,
    table_entries: u32,
    vlans: u16,
    vlan_ids: (u16, u16),
    bundle_ports: u16,
    bundles: u16,
    multi_untagged: bool,
    ageing_s_min: u64,
    ageing_s_max: Option<u64>,
}

/// A switch of 64 ports that can do what is usual today.
const GENERIC: Known = Known {
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

const KNOWN: [Known; 8] = [
    // The switch of the paper: 48 ports, 8,000 addresses, ageing "maximum 100000 s". The range of
    // VLANs is what its configuration accepts, 1,024 of them at once.
    Known {
        name: "powerconnect-6248",
        ports: 48,
        table_entries: 8_000,
        vlans: 1_024,
        vlan_ids: (2, 4093),
        bundle_ports: 8,
        bundles: 48,
        ageing_s_max: Some(100_000),
        ..GENERIC
    },
    // Ports are what a bridge of the Linux kernel has (10 bits). Its table has no limit of its own.
    Known {
        name: "linux-bridge",
        ports: 1_023,
        table_entries: 1_048_576,
        bundles: 1_023,
        // The kernel takes any, and keeps clock ticks in 32 bits; the longest is safe at up to 1,000 a
        // second.
        ageing_s_min: 0,
        ageing_s_max: Some(1_000_000),
        ..GENERIC
    },
    // `other_config:mac-table-size` goes to 1,000,000; ports are as in OpenFlow 1.0.
    Known {
        name: "open-vswitch",
        ports: 1_023,
        table_entries: 1_000_000,
        bundles: 1_023,
        // `other_config:mac-aging-time`; what is less than 15 s is taken for 15 s.
        ageing_s_min: 15,
        ageing_s_max: Some(3_600),
        ..GENERIC
    },
    GENERIC,
    Known { name: "generic-128k", ports: 128, table_entries: 131_072, bundles: 128, ..GENERIC },
    Known { name: "generic-256k", ports: 256, table_entries: 262_144, bundles: 256, ..GENERIC },
    // A port is an untagged member of one VLAN, its access or native VLAN.
    Known {
        name: "cisco-ios",
        ports: 48,
        table_entries: 16_000,
        vlans: 1_005,
        multi_untagged: false,
        bundle_ports: 8,
        bundles: 48,
        ..GENERIC
    },
    Known {
        name: "arista-eos",
        ports: 52,
        table_entries: 131_072,
        multi_untagged: false,
        bundles: 52,
        ..GENERIC
    },
];

impl SwitchModel {
    /// The names of the models that are known.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|known| known.name)
    }

    /// The model of that name; all of them learn each VLAN's addresses apart.
    pub fn named(name: &str) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.name == name)?;
        let (first, last) = known.vlan_ids;
        Some(Self {
            name: name.into(),
            ports: known.ports,
            table_entries: known.table_entries,
            vlans: known.vlans,
            vlan_ids: (first..=last).filter_map(Vlan::new).collect::<VlanSet>(),
            bundle_ports: known.bundle_ports,
            bundles: known.bundles,
            multi_untagged: known.multi_untagged,
            learning: Learning::Independent,
            ageing_min: Nanos::from_secs(known.ageing_s_min),
            ageing_max: known.ageing_s_max.map(Nanos::from_secs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_of_the_paper_is_known() {
        let model = SwitchModel::named("powerconnect-6248").unwrap();
        assert_eq!((model.ports, model.table_entries, model.vlans), (48, 8_000, 1_024));
        assert_eq!(model.vlan_ids.to_string(), "2-4093");
        assert!(SwitchModel::names().all(|name| SwitchModel::named(name).is_some()));
        assert_eq!(SwitchModel::named("powerconnect"), None);
    }
}
