//! The sender's side of the transport, without IO.
//!
//! The shell hands over rows ([`Sender::offer`]), says when a connection is there and when it is
//! gone, hands over what came ([`Sender::handle`]) and asks for what is to be sent
//! ([`Sender::poll_transmit`]), one frame at a time: it asks again only when its socket has room, so
//! that a block that is made meanwhile goes first. Times are given with every call.
//!
//! Blocks of the last two seconds go first, then what is older, as fast as
//! [`SenderOptions::catch_up`] and half of the window allow. Every block stays in the spool until the
//! receiver says that it is on its disk.

mod errors;

use std::collections::{BTreeMap, VecDeque};

use meikyo_recording::devices::Device;
use meikyo_recording::{DeltaEncoder, Origin, PackedRows, Source, TableSchema};
use meikyo_units::{Bytes, Nanos, WallTime};

use crate::clock::ClockFilter;
use crate::limits::{
    ANSWERS_WITHIN, ASKED_MAX, BLOCK_BYTES_MAX, DECLARED_BYTES_MAX, FACTS_BYTES_MAX,
    GAPS_UNDER_WAY_MAX, HOLDS_MAX, LATE_AFTER, PING_EVERY, RECONNECT_AFTER, SILENCE_MAX,
    STANDBY_PACE, SpoolLimits, WINDOW_BYTES,
};
use crate::now::Now;
use crate::receiver::check_greeting;
use crate::spool::{Files, Spool, SpoolCounts, Taken};
use crate::wire::{
    Ask, Code, Declared, Decoder, Gap, HEADER_LEN, Hello, Message, Numbers, Offset, Over, Pace,
    Ping, Reason, Refusal, SpoolHead, VERSION, VERSION_WITHOUT_CLUSTER, VERSION_WITHOUT_STANDBY,
    block_frame, message_at,
};

pub use errors::{FactsError, OfferError, OpenSenderError, SessionError};

/// Who sends, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct SenderOptions {
    /// The sender's name, which the receiver's token must allow.
    pub name: String,
    /// The cluster that it measures, which has a recording of its own at the receiver; it stands before
    /// the last colon of the name. `None` for rows of the recording that all other senders share.
    pub cluster: Option<String>,
    /// What it is called together with the collectors that measure the same devices and stand by for it; it
    /// stands before the last `@` of the name. `None` for the only one.
    pub identity: Option<String>,
    /// What tells this life of the sender from every other, for example its start in nanoseconds.
    pub boot: u64,
    /// What tells this life of the machine from every other: the kernel's boot id.
    pub machine: String,
    /// The streams, and the tables that their blocks are of.
    pub streams: Vec<Declared>,
    /// What the spool holds.
    pub spool: SpoolLimits,
    /// Octets a second at which older blocks are caught up with; as fast as the line is when `None`.
    pub catch_up: Option<Bytes>,
}

/// Blocks of a stream that could not be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// How many they are.
    pub blocks: u64,
    /// Rows in them.
    pub rows: u64,
    /// The least time of the rows, ns since the epoch.
    pub from_ns: i64,
    /// The greatest one.
    pub until_ns: i64,
}

impl Skipped {
    /// Adds others of the same stream.
    pub fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.rows += other.rows;
        self.from_ns = self.from_ns.min(other.from_ns);
        self.until_ns = self.until_ns.max(other.until_ns);
    }
}

/// How a sender stands, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderStatus {
    /// Whether the receiver has greeted.
    pub is_welcome: bool,
    /// Whether it was said that nothing more comes.
    pub is_finished: bool,
    /// What waits and what was lost.
    pub spool: SpoolCounts,
    /// Blocks that the receiver has on its disk, since the sender began.
    pub acknowledged_blocks: u64,
    /// Octets of blocks that were sent, repeated ones included.
    pub sent_bytes: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// How the receiver's clock stands against this one's, when it was measured.
    pub clock: Option<Offset>,
    /// The span that the receiver wants blocks to be of while this session lasts; `None` for what the
    /// sender finds best. Of a collector that stands by they are always wanted often.
    pub pace: Option<Nanos>,
}

