//! The world: who is connected with whom, what is under way, and what goes wrong when.

use std::collections::BTreeMap;

use meikyo_recording::Received;
use meikyo_recording::origin::Ranges;
use meikyo_transport::wire::{Decoder, Message, Numbers};
use meikyo_transport::{Now, Output, Permit, Place, Receiver};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime, WallTime};
use meikyo_worlds::{Agenda, Line, LineOptions, Random};

use super::parties::{CLUSTER, IDENTITY, Machine, STREAM, TICK, packed, packed_intervals};
use super::store::Store;

/// 2026-11-21T20:59:59Z.
const EPOCH_NS: i64 = 1_795_294_799_000_000_000;

/// What a socket holds before its line: the shell asks for no more while that is ahead.
const SOCKET: Nanos = Nanos::from_millis(8);

/// How long everything may take to be delivered once nothing goes wrong any more.
const PATIENCE: Nanos = Nanos::from_secs(900);

/// How long is waited for what is still under way when all blocks are delivered.
const AFTERWARDS: Nanos = Nanos::from_secs(30);

pub(crate) fn wall(at: SimTime, skew_ns: i64) -> WallTime {
    WallTime::from_nanos(EPOCH_NS + at.as_nanos().cast_signed() + skew_ns)
}

/// What a history is like.
#[derive(Debug, Clone)]
pub(crate) struct Character {
    pub(crate) senders: usize,
    pub(crate) on_disk: bool,
    spool_bytes: u64,
    catch_up: Option<Bytes>,
    line: LineOptions,
    make_every: Nanos,
    rows: u64,
    /// A fault happens once in that span on average; none when it is zero.
    fault_every: Nanos,
    /// How long faults happen, and blocks are made.
    lasts: Nanos,
    /// How long the receiver is away in the beginning.
    receiver_late: Nanos,
    /// Whether machines lose their power, or are only killed.
    power_cuts: bool,
    /// Whether the receiver is killed; else a sender is in its place.
    receiver_kills: bool,
    clock_steps: bool,
    /// Whether the senders measure the same devices and stand by for each other.
    pub(crate) stands_by: bool,
}

impl Character {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut random = Random::of_stream(seed, 99);
        let mut one_of = |choices: &[u64]| choices[random.index(choices.len())];
        let line = LineOptions {
            delay: Nanos::from_millis(one_of(&[0, 1, 50, 200])),
            jitter: Nanos::from_millis(one_of(&[0, 5, 100])),
            loss_once_in: one_of(&[0, 0, 20]),
            recovery: Nanos::from_millis(300),
            bandwidth: BitsPerSecond::new(one_of(&[0, 100_000, 10_000_000])),
        };
        let catch_up = one_of(&[0, 5_000]);
        Self {
            senders: usize::try_from(one_of(&[1, 1, 2, 3])).unwrap(),
            on_disk: one_of(&[0, 1]) == 1,
            spool_bytes: one_of(&[8 << 10, 40 << 10, 4 << 20]),
            catch_up: (catch_up > 0).then_some(Bytes::new(catch_up)),
            line,
            make_every: Nanos::from_millis(one_of(&[100, 300, 1_000])),
            rows: one_of(&[1, 10, 40]),
            fault_every: Nanos::from_millis(one_of(&[400, 2_000, 6_000])),
            lasts: Nanos::from_secs(one_of(&[20, 60])),
            receiver_late: Nanos::from_secs(one_of(&[0, 0, 10])),
            power_cuts: one_of(&[0, 1]) == 1,
            receiver_kills: true,
            clock_steps: one_of(&[0, 0, 1]) == 1,
            stands_by: false,
        }
    }

    /// Two or three collectors of the same devices. Half of the histories lose nothing but connections and
    /// processes.
    pub(crate) fn standing_by(seed: u64) -> Self {
        let mut random = Random::of_stream(seed, 98);
        let is_kind = random.once_in(2);
        let own = Self::of_seed(seed);
        Self {
            senders: 2 + random.index(2),
            on_disk: is_kind || own.on_disk,
            spool_bytes: if is_kind { 4 << 20 } else { own.spool_bytes },
            power_cuts: !is_kind && own.power_cuts,
            receiver_kills: random.once_in(2),
            clock_steps: false,
            rows: 4,
            stands_by: true,
            ..own
        }
    }

    /// Whether nothing that was offered to a sender can be lost for good.
    pub(crate) fn is_kind(&self) -> bool {
        self.on_disk && !self.power_cuts && self.spool_bytes >= 4 << 20
    }

    /// One sender over 20 Mbit/s and 100 ms round trip, whose receiver is away in the beginning.
    pub(crate) fn slow_line(backlog_s: u64) -> Self {
        let line = LineOptions {
            delay: Nanos::from_millis(50),
            bandwidth: BitsPerSecond::new(20_000_000),
            ..LineOptions::FAST
        };
        Self {
            senders: 1,
            on_disk: false,
            spool_bytes: 1 << 30,
            catch_up: None,
            line,
            make_every: Nanos::from_millis(50),
            rows: 1_000,
            fault_every: Nanos::ZERO,
            // A wait for the next try to connect, and what is measured.
            lasts: Nanos::from_secs(backlog_s + 65),
            receiver_late: Nanos::from_secs(backlog_s),
            power_cuts: false,
            receiver_kills: false,
            clock_steps: false,
            stands_by: false,
        }
    }
}

