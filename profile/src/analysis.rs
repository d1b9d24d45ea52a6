//! What is said of samples where they are taken: the places of each second that were met most, and seconds
//! that are unlike those before.
//!
//! Functions are not known on a host, since nobody looks names up there. A **place** is 64 octets of a process's
//! code; with the address that was met most in it, and what the recording knows of mappings, whoever reads
//! names its function. A second of a CPU is **summed up** by its [`PLACES`] places with most samples and the
//! number of all.
//!
//! Two things are **findings**, both of one CPU:
//!
//! - a **phase** begins when other code runs than before. Seconds are compared by where in their pages of 4 KiB
//!   the sampled instructions lie, 256 parts of a page for programs and as many for the kernel: that is the same
//!   in every process of a program, wherever it was loaded, so that a compiler that is started anew for each
//!   file is no phase each time. The distance is the total variation of the two distributions, from 0 to 1; it
//!   counts from [`PHASE_DISTANCE`] on, and from twice of what it was lately;
//! - an **outlier** is a second in which the CPU ran for much more or less of the time than the median of the
//!   last [`REMEMBERED`] seconds: by a fifth of the second, and by six times the median deviation.
//!
//! After a finding the CPU's past is forgotten, so that each change is found once. The module reads no clock.

use std::collections::{BTreeMap, VecDeque};

use crate::block::Sample;
use crate::kernel::KERNEL_BEGIN;

/// Places of a second and CPU that are told at most.
pub const PLACES: usize = 20;

/// Samples of a second below which its code is compared with nothing.
const SAMPLES_MIN: usize = 100;

/// From which distance on other code is another phase.
pub const PHASE_DISTANCE: f64 = 0.5;

/// Seconds that are remembered, and those that must be there before one can be an outlier.
pub const REMEMBERED: usize = 30;
const REMEMBERED_MIN: usize = 10;

/// How much more or less of the second an outlier runs, at least.
const OUTLIER_MIN: f64 = 0.2;

/// Parts of a page of code, for programs and for the kernel.
const PARTS: usize = 256;

/// The samples of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceCount {
    /// The process.
    pub pid: u32,
    /// The instruction in it that was met most.
    pub address: u64,
    /// Samples in the place.
    pub samples: u64,
}

/// What a CPU did in a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many there were in that second, whatever their places.
    pub samples: u64,
    /// Places with most samples first; ties by process and address.
    pub places: Vec<PlaceCount>,
    /// How it is unlike what was before.
    pub findings: Vec<Finding>,
}

/// How a second is unlike those before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Finding {
    /// Other code runs; the distance, from 0 to 1.
    Phase {
        /// Of the two distributions.
        distance: f64,
    },
    /// The CPU ran for another share of the second.
    Outlier {
        /// Its share.
        busy: f64,
        /// The median of the shares before.
        median: f64,
    },
}

/// The samples of a CPU, second by second.
#[derive(Debug, Default)]
pub struct Analyst {
    met: Vec<(u32, u64)>,
    /// What ran before; empty before the first second that counts.
    reference: Vec<f64>,
    /// The distances of late, smoothed.
    usual: f64,
    busy: VecDeque<f64>,
}

impl Analyst {
    /// Takes the next sample of the second.
    pub fn push(&mut self, sample: &Sample) {
        self.met.push((sample.pid, sample.address));
    }

    /// Ends the second, in which a sample stood for `period_ns` of running. Where that is `None` the rate changed
    /// in it, so that the CPU's share is not known, and it is no outlier.
    pub fn end_second(&mut self, period_ns: Option<u64>) -> Summary {
        self.met.sort_unstable();
        let mut findings = Vec::new();
        findings.extend(self.phase());
        findings.extend(period_ns.and_then(|period| self.outlier(period)));
        let summary =
            Summary { samples: self.met.len() as u64, places: places(&self.met), findings };
        self.met.clear();
        summary
    }

