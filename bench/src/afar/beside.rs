//! Many clusters beside each other on the page, while all of them are received: the view of all, then that of one.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use meikyo_console::benches::afar::AfarBenchArgs;
use meikyo_console::failure::Failure;
use meikyo_units::{Nanos, WallTime};

use super::made::Made;
use crate::live::browser::Browser;
use crate::live::paint::{self, Shot};
use crate::live::replay::{self, Smoothness};
use crate::live::requests::Requests;
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, place_thread, wait_until};
use crate::statistics::Observations;

const EVERY: Nanos = Nanos::from_millis(100);

/// The page has settled before it counts.
const SETTLE: Nanos = Nanos::from_secs(5);

/// How long the end may take.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// What was found.
pub(super) struct Found {
    /// Of the view of all clusters.
    pub(super) all: Smoothness,
    /// The most requests that one panel of that view had under way.
    pub(super) requests_in_flight_max: u32,
    /// From the handing over of an interval's rows until a picture of the screen shows it, of one cluster.
    pub(super) latency_ms: Observations,
    /// Of that view.
    pub(super) one: Smoothness,
}

/// Looks at all clusters for a while, and at one for as long.
pub(super) fn run(args: &AfarBenchArgs) -> Result<Found, Failure> {
    let scratch = tempfile::tempdir()?;
    let recording = scratch.path().join("rec");
    let server = ServerProcess::start_ingesting(&recording, Placement::default())?;
    let authority = server.authority().to_owned();
    let start = |number: u32| Made::start(&authority, &format!("c{number}"), args.devices);
    let senders = (0..args.senders).map(start).collect::<Result<Vec<_>, _>>()?;
    let (stop, stopped) = sync_channel(0);
    let sending = std::thread::spawn(move || send(senders, &stopped));
    let looked = look(&server, scratch.path(), args);
    drop(stop);
    let arrivals = joined(sending)?;
    let (all, requests_in_flight_max, one, shots) = looked?;
    let latency_ms = paint::latencies(&shots, &arrivals.into_iter().collect())?;
    if latency_ms.median().is_none() {
        return Err(Failure::new("no interval was seen on the screen")
            .hint("watch for longer: `--for 20s`, as it is by default"));
    }
    Ok(Found { all, requests_in_flight_max, latency_ms, one })
}

type Looked = (Smoothness, u32, Smoothness, Vec<Shot>);

fn look(
    server: &ServerProcess,
    scratch: &std::path::Path,
    args: &AfarBenchArgs,
) -> Result<Looked, Failure> {
    let mut browser = Browser::start(&scratch.join("profile"))?;
    // Nobody watches yet, and the first rows of the clusters come.
    wait_until(WallTime::now() + SETTLE)?;
    browser.watch_network()?;
    browser.open(&format!("{}#clusters", server.url))?;
    let cards =
        format!("document.querySelectorAll('ul.clusters > li h3').length >= {}", args.senders);
    browser.wait_for(&cards)?;
    wait_until(WallTime::now() + SETTLE)?;
    let mut requests = Requests::default();
    let span = args.span;
    let (all, ()) = replay::watch(&mut browser, |_| Ok(wait_until(WallTime::now() + span)?))?;
    // Whatever is asked of the browser makes it tell what came of requests.
    browser.evaluate("true")?;
    requests.take(&browser.take_network());
    let (most, panel) = requests
        .most_under_way()
        .ok_or_else(|| Failure::new("the view of all clusters asked for nothing"))?;
    crate::progress(&format!("afar: {most} requests under way at most, of the panel `{panel}`"));
    let most = u32::try_from(most).map_err(|_| Failure::new("too many requests to count"))?;
    browser.open(&format!("{}#cluster?rec=c0&bench=1", server.url))?;
    browser.wait_for("window.__meikyo && window.__meikyo.paints > 10")?;
    wait_until(WallTime::now() + SETTLE)?;
    let (one, shots) =
        replay::watch(&mut browser, |browser| paint::shots(browser, WallTime::now() + span))?;
    Ok((all, most, one, shots))
}

/// Hands over the rows of every cluster ten times a second until it is told to stop; when that was, by the
/// number of the interval modulo 2^32.
fn send(mut senders: Vec<Made>, stopped: &Receiver<()>) -> Result<Vec<(u32, WallTime)>, Failure> {
    // They stand for other machines.
    place_thread(Placement::elsewhere(false))?;
    let mut arrivals = Vec::new();
    let mut due = WallTime::now().floor(EVERY) + EVERY;
    while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
        wait_until(due)?;
        // The first is the one that is looked at.
        arrivals.push((paint::low(due, EVERY), WallTime::now()));
        senders.iter_mut().for_each(|sender| sender.interval(due));
        due = due + EVERY;
    }
    senders.into_iter().try_for_each(|sender| sender.finish(PATIENCE))?;
    Ok(arrivals)
}

fn joined<T>(thread: JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().map_err(|_| Failure::new("the sending thread has panicked"))?
}
