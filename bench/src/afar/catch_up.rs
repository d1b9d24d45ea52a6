//! Catching up after a cut, beside what is measured meanwhile.

use std::path::Path;

use meikyo_console::benches::afar::AfarBenchArgs;
use meikyo_console::failure::Failure;
use meikyo_recording::Recording;
use meikyo_units::{Nanos, WallTime};

use super::line::{Line, LinePlan};
use super::made::Made;
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, wait_until};
use crate::statistics::Observations;

/// 20 Mbit/s, 100 ms round trip.
const LINE: LinePlan = LinePlan { bits_per_s: 20_000_000, delay: Nanos::from_millis(50) };

const EVERY: Nanos = Nanos::from_millis(100);

/// How long it may take, whatever the reach.
const PATIENCE: Nanos = Nanos::from_secs(600);

/// Intervals whose rows are handed over before it is looked whether they are in blocks.
const AT_ONCE: i64 = 20;

/// Blocks that wait for an acknowledgement of what is measured now, at most: four tables for a second.
const LIVE_BLOCKS_MAX: u64 = 60;

/// How long after the line was mended delays are not looked at.
const WARM_UP: Nanos = Nanos::from_millis(1_500);

/// What was found; delays are those while older rows were caught up with.
pub(super) struct Found {
    pub(super) seconds: f64,
    pub(super) live_delay_s: Observations,
    pub(super) backlog_bytes: u64,
}

/// Fills a spool with the rows of a cut, and lets the line through.
pub(super) fn run(args: &AfarBenchArgs) -> Result<Found, Failure> {
    let scratch = tempfile::tempdir()?;
    let recording = scratch.path().join("rec");
    let server = ServerProcess::start_ingesting(&recording, Placement::elsewhere(false))?;
    let line = Line::to(server.authority(), LINE)?;
    let mut sender = Made::start(line.authority(), "west", args.devices)?;
    let backlog_bytes = fill(&mut sender, args.cut)?;
    line.mend();
    let handle = sender.forward().handle();
    let welcome_by = WallTime::now() + PATIENCE;
    while !handle.status().sender.is_welcome && WallTime::now() < welcome_by {
        wait_until(WallTime::now() + Nanos::from_millis(5))?;
    }
    let received = recording.join("clusters/west");
    let (begun, mut delays, mut caught_up) = (WallTime::now(), Vec::new(), None);
    let mut due = begun.floor(EVERY) + EVERY;
    while caught_up.is_none() {
        wait_until(due)?;
        sender.interval(due);
        due = due + EVERY;
        let status = handle.status();
        // Rows of the first second were made while nobody was connected, and stand in one block.
        if WallTime::now().since(begun) > WARM_UP {
            delays.push(delay_s(&received)?);
        }
        if status.sender.spool.blocks <= LIVE_BLOCKS_MAX {
            caught_up = Some(WallTime::now());
        }
        if WallTime::now().since(begun) > PATIENCE {
            let trouble = status.trouble.unwrap_or_default();
            let text = format!("not caught up within {PATIENCE}: {trouble}");
            return Err(Failure::new(text));
        }
    }
    let seconds = caught_up.map_or(f64::INFINITY, |at| at.since(begun).as_secs_f64());
    sender.finish(PATIENCE)?;
    Ok(Found { seconds, live_delay_s: Observations::new(delays), backlog_bytes })
}

/// Hands over the rows of a cut as fast as blocks are made of them; the octets of the spool then.
fn fill(sender: &mut Made, cut: Nanos) -> Result<u64, Failure> {
    let handle = sender.forward().handle();
    let intervals =
        i64::try_from(cut.get() / EVERY.get()).expect("a cut is far shorter than 2^63 intervals");
    let mut due = WallTime::now().floor(EVERY).before(cut);
    for interval in 1..=intervals {
        sender.interval(due);
        due = due + EVERY;
        if interval % AT_ONCE == 0 {
            let before = handle.status().accepted_blocks;
            let deadline = WallTime::now() + PATIENCE;
            while handle.status().accepted_blocks == before && WallTime::now() < deadline {
                wait_until(WallTime::now() + Nanos::from_millis(5))?;
            }
        }
    }
    Ok(handle.status().sender.spool.bytes)
}

/// How old the newest answer is that the receiver has.
fn delay_s(received: &Path) -> Result<f64, Failure> {
    let newest = Recording::open(received)?.span("polls")?;
    let newest = newest.map_or_else(WallTime::default, |(_, newest)| newest);
    Ok(WallTime::now().since(newest).as_secs_f64())
}
