//! Alerts under virtual time: what the simulated agents did is known, so is what must be found.

use std::path::Path;

use meikyo_cluster::Cluster;
use meikyo_recording::alerts::{self, Alert};
use meikyo_snmp::Credentials;
use meikyo_snmp::farm::truth::{self, TruthRecord, TruthRequest};
use meikyo_snmp::farm::{Event, Farm, FarmOptions};
use meikyo_snmp::poll::{
    AlertAction, AlertAnswer, AlertAnswerError, DeviceSpec, Pace, PollOptions, Poller,
};
use meikyo_snmp::twin::Twin;
use meikyo_units::{Nanos, WallTime};

use crate::memory::Memory;

const START: WallTime = WallTime::from_nanos(1_767_225_600_000_000_000);
const INTERVAL: Nanos = Nanos::from_millis(100);

/// The least request id of a poll; walks begin at 1.
const POLL_ID_MIN: i32 = 0x0080_0000;

/// A cluster of the farm's hosts with rules.
fn cluster(options: &FarmOptions, measure: &str, rules: &str) -> Cluster {
    let mut text = format!(
        "name = \"farm\"\nmeasure = [{measure}]\n[snmp]\nversion = \"2c\"\n\
         community = \"env:MEIKYO_TEST_COMMUNITY\"\nport = 16100\n"
    );
    for ordinal in 0..options.agents() {
        let (name, address) = (options.name(ordinal), options.address(ordinal));
        text += &format!("[[hosts]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    }
    text += rules;
    meikyo_cluster::parse(&text, Path::new("cluster.toml"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A measurement under rules, and its rows.
struct Run {
    memory: Memory,
    twin: Twin<Memory>,
    options: FarmOptions,
}

impl Run {
    fn new(options: FarmOptions, measure: &str, rules: &str) -> Self {
        let memory = Memory::default();
        let cluster = cluster(&options, measure, rules);
        let poll = PollOptions { pace: Pace::AtOnce, in_flight_max: usize::MAX, real_time: false };
        let mut poller = Poller::new(START, poll);
        poller.set_alerts(cluster.alerts);
        let community = Credentials::V2c { community: b"public".to_vec() };
        let devices =
            cluster.devices.into_iter().map(|device| (device, community.clone())).collect();
        let mut farm = Farm::new(options.clone(), START);
        farm.record_truth();
        Self { twin: Twin::new(START, poller, memory.clone(), farm, devices), memory, options }
    }

    /// Lets things happen to the agents.
    fn script(&mut self, lines: &[&str]) {
        let events: Vec<Event> = lines
            .iter()
            .map(|line| Event::parse(line, &self.options).expect("a line of the script"))
            .collect();
        self.twin.farm().schedule(events);
    }

    fn until(&mut self, seconds: u64) {
        self.twin.run_until(START + Nanos::from_secs(seconds));
    }

    /// Ends the measurement: its alerts, and what the agents held at every poll.
    fn end(mut self) -> (Vec<Alert>, Vec<TruthRequest>) {
        let octets = std::mem::take(self.twin.farm().truth().expect("the truth is recorded"));
        self.twin.finish();
        let alerts = alerts::fold(alerts::events(&self.memory.rows("events")));
        let mut requests = Vec::new();
        for record in truth::read_from(octets.as_slice()).expect("the farm writes its own format") {
            if let TruthRecord::Request(request) = record.expect("the farm writes whole records")
                && request.request_id >= POLL_ID_MIN
            {
                requests.push(request);
            }
        }
        (alerts, requests)
    }
}

/// Tenths of a second since the start.
fn tenths(at: WallTime) -> u64 {
    at.since(START).get() / INTERVAL.get()
}

fn spans(alerts: &[Alert]) -> Vec<(u64, Option<u64>)> {
    let cleared = |alert: &Alert| alert.cleared.as_ref().map(|said| tenths(said.at));
    alerts.iter().map(|alert| (tenths(alert.raised.at), cleared(alert))).collect()
}

/// `out_octets` of eth0 as the agent held it, by tenth of a second.
fn held(requests: &[TruthRequest]) -> Vec<(u64, u64)> {
    let of = |request: &TruthRequest| {
        let position = request.objects.iter().position(|object| {
            object.oid.as_slice().starts_with(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10])
                && object.subject == "eth0"
        })?;
        Some((tenths(request.received), request.answered[position]))
    };
    requests.iter().filter_map(of).collect()
}

/// Rates in bit/s worked out from what the agent held, in floating point.
#[expect(clippy::cast_precision_loss, reason = "an oracle: a few octets of 10^12 do not matter")]
fn rates(held: &[(u64, u64)]) -> Vec<(u64, f64)> {
    let of_pair = |pair: &[(u64, u64)]| {
        let seconds = (pair[1].0 - pair[0].0) as f64 / 10.0;
        (pair[1].0, (pair[1].1 - pair[0].1) as f64 * 8.0 / seconds)
    };
    held.windows(2).map(of_pair).collect()
}

/// When an alert must be raised and cleared: a reading of the rule that knows no state machine.
/// `beyond` and `back` say of a rate what it is; every one of `needed` + 1 in a row has to agree.
fn expected(
    rates: &[(u64, f64)],
    needed: usize,
    beyond: impl Fn(f64) -> bool,
    back: impl Fn(f64) -> bool,
) -> Vec<(u64, Option<u64>)> {
    let first = |from: usize, holds: &dyn Fn(f64) -> bool| {
        (from + needed..rates.len())
            .find(|&last| rates[last - needed..=last].iter().all(|(_, rate)| holds(*rate)))
    };
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(raised) = first(from, &beyond) {
        let cleared = first(raised + 1, &back);
        found.push((rates[raised].0, cleared.map(|at| rates[at].0)));
        let Some(cleared) = cleared else { break };
        from = cleared + 1;
    }
    found
}

#[test]
fn a_busy_uplink_is_raised_and_cleared_at_the_readings_that_the_truth_says() {
    for (lasting, needed) in [("0s", 0), ("200ms", 2), ("1s", 10)] {
        let rules = format!(
            "[[alerts]]\nname = \"busy\"\nvalue = \"interface:eth0(out_octets)\"\n\
             above = \"12Mbit/s\"\nclear = \"6Mbit/s\"\nfor = \"{lasting}\"\n"
        );
        let mut run = Run::new(FarmOptions::new(1, 0), "\"interfaces\"", &rules);
        run.until(120);
        let (alerts, requests) = run.end();
        // The first difference shows no rate: its begin may be older than the first poll.
        let rates = &rates(&held(&requests))[1..];
        assert!(rates.len() > 1_150, "{}", rates.len());
        let expected = expected(rates, needed, |rate| rate > 12e6, |rate| rate <= 6e6);
        let mut spans = spans(&alerts);
        if let Some(last) =
            spans.last_mut().filter(|_| expected.last().is_some_and(|span| span.1.is_none()))
        {
            // Cleared because the measurement has ended.
            last.1 = None;
        }
        assert_eq!(spans, expected, "for {lasting}");
        assert!(needed > 2 || expected.len() > 5, "{expected:?}");
        for alert in &alerts {
            assert_eq!(alert.object.as_deref(), Some("interfaces.eth0.out_octets"));
            assert!(alert.raised.text.starts_with("busy: interfaces.eth0.out_octets is "));
            assert!(
                alert.raised.text.ends_with(" Mbit/s, above 12Mbit/s"),
                "{}",
                alert.raised.text
            );
        }
    }
}

#[test]
fn hysteresis_keeps_an_alert_from_flapping() {
    // The rates lie on both sides of 6 Mbit/s at almost every reading, and never below 100 kbit/s.
    let rule = |name: &str, clear: &str| {
        format!(
            "[[alerts]]\nname = \"{name}\"\nvalue = \"interface:eth0(out_octets)\"\n\
             above = \"6Mbit/s\"\nclear = \"{clear}\"\n"
        )
    };
    let rules = rule("near", "6Mbit/s") + &rule("far", "100kbit/s");
    let mut run = Run::new(FarmOptions::new(1, 0), "\"interface:eth0\"", &rules);
    run.until(60);
    let (alerts, _) = run.end();
    let of = |name: &str| alerts.iter().filter(|alert| alert.rule == name).count();
    assert!(of("near") > 100, "{} times", of("near"));
    assert_eq!(of("far"), 1);
}

#[test]
fn a_state_is_cleared_at_the_level_itself_and_not_a_tenth_behind_it() {
    // snmpEngineBoots (RFC 3411) is more than 1, and 1 again when another agent is put in its place.
    let rules = "[[alerts]]\nname = \"old\"\nvalue = \"1.3.6.1.6.3.10.2.1.2.0\"\nabove = 1\n";
    let mut run = Run::new(FarmOptions::new(1, 0), "\"1.3.6.1.6.3.10.2.1.2.0\"", rules);
    run.script(&["at 10s replace node001"]);
    run.until(30);
    let (alerts, _) = run.end();
    let [alert] = &alerts[..] else { panic!("{alerts:?}") };
    let cleared = alert.cleared.as_ref().expect("it is cleared when it is 1");
    assert!((100..150).contains(&tenths(cleared.at)), "{alert:?}");
    assert!(cleared.text.ends_with(" is 1 again, at most 1"), "{alert:?}");
}

#[test]
fn a_cache_of_three_seconds_raises_nothing_that_the_traffic_does_not() {
    // The mean over 3 s of this traffic is 13 Mbit/s and varies by a fifth.
    let rules = "[[alerts]]\nname = \"peak\"\nvalue = \"interface:*(in_octets,out_octets)\"\n\
                 above = \"30Mbit/s\"\n\
                 [[alerts]]\nname = \"idle\"\nvalue = \"interface:*(in_octets,out_octets)\"\n\
                 below = \"5Mbit/s\"\n\
                 [[alerts]]\nname = \"normal\"\nvalue = \"interface:eth0(out_octets)\"\n\
                 above = \"5Mbit/s\"\n";
    let mut options = FarmOptions::new(3, 0);
    options.cache = "3s".parse().expect("a span");
    let mut run = Run::new(options, "\"interfaces\"", rules);
    run.until(120);
    let (alerts, _) = run.end();
    let names: Vec<_> = alerts.iter().map(|alert| alert.rule.as_str()).collect();
    assert_eq!(names, ["normal"; 3]);
    // Raised at the second refresh that was seen, which is within 9 s.
    assert!(alerts.iter().all(|alert| tenths(alert.raised.at) < 90));
}

#[test]
fn resets_restarts_losses_and_late_answers_make_no_peak() {
    // Single steps of the traffic reach 4 MB in 100 ms: 320 Mbit/s.
    let rules = "[[alerts]]\nname = \"peak\"\nvalue = \"interface:*(in_octets,out_octets)\"\n\
                 above = \"400Mbit/s\"\n";
    for cache in ["none", "3s"] {
        let mut options = FarmOptions::new(8, 0);
        options.cache = cache.parse().expect("a cache");
        for fault in ["loss=5%", "late=5%", "reorder=5%"] {
            options.faults.set(fault).expect("a fault of the farm");
        }
        let mut run = Run::new(options, "\"interfaces\"", rules);
        run.script(&[
            "at 10s reset node001",
            "at 12s restart node002",
            "at 14s reboot node003",
            "at 16s renumber node004",
            "at 18s restart renumbered node005",
            "at 20s die node006",
            "at 41.3s wake node006",
            "at 30s reset all",
        ]);
        run.until(90);
        let (alerts, _) = run.end();
        assert_eq!(alerts, [], "cache {cache}");
    }
}

#[test]
fn a_counter_of_32_bits_that_wraps_raises_nothing() {
    let rules = "[[alerts]]\nname = \"peak\"\nvalue = \"ifOutOctets.*\"\nabove = 50_000_000\n\
                 [[alerts]]\nname = \"alive\"\nvalue = \"ifOutOctets.2\"\nabove = 1\n";
    let mut options = FarmOptions::new(4, 0);
    options.counters = meikyo_snmp::farm::CounterStart::Before32BitWrap;
    let mut run = Run::new(options, "\"ifOutOctets.2\", \"ifOutOctets.3\"", rules);
    run.until(60);
    let (alerts, _) = run.end();
    let names: Vec<_> = alerts.iter().map(|alert| alert.rule.as_str()).collect();
    assert_eq!(names, ["alive"; 4]);
}

#[test]
fn a_silent_device_is_raised_after_the_span_and_cleared_by_its_first_answer() {
    let rules = "[[alerts]]\nname = \"silent\"\nsilent = \"5s\"\n";
    let options = FarmOptions::new(3, 0);
    let mut run = Run::new(options.clone(), "\"load\"", rules);
    run.script(&["at 10s die node002", "at 31.7s wake node002", "at 50s die node003"]);
    run.until(20);
    // It stands on when rules change, and is cleared all the same.
    let load = "[[alerts]]\nname = \"load\"\nvalue = \"load(load_1min)\"\nabove = 1000\n";
    let rules = cluster(&options, "\"load\"", &(load.to_owned() + rules)).alerts;
    run.twin.poller().set_alerts(rules);
    run.until(52);
    let (alerts, _) = run.end();
    // The one that was silent for 2 s is not told.
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let alert = &alerts[0];
    assert_eq!((alert.device.as_str(), alert.object.as_deref()), ("node002", None));
    // Looked at once a second; backed off, it is asked every 0.5 s.
    assert_eq!(alert.raised.text, "silent: no answer for more than 5s");
    assert!((150..=160).contains(&tenths(alert.raised.at)), "{alert:?}");
    let cleared = alert.cleared.as_ref().expect("it answers again");
    assert!((317..=325).contains(&tenths(cleared.at)), "{cleared:?}");
    assert!(cleared.text.starts_with("silent: it answers again after 2"), "{cleared:?}");
}

#[test]
fn silence_is_told_in_time_though_the_clock_was_set_back() {
    let rules = "[[alerts]]\nname = \"silent\"\nsilent = \"5s\"\n";
    let mut run = Run::new(FarmOptions::new(2, 0), "\"load\"", rules);
    run.script(&["at 10s die node002"]);
    run.until(8);
    let hour = Nanos::from_secs(3_600);
    run.twin.step_clock(-hour.get().cast_signed());
    let end = run.twin.now() + Nanos::from_secs(10);
    run.twin.run_until(end);
    let (alerts, _) = run.end();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!((150..=160).contains(&tenths(alerts[0].raised.at + hour)), "{alerts:?}");
}

#[test]
fn an_interval_is_sent_before_it_is_looked_who_is_silent() {
    let rules = "[[alerts]]\nname = \"silent\"\nsilent = \"5s\"\n";
    let cluster = cluster(&FarmOptions::new(2, 0), "\"load\"", rules);
    // With no request in flight, only the look is left to wake up for.
    let poll = PollOptions { pace: Pace::AtOnce, in_flight_max: 0, real_time: false };
    let mut poller = Poller::new(START, poll);
    let community = Credentials::V2c { community: b"public".to_vec() };
    for device in &cluster.devices {
        poller.add_device(START, DeviceSpec::new(device, community.clone()));
    }
    poller.set_alerts(cluster.alerts);
    poller.handle_time(START);
    for second in 1..10 {
        for tenth in 1..10 {
            poller.handle_time(START + Nanos::SECOND * (second - 1) + INTERVAL * tenth);
        }
        let due = START + Nanos::SECOND * second;
        assert_eq!(poller.next_wakeup(), Some(due));
        poller.handle_time(due);
        assert!(poller.next_wakeup() <= Some(due), "it is looked at {due}, after the requests");
        poller.handle_time(due);
        assert!(poller.next_wakeup() > Some(due), "it was looked at {due}");
    }
    poller.stop();
    assert_eq!(poller.next_wakeup(), None, "neither an interval nor a look comes after the end");
}

#[test]
fn a_device_that_never_answered_is_silent_too_and_the_end_clears_it() {
    let mut options = FarmOptions::new(1, 0);
    options.faults.dead = true;
    let rules = "[[alerts]]\nname = \"silent\"\nsilent = \"2s\"\ndevices = \"node*\"\n";
    let mut run = Run::new(options, "\"load\"", rules);
    run.until(10);
    let (alerts, _) = run.end();
    assert_eq!(spans(&alerts), [(30, Some(100))]);
    assert_eq!(
        alerts[0].cleared.as_ref().map(|said| said.text.as_str()),
        Some("silent: the measurement has ended")
    );
}

#[test]
fn a_cache_that_is_never_filled_again_is_frozen_until_it_moves() {
    let rules = "[[alerts]]\nname = \"frozen\"\nfrozen = true\nvalue = \"interfaces\"\n";
    let mut run = Run::new(FarmOptions::new(2, 0), "\"interfaces\", \"load\"", rules);
    run.script(&["at 20s cache 1h node001", "at 80s cache none node001"]);
    run.until(120);
    let (alerts, _) = run.end();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let alert = &alerts[0];
    assert_eq!((alert.device.as_str(), alert.object.as_deref()), ("node001", Some("interfaces")));
    // The least silence that counts is 10 s, and it is looked at once a second.
    assert!((300..=325).contains(&tenths(alert.raised.at)), "{alert:?}");
    let cleared = alert.cleared.as_ref().expect("it moves again");
    assert!((800..=811).contains(&tenths(cleared.at)), "{cleared:?}");
}

#[test]
fn rules_that_change_keep_what_still_holds_and_clear_the_rest() {
    let busy = |above: &str| {
        format!(
            "[[alerts]]\nname = \"busy\"\nvalue = \"interface:eth0(out_octets)\"\n\
             above = \"{above}\"\nclear = \"1kbit/s\"\n"
        )
    };
    let load = "[[alerts]]\nname = \"load\"\nvalue = \"load(load_1min)\"\nabove = 0\nclear = 0\n";
    let options = FarmOptions::new(100, 0);
    let measure = "\"interface:eth0\", \"load\"";
    let mut run = Run::new(options.clone(), measure, &(busy("1Mbit/s") + load));
    run.until(10);
    let rules = |rules: &str| cluster(&options, measure, rules).alerts;
    // Another rule before it: what stands is found by name.
    let silent = "[[alerts]]\nname = \"silent\"\nsilent = \"5s\"\n";
    run.twin.poller().set_alerts(rules(&(silent.to_owned() + load + &busy("2Mbit/s"))));
    run.until(20);
    run.twin.poller().set_alerts(rules(load));
    run.until(25);
    run.twin.poller().remove_device(START + Nanos::from_secs(25), 7);
    run.until(30);
    let (alerts, _) = run.end();
    let why = |rule: &str, text: &str| {
        let is_so = |alert: &&Alert| {
            let cleared = alert.cleared.as_ref().map(|said| said.text.as_str());
            alert.rule == rule && cleared == Some(&format!("{rule}: {text}"))
        };
        alerts.iter().filter(is_so).count()
    };
    assert_eq!(why("busy", "the rule has changed"), 100);
    assert_eq!(why("busy", "the rule was removed"), 100);
    assert_eq!(why("load", "the device was removed"), 1);
    assert_eq!(why("load", "the measurement has ended"), 99);
    assert_eq!(alerts.len(), 300);
}

#[test]
fn people_can_answer_what_is_raised_and_nothing_else() {
    let rules = "[[alerts]]\nname = \"busy\"\nvalue = \"interface:eth0(out_octets)\"\n\
                 above = \"1Mbit/s\"\nclear = \"1kbit/s\"\n";
    let mut run = Run::new(FarmOptions::new(2, 0), "\"interface:eth0\"", rules);
    run.until(5);
    let now = START + Nanos::from_secs(5);
    let answer = |rule: &str, device: &str, object: &str, action| AlertAnswer {
        rule: rule.into(),
        device: device.into(),
        object: Some(object.into()),
        action,
        by: Some("anna".into()),
    };
    let object = "interfaces.eth0.out_octets";
    let poller = run.twin.poller();
    let silence = AlertAction::Silence(Nanos::from_secs(60));
    assert_eq!(poller.answer_alert(now, &answer("busy", "node001", object, silence)), Ok(()));
    let acknowledge = answer("busy", "node002", object, AlertAction::Acknowledge);
    assert_eq!(poller.answer_alert(now, &acknowledge), Ok(()));
    let refused = |poller: &mut Poller, answer: AlertAnswer| {
        poller.answer_alert(now, &answer).expect_err("it is not raised").to_string()
    };
    assert_eq!(
        refused(poller, answer("busy", "node001", "interfaces.eth9.out_octets", silence)),
        "`busy` of `interfaces.eth9.out_octets` is not raised; raised for the device: `busy` of \
         `interfaces.eth0.out_octets`"
    );
    assert_eq!(
        refused(poller, answer("busy", "node009", object, silence)),
        "no device is named `node009`"
    );
    let never = AlertAction::Silence(Nanos::ZERO);
    let never = poller.answer_alert(now, &answer("busy", "node001", object, never));
    assert_eq!(never, Err(AlertAnswerError::Span(Nanos::ZERO)));
    let (alerts, _) = run.end();
    let of = |device: &str| alerts.iter().find(|alert| alert.device == device).expect("raised");
    assert_eq!(of("node001").silenced_until, Some(now + Nanos::from_secs(60)));
    let said = of("node002").acknowledged.as_ref().expect("acknowledged");
    assert_eq!((said.at, said.text.as_str()), (now, "busy: acknowledged by anna"));
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "an oracle: values below 10^5")]
fn a_rule_names_a_sensor_by_the_words_of_its_table() {
    let rules = "[[alerts]]\nname = \"hot\"\nvalue = \"sensor:Core*(celsius)\"\n\
                 above = 62.5\nclear = 50\n";
    let mut run = Run::new(FarmOptions::new(1, 0), "\"sensors\"", rules);
    run.until(60);
    let (alerts, requests) = run.end();
    // lmTempSensorsValue.1, thousandths of a degree.
    let core: meikyo_snmp::Oid = "1.3.6.1.4.1.2021.13.16.2.1.3.1".parse().unwrap();
    let degrees: Vec<_> = requests
        .iter()
        .filter_map(|request| {
            let at = request.objects.iter().position(|object| object.oid == core)?;
            Some((tenths(request.received), request.answered[at] as f64 / 1_000.0))
        })
        .collect();
    assert!(degrees.len() > 500, "{}", degrees.len());
    let expected = expected(&degrees, 0, |hot| hot > 62.5, |hot| hot <= 50.0);
    let of_core = |alert: &Alert| alert.object.as_deref() == Some("sensors.Core 0.celsius");
    let alerts: Vec<_> = alerts.into_iter().filter(of_core).collect();
    let mut spans = spans(&alerts);
    if expected.last().is_some_and(|span| span.1.is_none())
        && let Some(last) = spans.last_mut()
    {
        // Cleared because the measurement has ended.
        last.1 = None;
    }
    assert_eq!(spans, expected);
    assert!(expected.len() > 5, "{expected:?}");
}

#[test]
fn a_share_of_a_disk_is_the_same_whichever_table_has_the_disk() {
    // Of each of the farm's disks a quarter is used, and less than 0.001 % more.
    let rule = |name: &str, above: &str| {
        format!(
            "[[alerts]]\nname = \"{name}\"\nvalue = \"disk:/*(used_bytes)\"\n\
             above = \"{above}\"\nclear = \"20%\"\n"
        )
    };
    let rules = rule("below", "24.999%") + &rule("beyond", "25.001%");
    // dskTable (UCD-SNMP-MIB) and hrStorageTable (HOST-RESOURCES-MIB).
    let tables: [&[u32]; 2] = [&[1, 3, 6, 1, 4, 1, 2021, 9], &[1, 3, 6, 1, 2, 1, 25, 2, 3]];
    for (hidden, asked) in [(None, tables[0]), (Some("1.3.6.1.4.1.2021.9"), tables[1])] {
        let mut run = Run::new(FarmOptions::new(1, 0), "\"disk:/\", \"disk:/scratch\"", &rules);
        if let Some(hidden) = hidden {
            run.script(&[&format!("at 0s hide {hidden} node001")]);
        }
        run.until(20);
        let (alerts, requests) = run.end();
        let of = |table: &[u32]| {
            let objects = requests.iter().flat_map(|request| request.objects.iter());
            objects.filter(|object| object.oid.as_slice().starts_with(table)).count()
        };
        let other = tables.into_iter().find(|table| *table != asked).expect("there are two");
        assert!(of(asked) > 300 && of(other) == 0, "hidden: {hidden:?}");
        let mut told: Vec<_> =
            alerts.iter().map(|alert| (alert.object.as_deref(), alert.rule.as_str())).collect();
        told.sort_unstable();
        let due = ["storage./.used_bytes", "storage./scratch.used_bytes"];
        assert_eq!(told, due.map(|object| (Some(object), "below")), "hidden: {hidden:?}");
        for Alert { raised, .. } in &alerts {
            assert!(raised.text.ends_with(" is 25 %, above 24.999%"), "{}", raised.text);
        }
    }
}
