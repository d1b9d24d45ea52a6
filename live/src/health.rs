//! How well a recording was measured: states over time for the time bar, and who is silent.
//!
//! The counts come from the table of role `health`, one row an interval; of a finished file they are
//! kept a second at a time, so that the bar of a day is drawn from memory the second time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::array::RecordBatch;
use meikyo_recording::layout::{self, ParquetFile};
use meikyo_recording::read::Wanted;
use meikyo_recording::schema::role::{answers, health};
use meikyo_recording::schema::{Name, Role};
use meikyo_recording::{ReadError, Selection, TableSchema};
use meikyo_units::{Nanos, WallTime};

use crate::bins::Bins;
use crate::columns::{number, signed, text, times};
use crate::opened::{FileProblem, Opened, once_a_file};
use crate::staleness::{self, Held, Stalest};

/// The states that are counted, in the order of [`Counts::states`].
const STATES: [Name<u64>; 5] =
    [health::OK, health::LATE, health::MISSED, health::ERRORS, health::SKIPPED];

/// How far back it is looked for answers.
const LOOK_BACK: Nanos = Nanos::from_secs(10);

/// Seconds of how many hours are kept, of all recordings together; one is 150 kB.
const HOURS_MAX: usize = 24 * 7;

/// How well a recording was measured over some time.
#[derive(Debug)]
pub struct Health {
    /// The pixels, which are whole seconds.
    pub bins: Bins,
    /// What ended in each of them.
    pub counts: Vec<Counts>,
    /// What ended in all of them together.
    pub totals: Counts,
    /// Devices that are silent at the end ([`staleness::is_silent`]).
    pub silent: Vec<String>,
    /// Of the devices that answer, the value that is oldest at the end.
    pub stalest: Option<Stalest>,
    /// The shortest span between two polls of a device before the end, µs; `None` when not known.
    pub interval_us: Option<u64>,
    /// Files that could not be read: what they held is missing.
    pub problems: Vec<FileProblem>,
}

/// How device intervals ended in some span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Device intervals that were ok, late, missed, in error and skipped, in this order.
    pub states: [u64; 5],
    /// Intervals of the collector, each of which all devices have.
    pub intervals: u64,
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
    problems: Vec<FileProblem>,
}

/// The seconds of finished files that are kept, of all recordings together.
#[derive(Debug, Default)]
pub struct HealthCache(Mutex<BTreeMap<PathBuf, Arc<Seconds>>>);

impl HealthCache {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<Seconds>>> {
        self.0.lock().expect("nothing that holds the seconds can panic")
    }

    fn get(
        &self,
        file: ParquetFile,
        make: impl FnOnce(ParquetFile) -> Result<Seconds, ReadError>,
    ) -> Result<Arc<Seconds>, ReadError> {
        let kept = self.lock().get(&file.path).cloned();
        if let Some(seconds) = kept {
            return Ok(seconds);
        }
        let path = file.path.clone();
        let made = Arc::new(make(file)?);
        let mut kept = self.lock();
        if kept.len() >= HOURS_MAX * 6 {
            kept.pop_first();
        }
        kept.insert(path, Arc::clone(&made));
        Ok(made)
    }
}

/// How well was measured between two instants, in at most `width` and one pixels. Blocks while
/// files are read.
///
/// # Errors
/// When the recording cannot be read.
pub fn read(
    opened: &Opened,
    cache: &HealthCache,
    (from, to): (WallTime, WallTime),
    width: u32,
) -> Result<Health, ReadError> {
    let bins = Bins::choose_whole_seconds(from, to, width);
    let mut counts = vec![Counts::default(); bins.count()];
    let mut problems = Vec::new();
    fill(opened, cache, bins, &mut counts, &mut problems)?;
    let mut totals = Counts::default();
    counts.iter().for_each(|bin| totals.add(bin));
    let (silent, stalest) = silent_and_stalest(opened, to, &mut problems)?;
    let interval_us = opened.interval_us(to, &mut problems)?;
    let problems = once_a_file(problems);
    Ok(Health { bins, counts, totals, silent, stalest, interval_us, problems })
}

