//! Every key of every model: the one list behind the parser, `--set`, defaults and help.

use std::fmt;

use crate::scenario::Origin;
use crate::scenario::value::Value;

/// One key of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value is.
    pub expected: Expected,
    /// Its value if none is given, written without quotes; none: it has no value then.
    pub default: Option<&'static str>,
    /// What it is for.
    pub doc: &'static str,
    /// It has an effect only if this key has one of these values.
    pub only_with: Option<(&'static str, &'static [&'static str])>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A whole number in this range.
    Count {
        /// The least.
        least: u64,
        /// The greatest.
        greatest: u64,
    },
    /// A number from 0 to 1.
    Share,
    /// A span of time with its unit.
    Span,
    /// A span of time with its unit, longer than nothing.
    PositiveSpan,
    /// An amount of data with its unit, more than nothing.
    Size,
    /// A data rate with its unit, more than nothing.
    Rate,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { least, greatest } => {
                write!(f, "a whole number from {least} to {greatest}")
            }
            Self::Share => f.write_str("a number from 0 to 1"),
            Self::Span => f.write_str("a span of time in quotes such as \"32us\""),
            Self::PositiveSpan => {
                f.write_str("a span of time in quotes such as \"32us\", longer than 0")
            }
            Self::Size => f.write_str("an amount of data in quotes such as \"1500B\", more than 0"),
            Self::Rate => f.write_str("a data rate in quotes such as \"125MiB/s\", more than 0"),
            Self::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                write!(f, "one of {}", words.join(", "))
            }
        }
    }
}

/// The models there are.
pub const MODELS: &[&str] = &["metadata", "phold", "queue", "closed", "ring"];

/// A kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelKind {
    Metadata,
    Phold,
    Queue,
    Closed,
    Ring,
}

impl ModelKind {
    const ALL: [Self; 5] = [Self::Metadata, Self::Phold, Self::Queue, Self::Closed, Self::Ring];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Phold => "phold",
            Self::Queue => "queue",
            Self::Closed => "closed",
            Self::Ring => "ring",
        }
    }

    pub(crate) fn keys(self) -> &'static [Key] {
        match self {
            Self::Metadata => METADATA,
            Self::Phold => PHOLD,
            Self::Queue => QUEUE,
            Self::Closed => CLOSED,
            Self::Ring => RING,
        }
    }

    pub(crate) fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.name == name)
    }

    pub(crate) fn unknown_key(self) -> String {
        let names: Vec<_> = self.keys().iter().map(|key| format!("`{}`", key.name)).collect();
        format!("unknown key; allowed for the model `{}` are {}", self.name(), names.join(", "))
    }

    /// The values of the keys that have a default.
    pub(crate) fn defaults(self) -> impl Iterator<Item = (&'static str, (Value, Origin))> {
        self.keys().iter().filter_map(|key| {
            let value = Value::from_text(key.expected, key.default?);
            Some((key.name, (value.expect("the tests read every default"), Origin::Default)))
        })
    }
}

const fn key(
    name: &'static str,
    expected: Expected,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, expected, default: Some(default), doc, only_with: None }
}

