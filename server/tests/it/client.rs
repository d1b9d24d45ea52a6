//! A server over a recording, and what a test asks of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;

use meikyo_server::{Options, Running};
use meikyo_testing::http::{Answer, PATIENCE, read_answer};
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

/// A server over some recordings.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) address: String,
}

/// Serves a recording on loopback, as `change` wants it.
pub(crate) fn serve_with(recording: &Path, change: impl FnOnce(&mut Options)) -> Served {
    let mut options = Options::on_loopback(recording);
    change(&mut options);
    let running = meikyo_server::start(&options).unwrap();
    let url = &running.urls()[0];
    let address = url.split('/').nth(2).unwrap_or_default().to_owned();
    Served { running, address }
}

/// Serves a recording on loopback.
pub(crate) fn serve(recording: &Path) -> Served {
    serve_with(recording, |_| ())
}

/// The client at 127.0.0.`last`: all of 127.0.0.0/8 is this machine's.
pub(crate) const fn client(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

impl Served {
    /// A connection that comes from an address of loopback.
    pub(crate) fn connect_from(&self, from: IpAddr) -> TcpStream {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let to = self.address.parse().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            // Who reads nothing is told so by little.
            socket.set_recv_buffer_size(16 << 10).unwrap();
            socket.bind(SocketAddr::new(from, 0)).unwrap();
            socket.connect(to).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A counter or gauge of the server with its labels, as Prometheus sees it; `headers` prove who
    /// asks, each ended by CR LF.
    pub(crate) fn metric(&self, name: &str, headers: &str) -> u64 {
        let request = format!("GET /metrics HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n");
        let ask = || {
            let mut stream = self.connect_from(client(200));
            stream.write_all(request.as_bytes()).unwrap();
            read_answer(stream)
        };
        // Who waits for a counter asks often.
        let mut answer = ask();
        while answer.status == 429 {
            answer = ask();
        }
        let text = answer.text();
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("meikyo_server_{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {} {text}", answer.head)).parse().unwrap()
    }

    /// Connections that were closed for a reason.
    pub(crate) fn closed(&self, reason: &str, headers: &str) -> u64 {
        self.metric(&format!("closed_connections_total{{reason=\"{reason}\"}}"), headers)
    }

    /// Waits until connections were closed for a reason.
    pub(crate) fn wait_for_closed(&self, reason: &str, count: u64, headers: &str) {
        let deadline = WallTime::now() + Nanos::from_secs(30);
        while self.closed(reason, headers) < count {
            assert!(WallTime::now() < deadline, "{}: {reason}", self.closed(reason, headers));
            // The server refuses who asks more often than its limit says.
            std::thread::park_timeout(Nanos::from_millis(20).to_std());
        }
    }

    /// Sends some octets and reads the answer.
    pub(crate) fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // What is refused by its head need not be taken whole.
        drop(stream.write_all(request));
        read_answer(stream)
    }

    /// Asks with some further header lines, each ended by CR LF.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let host = if headers.to_ascii_lowercase().contains("host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        self.send(head.as_bytes())
    }

    /// Gets a path.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    /// Gets a path of the API as JSON; it must be answered.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }
}

/// A connection that stays open from one answer to the next.
pub(crate) struct KeptAlive<S>(BufReader<S>);

impl<S: std::io::Read + std::io::Write> KeptAlive<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    /// Gets a path, with some header lines; the status.
    pub(crate) fn status(&mut self, path: &str, headers: &str) -> u16 {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut status, mut length) = (String::new(), 0);
        self.0.read_line(&mut status).unwrap();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length]).unwrap();
        status.split(' ').nth(1).unwrap().parse().unwrap()
    }
}
