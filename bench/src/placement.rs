//! Child processes of a bench: where they run, what they used, and that none is left behind.
#![expect(unsafe_code, reason = "scheduling and resource usage are asked of the kernel")]

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};

use meikyo_sockets::{readable, wait};
use meikyo_units::{Bytes, Nanos, WallTime};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Priority of a farm under `SCHED_FIFO`: above the collector's, so that an answer is never late
/// because of the one who asks.
const FIFO_PRIORITY: i32 = 60;

/// Where a process runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Placement {
    /// The only core that it may use; `None` for any.
    pub(crate) core: Option<usize>,
    /// Whether it runs under `SCHED_FIFO`.
    pub(crate) realtime: bool,
}

impl Placement {
    /// Where what stands for other machines runs: on the last core, if there is more than one.
    pub(crate) fn elsewhere(realtime: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { core: (cores > 1).then_some(cores - 1), realtime }
    }
}

/// What a process used in its whole life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// User and system time of all its threads.
    pub(crate) cpu: Nanos,
    /// Greatest resident size.
    pub(crate) peak_rss: Bytes,
}

/// A child that is killed when it is dropped before its end.
#[derive(Debug)]
pub(crate) struct Placed {
    child: Child,
    ended: bool,
}

/// Puts the calling thread where `placement` says; what it starts is put there, too.
pub(crate) fn place_thread(placement: Placement) -> io::Result<()> {
    if let Some(core) = placement.core {
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(None, &cores)?;
    }
    if placement.realtime {
        let parameter = libc::sched_param { sched_priority: FIFO_PRIORITY };
        // SAFETY: `parameter` is live for the call; 0 is this thread.
        check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) })?;
    }
    Ok(())
}

/// Starts a process at its place. It ends with the thread that called this, whatever ends that: a
/// bench that is killed leaves nothing behind.
pub(crate) fn spawn(mut command: Command, placement: Placement) -> io::Result<Placed> {
    let parent = std::process::id();
    let begin = move || {
        place_thread(placement)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Who has ended before that sends no signal any more.
        let orphaned = std::os::unix::process::parent_id() != parent;
        if orphaned { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    };
    // SAFETY: between `fork` and `exec` it makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(begin) };
    Ok(Placed { child: command.spawn()?, ended: false })
}

impl Placed {
    /// The process itself, for waiting and for its streams.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// A line of what the kernel says of its memory (`/proc/PID/status`).
    pub(crate) fn memory(&self, line: &str) -> io::Result<Bytes> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let said = text.lines().find_map(|said| said.strip_prefix(line));
        let kib = said.and_then(|said| said.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| Bytes::new(kib * 1024)).ok_or_else(|| {
            io::Error::other(format!("the kernel does not say `{line}` of a process"))
        })
    }

    /// CPU time of all its threads so far, of those that have ended, too.
    pub(crate) fn cpu(&self) -> io::Result<Nanos> {
        let mut clock = 0;
        // SAFETY: the out-parameter is live for the call.
        let failed =
            unsafe { libc::clock_getcpuclockid(self.pid().as_raw_nonzero().get(), &raw mut clock) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the out-parameter is live for the call.
        check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
        let part = |value: i64| u64::try_from(value).expect("time that was used is not negative");
        Ok(Nanos::from_secs(part(time.tv_sec)) + Nanos::new(part(time.tv_nsec)))
    }

    /// CPU time so far of each of its threads that has not ended, by number and name.
    pub(crate) fn threads(&self) -> io::Result<BTreeMap<(String, String), Nanos>> {
        let mut threads = BTreeMap::new();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let path = thread?.path();
            let said = |file: &str| std::fs::read_to_string(path.join(file));
            // One that has ended since is gone.
            let (Ok(name), Ok(ran)) = (said("comm"), said("schedstat")) else { continue };
            let ran = ran.split_whitespace().next().and_then(|word| word.parse().ok());
            let ran = ran.ok_or_else(|| {
                io::Error::other("the kernel does not say how long a thread has run")
            })?;
            let number = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            threads.insert((number, name.trim().to_owned()), Nanos::new(ran));
        }
        Ok(threads)
    }

    /// Asks it to end (`SIGTERM`).
    pub(crate) fn terminate(&self) -> io::Result<()> {
        // The child is not waited for yet, so that its pid is still its own.
        Ok(kill_process(self.pid(), Signal::TERM)?)
    }

    /// Waits for its end, at most for `patience`, then kills it. The usage is of the whole process.
    pub(crate) fn wait(mut self, patience: Nanos) -> io::Result<(ExitStatus, Usage)> {
        if !self.ends_within(patience)? {
            self.child.kill()?;
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("process {} did not end within {patience}", self.child.id()),
            ));
        }
        let mut status = 0;
        // SAFETY: an all-zero rusage is a valid value of the plain C struct.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both out-parameters are live for the call.
        let waited = unsafe {
            libc::wait4(self.pid().as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage)
        };
        check(waited)?;
        self.ended = true;
        Ok((ExitStatus::from_raw(status), used(&usage)))
    }

    /// Whether the process has ended within `patience`; it is not reaped.
    pub(crate) fn ends_within(&self, patience: Nanos) -> io::Result<bool> {
        // The child is not waited for yet, so that its pid is still its own.
        let child = pidfd_open(self.pid(), PidfdFlags::empty())?;
        Ok(wait(&mut [readable(&child)], Some(patience))? > 0)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if !self.ended && self.child.kill().is_ok() {
            self.child.wait().expect("a child that was killed can be waited for");
        }
    }
}

/// CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> io::Result<Nanos> {
    Ok(usage_of(libc::RUSAGE_THREAD)?.cpu)
}

/// What this process has used so far.
pub(crate) fn own_usage() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_SELF)
}

fn usage_of(who: libc::c_int) -> io::Result<Usage> {
    // SAFETY: an all-zero rusage is a valid value of the plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the out-parameter is live for the call.
    check(unsafe { libc::getrusage(who, &raw mut usage) })?;
    Ok(used(&usage))
}

fn used(usage: &libc::rusage) -> Usage {
    let kib = u64::try_from(usage.ru_maxrss).expect("a size is not negative");
    Usage { cpu: span(usage.ru_utime) + span(usage.ru_stime), peak_rss: Bytes::new(kib * 1024) }
}

/// Waits until the wall clock shows `until`.
pub(crate) fn wait_until(until: WallTime) -> io::Result<()> {
    loop {
        let left = until.since(WallTime::now());
        if left == Nanos::ZERO {
            return Ok(());
        }
        wait(&mut [], Some(left))?;
    }
}

fn span(time: libc::timeval) -> Nanos {
    let part = |value: i64| u64::try_from(value).expect("time that was used is not negative");
    Nanos::from_secs(part(time.tv_sec)) + Nanos::from_micros(part(time.tv_usec))
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_runs_where_it_is_put_and_its_usage_is_its_own() {
        let mut command = Command::new("sh");
        command.args(["-c", "grep -q '^Cpus_allowed_list:[[:space:]]*0$' /proc/self/status"]);
        let placed = spawn(command, Placement { core: Some(0), realtime: false }).unwrap();
        let (status, usage) = placed.wait(Nanos::from_secs(30)).unwrap();
        assert!(status.success());
        assert!(usage.cpu < Nanos::from_secs(30));
        assert!(usage.peak_rss > Bytes::new(100_000));
    }

    #[test]
    fn a_child_that_does_not_end_is_killed_and_reported() {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let placed = spawn(command, Placement::default()).unwrap();
        let error = placed.wait(Nanos::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let start = move || spawn(command, Placement::default()).unwrap();
        let placed = std::thread::spawn(start).join().unwrap();
        let (status, _) = placed.wait(Nanos::from_secs(30)).unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
}
