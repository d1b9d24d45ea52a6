//! Processes in namespaces: made, entered, begun as the first of a PID namespace, ended, waited for.
#![expect(unsafe_code, reason = "namespaces and processes are asked of the kernel")]

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Puts the calling thread into new namespaces.
///
/// # Errors
/// When the kernel refuses it.
///
/// # Panics
/// If a table of descriptors of its own is asked for.
pub fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    assert!(!namespaces.contains(UnshareFlags::FILES), "threads go on with the same descriptors");
    // SAFETY: only a table of descriptors of its own would be unsafe, which is ruled out above.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}

/// Puts the calling thread into a namespace.
///
/// # Errors
/// When the kernel refuses it.
pub fn enter(namespace: &impl AsFd, kind: LinkNameSpaceType) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(kind))?)
}

/// Says that one user and one group are root in the user namespace that the process of this directory of
/// `/proc` has just made.
///
/// # Errors
/// When the kernel refuses it.
pub fn map_own_ids(process: &File, user: u32, group: u32) -> io::Result<()> {
    let write = |name: &str, text: String| {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(process, name, flags, Mode::empty())?;
        File::from(file).write_all(text.as_bytes())
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("0 {user} 1"))?;
    write("gid_map", format!("0 {group} 1"))
}

/// Ends with the process that started it, whatever ends that. For use between `fork` and `exec`.
///
/// `parent` is what that process is called here: `None` if it is outside of a new PID namespace.
///
/// # Errors
/// When it has ended already.
pub fn end_with_parent(parent: Option<Pid>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let same = rustix::process::getppid() == parent;
    if same { Ok(()) } else { Err(io::Error::other("whoever started this has ended")) }
}

/// Makes the calling process the first of a session of its own, without a terminal.
///
/// # Errors
/// When it is the first of a group already.
pub fn new_session() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}

/// A process id as the kernel has it; `None` if no process can have this one.
fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// Sends a signal to the group of a child; one that has ended is fine.
///
/// # Panics
/// If the number can be that of no process.
pub fn signal_group(leader: u32, signal: Signal) {
    let leader = pid(leader).expect("the kernel has given the child its number");
    if rustix::process::kill_process_group(leader, signal).is_err() {
        // It fails only for groups that are gone.
    }
}

/// A handle of a process that cannot come to mean another one.
///
/// The number may be one that was read in a file, and no process's.
///
/// # Errors
/// When there is no such process.
pub fn process_handle(id: u32) -> io::Result<OwnedFd> {
    let id = pid(id).ok_or(Errno::SRCH)?;
    Ok(rustix::process::pidfd_open(id, PidfdFlags::empty())?)
}

/// Kills the process of a handle; one that has ended is fine.
///
/// # Errors
/// When it is not ours to kill.
pub fn kill(handle: &OwnedFd) -> io::Result<()> {
    match rustix::process::pidfd_send_signal(handle, Signal::KILL) {
        Err(Errno::SRCH) => Ok(()),
        result => Ok(result?),
    }
}

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its process id.
    pub id: u32,
    /// Its exit code, or 128 and the signal that ended it, as shells say it.
    pub code: u8,
}

/// A child of the calling process that has ended, adopted ones included.
pub fn reap() -> Option<Ended> {
    let (id, status) = rustix::process::wait(WaitOptions::NOHANG).ok().flatten()?;
    Some(Ended { id: id.as_raw_nonzero().get().unsigned_abs(), code: code_of(status) })
}

/// Waits for the next child of the calling process to end, adopted ones included; nothing if there is none left.
pub fn await_child() -> Option<Ended> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Ok(Some((id, status))) => {
                let id = id.as_raw_nonzero().get().unsigned_abs();
                return Some(Ended { id, code: code_of(status) });
            }
            _ => return None,
        }
    }
}

/// Has all descendants of the calling process that lose their parents become its children.
///
/// # Errors
/// When the kernel refuses it.
pub fn adopt_descendants() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Closes every descriptor beyond the standard streams. For use before anything was opened: what is closed was left by
/// whoever started this program.
///
/// # Errors
/// When the kernel refuses it.
pub fn close_inherited() -> io::Result<()> {
    // SAFETY: nothing of this process has a descriptor yet but the standard streams, which stay open.
    check(unsafe { libc::close_range(3, libc::c_uint::MAX, 0) }).map(drop)
}

/// The exit code of a child that has ended, or 128 and the signal.
fn code_of(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
    u8::try_from(code.expect("it was waited for its end")).expect("codes and signals are small")
}

/// Continues in a child, while the caller waits for it and ends as it does.
///
/// For use between `fork` and `exec`: after this, the child is the first process of a PID namespace
/// that was unshared before. The caller keeps no descriptor, as nobody is to wait for its end.
///
/// # Errors
/// When there can be no more processes.
pub fn continue_as_first_process() -> io::Result<()> {
    // SAFETY: this process has one thread, and the child goes on as the caller would have.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        return end_with_parent(None);
    }
    // SAFETY: nothing of this process is used after this but the calls below.
    unsafe { libc::close_range(0, libc::c_uint::MAX, 0) };
    let code = loop {
        match rustix::process::waitpid(Pid::from_raw(child), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Ok(Some((_, status))) => break status.exit_status().unwrap_or_default(),
            // Nobody else waits for the child: its end is unknown, and nothing is left to do here.
            _ => break 0,
        }
    };
    // SAFETY: the call does not return, and nothing is to be run at the end of this process.
    unsafe { libc::_exit(code) }
}

/// The descriptor with which this program was started, if it is open.
///
/// # Errors
/// When it is not open.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and whoever started this program left it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lets a descriptor stay open in the program that is executed next. For use between `fork` and `exec`.
///
/// # Errors
/// When it is not open.
pub fn keep_over_exec(number: RawFd) -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }).map(drop)
}

/// Makes the calling process, which has one thread, root of a user namespace of its own, so that it may make other
/// namespaces.
///
/// # Errors
/// When the system lets users make no namespaces.
pub fn become_root_of_own() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(UnshareFlags::NEWUSER)?;
    map_own_ids(&File::open("/proc/self")?, user.as_raw(), group.as_raw())
}
