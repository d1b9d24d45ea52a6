//! Axes: which span they show, and where their ticks stand.

/// Ticks that an axis shall have about.
const TICKS: f64 = 6.0;

/// An axis with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) first: f64,
    pub(super) last: f64,
    /// Where ticks stand, and what is written at them.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over all finite values, to round numbers at both ends.
    pub(super) fn over(values: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (least, greatest) = (least.min(value), greatest.max(value));
        }
        if least > greatest {
            (least, greatest) = (0.0, 1.0);
        }
        if greatest - least <= greatest.abs() * 1e-12 {
            let room = if greatest == 0.0 { 1.0 } else { greatest.abs() };
            (least, greatest) = (least.min(0.0), greatest.max(least + room));
        }
        let step = step(greatest - least);
        let (from, to) = ((least / step).floor(), (greatest / step).ceil());
        let mut ticks = Vec::new();
        let mut at = from;
        // A step is at most as wide as the span, and the span at most ten of them.
        while at <= to {
            ticks.push((at * step, label(at * step, step)));
            at += 1.0;
        }
        Self { first: from * step, last: to * step, ticks }
    }

    /// An axis of words side by side.
    pub(super) fn of_words(words: &[String]) -> Self {
        let ticks: Vec<(f64, String)> =
            (0_u32..).map(f64::from).zip(words.iter().cloned()).collect();
        let last = ticks.last().map_or(0.0, |(at, _)| *at);
        Self { first: -0.5, last: last + 0.5, ticks }
    }

    /// Where `value` stands, from 0 at the first end to 1 at the last.
    pub(super) fn place(&self, value: f64) -> f64 {
        (value - self.first) / (self.last - self.first)
    }
}

/// 1, 2 or 5 times a power of ten, so that `span` has about [`TICKS`] of it.
fn step(span: f64) -> f64 {
    let rough = span / TICKS;
    let power = 10.0_f64.powf(rough.log10().floor());
    let factor = rough / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|step| *step >= factor).unwrap_or(10.0)
}

/// A number with as many digits as neighbours at a distance of `step` need to differ.
fn label(value: f64, step: f64) -> String {
    let digits = (0..12).find(|digits| {
        let scaled = step * 10.0_f64.powi(*digits);
        (scaled - scaled.round()).abs() < 1e-6 * scaled && scaled >= 0.999
    });
    match digits.and_then(|digits| usize::try_from(digits).ok()) {
        Some(digits) if value.abs() < 1e7 => {
            let text = format!("{value:.digits$}");
            // Rounding can leave a sign before nothing.
            if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
        }
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        for (values, first, last, labels) in [
            (vec![11.0, 88.0], 0.0, 100.0, "0 20 40 60 80 100"),
            (vec![0.0, 0.83], 0.0, 1.0, "0 0.2 0.4 0.6 0.8 1.0"),
            (vec![-3.0, 4.0], -4.0, 4.0, "-4 -2 0 2 4"),
            (vec![5.0], 0.0, 10.0, "0 2 4 6 8 10"),
            (vec![f64::NAN], 0.0, 1.0, "0 0.2 0.4 0.6 0.8 1.0"),
            (vec![0.0, 3e9], 0.0, 3e9, "0 5.000e8 1.000e9 1.500e9 2.000e9 2.500e9 3.000e9"),
        ] {
            let axis = Axis::over(values.iter().copied());
            let found: Vec<&str> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
            assert_eq!(found.join(" "), labels, "{values:?}");
            assert!((axis.first - first).abs() < 1e-9 && (axis.last / last - 1.0).abs() < 1e-9);
        }
        let words = Axis::of_words(&["a".to_owned(), "b".to_owned()]);
        assert!((words.place(0.0) - 0.25).abs() < 1e-12 && (words.place(1.0) - 0.75).abs() < 1e-12);
    }
}
