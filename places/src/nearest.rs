//! The word that was probably meant.

/// ` (did you mean ...?)` with the candidate nearest to `word`, or nothing.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default()
}

/// The candidate nearest to `word`, if it is near enough to be a slip of the fingers: at most a
/// third of the letters wrong, swapped, missing or too many.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distance is quadratic in the length; nobody mistypes more than this.
    const LENGTH_MAX: usize = 64;
    if word.len() > LENGTH_MAX {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LENGTH_MAX)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            let letters = candidate.chars().count();
            *distance < letters && distance * 3 <= letters.max(3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance: insertions, deletions, substitutions, and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            least = least.min(rows[i - 1][j - 1] + changed);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let keys = ["interval", "timeout", "port", "version"];
        for (word, meant) in [
            ("intervall", Some("interval")),
            ("itnerval", Some("interval")),
            ("prot", Some("port")),
            ("Port", Some("port")),
            ("community", None),
            ("p", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
        assert_eq!(nearest("2", ["1", "2c", "3"]), Some("2c"));
    }
}
