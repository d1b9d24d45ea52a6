//! What happens again and again, and counters that begin anew, in the table `events`.

use meikyo_snmp::ErrorStatus;

use super::refused::{IN_OCTETS, OUT_OCTETS, fail, with_content};
use super::*;

fn events_of(memory: &Memory, kinds: &[&str]) -> Vec<Row> {
    rows(memory, "events")
        .into_iter()
        .filter(|row| kinds.contains(&row["event"].as_str()))
        .collect()
}

/// Seconds since the start.
fn second(row: &Row) -> i64 {
    (row["time"].parse::<i64>().expect("a time") - START.as_nanos()) / 1_000_000_000
}

#[test]
fn counters_that_begin_anew_are_told_with_device_and_interface() {
    for cache in ["none", "3s"] {
        let memory = Memory::default();
        let mut options = FarmOptions::new(4, 1);
        options.cache = cache.parse().expect("a cache");
        let mut setup = Setup::new(options, "\"interfaces\", \"load\", \"memory\", \"cpu\"");
        setup.script = vec![
            "at 20s reset node001".into(),
            // Who restarts with the whole machine says so by its uptime.
            "at 30s reboot node002".into(),
            "at 35s restart node003".into(),
            "at 40s reset switch01".into(),
        ];
        let mut twin = setup.twin(&memory);
        twin.run_until(START + Nanos::from_secs(60));
        finish(twin);
        let interfaces: BTreeSet<String> = rows(&memory, "interfaces")
            .into_iter()
            .filter(|row| row["device"] == "node001")
            .map(|row| format!("interfaces.{}", row["interface"]))
            .collect();
        let told = events_of(&memory, &["reset"]);
        let of_host: Vec<_> = told.iter().filter(|row| row["device"] == "node001").collect();
        let objects: BTreeSet<String> = of_host.iter().map(|row| row["object"].clone()).collect();
        assert_eq!(objects, interfaces, "cache {cache}: {told:?}");
        assert_eq!(of_host.len(), interfaces.len(), "each once: {told:?}");
        assert!(of_host.iter().all(|row| (20..=21).contains(&second(row))), "{told:?}");
        assert!(
            of_host.iter().all(|row| row["text"].starts_with("ifCounterDiscontinuityTime changed")),
            "{told:?}"
        );
        // The many ports of a switch are a few events, with the number of them all.
        let of_switch: Vec<_> = told.iter().filter(|row| row["device"] == "switch01").collect();
        let ports = rows(&memory, "interfaces")
            .into_iter()
            .filter(|row| row["device"] == "switch01")
            .map(|row| row["interface"].clone())
            .collect::<BTreeSet<_>>();
        let counted: usize = of_switch
            .iter()
            .map(|row| match row.get("object") {
                Some(_) => 1,
                None => row["count"].parse::<usize>().expect("a count"),
            })
            .sum();
        assert_eq!(counted, ports.len(), "cache {cache}: {of_switch:?}");
        assert!(of_switch.len() < 8, "{of_switch:?}");
        assert_eq!(of_host.len() + of_switch.len(), told.len(), "cache {cache}: {told:?}");
        let restarts = events_of(&memory, &["restart"]);
        let names: Vec<_> = restarts.iter().map(|row| row["device"].as_str()).collect();
        assert_eq!(names, ["node002", "node003"], "cache {cache}");
    }
}

#[test]
fn a_counter_that_falls_without_a_sign_is_told_and_one_that_wraps_is_not() {
    // ifOutOctets of eth0, which wraps within the minute, and goes to zero when all is reset.
    let memory = Memory::default();
    let mut options = FarmOptions::new(2, 0);
    options.counters = farm::CounterStart::Before32BitWrap;
    let mut setup = Setup::new(options, "\"ifOutOctets.2\", \"ifInOctets.2\"");
    setup.script = vec!["at 50s reset node002".into()];
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(60));
    finish(twin);
    let values = rows(&memory, "objects");
    let wrapped = |name: &str| {
        let values = values.iter().filter(|row| row["device"] == name && second(row) < 50);
        let values: Vec<u64> = values
            .filter(|row| row["object"].starts_with("ifOutOctets"))
            .map(|row| row["counter"].parse().expect("a counter"))
            .collect();
        values.windows(2).filter(|pair| pair[1] < pair[0]).count()
    };
    assert_eq!((wrapped("node001"), wrapped("node002")), (1, 1), "both wrap once");
    let told = events_of(&memory, &["reset"]);
    assert!(told.iter().all(|row| row["device"] == "node002" && second(row) >= 50), "{told:?}");
    assert!(!told.is_empty() && told.len() <= 2, "{told:?}");
    assert!(told.iter().all(|row| row["text"].contains("fell from")), "{told:?}");
}

#[test]
fn a_device_that_comes_and_goes_is_told_a_few_times_and_then_as_a_number() {
    const CYCLES: usize = 75;
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(2, 0), "\"load\"");
    setup.snmp = "timeout = \"100ms\"";
    for cycle in 0..CYCLES {
        let second = 2 + cycle * 2;
        setup.script.push(format!("at {second}s die node001"));
        setup.script.push(format!("at {}s wake node001", second + 1));
    }
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(170));
    finish(twin);
    let told = events_of(&memory, &["failing", "answering"]);
    let sums = events_of(&memory, &["flapping"]);
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(sums.iter().chain(&told).all(|row| row["device"] == "node001"));
    // Each cycle began to fail once and answered again once: none is lost.
    let counted: usize =
        sums.iter().map(|row| row["count"].parse::<usize>().expect("a count")).sum();
    assert_eq!(told.len() + counted, 2 * CYCLES, "{sums:?}");
    // One a minute, and one when it ends.
    assert!((2..=4).contains(&sums.len()), "{sums:?}");
    let last = sums.last().expect("there are some");
    assert!(last["text"].ends_with("it answers now"), "{last:?}");
}

