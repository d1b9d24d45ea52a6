//! The rules as data: `tidy.toml` and `deny.toml`.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::tidy::Fault;
use crate::tidy::sources::Source;

/// `tidy.toml`, with `deny.toml` beside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// Most lines of a file of code, without its tests.
    pub(crate) lines_max: usize,
    /// Most bytes of a file.
    pub(crate) bytes_max: usize,
    /// Names that say nothing.
    pub(crate) names: Vec<String>,
    /// Endings of names that say nothing.
    pub(crate) name_endings: Vec<String>,
    /// Beginnings of paths that exist on one desk only, without the slash at the end.
    pub(crate) absolute_paths: Vec<String>,
    /// Package hosts.
    pub(crate) hosts: Vec<String>,
    /// Words that must not stand anywhere.
    #[serde(rename = "word", default)]
    pub(crate) words: Vec<Word>,
    /// What is excepted, and why.
    #[serde(rename = "except", default)]
    exceptions: Vec<Exception>,
    /// `deny.toml`.
    #[serde(skip)]
    pub(crate) deny: Deny,
}

/// A word that must not stand anywhere, and what to do instead.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) instead: String,
}

/// One file that a rule does not hold for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    path: String,
    what: String,
    reason: String,
}

/// The part of `deny.toml` that is checked here.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Deny {
    pub(crate) licenses: Licenses,
    pub(crate) bans: Bans,
    pub(crate) sources: AllowedSources,
}

/// Licences that dependencies may have.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Licenses {
    pub(crate) allow: Vec<String>,
}

/// Crates that may be there twice.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Bans {
    pub(crate) skip: Vec<Skip>,
}

/// One crate that may be there twice, `name@version` with as much of the version as matters.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Skip {
    #[serde(rename = "crate")]
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Where dependencies may come from.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AllowedSources {
    #[serde(rename = "allow-registry")]
    pub(crate) allow_registry: Vec<String>,
}

impl Rules {
    /// Reads both files.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut rules: Self = parse(&root.join("tidy.toml"))?;
        rules.deny = parse(&root.join("deny.toml"))?;
        Ok(rules)
    }

    /// Whether the rule `what` does not hold for `path`.
    pub(crate) fn excepts(&self, path: &str, what: &str) -> bool {
        self.exceptions.iter().any(|except| except.path == path && except.what == what)
    }

    /// Exceptions without a reason or without a file.
    pub(crate) fn dead_exceptions(&self, files: &[Source]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for except in &self.exceptions {
            if !files.iter().any(|file| file.path == except.path) {
                let text = format!("the exception for `{}` has no file; remove it", except.path);
                faults.push(Fault::new("tidy.toml", 0, text));
            }
            if except.reason.trim().is_empty() {
                let text = format!("the exception for `{}` has no reason; write it", except.path);
                faults.push(Fault::new("tidy.toml", 0, text));
            }
        }
        faults
    }
}

fn parse<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` is not understood", path.display()))
}

#[cfg(test)]
pub(crate) fn test_rules(text: &str) -> Rules {
    let beginning = "lines_max = 5\nbytes_max = 200\nnames = [\"utils\"]\nname_endings = [\"_v2\"]\n\
                     absolute_paths = [\"/desk\"]\nhosts = [\"packages.example\"]\n";
    toml::from_str(&format!("{beginning}{text}")).expect("the test's rules are correct")
}
