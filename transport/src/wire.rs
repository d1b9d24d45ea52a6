//! The octets of a session: frames with checksums, and what is in them.
//!
//! A frame is a header of 16 octets (kind, length, CRC-32 of the body, CRC-32 of the header) and a
//! body. The body of a block is a payload of packed rows as it is stored; all other bodies are JSON,
//! since they are rare, and a field that a later version adds is passed over by this one.
//! `docs/transport.md` describes every octet.
//!
//! A decoder takes any octets and never more memory than the limit that its side gave it.

use meikyo_recording::devices::Device;
use meikyo_recording::{PackedRows, TableSchema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::{BLOCK_BYTES_MAX, CHANGES_BYTES_MAX, CONTROL_BYTES_MAX, FACTS_BYTES_MAX};

/// The version of the protocol that is spoken, and the greatest that is understood.
pub const VERSION: u16 = 3;

/// The version that a collector speaks for which none stands by.
pub(crate) const VERSION_WITHOUT_STANDBY: u16 = 2;

/// The version that a sender without a cluster speaks, which earlier receivers understand.
pub(crate) const VERSION_WITHOUT_CLUSTER: u16 = 1;

/// Octets of a frame's header.
pub const HEADER_LEN: usize = 16;

const MAGIC: u8 = 0x4d;

/// A stream of a sender and the tables that its blocks are of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Its name, the same in all lives of the sender.
    pub stream: String,
    /// The tables that blocks of it may be of.
    pub tables: Vec<TableSchema>,
}

/// Numbers of a stream in one of the sender's lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// In which of its lives the sender numbered them.
    pub boot: u64,
    /// The stream whose blocks they number.
    pub stream: String,
    /// Ranges of numbers, first and last.
    pub ranges: Vec<(u64, u64)>,
}

/// The first that a sender says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol that it wants to speak.
    pub version: u16,
    /// The name that its token must be good for.
    pub sender: String,
    /// The cluster that it measures, whose recording its rows go to; `None` for the recording that all
    /// other senders share. It stands before the last colon of the sender's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// What collectors of the same devices are called together, each of which stands by for the others; it
    /// stands before the last `@` of the sender's name. `None` for who is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Which of its lives it is.
    pub boot: u64,
    /// The streams that it may send blocks of.
    pub streams: Vec<Declared>,
    /// What it has to send, this life's and that of earlier ones; `ranges` are one span each.
    pub holds: Vec<Numbers>,
    /// Whether `holds` is everything: lives that are not named are then over.
    pub tells_all: bool,
    /// Whether it understands [`Pace`] and [`Ask`].
    #[serde(default)]
    pub hears: bool,
    /// When this life began by the sender's clock, ns since the epoch; earlier senders do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_ns: Option<i64>,
}

/// Something that a stream's receiver wants to be told, in words that both ends of the stream know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The stream that the answer belongs to.
    pub stream: String,
    /// What is asked.
    pub words: String,
}

/// How often the receiver wants blocks of what is newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// The span that a block is to be of, ms; 0 for what the sender finds best.
    pub every_ms: u32,
}

/// The answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that is spoken from now on.
    pub version: u16,
    /// Octets of blocks that may be under way without an acknowledgement.
    pub window_bytes: u64,
    /// What of the sender's holdings is on the receiver's disk already.
    pub has: Vec<Numbers>,
}

/// Why blocks are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The spool was full, and the oldest blocks had to go.
    SpoolFull,
    /// The sender's thread did not follow, and its queue was full.
    QueueFull,
    /// A block was longer than blocks may be.
    TooLarge,
    /// What the spool held could not be read back.
    SpoolDamaged,
    /// The sender began anew, and nobody knows what it had made and not delivered.
    Restarted,
    /// The sender's life ended with everything delivered or kept: nothing is missing.
    Ended,
    /// Another collector's rows of the same intervals were stored: nothing is missing.
    Spare,
}

impl Reason {
    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SpoolFull => "spool_full",
            Self::QueueFull => "queue_full",
            Self::TooLarge => "too_large",
            Self::SpoolDamaged => "spool_damaged",
            Self::Restarted => "restarted",
            Self::Ended => "ended",
            Self::Spare => "spare",
        }
    }
}

/// The time of a gap of which the sender knows none.
pub const TIME_UNKNOWN: i64 = 0;

