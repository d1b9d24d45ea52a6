//! Samples as they stand in the files of a recording: frame by frame, in no order, since nobody here needs one.
//! A scan would sort the rows of a whole segment, and hold them all in memory meanwhile.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use arrow::array::RecordBatch;
use meikyo_recording::layout::{SegmentFile, hour_of};
use meikyo_recording::log::FrameHeader;
use meikyo_recording::read::{Problem, Wanted as Files};
use meikyo_recording::segment::{ReadSegmentError, SegmentReader};
use meikyo_recording::{Batch, ReadError, TableSchema};

use super::{Goes, Reading, Seen, get, times};
use crate::tables::samples;
use crate::wanted::{Wanted, fits};

impl Reading<'_> {
    /// Goes through the samples that are wanted, in no order, until `take` says that it has enough.
    pub(crate) fn samples(
        &mut self,
        wanted: &Wanted,
        mut take: impl FnMut(&mut Self, &Seen<'_>) -> Goes,
    ) -> Result<(), ReadError> {
        self.each_file(
            wanted,
            &mut take,
            |reading, rows, take| reading.samples_of(rows, wanted, take),
            |reading, segment, take| reading.samples_in(segment, wanted, take),
        )
    }

    /// Goes through the files that wanted samples can be in: `of_rows` takes rows of Parquet files, `of_segment` a
    /// segment, and says what is wrong with it if anything.
    pub(super) fn each_file<T>(
        &mut self,
        wanted: &Wanted,
        take: &mut T,
        of_rows: impl Fn(&mut Self, &RecordBatch, &mut T) -> Goes,
        of_segment: impl Fn(
            &mut Self,
            SegmentFile,
            &mut T,
        ) -> Result<(Goes, Option<String>), ReadSegmentError>,
    ) -> Result<(), ReadError> {
        let table = self.recording.table(samples::NAME)?;
        let files = Files { table: Some(samples::NAME), hours: hours(wanted) };
        let listing = self.recording.listing(&files)?;
        self.problems.extend(listing.problems);
        for file in listing.parquet {
            let mut scan = self.recording.scan_file(file, table.clone(), &wanted.selection())?;
            for rows in scan.by_ref() {
                if of_rows(self, &rows?, take) == Goes::NoFurther {
                    return Ok(());
                }
            }
            self.problems.extend(scan.problems().iter().cloned());
        }
        for segment in listing.segments {
            let path = segment.path.clone();
            match of_segment(self, segment, take) {
                Ok((Goes::On, problem)) => {
                    self.problems.extend(problem.map(|what| Problem { path, what }));
                }
                Ok((Goes::NoFurther, _)) => return Ok(()),
                Err(error @ ReadSegmentError::Newer { .. }) => return Err(error.into()),
                Err(error) => self.problems.push(Problem { path, what: error.to_string() }),
            }
        }
        Ok(())
    }

    /// The samples of a segment, and what is wrong with it if anything.
    pub(super) fn samples_in(
        &mut self,
        segment: SegmentFile,
        wanted: &Wanted,
        take: &mut impl FnMut(&mut Self, &Seen<'_>) -> Goes,
    ) -> Result<(Goes, Option<String>), ReadSegmentError> {
        let ends_with = segment.ends_with;
        let Some(mut frames) = SampleFrames::open(segment, wanted)? else {
            return Ok((Goes::On, None));
        };
        while let Some(frame) = frames.next()? {
            if self.samples_of_next(&mut frames, &frame, wanted, take) == Goes::NoFurther {
                return Ok((Goes::NoFurther, None));
            }
        }
        Ok((Goes::On, frames.reader.problem(ends_with)))
    }

    /// The samples of the frame that was returned last. One that cannot be read is counted by the reader.
    pub(super) fn samples_of_next(
        &mut self,
        frames: &mut SampleFrames,
        frame: &FrameHeader,
        wanted: &Wanted,
        take: &mut impl FnMut(&mut Self, &Seen<'_>) -> Goes,
    ) -> Goes {
        let SampleFrames { reader, columns, batch, .. } = frames;
        if reader.decode(frame, batch).is_err() {
            return Goes::On;
        }
        let name = |symbol| reader.symbol(symbol);
        self.samples_of_frame(batch, columns, (wanted, name), take)
    }

    pub(super) fn samples_of_frame<'a>(
        &mut self,
        batch: &Batch,
        columns: &Columns,
        (wanted, name): (&Wanted, impl Fn(u64) -> Option<&'a str>),
        take: &mut impl FnMut(&mut Self, &Seen<'_>) -> Goes,
    ) -> Goes {
        let [from, until] = ends(wanted);
        // Which host a symbol is; `None`: not a wanted one.
        let mut hosts: BTreeMap<Option<u64>, Option<usize>> = BTreeMap::new();
        let bits = |column: Option<usize>, row| column.and_then(|column| batch.bits(column, row));
        for row in 0..batch.rows() {
            let time = batch.bits(0, row).unwrap_or(0).cast_signed();
            let [tid, pid, address, cpu] = [columns.tid, columns.pid, columns.address, columns.cpu]
                .map(|column| bits(column, row).unwrap_or(0));
            if time < from || time >= until || !wanted.has(cpu, pid) {
                continue;
            }
            let host = *hosts.entry(bits(columns.host, row)).or_insert_with_key(|symbol| {
                let name = symbol.and_then(&name).unwrap_or_default();
                fits(&wanted.hosts, name).then(|| self.host(Some(name)))
            });
            let Some(host) = host else { continue };
            let cgroup = bits(columns.cgroup, row);
            let stack = columns.stack.and_then(|column| batch.text(column, row));
            let stack = stack.unwrap_or_default();
            let seen = Seen { time, host, cpu, pid, tid, address, cgroup, stack };
            if self.is_named(&seen, wanted) && take(self, &seen) == Goes::NoFurther {
                return Goes::NoFurther;
            }
        }
        Goes::On
    }

    /// The samples among rows of a Parquet file, of which those of wanted hosts and times were chosen.
    pub(super) fn samples_of(
        &mut self,
        rows: &RecordBatch,
        wanted: &Wanted,
        take: &mut impl FnMut(&mut Self, &Seen<'_>) -> Goes,
    ) -> Goes {
        let numbers = [samples::TID, samples::PID, samples::ADDRESS, samples::CPU];
        let numbers = numbers.map(|column| column.values_in(rows));
        let (cgroup, stack) = (samples::CGROUP.values_in(rows), samples::STACK.values_in(rows));
        let hosts = samples::HOST.values_in(rows);
        let mut of_host: Option<(&str, usize)> = None;
        for (row, &time) in times(rows).iter().enumerate() {
            let [tid, pid, address, cpu] =
                numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
            if !wanted.has(cpu, pid) {
                continue;
            }
            let name = get(&hosts, row).unwrap_or_default();
            let host = match of_host {
                Some((of, host)) if of == name => host,
                _ => of_host.insert((name, self.host(Some(name)))).1,
            };
            let (cgroup, stack) = (get(&cgroup, row), get(&stack, row).unwrap_or_default());
            let seen = Seen { time, host, cpu, pid, tid, address, cgroup, stack };
            if self.is_named(&seen, wanted) && take(self, &seen) == Goes::NoFurther {
                return Goes::NoFurther;
            }
        }
        Goes::On
    }
}

/// The frames of a segment that wanted samples can be in.
pub(super) struct SampleFrames {
    pub(super) reader: SegmentReader,
    /// Where the table stands among those of the segment.
    at: usize,
    columns: Columns,
    batch: Batch,
    /// The least time and the first that is not wanted any more.
    ends: [i64; 2],
}

impl SampleFrames {
    /// Opens a segment; `None` where no wanted samples can be in it.
    pub(super) fn open(
        segment: SegmentFile,
        wanted: &Wanted,
    ) -> Result<Option<Self>, ReadSegmentError> {
        let ends = ends(wanted);
        let reader = SegmentReader::open_where(segment, |table, span| {
            table.name == samples::NAME && may_have(ends, span)
        })?;
        let Some(reader) = reader else { return Ok(None) };
        let tables = &reader.head().tables;
        let Some(at) = tables.iter().position(|table| table.name == samples::NAME) else {
            return Ok(None);
        };
        let (columns, batch) = (Columns::of(&tables[at]), Batch::new(at, &tables[at]));
        Ok(Some(Self { at, columns, batch, ends, reader }))
    }

    /// The next frame that wanted samples can be in.
    pub(super) fn next(&mut self) -> Result<Option<FrameHeader>, ReadSegmentError> {
        let Self { reader, at, ends, .. } = self;
        reader.next_rows(|header| {
            header.table == *at && may_have(*ends, (header.least_time, header.greatest_time))
        })
    }
}

/// Whether rows between two times can be wanted.
fn may_have([from, until]: [i64; 2], (least, greatest): (i64, i64)) -> bool {
    least < until && greatest >= from
}

/// Where the columns of samples stand in a segment, which may be of an earlier program.
pub(super) struct Columns {
    host: Option<usize>,
    cpu: Option<usize>,
    tid: Option<usize>,
    pid: Option<usize>,
    address: Option<usize>,
    cgroup: Option<usize>,
    stack: Option<usize>,
}

impl Columns {
    pub(super) fn of(table: &TableSchema) -> Self {
        Self {
            host: table.column(samples::HOST.name()),
            cpu: table.column(samples::CPU.name()),
            tid: table.column(samples::TID.name()),
            pid: table.column(samples::PID.name()),
            address: table.column(samples::ADDRESS.name()),
            cgroup: table.column(samples::CGROUP.name()),
            stack: table.column(samples::STACK.name()),
        }
    }
}

/// The least time and the first that is not wanted any more, ns since the epoch.
pub(super) fn ends(wanted: &Wanted) -> [i64; 2] {
    let from = wanted.from.map_or(i64::MIN, |from| from.as_nanos());
    [from, wanted.until.map_or(i64::MAX, |until| until.as_nanos())]
}

/// The hours that wanted samples can lie in.
fn hours(wanted: &Wanted) -> RangeInclusive<i64> {
    let [from, until] = ends(wanted);
    // No hour where the span ends before it begins.
    if from < until {
        hour_of(from)..=hour_of(until.saturating_sub(1))
    } else {
        RangeInclusive::new(1, 0)
    }
}
