//! The whole test run: checks, then every test, one tally, one closing line.
//!
//! Skipping is never silent: a test that lacks something prints a line `SKIPPED: reason` and is
//! counted apart from those that passed.

#[path = "../../models/tests/ranks/lacking.rs"]
mod lacking;
mod libtest;
mod tally;

use std::path::Path;

use crate::program::{Program, cargo, program};
use crate::test_run::lacking::lacking;
use crate::test_run::libtest::LibtestOutput;
pub(crate) use crate::test_run::tally::Tally;
use crate::web::Page;
use crate::{python, tidy, web};

/// Runs everything; `arguments` may hold one filter, which then goes to the test binaries only.
///
/// The answer is whether nothing failed.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<bool> {
    let mut tally = Tally::default();
    let filter = match arguments {
        [] => None,
        [filter] => Some(filter.as_str()),
        _ => anyhow::bail!("`./x test` takes one filter at most, a part of the tests' names"),
    };
    let page = web::build(root)?;
    if filter.is_none() {
        match &page {
            Page::Lacking(what) => tally.skipped("web", what),
            built => tally.check("web: types and build", *built == Page::Built),
        }
        checks(root, &mut tally)?;
    }
    let interpreter = python::environment(root);
    tests(root, filter, &interpreter, &mut tally)?;
    if filter.is_none() {
        if page == Page::Built {
            web::unit_tests(root, &mut tally)?;
            web::page_tests(root, &mut tally)?;
        }
        over_ranks(root, &mut tally)?;
    }
    println!("\n{tally}");
    Ok(tally.failed() == 0)
}

/// Formatting, lints, tidy, documentation, licences: each counts once.
fn checks(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    tally.check("formatting", cargo(root, &["fmt", "--all", "--check"]).run()?);
    let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    tally.check("lints", cargo(root, &lints).run()?);
    tally.check("tidy", tidy::run(root)?);
    let documents = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    let documents = cargo(root, &documents).env("RUSTDOCFLAGS", "-D warnings");
    tally.check("documentation", documents.run()?);
    fuzz_targets(root, tally)?;
    if program(root, "cargo-deny", &["--version"]).output().is_ok() {
        let deny = ["deny", "--offline", "check", "bans", "licenses", "sources"];
        tally.check("cargo deny", cargo(root, &deny).run()?);
    } else {
        tally.skipped(
            "cargo deny",
            "cargo-deny is not installed; tidy checks licences, duplicates and sources without it",
        );
    }
    Ok(())
}

/// Whether the fuzz targets still compile. They have a lock of their own, with crates that nothing else
/// here needs; the fuzzer's library, of C++, is not compiled.
fn fuzz_targets(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let of_fuzz = ["--manifest-path", "fuzz/Cargo.toml", "--locked"];
    if cargo(root, &[&["fetch"][..], &of_fuzz].concat()).output().is_err() {
        tally.skipped("fuzz targets", "their crates are not here and cannot be fetched");
        return Ok(());
    }
    let check = [&["check", "--offline"][..], &of_fuzz, &["--target-dir", "target"]].concat();
    let check = cargo(root, &check).env("CUSTOM_LIBFUZZER_PATH", "/none/libfuzzer.a");
    tally.check("fuzz targets", check.run()?);
    Ok(())
}

/// Unit, integration, system and documentation tests of every crate.
fn tests(
    root: &Path,
    filter: Option<&str>,
    interpreter: &Result<String, String>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let slow = slow_features(root)?;
    let mut arguments = vec!["test", "--workspace", "--no-fail-fast", "--locked"];
    if !slow.is_empty() {
        arguments.extend(["--features", &slow]);
    }
    arguments.push("--");
    arguments.push("--show-output");
    arguments.extend(filter);
    let mut run = cargo(root, &arguments);
    if let Ok(interpreter) = interpreter {
        run = run.env("MEIKYO_PYTHON", interpreter);
    }
    counted(run, tally)
}

/// The system tests of the command line over MPI ranks, with MPICH, in the target folder where the test
/// `ranks` builds with it.
fn over_ranks(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    if let Some(lacking) = lacking("mpich", "mpich libmpich-dev") {
        tally.skipped("the command line over MPI ranks", &lacking);
        return Ok(());
    }
    let build = ["test", "--package", "meikyo-cli", "--no-fail-fast", "--locked"];
    let rest = ["--features", "mpi", "--target-dir", "target/mpich", "--test", "mpirun"];
    let arguments = [&build[..], &rest, &["--", "--show-output"]].concat();
    counted(cargo(root, &arguments).env("MPICC", "mpicc.mpich"), tally)
}

/// Runs test binaries and counts each of their tests.
fn counted(run: Program, tally: &mut Tally) -> anyhow::Result<()> {
    let mut output = LibtestOutput::default();
    let ended_well = run.lines(|line| {
        if output.take(line, tally) {
            println!("{line}");
        }
    })?;
    output.finish(ended_well, tally);
    Ok(())
}

/// `package/slow` of every package that has slow suites, joined by commas.
fn slow_features(root: &Path) -> anyhow::Result<String> {
    let workspace = tidy::workspace::read(root)?;
    let slow = workspace.members().filter(|package| package.features.contains_key("slow"));
    Ok(slow.map(|package| format!("{}/slow", package.name)).collect::<Vec<_>>().join(","))
}
