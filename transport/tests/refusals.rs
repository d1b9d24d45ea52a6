//! What each side says to what it does not take.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod refusals {
    mod lives;
}

use meikyo_recording::{
    Column, ColumnKind, Meaning, Origin, PackedRows, Packer, Source, TableSchema,
};
use meikyo_transport::limits::{
    CLUSTERS_MAX, HOLDS_MAX, RANGES_MAX, STREAMS_MAX, STREAMS_OF_RECORDING_MAX, SpoolLimits,
};
use meikyo_transport::wire::{
    Ask, Code, Declared, Decoder, Gap, HEADER_LEN, Hello, Message, Numbers, Pace, Reason, Refusal,
    Welcome,
};
use meikyo_transport::{
    Directory, Now, OfferError, OnDisk, Output, Permit, Place, Receiver, Sender, SenderOptions,
    SessionError,
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
    let (sender, cluster, identity) = (sender.into(), None, None);
    let (tells_all, hears, begun_ns) = (true, true, None);
    let (version, boot) = (1, 7);
    Hello { version, sender, cluster, identity, boot, streams, holds, tells_all, hears, begun_ns }
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
    /// The numbers that these account for.
    numbers: Vec<(u64, u64)>,
    said: Vec<Message>,
    closed: Vec<(u64, Code)>,
    /// Gaps that were stored: their reasons, and the times that they reach from and to.
    gaps: Vec<(String, i64, i64)>,
}

impl Heard {
    fn refusal(&self) -> &Refusal {
        match self.said.last() {
            Some(Message::Refusal(refusal)) => refusal,
            other => panic!("{other:?} is no refusal"),
        }
    }
}

fn gap_in(rows: &PackedRows) -> Option<(String, i64, i64)> {
    let schema = meikyo_transport::gaps::transport_gaps::schema();
    let (batch, texts) = rows.unpack(&schema).ok()?;
    let bits = |name: &str| batch.bits(schema.column(name).unwrap(), 0).unwrap();
    let reason = texts[usize::try_from(bits("reason")).unwrap()].clone();
    Some((reason, bits("time").cast_signed(), bits("until_ns").cast_signed()))
}

