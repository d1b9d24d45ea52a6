//! Live frames of a recording that is being written, and replays, against what was recorded.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::net::{IpAddr, TcpStream};
use std::path::Path;

use arrow::array::AsArray as _;
use arrow::datatypes::{Float32Type, Float64Type, TimestampNanosecondType, UInt8Type, UInt32Type};
use meikyo_recording::series::Texts;
use meikyo_recording::{Batch, Kind, Recording, Selection, StreamOptions, StreamWriter, schema};
use meikyo_snmp::tables::{Table, schemas};
use meikyo_units::{Nanos, WallTime};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::handshake::client::Request;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{HandshakeError, Message, WebSocket};

use crate::client::{Served, client, serve};
use crate::ranges::{id, near, pixels};
use crate::recorded::{START, recording};

/// A viewer.
pub(crate) struct Viewer {
    pub(crate) socket: WebSocket<MaybeTlsStream<TcpStream>>,
    schema: Vec<u8>,
    epoch_us: i64,
    names: BTreeMap<u32, String>,
}

/// A row that a viewer saw: due instant in ms since 1970, device, value, state.
pub(crate) type Row = (i64, String, f32, u8);

impl Viewer {
    pub(crate) fn connect(served: &Served) -> Self {
        Self::connect_from(served, client(1), &id(served)).unwrap()
    }

    /// One who comes from an address of loopback to a recording; the status when he is refused.
    pub(crate) fn connect_from(served: &Served, from: IpAddr, id: &str) -> Result<Self, u16> {
        let path = format!("ws://{}/api/v1/recordings/{id}/live", served.address);
        Self::begin(served, from, path.into_client_request().unwrap())
    }

    /// One who shows a token.
    pub(crate) fn with_token(served: &Served, id: &str, token: &str) -> Self {
        let path = format!("ws://{}/api/v1/recordings/{id}/live", served.address);
        let mut request = path.into_client_request().unwrap();
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        Self::begin(served, client(1), request).unwrap()
    }

