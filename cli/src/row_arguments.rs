//! Arguments that several verbs have in common: which recording, and which rows of it.

use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_console::failure::Failure;
use meikyo_recording::{Recording, Selection};
use meikyo_units::{Nanos, WallTime};

use crate::known_devices;

/// The recording that a verb reads.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgument {
    /// The recording's directory
    #[arg(value_name = "RECORDING", default_value = "recording", env = "MEIKYO_RECORDING")]
    pub(crate) dir: PathBuf,
}

impl RecordingArgument {
    /// The directory, if there is one.
    pub(crate) fn there(&self) -> Result<&Path, Failure> {
        check_there(&self.dir)?;
        Ok(&self.dir)
    }

    /// Opens it for reading.
    pub(crate) fn open(&self) -> Result<Recording, Failure> {
        open(&self.dir)
    }
}

/// The recording whose measurement a verb speaks with, beside the words that it has to say.
#[derive(Debug, Args)]
pub(crate) struct SpokenTo {
    /// The recording of a running measurement
    #[arg(
        long = "recording",
        value_name = "RECORDING",
        default_value = "recording",
        env = "MEIKYO_RECORDING"
    )]
    pub(crate) dir: PathBuf,
}

/// Opens a recording for reading.
pub(crate) fn open(dir: &Path) -> Result<Recording, Failure> {
    check_there(dir)?;
    Ok(Recording::open(dir)?)
}

/// Refuses a path at which there is no directory, which otherwise looks as if a recording there had
/// lost its description.
pub(crate) fn check_there(dir: &Path) -> Result<(), Failure> {
    if dir.is_dir() {
        return Ok(());
    }
    let text = match dir.try_exists() {
        Ok(true) => format!("`{}` is a file, and a recording is a directory", dir.display()),
        Ok(false) => format!("there is no directory `{}`", dir.display()),
        Err(error) => {
            return Err(Failure::new(format!("cannot look for `{}`: {error}", dir.display())));
        }
    };
    let named = std::env::var_os("MEIKYO_RECORDING");
    Err(Failure::new(text).hint(match named {
        Some(named) if Path::new(&named) == dir => {
            "MEIKYO_RECORDING names it: set it to the directory of a recording"
        }
        _ => {
            "name the recording's directory, which `meikyo measure --out RECORDING` makes, or set \
             MEIKYO_RECORDING"
        }
    }))
}

/// The cluster file that a verb works on.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgument {
    /// The cluster file
    #[arg(
        long = "cluster",
        value_name = "FILE",
        default_value = "cluster.toml",
        env = "MEIKYO_CLUSTER"
    )]
    pub(crate) file: PathBuf,
}

/// Which rows of which devices and time.
#[derive(Debug, Args)]
pub(crate) struct RowArguments {
    /// Devices: names, folded ranges (node[001-225]), or patterns with * and ?, separated by
    /// commas.
    #[arg(long, value_name = "PATTERN")]
    device: Option<String>,
    /// Only rows with this label, for example interface=eth0; patterns with * and ? match. Can be
    /// repeated.
    #[arg(long = "label", value_name = "LABEL=TEXT")]
    labels: Vec<String>,
    /// The columns, separated by commas.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    #[command(flatten)]
    times: TimeArguments,
}

/// Which span of time of a recording.
#[derive(Debug, Args)]
pub(crate) struct TimeArguments {
    /// From this time: 2026-11-21T20:14:00Z, 2026-11-21, or -15min (before the recording's end)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to this time, exclusive
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl TimeArguments {
    /// The instants that are meant, with `-15min` counted from the end of the rows of `table`.
    pub(crate) fn instants(
        &self,
        recording: &Recording,
        table: &str,
    ) -> Result<(Option<WallTime>, Option<WallTime>), Failure> {
        let time = |text: &Option<String>| {
            text.as_deref().map(|text| instant(text, recording, table)).transpose()
        };
        let (from, to) = (time(&self.from)?, time(&self.to)?);
        check_order(from, to)?;
        Ok((from, to))
    }
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
        let (from, to) = self.times.instants(recording, table)?;
        Ok(Selection { table: table.to_owned(), columns: self.columns.clone(), labels, from, to })
    }
}

/// Refuses a span that ends before it begins.
fn check_order(from: Option<WallTime>, to: Option<WallTime>) -> Result<(), Failure> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => {
            let text = format!("`--from` ({from}) is not before `--to` ({to})");
            let hint = "for example the last minute but one: `--from -2min --to -1min`";
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
fn instant(text: &str, recording: &Recording, table: &str) -> Result<WallTime, Failure> {
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
