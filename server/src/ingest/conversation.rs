//! The conversation with one sender: octets from it to the thread that writes, and back.

use std::io;
use std::sync::atomic::Ordering;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use meikyo_transport::{Permit, SessionId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};

use super::{Event, Inbox, Seat};
use crate::access::Hash;
use crate::counts::Closed;
use crate::limits::FAREWELL;
use crate::listen::stopped;
use crate::state::Shared;

/// Messages that wait for one sender to read them; one that reads none is sent away.
const OUTBOX_MAX: usize = 256;

/// Octets that are read from a sender at once.
const READ_BYTES: usize = 64 << 10;

/// Converses with a sender until either side ends.
pub(crate) async fn converse(
    server: Shared,
    inbox: Inbox,
    upgrade: OnUpgrade,
    permit: Permit,
    (proof, _seat): (Option<Hash>, Seat),
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
        () = cut_off(&mut stop) => {}
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

/// Waits until the server has ended, and senders have had time to hear that from the thread.
async fn cut_off(stop: &mut watch::Receiver<bool>) {
    stopped(stop).await;
    tokio::time::sleep(FAREWELL).await;
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
            if count == 0 {
                return Ok(());
            }
            let octets = octets[..count].to_vec();
            if inbox.tell(Event::Octets { session, octets }).await.is_err() {
                // The thread has ended; what it said last is still to be sent.
                return std::future::pending().await;
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
