//! Messages of v3 (RFC 3412, section 6; RFC 3414, section 2.4).
//!
//! A message is first read as an [`Envelope`]: the header and where everything lies, nothing
//! believed yet. With the user's keys it is then [unsealed](Envelope::unseal): verified, and
//! decrypted where it lies.

use std::ops::Range;

use super::{AuthKey, EngineId, EngineTime, LocalKeys, privacy};
use crate::ber::{self, DecodeError, Reader, tag};
use crate::message::Version;
use crate::pdu::{Pdu, PduType};

/// The number of the user-based security model (RFC 3411, 5).
const SECURITY_MODEL_USM: i64 = 3;

const FLAG_AUTH: u8 = 1;
const FLAG_PRIV: u8 = 2;
const FLAG_REPORTABLE: u8 = 4;

/// How a message is secured; the greater is the safer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityLevel {
    /// Not at all.
    NoAuthNoPriv,
    /// Authenticated, but sent in the clear.
    AuthNoPriv,
    /// Authenticated and encrypted.
    AuthPriv,
}

impl SecurityLevel {
    const fn flags(self) -> u8 {
        match self {
            Self::NoAuthNoPriv => 0,
            Self::AuthNoPriv => FLAG_AUTH,
            Self::AuthPriv => FLAG_AUTH | FLAG_PRIV,
        }
    }

    const fn from_flags(flags: u8) -> Result<Self, DecodeError> {
        match flags & (FLAG_AUTH | FLAG_PRIV) {
            0 => Ok(Self::NoAuthNoPriv),
            FLAG_AUTH => Ok(Self::AuthNoPriv),
            FLAG_PRIV => Err(DecodeError::Flags(flags)),
            _ => Ok(Self::AuthPriv),
        }
    }
}

/// A v3 message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Joins answer and request below the PDU.
    pub msg_id: i32,
    /// Largest message that the sender accepts, in octets.
    pub max_size: i32,
    /// How the message is secured.
    pub level: SecurityLevel,
    /// Whether the receiver may answer with a report.
    pub reportable: bool,
    /// The authoritative engine (the agent's, for requests and responses) and its time.
    pub engine: EngineTime,
    /// The user's name.
    pub user: Vec<u8>,
    /// The engine that the PDU is about.
    pub context_engine_id: Vec<u8>,
    /// The context within it.
    pub context_name: Vec<u8>,
    /// What is asked or told inside the scope.
    pub pdu: Pdu,
}

impl Message {
    /// The request that finds out an engine's id (RFC 3414, section 4).
    pub fn discovery(msg_id: i32) -> Self {
        Self {
            msg_id,
            max_size: super::MESSAGE_OCTETS_MAX,
            level: SecurityLevel::NoAuthNoPriv,
            reportable: true,
            engine: EngineTime::default(),
            user: Vec::new(),
            context_engine_id: Vec::new(),
            context_name: Vec::new(),
            pdu: Pdu::request(PduType::Get, msg_id, &[]),
        }
    }
}

/// The header of a v3 message and where its parts lie; nothing of it is believed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Joins answer and request below the PDU.
    pub msg_id: i32,
    /// Largest message that the sender accepts, in octets.
    pub max_size: i32,
    /// How the message claims to be secured.
    pub level: SecurityLevel,
    /// Whether an answer with a report is wanted.
    pub reportable: bool,
    /// The authoritative engine and its time.
    pub engine: EngineTime,
    user: Range<usize>,
    auth: Range<usize>,
    salt: Range<usize>,
    /// The scoped PDU: the whole element, or the encrypted octets.
    scoped: Range<usize>,
}

/// The range of the content that `reader` returned last.
fn range_of(reader: &Reader<'_>, content: &[u8]) -> Range<usize> {
    let end = reader.position();
    end - content.len()..end
}

fn unsigned31(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let number = reader.integer32()?;
    u32::try_from(number).map_err(|_| DecodeError::Number { tag: tag::INTEGER, octets: 4 })
}

