//! The codec under properties and damaged packets.

use meikyo_cluster::{AuthProtocol, PrivProtocol};
use meikyo_snmp::message::{decode_community, encode_community};
use meikyo_snmp::usm::{
    self, EngineId, EngineTime, Envelope, LocalKeys, Message, SecurityLevel, User,
};
use meikyo_snmp::{Oid, Pdu, PduType, Security, Value, Version, peek_request_id, read_response};
use proptest::prelude::*;

fn any_oid() -> impl Strategy<Value = Oid> {
    let arc = prop_oneof![0..300_u32, any::<u32>()];
    let root = prop_oneof![(0..2_u32, 0..40_u32), (Just(2_u32), any::<u32>())];
    (root, prop::collection::vec(arc, 0..20))
        .prop_map(|((first, second), rest)| Oid::from_slice(&[first, second]).child(&rest))
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::OctetString),
        any_oid().prop_map(Value::ObjectId),
        any::<[u8; 4]>().prop_map(Value::IpAddress),
        any::<u32>().prop_map(Value::Counter32),
        any::<u32>().prop_map(Value::Gauge32),
        any::<u32>().prop_map(Value::TimeTicks),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Opaque),
        any::<u64>().prop_map(Value::Counter64),
        Just(Value::Null),
        Just(Value::NoSuchObject),
        Just(Value::NoSuchInstance),
        Just(Value::EndOfMibView),
    ]
}

fn any_pdu() -> impl Strategy<Value = Pdu> {
    let kind = prop::sample::select(vec![
        PduType::Get,
        PduType::GetNext,
        PduType::Response,
        PduType::Set,
        PduType::GetBulk,
        PduType::Report,
        PduType::TrapV2,
    ]);
    let varbinds = prop::collection::vec((any_oid(), any_value()), 0..8);
    (kind, any::<i32>(), any::<i32>(), any::<i32>(), varbinds).prop_map(
        |(kind, request_id, error_status, error_index, varbinds)| Pdu {
            kind,
            request_id,
            error_status,
            error_index,
            varbinds,
        },
    )
}

fn keys() -> LocalKeys {
    let master = usm::master_key(AuthProtocol::Sha256, b"a good password").unwrap();
    usm::localize(Some(&master), Some((PrivProtocol::Aes128, &master)), b"engine")
}

fn message(pdu: Pdu, level: SecurityLevel) -> Message {
    let engine_id = EngineId::from_slice(b"engine").unwrap();
    Message {
        msg_id: pdu.request_id,
        max_size: 1472,
        level,
        reportable: false,
        engine: EngineTime { engine_id, boots: 3, time: 70_000 },
        user: b"reader".to_vec(),
        context_engine_id: engine_id.to_vec(),
        context_name: Vec::new(),
        pdu,
    }
}

proptest! {
    #[test]
    fn object_identifiers_come_back_from_text_and_octets(oid in any_oid()) {
        prop_assert_eq!(oid.to_string().parse::<Oid>(), Ok(oid.clone()));
        // The second arc below 2 shares its octets with 80: only 32 bits in all fit.
        if u64::from(oid.as_slice()[1]) + 80 <= u64::from(u32::MAX) {
            prop_assert_eq!(Oid::decode(&oid.encoded()), Ok(oid));
        }
    }

    #[test]
    fn community_messages_come_back(
        pdu in any_pdu(),
        community in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = Vec::new();
        encode_community(Version::V2c, &community, &pdu, &mut bytes);
        prop_assert_eq!(peek_request_id(&bytes), Some(pdu.request_id));
        prop_assert_eq!(decode_community(&bytes), Ok((Version::V2c, &community[..], pdu)));
    }

    #[test]
    fn v3_messages_come_back(pdu in any_pdu(), salt in any::<u64>()) {
        let keys = keys();
        for level in [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthNoPriv, SecurityLevel::AuthPriv] {
            let message = message(pdu.clone(), level);
            let mut bytes = Vec::new();
            usm::encode_v3(&message, &keys, salt, &mut bytes);
            prop_assert_eq!(peek_request_id(&bytes), Some(pdu.request_id));
            prop_assert_eq!(usm::decode_v3(&mut bytes, &keys), Ok(message));
        }
    }

    #[test]
    fn no_octets_make_a_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode_everything(&mut bytes, &keys());
    }
}

/// Every decoder on the same octets; the HMAC is stepped over, as if the sender knew the key.
fn decode_everything(bytes: &mut [u8], keys: &LocalKeys) {
    peek_request_id(bytes);
    decode_community(bytes).ok();
    let user = User { name: b"reader".to_vec(), keys: LocalKeys::default() };
    for security in
        [Security::Community { version: Version::V2c, community: b"public" }, Security::User(&user)]
    {
        if let Ok(response) = read_response(bytes, &security) {
            response.varbinds.for_each(|varbind| drop(varbind.map(|(_, value)| value.to_value())));
        }
    }
    if let Ok(envelope) = Envelope::read(bytes) {
        envelope.verify(bytes, keys).ok();
        envelope.decrypt(bytes, keys).map(|scoped| scoped.pdu()).ok();
    }
}

/// Xorshift64 (Marsaglia 2003): the same damage in every run.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn three_hundred_thousand_damaged_packets_make_no_decoder_panic() {
    let keys = keys();
    let mut pdu = Pdu::request(PduType::Response, 0x1234_5678, &[]);
    for arc in 1..6 {
        let oid: Oid = "1.3.6.1.2.1.31.1.1.1".parse().unwrap();
        pdu.varbinds.push((oid.child(&[arc, 300]), Value::Counter64(u64::from(arc) << 40)));
    }
    let mut seeds = vec![Vec::new()];
    encode_community(Version::V2c, b"public", &pdu, &mut seeds[0]);
    for level in [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthNoPriv, SecurityLevel::AuthPriv] {
        let mut bytes = Vec::new();
        usm::encode_v3(&message(pdu.clone(), level), &keys, 9, &mut bytes);
        seeds.push(bytes);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for round in 0..300_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=next(&mut state) % 4 {
            let at = next(&mut state) % bytes.len().max(1);
            match next(&mut state) % 5 {
                0 => bytes[at] ^= 1 << (next(&mut state) % 8),
                1 => bytes[at] = [0, 0x7f, 0x80, 0x81, 0x84, 0xff][next(&mut state) % 6],
                2 => bytes.truncate(at.max(1)),
                3 => bytes.insert(at, 0x82),
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                bytes.push(0x30);
            }
        }
        decode_everything(&mut bytes, &keys);
    }
}
