//! The page: what npm does in `web/`, and how its tests are counted.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::program::{Program, program};
use crate::tally::Tally;

/// Where Debian's Chromium is.
const CHROMIUM: &str = "/usr/bin/chromium";

/// What came of building the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Built,
    /// Its sources are wrong.
    Failed,
    /// What this machine lacks for it.
    Lacking(String),
}

/// Builds the page into `web/dist`, from where the server embeds it.
pub(crate) fn build(root: &Path) -> anyhow::Result<Page> {
    if let Some(what) = lacking(root) {
        return Ok(Page::Lacking(what));
    }
    install(root)?;
    let built = npm(root, &["run", "--silent", "build"]).run()?;
    Ok(if built { Page::Built } else { Page::Failed })
}

/// The same without a word, after [`install`].
pub(crate) fn build_quietly(root: &Path) -> anyhow::Result<()> {
    npm(root, &["run", "--silent", "build"]).output().map(drop)
}

/// Whether the sources of the page are formatted and without findings of its linter; says what is not.
pub(crate) fn lint(root: &Path) -> anyhow::Result<bool> {
    install(root)?;
    npm(root, &["run", "--silent", "lint"]).run()
}

/// Formats the sources of the page; whether its linter found nothing that is left to do by hand.
pub(crate) fn format(root: &Path) -> anyhow::Result<bool> {
    install(root)?;
    npm(root, &["run", "--silent", "fmt"]).run()
}

/// What this machine lacks for building the page.
pub(crate) fn lacking(root: &Path) -> Option<String> {
    let error = program(root, "npm", &["--version"]).output().err()?;
    Some(format!("Node.js 20.19 or newer with npm: {error:#}"))
}

/// Counts the tests of the page's logic.
pub(crate) fn unit_tests(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    vitest(root, "vitest.config.ts", "web-unit.json", None, tally)
}

/// Counts the tests that drive the page of a real server in a real browser.
pub(crate) fn page_tests(root: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    if !Path::new(CHROMIUM).exists() {
        tally.lacking("web: the page in a browser", "Debian's package `chromium` is not installed");
        return Ok(());
    }
    vitest(
        root,
        "vitest.page.config.ts",
        "web-page.json",
        Some(&root.join("target/debug/meikyo")),
        tally,
    )
}

/// Runs one suite and counts each of its tests.
fn vitest(
    root: &Path,
    config: &str,
    report: &str,
    meikyo: Option<&Path>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let report = root.join("target").join(report);
    remove(&report)?;
    let output = format!("--outputFile.json={}", report.display());
    let arguments = [
        "exec",
        "--",
        "vitest",
        "run",
        "--config",
        config,
        "--reporter=default",
        "--reporter=json",
        &output,
    ];
    let mut run = npm(root, &arguments);
    if let Some(meikyo) = meikyo {
        run = run.env("MEIKYO_BIN", &meikyo.to_string_lossy());
    }
    let ended_well = run.run()?;
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    let Ok(report) = serde_json::from_str::<Report>(&text) else {
        tally.check(&format!("web: {config} ran"), false);
        return Ok(());
    };
    let tests = report.files.iter().flat_map(|file| &file.tests);
    let mut failed = 0;
    for test in tests {
        let name = format!("web: {}", test.name);
        match test.status.as_str() {
            "passed" => tally.check(&name, true),
            "failed" => {
                failed += 1;
                tally.check(&name, false);
                tally.said(&name, &test.messages.join("\n"));
            }
            other => tally.skipped(&name, other),
        }
    }
    if !ended_well && failed == 0 {
        // A file that does not even load has no tests to count.
        tally.check(&format!("web: {config} ended well"), false);
    }
    Ok(())
}

/// What vitest reports.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(rename = "testResults")]
    files: Vec<TestFile>,
}

#[derive(Debug, Deserialize)]
struct TestFile {
    #[serde(rename = "assertionResults")]
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    #[serde(rename = "fullName")]
    name: String,
    status: String,
    #[serde(rename = "failureMessages", default)]
    messages: Vec<String>,
}

/// Installs what `web/package-lock.json` pins, where that is not there yet.
pub(crate) fn install(root: &Path) -> anyhow::Result<()> {
    let lock = root.join("web/package-lock.json");
    let wanted = std::fs::read_to_string(&lock)
        .with_context(|| format!("cannot read `{}`", lock.display()))?;
    // Written last, so that an interrupted installation is taken up again.
    let stamp = stamp(root);
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    anyhow::ensure!(npm(root, &install).run()?, "`npm ci` failed");
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write `{}`", stamp.display()))
}

fn stamp(root: &Path) -> PathBuf {
    root.join("web/node_modules/installed-package-lock.json")
}

fn npm(root: &Path, arguments: &[&str]) -> Program {
    program(&root.join("web"), "npm", arguments)
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", file.display()))
        }
        _ => Ok(()),
    }
}
