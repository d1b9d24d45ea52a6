//! Spans and instants in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity::{self, ParseQuantityError, Units};

const UNITS: Units = Units {
    table: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    allowed: "`ns`, `us`, `ms`, `s`, `min`, `h`, `d`",
    example: "100ms",
    ambiguous: Some(("m", ["min", "ms"])),
};

/// The units that a span is printed in, one name each.
const PRINTED: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// A span of time in nanoseconds, never negative; at most 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// 10^9 ns, as others are told by.
    pub const SECOND: Self = Self(1_000_000_000);

    /// A span of `nanos` nanoseconds.
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds; saturates at the largest span.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds; saturates at the largest span.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of `seconds` seconds; saturates at the largest span.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// The span in nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in seconds; exact up to 2^53 ns (104 days), then rounded to the nearest `f64`.
    #[expect(clippy::cast_precision_loss, reason = "the doc states the rounding")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span of `seconds`, rounded to the nearest nanosecond; negative numbers and NaN give no
    /// time at all, numbers that are too large the largest span.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the doc states the rounding; `as` saturates"
    )]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9 + 0.5) as u64)
    }

    /// The difference, or zero when `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The same span for the standard library.
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    /// Saturates at the largest span.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    /// Saturates at the largest span.
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl FromStr for Nanos {
    type Err = ParseQuantityError;
    /// Parses `100ms`, `1.5s`, `30d`, `8min30s`: decimal numbers with their units, the greatest first.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        quantity::parse_sum(text, &UNITS, "1h30min").map(Self)
    }
}

impl fmt::Display for Nanos {
    /// The largest unit that keeps the number whole: `100ms`, `1500us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::write(self.0, PRINTED, f)
    }
}

/// An instant of the wall clock: nanoseconds since 1970-01-01T00:00:00 UTC, leap seconds not counted.
///
/// The range is 1677 to 2262; arithmetic saturates at its ends.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(i64);

impl WallTime {
    /// The instant `nanos` nanoseconds after the Unix epoch.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Reads the system's real-time clock (`CLOCK_REALTIME`).
    ///
    /// # Panics
    /// When it stands before 1970 or after 2262.
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    pub fn now() -> Self {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("the clock stands after 1970");
        Self(i64::try_from(since.as_nanos()).expect("the clock stands before 2262"))
    }

    /// The latest multiple of `interval` since the epoch that is not after this instant.
    ///
    /// # Panics
    /// If `interval` is zero.
    #[must_use]
    pub fn floor(self, interval: Nanos) -> Self {
        // Saturates: 292 years are longer than the time since the epoch, of which they are no multiple.
        let interval = i64::try_from(interval.get()).unwrap_or(i64::MAX);
        Self(self.0 - self.0.rem_euclid(interval))
    }

    /// The span from `earlier` to this instant, or zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Nanos {
        Nanos::new(self.0.saturating_sub(earlier.0).max(0).cast_unsigned())
    }

    /// This instant moved back by `span`.
    #[must_use]
    pub fn before(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub_unsigned(span.get()))
    }
}

impl Add<Nanos> for WallTime {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add_unsigned(span.get()))
    }
}

impl Sub for WallTime {
    type Output = Nanos;
    /// The span between two ordered instants.
    ///
    /// # Panics
    /// In debug builds if `earlier` is later than `self`; use [`WallTime::since`] where the order is
    /// not known.
    fn sub(self, earlier: Self) -> Nanos {
        debug_assert!(self >= earlier, "instants are subtracted in order");
        self.since(earlier)
    }
}

