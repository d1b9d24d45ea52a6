//! What loss, slowness and foreign datagrams cost: their own interval, and never an agent its peace.

use super::*;

/// The share of readings that are kept at the default settings, in thousandths.
fn kept_per_mille(fault: &str, seed: u64) -> usize {
    let memory = Memory::default();
    let mut options = FarmOptions::new(20, 0);
    options.seed = seed;
    options.faults.set(fault).expect("a fault of the farm");
    let mut twin = twin(&memory, options, "\"load\"");
    twin.run_until(START + Nanos::from_secs(60));
    finish(twin);
    // One row a device and interval: `polls` refuses two.
    let polls = polls(&memory);
    assert_eq!(polls.len(), 20 * 599);
    let kept = polls.values().filter(|(state, _)| state == "ok" || state == "late").count();
    kept * 1_000 / polls.len()
}

#[test]
#[expect(clippy::print_stdout, reason = "the shares are shown when the test fails")]
fn loss_at_the_default_settings_costs_less_than_what_is_lost() {
    for seed in 1..=8 {
        // One exchange in twenty fails, one of two tries in four hundred.
        let kept = kept_per_mille("loss=5%", seed);
        println!("seed {seed}, loss=5%: {kept} of 1,000 kept");
        assert!(kept >= 990, "seed {seed}: {kept} of 1,000 kept");
        // 0.95^2 of the exchanges succeed; of two tries 99 %.
        let kept = kept_per_mille("loss_each_way=5%", seed);
        println!("seed {seed}, loss_each_way=5%: {kept} of 1,000 kept");
        assert!(kept >= 975, "seed {seed}: {kept} of 1,000 kept");
    }
}

/// Most requests of one agent that were open at once, from an instant on.
fn open_at_once(requests: &[TruthRequest], from: WallTime) -> usize {
    let polls: Vec<_> = requests.iter().filter(|request| request.received >= from).collect();
    let open_at =
        |at: WallTime| polls.iter().filter(|it| it.received <= at && at < it.sent).count();
    polls.iter().map(|request| open_at(request.received)).max().unwrap_or(0)
}

#[test]
fn an_agent_that_is_slower_than_its_interval_has_one_request_at_a_time() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(2, 0), "\"load\"");
    // One is slow from the beginning, the other becomes slow.
    setup.script =
        vec!["at 0s set delay=300ms node001".into(), "at 5.05s set delay=300ms node002".into()];
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(25));
    let requests = finish(twin);
    assert_eq!(open_at_once(&requests[&0], START), 1);
    let found_out = open_at_once(&requests[&1], START);
    assert!(found_out <= 4, "{found_out} while it is found out");
    assert_eq!(open_at_once(&requests[&1], START + Nanos::from_secs(8)), 1);
    let polls = rows(&memory, "polls");
    for name in ["node001", "node002"] {
        let slow = polls.iter().filter(|row| row["device"] == name);
        let settled = START + Nanos::from_secs(8)..START + Nanos::from_secs(24);
        let slow: Vec<_> = slow.filter(|row| settled.contains(&time(row))).cloned().collect();
        let endings = endings(&slow, name);
        // Asked at one interval in four, the others say why not.
        assert!((40..=41).contains(&endings["late"]), "{name} {endings:?}");
        assert!((119..=120).contains(&endings["skipped in_flight"]), "{name} {endings:?}");
        assert_eq!(endings.len(), 2, "{name} {endings:?}");
    }
}

#[test]
fn second_tries_are_at_most_a_fifth_and_within_the_rate_cap() {
    for (snmp, most) in [("", 599 * 12 / 10 + 12), ("rate_max = 10", 601)] {
        let memory = Memory::default();
        let mut setup = Setup::new(FarmOptions::new(4, 0), "\"load\"");
        setup.snmp = snmp;
        setup.script = vec!["at 1s set loss=30% all".into()];
        let mut twin = setup.twin(&memory);
        twin.run_until(START + Nanos::from_secs(60));
        let requests = finish(twin);
        for (agent, requests) in &requests {
            assert!(requests.len() <= most, "agent {agent} was asked {} times", requests.len());
        }
    }
}

#[test]
fn an_agent_that_pauses_answers_late_and_is_believed() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(1, 0), "\"load\"");
    // The answer to the request of 5.0 s and to its second try take 130 ms and 105 ms.
    setup.script = vec![
        "at 4.95s set delay=130ms all".into(),
        "at 5.01s set delay=105ms all".into(),
        "at 5.05s set delay=0ms all".into(),
    ];
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(10));
    let requests = finish(twin);
    let polls = polls(&memory);
    let due = START + Nanos::from_secs(5);
    let (state, received) = &polls[&("node001".to_owned(), due.as_nanos())];
    let ending = endings_due(&requests[&0], Nanos::SECOND)[&due];
    assert_eq!(state, ending.state.word());
    assert_eq!(
        received.map(i64::cast_unsigned),
        ending.received.map(|at| at.since(due).as_micros())
    );
    let others = polls.iter().filter(|((_, at), _)| *at != due.as_nanos());
    assert!(others.clone().all(|(_, (state, _))| state == "ok"), "only one interval suffers");
}

#[test]
fn foreign_datagrams_are_counted_and_the_wait_goes_on() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(1, 0), "\"load\"");
    setup.script = vec!["at 0s set delay=5ms all".into()];
    let mut twin = setup.twin(&memory);
    let nonsense: [&[u8]; 4] = [b"", b"\x30", b"not SNMP at all", &[0xff; 64]];
    for tick in 1..=200_u32 {
        twin.run_until(START + Nanos::from_millis(50) * u64::from(tick) + Nanos::from_millis(3));
        let first = twin.farm().options().first;
        twin.inject(std::net::SocketAddr::new(first.into(), 16_100), nonsense[tick as usize % 4]);
    }
    twin.run_until(START + Nanos::from_secs(11));
    let counts = twin.poller().counts();
    assert!(counts.unreadable >= 190, "{counts:?}");
    finish(twin);
    let endings = endings(&rows(&memory, "polls"), "node001");
    assert_eq!(endings, [("ok".to_owned(), 109)].into());
}
