//! A blocking client for one agent: get, get-next, bulk, walk and set, with discovery and time
//! synchronisation for v3 (RFC 3414, section 4). For asking many agents at once there is
//! [`crate::survey`], for asking them again and again the collector.

mod session;
mod walk;

pub use session::{ReceiveError, Received, Session};
pub use walk::{VALUES_AT_A_TIME, WALK_VALUES_MAX, Walk, WalkError};

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use meikyo_units::{Nanos, WallTime};
use thiserror::Error;

use crate::Oid;
use crate::credentials::Credentials;
use crate::message::Version;
use crate::pdu::{ErrorStatus, Pdu, PduType, error_status_name};
use crate::template::REQUEST_ID_MIN;
use crate::value::Value;

/// How often a request is sent again because the engine's id or time became known: discovery, then
/// time, then an engine that changed in between.
pub(crate) const AGAIN_MAX: u32 = 3;

/// How patient a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long each attempt is waited for.
    pub timeout: Nanos,
    /// How often a request is sent again when nothing came.
    pub retries: u32,
}

/// Why there is no client.
#[derive(Debug, Error)]
#[error("cannot open a UDP socket to {address}")]
pub struct ConnectError {
    /// Address of the agent.
    pub address: SocketAddr,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub enum RequestError {
    /// Nothing came that could be used.
    #[error("{} {address} after {attempts} attempts of {timeout}", heard(*.unreadable))]
    Timeout {
        /// Address of the agent.
        address: SocketAddr,
        /// How often the request was sent.
        attempts: u32,
        /// How long each was waited for.
        timeout: Nanos,
        /// How many datagrams came meanwhile that could not be read.
        unreadable: u32,
        /// What came last and could not be used.
        #[source]
        last: Option<ReceiveError>,
    },
    /// The host says that nothing listens there (ICMP port unreachable).
    #[error("nothing listens at {address}")]
    NothingListens {
        /// Address at which nothing listens.
        address: SocketAddr,
    },
    /// The agent refuses the request.
    #[error("{address} does not accept the request")]
    Refused {
        /// Address of the agent.
        address: SocketAddr,
        /// Reason that the agent reported.
        source: ReceiveError,
    },
    /// The agent answered with an error.
    #[error("{address} answered {} for `{}`", error_status_name(*.status), .oid.as_ref().map_or_else(|| "the request".into(), ToString::to_string))]
    Status {
        /// Address of the agent.
        address: SocketAddr,
        /// The error status.
        status: i32,
        /// The name that it is about, if the agent says so.
        oid: Option<Oid>,
    },
    /// The answer has other names than the request.
    #[error("{address} answered with other names than it was asked for")]
    OtherNames {
        /// Address of the agent.
        address: SocketAddr,
    },
    /// A walk cannot go on.
    #[error("cannot walk {address}")]
    Walk {
        /// Address of the agent that was walked.
        address: SocketAddr,
        /// How its answers stopped the walk.
        source: WalkError,
    },
    /// The socket failed.
    #[error("cannot send to or receive from {address}")]
    Socket {
        /// Address to which the socket is connected.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// What was heard of an agent without an answer, before its address.
pub(crate) fn heard(unreadable: u32) -> String {
    match unreadable {
        0 => "no answer from".to_owned(),
        1 => "1 answer came, and it could not be read, from".to_owned(),
        many => format!("{many} answers came, and none could be read, from"),
    }
}

impl RequestError {
    /// The error status, if the agent answered with one.
    pub const fn status(&self) -> Option<i32> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// What came while an answer was waited for and was none.
#[derive(Debug, Default)]
pub(crate) struct Unusable {
    /// How many could not be read at all.
    pub(crate) unreadable: u32,
    pub(crate) last: Option<ReceiveError>,
}

impl Unusable {
    pub(crate) fn count(&mut self, error: ReceiveError) {
        if matches!(error, ReceiveError::Unusable(_)) {
            self.unreadable = self.unreadable.saturating_add(1);
        }
        self.last = Some(error);
    }
}

/// A conversation with one agent.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    options: ClientOptions,
    socket: UdpSocket,
    session: Session,
    request_id: i32,
    buffer: Vec<u8>,
}

/// The id after this one; never one that [needs fewer than four octets](REQUEST_ID_MIN).
pub(crate) const fn next_request_id(id: i32) -> i32 {
    if id == i32::MAX { REQUEST_ID_MIN } else { id + 1 }
}

/// A request id to start from that differs from run to run.
pub(crate) fn first_request_id(now: WallTime) -> i32 {
    let span = i64::from(i32::MAX) - i64::from(REQUEST_ID_MIN);
    let offset = (now.as_nanos() / 1000).rem_euclid(span);
    i32::try_from(offset).map_or(REQUEST_ID_MIN, |offset| REQUEST_ID_MIN + offset)
}

impl Client {
    /// A client of the agent at this address. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if there is no socket to be had.
    pub fn connect(
        address: SocketAddr,
        credentials: Credentials,
        options: ClientOptions,
    ) -> Result<Self, ConnectError> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)
            .and_then(|socket| socket.connect(address).map(|()| socket))
            .map_err(|source| ConnectError { address, source })?;
        let now = WallTime::now();
        Ok(Self {
            address,
            options,
            socket,
            session: Session::new(now, credentials),
            request_id: first_request_id(now),
            buffer: vec![0; 65_536],
        })
    }

    /// What is known about the agent.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The values of these objects, in this order; [`Value::NoSuchInstance`] and its like where
    /// there is none, for v1 too.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub fn get(&mut self, oids: &[Oid]) -> Result<Vec<(Oid, Value)>, RequestError> {
        let mut values: Vec<(Oid, Option<Value>)> =
            oids.iter().map(|oid| (oid.clone(), None)).collect();
        loop {
            // A v1 agent answers noSuchName for the whole request: what it does not know is left
            // out of the next one.
            let open: Vec<usize> =
                (0..values.len()).filter(|&position| values[position].1.is_none()).collect();
            if open.is_empty() {
                break;
            }
            let names: Vec<Oid> = open.iter().map(|&at| values[at].0.clone()).collect();
            let answer = self.exchange(Pdu::request(PduType::Get, 0, &names))?;
            let missing = self.session.version() == Version::V1
                && answer.error_status == ErrorStatus::NoSuchName.code();
            // A negative index saturates at 0, which names no binding.
            let index = usize::try_from(answer.error_index).unwrap_or(0);
            if missing && let Some(&position) = open.get(index.wrapping_sub(1)) {
                values[position].1 = Some(Value::NoSuchObject);
                continue;
            }
            let answered = self.without_error(answer, &names)?;
            if !answered.iter().map(|(oid, _)| oid).eq(&names) {
                return Err(RequestError::OtherNames { address: self.address });
            }
            for (position, (_, value)) in open.into_iter().zip(answered) {
                values[position].1 = Some(value);
            }
        }
        Ok(values.into_iter().filter_map(|(oid, value)| value.map(|value| (oid, value))).collect())
    }

