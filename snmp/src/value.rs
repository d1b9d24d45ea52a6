//! Values of managed objects (RFC 2578, section 7; RFC 3416), owned and borrowed.

use std::fmt;

use crate::Oid;
use crate::ber::{self, DecodeError, tag};

/// A value of a managed object, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// INTEGER; 32 bits by the standard, some agents send more.
    Integer(i64),
    /// OCTET STRING: any octets, text or not.
    OctetString(Vec<u8>),
    /// OBJECT IDENTIFIER.
    ObjectId(Oid),
    /// An IPv4 address in network order.
    IpAddress([u8; 4]),
    /// Counter32: counts up and wraps at 2^32 (RFC 2578, 7.1.6).
    Counter32(u32),
    /// Gauge32 and Unsigned32.
    Gauge32(u32),
    /// TimeTicks, hundredths of a second.
    TimeTicks(u32),
    /// Opaque: octets that wrap another encoding, as net-snmp's floats.
    Opaque(Vec<u8>),
    /// Counter64: counts up and wraps at 2^64; unknown to v1 (RFC 2578, 7.1.10).
    Counter64(u64),
    /// NULL: what requests hold.
    Null,
    /// The agent has no such object.
    NoSuchObject,
    /// The object has no such instance.
    NoSuchInstance,
    /// There is nothing further.
    EndOfMibView,
}

impl Value {
    /// The same value, borrowed; an object identifier is encoded into `scratch`.
    pub fn borrow<'a>(&'a self, scratch: &'a mut Vec<u8>) -> ValueRef<'a> {
        match self {
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::OctetString(octets) => ValueRef::OctetString(octets),
            Self::ObjectId(oid) => {
                scratch.clear();
                oid.encode_into(scratch);
                ValueRef::ObjectId(scratch)
            }
            Self::IpAddress(address) => ValueRef::IpAddress(*address),
            Self::Counter32(number) => ValueRef::Counter32(*number),
            Self::Gauge32(number) => ValueRef::Gauge32(*number),
            Self::TimeTicks(number) => ValueRef::TimeTicks(*number),
            Self::Opaque(octets) => ValueRef::Opaque(octets),
            Self::Counter64(number) => ValueRef::Counter64(*number),
            Self::Null => ValueRef::Null,
            Self::NoSuchObject => ValueRef::NoSuchObject,
            Self::NoSuchInstance => ValueRef::NoSuchInstance,
            Self::EndOfMibView => ValueRef::EndOfMibView,
        }
    }

    /// Appends the element: type, length and content.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::ObjectId(oid) => {
                let start = ber::open(out, tag::OBJECT_ID);
                oid.encode_into(out);
                ber::close(out, start);
            }
            other => other.borrow(&mut Vec::new()).encode_into(out),
        }
    }

    /// The number that it holds, if it is a non-negative whole number.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Counter32(number) | Self::Gauge32(number) | Self::TimeTicks(number) => {
                Some(u64::from(*number))
            }
            Self::Counter64(number) => Some(*number),
            _ => None,
        }
    }

    /// The number that it holds, if it is a whole number of 64 bits with sign.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            other => other.as_u64().and_then(|number| i64::try_from(number).ok()),
        }
    }

    /// The octets, if it is an OCTET STRING.
    pub fn as_octets(&self) -> Option<&[u8]> {
        match self {
            Self::OctetString(octets) => Some(octets),
            _ => None,
        }
    }

    /// Whether it says that there is no value.
    pub fn is_exception(&self) -> bool {
        matches!(self, Self::NoSuchObject | Self::NoSuchInstance | Self::EndOfMibView)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::OctetString(octets) | Self::Opaque(octets) => write_octets(octets, formatter),
            Self::ObjectId(oid) => write!(formatter, "{oid}"),
            Self::IpAddress([a, b, c, d]) => write!(formatter, "{a}.{b}.{c}.{d}"),
            Self::Counter32(number) | Self::Gauge32(number) | Self::TimeTicks(number) => {
                write!(formatter, "{number}")
            }
            Self::Counter64(number) => write!(formatter, "{number}"),
            Self::Null => formatter.write_str("null"),
            Self::NoSuchObject => formatter.write_str("no such object"),
            Self::NoSuchInstance => formatter.write_str("no such instance"),
            Self::EndOfMibView => formatter.write_str("end of MIB view"),
        }
    }
}

/// Text where the octets are printable UTF-8, hexadecimal otherwise.
fn write_octets(octets: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match str::from_utf8(octets) {
        Ok(text) if !text.chars().any(char::is_control) => formatter.write_str(text),
        _ => octets.iter().enumerate().try_for_each(|(position, octet)| {
            let gap = if position == 0 { "" } else { " " };
            write!(formatter, "{gap}{octet:02x}")
        }),
    }
}