impl Envelope {
    /// Reads the header of a v3 message.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is damaged, of another version or security model.
    pub fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut message = Reader::new(bytes).inside(tag::SEQUENCE)?;
        if Version::from_code(message.integer()?)? != Version::V3 {
            return Err(DecodeError::WrongVersion);
        }
        let mut header = message.inside(tag::SEQUENCE)?;
        let msg_id = header.integer32()?;
        let max_size = header.integer32()?;
        let flags = header.content(tag::OCTET_STRING)?;
        let &[flags] = flags else {
            return Err(DecodeError::Size { tag: tag::OCTET_STRING, octets: flags.len() });
        };
        let level = SecurityLevel::from_flags(flags)?;
        let model = header.integer()?;
        if model != SECURITY_MODEL_USM {
            return Err(DecodeError::SecurityModel(model));
        }
        let parameters = message.content(tag::OCTET_STRING)?;
        let mut parameters = message.over(parameters).inside(tag::SEQUENCE)?;
        let engine_id = parameters.content(tag::OCTET_STRING)?;
        let engine_id = EngineId::from_slice(engine_id)
            .ok_or(DecodeError::Size { tag: tag::OCTET_STRING, octets: engine_id.len() })?;
        let boots = unsigned31(&mut parameters)?;
        let time = unsigned31(&mut parameters)?;
        let user = parameters.content(tag::OCTET_STRING)?;
        let user = range_of(&parameters, user);
        let auth = parameters.content(tag::OCTET_STRING)?;
        let auth = range_of(&parameters, auth);
        let salt = parameters.content(tag::OCTET_STRING)?;
        let salt = range_of(&parameters, salt);
        let start = message.position();
        let scoped = if level == SecurityLevel::AuthPriv {
            let content = message.content(tag::OCTET_STRING)?;
            range_of(&message, content)
        } else {
            message.content(tag::SEQUENCE)?;
            start..message.position()
        };
        let reportable = flags & FLAG_REPORTABLE != 0;
        let engine = EngineTime { engine_id, boots, time };
        Ok(Self { msg_id, max_size, level, reportable, engine, user, auth, salt, scoped })
    }

    /// The user's name, out of the octets that the envelope was read from.
    pub fn user<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.user.clone()]
    }

    /// Verifies the message with the keys as far as its level says, decrypts it where it lies, and
    /// returns the scoped PDU. The octets must be those that the envelope was read from.
    ///
    /// # Errors
    ///
    /// [`DecodeError::SecurityLevel`] if the level needs a key that is not there,
    /// [`DecodeError::NotAuthentic`], [`DecodeError::Decryption`], or damage inside.
    pub fn unseal<'a>(
        &self,
        bytes: &'a mut [u8],
        keys: &LocalKeys,
    ) -> Result<Scoped<'a>, DecodeError> {
        self.verify(bytes, keys)?;
        self.decrypt(bytes, keys)
    }

    /// Verifies the message with the keys as far as its level says.
    ///
    /// # Errors
    ///
    /// [`DecodeError::SecurityLevel`] if the level needs a key that is not there, or
    /// [`DecodeError::NotAuthentic`].
    pub fn verify(&self, bytes: &[u8], keys: &LocalKeys) -> Result<(), DecodeError> {
        if self.level == SecurityLevel::NoAuthNoPriv {
            return Ok(());
        }
        let key = keys.auth.as_ref().ok_or(DecodeError::SecurityLevel)?;
        // Octets that some agents leave behind the message are no part of it.
        let message = &bytes[..self.scoped.end];
        if self.auth.len() == key.mac_octets() && key.verify(message, self.auth.start) {
            Ok(())
        } else {
            Err(DecodeError::NotAuthentic)
        }
    }

    /// Decrypts a message that is [verified](Self::verify) where it lies.
    ///
    /// # Errors
    ///
    /// [`DecodeError::SecurityLevel`] if the level needs a key that is not there,
    /// [`DecodeError::Decryption`], or damage inside.
    pub fn decrypt<'a>(
        &self,
        bytes: &'a mut [u8],
        keys: &LocalKeys,
    ) -> Result<Scoped<'a>, DecodeError> {
        if self.level != SecurityLevel::AuthPriv {
            return Scoped::read(&bytes[self.scoped.clone()]);
        }
        let key = keys.privacy.as_ref().ok_or(DecodeError::SecurityLevel)?;
        let salt = bytes[self.salt.clone()].try_into().map_err(|_| DecodeError::Decryption)?;
        let vector = privacy::vector(self.engine.boots, self.engine.time, salt);
        let scoped = &mut bytes[self.scoped.clone()];
        key.decrypt(vector, scoped);
        Scoped::read(scoped).map_err(|_| DecodeError::Decryption)
    }
}

