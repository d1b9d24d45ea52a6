//! The hot path: requests from templates, responses read where they lie.
//!
//! Nothing here allocates once the buffers have grown. A template holds the encoded request; writing
//! it copies the octets and patches the request id in place, so the id has always four octets. Ids
//! from [`REQUEST_ID_MIN`] on have four octets in the shortest form too, as strict agents want it.

use crate::Oid;
use std::sync::Arc;

use crate::ber::{DecodeError, Reader, tag};
use crate::message::{self, Version};
use crate::pdu::{Pdu, PduHead, PduType, VarbindIter};
use crate::usm::{
    self, EngineId, EngineTime, Envelope, LocalKeys, Message, ReportKind, Seal, SecurityLevel, User,
};

/// The least request id whose shortest encoding has four octets.
pub const REQUEST_ID_MIN: i32 = 0x0080_0000;

/// How a response must be secured to be believed.
#[derive(Debug, Clone, Copy)]
pub enum Security<'a> {
    /// v1 or v2c with this community.
    Community {
        /// The version that every datagram begins with.
        version: Version,
        /// The community that every datagram carries in the clear.
        community: &'a [u8],
    },
    /// v3 with this user, at the security level that the keys allow.
    User(&'a User),
}

/// A request that is sent again and again.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    bytes: Vec<u8>,
    request_id_at: usize,
    user: Option<Box<UserTemplate>>,
}

/// What a v3 template needs to be rebuilt, and how it is built now.
#[derive(Debug, Clone)]
struct UserTemplate {
    user: Arc<User>,
    pdu: Pdu,
    built: Option<Built>,
}

#[derive(Debug, Clone)]
struct Built {
    engine_id: EngineId,
    boots: u32,
    time_octets: usize,
    msg_id_at: usize,
    time_at: usize,
    seal: Seal,
}

impl RequestTemplate {
    /// A v1 or v2c GetRequest of these objects.
    pub fn community(version: Version, community: &[u8], oids: &[Oid]) -> Self {
        let mut bytes = Vec::new();
        let pdu = Pdu::request(PduType::Get, REQUEST_ID_MIN, oids);
        message::encode_community(version, community, &pdu, &mut bytes);
        let request_id_at = bytes.len() - octets_from_request_id(&pdu);
        Self { bytes, request_id_at, user: None }
    }

    /// A v3 GetRequest of these objects, at the security level that the user's keys allow.
    pub fn v3(user: Arc<User>, oids: &[Oid]) -> Self {
        let pdu = Pdu::request(PduType::Get, REQUEST_ID_MIN, oids);
        let user = Some(Box::new(UserTemplate { user, pdu, built: None }));
        Self { bytes: Vec::new(), request_id_at: 0, user }
    }

    /// Appends the request with this id to `out`.
    ///
    /// `engine` and `salt` matter to v3 only: the engine's time as it is estimated to be now, and a
    /// number that is never used twice with the same key. While the engine is not known, what is
    /// written is the request that [finds it out](usm::Message::discovery).
    #[inline]
    pub fn write(
        &mut self,
        request_id: i32,
        engine: Option<&EngineTime>,
        salt: u64,
        out: &mut Vec<u8>,
    ) {
        if self.user.is_some() {
            self.write_v3(request_id, engine, salt, out);
            return;
        }
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let at = start + self.request_id_at;
        out[at..at + 4].copy_from_slice(&request_id.to_be_bytes());
    }

    fn write_v3(
        &mut self,
        request_id: i32,
        engine: Option<&EngineTime>,
        salt: u64,
        out: &mut Vec<u8>,
    ) {
        let Some(template) = &mut self.user else { return };
        let Some(engine) = engine else {
            usm::encode_v3(&Message::discovery(request_id), &LocalKeys::default(), 0, out);
            return;
        };
        let time_octets = integer_octets(engine.time);
        let fits = |built: &&Built| {
            built.engine_id == engine.engine_id
                && built.boots == engine.boots
                && built.time_octets == time_octets
        };
        if template.built.as_ref().filter(fits).is_none() {
            self.bytes.clear();
            template.built = Some(template.build(*engine, &mut self.bytes));
            self.request_id_at = self.bytes.len() - octets_from_request_id(&template.pdu);
        }
        let Some(built) = &template.built else { return };
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let message = &mut out[start..];
        let id = request_id.to_be_bytes();
        message[built.msg_id_at..built.msg_id_at + 4].copy_from_slice(&id);
        message[self.request_id_at..self.request_id_at + 4].copy_from_slice(&id);
        let time = u64::from(engine.time).to_be_bytes();
        message[built.time_at..built.time_at + time_octets]
            .copy_from_slice(&time[8 - time_octets..]);
        let keys = &template.user.keys;
        built.seal.apply(message, keys.level(), keys, engine, salt);
    }
}

