//! The real Prometheus from Debian scrapes `/metrics`.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use meikyo_recording::{Kind, StreamOptions, StreamWriter};
use meikyo_snmp::tables::{Table, schemas};
use meikyo_testing::http::ask;
use meikyo_units::{Nanos, WallTime};

use crate::client::serve;

struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A cell of a row.
pub(crate) enum Cell {
    Word(&'static str),
    Count(u64),
    Signed(i64),
    Real(f64),
}

use Cell::{Count, Real, Signed, Word};

/// Writes a row of the engine's tables that is due at some time.
pub(crate) fn row(writer: &mut StreamWriter, table: Table, due: WallTime, cells: &[(&str, Cell)]) {
    let schemas = schemas();
    let column = |name: &str| schemas[table.index()].column(name).unwrap();
    let words: Vec<_> = cells
        .iter()
        .map(|(_, cell)| match cell {
            Word(word) => Some(writer.symbol(word)),
            _ => None,
        })
        .collect();
    let mut batch = writer.batch(table.index());
    batch.begin_row(due.as_nanos());
    for ((name, cell), word) in cells.iter().zip(words) {
        match (cell, word) {
            (Word(text), _) if *name == "text" => batch.put_text(column(name), text),
            (Word(_), Some(word)) => batch.put_symbol(column(name), word),
            (Count(value), _) => batch.put_u64(column(name), *value),
            (Signed(value), _) => batch.put_i64(column(name), *value),
            (Real(value), _) => batch.put_f64(column(name), *value),
            (Word(_), None) => unreachable!("every word has its symbol"),
        }
    }
    writer.submit(batch);
}

/// A recording with a writer.
pub(crate) fn recorded(dir: &std::path::Path) -> StreamWriter {
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    StreamWriter::open(dir, Kind::Measured, "snmp", schemas(), options).unwrap()
}

/// One interval of a device that answers, with so many octets, and of one that is dead.
pub(crate) fn interval(writer: &mut StreamWriter, due: WallTime, octets: u64) {
    let alive = || ("device", Word("node\"1"));
    let polled = [alive(), ("state", Word("ok")), ("received_us", Signed(250))];
    row(writer, Table::Polls, due, &polled);
    let dead = [("device", Word("node2")), ("state", Word("missed"))];
    row(writer, Table::Polls, due, &dead);
    let ended = [
        ("devices", Count(2)),
        ("ok", Count(1)),
        ("missed", Count(1)),
        ("interval_us", Count(1_000_000)),
    ];
    row(writer, Table::Intervals, due, &ended);
    let eth0 = [
        alive(),
        ("interface", Word("eth0")),
        ("in_octets", Count(octets)),
        ("out_octets", Count(octets)),
        ("in_errors", Count(octets)),
        ("out_errors", Count(0)),
        ("speed_mbps", Count(1_000)),
    ];
    row(writer, Table::Interfaces, due, &eth0);
    row(writer, Table::Load, due, &[alive(), ("load_1min", Real(0.5))]);
    let ticks = [alive(), ("user_ticks", Count(octets)), ("system_ticks", Count(octets))];
    row(writer, Table::Cpu, due, &ticks);
    let disk = [alive(), ("path", Word("/")), ("available_bytes", Count(4096))];
    row(writer, Table::Storage, due, &disk);
    writer.sync_now().unwrap();
}

/// An alert that is raised.
pub(crate) fn raise(writer: &mut StreamWriter) {
    let raised = [
        ("device", Word("node2")),
        ("event", Word("alert_raised")),
        ("text", Word("silent: no answer for more than 30s")),
    ];
    row(writer, Table::Events, WallTime::now().before(Nanos::from_secs(9)), &raised);
    writer.sync_now().unwrap();
}

/// Two intervals, the newer one a second ago, and an alert.
fn written(dir: &std::path::Path) -> StreamWriter {
    let mut writer = recorded(dir);
    let now = WallTime::now();
    interval(&mut writer, now.before(Nanos::from_secs(2)), 5);
    interval(&mut writer, now.before(Nanos::from_secs(1)), 123_456_789);
    raise(&mut writer);
    writer
}

#[test]
fn metrics_hold_the_newest_value_of_every_series_of_a_running_recording() {
    let dir = tempfile::tempdir().unwrap();
    let writer = written(dir.path());
    let served = serve(dir.path());
    let deadline = WallTime::now() + Nanos::from_secs(30);
    loop {
        let text = served.get("/metrics").text();
        let line = text.lines().find(|line| line.starts_with("meikyo_interfaces_in_bytes_total{"));
        if let Some(line) = line {
            assert!(
                line.contains("device=\"node\\\"1\"") && line.ends_with(" 123456789"),
                "{line}"
            );
            assert!(text.contains("# TYPE meikyo_interfaces_in_bytes_total counter"));
            break;
        }
        assert!(WallTime::now() < deadline, "{text}");
    }
    writer.close().unwrap();
    let text = served.get("/metrics").text();
    assert!(text.contains("meikyo_recording_running") && !text.contains("in_bytes"), "{text}");
}

#[test]
fn a_dead_device_is_told_and_values_are_in_base_units() {
    let dir = tempfile::tempdir().unwrap();
    let writer = written(dir.path());
    let served = serve(dir.path());
    let text = served.get("/metrics").text();
    let value = |metric: &str, label: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(&format!("{metric}{{")));
        let line = lines.find(|line| line.contains(label));
        line.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
    };
    assert_eq!(value("meikyo_device_up", "device=\"node\\\"1\""), Some(1.0), "{text}");
    assert_eq!(value("meikyo_device_up", "device=\"node2\""), Some(0.0), "{text}");
    assert_eq!(value("meikyo_alert", "rule=\"silent\",device=\"node2\""), Some(1.0), "{text}");
    // 1 Gbit/s, in bytes a second; 250 µs; both in one interval each.
    assert_eq!(value("meikyo_interfaces_speed_bytes_per_second", "eth0"), Some(125e6));
    assert_eq!(value("meikyo_polls_received_seconds", "node"), Some(250e-6));
    assert_eq!(value("meikyo_cpu_user_seconds_total", "node"), Some(1_234_567.89));
    assert_eq!(value("meikyo_polls_total", "state=\"ok\""), Some(2.0));
    assert_eq!(value("meikyo_polls_total", "state=\"missed\""), Some(2.0));
    let answered = value("meikyo_device_last_answer_timestamp_seconds", "node").unwrap();
    let age = value("meikyo_device_age_seconds", "node").unwrap();
    let now = WallTime::now().since(WallTime::default()).as_secs_f64();
    assert!(answered < now && age >= 0.9, "answered at {answered}, {age} s old at {now}");
    assert_eq!(value("meikyo_device_last_answer_timestamp_seconds", "node2"), None, "{text}");
    // Beside each table's values stands how old they are.
    for table in ["interfaces", "load", "cpu", "storage"] {
        let label = format!("device=\"node\\\"1\",table=\"{table}\"");
        let age = value("meikyo_reading_age_seconds", &label).unwrap_or_else(|| panic!("{text}"));
        assert!((0.9..=60.0).contains(&age), "{table}: {age}");
    }
    assert_eq!(value("meikyo_reading_age_seconds", "device=\"node2\""), None, "{text}");
    // Asked again, no interval counts twice.
    let text = served.get("/metrics").text();
    assert!(text.contains("state=\"ok\"} 2\n"), "{text}");
    writer.close().unwrap();
}

