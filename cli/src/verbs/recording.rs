//! `meikyo recording`: what a recording holds, whether it is whole, and compacting it.

use std::path::Path;

use clap::{Args, Subcommand};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, bytes_text};
use meikyo_console::printable::line;
use meikyo_recording::Kind;
use meikyo_recording::check::{self, CheckReport};
use meikyo_recording::compact::{self, StreamOutcome};
use meikyo_recording::inventory::{self, GAP_LEAST, Inventory};
use meikyo_recording::read::Problem;
use meikyo_units::WallTime;
use serde_json::{Value, json};

use crate::missing_rows;
use crate::row_arguments::RecordingArgument;

/// Show what a recording holds, check that it is complete, compact its log.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show rows, bytes, bytes per day, days left on the disk, and gaps; exit 1 if files are
    /// missing, damaged or foreign
    Info(DirectoryArgs),
    /// Read every byte and report what is damaged or missing, with its place; exit 1 if anything is
    Check(DirectoryArgs),
    /// Turn the logs of streams that nobody is writing into Parquet files
    Compact(DirectoryArgs),
}

/// The recording, and how to print.
#[derive(Debug, Args)]
struct DirectoryArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// If the directory is no recording that this version reads, or cannot be read or written.
pub(crate) fn run(args: &RecordingArgs) -> Result<Answer, Failure> {
    match &args.what {
        What::Info(args) => info(args),
        What::Check(args) => check(args),
        What::Compact(args) => compact(args),
    }
}

fn info(args: &DirectoryArgs) -> Result<Answer, Failure> {
    let inventory = inventory::inventory(args.recording.there()?)?;
    if args.json {
        output::print_json(&info_json(&inventory))?;
    } else {
        output::print(&info_text(&args.recording.dir, &inventory))?;
    }
    Ok(missing_rows::tell(&inventory.problems))
}

fn info_json(inventory: &Inventory) -> Value {
    let nanos = |time: WallTime| time.as_nanos().to_string();
    let tables: Vec<_> = inventory
        .tables
        .iter()
        .map(|table| {
            json!({
                "table": table.name,
                "rows": table.rows,
                "log_rows": table.log_rows,
                "files": table.files,
                "parquet_bytes": table.parquet_bytes,
                "first_time_ns": table.times.map(|times| nanos(times.0)),
                "last_time_ns": table.times.map(|times| nanos(times.1)),
            })
        })
        .collect();
    let streams: Vec<_> = inventory
        .streams
        .iter()
        .map(|stream| {
            let gaps = stream.gaps.iter();
            let gaps: Vec<_> = gaps
                .map(|(from, to)| json!({ "from_ns": nanos(*from), "to_ns": nanos(*to) }))
                .collect();
            json!({
                "stream": stream.name,
                "live": stream.live,
                "covered_s": stream.covered.as_secs_f64(),
                "gaps": gaps,
            })
        })
        .collect();
    json!({
        "schema": "meikyo.recording.info/1",
        "format": inventory.identity.format,
        "kind": inventory.identity.kind,
        "tables": tables,
        "streams": streams,
        "log_bytes": inventory.log_bytes,
        "parquet_bytes": inventory.parquet_bytes,
        "summary_bytes": inventory.summary_bytes,
        "bytes_a_day": growth(inventory).map(|growth| growth.0),
        "room_bytes": inventory.room_bytes,
        "days_left": growth(inventory).and_then(|growth| growth.1),
        "unverified_files": inventory.unverified_files,
        "problems": problems_json(&inventory.problems),
    })
}

/// How many bytes a day a recording grows by, and for how many days there is room; what is simulated does not
/// go on.
fn growth(inventory: &Inventory) -> Option<(u64, Option<u64>)> {
    let goes_on = inventory.identity.kind == Kind::Measured;
    let bytes = inventory.bytes_a_day().filter(|_| goes_on)?;
    Some((bytes, inventory.days_left()))
}

fn info_text(dir: &Path, inventory: &Inventory) -> String {
    let identity = &inventory.identity;
    let mut text = format!(
        "recording {}: {}, format {}, {}\n\n",
        dir.display(),
        identity.kind.word(),
        identity.format,
        line(&identity.created_by),
    );
    let mut tables =
        TextTable::new(&["table", "rows", "in the log", "files", "bytes", "first", "last"]);
    for table in &inventory.tables {
        let time =
            |time: Option<WallTime>| time.map_or_else(|| "-".into(), |time| time.to_string());
        tables.row([
            table.name.clone(),
            table.rows.to_string(),
            table.log_rows.to_string(),
            table.files.to_string(),
            table.parquet_bytes.to_string(),
            time(table.times.map(|times| times.0)),
            time(table.times.map(|times| times.1)),
        ]);
    }
    text += &tables.to_string();
    text += &format!(
        "\nParquet {}, summaries {}, log {}\n",
        bytes_text(inventory.parquet_bytes),
        bytes_text(inventory.summary_bytes),
        bytes_text(inventory.log_bytes),
    );
    let growth = growth(inventory);
    if let Some((bytes, _)) = growth {
        text += &format!("{} a day of measuring at this rate\n", bytes_text(bytes));
    }
    if let Some(room) = inventory.room_bytes {
        let days = growth.and_then(|growth| growth.1);
        let days = days.map(|days| format!(": {days} days at this rate"));
        text += &format!("{} are free on the disk{}\n", bytes_text(room), days.unwrap_or_default());
    }
    if inventory.unverified_files > 0 {
        text += &unverified(inventory.unverified_files);
    }
    for stream in &inventory.streams {
        let live = if stream.live { "being written" } else { "not being written" };
        let covered = stream.covered.as_secs_f64();
        let gaps = stream.gaps.len();
        text += &format!(
            "stream {}: {live}, {covered:.1} s covered, gaps of {GAP_LEAST} or more: {gaps}\n",
            line(&stream.name)
        );
        for (from, to) in &stream.gaps {
            let span = to.since(*from).as_secs_f64();
            text += &format!("  nothing from {from} to {to} ({span:.1} s)\n",);
        }
    }
    text
}

