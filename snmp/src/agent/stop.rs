//! Waiting for a datagram or for the end.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use meikyo_sockets::{readable, wait};
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
        let mut entries = [readable(&socket), readable(&self.0)];
        wait(&mut entries, timeout)?;
        Ok(!entries[1].revents().is_empty())
    }
}
