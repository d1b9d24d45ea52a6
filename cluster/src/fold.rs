//! Folded names: `node[001-225]` stands for 225 names, `10.0.0.[1-3,7]` for four addresses.
//!
//! A text may hold several ranges; they unfold like nested loops, the leftmost outermost. A range is
//! a list of numbers and spans; every number is padded with zeros to the width of its span's first
//! number, so `[08-11]` is 08, 09, 10, 11. Texts are separated by commas outside of brackets. This is
//! the host list notation of Slurm.

use std::fmt::Write as _;

/// Most names that one text may unfold to: an answer to `[1-999999999]` that needs no memory.
pub const UNFOLD_MAX: usize = 100_000;

/// Most digits of a number in a range, so that it fits 64 bits.
const DIGITS_MAX: usize = 18;

/// Why a text cannot be unfolded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfoldError {
    /// A bracket without its partner.
    #[error("`{text}` has a `{bracket}` without its partner; a range is written `node[001-225]`")]
    Bracket {
        /// The text as it was given.
        text: String,
        /// The bracket that has no partner.
        bracket: char,
    },
    /// What stands in brackets is not a list of numbers and spans.
    #[error(
        "`[{range}]` is not a range; allowed are numbers, spans and lists of them, \
         for example `[1-3,7]` or `[001-225]`"
    )]
    Range {
        /// The text between the brackets.
        range: String,
    },
    /// A span that counts down.
    #[error("`[{range}]` counts down; a span goes from the lower to the higher number")]
    Descending {
        /// The text between the brackets.
        range: String,
    },
    /// Nothing between two commas, or no text at all.
    #[error("`{text}` has an empty name")]
    Empty {
        /// The text as it was given.
        text: String,
    },
    /// More names than [`UNFOLD_MAX`].
    #[error("`{text}` unfolds to more than {UNFOLD_MAX} names")]
    TooMany {
        /// The text as it was given.
        text: String,
    },
}

/// A piece of a folded text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Range(&'a str, Vec<Span>),
}

/// The numbers `first..=last`, padded with zeros to `width`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first: u64,
    last: u64,
    width: usize,
}

impl Span {
    /// How many numbers these are: at most 10^18, as many as [`DIGITS_MAX`] digits can tell apart.
    fn len(self) -> u64 {
        self.last - self.first + 1
    }
}

/// How brackets that hold no range are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherBrackets {
    /// They are errors: names.
    Refused,
    /// They stand for themselves: `[::1]:161`, `[fd00::[1-9]]:161`.
    Kept,
}

/// The names that `text` stands for, in order.
///
/// # Errors
/// If brackets do not match, hold no range, a name is empty, or there are more than
/// [`UNFOLD_MAX`] names.
///
/// ```
/// # use meikyo_cluster::unfold;
/// assert_eq!(unfold("node[08-10],head")?, ["node08", "node09", "node10", "head"]);
/// # Ok::<(), meikyo_cluster::UnfoldError>(())
/// ```
pub fn unfold(text: &str) -> Result<Vec<String>, UnfoldError> {
    unfold_with(text, OtherBrackets::Refused)
}

/// Like [`unfold`], where the brackets around an IPv6 address stand for themselves.
pub(crate) fn unfold_addresses(text: &str) -> Result<Vec<String>, UnfoldError> {
    unfold_with(text, OtherBrackets::Kept)
}

fn unfold_with(text: &str, brackets: OtherBrackets) -> Result<Vec<String>, UnfoldError> {
    let mut names = Vec::new();
    for part in split_outside_brackets(text) {
        let part = part.trim();
        if part.is_empty() {
            return Err(UnfoldError::Empty { text: text.into() });
        }
        let pieces = pieces(part, brackets)?;
        let count = pieces.iter().fold(1_u64, |count, piece| match piece {
            Piece::Text(_) => count,
            Piece::Range(_, spans) => count
                .saturating_mul(spans.iter().fold(0, |sum, span| span.len().saturating_add(sum))),
        });
        let fits = usize::try_from(count)
            .is_ok_and(|count| count.saturating_add(names.len()) <= UNFOLD_MAX);
        if !fits {
            return Err(UnfoldError::TooMany { text: text.into() });
        }
        product(&pieces, &mut String::new(), &mut names);
    }
    Ok(names)
}

