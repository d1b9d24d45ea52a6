//! Least, median and 99th percentile of what was observed.

use meikyo_console::output::real;

/// Observations in the order of their size.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Observations {
    sorted: Vec<f64>,
}

impl Observations {
    /// Sorts what was observed; none of it is NaN.
    pub(crate) fn new(mut observed: Vec<f64>) -> Self {
        assert!(observed.iter().all(|value| !value.is_nan()), "an observation is a number");
        observed.sort_by(f64::total_cmp);
        Self { sorted: observed }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// All of them, in the order of their size.
    pub(crate) fn all(&self) -> &[f64] {
        &self.sorted
    }

    /// The least; `None` where nothing was observed.
    pub(crate) fn least(&self) -> Option<f64> {
        self.sorted.first().copied()
    }

    /// The median: the mean of the two in the middle when their number is even.
    pub(crate) fn median(&self) -> Option<f64> {
        let above = *self.sorted.get(self.len() / 2)?;
        if !self.len().is_multiple_of(2) {
            return Some(above);
        }
        Some(f64::midpoint(self.sorted[self.len() / 2 - 1], above))
    }

    /// The mean; `None` where nothing was observed.
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = real(self.len() as u64);
        if self.sorted.is_empty() { None } else { Some(self.sorted.iter().sum::<f64>() / count) }
    }

    /// The standard error of the mean; 0 where one observation or none says nothing about it.
    pub(crate) fn standard_error(&self) -> f64 {
        let Some(mean) = self.mean().filter(|_| self.len() > 1) else { return 0.0 };
        let squares: f64 = self.sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let [count, others] = [self.len(), self.len() - 1].map(|count| real(count as u64));
        (squares / others / count).sqrt()
    }

    /// The least observation that at least `percent` of 100 are not above (nearest rank).
    pub(crate) fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.len() * percent).div_ceil(100).max(1);
        self.sorted.get(rank - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(values: &[i32]) -> Observations {
        Observations::new(values.iter().map(|&value| f64::from(value)).collect())
    }

    #[test]
    fn the_nearest_rank_is_taken() {
        let hundred: Vec<i32> = (1..=100).rev().collect();
        let hundred = observations(&hundred);
        assert_eq!(hundred.percentile(99), Some(99.0));
        assert_eq!(hundred.percentile(100), Some(100.0));
        assert_eq!(hundred.median(), Some(50.5));
        assert_eq!(hundred.mean(), Some(50.5));
        assert_eq!(hundred.least(), Some(1.0));
        // Of 600 intervals the p99 leaves 6 above it.
        let many: Vec<i32> = (1..=600).collect();
        assert_eq!(observations(&many).percentile(99), Some(594.0));
    }

    #[test]
    fn the_standard_error_is_of_the_mean() {
        // Squares of 4, 4, 4 and 4 around 5: a variance of 16 / 3, and a quarter of that for the mean.
        let error = observations(&[3, 3, 7, 7]).standard_error();
        assert!((error - (16.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12, "{error}");
        assert!(observations(&[3]).standard_error().abs() < f64::EPSILON);
        assert!(Observations::default().standard_error().abs() < f64::EPSILON);
    }

    #[test]
    fn few_observations_have_the_greatest_as_p99() {
        let few = observations(&[3, 1, 2]);
        assert_eq!((few.median(), few.percentile(99)), (Some(2.0), Some(3.0)));
        assert_eq!(Observations::default().median(), None);
        assert_eq!(Observations::default().percentile(99), None);
    }
}
