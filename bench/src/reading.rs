//! What a recording says, as a bench needs it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use meikyo_console::failure::Failure;
use meikyo_recording::{Recording, Selection};
use meikyo_snmp::tables::{Table, schema};
use meikyo_units::{Nanos, WallTime};

use crate::statistics::Observations;

/// The table `intervals` of a recording, for one interval's length.
#[derive(Debug)]
pub(crate) struct Intervals {
    pub(crate) count: u64,
    pub(crate) states: States,
    pub(crate) stalls: u64,
    pub(crate) kept_us: Observations,
    pub(crate) complete_us: Observations,
    pub(crate) sent_us: Observations,
    pub(crate) start_us: Observations,
}

/// How many (device, interval) pairs ended in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct States {
    pub(crate) ok: u64,
    pub(crate) late: u64,
    pub(crate) missed: u64,
    pub(crate) errors: u64,
    pub(crate) skipped: u64,
}

impl States {
    /// Those that are not `ok` because of time: in error is another matter.
    pub(crate) fn spoiled(&self) -> u64 {
        self.late + self.missed + self.skipped
    }
}

impl std::ops::Add for States {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ok: self.ok + other.ok,
            late: self.late + other.late,
            missed: self.missed + other.missed,
            errors: self.errors + other.errors,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// How many intervals of one length were due from `from` until before `to`, and how their devices
/// ended.
pub(crate) fn states_between(
    directory: &Path,
    every: Nanos,
    from: WallTime,
    to: WallTime,
) -> Result<(u64, States), Failure> {
    let recording = Recording::open(directory)?;
    let names = ["interval_us", "ok", "late", "missed", "errors", "skipped"];
    let (mut count, mut states) = (0, States::default());
    for batch in recording.scan(&selection(Table::Intervals, &names, Some((from, to))))? {
        let batch = batch?;
        let columns: Result<Vec<_>, _> = names.iter().map(|name| integers(&batch, name)).collect();
        let columns = columns?;
        for row in 0..batch.num_rows() {
            let cell = |values: &Vec<Option<i64>>| values[row].unwrap_or(0).cast_unsigned();
            let value = |column: usize| cell(&columns[column]);
            if value(0) == every.as_micros() {
                let [ok, late, missed, errors, skipped] = [1, 2, 3, 4, 5].map(value);
                count += 1;
                states = states + States { ok, late, missed, errors, skipped };
            }
        }
    }
    Ok((count, states))
}

impl Intervals {
    /// Reads them all.
    pub(crate) fn read(directory: &Path, every: Nanos) -> Result<Self, Failure> {
        let recording = Recording::open(directory)?;
        let names = [
            "interval_us",
            "ok",
            "late",
            "missed",
            "errors",
            "skipped",
            "stalled",
            "kept_us",
            "complete_us",
            "sent_us",
            "start_us",
        ];
        let mut columns: BTreeMap<&str, Vec<i64>> = names.map(|name| (name, Vec::new())).into();
        for batch in recording.scan(&selection(Table::Intervals, &names, None))? {
            let batch = batch?;
            let lengths = integers(&batch, "interval_us")?;
            for name in names {
                let values = integers(&batch, name)?;
                let of_length = lengths.iter().zip(values);
                let length = every.as_micros().cast_signed();
                let kept = of_length.filter(|(of, _)| **of == Some(length)).filter_map(|(_, v)| v);
                columns.entry(name).or_default().extend(kept);
            }
        }
        let sum = |name: &str| columns[name].iter().copied().map(i64::cast_unsigned).sum();
        let observed = |name: &str| Observations::new(columns[name].iter().map(real).collect());
        Ok(Self {
            count: columns["ok"].len() as u64,
            states: States {
                ok: sum("ok"),
                late: sum("late"),
                missed: sum("missed"),
                errors: sum("errors"),
                skipped: sum("skipped"),
            },
            stalls: columns["stalled"].iter().filter(|stalled| **stalled != 0).count() as u64,
            kept_us: observed("kept_us"),
            complete_us: observed("complete_us"),
            sent_us: observed("sent_us"),
            start_us: observed("start_us"),
        })
    }
}

/// Microseconds of one interval are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "below 2^53, where it is exact")]
fn real(micros: &i64) -> f64 {
    *micros as f64
}

/// The named columns of a table, all of its rows or those from `from` until before `to`.
pub(crate) fn selection(
    table: Table,
    columns: &[&str],
    span: Option<(WallTime, WallTime)>,
) -> Selection {
    Selection {
        table: schema(table).name.clone(),
        columns: Some(columns.iter().map(|name| (*name).to_owned()).collect()),
        labels: Vec::new(),
        from: span.map(|(from, _)| from),
        to: span.map(|(_, to)| to),
    }
}

/// A column of whole numbers, whatever their width and sign.
pub(crate) fn integers(batch: &RecordBatch, name: &str) -> Result<Vec<Option<i64>>, Failure> {
    let column = column(batch, name)?;
    let signed = match column.data_type() {
        // Counters use all 64 bits: kept as they are, since `cast` would make the great ones null.
        DataType::UInt64 => {
            let unsigned = column.as_primitive::<arrow::datatypes::UInt64Type>();
            return Ok(unsigned.iter().map(|value| value.map(u64::cast_signed)).collect());
        }
        _ => cast(column, &DataType::Int64)?,
    };
    Ok(signed.as_primitive::<Int64Type>().iter().collect())
}

/// A column of texts.
pub(crate) fn texts(batch: &RecordBatch, name: &str) -> Result<Vec<Option<String>>, Failure> {
    let plain = cast(column(batch, name)?, &DataType::Utf8)?;
    Ok(plain.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
}

/// A column of doubles.
pub(crate) fn doubles(batch: &RecordBatch, name: &str) -> Result<Vec<Option<f64>>, Failure> {
    let column = column(batch, name)?;
    Ok(column.as_primitive::<arrow::datatypes::Float64Type>().iter().collect())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a arrow::array::ArrayRef, Failure> {
    batch
        .column_by_name(name)
        .ok_or_else(|| Failure::new(format!("the recording has no column `{name}`")))
}

/// Bytes of every file of a recording but those of the summaries, which are counted apart.
pub(crate) fn bytes_without_summaries(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if path.extension().is_none_or(|extension| extension != "summary") {
                bytes += bytes_without_summaries(&path)?;
            }
        } else {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_do_not_count_as_bytes_of_values() {
        let directory = tempfile::tempdir().unwrap();
        for (path, length) in [("load/hour=1/a.parquet", 10), ("load.summary/hour=1/a.parquet", 99)]
        {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; length]).unwrap();
        }
        assert_eq!(bytes_without_summaries(directory.path()).unwrap(), 10);
    }
}
