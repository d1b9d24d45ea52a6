//! A client: one operation after another, or several at once.

use std::num::NonZeroU16;
use std::sync::Arc;

use meikyo_metadata::{Cache, InodeNumber, Operation, Reply, Response, Step};
use meikyo_sim::{Context, LpId};
use meikyo_undo::{Cell, Forget, fields};
use meikyo_units::{Nanos, SimTime};

use crate::digest::Digest;
use crate::ethernet::Nic;
use crate::metadata_service::ethernet;
use crate::metadata_service::work::Work;
use crate::metadata_service::{Action, Event, Load, Packet, Plan, RootList};
use crate::rpc::{Body, Call, Calls};
use crate::simplenet::Interface;

/// Server lists that a client keeps: of the root, its own directory, and some room.
const LISTS: NonZeroU16 = NonZeroU16::new(4).expect("4 is not 0");

/// A client as an LP.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    plan: Arc<Plan>,
    me: LpId,
    interface: Interface,
    /// What it has in place of that on Ethernet.
    nic: Option<Box<Nic<Packet>>>,
    calls: Calls<InFlight>,
    cache: Cache,
    work: Work,
    done: Cell<u32>,
    refused: Cell<u32>,
    turned_away: Cell<u32>,
}
fields!(Client { interface, nic, calls, cache, work, done, refused, turned_away });

/// An operation that waits for an answer.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct InFlight {
    operation: Operation,
    action: Action,
    begun: SimTime,
}

impl Client {
    pub(crate) fn new(plan: &Arc<Plan>, me: LpId) -> Self {
        let mut cache = Cache::new(LISTS);
        if plan.metadata.root_list == RootList::Known {
            cache.insert(InodeNumber::ROOT, plan.root_servers.clone(), &mut Forget);
        }
        Self {
            nic: plan.nic(me),
            plan: Arc::clone(plan),
            me,
            interface: Interface::default(),
            calls: Calls::default(),
            cache,
            work: Work::new(),
            done: Cell::default(),
            refused: Cell::default(),
            turned_away: Cell::default(),
        }
    }

    /// Operations that have ended, refused ones included.
    pub fn done(&self) -> u32 {
        self.done.get()
    }

    /// Operations that were refused, by a server or on the way.
    pub fn refused(&self) -> u32 {
        self.refused.get()
    }

    /// Operations that were not begun because too many were in flight.
    pub fn turned_away(&self) -> u32 {
        self.turned_away.get()
    }

    /// Whether it has ended everything that it had to do.
    pub(crate) fn has_ended(&self) -> bool {
        self.calls.is_empty() && !self.work.is_left(&self.plan.metadata)
    }

    /// Its end of the link to the switch.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Its network card on Ethernet.
    pub(crate) fn nic(&self) -> Option<&Nic<Packet>> {
        self.nic.as_deref()
    }

    pub(crate) fn add_to(&self, digest: &mut Digest) {
        self.interface.add_to(digest);
        self.nic.iter().for_each(|nic| nic.add_to(digest));
        self.work.add_to(digest);
        for count in [&self.done, &self.refused, &self.turned_away] {
            digest.word(u64::from(count.get()));
        }
        digest.word(u64::try_from(self.calls.len()).expect("a length fits into 64 bits"));
    }

    pub(crate) fn waiting(&self) -> Option<String> {
        match self.calls.len() {
            0 => None,
            1 => Some("an answer".to_owned()),
            calls => Some(format!("{calls} answers")),
        }
    }

    pub(crate) fn start(&mut self, context: &mut impl Context<Event>) {
        match self.plan.metadata.load {
            Load::Closed { .. } => {
                let stagger = self.plan.stagger();
                let begins = if stagger == Nanos::ZERO {
                    Nanos::ZERO
                } else {
                    share_of(stagger, context.bits())
                };
                self.begin(SimTime::START + begins, context);
            }
            Load::Open { interarrival, .. } => self.plan_next(interarrival, context),
        }
    }

    fn plan_next(&mut self, interarrival: Nanos, context: &mut impl Context<Event>) {
        let delay = context.exponential(interarrival);
        context.send(context.me(), delay, Event::Next);
    }

