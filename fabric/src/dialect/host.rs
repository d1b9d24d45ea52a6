//! What a host is told that tags its frames itself: one rule of `tc` for each receiver.

use thiserror::Error;

use crate::{Configuration, HostId, HostSettings, Wiring};

/// Why there is no text for a host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostTextError {
    /// The Ethernet address of a receiver is not known.
    #[error("the Ethernet address of `{host}` is not known; `mac` of section `hosts` says it")]
    NoAddress {
        /// The name of the receiver.
        host: String,
    },
}

/// A batch for `tc -batch` that tags the frames of a host by their receivers; `None` if the host
/// tags nothing. Frames to all others, broadcasts too, stay without a tag, and those that have one, as
/// frames that prime, keep it.
///
/// # Errors
/// If an Ethernet address is not known.
pub fn host_text(
    wiring: &Wiring,
    configuration: &Configuration,
    host: HostId,
    interface: &str,
) -> Result<Option<String>, HostTextError> {
    let HostSettings::Tagged(tags) = &configuration.hosts[host.place()] else { return Ok(None) };
    let name = &wiring.hosts[host.place()].name;
    let mut text = format!("# {name}: frames are tagged by their receivers\n");
    text += &format!("qdisc replace dev {interface} clsact\nfilter del dev {interface} egress\n");
    text += &format!(
        "# what has a tag keeps it\nfilter add dev {interface} egress protocol 802.1Q pref 1 flower\n"
    );
    for (to, vlan) in tags {
        let to = &wiring.hosts[to.place()];
        let Some(mac) = to.mac else {
            return Err(HostTextError::NoAddress { host: to.name.clone() });
        };
        text += &format!(
            "# to {}\nfilter add dev {interface} egress protocol all pref 2 flower dst_mac {mac} \
             action vlan push id {vlan}\n",
            to.name
        );
    }
    Ok(Some(text))
}
