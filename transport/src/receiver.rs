//! The receiver's side of the transport, without IO.
//!
//! One [`Receiver`] serves all sessions. The shell says when one begins, with what its token allows
//! ([`Permit`]), hands over what came, and does what it is asked for ([`Receiver::poll_output`]): open
//! a stream, store a block, send octets, close a session. It says back which blocks are stored on the
//! disk ([`Receiver::synced`]) and which could not be stored ([`Receiver::lost`]).
//!
//! A number that is accounted for is never stored again, and no number is acknowledged before it is
//! on the disk. The numbers themselves are kept by the recording
//! ([`meikyo_recording::origin`]), in the blocks that are stored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use meikyo_recording::{Origin, PackedRows, Received, Source, TableSchema, layout};
use meikyo_units::{Nanos, glob};

use crate::gaps;
use crate::limits::{
    CONTROL_BYTES_MAX, HOLDS_MAX, RANGES_MAX, SILENCE_MAX, STREAMS_MAX, WINDOW_BYTES,
};
use crate::sender::Now;
use crate::wire::{
    Code, Declared, Decoder, Gap, Hello, Message, Numbers, Over, Pong, Reason, Refusal, VERSION,
    Welcome,
};

/// The longest name of a sender, in octets.
const SENDER_BYTES_MAX: usize = 128;

/// A session, by the number that the shell gave it.
pub type SessionId = u64;

/// A block that was handed to the shell to be stored.
pub type Ticket = u64;

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// Patterns of names of senders, of which one must fit.
    pub senders: Vec<String>,
}

impl Permit {
    /// Whoever it is.
    pub fn anybody() -> Self {
        Self { senders: vec!["*".into()] }
    }

    fn allows(&self, sender: &str) -> bool {
        self.senders.iter().any(|pattern| glob::matches(pattern, sender))
    }
}

/// What the shell is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Open a stream with these tables, anew if it is open; say so by [`Receiver::opened`].
    Open {
        /// Its name, which is that of its directory in the log.
        stream: String,
        /// Every table that a sender declared for it.
        tables: Vec<TableSchema>,
        /// The last block that was handed over before; later ones go to the stream as it is then.
        after: Ticket,
    },
    /// Store a block.
    Store {
        /// What it is called by when it is stored or lost.
        ticket: Ticket,
        /// The stream that it belongs to.
        stream: String,
        /// The block.
        rows: PackedRows,
    },
    /// Send octets.
    Send {
        /// To whom.
        session: SessionId,
        /// The session that they are for.
        octets: Vec<u8>,
    },
    /// Close a session, once what is to be sent was sent.
    Close {
        /// The session that ends.
        session: SessionId,
        /// What its sender is told.
        code: Code,
    },
}

/// What a receiver did, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverCounts {
    /// Sessions that greeted.
    pub sessions: u64,
    /// Sessions that were ended by the receiver.
    pub refused: u64,
    /// Blocks that were handed over to be stored.
    pub blocks: u64,
    /// Rows in them.
    pub rows: u64,
    /// Octets of them.
    pub bytes: u64,
    /// Blocks that came again.
    pub repeated: u64,
    /// Gaps that were told.
    pub gaps: u64,
    /// Rows that were told to be missing.
    pub missing_rows: u64,
}

#[derive(Debug)]
struct Session {
    permit: Permit,
    decoder: Decoder,
    last_heard: Nanos,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nobody has said who it is.
    New,
    /// It is known, and streams are being opened for it.
    Greeted(Hello),
    /// Blocks come.
    Open(Party),
    /// What comes is not listened to any more.
    Closed,
}

/// Who has an open session.
#[derive(Debug)]
struct Party {
    sender: String,
    streams: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Store {
    tables: Vec<TableSchema>,
    is_open: bool,
    /// What is on the disk.
    durable: Received,
    /// That, and what was handed over to be stored.
    held: Received,
    /// What was handed over and is not on the disk yet, with its octets.
    pending: BTreeMap<Ticket, (Origin, u64)>,
}

/// The receiver's side.
#[derive(Debug, Default)]
pub struct Receiver {
    sessions: BTreeMap<SessionId, Session>,
    /// The open session of each sender.
    senders: BTreeMap<String, SessionId>,
    stores: BTreeMap<String, Store>,
    /// Octets of each sender that are not on the disk.
    unsynced: BTreeMap<String, u64>,
    next_ticket: Ticket,
    outputs: VecDeque<Output>,
    counts: ReceiverCounts,
}

impl Receiver {
    /// A receiver that serves nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it did.
    pub fn counts(&self) -> ReceiverCounts {
        self.counts
    }

