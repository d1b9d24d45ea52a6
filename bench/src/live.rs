//! `meikyo bench live`: from the reading to the screen, in a real browser.
//!
//! Farm, collector, server and Chromium are processes of their own; what counts as painted is read
//! from the screen's pixels. The recordings that are looked at, a day of 256 devices and a minute
//! and a half of 10,000, are made under virtual time where they are not there yet.

mod bad_days;
pub(crate) mod browser;
mod cells;
pub(crate) mod door;
mod history;
pub(crate) mod http;
mod measurement;
mod memory;
pub(crate) mod paint;
pub(crate) mod replay;
pub(crate) mod requests;
pub(crate) mod server_process;
mod viewers;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use meikyo_console::benches::live::{LiveArgs, Part};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, real};
use serde::Serialize;

use crate::collector::product;
use crate::machine::Machine;
use crate::progress;
use bad_days::{BadDay, Trouble};
use server_process::ServerProcess;

/// A recording that is made under virtual time.
struct Made {
    name: &'static str,
    agents: &'static str,
    span: &'static str,
    measure: &'static str,
}

const DAY: Made =
    Made { name: "day", agents: "256", span: "24h", measure: "interface:eth0(out_octets)" };
const WIDE: Made = Made {
    name: "wide",
    agents: "10000",
    span: "90s",
    measure: "interface:eth0(in_octets,out_octets,in_packets,out_packets)",
};

/// What was measured; what was not asked for is absent.
#[derive(Debug, Serialize)]
struct Live {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    numbers: Numbers,
}

#[derive(Debug, Default, Serialize)]
struct Numbers {
    #[serde(skip_serializing_if = "Option::is_none")]
    paint_ms_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paint_ms_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paints_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    main_thread_busy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame_ms_max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_24h_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zoom_ms_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script_gzip_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_rss_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    viewed_server_rss_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_rss_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    viewers_ratio: Option<f64>,
    /// Of no viewers, but of a thread that touches memory where they would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    bystander_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_core: Option<BadDay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_line: Option<BadDay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    many_devices: Option<BadDay>,
}

/// A number beside what it is to reach.
struct Line {
    what: String,
    value: f64,
    decimals: usize,
    reach: f64,
    /// Whether more is better.
    at_least: bool,
}

/// Runs the parts; the answer is whether every number is within reach.
pub(crate) fn run(args: &LiveArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let mut numbers = Numbers::default();
    if wanted(Part::Paint) {
        progress("live: from the reading to the screen");
        let latencies = paint::run(args.span)?;
        numbers.paint_ms_median = Some(observed("an interval on the screen", latencies.median())?);
        numbers.paint_ms_p99 = latencies.percentile(99);
    }
    if wanted(Part::Replay) {
        let recording = made(&args.recordings, &WIDE)?;
        progress("live: 10,000 devices replayed");
        let replay = replay::run(&recording, args.span)?;
        numbers.paints_per_s = Some(replay.paints_per_s);
        numbers.main_thread_busy = Some(replay.main_thread_busy);
        numbers.frame_ms_max = Some(replay.frame_ms_max);
    }
    if wanted(Part::History) {
        let recording = made(&args.recordings, &DAY)?;
        progress("live: a day is opened");
        let scripts = http::first_scripts_gzip_bytes(&ServerProcess::start(&recording)?)?;
        let history = history::run(&recording)?;
        numbers.open_24h_ms = Some(observed("the day's opening", history.open_ms.median())?);
        numbers.zoom_ms_p99 = Some(observed("a zoom", history.zoom_ms.percentile(99))?);
        numbers.script_gzip_bytes = Some(real(scripts as u64));
        numbers.server_rss_bytes = Some(real(history.server_rss.get()));
    }
    if wanted(Part::Viewers) {
        let ratios = viewers::run()?;
        numbers.viewers_ratio = Some(observed("a pair with viewers", ratios.viewers.median())?);
        numbers.bystander_ratio = ratios.bystander.median();
    }
    if wanted(Part::Memory) {
        progress("live: a server with ten viewers, and `top`, at 1,000 devices");
        let held = memory::run()?;
        numbers.viewed_server_rss_bytes = Some(real(held.server.get()));
        numbers.top_rss_bytes = Some(real(held.top.get()));
    }
    if wanted(Part::BusyCore) {
        progress("live: server and browser on one busy core");
        numbers.busy_core = Some(bad_days::run(Trouble::BusyCore, args.span)?);
    }
    if wanted(Part::SlowLine) {
        progress("live: 1 Mbit/s and 100 ms between browser and server");
        numbers.slow_line = Some(bad_days::run(Trouble::SlowLine, args.span)?);
    }
    if wanted(Part::ManyDevices) {
        progress("live: 10,000 devices, read once a second");
        numbers.many_devices = Some(bad_days::run(Trouble::ManyDevices, args.span)?);
    }
    let lines = lines(&numbers);
    let reached = lines.iter().all(Line::is_reached);
    if args.json {
        output::print_json(&Live { schema: "meikyo.bench.live/1", machine, numbers })?;
    } else {
        output::print(&format!("{machine}{}", text_of(&lines)))?;
        if let Some(ratio) = numbers.bystander_ratio {
            let control = "that touches 2 MiB on the agents' core ten times a second";
            output::print(&format!("completion with a bystander {control}, ratio: {ratio:.3}\n"))?;
        }
    }
    Ok(if reached { Answer::Yes } else { Answer::No })
}

