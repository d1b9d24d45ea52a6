//! A measurement under virtual time: the poll core and the simulated agents in one loop.
//!
//! The same core that measures a cluster asks a [`Farm`] that answers at virtual instants, so a day
//! is recorded in minutes and a test of thousands of intervals takes no time. Nothing waits for a
//! clock; what is recorded is what a collector on an idle machine would have recorded.
//!
//! # Cost
//! About 2 µs a poll, half of it the simulated agent.

use std::net::{IpAddr, SocketAddr};

use meikyo_cluster::Device;
use meikyo_sockets::{Datagram, SendBatch};
use meikyo_units::{Nanos, WallTime};
use meikyo_worlds::Agenda;

use crate::client::{Received, Session, Walk};
use crate::credentials::Credentials;
use crate::farm::{Farm, Replies};
use crate::poll::{DeviceSpec, Poller, RowSink};
use crate::resolve;
use crate::{Oid, Value};

/// How long a datagram takes from one side to the other: what a switch and two network stacks take
/// on an idle gigabit Ethernet.
pub const TRANSIT: Nanos = Nanos::from_micros(60);

/// How long the collector takes to hand over one request; what makes answers come one by one.
const SPACING: Nanos = Nanos::new(1_300);

/// The poll core, where its rows go, and a farm.
#[derive(Debug)]
pub struct Twin<S> {
    poller: Poller,
    sink: S,
    farm: Farm,
    devices: Vec<(Device, Credentials)>,
    now: WallTime,
    /// By how much the collector's clock was set, ns: the agents' world goes on without a step.
    clock_step_ns: i64,
    under_way: Agenda<WallTime, Answer>,
    walk_requests: u64,
    between: Option<Between>,
}

/// What happens to an answer on its way: when it left, whose it is, the request, the answer.
type Tamper = dyn FnMut(WallTime, SocketAddr, &[u8], &mut Vec<u8>);

/// Somebody between agents and collector.
struct Between(Box<Tamper>);

impl std::fmt::Debug for Between {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Between")
    }
}

/// An answer on its way.
#[derive(Debug)]
struct Answer {
    from: SocketAddr,
    octets: Vec<u8>,
}

impl<S: RowSink> Twin<S> {
    /// A measurement of `devices` on `farm` from `start` on, whose rows go to `sink`.
    pub fn new(
        start: WallTime,
        mut poller: Poller,
        sink: S,
        farm: Farm,
        devices: Vec<(Device, Credentials)>,
    ) -> Self {
        for (device, credentials) in &devices {
            poller.add_device(start, DeviceSpec::new(device, credentials.clone()));
        }
        Self {
            poller,
            sink,
            farm,
            devices,
            now: start,
            clock_step_ns: 0,
            under_way: Agenda::new(),
            walk_requests: 0,
            between: None,
        }
    }

    /// The core, for its counts and rows.
    pub fn poller(&mut self) -> &mut Poller {
        &mut self.poller
    }

    /// The farm, to let things happen to it.
    pub fn farm(&mut self) -> &mut Farm {
        &mut self.farm
    }

    /// Requests that it took to resolve names so far, the first time included.
    pub fn walk_requests(&self) -> u64 {
        self.walk_requests
    }

    /// Where virtual time stands.
    pub fn now(&self) -> WallTime {
        self.now
    }

    /// Sets the collector's clock by `step_ns`, as a person or an NTP daemon does: what the agents
    /// hold and what is under way goes on as if nothing had happened.
    pub fn step_clock(&mut self, step_ns: i64) {
        self.now = moved(self.now, step_ns);
        self.clock_step_ns += step_ns;
        self.under_way.shift(|received| moved(received, step_ns));
        self.poller.handle_clock_step(self.now, step_ns);
    }

    /// Lets `tamper` change every answer to a poll, for agents that misbehave as no farm does.
    pub fn tamper_with(
        &mut self,
        tamper: impl FnMut(WallTime, SocketAddr, &[u8], &mut Vec<u8>) + 'static,
    ) {
        self.between = Some(Between(Box::new(tamper)));
    }

    /// Hands over a datagram that somebody sends in an agent's name.
    pub fn inject(&mut self, from: SocketAddr, octets: &[u8]) {
        let datagram = Datagram {
            from,
            received: Some(self.now),
            octets: &mut octets.to_vec(),
            cut: false,
            to: None,
            drops: None,
        };
        self.poller.handle_datagram(self.now, datagram);
    }

