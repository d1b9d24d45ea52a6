//! The packet method against the same thing written down once more, as simply as can be: an event for all that
//! happens, one after the other, without looking ahead or back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::LazyLock;

use meikyo_models::prediction::packet::{self, PacketOptions};
use meikyo_models::prediction::{LaneEnd, Network, Op, RankProgram, Script};
use meikyo_units::{Bytes, Nanos};
use proptest::prelude::*;

use crate::packet::{CONTROL_NS, FRAME_NS, HOP_NS, LATENCY, PAUSED, PAYLOAD, network, placement};

/// Octets of a full frame that are no data, what an octet takes, and the least frame.
const OVERHEAD: u64 = 90;
const OCTET_NS: u64 = 8;
const LEAST: u64 = 84;
const FULL: u64 = PAYLOAD + OVERHEAD;

/// A message: when its rank sends it, from where to where, and how much.
#[derive(Clone, Copy, Debug)]
struct Message {
    at: u64,
    from: usize,
    to: usize,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    message: usize,
    /// Which lane of its message's way it is on.
    step: usize,
    payload: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A rank sends.
    Begin(usize),
    /// A frame has arrived.
    Arrived(Frame),
    /// The sender of a lane is told to stop, or to go on.
    Pause(usize, bool),
    /// A lane has carried its frame: after everything else of its instant.
    Free(usize),
}

/// What waits for a lane, at a card or at a port of a switch.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Message { message: usize, left: u64 },
    Frame { frame: Frame, input: usize },
}

#[derive(Clone, Debug, Default)]
struct Lane {
    waiting: VecDeque<Waiting>,
    free_at: u64,
    stopped: bool,
    /// What came by it and waits in the switch behind it, and whether its sender was told to stop.
    octets: u64,
    told: bool,
}

/// What is compared.
#[derive(Debug, PartialEq, Eq, Default)]
struct Ran {
    time: u64,
    hops: u64,
    stops: u64,
    queued_max: u64,
    carried: Vec<u64>,
    /// How long the receiver of each message waited for it when it had all before it in the list.
    waited: Vec<u64>,
}

/// An event after its time and turn, the number of the host or switch that made it, and when that did.
type Due = (u64, usize, usize, u64, Event);

struct Reference {
    ways: Vec<Vec<usize>>,
    ends: Vec<[LaneEnd; 2]>,
    lanes: Vec<Lane>,
    missing: Vec<u64>,
    queued: BTreeMap<usize, u64>,
    events: BinaryHeap<Reverse<Due>>,
    made: u64,
    hosts: usize,
    stop_at: u64,
    ran: Ran,
}

fn octets(payload: u64) -> u64 {
    (payload + OVERHEAD).max(LEAST)
}

impl Reference {
    fn run(network: &Network, messages: &[Message], buffer: u64) -> Ran {
        let count = network.lanes().len();
        let way = |message: &Message| {
            let mut lanes = Vec::new();
            let [from, to] = [message.from, message.to].map(|host| u64::try_from(host).unwrap());
            network.route(message.from, message.to, from << 32 | to, &mut lanes);
            lanes
        };
        let room = (2 * HOP_NS + CONTROL_NS - 48) / OCTET_NS + 3 * FULL;
        let mut own = Self {
            ways: messages.iter().map(way).collect(),
            ends: (0..count).map(|lane| network.ends(lane)).collect(),
            lanes: vec![Lane::default(); count],
            missing: messages.iter().map(|message| message.bytes).collect(),
            queued: BTreeMap::new(),
            events: BinaryHeap::new(),
            made: 0,
            hosts: network.hosts(),
            stop_at: buffer - room,
            ran: Ran { carried: vec![0; count], waited: vec![0; messages.len()], ..Ran::default() },
        };
        for (number, message) in messages.iter().enumerate() {
            own.at(message.at, Event::Begin(number));
        }
        while let Some(Reverse((now, .., event))) = own.events.pop() {
            match event {
                Event::Begin(message) => {
                    let left = messages[message].bytes;
                    let lane = own.ways[message][0];
                    own.lanes[lane].waiting.push_back(Waiting::Message { message, left });
                    own.serve(lane, now);
                }
                Event::Arrived(frame) => own.arrived(frame, now),
                Event::Pause(lane, stop) => {
                    own.lanes[lane].stopped = stop;
                    // Whoever goes on does so after what else arrives now.
                    own.at(now, Event::Free(lane));
                }
                Event::Free(lane) => own.serve(lane, now),
            }
        }
        assert!(own.missing.iter().all(|missing| *missing == 0));
        // Up to now every one is when the message was there. Who sends begins to wait after its last message.
        let mut since = vec![0; own.hosts];
        messages.iter().for_each(|message| since[message.from] = message.at);
        for (message, waited) in messages.iter().zip(&mut own.ran.waited) {
            let there = (*waited).max(since[message.to]);
            *waited = there - since[message.to];
            since[message.to] = there;
        }
        own.ran
    }

