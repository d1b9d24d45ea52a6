//! The hot path: responses of all versions, read where they lie.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_snmp::usm::{LocalKeys, User};
use meikyo_snmp::{Security, Version, peek_request_id, read_response};

fuzz_target!(|bytes: &[u8]| {
    let user = User { name: b"reader".to_vec(), keys: LocalKeys::default() };
    let found = peek_request_id(bytes);
    for security in [
        Security::Community { version: Version::V2c, community: b"public" },
        Security::User(&user),
    ] {
        let mut bytes = bytes.to_vec();
        if let Ok(response) = read_response(&mut bytes, &security) {
            assert_eq!(Some(response.request_id), found);
            response.varbinds.for_each(|varbind| drop(varbind.map(|(_, value)| value.to_value())));
        }
    }
});