    /// Lets virtual time pass until `end`.
    pub fn run_until(&mut self, end: WallTime) {
        let mut sends = SendBatch::default();
        let mut replies = Replies::new();
        loop {
            let arrival = self.under_way.next_at();
            let next = self.poller.next_wakeup().into_iter().chain(arrival).min();
            let Some(next) = next.filter(|&next| next < end) else { break };
            self.now = self.now.max(next);
            self.deliver();
            self.poller.handle_time(self.now);
            self.transmit(&mut sends, &mut replies);
            for ordinal in self.poller.take_to_resolve() {
                self.resolve(ordinal);
            }
            self.poller.take_restarted().clear();
            if self.poller.in_flight() == 0 {
                self.poller.flush(&mut self.sink);
            }
        }
        self.now = self.now.max(end);
    }

    /// Ends the measurement and gives the sink back.
    pub fn finish(mut self) -> S {
        self.poller.finish(self.now, &mut self.sink);
        self.sink
    }

    /// Hands over the answers that have arrived.
    fn deliver(&mut self) {
        while let Some((received, mut answer)) = self.under_way.pop_until(self.now) {
            let datagram = Datagram {
                from: answer.from,
                received: Some(received),
                octets: &mut answer.octets,
                cut: false,
                to: None,
                drops: None,
            };
            self.poller.handle_datagram(received, datagram);
        }
    }

    /// Carries requests to the agents, and their answers onto the way back.
    fn transmit(&mut self, sends: &mut SendBatch, replies: &mut Replies) {
        loop {
            self.poller.poll_transmit(self.now, sends);
            if sends.is_empty() {
                return;
            }
            for index in 0..sends.len() {
                let SocketAddr::V4(to) = sends.address(index) else { continue };
                let arrival = self.now + TRANSIT + SPACING * index as u64;
                let arrival = moved(arrival, -self.clock_step_ns);
                replies.clear();
                self.farm.handle(arrival, *to.ip(), sends.datagram(index), replies);
                for reply in replies.iter() {
                    let from = SocketAddr::new(IpAddr::V4(reply.from), to.port());
                    let mut octets = reply.bytes.to_vec();
                    if let Some(Between(tamper)) = &mut self.between {
                        tamper(reply.send_at, from, sends.datagram(index), &mut octets);
                    }
                    let received = moved(reply.send_at, self.clock_step_ns) + TRANSIT;
                    self.under_way.add(received, Answer { from, octets });
                }
            }
        }
    }

    /// Walks a device's tables at once: virtual time stands still meanwhile.
    fn resolve(&mut self, ordinal: u32) {
        let (device, credentials) = &self.devices[ordinal as usize];
        let now = moved(self.now, -self.clock_step_ns);
        match walk(&mut self.farm, now, device, credentials) {
            Some((walked, requests)) => {
                self.walk_requests += u64::from(requests);
                let (mut plan, _) = resolve::plan(device, &walked);
                plan.requests = requests;
                self.poller.set_plan(self.now, ordinal, plan);
            }
            None => self.poller.resolution_failed(self.now, ordinal),
        }
    }
}

/// An instant as a clock shows it that was set by `step_ns`.
fn moved(at: WallTime, step_ns: i64) -> WallTime {
    WallTime::from_nanos(at.as_nanos().saturating_add(step_ns))
}

/// Requests of one walk that may go unanswered.
const LOST_MAX: u32 = 64;

/// Everything that the plan of a device needs to know and how many requests that took; `None` if its
/// agent does not say it.
fn walk(
    farm: &mut Farm,
    now: WallTime,
    device: &Device,
    credentials: &Credentials,
) -> Option<(Vec<(Oid, Value)>, u32)> {
    let IpAddr::V4(to) = device.address.ip() else { return None };
    let mut session = Session::new(now, credentials.clone());
    let mut walk = Walk::new(credentials.version(), resolve::walks_for(device));
    let (mut replies, mut request, mut id, mut lost) = (Replies::new(), Vec::new(), 1, 0);
    while let Some(pdu) = walk.request(id) {
        request.clear();
        session.encode(now, &pdu, &mut request);
        replies.clear();
        farm.handle(now, to, &request, &mut replies);
        let answer = replies
            .iter()
            .find_map(|reply| session.receive(now, id, &mut reply.bytes.to_vec()).ok());
        match answer {
            Some(Received::Answer(pdu)) => walk.accept(pdu).ok()?,
            Some(_) => {}
            None => {
                lost += 1;
                if lost > LOST_MAX {
                    return None;
                }
            }
        }
        id += 1;
    }
    Some((walk.into_found(), id.unsigned_abs() - 1))
}