    fn begin(served: &Served, from: IpAddr, request: Request) -> Result<Self, u16> {
        let stream = MaybeTlsStream::Plain(served.connect_from(from));
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => {
                Ok(Self { socket, schema: Vec::new(), epoch_us: 0, names: BTreeMap::new() })
            }
            Err(HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// One who looks at the octets that all interfaces receive.
    pub(crate) fn of_octets(served: &Served) -> Self {
        let mut viewer = Self::connect(served);
        viewer.subscribe(&json!({ "table": "interfaces", "columns": ["in_octets"] }));
        viewer
    }

    pub(crate) fn subscribe(&mut self, subscription: &Value) {
        let text = json!({ "subscribe": subscription }).to_string();
        self.socket.send(Message::Text(text.into())).unwrap();
    }

    /// The next text, as JSON; rows on the way go to `rows`.
    ///
    /// The socket's own read timeout is that of [`Served::connect_from`]. Rows and pings come even where
    /// the text that is waited for never does, so there is a deadline for all of them together.
    pub(crate) fn text(&mut self, rows: &mut Vec<Row>) -> Value {
        let deadline = WallTime::now() + Nanos::from_secs(60);
        loop {
            assert!(WallTime::now() < deadline, "no text came, but {} rows", rows.len());
            match self.socket.read().unwrap() {
                Message::Text(text) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    if let Some(begun) = value.get("subscribed") {
                        self.epoch_us = begun["epoch_us"].as_i64().unwrap();
                        self.schema.clear();
                        for series in begun["series"].as_array().unwrap() {
                            let ordinal = series["ordinal"].as_u64().unwrap();
                            let device = series["labels"]["device"].as_str().unwrap();
                            self.names.insert(u32::try_from(ordinal).unwrap(), device.to_owned());
                        }
                    }
                    return value;
                }
                Message::Binary(octets) if self.schema.is_empty() => self.schema = octets.to_vec(),
                Message::Binary(octets) => self.take(&octets, rows),
                _ => {}
            }
        }
    }

    fn take(&self, octets: &[u8], rows: &mut Vec<Row>) {
        let stream = [&self.schema, octets].concat();
        let reader = arrow::ipc::reader::StreamReader::try_new(Cursor::new(stream), None).unwrap();
        for batch in reader {
            let batch = batch.unwrap();
            let offsets = batch.column_by_name("offset_ms").unwrap().as_primitive::<UInt32Type>();
            let series = batch.column_by_name("series").unwrap().as_primitive::<UInt32Type>();
            let states = batch.column_by_name("state").unwrap().as_primitive::<UInt8Type>();
            let values = batch.column(2).as_primitive::<Float32Type>();
            for row in 0..batch.num_rows() {
                let due_ms = self.epoch_us / 1_000 + i64::from(offsets.value(row));
                let device = self.names.get(&series.value(row)).cloned().unwrap_or_default();
                rows.push((due_ms, device, values.value(row), states.value(row)));
            }
        }
    }

    /// Rows until something holds of them.
    fn rows_until(&mut self, holds: impl Fn(&[Row]) -> bool) -> Vec<Row> {
        let mut rows = Vec::new();
        let deadline = WallTime::now() + Nanos::from_secs(60);
        while !holds(&rows) {
            assert!(WallTime::now() < deadline, "{} rows, the last {:?}", rows.len(), rows.last());
            self.text(&mut rows);
        }
        rows
    }
}

/// What a replay of `load_1min` must show of a span.
fn recorded_loads(from: WallTime, to: WallTime) -> BTreeMap<(i64, String), f64> {
    let columns = ["time", "device", "load_1min"].map(str::to_owned).to_vec();
    let selection = Selection {
        columns: Some(columns),
        from: Some(from),
        to: Some(to),
        ..Selection::all("load")
    };
    let mut loads = BTreeMap::new();
    for batch in Recording::open(recording()).unwrap().scan(&selection).unwrap() {
        let batch = batch.unwrap();
        let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
        let devices = Texts::new(batch.column(1)).unwrap();
        let values = batch.column(2).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let key = (times.value(row) / 1_000_000, devices.get(row).unwrap().to_owned());
            loads.insert(key, values.value(row));
        }
    }
    loads
}

#[test]
fn a_replay_shows_every_row_that_was_recorded_and_who_was_silent() {
    let served = serve(recording());
    let mut viewer = Viewer::connect(&served);
    let from = START + Nanos::from_secs(295);
    viewer.subscribe(&json!({
        "table": "load", "columns": ["load_1min"],
        "replay": { "from_us": from.as_nanos() / 1_000, "speed": 20.0 },
    }));
    let to_ms = (START + Nanos::from_secs(310)).as_nanos() / 1_000_000;
    let rows = viewer.rows_until(|rows| rows.iter().any(|row| row.0 >= to_ms));
    let seen: BTreeMap<(i64, String), f32> = rows
        .iter()
        .filter(|row| row.0 < to_ms && !row.2.is_nan())
        .map(|row| ((row.0, row.1.clone()), row.2))
        .collect();
    let expected = recorded_loads(from, START + Nanos::from_secs(310));
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (key, value) in &seen {
        assert!((f64::from(*value) - expected[key]).abs() < 1e-5, "{key:?}");
    }
    let silent = rows.iter().filter(|row| row.3 >= 2 && row.2.is_nan());
    let names: std::collections::BTreeSet<_> = silent.map(|row| row.1.as_str()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["node003"]);
}

