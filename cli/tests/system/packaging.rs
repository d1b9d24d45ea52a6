//! The systemd units, judged by systemd's own tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the unit expects the binary.
const INSTALLED: &str = "/usr/bin/meikyo";

/// The units, and how exposed each may be, in tenths of ten: a service that measures over the network
/// cannot go below about 1; one that sees all processes, with the capabilities for that, gets higher.
const UNITS: [(&str, u32); 2] =
    [("meikyo-measure.service", 20), ("meikyo-profile-agent.service", 32)];

fn unit(name: &str) -> String {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    fs::read_to_string(packaging.join(name)).unwrap()
}

/// The unit with the binary of this build and a user that is there; `None` where there is no
/// `systemd-analyze`.
fn unit_for_systemd_analyze(name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        meikyo_testing::lacking("systemd-analyze is not installed (Debian package systemd)");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let text = unit(name).replace(INSTALLED, env!("CARGO_BIN_EXE_meikyo"));
    fs::write(&path, text).unwrap();
    Some((directory, path))
}

#[test]
fn systemd_understands_every_line_of_the_units() {
    for (name, _) in UNITS {
        let Some((_directory, path)) = unit_for_systemd_analyze(name) else { return };
        let mut verify = Command::new("systemd-analyze");
        let output = verify.args(["verify", "--man=no"]).arg(path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // Other units of the machine are loaded too and may be complained about.
        let about_ours: Vec<_> = said.lines().filter(|line| line.contains("meikyo")).collect();
        assert!(output.status.success() && about_ours.is_empty(), "{name}: {said}");
    }
}

#[test]
fn systemd_rates_the_units_as_hardly_exposed() {
    for (name, threshold) in UNITS {
        let Some((_directory, path)) = unit_for_systemd_analyze(name) else { return };
        let output = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(format!("--threshold={threshold}"))
            .arg(path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn the_program_knows_every_option_of_the_units() {
    for (name, _) in UNITS {
        let unit = unit(name);
        let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some(INSTALLED));
        let verb: Vec<_> = words.clone().take_while(|word| !word.starts_with("--")).collect();
        let mut help = Command::new(env!("CARGO_BIN_EXE_meikyo"));
        let help = help.args(&verb).arg("--help").output().unwrap();
        assert!(help.status.success(), "{verb:?}: {help:?}");
        let help = String::from_utf8(help.stdout).unwrap();
        let options: Vec<_> = words.filter(|word| word.starts_with("--")).collect();
        assert!(options.len() > 2, "{command}");
        for option in options {
            let listed = help.lines().any(|line| line.split([' ', ',']).any(|word| word == option));
            assert!(listed, "`{verb:?}` has no {option}:\n{help}");
        }
    }
}

#[test]
fn the_profiler_has_the_capabilities_that_it_needs_and_no_other() {
    let unit = unit("meikyo-profile-agent.service");
    for setting in ["CapabilityBoundingSet=", "AmbientCapabilities="] {
        let found = unit.lines().find_map(|line| line.strip_prefix(setting));
        assert_eq!(found, Some("CAP_PERFMON CAP_SYSLOG CAP_SYS_PTRACE"), "{setting}");
    }
}
