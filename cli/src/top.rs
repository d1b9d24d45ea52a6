//! `meikyo top`: the cluster in a terminal, as btop shows one host.
//!
//! - [`screen`] is the pure core: keys, clicks and steps of the recording change its state.
//! - [`draw`] turns the state into cells; [`once`] prints them, or the values, a single time.
//! - [`session`] feeds it: live from the end of the log, or a past that a thread reads.
//! - [`terminal`] is the thin shell: raw mode, events, signals.
//!
//! It reads what the collector wrote; the collector does not know of it.

mod amounts;
mod draw;
#[cfg(test)]
mod fixture;
mod history;
mod metric;
mod model;
mod once;
mod order;
mod palette;
mod reader;
mod screen;
mod session;
mod terminal;

use std::io::IsTerminal as _;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_recording::{ReadError, Recording};
use meikyo_units::{Nanos, WallTime};

use crate::known_devices;
use crate::missing_rows;
use crate::row_arguments::{RecordingArgument, unfolded};
use metric::Metric;
use palette::{Palette, Theme};
use session::{Session, Subject};

/// Watch a recording in the terminal, live or replayed; ? shows the keys
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    /// Devices: names, folded ranges (node[001-225]), or patterns with * and ?, separated by commas
    #[arg(long, value_name = "PATTERN")]
    device: Option<String>,
    /// The quantity that colours the cells
    #[arg(long, value_enum, default_value = "sent")]
    metric: Metric,
    /// Time between two repaints, 20ms to 60s
    #[arg(long, value_name = "SPAN", default_value = "100ms")]
    every: Nanos,
    /// Colours for a dark or a light background [default: by COLORFGBG, else dark]
    #[arg(long, value_enum)]
    theme: Option<Theme>,
    /// Print one screen as plain text, of the size in COLUMNS and LINES, and exit
    #[arg(long)]
    once: bool,
    /// With --once: print the newest values of all devices as one JSON document
    #[arg(long, requires = "once")]
    json: bool,
}

/// Spans between two repaints that make sense.
const EVERY_RANGE: std::ops::RangeInclusive<Nanos> = Nanos::from_millis(20)..=Nanos::from_secs(60);

/// Shows the recording until the person quits.
///
/// # Errors
/// If there is no recording, it cannot be read, or there is no terminal.
pub(crate) fn run(args: &TopArgs) -> Result<Answer, Failure> {
    if !EVERY_RANGE.contains(&args.every) {
        return Err(Failure::new("`--every` is from 20ms to 60s"));
    }
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !args.once && !interactive {
        return Err(Failure::new("standard input and output are no terminal")
            .hint("print one screen with `meikyo top --once`"));
    }
    let subject = Subject {
        dir: args.recording.there()?.to_owned(),
        devices: args.device.as_deref().map(unfolded).transpose()?,
    };
    if let Some(patterns) = &subject.devices {
        let recording = Recording::open(&subject.dir).map_err(explained)?;
        known_devices::check(&recording, patterns)?;
    }
    let clock = WallTime::now();
    let session = Session::open(subject, args.metric, args.every).map_err(explained)?;
    let watch = session.watch();
    let answer = if args.once {
        once::print(session, clock, args.json)?
    } else {
        terminal::show(session, Palette::of_environment(args.theme))?
    };
    let whole = missing_rows::tell_texts(watch.problems().map_err(explained)?);
    Ok(if whole == Answer::Yes { answer } else { whole })
}

fn explained(error: ReadError) -> Failure {
    let hint = match &error {
        ReadError::Identity(_) => {
            "name the directory that `meikyo measure --out` writes to: `meikyo top DIR`"
        }
        _ => return error.into(),
    };
    Failure::from(error).hint(hint)
}