fn split_outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn pieces(text: &str, brackets: OtherBrackets) -> Result<Vec<Piece<'_>>, UnfoldError> {
    let lonely = |bracket| UnfoldError::Bracket { text: text.into(), bracket };
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', ']']) {
        let after = &rest[at + 1..];
        let end = after.find(['[', ']']).filter(|&end| after.as_bytes()[end] == b']');
        let opens = rest.as_bytes()[at] == b'[';
        let inner = end.filter(|_| opens).map(|end| &after[..end]);
        let range = inner.filter(|inner| {
            brackets == OtherBrackets::Refused || !inner.contains(|c: char| !in_range(c))
        });
        if let Some(inner) = range {
            pieces.push(Piece::Text(&rest[..at]));
            pieces.push(Piece::Range(inner, spans(inner)?));
            rest = &after[inner.len() + 1..];
        } else if brackets == OtherBrackets::Kept {
            pieces.push(Piece::Text(&rest[..=at]));
            rest = after;
        } else {
            return Err(lonely(if opens { '[' } else { ']' }));
        }
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn in_range(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | ',' | ' ')
}

fn spans(range: &str) -> Result<Vec<Span>, UnfoldError> {
    let bad = || UnfoldError::Range { range: range.into() };
    range
        .split(',')
        .map(|item| {
            let item = item.trim();
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let number = |digits: &str| {
                let valid =
                    digits.len() <= DIGITS_MAX && digits.bytes().all(|b| b.is_ascii_digit());
                digits.parse::<u64>().ok().filter(|_| valid).ok_or_else(bad)
            };
            let span = Span { first: number(first)?, last: number(last)?, width: first.len() };
            if span.first > span.last {
                return Err(UnfoldError::Descending { range: range.into() });
            }
            Ok(span)
        })
        .collect()
}

