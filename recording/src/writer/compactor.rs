//! The thread that compacts finished segments, in the background and giving way to everybody.
//!
//! When the stream is closed it ends with the segment that it has, at an ordinary priority where that
//! is permitted, and what is left is compacted at the priority of whoever closes: nothing is measured
//! any more, and a person waits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use meikyo_units::{WallTime, in_one_line};

use super::queue::Shared;
use super::{Incident, IncidentKind, StreamOptions, WhenFull};
use crate::compact::{CompactError, Compacted, Summaries, compact};
use crate::retention::{self, Keep};
use crate::system_calls::{
    give_way, lower_priority, stop_giving_way, thread_cpu_ns, thread_number,
};

/// Segments that may wait before a writer that can wait does.
const BACKLOG_MAX: usize = 4;

/// The thread; segments are handed to it as they end.
#[derive(Debug)]
pub(super) struct Compactor {
    todo: Arc<Todo>,
    thread: Option<JoinHandle<Work>>,
}

#[derive(Debug, Default)]
struct Todo {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    segments: Vec<PathBuf>,
    /// The segment being worked on is not in `segments` any more.
    working: bool,
    end: Option<End>,
    /// What the kernel calls the thread, while it gives way.
    gives_way: Option<i32>,
}

/// How the thread is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// When everything is compacted.
    Finish,
    /// After what is being worked on.
    Leave,
}

struct Work {
    dir: PathBuf,
    stream: String,
    keep: Keep,
    shared: Arc<Shared>,
    summaries: Summaries,
    /// Segments that could not be compacted; tried again when the next one has been.
    failed: Vec<PathBuf>,
}

impl Compactor {
    pub(super) fn start(
        dir: &Path,
        stream: &str,
        options: &StreamOptions,
        leftovers: Vec<PathBuf>,
        shared: Arc<Shared>,
    ) -> Result<Self, io::Error> {
        let todo = Arc::new(Todo::default());
        locked(&todo.state).segments = leftovers;
        let summaries = Summaries::default();
        let (dir, stream, failed) = (dir.into(), stream.into(), Vec::new());
        let (keep, when_full) = (options.keep.clone(), options.when_full);
        let work = Work { dir, stream, keep, shared, summaries, failed };
        let own = Arc::clone(&todo);
        let thread =
            std::thread::Builder::new().name("recording-compactor".into()).spawn(move || {
                match when_full {
                    WhenFull::Drop => {
                        locked(&own.state).gives_way = Some(thread_number());
                        give_way();
                    }
                    // Who waits for it must not wait for everybody else, too.
                    WhenFull::Wait => lower_priority(),
                }
                run(&own, work)
            })?;
        Ok(Self { todo, thread: Some(thread) })
    }

    /// Hands over a finished segment.
    pub(super) fn push(&self, segment: PathBuf) {
        locked(&self.todo.state).segments.push(segment);
        self.todo.changed.notify_all();
    }

    /// Waits until the backlog is small again.
    pub(super) fn wait_for_room(&self) {
        let state = locked(&self.todo.state);
        let full = |state: &mut State| state.segments.len() >= BACKLOG_MAX;
        drop(self.todo.changed.wait_while(state, full));
    }

    /// Ends the thread; the error is that of a segment that could not be compacted in the end.
    pub(super) fn end(mut self, end: End) -> Result<(), CompactError> {
        let mut state = locked(&self.todo.state);
        state.end = Some(end);
        if let Some(thread) = state.gives_way.take() {
            stop_giving_way(thread);
        }
        drop(state);
        self.todo.changed.notify_all();
        let mut work = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(work)) if end == End::Finish => work,
            // A panic there is a bug that the thread's message has told; segments are untouched.
            Some(_) | None => return Ok(()),
        };
        let left = std::mem::take(&mut locked(&self.todo.state).segments);
        for segment in left {
            work.compact_and_retry(segment);
        }
        let mut result = Ok(());
        for segment in std::mem::take(&mut work.failed) {
            let compacted = work.compact(segment);
            result = result.and(compacted);
        }
        result
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        locked(&self.todo.state).end.get_or_insert(End::Leave);
        self.todo.changed.notify_all();
    }
}

fn run(todo: &Todo, mut work: Work) -> Work {
    work.delete_old();
    while let Some(segment) = next(todo) {
        // Once the stream ends nothing can be told in it any more: the next writer deletes.
        if work.compact_and_retry(segment) && locked(&todo.state).end.is_none() {
            work.delete_old();
        }
        work.shared.memory_is_free.store(true, Ordering::Relaxed);
    }
    work
}