/// Blocks that will never come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The life that they are of.
    pub boot: u64,
    /// The stream whose numbers are missing.
    pub stream: String,
    /// The first number.
    pub first: u64,
    /// The last number that is missing.
    pub last: u64,
    /// How many rows they had; `None` when nobody knows.
    pub rows: Option<u64>,
    /// The least `time` of the rows, ns since the epoch; [`TIME_UNKNOWN`] when nobody knows.
    pub from_ns: i64,
    /// The greatest one.
    pub until_ns: i64,
    /// What made the sender give them up.
    pub reason: Reason,
}

/// A life that is over: the sender holds nothing of it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// The life.
    pub boot: u64,
    /// The stream that nothing is left of.
    pub stream: String,
}

/// What a sender says to measure how its clock stands against the receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// When it was sent, by the sender's clock, ns since the epoch.
    pub sent_ns: i64,
}

/// The answer to [`Ping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// As it was in the question.
    pub sent_ns: i64,
    /// When the question was received, by the receiver's clock.
    pub received_ns: i64,
    /// When the answer was sent, by the receiver's clock.
    pub answered_ns: i64,
}

/// How the receiver's clock stands against the sender's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// By how much the receiver's clock is ahead of the sender's.
    pub offset_ns: i64,
    /// The truth is at most so far from that, either way.
    pub error_ns: u64,
}

/// A clock that differs by more than that puts rows at the wrong time among those of others.
const CLOCK_WRONG_FROM_NS: u64 = 1_000_000_000;

impl Offset {
    /// Whether one of the two clocks is wrong: they differ by more than a second, whatever the error.
    pub fn is_wrong(&self) -> bool {
        self.offset_ns.unsigned_abs().saturating_sub(self.error_ns) > CLOCK_WRONG_FROM_NS
    }
}

/// Why a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The other side speaks a version that is too new.
    Version,
    /// The token does not allow it.
    Forbidden,
    /// Octets were damaged, or not what belongs there.
    Damaged,
    /// A limit was passed.
    TooLarge,
    /// The same sender has begun another session.
    Displaced,
    /// Another sender has the same name.
    Duplicate,
    /// Nothing came for too long.
    Silent,
    /// The receiver cannot store: a full disk, or a recording that is gone.
    Unable,
    /// The receiver ends.
    Ending,
}

/// The last that a side says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why, for programs.
    pub code: Code,
    /// Why, for people: what happened, and what to do.
    pub text: String,
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The first that a sender says.
    Hello(Hello),
    /// The answer to it.
    Welcome(Welcome),
    /// A block of packed rows with its origin.
    Block(PackedRows),
    /// A block as it differs from those that were told before in the session.
    Changes {
        /// Whether it is caught up with: such blocks differ from others of their kind.
        is_late: bool,
        /// What a [`DeltaEncoder`](meikyo_recording::DeltaEncoder) told.
        octets: Vec<u8>,
    },
    /// Rows that will not come.
    Gap(Gap),
    /// An earlier life that everything was delivered of.
    Over(Over),
    /// Numbers that are on the receiver's disk.
    Ack(Vec<Numbers>),
    /// A question for the time.
    Ping(Ping),
    /// The answer to it.
    Pong(Pong),
    /// What the sender made of the answers.
    Offset(Offset),
    /// The end.
    Refusal(Refusal),
    /// The devices of a sender's cluster, which its recording has beside its rows.
    Facts(Vec<Device>),
    /// The head of a file of the spool.
    SpoolHead(SpoolHead),
    /// How often blocks are wanted.
    Pace(Pace),
    /// What the receiver wants to be told.
    Ask(Ask),
}

/// What stands at the beginning of a file of a sender's spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolHead {
    /// The version of the file.
    pub version: u16,
    /// Since when the machine has been up, in whatever words the system has for it.
    pub machine: String,
    /// The sender's life.
    pub boot: u64,
    /// The next number of each stream.
    pub next: Vec<(String, u64)>,
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const BLOCK: u8 = 3;
const GAP: u8 = 4;
const ACK: u8 = 5;
const PING: u8 = 6;
const PONG: u8 = 7;
const OFFSET: u8 = 8;
const REFUSAL: u8 = 9;
const SPOOL_HEAD: u8 = 10;
const OVER: u8 = 11;
const PACE: u8 = 12;
const ASK: u8 = 13;
const FACTS: u8 = 14;
const CHANGES: u8 = 15;
const LATE_CHANGES: u8 = 16;

