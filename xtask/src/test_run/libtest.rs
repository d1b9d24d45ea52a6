//! The output of `cargo test -- --show-output`, read line by line.
//!
//! A binary prints `running N tests`, a line a test, then the captured output of every test under
//! `---- NAME stdout ----`, first those that passed, then those that failed, then its own result.
//! Output of tests that passed is read for `SKIPPED: reason` (a right or an ability of the kernel is
//! missing) and `LACKING: reason` (a program that can be installed is), and not shown.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::tally::Tally;

/// Where in a binary's output we are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Between two binaries.
    #[default]
    Between,
    /// The list of tests.
    List,
    /// Captured output of tests that passed.
    Successes,
    /// Captured output of tests that failed.
    Failures,
}

/// The reader; keeps what is needed until a binary has ended.
#[derive(Debug, Default)]
pub(crate) struct LibtestOutput {
    part: Part,
    expected: usize,
    seen: usize,
    /// What stands before the names of its tests at the end.
    program: String,
    passed: Vec<String>,
    failed: usize,
    reasons: BTreeMap<String, Reason>,
    current: Option<String>,
    /// What the test that failed said since it panicked.
    panic: String,
    unfinished: usize,
}

/// Why a test that passed tested nothing.
#[derive(Debug)]
enum Reason {
    Skipped(String),
    Lacking(String),
}

impl LibtestOutput {
    /// The reader of what the tests of `program` print.
    pub(crate) fn of(program: &str) -> Self {
        Self { program: program.to_owned(), ..Self::default() }
    }

    /// Reads one line; the answer is whether a person should see it.
    pub(crate) fn read(&mut self, line: &str, tally: &mut Tally) -> bool {
        // What a test printed itself may look like another run's output: only headings count there.
        let in_list = matches!(self.part, Part::Between | Part::List);
        if in_list && let Some(expected) = test_count(line) {
            self.begin(expected, tally);
            return expected > 0;
        }
        match self.part {
            Part::Between => return !line.is_empty(),
            Part::List if line == "successes:" => self.part = Part::Successes,
            Part::List | Part::Successes if line == "failures:" => {
                self.current = None;
                self.part = Part::Failures;
            }
            Part::List => {
                self.read_test(line, tally);
                return !line.is_empty();
            }
            Part::Successes => self.read_captured(line),
            Part::Failures => self.read_failure(line, tally),
        }
        if line.starts_with("test result:") {
            let shown = self.expected > 0;
            self.end(tally);
            return shown;
        }
        self.part == Part::Failures
    }

    /// Counts what has no result: binaries that died, and a build that failed.
    pub(crate) fn finish(mut self, ended_well: bool, tally: &mut Tally) {
        self.abandon(tally);
        if !ended_well && self.failed == 0 && self.unfinished == 0 {
            tally.check("cargo test (it could not build or run everything)", false);
        }
    }

    fn begin(&mut self, expected: usize, tally: &mut Tally) {
        self.abandon(tally);
        self.part = Part::List;
        self.expected = expected;
    }

    fn read_test(&mut self, line: &str, tally: &mut Tally) {
        if line.starts_with("test result:") {
            return;
        }
        let Some((name, result)) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return;
        };
        let name = name.trim_end_matches(" - should panic");
        self.seen += 1;
        if let Some(time) = seconds(result) {
            tally.took(&format!("{} {name}", self.program), time);
        }
        match result.split(' ').next().unwrap_or(result).trim_end_matches(',') {
            "ok" => self.passed.push(name.into()),
            "ignored" => tally.skipped(name, result),
            _ => {
                self.failed += 1;
                tally.check(name, false);
            }
        }
    }

    fn read_failure(&mut self, line: &str, tally: &mut Tally) {
        let heading = heading(line);
        if heading.is_some() || line == "failures:" {
            if let Some(name) = self.current.take() {
                tally.said(&name, &self.panic);
            }
            self.panic.clear();
            self.current = heading.map(str::to_owned);
        } else if !line.is_empty() && (!self.panic.is_empty() || line.contains(" panicked at ")) {
            self.panic.push_str(line);
            self.panic.push('\n');
        }
    }

    fn read_captured(&mut self, line: &str) {
        if let Some(name) = heading(line) {
            self.current = Some(name.into());
            return;
        }
        let line = line.trim();
        let skipped = line.strip_prefix("SKIPPED: ").map(|reason| Reason::Skipped(reason.into()));
        let reason = skipped.or_else(|| {
            line.strip_prefix("LACKING: ").map(|reason| Reason::Lacking(reason.into()))
        });
        if let (Some(reason), Some(name)) = (reason, &self.current) {
            self.reasons.entry(name.clone()).or_insert(reason);
        }
    }

    fn end(&mut self, tally: &mut Tally) {
        for name in std::mem::take(&mut self.passed) {
            match self.reasons.get(&name) {
                Some(Reason::Skipped(reason)) => tally.skipped(&name, reason),
                Some(Reason::Lacking(reason)) => tally.lacking(&name, reason),
                None => tally.check(&name, true),
            }
        }
        self.reasons.clear();
        self.current = None;
        self.seen = 0;
        self.part = Part::Between;
    }

    /// A binary that began and printed no result has died: its missing tests failed as one.
    fn abandon(&mut self, tally: &mut Tally) {
        if self.part == Part::Between {
            return;
        }
        let (seen, expected) = (self.seen, self.expected);
        tally.check(&format!("a test binary died after {seen} of its {expected} tests"), false);
        self.unfinished += 1;
        self.end(tally);
    }
}

