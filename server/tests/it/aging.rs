//! Old samples made smaller by a server that runs: what is decoded before and after, and what is shown.

use std::collections::BTreeMap;
use std::path::Path;

use meikyo_profile::STREAM;
use meikyo_profile::tables::{all, jit_symbols, samples, summaries, threads};
use meikyo_recording::{Packer, Recording, Selection};
use meikyo_server::AgingOptions;
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink};
use meikyo_transport::wire::Declared;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::client::{Served, serve_with};
use crate::profiles::row;
use crate::recorded::recording;

/// How long anything may take that has to happen.
const PATIENCE: Nanos = Nanos::from_secs(240);

/// How often it is looked: who makes samples smaller gives way to everybody.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

const SECOND: i64 = 1_000_000_000;

/// Seconds of samples; the second `n` has n + 1 of them.
const SECONDS: i64 = 20;

const DAY: Nanos = Nanos::from_secs(86_400);

fn served(taking: &Path, aging: AgingOptions) -> Served {
    serve_with(recording(), |options| {
        options.recordings.push(taking.to_owned());
        options.ingest = Some(taking.to_owned());
        options.aging = aging;
        options.requests_per_s = std::num::NonZeroU32::new(100_000).unwrap();
    })
}

/// Sends blocks, as a sender that was started for the `boot`th time.
fn send(served: &Served, boot: u64, packers: Vec<Packer>) {
    let options = SenderOptions {
        name: "node001".into(),
        cluster: None,
        identity: None,
        boot,
        machine: String::new(),
        streams: vec![Declared { stream: STREAM.into(), tables: all() }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    let authority = served.address.clone();
    let target = Target { authority, prefix: String::new(), roots: None, token: None };
    let sender = Uplink::start(target, options, None).unwrap();
    for mut packer in packers {
        sender.offer(STREAM, packer.pack().unwrap()).unwrap();
    }
    assert!(sender.finish(PATIENCE).is_delivered(), "not everything was delivered");
}

fn packer(table: &str) -> Packer {
    Packer::new(all().into_iter().find(|schema| schema.name == table).unwrap())
}

/// A profile of some seconds from a second on: two functions, the outer one alone in every third sample.
fn profile(start_s: i64) -> Vec<Packer> {
    let mut there = packer(threads::NAME);
    let words = [("host", "node001"), ("event", "there"), ("name", "solver")];
    row(&mut there, threads::NAME, (start_s - 1) * SECOND, &words, &[("pid", 7), ("tid", 7)]);
    let mut packers = vec![there];
    for (name, address) in [("outer", 0x5000), ("inner", 0x6000)] {
        let mut made = packer(jit_symbols::NAME);
        let numbers = [("pid", 7), ("address", address), ("size_bytes", 16)];
        let words = [("host", "node001"), ("name", name)];
        row(&mut made, jit_symbols::NAME, (start_s - 1) * SECOND, &words, &numbers);
        packers.push(made);
    }
    for second in 0..SECONDS {
        let mut of_second = packer(samples::NAME);
        for at in 0..=second {
            let time = (start_s + second) * SECOND + at * 20_000_123;
            let (address, stack) = if at % 3 == 0 { (0x5001, "") } else { (0x6001, "5001") };
            let numbers = [("cpu", 3), ("pid", 7), ("tid", 7), ("address", address)];
            let words = [("host", "node001"), ("stack", stack)];
            row(&mut of_second, samples::NAME, time, &words, &numbers);
        }
        packers.push(of_second);
    }
    packers
}

/// One sample of now, which begins a new segment.
fn newest() -> Vec<Packer> {
    let mut of_now = packer(samples::NAME);
    let numbers = [("cpu", 3), ("pid", 7), ("tid", 7), ("address", 0x5001)];
    let words = [("host", "node001"), ("stack", "")];
    row(&mut of_now, samples::NAME, WallTime::now().as_nanos(), &words, &numbers);
    vec![of_now]
}

/// The samples of a recording before a time, directly decoded: time, address, callers.
fn decoded(taking: &Path, until: i64) -> Vec<(i64, u64, String)> {
    let recording = Recording::open(taking).unwrap();
    let mut found = Vec::new();
    let selection =
        Selection { to: Some(WallTime::from_nanos(until)), ..Selection::all(samples::NAME) };
    let mut scan = recording.scan(&selection).unwrap();
    for rows in scan.by_ref() {
        let rows = rows.unwrap();
        let times = rows.column_by_name("time").unwrap();
        let times =
            arrow::array::AsArray::as_primitive::<arrow::datatypes::TimestampNanosecondType>(times);
        let (addresses, stacks) =
            (samples::ADDRESS.values_in(&rows).unwrap(), samples::STACK.values_in(&rows).unwrap());
        found.extend((0..rows.num_rows()).map(|row| {
            let stack = stacks.get(row).unwrap_or_default().to_owned();
            (times.value(row), addresses.get(row).unwrap(), stack)
        }));
    }
    assert!(scan.problems().is_empty(), "{:?}", scan.problems());
    found.sort_unstable();
    found
}

/// Samples by function, as a flame graph has them: in each itself.
fn own(flame: &Value) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let frames = flame["frame"].as_array().unwrap().iter().zip(flame["own"].as_array().unwrap());
    for (frame, own) in frames.skip(1) {
        let at = usize::try_from(frame.as_u64().unwrap()).unwrap();
        let name = flame["frames"][at]["name"].as_str().unwrap().to_owned();
        *found.entry(name).or_default() += own.as_u64().unwrap();
    }
    found
}

/// Waits until something is so.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = WallTime::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(WallTime::now() < deadline, "{what}");
        std::thread::park_timeout(LOOK_EVERY);
    }
}

