//! What a client may take of the server, and for how long.
//!
//! All limits stand here and, with the answer to "what when full", in `docs/server.md`. How often a
//! client may ask is in [`crate::access`]; what one request may read is where it is read.

use std::time::Duration;

use meikyo_units::Nanos;

/// Connections that are open at once, WebSockets not counted.
const CONNECTIONS_MAX: usize = 1_024;
/// Connections that one client may have open, WebSockets not counted. A proxy in front of many
/// people is one client; it queues what is more.
const CONNECTIONS_PER_CLIENT_MAX: usize = 256;
/// Viewers at once; each has a WebSocket and a queue.
const VIEWERS_MAX: usize = 128;
/// How long a client may take to shake hands, to send the head of a request, and to say nothing
/// between two requests.
const HEAD_PATIENCE: Nanos = Nanos::from_secs(15);
/// How long the body of a request may take to come, whole. It has 64 KiB at most.
const BODY_PATIENCE: Nanos = Nanos::from_secs(15);
/// How long a client may read nothing while there is something to send to it. A download over a slow
/// line goes on as long as something gets through.
const UNREAD_PATIENCE: Nanos = Nanos::from_secs(30);
/// How long a viewer may take to say what he wants to see.
const SUBSCRIPTION_PATIENCE: Nanos = Nanos::from_secs(15);
/// How often a viewer is pinged (RFC 6455, 5.5.2).
const PING_PERIOD: Nanos = Nanos::from_secs(20);
/// How long a viewer may be silent, which three pings without an answer are.
const SILENCE_PATIENCE: Nanos = Nanos::from_secs(60);
/// How long conversations may take to end when the server ends.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// What clients may take of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are open at once, WebSockets not counted.
    pub connections: usize,
    /// Connections that one client may have open, WebSockets not counted.
    pub connections_per_client: usize,
    /// WebSockets that are open at once.
    pub viewers: usize,
    /// Span for a TLS handshake, for the head of a request, and between two requests.
    pub head: Nanos,
    /// Span for the body of a request.
    pub body: Nanos,
    /// Span in which a client that does not read is waited for.
    pub unread: Nanos,
    /// Span until a viewer has said what he wants to see.
    pub subscription: Nanos,
    /// Span between two pings of a WebSocket.
    pub ping: Nanos,
    /// Span in which a viewer answers a ping, or says anything else.
    pub silence: Nanos,
}

impl Limits {
    /// The limits that `docs/server.md` promises.
    pub const STANDARD: Self = Self {
        connections: CONNECTIONS_MAX,
        connections_per_client: CONNECTIONS_PER_CLIENT_MAX,
        viewers: VIEWERS_MAX,
        head: HEAD_PATIENCE,
        body: BODY_PATIENCE,
        unread: UNREAD_PATIENCE,
        subscription: SUBSCRIPTION_PATIENCE,
        ping: PING_PERIOD,
        silence: SILENCE_PATIENCE,
    };
}
