//! Sums of a recording that no heat is kept of: its samples are read and counted.
//!
//! A profile of one program on one host is small. Of what rows from afar are written to, [`super::follow`] keeps
//! rows that are quicker to add up.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use meikyo_profile::moments::{Moment, moments};
use meikyo_profile::tables::samples;
use meikyo_profile::wanted::Wanted;
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
    let [from, until] = ends(selection);
    let labels = match selection.hosts.as_slice() {
        [] => Vec::new(),
        hosts => vec![(samples::HOST.name().to_owned(), hosts.to_vec())],
    };
    let columns = ["time", samples::HOST.name(), samples::CPU.name()];
    let rows = recording.scan(&meikyo_recording::Selection {
        table: samples::NAME.to_owned(),
        columns: Some(columns.map(str::to_owned).to_vec()),
        labels,
        from: Some(from),
        to: Some(until),
    });
    let mut counter = Counter::new(selection);
    for rows in rows.map_err(SumsError::Recording)? {
        count_rows(&rows.map_err(SumsError::Recording)?, &mut counter)?;
    }
    Ok(counter.sums())
}

/// Counts the samples of some jobs and users among those that are selected.
///
/// # Errors
/// As [`count`].
///
/// # Panics
/// When the selection ends before it begins.
pub(super) fn count_visible(
    recording: &Recording,
    selection: &Selection,
    to: &[String],
) -> Result<Sums, SumsError> {
    let [from, until] = ends(selection).map(Some);
    let cpus = selection.cpus.iter().copied().map(u64::from).collect();
    let (hosts, visible) = (selection.hosts.clone(), to.to_vec());
    let wanted = Wanted { from, until, hosts, cpus, visible, ..Wanted::EVERYTHING };
    let mut counter = Counter::new(selection);
    let mut failed = None;
    let done = moments(recording, &wanted, |Moment { time, host, cpu }| {
        match counter.take(time, host, cpu) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    done.map_err(SumsError::Recording)?;
    failed.map_or_else(|| Ok(counter.sums()), Err)
}

fn ends(selection: &Selection) -> [WallTime; 2] {
    [selection.from_s, selection.until_s]
        .map(|second| WallTime::from_nanos(second.saturating_mul(SECOND_NS)))
}

fn count_rows(rows: &RecordBatch, counter: &mut Counter<'_>) -> Result<(), SumsError> {
    let times = rows.column_by_name("time");
    let times = times.and_then(|times| times.as_primitive_opt::<TimestampNanosecondType>());
    let times: &[i64] = times.map(|times| &**times.values()).unwrap_or_default();
    let (Some(hosts), Some(numbers)) =
        (samples::HOST.values_in(rows), samples::CPU.values_in(rows))
    else {
        return Ok(());
    };
    for (row, &time) in times.iter().enumerate() {
        if let (Some(host), Some(cpu)) = (hosts.get(row), numbers.get(row)) {
            counter.take(time, host, cpu)?;
        }
    }
    Ok(())
}

/// Samples while they are counted.
struct Counter<'a> {
    selection: &'a Selection,
    /// Seconds that are selected.
    span: usize,
    sums: Sums,
    cores: BTreeMap<(String, u32), CoreSums>,
    /// Whose samples were taken last; most often the next one is of the same.
    last: (String, u32),
    read: usize,
}

impl<'a> Counter<'a> {
    fn new(selection: &'a Selection) -> Self {
        let span = usize::try_from(selection.until_s - selection.from_s);
        let span = span.expect("it does not end before it begins");
        let sums = Sums { seconds: vec![0; span], tiles: vec![0; span * TILES], cores: Vec::new() };
        let last = (String::new(), u32::MAX);
        Self { selection, span, sums, cores: BTreeMap::new(), last, read: 0 }
    }

    fn take(&mut self, time: i64, host: &str, cpu: u64) -> Result<(), SumsError> {
        let Selection { from_s, cpus, by_core, .. } = self.selection;
        self.read += 1;
        if self.read > SAMPLES_MAX {
            return Err(SumsError::TooManySamples { most: SAMPLES_MAX });
        }
        let Ok(cpu) = u32::try_from(cpu) else { return Ok(()) };
        if !cpus.is_empty() && !cpus.contains(&cpu) {
            return Ok(());
        }
        let second = usize::try_from(time.div_euclid(SECOND_NS) - from_s);
        let second = second.expect("rows before it are not selected");
        let tile = usize::try_from(time.rem_euclid(SECOND_NS) / TILE_NS);
        let tile = tile.expect("it is below 50");
        let of_second = &mut self.sums.seconds[second];
        *of_second = of_second.saturating_add(1);
        let of_tile = &mut self.sums.tiles[second * TILES + tile];
        *of_tile = of_tile.saturating_add(1);
        if (self.last.0.as_str(), self.last.1) != (host, cpu) {
            self.last = (host.to_owned(), cpu);
            let seconds = if *by_core { self.span } else { 0 };
            self.cores.entry(self.last.clone()).or_insert_with(|| CoreSums {
                host: host.to_owned(),
                cpu,
                samples: 0,
                seconds: vec![0; seconds],
            });
            let found = self.cores.len() * seconds;
            if found > CELLS_MAX {
                return Err(SumsError::TooMany { found });
            }
        }
        let core = self.cores.get_mut(&self.last);
        let core = core.expect("it was put in with the first of its samples");
        core.samples += 1;
        if *by_core {
            core.seconds[second] = core.seconds[second].saturating_add(1);
        }
        Ok(())
    }

    fn sums(self) -> Sums {
        Sums { cores: self.cores.into_values().collect(), ..self.sums }
    }
}
