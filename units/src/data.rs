//! Amounts of data and data rates.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use crate::quantity::{self, ParseQuantityError, Units};
use crate::time::{Nanos, serde_as_text};

const BYTE_UNITS: Units = Units {
    table: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    allowed: "`B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`",
    example: "4MiB",
    ambiguous: None,
};

const RATE_UNITS: Units = Units {
    table: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
        ("KiB/s", 8 << 10),
        ("MiB/s", 8 << 20),
        ("GiB/s", 8 << 30),
    ],
    allowed: "`bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`, `B/s`, `kB/s`, `MB/s`, `GB/s`, `KiB/s`, `MiB/s`, `GiB/s`",
    example: "1Gbit/s",
    ambiguous: None,
};

/// The units that a rate is printed in: those of links, whatever the number, so that a sum of links has
/// the unit of a link.
const RATES_PRINTED: &[(&str, u64)] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
];

/// An amount of data in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No data.
    pub const ZERO: Self = Self(0);

    /// An amount of so many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Self;
    /// Saturates at 2^64 - 1 bytes.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    /// Parses `4MiB`, `1.5GB`: a decimal number and a unit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        quantity::parse(text, &BYTE_UNITS).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(self.0, BYTE_UNITS.table, f)
    }
}

/// A data rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitsPerSecond(u64);

impl BitsPerSecond {
    /// 10^9 bit/s.
    pub const GIGABIT: Self = Self(1_000_000_000);

    /// `rate` bit/s.
    pub const fn new(rate: u64) -> Self {
        Self(rate)
    }

    /// The rate in bit/s.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How long `size` takes at this rate, rounded to the nearest nanosecond, half of one up.
    /// The largest span at a rate of nothing, and where the span is longer.
    ///
    /// ```
    /// # use meikyo_units::{BitsPerSecond, Bytes, Nanos};
    /// let rate: BitsPerSecond = "125MiB/s".parse()?; // 1,048,576,000 bit/s
    /// assert_eq!(rate.serialization_delay(Bytes::new(1500)), Nanos::new(11_444)); // 11,444.09
    /// # Ok::<(), meikyo_units::ParseQuantityError>(())
    /// ```
    pub fn serialization_delay(self, size: Bytes) -> Nanos {
        const BIT_NANOS_PER_BYTE: u128 = 8_000_000_000;
        let rate = u128::from(self.0);
        let delay = (u128::from(size.0) * BIT_NANOS_PER_BYTE + rate / 2).checked_div(rate);
        Nanos::new(delay.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(u64::MAX))
    }
}

impl FromStr for BitsPerSecond {
    type Err = ParseQuantityError;
    /// Parses `1Gbit/s`: a decimal number and a unit.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        quantity::parse(text, &RATE_UNITS).map(Self)
    }
}

impl fmt::Display for BitsPerSecond {
    /// The largest unit of bits that keeps the number whole: `8Gbit/s`, `1500Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(self.0, RATES_PRINTED, f)
    }
}

serde_as_text!(Bytes);
serde_as_text!(BitsPerSecond);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!("1MB".parse(), Ok(Bytes::new(1_000_000)));
        assert_eq!("1MiB".parse(), Ok(Bytes::new(1_048_576)));
        assert_eq!("2.5Gbit/s".parse(), Ok(BitsPerSecond::new(2_500_000_000)));
    }

    #[test]
    fn a_delay_is_rounded_to_the_nearest_nanosecond_and_never_overflows() {
        let delay = |rate, size| BitsPerSecond::new(rate).serialization_delay(Bytes::new(size));
        assert_eq!(delay(1_000_000_000, 1500), Nanos::new(12_000));
        assert_eq!(delay(10 << 30, 1500), Nanos::new(1_118)); // 1,117.59
        assert_eq!(delay(16_000_000_000, 1), Nanos::new(1)); // 0.5
        assert_eq!(delay(16_000_000_001, 1), Nanos::ZERO);
        assert_eq!(delay(0, 0), Nanos::new(u64::MAX));
        assert_eq!(delay(1, u64::MAX), Nanos::new(u64::MAX));
    }

    #[test]
    fn rates_are_printed_in_bits_whatever_their_size() {
        for (rate, text) in [
            (8_000_000_000, "8Gbit/s"),
            (16_000_000_000, "16Gbit/s"),
            (1_500_000_000, "1500Mbit/s"),
            (8 << 30, "8589934592bit/s"),
            (0, "0bit/s"),
        ] {
            assert_eq!(BitsPerSecond::new(rate).to_string(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn printed_rates_parse_back(rate: u64) {
            let rate = BitsPerSecond::new(rate);
            proptest::prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn printed_amounts_parse_back(bytes: u64) {
            let amount = Bytes::new(bytes);
            proptest::prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        }
    }
}
