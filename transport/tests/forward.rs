//! How long rows of an engine wait until they are sent.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test has a deadline")]

mod receivers {
    pub(crate) mod greeting;
}

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use meikyo_recording::{Batch, Column, ColumnKind, Meaning, TableSchema};
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Forward, Target, Uplink};
use meikyo_transport::wire::{Declared, Decoder, Message, Pace};
use receivers::greeting::greet;

/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn table() -> TableSchema {
    TableSchema::new("t", "", vec![Column::new("value", ColumnKind::U64, Meaning::Gauge, "")])
}

fn options() -> SenderOptions {
    SenderOptions {
        name: "node001".into(),
        cluster: None,
        identity: None,
        boot: 1,
        machine: "m".into(),
        streams: vec![Declared { stream: "s".into(), tables: vec![table()] }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    }
}

/// Greets a sender, and tells how many rows each of its blocks has.
fn receive(listener: &TcpListener, greeted: &mpsc::Sender<TcpStream>, rows: &mpsc::Sender<usize>) {
    let mut socket = greet(listener);
    greeted.send(socket.try_clone().unwrap()).unwrap();
    let (mut decoder, mut octets) = (Decoder::new(), vec![0; 1 << 16]);
    loop {
        match socket.read(&mut octets) {
            Ok(0) => return,
            Ok(count) => decoder.push(&octets[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("{error}"),
        }
        while let Some(message) = decoder.next_message().unwrap() {
            if let Message::Block(block) = message
                && rows.send(block.rows()).is_err()
            {
                return;
            }
        }
    }
}

#[test]
fn blocks_are_of_many_intervals_unless_the_receiver_wants_them_often() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let ((greeted, sockets), (rows, blocks)) = (mpsc::channel(), mpsc::channel());
    let receiver = std::thread::spawn(move || receive(&listener, &greeted, &rows));
    let target = Target { authority, prefix: String::new(), roots: None, token: None };
    let uplink = Uplink::start(target, options(), None).unwrap();
    let forward = Forward::start(uplink, "s", vec![table()]).unwrap();
    let mut socket = sockets.recv_timeout(PATIENCE).unwrap();
    // An interval every 20 ms, or whatever the machine has time for, until blocks are as is wanted.
    let until = |is_wanted: &dyn Fn(&[usize]) -> bool| {
        let (begin, mut found) = (Instant::now(), Vec::new());
        while !is_wanted(&found) {
            assert!(begin.elapsed() < PATIENCE, "{found:?}");
            let mut batch = Batch::new(0, &table());
            batch.begin_row(5);
            batch.put_u64(1, 7);
            assert!(forward.submit(&batch));
            found.extend(blocks.recv_timeout(Duration::from_millis(20)));
        }
        found
    };
    let unwanted = until(&|found| found.len() == 3);
    let mut pace = |every_ms| {
        socket.write_all(&Message::Pace(Pace { every_ms }).encoded()).unwrap();
    };
    pace(100);
    let many = unwanted[2];
    let few = |rows: &usize| 4 * rows <= many;
    until(&|found| found.len() >= 4 && found[found.len() - 4..].iter().all(few));
    pace(0);
    until(&|found| found.last().is_some_and(|rows| !few(rows)));
    drop(forward);
    receiver.join().unwrap();
}
