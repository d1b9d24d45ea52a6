//! Waiting until something can be read or written.

use std::io;
use std::os::fd::AsFd;

use meikyo_units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of the descriptors is ready or the span is over, `None` for ever; returns how
/// many are ready. No descriptors and a span are a nap.
///
/// A signal ends the wait as if the span were over: whoever waits looks at everything anyway.
///
/// # Errors
/// When the kernel has no memory for it.
pub fn wait(descriptors: &mut [PollFd<'_>], span: Option<Nanos>) -> io::Result<usize> {
    let span = span.map(|span| Timespec {
        tv_sec: (span.get() / 1_000_000_000).cast_signed(),
        tv_nsec: (span.get() % 1_000_000_000).cast_signed(),
    });
    match poll(descriptors, span.as_ref()) {
        Err(Errno::INTR) => Ok(0),
        result => Ok(result?),
    }
}

/// A descriptor from which one waits to read.
pub fn readable(descriptor: &impl AsFd) -> PollFd<'_> {
    PollFd::new(descriptor, PollFlags::IN)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use meikyo_units::WallTime;

    use super::*;

    #[test]
    fn a_wait_tells_which_descriptor_is_ready() -> io::Result<()> {
        let (idle, _idle_end) = UnixStream::pair()?;
        let (busy, mut end) = UnixStream::pair()?;
        let mut both = [readable(&idle), readable(&busy)];
        assert_eq!(wait(&mut both, Some(Nanos::from_millis(1)))?, 0);
        end.write_all(&[1])?;
        assert_eq!(wait(&mut both, None)?, 1);
        assert_eq!(both.map(|poll| poll.revents()), [PollFlags::empty(), PollFlags::IN]);
        Ok(())
    }

    #[test]
    fn a_nap_is_no_shorter_than_its_span() -> io::Result<()> {
        for span in [Nanos::from_millis(5), Nanos::SECOND + Nanos::from_millis(1)] {
            let before = WallTime::now();
            assert_eq!(wait(&mut [], Some(span))?, 0);
            assert!(WallTime::now().since(before) >= span);
        }
        Ok(())
    }
}
