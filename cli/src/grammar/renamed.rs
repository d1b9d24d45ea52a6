//! Spellings of earlier versions: refused, with the new one named.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};
use meikyo_console::failure::Failure;

/// What was spelled otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Old {
    /// A verb, or a word below one.
    Verb(&'static str),
    /// An option, whatever its value is.
    Option(&'static str),
    /// An option that had one of these values; with others it means what it means now.
    Valued(&'static str, &'static [&'static str]),
    /// A path without an option before it.
    Operand,
}

/// One spelling that is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renamed {
    /// The verb, as words behind `meikyo`, or the words that several begin with.
    pub(crate) verb: &'static str,
    pub(crate) old: Old,
    /// What is typed now, behind the words of the verb.
    pub(crate) new: &'static str,
}

const fn renamed(verb: &'static str, old: Old, new: &'static str) -> Renamed {
    Renamed { verb, old, new }
}

/// All of them.
pub(crate) const RENAMED: &[Renamed] = &[
    renamed("", Old::Verb("agents"), "farm"),
    renamed("config", Old::Verb("agents"), "snmpd"),
    renamed("config", Old::Operand, "--cluster FILE"),
    renamed("fabric templates", Old::Operand, "--out DIR"),
    renamed("fabric deploy", Old::Option("--from"), "--current DIR"),
    renamed("fabric deploy", Old::Option("--write"), "--out DIR"),
    renamed("fabric", Old::Operand, "--cluster FILE"),
    renamed("lab up", Old::Operand, "--cluster FILE"),
    renamed("alerts", Old::Operand, "--recording RECORDING"),
    renamed("query", Old::Option("--until"), "--to TIME"),
    renamed("export", Old::Option("--until"), "--to TIME"),
    renamed("export", Old::Valued("--to", &["csv", "parquet"]), "--format FORMAT"),
    renamed("profile report", Old::Option("--until"), "--to TIME"),
    renamed("profile agent", Old::Option("--to"), "--server URL"),
    renamed("simulate", Old::Option("--until"), "--for SPAN"),
    renamed("simulate", Old::Option("--record"), "--out RECORDING"),
    renamed("checkpoint key", Old::Operand, "--out FILE"),
    renamed("checkpoint restart", Old::Option("--to"), "--out FILE"),
];

/// What to say to arguments that `error` refuses, if they are of an earlier version.
pub(crate) fn explained(
    arguments: &[OsString],
    error: &Error,
    program: &Command,
) -> Option<Failure> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let (mut verb, mut command) = (Vec::new(), program);
    for word in &words {
        let Some(below) = command.find_subcommand(word) else { break };
        (command, _) = (below, verb.push(*word));
    }
    let rest = &words[verb.len()..];
    let refused =
        [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| {
            match error.get(kind) {
                Some(ContextValue::String(text)) => Some(text.as_str()),
                _ => None,
            }
        });
    // Where a noun is missing, no path was meant.
    let refused = refused.filter(|_| !command.is_subcommand_required_set());
    let found = RENAMED.iter().find(|renamed| renamed.is_meant(&verb, rest, refused))?;
    let own = |words: &[&str]| {
        let words = ["meikyo"].iter().chain(words).filter(|word| !word.is_empty());
        words.copied().collect::<Vec<_>>().join(" ")
    };
    let verb = verb.join(" ");
    let was = match found.old {
        Old::Verb(word) => word,
        Old::Option(option) | Old::Valued(option, _) => option,
        Old::Operand => refused.unwrap_or_default(),
    };
    let (was, now) = (own(&[&verb, was]), own(&[&verb, found.new]));
    let help = if matches!(found.old, Old::Verb(_)) { now.clone() } else { own(&[&verb]) };
    Some(Failure::new(format!("`{was}` is written `{now}` now")).hint(format!("{help} --help")))
}

impl Renamed {
    fn is_meant(&self, verb: &[&str], rest: &[&str], refused: Option<&str>) -> bool {
        let own: Vec<&str> = self.verb.split_whitespace().collect();
        if !verb.starts_with(&own) {
            return false;
        }
        let has = |option: &str| {
            rest.iter().any(|word| *word == option || word.starts_with(&format!("{option}=")))
        };
        match self.old {
            Old::Verb(word) => verb.len() == own.len() && rest.first() == Some(&word),
            Old::Option(option) => has(option),
            Old::Valued(option, values) => {
                let given = |value: &&str| {
                    rest.contains(&format!("{option}={value}").as_str())
                        || rest.windows(2).any(|pair| pair == [option, *value])
                };
                values.iter().any(given)
            }
            Old::Operand => {
                refused.is_some_and(|word| !word.starts_with('-') && rest.contains(&word))
            }
        }
    }
}
