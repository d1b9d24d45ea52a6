//! What all devices of a run know, and nothing changes.

use meikyo_sim::{Group, Lp, LpId, Model};
use meikyo_units::{Bytes, Nanos};

use super::PacketOptions;
use super::signal::{Kind, Name};
use super::ways::{LanePorts, Ways};
use crate::completions::count_f64;
pub(super) use crate::prediction::network::PAYLOAD;
use crate::prediction::network::{LaneEnd, LanePlace, Network};
use crate::prediction::ranks::number;

/// What a frame takes on a cable at least, preamble and gap included.
const FRAME_MIN: u64 = 84;

/// So many frames must follow another one for a train to be worth its trouble.
pub(super) const FOLLOW_MIN: u32 = 3;

/// What all devices of a run know.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) network: Network,
    pub(crate) options: PacketOptions,
    /// The host of each rank, or whoever else sends and receives.
    pub(super) hosts: Vec<usize>,
    pub(super) ways: Ways,
    /// For each lane, what its ends know it by. The memory of a host has no ends.
    pub(super) lane_ports: Vec<LanePorts>,
    /// For each switch the lanes on which it sends and receives, in their order.
    pub(super) lanes_of_switch: Vec<[Vec<usize>; 2]>,
    /// What of a full frame is no data, preamble and gap included.
    overhead: u64,
    /// What an octet takes on a cable.
    octet_ps: u64,
    /// What a full frame takes on a cable, in octets.
    pub(super) full_octets: u64,
    /// How long a full frame takes.
    pub(super) full_span: Nanos,
    /// What the smallest frame takes.
    least_span: Nanos,
    /// How much of that is lookahead. With TCP nothing is: so many frames are small that a device would have to
    /// look at each at once. Nor is anything where cables let a frame through at once.
    ahead: Nanos,
    /// Whether full frames of a message may be told of together.
    pub(super) trains: bool,
    /// What an octet takes within a host.
    within_ps: u64,
    /// Input octets from which on its sender is stopped, and up to which it goes on.
    pub(super) stop_at: u64,
    pub(super) go_at: u64,
}

/// Nothing in here changes, and devices of two runs are never compared but for runs of one model.
impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.options == other.options && self.hosts == other.hosts
    }
}

impl Shared {
    /// `pairs` are those of ranks that send each other anything, the lower one first.
    pub(crate) fn new(
        network: Network,
        pairs: &[[u32; 2]],
        hosts: Vec<usize>,
        options: PacketOptions,
    ) -> Self {
        let lanes = 0..network.lanes().len();
        let mut ports = Numbers::default();
        let mut inputs = Numbers::default();
        let lane_ports = lanes.map(|lane| {
            let [from, to] = network.ends(lane);
            match network.lanes()[lane].place {
                LanePlace::Within { .. } => LanePorts { port: u16::MAX, input: u16::MAX },
                _ => LanePorts { port: ports.next(from), input: inputs.next(to) },
            }
        });
        let lane_ports: Vec<LanePorts> = lane_ports.collect();
        let mut lanes_of_switch = vec![[Vec::new(), Vec::new()]; network.switches()];
        for lane in 0..network.lanes().len() {
            for (end, lanes) in network.ends(lane).into_iter().zip(0..) {
                if let LaneEnd::Switch(switch) = end {
                    lanes_of_switch[switch][lanes].push(lane);
                }
            }
        }
        let octet_ps = octet_ps(network.cable_rate());
        let overhead = f64::from(PAYLOAD) * (1.0 / network.rates().payload_share - 1.0);
        let overhead = Nanos::from_secs_f64(overhead / 1e9).get();
        // What still comes after a queue asked its sender to stop: what is under way in both
        // directions, the frame that is being sent, and one that had begun to arrive.
        let round_ns = 2 * options.hop_delay.get() + FRAME_MIN * octet_ps / 1000;
        let full_octets = u64::from(PAYLOAD) + overhead;
        let room = round_ns * 1000 / octet_ps.max(1) + 3 * full_octets;
        let stop_at = options.port_buffer.get().saturating_sub(room);
        let is_plain = options.tcp.is_none() && !options.shaped;
        Self {
            ways: Ways::new(&network, pairs, &hosts, &lane_ports, options.tcp.is_some()),
            hosts,
            within_ps: self::octet_ps(network.rates().within_host),
            network,
            options,
            lane_ports,
            lanes_of_switch,
            overhead,
            octet_ps,
            full_octets,
            full_span: span(full_octets, octet_ps),
            least_span: span(FRAME_MIN, octet_ps),
            ahead: if is_plain { span(FRAME_MIN, octet_ps) } else { Nanos::ZERO },
            trains: is_plain && options.spoiled_ppm == 0,
            stop_at,
            go_at: stop_at.saturating_sub(2 * full_octets),
        }
    }

    /// What a frame with so many data takes on a cable, in octets.
    pub(super) fn octets(&self, payload: u16) -> u64 {
        let least = if self.options.shaped { 0 } else { FRAME_MIN };
        (u64::from(payload) + self.overhead).max(least)
    }

    /// How long after its beginning a frame is on its way, and may arrive at the other end of a cable without
    /// delay, in ns.
    pub(super) fn away_after(&self, payload: u16) -> u64 {
        if self.options.shaped { 0 } else { self.frame_span(payload) }
    }

    /// How long it takes, in ns.
    pub(crate) fn frame_span(&self, payload: u16) -> u64 {
        if payload == PAYLOAD {
            return self.full_span.get();
        }
        span(self.octets(payload), self.octet_ps).get()
    }

