//! Where and when a bench ran: without it a number means nothing.

use std::fmt;
use std::process::Command;

use meikyo_units::{Nanos, WallTime};
use serde::Serialize;

/// The machine, the moment, the program.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    time: String,
    commit: String,
    profile: &'static str,
    load_average_1min: f64,
}

impl Machine {
    /// Looks at this machine now.
    pub(crate) fn observe() -> Self {
        let cpu = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(|| std::env::consts::ARCH.into(), |(_, model)| model.trim().into());
        Self {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            time: WallTime::now().floor(Nanos::SECOND).to_string(),
            commit: commit(),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            load_average_1min: load_average(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, time, commit, profile, load_average_1min } = self;
        writeln!(f, "{cpu}, {cores} cores, Linux {kernel}")?;
        writeln!(f, "{time}, commit {commit}, {profile} build, load average {load_average_1min}")
    }
}

/// The mean number of runnable tasks over the last minute; 0 where the kernel does not say.
pub(crate) fn load_average() -> f64 {
    let text = read("/proc/loadavg");
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// The commit of the directory that this runs in, `unknown` outside of the repository.
fn commit() -> String {
    let described = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = described.ok().filter(|output| output.status.success());
    text.and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".into(), |text| text.trim().into())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
