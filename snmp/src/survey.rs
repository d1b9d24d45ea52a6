//! Walks of many devices at once, on one socket and one thread: what names and caches the agents
//! have, found out before a run and again while it goes on.
//!
//! What is due when is decided in [`SurveyCore`]; this shell only moves datagrams. Requests in
//! flight are bounded, a device that stays silent gives up its place until it is tried again, and
//! each pause is twice as long as the one before.
//!
//! ```no_run
//! # use meikyo_snmp::survey::{Job, Survey, SurveyOptions};
//! # use meikyo_units::Nanos;
//! # fn main() -> Result<(), meikyo_snmp::survey::SurveySocketError> {
//! # let jobs: Vec<Job> = Vec::new();
//! let options =
//!     SurveyOptions { in_flight_max: 256, timeout: Nanos::from_secs(1), retries: 2 };
//! let mut survey = Survey::new(options);
//! for job in jobs {
//!     survey.add(job);
//! }
//! while survey.open() > 0 {
//!     survey.step(Nanos::from_millis(100))?;
//!     while let Some(finished) = survey.poll_finished() {
//!         // More jobs may be added here, or at any other time.
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod core;

pub use core::SurveyCore;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use meikyo_sockets::{readable, wait};
use meikyo_units::{Nanos, WallTime};
use thiserror::Error;

use crate::Oid;
use crate::client::{ReceiveError, WalkError, heard, is_retryable};
use crate::credentials::Credentials;
use crate::usm::EngineClock;
use crate::value::Value;

/// How long a send buffer that is full is left to the kernel.
const FULL_WAIT: Nanos = Nanos::from_micros(250);

/// How a survey goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyOptions {
    /// Most requests in flight. The default receive buffer of Linux holds 256 small datagrams, but
    /// only about 80 full answers of a walk.
    pub in_flight_max: usize,
    /// How long an answer is waited for.
    pub timeout: Nanos,
    /// How often a request is sent again when nothing came.
    pub retries: u32,
}

/// One device to walk.
#[derive(Debug, Clone)]
pub struct Job {
    /// The caller's number of the device.
    pub device: usize,
    /// Where its agent listens.
    pub address: SocketAddr,
    /// How it is spoken to.
    pub credentials: Credentials,
    /// What is walked, in this order. None at all asks nothing.
    pub subtrees: Vec<Oid>,
}

/// One device that is walked.
#[derive(Debug)]
pub struct Finished {
    /// The caller's number of the device.
    pub device: usize,
    /// Everything below the subtrees, in their order, or why not.
    pub result: Result<Vec<(Oid, Value)>, SurveyError>,
    /// v3: the engine that was discovered, with its time.
    pub engine: Option<EngineClock>,
    /// How many requests were sent to it.
    pub requests: u32,
}

/// Why a device was not walked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SurveyError {
    /// Nothing came that could be used.
    #[error("{} the agent after {attempts} attempts", heard(*.unreadable))]
    Silent {
        /// How often the request was sent.
        attempts: u32,
        /// How many datagrams came meanwhile that could not be read.
        unreadable: u32,
        /// What came last and could not be used.
        #[source]
        last: Option<ReceiveError>,
    },
    /// The agent refuses the request.
    #[error("the agent does not accept the request")]
    Refused(#[source] ReceiveError),
    /// The walk cannot go on.
    #[error("the walk cannot continue")]
    Walk(#[source] WalkError),
}

/// Why a survey cannot go on.
#[derive(Debug, Error)]
#[error("the survey's UDP socket failed")]
pub struct SurveySocketError(#[source] io::Error);

/// A survey that goes on as long as there are devices to walk.
#[derive(Debug)]
pub struct Survey {
    core: SurveyCore,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    out: Vec<u8>,
    buffer: Vec<u8>,
}

impl Survey {
    /// A survey without devices.
    pub fn new(options: SurveyOptions) -> Self {
        let core = SurveyCore::new(WallTime::now(), options);
        Self { core, v4: None, v6: None, out: Vec::new(), buffer: vec![0; 65_536] }
    }

    /// Adds a device; at any time.
    pub fn add(&mut self, job: Job) {
        self.core.add(WallTime::now(), job);
    }

    /// Devices that are not finished.
    pub fn open(&self) -> usize {
        self.core.open()
    }

    /// A device that is finished, in the order in which they were.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.core.poll_finished()
    }

    /// Sends what is due, then waits for answers, at most this long, and returns after the first
    /// ones.
    ///
    /// # Errors
    ///
    /// [`SurveySocketError`] if there is no socket to be had, or it fails.
    pub fn step(&mut self, span: Nanos) -> Result<(), SurveySocketError> {
        self.transmit()?;
        let now = WallTime::now();
        let due = self.core.poll_timeout().map_or(span, |due| due.since(now));
        self.receive(span.min(due)).map_err(SurveySocketError)?;
        self.core.handle_timeout(WallTime::now());
        Ok(())
    }

    fn transmit(&mut self) -> Result<(), SurveySocketError> {
        loop {
            self.out.clear();
            let now = WallTime::now();
            let Some(to) = self.core.poll_transmit(now, &mut self.out) else { return Ok(()) };
            let (socket, any): (_, SocketAddr) = match to {
                SocketAddr::V4(_) => (&mut self.v4, (Ipv4Addr::UNSPECIFIED, 0).into()),
                SocketAddr::V6(_) => (&mut self.v6, (Ipv6Addr::UNSPECIFIED, 0).into()),
            };
            let socket = match socket {
                Some(socket) => socket,
                None => socket.insert(open(any).map_err(SurveySocketError)?),
            };
            while let Err(error) = socket.send_to(&self.out, to) {
                if error.kind() == io::ErrorKind::WouldBlock {
                    wait(&mut [], Some(FULL_WAIT)).map_err(SurveySocketError)?;
                    continue;
                }
                // No route, or nothing listening: that device's silence, not the survey's end.
                self.core.handle_send_failure(now);
                break;
            }
        }
    }

    /// Takes everything that is there, after waiting for the first datagram.
    fn receive(&mut self, span: Nanos) -> io::Result<()> {
        let sockets: Vec<&UdpSocket> = [&self.v4, &self.v6].into_iter().flatten().collect();
        let mut polls: Vec<_> = sockets.iter().map(|socket| readable(*socket)).collect();
        wait(&mut polls, Some(span))?;
        for socket in sockets {
            loop {
                match socket.recv_from(&mut self.buffer) {
                    Ok((length, from)) => {
                        let bytes = &mut self.buffer[..length];
                        self.core.handle_datagram(WallTime::now(), from, bytes);
                    }
                    Err(error) if is_retryable(&error) => break,
                    // Nothing listens at the other end of an earlier request.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// A socket to whatever address of that family; reading from it does not wait.
fn open(any: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Walks all these devices; the results come in the order in which the devices finish.
///
/// # Errors
///
/// [`SurveySocketError`] if there is no socket to be had, or it fails.
pub fn walk_all(
    jobs: Vec<Job>,
    options: SurveyOptions,
) -> Result<Vec<Finished>, SurveySocketError> {
    let mut survey = Survey::new(options);
    for job in jobs {
        survey.add(job);
    }
    let mut finished = Vec::new();
    while survey.open() > 0 {
        survey.step(options.timeout)?;
    }
    while let Some(done) = survey.poll_finished() {
        finished.push(done);
    }
    Ok(finished)
}
