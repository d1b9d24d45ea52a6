//! The map names files that are there: where to add what, and where what stands.

use crate::tidy::Fault;
use crate::tidy::sources::Source;

const MAP: &str = "ARCHITECTURE.md";

/// What stands in a path for any one name: of a vendor, of a model.
const ANY: &str = "NAME";

/// Paths of the map that are no file or directory of the repository.
pub(crate) fn check(files: &[Source]) -> Vec<Fault> {
    let Some(map) = files.iter().find(|file| file.path == MAP) else { return Vec::new() };
    let mut faults = Vec::new();
    for (number, line) in map.lines() {
        // Every second part is in backquotes.
        for path in line.split('`').skip(1).step_by(2).filter(|text| is_path(text, files)) {
            if !files.iter().any(|file| matches(path, &file.path)) {
                let text = format!("`{path}` is no file or directory here; mend the list");
                faults.push(Fault::new(MAP, number, text));
            }
        }
    }
    faults
}

/// Whether a text is meant as a path from the root: it begins with one of its directories.
fn is_path(text: &str, files: &[Source]) -> bool {
    let beginning = text.split_once('/').map(|(directory, _)| format!("{directory}/"));
    !text.contains([' ', '*', '<'])
        && beginning.is_some_and(|of| files.iter().any(|file| file.path.starts_with(&of)))
}

/// Whether a file is at a path, or below it.
fn matches(path: &str, file: &str) -> bool {
    let mut found = file.split('/');
    path.trim_end_matches('/').split('/').all(|name| {
        let found = found.next().unwrap_or_default();
        name == ANY && !found.is_empty() || name == found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sources::test_source;

    #[test]
    fn a_file_of_the_map_that_is_not_there_is_a_fault() {
        let map =
            "| `a/src/NAME/b.rs`, `a/src/` | `a/src/gone.rs` |\n`b::c/d`, `cli/x y`\n`a/NAME`\n";
        let files = [
            test_source(MAP, map),
            test_source("a/src/one/b.rs", ""),
            test_source("cli/main.rs", ""),
        ];
        let faults: Vec<_> = check(&files).iter().map(ToString::to_string).collect();
        let expected =
            "ARCHITECTURE.md:1: `a/src/gone.rs` is no file or directory here; mend the list";
        assert_eq!(faults, [expected]);
    }
}
