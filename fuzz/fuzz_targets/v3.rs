//! Messages of v3 as anybody may send them: no octets make the decoder panic, and what it accepts
//! it writes again with the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_snmp::usm::{LocalKeys, decode_v3, encode_v3};

fuzz_target!(|bytes: &[u8]| {
    let keys = LocalKeys::default();
    if let Ok(message) = decode_v3(&mut bytes.to_vec(), &keys) {
        let mut again = Vec::new();
        encode_v3(&message, &keys, 0, &mut again);
        assert_eq!(decode_v3(&mut again, &keys), Ok(message));
    }
});
