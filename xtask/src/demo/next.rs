//! What the demo tells people to go on with: commands whose programs and files are there.

use std::path::Path;

use super::compile::PROGRAM;

/// A command, from the workspace's root, and what it does.
pub(super) struct Next {
    pub(super) command: String,
    pub(super) does: &'static str,
}

/// The commands that go on with a recording, which is named from the workspace's root.
pub(super) fn steps(recording: &str) -> [Next; 4] {
    let next = |command: String, does| Next { command, does };
    [
        next(format!("{PROGRAM} serve {recording}"), "the page"),
        next(format!("{PROGRAM} top {recording}"), "the same in the terminal"),
        next(format!("{PROGRAM} config init --help"), "a cluster file for machines of your own"),
        next("./x install".to_owned(), "puts `meikyo`, its manual pages and completions in place"),
    ]
}

/// The files that commands name and that are not there.
pub(super) fn missing<'a>(root: &Path, steps: &'a [Next]) -> Vec<&'a str> {
    let words = steps.iter().flat_map(|step| step.command.split(' '));
    words.filter(|word| word.contains('/') && !root.join(word).exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_whose_program_or_file_is_not_there_is_found() {
        let root = tempfile::tempdir().unwrap();
        let steps = steps("demo/recording");
        let program = root.path().join(PROGRAM);
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::create_dir_all(root.path().join("demo/recording")).unwrap();
        std::fs::write(root.path().join("x"), "").unwrap();
        assert_eq!(missing(root.path(), &steps), [PROGRAM; 3]);
        std::fs::write(&program, "").unwrap();
        assert_eq!(missing(root.path(), &steps), [""; 0]);
        std::fs::remove_dir(root.path().join("demo/recording")).unwrap();
        assert_eq!(missing(root.path(), &steps), ["demo/recording"; 2]);
    }

    #[test]
    fn every_verb_stands_in_the_documentation_of_the_parser() {
        let verbs = include_str!("../../../docs/command-line.md");
        for step in steps("demo/recording") {
            let Some(arguments) = step.command.strip_prefix(PROGRAM) else { continue };
            let is_verb = |word: &&str| !word.starts_with('-') && !word.contains('/');
            let verb: Vec<_> = arguments.split_whitespace().take_while(is_verb).collect();
            assert!(verbs.contains(&format!("| `meikyo {} ", verb.join(" "))), "{verb:?}");
        }
    }
}
