//! How intervals end: counted, kept, and written down themselves.

use std::collections::VecDeque;

use meikyo_units::{Nanos, WallTime};

use crate::poll::ring::Tally;
use crate::poll::rows::Rows;
use crate::poll::{Counts, Poller};
use crate::tables::{State, Table};

/// An interval whose devices have all ended, until its rows are kept.
#[derive(Debug)]
pub(super) struct Closed {
    /// The mark behind its last rows; 0 until they are handed over.
    token: u64,
    interval: Nanos,
    tally: Tally,
}

impl Poller {
    /// Closes the oldest intervals whose devices have all ended, in their order.
    pub(super) fn close_intervals(&mut self, ring: usize) {
        while self.rings[ring].open.front().is_some_and(|tally| tally.left == 0) {
            let Some(tally) = self.rings[ring].open.pop_front() else { break };
            let interval = self.rings[ring].interval;
            self.closed.push_back(Closed { token: 0, interval, tally });
        }
    }

    /// Hands over all rows, with a mark behind them that tells when the kernel has them.
    pub fn flush(&mut self) {
        self.write_intervals();
        if self.rows.flush() == 0 {
            return;
        }
        self.tokens += 1;
        let token = self.tokens;
        self.rows.writer().mark(token);
        for tally in self.rings.iter_mut().flat_map(|ring| &mut ring.open) {
            tally.handed_over(token);
        }
        for closed in self.closed.iter_mut().rev().take_while(|closed| closed.token == 0) {
            closed.token = token;
            closed.tally.handed_over(token);
        }
    }

    /// Writes rows of `intervals` for complete intervals whose rows the kernel has.
    pub fn write_intervals(&mut self) {
        let Self { rows, rings, closed, counts, options, .. } = self;
        let all_kept: Vec<_> = rows.writer().take_kept().collect();
        for kept in all_kept {
            let at = options.real_time.then_some(kept.at);
            let open = rings.iter_mut().flat_map(|ring| &mut ring.open);
            for tally in open.chain(closed.iter_mut().map(|closed| &mut closed.tally)) {
                tally.kept(kept.token, at);
            }
            let done = |closed: &Closed| closed.token != 0 && closed.token <= kept.token;
            while let Some(closed) = pop_if(closed, done) {
                write_interval(&closed, *counts, rows);
            }
        }
    }

    /// Writes rows for the intervals that are complete, kept or not: at the end of a measurement.
    pub(super) fn close_now(&mut self) {
        self.write_intervals();
        while let Some(closed) = self.closed.pop_front() {
            write_interval(&closed, self.counts, &mut self.rows);
        }
    }
}

fn pop_if(queue: &mut VecDeque<Closed>, condition: impl Fn(&Closed) -> bool) -> Option<Closed> {
    queue.front().is_some_and(condition).then(|| queue.pop_front()).flatten()
}

/// Writes the row of `intervals` for a complete interval.
fn write_interval(closed: &Closed, counts: Counts, rows: &mut Rows) {
    let tally = &closed.tally;
    let offset = |at: WallTime| (at.as_nanos() - tally.due.as_nanos()).div_euclid(1_000);
    let batch = rows.batch(Table::Intervals);
    batch.begin_row(tally.due.as_nanos());
    batch.put_u64(intervals::INTERVAL_US, closed.interval.as_micros());
    batch.put_u64(intervals::DEVICES, u64::from(tally.devices));
    batch.put_u64(intervals::OK, tally.ended(State::Ok));
    batch.put_u64(intervals::LATE, tally.ended(State::Late));
    batch.put_u64(intervals::MISSED, tally.ended(State::Missed));
    batch.put_u64(intervals::ERRORS, tally.ended(State::Error));
    batch.put_u64(intervals::SKIPPED, tally.ended(State::Skipped));
    if let Some(first) = tally.first_sent {
        batch.put_i64(intervals::START_US, offset(first));
    }
    if let Some(last) = tally.last_sent {
        batch.put_i64(intervals::SENT_US, offset(last));
    }
    if let Some(last) = tally.last_answer {
        batch.put_i64(intervals::COMPLETE_US, offset(last));
    }
    if let Some(kept) = tally.last_kept {
        batch.put_i64(intervals::KEPT_US, offset(kept));
    }
    batch.put_u64(intervals::STALLED, u64::from(tally.stalled));
    batch.put_u64(intervals::SOCKET_DROPS, counts.socket_drops);
    batch.put_u64(intervals::STRAYS, counts.strays);
    batch.put_u64(intervals::UNREADABLE, counts.unreadable);
}

/// Positions of the columns of `intervals`.
mod intervals {
    pub(super) const INTERVAL_US: usize = 1;
    pub(super) const DEVICES: usize = 2;
    pub(super) const OK: usize = 3;
    pub(super) const LATE: usize = 4;
    pub(super) const MISSED: usize = 5;
    pub(super) const ERRORS: usize = 6;
    pub(super) const SKIPPED: usize = 7;
    pub(super) const START_US: usize = 8;
    pub(super) const SENT_US: usize = 9;
    pub(super) const COMPLETE_US: usize = 10;
    pub(super) const KEPT_US: usize = 11;
    pub(super) const STALLED: usize = 12;
    pub(super) const SOCKET_DROPS: usize = 13;
    pub(super) const STRAYS: usize = 14;
    pub(super) const UNREADABLE: usize = 15;
}
