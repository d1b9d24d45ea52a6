//! A slow line: two network namespaces, a tun device in each, and a relay between them that lets
//! packets through as slowly as the line would.
//!
//! Each direction has a queue that drops what comes when it is full, as a router at the end of a line
//! has. The relay copies packets in user space: at 1 Mbit/s that is a hundred of 1,500 octets a second.
//! Namespaces and devices are the bench's own and go with it. Making them needs `CAP_NET_ADMIN` and
//! `CAP_SYS_ADMIN`.
#![expect(unsafe_code, reason = "namespaces and tun devices are asked of the kernel")]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use meikyo_console::failure::Failure;
use meikyo_sockets::{readable, wait};
use meikyo_units::{Nanos, WallTime};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// What a line lets through.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePlan {
    pub(super) bits_per_s: u64,
    /// How long a packet is under way behind the queue, in either direction.
    pub(super) delay: Nanos,
    /// Octets that wait at most, in either direction.
    pub(super) queue_bytes: usize,
}

/// The address of the end where the server is; the other end has the next one.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const BROWSER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const DEVICE: &str = "meikyo-line";
/// The greatest packet that a tun device hands over here.
const PACKET_BYTES_MAX: usize = 1_500;
/// How often a relay that has nothing to do looks whether it is to end.
const PATIENCE: Nanos = Nanos::from_millis(100);

/// A line between two namespaces; everything of it goes when it is dropped.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) server: Namespace,
    pub(super) browser: Namespace,
    state: Arc<State>,
    relays: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct State {
    plan: LinePlan,
    /// Whether packets are held up as the plan says.
    slow: AtomicBool,
    end: AtomicBool,
    carried_bytes: AtomicU64,
    dropped: AtomicU64,
}

/// A network namespace with one end of the line.
#[derive(Debug)]
pub(super) struct Namespace {
    file: File,
    home: File,
}

impl Line {
    /// Makes both ends; at first the line lets everything through.
    pub(super) fn make(plan: LinePlan) -> Result<Self, Failure> {
        let ends = [SERVER, BROWSER].map(|address| Namespace::make(address).map_err(needs_root));
        let [server, browser] = ends;
        let ((server, at_server), (browser, at_browser)) = (server?, browser?);
        let state = Arc::new(State {
            plan,
            slow: AtomicBool::new(false),
            end: AtomicBool::new(false),
            carried_bytes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let directions =
            [(at_server.try_clone()?, at_browser.try_clone()?), (at_browser, at_server)];
        let relay = |(from, to): (File, File)| {
            let state = Arc::clone(&state);
            std::thread::spawn(move || carry(&from, &to, &state))
        };
        let relays = directions.map(relay).into();
        Ok(Self { server, browser, state, relays })
    }

    /// Whether packets are held up from now on.
    pub(super) fn set_slow(&self, slow: bool) {
        self.state.slow.store(slow, Ordering::Relaxed);
    }

    /// Octets that came through so far, in both directions, and packets that were dropped.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        (count(&self.state.carried_bytes), count(&self.state.dropped))
    }

    /// Ends the relay.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.state.end.store(true, Ordering::Relaxed);
        for relay in self.relays.drain(..) {
            relay.join().map_err(|_| Failure::new("the relay of the slow line has panicked"))??;
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.end.store(true, Ordering::Relaxed);
    }
}

fn needs_root(error: io::Error) -> Failure {
    let failure = Failure::new(format!("the slow line cannot be made: {error}"));
    failure
        .hint("it needs root, /dev/net/tun and `ip` (package iproute2); leave it out with `--only`")
}

impl Namespace {
    /// A namespace with an end of the line, and the file through which its packets go.
    fn make(address: Ipv4Addr) -> io::Result<(Self, File)> {
        let own = || File::open("/proc/thread-self/ns/net");
        let home = own()?;
        // SAFETY: no other thread shares what is unshared: a thread's network namespace is its own.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
        let made = own().and_then(|file| Ok((file, tun(address)?)));
        move_into_link_name_space(home.as_fd(), Some(LinkNameSpaceType::Network))?;
        let (file, device) = made?;
        Ok((Self { file, home }, device))
    }

