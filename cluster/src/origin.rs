//! Where the settings of a device come from.

use meikyo_places::Origin;

use crate::section::Sourced;

/// Where a value comes from that a section may give.
pub(crate) fn origin_of<T>(value: Option<&Sourced<T>>) -> Origin {
    value.map_or(Origin::Default, |value| Origin::Line(value.line))
}

/// Where each setting of one device comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origins {
    /// The entry that names the device.
    pub entry: Origin,
    /// The `address`, which is one of those that the entry unfolds to.
    pub address: Origin,
    /// The UDP port: behind the address, or `port` of a section `snmp`.
    pub port: Origin,
    /// The group that it belongs to.
    pub group: Origin,
    /// The SNMP version, in the nearest section `snmp` that has one.
    pub version: Origin,
    /// The user or community that readings are asked with.
    pub credentials: Origin,
    /// The user or community in `snmp.write`, for `--freshen`.
    pub write: Origin,
    /// The span between two readings.
    pub interval: Origin,
    /// How long an answer is waited for.
    pub timeout: Origin,
    /// The most requests per second.
    pub rate_max: Origin,
    /// The list of what is measured on the device.
    pub measure: Origin,
}
