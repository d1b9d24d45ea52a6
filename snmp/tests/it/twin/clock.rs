//! The collector's clock is set while it measures.

use super::*;

/// What the agents answered and what was recorded: the same readings, each once, whatever the clock
/// said.
#[test]
fn a_clock_that_is_set_loses_doubles_and_mixes_up_nothing() {
    for (steps_ms, words) in [
        ([3_600_030, -7_200_000], ["forward by 3600.0 s", "back by 7200.0 s"]),
        ([-4_940, 200], ["back by 4.9 s", "forward by 200.0 ms"]),
        ([-30, 40], ["back by 30.0 ms", "forward by 40.0 ms"]),
        ([-3_600_000, 10_000_020], ["back by 3600.0 s", "forward by 10000.0 s"]),
    ] {
        let memory = Memory::default();
        let options = FarmOptions::new(3, 0);
        let names: Vec<String> = (0..3).map(|ordinal| options.name(ordinal)).collect();
        let mut twin = twin(&memory, options, "\"interface:eth0(in_octets,out_octets)\"");
        // By the agents' clock: when the collector's was set, by how much it differs since, and how
        // often it was set back.
        let (mut offset_ns, mut steps_back, mut offsets) = (0, 0, vec![(START, 0, 0)]);
        let mut end = START + Nanos::from_millis(10_050);
        twin.run_until(end);
        for step_ms in steps_ms {
            let step_ns = step_ms * 1_000_000;
            let agents = WallTime::from_nanos(twin.now().as_nanos() - offset_ns);
            offset_ns += step_ns;
            steps_back += u64::from(step_ns < 0);
            offsets.push((agents, offset_ns, steps_back));
            twin.step_clock(step_ns);
            end = twin.now() + Nanos::from_secs(10);
            twin.run_until(end);
        }
        assert_eq!(twin.poller().counts().overruns, 0, "{steps_ms:?}");
        let requests = finish(twin);
        let mut expected = Vec::new();
        for (agent, request) in requests.iter().flat_map(|(a, all)| all.iter().map(move |r| (a, r)))
        {
            let offset = offsets.iter().rfind(|(since, ..)| *since <= request.received);
            let (_, offset_ns, steps_back) = *offset.expect("the first is the start");
            let received = WallTime::from_nanos(request.received.as_nanos() + offset_ns);
            let octets = |arc| {
                let column = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, arc];
                let mut objects = request.objects.iter();
                let position =
                    objects.position(|object| object.oid.as_slice().starts_with(&column));
                position.map(|position| request.answered[position].to_string())
            };
            if let (Some(input), Some(output)) = (octets(6), octets(10)) {
                let due = received.floor(INTERVAL) + Nanos::new(steps_back);
                expected.push((names[*agent as usize].clone(), due, input, output));
            }
        }
        let kept = rows(&memory, "interfaces");
        let mut kept: Vec<_> = kept
            .iter()
            .map(|row| {
                let (device, input, output) =
                    (row["device"].clone(), row["in_octets"].clone(), row["out_octets"].clone());
                (device, time(row), input, output)
            })
            .collect();
        for name in &names {
            let times = kept.iter().filter(|row| row.0 == *name).map(|row| row.1);
            assert!(times.is_sorted(), "{steps_ms:?}: rows of {name} are not in order");
        }
        kept.sort_unstable();
        expected.sort_unstable();
        assert!(expected.len() > 3 * 290, "{} readings", expected.len());
        assert_eq!(kept, expected, "{steps_ms:?}");
        let polls = rows(&memory, "polls");
        let keys: BTreeSet<_> =
            polls.iter().map(|row| (time(row), &row["device"], &row["pdu"])).collect();
        assert_eq!(keys.len(), polls.len(), "{steps_ms:?}: a (time, device, pdu) is there twice");
        let states = polls;
        for name in &names {
            assert!(endings(&states, name).keys().eq(["ok"]), "{:?}", endings(&states, name));
        }
        steps_are_told(&memory, steps_ms, words);
    }
}

/// What a person reads of each step, and its nanoseconds in `count`.
fn steps_are_told(memory: &Memory, steps_ms: [i64; 2], words: [&str; 2]) {
    let events = rows(memory, "events");
    let told: Vec<_> = events.iter().filter(|row| row["event"] == "clock_step").collect();
    // Rows are in the order of their times, which a clock that is set back turns around.
    let texts: BTreeSet<_> = told.iter().map(|row| row["text"].clone()).collect();
    let words = words.map(|words| format!("the real-time clock was set {words}"));
    assert_eq!(texts, BTreeSet::from(words));
    let told: Vec<_> = told.iter().map(|row| row["count"].clone()).collect();
    let steps = steps_ms.map(|step| (step * 1_000_000).unsigned_abs().to_string());
    assert_eq!(told.iter().collect::<BTreeSet<_>>(), steps.iter().collect());
}
