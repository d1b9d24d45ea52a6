//! What a collector does to agents and to its own socket, seen from outside: by the agents' truth
//! file, and by an agent of the test's own.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use meikyo_snmp::farm::truth::{self, TruthRecord, TruthRequest};
use meikyo_snmp::farm::{Farm as Agents, FarmOptions, Replies};
use meikyo_snmp::peek_request_id;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::running::{Farm, Process, instant, interrupt, is_ok, meikyo, text};

const INTERVAL: Nanos = Nanos::from_millis(100);

/// The least request id of a poll; walks begin at 1.
const POLL_ID_MIN: i32 = 0x0080_0000;

/// The polls that the agents got.
fn polls(truth: &Path) -> Vec<TruthRequest> {
    let records = truth::read(truth).unwrap().map(Result::unwrap);
    let requests = records.filter_map(|record| match record {
        TruthRecord::Request(request) => Some(request),
        TruthRecord::Event { .. } => None,
    });
    requests.filter(|request| request.request_id >= POLL_ID_MIN).collect()
}

/// The median moment of the interval at which each agent was asked, ms.
fn moments_ms(hosts: u32, arguments: &[&str]) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("truth");
    let mut farm = Farm::start_with(hosts, &["--truth", path.to_str().unwrap()]);
    let output = farm.measure(arguments).output().unwrap();
    assert!(output.status.code() != Some(2), "{}", text(&output));
    farm.end();
    let mut offsets: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for request in polls(&path) {
        let offset = request.received.since(request.received.floor(INTERVAL));
        offsets.entry(request.agent).or_default().push(offset.as_micros() / 1_000);
    }
    assert_eq!(offsets.len(), hosts as usize, "every agent was asked");
    let median = |mut offsets: Vec<u64>| {
        offsets.sort_unstable();
        assert!(offsets.len() > 20, "{} polls", offsets.len());
        offsets[offsets.len() / 2]
    };
    offsets.into_values().map(median).collect()
}

#[test]
fn spread_requests_arrive_all_over_the_interval_and_others_at_once() {
    let spread = moments_ms(40, &["--for", "4s", "--spread"]);
    // One every 2 ms; an interval of a busy machine may begin some ms late. One that could not ask all of them begins
    // the next with another agent.
    let first = (0..spread.len()).min_by_key(|&agent| spread[agent]).unwrap();
    let in_order = spread.iter().cycle().skip(first).take(spread.len());
    let moments = (0_u64..).zip(in_order);
    let in_place = moments.filter(|(at, moment)| (at * 2..at * 2 + 8).contains(moment));
    let in_place = in_place.count();
    assert!(in_place >= 36, "{in_place} of 40 at their moment: {spread:?}");
    let at_once = moments_ms(40, &["--for", "4s"]);
    let early = at_once.iter().filter(|&&moment| moment < 20).count();
    assert!(early >= 36, "{early} of 40 at the beginning: {at_once:?}");
}

#[test]
fn without_the_right_to_a_large_receive_buffer_requests_in_flight_are_capped() {
    let limit: u64 =
        fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    // The kernel grants twice what is asked (socket(7)); an answer of 1,400 octets is charged with a
    // page's half and its head, so this many fit.
    let fitting = usize::try_from(limit * 2 / 2_304).unwrap();
    let hosts = 300;
    if fitting >= hosts {
        return meikyo_testing::skipped("net.core.rmem_max holds the answers of 300 agents");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("truth");
    let truth = ["--truth", path.to_str().unwrap(), "--fault", "delay=20ms"];
    let mut farm = Farm::start_with(300, &truth);
    // Root may force any size; the right to it is taken away where there is one.
    let measure = farm.measure(&["--for", "4s"]);
    let mut confined = Command::new("setpriv");
    confined.arg("--bounding-set=-net_admin").arg(measure.get_program()).args(measure.get_args());
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    let mut measure = if is_root { confined } else { measure };
    let output = measure.output().unwrap();
    assert!(output.status.code() != Some(2), "{}", text(&output));
    farm.end();
    let capped = farm.rows("events").into_iter().filter(|row| row["event"] == "in_flight_capped");
    assert_eq!(capped.count(), 1);
    let mut changes: Vec<(WallTime, i32)> = Vec::new();
    for request in polls(&path) {
        changes.extend([(request.received, 1), (request.sent, -1)]);
    }
    changes.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    assert!(most > 50 && most <= i32::try_from(fitting).unwrap(), "{most} open, {fitting} fit");
    let intervals = farm.rows("intervals");
    assert!(intervals.iter().all(|row| row["socket_drops"] == 0), "answers were dropped");
    let polls = farm.rows("polls");
    let missed: Vec<_> = polls.iter().filter(|row| row["state"] == "missed").collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert!(polls.iter().filter(|row| is_ok(row)).count() > 300 * 10);
}

/// Answers as a simulated agent until the socket is closed. With a listener, it holds a poll back until
/// the collector has asked a second time, tells of it, waits for leave to answer both, and tells that
/// it has.
fn answer(socket: &UdpSocket, mut listener: Option<(Sender<SocketAddr>, Receiver<()>)>) {
    let options = FarmOptions::new(1, 0);
    let address = options.first;
    let (mut agents, mut replies) = (Agents::new(options, WallTime::now()), Replies::new());
    let (mut buffer, mut polls) = ([0; 4096], 0);
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        let is_poll = peek_request_id(&buffer[..length]).is_some_and(|id| id >= POLL_ID_MIN);
        polls += u32::from(is_poll);
        let mut held = vec![buffer[..length].to_vec()];
        let telling = if polls > 20 { listener.take() } else { None };
        if let Some((polled, leave)) = &telling {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            held.push(buffer[..length].to_vec());
            polled.send(from).unwrap();
            leave.recv().unwrap();
        }
        for request in held {
            replies.clear();
            agents.handle(WallTime::now(), address, &request, &mut replies);
            for reply in replies.iter() {
                socket.send_to(reply.bytes, from).unwrap();
            }
        }
        if let Some((answered, _)) = telling {
            answered.send(from).unwrap();
        }
    }
}

