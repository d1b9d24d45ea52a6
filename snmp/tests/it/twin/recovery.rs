//! What went away comes back: dead agents, restarted ones, and others in their place.

use super::*;

#[test]
fn a_dead_device_is_back_within_a_second_of_answering_again() {
    let memory = Memory::default();
    let options = FarmOptions::new(41, 0);
    let names: Vec<String> = (0..41).map(|ordinal| options.name(ordinal)).collect();
    // Short silences and long ones, ended at every phase of the interval and of the back-off.
    let wake_ms = |position: u64| 2_050 + position * position * 7;
    let mut setup = Setup::new(options, "\"load\"");
    setup.script = vec!["at 2s die node[001-040]".into()];
    for (name, position) in names[..40].iter().zip(0..) {
        setup.script.push(format!("at {}ms wake {name}", wake_ms(position)));
    }
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(20));
    finish(twin);
    let polls = rows(&memory, "polls");
    for (name, position) in names[..40].iter().zip(0..) {
        let woken = START + Nanos::from_millis(wake_ms(position));
        let answers = polls.iter().filter(|row| row["device"] == *name && row["state"] == "ok");
        let back = answers
            .map(|row| time(row) + Nanos::from_micros(row["received_us"].parse().unwrap()))
            .find(|&received| received >= START + Nanos::from_secs(2))
            .expect("it answers again");
        let silence = back.since(woken);
        assert!(back > woken && silence <= Nanos::SECOND, "{name} was back after {silence}");
    }
    // Two polls were over when they died; the living one never noticed.
    assert_eq!(endings(&polls, "node041"), [("ok".to_owned(), 199)].into());
}

#[test]
fn a_restart_in_a_silence_is_told_although_the_agent_has_been_up_for_longer_since() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(2, 0), "\"load\"");
    // Both were up for 2 s and are silent for 14 s, of which one of them is up for 4 s.
    setup.script = vec![
        "at 2.05s restart all".into(),
        "at 4.05s die all".into(),
        "at 14.05s restart node001".into(),
        "at 18.05s wake all".into(),
    ];
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(25));
    finish(twin);
    let events = rows(&memory, "events");
    let told = |seconds: std::ops::Range<u64>| -> Vec<String> {
        let times = START + Nanos::from_secs(seconds.start)..START + Nanos::from_secs(seconds.end);
        let restarts = events.iter().filter(|row| row["event"] == "restart");
        restarts.filter(|row| times.contains(&time(row))).map(|row| row["device"].clone()).collect()
    };
    assert_eq!(told(0..14), ["node001", "node002"]);
    assert_eq!(told(14..25), ["node001"]);
}

#[test]
fn an_agent_that_restarts_or_is_replaced_goes_on_under_v3() {
    let memory = Memory::default();
    let options = FarmOptions::new(3, 0);
    let names: Vec<String> = (0..3).map(|ordinal| options.name(ordinal)).collect();
    let mut setup = Setup::new(options, "\"interface:eth0(in_octets,out_octets)\"");
    setup.credentials = Credentials::from_passwords(
        farm::USER,
        Some((AuthProtocol::Sha256, farm::AUTH_PASSWORD)),
        Some((PrivProtocol::Aes128, farm::PRIVACY_PASSWORD)),
    )
    .expect("the farm's own user");
    // One boot more (RFC 3414, 2.2.2), and another engine in the same place (RFC 3414, 1.5.1).
    setup.script = vec!["at 5.05s restart node001".into(), "at 8.05s replace node002".into()];
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(15));
    let requests = finish(twin);
    let polls = rows(&memory, "polls");
    for name in &names {
        assert_eq!(endings(&polls, name), [("ok".to_owned(), 149)].into(), "{name}");
    }
    let reports = |agent: u32, from: u64| {
        let from = START + Nanos::from_secs(from);
        let after = requests[&agent].iter().filter(|request| request.received >= from);
        after.filter(|request| request.flags & flag::REPORT != 0).count()
    };
    // The agents did refuse: once each, after which nothing has to be found out any more.
    assert_eq!((reports(0, 5), reports(1, 8), reports(2, 5)), (1, 1, 0));
    let restarts: Vec<_> = rows(&memory, "events")
        .into_iter()
        .filter(|row| row["event"] == "restart")
        .map(|row| row["device"].clone())
        .collect();
    assert_eq!(restarts, ["node001", "node002"]);
    let asked = requests.iter().flat_map(|(agent, requests)| {
        let name = &names[*agent as usize];
        requests.iter().map(move |request| {
            ((name.clone(), request.received.floor(INTERVAL).as_nanos()), request)
        })
    });
    let verified = verify_octets(&memory, &asked.collect());
    assert!(verified > 3 * 2 * 140, "{verified} values compared");
}
