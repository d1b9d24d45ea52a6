//! Interfaces that vanish, come back, are new, or move while they are measured.

use meikyo_snmp::{Oid, Value};

use super::*;

/// `ifNumber` (RFC 2863).
const IF_NUMBER: &str = "1.3.6.1.2.1.2.1";

/// Events of the kinds that tell of names: (ms since the start, kind, object, text).
fn told(memory: &Memory) -> Vec<(u64, String, Option<String>, String)> {
    let kinds = ["gone", "back", "appeared", "renumbered"];
    let events = rows(memory, "events").into_iter();
    let events = events.filter(|row| kinds.contains(&&*row["event"]));
    let mut told: Vec<_> = events
        .map(|row| {
            let since = time(&row).since(START).get() / 1_000_000;
            (since, row["event"].clone(), row.get("object").cloned(), row["text"].clone())
        })
        .collect();
    told.sort();
    told
}

/// Instants, in ms since the start, at which an interface of `node001` has a row with octets.
fn measured(memory: &Memory, name: &str) -> Vec<u64> {
    let rows = rows(memory, "interfaces").into_iter();
    let rows = rows.filter(|row| row["interface"] == name && row.contains_key("in_octets"));
    rows.map(|row| time(&row).since(START).get() / 1_000_000).collect()
}

/// Measures one host for so long; returns the farm's record and the requests of its walks.
fn run(
    memory: &Memory,
    measure: &'static str,
    script: &[&str],
    span: Nanos,
) -> (BTreeMap<u32, Vec<TruthRequest>>, u64) {
    let mut setup = Setup::new(FarmOptions::new(1, 0), measure);
    setup.script = script.iter().map(|&line| line.into()).collect();
    let mut twin = setup.twin(memory);
    twin.run_until(START + span);
    let walks = twin.walk_requests();
    (finish(twin), walks)
}

const OCTETS: &str = "\"interface:eth0(in_octets,out_octets)\", \"load\"";
const ALL: &str = "\"interfaces(in_octets,out_octets)\"";

#[test]
fn an_interface_that_vanishes_for_3_s_is_measured_again_in_the_interval_of_its_return() {
    // By name or with all others, from an agent that counts its interfaces or does not.
    let hide = format!("at 0s hide {IF_NUMBER} all");
    for measure in [OCTETS, ALL] {
        for hidden in [None, Some(&*hide)] {
            let memory = Memory::default();
            let script = ["at 4.05s detach eth0 all", "at 7.05s attach eth0 all"];
            let script: Vec<_> = hidden.into_iter().chain(script).collect();
            run(&memory, measure, &script, Nanos::from_secs(20));
            let times = measured(&memory, "eth0");
            let expected: Vec<u64> =
                (200..20_000).step_by(100).filter(|ms| !(4_100..7_100).contains(ms)).collect();
            assert_eq!(times, expected, "{measure} {hidden:?}");
            let eth0 = Some("eth0".to_owned());
            let expected = [
                (4_100, "gone".to_owned(), eth0.clone(), "interface `eth0` is gone".to_owned()),
                (7_100, "back".to_owned(), eth0, "interface `eth0` is back".to_owned()),
            ];
            let told: Vec<_> = told(&memory)
                .into_iter()
                .map(|(at, kind, object, text)| (at / 100 * 100, kind, object, text))
                .collect();
            assert_eq!(told, expected, "{measure} {hidden:?}");
            // Nothing else is missed meanwhile.
            let polls = rows(&memory, "polls");
            assert_eq!(endings(&polls, "node001"), [("ok".to_owned(), 199)].into());
        }
    }
}

