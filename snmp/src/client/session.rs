//! What is known about one agent between requests: credentials, and for v3 the engine's id, time
//! and keys. Sends nothing and reads no clock.

use meikyo_units::WallTime;
use thiserror::Error;

use crate::ber::{DecodeError, Reader};
use crate::credentials::Credentials;
use crate::message::{self, Version};
use crate::pdu::{Pdu, PduType};
use crate::usm::{
    self, EngineClock, Envelope, LocalKeys, Message, ReportKind, SecurityLevel, User,
};

/// The manager's side of the conversation with one agent.
#[derive(Debug)]
pub struct Session {
    credentials: Credentials,
    engine: Option<Engine>,
    salt: u64,
}

#[derive(Debug)]
struct Engine {
    clock: EngineClock,
    user: User,
}

/// What a datagram means to the request that is waited for.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// The answer to the request, decrypted.
    Answer(Pdu),
    /// No answer, but the engine's id or time is known now: the request is to be sent again.
    Again,
}

/// Why a datagram is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReceiveError {
    /// It could not be used: damaged, forged, or not meant for us.
    #[error("a datagram that could not be used came back")]
    Unusable(#[source] DecodeError),
    /// It is outside the time window of its engine: old, or replayed.
    #[error("a message from outside the time window of 150 s came back")]
    OutsideWindow,
    /// It answers another request.
    #[error("an answer to another request came back")]
    OtherRequest,
    /// The agent refuses the request for good.
    #[error("the agent refuses: {0}")]
    Refused(ReportKind),
    /// The agent sent a report that USM does not have.
    #[error("the agent sent a report that is not about users")]
    UnknownReport,
}

impl ReceiveError {
    /// Whether waiting on or sending again is pointless.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::UnknownReport)
    }
}

impl Session {
    /// Nothing is known about the agent yet. The salt of encrypted requests starts at `now`, so
    /// that it does not repeat from one run to the next.
    pub fn new(now: WallTime, credentials: Credentials) -> Self {
        Self { credentials, engine: None, salt: now.as_nanos().cast_unsigned() }
    }

    /// The version that is spoken.
    pub const fn version(&self) -> Version {
        self.credentials.version()
    }

    /// The engine that was discovered.
    pub fn clock(&self) -> Option<EngineClock> {
        self.engine.as_ref().map(|engine| engine.clock)
    }

    /// Forgets the engine: the agent may have been replaced by another one.
    pub fn forget_engine(&mut self) {
        self.engine = None;
    }

    /// Appends the request, or for v3, while the engine is not known, what finds it out.
    pub fn encode(&mut self, now: WallTime, pdu: &Pdu, out: &mut Vec<u8>) {
        let version = self.version();
        if let Some(community) = self.credentials.community() {
            message::encode_community(version, community, pdu, out);
            return;
        }
        let Some(Engine { clock, user }) = &self.engine else {
            let discovery = Message::discovery(pdu.request_id);
            usm::encode_v3(&discovery, &LocalKeys::default(), 0, out);
            return;
        };
        self.salt = self.salt.wrapping_add(1);
        let engine = clock.at(now);
        let message = Message {
            msg_id: pdu.request_id,
            max_size: usm::MESSAGE_OCTETS_MAX,
            level: user.keys.level(),
            reportable: true,
            engine,
            user: user.name.clone(),
            context_engine_id: engine.engine_id.to_vec(),
            context_name: Vec::new(),
            pdu: pdu.clone(),
        };
        usm::encode_v3(&message, &user.keys, self.salt, out);
    }

    /// Takes a datagram while the answer to the request with this id is waited for.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`]; unless [final](ReceiveError::is_final), the answer may still come.
    pub fn receive(
        &mut self,
        now: WallTime,
        request_id: i32,
        bytes: &mut [u8],
    ) -> Result<Received, ReceiveError> {
        let pdu = if let Some(community) = self.credentials.community() {
            read_community(self.version(), community, bytes).map_err(ReceiveError::Unusable)?
        } else {
            match self.receive_v3(now, request_id, bytes)? {
                Received::Answer(pdu) => pdu,
                Received::Again => return Ok(Received::Again),
            }
        };
        if pdu.kind != PduType::Response {
            let found = pdu.kind.tag();
            return Err(ReceiveError::Unusable(DecodeError::PduType { found }));
        }
        if pdu.request_id == request_id {
            Ok(Received::Answer(pdu))
        } else {
            Err(ReceiveError::OtherRequest)
        }
    }

