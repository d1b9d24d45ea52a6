//! Agents that refuse single objects, or send values that cannot be read: the rest is measured, the
//! object is named and comes back by itself.

use meikyo_snmp::ber::{self, tag};
use meikyo_snmp::message::{decode_community, encode_community};
use meikyo_snmp::{ErrorStatus, Oid, Pdu};

use super::*;

/// ifHCInOctets and ifHCOutOctets (RFC 2863), without the row.
pub(super) const IN_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6];
pub(super) const OUT_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10];

const MEASURE: &str = "\"interface:eth0(in_octets,out_octets)\", \"load\"";

fn pdu_of(message: &[u8]) -> Pdu {
    decode_community(message).expect("requests and answers of the twin are right").2
}

/// Position of an object in a request, 1 for the first.
fn index_of(request: &[u8], column: &[u32]) -> Option<usize> {
    let varbinds = pdu_of(request).varbinds;
    let found = varbinds.iter().position(|(oid, _)| oid.as_slice().starts_with(column));
    found.map(|position| position + 1)
}

/// An answer with an error status, as RFC 3416, section 4.2.1, has it.
pub(super) fn fail(answer: &mut Vec<u8>, request: &[u8], status: ErrorStatus, index: usize) {
    let (version, community, mut pdu) = decode_community(request).expect("a request");
    pdu.kind = meikyo_snmp::PduType::Response;
    (pdu.error_status, pdu.error_index) = (status.code(), i32::try_from(index).expect("small"));
    if status == ErrorStatus::TooBig {
        pdu.varbinds.clear();
    }
    answer.clear();
    encode_community(version, community, &pdu, answer);
}

/// The same answer with other content octets of one counter.
pub(super) fn with_content(answer: &mut Vec<u8>, column: &[u32], content: &[u8]) {
    let octets = answer.clone();
    let (version, community, pdu) = decode_community(&octets).expect("an answer");
    answer.clear();
    let message = ber::open(answer, tag::SEQUENCE);
    ber::put_signed(answer, tag::INTEGER, version.code());
    ber::put(answer, tag::OCTET_STRING, community);
    let response = ber::open(answer, pdu.kind.tag());
    for number in [pdu.request_id, 0, 0] {
        ber::put_signed(answer, tag::INTEGER, number.into());
    }
    let list = ber::open(answer, tag::SEQUENCE);
    for (oid, value) in &pdu.varbinds {
        let varbind = ber::open(answer, tag::SEQUENCE);
        let name = ber::open(answer, tag::OBJECT_ID);
        oid.encode_into(answer);
        ber::close(answer, name);
        if oid.as_slice().starts_with(column) {
            ber::put(answer, tag::COUNTER64, content);
        } else {
            value.encode_into(answer);
        }
        ber::close(answer, varbind);
    }
    [list, response, message].into_iter().for_each(|open| ber::close(answer, open));
}

fn events_of(memory: &Memory, kind: &str) -> Vec<Row> {
    rows(memory, "events").into_iter().filter(|row| row["event"] == kind).collect()
}

fn second(row: &Row) -> u64 {
    time(row).since(START).get() / 1_000_000_000
}

#[test]
fn an_object_that_the_agent_fails_at_is_left_out_by_name_and_comes_back() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(1, 0), MEASURE);
    let healed = START + Nanos::from_secs(25);
    twin.tamper_with(move |now, _, request, answer| {
        if let Some(index) = index_of(request, OUT_OCTETS).filter(|_| now < healed) {
            fail(answer, request, ErrorStatus::GenErr, index);
        }
    });
    twin.run_until(START + Nanos::from_secs(45));
    let requests = finish(twin);
    assert_eq!(endings(&rows(&memory, "polls"), "node001"), [("ok".to_owned(), 449)].into());
    let interfaces = rows(&memory, "interfaces");
    assert_eq!(interfaces.len(), 448, "every interval but the first, which asks for the names");
    assert!(interfaces.iter().all(|row| row.contains_key("in_octets")));
    // Refused at 0.2 s, ten seconds later, and answered twenty seconds after that.
    let back = START + Nanos::from_millis(30_200);
    assert!(interfaces.iter().all(|row| row.contains_key("out_octets") == (time(row) >= back)));
    assert_eq!(rows(&memory, "load").len(), 448);
    let refused = events_of(&memory, "refused_object");
    let told: Vec<_> = refused.iter().map(|row| (&*row["device"], &*row["object"])).collect();
    assert_eq!(told, [("node001", "interfaces.eth0.out_octets")]);
    assert!(refused[0]["text"].contains("genErr"), "{refused:?}");
    let returned = events_of(&memory, "object_returned");
    assert_eq!(returned.len(), 1, "{returned:?}");
    // Once at first, once after ten seconds; the third time it is answered.
    assert_eq!(requests[&0].len(), 449 + 2);
}

