//! Samples through the `InfluxDB` Python client into a real `InfluxDB`.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use meikyo_console::failure::Failure;
use meikyo_profile::block::Sample;
use meikyo_testing::influxd;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use super::{AFTERMATH, SAMPLES, TIMES, Taken, TransferRow, samples_of};
use crate::placement::{Placed, Placement, spawn, wait_until};
use crate::profile::agent::PATIENCE;
use crate::progress;

const CLIENT: &str = include_str!("../transfer.py");

/// How often it is looked whether the database has done something.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// The interpreter that is found first, and the one that Debian's packages are for.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// The Python that has the database's client, where that and the database are installed.
pub(super) fn python() -> Option<&'static str> {
    let has = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let has_client = |python: &&str| has(python, &["-c", "import influxdb, pandas"]);
    PYTHONS.into_iter().find(has_client).filter(|_| has("influxd", &["version"]))
}

/// Sends each number of CPUs, to a database of its own.
pub(super) fn measured(
    python: &str,
    seconds: &[Vec<Sample>],
    counts: &[u32],
    dir: &Path,
) -> Result<Vec<TransferRow>, Failure> {
    std::fs::create_dir(dir)?;
    let script = dir.join("transfer.py");
    std::fs::write(&script, CLIENT)?;
    let (database, port) = started(dir, "10m")?;
    let mut all = Vec::new();
    for &cpus in counts {
        progress(&format!("{cpus} CPUs through InfluxDB"));
        let samples = dir.join(format!("{cpus}.csv"));
        std::fs::write(&samples, written(seconds, cpus))?;
        let mut command = Command::new(python);
        command.arg(&script).arg(port.to_string()).arg(name(cpus)).arg(samples);
        command.arg(TIMES.to_string());
        let mut client = Client::start(command)?;
        all.push((cpus, sent(&database, &mut client, cpus)?));
    }
    database.terminate()?;
    database.wait(PATIENCE)?;
    in_files(dir)?;
    let mut rows = Vec::new();
    for (cpus, taken) in all {
        let disk_bytes = bytes_of(&dir.join("data").join(name(cpus)), "tsm")?;
        rows.push(Taken { disk_bytes, ..taken }.row("influxdb", cpus));
    }
    Ok(rows)
}

/// Lets the client send, and compares what the database has then.
fn sent(database: &Placed, client: &mut Client, cpus: u32) -> Result<Taken, Failure> {
    let before = database.cpu()?;
    let taken = client.say_and_hear()?;
    wait_until(WallTime::now() + AFTERMATH)?;
    let server_cpu = database.cpu()?.saturating_sub(before);
    let there = client.say_and_hear()?["samples"].as_u64();
    let expected = u64::from(cpus * TIMES) * SAMPLES as u64;
    if there != Some(expected) {
        return Err(Failure::new(format!("{there:?} of {expected} samples are in InfluxDB")));
    }
    let transfers_s = taken["taken_s"].as_array().into_iter().flatten();
    Ok(Taken {
        transfers_s: transfers_s.filter_map(Value::as_f64).collect(),
        client_cpu: Nanos::from_secs_f64(taken["cpu_s"].as_f64().unwrap_or_default()),
        server_cpu,
        wire_bytes: taken["wire_bytes"].as_u64().unwrap_or_default(),
        disk_bytes: 0,
    })
}

/// The database of an experiment.
fn name(cpus: u32) -> String {
    format!("cpus{cpus}")
}

/// Lines of cpu,time,pid,tid,address.
fn written(seconds: &[Vec<Sample>], cpus: u32) -> String {
    let mut text = String::new();
    for cpu in 0..cpus {
        for sample in samples_of(seconds, cpu) {
            // Its integers have a sign.
            let address = sample.address.cast_signed();
            let Sample { time, pid, tid, .. } = sample;
            writeln!(text, "{cpu},{time},{pid},{tid},{address}")
                .expect("writing to a string cannot fail");
        }
    }
    text
}

/// A database that writes what it holds to files once nothing has come for a span; it listens.
fn started(dir: &Path, idle: &str) -> Result<(Placed, u16), Failure> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = influxd::command(dir, port);
    command.env("INFLUXDB_DATA_CACHE_SNAPSHOT_WRITE_COLD_DURATION", idle);
    let mut database = spawn(command, Placement::default())?;
    let deadline = WallTime::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = database.child().try_wait()? {
            return Err(Failure::new(format!("influxd ended with {status}")));
        }
        if WallTime::now() > deadline {
            return Err(Failure::new(format!("influxd does not listen after {PATIENCE}")));
        }
        wait_until(WallTime::now() + LOOK_EVERY)?;
    }
    Ok((database, port))
}

/// Has everything in the database's own files: each shard that has a log has one. The log of before the start stays.
fn in_files(dir: &Path) -> Result<(), Failure> {
    progress("InfluxDB writes its files");
    let (database, _) = started(dir, "1s")?;
    let deadline = WallTime::now() + PATIENCE;
    let (logs, data) = (dir.join("wal"), dir.join("data"));
    while !are_written(&logs, &data)? {
        if WallTime::now() > deadline {
            return Err(Failure::new(format!("InfluxDB has not written its files in {PATIENCE}")));
        }
        wait_until(WallTime::now() + LOOK_EVERY)?;
    }
    database.terminate()?;
    database.wait(PATIENCE)?;
    Ok(())
}

/// Whether every directory below that has a log has a file in the same place below `data`. A file gets its name when
/// it is whole.
fn are_written(logs: &Path, data: &Path) -> Result<bool, Failure> {
    let mut has_log = false;
    for entry in std::fs::read_dir(logs)? {
        let path = entry?.path();
        if path.is_dir() {
            if !are_written(&path, &data.join(path.file_name().unwrap_or_default()))? {
                return Ok(false);
            }
        } else {
            has_log |= std::fs::metadata(&path).is_ok_and(|facts| facts.len() > 0);
        }
    }
    Ok(!has_log || (data.is_dir() && bytes_of(data, "tsm")? > 0))
}

/// Octets of files of an ending below a directory; one that vanishes meanwhile has none.
fn bytes_of(dir: &Path, ending: &str) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            bytes += bytes_of(&path, ending)?;
        } else if path.extension().is_some_and(|of| of == ending) {
            bytes += std::fs::metadata(&path).map_or(0, |facts| facts.len());
        }
    }
    Ok(bytes)
}

/// The Python program, which does something whenever it is given a line.
struct Client {
    _process: Placed,
    says: ChildStdin,
    hears: BufReader<ChildStdout>,
}

impl Client {
    fn start(mut command: Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = spawn(command, Placement::default())?;
        let missing = || Failure::new("the Python client has no standard input and output");
        let says = process.child().stdin.take().ok_or_else(missing)?;
        let hears = BufReader::new(process.child().stdout.take().ok_or_else(missing)?);
        let mut client = Self { _process: process, says, hears };
        let first = client.hear()?;
        if first.trim() != "ready" {
            return Err(Failure::new(format!("the Python client says `{first}`")));
        }
        Ok(client)
    }

    fn hear(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.hears.read_line(&mut line)?;
        Ok(line)
    }

    fn say_and_hear(&mut self) -> Result<Value, Failure> {
        writeln!(self.says)?;
        let line = self.hear()?;
        serde_json::from_str(&line)
            .map_err(|error| Failure::new(format!("the Python client says `{line}`: {error}")))
    }
}
