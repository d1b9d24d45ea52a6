//! What the collector asks of the kernel beside datagrams: waiting, waking, priority, clocks.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};

use meikyo_units::Nanos;

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

/// Gives the calling thread `SCHED_FIFO` priority and locks the process's present memory.
///
/// Threads that it starts later are ordinary ones (`SCHED_RESET_ON_FORK`).
///
/// # Errors
/// [`RealtimeError`] when the system does not permit one of them.
pub fn become_realtime() -> Result<(), RealtimeError> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the parameters outlive the call.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } != 0 {
        return Err(RealtimeError::Priority(io::Error::last_os_error()));
    }
    // Only what is there now: locking the future would also pin what the compaction needs for a
    // moment. Buffers of the hot path have grown before the first interval is over.
    // SAFETY: the call takes no pointer.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } != 0 {
        return Err(RealtimeError::Memory(io::Error::last_os_error()));
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
    // SAFETY: the call takes no pointer. It cannot fail for a positive slack of 1 ns.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
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
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
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

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits until one of the descriptors is readable or the span is over; `None` waits for ever.
///
/// Returns which are readable, by position, as bits.
pub(crate) fn wait(fds: &[RawFd], span: Option<Nanos>) -> u64 {
    let mut polls: [libc::pollfd; 8] = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 8];
    for (slot, &fd) in polls.iter_mut().zip(fds) {
        *slot = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    }
    let span = span.map(|span| libc::timespec {
        tv_sec: i64::try_from(span.get() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(span.get() % 1_000_000_000).unwrap_or(0),
    });
    let limit = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = libc::nfds_t::try_from(fds.len().min(polls.len())).unwrap_or(0);
    // SAFETY: `count` entries are valid, the timespec outlives the call, and no mask is given.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), count, limit, std::ptr::null()) };
    if ready <= 0 {
        // A signal is as good as a time-out: the caller looks at everything anyway.
        return 0;
    }
    polls
        .iter()
        .take(fds.len())
        .enumerate()
        .filter(|(_, poll)| poll.revents != 0)
        .fold(0, |bits, (position, _)| bits | 1 << position)
}

/// The monotonic clock (`CLOCK_MONOTONIC`): time since boot, never set.
pub(crate) fn monotonic() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is live; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Nanos::from_secs(seconds) + Nanos::new(u64::try_from(time.tv_nsec).unwrap_or(0))
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
    let error = u64::try_from(timex.esterror).unwrap_or(0);
    ClockOffset {
        offset_ns: timex.offset.saturating_mul(unit),
        error: synchronised.then(|| Nanos::from_micros(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_ends_a_wait_once() {
        let waker = Waker::new().unwrap();
        assert_eq!(wait(&[waker.fd()], Some(Nanos::from_millis(1))), 0);
        waker.wake();
        waker.wake();
        assert_eq!(wait(&[waker.fd()], None), 1);
        waker.clear();
        assert_eq!(wait(&[waker.fd()], Some(Nanos::from_millis(1))), 0);
    }

    #[test]
    fn monotonic_time_does_not_go_back() {
        let first = monotonic();
        assert!(monotonic() >= first);
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
