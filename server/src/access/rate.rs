//! How often a client may ask, and how often it may guess: budgets that refill all the time.
//!
//! A client has room for [`SECONDS_OF_ROOM`] seconds' worth of requests at once and gets back as
//! many a second as the server is told (`--requests-per-second`). Of tokens it may try
//! [`GUESSES_MAX`] at once, and gets back as many a minute. What is kept of one is the instant at
//! which its room is whole again (the virtual scheduling of ITU-T I.371, GCRA): nothing has to be
//! refilled, and a client whose instant has passed need not be kept.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard};

use meikyo_units::{Nanos, WallTime};

/// Requests a second that a client may make lastingly, unless the server is told otherwise: a page
/// whose window is dragged makes about 50.
pub const REQUESTS_PER_S: NonZeroU32 = NonZeroU32::new(200).expect("200 is not 0");

/// Requests that may come at once, in seconds of the lasting rate.
const SECONDS_OF_ROOM: u64 = 5;

/// Wrong tokens that a client may show at once; as many come back in [`GUESSES_ROOM`].
pub(super) const GUESSES_MAX: u64 = 20;

/// The span in which all guesses come back.
pub(super) const GUESSES_ROOM: Nanos = Nanos::from_secs(60);

/// Clients that are remembered; of more, the one whose room is whole first is forgotten.
const CLIENTS_MAX: usize = 4_096;

/// Who is counted as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// An IPv4 address, or the first 64 bits of an IPv6 one: a host has all that follow.
    Network(IpAddr),
    /// A user of this machine, at the Unix socket; 2^32 - 1 where the system does not say whom.
    User(u32),
}

impl Client {
    /// The client at the other end of a TCP connection.
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::Network(address.into()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::Network(std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
        }
    }
}

/// The budgets of all clients.
#[derive(Debug)]
pub(crate) struct Rates {
    /// What one request costs.
    cost: Nanos,
    /// What a client has when it has asked for nothing yet.
    room: Nanos,
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    /// When the room of each is whole again.
    whole_at: BTreeMap<Client, WallTime>,
    refused: u64,
}

impl Rates {
    /// Budgets of so many requests a second.
    pub(crate) fn of_requests(requests_per_s: NonZeroU32) -> Self {
        let cost = Nanos::SECOND.get() / u64::from(requests_per_s.get());
        let (cost, room) = (Nanos::new(cost.max(1)), Nanos::SECOND * SECONDS_OF_ROOM);
        Self { cost, room, clients: Mutex::default() }
    }

    /// Budgets of wrong tokens.
    pub(super) fn of_guesses() -> Self {
        let cost = Nanos::new(GUESSES_ROOM.get() / GUESSES_MAX);
        Self { cost, room: GUESSES_ROOM, clients: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().expect("nothing that holds the budgets can panic")
    }

    /// Takes one request out of a client's budget.
    ///
    /// # Errors
    /// How long it has to wait, when nothing is left.
    pub(crate) fn charge(&self, client: Client, now: WallTime) -> Result<(), Nanos> {
        let room = self.room;
        let mut clients = self.lock();
        let whole_at = clients.whole_at.get(&client).copied().unwrap_or(now).max(now);
        // After the clock was set back the room is never emptier than empty.
        let owed = whole_at.since(now).min(room);
        let after = owed + self.cost;
        if after > room {
            clients.refused += 1;
            return Err(after.saturating_sub(room));
        }
        clients.keep(client, now + after, now);
        Ok(())
    }

    /// Gives back what was taken for one request, since it was none of those that count.
    pub(super) fn give_back(&self, client: Client) {
        let mut clients = self.lock();
        if let Some(whole_at) = clients.whole_at.get_mut(&client) {
            *whole_at = whole_at.before(self.cost);
        }
    }

    /// Requests that were refused since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.lock().refused
    }
}

impl Clients {
    fn keep(&mut self, client: Client, whole_at: WallTime, now: WallTime) {
        if self.whole_at.len() >= CLIENTS_MAX && !self.whole_at.contains_key(&client) {
            self.whole_at.retain(|_, at| *at > now);
            if self.whole_at.len() >= CLIENTS_MAX
                && let Some(first) = self.whole_at.iter().min_by_key(|(_, at)| **at)
            {
                let first = *first.0;
                self.whole_at.remove(&first);
            }
        }
        self.whole_at.insert(client, whole_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_nanos(1_700_000_000_000_000_000);

    fn rates(requests_per_s: u32) -> Rates {
        Rates::of_requests(NonZeroU32::new(requests_per_s).unwrap())
    }

    /// Requests that are let through at one instant, of so many.
    fn passed(rates: &Rates, client: Client, now: WallTime, asked: u32) -> usize {
        (0..asked).filter(|_| rates.charge(client, now).is_ok()).count()
    }

    #[test]
    fn a_client_may_ask_at_once_what_it_may_in_five_seconds_and_then_at_the_rate() {
        let (rates, client) = (rates(10), Client::User(1));
        assert_eq!(passed(&rates, client, NOW, 60), 50);
        assert_eq!(rates.refused(), 10);
        assert_eq!(rates.charge(client, NOW), Err(Nanos::from_millis(100)));
        let later = NOW + Nanos::SECOND;
        assert_eq!(passed(&rates, client, later, 60), 10, "a second gives ten back");
        assert_eq!(passed(&rates, client, later + Nanos::from_secs(3_600), 99), 50, "never more");
    }

    #[test]
    fn one_client_leaves_the_others_their_room() {
        let rates = rates(1);
        let at = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(passed(&rates, at("10.0.0.1"), NOW, 9), 5);
        assert_eq!(passed(&rates, at("10.0.0.2"), NOW, 9), 5);
        assert_eq!(passed(&rates, at("2001:db8::1"), NOW, 4), 4);
        assert_eq!(passed(&rates, at("2001:db8::2"), NOW, 4), 1, "one network of 64 bits");
        assert_eq!(passed(&rates, at("2001:db8:0:1::1"), NOW, 4), 4);
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
    }

    #[test]
    fn twenty_guesses_a_minute_are_each_clients_own_and_right_ones_cost_nothing() {
        let guesses = Rates::of_guesses();
        let [first, second] = [Client::User(1), Client::User(2)];
        assert_eq!(passed(&guesses, first, NOW, 25), 20);
        assert_eq!(guesses.charge(first, NOW), Err(Nanos::from_secs(3)));
        for _ in 0..100 {
            assert_eq!(guesses.charge(second, NOW), Ok(()));
            guesses.give_back(second);
        }
        assert_eq!(passed(&guesses, first, NOW + GUESSES_ROOM, 25), 20);
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let (rates, client) = (rates(10), Client::User(1));
        assert_eq!(passed(&rates, client, NOW, 50), 50);
        let back = NOW.before(Nanos::from_secs(86_400));
        assert_eq!(rates.charge(client, back), Err(Nanos::from_millis(100)));
    }

    #[test]
    fn more_clients_than_are_remembered_cost_no_more_room() {
        let rates = rates(1);
        let user = |n: usize| Client::User(u32::try_from(n).unwrap());
        assert_eq!(passed(&rates, user(0), NOW, 5), 5);
        for n in 1..2 * CLIENTS_MAX {
            assert_eq!(rates.charge(user(n), NOW), Ok(()));
        }
        assert_eq!(rates.clients.lock().unwrap().whole_at.len(), CLIENTS_MAX);
        assert!(rates.charge(user(0), NOW).is_err(), "who owes most is forgotten last");
    }
}
