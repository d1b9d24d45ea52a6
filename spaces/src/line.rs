//! A line between two network namespaces: a tun device in each, and a relay between them that lets packets through as
//! slowly, as late and as incompletely as the line would.
//!
//! Each direction has a queue that drops what comes when it is full, as a router at the end of a line has. Which packets are
//! lost follows from a number that is the same every time; when they are sent does not. The relay copies packets in user
//! space: at 20 Mbit/s that is two thousand of 1,500 octets a second. Namespaces and devices go with the line, and with the
//! last process that is in them. Making them needs `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
#![expect(unsafe_code, reason = "tun devices are asked of the kernel")]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use meikyo_units::{BitsPerSecond, Bytes, Nanos, WallTime};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::LinkNameSpaceType;

use crate::links::{LOOPBACK_INDEX, SpaceError, new_address, new_space, set_link};
use crate::netlink::NetlinkError;
use crate::process;

/// Where packets to the first namespace of every line go.
pub const ONE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Where packets to the second namespace go: the next address of the same network.
pub const OTHER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PREFIX_BITS: u8 = 30;

const DEVICE: &std::ffi::CStr = c"meikyo-line";
/// The greatest packet that a tun device hands over here.
const PACKET_BYTES_MAX: usize = 1_500;
/// How often a relay that has nothing to do looks whether it is to end.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// What losses are counted by.
const MILLION: u64 = 1_000_000;

/// What a line lets through in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlan {
    /// What it carries, in either direction.
    pub rate: BitsPerSecond,
    /// How long a packet is under way behind the queue, in either direction.
    pub delay: Nanos,
    /// How much waits at most, in either direction.
    pub queue: Bytes,
    /// Of a million packets, how many never arrive.
    pub lost_per_million: u32,
}

/// What becomes of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// All of them come through at once.
    Free,
    /// They come through as the plan says.
    As(LinePlan),
    /// None comes through, and those under way are gone.
    Cut,
}

