//! All threads of a program stand still while its memory is read, not only the one that saves.
//!
//! Every other thread is sent a signal whose handler waits on a futex until it is told to go on; if this process loses
//! its daemon, the thread that saves notices and tells them. A thread that blocks the signal stands still as soon as it
//! does not any more: one that is being made does so before it runs anything of the program. Those of runtimes (MPI's
//! progress, for example) block it for ever and go on; they do not write the program's arrays.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use crate::schedule::now;

/// Threads that are waited for at most so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most threads that can be stopped.
const THREADS_MAX: usize = 4_096;

/// Octets of the kernel's list of threads that are read at once.
const LIST_BYTES: usize = 16 << 10;

/// 1 while threads stand still.
static STOP: AtomicU32 = AtomicU32::new(0);

/// How many threads are in the handler.
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// Which ones, each at the first free place from that of its number on; 0 is a free place.
static STANDING: [AtomicI32; THREADS_MAX] = [const { AtomicI32::new(0) }; THREADS_MAX];

/// Why threads do not stand still.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StandstillError {
    #[error("the system does not tell which threads there are")]
    List(#[source] io::Error),
    #[error("the signal cannot be handled")]
    Signal(#[source] io::Error),
    #[error("there are more than {THREADS_MAX} threads")]
    Many,
    #[error("{stopped} of {threads} threads have stopped within {} s", PATIENCE.as_secs())]
    Late { stopped: u32, threads: usize },
}

/// The threads of this process.
#[derive(Debug)]
pub(crate) struct Standstill {
    /// Room for their numbers, which is there before any is stopped.
    threads: Vec<libc::pid_t>,
    is_ready: bool,
}

fn signal() -> libc::c_int {
    // The C library and MPI use the first ones.
    libc::SIGRTMAX() - 3
}

impl Standstill {
    pub(crate) fn new() -> Self {
        Self { threads: Vec::with_capacity(THREADS_MAX), is_ready: false }
    }

    /// Stops all other threads. Nothing is allocated once the first is stopped.
    pub(crate) fn stop(&mut self) -> Result<(), StandstillError> {
        if !self.is_ready {
            handle().map_err(StandstillError::Signal)?;
            self.is_ready = true;
        }
        self.threads.clear();
        STOP.store(1, Ordering::SeqCst);
        let stopped = self.stop_all();
        if stopped.is_err() {
            self.go_on();
        }
        stopped
    }

    fn stop_all(&mut self) -> Result<(), StandstillError> {
        let begun = now();
        loop {
            let before = self.threads.len();
            self.signal_new()?;
            // A thread that was being made can have made another: until nobody is new.
            while !self.are_still() {
                if begun.elapsed() > PATIENCE {
                    let stopped = STOPPED.load(Ordering::SeqCst);
                    return Err(StandstillError::Late { stopped, threads: self.threads.len() });
                }
                std::thread::yield_now();
            }
            if self.threads.len() == before {
                return Ok(());
            }
        }
    }

    /// Whether every thread stands still, or has the signal before it as soon as it does not block it any more. Each is
    /// looked at by itself: one that has come to the handler late, by the signal of an earlier stop, has that of this
    /// stop before it, too, and would be counted twice. One that is about to leave the handler then comes back to it
    /// before it runs anything of the program.
    fn are_still(&self) -> bool {
        self.threads.iter().all(|thread| stands(*thread) || has_signal_pending(*thread))
    }

    /// Lets them go on, and waits until all have.
    pub(crate) fn go_on(&mut self) {
        STOP.store(0, Ordering::SeqCst);
        wake();
        while STOPPED.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    /// Sends the signal to every thread that has not been sent it.
    #[expect(unsafe_code, reason = "system calls that allocate nothing")]
    fn signal_new(&mut self) -> Result<(), StandstillError> {
        // SAFETY: it takes nothing and cannot fail.
        let me = unsafe { libc::gettid() };
        // SAFETY: it takes nothing and cannot fail.
        let process = unsafe { libc::getpid() };
        let failed = || StandstillError::List(io::Error::last_os_error());
        // SAFETY: the path ends with a zero.
        let list = unsafe { libc::open(c"/proc/self/task".as_ptr(), libc::O_RDONLY) };
        if list < 0 {
            return Err(failed());
        }
        let mut octets = [0_u8; LIST_BYTES];
        let outcome = loop {
            // SAFETY: the kernel writes at most as many octets as there are.
            let count = unsafe {
                libc::syscall(libc::SYS_getdents64, list, octets.as_mut_ptr(), LIST_BYTES)
            };
            let Ok(count) = usize::try_from(count) else { break Err(failed()) };
            if count == 0 {
                break Ok(());
            }
            let mut at = 0;
            let mut is_full = false;
            while at + 19 < count {
                // `struct linux_dirent64`: number, offset, length of the entry, type, name.
                let len = usize::from(u16::from_ne_bytes([octets[at + 16], octets[at + 17]]));
                let thread = decimal(&octets[at + 19..count]);
                at += len.max(1);
                let Some(thread) = thread.filter(|thread| *thread != me) else { continue };
                if self.threads.contains(&thread) {
                    continue;
                }
                if self.threads.len() == THREADS_MAX {
                    is_full = true;
                    break;
                }
                self.threads.push(thread);
                // One that blocks it for ever has it from the time before.
                if has_signal_pending(thread) {
                    continue;
                }
                // SAFETY: it takes three numbers. A thread that has ended counts as one that stands still.
                unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal()) };
            }
            if is_full {
                break Err(StandstillError::Many);
            }
        };
        // SAFETY: it was opened here.
        unsafe { libc::close(list) };
        outcome
    }
}

