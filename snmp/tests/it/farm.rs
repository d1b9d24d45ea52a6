//! The farm against its own truth file, and answers decoded by the codec.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use meikyo_snmp::farm::truth::{self, TruthRecord, TruthRequest, flag};
use meikyo_snmp::farm::{Cache, Event, Farm, FarmOptions, Replies};
use meikyo_snmp::message::{decode_community, encode_community};
use meikyo_snmp::{Oid, Pdu, PduType, Value, Version};
use meikyo_units::{Nanos, WallTime};

const START: WallTime = WallTime::from_nanos(1_790_000_000_000_000_000);
const IN_OCTETS: &str = "1.3.6.1.2.1.31.1.1.1.6.2";

fn asked() -> Vec<Oid> {
    ["1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.31.1.1.1.1.2", IN_OCTETS, "1.3.6.1.4.1.2021.9.1.8.1"]
        .map(|oid| oid.parse().unwrap())
        .to_vec()
}

fn request(id: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pdu = Pdu::request(PduType::Get, id, &asked());
    encode_community(Version::V2c, b"public", &pdu, &mut bytes);
    bytes
}

/// Asks every agent `rounds` times, 100 ms apart, under a clock of the test's own; the answers that
/// could be decoded, by request id, and the truth.
fn measured(
    options: FarmOptions,
    script: &[&str],
    rounds: u32,
) -> (Vec<Pdu>, BTreeMap<i32, TruthRequest>) {
    let events: Vec<Event> =
        script.iter().map(|line| Event::parse(line, &options).unwrap()).collect();
    let agents = options.agents();
    let mut farm = Farm::new(options, START);
    farm.schedule(events);
    farm.record_truth();
    let (mut replies, mut answers, mut id) = (Replies::new(), Vec::new(), 0);
    for round in 0..rounds {
        let now = START + Nanos::from_millis(100) * u64::from(round);
        for agent in 0..agents {
            // Even ids only: a faulty agent answers with the next one, which nobody asked.
            id += 2;
            replies.clear();
            farm.handle(now, Ipv4Addr::from(0x7f01_0001 + agent), &request(id), &mut replies);
            for reply in replies.iter() {
                assert!(reply.send_at >= now);
                if let Ok((_, _, pdu)) = decode_community(reply.bytes) {
                    answers.push(pdu);
                }
            }
        }
    }
    let records = truth::read_from(farm.truth().unwrap().as_slice()).unwrap();
    let requests = records.map(Result::unwrap).filter_map(|record| match record {
        TruthRecord::Request(request) => Some((request.request_id, request)),
        TruthRecord::Event { .. } => None,
    });
    (answers, requests.collect())
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Counter64(number) => *number,
        Value::TimeTicks(number) => u64::from(*number),
        Value::Integer(number) => u64::try_from(*number).unwrap(),
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn the_truth_is_what_was_answered_under_every_fault() {
    let faults = "at 0s set loss=5% duplicate=5% late=5% truncate=2% wrong_id=2% all";
    let (answers, truth) = measured(FarmOptions::new(20, 0), &[faults], 200);
    assert_eq!(truth.len(), 4_000);
    let lost = truth.values().filter(|request| request.flags & flag::LOST != 0).count();
    assert!((130..270).contains(&lost), "{lost} lost");
    let mut checked = 0;
    for pdu in &answers {
        let request = &truth[&(pdu.request_id & !1)];
        assert_eq!(request.flags & flag::LOST, 0);
        assert_eq!(request.flags & flag::WRONG_ID != 0, pdu.request_id % 2 != 0);
        let moving: Vec<u64> = [0, 2, 3].map(|position| number(&pdu.varbinds[position].1)).to_vec();
        assert_eq!(request.answered, moving, "request {}", pdu.request_id);
        assert_eq!(u64::from(request.uptime_cs), moving[0]);
        checked += 1;
    }
    assert!(checked > 3_600, "{checked}");
}

#[test]
fn a_cache_answers_what_was_held_at_its_last_refresh() {
    let options =
        FarmOptions { cache: Cache::Every(Nanos::from_secs(3)), ..FarmOptions::new(1, 0) };
    let (_, truth) = measured(options, &[], 300);
    let octets: Vec<(u64, u64)> =
        truth.values().map(|request| (request.answered[1], request.held[1])).collect();
    assert!(octets.windows(2).all(|pair| pair[0].1 < pair[1].1), "what is held always moves");
    let edges = octets.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!((9..=10).contains(&edges), "{edges} refreshes in 30 s");
    let mut last = 0;
    for &(answered, held) in &octets {
        assert!(answered <= held && answered >= last);
        last = answered;
    }
}

#[test]
fn a_renumbered_agent_holds_another_interface_under_the_same_index() {
    let script = ["at 1s renumber node001", "at 2s restart node001", "at 3s reboot node001"];
    let (answers, truth) = measured(FarmOptions::new(1, 0), &script, 40);
    let subject = |round: i32| truth[&(2 * round + 2)].objects[1].subject.as_str();
    assert_eq!((subject(0), subject(9)), ("eth0", "eth0"));
    assert_eq!((subject(10), subject(39)), ("eth1", "eth1"));
    assert_eq!(answers[9].varbinds[1].1, Value::OctetString(b"eth0".to_vec()));
    assert_eq!(answers[10].varbinds[1].1, Value::OctetString(b"eth1".to_vec()));
    // Round 20 is the first at or after the restart, round 30 at or after the reboot.
    let uptime = |round: usize| number(&answers[round].varbinds[0].1);
    assert!(uptime(19) > 300_000 && uptime(20) == 0 && uptime(21) == 10 && uptime(30) == 0);
    let octets = |round: usize| number(&answers[round].varbinds[2].1);
    assert!(octets(20) > octets(19), "a restart of the agent keeps the counters");
    assert!(octets(30) < octets(29) && octets(31) > octets(30), "a reboot does not");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let run = |seed| {
        let options = FarmOptions { seed, ..FarmOptions::new(3, 1) };
        measured(options, &["at 0s set loss=10% all"], 50).0
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