/// The number that a part was asked for; a part that saw nothing is no part that reached it.
fn observed(what: &str, value: Option<f64>) -> Result<f64, Failure> {
    value.ok_or_else(|| {
        Failure::new(format!("{what} was not observed once"))
            .hint("watch for longer: `--for 10s`, or `--for 60s` as it is by default")
    })
}

/// The recording, which is made where it is not there yet.
fn made(directory: &Path, what: &Made) -> Result<PathBuf, Failure> {
    let recording = directory.join(what.name);
    let done = directory.join(format!("{}.done", what.name));
    if done.exists() {
        return Ok(recording);
    }
    progress(&format!("live: recording {} of {} devices is made", what.span, what.agents));
    if recording.exists() {
        std::fs::remove_dir_all(&recording)?;
    }
    std::fs::create_dir_all(directory)?;
    let mut agents = product()?;
    agents.args(["farm", "--count", what.agents, "--virtual", what.span]);
    agents.args(["--measure", what.measure, "--out"]).arg(&recording);
    let status = agents.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        return Err(Failure::new(format!("`meikyo farm --virtual` ended with {status}")));
    }
    std::fs::write(done, "")?;
    Ok(recording)
}

fn lines(numbers: &Numbers) -> Vec<Line> {
    let line = |what: &str, value: Option<f64>, decimals, reach, at_least| {
        let what = String::from(what);
        value.map(|value| Line { what, value, decimals, reach, at_least })
    };
    let lines = [
        line("reading received to painted, p99, ms", numbers.paint_ms_p99, 0, 250.0, false),
        line("10,000 devices: new paints a second", numbers.paints_per_s, 2, 9.0, true),
        line("10,000 devices: main thread busy", numbers.main_thread_busy, 2, 0.5, false),
        line("10,000 devices: longest frame, ms", numbers.frame_ms_max, 0, 100.0, false),
        line("24 h opened, median, ms", numbers.open_24h_ms, 0, 500.0, false),
        line("zoom and pan, p99, ms", numbers.zoom_ms_p99, 0, 200.0, false),
        line("first scripts, gzip, bytes", numbers.script_gzip_bytes, 0, 150_000.0, false),
        line("server's memory with 24 h open, bytes", numbers.server_rss_bytes, 0, 3e8, false),
        line(
            "1,000 devices: server's memory with 10 viewers, bytes",
            numbers.viewed_server_rss_bytes,
            0,
            1.5e8,
            false,
        ),
        line("1,000 devices: memory of `top`, bytes", numbers.top_rss_bytes, 0, 6.4e7, false),
        line("completion with 10 viewers, ratio", numbers.viewers_ratio, 3, 1.05, false),
    ];
    let bad_days = [
        ("one busy core", numbers.busy_core),
        ("slow line", numbers.slow_line),
        ("10,000 devices live", numbers.many_devices),
    ];
    let bad_days = bad_days.into_iter().flat_map(|(day, seen)| lines_of(day, seen));
    // What was not asked for has no line.
    lines.into_iter().flatten().chain(bad_days).collect()
}

fn lines_of(day: &str, seen: Option<BadDay>) -> Vec<Line> {
    let Some(seen) = seen else { return Vec::new() };
    let line = |what: &str, value, reach| Line {
        what: format!("{day}: {what}"),
        value,
        decimals: 0,
        reach,
        at_least: false,
    };
    let mut lines = vec![
        line("reading received to painted, p99, ms", seen.paint_ms_p99, 1_000.0),
        line("requests of a panel under way, most", seen.requests_in_flight_max.into(), 2.0),
        line("facts older than 2 s without their age", seen.facts_without_age.into(), 0.0),
    ];
    lines.extend(seen.recovered_ms.map(|ms| line("live again after its end, ms", ms, 2_000.0)));
    lines
}

impl Line {
    fn is_reached(&self) -> bool {
        if self.at_least { self.value >= self.reach } else { self.value <= self.reach }
    }
}

fn text_of(lines: &[Line]) -> String {
    let mut table = TextTable::new(&["what", "measured", "reach", ""]);
    for line in lines {
        let Line { what, value, decimals, reach, at_least } = line;
        let sign = if *at_least { ">=" } else { "<=" };
        table.row([
            what.clone(),
            format!("{value:.decimals$}"),
            format!("{sign} {reach}"),
            if line.is_reached() { "reached" } else { "not reached" }.to_owned(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_and_not_observed_is_no_success() {
        assert!(observed("an interval on the screen", None).is_err());
        let numbers = Numbers { zoom_ms_p99: Some(201.0), ..Numbers::default() };
        let lines = lines(&numbers);
        assert_eq!(lines.len(), 1, "what was not asked for has no line");
        assert!(!lines[0].is_reached());
    }
}