/// The PDU of a v3 message with its context.
#[derive(Debug, Clone)]
pub struct Scoped<'a> {
    /// The engine that the PDU is about.
    pub context_engine_id: &'a [u8],
    /// The context within it.
    pub context_name: &'a [u8],
    pub(crate) pdu: Reader<'a>,
}

impl<'a> Scoped<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut pdu = Reader::new(bytes).inside(tag::SEQUENCE)?;
        let context_engine_id = pdu.content(tag::OCTET_STRING)?;
        let context_name = pdu.content(tag::OCTET_STRING)?;
        Ok(Self { context_engine_id, context_name, pdu })
    }

    /// The PDU.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with the place inside the scoped PDU.
    pub fn pdu(&self) -> Result<Pdu, DecodeError> {
        Pdu::decode(&mut self.pdu.clone())
    }
}

/// Reads a v3 message, verified and decrypted where it lies, as far as its level says.
///
/// # Errors
///
/// As [`Envelope::read`] and [`Envelope::unseal`].
pub fn decode_v3(bytes: &mut [u8], keys: &LocalKeys) -> Result<Message, DecodeError> {
    let envelope = Envelope::read(bytes)?;
    let user = envelope.user(bytes).to_vec();
    let scoped = envelope.unseal(bytes, keys)?;
    Ok(Message {
        msg_id: envelope.msg_id,
        max_size: envelope.max_size,
        level: envelope.level,
        reportable: envelope.reportable,
        engine: envelope.engine,
        user,
        context_engine_id: scoped.context_engine_id.to_vec(),
        context_name: scoped.context_name.to_vec(),
        pdu: scoped.pdu()?,
    })
}

/// Where the parts of an encoded message lie that are filled in last, from its first octet.
#[derive(Debug, Clone)]
pub(crate) struct Seal {
    pub(crate) auth_at: usize,
    salt_at: usize,
    scoped: Range<usize>,
}

impl Seal {
    /// Encrypts and signs the message that is the whole of `bytes`, whose authentication
    /// parameters hold zeros so far.
    pub(crate) fn apply(
        &self,
        bytes: &mut [u8],
        level: SecurityLevel,
        keys: &LocalKeys,
        engine: &EngineTime,
        salt: u64,
    ) {
        if let (SecurityLevel::AuthPriv, Some(key)) = (level, &keys.privacy) {
            let salt = salt.to_be_bytes();
            bytes[self.salt_at..self.salt_at + 8].copy_from_slice(&salt);
            let vector = privacy::vector(engine.boots, engine.time, salt);
            key.encrypt(vector, &mut bytes[self.scoped.clone()]);
        }
        if let (SecurityLevel::AuthNoPriv | SecurityLevel::AuthPriv, Some(key)) =
            (level, &keys.auth)
        {
            key.sign(bytes, self.auth_at);
        }
    }
}

/// What a message says around its scoped PDU; the fields are those of [`Message`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) msg_id: i32,
    pub(crate) max_size: i32,
    pub(crate) level: SecurityLevel,
    pub(crate) reportable: bool,
    pub(crate) engine: EngineTime,
    pub(crate) user: &'a [u8],
}