    fn receive_v3(
        &mut self,
        now: WallTime,
        request_id: i32,
        bytes: &mut [u8],
    ) -> Result<Received, ReceiveError> {
        let envelope = Envelope::read(bytes).map_err(ReceiveError::Unusable)?;
        if envelope.msg_id != request_id {
            return Err(ReceiveError::OtherRequest);
        }
        let Some(Engine { clock, user }) = &mut self.engine else {
            return self.discover(now, &envelope, bytes);
        };
        let level = envelope.level;
        let same_user = envelope.user(bytes) == user.name.as_slice();
        let scoped = envelope.unseal(bytes, &user.keys).map_err(ReceiveError::Unusable)?;
        let pdu = scoped.pdu().map_err(ReceiveError::Unusable)?;
        let authentic = level > SecurityLevel::NoAuthNoPriv;
        if authentic && !clock.accept(now, &envelope.engine) {
            return Err(ReceiveError::OutsideWindow);
        }
        if pdu.kind == PduType::Report {
            return match report_kind(&pdu) {
                Some(ReportKind::NotInTimeWindow) if authentic => Ok(Received::Again),
                Some(ReportKind::NotInTimeWindow) => Err(ReceiveError::OutsideWindow),
                Some(ReportKind::UnknownEngineId)
                    if envelope.engine.engine_id != clock.engine_id() =>
                {
                    self.discover(now, &envelope, &mut [])
                }
                Some(kind) => Err(ReceiveError::Refused(kind)),
                None => Err(ReceiveError::UnknownReport),
            };
        }
        if !same_user {
            return Err(ReceiveError::Unusable(DecodeError::WrongUser));
        }
        if envelope.engine.engine_id != clock.engine_id() {
            return Err(ReceiveError::Unusable(DecodeError::WrongEngine));
        }
        if level < user.keys.level() {
            return Err(ReceiveError::Unusable(DecodeError::SecurityLevel));
        }
        Ok(Received::Answer(pdu))
    }

    /// Learns the engine from the report that answers a discovery.
    fn discover(
        &mut self,
        now: WallTime,
        envelope: &Envelope,
        bytes: &mut [u8],
    ) -> Result<Received, ReceiveError> {
        if !bytes.is_empty() {
            let keys = LocalKeys::default();
            let scoped = envelope.unseal(bytes, &keys).map_err(ReceiveError::Unusable)?;
            let pdu = scoped.pdu().map_err(ReceiveError::Unusable)?;
            if pdu.kind != PduType::Report {
                let found = pdu.kind.tag();
                return Err(ReceiveError::Unusable(DecodeError::PduType { found }));
            }
        }
        let engine_id = envelope.engine.engine_id;
        let Some(user) = self.credentials.user_at(&engine_id).filter(|_| !engine_id.is_empty())
        else {
            return Err(ReceiveError::Unusable(DecodeError::WrongEngine));
        };
        let clock = EngineClock::discovered(now, envelope.engine);
        self.engine = Some(Engine { clock, user });
        Ok(Received::Again)
    }
}

fn read_community(version: Version, community: &[u8], bytes: &[u8]) -> Result<Pdu, DecodeError> {
    let (found_version, found_community, mut pdu): (_, _, Reader<'_>) =
        message::open_community(bytes)?;
    if found_version != version {
        return Err(DecodeError::WrongVersion);
    }
    if found_community != community {
        return Err(DecodeError::WrongCommunity);
    }
    Pdu::decode(&mut pdu)
}

fn report_kind(pdu: &Pdu) -> Option<ReportKind> {
    pdu.varbinds.first().and_then(|(oid, _)| ReportKind::from_oid(oid))
}
