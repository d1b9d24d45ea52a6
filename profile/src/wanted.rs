//! Which samples of a recording are wanted.

use std::collections::BTreeSet;

use meikyo_recording::Selection;
use meikyo_units::{WallTime, glob};

use crate::tables::samples;

/// Which samples are wanted: those for which everything holds that is said. Names are patterns, of
/// which one has to fit; where there are none, every name does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// From then on.
    pub from: Option<WallTime>,
    /// Until then, exclusive.
    pub until: Option<WallTime>,
    /// Names of hosts.
    pub hosts: Vec<String>,
    /// Numbers of CPUs; every one when there are none.
    pub cpus: BTreeSet<u64>,
    /// Numbers of processes; every one when there are none.
    pub pids: BTreeSet<u64>,
    /// Names of processes.
    pub processes: Vec<String>,
    /// Names of threads.
    pub threads: Vec<String>,
    /// Jobs, in the words of [`crate::jobs::job_of`].
    pub jobs: Vec<String>,
    /// Whose samples may be seen at all: jobs, and users in the words of [`crate::jobs::user_of`]; everybody's
    /// when there are none.
    pub visible: Vec<String>,
}

impl Wanted {
    /// Every sample.
    pub const EVERYTHING: Self = Self {
        from: None,
        until: None,
        hosts: Vec::new(),
        cpus: BTreeSet::new(),
        pids: BTreeSet::new(),
        processes: Vec::new(),
        threads: Vec::new(),
        jobs: Vec::new(),
        visible: Vec::new(),
    };

    /// The rows of the table of samples among which the wanted ones are.
    pub(crate) fn selection(&self) -> Selection {
        let labels = if self.hosts.is_empty() {
            Vec::new()
        } else {
            vec![(samples::HOST.name().to_owned(), self.hosts.clone())]
        };
        Selection { from: self.from, to: self.until, labels, ..Selection::all(samples::NAME) }
    }

    /// Whether samples of a CPU of a process are wanted.
    pub(crate) fn has(&self, cpu: u64, pid: u64) -> bool {
        (self.cpus.is_empty() || self.cpus.contains(&cpu))
            && (self.pids.is_empty() || self.pids.contains(&pid))
    }
}

/// Whether a name fits one of some patterns, or there are none.
pub(crate) fn fits(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| glob::matches(pattern, name))
}
