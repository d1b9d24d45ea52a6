//! A study as comma-separated values: a line of names, and a line for each point.

use std::fmt::Write as _;

use meikyo_live::push_quoted;
use meikyo_models::replications::Estimate;

use super::{Point, Study};

/// One field: a text, or a number that may be missing.
enum Field<'a> {
    Text(&'a str),
    Number(Option<f64>),
}

/// The lines. Of several runs, a number stands as its mean, with the ends of its interval behind it in
/// `NAME_low` and `NAME_high`.
pub(super) fn rows(study: &Study<'_>) -> String {
    let names = columns(study);
    let mut text = String::new();
    let heading: Vec<Field<'_>> = names.iter().map(|name| Field::Text(name)).collect();
    push_line(&mut text, &heading);
    for point in &study.points {
        let numbers = numbers(study, point);
        let mut line: Vec<_> = point.values.iter().map(|value| Field::Text(value)).collect();
        line.extend(names[study.keys.len()..].iter().map(|name| {
            let found = numbers.iter().find(|(known, _)| known == name);
            Field::Number(found.and_then(|(_, number)| *number))
        }));
        push_line(&mut text, &line);
    }
    text
}

/// The names of all columns: a figure may be missing in some points.
fn columns(study: &Study<'_>) -> Vec<String> {
    let mut names: Vec<String> = study.keys.iter().map(|key| (*key).to_owned()).collect();
    let swept = names.len();
    for (name, _) in study.points.iter().flat_map(|point| numbers(study, point)) {
        if !names[swept..].contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Every number of a point by its name.
fn numbers(study: &Study<'_>, point: &Point) -> Vec<(String, Option<f64>)> {
    let mut numbers = Vec::new();
    let mut add = |name: &str, estimate: &Estimate| {
        numbers.push((name.to_owned(), estimate.tally.mean()));
        if study.is_replicated() {
            let interval = estimate.interval.as_ref();
            let ends = [interval.map(|at| at.low()), interval.map(|at| at.high())];
            numbers.push((format!("{name}_low"), ends[0]));
            numbers.push((format!("{name}_high"), ends[1]));
        }
    };
    for figure in &point.figures {
        add(figure.name, &figure.estimate);
    }
    for statistic in &point.statistics {
        let name = format!("{}.{}", statistic.group, statistic.name);
        add(&format!("{name}.mean"), &statistic.mean);
        for (percentile, estimate) in &statistic.percentiles {
            add(&format!("{name}.{percentile}"), estimate);
        }
    }
    let span = point.warm_up.as_ref().map(|warm_up| warm_up.span.as_secs_f64());
    numbers.extend(span.map(|span| ("warmup_s".to_owned(), Some(span))));
    numbers
}

fn push_line(text: &mut String, fields: &[Field<'_>]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match field {
            Field::Text(word) => push_quoted(text, word),
            Field::Number(None) => {}
            Field::Number(Some(number)) => {
                write!(text, "{number}").expect("writing to a string cannot fail");
            }
        }
    }
    text.push_str("\r\n");
}