fn fill(
    opened: &Opened,
    cache: &HealthCache,
    bins: Bins,
    counts: &mut [Counts],
    problems: &mut Vec<FileProblem>,
) -> Result<(), ReadError> {
    let Some(table) = opened.table_for(Role::Health)? else {
        // Nobody knows whether there was one where something is missing.
        problems.extend(opened.problems_listed()?);
        return Ok(());
    };
    let hours = layout::hour_of(bins.from)..=layout::hour_of(bins.to - 1);
    let listing = opened.recording.listing(&Wanted { table: Some(&table.name), hours })?;
    problems.extend(listing.problems.iter().map(|problem| opened.problem(problem)));
    let log = opened.recording.log_begin(&table.name)?;
    for file in listing.parquet {
        let seconds = cache.get(file, |file| seconds_of(opened, file, &table))?;
        problems.extend(seconds.problems.iter().cloned());
        for (&time, second) in &seconds.counts {
            if let Some(bin) = bins.bin_of(time) {
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
    for (time, second) in seconds.counts {
        if let Some(bin) = bins.bin_of(time) {
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
) -> Result<Seconds, ReadError> {
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

/// When each device was heard last, as far as it was asked in the last seconds before `to`.
#[derive(Debug, Default)]
struct Heard {
    /// The due instant of its newest interval.
    due: i64,
    /// Between its two newest intervals.
    interval: Option<Nanos>,
    /// When its newest answer was received.
    answered: Option<WallTime>,
}

/// The devices of the last seconds before `to`, and the newest due instant.
fn heard(
    opened: &Opened,
    to: WallTime,
    problems: &mut Vec<FileProblem>,
) -> Result<(BTreeMap<String, Heard>, WallTime), ReadError> {
    let Some(table) = opened.table_for(Role::Answers)? else { return Ok(Default::default()) };
    let columns = ["time", answers::DEVICE.name(), answers::RECEIVED_US.name()];
    let selection = Selection {
        columns: Some(columns.map(str::to_owned).to_vec()),
        from: Some(to.before(LOOK_BACK)),
        to: Some(to),
        ..Selection::all(&table.name)
    };
    let mut heard: BTreeMap<String, Heard> = BTreeMap::new();
    let mut newest = i64::MIN;
    let mut scan = opened.recording.scan(&selection)?;
    for batch in &mut scan {
        let batch = batch?;
        let received = signed(&batch, answers::RECEIVED_US.name());
        for (row, &time) in times(&batch).iter().enumerate() {
            newest = newest.max(time);
            let device = text(&batch, answers::DEVICE.name(), row).unwrap_or_default();
            let of = match heard.get_mut(device) {
                Some(of) => of,
                None => heard
                    .entry(device.to_owned())
                    .or_insert_with(|| Heard { due: time, ..Heard::default() }),
            };
            if time > of.due {
                let since = WallTime::from_nanos(time).since(WallTime::from_nanos(of.due));
                (of.due, of.interval) = (time, Some(since));
            }
            if let Some(after_us) = received.get(row).copied().flatten() {
                let at = WallTime::from_nanos(time.saturating_add(after_us.saturating_mul(1_000)));
                of.answered = of.answered.max(Some(at));
            }
        }
    }
    problems.extend(scan.problems().iter().map(|problem| opened.problem(problem)));
    Ok((heard, WallTime::from_nanos(newest)))
}

/// Who is silent before `to`, and of those who answer the value that is oldest.
fn silent_and_stalest(
    opened: &Opened,
    to: WallTime,
    problems: &mut Vec<FileProblem>,
) -> Result<(Vec<String>, Option<Stalest>), ReadError> {
    let (heard, newest) = heard(opened, to, problems)?;
    let is_silent = |of: &Heard| {
        of.answered.is_none_or(|at| staleness::is_silent(newest.since(at), of.interval))
    };
    let (silent, answering): (Vec<_>, Vec<_>) = heard.iter().partition(|(_, of)| is_silent(of));
    let (held, unknown) = (staleness::held(opened, to, problems)?, Held::default());
    let answering = answering.iter().filter_map(|(name, of)| {
        Some((name.as_str(), of.answered?, held.get(*name).unwrap_or(&unknown)))
    });
    let stalest = staleness::stalest(answering, to);
    Ok((silent.into_iter().map(|(name, _)| name.clone()).collect(), stalest))
}
