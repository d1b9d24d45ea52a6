//! What the poll core keeps of a device's credentials: the community, or the user with keys
//! localised to the agent's engine and the engine's clock.

use std::sync::Arc;

use meikyo_units::WallTime;

use crate::credentials::Credentials;
use crate::template::{RequestTemplate, Response, Security};
use crate::usm::{EngineClock, EngineTime, ReportKind, User};
use crate::{Oid, Version};

/// How a device's messages are secured.
#[derive(Debug)]
pub(super) struct Session {
    credentials: Credentials,
    user: Arc<User>,
    clock: Option<EngineClock>,
}

/// What a report means for the open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// Something was learned; the request can be sent again.
    AskAgain,
    /// It cannot succeed.
    Refused(ReportKind),
    /// Not a report that USM knows, or one that must not be believed.
    Unknown,
}

impl Session {
    pub(super) fn new(credentials: Credentials) -> Self {
        let user = credentials
            .user_at(&[])
            .unwrap_or_else(|| User { name: Vec::new(), keys: crate::usm::LocalKeys::default() });
        Self { credentials, user: Arc::new(user), clock: None }
    }

    /// A template for a GET of these objects. It holds for the engine known now.
    pub(super) fn template(&self, oids: &[Oid]) -> RequestTemplate {
        let version = self.credentials.version();
        match self.credentials.community() {
            Some(community) => RequestTemplate::community(version, community, oids),
            None => RequestTemplate::v3(Arc::clone(&self.user), oids),
        }
    }

    pub(super) fn version(&self) -> Version {
        self.credentials.version()
    }

    /// Version and community, for v1 and v2c.
    pub(super) fn community(&self) -> Option<(Version, Vec<u8>)> {
        let community = self.credentials.community()?;
        Some((self.credentials.version(), community.to_vec()))
    }

    /// What a response must show to be believed.
    #[inline]
    pub(super) fn security(&self) -> Security<'_> {
        let version = self.credentials.version();
        match self.credentials.community() {
            Some(community) => Security::Community { version, community },
            None => Security::User(&self.user),
        }
    }

    /// The engine's time as it must be at `now`; `None` for v1, v2c and before its discovery.
    #[inline]
    pub(super) fn engine(&self, now: WallTime) -> Option<EngineTime> {
        self.clock.as_ref().map(|clock| clock.at(now))
    }

    /// Whether the time of a v3 response lies in the window (RFC 3414, 3.2.7b); `true` for others.
    #[inline]
    pub(super) fn is_timely(&mut self, received: WallTime, response: &Response<'_>) -> bool {
        match (&mut self.clock, &response.engine) {
            (Some(clock), Some(engine)) if response.authentic => clock.accept(received, engine),
            // Without authentication there is no time window (noAuthNoPriv).
            _ => true,
        }
    }

    /// Takes in a report: an unknown engine is learned, a clock is set right.
    pub(super) fn report(&mut self, received: WallTime, response: &Response<'_>) -> Report {
        let (Some(kind), Some(engine)) = (response.report(), response.engine) else {
            return Report::Unknown;
        };
        match kind {
            ReportKind::UnknownEngineId if !engine.engine_id.is_empty() => {
                self.clock = Some(EngineClock::discovered(received, engine));
                if let Some(user) = self.credentials.user_at(&engine.engine_id) {
                    self.user = Arc::new(user);
                }
                Report::AskAgain
            }
            ReportKind::NotInTimeWindow if response.authentic => {
                let accepted =
                    self.clock.as_mut().is_some_and(|clock| clock.accept(received, &engine));
                if !accepted {
                    // Authentic and yet outside our window: the clock itself is wrong.
                    self.clock = Some(EngineClock::discovered(received, engine));
                }
                Report::AskAgain
            }
            kind => Report::Refused(kind),
        }
    }
}
