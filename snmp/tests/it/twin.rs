//! The poll core against simulated agents under virtual time: what it recorded is compared with the
//! farm's own truth, from which the state that every interval must have is worked out anew.

mod causes;
mod clock;
mod limits;
mod loss;
mod names;
mod recovery;
mod refused;
mod repeats;
mod sensors;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, FieldRef, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow::util::display::array_value_to_string;
use meikyo_cluster::{AuthProtocol, Cluster, PrivProtocol};
use meikyo_snmp::Credentials;
use meikyo_snmp::farm::truth::{self, TruthRecord, TruthRequest, flag};
use meikyo_snmp::farm::{self, Event, Farm, FarmOptions};
use meikyo_snmp::poll::{Pace, PollOptions, Poller};
use meikyo_snmp::tables::State;
use meikyo_snmp::twin::{TRANSIT, Twin};
use meikyo_units::{Nanos, WallTime};

use crate::memory::Memory;

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

    /// The poll core and the farm, whose rows stay in `memory`.
    fn twin(self, memory: &Memory) -> Twin<Memory> {
        let cluster = self.cluster();
        let poll_options =
            PollOptions { pace: self.pace, in_flight_max: self.in_flight_max, real_time: false };
        let poller = Poller::new(START, poll_options);
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
        Twin::new(START, poller, memory.clone(), farm, devices)
    }
}

fn twin(memory: &Memory, options: FarmOptions, measure: &'static str) -> Twin<Memory> {
    Setup::new(options, measure).twin(memory)
}

