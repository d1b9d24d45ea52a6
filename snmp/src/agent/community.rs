//! Messages of v1 and v2c: version and community around a PDU (RFC 1157, RFC 1901).

use meikyo_units::WallTime;

use super::request::{self, RequestPdu, Terms};
use super::{Access, Drop, Mib, Outcome, Responder};
use crate::ber::{self, tag};
use crate::message;

/// Answers a message of v1 or v2c. A wrong community is not answered, as RFC 1157, 4.1, asks.
#[inline]
pub(super) fn respond<M: Mib>(
    responder: &mut Responder,
    now: WallTime,
    request: &[u8],
    access: &Access,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Outcome {
    let Ok((version, community, mut inside)) = message::open_community(request) else {
        return Outcome::Dropped(Drop::Malformed);
    };
    let Some(known) = access.community(community) else {
        responder.counters.bad_communities += 1;
        return Outcome::Dropped(Drop::Unauthorized);
    };
    let Ok(pdu) = RequestPdu::decode(&mut inside) else {
        return Outcome::Dropped(Drop::Malformed);
    };
    let start = out.len();
    let message = ber::open(out, tag::SEQUENCE);
    ber::put_signed(out, tag::INTEGER, version.code());
    ber::put(out, tag::OCTET_STRING, community);
    let bytes_max = start + access.message_bytes_max;
    let terms = Terms { version, write: known.write, bytes_max };
    let begun = mib.begin(now);
    match request::answer(responder, begun, pdu, terms, mib, out) {
        Ok(exchange) => {
            ber::close(out, message);
            Outcome::Answered(exchange)
        }
        Err(drop) => {
            out.truncate(start);
            Outcome::Dropped(drop)
        }
    }
}
