//! What an agent does with a request that anybody may send: the envelope, the user, and, decrypted
//! with a key that the sender does not have, the rest.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use meikyo_cluster::{AuthProtocol, PrivProtocol};
use meikyo_snmp::message::{decode_community, peek_version};
use meikyo_snmp::usm::{Envelope, LocalKeys, localize, master_key};

static KEYS: LazyLock<LocalKeys> = LazyLock::new(|| {
    let master = master_key(AuthProtocol::Sha256, b"a good password").expect("it is long enough");
    localize(Some(&master), Some((PrivProtocol::Aes128, &master)), b"engine")
});

fuzz_target!(|bytes: &[u8]| {
    drop(peek_version(bytes));
    drop(decode_community(bytes));
    let Ok(envelope) = Envelope::read(bytes) else { return };
    envelope.user(bytes);
    drop(envelope.verify(bytes, &KEYS));
    // Also past the HMAC, as if the sender knew the key.
    if let Ok(scoped) = envelope.decrypt(&mut bytes.to_vec(), &KEYS) {
        drop(scoped.pdu());
    }
});
