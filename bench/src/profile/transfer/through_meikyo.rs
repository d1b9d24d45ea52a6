//! Samples packed and sent as the agent does it, into `meikyo serve --ingest`.

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_profile::block::{BlockOptions, BlockWriter, Sample};
use meikyo_profile::{STREAM, tables};
use meikyo_recording::PackedRows;
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink, UplinkStatus};
use meikyo_transport::wire::Declared;
use meikyo_units::WallTime;

use super::{AFTERMATH, BEGIN_EVERY, SAMPLES, TIMES, Taken, samples_of};
use crate::placement::{own_usage, wait_until};
use crate::profile::agent::{PATIENCE, received, server};

/// Between two transfers, so that no two samples are of the same instant.
const LATER_NS: i64 = 1_000_000_000_000;

/// Sends some CPUs as often as the paper did.
pub(super) fn measured(seconds: &[Vec<Sample>], cpus: u32, dir: &Path) -> Result<Taken, Failure> {
    let (server, url) = server(dir)?;
    let uplink = uplink(&url)?;
    let (client_before, server_before) = (own_usage()?.cpu, server.cpu()?);
    let (mut sent, mut transfers_s) = (0, Vec::new());
    for time in 0..TIMES {
        let begin = WallTime::now();
        for cpu in 0..cpus {
            let samples = samples_of(seconds, cpu);
            uplink.offer(STREAM, packed(samples, cpu, i64::from(time) * LATER_NS)?)?;
            sent += 1;
        }
        let has_all = |status: &UplinkStatus| status.sender.acknowledged_blocks >= sent;
        let status = uplink.wait(PATIENCE, has_all);
        if !has_all(&status) {
            return Err(Failure::new(format!("not everything was taken: {:?}", status.trouble)));
        }
        transfers_s.push(WallTime::now().since(begin).as_secs_f64());
        wait_until(begin + BEGIN_EVERY)?;
    }
    let client_cpu = own_usage()?.cpu.saturating_sub(client_before);
    wait_until(WallTime::now() + AFTERMATH)?;
    let server_cpu = server.cpu()?.saturating_sub(server_before);
    let wire_bytes = uplink.status().written_bytes;
    uplink.finish(PATIENCE);
    server.terminate()?;
    let (status, _) = server.wait(PATIENCE)?;
    if !status.success() {
        return Err(Failure::new(format!("the server ended with {status}")));
    }
    let (there, expected) = (received(dir)?, u64::from(cpus * TIMES) * SAMPLES as u64);
    if there != expected {
        return Err(Failure::new(format!("{there} samples of {expected} are in the recording")));
    }
    Ok(Taken { transfers_s, client_cpu, server_cpu, wire_bytes, disk_bytes: bytes_below(dir)? })
}

/// A sender that the server has welcomed.
fn uplink(url: &str) -> Result<Uplink, Failure> {
    let authority = url.trim_start_matches("http://").to_owned();
    let target = Target { authority, prefix: String::new(), roots: None, token: None };
    let options = SenderOptions {
        name: "bench".to_owned(),
        cluster: None,
        identity: None,
        boot: WallTime::now().as_nanos().cast_unsigned(),
        machine: String::new(),
        streams: vec![Declared { stream: STREAM.to_owned(), tables: tables::all() }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    let uplink = Uplink::start(target, options, None)?;
    let status = uplink.wait(PATIENCE, |status| status.sender.is_welcome);
    if status.sender.is_welcome {
        Ok(uplink)
    } else {
        Err(Failure::new(format!("no session with the server: {:?}", status.trouble)))
    }
}

/// A block of samples of a CPU, moved to a later time.
fn packed(samples: &[Sample], cpu: u32, later_ns: i64) -> Result<PackedRows, Failure> {
    let options = BlockOptions { stacks: false, cgroups: false, whole_microseconds: false };
    let mut writer = BlockWriter::new("bench", cpu, options);
    for sample in samples {
        let (time, callers) = (sample.time + later_ns, Vec::new());
        writer.push(&Sample { time, callers, ..*sample });
    }
    writer.finish()?.ok_or_else(|| Failure::new("a second has no samples"))
}

/// Octets of all files of a recording.
fn bytes_below(dir: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        bytes += if facts.is_dir() { bytes_below(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}
