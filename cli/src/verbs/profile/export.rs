//! `meikyo profile export`: samples for other programs.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, PrintError};
use meikyo_profile::export::{
    ExportError, ExportOptions, Exported, Format, Hashing, Named, export,
};
use meikyo_profile::tables::samples;
use meikyo_recording::Recording;
use meikyo_recording::unfinished::Unfinished;

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

/// Takes a kind of names in the words of the engine.
fn named_parser() -> impl TypedValueParser<Value = Named> {
    PossibleValuesParser::new(Named::ALL.map(Named::word)).map(|word| {
        let found = Named::ALL.into_iter().find(|of| of.word() == word);
        found.expect("only possible values are let through")
    })
}

/// A file that is not made.
#[derive(Debug, thiserror::Error)]
enum NotCreated {
    #[error("cannot create `{path}`")]
    System { path: PathBuf, source: io::Error },
    #[error("`{path}` exists already")]
    Exists { path: PathBuf },
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
    /// Hash names, so that the file shows where time goes and not whose it is: of all kinds, or with
    /// `=KIND,...` of these. Functions of the kernel keep their names
    #[arg(
        long,
        value_name = "KIND",
        num_args = 0..,
        require_equals = true,
        value_delimiter = ',',
        value_parser = named_parser(),
    )]
    hash_names: Option<Vec<Named>>,
    /// The key of the hashes, in a file, so that several exports have the same names; without it the
    /// key is random and forgotten
    #[arg(long, value_name = "FILE", requires = "hash_names")]
    hash_key: Option<PathBuf>,
    #[command(flatten)]
    chosen: ChosenArgs,
    #[command(flatten)]
    times: TimeArguments,
}

/// A key of hashes that cannot be used.
#[derive(Debug, thiserror::Error)]
enum NoKey {
    #[error("cannot read the key `{path}`")]
    System { path: PathBuf, source: io::Error },
    #[error(
        "the key `{path}` has {found} octets, and names could be found by trying: it needs {KEY_OCTETS}"
    )]
    Short { path: PathBuf, found: usize },
}

/// Octets of a key at least.
const KEY_OCTETS: usize = 16;

/// Octets of it that are used.
const KEY_MAX: u64 = 64;

impl ExportArgs {
    fn hashing(&self) -> Result<Hashing, NoKey> {
        let Some(of) = &self.hash_names else { return Ok(Hashing::default()) };
        let of = if of.is_empty() { &Named::ALL[..] } else { of };
        let path = self.hash_key.clone().unwrap_or_else(|| "/dev/urandom".into());
        let mut key = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(KEY_MAX).read_to_end(&mut key));
        match read {
            Err(source) => Err(NoKey::System { path, source }),
            Ok(found) if found < KEY_OCTETS => Err(NoKey::Short { path, found }),
            Ok(_) => Ok(Hashing::new(of, &key)),
        }
    }
}

/// Carries out `meikyo profile export`.
pub(super) fn run(args: &ExportArgs) -> Result<Answer, Failure> {
    let recording = opened(&args.recording.dir)?;
    let (from, to) = args.times.instants(&recording, samples::NAME)?;
    let options = ExportOptions {
        wanted: args.chosen.wanted([from, to]),
        format: args.format,
        hashing: args.hashing()?,
    };
    let path = &args.out;
    let to_stdout = path.as_os_str() == "-";
    let not_created = |source| Failure::new(NotCreated::System { path: path.clone(), source });
    let exported = if to_stdout {
        write(args, &recording, &options, &mut io::stdout().lock())?
    } else if path.is_file() {
        let exists = NotCreated::Exists { path: path.clone() };
        return Err(Failure::new(exists).hint("name another file with `--out`"));
    } else if path.exists() {
        // A pipe or a device.
        write(args, &recording, &options, &mut File::create(path).map_err(not_created)?)?
    } else {
        let mut file = Unfinished::create(path).map_err(not_created)?;
        let exported = write(args, &recording, &options, &mut file)?;
        if exported.samples > 0 {
            file.finish().map_err(not_created)?;
        }
        exported
    };
    if exported.samples == 0 {
        output::say(&format!("meikyo: there are no samples{} in that span", args.chosen.words()));
        return Ok(Answer::No);
    }
    if !to_stdout {
        output::say(&format!("{} samples in `{}`", exported.samples, path.display()));
    }
    Ok(missing_rows::tell(&exported.problems))
}

/// Writes the samples that are asked for.
fn write(
    args: &ExportArgs,
    recording: &Recording,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Exported, Failure> {
    export(recording, options, out).map_err(|error| match error {
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
    })
}
