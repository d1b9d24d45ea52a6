//! The test programs of the workspace: built once, run where and when the lanes want.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::program::{Program, cargo, program};
use crate::tally::Tally;
use crate::test_run::libtest::LibtestOutput;

/// One program of tests: a crate's own, or one of its directory `tests`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestBinary {
    /// The package's name, as `meikyo-snmp`.
    pub(crate) package: String,
    /// The target's name, as `it` or `meikyo_snmp`.
    pub(crate) target: String,
    /// Where the package lies; tests run there, as `cargo test` runs them.
    directory: PathBuf,
    executable: PathBuf,
}

/// Builds the test programs that `targets` chooses, all of the workspace if nothing is chosen, and hands
/// each to `take` as soon as cargo has made it. Whether all could be built; cargo has said why not.
///
/// # Errors
/// If cargo cannot be run.
pub(crate) fn build(
    root: &Path,
    features: &str,
    targets: &[&str],
    take: &mut dyn FnMut(TestBinary),
) -> anyhow::Result<bool> {
    let mut arguments = vec!["test", "--workspace", "--locked", "--no-run"];
    arguments.push("--message-format=json-render-diagnostics");
    if !features.is_empty() {
        arguments.extend(["--features", features]);
    }
    arguments.extend(targets);
    cargo(root, &arguments).lines(|line| {
        if let Some(binary) = binary(line) {
            take(binary);
        }
    })
}

/// Repeats what was skipped, for who runs `cargo test` alone: here that is counted.
const REPEATS_SKIPS: &str = "what_was_skipped";

/// What cargo says when it has made something.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// The test program that a message of cargo speaks of, if it does.
fn binary(message: &str) -> Option<TestBinary> {
    // Other messages have other fields.
    let artifact: Artifact = serde_json::from_str(message).ok()?;
    if !artifact.profile.test || artifact.target.name == REPEATS_SKIPS {
        return None;
    }
    let executable = artifact.executable?;
    let directory = artifact.manifest_path.parent()?.to_owned();
    let package = match directory.file_name()?.to_str()? {
        "xtask" => "xtask".to_owned(),
        bare => format!("meikyo-{bare}"),
    };
    Some(TestBinary { package, target: artifact.target.name, directory, executable })
}

impl TestBinary {
    /// A program that does not exist.
    #[cfg(test)]
    pub(crate) fn named(package: &str, target: &str) -> Self {
        let (package, target) = (package.to_owned(), target.to_owned());
        Self { package, target, directory: PathBuf::new(), executable: PathBuf::new() }
    }

    /// The name under which a person sees it.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// Runs the tests whose names hold `filter`, prints what failed, and counts each.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub(crate) fn run(
        &self,
        filter: Option<&str>,
        variables: &[(String, String)],
    ) -> anyhow::Result<Tally> {
        let mut arguments = vec!["--show-output", "-Z", "unstable-options", "--report-time"];
        arguments.extend(filter);
        let executable = self.executable.to_str().context("its path is no text")?;
        let mut run = self.prepared(program(&self.directory, executable, &arguments));
        for (name, value) in variables {
            run = run.env(name, value);
        }
        let mut tally = Tally::default();
        let mut output = LibtestOutput::of(&self.name());
        let mut shown = String::new();
        let ended_well = run.quiet_lines(|line| {
            if !output.read(line, &mut tally) {
                return;
            }
            // Another lane prints as well: results line by line, what failed in one piece.
            if line.starts_with("test ") {
                println!("{line}");
            } else {
                shown.push_str(line);
                shown.push('\n');
            }
        })?;
        output.finish(ended_well, &mut tally);
        print!("{shown}");
        Ok(tally)
    }

    /// The environment that `cargo test` gives. Times of single tests are told by libtest only to who
    /// says that he knows that their form may change.
    fn prepared(&self, run: Program) -> Program {
        run.env("CARGO_MANIFEST_DIR", &self.directory.to_string_lossy()).env("RUSTC_BOOTSTRAP", "1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_of_tests_are_taken() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///m/snmp#meikyo-snmp@0.1.0",
                "manifest_path":"/m/snmp/Cargo.toml","target":{{"kind":["test"],"name":"it"}},
                "profile":{{"opt_level":"1","test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = binary(&message(true, r#""/m/target/it-1""#)).expect("a program of tests");
        assert_eq!(found.name(), "meikyo-snmp it");
        assert_eq!(found.directory, Path::new("/m/snmp"));
        assert_eq!(binary(&message(false, r#""/m/target/example""#)), None);
        assert_eq!(binary(&message(true, "null")), None);
        assert_eq!(binary(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
