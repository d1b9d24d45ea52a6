//! When answers were received: the rows of a table of role [`Role::Answers`] as they are joined to
//! values.
//!
//! The kernel's receive time stands once an answer, there, and `time` in the value tables is the
//! due instant. A rate over due instants would take the jitter of answers for a change of load.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::{SortColumn, lexsort_to_indices, take_record_batch};
use arrow::datatypes::TimestampNanosecondType;
use arrow::error::ArrowError;

#[cfg(doc)]
use crate::schema::Role;
use crate::schema::role::answers;

/// When the answer that carried a row was received, and the agent's uptime in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Kernel receive time, ns since the epoch.
    pub at: i64,
    /// `sysUpTime.0` of the same answer, hundredths of a second.
    pub uptime_cs: Option<u64>,
}

/// The polls of many devices, by device and time; the columns stay where they are.
#[derive(Debug, Clone, Default)]
pub struct PollTimes {
    batches: Vec<RecordBatch>,
    /// Rows of each device: position of the batch and range of rows, by time.
    devices: BTreeMap<String, Vec<(usize, Range<usize>)>>,
}

impl PollTimes {
    /// The columns that are read of the table.
    pub const COLUMNS: [&str; 5] = [
        "time",
        answers::DEVICE.name(),
        answers::PDU.name(),
        answers::RECEIVED_US.name(),
        answers::UPTIME_CS.name(),
    ];

    /// The polls in some batches of a table of role [`Role::Answers`], with at least the columns
    /// `time`, `device` and `received_us`, and where wanted `pdu` and `uptime_cs`. Batches that are not sorted by device
    /// and time are sorted.
    ///
    /// # Errors
    /// When a needed column is missing or of another type.
    pub fn new(batches: impl IntoIterator<Item = RecordBatch>) -> Result<Self, ArrowError> {
        let mut polls = Self::default();
        for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
            polls.add(batch)?;
        }
        for ranges in polls.devices.values_mut() {
            let first = |(batch, rows): &(usize, Range<usize>)| {
                times(&polls.batches[*batch]).map_or(0, |times| times[rows.start])
            };
            ranges.sort_by_key(first);
        }
        Ok(polls)
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), ArrowError> {
        let received = answers::RECEIVED_US;
        for (name, is_there) in [
            ("time", times(&batch).is_some()),
            (received.name(), received.values_in(&batch).is_some()),
        ] {
            if !is_there {
                return Err(missing(name));
            }
        }
        let sorted = device_runs(&batch)?;
        let in_order = |runs: &[Range<usize>]| {
            let times = times(&batch).unwrap_or_default();
            runs.iter().all(|run| times[run.clone()].is_sorted())
        };
        let (batch, runs) = if in_order(&sorted) {
            (batch, sorted)
        } else {
            let by = |name: &str| {
                let column = batch.column_by_name(name);
                column.map(|values| SortColumn { values: values.clone(), options: None })
            };
            let by: Vec<_> = [answers::DEVICE.name(), "time"].into_iter().filter_map(by).collect();
            let batch = take_record_batch(&batch, &lexsort_to_indices(&by, None)?)?;
            let runs = device_runs(&batch)?;
            (batch, runs)
        };
        let position = self.batches.len();
        let device = answers::DEVICE;
        let devices = device.values_in(&batch).ok_or_else(|| missing(device.name()))?;
        for run in runs {
            let device = devices.get(run.start).unwrap_or_default();
            match self.devices.get_mut(device) {
                Some(ranges) => ranges.push((position, run)),
                None => drop(self.devices.insert(device.to_owned(), vec![(position, run)])),
            }
        }
        self.batches.push(batch);
        Ok(())
    }

    /// The polls of one device, to be asked for in order of time.
    pub fn device(&self, device: &str) -> PollCursor<'_> {
        let ranges = self.devices.get(device).map_or(&[][..], Vec::as_slice);
        let mut cursor = PollCursor { polls: self, ranges, range: 0, row: 0, columns: None };
        cursor.enter();
        cursor
    }
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("the table of answers has no usable column `{name}`"))
}

fn times(batch: &RecordBatch) -> Option<&[i64]> {
    let column = batch.column_by_name("time")?;
    Some(column.as_primitive_opt::<TimestampNanosecondType>()?.values())
}

fn device_runs(batch: &RecordBatch) -> Result<Vec<Range<usize>>, ArrowError> {
    let device = answers::DEVICE.name();
    let devices = batch.column_by_name(device).ok_or_else(|| missing(device))?;
    super::runs(std::slice::from_ref(devices), batch.num_rows())
}

/// The polls of one device from where they were last asked for.
#[derive(Debug)]
pub struct PollCursor<'a> {
    polls: &'a PollTimes,
    ranges: &'a [(usize, Range<usize>)],
    range: usize,
    row: usize,
    columns: Option<Columns<'a>>,
}

/// The columns of the batch that a cursor is in.
#[derive(Debug, Clone, Copy)]
struct Columns<'a> {
    times: &'a [i64],
    received: &'a arrow::array::Int64Array,
    uptime: Option<&'a arrow::array::UInt64Array>,
    pdu: Option<&'a arrow::array::UInt64Array>,
}

impl<'a> PollCursor<'a> {
    fn enter(&mut self) {
        self.columns = self.ranges.get(self.range).and_then(|(batch, rows)| {
            let batch = &self.polls.batches[*batch];
            self.row = rows.start;
            Some(Columns {
                times: times(batch)?,
                received: answers::RECEIVED_US.values_in(batch)?.array(),
                uptime: answers::UPTIME_CS.values_in(batch).map(|values| values.array()),
                pdu: answers::PDU.values_in(batch).map(|values| values.array()),
            })
        });
    }

    /// The answer to the poll that was due at `time`, to its PDU `pdu` where the row says which;
    /// `None` when there was none. Instants are asked for in ascending order.
    #[inline]
    pub fn at(&mut self, time: i64, pdu: Option<u64>) -> Option<Received> {
        loop {
            let columns = self.columns?;
            let end = self.ranges[self.range].1.end;
            while self.row < end && columns.times[self.row] < time {
                self.row += 1;
            }
            if self.row < end {
                return answer(columns, self.row..end, time, pdu);
            }
            if self.range + 1 == self.ranges.len() {
                return None;
            }
            self.range += 1;
            self.enter();
        }
    }
}

#[inline]
fn answer(
    columns: Columns<'_>,
    rows: Range<usize>,
    time: i64,
    pdu: Option<u64>,
) -> Option<Received> {
    for row in rows {
        if columns.times[row] != time {
            return None;
        }
        let of_pdu = columns.pdu.filter(|column| column.is_valid(row)).map(|pdu| pdu.value(row));
        let matches = pdu.is_none() || of_pdu.is_none() || of_pdu == pdu;
        if matches && columns.received.is_valid(row) {
            let uptime = columns.uptime.filter(|column| column.is_valid(row));
            return Some(Received {
                at: time.saturating_add(columns.received.value(row).saturating_mul(1_000)),
                uptime_cs: uptime.map(|uptime| uptime.value(row)),
            });
        }
    }
    None
}
