//! What the lints cannot see, each fault with its place and what to do.
//!
//! Every check is a function from what was read to a list of faults, so that it is tested on planted
//! faults without touching the sources.

mod circles;
mod dependencies;
mod fuzz_lock;
mod habits;
mod layers;
mod links;
mod map;
mod names;
mod promises;
mod rules;
mod sources;
mod text;
pub(crate) mod workspace;

use std::fmt;
use std::path::Path;

use crate::tidy::rules::Rules;

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    path: String,
    /// 1 for the first line; 0 for the file as a whole.
    line: usize,
    text: String,
}

impl Fault {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.into(), line, text: text.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

/// Checks the whole repository; whether nothing was found.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let rules = Rules::read(root)?;
    let files = sources::read(root)?;
    let workspace = workspace::read(root)?;
    let mut faults = Vec::new();
    faults.extend(names::check(&files, &rules));
    faults.extend(text::check(&files, &rules));
    faults.extend(habits::check(&files));
    faults.extend(circles::check(&files, &rules));
    faults.extend(links::check(&files));
    faults.extend(map::check(&files));
    faults.extend(promises::check(&files));
    faults.extend(layers::check(&workspace, &files));
    faults.extend(dependencies::check(&workspace, &rules.deny));
    let fuzz_lock = std::fs::read_to_string(root.join(fuzz_lock::LOCK))?;
    faults.extend(fuzz_lock::check(&workspace, &fuzz_lock)?);
    faults.extend(rules.dead_exceptions(&files));
    eprintln!("tidy: {} files, {} faults", files.len(), faults.len());
    Ok(told(faults))
}

/// Prints faults; whether there are none.
fn told(mut faults: Vec<Fault>) -> bool {
    faults.sort();
    for fault in &faults {
        println!("{fault}");
    }
    faults.is_empty()
}
