//! The part of BER that SNMP uses (RFC 3417, section 8): definite lengths, single-octet types.
//!
//! The reader accepts every legal form of a length and integers with redundant leading octets,
//! since real agents send them; the writer produces the shortest forms.

use thiserror::Error;

/// Types on the wire (RFC 2578, RFC 3416).
pub mod tag {
    /// The tag of an INTEGER (X.690, 8.3).
    pub const INTEGER: u8 = 0x02;
    /// The tag of an OCTET STRING (X.690, 8.7).
    pub const OCTET_STRING: u8 = 0x04;
    /// The tag of NULL, which has no content (X.690, 8.8).
    pub const NULL: u8 = 0x05;
    /// OBJECT IDENTIFIER.
    pub const OBJECT_ID: u8 = 0x06;
    /// The tag of a SEQUENCE, whose content is elements (X.690, 8.9).
    pub const SEQUENCE: u8 = 0x30;
    /// The tag of an IpAddress (RFC 2578, 2).
    pub const IP_ADDRESS: u8 = 0x40;
    /// The tag of a Counter32 (RFC 2578, 2).
    pub const COUNTER32: u8 = 0x41;
    /// Gauge32 and Unsigned32.
    pub const GAUGE32: u8 = 0x42;
    /// The tag of TimeTicks, hundredths of a second (RFC 2578, 2).
    pub const TIME_TICKS: u8 = 0x43;
    /// The tag of an Opaque value (RFC 2578, 2).
    pub const OPAQUE: u8 = 0x44;
    /// The tag of a Counter64 (RFC 2578, 2).
    pub const COUNTER64: u8 = 0x46;
    /// The tag in place of a value where the agent knows no such object (RFC 3416, 3).
    pub const NO_SUCH_OBJECT: u8 = 0x80;
    /// The tag in place of a value where the object has no such instance (RFC 3416, 3).
    pub const NO_SUCH_INSTANCE: u8 = 0x81;
    /// The tag in place of a value where no object follows (RFC 3416, 3).
    pub const END_OF_MIB_VIEW: u8 = 0x82;
}

/// Why a packet could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The packet ends inside an element.
    #[error("the packet ends inside the element that starts at byte {at}")]
    Truncated {
        /// First byte of the element.
        at: usize,
    },
    /// An indefinite or overlong length.
    #[error("the length of the element at byte {at} is indefinite or larger than any packet")]
    Length {
        /// First byte of the element.
        at: usize,
    },
    /// Another type was due.
    #[error("type {found:#04x} at byte {at} where {expected:#04x} was due")]
    Type {
        /// First byte of the element.
        at: usize,
        /// Its type.
        found: u8,
        /// The type that was due.
        expected: u8,
    },
    /// A type that SNMP does not have.
    #[error("type {found:#04x} is no SNMP value")]
    UnknownType {
        /// Tag octet of the value.
        found: u8,
    },
    /// A number without octets, or too large for its type.
    #[error("a number of type {tag:#04x} has {octets} octets, too few or too many for its type")]
    Number {
        /// Tag octet of the number.
        tag: u8,
        /// Content octets.
        octets: usize,
    },
    /// An IpAddress that is not 4 octets long, or a NULL with content.
    #[error("a value of type {tag:#04x} has {octets} octets, which its type does not allow")]
    Size {
        /// Tag octet of the value.
        tag: u8,
        /// Content octets.
        octets: usize,
    },
    /// An object identifier that is empty, cut, or has arcs beyond 32 bits.
    #[error("an object identifier is empty, cut, or has an arc beyond 32 bits")]
    ObjectId,
    /// A version other than 1, 2c and 3.
    #[error("message version {0} is none of 0 (v1), 1 (v2c), 3 (v3)")]
    Version(i64),
    /// The message has another version than was due.
    #[error("the message has another SNMP version than the request")]
    WrongVersion,
    /// A PDU type that is not spoken here.
    #[error("PDU type {found:#04x} is not a response, report, or request of v1, v2c or v3")]
    PduType {
        /// Tag octet of the PDU.
        found: u8,
    },
    /// The community is another one.
    #[error("the community is not the one that was sent")]
    WrongCommunity,
    /// A security model other than USM.
    #[error("security model {0} is not 3 (USM)")]
    SecurityModel(i64),
    /// Encryption without authentication (RFC 3412, 6.4).
    #[error("message flags {0:#04x} ask for encryption without authentication")]
    Flags(u8),
    /// The user is another one.
    #[error("the message is for another USM user")]
    WrongUser,
    /// The engine is another one.
    #[error("the message is from another SNMP engine")]
    WrongEngine,
    /// Less secure than was asked for.
    #[error("the message has a lower security level than the request")]
    SecurityLevel,
    /// The authentication parameters have the wrong length or value.
    #[error("the message is not authentic: its HMAC does not match")]
    NotAuthentic,
    /// The decrypted part makes no sense, or the privacy parameters are not 8 octets long.
    #[error("the message could not be decrypted")]
    Decryption,
    /// The request id inside a v3 message differs from the message id.
    #[error("request id {request_id} inside message {msg_id}")]
    RequestId {
        /// The message's.
        msg_id: i32,
        /// The PDU's.
        request_id: i32,
    },
}

