//! Interfaces that are really made and removed under a real `snmpd`, in a network namespace of the
//! test's own: what the collector records is compared with what the kernel says.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command as Program;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use meikyo_recording::{Kind, Recording, Selection, StreamOptions, StreamWriter};
use meikyo_snmp::collector::{Collector, CollectorOptions, Command, Ends, Notice};
use meikyo_snmp::poll::{DeviceSpec, Pace};
use meikyo_snmp::resolver::{self, Job, Outcome};
use meikyo_snmp::system::Waker;
use meikyo_snmp::tables::schemas;
use meikyo_snmp::{Client, ClientOptions, Credentials, resolve};
use meikyo_testing::{lacking, skipped};
use meikyo_units::{Nanos, WallTime};

use crate::snmpd::{Snmpd, installed};

/// Set in the process that runs in the namespace.
const INSIDE: &str = "MEIKYO_TEST_IN_NAMESPACE";

/// How long anything is waited for: net-snmp reads its interfaces every 3 s, and the machine may be
/// busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// `true` in a network namespace of the test's own. Outside of it, runs the test of this name in one
/// and says `false`.
fn in_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        ip("link set lo up");
        return true;
    }
    if !installed("unshare") || !installed("ip") {
        lacking("unshare or ip is not installed (Debian packages util-linux, iproute2)");
        return false;
    }
    let probe = ["-rn", "ip", "link", "add", "one", "type", "veth", "peer", "name", "two"];
    let probe = Program::new("unshare").args(probe).output().unwrap();
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr).trim().to_owned();
        skipped(&format!("no network namespace with veth interfaces here: {why}"));
        return false;
    }
    let inside = Program::new("unshare")
        .arg("-rn")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env(meikyo_testing::TALLIED, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&inside.stdout).into_owned();
    let reason = |word| text.lines().find_map(|line| line.trim().strip_prefix(word));
    if let Some(reason) = reason("LACKING: ") {
        lacking(reason);
    } else if let Some(reason) = reason("SKIPPED: ") {
        skipped(reason);
    }
    let errors = String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success(), "in the namespace: {text}\n{errors}");
    false
}

fn ip(arguments: &str) -> String {
    let output = Program::new("ip").args(arguments.split(' ')).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ip {arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a pair of veth interfaces that are up.
fn make_pair(name: &str, peer: &str) {
    ip(&format!("link add {name} type veth peer name {peer}"));
    for end in [name, peer] {
        ip(&format!("link set {end} up"));
    }
}

/// The kernel's index of an interface.
fn kernel_index(name: &str) -> u32 {
    let line = ip(&format!("-o link show dev {name}"));
    line.split(':').next().unwrap().trim().parse().unwrap()
}

/// Octets that the kernel has sent on an interface.
fn kernel_out_octets(name: &str) -> u64 {
    let counters = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    let line = counters.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}:")));
    line.unwrap().split_whitespace().nth(8).unwrap().parse().unwrap()
}

/// A collector with one device, and the thread that resolves its names.
struct Measuring {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    collector: std::thread::JoinHandle<StreamWriter>,
    attending: std::thread::JoinHandle<()>,
}

impl Measuring {
    fn start(dir: &Path, device: &meikyo_cluster::Device, credentials: &Credentials) -> Self {
        let writer =
            StreamWriter::open(dir, Kind::Measured, "snmp", schemas(), StreamOptions::COLLECTOR);
        let (commands, taken) = channel();
        let (notices_in, notices) = channel();
        let (status, _) = sync_channel(1);
        let waker = Arc::new(Waker::new().unwrap());
        let collector = Collector::new(
            writer.unwrap(),
            &[DeviceSpec::new(device, credentials.clone())],
            CollectorOptions { pace: Pace::AtOnce, realtime: false },
            "here",
            Ends { commands: taken, notices: notices_in, status, waker: Arc::clone(&waker) },
        );
        let collector = collector.unwrap().start().unwrap();
        let job = Job { ordinal: 0, device: device.clone(), credentials: credentials.clone() };
        let (answers, waking) = (commands.clone(), Arc::clone(&waker));
        let attending = std::thread::spawn(move || attend(&notices, &answers, &waking, &job));
        Self { commands, waker, collector, attending }
    }

    fn finish(self) {
        self.commands.send(Command::Stop).unwrap();
        self.waker.wake();
        self.collector.join().unwrap().close().unwrap();
        self.attending.join().unwrap();
    }
}

/// Resolves the names whenever the collector asks for it, until it has ended.
fn attend(notices: &Receiver<Notice>, commands: &Sender<Command>, waker: &Waker, job: &Job) {
    let (jobs, taken) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut report = |Outcome { ordinal, result }| {
                let command = match result {
                    Ok((plan, problems)) => {
                        let problems = problems.iter().map(ToString::to_string).collect();
                        Command::Resolved { ordinal, plan, problems }
                    }
                    Err(error) => Command::Unresolved { ordinal, problem: error.to_string() },
                };
                if commands.send(command).is_ok() {
                    waker.wake();
                }
            };
            resolver::run(&taken, resolver::OPTIONS, &mut report).unwrap();
        });
        for notice in notices {
            if let Notice::Resolve(ordinal) = notice {
                let (device, credentials) = (job.device.clone(), job.credentials.clone());
                jobs.send(Job { ordinal, device, credentials }).unwrap();
            }
        }
        drop(jobs);
    });
}