#[derive(Debug)]
enum Event {
    Make(usize),
    Wake(usize),
    Deliver {
        connection: u64,
        up: bool,
        octets: Vec<u8>,
    },
    EndSeen {
        connection: u64,
        by_sender: bool,
    },
    Fault,
    StartSender(usize),
    StartReceiver,
    /// The receiver's writer writes, and now and then syncs.
    Write,
    Sync,
    Tick,
    DiskHasRoom,
    SpoolHasRoom(usize),
    Finish(usize),
}

#[derive(Debug)]
struct Connection {
    sender: usize,
    up: Line,
    down: Line,
    /// Whether each side believes in it.
    sender_open: bool,
    receiver_open: bool,
    /// Nothing arrives any more.
    is_cut: bool,
}

/// A history.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) character: Character,
    pub(crate) random: Random,
    agenda: Agenda<SimTime, Event>,
    now: SimTime,
    pub(crate) machines: Vec<Machine>,
    receiver: Option<Receiver>,
    pub(crate) store: Store,
    connections: BTreeMap<u64, Connection>,
    /// What the receiver ever acknowledged.
    pub(crate) acknowledged: Received,
    /// The first acknowledgement of something that a power cut could have taken.
    pub(crate) too_early: Option<String>,
    pub(crate) cuts: u64,
    pub(crate) receiver_kills: u64,
    pub(crate) repeated: u64,
    pub(crate) is_delivered: bool,
}

impl World {
    pub(crate) fn new(seed: u64, character: Character) -> Self {
        let mut random = Random::new(seed);
        let machine = |index: usize| {
            let skew = i64::try_from(random.below(2_000_000_000)).unwrap() - 1_000_000_000;
            let name = match character.stands_by {
                true => format!("{IDENTITY}@node{index:03}"),
                false => format!("node{index:03}"),
            };
            Machine::new(name, character.on_disk, skew)
        };
        let machines: Vec<_> = (0..character.senders).map(machine).collect();
        let mut world = Self {
            character,
            random,
            agenda: Agenda::new(),
            now: SimTime::START,
            machines,
            receiver: None,
            store: Store::default(),
            connections: BTreeMap::new(),
            acknowledged: Received::default(),
            too_early: None,
            cuts: 0,
            receiver_kills: 0,
            repeated: 0,
            is_delivered: false,
        };
        for index in 0..world.machines.len() {
            world.later(Nanos::ZERO, Event::StartSender(index));
            world.later(Nanos::from_millis(1), Event::Make(index));
        }
        world.later(world.character.receiver_late, Event::StartReceiver);
        world.later(Nanos::from_millis(20), Event::Write);
        world.later(Nanos::from_millis(250), Event::Sync);
        world.later(Nanos::SECOND, Event::Tick);
        if world.character.fault_every > Nanos::ZERO {
            world.later(world.character.fault_every, Event::Fault);
        }
        world
    }

    fn later(&mut self, span: Nanos, event: Event) {
        self.agenda.add(self.now + span, event);
    }

    fn is_over(&self) -> bool {
        self.now.since(SimTime::START) >= self.character.lasts
    }

