//! What one request may ask for, and what is done for one client at once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use meikyo_live::replay::SPEED_MAX;
use meikyo_server::{hash_token, make_token};
use meikyo_testing::http::read_answer;
use meikyo_units::{Nanos, WallTime};
use serde_json::{Value, json};

use crate::client::{KeptAlive, client, serve, serve_with};
use crate::live::{Collector, Viewer};
use crate::ranges::id;
use crate::recorded::{START, recording};

#[test]
fn a_request_asks_for_at_most_so_much() {
    let served = serve(recording());
    let recording = format!("/api/v1/recordings/{}", id(&served));
    for (path, most, place) in [
        ("readings?table=load&limit=", 100_000, "limit"),
        ("range?table=load&column=load_1min&width=", 10_000, "width"),
        ("health?width=", 10_000, "width"),
        ("states?width=", 10_000, "width"),
    ] {
        let answer = |number: u32| served.get(&format!("{recording}/{path}{number}"));
        let taken = answer(most);
        assert_eq!(taken.status, 200, "{path}: {}", taken.text());
        let refused = answer(most + 1);
        assert_eq!(refused.status, 400, "{path}");
        let said: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!(said["place"], place, "{said}");
    }
}

#[test]
fn a_viewer_asks_for_at_most_so_much() {
    let served = serve(recording());
    let load = |columns: usize| json!({ "table": "load", "columns": vec!["load_1min"; columns] });
    let every =
        |every_us: u64| json!({ "table": "load", "columns": ["load_1min"], "every_us": every_us });
    let from_us = START.as_nanos() / 1_000;
    let replay = |speed: f64| {
        let replay = json!({ "from_us": from_us, "speed": speed });
        json!({ "table": "load", "columns": ["load_1min"], "replay": replay })
    };
    for (most, more, place) in [
        (load(32), load(33), "columns"),
        (every(3_600_000_000), every(3_600_000_001), "every_us"),
        (replay(SPEED_MAX), replay(SPEED_MAX * 1.001), "replay"),
    ] {
        let mut viewer = Viewer::connect(&served);
        viewer.subscribe(&more);
        let refused = viewer.text(&mut Vec::new());
        assert_eq!(refused["refused"]["place"], place, "{refused}");
        viewer.subscribe(&most);
        let taken = viewer.text(&mut Vec::new());
        assert!(taken.get("subscribed").is_some(), "{taken}");
    }
}

#[test]
fn a_body_that_is_announced_as_too_long_is_refused_before_it_comes() {
    let served = serve(recording());
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: 1000000\r\n\r\n").unwrap();
    assert_eq!(read_answer(stream).status, 413);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let served = serve_with(recording(), |options| {
        options.limits.body = Nanos::from_millis(200);
    });
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken=";
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(stream).status, 408);
    assert_eq!(served.closed("body", ""), 1);
}

#[test]
fn a_token_that_is_too_long_is_no_guess() {
    let dir = tempfile::tempdir().unwrap();
    let (file, token) = (dir.path().join("tokens"), make_token());
    std::fs::write(&file, hash_token(&token).unwrap()).unwrap();
    let served = serve_with(recording(), |options| options.token_file = Some(file));
    let show = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        served.ask("GET", "/api/v1/recordings", &bearer, "").status
    };
    // More than can be guessed in a minute.
    for _ in 0..30 {
        assert_eq!(show(&"a".repeat(257)), 401);
    }
    assert_eq!(show(&token), 200);
}

#[test]
fn a_client_beyond_its_own_connections_displaces_its_own() {
    let served = serve_with(recording(), |options| options.limits.connections_per_client = 4);
    let mut connections: Vec<_> =
        (0..5).map(|_| KeptAlive::new(served.connect_from(client(2)))).collect();
    let mut other = KeptAlive::new(served.connect_from(client(3)));
    assert_eq!(other.status("/api/v1/recordings", ""), 200);
    for connection in &mut connections[1..] {
        assert_eq!(connection.status("/api/v1/recordings", ""), 200);
    }
    served.wait_for_closed("displaced", 1, "");
    assert_eq!(other.status("/api/v1/recordings", ""), 200);
    assert_eq!((served.closed("displaced", ""), served.closed("full", "")), (1, 0));
}

