//! The worst state of each device and pixel, for the red and gold of strips and grids.

use meikyo_recording::layout;
use meikyo_recording::query::{self, View};
use meikyo_recording::read::Wanted;
use meikyo_recording::schema::role::answers;
use meikyo_recording::schema::{Role, State};
use meikyo_recording::summary::SUFFIX;
use meikyo_recording::{ReadError, Selection, TableSchema};
use meikyo_units::{Nanos, WallTime};

use crate::bins::Bins;
use crate::columns::{text, times};
use crate::opened::{FileProblem, Opened, once_a_file};

/// Most devices times pixels of one answer.
const CELLS_MAX: usize = 16_000_000;

/// What is asked for of the devices.
#[derive(Debug, Clone)]
pub struct StatesRequest {
    /// The first instant.
    pub from: WallTime,
    /// The end, exclusive; behind `from`.
    pub to: WallTime,
    /// At most that many and one pixels are answered.
    pub width: u32,
    /// Most rows, at least 1; neighbouring devices are folded into one until they fit.
    pub fold: u32,
    /// Names or patterns of devices, under the label `device`; all when empty.
    pub labels: Vec<(String, Vec<String>)>,
}

/// States per device and pixel.
#[derive(Debug)]
pub struct States {
    /// The pixels, which cover what was asked for.
    pub bins: Bins,
    /// The devices that were not always ok.
    pub rows: Vec<StatesRow>,
    /// Devices a row; 1 when nothing was folded.
    pub series_per_row: u32,
    /// Files that could not be read: what they held is missing.
    pub problems: Vec<FileProblem>,
}

/// The pixels of one device that are worse than ok; columns of equal length.
#[derive(Debug)]
pub struct StatesRow {
    /// Number of the device among the series of answers, or of the row.
    pub series: u32,
    /// The device, or the first one of the row.
    pub device: String,
    /// The pixels that are worse than ok.
    pub of_bins: Vec<u32>,
    /// The worst state of each, by [`State::rank`]: 1 late, 2 skipped, 3 error, 4 missed.
    pub worst: Vec<u8>,
}

/// Why states cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum StatesError {
    /// The recording could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No engine has said how devices answered.
    #[error("the recording has no table that says how devices answered")]
    NoAnswers,
    /// More would be held in memory than one answer may.
    #[error("{devices} devices of {bins} pixels are more than {CELLS_MAX} states")]
    TooMuch {
        /// Devices that were chosen.
        devices: usize,
        /// Pixels of each of them.
        bins: usize,
    },
}

/// Answers a request. Blocks while files are read.
///
/// # Errors
/// When the recording cannot be read or has no answers, or too much is asked for at once.
pub fn read(opened: &Opened, request: &StatesRequest) -> Result<States, StatesError> {
    let StatesRequest { from, to, width, fold, .. } = *request;
    let table = opened.table_for(Role::Answers)?.ok_or(StatesError::NoAnswers)?;
    let summarised = opened.recording.table(&format!("{}{SUFFIX}", table.name)).is_ok();
    let bins = Bins::choose(from, to, width, summarised);
    let chosen = opened.with_series(&table, |series| series.chosen(&request.labels))?;
    if chosen.len().saturating_mul(bins.count()) > CELLS_MAX {
        return Err(StatesError::TooMuch { devices: chosen.len(), bins: bins.count() });
    }
    let mut worst = Worst::new(&chosen, bins);
    let mut problems = opened.series_problems(&table, (from, to));
    let border = if bins.level > 0 {
        let log = opened.recording.log_begin(&table.name)?;
        let border = log.map_or(i64::MAX, |log| log.floor(span_of(bins.level)).as_nanos());
        summaries(opened, &table, bins, border, &mut worst, &mut problems)?;
        border
    } else {
        bins.from
    };
    if border < bins.to {
        let from = border.max(bins.from);
        let span = if bins.level > 0 { bins.level } else { bins.length };
        let selection = Selection {
            columns: Some(vec![answers::STATE.name().into()]),
            labels: request.labels.clone(),
            from: Some(WallTime::from_nanos(from)),
            to: Some(WallTime::from_nanos(bins.to)),
            ..Selection::all(&table.name)
        };
        readings(opened, &table, &selection, span, &mut worst, &mut problems)?;
    }
    let problems = once_a_file(problems);
    let series_per_row = devices_per_row(chosen.len(), fold);
    let rows = opened.with_known_series(&table, |series| {
        worst.rows(series_per_row, |of| series.named(of).into_values().next().unwrap_or_default())
    });
    Ok(States { bins, rows, series_per_row, problems })
}

/// How many devices go into one row, so that there are at most `fold` rows.
fn devices_per_row(devices: usize, fold: u32) -> u32 {
    let devices = u32::try_from(devices).expect("at most `CELLS_MAX` devices");
    devices.div_ceil(fold.max(1)).max(1)
}

