//! What `meikyo` and `meikyo --help` say: what the program is, and its verbs by what a person wants to do.
//!
//! The lines of the verbs come from the parser, so they cannot go stale; only the groups stand here.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::args::Args;

/// Every verb, in the order in which a newcomer needs them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Measure a cluster", &["config", "probe", "measure", "agent"]),
    (
        "Look at what was measured",
        &["serve", "top", "query", "export", "alerts", "mark", "recording"],
    ),
    ("Find where the time goes", &["profile"]),
    ("Plan a network, predict a system", &["fabric", "simulate", "trace"]),
    ("Keep long runs alive", &["checkpoint"]),
    ("Try it without a cluster", &["farm", "lab", "bench"]),
    ("Set up this program", &["completions", "man", "help"]),
];

/// Where to go from here.
const FIRST_STEPS: &str = "\
`meikyo help VERB` explains a verb. With a cluster at hand whose SNMP community is in `$COMMUNITY`,
begin like this:

  meikyo config init '10.0.0.[1-9]' --community env:COMMUNITY   # a cluster file of what answers
  meikyo probe                                                  # ask every device once
  meikyo measure --serve                                        # the page: http://127.0.0.1:8420/";

/// The parser of the whole command line, whose help is grouped.
pub(crate) fn command() -> Command {
    let mut command = Args::command();
    // Adds the verb `help`.
    command.build();
    let verbs = grouped(&command);
    let heading = command.get_styles().get_header();
    let options = format!("{heading}Options:{heading:#}");
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}{options}\n{{options}}\n\n{FIRST_STEPS}\n"
        ))
}

/// The groups as text, with the colours of clap's own headings.
fn grouped(command: &Command) -> String {
    let verbs = || GROUPS.iter().flat_map(|(_, verbs)| verbs.iter());
    let width = verbs().map(|verb| verb.len()).max().unwrap_or(0);
    let (heading, name) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = String::new();
    for (purpose, verbs) in GROUPS {
        writeln!(text, "{heading}{purpose}:{heading:#}").expect("a string takes everything");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            writeln!(text, "  {name}{verb:width$}{name:#}  {about}")
                .expect("a string takes everything");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widest line of the help, so that it fits beside something else on the screen.
    const COLUMNS_MAX: usize = 100;

    #[test]
    fn every_visible_verb_stands_in_exactly_one_group() {
        let mut command = Args::command();
        command.build();
        let mut expected: Vec<_> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(|verb| verb.get_name().to_owned())
            .collect();
        let mut grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().map(ToString::to_string)).collect();
        expected.sort();
        grouped.sort();
        assert_eq!(grouped, expected);
    }

    #[test]
    fn the_first_steps_can_be_typed_as_they_stand() {
        let commands = FIRST_STEPS.lines().filter(|line| line.starts_with("  meikyo "));
        let commands: Vec<_> = commands.map(|line| line.split('#').next().unwrap()).collect();
        assert_eq!(commands.len(), 3);
        for command in commands {
            crate::grammar::parses(command).unwrap();
        }
    }

    #[test]
    fn the_help_says_what_meikyo_is_and_every_verb_in_a_line_that_fits() {
        let help = command().render_help().to_string();
        assert!(help.starts_with("Meikyo measures"), "{help}");
        for verb in Args::command().get_subcommands() {
            let line = format!("\n  {} ", verb.get_name());
            assert!(help.contains(&line), "no line {line:?}:\n{help}");
            assert!(verb.get_about().is_some(), "`{}` does not say what it does", verb.get_name());
        }
        let wide: Vec<_> = help.lines().filter(|line| line.len() > COLUMNS_MAX).collect();
        assert!(wide.is_empty(), "wider than {COLUMNS_MAX} columns: {wide:#?}");
    }
}
