//! Arguments that several verbs have in common: which recording, and which rows of it.

use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::Failure;
use meikyo_recording::{Recording, Selection};
use meikyo_units::{Nanos, WallTime};

use crate::known_devices;

/// The recording that a verb reads.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgument {
    /// The recording's directory
    #[arg(value_name = "DIR", default_value = "recording", env = "MEIKYO_RECORDING")]
    pub(crate) dir: PathBuf,
}

/// Which rows of which devices and time.
#[derive(Debug, Args)]
pub(crate) struct RowArguments {
    /// Devices: names, folded ranges (node[001-225]), or patterns with * and ?; with commas between.
    #[arg(long, value_name = "PATTERN")]
    device: Option<String>,
    /// Rows with that label, for example interface=eth0; the text may have * and ?. Can be repeated.
    #[arg(long = "label", value_name = "LABEL=TEXT")]
    labels: Vec<String>,
    /// The columns, with commas between.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// From then on: 2026-11-21T20:14:00Z, 2026-11-21, or -15min (before the recording's end).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
}

impl RowArguments {
    /// Refuses devices that the recording does not have.
    pub(crate) fn check_devices(&self, recording: &Recording) -> Result<(), Failure> {
        self.device
            .as_ref()
            .map_or(Ok(()), |list| known_devices::check(recording, &unfolded(list)?))
    }

    /// The rows of `table` that are meant.
    pub(crate) fn selection(
        &self,
        recording: &Recording,
        table: &str,
        until: Option<&str>,
    ) -> Result<Selection, Failure> {
        let mut labels = Vec::new();
        if let Some(devices) = &self.device {
            labels.push(("device".to_owned(), unfolded(devices)?));
        }
        for label in &self.labels {
            let (name, text) = label.split_once('=').ok_or_else(|| {
                Failure::new(format!("`{label}` names no label"))
                    .hint("write for example `--label interface=eth0`")
            })?;
            labels.push((name.to_owned(), vec![text.to_owned()]));
        }
        let time =
            |text: Option<&str>| text.map(|text| instant(text, recording, table)).transpose();
        let (from, to) = (time(self.from.as_deref())?, time(until)?);
        check_order(from, to)?;
        Ok(Selection { table: table.to_owned(), columns: self.columns.clone(), labels, from, to })
    }
}

/// Refuses a span that ends before it begins.
pub(crate) fn check_order(from: Option<WallTime>, until: Option<WallTime>) -> Result<(), Failure> {
    match (from, until) {
        (Some(from), Some(until)) if from >= until => {
            let text = format!("`--from` ({from}) is not before `--until` ({until})");
            let hint = "for example the last minute but one: `--from -2min --until -1min`";
            Err(Failure::new(text).hint(hint))
        }
        _ => Ok(()),
    }
}

/// The names in a list of names, folded ranges and patterns.
pub(crate) fn unfolded(list: &str) -> Result<Vec<String>, Failure> {
    let (mut names, mut depth, mut part) = (Vec::new(), 0_u32, String::new());
    for c in list.chars().chain([',']) {
        match c {
            ',' if depth == 0 => {
                if part.contains('[') {
                    names.extend(meikyo_cluster::unfold(&part)?);
                } else if !part.is_empty() {
                    names.push(part.clone());
                }
                part.clear();
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        part.push(c);
    }
    if depth > 0 {
        names.extend(meikyo_cluster::unfold(&part)?);
    }
    Ok(names)
}

/// An instant as typed: RFC 3339, a date, or a span before the end of the table's rows.
pub(crate) fn instant(text: &str, recording: &Recording, table: &str) -> Result<WallTime, Failure> {
    if let Some(span) = text.strip_prefix('-') {
        let span: Nanos = span.parse()?;
        let end = recording.span(table)?.map_or_else(WallTime::default, |(_, end)| end);
        return Ok(end.before(span));
    }
    let absolute = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let date = text.parse::<jiff::civil::Date>().ok().filter(|_| !text.contains('T'))?;
        Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    });
    let nanos = absolute.and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
    nanos.map(WallTime::from_nanos).ok_or_else(|| {
        Failure::new(format!("`{text}` is not a time"))
            .hint("write `2026-11-21T20:14:00Z`, `2026-11-21`, or `-15min` before the end")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_devices_unfold_and_keep_patterns() {
        let names = unfolded("node[001-003],sw-*,login").unwrap();
        assert_eq!(names, ["node001", "node002", "node003", "sw-*", "login"]);
        assert!(unfolded("node[1-").is_err());
    }
}
