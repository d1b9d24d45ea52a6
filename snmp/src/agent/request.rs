//! One PDU: GET, GETNEXT, GETBULK and SET over a [`Mib`] (RFC 3416, section 4.2; RFC 1157 and
//! RFC 3584 for v1).
//!
//! A collector asks the same list of objects again and again. The cache remembers, per set of
//! instances, where the objects of a list were, so that a repeated list costs one hash and one
//! comparison of octets instead of parsing and a search for each object.

use super::instances::{Find, Instances};
use super::{Drop, Exchange, Mib, Responder};
use crate::ber::{self, DecodeError, Reader, tag};
use crate::message::Version;
use crate::{ErrorStatus, PduType, ValueRef};

/// Lists that the cache holds; a list whose place is taken by another is searched again.
const LISTS_MAX: usize = 1024;

/// Octets that the heads of a message may grow by when their lengths become known.
const HEAD_BYTES: usize = 16;

/// One object of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Where its instance is.
    pub find: Find,
    /// Where its OID's content octets begin in the list.
    oid_start: u32,
    /// Where they end.
    oid_end: u32,
}

#[derive(Debug)]
struct List {
    generation: u64,
    number: u32,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

/// Lists of objects that were asked for, and where their instances are.
#[derive(Debug, Default)]
pub struct RequestCache {
    lists: Vec<Option<List>>,
    count: u32,
}

impl RequestCache {
    /// The objects of a list as OID content octets with their places, if it is the list that was
    /// asked for last under its hash.
    pub fn list(&self, number: u32) -> Option<impl Iterator<Item = (&[u8], Find)>> {
        let list = self.lists.iter().flatten().find(|list| list.number == number)?;
        Some(list.slots.iter().map(|slot| (oid_of(&list.bytes, slot), slot.find)))
    }

    /// The list with these octets, parsed and searched if it is new.
    #[inline]
    fn resolve(&mut self, bytes: &[u8], instances: &Instances) -> Result<&List, DecodeError> {
        if self.lists.is_empty() {
            self.lists.resize_with(LISTS_MAX, || None);
        }
        let place = usize::try_from(hash(bytes, instances.generation()) % LISTS_MAX as u64)
            .expect("less than the number of lists");
        let known = self.lists[place]
            .as_ref()
            .is_some_and(|list| list.generation == instances.generation() && list.bytes == bytes);
        if !known {
            let slots = parse(bytes)?
                .into_iter()
                .map(|(oid_start, oid_end)| {
                    let find = instances.find(&bytes[oid_start as usize..oid_end as usize]);
                    Slot { find, oid_start, oid_end }
                })
                .collect();
            self.lists[place] = Some(List {
                generation: instances.generation(),
                number: self.count,
                bytes: bytes.to_vec(),
                slots,
            });
            self.count = self.count.wrapping_add(1);
        }
        Ok(self.lists[place].as_ref().expect("the place was just filled"))
    }
}

fn oid_of<'a>(bytes: &'a [u8], slot: &Slot) -> &'a [u8] {
    &bytes[slot.oid_start as usize..slot.oid_end as usize]
}

/// FNV-1a over words instead of octets: only has to spread a few lists.
#[inline]
fn hash(bytes: &[u8], generation: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325 ^ generation;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    for &octet in words.remainder() {
        hash = (hash ^ u64::from(octet)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    hash ^ (hash >> 32)
}

/// The OIDs of a variable-binding list, as ranges of it.
fn parse(bytes: &[u8]) -> Result<Vec<(u32, u32)>, DecodeError> {
    let mut list = Reader::new(bytes);
    let mut ranges = Vec::new();
    while !list.is_empty() {
        let mut varbind = list.inside(tag::SEQUENCE)?;
        let oid = varbind.content(tag::OBJECT_ID)?;
        let end = varbind.position();
        varbind.element()?;
        let minimal = oid.first().is_some_and(|&octet| octet != 0x80)
            && oid.last().is_some_and(|octet| octet & 0x80 == 0)
            && !oid.windows(2).any(|pair| pair[0] & 0x80 == 0 && pair[1] == 0x80);
        let range = (u32::try_from(end - oid.len()), u32::try_from(end));
        let ((Ok(start), Ok(end)), true) = (range, minimal) else {
            return Err(DecodeError::ObjectId);
        };
        ranges.push((start, end));
    }
    Ok(ranges)
}

/// The head of a request PDU and its list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestPdu<'a> {
    pub(crate) kind: PduType,
    pub(crate) request_id: i32,
    first: i32,
    second: i32,
    list: &'a [u8],
}

impl<'a> RequestPdu<'a> {
    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (found, content) = reader.element()?;
        let kind = PduType::from_tag(found)?;
        let mut inside = reader.over(content);
        Ok(Self {
            kind,
            request_id: inside.integer32()?,
            first: inside.integer32()?,
            second: inside.integer32()?,
            list: inside.content(tag::SEQUENCE)?,
        })
    }
}