#[derive(Debug, Default)]
struct Session {
    decoder: Decoder,
    hello_sent: bool,
    /// `None` until the receiver has greeted.
    window: Option<u64>,
    /// What is under way: octets by number, and whether it is caught up with.
    under_way: BTreeMap<u64, (u64, Kind)>,
    bytes_under_way: u64,
    late_under_way: u64,
    gaps_under_way: usize,
    begun: Nanos,
    last_heard: Nanos,
    next_ping: Nanos,
    /// Whether the receiver's time was asked for and did not come yet.
    ping_under_way: bool,
    answers: Vec<Message>,
    pace: Option<Nanos>,
    facts_sent: bool,
    /// What was told of blocks that went live, and of those that were caught up with.
    changes: [DeltaEncoder; 2],
    /// Whether the receiver has stored anything of what was sent in it.
    was_acknowledged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Live,
    Late,
    Gap,
}

/// The sender's side.
#[derive(Debug)]
pub struct Sender<F> {
    options: SenderOptions,
    /// What is known of the devices, as it is sent.
    facts: Option<Vec<u8>>,
    spool: Spool<F>,
    next: BTreeMap<String, u64>,
    session: Option<Session>,
    clock: ClockFilter,
    offset: Option<Offset>,
    acknowledged_blocks: u64,
    sent_bytes: u64,
    sessions: u64,
    /// A receiver could not make a block of what was told of it: blocks are sent whole from then on.
    sends_whole: bool,
    failures: u32,
    connect_at: Nanos,
    /// What may be caught up with now, and when that was worked out.
    allowance: (u64, Nanos),
    sync_at: Nanos,
    is_finished: bool,
    /// What the receiver wants to be told, and nobody has looked at yet.
    asked: VecDeque<Ask>,
    /// When the shell first told the time, by the sender's own clock.
    begun: Option<WallTime>,
}

/// How often what the spool accepted is forced to the disk: what a sender's power cut takes.
const SYNC_EVERY: Nanos = Nanos::SECOND;

/// So much earlier the receiver's time is asked for beside a block.
const PING_EARLY: Nanos = Nanos::from_millis(500);

impl<F: Files> Sender<F> {
    /// A sender in a new life; `files` are those of its spool, which is in memory when there are
    /// none.
    ///
    /// # Errors
    /// When the spool cannot be read, or no receiver would take such a sender.
    pub fn open(options: SenderOptions, files: Option<F>) -> Result<Self, OpenSenderError> {
        let greeting = greeting(&options);
        check_greeting(&greeting).map_err(|text| OpenSenderError::Greeting { text })?;
        let found = Message::Hello(greeting).encoded().len();
        if found > DECLARED_BYTES_MAX {
            return Err(OpenSenderError::Tables { found });
        }
        let next: BTreeMap<String, u64> =
            options.streams.iter().map(|declared| (declared.stream.clone(), 1)).collect();
        let (version, machine, boot) = (1, options.machine.clone(), options.boot);
        let numbers = next.iter().map(|(stream, next)| (stream.clone(), *next)).collect();
        let head = SpoolHead { version, machine, boot, next: numbers };
        let spool = Spool::open(options.spool, files, &options.name, head)
            .map_err(|source| OpenSenderError::Spool { source })?;
        Ok(Self {
            options,
            facts: None,
            spool,
            next,
            session: None,
            clock: ClockFilter::default(),
            offset: None,
            acknowledged_blocks: 0,
            sent_bytes: 0,
            sessions: 0,
            sends_whole: false,
            failures: 0,
            connect_at: Nanos::ZERO,
            allowance: (0, Nanos::ZERO),
            sync_at: Nanos::ZERO,
            is_finished: false,
            asked: VecDeque::new(),
            begun: None,
        })
    }

