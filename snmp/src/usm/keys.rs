//! From passwords to keys (RFC 3414, 2.6 and A.2; RFC 7860, 9.3; key extension of
//! draft-blumenthal-aes-usm-04, 3.1.2.1).

use std::fmt;

use md5::{Digest, Md5};
use meikyo_cluster::{AuthProtocol, PrivProtocol};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use thiserror::Error;
use zeroize::{Zeroize as _, Zeroizing};

use super::{AuthKey, PrivKey, SecurityLevel};

/// Shortest password, in octets (RFC 3414, 11.2).
pub const PASSWORD_OCTETS_MIN: usize = 8;

/// How many octets of the repeated password are hashed (RFC 3414, A.2).
const EXPANDED_OCTETS: usize = 1 << 20;

/// How many times a password is repeated in memory at once: it is hashed from there again and again.
const REPETITIONS: usize = 64;

/// Octets of the stack that hashing uses at most, with room to spare.
const STACK_OCTETS: usize = 16 << 10;

/// A key before it is localised to an engine.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    protocol: AuthProtocol,
    key: Vec<u8>,
}

impl MasterKey {
    /// The hash that made it and that localises it.
    pub const fn protocol(&self) -> AuthProtocol {
        self.protocol
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MasterKey({:?})", self.protocol)
    }
}

/// Why a password makes no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// RFC 3414 asks for at least eight octets.
    #[error("the password has {octets} octets, and SNMPv3 wants at least {PASSWORD_OCTETS_MIN}")]
    PasswordTooShort {
        /// Octets that it has.
        octets: usize,
    },
}

/// The key of a password: a hash over a mebibyte of repetitions, about 1 to 5 ms. Of the password
/// nothing is left in memory but what the caller has.
///
/// # Errors
///
/// [`KeyError::PasswordTooShort`].
pub fn master_key(protocol: AuthProtocol, password: &[u8]) -> Result<MasterKey, KeyError> {
    if password.len() < PASSWORD_OCTETS_MIN {
        return Err(KeyError::PasswordTooShort { octets: password.len() });
    }
    let repeated = Zeroizing::new(password.repeat(REPETITIONS));
    let whole = EXPANDED_OCTETS / repeated.len();
    let rest = &repeated[..EXPANDED_OCTETS % repeated.len()];
    let key = digest(protocol, std::iter::repeat_n(repeated.as_slice(), whole).chain([rest]));
    wipe_stack();
    Ok(MasterKey { protocol, key })
}

/// Overwrites what the functions that have returned left on the stack: the state of a hash holds the
/// last block that went into it.
#[inline(never)]
pub(crate) fn wipe_stack() {
    let mut left = [0_u8; STACK_OCTETS];
    left.zeroize();
}

#[inline(never)]
fn digest<'a>(protocol: AuthProtocol, parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    fn digest_of<'a, D: Digest>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut state = D::new();
        for part in parts {
            state.update(part);
        }
        state.finalize().to_vec()
    }
    match protocol {
        AuthProtocol::Md5 => digest_of::<Md5>(parts),
        AuthProtocol::Sha1 => digest_of::<Sha1>(parts),
        AuthProtocol::Sha224 => digest_of::<Sha224>(parts),
        AuthProtocol::Sha256 => digest_of::<Sha256>(parts),
        AuthProtocol::Sha384 => digest_of::<Sha384>(parts),
        AuthProtocol::Sha512 => digest_of::<Sha512>(parts),
    }
}

fn localized_octets(master: &MasterKey, engine_id: &[u8]) -> Vec<u8> {
    digest(master.protocol, [master.key.as_slice(), engine_id, &master.key])
}

fn localized_privacy(protocol: PrivProtocol, master: &MasterKey, engine_id: &[u8]) -> PrivKey {
    let mut key = localized_octets(master, engine_id);
    while key.len() < 32 {
        let extension = digest(master.protocol, [key.as_slice()]);
        key.extend_from_slice(&extension);
    }
    let mut octets = [0; 32];
    octets.copy_from_slice(&key[..32]);
    match protocol {
        PrivProtocol::Aes128 => {
            let mut short = [0; 16];
            short.copy_from_slice(&octets[..16]);
            PrivKey::aes128(&short)
        }
        PrivProtocol::Aes256 => PrivKey::aes256(&octets),
    }
}

/// The keys of a user at one engine.
#[derive(Debug, Clone, Default)]
pub struct LocalKeys {
    /// For authentication; `None` is noAuthNoPriv.
    pub auth: Option<AuthKey>,
    /// For encryption, used only together with authentication.
    pub privacy: Option<PrivKey>,
}

impl LocalKeys {
    /// The security level that these keys allow.
    pub const fn level(&self) -> SecurityLevel {
        match (&self.auth, &self.privacy) {
            (None, _) => SecurityLevel::NoAuthNoPriv,
            (Some(_), None) => SecurityLevel::AuthNoPriv,
            (Some(_), Some(_)) => SecurityLevel::AuthPriv,
        }
    }
}

/// The keys of a user at the engine with this id.
pub fn localize(
    auth: Option<&MasterKey>,
    privacy: Option<(PrivProtocol, &MasterKey)>,
    engine_id: &[u8],
) -> LocalKeys {
    LocalKeys {
        auth: auth
            .map(|master| AuthKey::new(master.protocol, &localized_octets(master, engine_id))),
        privacy: privacy.map(|(protocol, master)| localized_privacy(protocol, master, engine_id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    /// RFC 3414, A.3.1 and A.3.2.
    #[test]
    fn keys_are_those_of_the_rfc() {
        let engine_id = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        for (protocol, master, localized) in [
            (
                AuthProtocol::Md5,
                "9faf3283884e92834ebc9847d8edd963",
                "526f5eed9fcce26f8964c2930787d82b",
            ),
            (
                AuthProtocol::Sha1,
                "9fb5cc0381497b3793528939ff788d5d79145211",
                "6695febc9288e36282235fc7151f128497b38f3f",
            ),
        ] {
            let key = master_key(protocol, b"maplesyrup").unwrap();
            assert_eq!(hex(&key.key), master);
            assert_eq!(hex(&localized_octets(&key, &engine_id)), localized);
        }
    }

    /// The mebibyte as RFC 3414, A.2.1 makes it, octet by octet.
    #[test]
    fn passwords_of_all_lengths_are_repeated_as_the_rfc_says() {
        for length in [8, 9, 63, 64, 65, 200, 4_095] {
            let password: Vec<u8> = (0..length).map(|at: usize| at.to_le_bytes()[0] | 1).collect();
            let expanded: Vec<u8> = password.iter().copied().cycle().take(1 << 20).collect();
            let key = master_key(AuthProtocol::Sha512, &password).unwrap();
            assert_eq!(key.key, Sha512::digest(&expanded).to_vec(), "{length}");
        }
    }

    #[test]
    fn short_passwords_are_refused_and_keys_are_never_printed() {
        let error = master_key(AuthProtocol::Sha256, b"1234567").unwrap_err();
        assert_eq!(error, KeyError::PasswordTooShort { octets: 7 });
        let master = master_key(AuthProtocol::Sha256, b"12345678").unwrap();
        assert_eq!(format!("{master:?}"), "MasterKey(Sha256)");
        let keys = localize(Some(&master), Some((PrivProtocol::Aes256, &master)), &[1; 12]);
        assert_eq!(
            format!("{keys:?}"),
            "LocalKeys { auth: Some(AuthKey(Sha256)), privacy: Some(PrivKey(Aes256)) }"
        );
    }
}
