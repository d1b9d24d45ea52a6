//! How well a recording was measured: states over time for the time bar, and who is silent.
//!
//! The counts come from the table of role `health`, one row an interval; of a finished file they are
//! kept a second at a time, so that the bar of a day is drawn from memory the second time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use meikyo_recording::layout::{self, ParquetFile};
use meikyo_recording::read::Wanted;
use meikyo_recording::schema::role::{answers, findings, health};
use meikyo_recording::schema::{Name, Role};
use meikyo_recording::{Selection, TableSchema};
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::Opened;
use crate::columns::{number, text, times};
use crate::errors::ApiError;
use crate::parameters::Parameters;
use crate::range::Bins;
use crate::wire::ProblemBody;

/// The states that are counted, in the order of the answer.
const STATES: [Name<u64>; 5] =
    [health::OK, health::LATE, health::MISSED, health::ERRORS, health::SKIPPED];

/// A device is silent when it has not answered for so long.
const SILENT_AFTER: Nanos = Nanos::from_secs(3);

/// How far back it is looked for answers.
const LOOK_BACK: Nanos = Nanos::from_secs(10);

/// Seconds of how many hours are kept, of all recordings together; one is 150 kB.
const HOURS_MAX: usize = 24 * 7;

/// States over time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthBody {
    /// The begin of the first bin.
    pub(crate) from_us: i64,
    /// The length of a bin.
    pub(crate) bin_us: i64,
    /// Device intervals by state, a number a bin.
    pub(crate) bins: HealthBinsBody,
    /// Their sums.
    pub(crate) totals: HealthTotalsBody,
    /// Devices that have not answered for 3 s at `to`.
    pub(crate) silent: Vec<String>,
    /// The value that has stood still for longest against its usual updates; null when none does.
    pub(crate) stalest: Option<StalestBody>,
    /// Intervals a second at `to`.
    pub(crate) intervals_per_s: f64,
    /// Files that could not be read.
    pub(crate) problems: Vec<ProblemBody>,
}

/// Columns of equal length.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct HealthBinsBody {
    /// Answered in time.
    pub(crate) ok: Vec<u64>,
    /// Answered late.
    pub(crate) late: Vec<u64>,
    /// Not answered.
    pub(crate) missed: Vec<u64>,
    /// Answered with an error.
    pub(crate) error: Vec<u64>,
    /// Not asked.
    pub(crate) skipped: Vec<u64>,
}

/// Sums over all bins.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct HealthTotalsBody {
    /// Answered in time.
    pub(crate) ok: u64,
    /// Answered late.
    pub(crate) late: u64,
    /// Not answered.
    pub(crate) missed: u64,
    /// Answered with an error.
    pub(crate) error: u64,
    /// Not asked.
    pub(crate) skipped: u64,
    /// Intervals.
    pub(crate) intervals: u64,
}

/// A value that stands still.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StalestBody {
    /// The device.
    pub(crate) device: String,
    /// Table, instance and column of the value.
    pub(crate) object: String,
    /// How long it has been standing still.
    pub(crate) age_us: u64,
}

/// Counts of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    states: [u64; 5],
    intervals: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        for (sum, count) in self.states.iter_mut().zip(other.states) {
            *sum += count;
        }
        self.intervals += other.intervals;
    }
}

/// Seconds of one file, and what is wrong with it.
#[derive(Debug, Default)]
struct Seconds {
    counts: BTreeMap<i64, Counts>,
    problems: Vec<ProblemBody>,
}

/// What is kept of files.
#[derive(Debug, Default)]
pub(crate) struct HealthCache(Mutex<BTreeMap<std::path::PathBuf, Arc<Seconds>>>);

impl HealthCache {
    fn get(
        &self,
        file: ParquetFile,
        make: impl FnOnce(ParquetFile) -> Result<Seconds, ApiError>,
    ) -> Result<Arc<Seconds>, ApiError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&file.path).cloned();
        if let Some(seconds) = kept {
            return Ok(seconds);
        }
        let path = file.path.clone();
        let made = Arc::new(make(file)?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= HOURS_MAX * 6 {
            kept.pop_first();
        }
        kept.insert(path, Arc::clone(&made));
        Ok(made)
    }
}

