//! The models of the N series and their limits.
//!
//! Figures are those of Dell's data sheets of the series ("Technical specifications"): addresses 16K
//! (N1500, N2000), 32K (N3000) and 128K (N4000), of which the lesser reading is taken (16,000 ..);
//! 512 VLANs on the N1500, all on the others; 64 port channels on the N1500, 128 on the others, of 8
//! ports each. VLANs are 2 to 4093, as on the PowerConnect: DNOS keeps 4094 to itself. The models with
//! power over Ethernet or fibre (`P`, `F`) have the same figures.
//!
//! Ports are those of the main rate, which a fabric of one rate is made of: 1 Gbit/s, and 10 Gbit/s
//! on the N4000. A site that uses the 10 Gbit/s uplinks, too, describes a model whose name begins with
//! that of the built-in one (`dell-n1524-uplinks`) and has more ports.

use crate::SwitchModel;
use crate::model::{GENERIC, ModelFacts};

/// The models that are built in.
pub(super) static MODELS: [ModelFacts; 8] = [
    model("dell-n1524", 24, 16_000, 512, 64),
    model("dell-n1548", 48, 16_000, 512, 64),
    model("dell-n2024", 24, 16_000, 4_092, 128),
    model("dell-n2048", 48, 16_000, 4_092, 128),
    model("dell-n3024", 24, 32_000, 4_092, 128),
    model("dell-n3048", 48, 32_000, 4_092, 128),
    model("dell-n4032", 24, 128_000, 4_092, 128),
    model("dell-n4064", 48, 128_000, 4_092, 128),
];

const fn model(
    name: &'static str,
    ports: u16,
    table_entries: u32,
    vlans: u16,
    bundles: u16,
) -> ModelFacts {
    ModelFacts {
        name,
        ports,
        table_entries,
        vlans,
        vlan_ids: (2, 4093),
        bundle_ports: 8,
        bundles,
        ..GENERIC
    }
}

/// The built-in model that a model is, or by whose name its own begins.
fn built_in(model: &SwitchModel) -> Option<&'static ModelFacts> {
    MODELS.iter().find(|facts| model.name.starts_with(facts.name))
}

/// How many gigabit ports a switch has, which come before the 10 Gbit/s ports: 48 if the model is none
/// that is known here.
pub(super) fn gigabit_ports(model: &SwitchModel) -> u16 {
    match built_in(model) {
        Some(facts) if facts.name.starts_with("dell-n4") => 0,
        Some(facts) => facts.ports,
        None => 48,
    }
}

/// Whether there is an Ethernet port for management alone (`interface out-of-band`): on the N3000 and
/// the N4000.
pub(super) fn has_management_port(model: &SwitchModel) -> bool {
    let of = |series: &str| built_in(model).is_some_and(|facts| facts.name.starts_with(series));
    of("dell-n3") || of("dell-n4")
}
