//! Rows sent on to the real `InfluxDB` from Debian, and what it holds afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use meikyo_live::line_protocol::SampleLayout;
use meikyo_profile::STREAM;
use meikyo_profile::tables::{all, samples};
use meikyo_recording::{
    Kind, PackedRows, Packer, Recording, Selection, StreamOptions, StreamWriter, WhenFull,
};
use meikyo_server::{Form, HttpTarget, OnwardOptions};
use meikyo_testing::files::copy_tree;
use meikyo_testing::http::ask;
use meikyo_testing::influxd;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::client::{Served, serve_with};
use crate::recorded;

/// 2026-11-21T20:59:59Z.
const START_NS: i64 = 1_795_294_799_000_000_000;

/// How long anything may take that has to happen.
const PATIENCE: Nanos = Nanos::from_secs(90);

/// An `InfluxDB`; killed when it is dropped.
struct Influxd {
    child: Child,
    port: u16,
}

impl Influxd {
    /// Starts one on its files in a directory, and waits until it answers.
    fn start(dir: &Path, port: u16) -> Self {
        let started = Self { child: influxd::command(dir, port).spawn().unwrap(), port };
        wait_until("InfluxDB answering", || {
            ask(&started.address(), "GET", "/ping", "").is_ok_and(|answer| answer.status == 204)
        });
        started
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Asks in its language; the rows of the first series, empty where there is none.
    fn query(&self, text: &str) -> Vec<Vec<Value>> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("db", "profiles")
            .append_pair("epoch", "ns")
            .append_pair("q", text)
            .finish();
        let answer = ask(&self.address(), "POST", &format!("/query?{query}"), "").unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let series = &body["results"][0]["series"][0]["values"];
        let rows = series.as_array().cloned().unwrap_or_default();
        rows.into_iter().map(|row| row.as_array().unwrap().clone()).collect()
    }

    /// Samples of a CPU: time, host, thread, process, address.
    fn samples_of(&self, cpu: u64) -> Vec<(i64, String, u64, u64, u64)> {
        let rows = self.query(&format!("SELECT host, tid, pid, address FROM CPU{cpu}"));
        let number = |value: &Value| value.as_i64().unwrap().cast_unsigned();
        let row = |row: Vec<Value>| {
            let host = row[1].as_str().unwrap().to_owned();
            (row[0].as_i64().unwrap(), host, number(&row[2]), number(&row[3]), number(&row[4]))
        };
        rows.into_iter().map(row).collect()
    }
}

