//! The agent side of SNMP: answers requests about the objects of a [`Mib`].
//!
//! [`respond`] is a pure step, one datagram in and at most one out, with `now` as an argument: the
//! same code answers for this host ([`host`]) and for thousands of simulated agents
//! ([`crate::farm`]), on a socket or under virtual time. Only [`serve()`] knows a socket
//! and a clock.

mod access;
mod community;
pub mod host;
mod instances;
mod request;
mod secured;
mod serve;
mod stop;

use meikyo_units::WallTime;

use crate::message::{self, Version};
use crate::{DecodeError, ErrorStatus, PduType, ValueRef};

pub use access::{Access, AgentUser, Community, Engine, MESSAGE_BYTES_MAX};
pub use instances::{Find, Instances, InstancesBuilder, compare_encoded};
pub use request::{RequestCache, Slot};
pub use serve::serve;
pub use stop::Stop;

/// What an agent can be asked about: instances in the order of their OIDs, with values of now.
pub trait Mib {
    /// Called once before each request: everything that is answered to it is of `now`.
    ///
    /// # Errors
    ///
    /// The status that the whole request is answered with, `genErr` where the source of the values
    /// cannot be read.
    fn begin(&mut self, now: WallTime) -> Result<(), ErrorStatus>;

    /// The instances that there are; constant between two calls of [`Self::begin`] and
    /// [`Self::set`].
    fn instances(&self) -> &Instances;

    /// The value of the instance at `position` of [`Self::instances`].
    fn value(&mut self, position: usize) -> ValueRef<'_>;

    /// Whether the instance can be given this value; the default is that nothing can be written.
    ///
    /// # Errors
    ///
    /// The status of RFC 3416, section 4.2.5, that says why not.
    fn check_set(&self, _position: usize, _value: ValueRef<'_>) -> Result<(), ErrorStatus> {
        Err(ErrorStatus::NotWritable)
    }

    /// Gives the instance a value that [`Self::check_set`] accepted.
    fn set(&mut self, _position: usize, _value: ValueRef<'_>) {}

    /// Whether an instance that is not there can be made by giving it this value, as a row of a table
    /// is by its `RowStatus` (RFC 2579); its name is OID content octets. The default is that none can.
    ///
    /// # Errors
    ///
    /// The status of RFC 3416, section 4.2.5, that says why not.
    fn check_new(&self, _oid: &[u8], _value: ValueRef<'_>) -> Result<(), ErrorStatus> {
        Err(ErrorStatus::NoCreation)
    }

    /// Makes an instance that [`Self::check_new`] accepted.
    fn set_new(&mut self, _oid: &[u8], _value: ValueRef<'_>) {}
}

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A response or report was written.
    Answered(Exchange),
    /// Nothing is answered.
    Dropped(Drop),
}

/// A request that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The request's type.
    pub kind: PduType,
    /// The request's id; for a report the message's id.
    pub request_id: i32,
    /// The answer's error status.
    pub error_status: ErrorStatus,
    /// Whether the answer is a report (v3 only).
    pub report: bool,
    /// For a GET, the number of its list of objects in [`Responder::requests`].
    pub list: Option<u32>,
}

/// Why a datagram is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    /// It is no SNMP request.
    Malformed,
    /// The community or the version is not served.
    Unauthorized,
    /// Not even the error would fit (snmpSilentDrops).
    TooBig,
}

/// Counters of the SNMP group (RFC 3418) and of USM (RFC 3414).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Datagrams received (snmpInPkts).
    pub received: u64,
    /// Datagrams answered.
    pub answered: u64,
    /// Datagrams that could not be decoded (snmpInASNParseErrs).
    pub malformed: u64,
    /// Versions that are not served (snmpInBadVersions).
    pub bad_versions: u64,
    /// Wrong communities (snmpInBadCommunityNames).
    pub bad_communities: u64,
    /// Writes with a community or user that may only read (snmpInBadCommunityUses).
    pub bad_writes: u64,
    /// Answers that did not fit (snmpSilentDrops).
    pub silent_drops: u64,
}

/// What the answering of requests keeps between them; one serves any number of agents.
#[derive(Debug, Default)]
pub struct Responder {
    requests: RequestCache,
    counters: Counters,
    /// What is added to the ids of answers: not 0 only in an agent that is simulated as faulty.
    pub(crate) id_shift: i32,
    /// A v3 request while it is decrypted.
    request: Vec<u8>,
    /// A scoped PDU before it is encrypted.
    scoped: Vec<u8>,
}

impl Responder {
    /// A responder that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The lists of objects that were asked for.
    pub fn requests(&self) -> &RequestCache {
        &self.requests
    }
}

/// Answers one datagram: appends the answer to `out`, or nothing.
///
/// Amortised free of allocation for GETs whose list of objects was seen before.
pub fn respond<M: Mib>(
    responder: &mut Responder,
    now: WallTime,
    request: &[u8],
    access: &Access,
    engine: &mut Engine,
    mib: &mut M,
    out: &mut Vec<u8>,
) -> Outcome {
    responder.counters.received += 1;
    let outcome = match message::peek_version(request) {
        Ok(Version::V1 | Version::V2c) => {
            community::respond(responder, now, request, access, mib, out)
        }
        Ok(Version::V3) => secured::respond(responder, now, request, access, engine, mib, out),
        Err(DecodeError::Version(_)) => {
            responder.counters.bad_versions += 1;
            Outcome::Dropped(Drop::Unauthorized)
        }
        Err(_) => Outcome::Dropped(Drop::Malformed),
    };
    match outcome {
        Outcome::Answered(_) => responder.counters.answered += 1,
        Outcome::Dropped(Drop::Malformed) => responder.counters.malformed += 1,
        Outcome::Dropped(Drop::TooBig) => responder.counters.silent_drops += 1,
        Outcome::Dropped(Drop::Unauthorized) => {}
    }
    outcome
}
