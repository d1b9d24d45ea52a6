//! Machine and program as a file says them, with a value and a default for every key.

use std::sync::Arc;

use meikyo_places::{Lines, Origin, Problems, read_table};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use super::background::Background;
use super::collective::{AllReduce, AllToAll, Collectives, Library};
use super::flow::FlowOptions;
use super::hpl::{Broadcast, GridOrder, Hpl};
use super::network::Rates;
use super::npb::{Class, Kernel, Npb};
use super::packet::{self, PacketOptions};
use super::placement::Deal;
use super::program::{LookAgain, Messaging};
use super::ranks::rank;
use super::sharing::Congestion;
use super::trace::Trace;
use crate::completions::count_f64;
use crate::parameters::{Choice, Given, Key, Parameters, Value, choice};
use crate::scenario::{ScenarioError, Setting, given_values};

/// What runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Program {
    /// The Linpack benchmark for clusters.
    Hpl(Hpl),
    /// One of the NAS Parallel Benchmarks.
    Npb(Npb),
    /// A program that was recorded.
    Trace(Replay),
}

/// A recorded program on another machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// What it did.
    pub trace: Arc<Trace>,
    /// What a rank computes of what the trace counts, each second.
    pub units_per_s: f64,
    /// Algorithms of its collective operations.
    pub collectives: Collectives,
}

impl Program {
    /// How many ranks run it.
    pub fn ranks(&self) -> usize {
        match self {
            Self::Hpl(hpl) => hpl.ranks(),
            Self::Npb(npb) => rank(npb.ranks),
            Self::Trace(replay) => replay.trace.ranks(),
        }
    }
}

/// Programs that can be predicted.
#[derive(Debug, Clone, PartialEq)]
pub enum Skeleton {
    /// The Linpack benchmark for clusters.
    Hpl,
    /// One of the NAS Parallel Benchmarks.
    Npb(Kernel),
    /// What was recorded.
    Trace(Arc<Trace>),
}

impl Skeleton {
    /// Those that nothing has to be read for, by the words of [`Skeleton::named`].
    pub fn words() -> impl Iterator<Item = &'static str> {
        std::iter::once("hpl").chain(Kernel::WORDS.iter().copied())
    }

    /// The skeleton of this word.
    pub fn named(word: &str) -> Option<Self> {
        if word == "hpl" {
            return Some(Self::Hpl);
        }
        Kernel::ALL.iter().copied().find(|kernel| kernel.word() == word).map(Self::Npb)
    }

    /// The word that arguments and reports name it by.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hpl => "hpl",
            Self::Npb(kernel) => kernel.word(),
            Self::Trace(_) => "trace",
        }
    }
}

/// How a prediction is calculated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// What is computed and carried, shared evenly over the run ([`super::Loads::staggered`]).
    Static,
    /// Messages are streams that share cables max-min fairly ([`super::flow`]).
    Flow,
    /// Every frame goes through the queues of the switches ([`super::packet`]).
    Packet,
}
choice!(Method { Static = "static", Flow = "flow", Packet = "packet" });

/// What is predicted: a machine and a program, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Which program is predicted, with its size.
    pub program: Program,
    /// How its time is calculated.
    pub method: Method,
    /// What of the cables' rates programs see.
    pub rates: Rates,
    /// Messages and full lanes.
    pub flow: FlowOptions,
    /// Frames and queues.
    pub packet: PacketOptions,
    /// How ranks are dealt to hosts.
    pub deal: Deal,
    /// The host of each rank by name, in place of that.
    pub list: Option<Arc<[String]>>,
    /// Traffic of others.
    pub background: Vec<Background>,
    /// Ranks that a host has room for.
    pub slots: usize,
    /// The memory of a host, where it is known.
    pub memory: Option<Bytes>,
    /// What hashing, placement and pivots follow from.
    pub seed: u64,
}

impl Input {
    /// The same, with what lanes carry over time.
    #[must_use]
    pub fn with_courses(mut self) -> Self {
        self.flow.courses = true;
        self.packet.courses = true;
        self
    }
}

/// An input with where its values come from.
#[derive(Debug, Clone)]
pub struct Settings {
    skeleton: Skeleton,
    given: Given,
    list: Option<Arc<[String]>>,
    background: Vec<Background>,
}

impl Settings {
    /// Nothing but the defaults of a program.
    pub fn new(skeleton: Skeleton) -> Self {
        Self { skeleton, given: Given::default(), list: None, background: Vec::new() }
    }

