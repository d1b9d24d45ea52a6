//! Clients that hold what others need: connections, bodies, answers that they do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use meikyo_server::{Options, hash_token, make_token};
use meikyo_testing::http::read_answer;
use meikyo_units::{Nanos, WallTime};

use crate::client::{KeptAlive, Served, client, serve_with};
use crate::recorded::recording;

/// Longer than any test: what holds with it does not hold since somebody waited long enough.
const NEVER: Nanos = Nanos::from_secs(36_000);

/// How long an honest client may have to wait during a siege.
const DEADLINE: Nanos = Nanos::from_secs(10);

/// A server on loopback that asks for a token.
struct Guarded {
    served: Served,
    token: String,
    _dir: tempfile::TempDir,
}

fn guarded(change: impl FnOnce(&mut Options)) -> Guarded {
    let dir = tempfile::tempdir().unwrap();
    let (file, token): (PathBuf, _) = (dir.path().join("tokens"), make_token());
    std::fs::write(&file, hash_token(&token).unwrap()).unwrap();
    let served = serve_with(recording(), |options| {
        options.token_file = Some(file);
        change(options);
    });
    Guarded { served, token, _dir: dir }
}

impl Guarded {
    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    /// Logs in as a browser does, and asks for something.
    fn log_in(&self, from: u8) {
        let begun = WallTime::now();
        let mut stream = self.served.connect_from(client(from));
        let body = format!("token={}", self.token);
        let length = body.len();
        let request = format!(
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let welcome = read_answer(stream);
        assert_eq!(welcome.status, 303, "{}", welcome.text());
        let session = welcome.header("set-cookie").split(';').next().unwrap().to_owned();
        let mut stream = self.served.connect_from(client(from));
        let request = format!(
            "GET /api/v1/recordings HTTP/1.1\r\nHost: localhost\r\nCookie: {session}\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(read_answer(stream).status, 200);
        let took = WallTime::now().since(begun);
        assert!(took < DEADLINE, "127.0.0.{from} waited {took}");
    }
}

/// Room for a siege in this process: both ends of every connection are here.
fn raise_descriptors() {
    let this = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &this, "--nofile=8192:"]).status();
    assert!(raised.unwrap().success(), "8,192 open files are needed: `ulimit -Hn`");
}

/// Begins to send a body that will never be whole.
fn slow_body(served: &Served, from: u8) -> TcpStream {
    let mut stream = served.connect_from(client(from));
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\ntoken=";
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn slow_bodies_from_many_addresses_shut_nobody_out() {
    raise_descriptors();
    let guarded = guarded(|options| {
        (options.limits.body, options.limits.head) = (NEVER, NEVER);
    });
    let served = &guarded.served;
    let mut honest = KeptAlive::new(served.connect_from(client(100)));
    let bearer = guarded.bearer();
    assert!(honest.status("/api/v1/recordings", &bearer) == 200);
    // From one address as many as there are places, then from as many as fill all places.
    let mut siege: Vec<_> = (0..1_024).map(|_| slow_body(served, 2)).collect();
    guarded.log_in(101);
    siege.extend((3..8).flat_map(|from| (0..256).map(move |_| from)).map(|n| slow_body(served, n)));
    let deadline = WallTime::now() + Nanos::from_secs(60);
    while served.metric("connections", &bearer) < 1_000 {
        assert!(WallTime::now() < deadline, "the siege does not fill the server");
    }
    guarded.log_in(102);
    guarded.log_in(2);
    assert!(honest.status("/api/v1/recordings", &bearer) == 200, "who was in stays in");
    assert!(served.closed("displaced", &bearer) >= 1_024 - 256);
    assert_eq!(served.closed("full", &bearer), 0);
    drop(siege);
}

#[test]
fn who_has_shown_a_token_stays_while_strangers_come() {
    let guarded = guarded(|options| {
        options.limits.connections = 16;
        (options.limits.body, options.limits.head) = (NEVER, NEVER);
    });
    let (served, bearer) = (&guarded.served, guarded.bearer());
    let mut honest: Vec<_> =
        (0..4).map(|_| KeptAlive::new(served.connect_from(client(100)))).collect();
    for kept in &mut honest {
        assert_eq!(kept.status("/api/v1/recordings", &bearer), 200);
    }
    // Each from an address of its own, so that none has as many connections as the honest one.
    let siege: Vec<_> = (2..62).map(|from| slow_body(served, from)).collect();
    served.wait_for_closed("displaced", 40, &bearer);
    for kept in &mut honest {
        assert_eq!(kept.status("/api/v1/recordings", &bearer), 200, "who was in stays in");
    }
    drop(siege);
}

#[test]
fn a_body_that_does_not_come_in_time_is_refused_and_counted() {
    let guarded = guarded(|options| options.limits.body = Nanos::from_millis(200));
    let answer = read_answer(slow_body(&guarded.served, 2));
    assert_eq!(answer.status, 408, "{}", answer.text());
    assert_eq!(answer.header("connection"), "close");
    assert_eq!(guarded.served.closed("body", &guarded.bearer()), 1);
    guarded.log_in(2);
}

#[test]
fn a_client_that_says_nothing_is_closed_and_counted() {
    let guarded = guarded(|options| options.limits.head = Nanos::from_millis(300));
    let mut silent = guarded.served.connect_from(client(2));
    let mut half = guarded.served.connect_from(client(3));
    half.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    for stream in [&mut silent, &mut half] {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
    }
    guarded.served.wait_for_closed("head", 2, &guarded.bearer());
}

#[test]
fn a_client_that_reads_nothing_is_closed_and_counted() {
    let served = serve_with(recording(), |options| {
        options.limits.unread = Nanos::from_millis(300);
    });
    let mut stream = served.connect_from(client(2));
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    // Answers of some 50 KB each, more than the system keeps for both ends.
    let ask = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(ask.repeat(800).as_bytes()).unwrap();
    served.wait_for_closed("unread", 1, "");
    let mut rest = Vec::new();
    // What the system held comes, and then the end or a reset.
    drop(stream.read_to_end(&mut rest));
    let answers = rest.windows(12).filter(|octets| octets == b"HTTP/1.1 200").count();
    assert!(answers < 800, "all was sent");
}