    pub(crate) fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        match event {
            Event::Begins(Packet { call, body: Body::Reply(response) }) => {
                self.receive(call, response, context);
            }
            Event::Due(Packet { call, body: Body::Reply(response) }) => {
                self.receive_response(call, &response, context.now(), context);
            }
            Event::Begins(_) | Event::Due(_) => {}
            Event::Content(packet) => ethernet::expect(&mut self.nic, packet, context),
            Event::Wire(wire) => {
                let Some(Packet { call, body: Body::Reply(response) }) =
                    ethernet::arrived(&mut self.nic, wire, context)
                else {
                    return;
                };
                self.receive_response(call, &response, context.now(), context);
            }
            Event::Next => {
                let Load::Open { interarrival, in_flight_max } = self.plan.metadata.load else {
                    return self.begin(context.now(), context);
                };
                if self.calls.len() < in_flight_max as usize {
                    self.begin(context.now(), context);
                } else {
                    self.turned_away.add(context, 1);
                    self.work.skip(context);
                }
                if self.work.is_left(&self.plan.metadata) {
                    self.plan_next(interarrival, context);
                }
            }
        }
    }

    /// Begins the next operation at `at`, if there is one.
    fn begin(&mut self, at: SimTime, context: &mut impl Context<Event>) {
        if self.nic.is_some() && at > context.now() {
            // A card sends what it is given at once.
            let wait = at.since(context.now());
            return context.send(context.me(), wait, Event::Next);
        }
        let next = self.work.next(&self.plan.metadata, self.me.get(), context);
        if let Some((action, command)) = next {
            let step = Operation::begin(command, &self.cache);
            self.go_on(step, action, at, at, context);
        }
    }

    /// An answer begins to arrive. Nothing else happens to a client with one operation at a time until
    /// it is there, so that it can be taken at once; one with more may do something in between.
    fn receive(&mut self, call: Call, response: Response, context: &mut impl Context<Event>) {
        let passage = self.plan.reply_passage(&self.plan.client, &response);
        let now = context.now();
        let whole = self.interface.receive(context, now, passage.transmission);
        match self.plan.metadata.load {
            Load::Closed { .. } => self.receive_response(call, &response, whole, context),
            Load::Open { .. } => {
                context.send(context.me(), whole.since(now), Event::Due(call.reply(response)));
            }
        }
    }

    /// Takes an answer that is there at `whole`.
    fn receive_response(
        &mut self,
        call: Call,
        response: &Response,
        whole: SimTime,
        context: &mut impl Context<Event>,
    ) {
        let Some(InFlight { operation, action, begun }) = self.calls.end(context, call) else {
            return;
        };
        let step = operation.next(response, &mut self.cache, context);
        self.go_on(step, action, begun, whole, context);
    }

    /// Does `step` of an operation at `at`.
    fn go_on(
        &mut self,
        step: Step,
        action: Action,
        begun: SimTime,
        at: SimTime,
        context: &mut impl Context<Event>,
    ) {
        match step {
            Step::Send { server, request, then } => {
                let memory = InFlight { operation: then, action, begun };
                let server = self.plan.server_lp(server);
                let call = self.calls.begin(context, self.me, server, memory);
                self.send(call.request(request), at, context);
            }
            Step::Done(response) => self.end(action, begun, at, &response, context),
        }
    }

    fn send(&mut self, packet: Packet, at: SimTime, context: &mut impl Context<Event>) {
        if self.nic.is_some() {
            return ethernet::send(&mut self.nic, &self.plan, packet, context);
        }
        let passage = self.plan.passage(&self.plan.client, &packet);
        let begins = self.interface.send(context, at, passage);
        let delay = begins.since(context.now());
        let switch = self.plan.client_switch(self.me);
        context.send(switch, delay, Event::Begins(packet));
    }

    fn end(
        &mut self,
        action: Action,
        begun: SimTime,
        at: SimTime,
        response: &Response,
        context: &mut impl Context<Event>,
    ) {
        self.done.add(context, 1);
        match response {
            Ok(Reply::Number(number)) if action == Action::MakeDirectory => {
                self.work.enter(*number, context);
            }
            Ok(_) => {}
            Err(_) => self.refused.add(context, 1),
        }
        let response_us = at.since(begun).as_secs_f64() * 1e6;
        context.tally(self.plan.response_us, response_us);
        context.record(self.plan.series(action), response_us);
        if let Load::Closed { think } = self.plan.metadata.load {
            self.begin(at + think, context);
        }
    }
}

/// The share of `span` that 64 random bits stand for, from nothing to less than all of it.
fn share_of(span: Nanos, bits: u64) -> Nanos {
    let share = (u128::from(span.get()) * u128::from(bits)) >> 64;
    Nanos::new(u64::try_from(share).expect("a share is less than the span"))
}