    fn at(&mut self, at: u64, event: Event) {
        let maker = match event {
            Event::Begin(message) => self.ends[self.ways[message][0]][0],
            Event::Arrived(frame) => self.ends[self.ways[frame.message][frame.step]][0],
            Event::Pause(lane, _) => self.ends[lane][1],
            Event::Free(lane) => self.ends[lane][0],
        };
        let maker = match maker {
            LaneEnd::Host(host) => host,
            LaneEnd::Switch(switch) => self.hosts + switch,
        };
        // Frames in the order of their inputs, then pause frames, then what leaves.
        let turn = match event {
            Event::Begin(_) => 0,
            Event::Arrived(frame) => {
                let lane = self.ways[frame.message][frame.step];
                let same =
                    |other: &&[LaneEnd; 2]| other[1] == self.ends[lane][1] && other[0] != other[1];
                self.ends[..lane].iter().filter(same).count()
            }
            Event::Pause(..) => 1_000,
            Event::Free(_) => 2_000,
        };
        self.made += 1;
        self.events.push(Reverse((at, turn, maker, self.made, event)));
    }

    fn arrived(&mut self, frame: Frame, now: u64) {
        let way = &self.ways[frame.message];
        let [input, next] =
            [way.get(frame.step), way.get(frame.step + 1)].map(Option::<&usize>::copied);
        let input = input.unwrap();
        let Some(lane) = next else {
            self.missing[frame.message] -= frame.payload;
            if self.missing[frame.message] == 0 {
                self.ran.time = self.ran.time.max(now + LATENCY);
                self.ran.waited[frame.message] = now + LATENCY;
            }
            return;
        };
        let frame = Frame { step: frame.step + 1, ..frame };
        let idle = self.lanes[lane].waiting.is_empty();
        self.lanes[lane].waiting.push_back(Waiting::Frame { frame, input });
        let size = octets(frame.payload);
        self.lanes[input].octets += size;
        let LaneEnd::Switch(switch) = self.ends[lane][0] else { unreachable!() };
        *self.queued.entry(switch).or_default() += size;
        if idle {
            self.serve(lane, now);
        }
        self.ran.queued_max = self.ran.queued_max.max(self.queued[&switch]);
        if !self.lanes[input].told && self.lanes[input].octets > self.stop_at {
            self.lanes[input].told = true;
            self.ran.stops += 1;
            self.at(now + HOP_NS + LEAST * OCTET_NS, Event::Pause(input, true));
        }
    }

