//! Alerts told to a web hook and to a real mail server.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use meikyo_server::{HttpTarget, MailTarget, NotifyOptions, Recipient};
use meikyo_snmp::tables::Table;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::client::serve_with;
use crate::prometheus::{Cell, interval, raise, recorded, row};

/// How long anything may take that has to happen.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Debian's Python, which has the mail server.
const PYTHON: &str = "/usr/bin/python3";

/// A server of HTTP that prints what is posted to it, a document a line. It does not take the first one.
const HOOK: &str = r#"
import http.server, sys
seen = []
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen.append(body)
        self.send_response(503 if len(seen) == 1 else 200)
        self.end_headers()
        if len(seen) > 1:
            print(body.decode(), flush=True)
    def log_message(self, *args): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Hook).serve_forever()
"#;

/// A server's process, and the lines that it prints.
struct Server {
    child: Child,
    lines: Receiver<String>,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(PYTHON)
            .arg("-u")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (told, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE.to_std()).expect("the server was told nothing")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn options(to: Recipient) -> NotifyOptions {
    NotifyOptions { to, group_wait: Nanos::from_millis(200), repeat_every: Nanos::from_secs(3) }
}

/// A recording `west` with an alert that is raised, and what clears it.
fn clear(writer: &mut meikyo_recording::StreamWriter) {
    let cleared = [
        ("device", Cell::Word("node2")),
        ("event", Cell::Word("alert_cleared")),
        ("text", Cell::Word("silent: it answers again")),
    ];
    row(writer, Table::Events, WallTime::now(), &cleared);
    writer.sync_now().unwrap();
}

#[test]
fn a_web_hook_is_told_what_is_raised_what_lasts_and_what_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("west");
    let mut writer = recorded(&recording);
    interval(&mut writer, WallTime::now(), 1);
    raise(&mut writer);
    let port = free_port();
    let hook = Server::start(&["-c", HOOK, &port.to_string()]);
    let url = format!("http://127.0.0.1:{port}/alerts");
    let target = HttpTarget::new(&url, None, std::path::Path::new("/none")).unwrap();
    let served = serve_with(&recording, |of| of.notify = vec![options(Recipient::Hook(target))]);
    let told = || serde_json::from_str::<Value>(&hook.line()).unwrap();
    let first = told();
    assert_eq!(
        (&first["version"], &first["recording"], &first["rule"], &first["status"]),
        (&1.into(), &"west".into(), &"silent".into(), &"raised".into()),
        "{first}"
    );
    assert_eq!(first["raised"][0]["device"], "node2", "{first}");
    assert_eq!(first["raised"][0]["text"], "silent: no answer for more than 30s", "{first}");
    assert_eq!(told()["status"], "repeated");
    clear(&mut writer);
    let last = loop {
        let told = told();
        if told["status"] != "repeated" {
            break told;
        }
    };
    assert_eq!(last["status"], "resolved", "{last}");
    assert_eq!(last["resolved"][0]["device"], "node2", "{last}");
    assert!(last["resolved"][0]["cleared_us"].is_i64() && last["raised"] == Value::Array(vec![]));
    let metrics = served.get("/metrics").text();
    assert!(metrics.contains("meikyo_alert_webhook_failing 0\n"), "{metrics}");
    assert!(metrics.contains("meikyo_alert_webhook_refused_messages_total 0\n"), "{metrics}");
    assert!(!metrics.contains("meikyo_alert_webhook_failed_messages_total 0\n"), "{metrics}");
    drop(served);
    // Nobody is told again what was told.
    let url = format!("http://127.0.0.1:{port}/alerts");
    let target = HttpTarget::new(&url, None, std::path::Path::new("/none")).unwrap();
    let again = serve_with(&recording, |of| of.notify = vec![options(Recipient::Hook(target))]);
    let other = [
        ("device", Cell::Word("node1")),
        ("event", Cell::Word("alert_raised")),
        ("text", Cell::Word("full: 99 % of /")),
    ];
    row(&mut writer, Table::Events, WallTime::now(), &other);
    writer.sync_now().unwrap();
    assert_eq!(told()["rule"], "full");
    drop(again);
    writer.close().unwrap();
}

#[test]
fn people_are_told_by_mail_when_the_server_takes_it() {
    let has_it = Command::new(PYTHON).args(["-c", "import aiosmtpd"]).status();
    if !has_it.is_ok_and(|status| status.success()) {
        meikyo_testing::lacking("there is no mail server; `apt-get install python3-aiosmtpd`");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("west");
    let mut writer = recorded(&recording);
    raise(&mut writer);
    let port = free_port();
    let url = format!("smtp://127.0.0.1:{port}");
    let to = ["admin@mon.example".to_owned(), "night@mon.example".to_owned()];
    let mailboxes = ("meikyo@mon.example", &to[..]);
    let target = MailTarget::new(&url, mailboxes, None, std::path::Path::new("/none")).unwrap();
    let served = serve_with(&recording, |of| of.notify = vec![options(Recipient::Mail(target))]);
    // First there is nobody who takes it.
    let begin = WallTime::now();
    while !served.get("/metrics").text().contains("meikyo_alert_mail_failing 1\n") {
        assert!(WallTime::now().since(begin) < PATIENCE, "nothing was tried");
    }
    let listen = format!("127.0.0.1:{port}");
    let handler = "aiosmtpd.handlers.Debugging";
    let server = Server::start(&["-m", "aiosmtpd", "-n", "-l", &listen, "-c", handler, "stdout"]);
    let message = || {
        let (mut headers, mut body, mut is_body) = (Vec::new(), String::new(), false);
        loop {
            let line = server.line();
            if line.contains("END MESSAGE") {
                break;
            }
            if is_body {
                body += line.trim();
            } else if line.is_empty() {
                is_body = !headers.is_empty();
            } else {
                headers.push(line);
            }
        }
        let decoded = Command::new(PYTHON)
            .args(["-c", "import base64,sys; print(base64.b64decode(sys.argv[1]).decode())", &body])
            .output()
            .unwrap();
        (headers, String::from_utf8(decoded.stdout).unwrap())
    };
    let (headers, text) = message();
    let has = |header: &str| headers.iter().any(|line| line == header);
    assert!(has("To: admin@mon.example, night@mon.example"), "{headers:?}");
    assert!(has("From: meikyo@mon.example"), "{headers:?}");
    for name in ["Date: ", "Message-ID: <"] {
        assert!(headers.iter().any(|line| line.starts_with(name)), "{headers:?}");
    }
    assert!(has("Subject: Meikyo west: silent: 1 alert"), "{headers:?}");
    assert!(text.contains("node2") && text.contains("no answer for more than 30s"), "{text}");
    clear(&mut writer);
    loop {
        let (headers, text) = message();
        if headers.iter().any(|line| line == "Subject: Meikyo west: silent: 1 alert resolved") {
            assert!(text.contains("Resolved:") && text.contains("it answers again"), "{text}");
            break;
        }
    }
    writer.close().unwrap();
}
