//! `PROMISES.md`: no promise without a bench or a test named beside it, and the test must exist.

use crate::tidy::Fault;
use crate::tidy::sources::Source;

const PAGE: &str = "PROMISES.md";

/// Rows of the page's tables that name neither, or a test that is not there.
pub(crate) fn check(files: &[Source]) -> Vec<Fault> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![Fault::new(PAGE, 0, "the page is missing; list there what users rely on")];
    };
    let mut faults = Vec::new();
    for (number, line) in page.lines() {
        let Some(shown_by) = last_cell(line) else { continue };
        let named: Vec<_> = shown_by.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            let text = "a promise without its bench or test; name it in backquotes, last column";
            faults.push(Fault::new(PAGE, number, text));
        }
        let tests = named.iter().filter(|name| !name.contains(' '));
        for test in tests.filter(|test| !is_defined(files, test)) {
            let text = format!("there is no test `{test}`; name one that is there");
            faults.push(Fault::new(PAGE, number, text));
        }
    }
    faults
}

/// The last cell of a table's row; `None` for headings, rules and prose.
fn last_cell(line: &str) -> Option<&str> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cell = row.rsplit('|').next()?.trim();
    let rule = row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    (!rule && cell != "shown by").then_some(cell)
}

fn is_defined(files: &[Source], test: &str) -> bool {
    let definition = format!("fn {test}(");
    files.iter().any(|file| file.text.as_ref().is_some_and(|text| text.contains(&definition)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::sources::test_source;

    #[test]
    fn promises_need_a_bench_or_a_test_that_exists() {
        let page = "| promise | shown by |\n| --- | --- |\n| fast | `meikyo bench collect` |\n\
                    | right | `values_agree` |\n| nice | see below |\n| sure | `no_such_test` |\n";
        let files = [test_source(PAGE, page), test_source("a.rs", "fn values_agree() {}\n")];
        let faults: Vec<_> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "PROMISES.md:5: a promise without its bench or test; name it in backquotes, last column",
                "PROMISES.md:6: there is no test `no_such_test`; name one that is there",
            ]
        );
        assert_eq!(check(&[]).len(), 1);
    }
}