/// Answers a request. Blocks while files are read.
pub(crate) fn read(
    opened: &Opened,
    cache: &HealthCache,
    query: Option<&str>,
) -> Result<HealthBody, ApiError> {
    let mut parameters = Parameters::parse(query)?;
    let (from, to) = parameters.span(opened.span()?)?;
    let width = parameters.number("width", 600, 1..=10_000)?;
    parameters.finish()?;
    let bins = Bins::choose_whole_seconds(from, to, width);
    let mut counts = vec![Counts::default(); bins.count()];
    let mut problems = Vec::new();
    fill(opened, cache, bins, &mut counts, &mut problems)?;
    let mut totals = Counts::default();
    counts.iter().for_each(|bin| totals.add(bin));
    let column = |state: usize| counts.iter().map(|bin| bin.states[state]).collect();
    let [ok, late, missed, error, skipped] = totals.states;
    let interval_us = opened.interval_us(to)?;
    Ok(HealthBody {
        from_us: bins.from.div_euclid(1_000),
        bin_us: bins.length / 1_000,
        bins: HealthBinsBody {
            ok: column(0),
            late: column(1),
            missed: column(2),
            error: column(3),
            skipped: column(4),
        },
        totals: HealthTotalsBody { ok, late, missed, error, skipped, intervals: totals.intervals },
        silent: silent(opened, to)?,
        stalest: stalest(opened, to)?,
        intervals_per_s: interval_us.map_or(0.0, |us| Nanos::SECOND.as_secs_f64() * 1e6 / real(us)),
        problems,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn real(us: u64) -> f64 {
    us as f64
}

fn fill(
    opened: &Opened,
    cache: &HealthCache,
    bins: Bins,
    counts: &mut [Counts],
    problems: &mut Vec<ProblemBody>,
) -> Result<(), ApiError> {
    let Some(table) = opened.table_for(Role::Health)? else { return Ok(()) };
    let hours = layout::hour_of(bins.from)..=layout::hour_of(bins.to - 1);
    let listing = opened.recording.listing(&Wanted { table: Some(&table.name), hours })?;
    problems.extend(listing.problems.iter().map(|problem| opened.problem(problem)));
    let log = opened.recording.log_begin(&table.name)?;
    for file in listing.parquet {
        let seconds = cache.get(file, |file| seconds_of(opened, file, &table))?;
        problems.extend(seconds.problems.iter().cloned());
        for (&time, second) in &seconds.counts {
            if let Some(bin) = bins.of(time) {
                counts[bin].add(second);
            }
        }
    }
    let Some(log) = log else { return Ok(()) };
    let selection = Selection {
        columns: Some(columns()),
        from: Some(log.max(WallTime::from_nanos(bins.from))),
        to: Some(WallTime::from_nanos(bins.to)),
        ..Selection::all(&table.name)
    };
    // Files that are not hidden end before the log begins, but for a clock that was set back.
    let mut seconds = Seconds::default();
    let mut scan = opened.recording.scan(&selection)?;
    for batch in &mut scan {
        gather(&batch?, &mut seconds.counts);
    }
    problems.extend(scan.problems().iter().map(|problem| opened.problem(problem)));
    problems.sort();
    problems.dedup();
    for (time, second) in seconds.counts {
        if let Some(bin) = bins.of(time) {
            counts[bin].add(&second);
        }
    }
    Ok(())
}

fn columns() -> Vec<String> {
    std::iter::once("time").chain(STATES.map(|of| of.name())).map(str::to_owned).collect()
}

fn seconds_of(
    opened: &Opened,
    file: ParquetFile,
    table: &TableSchema,
) -> Result<Seconds, ApiError> {
    let selection = Selection { columns: Some(columns()), ..Selection::all(&table.name) };
    let mut seconds = Seconds::default();
    let mut scan = opened.recording.scan_file(file, table.clone(), &selection)?;
    for batch in &mut scan {
        gather(&batch?, &mut seconds.counts);
    }
    seconds.problems = scan.problems().iter().map(|problem| opened.problem(problem)).collect();
    Ok(seconds)
}

fn gather(batch: &RecordBatch, seconds: &mut BTreeMap<i64, Counts>) {
    let states = STATES.map(|state| number(batch, state.name()));
    for (row, &time) in times(batch).iter().enumerate() {
        let second = seconds.entry(time - time.rem_euclid(1_000_000_000)).or_default();
        let of_row = states.each_ref().map(|of| of.get(row).copied().flatten().unwrap_or(0));
        second.add(&Counts { states: of_row, intervals: 1 });
    }
}

/// Devices of which no answer was received in the last seconds before `to`.
fn silent(opened: &Opened, to: WallTime) -> Result<Vec<String>, ApiError> {
    let Some(table) = opened.table_for(Role::Answers)? else { return Ok(Vec::new()) };
    let columns = ["time", answers::DEVICE.name(), answers::RECEIVED_US.name()];
    let selection = Selection {
        columns: Some(columns.map(str::to_owned).to_vec()),
        from: Some(to.before(LOOK_BACK)),
        to: Some(to),
        ..Selection::all(&table.name)
    };
    let scan = opened.recording.scan(&selection)?;
    let mut answered: BTreeMap<String, Option<i64>> = BTreeMap::new();
    let mut newest = i64::MIN;
    for batch in scan {
        let batch = batch?;
        let received = crate::columns::signed(&batch, answers::RECEIVED_US.name());
        for (row, &time) in times(&batch).iter().enumerate() {
            newest = newest.max(time);
            let device = text(&batch, answers::DEVICE.name(), row).unwrap_or_default();
            let last = match answered.get_mut(device) {
                Some(last) => last,
                None => answered.entry(device.to_owned()).or_default(),
            };
            if received.get(row).is_some_and(Option::is_some) {
                *last = (*last).max(Some(time));
            }
        }
    }
    let least = WallTime::from_nanos(newest).before(SILENT_AFTER).as_nanos();
    let is_silent = |last: &Option<i64>| last.is_none_or(|last| last < least);
    Ok(answered.into_iter().filter(|(_, last)| is_silent(last)).map(|(device, _)| device).collect())
}

/// The value that was last found frozen and has been so for longest.
fn stalest(opened: &Opened, to: WallTime) -> Result<Option<StalestBody>, ApiError> {
    let Some(table) = opened.table_for(Role::Findings)? else { return Ok(None) };
    let selection = Selection { to: Some(to), ..Selection::all(&table.name) };
    let scan = opened.recording.scan(&selection)?;
    let mut newest: BTreeMap<[String; 4], (i64, bool)> = BTreeMap::new();
    for batch in scan {
        let batch = batch?;
        for (row, &time) in times(&batch).iter().enumerate() {
            let label = |name: &str| text(&batch, name, row).unwrap_or_default().to_owned();
            let labels = [findings::DEVICE, findings::TABLE, findings::INSTANCE, findings::COLUMN];
            let key = labels.map(|of| label(of.name()));
            let frozen = text(&batch, findings::CLASS.name(), row) == Some("frozen");
            let of = newest.entry(key).or_insert((time, frozen));
            if time >= of.0 {
                *of = (time, frozen);
            }
        }
    }
    let frozen = newest.into_iter().filter(|(_, (_, frozen))| *frozen);
    let oldest = frozen.min_by_key(|(_, (since, _))| *since);
    Ok(oldest.map(|([device, table, instance, column], (since, _))| {
        let instance = if instance.is_empty() { instance } else { format!(" {instance}") };
        let age = to.since(WallTime::from_nanos(since));
        StalestBody {
            device,
            object: format!("{table}{instance} {column}"),
            age_us: age.as_micros(),
        }
    }))
}
