//! Waiting for a datagram or for the end.
#![expect(unsafe_code, reason = "ppoll(2) has no safe wrapper in std")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use meikyo_units::Nanos;

/// Ends an agent or a farm: as soon as something is written to the other end, or it is closed.
#[derive(Debug)]
pub struct Stop(UnixStream);

impl Stop {
    /// A stop and the end that triggers it, which can be given to a signal handler.
    ///
    /// # Errors
    ///
    /// What socketpair(2) says.
    pub fn pair() -> io::Result<(Self, UnixStream)> {
        let (stop, trigger) = UnixStream::pair()?;
        Ok((Self(stop), trigger))
    }

    /// Waits until `socket` can be read, the stop is triggered, or `timeout` is over. Returns
    /// whether the stop is triggered.
    pub(crate) fn wait(&self, socket: BorrowedFd<'_>, timeout: Option<Nanos>) -> io::Result<bool> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut entries = [entry(socket.as_raw_fd()), entry(self.0.as_raw_fd())];
        let span = timeout.map(|timeout| libc::timespec {
            tv_sec: i64::try_from(timeout.get() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(timeout.get() % 1_000_000_000).unwrap_or(0),
        });
        let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the array and the time, if any, live across the call, and no signal mask is given.
        let result = unsafe { libc::ppoll(entries.as_mut_ptr(), 2, span, std::ptr::null()) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        }
        Ok(entries[1].revents != 0)
    }
}