/// Why octets are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The header is not one.
    #[error("a frame's header is damaged, or the other side speaks something else")]
    Header,
    /// The header names a kind that this version does not know.
    #[error("a frame is of kind {0}, which this version does not know")]
    Kind(u8),
    /// Something else came before the greeting.
    #[error("a session begins with a greeting, and a frame of kind {0} came")]
    NoGreeting(u8),
    /// The body is longer than that kind may be.
    #[error("a frame of {found} octets was announced; at most {limit} are allowed")]
    TooLarge {
        /// How long it would be.
        found: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The body does not have its checksum.
    #[error("a frame's body does not have its checksum: it was damaged on the way")]
    Checksum,
    /// The body is not what its kind says.
    #[error("a frame cannot be understood: {0}")]
    Body(String),
}

impl WireError {
    /// What a session that hears this ends with.
    pub const fn code(&self) -> Code {
        match self {
            Self::TooLarge { .. } => Code::TooLarge,
            _ => Code::Damaged,
        }
    }
}

/// What a frame of a kind begins with, whose body has so many octets and that checksum.
fn header_of(kind: u8, body_len: usize, crc: u32) -> [u8; HEADER_LEN] {
    let length = u32::try_from(body_len)
        .expect("bodies are bounded by CHANGES_BYTES_MAX and FACTS_BYTES_MAX");
    let mut header = [0; HEADER_LEN];
    header[..2].copy_from_slice(&[MAGIC, kind]);
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..12].copy_from_slice(&crc.to_le_bytes());
    let of_header = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&of_header.to_le_bytes());
    header
}

/// Appends a frame of a kind.
fn frame(kind: u8, body: &[u8], crc: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&header_of(kind, body.len(), crc));
    out.extend_from_slice(body);
}

/// What the frame of a block begins with; its body is the block's payload.
pub(crate) fn block_header(rows: &PackedRows) -> [u8; HEADER_LEN] {
    header_of(BLOCK, rows.payload().len(), rows.checksum())
}

/// The frame of a block.
pub(crate) fn block_frame(rows: &PackedRows) -> Vec<u8> {
    [&block_header(rows), rows.payload()].concat()
}

/// Appends a frame with a JSON body.
fn json(kind: u8, body: &impl Serialize, out: &mut Vec<u8>) {
    let body = serde_json::to_vec(body).expect("texts and numbers can be written as JSON");
    frame(kind, &body, crc32fast::hash(&body), out);
}

impl Message {
    /// Appends the message's frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(body) => json(HELLO, body, out),
            Self::Welcome(body) => json(WELCOME, body, out),
            Self::Block(rows) => frame(BLOCK, rows.payload(), rows.checksum(), out),
            Self::Changes { is_late, octets } => {
                let kind = if *is_late { LATE_CHANGES } else { CHANGES };
                frame(kind, octets, crc32fast::hash(octets), out);
            }
            Self::Gap(body) => json(GAP, body, out),
            Self::Ack(body) => json(ACK, body, out),
            Self::Ping(body) => json(PING, body, out),
            Self::Pong(body) => json(PONG, body, out),
            Self::Offset(body) => json(OFFSET, body, out),
            Self::Refusal(body) => json(REFUSAL, body, out),
            Self::SpoolHead(body) => json(SPOOL_HEAD, body, out),
            Self::Over(body) => json(OVER, body, out),
            Self::Pace(body) => json(PACE, body, out),
            Self::Ask(body) => json(ASK, body, out),
            Self::Facts(body) => json(FACTS, body, out),
        }
    }

    /// The message's frame.
    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    fn decode(kind: u8, body: &[u8], crc: u32) -> Result<Self, WireError> {
        if kind == BLOCK {
            // Compares the checksum.
            let rows = PackedRows::received(body.to_vec(), crc);
            return rows.map(Self::Block).map_err(|error| match error {
                meikyo_recording::UnpackError::Checksum { .. } => WireError::Checksum,
                other => WireError::Body(other.to_string()),
            });
        }
        if crc32fast::hash(body) != crc {
            return Err(WireError::Checksum);
        }
        Ok(match kind {
            HELLO => Self::Hello(hello(body)?),
            WELCOME => Self::Welcome(parse(body)?),
            CHANGES | LATE_CHANGES => {
                Self::Changes { is_late: kind == LATE_CHANGES, octets: body.to_vec() }
            }
            GAP => Self::Gap(parse(body)?),
            ACK => Self::Ack(parse(body)?),
            PING => Self::Ping(parse(body)?),
            PONG => Self::Pong(parse(body)?),
            OFFSET => Self::Offset(parse(body)?),
            REFUSAL => Self::Refusal(parse(body)?),
            SPOOL_HEAD => Self::SpoolHead(parse(body)?),
            OVER => Self::Over(parse(body)?),
            PACE => Self::Pace(parse(body)?),
            ASK => Self::Ask(parse(body)?),
            FACTS => Self::Facts(parse(body)?),
            other => return Err(WireError::Kind(other)),
        })
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(|error| WireError::Body(error.to_string()))
}

