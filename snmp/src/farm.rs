//! A farm of simulated agents: thousands of hosts and switches in one process.
//!
//! [`Farm`] is a core without input and output: a datagram and `now` in, answers with the instants
//! at which they are to leave out. [`run`] puts it on a socket of the loopback network, where every
//! agent has an address of its own; a test or a simulated day calls [`Farm::handle`] with a `now`
//! of its choice. What an agent holds at any moment is a pure function of (seed, agent, step), so
//! that every run can be repeated exactly.

mod cache;
mod draw;
mod faults;
mod machine;
mod objects;
mod replies;
mod shell;
mod socket;
mod traffic;

use std::net::Ipv4Addr;

use meikyo_units::{Nanos, WallTime};

use self::cache::CacheClock;
use self::draw::{below, draw, stream_key};
use self::machine::{Held, Machine, MachineMib, World};
use self::objects::{Layout, Shape};
use self::traffic::Increments;
use crate::agent::{self, Access, Engine, Outcome, Responder};

pub use cache::Cache;
pub use faults::{Faults, ParseFaultError, ParseShareError, Share};
pub use machine::CounterStart;
pub use replies::{Replies, Reply};
pub use shell::{RunError, RunReport, Stop, run};

/// What a farm is made of.
#[derive(Debug, Clone)]
pub struct FarmOptions {
    /// How many hosts; they have the first addresses.
    pub hosts: u32,
    /// How many switches; they follow.
    pub switches: u32,
    /// Address of the first agent; the others count up from it.
    pub first: Ipv4Addr,
    /// Interfaces of a host: `lo`, `eth0`, `eth1` ...
    pub interfaces: u32,
    /// Paths of a host's disks.
    pub disks: Vec<String>,
    /// Ports of a switch: `port1`, `port2` ...
    pub ports: u32,
    /// Span between two changes of the counters.
    pub step: Nanos,
    /// How agents cache.
    pub cache: Cache,
    /// Where the counters begin.
    pub counters: CounterStart,
    /// Who may ask.
    pub access: Access,
    /// What goes wrong from the beginning, with every agent.
    pub faults: Faults,
    /// Everything random follows from it.
    pub seed: u64,
}

impl FarmOptions {
    /// `hosts` healthy hosts and `switches` switches of 48 ports at 127.1.0.1 and on, community
    /// `public` to read and `private` to write.
    pub fn new(hosts: u32, switches: u32) -> Self {
        let mut access = Access::read_only(b"public");
        access.communities.push(agent::Community { name: b"private".to_vec(), write: true });
        Self {
            hosts,
            switches,
            first: Ipv4Addr::new(127, 1, 0, 1),
            interfaces: 3,
            disks: vec!["/".into(), "/scratch".into()],
            ports: 48,
            step: Nanos::from_millis(100),
            cache: Cache::None,
            counters: CounterStart::Random,
            access,
            faults: Faults::default(),
            seed: 1,
        }
    }

    /// How many agents.
    pub fn agents(&self) -> u32 {
        self.hosts.saturating_add(self.switches)
    }

    /// The name of agent `ordinal`: `node001`, then `switch01`.
    pub fn name(&self, ordinal: u32) -> String {
        let digits = |count: u32, least: usize| count.to_string().len().max(least);
        match ordinal.checked_sub(self.hosts) {
            None => format!("node{:0width$}", ordinal + 1, width = digits(self.hosts, 3)),
            Some(switch) => {
                format!("switch{:0width$}", switch + 1, width = digits(self.switches, 2))
            }
        }
    }

    /// The address of agent `ordinal`.
    pub fn address(&self, ordinal: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.first).wrapping_add(ordinal))
    }

    fn shape(&self, ordinal: u32) -> Shape {
        let host = ordinal < self.hosts;
        let interfaces = if host {
            (0..self.interfaces)
                .map(|number| match number {
                    0 => "lo".to_owned(),
                    number => format!("eth{}", number - 1),
                })
                .collect()
        } else {
            (1..=self.ports).map(|port| format!("port{port}")).collect()
        };
        let disks = if host { self.disks.clone() } else { Vec::new() };
        Shape { interfaces, disks, host, rotation: 0, hidden: Vec::new() }
    }
}

/// One simulated agent.
#[derive(Debug)]
struct Agent {
    engine: Engine,
    machine: Machine,
    faults: Faults,
    /// Requests that reached it.
    requests: u64,
}

/// What a farm did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FarmCounters {
    /// Datagrams for an agent of the farm.
    pub requests: u64,
    /// Answers that were to be sent, copies not counted.
    pub answers: u64,
    /// Requests or answers that were lost on purpose.
    pub lost: u64,
    /// Datagrams for an address that no agent has.
    pub strangers: u64,
}

