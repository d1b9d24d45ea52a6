//! What passes between the engine's thread and the writer's.
//!
//! A plain mutex and not a lock-free ring: the engine may run under `SCHED_FIFO` on the writer's
//! core, where spinning for a lower thread never ends, and a mutex sleeps. It is held for a push or
//! a swap of vectors.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::counters::Counters;
use super::synced::Watermark;
use super::{Incident, Kept, WhenFull};
use crate::batch::Batch;
use crate::packed::PackedRows;

/// Incidents that wait to be taken; more are counted only.
const INCIDENTS_MAX: usize = 1_000;

/// Marks that wait to be taken. An engine takes them every interval; one that never does must not
/// make the writer grow without bound, and loses the oldest.
const KEPT_MAX: usize = 1 << 20;

/// Octets of packed rows that wait for the writer thread, at most; one block may wait in any case.
const PACKED_BYTES_MAX: usize = 64 << 20;

/// What the writer thread is told.
#[derive(Debug)]
pub(super) enum Message {
    Batch(Batch),
    /// Packed rows of the table at that position.
    Packed(usize, PackedRows),
    Symbols(Vec<String>),
    Mark {
        token: u64,
        lost_rows: u64,
    },
    Sync {
        answer: SyncSender<Result<(), std::io::Error>>,
    },
    Close {
        compact: bool,
    },
}

/// What the engine's handle and the writer's threads share.
#[derive(Debug)]
pub(super) struct Shared {
    limit: usize,
    queue: Mutex<Queue>,
    work: Condvar,
    room: Condvar,
    back: Mutex<Back>,
    pub(super) counters: Counters,
    pub(super) watermark: Watermark,
    /// A compaction has ended, and what it used is to be given back to the system.
    pub(super) memory_is_free: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    messages: Vec<Message>,
    batches: usize,
    packed_bytes: usize,
}

impl Queue {
    /// Whether rows of which `bytes` octets are packed have to wait.
    fn is_full(&self, limit: usize, bytes: usize) -> bool {
        let is_large = self.packed_bytes > 0 && self.packed_bytes + bytes > PACKED_BYTES_MAX;
        self.batches >= limit || is_large
    }
}

/// What comes back to the engine.
#[derive(Debug, Default)]
struct Back {
    kept: Vec<Kept>,
    written: Vec<Batch>,
    incidents: Vec<Incident>,
}

impl Shared {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            queue: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            back: Mutex::default(),
            counters: Counters::default(),
            watermark: Watermark::default(),
            memory_is_free: AtomicBool::new(false),
        }
    }

    /// Queues a message that is never refused; there are few of them, and they are small.
    pub(super) fn push(&self, message: Message) {
        let mut queue = locked(&self.queue);
        queue.messages.push(message);
        // The writer sleeps only while the queue is empty.
        if queue.messages.len() == 1 {
            self.work.notify_one();
        }
    }

    /// Queues rows, or gives them back when the queue is full and the caller does not wait.
    pub(super) fn push_rows(&self, rows: Message, when_full: WhenFull) -> Result<(), Message> {
        let bytes = match &rows {
            Message::Packed(_, packed) => packed.payload().len(),
            _ => 0,
        };
        let mut queue = locked(&self.queue);
        while queue.is_full(self.limit, bytes) {
            if when_full == WhenFull::Drop {
                return Err(rows);
            }
            queue = self.room.wait(queue).expect(UNPOISONED);
        }
        queue.batches += 1;
        queue.packed_bytes += bytes;
        queue.messages.push(rows);
        if queue.messages.len() == 1 {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Moves all messages into `into`, which is empty; waits for some, `patience` at most.
    pub(super) fn wait_for_messages(&self, into: &mut Vec<Message>, patience: Duration) {
        let queue = locked(&self.queue);
        let (mut queue, _) = self
            .work
            .wait_timeout_while(queue, patience, |queue| queue.messages.is_empty())
            .expect(UNPOISONED);
        std::mem::swap(&mut queue.messages, into);
        (queue.batches, queue.packed_bytes) = (0, 0);
        self.room.notify_all();
    }

    pub(super) fn give_back(&self, kept: &mut Vec<Kept>, written: &mut Vec<Batch>) {
        let mut back = locked(&self.back);
        back.kept.append(kept);
        let surplus = back.kept.len().saturating_sub(KEPT_MAX);
        back.kept.drain(..surplus);
        // Buffers beyond what can be queued would never be asked for again.
        let room = self.limit.saturating_sub(back.written.len());
        written.truncate(room);
        back.written.append(written);
    }

    pub(super) fn take_kept(&self, into: &mut Vec<Kept>) {
        std::mem::swap(&mut locked(&self.back).kept, into);
    }

    pub(super) fn take_written(&self) -> Vec<Batch> {
        std::mem::take(&mut locked(&self.back).written)
    }

    pub(super) fn report(&self, incident: Incident) {
        let mut back = locked(&self.back);
        if back.incidents.len() < INCIDENTS_MAX {
            back.incidents.push(incident);
        } else {
            self.counters.incidents_dropped.add(1);
        }
    }

    pub(super) fn take_incidents(&self) -> Vec<Incident> {
        std::mem::take(&mut locked(&self.back).incidents)
    }
}

/// The lock also after a panic of the other thread: vectors of messages are whole at any moment.
/// Why a lock is never poisoned.
const UNPOISONED: &str = "nothing that holds the queue can panic";

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(UNPOISONED)
}
