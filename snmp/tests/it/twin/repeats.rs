//! What happens again and again, and counters that begin anew, in the table `events`.

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