/// Simulated agents without input and output.
#[derive(Debug)]
pub struct Farm {
    options: FarmOptions,
    world: World,
    layouts: Vec<Layout>,
    agents: Vec<Agent>,
    responder: Responder,
    counters: FarmCounters,
    held: Vec<Held>,
}

impl Farm {
    /// A farm whose step 0 is the one that `start` lies in. Agents have been up for an hour to a
    /// month by then.
    pub fn new(options: FarmOptions, start: WallTime) -> Self {
        // Half a step off the multiples of it: a collector that asks at the multiples sees exactly
        // one change from one question to the next.
        let half = Nanos::new(options.step.get() / 2);
        let world = World {
            origin: (start + half).floor(options.step.max(Nanos::new(1))).before(half),
            step: options.step,
            increments: Increments::octets(),
        };
        let mut farm = Self {
            world,
            layouts: Vec::new(),
            agents: Vec::new(),
            responder: Responder::new(),
            counters: FarmCounters::default(),
            held: Vec::new(),
            options,
        };
        for ordinal in 0..farm.options.agents() {
            let agent = farm.agent(ordinal, start);
            farm.agents.push(agent);
        }
        farm
    }

    fn agent(&mut self, ordinal: u32, start: WallTime) -> Agent {
        let key = stream_key(self.options.seed, ordinal.into());
        let layout = self.layout(self.options.shape(ordinal));
        let up = Nanos::from_secs(3_600 + below(draw(key, u64::MAX - 1), 30 * 86_400));
        let engine = Engine {
            id: engine_id(self.options.seed, ordinal),
            boots: 1 + u32::try_from(below(draw(key, u64::MAX - 2), 20)).unwrap_or(0),
            started: start.before(up),
        };
        let mut machine = Machine::new(
            self.options.name(ordinal),
            key,
            (engine.started, engine.boots),
            (layout, &self.layouts[layout]),
            self.options.counters,
            &self.world,
        );
        machine.interface_cache = CacheClock::new(self.options.cache);
        machine.host_cache = CacheClock::new(self.options.cache);
        Agent { engine, machine, faults: self.options.faults, requests: 0 }
    }

    /// The number of the layout with this shape.
    fn layout(&mut self, shape: Shape) -> usize {
        if let Some(known) = self.layouts.iter().position(|layout| layout.shape == shape) {
            return known;
        }
        self.layouts.push(Layout::new(shape));
        self.layouts.len() - 1
    }

    /// What it was made of.
    pub fn options(&self) -> &FarmOptions {
        &self.options
    }

    /// What it did so far.
    pub fn counters(&self) -> FarmCounters {
        self.counters
    }

    /// What its answering side counted.
    pub fn agent_counters(&self) -> agent::Counters {
        self.responder.counters()
    }

    /// The agent that has this address.
    #[inline]
    fn ordinal(&self, address: Ipv4Addr) -> Option<usize> {
        let ordinal = u32::from(address).checked_sub(u32::from(self.options.first))?;
        usize::try_from(ordinal).ok().filter(|&ordinal| ordinal < self.agents.len())
    }

    /// A datagram for the agent at `to` arrives at `now`: its answers are added to `replies`.
    ///
    /// `now` must not go back. Free of allocation once the lists of objects are known.
    pub fn handle(&mut self, now: WallTime, to: Ipv4Addr, request: &[u8], replies: &mut Replies) {
        let Some(ordinal) = self.ordinal(to) else {
            self.counters.strangers += 1;
            return;
        };
        self.counters.requests += 1;
        let agent = &mut self.agents[ordinal];
        let fate = agent.faults.fate(agent.machine.key, agent.requests);
        agent.requests += 1;
        if fate.request_lost {
            self.counters.lost += 1;
            return;
        }
        let machine = &mut agent.machine;
        let layout = &self.layouts[machine.layout];
        self.held.clear();
        let mut mib =
            MachineMib::new(machine, layout, &self.world, fate.error, Some(&mut self.held));
        let start = replies.open();
        let outcome = agent::respond(
            &mut self.responder,
            now,
            request,
            &self.options.access,
            &mut agent.engine,
            &mut mib,
            replies.bytes(),
        );
        if let Outcome::Answered(_) = outcome {
            if fate.answer_lost {
                self.counters.lost += 1;
                replies.drop_from(start);
                return;
            }
            self.counters.answers += 1;
            replies.close(start, now + fate.delay, to, fate.truncate);
            if let Some(after) = fate.duplicate {
                replies.repeat_last(after);
            }
        }
    }
}

/// An engine id of the farm: format 5 (octets) under the enterprise number that RFC 5612 sets
/// aside for documentation.
fn engine_id(seed: u64, ordinal: u32) -> Vec<u8> {
    let mut id = vec![0x80, 0x00, 0x7e, 0xd9, 0x05];
    id.extend_from_slice(&ordinal.to_be_bytes());
    id.extend_from_slice(&stream_key(seed, u64::MAX).to_be_bytes()[..4]);
    id
}