/// The places where a thread may be in [`STANDING`], the likeliest first.
fn places(thread: libc::pid_t) -> impl Iterator<Item = &'static AtomicI32> {
    let first = thread.unsigned_abs() as usize % THREADS_MAX;
    STANDING[first..].iter().chain(&STANDING[..first])
}

/// Whether a thread is in the handler.
fn stands(thread: libc::pid_t) -> bool {
    places(thread).any(|place| place.load(Ordering::SeqCst) == thread)
}

/// The number that a string of C begins with.
fn decimal(text: &[u8]) -> Option<libc::pid_t> {
    let digits = text.iter().position(|octet| !octet.is_ascii_digit())?;
    let number = |sum: libc::pid_t, digit: &u8| {
        sum.checked_mul(10)?.checked_add(libc::pid_t::from(digit - b'0'))
    };
    (digits > 0).then(|| text[..digits].iter().try_fold(0, number)).flatten()
}

/// Whether a thread was sent the signal and blocks it; one that has ended does, too.
#[expect(unsafe_code, reason = "system calls that allocate nothing")]
fn has_signal_pending(thread: libc::pid_t) -> bool {
    let mut path = [0_u8; 64];
    let mut room = &mut path[..];
    let text = format_args!("/proc/self/task/{thread}/status\0");
    if io::Write::write_fmt(&mut room, text).is_err() {
        return true;
    }
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY) };
    if file < 0 {
        return true;
    }
    let mut octets = [0_u8; 4_096];
    // SAFETY: the kernel writes at most as many octets as there are.
    let count = unsafe { libc::read(file, octets.as_mut_ptr().cast(), octets.len()) };
    // SAFETY: it was opened here.
    unsafe { libc::close(file) };
    let Ok(count) = usize::try_from(count) else { return true };
    // One that does not block it is on its way to stop, and may still write.
    [b"SigPnd:\t", b"SigBlk:\t"].into_iter().all(|name| has_bit(&octets[..count], name))
}

/// Whether the mask that stands behind `name` has the signal.
fn has_bit(status: &[u8], name: &[u8]) -> bool {
    let Some(at) = status.windows(name.len()).position(|window| window == name) else {
        return true;
    };
    let mask = status[at + name.len()..].iter().take(16);
    let mask = mask.fold(0_u64, |mask, digit| {
        mask << 4 | u64::from(char::from(*digit).to_digit(16).unwrap_or(0))
    });
    mask >> (signal() - 1) & 1 == 1
}

