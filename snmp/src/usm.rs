//! The user-based security model of SNMPv3 (RFC 3412, RFC 3414, RFC 3826, RFC 7860).
//!
//! Both sides use this: a manager that sends requests and believes responses, and an agent that
//! checks requests and answers with responses or reports. What it does not do: hold the table of
//! users, count reports, or send anything.

mod auth;
mod clock;
mod envelope;
mod keys;
mod privacy;

pub use auth::AuthKey;
pub use clock::{EngineClock, WINDOW_SECONDS};
pub use envelope::{Envelope, Message, Scoped, SecurityLevel, decode_v3, encode_v3};
pub(crate) use envelope::{Head, Seal, encode_scoped_unsealed, encode_unsealed};
pub(crate) use keys::wipe_stack;
pub use keys::{KeyError, LocalKeys, MasterKey, PASSWORD_OCTETS_MIN, localize, master_key};
pub use privacy::PrivKey;

use std::fmt;
use std::ops::Deref;

use crate::Oid;

/// Largest message that this side accepts, in octets: what fits a UDP datagram over IPv4.
pub const MESSAGE_OCTETS_MAX: i32 = 65_507;

/// The id of an SNMP engine: up to 32 octets, empty while it is not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EngineId {
    octets: [u8; 32],
    length: u8,
}

impl EngineId {
    /// The id with these octets; `None` if there are more than 32 (RFC 3411, `SnmpEngineID`).
    #[inline]
    pub fn from_slice(octets: &[u8]) -> Option<Self> {
        let mut id = Self::default();
        id.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        id.length = u8::try_from(octets.len()).ok()?;
        Some(id)
    }
}

impl Deref for EngineId {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }
}

impl fmt::Display for EngineId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

impl fmt::Debug for EngineId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The time of an SNMP engine (RFC 3414, 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineTime {
    /// The engine whose boots and time these are.
    pub engine_id: EngineId,
    /// How often it was started.
    pub boots: u32,
    /// Seconds since it was started last.
    pub time: u32,
}

/// A user at one engine: the name and the keys that hold there.
#[derive(Debug, Clone)]
pub struct User {
    /// The name, 1 to 32 octets.
    pub name: Vec<u8>,
    /// The keys, localised to the engine.
    pub keys: LocalKeys,
}

/// Why an engine answered with a report: the counters of RFC 3414, section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ReportKind {
    /// The engine does not do this security level for the user.
    UnsupportedSecurityLevel = 1,
    /// Boots or time are outside the window of 150 s.
    NotInTimeWindow = 2,
    /// The engine does not know the user.
    UnknownUserName = 3,
    /// The engine has another id; the report holds it.
    UnknownEngineId = 4,
    /// The HMAC does not match: another password or protocol.
    WrongDigest = 5,
    /// The message could not be decrypted: another password or protocol.
    DecryptionError = 6,
}

impl ReportKind {
    const ALL: [Self; 6] = [
        Self::UnsupportedSecurityLevel,
        Self::NotInTimeWindow,
        Self::UnknownUserName,
        Self::UnknownEngineId,
        Self::WrongDigest,
        Self::DecryptionError,
    ];

    /// The counter that the report holds.
    pub fn oid(self) -> Oid {
        Oid::from_slice(&[1, 3, 6, 1, 6, 3, 15, 1, 1, u32::from(self as u8), 0])
    }

    /// The kind of report that holds the counter with these content octets.
    pub fn from_encoded(oid: &[u8]) -> Option<Self> {
        let counter = oid.strip_prefix(&[0x2b, 6, 1, 6, 3, 15, 1, 1])?;
        Self::ALL.into_iter().find(|kind| counter == [*kind as u8, 0])
    }

    /// The kind of report that holds this counter.
    pub fn from_oid(oid: &Oid) -> Option<Self> {
        Self::from_encoded(&oid.encoded())
    }
}

impl fmt::Display for ReportKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::UnsupportedSecurityLevel => "the agent does not allow this security level",
            Self::NotInTimeWindow => "not in the agent's time window",
            Self::UnknownUserName => "the agent does not know the user",
            Self::UnknownEngineId => "the agent has another engine id",
            Self::WrongDigest => "the agent has another authentication password or protocol",
            Self::DecryptionError => "the agent has another privacy password or protocol",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_by_their_counter() {
        for kind in ReportKind::ALL {
            assert_eq!(ReportKind::from_oid(&kind.oid()), Some(kind));
        }
        assert_eq!(ReportKind::from_oid(&"1.3.6.1.6.3.15.1.1.7.0".parse().unwrap()), None);
        // usmStatsNotInTimeWindows, RFC 3414.
        let oid = ReportKind::NotInTimeWindow.oid();
        assert_eq!(oid.to_string(), "1.3.6.1.6.3.15.1.1.2.0");
    }

    #[test]
    fn engine_ids_have_at_most_32_octets() {
        assert_eq!(&*EngineId::from_slice(&[7; 32]).unwrap(), &[7; 32]);
        assert_eq!(EngineId::from_slice(&[7; 33]), None);
        assert!(EngineId::default().is_empty());
    }
}