#[test]
fn promtool_has_nothing_to_say_against_the_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let writer = written(dir.path());
    let text = serve(dir.path()).get("/metrics").text();
    let checked = |text: &str| {
        let mut promtool = Command::new("promtool");
        promtool.args(["check", "metrics"]).stdin(Stdio::piped());
        let mut child = promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        Some((output.status.code(), String::from_utf8(said).unwrap()))
    };
    let Some(said) = checked(&text) else {
        meikyo_testing::lacking("there is no `promtool` here; `apt-get install prometheus`");
        return;
    };
    assert_eq!(said, (Some(0), String::new()), "{text}");
    // It does object to what was wrong with them before.
    let before = "# HELP meikyo_polls_received_us received\n# TYPE meikyo_polls_received_us gauge\n\
                  meikyo_polls_received_us 1\n";
    assert_eq!(checked(before).unwrap().0, Some(3));
    writer.close().unwrap();
}

/// Answers of a Prometheus to an expression: how many series it gives.
fn series_of(port: u16, expression: &str) -> Result<usize, String> {
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("query", expression).finish();
    let path = format!("/api/v1/query?{query}");
    let answer = ask(&format!("127.0.0.1:{port}"), "GET", &path, "");
    let text = answer.map(|answer| answer.text()).unwrap_or_default();
    let answer: serde_json::Value = serde_json::from_str(&text).map_err(|_| text.clone())?;
    if answer["status"] != "success" {
        return Err(text);
    }
    Ok(answer["data"]["result"].as_array().map_or(0, Vec::len))
}

/// Every expression of the dashboard, with its variables filled in as Grafana does for "All".
fn dashboard() -> Vec<String> {
    let text = include_str!("../../../packaging/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    let filled = expressions.map(|expression| {
        let filled = expression.replace("$__rate_interval", "1m");
        filled.replace("$recording", ".*").replace("$device", ".*")
    });
    let all: Vec<String> = filled.collect();
    assert!(all.len() >= 14 && all.iter().all(|of| !of.contains('$')), "{all:?}");
    all
}

