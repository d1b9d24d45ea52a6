//! Tells the observer of a run what is committed, and how far the run is, while it lasts.

use std::time::{Duration, Instant};

use crate::statistics::{Line, Observer, Progress};

/// The time between two tellings of progress.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);

/// The observer, and the lines that it is to get.
pub(super) struct Announcer<'a> {
    observer: &'a mut dyn Observer,
    /// Lines of all parts that were handed over and are not delivered yet.
    pub(super) lines: Vec<Line>,
    /// When the observer heard of progress last.
    told: Instant,
}

impl<'a> Announcer<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, lines: Vec::new(), told: now() }
    }

    /// Delivers the lines before `before` ns in the order of their keys. No line that is handed over
    /// later may be earlier than that.
    pub(super) fn deliver_lines(&mut self, before: u64) {
        if self.lines.is_empty() {
            return;
        }
        self.lines.sort_by_key(|line| line.key);
        let certain = self.lines.partition_point(|line| line.key.time.as_nanos() < before);
        if certain > 0 {
            self.observer.lines(&self.lines[..certain]);
            self.lines.drain(..certain);
        }
    }

    /// Whether it is time to tell progress again.
    pub(super) fn progress_is_due(&self) -> bool {
        now().duration_since(self.told) >= PROGRESS_PERIOD
    }

    pub(super) fn tell_progress(&mut self, progress: &Progress) {
        self.told = now();
        self.observer.progress(progress);
    }
}

/// The clock by which progress is told and parallel work is judged.
#[expect(
    clippy::disallowed_methods,
    reason = "progress is told as time passes, and whether threads pay is a question of time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
