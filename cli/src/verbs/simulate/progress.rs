//! What a person sees while a simulation runs.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use meikyo_console::failure::Failure;
use meikyo_console::output::{self, real};
use meikyo_console::printable;
use meikyo_models::scenario::Scenario;
use meikyo_sim::{Line, LineContent, Observer, Progress};

use super::record::Recorder;

/// Shows progress on a terminal, prints the model's lines, and keeps its series.
pub(super) struct Teller<'a> {
    scenario: &'a Scenario,
    terminal: bool,
    /// Whether standard output is for one JSON document only.
    json: bool,
    recorder: Option<Recorder<'a>>,
    last: Option<(Instant, u64)>,
    failed: Option<Failure>,
    shown: bool,
}

impl<'a> Teller<'a> {
    pub(super) fn new(scenario: &'a Scenario, json: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { scenario, terminal, json, recorder: None, last: None, failed: None, shown: false }
    }

    pub(super) fn record(&mut self, recorder: Recorder<'a>) {
        self.recorder = Some(recorder);
    }

    /// Clears the line of progress and closes the recording.
    ///
    /// # Errors
    /// If a line could not be printed, or the recording could not be written.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        if self.shown {
            show("\r\x1b[K");
        }
        self.recorder.take().map_or(Ok(()), Recorder::close)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    fn print(&mut self, line: &Line, text: &str) {
        let text = format!("{}  {}: {text}", line.key.time, self.scenario.lp_name(line.lp));
        let text = printable::line(&text);
        if self.json {
            output::say(&text);
        } else if let Err(error) = output::print(&format!("{text}\n")) {
            self.failed.get_or_insert_with(|| error.into());
        }
    }
}

impl Observer for Teller<'_> {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            match &line.content {
                LineContent::Text(text) => self.print(line, text),
                LineContent::Value { series, value } => {
                    if let Some(recorder) = &mut self.recorder {
                        recorder.value(line, *series, *value);
                    }
                }
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if !self.terminal {
            return;
        }
        let now = now();
        let (before, events) = self.last.unwrap_or((now, progress.events));
        let passed = now.duration_since(before).as_secs_f64();
        let rate = real(progress.events - events) / passed.max(1e-9) / 1e6;
        self.last = Some((now, progress.events));
        let efficiency = real(progress.events) / real(progress.handled.max(1)) * 100.0;
        self.shown = true;
        show(&format!(
            "\r\x1b[Kat {}  {:.1} million events, {rate:.2} million a second  efficiency \
             {efficiency:.1} %  {} rollbacks  {} ahead",
            progress.virtual_time,
            real(progress.events) / 1e6,
            progress.rollbacks,
            progress.gvt_lag,
        ));
    }
}

/// Writes to standard error; where nobody reads it, nothing is missed.
fn show(text: &str) {
    let mut stderr = std::io::stderr().lock();
    if stderr.write_all(text.as_bytes()).is_ok() {
        drop(stderr.flush());
    }
}

#[expect(clippy::disallowed_methods, reason = "events are counted against the time that passes")]
fn now() -> Instant {
    Instant::now()
}
