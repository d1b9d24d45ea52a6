//! Messages of v1 and v2c (RFC 1157, RFC 1901): version, community, PDU. v3 is in `usm`.

use crate::ber::{self, DecodeError, Reader, tag};
use crate::pdu::Pdu;

/// SNMP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
    /// SNMPv3.
    V3,
}

impl Version {
    /// The number on the wire.
    pub const fn code(self) -> i64 {
        match self {
            Self::V1 => 0,
            Self::V2c => 1,
            Self::V3 => 3,
        }
    }

    /// The version with this number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Version`] for all others.
    pub const fn from_code(code: i64) -> Result<Self, DecodeError> {
        match code {
            0 => Ok(Self::V1),
            1 => Ok(Self::V2c),
            3 => Ok(Self::V3),
            other => Err(DecodeError::Version(other)),
        }
    }
}

/// The version of a message.
///
/// # Errors
///
/// [`DecodeError`] if it is no SNMP message.
pub fn peek_version(bytes: &[u8]) -> Result<Version, DecodeError> {
    let mut message = Reader::new(bytes).inside(tag::SEQUENCE)?;
    Version::from_code(message.integer()?)
}

/// Appends a v1 or v2c message.
pub fn encode_community(version: Version, community: &[u8], pdu: &Pdu, out: &mut Vec<u8>) {
    let message = ber::open(out, tag::SEQUENCE);
    ber::put_signed(out, tag::INTEGER, version.code());
    ber::put(out, tag::OCTET_STRING, community);
    pdu.encode_into(out);
    ber::close(out, message);
}

/// Reads a v1 or v2c message: version, community, PDU. Octets after the message are ignored.
///
/// # Errors
///
/// [`DecodeError`] with the place; [`DecodeError::WrongVersion`] for v3.
pub fn decode_community(bytes: &[u8]) -> Result<(Version, &[u8], Pdu), DecodeError> {
    let (version, community, mut pdu) = open_community(bytes)?;
    Ok((version, community, Pdu::decode(&mut pdu)?))
}

/// The outer part of a v1 or v2c message: version, community, and a reader before the PDU.
#[inline]
pub(crate) fn open_community(bytes: &[u8]) -> Result<(Version, &[u8], Reader<'_>), DecodeError> {
    let mut message = Reader::new(bytes).inside(tag::SEQUENCE)?;
    let version = Version::from_code(message.integer()?)?;
    if version == Version::V3 {
        return Err(DecodeError::WrongVersion);
    }
    let community = message.content(tag::OCTET_STRING)?;
    Ok((version, community, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::PduType;
    use crate::value::Value;

    #[test]
    fn a_get_is_what_net_snmp_sends() {
        // snmpget -v2c -c public 127.0.0.1 1.3.6.1.2.1.1.3.0, captured with `snmpget -d`, with the
        // request id set to 1.
        let expected = [
            0x30, 0x26, 0x02, 0x01, 0x01, 0x04, 0x06, 0x70, 0x75, 0x62, 0x6c, 0x69, 0x63, 0xa0,
            0x19, 0x02, 0x01, 0x01, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00, 0x30, 0x0e, 0x30, 0x0c,
            0x06, 0x08, 0x2b, 0x06, 0x01, 0x02, 0x01, 0x01, 0x03, 0x00, 0x05, 0x00,
        ];
        let oid = "1.3.6.1.2.1.1.3.0".parse().unwrap();
        let mut out = Vec::new();
        encode_community(Version::V2c, b"public", &Pdu::request(PduType::Get, 1, &[oid]), &mut out);
        assert_eq!(out, expected);
        assert_eq!(peek_version(&out), Ok(Version::V2c));
    }

    #[test]
    fn every_value_comes_back() {
        let values = [
            Value::Integer(-5),
            Value::OctetString(vec![1; 200]),
            Value::ObjectId("1.3.6.1.4.1.8072".parse().unwrap()),
            Value::IpAddress([10, 0, 0, 1]),
            Value::Counter32(u32::MAX),
            Value::Gauge32(1 << 31),
            Value::TimeTicks(12),
            Value::Opaque(vec![0x9f, 0x78, 4, 0, 0, 0, 0]),
            Value::Counter64(u64::MAX),
            Value::Null,
            Value::NoSuchObject,
            Value::NoSuchInstance,
            Value::EndOfMibView,
        ];
        let mut pdu = Pdu::request(PduType::Response, i32::MIN, &[]);
        for (arc, value) in (1..).zip(values) {
            pdu.varbinds.push((crate::Oid::from_slice(&[1, 3, 6, arc]), value));
        }
        let mut out = Vec::new();
        encode_community(Version::V1, b"", &pdu, &mut out);
        assert_eq!(decode_community(&out), Ok((Version::V1, &b""[..], pdu)));
    }
}
