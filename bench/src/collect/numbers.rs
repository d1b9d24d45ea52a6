//! The numbers of a run under the names that they have in JSON.

use meikyo_console::output::real;
use meikyo_units::Nanos;

use crate::collect::compaction::Compactions;
use crate::reading::States;
use crate::statistics::Observations;

/// What a run of the collector came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Numbers {
    /// Simulated agents that were asked.
    pub(crate) agents: u64,
    /// Span between two intervals.
    pub(crate) every: Nanos,
    /// Complete intervals.
    pub(crate) intervals: u64,
    /// (device, interval) pairs by their state.
    pub(crate) states: States,
    /// Intervals that our own late wake-up spoiled.
    pub(crate) stalls: u64,
    /// Values that were kept and compared with what the agent held.
    pub(crate) values_verified: u64,
    /// Values that were kept and are not what the agent held.
    pub(crate) values_wrong: u64,
    /// Due instant until the last value of an interval is kept, µs.
    pub(crate) completion_us: Observations,
    /// Due instant until the last answer is received, µs.
    pub(crate) received_us: Observations,
    /// Due instant until the last request is handed over, µs.
    pub(crate) sent_us: Observations,
    /// Due instant until the first request is handed over, µs.
    pub(crate) start_us: Observations,
    /// CPU time of the whole process, µs a poll.
    pub(crate) cpu_us_per_poll: f64,
    /// Bytes of all tables but the summaries, after compaction, a kept value.
    pub(crate) bytes_per_value: f64,
    /// Greatest resident size of the collector.
    pub(crate) peak_rss_bytes: u64,
    /// CPU time of the bare loop, µs a round trip; where it was run.
    pub(crate) bare_cpu_us_per_poll: Option<f64>,
    /// Load average before the run.
    pub(crate) load_average_1min: f64,
    pub(crate) compactions: Compactions,
}

impl Numbers {
    /// Every number with its key, in the order in which they are printed.
    pub(crate) fn entries(&self) -> Vec<(&'static str, f64)> {
        let States { ok, late, missed, errors, skipped } = self.states;
        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let mut entries = vec![
            ("agents", real(self.agents)),
            ("interval_ms", self.every.as_secs_f64() * 1e3),
            ("intervals", real(self.intervals)),
            ("ok", real(ok)),
            ("late", real(late)),
            ("missed", real(missed)),
            ("errors", real(errors)),
            ("skipped", real(skipped)),
            ("stalls", real(self.stalls)),
            ("values_verified", real(self.values_verified)),
            ("completion_us_min", or_nan(self.completion_us.least())),
            ("completion_us_median", or_nan(self.completion_us.median())),
            ("completion_us_p99", or_nan(self.completion_us.percentile(99))),
            ("start_jitter_us_p99", or_nan(self.start_us.percentile(99))),
            ("cpu_us_per_poll", self.cpu_us_per_poll),
            ("bytes_per_value", self.bytes_per_value),
            ("peak_rss_bytes", real(self.peak_rss_bytes)),
        ];
        if self.values_wrong > 0 {
            entries.push(("values_wrong", real(self.values_wrong)));
        }
        if let Some(bare) = self.bare_cpu_us_per_poll {
            entries.push(("bare_cpu_us_per_poll", bare));
            entries.push(("cpu_ratio_to_bare", self.cpu_us_per_poll / bare));
        }
        entries.extend(self.compactions.entries());
        entries.push(("load_average_1min", self.load_average_1min));
        entries
    }
}

/// The median of every number over some runs, key by key.
pub(crate) fn medians(runs: &[Numbers]) -> Vec<(&'static str, f64)> {
    let entries: Vec<_> = runs.iter().map(Numbers::entries).collect();
    let Some(first) = entries.first() else { return Vec::new() };
    let of_key = |key: &'static str| {
        let values = entries.iter().flatten().filter(|(other, _)| *other == key);
        let values = values.map(|&(_, value)| value).filter(|value| !value.is_nan()).collect();
        (key, Observations::new(values).median().unwrap_or(f64::NAN))
    };
    first.iter().map(|&(key, _)| of_key(key)).collect()
}

/// Numbers as a JSON object: whole ones without a decimal point, missing ones as null.
pub(crate) fn to_json(entries: &[(&'static str, f64)]) -> serde_json::Value {
    let pairs = entries.iter().map(|&(key, value)| ((*key).to_owned(), number(value)));
    serde_json::Value::Object(pairs.collect())
}

/// 2^53: whole numbers below it are exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

#[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53 by the check before")]
fn number(value: f64) -> serde_json::Value {
    if value.fract().abs() < f64::EPSILON && value.abs() < EXACT_MAX {
        serde_json::Value::from(value.round() as i64)
    } else {
        // Three decimals are a nanosecond of a microsecond.
        serde_json::Value::from((value * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(completion: &[f64], cpu: f64) -> Numbers {
        Numbers {
            agents: 3,
            every: Nanos::from_millis(100),
            completion_us: Observations::new(completion.to_vec()),
            cpu_us_per_poll: cpu,
            ..Numbers::default()
        }
    }

    #[test]
    fn every_key_of_the_contract_is_there() {
        let keys: Vec<_> = run(&[1.0], 2.0).entries().into_iter().map(|(key, _)| key).collect();
        let contract = "agents, interval_ms, intervals, ok, late, missed, errors, skipped, stalls, \
                        values_verified, completion_us_min, completion_us_median, \
                        completion_us_p99, start_jitter_us_p99, cpu_us_per_poll, bytes_per_value, \
                        peak_rss_bytes";
        assert_eq!(keys[..17].join(", "), contract);
    }

    #[test]
    fn medians_are_taken_key_by_key() {
        let runs = [run(&[10.0], 3.0), run(&[30.0], 1.0), run(&[20.0], 2.5)];
        let medians = to_json(&medians(&runs));
        assert_eq!(medians["completion_us_median"], 20);
        assert_eq!(medians["cpu_us_per_poll"], 2.5);
        assert_eq!(medians["agents"], 3);
        assert!(medians["start_jitter_us_p99"].is_null());
    }
}
