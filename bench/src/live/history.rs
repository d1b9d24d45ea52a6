//! A day of 256 devices at 10 Hz: opening it, zooming, panning, and what the server holds meanwhile.

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_units::{Bytes, Nanos, WallTime};

use crate::live::browser::{Browser, BrowserError};
use crate::live::server_process::ServerProcess;
use crate::placement::wait_until;
use crate::statistics::Observations;

/// How often the day is opened, and steps of the wheel after each.
const OPENINGS: usize = 5;
const STEPS: usize = 12;
/// Between two steps, so that one is answered before the next.
const PAUSE: Nanos = Nanos::from_millis(300);
/// A point over the strip.
const OVER_STRIP: (u32, u32) = (700, 300);

/// What a person waits for.
#[derive(Debug)]
pub(crate) struct History {
    /// From opening the page's address to the painted strip.
    pub(crate) open_ms: Observations,
    /// From a step of the wheel to the strip painted for the new window.
    pub(crate) zoom_ms: Observations,
    /// The server's memory after all of it.
    pub(crate) server_rss: Bytes,
}

/// Opens the recording whole and looks around in it.
pub(crate) fn run(recording: &Path) -> Result<History, Failure> {
    let scratch = tempfile::tempdir()?;
    let server = ServerProcess::start(recording)?;
    let mut browser = Browser::start(&scratch.path().join("profile"))?;
    let (mut open_ms, mut zoom_ms) = (Vec::new(), Vec::new());
    let (from, to) = bounds(recording)?;
    let url = format!("{}#cluster?t={from}..{to}", server.url);
    for _ in 0..OPENINGS {
        browser.open(&url)?;
        browser.wait_for("window.__meikyo && window.__meikyo.wholeMs > 0")?;
        open_ms.push(browser.number("window.__meikyo.wholeMs")?);
        for step in 0..STEPS {
            wait_until(WallTime::now() + PAUSE)?;
            zoom_ms.push(turn(&mut browser, step)?);
        }
    }
    Ok(History {
        open_ms: Observations::new(open_ms),
        zoom_ms: Observations::new(zoom_ms),
        server_rss: server.rss()?,
    })
}

/// One step of the wheel, two of three into the picture and the third sideways; how long it took
/// until the strip was painted for the window that it led to, in ms.
fn turn(browser: &mut Browser, step: usize) -> Result<f64, BrowserError> {
    browser.evaluate(
        "window.benchWheelMs = Infinity; addEventListener('wheel', () => { window.benchWheelMs = performance.now(); }, \
         { capture: true, once: true, passive: true })",
    )?;
    let (sideways, into) = if step % 3 == 2 { (-120.0, 0.0) } else { (0.0, -120.0) };
    browser.wheel(OVER_STRIP, sideways, into)?;
    browser.wait_for("window.__meikyo.wholeMs > window.benchWheelMs")?;
    browser.number("window.__meikyo.wholeMs - window.benchWheelMs")
}

/// The first and the last moment of the recording, as the page's address has them.
fn bounds(recording: &Path) -> Result<(String, String), Failure> {
    let tables = meikyo_recording::inventory::inventory(recording)?.tables;
    let times = tables.iter().find(|table| table.name == "polls").and_then(|table| table.times);
    let Some((first, last)) = times else {
        return Err(Failure::new(format!("`{}` holds no readings", recording.display())));
    };
    Ok((first.to_string(), last.to_string()))
}
