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

mod contested;
mod greeting;
mod known;
mod lives;
mod output;
mod permit;
mod place;
mod standby;
mod store;
mod wishes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use meikyo_recording::origin::Ranges;
use meikyo_recording::{DeltaDecoder, Origin, PackedRows, Received, Source, TableSchema};
use meikyo_units::Nanos;

use crate::gaps::{self, Turn};
use crate::limits::{
    CLUSTERS_MAX, CONTROL_BYTES_MAX, RANGES_MAX, SILENCE_MAX, STREAMS_OF_RECORDING_MAX,
    WINDOW_BYTES,
};
use crate::now::Now;
use crate::wire::{
    Code, Declared, Decoder, Gap, Hello, Message, Numbers, Offset, Pong, Refusal, Welcome,
};
pub use contested::OnDisk;
use contested::{Groups, TurnsUnderWay};
pub(crate) use greeting::check_greeting;
use known::Known;
pub use known::SenderState;
pub use output::{Output, SessionId, Ticket};
pub use permit::Permit;
use permit::check_hosts;
pub use place::Place;
use standby::KnownTimes;
use store::{Store, accounted, in_parts};

/// A receiver whose shell has not let time pass for so long was kept from listening: what senders
/// said meanwhile waits to be read.
const STALLED_AFTER: Nanos = Nanos::SECOND;

/// Why a session ends when a block of it, or one that makes others of it spare, could not be stored.
const NOT_WRITTEN: &str = "the receiver could not write a block: see its disk";

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
    /// What was told of blocks that came live, and of those that were caught up with.
    changes: [DeltaDecoder; 2],
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
    cluster: Option<String>,
    /// What it is called together with those that stand by for it.
    identity: Option<String>,
    boot: u64,
    /// When that life began, by its own clock.
    begun_ns: Option<i64>,
    /// What it declared, by stream: nothing else is taken of it.
    tables: BTreeMap<String, Vec<TableSchema>>,
    /// How often it was told that blocks are wanted, ms; `None` where it does not understand that.
    pace_ms: Option<u32>,
}

impl Party {
    fn place(&self, stream: &str) -> Place {
        Place::new(self.cluster.as_deref(), stream)
    }
}

impl Session {
    /// Which of its lives the sender is in; `None` before it has greeted, and when it is gone.
    fn boot(&self) -> Option<u64> {
        match &self.state {
            State::Greeted(hello) => Some(hello.boot),
            State::Open(party) => Some(party.boot),
            State::New | State::Closed => None,
        }
    }
}

/// The receiver's side.
#[derive(Debug, Default)]
pub struct Receiver {
    sessions: BTreeMap<SessionId, Session>,
    /// The open session of each sender.
    senders: BTreeMap<String, SessionId>,
    known: Known,
    stores: BTreeMap<Place, Store>,
    /// Octets of each sender that are not on the disk.
    unsynced: BTreeMap<String, u64>,
    next_ticket: Ticket,
    outputs: VecDeque<Output>,
    counts: ReceiverCounts,
    last_tick: Option<Nanos>,
    /// The newest instant that the shell told.
    now: Nanos,
    groups: Groups,
    turns_under_way: TurnsUnderWay,
    turns_lost: Vec<(Place, Turn)>,
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

    /// How the senders stand that were heard since the receiver began.
    pub fn known(&self) -> impl Iterator<Item = &SenderState> {
        self.known.all()
    }

    /// A session begins.
    pub fn connected(&mut self, now: Now, id: SessionId, permit: Permit) {
        self.now = now.monotonic;
        let (decoder, last_heard, state) = (Decoder::of_stranger(), now.monotonic, State::New);
        let changes = Default::default();
        self.sessions.insert(id, Session { permit, decoder, changes, last_heard, state });
    }

    /// A session is gone.
    pub fn disconnected(&mut self, id: SessionId) {
        self.part(id);
        self.sessions.remove(&id);
    }