    /// Lets everything happen, until all is delivered or nobody has any patience left.
    pub(crate) fn run(&mut self) {
        let end = SimTime::START + self.character.lasts;
        for index in 0..self.machines.len() {
            self.agenda.add(end + Nanos::from_secs(5), Event::Finish(index));
        }
        let mut done_at: Option<SimTime> = None;
        while let Some((at, event)) = self.agenda.pop() {
            self.now = at;
            self.happen(event);
            if self.too_early.is_some() || at > end + PATIENCE {
                return;
            }
            let done = |machine: &Machine| {
                machine.is_finished
                    && machine.sender.as_ref().is_some_and(|sender| sender.is_delivered())
            };
            if !self.machines.iter().all(done) {
                done_at = None;
            } else if at >= *done_at.get_or_insert(at) + AFTERWARDS {
                self.is_delivered = true;
                return;
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Make(index) => self.make(index),
            Event::Wake(index) => {
                self.machines[index].wakes_at = None;
                self.pump(index);
            }
            Event::Deliver { connection, up, octets } => self.deliver(connection, up, &octets),
            Event::EndSeen { connection, by_sender } => self.see_end(connection, by_sender),
            Event::Fault => self.fault(),
            Event::StartSender(index) => self.start_sender(index),
            Event::StartReceiver => {
                self.receiver.get_or_insert_with(Receiver::new);
            }
            Event::Write => {
                for ticket in self.store.write() {
                    let place = self.place();
                    if let Some(receiver) = &mut self.receiver {
                        receiver.lost(&place, ticket);
                    }
                }
                self.pump_receiver();
                let wait = self.random.span(Nanos::from_millis(40)) + TICK;
                self.later(wait, Event::Write);
            }
            Event::Sync => {
                let place = self.place();
                if let (Some(ticket), Some(receiver)) = (self.store.sync(), &mut self.receiver) {
                    receiver.synced(&place, ticket);
                }
                self.pump_receiver();
                self.later(Nanos::from_millis(250), Event::Sync);
            }
            Event::Tick => {
                let now = self.at_receiver();
                if let Some(receiver) = &mut self.receiver {
                    receiver.tick(now);
                }
                self.pump_receiver();
                self.later(Nanos::SECOND, Event::Tick);
            }
            Event::DiskHasRoom => self.store.is_full = false,
            Event::SpoolHasRoom(index) => {
                if let Some(disk) = &self.machines[index].disk {
                    disk.0.borrow_mut().set_room(None);
                }
            }
            Event::Finish(index) => self.finish(index),
        }
    }

    fn at_sender(&self, index: usize) -> Now {
        let monotonic = self.now.since(SimTime::START) + Nanos::from_secs(100);
        Now { monotonic, wall: wall(self.now, self.machines[index].skew_ns) }
    }

    fn at_receiver(&self) -> Now {
        let monotonic = self.now.since(SimTime::START) + Nanos::from_secs(100);
        Now { monotonic, wall: wall(self.now, 0) }
    }

    fn start_sender(&mut self, index: usize) {
        let Character { spool_bytes, catch_up, .. } = self.character;
        let machine = &mut self.machines[index];
        if machine.sender.is_none() {
            machine.start(spool_bytes, catch_up);
        }
        self.pump(index);
    }

    fn finish(&mut self, index: usize) {
        let now = self.at_sender(index);
        let machine = &mut self.machines[index];
        let Some(sender) = &mut machine.sender else {
            return self.later(Nanos::SECOND, Event::Finish(index));
        };
        sender.finish(now);
        machine.is_finished = true;
        self.pump(index);
    }

    fn place(&self) -> Place {
        Place::new(self.character.stands_by.then_some(CLUSTER), STREAM)
    }

    /// An interval is measured. Its rows wait, as those of a collector do, and go in two blocks, as those of
    /// two tables.
    fn measure(&mut self, index: usize) {
        let (at, now) = (self.now, self.at_sender(index));
        let is_due = self.random.once_in(2);
        let (devices, rows) = (self.character.rows, self.rows_at(at));
        let machine = &mut self.machines[index];
        if let Some(sender) = &mut machine.sender {
            machine.waiting.extend(rows.into_iter().map(|row| (at, row)));
            if is_due || machine.waiting.len() as u64 > 3 * devices {
                let rows = std::mem::take(&mut machine.waiting);
                machine.measured.extend(rows.iter().map(|(at, _)| *at));
                let (some, others): (Vec<_>, Vec<_>) =
                    rows.into_iter().partition(|(_, value)| value & 0xffff < devices / 2);
                for rows in [some, others] {
                    let number = sender.offer(now, STREAM, &packed_intervals(&rows)).unwrap();
                    let values = rows.iter().map(|(_, value)| *value).collect();
                    machine.made.insert((machine.boot, number), values);
                }
            }
        }
        self.pump(index);
        let every = self.character.make_every.get();
        let next = (at.as_nanos() / every + 1) * every;
        self.agenda.add(SimTime::START + Nanos::new(next), Event::Make(index));
    }

    fn make(&mut self, index: usize) {
        if self.is_over() {
            return;
        }
        if self.character.stands_by {
            return self.measure(index);
        }
        let count = 1 + self.random.below(self.character.rows * 2);
        let noise = self.random.bits();
        let (at, now) = (self.now, self.at_sender(index));
        let machine = &mut self.machines[index];
        let next = machine.made.range((machine.boot, 0)..).next_back().map_or(0, |(of, _)| of.1);
        let values = machine.rows(next + 1, count);
        if let Some(sender) = &mut machine.sender {
            let rows = packed(at, &values, noise);
            let number = sender.offer(now, STREAM, &rows).unwrap();
            assert_eq!(number, next + 1);
            machine.made.insert((machine.boot, number), values);
            machine.made_at.insert((machine.boot, number), at);
        }
        self.pump(index);
        let wait = Nanos::new(self.character.make_every.get() / 2)
            + self.random.span(self.character.make_every);
        self.later(wait, Event::Make(index));
    }

    /// What a sender's shell does whenever something has happened.
    fn pump(&mut self, index: usize) {
        let (now, receivers_now) = (self.at_sender(index), self.at_receiver());
        let chance = self.random.bits();
        let Some(sender) = &mut self.machines[index].sender else { return };
        if sender.tick(now).is_err() {
            return self.sender_closes(index);
        }
        if sender.wants_connection(now) {
            match &mut self.receiver {
                Some(receiver) => {
                    let id = self.connections.len() as u64 + 1;
                    receiver.connected(receivers_now, id, Permit::anybody());
                    let line = || Line::new(self.character.line);
                    let connection = Connection {
                        sender: index,
                        up: line(),
                        down: line(),
                        sender_open: true,
                        receiver_open: true,
                        is_cut: false,
                    };
                    self.connections.insert(id, connection);
                    self.machines[index].connection = Some(id);
                    if let Some(sender) = &mut self.machines[index].sender {
                        sender.connected(now);
                    }
                }
                None => sender.disconnected(now, chance),
            }
        }
        self.transmit(index, now);
        self.wake_later(index, now);
    }

    fn transmit(&mut self, index: usize, now: Now) {
        let Some(id) = self.machines[index].connection else { return };
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            if connection.up.busy_until() > self.now + SOCKET {
                return;
            }
            let Some(sender) = &mut self.machines[index].sender else { return };
            let Some(octets) = sender.poll_transmit(now) else { return };
            let arrival = connection.up.carry(self.now, octets.len() as u64, &mut self.random);
            // In two pieces: a frame is not what arrives at once.
            let cut = self.random.index(octets.len() + 1);
            let (first, second) = octets.split_at(cut);
            for octets in [first, second] {
                let octets = octets.to_vec();
                self.agenda.add(arrival, Event::Deliver { connection: id, up: true, octets });
            }
        }
    }

