//! What comes back: answers are matched, read and written down.

use meikyo_sockets::{BATCH, Datagram, SendBatch};
use meikyo_units::WallTime;

use crate::pdu::PduType;
use crate::poll::alerts::{self, Seen};
use crate::poll::device::{Device, Pending, Phase};
use crate::poll::repeats::Repeated;
use crate::poll::request::Answer;
use crate::poll::rows::{Event, PollRow, Reason, Rows};
use crate::poll::session::Report;
use crate::poll::waiting::Open;
use crate::poll::{DEVICE_BITS, Poller, observe, renewal, resets, values};
use crate::tables::State;
use crate::template;
use crate::usm::ReportKind;

/// How often one PDU is sent again within its interval because the agent asked for it (v3
/// discovery and time, `tooBig`, `noSuchName`): enough to split 64 rows and to leave out a few.
const AGAIN_MAX: u8 = 16;

/// The device that a request was made for.
#[inline]
fn ordinal_of(request_id: i32) -> u32 {
    request_id.cast_unsigned() & ((1 << DEVICE_BITS) - 1)
}

/// A datagram that belongs to an open request.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    ordinal: u32,
    which: Open,
    /// The id that it carries: that of the request's first or second try.
    id: i32,
    received: WallTime,
}

impl Poller {
    /// The kernel refused the datagram at `index` of the batch sent last.
    pub(crate) fn handle_send_error(&mut self, batch: &SendBatch, index: usize) {
        if let Some(ordinal) = self.open_request(batch.datagram(index)) {
            self.fail_open(ordinal, Reason::Unreachable);
        }
    }

    /// The device whose open request has the id that a datagram carries.
    fn open_request(&self, octets: &[u8]) -> Option<u32> {
        let id = template::peek_request_id(octets)?;
        let ordinal = ordinal_of(id);
        let device = self.devices.get(ordinal as usize)?;
        // The first try of a request that was sent twice may still be answered.
        let sent = |open: &Pending| open.id == id && open.id_before == 0 && !open.queued;
        device.pending.as_ref().is_some_and(sent).then_some(ordinal)
    }

