//! The database: its address, and one request at a time to it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use meikyo_transport::shell::{ConnectError, vouched, with_port};
use meikyo_units::Nanos;
use rustls::StreamOwned;

use crate::watching;

/// How long a connection may take, and how long the database may be silent; one that writes its files anew
/// answers late.
const CONNECT_MAX: Nanos = Nanos::from_secs(5);
const ANSWER_MAX: Nanos = Nanos::from_secs(60);

/// Octets of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Why an address or its credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It is none.
    #[error("`{url}` is no address that anything can be posted to")]
    Address {
        /// What was said.
        url: String,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Roots(#[from] ConnectError),
    /// The file with the credentials cannot be read.
    #[error("cannot read `{path}`")]
    Credentials {
        /// File that was to hold the credentials.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has no credentials.
    #[error("`{path}` has neither `USER:PASSWORD` nor a token in one line")]
    NoCredentials {
        /// File without credentials.
        path: PathBuf,
    },
}

/// Where lines are posted to.
#[derive(Clone)]
pub struct HttpTarget {
    authority: String,
    /// Path and query.
    path: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
    /// The certificates that may vouch for the database; without TLS when `None`.
    roots: Option<PathBuf>,
}

impl fmt::Debug for HttpTarget {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpTarget").field(&self.shown()).finish()
    }
}

impl HttpTarget {
    /// The target at a URL such as `http://127.0.0.1:8086/write?db=profiles`, which takes times in
    /// nanoseconds, with the credentials in a file: `USER:PASSWORD`, or a token. `roots` vouch for a database
    /// behind `https`; `http` is for loopback.
    ///
    /// # Errors
    /// When the URL is none, there are no credentials in the file, or the certificates cannot be used.
    pub fn new(url: &str, credentials: Option<&Path>, roots: &Path) -> Result<Self, TargetError> {
        let wrong = || TargetError::Address { url: url.to_owned() };
        let (roots, rest, port) = match url.split_once("://") {
            Some(("https", rest)) => (Some(roots.to_owned()), rest, 443),
            Some(("http", rest)) => (None, rest, 80),
            _ => return Err(wrong()),
        };
        let (authority, path) = rest.split_once('/').ok_or_else(wrong)?;
        let is_plain = |octet: u8| octet.is_ascii_graphic() && !b"#@\\".contains(&octet);
        if authority.is_empty() || path.is_empty() || !rest.bytes().all(is_plain) {
            return Err(wrong());
        }
        let authority = with_port(authority, port).ok_or_else(wrong)?;
        match &roots {
            Some(roots) => drop(vouched(&authority, roots)?),
            None => must_be_near(&authority)?,
        }
        let authorization = credentials.map(authorization).transpose()?;
        Ok(Self { authority, path: format!("/{path}"), authorization, roots })
    }

    /// The address without user and password.
    pub(crate) fn shown(&self) -> String {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let is_shown = |part: &&str| !part.starts_with("p=") && !part.starts_with("u=");
        let query: Vec<_> =
            query.split('&').filter(|part| !part.is_empty()).filter(is_shown).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let scheme = if self.roots.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}{query}", self.authority)
    }

    /// Gets what is there into `into`, up to so many octets and for so long.
    ///
    /// # Errors
    /// When it cannot be reached, answers anything else than what is asked for, or ends too early.
    pub(crate) fn fetch(
        &self,
        at_most: u64,
        span: Nanos,
        into: &mut impl Write,
    ) -> io::Result<Fetched> {
        let socket = connect(&self.authority, self.roots.is_some())?;
        // An answer to HTTP/1.0 is the octets themselves and not in chunks.
        let request = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nUser-Agent: meikyo\r\nConnection: close\r\n\r\n",
            self.path, self.authority,
        );
        match &self.roots {
            None => fetched(socket, &request, (at_most, span), into),
            Some(roots) => {
                let connection = vouched(&self.authority, roots).map_err(io::Error::other)?;
                fetched(StreamOwned::new(connection, socket), &request, (at_most, span), into)
            }
        }
    }

    /// What stands before the lines.
    fn head(&self, length: usize, content: Content) -> String {
        let authorization = self.authorization.as_ref();
        let authorization = authorization.map(|value| format!("Authorization: {value}\r\n"));
        let about = match content {
            Content::Lines => "Content-Type: text/plain; charset=utf-8\r\n",
            Content::Json => "Content-Type: application/json\r\nUser-Agent: meikyo\r\n",
            Content::RemoteWrite => {
                "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
                 User-Agent: meikyo\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n"
            }
        };
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             {about}Content-Length: {length}\r\n{}\r\n",
            self.path,
            self.authority,
            authorization.unwrap_or_default(),
        )
    }
}