/// A row of the recording.
struct Line {
    at: WallTime,
    texts: [String; 2],
    /// The last column that is read, if it is a number, and as a text.
    number: Option<u64>,
    last: String,
}

/// What the recording holds of some columns, in the order of time.
fn read(dir: &Path, table: &str, texts: [&str; 2], last: &str) -> Vec<Line> {
    let Ok(recording) = Recording::open(dir) else { return Vec::new() };
    let Ok(batches) = recording.scan(&Selection::all(table)) else { return Vec::new() };
    let mut rows = Vec::new();
    for batch in batches.map_while(Result::ok) {
        let column = |name: &str| batch.column_by_name(name).unwrap().clone();
        let plain = |name: &str| arrow::compute::cast(&column(name), &DataType::Utf8).unwrap();
        let time = arrow::compute::cast(&column("time"), &DataType::Int64).unwrap();
        let texts = texts.map(plain);
        let number = arrow::compute::cast(&column(last), &DataType::UInt64);
        let words = arrow::compute::cast(&column(last), &DataType::Utf8).unwrap();
        for row in 0..batch.num_rows() {
            let text = |column: &arrow::array::ArrayRef| {
                let column = column.as_string::<i32>();
                if column.is_valid(row) { column.value(row).to_owned() } else { String::new() }
            };
            let number = number.as_ref().ok().map(|column| column.as_primitive::<UInt64Type>());
            let number =
                number.filter(|column| column.is_valid(row)).map(|column| column.value(row));
            let at = WallTime::from_nanos(time.as_primitive::<Int64Type>().value(row));
            let texts = [text(&texts[0]), text(&texts[1])];
            rows.push(Line { at, texts, number, last: text(&words) });
        }
    }
    rows.sort_by_key(|row| row.at);
    rows
}

/// The texts of the events with their times.
fn events(dir: &Path) -> Vec<(WallTime, String)> {
    let rows = read(dir, "events", ["event", "object"], "text");
    rows.into_iter().map(|line| (line.at, line.last)).collect()
}

/// Waits for an event of this text and returns when it was.
fn wait_for_event(dir: &Path, text: &str) -> WallTime {
    wait(&format!("the event `{text}`"), || {
        events(dir).into_iter().find(|event| event.1 == text).map(|event| event.0)
    })
}

/// Waits until something is there.
#[expect(clippy::disallowed_methods, reason = "a real agent in real time")]
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come in {PATIENCE:?}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// The last octets that were recorded of every interface.
fn out_octets(dir: &Path) -> BTreeMap<String, u64> {
    let rows = read(dir, "interfaces", ["device", "interface"], "out_octets");
    rows.into_iter()
        .filter_map(|Line { texts: [_, name], number, .. }| Some((name, number?)))
        .collect()
}

