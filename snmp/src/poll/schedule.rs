//! When what is asked: intervals begin, requests leave, waits end.

use meikyo_sockets::{BATCH, SendBatch};
use meikyo_units::{Nanos, WallTime};

use crate::poll::alerts::compile;
use crate::poll::device::{Pending, Phase};
use crate::poll::rows::{Event, PollRow, Reason};
use crate::poll::waiting::Open;
use crate::poll::{Pace, Poller, due, index};
use crate::tables::State;

/// Overslept intervals that are written device by device; of longer sleeps the rest is counted in
/// one event.
const OVERRUN_ROWS_MAX: u64 = 100;

/// Unreadable datagrams whose sender is looked for among the devices between two looks at the clock.
const SEARCHES_MAX: u32 = 64;

impl Poller {
    /// Ends requests whose wait is over and begins intervals that are due.
    pub fn handle_time(&mut self, now: WallTime) {
        self.searches_left = SEARCHES_MAX;
        self.expire(now);
        if self.stopping {
            return;
        }
        let mut began = false;
        for ring in 0..self.rings.len() {
            self.begin_silent(ring, now);
            let interval = self.rings[ring].interval;
            if self.rings[ring].next > now || self.rings[ring].devices.is_empty() {
                if self.rings[ring].next <= now {
                    self.rings[ring].next = due(now, interval, self.steps_back) + interval;
                }
                continue;
            }
            let due = due(now, interval, self.steps_back);
            self.pass_over_silent(ring, Reason::Overrun);
            self.overslept(ring, due);
            self.begin(ring, due, now);
            began = true;
            self.rings[ring].next = due + interval;
        }
        self.tell_repeats(now);
        // What is sent now does not wait for what can be done afterwards, see `next_wakeup`.
        if !(began && self.has_queued()) {
            self.compile_some(now);
            self.look_for_alerts(now);
        }
    }

    /// Writes down the intervals before `due` that nobody woke up for.
    fn overslept(&mut self, ring: usize, due: WallTime) {
        let (first, interval) = (self.rings[ring].next, self.rings[ring].interval);
        let lost = due.since(first).get() / interval.get();
        if lost == 0 {
            return;
        }
        self.counts.overruns += lost;
        self.alerts_slept(due);
        let text = "the collector itself slept through intervals";
        self.rows.event(due, "overrun", Event { text, count: Some(lost), ..Event::default() });
        for missed in 0..lost.min(OVERRUN_ROWS_MAX) {
            let missed = first + interval * missed;
            self.rings[ring].open(missed);
            for position in 0..self.rings[ring].devices.len() {
                let ordinal = self.rings[ring].devices[position];
                self.skip(ring, ordinal, missed, Reason::Overrun);
            }
            self.close_intervals(ring);
        }
    }

    /// Begins one interval: every device is queued, or skipped with its reason; the silent ones
    /// only when the others have answered.
    fn begin(&mut self, ring: usize, due: WallTime, now: WallTime) {
        self.rings[ring].open(due);
        let interval = self.rings[ring].interval;
        if now.since(due).get() > interval.get() / 4 {
            self.stall(ring, due);
        }
        self.drop_unsent(ring);
        let count = self.rings[ring].devices.len() as u64;
        let mut queued = 0_u64;
        let first = self.rings[ring].first.min(self.rings[ring].devices.len());
        for position in (first..self.rings[ring].devices.len()).chain(0..first) {
            let ordinal = self.rings[ring].devices[position];
            if self.devices[ordinal as usize].is_silent(due, interval) {
                self.rings[ring].silent.push(ordinal);
                continue;
            }
            let at = match self.options.pace {
                Pace::AtOnce => due,
                // Four fifths, so that the last ones too can be answered within the interval.
                Pace::Spread => due + Nanos::new(interval.get() / 5 * 4 / count * queued),
            };
            queued += u64::from(self.ask(ring, ordinal, due, now, at));
        }
        self.close_intervals(ring);
    }

