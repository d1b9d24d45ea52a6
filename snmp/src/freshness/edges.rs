//! The newest updates of one series, and what spans between them say about the refresh behind them.
//!
//! An update is seen at the poll that first shows the new value; it happened somewhere between that
//! poll and the one before. Every span between two updates is therefore an interval of possible
//! spans, and a period is what lies in all of them, each divided by a whole number: a value that did
//! not move at a refresh leaves a span of several periods, which a mean would take for one.

/// Updates that are kept; enough to tell a period of two polls from chance in an idle series.
pub(super) const KEPT: usize = 24;

/// Deviation of a real agent's refresh from its own period that is still called periodic
/// (measured on net-snmp with a cache of 1 s: 0.925 to 1.012 s).
const JITTER: f64 = 0.05;

/// Below this many polls, hardly a span between two updates contradicts a period and its multiples;
/// such periods are judged by the phase of all updates at once.
const SHORT_POLLS: f64 = 10.0;

/// Below this many polls, a value that moves now and then is confused with a jittering period, which
/// must therefore have one phase.
const JITTERING_POLLS: f64 = 4.0;

/// Below this many polls an agent is as good as fresh at every poll.
const LEAST_POLLS: f64 = 1.5;

/// The shortest period that is sought by phase; below it every phase would do.
const FOLDED_POLLS: f64 = 1.9;

/// How probable it may be that updates at random instants look periodic.
const CHANCE_MAX: f64 = 1e-3;

/// Instants are whole µs.
const RESOLUTION: f64 = 1.5;

/// Share of a poll by which a refresh's and a poll's own jitter may carry an update into the poll
/// beside.
const BORDER: f64 = 0.03;

/// One update, in µs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Edge {
    /// From the poll that showed the update before to the poll that showed this one.
    pub(super) gap: f64,
    /// From the poll before this update to the poll that showed it.
    pub(super) width: f64,
}

/// A ring of the newest updates.
#[derive(Debug, Clone, Default)]
pub(super) struct Edges {
    gap_us: [u32; KEPT],
    width_us: [u32; KEPT],
    next: u8,
    kept: u8,
}

impl Edges {
    /// Adds the newest update and forgets the oldest if there is no room.
    pub(super) fn push(&mut self, gap_us: u32, width_us: u32) {
        let at = usize::from(self.next);
        self.gap_us[at] = gap_us;
        self.width_us[at] = width_us;
        self.next = if at + 1 == KEPT { 0 } else { self.next + 1 };
        self.kept = (self.kept + 1).min(24);
    }

    pub(super) fn clear(&mut self) {
        self.kept = 0;
    }

    /// Updates that are kept.
    pub(super) fn len(&self) -> usize {
        usize::from(self.kept)
    }

    /// The newest update but `back`.
    pub(super) fn newest(&self, back: usize) -> Edge {
        let at = (usize::from(self.next) + 2 * KEPT - 1 - back) % KEPT;
        Edge { gap: f64::from(self.gap_us[at]), width: f64::from(self.width_us[at]) }
    }

    /// The newest `count` updates, oldest first.
    pub(super) fn last(&self, count: usize, out: &mut [Edge; KEPT]) -> usize {
        let count = count.min(self.len());
        for (back, slot) in (0..count).rev().zip(out.iter_mut()) {
            *slot = self.newest(back);
        }
        count
    }
}

/// A period that explains every update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Period {
    /// In µs.
    pub(super) period: f64,
    /// Greatest error of the period, in µs.
    pub(super) error: f64,
    /// Some refreshes left the value as it was.
    pub(super) idle: bool,
}

/// The greatest and the least span between updates, in µs; zeros without any.
pub(super) fn extremes(edges: &[Edge]) -> (f64, f64) {
    let gaps = || edges.iter().skip(1).map(|edge| edge.gap);
    (gaps().fold(f64::INFINITY, f64::min), gaps().fold(0.0, f64::max))
}

/// The greatest period that explains the updates better than chance would.
///
/// `edges` are oldest first; the first one's gap is not used.
pub(super) fn period_of(edges: &[Edge], thorough: bool) -> Option<Period> {
    if edges.len() < 3 {
        return None;
    }
    let poll = edges.iter().map(|edge| edge.width).fold(f64::INFINITY, f64::min).max(1.0);
    every_update_seen(edges, poll).or_else(|| multiples(edges, poll)).or_else(|| {
        let (least, _) = extremes(edges);
        (thorough && least < (SHORT_POLLS + 1.0) * poll).then(|| folded(edges, poll)).flatten()
    })
}

