//! How intervals end: counted, kept, and written down themselves.

use std::collections::VecDeque;

use meikyo_units::{Nanos, WallTime};

use crate::poll::ring::Tally;
use crate::poll::rows::Rows;
use crate::poll::sink::RowSink;
use crate::poll::{Counts, Poller};
use crate::tables::{State, Table, intervals};

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
    pub fn flush(&mut self, sink: &mut impl RowSink) {
        self.write_intervals(sink);
        if self.rows.flush(sink) == 0 {
            return;
        }
        self.tokens += 1;
        let token = self.tokens;
        sink.mark(token);
        for tally in self.rings.iter_mut().flat_map(|ring| &mut ring.open) {
            tally.handed_over(token);
        }
        for closed in self.closed.iter_mut().rev().take_while(|closed| closed.token == 0) {
            closed.token = token;
            closed.tally.handed_over(token);
        }
    }

    /// Writes rows of `intervals` for complete intervals whose rows the kernel has.
    ///
    /// # Panics
    /// When the sink gives back a mark that it was not given.
    pub fn write_intervals(&mut self, sink: &mut impl RowSink) {
        let Self { rows, rings, closed, counts, options, tokens, .. } = self;
        for kept in sink.take_kept() {
            assert!(kept.token <= *tokens, "a sink gives back only marks that it was given");
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
    pub(super) fn close_now(&mut self, sink: &mut impl RowSink) {
        self.write_intervals(sink);
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
    batch.put(intervals::INTERVAL_US, closed.interval.as_micros());
    batch.put(intervals::DEVICES, u64::from(tally.devices));
    batch.put(intervals::OK, tally.ended(State::Ok));
    batch.put(intervals::LATE, tally.ended(State::Late));
    batch.put(intervals::MISSED, tally.ended(State::Missed));
    batch.put(intervals::ERRORS, tally.ended(State::Error));
    batch.put(intervals::SKIPPED, tally.ended(State::Skipped));
    if let Some(first) = tally.first_sent {
        batch.put(intervals::START_US, offset(first));
    }
    if let Some(last) = tally.last_sent {
        batch.put(intervals::SENT_US, offset(last));
    }
    if let Some(last) = tally.last_answer {
        batch.put(intervals::COMPLETE_US, offset(last));
    }
    if let Some(kept) = tally.last_kept {
        batch.put(intervals::KEPT_US, offset(kept));
    }
    batch.put(intervals::STALLED, u64::from(tally.stalled));
    batch.put(intervals::SOCKET_DROPS, counts.socket_drops);
    batch.put(intervals::STRAYS, counts.strays);
    batch.put(intervals::UNREADABLE, counts.unreadable);
}
