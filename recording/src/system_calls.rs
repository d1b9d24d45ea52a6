//! The system calls that the standard library does not have.
//!
//! The only place of this crate where `unsafe` is allowed.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Makes the calling thread give way to every other: idle scheduling, of processors and of disks.
///
/// A thread inherits its maker's policy; the compactor of a collector under `SCHED_FIFO` would
/// otherwise hold a core for seconds. An ordinary thread that wakes takes the core from one under
/// `SCHED_IDLE` at once; from a thread that is merely nice it waits for a slice of some milliseconds.
/// What the system refuses stays as it was: it costs comfort, not correctness.
pub(crate) fn give_way() {
    /// The class `IOPRIO_CLASS_IDLE` of linux/ioprio.h.
    const CLASS_IDLE: libc::c_int = 3 << 13;
    schedule(0, libc::SCHED_IDLE, CLASS_IDLE);
}

/// Takes back what [`give_way`] did to the thread of that number. Without the privilege to
/// (`CAP_SYS_NICE`, or `RLIMIT_NICE`) it goes on as it is, however long that takes.
pub(crate) fn stop_giving_way(thread: libc::pid_t) {
    schedule(thread, libc::SCHED_OTHER, 0);
}

#[expect(unsafe_code, reason = "the standard library cannot set a thread's priority")]
fn schedule(thread: libc::pid_t, policy: libc::c_int, disk_class: libc::c_int) {
    /// `IOPRIO_WHO_PROCESS` of linux/ioprio.h.
    const WHO_PROCESS: libc::c_int = 1;
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live `sched_param`; thread 0 is the calling one.
    unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
    // SAFETY: takes integers only; process 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, thread, disk_class) };
}

/// The number that the kernel has for the calling thread.
#[expect(unsafe_code, reason = "the standard library does not tell it")]
pub(crate) fn thread_number() -> libc::pid_t {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// Gives the system back what the allocator holds for later.
#[expect(unsafe_code, reason = "the standard library cannot ask the allocator for it")]
pub(crate) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes an integer only, and touches no memory that is allocated.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the calling thread give way to collectors: ordinary scheduling, nice 10.
///
/// For threads that people wait for, which a collector beside them must not feel. What the system
/// refuses stays as it was.
#[expect(unsafe_code, reason = "the standard library cannot set a thread's priority")]
pub fn lower_priority() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live `sched_param`; thread 0 is the calling thread.
    let scheduled =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
    if scheduled == 0 {
        // SAFETY: takes integers only; on Linux a process id of 0 is the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
    }
}

/// CPU time that the calling thread has used, in ns.
#[expect(unsafe_code, reason = "the standard library has no clock of CPU time")]
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live `timespec`.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if read != 0 {
        return 0;
    }
    let part = |value: i64| u64::try_from(value).expect("a thread has used no negative time");
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Octets that an unprivileged process can still write to the file system of `path`.
///
/// # Errors
/// When the system does not say.
#[expect(unsafe_code, reason = "the standard library cannot ask a file system for its room")]
pub fn room_bytes(path: &Path) -> Result<u64, io::Error> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `statvfs` is integers only, for which zeros are valid.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values, and the path ends with a zero.
    let asked = unsafe { libc::statvfs(path.as_ptr(), &raw mut answer) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}
