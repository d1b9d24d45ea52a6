//! Senders of rows, with the transport's own sender: over TLS with a token, and when the server ends.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use meikyo_recording::schema::Role;
use meikyo_recording::{
    Column, ColumnKind, Meaning, PackedRows, Packer, Recording, Selection, TableSchema,
};
use meikyo_server::{Door, Options, Running, hash_token, make_token};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink, UplinkStatus};
use meikyo_transport::wire::Declared;
use meikyo_units::{Nanos, WallTime};
use serde_json::{Value, json};

use crate::client::{Served, client, serve_with};
use crate::live::Viewer;
use crate::recorded::recording;
use crate::tls::certificate;

/// How long anything may take that has to happen.
const PATIENCE: Nanos = Nanos::from_secs(60);

pub(crate) fn table() -> TableSchema {
    TableSchema::new("t", "", vec![Column::new("value", ColumnKind::U64, Meaning::Gauge, "")])
}

pub(crate) fn rows(value: u64) -> PackedRows {
    let mut packer = Packer::new(table());
    packer.batch().begin_row(1_795_294_799_000_000_000);
    packer.batch().put_u64(1, value);
    packer.pack().unwrap()
}

fn uplink(name: &str, target: Target) -> Uplink {
    uplink_of(name, target, table())
}

fn uplink_of(name: &str, target: Target, table: TableSchema) -> Uplink {
    uplink_in(None, name, target, table)
}