/// How often events of one kind say that something happened: those that are told by themselves once, the
/// others by their number.
fn happened(told: &[Row], is_sum: impl Fn(&Row) -> bool) -> (usize, usize, usize) {
    let (sums, single): (Vec<_>, Vec<_>) = told.iter().partition(|row| is_sum(row));
    let held: usize = sums.iter().map(|row| row["count"].parse::<usize>().expect("a count")).sum();
    (single.len(), sums.len(), single.len() + held)
}

#[test]
fn a_counter_that_is_set_again_and_again_is_told_a_few_times_and_then_as_a_number() {
    const FAR: u64 = 1_000_000_000_000_000;
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(1, 0), "\"interface:eth0\"");
    twin.tamper_with(|now, _, _, answer| {
        let since = now.since(START).get() / 1_000_000;
        // Up and down again, twice in three seconds.
        if since > 5_000 && since % 1_500 < 700 {
            let octets = answer.clone();
            let counter = octets_of(&octets).expect("it is in every answer but that of the walks");
            with_content(answer, IN_OCTETS, &(counter + FAR).to_be_bytes());
        }
    });
    twin.run_until(START + Nanos::from_secs(150));
    finish(twin);
    let values: Vec<u64> = rows(&memory, "interfaces")
        .iter()
        .map(|row| row["in_octets"].parse().expect("a counter"))
        .collect();
    let jumps = values.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) > FAR / 2).count();
    assert!(jumps > 180, "{jumps} jumps");
    let told = events_of(&memory, &["reset"]);
    let (single, sums, all) = happened(&told, |row| row["text"].contains("more times"));
    assert_eq!((single, all), (6, jumps), "{told:?}");
    // One a minute, and one when it ends.
    assert!((2..=4).contains(&sums), "{told:?}");
}

/// The octets of eth0 that an answer holds.
fn octets_of(answer: &[u8]) -> Option<u64> {
    let pdu = meikyo_snmp::message::decode_community(answer).expect("an answer").2;
    pdu.varbinds.iter().find_map(|(oid, value)| match value {
        meikyo_snmp::Value::Counter64(counter) if oid.as_slice().starts_with(IN_OCTETS) => {
            Some(*counter)
        }
        _ => None,
    })
}

#[test]
fn requests_and_objects_that_fail_now_and_then_are_told_a_few_times_and_then_as_a_number() {
    let memory = Memory::default();
    let mut twin =
        twin(&memory, FarmOptions::new(2, 0), "\"interface:eth0(in_octets,out_octets)\"");
    twin.tamper_with(|now, from, request, answer| {
        let since = now.since(START).get() / 1_000_000;
        let fails = since > 5_000 && since % 1_000 < 500;
        if !fails || octets_of(answer).is_none() {
            return;
        }
        if from.ip().to_string().ends_with(".1") {
            fail(answer, request, ErrorStatus::GenErr, 0);
        } else {
            with_content(answer, OUT_OCTETS, &[]);
        }
    });
    twin.run_until(START + Nanos::from_secs(140));
    finish(twin);
    let is_sum = |row: &Row| row["text"].contains("more times");
    let refused = events_of(&memory, &["refused_request"]);
    assert!(refused.iter().all(|row| row["device"] == "node001"), "{refused:?}");
    // From 5 s on, in each second once.
    let (single, sums, all) = happened(&refused, is_sum);
    assert_eq!((single, all), (6, 135), "{refused:?}");
    assert!((2..=4).contains(&sums), "{refused:?}");
    let objects = ["unreadable_object", "object_returned", "missing_object"];
    let objects = events_of(&memory, &objects);
    assert!(objects.iter().all(|row| row["device"] == "node002"), "{objects:?}");
    let (single, sums, all) = happened(&objects, is_sum);
    // Missing and back in each second; the last one is not back yet, or it is.
    assert!(single == 64 && (269..=270).contains(&all), "{single}, {all}: {objects:?}");
    assert!((2..=4).contains(&sums), "{objects:?}");
}

#[test]
fn agents_that_answer_in_turn_at_one_address_are_measured_on_and_told_as_a_number() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(1, 0), "\"load\"");
    let mut answers = 0_u32;
    twin.tamper_with(move |_, _, _, answer| {
        answers += 1;
        let octets = answer.clone();
        let (version, community, mut pdu) =
            meikyo_snmp::message::decode_community(&octets).expect("an answer");
        // One of the two has been up for a day longer.
        if let Some((_, meikyo_snmp::Value::TimeTicks(uptime))) = pdu.varbinds.first_mut()
            && answers.is_multiple_of(2)
        {
            *uptime += 8_640_000;
        }
        answer.clear();
        meikyo_snmp::message::encode_community(version, community, &pdu, answer);
    });
    twin.run_until(START + Nanos::from_secs(130));
    let walks = twin.walk_requests();
    let requests = finish(twin);
    let told = events_of(&memory, &["restart"]);
    let (single, sums, all) = happened(&told, |row| row["text"].contains("more times"));
    // Every other answer seems to come from one that has just restarted.
    assert!(single == 6 && (648..=650).contains(&all), "{single}, {all}: {told:?}");
    assert!((2..=4).contains(&sums), "{told:?}");
    assert_eq!(endings(&rows(&memory, "polls"), "node001"), [("ok".to_owned(), 1_299)].into());
    // Names are resolved after 2 s, and then ever more seldom.
    let polls = requests[&0].len() as u64;
    assert!(walks * 25 <= polls, "{walks} requests of walks to {polls} polls");
}