#[test]
fn requests_that_are_wrong_are_told_so_and_the_socket_goes_on() {
    let served = serve(recording());
    let mut viewer = Viewer::connect(&served);
    let mut rows = Vec::new();
    for (wrong, told) in [
        (json!({ "table": "none", "columns": ["x"] }), "no table"),
        (json!({ "table": "load", "columns": [] }), "1 to 32"),
        (json!({ "table": "load", "columns": ["device"] }), "load_1min"),
        (
            json!({ "table": "load", "columns": ["load_1min"], "labels": { "x": ["y"] } }),
            "labels: device",
        ),
        (
            json!({ "table": "load", "columns": ["load_1min"], "replay": { "from_us": 0, "speed": 0.0 } }),
            "speed",
        ),
        (json!({ "tabel": "load" }), "not understood"),
    ] {
        viewer.subscribe(&wrong);
        let answer = viewer.text(&mut rows);
        let text = answer["refused"]["error"].as_str().unwrap();
        assert!(text.contains(told), "{wrong}: {text}");
    }
    viewer.subscribe(
        &json!({ "table": "load", "columns": ["load_1min"], "labels": { "device": ["node001"] } }),
    );
    let answer = viewer.text(&mut rows);
    assert_eq!(answer["subscribed"]["series"].as_array().unwrap().len(), 1);
}

/// Writes intervals of some devices as a collector does, at the wall clock's time.
pub(crate) struct Collector {
    pub(crate) writer: StreamWriter,
    schemas: Vec<schema::TableSchema>,
    devices: Vec<String>,
    time: i64,
    interval: u64,
    /// What the counters have moved, in steps of an interval.
    moved: u64,
    /// How long after the due instant the next answers are received.
    received_us: i64,
}

impl Collector {
    pub(crate) fn open(dir: &Path, devices: u64) -> Self {
        let mut collector = Self::without_findings(dir, devices);
        collector.find_freshness();
        collector
    }

    fn without_findings(dir: &Path, devices: u64) -> Self {
        let schemas = schemas();
        let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
        let writer =
            StreamWriter::open(dir, Kind::Measured, "snmp", schemas.clone(), options).unwrap();
        let devices = (0..devices).map(|device| format!("node{device:04}")).collect();
        let time = WallTime::now().floor(Nanos::from_millis(100)).as_nanos();
        Self { writer, schemas, devices, time, interval: 0, moved: 0, received_us: 500 }
    }

    /// Says that every reading is fresh, as a collector finds out in its first seconds.
    fn find_freshness(&mut self) {
        let mut batch = self.batch(Table::Freshness);
        let facts = ["table", "instance", "column", "class"];
        let texts = ["interfaces", "eth0", "in_octets", "every_poll"];
        let schema = self.schemas[Table::Freshness.index()].clone();
        for number in 0..self.devices.len() {
            batch.begin_row(self.time);
            let device = self.writer.symbol(&self.devices[number]);
            batch.put_symbol(schema.column("device").unwrap(), device);
            for (name, text) in facts.iter().zip(texts) {
                let symbol = self.writer.symbol(text);
                batch.put_symbol(schema.column(name).unwrap(), symbol);
            }
        }
        self.writer.submit(batch);
    }

    fn batch(&mut self, table: Table) -> Batch {
        self.writer.batch(table.index())
    }

    /// The due instant of the newest interval, in µs.
    pub(crate) const fn newest_us(&self) -> i64 {
        self.time / 1_000 - 100_000
    }

    /// One interval of 0.1 s: every counter goes on by 1,000 times its device's number.
    pub(crate) fn interval(&mut self) {
        self.interval_of_standing_counters();
        self.moved += 1;
    }