#[test]
fn the_real_prometheus_answers_every_query_of_the_dashboard() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        meikyo_testing::lacking("there is no `prometheus` here; `apt-get install prometheus`");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut writer = written(&dir.path().join("recording"));
    let served = serve(&dir.path().join("recording"));
    let config = dir.path().join("prometheus.yml");
    let text = format!(
        "scrape_configs:\n- job_name: meikyo\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
         static_configs:\n  - targets: ['{}']\n",
        served.address
    );
    fs::write(&config, text).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _prometheus = Prometheus(child);
    let mut left = dashboard();
    let begin = WallTime::now();
    let (mut due, mut octets) = (begin, 123_456_789);
    loop {
        let now = WallTime::now();
        if now.since(due) >= Nanos::SECOND {
            (due, octets) = (now, octets + 1_000_000);
            interval(&mut writer, due, octets);
        }
        let mut said = Vec::new();
        left.retain(|expression| match series_of(port, expression) {
            Ok(series) => series == 0,
            Err(text) => {
                said.push(text);
                true
            }
        });
        if left.is_empty() {
            break;
        }
        assert!(now.since(begin) < Nanos::from_secs(120), "no answer to {left:#?}: {said:?}");
    }
    // What is told of each device is what was written.
    assert_eq!(series_of(port, "meikyo_device_up == 0"), Ok(1));
    assert_eq!(series_of(port, "meikyo_device_up == 1"), Ok(1));
    assert_eq!(series_of(port, "meikyo_alert{rule=\"silent\",device=\"node2\"} == 1"), Ok(1));
    writer.close().unwrap();
}

/// A Prometheus that takes what is written to it, with its files in a directory.
fn receiving(dir: &std::path::Path, port: u16) -> Prometheus {
    let config = dir.join("empty.yml");
    fs::write(&config, "").unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--web.enable-remote-write-receiver")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Prometheus(child.unwrap())
}

/// The values of the only series of an expression in the last five minutes: times in ms.
fn values_of(port: u16, expression: &str) -> Vec<(i64, f64)> {
    let query = format!("{expression}[5m]");
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("query", &query).finish();
    let answer = ask(&format!("127.0.0.1:{port}"), "GET", &format!("/api/v1/query?{query}"), "");
    let Ok(answer) = answer else { return Vec::new() };
    let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&answer.body) else {
        return Vec::new();
    };
    let all = answer["data"]["result"].as_array().cloned().unwrap_or_default();
    assert!(all.len() <= 1, "{all:?}");
    let values = all.first().and_then(|series| series["values"].as_array()).cloned();
    let value = |pair: serde_json::Value| {
        let at = (pair[0].as_f64().unwrap() * 1e3).round();
        let at = format!("{at}").parse::<i64>().unwrap();
        (at, pair[1].as_str().unwrap().parse().unwrap())
    };
    values.unwrap_or_default().into_iter().map(value).collect()
}

#[test]
fn the_real_prometheus_has_every_value_that_is_written_to_it_also_after_it_was_away() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        meikyo_testing::lacking("there is no `prometheus` here; `apt-get install prometheus`");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("west");
    let mut writer = recorded(&recording);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/api/v1/write");
    let none = std::path::Path::new("/none");
    let target = meikyo_server::HttpTarget::new(&url, None, none).unwrap();
    let form = meikyo_server::Form::RemoteWrite;
    let options = meikyo_server::OnwardOptions { target, tables: Vec::new(), form };
    let served = crate::client::serve_with(&recording, |of| of.onward = vec![options]);
    let (mut expected, mut octets) = (Vec::new(), 123_456_789);
    let begin = WallTime::now().before(Nanos::from_secs(60)).floor(Nanos::SECOND);
    let mut due = begin;
    let mut write = |writer: &mut StreamWriter, expected: &mut Vec<(i64, f64)>| {
        for _ in 0..20 {
            due = due + Nanos::from_millis(100);
            octets += 1_000_001;
            interval(writer, due, octets);
            let value = format!("{octets}").parse::<f64>().unwrap();
            expected.push((due.as_nanos() / 1_000_000, value));
        }
    };
    // First there is nobody who takes them; then it is killed, and comes back on its files.
    write(&mut writer, &mut expected);
    let series = "meikyo_interfaces_in_bytes_total{recording=\"west\",device=\"node\\\"1\",interface=\"eth0\"}";
    for _ in 0..2 {
        let prometheus = receiving(dir.path(), port);
        let started = WallTime::now();
        loop {
            let found = values_of(port, series);
            if found == expected {
                break;
            }
            let waited = WallTime::now().since(started);
            assert!(waited < Nanos::from_secs(90), "{found:?} is not {expected:?}");
            std::thread::yield_now();
        }
        drop(prometheus);
        write(&mut writer, &mut expected);
    }
    let text = served.get("/metrics").text();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(value("meikyo_remote_write_refused_rows_total"), 0);
    assert_eq!(value("meikyo_remote_write_gone_frames_total"), 0);
    // Each interval has the same values; those of the load are not scaled, and seconds are seconds.
    assert!(value("meikyo_remote_write_rows_total") >= 40 * 10);
    writer.close().unwrap();
}
