//! The poll core against simulated agents under virtual time: what it recorded is compared with the
//! farm's own truth, from which the state that every interval must have is worked out anew.

mod causes;
mod clock;
mod limits;
mod names;
mod recovery;
mod repeats;

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{DataType, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow::util::display::array_value_to_string;
use meikyo_cluster::{AuthProtocol, Cluster, PrivProtocol};
use meikyo_recording::{Kind, Recording, Selection, StreamOptions, StreamWriter, WhenFull};
use meikyo_snmp::Credentials;
use meikyo_snmp::farm::truth::{self, TruthRecord, TruthRequest, flag};
use meikyo_snmp::farm::{self, Event, Farm, FarmOptions};
use meikyo_snmp::poll::{Pace, PollOptions, Poller, Rows};
use meikyo_snmp::tables::{State, schemas};
use meikyo_snmp::twin::{TRANSIT, Twin};
use meikyo_units::{Nanos, WallTime};

const START: WallTime = WallTime::from_nanos(1_767_225_600_000_000_000);
const INTERVAL: Nanos = Nanos::from_millis(100);

/// The least request id of a poll; walks begin at 1.
const POLL_ID_MIN: i32 = 0x0080_0000;

/// What is measured, and how.
struct Setup {
    options: FarmOptions,
    /// What every device is asked, as in the cluster file.
    measure: &'static str,
    /// Lines of `[snmp]` beside the credentials.
    snmp: &'static str,
    credentials: Credentials,
    /// Devices that are spoken to in another way, by name.
    others: BTreeMap<String, Credentials>,
    pace: Pace,
    in_flight_max: usize,
    /// A cap of requests a second that the cluster file would refuse as too low for the interval.
    rate_max: Option<u32>,
    /// What happens to the agents.
    script: Vec<String>,
}

impl Setup {
    fn new(options: FarmOptions, measure: &'static str) -> Self {
        Self {
            options,
            measure,
            snmp: "",
            credentials: Credentials::V2c { community: b"public".to_vec() },
            others: BTreeMap::new(),
            pace: Pace::AtOnce,
            in_flight_max: usize::MAX,
            rate_max: None,
            script: Vec::new(),
        }
    }

    /// A cluster file for exactly the agents of the farm.
    fn cluster(&self) -> Cluster {
        let (options, measure, snmp) = (&self.options, self.measure, self.snmp);
        // The credentials that count are those of the setup: no secret has to be resolved here.
        let mut text = format!(
            "name = \"farm\"\nmeasure = [{measure}]\n[snmp]\nversion = \"2c\"\n\
             community = \"env:MEIKYO_TEST_COMMUNITY\"\nport = 16100\n{snmp}\n"
        );
        for ordinal in 0..options.agents() {
            let kind = if ordinal < options.hosts { "hosts" } else { "switches" };
            text += &format!(
                "[[{kind}]]\nname = \"{}\"\naddress = \"{}\"\n",
                options.name(ordinal),
                options.address(ordinal)
            );
        }
        meikyo_cluster::parse(&text, Path::new("cluster.toml")).expect("the farm's file is right")
    }

    /// The poll core and the farm, recording into `dir`.
    fn twin(self, dir: &Path) -> Twin {
        let cluster = self.cluster();
        let stream_options =
            StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
        let writer = StreamWriter::open(dir, Kind::Measured, "snmp", schemas(), stream_options)
            .expect("a temporary directory can be written");
        let poll_options =
            PollOptions { pace: self.pace, in_flight_max: self.in_flight_max, real_time: false };
        let poller = Poller::new(START, Rows::new(writer), poll_options);
        let devices = cluster.devices.into_iter();
        let devices = devices.map(|mut device| {
            device.snmp.rate_max = self.rate_max.unwrap_or(device.snmp.rate_max);
            let credentials = self.others.get(&device.name).unwrap_or(&self.credentials).clone();
            (device, credentials)
        });
        let devices = devices.collect();
        let events = self.script.iter().map(|line| Event::parse(line, &self.options));
        let events: Vec<Event> = events.collect::<Result<_, _>>().expect("lines of the script");
        let mut farm = Farm::new(self.options, START);
        farm.schedule(events);
        farm.record_truth();
        Twin::new(START, poller, farm, devices)
    }
}

fn twin(dir: &Path, options: FarmOptions, measure: &'static str) -> Twin {
    Setup::new(options, measure).twin(dir)
}

/// Ends a measurement; what the farm held meanwhile, by agent, polls only.
fn finish(mut twin: Twin) -> BTreeMap<u32, Vec<TruthRequest>> {
    let octets = std::mem::take(twin.farm().truth().expect("the truth is recorded"));
    twin.finish().close().expect("the recording is closed");
    let mut requests: BTreeMap<u32, Vec<TruthRequest>> = BTreeMap::new();
    for record in truth::read_from(octets.as_slice()).expect("the farm writes its own format") {
        if let TruthRecord::Request(request) = record.expect("the farm writes whole records")
            && request.request_id >= POLL_ID_MIN
        {
            requests.entry(request.agent).or_default().push(request);
        }
    }
    requests
}

/// What a row of `polls` says, by (device, due).
type Polls = BTreeMap<(String, i64), (String, Option<i64>)>;

/// A row as texts, by column; nulls are absent, times are ns since the epoch.
type Row = BTreeMap<String, String>;

/// The rows of a table in the order in which they are read.
fn rows(dir: &Path, table: &str) -> Vec<Row> {
    let recording = Recording::open(dir).expect("the recording is there");
    let mut rows = Vec::new();
    for batch in recording.scan(&Selection::all(table)).expect("the table is there") {
        let batch = batch.expect("its files are whole");
        let schema = batch.schema();
        let columns: Vec<_> = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| {
                let numbers = arrow::compute::cast(column, &DataType::Int64);
                let plain = match field.data_type() {
                    DataType::Timestamp(..) => numbers.expect("times are numbers"),
                    _ => column.clone(),
                };
                (field.name().clone(), plain)
            })
            .collect();
        for row in 0..batch.num_rows() {
            let present = columns.iter().filter(|(_, column)| column.is_valid(row));
            let text = |column| array_value_to_string(column, row).expect("a value is text");
            rows.push(present.map(|(name, column)| (name.clone(), text(column))).collect());
        }
    }
    rows
}

