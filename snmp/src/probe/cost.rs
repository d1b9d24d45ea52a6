//! What polling costs an agent.

use std::fs;
use std::io;
use std::io::ErrorKind;
use std::path::PathBuf;

use meikyo_units::{Nanos, WallTime};
use thiserror::Error;

use super::watch::Watch;
use super::{ProbeError, ProbeOptions};
use crate::client::Client;

/// What polling a device at its interval costs its agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// How often the device would be polled.
    pub interval: Nanos,
    /// Requests in each of these intervals.
    pub requests: usize,
    /// What the agent's process really used; `None` if it is not on this host, or was not named.
    pub measured: Option<CpuTime>,
    /// The median round trips of an interval's requests as a share of the interval: the agent
    /// cannot have used more of a core than it took to answer, network included.
    pub share_max: f64,
}

/// CPU time that a process used while it was polled at the device's interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// CPU time.
    pub used: Nanos,
    /// While this time went by.
    pub elapsed: Nanos,
    /// Polls in that time.
    pub polls: u64,
    /// Share of one core.
    pub share: f64,
}

/// Why the CPU time of a process cannot be read.
#[derive(Debug, Error)]
pub enum ReadCpuError {
    /// There is no such process, or no such file.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// File below `/proc` that could not be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not as documented in proc(5).
    #[error("`{}` holds no CPU time", path.display())]
    Form {
        /// File below `/proc` that was not understood.
        path: PathBuf,
    },
}

/// Polls at the device's interval while the agent's CPU time is read, if its process is known.
pub(super) fn measure(
    client: &mut Client,
    watch: &mut Watch,
    interval: Nanos,
    options: &ProbeOptions,
) -> Result<Cost, ProbeError> {
    let requests = watch.requests();
    let busy = watch.latency().median.as_secs_f64() * requests_f64(requests);
    let share_max = (busy / interval.as_secs_f64()).min(1.0);
    let measured = match options.agent_pid {
        None => None,
        Some(pid) => {
            let before = cpu_time(pid).map_err(ProbeError::Cpu)?;
            let start = WallTime::now();
            watch.run(client, interval, options.watch)?;
            let elapsed = WallTime::now().since(start);
            let used = cpu_time(pid).map_err(ProbeError::Cpu)?.saturating_sub(before);
            Some(CpuTime {
                used,
                elapsed,
                polls: elapsed.get().div_ceil(interval.get().max(1)),
                share: used.as_secs_f64() / elapsed.as_secs_f64(),
            })
        }
    };
    Ok(Cost { interval, requests, measured, share_max })
}

fn requests_f64(requests: usize) -> f64 {
    u32::try_from(requests).map_or(f64::INFINITY, f64::from)
}

/// CPU time that all threads of a process have used, in ns (proc(5), `schedstat`: `stat` counts in
/// steps of 10 ms, which is more than an agent uses in a second).
fn cpu_time(pid: u32) -> Result<Nanos, ReadCpuError> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path);
        text.map_err(|source| ReadCpuError::Read { path, source })
    };
    let list = |source| ReadCpuError::Read { path: tasks.clone(), source };
    let mut total = Nanos::ZERO;
    for task in fs::read_dir(&tasks).map_err(list)? {
        let path = task.map_err(list)?.path().join("schedstat");
        let text = match read(path.clone()) {
            // The thread has ended since it was listed.
            Err(ReadCpuError::Read { source, .. })
                if source.kind() == ErrorKind::NotFound
                    || source.raw_os_error() == Some(libc::ESRCH) =>
            {
                continue;
            }
            text => text?,
        };
        let used = text.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
        total += Nanos::new(used.ok_or(ReadCpuError::Form { path })?);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_grows_with_its_work() {
        let own = std::process::id();
        let before = cpu_time(own).unwrap();
        let deadline = WallTime::now() + Nanos::from_secs(10);
        while cpu_time(own).unwrap() < before + Nanos::from_millis(20) {
            assert!(WallTime::now() < deadline, "no CPU time was counted");
        }
    }

    #[test]
    fn a_process_that_is_gone_is_named() {
        let error = cpu_time(u32::MAX).unwrap_err();
        assert_eq!(error.to_string(), "cannot read `/proc/4294967295/task`");
    }
}