#[test]
fn a_counter_that_cannot_be_read_is_missing_and_the_rest_is_not() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(2, 0), MEASURE);
    let bad = START + Nanos::from_secs(5)..START + Nanos::from_secs(8);
    twin.tamper_with(move |now, from, _, answer| {
        if bad.contains(&now) {
            let is_first = from.ip().to_string().ends_with(".1");
            with_content(answer, OUT_OCTETS, if is_first { &[] } else { &[1; 12] });
        }
    });
    twin.run_until(START + Nanos::from_secs(12));
    finish(twin);
    for name in ["node001", "node002"] {
        assert_eq!(endings(&rows(&memory, "polls"), name), [("ok".to_owned(), 119)].into());
        let interfaces = rows(&memory, "interfaces");
        let own = interfaces.iter().filter(|row| row["device"] == name);
        assert_eq!(own.clone().count(), 118);
        for row in own {
            let read = !(5..8).contains(&second(row));
            assert_eq!(row.contains_key("out_octets"), read, "{row:?}");
            assert!(row.contains_key("in_octets"), "{row:?}");
        }
        for kind in ["unreadable_object", "object_returned"] {
            let events = events_of(&memory, kind);
            let of_device = events.iter().filter(|row| row["device"] == name);
            let told: Vec<_> = of_device.map(|row| &*row["object"]).collect();
            assert_eq!(told, ["interfaces.eth0.out_octets"], "{kind}");
        }
    }
}

#[test]
fn an_agent_that_answers_less_than_a_row_is_asked_for_as_much_as_it_can() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(1, 0), "\"interface:eth0\"");
    twin.tamper_with(|_, _, request, answer| {
        if pdu_of(request).varbinds.len() > 4 {
            fail(answer, request, ErrorStatus::TooBig, 0);
        }
    });
    twin.run_until(START + Nanos::from_secs(9));
    finish(twin);
    assert_eq!(endings(&rows(&memory, "polls"), "node001"), [("ok".to_owned(), 89)].into());
    let interfaces = rows(&memory, "interfaces");
    assert_eq!(interfaces.len(), 88);
    // sysUpTime and the name of the row are asked for too.
    let whole = |row: &Row| row.contains_key("in_octets") && row.contains_key("out_octets");
    assert!(interfaces.iter().all(whole), "{:?}", interfaces[0]);
    let refused = events_of(&memory, "refused_object");
    assert!(refused.len() >= 5, "{refused:?}");
    let named = |row: &Row| row["object"].starts_with("interfaces.eth0.");
    assert!(refused.iter().all(|row| named(row) && row["text"].contains("tooBig")), "{refused:?}");
}

#[test]
fn an_agent_that_names_no_object_is_told_with_what_it_was_asked() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(1, 0), MEASURE);
    let bad = START + Nanos::from_secs(5)..START + Nanos::from_secs(8);
    twin.tamper_with(move |now, _, request, answer| {
        if bad.contains(&now) && index_of(request, IN_OCTETS).is_some() {
            fail(answer, request, ErrorStatus::GenErr, 0);
        }
    });
    twin.run_until(START + Nanos::from_secs(12));
    finish(twin);
    let endings = endings(&rows(&memory, "polls"), "node001");
    assert_eq!(endings, [("ok".to_owned(), 89), ("error error_status".to_owned(), 30)].into());
    let told = events_of(&memory, "refused_request");
    assert_eq!(told.len(), 1, "{told:?}");
    let text = &told[0]["text"];
    assert!(text.contains("genErr"), "{text}");
    assert!(text.ends_with("it was asked for interfaces.eth0 to load.load_15min"), "{text}");
}