/// Refuses what is not on this machine, for which there would have to be TLS. A name without an address may have one when
/// it is connected to, and is looked at again then.
pub(crate) fn must_be_near(authority: &str) -> Result<(), ConnectError> {
    let Ok(mut addresses) = authority.to_socket_addrs() else { return Ok(()) };
    if addresses.any(|address| address.ip().is_loopback()) {
        return Ok(());
    }
    Err(ConnectError::Unprotected { authority: authority.to_owned() })
}

/// What became of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// All of it is here.
    Whole,
    /// As much of it as was wanted is here.
    Cut,
    /// There is no such thing.
    NotThere,
}

/// Octets before the body of an answer, at most.
const ANSWER_HEAD_MAX: usize = 16 << 10;

/// Sends a request and takes the body of its answer.
fn fetched(
    mut stream: impl Read + Write,
    request: &str,
    (at_most, span): (u64, Nanos),
    into: &mut impl Write,
) -> io::Result<Fetched> {
    let end = watching::now() + span.to_std();
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut octets = vec![0; 64 << 10];
    let mut head = Vec::new();
    let length = loop {
        let count = stream.read(&mut octets)?;
        head.extend_from_slice(&octets[..count]);
        let end_of_head = head.windows(4).position(|four| four == b"\r\n\r\n");
        match end_of_head {
            Some(at) => {
                let body = head.split_off(at + 4);
                let (status, length) = answer_head(&String::from_utf8_lossy(&head))?;
                match status {
                    200 => {}
                    404 | 410 => return Ok(Fetched::NotThere),
                    _ => return Err(io::Error::other(format!("it answers with status {status}"))),
                }
                head = body;
                break length;
            }
            None if count == 0 || head.len() > ANSWER_HEAD_MAX => {
                return Err(io::Error::other("what answers is no HTTP server"));
            }
            None => {}
        }
    };
    let (mut taken, mut part) = (0, std::mem::take(&mut head));
    loop {
        // Saturates: no part is longer than the memory.
        let left = usize::try_from(at_most - taken).unwrap_or(usize::MAX);
        let kept = &part[..part.len().min(left)];
        into.write_all(kept)?;
        taken += kept.len() as u64;
        if kept.len() < part.len() {
            return Ok(Fetched::Cut);
        }
        if length == Some(taken) {
            return Ok(Fetched::Whole);
        }
        if watching::now() > end {
            return Err(io::Error::other(format!("it took longer than {span}")));
        }
        let count = stream.read(&mut octets)?;
        if count == 0 {
            return match length {
                None => Ok(Fetched::Whole),
                Some(length) => {
                    Err(io::Error::other(format!("it ended after {taken} of {length} octets")))
                }
            };
        }
        part.clear();
        part.extend_from_slice(&octets[..count]);
    }
}

/// The status of an answer, and the octets that its body has where it says so.
fn answer_head(head: &str) -> io::Result<(u16, Option<u64>)> {
    let no_server = || io::Error::other("what answers is no HTTP server");
    let mut lines = head.lines();
    let status = lines.next().filter(|line| line.starts_with("HTTP/")).ok_or_else(no_server)?;
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(no_server)?;
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map(|(_, value)| value.trim().parse().map_err(|_| no_server()));
    Ok((code, length.transpose()?))
}

/// A connection to the first address of a name that gives one; to loopback only, unless it is protected.
pub(crate) fn connect(authority: &str, is_protected: bool) -> io::Result<TcpStream> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in authority.to_socket_addrs()? {
        if !is_protected && !address.ip().is_loopback() {
            let authority = authority.to_owned();
            refused = io::Error::other(ConnectError::Unprotected { authority });
            continue;
        }
        match TcpStream::connect_timeout(&address, CONNECT_MAX.to_std()) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(ANSWER_MAX.to_std()))?;
                socket.set_write_timeout(Some(ANSWER_MAX.to_std()))?;
                return Ok(socket);
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// What is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Lines of `InfluxDB`'s protocol.
    Lines,
    /// A remote write of Prometheus.
    RemoteWrite,
    /// A document.
    Json,
}

fn authorization(path: &Path) -> Result<String, TargetError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TargetError::Credentials { path: path.into(), source })?;
    let word = text.trim_end_matches(['\r', '\n']);
    if word.is_empty() || word.contains(['\r', '\n']) {
        return Err(TargetError::NoCredentials { path: path.into() });
    }
    Ok(if word.contains(':') {
        format!("Basic {}", STANDARD.encode(word))
    } else if word.bytes().all(|octet| octet.is_ascii_graphic()) {
        format!("Token {word}")
    } else {
        return Err(TargetError::NoCredentials { path: path.into() });
    })
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// The database has the lines.
    Taken,
    /// It has those that it could take, and refused so many.
    Refused { rows: u64, text: String },
}

