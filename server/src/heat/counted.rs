//! Sums of a recording that no heat is kept of: its samples are read and counted.
//!
//! A profile of one program on one host is small. Of what rows from afar are written to, [`super::follow`] keeps
//! rows that are quicker to add up.

use std::collections::BTreeMap;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use meikyo_profile::tables::samples;
use meikyo_recording::{ReadError, Recording};
use meikyo_units::WallTime;

use super::sums::{CELLS_MAX, CoreSums, Selection, Sums, SumsError};
use super::{TILE_NS, TILES};

/// Samples that are read at most.
const SAMPLES_MAX: usize = 20_000_000;

const SECOND_NS: i64 = 1_000_000_000;

/// The first and the last second that a recording has samples of.
pub(super) fn span(recording: &Recording) -> Result<Option<(i64, i64)>, ReadError> {
    let second = |time: WallTime| time.as_nanos().div_euclid(SECOND_NS);
    Ok(recording.span(samples::NAME)?.map(|(first, last)| (second(first), second(last))))
}

/// Counts the samples that are selected.
///
/// # Errors
/// When the recording cannot be read, or has more than are read.
///
/// # Panics
/// When the selection ends before it begins.
pub(super) fn count(recording: &Recording, selection: &Selection) -> Result<Sums, SumsError> {
    let Selection { from_s, until_s, hosts, by_core, .. } = selection;
    let span = usize::try_from(until_s - from_s).expect("it does not end before it begins");
    let at = |second: i64| WallTime::from_nanos(second.saturating_mul(SECOND_NS));
    let labels = match hosts.as_slice() {
        [] => Vec::new(),
        hosts => vec![(samples::HOST.name().to_owned(), hosts.to_vec())],
    };
    let columns = ["time", samples::HOST.name(), samples::CPU.name()];
    let rows = recording.scan(&meikyo_recording::Selection {
        table: samples::NAME.to_owned(),
        columns: Some(columns.map(str::to_owned).to_vec()),
        labels,
        from: Some(at(*from_s)),
        to: Some(at(*until_s)),
    });
    let mut sums = Sums { seconds: vec![0; span], tiles: vec![0; span * TILES], cores: Vec::new() };
    let mut cores: BTreeMap<(String, u32), CoreSums> = BTreeMap::new();
    let mut read = 0;
    for rows in rows.map_err(SumsError::Recording)? {
        let rows = rows.map_err(SumsError::Recording)?;
        read += rows.num_rows();
        if read > SAMPLES_MAX {
            return Err(SumsError::TooManySamples { most: SAMPLES_MAX });
        }
        count_rows(&rows, selection, &mut sums, &mut cores);
        if *by_core && cores.len() * span > CELLS_MAX {
            return Err(SumsError::TooMany { found: cores.len() * span });
        }
    }
    sums.cores = cores.into_values().collect();
    Ok(sums)
}

fn count_rows(
    rows: &RecordBatch,
    Selection { from_s, until_s, cpus, by_core, .. }: &Selection,
    sums: &mut Sums,
    cores: &mut BTreeMap<(String, u32), CoreSums>,
) {
    let times = rows.column_by_name("time");
    let times = times.and_then(|times| times.as_primitive_opt::<TimestampNanosecondType>());
    let times: &[i64] = times.map(|times| &**times.values()).unwrap_or_default();
    let (Some(hosts), Some(numbers)) = (samples::HOST.of(rows), samples::CPU.of(rows)) else {
        return;
    };
    let mut last: Option<(&str, u32)> = None;
    let mut key = (String::new(), 0);
    for (row, &time) in times.iter().enumerate() {
        let (Some(host), Some(cpu)) = (hosts.get(row), numbers.get(row)) else { continue };
        let Ok(cpu) = u32::try_from(cpu) else { continue };
        if !cpus.is_empty() && !cpus.contains(&cpu) {
            continue;
        }
        let second = usize::try_from(time.div_euclid(SECOND_NS) - from_s);
        let second = second.expect("rows before it are not selected");
        let tile = usize::try_from(time.rem_euclid(SECOND_NS) / TILE_NS);
        let tile = tile.expect("it is below 50");
        sums.seconds[second] = sums.seconds[second].saturating_add(1);
        let of_tile = &mut sums.tiles[second * TILES + tile];
        *of_tile = of_tile.saturating_add(1);
        if last != Some((host, cpu)) {
            last = Some((host, cpu));
            key = (host.to_owned(), cpu);
            let span = usize::try_from(until_s - from_s).expect("it does not end before it begins");
            cores.entry(key.clone()).or_insert_with(|| CoreSums {
                host: host.to_owned(),
                cpu,
                samples: 0,
                seconds: vec![0; if *by_core { span } else { 0 }],
            });
        }
        let core = cores.get_mut(&key).expect("it was put in with the first of its samples");
        core.samples += 1;
        if *by_core {
            core.seconds[second] = core.seconds[second].saturating_add(1);
        }
    }
}
