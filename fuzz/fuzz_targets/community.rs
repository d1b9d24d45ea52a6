//! Messages of v1 and v2c: no octets make the decoder panic, and what it accepts it writes again
//! with the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_snmp::message::{decode_community, encode_community};

fuzz_target!(|bytes: &[u8]| {
    if let Ok((version, community, pdu)) = decode_community(bytes) {
        let mut again = Vec::new();
        encode_community(version, community, &pdu, &mut again);
        assert_eq!(decode_community(&again), Ok((version, community, pdu)));
    }
});
