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

/// A recording with a writer, and the values of one device in it now.
fn written(dir: &std::path::Path) -> StreamWriter {
    let schemas = schemas();
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir, Kind::Measured, "snmp", schemas.clone(), options).unwrap();
    let (device, eth0) = (writer.symbol("node\"1"), writer.symbol("eth0"));
    let mut batch = writer.batch(Table::Interfaces.index());
    let column = |name: &str| schemas[Table::Interfaces.index()].column(name).unwrap();
    for (second, octets) in [(2, 5_u64), (1, 123_456_789)] {
        batch.begin_row(WallTime::now().before(Nanos::from_secs(second)).as_nanos());
        batch.put_symbol(column("device"), device);
        batch.put_symbol(column("interface"), eth0);
        batch.put_u64(column("in_octets"), octets);
    }
    writer.submit(batch);
    writer.sync_now().unwrap();
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
        let line = text.lines().find(|line| line.starts_with("meikyo_interfaces_in_octets_total{"));
        if let Some(line) = line {
            assert!(
                line.contains("device=\"node\\\"1\"") && line.ends_with(" 123456789"),
                "{line}"
            );
            assert!(text.contains("# TYPE meikyo_interfaces_in_octets_total counter"));
            break;
        }
        assert!(WallTime::now() < deadline, "{text}");
    }
    writer.close().unwrap();
    let text = served.get("/metrics").text();
    assert!(text.contains("meikyo_recording_running") && !text.contains("in_octets"), "{text}");
}

#[test]
fn the_real_prometheus_takes_the_values() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        meikyo_testing::lacking("there is no `prometheus` here; `apt-get install prometheus`");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let writer = written(&dir.path().join("recording"));
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
    let deadline = WallTime::now() + Nanos::from_secs(60);
    loop {
        let path = "/api/v1/query?query=meikyo_interfaces_in_octets_total";
        let answer = ask(&format!("127.0.0.1:{port}"), "GET", path, "");
        let answer = answer.map(|answer| answer.text()).unwrap_or_default();
        if answer.contains("123456789") && answer.contains("eth0") {
            break;
        }
        assert!(WallTime::now() < deadline, "{answer}");
    }
    writer.close().unwrap();
}
