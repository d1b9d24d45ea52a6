//! A study as one JSON document.

use meikyo_models::replications::{Estimate, StatisticEstimate, WarmUp};
use serde_json::{Map, Value, json};

use super::{Point, Study};
use crate::verbs::simulate::{bins, busy, figures};

/// The study: of one run a point as a table of figures, of several with their intervals.
pub(super) fn document(study: &Study<'_>) -> Value {
    if !study.is_replicated() {
        let rows = study.points.iter().map(|point| plain_row(study, point));
        return json!({
            "schema": "meikyo.simulate.sweep/1",
            "rows": rows.collect::<Vec<_>>(),
        });
    }
    let points = study.points.iter().map(|point| point_document(study, point));
    json!({
        "schema": "meikyo.simulate.study/1",
        "file": study.args.file.display().to_string(),
        "model": study.model,
        "replications": study.args.replications,
        "confidence": study.confidence.share(),
        "points": points.collect::<Vec<_>>(),
    })
}

/// What the swept keys are set to: numbers where they are whole numbers.
fn settings(study: &Study<'_>, point: &Point) -> Map<String, Value> {
    let value =
        |text: &String| text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
    let keys = study.keys.iter().zip(&point.values);
    keys.map(|(key, text)| ((*key).to_owned(), value(text))).collect()
}

fn plain_row(study: &Study<'_>, point: &Point) -> Value {
    let report = &point.reports[0];
    let mut row = figures(report);
    row.extend(settings(study, point));
    row.insert("events".to_owned(), json!(report.events));
    row.insert("bottleneck".to_owned(), json!(report.bottleneck.as_ref().map(|(name, _)| name)));
    row.insert("busy_share".to_owned(), json!(report.bottleneck.as_ref().map(|(_, busy)| busy)));
    if let Some(warm_up) = &point.warm_up {
        row.insert("warmup_ns".to_owned(), json!(warm_up.span.get().to_string()));
    }
    Value::Object(row)
}

fn point_document(study: &Study<'_>, point: &Point) -> Value {
    let figures = point.figures.iter();
    let figures = figures.map(|figure| (figure.name.to_owned(), estimate(&figure.estimate)));
    json!({
        "set": settings(study, point),
        "warmup": point.warm_up.as_ref().map(warm_up),
        "figures": figures.collect::<Map<_, _>>(),
        "statistics": point.statistics.iter().map(statistic).collect::<Vec<_>>(),
        "bottlenecks": point.reports.iter()
            .map(|report| report.bottleneck.as_ref().map(busy)).collect::<Vec<_>>(),
        "events": point.reports.iter().map(|report| report.events).collect::<Vec<_>>(),
        "result_digests": point.reports.iter()
            .map(|report| format!("{:016x}", report.result_digest)).collect::<Vec<_>>(),
    })
}

fn warm_up(warm_up: &WarmUp) -> Value {
    json!({
        "ns": warm_up.span.get().to_string(),
        "statistic": warm_up.statistic,
        "settles": warm_up.settles,
    })
}

fn estimate(estimate: &Estimate) -> Value {
    let interval = estimate.interval.as_ref();
    json!({
        "mean": estimate.tally.mean(),
        "half_width": interval.map(|interval| interval.half_width),
        "low": interval.map(meikyo_sim::Interval::low),
        "high": interval.map(meikyo_sim::Interval::high),
        "deviation": estimate.tally.deviation(),
        "count": estimate.tally.count,
        "values": estimate.values,
    })
}

fn statistic(statistic: &StatisticEstimate) -> Value {
    let mut document = json!({
        "name": statistic.name,
        "group": statistic.group,
        "count": statistic.total.count,
        "mean": estimate(&statistic.mean),
        "histogram": bins(&statistic.histogram),
    });
    for (name, percentile) in &statistic.percentiles {
        document[*name] = estimate(percentile);
    }
    document
}
