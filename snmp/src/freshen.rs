//! Making a net-snmp agent read its interface counters at every request, and undoing it.
//!
//! net-snmp keeps interface counters for 3 s. There is no line of `snmpd.conf` against that, but
//! `nsCacheTimeout` (NET-SNMP-AGENT-MIB) can be set at run time; 0 means that every request reads
//! the kernel. That costs the agent 0.2 to 1 ms of CPU a request, needs a write credential, and is
//! forgotten when the agent restarts.
//!
//! What must be known of the agent: the row of a table exists only once the table was read;
//! -1 is refused; and `nsCacheStatus` must never be touched, since a disabled cache is not read
//! around but frozen for ever.
//!
//! [`decide`] is pure; [`look`], [`freshen`] and [`restore`] are the few requests around it. Who
//! freshens remembers the original timeout where it survives his own end, before he does it: an agent
//! that says 0 does not tell what it was.

use std::fmt;

use thiserror::Error;

use crate::client::{Client, RequestError};
use crate::pdu::ErrorStatus;
use crate::resolve::{IF_TABLE, NS_CACHE_TIMEOUT};
use crate::{Oid, Value};

/// `nsCacheStatus` (NET-SNMP-AGENT-MIB): read, never written.
const NS_CACHE_STATUS: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 1, 5, 3, 1, 3];

/// `nsCacheStatus` of a cache that somebody switched off: its values never change again.
const DISABLED: u64 = 2;

/// What an agent says about its interface cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// `nsCacheTimeout` in seconds.
    pub seconds: u32,
    /// Whether `nsCacheStatus` is disabled(2).
    pub disabled: bool,
}

/// What is to be done about a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Set its timeout to 0; it is `from` seconds now.
    Set {
        /// Present timeout of the cache, seconds.
        from: u32,
    },
    /// Its timeout is 0 already, set by somebody else, who will want it back.
    AlreadyFresh,
    /// Somebody disabled it, which freezes the values; a timeout of 0 would not help.
    Disabled,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { from } => {
                write!(f, "set nsCacheTimeout of ifTable from {from} to 0 s, and back at the end")
            }
            Self::AlreadyFresh => {
                write!(
                    f,
                    "nothing to do: this agent does not cache ifTable (its nsCacheTimeout is 0)"
                )
            }
            Self::Disabled => write!(
                f,
                "nothing: nsCacheStatus of ifTable is disabled(2), so its values are frozen until \
                 somebody sets it to enabled(1)"
            ),
        }
    }
}

/// Why a cache could not be freshened or restored.
#[derive(Debug, Error)]
pub enum FreshenError {
    /// The agent does not answer, or answers with an error.
    #[error("cannot ask for the interface cache")]
    Ask {
        /// What came in place of an answer.
        source: RequestError,
    },
    /// The agent has no such cache, or does not show it.
    #[error(
        "the agent shows no nsCacheTimeout of ifTable (`{object}`): it is not net-snmp, or its \
             view hides it"
    )]
    NoCache {
        /// The setting of the agent's cache that is written.
        object: Oid,
    },
    /// The credential may read and not write.
    #[error("the agent refuses to set `{object}`: the write credential may not write it")]
    NotWritable {
        /// The setting of the agent's cache that is written.
        object: Oid,
        /// How the agent refused.
        source: RequestError,
    },
    /// Any other trouble while setting.
    #[error("cannot set `{object}` to {seconds}")]
    Set {
        /// The setting of the agent's cache that is written.
        object: Oid,
        /// Timeout that was to be set, seconds.
        seconds: u32,
        /// How the agent refused.
        source: RequestError,
    },
    /// The agent said yes and did not do it.
    #[error("the agent accepted {wanted} for `{object}`, and still says {seconds}")]
    NotKept {
        /// The setting of the agent's cache that is written.
        object: Oid,
        /// What was set.
        wanted: u32,
        /// What it says now.
        seconds: u32,
    },
}

impl FreshenError {
    /// What to do about it: the `snmpd.conf` lines that are missing.
    pub fn remedy(&self) -> Option<String> {
        let timeout = Oid::from_slice(NS_CACHE_TIMEOUT);
        match self {
            Self::NoCache { .. } => Some(crate::resolve::view_line(NS_CACHE_TIMEOUT)),
            Self::NotWritable { .. } => Some(format!(
                "view meikyo-write included .{timeout}\nrwcommunity SECRET default -V meikyo-write"
            )),
            _ => None,
        }
    }
}

