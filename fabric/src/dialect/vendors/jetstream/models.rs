//! The models and their limits: those of TP-Link's data sheets of the T2600G series (16K addresses, 4K
//! VLANs, 14 groups of 8 ports) and of the TL-SG3428 and TL-SG3452 (16K), of which the lesser reading is
//! taken. Addresses are kept for 10 to 630 s, or
//! for ever.
//!
//! The figures are known from use and were compared with no data sheet here.

use crate::model::{GENERIC, ModelFacts};

pub(super) static MODELS: [ModelFacts; 4] = [
    model("tplink-t2600g-28", 24),
    model("tplink-t2600g-52", 48),
    model("tplink-sg3428", 24),
    model("tplink-sg3452", 48),
];

const fn model(name: &'static str, ports: u16) -> ModelFacts {
    ModelFacts {
        name,
        ports,
        table_entries: 16_000,
        vlans: 4_093,
        bundle_ports: 8,
        bundles: 14,
        ageing_s_max: None,
        ..GENERIC
    }
}
