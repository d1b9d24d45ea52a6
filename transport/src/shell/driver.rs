//! A sender and its connection, turned by the thread that has them.
//!
//! Nothing here waits for a line or a receiver but [`Driver::wait`], [`Driver::finish`] and the shell's own sleep.
//! Connections are made by a thread of their own. A spool in a directory does wait for its disk, so a sender with one
//! has a thread, which is what an [`Uplink`](super::Uplink) is.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use meikyo_recording::PackedRows;
use meikyo_recording::devices::Device;
use meikyo_sockets::{PollFd, PollFlags, wait};
use meikyo_units::{Nanos, WallTime, in_one_line};

use super::connect::{Connecting, Line, Target};
use super::{StartError, UplinkStatus, monotonic};
use crate::limits::UNWRITTEN_BYTES_MAX;
use crate::now::Now;
use crate::sender::{OfferError, Sender, SenderOptions, Skipped};
use crate::spool::Directory;
use crate::wire::Ask;

/// Octets that are read at once.
const READ_BYTES: usize = 16 << 10;

/// While a connection is being made, or is full, the wait is at least this long, unless that ends it: what is due to
/// be sent cannot be.
const NOTHING_TO_SEND: Nanos = Nanos::from_millis(200);

/// Drives a sender on the caller's thread: one connection at a time, no runtime.
pub struct Driver {
    sender: Sender<Directory>,
    target: Target,
    woken: UnixStream,
    waker: UnixStream,
    begun: Instant,
    line: Option<Line>,
    /// Whether the line may hold something to read.
    is_readable: bool,
    connecting: Option<Connecting>,
    /// What the system has not taken yet.
    unwritten: Vec<u8>,
    written: u64,
    accepted: u64,
    trouble: Option<String>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver of a sender with its spool in memory.
    ///
    /// # Errors
    /// When no receiver would take such a sender, or the system gives no pipe.
    pub fn open(target: Target, options: SenderOptions) -> Result<Self, StartError> {
        Self::of(Sender::open(options, None)?, target)
    }

    /// A driver of any sender.
    pub(super) fn of(sender: Sender<Directory>, target: Target) -> Result<Self, StartError> {
        let refused = |source| StartError::Thread { source };
        let (woken, waker) = UnixStream::pair().map_err(refused)?;
        woken.set_nonblocking(true).map_err(refused)?;
        waker.set_nonblocking(true).map_err(refused)?;
        Ok(Self {
            sender,
            target,
            woken,
            waker,
            begun: monotonic(),
            line: None,
            is_readable: false,
            connecting: None,
            unwritten: Vec::new(),
            written: 0,
            accepted: 0,
            trouble: None,
        })
    }

    /// What ends the sleep of this driver when it is written to.
    pub(super) fn waker(&self) -> io::Result<UnixStream> {
        self.waker.try_clone()
    }

    fn now(&self) -> Now {
        let passed = monotonic().duration_since(self.begun).as_nanos();
        let passed = u64::try_from(passed).expect("584 years do not pass");
        // The core's clock does not begin at zero, so that "two seconds ago" is an instant.
        Now { monotonic: Nanos::from_secs(60) + Nanos::new(passed), wall: WallTime::now() }
    }

    /// Accepts rows as the next block of a stream.
    ///
    /// # Errors
    /// As [`Sender::offer`]; the status says so, too.
    pub fn offer(&mut self, stream: &str, rows: &PackedRows) -> Result<(), OfferError> {
        match self.sender.offer(self.now(), stream, rows) {
            Ok(_) => {
                self.accepted += 1;
                Ok(())
            }
            Err(error) => {
                self.trouble = Some(in_one_line(&error));
                Err(error)
            }
        }
    }

    pub(super) fn skip(&mut self, stream: &str, skipped: Skipped) {
        self.sender.skip(stream, skipped);
    }

    pub(super) fn tell_devices(&mut self, devices: Vec<Device>) {
        if let Err(error) = self.sender.tell_devices(devices) {
            self.trouble = Some(in_one_line(&error));
        }
    }

    /// Says that nothing more comes.
    pub(super) fn say_that_it_ends(&mut self) {
        self.sender.finish(self.now());
    }

    /// The next thing that the receiver wants to be told.
    pub fn next_asked(&mut self) -> Option<Ask> {
        self.sender.next_asked()
    }

    /// How it stands.
    pub fn status(&self) -> UplinkStatus {
        UplinkStatus {
            sender: self.sender.status(),
            accepted_blocks: self.accepted,
            written_bytes: self.written,
            trouble: self.trouble.clone(),
        }
    }

    /// Lets time pass: connects, reads and writes what can be without waiting.
    pub fn turn(&mut self) {
        if let Err(error) = self.sender.tick(self.now()) {
            self.close(&error.to_string());
        }
        self.connect();
        self.listen();
        self.write();
    }

    /// How long the next turn may be waited for at most, and what ends that wait before. Acknowledgements that
    /// nothing depends on do not: on a busy host waking up costs more than reading them.
    pub fn wait_for(&self) -> (Nanos, Vec<PollFd<'_>>) {
        let mut fds = self.line_fd(false).into_iter().collect::<Vec<_>>();
        // Only the thread that makes a connection wakes this one.
        if self.connecting.is_some() {
            fds.push(self.waker_fd());
        }
        (self.wait_most(), fds)
    }

    /// Takes up again after a wait for what [`Driver::wait_for`] says.
    pub fn has_waited(&mut self) {
        self.is_readable = true;
    }

