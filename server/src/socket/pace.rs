//! How far the messages of a viewer have come, so that none is sent into a line that is full.
//!
//! Behind each message with rows goes a ping, which every browser answers by itself (RFC 6455, 5.5.2
//! and 5.5.3). As long as an answer takes longer than the line's own delay and what a little queue
//! adds, the next message waits, and what grows old meanwhile is left out. So a slow line carries as
//! many steps as it can, each of them new; a kernel and a router that buffer megabytes would else
//! deliver what was half a minute ago. The rule is that of congestion control by delay (RFC 6817),
//! with whole messages instead of octets.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// What queues may add to the line's own delay.
const QUEUE_MAX: Duration = Duration::from_millis(100);
/// The line's delay is the least that was seen; it grows by so much of itself with each answer, so
/// that a line that has become longer is known after some minutes.
const FORGETTING: u32 = 2_048;

/// The pings of a viewer.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When those were sent that have no answer yet, the oldest first.
    sent: VecDeque<Instant>,
    /// The number of the oldest of them.
    oldest: u64,
    /// The least time until an answer; unknown until there is one.
    least: Option<Duration>,
}

impl Pace {
    /// Notes a ping; what it says.
    pub(super) fn ping(&mut self, now: Instant) -> [u8; 8] {
        self.sent.push_back(now);
        (self.oldest + self.sent.len() as u64 - 1).to_be_bytes()
    }

    /// Takes an answer. What answers no ping of these, or one for the second time, says nothing.
    pub(super) fn pong(&mut self, said: &[u8], now: Instant) {
        let Ok(number) = said.try_into().map(u64::from_be_bytes) else { return };
        let place = number.checked_sub(self.oldest).and_then(|place| usize::try_from(place).ok());
        let Some(sent) = place.and_then(|place| self.sent.get(place)) else { return };
        let took = now.duration_since(*sent);
        let least = self.least.map_or(took, |least| (least + least / FORGETTING).min(took));
        self.least = Some(least);
        // An answer also answers those before it.
        self.sent.drain(..=place.unwrap_or(0));
        self.oldest = number + 1;
    }

    /// Whether the line takes the next message at `now`. A viewer who has never answered is not waited
    /// for.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        match (self.least, self.sent.front()) {
            (Some(least), Some(oldest)) => now.duration_since(*oldest) <= least + QUEUE_MAX,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_next_message_waits_for_a_line_that_is_full() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        let first = pace.ping(begin);
        assert!(pace.is_free(begin + ms(10_000)), "nobody knows the line yet");
        pace.pong(&first, begin + ms(200));
        let [second, third] = [300, 400].map(|at| pace.ping(begin + ms(at)));
        assert!(pace.is_free(begin + ms(600)), "200 ms and some more for the second");
        assert!(!pace.is_free(begin + ms(650)));
        for foreign in [&b"meikyo"[..], b"", &99_u64.to_be_bytes(), &first] {
            pace.pong(foreign, begin + ms(650));
            assert!(!pace.is_free(begin + ms(650)));
        }
        pace.pong(&second, begin + ms(660));
        assert!(pace.is_free(begin + ms(700)), "the third was sent at 400");
        assert!(!pace.is_free(begin + ms(710)));
        pace.pong(&third, begin + ms(770));
        assert!(pace.is_free(begin + ms(10_000)), "nothing is under way");
    }

    #[test]
    fn a_line_that_became_longer_is_known_after_a_while() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        let mut at = begin;
        for took in std::iter::once(100).chain([500; 6_000]) {
            let ping = pace.ping(at);
            at += ms(took);
            pace.pong(&ping, at);
        }
        pace.ping(at);
        assert!(pace.is_free(at + ms(600)));
        assert!(!pace.is_free(at + ms(700)));
    }
}
