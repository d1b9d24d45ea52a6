//! A farm of simulated agents: thousands of hosts and switches in one process.
//!
//! [`Farm`] is a core without input and output: a datagram and `now` in, answers with the instants
//! at which they are to leave out. [`run`] puts it on a socket of the loopback network, where every
//! agent has an address of its own; a test or a simulated day calls [`Farm::handle`] with a `now`
//! of its choice. What an agent holds at any moment is a pure function of (seed, agent, step), so
//! that every run can be repeated exactly.

mod bridge;
mod cache;
mod faults;
mod layout;
mod machine;
mod objects;
mod replies;
mod script;
mod shell;
mod socket;
mod traffic;
pub mod truth;
mod users;

use std::net::Ipv4Addr;

use meikyo_units::{Nanos, WallTime};
use meikyo_worlds::random::{below, draw, stream_key};

use self::cache::CacheClock;
use self::faults::Fate;
use self::layout::Layout;
use self::machine::{Held, Machine, MachineMib, World};
use self::objects::Shape;
use self::traffic::Increments;
use self::truth::{Seen, TruthEventKind, TruthLog};
use crate::agent::{self, Access, Engine, Exchange, Find, Outcome, Responder};
use crate::usm::EngineId;
use crate::{PduType, peek_request_id};

pub use crate::agent::Stop;
pub use bridge::RowCreation;
pub use cache::Cache;
pub use faults::{Faults, ParseFaultError, ParseShareError, Share};
pub use machine::CounterStart;
pub use replies::{Replies, Reply};
pub use script::{Action, Event, ParseEventError};
pub use shell::{RunError, RunReport, run};
pub use socket::{BindError, FarmSocket};
pub use users::{AUTH_PASSWORD, PRIVACY_PASSWORD, SimulatedUserError, USER, simulated_user};

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
        access.users.push(users::default_user());
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

    /// The ordinal of the agent with this name.
    pub fn ordinal_of(&self, name: &str) -> Option<u32> {
        let digits = |prefix| name.strip_prefix(prefix)?.parse::<u32>().ok()?.checked_sub(1);
        let switch = || digits("switch")?.checked_add(self.hosts);
        let ordinal = digits("node").or_else(switch)?;
        (ordinal < self.agents() && self.name(ordinal) == name).then_some(ordinal)
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
        let vlans = if host { Vec::new() } else { vec![1] };
        let (hidden, detached) = (Vec::new(), Vec::new());
        Shape { interfaces, disks, host, rotation: 0, hidden, detached, vlans }
    }
}

