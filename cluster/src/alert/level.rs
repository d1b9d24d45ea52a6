//! Levels that values are compared with, and how values of their unit are written for people.

use std::fmt;

/// A level in thousandths of its unit: exact, so that a value at the level is at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    thousandths: i64,
    unit: LevelUnit,
    /// As it stands in the file.
    text: String,
}

/// What a value of a level is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelUnit {
    /// Rates of octets as bit/s.
    BitsPerSecond,
    /// Rates of octets as B/s; with prefixes of 1024 when `binary`.
    BytesPerSecond {
        /// Whether the file says KiB and not kB.
        binary: bool,
    },
    /// Amounts in bytes; with prefixes of 1024 when `binary`.
    Bytes {
        /// Whether the file says KiB and not kB.
        binary: bool,
    },
    /// Hundredths of the size of the disk that the value is of.
    PercentOfSize,
    /// Numbers; of a counter, per second.
    Number,
}

/// Which units a column can be compared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Counters of octets: rates of data.
    Octets,
    /// Gauges in bytes.
    Bytes,
    /// Gauges in bytes that are parts of a disk's size.
    OfDisk,
    /// Everything else: numbers without a unit.
    Plain,
}

/// Prefixes of decimal units and their factors.
const DECIMAL: [(&str, i128); 5] =
    [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];
const BINARY: [(&str, i128); 5] =
    [("", 1), ("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40)];

impl LevelUnit {
    fn name(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::BytesPerSecond { .. } => "B/s",
            Self::Bytes { .. } => "B",
            Self::PercentOfSize => "%",
            Self::Number => "",
        }
    }

    /// A value in thousandths of the unit, with a fitting prefix and at most three digits behind
    /// the point; `counter` tells numbers per second from numbers.
    pub fn shown(self, thousandths: i64, counter: bool) -> String {
        let prefixes: &[(&str, i128)] = match self {
            Self::BytesPerSecond { binary: true } | Self::Bytes { binary: true } => &BINARY,
            Self::Number | Self::PercentOfSize => &DECIMAL[..1],
            _ => &DECIMAL,
        };
        let size = i128::from(thousandths).abs();
        let fitting = prefixes.iter().rev().find(|(_, factor)| size >= factor * 1_000);
        let (prefix, factor) = *fitting.unwrap_or(&prefixes[0]);
        let sign = if thousandths < 0 { "-" } else { "" };
        let rounded = (size + factor / 2) / factor;
        let (whole, fraction) = (rounded / 1_000, rounded % 1_000);
        let digits = format!("{sign}{whole}.{fraction:03}");
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        match (self, counter) {
            (Self::Number, true) => format!("{digits}/s"),
            (Self::Number, false) => digits.to_owned(),
            _ => format!("{digits} {prefix}{}", self.name()),
        }
    }
}

impl Family {
    /// That of a column of the recording's tables, by the unit that ends its name.
    pub(super) fn of_column(column: &str) -> Self {
        match column.rsplit('_').next() {
            Some("octets") => Self::Octets,
            Some("bytes") => Self::Bytes,
            _ => Self::Plain,
        }
    }

    /// What may stand behind a number.
    fn allowed(self) -> &'static str {
        match self {
            Self::Octets => {
                "octets are compared as rates: allowed are `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, \
                 `Tbit/s`, `B/s`, `kB/s`, `MB/s`, `GB/s`, `TB/s`, `KiB/s`, `MiB/s`, `GiB/s`, \
                 `TiB/s`, for example `900Mbit/s`"
            }
            Self::Bytes => {
                "allowed are `B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`, for example \
                 `4GiB`, and a number of bytes"
            }
            Self::OfDisk => {
                "allowed are a share of the disk's size, for example `90%`, or `B`, `kB`, `MB`, `GB`, \
                 `TB`, `KiB`, `MiB`, `GiB`, `TiB`, for example `4GiB`, and a number of bytes"
            }
            Self::Plain => {
                "allowed is a number such as `12` or `0.5`, which counters are compared with per \
                 second"
            }
        }
    }

    /// The unit that a suffix names, and its size.
    fn unit(self, suffix: &str) -> Option<(LevelUnit, i128)> {
        let amount = |suffix: &str| {
            let of = |(table, binary): (&[(&str, i128)], bool)| {
                let prefix = suffix.strip_suffix('B')?;
                let found = table.iter().find(|(known, _)| *known == prefix)?;
                Some((binary, found.1))
            };
            of((&DECIMAL, false)).or_else(|| of((&BINARY, true)))
        };
        match self {
            Self::Octets => {
                if let Some(prefix) = suffix.strip_suffix("bit/s") {
                    let (_, factor) = DECIMAL.iter().find(|(known, _)| *known == prefix)?;
                    return Some((LevelUnit::BitsPerSecond, *factor));
                }
                let (binary, factor) = amount(suffix.strip_suffix("/s")?)?;
                Some((LevelUnit::BytesPerSecond { binary }, factor))
            }
            Self::OfDisk if suffix == "%" => Some((LevelUnit::PercentOfSize, 1)),
            Self::Bytes | Self::OfDisk if suffix.is_empty() => {
                Some((LevelUnit::Bytes { binary: false }, 1))
            }
            Self::Bytes | Self::OfDisk => {
                let (binary, factor) = amount(suffix)?;
                Some((LevelUnit::Bytes { binary }, factor))
            }
            Self::Plain => matches!(suffix, "" | "/s").then_some((LevelUnit::Number, 1)),
        }
    }
}

