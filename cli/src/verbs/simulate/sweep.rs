//! The values that keys of a scenario take one after the other.

use std::str::FromStr;

use meikyo_console::failure::Failure;

/// Runs of a study at most.
pub(super) const RUNS_MAX: usize = 100_000;

/// A key and the values that it takes one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sweep {
    pub(super) key: String,
    values: Vec<String>,
}

impl FromStr for Sweep {
    type Err = String;

    /// `servers=1,2,4`, `clients=11..88:11` (the last included), and both mixed.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| format!("`{text}` has no values; write `clients=11..88:11`"))?;
        let mut all = Vec::new();
        for part in values.split(',') {
            match part.split_once("..") {
                Some((first, rest)) => all.extend(range(part, first, rest)?),
                None if part.trim().is_empty() => {
                    return Err(format!("`{text}` has an empty value"));
                }
                None => all.push(part.trim().to_owned()),
            }
        }
        Ok(Self { key: key.trim().to_owned(), values: all })
    }
}

fn range(part: &str, first: &str, rest: &str) -> Result<Vec<String>, String> {
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let parse = |number: &str| -> Result<u64, String> {
        number.trim().parse().map_err(|_| format!("`{part}` is not FIRST..LAST:STEP"))
    };
    let (first, last, step) = (parse(first)?, parse(last)?, parse(step)?);
    if step == 0 || last < first || (last - first) / step >= RUNS_MAX as u64 {
        return Err(format!("`{part}` is empty or has more than {RUNS_MAX} values"));
    }
    Ok((0..=(last - first) / step).map(|n| (first + n * step).to_string()).collect())
}

/// Every combination of the values of `sweeps`, the last key changing fastest; one without any key.
///
/// # Errors
/// If a key is swept twice, or there are too many combinations.
pub(super) fn points(sweeps: &[Sweep]) -> Result<Vec<Vec<String>>, Failure> {
    for (place, sweep) in sweeps.iter().enumerate() {
        if sweeps[..place].iter().any(|other| other.key == sweep.key) {
            return Err(Failure::new(format!("the key `{}` is swept twice", sweep.key))
                .hint("name all its values at once: --sweep servers=1,2,4"));
        }
    }
    let count = sweeps.iter().map(|sweep| sweep.values.len()).product::<usize>();
    if count > RUNS_MAX {
        return Err(Failure::new(format!("{count} runs are more than {RUNS_MAX}")));
    }
    Ok(sweeps.iter().fold(vec![Vec::new()], |points, sweep| {
        let longer = |point: &Vec<String>, value: &String| {
            point.iter().chain([value]).cloned().collect::<Vec<_>>()
        };
        let longer = &longer;
        points
            .iter()
            .flat_map(|point| sweep.values.iter().map(move |value| longer(point, value)))
            .collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_and_ranges_with_their_last() {
        let values = |text: &str| text.parse::<Sweep>().unwrap().values.join(" ");
        assert_eq!(values("clients=11..88:11"), "11 22 33 44 55 66 77 88");
        assert_eq!(values("servers=1,2,4..6"), "1 2 4 5 6");
        assert_eq!(values("net_startup=10us,32us"), "10us 32us");
    }

    #[test]
    fn wrong_sweeps_say_what_to_write() {
        let message = |text: &str| text.parse::<Sweep>().unwrap_err();
        assert_eq!(message("clients"), "`clients` has no values; write `clients=11..88:11`");
        assert_eq!(message("clients=9..1"), "`9..1` is empty or has more than 100000 values");
        assert_eq!(message("clients=1..x"), "`1..x` is not FIRST..LAST:STEP");
        assert_eq!(message("clients=1,,2"), "`clients=1,,2` has an empty value");
    }
}
