//! The system calls that the standard library does not have.
//!
//! The only place of this crate where `unsafe` is allowed.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Makes the calling thread give way to every other: nice 19, batch scheduling.
///
/// A thread inherits its maker's policy; the compactor of a collector under `SCHED_FIFO` would
/// otherwise hold a core for seconds. What the system refuses stays as it was: it costs comfort,
/// not correctness.
#[expect(unsafe_code, reason = "the standard library cannot set a thread's priority")]
pub(crate) fn give_way() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a live `sched_param`; thread 0 is the calling thread.
    let scheduled =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    if scheduled == 0 {
        // SAFETY: takes integers only; on Linux a process id of 0 is the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
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
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
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