fn uplink_in(cluster: Option<&str>, name: &str, target: Target, table: TableSchema) -> Uplink {
    let options = SenderOptions {
        name: name.into(),
        cluster: cluster.map(str::to_owned),
        identity: None,
        boot: 1,
        machine: String::new(),
        streams: vec![Declared { stream: "s".into(), tables: vec![table] }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    Uplink::start(target, options, None).unwrap()
}

/// A server that takes rows over TLS from senders that a token names.
fn taking(dir: &Path, patterns: &str) -> (Running, PathBuf, String) {
    let (tls, token, token_file) = (certificate(dir), make_token(), dir.join("tokens"));
    let line = format!("ingest {patterns} {}\n", hash_token(&token).unwrap());
    std::fs::write(&token_file, line).unwrap();
    let (roots, recording) = (tls.certificate.clone(), dir.join("rec"));
    let options = Options {
        doors: vec![Door::Tcp("0.0.0.0:0".parse().unwrap())],
        tls: Some(tls),
        token_file: Some(token_file),
        ingest: Some(recording.clone()),
        ..Options::on_loopback(&recording)
    };
    (meikyo_server::start(&options).unwrap(), roots, token)
}

fn target(running: &Running, roots: Option<&Path>, token: &str) -> Target {
    let port = running.urls()[0].split('/').nth(2).unwrap().rsplit(':').next().unwrap().to_owned();
    Target {
        authority: format!("localhost:{port}"),
        prefix: String::new(),
        roots: roots.map(Path::to_path_buf),
        token: Some(token.into()),
    }
}

fn trouble(uplink: &Uplink) -> String {
    let is_told = |status: &UplinkStatus| status.trouble.is_some();
    uplink.wait(PATIENCE, is_told).trouble.expect("something is wrong")
}

#[test]
fn rows_come_over_tls_from_whom_the_token_names() {
    let dir = tempfile::tempdir().unwrap();
    let (running, roots, token) = taking(dir.path(), "node*");
    let sender = uplink("node001", target(&running, Some(&roots), &token));
    for value in 0..100 {
        sender.offer("s", rows(value)).unwrap();
    }
    assert!(sender.finish(PATIENCE).is_delivered(), "not everything was delivered");
    // Another sender, without TLS, and with certificates that vouch for somebody else.
    let other = trouble(&uplink("other", target(&running, Some(&roots), &token)));
    assert!(other.contains("the token is for node*, not for `other`"), "{other}");
    let plain = trouble(&uplink("node002", target(&running, None, &token)));
    assert!(plain.contains("connect") || plain.contains("receiver"), "{plain}");
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    let foreign = certificate(&foreign).certificate;
    let unknown = trouble(&uplink("node003", target(&running, Some(&foreign), &token)));
    assert!(unknown.contains("no TLS with `localhost:"), "{unknown}");
    running.stop();
    let recording = Recording::open(&dir.path().join("rec")).unwrap();
    let scan = recording.scan(&Selection::all("t")).unwrap();
    let found: usize = scan.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(found, 100);
}

#[test]
fn a_server_that_ends_says_so_to_its_senders() {
    let dir = tempfile::tempdir().unwrap();
    let (running, roots, token) = taking(dir.path(), "node*");
    let sender = uplink("node001", target(&running, Some(&roots), &token));
    assert!(sender.wait(PATIENCE, |status| status.sender.is_welcome).sender.is_welcome);
    running.stop();
    let said = trouble(&sender);
    assert!(said.contains("the receiver ends; come again"), "{said}");
}

#[test]
fn a_heat_map_shows_the_samples_that_were_sent() {
    const START_S: i64 = 1_795_294_799;
    let dir = tempfile::tempdir().unwrap();
    let taking = dir.path().join("rec");
    let Served { running, address } = serve_with(recording(), |options| {
        options.recordings.push(taking.clone());
        options.ingest = Some(taking.clone());
        options.requests_per_s = NonZeroU32::new(100_000).unwrap();
    });
    let columns = vec![
        Column::new("host", ColumnKind::Symbol, Meaning::Label, ""),
        Column::new("cpu", ColumnKind::U64, Meaning::Gauge, ""),
    ];
    let table = TableSchema::new("samples", "", columns).for_role(Role::Samples);
    let authority = address.clone();
    let target = Target { authority, prefix: String::new(), roots: None, token: None };
    let sender = uplink_of("node001", target, table.clone());
    // In the second `n`, n + 1 samples of CPU 3, all in the tile `n`.
    let mut packer = Packer::new(table);
    for second in 0..50_i64 {
        for _ in 0..=second {
            let host = packer.symbol("node001");
            packer.batch().begin_row((START_S + second) * 1_000_000_000 + second * 20_000_000);
            packer.batch().put_symbol(1, host);
            packer.batch().put_u64(2, 3);
        }
        sender.offer("s", packer.pack().unwrap()).unwrap();
    }
    assert!(sender.finish(PATIENCE).is_delivered(), "not everything was delivered");
    let served = Served { running, address };
    let ask = |query: &str| served.json(&format!("recordings/rec/{query}"));
    let whole = format!("from={START_S}000000&to={}000000", START_S + 50);
    let deadline = WallTime::now() + PATIENCE;
    let map = loop {
        let map = ask(&format!("heat?{whole}"));
        if map["cores"][0]["samples"] == 1_275 {
            break map;
        }
        assert!(WallTime::now() < deadline, "{map}");
    };
    assert_eq!((&map["from_us"], &map["tile_us"]), (&(START_S * 1_000_000).into(), &20_000.into()));
    let numbers = |of: &Value| -> Vec<u64> {
        of.as_array().unwrap().iter().map(|of| of.as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&map["samples"]), (1..=50).collect::<Vec<_>>());
    let tile = |at: u64| if at / 50 == at % 50 { at / 50 + 1 } else { 0 };
    assert_eq!(numbers(&map["tiles"]), (0..2_500).map(tile).collect::<Vec<_>>());
    let cores = ask(&format!("cores?{whole}&host=node*&cpu=3"));
    assert_eq!(numbers(&cores["cores"][0]["seconds"]), (1..=50).collect::<Vec<_>>());
    assert_eq!(ask(&format!("cores?{whole}&cpu=4"))["cores"], Value::Array(Vec::new()));
    let refused = |path: &str| {
        let answer = served.get(&format!("/api/v1/recordings/{path}"));
        (answer.status, answer.text())
    };
    let long = format!("rec/heat?from={START_S}000000&to={}000000", START_S + 7_201);
    assert!(matches!(refused(&long), (400, text) if text.contains("at most 7200")));
    assert!(matches!(refused("rec/heat?cpu=x"), (400, text) if text.contains("`x` is no number")));
    let all = served.json("recordings");
    let ids = all.as_array().unwrap().iter().map(|of| of["id"].as_str().unwrap());
    let other = ids.into_iter().find(|id| *id != "rec").unwrap();
    let (status, text) = refused(&format!("{other}/heat"));
    assert!(status == 404 && text.contains("holds no profile"), "{status} {text}");
}

#[test]
fn a_live_view_counts_as_watching_as_long_as_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let Served { running, address } = serve_with(recording(), |options| {
        options.recordings.push(dir.path().to_path_buf());
        options.ingest = Some(dir.path().to_path_buf());
        options.requests_per_s = NonZeroU32::new(100_000).unwrap();
    });
    let columns = vec![
        Column::new("device", ColumnKind::Symbol, Meaning::Label, ""),
        Column::new("value", ColumnKind::U64, Meaning::Gauge, ""),
    ];
    let table = TableSchema::new("t", "", columns);
    let senders = ["west", "east"].map(|cluster| {
        let authority = address.clone();
        let target = Target { authority, prefix: String::new(), roots: None, token: None };
        let sender = uplink_in(Some(cluster), &format!("{cluster}:a"), target, table.clone());
        let mut packer = Packer::new(table.clone());
        let device = packer.symbol("sw1");
        packer.batch().begin_row(1_795_294_799_000_000_000);
        packer.batch().put_symbol(1, device);
        packer.batch().put_u64(2, 1);
        sender.offer("s", packer.pack().unwrap()).unwrap();
        let is_there = |status: &UplinkStatus| status.sender.acknowledged_blocks > 0;
        assert!(is_there(&sender.wait(PATIENCE, is_there)), "{cluster}: nothing was stored");
        sender
    });
    let served = Served { running, address };
    let ids = served.json("recordings");
    let id_of = |cluster: &str| {
        let mut ids = ids.as_array().unwrap().iter().map(|of| of["id"].as_str().unwrap());
        ids.find(|id| id.ends_with(cluster)).unwrap_or_else(|| panic!("{ids:?}")).to_owned()
    };
    // Rows of this view will not come: only that it is open says that somebody watches.
    let mut viewer = Viewer::connect_from(&served, client(1), &id_of("west")).unwrap();
    viewer.subscribe(&json!({ "table": "t", "columns": ["value"] }));
    assert!(viewer.text(&mut Vec::new()).get("subscribed").is_some());
    let is_watched = |status: &UplinkStatus| status.sender.pace.is_some();
    let [west, east] = senders;
    // A request counts for a while; this one is told twice of who watches while the view stays open.
    for _ in 0..2 {
        served.json(&format!("recordings/{}/health", id_of("east")));
        assert!(is_watched(&east.wait(PATIENCE, is_watched)), "nobody is told of who watches");
        assert!(!is_watched(&east.wait(PATIENCE, |status| !is_watched(status))));
    }
    assert!(is_watched(&west.wait(Nanos::ZERO, |_| true)));
    drop(viewer);
    assert!(!is_watched(&west.wait(PATIENCE, |status| !is_watched(status))));
}