    fn interval_of_standing_counters(&mut self) {
        let column = |table: Table, name: &str, schemas: &[schema::TableSchema]| {
            schemas[table.index()].column(name).unwrap()
        };
        let polls = ["device", "pdu", "state", "received_us", "uptime_cs"]
            .map(|name| column(Table::Polls, name, &self.schemas));
        let values = ["device", "interface", "in_octets", "pdu"]
            .map(|name| column(Table::Interfaces, name, &self.schemas));
        let (ok, eth0) = (self.writer.symbol("ok"), self.writer.symbol("eth0"));
        let (mut of_polls, mut of_values) =
            (self.batch(Table::Polls), self.batch(Table::Interfaces));
        for number in 0..self.devices.len() {
            let device = self.writer.symbol(&self.devices[number]);
            of_polls.begin_row(self.time);
            of_polls.put_symbol(polls[0], device);
            of_polls.put_u64(polls[1], 0);
            of_polls.put_symbol(polls[2], ok);
            of_polls.put_i64(polls[3], self.received_us);
            of_polls.put_u64(polls[4], 1_000 + 10 * self.interval);
            of_values.begin_row(self.time);
            of_values.put_symbol(values[0], device);
            of_values.put_symbol(values[1], eth0);
            of_values.put_u64(values[2], 1_000 * (number as u64 + 1) * self.moved);
            of_values.put_u64(values[3], 0);
        }
        self.writer.submit(of_polls);
        self.writer.submit(of_values);
        let mut of_intervals = self.batch(Table::Intervals);
        of_intervals.begin_row(self.time);
        let ok = column(Table::Intervals, "ok", &self.schemas);
        of_intervals.put_u64(ok, self.devices.len() as u64);
        self.writer.submit(of_intervals);
        self.time += 100_000_000;
        self.interval += 1;
    }
}

#[test]
fn what_a_collector_writes_is_seen_as_rates_and_health() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 3);
    collector.interval();
    collector.writer.sync_now().unwrap();
    let served = serve(dir.path());
    let mut viewer = Viewer::of_octets(&served);
    let mut rows = Vec::new();
    let begun = viewer.text(&mut rows);
    assert_eq!(begun["subscribed"]["running"], true);
    assert_eq!(begun["subscribed"]["columns"][0]["unit"], "octets/s");
    let (mut health, mut known) = (0, 0);
    let deadline = WallTime::now() + Nanos::from_secs(30);
    while known < 9 || health < 3 {
        assert!(WallTime::now() < deadline, "{known} rates, {health} intervals: {rows:?}");
        collector.interval();
        let answer = viewer.text(&mut rows);
        if let Some(interval) = answer.get("health") {
            assert_eq!(interval["ok"], 3);
            health += 1;
        }
        known = rows.iter().filter(|row| !row.2.is_nan()).count();
    }
    for (_, device, rate, state) in rows.iter().filter(|row| !row.2.is_nan()) {
        let number: f32 = device[4..].parse().unwrap();
        assert!((rate - 10_000.0 * (number + 1.0)).abs() < 1.0, "{device}: {rate}");
        assert_eq!(*state, 0);
    }
    collector.writer.close().unwrap();
}

#[test]
fn what_is_found_while_a_viewer_looks_counts_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::without_findings(dir.path(), 2);
    collector.interval();
    let served = serve(dir.path());
    let mut viewer = Viewer::of_octets(&served);
    let mut rows = Vec::new();
    viewer.text(&mut rows);
    // The rate of a value that stands still is 0 at once when every reading is fresh. Of one that
    // nothing is known of, it is the rate before for 10 s of the recording's time.
    let mut newest_after = |collector: &mut Collector, moving: bool| {
        let newest = collector.time / 1_000_000;
        if moving {
            collector.interval();
        } else {
            collector.interval_of_standing_counters();
        }
        let deadline = WallTime::now() + Nanos::from_secs(30);
        rows.clear();
        while rows.iter().filter(|row| row.0 == newest).count() < 2 {
            assert!(WallTime::now() < deadline, "{newest} is not seen: {rows:?}");
            viewer.text(&mut rows);
        }
        rows.iter().filter(|row| row.0 == newest).map(|row| row.2).collect::<Vec<_>>()
    };
    newest_after(&mut collector, true);
    assert_eq!(newest_after(&mut collector, true), [10_000.0, 20_000.0]);
    for _ in 0..3 {
        assert_eq!(newest_after(&mut collector, false), [10_000.0, 20_000.0]);
    }
    collector.find_freshness();
    newest_after(&mut collector, false);
    assert_eq!(newest_after(&mut collector, false), [0.0, 0.0]);
    collector.writer.close().unwrap();
}