/// `nsCacheTimeout` of the interface cache.
pub fn timeout_object() -> Oid {
    Oid::from_slice(NS_CACHE_TIMEOUT).child(IF_TABLE)
}

/// Asks what the interface cache is set to; nothing is changed.
///
/// # Errors
/// If the agent does not answer or has no such cache.
pub fn look(client: &mut Client) -> Result<Cache, FreshenError> {
    let ask = |source| FreshenError::Ask { source };
    // The cache has no row before the table was read for the first time.
    client.get_next(&[Oid::from_slice(IF_TABLE)]).map_err(ask)?;
    let status = Oid::from_slice(NS_CACHE_STATUS).child(IF_TABLE);
    let answer = client.get(&[timeout_object(), status]).map_err(ask)?;
    cache_of(&answer).ok_or_else(|| FreshenError::NoCache { object: timeout_object() })
}

/// What an answer with `nsCacheTimeout` and `nsCacheStatus` says.
fn cache_of(answer: &[(Oid, Value)]) -> Option<Cache> {
    let seconds = u32::try_from(answer.first()?.1.as_u64()?).ok()?;
    let disabled = answer.get(1).is_some_and(|(_, status)| status.as_u64() == Some(DISABLED));
    Some(Cache { seconds, disabled })
}

/// What is to be done about a cache that is set so.
pub const fn decide(cache: Cache) -> Decision {
    match cache {
        Cache { disabled: true, .. } => Decision::Disabled,
        Cache { seconds: 0, .. } => Decision::AlreadyFresh,
        Cache { seconds, .. } => Decision::Set { from: seconds },
    }
}

/// Sets the timeout of the interface cache to 0. `client` must have the write credential.
///
/// # Errors
/// If the agent does not answer, has no such cache, or may not be written.
pub fn freshen(client: &mut Client) -> Result<(), FreshenError> {
    set(client, 0)
}

/// Sets the timeout back to what it was, `original` seconds; not if it is not 0 any more: the agent
/// has restarted, or somebody has set another meanwhile, who then knows better. True if it was set.
///
/// # Errors
/// If the agent does not answer or may not be written any more.
pub fn restore(client: &mut Client, original: u32) -> Result<bool, FreshenError> {
    if look(client)?.seconds != 0 {
        return Ok(false);
    }
    set(client, original)?;
    Ok(true)
}

/// Sets the timeout and sees that it is kept.
fn set(client: &mut Client, seconds: u32) -> Result<(), FreshenError> {
    let object = timeout_object();
    let value = Value::Integer(seconds.into());
    client.set(&[(object.clone(), value)]).map_err(|source| {
        let refusals = [ErrorStatus::NoAccess, ErrorStatus::NotWritable, ErrorStatus::ReadOnly];
        // v1 and v2c agents leave a request with a community that may not write unanswered, or
        // call the object unknown.
        let refused = source.status().is_some_and(|status| {
            refusals.iter().any(|refusal| refusal.code() == status)
                || status == ErrorStatus::NoSuchName.code()
                || status == ErrorStatus::AuthorizationError.code()
        });
        let object = object.clone();
        if refused {
            FreshenError::NotWritable { object, source }
        } else {
            FreshenError::Set { object, seconds, source }
        }
    })?;
    let kept = look(client)?.seconds;
    if kept == seconds {
        Ok(())
    } else {
        Err(FreshenError::NotKept { object, wanted: seconds, seconds: kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(timeout: Value, status: Value) -> Vec<(Oid, Value)> {
        let status_object = Oid::from_slice(NS_CACHE_STATUS).child(IF_TABLE);
        vec![(timeout_object(), timeout), (status_object, status)]
    }

    #[test]
    fn only_a_living_cache_with_a_timeout_is_set() {
        let decided = |timeout, status| cache_of(&answer(timeout, status)).map(decide);
        let cached = || Value::Integer(4);
        assert_eq!(decided(Value::Integer(3), cached()), Some(Decision::Set { from: 3 }));
        assert_eq!(decided(Value::Integer(0), cached()), Some(Decision::AlreadyFresh));
        assert_eq!(decided(Value::Integer(3), Value::Integer(2)), Some(Decision::Disabled));
        assert_eq!(decided(Value::NoSuchInstance, Value::NoSuchInstance), None);
        // A view may show the timeout only.
        assert_eq!(
            decided(Value::Integer(30), Value::NoSuchObject),
            Some(Decision::Set { from: 30 })
        );
    }

    #[test]
    fn the_object_is_that_of_the_interface_table() {
        assert_eq!(timeout_object().to_string(), "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2");
    }
}
