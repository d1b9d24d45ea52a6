//! The models and their limits.
//!
//! Addresses are those of the data sheets of the `FlexNetwork` 5130 EI (16,384) and HI (32,768), of which the
//! lesser reading is taken. Ports are those of 1 Gbit/s; a site that uses the 10 Gbit/s ports describes a
//! model of its own. VLAN 4094 is kept for ports that drop frames without a tag.
//!
//! The figures are known from use and were compared with no data sheet here.

use crate::model::{GENERIC, ModelFacts};

pub(super) static MODELS: [ModelFacts; 4] = [
    model("hpe-5130-ei-24", 24, 16_000),
    model("hpe-5130-ei-48", 48, 16_000),
    model("hpe-5130-hi-24", 24, 32_000),
    model("hpe-5130-hi-48", 48, 32_000),
];

const fn model(name: &'static str, ports: u16, table_entries: u32) -> ModelFacts {
    ModelFacts {
        name,
        ports,
        table_entries,
        vlans: 4_092,
        vlan_ids: (2, 4093),
        bundle_ports: 8,
        bundles: 128,
        ..GENERIC
    }
}
