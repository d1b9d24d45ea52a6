//! The rows of a running measurement on their way to the recording.

use meikyo_recording::{Batch, Symbol, Symbols};
use meikyo_units::WallTime;

use crate::poll::sink::RowSink;
use crate::tables::{self, State, Table, batches, events, polls};

/// Why a (device, interval) was skipped, or ended in error, or whose fault a late one was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Skipped: the request of an earlier interval is still unanswered.
    InFlight,
    /// Skipped: the device has not answered for some time and is asked less often.
    BackedOff,
    /// Skipped: the device's cap of requests per second is reached.
    RateCap,
    /// Skipped: the receive buffer could not have held another answer.
    InFlightCap,
    /// Skipped: the collector itself woke up after the interval had passed.
    Overrun,
    /// Skipped: the device's names are being resolved.
    Resolving,
    /// Late or missed, but the collector itself was late with the request.
    Stall,
    /// Missed while our own socket dropped datagrams.
    SocketDrops,
    /// The kernel refused to send to this address.
    Unreachable,
    /// A packet that is not SNMP, or was cut.
    BadPacket,
    /// An answer with other objects than were asked.
    WrongObjects,
    /// A single row is too big for the agent.
    TooBig,
    /// The agent answered with an error status (RFC 3416, section 3).
    ErrorStatus,
    /// The agent answered `authorizationError`: its access control gives us nothing (RFC 3415).
    NotAuthorized,
    /// SNMPv3: the agent does not know the user.
    UnknownUser,
    /// SNMPv3: the authentication password is wrong.
    WrongDigest,
    /// SNMPv3: the privacy password is wrong.
    DecryptionError,
    /// SNMPv3: the agent does not accept the security level or the protocol.
    UnsupportedSecurity,
    /// SNMPv3: our clock of the agent's engine could not be brought into its window.
    NotInTimeWindow,
    /// Skipped: the measurement was ended.
    Stopped,
}

impl Reason {
    const ALL: [(Self, &'static str); 20] = [
        (Self::InFlight, "in_flight"),
        (Self::BackedOff, "backed_off"),
        (Self::RateCap, "rate_cap"),
        (Self::InFlightCap, "in_flight_cap"),
        (Self::Overrun, "overrun"),
        (Self::Resolving, "resolving"),
        (Self::Stall, "stall"),
        (Self::SocketDrops, "socket_drops"),
        (Self::Unreachable, "unreachable"),
        (Self::BadPacket, "bad_packet"),
        (Self::WrongObjects, "wrong_objects"),
        (Self::TooBig, "too_big"),
        (Self::ErrorStatus, "error_status"),
        (Self::NotAuthorized, "not_authorized"),
        (Self::UnknownUser, "unknown_user"),
        (Self::WrongDigest, "wrong_digest"),
        (Self::DecryptionError, "decryption_error"),
        (Self::UnsupportedSecurity, "unsupported_security"),
        (Self::NotInTimeWindow, "not_in_time_window"),
        (Self::Stopped, "stopped"),
    ];

    /// The word that is recorded.
    pub const fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// How one PDU to one device ended in one interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollRow {
    pub(super) due: WallTime,
    pub(super) device: Symbol,
    pub(super) pdu: u32,
    pub(super) state: State,
    pub(super) reason: Option<Reason>,
    /// The batch that carried the request; `None` when nothing was sent.
    pub(super) batch: Option<u32>,
    /// Kernel receive time of the answer.
    pub(super) received: Option<WallTime>,
    pub(super) uptime_cs: Option<u32>,
}

/// An event, see [`Rows::event`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Event<'a> {
    /// The device that it concerns; `None` for the collector itself.
    pub device: Option<Symbol>,
    /// Interface, disk or object.
    pub object: Option<&'a str>,
    /// For people.
    pub text: &'a str,
    /// How many, where the kind counts something.
    pub count: Option<u64>,
}