/// The period when no refresh left the value as it was: all spans agree.
fn every_update_seen(edges: &[Edge], poll: f64) -> Option<Period> {
    let (least, greatest) = extremes(edges);
    let width = edges.iter().map(|edge| edge.width).fold(0.0, f64::max);
    let spans = count(edges.len() - 1);
    let total: f64 = edges.iter().skip(1).map(|edge| edge.gap).sum();
    let mean = total / spans;
    if mean < LEAST_POLLS * poll || greatest - least > 2.0 * width + JITTER * mean {
        return None;
    }
    let alike = greatest - least <= 1.1 * width + 1.2 * JITTER * mean;
    match refine(edges, &[1.0; KEPT]) {
        Some(period) => Some(Period { idle: false, ..period }),
        None if alike && mean >= JITTERING_POLLS * poll => {
            Some(Period { period: mean, error: width / spans, idle: false })
        }
        None => None,
    }
}

/// The period when spans are whole multiples of it, each for itself.
fn multiples(edges: &[Edge], poll: f64) -> Option<Period> {
    let spans = edges.windows(2).map(|pair| {
        let (before, edge) = (pair[0], pair[1]);
        ((edge.gap - edge.width).max(0.0), edge.gap + before.width)
    });
    let (least_low, least_high) = spans.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
    for parts in 1..=8_u32 {
        let parts = f64::from(parts);
        let middle = (least_low + least_high) / 2.0 / parts;
        if middle < SHORT_POLLS * poll {
            return None;
        }
        let slack = JITTER * middle;
        let (mut low, mut high) = ((least_low - slack) / parts, (least_high + slack) / parts);
        let mut chance = parts;
        let mut factors = [0.0; KEPT];
        let mut fits = true;
        'passes: for last_pass in [false, false, true] {
            for (index, (span_low, span_high)) in spans.clone().enumerate() {
                let (span_low, span_high) = (span_low - slack, span_high + slack);
                let fewest = (span_low / high).ceil().max(1.0);
                let most = (span_high / low).floor();
                fits = fewest <= most;
                if fits && most - fewest < 0.5 {
                    factors[index] = fewest;
                    low = low.max(span_low / fewest);
                    high = high.min(span_high / fewest);
                    fits = low <= high;
                }
                // One span that fits no multiple is enough: most are random, and end here.
                if !fits {
                    break 'passes;
                }
                if last_pass {
                    chance *= ((span_high - span_low) / middle).min(1.0);
                }
            }
        }
        let idle = factors.iter().any(|&periods| periods > 1.5);
        if fits && idle && chance < CHANCE_MAX * 10.0 {
            let rough =
                Period { period: f64::midpoint(low, high), error: (high - low) / 2.0, idle: true };
            let refined = refine(edges, &factors).map(|period| Period { idle: true, ..period });
            return Some(refined.unwrap_or(rough));
        }
    }
    None
}

/// The period and its error from all pairs of updates whose distance in periods is known, if one
/// period and phase explain them all. `factors` holds the periods in each span, 0 if not known.
fn refine(edges: &[Edge], factors: &[f64; KEPT]) -> Option<Period> {
    let (mut low, mut high) = (0.0_f64, f64::INFINITY);
    for first in 0..edges.len() {
        let (mut span, mut periods) = (0.0, 0.0);
        for last in first + 1..edges.len() {
            if factors[last - 1] < 0.5 {
                break;
            }
            span += edges[last].gap;
            periods += factors[last - 1];
            low = low.max((span - edges[last].width) / periods);
            high = high.min((span + edges[first].width) / periods);
        }
    }
    (high.is_finite() && high - low > -RESOLUTION).then(|| Period {
        period: f64::midpoint(low, high),
        error: ((high - low) / 2.0).max(0.0),
        idle: false,
    })
}

