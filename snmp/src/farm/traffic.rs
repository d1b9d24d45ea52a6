//! How the values of a simulated host move: octet counters, disk space, load.
//!
//! Every process is a pure function of (stream key, step). A step is 100 ms by default. The little
//! state that is kept beside it only saves recomputing what the previous reading already knew, and
//! never changes a result.

use meikyo_worlds::random::{below, draw};

/// Steps in a block. Over a block every counter gains the same amount, which makes the value at any
/// step computable from the block's beginning alone.
const BLOCK: u64 = 4096;

/// Octets of jitter on a counter: fills the gaps between the table's increments, so that increments
/// are not drawn from a small set. Smaller than the least increment, so that no counter goes back.
const JITTER: u64 = 2048;

/// The increments of one block, in no particular order: the quantiles of a log-normal distribution.
#[derive(Debug, Clone)]
pub(crate) struct Increments {
    table: Vec<u32>,
    sum: u64,
}

impl Increments {
    /// Median 100 kB a step, sigma 1: 90 % of the increments lie between 19 kB and 518 kB.
    pub(crate) fn octets() -> Self {
        let table: Vec<u32> = (0..4096_u32)
            .map(|rank| {
                let probability = (f64::from(rank) + 0.5) / 4096.0;
                rounded(100_000.0 * normal_quantile(probability).exp())
            })
            .collect();
        let sum = table.iter().copied().map(u64::from).sum();
        Self { table, sum }
    }

    /// Reads a number of each cache line.
    pub(super) fn fetch(&self) -> u64 {
        self.table.iter().step_by(16).fold(self.sum, |read, own| read ^ u64::from(*own))
    }

    /// The increment of a step whose permuted rank is `rank`.
    #[inline]
    fn get(&self, rank: u64) -> u64 {
        usize::try_from(rank & (BLOCK - 1))
            .ok()
            .and_then(|rank| self.table.get(rank))
            .copied()
            .map_or(0, u64::from)
    }
}

/// `value` as the nearest whole number; increments are below 2^32 by construction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "quantiles of the table lie between 2,000 and 5,000,000"
)]
fn rounded(value: f64) -> u32 {
    value.round() as u32
}

/// The quantile function of the standard normal distribution for `probability` in (0, 1), by
/// bisection of its series; 14 digits are far more than the table needs.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0_f64, 8.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal_distribution(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The distribution function of the standard normal distribution by its Taylor series
/// (Marsaglia, "Evaluating the normal distribution", 2004).
fn normal_distribution(x: f64) -> f64 {
    let (mut sum, mut term, mut odd) = (x, x, 3.0);
    // The terms of |x| <= 8 are below the last digit of the sum after 200 of them.
    for _ in 0..200 {
        term *= x * x / odd;
        odd += 2.0;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Moves the ranks of a block around: a bijection of 12-bit numbers chosen by `key`.
#[inline]
const fn permuted(key: u64, rank: u64) -> u64 {
    let mut x = rank.wrapping_mul(key | 1).wrapping_add(key >> 12) & (BLOCK - 1);
    x ^= x >> 5;
    x = x.wrapping_mul((key >> 24) | 1).wrapping_add(key >> 36) & (BLOCK - 1);
    x ^= x >> 7;
    x.wrapping_mul((key >> 48) | 1) & (BLOCK - 1)
}

/// A counter of octets (or, scaled down, of packets) that gains a log-normal amount at each step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter {
    /// The step of the last reading.
    step: u64,
    /// What the block of `step` gained before it.
    gained: u64,
    /// The permutation of that block.
    block_key: u64,
    /// What is subtracted, modulo 2^64: puts the counter near a wrap, or to zero at a reset.
    zero: u64,
}

impl Counter {
    /// A counter that begins at `start` at step 0.
    pub(crate) fn starting_at(key: u64, start: u64, increments: &Increments) -> Self {
        let mut counter = Self { block_key: draw(key, 0), ..Self::default() };
        counter.restart_at(key, 0, start, increments);
        counter
    }

    /// Jumps to `value` at `step` and goes on from there.
    pub(crate) fn restart_at(&mut self, key: u64, step: u64, value: u64, table: &Increments) {
        self.zero = 0;
        self.zero = self.at(key, step, table).wrapping_sub(value);
    }

    /// The value at `step`, modulo 2^64. Amortised O(1) for readings in order, at most 4,096 steps
    /// of work otherwise.
    #[inline]
    pub(crate) fn at(&mut self, key: u64, step: u64, increments: &Increments) -> u64 {
        let block = step / BLOCK;
        if block != self.step / BLOCK || step < self.step {
            self.step = block * BLOCK;
            self.gained = 0;
            self.block_key = draw(key, block);
        }
        while self.step < step {
            self.gained += increments.get(permuted(self.block_key, self.step & (BLOCK - 1)));
            self.step += 1;
        }
        let jitter = draw(!key, step) & (JITTER - 1);
        block
            .wrapping_mul(increments.sum)
            .wrapping_add(self.gained)
            .wrapping_add(jitter)
            .wrapping_sub(self.zero)
    }
}

/// Disk space, which changes in 10 % of the steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    /// The step of the last reading.
    step: u64,
    /// The last step at or before it that changed something.
    changed: u64,
}