fn signal(process: &Process, name: &str) {
    let done = Command::new("kill").args([name, &process.0.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn answers_that_our_own_socket_drops_are_not_blamed_on_the_agent() {
    let farm = Farm::start(1);
    let [first, second] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    fs::write(
        farm.cluster(),
        format!(
            "name = \"two\"\nmeasure = [\"load\"]\n[snmp]\nversion = \"2c\"\n\
             community = \"file:community\"\n[[hosts]]\nname = \"a\"\naddress = \"{}\"\n\
             [[hosts]]\nname = \"b\"\naddress = \"{}\"\n",
            first.local_addr().unwrap(),
            second.local_addr().unwrap()
        ),
    )
    .unwrap();
    let (polled_in, polled) = channel();
    let (leave, leave_out) = channel();
    std::thread::spawn(move || answer(&first, Some((polled_in, leave_out))));
    std::thread::spawn(move || answer(&second, None));
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    // Agent a holds its answers to the first and the second try; the collector stands still while others
    // fill its receive buffer, so that there is no room for either.
    let collector = polled.recv().unwrap();
    signal(&measure, "-STOP");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..20_000 {
        stranger.send_to(&[0; 100], collector).unwrap();
    }
    leave.send(()).unwrap();
    polled.recv().unwrap();
    signal(&measure, "-CONT");
    farm.wait_for("events", 1, |row| row["event"] == "socket_drops");
    // Nobody asks a third time: the interval is missed, for a reason of our own.
    let is_ours = |row: &Value| {
        row["device"] == "a" && row["state"] == "missed" && row["reason"] == "socket_drops"
    };
    farm.wait_for("polls", 1, is_ours);
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().code().is_some());
    let polls = farm.rows("polls");
    assert!(!farm.rows("events").iter().any(|row| row["event"] == "failing"), "nobody failed");
    let drops = farm.rows("events").into_iter().filter(|row| row["event"] == "socket_drops");
    let dropped: u64 = drops.map(|row| row["count"].as_u64().unwrap()).sum();
    assert!(dropped > 1_000, "{dropped} datagrams");
    // It was not backed off for what was not its fault.
    assert!(!polls.iter().any(|row| row["reason"] == "backed_off"));
}

#[test]
fn a_recording_is_read_whole_while_it_is_written() {
    let farm = Farm::start(8);
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("polls", 8, is_ok);
    let verb = |verb: &str| {
        let mut command = meikyo();
        let output = command.args(["recording", verb, "--json"]).arg(farm.recording()).output();
        let output = output.unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    };
    let mut seen: BTreeMap<(String, WallTime), Value> = BTreeMap::new();
    while seen.len() < 8 * 30 {
        let rows = farm.rows("polls");
        let now: BTreeMap<(String, WallTime), Value> = rows
            .iter()
            .map(|row| ((row["device"].to_string(), instant(&row["time"])), row.clone()))
            .collect();
        assert_eq!(now.len(), rows.len(), "no row is there twice");
        assert!(seen.iter().all(|(key, row)| now.get(key) == Some(row)), "rows went or changed");
        let mut last: BTreeMap<&str, WallTime> = BTreeMap::new();
        for (device, time) in now.keys() {
            if let Some(before) = last.insert(device, *time) {
                assert_eq!(time.since(before), INTERVAL, "a hole in the rows of {device}");
            }
        }
        seen = now;
    }
    let (code, check) = verb("check");
    assert_eq!((code, &check["whole"]), (Some(0), &true.into()));
    let (_, info) = verb("info");
    assert_eq!(info["streams"][0]["live"], true);
    let (_, compact) = verb("compact");
    assert_eq!(compact["streams"][0]["live"], true, "its own writer compacts it");
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}
