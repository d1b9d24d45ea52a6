//! Messages of v3: the checks of RFC 3414, section 3.2, in their order, with a report for each
//! that fails, around a PDU.

use std::sync::Arc;

use meikyo_units::WallTime;

use super::request::{self, RequestPdu, Terms};
use super::{Access, Drop, Engine, Exchange, Mib, Outcome, Responder};
use crate::ber::{self, tag};
use crate::message::Version;
use crate::usm::{
    self, Envelope, Head, LocalKeys, ReportKind, Scoped, SecurityLevel, User, WINDOW_SECONDS,
};
use crate::{DecodeError, ErrorStatus, PduType, ValueRef};

/// Octets of a v3 message around the scoped PDU, at most: lengths, header, engine, a user of 32
/// octets, an HMAC of 48 and a salt.
const ENVELOPE_BYTES_MAX: usize = 224;

/// An engine that has started so often answers nobody (RFC 3414, 2.2.2).
const BOOTS_MAX: u32 = 0x7fff_ffff;

/// The agent that answers, and when.
struct Here<'a> {
    now: WallTime,
    access: &'a Access,
    engine: &'a mut Engine,
}

/// Answers a message of v3.
pub(super) fn respond<M: Mib>(
    responder: &mut Responder,
    now: WallTime,
    request: &[u8],
    access: &Access,
    engine: &mut Engine,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Outcome {
    let Ok(envelope) = Envelope::read(request) else {
        return Outcome::Dropped(Drop::Malformed);
    };
    // Decryption happens in place.
    let mut bytes = std::mem::take(&mut responder.request);
    bytes.clear();
    bytes.extend_from_slice(request);
    let mut here = Here { now, access, engine };
    let outcome = match checked(&envelope, &mut bytes, &mut here) {
        Ok(asked) => answer(responder, &mut here, &envelope, asked, mib, out),
        Err(Refused::Report(kind)) if envelope.reportable => {
            let request_id = clear_request_id(&envelope, &mut bytes);
            let name = envelope.user(&bytes);
            report(responder, &mut here, (envelope.msg_id, request_id), name, kind, out)
        }
        Err(Refused::Report(kind)) => {
            here.engine.count_report(kind);
            Outcome::Dropped(Drop::Unauthorized)
        }
        Err(Refused::Malformed) => Outcome::Dropped(Drop::Malformed),
    };
    responder.request = bytes;
    outcome
}

enum Refused {
    Report(ReportKind),
    Malformed,
}

/// A request that is believed.
struct Asked<'a> {
    user: Arc<User>,
    write: bool,
    scoped: Scoped<'a>,
}

fn checked<'a>(
    envelope: &Envelope,
    bytes: &'a mut [u8],
    here: &mut Here<'_>,
) -> Result<Asked<'a>, Refused> {
    if envelope.engine.engine_id != here.engine.id {
        return Err(Refused::Report(ReportKind::UnknownEngineId));
    }
    let time = here.engine.time(here.now);
    let Some((user, write)) = here.engine.user(envelope.user(bytes), here.access) else {
        return Err(Refused::Report(ReportKind::UnknownUserName));
    };
    if envelope.level > user.keys.level() {
        return Err(Refused::Report(ReportKind::UnsupportedSecurityLevel));
    }
    if envelope.verify(bytes, &user.keys).is_err() {
        return Err(Refused::Report(ReportKind::WrongDigest));
    }
    let in_window = time.boots < BOOTS_MAX
        && envelope.engine.boots == time.boots
        && envelope.engine.time.abs_diff(time.time) <= WINDOW_SECONDS;
    if envelope.level != SecurityLevel::NoAuthNoPriv && !in_window {
        return Err(Refused::Report(ReportKind::NotInTimeWindow));
    }
    match envelope.decrypt(bytes, &user.keys) {
        Ok(scoped) => Ok(Asked { user, write, scoped }),
        Err(DecodeError::Decryption) => Err(Refused::Report(ReportKind::DecryptionError)),
        Err(_) => Err(Refused::Malformed),
    }
}

/// The request id where it can be read without a key, else 0 (RFC 3412, 7.1, 3c).
fn clear_request_id(envelope: &Envelope, bytes: &mut [u8]) -> i32 {
    if envelope.level == SecurityLevel::AuthPriv {
        return 0;
    }
    envelope
        .decrypt(bytes, &LocalKeys::default())
        .and_then(|mut scoped| RequestPdu::decode(&mut scoped.pdu))
        .map_or(0, |pdu| pdu.request_id)
}