impl Drop for Influxd {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn is_there() -> bool {
    let is_there = Command::new("influxd").arg("version").output().is_ok();
    if !is_there {
        meikyo_testing::lacking("there is no `influxd` here; `apt-get install influxdb`");
    }
    is_there
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = WallTime::now() + PATIENCE;
    while !holds() {
        assert!(WallTime::now() < deadline, "{what} did not happen");
        // The server refuses who asks more often than its limit says.
        std::thread::park_timeout(Nanos::from_millis(20).to_std());
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a recording on to a port, each CPU a measurement.
fn sending(recording: &Path, port: u16, tables: &[&str]) -> Served {
    let url = format!("http://127.0.0.1:{port}/write?db=profiles");
    let target = HttpTarget::new(&url, None, Path::new("/none")).unwrap();
    let tables = tables.iter().map(|table| (*table).to_owned()).collect();
    let form = Form::Lines(SampleLayout::PerCpu);
    let options = OnwardOptions { target, tables, form };
    serve_with(recording, |served| served.onward = vec![options])
}

fn metric(served: &Served, name: &str) -> u64 {
    let text = served.get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("meikyo_influx_{name} ")));
    line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
}

type Sample = (i64, String, u64, u64, u64);

/// The samples of a (CPU, second), a thousand of them, every seventh in the kernel.
fn samples_of(cpu: u64, second: i64) -> Vec<Sample> {
    let sample = |at: u64| {
        let time = START_NS + second * 1_000_000_000 + at.cast_signed() * 1_000_000;
        let address =
            if at.is_multiple_of(7) { 0xffff_ffff_8100_0000 + at } else { 0x5000 + at % 50 };
        (time + cpu.cast_signed(), "node 1".to_owned(), 100 + at % 3, 100, address)
    };
    (0..1_000).map(sample).collect()
}

fn block(cpu: u64, samples: &[Sample]) -> PackedRows {
    let mut packer = Packer::new(samples::schema());
    for (time, host, tid, pid, address) in samples {
        let host = packer.symbol(host);
        let batch = packer.batch();
        batch.begin_row(*time);
        batch.put(samples::HOST, host);
        batch.put(samples::CPU, cpu);
        batch.put(samples::TID, *tid);
        batch.put(samples::PID, *pid);
        batch.put(samples::ADDRESS, *address);
    }
    packer.pack().unwrap()
}

fn writer(dir: &Path, segment_rows: usize) -> StreamWriter {
    let options = StreamOptions {
        compact: false,
        when_full: WhenFull::Wait,
        segment_rows,
        ..StreamOptions::COLLECTOR
    };
    StreamWriter::open(dir, Kind::Measured, STREAM, all(), options).unwrap()
}

#[test]
fn an_influxdb_holds_every_sample_through_its_own_outages_and_ours() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (recording, files, port) = (dir.path().join("rec"), dir.path().join("influx"), free_port());
    let mut writer = writer(&recording, 1_000_000);
    let mut expected: BTreeMap<u64, Vec<Sample>> = BTreeMap::new();
    let mut write = |writer: &mut StreamWriter, second: i64| {
        for cpu in 0..3 {
            let samples = samples_of(cpu, second);
            writer.packed(block(cpu, &samples)).unwrap();
            expected.entry(cpu).or_default().extend(samples);
        }
        writer.sync_now().unwrap();
        expected.clone()
    };
    write(&mut writer, 0);
    let served = sending(&recording, port, &["samples"]);
    // Nobody listens there; then somebody without the database.
    wait_until("a failure", || metric(&served, "failing") == 1);
    let influxd = Influxd::start(&files, port);
    let failed = metric(&served, "failed_requests_total");
    wait_until("a refusal", || metric(&served, "failed_requests_total") > failed);
    assert_eq!(metric(&served, "refused_rows_total"), 0);
    influxd.query("CREATE DATABASE profiles");
    wait_until("3,000 rows", || metric(&served, "rows_total") == 3_000);
    let all = write(&mut writer, 1);
    wait_until("6,000 rows", || metric(&served, "rows_total") == 6_000);
    for (cpu, samples) in &all {
        assert_eq!(&influxd.samples_of(*cpu), samples, "CPU {cpu}");
    }
    assert_eq!(metric(&served, "failing"), 0);
    // The database is killed while rows come; the server ends and begins meanwhile.
    drop(influxd);
    write(&mut writer, 2);
    wait_until("a failure", || metric(&served, "failing") == 1);
    served.running.stop();
    let all = write(&mut writer, 3);
    let influxd = Influxd::start(&files, port);
    let served = sending(&recording, port, &["samples"]);
    wait_until("6,000 further rows", || metric(&served, "rows_total") == 6_000);
    for (cpu, samples) in &all {
        assert_eq!(&influxd.samples_of(*cpu), samples, "CPU {cpu}");
    }
    let told = ["refused_rows_total", "gone_frames_total"].map(|name| metric(&served, name));
    assert_eq!(told, [0, 0]);
    writer.close().unwrap();
}

/// The segments of the stream, oldest first.
fn segments(recording: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(recording.join("log").join(STREAM)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "log");
    let mut all: Vec<_> = paths.filter(is_segment).collect();
    all.sort();
    all
}

#[test]
fn what_is_refused_and_what_was_deleted_before_it_was_sent_are_counted() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let influxd = Influxd::start(&dir.path().join("influx"), port);
    influxd.query("CREATE DATABASE profiles");
    // In this database an address of CPU 1 is a text.
    let foreign = format!("CPU1 address=\"x\" {START_NS}");
    let written = ask(&influxd.address(), "POST", "/write?db=profiles", &foreign).unwrap();
    assert_eq!(written.status, 204, "{}", written.text());
    let begin = |seconds: std::ops::Range<i64>| {
        // A segment for each pair of blocks.
        let mut writer = writer(&recording, 2_000);
        for second in seconds {
            for cpu in 0..2 {
                writer.packed(block(cpu, &samples_of(cpu, second))).unwrap();
            }
        }
        writer.close().unwrap();
    };
    begin(0..1);
    let served = sending(&recording, port, &[]);
    wait_until("the first second", || {
        metric(&served, "rows_total") + metric(&served, "refused_rows_total") == 2_000
    });
    assert_eq!(metric(&served, "refused_rows_total"), 1_000);
    assert_eq!(influxd.samples_of(0), samples_of(0, 0));
    served.running.stop();
    begin(1..4);
    let before = segments(&recording);
    assert!(before.len() >= 4, "{before:?}");
    // The segment of the second second, as retention takes it.
    fs::remove_file(&before[1]).unwrap();
    let served = sending(&recording, port, &[]);
    wait_until("what is left", || metric(&served, "refused_rows_total") == 2_000);
    wait_until("what is left", || metric(&served, "rows_total") == 2_000);
    let gone = metric(&served, "gone_frames_total");
    assert!(gone >= 1, "{gone} of {before:?}");
    let left: Vec<_> = [0, 2, 3].into_iter().flat_map(|second| samples_of(0, second)).collect();
    assert_eq!(influxd.samples_of(0), left);
}