/// The next segment; `None` when the thread is to end.
fn next(todo: &Todo) -> Option<PathBuf> {
    let mut state = locked(&todo.state);
    state.working = false;
    todo.changed.notify_all();
    loop {
        if state.end.is_some() {
            return None;
        }
        if !state.segments.is_empty() {
            state.working = true;
            let segment = state.segments.remove(0);
            todo.changed.notify_all();
            return Some(segment);
        }
        state = todo.changed.wait(state).expect(UNPOISONED);
    }
}

impl Work {
    /// Compacts a segment, and after a success those that failed before; whether it could.
    fn compact_and_retry(&mut self, segment: PathBuf) -> bool {
        let is_compacted = self.compact(segment).is_ok();
        if is_compacted {
            for segment in std::mem::take(&mut self.failed) {
                // It is told each time; the next success tries again.
                drop(self.compact(segment));
            }
        }
        is_compacted
    }

    fn compact(&mut self, segment: PathBuf) -> Result<(), CompactError> {
        let before = thread_cpu_ns();
        let result = compact(&self.dir, &segment, &mut self.summaries);
        let counters = &self.shared.counters;
        counters.compaction_cpu_ns.add(thread_cpu_ns().saturating_sub(before));
        match result {
            Ok(compacted) => {
                let Compacted { rows, bytes, summary_bytes, .. } = compacted;
                counters.compactions.add(1);
                counters.rows_compacted.add(rows);
                counters.parquet_bytes.add(bytes);
                counters.summary_bytes.add(summary_bytes);
                if let Some(text) = unread_text(&segment, &compacted) {
                    self.report(IncidentKind::Damage, 0, text);
                }
                Ok(())
            }
            // Only this thread unlinks segments, and only when their rows are in files.
            Err(_) if segment.try_exists().is_ok_and(|exists| !exists) => {
                let text = format!(
                    "segment `{}` was removed or moved away before it was compacted; its rows are \
                     not in the recording",
                    segment.display()
                );
                self.report(IncidentKind::Removed, 0, text);
                Ok(())
            }
            Err(error) => {
                counters.disk_errors.add(1);
                let text = in_one_line(&error);
                self.report(IncidentKind::CompactionFailed, 0, text);
                self.failed.push(segment);
                Err(error)
            }
        }
    }

    fn delete_old(&self) {
        if self.keep.is_forever() {
            return;
        }
        let now = WallTime::now();
        let limit_of = |table: &str| Some(now.before(self.keep.limit_of(table)?));
        let deleted = retention::delete_before(&self.dir, &self.stream, limit_of);
        let counters = &self.shared.counters;
        counters.rows_deleted.add(deleted.rows);
        counters.bytes_deleted.add(deleted.bytes);
        if deleted.files > 0 {
            let keep = match self.keep.all {
                Some(keep) if self.keep.tables.is_empty() => keep.to_string(),
                _ => "they are to be kept".to_owned(),
            };
            let text = format!(
                "{} rows older than {keep} were deleted, {} files of {} bytes: {}",
                deleted.rows,
                deleted.files,
                deleted.bytes,
                deleted.in_words()
            );
            self.report(IncidentKind::Deleted, deleted.rows, text);
        }
        if let Some(error) = deleted.error {
            counters.disk_errors.add(1);
            self.report(IncidentKind::DiskRefused, 0, error);
        }
    }

    fn report(&self, kind: IncidentKind, rows: u64, text: String) {
        self.shared.report(Incident { at: WallTime::now(), kind, rows, text });
    }
}

/// What is said of a segment that could not be compacted wholly.
fn unread_text(segment: &Path, compacted: &Compacted) -> Option<String> {
    let Compacted { damaged_bytes, unread_frames, unknown_frames, .. } = compacted;
    let segment = segment.display();
    if *damaged_bytes > 0 || *unread_frames > 0 {
        return Some(format!(
            "{damaged_bytes} bytes and {} frames of `{segment}` could not be read; it was renamed to \
             end in `.damaged`, its other rows are in Parquet files",
            unread_frames + unknown_frames
        ));
    }
    (*unknown_frames > 0).then(|| {
        format!(
            "{unknown_frames} frames of `{segment}` are of a kind that this version does not know; it \
             was renamed to end in `.unknown` and is kept, its other rows are in Parquet files"
        )
    })
}

/// Why the lock is never poisoned: segments are compacted without it.
const UNPOISONED: &str = "nothing that holds the list of segments can panic";

fn locked(mutex: &Mutex<State>) -> MutexGuard<'_, State> {
    mutex.lock().expect(UNPOISONED)
}