    /// Queues the first request of a device's interval, or skips it; `true` if it is queued.
    fn ask(
        &mut self,
        ring: usize,
        ordinal: u32,
        due: WallTime,
        now: WallTime,
        at: WallTime,
    ) -> bool {
        let interval = self.rings[ring].interval;
        let is_open = self.devices[ordinal as usize].pending.is_some();
        let stays_open = is_open && !self.stand_aside(ordinal, at.max(now), interval);
        let device = &mut self.devices[ordinal as usize];
        let reason = match &device.pending {
            Some(_) if stays_open => Some(Reason::InFlight),
            _ if device.phase == Phase::Resolving => Some(Reason::Resolving),
            _ if due < device.not_before => Some(Reason::BackedOff),
            _ => None,
        };
        if let Some(reason) = reason {
            self.skip(ring, ordinal, due, reason);
            return false;
        }
        if let Some(plan) = device.next_plan.take() {
            device.set_plan(due, *plan, &mut self.rows);
            compile(device, &self.alerts, due, &mut self.rows);
        }
        if due >= device.try_again_at {
            device.try_again(due);
        }
        let first = device.first_for(due, interval, &mut self.layouts);
        if !device.take_allowance(now, first.requests) {
            self.skip(ring, ordinal, due, Reason::RateCap);
            return false;
        }
        device.pending = Some(Pending {
            ring: index(ring),
            due,
            sent: due,
            deadline: due,
            id: 0,
            batch: 0,
            id_before: 0,
            batch_before: 0,
            apart_us: 0,
            again_after_us: 0,
            set: first.set,
            pdu: 0,
            layout: first.layout,
            shared: first.shared,
            requests: first.requests,
            again: 0,
            worst: State::Ok,
            unusable: None,
            queued: true,
            awaited: device.misses == 0 && device.earlier.is_none(),
            resets: false,
        });
        device.watching.asked(due);
        self.rings[ring].queue.push_back((at, ordinal));
        true
    }

    /// Gives the silent devices their turn: after an eighth of the interval if no other is waited
    /// for, after half of it in any case.
    fn begin_silent(&mut self, ring: usize, now: WallTime) {
        if !self.is_silents_turn(ring, now) {
            return;
        }
        let due = self.rings[ring].begun();
        for ordinal in std::mem::take(&mut self.rings[ring].silent) {
            self.ask(ring, ordinal, due, now, now);
        }
        self.close_intervals(ring);
    }

    fn is_silents_turn(&self, ring: usize, now: WallTime) -> bool {
        let ring = &self.rings[ring];
        let in_peace = self.is_idle() && now >= ring.silent_from();
        !ring.silent.is_empty() && now < ring.next && (in_peace || now >= ring.silent_by())
    }

    /// Whether nobody is waited for who is likely to answer.
    pub(super) fn is_idle(&self) -> bool {
        self.awaited == 0 && !self.has_queued()
    }

    /// Skips the silent devices of the newest interval, whose turn has not come.
    pub(super) fn pass_over_silent(&mut self, ring: usize, reason: Reason) {
        let due = self.rings[ring].begun();
        for ordinal in std::mem::take(&mut self.rings[ring].silent) {
            self.skip(ring, ordinal, due, reason);
        }
        self.close_intervals(ring);
    }

    /// Ends requests of an earlier interval that could not be sent in it. Those that are under way
    /// (a further PDU, a second try) stay. Those that had to stand back are the first next time.
    fn drop_unsent(&mut self, ring: usize) {
        let mut first_unsent = None;
        for (at, ordinal) in std::mem::take(&mut self.rings[ring].queue) {
            let pending = self.devices[ordinal as usize].pending.as_ref();
            if pending.is_some_and(|pending| pending.pdu > 0 || pending.again > 0) {
                self.rings[ring].queue.push_back((at, ordinal));
            } else {
                first_unsent.get_or_insert(ordinal);
                self.end(ordinal, Open::Newest, State::Skipped, Some(Reason::InFlightCap));
            }
        }
        let ring = &mut self.rings[ring];
        if let Some(first) = first_unsent {
            ring.first = ring.devices.iter().position(|&other| other == first).unwrap_or(0);
        }
    }

    pub(super) fn skip(&mut self, ring: usize, ordinal: u32, due: WallTime, reason: Reason) {
        self.rows.poll(PollRow {
            due,
            device: self.devices[ordinal as usize].name,
            pdu: 0,
            state: State::Skipped,
            reason: Some(reason),
            batch: None,
            received: None,
            uptime_cs: None,
        });
        self.states[State::Skipped as usize] += 1;
        self.rings[ring].end(due, State::Skipped);
    }

    /// Marks an interval as spoiled by ourselves, once.
    fn stall(&mut self, ring: usize, due: WallTime) {
        if let Some(tally) = self.rings[ring].tally(due).filter(|tally| !tally.stalled) {
            tally.stalled = true;
            self.counts.stalls += 1;
        }
    }

    /// Fills `batch` with requests that are due, at most [`BATCH`] of one interval; leaves it empty
    /// when there are none. The caller hands them to the kernel at once.
    pub(crate) fn poll_transmit(&mut self, now: WallTime, batch: &mut SendBatch) {
        batch.clear();
        self.transmit_overdue(now, batch);
        if !batch.is_empty() {
            return;
        }
        for ring in 0..self.rings.len() {
            self.transmit_ring(ring, now, batch);
            if !batch.is_empty() {
                return;
            }
        }
    }

