//! When a run tells what, while it lasts.

use std::time::{Duration, Instant};

use crate::statistics::{Line, Observer};

/// Time between two tellings of progress.
pub(crate) const TELL: Duration = Duration::from_millis(250);

/// Tells the lines before `before` ns, after which nothing earlier can come, and takes them.
pub(crate) fn tell_lines(observer: &mut dyn Observer, lines: &mut Vec<Line>, before: u64) {
    if lines.is_empty() {
        return;
    }
    lines.sort_by_key(|line| line.key);
    let certain = lines.partition_point(|line| line.key.time.as_nanos() < before);
    if certain > 0 {
        observer.lines(&lines[..certain]);
        lines.drain(..certain);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "progress is told as time passes, which judges threads, too"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
