//! A switch that stores frames and forwards them: a queue for each port that sends, and room that is
//! shared.
//!
//! With pause frames, octets are counted by the port that they came in by: when it has used up its
//! share, who sends to it is stopped, whatever else it has to send. Without, a frame that finds the
//! queue of its port full is lost.
//!
//! Frames that wait leave when the [`Agenda`] is looked at. That may be late, except for those that let a
//! sender go on: nothing may be missed there, and the switch looks at the very instant. A sender that is
//! stopped cannot go on before more octets have left than all frames of its that wait first at any port
//! ([`Switch::decides`]); others follow those only after the switch has looked.
//!
//! Without TCP, the last switch counts the frames of a message, and its host hears of the whole of it.

mod train;

use std::sync::Arc;

use meikyo_sim::{Context, LpId};
use meikyo_undo::{Cell, Deque, fields};
use meikyo_units::Nanos;

use super::agenda::Agenda;
use super::coming::Coming;
use super::known::{FOLLOW_MIN, PAYLOAD, Shared};
use super::port::Port;
use super::signal::{Frame, Signal, TURN_OF_PAUSE};
use crate::prediction::network::LaneEnd;
use crate::prediction::ranks::{number, rank};
use train::Train;

/// Frames that wait for a port.
#[derive(Clone, Debug, PartialEq)]
struct Output {
    port: Port,
    /// Whether a host receives what it sends.
    to_host: bool,
    /// The input whose train goes through it, from 1; 0 if none does.
    through: Cell<u32>,
    queue: Deque<Waiting>,
    octets: Cell<u64>,
}
fields!(Output { port, through, queue, octets });

/// A frame that waits, before the hop that it takes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Waiting {
    frame: Frame,
    /// The input that it came by, and the input that it takes at whoever receives it.
    came_by: u16,
    turn: u16,
}

/// What came in by a lane and waits.
#[derive(Clone, Debug, PartialEq)]
struct Input {
    sender: LpId,
    /// The port that sends, by its place in the sender.
    port: u32,
    octets: Cell<u64>,
    /// How many of its frames are the first ones that wait for their ports.
    first: Cell<u32>,
    /// Whether its sender was told to stop.
    stopped: Cell<bool>,
    train: Train,
}
fields!(Input { octets, first, stopped, train });

/// A switch that stores each frame before it forwards it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Switch {
    shared: Arc<Shared>,
    outputs: Vec<Output>,
    inputs: Vec<Input>,
    agenda: Agenda,
    coming: Coming,
    /// Inputs with a frame that is pressed (module `train`).
    pressed: Cell<u32>,
    /// All octets that wait.
    octets: Cell<u64>,
    octets_max: Cell<u64>,
    lost: Cell<u64>,
    stops: Cell<u64>,
}
fields!(Switch { outputs, inputs, agenda, coming, pressed, octets, octets_max, lost, stops });

impl Switch {
    pub(crate) fn new(shared: Arc<Shared>, place: usize) -> Self {
        let [sends, receives] = &shared.lanes_of_switch[place];
        let output = |&lane: &usize| {
            let [_, to] = shared.network.ends(lane);
            Output {
                port: Port::new(number(lane), shared.lp(to), &shared),
                to_host: matches!(to, LaneEnd::Host(_)),
                through: Cell::default(),
                queue: Deque::default(),
                octets: Cell::default(),
            }
        };
        let input = |&lane: &usize| Input {
            sender: shared.lp(shared.network.ends(lane)[0]),
            port: u32::from(shared.lane_ports[lane].port),
            octets: Cell::default(),
            first: Cell::default(),
            stopped: Cell::default(),
            train: Train::default(),
        };
        let outputs: Vec<Output> = sends.iter().map(output).collect();
        let inputs = receives.iter().map(input).collect();
        let ways = if shared.options.tcp.is_none() { shared.ways.coming(place) } else { 0 };
        Self {
            agenda: Agenda::new(outputs.len(), shared.late(PAYLOAD)),
            coming: Coming::new(ways),
            shared,
            outputs,
            inputs,
            pressed: Cell::default(),
            octets: Cell::default(),
            octets_max: Cell::default(),
            lost: Cell::default(),
            stops: Cell::default(),
        }
    }