/// A value that borrows from the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueRef<'a> {
    /// INTEGER: signed, of 32 bits where agents keep to RFC 2578.
    Integer(i64),
    /// OCTET STRING: any octets, text or not.
    OctetString(&'a [u8]),
    /// OBJECT IDENTIFIER: its content octets, not checked.
    ObjectId(&'a [u8]),
    /// An IPv4 address in network order.
    IpAddress([u8; 4]),
    /// Counter32: counts up and wraps at 2^32 (RFC 2578, 7.1.6).
    Counter32(u32),
    /// Gauge32 and Unsigned32.
    Gauge32(u32),
    /// TimeTicks, hundredths of a second.
    TimeTicks(u32),
    /// Opaque: octets that wrap another encoding, as net-snmp's floats.
    Opaque(&'a [u8]),
    /// Counter64: counts up and wraps at 2^64; unknown to v1 (RFC 2578, 7.1.10).
    Counter64(u64),
    /// NULL: the value of every object in a request.
    Null,
    /// The agent has no such object.
    NoSuchObject,
    /// The object has no such instance.
    NoSuchInstance,
    /// There is nothing further.
    EndOfMibView,
}

impl<'a> ValueRef<'a> {
    /// The value of an element.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the type is unknown or the content does not fit it.
    #[expect(clippy::inline_always, reason = "its result would go through memory")]
    #[inline(always)]
    pub fn decode(tag: u8, content: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(match tag {
            tag::COUNTER64 => Self::Counter64(ber::unsigned64(tag, content)?),
            tag::COUNTER32 => Self::Counter32(ber::unsigned32(tag, content)?),
            tag::GAUGE32 => Self::Gauge32(ber::unsigned32(tag, content)?),
            tag::TIME_TICKS => Self::TimeTicks(ber::unsigned32(tag, content)?),
            tag::INTEGER => Self::Integer(ber::signed(tag, content)?),
            tag::OCTET_STRING => Self::OctetString(content),
            tag::OBJECT_ID => Self::ObjectId(content),
            tag::OPAQUE => Self::Opaque(content),
            tag::IP_ADDRESS => match content.try_into() {
                Ok(address) => Self::IpAddress(address),
                Err(_) => return Err(DecodeError::Size { tag, octets: content.len() }),
            },
            tag::NULL => Self::Null,
            tag::NO_SUCH_OBJECT => Self::NoSuchObject,
            tag::NO_SUCH_INSTANCE => Self::NoSuchInstance,
            tag::END_OF_MIB_VIEW => Self::EndOfMibView,
            found => return Err(DecodeError::UnknownType { found }),
        })
    }

    /// Appends the element: type, length and content.
    #[inline]
    pub fn encode_into(self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(number) => ber::put_signed(out, tag::INTEGER, number),
            Self::OctetString(octets) => ber::put(out, tag::OCTET_STRING, octets),
            Self::ObjectId(content) => ber::put(out, tag::OBJECT_ID, content),
            Self::IpAddress(address) => ber::put(out, tag::IP_ADDRESS, &address),
            Self::Counter32(number) => ber::put_unsigned(out, tag::COUNTER32, number.into()),
            Self::Gauge32(number) => ber::put_unsigned(out, tag::GAUGE32, number.into()),
            Self::TimeTicks(number) => ber::put_unsigned(out, tag::TIME_TICKS, number.into()),
            Self::Opaque(octets) => ber::put(out, tag::OPAQUE, octets),
            Self::Counter64(number) => ber::put_unsigned(out, tag::COUNTER64, number),
            Self::Null => ber::put(out, tag::NULL, &[]),
            Self::NoSuchObject => ber::put(out, tag::NO_SUCH_OBJECT, &[]),
            Self::NoSuchInstance => ber::put(out, tag::NO_SUCH_INSTANCE, &[]),
            Self::EndOfMibView => ber::put(out, tag::END_OF_MIB_VIEW, &[]),
        }
    }

    /// The same value, owned.
    ///
    /// # Errors
    ///
    /// [`DecodeError::ObjectId`] if it is an object identifier that has no meaning.
    pub fn to_value(self) -> Result<Value, DecodeError> {
        Ok(match self {
            Self::Integer(number) => Value::Integer(number),
            Self::OctetString(octets) => Value::OctetString(octets.to_vec()),
            // An empty content is what some agents send for `0.0`.
            Self::ObjectId([]) => Value::ObjectId(Oid::from_slice(&[0, 0])),
            Self::ObjectId(content) => Value::ObjectId(Oid::decode(content)?),
            Self::IpAddress(address) => Value::IpAddress(address),
            Self::Counter32(number) => Value::Counter32(number),
            Self::Gauge32(number) => Value::Gauge32(number),
            Self::TimeTicks(number) => Value::TimeTicks(number),
            Self::Opaque(octets) => Value::Opaque(octets.to_vec()),
            Self::Counter64(number) => Value::Counter64(number),
            Self::Null => Value::Null,
            Self::NoSuchObject => Value::NoSuchObject,
            Self::NoSuchInstance => Value::NoSuchInstance,
            Self::EndOfMibView => Value::EndOfMibView,
        })
    }

    /// The number that it holds, if it is a non-negative whole number.
    #[inline]
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(number).ok(),
            Self::Counter32(number) | Self::Gauge32(number) | Self::TimeTicks(number) => {
                Some(u64::from(number))
            }
            Self::Counter64(number) => Some(number),
            _ => None,
        }
    }
}
