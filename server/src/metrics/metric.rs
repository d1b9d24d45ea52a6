//! One metric, and what texts and numbers of metrics have in common.

use std::collections::BTreeMap;

/// One metric with all its series.
#[derive(Debug, Default)]
pub(super) struct Metric {
    /// Whether it only grows.
    pub(super) counter: bool,
    /// One sentence for people.
    pub(super) help: String,
    /// Time (ns since the epoch) and value by labels, which are written as they stand in the text.
    pub(super) values: BTreeMap<String, (i64, f64)>,
}

/// Adds a value of a metric of Meikyo itself.
pub(super) fn own(
    metrics: &mut BTreeMap<String, Metric>,
    name: &str,
    help: &str,
    labels: &str,
    value: f64,
) {
    let metric = metrics.entry(format!("meikyo_{name}")).or_default();
    metric.help = help.to_owned();
    metric.counter = name.ends_with("_total");
    metric.values.insert(labels.to_owned(), (0, value));
}

/// A text as it stands in quotes.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[expect(clippy::cast_precision_loss, reason = "exact to 2^53, as Prometheus itself is")]
pub(super) fn real(number: u64) -> f64 {
    number as f64
}
