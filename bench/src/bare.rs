//! The least that a collector could do: send a batch, receive a batch, and look at nothing.
//!
//! Requests of the collector's size, made once, go to the same farm at the same interval, 64 a system
//! call; answers are counted and thrown away. What is left is the kernel's UDP stack, the floor under
//! every collector on this machine.
#![expect(unsafe_code, reason = "batched socket calls")]

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd as _;

use meikyo_units::{Nanos, WallTime};

use crate::placement::{Placement, place_thread, thread_cpu};

/// Datagrams a system call.
const BATCH: usize = 64;
/// Room for one answer.
const ANSWER_BYTES: usize = 2048;
/// Room for the answers of 10,000 agents at once; the kernel doubles it.
const RECEIVE_BUFFER_BYTES: i32 = 4 << 20;

/// What the loop does.
#[derive(Debug)]
pub(crate) struct BareLoop<'a> {
    /// One agent and its request each.
    pub(crate) requests: &'a [(SocketAddrV4, Vec<u8>)],
    /// Span between two rounds.
    pub(crate) every: Nanos,
    /// How many rounds.
    pub(crate) rounds: u64,
    /// Where its thread runs.
    pub(crate) placement: Placement,
}

/// Time and memory that a run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BareCost {
    /// Answers received.
    pub(crate) answers: u64,
    /// Requests without an answer before the next round.
    pub(crate) lost: u64,
    /// CPU time of the thread.
    pub(crate) cpu: Nanos,
}

/// Runs the loop on a thread of its own.
pub(crate) fn run(bare: &BareLoop<'_>) -> io::Result<BareCost> {
    let work = || {
        place_thread(bare.placement)?;
        rounds(bare)
    };
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(io::Error::other("the bare loop panicked")))
}

fn rounds(bare: &BareLoop<'_>) -> io::Result<BareCost> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.set_nonblocking(true)?;
    enlarge_receive_buffer(&socket)?;
    let mut outgoing = Outgoing::new(bare.requests);
    let mut incoming = Incoming::new();
    let mut cost = BareCost { answers: 0, lost: 0, cpu: Nanos::ZERO };
    let expected = bare.requests.len() as u64;
    let before = thread_cpu()?;
    let mut due = WallTime::now().floor(bare.every) + bare.every;
    for _ in 0..bare.rounds {
        wait_for_input(None, due)?;
        let mut answered = 0;
        let mut at = 0;
        while at < outgoing.headers.len() {
            at += outgoing.send(&socket, at)?;
            answered += incoming.receive(&socket)?;
        }
        due = due + bare.every;
        while answered < expected && wait_for_input(Some(&socket), due)? {
            answered += incoming.receive(&socket)?;
        }
        cost.answers += answered;
        cost.lost += expected.saturating_sub(answered);
    }
    cost.cpu = thread_cpu()?.saturating_sub(before);
    Ok(cost)
}

/// Requests laid out for `sendmmsg`. The headers point into the other vectors, which never change.
struct Outgoing {
    headers: Vec<libc::mmsghdr>,
    _addresses: Vec<libc::sockaddr_in>,
    _buffers: Vec<libc::iovec>,
    _octets: Vec<Vec<u8>>,
}

impl Outgoing {
    fn new(requests: &[(SocketAddrV4, Vec<u8>)]) -> Self {
        let mut octets: Vec<_> = requests.iter().map(|(_, octets)| octets.clone()).collect();
        let mut addresses: Vec<_> = requests.iter().map(|(to, _)| socket_address(*to)).collect();
        let mut buffers: Vec<_> = octets.iter_mut().map(|octets| buffer(octets)).collect();
        let headers = addresses.iter_mut().zip(&mut buffers);
        let headers = headers.map(|(address, buffer)| header(Some(address), buffer)).collect();
        Self { headers, _addresses: addresses, _buffers: buffers, _octets: octets }
    }