    /// Sends what waits first, if nothing prevents that.
    fn serve(&mut self, at: usize, now: u64) {
        let lane = &mut self.lanes[at];
        if lane.stopped || lane.free_at > now {
            return;
        }
        let Some(first) = lane.waiting.pop_front() else { return };
        let frame = match first {
            Waiting::Frame { frame, input } => {
                let size = octets(frame.payload);
                let LaneEnd::Switch(switch) = self.ends[at][0] else { unreachable!() };
                *self.queued.get_mut(&switch).unwrap() -= size;
                let from = &mut self.lanes[input];
                from.octets -= size;
                if from.told && from.octets <= self.stop_at.saturating_sub(2 * FULL) {
                    from.told = false;
                    let heard = now + HOP_NS + LEAST * OCTET_NS;
                    self.at(heard, Event::Pause(input, false));
                }
                frame
            }
            Waiting::Message { message, left } => {
                let payload = left.min(PAYLOAD);
                if left > payload {
                    let left = left - payload;
                    lane.waiting.push_back(Waiting::Message { message, left });
                }
                Frame { message, step: 0, payload }
            }
        };
        let end = now + octets(frame.payload) * OCTET_NS;
        self.lanes[at].free_at = end;
        self.ran.hops += 1;
        self.ran.carried[at] += frame.payload;
        self.at(end, Event::Free(at));
        self.at(end + HOP_NS, Event::Arrived(frame));
    }
}

/// What the packet method makes of it: rank `n` of host `n` sends each of its messages at its time.
fn predicted(network: &Network, messages: &[Message], options: PacketOptions) -> Ran {
    let number = |host: usize| u32::try_from(host).unwrap();
    let script = |own: usize| {
        let mut ops = Vec::new();
        for message in messages.iter().filter(|message| message.to == own) {
            ops.push(Op::Receive { from: number(message.from), tag: 0 });
        }
        let mut now = 0;
        for message in messages.iter().filter(|message| message.from == own) {
            if message.at > now {
                let span = Nanos::new(message.at - now);
                ops.push(Op::Compute { span, what: "compute" });
                now = message.at;
            }
            ops.push(Op::Send { to: number(message.to), tag: 0, bytes: message.bytes });
        }
        let received = (0..messages.len()).filter(|message| messages[*message].to == own);
        for (begun, message) in (0..).zip(received) {
            ops.push(Op::WaitFor { begun, what: NAMES[message] });
        }
        let mut script = Script::default();
        script.repeat(1, ops);
        script
    };
    let program = RankProgram::new((0..network.hosts()).map(script).collect());
    let run = packet::run(network, &program, &placement(network), options).expect("it ends");
    assert_eq!(run.lost, 0);
    Ran {
        time: run.time.get(),
        hops: run.hops,
        stops: run.stops,
        queued_max: run.queued_max.get(),
        carried: run.carried.iter().map(|carried| carried.get()).collect(),
        waited: (0..messages.len())
            .map(|message| run.spent.iter().find(|(name, _)| *name == NAMES[message]))
            .map(|spent| spent.unwrap().1.get())
            .collect(),
    }
}

/// A name for each message, so that what is waited for it is told by itself.
static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| (0..60).map(|message| &*format!("message {message}").leak()).collect());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn frames_stop_and_go_at_the_same_instants_as_in_the_reference(
        topology in prop::sample::select(vec!["mesh 2", "tree 3", "ring 4", "torus 3x3"]),
        buffer in 6_000_u64..40_000,
        // With the larger two, frames often arrive at the same instant.
        step in prop::sample::select(vec![1, FRAME_NS / 2, FRAME_NS]),
        drawn in prop::collection::vec((0_u64..900_000, any::<[prop::sample::Index; 2]>(), 1_u64..120_000), 1..60),
    ) {
        let network = network(topology, 3, false);
        let hosts = network.hosts();
        let mut pairs = BTreeSet::new();
        let mut messages: Vec<Message> = drawn
            .into_iter()
            .map(|(at, ends, bytes)| {
                let [from, to] = ends.map(|end| end.index(hosts));
                Message { at: at / step * step, from, to, bytes }
            })
            .filter(|message| message.from != message.to)
            .filter(|message| pairs.insert([message.from, message.to]))
            .collect();
        // No host begins two at the same instant.
        messages.sort_by_key(|message| message.at);
        let mut next = vec![0; hosts];
        for message in &mut messages {
            message.at = message.at.max(next[message.from]);
            next[message.from] = message.at + step;
        }
        prop_assume!(!messages.is_empty());
        let options = PacketOptions { port_buffer: Bytes::new(buffer), ..PAUSED };
        prop_assert_eq!(
            predicted(&network, &messages, options),
            Reference::run(&network, &messages, buffer)
        );
    }
}