/// Answers that are not the agent's, with the id that was asked and values that are not true.
fn forged(answer: &[u8], kind: usize) -> Vec<u8> {
    let (version, community, mut pdu) = decode_community(answer).expect("an answer");
    for (oid, value) in &mut pdu.varbinds {
        if oid.as_slice().starts_with(IN_OCTETS) {
            *value = meikyo_snmp::Value::Counter64(7);
        }
    }
    let mut octets = Vec::new();
    match kind {
        0 => encode_community(version, b"another", &pdu, &mut octets),
        1 => encode_community(meikyo_snmp::Version::V1, community, &pdu, &mut octets),
        2 => {
            encode_community(version, community, &pdu, &mut octets);
            octets.truncate(octets.len() / 2);
        }
        3 => {
            pdu.varbinds.pop();
            encode_community(version, community, &pdu, &mut octets);
        }
        _ => {
            pdu.varbinds[1].0 = Oid::from_slice(&[1, 3, 6, 1, 2, 1, 1, 5, 0]);
            encode_community(version, community, &pdu, &mut octets);
        }
    }
    octets
}

#[test]
fn forged_answers_with_the_right_id_are_counted_and_the_wait_goes_on() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(1, 0), MEASURE);
    setup.script = vec!["at 0s set delay=5ms all".into()];
    let mut twin = setup.twin(&memory);
    let asked = std::rc::Rc::new(std::cell::RefCell::new((None, Vec::new())));
    let seen = asked.clone();
    twin.tamper_with(move |_, from, _, answer| {
        *seen.borrow_mut() = (Some(from), answer.clone());
    });
    let mut injected = 0;
    for tick in 2..=100_u32 {
        twin.run_until(START + INTERVAL * u64::from(tick) + Nanos::from_millis(3));
        let (from, answer) = asked.borrow().clone();
        twin.inject(from.expect("one was asked"), &forged(&answer, tick as usize % 5));
        injected += 1;
    }
    twin.run_until(START + Nanos::from_secs(11));
    assert_eq!(twin.poller().counts().unreadable, injected);
    assert_eq!(twin.poller().counts().strays, 0);
    let requests = finish(twin);
    assert_eq!(endings(&rows(&memory, "polls"), "node001"), [("ok".to_owned(), 109)].into());
    let asked = requests[&0].iter().map(|request| {
        (("node001".to_owned(), request.received.floor(INTERVAL).as_nanos()), request)
    });
    assert_eq!(verify_octets(&memory, &asked.collect()), 2 * 108);
    let intervals = rows(&memory, "intervals");
    let last = intervals.last().expect("intervals are recorded");
    assert_eq!(last["unreadable"], injected.to_string(), "{last:?}");
}

#[test]
fn a_counter_that_jumps_beyond_line_rate_is_told_with_what_it_would_have_been() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(2, 0), "\"interface:eth0\", \"interface:lo\"");
    let jump = START + Nanos::from_secs(10);
    twin.tamper_with(move |now, from, _, answer| {
        if now < jump || !from.ip().to_string().ends_with(".2") {
            return;
        }
        let octets = answer.clone();
        let (version, community, mut pdu) = decode_community(&octets).expect("an answer");
        for (oid, value) in &mut pdu.varbinds {
            if let meikyo_snmp::Value::Counter64(counted) = value
                && oid.as_slice().starts_with(IN_OCTETS)
            {
                *counted += 1_000_000_000_000_000;
            }
        }
        answer.clear();
        encode_community(version, community, &pdu, answer);
    });
    twin.run_until(START + Nanos::from_secs(20));
    finish(twin);
    let resets = events_of(&memory, "reset");
    let speeds: BTreeMap<String, String> = rows(&memory, "interfaces")
        .iter()
        .filter_map(|row| Some((row["interface"].clone(), row.get("speed_mbps")?.clone())))
        .collect();
    // What states no speed may have counted that much.
    let limited = speeds.iter().filter(|(_, mbps)| !["0", "10"].contains(&mbps.as_str()));
    let objects: Vec<_> = limited.map(|(name, _)| format!("interfaces.{name}.in_octets")).collect();
    assert!(!objects.is_empty(), "{speeds:?}");
    let told: Vec<_> = resets.iter().map(|row| row["object"].clone()).collect();
    assert_eq!(told, objects, "{resets:?} {speeds:?}");
    for row in &resets {
        assert_eq!((&*row["device"], second(row)), ("node002", 10), "{row:?}");
        assert!(row["text"].contains("greater by 10000000"), "{row:?}");
        assert!(row["text"].contains("which would be 100000"), "{row:?}");
        assert!(row["text"].contains("octets a second"), "{row:?}");
    }
}
