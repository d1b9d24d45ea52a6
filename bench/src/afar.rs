//! `meikyo bench afar`: what it takes to send readings to another machine.
//!
//! Octets and the sender's CPU time are those of real collectors that measure a farm, once with `--to` and
//! once without; the recordings at both ends must have the same rows. CPU time is that of the threads which only a
//! collector that sends has, and what the thread that polls takes to hand its rows over, by rows that are made up;
//! what the whole process used beyond one that does not send is printed beside it, and differs from pair to pair by
//! more than sending costs. The receiver's share of a core is
//! that of a real server, which many senders in this process send the rows of an interval to every 100 ms
//! ([`made`]). Catching up goes over a relay that lets 20 Mbit/s through ([`mod@line`]). What is on the screen is
//! read from there, with a relay of packets between collectors and server ([`screen`]), and with many clusters beside
//! each other ([`beside`]).

mod beside;
mod catch_up;
mod line;
mod made;
mod measured;
mod receiver;
mod screen;

use meikyo_console::benches::afar::{AfarBenchArgs, Part};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use serde::Serialize;

use crate::machine::Machine;
use crate::progress;

/// What a number is to reach.
const BYTES_MOVING_MAX: f64 = 2.5;
const BYTES_CACHED_MAX: f64 = 1.0;
const SENDER_US_MAX: f64 = 0.5;
const RECEIVER_PERCENT_MAX: f64 = 30.0;
const CAUGHT_UP_S_MAX: f64 = 60.0;
const LIVE_DELAY_S_MAX: f64 = 1.0;
const SCREEN_MS_MAX: f64 = 350.0;
const SCREEN_LOSSY_MS_MAX: f64 = 700.0;

/// As smooth as 10,000 devices of one cluster (`meikyo bench live`).
const FRAME_MS_MAX: f64 = 100.0;
const BUSY_MAX: f64 = 0.5;
const REQUESTS_MAX: f64 = 2.0;
const ONE_MS_MAX: f64 = 1_000.0;

/// 1 % of the packets.
const LOST_PER_MILLION: u32 = 10_000;

/// What was measured; what was not asked for is absent.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    devices: u32,
    senders: u32,
    #[serde(flatten)]
    numbers: Numbers,
    load_average_1min_after: f64,
}

#[derive(Debug, Default, Serialize)]
struct Numbers {
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_value_moving: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_value_cached_3s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values_kept: Option<u64>,
    /// By pair of runs, what the threads that send used a poll.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sender_us_per_poll_pairs: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_us_per_poll_median: Option<f64>,
    /// What handing a poll's rows over to these threads takes the one that polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_handing_over_us_per_poll: Option<f64>,
    /// The same as the threads while somebody watches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sender_watched_us_per_poll_pairs: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_watched_us_per_poll_median: Option<f64>,
    /// What the whole collector used a poll beyond one that does not send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sender_difference_us_per_poll_pairs: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_difference_us_per_poll_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_percent_of_core: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_polls_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_lag_s_max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caught_up_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live_delay_s_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backlog_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_ms_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_ms_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_lossy_ms_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_lossy_ms_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen_lost_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters_frame_ms_max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters_main_thread_busy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clusters_requests_in_flight_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of_clusters_ms_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of_clusters_ms_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of_clusters_main_thread_busy: Option<f64>,
}

impl Numbers {
    /// What sending takes, µs of CPU time a poll.
    fn sender_us(&self) -> Option<f64> {
        Some(self.sender_us_per_poll_median? + self.sender_handing_over_us_per_poll?)
    }

    fn look_over_a_line(&mut self, args: &AfarBenchArgs) -> Result<(), Failure> {
        progress("afar: from the reading to the screen, 100 ms round trip");
        let whole = screen::run(args, 0)?;
        self.screen_ms_median = whole.latency_ms.median();
        self.screen_ms_p99 = whole.latency_ms.percentile(99);
        progress("afar: the same with 1 % of the packets lost");
        let lossy = screen::run(args, LOST_PER_MILLION)?;
        self.screen_lossy_ms_median = lossy.latency_ms.median();
        self.screen_lossy_ms_p99 = lossy.latency_ms.percentile(99);
        self.screen_lost_packets = Some(lossy.lost_packets);
        Ok(())
    }

    fn look_at_clusters(&mut self, args: &AfarBenchArgs) -> Result<(), Failure> {
        progress("afar: many clusters on the page");
        let found = beside::run(args)?;
        self.clusters_frame_ms_max = Some(found.all.frame_ms_max);
        self.clusters_main_thread_busy = Some(found.all.main_thread_busy);
        self.clusters_requests_in_flight_max = Some(found.requests_in_flight_max);
        self.one_of_clusters_ms_median = found.latency_ms.median();
        self.one_of_clusters_ms_p99 = found.latency_ms.percentile(99);
        self.one_of_clusters_main_thread_busy = Some(found.one.main_thread_busy);
        Ok(())
    }
}

