//! Traffic of others while a program runs: streams of a constant rate between two hosts.
//!
//! Where loads are summed up or streams share cables, such a stream takes its rate from every lane of its way and gives
//! way to nobody. Frame by frame two more ranks send and receive a frame each time that the rate allows one, on a
//! connection of their own; with TCP it slows down where cables are full, as any other.

use meikyo_fabric::Wiring;
use meikyo_units::{BitsPerSecond, Nanos};

use super::network::{Network, PAYLOAD};
use super::placement::Placement;
use super::ranks::{Op, RankProgram, Script, connection, number};
use crate::completions::count_f64;

/// What ranks of the background are busy with, which is told of nobody.
pub(super) const BACKGROUND: &str = "background";

/// A stream between two hosts, by their names.
#[derive(Debug, Clone, PartialEq)]
pub struct Background {
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Data of it, headers not counted.
    pub rate: BitsPerSecond,
}

/// A stream of the background that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongBackground {
    /// There is no such host.
    #[error("`{host}` of the background traffic is no host of the fabric")]
    Unknown {
        /// As it is written.
        host: String,
    },
    /// It stays within a host.
    #[error("background traffic from `{host}` to itself takes no cable")]
    Within {
        /// The host that would send to itself.
        host: String,
    },
    /// Nothing is left for the program.
    #[error("background traffic leaves the program nothing of a cable: {lane}")]
    Full {
        /// The lane in words.
        lane: String,
    },
}

/// Streams between places of hosts, and data of each a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams(Vec<(usize, usize, f64)>);

impl Streams {
    pub(super) fn new(wiring: &Wiring, wanted: &[Background]) -> Result<Self, WrongBackground> {
        let place = |name: &String| {
            let found = wiring.hosts.iter().position(|host| host.name == *name);
            found.ok_or_else(|| WrongBackground::Unknown { host: name.clone() })
        };
        let stream = |one: &Background| {
            let (from, to) = (place(&one.from)?, place(&one.to)?);
            if from == to {
                return Err(WrongBackground::Within { host: one.from.clone() });
            }
            Ok((from, to, count_f64(one.rate.get()) / 8.0))
        };
        wanted.iter().map(stream).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A network in which they have taken what they take; their connections are numbered behind those of `ranks`.
    pub(super) fn taken_from(
        &self,
        network: &Network,
        ranks: usize,
    ) -> Result<Network, WrongBackground> {
        let mut left = network.clone();
        let mut lanes = Vec::new();
        for (at, (from, to, bytes_per_s)) in self.0.iter().enumerate() {
            let [sender, receiver] = places(ranks, at);
            lanes.clear();
            network.route(*from, *to, connection(sender, receiver), &mut lanes);
            for &lane in &lanes {
                if !left.take(lane, *bytes_per_s) {
                    return Err(WrongBackground::Full { lane: network.lane_name(lane) });
                }
            }
        }
        Ok(left)
    }

    /// A program with them beside it for so long, and where its ranks are.
    pub(super) fn beside(
        &self,
        program: &RankProgram,
        placement: &Placement,
        until: Nanos,
    ) -> (RankProgram, Placement) {
        let ranks = program.ranks();
        let mut scripts: Vec<Script> =
            (0..ranks).map(|rank| program.script(rank).clone()).collect();
        let mut hosts = Vec::new();
        for (at, (from, to, bytes_per_s)) in self.0.iter().enumerate() {
            let [sender, receiver] = places(ranks, at).map(number);
            let span = Nanos::from_secs_f64(f64::from(PAYLOAD) / bytes_per_s).max(Nanos::new(1));
            let frames = until.get().div_ceil(span.get());
            let what = BACKGROUND;
            let send = Op::Send { to: receiver, tag: 0, bytes: u64::from(PAYLOAD) };
            let receive = Op::Receive { from: sender, tag: 0 };
            let [mut sends, mut receives] = [Script::default(), Script::default()];
            sends.repeat(frames, [Op::Compute { span, what }, send]);
            receives.repeat(frames, [receive, Op::Wait { what }]);
            scripts.extend([sends, receives]);
            hosts.extend([*from, *to]);
        }
        (RankProgram::new(scripts), placement.with(hosts))
    }
}

/// The ranks of a stream, behind those of a program.
fn places(ranks: usize, at: usize) -> [usize; 2] {
    [ranks + 2 * at, ranks + 2 * at + 1]
}
