//! The whole test run: quick checks, every test, checks that compile, one tally, one closing line.
//!
//! Skipping is never silent: a test that cannot run prints a line `SKIPPED: reason` or `LACKING:
//! reason` and is counted apart from those that passed. Where `CI` is set, want of a program is a
//! failure.
//!
//! What costs time is built once: every test program, those of the lab first. There are two lanes, which
//! [`lanes`] describes.

mod binaries;
mod lanes;
mod libtest;

use std::path::Path;
use std::time::Instant;

use meikyo_testing::TALLIED;

use crate::program::{Program, cargo, program};
use crate::tally::Tally;
use crate::test_run::binaries::TestBinary;
use crate::test_run::lanes::Beside;
use crate::test_run::libtest::LibtestOutput;
use crate::web::Page;
use crate::{python, tidy, web};

/// Runs everything; `arguments` may hold one filter, which then goes to the test binaries only.
///
/// The answer is whether nothing failed.
#[expect(clippy::disallowed_methods, reason = "how long the run took is told at its end")]
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<bool> {
    let began = Instant::now();
    let mut tally = Tally::default();
    let filter = match arguments {
        [] => None,
        [filter] => Some(filter.as_str()),
        _ => anyhow::bail!("`./x test` takes one filter at most, a part of the tests' names"),
    };
    let page = web::build(root)?;
    let interpreter = python::environment(root);
    tests(root, filter, &page, &interpreter, &mut tally)?;
    if std::env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        tally.demand_programs();
    }
    println!("\nThe slowest tests, and the counts after {} s:\n{tally}", began.elapsed().as_secs());
    Ok(tally.failed() == 0)
}

/// What takes seconds: formatting, layers, and the page but for the browser.
fn quick_checks(root: &Path, page: &Page, tally: &mut Tally) -> anyhow::Result<()> {
    tally.check("formatting", cargo(root, &["fmt", "--all", "--check"]).run()?);
    tally.check("tidy", tidy::run(root)?);
    match page {
        Page::Lacking(what) => tally.lacking("web", what),
        built => {
            tally.check("web: types and build", *built == Page::Built);
            tally.check("web: formatting and lints", web::lint(root)?);
        }
    }
    if *page == Page::Built { web::unit_tests(root, tally) } else { Ok(()) }
}

/// Lints, documentation, fuzz targets, licences: each counts once. They take minutes of compiling.
fn checks(root: &Path, features: &str, tally: &mut Tally) -> anyhow::Result<()> {
    let all = ["--workspace", "--locked", "--features", features];
    let lints = [&["clippy"][..], &all, &["--all-targets", "--", "-D", "warnings"]].concat();
    tally.check("lints", cargo(root, &lints).run()?);
    let documents = ["doc", "--no-deps", "--document-private-items"];
    // What is needed for tests has a say in the features of other crates only where one of their targets
    // is meant, as an example: else everything would be checked once more, with fewer features.
    let targets = ["--lib", "--bins", "--example", "roles"];
    let documents = cargo(root, &[&documents[..], &all, &targets].concat());
    tally.check("documentation", documents.env("RUSTDOCFLAGS", "-D warnings").run()?);
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
    built: &Page,
    interpreter: &Result<String, String>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let features = slow_features(root)?;
    let mut variables = vec![(TALLIED.to_owned(), "1".to_owned())];
    if let Ok(interpreter) = interpreter {
        variables.push(("MEIKYO_PYTHON".to_owned(), interpreter.clone()));
    }
    let build = |take: &mut dyn FnMut(TestBinary)| {
        // Where it builds tests cargo makes examples without their plain names.
        let examples = ["build", "--workspace", "--locked", "--features", &features];
        Ok(cargo(root, &[&examples[..], &lanes::RUN_IN_LABS].concat()).run()?
            && binaries::build(root, &features, &lanes::LABS, take)?
            && binaries::build(root, &features, &[], take)?)
    };
    let quick = |tally: &mut Tally| {
        if filter.is_none() { quick_checks(root, built, tally) } else { Ok(()) }
    };
    let page = |tally: &mut Tally| {
        if filter.is_none() && *built == Page::Built {
            web::page_tests(root, tally)
        } else {
            Ok(())
        }
    };
    let by_cargo = |tally: &mut Tally| {
        let mut arguments = vec!["test", "--workspace", "--doc", "--no-fail-fast", "--locked"];
        arguments.extend(["--features", &features, "--", "--show-output"]);
        arguments.extend(filter);
        counted("documentation", cargo(root, &arguments), tally)?;
        if filter.is_none() {
            checks(root, &features, tally)?;
        }
        Ok(())
    };
    let run = |binary: &TestBinary| binary.run(filter, &variables);
    let left_with_page = lanes::LEFT_WITH_PAGE;
    let beside = Beside { build, quick, by_cargo, page, left_with_page };
    let could_be_built = lanes::run(run, beside, tally)?;
    if !could_be_built {
        tally.check("the tests can be built", false);
    }
    Ok(())
}

/// Has cargo run tests and counts each of them.
fn counted(name: &str, run: Program, tally: &mut Tally) -> anyhow::Result<()> {
    let mut output = LibtestOutput::of(name);
    let ended_well = run.env(TALLIED, "1").lines(|line| {
        if output.read(line, tally) {
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
