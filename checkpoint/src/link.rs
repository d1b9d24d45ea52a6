//! How the hosts of a job come together: every connection begins with a greeting that says what it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_tcp_user_timeout;

use crate::charter::Generation;
use crate::exchange::Links;
use crate::schedule::Schedule;
use crate::tls::{Inbound, JobKey, Outbound};

/// Octets of a greeting.
pub const GREETING_BYTES: usize = 40;

/// The first octets of a greeting.
const MAGIC: [u8; 4] = *b"mkCK";

/// The version of what is said between daemons.
pub const PROTOCOL: u16 = 6;

/// How long a connection on which nothing comes, not even [`crate::frame::Kind::Idle`], is waited for.
pub const STALL: Duration = Duration::from_secs(20);

/// How long one address is tried before the next.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(1);

/// How long both ends may take to greet each other, all in all.
const GREETING_PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries to reach a host that does not listen yet.
const RETRY: Duration = Duration::from_millis(20);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// What members say to each other.
    Agreement,
    /// Blocks of a generation that is written.
    Save,
    /// Blocks of a generation that is rebuilt.
    Rebuild,
    /// A host's image, for ranks that look for their arrays in it.
    Fetch,
}

impl Purpose {
    /// As it is written in a greeting.
    pub(crate) const fn octet(self) -> u8 {
        match self {
            Self::Agreement => 1,
            Self::Save => 2,
            Self::Rebuild => 3,
            Self::Fetch => 4,
        }
    }
}

/// What the host that connects says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// What the connection is for.
    pub purpose: Purpose,
    /// The number of the link that it stands for, from zero; one that took another address still stands for
    /// its own.
    pub link: u8,
    /// The sender's place.
    pub from: u16,
    /// The place of whom it wants to reach.
    pub to: u16,
    /// What the sender's job file says of the group ([`JobFile::digest`](crate::daemon::JobFile::digest)): hosts
    /// that read different ones do not meet.
    pub job: u32,
    /// The membership version that it knows.
    pub version: u64,
    /// The generation that a job is for; zero for agreement.
    pub generation: Generation,
    /// Which try at it; zero where there is only one.
    pub attempt: u64,
}

/// Why a greeting is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GreetingError {
    /// It is something else.
    #[error("what connected is no checkpoint daemon")]
    Foreign,
    /// Another version of this program.
    #[error(
        "a daemon speaks version {0} of the protocol, and this one {PROTOCOL}: start the same version of meikyo on all hosts"
    )]
    Protocol(u16),
    /// It wants what is not known.
    #[error("unknown purpose {0} of a connection")]
    Purpose(u8),
}

impl Greeting {
    /// A greeting whose ends and link are filled in when connections are made.
    pub const fn new(purpose: Purpose, version: u64, generation: Generation) -> Self {
        Self { purpose, link: 0, from: 0, to: 0, job: 0, version, generation, attempt: 0 }
    }

    /// The greeting as it goes over a connection.
    pub fn octets(&self) -> [u8; GREETING_BYTES] {
        let mut octets = [0; GREETING_BYTES];
        octets[..4].copy_from_slice(&MAGIC);
        octets[4..6].copy_from_slice(&PROTOCOL.to_le_bytes());
        octets[6] = self.purpose.octet();
        octets[7] = self.link;
        octets[8..10].copy_from_slice(&self.from.to_le_bytes());
        octets[10..12].copy_from_slice(&self.to.to_le_bytes());
        octets[12..16].copy_from_slice(&self.job.to_le_bytes());
        octets[16..24].copy_from_slice(&self.version.to_le_bytes());
        octets[24..32].copy_from_slice(&self.generation.0.to_le_bytes());
        octets[32..40].copy_from_slice(&self.attempt.to_le_bytes());
        octets
    }

    /// Reads a greeting.
    ///
    /// # Errors
    /// When it is none.
    ///
    /// # Panics
    /// Never: what is read is as long as it must be.
    pub fn read(octets: &[u8; GREETING_BYTES]) -> Result<Self, GreetingError> {
        let pair = |at: usize| u16::from_le_bytes([octets[at], octets[at + 1]]);
        let eight = |at: usize| {
            u64::from_le_bytes(octets[at..at + 8].try_into().expect("it is eight octets"))
        };
        if octets[..4] != MAGIC {
            return Err(GreetingError::Foreign);
        }
        if pair(4) != PROTOCOL {
            return Err(GreetingError::Protocol(pair(4)));
        }
        let purpose = match octets[6] {
            1 => Purpose::Agreement,
            2 => Purpose::Save,
            3 => Purpose::Rebuild,
            4 => Purpose::Fetch,
            other => return Err(GreetingError::Purpose(other)),
        };
        Ok(Self {
            purpose,
            link: octets[7],
            from: pair(8),
            to: pair(10),
            job: u32::from_le_bytes([octets[12], octets[13], octets[14], octets[15]]),
            version: eight(16),
            generation: Generation(eight(24)),
            attempt: eight(32),
        })
    }
}