#[test]
fn a_new_interface_is_measured_within_ten_seconds_however_the_agent_shows_it() {
    // `ifNumber` tells, or without it the place after the last interface.
    let hide = format!("at 0s hide {IF_NUMBER} all");
    for (measure, hidden) in [(ALL, None), (OCTETS, None), (ALL, Some(&*hide))] {
        let memory = Memory::default();
        let name = if measure == ALL { "eth1" } else { "eth0" };
        let (detach, attach) =
            (format!("at 0s detach {name} all"), format!("at 5.05s attach {name} all"));
        let script: Vec<&str> = hidden.into_iter().chain([&*detach, &*attach]).collect();
        run(&memory, measure, &script, Nanos::from_secs(30));
        let times = measured(&memory, name);
        let first = *times.first().expect("it is measured");
        assert!((5_100..15_050).contains(&first), "{measure} {hidden:?}: first at {first} ms");
        assert_eq!(times.len() as u64, (30_000 - first) / 100, "{measure} {hidden:?}");
        let told = told(&memory);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].1, "appeared");
        assert_eq!(told[0].3, format!("new interface `{name}`"));
    }
}

#[test]
fn interfaces_that_get_other_indexes_are_told_of_once_and_read_where_they_are() {
    let memory = Memory::default();
    run(&memory, ALL, &["at 5.05s renumber all"], Nanos::from_secs(20));
    let texts: Vec<_> = told(&memory).into_iter().map(|event| (event.1, event.3)).collect();
    let text = |text: &str| ("renumbered".to_owned(), text.to_owned());
    let expected = [
        text("interface `eth0` is renumbered: at ifIndex 3, was 2"),
        text("interface `eth1` is renumbered: at ifIndex 2, was 3"),
    ];
    assert_eq!(texts, expected);
    // The interval in which it is noticed is lost, and no other.
    let expected: Vec<u64> = (200..20_000).step_by(100).filter(|&ms| ms != 5_100).collect();
    for name in ["eth0", "eth1"] {
        assert_eq!(measured(&memory, name), expected, "{name}");
    }
}

/// Instants, in ms since the start, at which the disk at a path has a row with used octets.
fn used(memory: &Memory, path: &str) -> Vec<u64> {
    let rows = rows(memory, "storage").into_iter();
    let rows = rows.filter(|row| row["path"] == path && row.contains_key("used_bytes"));
    rows.map(|row| time(&row).since(START).get() / 1_000_000).collect()
}

#[test]
fn a_disk_that_vanishes_comes_back_or_is_new_is_measured_and_told_whichever_table_has_it() {
    // dskTable of the UCD-SNMP-MIB, or without it hrStorageTable.
    for hidden in [None, Some("at 0s hide 1.3.6.1.4.1.2021.9 all")] {
        let memory = Memory::default();
        let script = [
            "at 0s detach /scratch all",
            "at 4.05s detach / all",
            "at 7.05s attach / all",
            "at 10.05s attach /scratch all",
        ];
        let script: Vec<_> = hidden.into_iter().chain(script).collect();
        run(&memory, "\"disk:/\", \"disk:/scratch\", \"load\"", &script, Nanos::from_secs(30));
        let expected: Vec<u64> =
            (200..30_000).step_by(100).filter(|ms| !(4_100..7_100).contains(ms)).collect();
        assert_eq!(used(&memory, "/"), expected, "{hidden:?}");
        let new = used(&memory, "/scratch");
        let first = *new.first().expect("it is measured");
        assert!((10_100..20_050).contains(&first), "{hidden:?}: first at {first} ms");
        assert_eq!(new.len() as u64, (30_000 - first) / 100, "{hidden:?}");
        let told: Vec<_> = told(&memory).into_iter().map(|event| (event.1, event.3)).collect();
        let expected = [
            ("gone", "disk `/` is gone"),
            ("back", "disk `/` is back"),
            ("appeared", "new disk `/scratch`"),
        ];
        let expected = expected.map(|(kind, text)| (kind.to_owned(), text.to_owned()));
        assert_eq!(told, expected, "{hidden:?}");
        let polls = rows(&memory, "polls");
        assert_eq!(endings(&polls, "node001"), [("ok".to_owned(), 299)].into(), "{hidden:?}");
    }
}