/// How often each (state, reason) of `polls` occurs among the rows of a device.
fn endings(rows: &[Row], device: &str) -> BTreeMap<String, usize> {
    let mut endings = BTreeMap::new();
    for row in rows.iter().filter(|row| row["device"] == device) {
        let reason = row.get("reason").map(|reason| format!(" {reason}")).unwrap_or_default();
        *endings.entry(format!("{}{reason}", row["state"])).or_default() += 1;
    }
    endings
}

fn time(row: &Row) -> WallTime {
    WallTime::from_nanos(row["time"].parse().expect("times are numbers"))
}

fn polls(dir: &Path) -> Polls {
    let recording = Recording::open(dir).expect("the recording is there");
    let mut polls = Polls::new();
    for batch in recording.scan(&Selection::all("polls")).expect("the table is there") {
        let batch = batch.expect("its files are whole");
        let column = |name: &str| batch.column_by_name(name).expect("the schema is fixed").clone();
        let (time, received) = (column("time"), column("received_us"));
        let (device, state) = (texts(&column("device")), texts(&column("state")));
        for row in 0..batch.num_rows() {
            let key = (
                device.value(row).to_owned(),
                time.as_primitive::<TimestampNanosecondType>().value(row),
            );
            let received = received.as_primitive::<Int64Type>();
            let received = received.is_valid(row).then(|| received.value(row));
            let state = state.value(row).to_owned();
            assert_eq!(polls.insert(key.clone(), (state, received)), None, "two rows of {key:?}");
        }
    }
    polls
}

/// A column of texts without its dictionary.
fn texts(column: &arrow::array::ArrayRef) -> arrow::array::StringArray {
    let plain = arrow::compute::cast(column, &DataType::Utf8);
    plain.expect("the column holds texts").as_string::<i32>().clone()
}

/// The state that the interval of a request must have, worked out from what the farm did with it.
fn state_due(request: &TruthRequest, due: WallTime, timeout: Nanos) -> State {
    let unanswered = flag::LOST | flag::REQUEST_LOST | flag::WRONG_ID;
    let arrival = request.sent + TRANSIT;
    if request.flags & unanswered != 0 || arrival > request.received + timeout {
        State::Missed
    } else if request.flags & flag::TRUNCATED != 0 || request.error_status != 0 {
        State::Error
    } else if arrival <= due + INTERVAL {
        State::Ok
    } else {
        State::Late
    }
}

#[test]
fn a_healthy_cluster_is_ok_at_every_interval() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut twin = twin(dir.path(), FarmOptions::new(16, 2), "\"interfaces\"");
    twin.run_until(START + Nanos::from_secs(20));
    let states = twin.poller().states();
    assert_eq!(states[State::Ok as usize], 18 * 199, "{states:?}");
    assert_eq!(states.iter().sum::<u64>(), 18 * 199);
    assert_eq!(twin.poller().counts().strays, 0);
    finish(twin);
}