impl fmt::Display for WallTime {
    /// RFC 3339 in UTC with the digits that it needs: `2026-11-21T20:14:00.1Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: i64 = 1_000_000_000;
        const DAY: i64 = 86_400;
        let (seconds, nanos) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let (year, month, day) = date_of(seconds.div_euclid(DAY));
        let of_day = seconds.rem_euclid(DAY);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanos > 0 {
            write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01.
///
/// Years are counted from March, so that a leap day is the last of its year, and 400 of them, which
/// are 146,097 days, begin anew on 0000-03-01, 719,468 days before 1970. From March on, months have
/// 30.6 days in the mean: the `m`th begins `(153 m + 2) / 5` days after the first.
fn date_of(days: i64) -> (i64, i64, i64) {
    let since = days + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// An instant of a simulation: nanoseconds since its beginning.
///
/// The range ends after 584 years; arithmetic saturates there.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SimTime(u64);

impl SimTime {
    /// The beginning.
    pub const START: Self = Self(0);
    /// The last instant there is.
    pub const END: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this instant, or zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos::new(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for SimTime {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.get()))
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Nanos::new(self.0).fmt(f)
    }
}

/// Formats that people read have the quantity with its unit, others the number alone.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_u64(self.get())
                }
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if !deserializer.is_human_readable() {
                    return u64::deserialize(deserializer).map(Self::new);
                }
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

serde_as_text!(Nanos);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse_exactly() {
        for (text, nanos) in [
            ("100ms", 100_000_000),
            ("1.5s", 1_500_000_000),
            ("0.000001ms", 1),
            ("30d", 2_592_000_000_000_000),
            ("2 min", 120_000_000_000),
            ("10_000us", 10_000_000),
            ("8min30s", 510_000_000_000),
            ("1h 30min", 5_400_000_000_000),
            ("1d12h0.5s", 129_600_500_000_000),
            (" 1s500ms ", 1_500_000_000),
            ("1min90s", 150_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos::new(nanos)), "{text}");
        }
    }

    #[test]
    fn instants_read_as_another_library_writes_them() {
        let of_jiff = |ns: i64| jiff::Timestamp::from_nanosecond(ns.into()).unwrap().to_string();
        let same = |ns: i64| assert_eq!(WallTime::from_nanos(ns).to_string(), of_jiff(ns));
        // Every day of the range, with its last nanosecond and its first.
        const DAY: i64 = 86_400_000_000_000;
        for day in i64::MIN / DAY..=i64::MAX / DAY {
            same(day * DAY);
            same((day * DAY).saturating_sub(1));
        }
        [i64::MIN, i64::MAX, 1, 1_700_000_000_100_000_000].into_iter().for_each(same);
    }

    #[test]
    fn bad_spans_say_what_is_allowed() {
        let message = |text: &str| text.parse::<Nanos>().unwrap_err().to_string();
        assert_eq!(
            message("100"),
            "`100` has no known unit; allowed are `ns`, `us`, `ms`, `s`, `min`, `h`, `d`"
        );
        assert_eq!(
            message("fast"),
            "`fast` does not begin with a number; write for example `100ms`"
        );
        for text in ["1m", "1 m"] {
            let expected = format!("`{text}` has no known unit; did you mean `1min` or `1ms`?");
            assert_eq!(message(text), expected);
        }
        assert_eq!(
            message("8min30"),
            "`30` has no known unit; allowed are `ns`, `us`, `ms`, `s`, `min`, `h`, `d`"
        );
        assert_eq!(message("1m30s"), "`1m` has no known unit; did you mean `1min` or `1ms`?");
        for text in ["30s8min", "1s1s", "1.5h30min"] {
            let expected = format!(
                "`{text}` has its units in another order than from great to small; write for \
                 example `1h30min`"
            );
            assert_eq!(message(text), expected);
        }
        assert_eq!(message("584554d1s"), "`584554d` cannot be kept exactly in 64 bits");
        assert_eq!(
            message("213503d23h35min"),
            "`213503d23h35min` cannot be kept exactly in 64 bits"
        );
        assert_eq!(message("0.5ns"), "`0.5ns` cannot be kept exactly in 64 bits");
        assert_eq!(message("600000d"), "`600000d` cannot be kept exactly in 64 bits");
    }

    #[test]
    fn instants_align_to_multiples_also_before_the_epoch() {
        let interval = Nanos::from_millis(100);
        assert_eq!(WallTime::from_nanos(-1).floor(interval), WallTime::from_nanos(-100_000_000));
        assert_eq!(WallTime::from_nanos(250_000_000).floor(interval).as_nanos(), 200_000_000);
    }

    proptest::proptest! {
        #[test]
        fn printed_spans_parse_back(nanos: u64) {
            let span = Nanos::new(nanos);
            proptest::prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn a_sum_of_units_is_the_sum(
            days in 0_u64..1_000, hours in 0_u64..100, minutes in 0_u64..100, millis in 0_u64..1_000,
        ) {
            let text = format!("{days}d{hours}h {minutes}min{millis}ms");
            let seconds = days * 86_400 + hours * 3_600 + minutes * 60;
            let span = Nanos::from_secs(seconds) + Nanos::from_millis(millis);
            proptest::prop_assert_eq!(text.parse(), Ok(span));
        }

        #[test]
        fn no_text_makes_parsing_panic(text in "[0-9. _hmsdµin\\-é]{0,24}") {
            let said = text.parse::<Nanos>();
            proptest::prop_assert!(said.is_ok() || !said.unwrap_err().to_string().is_empty());
        }
    }
}