    /// Sends at most a batch from position `at` on; the number sent.
    fn send(&mut self, socket: &UdpSocket, at: usize) -> io::Result<usize> {
        let batch = &mut self.headers[at..];
        let count = u32::try_from(batch.len().min(BATCH)).expect("a batch is small");
        // SAFETY: `count` headers from `batch` on are live and point to live octets and addresses.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), batch.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Room for a batch of answers, laid out for `recvmmsg`.
struct Incoming {
    headers: Vec<libc::mmsghdr>,
    _buffers: Vec<libc::iovec>,
    _octets: Vec<Vec<u8>>,
}

impl Incoming {
    fn new() -> Self {
        let mut octets = vec![vec![0; ANSWER_BYTES]; BATCH];
        let mut buffers: Vec<_> = octets.iter_mut().map(|octets| buffer(octets)).collect();
        let headers = buffers.iter_mut().map(|buffer| header(None, buffer)).collect();
        Self { headers, _buffers: buffers, _octets: octets }
    }

    /// Receives all that is there; the number of datagrams.
    fn receive(&mut self, socket: &UdpSocket) -> io::Result<u64> {
        let mut received = 0;
        loop {
            let count = u32::try_from(self.headers.len()).expect("a batch is small");
            let headers = self.headers.as_mut_ptr();
            let fd = socket.as_raw_fd();
            // SAFETY: `count` headers are live and point to live room for a datagram each.
            let got = unsafe {
                libc::recvmmsg(fd, headers, count, libc::MSG_DONTWAIT, std::ptr::null_mut())
            };
            let Ok(got) = u64::try_from(got) else {
                let error = io::Error::last_os_error();
                let empty = error.kind() == io::ErrorKind::WouldBlock;
                return if empty { Ok(received) } else { Err(error) };
            };
            received += got;
            if got < u64::from(count) {
                return Ok(received);
            }
        }
    }
}

fn socket_address(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).expect("the family is 2"),
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

fn buffer(octets: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() }
}

fn header(address: Option<&mut libc::sockaddr_in>, buffer: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: an all-zero mmsghdr is a valid value of the plain C struct: no address, no buffers.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    if let Some(address) = address {
        header.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
        header.msg_hdr.msg_namelen =
            u32::try_from(size_of::<libc::sockaddr_in>()).expect("an address is small");
    }
    header.msg_hdr.msg_iov = buffer;
    header.msg_hdr.msg_iovlen = 1;
    header
}

/// Waits until the socket has something or `until` is reached; whether there is something.
fn wait_for_input(socket: Option<&UdpSocket>, until: WallTime) -> io::Result<bool> {
    let left = until.as_nanos().saturating_sub(WallTime::now().as_nanos()).max(0);
    let timeout = libc::timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 };
    let fd = socket.map_or(-1, |socket| socket.as_raw_fd());
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live pollfd (a negative descriptor is ignored), a live timeout, no signal mask.
    let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, std::ptr::null()) };
    if ready < 0 { Err(io::Error::last_os_error()) } else { Ok(ready > 0) }
}

fn enlarge_receive_buffer(socket: &UdpSocket) -> io::Result<()> {
    let size = RECEIVE_BUFFER_BYTES;
    // Without the right to exceed net.core.rmem_max the ordinary option gives what is allowed.
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // SAFETY: `size` is live for the call and of the length given.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const size).cast(),
                libc::socklen_t::try_from(size_of_val(&size)).expect("four bytes"),
            )
        };
        if result == 0 {
            return Ok(());
        }
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every datagram with itself until `count` are answered.
    fn echo(count: usize) -> (SocketAddrV4, std::thread::JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let std::net::SocketAddr::V4(address) = socket.local_addr().unwrap() else {
            panic!("an IPv4 address was asked for")
        };
        let answer = std::thread::spawn(move || {
            let mut octets = [0; 2048];
            for _ in 0..count {
                let (length, from) = socket.recv_from(&mut octets).unwrap();
                socket.send_to(&octets[..length], from).unwrap();
            }
        });
        (address, answer)
    }

    #[test]
    fn every_answer_is_counted_once() {
        let (address, answer) = echo(450);
        let requests: Vec<_> = (0..150_u8).map(|n| (address, vec![n; 90])).collect();
        let placement = Placement::default();
        let every = Nanos::from_millis(200);
        let bare = BareLoop { requests: &requests, every, rounds: 3, placement };
        let cost = run(&bare).unwrap();
        assert_eq!((cost.answers, cost.lost), (450, 0));
        assert!(cost.cpu > Nanos::ZERO);
        answer.join().unwrap();
    }

    #[test]
    fn what_is_not_answered_is_lost() {
        let (address, answer) = echo(70);
        let requests: Vec<_> = (0..100_u8).map(|n| (address, vec![n; 90])).collect();
        let placement = Placement::default();
        let every = Nanos::from_millis(100);
        let bare = BareLoop { requests: &requests, every, rounds: 1, placement };
        assert_eq!(run(&bare).unwrap().lost, 30);
        answer.join().unwrap();
    }
}
