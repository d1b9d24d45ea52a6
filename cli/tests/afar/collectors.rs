//! Collectors from afar: `meikyo measure --to`, whose recordings the receiver must have, too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arrow::array::AsArray as _;
use arrow::datatypes::TimestampNanosecondType;
use arrow::util::display::array_value_to_string;
use meikyo_recording::{Recording, Selection};
use meikyo_testing::http;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use super::relay::Relay;
use crate::{PATIENCE, Receiver, free_port, next, scratch};

/// Kills and cuts of the short form.
const FAULTS: u64 = 20;

/// How often it is looked whether something is there.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often a receiver is asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How far before and behind a kill rows may be missing: what was on its way to the spool of a machine
/// that others use, too.
const AROUND_A_KILL: Nanos = Nanos::from_secs(3);

/// Simulated agents, and the cluster file that names their cluster.
pub(super) struct Farm {
    child: Child,
    cluster: PathBuf,
}

impl Farm {
    pub(super) fn start(dir: &Path, name: &str, hosts: u32, first: &str) -> Self {
        let dir = dir.join(name);
        std::fs::create_dir(&dir).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_meikyo"))
            .args(["farm", "--port", "0", "--count", &hosts.to_string(), "--first", first])
            .arg("--write-cluster")
            .arg(&dir)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("ready: ")));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let cluster = dir.join("cluster.toml");
        let text = std::fs::read_to_string(&cluster).unwrap();
        let named = text.replace("name = \"simulated\"", &format!("name = \"{name}\""));
        assert_ne!(text, named);
        std::fs::write(&cluster, named).unwrap();
        Self { child, cluster }
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// `meikyo measure --to`.
pub(super) struct Collector {
    command: Vec<String>,
    pub(super) own: PathBuf,
    child: Option<Child>,
    /// When it was killed.
    killed: Vec<WallTime>,
}

impl Collector {
    fn start(dir: &Path, farm: &Farm, name: &str, port: u16) -> Self {
        Self::with(dir, farm, name, port, &[])
    }

    /// One of several of the same devices.
    fn standing_by(dir: &Path, farm: &Farm, name: &str, port: u16) -> Self {
        Self::with(dir, farm, name, port, &["--standby", "--name", &format!("pair:measure@{name}")])
    }

    fn with(dir: &Path, farm: &Farm, name: &str, port: u16, more: &[&str]) -> Self {
        Self::sending(dir, farm, name, &format!("http://127.0.0.1:{port}"), more)
    }

    /// One that sends to whoever answers there.
    pub(super) fn sending(dir: &Path, farm: &Farm, name: &str, to: &str, more: &[&str]) -> Self {
        let own = dir.join(format!("{name}-own"));
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let command = [
            "measure",
            "--quiet",
            "--json",
            "--cluster",
            &path(&farm.cluster),
            "--out",
            &path(&own),
            "--to",
            to,
            "--spool",
            &path(&dir.join(format!("{name}-spool"))),
        ];
        let command = command.iter().map(|word| (*word).to_owned());
        let command = command.chain(more.iter().map(|word| (*word).to_owned())).collect();
        let mut collector = Self { command, own, child: None, killed: Vec::new() };
        collector.spawn();
        collector
    }

    fn spawn(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meikyo"));
        command.args(&self.command).stderr(Stdio::null()).stdout(Stdio::piped());
        self.child = Some(command.spawn().unwrap());
    }

