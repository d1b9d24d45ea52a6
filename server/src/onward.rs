//! Rows of recordings sent on to neighbours: an `InfluxDB`, or whatever else takes its line protocol, and a
//! Prometheus, or whatever else takes its remote writes.
//!
//! A thread for each of them reads the log of every recording as its writer appends to it ([`mod@follow`]), and,
//! where compaction was faster, its Parquet files; it makes lines ([`meikyo_live::line_protocol`]) or requests
//! ([`mod@remote_write`]) of the rows and posts them ([`mod@target`]), a bounded body at a time. The recording is
//! the queue: whoever writes it never waits for this thread, and after an outage, or a restart, sending goes on
//! behind the last row that was taken, which stands beside the recording ([`mod@sent`]). Rows that retention
//! deleted before they were sent are counted, as are rows that the neighbour refused.
//!
//! Cost, sketched: a line is about 65 octets and half a µs; an `InfluxDB` 1.6 takes some 150,000 lines a second
//! and core, so that it is what limits the rate. Memory is a body of [`BODY_MAX`] and a block of rows, and for
//! remote writes the labels of every series.

mod errand;
mod follow;
mod remote_write;
mod sent;
mod snappy;
mod target;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

pub(crate) use errand::Errand;
use meikyo_live::line_protocol::SampleLayout;
use meikyo_units::Nanos;
pub(crate) use target::{Content, Fetched, Line, Posted, connect, must_be_near};
pub use target::{HttpTarget, TargetError};

use crate::ingest::clusters;
use follow::{Follower, Halt};

/// Octets of a body from which on it is posted.
const BODY_MAX: usize = 1 << 20;

/// How often it is looked what was written.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// In which form rows are sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As lines of `InfluxDB`'s line protocol, with samples laid out like that.
    Lines(SampleLayout),
    /// As Prometheus takes them by remote write.
    RemoteWrite,
}

impl Form {
    /// What it is called in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lines(_) => "influx",
            Self::RemoteWrite => "remote_write",
        }
    }

    const fn content(self) -> Content {
        match self {
            Self::Lines(_) => Content::Lines,
            Self::RemoteWrite => Content::RemoteWrite,
        }
    }
}

/// Where rows are sent on to, which, and how.
#[derive(Debug, Clone)]
pub struct OnwardOptions {
    /// The neighbour.
    pub target: HttpTarget,
    /// Patterns of tables; all when there are none.
    pub tables: Vec<String>,
    /// What is made of them.
    pub form: Form,
}

/// Whose rows are sent on.
#[derive(Debug, Clone)]
pub(crate) enum Recordings {
    /// Those of a recording.
    One(PathBuf),
    /// Those of the recording of senders, and of all clusters below it, also of those that come.
    OfIngest(PathBuf),
}

/// What was sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OnwardCounts {
    /// Rows, or values of them, that the neighbour took.
    pub(crate) rows: u64,
    /// Octets of what was posted.
    pub(crate) bytes: u64,
    /// Those that it refused, which are not sent again.
    pub(crate) refused_rows: u64,
    /// Frames of the log that were deleted before their rows were sent.
    pub(crate) gone_frames: u64,
    /// Requests that failed and were made again.
    pub(crate) failed_requests: u64,
    /// Whether the newest request failed.
    pub(crate) is_failing: bool,
}

/// What was sent, shared with who asks for it.
pub(crate) type SharedCounts = Arc<Mutex<OnwardCounts>>;

/// The thread that sends; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sink {
    counts: SharedCounts,
    /// A request under way when this is dropped is not waited for: its rows are sent again the next time.
    _thread: Errand,
}

impl Sink {
    /// Sends what recordings have and get.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(from: Recordings, options: &OnwardOptions) -> std::io::Result<Self> {
        let counts = SharedCounts::default();
        let line = Line::new(options.target.clone());
        let told = Arc::clone(&counts);
        let (options, of_thread) = (options.clone(), line.clone());
        let thread = Errand::begin(options.form.name(), Some(line), move |stopped| {
            let (mut followers, mut known) = (Vec::new(), BTreeSet::new());
            loop {
                for (dir, cluster) in recordings(&from) {
                    if known.insert(dir.clone()) {
                        let (options, line) = (options.clone(), of_thread.clone());
                        followers.push(Follower::new(
                            (dir, cluster),
                            options,
                            line,
                            Arc::clone(&told),
                        ));
                    }
                }
                for follower in &mut followers {
                    if let Err(Halt::Ended) = follower.go_on(stopped) {
                        return;
                    }
                }
                let waited = stopped.recv_timeout(LOOK_EVERY.to_std());
                if waited != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Self { counts, _thread: thread })
    }

    pub(crate) fn counts(&self) -> SharedCounts {
        Arc::clone(&self.counts)
    }
}

/// The recordings that there are by now, with the clusters that they are of; those that cannot be listed are
/// looked for again.
pub(crate) fn recordings(from: &Recordings) -> Vec<(PathBuf, Option<String>)> {
    match from {
        Recordings::One(dir) => vec![(dir.clone(), None)],
        Recordings::OfIngest(dir) => {
            let of = |dir: PathBuf| {
                let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
                (dir, name)
            };
            let clusters = clusters::found(dir).unwrap_or_default().into_iter().map(of);
            std::iter::once((dir.clone(), None)).chain(clusters).collect()
        }
    }
}