    /// What so many frames with all these data take on a cable.
    pub(super) fn span_of_frames(&self, frames: u64, data: Bytes) -> Nanos {
        let octets = u128::from(data.get()) + u128::from(frames) * u128::from(self.overhead);
        // Saturates: what was busy for 584 years was always busy.
        let ns = u64::try_from(octets * u128::from(self.octet_ps) / 1000).unwrap_or(u64::MAX);
        Nanos::new(ns)
    }

    /// What a message takes from a host to another one on an idle network, over so many cables.
    pub(crate) fn span_of(&self, data: Bytes, cables: u64) -> Nanos {
        let [full, last] = self.full_and_last(data);
        // The first frame is stored and forwarded; the others follow it without a gap.
        let first = if full > 0 { self.full_span } else { Nanos::new(last) };
        let others = Nanos::new(full + last - first.get());
        (first + self.options.hop_delay) * cables + others + self.options.messaging.latency
    }

    /// How long a message occupies a cable.
    pub(crate) fn span_on_cable(&self, data: Bytes) -> Nanos {
        Nanos::new(self.full_and_last(data).iter().sum())
    }

    /// How long all frames of a message take but the last one, and how long that does, in ns.
    fn full_and_last(&self, data: Bytes) -> [u64; 2] {
        let full = u64::from(frames(data.get())) - 1;
        let last = data.get() - full * u64::from(PAYLOAD);
        // Saturates: data beyond all frames that can be counted.
        let last = u16::try_from(last).unwrap_or(PAYLOAD);
        [full * self.full_span.get(), self.frame_span(last)]
    }

    /// How long data take between two ranks of a host.
    pub(super) fn span_within(&self, data: Bytes) -> Nanos {
        Nanos::new(data.get().saturating_mul(self.within_ps).div_ceil(1000))
    }

    /// How late a switch may look at a frame that it sends: it arrives [`Shared::lookahead`] after that at least.
    pub(super) fn late(&self, payload: u16) -> u64 {
        self.away_after(payload) - self.ahead.get()
    }

    /// Until then, nothing that a device sends now is with another one. A host looks as late as a frame's whole
    /// time, when the next one begins.
    pub(super) fn lookahead(&self, sender: LaneEnd) -> Nanos {
        match sender {
            LaneEnd::Host(_) => self.options.hop_delay,
            LaneEnd::Switch(_) => self.options.hop_delay + self.ahead,
        }
    }

    /// When a pause frame that is sent now has an effect.
    pub(super) fn pause_delay(&self) -> Nanos {
        self.options.hop_delay + self.least_span
    }

    /// Declares in a model who tells whom, whose switches follow its hosts; the hosts are these groups.
    pub(crate) fn link<L: Lp>(&self, model: &mut Model<L>, switches: Group, hosts: &[Group]) {
        for lane in 0..self.network.lanes().len() {
            let ends = self.network.ends(lane);
            let [from, to] = ends.map(|end| self.lp(end));
            if from != to {
                model.link_lps(from, to, self.lookahead(ends[0]));
                // What stops the sender.
                model.link_lps(to, from, self.pause_delay());
            }
        }
        if self.options.tcp.is_none() {
            for group in hosts {
                // What tells a host that its frame was lost.
                model.link(switches, *group, self.options.time_out);
            }
        }
    }

    /// The device at an end of a lane.
    pub(super) fn lp(&self, end: LaneEnd) -> LpId {
        match end {
            LaneEnd::Host(host) => LpId::new(number(host)),
            LaneEnd::Switch(switch) => LpId::new(number(self.network.hosts() + switch)),
        }
    }

    /// By which of the program's ways goes what is sent for a message; see [`Kind`].
    pub(super) fn way(&self, name: Name, kind: Kind) -> u32 {
        match kind {
            Kind::Request => self.ways.between(name.to, name.from),
            _ => self.ways.between(name.from, name.to),
        }
    }

    /// The message that is sent by a way, or that is spoken of.
    pub(super) fn name(&self, way: u32, [tag, number]: [u32; 2], kind: Kind) -> Name {
        let [from, to] = self.ways.get(way).ranks;
        match kind {
            Kind::Request => Name { to: from, from: to, tag, number },
            _ => Name { to, from, tag, number },
        }
    }
}

/// How many frames so many data are, at most the largest number.
pub(super) fn frames(data: u64) -> u32 {
    // Saturates: beyond 6 TB.
    u32::try_from(data.div_ceil(u64::from(PAYLOAD)).max(1)).unwrap_or(u32::MAX)
}

/// How many of `count` frames have come before `instant`, the first at `first` and the others one after each `span`.
pub(super) fn come(instant: u64, first: u64, span: u64, count: u32) -> u32 {
    let come = instant.saturating_sub(first).div_ceil(span.max(1));
    // Saturates: there are no more than `count`.
    u32::try_from(come).unwrap_or(u32::MAX).min(count)
}

/// Numbers from 0 for each end.
#[derive(Default)]
struct Numbers {
    hosts: Vec<u16>,
    switches: Vec<u16>,
}

impl Numbers {
    fn next(&mut self, end: LaneEnd) -> u16 {
        let (numbers, at) = match end {
            LaneEnd::Host(at) => (&mut self.hosts, at),
            LaneEnd::Switch(at) => (&mut self.switches, at),
        };
        if numbers.len() <= at {
            numbers.resize(at + 1, 0);
        }
        numbers[at] += 1;
        numbers[at] - 1
    }
}

/// How long so many octets take on a cable.
fn span(octets: u64, octet_ps: u64) -> Nanos {
    Nanos::new((octets * octet_ps).div_ceil(1000))
}

fn octet_ps(rate: meikyo_units::BitsPerSecond) -> u64 {
    Nanos::from_secs_f64(8e3 / count_f64(rate.get().max(1))).get()
}