    /// Accepts rows as the next block of a stream; returns its number. What there is no room for any
    /// more is counted ([`SenderStatus::spool`]) and told to the receiver.
    ///
    /// # Errors
    /// When the stream or the table was not declared. When the block is too long or cannot be
    /// numbered; its number is then told to be missing ([`OfferError::is_told`]).
    pub fn offer(&mut self, now: Now, stream: &str, rows: &PackedRows) -> Result<u64, OfferError> {
        let declared = self.options.streams.iter().find(|declared| declared.stream == stream);
        let has_table =
            |tables: &Vec<TableSchema>| tables.iter().any(|table| table.name == rows.table());
        let next = self.next.get_mut(stream);
        let (Some(_), Some(next)) = (declared.filter(|declared| has_table(&declared.tables)), next)
        else {
            let (stream, table) = (stream.to_owned(), rows.table().to_owned());
            return Err(OfferError::Undeclared { stream, table });
        };
        let source = Source {
            sender: self.options.name.clone(),
            boot: self.options.boot,
            stream: stream.to_owned(),
        };
        let number = *next;
        *next += 1;
        let origin = Origin { source: source.clone(), first: number, last: number };
        let numbered = rows.with_origin(&origin).map_err(|source| OfferError::Origin { source });
        let numbered = numbered.and_then(|numbered| match numbered.payload().len() {
            found if found > BLOCK_BYTES_MAX => Err(OfferError::TooLarge { found }),
            _ => Ok(numbered),
        });
        match numbered {
            Ok(numbered) => {
                if !self.spool.waits_for_time() {
                    self.sync_at = now.monotonic + SYNC_EVERY;
                }
                self.spool.accept(now.monotonic, source, number, numbered);
            }
            Err(error) => {
                let (from_ns, until_ns) = rows.times();
                let gap = Gap {
                    boot: source.boot,
                    stream: source.stream.clone(),
                    first: number,
                    last: number,
                    rows: Some(rows.rows() as u64),
                    from_ns,
                    until_ns,
                    reason: Reason::TooLarge,
                };
                self.spool.tell_gap(source, gap);
                return Err(error);
            }
        }
        Ok(number)
    }

    /// Blocks that were made and could not even be offered: their numbers are told as a gap.
    pub fn skip(&mut self, stream: &str, skipped: Skipped) {
        let Some(next) = self.next.get_mut(stream).filter(|_| skipped.blocks > 0) else { return };
        let (first, last) = (*next, *next + skipped.blocks - 1);
        *next += skipped.blocks;
        let (boot, stream) = (self.options.boot, stream.to_owned());
        let source = Source { sender: self.options.name.clone(), boot, stream: stream.clone() };
        let Skipped { rows, from_ns, until_ns, .. } = skipped;
        let (rows, reason) = (Some(rows), Reason::QueueFull);
        let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
        self.spool.tell_gap(source, gap);
    }

    /// Says what is known of the devices, in every session from now on. It is no row: nobody is told
    /// when it is not delivered, and the next session begins with it.
    ///
    /// # Errors
    /// When the sender measures no cluster, or there are more devices than can be told.
    pub fn tell_devices(&mut self, devices: Vec<Device>) -> Result<(), FactsError> {
        if self.options.cluster.is_none() {
            return Err(FactsError::NoCluster);
        }
        let facts = Message::Facts(devices).encoded();
        let found = facts.len() - HEADER_LEN;
        if found > FACTS_BYTES_MAX {
            return Err(FactsError::TooLarge { found });
        }
        self.facts = Some(facts);
        if let Some(session) = &mut self.session {
            session.facts_sent = false;
        }
        Ok(())
    }

    /// Says that this life ends: once everything else is delivered the receiver knows that nothing
    /// is missing.
    pub fn finish(&mut self, now: Now) {
        self.is_finished = true;
        for (stream, next) in self.next.clone() {
            let boot = self.options.boot;
            let source = Source { sender: self.options.name.clone(), boot, stream: stream.clone() };
            let at = now.wall.as_nanos();
            let gap = Gap {
                boot,
                stream,
                first: next,
                last: u64::MAX,
                rows: Some(0),
                from_ns: at,
                until_ns: at,
                reason: Reason::Ended,
            };
            self.spool.tell_gap(source, gap);
        }
        self.spool.sync();
    }

