//! From a sample to whoever watches: how long it takes until the heat map that the page asks for has it.
//!
//! CPU 0 runs a steady loop, so that each 20 ms of it have samples. An agent samples, a server receives, and
//! the heat map of the last seconds is asked for again and again, as the page does. A part of a second is
//! visible with the first answer in which it has samples; its latency is counted from its begin, so
//! that no sample of it waited longer. Parts before the first answer that was watched are not counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use meikyo_console::failure::Failure;
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;
use serde_json::Value;

use super::agent::{PATIENCE, server};
use crate::collector::product;
use crate::live::http::get_from;
use crate::placement::{Placed, Placement, spawn, wait_until};
use crate::progress;
use crate::statistics::Observations;

/// How often the heat map is asked for while it is watched, which is how often the page asks.
const ASK_EVERY: Nanos = Nanos::from_millis(100);

/// What is not counted: until the server and the agent have noticed that somebody watches.
const SETTLES: Nanos = Nanos::from_secs(3);

/// One way of watching.
#[derive(Debug, Serialize)]
pub(super) struct LatencyRow {
    /// Whether the hosts were asked for blocks of 100 ms.
    pub(super) is_watched: bool,
    parts: usize,
    p50_ms: f64,
    pub(super) p99_ms: f64,
    greatest_ms: f64,
    reach_p99_ms: f64,
}

/// Both ways, each for a span.
pub(super) fn measured(
    steady: &str,
    directory: &Path,
    span: Nanos,
) -> Result<Vec<LatencyRow>, Failure> {
    let row = |(is_watched, reach_ms): (bool, f64)| {
        let name = if is_watched { "watched" } else { "unwatched" };
        progress(&format!("sampled to visible, {name}, {span}"));
        one(steady, &directory.join(name), span, (is_watched, reach_ms))
    };
    [(false, 1_500.0), (true, 300.0)].into_iter().map(row).collect()
}

fn one(
    steady: &str,
    dir: &Path,
    span: Nanos,
    (is_watched, reach_p99_ms): (bool, f64),
) -> Result<LatencyRow, Failure> {
    let (server, url) = server(dir)?;
    let busy = || {
        let mut program = Command::new(steady);
        program.arg("1000000000").stdout(Stdio::null());
        spawn(program, Placement { core: Some(0), realtime: false })
    };
    let _busy: Placed = busy()?;
    let mut agent = product()?;
    agent.args(["profile", "agent", "--budget", "none", "--server", &url]);
    agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let agent = spawn(agent, Placement::default())?;
    let authority = url.split('/').nth(2).unwrap_or_default().to_owned();
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let watch = if is_watched { "&watch=true" } else { "" };
    let path = format!("api/v1/recordings/{name}/heat?from=-5s&cpu=0{watch}");
    let visible = watch_for(&authority, &path, span)?;
    agent.terminate()?;
    agent.wait(PATIENCE)?;
    server.terminate()?;
    server.wait(PATIENCE)?;
    let latencies = Observations::new(visible);
    let parts = latencies.len();
    let percentile = |percent| latencies.percentile(percent);
    let (Some(p50_ms), Some(p99_ms), Some(greatest_ms)) =
        (latencies.median(), percentile(99), percentile(100))
    else {
        return Err(Failure::new("no sample became visible"));
    };
    Ok(LatencyRow { is_watched, parts, p50_ms, p99_ms, greatest_ms, reach_p99_ms })
}

/// Milliseconds from the begin of each part of a second that had samples to the first answer that had them.
fn watch_for(authority: &str, path: &str, span: Nanos) -> Result<Vec<f64>, Failure> {
    // By the begin of a part, µs, the instant at which it was first seen.
    let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
    let mut begin: Option<i64> = None;
    let started = WallTime::now();
    let mut next = started;
    loop {
        next = next + ASK_EVERY;
        wait_until(next)?;
        // Before there is a recording with samples there is no map.
        let answer = get_from(authority, path);
        let now_us = WallTime::now().as_nanos() / 1_000;
        if WallTime::now().since(started) > PATIENCE + span {
            return Err(Failure::new("no sample became visible within a minute"));
        }
        let Ok(body) = answer else { continue };
        let map: Value = serde_json::from_slice(&body)
            .map_err(|error| Failure::new(format!("the heat map: {error}")))?;
        let (Some(from_us), Some(tile_us), Some(tiles)) =
            (map["from_us"].as_i64(), map["tile_us"].as_i64(), map["tiles"].as_array())
        else {
            return Err(Failure::new("the heat map has no tiles"));
        };
        for (at, tile) in (0..).zip(tiles) {
            if tile.as_u64() > Some(0) {
                seen.entry(from_us + at * tile_us).or_insert(now_us);
            }
        }
        if !seen.is_empty() && begin.is_none() {
            begin = Some(now_us);
        }
        let span_us =
            i64::try_from((SETTLES + span).get() / 1_000).expect("2^64 ns are fewer than 2^63 us");
        if let Some(begin) = begin.filter(|begin| now_us - begin >= span_us) {
            let settles_us =
                i64::try_from(SETTLES.get() / 1_000).expect("2^64 ns are fewer than 2^63 us");
            let counted = seen.into_iter().filter(|(part, _)| *part >= begin + settles_us);
            #[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 us")]
            let latency = |(part, at): (i64, i64)| (at - part) as f64 / 1_000.0;
            return Ok(counted.map(latency).collect());
        }
    }
}

/// The rows for people.
pub(super) fn text(rows: &[LatencyRow]) -> String {
    let line = |row: &LatencyRow| {
        let LatencyRow { is_watched, parts, p50_ms, p99_ms, greatest_ms, reach_p99_ms } = row;
        let how = if *is_watched { "watched" } else { "in whole seconds" };
        format!(
            "sampled to visible, {how}: p50 {p50_ms:.0} ms, p99 {p99_ms:.0} ms (aim {reach_p99_ms:.0}), \
             greatest {greatest_ms:.0} ms, of {parts} parts of 20 ms\n"
        )
    };
    rows.iter().map(line).collect()
}
