//! Numbers as people read them: at most four digits and one unit, as on the page.

use meikyo_units::{Nanos, WallTime};

/// What stands where a value is missing: never 0.
pub(super) const MISSING: &str = "–";

const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Shown in bit/s, which is what links are sold in.
    OctetsPerSecond,
    PacketsPerSecond,
    PerSecond,
    Tasks,
    /// A share from 0 to 1, shown in per cent.
    Share,
    Seconds,
}

/// A value with its unit: `812.4 Mbit/s`.
pub(super) fn amount(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return MISSING.into() };
    match unit {
        Unit::OctetsPerSecond => prefixed(value * 8.0, "bit/s"),
        Unit::PacketsPerSecond => prefixed(value, "pkt/s"),
        Unit::PerSecond => prefixed(value, "/s"),
        Unit::Tasks => format!("{value:.2}"),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Seconds => seconds(value),
    }
}

/// A value of a unit that only its declaration knows: `41.5 °C`, `1200 rpm`.
pub(super) fn number(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return MISSING.into() };
    let digits = match value.abs() {
        _ if value.fract().abs() < f64::EPSILON => 0,
        size if size >= 1_000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

fn prefixed(value: f64, unit: &str) -> String {
    let (mut size, mut step) = (value, 0);
    while size.abs() >= 999.95 && step + 1 < PREFIXES.len() {
        size /= 1000.0;
        step += 1;
    }
    let whole = step == 0 && size.fract().abs() < f64::EPSILON;
    let digits = match size.abs() {
        _ if whole => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{size:.digits$} {}{unit}", PREFIXES[step])
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 0.000_999_5 => format!("{:.0} µs", value * 1e6),
        value if value < 0.0995 => format!("{:.1} ms", value * 1e3),
        value if value < 99.95 => format!("{value:.1} s"),
        value if value < 5_970.0 => format!("{:.0} min", value / 60.0),
        value => format!("{:.0} h", value / 3_600.0),
    }
}

/// Behind a value that is older than its device's newest answer: ` (8 s)`; nothing behind others.
pub(super) fn behind(age: Option<Nanos>) -> String {
    let Some(age) = age else { return String::new() };
    match age.get() / 1_000_000_000 {
        seconds @ ..100 => format!(" ({seconds} s)"),
        seconds @ ..6_000 => format!(" ({} min)", seconds / 60),
        seconds => format!(" ({} h)", seconds / 3_600),
    }
}

/// A number of octets: `8.91 GB`.
pub(super) fn octets(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.into(), |value| prefixed(value, "B"))
}

/// A part of a whole in per cent; what is not quite all never reads `100 %`, and what is not
/// nothing never `0 %`.
pub(super) fn percent(part: u64, all: u64) -> String {
    if all == 0 {
        return MISSING.into();
    }
    if part == all || part == 0 {
        return format!("{} %", if part == 0 { 0 } else { 100 });
    }
    // In hundredths of a per cent, towards 50 %.
    let hundredths = u128::from(part) * 10_000 / u128::from(all);
    let hundredths = hundredths.clamp(1, 9_999);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// The time of day of an instant, in UTC, to a tenth of a second: `20:14:00.1`.
pub(super) fn clock(time: WallTime) -> String {
    let tenths = time.floor(Nanos::from_millis(100));
    jiff::Timestamp::from_nanosecond(tenths.as_nanos().into())
        .map_or_else(|_| MISSING.into(), |instant| instant.strftime("%H:%M:%S.%1f").to_string())
}

/// An instant with its date, in UTC, to a second.
pub(super) fn date_and_clock(time: WallTime) -> String {
    jiff::Timestamp::from_nanosecond(time.as_nanos().into()).map_or_else(
        |_| MISSING.into(),
        |instant| instant.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_on_the_page() {
        for (value, unit, expected) in [
            (101_550_000.0, Unit::OctetsPerSecond, "812.4 Mbit/s"),
            (0.0, Unit::OctetsPerSecond, "0 bit/s"),
            (124.99e6, Unit::OctetsPerSecond, "999.9 Mbit/s"),
            (124.9999e6, Unit::OctetsPerSecond, "1.00 Gbit/s"),
            (0.25, Unit::Tasks, "0.25"),
            (0.123_4, Unit::Share, "12.3 %"),
            (0.000_412, Unit::Seconds, "412 µs"),
            (0.031, Unit::Seconds, "31.0 ms"),
            (0.12, Unit::Seconds, "0.1 s"),
            (300.0, Unit::Seconds, "5 min"),
        ] {
            assert_eq!(amount(Some(value), unit), expected);
        }
        assert_eq!(amount(None, Unit::Tasks), MISSING);
        assert_eq!(amount(Some(f64::NAN), Unit::Tasks), MISSING);
        assert_eq!(octets(Some(8.91e9)), "8.91 GB");
    }

    #[test]
    fn a_share_is_all_or_nothing_only_when_it_is() {
        assert_eq!(percent(0, 0), MISSING);
        assert_eq!(percent(1, 1_000_000), "0.01 %");
        assert_eq!(percent(999_999, 1_000_000), "99.99 %");
        assert_eq!(percent(5, 5), "100 %");
        assert_eq!(percent(0, 5), "0 %");
        assert_eq!(percent(1, 3), "33.33 %");
    }

    #[test]
    fn the_clock_is_true_to_a_tenth() {
        let due = WallTime::from_nanos(1_700_000_000_199_000_000);
        assert_eq!(clock(due), "22:13:20.1");
        assert_eq!(date_and_clock(due), "2023-11-14 22:13:20");
    }
}
