//! The grammar of the command line: what holds for all verbs, and what help cannot say of each.
//!
//! `clap` knows names, kinds and help of arguments. What it does not know stands here, once: commands
//! that can be typed, and what exit code 1 means. Manual pages and `docs/command-line.md` are made of
//! both; the tests walk the parser, hold every verb against the rules that the document states, and
//! parse every example.

pub(crate) mod reference;
pub(crate) mod renamed;
mod usages;

#[cfg(test)]
mod documents;
#[cfg(test)]
mod program;
#[cfg(test)]
mod walk;

use clap::Command;

#[cfg(test)]
pub(crate) use documents::parses;
pub(crate) use usages::USAGES;

/// What the parser does not know of a verb that can be run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// The words behind `meikyo`: `fabric plan`.
    pub(crate) verb: &'static str,
    /// When it ends with 1: done, and the answer is no. Without, it only ends with 0 and 2.
    pub(crate) no: Option<&'static str>,
    /// Commands that can be typed.
    pub(crate) examples: &'static [&'static str],
}

/// What is known of a verb.
pub(crate) fn usage_of(verb: &str) -> Option<&'static Usage> {
    USAGES.iter().find(|usage| usage.verb == verb)
}

/// Commands that can be typed: all that are known of a verb; of words that several verbs begin with, one of
/// each, and of no words what a newcomer types first.
pub(crate) fn examples_of(verb: &str) -> Vec<&'static str> {
    const FIRST: [&str; 4] = ["config init", "probe", "measure", "serve"];
    match usage_of(verb) {
        Some(usage) => usage.examples.to_vec(),
        None => {
            let begins = |usage: &&Usage| match usage.verb.strip_prefix(verb) {
                _ if verb.is_empty() => FIRST.contains(&usage.verb),
                Some(rest) => rest.starts_with(' '),
                None => false,
            };
            USAGES
                .iter()
                .filter(begins)
                .filter_map(|usage| usage.examples.first().copied())
                .collect()
        }
    }
}

/// The program's commands without `help`, of which every command has one.
pub(crate) fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Every command that can be run, with the words behind `meikyo`, in the order of the help.
pub(crate) fn verbs(program: &Command) -> Vec<(String, &Command)> {
    fn gather<'a>(words: &str, command: &'a Command, verbs: &mut Vec<(String, &'a Command)>) {
        if !words.is_empty() && !command.is_subcommand_required_set() {
            verbs.push((words.to_owned(), command));
        }
        for below in command.get_subcommands() {
            gather(format!("{words} {}", below.get_name()).trim(), below, verbs);
        }
    }
    let mut verbs = Vec::new();
    gather("", program, &mut verbs);
    verbs
}
