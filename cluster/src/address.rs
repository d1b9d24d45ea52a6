//! Addresses of agents: how they are written, and which of them no agent can have.

use std::net::{IpAddr, Ipv4Addr};

/// Why no agent listens at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// `0.0.0.0` or `::`: every address of whoever is asked, so none.
    Unspecified,
    /// A group of hosts (RFC 1112, RFC 4291).
    Multicast,
    /// `255.255.255.255`: every host of the link (RFC 919).
    Broadcast,
}

impl Unusable {
    /// Why this address cannot be an agent's, if it cannot. The broadcast address of a subnet looks
    /// like any other to somebody who does not know its mask.
    pub(crate) fn of_address(address: IpAddr) -> Option<Self> {
        let address = address.to_canonical();
        if address.is_unspecified() {
            Some(Self::Unspecified)
        } else if address.is_multicast() {
            Some(Self::Multicast)
        } else {
            (address == Ipv4Addr::BROADCAST).then_some(Self::Broadcast)
        }
    }

    /// What it is, after "`10.0.0.7` is".
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Unspecified => "the unspecified address; write the one that the agent listens on",
            Self::Multicast => {
                "a multicast address; an agent is asked alone, so write its own address"
            }
            Self::Broadcast => {
                "the broadcast address; an agent is asked alone, so write its own address"
            }
        }
    }
}

/// An IP address with the port that stands behind it, if one does; `None` for anything else.
pub(crate) fn parse_address(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = text.parse::<std::net::SocketAddr>() {
        return (address.port() != 0).then_some((address.ip(), Some(address.port())));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().map(|ip| (ip, None))
}
