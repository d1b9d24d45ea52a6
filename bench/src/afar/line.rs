//! A line as the two ends of a TCP connection see it: so many bits a second, so long a way, and a queue
//! that makes the sender wait when it is full. It loses nothing, and can be cut.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};

use meikyo_units::{Nanos, WallTime};

use crate::placement::wait_until;

/// What a line lets through in each direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePlan {
    pub(super) bits_per_s: u64,
    /// How long octets are under way, one way.
    pub(super) delay: Nanos,
}

/// Octets that are read at once, as a packet has them.
const PIECE_BYTES: usize = 1_400;

/// Pieces that wait for the line at most: 100 ms of 20 Mbit/s.
const QUEUE_PIECES: usize = 180;

/// A line between a port of loopback and a server.
#[derive(Debug)]
pub(super) struct Line {
    authority: String,
    is_open: Arc<AtomicBool>,
}

impl Line {
    /// A line to a server that is cut until it is mended; it lies as long as the process runs.
    pub(super) fn to(server: &str, plan: LinePlan) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let authority = listener.local_addr()?.to_string();
        let is_open = Arc::new(AtomicBool::new(false));
        let (server, opened) = (server.to_owned(), Arc::clone(&is_open));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if !opened.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(&server) else { continue };
                let ends = [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))];
                for (from, to) in ends {
                    if let (Ok(from), Ok(to)) = (from, to) {
                        lay(from, to, plan);
                    }
                }
            }
        });
        Ok(Self { authority, is_open })
    }

    /// Where senders connect to.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Lets connections through from now on.
    pub(super) fn mend(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }
}

/// Carries octets in one direction: one thread reads, one lets through what the line carries, one hands
/// over what has come to its end.
fn lay(mut from: TcpStream, mut to: TcpStream, plan: LinePlan) {
    let (pieces, queue) = sync_channel::<Vec<u8>>(QUEUE_PIECES);
    let (carried, arriving) = channel::<(WallTime, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut octets = [0; PIECE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut octets) {
            if pieces.send(octets[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        let mut busy_until = WallTime::now();
        for octets in queue {
            let takes = octets.len() as u64 * 8 * Nanos::SECOND.get() / plan.bits_per_s;
            busy_until = busy_until.max(WallTime::now()) + Nanos::new(takes);
            let has_passed = wait_until(busy_until).is_ok();
            if !has_passed || carried.send((busy_until + plan.delay, octets)).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, octets) in arriving {
            if wait_until(due).is_err() || to.write_all(&octets).is_err() {
                break;
            }
        }
        // The other end learns that the connection is gone; it may know by itself.
        drop(to.shutdown(Shutdown::Both));
    });
}
