//! Rows from afar: connections of senders, and the recording that their rows are written to.
//!
//! Each connection is a task that reads and writes octets. What they mean is up to
//! [`meikyo_transport::Receiver`], which one thread drives: it alone has the recording's writers, so
//! that a slow disk makes senders wait and nobody else. A block is written as it came, behind a header
//! of the log; nothing of it is decoded. Rows of a collector go to the recording of its cluster
//! ([`clusters`]), those of all other senders to the one that they share.

pub(crate) mod clusters;
pub(crate) mod conversation;
mod debuginfod;
mod files;
mod keeper;
mod turns;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use meikyo_recording::PackedRows;
use meikyo_transport::{Permit, SessionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

pub use debuginfod::Debuginfod;
pub use keeper::KeeperError;
pub(crate) use keeper::{Fate, Keeper, Taken, Taking};

use crate::access::Hash;

/// Connections of senders at once.
const SENDERS_MAX: u32 = 2_048;

/// Connections of senders that show the same token: nobody who has one takes all places.
const SENDERS_PER_TOKEN_MAX: usize = 1_536;

/// What waits for the thread that writes, of all connections together; who sends more waits.
const INBOX_MAX: usize = 256;

/// What a connection tells the thread.
#[derive(Debug)]
pub(crate) enum Event {
    /// A sender has come.
    Connected { session: SessionId, permit: Permit, outbox: mpsc::Sender<Vec<u8>> },
    /// It has sent octets.
    Octets { session: SessionId, octets: Vec<u8> },
    /// The connection has ended, for whatever reason.
    Gone(SessionId),
    /// A sender is to be asked for something of a stream.
    Ask { sender: String, stream: String, words: String },
    /// Functions of a file were found elsewhere, as rows of a stream.
    Found { stream: String, rows: PackedRows },
    /// Time has passed.
    Tick,
    /// The server ends.
    Stop,
    /// A mistake in the program.
    #[cfg(test)]
    Panic,
}

/// Places for connections of senders.
#[derive(Debug)]
pub(crate) struct Seats {
    all: Arc<Semaphore>,
    /// Those of each token that was shown.
    of_tokens: Mutex<BTreeMap<Hash, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    _of_all: OwnedSemaphorePermit,
    _of_token: Option<OwnedSemaphorePermit>,
}

impl Seats {
    /// Places that nobody has taken.
    pub(crate) fn new() -> Self {
        let places = usize::try_from(SENDERS_MAX).expect("Linux has 32 bits at least");
        Self { all: Arc::new(Semaphore::new(places)), of_tokens: Mutex::default() }
    }

    /// A place for a sender who showed that token; `None` when there is none.
    pub(crate) fn take(&self, proof: Option<&Hash>) -> Option<Seat> {
        let places = || Arc::new(Semaphore::new(SENDERS_PER_TOKEN_MAX));
        let of_token = match proof {
            Some(hash) => {
                let mut of_tokens = self.of_tokens.lock().expect("nothing in here can panic");
                let own = Arc::clone(of_tokens.entry(Arc::clone(hash)).or_insert_with(places));
                Some(own.try_acquire_owned().ok()?)
            }
            None => None,
        };
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Seat { _of_all: of_all, _of_token: of_token })
    }

    /// Waits until all senders are gone.
    pub(crate) async fn all_free(&self) {
        // The semaphore is never closed.
        drop(self.all.acquire_many(SENDERS_MAX).await);
    }
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

    /// Whether the thread has ended: nobody takes any rows.
    pub(crate) fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// As [`Inbox::tell`], for who is no task.
    pub(crate) fn tell_blocking(&self, event: Event) {
        // An error says that the thread has ended already.
        drop(self.events.blocking_send(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::taken_for_viewing;

    #[test]
    fn nobody_takes_all_places_with_one_token() {
        let (seats, token) = (Seats::new(), taken_for_viewing());
        let mut taken = Vec::new();
        while let Some(seat) = seats.take(Some(&token)) {
            taken.push(seat);
        }
        assert_eq!(taken.len(), SENDERS_PER_TOKEN_MAX);
        let others: Vec<_> = std::iter::from_fn(|| seats.take(None)).collect();
        let places = usize::try_from(SENDERS_MAX).unwrap();
        assert_eq!(others.len(), places - SENDERS_PER_TOKEN_MAX);
        taken.pop();
        assert!(seats.take(Some(&token)).is_some());
    }
}