    /// Whether the receiver has everything on its disk.
    pub fn is_delivered(&self) -> bool {
        self.spool.is_empty()
    }

    /// How the sender stands.
    pub fn status(&self) -> SenderStatus {
        SenderStatus {
            is_welcome: self.session.as_ref().is_some_and(|session| session.window.is_some()),
            is_finished: self.is_finished,
            spool: self.spool.counts(),
            acknowledged_blocks: self.acknowledged_blocks,
            sent_bytes: self.sent_bytes,
            sessions: self.sessions,
            clock: self.offset,
            pace: self.pace(),
        }
    }

    /// What interval is taken from whom of those who stand by is decided by blocks, which none may hold back.
    fn pace(&self) -> Option<Nanos> {
        match self.options.identity {
            Some(_) => Some(STANDBY_PACE),
            None => self.session.as_ref().and_then(|session| session.pace),
        }
    }

    /// The next thing that the receiver wants to be told.
    pub fn next_asked(&mut self) -> Option<Ask> {
        self.asked.pop_front()
    }

    /// Whether a connection should be tried now.
    pub fn wants_connection(&self, now: Now) -> bool {
        self.session.is_none() && now.monotonic >= self.connect_at
    }

    /// A connection is there.
    pub fn connected(&mut self, now: Now) {
        let [begun, last_heard, next_ping] = [now.monotonic; 3];
        self.session = Some(Session { begun, last_heard, next_ping, ..Session::default() });
        self.sessions += 1;
        // Nothing is carried over from the time without a connection.
        self.allowance = (0, now.monotonic);
        self.spool.reset_sent();
    }

    /// The connection is gone, or could not be had. `chance` is any random number: it spreads when
    /// senders come back.
    ///
    /// The wait begins anew only behind a session that was good for something: one in which a block
    /// was acknowledged, or that lasted for longer than the longest wait. A receiver that greets and
    /// then cannot write is not stormed.
    pub fn disconnected(&mut self, now: Now, chance: u64) {
        let (least, most) = RECONNECT_AFTER;
        let was_good = self.session.take().is_some_and(|session| {
            let lasted = now.monotonic.saturating_sub(session.begun);
            session.was_acknowledged || (session.window.is_some() && lasted > most)
        });
        self.failures = if was_good { 0 } else { self.failures.saturating_add(1) };
        let doublings = self.failures.saturating_sub(1).min(16);
        let wait = least.get().saturating_mul(1 << doublings).min(most.get());
        let wait = wait / 2 + chance % (wait / 2 + 1);
        self.connect_at = now.monotonic + Nanos::new(wait);
    }