/// A greeting in a version that this one does not know is told from one that is damaged: only the
/// field `version` must be there.
fn hello(body: &[u8]) -> Result<Hello, WireError> {
    #[derive(Deserialize)]
    struct Wanted {
        version: u16,
    }
    let Wanted { version } = parse(body)?;
    if version > VERSION {
        let (sender, boot, streams, holds) = (String::new(), 0, Vec::new(), Vec::new());
        let (cluster, identity, tells_all, hears, begun_ns) = (None, None, false, false, None);
        return Ok(Hello {
            version,
            sender,
            cluster,
            identity,
            boot,
            streams,
            holds,
            tells_all,
            hears,
            begun_ns,
        });
    }
    parse(body)
}

/// Takes octets as they come, and gives the messages in them.
#[derive(Debug, Default)]
pub struct Decoder {
    octets: Vec<u8>,
    /// Where the next frame begins.
    at: usize,
    /// Whether nothing but a greeting may come.
    awaits_greeting: bool,
}

impl Decoder {
    /// A decoder that has taken nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder that takes nothing but a greeting at first: a stranger is given no room for more.
    pub fn of_stranger() -> Self {
        Self { awaits_greeting: true, ..Self::default() }
    }

    /// Takes octets. What is kept of them is bounded by the longest frame and one call's octets, if
    /// [`Decoder::next_message`] is called until it gives nothing.
    pub fn push(&mut self, octets: &[u8]) {
        if self.at > 0 {
            self.octets.drain(..self.at);
            self.at = 0;
        }
        self.octets.extend_from_slice(octets);
    }

    /// Octets that no message was made of yet.
    pub fn buffered(&self) -> usize {
        self.octets.len() - self.at
    }

    /// The next message; `None` when more octets are needed.
    ///
    /// # Errors
    /// When the octets are no message; nothing behind can be read then.
    pub fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        let rest = &self.octets[self.at..];
        let Some(header) = Header::of(rest) else { return Ok(None) };
        let header = header?;
        if self.awaits_greeting && header.kind != HELLO {
            return Err(WireError::NoGreeting(header.kind));
        }
        let Some((message, length)) = header.message(rest)? else { return Ok(None) };
        self.at += length;
        self.awaits_greeting = false;
        Ok(Some(message))
    }
}

/// A frame's header whose checksum is right.
struct Header {
    kind: u8,
    /// Octets of the body, within the limit of the kind.
    length: usize,
    crc: u32,
}

impl Header {
    /// The header that octets begin with; `None` when more are needed.
    fn of(octets: &[u8]) -> Option<Result<Self, WireError>> {
        let header = octets.get(..HEADER_LEN)?;
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if header[0] != MAGIC
            || header[2..4] != [0, 0]
            || word(12) != crc32fast::hash(&header[..12])
        {
            return Some(Err(WireError::Header));
        }
        let kind = header[1];
        let limit = match kind {
            BLOCK => BLOCK_BYTES_MAX,
            CHANGES | LATE_CHANGES => CHANGES_BYTES_MAX,
            FACTS => FACTS_BYTES_MAX,
            _ => CONTROL_BYTES_MAX,
        };
        let Ok(length) = usize::try_from(word(4)) else { return Some(Err(WireError::Header)) };
        if length > limit {
            return Some(Err(WireError::TooLarge { found: length, limit }));
        }
        Some(Ok(Self { kind, length, crc: word(8) }))
    }

