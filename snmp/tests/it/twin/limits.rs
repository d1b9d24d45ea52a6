//! Limits: of a device's rate, of what our own socket holds, of what an agent can put into an answer.

use super::*;

/// When the polls of every agent arrived, and when they were answered.
fn spans(requests: &BTreeMap<u32, Vec<TruthRequest>>) -> Vec<(WallTime, WallTime)> {
    requests.values().flatten().map(|request| (request.received, request.sent)).collect()
}

#[test]
fn requests_are_spread_over_the_interval() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(40, 0), "\"load\"");
    setup.pace = Pace::Spread;
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(5));
    let requests = finish(twin);
    // Four fifths of 100 ms among 40 devices: one every 2 ms, each always at the same moment.
    for (ordinal, requests) in &requests {
        let moment = Nanos::from_millis(2) * u64::from(*ordinal) + TRANSIT;
        for request in requests {
            let offset = request.received.since(request.received.floor(INTERVAL));
            assert_eq!(offset, moment, "agent {ordinal}");
        }
        assert!(requests.len() >= 48);
    }
    let states: Vec<_> = (1..=40).map(|n| format!("node{n:03}")).collect();
    let polls = rows(&memory, "polls");
    assert!(states.iter().all(|name| endings(&polls, name).keys().eq(["ok"])));
}

#[test]
fn a_device_is_never_asked_more_often_than_its_cap_allows() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(2, 0), "\"load\"");
    setup.rate_max = Some(4);
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(20));
    let requests = finish(twin);
    let polls = rows(&memory, "polls");
    for (agent, requests) in &requests {
        let arrivals: Vec<WallTime> = requests.iter().map(|request| request.received).collect();
        assert!((76..=81).contains(&arrivals.len()), "{} requests in 20 s", arrivals.len());
        // Any six in a row take longer than a second: four, and one that was saved up.
        for six in arrivals.windows(6) {
            assert!(six[5].since(six[0]) >= Nanos::SECOND, "{six:?}");
        }
        let asked = arrivals.len();
        let expected = [("ok".to_owned(), asked), ("skipped rate_cap".to_owned(), 199 - asked)];
        assert_eq!(endings(&polls, &format!("node{:03}", agent + 1)), expected.into());
    }
}

/// The most requests that were open at once.
fn open_max(requests: &BTreeMap<u32, Vec<TruthRequest>>) -> i32 {
    let mut changes: Vec<(WallTime, i32)> = Vec::new();
    for (received, sent) in spans(requests) {
        changes.extend([(received.before(TRANSIT), 1), (sent + TRANSIT, -1)]);
    }
    // Where one ends as another begins, the end comes first.
    changes.sort_unstable();
    let mut open = 0;
    changes
        .into_iter()
        .map(|(_, change)| {
            open += change;
            open
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn requests_in_flight_never_exceed_what_the_receive_buffer_holds() {
    let measured = |delay: &str| {
        let memory = Memory::default();
        let mut setup = Setup::new(FarmOptions::new(64, 0), "\"load\"");
        setup.in_flight_max = 8;
        setup.script = vec![format!("at 0s set delay={delay} all")];
        let mut twin = setup.twin(&memory);
        twin.run_until(START + Nanos::from_secs(5));
        let requests = finish(twin);
        (requests, rows(&memory, "polls"))
    };
    // Eight at a time, 5 ms each: 64 take 40 ms.
    let (requests, polls) = measured("5ms");
    assert_eq!(open_max(&requests), 8);
    let ok = polls.iter().filter(|row| row["state"] == "ok").count();
    assert_eq!(ok, 64 * 49);
    // 40 ms each: only two times eight fit an interval. What does not fit says why.
    let (requests, polls) = measured("40ms");
    assert_eq!(open_max(&requests), 8);
    let mut endings: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
    for row in &polls {
        let reason = row.get("reason").map(String::as_str);
        *endings.entry((row["state"].as_str(), reason)).or_default() += 1;
    }
    assert!(endings[&("skipped", Some("in_flight_cap"))] > 40 * 40, "{endings:?}");
    assert!(endings.keys().all(|(state, _)| ["ok", "late", "skipped"].contains(state)));
    // Nobody is left out for ever.
    let asked = requests.values().filter(|requests| requests.len() > 5).count();
    assert_eq!(asked, 64, "devices that were asked");
}

#[test]
fn what_our_own_socket_dropped_is_not_blamed_on_the_agents() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(6, 0), "\"load\"");
    let lose = |from: &str, to: &str, names: &str| {
        [format!("at {from} set loss=100% {names}"), format!("at {to} set loss=0% {names}")]
    };
    // At 3.1 s our socket drops the answers of four; at 8.1 s the network loses those of another.
    setup.script = lose("3.05s", "3.15s", "node[001-004]").to_vec();
    setup.script.extend(lose("8.05s", "8.15s", "node005"));
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_millis(3_250));
    let now = twin.now();
    twin.poller().handle_drops(now, 0, 4);
    twin.run_until(START + Nanos::from_secs(15));
    assert_eq!(twin.poller().counts().socket_drops, 4);
    finish(twin);
    let polls = rows(&memory, "polls");
    let missed = |name: &str| {
        let rows = polls.iter().filter(|row| row["device"] == name && row["state"] == "missed");
        rows.map(|row| row.get("reason").cloned()).collect::<Vec<_>>()
    };
    for name in ["node001", "node002", "node003", "node004"] {
        assert_eq!(missed(name), [Some("socket_drops".to_owned())], "{name}");
    }
    assert_eq!(missed("node005"), [None]);
    assert_eq!(missed("node006"), []);
    let events = rows(&memory, "events");
    let drops: Vec<_> = events.iter().filter(|row| row["event"] == "socket_drops").collect();
    assert_eq!(drops.len(), 1);
    assert_eq!((drops[0].get("device"), drops[0]["count"].as_str()), (None, "4"));
}

