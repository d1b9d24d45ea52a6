//! The experiment of the paper: a second of samples of some CPUs, sent ten times, through the `InfluxDB` Python
//! client into a real `InfluxDB`, and through this system, in one run and on the same recorded samples.
//!
//! Transfers begin a second apart, as seconds of samples do. One ends when the other side has answered that
//! it has everything on its disk: an `InfluxDB` answers once its log is synced, this system acknowledges what
//! its recording has synced, which it does at once after a quiet time, and four times a second in the long
//! run. The client's CPU time begins with samples as numbers in memory (a `DataFrame` there, an array here).
//! Both are asked afterwards for how many samples they have.

mod influxdb;
mod through_meikyo;

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_console::output::{TextTable, real};
use meikyo_profile::block::{self, Sample};
use meikyo_recording::PackedRows;
use meikyo_units::Nanos;
use serde::Serialize;

use crate::paper::profile::{SAMPLES, TIMES, TRANSFER_S};
use crate::progress;

/// CPUs that this system is tried with besides.
const MORE_CPUS: [u32; 2] = [200, 1_000];

/// From the begin of a transfer to that of the next one, as `transfer.py` has it, too.
const BEGIN_EVERY: Nanos = Nanos::SECOND;

/// How long what servers do behind their answers is waited for, before their CPU time is read.
const AFTERMATH: Nanos = Nanos::from_millis(500);

/// One way, one number of CPUs; means of the transfers, and what the server kept of all of them.
#[derive(Debug, Serialize)]
pub(super) struct TransferRow {
    through: &'static str,
    cpus: u32,
    transfer_s: f64,
    client_cpu_s: f64,
    server_cpu_s: f64,
    wire_bytes: u64,
    disk_bytes: u64,
    paper_transfer_s: Option<f64>,
    transfers_s: Vec<f64>,
}

/// What a way took for all its transfers of some CPUs.
#[derive(Debug)]
struct Taken {
    transfers_s: Vec<f64>,
    client_cpu: Nanos,
    server_cpu: Nanos,
    wire_bytes: u64,
    disk_bytes: u64,
}

impl Taken {
    fn row(self, through: &'static str, cpus: u32) -> TransferRow {
        let times = u64::from(TIMES);
        let of_one = |span: Nanos| span.as_secs_f64() / f64::from(TIMES);
        TransferRow {
            through,
            cpus,
            transfer_s: self.transfers_s.iter().sum::<f64>() / f64::from(TIMES),
            client_cpu_s: of_one(self.client_cpu),
            server_cpu_s: of_one(self.server_cpu),
            wire_bytes: self.wire_bytes / times,
            disk_bytes: self.disk_bytes / times,
            paper_transfer_s: TRANSFER_S.iter().find(|(of, _)| *of == cpus).map(|(_, s)| *s),
            transfers_s: self.transfers_s,
        }
    }
}

/// Sends the samples of blocks both ways.
pub(super) fn measured(blocks: &[PackedRows], dir: &Path) -> Result<Vec<TransferRow>, Failure> {
    let seconds = core_seconds(blocks)?;
    let mut rows = Vec::new();
    let counts: Vec<u32> = TRANSFER_S.iter().map(|(cpus, _)| *cpus).collect();
    if let Some(python) = influxdb::python() {
        rows.extend(influxdb::measured(python, &seconds, &counts, &dir.join("influxdb"))?);
    } else {
        progress(
            "no InfluxDB with its Python client here (Debian packages influxdb, python3-influxdb and \
             python3-pandas): nothing to compare with",
        );
    }
    for cpus in counts.into_iter().chain(MORE_CPUS) {
        progress(&format!("{cpus} CPUs through meikyo"));
        let dir = dir.join(format!("meikyo {cpus}"));
        rows.push(through_meikyo::measured(&seconds, cpus, &dir)?.row("meikyo", cpus));
    }
    Ok(rows)
}

/// What was sampled, in seconds of a thousand samples.
fn core_seconds(blocks: &[PackedRows]) -> Result<Vec<Vec<Sample>>, Failure> {
    let mut of_cpus = std::collections::BTreeMap::<u64, Vec<Sample>>::new();
    for rows in blocks {
        let read = block::read(rows)?;
        of_cpus.entry(read.cpu.unwrap_or_default()).or_default().extend(read.samples);
    }
    let seconds = of_cpus.values().flat_map(|samples| samples.chunks_exact(SAMPLES));
    let seconds: Vec<_> = seconds.map(<[Sample]>::to_vec).collect();
    if seconds.is_empty() {
        return Err(Failure::new(format!("fewer than {SAMPLES} samples were taken of each CPU"))
            .hint("sample for longer: meikyo bench profile --for 10s"));
    }
    Ok(seconds)
}

/// The samples of a CPU in a transfer: the recorded seconds in turn, each transfer 1,000 s later.
fn samples_of(seconds: &[Vec<Sample>], cpu: u32) -> &[Sample] {
    let at = usize::try_from(cpu).expect("CPUs are few");
    &seconds[at % seconds.len()]
}

/// The rows as a table.
pub(super) fn text(rows: &[TransferRow]) -> String {
    let mut table = TextTable::new(&[
        "through",
        "CPUs",
        "transfer s",
        "paper s",
        "client CPU ms",
        "server CPU ms",
        "wire B a sample",
        "disk B a sample",
    ]);
    for row in rows {
        let samples = f64::from(row.cpus) * real(SAMPLES as u64);
        table.row([
            row.through.to_owned(),
            row.cpus.to_string(),
            format!("{:.3}", row.transfer_s),
            row.paper_transfer_s.map_or_else(String::new, |s| format!("{s:.3}")),
            format!("{:.2}", row.client_cpu_s * 1e3),
            format!("{:.2}", row.server_cpu_s * 1e3),
            format!("{:.2}", real(row.wire_bytes) / samples),
            format!("{:.2}", real(row.disk_bytes) / samples),
        ]);
    }
    format!("a second of {SAMPLES} samples of each CPU, a mean of {TIMES} transfers\n{table}")
}
