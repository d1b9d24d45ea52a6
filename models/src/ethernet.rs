//! Ethernet as a part of a model: network cards and switches as in [the packet method](crate::prediction::packet), with
//! queues that are full at some time, pause frames or losses, and TCP if it is wanted.
//!
//! A model has a `Nic` in each of its hosts and makes an LP of each [`EthernetSwitch`]; its events have room for a
//! [`Wire`]. What a message says does not go through the switches: it is sent to its receiver beside them
//! (`Nic::expect`) and taken there when the last of its frames has arrived (`Nic::handle`). Hosts are the first LPs of
//! the model and switches the next ones, both in the order of the network.
//!
//! A message of one frame costs an event at each switch, two at its receiver and none at its sender; a model with `n` hosts
//! that talk to `m` others each keeps some 60 octets for each way between two of them, with TCP some 500.

use std::marker::PhantomData;
use std::sync::Arc;

use meikyo_sim::{Context, EventKey, Handle, LpId, Series, Statistic};
use meikyo_undo::{Cell, Change, Log, Map, Place, State, Wire as Bytes, bytes_of_fields, fields};
use meikyo_units::{Nanos, SimTime};

use crate::digest::Digest;
use crate::prediction::packet::{Cards, Kind, Name, Port, Shared, Signal, Switch};

/// What cards and switches tell each other and themselves: a part of a model's messages.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Wire(Signal);

/// The network cards of a host of a model, and messages of the kind `T` that are on their way to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nic<T> {
    cards: Cards,
    own: u32,
    /// When the last message was there.
    taken_at: Cell<u64>,
    /// By the host that sends and its number for the message.
    expected: Map<(u32, u32), T>,
}

impl<T: Send + Bytes + 'static> State for Nic<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.cards.revert(change) || self.taken_at.revert(change) || self.expected.revert(change)
    }

    bytes_of_fields!(cards, taken_at, expected);
}

impl<T: Clone + Send + Bytes + 'static> Nic<T> {
    pub(crate) fn new(shared: &Arc<Shared>, own: LpId) -> Self {
        let place = usize::try_from(own.get()).expect("32 bits are a place");
        let cards = Cards::new(Arc::clone(shared), place);
        let taken_at = Cell::default();
        Self { cards, own: own.get(), taken_at, expected: Map::default() }
    }

    /// Sends the frames of a message now. Its number differs from those of all messages to that host that are under way.
    pub(crate) fn send<M: From<Wire>>(
        &mut self,
        to: LpId,
        number: u32,
        bytes: u64,
        context: &mut impl Context<M>,
    ) {
        let name = Name { to: to.get(), from: self.own, tag: number, number: 0 };
        // What the model does at this instant is as what a rank does: frames that have begun to leave go first.
        let event = Signal::Computed { rank: self.own };
        let mut context = OnWire::new(context);
        self.cards.catch_up(&event, &mut context);
        self.cards.send(name, Kind::Eager, bytes, &mut context);
        self.cards.arm(&event, &mut context);
    }

    /// Takes what a message says, whose frames are still under way.
    pub(crate) fn expect(&mut self, from: LpId, number: u32, content: T, log: &mut impl Log) {
        self.expected.insert(log, (from.get(), number), content);
    }

    /// Takes an event; gives what a message says that has arrived with it.
    pub(crate) fn handle<M: From<Wire>>(
        &mut self,
        Wire(signal): Wire,
        context: &mut impl Context<M>,
    ) -> Option<T> {
        let mut context = OnWire::new(context);
        self.cards.catch_up(&signal, &mut context);
        let arrived = match signal {
            Signal::Told { name, .. } => {
                let now = context.now().as_nanos();
                self.taken_at.set(&mut context, now);
                let arrived = self.expected.remove(&mut context, &(name.from, name.tag));
                Some(arrived.expect("it is told of before its frames arrive"))
            }
            _ => {
                self.cards.take(&signal, &mut context);
                None
            }
        };
        self.cards.arm(&signal, &mut context);
        arrived
    }

    /// What sends on each of its cables.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.cards.ports()
    }

    /// When it has sent everything, and has what was sent to it.
    pub(crate) fn idle(&self) -> SimTime {
        let sent = self.ports().map(Port::free_at).max().unwrap_or(0);
        SimTime::from_nanos(sent.max(self.taken_at.get()))
    }

    pub(crate) fn add_to(&self, digest: &mut Digest) {
        self.ports().for_each(|port| add_port(port, digest));
    }
}

/// A switch of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct EthernetSwitch {
    switch: Switch,
}
fields!(EthernetSwitch { switch });

impl EthernetSwitch {
    /// By its place among the switches of the network.
    pub(crate) fn new(shared: &Arc<Shared>, place: usize) -> Self {
        Self { switch: Switch::new(Arc::clone(shared), place) }
    }

    pub(crate) fn handle<M: From<Wire>>(
        &mut self,
        Wire(signal): Wire,
        context: &mut impl Context<M>,
    ) {
        self.switch.handle(signal, &mut OnWire::new(context));
    }

    /// What sends on each of its cables.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.switch.ports()
    }

    /// Frames that found no room.
    pub fn lost(&self) -> u64 {
        self.switch.lost()
    }

    /// How often it stopped who sends to it.
    pub fn stops(&self) -> u64 {
        self.switch.stops()
    }

    /// The most octets that waited in it at once.
    pub fn queued_max(&self) -> u64 {
        self.switch.octets_max()
    }

    pub(crate) fn add_to(&self, digest: &mut Digest) {
        self.ports().for_each(|port| add_port(port, digest));
        for count in [self.lost(), self.stops(), self.queued_max()] {
            digest.word(count);
        }
    }
}

fn add_port(port: &Port, digest: &mut Digest) {
    for count in [port.free_at(), port.carried().get(), port.frames()] {
        digest.word(count);
    }
}

/// A model's context as cards and switches see it.
struct OnWire<'a, C, M> {
    context: &'a mut C,
    message: PhantomData<M>,
}

impl<'a, C, M> OnWire<'a, C, M> {
    fn new(context: &'a mut C) -> Self {
        Self { context, message: PhantomData }
    }
}

impl<C: Log, M> Log for OnWire<'_, C, M> {
    const KEEPS: bool = C::KEEPS;

    fn word(&mut self, place: Place, word: u64) {
        self.context.word(place, word);
    }

    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.context.value(place, word, value);
    }
}

impl<C: Context<M>, M: From<Wire>> Context<Signal> for OnWire<'_, C, M> {
    fn me(&self) -> LpId {
        self.context.me()
    }

    fn event(&self) -> EventKey {
        self.context.event()
    }

    fn send_with_priority(&mut self, to: LpId, delay: Nanos, priority: u32, signal: Signal) {
        self.context.send_with_priority(to, delay, priority, Wire(signal).into());
    }

    fn schedule(&mut self, delay: Nanos, signal: Signal) -> Handle {
        self.context.schedule(delay, Wire(signal).into())
    }

    fn cancel(&mut self, handle: Handle) {
        self.context.cancel(handle);
    }

    fn bits(&mut self) -> u64 {
        self.context.bits()
    }

    fn tally(&mut self, statistic: Statistic, value: f64) {
        self.context.tally(statistic, value);
    }

    fn record(&mut self, series: Series, value: f64) {
        self.context.record(series, value);
    }

    fn print(&mut self, text: &str) {
        self.context.print(text);
    }
}
