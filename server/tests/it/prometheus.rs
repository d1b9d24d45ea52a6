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
enum Cell {
    Word(&'static str),
    Count(u64),
    Signed(i64),
    Real(f64),
}

use Cell::{Count, Real, Signed, Word};

/// Writes a row of the engine's tables that is due at some time.
fn row(writer: &mut StreamWriter, table: Table, due: WallTime, cells: &[(&str, Cell)]) {
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
fn recorded(dir: &std::path::Path) -> StreamWriter {
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    StreamWriter::open(dir, Kind::Measured, "snmp", schemas(), options).unwrap()
}

/// One interval of a device that answers, with so many octets, and of one that is dead.
fn interval(writer: &mut StreamWriter, due: WallTime, octets: u64) {
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
fn raise(writer: &mut StreamWriter) {
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