    /// Does something within it: what is started there stays there.
    pub(super) fn within<T>(&self, what: impl FnOnce() -> T) -> io::Result<T> {
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(self.file.as_fd(), network)?;
        let done = what();
        move_into_link_name_space(self.home.as_fd(), network)?;
        Ok(done)
    }
}

/// A tun device in this thread's namespace, with its address and up.
fn tun(address: Ipv4Addr) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let device = options.open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is a valid value of the plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).expect("both flags have 16 bits");
    // SAFETY: TUNSETIFF reads and writes the ifreq, which is live for the call.
    let set = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    for arguments in [
        format!("address add {address}/30 dev {DEVICE}"),
        format!("link set {DEVICE} up"),
        "link set lo up".into(),
    ] {
        let ip = Command::new("ip").args(arguments.split(' ')).output()?;
        if !ip.status.success() {
            let said = String::from_utf8_lossy(&ip.stderr).trim().to_owned();
            return Err(io::Error::other(format!("`ip {arguments}`: {said}")));
        }
    }
    Ok(device)
}

/// Packets that are under way, each with the instant at which it comes out.
#[derive(Debug)]
struct UnderWay {
    plan: LinePlan,
    packets: VecDeque<(WallTime, Vec<u8>)>,
    /// Until when the line is busy with what was taken.
    busy_until: WallTime,
}

impl UnderWay {
    /// Takes a packet that came at `now`; whether there is room for it.
    fn take(&mut self, now: WallTime, packet: &[u8], slow: bool) -> bool {
        if !slow {
            self.packets.push_back((now, packet.to_vec()));
            return true;
        }
        let on_line = |octets: usize| {
            Nanos::new(octets as u64 * 8 * Nanos::SECOND.get() / self.plan.bits_per_s)
        };
        // What still waits, as the time that it takes the line.
        if self.busy_until.since(now) > on_line(self.plan.queue_bytes) {
            return false;
        }
        self.busy_until = self.busy_until.max(now) + on_line(packet.len());
        self.packets.push_back((self.busy_until + self.plan.delay, packet.to_vec()));
        true
    }

    /// The next packet that has come out by `now`.
    fn come_out(&mut self, now: WallTime) -> Option<Vec<u8>> {
        let (due, _) = self.packets.front()?;
        if *due > now {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// How long nothing comes out.
    fn pause(&self, now: WallTime) -> Nanos {
        self.packets.front().map_or(PATIENCE, |(due, _)| due.since(now).min(PATIENCE))
    }
}

/// Carries packets in one direction until the line ends.
fn carry(mut from: &File, mut to: &File, state: &State) -> io::Result<()> {
    let mut packet = [0; PACKET_BYTES_MAX];
    let mut under_way =
        UnderWay { plan: state.plan, packets: VecDeque::new(), busy_until: WallTime::now() };
    while !state.end.load(Ordering::Relaxed) {
        let now = WallTime::now();
        while let Some(out) = under_way.come_out(now) {
            to.write_all(&out)?;
            state.carried_bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        }
        wait(&mut [readable(from)], Some(under_way.pause(now)))?;
        loop {
            let length = match from.read(&mut packet) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let slow = state.slow.load(Ordering::Relaxed);
            if !under_way.take(WallTime::now(), &packet[..length], slow) {
                state.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_out_when_the_line_has_carried_it_and_those_before_it() {
        let at = |millis: i64| WallTime::from_nanos(millis * 1_000_000);
        let plan =
            LinePlan { bits_per_s: 1_000_000, delay: Nanos::from_millis(100), queue_bytes: 3_000 };
        let mut line = UnderWay { plan, packets: VecDeque::new(), busy_until: at(0) };
        // 1,250 octets are 10 ms of the line.
        let packet = [1; 1_250];
        let taken: Vec<_> = (0..5).map(|_| line.take(at(1_000), &packet, true)).collect();
        // 24 ms may wait: with three packets 30 do.
        assert_eq!(taken, [true, true, true, false, false]);
        let due: Vec<_> = line.packets.iter().map(|(due, _)| *due).collect();
        assert_eq!(due, [at(1_110), at(1_120), at(1_130)]);
        assert_eq!(line.come_out(at(1_109)), None);
        assert_eq!(line.pause(at(1_105)), Nanos::from_millis(5));
        assert!(line.come_out(at(1_110)).is_some());
        // A line that is not slow any more keeps the order.
        assert!(line.take(at(1_112), &packet, false));
        assert_eq!(line.come_out(at(1_115)), None);
        assert!((0..3).all(|_| line.come_out(at(1_130)).is_some()));
        assert_eq!(line.come_out(at(1_130)), None);
    }
}