impl UserTemplate {
    fn build(&self, engine: EngineTime, bytes: &mut Vec<u8>) -> Built {
        let message = Message {
            msg_id: REQUEST_ID_MIN,
            max_size: usm::MESSAGE_OCTETS_MAX,
            level: self.user.keys.level(),
            reportable: true,
            engine,
            user: self.user.name.clone(),
            context_engine_id: engine.engine_id.to_vec(),
            context_name: Vec::new(),
            pdu: self.pdu.clone(),
        };
        let seal = usm::encode_unsealed(&message, &self.user.keys, bytes);
        let time_octets = integer_octets(engine.time);
        // Before the authentication parameters: their head, the name, its head, the time.
        let time_at = seal.auth_at - 2 - self.user.name.len() - 2 - time_octets;
        // Behind the head of the message: the version, the heads of header and message id.
        let msg_id_at = 2 + length_octets(bytes) + 3 + 2 + 2;
        let EngineTime { engine_id, boots, .. } = engine;
        Built { engine_id, boots, time_octets, msg_id_at, time_at, seal }
    }
}

/// Content octets of a number that is written in the fewest.
fn integer_octets(number: u32) -> usize {
    (33 - number.leading_zeros()).div_ceil(8) as usize
}

/// Octets of the length of an element beyond the first.
fn length_octets(element: &[u8]) -> usize {
    if element[1] & 0x80 == 0 { 0 } else { usize::from(element[1] & 0x7f) }
}

/// How many octets before the end of the encoded PDU the content of its request id starts.
fn octets_from_request_id(pdu: &Pdu) -> usize {
    let mut bytes = Vec::new();
    pdu.encode_into(&mut bytes);
    bytes.len() - length_octets(&bytes) - 4
}

/// A response or a report, as it lies in the packet.
#[derive(Debug, Clone)]
pub struct Response<'a> {
    /// Version of the message.
    pub version: Version,
    /// [`PduType::Response`] or [`PduType::Report`].
    pub kind: PduType,
    /// The id of the request that it answers.
    pub request_id: i32,
    /// Error status, see [`crate::ErrorStatus`].
    pub error_status: i32,
    /// Which varbind is at fault, 1 for the first, 0 for none.
    pub error_index: i32,
    /// Names and values.
    pub varbinds: VarbindIter<'a>,
    /// v3: the engine that answered and its time.
    pub engine: Option<EngineTime>,
    /// Whether the message was authenticated; always `false` for v1 and v2c. Boots and time of an
    /// unauthenticated report are not to be trusted.
    pub authentic: bool,
}

impl Response<'_> {
    /// What kind of report it is, if it is one that USM knows.
    pub fn report(&self) -> Option<ReportKind> {
        if self.kind != PduType::Report {
            return None;
        }
        let (oid, _) = self.varbinds.clone().next()?.ok()?;
        ReportKind::from_encoded(oid)
    }
}

/// The id of the request that a packet answers, read with as little work as possible; `None` where
/// there is none to find. Nothing else of the packet is checked.
///
/// v1 and v2c: the PDU's request id. v3: the message id, which requests of this crate set to the
/// request id.
#[inline]
pub fn peek_request_id(bytes: &[u8]) -> Option<i32> {
    let mut message = Reader::new(bytes).inside(tag::SEQUENCE).ok()?;
    let version = message.integer().ok()?;
    if version == Version::V3.code() {
        return message.inside(tag::SEQUENCE).ok()?.integer32().ok();
    }
    message.content(tag::OCTET_STRING).ok()?;
    let (_, pdu) = message.element().ok()?;
    message.over(pdu).integer32().ok()
}

/// Reads a response and checks that it comes from someone who knows the secret; a v3 message is
/// verified and decrypted where it lies.
///
/// Reports are accepted at any security level, since an engine that knows neither user nor key has
/// no other way to say so. Whether boots and time are in the window is for the caller's
/// [`usm::EngineClock`] to say.
///
/// # Errors
///
/// [`DecodeError`]: damaged, another version, community or user, not authentic, less secure than
/// asked for, or neither response nor report.
#[inline]
pub fn read_response<'a>(
    bytes: &'a mut [u8],
    security: &Security<'_>,
) -> Result<Response<'a>, DecodeError> {
    match security {
        Security::Community { version, community } => {
            read_community_response(bytes, *version, community)
        }
        Security::User(user) => read_user_response(bytes, user),
    }
}

