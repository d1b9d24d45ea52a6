//! Protocol data units (RFC 1157 for v1, RFC 3416 from v2c on).

use crate::Oid;
use crate::ber::{self, DecodeError, Reader, tag};
use crate::value::{Value, ValueRef};

/// What a PDU asks or tells (RFC 3416, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PduType {
    /// Asks for exactly these objects.
    Get = 0xa0,
    /// Asks for the objects that follow these.
    GetNext = 0xa1,
    /// Response (GetResponse in v1).
    Response = 0xa2,
    /// Asks the agent to write values.
    Set = 0xa3,
    /// GetBulkRequest, not in v1.
    GetBulk = 0xa5,
    /// SNMPv2-Trap.
    TrapV2 = 0xa7,
    /// Report, v3 only.
    Report = 0xa8,
}

impl PduType {
    /// The type on the wire.
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The PDU of this type on the wire.
    ///
    /// # Errors
    ///
    /// [`DecodeError::PduType`] for all others.
    pub const fn from_tag(tag: u8) -> Result<Self, DecodeError> {
        Ok(match tag {
            0xa0 => Self::Get,
            0xa1 => Self::GetNext,
            0xa2 => Self::Response,
            0xa3 => Self::Set,
            0xa5 => Self::GetBulk,
            0xa7 => Self::TrapV2,
            0xa8 => Self::Report,
            found => return Err(DecodeError::PduType { found }),
        })
    }
}

/// Error status of a response (RFC 3416, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ErrorStatus {
    /// The request was carried out.
    NoError = 0,
    /// The response would not fit.
    TooBig = 1,
    /// v1: one of the objects does not exist.
    NoSuchName = 2,
    /// v1: the value does not fit.
    BadValue = 3,
    /// v1: the object cannot be written.
    ReadOnly = 4,
    /// An error for which there is no other status.
    GenErr = 5,
    /// The view does not hold the object.
    NoAccess = 6,
    /// Another type is due.
    WrongType = 7,
    /// Another length is due.
    WrongLength = 8,
    /// A value to be written is encoded otherwise than its type says.
    WrongEncoding = 9,
    /// The value is not allowed.
    WrongValue = 10,
    /// The object cannot be created.
    NoCreation = 11,
    /// The value is not allowed now.
    InconsistentValue = 12,
    /// The resource is not there.
    ResourceUnavailable = 13,
    /// Writing failed half-way.
    CommitFailed = 14,
    /// Taking back a write failed.
    UndoFailed = 15,
    /// The user or community may not do this.
    AuthorizationError = 16,
    /// The object cannot be written.
    NotWritable = 17,
    /// The object cannot be created now.
    InconsistentName = 18,
}

impl ErrorStatus {
    const ALL: [(Self, &str); 19] = [
        (Self::NoError, "noError"),
        (Self::TooBig, "tooBig"),
        (Self::NoSuchName, "noSuchName"),
        (Self::BadValue, "badValue"),
        (Self::ReadOnly, "readOnly"),
        (Self::GenErr, "genErr"),
        (Self::NoAccess, "noAccess"),
        (Self::WrongType, "wrongType"),
        (Self::WrongLength, "wrongLength"),
        (Self::WrongEncoding, "wrongEncoding"),
        (Self::WrongValue, "wrongValue"),
        (Self::NoCreation, "noCreation"),
        (Self::InconsistentValue, "inconsistentValue"),
        (Self::ResourceUnavailable, "resourceUnavailable"),
        (Self::CommitFailed, "commitFailed"),
        (Self::UndoFailed, "undoFailed"),
        (Self::AuthorizationError, "authorizationError"),
        (Self::NotWritable, "notWritable"),
        (Self::InconsistentName, "inconsistentName"),
    ];

    /// The number on the wire.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The status with this number, if there is one.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).map(|(status, _)| *status)
    }

    /// The name in RFC 3416.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The name of an error status for people, `unknown` for numbers that RFC 3416 does not have.
pub fn error_status_name(code: i32) -> &'static str {
    ErrorStatus::from_code(code).map_or("unknown", ErrorStatus::name)
}

/// A protocol data unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdu {
    /// Request or answer, and which.
    pub kind: PduType,
    /// Joins response and request.
    pub request_id: i32,
    /// Error status of a response; `non-repeaters` of a GetBulkRequest.
    pub error_status: i32,
    /// Which varbind is at fault, 1 for the first; `max-repetitions` of a GetBulkRequest.
    pub error_index: i32,
    /// Names and values.
    pub varbinds: Vec<(Oid, Value)>,
}

impl Pdu {
    /// A request of these objects (`Get` or `GetNext`).
    pub fn request(kind: PduType, request_id: i32, oids: &[Oid]) -> Self {
        let varbinds = oids.iter().map(|oid| (oid.clone(), Value::Null)).collect();
        Self { kind, request_id, error_status: 0, error_index: 0, varbinds }
    }

    /// A GetBulkRequest.
    pub fn bulk(request_id: i32, non_repeaters: i32, max_repetitions: i32, oids: &[Oid]) -> Self {
        Self {
            error_status: non_repeaters,
            error_index: max_repetitions,
            ..Self::request(PduType::GetBulk, request_id, oids)
        }
    }

    /// `non-repeaters` of a GetBulkRequest; negative counts as 0 (RFC 3416, 4.2.3).
    pub fn non_repeaters(&self) -> usize {
        // Saturates at 0.
        usize::try_from(self.error_status).unwrap_or(0)
    }

