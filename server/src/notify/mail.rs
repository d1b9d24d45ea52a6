//! Mail over SMTP (RFC 5321): one message at a time to a server that carries it on.
//!
//! Over TLS from the beginning (`smtps`, RFC 8314), or without it on loopback only, where a mail server of this
//! machine listens. Texts are sent in base64, so that no line of them means anything to the protocol.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use meikyo_transport::shell::{ConnectError, vouched, with_port};
use meikyo_units::{Nanos, WallTime};
use rustls::StreamOwned;

use crate::onward::{connect, must_be_near};

/// How long the server may be silent.
const ANSWER_MAX: Nanos = Nanos::from_secs(60);

/// Octets of an answer that are read: five minutes of lines are no answer.
const ANSWER_BYTES_MAX: u64 = 16 << 10;

/// Octets of base64 in a line (RFC 2045, 6.8).
const LINE_MAX: usize = 76;

/// Octets of a text in an encoded word (RFC 2047, section 2): 75 octets with what is around them.
const WORD_MAX: usize = 42;

/// Why mail cannot be sent as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The server's address is none.
    #[error("`{url}` is no address of a mail server")]
    Server {
        /// What was said.
        url: String,
    },
    /// A mailbox is none.
    #[error("`{address}` is no mailbox")]
    Mailbox {
        /// What was said.
        address: String,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Roots(#[from] ConnectError),
    /// The file with the credentials cannot be used.
    #[error("`{path}` has no `USER:PASSWORD` in one line")]
    Credentials {
        /// File that was to hold them.
        path: PathBuf,
    },
}

/// A mail server, and whom mail is for.
#[derive(Debug, Clone)]
pub struct MailTarget {
    authority: String,
    /// The certificates that may vouch for the server; without TLS when `None`.
    roots: Option<PathBuf>,
    credentials: Option<Credentials>,
    from: String,
    to: Vec<String>,
}

#[derive(Clone)]
struct Credentials {
    user: String,
    password: String,
}

impl std::fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Credentials").field(&self.user).finish()
    }
}

impl MailTarget {
    /// The server at a URL such as `smtp://127.0.0.1:25` or `smtps://mail.example:465`, with mailboxes that it
    /// sends from and to, and the credentials in a file, if it wants any.
    ///
    /// # Errors
    /// When the URL, a mailbox, the credentials or the certificates cannot be used.
    pub fn new(
        url: &str,
        (from, to): (&str, &[String]),
        credentials: Option<&Path>,
        roots: &Path,
    ) -> Result<Self, MailError> {
        let wrong = || MailError::Server { url: url.to_owned() };
        let (roots, authority, port) = match url.split_once("://") {
            Some(("smtps", rest)) => (Some(roots.to_owned()), rest, 465),
            Some(("smtp", rest)) => (None, rest, 25),
            _ => return Err(wrong()),
        };
        let authority = authority.trim_end_matches('/');
        let is_plain = |octet: u8| octet.is_ascii_graphic() && !b"/?#@\\".contains(&octet);
        if authority.is_empty() || !authority.bytes().all(is_plain) {
            return Err(wrong());
        }
        let authority = with_port(authority, port).ok_or_else(wrong)?;
        if let Some(address) = to.iter().map(|to| &**to).chain([from]).find(|of| !is_mailbox(of)) {
            return Err(MailError::Mailbox { address: address.to_owned() });
        }
        match &roots {
            Some(roots) => drop(vouched(&authority, roots)?),
            None => must_be_near(&authority)?,
        }
        let credentials = credentials.map(|path| {
            let wrong = || MailError::Credentials { path: path.to_owned() };
            let text = std::fs::read_to_string(path).map_err(|_| wrong())?;
            let line = text.trim_end_matches(['\r', '\n']);
            let (user, password) = line.split_once(':').ok_or_else(wrong)?;
            let is_one_line = !line.contains(['\r', '\n', '\0']);
            let (user, password) = (user.to_owned(), password.to_owned());
            is_one_line.then_some(Credentials { user, password }).ok_or_else(wrong)
        });
        let credentials = credentials.transpose()?;
        Ok(Self { authority, roots, credentials, from: from.to_owned(), to: to.to_vec() })
    }

    /// Sends a message; whether the server took it, and did not refuse it for good.
    ///
    /// # Errors
    /// When nobody knows, or it wants it later.
    pub(super) fn send(&self, subject: &str, text: &str) -> io::Result<bool> {
        let socket = connect(&self.authority, self.roots.is_some())?;
        socket.set_read_timeout(Some(ANSWER_MAX.to_std()))?;
        let own = own_name(socket.local_addr()?.ip());
        let message = self.message(subject, text, WallTime::now());
        match &self.roots {
            None => self.converse(socket, &own, &message),
            Some(roots) => {
                let connection = vouched(&self.authority, roots).map_err(io::Error::other)?;
                let stream = StreamOwned::<_, TcpStream>::new(connection, socket);
                self.converse(stream, &own, &message)
            }
        }
    }

