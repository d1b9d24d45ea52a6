//! What the values of a column are counted in.

use serde::{Deserialize, Serialize};

/// The unit of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Octets on a line, whose rate is shown in bit/s.
    Octets,
    /// Amounts of memory or disk space.
    Bytes,
    /// Packets on a line.
    Packets,
    /// What went wrong on a line.
    Errors,
    /// What was thrown away at a line.
    Discards,
    /// Hundredths of a second of a CPU's time.
    Ticks,
    /// Speed of a line, 10^6 bit/s.
    MegabitsPerSecond,
    /// Spans, 10^-9 s.
    Nanoseconds,
    /// Spans, 10^-6 s.
    Microseconds,
    /// Spans, 10^-2 s.
    Centiseconds,
    /// Runnable tasks.
    Tasks,
    /// Temperature, °C.
    Celsius,
    /// Turns of a fan, 1/min.
    RevolutionsPerMinute,
    /// Power.
    Watts,
    /// Voltage.
    Volts,
    /// Current.
    Amperes,
    /// A rate of something that has no unit of its own.
    PerSecond,
}

/// Endings of column names and the units that they name; the longest of two that fit stands first.
const ENDINGS: [(&str, Unit); 14] = [
    ("_per_s", Unit::PerSecond),
    ("_octets", Unit::Octets),
    ("_packets", Unit::Packets),
    ("_errors", Unit::Errors),
    ("_discards", Unit::Discards),
    ("_bytes", Unit::Bytes),
    ("_ticks", Unit::Ticks),
    ("_mbps", Unit::MegabitsPerSecond),
    ("_us", Unit::Microseconds),
    ("_ns", Unit::Nanoseconds),
    ("_cs", Unit::Centiseconds),
    ("_1min", Unit::Tasks),
    ("_5min", Unit::Tasks),
    ("_15min", Unit::Tasks),
];

impl Unit {
    /// The unit in ASCII, as it goes into headers and the API; the page's scales are named by it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Octets => "octets",
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Errors => "errors",
            Self::Discards => "discards",
            Self::Ticks => "ticks",
            Self::MegabitsPerSecond => "Mbit/s",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Centiseconds => "cs",
            Self::Tasks => "tasks",
            Self::Celsius => "degC",
            Self::RevolutionsPerMinute => "rpm",
            Self::Watts => "W",
            Self::Volts => "V",
            Self::Amperes => "A",
            Self::PerSecond => "/s",
        }
    }

    /// The unit as people write it behind a number.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Celsius => "°C",
            Self::Microseconds => "µs",
            other => other.word(),
        }
    }

    /// The unit that ends the name of a column whose declaration names none.
    pub fn of_name(name: &str) -> Option<Self> {
        let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|(_, unit)| *unit)
    }
}
