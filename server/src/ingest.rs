//! Rows from afar: connections of senders, and the recording that their rows are written to.
//!
//! Each connection is a task that reads and writes octets. What they mean is up to
//! [`meikyo_transport::Receiver`], which one thread drives: it alone has the recording's writers, so
//! that a slow disk makes senders wait and nobody else. A block is written as it came, behind a header
//! of the log; nothing of it is decoded.

mod keeper;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use meikyo_transport::{Permit, SessionId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

pub use keeper::KeeperError;
pub(crate) use keeper::{Keeper, Taken};

use crate::access::Hash;
use crate::counts::Closed;
use crate::listen::stopped;
use crate::state::Shared;

/// Connections of senders at once.
pub(crate) const SENDERS_MAX: usize = 2_048;

/// What waits for the thread that writes, of all connections together; who sends more waits.
const INBOX_MAX: usize = 256;

/// Messages that wait for one sender to read them; one that reads none is sent away.
const OUTBOX_MAX: usize = 256;

/// Octets that are read from a sender at once.
const READ_BYTES: usize = 64 << 10;

/// What a connection tells the thread.
#[derive(Debug)]
pub(crate) enum Event {
    /// A sender has come.
    Connected { session: SessionId, permit: Permit, outbox: mpsc::Sender<Vec<u8>> },
    /// It has sent octets.
    Octets { session: SessionId, octets: Vec<u8> },
    /// The connection has ended, for whatever reason.
    Gone(SessionId),
    /// Time has passed.
    Tick,
    /// The server ends.
    Stop,
}

/// Where connections hand over what they hear.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    events: mpsc::Sender<Event>,
    next: Arc<AtomicU64>,
}

impl Inbox {
    /// An inbox, and where what comes in is taken from.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Event>) {
        let (events, taken) = mpsc::channel(INBOX_MAX);
        (Self { events, next: Arc::default() }, taken)
    }

    /// Hands over an event; waits while there is no room. An error says that the thread has ended.
    pub(crate) async fn tell(&self, event: Event) -> Result<(), ()> {
        self.events.send(event).await.map_err(drop)
    }

    /// As [`Inbox::tell`], for who is no task.
    pub(crate) fn tell_blocking(&self, event: Event) {
        // An error says that the thread has ended already.
        drop(self.events.blocking_send(event));
    }
}

/// Converses with a sender until either side ends.
pub(crate) async fn converse(
    server: Shared,
    inbox: Inbox,
    upgrade: OnUpgrade,
    permit: Permit,
    (proof, _seat): (Option<Hash>, OwnedSemaphorePermit),
) {
    let Ok(upgraded) = upgrade.await else { return };
    let session = inbox.next.fetch_add(1, Ordering::Relaxed) + 1;
    let (outbox, to_send) = mpsc::channel(OUTBOX_MAX);
    if inbox.tell(Event::Connected { session, permit, outbox }).await.is_err() {
        return;
    }
    let mut stop = server.stop.clone();
    let octets = TokioIo::new(upgraded);
    tokio::select! {
        () = stopped(&mut stop) => {}
        () = revoked(&server, proof.as_ref()) => server.counts.close(Closed::Revoked),
        ended = exchange(session, &inbox, octets, to_send) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a sender was lost");
            }
        }
    }
    // The thread may have ended before.
    let _told = inbox.tell(Event::Gone(session)).await;
}

/// Waits until the token that a sender came with is no longer taken.
async fn revoked(server: &Shared, proof: Option<&Hash>) {
    match (&server.access.tokens, proof) {
        (Some(tokens), Some(hash)) => tokens.revoked(hash).await,
        _ => std::future::pending().await,
    }
}

/// Carries octets both ways, until the sender is gone or the thread has no more for it.
async fn exchange(
    session: SessionId,
    inbox: &Inbox,
    octets: TokioIo<hyper::upgrade::Upgraded>,
    mut to_send: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(octets);
    let hear = async {
        let mut octets = vec![0; READ_BYTES];
        loop {
            let count = from.read(&mut octets).await?;
            let octets = octets[..count].to_vec();
            if count == 0 || inbox.tell(Event::Octets { session, octets }).await.is_err() {
                return Ok(());
            }
        }
    };
    let say = async {
        while let Some(octets) = to_send.recv().await {
            to.write_all(&octets).await?;
            to.flush().await?;
        }
        // The thread has closed the session: its last words are sent.
        to.shutdown().await
    };
    tokio::select! {
        ended = hear => ended,
        ended = say => ended,
    }
}
