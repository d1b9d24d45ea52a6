//! Who is let in, and what is refused how.

use std::io::Write as _;
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::os::unix::net::{UnixListener, UnixStream};

use argon2::PasswordHasher as _;
use meikyo_server::{Door, Options, StartError, hash_token, make_token};
use meikyo_testing::http::{PATIENCE, read_answer};
use meikyo_units::{Nanos, WallTime};

use crate::client::{client, serve, serve_with};
use crate::recorded::recording;

#[test]
fn a_foreign_host_header_is_refused_and_a_listed_one_is_not() {
    let served = serve_with(recording(), |options| options.hosts.push("cluster.example".into()));
    for (host, status) in [
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("[::1]:8420", 200),
        ("cluster.example", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
    ] {
        let answer = served.ask("GET", "/api/v1/recordings", &format!("Host: {host}\r\n"), "");
        assert_eq!(answer.status, status, "{host}: {}", answer.text());
    }
    let none = served.send(b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!(none.status, 421);
}

#[test]
fn pages_of_other_origins_open_no_socket_and_change_nothing() {
    let served = serve(recording());
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let path = "/api/v1/recordings/x/live";
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let headers = format!("Origin: {origin}\r\n");
        let socket = served.ask("GET", path, &format!("{headers}{upgrade}"), "");
        assert_eq!(socket.status, 403, "{origin}");
        let change = served.ask("POST", "/api/v1/alerts/x/acknowledge", &headers, "");
        assert_eq!(change.status, 403, "{origin}");
    }
    let own = format!("Origin: http://{}\r\n", served.address);
    assert_eq!(served.ask("GET", "/api/v1/recordings", &own, "").status, 200);
}

#[test]
fn a_host_admits_pages_of_its_own_scheme_and_port_only() {
    let served = serve_with(recording(), |options| {
        options.hosts = vec!["https://mon.example".into(), "cluster.example".into()];
    });
    let path = "/api/v1/alerts/x/acknowledge";
    for (host, origin, status) in [
        ("mon.example", "https://mon.example", 404),
        ("127.0.0.1", "https://mon.example", 404),
        ("mon.example", "http://mon.example", 403),
        ("mon.example", "https://mon.example:8443", 403),
        ("cluster.example:8420", "http://cluster.example:8420", 404),
        ("cluster.example:8420", "https://cluster.example:8420", 403),
        ("cluster.example:8420", "http://cluster.example:9999", 403),
        ("cluster.example:8420", "http://cluster.example", 403),
    ] {
        let headers = format!("Host: {host}\r\nOrigin: {origin}\r\n");
        let answer = served.ask("POST", path, &headers, "");
        assert_eq!(answer.status, status, "{host} {origin}: {}", answer.text());
    }
    let refused = served.ask("POST", path, "Origin: https://new.example\r\n", "");
    assert!(refused.text().contains("--host https://new.example"), "{}", refused.text());
}

#[test]
fn a_request_with_two_hosts_or_origins_is_refused() {
    let served = serve_with(recording(), |options| options.hosts.push("cluster.example".into()));
    let ask = |line: &str, headers: &str| {
        let request = format!("GET {line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        served.send(request.as_bytes()).status
    };
    let path = "/api/v1/recordings";
    assert_eq!(ask(path, "Host: localhost\r\n"), 200);
    assert_eq!(ask(path, "Host: localhost\r\nHost: evil.example\r\n"), 400);
    assert_eq!(ask(path, "Host: evil.example\r\nHost: localhost\r\n"), 400);
    assert_eq!(ask(path, "Host: localhost\r\nHost: localhost\r\n"), 400);
    let origins = "Origin: http://localhost\r\nOrigin: http://evil.example\r\n";
    assert_eq!(ask(path, &format!("Host: localhost\r\n{origins}")), 400);
    let absolute = |name: &str| format!("http://{name}{path}");
    assert_eq!(ask(&absolute("cluster.example"), "Host: localhost\r\n"), 200);
    assert_eq!(ask(&absolute("evil.example"), "Host: localhost\r\n"), 421);
    assert_eq!(ask(&absolute("localhost"), "Host: evil.example\r\n"), 421);
}

#[test]
fn a_file_in_the_way_of_a_unix_socket_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.csv");
    std::fs::write(&path, "precious").unwrap();
    let mut options = Options::on_loopback(recording());
    options.doors = vec![Door::Unix(path.clone())];
    let Err(StartError::Listen { source, .. }) = meikyo_server::start(&options) else {
        panic!("there is a file in the way")
    };
    assert!(source.to_string().contains("no socket"), "{source}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_unix_socket_that_somebody_listens_at_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("meikyo.sock");
    let unix = |options: &mut Options| options.doors.push(Door::Unix(path.clone()));
    let first = serve_with(recording(), unix);
    let mut second = Options::on_loopback(recording());
    unix(&mut second);
    assert!(matches!(meikyo_server::start(&second), Err(StartError::Listen { .. })));
    assert!(UnixStream::connect(&path).is_ok(), "the first server goes on");
    first.running.stop();
    assert!(!path.exists());
}

#[test]
fn oversized_requests_are_refused() {
    let served = serve(recording());
    let body = "x".repeat(70_000);
    let answer = served.ask("POST", "/login", "", &body);
    assert_eq!(answer.status, 413, "{}", answer.text());
    let chunked = "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                   Connection: close\r\n\r\n";
    let octets = format!("{chunked}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    assert_eq!(served.send(octets.as_bytes()).status, 413);
    let long = format!("/api/v1/recordings/x/range?table={}", "a".repeat(20_000));
    assert!(matches!(served.get(&long).status, 400 | 404 | 414 | 431));
    let head = format!("X: {}\r\n", "y".repeat(200_000));
    assert_eq!(served.ask("GET", "/", &head, "").status, 431);
}

#[test]
fn tricks_with_paths_lead_nowhere() {
    let served = serve(recording());
    for path in [
        "/../../etc/passwd",
        "/assets/../../Cargo.toml",
        "/..%2f..%2fetc/passwd",
        "/api/v1/recordings/..%2f../range?table=load&column=load_1min",
        "/api/v1/recordings/%2e%2e/series?table=polls",
        "//etc/passwd",
    ] {
        let answer = served.get(path);
        let text = answer.text();
        assert!(!text.contains("root:") && !text.contains("[package]"), "{path}");
        let page = answer.header("content-type").starts_with("text/html");
        assert!(page || (400..500).contains(&answer.status), "{path}: {}", answer.status);
    }
}

#[test]
fn answers_forbid_what_a_page_must_not_do() {
    let served = serve(recording());
    for path in ["/", "/api/v1/recordings", "/nowhere/else"] {
        let answer = served.get(path);
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        // For browsers that know no `frame-ancestors`.
        assert_eq!(answer.header("x-frame-options"), "DENY");
    }
    assert_eq!(served.get("/api/v1/recordings").header("cache-control"), "no-store");
}

#[test]
fn right_tokens_are_no_guesses() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    let tokens: Vec<_> = (0..6).map(|_| make_token()).collect();
    let lines: Vec<_> = tokens.iter().map(|token| hash_token(token).unwrap()).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let served = serve_with(recording(), |options| options.token_file = Some(file));
    let shows = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        served.ask("GET", "/api/v1/recordings", &bearer, "").status
    };
    // All but one of the guesses that a client has.
    for _ in 0..19 {
        assert_eq!(shows("wrong"), 401);
    }
    for token in tokens {
        assert_eq!(shows(&token), 200);
    }
}

#[test]
fn a_token_is_asked_for_when_there_is_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, token) = (dir.path().join("tokens"), make_token());
    std::fs::write(&file, format!("# ours\n{}\n", hash_token(&token).unwrap())).unwrap();
    let served = serve_with(recording(), |options| options.token_file = Some(file));
    let recordings = "/api/v1/recordings";
    assert_eq!(served.get(recordings).status, 401);
    assert_eq!(served.get("/metrics").status, 401);
    let page = served.get("/");
    assert_eq!(page.status, 401);
    assert!(page.text().contains("name=\"token\""));
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    assert_eq!(served.ask("GET", recordings, &bearer("wrong"), "").status, 401);
    assert_eq!(served.ask("GET", recordings, &bearer(&token), "").status, 200);
    let welcome = served.get(&format!("/?token={token}"));
    assert_eq!(welcome.status, 303);
    assert_eq!(welcome.header("location"), "/", "the token is out of the address");
    let cookie = welcome.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let session = cookie.split(';').next().unwrap();
    let cookie = format!("Cookie: a=b; {session}\r\n");
    assert_eq!(served.ask("GET", recordings, &cookie, "").status, 200);
    let forged = "Cookie: meikyo_session=0000\r\n";
    assert_eq!(served.ask("GET", recordings, forged, "").status, 401);
    let login = served.ask("POST", "/login", "", &format!("token={token}"));
    assert_eq!(login.status, 303);
}