    fn wake_later(&mut self, index: usize, now: Now) {
        let machine = &mut self.machines[index];
        let Some(sender) = &machine.sender else { return };
        let wanted = sender.next_wakeup(now).saturating_sub(now.monotonic).max(TICK);
        let mut at = self.now + wanted;
        if let Some(connection) = machine.connection.and_then(|id| self.connections.get(&id))
            && connection.up.busy_until() > self.now + SOCKET
        {
            at = at.min(connection.up.busy_until());
        }
        if machine.wakes_at.is_none_or(|known| at < known) {
            machine.wakes_at = Some(at);
            self.agenda.add(at, Event::Wake(index));
        }
    }

    fn deliver(&mut self, id: u64, up: bool, octets: &[u8]) {
        let Some(connection) = self.connections.get(&id) else { return };
        if connection.is_cut {
            return;
        }
        if up {
            if connection.receiver_open {
                let now = self.at_receiver();
                if let Some(receiver) = &mut self.receiver {
                    receiver.handle(now, id, octets);
                }
                self.pump_receiver();
            }
            return;
        }
        let (index, is_open) = (connection.sender, connection.sender_open);
        if !is_open {
            return;
        }
        let now = self.at_sender(index);
        let Some(sender) = &mut self.machines[index].sender else { return };
        if sender.handle(now, octets).is_err() {
            return self.sender_closes(index);
        }
        self.pump(index);
    }

