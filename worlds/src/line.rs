//! One direction of a connection: octets arrive in their order, later, and sometimes much later.
//!
//! What a network loses a connection sends again, so loss shows as a stall of everything behind it.
//! That a connection breaks is for the world to decide: it then throws away what is under way.

use meikyo_units::{BitsPerSecond, Nanos, SimTime};

use crate::random::Random;

/// What a line is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineOptions {
    /// How long the first octet takes.
    pub delay: Nanos,
    /// An even random span up to this is added.
    pub jitter: Nanos,
    /// Once in so many pieces something is lost and sent again; 0 for never.
    pub loss_once_in: u64,
    /// How much later everything behind a loss arrives.
    pub recovery: Nanos,
    /// What the line carries at most; nothing limits it when that is zero.
    pub bandwidth: BitsPerSecond,
}

impl LineOptions {
    /// 60 µs without a loss, which is two network stacks and a switch on an idle Ethernet.
    pub const FAST: Self = Self {
        delay: Nanos::from_micros(60),
        jitter: Nanos::ZERO,
        loss_once_in: 0,
        recovery: Nanos::from_millis(200),
        bandwidth: BitsPerSecond::new(0),
    };
}

/// One direction of a connection.
#[derive(Debug, Clone)]
pub struct Line {
    options: LineOptions,
    /// Until when the sender's end is busy with what was sent before.
    busy_until: SimTime,
    /// When the last piece arrives; none overtakes it.
    last_arrival: SimTime,
}

impl Line {
    /// A line on which nothing is under way.
    pub const fn new(options: LineOptions) -> Self {
        Self { options, busy_until: SimTime::START, last_arrival: SimTime::START }
    }

    /// When `octets` that are sent at `now` have arrived.
    pub fn carry(&mut self, now: SimTime, octets: u64, random: &mut Random) -> SimTime {
        let begin = now.max(self.busy_until);
        self.busy_until = begin + self.sending(octets);
        let mut arrival = self.busy_until + self.options.delay + random.span(self.options.jitter);
        if random.once_in(self.options.loss_once_in) {
            arrival = arrival + self.options.recovery;
        }
        self.last_arrival = self.last_arrival.max(arrival);
        self.last_arrival
    }

    /// Until when the line is busy with what was sent.
    pub const fn busy_until(&self) -> SimTime {
        self.busy_until
    }

    fn sending(&self, octets: u64) -> Nanos {
        let rate = self.options.bandwidth.get();
        if rate == 0 {
            return Nanos::ZERO;
        }
        let nanos = u128::from(octets) * 8 * 1_000_000_000 / u128::from(rate);
        // Saturates: no world runs for five centuries.
        Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_line_takes_its_time_and_pieces_wait_for_each_other() {
        let mut random = Random::new(1);
        let options = LineOptions {
            delay: Nanos::from_millis(50),
            bandwidth: BitsPerSecond::new(8_000_000),
            ..LineOptions::FAST
        };
        let mut line = Line::new(options);
        // A megabyte a second: 1,000 octets take 1 ms.
        let arrivals = [0, 0, 10].map(|ms| {
            let now = SimTime::START + Nanos::from_millis(ms);
            line.carry(now, 1_000, &mut random).since(SimTime::START)
        });
        assert_eq!(arrivals, [51, 52, 61].map(Nanos::from_millis));
    }

    #[test]
    fn nothing_overtakes_whatever_is_lost() {
        let options =
            LineOptions { jitter: Nanos::from_millis(30), loss_once_in: 5, ..LineOptions::FAST };
        let (mut line, mut random) = (Line::new(options), Random::new(2));
        let mut before = SimTime::START;
        let mut stalls = 0;
        for ms in 0..1_000 {
            let now = SimTime::START + Nanos::from_millis(ms);
            let arrival = line.carry(now, 100, &mut random);
            assert!(arrival >= before && arrival >= now + options.delay);
            stalls += u32::from(arrival.since(now) >= options.recovery);
            before = arrival;
        }
        assert!(stalls > 100, "{stalls}");
    }
}
