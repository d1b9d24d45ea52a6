//! The least that an agent can take: a thread that only wakes up, sends what the agent sends, and takes what is
//! answered, beside programs that keep every CPU busy. What an agent takes beyond that is its own.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use meikyo_units::{Nanos, WallTime};

use crate::placement::{thread_cpu, wait_until};

/// What is answered to each that is sent, in octets: about an acknowledgement.
const ANSWER: usize = 16;

/// The CPU time of a thread that wakes up so often and sends so many octets each time, for a span.
pub(super) fn cost(every: Nanos, octets: usize, span: Nanos) -> std::io::Result<Nanos> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let other_end = std::thread::spawn(move || answer(&listener, octets));
    let sender: JoinHandle<std::io::Result<Nanos>> = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (sent, mut answered) = (vec![0; octets], [0; ANSWER]);
        let (before, start) = (thread_cpu()?, WallTime::now());
        for turn in 1..=span.get() / every.get() {
            wait_until(start + every * turn)?;
            stream.write_all(&sent)?;
            match stream.read(&mut answered) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(thread_cpu()?.saturating_sub(before))
    });
    let cost = sender.join().expect("it does not panic");
    other_end.join().expect("it does not panic")?;
    cost
}

/// Answers all that comes, until nothing more does.
fn answer(listener: &TcpListener, octets: usize) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let (mut got, answer) = (vec![0; octets], [0; ANSWER]);
    while stream.read_exact(&mut got).is_ok() {
        stream.write_all(&answer)?;
    }
    Ok(())
}
