//! Having a connection: TCP, TLS where it leaves the machine, and the upgrade of HTTP.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use meikyo_units::{Bytes, Nanos, in_one_line};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::wake;
use crate::limits::{ANSWER_BYTES_MAX, CONNECT_MAX, UNWRITTEN_BYTES_MAX};

/// The longest answer to [`ask`]: what is said of some 200,000 devices.
const ASKED_BYTES_MAX: usize = 64 << 20;

/// Where the receiver is, and what it is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address and port.
    pub authority: String,
    /// Path before everything, as the receiver's `--prefix`; empty for none.
    pub prefix: String,
    /// The certificates that may vouch for the receiver, in PEM; without TLS when `None`.
    pub roots: Option<PathBuf>,
    /// A token, of role `ingest` for sending; none is shown when `None`.
    pub token: Option<String>,
}

impl fmt::Debug for Target {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authority, prefix, roots, .. } = self;
        write!(f, "Target({authority}{prefix}, roots: {roots:?})")
    }
}

/// Why no connection could be had.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The receiver's name is none, or the address is not reachable.
    #[error("cannot connect to `{authority}`")]
    Tcp {
        /// Name or address and port.
        authority: String,
        /// What the system said.
        source: io::Error,
    },
    /// A connection without TLS would leave the machine.
    #[error("`{authority}` is not loopback: rows and tokens leave a machine only over TLS")]
    Unprotected {
        /// Name or address and port.
        authority: String,
    },
    /// The certificates cannot be used, or the receiver is not vouched for.
    #[error("no TLS with `{authority}`: {text}")]
    Tls {
        /// Name or address and port.
        authority: String,
        /// The error of the TLS library.
        text: String,
    },
    /// The receiver did not upgrade.
    #[error("the receiver refused: {status}: {text}")]
    Refused {
        /// The status line.
        status: String,
        /// Body of the receiver's answer.
        text: String,
    },
    /// The answer is too long, or no answer.
    #[error("what answers at `{authority}` is no receiver")]
    NoReceiver {
        /// Name or address and port.
        authority: String,
    },
}

/// A connection that rows go over.
pub(super) enum Line {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Line {
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Whether it may hold octets that the system does not: what TLS read while it wrote.
    pub(super) fn holds_octets(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether something waits below that the system has not taken.
    pub(super) fn wants_write(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.conn.wants_write())
    }
}

impl io::Read for Line {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(octets),
            Self::Tls(stream) => stream.read(octets),
        }
    }
}

impl io::Write for Line {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(octets),
            Self::Tls(stream) => stream.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection that was upgraded to a web socket (RFC 6455) and has carried no message yet.
pub struct Upgraded(Line);

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upgraded").field(self.0.socket()).finish()
    }
}

impl Upgraded {
    /// Lets a call for octets wait no longer than that, and end with [`io::ErrorKind::WouldBlock`] then.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait_at_most(&self, span: Nanos) -> io::Result<()> {
        self.0.socket().set_read_timeout(Some(span.to_std()))
    }
}

impl io::Read for Upgraded {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        self.0.read(octets)
    }
}

impl io::Write for Upgraded {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

type Outcome = Result<(Line, Vec<u8>), String>;

/// A connection in the making, by a thread of its own.
pub(super) struct Connecting {
    outcome: Receiver<Outcome>,
}

impl Connecting {
    pub(super) fn begin(target: &Target, waker: &UnixStream) -> io::Result<Self> {
        let (told, outcome) = sync_channel(1);
        let (target, waker) = (target.clone(), waker.try_clone()?);
        std::thread::Builder::new().name("uplink-connect".into()).spawn(move || {
            // Who waited may be gone.
            drop(told.send(connect(&target).map_err(|error| in_one_line(&error))));
            drop(told);
            wake(&waker);
        })?;
        Ok(Self { outcome })
    }

    /// What came of it, once; also that the thread has panicked, which has told of itself. `None` before.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Disconnected) => Some(Err("the connecting thread has ended".into())),
            Err(TryRecvError::Empty) => None,
        }
    }
}

/// Has a connection whose next octets are the transport's; the first of them may have come already.
fn connect(target: &Target) -> Result<(Line, Vec<u8>), ConnectError> {
    let authority = target.authority.clone();
    let failed = |source| ConnectError::Tcp { authority: authority.clone(), source };
    let deadline = Deadline { at: super::monotonic() + CONNECT_MAX.to_std() };
    let upgrade = "Connection: Upgrade\r\nUpgrade: meikyo-rows/1\r\n";
    let mut line = requested(target, ("ingest", "1.1", upgrade), deadline)?;
    let first = upgraded(&mut line, &authority, deadline)?;
    line.socket().set_nonblocking(true).map_err(failed)?;
    Ok((line, first))
}

