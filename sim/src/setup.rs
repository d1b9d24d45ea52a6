//! What all workers of a run know from the beginning.

use crate::options::Options;
use crate::partition::Partition;
use crate::rules::Rules;

/// The model, how it is divided, and how it is to be run: the same on every worker, and never changed
/// while the run lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) partition: &'a Partition,
    pub(crate) options: &'a Options,
}

impl Setup<'_> {
    /// The first instant in ns whose events are not handled.
    pub(crate) fn end(&self) -> u64 {
        self.options.until.as_nanos().saturating_add(1)
    }
}