    /// `max-repetitions` of a GetBulkRequest; negative counts as 0 (RFC 3416, 4.2.3).
    pub fn max_repetitions(&self) -> usize {
        // Saturates at 0.
        usize::try_from(self.error_index).unwrap_or(0)
    }

    /// Appends the element.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let pdu = ber::open(out, self.kind.tag());
        ber::put_signed(out, tag::INTEGER, self.request_id.into());
        ber::put_signed(out, tag::INTEGER, self.error_status.into());
        ber::put_signed(out, tag::INTEGER, self.error_index.into());
        let list = ber::open(out, tag::SEQUENCE);
        for (oid, value) in &self.varbinds {
            let varbind = ber::open(out, tag::SEQUENCE);
            let name = ber::open(out, tag::OBJECT_ID);
            oid.encode_into(out);
            ber::close(out, name);
            value.encode_into(out);
            ber::close(out, varbind);
        }
        ber::close(out, list);
        ber::close(out, pdu);
    }

    /// Reads the next element as a PDU.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with the place.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (head, varbinds) = PduHead::decode(reader)?;
        let varbinds = varbinds
            .map(|varbind| {
                let (oid, value) = varbind?;
                Ok((Oid::decode(oid)?, value.to_value()?))
            })
            .collect::<Result<_, DecodeError>>()?;
        Ok(Self {
            kind: head.kind,
            request_id: head.request_id,
            error_status: head.error_status,
            error_index: head.error_index,
            varbinds,
        })
    }
}

/// The fixed part of a PDU, see [`Pdu`] for the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PduHead {
    pub(crate) kind: PduType,
    pub(crate) request_id: i32,
    pub(crate) error_status: i32,
    pub(crate) error_index: i32,
}

impl PduHead {
    #[inline]
    pub(crate) fn decode<'a>(
        reader: &mut Reader<'a>,
    ) -> Result<(Self, VarbindIter<'a>), DecodeError> {
        let (tag, content) = reader.element()?;
        let kind = PduType::from_tag(tag)?;
        let mut inside = reader.over(content);
        let request_id = inside.integer32()?;
        let error_status = inside.integer32()?;
        let error_index = inside.integer32()?;
        let list = inside.inside(tag::SEQUENCE)?;
        Ok((Self { kind, request_id, error_status, error_index }, VarbindIter { list }))
    }
}

/// The varbinds of a packet: encoded name (not checked) and value; ends after the first error.
#[derive(Debug, Clone)]
pub struct VarbindIter<'a> {
    list: Reader<'a>,
}

impl<'a> VarbindIter<'a> {
    /// Name, type and content octets of the next varbind, for a reader to whom one value that is
    /// delimited as it should be and cannot be decoded (a counter of no or of twelve octets) does not
    /// spoil the ones behind it.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] where a varbind is not delimited as it should be, which ends the list.
    #[expect(clippy::inline_always, reason = "as for `read`")]
    #[inline(always)]
    #[expect(clippy::type_complexity, reason = "the parts of a varbind, as in the iterator")]
    pub fn next_framed(&mut self) -> Option<Result<(&'a [u8], u8, &'a [u8]), DecodeError>> {
        if self.list.is_empty() {
            return None;
        }
        let framed = self.framed();
        if framed.is_err() {
            self.list = Reader::new(&[]);
        }
        Some(framed)
    }

    #[expect(
        clippy::inline_always,
        reason = "its result would go through memory, which every value waits for"
    )]
    #[inline(always)]
    fn read(&mut self) -> Result<(&'a [u8], ValueRef<'a>), DecodeError> {
        let (oid, tag, content) = self.framed()?;
        Ok((oid, ValueRef::decode(tag, content)?))
    }

    /// Name, type and content octets of the next one.
    #[expect(clippy::inline_always, reason = "as for `read`")]
    #[inline(always)]
    fn framed(&mut self) -> Result<(&'a [u8], u8, &'a [u8]), DecodeError> {
        let mut varbind = self.list.inside(tag::SEQUENCE)?;
        let oid = varbind.content(tag::OBJECT_ID)?;
        let (tag, content) = varbind.element()?;
        Ok((oid, tag, content))
    }
}

impl<'a> Iterator for VarbindIter<'a> {
    type Item = Result<(&'a [u8], ValueRef<'a>), DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.list.is_empty() {
            return None;
        }
        let varbind = self.read();
        if varbind.is_err() {
            self.list = Reader::new(&[]);
        }
        Some(varbind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_follow_their_numbers() {
        for (position, (status, _)) in ErrorStatus::ALL.iter().enumerate() {
            assert_eq!(usize::try_from(status.code()).unwrap(), position);
        }
        assert_eq!(error_status_name(2), "noSuchName");
        assert_eq!(error_status_name(99), "unknown");
    }

    #[test]
    fn a_damaged_varbind_ends_the_list() {
        let mut bytes = Vec::new();
        Pdu::request(PduType::Get, 7, &["1.3.6".parse().unwrap(), "1.3.7".parse().unwrap()])
            .encode_into(&mut bytes);
        let at = bytes.windows(2).position(|pair| pair == [tag::OBJECT_ID, 2]).unwrap();
        bytes[at] = tag::NULL;
        let (_, varbinds) = PduHead::decode(&mut Reader::new(&bytes)).unwrap();
        let read: Vec<_> = varbinds.collect();
        assert_eq!(read.len(), 1);
        assert!(matches!(read[0], Err(DecodeError::Type { .. })));
    }
}