/// A web socket at a path of the receiver's API, and what came behind its answer. `key` is any 16 octets in
/// base64. Calls for octets and to write wait for as long as a connection may take to be had, unless another limit
/// is set.
///
/// # Errors
/// When the receiver cannot be reached, or refuses.
pub fn web_socket(
    target: &Target,
    path: &str,
    key: &str,
) -> Result<(Upgraded, Vec<u8>), ConnectError> {
    let authority = target.authority.clone();
    let deadline = Deadline { at: super::monotonic() + CONNECT_MAX.to_std() };
    let upgrade = format!(
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: {key}\r\n"
    );
    let mut line = requested(target, (path, "1.1", &upgrade), deadline)?;
    let first = upgraded(&mut line, &authority, deadline)?;
    let patience = Some(CONNECT_MAX.to_std());
    let socket = line.socket();
    let limited =
        socket.set_read_timeout(patience).and_then(|()| socket.set_write_timeout(patience));
    limited.map_err(|source| ConnectError::Tcp { authority, source })?;
    Ok((Upgraded(line), first))
}

/// Asks the receiver for something of its API, `senders`; the body of its answer.
///
/// # Errors
/// When it cannot be reached, refuses, or answers with more than 64 MiB.
pub fn ask(target: &Target, path: &str) -> Result<Vec<u8>, ConnectError> {
    let failed = |source| ConnectError::Tcp { authority: target.authority.clone(), source };
    let deadline = Deadline { at: super::monotonic() + CONNECT_MAX.to_std() };
    // HTTP/1.0 asks for the body as it is and for the end of the connection behind it.
    let mut line = requested(target, (path, "1.0", ""), deadline)?;
    let (mut answer, mut octets) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        deadline.apply(line.socket()).map_err(failed)?;
        match line.read(&mut octets) {
            Ok(0) => break,
            Ok(count) if answer.len() + count <= ASKED_BYTES_MAX => {
                answer.extend_from_slice(&octets[..count]);
            }
            Ok(_) => return Err(failed(io::Error::other("the answer does not end"))),
            // How a server ends that does not say good-bye in TLS; whether it is whole is seen below.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(failed(error)),
        }
    }
    let no_receiver = || ConnectError::NoReceiver { authority: target.authority.clone() };
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(no_receiver)? + 4;
    let body = answer.split_off(end);
    let head = String::from_utf8_lossy(&answer).into_owned();
    let status = head.lines().next().unwrap_or_default().to_owned();
    if status.split(' ').nth(1).is_none_or(|code| code != "200") {
        let text = String::from_utf8_lossy(&body).trim().to_owned();
        return Err(ConnectError::Refused { status, text });
    }
    match length_in(&head) {
        Some(length) if body.len() < length => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        _ => Ok(body),
    }
}

/// A connection over which something of the receiver's API was requested: what, by which version of HTTP,
/// and with which headers besides.
fn requested(
    target: &Target,
    (path, version, headers): (&str, &str, &str),
    deadline: Deadline,
) -> Result<Line, ConnectError> {
    let authority = target.authority.clone();
    let failed = |source| ConnectError::Tcp { authority: authority.clone(), source };
    let socket = tcp(target, deadline).map_err(failed)?;
    let is_near = socket.peer_addr().is_ok_and(|peer| peer.ip().is_loopback());
    let mut line = match &target.roots {
        Some(roots) => Line::Tls(Box::new(tls(target, roots, socket, deadline)?)),
        None if is_near => Line::Plain(socket),
        None => return Err(ConnectError::Unprotected { authority }),
    };
    let token = target.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!(
        "GET {}/api/v1/{path} HTTP/{version}\r\nHost: {}\r\n{headers}{}\r\n",
        target.prefix,
        target.authority,
        token.unwrap_or_default()
    );
    let mut left = request.as_bytes();
    while !left.is_empty() {
        deadline.apply(line.socket()).map_err(failed)?;
        let written = line.write(left).map_err(failed)?;
        left = &left[written..];
    }
    line.flush().map_err(failed)?;
    Ok(line)
}

/// How long the body behind a head is, if that says so.
fn length_in(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// When a connection must be had: its addresses, the handshake and the upgrade have this one between
/// them, however slowly the other side talks.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
}

impl Deadline {
    /// What is left of it.
    fn left(self) -> io::Result<Duration> {
        let left = self.at.saturating_duration_since(super::monotonic());
        if left.is_zero() {
            let text = format!("there was no connection within {CONNECT_MAX}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        Ok(left)
    }

    /// Lets the next call on a socket take what is left.
    fn apply(self, socket: &TcpStream) -> io::Result<()> {
        let left = Some(self.left()?);
        socket.set_read_timeout(left)?;
        socket.set_write_timeout(left)
    }
}

/// A socket that is given up at a deadline.
struct Until<'a> {
    socket: &'a mut TcpStream,
    deadline: Deadline,
}

impl io::Read for Until<'_> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        self.deadline.apply(self.socket)?;
        self.socket.read(octets)
    }
}

