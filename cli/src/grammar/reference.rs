//! `docs/command-line.md`: the rules, and a table of all verbs made of the parser.

use clap::Command;

use super::{Usage, usage_of, verbs, without_help};

/// What people are told of the grammar before the table.
const RULES: &str = include_str!("rules.md");

/// The document. `program` is the parser of the whole program.
pub(crate) fn document(program: Command) -> String {
    let mut program = without_help(program);
    program.build();
    let mut text = RULES.to_owned();
    text += "\n## All verbs\n\nSynopses as in a manual page; `--help` and the manual pages list the options that \
             are not required.\n\n| command | prints `--json` | exit 1 |\n| --- | --- | --- |\n";
    for (verb, command) in verbs(&program) {
        let json = if command.get_arguments().any(|argument| argument.get_id() == "json") {
            "yes"
        } else {
            ""
        };
        let no = usage_of(&verb).and_then(|usage| usage.no).unwrap_or("");
        let synopsis = synopsis(command).replace('|', "\\|");
        text += &format!("| `{synopsis}` | {json} | {no} |\n");
    }
    text
}

/// A verb with its operands and required options: `meikyo query [OPTIONS] [RECORDING] [TABLE]`.
fn synopsis(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let first = usage.trim_start_matches("Usage: ").lines().next().unwrap_or_default();
    first.trim().to_owned()
}

/// What a manual page says of how a verb ends, or of how those end that begin with these words.
pub(crate) fn exit_status(verb: &str) -> [(&'static str, String); 3] {
    let no = match usage_of(verb) {
        None => "Success, and the answer is no; the verb's page says of what.".to_owned(),
        Some(Usage { no: None, .. }) => "Never.".to_owned(),
        Some(Usage { no: Some(no), .. }) => format!("Success, and the answer is no: {no}."),
    };
    [
        ("0", "Success; if the command answers a question, the answer is yes.".to_owned()),
        ("1", no),
        ("2", "Failure: the command line, a file or the system prevented it; standard error says why.".to_owned()),
    ]
}