/// Rows in the making: a batch for each table, and the texts that they name.
#[derive(Debug)]
pub struct Rows {
    symbols: Symbols,
    batches: Vec<Batch>,
    states: [Symbol; State::ALL.len()],
    reasons: [Symbol; Reason::ALL.len()],
}

impl Rows {
    /// No rows of any of [`crate::tables::schemas`].
    pub(super) fn new() -> Self {
        let batch = |table: Table| Batch::new(table.index(), tables::schema(table));
        let mut symbols = Symbols::default();
        let states = State::ALL.map(|state| symbols.intern(state.word()));
        let reasons = Reason::ALL.map(|(_, word)| symbols.intern(word));
        Self { symbols, batches: Table::ALL.map(batch).into(), states, reasons }
    }

    /// The batch of a table.
    #[inline]
    pub(crate) fn batch(&mut self, table: Table) -> &mut Batch {
        &mut self.batches[table.index()]
    }

    pub(crate) fn symbol(&mut self, text: &str) -> Symbol {
        self.symbols.intern(text)
    }

    /// Writes a row of `polls`.
    #[inline]
    pub(super) fn poll(&mut self, row: PollRow) {
        let (state, reasons) = (self.states[row.state as usize], &self.reasons);
        let batch = &mut self.batches[Table::Polls.index()];
        batch.begin_row(row.due.as_nanos());
        batch.put(polls::DEVICE, row.device);
        batch.put(polls::PDU, row.pdu.into());
        batch.put(polls::STATE, state);
        if let Some(reason) = row.reason {
            batch.put(polls::REASON, reasons[reason as usize]);
        }
        if let Some(ordinal) = row.batch {
            batch.put(polls::BATCH, u64::from(ordinal));
        }
        if let Some(received) = row.received {
            let offset = (received.as_nanos() - row.due.as_nanos()).div_euclid(1_000);
            batch.put(polls::RECEIVED_US, offset);
        }
        if let Some(uptime) = row.uptime_cs {
            batch.put(polls::UPTIME_CS, u64::from(uptime));
        }
    }

    /// Writes a row of `batches`: `requests` requests were handed to the kernel at `sent`.
    pub(super) fn sent(&mut self, due: WallTime, ordinal: u32, sent: WallTime, requests: usize) {
        let batch = self.batch(Table::Batches);
        batch.begin_row(due.as_nanos());
        batch.put(batches::BATCH, u64::from(ordinal));
        batch.put(batches::SENT_US, (sent.as_nanos() - due.as_nanos()).div_euclid(1_000));
        batch.put(batches::REQUESTS, requests as u64);
    }

    /// Writes a row of `events`. Callers write on changes only, never once a poll.
    pub fn event(&mut self, time: WallTime, kind: &str, event: Event<'_>) {
        let kind = self.symbols.intern(kind);
        let object = event.object.map(|object| self.symbols.intern(object));
        let batch = self.batch(Table::Events);
        batch.begin_row(time.as_nanos());
        if let Some(device) = event.device {
            batch.put(events::DEVICE, device);
        }
        batch.put(events::EVENT, kind);
        if let Some(object) = object {
            batch.put(events::OBJECT, object);
        }
        batch.put(events::TEXT, event.text);
        if let Some(count) = event.count {
            batch.put(events::COUNT, count);
        }
    }

    /// Whether no row waits to be handed over.
    pub fn is_empty(&self) -> bool {
        self.batches.iter().all(|batch| batch.rows() == 0)
    }

    /// Hands every row over; returns how many.
    pub(super) fn flush(&mut self, sink: &mut impl RowSink) -> usize {
        if self.is_empty() {
            return 0;
        }
        for (symbol, text) in self.symbols.take_fresh() {
            sink.define(symbol, &text);
        }
        let mut rows = 0;
        for (table, slot) in Table::ALL.into_iter().zip(&mut self.batches) {
            if slot.rows() > 0 {
                rows += slot.rows();
                let empty = sink.batch(table);
                sink.submit(std::mem::replace(slot, empty));
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_where_their_words_do() {
        for (position, (reason, _)) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, position);
        }
    }
}