impl io::Write for Until<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.deadline.apply(self.socket)?;
        self.socket.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn tcp(target: &Target, deadline: Deadline) -> io::Result<TcpStream> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in target.authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, deadline.left()?) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                let ahead = Bytes::new(UNWRITTEN_BYTES_MAX as u64);
                meikyo_sockets::options::limit_unsent(&socket, ahead)?;
                return Ok(socket);
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn tls(
    target: &Target,
    roots: &Path,
    mut socket: TcpStream,
    deadline: Deadline,
) -> Result<StreamOwned<ClientConnection, TcpStream>, ConnectError> {
    let failed = |text: String| ConnectError::Tls { authority: target.authority.clone(), text };
    let mut connection = vouched(&target.authority, roots)?;
    while connection.is_handshaking() {
        let mut until = Until { socket: &mut socket, deadline };
        connection.complete_io(&mut until).map_err(|error| failed(error.to_string()))?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// An authority with its port: `host`, `host:8420`, `[::1]` or `[::1]:8420`, and `port` where none is named; `None` where
/// what stands behind the colon is no port.
pub fn with_port(authority: &str, port: u16) -> Option<String> {
    // The colons of an address of version 6 are in brackets.
    let behind = authority.rsplit(']').next().unwrap_or(authority);
    match behind.rsplit_once(':') {
        Some((_, digits)) if digits.parse::<u16>().is_ok() => Some(authority.to_owned()),
        Some(_) => None,
        None => Some(format!("{authority}:{port}")),
    }
}

/// TLS before its handshake, with whom the certificates in a file vouch for.
///
/// # Errors
/// [`ConnectError::Tls`] when the certificates cannot be read, or the authority has no name.
pub fn vouched(authority: &str, roots: &Path) -> Result<ClientConnection, ConnectError> {
    let failed = |text: String| ConnectError::Tls { authority: authority.to_owned(), text };
    let unreadable = |error| failed(format!("`{}`: {error}", roots.display()));
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(roots).map_err(unreadable)? {
        let certificate = certificate.map_err(unreadable)?;
        store.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    let config = ClientConfig::builder().with_root_certificates(store).with_no_client_auth();
    let name = authority.rsplit_once(':').map_or(authority, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(name).map_err(|error| failed(error.to_string()))?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| failed(error.to_string()))
}

/// Reads the answer to the upgrade; what came behind it.
fn upgraded(line: &mut Line, authority: &str, deadline: Deadline) -> Result<Vec<u8>, ConnectError> {
    let failed = |source| ConnectError::Tcp { authority: authority.to_owned(), source };
    let no_receiver = || ConnectError::NoReceiver { authority: authority.to_owned() };
    let (mut answer, mut octets) = (Vec::new(), [0; 1_024]);
    let end = loop {
        if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(no_receiver());
        }
        deadline.apply(line.socket()).map_err(failed)?;
        match line.read(&mut octets) {
            Ok(0) => return Err(no_receiver()),
            Ok(count) => answer.extend_from_slice(&octets[..count]),
            Err(source) => return Err(failed(source)),
        }
    };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.lines().next().unwrap_or_default().to_owned();
    if status.starts_with("HTTP/1.1 101") {
        return Ok(answer.split_off(end));
    }
    // A refusal is short, and the connection need not end behind it.
    let wanted = end + length_in(&head).unwrap_or(0).min(ANSWER_BYTES_MAX);
    while answer.len() < wanted && deadline.apply(line.socket()).is_ok() {
        match line.read(&mut octets) {
            Ok(0) | Err(_) => break,
            Ok(count) => answer.extend_from_slice(&octets[..count]),
        }
    }
    let text = String::from_utf8_lossy(&answer[end..]).trim().to_owned();
    Err(ConnectError::Refused { status, text })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    #[test]
    fn who_answers_an_octet_at_a_time_is_given_up_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut dribbling, _) = listener.accept().unwrap();
        let (ended, wait) = channel::<()>();
        let dribbler = std::thread::spawn(move || {
            // Far within what one call may wait.
            let is_later = |waited| waited == Err(RecvTimeoutError::Timeout);
            while is_later(wait.recv_timeout(Duration::from_millis(5)))
                && dribbling.write_all(b"H").is_ok()
            {}
        });
        let mut line = Line::Plain(socket);
        let deadline = Deadline { at: super::super::monotonic() + Duration::from_millis(300) };
        let error = upgraded(&mut line, "host", deadline).unwrap_err();
        let ConnectError::Tcp { source, .. } = error else { panic!("{error}") };
        let is_over = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock].contains(&source.kind());
        assert!(is_over, "{source}");
        drop(ended);
        dribbler.join().unwrap();
    }
}
