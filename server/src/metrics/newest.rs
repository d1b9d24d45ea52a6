//! The newest value of every series of a running recording.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard};

use arrow::array::{Array as _, ArrayRef, Float64Array, RecordBatch};
use arrow::error::ArrowError;
use meikyo_live::columns::{reals, text, times};
use meikyo_live::{Opened, drawable, label_names};
use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::answers;
use meikyo_recording::{Column, Selection, TableSchema};
use meikyo_units::{Nanos, WallTime};

use super::devices::{Devices, STATES};
use super::metric::{Metric, escaped};
use super::naming::{exported, plain};
use super::own;
use crate::errors::ApiError;

/// How far back the log is read at most.
const LOOK_BACK: Nanos = Nanos::from_secs(15);
/// How long a value counts that does not come again.
const FRESH: Nanos = Nanos::from_secs(300);

/// The newest values, remembered between two questions, since slow objects come seldom.
#[derive(Debug, Default)]
pub(crate) struct Newest(Mutex<BTreeMap<String, OfRecording>>);

impl Newest {
    /// The values by the id of the recording.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OfRecording>> {
        self.0.lock().expect("no thread panicked while it read the newest values")
    }
}

/// The newest values of one recording.
#[derive(Debug, Default)]
pub(super) struct OfRecording {
    read_to: Option<WallTime>,
    /// Which devices answer, and how intervals ended.
    pub(super) devices: Devices,
    /// The metrics by name, as they are written.
    pub(super) metrics: BTreeMap<String, Metric>,
    /// The due instant of the newest row of each device and table, ns since the epoch.
    rows: BTreeMap<(String, String), i64>,
}

impl OfRecording {
    /// Reads what came since the last time, and forgets what has not come for long.
    pub(super) fn refresh(&mut self, opened: &Opened, now: WallTime) -> Result<(), ApiError> {
        let from = self.read_to.unwrap_or_default().max(now.before(LOOK_BACK));
        for table in opened.tables()?.into_values() {
            let labels = label_names(&table);
            let is_told = match table.role() {
                Role::Readings | Role::Answers | Role::Clocks => !labels.is_empty(),
                Role::Health => true,
                Role::Requests | Role::Events | Role::Findings | Role::Samples | Role::Context => {
                    false
                }
            };
            if !is_told {
                continue;
            }
            // How an interval ended is counted, not shown of the newest one alone.
            let is_counted = |name: &str| {
                table.role() == Role::Health && STATES.iter().any(|(_, state)| state.name() == name)
            };
            let is_told = |column: &&Column| {
                drawable(&table, &column.name).is_ok() && !is_counted(&column.name)
            };
            let columns: Vec<_> = table.columns.iter().filter(is_told).collect();
            if !columns.is_empty() {
                self.read(opened, &table, &labels, &columns, from)?;
            }
        }
        self.devices.refresh(opened, from, now)?;
        self.read_to = Some(now.before(Nanos::from_secs(2)));
        let least = now.before(FRESH).as_nanos();
        for metric in self.metrics.values_mut() {
            metric.values.retain(|_, (time, _)| *time >= least);
        }
        self.metrics.retain(|_, metric| !metric.values.is_empty());
        self.rows.retain(|_, time| *time >= least);
        Ok(())
    }

    fn read(
        &mut self,
        opened: &Opened,
        table: &TableSchema,
        labels: &[String],
        columns: &[&Column],
        from: WallTime,
    ) -> Result<(), ApiError> {
        let names = std::iter::once("time".to_owned()).chain(labels.iter().cloned());
        let selection = Selection {
            columns: Some(names.chain(columns.iter().map(|column| column.name.clone())).collect()),
            from: Some(from),
            ..Selection::all(&table.name)
        };
        let mut scan = opened.recording.scan(&selection)?;
        for batch in &mut scan {
            let batch = batch?;
            let newest = newest_rows(&batch, labels)?;
            for column in columns {
                let values = batch.column_by_name(&column.name).and_then(reals);
                let Some(values) = values else { continue };
                self.keep(opened, table, column, &values, &newest);
            }
            if table.role() == Role::Readings {
                self.keep_times(table, &batch, &newest);
            }
        }
        for problem in scan.problems() {
            opened.problem(problem);
        }
        Ok(())
    }

    fn keep(
        &mut self,
        opened: &Opened,
        table: &TableSchema,
        column: &Column,
        values: &Float64Array,
        newest: &BTreeMap<String, (i64, usize)>,
    ) {
        let counter = column.counts();
        let exported = exported(&table.name, column);
        for (labels, &(time, row)) in newest.iter().filter(|(_, (_, row))| values.is_valid(*row)) {
            let metric = self.metrics.entry(exported.name.clone()).or_insert_with(|| Metric {
                counter,
                help: column.words(),
                values: BTreeMap::new(),
            });
            let labels = format!("recording=\"{}\"{labels}", escaped(&opened.id));
            let kept = metric.values.entry(labels).or_insert((time, 0.0));
            if time >= kept.0 {
                *kept = (time, exported.in_base_unit(values.value(row)));
            }
        }
    }
}

impl OfRecording {
    /// Notes when the newest rows of the table were due, by device.
    fn keep_times(
        &mut self,
        table: &TableSchema,
        batch: &RecordBatch,
        newest: &BTreeMap<String, (i64, usize)>,
    ) {
        for &(time, row) in newest.values() {
            let Some(device) = text(batch, answers::DEVICE.name(), row) else { continue };
            let kept = self.rows.entry((device.to_owned(), table.name.clone())).or_insert(time);
            *kept = time.max(*kept);
        }
    }

    /// Tells how old the newest values of each device and table are: what is asked for seldom, or of a
    /// device that does not answer, stands among newer ones.
    pub(super) fn tell_ages(
        &self,
        metrics: &mut BTreeMap<String, Metric>,
        opened: &Opened,
        now: WallTime,
    ) {
        let help = "since the newest reading of the device in the table was due";
        for ((device, table), time) in &self.rows {
            let labels = format!(
                "recording=\"{}\",device=\"{}\",table=\"{}\"",
                escaped(&opened.id),
                escaped(device),
                escaped(table)
            );
            let age = now.since(WallTime::from_nanos(*time)).as_secs_f64();
            own(metrics, "reading_age_seconds", help, &labels, age);
        }
    }
}

/// The newest row of each series: its labels as they are written, its time, its place.
fn newest_rows(
    batch: &RecordBatch,
    labels: &[String],
) -> Result<BTreeMap<String, (i64, usize)>, ArrowError> {
    let mut newest = BTreeMap::new();
    let columns: Vec<ArrayRef> =
        labels.iter().filter_map(|label| batch.column_by_name(label).cloned()).collect();
    for run in meikyo_recording::series::runs(&columns, batch.num_rows())? {
        let mut written = String::new();
        for label in labels {
            let value = text(batch, label, run.start).unwrap_or_default();
            write!(written, ",{}=\"{}\"", plain(label), escaped(value))
                .expect("writing to a string cannot fail");
        }
        // Rows of a series are in order of time.
        let last = run.end - 1;
        newest.insert(written, (times(batch)[last], last));
    }
    Ok(newest)
}
