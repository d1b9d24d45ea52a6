//! The commands that our documents and examples show, parsed by the program's own parser.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use super::program::program;
use super::verbs;
use crate::args::Args;

/// Options that documents name without the program that has them, which is not ours.
const OPTIONS_OF_OTHERS: &[&str] =
    &["allow-run-as-root", "no-kill", "oversubscribe", "release", "signal", "track-mem", "web"];

/// Splits a line as a shell does, as far as our documents need it, and parses it.
pub(crate) fn parses(line: &str) -> Result<Args, clap::Error> {
    Args::try_parse_from(words(line))
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut word, mut begun) = (Vec::new(), None, String::new(), false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, ' ') if begun => {
                words.push(std::mem::take(&mut word));
                begun = false;
            }
            (None, ' ') => {}
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// Whether a shell ends a command at this word.
fn ends_a_command(word: &str) -> bool {
    matches!(word, "|" | "&&" | "||" | ";" | "&" | "#")
        || [">", "<", "2>"].iter().any(|redirection| word.starts_with(redirection))
}

/// The calls of `meikyo` in a line of a shell: where a command begins, or from a target folder.
fn calls(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "#").collect();
    let commands = words.split(|word| ends_a_command(word));
    let called = commands.filter_map(|words| {
        let built = |word: &&str| word.starts_with("target/") && word.ends_with("/meikyo");
        let first = (words.first() == Some(&"meikyo")).then_some(0);
        let at = first.or_else(|| words.iter().position(built))?;
        Some(format!("meikyo {}", words[at + 1..].join(" ")))
    });
    called.collect()
}

/// What a document shows.
#[derive(Debug, Default)]
struct Shown {
    /// Commands in blocks, to be typed as they stand.
    typed: Vec<String>,
    /// Synopses in blocks: brackets, and words in place of values.
    synopses: Vec<String>,
    /// What stands between backquotes in a line of text.
    spans: Vec<String>,
}

impl Shown {
    /// Reads a page of Markdown, or the comments of an example.
    fn read(text: &str) -> Self {
        let mut shown = Self::default();
        let mut fenced = false;
        for line in text.replace("\\\n", " ").lines() {
            let line = line.strip_prefix("# ").unwrap_or(line);
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let is_item = line.trim_start().starts_with(['-', '*', '|']);
            if !fenced && (is_item || !line.starts_with("  ")) {
                let parts = line.split('`').enumerate().filter(|(place, _)| place % 2 == 1);
                shown.spans.extend(parts.map(|(_, part)| part.replace("\\|", "|")));
                continue;
            }
            for call in calls(line.trim_start().trim_start_matches("$ ")) {
                let is_synopsis = ["...", "…", "$", " [", "|"].iter().any(|it| call.contains(it));
                let kind = if is_synopsis { &mut shown.synopses } else { &mut shown.typed };
                kind.push(call);
            }
        }
        shown
    }
}

/// Whether the parser knows every verb and option of a line, whatever the values are.
fn is_known(line: &str) -> bool {
    use ErrorKind::{ArgumentConflict, InvalidSubcommand, UnknownArgument};
    let line = line.replace(['[', ']'], "").replace("...", "");
    parses(&line).err().is_none_or(|error| {
        !matches!(error.kind(), ArgumentConflict | InvalidSubcommand | UnknownArgument)
    })
}

fn documents() -> Vec<(PathBuf, Shown)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = ["README.md", "ARCHITECTURE.md", "PROMISES.md", "NON-FEATURES.md"];
    let mut files: Vec<_> = names.iter().map(|name| root.join(name)).collect();
    files.push(root.join("packaging/README.md"));
    for directory in ["docs", "examples"] {
        files.extend(root.join(directory).read_dir().unwrap().map(|entry| entry.unwrap().path()));
    }
    let kinds = ["md", "toml", "sh"];
    files.retain(|file| {
        let kind = file.extension().and_then(|kind| kind.to_str());
        // The command line's own page is made of the parser.
        kind.is_some_and(|kind| kinds.contains(&kind)) && !file.ends_with("command-line.md")
    });
    let shown = |file: &PathBuf| Shown::read(&std::fs::read_to_string(file).unwrap());
    files.iter().map(|file| (file.clone(), shown(file))).collect()
}

#[test]
fn commands_of_the_documents_parse() {
    let (mut tried, mut refused) = (0, Vec::new());
    for (file, shown) in documents() {
        for line in &shown.typed {
            tried += 1;
            let error = parses(line).err().filter(|error| error.exit_code() != 0);
            refused.extend(error.map(|error| format!("{}: {line}: {error}", file.display())));
        }
        let calls = shown.spans.iter().filter(|span| span.starts_with("meikyo "));
        for line in shown.synopses.iter().chain(calls.filter(|span| !span.contains('…'))) {
            tried += 1;
            if !is_known(line) {
                refused.push(format!("{}: {line}", file.display()));
            }
        }
    }
    assert!(tried > 200, "commands were found: {tried}");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// `deploy --current DIR` is `meikyo fabric deploy --current DIR`, and a bare `--current DIR` some verb's.
#[test]
fn options_that_the_documents_name_are_there() {
    let program = program();
    let verbs = verbs(&program);
    let options: BTreeSet<_> = verbs
        .iter()
        .flat_map(|(_, command)| command.get_arguments().filter_map(|it| it.get_long()))
        .chain(["help", "version"])
        .chain(OPTIONS_OF_OTHERS.iter().copied())
        .collect();
    let (mut tried, mut unknown) = (0, Vec::new());
    for (file, shown) in documents() {
        for span in &shown.spans {
            // `--` alone stands before the program that is profiled.
            if let Some(rest) = span.strip_prefix("--").filter(|rest| !rest.is_empty()) {
                tried += 1;
                let end = rest.find(|letter: char| letter != '-' && !letter.is_alphanumeric());
                if !options.contains(&rest[..end.unwrap_or(rest.len())]) {
                    unknown.push(format!("{}: {span}", file.display()));
                }
                continue;
            }
            let Some((words, behind)) = span.split_once(" --") else { continue };
            let are_meant = |verb: &&str| *verb == words || verb.ends_with(&format!(" {words}"));
            let mut meant =
                verbs.iter().map(|(verb, _)| verb.as_str()).filter(are_meant).peekable();
            if meant.peek().is_some() {
                tried += 1;
                if !meant.any(|verb| is_known(&format!("meikyo {verb} --{behind}"))) {
                    unknown.push(format!("{}: {span}", file.display()));
                }
            }
        }
    }
    assert!(tried > 120, "options were found: {tried}");
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn commands_are_found_in_what_a_shell_takes() {
    assert_eq!(
        calls("meikyo lab verify && meikyo lab down"),
        ["meikyo lab verify", "meikyo lab down"]
    );
    assert_eq!(calls("try next: target/light/meikyo top rec  # the same"), ["meikyo top rec"]);
    assert_eq!(calls("meikyo config snmpd | fill . > snmpd.conf"), ["meikyo config snmpd"]);
    assert_eq!(calls("install -d -g meikyo /etc/meikyo"), [""; 0]);
    let shown =
        Shown::read("Type `meikyo probe`:\n\n    meikyo top a\n\n```\nmeikyo top b ...\n```\n");
    assert_eq!(shown.typed, ["meikyo top a"]);
    assert_eq!(shown.synopses, ["meikyo top b ..."]);
    assert_eq!(shown.spans, ["meikyo probe"]);
}
