//! Forcing the log to the disk, beside the writer thread, which must not wait for a disk.
//!
//! Requests are answered in their order, so that a sync of a segment confirms all segments before it
//! as long as none has failed. After one that failed the kernel may have dropped what it could not
//! write, and a later success says nothing of it: the watermark stops, and whoever opens the stream
//! next writes its segments anew ([`crate::unsynced`]).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::JoinHandle;

use meikyo_units::WallTime;

use super::home;
use super::queue::Shared;
use crate::unsynced;

/// How the data of a file is forced to the disk: by the system, or by a test that fails or delays.
pub(super) type SyncData = Box<dyn FnMut(&File) -> io::Result<()> + Send>;

/// What a sync confirms: everything that was handed to the kernel when it was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirmed {
    /// Octets of this writer.
    pub(super) bytes: u64,
    /// The last frame.
    pub(super) sequence: u64,
}

/// Whether a segment has ended: its writer has then seen that it was there, and compaction may unlink
/// it, also while a sync is under way that was asked for before. Until then nobody but a stranger
/// removes it.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended(Arc<AtomicBool>);

impl Ended {
    /// Notes it, before compaction is told.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_noted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// One sync that is asked for.
pub(super) struct Request {
    pub(super) file: Arc<File>,
    pub(super) ended: Ended,
    pub(super) confirms: Confirmed,
    /// Where the file appeared since the last request: its name is on the disk once these are.
    pub(super) directories: Vec<PathBuf>,
    pub(super) answer: Option<SyncSender<Result<(), io::Error>>>,
}

/// The thread that syncs; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Syncer {
    requests: Option<Sender<Request>>,
    busy: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(super) fn start(
        shared: Arc<Shared>,
        stream_dir: PathBuf,
        sync_data: SyncData,
    ) -> Result<Self, io::Error> {
        let (requests, waiting) = channel();
        let busy = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&busy);
        let thread = std::thread::Builder::new()
            .name("recording-sync".into())
            .spawn(move || run(&waiting, &flag, (&shared, &stream_dir), sync_data))?;
        Ok(Self { requests: Some(requests), busy, thread: Some(thread) })
    }

    /// Whether a sync asked for by [`Syncer::ask`] is still under way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// Asks for a sync; the answer, if wanted, comes when the disk has the file.
    pub(super) fn ask(&self, request: Request) {
        self.busy.store(true, Ordering::Release);
        if let Some(requests) = &self.requests {
            // The thread ends only when this sender is dropped.
            drop(requests.send(request));
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

fn run(
    waiting: &Receiver<Request>,
    busy: &AtomicBool,
    (shared, stream_dir): (&Shared, &Path),
    mut sync_data: SyncData,
) {
    while let Ok(request) = waiting.recv() {
        let result = sync(&request, &mut sync_data);
        let Confirmed { bytes, sequence } = request.confirms;
        match &result {
            // In this order: what compaction unlinked had ended before.
            Ok(()) if home::is_removed(&request.file) && !request.ended.is_noted() => {
                shared.watermark.stop();
            }
            Ok(()) => {
                shared.counters.syncs.add(1);
                shared.counters.bytes_synced.set(bytes);
                shared.counters.last_sync.store(WallTime::now().as_nanos(), Ordering::Relaxed);
                shared.watermark.advance(sequence, bytes);
            }
            Err(_) => {
                shared.counters.disk_errors.add(1);
                // First: whoever sees that the watermark has stopped may open the stream anew.
                if unsynced::note(stream_dir).is_err() {
                    shared.counters.disk_errors.add(1);
                }
                shared.watermark.stop();
            }
        }
        busy.store(false, Ordering::Release);
        if let Some(answer) = request.answer {
            // Who asked may have gone.
            drop(answer.send(result));
        }
    }
}

fn sync(request: &Request, sync_data: &mut SyncData) -> io::Result<()> {
    sync_data(&request.file)?;
    request.directories.iter().try_for_each(|directory| File::open(directory)?.sync_all())
}
