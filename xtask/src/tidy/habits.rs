//! Habits that no lint of the compiler sees: a fall-back that hides an impossible case, going on
//! after a panic without a thought, documentation that says what the name says.
//!
//! Only programs are looked at: tests and examples may be short.

use std::collections::BTreeSet;

use crate::tidy::Fault;
use crate::tidy::sources::Source;

/// How many lines above its place a reason may begin.
const REASON_LINES: usize = 4;
/// Documentation of more words is not looked at.
const WORDS_MAX: usize = 4;

/// Words that say nothing beside a name.
const EMPTY: [&str; 40] = [
    "a", "an", "any", "are", "as", "at", "be", "by", "for", "here", "in", "is", "it", "its", "of",
    "on", "one", "or", "own", "s", "that", "the", "there", "these", "this", "to", "what", "which",
    "who", "whose", "why", "with", "and", "some", "all", "each", "every", "another", "other",
    "such",
];

/// Faults in the programs of every crate.
pub(crate) fn check(files: &[Source]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| is_program(&file.path)) {
        let lines: Vec<_> = file.programs_lines().map(|(_, line)| line).collect();
        for (at, text) in hidden(&lines).into_iter().chain(unthought(&lines)).chain(empty(&lines)) {
            faults.push(Fault::new(&file.path, at + 1, text));
        }
    }
    faults
}

/// Whether a file is a part of a program, and no test, example or generated text.
fn is_program(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    path.ends_with(".rs")
        && !path.ends_with("tests.rs")
        && parts.iter().all(|part| !matches!(*part, "tests" | "examples" | "fuzz"))
}

/// Conversions whose failure becomes some number, where no reason says why that is right.
fn hidden(lines: &[&str]) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !is_comment(line)) {
        for (from, _) in line.match_indices("try_from(") {
            let rest = lines[at + 1..].iter().take(4).map(|line| line.trim());
            let call: String = std::iter::once(&line[from..]).chain(rest).collect();
            let Some(behind) = behind_call(&call) else { continue };
            let falls_back = [".unwrap_or(", ".unwrap_or_default(", ".unwrap_or_else(|_| "];
            let asserts = [".unwrap_or_else(|_| unreachable!(", ".unwrap_or_else(|_| panic!("];
            let hides = falls_back.iter().any(|fall_back| behind.starts_with(fall_back))
                && !asserts.iter().any(|assertion| behind.starts_with(assertion));
            if hides && !has_reason(lines, at, "saturate") {
                let text = "a conversion that cannot fail is asserted (`expect`), one that can is \
                            an error; where saturating is right, a comment above says why it \
                            saturates";
                faults.push((at, text.to_owned()));
            }
        }
    }
    faults
}

/// What stands behind the parenthesis that closes the first one of `call`.
fn behind_call(call: &str) -> Option<&str> {
    let mut depth = 0_u32;
    for (at, c) in call.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(call[at + 1..].trim_start()),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Locks that are taken although a thread panicked with them, where no reason says why.
fn unthought(lines: &[&str]) -> Vec<(usize, String)> {
    let taken = lines.iter().enumerate().filter(|(_, line)| {
        line.contains("PoisonError::into_inner") || line.contains("clear_poison")
    });
    let unthought = taken.filter(|(at, _)| !has_reason(lines, *at, "panic"));
    unthought
        .map(|(at, _)| {
            let text = "a lock that a thread panicked with; assert that none did (`expect`), or \
                        say above why what it guards is whole after a panic";
            (at, text.to_owned())
        })
        .collect()
}

/// Documentation of a few words, all of which stand in the name or the type of what it is for.
fn empty(lines: &[&str]) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut doc: Vec<&str> = Vec::new();
    let mut begins = 0;
    for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
        if let Some(text) = line.strip_prefix("///") {
            if doc.is_empty() {
                begins = at;
            }
            doc.push(text);
        } else if !line.starts_with("#[") && !line.is_empty() {
            if !doc.is_empty() && only_repeats(&doc.join(" "), line) {
                let text = "documentation that only repeats the name; say what it does not, or \
                            leave it out where the item is private";
                faults.push((begins, text.to_owned()));
            }
            doc.clear();
        }
    }
    faults
}

