//! Patterns in which `*` and `?` stand for any text: how labels are named.

/// Whether a text matches a pattern in which `*` stands for any octets and `?` for one.
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
}