/// Intervals in which counters move so many steps, and by how many ms their answers are late: less than an agent's
/// own clock tells.
const BURSTS: [(u64, i64); 16] = [
    (1, 0),
    (9, 17),
    (2, 3),
    (30, 19),
    (0, 0),
    (0, 11),
    (1, 18),
    (1, 1),
    (17, 15),
    (3, 0),
    (0, 19),
    (8, 2),
    (25, 0),
    (1, 16),
    (2, 0),
    (40, 12),
];

/// What viewers saw of a collector whose answers are late, and the same read again; the latter is returned.
fn seen_and_read_again(collector: &mut Collector, served: &Served) -> BTreeMap<(i64, String), f32> {
    let mut viewer = Viewer::of_octets(served);
    let (mut rows, mut seen) = (Vec::new(), BTreeMap::new());
    viewer.text(&mut rows);
    let begin_ms = collector.time / 1_000_000;
    for (steps, late_ms) in BURSTS {
        let newest = collector.time / 1_000_000;
        collector.moved += steps;
        collector.received_us = 500 + late_ms * 1_000;
        collector.interval_of_standing_counters();
        let deadline = WallTime::now() + Nanos::from_secs(30);
        while rows.iter().filter(|row: &&Row| row.0 == newest).count() < 2 {
            assert!(WallTime::now() < deadline, "{newest} is not seen: {rows:?}");
            viewer.text(&mut rows);
        }
    }
    for (due, device, value, _) in rows.iter().filter(|row| row.0 >= begin_ms && !row.2.is_nan()) {
        seen.insert((*due, device.clone()), *value);
    }
    let path = format!(
        "recordings/{}/range?table=interfaces&column=in_octets&rates=read&from={}&to={}&width={}",
        id(served),
        begin_ms * 1_000,
        collector.time / 1_000,
        BURSTS.len(),
    );
    let body = served.json(&path);
    assert_eq!((&body["bin_us"], &body["from_us"]), (&json!(100_000), &json!(begin_ms * 1_000)));
    let pixels = pixels(&body);
    let due = |bin: u64| begin_ms + 100 * i64::try_from(bin).unwrap();
    let places: Vec<_> = pixels.keys().map(|(device, bin)| (due(*bin), device.clone())).collect();
    assert_eq!(
        places.iter().collect::<std::collections::BTreeSet<_>>(),
        seen.keys().collect::<std::collections::BTreeSet<_>>()
    );
    for ((device, bin), (least, mean, most, count)) in pixels {
        let shown = f64::from(seen[&(due(bin), device.clone())]);
        for read in [least, mean, most] {
            assert!(near(read, shown), "{device}, pixel {bin}: {read} of the past, live {shown}");
        }
        assert_eq!(count, 1, "{device}, pixel {bin}");
    }
    seen
}

/// By hand: what was counted between two answers over the time between them, of devices that update at every reading.
#[test]
fn what_was_seen_live_of_late_answers_stands_in_the_same_pixels_when_it_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 2);
    collector.interval_of_standing_counters();
    collector.writer.sync_now().unwrap();
    let served = serve(dir.path());
    let begin_ms = collector.time / 1_000_000;
    let seen = seen_and_read_again(&mut collector, &served);
    let mut before_ms = 0;
    for ((steps, late_ms), due) in BURSTS.into_iter().zip((begin_ms..).step_by(100)) {
        let seconds = f64::from(i32::try_from(100 + late_ms - before_ms).unwrap()) / 1_000.0;
        for (device, octets) in [("node0000", 1_000), ("node0001", 2_000)] {
            let rate = f64::from(u32::try_from(octets * steps).unwrap()) / seconds;
            let shown = f64::from(seen[&(due, device.to_owned())]);
            assert!(near(shown, rate), "{device} at {due}: {shown}, by hand {rate}");
        }
        before_ms = late_ms;
    }
    collector.writer.close().unwrap();
}

