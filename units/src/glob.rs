//! Patterns for names: `*` stands for any text, `?` for one octet.
//!
//! They are what alert rules, queries, series and filters select by, so that a pattern means the same
//! in a cluster file and on a command line.

/// The octets that make a text a pattern.
const WILDCARDS: [char; 2] = ['*', '?'];

/// Whether a text is a pattern rather than a name that stands for itself.
pub fn is_pattern(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// What every text that matches a pattern begins with: the pattern up to its first wildcard.
pub fn literal_prefix(pattern: &str) -> &str {
    pattern.find(WILDCARDS).map_or(pattern, |end| &pattern[..end])
}

/// Whether the whole of a text matches a pattern: `*` stands for any octets, also none, and `?` for
/// exactly one. There is no escape; a `*` or `?` in a name is matched by itself.
///
/// Two positions are remembered instead of recursing, so that no pattern takes longer than its
/// length times that of the text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p).is_some_and(|&octet| octet == b'?' || octet == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            // The star stands for one octet more.
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&octet| octet == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts_in_bounded_time() {
        for (pattern, text, expected) in [
            ("node*", "node001", true),
            ("node?", "node001", false),
            ("node?", "node1", true),
            ("node?", "node", false),
            ("*", "", true),
            ("", "a", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        let (pattern, text) = ("*a".repeat(2_000), "a".repeat(4_000) + "b");
        assert!(!matches(&pattern, &text));
    }

    #[test]
    fn a_pattern_is_told_from_a_name_and_has_a_literal_beginning() {
        for (text, pattern, prefix) in [
            ("node1", false, "node1"),
            ("sw-*-b?", true, "sw-"),
            ("node?", true, "node"),
            ("*", true, ""),
            ("", false, ""),
        ] {
            assert_eq!((is_pattern(text), literal_prefix(text)), (pattern, prefix), "{text}");
        }
    }

    /// By the definition: a star is nothing, or one octet and a star; a question mark is one octet.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => {
                by_definition(rest, text)
                    || (!text.is_empty() && by_definition(pattern, &text[1..]))
            }
            Some((b'?', rest)) => !text.is_empty() && by_definition(rest, &text[1..]),
            Some((octet, rest)) => text.first() == Some(octet) && by_definition(rest, &text[1..]),
        }
    }

    proptest::proptest! {
        #[test]
        fn patterns_match_as_defined(pattern in "[ab*?]{0,7}", text in "[ab]{0,9}") {
            let defined = by_definition(pattern.as_bytes(), text.as_bytes());
            proptest::prop_assert_eq!(matches(&pattern, &text), defined);
        }
    }
}
