//! Steps go in, values come out; the expected ones are worked out by hand.

use meikyo_live::{Event, Step};
use meikyo_snmp::tables::State;

use crate::top::fixture::{START, TENTH, frame, model, step};
use crate::top::metric::Metric;

fn close(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-6 * b.abs().max(1.0))
}

#[test]
fn the_newest_values_are_those_of_the_newest_interval() {
    let mut model = model();
    for tenth in 0..10 {
        model.apply(&step(tenth, &[(3, if tenth == 9 { 4 } else { 0 }), (5, 1)]));
    }
    let now = START + 10 * TENTH;
    let of = |device: &str, metric: Metric| {
        metric.value_of(&model.devices[model.device(device).unwrap()], now)
    };
    assert!(close(of("node01", Metric::Sent), 1e6));
    assert!(close(of("sw", Metric::Sent), 12e6));
    assert!(close(of("node02", Metric::Received), 1e6));
    assert!(close(of("node02", Metric::Load), 0.5));
    // Handed over after 500 µs, received after 900 µs.
    assert!(close(of("node02", Metric::RoundTrip), 400e-6));
    // Due 100 ms ago, received 0.9 ms later.
    assert!(close(of("node02", Metric::Age), 0.0991));
    // What did not come is not carried over.
    assert_eq!(of("node04", Metric::Sent), None);
    assert_eq!(of("node04", Metric::Load), None);
    assert!(close(of("node04", Metric::Age), 0.1991));
    let state = |device: &str| model.devices[model.device(device).unwrap()].state;
    assert_eq!(state("node04"), Some(State::Missed));
    assert_eq!(state("node06"), Some(State::Late));
    assert_eq!(of("node02", Metric::Disk), None);
}

#[test]
fn health_counts_ten_seconds_and_names_who_is_silent() {
    let mut model = model();
    for tenth in 0..200 {
        let silent = if tenth >= 150 { 4 } else { 0 };
        model.apply(&step(tenth, &[(7, silent), (2, u8::from(tenth == 190))]));
    }
    // The same steps again change nothing.
    model.apply(&step(199, &[(7, 4)]));
    let health = model.health(START + 200 * TENTH);
    // 101 intervals: both ends of 10 s.
    assert_eq!((health.all, health.late, health.missing), (101 * 12, 1, 50));
    assert_eq!(health.ok, 101 * 12 - 51);
    assert_eq!(health.silent, [7]);
    assert!(close(health.intervals_per_s, 10.0));
    assert!(close(health.stalest.map(|stalest| stalest.age.as_secs_f64()), 0.0991));
}

#[test]
fn nobody_is_silent_before_he_could_have_been_heard() {
    let mut model = model();
    model.apply(&step(0, &[(7, 4)]));
    assert!(model.health(START + 20 * TENTH).silent.is_empty());
    model.apply(&step(24, &[(7, 4)]));
    model.apply(&step(25, &[(7, 4)]));
    assert_eq!(model.health(START + 31 * TENTH).silent[..], [7]);
}

#[test]
fn the_worst_part_of_an_interval_is_its_state_and_older_ones_do_not_count() {
    let mut model = model();
    let poll = |due: i64, state: u8| Step {
        frames: vec![frame("polls", &["received_us"], vec![(due, 0, state, vec![f32::NAN])])],
        ..Step::default()
    };
    let mut after = |due: i64, state: u8| {
        model.apply(&poll(due, state));
        model.devices[0].state
    };
    assert_eq!(after(START, 0), Some(State::Ok));
    assert_eq!(after(START, 4), Some(State::Missed));
    assert_eq!(after(START, 1), Some(State::Missed));
    assert_eq!(after(START + TENTH, 0), Some(State::Ok));
    assert_eq!(after(START, 4), Some(State::Ok));
    // A state of a newer version is not known, and no panic.
    assert_eq!(after(START + 2 * TENTH, 200), None);
}

#[test]
fn an_older_row_that_comes_later_changes_nothing() {
    let mut model = model();
    model.apply(&step(5, &[]));
    let before = format!("{:?}", model.devices);
    let mut late = step(4, &[]);
    // Half of what they were.
    for frame in &mut late.frames[2..] {
        frame.values.iter_mut().flatten().for_each(|value| *value /= 2.0);
    }
    late.frames.drain(..2);
    model.apply(&late);
    assert_eq!(format!("{:?}", model.devices), before);
}

#[test]
fn events_are_kept_once_and_only_of_devices_that_are_watched() {
    let mut model = model();
    let event = |device: Option<&str>, time: i64| Event {
        time,
        device: device.map(str::to_owned),
        event: "mark".into(),
        ..Event::default()
    };
    let events = vec![event(None, 1), event(Some("node01"), 2), event(Some("other"), 3)];
    let step = Step { events, ..Step::default() };
    model.apply(&step);
    model.apply(&step);
    assert_eq!(model.events.iter().map(|event| event.time).collect::<Vec<_>>(), [1, 2]);
    let many = (0..2_000).map(|time| event(None, time)).collect();
    model.apply(&Step { events: many, ..Step::default() });
    assert_eq!(model.events.len(), super::EVENTS_MAX);
    assert_eq!(model.events.back().unwrap().time, 1_999);
}
