//! `meikyo export`: tables of a recording as files of their own.

use std::fs;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_live::export::{self, Export};
use meikyo_recording::query::{self, Outcome, View};
use meikyo_recording::unfinished::Unfinished;
use meikyo_recording::{ReadError, Recording};
use meikyo_units::Nanos;

use crate::missing_rows;
use crate::row_arguments::{RecordingArgument, RowArguments};

/// Write tables of a recording to files, with exact receive times joined in.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// The tables [default: all that have rows].
    tables: Vec<String>,
    /// The format of the files.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// The directory for the files; it is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    rows: RowArguments,
    /// One row per span, with min, mean and max; counters as rates per second.
    #[arg(long, value_name = "SPAN")]
    every: Option<Nanos>,
}

/// The kind of file that a table is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Comma-separated values (RFC 4180).
    Csv,
    /// Apache Parquet, compressed with zstd.
    Parquet,
}

impl From<Format> for export::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv,
            Format::Parquet => Self::Parquet,
        }
    }
}

/// Why a table could not be exported.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// The recording could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written.
    #[error("cannot write `{path}`")]
    Write {
        /// File that was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there already.
    #[error("`{path}` exists already")]
    Exists {
        /// File that would have been overwritten.
        path: PathBuf,
    },
}

/// Carries out `meikyo export`.
pub(crate) fn run(args: &ExportArgs) -> Result<Answer, Failure> {
    let recording = args.recording.open()?;
    let (known, problems) = recording.catalogue()?;
    args.rows.check_devices(&recording)?;
    let tables =
        if args.tables.is_empty() { known.keys().cloned().collect() } else { args.tables.clone() };
    let refused = |source| ExportError::Write { path: args.out.clone(), source };
    fs::create_dir_all(&args.out).map_err(refused)?;
    // Of a table that nobody can read, only this tells.
    let mut all = if args.tables.is_empty() { missing_rows::tell(&problems) } else { Answer::Yes };
    for table in &tables {
        if args.tables.is_empty() && recording.span(table)?.is_none() {
            continue;
        }
        if write_table(args, &recording, table)? == Answer::No {
            all = Answer::No;
        }
    }
    Ok(all)
}

/// Writes one table to its file, and says so: a large one takes its time and its room. The answer is no
/// when rows of damaged files are missing in it.
fn write_table(args: &ExportArgs, recording: &Recording, table: &str) -> Result<Answer, Failure> {
    let schema = recording.table(table)?;
    let selection = args.rows.selection(recording, table)?;
    let view = args.every.map_or_else(|| export::view_of(&schema), View::Every);
    let format = export::Format::from(args.format);
    let path = args.out.join(format!("{table}.{}", format.extension()));
    if path.exists() {
        return Err(
            Failure::new(ExportError::Exists { path }).hint("name another directory with `--out`")
        );
    }
    let written = |source| ExportError::Write { path: path.clone(), source };
    let file = Unfinished::create(&path).map_err(written)?;
    let mut export = Export::new(format, BufWriter::new(file));
    let mut count = 0;
    let outcome = query::run(recording, &selection, view, |rows| {
        count += rows.num_rows();
        export.write(rows).map_err(written)
    });
    let outcome: Outcome = outcome?;
    let file = export.finish().and_then(|file| Ok(file.into_inner()?));
    file.and_then(Unfinished::finish).map_err(written)?;
    let bytes = fs::metadata(&path).map_err(written)?.len();
    output::say(&format!("{}: {count} rows, {}", path.display(), output::bytes_text(bytes)));
    Ok(missing_rows::tell(&outcome.problems))
}