#[test]
fn three_exports_that_nobody_reads_leave_no_room_for_a_fourth_until_one_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 2_000);
    (0..100).for_each(|_| collector.interval());
    collector.writer.sync_now().unwrap();
    let served = serve(dir.path());
    // Its intervals are due sooner than ten times a second.
    let to = collector.newest_us() + 1;
    let id = id(&served);
    let path = format!("/api/v1/recordings/{id}/export?table=interfaces&format=csv&to={to}");
    let mut stalled: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = served.connect_from(client(2));
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream.read_exact(&mut [0; 12]).unwrap();
            stream
        })
        .collect();
    assert_eq!(served.get(&path).status, 503);
    stalled.pop();
    let deadline = WallTime::now() + Nanos::from_secs(60);
    loop {
        let answer = served.get(&path);
        if answer.status == 200 {
            // As much as neither the server nor the kernel keeps for three clients that read nothing.
            assert!(answer.body.len() > 8 << 20, "{} octets", answer.body.len());
            break;
        }
        assert!(WallTime::now() < deadline, "an export that was cut off keeps its place");
    }
}

#[test]
fn a_viewer_gets_no_more_messages_than_a_screen_can_show() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 2);
    collector.interval();
    collector.writer.sync_now().unwrap();
    let served = serve(dir.path());
    let mut viewer = Viewer::of_octets(&served);
    assert!(viewer.text(&mut Vec::new()).get("subscribed").is_some());
    let (begin, mut messages) = (WallTime::now(), 0);
    for _ in 0..100 {
        collector.interval();
        let newest = collector.newest_us();
        loop {
            let told = viewer.text(&mut Vec::new());
            messages += u64::from(told.get("health").is_some());
            if told["health"]["newest_us"].as_i64().is_some_and(|told| told >= newest) {
                break;
            }
        }
    }
    let passed = WallTime::now().since(begin);
    // 30 ms between two.
    let most = passed.get() / Nanos::from_millis(30).get() + 2;
    assert!(messages <= most, "{messages} messages in {passed}");
}

#[test]
fn a_viewer_behind_a_line_that_is_full_gets_what_is_new_and_not_what_waited() {
    let dir = tempfile::tempdir().unwrap();
    let mut collector = Collector::open(dir.path(), 2);
    collector.interval();
    collector.writer.sync_now().unwrap();
    let served = serve(dir.path());
    let mut viewer = Viewer::of_octets(&served);
    // What the line takes is known from the first messages.
    let see = |viewer: &mut Viewer, newest: i64| {
        let (mut rows, mut dropped) = (Vec::new(), 0);
        loop {
            let told = viewer.text(&mut rows);
            dropped += told["dropped"].as_u64().unwrap_or(0);
            if told["health"]["newest_us"].as_i64().is_some_and(|told| told >= newest) {
                return (rows, dropped);
            }
        }
    };
    for _ in 0..5 {
        collector.interval();
        assert_eq!(see(&mut viewer, collector.newest_us()).1, 0);
    }
    // Now he reads nothing, for much longer than a line may take: less than the 2 s behind which steps
    // are left out for everybody.
    for _ in 0..15 {
        collector.interval();
        let begin = WallTime::now();
        while WallTime::now().since(begin) < Nanos::from_millis(40) {
            assert_eq!(served.get("/api/v1/recordings").status, 200);
        }
    }
    let newest = collector.newest_us();
    let (rows, dropped) = see(&mut viewer, newest);
    assert!(dropped > 0, "{} rows", rows.len());
    assert_eq!(rows.last().map(|row| row.0), Some(newest / 1_000));
}