#[test]
fn who_guesses_tokens_locks_out_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let (file, tokens) = (dir.path().join("tokens"), [make_token(), make_token()]);
    // Quickly checked, so that no guess comes back before the next one is made.
    let quick = argon2::Params::new(8, 1, 1, None).unwrap();
    let quick = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, quick);
    let hash = |token: &String| {
        quick.hash_password_with_salt(token.as_bytes(), &[7; 16]).unwrap().to_string()
    };
    std::fs::write(&file, tokens.each_ref().map(hash).join("\n")).unwrap();
    let served = serve_with(recording(), |options| options.token_file = Some(file));
    let shown = |from: u8, token: &str| {
        let mut stream = served.connect_from(client(from));
        let request = format!(
            "GET /api/v1/recordings HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(stream)
    };
    assert_eq!(shown(2, &tokens[0]).status, 200);
    let deadline = WallTime::now() + Nanos::from_secs(120);
    let refused = loop {
        let answer = shown(2, &make_token());
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 401);
        assert!(WallTime::now() < deadline, "guessing never ends");
    };
    assert!(matches!(refused.header("retry-after"), "1" | "2" | "3"), "{}", refused.head);
    assert_eq!(shown(2, &tokens[0]).status, 200, "a token that was right before goes on");
    assert_eq!(shown(3, &tokens[1]).status, 200, "and who comes from elsewhere gets in");
    let bearer = format!("Authorization: Bearer {}\r\n", tokens[0]);
    assert!(served.metric("refused_tokens_total", &bearer) >= 1);
}

