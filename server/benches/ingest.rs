//! What it costs the server to take samples from afar, and to show a heat map of them.
//!
//! ```text
//! cargo bench -p meikyo-server --bench ingest
//! ```
//!
//! Eight senders, with eight CPUs each, send seconds of a thousand samples over loopback, as fast as they
//! are acknowledged. The server's threads are told from the senders' by their names, and their CPU time is
//! what is counted: connections, the writing and syncing of the recording, the rows of the heat map. Then
//! a heat map of 64 CPUs and one hour is asked for over HTTP. The run ends by comparing the heat map's sums
//! with the samples that were sent; a wrong one fails. One line of JSON is printed for each kind of program.
//!
//! Reach: 10,000 core-seconds a CPU-second of the server, and 200 ms for the heat map (an `InfluxDB` takes
//! about 160 core-seconds a CPU-second).
#![expect(clippy::print_stdout, reason = "a bench prints what it found")]
#![expect(clippy::unwrap_used, reason = "a bench ends at what it does not expect")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock on the wall")]
#![expect(clippy::cast_precision_loss, reason = "counts far below 2^53 are divided")]

use std::path::Path;
use std::time::{Duration, Instant};

use meikyo_profile::block::{BlockOptions, BlockWriter, Sample};
use meikyo_profile::tables::samples;
use meikyo_recording::{Kind, PackedRows, StreamOptions, StreamWriter};
use meikyo_server::{Options, Running};
use meikyo_testing::http;
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink};
use meikyo_transport::wire::Declared;
use meikyo_units::Nanos;
use serde_json::{Value, json};

const HOSTS: u32 = 8;
const CPUS: u32 = 8;
const STREAM: &str = "profile";
/// 2026-11-21T20:00:00Z.
const START_S: i64 = 1_795_291_200;
const SECOND_NS: i64 = 1_000_000_000;
/// How long the slowest machine may take for anything.
const PATIENCE: Nanos = Nanos::from_secs(600);
/// How often it is looked whether the heat map is whole: seldom, since that is the server's work, too.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A program whose samples are sent.
#[derive(Debug, Clone, Copy)]
struct Program {
    name: &'static str,
    processes: u64,
    /// Instructions that samples hit.
    addresses: u64,
}

const PROGRAMS: [Program; 2] = [
    Program { name: "steady loop", processes: 1, addresses: 40 },
    Program { name: "busy mix", processes: 30, addresses: 4_000 },
];

fn main() {
    // `cargo test --benches` and `--list` only want to know that it runs.
    let is_short = std::env::args().any(|argument| argument == "--test" || argument == "--list");
    for program in PROGRAMS {
        println!("{}", ingest(program, if is_short { 2 } else { 60 }));
    }
    println!("{}", heat_map(if is_short { 10 } else { 3_600 }));
}

/// splitmix64: what is sent follows from the number.
fn noise(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

fn block(host: &str, cpu: u32, second: i64, count: i64, program: Program) -> PackedRows {
    let options = BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };
    let mut writer = BlockWriter::new(host, cpu, options);
    let every = SECOND_NS / count;
    for at in 0..count {
        let drawn = noise((second << 24).unsigned_abs() ^ u64::from(cpu) << 16 ^ at.unsigned_abs());
        let jitter = i64::try_from(drawn >> 50).unwrap();
        // A few of them are hot.
        let rank = ((drawn >> 8 & 0xffff) * (drawn >> 24 & 0xffff)) >> 16;
        let process = drawn % program.processes;
        writer.push(&Sample {
            time: (START_S + second) * SECOND_NS + at * every + jitter.min(every - 1),
            tid: u32::try_from(1_000 + process).unwrap(),
            pid: u32::try_from(1_000 + process).unwrap(),
            address: 0x5555_0000_0000 + ((rank * program.addresses) >> 16) * 13,
            cgroup: None,
            callers: Vec::new(),
        });
    }
    writer.finish().unwrap().unwrap()
}

fn serve(dir: &Path) -> (Running, String) {
    let options = Options {
        requests_per_s: std::num::NonZeroU32::new(100_000).unwrap(),
        ingest: Some(dir.to_owned()),
        ..Options::on_loopback(dir)
    };
    let running = meikyo_server::start(&options).unwrap();
    let address = running.urls()[0].split('/').nth(2).unwrap().to_owned();
    (running, address)
}

/// CPU time of the threads that are the server's, ns.
fn server_cpu_ns() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: std::path::PathBuf| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let is_servers = ["server", "ingest", "heat", "recording"];
        let spent = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let spent: u64 = spent.split(' ').next()?.parse().ok()?;
        is_servers.iter().any(|of| name.starts_with(of)).then_some(spent)
    };
    threads.filter_map(|task| of(task.unwrap().path())).sum()
}

fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let of = |entry: std::fs::DirEntry| {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() { bytes_in(&entry.path()) } else { metadata.len() }
    };
    entries.map(of).sum()
}

