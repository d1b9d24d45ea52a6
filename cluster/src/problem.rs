//! What is wrong with a cluster file, all at once and each with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Most problems that are listed; what is more is counted.
pub const PROBLEMS_MAX: usize = 50;

/// Why a cluster file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the cluster file `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is larger than any cluster needs.
    #[error("the cluster file `{path}` has {size_bytes} bytes; at most {limit_bytes} are read")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The file can be read and is wrong.
    #[error("{0}")]
    Invalid(Problems),
}

impl LoadError {
    /// The problems of an invalid file; empty if it could not be read at all.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid(problems) => &problems.listed,
            Self::Read { .. } | Self::TooLarge { .. } => &[],
        }
    }
}

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub path: PathBuf,
    /// At most [`PROBLEMS_MAX`] of them.
    pub listed: Vec<Problem>,
    /// How many there are beyond those.
    pub unlisted: usize,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: 1 for the first line.
    pub line: usize,
    /// The key, with the sections that it stands in: `hosts.snmp.interval`; empty where the text is
    /// not TOML at all.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub text: String,
}

impl fmt::Display for Problems {
    /// One line each: `cluster.toml:12: hosts.snmp.interval: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.listed.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{}: ", self.path.display(), problem.line)?;
            if !problem.key.is_empty() {
                write!(f, "{}: ", problem.key)?;
            }
            write!(f, "{}", problem.text)?;
        }
        if self.unlisted > 0 {
            write!(f, "\nand {} more", self.unlisted)?;
        }
        Ok(())
    }
}

/// Collects problems while a file is read.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    problems: Vec<Problem>,
    /// Problems that stand for more of their kind at the same place.
    alike: BTreeMap<Kind, Alike>,
    dropped: usize,
}

/// Line, key and a word for what is wrong: what problems have in common that are told as one.
type Kind = (usize, String, &'static str);

/// How many problems one of the listed stands for.
#[derive(Debug)]
struct Alike {
    /// Its position among the problems.
    first: usize,
    /// How many more there are.
    more: usize,
    /// What the last of them is about.
    last: String,
}

impl Collected {
    /// How many are kept before sorting: a file of nothing but mistakes needs no more memory.
    const KEPT_MAX: usize = 1_000;

    /// Notes a problem; one that is noted already is not noted again.
    pub(crate) fn note(&mut self, line: usize, key: impl Into<String>, text: impl Into<String>) {
        if self.problems.len() == Self::KEPT_MAX {
            self.dropped += 1;
            return;
        }
        let problem = Problem { line, key: key.into(), text: text.into() };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Notes a problem with `subject`, one of the many that a range may unfold to. Those of the same
    /// kind at the same key become one, with the text of the first.
    pub(crate) fn note_alike(
        &mut self,
        line: usize,
        key: String,
        (kind, subject): (&'static str, &str),
        text: impl FnOnce() -> String,
    ) {
        if let Some(alike) = self.alike.get_mut(&(line, key.clone(), kind)) {
            alike.more += 1;
            subject.clone_into(&mut alike.last);
            return;
        }
        let first = self.problems.len();
        self.note(line, key.clone(), text());
        if self.problems.len() > first {
            self.alike.insert((line, key, kind), Alike { first, more: 0, last: String::new() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// All of them as an error.
    pub(crate) fn into_error(mut self, path: &Path) -> LoadError {
        for Alike { first, more, last } in self.alike.values().filter(|alike| alike.more > 0) {
            let text = format!("; and {more} more like it, the last `{last}`");
            self.problems[*first].text.push_str(&text);
        }
        self.problems.sort();
        let unlisted = self.problems.len().saturating_sub(PROBLEMS_MAX) + self.dropped;
        self.problems.truncate(PROBLEMS_MAX);
        LoadError::Invalid(Problems { path: path.into(), listed: self.problems, unlisted })
    }
}
