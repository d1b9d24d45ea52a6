//! The word that was probably meant.

use strsim::osa_distance;

/// ` (did you mean ...?)` with the candidate nearest to `word`, or nothing.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default()
}

/// The candidate nearest to `word`, if it is near enough to be a slip of the fingers: at most a
/// third of the letters wrong, swapped, missing or too many (the optimal string alignment distance),
/// where upper and lower case are the same. Of several as near, the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distance is quadratic in the length; nobody mistypes more than this.
    const LENGTH_MAX: usize = 64;
    if word.len() > LENGTH_MAX {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LENGTH_MAX)
        .map(|candidate| (osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            let letters = candidate.chars().count();
            *distance < letters && distance * 3 <= letters.max(3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
