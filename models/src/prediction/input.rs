//! Machine and program as a file says them, with a value and a default for every key.

use meikyo_places::{Lines, Origin, Problems, read_table};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use super::flow::FlowOptions;
use super::hpl::{Broadcast, GridOrder, Hpl};
use super::network::Rates;
use super::placement::Deal;
use super::program::Messaging;
use super::sharing::Congestion;
use crate::completions::count_f64;
use crate::parameters::{Given, Key, Parameters, Value, choice};
use crate::scenario::{ScenarioError, Setting, given_values};

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switched {
    On,
    Off,
}
choice!(Switched { On = "on", Off = "off" });

/// What is predicted: a machine and a program, resolved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// The program.
    pub hpl: Hpl,
    /// What of the cables' rates programs see.
    pub rates: Rates,
    /// Messages and full lanes.
    pub flow: FlowOptions,
    /// How ranks are dealt to hosts.
    pub deal: Deal,
    /// Ranks that a host has room for.
    pub slots: usize,
    /// The memory of a host, where it is known.
    pub memory: Option<Bytes>,
    /// What hashing, placement and pivots follow from.
    pub seed: u64,
}

/// An input with where its values come from.
#[derive(Debug, Clone)]
pub struct Settings {
    given: Given,
}

impl Settings {
    /// Nothing but defaults.
    pub fn new() -> Self {
        Self { given: Given::default() }
    }

    /// Reads a file; `file` is what its problems are told with.
    ///
    /// # Errors
    /// With everything that is wrong with it, each with its line and key.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let lines = Lines::new(text);
        let wrong = |problems| ScenarioError::Invalid(Problems::new(file, problems));
        let table = read_table(text, &lines).map_err(wrong)?;
        let (given, problems) = given_values(&table, &lines, &keys(), unknown_key);
        if problems.is_empty() { Ok(Self { given }) } else { Err(wrong(problems)) }
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
        let keys = keys();
        let known = keys.iter().find(|known| known.name == key);
        let known = known.ok_or_else(|| failed(unknown_key(&keys)))?;
        let value = Value::from_text(known.expected, value).map_err(failed)?;
        self.given.insert(known.name, (value, Origin::Set));
        Ok(())
    }

    /// The input that these settings describe.
    pub fn input(&self) -> Input {
        declare(&mut Parameters::bare(&self.given))
    }

    /// Every key with what holds and where it comes from, to be told with an answer.
    pub fn settings(&self) -> Vec<Setting> {
        let of = |key: Key| match self.given.get(key.name) {
            Some((value, origin)) => {
                Setting { key: key.name, value: Some(value.to_string()), origin: *origin }
            }
            None => Setting {
                key: key.name,
                value: key.default.map(|value| value.to_string()),
                origin: Origin::Default,
            },
        };
        keys().into_iter().map(of).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

fn keys() -> Vec<Key> {
    let given = Given::default();
    let mut parameters = Parameters::bare(&given);
    declare(&mut parameters);
    parameters.finish().0
}

fn unknown_key(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    format!("unknown key; allowed for a prediction are {}", names.join(", "))
}

fn declare(parameters: &mut Parameters<'_>) -> Input {
    let seeds = 0..=u64::MAX >> 1;
    let seed =
        parameters.count("seed", seeds, 1, "What hashing, placement and pivots follow from.");
    let latency = parameters.span(
        "latency",
        Nanos::from_micros(50),
        "From a program to a program on another host, without data.",
    );
    let hpl = declare_hpl(parameters, latency, seed);
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
    let flow = declare_flow(parameters, latency);
    let slots = usize::try_from(slots).expect("32 bits are a count");
    Input { hpl, rates, flow, deal, slots, memory, seed }
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

fn declare_flow(parameters: &mut Parameters<'_>, latency: Nanos) -> FlowOptions {
    let eager = "The largest message that is sent before its receiver asks for it.";
    let eager_max = parameters.size("eager_max", Bytes::new(65_536), eager);
    let window = parameters.size(
        "window",
        Bytes::new(65_536),
        "What a connection has under way at most: how much of a queue each stream can fill.",
    );
    let buffer = parameters.size(
        "port_buffer",
        Bytes::new(262_144),
        "The queue of a switch port; streams whose windows fit into it never fill it.",
    );
    let doc = "Whether full queues stop their senders by pause frames (802.3x).";
    let pause = parameters.choice("pause", Switched::On, doc).get() == Switched::On;
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
    let streams_max = usize::try_from(buffer.get() / window.get()).unwrap_or(usize::MAX);
    FlowOptions {
        messaging: Messaging { latency, eager_max },
        congestion: Congestion { streams_max, pause, full_share },
        patience: usize::try_from(patience).expect("32 bits are a count"),
    }
}
