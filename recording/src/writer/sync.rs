//! Forcing the log to the disk, beside the writer thread, which must not wait for a disk.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::JoinHandle;

use meikyo_units::WallTime;

use super::queue::Shared;

/// One sync that is asked for.
struct Request {
    file: Arc<File>,
    /// Octets kept when it was asked for, which it confirms.
    bytes_kept: u64,
    answer: Option<SyncSender<Result<(), io::Error>>>,
}

/// The thread that syncs; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Syncer {
    requests: Option<Sender<Request>>,
    busy: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, io::Error> {
        let (requests, waiting) = channel();
        let busy = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&busy);
        let thread = std::thread::Builder::new()
            .name("recording-sync".into())
            .spawn(move || run(&waiting, &flag, &shared))?;
        Ok(Self { requests: Some(requests), busy, thread: Some(thread) })
    }

    /// Whether a sync asked for by [`Syncer::ask`] is still under way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// Asks for a sync of `file`; the answer, if wanted, comes when the disk has it.
    pub(super) fn ask(
        &self,
        file: Arc<File>,
        bytes_kept: u64,
        answer: Option<SyncSender<Result<(), io::Error>>>,
    ) {
        self.busy.store(true, Ordering::Release);
        if let Some(requests) = &self.requests {
            // The thread ends only when this sender is dropped.
            drop(requests.send(Request { file, bytes_kept, answer }));
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(waiting: &Receiver<Request>, busy: &AtomicBool, shared: &Shared) {
    while let Ok(Request { file, bytes_kept, answer }) = waiting.recv() {
        let result = file.sync_data();
        match &result {
            Ok(()) => {
                shared.counters.syncs.add(1);
                shared.counters.bytes_synced.set(bytes_kept);
                shared.counters.last_sync.store(WallTime::now().as_nanos(), Ordering::Relaxed);
            }
            Err(_) => shared.counters.disk_errors.add(1),
        }
        busy.store(false, Ordering::Release);
        if let Some(answer) = answer {
            // Who asked may have gone.
            drop(answer.send(result));
        }
    }
}
