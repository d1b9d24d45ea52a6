//! How an agent is spoken to, with the secrets in hand.
//!
//! Nothing here prints a secret. Keys that were made from a password are kept for the life of the
//! process, since making one hashes a mebibyte and a cluster's hosts share theirs; the password
//! itself is wiped. A community cannot be: it travels in every request as it is.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use meikyo_cluster::{Access, AuthProtocol, PrivProtocol, SecretError};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::message::Version;
use crate::usm::{self, KeyError, LocalKeys, MasterKey, User};

/// Version, and what proves who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// SNMPv1.
    V1 {
        /// What the agent lets readers in by; sent in the clear.
        community: Vec<u8>,
    },
    /// SNMPv2c.
    V2c {
        /// What the agent lets readers in by; sent in the clear.
        community: Vec<u8>,
    },
    /// SNMPv3 with USM.
    V3 {
        /// The user's name.
        user: String,
        /// Authentication; `None` is noAuthNoPriv.
        auth: Option<(AuthProtocol, MasterKey)>,
        /// Encryption, used only together with authentication. Its key is hashed with the
        /// authentication protocol's hash (RFC 3826, 1.2).
        privacy: Option<(PrivProtocol, MasterKey)>,
    },
}

/// Why credentials cannot be used.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// The file only describes a fabric.
    #[error("the cluster file has no `[snmp]` for it; see docs/cluster-file.md")]
    Unstated,
    /// A secret cannot be read.
    #[error("cannot read the {what}")]
    Secret {
        /// Which secret.
        what: &'static str,
        /// What keeps it from being read.
        source: SecretError,
    },
    /// A password makes no key.
    #[error("the {what} cannot be used")]
    Key {
        /// Which secret.
        what: &'static str,
        /// What is wrong with it as a password.
        source: KeyError,
    },
    /// The user's name has no octets or too many (RFC 3414, usmUserName).
    #[error("user name `{user}` has {octets} octets, and SNMPv3 wants 1 to 32")]
    UserName {
        /// User name that was refused.
        user: String,
        /// How many octets the password has.
        octets: usize,
    },
    /// Encryption without authentication.
    #[error("user `{user}` has encryption without authentication, which SNMPv3 does not have")]
    PrivacyWithoutAuth {
        /// The user who has only a password for encryption.
        user: String,
    },
}

/// Keys that were made already, by protocol and the SHA-256 of the password.
static MASTER_KEYS: Mutex<BTreeMap<(AuthProtocol, [u8; 32]), MasterKey>> =
    Mutex::new(BTreeMap::new());

fn master_key_kept(
    protocol: AuthProtocol,
    password: &str,
    what: &'static str,
) -> Result<MasterKey, CredentialsError> {
    // A thread that panicked while it held the lock has left a whole map behind.
    let mut keys = MASTER_KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let name = (protocol, digest(password));
    usm::wipe_stack();
    if let Some(key) = keys.get(&name) {
        return Ok(key.clone());
    }
    let key = usm::master_key(protocol, password.as_bytes())
        .map_err(|source| CredentialsError::Key { what, source })?;
    keys.insert(name, key.clone());
    Ok(key)
}

#[inline(never)]
fn digest(password: &str) -> [u8; 32] {
    Sha256::digest(password.as_bytes()).into()
}

impl Credentials {
    /// Reads the secrets that the cluster file refers to; `base` is the directory that relative
    /// paths start from.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if a secret cannot be read or used.
    pub fn resolve(access: &Access, base: &Path) -> Result<Self, CredentialsError> {
        let read = |secret: &meikyo_cluster::Secret, what| {
            secret.read(base).map_err(|source| CredentialsError::Secret { what, source })
        };
        match access {
            Access::Unstated => Err(CredentialsError::Unstated),
            Access::V1 { community } => {
                Ok(Self::V1 { community: read(community, "community")?.as_bytes().to_vec() })
            }
            Access::V2c { community } => {
                Ok(Self::V2c { community: read(community, "community")?.as_bytes().to_vec() })
            }
            Access::V3 { user, auth, privacy } => {
                let auth = match auth {
                    Some((protocol, secret)) => {
                        Some((*protocol, read(secret, "authentication password")?))
                    }
                    None => None,
                };
                let privacy = match privacy {
                    Some((protocol, secret)) => {
                        Some((*protocol, read(secret, "privacy password")?))
                    }
                    None => None,
                };
                let auth = auth.as_ref().map(|(protocol, word)| (*protocol, word.as_str()));
                let privacy = privacy.as_ref().map(|(protocol, word)| (*protocol, word.as_str()));
                Self::from_passwords(user, auth, privacy)
            }
        }
    }