    /// Does what the receiver asks for.
    fn pump_receiver(&mut self) {
        while let Some(output) = self.receiver.as_mut().and_then(Receiver::poll_output) {
            match output {
                Output::Open { place, tables, after } => {
                    let (on_disk, now) = (self.store.open(), self.at_receiver());
                    if let Some(receiver) = &mut self.receiver {
                        receiver.opened(now, (&place, &tables), after, &on_disk);
                    }
                }
                Output::Store { ticket, rows, .. } => {
                    self.note_arrival(&rows);
                    self.store.queue(ticket, rows);
                }
                Output::Facts { .. } => {}
                Output::Send { session, octets } => self.send_down(session, octets),
                Output::Close { session, .. } => {
                    if let Some(connection) = self.connections.get_mut(&session) {
                        connection.receiver_open = false;
                        let at = connection.down.carry(self.now, 40, &mut self.random);
                        let event = Event::EndSeen { connection: session, by_sender: true };
                        self.agenda.add(at, event);
                    }
                    if let Some(receiver) = &mut self.receiver {
                        receiver.disconnected(session);
                    }
                }
            }
        }
        if let Some(receiver) = &self.receiver {
            self.repeated = self.repeated.max(receiver.counts().repeated);
        }
    }

    fn note_arrival(&mut self, rows: &meikyo_recording::PackedRows) {
        let Some(origin) = rows.origin().filter(|origin| origin.first == origin.last) else {
            return;
        };
        let of_sender = |machine: &&mut Machine| machine.name == origin.source.sender;
        if let Some(machine) = self.machines.iter_mut().find(of_sender) {
            machine.came_at.entry((origin.source.boot, origin.first)).or_insert(self.now);
        }
    }

    fn send_down(&mut self, id: u64, octets: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let sender = self.machines[connection.sender].name.clone();
        let arrival = connection.down.carry(self.now, octets.len() as u64, &mut self.random);
        self.check_acknowledgement(&sender, &octets);
        self.agenda.add(arrival, Event::Deliver { connection: id, up: false, octets });
    }

    /// Nothing is acknowledged that a power cut could take.
    fn check_acknowledgement(&mut self, sender: &str, octets: &[u8]) {
        let mut decoder = Decoder::new();
        decoder.push(octets);
        let numbers = match decoder.next_message().unwrap() {
            Some(Message::Ack(numbers)) => numbers,
            Some(Message::Welcome(welcome)) => welcome.has,
            _ => return,
        };
        let durable = self.store.durable();
        for Numbers { boot, stream, ranges } in numbers {
            // What a sender itself told to be lost without a count stands beside its numbers.
            let given_up = format!("{stream}?");
            let [source, given_up] = [stream, given_up].map(|stream| meikyo_recording::Source {
                sender: sender.to_owned(),
                boot,
                stream,
            });
            let mut known = durable.ranges_of(&source).cloned().unwrap_or_default();
            let told = durable.ranges_of(&given_up).into_iter().flat_map(Ranges::iter);
            told.for_each(|(first, last)| known.add(first, last));
            for (first, last) in ranges {
                if known.missing(first, last) > 0 {
                    let text = format!("{source:?} {first}..={last} was acknowledged too early");
                    self.too_early.get_or_insert(text);
                }
                self.acknowledged.of_mut(&source).add(first, last);
            }
        }
    }

