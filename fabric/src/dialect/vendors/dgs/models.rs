//! The models and their limits: those of D-Link's data sheets of the DGS-1510 series (16K addresses) and of
//! the DGS-3130 series (16K), of which the lesser reading is taken. Ports are those of 1 Gbit/s.
//!
//! The figures are known from use and were compared with no data sheet here.

use crate::model::{GENERIC, ModelFacts};

pub(super) static MODELS: [ModelFacts; 4] = [
    model("dlink-dgs-1510-28", 24, 32),
    model("dlink-dgs-1510-52", 48, 32),
    model("dlink-dgs-3130-30", 24, 32),
    model("dlink-dgs-3130-54", 48, 32),
];

const fn model(name: &'static str, ports: u16, bundles: u16) -> ModelFacts {
    ModelFacts {
        name,
        ports,
        table_entries: 16_000,
        vlans: 4_093,
        bundle_ports: 8,
        bundles,
        ..GENERIC
    }
}