    /// The message with its headers (RFC 5322, 3.6), lines ended as the protocol wants them.
    fn message(&self, subject: &str, text: &str, now: WallTime) -> String {
        let to = self.to.join(", ");
        let ns = now.as_nanos();
        let instant = Timestamp::from_nanosecond(ns.into()).expect("64 bits of ns are in range");
        let date = DateTimePrinter::new().timestamp_to_string(&instant);
        let date = date.expect("64 bits of ns end in 2262");
        let domain = self.from.split_once('@').map_or("", |(_, domain)| domain);
        let encoded = STANDARD.encode(text.replace('\n', "\r\n"));
        let lines: Vec<&str> = lines_of(&encoded, LINE_MAX).collect();
        format!(
            "Date: {date}\r\nMessage-ID: <{ns}.{}@{domain}>\r\nFrom: {}\r\nTo: {to}\r\nSubject: {}\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\
             Auto-Submitted: auto-generated\r\n\r\n{}\r\n",
            std::process::id(),
            self.from,
            header(subject),
            lines.join("\r\n")
        )
    }

    fn converse(&self, stream: impl Read + Write, own: &str, message: &str) -> io::Result<bool> {
        let mut talk = Talk(BufReader::new(stream));
        talk.expect("", 220)?;
        talk.expect(&format!("EHLO {own}\r\n"), 250)?;
        if let Some(Credentials { user, password }) = &self.credentials {
            let word = STANDARD.encode(format!("\0{user}\0{password}"));
            talk.expect(&format!("AUTH PLAIN {word}\r\n"), 235)?;
        }
        let mut is_taken = false;
        if talk.says(&format!("MAIL FROM:<{}>\r\n", self.from), 250)? {
            // Who is unknown does not keep the others from it.
            for to in &self.to {
                is_taken |= talk.says(&format!("RCPT TO:<{to}>\r\n"), 250)?;
            }
        }
        if is_taken {
            talk.expect("DATA\r\n", 354)?;
            is_taken = talk.says(&format!("{message}.\r\n"), 250)?;
        }
        // It has the message, whatever it says to the end.
        drop(talk.says("QUIT\r\n", 221));
        Ok(is_taken)
    }
}

/// A conversation: a line is said, and an answer read.
struct Talk<S>(BufReader<S>);

impl<S: Read + Write> Talk<S> {
    /// Says something that must be answered with a code.
    fn expect(&mut self, line: &str, code: u16) -> io::Result<()> {
        match self.ask(line)? {
            (found, _) if found == code => Ok(()),
            (_, text) => Err(io::Error::other(format!("the mail server says `{text}`"))),
        }
    }

    /// Says something that the server may refuse for good (5yz): whether it took it.
    fn says(&mut self, line: &str, code: u16) -> io::Result<bool> {
        match self.ask(line)? {
            (found, _) if found == code || found == 251 && code == 250 => Ok(true),
            (500..=599, text) => {
                tracing::warn!(text, "the mail server refuses a message of alerts");
                Ok(false)
            }
            (_, text) => Err(io::Error::other(format!("the mail server says `{text}`"))),
        }
    }

    /// Says something, and reads the answer to its last line; its code.
    fn ask(&mut self, line: &str) -> io::Result<(u16, String)> {
        self.0.get_mut().write_all(line.as_bytes())?;
        self.0.get_mut().flush()?;
        let mut left = ANSWER_BYTES_MAX;
        loop {
            let mut text = String::new();
            let count = (&mut self.0).take(left).read_line(&mut text)?;
            left -= count as u64;
            let text = text.trim_end().to_owned();
            let code = text.get(..3).and_then(|digits| digits.parse().ok());
            let code = code.ok_or_else(|| io::Error::other("what answers is no mail server"))?;
            if text.as_bytes().get(3) != Some(&b'-') {
                return Ok((code, text));
            }
        }
    }
}

/// What a client without a name of its own calls itself (RFC 5321, 4.1.3).
fn own_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("[{address}]"),
        IpAddr::V6(address) => format!("[IPv6:{address}]"),
    }
}

/// Whether a text can stand as a mailbox in the protocol's lines.
fn is_mailbox(text: &str) -> bool {
    let is_plain = |octet: u8| octet.is_ascii_graphic() && !b"<>,;:\"\\()[]".contains(&octet);
    text.bytes().all(is_plain)
        && text.len() <= 254
        && text
            .split_once('@')
            .is_some_and(|(own, host)| !own.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// A text as the value of a header: plain, or in encoded words where it has other letters.
fn header(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.is_ascii() && plain.len() <= 900 {
        return plain;
    }
    let mut words = vec![String::new()];
    for c in plain.chars() {
        if words.last().is_some_and(|word| word.len() + c.len_utf8() > WORD_MAX) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    let encoded = words.iter().map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word)));
    encoded.collect::<Vec<_>>().join("\r\n ")
}

