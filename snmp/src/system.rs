//! What the collector asks of the kernel beside datagrams: waiting, waking, priority, clocks.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};

use meikyo_units::Nanos;
use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Priority under `SCHED_FIFO`: above ordinary work, below the kernel's own threads (50 is the
/// priority of threaded interrupts).
const PRIORITY: libc::c_int = 40;

/// Why the collector could not get real-time priority.
#[derive(Debug, thiserror::Error)]
pub enum RealtimeError {
    /// `sched_setscheduler` was refused.
    #[error("real-time priority is not permitted (SCHED_FIFO, priority {PRIORITY})")]
    Priority(#[source] io::Error),
    /// `mlockall` was refused.
    #[error("locking memory is not permitted")]
    Memory(#[source] io::Error),
}

impl RealtimeError {
    /// What can be done about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Priority(_) => {
                "run as root, or `setcap cap_sys_nice,cap_ipc_lock+ep` on the binary, or set \
                 LimitRTPRIO=40 in its systemd unit"
            }
            Self::Memory(_) => {
                "run as root, or `setcap cap_sys_nice,cap_ipc_lock+ep` on the binary, or set \
                 LimitMEMLOCK=infinity in its systemd unit"
            }
        }
    }
}

/// Locks the process's present memory: its program, its libraries, what it has allocated so far.
///
/// It is for the beginning, before a recording's threads have memory of their own: what is locked is
/// never given back, and a compaction needs tens of MB for a moment. What the hot path allocates later
/// is touched ten times a second, which keeps it in memory.
///
/// # Errors
/// [`RealtimeError::Memory`] when the system does not permit it.
pub fn lock_memory() -> Result<(), RealtimeError> {
    mlockall(MlockAllFlags::CURRENT).map_err(|error| RealtimeError::Memory(error.into()))
}

/// Gives the calling thread `SCHED_FIFO` priority.
///
/// Threads that it starts later are ordinary ones (`SCHED_RESET_ON_FORK`).
///
/// # Errors
/// [`RealtimeError::Priority`] when the system does not permit it.
pub(crate) fn become_realtime() -> Result<(), RealtimeError> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the parameters outlive the call.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } != 0 {
        return Err(RealtimeError::Priority(io::Error::last_os_error()));
    }
    Ok(())
}

/// Keeps idle processors from sleeping, as long as the file is open (`cpu_dma_latency`).
///
/// A processor that has to be woken adds its own time to every start and to every answer.
///
/// # Errors
/// When the system has no such device, or does not let this user write to it.
pub(crate) fn keep_processors_awake() -> io::Result<File> {
    const LATENCY_US: i32 = 0;
    let mut device = File::options().write(true).open("/dev/cpu_dma_latency")?;
    device.write_all(&LATENCY_US.to_ne_bytes())?;
    Ok(device)
}

/// Lets timers of the calling thread expire when they are due, not up to 50 µs later.
pub(crate) fn sharpen_timers() {
    set_current_timer_slack(NonZeroU64::new(1)).expect("1 ns is a slack that every kernel takes");
}

/// Lets one thread wake another that waits for datagrams.
#[derive(Debug)]
pub struct Waker(File);

impl Waker {
    /// A waker that nobody has used yet.
    ///
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?.into()))
    }

    /// Wakes the waiting thread, now or at its next wait.
    pub fn wake(&self) {
        // The only failure is a counter at its end, and then the other side is awake.
        if (&self.0).write_all(&1_u64.to_ne_bytes()).is_err() {
            tracing::trace!("the waker's counter is full");
        }
    }

    /// Forgets wake-ups that have been seen.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        if (&self.0).read_exact(&mut count).is_err() {
            tracing::trace!("nobody has used the waker");
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The monotonic clock (`CLOCK_MONOTONIC`): time since boot, never set.
#[inline]
pub(crate) fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).expect("time since boot is not negative");
    Nanos::from_secs(part(time.tv_sec)) + Nanos::new(part(time.tv_nsec))
}

/// How far the kernel believes its real-time clock to be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockOffset {
    /// Estimated offset in ns.
    pub(crate) offset_ns: i64,
    /// Estimated error; `None` when no time service disciplines the clock.
    pub(crate) error: Option<Nanos>,
}

/// Reads the kernel's clock discipline (`adjtimex`).
pub(crate) fn clock_offset() -> ClockOffset {
    // SAFETY: timex is plain data; all zero bits are valid, and mean: change nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is live and of the kernel's layout.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    let unit = if timex.status & libc::STA_NANO == 0 { 1_000 } else { 1 };
    let synchronised = state >= 0 && state != libc::TIME_ERROR;
    let error = u64::try_from(timex.esterror).expect("an estimate of an error is not negative");
    ClockOffset {
        offset_ns: timex.offset.saturating_mul(unit),
        error: synchronised.then(|| Nanos::from_micros(error)),
    }
}

#[cfg(test)]
mod tests {
    use meikyo_sockets::{readable, wait};

    use super::*;

    #[test]
    fn a_waker_ends_a_wait_once() {
        let waker = Waker::new().unwrap();
        let wait = |span| wait(&mut [readable(&waker)], span).unwrap();
        assert_eq!(wait(Some(Nanos::from_millis(1))), 0);
        waker.wake();
        waker.wake();
        assert_eq!(wait(None), 1);
        waker.clear();
        assert_eq!(wait(Some(Nanos::from_millis(1))), 0);
    }

    #[test]
    fn monotonic_time_does_not_go_back() {
        let first = monotonic();
        assert!(monotonic() >= first);
    }

    /// Locked memory of this process, in octets.
    fn locked() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn what_is_there_is_locked_and_what_comes_later_is_not() {
        if let Err(error) = lock_memory() {
            meikyo_testing::skipped(&format!("memory may not be locked ({error})"));
            return;
        }
        let program = locked();
        assert!(program > 1 << 20, "{program} octets are locked");
        // As large as a compaction may be, and a mapping of its own.
        let later = std::hint::black_box(vec![1_u8; 64 << 20]);
        let grown = locked().saturating_sub(program);
        assert!(grown < 32 << 20, "{grown} octets more are locked");
        drop(later);
        rustix::mm::munlockall().unwrap();
    }

    /// What the kernel holds to, in µs.
    fn latency_us() -> i32 {
        let mut value = [0; 4];
        File::open("/dev/cpu_dma_latency").unwrap().read_exact(&mut value).unwrap();
        i32::from_ne_bytes(value)
    }

    #[test]
    fn processors_stay_awake_while_the_file_is_open() {
        let device = File::options().read(true).write(true).open("/dev/cpu_dma_latency");
        if let Err(error) = device {
            meikyo_testing::skipped(&format!("no /dev/cpu_dma_latency to write to ({error})"));
            return;
        }
        let _awake = keep_processors_awake().unwrap();
        assert_eq!(latency_us(), 0);
    }
}
