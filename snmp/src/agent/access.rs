//! Who may ask an agent, and the engine that an agent is in SNMPv3.

use meikyo_units::WallTime;

/// Largest UDP payload over IPv4, bytes: what an agent may answer where nothing smaller is set.
pub const MESSAGE_BYTES_MAX: usize = 65_507;

/// A community and what it may do.
#[derive(Clone, PartialEq, Eq)]
pub struct Community {
    /// Its octets.
    pub name: Vec<u8>,
    /// Whether it may SET.
    pub write: bool,
}

impl std::fmt::Debug for Community {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Community").field("write", &self.write).finish_non_exhaustive()
    }
}

/// Who may ask, and how large an answer may be.
#[derive(Debug, Clone)]
pub struct Access {
    /// Communities of v1 and v2c; none refuses both versions.
    pub communities: Vec<Community>,
    /// Largest message that is sent, bytes; RFC 3417 asks for at least 484.
    pub message_bytes_max: usize,
}

impl Access {
    /// One community that may read.
    pub fn read_only(community: &[u8]) -> Self {
        Self {
            communities: vec![Community { name: community.to_vec(), write: false }],
            message_bytes_max: MESSAGE_BYTES_MAX,
        }
    }

    /// What `community` may do, `None` if nothing.
    #[inline]
    pub(crate) fn community(&self, community: &[u8]) -> Option<&Community> {
        self.communities.iter().find(|known| known.name == community)
    }
}

/// The SNMP engine of an agent (RFC 3411, section 3.1.1).
#[derive(Debug, Clone)]
pub struct Engine {
    /// snmpEngineID, 5 to 32 octets.
    pub id: Vec<u8>,
    /// snmpEngineBoots.
    pub boots: u32,
    /// When snmpEngineTime was 0.
    pub started: WallTime,
}