/// The greatest short period under which all updates have one phase.
fn folded(edges: &[Edge], poll: f64) -> Option<Period> {
    let (least, _) = extremes(edges);
    let total: f64 = edges.iter().skip(1).map(|edge| edge.gap).sum();
    let mut period = least + poll;
    let mut found: Option<(f64, f64)> = None;
    let mut shared: f64 = 0.0;
    let mut tried = 1.0;
    while period > FOLDED_POLLS * poll {
        let step = 0.2 * poll * period / total;
        match one_phase(edges, period, BORDER * poll) {
            Ok(overlap) => {
                shared = shared.max(overlap);
                let (_, greatest) = found.unwrap_or((period, period));
                found = Some((period, greatest));
                period -= step;
            }
            Err(_) if found.is_some() => break,
            Err(least_change) => {
                let change = least_change.max(step);
                // Periods that move no update by a poll are one trial.
                tried += 0.2 * change / step;
                period -= change;
            }
        }
    }
    let (least, greatest) = found?;
    let period = f64::midpoint(least, greatest);
    // A phase on the border between two polls is shown by either.
    let polls = if shared < 2.5 * BORDER * poll { 2.0 } else { 1.0 };
    let random = |edge: &Edge| (polls * edge.width / period).min(1.0);
    let chance = edges.iter().skip(1).map(random).product::<f64>() * tried;
    (chance < CHANCE_MAX / 5.0).then_some(Period {
        period,
        error: (greatest - least) / 2.0,
        idle: true,
    })
}

/// How far apart the instants are that, repeated every `period`, fall into every update's interval,
/// each widened by `slack` at both ends.
///
/// # Errors
/// If there is none: by how much the period must change at least before there can be one. Most periods
/// are ruled out by the first few updates, and with them all that lie near (measured: a fifth of the
/// time of trying every one).
fn one_phase(edges: &[Edge], period: f64, slack: f64) -> Result<f64, f64> {
    let (mut low, mut high) = (-edges[0].width - slack, slack);
    let (mut at, per_period) = (0.0, 1.0 / period);
    for edge in &edges[1..] {
        at += edge.gap;
        let periods = nearest_whole(at * per_period);
        let nearest = at - periods * period;
        let end = if nearest < 0.0 { nearest + period } else { nearest };
        let overlap = |end: f64| (low.max(end - edge.width - slack), high.min(end + slack));
        let (later, earlier) = (overlap(end), overlap(end - period));
        (low, high) = if later.1 - later.0 > earlier.1 - earlier.0 { later } else { earlier };
        if low > high {
            // An instant moves by the change of the period times the periods before it.
            return Err((low - high) / (periods + 1.0));
        }
    }
    Ok(high - low)
}

/// The whole number nearest to one below 2^51: an addition, where rounding is a call on processors
/// that are not known to round by themselves.
#[inline]
fn nearest_whole(number: f64) -> f64 {
    /// From here on, neighbouring doubles are 1 apart; half as much again serves negative numbers.
    const WHOLE: f64 = 1.5 * 4_503_599_627_370_496.0;
    (number + WHOLE) - WHOLE
}

/// A small count as a float; exact.
fn count(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(gaps_in_polls: &[u32]) -> Vec<Edge> {
        gaps_in_polls
            .iter()
            .map(|&gap| Edge { gap: f64::from(gap) * 100_000.0, width: 100_000.0 })
            .collect()
    }

    #[test]
    fn spans_of_several_periods_do_not_lengthen_the_period() {
        let found = period_of(&edges(&[0, 30, 90, 30, 60, 120, 30]), false).unwrap();
        assert!((found.period - 3e6).abs() < 0.05 * 3e6, "{found:?}");
        assert!(found.idle);
    }

    #[test]
    fn the_least_span_may_itself_be_a_multiple() {
        let found = period_of(&edges(&[0, 60, 90, 150, 60, 90, 120]), false).unwrap();
        assert!((found.period - 3e6).abs() < 0.05 * 3e6, "{found:?}");
    }

    #[test]
    fn two_polls_are_found_in_an_idle_series_by_phase() {
        let found =
            period_of(&edges(&[0, 2, 4, 2, 6, 2, 2, 8, 4, 2, 2, 4, 6, 2, 4, 2, 2, 6, 2, 4]), true)
                .unwrap();
        assert!((found.period - 2e5).abs() < 0.05 * 2e5, "{found:?}");
    }

    #[test]
    fn random_spans_have_no_period() {
        assert_eq!(period_of(&edges(&[0, 7, 11, 6, 9, 12, 8, 10, 6, 7, 12, 9]), true), None);
        assert_eq!(period_of(&edges(&[0, 1, 3, 1, 7, 2, 1, 1, 5, 2, 9, 1]), true), None);
    }

    #[test]
    fn the_ring_keeps_the_newest() {
        let mut ring = Edges::default();
        for gap in 1..=40 {
            ring.push(gap, 1);
        }
        let mut out = [Edge::default(); KEPT];
        assert_eq!(ring.last(3, &mut out), 3);
        assert_eq!(out[..3].iter().map(|edge| edge.gap).collect::<Vec<_>>(), [38.0, 39.0, 40.0]);
        assert_eq!(ring.last(99, &mut out), KEPT);
    }
}