/// Of values of which it is not known how often they are updated, the rate before is shown while they stand still.
#[test]
fn rates_that_are_held_live_are_held_when_they_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::without_findings(dir.path(), 2);
    collector.interval_of_standing_counters();
    collector.writer.sync_now().unwrap();
    let served = serve(dir.path());
    let begin_ms = collector.time / 1_000_000;
    let seen = seen_and_read_again(&mut collector, &served);
    let standing =
        BURSTS.iter().zip((begin_ms..).step_by(100)).filter(|((steps, _), _)| *steps == 0);
    for (_, due) in standing {
        let of = |due| seen[&(due, "node0001".to_owned())];
        assert_eq!(of(due).to_bits(), of(due - 100).to_bits(), "at {due}");
    }
    collector.writer.close().unwrap();
}

/// Names and nice values of this process's threads.
fn threads() -> Vec<(String, i32)> {
    let mut threads = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        // A thread may end while it is looked at.
        let Ok(text) = std::fs::read_to_string(thread.unwrap().path().join("stat")) else {
            continue;
        };
        let (head, rest) = text.rsplit_once(')').unwrap();
        // Field 19 of proc_pid_stat(5); `rest` begins with the third.
        let nice = rest.split_whitespace().nth(16).unwrap().parse().unwrap();
        threads.push((head.split_once('(').unwrap().1.to_owned(), nice));
    }
    threads
}

#[test]
fn every_thread_of_the_server_gives_way_to_a_collector() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 2);
    collector.interval();
    let served = serve(dir.path());
    let mut viewer = Viewer::of_octets(&served);
    viewer.text(&mut Vec::new());
    let deadline = WallTime::now() + Nanos::from_secs(30);
    loop {
        let threads = threads();
        let of = |name: &str| {
            let of: Vec<_> = threads.iter().filter(|(of, _)| of.starts_with(name)).collect();
            // The thread, the workers, and those that read.
            of.len() >= (if name == "server" { 3 } else { 1 }) && of.iter().all(|of| of.1 == 10)
        };
        if of("server") && of("follow") {
            break;
        }
        assert!(WallTime::now() < deadline, "{threads:?}");
        std::thread::yield_now();
    }
    collector.writer.close().unwrap();
}

#[test]
fn a_stalled_viewer_loses_steps_is_told_how_many_and_goes_on_with_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 8_000);
    collector.interval();
    let served = serve(dir.path());
    let mut stalled = Viewer::of_octets(&served);
    let mut brisk = Viewer::connect(&served);
    brisk.subscribe(&json!({ "table": "interfaces", "columns": ["in_octets"], "labels": { "device": ["node0001"] } }));
    let mut rows = Vec::new();
    brisk.text(&mut rows);
    // 20 s of the recording's time, each interval when the brisk viewer has seen the one
    // before: it is the stalled one alone who is behind.
    for _ in 0..200 {
        let newest = collector.time / 1_000_000;
        collector.interval();
        let deadline = WallTime::now() + Nanos::from_secs(30);
        while rows.iter().all(|row| row.0 < newest) {
            assert!(WallTime::now() < deadline, "the brisk viewer waits for {newest}");
            brisk.text(&mut rows);
        }
        rows.clear();
    }
    let newest = (collector.time - 100_000_000) / 1_000_000;
    let (mut seen, mut dropped) = (Vec::new(), 0);
    let deadline = WallTime::now() + Nanos::from_secs(30);
    while seen.iter().all(|row: &Row| row.0 < newest) {
        assert!(WallTime::now() < deadline, "{} rows, {dropped} dropped", seen.len());
        dropped += stalled.text(&mut seen)["dropped"].as_u64().unwrap_or(0);
    }
    assert!(dropped > 0, "200 intervals of 8,000 rows do not fit into a socket");
    collector.writer.close().unwrap();
}

#[test]
fn the_server_ends_while_a_viewer_looks() {
    let served = serve(recording());
    let mut viewer = Viewer::connect(&served);
    viewer.subscribe(&json!({ "table": "load", "columns": ["load_1min"] }));
    viewer.text(&mut Vec::new());
    served.running.stop();
    let mut rest = Vec::new();
    if let MaybeTlsStream::Plain(stream) = viewer.socket.get_mut() {
        // Either a close frame or the end of the connection; both come at once.
        drop(stream.read_to_end(&mut rest));
    }
}
