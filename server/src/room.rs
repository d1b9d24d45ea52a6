//! Places for connections and for viewers: how many there are, and who gives up his for a newcomer.
//!
//! A server that refuses newcomers when it is full can be filled by one client who does nothing but
//! hold places. Here the newcomer is let in, and one who only keeps the server waiting goes:
//!
//! 1. of those who have proven nothing yet (no request was admitted, or no view begun), the one who
//!    came first, of the client who has most of them;
//! 2. else of those who have, the one who did nothing for longest, of the client who has most.
//!
//! Who is being worked for stays. A client at its own limit displaces only itself, so that an
//! attacker behind a proxy costs the others there at most connections that stand idle.
//!
//! Finding who goes looks at all places: about 20 µs for 1,024, and only when it is full.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::access::Client;

/// How many places there are, and what those who have proven themselves may expect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How many can be taken at once.
    pub(crate) places: usize,
    /// Places of one client.
    pub(crate) per_client: usize,
    /// Whether a place that was proven is given up only for a client who has fewer places, even
    /// after the exchange, than the one who gives it up.
    pub(crate) only_for_poorer: bool,
}

/// The places.
#[derive(Debug)]
pub(crate) struct Room {
    rules: Rules,
    taken: Mutex<BTreeMap<u64, Arc<Place>>>,
    /// The next number; numbers are given in the order of what happens.
    next: AtomicU64,
    displaced: AtomicU64,
    refused: AtomicU64,
}

/// One place, as those see it who work for its holder.
#[derive(Debug)]
pub(crate) struct Place {
    client: Client,
    proven: AtomicBool,
    working: AtomicBool,
    /// When its holder did something last, as a number of the room.
    last: AtomicU64,
    given_up: Notify,
}

/// The right to a place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    room: Arc<Room>,
    number: u64,
    place: Arc<Place>,
}

impl Room {
    /// An empty room.
    pub(crate) fn new(rules: Rules) -> Self {
        let zero = AtomicU64::default;
        Self { rules, taken: Mutex::default(), next: zero(), displaced: zero(), refused: zero() }
    }

    /// A place for a newcomer; `None` when nobody can give up his.
    pub(crate) fn enter(self: &Arc<Self>, client: Client) -> Option<Seat> {
        let mut taken = self.taken();
        let own = taken.values().filter(|place| place.client == client).count();
        let (full, alone) = (taken.len() >= self.rules.places, own >= self.rules.per_client);
        if (full || alone) && !self.displace(&mut taken, alone.then_some(client), own) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = self.number();
        let place = Arc::new(Place {
            client,
            proven: AtomicBool::new(false),
            working: AtomicBool::new(false),
            last: AtomicU64::new(number),
            given_up: Notify::new(),
        });
        taken.insert(number, Arc::clone(&place));
        drop(taken);
        Some(Seat { room: Arc::clone(self), number, place })
    }

    /// Takes a place from somebody since the system has no more to give, if anybody can go.
    pub(crate) fn shrink(&self) {
        self.displace(&mut self.taken(), None, 0);
    }

    /// Places that are taken.
    pub(crate) fn held(&self) -> usize {
        self.taken().len()
    }

    /// How many had to go for newcomers since the start.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced.load(Ordering::Relaxed)
    }

    /// How many were not let in since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Lets the place go that can be spared most, of one client if that is said, for a newcomer
    /// who has `own` places already. Whether there was one.
    fn displace(
        &self,
        taken: &mut BTreeMap<u64, Arc<Place>>,
        of: Option<Client>,
        own: usize,
    ) -> bool {
        let mut held: BTreeMap<(Client, bool), usize> = BTreeMap::new();
        for place in taken.values() {
            *held.entry((place.client, place.is_proven())).or_default() += 1;
        }
        let of_kind = |place: &Place| held[&(place.client, place.is_proven())];
        let spared = taken.iter().filter(|(_, place)| {
            let poorer = !self.rules.only_for_poorer || of_kind(place) > own + 1;
            !place.working.load(Ordering::Relaxed)
                && of.is_none_or(|client| client == place.client)
                && (!place.is_proven() || poorer)
        });
        let key = |(_, place): &(&u64, &Arc<Place>)| {
            (place.is_proven(), Reverse(of_kind(place)), place.last.load(Ordering::Relaxed))
        };
        let Some(number) = spared.min_by_key(key).map(|(number, _)| *number) else { return false };
        if let Some(place) = taken.remove(&number) {
            place.given_up.notify_one();
        }
        self.displaced.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Place>>> {
        self.taken.lock().expect("nothing that holds the places can panic")
    }
}

impl Seat {
    /// Waits until the place is to be given up.
    pub(crate) async fn given_up(&self) {
        self.place.given_up.notified().await;
    }

    /// Says that the holder has done what it came for: its request was admitted, its view begun.
    pub(crate) fn prove(&self) {
        self.place.proven.store(true, Ordering::Relaxed);
        self.progress();
    }

    /// Says that something went to or came from the holder. Before it has proven itself that counts
    /// for nothing: drops of a body that never ends keep no place.
    pub(crate) fn progress(&self) {
        if self.place.is_proven() {
            self.place.last.store(self.room.number(), Ordering::Relaxed);
        }
    }

    /// Keeps the place while there is work for its holder.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        self.place.working.store(true, Ordering::Relaxed);
        Work(Arc::clone(self))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.taken().remove(&self.number);
    }
}

impl Place {
    fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }
}

/// The server works for the holder of a place; it waits for the holder when this is dropped.
#[derive(Debug)]
pub(crate) struct Work(Arc<Seat>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.place.working.store(false, Ordering::Relaxed);
        self.0.place.last.store(self.0.room.number(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