/// Ends a measurement; what the farm held meanwhile, by agent, polls only.
fn finish(mut twin: Twin<Memory>) -> BTreeMap<u32, Vec<TruthRequest>> {
    let octets = std::mem::take(twin.farm().truth().expect("the truth is recorded"));
    twin.finish();
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

/// The rows of a table by time.
fn rows(memory: &Memory, table: &str) -> Vec<Row> {
    let batch = memory.rows(table);
    let plain = |(field, column): (&FieldRef, &ArrayRef)| {
        let plain = match field.data_type() {
            DataType::Timestamp(..) => {
                arrow::compute::cast(column, &DataType::Int64).expect("times are numbers")
            }
            _ => Arc::clone(column),
        };
        (field.name().clone(), plain)
    };
    let schema = batch.schema();
    let columns: Vec<_> = schema.fields().iter().zip(batch.columns()).map(plain).collect();
    let row = |row| {
        let present = columns.iter().filter(|(_, column)| column.is_valid(row));
        let text = |column| array_value_to_string(column, row).expect("a value is text");
        present.map(|(name, column)| (name.clone(), text(column))).collect()
    };
    (0..batch.num_rows()).map(row).collect()
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

fn polls(memory: &Memory) -> Polls {
    let mut polls = Polls::new();
    let batch = memory.rows("polls");
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
    polls
}

/// A column of texts without its dictionary.
fn texts(column: &ArrayRef) -> arrow::array::StringArray {
    let plain = arrow::compute::cast(column, &DataType::Utf8);
    plain.expect("the column holds texts").as_string::<i32>().clone()
}

/// How an interval must have ended, worked out from what the farm did with its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ending {
    state: State,
    /// When the answer that counts arrived.
    received: Option<WallTime>,
    /// Whether a damaged packet came while it was waited for: one that cannot be told from a
    /// damaged answer to the interval before.
    damaged: bool,
}

/// An interval whose request is open, as [`endings_due`] sees it.
#[derive(Debug, Clone, Copy)]
struct OpenInterval {
    due: WallTime,
    asked: WallTime,
    damaged: bool,
}

/// How the intervals of a device must have ended by the documented rules: an answer counts for the
/// interval that asked for it; an answer to a later interval ends the earlier ones; a third open
/// interval ends the oldest; nothing is waited for longer than `timeout`.
fn endings_due(requests: &[TruthRequest], timeout: Nanos) -> BTreeMap<WallTime, Ending> {
    let unanswered = flag::LOST | flag::REQUEST_LOST | flag::WRONG_ID;
    // Departures and arrivals in their order: (when, whether it is an arrival, which request).
    let mut happenings: Vec<(WallTime, bool, usize)> = Vec::new();
    for (position, request) in requests.iter().enumerate() {
        happenings.push((request.received.before(TRANSIT), false, position));
        if request.flags & unanswered == 0 {
            happenings.push((request.sent + TRANSIT, true, position));
        }
    }
    happenings.sort_unstable();
    let mut endings = BTreeMap::new();
    let mut open: Vec<OpenInterval> = Vec::new();
    let mut end = |interval: OpenInterval, received: Option<WallTime>| {
        let state = match received {
            Some(at) if at <= interval.due + INTERVAL => State::Ok,
            Some(_) => State::Late,
            None if interval.damaged => State::Error,
            None => State::Missed,
        };
        let damaged = interval.damaged;
        let earlier = endings.insert(interval.due, Ending { state, received, damaged });
        assert_eq!(earlier, None, "{interval:?} ended twice");
    };
    for (now, is_arrival, position) in happenings {
        let request = &requests[position];
        while open.first().is_some_and(|oldest| oldest.asked + timeout <= now) {
            end(open.remove(0), None);
        }
        let due = request.received.floor(INTERVAL);
        if !is_arrival {
            if open.last().is_some_and(|newest| newest.due == due) {
                continue; // a second try
            }
            if open.last().is_some_and(|newest| newest.damaged) {
                open.drain(..).for_each(|interval| end(interval, None));
            }
            if open.len() == 2 {
                end(open.remove(0), None);
            }
            open.push(OpenInterval { due, asked: now, damaged: false });
        } else if request.flags & flag::TRUNCATED != 0 || request.error_status != 0 {
            open.iter_mut().filter(|interval| interval.due == due).for_each(|it| it.damaged = true);
        } else if let Some(position) = open.iter().position(|interval| interval.due == due) {
            open.drain(..position).for_each(|interval| end(interval, None));
            end(open.remove(0), Some(now));
        }
    }
    endings
}

#[test]
fn a_healthy_cluster_is_ok_at_every_interval() {
    let memory = Memory::default();
    let mut twin = twin(&memory, FarmOptions::new(16, 2), "\"interfaces\"");
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
    let memory = Memory::default();
    let mut options = FarmOptions::new(250, 0);
    options.seed = 20_261_121;
    for fault in
        ["loss=5%", "duplicate=5%", "late=5%", "reorder=5%", "truncate=0.5%", "wrong_id=0.5%"]
    {
        options.faults.set(fault).expect("a fault of the farm");
    }
    println!("seed {} faults {:?}", options.seed, options.faults);
    let names: Vec<String> = (0..250).map(|ordinal| options.name(ordinal)).collect();
    let mut twin = twin(&memory, options, "\"interface:eth0(in_octets,out_octets)\"");
    let end = START + Nanos::from_secs(681);
    twin.run_until(end);
    let counts = twin.poller().counts();
    let requests = finish(twin);
    let polls = polls(&memory);
    let sent = requests.values().map(Vec::len).sum::<usize>();
    assert!(sent >= 1_000_000, "{sent} requests");
    // Every multiple of the interval, but the one at which it began and the one at which it ended.
    assert_eq!(polls.len(), 250 * (681 * 10 - 1), "one row a device and interval");
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    polls.values().for_each(|(state, _)| *states.entry(state).or_default() += 1);
    println!("{states:?}");
    for state in ["ok", "late", "missed", "error"] {
        assert!(states.contains_key(state), "{state} did not happen");
    }
    // Every datagram that arrived was kept, told as unreadable, or a stray.
    let copies = |request: &TruthRequest| match request.flags {
        flags if flags & (flag::LOST | flag::REQUEST_LOST) != 0 => 0,
        flags => 1 + u64::from(flags & flag::DUPLICATED != 0),
    };
    let arrived: u64 = requests.values().flatten().map(copies).sum();
    let taken = states["ok"] + states["late"] + counts.strays + counts.unreadable;
    // A few are still under way at the end.
    assert!(arrived.abs_diff(taken) < 500, "{arrived} arrived, {taken} accounted for");
    let mut kept = BTreeMap::new();
    let mut checked = 0;
    for (agent, requests) in &requests {
        let name = &names[*agent as usize];
        let endings = endings_due(requests, Nanos::from_secs(1));
        checked += check_states(name, requests, &endings, &polls, end);
        for request in requests {
            let due = request.received.floor(INTERVAL);
            let arrival = request.sent + TRANSIT;
            if endings.get(&due).is_some_and(|ending| ending.received == Some(arrival)) {
                kept.insert((name.clone(), due.as_nanos()), request);
            }
        }
        for (device, due) in polls.keys().filter(|(device, _)| device == name) {
            let asked = endings.contains_key(&WallTime::from_nanos(*due));
            let (state, _) = &polls[&(device.clone(), *due)];
            let over = WallTime::from_nanos(*due) + Nanos::from_secs(2) > end;
            assert!(asked || over || state == "skipped", "{device} {due} {state} was not asked");
        }
    }
    assert!(checked > 1_500_000, "{checked} states compared");
    let verified = verify_octets(&memory, &kept);
    assert!(verified > 3_000_000, "{verified} values compared");
}

/// Compares the states and receive times of one agent's intervals with what they must have been;
/// how many there were.
fn check_states(
    name: &str,
    requests: &[TruthRequest],
    endings: &BTreeMap<WallTime, Ending>,
    polls: &Polls,
    end: WallTime,
) -> u64 {
    // Where a cut takes a wrong id away, the packet is only damaged.
    let unclear = |request: &&TruthRequest| {
        request.flags & flag::WRONG_ID != 0 && request.flags & flag::TRUNCATED != 0
    };
    let unclear: BTreeSet<WallTime> =
        requests.iter().filter(unclear).map(|it| it.received.floor(INTERVAL)).collect();
    let mut checked = 0;
    for (due, ending) in endings {
        if *due + Nanos::from_secs(2) > end || unclear.contains(due) {
            continue;
        }
        let key = (name.to_owned(), due.as_nanos());
        let (state, received) = &polls[&key];
        let expected = ending.state.word();
        let doubtful = ["error", "missed"];
        let may_be_damaged = doubtful.contains(&state.as_str()) && doubtful.contains(&expected);
        if !(may_be_damaged && is_near_damage(requests, *due)) {
            assert_eq!(state, expected, "{key:?} {ending:?}");
        }
        let offset = ending.received.map(|at| at.since(*due).as_micros());
        assert_eq!(received.map(i64::cast_unsigned), offset, "{key:?} {ending:?}");
        checked += 1;
    }
    checked
}

/// Whether a damaged packet reached the collector within the second after `due`: whose answer it
/// was cannot be told, if the damage took the request id away.
fn is_near_damage(requests: &[TruthRequest], due: WallTime) -> bool {
    let near = due..due + Nanos::SECOND;
    requests.iter().any(|request| {
        request.flags & flag::TRUNCATED != 0 && near.contains(&(request.sent + TRANSIT))
    })
}

/// Compares every kept octet counter with what the farm answered to that very request.
fn verify_octets(memory: &Memory, asked: &BTreeMap<(String, i64), &TruthRequest>) -> u64 {
    let mut verified = 0;
    let batch = memory.rows("interfaces");
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
    verified
}

#[test]
fn interfaces_that_are_renumbered_without_a_restart_are_not_mixed() {
    let memory = Memory::default();
    let options = FarmOptions::new(4, 0);
    let names: Vec<String> = (0..4).map(|ordinal| options.name(ordinal)).collect();
    let renumber = Event::parse("at 5s renumber node001", &options).expect("a line of the script");
    let mut twin = twin(&memory, options, "\"interface:eth0(in_octets,out_octets)\"");
    twin.farm().schedule([renumber]);
    twin.run_until(START + Nanos::from_secs(15));
    let requests = finish(twin);
    let asked = requests.iter().flat_map(|(agent, requests)| {
        let name = &names[*agent as usize];
        requests.iter().map(move |request| {
            ((name.clone(), request.received.floor(INTERVAL).as_nanos()), request)
        })
    });
    let verified = verify_octets(&memory, &asked.collect());
    assert!(verified > 4 * 2 * 140, "{verified} values compared");
}