    /// What sends on each of its lanes.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.outputs.iter().map(|output| &output.port)
    }

    /// Frames that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// How often it stopped a sender.
    pub(crate) fn stops(&self) -> u64 {
        self.stops.get()
    }

    /// The most octets that waited at once.
    pub(crate) fn octets_max(&self) -> u64 {
        self.octets_max.get()
    }

    pub(crate) fn handle(&mut self, signal: Signal, context: &mut impl Context<Signal>) {
        let now = context.now().as_nanos();
        self.catch_up(now, context);
        if self.pressed.get() > 0 {
            let turn = rank(context.event().priority);
            while let Some(frame) = self.take_pressed(turn, context) {
                self.arrived(frame, context);
            }
        }
        match signal {
            Signal::Frame { frame } => self.arrived(frame, context),
            Signal::Next { input } => {
                if let Some(frame) = self.take_next(rank(input), context) {
                    self.arrived(frame, context);
                }
            }
            Signal::Cut { input, last } => self.cut(rank(input), last, context),
            Signal::Pause { port, stop } => self.stop(rank(port), stop, context),
            Signal::Look => self.catch_up(now + 1, context),
            _ => unreachable!("a switch has no ranks"),
        }
        self.agenda.arm(&signal, context);
    }

    /// Sends what began to leave before an instant.
    fn catch_up(&mut self, before: u64, context: &mut impl Context<Signal>) {
        while let Some((port, start)) = self.agenda.overdue(before) {
            self.leave(port, start, context);
        }
    }

    fn arrived(&mut self, frame: Frame, context: &mut impl Context<Signal>) {
        let options = &self.shared.options;
        let now = context.now().as_nanos();
        let (_, came_by) = self.shared.ways.ends(frame.hop);
        let at = usize::from(came_by);
        let follow = self.follow(at, &frame, now);
        let mut frame_on = Frame { hop: frame.hop + 1, ..frame };
        if self.shared.trains {
            frame_on = frame_on.followed_by(0);
        }
        if options.spoiled_ppm > 0 && context.below(1_000_000) < options.spoiled_ppm {
            self.lose(&frame_on, context);
            return;
        }
        let (port, turn) = self.shared.ways.ends(frame_on.hop);
        let port = usize::from(port);
        let waiting = Waiting { frame: frame_on, came_by, turn };
        if self.outputs[port].through.get() > 0 {
            self.settle(port, u32::from(came_by), context);
        }
        let output = &self.outputs[port];
        let free = output.queue.is_empty() && output.port.ready(now);
        if free && follow >= FOLLOW_MIN {
            self.send_through(port, (frame, waiting), follow, context);
            return;
        }
        if free {
            self.send(port, waiting, now, context);
        } else {
            self.queue(port, waiting, context);
        }
        if follow > 0 {
            self.send_for(at, (frame, follow), context);
        }
    }

    /// Has a frame wait for a port, if there is room.
    fn queue(&mut self, port: usize, waiting: Waiting, context: &mut impl Context<Signal>) {
        let shared = &*self.shared;
        let options = &shared.options;
        let Waiting { frame, came_by, .. } = waiting;
        let output = &mut self.outputs[port];
        let octets = shared.octets(frame.payload);
        let at = usize::from(came_by);
        let input = &mut self.inputs[at];
        let used = if options.pause { input.octets.get() } else { output.octets.get() };
        let full = options.memory.is_some_and(|memory| self.octets.get() + octets > memory.get());
        if full || used + octets > options.port_buffer.get() {
            self.lose(&frame, context);
            return;
        }
        let first = output.queue.is_empty();
        output.queue.push_back(context, waiting);
        output.octets.add(context, octets);
        input.octets.add(context, octets);
        self.octets.add(context, octets);
        if self.octets.get() > self.octets_max.get() {
            self.octets_max.set(context, self.octets.get());
        }
        let stops = options.pause && !input.stopped.get() && input.octets.get() > shared.stop_at;
        if stops {
            input.stopped.set(context, true);
            self.stops.add(context, 1);
            let signal = Signal::Pause { port: input.port, stop: true };
            context.send_with_priority(input.sender, shared.pause_delay(), TURN_OF_PAUSE, signal);
        }
        if first {
            self.put_first(port, came_by, frame.payload, context);
        } else if stops && self.decides(at) {
            self.plan_all_of(at, context);
        }
    }

    /// A frame is lost. With TCP its sender finds out by itself.
    fn lose(&mut self, frame: &Frame, context: &mut impl Context<Signal>) {
        self.lost.add(context, 1);
        let shared = &*self.shared;
        if shared.options.tcp.is_none() {
            let way = shared.ways.get(shared.ways.of_hop(frame.hop));
            let Frame { tag, number, frames, payload, kind, .. } = *frame;
            let signal = Signal::Lost { hop: way.first, tag, number, frames, payload, kind };
            context.send(LpId::new(way.hosts[0]), shared.options.time_out, signal);
        }
    }

    /// The first frame that waits for a port leaves from `start` on.
    fn leave(&mut self, port: usize, start: u64, context: &mut impl Context<Signal>) {
        let output = &mut self.outputs[port];
        let waiting = output.queue.pop_front(context).expect("the agenda knows who waits");
        let next = output.queue.front().map(|next| (next.came_by, next.frame.payload));
        let octets = self.shared.octets(waiting.frame.payload);
        output.octets.set(context, output.octets.get() - octets);
        self.send(port, waiting, start, context);
        self.octets.set(context, self.octets.get() - octets);
        let input = &mut self.inputs[usize::from(waiting.came_by)];
        input.octets.set(context, input.octets.get() - octets);
        input.first.set(context, input.first.get() - 1);
        if input.stopped.get() && input.octets.get() <= self.shared.go_at {
            debug_assert_eq!(start, context.now().as_nanos(), "nobody looked when it left");
            input.stopped.set(context, false);
            let signal = Signal::Pause { port: input.port, stop: false };
            let delay = self.shared.pause_delay();
            context.send_with_priority(input.sender, delay, TURN_OF_PAUSE, signal);
        }
        match next {
            Some((came_by, payload)) => self.put_first(port, came_by, payload, context),
            None => self.agenda.forget(port, context),
        }
    }

    /// Puts a frame on the cable of a port. Of a message to a host, that is told when all of it has come.
    fn send(
        &mut self,
        port: usize,
        Waiting { frame, turn, .. }: Waiting,
        start: u64,
        context: &mut impl Context<Signal>,
    ) {
        let shared = &*self.shared;
        let output = &mut self.outputs[port];
        if !output.to_host || shared.options.tcp.is_some() {
            output.port.send(shared, (frame, turn), start, context);
            return;
        }
        let arrival = output.port.occupy(shared, frame.payload, start, context);
        if self.coming.completes(shared.ways.received(frame.hop), &frame, 1, context) {
            let way = shared.ways.of_hop(frame.hop);
            let name = shared.name(way, [frame.tag, frame.number], frame.kind);
            let signal = Signal::Told { name, kind: frame.kind };
            let wait = Nanos::new(arrival - context.now().as_nanos());
            let wait = wait + shared.options.messaging.latency;
            let turn = u32::from(turn);
            context.send_with_priority(output.port.receiver(), wait, turn, signal);
        }
    }

    /// A frame with so many data, which came by an input, is now the first one that waits for a port. It
    /// leaves after the one before it.
    fn put_first(
        &mut self,
        port: usize,
        came_by: u16,
        payload: u16,
        context: &mut impl Context<Signal>,
    ) {
        let output = &self.outputs[port].port;
        let (start, stopped) = (output.free_at(), output.is_stopped());
        let at = usize::from(came_by);
        self.inputs[at].first.add(context, 1);
        let decides = self.decides(at);
        if stopped {
            self.agenda.forget(port, context);
        } else {
            let late = if decides { 0 } else { self.shared.late(payload) };
            self.agenda.plan(port, start, late, context);
        }
        if decides && self.inputs[at].first.get() > 1 {
            self.plan_all_of(at, context);
        }
    }

    /// Whether a sender may go on once the frames have left that came from it and wait first.
    fn decides(&self, at: usize) -> bool {
        let input = &self.inputs[at];
        let leave = u64::from(input.first.get()) * self.shared.full_octets;
        input.stopped.get() && input.octets.get() <= self.shared.go_at + leave
    }

    /// Plans every port anew for which a frame waits first that came by an input. Some may have begun to
    /// send it already.
    fn plan_all_of(&mut self, at: usize, context: &mut impl Context<Signal>) {
        for port in 0..self.outputs.len() {
            let first = self.outputs[port].queue.front();
            if first.is_some_and(|waiting| usize::from(waiting.came_by) == at) {
                self.plan(port, self.agenda.start(port), context);
            }
        }
    }

    /// Plans that the first frame that waits for a port leaves from `start` on, unless the port is stopped.
    fn plan(&mut self, port: usize, start: u64, context: &mut impl Context<Signal>) {
        let output = &self.outputs[port];
        match output.queue.front() {
            Some(Waiting { frame, came_by, .. }) if !output.port.is_stopped() => {
                let decides = self.decides(usize::from(*came_by));
                let late = if decides { 0 } else { self.shared.late(frame.payload) };
                self.agenda.plan(port, start, late, context);
            }
            _ => self.agenda.forget(port, context),
        }
    }

    /// The receiver of a port stops it, or lets it go on.
    fn stop(&mut self, port: usize, stop: bool, context: &mut impl Context<Signal>) {
        self.settle(port, u32::MAX, context);
        let output = &mut self.outputs[port].port;
        output.stop(stop, context);
        let start = output.free_at().max(context.now().as_nanos());
        self.plan(port, start, context);
    }
}
