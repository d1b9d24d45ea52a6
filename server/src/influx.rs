//! Rows of a recording sent on to an `InfluxDB`, or to whatever else takes its line protocol.
//!
//! A thread reads the recording's log as its writer appends to it ([`mod@follow`]), and, where compaction was
//! faster, its Parquet files; it makes lines of the rows ([`meikyo_live::line_protocol`]) and posts them
//! ([`mod@target`]), a bounded text at a time. The recording is the queue: whoever writes it never waits for
//! this thread, and after an outage, or a restart, sending goes on behind the last row that was taken, which
//! stands in the recording's `influx-sent.json` ([`mod@sent`]). Rows that retention deleted before they were
//! sent are counted, as are rows that the database refused.
//!
//! Cost, sketched: a line is about 65 octets and half a µs; an `InfluxDB` 1.6 takes some 150,000 lines a second
//! and core, so that it is what limits the rate. Memory is a body of [`BODY_MAX`] and a block of rows.

mod follow;
mod sent;
mod target;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use meikyo_live::line_protocol::SampleLayout;
pub use target::{InfluxTarget, TargetError};

use follow::Follower;
use target::Line;

/// Octets of lines from which on they are posted.
const BODY_MAX: usize = 1 << 20;

/// Where rows are sent on to, which, and how they are laid out.
#[derive(Debug, Clone)]
pub struct InfluxOptions {
    /// The database.
    pub target: InfluxTarget,
    /// Patterns of tables; all when there are none.
    pub tables: Vec<String>,
    /// How samples are laid out.
    pub layout: SampleLayout,
}

/// What was sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InfluxCounts {
    /// Rows that the database took.
    pub(crate) rows: u64,
    /// Octets of their lines.
    pub(crate) bytes: u64,
    /// Rows that it refused.
    pub(crate) refused_rows: u64,
    /// Frames of the log that were deleted before their rows were sent.
    pub(crate) gone_frames: u64,
    /// Requests that failed and were made again.
    pub(crate) failed_requests: u64,
    /// Whether the newest request failed.
    pub(crate) is_failing: bool,
}

/// What was sent, shared with who asks for it.
pub(crate) type SharedCounts = Arc<Mutex<InfluxCounts>>;

/// The thread that sends; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sink {
    counts: SharedCounts,
    line: Line,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Sends what the recording in a directory has and gets.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(dir: &Path, options: &InfluxOptions) -> std::io::Result<Self> {
        let counts = SharedCounts::default();
        let line = Line::new(options.target.clone());
        let (stop, stopped) = channel();
        let (dir, told): (PathBuf, _) = (dir.into(), Arc::clone(&counts));
        let (options, of_thread) = (options.clone(), line.clone());
        let thread = std::thread::Builder::new().name("influx".into()).spawn(move || {
            meikyo_recording::lower_priority();
            Follower::new(dir, options, of_thread, told).run(&stopped);
        })?;
        Ok(Self { counts, line, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn counts(&self) -> SharedCounts {
        Arc::clone(&self.counts)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop = None;
        // A request under way is not waited for: its rows are sent again the next time.
        self.line.cut();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that sends rows to an InfluxDB has panicked");
        }
    }
}
