//! What each side says to what it does not take.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use meikyo_recording::{
    Column, ColumnKind, Meaning, Origin, PackedRows, Packer, Received, Source, TableSchema,
};
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::wire::{Code, Declared, Decoder, Hello, Message, Refusal, Welcome};
use meikyo_transport::{
    Directory, Now, OfferError, Output, Permit, Receiver, Sender, SenderOptions, SessionError,
};
use meikyo_units::{Nanos, WallTime};

fn at(seconds: u64) -> Now {
    let wall = WallTime::from_nanos(1_795_294_799_000_000_000);
    Now { monotonic: Nanos::from_secs(seconds), wall }
}

fn table(kind: ColumnKind) -> TableSchema {
    TableSchema::new("t", "", vec![Column::new("value", kind, Meaning::Gauge, "")])
}

fn hello(sender: &str) -> Hello {
    let tables = vec![table(ColumnKind::U64)];
    let streams = vec![Declared { stream: "s".into(), tables }];
    let holds = Vec::new();
    Hello { version: 1, sender: sender.into(), boot: 7, streams, holds, tells_all: true }
}

fn rows() -> PackedRows {
    let mut packer = Packer::new(table(ColumnKind::U64));
    packer.batch().begin_row(5);
    packer.batch().put_u64(1, 1);
    packer.pack().unwrap()
}

fn block(sender: &str, number: u64) -> Message {
    let source = Source { sender: sender.into(), boot: 7, stream: "s".into() };
    Message::Block(rows().with_origin(&Origin { source, first: number, last: number }).unwrap())
}

/// What a receiver was asked to store, what it said, and why it closed.
#[derive(Debug, Default)]
struct Heard {
    stored: Vec<u64>,
    said: Vec<Message>,
    closed: Vec<(u64, Code)>,
}

impl Heard {
    fn refusal(&self) -> &Refusal {
        match self.said.last() {
            Some(Message::Refusal(refusal)) => refusal,
            other => panic!("{other:?} is no refusal"),
        }
    }
}

/// Does what a receiver asks for, with a disk that has nothing.
fn hear(receiver: &mut Receiver) -> Heard {
    let mut heard = Heard::default();
    while let Some(output) = receiver.poll_output() {
        match output {
            Output::Open { stream, tables, after } => {
                receiver.opened(at(1), (&stream, &tables), after, &Received::default());
            }
            Output::Store { ticket, .. } => heard.stored.push(ticket),
            Output::Send { octets, .. } => {
                let mut decoder = Decoder::new();
                decoder.push(&octets);
                heard.said.push(decoder.next_message().unwrap().unwrap());
            }
            Output::Close { session, code } => heard.closed.push((session, code)),
        }
    }
    heard
}

fn say(receiver: &mut Receiver, session: u64, messages: &[Message]) -> Heard {
    for message in messages {
        receiver.handle(at(1), session, &message.encoded());
    }
    hear(receiver)
}

fn greeted(session: u64, sender: &str) -> Receiver {
    let mut receiver = Receiver::new();
    receiver.connected(at(1), session, Permit { senders: vec!["node*".into()] });
    let heard = say(&mut receiver, session, &[Message::Hello(hello(sender))]);
    assert!(matches!(heard.said[..], [Message::Welcome(_)]), "{heard:?}");
    receiver
}

#[test]
fn a_greeting_that_cannot_be_taken_is_refused_with_what_to_do() {
    let of_kind = |kind| vec![Declared { stream: "s".into(), tables: vec![table(kind)] }];
    let taken = vec![Declared { stream: "log".into(), tables: Vec::new() }];
    for (greeting, code, text) in [
        (Hello { version: 2, ..hello("node001") }, Code::Version, "update the receiver first"),
        (hello("other"), Code::Forbidden, "the token is for node*, not for `other`"),
        (hello("node 1"), Code::Damaged, "a sender's name has"),
        (Hello { streams: Vec::new(), ..hello("node1") }, Code::TooLarge, "1 to 16 streams"),
        (Hello { streams: taken, ..hello("node1") }, Code::Damaged, "`log` cannot name"),
        (
            Hello { streams: of_kind(ColumnKind::F64), ..hello("node1") },
            Code::Damaged,
            "column `value` of table `t` is of another kind",
        ),
    ] {
        let mut receiver = greeted(1, "node009");
        receiver.connected(at(1), 2, Permit { senders: vec!["node*".into()] });
        let heard = say(&mut receiver, 2, &[Message::Hello(greeting)]);
        assert_eq!((heard.closed.as_slice(), heard.refusal().code), (&[(2, code)][..], code));
        assert!(heard.refusal().text.contains(text), "{}", heard.refusal().text);
        // Others go on.
        assert_eq!(say(&mut receiver, 1, &[block("node009", 1)]).stored.len(), 1);
    }
}