#[test]
fn samples_that_become_old_are_rounded_and_then_summed_up_and_counts_stay() {
    let dir = tempfile::tempdir().unwrap();
    let taking = dir.path().join("rec");
    let start_s = WallTime::now().before(DAY * 3).as_nanos() / SECOND;
    let end = (start_s + SECONDS) * SECOND;
    let count = u64::try_from(SECONDS * (SECONDS + 1) / 2).unwrap();
    let span = format!("from={start_s}000000&to={}000000", start_s + SECONDS);
    let flame = |served: &Served| served.json(&format!("recordings/rec/profile/flame?{span}"));
    let heat = |served: &Served| {
        until("the heat map has all samples", || {
            let map = served.json(&format!("recordings/rec/heat?{span}"));
            (map["cores"][0]["samples"] == count).then_some(map)
        })
    };

    let first = served(&taking, AgingOptions::NEVER);
    send(&first, 1, profile(start_s));
    let (exact_heat, exact_flame) = (heat(&first), flame(&first));
    assert_eq!(
        (&exact_flame["sides"][0]["samples"], &exact_flame["sides"][0]["summed_up"]),
        (&count.into(), &0.into())
    );
    first.running.stop();
    let exact = decoded(&taking, end);
    assert_eq!(exact.len() as u64, count);

    // Old enough to be rounded, and not to be summed up.
    let aging = AgingOptions { round_after: Some(DAY), sum_up_after: Some(DAY * 9) };
    let second = served(&taking, aging);
    send(&second, 2, newest());
    let rounded = until("the samples are rounded", || {
        let found = decoded(&taking, end);
        (found != exact).then_some(found)
    });
    let expected =
        exact.iter().map(|(time, address, stack)| (time / 1_000 * 1_000, *address, stack.clone()));
    assert_eq!(rounded, expected.collect::<Vec<_>>());
    assert_eq!(heat(&second)["tiles"], exact_heat["tiles"]);
    second.running.stop();

    let aging = AgingOptions { round_after: Some(DAY), sum_up_after: Some(DAY * 2) };
    let third = served(&taking, aging);
    send(&third, 3, newest());
    until("the samples are summed up", || decoded(&taking, end).is_empty().then_some(()));
    let summed = flame(&third);
    let side = &summed["sides"][0];
    assert_eq!((&side["samples"], &side["summed_up"]), (&count.into(), &count.into()), "{summed}");
    assert_eq!(own(&summed), own(&exact_flame));
    assert_eq!(heat(&third)["tiles"], exact_heat["tiles"]);
    third.running.stop();
    // The sample of each start is not old.
    assert_eq!(decoded(&taking, i64::MAX).len(), 2);
    let recording = Recording::open(&taking).unwrap();
    let mut sums: BTreeMap<i64, u64> = BTreeMap::new();
    for rows in recording.scan(&Selection::all(summaries::NAME)).unwrap() {
        let rows = rows.unwrap();
        let times = rows.column_by_name("time").unwrap();
        let times =
            arrow::array::AsArray::as_primitive::<arrow::datatypes::TimestampNanosecondType>(times);
        let (pids, counts) = (
            summaries::PID.values_in(&rows).unwrap(),
            summaries::SAMPLES.values_in(&rows).unwrap(),
        );
        for row in (0..rows.num_rows()).filter(|&row| pids.get(row).is_none()) {
            *sums.entry(times.value(row) / SECOND - start_s).or_default() +=
                counts.get(row).unwrap();
        }
    }
    let expected = (0..SECONDS).map(|second| (second, u64::try_from(second + 1).unwrap()));
    assert_eq!(sums, expected.collect());
    let report = meikyo_recording::check::check(&taking).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);

    // A server that starts anew shows the same.
    let last = served(&taking, AgingOptions::NEVER);
    assert_eq!(heat(&last)["tiles"], exact_heat["tiles"]);
    assert_eq!(own(&flame(&last)), own(&exact_flame));
    last.running.stop();
}