/// Reads elements one after the other.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
}

impl<'a> Reader<'a> {
    /// A reader over a packet or a part of it.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len() }
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The position of the next element in the packet, in bytes.
    pub fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// The next element: type and content octets.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] or [`DecodeError::Length`].
    #[inline]
    pub fn element(&mut self) -> Result<(u8, &'a [u8]), DecodeError> {
        if let [tag, length, rest @ ..] = self.rest
            && usize::from(*length) <= rest.len().min(0x7f)
        {
            let (content, rest) = rest.split_at(usize::from(*length));
            self.rest = rest;
            return Ok((*tag, content));
        }
        self.long_element()
    }

    fn long_element(&mut self) -> Result<(u8, &'a [u8]), DecodeError> {
        let at = self.position();
        let truncated = DecodeError::Truncated { at };
        let [tag, first, rest @ ..] = self.rest else { return Err(truncated) };
        let octets = usize::from(first & 0x7f);
        if *first & 0x80 == 0 || octets > rest.len() {
            return Err(truncated);
        }
        if octets == 0 || octets == 0x7f {
            return Err(DecodeError::Length { at });
        }
        let (digits, rest) = rest.split_at(octets);
        let mut length = 0_usize;
        for &digit in digits {
            if length > 0xff_ffff {
                return Err(DecodeError::Length { at });
            }
            length = length << 8 | usize::from(digit);
        }
        if length > rest.len() {
            return Err(truncated);
        }
        let (content, rest) = rest.split_at(length);
        self.rest = rest;
        Ok((*tag, content))
    }

    /// The content octets of the next element, which must be of this type.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Type`], or as [`Self::element`].
    #[inline]
    pub fn content(&mut self, expected: u8) -> Result<&'a [u8], DecodeError> {
        let at = self.position();
        let (found, content) = self.element()?;
        if found == expected { Ok(content) } else { Err(DecodeError::Type { at, found, expected }) }
    }

    /// A reader over the content of the next element, which must be of this type.
    ///
    /// # Errors
    ///
    /// As [`Self::content`].
    #[inline]
    pub fn inside(&mut self, expected: u8) -> Result<Self, DecodeError> {
        let content = self.content(expected)?;
        Ok(self.over(content))
    }

    /// A reader over the content that was returned last; keeps positions those of the packet.
    pub fn over(&self, content: &'a [u8]) -> Self {
        Self { rest: content, end: self.position() }
    }

    /// The next element as an INTEGER.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Number`] beyond 64 bits, or as [`Self::content`].
    #[inline]
    pub fn integer(&mut self) -> Result<i64, DecodeError> {
        let content = self.content(tag::INTEGER)?;
        signed(tag::INTEGER, content)
    }

    /// The next element as an INTEGER of 32 bits.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Number`] beyond 32 bits, or as [`Self::content`].
    #[inline]
    pub fn integer32(&mut self) -> Result<i32, DecodeError> {
        let content = self.content(tag::INTEGER)?;
        let number = signed(tag::INTEGER, content)?;
        i32::try_from(number)
            .map_err(|_| DecodeError::Number { tag: tag::INTEGER, octets: content.len() })
    }
}

/// A two's complement number of up to 64 bits, redundant leading octets allowed.
///
/// # Errors
///
/// [`DecodeError::Number`] without octets or beyond 64 bits.
#[inline]
pub fn signed(tag: u8, content: &[u8]) -> Result<i64, DecodeError> {
    let [first, ..] = content else {
        return Err(DecodeError::Number { tag, octets: 0 });
    };
    let sign = if *first & 0x80 == 0 { 0 } else { -1_i64 };
    let mut number = sign;
    if content.len() <= 8 {
        for &octet in content {
            number = number << 8 | i64::from(octet);
        }
        return Ok(number);
    }
    let (head, tail) = content.split_at(content.len() - 8);
    let redundant = head.iter().all(|&octet| i64::from(octet) == sign & 0xff);
    for &octet in tail {
        number = number << 8 | i64::from(octet);
    }
    if redundant && (number < 0) == (sign < 0) {
        Ok(number)
    } else {
        Err(DecodeError::Number { tag, octets: content.len() })
    }
}

/// An unsigned number of 64 bits: 9 octets when the first bit is set, or 8 from agents that leave
/// out the zero in front.
///
/// # Errors
///
/// [`DecodeError::Number`] without octets or beyond 64 bits.
#[inline]
pub fn unsigned64(tag: u8, content: &[u8]) -> Result<u64, DecodeError> {
    if content.len() <= 8 {
        return Ok(signed(tag, content)?.cast_unsigned());
    }
    let (head, tail) = content.split_at(content.len() - 8);
    if head.iter().any(|&octet| octet != 0) {
        return Err(DecodeError::Number { tag, octets: content.len() });
    }
    Ok(tail.iter().fold(0, |number, &octet| number << 8 | u64::from(octet)))
}