const COLUMNS: [&str; 8] = [
    "in_octets",
    "out_octets",
    "in_packets",
    "out_packets",
    "in_errors",
    "out_errors",
    "in_discards",
    "out_discards",
];

#[test]
fn a_switch_that_can_only_answer_little_at_a_time_is_read_whole() {
    let memory = Memory::default();
    let mut options = FarmOptions::new(0, 1);
    // The least that every agent must take (RFC 3417, section 3.2).
    options.access.message_bytes_max = 484;
    let measure = "\"interfaces(in_octets,out_octets,in_packets,out_packets,in_errors,out_errors,\
                   in_discards,out_discards)\"";
    let mut twin = twin(&memory, options, measure);
    twin.run_until(START + Nanos::from_secs(5));
    let requests = finish(twin);
    let too_big: Vec<_> = requests[&0].iter().filter(|request| request.error_status == 1).collect();
    assert!(!too_big.is_empty(), "the agent never said tooBig");
    let learned = START + Nanos::from_secs(2);
    assert!(too_big.iter().all(|request| request.received < learned), "it is said again and again");
    let mut answered: BTreeMap<(i64, String, u32), u64> = BTreeMap::new();
    for request in &requests[&0] {
        let due = request.received.floor(INTERVAL).as_nanos();
        for (object, value) in request.objects.iter().zip(&request.answered) {
            let oid = object.oid.as_slice();
            let column = oid[oid.len() - 2];
            answered.insert((due, object.subject.clone(), column), *value);
        }
    }
    let interfaces = rows(&memory, "interfaces");
    let mut intervals: BTreeMap<WallTime, usize> = BTreeMap::new();
    for row in &interfaces {
        assert!(COLUMNS.iter().all(|column| row.contains_key(*column)), "{row:?}");
        for (column, arc) in [("in_octets", 6), ("out_octets", 10)] {
            let key = (time(row).as_nanos(), row["interface"].clone(), arc);
            assert_eq!(row[column], answered[&key].to_string(), "{key:?}");
        }
        *intervals.entry(time(row)).or_default() += 1;
    }
    let whole = intervals.values().filter(|&&ports| ports == 48).count();
    assert!(whole >= 45, "{whole} of 49 intervals have all 48 ports: {intervals:?}");
    let last = endings(&rows(&memory, "polls"), "switch01");
    assert_eq!(last.keys().filter(|state| state.as_str() != "ok").count(), 0, "{last:?}");
}

/// ifInErrors of eth0.
const IN_ERRORS: &str = "1.3.6.1.2.1.2.2.1.14.2";

#[test]
fn one_missing_object_is_a_null_and_an_event_and_not_a_failed_device() {
    let v1 = Credentials::V1 { community: b"public".to_vec() };
    let v2c = Credentials::V2c { community: b"public".to_vec() };
    for credentials in [v1, v2c] {
        let memory = Memory::default();
        let mut setup =
            Setup::new(FarmOptions::new(2, 0), "\"interface:eth0(in_octets,in_errors)\", \"load\"");
        let version = credentials.version();
        setup.credentials = credentials;
        setup.script = vec![format!("at 3.05s hide {IN_ERRORS} node001")];
        let mut twin = setup.twin(&memory);
        twin.run_until(START + Nanos::from_secs(6));
        let requests = finish(twin);
        let polls = rows(&memory, "polls");
        for name in ["node001", "node002"] {
            assert_eq!(endings(&polls, name), [("ok".to_owned(), 59)].into(), "{version:?} {name}");
        }
        let hidden = START + Nanos::from_millis(3_050);
        for row in rows(&memory, "interfaces") {
            let has = row.contains_key("in_errors");
            assert_eq!(has, row["device"] == "node002" || time(&row) < hidden, "{row:?}");
            assert!(row.contains_key("in_octets"), "{row:?}");
        }
        let events = rows(&memory, "events");
        let missing = events.iter().filter(|row| row["event"] == "missing_object");
        let missing: Vec<_> = missing.map(|row| (row["device"].as_str(), &row["object"])).collect();
        assert_eq!(missing.len(), 1, "{version:?} {missing:?}");
        assert_eq!(missing[0].0, "node001");
        assert!(missing[0].1.contains("in_errors") || missing[0].1 == IN_ERRORS, "{missing:?}");
        // noSuchName (2) is v1's word for it; what was learned is not asked again.
        let refused = requests[&0].iter().filter(|request| request.error_status == 2).count();
        assert_eq!(refused, usize::from(version == meikyo_snmp::Version::V1), "{version:?}");
    }
}
