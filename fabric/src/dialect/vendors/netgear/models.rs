//! The models and their limits: those of Netgear's data sheets (addresses 16K on the M4100, the M4300-28G
//! and the M4300-52G; 1,024 VLANs on the M4100), of which the lesser reading is taken. Ports are those of
//! 1 Gbit/s.
//!
//! The figures are known from use and were compared with no data sheet here.

use crate::model::{GENERIC, ModelFacts};

pub(super) static MODELS: [ModelFacts; 4] = [
    model("netgear-m4100-26g", 24, 1_024, 12),
    model("netgear-m4100-50g", 48, 1_024, 12),
    model("netgear-m4300-28g", 24, 4_092, 64),
    model("netgear-m4300-52g", 48, 4_092, 64),
];

const fn model(name: &'static str, ports: u16, vlans: u16, bundles: u16) -> ModelFacts {
    ModelFacts {
        name,
        ports,
        table_entries: 16_000,
        vlans,
        vlan_ids: (2, 4093),
        bundle_ports: 8,
        bundles,
        ..GENERIC
    }
}
