//! A server that takes rows under siege: a thousand connections that say nothing or half of something, wrong
//! tokens, frames that are too long, and senders that write where they may not. All of it is refused and
//! counted, and a sender beside them is not disturbed.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;

use meikyo_recording::{Origin, Recording, Selection, Source};
use meikyo_server::{hash_token, make_token};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink};
use meikyo_transport::wire::{Code, Declared, Decoder, Hello, Message, Refusal};
use meikyo_units::{Nanos, WallTime};

use crate::client::{Served, serve_with};
use crate::senders::{rows, table};

/// How long anything may take that has to happen.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// How long a block may take in the siege, on a machine that others use, too.
const UNDISTURBED: Nanos = Nanos::from_secs(5);

/// Connections that a client opens, and clients: a thousand connections.
const OF_CLIENT: usize = 20;
const CLIENTS: u8 = 50;

fn streams() -> Vec<Declared> {
    vec![Declared { stream: "s".into(), tables: vec![table()] }]
}

/// The clients of the siege are none that the others are.
fn besieger(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 9, number))
}

/// Asks for an upgrade with a token; the connection, and the status of the answer.
fn upgraded(served: &Served, from: IpAddr, token: &str) -> (TcpStream, u16) {
    let mut stream = served.connect_from(from);
    let request = format!(
        "GET /api/v1/ingest HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Connection: upgrade\r\nUpgrade: meikyo-rows/1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut octet = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut octet).unwrap();
        head.push(octet[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (stream, status)
}

fn hello(sender: &str, cluster: Option<&str>) -> Message {
    Message::Hello(Hello {
        version: 2,
        sender: sender.into(),
        cluster: cluster.map(str::to_owned),
        identity: None,
        boot: 1,
        streams: streams(),
        holds: Vec::new(),
        tells_all: true,
        hears: true,
        begun_ns: None,
    })
}

/// Says something; how the server ends the session.
fn refusal(served: &Served, token: &str, said: &[&[u8]]) -> Refusal {
    let (mut stream, status) = upgraded(served, besieger(200), token);
    assert_eq!(status, 101);
    for octets in said {
        stream.write_all(octets).unwrap();
    }
    let mut decoder = Decoder::new();
    let mut octets = [0; 4096];
    loop {
        while let Some(message) = decoder.next_message().unwrap() {
            if let Message::Refusal(refusal) = message {
                return refusal;
            }
        }
        let count = stream.read(&mut octets).unwrap();
        assert!(count > 0, "the server closed the connection without a word");
        decoder.push(&octets[..count]);
    }
}

/// The head of a frame that announces a gibibyte of a block.
fn announcing_a_gibibyte() -> Vec<u8> {
    let mut head = vec![0x4d, 3, 0, 0];
    head.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    head.extend_from_slice(&0_u32.to_le_bytes());
    let crc = crc32fast::hash(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    head
}

/// A block that says that it is of a sender.
fn block_of(sender: &str) -> Vec<u8> {
    let source = Source { sender: sender.into(), boot: 1, stream: "s".into() };
    let origin = Origin { source, first: 1, last: 1 };
    Message::Block(rows(0).with_origin(&origin).unwrap()).encoded()
}

/// Tokens for nodes, for the cluster `west` and for viewing, which stand in a file of the directory.
fn tokens(dir: &Path) -> [String; 3] {
    let all = [(); 3].map(|()| make_token());
    let [own, west, view] = all.each_ref().map(|token| hash_token(token).unwrap());
    let lines = format!("ingest node*,idle {own}\ningest west:* {west}\n{view}\n");
    std::fs::write(dir.join("tokens"), lines).unwrap();
    all
}

/// The sender that is not to be disturbed.
fn sender(served: &Served, token: &str) -> Uplink {
    let target = Target {
        authority: served.address.clone(),
        prefix: String::new(),
        roots: None,
        token: Some(token.to_owned()),
    };
    let options = SenderOptions {
        name: "node001".into(),
        cluster: None,
        identity: None,
        boot: 1,
        machine: String::new(),
        streams: streams(),
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    Uplink::start(target, options, None).unwrap()
}

/// Half of a request, and nothing behind an upgrade.
fn besiege(served: &Served, token: &str) -> Vec<TcpStream> {
    let mut besieging = Vec::new();
    for client in 1..=CLIENTS {
        for connection in 0..OF_CLIENT {
            if connection % 4 == 0 {
                let mut stream = served.connect_from(besieger(client));
                stream.write_all(b"GET /api/v1/ingest HTTP/1.1\r\nHost: loc").unwrap();
                besieging.push(stream);
            } else {
                let (stream, status) = upgraded(served, besieger(client), token);
                assert_eq!(status, 101);
                besieging.push(stream);
            }
        }
    }
    besieging
}

/// What nobody may say is refused with the reason.
fn say_what_is_refused(served: &Served, own: &str, west: &str) {
    let (_, status) = upgraded(served, besieger(201), "wrong");
    assert_eq!(status, 401);
    let greeting = hello("node002", None).encoded();
    let too_long = refusal(served, own, &[&greeting, &announcing_a_gibibyte()]);
    assert_eq!(too_long.code, Code::TooLarge, "{too_long:?}");
    let stranger = refusal(served, own, &[&announcing_a_gibibyte()]);
    assert_eq!(stranger.code, Code::TooLarge, "{stranger:?}");
    for (token, sender, cluster) in [
        (west, "east:c", Some("east")),
        (west, "west:c", Some("east")),
        (own, "west:c", Some("west")),
        (own, "elsewhere", None),
    ] {
        let refused = refusal(served, token, &[&hello(sender, cluster).encoded()]);
        assert_eq!(refused.code, Code::Forbidden, "{sender} {cluster:?}: {refused:?}");
    }
    let greeting = hello("west:c", Some("west")).encoded();
    let foreign = refusal(served, west, &[&greeting, &block_of("west:d")]);
    assert_eq!(foreign.code, Code::Forbidden, "{foreign:?}");
}

#[test]
fn what_is_refused_under_siege_is_counted_and_others_are_not_disturbed() {
    let dir = tempfile::tempdir().unwrap();
    let [own, west, view] = tokens(dir.path());
    let recording = dir.path().join("rec");
    let served = serve_with(&recording, |of| {
        of.ingest = Some(recording.clone());
        of.token_file = Some(dir.path().join("tokens"));
    });
    let sender = sender(&served, &own);
    let mut sent = 0;
    let mut deliver = |what: &str| {
        let begin = WallTime::now();
        for _ in 0..10 {
            sender.offer("s", rows(sent)).unwrap();
            sent += 1;
        }
        let status = sender.wait(PATIENCE, |status| status.sender.acknowledged_blocks >= sent);
        assert_eq!(status.sender.acknowledged_blocks, sent, "{what}: {status:?}");
        let took = WallTime::now().since(begin);
        assert!(took < UNDISTURBED, "{what}: {took}");
    };
    deliver("before the siege");
    let besieging = besiege(&served, &own);
    assert_eq!(besieging.len(), 1_000);
    deliver("with a thousand connections");
    say_what_is_refused(&served, &own, &west);
    assert!(!recording.join("clusters/east").exists(), "nobody may write there");
    deliver("while others are refused");

    let proof = format!("Authorization: Bearer {view}\r\n");
    let text = served.ask("GET", "/metrics", &proof, "").text();
    let refused = text.lines().find_map(|line| line.strip_prefix("meikyo_ingest_refused_total "));
    let refused: u64 = refused.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    // Those above; besides, those of the thousand that have said nothing for too long by now.
    assert!(refused >= 7, "{refused}");
    drop(besieging);
    deliver("after the siege");
    assert!(sender.finish(PATIENCE).is_delivered(), "not everything was delivered");
    drop(served);
    let recording = Recording::open(&recording).unwrap();
    let scan = recording.scan(&Selection::all("t")).unwrap();
    let found: usize = scan.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(found as u64, 40, "what the sender sent, and nothing else");
}
