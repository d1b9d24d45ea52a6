//! The switches between clients and servers, whole or divided into several LPs.

use std::sync::Arc;

use meikyo_sim::{Context, LpId};
use meikyo_undo::fields;
use meikyo_units::SimTime;

use crate::metadata_service::plan::Line;
use crate::metadata_service::{Event, Packet, Plan};
use crate::rpc::Body;
use crate::simplenet::{Port, Switch, Switching};

/// Which of the two switches it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that the clients hang on.
    Clients,
    /// The one that the servers hang on.
    Servers,
}

/// A switch, or a part of an unlimited one.
#[derive(Clone, Debug, PartialEq)]
pub struct Relay {
    plan: Arc<Plan>,
    side: Side,
    switch: Switch,
}
fields!(Relay { switch });

/// The port to the other switch.
const TRUNK: Port = Port { network: 1, place: 0 };

/// A port of a switch, what is on it, and who is at its other end.
struct Way<'a> {
    port: Port,
    line: &'a Line,
    neighbour: LpId,
    priority: u32,
}

impl Relay {
    pub(crate) fn new(plan: &Arc<Plan>, side: Side) -> Self {
        let hosts = match side {
            Side::Clients => plan.metadata.clients.get(),
            Side::Servers => u32::from(plan.metadata.servers.get()),
        };
        let switch = Switch::new(plan.metadata.switching, &[hosts, 1]);
        Self { plan: Arc::clone(plan), side, switch }
    }

    /// Which of the two switches it is, or is a part of.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The interfaces that messages queue for here; an unlimited switch has none.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    pub(crate) fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        match event {
            Event::Begins(packet) => self.receive_packet(packet, context),
            Event::Due(packet) => self.forward_packet(packet, context.now(), context),
            Event::Next | Event::Content(_) | Event::Wire(_) => {}
        }
    }

    fn receive_packet(&mut self, packet: Packet, context: &mut impl Context<Event>) {
        let (plan, side, now) = (&*self.plan, self.side, context.now());
        let from = if upwards(side, &packet) {
            host(plan, side, &packet)
        } else {
            trunk(plan, side, &packet)
        };
        let passage = plan.passage(from.line, &packet);
        let whole = self.switch.receive(context, from.port, now, passage.transmission);
        if self.switch.switching() == Switching::Unlimited {
            self.forward_packet(packet, whole, context);
        } else {
            context.send(context.me(), whole.since(now), Event::Due(packet));
        }
    }

    /// Sends `packet` on, which is here as a whole at `whole`.
    fn forward_packet(
        &mut self,
        packet: Packet,
        whole: SimTime,
        context: &mut impl Context<Event>,
    ) {
        let (plan, side) = (&*self.plan, self.side);
        let to = if upwards(side, &packet) {
            trunk(plan, side, &packet)
        } else {
            host(plan, side, &packet)
        };
        let passage = plan.passage(to.line, &packet);
        let begins = self.switch.send(context, to.port, whole, passage);
        let delay = begins.since(context.now());
        context.send_with_priority(to.neighbour, delay, to.priority, Event::Begins(packet));
    }
}

/// Whether `packet` goes from a host of the switch on `side` to the other switch.
fn upwards(side: Side, packet: &Packet) -> bool {
    matches!(packet.body, Body::Request(_)) == (side == Side::Clients)
}

/// The way between the switch on `side` and the host at the end of `packet`'s way there.
fn host<'a>(plan: &'a Plan, side: Side, packet: &Packet) -> Way<'a> {
    let call = &packet.call;
    let (line, place, neighbour) = match side {
        Side::Clients => (&plan.client, call.caller.get(), call.caller),
        Side::Servers => (&plan.server, plan.server_place(call.callee), call.callee),
    };
    // Of messages that reach a client at one instant, that of the first server comes first; of those
    // that reach a server, that of the first client. Otherwise the parts of a divided switch, by which
    // they came, would decide.
    let other = if side == Side::Clients { call.callee } else { call.caller };
    Way { port: Port { network: 0, place }, line, neighbour, priority: other.get() }
}

/// The way between the switch on `side` and the other one, for `packet`.
fn trunk<'a>(plan: &'a Plan, side: Side, packet: &Packet) -> Way<'a> {
    let call = &packet.call;
    let neighbour = match side {
        Side::Clients => plan.server_switch(call.callee),
        Side::Servers => plan.client_switch(call.caller),
    };
    Way { port: TRUNK, line: &plan.trunk, neighbour, priority: 0 }
}