/// A line could not be set up, or its relay failed.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A namespace could not be made.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// There is no tun device.
    #[error("cannot make a tun device of `/dev/net/tun`")]
    Tun(#[source] io::Error),
    /// The kernel refuses what should be in a namespace.
    #[error("cannot set up an end of a line")]
    Netlink(#[from] NetlinkError),
    /// Packets could not be carried on.
    #[error("the relay of a line failed")]
    Relay(#[source] io::Error),
}

/// What came of the packets so far, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Octets that came through.
    pub bytes: Bytes,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets that were lost by chance, or met a line that was cut.
    pub lost: u64,
}

/// A line between two namespaces; everything of it goes when it is dropped.
#[derive(Debug)]
pub struct Line {
    /// The end with the address [`ONE`].
    pub one: LineEnd,
    /// The end with the address [`OTHER`].
    pub other: LineEnd,
    state: Arc<State>,
    relays: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct State {
    condition: Mutex<Condition>,
    end: AtomicBool,
    carried_bytes: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
}

impl State {
    fn condition(&self) -> MutexGuard<'_, Condition> {
        // It is replaced as a whole, also by a thread that panics after.
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A network namespace with one end of a line.
#[derive(Debug)]
pub struct LineEnd {
    file: File,
}

impl Line {
    /// Makes both ends; at first the line lets everything through.
    ///
    /// # Errors
    /// When the kernel refuses it: only root may make network namespaces and tun devices.
    ///
    /// # Panics
    /// If a thread that enters a namespace does.
    pub fn make() -> Result<Self, LineError> {
        let [one, other] = [ONE, OTHER].map(|address| {
            // A thread of its own enters it, so that the caller stays where it is.
            let made = thread::spawn(move || set_up(address));
            made.join().expect("the thread that sets an end of a line up does not panic")
        });
        let ((one, at_one), (other, at_other)) = (one?, other?);
        let state = Arc::new(State {
            condition: Mutex::new(Condition::Free),
            end: AtomicBool::new(false),
            carried_bytes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let again = |device: &File| device.try_clone().map_err(LineError::Tun);
        let directions = [(again(&at_one)?, again(&at_other)?, 1), (at_other, at_one, 2)];
        let relay = |(from, to, seed): (File, File, u64)| {
            let state = Arc::clone(&state);
            thread::spawn(move || carry(&from, &to, seed, &state))
        };
        let relays = directions.map(relay).into();
        Ok(Self { one, other, state, relays })
    }

    /// What becomes of packets from this instant on.
    pub fn set(&self, condition: Condition) {
        *self.state.condition() = condition;
    }

    /// What came of the packets so far.
    pub fn carried(&self) -> Carried {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Carried {
            bytes: Bytes::new(count(&self.state.carried_bytes)),
            dropped: count(&self.state.dropped),
            lost: count(&self.state.lost),
        }
    }

    /// Ends the relay.
    ///
    /// # Errors
    /// When it had failed before.
    ///
    /// # Panics
    /// If it did.
    pub fn finish(mut self) -> Result<(), LineError> {
        self.state.end.store(true, Ordering::Relaxed);
        for relay in self.relays.drain(..) {
            let ended = relay.join().expect("nothing in the relay of a line panics");
            ended.map_err(LineError::Relay)?;
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.end.store(true, Ordering::Relaxed);
    }
}

impl LineEnd {
    /// Does something within its namespace: what is started there stays there.
    ///
    /// # Errors
    /// When the kernel refuses to move this thread.
    pub fn within<T>(&self, what: impl FnOnce() -> T) -> io::Result<T> {
        let home = File::open("/proc/thread-self/ns/net")?;
        process::enter(&self.file, LinkNameSpaceType::Network)?;
        let done = what();
        process::enter(&home, LinkNameSpaceType::Network)?;
        Ok(done)
    }
}

/// A namespace with an end of a line, and the file through which its packets go.
fn set_up(address: Ipv4Addr) -> Result<(LineEnd, File), LineError> {
    let mut space = new_space()?;
    let (device, index) = tun().map_err(LineError::Tun)?;
    space.netlink.apply(vec![
        new_address(index, address, PREFIX_BITS),
        set_link("an end of a line up", index, None, true),
        set_link("loopback up", LOOPBACK_INDEX, None, true),
    ])?;
    Ok((LineEnd { file: space.file }, device))
}

/// A tun device in this thread's namespace, and its number there.
fn tun() -> io::Result<(File, u32)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let device = options.open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is a valid value of the plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.to_bytes()) {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).expect("both flags have 16 bits");
    // SAFETY: TUNSETIFF reads and writes the ifreq, which is live for the call.
    let set = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the name ends with a zero octet and is live for the call.
    let index = unsafe { libc::if_nametoindex(DEVICE.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok((device, index)) }
}

/// What becomes of a packet that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    UnderWay,
    Dropped,
    Lost,
}

/// Packets that are under way, each with the instant at which it comes out.
#[derive(Debug)]
struct UnderWay {
    packets: VecDeque<(WallTime, Vec<u8>)>,
    /// Until when the line is busy with what was taken.
    busy_until: WallTime,
    /// Never zero.
    random: u64,
}

impl UnderWay {
    /// Takes a packet that came at `now`.
    fn take(&mut self, now: WallTime, packet: &[u8], condition: Condition) -> Taken {
        let plan = match condition {
            Condition::Cut => return Taken::Lost,
            Condition::Free => {
                self.packets.push_back((now, packet.to_vec()));
                return Taken::UnderWay;
            }
            Condition::As(plan) => plan,
        };
        // What still waits, as the time that it takes the line.
        if self.busy_until.since(now) > plan.rate.serialization_delay(plan.queue) {
            return Taken::Dropped;
        }
        let takes = plan.rate.serialization_delay(Bytes::new(packet.len() as u64));
        self.busy_until = self.busy_until.max(now) + takes;
        // It takes its time on the line, and does not arrive.
        if self.chance() < plan.lost_per_million.into() {
            return Taken::Lost;
        }
        self.packets.push_back((self.busy_until + plan.delay, packet.to_vec()));
        Taken::UnderWay
    }

    /// A number below a million (xorshift64*).
    fn chance(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % MILLION
    }

    /// The next packet that has come out by `now`.
    fn come_out(&mut self, now: WallTime) -> Option<Vec<u8>> {
        let (due, _) = self.packets.front()?;
        if *due > now {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// Loses what is under way; how many packets that were.
    fn lose(&mut self) -> u64 {
        self.packets.drain(..).count() as u64
    }

    /// How long nothing comes out.
    fn pause(&self, now: WallTime) -> Nanos {
        self.packets.front().map_or(PATIENCE, |(due, _)| due.since(now).min(PATIENCE))
    }
}

/// Carries packets in one direction until the line ends.
fn carry(mut from: &File, mut to: &File, random: u64, state: &State) -> io::Result<()> {
    let mut packet = [0; PACKET_BYTES_MAX];
    let (packets, busy_until) = (VecDeque::new(), WallTime::now());
    let mut under_way = UnderWay { packets, busy_until, random };
    while !state.end.load(Ordering::Relaxed) {
        let (now, condition) = (WallTime::now(), *state.condition());
        if condition == Condition::Cut {
            state.lost.fetch_add(under_way.lose(), Ordering::Relaxed);
        }
        while let Some(out) = under_way.come_out(now) {
            to.write_all(&out)?;
            state.carried_bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        }
        let pause = under_way.pause(now).get();
        // Pauses are far below a second.
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.cast_signed() };
        // Interrupted or not, everything is looked at again.
        let _woken = poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&pause));
        loop {
            let length = match from.read(&mut packet) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            let count = match under_way.take(WallTime::now(), &packet[..length], *state.condition())
            {
                Taken::UnderWay => continue,
                Taken::Dropped => &state.dropped,
                Taken::Lost => &state.lost,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: LinePlan = LinePlan {
        rate: BitsPerSecond::new(1_000_000),
        delay: Nanos::from_millis(100),
        queue: Bytes::new(3_000),
        lost_per_million: 0,
    };

    fn at(millis: i64) -> WallTime {
        WallTime::from_nanos(millis * 1_000_000)
    }

    fn empty() -> UnderWay {
        UnderWay { packets: VecDeque::new(), busy_until: at(0), random: 1 }
    }

    #[test]
    fn a_packet_comes_out_when_the_line_has_carried_it_and_those_before_it() {
        use Taken::{Dropped, UnderWay};
        let (mut line, plan) = (empty(), Condition::As(PLAN));
        // 1,250 octets are 10 ms of the line.
        let packet = [1; 1_250];
        let taken: Vec<_> = (0..5).map(|_| line.take(at(1_000), &packet, plan)).collect();
        // 24 ms may wait: with three packets 30 do.
        assert_eq!(taken, [UnderWay, UnderWay, UnderWay, Dropped, Dropped]);
        let due: Vec<_> = line.packets.iter().map(|(due, _)| *due).collect();
        assert_eq!(due, [at(1_110), at(1_120), at(1_130)]);
        assert_eq!(line.come_out(at(1_109)), None);
        assert_eq!(line.pause(at(1_105)), Nanos::from_millis(5));
        assert!(line.come_out(at(1_110)).is_some());
        // A line that is free now keeps the order.
        assert_eq!(line.take(at(1_112), &packet, Condition::Free), UnderWay);
        assert_eq!(line.come_out(at(1_115)), None);
        assert!((0..3).all(|_| line.come_out(at(1_130)).is_some()));
        assert_eq!(line.come_out(at(1_130)), None);
    }

    #[test]
    fn so_many_of_a_million_packets_are_lost_and_all_where_the_line_is_cut() {
        let plan = LinePlan { rate: BitsPerSecond::GIGABIT, lost_per_million: 10_000, ..PLAN };
        let mut line = empty();
        let come: i64 = 100_000;
        let take =
            |line: &mut UnderWay, number| line.take(at(number), &[1; 100], Condition::As(plan));
        let lost = (0..come).filter(|number| take(&mut line, *number) == Taken::Lost).count();
        // 1,000, give or take four standard deviations (31.5).
        assert!((874..=1_126).contains(&lost), "{lost}");
        assert_eq!(line.packets.len() + lost, 100_000);
        assert_eq!(line.take(at(come), &[1; 100], Condition::Cut), Taken::Lost);
        assert_eq!(line.lose() + lost as u64, 100_000);
        assert_eq!(line.come_out(at(come + 1_000)), None);
    }
}