    /// Senders that have a session.
    pub fn senders(&self) -> impl Iterator<Item = &str> {
        self.senders.keys().map(String::as_str)
    }

    /// A session begins.
    pub fn connected(&mut self, now: Now, id: SessionId, permit: Permit) {
        let (decoder, last_heard, state) = (Decoder::new(), now.monotonic, State::New);
        self.sessions.insert(id, Session { permit, decoder, last_heard, state });
    }

    /// A session is gone.
    pub fn disconnected(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        self.senders.retain(|_, session| *session != id);
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes what came in a session.
    pub fn handle(&mut self, now: Now, id: SessionId, octets: &[u8]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.last_heard = now.monotonic;
        if matches!(session.state, State::Closed) {
            return;
        }
        session.decoder.push(octets);
        let waits = matches!(session.state, State::Greeted(_));
        if waits && session.decoder.buffered() > CONTROL_BYTES_MAX {
            let text = "a sender waits for its welcome before it sends more".to_owned();
            return self.refuse(id, Refusal { code: Code::TooLarge, text });
        }
        self.listen(now, id);
    }

    fn listen(&mut self, now: Now, id: SessionId) {
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return };
            // Who is being greeted is listened to when that is done.
            if matches!(session.state, State::Closed | State::Greeted(_)) {
                return;
            }
            match session.decoder.next_message() {
                Ok(None) => return,
                Ok(Some(message)) => {
                    if let Err(refusal) = self.message(now, id, message) {
                        self.refuse(id, refusal);
                    }
                }
                Err(error) => {
                    let refusal = Refusal { code: error.code(), text: error.to_string() };
                    self.refuse(id, refusal);
                }
            }
        }
    }

    fn sessions_where(&self, wanted: impl Fn(&Session) -> bool) -> Vec<SessionId> {
        let wanted = self.sessions.iter().filter(|(_, session)| wanted(session));
        wanted.map(|(&id, _)| id).collect()
    }