impl Key {
    /// The same, with an effect only if `other` is one of `words`.
    const fn only_with(self, other: &'static str, words: &'static [&'static str]) -> Self {
        Self { only_with: Some((other, words)), ..self }
    }
}

const fn count(least: u64, greatest: u64) -> Expected {
    Expected::Count { least, greatest }
}

const SEED: Key = key("seed", count(0, u64::MAX >> 1), "1", "What random numbers follow from.");
const UNTIL: Key = Key {
    name: "until",
    expected: Expected::PositiveSpan,
    default: None,
    doc: "The last instant whose events are handled; to the end of all events unless written.",
    only_with: None,
};

const METADATA: &[Key] = &[
    SEED,
    UNTIL,
    key("servers", count(1, 65_535), "2", "Metadata servers."),
    key("clients", count(1, 1 << 31), "88", "Clients."),
    key(
        "packet_size",
        Expected::Size,
        "1500B",
        "Every message occupies whole packets of this size.",
    ),
    key("payload_size", Expected::Size, "512B", "What a message carries."),
    key("net_startup", Expected::Span, "32us", "The start-up of every transmission."),
    key("client_bandwidth", Expected::Rate, "125MiB/s", "Links between clients and their switch."),
    key("server_bandwidth", Expected::Rate, "1250MiB/s", "Links between servers and their switch."),
    key("switch_bandwidth", Expected::Rate, "1250MiB/s", "The link between the switches."),
    key(
        "switches",
        Expected::Word(&["unlimited", "per-port", "per-network", "shared"]),
        "unlimited",
        "What messages queue for in a switch: nothing (each pays start-up and size over bandwidth), \
         the interface of the port, the interface to the hosts or to the other switch, the only \
         interface.",
    ),
    key(
        "switch_lps",
        count(1, 4096),
        "8",
        "LPs that each switch is divided into, so that threads can share it; changes no result.",
    )
    .only_with("switches", &["unlimited"]),
    key(
        "store",
        Expected::Word(&["delay", "queue", "device"]),
        "delay",
        "How changes are stored: all at once after `store_latency`, one after another for \
         `store_latency` each, one after another with a seek and a rate.",
    ),
    key("store_latency", Expected::Span, "500us", "Until the answer to a change leaves.")
        .only_with("store", &["delay", "queue"]),
    key("store_seek", Expected::Span, "100us", "Before each change.")
        .only_with("store", &["device"]),
    key("store_rate", Expected::Rate, "100MiB/s", "Of the message that is stored.")
        .only_with("store", &["device"]),
    key("read_latency", Expected::Span, "0ns", "Until the answer to anything but a change leaves."),
    key(
        "load",
        Expected::Word(&["closed", "open"]),
        "closed",
        "When clients begin operations: one after another, or at random instants.",
    ),
    key("think", Expected::Span, "0ns", "Between the end of an operation and the next beginning.")
        .only_with("load", &["closed"]),
    Key {
        name: "stagger",
        expected: Expected::Span,
        default: None,
        doc: "Clients begin at instants drawn evenly from this span; what one change takes when nobody \
              is in the way unless written.",
        only_with: Some(("load", &["closed"])),
    },
    key("interarrival", Expected::PositiveSpan, "10ms", "The mean span between two beginnings.")
        .only_with("load", &["open"]),
    key(
        "in_flight_max",
        count(1, 1_000_000),
        "1000",
        "Operations of one client in flight; what begins beyond is turned away and counted.",
    )
    .only_with("load", &["open"]),
    key(
        "workload",
        Expected::Word(&["create", "mdtest", "mix"]),
        "create",
        "Making files; making, then reading the metadata of, then removing files; operations drawn \
         by their weights.",
    ),
    key(
        "operations",
        count(1, 1_000_000_000),
        "1000",
        "Operations of each client; with `mdtest` the files of each.",
    ),
    Key {
        name: "warmup",
        expected: Expected::Span,
        default: None,
        doc: "Left out of rates and response times at the beginning; unless written, rates leave out \
              what batch means find, and response times nothing.",
        only_with: None,
    },
    key(
        "root_list",
        Expected::Word(&["asked", "known"]),
        "asked",
        "Whether each client first asks server 0 for the root's server list, or knows it.",
    ),
    key(
        "directories",
        Expected::Word(&["one", "own"]),
        "one",
        "Where clients work: all in the root, or each in a directory that it makes first (and removes \
         at the end of `mdtest`).",
    ),
    key(
        "directory_servers",
        count(1, 65_535),
        "1",
        "Servers that an own directory is spread over.",
    )
    .only_with("directories", &["own"]),
    key("mix_create", count(0, 1_000_000), "20", "Weight of making a file.")
        .only_with("workload", &["mix"]),
    key("mix_stat", count(0, 1_000_000), "50", "Weight of reading a file's metadata.")
        .only_with("workload", &["mix"]),
    key("mix_lookup", count(0, 1_000_000), "20", "Weight of looking a name up.")
        .only_with("workload", &["mix"]),
    key("mix_unlink", count(0, 1_000_000), "10", "Weight of removing the oldest file.")
        .only_with("workload", &["mix"]),
    key("mix_list", count(0, 1_000_000), "0", "Weight of listing 100 entries of the directory.")
        .only_with("workload", &["mix"]),
];

const PHOLD: &[Key] = &[
    SEED,
    key("until", Expected::PositiveSpan, "100s", "The last instant whose events are handled."),
    key("lps", count(1, 1 << 31), "1024", "LPs."),
    key("events_per_lp", count(1, 1_000_000), "8", "Events that each LP begins with."),
    key("remote", Expected::Share, "0.1", "The share of events that go to an LP drawn from all."),
    key("lookahead", Expected::Span, "100ms", "The least delay."),
    key("mean", Expected::PositiveSpan, "1s", "The mean delay, the lookahead included."),
    key("work", count(0, 1_000_000_000), "0", "Steps of a dependent computation in each event."),
];

const SERVICE: Key = key("service", Expected::PositiveSpan, "1us", "The mean service time.");
const SERVICE_TIMES: Key = key(
    "service_times",
    Expected::Word(&["exponential", "constant"]),
    "exponential",
    "How service times are distributed.",
);

const QUEUE: &[Key] = &[
    SEED,
    UNTIL,
    key("queues", count(1, 1_000_000), "1", "Queues, independent of each other."),
    key("interarrival", Expected::PositiveSpan, "2us", "The mean span between two arrivals."),
    SERVICE,
    SERVICE_TIMES,
    key("servers", count(1, 1_000_000), "1", "Servers of each queue."),
    key("customers", count(1, 4_000_000_000), "1000000", "Customers that come to each queue."),
];

const CLOSED: &[Key] = &[
    SEED,
    UNTIL,
    key("customers", count(1, 1 << 31), "20", "Customers."),
    key("stations", count(1, 1_000_000), "4", "Stations, each with one server."),
    SERVICE,
    SERVICE_TIMES,
    key("think", Expected::Span, "5us", "How long a customer thinks, in the mean."),
    key("hop", Expected::Span, "1us", "Each way between a customer and a station."),
    key("jobs", count(1, 4_000_000_000), "10000", "How often each customer is served."),
];

const RING: &[Key] = &[
    SEED,
    UNTIL,
    key("switches", count(2, 10_000_000), "24", "Switches."),
    key("messages_per_switch", count(1, 1_000_000), "4", "Messages that begin at each."),
    key(
        "journeys",
        count(1, 4_000_000_000),
        "100",
        "How often each message is sent to another switch.",
    ),
    key("message_size", Expected::Size, "1500B", "The size of each message."),
    key("net_startup", Expected::Span, "2us", "The start-up of every transmission."),
    key("bandwidth", Expected::Rate, "1Gbit/s", "The links between neighbours."),
];