/// Requests to a target, one at a time, which another thread can cut off.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    target: HttpTarget,
    /// The connection of the request under way; cut off for good when the boolean is true.
    under_way: Arc<Mutex<(bool, Option<TcpStream>)>>,
}

impl Line {
    pub(crate) fn new(target: HttpTarget) -> Self {
        Self { target, under_way: Arc::default() }
    }

    /// Where requests go, without credentials.
    pub(crate) fn shown(&self) -> String {
        self.target.shown()
    }

    /// Ends the request under way, and every one that comes.
    pub(crate) fn cut(&self) {
        let mut under_way = self.under_way();
        under_way.0 = true;
        if let Some(socket) = under_way.1.take() {
            // One that is closed already is cut off, too.
            drop(socket.shutdown(Shutdown::Both));
        }
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, (bool, Option<TcpStream>)> {
        self.under_way.lock().expect("nothing that holds it can panic")
    }

    /// Posts so many rows.
    ///
    /// # Errors
    /// When nobody knows whether the database has them, or it wants them later: they are to be posted again,
    /// and points that it has already stay the points that they are.
    pub(crate) fn post(&self, octets: &[u8], content: Content, rows: u64) -> io::Result<Posted> {
        let socket = connect(&self.target.authority, self.target.roots.is_some())?;
        {
            let mut under_way = self.under_way();
            if under_way.0 {
                return Err(io::Error::other("the server ends"));
            }
            under_way.1 = Some(socket.try_clone()?);
        }
        let answer = match &self.target.roots {
            None => self.asked(socket, octets, content),
            Some(roots) => {
                vouched(&self.target.authority, roots).map_err(io::Error::other).and_then(
                    |connection| self.asked(StreamOwned::new(connection, socket), octets, content),
                )
            }
        };
        self.under_way().1 = None;
        judged(&String::from_utf8_lossy(&answer?), content, rows)
    }

    /// Sends a request and reads the answer.
    fn asked(
        &self,
        mut stream: impl Read + Write,
        octets: &[u8],
        content: Content,
    ) -> io::Result<Vec<u8>> {
        let sent = stream
            .write_all(self.target.head(octets.len(), content).as_bytes())
            .and_then(|()| stream.write_all(octets))
            .and_then(|()| stream.flush());
        let mut answer = Vec::new();
        // Who refuses a request may answer before it has read all of it.
        let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
        if answer.is_empty() {
            sent?;
            read?;
        }
        Ok(answer)
    }
}

/// What an answer says about the lines that were posted. Only an answer that speaks of lines says that they
/// are refused: with all others the request itself is not what the database wants, and a person mends that.
fn judged(answer: &str, content: Content, rows: u64) -> io::Result<Posted> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or_default();
    let code: u16 = status.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let text = format!("{status}: {}", body.trim());
    match code {
        200..=299 => Ok(Posted::Taken),
        // Prometheus refuses a request as a whole, and says so for no other reason than its values.
        400 if content == Content::RemoteWrite => Ok(Posted::Refused { rows, text }),
        // Who does not want a document will not want it later.
        400..=499 if content == Content::Json && ![408, 429].contains(&code) => {
            Ok(Posted::Refused { rows, text })
        }
        400 | 422 if OF_LINES.iter().any(|words| body.contains(words)) => {
            Ok(Posted::Refused { rows: refused_rows(body), text })
        }
        413 => Ok(Posted::Refused { rows, text }),
        0 => Err(io::Error::other("what answers is no HTTP server")),
        _ => Err(io::Error::other(text)),
    }
}

/// What databases say where some lines are the reason: `InfluxDB` 1.x, and 2.x and 3 in their own words.
const OF_LINES: [&str; 4] =
    ["partial write", "unable to parse", "field type conflict", "beyond retention policy"];