/// Appends a message with zeros where the seal goes, and says where that is.
pub(crate) fn encode_unsealed(message: &Message, keys: &LocalKeys, out: &mut Vec<u8>) -> Seal {
    let mut scoped = Vec::new();
    let start = ber::open(&mut scoped, tag::SEQUENCE);
    ber::put(&mut scoped, tag::OCTET_STRING, &message.context_engine_id);
    ber::put(&mut scoped, tag::OCTET_STRING, &message.context_name);
    message.pdu.encode_into(&mut scoped);
    ber::close(&mut scoped, start);
    let head = Head {
        msg_id: message.msg_id,
        max_size: message.max_size,
        level: message.level,
        reportable: message.reportable,
        engine: message.engine,
        user: &message.user,
    };
    encode_scoped_unsealed(&head, &scoped, keys, out)
}

/// As [`encode_unsealed`], around a scoped PDU that is encoded already.
pub(crate) fn encode_scoped_unsealed(
    message: &Head<'_>,
    scoped: &[u8],
    keys: &LocalKeys,
    out: &mut Vec<u8>,
) -> Seal {
    let begin = out.len();
    let whole = ber::open(out, tag::SEQUENCE);
    ber::put_signed(out, tag::INTEGER, Version::V3.code());
    let header = ber::open(out, tag::SEQUENCE);
    ber::put_signed(out, tag::INTEGER, message.msg_id.into());
    ber::put_signed(out, tag::INTEGER, message.max_size.into());
    let reportable = if message.reportable { FLAG_REPORTABLE } else { 0 };
    ber::put(out, tag::OCTET_STRING, &[message.level.flags() | reportable]);
    ber::put_signed(out, tag::INTEGER, SECURITY_MODEL_USM);
    ber::close(out, header);
    let (mac_octets, salt_octets) = match message.level {
        SecurityLevel::NoAuthNoPriv => (0, 0),
        SecurityLevel::AuthNoPriv => (keys.auth.as_ref().map_or(0, AuthKey::mac_octets), 0),
        SecurityLevel::AuthPriv => (keys.auth.as_ref().map_or(0, AuthKey::mac_octets), 8),
    };
    let string = ber::open(out, tag::OCTET_STRING);
    let parameters = ber::open(out, tag::SEQUENCE);
    ber::put(out, tag::OCTET_STRING, &message.engine.engine_id);
    ber::put_signed(out, tag::INTEGER, message.engine.boots.into());
    ber::put_signed(out, tag::INTEGER, message.engine.time.into());
    ber::put(out, tag::OCTET_STRING, message.user);
    ber::put(out, tag::OCTET_STRING, &[0; super::auth::MAC_OCTETS_MAX][..mac_octets]);
    ber::put(out, tag::OCTET_STRING, &[0; 8][..salt_octets]);
    ber::close(out, parameters);
    ber::close(out, string);
    let before_scoped = out.len();
    if message.level == SecurityLevel::AuthPriv {
        ber::put(out, tag::OCTET_STRING, scoped);
    } else {
        out.extend_from_slice(scoped);
    }
    // From the end, since closing the elements moves what lies inside them.
    let from_end = out.len() - before_scoped;
    ber::close(out, whole);
    let end = out.len() - begin;
    let salt_at = end - from_end - salt_octets;
    let auth_at = salt_at - 2 - mac_octets;
    Seal { auth_at, salt_at, scoped: end - scoped.len()..end }
}

/// Appends a v3 message, encrypted and signed as its level says.
///
/// `salt` must never be used twice with the same key (RFC 3826, 3.1.2.1).
///
/// # Panics
///
/// If the level needs a key that is not there.
pub fn encode_v3(message: &Message, keys: &LocalKeys, salt: u64, out: &mut Vec<u8>) {
    assert!(message.level <= keys.level(), "a message needs the keys of its security level");
    let begin = out.len();
    let seal = encode_unsealed(message, keys, out);
    seal.apply(&mut out[begin..], message.level, keys, &message.engine, salt);
}

#[cfg(test)]
mod tests {
    use meikyo_cluster::{AuthProtocol, PrivProtocol};

    use super::*;
    use crate::usm::{PrivKey, localize, master_key};
    use crate::value::Value;

