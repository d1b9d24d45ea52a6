//! What was measured, or stated by the paper, and what is predicted of it: the keys that all rows have.

use serde::Serialize;

/// A prediction beside what it is held against.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Compared {
    pub(super) program: String,
    pub(super) topology: String,
    pub(super) method: &'static str,
    pub(super) measured: f64,
    pub(super) predicted: f64,
    /// As a share of what was measured.
    pub(super) error: f64,
    pub(super) fitted: bool,
    /// What the prediction took.
    pub(super) seconds: f64,
    unit: &'static str,
}

impl Compared {
    /// A prediction to which nothing was fitted.
    pub(super) fn new(
        [program, topology]: [String; 2],
        method: &'static str,
        [measured, predicted]: [f64; 2],
        unit: &'static str,
        seconds: f64,
    ) -> Self {
        let error = predicted / measured - 1.0;
        Self { program, topology, method, measured, predicted, error, fitted: false, seconds, unit }
    }

    /// The same as one to which something was fitted, if so.
    pub(super) fn fitted(self, fitted: bool) -> Self {
        Self { fitted, ..self }
    }
}

/// A topology with so many cables for each link, in words.
pub(super) fn named((topology, cables): (&str, u16)) -> String {
    format!("{topology} ({cables} link{})", if cables == 1 { "" } else { "s" })
}