/// Installs the handler.
#[expect(unsafe_code, reason = "a handler of a signal")]
fn handle() -> io::Result<()> {
    // SAFETY: all zeros are a set of no signals and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = stand_still as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler makes only calls that are safe in one.
    if unsafe { libc::sigaction(signal(), &raw const action, std::ptr::null_mut()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What a thread does that is to stand still.
#[expect(unsafe_code, reason = "a handler of a signal")]
extern "C" fn stand_still(_: libc::c_int) {
    // SAFETY: it takes nothing and cannot fail.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is the place of this thread's own error number, which the interrupted code may still want to read.
    let kept = unsafe { *place };
    // SAFETY: it takes nothing and cannot fail.
    let me = unsafe { libc::gettid() };
    STOPPED.fetch_add(1, Ordering::SeqCst);
    let is_taken = |place: &&AtomicI32| {
        place.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    };
    let own = places(me).find(is_taken);
    while STOP.load(Ordering::SeqCst) == 1 {
        // SAFETY: the kernel reads the word, and lets this thread sleep while it is 1.
        unsafe {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(
                libc::SYS_futex,
                STOP.as_ptr(),
                wait,
                1,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }
    if let Some(own) = own {
        own.store(0, Ordering::SeqCst);
    }
    STOPPED.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: `place` is that of this thread's own error number.
    unsafe { *place = kept };
}

#[expect(unsafe_code, reason = "the other end of a futex")]
fn wake() {
    // SAFETY: the kernel wakes whoever sleeps at this word.
    unsafe {
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, STOP.as_ptr(), wake, libc::c_int::MAX);
    }
}

/// Lets the daemon, which is no parent of this process, read its memory where the system forbids that otherwise (Yama).
#[expect(unsafe_code, reason = "a system call")]
pub(crate) fn let_daemon_read(socket: &UnixStream) -> io::Result<()> {
    let daemon = socket_peercred(socket)?.pid.as_raw_nonzero().get();
    let daemon = libc::c_ulong::try_from(daemon).expect("the number of a process is positive");
    let nothing: libc::c_ulong = 0;
    // SAFETY: it takes numbers only. Where there is no Yama it is refused, and not needed.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, daemon, nothing, nothing, nothing) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Longest that anything may take on a loaded machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[expect(unsafe_code, reason = "it takes nothing and cannot fail")]
    fn own_number() -> libc::pid_t {
        // SAFETY: as above.
        unsafe { libc::gettid() }
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let begun = now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{what}");
            std::thread::yield_now();
        }
    }

    #[expect(unsafe_code, reason = "calls of the C library")]
    fn change_mask(how: libc::c_int) {
        // SAFETY: all zeros are a set of no signals.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: it is a set.
        unsafe { libc::sigaddset(&raw mut set, signal()) };
        // SAFETY: the mask is that of this thread only, and the old one is not asked for.
        unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) };
    }

    /// Stays in the kernel, where no handler runs, until an octet can be read: a process is begun, and waited for as
    /// `vfork` does.
    #[expect(unsafe_code, reason = "system calls")]
    fn stay_in_the_kernel(until: libc::c_int) {
        let flags = libc::c_long::from(libc::CLONE_VFORK | libc::SIGCHLD);
        let none: libc::c_long = 0;
        // SAFETY: the new process has a copy of this one's memory, and does what is allowed in one.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
        if child == 0 {
            let mut octet = 0_u8;
            // SAFETY: the kernel writes one octet at most.
            unsafe { libc::read(until, (&raw mut octet).cast(), 1) };
            // SAFETY: the process is over.
            unsafe { libc::_exit(0) };
        }
        let child = libc::pid_t::try_from(child).unwrap();
        // SAFETY: it is a process of this one, and how it has ended is not asked for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }

    /// A thread comes to the handler by the signal of an earlier stop, and is sent that of this one, too, while another
    /// cannot stop yet.
    #[test]
    #[expect(unsafe_code, reason = "a signal is sent")]
    fn a_thread_that_was_stopped_late_is_not_counted_for_another() {
        handle().unwrap();
        let (late, busy) = (AtomicI32::new(0), AtomicI32::new(0));
        let (may_stop, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (reader, mut writer) = io::pipe().unwrap();
        let mut standstill = Standstill::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                change_mask(libc::SIG_BLOCK);
                late.store(own_number(), Ordering::SeqCst);
                wait_until("it may stop", || may_stop.load(Ordering::SeqCst));
                change_mask(libc::SIG_UNBLOCK);
                wait_until("it is over", || is_over.load(Ordering::SeqCst));
            });
            scope.spawn(|| {
                busy.store(own_number(), Ordering::SeqCst);
                stay_in_the_kernel(reader.as_raw_fd());
            });
            let number = |of: &AtomicI32| of.load(Ordering::SeqCst);
            wait_until("both have begun", || number(&late) > 0 && number(&busy) > 0);
            let (late, busy) = (number(&late), number(&busy));
            wait_until("the busy one is in the kernel", || {
                let stat = std::fs::read_to_string(format!("/proc/self/task/{busy}/stat"));
                stat.unwrap().contains(") D ")
            });
            // SAFETY: it takes nothing and cannot fail.
            let process = unsafe { libc::getpid() };
            // SAFETY: it takes three numbers.
            unsafe { libc::syscall(libc::SYS_tgkill, process, late, signal()) };
            // From here until they go on no memory may be asked for.
            STOP.store(1, Ordering::SeqCst);
            may_stop.store(true, Ordering::SeqCst);
            wait_until("the late one stands", || stands(late));
            let listed = standstill.signal_new();
            let is_still = |thread: &libc::pid_t| stands(*thread) || has_signal_pending(*thread);
            wait_until("all others stand", || {
                standstill.threads.iter().filter(|thread| **thread != busy).all(is_still)
            });
            let are_still = standstill.are_still();
            let written = writer.write_all(&[0]);
            wait_until("all stand", || standstill.are_still());
            let is_busy_still = is_still(&busy);
            standstill.go_on();
            is_over.store(true, Ordering::SeqCst);
            listed.unwrap();
            written.unwrap();
            assert!(!are_still, "a thread that runs was not waited for");
            assert!(is_busy_still);
        });
    }
}