#[derive(Debug)]
struct Agent {
    engine: Engine,
    machine: Machine,
    faults: Faults,
    /// Requests that reached it.
    requests: u64,
    /// Requests to set something that it has answered, or would have.
    sets: u64,
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
    start: WallTime,
    world: World,
    layouts: Vec<Layout>,
    agents: Vec<Agent>,
    responder: Responder,
    counters: FarmCounters,
    /// What is still to be done, the next at the end.
    script: Vec<Event>,
    /// When the next is due.
    next_event: Option<WallTime>,
    truth: Option<TruthLog>,
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
            start,
            world,
            layouts: Vec::new(),
            agents: Vec::new(),
            responder: Responder::new(),
            counters: FarmCounters::default(),
            script: Vec::new(),
            next_event: None,
            truth: None,
            held: Vec::new(),
            options,
        };
        for ordinal in 0..farm.options.agents() {
            let agent = farm.agent(ordinal, start);
            farm.agents.push(agent);
        }
        farm
    }

    /// Adds what is done to the agents; those at the same time in the order given.
    pub fn schedule(&mut self, events: impl IntoIterator<Item = Event>) {
        self.script.reverse();
        self.script.extend(events);
        self.script.sort_by_key(|event| event.at);
        self.script.reverse();
        self.next_event = self.script.last().map(|event| self.start + event.at);
    }

    /// Begins to record the truth, see [`truth`].
    pub fn record_truth(&mut self) {
        let head = truth::TruthHead {
            agents: self.options.agents(),
            hosts: self.options.hosts,
            seed: self.options.seed,
            step: self.options.step,
            start: self.start,
        };
        self.truth = Some(TruthLog::new(head));
    }

    /// The octets of the truth file that were not taken away yet; nothing if it is not recorded.
    pub fn truth(&mut self) -> Option<&mut Vec<u8>> {
        self.truth.as_mut().map(|log| &mut log.bytes)
    }

    fn agent(&mut self, ordinal: u32, start: WallTime) -> Agent {
        let key = stream_key(self.options.seed, ordinal.into());
        let layout = self.layout(self.options.shape(ordinal));
        let up = Nanos::from_secs(3_600 + below(draw(key, u64::MAX - 1), 30 * 86_400));
        let boots = 1 + u32::try_from(below(draw(key, u64::MAX - 2), 20)).expect("below 20");
        let engine = Engine::new(engine_id(self.options.seed, ordinal), boots, start.before(up));
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
        if let Some(bridge) = &mut machine.bridge {
            bridge.creation = self.options.faults.create;
        }
        Agent { engine, machine, faults: self.options.faults, requests: 0, sets: 0 }
    }

    /// The number of the layout with this shape.
    fn layout(&mut self, shape: Shape) -> usize {
        if let Some(known) = self.layouts.iter().position(|layout| layout.shape == shape) {
            return known;
        }
        let layout = Layout::new(shape);
        // A layout that no agent has any more makes room, so that there are no more than agents.
        let mut used = vec![false; self.layouts.len()];
        self.agents.iter().for_each(|agent| used[agent.machine.layout] = true);
        match used.iter().position(|used| !used) {
            Some(free) => {
                self.layouts[free] = layout;
                free
            }
            None => {
                self.layouts.push(layout);
                self.layouts.len() - 1
            }
        }
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

    /// Reads what answers of these agents need, all at once: after a pause of the farm a processor's
    /// caches may hold nothing of it, and one answer after the other would wait for memory each time.
    pub(super) fn fetch(&self, addresses: impl Iterator<Item = Ipv4Addr>) {
        let agents = addresses.filter_map(|address| self.agents.get(self.ordinal(address)?));
        let read = agents.fold(self.world.increments.fetch(), |read, agent| {
            let Agent { engine, machine, faults, requests, sets } = agent;
            let faults = faults.delay.get() ^ faults.late_by.get() ^ u64::from(faults.dead);
            read ^ requests ^ sets ^ u64::from(engine.boots) ^ faults ^ machine.fetch()
        });
        std::hint::black_box(read);
    }

    /// A datagram for the agent at `to` arrives at `now`: its answers are added to `replies`.
    ///
    /// `now` must not go back. Free of allocation once the lists of objects are known.
    pub fn handle(&mut self, now: WallTime, to: Ipv4Addr, request: &[u8], replies: &mut Replies) {
        while self.next_event.is_some_and(|at| at <= now) {
            self.do_next_event();
        }
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
            self.note(ordinal, now, &fate, peek_request_id(request), None);
            return;
        }
        self.held.clear();
        let held = self.truth.is_some().then_some(&mut self.held);
        let machine = &mut agent.machine;
        let set_fate = agent.faults.set_fate(machine.key, agent.sets + 1);
        let layout = &self.layouts[machine.layout];
        let mut mib = MachineMib::new(machine, layout, &self.world, (fate.error, set_fate), held);
        let start = replies.open();
        self.responder.id_shift = i32::from(fate.wrong_id);
        let outcome = agent::respond(
            &mut self.responder,
            now,
            request,
            &self.options.access,
            &mut agent.engine,
            &mut mib,
            replies.bytes(),
        );
        let Outcome::Answered(exchange) = outcome else {
            return;
        };
        self.note(ordinal, now, &fate, Some(exchange.request_id), Some(exchange));
        let is_set = exchange.kind == PduType::Set && !exchange.report;
        let unanswered = is_set && self.was_told(ordinal, now);
        if fate.answer_lost || unanswered {
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

    /// Counts a request to set something, and does what the faults say of its number; whether the answer
    /// to it gets lost.
    fn was_told(&mut self, ordinal: usize, now: WallTime) -> bool {
        let agent = &mut self.agents[ordinal];
        agent.sets += 1;
        let reboots = agent.faults.reboot_at_set == agent.sets;
        if reboots {
            agent.machine.reboot(now, &self.world);
            let machine = &agent.machine;
            (agent.engine.started, agent.engine.boots) = (machine.started, machine.boots);
        }
        let lost = reboots || agent.faults.lose_set == agent.sets;
        self.settle(ordinal);
        lost
    }

    /// Gives an agent the layout of the VLANs that it has.
    fn settle(&mut self, ordinal: usize) {
        let machine = &self.agents[ordinal].machine;
        let Some(bridge) = &machine.bridge else { return };
        let (vlans, shape) = (bridge.vlans(), &self.layouts[machine.layout].shape);
        if shape.vlans != vlans {
            let layout = self.layout(Shape { vlans, ..shape.clone() });
            self.agents[ordinal].machine.layout = layout;
        }
    }

    /// Records the truth of a request.
    #[inline]
    fn note(
        &mut self,
        ordinal: usize,
        now: WallTime,
        fate: &Fate,
        request_id: Option<i32>,
        exchange: Option<Exchange>,
    ) {
        let Some(truth) = &mut self.truth else { return };
        let machine = &self.agents[ordinal].machine;
        let list = exchange.and_then(|exchange| exchange.list);
        if let Some(number) = list.filter(|&number| truth.is_new(number)) {
            let layout = &self.layouts[machine.layout];
            let objects = self.responder.requests().list(number).into_iter().flatten();
            let moving = objects.filter_map(|(oid, find)| match find {
                Find::At(position) if layout.is_moving(position) => {
                    Some((oid, layout.subject(position)))
                }
                _ => None,
            });
            truth.list(number, moving);
        }
        let report = exchange.is_some_and(|exchange| exchange.report);
        let seen = Seen {
            flags: fate.flags() | if report { truth::flag::REPORT } else { 0 },
            agent: u32::try_from(ordinal).expect("agents are numbered with 32 bits"),
            request_id: request_id.unwrap_or(0),
            received: now,
            sent: now + fate.delay,
            uptime_cs: machine.uptime_cs(now),
            error_status: exchange.map_or(0, |exchange| exchange.error_status as u8),
            list,
        };
        truth.request(&seen, &self.held);
    }

    fn do_next_event(&mut self) {
        let Some(event) = self.script.pop() else { return };
        let at = self.start + event.at;
        self.next_event = self.script.last().map(|event| self.start + event.at);
        for &ordinal in &event.agents {
            self.act(ordinal, at, &event.action);
        }
    }

    fn act(&mut self, ordinal: u32, at: WallTime, action: &Action) {
        let Some(agent) = usize::try_from(ordinal).ok().and_then(|at| self.agents.get_mut(at))
        else {
            return;
        };
        let machine = &mut agent.machine;
        let kind = match action {
            Action::Restart | Action::RestartRenumbered => {
                machine.restart(at);
                Some(TruthEventKind::Restart)
            }
            Action::Replace => {
                machine.restart(at);
                machine.boots = 1;
                // A number that no other agent has: those of the farm are below 2^31.
                let replaced = ordinal | 1 << 31;
                agent.engine = Engine::new(engine_id(self.options.seed, replaced), 1, at);
                Some(TruthEventKind::Restart)
            }
            Action::Reboot => {
                machine.reboot(at, &self.world);
                Some(TruthEventKind::Reboot)
            }
            Action::Reset => {
                machine.reset_counters(at, &self.world);
                Some(TruthEventKind::Reset)
            }
            Action::Renumber => Some(TruthEventKind::Renumber),
            Action::Die => {
                agent.faults.dead = true;
                None
            }
            Action::Wake => {
                agent.faults.dead = false;
                None
            }
            Action::Set(settings) => {
                for setting in settings {
                    // Checked when the script was read.
                    drop(agent.faults.set(setting));
                }
                if let Some(bridge) = &mut machine.bridge {
                    bridge.creation = agent.faults.create;
                }
                None
            }
            Action::Cache(cache) => {
                machine.interface_cache = CacheClock::new(*cache);
                machine.host_cache = CacheClock::new(*cache);
                None
            }
            Action::Hide(_) | Action::Show(_) | Action::Detach(_) | Action::Attach(_) => None,
        };
        (agent.engine.started, agent.engine.boots) = (machine.started, machine.boots);
        let layout = machine.layout;
        let changed = self.layouts[layout].shape.after(action);
        let layout = changed.map_or(layout, |shape| self.layout(shape));
        if let Ok(at) = usize::try_from(ordinal)
            && let Some(agent) = self.agents.get_mut(at)
        {
            agent.machine.layout = layout;
            self.settle(at);
        }
        if let (Some(truth), Some(kind)) = (&mut self.truth, kind) {
            truth.event(ordinal, at, kind);
        }
    }
}

/// An engine id of the farm: format 5 (octets) under the enterprise number that RFC 5612 sets
/// aside for documentation.
fn engine_id(seed: u64, ordinal: u32) -> EngineId {
    let seed = stream_key(seed, u64::MAX).to_be_bytes();
    let id = [&[0x80, 0x00, 0x7e, 0xd9, 0x05], &ordinal.to_be_bytes()[..], &seed[..4]].concat();
    EngineId::from_slice(&id).unwrap_or_default()
}