/// How many rows an answer names as refused: those that would not fit what is there, and those that could not
/// be read; at least one.
fn refused_rows(body: &str) -> u64 {
    let dropped = body.split("dropped=").nth(1).map(|rest| {
        rest.chars().take_while(char::is_ascii_digit).fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(digit.to_digit(10).unwrap_or(0).into())
        })
    });
    let unread = body.matches("unable to parse").count() as u64;
    dropped.unwrap_or(0).saturating_add(unread).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_whole_url_and_is_shown_without_its_password() {
        let of = |url| HttpTarget::new(url, None, Path::new("/none")).unwrap();
        let target = of("http://127.0.0.1:8086/write?db=a&u=me&p=secret");
        assert_eq!(target.path, "/write?db=a&u=me&p=secret");
        assert_eq!(format!("{target:?}"), "HttpTarget(\"http://127.0.0.1:8086/write?db=a\")");
        assert_eq!(of("http://[::1]/write?db=a").authority, "[::1]:80");
        for wrong in [
            "",
            "http://",
            "http://x",
            "http://x/",
            "ftp://x/write",
            "http://x:y/write",
            "http://x/a b",
        ] {
            let told = HttpTarget::new(wrong, None, Path::new("/none")).unwrap_err().to_string();
            assert!(told.contains("no address"), "{wrong}: {told}");
        }
        let far = HttpTarget::new("http://192.0.2.1/write?db=a", None, Path::new("/none"));
        let later = connect("192.0.2.1:80", false).unwrap_err().to_string();
        for far in [far.unwrap_err().to_string(), later] {
            assert!(far.contains("not loopback"), "{far}");
        }
        let secure = HttpTarget::new("https://localhost/write", None, Path::new("/none"));
        assert!(secure.unwrap_err().to_string().contains("no TLS with `localhost:443`: `/none`"));
    }

    /// What a peer says, whatever is said to it.
    struct Peer<'a>(&'a [u8]);

    impl Read for Peer<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            // Octet by octet: nothing may depend on how an answer is cut.
            let count = self.0.len().min(into.len()).min(1);
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    impl Write for Peer<'_> {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_got_is_whole_or_cut_or_an_error() {
        let get = |answer: &str, at_most| {
            let mut into = Vec::new();
            let of = fetched(Peer(answer.as_bytes()), "GET", (at_most, Nanos::SECOND), &mut into);
            (of.map_err(|error| error.to_string()), String::from_utf8(into).unwrap())
        };
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(get(whole, 9), (Ok(Fetched::Whole), "hello".into()));
        assert_eq!(get(whole, 5), (Ok(Fetched::Whole), "hello".into()));
        assert_eq!(get(whole, 4), (Ok(Fetched::Cut), "hell".into()));
        let open = "HTTP/1.0 200 OK\r\n\r\nhello";
        assert_eq!(get(open, 9), (Ok(Fetched::Whole), "hello".into()));
        let none = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone";
        assert_eq!(get(none, 9), (Ok(Fetched::NotThere), String::new()));
        let (early, _) = get("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 9);
        assert_eq!(early.unwrap_err(), "it ended after 5 of 9 octets");
        assert_eq!(get("HTTP/1.1 500 Oh\r\n\r\n", 9).0.unwrap_err(), "it answers with status 500");
        for nonsense in ["", "hello\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
            assert_eq!(get(nonsense, 9).0.unwrap_err(), "what answers is no HTTP server");
        }
    }

    #[test]
    fn credentials_are_a_user_with_a_password_or_a_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("credentials");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            HttpTarget::new("http://127.0.0.1/write", Some(&path), Path::new("/none"))
                .map(|of| of.authorization.unwrap())
        };
        // The example of RFC 7617, section 2.
        assert_eq!(of("Aladdin:open sesame\n").unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(of("abc==").unwrap(), "Token abc==");
        for wrong in ["", "\n", "a b", "a:b\nHost: c"] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_says_what_became_of_the_lines() {
        let of = |answer: &str| judged(answer, Content::Lines, 3);
        assert_eq!(of("HTTP/1.1 204 No Content\r\n\r\n").unwrap(), Posted::Taken);
        let rows = |answer: &str| match of(answer).unwrap() {
            Posted::Refused { rows, .. } => rows,
            Posted::Taken => 0,
        };
        let conflict = "partial write: field type conflict: input field \\\"a\\\" on measurement \\\"m\\\" dropped=2";
        assert_eq!(
            rows(&format!("HTTP/1.1 400 Bad Request\r\n\r\n{{\"error\":\"{conflict}\"}}")),
            2
        );
        assert_eq!(rows("HTTP/1.1 400 Bad Request\r\n\r\nunable to parse 'b': missing fields"), 1);
        assert_eq!(rows("HTTP/1.1 413 Request Entity Too Large\r\n\r\n"), 3);
        for again in [
            "HTTP/1.1 503 Unavailable\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\n\r\n{\"error\":\"database is required\"}",
            "hello",
        ] {
            assert!(of(again).is_err(), "{again}");
        }
    }
}
