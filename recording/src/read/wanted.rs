//! Texts that label columns are wanted to have.

use std::collections::BTreeSet;

use meikyo_units::glob::{is_pattern, literal_prefix, matches};

/// Some texts; one with `*` or `?` in it stands for all that match it.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    exact: BTreeSet<String>,
    globs: Vec<String>,
    /// Those of `exact` that are numbers, for labels that are: `level_ms` of a summary.
    numbers: BTreeSet<u64>,
}

impl Wanted {
    pub(super) fn new(texts: &[String]) -> Self {
        let (globs, exact): (Vec<_>, _) = texts.iter().cloned().partition(|text| is_pattern(text));
        let numbers = exact.iter().filter_map(|text| text.parse().ok()).collect();
        Self { exact: exact.into_iter().collect(), globs, numbers }
    }

    /// Whether a number is wanted.
    pub(super) fn has_number(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Whether a wanted number lies between two others; Parquet keeps them as signed ones.
    pub(super) fn may_count_between(&self, least: i64, greatest: i64) -> bool {
        let (least, greatest) = (least.cast_unsigned(), greatest.cast_unsigned());
        least > greatest || self.numbers.range(least..=greatest).next().is_some()
    }

    /// Whether a text is wanted.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.exact.contains(text) || self.globs.iter().any(|glob| matches(glob, text))
    }

    /// Whether a wanted text can lie between two others, compared by octets; a bound that was cut
    /// off at its end is still a bound.
    pub(super) fn may_lie_between(&self, least: &[u8], greatest: &[u8]) -> bool {
        let exact = self.exact.iter().any(|text| {
            let text = text.as_bytes();
            text >= least && text <= greatest
        });
        exact
            || self.globs.iter().any(|glob| {
                let prefix = literal_prefix(glob).as_bytes();
                let head = &least[..prefix.len().min(least.len())];
                prefix <= greatest && head <= prefix
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts_and_rule_out_ranges() {
        let wanted = Wanted::new(&["node1".into(), "sw-*-b?".into()]);
        for (text, expected) in
            [("node1", true), ("node11", false), ("sw-r1-b2", true), ("sw-r1-b", false)]
        {
            assert_eq!(wanted.matches(text), expected, "{text}");
        }
        let between = |least: &str, greatest: &str| {
            wanted.may_lie_between(least.as_bytes(), greatest.as_bytes())
        };
        assert!(between("node0", "node2"));
        assert!(!between("node10", "node2"));
        assert!(between("sw-a", "sw-z"));
        assert!(between("a", "sw-a"));
        assert!(!between("sx", "z"));
        assert!(!between("a", "b"));
    }
}
