//! `meikyo query`: rows of a recording.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, PrintError};
use meikyo_recording::query::{self, View};
use meikyo_recording::{ReadError, Recording};
use meikyo_units::Nanos;

use crate::missing_rows;
use crate::row_arguments::{RecordingArgument, RowArguments};
use crate::rows::{Form, RowPrinter};

/// Print rows of a recording, finished or still being written.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// The table; without it, the tables are listed.
    table: Option<String>,
    #[command(flatten)]
    rows: RowArguments,
    /// One row per span, with min, mean and max; counters as rates per second between the instants
    /// at which the agent really updated them.
    #[arg(long, value_name = "SPAN", conflicts_with_all = ["rate", "received"])]
    every: Option<Nanos>,
    /// Counters as rates per second since the previous reading.
    #[arg(long, conflicts_with = "received")]
    rate: bool,
    /// Include the kernel's receive time of every row.
    #[arg(long)]
    received: bool,
    /// One JSON object per line and row.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Comma-separated values.
    #[arg(long)]
    csv: bool,
}

/// Carries out `meikyo query`.
pub(crate) fn run(args: &QueryArgs) -> Result<Answer, Failure> {
    let recording = args.recording.open()?;
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Table,
    };
    let Some(table) = &args.table else { return list_tables(&recording, form) };
    if let Err(ReadError::UnknownTable { .. }) = recording.table(table) {
        // It may be unknown because all its files are missing.
        missing_rows::tell(&recording.catalogue()?.1);
    }
    args.rows.check_devices(&recording)?;
    let selection = args.rows.selection(&recording, table)?;
    let view = match (args.every, args.rate, args.received) {
        (Some(span), ..) if span == Nanos::ZERO => {
            return Err(Failure::new("the span of `--every` must be longer than 0"));
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
    // Where files are damaged, that is the reason.
    if printed == 0 && outcome.problems.is_empty() {
        let is_of_all =
            selection.labels.is_empty() && (selection.from, selection.to) == (None, None);
        let what = if is_of_all {
            format!("table `{table}` has no rows: nothing of it was measured")
        } else {
            format!("no row of table `{table}` matches these devices and that time")
        };
        output::say(&format!("meikyo: {what}"));
    }
    Ok(missing_rows::tell(&outcome.problems))
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
    Ok(missing_rows::tell(&problems))
}
