//! `meikyo profile export`: samples for other programs.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, PrintError};
use meikyo_profile::export::{ExportError, Format, export};
use meikyo_profile::tables::samples;

use super::chosen::ChosenArgs;
use super::report::opened;
use crate::missing_rows;
use crate::row_arguments::{RecordingArgument, TimeArguments};

/// Takes a format in the words of the engine.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let values = Format::ALL.map(|of| PossibleValue::new(of.name()).help(of.words()));
    PossibleValuesParser::new(values).map(|name| {
        let found = Format::ALL.into_iter().find(|of| of.name() == name);
        found.expect("only possible values are let through")
    })
}

/// A file that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot create `{path}`")]
struct NotCreated {
    path: PathBuf,
    source: io::Error,
}

/// Write samples for other programs
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// The format of the file
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Format,
    /// The file to write; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    #[command(flatten)]
    chosen: ChosenArgs,
    #[command(flatten)]
    times: TimeArguments,
}

/// Carries out `meikyo profile export`.
pub(super) fn run(args: &ExportArgs) -> Result<Answer, Failure> {
    let recording = opened(&args.recording.dir)?;
    let (from, to) = args.times.instants(&recording, samples::NAME)?;
    let wanted = args.chosen.wanted([from, to]);
    let path = &args.out;
    let to_stdout = path.as_os_str() == "-";
    let mut out: Box<dyn Write> = if to_stdout {
        Box::new(io::stdout().lock())
    } else {
        let file = File::create(path);
        Box::new(file.map_err(|source| {
            let path = path.clone();
            Failure::new(NotCreated { path, source })
        })?)
    };
    let exported =
        export(&recording, &wanted, args.format, &mut *out).map_err(|error| match error {
            ExportError::ManyHosts { ref hosts } => {
                let host = hosts.first().map_or("HOST", String::as_str).to_owned();
                let (dir, format) = (args.recording.dir.display(), args.format.name());
                Failure::new(error)
                    .hint(format!("meikyo profile export {dir} --format {format} --host {host}"))
            }
            ExportError::Write(source) if source.kind() == io::ErrorKind::BrokenPipe => {
                Failure::new(PrintError::Closed)
            }
            ExportError::Write(_) | ExportError::Read(_) => Failure::new(error),
        })?;
    if exported.samples == 0 {
        output::say(&format!("meikyo: there are no samples{} in that span", args.chosen.words()));
        return Ok(Answer::No);
    }
    if !to_stdout {
        output::say(&format!("{} samples in `{}`", exported.samples, path.display()));
    }
    Ok(missing_rows::tell(&exported.problems))
}