#[test]
fn a_line_card_that_vanishes_is_one_event_and_its_return_another() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(0, 1), ALL);
    for port in 5..=48 {
        setup.script.push(format!("at 4.05s detach port{port} all"));
        setup.script.push(format!("at 60.05s attach port{port} all"));
    }
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(90));
    finish(twin);
    let told = told(&memory);
    let of = |kind: &str| -> Vec<_> { told.iter().filter(|event| event.1 == kind).collect() };
    assert_eq!(of("gone").len(), 1, "{told:?}");
    let listed: Vec<_> = (10..22).map(|port| format!("`port{port}`")).collect();
    let text = format!("44 interfaces are gone: {} and 32 more", listed.join(", "));
    assert_eq!(of("gone")[0].3, text);
    assert!(told.len() <= 6, "{told:?}");
    for port in 5..=48 {
        let times = measured(&memory, &format!("port{port}"));
        let back = *times.iter().find(|&&ms| ms > 4_000).expect("it is back");
        assert!((60_050..70_050).contains(&back), "port{port} is back at {back} ms");
    }
}

#[test]
fn looking_for_names_takes_at_most_a_thousandth_of_the_polls() {
    let hour = Nanos::from_secs(3_600);
    // Nothing happens: only time asks for walks.
    let memory = Memory::default();
    let (requests, walks) = run(&memory, ALL, &[], hour);
    let polls = requests[&0].len() as u64;
    assert!(polls >= 35_990, "{polls} polls");
    let first = run(&Memory::default(), ALL, &[], Nanos::SECOND).1;
    assert!(walks > first, "{walks} requests of walks: there was no periodic one");
    let later = walks - first;
    assert!(later * 1_000 <= polls, "{later} requests of walks to {polls} polls");
    assert_eq!(told(&memory), []);
}

#[test]
fn an_interface_that_flaps_for_ever_costs_little_more_and_writes_few_events() {
    let memory = Memory::default();
    let mut script = Vec::new();
    for turn in 0..225_u64 {
        script.push(format!("at {}ms detach eth0 all", turn * 8_000 + 4_050));
        script.push(format!("at {}ms attach eth0 all", turn * 8_000 + 8_050));
    }
    let lines: Vec<&str> = script.iter().map(String::as_str).collect();
    let (requests, walks) = run(&memory, ALL, &lines, Nanos::from_secs(1_800));
    let polls = requests[&0].len() as u64;
    // Ten walks at the beginning, until the device is left alone for a whole period each time.
    assert!(walks * 1_000 <= polls * 4, "{walks} requests of walks to {polls} polls");
    let told = told(&memory);
    assert!((4..=80).contains(&told.len()), "{} events", told.len());
    // It is measured in every interval in which it is there, but for those right after a return.
    let times = measured(&memory, "eth0").len() as u64;
    assert!(times >= polls / 2 * 99 / 100, "{times} rows in {polls} polls");
}

#[test]
fn that_interfaces_share_a_name_is_told_once_however_often_names_are_resolved() {
    let memory = Memory::default();
    let setup = Setup::new(FarmOptions::new(1, 0), ALL);
    let device = setup.cluster().devices.remove(0);
    let mut twin = setup.twin(&memory);
    // ifName and ifHCInOctets of ports that are all called alike.
    let plan = |ports: u32| {
        let of_port = |port| {
            let name = Value::OctetString(b"Port".to_vec());
            let column = |arc| Oid::from_slice(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, arc, port]);
            [(column(1), name), (column(6), Value::Counter64(1))]
        };
        let mut walked: Vec<_> = (1..=ports).flat_map(of_port).collect();
        walked.sort_by(|a, b| a.0.cmp(&b.0));
        meikyo_snmp::resolve::plan(&device, &walked).0
    };
    // All at one instant, since the farm's own names would be resolved again in between.
    let now = START + Nanos::from_millis(5_050);
    twin.run_until(now);
    for ports in [2, 2, 3, 3, 2] {
        twin.poller().set_plan(now, 0, plan(ports));
    }
    twin.run_until(START + Nanos::from_secs(6));
    finish(twin);
    let events = rows(&memory, "events").into_iter();
    let events = events.filter(|row| row["event"] == "shared_name");
    let told: Vec<_> = events.map(|row| row["text"].clone()).collect();
    let text = |ports, names| {
        format!("{ports} interfaces are called `Port`: they are recorded by ifIndex, as {names}")
    };
    let (two, three) = ("`Port#1`, `Port#2`", "`Port#1`, `Port#2`, `Port#3`");
    assert_eq!(told, [text(2, two), text(3, three), text(2, two)]);
}