    fn refuse(&mut self, id: SessionId, refusal: Refusal) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.state = State::Closed;
        self.senders.retain(|_, session| *session != id);
        self.counts.refused += 1;
        let code = refusal.code;
        let octets = Message::Refusal(refusal).encoded();
        self.outputs.push_back(Output::Send { session: id, octets });
        self.outputs.push_back(Output::Close { session: id, code });
    }

    fn message(&mut self, now: Now, id: SessionId, message: Message) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        match (&session.state, message) {
            (State::New, Message::Hello(hello)) => self.hello(now, id, hello),
            (State::Open(_), Message::Block(rows)) => self.block(id, rows),
            (State::Open(_), Message::Gap(gap)) => self.gap(id, &gap),
            (State::Open(_), Message::Over(over)) => {
                self.end_life(now, id, &over);
                Ok(())
            }
            (State::Open(_), Message::Ping(ping)) => {
                let at = now.wall.as_nanos();
                let pong = Pong { sent_ns: ping.sent_ns, received_ns: at, answered_ns: at };
                let octets = Message::Pong(pong).encoded();
                self.outputs.push_back(Output::Send { session: id, octets });
                Ok(())
            }
            (State::Open(party), Message::Offset(offset)) => {
                let sender = party.sender.clone();
                let Some(stream) = party.streams.first().cloned() else { return Ok(()) };
                let rows = gaps::clock_block(&sender, now.wall, offset);
                let rows = rows.map_err(|error| damaged(&error.to_string()))?;
                let ticket = self.ticket();
                self.outputs.push_back(Output::Store { ticket, stream, rows });
                Ok(())
            }
            _ => Err(damaged("a message came where it does not belong")),
        }
    }

    /// The last block that was handed over to be stored.
    pub fn last_ticket(&self) -> Ticket {
        self.next_ticket
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket
    }

    fn hello(&mut self, now: Now, id: SessionId, hello: Hello) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        check_hello(&session.permit, &hello)?;
        // An earlier session of the same sender is a connection that nobody has missed yet.
        if let Some(before) = self.senders.get(&hello.sender).copied() {
            let text = format!("`{}` has begun another session", hello.sender);
            self.refuse(before, Refusal { code: Code::Displaced, text });
        }
        for declared in &hello.streams {
            self.declare(declared)?;
        }
        self.counts.sessions += 1;
        self.senders.insert(hello.sender.clone(), id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.state = State::Greeted(hello);
        }
        self.welcome_whom_it_may(now);
        Ok(())
    }

    /// Has a stream opened with all tables that its senders declared.
    fn declare(&mut self, declared: &Declared) -> Result<(), Refusal> {
        let store = self.stores.entry(declared.stream.clone()).or_default();
        let mut tables = store.tables.clone();
        if tables.is_empty() {
            tables = gaps::tables();
        }
        for table in &declared.tables {
            join(&mut tables, table)?;
        }
        if tables != store.tables {
            store.tables.clone_from(&tables);
            store.is_open = false;
            let (stream, after) = (declared.stream.clone(), self.next_ticket);
            self.outputs.push_back(Output::Open { stream, tables, after });
        }
        Ok(())
    }

    /// A stream was opened as it was asked for: what it has on the disk. What was handed over before
    /// that and is not among it is lost.
    pub fn opened(
        &mut self,
        now: Now,
        (stream, tables): (&str, &[TableSchema]),
        after: Ticket,
        received: &Received,
    ) {
        let Some(store) = self.stores.get_mut(stream) else { return };
        let later = store.pending.split_off(&(after + 1));
        let earlier = std::mem::replace(&mut store.pending, later);
        store.durable = received.clone();
        store.held = received.clone();
        store.pending.values().for_each(|(origin, _)| store.held.add(origin));
        let mut acknowledged = Vec::new();
        let mut lost = BTreeSet::new();
        for (_, (origin, bytes)) in earlier {
            release(&mut self.unsynced, &origin.source.sender, bytes);
            let ranges = received.of(&origin.source);
            match ranges.map(|ranges| ranges.missing(origin.first, origin.last)) {
                Some(0) => acknowledged.push(origin),
                _ => drop(lost.insert(origin.source.sender)),
            }
        }
        // Another table may have been declared while it was opened.
        store.is_open = store.tables == tables;
        self.acknowledge(acknowledged);
        for sender in lost {
            self.end_session_of(&sender, "the receiver lost what it had not synced; send it again");
        }
        self.welcome_whom_it_may(now);
    }

    /// A stream cannot be opened.
    pub fn not_opened(&mut self, stream: &str, why: &str) {
        self.stores.remove(stream);
        let wants = |hello: &Hello| hello.streams.iter().any(|of| of.stream == stream);
        let of_stream = |session: &Session| match &session.state {
            State::Greeted(hello) => wants(hello),
            State::Open(party) => party.streams.contains(stream),
            State::New | State::Closed => false,
        };
        let ids = self.sessions_where(of_stream);
        for id in ids {
            let text = format!("the receiver cannot write stream `{stream}`: {why}");
            self.refuse(id, Refusal { code: Code::Unable, text });
        }
    }

    /// Greets those whose streams are open by now.
    fn welcome_whom_it_may(&mut self, now: Now) {
        let is_ready = |session: &Session| match &session.state {
            State::Greeted(hello) => hello
                .streams
                .iter()
                .all(|of| self.stores.get(&of.stream).is_some_and(|store| store.is_open)),
            _ => false,
        };
        let ready = self.sessions_where(is_ready);
        for id in ready {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let State::Greeted(hello) = std::mem::replace(&mut session.state, State::New) else {
                continue;
            };
            let streams = hello.streams.iter().map(|of| of.stream.clone()).collect();
            session.state = State::Open(Party { sender: hello.sender.clone(), streams });
            let has = hello.holds.iter().map(|held| self.has(&hello.sender, held)).collect();
            let welcome = Welcome { version: VERSION, window_bytes: WINDOW_BYTES, has };
            let octets = Message::Welcome(welcome).encoded();
            self.outputs.push_back(Output::Send { session: id, octets });
            self.end_earlier_lives(now, &hello);
            // What it sent in the meantime.
            self.listen(now, id);
        }
    }

    /// What is on the disk of what a sender holds.
    fn has(&self, sender: &str, held: &Numbers) -> Numbers {
        let Numbers { boot, stream, ranges } = held;
        let source = Source { sender: sender.into(), boot: *boot, stream: stream.clone() };
        let durable = self.stores.get(stream).and_then(|store| store.durable.of(&source));
        let spans = ranges.iter().filter(|(first, last)| first <= last);
        let within = durable.into_iter().flat_map(|durable| {
            spans.clone().flat_map(|&(first, last)| durable.within(first, last))
        });
        let ranges = within.take(RANGES_MAX).collect();
        Numbers { boot: *boot, stream: stream.clone(), ranges }
    }

    /// Lives of a sender of which it holds nothing any more are over: numbers that are not accounted
    /// for will not come, and what was made behind the last one, nobody knows.
    fn end_earlier_lives(&mut self, now: Now, hello: &Hello) {
        let mut over = Vec::new();
        if !hello.tells_all {
            return;
        }
        for declared in &hello.streams {
            let Some(store) = self.stores.get(&declared.stream) else { continue };
            for (source, ranges) in store.held.iter() {
                let is_over = source.sender == hello.sender
                    && source.boot != hello.boot
                    && source.stream == declared.stream
                    && hello
                        .holds
                        .iter()
                        .all(|held| held.boot != source.boot || held.stream != source.stream);
                if is_over {
                    let holes = ranges.holes(1, u64::MAX);
                    over.extend(holes.map(|(first, last)| (source.clone(), first, last)));
                }
            }
        }
        for (source, first, last) in over {
            self.tell_hole(now, source, (first, last));
        }
    }

    /// Tells that numbers will not come which nobody else knows anything of.
    fn tell_hole(&mut self, now: Now, source: Source, (first, last): (u64, u64)) {
        let at = now.wall.as_nanos();
        let Source { sender, boot, stream } = source;
        let (rows, from_ns, until_ns, reason) = (None, at, at, Reason::Restarted);
        let gap = Gap { boot, stream, first, last, rows, from_ns, until_ns, reason };
        self.take_gap(&sender, &gap);
    }

    /// Everything of an earlier life was delivered: what is not there will not come.
    fn end_life(&mut self, now: Now, id: SessionId, over: &Over) {
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return;
        };
        let Over { boot, stream } = over.clone();
        let source = Source { sender: party.sender.clone(), boot, stream };
        let store = self.stores.get(&source.stream);
        let store = store.filter(|_| party.streams.contains(&source.stream));
        let holes = store.and_then(|store| store.held.of(&source));
        let holes: Vec<_> =
            holes.map(|ranges| ranges.holes(1, u64::MAX).collect()).unwrap_or_default();
        for hole in holes {
            self.tell_hole(now, source.clone(), hole);
        }
    }

    fn block(&mut self, id: SessionId, rows: PackedRows) -> Result<(), Refusal> {
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return Ok(());
        };
        let origin = rows.origin().cloned().ok_or_else(|| damaged("a block has no origin"))?;
        let Origin { source, first, last } = &origin;
        if source.sender != party.sender {
            let text = format!("`{}` sent a block of `{}`", party.sender, source.sender);
            return Err(Refusal { code: Code::Forbidden, text });
        }
        let store = self.stores.get_mut(&source.stream);
        let store = store.filter(|_| party.streams.contains(&source.stream));
        let Some(store) = store.filter(|store| store.has_table(rows.table())) else {
            let text = format!("stream `{}` has no table `{}`", source.stream, rows.table());
            return Err(damaged(&text));
        };
        if first != last || *first == u64::MAX || *first == 0 {
            return Err(damaged("a block has the number of a gap"));
        }
        if store.held.of(source).is_some_and(|ranges| ranges.holds(*first)) {
            self.counts.repeated += 1;
            self.acknowledge_if_synced(origin);
            return Ok(());
        }
        self.store(&source.stream.clone(), rows, origin)
    }

    fn store(&mut self, stream: &str, rows: PackedRows, origin: Origin) -> Result<(), Refusal> {
        let bytes = rows.payload().len() as u64;
        let sender = origin.source.sender.clone();
        let unsynced = self.unsynced.entry(sender).or_default();
        if *unsynced + bytes > 2 * WINDOW_BYTES {
            let text = format!(
                "more than {} octets were sent without an acknowledgement",
                2 * WINDOW_BYTES
            );
            return Err(Refusal { code: Code::TooLarge, text });
        }
        *unsynced += bytes;
        self.counts.blocks += 1;
        self.counts.rows += rows.rows() as u64;
        self.counts.bytes += bytes;
        let ticket = self.ticket();
        if let Some(store) = self.stores.get_mut(stream) {
            store.held.add(&origin);
            store.pending.insert(ticket, (origin, bytes));
        }
        self.outputs.push_back(Output::Store { ticket, stream: stream.to_owned(), rows });
        Ok(())
    }

    fn gap(&mut self, id: SessionId, gap: &Gap) -> Result<(), Refusal> {
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return Ok(());
        };
        if gap.first > gap.last || gap.first == 0 || !party.streams.contains(&gap.stream) {
            return Err(damaged("a gap is not one"));
        }
        let sender = party.sender.clone();
        self.take_gap(&sender, gap);
        Ok(())
    }

    fn take_gap(&mut self, sender: &str, gap: &Gap) {
        let source = Source { sender: sender.into(), boot: gap.boot, stream: gap.stream.clone() };
        let Some(store) = self.stores.get(&gap.stream) else { return };
        let held = store.held.of(&source);
        let missing = held.map_or_else(
            || (gap.last - gap.first).saturating_add(1),
            |ranges| ranges.missing(gap.first, gap.last),
        );
        let origin = Origin { source, first: gap.first, last: gap.last };
        if missing == 0 {
            self.acknowledge_if_synced(origin);
            return;
        }
        self.counts.gaps += 1;
        self.counts.missing_rows += gap.rows.unwrap_or(0);
        // Names were bounded when the session was greeted.
        let Ok(rows) = gaps::gap_block(sender, gap, missing) else { return };
        let stream = gap.stream.clone();
        // A gap is small; the window is for blocks.
        drop(self.store(&stream, rows, origin));
    }

    /// Every block up to a ticket is on the disk.
    pub fn synced(&mut self, stream: &str, ticket: Ticket) {
        let Some(store) = self.stores.get_mut(stream) else { return };
        let left = store.pending.split_off(&(ticket + 1));
        let done = std::mem::replace(&mut store.pending, left);
        let mut origins = Vec::new();
        for (origin, bytes) in done.into_values() {
            store.durable.add(&origin);
            release(&mut self.unsynced, &origin.source.sender, bytes);
            origins.push(origin);
        }
        self.acknowledge(origins);
    }

    /// A block could not be stored: its session is ended, so that it comes again.
    pub fn lost(&mut self, stream: &str, ticket: Ticket) {
        let Some(store) = self.stores.get_mut(stream) else { return };
        let Some((origin, bytes)) = store.pending.remove(&ticket) else { return };
        store.forget(&origin);
        release(&mut self.unsynced, &origin.source.sender, bytes);
        let text = "the receiver could not write a block: see its disk";
        self.end_session_of(&origin.source.sender, text);
    }

    fn end_session_of(&mut self, sender: &str, text: &str) {
        if let Some(&id) = self.senders.get(sender) {
            self.refuse(id, Refusal { code: Code::Unable, text: text.into() });
        }
    }

    /// Acknowledges a number that came again, unless it is not on the disk yet: then it is
    /// acknowledged when it is.
    fn acknowledge_if_synced(&mut self, origin: Origin) {
        let Some(store) = self.stores.get(&origin.source.stream) else { return };
        let durable = store.durable.of(&origin.source);
        if durable.is_some_and(|durable| durable.missing(origin.first, origin.last) == 0) {
            self.acknowledge(vec![origin]);
        }
    }

    fn acknowledge(&mut self, origins: Vec<Origin>) {
        let mut by_session: BTreeMap<SessionId, Received> = BTreeMap::new();
        for origin in origins {
            let Some(&id) = self.senders.get(&origin.source.sender) else { continue };
            // Who is not greeted yet learns it by the welcome.
            let is_open = |session: &Session| matches!(session.state, State::Open(_));
            if self.sessions.get(&id).is_some_and(is_open) {
                by_session.entry(id).or_default().add(&origin);
            }
        }
        for (session, received) in by_session {
            let numbers = received.iter().map(|(source, ranges)| Numbers {
                boot: source.boot,
                stream: source.stream.clone(),
                ranges: ranges.iter().collect(),
            });
            let octets = Message::Ack(numbers.collect()).encoded();
            self.outputs.push_back(Output::Send { session, octets });
        }
    }

    /// Lets time pass: sessions in which nothing came for too long are ended.
    pub fn tick(&mut self, now: Now) {
        let is_silent = |session: &Session| {
            let waited = now.monotonic.saturating_sub(session.last_heard);
            waited >= SILENCE_MAX && !matches!(session.state, State::Closed)
        };
        let silent = self.sessions_where(is_silent);
        for id in silent {
            let text = format!("nothing came for {SILENCE_MAX}");
            self.refuse(id, Refusal { code: Code::Silent, text });
        }
    }

    /// Ends all sessions, since the receiver ends.
    pub fn end(&mut self) {
        let ids: Vec<_> = self.sessions.keys().copied().collect();
        for id in ids {
            let text = "the receiver ends; come again".to_owned();
            self.refuse(id, Refusal { code: Code::Ending, text });
        }
    }
}