    /// The next object after each of these.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub fn get_next(&mut self, oids: &[Oid]) -> Result<Vec<(Oid, Value)>, RequestError> {
        let answer = self.exchange(Pdu::request(PduType::GetNext, 0, oids))?;
        self.without_error(answer, oids)
    }

    /// Up to `max_repetitions` objects after this one, not in v1.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub fn bulk(
        &mut self,
        oid: &Oid,
        max_repetitions: i32,
    ) -> Result<Vec<(Oid, Value)>, RequestError> {
        let names = std::slice::from_ref(oid);
        let answer = self.exchange(Pdu::bulk(0, 0, max_repetitions, names))?;
        self.without_error(answer, names)
    }

    /// Everything below this name, in the agent's order.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    pub fn walk(&mut self, subtree: &Oid) -> Result<Vec<(Oid, Value)>, RequestError> {
        let address = self.address;
        let mut walk = Walk::new(self.session.version(), vec![subtree.clone()]);
        while let Some(request) = walk.request(0) {
            let answer = self.exchange(request)?;
            walk.accept(answer).map_err(|source| RequestError::Walk { address, source })?;
        }
        Ok(walk.into_found())
    }

    /// Sets these objects, all or none.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; [`RequestError::Status`] names the object that the agent refuses.
    pub fn set(&mut self, values: &[(Oid, Value)]) -> Result<(), RequestError> {
        let mut request = Pdu::request(PduType::Set, 0, &[]);
        request.varbinds = values.to_vec();
        let names: Vec<Oid> = values.iter().map(|(oid, _)| oid.clone()).collect();
        let answer = self.exchange(request)?;
        self.without_error(answer, &names).map(drop)
    }

    fn without_error(&self, answer: Pdu, names: &[Oid]) -> Result<Vec<(Oid, Value)>, RequestError> {
        let status = answer.error_status;
        if status == ErrorStatus::NoError.code() {
            return Ok(answer.varbinds);
        }
        // A negative index saturates at 0, which names no binding.
        let index = usize::try_from(answer.error_index).unwrap_or(0);
        let oid = index.checked_sub(1).and_then(|position| names.get(position)).cloned();
        Err(RequestError::Status { address: self.address, status, oid })
    }

    /// Sends the request until its answer comes.
    fn exchange(&mut self, mut request: Pdu) -> Result<Pdu, RequestError> {
        let mut unusable = Unusable::default();
        for _ in 0..=self.options.retries {
            if let Some(answer) = self.attempt(&mut request, &mut unusable)? {
                return Ok(answer);
            }
            // It may be another agent by now, with another engine id or fewer boots.
            self.session.forget_engine();
        }
        Err(RequestError::Timeout {
            address: self.address,
            attempts: self.options.retries.saturating_add(1),
            timeout: self.options.timeout,
            unreadable: unusable.unreadable,
            last: unusable.last,
        })
    }

    /// Sends the request once, and again whenever the agent says how to send it better.
    fn attempt(
        &mut self,
        request: &mut Pdu,
        unusable: &mut Unusable,
    ) -> Result<Option<Pdu>, RequestError> {
        let address = self.address;
        for _ in 0..=AGAIN_MAX {
            self.request_id = next_request_id(self.request_id);
            request.request_id = self.request_id;
            let mut datagram = Vec::new();
            self.session.encode(WallTime::now(), request, &mut datagram);
            self.socket.send(&datagram).map_err(|source| self.socket_error(source))?;
            let deadline = monotonic_now() + self.options.timeout.to_std();
            loop {
                let Some(length) = self.receive_until(deadline)? else { return Ok(None) };
                let bytes = &mut self.buffer[..length];
                match self.session.receive(WallTime::now(), self.request_id, bytes) {
                    Ok(Received::Answer(answer)) => return Ok(Some(answer)),
                    Ok(Received::Again) => break,
                    Err(source) if source.is_final() => {
                        return Err(RequestError::Refused { address, source });
                    }
                    Err(error) => unusable.count(error),
                }
            }
        }
        Ok(None)
    }

    fn receive_until(&mut self, deadline: Instant) -> Result<Option<usize>, RequestError> {
        loop {
            let left = deadline.saturating_duration_since(monotonic_now());
            if left.is_zero() {
                return Ok(None);
            }
            let received = self
                .socket
                .set_read_timeout(Some(left))
                .and_then(|()| self.socket.recv(&mut self.buffer));
            match received {
                Ok(length) => return Ok(Some(length)),
                Err(error) if is_retryable(&error) => {}
                Err(source) => return Err(self.socket_error(source)),
            }
        }
    }

    fn socket_error(&self, source: io::Error) -> RequestError {
        let address = self.address;
        if source.kind() == io::ErrorKind::ConnectionRefused {
            RequestError::NothingListens { address }
        } else {
            RequestError::Socket { address, source }
        }
    }
}

pub(crate) fn is_retryable(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a blocking client waits on a real socket, and its patience must survive clock steps"
)]
fn monotonic_now() -> Instant {
    Instant::now()
}