#[test]
fn frames_that_a_power_cut_took_are_sent_anew_under_their_old_numbers() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (recording, port) = (dir.path().join("rec"), free_port());
    let influxd = Influxd::start(&dir.path().join("influx"), port);
    influxd.query("CREATE DATABASE profiles");
    let mut writer_of = writer(&recording, 1_000_000);
    writer_of.packed(block(0, &samples_of(0, 0))).unwrap();
    writer_of.sync_now().unwrap();
    let kept = fs::metadata(&segments(&recording)[0]).unwrap().len();
    writer_of.packed(block(0, &samples_of(0, 1))).unwrap();
    writer_of.sync_now().unwrap();
    let served = sending(&recording, port, &[]);
    wait_until("2,000 rows", || metric(&served, "rows_total") == 2_000);
    served.running.stop();
    // What a machine leaves whose log was not synced further, while the place of sending was.
    let cut = dir.path().join("cut");
    copy_tree(&recording, &cut).unwrap();
    writer_of.close().unwrap();
    let segment = fs::File::options().write(true).open(&segments(&cut)[0]).unwrap();
    segment.set_len(kept).unwrap();
    let mut again = writer(&cut, 1_000_000);
    again.packed(block(0, &samples_of(0, 2))).unwrap();
    again.sync_now().unwrap();
    let _served = sending(&cut, port, &[]);
    let all: Vec<_> = (0..3).flat_map(|second| samples_of(0, second)).collect();
    wait_until("the third second", || influxd.samples_of(0).len() == all.len());
    assert_eq!(influxd.samples_of(0), all);
    again.close().unwrap();
}

#[test]
fn rows_that_are_compacted_already_come_from_the_files() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (copy, port) = (dir.path().join("rec"), free_port());
    // A place of its own is noted beside the recording.
    copy_tree(recorded::recording(), &copy).unwrap();
    let influxd = Influxd::start(&dir.path().join("influx"), port);
    influxd.query("CREATE DATABASE profiles");
    let _served = sending(&copy, port, &["load", "polls"]);
    let rows = |table: &str| {
        let scan = Recording::open(&copy).unwrap().scan(&Selection::all(table)).unwrap();
        scan.map(|rows| rows.unwrap().num_rows()).sum::<usize>()
    };
    for (table, field) in [("load", "load_1min"), ("polls", "state")] {
        let count = format!("SELECT COUNT({field}) FROM {table}");
        let there = || influxd.query(&count).first().and_then(|row| row[1].as_u64()).unwrap_or(0);
        let expected = rows(table) as u64;
        wait_until(table, || there() >= expected);
        assert_eq!(there(), expected, "{table}");
    }
    assert!(influxd.query("SELECT * FROM interfaces LIMIT 1").is_empty());
}

#[test]
fn every_table_of_a_cluster_that_is_sent_from_afar_goes_on_with_the_clusters_name() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ingest = dir.path().join("rec");
    // What the server makes where there is nothing yet.
    crate::prometheus::recorded(&ingest).close().unwrap();
    let mut writer = crate::prometheus::recorded(&ingest.join("clusters/west"));
    let due = WallTime::now().before(Nanos::from_secs(30)).floor(Nanos::SECOND);
    for number in 0..5 {
        crate::prometheus::interval(&mut writer, due + Nanos::from_secs(number), 1_000 + number);
    }
    let served = dir.path().join("served");
    crate::prometheus::recorded(&served).close().unwrap();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/write?db=profiles");
    let target = HttpTarget::new(&url, None, Path::new("/none")).unwrap();
    let (tables, form) = (Vec::new(), Form::Lines(SampleLayout::OneMeasurement));
    let options = OnwardOptions { target, tables, form };
    let _served = serve_with(&served, |of| {
        of.ingest = Some(ingest.clone());
        of.onward = vec![options];
    });
    let influxd = Influxd::start(&dir.path().join("influx"), port);
    influxd.query("CREATE DATABASE profiles");
    let of_west = "WHERE cluster = 'west'";
    wait_until("all rows of the cluster", || {
        let rows = |table: &str| influxd.query(&format!("SELECT * FROM {table} {of_west}")).len();
        ["interfaces", "load", "cpu", "storage", "intervals"].iter().all(|table| rows(table) == 5)
            && rows("polls") == 10
    });
    let query = format!("SELECT in_octets, device FROM interfaces {of_west}");
    let found = influxd.query(&query);
    for (row, number) in found.iter().zip(0..) {
        let at = (due + Nanos::from_secs(number)).as_nanos();
        assert_eq!(row[0].as_i64(), Some(at), "{row:?}");
        assert_eq!(row[1].as_u64(), Some(1_000 + number), "{row:?}");
        assert_eq!(row[2].as_str(), Some("node\"1"), "{row:?}");
    }
    writer.close().unwrap();
}
