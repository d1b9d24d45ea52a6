//! How long a flame graph takes: of a million samples, and of ten, with callers, from blocks as hosts send them.
//!
//! The samples are made: 64 CPUs, a thousand samples a second, stacks of a tree of 4,096 functions that a run
//! time compiler made, so that no file is looked up. The tree must have every sample.

use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_profile::STREAM;
use meikyo_profile::block::{BlockOptions, BlockWriter, Sample};
use meikyo_profile::flame::{Counted, FlameOptions, Grouped, Shape, flame};
use meikyo_profile::symbols::Symbols;
use meikyo_profile::tables::{all, jit_symbols};
use meikyo_profile::wanted::Wanted;
use meikyo_recording::{Kind, Packer, Recording, StreamOptions, StreamWriter, WhenFull};
use meikyo_units::WallTime;
use serde::Serialize;

use crate::placement::own_usage;
use crate::progress;
use crate::statistics::Observations;

const CPUS: u32 = 64;
const SECOND_NS: i64 = 1_000_000_000;
const FUNCTIONS: u64 = 4_096;
const FIRST: u64 = 0x5000_0000;
/// How often each is made.
const TIMES: usize = 5;

/// A flame graph of so many samples.
#[derive(Debug, Serialize)]
pub(super) struct FlameRow {
    samples: u64,
    wall_s: Vec<f64>,
    pub(super) median_wall_s: f64,
    cpu_s: f64,
    reach_wall_s: f64,
}

/// Flame graphs of one and of ten million samples.
pub(super) fn measured(directory: &Path) -> Result<Vec<FlameRow>, Failure> {
    let row = |(samples, reach): (u64, f64)| {
        progress(&format!("flame graph of {samples} samples"));
        one(&directory.join(format!("flames {samples}")), samples, reach)
    };
    [(1_000_000, 0.05), (10_000_000, 0.5)].into_iter().map(row).collect()
}

/// splitmix64: what is made follows from the number.
fn noise(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The stack of a sample, innermost first: function `n` is called by function `n / 4`; few are hot.
fn stack(drawn: u64) -> Vec<u64> {
    let rank = ((drawn & 0xffff) * (drawn >> 16 & 0xffff)) >> 16;
    let innermost = FUNCTIONS - 1 - ((rank * FUNCTIONS) >> 16).min(FUNCTIONS - 1);
    let calls = std::iter::successors(Some(innermost), |of| (*of > 0).then_some(*of / 4));
    calls.map(|function| FIRST + function * 16 + 1).collect()
}

fn made(dir: &Path, samples: u64) -> Result<Recording, Failure> {
    let options =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Measured, STREAM, all(), options)?;
    let mut packer = Packer::new(jit_symbols::schema());
    for function in 0..FUNCTIONS {
        let host = packer.symbol("node001");
        let batch = packer.batch();
        batch.begin_row(0);
        batch.put(jit_symbols::HOST, host);
        batch.put(jit_symbols::PID, 7);
        batch.put(jit_symbols::ADDRESS, FIRST + function * 16);
        batch.put(jit_symbols::SIZE_BYTES, 16);
        batch.put(jit_symbols::FUNCTION, &format!("function_{function}"));
    }
    writer.packed(packer.pack()?)?;
    let options = BlockOptions { stacks: true, cgroups: false, whole_microseconds: false };
    let seconds = samples / u64::from(CPUS) / 1_000 + 1;
    let mut left = samples;
    for second in 0..i64::try_from(seconds).expect("samples of some hours") {
        for cpu in 0..CPUS {
            let mut block = BlockWriter::new("node001", cpu, options);
            for at in 0..left.min(1_000) {
                let number = (second.cast_unsigned() << 24) ^ u64::from(cpu) << 12 ^ at;
                let calls = stack(noise(number));
                let (address, callers) = calls.split_first().expect("the innermost is there");
                block.push(&Sample {
                    time: second * SECOND_NS + at.cast_signed() * 1_000_000,
                    tid: 7,
                    pid: 7,
                    address: *address,
                    cgroup: None,
                    callers: callers.to_vec(),
                });
            }
            left -= left.min(1_000);
            if let Some(rows) = block.finish()? {
                writer.packed(rows)?;
            }
        }
    }
    writer.close()?;
    Ok(Recording::open(dir)?)
}

fn one(dir: &Path, samples: u64, reach_wall_s: f64) -> Result<FlameRow, Failure> {
    let recording = made(dir, samples)?;
    let options = FlameOptions {
        of: Counted::Samples,
        wanted: Wanted::EVERYTHING,
        grouped: Grouped::Together,
        shape: Shape::Merged { than: None },
        samples_max: 2 * samples,
        nodes_max: 20_000,
    };
    let mut symbols = Symbols::of_this_host();
    let mut wall_s = Vec::new();
    let before = own_usage()?.cpu;
    for _ in 0..TIMES {
        let begin = WallTime::now();
        let tree = flame(&recording, &mut symbols, &options)?;
        wall_s.push(WallTime::now().since(begin).as_secs_f64());
        let found = tree.nodes.first().map_or(0, |root| root.total[0]);
        if found != samples {
            return Err(Failure::new(format!("the tree has {found} samples of {samples}")));
        }
    }
    let cpu = own_usage()?.cpu.saturating_sub(before).as_secs_f64();
    let median_wall_s = Observations::new(wall_s.clone()).median().unwrap_or_default();
    let cpu_s = cpu / real(TIMES as u64);
    Ok(FlameRow { samples, wall_s, median_wall_s, cpu_s, reach_wall_s })
}

/// The rows for people.
pub(super) fn text(rows: &[FlameRow]) -> String {
    let line = |row: &FlameRow| {
        let FlameRow { samples, median_wall_s, cpu_s, reach_wall_s, .. } = row;
        format!(
            "flame graph of {samples} samples: {median_wall_s:.3} s, {cpu_s:.3} s of CPU time (aim {reach_wall_s} s)\n"
        )
    };
    rows.iter().map(line).collect()
}
