//! What stands in the lines: banned words, paths of one desk, package hosts, unsafe without a reason.

use crate::tidy::Fault;
use crate::tidy::rules::{Rules, Word};
use crate::tidy::sources::Source;

/// How many lines above `unsafe` its `SAFETY:` note may begin.
const SAFETY_LINES: usize = 12;

/// Faults in the lines of every text but the rules themselves and the lock file.
pub(crate) fn check(files: &[Source], rules: &Rules) -> Vec<Fault> {
    let mut faults = Vec::new();
    let searched =
        files.iter().filter(|file| !matches!(file.path.as_str(), "tidy.toml" | "Cargo.lock"));
    for file in searched {
        for (number, line) in file.lines() {
            faults.extend(line_faults(file, number, line, rules));
        }
        faults.extend(unexplained_unsafe(file));
        if file.text.as_ref().is_some_and(|text| !text.is_empty() && !text.ends_with('\n')) {
            faults.push(Fault::new(&file.path, 0, "does not end with a line end; add it"));
        }
    }
    faults
}

fn line_faults<'a>(
    file: &'a Source,
    number: usize,
    line: &'a str,
    rules: &'a Rules,
) -> impl Iterator<Item = Fault> {
    let words = rules.words.iter().filter(move |word| stands_in(word, line));
    let words = words.filter(|word| !rules.excepts(&file.path, &word.text));
    let words = words.map(|word| format!("`{}` stands here; {}", word.text, word.instead));
    let desks = rules.absolute_paths.iter().filter(move |desk| line.contains(&format!("{desk}/")));
    let desks = desks.filter(|desk| !rules.excepts(&file.path, desk));
    let desks = desks.map(|desk| format!("a path below `{desk}` exists on one desk only"));
    let hosts = rules.hosts.iter().filter(move |host| line.contains(host.as_str()));
    let hosts = hosts.filter(|host| !rules.excepts(&file.path, host));
    let hosts = hosts.map(|host| format!("`{host}`: package hosts are the desk's own setting"));
    let blank = (line != line.trim_end() && file.is_code()).then(|| "blanks at the end".to_owned());
    words
        .chain(desks)
        .chain(hosts)
        .chain(blank)
        .map(move |text| Fault::new(&file.path, number, text))
}

/// Whether the word stands in the line by itself, not as a part of a longer word.
fn stands_in(word: &Word, line: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let begins_as_word = word.text.starts_with(part_of_word);
    let ends_as_word = word.text.ends_with(part_of_word);
    let capitals = word.text.chars().any(char::is_uppercase);
    let line = if capitals { line.to_owned() } else { line.to_lowercase() };
    line.match_indices(&word.text).any(|(at, found)| {
        let goes_on_before = begins_as_word && line[..at].ends_with(part_of_word);
        let goes_on_after = ends_as_word && line[at + found.len()..].starts_with(part_of_word);
        !goes_on_before && !goes_on_after
    })
}

/// `unsafe` blocks and implementations without a `SAFETY:` note above.
fn unexplained_unsafe(file: &Source) -> Vec<Fault> {
    if file.extension() != "rs" {
        return Vec::new();
    }
    let lines: Vec<_> = file.lines().map(|(_, line)| line).collect();
    let dangerous = lines.iter().enumerate().filter(|(_, line)| {
        let code = line.split("//").next().unwrap_or(line);
        code.contains("unsafe {") || code.trim_start().starts_with("unsafe impl")
    });
    let unexplained = dangerous.filter(|(at, _)| {
        let above = &lines[at.saturating_sub(SAFETY_LINES)..=*at];
        !above.iter().any(|line| line.contains("SAFETY:"))
    });
    unexplained
        .map(|(at, _)| {
            let text = "unsafe without a note; write `// SAFETY: ` and why it holds above";
            Fault::new(&file.path, at + 1, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::test_rules;
    use crate::tidy::sources::test_source;

    fn faults(text: &str) -> Vec<String> {
        let rules = test_rules(
            "[[word]]\ntext = \"LATER\"\ninstead = \"do it\"\n\
             [[word]]\ntext = \"stopgap\"\ninstead = \"do it well\"\n\
             [[except]]\npath = \"b.rs\"\nwhat = \"LATER\"\nreason = \"why\"\n",
        );
        let files = [test_source("a.rs", text), test_source("b.rs", "// LATER\n")];
        check(&files, &rules).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_count_only_as_whole_words() {
        assert_eq!(faults("// LATERAL\n// later\n// stopgaps\n"), Vec::<String>::new());
        assert_eq!(faults("\n// LATER: x\n"), ["a.rs:2: `LATER` stands here; do it"]);
        assert_eq!(faults("// Stopgap\n"), ["a.rs:1: `stopgap` stands here; do it well"]);
    }

    #[test]
    fn paths_of_one_desk_and_package_hosts_are_faults() {
        let text = "a = \"/desk/me\"\nb = \"https://packages.example/x\"\nc = \"/desktop\"\n";
        assert_eq!(
            faults(text),
            [
                "a.rs:1: a path below `/desk` exists on one desk only",
                "a.rs:2: `packages.example`: package hosts are the desk's own setting",
            ]
        );
    }

    #[test]
    fn unsafe_needs_its_reason() {
        let call = ["unsafe", "{ f() };\n"].join(" ");
        let expected = "a.rs:1: unsafe without a note; write `// SAFETY: ` and why it holds above";
        assert_eq!(faults(&call), [expected]);
        assert_eq!(
            faults(&format!("// SAFETY: f has no conditions\n{call}")),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_end_of_lines_and_files_is_checked() {
        assert_eq!(faults("a \nb\n"), ["a.rs:1: blanks at the end"]);
        assert_eq!(faults("a"), ["a.rs: does not end with a line end; add it"]);
    }
}
