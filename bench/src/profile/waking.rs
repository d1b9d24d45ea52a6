//! The least that an agent can take: a thread that only wakes up, sends what the agent sends, and takes what is
//! answered, beside programs that keep every CPU busy; and the same thread if it also packs as many samples, which it
//! has in memory. What an agent takes beyond that is its own.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use meikyo_profile::block::{BlockOptions, BlockWriter, Sample};
use meikyo_units::{Nanos, WallTime};

use crate::placement::{thread_cpu, wait_until};

/// What is answered to each that is sent, in octets: about an acknowledgement.
const ANSWER: usize = 16;

/// Octets in front of what is sent, which say how long that is.
const LENGTH: usize = 4;

/// The CPU time of a thread that wakes up so often and sends what is made each time, for a span.
pub(super) fn cost(
    every: Nanos,
    span: Nanos,
    mut make: impl FnMut(&mut Vec<u8>) + Send + 'static,
) -> std::io::Result<Nanos> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let other_end = std::thread::spawn(move || answer(&listener));
    let sender: JoinHandle<std::io::Result<Nanos>> = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (mut sent, mut answered) = (Vec::new(), [0; ANSWER]);
        // The first time takes memory.
        make(&mut sent);
        let (before, start) = (thread_cpu()?, WallTime::now());
        for turn in 1..=span.get() / every.get() {
            wait_until(start + every * turn)?;
            sent.clear();
            sent.extend_from_slice(&[0; LENGTH]);
            make(&mut sent);
            let length = u32::try_from(sent.len() - LENGTH).expect("some kB");
            sent[..LENGTH].copy_from_slice(&length.to_le_bytes());
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

/// What packs so many samples of each CPU, one a millisecond, of a loop with 47 addresses.
pub(super) fn packing(
    cpus: u32,
    samples: i64,
    is_in_haste: bool,
) -> impl FnMut(&mut Vec<u8>) + Send {
    let options = BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };
    let writer = |cpu| {
        let mut writer = BlockWriter::new("node001", cpu, options);
        writer.set_haste(is_in_haste);
        writer
    };
    let mut writers: Vec<BlockWriter> = (0..cpus).map(writer).collect();
    let sample = |at: i64| {
        let (jitter, place) = (at * 7_919 % 4_001, at.unsigned_abs() * 31 % 47);
        let time = 1_700_000_000_000_000_000 + at * 1_000_000 + jitter;
        Sample {
            time,
            tid: 1_234,
            pid: 1_234,
            address: 0x5555_0000_1000 + place * 4,
            ..Sample::default()
        }
    };
    let samples: Vec<Sample> = (0..samples).map(sample).collect();
    move |out| {
        for writer in &mut writers {
            samples.iter().for_each(|sample| writer.push(sample));
            let block = writer.finish().expect("they fit into a block");
            out.extend_from_slice(block.expect("there are samples").payload());
        }
    }
}

/// Answers all that comes, until nothing more does.
fn answer(listener: &TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let (mut length, mut got) = ([0; LENGTH], Vec::new());
    while stream.read_exact(&mut length).is_ok() {
        got.resize(u32::from_le_bytes(length) as usize, 0);
        stream.read_exact(&mut got)?;
        stream.write_all(&[0; ANSWER])?;
    }
    Ok(())
}