#[test]
fn what_is_damaged_too_long_or_anothers_ends_the_session() {
    let mut damaged = block("node001", 1).encoded();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let mut long = block("node001", 1).encoded();
    long[4..8].copy_from_slice(&(2_u32 << 20).to_le_bytes());
    let crc = crc32fast::hash(&long[..12]);
    long[12..16].copy_from_slice(&crc.to_le_bytes());
    let foreign = Message::Welcome(Welcome { version: 1, window_bytes: 1, has: Vec::new() });
    for (octets, code, text) in [
        (damaged, Code::Damaged, "does not have its checksum"),
        (long, Code::TooLarge, "2097152 octets was announced, and 1048576"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), Code::Damaged, "speaks something else"),
        (block("node002", 1).encoded(), Code::Forbidden, "`node001` sent a block of `node002`"),
        (Message::Block(rows()).encoded(), Code::Damaged, "has no origin"),
        (foreign.encoded(), Code::Damaged, "where it does not belong"),
    ] {
        let mut receiver = greeted(1, "node001");
        receiver.handle(at(1), 1, &octets);
        let heard = hear(&mut receiver);
        assert_eq!(heard.closed, [(1, code)], "{heard:?}");
        assert!(heard.refusal().text.contains(text), "{}", heard.refusal().text);
        assert!(heard.stored.is_empty());
        // What comes behind it is not listened to.
        assert!(say(&mut receiver, 1, &[block("node001", 2)]).stored.is_empty());
    }
}

#[test]
fn a_block_is_stored_once_and_acknowledged_when_it_is_on_the_disk() {
    let mut receiver = greeted(1, "node001");
    let first = say(&mut receiver, 1, &[block("node001", 1), block("node001", 1)]);
    assert_eq!((first.stored.len(), first.said.len()), (1, 0));
    receiver.synced("s", first.stored[0]);
    assert!(matches!(hear(&mut receiver).said[..], [Message::Ack(_)]));
    let again = say(&mut receiver, 1, &[block("node001", 1)]);
    assert!(again.stored.is_empty() && matches!(again.said[..], [Message::Ack(_)]));
}

#[test]
fn a_sender_that_comes_again_ends_its_earlier_session() {
    let mut receiver = greeted(1, "node001");
    receiver.connected(at(2), 2, Permit::anybody());
    let heard = say(&mut receiver, 2, &[Message::Hello(hello("node001"))]);
    assert_eq!(heard.closed, [(1, Code::Displaced)]);
    assert_eq!(receiver.senders().collect::<Vec<_>>(), ["node001"]);
}

#[test]
fn who_says_nothing_for_long_is_sent_away() {
    let mut receiver = greeted(1, "node001");
    receiver.tick(at(15));
    assert!(hear(&mut receiver).closed.is_empty());
    receiver.tick(at(16));
    assert_eq!(hear(&mut receiver).closed, [(1, Code::Silent)]);
}

fn sender() -> Sender<Directory> {
    let options = SenderOptions {
        name: "node001".into(),
        boot: 7,
        machine: String::new(),
        streams: hello("node001").streams,
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    Sender::open(options, None).unwrap()
}

#[test]
fn a_sender_says_why_a_session_ended() {
    let newer = Message::Welcome(Welcome { version: 9, window_bytes: 1, has: Vec::new() });
    let refusal =
        Message::Refusal(Refusal { code: Code::Version, text: "update the receiver".into() });
    for (octets, text) in [
        (newer.encoded(), "wants to speak version 9"),
        (refusal.encoded(), "ended the session: update the receiver"),
        (block("node001", 1).encoded(), "where it does not belong"),
        (vec![0; 100], "cannot be understood"),
    ] {
        let mut sender = sender();
        sender.connected(at(1));
        let error = sender.handle(at(1), &octets).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    let mut silent = sender();
    silent.connected(at(1));
    assert_eq!(silent.tick(at(16)), Err(SessionError::Silent));
}

#[test]
fn rows_that_cannot_be_sent_are_refused_when_they_are_offered() {
    let mut sender = sender();
    let undeclared = sender.offer(at(1), "other", &rows()).unwrap_err();
    assert!(matches!(undeclared, OfferError::Undeclared { .. }));
    let mut packer = Packer::new(table(ColumnKind::U64));
    let mut noise = 1_u64;
    for row in 0..300_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        packer.batch().begin_row(row);
        packer.batch().put_u64(1, noise);
    }
    let long = sender.offer(at(1), "s", &packer.pack().unwrap()).unwrap_err();
    assert!(matches!(long, OfferError::TooLarge { found } if found > 1 << 20));
    assert_eq!(sender.offer(at(1), "s", &rows()), Ok(1));
}
