//! From the text of a file to the values of a scenario.

use meikyo_places::{Lines, Origin, Problem, Problems, read_table};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::parameters::{Given, Key, Value};
use crate::scenario::table::{Entry, MODELS};
use crate::scenario::{Scenario, ScenarioError};

/// The key that names the model.
const MODEL: &str = "model";

/// Reads a file; whether its values go together is not asked yet.
pub(crate) fn read(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
    let lines = Lines::new(text);
    let wrong = |problems| ScenarioError::Invalid(Problems::new(file, problems));
    let table = read_table(text, &lines).map_err(wrong)?;
    let entry = model(&table, &lines).map_err(|problem| wrong(vec![problem]))?;

    let keys = entry.declared(&Given::default(), false).keys;
    let model_keys = |keys: &[Key]| unknown_key(entry, keys);
    let (given, problems) = given_values(&table, &lines, &keys, model_keys);
    if problems.is_empty() { Ok(Scenario::new(file, entry, given)) } else { Err(wrong(problems)) }
}

/// The values that a file gives to `keys`, and what is wrong with the others; `unknown` tells which keys
/// there are. The key that names the model is not one of them.
pub(crate) fn given_values(
    table: &DeTable<'_>,
    lines: &Lines,
    keys: &[Key],
    unknown: impl Fn(&[Key]) -> String,
) -> (Given, Vec<Problem>) {
    let mut given = Given::default();
    let mut problems = Vec::new();
    for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != MODEL) {
        let name: &str = key.get_ref();
        let Some(known) = keys.iter().find(|known| known.name == name) else {
            let line = Origin::Line(lines.line(key.span().start));
            problems.push(Problem::new(line, name.escape_debug().to_string(), unknown(keys)));
            continue;
        };
        let line = Origin::Line(lines.line(value.span().start));
        match Value::from_toml(known.expected, value.get_ref()) {
            Ok(value) => drop(given.insert(known.name, (value, line))),
            Err(text) => problems.push(Problem::new(line, name, text)),
        }
    }
    (given, problems)
}

/// What is wrong with a key that the model does not have.
pub(crate) fn unknown_key(entry: Entry, keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    let model = entry.about().name;
    format!("unknown key; allowed for the model `{model}` are {}", names.join(", "))
}

/// The model that the file says it is.
fn model(table: &DeTable<'_>, lines: &Lines) -> Result<Entry, Problem> {
    let allowed = || {
        let names: Vec<_> =
            MODELS.iter().map(|entry| format!("\"{}\"", entry.about().name)).collect();
        format!("allowed are {}", names.join(", "))
    };
    let value: &Spanned<DeValue<'_>> = table
        .get(MODEL)
        .ok_or_else(|| Problem::new(Origin::Line(1), MODEL, format!("missing; {}", allowed())))?;
    let name = value.get_ref().as_str();
    name.and_then(Entry::named).ok_or_else(|| {
        let line = Origin::Line(lines.line(value.span().start));
        Problem::new(line, MODEL, format!("no such model; {}", allowed()))
    })
}
