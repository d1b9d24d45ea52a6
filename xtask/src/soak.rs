//! `./x soak`: tests that try random things for as long as one likes, each from a printed seed.
//!
//! A suite is an ordinary test whose short form runs with `./x test`. Here it is told how long it is
//! to go on (`MEIKYO_SOAK_SECONDS`), or which seed it is to repeat (`MEIKYO_SOAK_SEED`).

use std::path::Path;

use anyhow::Context as _;

use crate::program::cargo;

/// A suite that can run for long.
struct Suite {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// Which of its tests, where others are in the same program.
    only: &'static str,
}

const SUITES: [Suite; 6] = [
    Suite { name: "damage", package: "meikyo-recording", test: "damage", only: "" },
    Suite { name: "schedules", package: "meikyo-transport", test: "schedules", only: "" },
    Suite { name: "generations", package: "meikyo-checkpoint", test: "schedules", only: "" },
    Suite {
        name: "kills",
        package: "meikyo-checkpoint",
        test: "daemons",
        only: "whatever_is_killed",
    },
    Suite { name: "afar", package: "meikyo-cli", test: "afar", only: "" },
    Suite {
        name: "as-is",
        package: "meikyo-cli",
        test: "system",
        only: "checkpoint_cycles::whatever_is_killed_at_any_moment",
    },
];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    filter: String,
    seconds: u64,
    seed: Option<u64>,
}

/// Runs the suites whose name contains the filter, one after another; whether all went well.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<bool> {
    let wish = wish_of(arguments)?;
    let suites: Vec<_> = SUITES.iter().filter(|suite| suite.name.contains(&wish.filter)).collect();
    anyhow::ensure!(
        !suites.is_empty(),
        "no suite is called `{}`; there are: {}",
        wish.filter,
        SUITES.map(|suite| suite.name).join(", ")
    );
    let mut well = true;
    for suite in suites {
        println!("soak {}: {} s", suite.name, wish.seconds);
        let words = [
            "test",
            "--release",
            "--locked",
            "--package",
            suite.package,
            "--test",
            suite.test,
            "--",
            "--nocapture",
            suite.only,
        ];
        let mut program = cargo(root, &words).env("MEIKYO_SOAK_SECONDS", &wish.seconds.to_string());
        if let Some(seed) = wish.seed {
            program = program.env("MEIKYO_SOAK_SEED", &seed.to_string());
        }
        well &= program.run()?;
    }
    Ok(well)
}

fn wish_of(arguments: &[String]) -> anyhow::Result<Wish> {
    let mut wish = Wish { filter: String::new(), seconds: 600, seed: None };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` lacks its value"));
        match word.as_str() {
            "--for" => wish.seconds = seconds_of(value()?)?,
            "--seed" => {
                let text = value()?;
                let seed = text.parse().with_context(|| format!("`{text}` is no seed"))?;
                wish.seed = Some(seed);
            }
            filter => filter.clone_into(&mut wish.filter),
        }
    }
    Ok(wish)
}

fn seconds_of(text: &str) -> anyhow::Result<u64> {
    let units = [("min", 60), ("h", 3_600), ("s", 1)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        count.checked_mul(*seconds)
    });
    parsed.with_context(|| format!("`{text}` is no time; write for example 60min, 2h or 30s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_a_filter_may_stand_anywhere() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let wish = wish_of(&words("--for 60min damage --seed 7")).unwrap();
        assert_eq!(wish, Wish { filter: "damage".into(), seconds: 3_600, seed: Some(7) });
        for wrong in ["--for 60", "--for", "--seed x"] {
            assert!(wish_of(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
