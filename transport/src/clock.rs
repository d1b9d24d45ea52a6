//! How the receiver's clock stands against the sender's (the exchange of RFC 5905, section 8).

use meikyo_units::WallTime;

use crate::wire::{Offset, Pong};

/// Exchanges that are remembered; the one with the least error counts.
const KEPT: usize = 8;

/// What the last exchanges said.
#[derive(Debug, Default)]
pub(crate) struct ClockFilter {
    kept: Vec<Offset>,
    told: Option<Offset>,
}

impl ClockFilter {
    /// Takes an answer that came at `now`; what is to be told, if it differs from what was.
    pub(crate) fn answer(&mut self, now: WallTime, pong: &Pong) -> Option<Offset> {
        let offset = offset_of(pong, now)?;
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push(offset);
        let best = self.kept.iter().min_by_key(|offset| offset.error_ns).copied()?;
        if self.told == Some(best) {
            return None;
        }
        self.told = Some(best);
        Some(best)
    }
}

/// The offset that one exchange shows: half of the difference of both ways. It is wrong by at most
/// half of the time that both ways took. `None` when the sender's clock was set meanwhile.
fn offset_of(pong: &Pong, now: WallTime) -> Option<Offset> {
    let [sent, received, answered] = [pong.sent_ns, pong.received_ns, pong.answered_ns];
    let [sent, received, answered, back] =
        [sent, received, answered, now.as_nanos()].map(i128::from);
    let way = (back - sent) - (answered - received);
    let offset = ((received - sent) + (answered - back)) / 2;
    Some(Offset {
        offset_ns: i64::try_from(offset).ok()?,
        error_ns: u64::try_from((way + 1) / 2).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_lies_within_the_error_however_uneven_the_ways_are() {
        for (ahead, there, back) in [(0, 1_000, 1_000), (5_000_000, 100, 9_900), (-3_000, 80, 2)] {
            let received = 1_000_000_000 + there + ahead;
            let pong =
                Pong { sent_ns: 1_000_000_000, received_ns: received, answered_ns: received + 50 };
            let now = WallTime::from_nanos(1_000_000_000 + there + 50 + back);
            let found = offset_of(&pong, now).unwrap();
            let error = (i128::from(found.offset_ns) - i128::from(ahead)).unsigned_abs();
            assert!(error <= u128::from(found.error_ns), "{found:?}, {ahead}");
            assert_eq!(found.error_ns, u64::try_from((there + back + 1) / 2).unwrap());
        }
        let pong = Pong { sent_ns: 100, received_ns: 100, answered_ns: 100 };
        assert_eq!(offset_of(&pong, WallTime::from_nanos(50)), None);
    }

    #[test]
    fn the_best_of_the_last_exchanges_counts_and_is_told_once() {
        let mut filter = ClockFilter::default();
        let exchange = |ms: i64, way: i64| {
            let sent_ns = ms * 1_000_000;
            let pong = Pong { sent_ns, received_ns: sent_ns + way, answered_ns: sent_ns + way };
            (WallTime::from_nanos(sent_ns + 2 * way), pong)
        };
        let mut told = Vec::new();
        for (ms, way) in [(1, 500), (2, 100), (3, 900), (4, 900)] {
            let (now, pong) = exchange(ms, way);
            told.extend(filter.answer(now, &pong).map(|offset| offset.error_ns));
        }
        assert_eq!(told, [500, 100]);
    }
}
