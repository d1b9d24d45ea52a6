//! Where the settings of a device come from.

use crate::section::Sourced;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody wrote it: built in.
    Default,
    /// This line of the cluster file.
    Line(usize),
}

impl Origin {
    pub(crate) fn of<T>(value: Option<&Sourced<T>>) -> Self {
        value.map_or(Self::Default, |value| Self::Line(value.line))
    }
}

/// Where each setting of one device comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origins {
    /// The entry that names the device.
    pub entry: Origin,
    /// `address`.
    pub address: Origin,
    /// The port of the address.
    pub port: Origin,
    /// The group that it belongs to.
    pub group: Origin,
    /// The SNMP version.
    pub version: Origin,
    /// User or community.
    pub credentials: Origin,
    /// Credentials for writing.
    pub write: Origin,
    /// The interval.
    pub interval: Origin,
    /// The timeout.
    pub timeout: Origin,
    /// The most requests per second.
    pub rate_max: Origin,
    /// What is measured.
    pub measure: Origin,
}
