//! The socket of one viewer from its opening to its end, and why it ends.
//!
//! A viewer keeps his place as long as he says in time what he wants to see, reads what he gets and
//! answers pings. One who stops reading is found by the stream below ([`crate::listen`]), one who is
//! gone without a word by pings (RFC 6455, 5.5.2 and 5.5.3).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::time::{Instant, sleep_until};

use super::audience::Audience;
use super::messages::LiveReply;
use super::view::{GAP, Gone, View, ready, send, send_message, subscribe};
use crate::access::Hash;
use crate::counts::Closed;
use crate::errors::ApiError;
use crate::listen::stopped;
use crate::room::Seat;
use crate::state::Shared;

/// A live view counts as watching its recording as long as it is open, however seldom rows come.
const WATCHES_EVERY: Duration = Duration::from_secs(1);

/// Why a socket ends.
enum End {
    /// The viewer has left, or his connection was lost.
    Left,
    /// He read nothing for too long; the stream has counted that.
    Unread,
    /// His place was given to somebody else; the room has counted that.
    Displaced,
    /// He is sent away.
    Refused(Closed),
    /// The server ends.
    Stopped,
}

impl From<Gone> for End {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Left => Self::Left,
            Gone::Unread => Self::Unread,
        }
    }
}

/// Converses with a viewer until either side ends.
pub(crate) async fn converse(
    server: Shared,
    audience: Arc<Audience>,
    mut socket: WebSocket,
    seat: Seat,
    proof: Option<Hash>,
) {
    let mut stop = server.stop.clone();
    let mut view: Option<View> = None;
    let end = tokio::select! {
        () = stopped(&mut stop) => End::Stopped,
        () = seat.given_up() => End::Displaced,
        () = revoked(&server, proof.as_ref()) => End::Refused(Closed::Revoked),
        end = serve(&server, &audience, &seat, &mut view, &mut socket) => end,
    };
    if !matches!(end, End::Left | End::Stopped) {
        server.counts.lose_steps(view.as_ref().map_or(0, View::unsent));
    }
    if let End::Refused(why) = end {
        server.counts.close(why);
    }
    drop(tokio::time::timeout(GAP, socket.send(Message::Close(farewell(&end)))).await);
}

/// What a viewer is told when he is sent away (RFC 6455, 7.4.1).
fn farewell(end: &End) -> Option<CloseFrame> {
    let (code, reason) = match end {
        End::Left | End::Unread => return None,
        End::Stopped => (close_code::AWAY, "the server ends"),
        End::Displaced => (close_code::AGAIN, "too many viewers; ask again later"),
        End::Refused(Closed::Revoked) => (close_code::POLICY, "the token is no longer taken"),
        End::Refused(Closed::Unsubscribed) => (close_code::POLICY, "nothing was subscribed to"),
        End::Refused(_) => (close_code::POLICY, "no ping was answered"),
    };
    Some(CloseFrame { code, reason: reason.into() })
}

/// Waits until the token that a viewer came with is no longer taken.
async fn revoked(server: &Shared, proof: Option<&Hash>) {
    match (&server.access.tokens, proof) {
        (Some(tokens), Some(hash)) => tokens.revoked(hash).await,
        _ => std::future::pending().await,
    }
}

/// Answers the viewer and sends what is new, until he leaves or has to.
async fn serve(
    server: &Shared,
    audience: &Arc<Audience>,
    seat: &Seat,
    view: &mut Option<View>,
    socket: &mut WebSocket,
) -> End {
    let limits = &server.limits;
    let mut heard = Instant::now();
    let mut ping = heard + limits.ping.to_std();
    let mut watches = heard;
    let subscribed_by = heard + limits.subscription.to_std();
    loop {
        let outcome = tokio::select! {
            // What has come counts before the time is up.
            biased;
            message = socket.recv() => {
                heard = Instant::now();
                match message {
                    Some(Ok(Message::Text(text))) => {
                        subscribe(server, audience, &text, (seat, view), socket).await
                    }
                    Some(Ok(Message::Binary(_))) => {
                        let refused = ApiError::bad("requests are JSON texts", "message");
                        send(socket, &LiveReply::refused(&refused)).await
                    }
                    Some(Ok(Message::Pong(said))) => {
                        view.iter_mut().for_each(|view| view.pong(&said));
                        Ok(())
                    }
                    Some(Ok(Message::Ping(_))) => Ok(()),
                    Some(Err(error)) => return Gone::by(&error).into(),
                    Some(Ok(Message::Close(_))) | None => return End::Left,
                }
            }
            () = sleep_until(heard + limits.silence.to_std()) => {
                return End::Refused(Closed::Silent);
            }
            () = sleep_until(subscribed_by), if view.is_none() => {
                return End::Refused(Closed::Unsubscribed);
            }
            () = sleep_until(ping) => {
                ping = Instant::now() + limits.ping.to_std();
                send_message(socket, Message::Ping(Vec::new().into())).await
            }
            () = sleep_until(watches), if view.as_ref().is_some_and(View::is_live) => {
                watches = Instant::now() + WATCHES_EVERY;
                server.note_watched(audience.opened());
                Ok(())
            }
            () = ready(view.as_mut()) => match view {
                Some(view) => view.forward(server, audience, socket).await,
                None => Ok(()),
            },
        };
        if let Err(gone) = outcome {
            return gone.into();
        }
    }
}