    const AUTH: [AuthProtocol; 6] = [
        AuthProtocol::Md5,
        AuthProtocol::Sha1,
        AuthProtocol::Sha224,
        AuthProtocol::Sha256,
        AuthProtocol::Sha384,
        AuthProtocol::Sha512,
    ];

    fn message(level: SecurityLevel, octets: usize) -> Message {
        let engine_id = EngineId::from_slice(b"\x80\x00\x1f\x88\x04meikyo").unwrap();
        let mut pdu = Pdu::request(PduType::Response, 0x1234_5678, &[]);
        let oid = "1.3.6.1.2.1.1.1.0".parse().unwrap();
        pdu.varbinds.push((oid, Value::OctetString(vec![7; octets])));
        Message {
            msg_id: 0x1234_5678,
            max_size: 1472,
            level,
            reportable: true,
            engine: EngineTime { engine_id, boots: 7, time: 123_456 },
            user: b"reader".to_vec(),
            context_engine_id: engine_id.to_vec(),
            context_name: b"context".to_vec(),
            pdu,
        }
    }

    fn keys(auth: AuthProtocol, privacy: PrivProtocol) -> LocalKeys {
        let master = master_key(auth, b"a good password").unwrap();
        localize(Some(&master), Some((privacy, &master)), b"\x80\x00\x1f\x88\x04meikyo")
    }

    #[test]
    fn every_protocol_and_level_comes_back() {
        for (auth, privacy) in
            AUTH.into_iter().zip([PrivProtocol::Aes128, PrivProtocol::Aes256].into_iter().cycle())
        {
            let keys = keys(auth, privacy);
            for level in
                [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthNoPriv, SecurityLevel::AuthPriv]
            {
                for octets in [0, 20, 60, 127, 128, 400, 1300] {
                    let message = message(level, octets);
                    let mut bytes = vec![1, 2, 3];
                    encode_v3(&message, &keys, 0x0102_0304_0506_0708, &mut bytes);
                    let mut bytes = bytes.split_off(3);
                    // What lies behind the message changes nothing.
                    bytes.push(0);
                    assert_eq!(decode_v3(&mut bytes, &keys), Ok(message), "{auth:?} {octets}");
                }
            }
        }
    }

    #[test]
    fn the_plain_text_is_not_in_an_encrypted_message() {
        let keys = keys(AuthProtocol::Sha256, PrivProtocol::Aes128);
        let holds = |level| {
            let mut bytes = Vec::new();
            encode_v3(&message(level, 64), &keys, 5, &mut bytes);
            bytes.windows(16).any(|window| window == [7; 16])
        };
        assert!(holds(SecurityLevel::AuthNoPriv));
        assert!(!holds(SecurityLevel::AuthPriv));
    }

    #[test]
    fn other_keys_and_changed_octets_are_noticed() {
        let good = keys(AuthProtocol::Sha256, PrivProtocol::Aes128);
        let bad = keys(AuthProtocol::Sha512, PrivProtocol::Aes128);
        let mut bytes = Vec::new();
        encode_v3(&message(SecurityLevel::AuthPriv, 20), &good, 5, &mut bytes);
        assert_eq!(decode_v3(&mut bytes.clone(), &bad), Err(DecodeError::NotAuthentic));
        let none = LocalKeys::default();
        assert_eq!(decode_v3(&mut bytes.clone(), &none), Err(DecodeError::SecurityLevel));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(decode_v3(&mut changed, &good).is_err(), "byte {at}");
        }
        let swapped = LocalKeys { privacy: Some(PrivKey::aes128(&[1; 16])), ..good };
        assert_eq!(decode_v3(&mut bytes, &swapped), Err(DecodeError::Decryption));
    }

    #[test]
    fn encryption_without_authentication_is_refused() {
        assert_eq!(SecurityLevel::from_flags(6), Err(DecodeError::Flags(6)));
        assert_eq!(SecurityLevel::from_flags(4), Ok(SecurityLevel::NoAuthNoPriv));
    }
}