    fn sender_closes(&mut self, index: usize) {
        let (now, chance) = (self.at_sender(index), self.random.bits());
        let machine = &mut self.machines[index];
        if let Some(id) = machine.connection.take()
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.sender_open = false;
            let at = connection.up.carry(self.now, 40, &mut self.random);
            self.agenda.add(at, Event::EndSeen { connection: id, by_sender: false });
        }
        if let Some(sender) = &mut machine.sender {
            sender.disconnected(now, chance);
        }
        self.wake_later(index, now);
    }

    fn see_end(&mut self, id: u64, by_sender: bool) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_cut {
            return;
        }
        if by_sender {
            let (index, was_open) = (connection.sender, connection.sender_open);
            if was_open && self.machines[index].connection == Some(id) {
                self.sender_closes(index);
            }
        } else if std::mem::take(&mut connection.receiver_open)
            && let Some(receiver) = &mut self.receiver
        {
            receiver.disconnected(id);
        }
    }

    /// Something goes wrong.
    fn fault(&mut self) {
        if self.is_over() {
            return;
        }
        let index = self.random.index(self.machines.len());
        match self.random.below(8) {
            0..=2 => self.cut(index),
            3 => self.stop_sender(index, false),
            4 => self.stop_sender(index, self.character.power_cuts),
            5 if self.character.receiver_kills => self.stop_receiver(),
            5 => self.stop_sender(index, false),
            6 => {
                self.store.is_full = true;
                let wait = self.random.span(Nanos::from_secs(3));
                self.later(wait, Event::DiskHasRoom);
            }
            _ if self.random.once_in(2) && self.character.clock_steps => {
                let step = i64::try_from(self.random.below(20_000_000_000)).unwrap();
                self.machines[index].skew_ns += step - 10_000_000_000;
            }
            _ => {
                let machine = &mut self.machines[index];
                if let Some(disk) = &machine.disk {
                    machine.disk_was_full = true;
                    let used = disk.0.borrow().used();
                    disk.0.borrow_mut().set_room(Some(used + 300));
                    let wait = self.random.span(Nanos::from_secs(3));
                    self.later(wait, Event::SpoolHasRoom(index));
                }
            }
        }
        let wait = TICK + self.random.span(self.character.fault_every * 2);
        self.later(wait, Event::Fault);
    }

    /// The connection breaks: each side learns of it soon, or by silence.
    fn cut(&mut self, index: usize) {
        let Some(id) = self.machines[index].connection else { return };
        self.cuts += 1;
        let is_silent = self.random.once_in(3);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_cut = true;
        }
        if !is_silent {
            self.sender_closes(index);
            if self.random.once_in(2)
                && let Some(receiver) = &mut self.receiver
            {
                receiver.disconnected(id);
            }
        }
    }

    fn stop_sender(&mut self, index: usize, loses_power: bool) {
        let machine = &mut self.machines[index];
        if machine.sender.is_none() {
            return;
        }
        machine.kills += 1;
        if let Some(id) = machine.connection
            && let Some(connection) = self.connections.get_mut(&id)
        {
            connection.sender_open = false;
            // A machine without power says nothing.
            connection.is_cut |= loses_power;
            let at = connection.up.carry(self.now, 40, &mut self.random);
            self.agenda.add(at, Event::EndSeen { connection: id, by_sender: false });
        }
        let machine = &mut self.machines[index];
        machine.stop();
        if loses_power {
            machine.machine += 1;
            machine.power_cuts += 1;
            if let Some(disk) = &machine.disk {
                disk.0.borrow_mut().cut_power(&mut self.random);
            }
        }
        let wait = self.random.span(Nanos::from_secs(4));
        self.later(wait, Event::StartSender(index));
    }

    fn stop_receiver(&mut self) {
        if self.receiver.take().is_none() {
            return;
        }
        self.receiver_kills += 1;
        if self.character.power_cuts && self.random.once_in(2) {
            self.store.cut_power(&mut self.random);
        } else {
            self.store.kill();
        }
        let open: Vec<u64> = self.connections.keys().copied().collect();
        for id in open {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if std::mem::take(&mut connection.receiver_open) && !self.random.once_in(3) {
                let at = connection.down.carry(self.now, 40, &mut self.random);
                self.agenda.add(at, Event::EndSeen { connection: id, by_sender: true });
            }
        }
        let wait = self.random.span(Nanos::from_secs(6));
        self.later(wait, Event::StartReceiver);
    }

    /// One number for everything that the receiver stored and when it was over.
    pub(crate) fn digest(&self) -> u64 {
        let mix = |sum: u64, bits: u64| sum.rotate_left(7).wrapping_mul(31) ^ bits;
        let sums = self.store.blocks().map(|rows| u64::from(rows.checksum()));
        sums.fold(self.now.as_nanos(), mix)
    }

    /// How long each block took that was made when they had been connected for a second.
    pub(crate) fn live_delays_ms(&self) -> Vec<u64> {
        let machine = &self.machines[0];
        let begin = machine.came_at.values().min().copied().unwrap_or(SimTime::END);
        let from = begin + Nanos::SECOND;
        let made = machine.made_at.iter().filter(|(_, at)| **at >= from);
        let delays = made.map(|(number, at)| machine.came_at[number].since(*at));
        delays.map(|delay| delay.get() / 1_000_000).collect()
    }

    /// The rows that an interval has, by what it was due at.
    pub(crate) fn rows_at(&self, due: SimTime) -> Vec<u64> {
        let number = due.as_nanos() / self.character.make_every.get();
        (0..self.character.rows).map(|device| number << 16 | device).collect()
    }

    pub(crate) fn has_steady_clocks(&self) -> bool {
        !self.character.clock_steps
    }
}