/// The test whose captured output follows.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The time in a result such as `ok <1.250s>`, which libtest prints when it is asked for it.
fn seconds(result: &str) -> Option<Duration> {
    let (_, time) = result.rsplit_once('<')?;
    Duration::try_from_secs_f64(time.strip_suffix("s>")?.parse().ok()?).ok()
}

/// `N` of `running N tests`.
fn test_count(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("running ")?;
    rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally_of(text: &str, ended_well: bool) -> (String, String) {
        let mut tally = Tally::default();
        let mut output = LibtestOutput::of("it");
        let shown: Vec<_> = text.lines().filter(|line| output.read(line, &mut tally)).collect();
        output.finish(ended_well, &mut tally);
        (tally.to_string(), shown.join("\n"))
    }

    const GOOD: &str = "\
running 4 tests
test one ... ok
test two ... ok
test three ... ignored, needs a moon
test four ... ok

successes:

---- two stdout ----
begins
  SKIPPED: no snmpd here

---- four stdout ----
running 7 tests
1 passed, 0 failed, 9 skipped
test five ... FAILED

successes:
    four
    one
    two

test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_test_that_says_it_was_skipped_is_not_counted_as_passed() {
        let (tally, shown) = tally_of(GOOD, true);
        assert_eq!(
            tally,
            "skipped: three: ignored, needs a moon\nskipped: two: no snmpd here\n\
             2 passed, 0 failed, 2 skipped"
        );
        assert!(!shown.contains("9 skipped"), "output of passed tests is not shown: {shown}");
        assert!(shown.contains("test one ... ok"));
    }

    #[test]
    fn times_and_missing_programs_are_told() {
        let text = "running 2 tests\ntest one ... ok <0.250s>\ntest two ... ok <12.000s>\n\nsuccesses:\n\n\
                    ---- one stdout ----\nLACKING: no snmpd here\n\nsuccesses:\n    one\n    two\n\n\
                    test result: ok. 2 passed\n";
        let (tally, _) = tally_of(text, true);
        assert_eq!(
            tally,
            "   12.0 s  it two\n    0.2 s  it one\nskipped: one: no snmpd here\n\
             1 passed, 0 failed, 1 skipped"
        );
    }

    #[test]
    fn failures_are_counted_and_their_output_is_shown() {
        let text = "\
running 2 tests
test bad ... FAILED
test src/lib.rs - (line 9) ... ok

successes:

successes:
    src/lib.rs - (line 9)

failures:

---- bad stdout ----
it begins

thread 'bad' (7) panicked at src/lib.rs:9:5:
left: 1

failures:
    bad

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
";
        let (tally, shown) = tally_of(text, false);
        assert_eq!(
            tally,
            "failed: bad\n    thread 'bad' (7) panicked at src/lib.rs:9:5:\n    left: 1\n\
             1 passed, 1 failed, 0 skipped"
        );
        assert!(shown.contains("left: 1"));
    }

    #[test]
    fn a_binary_that_dies_counts_as_a_failure() {
        let text = format!("running 3 tests\ntest one ... ok\n{GOOD}");
        let (tally, _) = tally_of(&text, false);
        assert!(tally.contains("failed: a test binary died after 1 of its 3 tests"), "{tally}");
        assert!(tally.ends_with("\n3 passed, 1 failed, 2 skipped"), "{tally}");
    }

    #[test]
    fn a_build_that_fails_counts_as_a_failure() {
        let (tally, _) = tally_of("", false);
        assert!(tally.ends_with("\n0 passed, 1 failed, 0 skipped"), "{tally}");
    }
}