    /// Reads a file for a program; `file` is what its problems are told with.
    ///
    /// # Errors
    /// With everything that is wrong with it, each with its line and key.
    pub fn parse(skeleton: Skeleton, text: &str, file: &str) -> Result<Self, ScenarioError> {
        let lines = Lines::new(text);
        let wrong = |problems| ScenarioError::Invalid(Problems::new(file, problems));
        let table = read_table(text, &lines).map_err(wrong)?;
        let (given, problems) = given_values(&table, &lines, &keys(&skeleton), unknown_key);
        if problems.is_empty() {
            Ok(Self { given, ..Self::new(skeleton) })
        } else {
            Err(wrong(problems))
        }
    }

    /// Sets a key to a value, written as in a file but without quotes.
    ///
    /// # Errors
    /// If there is no such key, or it takes no such value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        let failed = |text| {
            let (key, value) = (key.to_owned(), value.to_owned());
            ScenarioError::Setting { key, value, text }
        };
        let keys = keys(&self.skeleton);
        let known = keys.iter().find(|known| known.name == key);
        let known = known.ok_or_else(|| failed(unknown_key(&keys)))?;
        let value = Value::from_text(known.expected, value).map_err(failed)?;
        self.given.insert(known.name, (value, Origin::Set));
        Ok(())
    }

    /// Has ranks run on these hosts, by name, one after the other.
    pub fn place(&mut self, list: Vec<String>) {
        self.list = Some(list.into());
    }

    /// Has streams of others go on while the program runs.
    pub fn beside(&mut self, background: Vec<Background>) {
        self.background = background;
    }

    /// The traffic of others.
    pub fn background(&self) -> &[Background] {
        &self.background
    }

    /// The input that these settings describe.
    pub fn input(&self) -> Input {
        let input = declare(&self.skeleton, &mut Parameters::bare(&self.given));
        Input { list: self.list.clone(), background: self.background.clone(), ..input }
    }

    /// The program that they are for.
    pub fn skeleton(&self) -> &Skeleton {
        &self.skeleton
    }

    /// Every key with what holds and where it comes from, to be told with an answer.
    pub fn settings(&self) -> Vec<Setting> {
        let of = |key: Key| match self.given.get(key.name) {
            _ if key.name == "placement" && self.list.is_some() => {
                Setting { key: key.name, value: Some("listed".to_owned()), origin: Origin::Set }
            }
            Some((value, origin)) => {
                Setting { key: key.name, value: Some(value.to_string()), origin: *origin }
            }
            None => Setting {
                key: key.name,
                value: key.default.map(|value| value.to_string()),
                origin: Origin::Default,
            },
        };
        keys(&self.skeleton).into_iter().map(of).collect()
    }
}

fn keys(skeleton: &Skeleton) -> Vec<Key> {
    let given = Given::default();
    let mut parameters = Parameters::bare(&given);
    declare(skeleton, &mut parameters);
    parameters.finish().0
}

fn unknown_key(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    format!("unknown key; allowed for a prediction are {}", names.join(", "))
}

fn declare(skeleton: &Skeleton, parameters: &mut Parameters<'_>) -> Input {
    let seeds = 0..=u64::MAX >> 1;
    let seed =
        parameters.count("seed", seeds, 1, "What hashing, placement and pivots follow from.");
    let latency = parameters.span(
        "latency",
        Nanos::from_micros(50),
        "From a program to a program on another host, without data.",
    );
    let (program, method) = match skeleton {
        Skeleton::Hpl => (Program::Hpl(declare_hpl(parameters, latency, seed)), Method::Flow),
        Skeleton::Npb(kernel) => (Program::Npb(declare_npb(parameters, *kernel)), Method::Packet),
        Skeleton::Trace(trace) => {
            (Program::Trace(declare_trace(parameters, Arc::clone(trace))), Method::Flow)
        }
    };
    let doc = "Whether only loads are summed up, messages share cables as streams, or every frame goes through the switches.";
    let method = parameters.choice("method", method, doc).get();
    let deal = parameters.choice("placement", Deal::Block, "How ranks are dealt to hosts.").get();
    let slots = parameters.count("slots", 1..=4096_u32, 1, "Ranks that a host has room for.");
    let memory = parameters.size_if_written("memory", "The memory of a host, for the matrix.");
    let rates = Rates {
        // 1,448 octets of data in the 1,538 that a full frame takes, preamble and gap included.
        payload_share: parameters.share(
            "payload_share",
            1448.0 / 1538.0,
            "The share of a cable's rate that is left for data: TCP with time stamps.",
        ),
        within_host: parameters.rate(
            "within_host",
            BitsPerSecond::new(4_000_000_000),
            "How fast a message goes between two ranks of one host.",
        ),
    };
    let (flow, packet) = declare_network(parameters, latency);
    let slots = usize::try_from(slots).expect("32 bits are a count");
    let background = Vec::new();
    Input {
        program,
        method,
        rates,
        flow,
        packet,
        deal,
        list: None,
        background,
        slots,
        memory,
        seed,
    }
}

