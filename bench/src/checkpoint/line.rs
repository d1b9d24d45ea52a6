//! What the links carry by themselves: every host sends plain TCP to its neighbour, all at once.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use meikyo_console::failure::Failure;
use meikyo_spaces::Lan;

/// Octets that are sent and received at once.
const PIECE_BYTES: usize = 256 << 10;

/// The address of a host on a link.
pub(super) fn address(host: usize, link: usize, port: u16) -> SocketAddr {
    SocketAddr::new(Lan::address(host, link).into(), port)
}

/// Octets per second that each host's links carry together; the slowest host's.
pub(super) fn measure(
    hosts: &Lan,
    count: usize,
    links: usize,
    bytes: usize,
) -> Result<f64, Failure> {
    let barrier = Barrier::new(count);
    let port = 7_001;
    let seconds = thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|host| {
                let barrier = &barrier;
                scope.spawn(move || -> std::io::Result<f64> {
                    hosts.enter(host)?;
                    let listeners: Vec<TcpListener> = (0..links)
                        .map(|link| TcpListener::bind(address(host, link, port)))
                        .collect::<Result<_, _>>()?;
                    barrier.wait();
                    let next = (host + 1) % count;
                    let begin = Instant::now();
                    thread::scope(|scope| {
                        let mut lanes = Vec::new();
                        for (link, listener) in listeners.iter().enumerate() {
                            let next = address(next, link, port);
                            lanes.push(scope.spawn(move || send(next, bytes / links)));
                            lanes.push(scope.spawn(move || receive(listener)));
                        }
                        lanes.into_iter().try_for_each(|lane| {
                            lane.join().expect("a lane of the line does not panic")
                        })
                    })?;
                    let seconds = begin.elapsed().as_secs_f64();
                    barrier.wait();
                    Ok(seconds)
                })
            })
            .collect();
        let outcomes = threads.into_iter().map(|host| host.join().expect("no host panics"));
        outcomes.collect::<Result<Vec<f64>, _>>()
    })?;
    let slowest = seconds.into_iter().fold(0.0, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let bytes = bytes as f64;
    Ok(bytes / slowest)
}

fn send(address: SocketAddr, bytes: usize) -> std::io::Result<()> {
    let mut socket = TcpStream::connect(address)?;
    let piece = vec![7; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(PIECE_BYTES);
        socket.write_all(&piece[..count])?;
        left -= count;
    }
    Ok(())
}

fn receive(listener: &TcpListener) -> std::io::Result<()> {
    let (mut socket, _) = listener.accept()?;
    let mut piece = vec![0; PIECE_BYTES];
    while socket.read(&mut piece)? > 0 {}
    Ok(())
}