    fn restart(&mut self) {
        self.kill();
        self.spawn();
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        self.killed.push(WallTime::now());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it; what it says of itself.
    fn end(&mut self) -> Value {
        let (said, code) = self.stop();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// Ends it; what it says of itself, and its exit code.
    pub(super) fn stop(&mut self) -> (Value, Option<i32>) {
        let child = self.child.take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
    }

    /// Whether rows of that time may be missing on one side.
    fn was_killed_about(&self, time: WallTime) -> bool {
        self.killed.iter().any(|&at| time >= at.before(AROUND_A_KILL) && time <= at + AROUND_A_KILL)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A test that fails leaves nothing behind.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The newest answer that a recording has; the epoch while it has none.
fn newest(dir: &Path) -> WallTime {
    let span = Recording::open(dir).and_then(|recording| recording.span("polls"));
    span.ok().flatten().map(|(_, newest)| newest).unwrap_or_default()
}

/// Waits until a recording has answers of an instant.
pub(super) fn wait_until(dir: &Path, at: WallTime) {
    let begin = Instant::now();
    while newest(dir) < at {
        assert!(begin.elapsed() < PATIENCE, "{} has nothing of {at}", dir.display());
        // Whoever looks without a pause takes the time of those who are to write it.
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// The rows of a table, counted, by their time.
pub(super) type Rows = BTreeMap<(i64, String), i64>;

pub(super) fn rows(dir: &Path, table: &str) -> Rows {
    let recording = Recording::open(dir).unwrap();
    let mut scan = recording.scan(&Selection::all(table)).unwrap();
    let mut rows = Rows::new();
    for batch in scan.by_ref() {
        let batch = batch.unwrap();
        // In the order of the names: the two recordings may have them in another order.
        let schema = batch.schema();
        let mut names: Vec<&str> = schema.fields().iter().map(|field| &**field.name()).collect();
        names.retain(|name| *name != "time");
        names.sort_unstable();
        let times = batch.column_by_name("time").unwrap();
        let times = times.as_primitive::<TimestampNanosecondType>();
        for row in 0..batch.num_rows() {
            let value = |name: &&str| {
                let column = batch.column_by_name(name).unwrap();
                format!("{name}={}", array_value_to_string(column, row).unwrap())
            };
            let text = names.iter().map(value).collect::<Vec<_>>().join(" ");
            *rows.entry((times.value(row), text)).or_default() += 1;
        }
    }
    assert_eq!(scan.problems(), []);
    rows
}

/// Tables of measurements that both recordings have.
pub(super) const TABLES: [&str; 8] =
    ["polls", "intervals", "batches", "interfaces", "storage", "load", "events", "clocks"];

/// How many rows differ, all of them about kills; panics when others do.
fn compare(collector: &Collector, received: &Path, seed: u64) -> (usize, usize) {
    let (mut all, mut differing) = (0, 0);
    for table in TABLES {
        let (own, mut left) = (rows(&collector.own, table), rows(received, table));
        all += own.len();
        assert!(!own.is_empty(), "{table} of the collector's own recording is empty");
        for (row, count) in own {
            *left.entry(row).or_default() -= count;
        }
        left.retain(|_, count| *count != 0);
        differing += left.len();
        for ((time, text), count) in left {
            assert!(
                collector.was_killed_about(WallTime::from_nanos(time)),
                "SEED={seed}: {table} differs by {count}: {text}"
            );
        }
    }
    (all, differing)
}

/// What gaps of killed collectors reach from and to, ns since the epoch.
fn restarted(dir: &Path) -> Vec<(i64, i64)> {
    let all = rows(dir, "transport_gaps");
    let of_kills = all.keys().filter(|(_, text)| text.contains("reason=restarted"));
    let span = |(from, text): &(i64, String)| {
        let until = text.split(' ').find_map(|word| word.strip_prefix("until_ns=")).unwrap();
        (*from, until.parse().unwrap())
    };
    of_kills.map(span).collect()
}

/// The reasons of gaps that stand in a recording.
fn gaps(dir: &Path) -> Vec<String> {
    let all = rows(dir, "transport_gaps");
    let reason = |(_, text): &(i64, String)| {
        text.split(' ').find_map(|word| word.strip_prefix("reason=")).unwrap().to_owned()
    };
    all.keys().map(reason).collect()
}

#[test]
fn what_collectors_measure_is_row_by_row_at_the_receiver_whatever_breaks() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("MEIKYO_SOAK_SEED").unwrap_or(20_261_126);
    let (seconds, begin) = (number("MEIKYO_SOAK_SECONDS"), Instant::now());
    let mut random = seed | 1;
    let dir = scratch();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let received = |name: &str| recording.join("clusters").join(name);
    let farms = [("west", 20, "127.1.0.1"), ("east", 5, "127.2.0.1")]
        .map(|(name, hosts, first)| (name, Farm::start(dir.path(), name, hosts, first)));
    let mut receiver = Receiver::start(&recording, port, &[]);
    let relay = Relay::start(port);
    let mut collectors = farms
        .each_ref()
        .map(|(name, farm)| (*name, Collector::start(dir.path(), farm, name, relay.port())));
    for fault in 0_u64.. {
        let goes_on = seconds.map_or(fault < FAULTS, |most| begin.elapsed().as_secs() < most);
        if !goes_on {
            break;
        }
        // Only one of the two is killed: the rows of the other are equal to the last one.
        match next(&mut random, 4) {
            0 => collectors[0].1.restart(),
            1 => {
                receiver.kill();
                receiver = Receiver::start(&recording, port, &[]);
            }
            _ => relay.cut(),
        }
        // Sometimes the next fault comes before anything is well again.
        if next(&mut random, 3) > 0 {
            let (name, _) = collectors[usize::try_from(next(&mut random, 2)).unwrap()];
            wait_until(&received(name), WallTime::now());
        }
    }
    for (name, collector) in &mut collectors {
        wait_until(&received(name), WallTime::now());
        let said = collector.end();
        assert_eq!(said["sent"]["blocks_waiting"], 0, "SEED={seed}: {said}");
        assert!(said["sent"]["clock_error_ns"].as_u64().is_some(), "{said}");
    }
    receiver.end();
    for (name, collector) in &collectors {
        let (all, differing) = compare(collector, &received(name), seed);
        let gaps = gaps(&received(name));
        let restarts = gaps.iter().filter(|reason| *reason == "restarted").count();
        for (from, until) in restarted(&received(name)) {
            let is_inside = |at: &WallTime| (from..=until).contains(&at.as_nanos());
            let kills = &collector.killed;
            assert!(kills.iter().any(is_inside), "SEED={seed}: {from} to {until}: {kills:?}");
        }
        assert!(restarts <= collector.killed.len(), "SEED={seed}: {name}: {gaps:?}");
        let is_harmless = |reason: &String| ["restarted", "ended"].contains(&&**reason);
        assert!(gaps.iter().all(is_harmless), "SEED={seed}: {name}: {gaps:?}");
        crate::tell(&format!(
            "SEED={seed}: {name}: {all} rows, {} kills, {differing} rows about them differ",
            collector.killed.len()
        ));
    }
}

/// What a receiver's recording says of the sender's clock, and that nobody can speak to it.
fn look_at_received(own: &Path) {
    let begin = Instant::now();
    let line = loop {
        let query = Command::new(env!("CARGO_BIN_EXE_meikyo"))
            .args(["query", own.to_str().unwrap(), "transport_clocks", "--json"])
            .output()
            .unwrap();
        let said = String::from_utf8(query.stdout).unwrap();
        if let Some(line) = said.lines().next() {
            break line.to_owned();
        }
        assert!(begin.elapsed() < PATIENCE, "the clock was never told");
    };
    let clock: Value = serde_json::from_str(&line).unwrap();
    // Both clocks are this machine's.
    let offset = clock["offset_ns"].as_i64().unwrap().unsigned_abs();
    assert!(offset <= clock["error_ns"].as_u64().unwrap(), "{clock}");
    // What a person says goes to the collector only.
    let mark = Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(["mark", "x", "--recording", own.to_str().unwrap()])
        .output()
        .unwrap();
    let told = String::from_utf8(mark.stderr).unwrap();
    assert!(!mark.status.success() && told.contains("on the machine that measures"), "{told}");
}

/// What a receiver says at a path. Who asks too often is told so, and asks again.
fn get(address: &str, path: &str) -> Value {
    let begin = Instant::now();
    loop {
        let answer = http::ask(address, "GET", path, "").unwrap();
        if answer.status != 429 {
            return serde_json::from_slice(&answer.body)
                .unwrap_or_else(|_| panic!("{path}: {answer:?}"));
        }
        assert!(begin.elapsed() < PATIENCE, "{path}: {answer:?}");
        std::thread::park_timeout(ASK_EVERY);
    }
}

/// Compares what is said of the health of all recordings with what is said of each.
fn compare_health(address: &str, names: &[&str]) {
    let get = |path: &str| get(address, path);
    let (from, to) = (WallTime::now().before(Nanos::from_secs(5)), WallTime::now());
    let [from, to] = [from, to].map(|at| at.as_nanos() / 1_000);
    let span = format!("health?from={from}&to={to}&width=5");
    let all = get(&format!("/api/v1/{span}"));
    let mut recordings: Vec<_> =
        all.as_array().unwrap().iter().map(|of| of["recording"].as_str().unwrap()).collect();
    recordings.sort_unstable();
    assert_eq!(recordings, names, "{all}");
    for of in all.as_array().unwrap() {
        let own = get(&format!("/api/v1/recordings/{}/{span}", of["recording"].as_str().unwrap()));
        // What is measured is not at its end; the bins are those of the span.
        for part in ["from_us", "bin_us"] {
            assert_eq!(of["health"][part], own[part], "{of}");
        }
        let ok = of["health"]["totals"]["ok"].as_u64().unwrap();
        assert!(ok > 0 && ok <= own["totals"]["ok"].as_u64().unwrap(), "{of} {own}");
    }
    let wrong = http::ask(address, "GET", "/api/v1/health?width=none", "").unwrap();
    assert_eq!(wrong.status, 400, "{wrong:?}");
}

/// Says something at a collector, which its receiver hears, too.
fn mark(own: &Path, received: &Path) {
    let mark = Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(["mark", "said at the collector", "--recording"])
        .arg(own)
        .status();
    assert!(mark.unwrap().success());
    let has_mark = |dir: &Path| {
        rows(dir, "events").keys().any(|(_, text)| text.contains("said at the collector"))
    };
    let begin = Instant::now();
    while !has_mark(received) {
        assert!(begin.elapsed() < PATIENCE, "the mark never came");
    }
}

/// What `meikyo top` says of the clusters below a directory, or at an address.
fn look_with_top(at: &str, is_connected: Value) {
    let top = Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(["top", at, "--once", "--json"])
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&top.stdout).unwrap_or_else(|_| panic!("{top:?}"));
    assert!(top.status.success(), "{said}");
    let clusters = said["clusters"].as_array().unwrap();
    let names: Vec<_> = clusters.iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["east", "west"]);
    for of in clusters {
        assert_eq!(of["devices"].as_array().unwrap().len(), 2, "{of}");
        assert!(of["ok"].as_u64().is_some_and(|ok| ok > 0), "{of}");
        let [sender] = &of["senders"].as_array().unwrap()[..] else { panic!("{of}") };
        let is_own = sender["name"].as_str().unwrap().starts_with(of["name"].as_str().unwrap());
        assert!(is_own && sender["active"] == true, "{of}");
        assert_eq!(sender["connected"], is_connected, "{of}");
        assert!(sender["lag_us"].as_u64().is_some_and(|lag| lag < 60_000_000), "{of}");
        assert!(sender["round_trip_us"].as_u64().is_some_and(|trip| trip > 0), "{of}");
    }
}

#[test]
fn a_receiver_shows_clusters_beside_each_other_while_they_are_measured() {
    let dir = scratch();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let receiver = Receiver::start(&recording, port, &[]);
    let farms = [("west", "127.3.0.1"), ("east", "127.4.0.1")];
    let farms = farms.map(|(name, first)| (name, Farm::start(dir.path(), name, 2, first)));
    let mut collectors =
        farms.each_ref().map(|(name, farm)| Collector::start(dir.path(), farm, name, port));
    let address = format!("127.0.0.1:{port}");
    let get = |path: &str| get(&address, path);
    let begin = Instant::now();
    let clusters = ["east", "west"];
    let listed = loop {
        let all = get("/api/v1/recordings");
        let of = |id: &str| all.as_array().unwrap().iter().find(|one| one["id"] == *id).cloned();
        let both = clusters.map(of);
        if let [Some(east), Some(west)] = both
            && [&east, &west].iter().all(|of| of["devices"].as_array().unwrap().len() == 2)
        {
            break [east, west];
        }
        assert!(begin.elapsed() < PATIENCE, "{all}");
    };
    for of in &listed {
        assert_eq!(of["running"], true, "{of}");
        // What the cluster file says of a device is known, too.
        assert_eq!(of["devices"][0]["role"], "host", "{of}");
    }
    for name in clusters {
        let own = recording.join("clusters").join(name);
        wait_until(&own, WallTime::now());
        let path = format!(
            "/api/v1/recordings/{name}/range?table=load&column=load_1min&from=-10s&width=10"
        );
        let begin = Instant::now();
        loop {
            let range = get(&path);
            if range["rows"].as_array().is_some_and(|rows| !rows.is_empty()) {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{range}");
        }
        let begin = Instant::now();
        let sender = loop {
            let senders = get("/api/v1/senders");
            let mut all = senders.as_array().unwrap().iter();
            if let Some(sender) = all.find(|of| of["cluster"] == name && !of["lag_us"].is_null()) {
                break sender.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "{senders}");
        };
        assert_eq!((&sender["connected"], &sender["recording"]), (&true.into(), &name.into()));
        assert!(sender["lag_us"].as_i64().is_some_and(|lag| lag < 60_000_000), "{sender}");
        look_at_received(&own);
    }
    compare_health(&address, &clusters);
    look_with_top(recording.to_str().unwrap(), Value::Null);
    look_with_top(&format!("http://{address}"), true.into());
    mark(&collectors[0].own, &recording.join("clusters/west"));
    collectors.iter_mut().for_each(|collector| drop(collector.end()));
    receiver.end();
}

#[test]
fn without_a_recording_of_its_own_a_collector_measures_for_the_receiver_alone() {
    let dir = scratch();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let receiver = Receiver::start(&recording, port, &[]);
    let farm = Farm::start(dir.path(), "lone", 2, "127.5.0.1");
    let spool = dir.path().join("spool");
    let to = format!("http://127.0.0.1:{port}");
    let measured = Command::new(env!("CARGO_BIN_EXE_meikyo"))
        .args(["measure", "--quiet", "--json", "--for", "3s", "--no-recording", "--to", &to])
        .arg("--cluster")
        .arg(&farm.cluster)
        .arg("--spool")
        .arg(&spool)
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert!(measured.status.success(), "{said}");
    assert!(!dir.path().join("recording").exists());
    assert_eq!((&said["recording"], &said["sent"]["blocks_waiting"]), (&Value::Null, &0.into()));
    receiver.end();
    let polls: i64 = rows(&recording.join("clusters/lone"), "polls").values().sum();
    let ended = ["ok", "late", "missed", "errors", "skipped"].map(|of| said[of].as_i64().unwrap());
    // A device has one PDU here.
    assert_eq!(polls, ended.iter().sum::<i64>(), "{said}");
    assert_eq!(said["rows_kept"].as_u64().map(|rows| rows > 100), Some(true), "{said}");
}

/// A sender as the API tells of it, once it is as wanted.
fn sender_when(address: &str, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let answer = http::ask(address, "GET", "/api/v1/senders", "").unwrap();
        let all: Value = serde_json::from_slice(&answer.body).unwrap();
        let found = all.as_array().and_then(|all| all.iter().find(|of| is_wanted(of)));
        if let Some(found) = found {
            return found.clone();
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: {all}");
        // Who asks too often is told nothing else.
        std::thread::park_timeout(ASK_EVERY);
    }
}

/// The intervals that are there, and that each device of one is there once.
fn taken_once(received: &Path) -> BTreeSet<i64> {
    let mut there: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for ((time, text), count) in rows(received, "polls") {
        assert_eq!(count, 1, "{time} {text}");
        let word = |name: &str| text.split(' ').find(|word| word.starts_with(name)).unwrap();
        there.entry(time).or_default().push(format!("{} {}", word("device="), word("pdu=")));
    }
    for (time, devices) in &mut there {
        let all = devices.len();
        devices.sort();
        devices.dedup();
        assert_eq!(devices.len(), all, "{time} was taken from both");
    }
    there.into_keys().collect()
}

#[test]
fn of_two_collectors_that_are_killed_in_turn_each_interval_is_taken_once() {
    const KILLS: usize = 4;
    let dir = scratch();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let received = recording.join("clusters/pair");
    let farm = Farm::start(dir.path(), "pair", 8, "127.6.0.1");
    let receiver = Receiver::start(&recording, port, &[]);
    let address = format!("127.0.0.1:{port}");
    let named = |which: usize| ["pair:measure@one", "pair:measure@two"][which];
    let mut pair = ["one", "two"].map(|name| Collector::standing_by(dir.path(), &farm, name, port));
    for which in 0..2 {
        let is_here = |of: &Value| of["sender"] == named(which) && !of["lag_us"].is_null();
        sender_when(&address, "both are connected", is_here);
    }
    let mut killed_active = [0; 2];
    for _ in 0..KILLS {
        wait_until(&received, WallTime::now());
        let active = sender_when(&address, "one is active", |of| of["active"] == true);
        assert_eq!(active["identity"], "pair:measure", "{active}");
        let which = usize::from(active["sender"] == named(1));
        killed_active[which] += 1;
        pair[which].kill();
        let is_taken = |of: &Value| of["sender"] == named(1 - which) && of["active"] == true;
        sender_when(&address, "the other one takes over", is_taken);
        wait_until(&received, WallTime::now());
        pair[which].spawn();
        let is_back = |of: &Value| of["sender"] == named(which) && of["connected"] == true;
        let back = sender_when(&address, "the first one is back", is_back);
        assert_eq!(back["active"], false, "nobody is displaced: {back}");
    }
    assert_eq!(killed_active, [KILLS / 2, KILLS / 2], "both were killed while they were active");
    let metrics = loop {
        let answer = http::ask(&address, "GET", "/metrics", "").unwrap();
        if answer.status == 200 {
            break answer.text();
        }
        assert_eq!(answer.status, 429, "{answer:?}");
    };
    for value in [0, 1] {
        let is_it = |line: &str| {
            line.starts_with("meikyo_ingest_sender_active{") && line.ends_with(&format!(" {value}"))
        };
        assert_eq!(metrics.lines().filter(|line| is_it(line)).count(), 1, "{metrics}");
    }
    wait_until(&received, WallTime::now());
    let said = pair.each_mut().map(Collector::end);
    receiver.end();
    for said in &said {
        assert_eq!(said["sent"]["blocks_waiting"], 0, "{said}");
    }
    let there = taken_once(&received);
    let begun = *there.first().unwrap();
    let ended = *there.last().unwrap();
    let measured: BTreeSet<i64> = pair
        .iter()
        .flat_map(|of| rows(&of.own, "polls").into_keys().map(|(time, _)| time))
        .filter(|time| (begun..=ended).contains(time))
        .collect();
    let lost: Vec<i64> = measured.iter().filter(|time| !there.contains(time)).copied().collect();
    assert!(lost.len() <= KILLS, "{lost:?} of {} intervals are lost", measured.len());
    crate::tell(&format!("{} intervals, {} lost about {KILLS} kills", measured.len(), lost.len()));
}
