//! Who may ask an agent, and the engine that an agent is in SNMPv3.

use std::sync::Arc;

use meikyo_units::WallTime;

use crate::credentials::Credentials;
use crate::usm::{EngineId, EngineTime, ReportKind, User};

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

/// A user of SNMPv3 and what it may do, at the security level of its credentials and no lower.
#[derive(Debug, Clone)]
pub struct AgentUser {
    name: String,
    credentials: Credentials,
    /// Whether it may SET.
    pub write: bool,
}

impl AgentUser {
    /// The user of these credentials; `None` if they are of v1 or v2c.
    pub fn new(credentials: Credentials, write: bool) -> Option<Self> {
        let Credentials::V3 { user, .. } = &credentials else { return None };
        Some(Self { name: user.clone(), credentials, write })
    }

    /// The user's name as it stands in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Who may ask, and how large an answer may be.
#[derive(Debug, Clone)]
pub struct Access {
    /// Communities of v1 and v2c; none refuses both versions.
    pub communities: Vec<Community>,
    /// Users of v3; none refuses all but the discovery.
    pub users: Vec<AgentUser>,
    /// Largest message that is sent, bytes; RFC 3417 asks for at least 484.
    pub message_bytes_max: usize,
}

impl Access {
    /// One community that may read.
    pub fn read_only(community: &[u8]) -> Self {
        Self {
            communities: vec![Community { name: community.to_vec(), write: false }],
            users: Vec::new(),
            message_bytes_max: MESSAGE_BYTES_MAX,
        }
    }

    /// What `community` may do, `None` if nothing.
    #[inline]
    pub(super) fn community(&self, community: &[u8]) -> Option<&Community> {
        self.communities.iter().find(|known| known.name == community)
    }
}

/// The SNMP engine of an agent (RFC 3411, section 3.1.1), with the keys of one [`Access`].
#[derive(Debug, Clone)]
pub struct Engine {
    /// snmpEngineID.
    pub id: EngineId,
    /// snmpEngineBoots.
    pub boots: u32,
    /// When snmpEngineTime was 0.
    pub started: WallTime,
    /// The users with their keys here, by their position in the access; made when first needed.
    users: Vec<Option<Arc<User>>>,
    /// Reports sent, by kind: the usmStats counters.
    reports: [u32; 6],
    /// Never used twice within a boot (RFC 3826, 3.1.2.1).
    salt: u64,
}

impl Engine {
    /// An engine that has spoken to nobody.
    pub fn new(id: EngineId, boots: u32, started: WallTime) -> Self {
        Self { id, boots, started, users: Vec::new(), reports: [0; 6], salt: 0 }
    }

    /// Identity, boots and age in seconds, as messages carry them.
    pub fn time(&self, now: WallTime) -> EngineTime {
        let seconds = now.since(self.started).get() / 1_000_000_000;
        // Saturates at 2^31 - 1, where an engine must be made anew (RFC 3414, 2.2.2).
        let time = u32::try_from(seconds).unwrap_or(u32::MAX).min(0x7fff_ffff);
        EngineTime { engine_id: self.id, boots: self.boots, time }
    }

    /// How many reports of this kind were sent.
    pub fn reports(&self, kind: ReportKind) -> u32 {
        self.reports[kind as usize - 1]
    }

    pub(super) fn count_report(&mut self, kind: ReportKind) -> u32 {
        let counter = &mut self.reports[kind as usize - 1];
        *counter = counter.wrapping_add(1);
        *counter
    }

    pub(super) fn next_salt(&mut self) -> u64 {
        self.salt = self.salt.wrapping_add(1);
        self.salt
    }

    /// The user with this name here, and whether it may SET.
    pub(super) fn user(&mut self, name: &[u8], access: &Access) -> Option<(Arc<User>, bool)> {
        let position = access.users.iter().position(|user| user.name.as_bytes() == name)?;
        let known = &access.users[position];
        self.users.resize(access.users.len(), None);
        let here = &mut self.users[position];
        if here.is_none() {
            *here = known.credentials.user_at(&self.id).map(Arc::new);
        }
        here.clone().map(|user| (user, known.write))
    }
}
