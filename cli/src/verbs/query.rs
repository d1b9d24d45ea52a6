//! `meikyo query`: rows of a recording.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, PrintError, instant_text};
use meikyo_recording::query::{self, Outcome, View};
use meikyo_recording::read::Problem;
use meikyo_recording::{ReadError, Recording, Selection};
use meikyo_units::{Nanos, WallTime};

use crate::args::RecordingArgument;
use crate::known_devices;
use crate::rows::{Form, RowPrinter};

/// Print rows of a recording, finished or still being written.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// The table; without it the tables are listed.
    table: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// Until then, exclusive.
    #[arg(long, value_name = "TIME", visible_alias = "to", allow_hyphen_values = true)]
    until: Option<String>,
    /// One row a span, with min, mean and max; counters as rates a second between the instants at
    /// which the agent really updated them.
    #[arg(long, value_name = "SPAN", conflicts_with_all = ["rate", "received"])]
    every: Option<Nanos>,
    /// Counters as rates a second since the reading before.
    #[arg(long, conflicts_with = "received")]
    rate: bool,
    /// With the kernel's receive time of every row.
    #[arg(long)]
    received: bool,
    /// One JSON object a row and line.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Comma-separated values.
    #[arg(long)]
    csv: bool,
}

/// Which rows of which devices and time.
#[derive(Debug, Args)]
pub(crate) struct RowArgs {
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

impl RowArgs {
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
        if let (Some(first), Some(end)) = (from, to)
            && first >= end
        {
            let [first, end] = [first, end].map(instant_text);
            return Err(Failure::new(format!(
                "`--from` ({first}) is not before `--until` ({end})"
            ))
            .hint("for example the last minute but one: `--from -2min --until -1min`"));
        }
        Ok(Selection { table: table.to_owned(), columns: self.columns.clone(), labels, from, to })
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

/// Carries out `meikyo query`.
pub(crate) fn run(args: &QueryArgs) -> Result<Answer, Failure> {
    let recording = Recording::open(&args.recording.dir)?;
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Table,
    };
    let Some(table) = &args.table else { return list_tables(&recording, form) };
    args.rows.check_devices(&recording)?;
    let selection = args.rows.selection(&recording, table, args.until.as_deref())?;
    let view = match (args.every, args.rate, args.received) {
        (Some(span), ..) if span == Nanos::ZERO => {
            return Err(Failure::new("a span of `--every` is longer than 0"));
        }
        (Some(span), ..) => View::Every(span),
        (_, true, _) => View::Rates,
        (_, _, true) => View::Received,
        _ => View::Readings,
    };
    let mut printer = RowPrinter::new(form);
    let mut printed = 0;
    let outcome = query::run(&recording, &selection, view, |rows| {
        printed += rows.num_rows();
        printer.print(rows).map_err(QueryError::Print)
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(QueryError::Print(error)) => return Err(error.into()),
        Err(QueryError::Read(error)) => return Err(error.into()),
    };
    if printed == 0 {
        tell(&format!("no row of table `{table}` is of these devices and that time"));
    }
    Ok(answer(&outcome))
}

/// Why rows could not be printed.
pub(crate) enum QueryError {
    /// The recording could not be read.
    Read(ReadError),
    /// Standard output could not be written.
    Print(PrintError),
}

impl From<ReadError> for QueryError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Tells what could not be read; the answer is no when anything could not.
pub(crate) fn answer(outcome: &Outcome) -> Answer {
    tell_problems(&outcome.problems)
}

/// Tells what is wrong with a recording; the answer is no when anything is: rows may be missing.
pub(crate) fn tell_problems(problems: &[Problem]) -> Answer {
    let texts = problems.iter();
    let texts = texts.map(|problem| format!("`{}`: {}", problem.path.display(), problem.what));
    tell_that_rows_may_be_missing(texts)
}

/// As [`tell_problems`], of problems in words.
pub(crate) fn tell_that_rows_may_be_missing(problems: impl IntoIterator<Item = String>) -> Answer {
    let mut answer = Answer::Yes;
    for problem in problems {
        tell(&format!("{problem}; rows may be missing"));
        answer = Answer::No;
    }
    answer
}

fn tell(message: &str) {
    output::say(&format!("meikyo: {message}"));
}

fn list_tables(recording: &Recording, form: Form) -> Result<Answer, Failure> {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray};

    let (mut names, mut docs, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let (tables, problems) = recording.catalogue()?;
    for (name, table) in tables {
        let span = recording.span(&name)?;
        from.push(span.map(|span| span.0.as_nanos()));
        to.push(span.map(|span| span.1.as_nanos()));
        let of_table: Vec<_> = table.columns.into_iter().map(|column| column.name).collect();
        columns.push(of_table.join(" "));
        docs.push(table.doc);
        names.push(name);
    }
    let text = |texts: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let time = |times: Vec<Option<i64>>| -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC"))
    };
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("table", text(names), false),
        ("from", time(from), true),
        ("to", time(to), true),
        ("about", text(docs), false),
        ("columns", text(columns), false),
    ])?;
    RowPrinter::new(form).print(&rows)?;
    Ok(tell_problems(&problems))
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