impl Disk {
    pub(super) const fn fetch(&self) -> u64 {
        self.step
    }

    /// Kibibytes used at `step` beyond what is always there: grows by 400 B a step on average, with
    /// files of up to 8 MiB coming and going.
    #[inline]
    pub(crate) fn used_kib(&mut self, key: u64, step: u64) -> u64 {
        if step < self.step {
            *self = Self::default();
        }
        if step > self.step {
            // That none of 400 steps changes anything has a chance of 0.9^400.
            let oldest = self.step.max(step.saturating_sub(400));
            let found = (oldest + 1..=step).rev().find(|&step| below(draw(key, step), 10) == 0);
            self.changed = found.unwrap_or(if oldest == self.step { self.changed } else { 0 });
            self.step = step;
        }
        (self.changed * 2) / 5 + below(draw(!key, self.changed), 8192)
    }
}

/// Load averages over 1, 5 and 15 minutes, computed every 5 s as the kernel does.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    window: u64,
    hundredths: [u64; 3],
}

impl Load {
    pub(super) const fn fetch(&self) -> u64 {
        self.window
    }

    pub(crate) const fn new() -> Self {
        Self { window: u64::MAX, hundredths: [0; 3] }
    }

    /// Load average `term` (0: 1 min, 1: 5 min, 2: 15 min) in the 5 s window `window`, in hundredths.
    pub(crate) fn hundredths(&mut self, key: u64, window: u64, term: usize) -> u64 {
        if window != self.window {
            self.window = window;
            for (value, windows) in self.hundredths.iter_mut().zip([12_u64, 60, 180]) {
                let sum: u64 =
                    (0..windows).map(|back| below(draw(key, window.wrapping_sub(back)), 800)).sum();
                *value = sum / windows;
            }
        }
        self.hundredths.get(term).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_values() {
        for (probability, quantile) in [(0.5, 0.0), (0.975, 1.959_964), (0.1, -1.281_552)] {
            assert!((normal_quantile(probability) - quantile).abs() < 1e-6, "{probability}");
        }
    }

    #[test]
    fn a_block_is_a_permutation() {
        for key in [0, 1, u64::MAX, draw(5, 5), draw(6, 1)] {
            let seen: std::collections::BTreeSet<u64> =
                (0..BLOCK).map(|rank| permuted(key, rank)).collect();
            assert_eq!(seen.len(), 4096, "{key:x}");
        }
    }

    #[test]
    fn increments_are_log_normal_with_median_100_kb_and_sigma_1() {
        let increments = Increments::octets();
        let mut counter = Counter::starting_at(9, 0, &increments);
        let mut logs = Vec::new();
        let mut last = counter.at(9, 0, &increments);
        for step in 1..=40_000 {
            let value = counter.at(9, step, &increments);
            let increment = u32::try_from(value - last).unwrap();
            assert!(increment > 0, "the counter went back at step {step}");
            logs.push(f64::from(increment).ln());
            last = value;
        }
        logs.sort_by(f64::total_cmp);
        let median = logs[20_000].exp();
        let mean = logs.iter().sum::<f64>() / 40_000.0;
        let sigma = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 40_000.0).sqrt();
        assert!((median - 100_000.0).abs() < 2_000.0, "median {median}");
        assert!((sigma - 1.0).abs() < 0.03, "sigma {sigma}");
    }

    #[test]
    fn a_value_does_not_depend_on_what_was_read_before() {
        let increments = Increments::octets();
        let start = Counter::starting_at(3, u64::MAX - 5, &increments);
        let mut stepping = start.clone();
        let mut disk = Disk::default();
        for step in 0..9_000 {
            let value = stepping.at(3, step, &increments);
            let used = disk.used_kib(4, step);
            if step % 97 == 0 {
                assert_eq!(value, start.clone().at(3, step, &increments), "counter at {step}");
                assert_eq!(used, Disk::default().used_kib(4, step), "disk at {step}");
            }
        }
        assert_eq!(stepping.at(3, 5, &increments), start.clone().at(3, 5, &increments));
        assert_eq!(disk.used_kib(4, 5), Disk::default().used_kib(4, 5));
    }

    #[test]
    fn disk_space_changes_in_a_tenth_of_the_steps() {
        let mut disk = Disk::default();
        let mut last = disk.used_kib(8, 0);
        let mut changes = 0;
        for step in 1..=100_000 {
            let used = disk.used_kib(8, step);
            changes += u32::from(used != last);
            last = used;
        }
        assert!((9_400..10_600).contains(&changes), "{changes}");
    }

    #[test]
    fn load_moves_once_a_window_and_smoothly() {
        let mut load = Load::new();
        let series: Vec<u64> = (0..500).map(|window| load.hundredths(1, window, 0)).collect();
        assert!(series.iter().all(|&load| load < 800));
        assert!(series.windows(2).filter(|pair| pair[0] != pair[1]).count() > 450);
        assert!(series.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 67));
    }
}
