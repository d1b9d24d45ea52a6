//! A study as a picture: a figure over the values of the first swept key, or how often values of a
//! statistic came.

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_models::plot::{self, Curve, Mark, Titles};
use meikyo_models::replications::Estimate;

use super::results::{Point, Study};

/// Draws `name` of the study, or the model's first figure, into `file`.
///
/// # Errors
/// If there is no such figure or statistic, it has no values, or the file cannot be written.
pub(super) fn write(file: &Path, name: Option<&str>, study: &Study<'_>) -> Result<(), Failure> {
    let text = if study.keys.is_empty() { histogram(name, study)? } else { curves(name, study)? };
    std::fs::write(file, text)
        .map_err(|error| Failure::new(format!("cannot write `{}`: {error}", file.display())))
}

fn curves(name: Option<&str>, study: &Study<'_>) -> Result<String, Failure> {
    let known: Vec<&str> = figure_names(study);
    let name = name.or_else(|| known.first().copied());
    let name = name.filter(|name| known.contains(name)).ok_or_else(|| {
        let asked = name.map_or_else(|| "any figure".to_owned(), |name| format!("`{name}`"));
        Failure::new(format!("the model `{}` does not tell {asked}", study.model))
            .hint(format!("--plot takes one of {}", known.join(", ")))
    })?;
    let places = Places::of(study.points.iter().map(|point| point.values[0].as_str()));
    let mut curves: Vec<Curve> = Vec::new();
    for point in &study.points {
        let label = label(study, point);
        let at = curves.iter().position(|curve| curve.label == label).unwrap_or_else(|| {
            curves.push(Curve { label, marks: Vec::new(), expected: Vec::new() });
            curves.len() - 1
        });
        let x = places.x(&point.values[0]);
        if let Some(estimate) = estimate(point, name)
            && let Some(y) = estimate.tally.mean()
        {
            let ends = estimate.interval.map(|interval| (interval.low(), interval.high()));
            curves[at].marks.push(Mark { x, y, ends });
        }
        let expected = expected_names(name).into_iter().find_map(|name| estimate(point, &name));
        let expected = expected.and_then(|estimate| estimate.tally.mean());
        curves[at].expected.extend(expected.map(|y| (x, y)));
    }
    let marks = || curves.iter().flat_map(|curve| &curve.marks);
    if marks().next().is_none() {
        return Err(Failure::new(format!("no run tells `{name}`")));
    }
    for curve in &mut curves {
        curve.marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        curve.expected.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let note = study
        .is_replicated()
        .then(|| format!("{} confidence, {} runs each", study.confidence, study.args.replications));
    let words = places.numbers.is_none().then_some(places.words.as_slice());
    let titles = Titles { x: study.keys[0], y: name, words, note: note.as_deref() };
    Ok(plot::curves(&titles, &curves))
}

fn figure_names(study: &Study<'_>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for figure in study.points.iter().flat_map(|point| &point.figures) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
        }
    }
    names
}

fn estimate<'a>(point: &'a Point, name: &str) -> Option<&'a Estimate> {
    let found = point.figures.iter().find(|figure| figure.name == name);
    found.map(|figure| &figure.estimate)
}

/// What models call the value that theory gives for a figure.
fn expected_names(name: &str) -> Vec<String> {
    let stem = name.strip_suffix("_mean").unwrap_or(name);
    vec![format!("{name}_expected"), format!("{stem}_expected")]
}

/// The values of all keys but the first.
fn label(study: &Study<'_>, point: &Point) -> String {
    let others = study.keys.iter().zip(&point.values).skip(1);
    others.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// Where the values of the first key stand: numbers where they are, words side by side.
struct Places {
    words: Vec<String>,
    numbers: Option<Vec<f64>>,
}

impl Places {
    fn of<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let mut words: Vec<String> = Vec::new();
        for value in values {
            if words.iter().all(|word| word != value) {
                words.push(value.to_owned());
            }
        }
        let number = |word: &String| word.parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers = words.iter().map(number).collect();
        Self { words, numbers }
    }

    fn x(&self, value: &str) -> f64 {
        let place = self.words.iter().position(|word| word == value).expect("it was collected");
        match &self.numbers {
            Some(numbers) => numbers[place],
            None => f64::from(u32::try_from(place).expect("few values")),
        }
    }
}

fn histogram(name: Option<&str>, study: &Study<'_>) -> Result<String, Failure> {
    let statistics = &study.points[0].statistics;
    let known: Vec<&str> = statistics.iter().map(|one| one.name.as_str()).collect();
    let name = name.or_else(|| known.first().copied());
    let found = statistics.iter().find(|one| name == Some(one.name.as_str()));
    let statistic = found.filter(|one| one.histogram.count() > 0).ok_or_else(|| {
        let asked = name.map_or_else(|| "a statistic".to_owned(), |name| format!("`{name}`"));
        let text = format!("{asked} has no values whose histogram could be drawn");
        let hint = if known.is_empty() {
            "sweep a key to draw a figure: --sweep KEY=VALUES --plot FIGURE".to_owned()
        } else {
            format!("--plot takes one of {}, or a figure with --sweep", known.join(", "))
        };
        Failure::new(text).hint(hint)
    })?;
    Ok(plot::histogram(&statistic.name, &statistic.histogram))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_where_all_values_are_and_else_in_their_order() {
        let numbers = Places::of(["11", "22", "11", "44"].into_iter());
        assert_eq!(
            ["11", "22", "44"].map(|value| numbers.x(value).to_string()),
            ["11", "22", "44"]
        );
        let words = Places::of(["10us", "32us", "10us"].into_iter());
        assert_eq!(["10us", "32us"].map(|value| words.x(value).to_string()), ["0", "1"]);
    }
}
