//! The last minute of every device in bins, for the charts.
//!
//! Memory is bounded: at most [`LINES_MAX`] lines of at most 240 bins of 4 octets, 48 MB; lines
//! beyond have no chart. A bin keeps the greatest value, so that no spike is lost.

use std::collections::{BTreeMap, VecDeque};

/// Lines that are kept.
const LINES_MAX: usize = 50_000;
/// The span that is kept, ns.
pub(super) const SPAN: i64 = 60_000_000_000;

/// What a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// Octets received a second, by interface.
    Received(usize),
    /// Octets sent a second, by interface.
    Sent(usize),
    /// The load average of a minute.
    Load,
}

/// The lines of all devices.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// Length of a bin, ns.
    bin: i64,
    lines: BTreeMap<(usize, Line), Bins>,
}

#[derive(Debug, Clone, Default)]
struct Bins {
    /// Number of the first bin: its begin over the length of a bin.
    first: i64,
    /// NaN where there was no value.
    values: VecDeque<f32>,
}

impl Bins {
    /// How many there are.
    fn count(&self) -> i64 {
        i64::try_from(self.values.len()).expect("at most those of `SPAN`")
    }
}

impl History {
    /// For some devices: the more, the coarser.
    pub(super) fn new(devices: usize) -> Self {
        let bin = if devices <= 1_000 { 250_000_000 } else { 1_000_000_000 };
        Self { bin, lines: BTreeMap::new() }
    }

    /// Takes a value of an instant, ns since the epoch.
    pub(super) fn push(&mut self, device: usize, line: Line, time: i64, value: Option<f64>) {
        let room = self.lines.len() < LINES_MAX;
        let bins = match self.lines.get_mut(&(device, line)) {
            Some(bins) => bins,
            None if room => self.lines.entry((device, line)).or_default(),
            None => return,
        };
        let (number, most) = (time.div_euclid(self.bin), SPAN / self.bin);
        let end = bins.first + bins.count();
        if bins.values.is_empty() || number < bins.first - most || number >= end + most {
            // A jump beyond the span: what was there is out of sight.
            bins.values.clear();
            bins.first = number;
        }
        let end = bins.first + bins.count();
        for _ in end..=number {
            bins.values.push_back(f32::NAN);
        }
        while i64::try_from(bins.values.len()).is_ok_and(|len| len > most) {
            bins.values.pop_front();
            bins.first += 1;
        }
        let at = usize::try_from(number - bins.first).ok();
        if let (Some(bin), Some(value)) = (at.and_then(|at| bins.values.get_mut(at)), value) {
            // NaN loses against any number.
            *bin = bin.max(narrowed(value));
        }
    }

    /// Whether there is a line.
    pub(super) fn has(&self, device: usize, line: Line) -> bool {
        self.lines.contains_key(&(device, line))
    }

    /// A line of `width` columns over the span that ends at `end`, newest last: the greatest value
    /// of each column. `None` when there is no such line.
    pub(super) fn columns(
        &self,
        device: usize,
        line: Line,
        end: i64,
        width: usize,
    ) -> Option<Vec<Option<f64>>> {
        let bins = self.lines.get(&(device, line))?;
        let mut columns = vec![None; width];
        let width = i64::try_from(width).ok().filter(|width| *width > 0)?;
        let column = |number: i64| ((number + 1) * self.bin - (end - SPAN)) * width / SPAN;
        for (number, value) in (bins.first..).zip(&bins.values) {
            if value.is_nan() {
                continue;
            }
            // A bin that is wider than a column fills several.
            for column in column(number - 1)..column(number).max(column(number - 1) + 1) {
                let at = usize::try_from(column).ok().and_then(|at| columns.get_mut(at));
                let Some(slot) = at else { continue };
                let value = f64::from(*value);
                *slot = Some(slot.map_or(value, |known: f64| known.max(value)));
            }
        }
        Some(columns)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "for drawing: 24 bits are kept")]
fn narrowed(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn the_greatest_value_of_a_column_is_drawn_and_gaps_stay_gaps() {
        let mut history = History::new(1);
        for tenth in 0..600 {
            let value = if tenth == 305 { 99.0 } else { 1.0 };
            let missing = (200..220).contains(&tenth);
            let value = (!missing).then_some(value);
            history.push(0, Line::Load, tenth * S / 10, value);
        }
        let columns = history.columns(0, Line::Load, 60 * S, 60).unwrap();
        assert_eq!(columns.len(), 60);
        let of = |value: f64| columns.iter().flatten().filter(|v| **v > value - 0.5).count();
        assert_eq!(of(99.0), 1, "{columns:?}");
        assert_eq!(columns[30], Some(99.0));
        assert_eq!(columns[20..22], [None, None]);
        assert_eq!(columns[19], Some(1.0));
    }

    #[test]
    fn old_bins_go_and_a_jump_begins_anew() {
        let mut history = History::new(1);
        for second in 0..600 {
            history.push(0, Line::Sent(2), second * S, Some(1.0));
        }
        let (_, bins) = history.lines.iter().next().unwrap();
        assert_eq!(bins.values.len(), 240);
        history.push(0, Line::Sent(2), 5_000 * S, Some(2.0));
        let columns = history.columns(0, Line::Sent(2), 5_001 * S, 10).unwrap();
        assert_eq!(columns.iter().flatten().count(), 1);
        assert_eq!(history.columns(1, Line::Sent(2), 0, 10), None);
        assert_eq!(history.columns(0, Line::Sent(2), 0, 0), None);
    }

    #[test]
    fn lines_are_bounded() {
        let mut history = History::new(2_000);
        for device in 0..LINES_MAX + 10 {
            history.push(device, Line::Load, 0, Some(1.0));
        }
        assert_eq!(history.lines.len(), LINES_MAX);
    }
}