/// How a request may be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) version: Version,
    pub(crate) write: bool,
    /// Largest length that `out` may reach, bytes.
    pub(crate) bytes_max: usize,
}

/// A part of the answer that cannot be given.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Status(ErrorStatus, usize),
    Full,
    Malformed,
}

impl From<DecodeError> for Stop {
    fn from(_: DecodeError) -> Self {
        Self::Malformed
    }
}

/// Appends the response PDU.
pub(crate) fn answer<M: Mib>(
    responder: &mut Responder,
    begun: Result<(), ErrorStatus>,
    request: RequestPdu<'_>,
    terms: Terms,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Result<Exchange, Drop> {
    let start = out.len();
    let mut exchange = Exchange {
        kind: request.kind,
        request_id: request.request_id,
        error_status: ErrorStatus::NoError,
        report: false,
        list: None,
    };
    let answer_id = request.request_id.wrapping_add(responder.id_shift);
    let pdu = open_response(out, answer_id, 0, 0);
    let done = match begun {
        Err(status) => Err(Stop::Status(status, 0)),
        Ok(()) => match request.kind {
            PduType::Get => {
                get(responder, request, terms, mib, out).map(|number| exchange.list = Some(number))
            }
            PduType::GetNext => get_next(request, terms, mib, out),
            PduType::GetBulk if terms.version != Version::V1 => get_bulk(request, terms, mib, out),
            PduType::Set => set(responder, request, terms, mib, out),
            _ => Err(Stop::Malformed),
        },
    };
    let (status, index) = match done {
        Ok(()) => {
            close_response(out, pdu);
            return Ok(exchange);
        }
        Err(Stop::Malformed) => return Err(Drop::Malformed),
        Err(Stop::Full) => (ErrorStatus::TooBig, 0),
        Err(Stop::Status(status, index)) => (status, index),
    };
    // RFC 3416, 4.2.1: tooBig carries no varbinds; every other error those of the request.
    let empty = status == ErrorStatus::TooBig && terms.version != Version::V1;
    out.truncate(start);
    exchange.error_status = status;
    exchange.list = None;
    let index = i32::try_from(index).expect("a message holds fewer varbinds than octets");
    let pdu = open_response(out, answer_id, status.code(), index);
    out.extend_from_slice(if empty { &[] } else { request.list });
    close_response(out, pdu);
    if out.len() + HEAD_BYTES > terms.bytes_max { Err(Drop::TooBig) } else { Ok(exchange) }
}

#[inline]
fn open_response(out: &mut Vec<u8>, id: i32, status: i32, index: i32) -> (usize, usize) {
    let pdu = ber::open(out, PduType::Response.tag());
    ber::put_signed(out, tag::INTEGER, id.into());
    ber::put_signed(out, tag::INTEGER, status.into());
    ber::put_signed(out, tag::INTEGER, index.into());
    (pdu, ber::open(out, tag::SEQUENCE))
}

#[inline]
fn close_response(out: &mut Vec<u8>, (pdu, list): (usize, usize)) {
    ber::close(out, list);
    ber::close(out, pdu);
}

/// Appends a varbind, or nothing if it does not fit.
#[inline]
fn put(out: &mut Vec<u8>, oid: &[u8], value: ValueRef<'_>, bytes_max: usize) -> Result<(), Stop> {
    let start = out.len();
    let varbind = ber::open(out, tag::SEQUENCE);
    ber::put(out, tag::OBJECT_ID, oid);
    value.encode_into(out);
    ber::close(out, varbind);
    if out.len() + HEAD_BYTES > bytes_max {
        out.truncate(start);
        return Err(Stop::Full);
    }
    Ok(())
}

fn get<M: Mib>(
    responder: &mut Responder,
    request: RequestPdu<'_>,
    terms: Terms,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Result<u32, Stop> {
    let list = responder.requests.resolve(request.list, mib.instances())?;
    let v1 = terms.version == Version::V1;
    for (index, slot) in (1..).zip(&list.slots) {
        let value = match slot.find {
            Find::At(position) => mib.value(position),
            Find::NoInstance => ValueRef::NoSuchInstance,
            Find::NoObject => ValueRef::NoSuchObject,
        };
        // v1 knows neither exceptions nor Counter64 (RFC 3584, 4.2.2.1).
        if v1
            && matches!(
                value,
                ValueRef::NoSuchInstance | ValueRef::NoSuchObject | ValueRef::Counter64(_)
            )
        {
            return Err(Stop::Status(ErrorStatus::NoSuchName, index));
        }
        put(out, oid_of(&list.bytes, slot), value, terms.bytes_max)?;
    }
    Ok(list.number)
}

/// Appends the instance after `oid`; returns its position, `None` at the end of the view.
fn put_next<M: Mib>(
    oid: &[u8],
    from: Option<usize>,
    terms: Terms,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Result<Option<usize>, Stop> {
    let mut position = from.unwrap_or_else(|| mib.instances().next(oid));
    while position < mib.instances().len() {
        let start = out.len();
        let varbind = ber::open(out, tag::SEQUENCE);
        ber::put(out, tag::OBJECT_ID, mib.instances().oid(position));
        let value = mib.value(position);
        if terms.version == Version::V1 && matches!(value, ValueRef::Counter64(_)) {
            // RFC 3584, 4.2.2.1: v1 steps over what it cannot carry.
            out.truncate(start);
            position += 1;
            continue;
        }
        value.encode_into(out);
        ber::close(out, varbind);
        if out.len() + HEAD_BYTES > terms.bytes_max {
            out.truncate(start);
            return Err(Stop::Full);
        }
        return Ok(Some(position));
    }
    put(out, oid, ValueRef::EndOfMibView, terms.bytes_max)?;
    Ok(None)
}

fn get_next<M: Mib>(
    request: RequestPdu<'_>,
    terms: Terms,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    for (index, (start, end)) in (1..).zip(parse(request.list)?) {
        let oid = &request.list[start as usize..end as usize];
        let found = put_next(oid, None, terms, mib, out)?;
        if found.is_none() && terms.version == Version::V1 {
            return Err(Stop::Status(ErrorStatus::NoSuchName, index));
        }
    }
    Ok(())
}

/// RFC 3416, 4.2.3: as many varbinds as fit, and never tooBig.
fn get_bulk<M: Mib>(
    request: RequestPdu<'_>,
    terms: Terms,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let ranges = parse(request.list)?;
    let oid = |(start, end): (u32, u32)| &request.list[start as usize..end as usize];
    // Negative numbers saturate at 0 (RFC 3416, 4.2.3).
    let single = usize::try_from(request.first).unwrap_or(0).min(ranges.len());
    let repetitions = usize::try_from(request.second).unwrap_or(0);
    let (once, repeated) = ranges.split_at(single);
    for &range in once {
        match put_next(oid(range), None, terms, mib, out) {
            Err(Stop::Full) => return Ok(()),
            other => other?,
        };
    }
    // Where each column goes on: not started, at a position, or at its end.
    let mut columns: Vec<(&[u8], Option<usize>)> =
        repeated.iter().map(|&range| (oid(range), None)).collect();
    for _ in 0..repetitions {
        let mut ended = true;
        for (oid, next) in &mut columns {
            match put_next(oid, *next, terms, mib, out) {
                Ok(Some(position)) => {
                    ended = false;
                    *next = Some(position + 1);
                }
                Ok(None) => *next = Some(mib.instances().len()),
                Err(Stop::Full) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
        if ended {
            break;
        }
    }
    Ok(())
}

/// RFC 3416, 4.2.5: all values are set or none.
fn set<M: Mib>(
    responder: &mut Responder,
    request: RequestPdu<'_>,
    terms: Terms,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let v1 = terms.version == Version::V1;
    let mut writes = Vec::new();
    let mut list = Reader::new(request.list);
    for (index, (start, end)) in (1..).zip(parse(request.list)?) {
        let mut varbind = list.inside(tag::SEQUENCE)?;
        varbind.content(tag::OBJECT_ID)?;
        let (found, content) = varbind.element()?;
        let value = ValueRef::decode(found, content)?;
        let checked = if terms.write {
            let oid = &request.list[start as usize..end as usize];
            match mib.instances().find(oid) {
                Find::At(position) => mib.check_set(position, value).map(|()| Ok(position)),
                Find::NoInstance | Find::NoObject => mib.check_new(oid, value).map(|()| Err(oid)),
            }
        } else {
            responder.counters.bad_writes += 1;
            Err(ErrorStatus::NoAccess)
        };
        match checked {
            Ok(place) => writes.push((place, value)),
            Err(status) => {
                let status = if v1 { status_v1(status) } else { status };
                return Err(Stop::Status(status, index));
            }
        }
    }
    out.extend_from_slice(request.list);
    if out.len() + HEAD_BYTES > terms.bytes_max {
        return Err(Stop::Full);
    }
    for (place, value) in writes {
        match place {
            Ok(position) => mib.set(position, value),
            Err(oid) => mib.set_new(oid, value),
        }
    }
    Ok(())
}

/// The v1 status for one of v2 (RFC 3584, section 4.4).
const fn status_v1(status: ErrorStatus) -> ErrorStatus {
    match status {
        ErrorStatus::WrongValue
        | ErrorStatus::WrongEncoding
        | ErrorStatus::WrongType
        | ErrorStatus::WrongLength
        | ErrorStatus::InconsistentValue => ErrorStatus::BadValue,
        ErrorStatus::NoAccess
        | ErrorStatus::NotWritable
        | ErrorStatus::NoCreation
        | ErrorStatus::InconsistentName
        | ErrorStatus::AuthorizationError => ErrorStatus::NoSuchName,
        ErrorStatus::ResourceUnavailable | ErrorStatus::CommitFailed | ErrorStatus::UndoFailed => {
            ErrorStatus::GenErr
        }
        other => other,
    }
}