fn declare_npb(parameters: &mut Parameters<'_>, kernel: Kernel) -> Npb {
    let class = parameters.choice("class", Class::C, "How large the problem is.").get();
    let ranks = parameters.count("ranks", 1..=65_536_u32, 16, "How many ranks run it.");
    let sample = parameters.count(
        "sample",
        0..=1_000_u32,
        2,
        "Iterations that are run, from which the time of all follows; 0: all.",
    );
    let mops = parameters.count(
        "mop_per_s",
        1..=1_000_000_u32,
        250,
        "What one rank computes, in 10^6 operations of the benchmark a second.",
    );
    let collectives = declare_collectives(parameters);
    let operations_per_s = f64::from(mops) * 1e6;
    Npb { kernel, class, ranks, sample, operations_per_s, collectives }
}

fn declare_trace(parameters: &mut Parameters<'_>, trace: Arc<Trace>) -> Replay {
    let mflops = parameters.count(
        "mflop_per_s",
        1..=1_000_000_000_u64,
        1000,
        "What one rank computes of the amounts in the trace, in 10^6 a second: floating point operations, or \
         nanoseconds of the recorded run at 1000.",
    );
    let collectives = declare_collectives(parameters);
    Replay { trace, units_per_s: count_f64(mflops) * 1e6, collectives }
}

fn declare_collectives(parameters: &mut Parameters<'_>) -> Collectives {
    let library = "Whose choice of algorithms is followed.";
    let library = parameters.choice("library", Library::Mpich12, library).get();
    let doc = "How every rank gets something from every other.";
    let all_to_all = parameters.choice("all_to_all", AllToAll::Library, doc).get();
    let doc = "How every rank gets the sum of all.";
    let all_reduce = parameters.choice("all_reduce", AllReduce::Library, doc).get();
    Collectives { library, all_to_all, all_reduce }
}

fn declare_hpl(parameters: &mut Parameters<'_>, latency: Nanos, seed: u64) -> Hpl {
    let orders = 1..=100_000_000_u64;
    let order = parameters.count("n", orders, 20_000, "The order N of the matrix.");
    let block = parameters.count("nb", 1..=4096_u64, 192, "The block size NB.");
    let rows = parameters.count("p", 1..=4096_u32, 1, "Process rows of the grid.");
    let columns = parameters.count("q", 1..=4096_u32, 1, "Process columns of the grid.");
    let grid = "Which ranks are neighbours in the grid.";
    let grid_order = parameters.choice("grid_order", GridOrder::RowMajor, grid).get();
    let ahead = "Panels that are factorised ahead of the update.";
    let look_ahead = parameters.count("look_ahead", 0..=1_u8, 1, ahead);
    let doc = "How a panel goes through a process row.";
    let broadcast = parameters.choice("broadcast", Broadcast::RingModified, doc).get();
    let mflops = parameters.count(
        "mflop_per_s",
        1..=1_000_000_000_u64,
        2000,
        "What one rank computes in matrix products, in 10^6 floating point operations a second.",
    );
    let panel_share = parameters.share(
        "panel_share",
        0.5,
        "The share of that rate that is reached in factorising a panel.",
    );
    Hpl {
        order,
        block,
        rows: usize::try_from(rows).expect("32 bits are a count"),
        columns: usize::try_from(columns).expect("32 bits are a count"),
        grid_order,
        look_ahead,
        broadcast,
        flop_per_s: count_f64(mflops) * 1e6,
        panel_share,
        latency,
        seed,
    }
}

fn declare_network(
    parameters: &mut Parameters<'_>,
    latency: Nanos,
) -> (FlowOptions, PacketOptions) {
    let eager = "The largest message that is sent before its receiver asks for it.";
    let eager_max = parameters.size("eager_max", Bytes::new(65_536), eager);
    let messaging = Messaging { latency, eager_max, look_again: LookAgain::AT_ONCE };
    let (packet, window) = packet::declare(parameters, messaging, None);
    let full_share = parameters.share(
        "full_share",
        1.0,
        "The share of its rate that a cable carries while its queue is full.",
    );
    let patience = parameters.count(
        "patience",
        0..=1_000_000_u32,
        32,
        "For so many streams one may end before what it leaves is shared out; 0 is exact.",
    );
    // Saturates: more streams than can be counted are never too many for the queue.
    let streams_max =
        usize::try_from(packet.port_buffer.get() / window.get()).unwrap_or(usize::MAX);
    let flow = FlowOptions {
        messaging,
        congestion: Congestion { streams_max, pause: packet.pause, full_share, window },
        patience: usize::try_from(patience).expect("32 bits are a count"),
        courses: false,
    };
    (flow, packet)
}