    /// A sender has no session any more.
    fn part(&mut self, id: SessionId) {
        if let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id)
            && self.senders.get(&party.sender) == Some(&id)
        {
            self.known.gone(party.cluster.as_ref(), &party.sender);
            if party.identity.is_some() {
                let sender = party.sender.clone();
                self.left(&sender);
            }
        }
        self.senders.retain(|_, session| *session != id);
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes what came in a session.
    pub fn handle(&mut self, now: Now, id: SessionId, octets: &[u8]) {
        self.now = now.monotonic;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match session.state {
            State::Closed => return,
            // Who has not greeted has so long for it as others may be silent.
            State::New => {}
            State::Greeted(_) => session.last_heard = now.monotonic,
            State::Open(ref party) => {
                session.last_heard = now.monotonic;
                self.known.heard(party.cluster.as_ref(), &party.sender, now.wall);
            }
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
        self.part(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.state = State::Closed;
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
            (State::Open(_), Message::Block(rows)) => self.block(now, id, rows),
            (State::Open(_), Message::Changes { is_late, octets }) => {
                let told = session.changes[usize::from(is_late)].decode(&octets);
                self.block(now, id, told.map_err(|error| damaged(&error.to_string()))?)
            }
            (State::Open(_), Message::Gap(gap)) => self.gap(now, id, &gap),
            (State::Open(_), Message::Over(over)) => self.end_life(now, id, &over),
            (State::Open(_), Message::Ping(ping)) => {
                let at = now.wall.as_nanos();
                let pong = Pong { sent_ns: ping.sent_ns, received_ns: at, answered_ns: at };
                let octets = Message::Pong(pong).encoded();
                self.outputs.push_back(Output::Send { session: id, octets });
                Ok(())
            }
            (State::Open(_), Message::Offset(offset)) => self.clock(now, id, offset),
            (State::Open(Party { cluster: Some(cluster), .. }), Message::Facts(devices)) => {
                let cluster = cluster.clone();
                self.outputs.push_back(Output::Facts { cluster, devices });
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
        greeting::check(&session.permit, &hello)?;
        if let Some(before) = self.senders.get(&hello.sender).copied() {
            let other = self.sessions.get(&before).filter(|other| {
                let silent = now.monotonic.saturating_sub(other.last_heard);
                other.boot() != Some(hello.boot) && silent < SILENCE_MAX
            });
            if other.is_some() {
                let text = format!(
                    "two senders are called `{}`: the other one was heard less than {SILENCE_MAX} \
                     ago. Give each a name of its own; a sender whose machine went down is taken \
                     again by then",
                    hello.sender
                );
                return Err(Refusal { code: Code::Duplicate, text });
            }
            // A connection of the same sender that nobody has missed yet.
            let text = format!("`{}` has begun another session", hello.sender);
            self.refuse(before, Refusal { code: Code::Displaced, text });
        }
        self.declare_all(&hello)?;
        self.counts.sessions += 1;
        self.senders.insert(hello.sender.clone(), id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.last_heard = now.monotonic;
            session.state = State::Greeted(hello);
        }
        self.welcome_whom_it_may(now);
        Ok(())
    }

    /// Has streams opened with all tables that their senders declared; none when one cannot be.
    fn declare_all(&mut self, hello: &Hello) -> Result<(), Refusal> {
        let mut joined: BTreeMap<Place, Vec<TableSchema>> = BTreeMap::new();
        for (place, Declared { tables, .. }) in Place::all_of(hello).zip(&hello.streams) {
            let known = match self.stores.get(&place) {
                Some(store) if !store.tables.is_empty() => store.tables.clone(),
                _ => gaps::tables(),
            };
            greeting::join(joined.entry(place).or_insert(known), tables)?;
        }
        let new = joined.keys().filter(|place| !self.stores.contains_key(place)).count();
        let is_beside = |place: &&Place| place.cluster == hello.cluster;
        if self.stores.keys().filter(is_beside).count() + new > STREAMS_OF_RECORDING_MAX {
            let text = format!(
                "a recording has at most {STREAMS_OF_RECORDING_MAX} streams of senders; name them as \
                 other senders do"
            );
            return Err(Refusal { code: Code::TooLarge, text });
        }
        self.check_clusters(hello)?;
        for (place, tables) in joined {
            let store = self.stores.entry(place.clone()).or_default();
            if tables != store.tables {
                store.tables.clone_from(&tables);
                store.is_open = false;
                let after = self.next_ticket;
                self.outputs.push_back(Output::Open { place, tables, after });
            }
        }
        Ok(())
    }

    /// A receiver has room for so many clusters.
    fn check_clusters(&self, hello: &Hello) -> Result<(), Refusal> {
        let known: BTreeSet<_> = self.stores.keys().filter_map(|at| at.cluster.as_ref()).collect();
        match &hello.cluster {
            Some(new) if !known.contains(new) && known.len() >= CLUSTERS_MAX => {
                let text = format!(
                    "this receiver has the recordings of {CLUSTERS_MAX} clusters open, and no room \
                     for `{new}`"
                );
                Err(Refusal { code: Code::TooLarge, text })
            }
            _ => Ok(()),
        }
    }

    /// A stream was opened as it was asked for: what it has on the disk. What was handed over before
    /// that and is not among it is lost.
    pub fn opened(
        &mut self,
        now: Now,
        (place, tables): (&Place, &[TableSchema]),
        after: Ticket,
        on_disk: &OnDisk,
    ) {
        let OnDisk { received, turns, newest_ns, .. } = on_disk;
        let Some(store) = self.stores.get_mut(place) else { return };
        store.turns.clone_from(turns);
        store.newest_ns = *newest_ns;
        store.known = KnownTimes::new(on_disk);
        let found = std::mem::take(&mut store.found);
        let later = store.pending.split_off(&(after + 1));
        let earlier = std::mem::replace(&mut store.pending, later);
        store.durable = received.clone();
        store.held = received.clone();
        store.pending.values().for_each(|(origin, _)| store.held.add(origin));
        let mut acknowledged = Vec::new();
        let mut lost = BTreeSet::new();
        for (ticket, (origin, bytes)) in earlier {
            release(&mut self.unsynced, &origin.source.sender, bytes);
            let ranges = received.ranges_of(&origin.source);
            match ranges.map(|ranges| ranges.missing(origin.first, origin.last)) {
                Some(0) if found.contains(&ticket) => {}
                Some(0) => acknowledged.push(origin),
                _ => drop(lost.insert(origin.source.sender)),
            }
        }
        let is_pending = |ticket: &Ticket| store.pending.contains_key(ticket);
        store.found = found.into_iter().filter(is_pending).collect();
        // Another table may have been declared while it was opened.
        store.is_open = store.tables == tables;
        self.groups_opened(place);
        self.acknowledge(acknowledged);
        for sender in self.with_those_beside(place, lost) {
            self.end_session_of(&sender, "the receiver lost what it had not synced; send it again");
        }
        self.welcome_whom_it_may(now);
    }

    /// A stream cannot be opened.
    pub fn not_opened(&mut self, place: &Place, why: &str) {
        self.groups.remove(place);
        if let Some(store) = self.stores.remove(place) {
            for (origin, bytes) in store.pending.into_values() {
                release(&mut self.unsynced, &origin.source.sender, bytes);
            }
        }
        let of_stream = |session: &Session| match &session.state {
            State::Greeted(hello) => Place::all_of(hello).any(|of| of == *place),
            State::Open(party) => {
                party.cluster == place.cluster && party.tables.contains_key(&place.stream)
            }
            State::New | State::Closed => false,
        };
        let ids = self.sessions_where(of_stream);
        for id in ids {
            let text = format!("the receiver cannot write stream {place}: {why}");
            self.refuse(id, Refusal { code: Code::Unable, text });
        }
    }

    /// Greets those whose streams are open by now.
    fn welcome_whom_it_may(&mut self, now: Now) {
        let is_ready = |session: &Session| match &session.state {
            State::Greeted(hello) => Place::all_of(hello)
                .all(|place| self.stores.get(&place).is_some_and(|store| store.is_open)),
            _ => false,
        };
        let ready = self.sessions_where(is_ready);
        for id in ready {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let State::Greeted(hello) = std::mem::replace(&mut session.state, State::New) else {
                continue;
            };
            if let Err(refusal) = self.check_life(&hello) {
                self.refuse(id, refusal);
                continue;
            }
            let welcome = Welcome {
                version: hello.version,
                window_bytes: WINDOW_BYTES,
                has: self.has(&hello),
            };
            let octets = Message::Welcome(welcome).encoded();
            self.outputs.push_back(Output::Send { session: id, octets });
            self.end_earlier_lives(now, &hello);
            self.known.greeted(&hello, now.wall);
            self.joined(now, &hello);
            let Hello { sender, cluster, identity, boot, streams, hears, begun_ns, .. } = hello;
            let pace_ms = hears.then_some(0);
            let mut tables: BTreeMap<String, Vec<TableSchema>> = BTreeMap::new();
            for declared in streams {
                tables.entry(declared.stream).or_default().extend(declared.tables);
            }
            if let Some(session) = self.sessions.get_mut(&id) {
                session.state = State::Open(Party {
                    sender,
                    cluster,
                    identity,
                    boot,
                    begun_ns,
                    tables,
                    pace_ms,
                });
            }
            // What it sent in the meantime.
            self.listen(now, id);
        }
    }

    /// What is on the disk of what a sender holds, as much as one answer takes.
    fn has(&self, hello: &Hello) -> Vec<Numbers> {
        let mut room = RANGES_MAX;
        let mut has = Vec::new();
        for Numbers { boot, stream, ranges } in &hello.holds {
            let (boot, stream) = (*boot, stream.clone());
            let source = Source { sender: hello.sender.clone(), boot, stream: stream.clone() };
            let place = Place::new(hello.cluster.as_deref(), &stream);
            let durable =
                self.stores.get(&place).and_then(|store| store.durable.ranges_of(&source));
            let spans = ranges.iter().filter(|(first, last)| first <= last);
            let within = durable.into_iter().flat_map(|durable| {
                spans.clone().flat_map(|&(first, last)| durable.within(first, last))
            });
            let ranges: Vec<_> = within.take(room).collect();
            room -= ranges.len();
            if !ranges.is_empty() {
                has.push(Numbers { boot, stream, ranges });
            }
        }
        has
    }

    fn block(&mut self, now: Now, id: SessionId, rows: PackedRows) -> Result<(), Refusal> {
        let Some(Session { state: State::Open(party), permit, .. }) = self.sessions.get(&id) else {
            return Ok(());
        };
        let origin = rows.origin().cloned().ok_or_else(|| damaged("a block has no origin"))?;
        let Origin { source, first, last } = &origin;
        if source.sender != party.sender {
            let text = format!("`{}` sent a block of `{}`", party.sender, source.sender);
            return Err(Refusal { code: Code::Forbidden, text });
        }
        let mut declared = party.tables.get(&source.stream).into_iter().flatten();
        let table = declared.find(|table| table.name == rows.table()).ok_or_else(|| {
            let (stream, table) = (&source.stream, rows.table());
            damaged(&format!("`{}` did not declare table `{table}` of `{stream}`", party.sender))
        })?;
        rows.fits(table).map_err(|error| damaged(&error.to_string()))?;
        if party.cluster.is_none() {
            check_hosts(permit, &party.sender, &rows)?;
        }
        if first != last || *first == u64::MAX || *first == 0 {
            let text = format!("a block has one number, from 1 on, and not {first} to {last}");
            return Err(damaged(&text));
        }
        let place = party.place(&source.stream);
        let Some(store) = self.stores.get_mut(&place) else { return Ok(()) };
        store.note_times(source, rows.times().1);
        if store.has(source, *first) {
            self.counts.repeated += 1;
            let durable = store.durable.ranges_of(source).cloned().unwrap_or_default();
            self.acknowledge_if_synced(origin, &durable);
            return Ok(());
        }
        // Of an earlier life it is welcome all the same: a file of the spool is there again whose removal was not
        // on the disk when the power went.
        if source.boot == party.boot && store.gave_up(source, *first) {
            return Err(given_up(&party.sender));
        }
        match party.identity.clone() {
            Some(identity) => self.contested(now, (place, &identity), rows, &origin),
            None => {
                self.known.came(place.cluster.as_ref(), &origin.source.sender, rows.times().1);
                self.store(place, rows, origin)
            }
        }
    }

    fn clock(&mut self, now: Now, id: SessionId, offset: Offset) -> Result<(), Refusal> {
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return Ok(());
        };
        let Some(stream) = party.tables.keys().next() else { return Ok(()) };
        let place = party.place(stream);
        self.known.clock(party.cluster.as_ref(), &party.sender, offset);
        let rows = gaps::clock_block(&party.sender, now.wall, offset);
        let rows = rows.map_err(|error| damaged(&error.to_string()))?;
        let ticket = self.ticket();
        self.outputs.push_back(Output::Store { ticket, place, rows });
        Ok(())
    }

    fn store(&mut self, place: Place, rows: PackedRows, origin: Origin) -> Result<(), Refusal> {
        let bytes = rows.payload().len() as u64;
        let ticket = self.next_ticket + 1;
        let Some(store) = self.stores.get_mut(&place) else {
            let text = format!("the receiver does not write stream {place} any more");
            return Err(Refusal { code: Code::Unable, text });
        };
        let sender = origin.source.sender.clone();
        let unsynced = self.unsynced.entry(sender.clone()).or_default();
        if *unsynced + bytes > 2 * WINDOW_BYTES {
            let text = format!(
                "more than {} octets were sent without an acknowledgement",
                2 * WINDOW_BYTES
            );
            return Err(Refusal { code: Code::TooLarge, text });
        }
        *unsynced += bytes;
        store.held.add(&origin);
        store.pending.insert(ticket, (origin, bytes));
        self.next_ticket = ticket;
        self.known.stored(place.cluster.as_ref(), &sender, &rows);
        self.counts.blocks += 1;
        self.counts.rows += rows.rows() as u64;
        self.counts.bytes += bytes;
        self.outputs.push_back(Output::Store { ticket, place, rows });
        Ok(())
    }

    fn gap(&mut self, now: Now, id: SessionId, gap: &Gap) -> Result<(), Refusal> {
        let Some(Session { state: State::Open(party), .. }) = self.sessions.get(&id) else {
            return Ok(());
        };
        let Gap { first, last, stream, .. } = gap;
        if !party.tables.contains_key(stream) {
            let text =
                format!("a gap is of stream `{stream}`, which `{}` did not declare", party.sender);
            return Err(damaged(&text));
        }
        if first > last || *first == 0 {
            let text =
                format!("the numbers of a gap rise from 1 on, and not from {first} to {last}");
            return Err(damaged(&text));
        }
        let (sender, place) = (party.sender.clone(), party.place(stream));
        if let Some(identity) = party.identity.clone() {
            if let Some(group) = party.group_at(&mut self.groups, &place) {
                group.missing(now.monotonic, &sender, gap.boot, (*first, *last));
            }
            self.act(now, &place, &identity)?;
        }
        self.take_told_gap(now, &sender, &place, gap)
    }

    fn take_gap(&mut self, sender: &str, place: &Place, gap: &Gap) -> Result<(), Refusal> {
        let source = Source { sender: sender.into(), boot: gap.boot, stream: gap.stream.clone() };
        let Some(store) = self.stores.get(place) else { return Ok(()) };
        let missing = accounted(&store.held, &source).missing(gap.first, gap.last);
        if missing == 0 {
            if let Some(store) = self.stores.get_mut(place) {
                store.is_told_too(&gaps::origin_of(sender, gap));
            }
            let Some(store) = self.stores.get(place) else { return Ok(()) };
            let durable = accounted(&store.durable, &source);
            self.acknowledge_if_synced(gaps::origin_of(sender, gap), &durable);
            return Ok(());
        }
        let rows = gaps::gap_block(sender, gap, missing);
        let rows = rows.map_err(|error| damaged(&error.to_string()))?;
        let origin = gaps::origin_of(sender, gap);
        self.store(place.clone(), rows, origin)?;
        self.known.missing(place.cluster.as_ref(), sender, gap);
        self.counts.gaps += 1;
        // Saturates: a sender may say any number.
        self.counts.missing_rows = self.counts.missing_rows.saturating_add(gap.rows.unwrap_or(0));
        Ok(())
    }

    /// Every block up to a ticket is on the disk.
    pub fn synced(&mut self, place: &Place, ticket: Ticket) {
        self.turns_synced(place, ticket);
        let Some(store) = self.stores.get_mut(place) else { return };
        let left = store.pending.split_off(&(ticket + 1));
        let done = std::mem::replace(&mut store.pending, left);
        let mut origins = Vec::new();
        for (ticket, (origin, bytes)) in done {
            store.durable.add(&origin);
            release(&mut self.unsynced, &origin.source.sender, bytes);
            if !store.found.remove(&ticket) {
                origins.push(origin);
            }
        }
        self.acknowledge(origins);
    }

    /// A block could not be stored: its session is ended, so that it comes again.
    pub fn lost(&mut self, place: &Place, ticket: Ticket) {
        self.turn_lost(place, ticket);
        let Some(store) = self.stores.get_mut(place) else { return };
        let Some((origin, bytes)) = store.pending.remove(&ticket) else { return };
        store.found.remove(&ticket);
        store.forget(&origin);
        // Numbers of a gap may be those of a block that is there.
        let is_gone = !store.has(&gaps::plain(&origin.source), origin.first);
        release(&mut self.unsynced, &origin.source.sender, bytes);
        if is_gone {
            self.contested_lost(place, &origin);
        }
        self.end_session_of(&origin.source.sender, NOT_WRITTEN);
    }

    fn end_session_of(&mut self, sender: &str, text: &str) {
        if let Some(&id) = self.senders.get(sender) {
            self.refuse(id, Refusal { code: Code::Unable, text: text.into() });
        }
    }

    /// Acknowledges numbers that came again, unless they are not on the disk yet: then they are
    /// acknowledged when they are.
    fn acknowledge_if_synced(&mut self, origin: Origin, durable: &Ranges) {
        if durable.missing(origin.first, origin.last) == 0 {
            self.acknowledge(vec![origin]);
        }
    }

    fn acknowledge(&mut self, origins: Vec<Origin>) {
        let mut by_session: BTreeMap<SessionId, Received> = BTreeMap::new();
        for Origin { source, first, last } in origins {
            let Some(&id) = self.senders.get(&source.sender) else { continue };
            // Who is not greeted yet learns it by the welcome.
            let is_open = |session: &Session| matches!(session.state, State::Open(_));
            if self.sessions.get(&id).is_some_and(is_open) {
                let source = gaps::plain(&source);
                by_session.entry(id).or_default().add(&Origin { source, first, last });
            }
        }
        for (session, received) in by_session {
            for part in in_parts(&received) {
                let octets = Message::Ack(part).encoded();
                self.outputs.push_back(Output::Send { session, octets });
            }
        }
    }

    /// Lets time pass: sessions in which nothing came for too long are ended. Time in which the shell
    /// did not listen, since it waited for its disk, is nobody's silence.
    pub fn tick(&mut self, now: Now) {
        let passed = now.monotonic.saturating_sub(self.last_tick.unwrap_or(now.monotonic));
        (self.last_tick, self.now) = (Some(now.monotonic), now.monotonic);
        if passed > STALLED_AFTER {
            for session in self.sessions.values_mut() {
                session.last_heard = (session.last_heard + passed).min(now.monotonic);
            }
        }
        let is_silent = |session: &Session| {
            let waited = now.monotonic.saturating_sub(session.last_heard);
            waited >= SILENCE_MAX && !matches!(session.state, State::Closed)
        };
        let silent = self.sessions_where(is_silent);
        for id in silent {
            let text = format!("nothing came for {SILENCE_MAX}");
            self.refuse(id, Refusal { code: Code::Silent, text });
        }
        self.store_lost_turns(now);
        self.settle(now);
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

fn release(unsynced: &mut BTreeMap<String, u64>, sender: &str, bytes: u64) {
    if let Some(of_sender) = unsynced.get_mut(sender) {
        *of_sender = of_sender.saturating_sub(bytes);
        if *of_sender == 0 {
            unsynced.remove(sender);
        }
    }
}

fn damaged(text: &str) -> Refusal {
    Refusal { code: Code::Damaged, text: text.into() }
}

fn given_up(sender: &str) -> Refusal {
    let text = format!(
        "two senders are called `{sender}`: when the other one came, what this one had not delivered \
         was told as missing. Give each a name of its own, and an empty spool"
    );
    Refusal { code: Code::Duplicate, text }
}
