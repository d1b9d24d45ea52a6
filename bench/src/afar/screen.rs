//! From the reading to the screen, with a slow line between collectors and server.
//!
//! Farms and collectors are in one network namespace, server and browser in another; the relay between the two delays
//! packets and loses some of them. What counts as painted is read from the screen, as in `bench live`; when a reading arrived
//! is what the collector's own recording says.

use std::path::{Path, PathBuf};

use meikyo_console::benches::afar::AfarBenchArgs;
use meikyo_console::benches::collect::Speech;
use meikyo_console::failure::Failure;
use meikyo_spaces::line::{self, Condition, Line, LinePlan};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, WallTime};

use crate::cluster_text::ClusterText;
use crate::collector::{Collector, CollectorPlan, Sending};
use crate::farm_process::{FarmPlan, FarmProcess};
use crate::live::browser::Browser;
use crate::live::door::{BROWSER_OPTIONS, Door, needs_root};
use crate::live::paint;
use crate::live::server_process::ServerProcess;
use crate::placement::{Placement, wait_until};
use crate::statistics::Observations;
use crate::values::Values;

/// 100 ms round trip, 20 Mbit/s, a queue of 100 ms.
const LINE: LinePlan = LinePlan {
    rate: BitsPerSecond::new(20_000_000),
    delay: Nanos::from_millis(50),
    queue: Bytes::new(250_000),
    lost_per_million: 0,
};

const EVERY: Nanos = Nanos::from_millis(100);

/// The clusters that are sent; the first of them is looked at.
const CLUSTERS: [&str; 2] = ["watched", "beside"];

/// How long it may take until there is something to look at.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// Names are resolved, connections have found how much the line takes, and the page has settled before it counts.
const SETTLE: Nanos = Nanos::from_secs(5);

/// How long collectors run beyond that: for the server to begin, the browser to open the page, and the end.
const BEYOND: Nanos = Nanos::from_secs(20);

/// What was found.
pub(super) struct Found {
    /// From the arrival of an interval's last answer at the collector until a picture of the screen shows it.
    pub(super) latency_ms: Observations,
    /// Packets that the line lost.
    pub(super) lost_packets: u64,
}

/// Looks at one of several clusters for a while, over a line that loses so many of a million packets.
pub(super) fn run(args: &AfarBenchArgs, lost_per_million: u32) -> Result<Found, Failure> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path();
    let line = Line::make().map_err(needs_root)?;
    line.set(Condition::As(LinePlan { lost_per_million, ..LINE }));
    let door = Door::make(dir, line::ONE)?;
    let token = door.admit_senders(dir)?;
    let received = dir.join("received");
    let serve = || {
        let place = Placement::default();
        ServerProcess::start_ingesting_with(&received, place, |command| door.open(command))
    };
    let server = line.one.within(serve)??;
    let span = SETTLE + args.span + BEYOND;
    let measure = |name: &&str| {
        let sending = Sites {
            dir,
            devices: args.devices,
            span,
            to: &server.url,
            trust: (token.as_path(), &door),
        };
        line.other.within(|| sending.measure(name))?
    };
    let sites = CLUSTERS.iter().map(measure).collect::<Result<Vec<_>, Failure>>()?;
    let deadline = WallTime::now() + PATIENCE;
    let begun = |name: &&str| received.join("clusters").join(name).join("recording.toml").exists();
    while !CLUSTERS.iter().all(begun) {
        if WallTime::now() > deadline {
            let text = format!("the server had no recording of every cluster within {PATIENCE}");
            return Err(Failure::new(text));
        }
        wait_until(WallTime::now() + Nanos::from_millis(20))?;
    }
    let shots =
        line.one.within(|| look(dir, &format!("{}?token={}", server.url, door.token), args))??;
    let carried = line.carried();
    let mut own = Vec::new();
    for Site { farm, collector, recording } in sites {
        let (_, said) = collector.finish_with_summary()?;
        farm.finish()?;
        if said["sent"]["rows_dropped"] != 0 || said["sent"]["blocks_dropped"] != 0 {
            return Err(Failure::new(format!("the line was too slow for what was sent: {said}")));
        }
        own.push(recording);
    }
    drop(server);
    line.finish()?;
    let watched = own.first().expect("at least one cluster is sent");
    let latency_ms = paint::latencies(&shots, &paint::arrivals(watched, EVERY)?)?;
    if latency_ms.median().is_none() {
        return Err(Failure::new("no interval was seen on the screen")
            .hint("watch for longer: `--for 20s`, as it is by default"));
    }
    Ok(Found { latency_ms, lost_packets: carried.lost })
}

/// Looks at the first cluster's page.
fn look(dir: &Path, url: &str, args: &AfarBenchArgs) -> Result<Vec<paint::Shot>, Failure> {
    let profile = dir.join("profile");
    let mut browser = Browser::start_at(&profile, Placement::default(), &BROWSER_OPTIONS)?;
    let [watched, ..] = CLUSTERS;
    browser.open(&format!("{url}#cluster?rec={watched}&bench=1"))?;
    browser.wait_for("window.__meikyo && window.__meikyo.paints > 10")?;
    wait_until(WallTime::now() + SETTLE)?;
    paint::shots(&mut browser, WallTime::now() + args.span)
}

/// A farm and the collector that measures it.
struct Site {
    farm: FarmProcess,
    collector: Collector,
    recording: PathBuf,
}

/// What all sites have in common.
struct Sites<'a> {
    dir: &'a Path,
    devices: u32,
    span: Nanos,
    to: &'a str,
    trust: (&'a Path, &'a Door),
}

impl Sites<'_> {
    /// Starts a farm and a collector that sends what it measures.
    fn measure(&self, name: &str) -> Result<Site, Failure> {
        // They stand for other machines.
        let elsewhere = Placement::elsewhere(false);
        let dir = self.dir.join(name);
        std::fs::create_dir(&dir)?;
        let farm = FarmProcess::start(&FarmPlan {
            agents: self.devices,
            cache: "0s",
            step: EVERY,
            truth: &dir.join("truth"),
            speech: Speech::V2c,
            placement: elsewhere,
        })?;
        let devices = farm.devices(0..self.devices);
        let measure = Values::Five.measure();
        let text =
            ClusterText { name, devices: &devices, speech: Speech::V2c, every: EVERY, measure };
        let recording = dir.join("own");
        let (token, door) = self.trust;
        let collector = Collector::start_sending(
            &CollectorPlan {
                cluster_file: &text.write(&dir)?,
                recording: &recording,
                span: self.span,
                placement: elsewhere,
                realtime: false,
                freshen: false,
            },
            Some(Sending {
                to: self.to.trim_end_matches('/'),
                spool: &dir.join("spool"),
                trust: Some((token, door.roots())),
            }),
        )?;
        Ok(Site { farm, collector, recording })
    }
}
