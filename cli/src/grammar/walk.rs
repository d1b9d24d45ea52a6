//! The parser of the whole program, held against the rules of `docs/command-line.md`.

use std::collections::BTreeSet;

use clap::{Arg, ArgAction, CommandFactory as _};

use super::documents::parses;
use super::program::program;
use super::reference;
use super::renamed::{Old, RENAMED};
use super::{USAGES, usage_of, verbs};
use crate::args::Args;

/// Holds every argument of every verb against a rule, and names all that depart.
fn none_departs(departs: impl Fn(&str, &Arg) -> bool) {
    let program = program();
    let mut found = Vec::new();
    for (verb, command) in verbs(&program) {
        for argument in command.get_arguments() {
            if departs(&verb, argument) {
                found.push(format!("{verb}: {argument}"));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

fn value_name(argument: &Arg) -> Option<&str> {
    argument.get_value_names().and_then(|names| names.first()).map(|name| name.as_str())
}

fn env(argument: &Arg) -> Option<&str> {
    argument.get_env().and_then(|name| name.to_str())
}

#[test]
fn every_verb_has_examples_that_parse_and_the_table_has_no_other() {
    let program = program();
    let verbs = verbs(&program);
    let there: BTreeSet<&str> = verbs.iter().map(|(verb, _)| verb.as_str()).collect();
    assert!(there.len() > 50, "the parser was walked: {there:?}");
    let told: BTreeSet<&str> = USAGES.iter().map(|usage| usage.verb).collect();
    assert_eq!(there, told);
    assert_eq!(told.len(), USAGES.len(), "each verb once");
    for usage in USAGES {
        assert!(!usage.examples.is_empty(), "{}", usage.verb);
        for example in usage.examples {
            assert!(example.starts_with(&format!("meikyo {}", usage.verb)), "{example}");
            parses(example).unwrap();
        }
    }
}

#[test]
fn nothing_is_hidden_and_no_option_has_two_names() {
    let program = program();
    for (verb, command) in verbs(&program) {
        assert!(!command.is_hide_set(), "{verb}");
        assert_eq!(command.get_all_aliases().count(), 0, "{verb}");
    }
    none_departs(|_, argument| argument.is_hide_set() || argument.get_all_aliases().is_some());
}

#[test]
fn recordings_that_are_read_are_the_first_operand_and_those_spoken_to_an_option() {
    none_departs(|verb, argument| {
        let spoken_to = verb == "mark" || verb.starts_with("alerts");
        match (env(argument), argument.get_id().as_str()) {
            (Some("MEIKYO_RECORDING"), "out") => value_name(argument) != Some("RECORDING"),
            (Some("MEIKYO_RECORDING"), _) if spoken_to => {
                argument.get_long() != Some("recording")
                    || value_name(argument) != Some("RECORDING")
            }
            (Some("MEIKYO_RECORDING"), _) => {
                argument.get_index() != Some(1) || value_name(argument) != Some("RECORDING")
            }
            (_, "out") => false,
            // The environment names every recording where none is typed.
            _ => value_name(argument) == Some("RECORDING"),
        }
    });
}

#[test]
fn a_cluster_file_is_an_option_of_that_name() {
    none_departs(|verb, argument| {
        // A cluster file that is written goes where the others look for it.
        if verb == "config init" && argument.get_long() == Some("out") {
            return value_name(argument) != Some("FILE");
        }
        let is_cluster = env(argument) == Some("MEIKYO_CLUSTER")
            || argument.get_long() == Some("cluster")
            || argument.get_help().is_some_and(|help| help.to_string() == "The cluster file");
        // What `serve`, `checkpoint plan` and `checkpoint run` can do without has no default.
        let optional = matches!(verb, "serve" | "checkpoint plan" | "checkpoint run");
        let is_right = argument.get_long() == Some("cluster")
            && value_name(argument) == Some("FILE")
            && (optional || env(argument) == Some("MEIKYO_CLUSTER"));
        is_cluster && !is_right
    });
}

#[test]
fn words_for_times_spans_outputs_and_forms_mean_the_same_everywhere() {
    none_departs(|verb, argument| {
        let (long, value) = (argument.get_long(), value_name(argument));
        let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
        let as_told = match long {
            // It reads no recording, of which there could be a part.
            Some("to") if verb == "measure" => value == Some("URL"),
            Some("from" | "to") => value == Some("TIME"),
            Some("for" | "every") => value == Some("SPAN"),
            Some("out") => matches!(value, Some("DIR" | "FILE" | "RECORDING" | "SVG")),
            Some("format") => value == Some("FORMAT"),
            Some("device") => value == Some("PATTERN"),
            Some("switch") => value == Some("NAME"),
            Some("json" | "dry-run" | "force") => is_flag,
            Some("until" | "record" | "write" | "duration" | "output" | "file" | "config-file") => {
                false
            }
            _ => true,
        };
        // And the other way round: a time is given with these two only.
        let times = value == Some("TIME") && !matches!(long, Some("from" | "to"));
        !as_told || times
    });
}

#[test]
fn kinds_of_values_have_one_name_each() {
    const KINDS: &[&str] =
        &["DURATION", "PATH", "COUNT", "MS", "MIB", "SECONDS", "NUMBER", "FILENAME"];
    // What may be a file as well as a directory, or is no file at all.
    const PATHS: &[&str] = &["lab up: read", "serve: unix_socket", "serve: prefix"];
    none_departs(|verb, argument| {
        let told = format!("{verb}: {}", argument.get_id());
        let kind = value_name(argument).unwrap_or_default();
        KINDS.contains(&kind) && !(kind == "PATH" && PATHS.contains(&told.as_str()))
    });
}

/// Verbs that print no data of their own: what they print is of another form, or of another program.
const WITHOUT_JSON: &[&str] = &[
    "serve",
    "fabric templates",
    "fabric draw",
    "lab exec",
    "lab prime",
    "lab cut",
    "lab mend",
    "lab down",
    "checkpoint key",
    "checkpoint run",
    "checkpoint daemon",
    "checkpoint save",
    "mark",
    "alerts acknowledge",
    "alerts silence",
    "config schema",
    "completions",
    "man",
    "agent",
    "farm",
    "export",
    "profile export",
];

#[test]
fn every_verb_that_prints_data_prints_them_for_programs_too() {
    let program = program();
    for (verb, command) in verbs(&program) {
        let has = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        assert_eq!(has, !WITHOUT_JSON.contains(&verb.as_str()), "{verb}");
    }
}

#[test]
fn the_document_is_what_the_parser_says() {
    let checked_in = include_str!("../../../docs/command-line.md");
    let now = reference::document(Args::command());
    assert!(checked_in == now, "write it anew: meikyo man --markdown > docs/command-line.md");
}

#[test]
fn old_spellings_do_not_parse_and_new_ones_do() {
    let program = program();
    let verbs = verbs(&program);
    for renamed in RENAMED {
        let (of, old) = match renamed.old {
            Old::Verb(word) => (renamed.verb, word.to_owned()),
            Old::Option(option) => (renamed.verb, format!("{option} x")),
            Old::Valued(option, values) => (renamed.verb, format!("{option} {}", values[0])),
            Old::Operand => (renamed.verb, "a-path".to_owned()),
        };
        assert!(parses(&format!("meikyo {of} {old}")).is_err(), "{of} {old}");
        // What is named instead is an option or a verb that there is.
        let new = renamed.new.split(' ').next().unwrap();
        let below = verbs.iter().filter(|(verb, _)| verb.starts_with(of));
        let is_there = below.into_iter().any(|(verb, command)| {
            verb == format!("{of} {new}").trim_start()
                || command
                    .get_arguments()
                    .any(|own| own.get_long().is_some_and(|long| new == format!("--{long}")))
        });
        assert!(is_there, "{of} {new}");
    }
}

/// A verb's line in the help says what it does, as an order does.
#[test]
fn every_verb_and_every_argument_says_what_it_is_for() {
    const NO_VERBS: [&str; 8] = ["The", "A", "An", "What", "How", "Which", "This", "It"];
    let program = program();
    for (verb, command) in verbs(&program) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split(' ').next().unwrap_or_default();
        let is_order = first.starts_with(|c: char| c.is_ascii_uppercase());
        assert!(is_order && !NO_VERBS.contains(&first), "{verb}: {about:?}");
        assert!(!about.ends_with('.'), "{verb}: {about:?}");
    }
    // A sentence begins large and has no full stop where it stands alone; `[default: 3]` follows it.
    none_departs(|_, argument| {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let begins = help.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit());
        !begins || help.ends_with('.')
    });
}

/// Sentences are wrapped; synopses, examples and words without a blank stay in one piece.
#[test]
fn help_is_wrapped_at_100_columns() {
    let program = program();
    for (verb, command) in verbs(&program) {
        let help = command.clone().render_long_help().to_string();
        let long = help.lines().filter(|line| line.chars().count() > 100);
        let sentences: Vec<_> = long
            .filter(|line| !line.contains("meikyo ") && line.split_whitespace().count() > 2)
            .collect();
        assert!(sentences.is_empty(), "{verb}: {sentences:#?}");
    }
}

#[test]
fn manual_pages_are_of_verbs_that_people_type() {
    assert!(usage_of("lab role").is_none());
    let program = program();
    assert!(verbs(&program).iter().all(|(verb, _)| !verb.starts_with("lab role")));
}