impl Store {
    fn has_table(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name == name)
    }

    /// Takes back that a block is stored; numbers of it that another one accounts for stay.
    fn forget(&mut self, lost: &Origin) {
        let Origin { source, first, last } = lost;
        let held = self.held.of_mut(source);
        held.remove(*first, *last);
        if let Some(durable) = self.durable.of(source) {
            durable.within(*first, *last).for_each(|(first, last)| held.add(first, last));
        }
        let others = self.pending.values().map(|(origin, _)| origin);
        for other in others.filter(|origin| origin.source == *source) {
            held.add(other.first, other.last);
        }
    }
}

fn release(unsynced: &mut BTreeMap<String, u64>, sender: &str, bytes: u64) {
    if let Some(of_sender) = unsynced.get_mut(sender) {
        *of_sender = of_sender.saturating_sub(bytes);
    }
}

fn damaged(text: &str) -> Refusal {
    Refusal { code: Code::Damaged, text: text.into() }
}

fn check_hello(permit: &Permit, hello: &Hello) -> Result<(), Refusal> {
    let Hello { version, sender, streams, holds, .. } = hello;
    if *version > VERSION {
        let text = format!(
            "the sender speaks version {version}, and this receiver understands versions up to \
             {VERSION}: update the receiver first"
        );
        return Err(Refusal { code: Code::Version, text });
    }
    let is_named = !sender.is_empty()
        && sender.len() <= SENDER_BYTES_MAX
        && sender.chars().all(|c| c.is_alphanumeric() || "-_.:@".contains(c));
    if !is_named {
        let text = format!(
            "a sender's name has 1 to {SENDER_BYTES_MAX} octets: letters, digits and `-_.:@`"
        );
        return Err(damaged(&text));
    }
    if !permit.allows(sender) {
        let allowed = permit.senders.join(", ");
        let text = format!("the token is for {allowed}, not for `{sender}`");
        return Err(Refusal { code: Code::Forbidden, text });
    }
    if streams.is_empty() || streams.len() > STREAMS_MAX || holds.len() > HOLDS_MAX {
        let text = format!("a sender declares 1 to {STREAMS_MAX} streams");
        return Err(Refusal { code: Code::TooLarge, text });
    }
    let own: Vec<_> = gaps::tables().into_iter().map(|table| table.name).collect();
    for Declared { stream, tables } in streams {
        let names = tables.iter().map(|table| &table.name).chain([stream]);
        if let Some(wrong) = names
            .into_iter()
            .find(|name| !layout::is_name(name) || *name == layout::LOG || own.contains(name))
        {
            return Err(damaged(&format!("`{wrong}` cannot name a stream or a table")));
        }
    }
    Ok(())
}

/// Adds a table to those of a stream: columns that it did not have, and whole tables.
fn join(tables: &mut Vec<TableSchema>, new: &TableSchema) -> Result<(), Refusal> {
    let Some(known) = tables.iter_mut().find(|table| table.name == new.name) else {
        tables.push(new.clone());
        return Ok(());
    };
    for column in &new.columns {
        match known.columns.iter().find(|own| own.name == column.name) {
            None => known.columns.push(column.clone()),
            Some(own) if own.kind == column.kind => {}
            Some(_) => {
                let text = format!(
                    "column `{}` of table `{}` is of another kind than that of other senders",
                    column.name, new.name
                );
                return Err(damaged(&text));
            }
        }
    }
    Ok(())
}