    /// Takes what came over the connection.
    ///
    /// # Errors
    /// When the session is at its end: the shell closes the connection and says so by
    /// [`Sender::disconnected`].
    pub fn handle(&mut self, now: Now, octets: &[u8]) -> Result<(), SessionError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.last_heard = now.monotonic;
        session.decoder.push(octets);
        while let Some(session) = &mut self.session
            && let Some(message) = session.decoder.next_message()?
        {
            self.message(now, message)?;
        }
        Ok(())
    }

    fn message(&mut self, now: Now, message: Message) -> Result<(), SessionError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        match message {
            Message::Refusal(Refusal { code, text }) => {
                self.sends_whole |= code == Code::Damaged;
                return Err(SessionError::Refused { code, text });
            }
            Message::Welcome(welcome) if session.window.is_none() => {
                if welcome.version != version_of(&self.options) {
                    return Err(SessionError::Version { found: welcome.version });
                }
                session.window = Some(welcome.window_bytes.min(WINDOW_BYTES));
                self.acknowledge(&welcome.has);
            }
            Message::Ack(numbers) if session.window.is_some() => {
                session.was_acknowledged |= !numbers.is_empty();
                self.acknowledge(&numbers);
            }
            Message::Pong(pong) => {
                session.ping_under_way = false;
                if let Some(offset) = self.clock.answer(now.wall, &pong) {
                    self.offset = Some(offset);
                    session.answers.push(Message::Offset(offset));
                }
            }
            Message::Pace(Pace { every_ms }) => {
                session.pace = (every_ms > 0).then(|| Nanos::from_millis(every_ms.into()));
            }
            // Who asks for more than is looked at asks again.
            Message::Ask(ask) => {
                if self.asked.len() < ASKED_MAX {
                    self.asked.push_back(ask);
                }
            }
            Message::Welcome(_) => return Err(SessionError::Unexpected("a second welcome")),
            Message::Ack(_) => return Err(SessionError::Unexpected("an acknowledgement")),
            _ => return Err(SessionError::Unexpected("a sender's message")),
        }
        Ok(())
    }

    fn acknowledge(&mut self, numbers: &[Numbers]) {
        for Numbers { boot, stream, ranges } in numbers {
            let sender = self.options.name.clone();
            let source = Source { sender, boot: *boot, stream: stream.clone() };
            let (before, held) = (self.spool.counts().blocks, self.spool.holds(&source));
            self.spool.acknowledge(&source, ranges);
            let is_over = held && *boot != self.options.boot && !self.spool.holds(&source);
            if let Some(session) = self.session.as_mut().filter(|_| is_over) {
                let (boot, stream) = (source.boot, source.stream);
                session.answers.push(Message::Over(Over { boot, stream }));
            }
            self.acknowledged_blocks += before.saturating_sub(self.spool.counts().blocks);
        }
        let Some(session) = &mut self.session else { return };
        let spool = &self.spool;
        session.under_way.retain(|&ordinal, &mut (bytes, kind)| {
            // What was dropped meanwhile stays under way until the receiver has it: never, perhaps,
            // but then its octets are in its acknowledgement's place.
            let is_known = spool.numbers_of(ordinal).is_some();
            if !is_known {
                session.bytes_under_way -= bytes;
                match kind {
                    Kind::Live => {}
                    Kind::Late => session.late_under_way -= bytes,
                    Kind::Gap => session.gaps_under_way -= 1,
                }
            }
            is_known
        });
    }

    /// The next frame to be sent; `None` when there is none, or it may not be sent yet.
    pub fn poll_transmit(&mut self, now: Now) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        if !session.hello_sent {
            session.hello_sent = true;
            return Some(self.hello());
        }
        session.window?;
        // Beside a block it takes no octets of its own in a packet, and nobody wakes up for it.
        let early = if self.spool.has_unsent() { PING_EARLY } else { Nanos::ZERO };
        if now.monotonic + early >= session.next_ping {
            session.next_ping = now.monotonic + PING_EVERY;
            session.ping_under_way = true;
            return Some(Message::Ping(Ping { sent_ns: now.wall.as_nanos() }).encoded());
        }
        if let Some(answer) = session.answers.pop() {
            return Some(answer.encoded());
        }
        if !std::mem::replace(&mut session.facts_sent, true)
            && let Some(facts) = &self.facts
        {
            return Some(facts.clone());
        }
        while let Some((ordinal, kind)) = self.choose(now) {
            let bytes = self.spool.bytes_of(ordinal);
            match self.spool.send(ordinal) {
                Taken::Fresh(rows) => {
                    let octets = self.changes(&rows, kind).unwrap_or_else(|| block_frame(&rows));
                    self.note_sent(ordinal, (bytes, octets.len() as u64), kind);
                    return Some(octets);
                }
                Taken::Octets(octets) => {
                    let octets = self.shortened(octets, kind);
                    self.note_sent(ordinal, (bytes, octets.len() as u64), kind);
                    return Some(octets);
                }
                // A gap tells of it, or it is tried again later: the next one is looked for.
                Taken::Gone | Taken::Later => {}
            }
        }
        None
    }

    fn hello(&self) -> Vec<u8> {
        let holds = self.spool.holdings();
        let tells_all = holds.len() <= HOLDS_MAX;
        let holds = holds.into_iter().take(HOLDS_MAX);
        let holds = holds.map(|(source, span)| Numbers {
            boot: source.boot,
            stream: source.stream,
            ranges: vec![span],
        });
        let (holds, begun_ns) = (holds.collect(), self.begun.map(WallTime::as_nanos));
        Message::Hello(Hello { holds, tells_all, begun_ns, ..greeting(&self.options) }).encoded()
    }

    /// What goes next, if anything may.
    fn choose(&mut self, now: Now) -> Option<(u64, Kind)> {
        let session = self.session.as_ref()?;
        let since = now.monotonic.saturating_sub(LATE_AFTER);
        if let Some(live) = self.spool.next_live(since)
            && session.has_room(self.spool.bytes_of(live))
        {
            return Some((live, Kind::Live));
        }
        if session.gaps_under_way < GAPS_UNDER_WAY_MAX
            && let Some(gap) = self.spool.next_gap()
        {
            return Some((gap, Kind::Gap));
        }
        let late = self.spool.next_late(since)?;
        let bytes = self.spool.bytes_of(late);
        let may = session.has_room_for_late(bytes) && self.is_allowed(now, bytes);
        may.then_some((late, Kind::Late))
    }

    fn is_allowed(&mut self, now: Now, bytes: u64) -> bool {
        let Some(rate) = self.options.catch_up else { return true };
        let (saved, at) = self.allowance;
        let passed = now.monotonic.saturating_sub(at).get();
        let earned = u128::from(rate.get()) * u128::from(passed) / 1_000_000_000;
        if earned > 0 {
            // Saturates: all but a tenth of a second's worth is cut off below.
            let saved = saved.saturating_add(u64::try_from(earned).unwrap_or(u64::MAX));
            // A tenth of a second's worth is saved up, and one block in any case.
            let most = (rate.get() / 10).max(BLOCK_BYTES_MAX as u64);
            self.allowance = (saved.min(most), now.monotonic);
        }
        self.allowance.0 >= bytes
    }

    /// The frame of a block as it differs from those that went before, where the receiver understands
    /// that; other frames as they are.
    fn shortened(&mut self, octets: Vec<u8>, kind: Kind) -> Vec<u8> {
        if !self.tells_changes() {
            return octets;
        }
        let Some((Message::Block(rows), _)) = message_at(&octets) else { return octets };
        self.changes(&rows, kind).unwrap_or(octets)
    }

    /// Whether blocks may be told by what changed.
    fn tells_changes(&self) -> bool {
        version_of(&self.options) != VERSION_WITHOUT_CLUSTER && !self.sends_whole
    }

    /// The frame of a block as it differs from those that went before; `None` if it is to be sent whole.
    fn changes(&mut self, rows: &PackedRows, kind: Kind) -> Option<Vec<u8>> {
        if !self.tells_changes() {
            return None;
        }
        let session = self.session.as_mut()?;
        let mut tables = self.options.streams.iter().flat_map(|declared| &declared.tables);
        let table = tables.find(|table| table.name == rows.table())?;
        let is_late = kind == Kind::Late;
        let octets = session.changes[usize::from(is_late)].encode(rows, table)?;
        Some(Message::Changes { is_late, octets }.encoded())
    }

    /// Notes that a block is under way, which takes so many octets of the window and of the line.
    fn note_sent(&mut self, ordinal: u64, (bytes, on_line): (u64, u64), kind: Kind) {
        let Some(session) = &mut self.session else { return };
        session.under_way.insert(ordinal, (bytes, kind));
        session.bytes_under_way += bytes;
        self.sent_bytes += on_line;
        match kind {
            Kind::Live => {}
            Kind::Late => {
                session.late_under_way += bytes;
                self.allowance.0 = self.allowance.0.saturating_sub(on_line);
            }
            Kind::Gap => session.gaps_under_way += 1,
        }
    }

    /// Lets time pass: what was accepted is forced to the spool's disk now and then.
    ///
    /// # Errors
    /// When nothing came from the receiver for too long: the session is at its end.
    pub fn tick(&mut self, now: Now) -> Result<(), SessionError> {
        self.begun.get_or_insert(now.wall);
        if self.spool.waits_for_time() && now.monotonic >= self.sync_at {
            self.sync_at = now.monotonic + SYNC_EVERY;
            self.spool.sync();
            self.spool.read_again();
            self.spool.leave_earlier_lives();
        }
        let silent = self
            .session
            .as_ref()
            .is_some_and(|session| now.monotonic.saturating_sub(session.last_heard) >= SILENCE_MAX);
        if silent { Err(SessionError::Silent) } else { Ok(()) }
    }

    /// Whether nothing depends on reading what the receiver says before the shell wakes up for something else, within
    /// [`ANSWERS_WITHIN`]: acknowledgements of a few blocks then come with the next ones that are sent.
    pub fn can_hear_later(&self) -> bool {
        let Some(session) = &self.session else { return false };
        let is_little = session.window.is_some_and(|window| session.bytes_under_way < window / 4);
        is_little
            && !session.under_way.is_empty()
            && session.late_under_way == 0
            && !session.ping_under_way
            && !self.is_finished
            && !self.spool.has_unsent()
            && self.spool.has_room()
    }

    /// When the shell is to ask again at the latest, if nothing else happens.
    pub fn next_wakeup(&self, now: Now) -> Nanos {
        let by_session = self.session.as_ref().map(|session| self.next_of_session(now, session));
        let mut next = by_session.unwrap_or(self.connect_at);
        if self.spool.waits_for_time() {
            next = next.min(self.sync_at);
        }
        next.max(now.monotonic)
    }

    fn next_of_session(&self, now: Now, session: &Session) -> Nanos {
        let mut next = session.last_heard + SILENCE_MAX;
        if self.can_hear_later() {
            next = next.min(now.monotonic + ANSWERS_WITHIN);
        }
        if session.window.is_some() {
            next = next.min(session.next_ping);
            let since = now.monotonic.saturating_sub(LATE_AFTER);
            let late = self.spool.next_late(since).map(|late| self.spool.bytes_of(late));
            // What does not fit the window waits for an acknowledgement, not for time to pass.
            if let (Some(rate), Some(late)) = (self.options.catch_up, late)
                && session.has_room_for_late(late)
                && late > self.allowance.0
            {
                let lacking = late - self.allowance.0;
                let wait = u128::from(lacking) * 1_000_000_000 / u128::from(rate.get().max(1)) + 1;
                // Saturates: the least of all instants counts, and others are due before.
                let wait = Nanos::new(u64::try_from(wait).unwrap_or(u64::MAX));
                next = next.min(self.allowance.1 + wait);
            }
        }
        next
    }
}

