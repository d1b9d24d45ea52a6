//! What passed, failed and was skipped, and the closing line.

use std::fmt;

/// The count of everything that was run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<(String, String)>,
}

impl Tally {
    /// Counts one check or test as passed or failed.
    pub(crate) fn check(&mut self, name: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed.push(name.into());
        }
    }

    /// Counts one check or test as skipped, with what was lacking.
    pub(crate) fn skipped(&mut self, name: &str, reason: &str) {
        self.skipped.push((name.into(), reason.into()));
    }

    /// The number that failed.
    pub(crate) fn failed(&self) -> usize {
        self.failed.len()
    }
}

impl fmt::Display for Tally {
    /// Every failure and every skip by name, then `N passed, N failed, N skipped` on a line alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.failed {
            writeln!(f, "failed: {name}")?;
        }
        for (name, reason) in &self.skipped {
            writeln!(f, "skipped: {name}: {reason}")?;
        }
        let (passed, failed, skipped) = (self.passed, self.failed.len(), self.skipped.len());
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}
