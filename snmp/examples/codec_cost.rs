//! What the codec costs a poll, in nanoseconds: `cargo run --release -p meikyo-snmp --example
//! codec_cost`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use meikyo_cluster::{AuthProtocol, PrivProtocol};
use meikyo_snmp::message::encode_community;
use meikyo_snmp::usm::{self, EngineId, EngineTime, Message, User};
use meikyo_snmp::{
    Oid, Pdu, PduType, RequestTemplate, Security, Value, Version, peek_request_id, read_response,
};

const ROUNDS: u32 = 200_000;

/// The least mean of seven runs.
#[expect(clippy::disallowed_methods, reason = "it measures the time that passes")]
fn cost(mut once: impl FnMut()) -> f64 {
    let run = |once: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..ROUNDS).for_each(|_| once());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    };
    (0..7).map(|_| run(&mut once)).fold(f64::INFINITY, f64::min)
}

fn sum(bytes: &mut [u8], security: &Security<'_>) -> u64 {
    let Ok(response) = read_response(bytes, security) else { return 0 };
    response.varbinds.flatten().fold(0, |sum, (oid, value)| {
        sum ^ value.as_u64().unwrap_or(0) ^ u64::from(oid.last().copied().unwrap_or(0))
    })
}

#[expect(clippy::print_stdout, reason = "an example prints what it measured")]
fn main() -> Result<(), usm::KeyError> {
    let column: Oid = Oid::from_slice(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1]);
    let oids: Vec<Oid> = (1..=7).map(|arc| column.child(&[arc, 2])).collect();
    let mut pdu = Pdu::request(PduType::Response, 0x1234_5678, &[]);
    pdu.varbinds = oids.iter().map(|oid| (oid.clone(), Value::Counter64(1 << 45))).collect();

    let mut out = Vec::new();
    let mut template = RequestTemplate::community(Version::V2c, b"public", &oids);
    let write = cost(|| {
        out.clear();
        template.write(black_box(0x1234_5678), None, 0, &mut out);
        black_box(&out);
    });
    let mut bytes = Vec::new();
    encode_community(Version::V2c, b"public", &pdu, &mut bytes);
    let security = Security::Community { version: Version::V2c, community: b"public" };
    let peek = cost(|| {
        black_box(peek_request_id(black_box(&bytes)));
    });
    let read = cost(|| {
        black_box(sum(black_box(&mut bytes), &security));
    });
    println!("v2c: write {write:.0} ns, peek {peek:.0} ns, read with 7 varbinds {read:.0} ns");

    let engine_id = EngineId::from_slice(b"\x80\x00\x1f\x88\x04meikyo").unwrap_or_default();
    let engine = EngineTime { engine_id, boots: 3, time: 70_000 };
    let master = usm::master_key(AuthProtocol::Sha256, b"a good password")?;
    let keys = usm::localize(Some(&master), Some((PrivProtocol::Aes128, &master)), &engine_id);
    let user = Arc::new(User { name: b"reader".to_vec(), keys });
    let mut template = RequestTemplate::v3(Arc::clone(&user), &oids);
    let mut salt = 0;
    let write = cost(|| {
        out.clear();
        salt += 1;
        template.write(black_box(0x1234_5678), Some(&engine), salt, &mut out);
        black_box(&out);
    });
    let message = Message {
        msg_id: pdu.request_id,
        max_size: 1472,
        level: user.keys.level(),
        reportable: false,
        engine,
        user: user.name.clone(),
        context_engine_id: engine_id.to_vec(),
        context_name: Vec::new(),
        pdu,
    };
    let mut sealed = Vec::new();
    usm::encode_v3(&message, &user.keys, 9, &mut sealed);
    let security = Security::User(&user);
    let mut bytes = sealed.clone();
    let read = cost(|| {
        // Decryption changes the octets, so each round starts from a copy.
        bytes.copy_from_slice(&sealed);
        black_box(sum(black_box(&mut bytes), &security));
    });
    println!(
        "v3 SHA-256 AES-128: write {write:.0} ns, read with 7 varbinds {read:.0} ns, both {:.0} ns",
        write + read
    );
    Ok(())
}
