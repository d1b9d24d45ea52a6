//! `meikyo export`: tables of a recording as files of their own.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use clap::{Args, ValueEnum};
use meikyo_console::failure::{Answer, Failure};
use meikyo_recording::query::{self, Outcome, View};
use meikyo_recording::schema::Hint;
use meikyo_recording::{ReadError, Recording};
use meikyo_units::Nanos;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::missing_rows;
use crate::row_arguments::{RecordingArgument, RowArguments};
use crate::rows::{Form, RowPrinter};

/// Write tables of a recording as one file each, with exact receive times joined in.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// The tables; all that have rows when none is named.
    tables: Vec<String>,
    /// What kind of files.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// The directory that the files go to; it is made if there is none.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    rows: RowArguments,
    /// Until then, exclusive.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// One row a span, with min, mean and max; counters as rates a second.
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

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
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
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A Parquet file could not be written.
    #[error("cannot write `{path}`")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the writer said.
        source: ParquetError,
    },
    /// The file is there already.
    #[error("`{path}` exists already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

/// Carries out `meikyo export`.
pub(crate) fn run(args: &ExportArgs) -> Result<Answer, Failure> {
    let recording = Recording::open(&args.recording.dir)?;
    let (known, problems) = recording.catalogue()?;
    args.rows.check_devices(&recording)?;
    let tables =
        if args.tables.is_empty() { known.keys().cloned().collect() } else { args.tables.clone() };
    let refused = |source| ExportError::Write { path: args.out.clone(), source };
    fs::create_dir_all(&args.out).map_err(refused)?;
    // Of a table that nobody can read, only this tells.
    let mut all = if args.tables.is_empty() { missing_rows::tell(&problems) } else { Answer::Yes };
    for table in &tables {
        let schema = recording.table(table)?;
        let selection = args.rows.selection(&recording, table, args.until.as_deref())?;
        let view = match args.every {
            Some(span) => View::Every(span),
            None if schema.answers().is_some() && schema.hint(Hint::Answer).is_some() => {
                View::Received
            }
            None => View::Readings,
        };
        if args.tables.is_empty() && recording.span(table)?.is_none() {
            continue;
        }
        let path = args.out.join(format!("{table}.{}", args.to.extension()));
        if path.exists() {
            return Err(Failure::new(ExportError::Exists { path })
                .hint("name another directory with `--out`"));
        }
        let temporary = args.out.join(format!(".{table}.{}.part", args.to.extension()));
        let mut sink = Sink::new(args.to, &temporary);
        let outcome: Result<Outcome, ExportError> =
            query::run(&recording, &selection, view, |rows| sink.write(rows));
        let outcome = outcome?;
        sink.finish()?;
        fs::rename(&temporary, &path)
            .map_err(|source| ExportError::Write { path: path.clone(), source })?;
        if missing_rows::tell(&outcome.problems) == Answer::No {
            all = Answer::No;
        }
    }
    Ok(all)
}

/// A file that is being written; it is made when its columns are known.
struct Sink<'a> {
    format: Format,
    path: &'a Path,
    file: Option<Open>,
}

enum Open {
    Csv(BufWriter<File>, RowPrinter),
    Parquet(Box<ArrowWriter<File>>),
}

impl<'a> Sink<'a> {
    fn new(format: Format, path: &'a Path) -> Self {
        Self { format, path, file: None }
    }

    fn refused(&self) -> impl Fn(io::Error) -> ExportError + 'static {
        let path = self.path.to_path_buf();
        move |source| ExportError::Write { path: path.clone(), source }
    }

    fn unwritten(&self) -> impl Fn(ParquetError) -> ExportError + 'static {
        let path = self.path.to_path_buf();
        move |source| ExportError::Parquet { path: path.clone(), source }
    }

    fn write(&mut self, rows: &RecordBatch) -> Result<(), ExportError> {
        let (refused, unwritten) = (self.refused(), self.unwritten());
        if self.file.is_none() {
            let file = File::create(self.path).map_err(&refused)?;
            self.file = Some(match self.format {
                Format::Csv => Open::Csv(BufWriter::new(file), RowPrinter::new(Form::Csv)),
                Format::Parquet => {
                    let zstd = Compression::ZSTD(ZstdLevel::default());
                    let properties = WriterProperties::builder().set_compression(zstd).build();
                    let writer = ArrowWriter::try_new(file, rows.schema(), Some(properties));
                    Open::Parquet(Box::new(writer.map_err(&unwritten)?))
                }
            });
        }
        match &mut self.file {
            Some(Open::Csv(file, printer)) => {
                file.write_all(printer.render(rows).as_bytes()).map_err(refused)
            }
            Some(Open::Parquet(writer)) => writer.write(rows).map_err(unwritten),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<(), ExportError> {
        let (refused, unwritten) = (self.refused(), self.unwritten());
        match self.file.take() {
            Some(Open::Csv(mut file, _)) => file.flush().map_err(refused),
            Some(Open::Parquet(writer)) => writer.close().map(drop).map_err(unwritten),
            None => Ok(()),
        }
    }
}
