//! 10,000 devices with 4 values each at 10 Hz, replayed from a recording.

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_units::{Nanos, WallTime};

use crate::live::browser::Browser;
use crate::live::server_process::ServerProcess;
use crate::placement::wait_until;

/// The page has settled before the window begins.
const SETTLE: Nanos = Nanos::from_secs(5);

/// What the page did while it was watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Smoothness {
    /// New intervals painted in a second.
    pub(crate) paints_per_s: f64,
    /// Share of the time that the main thread was at work, as the browser counts it.
    pub(crate) main_thread_busy: f64,
    /// The longest time between two frames, or the longest task, whichever is longer.
    pub(crate) frame_ms_max: f64,
}

/// Notes the longest span between two frames and the longest task of the main thread. A frame is
/// due every 16.7 ms; what is longer is what a person would see stutter.
const WATCH_FRAMES: &str = "(() => {
  const watch = { frame: 0, task: 0, last: performance.now() };
  const frame = (now) => { watch.frame = Math.max(watch.frame, now - watch.last); watch.last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => { for (const task of list.getEntries()) watch.task = Math.max(watch.task, task.duration); })
    .observe({ entryTypes: ['longtask'] });
  window.benchWatch = watch;
  return true;
})()";

/// Plays the recording in the page for `span`.
pub(crate) fn run(recording: &Path, span: Nanos) -> Result<Smoothness, Failure> {
    let scratch = tempfile::tempdir()?;
    let server = ServerProcess::start(recording)?;
    let mut browser = Browser::start(&scratch.path().join("profile"))?;
    let also = "in_octets,in_packets,out_packets";
    browser.open(&format!("{}#cluster?also={also}&t=-10s&play=1&bench=1", server.url))?;
    browser.wait_for("window.__meikyo && window.__meikyo.paints > 10")?;
    wait_until(WallTime::now() + SETTLE)?;
    let (smoothness, ()) = watch(&mut browser, |_| Ok(wait_until(WallTime::now() + span)?))?;
    Ok(smoothness)
}

/// How smooth the page is while something else is done.
pub(crate) fn watch<T>(
    browser: &mut Browser,
    meanwhile: impl FnOnce(&mut Browser) -> Result<T, Failure>,
) -> Result<(Smoothness, T), Failure> {
    browser.evaluate(WATCH_FRAMES)?;
    let paints = browser.number("window.__meikyo.paints")?;
    let (begin, busy) = (WallTime::now(), browser.task_seconds()?);
    let done = meanwhile(browser)?;
    let seconds = WallTime::now().since(begin).as_secs_f64();
    let busy = browser.task_seconds()? - busy;
    let paints = browser.number("window.__meikyo.paints")? - paints;
    let dropped = browser.number("window.__meikyo.droppedFrames")?;
    let frame_ms_max =
        browser.number("Math.max(window.benchWatch.frame, window.benchWatch.task)")?;
    if dropped > 0.0 {
        crate::progress(&format!("{dropped} frames were left out for this slow viewer"));
    }
    let (paints_per_s, main_thread_busy) = (paints / seconds, busy / seconds);
    Ok((Smoothness { paints_per_s, main_thread_busy, frame_ms_max }, done))
}
