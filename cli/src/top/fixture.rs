//! A small cluster for tests: twelve devices in two racks, one second of readings.

use std::sync::Arc;

use meikyo_live::{Device, Event, Frame, Interval, Step};
use meikyo_units::{Nanos, WallTime};

use super::metric::Metric;
use super::model::Model;
use super::screen::{Begin, Screen};

/// 2023-11-14T22:13:20Z.
pub(super) const START: i64 = 1_700_000_000_000_000_000;
/// ns of a tenth of a second.
pub(super) const TENTH: i64 = 100_000_000;

/// Rows of a frame: due instant, series, state, values.
pub(super) type Rows = Vec<(i64, u32, u8, Vec<f32>)>;

pub(super) fn frame(table: &str, columns: &[&str], rows: Rows) -> Frame {
    let mut frame = Frame {
        table: table.into(),
        columns: columns.iter().map(|&column| column.to_owned()).collect::<Vec<_>>().into(),
        values: vec![Vec::new(); columns.len()],
        ..Frame::default()
    };
    for (time, series, state, values) in rows {
        frame.times.push(time);
        frame.series.push(series);
        frame.states.push(state);
        frame.ages_ms.push(0.0);
        for (column, value) in frame.values.iter_mut().zip(values) {
            column.push(value);
        }
    }
    frame
}

/// `node01` to `node11` in two racks and the switch `sw`.
pub(super) fn model() -> Model {
    let node = |number: u32| Device {
        name: format!("node{number:02}"),
        role: "host",
        group: Some(if number <= 6 { "rack1" } else { "rack2" }.to_owned()),
        agent: None,
    };
    let switch = Device { name: "sw".into(), role: "switch", group: None, agent: None };
    let mut model = Model::new((1..=11).map(node).chain([switch]));
    let names: Vec<_> = model.devices.iter().map(|device| device.name.clone()).collect();
    let alone: Vec<_> = names.iter().map(|name| vec![name.clone()]).collect();
    model.learn("polls", &alone);
    model.learn("load", &alone);
    let interfaces: Vec<_> = names
        .iter()
        .flat_map(|name| ["eth0", "eth1"].map(|interface| vec![name.clone(), interface.to_owned()]))
        .collect();
    model.learn("interfaces", &interfaces);
    model
}

/// The step of one interval. Device `n` (from 1) sends 1 MB/s times n over `eth0`; some end in
/// other states than ok: 1 late, 4 missed.
pub(super) fn step(tenth: i64, states: &[(u32, u8)]) -> Step {
    let due = START + tenth * TENTH;
    let state = |series: u32| {
        states.iter().find(|(device, _)| *device == series).map_or(0, |(_, state)| *state)
    };
    let values = |series: u32, values: Vec<f32>| {
        if state(series) > 1 { vec![f32::NAN; values.len()] } else { values }
    };
    let number = |series: u32| f32::from(u8::try_from(series + 1).unwrap());
    let devices = 0..12_u32;
    let polls = devices.clone().map(|of| (due, of, state(of), values(of, vec![900.0, 0.0])));
    let load = devices.clone().map(|of| (due, of, state(of), values(of, vec![number(of) / 4.0])));
    let interfaces = devices.flat_map(|of| {
        [(2 * of, 1e6), (2 * of + 1, 0.0)].map(|(series, unit)| {
            let sent = unit * number(of);
            (due, series, state(of), values(of, vec![sent / 2.0, sent, 1.0]))
        })
    });
    let count = |of: &dyn Fn(u8) -> bool| {
        u64::try_from((0..12).filter(|series| of(state(*series))).count()).unwrap()
    };
    Step {
        newest: due,
        frames: vec![
            frame("polls", &["received_us", "batch"], polls.collect()),
            frame("batches", &["batch", "sent_us"], vec![(due, 0, 0, vec![0.0, 500.0])]),
            frame("interfaces", &["in_octets", "out_octets", "oper_status"], interfaces.collect()),
            frame("load", &["load_1min"], load.collect()),
        ],
        intervals: vec![Interval {
            time: due,
            ok: count(&|state| state == 0),
            late: count(&|state| state == 1),
            missed: count(&|state| state == 4),
            ..Interval::default()
        }],
        events: Vec::new(),
    }
}

/// A view of a running recording, one second after its begin; and the clock then.
pub(super) fn screen(states: &[(u32, u8)]) -> (Screen, WallTime) {
    let clock = WallTime::from_nanos(START + 10 * TENTH);
    let begin = Begin {
        name: "supernova".into(),
        running: true,
        simulated: false,
        metric: Metric::Sent,
        every: Nanos::from_millis(100),
        times: Some((WallTime::from_nanos(START), clock)),
    };
    let mut screen = Screen::new(begin, model());
    let steps: Vec<_> = (0..10).map(|tenth| Arc::new(step(tenth, states))).collect();
    screen.apply(steps.iter().map(Arc::as_ref));
    let event = Event {
        time: START + 3 * TENTH,
        device: Some("node03".into()),
        event: "reset".into(),
        text: Some("sysUpTime went back".into()),
        ..Event::default()
    };
    screen.apply([&Step { events: vec![event], ..Step::default() }]);
    screen.arrange(clock);
    (screen, clock)
}