fn answer<M: Mib>(
    responder: &mut Responder,
    here: &mut Here<'_>,
    envelope: &Envelope,
    asked: Asked<'_>,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Outcome {
    let Asked { user, write, mut scoped } = asked;
    let known_context =
        scoped.context_engine_id == &*here.engine.id && scoped.context_name.is_empty();
    let pdu = RequestPdu::decode(&mut scoped.pdu);
    let (Ok(pdu), true) = (pdu, known_context) else {
        return Outcome::Dropped(Drop::Malformed);
    };
    // A negative size saturates at 0, and nothing fits into it.
    let asked_max = usize::try_from(envelope.max_size).unwrap_or(0);
    let bytes_max = here.access.message_bytes_max.min(asked_max).saturating_sub(ENVELOPE_BYTES_MAX);
    let mut inside = std::mem::take(&mut responder.scoped);
    inside.clear();
    let sequence = open_scoped(&mut inside, here.engine);
    let begun = mib.begin(here.now).and_then(|()| {
        // A user is served at its own level only; RFC 3415, 3.2, by a view for that level.
        if envelope.level < user.keys.level() {
            Err(ErrorStatus::AuthorizationError)
        } else {
            Ok(())
        }
    });
    let terms = Terms { version: Version::V3, write, bytes_max };
    let outcome = match request::answer(responder, begun, pdu, terms, mib, &mut inside) {
        Ok(exchange) => {
            ber::close(&mut inside, sequence);
            let msg_id = envelope.msg_id.wrapping_add(responder.id_shift);
            seal(here, msg_id, envelope.level, &user, &inside, out);
            Outcome::Answered(exchange)
        }
        Err(drop) => Outcome::Dropped(drop),
    };
    responder.scoped = inside;
    outcome
}

/// Begins a scoped PDU of this engine.
fn open_scoped(out: &mut Vec<u8>, engine: &Engine) -> usize {
    let sequence = ber::open(out, tag::SEQUENCE);
    ber::put(out, tag::OCTET_STRING, &engine.id);
    ber::put(out, tag::OCTET_STRING, &[]);
    sequence
}

fn seal(
    here: &mut Here<'_>,
    msg_id: i32,
    level: SecurityLevel,
    user: &User,
    scoped: &[u8],
    out: &mut Vec<u8>,
) {
    let head = Head {
        msg_id,
        max_size: i32::try_from(here.access.message_bytes_max)
            .expect("messages are at most 64 KiB"),
        level,
        reportable: false,
        engine: here.engine.time(here.now),
        user: &user.name,
    };
    let start = out.len();
    let seal = usm::encode_scoped_unsealed(&head, scoped, &user.keys, out);
    let salt = here.engine.next_salt();
    seal.apply(&mut out[start..], level, &user.keys, &head.engine, salt);
}

fn report(
    responder: &mut Responder,
    here: &mut Here<'_>,
    (msg_id, request_id): (i32, i32),
    name: &[u8],
    kind: ReportKind,
    out: &mut Vec<u8>,
) -> Outcome {
    let count = here.engine.count_report(kind);
    let inside = &mut responder.scoped;
    inside.clear();
    let sequence = open_scoped(inside, here.engine);
    let pdu = ber::open(inside, PduType::Report.tag());
    for number in [request_id, 0, 0] {
        ber::put_signed(inside, tag::INTEGER, number.into());
    }
    let list = ber::open(inside, tag::SEQUENCE);
    let varbind = ber::open(inside, tag::SEQUENCE);
    ber::put(inside, tag::OBJECT_ID, &kind.oid().encoded());
    ValueRef::Counter32(count).encode_into(inside);
    for element in [varbind, list, pdu, sequence] {
        ber::close(inside, element);
    }
    // Only a report about the time is signed (RFC 3414, 3.2, 7a): whoever gets it has the right
    // key and sets its clock by it.
    let (level, user) = match (kind, here.engine.user(name, here.access)) {
        (ReportKind::NotInTimeWindow, Some((user, _))) => (SecurityLevel::AuthNoPriv, user),
        _ => {
            let user = User { name: name.to_vec(), keys: LocalKeys::default() };
            (SecurityLevel::NoAuthNoPriv, Arc::new(user))
        }
    };
    seal(here, msg_id, level, &user, inside, out);
    Outcome::Answered(Exchange {
        kind: PduType::Get,
        request_id: msg_id,
        error_status: ErrorStatus::NoError,
        report: true,
        list: None,
    })
}
