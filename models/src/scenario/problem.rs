//! What is wrong with a scenario.

use crate::scenario::Origin;

/// Why a text or a setting is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A file, or values that do not go together.
    #[error("{}", listed(.file, .problems))]
    Invalid {
        /// The file.
        file: String,
        /// All problems, in the order of their lines.
        problems: Vec<Problem>,
    },
    /// A single setting.
    #[error("{key} = {value}: {text}")]
    Setting {
        /// The key as given.
        key: String,
        /// The value as given.
        value: String,
        /// What is wrong, and what is allowed.
        text: String,
    },
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line, 1 for the first; none if it is not from the file.
    pub line: Option<usize>,
    /// The key; empty where the text is not TOML at all.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub text: String,
}

impl Problem {
    pub(crate) fn new(origin: Origin, key: &str, text: impl Into<String>) -> Self {
        let line = match origin {
            Origin::Line(line) => Some(line),
            Origin::Default | Origin::Set => None,
        };
        Self { line, key: key.to_owned(), text: text.into() }
    }
}

/// Why a scenario gave no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its values do not go together.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The kernel ended the run.
    #[error(transparent)]
    Simulation(#[from] meikyo_sim::RunError),
}

/// An error if there are problems.
pub(crate) fn none_of(file: &str, mut problems: Vec<Problem>) -> Result<(), ScenarioError> {
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort();
    problems.dedup();
    Err(ScenarioError::Invalid { file: file.to_owned(), problems })
}

/// One line each: `ring.toml:12: lps: ...`.
fn listed(file: &str, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| told(file, problem)).collect();
    lines.join("\n")
}

fn told(file: &str, problem: &Problem) -> String {
    let Problem { line, key, text } = problem;
    let line = line.map_or_else(String::new, |line| format!("{line}:"));
    let key = if key.is_empty() { String::new() } else { format!(" {key}:") };
    format!("{file}:{line}{key} {text}")
}