    /// The message behind the header that octets begin with, and how many its frame takes; `None`
    /// when more are needed.
    fn message(&self, octets: &[u8]) -> Result<Option<(Message, usize)>, WireError> {
        let end = HEADER_LEN + self.length;
        let Some(body) = octets.get(HEADER_LEN..end) else { return Ok(None) };
        Ok(Some((Message::decode(self.kind, body, self.crc)?, end)))
    }
}

/// The message that octets begin with, and how many its frame takes; `None` when they begin with no
/// whole one.
pub(crate) fn message_at(octets: &[u8]) -> Option<(Message, usize)> {
    Header::of(octets)?.ok()?.message(octets).ok()?
}

/// Whether octets are the beginning of a frame and end before it does.
pub(crate) fn is_cut_frame(octets: &[u8]) -> bool {
    match Header::of(octets) {
        None => octets.first() == Some(&MAGIC),
        Some(header) => header.is_ok_and(|header| octets.len() < HEADER_LEN + header.length),
    }
}

/// Whether octets that begin with a frame, or end within it, begin with that of a gap.
pub(crate) fn begins_gap(octets: &[u8]) -> bool {
    octets.starts_with(&[MAGIC, GAP])
}

/// Where the next whole frame begins in octets, at `from` or behind; `None` when there is none.
pub(crate) fn next_frame(octets: &[u8], from: usize) -> Option<usize> {
    let rest = octets.get(from..)?;
    let begins = rest.iter().enumerate().filter(|(_, octet)| **octet == MAGIC);
    begins.map(|(at, _)| from + at).find(|&at| message_at(&octets[at..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message> {
        let numbers = Numbers { boot: 7, stream: "s".into(), ranges: vec![(1, 5), (9, u64::MAX)] };
        vec![
            Message::Hello(Hello {
                version: 1,
                sender: "west:c".into(),
                cluster: Some("west".into()),
                identity: None,
                boot: 7,
                streams: vec![Declared { stream: "s".into(), tables: Vec::new() }],
                holds: vec![numbers.clone()],
                tells_all: true,
                hears: true,
                begun_ns: Some(-3),
            }),
            Message::Pace(Pace { every_ms: 100 }),
            Message::Ask(Ask { stream: "s".into(), words: "functions abcd".into() }),
            Message::Welcome(Welcome { version: 1, window_bytes: 9, has: vec![numbers.clone()] }),
            Message::Ack(vec![numbers]),
            Message::Changes { is_late: false, octets: vec![1, 2] },
            Message::Changes { is_late: true, octets: Vec::new() },
            Message::Ping(Ping { sent_ns: -5 }),
            Message::Offset(Offset { offset_ns: i64::MIN, error_ns: u64::MAX }),
            Message::Refusal(Refusal { code: Code::Forbidden, text: "no".into() }),
        ]
    }

    #[test]
    fn messages_come_back_however_the_octets_are_cut() {
        let octets: Vec<u8> = messages().iter().flat_map(Message::encoded).collect();
        for step in [1, 7, 64, octets.len()] {
            let mut decoder = Decoder::new();
            let mut found = Vec::new();
            for piece in octets.chunks(step) {
                decoder.push(piece);
                while let Some(message) = decoder.next_message().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, messages(), "pieces of {step}");
        }
    }

    #[test]
    fn every_changed_bit_is_seen() {
        let octets = Message::Ping(Ping { sent_ns: -5 }).encoded();
        for bit in 0..octets.len() * 8 {
            let mut changed = octets.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut decoder = Decoder::new();
            decoder.push(&changed);
            assert!(decoder.next_message().is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_length_that_is_too_great_is_refused_before_its_octets_come() {
        let mut octets = Vec::new();
        frame(PING, &vec![b' '; CONTROL_BYTES_MAX + 1], 0, &mut octets);
        let mut decoder = Decoder::new();
        decoder.push(&octets[..HEADER_LEN]);
        let limit = CONTROL_BYTES_MAX;
        assert_eq!(decoder.next_message(), Err(WireError::TooLarge { found: limit + 1, limit }));
    }

    #[test]
    fn a_greeting_of_a_later_version_is_known_as_one() {
        let mut octets = Vec::new();
        let later = serde_json::json!({"version": VERSION + 1, "something": "else"});
        json(HELLO, &later, &mut octets);
        let mut decoder = Decoder::new();
        decoder.push(&octets);
        let Ok(Some(Message::Hello(hello))) = decoder.next_message() else { panic!("a greeting") };
        assert_eq!(hello.version, VERSION + 1);
    }
}
