//! How often a checkpoint pays: Young's and Daly's intervals, and what is lost at an interval.
//!
//! J. W. Young, "A first order approximation to the optimum checkpoint interval" (1974); J. T. Daly, "A
//! higher order estimate of the optimum checkpoint interval for restart dumps" (2006), whose equation
//! 13 is the expected wall time and whose equation 37 is the interval.

use meikyo_units::Nanos;
use serde::Serialize;

/// What decides how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Risk {
    /// What one checkpoint takes from the program.
    pub cost: Nanos,
    /// From a failure until the program computes again.
    pub restart: Nanos,
    /// Mean time between failures of all hosts of the program together.
    pub between_failures: Nanos,
}

/// Young's interval, from the end of a checkpoint to the begin of the next: `sqrt(2 C M)`.
pub fn young(risk: &Risk) -> Nanos {
    let (cost, mean) = (risk.cost.as_secs_f64(), risk.between_failures.as_secs_f64());
    Nanos::from_secs_f64((2.0 * cost * mean).sqrt())
}

/// Daly's interval, which holds also where a checkpoint is not short against the time between failures.
pub fn daly(risk: &Risk) -> Nanos {
    let (cost, mean) = (risk.cost.as_secs_f64(), risk.between_failures.as_secs_f64());
    if cost >= 2.0 * mean {
        return risk.between_failures;
    }
    let ratio = cost / (2.0 * mean);
    let interval = (2.0 * cost * mean).sqrt() * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - cost;
    Nanos::from_secs_f64(interval)
}

/// The part of the time that is lost at an interval, to checkpoints, repeated work and restarts: 0.1
/// where ten hours bring nine hours' results.
///
/// Exact for failures that come independently at a constant rate. Infinite intervals and failures more
/// often than a program could get on give 1.
pub fn lost_share(risk: &Risk, interval: Nanos) -> f64 {
    let (cost, restart) = (risk.cost.as_secs_f64(), risk.restart.as_secs_f64());
    let (mean, work) = (risk.between_failures.as_secs_f64(), interval.as_secs_f64());
    // Daly's equation 13: the wall time of one interval's work.
    let wall = mean * (restart / mean).exp() * ((work + cost) / mean).exp_m1();
    if wall.is_finite() && wall > 0.0 { (1.0 - work / wall).clamp(0.0, 1.0) } else { 1.0 }
}

/// Of all failures, so many take more hosts than parity makes up for: Moody et al. (SC 2010) found that 85 % could be
/// recovered from without the shared file system.
pub const BEYOND_PARITY: f64 = 0.15;

/// The part of its speed that a program loses while something is copied behind it.
pub const INTERFERENCE: f64 = 0.05;

/// From one generation that survives the loss of more hosts than parity makes up for to the next, where one takes so long
/// behind the program; never sooner than it takes.
pub fn beyond_parity(took: Nanos, between_failures_of_host: Nanos, hosts: usize) -> Nanos {
    let cost = Nanos::from_secs_f64(took.as_secs_f64() * INTERFERENCE);
    // Saturates: no program runs on so many.
    let hosts = u32::try_from(hosts.max(1)).unwrap_or(u32::MAX);
    let mean = between_failures_of_host.as_secs_f64() / f64::from(hosts) / BEYOND_PARITY;
    let between_failures = Nanos::from_secs_f64(mean);
    daly(&Risk { cost, restart: Nanos::ZERO, between_failures }).max(took)
}

#[cfg(test)]
mod tests {
    use meikyo_worlds::Random;

    use super::*;

    fn risk(cost_s: f64, restart_s: f64, mean_s: f64) -> Risk {
        let [cost, restart, between_failures] =
            [cost_s, restart_s, mean_s].map(Nanos::from_secs_f64);
        Risk { cost, restart, between_failures }
    }

    #[test]
    fn intervals_are_those_of_the_published_formulas() {
        // 100 s of cost and 8 h between failures: sqrt(2 * 100 * 28800) = 2400 s.
        let slow = risk(100.0, 0.0, 28_800.0);
        assert_eq!(young(&slow), Nanos::from_secs(2_400));
        // Daly: 2400 * (1 + sqrt(1/576)/3 + 1/576/9) - 100 = 2333.8 s, 39 min.
        assert!((daly(&slow).as_secs_f64() - 2_333.796).abs() < 0.001, "{}", daly(&slow));
        assert_eq!(daly(&risk(100.0, 0.0, 50.0)), Nanos::from_secs(50));
    }

    #[test]
    fn no_interval_loses_much_less_than_dalys() {
        for (cost, mean) in [(0.05, 28_800.0), (1.65, 28_800.0), (100.0, 28_800.0), (60.0, 600.0)] {
            let risk = risk(cost, 30.0, mean);
            let at = |seconds: f64| lost_share(&risk, Nanos::from_secs_f64(seconds));
            let best = daly(&risk).as_secs_f64();
            let least =
                (1..400).map(|step| at(best * 1.01_f64.powi(step - 200))).fold(1.0, f64::min);
            let dalys = at(best);
            assert!(dalys - least < 0.002 * least + 1e-9, "{dalys} {least}");
        }
    }

    #[test]
    fn what_is_lost_is_what_a_played_run_loses() {
        let risk = risk(10.0, 20.0, 1_000.0);
        for interval in [50.0, 140.0, 400.0] {
            let expected = lost_share(&risk, Nanos::from_secs_f64(interval));
            let played = play(&risk, interval);
            // 40,000 intervals: the standard error is below 0.004.
            assert!((expected - played).abs() < 0.015, "{interval}: {expected} {played}");
        }
    }

    /// Plays failures one by one, and says what part of the time was lost.
    fn play(risk: &Risk, work: f64) -> f64 {
        let (cost, restart) = (risk.cost.as_secs_f64(), risk.restart.as_secs_f64());
        let mean = risk.between_failures.as_secs_f64();
        let mut random = Random::new(7);
        let mut next_failure = || {
            #[expect(clippy::cast_precision_loss, reason = "a random number between 0 and 1")]
            let even = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
            -mean * (1.0 - even).ln()
        };
        let (mut wall, mut done) = (0.0, 0.0);
        for _ in 0..40_000 {
            let mut needed = work + cost;
            loop {
                let failure = next_failure();
                if failure >= needed {
                    wall += needed;
                    break;
                }
                wall += failure;
                // Whoever fails while it restarts begins the restart again.
                needed = restart + work + cost;
            }
            done += work;
        }
        1.0 - done / wall
    }
}