    /// Looks once at what the answers of a batch will need. In a large cluster every one of them
    /// waits for its device's memory; asked for together, these waits overlap (measured: 0.3 µs less
    /// a poll with 1,000 devices).
    pub(crate) fn touch<'a>(&self, datagrams: impl Iterator<Item = &'a [u8]>) {
        let ids = datagrams.filter_map(template::peek_request_id);
        let mut devices: [Option<&Device>; BATCH] = [None; BATCH];
        for (place, id) in devices.iter_mut().zip(ids) {
            *place = self.devices.get(ordinal_of(id) as usize);
        }
        let devices = || devices.iter().flatten();
        let series = || devices().flat_map(|device| &device.series);
        // What the next ones are found by comes first.
        let found = devices().fold(0, |sum, device| sum ^ device.touch());
        let found = series().fold(found, |sum, series| sum ^ series.touch());
        let found = devices().fold(found, |sum, device| sum ^ device.touch_alerts());
        let found = series().fold(found, |sum, series| sum ^ series.freshness.touch());
        std::hint::black_box(found);
    }

    /// Takes in a datagram.
    ///
    /// One that cannot be used (cut, not SNMP, of another community, version or user, with other
    /// objects) ends nothing, since anybody can send it in the agent's name: the wait for a good
    /// answer goes on. Only if none comes, the interval ends in an error with that reason.
    pub(crate) fn handle_datagram(&mut self, received: WallTime, datagram: Datagram<'_>) {
        let Some(id) = template::peek_request_id(datagram.octets) else {
            self.unreadable(datagram.from);
            return;
        };
        let ordinal = ordinal_of(id);
        let Some(device) = self.devices.get_mut(ordinal as usize) else {
            self.counts.strays += 1;
            return;
        };
        let is_from_device = device.address.is(&datagram.from);
        let Some(which) = device.open_with_id(id).filter(|_| is_from_device) else {
            // After a silence any answer is a sign of life, even one that came too late.
            if is_from_device && device.is_backed_off() && device.pending.is_none() {
                device.not_before = received;
                device.misses = 0;
            }
            self.counts.strays += 1;
            return;
        };
        if datagram.cut {
            return self.unusable(ordinal, which, Reason::BadPacket);
        }
        let mut answer = std::mem::take(&mut self.answer);
        let arrival = Arrival { ordinal, which, id, received };
        self.read(arrival, datagram.octets, &mut answer);
        self.answer = answer;
    }

    /// A packet that is not SNMP; it says by its sender alone what it may have been an answer to.
    fn unreadable(&mut self, from: std::net::SocketAddr) {
        let asked = |device: &Device| {
            device.address.is(&from) && device.pending.as_ref().is_some_and(|open| !open.queued)
        };
        // Rare, so a search is right: no map has to be kept for it. Who sends many of them must
        // not keep us busy.
        let may_search = self.searches_left > 0;
        self.searches_left = self.searches_left.saturating_sub(1);
        let found = may_search.then(|| self.devices.iter().position(asked)).flatten();
        match found {
            Some(position) => {
                let ordinal = u32::try_from(position).expect("ordinals are 18 bits");
                self.unusable(ordinal, Open::Newest, Reason::BadPacket);
            }
            None => self.counts.unreadable += 1,
        }
    }

    /// A datagram for an open request that cannot be used: it is counted and the wait goes on.
    #[cold]
    fn unusable(&mut self, ordinal: u32, which: Open, reason: Reason) {
        self.counts.unreadable += 1;
        if let Some(open) = self.devices[ordinal as usize].open(which) {
            open.unusable = Some(reason);
        }
    }

    fn read(&mut self, arrival: Arrival, octets: &mut [u8], answer: &mut Answer) {
        let Arrival { ordinal, which, received, .. } = arrival;
        let device = &mut self.devices[ordinal as usize];
        let Some(open) = device.open(which).copied() else { return };
        let layout = self.layouts.get(open.layout as usize);
        let shared = layout.security();
        let is_shared = shared.is_some();
        let security = shared.unwrap_or_else(|| device.session.security());
        let Ok(response) = template::read_response(octets, &security) else {
            return self.unusable(ordinal, which, Reason::BadPacket);
        };
        if response.kind == PduType::Report {
            let report = device.session.report(received, &response);
            self.measure(&arrival);
            return match which {
                Open::Newest => self.report(ordinal, received, report),
                // The later request is answered likewise, and is the one that is sent again.
                Open::Earlier => self.fail_earlier(ordinal, received, reason_of(report)),
            };
        }
        if !is_shared && !device.session.is_timely(received, &response) {
            self.counts.strays += 1;
            return;
        }
        if response.error_status != 0 {
            let (status, index) = (response.error_status, response.error_index);
            self.measure(&arrival);
            return match which {
                Open::Newest => self.error_status(ordinal, received, status, index),
                Open::Earlier => self.fail_earlier(ordinal, received, Reason::ErrorStatus),
            };
        }
        match layout.read(response, answer) {
            Ok(()) => self.accept(&arrival, answer),
            Err(reason) => self.unusable(ordinal, which, reason),
        }
    }

    /// Learns from an answer how long the agent takes. What stood aside for the request that is
    /// answered is waited for no longer: rows of a device follow each other in time.
    #[inline]
    fn measure(&mut self, arrival: &Arrival) {
        let &Arrival { ordinal, which, id, received } = arrival;
        let device = &mut self.devices[ordinal as usize];
        let Some(open) = device.open(which) else { return };
        let (_, sent) = open.try_of(id);
        device.round_trip.measured(received.since(sent));
        if which == Open::Newest && device.earlier.is_some() {
            self.give_up(ordinal, Open::Earlier);
        }
    }

    /// A v3 agent reports why it did not answer.
    fn report(&mut self, ordinal: u32, received: WallTime, report: Report) {
        if report != Report::AskAgain {
            return self.fail(ordinal, received, reason_of(report));
        }
        let device = &mut self.devices[ordinal as usize];
        let Some(mut pending) = device.pending else { return };
        let interval = self.rings[pending.ring as usize].interval;
        pending.set = device.renew_sets(pending.due, interval, &mut self.layouts);
        device.pending = Some(pending);
        self.ask_again(ordinal, received);
    }

    /// Sends the same PDU of the same interval again, in a form that the agent can answer.
    pub(super) fn ask_again(&mut self, ordinal: u32, received: WallTime) {
        let device = &mut self.devices[ordinal as usize];
        device.refresh_pending();
        let Some(pending) = device.pending.as_mut() else { return };
        let ring = pending.ring as usize;
        if pending.again >= AGAIN_MAX {
            return self.fail(ordinal, received, Reason::ErrorStatus);
        }
        pending.again += 1;
        pending.queued = true;
        self.in_flight -= 1;
        self.awaited -= usize::from(pending.awaited);
        self.rings[ring].queue.push_front((received, ordinal));
    }

    /// A good answer: its rows are written, and the next PDU of the interval is queued.
    fn accept(&mut self, arrival: &Arrival, answer: &Answer) {
        let &Arrival { ordinal, which, received, .. } = arrival;
        self.measure(arrival);
        let device = &mut self.devices[ordinal as usize];
        let Some(mut open) = device.open(which).copied() else { return };
        self.keep(arrival, &mut open, answer);
        self.in_flight -= 1;
        self.awaited -= usize::from(open.awaited);
        let device = &mut self.devices[ordinal as usize];
        let more = open.pdu + 1 < open.requests && device.phase != Phase::Resolving;
        if which == Open::Earlier {
            device.earlier = None;
            if more {
                self.leave_rest(ordinal, &mut open);
            }
        } else if more {
            open.pdu += 1;
            open.again = 0;
            open.queued = true;
            open.unusable = None;
            device.pending = Some(open);
            device.refresh_pending();
            self.rings[open.ring as usize].queue.push_front((received, ordinal));
            return;
        } else {
            device.pending = None;
        }
        let device = &mut self.devices[ordinal as usize];
        let failures = std::mem::take(&mut device.failures);
        // Also what the answers of an interval told that failed later.
        let held_back =
            (open.resets || failures > 0) && resets::tell(device, open.due, &mut self.rows);
        self.end_interval(&open, open.worst);
        self.answered(ordinal, open.due, failures);
        if held_back {
            self.holds_back(ordinal);
        }
    }

    /// Writes down what an answer says, and notes in the request what came of it.
    #[inline]
    fn keep(&mut self, arrival: &Arrival, open: &mut Pending, answer: &Answer) {
        let &Arrival { ordinal, id, received, .. } = arrival;
        let device = &mut self.devices[ordinal as usize];
        let ring = &mut self.rings[open.ring as usize];
        let was_silent = std::mem::take(&mut device.misses) > 0;
        let in_time = received <= open.due + ring.interval;
        let state = if in_time { State::Ok } else { State::Late };
        let stalled = ring.tally(open.due).is_some_and(|tally| tally.stalled);
        self.rows.poll(PollRow {
            due: open.due,
            device: device.name,
            pdu: open.pdu,
            state,
            reason: (stalled && !in_time).then_some(Reason::Stall),
            batch: Some(open.try_of(id).0),
            received: Some(received),
            uptime_cs: answer.uptime_cs,
        });
        let uptime_moved = answer.uptime_cs != device.uptime.map(|(ticks, _)| ticks);
        let asked = was_silent.then_some(open.due);
        let restarted =
            answer.uptime_cs.is_some_and(|uptime| device.restarted(uptime, received, asked));
        if restarted {
            self.restarted.push(ordinal);
        }
        let restart_held = restarted && !tell_restart(device, open.due, &mut self.rows);
        let layout = self.layouts.get(open.layout as usize);
        if device.on_trial {
            device.on_trial = device.left_out.answered(|object| layout.holds(object));
        }
        values::write(device, layout, open, answer, &mut self.rows);
        let seen = Seen { layout, pending: open, answer, received, restarted, uptime_moved };
        let noticed = observe::observe(device, &seen, &mut self.rows);
        let resets = (noticed.resets || restarted) && resets::gather(device, &seen);
        alerts::answered(device, received, &mut self.rows);
        if device.watching.values
            && let Some(mut alerts) = device.alerts.take()
        {
            alerts.look_at(&seen, device, &mut self.rows);
            device.alerts = Some(alerts);
        }
        let measured = device.phase == Phase::Resolved;
        let unresolved = device.phase == Phase::Unresolved && received >= device.resolve_after;
        if unresolved || (measured && restarted && device.renewal.begins_anew(received)) {
            device.phase = Phase::Resolving;
            device.renewal.restarted(measured);
            self.to_resolve.push(ordinal);
        } else if measured && renewal::is_due(device, answer, received) {
            let times = (open.due, received);
            if renewal::look(device, layout, answer, times, &mut self.rows) {
                self.to_resolve.push(ordinal);
            }
        }
        if let Some(tally) = ring.tally(open.due) {
            tally.answered(received);
        }
        open.worst = open.worst.max(state);
        open.resets |= resets;
        if restart_held || noticed.held_back {
            self.holds_back(ordinal);
        }
    }

    /// The PDUs that a late interval still lacks are not asked: the next interval has begun.
    #[cold]
    fn leave_rest(&mut self, ordinal: u32, open: &mut Pending) {
        open.pdu += 1;
        open.worst = open.worst.max(State::Skipped);
        self.rows.poll(PollRow {
            due: open.due,
            device: self.devices[ordinal as usize].name,
            pdu: open.pdu,
            state: State::Skipped,
            reason: Some(Reason::InFlight),
            batch: None,
            received: None,
            uptime_cs: None,
        });
    }

    /// The open request ends in an error, with whatever was answered before it kept.
    pub(super) fn fail(&mut self, ordinal: u32, received: WallTime, reason: Reason) {
        self.count_failed(ordinal, Open::Newest, received);
        self.fail_open(ordinal, reason);
    }

    /// The open request ends in an error, which counts against the device.
    fn fail_open(&mut self, ordinal: u32, reason: Reason) {
        let Some(due) = self.devices[ordinal as usize].pending.map(|open| open.due) else { return };
        self.end(ordinal, Open::Newest, State::Error, Some(reason));
        self.failed(ordinal, due, Some(reason));
    }

    /// The request that stood aside ends in an error.
    #[cold]
    fn fail_earlier(&mut self, ordinal: u32, received: WallTime, reason: Reason) {
        let device = &mut self.devices[ordinal as usize];
        let Some(due) = device.earlier.as_ref().map(|open| open.due) else { return };
        self.count_failed(ordinal, Open::Earlier, received);
        self.end(ordinal, Open::Earlier, State::Error, Some(reason));
        self.failed(ordinal, due, Some(reason));
    }

    /// An answer without values is a sign of life, too.
    fn count_failed(&mut self, ordinal: u32, which: Open, received: WallTime) {
        let device = &mut self.devices[ordinal as usize];
        device.misses = 0;
        alerts::answered(device, received, &mut self.rows);
        let Some(open) = device.open(which) else { return };
        let (ring, due) = (open.ring as usize, open.due);
        if let Some(tally) = self.rings[ring].tally(due) {
            tally.answered(received);
        }
    }
}

/// Writes down that an agent restarted; `false` if it does so again and again, and that is held back.
fn tell_restart(device: &mut Device, due: WallTime, rows: &mut Rows) -> bool {
    let told = device.repeats.get_or_insert_default().admit(Repeated::Restart, due);
    if told {
        let text = "sysUpTime began anew: the agent restarted";
        rows.event(due, "restart", Event { device: Some(device.name), text, ..Event::default() });
    }
    told
}

/// Why a report ends an interval.
fn reason_of(report: Report) -> Reason {
    match report {
        Report::AskAgain | Report::Refused(ReportKind::NotInTimeWindow) => Reason::NotInTimeWindow,
        Report::Refused(ReportKind::UnknownUserName) => Reason::UnknownUser,
        Report::Refused(ReportKind::WrongDigest) => Reason::WrongDigest,
        Report::Refused(ReportKind::DecryptionError) => Reason::DecryptionError,
        Report::Refused(ReportKind::UnsupportedSecurityLevel) => Reason::UnsupportedSecurity,
        Report::Refused(ReportKind::UnknownEngineId) | Report::Unknown => Reason::BadPacket,
    }
}
