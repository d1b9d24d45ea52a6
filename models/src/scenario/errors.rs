//! Why a text is no scenario, and why a scenario gave no report.

use meikyo_places::Problems;

/// Why a text or a setting is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A file, or values that do not go together.
    #[error("{0}")]
    Invalid(Problems),
    /// Several runs with seeds of their own would all be the same.
    #[error("replications would all be the same, since nothing is drawn; it needs {needs}")]
    Alike {
        /// What would have to be written so that something is drawn.
        needs: &'static str,
    },
    /// A single setting beside the file, such as `--set servers=4`.
    #[error("{key} = {value}: {text}")]
    Setting {
        /// The key as it was given, known or not.
        key: String,
        /// The value as it was given.
        value: String,
        /// What is wrong, and what is allowed.
        text: String,
    },
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