/// Runs the parts; the answer is whether every number is within reach.
pub(crate) fn run(args: &AfarBenchArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let mut numbers = Numbers::default();
    if wanted(Part::Bytes) {
        progress("afar: octets a value, every reading fresh");
        let moving = measured::bytes(args, "0s")?;
        progress("afar: octets a value, with caches of 3 s");
        let cached = measured::bytes(args, "3s")?;
        numbers.bytes_per_value_moving = Some(moving.per_value());
        numbers.bytes_per_value_cached_3s = Some(cached.per_value());
        numbers.values_kept = Some(moving.values + cached.values);
    }
    if wanted(Part::Sender) {
        let cost = measured::sender(args)?;
        numbers.sender_us_per_poll_median = cost.threads.median();
        numbers.sender_us_per_poll_pairs = cost.threads.all().to_vec();
        numbers.sender_handing_over_us_per_poll = Some(cost.handing_over);
        numbers.sender_watched_us_per_poll_median = cost.watched.median();
        numbers.sender_watched_us_per_poll_pairs = cost.watched.all().to_vec();
        numbers.sender_difference_us_per_poll_median = cost.difference.median();
        numbers.sender_difference_us_per_poll_pairs = cost.difference.all().to_vec();
    }
    if wanted(Part::Receiver) {
        progress("afar: a receiver of many senders");
        let receiver = receiver::run(args)?;
        numbers.receiver_percent_of_core = Some(receiver.percent_of_core);
        numbers.receiver_polls_per_s = Some(receiver.polls_per_s);
        numbers.receiver_lag_s_max = Some(receiver.lag_s_max);
    }
    if wanted(Part::CatchUp) {
        progress("afar: catching up after a cut");
        let caught_up = catch_up::run(args)?;
        numbers.caught_up_s = Some(caught_up.seconds);
        numbers.live_delay_s_p99 = caught_up.live_delay_s.percentile(99);
        numbers.backlog_bytes = Some(caught_up.backlog_bytes);
    }
    if wanted(Part::Screen) {
        numbers.look_over_a_line(args)?;
    }
    if wanted(Part::Clusters) {
        numbers.look_at_clusters(args)?;
    }
    let report = Report {
        schema: "meikyo.bench.afar/1",
        machine,
        devices: args.devices,
        senders: args.senders,
        numbers,
        load_average_1min_after: crate::machine::load_average(),
    };
    let lines = lines(&report.numbers);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report, &lines))?;
    }
    let is_reached = lines.iter().all(|(_, value, most)| value <= most);
    Ok(if is_reached { Answer::Yes } else { Answer::No })
}

/// What was measured, and the most that it may be.
fn lines(numbers: &Numbers) -> Vec<(&'static str, f64, f64)> {
    let all = [
        ("octets a value, moving", numbers.bytes_per_value_moving, BYTES_MOVING_MAX),
        ("octets a value, caches of 3 s", numbers.bytes_per_value_cached_3s, BYTES_CACHED_MAX),
        ("CPU of the sender, µs a poll", numbers.sender_us(), SENDER_US_MAX),
        ("receiver, % of a core", numbers.receiver_percent_of_core, RECEIVER_PERCENT_MAX),
        ("lag of the receiver, s", numbers.receiver_lag_s_max, LIVE_DELAY_S_MAX),
        ("caught up, s", numbers.caught_up_s, CAUGHT_UP_S_MAX),
        ("live delay meanwhile, p99, s", numbers.live_delay_s_p99, LIVE_DELAY_S_MAX),
        ("reading to screen, p99, ms", numbers.screen_ms_p99, SCREEN_MS_MAX),
        ("the same with 1 % loss, p99, ms", numbers.screen_lossy_ms_p99, SCREEN_LOSSY_MS_MAX),
        ("all clusters: longest frame, ms", numbers.clusters_frame_ms_max, FRAME_MS_MAX),
        ("all clusters: main thread busy", numbers.clusters_main_thread_busy, BUSY_MAX),
        (
            "all clusters: requests of a panel under way, most",
            numbers.clusters_requests_in_flight_max.map(f64::from),
            REQUESTS_MAX,
        ),
        ("one of them: reading to screen, p99, ms", numbers.one_of_clusters_ms_p99, ONE_MS_MAX),
        ("one of them: main thread busy", numbers.one_of_clusters_main_thread_busy, BUSY_MAX),
    ];
    all.into_iter().filter_map(|(what, value, most)| Some((what, value?, most))).collect()
}

fn text(report: &Report, lines: &[(&'static str, f64, f64)]) -> String {
    let mut table = TextTable::new(&["", "measured", "reach"]);
    for (what, value, most) in lines {
        table.row([(*what).into(), format!("{value:.2}"), format!("<= {most}")]);
    }
    let beside = [
        ("of it, the threads that send", report.numbers.sender_us_per_poll_median),
        ("handing rows over to them", report.numbers.sender_handing_over_us_per_poll),
        ("the threads while somebody watches", report.numbers.sender_watched_us_per_poll_median),
        (
            "whole collector, beyond one that does not send",
            report.numbers.sender_difference_us_per_poll_median,
        ),
    ];
    for (what, value) in beside {
        if let Some(value) = value {
            table.row([what.into(), format!("{value:.2}"), "-".into()]);
        }
    }
    format!("{}\n{table}\n", report.machine)
}