    fn transmit_ring(&mut self, ring: usize, now: WallTime, batch: &mut SendBatch) {
        let mut interval_due = None;
        while batch.len() < BATCH && self.in_flight < self.options.in_flight_max {
            let Some(&(at, ordinal)) = self.rings[ring].queue.front() else { break };
            let device = &mut self.devices[ordinal as usize];
            let Some(pending) = device.pending.as_mut().filter(|pending| pending.queued) else {
                self.rings[ring].queue.pop_front();
                continue;
            };
            if at > now || interval_due.is_some_and(|due| due != pending.due) {
                break;
            }
            interval_due = Some(pending.due);
            self.rings[ring].queue.pop_front();
            let batch_ordinal =
                self.rings[ring].tally(pending.due).map_or(0, |tally| tally.batches);
            self.send(ordinal, now, batch_ordinal, batch);
        }
        if let Some(due) = interval_due {
            self.note_batch(ring, due, now, batch.len());
        }
    }

    /// Sends overdue requests of one interval once more.
    fn transmit_overdue(&mut self, now: WallTime, batch: &mut SendBatch) {
        let mut interval = None;
        while batch.len() < BATCH
            && let Some(&(ordinal, id)) = self.overdue.last()
        {
            let device = &mut self.devices[ordinal as usize];
            let which = device.open_with_id(id);
            let open = which.and_then(|which| Some((which, *device.open(which)?)));
            // It may have been answered since.
            let Some((which, open)) = open else {
                self.overdue.pop();
                continue;
            };
            if interval.is_some_and(|interval| interval != (open.ring, open.due)) {
                break;
            }
            interval = Some((open.ring, open.due));
            self.overdue.pop();
            let tally = self.rings[open.ring as usize].tally(open.due);
            let batch_ordinal = tally.map_or(0, |tally| tally.batches);
            self.send_again(ordinal, which, now, batch_ordinal, batch);
        }
        if let Some((ring, due)) = interval {
            self.note_batch(ring as usize, due, now, batch.len());
        }
    }

    /// Writes down a batch of an interval that is handed over now.
    fn note_batch(&mut self, ring: usize, due: WallTime, now: WallTime, requests: usize) {
        let quarter = self.rings[ring].interval.get() / 4;
        if let Some(tally) = self.rings[ring].tally(due) {
            let expected = tally.last_sent.unwrap_or(due);
            let late = self.options.pace == Pace::AtOnce && now.since(expected).get() > quarter;
            let (ordinal, first_of_interval) = (tally.batches, tally.first_sent.is_none());
            tally.batches += 1;
            tally.first_sent.get_or_insert(now);
            tally.last_sent = Some(now);
            self.rows.sent(due, ordinal, now, requests);
            if late && first_of_interval {
                self.stall(ring, due);
            }
        }
    }

    fn send(&mut self, ordinal: u32, now: WallTime, batch_ordinal: u32, batch: &mut SendBatch) {
        let device = &mut self.devices[ordinal as usize];
        let id = device.next_id(ordinal);
        let patience = device.patience();
        let mut open = device.pending.expect("only pending requests are queued");
        let interval = self.rings[open.ring as usize].interval;
        open.id = id;
        open.id_before = 0;
        open.apart_us = 0;
        open.queued = false;
        open.sent = now;
        open.deadline = now + patience;
        open.again_after_us = device.again_after_us(interval, patience);
        open.batch = batch_ordinal;
        device.pending = Some(open);
        self.write_request(ordinal, &open, now, batch);
        self.sweep_by(open.look_at());
        self.in_flight += 1;
        self.awaited += usize::from(open.awaited);
    }

    /// Sends an open request once more, with another id; it is waited for as long as before.
    fn send_again(
        &mut self,
        ordinal: u32,
        which: Open,
        now: WallTime,
        batch_ordinal: u32,
        batch: &mut SendBatch,
    ) {
        let device = &mut self.devices[ordinal as usize];
        let id = device.next_id(ordinal);
        let Some(open) = device.open(which) else { return };
        let apart = now.since(open.sent).as_micros();
        (open.id_before, open.batch_before) = (open.id, open.batch);
        // Saturates at 71 minutes, longer than any request is open.
        open.apart_us = u32::try_from(apart).unwrap_or(u32::MAX);
        (open.id, open.batch, open.sent) = (id, batch_ordinal, now);
        let open = *open;
        self.write_request(ordinal, &open, now, batch);
    }

    /// Appends the datagram of an open request.
    #[inline]
    fn write_request(
        &mut self,
        ordinal: u32,
        open: &Pending,
        now: WallTime,
        batch: &mut SendBatch,
    ) {
        let device = &mut self.devices[ordinal as usize];
        if open.shared {
            let template = self.layouts.template(open.layout as usize);
            template.write(open.id, None, 0, batch.octets_mut());
        } else {
            let engine = device.session.engine(now);
            self.salt = self.salt.wrapping_add(1);
            let requests = &mut device.sets[open.set as usize].requests;
            let own = requests[open.pdu as usize].own_template();
            let template = own.expect("a request that shares no template has its own");
            template.write(open.id, engine.as_ref(), self.salt, batch.octets_mut());
        }
        batch.end_datagram(&device.address);
        self.counts.requests += 1;
    }
}
