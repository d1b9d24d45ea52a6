//! Old samples made smaller: rounded to microseconds, and later summed up.
//!
//! [`rounded`] keeps every sample and rounds its time down to whole microseconds, which saves more than an octet of
//! each. [`summed_up`] makes of a block of samples the rows of `summaries` that an agent would have sent of its
//! seconds: the number of all samples, and the places of code with most of them. Counts stay what they were; times
//! within the second, threads, control groups and callers are gone. A second of which the agent has sent a summary
//! has one already, and gets none of nothing.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_recording::{Batch, ColumnKind, PackError, PackedRows, Packer, Symbol, UnpackError};

use crate::analysis::{Analyst, Summary};
use crate::block::Sample;
use crate::tables::{samples, summaries};

const MICROSECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;

/// A second of a CPU: host, CPU, and the second since the epoch.
pub type CpuSecond = (String, u64, i64);

/// Why a block stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    /// It cannot be read.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// What it becomes cannot be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
}

/// The samples of a block with their times rounded down to whole microseconds; `None` where they are that already.
///
/// # Errors
/// When the block is of another table, or damaged.
pub fn rounded(block: &PackedRows) -> Result<Option<PackedRows>, AgeError> {
    let schema = samples::schema();
    let (batch, words) = block.unpack(&schema)?;
    let time = |row| batch.bits(0, row).unwrap_or(0).cast_signed();
    if (0..batch.rows()).all(|row| time(row).rem_euclid(MICROSECOND) == 0) {
        return Ok(None);
    }
    let mut packer = Packer::new(schema.clone());
    for row in 0..batch.rows() {
        let symbols = (1..schema.columns.len()).filter_map(|column| {
            let is_symbol = schema.columns[column].kind == ColumnKind::Symbol;
            let at = is_symbol.then(|| batch.bits(column, row)).flatten()?;
            Some((column, packer.symbol(words.get(usize::try_from(at).ok()?)?)))
        });
        let symbols: Vec<(usize, Symbol)> = symbols.collect();
        let out = packer.batch();
        out.begin_row(time(row) - time(row).rem_euclid(MICROSECOND));
        symbols.into_iter().for_each(|(column, symbol)| out.put_symbol(column, symbol));
        for (column, of) in schema.columns.iter().enumerate().skip(1) {
            match of.kind {
                ColumnKind::Text => {
                    if let Some(text) = batch.text(column, row) {
                        out.put_text(column, text);
                    }
                }
                ColumnKind::U64 => {
                    if let Some(bits) = batch.bits(column, row) {
                        out.put_u64(column, bits);
                    }
                }
                // Samples have no others.
                _ => {}
            }
        }
    }
    Ok(Some(packer.pack()?))
}

/// The seconds of CPUs that a block of `summaries` has the number of all samples of.
///
/// # Errors
/// When the block is of another table, or damaged.
pub fn seconds_of(block: &PackedRows) -> Result<BTreeSet<CpuSecond>, AgeError> {
    let (batch, words) = block.unpack(&summaries::schema())?;
    let second = |row| {
        let is_of_all = batch.bits(summaries::PID.position(), row).is_none();
        is_of_all.then(|| {
            cpu_second(&batch, &words, row, [summaries::HOST.position(), summaries::CPU.position()])
        })
    };
    Ok((0..batch.rows()).filter_map(second).collect())
}

/// The rows of `summaries` in place of a block of samples, where `known` seconds have some already.
///
/// # Errors
/// When the block is of another table, or damaged.
pub fn summed_up(block: &PackedRows, known: &BTreeSet<CpuSecond>) -> Result<PackedRows, AgeError> {
    let (batch, words) = block.unpack(&samples::schema())?;
    let mut seconds: BTreeMap<CpuSecond, Analyst> = BTreeMap::new();
    for row in 0..batch.rows() {
        let columns = [samples::HOST.position(), samples::CPU.position()];
        let of = seconds.entry(cpu_second(&batch, &words, row, columns)).or_default();
        let pid = batch.bits(samples::PID.position(), row).unwrap_or(0);
        of.push(&Sample {
            // Saturates: numbers of processes are narrower on every kernel.
            pid: u32::try_from(pid).unwrap_or(u32::MAX),
            address: batch.bits(samples::ADDRESS.position(), row).unwrap_or(0),
            ..Sample::default()
        });
    }
    let mut packer = Packer::new(summaries::schema());
    for (of, mut analyst) in seconds {
        let mut summary = analyst.end_second(None);
        if known.contains(&of) {
            (summary.samples, summary.places) = (0, Vec::new());
        }
        let (host, cpu, second) = of;
        put_summary(&mut packer, &host, (second.saturating_mul(SECOND), cpu), &summary);
    }
    Ok(packer.pack()?)
}

/// The rows of a second of a CPU that begins at a time: all samples first.
fn put_summary(packer: &mut Packer, host: &str, (time, cpu): (i64, u64), summary: &Summary) {
    let places = summary.places.iter().map(|of| (Some((of.pid, of.address)), of.samples));
    for (place, count) in std::iter::once((None, summary.samples)).chain(places) {
        let host = packer.symbol(host);
        let batch = packer.batch();
        batch.begin_row(time);
        put_place(batch, (host, cpu), place, count);
    }
}