/// An unsigned number of 32 bits.
///
/// The low 32 bits of the two's complement number, as net-snmp reads it: agents that count in a
/// signed integer send values from 2^31 on as negative ones.
///
/// # Errors
///
/// [`DecodeError::Number`] without octets or beyond 32 bits.
#[inline]
pub fn unsigned32(tag: u8, content: &[u8]) -> Result<u32, DecodeError> {
    let number = signed(tag, content)?;
    u32::try_from(number)
        .or_else(|_| i32::try_from(number).map(i32::cast_unsigned))
        .map_err(|_| DecodeError::Number { tag, octets: content.len() })
}

/// Starts an element whose length is not known yet; [`close`] it with the returned position.
#[inline]
pub fn open(out: &mut Vec<u8>, tag: u8) -> usize {
    out.extend_from_slice(&[tag, 0]);
    out.len()
}

/// Ends the element that [`open`] started, with the shortest length.
#[inline]
pub fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if length < 0x80 {
        out[start - 1] = low_octet(length);
    } else {
        let octets = length.to_be_bytes();
        let zeros = octets.iter().take_while(|&&octet| octet == 0).count();
        let digits = &octets[zeros..];
        out[start - 1] = 0x80 | low_octet(digits.len());
        out.splice(start..start, digits.iter().copied());
    }
}

#[inline]
fn low_octet(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

/// Appends a whole element.
#[inline]
pub fn put(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    let start = open(out, tag);
    out.extend_from_slice(content);
    close(out, start);
}

/// Appends a signed number in the fewest octets.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, tag: u8, number: i64) {
    let significant = 64 - if number < 0 { number.leading_ones() } else { number.leading_zeros() };
    // One bit more for the sign.
    let octets = (significant / 8 + 1) as usize;
    out.extend_from_slice(&[tag, low_octet(octets)]);
    out.extend_from_slice(&number.to_be_bytes()[8 - octets..]);
}

/// Appends an unsigned number in the fewest octets.
#[inline]
pub fn put_unsigned(out: &mut Vec<u8>, tag: u8, number: u64) {
    match i64::try_from(number) {
        Ok(number) => put_signed(out, tag, number),
        Err(_) => {
            out.extend_from_slice(&[tag, 9, 0]);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_legal_length_is_read() {
        for bytes in [
            &[0x04, 0x02, 1, 2][..],
            &[0x04, 0x81, 0x02, 1, 2],
            &[0x04, 0x82, 0x00, 0x02, 1, 2],
            &[0x04, 0x88, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2],
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.content(tag::OCTET_STRING), Ok(&[1, 2][..]), "{bytes:x?}");
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for bytes in [
            &[0x04][..],
            &[0x04, 0x80, 0, 0],
            &[0x04, 0xff, 0, 0],
            &[0x04, 0x03, 1, 2],
            &[0x04, 0x82, 0x01],
            &[0x04, 0x84, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x04, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1],
        ] {
            assert!(Reader::new(bytes).element().is_err(), "{bytes:x?}");
        }
    }

    #[test]
    fn numbers_of_real_agents_are_read() {
        assert_eq!(signed(2, &[0, 0, 0, 5]), Ok(5));
        assert_eq!(signed(2, &[0xff; 12]), Ok(-1));
        assert_eq!(signed(2, &[0x80]), Ok(-128));
        assert!(signed(2, &[]).is_err());
        assert!(signed(2, &[1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert_eq!(unsigned32(0x41, &[0, 0xff, 0xff, 0xff, 0xff]), Ok(u32::MAX));
        assert_eq!(unsigned32(0x41, &[0xff, 0xff, 0xff, 0xfe]), Ok(u32::MAX - 1));
        assert!(unsigned32(0x41, &[1, 0, 0, 0, 0]).is_err());
        assert_eq!(unsigned64(0x46, &[0, 255, 255, 255, 255, 255, 255, 255, 255]), Ok(u64::MAX));
        assert_eq!(unsigned64(0x46, &[255; 8]), Ok(u64::MAX));
        assert!(unsigned64(0x46, &[1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn numbers_are_written_in_the_fewest_octets() {
        let written = |number| {
            let mut out = Vec::new();
            put_signed(&mut out, 2, number);
            out
        };
        // X.690, 8.3: the first nine bits are never all equal.
        assert_eq!(written(0), [2, 1, 0]);
        assert_eq!(written(127), [2, 1, 127]);
        assert_eq!(written(128), [2, 2, 0, 128]);
        assert_eq!(written(-128), [2, 1, 0x80]);
        assert_eq!(written(-129), [2, 2, 0xff, 0x7f]);
        let mut out = Vec::new();
        put_unsigned(&mut out, 0x46, u64::MAX);
        assert_eq!(out, [0x46, 9, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    }

    #[test]
    fn long_elements_get_the_shortest_length() {
        for (length, head) in
            [(127, &[4, 127][..]), (128, &[4, 0x81, 128]), (300, &[4, 0x82, 1, 44])]
        {
            let mut out = Vec::new();
            put(&mut out, 4, &vec![7; length]);
            assert_eq!(&out[..head.len()], head);
            assert_eq!(out.len(), head.len() + length);
        }
    }
}