/// Does what a receiver asks for, with a disk that has nothing.
fn hear(receiver: &mut Receiver) -> Heard {
    let mut heard = Heard::default();
    while let Some(output) = receiver.poll_output() {
        match output {
            Output::Open { place, tables, after } => {
                receiver.opened(at(1), (&place, &tables), after, &OnDisk::default());
            }
            Output::Store { ticket, rows, .. } => {
                heard.stored.push(ticket);
                heard.numbers.extend(rows.origin().map(|origin| (origin.first, origin.last)));
                heard.gaps.extend(gap_in(&rows));
            }
            Output::Facts { .. } => {}
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
        (Hello { version: 4, ..hello("node001") }, Code::Version, "update the receiver first"),
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
        (long, Code::TooLarge, "2097152 octets was announced; at most 1048576"),
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
    receiver.synced(&Place::new(None, "s"), first.stored[0]);
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

fn options(name: &str, streams: Vec<Declared>) -> SenderOptions {
    SenderOptions {
        name: name.into(),
        cluster: None,
        identity: None,
        boot: 7,
        machine: String::new(),
        streams,
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    }
}

fn sender() -> Sender<Directory> {
    Sender::open(options("node001", hello("node001").streams), None).unwrap()
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
fn rows_that_cannot_be_sent_are_refused_when_they_are_offered_and_told() {
    let mut sender = sender();
    let undeclared = sender.offer(at(1), "other", &rows()).unwrap_err();
    assert!(matches!(undeclared, OfferError::Undeclared { .. }) && !undeclared.is_told());
    let mut packer = Packer::new(table(ColumnKind::U64));
    let mut noise = 1_u64;
    for row in 0..300_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        packer.batch().begin_row(row);
        packer.batch().put_u64(1, noise);
    }
    let long = sender.offer(at(1), "s", &packer.pack().unwrap()).unwrap_err();
    assert!(matches!(long, OfferError::TooLarge { found } if found > 1 << 20) && long.is_told());
    // The number of the long one is told to be missing, with its rows.
    assert_eq!(sender.offer(at(1), "s", &rows()), Ok(2));
    sender.connected(at(1));
    let mut receiver = Receiver::new();
    receiver.connected(at(1), 1, Permit::anybody());
    let greeting = sender.poll_transmit(at(1)).unwrap();
    receiver.handle(at(1), 1, &greeting);
    let welcome = hear(&mut receiver).said.remove(0).encoded();
    sender.handle(at(1), &welcome).unwrap();
    let mut sent = Decoder::new();
    while let Some(octets) = sender.poll_transmit(at(1)) {
        sent.push(&octets);
        let message = sent.next_message().unwrap().unwrap();
        let Message::Gap(gap) = message else { continue };
        assert_eq!((gap.first, gap.last, gap.rows), (1, 1, Some(300_000)));
        assert_eq!((gap.reason, gap.from_ns, gap.until_ns), (Reason::TooLarge, 0, 299_999));
        return;
    }
    panic!("nothing told of the block that was too long");
}

/// Blocks of `boot` whose rows are noise, so that they are long.
fn long_block(sender: &str, boot: u64, number: u64) -> Message {
    let mut packer = Packer::new(table(ColumnKind::U64));
    let mut noise = 1_u64;
    for row in 0..110_000 {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        packer.batch().begin_row(row);
        packer.batch().put_u64(1, noise);
    }
    let source = Source { sender: sender.into(), boot, stream: "s".into() };
    let origin = Origin { source, first: number, last: number };
    Message::Block(packer.pack().unwrap().with_origin(&origin).unwrap())
}

#[test]
fn a_second_sender_of_one_name_is_refused_as_long_as_the_first_is_heard() {
    let mut receiver = greeted(1, "node001");
    let other = Hello { boot: 8, ..hello("node001") };
    receiver.connected(at(2), 2, Permit::anybody());
    receiver.handle(at(15), 2, &Message::Hello(other.clone()).encoded());
    let heard = hear(&mut receiver);
    assert_eq!(heard.closed, [(2, Code::Duplicate)]);
    assert!(heard.refusal().text.contains("two senders are called `node001`"));
    // The first one goes on, and nothing of it was given up.
    let heard = say(&mut receiver, 1, &[block("node001", 1)]);
    assert_eq!((heard.stored.len(), heard.said.len()), (1, 0));
    // One that has not been heard for long is down.
    receiver.connected(at(16), 3, Permit::anybody());
    receiver.handle(at(16), 3, &Message::Hello(other).encoded());
    let heard = hear(&mut receiver);
    assert_eq!(heard.closed, [(1, Code::Displaced)]);
    assert!(heard.said.iter().any(|said| matches!(said, Message::Welcome(_))), "{heard:?}");
}

fn standing_by(host: &str, boot: u64) -> Hello {
    let identity = Some("west:m".to_owned());
    Hello { version: 3, identity, boot, ..collector(&format!("west:m@{host}"), "west") }
}

#[test]
fn who_stands_by_is_one_of_its_own_cluster() {
    let refused = [
        Hello { cluster: None, ..standing_by("a", 1) },
        Hello { identity: Some("east:m".into()), ..standing_by("a", 1) },
        Hello { identity: Some("west:m@a".into()), ..standing_by("a", 1) },
        Hello { sender: "west:m@".into(), ..standing_by("a", 1) },
    ];
    for greeting in refused {
        let mut receiver = Receiver::new();
        receiver.connected(at(1), 1, Permit::anybody());
        let heard = say(&mut receiver, 1, &[Message::Hello(greeting)]);
        assert_eq!(heard.closed, [(1, Code::Forbidden)]);
        assert!(heard.refusal().text.contains("cannot stand by as one of"), "{heard:?}");
    }
    let mut receiver = Receiver::new();
    for (id, host) in [(1, "a"), (2, "b")] {
        receiver.connected(at(1), id, Permit::anybody());
        let heard = say(&mut receiver, id, &[Message::Hello(standing_by(host, 1))]);
        assert!(matches!(&heard.said[..], [Message::Welcome(of)] if of.version == 3), "{heard:?}");
    }
}

#[test]
fn a_block_that_is_not_on_the_disk_is_asked_for_again_of_all_who_measured_its_time() {
    for is_reopened in [false, true] {
        let (mut receiver, place) = (Receiver::new(), Place::new(Some("west"), "s"));
        for (session, host) in [(1, "a"), (2, "b")] {
            receiver.connected(at(1), session, Permit::anybody());
            let greeting = Hello { streams: hello("x").streams, ..standing_by(host, 7) };
            say(&mut receiver, session, &[Message::Hello(greeting)]);
        }
        let stored = *say(&mut receiver, 1, &[block("west:m@a", 1)]).stored.last().unwrap();
        assert_eq!(say(&mut receiver, 2, &[block("west:m@b", 1)]).stored, [0; 0], "it is spare");
        match is_reopened {
            true => receiver.opened(at(1), (&place, &[]), stored, &OnDisk::default()),
            false => receiver.lost(&place, stored),
        }
        assert_eq!(hear(&mut receiver).closed.len(), 2, "both sessions, {is_reopened}");
    }
}

#[test]
fn the_receivers_own_tables_and_undeclared_columns_are_not_taken() {
    let gaps = meikyo_transport::gaps::transport_gaps::schema();
    let mut packer = Packer::new(gaps.clone());
    packer.batch().begin_row(1);
    let source = Source { sender: "node001".into(), boot: 7, stream: "s".into() };
    let origin = Origin { source, first: 1, last: 1 };
    let own = packer.pack().unwrap().with_origin(&origin).unwrap();
    let mut receiver = greeted(1, "node001");
    let heard = say(&mut receiver, 1, &[Message::Block(own)]);
    assert_eq!((heard.closed.as_slice(), heard.stored.len()), (&[(1, Code::Damaged)][..], 0));
    assert!(heard.refusal().text.contains("did not declare table `transport_gaps`"));

    let mut packer = Packer::new(table(ColumnKind::F64));
    packer.batch().begin_row(1);
    let other = packer.pack().unwrap().with_origin(&origin).unwrap();
    let mut receiver = greeted(1, "node001");
    let heard = say(&mut receiver, 1, &[Message::Block(other)]);
    assert_eq!((heard.closed.as_slice(), heard.stored.len()), (&[(1, Code::Damaged)][..], 0));
    assert!(heard.refusal().text.contains("a column `value` of kind F64"), "{heard:?}");

    let columns = vec![Column::new("a b", ColumnKind::U64, Meaning::Gauge, "")];
    for (tables, text) in [
        (vec![gaps], "the receiver itself fills table `transport_gaps`"),
        (vec![TableSchema::new("t", "", columns)], "`a b` cannot name a column"),
    ] {
        let streams = vec![Declared { stream: "s".into(), tables }];
        let mut receiver = Receiver::new();
        receiver.connected(at(1), 1, Permit::anybody());
        let greeting = Hello { streams, ..hello("node001") };
        let heard = say(&mut receiver, 1, &[Message::Hello(greeting)]);
        assert_eq!(heard.closed, [(1, Code::Damaged)]);
        assert!(heard.refusal().text.contains(text), "{}", heard.refusal().text);
    }
}

#[test]
fn what_a_stream_that_cannot_be_opened_held_does_not_count_against_its_sender() {
    let mut receiver = greeted(1, "node001");
    let blocks: Vec<_> = (1..=12).map(|number| long_block("node001", 7, number)).collect();
    assert_eq!(say(&mut receiver, 1, &blocks).stored.len(), 12);
    receiver.not_opened(&Place::new(None, "s"), "its disk is full");
    assert_eq!(hear(&mut receiver).closed, [(1, Code::Unable)]);
    receiver.connected(at(1), 2, Permit::anybody());
    say(&mut receiver, 2, &[Message::Hello(hello("node001"))]);
    let again = say(&mut receiver, 2, &blocks);
    assert_eq!((again.stored.len(), again.closed.len()), (12, 0));
    // Without an acknowledgement no more than two windows are taken.
    let more: Vec<_> = (13..=30).map(|number| long_block("node001", 7, number)).collect();
    assert_eq!(say(&mut receiver, 2, &more).closed, [(2, Code::TooLarge)]);
}

#[test]
fn a_sender_may_say_any_number_of_missing_rows() {
    let mut receiver = greeted(1, "node001");
    let gap = |first: u64| {
        Message::Gap(Gap {
            boot: 7,
            stream: "s".into(),
            first,
            last: first,
            rows: Some(u64::MAX),
            from_ns: 1,
            until_ns: 1,
            reason: Reason::SpoolFull,
        })
    };
    assert_eq!(say(&mut receiver, 1, &[gap(1), gap(2), gap(3)]).stored.len(), 3);
    assert_eq!(receiver.counts().missing_rows, u64::MAX);
}

#[test]
fn a_slow_disk_is_nobodys_silence() {
    let mut receiver = greeted(1, "node001");
    receiver.tick(at(2));
    // The shell waited for its disk, and what came meanwhile was not read.
    receiver.tick(at(60));
    assert!(hear(&mut receiver).closed.is_empty());
    for second in 61..74 {
        receiver.tick(at(second));
    }
    assert!(hear(&mut receiver).closed.is_empty());
    for second in 74..76 {
        receiver.tick(at(second));
    }
    assert_eq!(hear(&mut receiver).closed, [(1, Code::Silent)]);
}

#[test]
fn answers_keep_to_the_limits_of_messages() {
    let mut receiver = greeted(1, "node001");
    let mut odd = Vec::new();
    for number in (1..6_000).step_by(2) {
        odd.extend(say(&mut receiver, 1, &[block("node001", number)]).stored);
    }
    receiver.synced(&Place::new(None, "s"), *odd.last().unwrap());
    let count = |numbers: &[Numbers]| numbers.iter().map(|of| of.ranges.len()).sum::<usize>();
    let acknowledged: Vec<_> = hear(&mut receiver)
        .said
        .iter()
        .map(|said| match said {
            Message::Ack(numbers) => count(numbers),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(acknowledged.iter().sum::<usize>(), 3_000);
    assert!(acknowledged.iter().all(|count| *count <= RANGES_MAX), "{acknowledged:?}");
    receiver.disconnected(1);
    receiver.connected(at(1), 2, Permit::anybody());
    let held = Numbers { boot: 7, stream: "s".into(), ranges: vec![(1, 6_000)] };
    let greeting = Hello { holds: vec![held], ..hello("node001") };
    let heard = say(&mut receiver, 2, &[Message::Hello(greeting)]);
    let [Message::Welcome(welcome)] = &heard.said[..] else { panic!("{heard:?}") };
    assert_eq!(count(&welcome.has), RANGES_MAX);
}

#[test]
fn a_stranger_is_given_room_for_a_greeting_and_time_for_one() {
    let mut receiver = Receiver::new();
    receiver.connected(at(1), 1, Permit::anybody());
    // Its header is enough to know.
    receiver.handle(at(1), 1, &block("node001", 1).encoded()[..HEADER_LEN]);
    let heard = hear(&mut receiver);
    assert_eq!(heard.closed, [(1, Code::Damaged)]);
    assert!(heard.refusal().text.contains("a session begins with a greeting"));
    receiver.connected(at(1), 2, Permit::anybody());
    for (second, octet) in (2..).zip(&Message::Hello(hello("node001")).encoded()[..13]) {
        receiver.handle(at(second), 2, &[*octet]);
        receiver.tick(at(second));
    }
    assert!(hear(&mut receiver).closed.is_empty());
    receiver.tick(at(15));
    receiver.tick(at(16));
    assert_eq!(hear(&mut receiver).closed, [(2, Code::Silent)]);
}

#[test]
fn a_recording_has_only_so_many_streams_of_senders() {
    let named = |sender: usize| {
        let stream = |at: usize| format!("s{}", sender * STREAMS_MAX + at);
        let tables = || vec![table(ColumnKind::U64)];
        let declared = |at| Declared { stream: stream(at), tables: tables() };
        let streams = (0..STREAMS_MAX).map(declared).collect();
        Hello { streams, ..hello(&format!("node{sender}")) }
    };
    let mut receiver = Receiver::new();
    let most = STREAMS_OF_RECORDING_MAX / STREAMS_MAX;
    for sender in 0..=most {
        let session = sender as u64;
        receiver.connected(at(1), session, Permit::anybody());
        let heard = say(&mut receiver, session, &[Message::Hello(named(sender))]);
        let expected = if sender < most { vec![] } else { vec![(session, Code::TooLarge)] };
        assert_eq!(heard.closed, expected, "{heard:?}");
    }
    // Who names streams as others do is taken.
    receiver.connected(at(1), 99, Permit::anybody());
    let again = Hello { sender: "node99".into(), ..named(0) };
    assert!(say(&mut receiver, 99, &[Message::Hello(again)]).closed.is_empty());
}

#[test]
fn names_and_tables_that_no_receiver_takes_are_said_when_a_sender_begins() {
    let with = |name: &str, stream: &str, columns: usize| {
        let column = |at| Column::new(&format!("c{at}"), ColumnKind::U64, Meaning::Gauge, "d");
        let columns: Vec<_> = (0..columns).map(column).collect();
        let tables = (0..6).map(|at| TableSchema::new(&format!("t{at}"), "", columns.clone()));
        let streams = vec![Declared { stream: stream.into(), tables: tables.collect() }];
        Sender::<Directory>::open(options(name, streams), None).map(drop)
    };
    with("node001", "s", 10).unwrap();
    for (begun, text) in [
        (with("node 1", "s", 1), "a sender's name has 1 to 128 octets"),
        (with("node001", "snmp", 1), "`snmp` cannot name a sender's stream"),
        (with("node001", "s/t", 1), "`s/t` cannot name a sender's stream"),
        (with("node001", "s", 1_024), "has 1025 columns"),
        (with("node001", "s", 1_000), "196608 are the most"),
    ] {
        let error = begun.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_greeting_keeps_to_its_limit_however_much_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let streams: Vec<_> = (0..4)
        .map(|at| Declared {
            stream: format!("{}{at}", "s".repeat(99)),
            tables: vec![table(ColumnKind::U64)],
        })
        .collect();
    for boot in 0..100 {
        let options =
            SenderOptions { boot: u64::MAX - boot, ..options("node001", streams.clone()) };
        let mut sender = Sender::open(options, Some(Directory::open(dir.path()).unwrap())).unwrap();
        for declared in &streams {
            sender.offer(at(1), &declared.stream, &rows()).unwrap();
        }
    }
    let mut last =
        Sender::open(options("node001", streams), Some(Directory::open(dir.path()).unwrap()))
            .unwrap();
    last.connected(at(1));
    let mut decoder = Decoder::new();
    decoder.push(&last.poll_transmit(at(1)).unwrap());
    let Ok(Some(Message::Hello(hello))) = decoder.next_message() else { panic!("a greeting") };
    assert_eq!((hello.holds.len(), hello.tells_all), (HOLDS_MAX, false));
}

#[test]
fn rows_are_of_hosts_that_the_token_names() {
    let host = Column::new("host", ColumnKind::Symbol, Meaning::Label, "");
    let table = TableSchema::new("t", "", vec![host]);
    let of_host = |sender: &str, host: &str| {
        let mut packer = Packer::new(table.clone());
        for text in [sender.rsplit(':').next().unwrap(), host] {
            let symbol = packer.symbol(text);
            packer.batch().begin_row(1);
            packer.batch().put_symbol(1, symbol);
        }
        let source = Source { sender: sender.into(), boot: 7, stream: "s".into() };
        let origin = Origin { source, first: 1, last: 1 };
        Message::Block(packer.pack().unwrap().with_origin(&origin).unwrap())
    };
    for (patterns, sender, host, is_taken) in [
        (&["node*"][..], "node001", "node001", true),
        (&["node*"], "node001", "node002", true),
        (&["node001"], "node001", "node002", false),
        (&["west:*"], "west:node001", "node002", true),
        (&["west:node00?"], "west:node001", "node011", false),
        (&["west:*", "*"], "west:node001", "anything", true),
    ] {
        let mut receiver = Receiver::new();
        let senders = patterns.iter().map(|&pattern| pattern.into()).collect();
        receiver.connected(at(1), 1, Permit { senders });
        let streams = vec![Declared { stream: "s".into(), tables: vec![table.clone()] }];
        let greeting = Hello { streams, ..hello(sender) };
        say(&mut receiver, 1, &[Message::Hello(greeting)]);
        let heard = say(&mut receiver, 1, &[of_host(sender, host)]);
        assert_eq!(heard.stored.len() == 1, is_taken, "{patterns:?} {host}: {heard:?}");
        if !is_taken {
            assert_eq!(heard.closed, [(1, Code::Forbidden)]);
            assert!(heard.refusal().text.contains(&format!("rows of host `{host}`")));
        }
    }
}

/// Whoever watches wants blocks more often; an earlier sender, which does not know that, is told nothing.
#[test]
fn senders_are_told_how_often_blocks_are_wanted_when_that_changes_and_only_if_they_understand() {
    let mut receiver = greeted(1, "node001");
    // As a sender of version 0.1 greets, which names no such field.
    receiver.connected(at(1), 2, Permit::anybody());
    say(&mut receiver, 2, &[Message::Hello(Hello { hears: false, ..hello("node002") })]);
    for (every, said) in [(0, vec![]), (100, vec![100]), (100, vec![])] {
        receiver.set_pace(|sender, _| if sender.starts_with("node00") { every } else { 0 });
        let said = said.into_iter().map(|every_ms| Message::Pace(Pace { every_ms }));
        assert_eq!(hear(&mut receiver).said, said.collect::<Vec<_>>());
    }
    assert!(receiver.ask("node001", "s", "functions abcd"));
    let ask = Ask { stream: "s".into(), words: "functions abcd".into() };
    assert_eq!(hear(&mut receiver).said, [Message::Ask(ask)]);
    for (sender, stream) in [("node001", "other"), ("node002", "s"), ("node003", "s")] {
        assert!(!receiver.ask(sender, stream, "functions abcd"), "{sender} {stream}");
    }
    assert!(hear(&mut receiver).said.is_empty());
    receiver.set_pace(|_, _| 0);
    assert_eq!(hear(&mut receiver).said, [Message::Pace(Pace { every_ms: 0 })]);
}

#[test]
fn a_sender_follows_the_pace_while_its_session_lasts_and_keeps_some_questions() {
    let streams = hello("node001").streams;
    let mut sender = Sender::<Directory>::open(options("node001", streams), None).unwrap();
    let tell = |sender: &mut Sender<Directory>, message: Message| {
        sender.handle(at(1), &message.encoded()).unwrap();
    };
    sender.connected(at(1));
    let welcome = Welcome { version: 1, window_bytes: 9, has: Vec::new() };
    tell(&mut sender, Message::Welcome(welcome));
    assert_eq!(sender.status().pace, None);
    tell(&mut sender, Message::Pace(Pace { every_ms: 100 }));
    assert_eq!(sender.status().pace, Some(Nanos::from_millis(100)));
    for number in 0..2_000 {
        let words = format!("functions {number}");
        tell(&mut sender, Message::Ask(Ask { stream: "s".into(), words }));
    }
    let asked: Vec<_> = std::iter::from_fn(|| sender.next_asked()).collect();
    assert_eq!((asked.len(), &*asked[1_023].words), (1_024, "functions 1023"));
    tell(&mut sender, Message::Pace(Pace { every_ms: 0 }));
    assert_eq!(sender.status().pace, None);
    tell(&mut sender, Message::Pace(Pace { every_ms: 50 }));
    sender.disconnected(at(2), 0);
    assert_eq!(sender.status().pace, None);
    // Of one that stands by they always are.
    let Hello { sender: name, cluster, identity, .. } = standing_by("a", 1);
    let own = SenderOptions { cluster, identity, ..options(&name, hello("node001").streams) };
    let sender = Sender::<Directory>::open(own, None).unwrap();
    assert_eq!(sender.status().pace, Some(Nanos::from_millis(100)));
}

#[test]
fn a_greeting_of_an_earlier_sender_hears_nothing() {
    let text = serde_json::to_string(&hello("node001")).unwrap();
    let earlier = text.replace(",\"hears\":true", "");
    assert_ne!(text, earlier);
    let found: Hello = serde_json::from_str(&earlier).unwrap();
    assert_eq!(found, Hello { hears: false, ..hello("node001") });
}

/// A greeting of a collector, with a stream that Meikyo itself writes elsewhere.
fn collector(sender: &str, cluster: &str) -> Hello {
    let streams = vec![Declared { stream: "snmp".into(), tables: vec![table(ColumnKind::U64)] }];
    Hello { version: 2, cluster: Some(cluster.into()), streams, ..hello(sender) }
}

#[test]
fn a_collector_writes_into_the_recording_of_the_cluster_in_its_name_and_into_no_other() {
    for (greeting, code, text) in [
        (collector("east:c", "east"), Code::Forbidden, "the token is for west:*, not for `east:c`"),
        (
            collector("west:c", "east"),
            Code::Forbidden,
            "may not write into the recording of cluster `east`",
        ),
        (collector("west:c:d", "west"), Code::Forbidden, "for senders called `west:...`"),
        (collector("west:c", ""), Code::Damaged, "`` cannot name a cluster"),
        (collector("west:c", "../west"), Code::Damaged, "cannot name a cluster"),
        (
            Hello { cluster: None, ..collector("west:c", "west") },
            Code::Damaged,
            "`snmp` cannot name",
        ),
    ] {
        let mut receiver = Receiver::new();
        receiver.connected(at(1), 1, Permit { senders: vec!["west:*".into()] });
        let heard = say(&mut receiver, 1, &[Message::Hello(greeting)]);
        assert_eq!((heard.closed.as_slice(), heard.refusal().code), (&[(1, code)][..], code));
        assert!(heard.refusal().text.contains(text), "{}", heard.refusal().text);
        assert_eq!(receiver.known().count(), 0);
    }
    let mut receiver = Receiver::new();
    receiver.connected(at(1), 1, Permit { senders: vec!["west:*".into()] });
    receiver.handle(at(1), 1, &Message::Hello(collector("west:c", "west")).encoded());
    let Some(Output::Open { place, tables, after }) = receiver.poll_output() else {
        panic!("no stream is opened");
    };
    assert_eq!(place, Place::new(Some("west"), "snmp"));
    receiver.opened(at(1), (&place, &tables), after, &OnDisk::default());
    let heard = hear(&mut receiver);
    assert!(matches!(&heard.said[..], [Message::Welcome(welcome)] if welcome.version == 2));
    let known: Vec<_> = receiver.known().collect();
    assert!(known[0].is_connected && known[0].cluster.as_deref() == Some("west"), "{known:?}");
    // Its rows are of whatever device; another's rows it cannot send.
    let foreign = say(&mut receiver, 1, &[block("east:c", 1)]);
    assert_eq!(foreign.closed, [(1, Code::Forbidden)]);
    assert!(receiver.known().all(|state| !state.is_connected));
}

#[test]
fn changes_of_blocks_that_were_never_told_end_the_session() {
    for octets in [vec![], vec![0, 0], vec![9; 40]] {
        let mut receiver = greeted(1, "node001");
        let changes = Message::Changes { is_late: false, octets };
        let heard = say(&mut receiver, 1, &[changes]);
        assert_eq!(heard.closed, [(1, Code::Damaged)]);
        assert!(heard.refusal().text.contains("what changed is not told whole"));
    }
    // Facts are of a cluster's devices.
    let mut receiver = greeted(1, "node001");
    assert_eq!(say(&mut receiver, 1, &[Message::Facts(Vec::new())]).closed, [(1, Code::Damaged)]);
}

#[test]
fn a_receiver_has_room_for_so_many_clusters() {
    let mut receiver = Receiver::new();
    for number in 0..=CLUSTERS_MAX as u64 {
        let cluster = format!("c{number}");
        receiver.connected(at(1), number, Permit::anybody());
        let greeting = collector(&format!("{cluster}:c"), &cluster);
        let heard = say(&mut receiver, number, &[Message::Hello(greeting)]);
        if number < CLUSTERS_MAX as u64 {
            assert!(matches!(heard.said[..], [Message::Welcome(_)]), "{heard:?}");
        } else {
            assert_eq!(heard.closed, [(number, Code::TooLarge)]);
            assert!(heard.refusal().text.contains("no room for `c256`"));
        }
    }
}