/// What a row of `summaries` says beside its time.
pub(crate) fn put_place(
    batch: &mut Batch,
    (host, cpu): (Symbol, u64),
    place: Option<(u32, u64)>,
    count: u64,
) {
    batch.put(summaries::HOST, host);
    batch.put(summaries::CPU, cpu);
    if let Some((pid, address)) = place {
        batch.put(summaries::PID, pid.into());
        batch.put(summaries::ADDRESS, address);
    }
    batch.put(summaries::SAMPLES, count);
}

/// Which second of which CPU a row is of.
fn cpu_second(batch: &Batch, words: &[String], row: usize, [host, cpu]: [usize; 2]) -> CpuSecond {
    let host = batch.bits(host, row).and_then(|at| words.get(usize::try_from(at).ok()?));
    let second = batch.bits(0, row).unwrap_or(0).cast_signed().div_euclid(SECOND);
    (host.cloned().unwrap_or_default(), batch.bits(cpu, row).unwrap_or(0), second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::block::{self, BlockOptions, BlockWriter};

    fn block_of(samples: &[Sample]) -> PackedRows {
        let options = BlockOptions { stacks: true, cgroups: true, whole_microseconds: false };
        let mut writer = BlockWriter::new("node001", 7, options);
        samples.iter().for_each(|sample| writer.push(sample));
        writer.finish().unwrap().unwrap()
    }

    /// A row of a block of summaries: second, process and address, samples.
    type Row = (i64, Option<(u64, u64)>, u64);

    fn rows(block: &PackedRows) -> Vec<Row> {
        let (batch, _) = block.unpack(&summaries::schema()).unwrap();
        let bits = |column: usize, row| batch.bits(column, row);
        let row = |row| {
            let time = bits(0, row).unwrap().cast_signed();
            assert_eq!(time % SECOND, 0);
            let place =
                bits(summaries::PID.position(), row).zip(bits(summaries::ADDRESS.position(), row));
            (time / SECOND, place, bits(summaries::SAMPLES.position(), row).unwrap())
        };
        (0..batch.rows()).map(row).collect()
    }

    fn samples() -> impl Strategy<Value = Vec<Sample>> {
        let callers = prop::collection::vec(any::<u64>(), 0..4);
        let sample =
            (0_i64..3_000_000_000, 1_u32..4, 0_u64..2_000, prop::option::of(0_u64..3), callers);
        let sample = sample.prop_map(|(time, pid, address, cgroup, callers)| Sample {
            time,
            tid: pid + 100,
            pid,
            address,
            cgroup,
            callers,
        });
        prop::collection::vec(sample, 1..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rounding_changes_times_alone(samples in samples()) {
            let block = block_of(&samples);
            let Some(rounded) = rounded(&block).unwrap() else {
                prop_assert!(samples.iter().all(|sample| sample.time % 1_000 == 0));
                return Ok(());
            };
            let expected = samples.iter().map(|sample| Sample {
                time: sample.time / 1_000 * 1_000,
                ..sample.clone()
            });
            let read = block::read(&rounded).unwrap();
            prop_assert_eq!(read.samples, expected.collect::<Vec<_>>());
            prop_assert_eq!((read.host.as_deref(), read.cpu), (Some("node001"), Some(7)));
            prop_assert_eq!(super::rounded(&rounded).unwrap(), None);
        }

        #[test]
        fn sums_of_seconds_and_places_are_those_of_their_samples(samples in samples()) {
            let rows = rows(&summed_up(&block_of(&samples), &BTreeSet::new()).unwrap());
            for second in 0..3 {
                let of_second: Vec<&Sample> =
                    samples.iter().filter(|sample| sample.time / SECOND == second).collect();
                let all = rows.iter().find(|row| row.0 == second && row.1.is_none());
                let expected = Some(of_second.len() as u64).filter(|&count| count > 0);
                prop_assert_eq!(all.map(|row| row.2), expected);
                let mut places = 0;
                for (_, place, count) in rows.iter().filter(|row| row.0 == second) {
                    let Some((pid, address)) = place else { continue };
                    let is_in = |of: &&&Sample| {
                        u64::from(of.pid) == *pid && of.address / 64 == address / 64
                    };
                    prop_assert_eq!(of_second.iter().filter(is_in).count() as u64, *count);
                    places += 1;
                }
                prop_assert!(places <= crate::analysis::PLACES);
            }
        }
    }

    #[test]
    fn a_second_that_its_agent_has_summed_up_is_not_summed_up_again() {
        let sample = |time| Sample { time, pid: 7, address: 64, ..Sample::default() };
        let block = block_of(&[sample(5), sample(SECOND + 5)]);
        let first = summed_up(&block, &BTreeSet::new()).unwrap();
        let known = seconds_of(&first).unwrap();
        let second = |second| ("node001".to_owned(), 7, second);
        assert_eq!(known, BTreeSet::from([second(0), second(1)]));
        let again = summed_up(&block, &BTreeSet::from([second(1)])).unwrap();
        assert_eq!(rows(&again), [(0, None, 1), (0, Some((7, 64)), 1), (1, None, 0)]);
    }
}