    /// Turns until `holds` is true of the status, or `patience` is over; the status then.
    pub fn wait(
        &mut self,
        patience: Nanos,
        mut holds: impl FnMut(&UplinkStatus) -> bool,
    ) -> UplinkStatus {
        let end = self.now().monotonic + patience;
        loop {
            self.turn();
            let status = self.status();
            let left = end.saturating_sub(self.now().monotonic);
            if holds(&status) || left == Nanos::ZERO {
                return status;
            }
            self.sleep(left, true);
        }
    }

    /// Says that nothing more comes, and turns until the receiver has everything on its disk, or `patience` is
    /// over. How it stands then, see [`UplinkStatus::is_delivered`].
    pub fn finish(mut self, patience: Nanos) -> UplinkStatus {
        self.say_that_it_ends();
        self.wait(patience, UplinkStatus::is_delivered)
    }

    fn connect(&mut self) {
        let now = self.now();
        if let Some(outcome) = self.connecting.as_ref().and_then(Connecting::outcome) {
            self.connecting = None;
            self.forget_wakes();
            match outcome {
                Ok((line, first)) => {
                    self.line = Some(line);
                    self.is_readable = true;
                    self.trouble = None;
                    self.sender.connected(now);
                    self.hear(&first);
                }
                Err(error) => {
                    self.trouble = Some(error);
                    self.sender.disconnected(now, chance());
                }
            }
        }
        if self.line.is_none() && self.connecting.is_none() && self.sender.wants_connection(now) {
            match Connecting::begin(&self.target, &self.waker) {
                Ok(connecting) => self.connecting = Some(connecting),
                Err(error) => {
                    self.trouble = Some(error.to_string());
                    self.sender.disconnected(now, chance());
                }
            }
        }
    }

    /// Reads what can be without waiting.
    pub(super) fn listen(&mut self) {
        let mut octets = [0; READ_BYTES];
        while self.is_readable {
            let Some(line) = &mut self.line else { return };
            match line.read(&mut octets) {
                Ok(0) => return self.close("the receiver closed the connection"),
                Ok(count) => {
                    // What comes while this is heard ends the next wait.
                    self.is_readable = count == octets.len() || line.holds_octets();
                    self.hear(&octets[..count]);
                }
                Err(error) if is_later(&error) => self.is_readable = false,
                Err(error) => return self.close(&error.to_string()),
            }
        }
    }

    /// Writes what can be without waiting.
    fn write(&mut self) {
        loop {
            let now = self.now();
            while self.unwritten.len() < UNWRITTEN_BYTES_MAX
                && let Some(frame) = self.sender.poll_transmit(now)
            {
                self.unwritten.extend_from_slice(&frame);
            }
            let Some(line) = &mut self.line else { return };
            let written = if self.unwritten.is_empty() {
                line.flush().map(|()| 0)
            } else {
                line.write(&self.unwritten)
            };
            match written {
                Ok(0) => return,
                Ok(count) => {
                    self.written += count as u64;
                    self.unwritten.drain(..count);
                }
                Err(error) if is_later(&error) => return,
                Err(error) => return self.close(&error.to_string()),
            }
        }
    }

    fn hear(&mut self, octets: &[u8]) {
        let now = self.now();
        if let Err(error) = self.sender.handle(now, octets) {
            self.close(&error.to_string());
        }
    }

    fn close(&mut self, why: &str) {
        self.line = None;
        self.unwritten.clear();
        self.trouble = Some(why.to_owned());
        let now = self.now();
        self.sender.disconnected(now, chance());
    }

    fn wait_most(&self) -> Nanos {
        let now = self.now();
        let wait = self.sender.next_wakeup(now).saturating_sub(now.monotonic);
        let is_full = self.unwritten.len() >= UNWRITTEN_BYTES_MAX;
        if is_full || self.connecting.is_some() { wait.max(NOTHING_TO_SEND) } else { wait }
    }

    fn waker_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.woken, PollFlags::IN)
    }

    /// The connection, if there is one, and what of it is waited for; `is_heard` where somebody waits for what the
    /// receiver says.
    fn line_fd(&self, is_heard: bool) -> Option<PollFd<'_>> {
        let line = self.line.as_ref()?;
        let hears_later = self.sender.can_hear_later() && !is_heard;
        let mut wanted = if hears_later { PollFlags::RDHUP } else { PollFlags::IN };
        if !self.unwritten.is_empty() || line.wants_write() {
            wanted |= PollFlags::OUT;
        }
        Some(PollFd::new(line.socket(), wanted))
    }

    /// Sleeps until something can be read or written, somebody wakes this thread, or it is time, and no longer than
    /// `most`.
    pub(super) fn sleep(&mut self, most: Nanos, is_heard: bool) {
        let most = self.wait_most().min(most);
        let mut fds = vec![self.waker_fd()];
        fds.extend(self.line_fd(is_heard));
        // Where the system cannot say, everything is looked at.
        let is_known = wait(&mut fds, Some(most)).is_ok();
        let ended =
            |fd: &PollFd<'_>| !is_known || !fd.revents().difference(PollFlags::OUT).is_empty();
        let (is_woken, is_filled) = (fds.first().is_some_and(ended), fds.get(1).is_some_and(ended));
        drop(fds);
        if is_woken {
            self.forget_wakes();
        }
        // What did not end the sleep is taken along.
        self.is_readable = is_filled
            || self.sender.can_hear_later()
            || self.line.as_ref().is_some_and(Line::holds_octets);
    }

    fn forget_wakes(&self) {
        let mut octets = [0; 256];
        while matches!((&self.woken).read(&mut octets), Ok(count) if count == octets.len()) {}
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Any number: it spreads when senders come back.
fn chance() -> u64 {
    let mut octets = [0; 8];
    let read =
        std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets));
    // Without it all senders wait for the same time, which is no fault.
    drop(read);
    u64::from_le_bytes(octets)
}