/// Appends every combination; the depth of recursion is the number of pieces of one name.
fn product(pieces: &[Piece<'_>], prefix: &mut String, names: &mut Vec<String>) {
    let length = prefix.len();
    match pieces.split_first() {
        None => names.push(prefix.clone()),
        Some((Piece::Text(text), rest)) => {
            prefix.push_str(text);
            product(rest, prefix, names);
        }
        Some((Piece::Range(_, spans), rest)) => {
            for span in spans {
                for number in span.first..=span.last {
                    write!(prefix, "{number:0width$}", width = span.width)
                        .expect("writing to a string cannot fail");
                    product(rest, prefix, names);
                    prefix.truncate(length);
                }
            }
        }
    }
    prefix.truncate(length);
}

/// The shortest text of this notation that is found for `names`, in their order: what [`unfold`]
/// undoes, for names without brackets, commas and blanks.
///
/// Neighbours that differ in one number are joined, then joined ranges that differ in one number to
/// their left, until nothing more joins. Time is linear in the length of all names for each level.
pub fn fold(names: &[String]) -> String {
    let mut texts = names.to_vec();
    loop {
        let joined = join_neighbours(&texts);
        if joined.len() == texts.len() {
            return joined.join(",");
        }
        texts = joined;
    }
}

fn join_neighbours(texts: &[String]) -> Vec<String> {
    let mut joined = Vec::new();
    let mut at = 0;
    while at < texts.len() {
        let Some((start, width)) = texts.get(at + 1).and_then(|next| difference(&texts[at], next))
        else {
            joined.push(texts[at].clone());
            at += 1;
            continue;
        };
        let (prefix, suffix) = (&texts[at][..start], &texts[at][start + width..]);
        let mut numbers = Vec::new();
        while let Some(number) = texts.get(at).and_then(|text| number_between(text, prefix, suffix))
        {
            numbers.push(number);
            at += 1;
        }
        joined.push(format!("{prefix}[{}]{suffix}", ranges(&numbers)));
    }
    joined
}

/// Where the only number in which the texts differ starts in `a`, and how long it is there. Numbers
/// right of a bracket are left alone: joining there would change the order.
fn difference(a: &str, b: &str) -> Option<(usize, usize)> {
    let limit = a.find('[').unwrap_or(a.len());
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let digits_before = a.as_bytes()[..common.min(limit)]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let start = common.min(limit) - digits_before;
    if !a.is_char_boundary(start) {
        return None;
    }
    let width = a[start..limit].bytes().take_while(u8::is_ascii_digit).count();
    let number = number_between(b, &a[..start], &a[start + width..]);
    (width > 0 && width <= DIGITS_MAX && number.is_some()).then_some((start, width))
}

fn number_between<'a>(text: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    let number = text.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let valid = (1..=DIGITS_MAX).contains(&number.len());
    (valid && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// The list `1-3,7` of the numbers, in their order.
fn ranges(numbers: &[&str]) -> String {
    let mut list = String::new();
    let mut at = 0;
    while at < numbers.len() {
        let first = numbers[at];
        let value: u64 = first.parse().expect("at most 18 digits fit into 64 bits");
        let follows = |(offset, text): (u64, &&str)| {
            format!("{:0width$}", value + offset, width = first.len()) == **text
        };
        let run = (0..).zip(&numbers[at..]).take_while(|&pair| follows(pair)).count();
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(first);
        if run > 1 {
            list.push('-');
            list.push_str(numbers[at + run - 1]);
        }
        at += run.max(1);
    }
    list
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ranges_unfold_like_nested_loops_with_padding_kept() {
        for (text, names) in [
            ("head", vec!["head"]),
            ("node[08-11]", vec!["node08", "node09", "node10", "node11"]),
            ("10.0.0.[1-3,7]", vec!["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.7"]),
            ("r[1-2]n[1-2]", vec!["r1n1", "r1n2", "r2n1", "r2n2"]),
            ("a[1,03], b", vec!["a1", "a03", "b"]),
            ("n[9-10]-ib", vec!["n9-ib", "n10-ib"]),
        ] {
            assert_eq!(unfold(text), Ok(strings(&names)), "{text}");
        }
        let names = unfold("node[001-225]").unwrap();
        assert_eq!((names.len(), &*names[0], &*names[224]), (225, "node001", "node225"));
    }

    #[test]
    fn brackets_of_ipv6_stand_for_themselves_in_addresses() {
        for (text, names) in [
            ("[::1]:161", vec!["[::1]:161"]),
            ("[fd00::[1-2]]:161", vec!["[fd00::1]:161", "[fd00::2]:161"]),
            ("fd00:[1-2]::1", vec!["fd00:1::1", "fd00:2::1"]),
            ("127.0.0.1:[1611-1612]", vec!["127.0.0.1:1611", "127.0.0.1:1612"]),
        ] {
            assert_eq!(unfold_addresses(text), Ok(strings(&names)), "{text}");
        }
    }

    #[test]
    fn bad_ranges_say_what_is_allowed() {
        let message = |text: &str| unfold(text).unwrap_err().to_string();
        insta::assert_snapshot!(message("node[001-225"), @"`node[001-225` has a `[` without its partner; a range is written `node[001-225]`");
        insta::assert_snapshot!(message("node1]"), @"`node1]` has a `]` without its partner; a range is written `node[001-225]`");
        insta::assert_snapshot!(message("node[a-b]"), @"`[a-b]` is not a range; allowed are numbers, spans and lists of them, for example `[1-3,7]` or `[001-225]`");
        insta::assert_snapshot!(message("node[9-1]"), @"`[9-1]` counts down; a span goes from the lower to the higher number");
        insta::assert_snapshot!(message("a,,b"), @"`a,,b` has an empty name");
        insta::assert_snapshot!(message("n[1-999999999999999999]"), @"`n[1-999999999999999999]` unfolds to more than 100000 names");
        insta::assert_snapshot!(message("n[1-90000]x[1-90000]"), @"`n[1-90000]x[1-90000]` unfolds to more than 100000 names");
    }

    #[test]
    fn neighbours_fold_to_what_a_person_would_write() {
        for text in [
            "node[001-225]",
            "r[1-2]n[01-32]",
            "node[1-3,7],head",
            "10.0.[0-3].[1-250]",
            "a[9-11]b,sw-r[01-04]",
            "node1",
        ] {
            assert_eq!(fold(&unfold(text).unwrap()), text);
        }
        assert_eq!(fold(&[]), "");
    }

    fn name() -> impl Strategy<Value = String> {
        "[a-c]?[0-2]{0,3}[.-]?[0-1]{0,2}[a]?".prop_filter("not empty", |name| !name.is_empty())
    }

    proptest! {
        #[test]
        fn folded_names_unfold_to_themselves(names in prop::collection::vec(name(), 1..40)) {
            prop_assert_eq!(unfold(&fold(&names)), Ok(names));
        }

        #[test]
        fn no_text_makes_unfolding_panic(text in "[a0-9\\[\\],\\- :é]{0,30}") {
            prop_assert!(unfold(&text).is_err() || unfold_addresses(&text).is_ok());
        }

        #[test]
        fn no_names_make_folding_panic(names in prop::collection::vec("[a0-9\\[\\],é]{0,9}", 0..6)) {
            prop_assert_eq!(fold(&names).is_empty(), names.iter().all(String::is_empty) && names.len() < 2);
        }
    }
}