/// What a host that rebuilds a generation asks all others for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The generation that it rebuilds.
    pub generation: Generation,
    /// The membership version that it knows.
    pub version: u64,
    /// Which try it is: any number that no other try has.
    pub attempt: u64,
    /// The places that do not have it, one bit each.
    pub lost: u64,
}

impl Wanted {
    /// Octets of it.
    pub const BYTES: usize = 32;

    /// What is wanted as it goes over a connection.
    pub fn octets(&self) -> [u8; Self::BYTES] {
        let mut octets = [0; Self::BYTES];
        let fields = [self.generation.0, self.version, self.attempt, self.lost];
        for (eight, field) in octets.chunks_exact_mut(8).zip(fields) {
            eight.copy_from_slice(&field.to_le_bytes());
        }
        octets
    }

    /// Reads what is wanted; `None` where it is of another length.
    pub fn read(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; Self::BYTES] = octets.try_into().ok()?;
        let eight = |at: usize| octets[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let (generation, version) = (Generation(eight(0)?), eight(8)?);
        Some(Self { generation, version, attempt: eight(16)?, lost: eight(24)? })
    }

    /// The places that do not have it, of a group of `hosts`.
    pub fn places(&self, hosts: usize) -> BTreeSet<usize> {
        (0..hosts.min(64)).filter(|place| self.lost >> place & 1 == 1).collect()
    }
}

/// Why hosts did not come together.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// A host cannot be reached.
    #[error("cannot reach the host at place {place} at `{address}`")]
    Unreachable {
        /// The place of the host that does not answer.
        place: usize,
        /// Where it should listen.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Hosts have not connected in time.
    #[error("{missing} connections of other hosts have not come within {} s", .waited.as_secs())]
    Missing {
        /// How many.
        missing: usize,
        /// How long they were waited for.
        waited: Duration,
    },
    /// Connections cannot be accepted.
    #[error("cannot accept connections")]
    Accept(#[source] io::Error),
}

/// What the hosts of a group need to come together.
#[derive(Debug, Clone, Copy)]
pub struct Meeting<'a> {
    /// The key that all hosts of the job have.
    pub key: &'a JobKey,
    /// Where each host listens: one address per link, and for each a connection.
    pub addresses: &'a [Vec<SocketAddr>],
    /// What the connections are for; `from` and `to` are filled in.
    pub greeting: Greeting,
    /// How long others are waited for.
    pub patience: Duration,
    /// How long a connection on which nothing comes is waited for; [`STALL`] unless a test is in a hurry.
    pub stall: Duration,
}

/// Makes all connections that this host needs for a job. Listeners are one per link, at this host's
/// addresses; who connects with another key or greeting is turned away.
///
/// # Errors
/// When others cannot be reached, or do not connect.
///
/// # Panics
/// If `me` is none of the group's places.
pub fn meet(
    meeting: &Meeting<'_>,
    listeners: &[TcpListener],
    schedule: &Schedule,
    me: usize,
) -> Result<Links, MeetError> {
    let links = schedule.links();
    let expected: usize =
        links.iter().filter(|(_, to)| *to == me).map(|_| meeting.addresses[me].len()).sum();
    let deadline = now() + meeting.patience;
    std::thread::scope(|scope| {
        let inbound = scope.spawn(|| accept_all(meeting, listeners, me, expected, deadline));
        let outbound = reach(meeting, schedule, me, deadline)?;
        let inbound = inbound.join().expect("accepting does not panic")?;
        Ok(Links { outbound, inbound, pace: None })
    })
}

/// Connects to every host that this one sends to.
pub(crate) fn reach(
    meeting: &Meeting<'_>,
    schedule: &Schedule,
    me: usize,
    deadline: Instant,
) -> Result<BTreeMap<usize, Vec<Outbound>>, MeetError> {
    let mut outbound = BTreeMap::new();
    for &(_, to) in schedule.links().iter().filter(|(from, _)| *from == me) {
        let lanes = (0..meeting.addresses[to].len()).map(|link| {
            // A link that is down is not missed as long as another leads there.
            let mut addresses = meeting.addresses[to].clone();
            addresses.rotate_left(link);
            let address = addresses[0];
            let unreachable = |source| MeetError::Unreachable { place: to, address, source };
            dial(meeting, (me, to, link), &addresses, deadline).map_err(unreachable)
        });
        outbound.insert(to, lanes.collect::<Result<_, _>>()?);
    }
    Ok(outbound)
}