impl Level {
    /// Reads a number with its unit.
    pub(super) fn parse(text: &str, family: Family) -> Result<Self, String> {
        let text = text.trim();
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
        let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let digits = number.replace('_', "");
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        if whole.is_empty() || fraction.contains('.') {
            return Err(format!("`{text}` does not begin with a number; {}", family.allowed()));
        }
        let Some((unit, factor)) = family.unit(suffix.trim()) else {
            return Err(format!("`{text}` has no unit that fits; {}", family.allowed()));
        };
        let value = thousandths(whole, fraction, factor)
            .ok_or_else(|| format!("`{text}` is too large, or finer than a thousandth"))?;
        let negative = text.starts_with('-');
        if negative && family != Family::Plain {
            return Err(format!("`{text}` is negative, which the value never is"));
        }
        let thousandths = if negative { -value } else { value };
        Ok(Self { thousandths, unit, text: text.to_owned() })
    }

    /// This level and a tenth of it more (`back` > 0) or less.
    pub(super) fn a_tenth(&self, back: i64) -> Self {
        let tenth = self.thousandths.saturating_abs() / 10;
        let thousandths = self.thousandths.saturating_add(tenth.saturating_mul(back.signum()));
        Self { thousandths, unit: self.unit, text: self.unit.shown(thousandths, false) }
    }

    /// The level in thousandths of [`Level::unit`].
    pub fn thousandths(&self) -> i64 {
        self.thousandths
    }

    /// The unit that the file gives it in.
    pub fn unit(&self) -> LevelUnit {
        self.unit
    }
}

impl fmt::Display for Level {
    /// As it stands in the file, where it does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// `whole.fraction` times `factor`, in thousandths.
fn thousandths(whole: &str, fraction: &str, factor: i128) -> Option<i64> {
    let scale = factor.checked_mul(1_000)?;
    let mut value = whole.parse::<i128>().ok()?.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes().map(|octet| i128::from(octet - b'0')) {
        if digit != 0 && place % 10 != 0 {
            return None;
        }
        place /= 10;
        value += digit * place;
    }
    i64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(text: &str) -> (i64, LevelUnit) {
        let level = Level::parse(text, Family::Octets).unwrap();
        (level.thousandths(), level.unit())
    }

    #[test]
    fn levels_are_exact() {
        assert_eq!(octets("900Mbit/s"), (900_000_000_000, LevelUnit::BitsPerSecond));
        assert_eq!(octets("1.5 kB/s"), (1_500_000, LevelUnit::BytesPerSecond { binary: false }));
        assert_eq!(octets("1KiB/s"), (1_024_000, LevelUnit::BytesPerSecond { binary: true }));
        let number = |text| Level::parse(text, Family::Plain).unwrap().thousandths();
        assert_eq!(number("0.5"), 500);
        assert_eq!(number("-12"), -12_000);
        assert_eq!(number("1_000/s"), 1_000_000);
        assert!(Level::parse("0.0005", Family::Plain).is_err());
        assert!(Level::parse("900", Family::Octets).is_err());
        assert!(Level::parse("4 GiB", Family::Bytes).is_ok());
        assert!(Level::parse("4Gbit/s", Family::Bytes).is_err());
        assert!(Level::parse("90%", Family::Bytes).is_err());
        let share = Level::parse("92.5%", Family::OfDisk).unwrap();
        assert_eq!((share.thousandths(), share.unit()), (92_500, LevelUnit::PercentOfSize));
        assert_eq!(share.unit().shown(91_250, false), "91.25 %");
    }

    #[test]
    fn a_tenth_back_of_a_negative_level_is_back() {
        let level = Level::parse("-10", Family::Plain).unwrap();
        assert_eq!(level.a_tenth(-1).thousandths(), -11_000);
        assert_eq!(level.a_tenth(1).thousandths(), -9_000);
        assert_eq!(level.a_tenth(-1).to_string(), "-11");
    }

    #[test]
    fn values_are_shown_with_the_prefix_that_fits() {
        let bits = |thousandths| LevelUnit::BitsPerSecond.shown(thousandths, true);
        assert_eq!(bits(912_430_000_000), "912.43 Mbit/s");
        assert_eq!(bits(0), "0 bit/s");
        assert_eq!(bits(1_500), "1.5 bit/s");
        assert_eq!(LevelUnit::Bytes { binary: true }.shown(1 << 40, false), "1.024 GiB");
        assert_eq!(LevelUnit::Number.shown(-2_250, false), "-2.25");
        assert_eq!(LevelUnit::Number.shown(12_000_000, true), "12000/s");
    }
}