    fn phase(&mut self) -> Option<Finding> {
        if self.met.len() < SAMPLES_MIN {
            return None;
        }
        let now = distribution(&self.met);
        if self.reference.is_empty() {
            self.reference = now;
            return None;
        }
        let pairs = || self.reference.iter().zip(&now);
        let distance = pairs().map(|(before, now)| (before - now).abs()).sum::<f64>() / 2.0;
        if distance >= PHASE_DISTANCE && distance >= 2.0 * self.usual {
            (self.reference, self.usual) = (now, 0.0);
            return Some(Finding::Phase { distance });
        }
        self.reference = pairs().map(|(before, now)| before * 0.75 + now * 0.25).collect();
        self.usual = self.usual.mul_add(0.75, distance * 0.25);
        None
    }

    fn outlier(&mut self, period_ns: u64) -> Option<Finding> {
        #[expect(clippy::cast_precision_loss, reason = "a second has far fewer than 2^53 ns")]
        let busy = (self.met.len() as f64) * (period_ns as f64) / 1e9;
        let median = median(self.busy.iter().copied());
        let deviation = median_of_deviations(&self.busy, median);
        let far = (busy - median).abs();
        if self.busy.len() >= REMEMBERED_MIN && far >= OUTLIER_MIN && far >= 6.0 * deviation {
            self.busy.clear();
            self.busy.push_back(busy);
            return Some(Finding::Outlier { busy, median });
        }
        if self.busy.len() >= REMEMBERED {
            self.busy.pop_front();
        }
        self.busy.push_back(busy);
        None
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn median_of_deviations(values: &VecDeque<f64>, of: f64) -> f64 {
    median(values.iter().map(|value| (value - of).abs()))
}

/// Which share of the samples lies in which part of a page.
fn distribution(met: &[(u32, u64)]) -> Vec<f64> {
    let mut shares = vec![0.0; 2 * PARTS];
    #[expect(clippy::cast_precision_loss, reason = "samples of a second are far fewer than 2^53")]
    let one = 1.0 / met.len() as f64;
    for (_, address) in met {
        let part = usize::try_from((address & 0xfff) >> 4).expect("it is below 256");
        shares[if *address >= KERNEL_BEGIN { part + PARTS } else { part }] += one;
    }
    shares
}

/// The places with most samples, of addresses sorted by process and place.
fn places(met: &[(u32, u64)]) -> Vec<PlaceCount> {
    let mut counts: BTreeMap<(u32, u64), (u64, u64, u64)> = BTreeMap::new();
    // Equal addresses stand behind each other: runs of them.
    for run in met.chunk_by(|one, other| one == other) {
        let ((pid, address), samples) = (run[0], run.len() as u64);
        let (all, most, of) = counts.entry((pid, address >> 6)).or_default();
        *all += samples;
        if samples > *most {
            (*most, *of) = (samples, address);
        }
    }
    let count = |((pid, _), (samples, _, address)): ((u32, u64), (u64, u64, u64))| PlaceCount {
        pid,
        address,
        samples,
    };
    let mut places: Vec<_> = counts.into_iter().map(count).collect();
    places.sort_by_key(|place| (std::cmp::Reverse(place.samples), place.pid, place.address));
    places.truncate(PLACES);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Option<u64> = Some(1_000_000);

    fn sample(pid: u32, address: u64) -> Sample {
        Sample { pid, address, ..Sample::default() }
    }

    /// splitmix64: what is met follows from the number.
    fn noise(number: u64) -> u64 {
        let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A second of a program that spends its time in 200 instructions behind `begin`, loaded at `base`.
    fn second(
        analyst: &mut Analyst,
        (base, begin): (u64, u64),
        samples: u64,
        seed: u64,
    ) -> Summary {
        for at in 0..samples {
            let instruction = noise(seed << 20 ^ at) % 200;
            analyst
                .push(&sample(u32::try_from(base >> 12).unwrap(), base + begin + instruction * 4));
        }
        analyst.end_second(PERIOD)
    }

    #[test]
    fn places_with_most_samples_are_told_with_the_instruction_met_most() {
        let mut analyst = Analyst::default();
        for (pid, address, times) in
            [(7, 0x1000, 3), (7, 0x103f, 5), (7, 0x1040, 1), (8, 0x1000, 4), (7, 0x2000, 9)]
        {
            (0..times).for_each(|_| analyst.push(&sample(pid, address)));
        }
        let summary = analyst.end_second(PERIOD);
        let told: Vec<_> =
            summary.places.iter().map(|of| (of.pid, of.address, of.samples)).collect();
        let expected = [(7, 0x2000, 9), (7, 0x103f, 8), (8, 0x1000, 4), (7, 0x1040, 1)];
        assert_eq!((summary.samples, told), (22, expected.to_vec()));
        // The next second begins with nothing, and has a bound.
        (0..100_u64).for_each(|at| analyst.push(&sample(7, at << 6)));
        let summary = analyst.end_second(PERIOD);
        assert_eq!((summary.samples, summary.places.len()), (100, PLACES));
    }

    #[test]
    fn a_program_that_does_the_same_is_no_finding_whatever_process_does_it() {
        for seed in 0..20 {
            let mut analyst = Analyst::default();
            for at in 0..120 {
                // A new process at another address each second, as of a compiler for each file.
                let base = noise(at) & 0xffff_f000;
                let found = second(&mut analyst, (base, 0x120), 900 + at % 100, seed * 120 + at);
                assert_eq!(found.findings, [], "second {at} of {seed}");
            }
        }
    }

    #[test]
    fn other_code_is_a_phase_once() {
        for seed in 0..20 {
            let mut analyst = Analyst::default();
            let mut found = Vec::new();
            for at in 0..60 {
                let begin = if at < 25 { 0x120 } else { 0x900 };
                let summary = second(&mut analyst, (0x4000_0000, begin), 1_000, seed * 60 + at);
                found.extend(summary.findings.into_iter().map(|finding| (at, finding)));
            }
            let [(25, Finding::Phase { distance })] = found[..] else {
                panic!("{seed}: {found:?}")
            };
            assert!(distance > 0.9, "{distance}");
        }
    }

    #[test]
    fn a_cpu_that_stops_or_begins_is_an_outlier_and_one_that_varies_is_none() {
        let mut analyst = Analyst::default();
        let mut found = Vec::new();
        for at in 0..80_u64 {
            // Between 700 and 900 samples; none in the seconds from 40 on, all of them from 60 on.
            let samples = match at {
                40..60 => 0,
                60.. => 1_000,
                _ => 700 + noise(at) % 200,
            };
            let summary = second(&mut analyst, (0x4000_0000, 0x120), samples, at);
            found.extend(summary.findings.into_iter().map(|finding| (at, finding)));
        }
        let at = |(at, finding): &(u64, Finding)| {
            matches!(finding, Finding::Outlier { .. }).then_some(*at)
        };
        assert_eq!(found.iter().map(at).collect::<Vec<_>>(), [Some(40), Some(60)], "{found:?}");
    }

    #[test]
    fn a_second_in_which_the_rate_changed_is_no_outlier() {
        let mut analyst = Analyst::default();
        for at in 0..20 {
            second(&mut analyst, (0x4000_0000, 0x120), 1_000, at);
        }
        (0..250).for_each(|at| analyst.push(&sample(1, 0x4000_0120 + at % 200 * 4)));
        assert_eq!(analyst.end_second(None).findings, []);
        // A quarter of the samples at a quarter of the rate is as busy as before.
        (0..250).for_each(|at| analyst.push(&sample(1, 0x4000_0120 + at % 200 * 4)));
        assert_eq!(analyst.end_second(Some(4_000_000)).findings, []);
    }
}