fn only_repeats(doc: &str, item: &str) -> bool {
    let item = item.split("//").next().unwrap_or(item);
    let named: BTreeSet<_> = words(item).map(|word| stem(&word)).collect();
    let said: Vec<_> = words(doc).collect();
    said.len() <= WORDS_MAX
        && said.iter().all(|word| EMPTY.contains(&word.as_str()) || named.contains(&stem(word)))
}

/// The words of a text or a name in small letters.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        before = c;
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    let words: Vec<_> = spaced.split_whitespace().map(str::to_lowercase).collect();
    words.into_iter()
}

/// A word without the ending that only grammar gives it.
fn stem(word: &str) -> String {
    let endings = ["ing", "ed", "es", "s", "e", "y"];
    let ending = endings
        .iter()
        .find(|ending| word.strip_suffix(**ending).is_some_and(|stem| stem.chars().count() >= 3));
    let stem = ending.and_then(|ending| word.strip_suffix(ending)).unwrap_or(word);
    stem.strip_suffix('i').unwrap_or(stem).to_owned()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Whether a comment right above a line, or behind it, has the word.
fn has_reason(lines: &[&str], at: usize, word: &str) -> bool {
    let above = &lines[at.saturating_sub(REASON_LINES)..=at];
    above.iter().any(|line| {
        line.split_once("//").is_some_and(|(_, comment)| comment.to_lowercase().contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sources::test_source;

    /// The lines that are faults.
    fn faults(text: &str) -> Vec<usize> {
        let of = |path: &str| {
            let found = check(&[test_source(path, text)]);
            found.into_iter().map(|fault| fault.line).collect::<Vec<_>>()
        };
        for path in ["new/tests/a.rs", "new/src/a/tests.rs", "new/src/a.txt"] {
            assert_eq!(of(path), Vec::<usize>::new(), "{path}");
        }
        of("new/src/a.rs")
    }

    #[test]
    fn a_conversion_that_hides_its_failure_is_a_fault() {
        assert_eq!(faults("let a = u32::try_from(b.len()).unwrap_or(u32::MAX);\n"), [1]);
        assert_eq!(faults("let a = u32::try_from(f(b))\n    .unwrap_or_default();\n"), [1]);
        let fine = "let a = u32::try_from(b).expect(\"b is small\");\n\
                    let a = u32::try_from(b)?;\n\
                    let a = u32::try_from(b).map_or(f64::INFINITY, f64::from);\n\
                    let a = x.unwrap_or(u32::try_from(b)?);\n\
                    let a = u32::try_from(b)\n    .unwrap_or_else(|_| unreachable!(\"small\"));\n\
                    // Saturates: later is never.\n\
                    let a = u32::try_from(b).unwrap_or(u32::MAX);\n";
        assert_eq!(faults(fine), Vec::<usize>::new());
        let in_tests = "#[cfg(test)]\nmod tests {\n    let a = u8::try_from(b).unwrap_or(0);\n}\n";
        assert_eq!(faults(in_tests), Vec::<usize>::new());
    }

    #[test]
    fn going_on_after_a_panic_needs_a_reason() {
        let lock = "let a = b.lock().unwrap_or_else(PoisonError::into_inner);\n";
        assert_eq!(faults(lock), [1]);
        assert_eq!(faults(&format!("// A panic leaves it whole.\n{lock}")), Vec::<usize>::new());
        assert_eq!(faults(&format!("// It is a lock.\n{lock}")), [2]);
    }

    #[test]
    fn documentation_that_repeats_the_name_is_a_fault() {
        let text = "/// The switch.\nswitch: Switch,\n\
                    /// Why.\n#[source]\nsource: io::Error,\n\
                    /// Its entries.\npub fn entry(&self) {}\n\
                    /// Room for viewers.\nviewers: Arc<Room>,\n\
                    /// A port's name.\nenum PortName {}\n";
        assert_eq!(faults(text), [1, 3, 6, 8, 10]);
        let fine = "/// The switch that sends.\nswitch: Switch,\n\
                    /// What the system said.\nsource: io::Error,\n\
                    /// In order.\nfn entries() {}\n\
                    /// One\n/// of the long ones that say what it is.\nentry: Entry,\n\
                    // The switch.\nswitch: Switch,\n";
        assert_eq!(faults(fine), Vec::<usize>::new());
    }
}
