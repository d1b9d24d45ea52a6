//! What passed, failed and was skipped, what took longest, and the closing line.

use std::fmt;
use std::time::Duration;

/// How many of the slowest tests are named at the end.
const SLOWEST: usize = 10;

/// What a test that failed said is shown once more at the end, as far as this.
const LINES_OF_A_FAILURE: usize = 8;
const LETTERS_OF_A_LINE: usize = 400;

/// The count of everything that was run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: Vec<String>,
    /// What tests that failed said of it, by name.
    said: Vec<(String, String)>,
    skipped: Vec<Skip>,
    /// How long tests took whose program tells it.
    took: Vec<(Duration, String)>,
}

/// A test or check that did not run.
#[derive(Debug)]
struct Skip {
    name: String,
    reason: String,
    /// Whether a program or library that can be installed is missing, and not a right or an ability of
    /// the kernel.
    lacking: bool,
}

impl Tally {
    /// Counts one check or test as passed or failed.
    pub(crate) fn check(&mut self, name: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed.push(name.into());
        }
    }

    /// Notes what a test that failed said of it; the end of a long output may be all that somebody sees.
    pub(crate) fn said(&mut self, name: &str, text: &str) {
        self.said.push((name.into(), text.into()));
    }

    /// Counts one check or test as skipped, since this machine cannot run it.
    pub(crate) fn skipped(&mut self, name: &str, reason: &str) {
        self.skipped.push(Skip { name: name.into(), reason: reason.into(), lacking: false });
    }

    /// Counts one check or test as skipped for want of a program that can be installed.
    pub(crate) fn lacking(&mut self, name: &str, reason: &str) {
        self.skipped.push(Skip { name: name.into(), reason: reason.into(), lacking: true });
    }

    /// Notes how long a test took.
    pub(crate) fn took(&mut self, name: &str, time: Duration) {
        self.took.push((time, name.into()));
    }

    /// Takes over what another one counted.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.said.extend(other.said);
        self.skipped.extend(other.skipped);
        self.took.extend(other.took);
    }

    /// Makes failures of what was skipped for want of a program: where everything can be installed, a
    /// missing program is a mistake of the set-up.
    pub(crate) fn demand_programs(&mut self) {
        let (lacking, skipped) = self.skipped.drain(..).partition(|skip| skip.lacking);
        self.skipped = skipped;
        let failed = |skip: Skip| format!("{}: {}", skip.name, skip.reason);
        self.failed.extend(<Vec<Skip>>::into_iter(lacking).map(failed));
    }

    /// The number that failed.
    pub(crate) fn failed(&self) -> usize {
        self.failed.len()
    }

    /// `N passed, N failed, N skipped`.
    pub(crate) fn counts(&self) -> String {
        let (passed, failed, skipped) = (self.passed, self.failed.len(), self.skipped.len());
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    /// The slowest tests, the slowest first.
    fn slowest(&self) -> Vec<&(Duration, String)> {
        let mut took: Vec<_> = self.took.iter().collect();
        took.sort_by(|left, right| right.cmp(left));
        took.truncate(SLOWEST);
        took
    }
}

impl fmt::Display for Tally {
    /// The slowest tests, every failure with what it said, every skip by name, then the counts on a line alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (time, name) in self.slowest() {
            writeln!(f, "{:>7.1} s  {name}", time.as_secs_f64())?;
        }
        for name in &self.failed {
            writeln!(f, "failed: {name}")?;
            let said = self.said.iter().filter(|(of, _)| of == name);
            for line in said.flat_map(|(_, text)| text.lines()).take(LINES_OF_A_FAILURE) {
                let cut: String = line.chars().take(LETTERS_OF_A_LINE).collect();
                writeln!(f, "    {cut}")?;
            }
        }
        for Skip { name, reason, .. } in &self.skipped {
            writeln!(f, "skipped: {name}: {reason}")?;
        }
        f.write_str(&self.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_stand_first_and_no_more_than_ten() {
        let mut tally = Tally::default();
        for second in [3, 12, 1, 11, 2, 10, 4, 9, 5, 8, 6, 7] {
            tally.took(&format!("test {second}"), Duration::from_secs(second));
        }
        let text = tally.to_string();
        let names: Vec<_> = text.lines().filter_map(|line| line.split(" s  ").nth(1)).collect();
        let due: Vec<_> = (3..=12).rev().map(|second| format!("test {second}")).collect();
        assert_eq!(names, due);
    }

    #[test]
    fn a_failure_says_at_the_end_how_it_failed_and_not_all_that_it_said() {
        let mut tally = Tally::default();
        tally.check("one", false);
        tally.check("two", false);
        tally.said("two", &format!("left: 1\n{}\n{}", "x".repeat(1_000), "more\n".repeat(20)));
        let text = tally.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..3], ["failed: one", "failed: two", "    left: 1"]);
        assert_eq!(lines[3].len(), 404);
        assert_eq!(lines.len(), 2 + 8 + 1);
    }

    #[test]
    fn a_missing_program_fails_where_programs_are_demanded_and_a_missing_right_does_not() {
        let mut tally = Tally::default();
        tally.skipped("one", "no mount namespace");
        tally.lacking("two", "no snmpd here");
        assert_eq!((tally.failed(), tally.counts().as_str()), (0, "0 passed, 0 failed, 2 skipped"));
        tally.demand_programs();
        assert_eq!(
            tally.to_string(),
            "failed: two: no snmpd here\nskipped: one: no mount namespace\n\
             0 passed, 1 failed, 1 skipped"
        );
    }
}