fn get(address: &str, path: &str) -> Value {
    let answer = http::ask(address, "GET", path, "").unwrap();
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

/// Samples that the heat map has.
fn samples_in_map(map: &Value) -> u64 {
    let sum = |of: &str| map[of].as_array().unwrap().iter().map(|of| of.as_u64().unwrap()).sum();
    let (seconds, tiles): (u64, u64) = (sum("samples"), sum("tiles"));
    assert_eq!(seconds, tiles, "tiles are not the seconds taken apart");
    seconds
}

fn ingest(program: Program, seconds: i64) -> Value {
    const SAMPLES: i64 = 1_000;
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("rec");
    let (running, address) = serve(&recording);
    let all: Vec<Vec<PackedRows>> = (0..HOSTS)
        .map(|host| {
            let name = format!("node{host:03}");
            let of = |second| (0..CPUS).map(move |cpu| (second, cpu));
            let made = (0..seconds).flat_map(of);
            made.map(|(second, cpu)| block(&name, cpu, second, SAMPLES, program)).collect()
        })
        .collect();
    let wire_bytes: usize = all.iter().flatten().map(|rows| rows.payload().len()).sum();
    let (begun, cpu_begun) = (Instant::now(), server_cpu_ns());
    let senders: Vec<_> = all
        .into_iter()
        .zip(0..)
        .map(|(blocks, host)| {
            let target = Target {
                authority: address.clone(),
                prefix: String::new(),
                roots: None,
                token: None,
            };
            std::thread::spawn(move || send(target, &format!("node{host:03}"), blocks))
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let core_seconds = f64::from(HOSTS * CPUS) * seconds as f64;
    let sent = u64::from(HOSTS * CPUS) * (seconds * SAMPLES).unsigned_abs();
    let path =
        format!("/api/v1/recordings/rec/heat?from={START_S}000000&to={}000000", START_S + seconds);
    let deadline = Instant::now() + PATIENCE.to_std();
    while samples_in_map(&get(&address, &path)) < sent {
        assert!(Instant::now() < deadline, "the heat map lacks samples");
        std::thread::sleep(LOOK_EVERY);
    }
    let (wall_s, cpu_s) =
        (begun.elapsed().as_secs_f64(), (server_cpu_ns() - cpu_begun) as f64 / 1e9);
    assert_eq!(samples_in_map(&get(&address, &path)), sent);
    running.stop();
    json!({
        "bench": "ingest",
        "program": program.name,
        "core_seconds": core_seconds,
        "wall_s": wall_s,
        "server_cpu_s": cpu_s,
        "core_seconds_per_cpu_s": core_seconds / cpu_s,
        "wire_bytes_per_sample": wire_bytes as f64 / sent as f64,
        "disk_bytes_per_sample": bytes_in(&recording) as f64 / sent as f64,
    })
}

fn send(target: Target, name: &str, blocks: Vec<PackedRows>) {
    let options = SenderOptions {
        name: name.into(),
        cluster: None,
        identity: None,
        boot: 1,
        machine: String::new(),
        streams: vec![Declared { stream: STREAM.into(), tables: vec![samples::schema()] }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    let uplink = Uplink::start(target, options, None).unwrap();
    for (made, rows) in (0..).zip(blocks) {
        // Never ahead of what the queue holds.
        uplink.wait(PATIENCE, |status| status.accepted_blocks + 500 > made);
        uplink.offer(STREAM, rows).unwrap();
    }
    assert!(uplink.finish(PATIENCE).is_delivered(), "not everything was delivered");
}

/// A heat map of 64 CPUs; its rows are made when the server begins, of blocks with few samples.
fn heat_map(seconds: i64) -> Value {
    const SAMPLES: i64 = 10;
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("rec");
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    let tables = vec![samples::schema()];
    let mut writer =
        StreamWriter::open(&recording, Kind::Measured, STREAM, tables, options).unwrap();
    for second in 0..seconds {
        for core in 0..HOSTS * CPUS {
            let host = format!("node{:03}", core / CPUS);
            writer.packed(block(&host, core % CPUS, second, SAMPLES, PROGRAMS[0])).unwrap();
        }
    }
    writer.close().unwrap();
    let (running, address) = serve(&recording);
    let path =
        format!("/api/v1/recordings/rec/heat?from={START_S}000000&to={}000000", START_S + seconds);
    let sent = u64::from(HOSTS * CPUS) * (seconds * SAMPLES).unsigned_abs();
    let deadline = Instant::now() + PATIENCE.to_std();
    while samples_in_map(&get(&address, &path)) < sent {
        assert!(Instant::now() < deadline, "the heat map lacks samples");
        std::thread::sleep(LOOK_EVERY);
    }
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let begun = Instant::now();
            let answer = http::ask(&address, "GET", &path, "").unwrap();
            let took = begun.elapsed().as_secs_f64() * 1e3;
            assert_eq!(answer.status, 200);
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    running.stop();
    json!({
        "bench": "heat map",
        "cpus": HOSTS * CPUS,
        "seconds": seconds,
        "rows": u64::from(HOSTS * CPUS) * seconds.unsigned_abs(),
        "answer_ms_median": times[times.len() / 2],
        "answer_ms_max": times[times.len() - 1],
    })
}