    /// SNMPv3 credentials of a user with these passwords.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if the name or a password cannot be used.
    pub fn from_passwords(
        user: &str,
        auth: Option<(AuthProtocol, &str)>,
        privacy: Option<(PrivProtocol, &str)>,
    ) -> Result<Self, CredentialsError> {
        if user.is_empty() || user.len() > 32 {
            let octets = user.len();
            return Err(CredentialsError::UserName { user: user.into(), octets });
        }
        let privacy = match (auth, privacy) {
            (_, None) => None,
            (None, Some(_)) => {
                return Err(CredentialsError::PrivacyWithoutAuth { user: user.into() });
            }
            (Some((hash, _)), Some((protocol, password))) => {
                Some((protocol, master_key_kept(hash, password, "privacy password")?))
            }
        };
        let auth = match auth {
            Some((protocol, password)) => {
                Some((protocol, master_key_kept(protocol, password, "authentication password")?))
            }
            None => None,
        };
        Ok(Self::V3 { user: user.into(), auth, privacy })
    }

    /// The version of SNMP that these credentials are for.
    pub const fn version(&self) -> Version {
        match self {
            Self::V1 { .. } => Version::V1,
            Self::V2c { .. } => Version::V2c,
            Self::V3 { .. } => Version::V3,
        }
    }

    /// The community, for v1 and v2c.
    pub fn community(&self) -> Option<&[u8]> {
        match self {
            Self::V1 { community } | Self::V2c { community } => Some(community),
            Self::V3 { .. } => None,
        }
    }

    /// The user at the engine with this id, for v3.
    pub fn user_at(&self, engine_id: &[u8]) -> Option<User> {
        let Self::V3 { user, auth, privacy } = self else { return None };
        let keys = match auth {
            None => LocalKeys::default(),
            Some((_, auth)) => {
                let privacy = privacy.as_ref().map(|(protocol, master)| (*protocol, master));
                usm::localize(Some(auth), privacy, engine_id)
            }
        };
        Some(User { name: user.clone().into_bytes(), keys })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V1 { .. } => formatter.write_str("V1"),
            Self::V2c { .. } => formatter.write_str("V2c"),
            Self::V3 { user, auth, privacy } => formatter
                .debug_struct("V3")
                .field("user", user)
                .field("auth", &auth.as_ref().map(|(protocol, _)| protocol))
                .field("privacy", &privacy.as_ref().map(|(protocol, _)| protocol))
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meikyo_cluster::Secret;

    #[test]
    fn secrets_are_read_and_never_printed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("word"), "a good password\n").unwrap();
        let secret = Secret::File("word".into());
        let access = Access::V3 {
            user: "reader".into(),
            auth: Some((AuthProtocol::Sha256, secret.clone())),
            privacy: Some((PrivProtocol::Aes128, secret.clone())),
        };
        let credentials = Credentials::resolve(&access, directory.path()).unwrap();
        assert_eq!(
            format!("{credentials:?}"),
            "V3 { user: \"reader\", auth: Some(Sha256), privacy: Some(Aes128) }"
        );
        let level = credentials.user_at(b"engine").unwrap().keys.level();
        assert_eq!(level, usm::SecurityLevel::AuthPriv);
        let v2c = Credentials::resolve(&Access::V2c { community: secret }, directory.path());
        let v2c = v2c.unwrap();
        assert_eq!((v2c.community(), v2c.version()), (Some(&b"a good password"[..]), Version::V2c));
        assert_eq!(format!("{v2c:?}"), "V2c");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let sha = Some((AuthProtocol::Sha1, "long enough"));
        let aes = Some((PrivProtocol::Aes128, "long enough"));
        let refused = |user: &str, auth, privacy| {
            Credentials::from_passwords(user, auth, privacy).unwrap_err().to_string()
        };
        assert!(refused("", sha, aes).contains("1 to 32"));
        assert!(refused(&"u".repeat(33), sha, aes).contains("33 octets"));
        assert!(refused("u", None, aes).contains("without authentication"));
        let short = refused("u", Some((AuthProtocol::Sha1, "short")), None);
        assert_eq!(short, "the authentication password cannot be used");
    }
}