impl Session {
    /// Whether so many octets fit what may be under way; one block always may.
    fn has_room(&self, bytes: u64) -> bool {
        let taken = self.bytes_under_way;
        self.window.is_some_and(|window| taken == 0 || taken + bytes <= window)
    }

    /// The same for what is caught up with, which has half of the window.
    fn has_room_for_late(&self, bytes: u64) -> bool {
        let taken = self.late_under_way;
        let fits = self.window.is_some_and(|window| taken == 0 || taken + bytes <= window / 2);
        fits && self.has_room(bytes)
    }
}

/// What a sender says of itself whatever it holds.
fn greeting(options: &SenderOptions) -> Hello {
    let SenderOptions { name, cluster, identity, boot, streams, .. } = options;
    let (sender, cluster, identity) = (name.clone(), cluster.clone(), identity.clone());
    let (version, boot, streams, holds) = (version_of(options), *boot, streams.clone(), Vec::new());
    let (tells_all, hears, begun_ns) = (true, true, None);
    Hello { version, sender, cluster, identity, boot, streams, holds, tells_all, hears, begun_ns }
}

/// The version that a sender speaks.
fn version_of(options: &SenderOptions) -> u16 {
    match options {
        SenderOptions { cluster: None, .. } => VERSION_WITHOUT_CLUSTER,
        SenderOptions { identity: None, .. } => VERSION_WITHOUT_STANDBY,
        _ => VERSION,
    }
}
