//! Vendors whose switches cannot be part of a fabric.

use crate::model::{GENERIC, ModelFacts};

/// Why a vendor's switches cannot be used. Both reasons end a sentence that begins `texts of NAME are
/// not made` or `.. not read`.
pub(in crate::dialect) struct Refusal {
    /// The name of the dialect that is asked for.
    pub(in crate::dialect) name: &'static str,
    /// Why no text is made.
    pub(in crate::dialect) not_made: &'static str,
    /// Why no text is read.
    pub(in crate::dialect) not_read: &'static str,
    /// A common switch, so that the checker can say what it lacks.
    pub(super) model: ModelFacts,
}

/// What IOS and EOS have in common: a port is an untagged member of one VLAN, its access or native
/// VLAN, so frames of the others would reach a host with a tag.
const ACCESS_PORTS: &str = "its access ports cannot be what a fabric needs";
const PORTS: &str = "its ports cannot be what a fabric needs";

/// Cisco IOS, with the figures of a Catalyst of 48 ports.
pub(super) static CISCO_IOS: Refusal = Refusal {
    name: "cisco-ios",
    not_made: ACCESS_PORTS,
    not_read: PORTS,
    model: ModelFacts {
        name: "cisco-ios",
        ports: 48,
        table_entries: 16_000,
        vlans: 1_005,
        multi_untagged: false,
        bundle_ports: 8,
        bundles: 48,
        ..GENERIC
    },
};

/// Arista EOS, with the figures of a leaf of 52 ports.
pub(super) static ARISTA_EOS: Refusal = Refusal {
    name: "arista-eos",
    not_made: ACCESS_PORTS,
    not_read: PORTS,
    model: ModelFacts {
        name: "arista-eos",
        ports: 52,
        table_entries: 131_072,
        multi_untagged: false,
        bundles: 52,
        ..GENERIC
    },
};