/// One connection to a host at the first of its addresses that answers, greeted. It stands for `link`.
pub(crate) fn dial(
    meeting: &Meeting<'_>,
    (me, to, link): (usize, usize, usize),
    addresses: &[SocketAddr],
    deadline: Instant,
) -> io::Result<Outbound> {
    let mut tried = addresses.iter().cycle();
    loop {
        let address = tried.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let left = deadline.saturating_duration_since(now());
        match connect(meeting, (me, to, link), *address, left.clamp(RETRY, ADDRESS_PATIENCE)) {
            Ok(lane) => return Ok(lane),
            // It may not listen yet.
            Err(_) if left > RETRY => std::thread::park_timeout(RETRY),
            Err(error) => return Err(error),
        }
    }
}

fn connect(
    meeting: &Meeting<'_>,
    (me, to, link): (usize, usize, usize),
    address: SocketAddr,
    patience: Duration,
) -> io::Result<Outbound> {
    let socket = TcpStream::connect_timeout(&address, patience)?;
    prepare(&socket, meeting.stall)?;
    let mut lane = meeting.key.connect(socket, GREETING_PATIENCE)?;
    let place = |place| u16::try_from(place).expect("groups have at most 64 hosts");
    let link = u8::try_from(link).map_err(io::Error::other)?;
    let greeting = Greeting { from: place(me), to: place(to), link, ..meeting.greeting };
    lane.send(&greeting.octets(), &[])?;
    Ok(lane)
}

fn prepare(socket: &TcpStream, stall: Duration) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(stall))?;
    // What was sent and is not acknowledged for so long is lost: the host is gone, or was started anew.
    let stall_ms = u32::try_from(stall.as_millis()).map_err(io::Error::other)?;
    Ok(set_tcp_user_timeout(socket, stall_ms)?)
}

fn accept_all(
    meeting: &Meeting<'_>,
    listeners: &[TcpListener],
    me: usize,
    expected: usize,
    deadline: Instant,
) -> Result<Vec<(usize, Inbound)>, MeetError> {
    let mut lanes = Vec::new();
    for listener in listeners {
        listener.set_nonblocking(true).map_err(MeetError::Accept)?;
    }
    while lanes.len() < expected {
        let left = deadline.saturating_duration_since(now());
        let missing = expected - lanes.len();
        if left.is_zero() {
            return Err(MeetError::Missing { missing, waited: meeting.patience });
        }
        let mut waiting: Vec<PollFd<'_>> =
            listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
        let span = Timespec::try_from(left).expect("a patience of few seconds fits");
        match poll(&mut waiting, Some(&span)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(MeetError::Accept(error.into())),
        }
        for listener in listeners {
            match listener.accept() {
                Ok((socket, _)) => lanes.extend(welcome(meeting, me, socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(MeetError::Accept(error)),
            }
        }
    }
    Ok(lanes)
}

/// Who has connected with the job's key, and what for.
pub(crate) fn greeted(
    key: &JobKey,
    socket: TcpStream,
    stall: Duration,
) -> io::Result<(Greeting, Inbound)> {
    socket.set_nonblocking(false)?;
    prepare(&socket, stall)?;
    let mut lane = key.accept(socket, GREETING_PATIENCE)?;
    let mut octets = [0; GREETING_BYTES];
    lane.receive(&mut octets)?;
    let greeting = Greeting::read(&octets).map_err(io::Error::other)?;
    lane.wait_at_most(Some(stall))?;
    Ok((greeting, lane))
}

/// Greets who has connected; nobody, where it is not who is waited for.
fn welcome(meeting: &Meeting<'_>, me: usize, socket: TcpStream) -> Option<(usize, Inbound)> {
    let (greeting, lane) = greeted(meeting.key, socket, meeting.stall).ok()?;
    let Greeting { from, link, .. } = greeting;
    let wanted = Greeting { from, link, to: u16::try_from(me).ok()?, ..meeting.greeting };
    let from = usize::from(from);
    (greeting == wanted && from < meeting.addresses.len()).then_some((from, lane))
}

#[expect(clippy::disallowed_methods, reason = "connections are waited for by the clock")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_read_as_written_and_other_versions_are_named() {
        let greeting = Greeting {
            link: 1,
            from: 3,
            to: 5,
            job: 0x1234_5678,
            attempt: 99,
            ..Greeting::new(Purpose::Rebuild, 7, Generation(1 << 40))
        };
        let octets = greeting.octets();
        assert_eq!(Greeting::read(&octets), Ok(greeting));
        let changed = |at: usize, octet| {
            let mut octets = octets;
            octets[at] = octet;
            Greeting::read(&octets).unwrap_err()
        };
        assert_eq!(changed(4, 1), GreetingError::Protocol(1));
        assert_eq!(changed(0, 0), GreetingError::Foreign);
        assert_eq!(changed(6, 9), GreetingError::Purpose(9));
    }
}
