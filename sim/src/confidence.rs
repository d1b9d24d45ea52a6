//! Confidence intervals of means, by Student's t distribution.

use std::fmt;
use std::str::FromStr;

/// Beyond so many degrees of freedom Student's distribution is the normal one to seven digits.
const DEGREES_MAX: u64 = 10_000_000;

/// The probability with which an interval is to cover what it is an interval for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence(f64);

/// A text that says no confidence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no confidence; write `95%` or `0.95`: more than 0 and less than 100 %")]
pub struct ConfidenceError(String);

impl Confidence {
    /// The one that holds unless another is asked for: 95 %.
    pub const USUAL: Self = Self(0.95);

    /// A share between 0 and 1, neither of them allowed; none if it is not.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share < 1.0).then_some(Self(share))
    }

    /// The share, between 0 and 1.
    pub fn share(self) -> f64 {
        self.0
    }

    /// Student's t: what a variable with so many degrees of freedom, at least one, does not exceed in
    /// magnitude with this probability.
    ///
    /// # Panics
    /// With no degree of freedom.
    pub fn t(self, degrees: u64) -> f64 {
        assert!(degrees > 0, "a single value has no spread");
        let degrees = degrees.min(DEGREES_MAX);
        let degrees = f64::from(u32::try_from(degrees).expect("at most `DEGREES_MAX`"));
        let beyond = |t: f64| incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5);
        let wanted = 1.0 - self.0;
        let mut upper = 1.0;
        while beyond(upper) > wanted && upper < f64::MAX / 2.0 {
            upper *= 2.0;
        }
        let mut lower = 0.0;
        // More halvings than an `f64` has bits.
        for _ in 0..80 {
            let middle = f64::midpoint(lower, upper);
            if beyond(middle) > wanted { lower = middle } else { upper = middle }
        }
        f64::midpoint(lower, upper)
    }
}

impl FromStr for Confidence {
    type Err = ConfidenceError;

    fn from_str(text: &str) -> Result<Self, ConfidenceError> {
        let (number, unit) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        let share = number.parse::<f64>().ok().and_then(|number| Self::new(number / unit));
        share.ok_or_else(|| ConfidenceError(text.to_owned()))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten digits leave out what a product of binary fractions has too much.
        let percent = (self.0 * 1e12).round() / 1e10;
        write!(f, "{percent}%")
    }
}

/// A mean, and how far from it the true one is at most, with the confidence that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean of what was seen.
    pub mean: f64,
    /// Half of the interval's width.
    pub half_width: f64,
}

impl Interval {
    /// The interval of the mean of `count` independent values from `mean` and the `deviation` of a
    /// sample; none of fewer than two values.
    #[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 is out of reach")]
    pub fn of(count: u64, mean: f64, deviation: f64, confidence: Confidence) -> Option<Self> {
        let degrees = count.checked_sub(1).filter(|degrees| *degrees > 0)?;
        let half_width = confidence.t(degrees) * deviation / (count as f64).sqrt();
        Some(Self { mean, half_width })
    }

    /// The lower end.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Whether `value` lies inside.
    pub fn covers(&self, value: f64) -> bool {
        (self.low()..=self.high()).contains(&value)
    }
}

/// The regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)
/// with the method of Lentz.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on one side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
        + a * libm::log(x)
        + b * libm::log1p(-x);
    libm::exp(front) / (a * fraction(x, a, b))
}

/// The denominator of that fraction: 1 + d1 / (1 + d2 / (1 + ...)).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_0 = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    // A sum over m with two coefficients each; it ends long before.
    for m in 0..1_000_000 {
        let m = f64::from(m);
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let even = (m + 1.0) * (b - m - 1.0) * x / ((a + 2.0 * m + 1.0) * (a + 2.0 * m + 2.0));
        let mut change = 1.0;
        for coefficient in [odd, even] {
            d = 1.0 / away_from_0(1.0 + coefficient * d);
            c = away_from_0(1.0 + coefficient / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fisher and Yates (1963), table III; the last digit that is printed there.
    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (degrees, at_90, at_95, at_99, at_999) in [
            (1, 6.314, 12.706, 63.657, 636.619),
            (2, 2.920, 4.303, 9.925, 31.599),
            (4, 2.132, 2.776, 4.604, 8.610),
            (9, 1.833, 2.262, 3.250, 4.781),
            (19, 1.729, 2.093, 2.861, 3.883),
            (29, 1.699, 2.045, 2.756, 3.659),
            (120, 1.658, 1.980, 2.617, 3.373),
            (u64::MAX, 1.645, 1.960, 2.576, 3.291),
        ] {
            for (share, printed) in [(0.9, at_90), (0.95, at_95), (0.99, at_99), (0.999, at_999)] {
                let found = Confidence::new(share).unwrap().t(degrees);
                assert!((found - printed).abs() < 0.000_51, "{share} {degrees}: {found}");
            }
        }
    }

    /// With one degree of freedom it is Cauchy's distribution, with two it has a closed form too.
    #[test]
    fn quantiles_are_those_of_the_closed_forms() {
        for share in [0.01, 0.5, 0.8, 0.95, 0.999_9] {
            let confidence = Confidence::new(share).unwrap();
            let cauchy = (std::f64::consts::FRAC_PI_2 * share).tan();
            assert!((confidence.t(1) / cauchy - 1.0).abs() < 1e-9, "{share}");
            let two = share * (2.0 / (1.0 - share * share)).sqrt();
            assert!((confidence.t(2) / two - 1.0).abs() < 1e-9, "{share}");
        }
    }

    #[test]
    fn confidence_is_written_as_percent_or_as_a_share() {
        for text in ["95%", "95 %", "0.95", " 0.95 "] {
            assert_eq!(text.parse(), Ok(Confidence::USUAL), "{text}");
        }
        assert_eq!(Confidence::USUAL.to_string(), "95%");
        assert_eq!("99.9%".parse::<Confidence>().unwrap().to_string(), "99.9%");
        for text in ["", "%", "0", "1", "95", "100%", "-5%", "NaN", "inf", "0%"] {
            let error = text.parse::<Confidence>().unwrap_err();
            assert!(error.to_string().contains("write `95%` or `0.95`"), "{text}: {error}");
        }
    }
}