#[inline]
fn read_community_response<'a>(
    bytes: &'a [u8],
    version: Version,
    community: &[u8],
) -> Result<Response<'a>, DecodeError> {
    let (found_version, found_community, mut message) = message::open_community(bytes)?;
    if found_version != version {
        return Err(DecodeError::WrongVersion);
    }
    if found_community != community {
        return Err(DecodeError::WrongCommunity);
    }
    let (head, varbinds) = PduHead::decode(&mut message)?;
    if head.kind != PduType::Response {
        return Err(DecodeError::PduType { found: head.kind.tag() });
    }
    Ok(Response {
        version,
        kind: head.kind,
        request_id: head.request_id,
        error_status: head.error_status,
        error_index: head.error_index,
        varbinds,
        engine: None,
        authentic: false,
    })
}

fn read_user_response<'a>(bytes: &'a mut [u8], user: &User) -> Result<Response<'a>, DecodeError> {
    let envelope = Envelope::read(bytes)?;
    let authentic = envelope.level > SecurityLevel::NoAuthNoPriv;
    let same_user = envelope.user(bytes) == user.name.as_slice();
    if authentic && !same_user {
        return Err(DecodeError::WrongUser);
    }
    let mut scoped = envelope.unseal(bytes, &user.keys)?;
    let (head, varbinds) = PduHead::decode(&mut scoped.pdu)?;
    match head.kind {
        // The id inside is unknown to an engine that could not decrypt the request.
        PduType::Report => {}
        PduType::Response if !same_user => return Err(DecodeError::WrongUser),
        PduType::Response if envelope.level < user.keys.level() => {
            return Err(DecodeError::SecurityLevel);
        }
        PduType::Response if head.request_id != envelope.msg_id => {
            let (msg_id, request_id) = (envelope.msg_id, head.request_id);
            return Err(DecodeError::RequestId { msg_id, request_id });
        }
        PduType::Response => {}
        other => return Err(DecodeError::PduType { found: other.tag() }),
    }
    Ok(Response {
        version: Version::V3,
        kind: head.kind,
        request_id: envelope.msg_id,
        error_status: head.error_status,
        error_index: head.error_index,
        varbinds,
        engine: Some(envelope.engine),
        authentic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Value, ValueRef};

    use meikyo_cluster::{AuthProtocol, PrivProtocol};

    fn user(level: SecurityLevel) -> Arc<User> {
        let master = usm::master_key(AuthProtocol::Sha256, b"a good password").unwrap();
        let auth = (level > SecurityLevel::NoAuthNoPriv).then_some(&master);
        let privacy = (level == SecurityLevel::AuthPriv).then_some((PrivProtocol::Aes128, &master));
        Arc::new(User { name: b"reader".to_vec(), keys: usm::localize(auth, privacy, b"engine") })
    }

    fn engine(boots: u32, time: u32) -> EngineTime {
        EngineTime { engine_id: EngineId::from_slice(b"engine").unwrap(), boots, time }
    }

    fn v3_message(engine: EngineTime, user: &User, request_id: i32) -> Message {
        Message {
            msg_id: request_id,
            max_size: usm::MESSAGE_OCTETS_MAX,
            level: user.keys.level(),
            reportable: true,
            engine,
            user: user.name.clone(),
            context_engine_id: engine.engine_id.to_vec(),
            context_name: Vec::new(),
            pdu: Pdu::request(PduType::Get, request_id, &oids()),
        }
    }

    const LEVELS: [SecurityLevel; 3] =
        [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthNoPriv, SecurityLevel::AuthPriv];

    #[test]
    fn a_v3_template_is_the_request_with_another_id_time_and_salt() {
        for level in LEVELS {
            let user = user(level);
            let mut template = RequestTemplate::v3(Arc::clone(&user), &oids());
            let times = [0, 1, 127, 128, 129, 32_767, 32_768, 8_388_608, 0x7fff_ffff];
            for (salt, time) in (77..).zip(times) {
                for boots in [1, 300] {
                    let engine = engine(boots, time);
                    let mut written = vec![9];
                    template.write(0x1234_5678, Some(&engine), salt, &mut written);
                    let mut encoded = vec![9];
                    let message = v3_message(engine, &user, 0x1234_5678);
                    usm::encode_v3(&message, &user.keys, salt, &mut encoded);
                    assert_eq!(written, encoded, "{level:?} {time}");
                    assert_eq!(peek_request_id(&written[1..]), Some(0x1234_5678));
                }
            }
        }
    }

    #[test]
    fn a_v3_template_without_engine_asks_for_it() {
        let mut template = RequestTemplate::v3(user(SecurityLevel::AuthPriv), &oids());
        let mut bytes = Vec::new();
        template.write(REQUEST_ID_MIN, None, 0, &mut bytes);
        let message = usm::decode_v3(&mut bytes, &LocalKeys::default()).unwrap();
        assert_eq!(message, Message::discovery(REQUEST_ID_MIN));
    }

    #[test]
    fn a_v3_response_is_believed_at_its_own_level_only() {
        for asked in LEVELS {
            for answered in LEVELS {
                let (asked_user, answering) = (user(asked), user(answered));
                let mut message = v3_message(engine(1, 1), &answering, 99);
                message.pdu.kind = PduType::Response;
                let mut bytes = Vec::new();
                usm::encode_v3(&message, &answering.keys, 1, &mut bytes);
                let read = read_response(&mut bytes, &Security::User(&asked_user));
                if asked == answered {
                    let response = read.unwrap();
                    assert_eq!((response.request_id, response.varbinds.count()), (99, 7));
                    assert_eq!(response.engine, Some(engine(1, 1)));
                } else {
                    assert_eq!(read.unwrap_err(), DecodeError::SecurityLevel);
                }
            }
        }
    }

    #[test]
    fn a_report_needs_no_keys_and_a_response_the_right_user_and_id() {
        let reader = user(SecurityLevel::NoAuthNoPriv);
        let mut message = v3_message(engine(1, 1), &reader, 99);
        message.pdu = Pdu::request(PduType::Report, 0, &[ReportKind::WrongDigest.oid()]);
        let read = |message: &Message, level| {
            let mut bytes = Vec::new();
            usm::encode_v3(message, &reader.keys, 1, &mut bytes);
            let user = user(level);
            read_response(&mut bytes, &Security::User(&user))
                .map(|response| (response.request_id, response.report()))
        };
        let report = read(&message, SecurityLevel::AuthPriv);
        assert_eq!(report, Ok((99, Some(ReportKind::WrongDigest))));
        message.pdu = Pdu::request(PduType::Response, 98, &[]);
        let error = DecodeError::RequestId { msg_id: 99, request_id: 98 };
        assert_eq!(read(&message, SecurityLevel::NoAuthNoPriv), Err(error));
        message.user = b"other".to_vec();
        assert_eq!(read(&message, SecurityLevel::NoAuthNoPriv), Err(DecodeError::WrongUser));
    }

    fn oids() -> Vec<Oid> {
        (1..=7).map(|column| Oid::from_slice(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, column, 3])).collect()
    }

    #[test]
    fn a_template_is_the_request_with_another_id() {
        let mut template = RequestTemplate::community(Version::V2c, b"public", &oids());
        for request_id in [REQUEST_ID_MIN, 0x1234_5678, i32::MAX] {
            let mut written = vec![9];
            template.write(request_id, None, 0, &mut written);
            let mut encoded = vec![9];
            let pdu = Pdu::request(PduType::Get, request_id, &oids());
            message::encode_community(Version::V2c, b"public", &pdu, &mut encoded);
            assert_eq!(written, encoded);
            assert_eq!(peek_request_id(&written[1..]), Some(request_id));
        }
    }

    #[test]
    fn a_response_is_read_where_it_lies() {
        let mut pdu = Pdu::request(PduType::Response, 77, &[]);
        pdu.varbinds = oids().into_iter().map(|oid| (oid, Value::Counter64(1 << 40))).collect();
        let mut bytes = Vec::new();
        message::encode_community(Version::V1, b"secret", &pdu, &mut bytes);
        let security = Security::Community { version: Version::V1, community: b"secret" };
        let response = read_response(&mut bytes, &security).unwrap();
        assert_eq!(response.request_id, 77);
        let read: Vec<_> = response.varbinds.map(Result::unwrap).collect();
        let expected: Vec<_> = oids().iter().map(Oid::encoded).collect();
        assert_eq!(read.len(), 7);
        for ((name, value), expected) in read.into_iter().zip(&expected) {
            assert_eq!((name, value), (expected.as_slice(), ValueRef::Counter64(1 << 40)));
        }
    }

    #[test]
    fn what_does_not_answer_the_request_is_refused() {
        let mut bytes = Vec::new();
        let response = Pdu::request(PduType::Response, 77, &oids());
        message::encode_community(Version::V2c, b"secret", &response, &mut bytes);
        let mut read = |version, community: &[u8]| {
            read_response(&mut bytes, &Security::Community { version, community }).err()
        };
        assert_eq!(read(Version::V2c, b"public"), Some(DecodeError::WrongCommunity));
        assert_eq!(read(Version::V1, b"secret"), Some(DecodeError::WrongVersion));
        let mut request = Vec::new();
        RequestTemplate::community(Version::V2c, b"secret", &oids()).write(
            77,
            None,
            0,
            &mut request,
        );
        let security = Security::Community { version: Version::V2c, community: b"secret" };
        let error = read_response(&mut request, &security).err();
        assert_eq!(error, Some(DecodeError::PduType { found: 0xa0 }));
    }
}
