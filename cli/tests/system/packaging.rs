//! The systemd unit of the collector, judged by systemd's own tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the unit expects the binary.
const INSTALLED: &str = "/usr/bin/meikyo";

fn unit() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/meikyo-measure.service");
    fs::read_to_string(path).unwrap()
}

/// The unit with the binary of this build and a user that is there; `None` where there is no
/// `systemd-analyze`.
fn unit_for_systemd_analyze() -> Option<(tempfile::TempDir, PathBuf)> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        meikyo_testing::lacking("systemd-analyze is not installed (Debian package systemd)");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("meikyo-measure.service");
    let text = unit().replace(INSTALLED, env!("CARGO_BIN_EXE_meikyo"));
    fs::write(&path, text).unwrap();
    Some((directory, path))
}

#[test]
fn systemd_understands_every_line_of_the_unit() {
    let Some((_directory, path)) = unit_for_systemd_analyze() else { return };
    let output =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Other units of the machine are loaded too and may be complained about.
    let about_ours: Vec<_> = said.lines().filter(|line| line.contains("meikyo")).collect();
    assert!(output.status.success() && about_ours.is_empty(), "{said}");
}

#[test]
fn systemd_rates_the_unit_as_hardly_exposed() {
    let Some((_directory, path)) = unit_for_systemd_analyze() else { return };
    // 2.0 of 10; a service that measures over the network cannot go below about 1.
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold=20"])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_program_knows_every_option_of_the_unit() {
    let unit = unit();
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some(INSTALLED));
    let verb = words.next().unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_meikyo")).args([verb, "--help"]).output().unwrap();
    assert!(help.status.success(), "{verb}: {help:?}");
    let help = String::from_utf8(help.stdout).unwrap();
    let options: Vec<_> = words.filter(|word| word.starts_with("--")).collect();
    assert!(options.len() > 2, "{command}");
    for option in options {
        let listed = help.lines().any(|line| line.split([' ', ',']).any(|word| word == option));
        assert!(listed, "`{verb}` has no {option}:\n{help}");
    }
}
