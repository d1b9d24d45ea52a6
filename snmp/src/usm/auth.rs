//! Message authentication: HMAC with the key's pads hashed once (RFC 3414, 6 and 7; RFC 7860).

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use meikyo_cluster::AuthProtocol;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

/// Longest authentication parameters, in octets (HMAC-384-SHA-512).
pub(super) const MAC_OCTETS_MAX: usize = 48;

/// Zeros that stand in for the authentication parameters while the HMAC is calculated.
const ZEROS: [u8; MAC_OCTETS_MAX] = [0; MAC_OCTETS_MAX];

/// A localised authentication key, ready for use.
#[derive(Clone)]
pub struct AuthKey {
    protocol: AuthProtocol,
    state: State,
}

/// The HMAC after its inner pad, so that a message costs no key set-up.
#[derive(Clone)]
enum State {
    Md5(Hmac<Md5>),
    Sha1(Hmac<Sha1>),
    Sha224(Hmac<Sha224>),
    Sha256(Hmac<Sha256>),
    Sha384(Hmac<Sha384>),
    Sha512(Hmac<Sha512>),
}

impl State {
    fn new(protocol: AuthProtocol, key: &[u8]) -> Result<Self, hmac::digest::InvalidLength> {
        Ok(match protocol {
            AuthProtocol::Md5 => Self::Md5(Hmac::new_from_slice(key)?),
            AuthProtocol::Sha1 => Self::Sha1(Hmac::new_from_slice(key)?),
            AuthProtocol::Sha224 => Self::Sha224(Hmac::new_from_slice(key)?),
            AuthProtocol::Sha256 => Self::Sha256(Hmac::new_from_slice(key)?),
            AuthProtocol::Sha384 => Self::Sha384(Hmac::new_from_slice(key)?),
            AuthProtocol::Sha512 => Self::Sha512(Hmac::new_from_slice(key)?),
        })
    }
}

impl AuthKey {
    /// A key that is localised already.
    ///
    /// # Panics
    ///
    /// Never: HMAC accepts keys of any length (RFC 2104).
    pub fn new(protocol: AuthProtocol, key: &[u8]) -> Self {
        let state = State::new(protocol, key).expect("HMAC accepts keys of any length");
        Self { protocol, state }
    }

    /// The algorithm by which messages are authenticated.
    pub const fn protocol(&self) -> AuthProtocol {
        self.protocol
    }

    /// Octets of the authentication parameters (RFC 3414, 6.3.1 and 7.3.1; RFC 7860, 4.1).
    pub const fn mac_octets(&self) -> usize {
        match self.protocol {
            AuthProtocol::Md5 | AuthProtocol::Sha1 => 12,
            AuthProtocol::Sha224 => 16,
            AuthProtocol::Sha256 => 24,
            AuthProtocol::Sha384 => 32,
            AuthProtocol::Sha512 => 48,
        }
    }

    /// Writes the authentication parameters of a message, whose place holds zeros so far.
    pub(super) fn sign(&self, message: &mut [u8], at: usize) {
        let mut mac = [0; MAC_OCTETS_MAX];
        let octets = self.mac_octets();
        match &self.state {
            State::Md5(state) => calculate(state, message, &mut mac[..octets]),
            State::Sha1(state) => calculate(state, message, &mut mac[..octets]),
            State::Sha224(state) => calculate(state, message, &mut mac[..octets]),
            State::Sha256(state) => calculate(state, message, &mut mac[..octets]),
            State::Sha384(state) => calculate(state, message, &mut mac[..octets]),
            State::Sha512(state) => calculate(state, message, &mut mac[..octets]),
        }
        message[at..at + octets].copy_from_slice(&mac[..octets]);
    }

    /// Whether the authentication parameters at this place are those of the message, in a time
    /// that does not depend on where they differ.
    pub(super) fn verify(&self, message: &[u8], at: usize) -> bool {
        let octets = self.mac_octets();
        let Some((before, mac)) = message.split_at_checked(at) else { return false };
        let Some((mac, after)) = mac.split_at_checked(octets) else { return false };
        let parts = [before, &ZEROS[..octets], after];
        match &self.state {
            State::Md5(state) => is_authentic(state, parts, mac),
            State::Sha1(state) => is_authentic(state, parts, mac),
            State::Sha224(state) => is_authentic(state, parts, mac),
            State::Sha256(state) => is_authentic(state, parts, mac),
            State::Sha384(state) => is_authentic(state, parts, mac),
            State::Sha512(state) => is_authentic(state, parts, mac),
        }
    }
}

fn calculate<M: Mac + Clone>(state: &M, message: &[u8], mac: &mut [u8]) {
    let mut state = state.clone();
    state.update(message);
    let whole = state.finalize().into_bytes();
    mac.copy_from_slice(&whole[..mac.len()]);
}

fn is_authentic<M: Mac + Clone>(state: &M, parts: [&[u8]; 3], mac: &[u8]) -> bool {
    let mut state = state.clone();
    for part in parts {
        state.update(part);
    }
    state.verify_truncated_left(mac).is_ok()
}

impl fmt::Debug for AuthKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthKey({:?})", self.protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2202 and RFC 4231, case 2: key `Jefe`, truncated as USM does.
    #[test]
    fn macs_are_those_of_the_rfcs() {
        let text = b"what do ya want for nothing?";
        for (protocol, expected) in [
            (AuthProtocol::Md5, "750c783e6ab0b503eaa86e31"),
            (AuthProtocol::Sha1, "effcdf6ae5eb2fa2d27416d5"),
            (AuthProtocol::Sha224, "a30e01098bc6dbbf45690f3a7e9e6d0f"),
            (AuthProtocol::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d273983"),
            (
                AuthProtocol::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e",
            ),
            (
                AuthProtocol::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
                 9758bf75c05a994a6d034f65f8f0e6fd",
            ),
        ] {
            let key = AuthKey::new(protocol, b"Jefe");
            let mut mac = [0; MAC_OCTETS_MAX];
            let octets = key.mac_octets();
            match &key.state {
                State::Md5(state) => calculate(state, text, &mut mac[..octets]),
                State::Sha1(state) => calculate(state, text, &mut mac[..octets]),
                State::Sha224(state) => calculate(state, text, &mut mac[..octets]),
                State::Sha256(state) => calculate(state, text, &mut mac[..octets]),
                State::Sha384(state) => calculate(state, text, &mut mac[..octets]),
                State::Sha512(state) => calculate(state, text, &mut mac[..octets]),
            }
            let found: String = mac[..octets].iter().map(|octet| format!("{octet:02x}")).collect();
            assert_eq!(found, expected, "{protocol:?}");
        }
    }

    #[test]
    fn one_changed_bit_anywhere_is_noticed() {
        let key = AuthKey::new(AuthProtocol::Sha256, b"some key");
        let mut message = vec![0; 100];
        message[..10].copy_from_slice(b"0123456789");
        key.sign(&mut message, 40);
        assert!(key.verify(&message, 40));
        for bit in 0..800 {
            message[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verify(&message, 40), "bit {bit}");
            message[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!key.verify(&message, 90));
    }
}