fn problems_json(problems: &[Problem]) -> Vec<Value> {
    let problems = problems.iter();
    problems.map(|problem| json!({ "path": problem.path, "what": problem.what })).collect()
}

/// What is said of files without checksums.
fn unverified(files: u64) -> String {
    format!(
        "{files} files have no checksums, an earlier version wrote them: unverified, a changed value \
         in them can stay unseen\n"
    )
}

fn check(args: &DirectoryArgs) -> Result<Answer, Failure> {
    let report = check::check(args.recording.there()?)?;
    if args.json {
        output::print_json(&check_json(&report))?;
    } else {
        output::print(&check_text(&report))?;
    }
    Ok(if report.damage.is_empty() { Answer::Yes } else { Answer::No })
}

fn check_json(report: &CheckReport) -> Value {
    let damage = report.damage.iter();
    let damage: Vec<_> = damage
        .map(|damage| json!({ "path": damage.path, "at_byte": damage.at, "what": damage.what }))
        .collect();
    json!({
        "schema": "meikyo.recording.check/1",
        "whole": damage.is_empty(),
        "segments": report.segments,
        "files": report.files,
        "rows": report.rows,
        "torn_bytes": report.torn_bytes,
        "hidden_files": report.hidden_files,
        "unverified_files": report.unverified_files,
        "damage": damage,
    })
}

fn check_text(report: &CheckReport) -> String {
    let mut text = format!(
        "{} rows read from {} segments and {} Parquet files\n",
        report.rows, report.segments, report.files
    );
    if report.torn_bytes > 0 {
        text += &format!(
            "{} bytes at the end of the log are a torn frame; the next writer removes them\n",
            report.torn_bytes
        );
    }
    if report.hidden_files > 0 {
        text += &format!(
            "{} files of an unfinished compaction do not count; the next one removes them\n",
            report.hidden_files
        );
    }
    if report.unverified_files > 0 {
        text += &unverified(report.unverified_files);
    }
    for damage in &report.damage {
        let at = damage.at.map(|at| format!(", byte {at}")).unwrap_or_default();
        let what = format!("damaged: {}{at}: {}", damage.path.display(), damage.what);
        text += &format!("{}\n  remedy: {}\n", line(&what), line(&remedy(&damage.path)));
    }
    text += if report.damage.is_empty() { "whole\n" } else { "not whole\n" };
    text
}

/// What to do about a damaged file, by what it is.
fn remedy(path: &Path) -> String {
    let shown = path.display();
    if std::fs::symlink_metadata(path).is_err() {
        return "put it back from a copy of the recording; everything else is still read"
            .to_owned();
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => format!(
            "put back the file that was written there from a copy of the recording; if it was never \
             part of it, move it away (`mv {shown} .`); everything else is still read"
        ),
        Some("damaged") => format!(
            "all intact frames of it were kept; if you do not want to recover anything from it: `rm {shown}`"
        ),
        Some("unknown") => format!(
            "a version of meikyo that knows these frames wrote them: read the recording with it; the \
             segment is kept as it is, its other rows are in Parquet files; when nothing of the rest \
             is wanted: `rm {shown}`"
        ),
        Some("log") => {
            "whole frames around it are read; `meikyo recording compact` keeps their rows \
                        as Parquet files and puts the segment aside"
                .to_owned()
        }
        _ => "put it back from a copy of the recording; everything else is still read".to_owned(),
    }
}

fn compact(args: &DirectoryArgs) -> Result<Answer, Failure> {
    let dir = args.recording.there()?;
    meikyo_recording::format::read(dir)?;
    let outcomes = compact::compact_recording(dir)?;
    let mut text = String::new();
    let mut streams = Vec::new();
    for (stream, outcome) in outcomes {
        match outcome {
            StreamOutcome::Live => {
                let stream = line(&stream);
                text += &format!("stream {stream} is being written, its writer compacts it\n");
                streams.push(json!({ "stream": stream, "live": true }));
            }
            StreamOutcome::Compacted(made, segments) => {
                text += &format!(
                    "stream {}: {segments} segments, {} rows in {} files of {}\n",
                    line(&stream),
                    made.rows,
                    made.files,
                    bytes_text(made.bytes)
                );
                if made.damaged_bytes > 0 || made.unread_frames > 0 {
                    text += &format!(
                        "  {} bytes and {} frames could not be read; what they are in was renamed to \
                         end in `.damaged`\n",
                        made.damaged_bytes, made.unread_frames
                    );
                }
                if made.unknown_frames > 0 {
                    text += &format!(
                        "  {} frames are of a kind that this version does not know; what they are in \
                         was renamed to end in `.unknown` and is kept\n",
                        made.unknown_frames
                    );
                }
                streams.push(json!({
                    "stream": stream,
                    "live": false,
                    "segments": segments,
                    "rows": made.rows,
                    "files": made.files,
                    "parquet_bytes": made.bytes,
                    "summary_bytes": made.summary_bytes,
                    "damaged_bytes": made.damaged_bytes,
                    "unread_frames": made.unread_frames,
                    "unknown_frames": made.unknown_frames,
                }));
            }
        }
    }
    if args.json {
        output::print_json(&json!({ "schema": "meikyo.recording.compact/1", "streams": streams }))?;
    } else {
        output::print(&text)?;
    }
    Ok(Answer::Yes)
}