/// Pieces of an ASCII text.
fn lines_of(text: &str, length: usize) -> impl Iterator<Item = &str> {
    (0..text.len()).step_by(length).map(move |at| &text[at..text.len().min(at + length)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_speak_the_protocol_is_refused_or_encoded() {
        for wrong in ["", "a", "@b", "a@", "a@b@c", "a b@c", "a@b>\r\nRCPT TO:<c@d", "ä@b"] {
            assert!(!is_mailbox(wrong), "{wrong}");
        }
        assert!(is_mailbox("admin+hpc@mon.example"));
        assert_eq!(header("west: 1 alert\r\nBcc: x@y"), "west: 1 alert  Bcc: x@y");
        assert_eq!(header("Größe"), "=?utf-8?B?R3LDtsOfZQ==?=");
        assert!(header(&"ü".repeat(100)).split("\r\n ").all(|word| word.len() <= 75));
    }

    /// A server that says what it was told to say, whatever it hears.
    struct Scripted(io::Cursor<Vec<u8>>, Vec<u8>);

    impl Read for Scripted {
        fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
            self.0.read(octets)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.1.write(octets)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn said(script: &[u8]) -> io::Result<bool> {
        let to = ["a@b".to_owned(), "c@d".to_owned()];
        let target =
            MailTarget::new("smtp://127.0.0.1", ("m@b", &to), None, Path::new("/none")).unwrap();
        target.converse(Scripted(io::Cursor::new(script.to_vec()), Vec::new()), "[::1]", "text\r\n")
    }

    #[test]
    fn answers_say_whether_a_message_was_taken_is_refused_or_is_to_come_again() {
        let well = b"220 hi\r\n250-mail\r\n250 8BITMIME\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n221 bye\r\n";
        assert!(said(well).unwrap());
        // One mailbox is unknown, then both; the message is not wanted.
        let of = |rest: &str| said(format!("220 hi\r\n250 mail\r\n250 ok\r\n{rest}").as_bytes());
        assert!(of("550 who?\r\n250 ok\r\n354 go\r\n250 ok\r\n").unwrap());
        assert!(!of("550 who?\r\n550 who?\r\n").unwrap());
        assert!(!of("250 ok\r\n250 ok\r\n354 go\r\n554 spam\r\n").unwrap());
        for later in ["451 later\r\n", "250 ok\r\n250 ok\r\n354 go\r\n452 full\r\n", ""] {
            assert!(of(later).is_err(), "{later}");
        }
        // Whatever octets come, there is an end.
        for number in 0..2_000_u64 {
            let octets = (0..number % 40).map(|at| {
                let bits = (number * 31 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                b"220- 5\r\n\xff"[usize::try_from(bits >> 61).unwrap()]
            });
            drop(said(&octets.collect::<Vec<_>>()));
        }
        assert!(said(&[&b"220-"[..], &[b'x'; 100_000][..]].concat()).is_err());
    }

    #[test]
    fn a_message_has_a_date_and_a_name_of_its_own() {
        let to = ["a@b".to_owned()];
        let target =
            MailTarget::new("smtp://127.0.0.1", ("m@mon.example", &to), None, Path::new("/none"));
        let message =
            target.unwrap().message("s", "t", WallTime::from_nanos(1_795_294_799_000_000_007));
        // `date -u -R -d @1795294799`
        assert!(message.starts_with("Date: Sat, 21 Nov 2026 20:59:59 -0000\r\n"), "{message}");
        let id =
            format!("Message-ID: <1795294799000000007.{}@mon.example>\r\n", std::process::id());
        assert!(message.contains(&id), "{message}");
        assert_eq!(own_name([127, 0, 0, 1].into()), "[127.0.0.1]");
        assert_eq!(own_name(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])), "[IPv6:::1]");
    }

    #[test]
    fn a_server_is_named_by_a_url_and_is_on_loopback_unless_it_speaks_tls() {
        let to = ["a@b".to_owned()];
        let of = |url| MailTarget::new(url, ("m@b", &to), None, Path::new("/none"));
        assert_eq!(of("smtp://127.0.0.1").unwrap().authority, "127.0.0.1:25");
        for wrong in ["", "smtp://", "http://x", "smtp://x:y", "smtp://a@b"] {
            assert!(matches!(of(wrong), Err(MailError::Server { .. })), "{wrong}");
        }
        assert!(matches!(of("smtps://localhost"), Err(MailError::Roots(_))));
        let far = of("smtp://192.0.2.1").unwrap_err().to_string();
        assert!(far.contains("not loopback"), "{far}");
    }
}
