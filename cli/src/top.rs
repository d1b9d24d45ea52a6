//! `meikyo top`: the cluster in a terminal, as btop shows one host.
//!
//! - [`screen`] is the pure core: keys, clicks and steps of the recording change its state.
//! - [`draw`] turns the state into cells; [`once`] prints them, or the values, a single time.
//! - [`clusters`] is the same for the clusters of a receiver beside each other, one of which is opened.
//! - [`session`] feeds it: live from the end of the log, or a past that a thread reads; [`afar`] feeds it with what a
//!   server sends of one of its clusters.
//! - [`terminal`] is the thin shell: raw mode, events, signals.
//!
//! It reads what the collector wrote; the collector does not know of it.

mod afar;
mod amounts;
mod clusters;
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
use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_recording::{ReadError, Recording};
use meikyo_units::{Nanos, WallTime, in_one_line};

use crate::known_devices;
use crate::missing_rows;
use crate::receiver;
use crate::row_arguments::{RecordingArgument, unfolded};
use crate::this_host::ROOTS;
use afar::Afar;
use clusters::gather::{Gathering, Source};
use clusters::{Location, Overview};
use metric::Metric;
use palette::{Palette, Theme};
use screen::Fed;
use session::{Session, Subject};

/// Watch a recording, or the clusters of a receiver, in the terminal; ? shows the keys
///
/// RECORDING may also be the directory of `meikyo serve --ingest`, or the address of such a server: its clusters are
/// shown beside each other.
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
    /// With the address of a server: file with a token for viewing
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// With the address of a server: the trusted certificate authorities, in PEM
    #[arg(long, value_name = "FILE", default_value = ROOTS)]
    tls_roots: PathBuf,
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
    if let Some((name, source)) = several(args)? {
        return show_several(args, name, source);
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

/// Where several clusters are, if the argument names such a place, and what that is called.
fn several(args: &TopArgs) -> Result<Option<(String, Source)>, Failure> {
    let dir = &args.recording.dir;
    let url = dir.to_str().filter(|text| text.contains("://"));
    let found = match url {
        Some(url) => {
            let token = receiver::token(args.token_file.as_deref())?;
            let target = receiver::target("meikyo top", url, &args.tls_roots, token)?;
            Some((target.authority.clone(), Source::at(target)))
        }
        None if args.token_file.is_some() => {
            return Err(Failure::new("`--token-file` is for a server, and no address is named")
                .hint("write for example `meikyo top https://mon.example:8420`"));
        }
        None if clusters::are_below(dir) => Some((dir.display().to_string(), Source::below(dir))),
        None => None,
    };
    if found.is_some() && args.device.is_some() {
        let failure = Failure::new("`--device` names devices of one cluster");
        return Err(failure.hint("name its recording: `meikyo top DIR/clusters/NAME --device ...`"));
    }
    Ok(found)
}

/// Shows the clusters beside each other until the person quits.
fn show_several(args: &TopArgs, name: String, mut source: Source) -> Result<Answer, Failure> {
    let mut overview = Overview::new(name);
    if args.once {
        let found = source.look();
        if let Err(error) = &found.clusters {
            return Err(Failure::new(error.clone()));
        }
        overview.take(found);
        return once::print_clusters(overview, args.json);
    }
    let open = |at: &Location| -> Result<Box<dyn Fed>, String> {
        Ok(match at {
            Location::There(target, recording) => {
                Box::new(Afar::open(target, recording, args.metric, args.every)?)
            }
            Location::Here(dir) => {
                let subject = Subject { dir: dir.clone(), devices: None };
                let session = Session::open(subject, args.metric, args.every);
                let mut session = session.map_err(|error| in_one_line(&error))?;
                session.follow();
                Box::new(session)
            }
        })
    };
    let gathering = Gathering::start(source)?;
    terminal::show_clusters(overview, &gathering, open, Palette::of_environment(args.theme))
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
