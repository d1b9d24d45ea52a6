//! Names and sizes of files.

use crate::tidy::Fault;
use crate::tidy::rules::Rules;
use crate::tidy::sources::Source;

/// Files whose name does not say what is inside, and files that are too large.
pub(crate) fn check(files: &[Source], rules: &Rules) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in files {
        if !rules.excepts(&file.path, "name") {
            faults.extend(file.path.split('/').filter_map(|part| name_fault(file, part, rules)));
        }
        if file.bytes > rules.bytes_max && !rules.excepts(&file.path, "bytes") {
            let text = format!("{} bytes, {} at most; generate it", file.bytes, rules.bytes_max);
            faults.push(Fault::new(&file.path, 0, text));
        }
        let lines = code_lines(file);
        if file.is_code() && lines > rules.lines_max && !rules.excepts(&file.path, "lines") {
            let text =
                format!("{lines} lines without tests, {} at most; split it", rules.lines_max);
            faults.push(Fault::new(&file.path, 0, text));
        }
    }
    faults
}

fn name_fault(file: &Source, part: &str, rules: &Rules) -> Option<Fault> {
    let stem = part.split_once('.').map_or(part, |(stem, _)| stem);
    let says_nothing = rules.names.iter().any(|name| name == stem)
        || rules.name_endings.iter().any(|ending| stem.ends_with(ending.as_str()));
    says_nothing.then(|| {
        let text = format!("the name `{part}` does not say what is inside; name the thing");
        Fault::new(&file.path, 0, text)
    })
}

/// The lines before a trailing `mod tests { .. }`.
fn code_lines(file: &Source) -> usize {
    let mut count = 0;
    let mut previous = "";
    for (number, line) in file.lines() {
        if line == "mod tests {" && previous == "#[cfg(test)]" {
            return number - 2;
        }
        previous = line;
        count = number;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::test_rules;
    use crate::tidy::sources::test_source;

    #[test]
    fn names_that_say_nothing_are_faults() {
        let rules = test_rules("");
        let files = ["a/utils.rs", "utils/b.rs", "a/store_v2.rs", "a/utility.rs", "a/v2.rs"]
            .map(|path| test_source(path, "x\n"));
        let paths: Vec<_> = check(&files, &rules).into_iter().map(|fault| fault.path).collect();
        assert_eq!(paths, ["a/utils.rs", "utils/b.rs", "a/store_v2.rs"]);
    }

    #[test]
    fn tests_do_not_count_as_length_and_exceptions_hold() {
        let rules =
            test_rules("[[except]]\npath = \"table.rs\"\nwhat = \"lines\"\nreason = \"a table\"\n");
        let long = "a\n".repeat(6);
        let tested = format!("a\n#[cfg(test)]\nmod tests {{\n{}}}\n", "a\n".repeat(9));
        let files = [
            test_source("long.rs", &long),
            test_source("tested.rs", &tested),
            test_source("table.rs", &long),
            test_source("prose.md", &long),
        ];
        let faults = check(&files, &rules);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].to_string(), "long.rs: 6 lines without tests, 5 at most; split it");
    }

    #[test]
    fn big_files_are_faults() {
        let faults = check(&[test_source("a.bin", &"x".repeat(201))], &test_rules(""));
        assert_eq!(faults[0].to_string(), "a.bin: 201 bytes, 200 at most; generate it");
    }
}
