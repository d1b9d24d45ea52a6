//! What is wrong with a file, all at once and each with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::Origin;

/// Most problems that are listed; what is more is counted.
pub const PROBLEMS_MAX: usize = 50;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line, 1 for the first; none if what is wrong does not stand in the file.
    pub line: Option<usize>,
    /// The key, with the sections that it stands in: `hosts.snmp.interval`; empty where the text is
    /// not TOML at all.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub text: String,
}

impl Problem {
    /// A problem with the value of `key`, which comes from `origin`.
    pub fn new(origin: Origin, key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { line: origin.line(), key: key.into(), text: text.into() }
    }
}

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file, as it was named.
    pub path: PathBuf,
    /// At most [`PROBLEMS_MAX`] of them.
    pub listed: Vec<Problem>,
    /// How many there are beyond those.
    pub unlisted: usize,
}

impl Problems {
    /// Puts problems into the order of their lines, each once.
    pub fn new(path: impl AsRef<Path>, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        let unlisted = problems.len().saturating_sub(PROBLEMS_MAX);
        problems.truncate(PROBLEMS_MAX);
        Self { path: path.as_ref().into(), listed: problems, unlisted }
    }
}

impl fmt::Display for Problems {
    /// One line each: `cluster.toml:12: hosts.snmp.interval: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.listed.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:", self.path.display())?;
            if let Some(line) = problem.line {
                write!(f, "{line}:")?;
            }
            if !problem.key.is_empty() {
                write!(f, " {}:", problem.key)?;
            }
            write!(f, " {}", problem.text)?;
        }
        if self.unlisted > 0 {
            write!(f, "\nand {} more", self.unlisted)?;
        }
        Ok(())
    }
}

/// Collects problems while a file is read.
#[derive(Debug, Default)]
pub struct Collected {
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

    /// Notes a problem in a line; one that is noted already is not noted again.
    pub fn note(&mut self, line: usize, key: impl Into<String>, text: impl Into<String>) {
        self.add(Problem::new(Origin::Line(line), key, text));
    }

    /// Notes a problem; one that is noted already is not noted again.
    pub fn add(&mut self, problem: Problem) {
        if self.problems.len() == Self::KEPT_MAX {
            self.dropped += 1;
            return;
        }
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Notes a problem with `subject`, one of the many that a range may unfold to. Those of the same
    /// kind at the same key become one, with the text of the first.
    pub fn note_alike(
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

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// All of them, in the order of their lines.
    pub fn into_problems(mut self, path: impl AsRef<Path>) -> Problems {
        for Alike { first, more, last } in self.alike.values().filter(|alike| alike.more > 0) {
            let text = format!("; and {more} more like it, the last `{last}`");
            self.problems[*first].text.push_str(&text);
        }
        let mut problems = Problems::new(path, self.problems);
        problems.unlisted += self.dropped;
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_stand_in_the_order_of_their_lines_each_once() {
        let problem = |line, key: &str| Problem { line, key: key.into(), text: "is wrong".into() };
        let given = vec![
            problem(Some(10), "b"),
            problem(Some(9), ""),
            problem(None, "set"),
            problem(Some(10), "a"),
            problem(Some(10), "b"),
        ];
        let expected = "f.toml: set: is wrong\nf.toml:9: is wrong\nf.toml:10: a: is wrong\n\
                        f.toml:10: b: is wrong";
        assert_eq!(Problems::new("f.toml", given).to_string(), expected);
    }

    #[test]
    fn what_is_not_listed_is_counted() {
        let mut collected = Collected::default();
        for line in 1..=1_200 {
            collected.note(line, "key", "is wrong");
        }
        let problems = collected.into_problems("f.toml");
        assert_eq!((problems.listed.len(), problems.unlisted), (PROBLEMS_MAX, 1_150));
        assert!(problems.to_string().ends_with("f.toml:50: key: is wrong\nand 1150 more"));
    }

    #[test]
    fn problems_alike_are_told_as_one() {
        let mut collected = Collected::default();
        for subject in ["node1", "node2", "node3"] {
            let text = || format!("`{subject}` is there already");
            collected.note_alike(4, "hosts.name".into(), ("twice", subject), text);
        }
        let text = "f.toml:4: hosts.name: `node1` is there already; and 2 more like it, the last \
                    `node3`";
        assert_eq!(collected.into_problems("f.toml").to_string(), text);
    }
}