/// Sends something on an interface, which is answered by nobody.
fn send_on(name: &str, address: &str) {
    ip(&format!("addr add {address}/24 dev {name}"));
    let neighbour = address.rsplit_once('.').unwrap().0.to_owned() + ".77";
    ip(&format!("neigh replace {neighbour} lladdr 02:00:00:00:00:77 dev {name}"));
    let socket = std::net::UdpSocket::bind((address, 0)).unwrap();
    for _ in 0..100 {
        socket.send_to(&[0; 1000], (neighbour.as_str(), 9)).unwrap();
    }
}

#[test]
fn interfaces_that_are_made_again_or_new_are_measured_and_told() {
    let own = "snmpd_names::interfaces_that_are_made_again_or_new_are_measured_and_told";
    if !in_namespace(own) {
        return;
    }
    make_pair("tst0", "peer0");
    // Deleted interfaces are forgotten after 20 s in place of five minutes.
    let lines = "rocommunity public\ninterface_fadeout 20\n";
    let Some(agent) = Snmpd::start_with(lines, Ipv4Addr::LOCALHOST) else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = format!(
        "name = \"one\"\nmeasure = [\"interfaces(in_octets,out_octets,oper_status)\"]\n\
         [snmp]\ninterval = \"200ms\"\nversion = \"2c\"\ncommunity = \"env:UNUSED\"\n\
         [[hosts]]\nname = \"node1\"\naddress = \"{}\"\n",
        agent.address
    );
    let cluster = meikyo_cluster::parse(&file, Path::new("cluster.toml")).unwrap();
    let device = &cluster.devices[0];
    let credentials = Credentials::V2c { community: b"public".to_vec() };
    let measuring = Measuring::start(dir.path(), device, &credentials);
    wait("rows of tst0", || out_octets(dir.path()).get("tst0").copied());

    // Made again under another index.
    let was = kernel_index("tst0");
    ip("link del tst0");
    ip("link add spare type veth peer name other");
    make_pair("tst0", "peer0");
    let made = WallTime::now();
    let index = kernel_index("tst0");
    assert_ne!(index, was);
    let text = format!("interface `tst0` is renumbered: at ifIndex {index}, was {was}");
    let told = wait_for_event(dir.path(), &text);
    let noticed = told.since(made);
    send_on("tst0", "10.77.0.1");
    let sent = kernel_out_octets("tst0");
    assert!(sent > 100_000, "{sent} octets sent");
    wait("the octets that the kernel has sent", || {
        out_octets(dir.path()).get("tst0").copied().filter(|&octets| octets >= sent)
    });

    // Started beside the remnant, a measurement finds the living row too.
    let mut client = Client::connect(
        agent.address,
        credentials,
        ClientOptions { timeout: Nanos::SECOND, retries: 3 },
    )
    .unwrap();
    let mut walked = Vec::new();
    for subtree in resolve::walks_for(device) {
        walked.extend(client.walk(&subtree).unwrap());
    }
    let (plan, problems) = resolve::plan(device, &walked);
    assert_eq!(problems, []);
    let row = plan.rows.iter().find(|row| row.instance.as_deref() == Some("tst0")).unwrap();
    assert_eq!(row.guard.as_ref().unwrap().oid.as_slice().last(), Some(&index));
    assert!(plan.remarks.iter().any(|remark| remark.contains("`tst0`")), "{:?}", plan.remarks);

    // New, and gone when the agent forgets it.
    make_pair("veth1", "veth2");
    let added = WallTime::now();
    let told = wait_for_event(dir.path(), "new interface `veth1`");
    let found = told.since(added);
    wait("rows of veth1", || out_octets(dir.path()).get("veth1").copied());
    ip("link del veth1");
    wait_for_event(dir.path(), "interface `veth1` is gone");
    measuring.finish();
    // Ten seconds are promised; a busy machine gets as many more.
    let most = Nanos::from_secs(20);
    assert!(noticed < most && found < most, "made again: {noticed}; new: {found}");
}
