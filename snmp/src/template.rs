//! The hot path: requests from templates, responses read where they lie.
//!
//! Nothing here allocates once the buffers have grown. A template holds the encoded request; writing
//! it copies the octets and patches the request id in place, so the id has always four octets. Ids
//! from [`REQUEST_ID_MIN`] on have four octets in the shortest form too, as strict agents want it.

use crate::Oid;
use crate::ber::{DecodeError, Reader, tag};
use crate::message::{self, Version};
use crate::pdu::{Pdu, PduHead, PduType, VarbindIter};
use crate::usm::EngineTime;

/// The least request id whose shortest encoding has four octets.
pub const REQUEST_ID_MIN: i32 = 0x0080_0000;

/// How a response must be secured to be believed.
#[derive(Debug, Clone, Copy)]
pub enum Security<'a> {
    /// v1 or v2c with this community.
    Community {
        /// The version.
        version: Version,
        /// The community.
        community: &'a [u8],
    },
}

/// A request that is sent again and again.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    bytes: Vec<u8>,
    request_id_at: usize,
}

impl RequestTemplate {
    /// A v1 or v2c GetRequest of these objects.
    pub fn community(version: Version, community: &[u8], oids: &[Oid]) -> Self {
        let mut bytes = Vec::new();
        let pdu = Pdu::request(PduType::Get, REQUEST_ID_MIN, oids);
        message::encode_community(version, community, &pdu, &mut bytes);
        let request_id_at = bytes.len() - octets_from_request_id(&pdu);
        Self { bytes, request_id_at }
    }

    /// Octets of the request.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the request has no octets, which no request has.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends the request with this id to `out`.
    ///
    /// `engine` and `salt` matter to v3 only: the engine's time as it is estimated to be now, and a
    /// number that is never used twice with the same key.
    #[inline]
    pub fn write(
        &mut self,
        request_id: i32,
        _engine: Option<&EngineTime>,
        _salt: u64,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let at = start + self.request_id_at;
        out[at..at + 4].copy_from_slice(&request_id.to_be_bytes());
    }
}

/// How many octets before the end of the encoded PDU the content of its request id starts.
fn octets_from_request_id(pdu: &Pdu) -> usize {
    let mut bytes = Vec::new();
    pdu.encode_into(&mut bytes);
    let length_octets = if bytes[1] & 0x80 == 0 { 0 } else { usize::from(bytes[1] & 0x7f) };
    bytes.len() - length_octets - 4
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

/// Reads a response and checks that it comes from someone who knows the secret.
///
/// # Errors
///
/// [`DecodeError`]: damaged, another version or community, or no response.
#[inline]
pub fn read_response<'a>(
    bytes: &'a mut [u8],
    security: &Security<'_>,
) -> Result<Response<'a>, DecodeError> {
    match security {
        Security::Community { version, community } => {
            read_community_response(bytes, *version, community)
        }
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Value, ValueRef};

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
