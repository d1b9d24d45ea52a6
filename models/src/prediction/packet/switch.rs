//! A switch that stores frames and forwards them: a queue for each port that sends, and room that is
//! shared.
//!
//! With pause frames, octets are counted by the port that they came in by: when it has used up its
//! share, who sends to it is stopped, whatever else it has to send. Without, a frame that finds the
//! queue of its port full is lost.

use std::sync::Arc;

use meikyo_sim::{Context, LpId};
use meikyo_undo::{Cell, Deque, fields};

use super::known::Shared;
use super::port::Port;
use super::signal::{Frame, Signal};
use crate::prediction::ranks::{number, rank};

/// Frames that wait for a port.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Output {
    pub(super) port: Port,
    /// With the input that each came by.
    queue: Deque<(Frame, u32)>,
    octets: Cell<u64>,
}
fields!(Output { port, queue, octets });

/// What came in by a lane and waits.
#[derive(Clone, Debug, PartialEq)]
struct Input {
    lane: u32,
    sender: LpId,
    octets: Cell<u64>,
    /// Whether its sender was told to stop.
    stopped: Cell<bool>,
}
fields!(Input { octets, stopped });

/// A switch that stores each frame before it forwards it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Switch {
    shared: Arc<Shared>,
    pub(super) outputs: Vec<Output>,
    inputs: Vec<Input>,
    /// All octets that wait.
    octets: Cell<u64>,
    octets_max: Cell<u64>,
    lost: Cell<u64>,
    stops: Cell<u64>,
}
fields!(Switch { outputs, inputs, octets, octets_max, lost, stops });

impl Switch {
    pub(super) fn new(shared: Arc<Shared>, place: usize) -> Self {
        let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
        let own = crate::prediction::network::LaneEnd::Switch(place);
        for lane in 0..shared.network.lanes().len() {
            let [from, to] = shared.network.ends(lane);
            if from == own {
                let port = Port::new(number(lane), number(outputs.len()), shared.lp(to));
                outputs.push(Output { port, queue: Deque::default(), octets: Cell::default() });
            }
            if to == own {
                inputs.push(Input {
                    lane: number(lane),
                    sender: shared.lp(from),
                    octets: Cell::default(),
                    stopped: Cell::default(),
                });
            }
        }
        Self {
            shared,
            outputs,
            inputs,
            octets: Cell::default(),
            octets_max: Cell::default(),
            lost: Cell::default(),
            stops: Cell::default(),
        }
    }

    /// Frames that found no room.
    pub(super) fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// How often it stopped a sender.
    pub(super) fn stops(&self) -> u64 {
        self.stops.get()
    }

    /// The most octets that waited at once.
    pub(super) fn octets_max(&self) -> u64 {
        self.octets_max.get()
    }

    pub(super) fn handle(&mut self, signal: Signal, context: &mut impl Context<Signal>) {
        match signal {
            Signal::Frame { frame, lane } => self.arrived(frame, lane, context),
            Signal::Free { port } => {
                let port = rank(port);
                self.outputs[port].port.disarm(context);
                self.serve(port, context);
            }
            Signal::Pause { lane, stop } => {
                let at = rank(self.shared.port_of_lane[rank(lane)]);
                let output = &mut self.outputs[at];
                output.port.stop(stop, context);
                if !stop && !output.queue.is_empty() {
                    output.port.arm(context);
                }
            }
            _ => unreachable!("a switch has no ranks"),
        }
    }

    fn arrived(&mut self, frame: Frame, lane: u32, context: &mut impl Context<Signal>) {
        let shared = &*self.shared;
        let options = &shared.options;
        if options.spoiled_ppm > 0 && context.below(1_000_000) < options.spoiled_ppm {
            self.lose(frame, context);
            return;
        }
        let output = &mut self.outputs[rank(shared.port_of_lane[shared.next_lane(&frame)])];
        if output.queue.is_empty() && output.port.ready(context.now().as_nanos()) {
            output.port.send(shared, frame, context);
            return;
        }
        let octets = shared.octets(&frame);
        let at = shared.input_of_lane[rank(lane)];
        let input = &mut self.inputs[rank(at)];
        let used = if options.pause { input.octets.get() } else { output.octets.get() };
        let full = options.memory.is_some_and(|memory| self.octets.get() + octets > memory.get());
        if full || used + octets > options.port_buffer.get() {
            self.lose(frame, context);
            return;
        }
        output.queue.push_back(context, (frame, at));
        output.octets.add(context, octets);
        output.port.arm(context);
        input.octets.add(context, octets);
        self.octets.add(context, octets);
        if self.octets.get() > self.octets_max.get() {
            self.octets_max.set(context, self.octets.get());
        }
        if options.pause && !input.stopped.get() && input.octets.get() > shared.stop_at {
            input.stopped.set(context, true);
            self.stops.add(context, 1);
            let signal = Signal::Pause { lane: input.lane, stop: true };
            context.send(input.sender, shared.pause_delay(), signal);
        }
    }

    /// A frame is lost. With TCP its sender finds out by itself.
    fn lose(&mut self, frame: Frame, context: &mut impl Context<Signal>) {
        self.lost.add(context, 1);
        let options = &self.shared.options;
        if options.tcp.is_none() {
            let [from, _] = self.shared.ways.get(frame.way).hosts;
            let frame = Frame { step: 0, ..frame };
            context.send(LpId::new(from), options.time_out, Signal::Lost { frame });
        }
    }

    /// Sends the next frame of a port, if there is one and it may.
    fn serve(&mut self, port: usize, context: &mut impl Context<Signal>) {
        let shared = &*self.shared;
        let output = &mut self.outputs[port];
        if !output.port.ready(context.now().as_nanos()) {
            return;
        }
        let Some((frame, at)) = output.queue.pop_front(context) else { return };
        let octets = shared.octets(&frame);
        output.octets.set(context, output.octets.get() - octets);
        output.port.send(shared, frame, context);
        if !output.queue.is_empty() {
            output.port.arm(context);
        }
        self.octets.set(context, self.octets.get() - octets);
        let input = &mut self.inputs[rank(at)];
        input.octets.set(context, input.octets.get() - octets);
        if input.stopped.get() && input.octets.get() <= shared.go_at {
            input.stopped.set(context, false);
            let signal = Signal::Pause { lane: input.lane, stop: false };
            context.send(input.sender, shared.pause_delay(), signal);
        }
    }
}
