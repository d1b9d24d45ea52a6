//! A study as tables for people.

use std::collections::BTreeMap;

use meikyo_console::output::{self, TextTable};
use meikyo_models::replications::{Estimate, StatisticEstimate};

use super::{Point, Study};
use crate::verbs::simulate::{number, sketch};

/// One point as a list of figures, several as a line each.
pub(super) fn tables(study: &Study<'_>) -> String {
    let mut text = match study.points.as_slice() {
        [only] if study.keys.is_empty() => alone(study, only),
        points => table(study, points).to_string(),
    };
    let unsettled = |point: &&Point| point.warm_up.as_ref().is_some_and(|found| !found.settles);
    let unsettled = study.points.iter().filter(unsettled).count();
    if unsettled > 0 {
        text.push_str(&format!(
            "\nnote: {unsettled} of {} points had not settled in the first half of their runs; \
             let them run longer\n",
            study.points.len()
        ));
    }
    text
}

fn alone(study: &Study<'_>, point: &Point) -> String {
    let mut summary = TextTable::default();
    let mut row = |name: &str, value: String| summary.row([name.to_owned(), value]);
    row("model", study.model.to_owned());
    row("replications", point.reports.len().to_string());
    if let Some(warm_up) = &point.warm_up {
        let after = warm_up.statistic.as_ref().map(|name| format!(", until `{name}` settles"));
        let span = output::span_text(warm_up.span);
        row("warm-up left out", format!("{span}{}", after.unwrap_or_default()));
    }
    let plus_minus = format!("± {}", study.confidence);
    let mut figures =
        TextTable::new(&["figure", "mean", &plus_minus, "deviation", "least", "greatest", "runs"]);
    for figure in &point.figures {
        figures.row(estimate_row(figure.name, &figure.estimate));
    }
    let headings =
        ["statistic", "group", "count", "mean", &plus_minus, "p50", "p90", "p95", "p99", "spread"];
    let mut statistics = TextTable::new(&headings);
    for statistic in &point.statistics {
        statistics.row(statistic_row(statistic));
    }
    format!("{summary}\n{figures}\n{statistics}")
}

fn estimate_row(name: &str, estimate: &Estimate) -> [String; 7] {
    let tally = &estimate.tally;
    let known = |value: f64| if tally.count > 0 { number(value) } else { String::new() };
    [
        name.to_owned(),
        tally.mean().map(number).unwrap_or_default(),
        half_width(estimate),
        tally.deviation().map(number).unwrap_or_default(),
        known(tally.least),
        known(tally.greatest),
        tally.count.to_string(),
    ]
}

fn half_width(estimate: &Estimate) -> String {
    estimate.interval.map(|interval| number(interval.half_width)).unwrap_or_default()
}

fn statistic_row(statistic: &StatisticEstimate) -> Vec<String> {
    let mean = |estimate: &Estimate| estimate.tally.mean().map(number).unwrap_or_default();
    let start = [
        statistic.name.clone(),
        statistic.group.clone(),
        statistic.total.count.to_string(),
        mean(&statistic.mean),
        half_width(&statistic.mean),
    ];
    let percentiles = statistic.percentiles.iter().map(|(_, estimate)| mean(estimate));
    start.into_iter().chain(percentiles).chain([sketch(&statistic.histogram)]).collect()
}

fn table(study: &Study<'_>, points: &[Point]) -> TextTable {
    let mut names: Vec<&str> = Vec::new();
    for figure in points.iter().flat_map(|point| &point.figures) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
        }
    }
    let warmed = points.iter().any(|point| point.warm_up.is_some());
    let headings = study.keys.iter().copied().chain(warmed.then_some("warm-up"));
    let headings: Vec<&str> =
        headings.chain(names.iter().copied()).chain(["busy_%", "bottleneck"]).collect();
    let mut table = TextTable::new(&headings);
    for point in points {
        let warm_up = point.warm_up.as_ref().map(|found| output::span_text(found.span));
        let cell = |name: &&str| {
            let found = point.figures.iter().find(|figure| figure.name == *name);
            found.map(|figure| with_interval(&figure.estimate)).unwrap_or_default()
        };
        let (bottleneck, busy) =
            bottleneck(point.reports.iter().map(|report| report.bottleneck.as_ref()));
        let values = point.values.iter().cloned().chain(warm_up);
        table.row(values.chain(names.iter().map(cell)).chain([busy, bottleneck]));
    }
    table
}

/// What was busiest in most of the runs, in how many of them if not in all, and how busy it was in those
/// on the average.
fn bottleneck<'a>(runs: impl Iterator<Item = Option<&'a (String, f64)>>) -> (String, String) {
    let (mut found, mut all) = (BTreeMap::<&str, (u64, f64)>::new(), 0);
    for run in runs {
        all += 1;
        if let Some((name, busy)) = run {
            let (count, sum) = found.entry(name).or_default();
            (*count, *sum) = (*count + 1, *sum + busy);
        }
    }
    // Of several that are as frequent the first by name, so that the answer is always the same.
    let Some((name, (count, sum))) = found.into_iter().rev().max_by_key(|(_, (count, _))| *count)
    else {
        return (String::new(), String::new());
    };
    let told =
        if count == all { name.to_owned() } else { format!("{name} ({count} of {all} runs)") };
    (told, format!("{:.1}", sum / output::real(count) * 100.0))
}

/// The mean with the half width of its interval, if that is wider than nothing.
fn with_interval(estimate: &Estimate) -> String {
    let mean = estimate.tally.mean().map(number).unwrap_or_default();
    match estimate.interval {
        Some(interval) if interval.half_width > 0.0 => {
            format!("{mean} ± {}", number(interval.half_width))
        }
        _ => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::bottleneck;

    #[test]
    fn the_bottleneck_of_several_runs_is_what_was_busiest_in_most_of_them() {
        let run = |name: &str, busy| Some((name.to_owned(), busy));
        let told = |runs: &[Option<(String, f64)>]| bottleneck(runs.iter().map(Option::as_ref));
        let words = |name: &str, busy: &str| (name.to_owned(), busy.to_owned());
        assert_eq!(told(&[run("disk", 0.5), run("disk", 0.7)]), words("disk", "60.0"));
        let mixed = [run("line", 0.9), run("disk", 0.5), run("disk", 0.6), None];
        assert_eq!(told(&mixed), words("disk (2 of 4 runs)", "55.0"));
        assert_eq!(told(&[run("b", 0.1), run("a", 0.3)]), words("a (1 of 2 runs)", "30.0"));
        assert_eq!(told(&[None]), words("", ""));
    }
}