fn span_of(ns: i64) -> Nanos {
    Nanos::new(ns.unsigned_abs())
}

/// The worst state of each chosen device and pixel; 0 is ok, or not known.
struct Worst {
    rows: Vec<Option<u32>>,
    chosen: Vec<u32>,
    bins: Bins,
    cells: Vec<u8>,
}

impl Worst {
    fn new(chosen: &[u32], bins: Bins) -> Self {
        let most = chosen.iter().max().map_or(0, |most| *most as usize + 1);
        let mut rows = vec![None; most];
        for (row, &series) in (0..).zip(chosen) {
            rows[series as usize] = Some(row);
        }
        let cells = vec![0; chosen.len() * bins.count()];
        Self { rows, chosen: chosen.to_vec(), bins, cells }
    }

    fn note(&mut self, series: u32, time: i64, state: u8) {
        let row = self.rows.get(series as usize).copied().flatten();
        if let (Some(row), Some(bin)) = (row, self.bins.bin_of(time)) {
            let cell = &mut self.cells[row as usize * self.bins.count() + bin];
            *cell = (*cell).max(state);
        }
    }

    fn rows(&self, per_row: u32, name: impl Fn(u32) -> String) -> Vec<StatesRow> {
        let (width, per_row_usize) = (self.bins.count(), per_row as usize);
        let groups =
            self.chosen.chunks(per_row_usize).zip(self.cells.chunks(width * per_row_usize));
        let mut rows = Vec::new();
        for (number, (devices, cells)) in (0..).zip(groups) {
            let worst = |bin: usize| cells.iter().skip(bin).step_by(width).max().copied();
            let states = (0..).zip((0..width).filter_map(worst)).filter(|(_, state)| *state > 0);
            let (of_bins, worst): (Vec<u32>, Vec<u8>) = states.unzip();
            if !of_bins.is_empty() {
                let series = if per_row == 1 { devices[0] } else { number };
                rows.push(StatesRow { series, device: name(devices[0]), of_bins, worst });
            }
        }
        rows
    }
}

fn note_rows(
    opened: &Opened,
    table: &TableSchema,
    batch: &arrow::array::RecordBatch,
    within: std::ops::Range<i64>,
    worst: &mut Worst,
) -> Result<(), ReadError> {
    let runs = opened.with_known_series(table, |series| series.ordinals_of_runs(batch))?;
    let (times, worst_name) = (times(batch), worst_name());
    for (series, run) in runs {
        for row in run.filter(|&row| within.contains(&times[row])) {
            let state = text(batch, &worst_name, row).map_or(0, State::rank);
            worst.note(series, times[row], state);
        }
    }
    Ok(())
}

/// The column of summaries that has the worst state.
fn worst_name() -> String {
    format!("{}_worst", answers::STATE.name())
}

fn summaries(
    opened: &Opened,
    table: &TableSchema,
    bins: Bins,
    border: i64,
    worst: &mut Worst,
    problems: &mut Vec<FileProblem>,
) -> Result<(), ReadError> {
    let schema = opened.recording.table(&format!("{}{SUFFIX}", table.name))?;
    let hours = layout::hour_of(bins.from)..=layout::hour_of(bins.to - 1);
    let listing = opened.recording.listing(&Wanted { table: Some(&schema.name), hours })?;
    problems.extend(listing.problems.iter().map(|problem| opened.problem(problem)));
    // A file in which all was well has nothing else in its statistics, and no row of it is read.
    let worse = State::words().split_off(1);
    let selection = Selection {
        columns: Some(vec!["time".into(), answers::DEVICE.name().into(), worst_name()]),
        labels: vec![("level_ms".into(), vec![bins.level_ms().to_string()]), (worst_name(), worse)],
        from: Some(WallTime::from_nanos(bins.from)),
        to: Some(WallTime::from_nanos(bins.to)),
        ..Selection::all(&schema.name)
    };
    for file in listing.parquet {
        let mut scan = opened.recording.scan_file(file, schema.clone(), &selection)?;
        for batch in &mut scan {
            note_rows(opened, table, &batch?, i64::MIN..border, worst)?;
        }
        problems.extend(scan.problems().iter().map(|problem| opened.problem(problem)));
    }
    Ok(())
}

fn readings(
    opened: &Opened,
    table: &TableSchema,
    selection: &Selection,
    span: i64,
    worst: &mut Worst,
    problems: &mut Vec<FileProblem>,
) -> Result<(), ReadError> {
    let view = View::Every(span_of(span));
    let from = selection.from.map_or(i64::MIN, WallTime::as_nanos);
    let to = selection.to.map_or(i64::MAX, WallTime::as_nanos);
    let outcome = query::run(&opened.recording, selection, view, |batch| {
        note_rows(opened, table, batch, from..to, worst)
    })?;
    problems.extend(outcome.problems.iter().map(|problem| opened.problem(problem)));
    Ok(())
}
