//! How often may be sampled: what sampling takes from the host is kept within a budget.
//!
//! Once a second the governor is told what was observed. When it was too much, it sets the rate at
//! once to what would have fitted; when there is room again, it goes back up by no more than half a
//! second's worth at a time, so that a load that comes and goes does not make it swing. It reads no
//! clock and calls no system.

use meikyo_units::Nanos;

/// Sampling less often than this says too little to be worth anything.
pub const PERIOD_MAX: Nanos = Nanos::SECOND;

/// The share of the budget that is aimed at, %.
const AIM_PERCENT: u64 = 90;

/// Below this share of the budget there is room to sample more often, %.
const ROOM_PERCENT: u64 = 70;

/// Millionths as hundredths.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53, where it is exact")]
pub fn percent(ppm: u64) -> f64 {
    ppm as f64 / 10_000.0
}

/// What a second of sampling took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// How long was observed.
    pub span: Nanos,
    /// CPUs of the host.
    pub cpus: u64,
    /// Samples that were taken, or interrupts that took none.
    pub interrupts: u64,
    /// What each of them took.
    pub interrupt: Nanos,
    /// CPU time of the sampler itself.
    pub own: Nanos,
}

impl Observation {
    /// The share of the host's CPUs that sampling took, millionths.
    pub fn disturbance_ppm(&self) -> u64 {
        let interrupts = u128::from(self.interrupts) * u128::from(self.interrupt.get());
        let taken = interrupts.saturating_add(self.own.get().into());
        let whole = u128::from(self.span.get()) * u128::from(self.cpus);
        // Beyond the least that 64 bits do not hold, how much too much it is makes no difference.
        let ppm = taken.saturating_mul(1_000_000) / whole.max(1);
        // Saturates: who takes that much is slowed down as far as it goes anyway.
        u64::try_from(ppm).unwrap_or(u64::MAX)
    }
}

/// A change of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It took too much.
    Slower,
    /// There is room again.
    Faster,
}

/// Keeps sampling within a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Governor {
    wanted: Nanos,
    budget_ppm: Option<u64>,
    period: Nanos,
}

impl Governor {
    /// A governor of a sampler that is to take a sample each `wanted`; `budget_ppm` is the share of the
    /// host's CPUs that it may take, in millionths.
    pub fn new(wanted: Nanos, budget_ppm: Option<u64>) -> Self {
        Self { wanted, budget_ppm, period: wanted }
    }

    /// The budget, millionths of the host's CPUs.
    pub fn budget_ppm(&self) -> Option<u64> {
        self.budget_ppm
    }

    /// The span between two samples of a CPU.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Sets the period before anything was observed, to what the budget allows when every CPU runs and
    /// each sample takes `interrupt`.
    pub fn begin(&mut self, interrupt: Nanos) -> Option<Change> {
        let span = self.wanted;
        self.observe(&Observation { span, cpus: 1, interrupts: 1, interrupt, own: Nanos::ZERO })
    }

    /// Looks at what was observed; `Some` when the period is another one now.
    pub fn observe(&mut self, observation: &Observation) -> Option<Change> {
        let budget = self.budget_ppm?;
        let disturbance = observation.disturbance_ppm();
        let before = self.period;
        let aim = (budget * AIM_PERCENT / 100).max(1);
        if disturbance > budget {
            self.period = scaled(before, disturbance, aim).min(PERIOD_MAX).max(self.wanted);
        } else if disturbance * 100 < budget * ROOM_PERCENT && before > self.wanted {
            let fitting = scaled(before, disturbance.max(1), aim);
            self.period = fitting.max(scaled(before, 2, 3)).max(self.wanted);
        }
        match self.period.cmp(&before) {
            std::cmp::Ordering::Greater => Some(Change::Slower),
            std::cmp::Ordering::Less => Some(Change::Faster),
            std::cmp::Ordering::Equal => None,
        }
    }
}

/// A span times a quotient, rounded up; the longest span where 64 bits do not hold it.
fn scaled(span: Nanos, numerator: u64, denominator: u64) -> Nanos {
    let scaled = (u128::from(span.get()) * u128::from(numerator)).div_ceil(denominator.into());
    // Saturates: nobody samples once in five centuries.
    Nanos::new(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET_PPM: u64 = 5_000;

    /// A host whose samples take some time each, and of whose CPUs some run.
    fn second(governor: &Governor, interrupt: Nanos, running: u64) -> Observation {
        Observation {
            span: Nanos::SECOND,
            cpus: 64,
            interrupts: running * 1_000_000_000 / governor.period().get(),
            interrupt,
            own: Nanos::from_micros(200),
        }
    }

    #[test]
    fn within_a_second_it_takes_no_more_than_its_budget() {
        for interrupt in [1_000, 5_001, 23_000, 400_000].map(Nanos::new) {
            let mut governor = Governor::new(Nanos::from_millis(1), Some(BUDGET_PPM));
            governor.observe(&second(&governor, interrupt, 64));
            let after = second(&governor, interrupt, 64).disturbance_ppm();
            assert!(after <= BUDGET_PPM, "{after} ppm at {interrupt} a sample");
            let fits = interrupt.get() * 1_000 < BUDGET_PPM * 1_000 - 1_000;
            assert_eq!(governor.period() == Nanos::from_millis(1), fits, "{interrupt}");
        }
    }

    #[test]
    fn what_a_sample_takes_decides_before_anything_is_sampled() {
        let mut governor = Governor::new(Nanos::from_millis(1), Some(BUDGET_PPM));
        assert_eq!(governor.begin(Nanos::from_micros(20)), Some(Change::Slower));
        // 20 µs each 4.44 ms are 0.45 %, 90 % of the budget.
        assert_eq!(governor.period(), Nanos::new(4_444_445));
        let mut governor = Governor::new(Nanos::from_millis(1), None);
        assert_eq!(governor.begin(Nanos::from_micros(20)), None);
        assert_eq!(governor.period(), Nanos::from_millis(1));
    }

    #[test]
    fn it_comes_back_when_fewer_cpus_run_and_settles() {
        let interrupt = Nanos::from_micros(20);
        let mut governor = Governor::new(Nanos::from_millis(1), Some(BUDGET_PPM));
        governor.observe(&second(&governor, interrupt, 64));
        let slow = governor.period();
        let changes: Vec<_> =
            (0..20).map(|_| governor.observe(&second(&governor, interrupt, 8))).collect();
        assert_eq!(changes[0], Some(Change::Faster));
        assert!(governor.period() < slow && governor.period() == Nanos::from_millis(1));
        assert_eq!(changes.last(), Some(&None));
        assert!(second(&governor, interrupt, 8).disturbance_ppm() <= BUDGET_PPM);
    }

    #[test]
    fn nothing_observed_makes_it_neither_stop_nor_run_away() {
        let mut governor = Governor::new(Nanos::from_millis(1), Some(1));
        let all = Observation {
            span: Nanos::new(1),
            cpus: 1,
            interrupts: u64::MAX,
            interrupt: Nanos::new(u64::MAX),
            own: Nanos::new(u64::MAX),
        };
        assert_eq!(governor.observe(&all), Some(Change::Slower));
        assert_eq!(governor.period(), PERIOD_MAX);
        let nothing = Observation { span: Nanos::ZERO, cpus: 0, interrupts: 0, ..all };
        governor.observe(&Observation { own: Nanos::ZERO, ..nothing });
        assert!(governor.period() >= Nanos::from_millis(1));
    }
}
