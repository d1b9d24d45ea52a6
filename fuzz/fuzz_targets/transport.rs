//! What comes over a connection of a sender or a receiver: any octets are messages or refused, what is a
//! message means the same when it is written again, and neither side panics at it.
//!
//! The first octet says whether the rest is a session as it is, or a body behind a header that is
//! right, so that the fuzzer reaches what is in the bodies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_transport::wire::{Decoder, Message};
use meikyo_transport::{Now, OnDisk, Output, Permit, Receiver};
use meikyo_units::{Nanos, WallTime};

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, rest)) = bytes.split_first() else { return };
    let octets = if form % 2 == 0 { rest.to_vec() } else { framed(form / 2 % 16, rest) };
    let mut decoder = Decoder::new();
    decoder.push(&octets);
    while let Ok(Some(message)) = decoder.next_message() {
        // A greeting of a later version is read only as far as its version.
        if matches!(&message, Message::Hello(hello) if hello.version > 2) {
            break;
        }
        let mut again = Decoder::new();
        again.push(&message.encoded());
        assert_eq!(again.next_message(), Ok(Some(message)));
    }
    receive(&octets);
});

/// Hands the octets to a receiver that opens whatever it is asked to.
fn receive(octets: &[u8]) {
    let now = Now { monotonic: Nanos::SECOND, wall: WallTime::from_nanos(1) };
    let mut receiver = Receiver::new();
    receiver.connected(now, 1, Permit::anybody());
    for piece in octets.chunks(1_000) {
        receiver.handle(now, 1, piece);
        while let Some(output) = receiver.poll_output() {
            if let Output::Open { place, tables, after } = output {
                receiver.opened(now, (&place, &tables), after, &OnDisk::default());
            }
        }
    }
}

/// A body behind a header as docs/transport.md describes it.
fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x4d, kind, 0, 0];
    octets.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    octets.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    octets.extend_from_slice(&crc32fast::hash(&octets).to_le_bytes());
    octets.extend_from_slice(body);
    octets
}