/// 10^6 polls under loss, duplicates, overtaking and late answers.
#[test]
#[expect(clippy::print_stdout, reason = "seed and counts are shown when the test fails")]
fn every_state_and_every_value_is_right_under_faults() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = FarmOptions::new(250, 0);
    options.seed = 20_261_121;
    for fault in
        ["loss=5%", "duplicate=5%", "late=5%", "reorder=5%", "truncate=0.5%", "wrong_id=0.5%"]
    {
        options.faults.set(fault).expect("a fault of the farm");
    }
    println!("seed {} faults {:?}", options.seed, options.faults);
    let names: Vec<String> = (0..250).map(|ordinal| options.name(ordinal)).collect();
    let mut twin = twin(dir.path(), options, "\"interface:eth0(in_octets,out_octets)\"");
    let end = START + Nanos::from_secs(681);
    twin.run_until(end);
    let strays = twin.poller().counts().strays;
    let requests = finish(twin);
    let polls = polls(dir.path());
    let asked = requests.values().map(Vec::len).sum::<usize>();
    assert!(asked >= 1_000_000, "{asked} polls");
    let is_stray = |request: &&TruthRequest| {
        request.flags & (flag::LOST | flag::REQUEST_LOST) == 0
            && request.flags & (flag::DUPLICATED | flag::WRONG_ID) != 0
    };
    let expected = requests.values().flatten().filter(is_stray).count() as u64;
    // A few copies are still under way at the end; a copy of an answer with a wrong id counts twice.
    assert!(strays.abs_diff(expected) * 50 < expected, "{strays} strays, {expected} sent");
    let mut asked = BTreeMap::new();
    for (agent, requests) in &requests {
        for request in requests {
            let due = request.received.floor(INTERVAL);
            asked.insert((names[*agent as usize].clone(), due.as_nanos()), request);
        }
    }
    // Every multiple of the interval, but the one at which it began and the one at which it ended.
    assert_eq!(polls.len(), 250 * (681 * 10 - 1), "one row a device and interval");
    for key in asked.keys() {
        assert!(polls.contains_key(key), "{key:?} was asked and has no row");
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, (state, received)) in &polls {
        let due = WallTime::from_nanos(key.1);
        *counts.entry(state).or_default() += 1;
        let Some(request) = asked.get(key) else {
            assert_eq!(state, "skipped", "{key:?} was not asked");
            continue;
        };
        if request.received + Nanos::from_secs(1) > end && state == "skipped" {
            // Still open when the measurement was ended.
            continue;
        }
        // A device that missed three in a row is waited for half as long, which matters to no
        // answer here: none is that late.
        if request.flags & flag::WRONG_ID != 0 && request.flags & flag::TRUNCATED != 0 {
            // Where the cut takes the wrong id away, the packet is only damaged.
            assert!(state == "error" || state == "missed", "{key:?} {state}");
            continue;
        }
        let expected = state_due(request, due, Nanos::from_secs(1));
        assert_eq!(state, expected.word(), "{key:?} {request:?}");
        if matches!(expected, State::Ok | State::Late) {
            let arrival = (request.sent + TRANSIT).since(due).as_micros();
            assert_eq!(received.map(i64::cast_unsigned), Some(arrival), "{key:?}");
        }
    }
    println!("{counts:?}");
    for state in ["ok", "late", "missed", "error", "skipped"] {
        assert!(counts.contains_key(state), "{state} did not happen");
    }
    let verified = verify_octets(dir.path(), &asked);
    assert!(verified > 1_800_000, "{verified} values compared");
}

/// Compares every kept octet counter with what the farm answered to that very request.
fn verify_octets(dir: &Path, asked: &BTreeMap<(String, i64), &TruthRequest>) -> u64 {
    let recording = Recording::open(dir).expect("the recording is there");
    let mut verified = 0;
    for batch in recording.scan(&Selection::all("interfaces")).expect("the table is there") {
        let batch = batch.expect("its files are whole");
        let column = |name: &str| batch.column_by_name(name).expect("the schema is fixed").clone();
        let (time, device) = (column("time"), texts(&column("device")));
        let columns = [(column("in_octets"), 6), (column("out_octets"), 10)];
        for row in 0..batch.num_rows() {
            let key = (
                device.value(row).to_owned(),
                time.as_primitive::<TimestampNanosecondType>().value(row),
            );
            let request = asked[&key];
            for (values, arc) in &columns {
                let object = request
                    .objects
                    .iter()
                    .position(|object| {
                        object.oid.as_slice().starts_with(&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, *arc])
                            && object.subject == "eth0"
                    })
                    .expect("the request asked for it");
                let kept = values.as_primitive::<UInt64Type>().value(row);
                assert_eq!(kept, request.answered[object], "{key:?}");
                verified += 1;
            }
        }
    }
    verified
}

#[test]
fn interfaces_that_are_renumbered_without_a_restart_are_not_mixed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = FarmOptions::new(4, 0);
    let names: Vec<String> = (0..4).map(|ordinal| options.name(ordinal)).collect();
    let renumber = Event::parse("at 5s renumber node001", &options).expect("a line of the script");
    let mut twin = twin(dir.path(), options, "\"interface:eth0(in_octets,out_octets)\"");
    twin.farm().schedule([renumber]);
    twin.run_until(START + Nanos::from_secs(15));
    let requests = finish(twin);
    let asked = requests.iter().flat_map(|(agent, requests)| {
        let name = &names[*agent as usize];
        requests.iter().map(move |request| {
            ((name.clone(), request.received.floor(INTERVAL).as_nanos()), request)
        })
    });
    let verified = verify_octets(dir.path(), &asked.collect());
    assert!(verified > 4 * 2 * 140, "{verified} values compared");
}