#[test]
fn who_asks_too_often_waits_and_is_counted() {
    let served = serve_with(recording(), |options| {
        options.requests_per_s = NonZeroU32::new(2).unwrap();
    });
    let path = "/api/v1/openapi.json";
    let answers: Vec<_> = (0..30).map(|_| served.get(path)).collect();
    // Ten at once and two a second meanwhile; the 30 take less than the 10 s that all would need.
    assert!(answers[..10].iter().all(|answer| answer.status == 200));
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), "1");
    assert!(refused.text().contains("--requests-per-second"), "{}", refused.text());
    assert!(refused.header("content-security-policy").starts_with("default-src 'none'"));
    let deadline = WallTime::now() + Nanos::from_secs(30);
    let metrics = loop {
        // Refused until half a second has passed: each refusal costs no room.
        let answer = served.get("/metrics");
        if answer.status == 200 {
            break answer.text();
        }
        assert!(WallTime::now() < deadline, "the room never came back");
    };
    let name = "meikyo_server_refused_requests_total";
    assert!(metrics.contains(&format!("# TYPE {name} counter")), "{metrics}");
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    assert!(line[name.len()..].trim().parse::<f64>().unwrap() >= 1.0, "{line}");
}

#[test]
fn other_addresses_need_tls_and_a_token() {
    let mut options = Options::on_loopback(recording());
    options.doors = vec![Door::Tcp("0.0.0.0:0".parse().unwrap())];
    assert!(matches!(meikyo_server::start(&options), Err(StartError::Unprotected { .. })));
    options.doors = vec![Door::Tcp("127.0.0.1:0".parse().unwrap())];
    options.prefix = "/a/../b".into();
    assert!(matches!(meikyo_server::start(&options), Err(StartError::Prefix { .. })));
}

#[test]
fn a_prefix_stands_before_everything() {
    let served = serve_with(recording(), |options| options.prefix = "/meikyo".into());
    assert_eq!(served.get("/meikyo/api/v1/recordings").status, 200);
    assert_eq!(served.get("/meikyo/").status, 200);
    assert_eq!(served.get("/meikyo/device/node001").status, 200);
    assert_eq!(served.get("/api/v1/recordings").status, 307);
    assert!(served.running.urls()[0].ends_with("/meikyo/"));
}

#[test]
fn a_unix_socket_serves_and_is_gone_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("meikyo.sock");
    // The socket of a server that was killed.
    drop(UnixListener::bind(&path).unwrap());
    let served = serve_with(recording(), |options| {
        options.doors.push(Door::Unix(path.clone()));
    });
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /api/v1/recordings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(read_answer(stream).status, 200);
    let address = served.address.clone();
    served.running.stop();
    assert!(!path.exists());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_answer_is_compressed_for_who_takes_it_so_and_the_same_for_all() {
    let served = serve(recording());
    let path = "/api/v1/openapi.json";
    let plain = served.get(path);
    assert_eq!(plain.header("content-encoding"), "");
    let zstd = served.ask("GET", path, "Accept-Encoding: gzip, zstd\r\n", "");
    assert_eq!(zstd.header("content-encoding"), "zstd");
    assert_eq!(zstd.header("vary"), "accept-encoding");
    assert!(zstd.body.len() * 3 < plain.body.len(), "{} octets", zstd.body.len());
    assert!(zstd::stream::decode_all(zstd.body.as_slice()).unwrap() == plain.body);
    let gzip = served.ask("GET", path, "Accept-Encoding: gzip\r\n", "");
    assert_eq!(gzip.header("content-encoding"), "gzip");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &gzip.body).unwrap();
    let input = std::fs::File::open(file.path()).unwrap();
    let decoded = std::process::Command::new("gzip").arg("-dc").stdin(input).output().unwrap();
    assert!(decoded.stdout == plain.body);
    // A packet holds what is short anyway.
    let short = served.ask("GET", "/api/v1/nothing", "Accept-Encoding: zstd\r\n", "");
    assert_eq!(short.header("content-encoding"), "");
}
