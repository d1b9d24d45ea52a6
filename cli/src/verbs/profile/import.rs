//! `meikyo profile import`: a `perf.data` file as a recording.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_profile::import::{ImportError, ImportOptions, Imported, import};
use meikyo_recording::PackedRows;
use meikyo_units::WallTime;
use serde_json::json;

use super::record::writer;

/// Make a recording of a file that `perf record` wrote
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What `perf record` has written
    #[arg(value_name = "PERF.DATA")]
    file: PathBuf,
    /// The recording to write; an existing one is continued
    #[arg(long, value_name = "RECORDING", default_value = "recording", env = "MEIKYO_RECORDING")]
    out: PathBuf,
    /// The host's name, in place of the one in the file
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// When the first sample was taken, in RFC 3339 [default: so that the last one was taken when the
    /// file was written]
    #[arg(long, value_name = "TIME")]
    from: Option<jiff::Timestamp>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{path}`")]
struct NotRead {
    path: PathBuf,
    source: io::Error,
}

/// Carries out `meikyo profile import`.
pub(super) fn run(args: &ImportArgs) -> Result<Answer, Failure> {
    let unreadable = |source| NotRead { path: args.file.clone(), source };
    let file = fs::read(&args.file).map_err(unreadable)?;
    let written =
        fs::metadata(&args.file).and_then(|facts| facts.modified()).map_err(unreadable)?;
    let written = jiff::Timestamp::try_from(written).map(wall)?;
    let options = ImportOptions { host: args.host.clone(), begin: args.from.map(wall), written };
    let mut blocks = Vec::new();
    // Nothing is made of a file that is none.
    let imported = import(&file, &options, &mut |block: PackedRows| blocks.push(block));
    let imported = imported.map_err(|error| match error {
        ImportError::NoHost => Failure::new(error).hint("name it with `--host NAME`"),
        _ => Failure::new(error),
    })?;
    let mut writer = writer(&args.out)?;
    for block in blocks {
        writer.packed(block)?;
    }
    let rows_dropped = writer.close()?.counters.rows_dropped;
    print(args, &imported, rows_dropped)?;
    let is_whole = imported.samples > 0 && imported.unread == 0 && rows_dropped == 0;
    Ok(if is_whole { Answer::Yes } else { Answer::No })
}

/// Nanoseconds of a timestamp; those that 64 bits do not hold are the last one that they do.
fn wall(at: jiff::Timestamp) -> WallTime {
    // Saturates, as said above.
    WallTime::from_nanos(i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX))
}

fn print(args: &ImportArgs, imported: &Imported, rows_dropped: u64) -> Result<(), Failure> {
    let Imported { samples, other_samples, lost, unread, host } = imported;
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.profile.import/1", "recording": args.out, "host": host,
            "samples": samples, "samples_of_other_events": other_samples, "lost": lost,
            "records_unread": unread, "rows_dropped": rows_dropped,
        }))?;
        return Ok(());
    }
    let mut text = format!("{samples} samples of {host} in `{}`\n", args.out.display());
    for (count, what) in [
        (*other_samples, "samples of other events were left out"),
        (*lost, "records were lost when the file was made"),
        (*unread, "records could not be read"),
        (rows_dropped, "rows were dropped by the writer"),
    ] {
        if count > 0 {
            text += &format!("{count} {what}\n");
        }
    }
    output::print(&text)?;
    Ok(())
}
