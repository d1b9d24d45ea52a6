//! From the text of a file to the values of a scenario.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::scenario::keys::{MODELS, ModelKind};
use crate::scenario::problem::{self, Problem, ScenarioError};
use crate::scenario::value::Value;
use crate::scenario::{Origin, Scenario, build};

/// Reads a file; whether its values go together is not asked yet.
pub(crate) fn read(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let not_toml = errors.iter().map(|error| {
        let at = error.span().map_or(1, |span| lines.at(span.start));
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        Problem::new(Origin::Line(at), "", format!("not valid TOML: {message}"))
    });
    problem::none_of(file, not_toml.collect())?;
    let table = table.get_ref();
    let kind = model(table, &lines).map_err(|problem| ScenarioError::Invalid {
        file: file.to_owned(),
        problems: vec![problem],
    })?;

    let mut values: BTreeMap<_, _> = kind.defaults().collect();
    let mut problems = Vec::new();
    for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != "model") {
        let name: &str = key.get_ref();
        let Some(known) = kind.key(name) else {
            let line = Origin::Line(lines.at(key.span().start));
            problems.push(Problem::new(line, &name.escape_debug().to_string(), kind.unknown_key()));
            continue;
        };
        let line = Origin::Line(lines.at(value.span().start));
        match Value::from_toml(known.expected, value.get_ref()) {
            Ok(value) => drop(values.insert(known.name, (value, line))),
            Err(text) => problems.push(Problem::new(line, name, text)),
        }
    }
    problem::none_of(file, problems)?;
    let built = build::build(kind, &values);
    Ok(Scenario { file: file.to_owned(), kind, values, built, series: false })
}

/// The model that the file says it is.
fn model(table: &DeTable<'_>, lines: &Lines) -> Result<ModelKind, Problem> {
    let allowed = || {
        let names: Vec<_> = MODELS.iter().map(|name| format!("\"{name}\"")).collect();
        format!("allowed are {}", names.join(", "))
    };
    let value: &Spanned<DeValue<'_>> = table
        .get("model")
        .ok_or_else(|| Problem::new(Origin::Line(1), "model", format!("missing; {}", allowed())))?;
    let name = value.get_ref().as_str();
    name.and_then(ModelKind::from_name).ok_or_else(|| {
        let line = Origin::Line(lines.at(value.span().start));
        Problem::new(line, "model", format!("no such model; {}", allowed()))
    })
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect())
    }

    /// The line that holds the byte at `offset`; 1 for the first.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).max(1)
    }
}
