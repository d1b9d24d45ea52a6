//! What a measurement tells of itself: a line a second while it runs, a summary at its end.

use std::fmt::Write as _;
use std::path::Path;

use meikyo_console::output::{bytes_text, counted};
use meikyo_recording::WriterCounters;
use meikyo_snmp::collector::Status;
use meikyo_snmp::tables::State;
use meikyo_units::Nanos;
use serde::Serialize;

use super::afar::Sent;

/// Names of failing devices that the summary holds.
const NAMES_MAX: usize = 10;

/// One line about the second that has passed.
pub(super) fn line(status: &Status, before: Option<&Status>) -> String {
    let mut text = status.at.floor(Nanos::SECOND).to_string();
    for (position, state) in State::ALL.into_iter().enumerate() {
        let earlier = before.map_or(0, |before| before.states[position]);
        let count = status.states[position] - earlier;
        write!(text, "  {} {count}", state.word()).expect("writing to a string cannot fail");
    }
    write!(
        text,
        "  kept {} rows, {}",
        status.writer.rows_kept,
        bytes_text(status.writer.bytes_kept)
    )
    .expect("writing to a string cannot fail");
    if status.writer.rows_dropped > 0 {
        write!(text, "  DROPPED {} rows", status.writer.rows_dropped)
            .expect("writing to a string cannot fail");
    }
    text
}

/// Names that a person reads, and the number of the others.
fn names(all: &[String]) -> String {
    let shown = &all[..all.len().min(NAMES_MAX)];
    let rest = all.len() - shown.len();
    let others = if rest > 0 { format!(" and {rest} others") } else { String::new() };
    format!("{}{others}", shown.join(", "))
}

/// The end of a measurement, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: &'static str,
    /// None with `--no-recording`.
    recording: Option<String>,
    devices: usize,
    seconds: f64,
    ok: u64,
    late: u64,
    missed: u64,
    errors: u64,
    skipped: u64,
    requests: u64,
    strays: u64,
    stalls: u64,
    overruns: u64,
    socket_drops: u64,
    rows_kept: u64,
    rows_dropped: u64,
    bytes_logged: u64,
    /// Devices that failed at the end.
    failing: Vec<String>,
    /// What was sent to a receiver, with `--to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Sent>,
}

impl Summary {
    pub(super) fn new(
        recording: Option<&Path>,
        devices: usize,
        span: Nanos,
        status: &Status,
        writer: &WriterCounters,
        failing: Vec<String>,
        sent: Option<Sent>,
    ) -> Self {
        let ended = |state: State| status.states[state as usize];
        Self {
            schema: "meikyo.measure/1",
            recording: recording.map(|dir| dir.display().to_string()),
            devices,
            seconds: span.as_secs_f64(),
            ok: ended(State::Ok),
            late: ended(State::Late),
            missed: ended(State::Missed),
            errors: ended(State::Error),
            skipped: ended(State::Skipped),
            requests: status.counts.requests,
            strays: status.counts.strays,
            stalls: status.counts.stalls,
            overruns: status.counts.overruns,
            socket_drops: status.counts.socket_drops,
            rows_kept: writer.rows_kept,
            rows_dropped: writer.rows_dropped,
            bytes_logged: writer.bytes_kept,
            failing,
            sent,
        }
    }

    /// Whether every reading that came is kept.
    pub(super) fn is_whole(&self) -> bool {
        self.rows_dropped == 0 && self.sent.as_ref().is_none_or(Sent::is_whole)
    }

    /// The summary for people.
    pub(super) fn text(&self) -> String {
        let polls = self.ok + self.late + self.missed + self.errors + self.skipped;
        let mut text = format!(
            "{} for {:.1} s: {polls} polls\n\
             ok {}  late {}  missed {}  error {}  skipped {}\n\
             {} rows kept, {} dropped, {} logged\n",
            counted(self.devices, "device"),
            self.seconds,
            self.ok,
            self.late,
            self.missed,
            self.errors,
            self.skipped,
            self.rows_kept,
            self.rows_dropped,
            bytes_text(self.bytes_logged),
        );
        let own = [
            (self.stalls, "interval", "delayed because the collector woke late"),
            (self.overruns, "interval", "missed while the collector did not run"),
            (self.socket_drops, "datagram", "dropped by our own socket"),
            (self.strays, "datagram", "that answered no open request (late or duplicate)"),
        ];
        for (count, of, what) in own.into_iter().filter(|(count, ..)| *count > 0) {
            writeln!(text, "{} {what}", counted(count, of))
                .expect("writing to a string cannot fail");
        }
        if !self.failing.is_empty() {
            writeln!(text, "no valid answer at the end from {}", names(&self.failing))
                .expect("writing to a string cannot fail");
        }
        if let Some(sent) = &self.sent {
            text += &sent.text();
        }
        if let Some(recording) = &self.recording {
            writeln!(text, "recording: {recording}").expect("writing to a string cannot fail");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_ten_and_a_number() {
        let all: Vec<String> = (1..=22).map(|number| format!("n{number}")).collect();
        assert_eq!(names(&all[..2]), "n1, n2");
        assert_eq!(names(&all), "n1, n2, n3, n4, n5, n6, n7, n8, n9, n10 and 12 others");
    }
}
