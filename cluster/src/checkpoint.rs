//! What the file says of the protection of programs: which hosts stand ready in place of others, and the addresses that
//! programs have on their hosts.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use meikyo_places::hint;

use crate::fold::unfold;
use crate::section::{Reading, Section, read_names};
use crate::{Device, DeviceKind};

/// The section `checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Hosts that stand ready, in the order in which they are used.
    pub spares: Vec<String>,
    /// Where programs that are captured as they are have their addresses.
    pub network: ProgramNetwork,
}

/// A network of 256 addresses, of which each host of a program has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramNetwork([u8; 3]);

impl ProgramNetwork {
    /// How many bits its addresses have in common.
    pub const PREFIX_BITS: u8 = 24;

    /// The address of the host at a place, the first of which is 0; nothing beyond the last.
    pub fn address(self, place: usize) -> Option<Ipv4Addr> {
        let [a, b, c] = self.0;
        let last = u8::try_from(place).ok()?.checked_add(1).filter(|last| *last < u8::MAX)?;
        Some(Ipv4Addr::new(a, b, c, last))
    }
}

impl Default for ProgramNetwork {
    fn default() -> Self {
        Self([10, 77, 0])
    }
}

impl fmt::Display for ProgramNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.0;
        write!(f, "{a}.{b}.{c}.0/24")
    }
}

/// A text is no network of 256 addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network of 256 addresses; write for example `10.77.0.0/24`")]
pub struct ParseProgramNetworkError(String);

impl FromStr for ProgramNetwork {
    type Err = ParseProgramNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseProgramNetworkError> {
        let wrong = || ParseProgramNetworkError(text.into());
        let address = text.strip_suffix("/24").ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        match address.octets() {
            [a, b, c, 0] if !address.is_multicast() && !address.is_loopback() && a > 0 => {
                Ok(Self([a, b, c]))
            }
            _ => Err(wrong()),
        }
    }
}

/// Reads the section; what is not written is as by default.
pub(crate) fn read_checkpoint(
    reading: &mut Reading,
    file: &Section<'_>,
    devices: &[Device],
) -> Checkpoint {
    let Some(section) = file.section(reading, "checkpoint") else { return Checkpoint::default() };
    let network = section.parsed(reading, "network", str::parse::<ProgramNetwork>);
    let hosts = || devices.iter().filter(|device| device.kind == DeviceKind::Host);
    let known: BTreeSet<&str> = hosts().map(|host| host.name.as_str()).collect();
    let (mut spares, mut named) = (Vec::new(), BTreeSet::new());
    for spare in read_names(reading, &section, "spares", unfold) {
        let key = section.key("spares");
        if !known.contains(spare.value.as_str()) {
            let text = || {
                let meant = hint(&spare.value, known.iter().copied().take(1_000));
                format!("no host is named `{}`{meant}", spare.value)
            };
            reading.note_alike(spare.line, key, ("spare unknown", &spare.value), text);
        } else if named.insert(spare.value.clone()) {
            spares.push(spare.value);
        } else {
            let text =
                || format!("`{}` is named twice; spares are used in their order", spare.value);
            reading.note_alike(spare.line, key, ("spare twice", &spare.value), text);
        }
    }
    Checkpoint { spares, network: network.map(|network| network.value).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_network_has_an_address_for_every_place() {
        let network: ProgramNetwork = "192.168.7.0/24".parse().expect("it is one");
        assert_eq!(network.address(0), Some(Ipv4Addr::new(192, 168, 7, 1)));
        assert_eq!(network.address(253), Some(Ipv4Addr::new(192, 168, 7, 254)));
        assert_eq!(network.address(254), None);
        for wrong in
            ["10.0.0.0", "10.0.0.1/24", "10.0.0.0/16", "224.0.0.0/24", "127.0.0.0/24", "x/24"]
        {
            assert!(wrong.parse::<ProgramNetwork>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(text in "\\PC{0,24}", octets in any::<[u8; 3]>()) {
            drop(text.parse::<ProgramNetwork>());
            let network = ProgramNetwork(octets);
            if let Ok(read) = network.to_string().parse::<ProgramNetwork>() {
                prop_assert_eq!(read, network);
            }
        }
    }
}
