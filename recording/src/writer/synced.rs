//! How far a stream is on the disk: what a sender of rows can be acknowledged by.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use meikyo_units::Nanos;

/// Why the lock is never poisoned.
const UNPOISONED: &str = "nothing that holds the watermark can panic";

/// How far a stream is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synced {
    /// Every frame whose sequence number is at most this one is on the disk, unless the system
    /// refused to take it: [`Kept::lost_rows`](crate::Kept) told that.
    pub sequence: u64,
    /// Octets of these frames that this writer has written.
    pub bytes: u64,
    /// Frames behind them may never be on the disk, and nobody can know: the system refused a sync,
    /// or somebody removed a segment before it was synced. The numbers then stay as they are as long
    /// as the writer lives. Who has rows that were not acknowledged opens the stream anew and hands
    /// them over again.
    pub is_stopped: bool,
}

/// Where a stream's [`Synced`] can be read and waited for by any thread.
///
/// The writer asks for the disk once a [`StreamOptions::sync_every`](crate::StreamOptions). A frame
/// is acknowledged like this: hand the rows over, set a mark behind them, and when the mark has come
/// back with no lost rows, wait until [`Synced::sequence`] is at least that of the mark
/// ([`Kept::sequence`](crate::Kept)). Marks of an earlier writer of the stream say nothing here: what
/// they were not acknowledged for is handed over again.
#[derive(Debug, Clone, Default)]
pub struct Watermark(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    synced: Mutex<Synced>,
    changed: Condvar,
}

impl Watermark {
    /// How far the stream is on the disk now.
    pub fn get(&self) -> Synced {
        *self.lock()
    }

    /// Waits until the frame `sequence` is on the disk, the watermark has stopped, or `patience` is
    /// over; how far the stream is on the disk then.
    pub fn wait(&self, sequence: u64, patience: Nanos) -> Synced {
        let is_ahead = |synced: &mut Synced| synced.sequence < sequence && !synced.is_stopped;
        *self.lock_while(is_ahead, patience)
    }

    /// Notes that everything up to some frame is on the disk.
    pub(super) fn advance(&self, sequence: u64, bytes: u64) {
        let mut synced = self.lock();
        if !synced.is_stopped && sequence >= synced.sequence {
            (synced.sequence, synced.bytes) = (sequence, bytes);
            self.0.changed.notify_all();
        }
    }

    /// Notes that what is behind the watermark may never be on the disk.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.0.changed.notify_all();
    }

    fn lock_while(
        &self,
        holds: impl FnMut(&mut Synced) -> bool,
        patience: Nanos,
    ) -> MutexGuard<'_, Synced> {
        let waited = self.0.changed.wait_timeout_while(self.lock(), patience.to_std(), holds);
        waited.expect(UNPOISONED).0
    }

    fn lock(&self) -> MutexGuard<'_, Synced> {
        self.0.synced.lock().expect(UNPOISONED)
    }
}
