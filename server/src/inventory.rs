//! What a recording holds and what is wrong with it: tables, gaps, damaged files, the collector's
//! own conduct.

use arrow::array::RecordBatch;
use meikyo_live::Opened;
use meikyo_live::columns::{number, signed};
use meikyo_recording::schema::Role;
use meikyo_recording::{Selection, inventory};
use meikyo_units::Nanos;
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::ApiError;
use crate::parameters::micros;
use crate::wire::{ProblemBody, problem_bodies};

/// How much of the newest time the collector's conduct is told of.
const CONDUCT_SPAN: Nanos = Nanos::from_secs(600);

/// What a recording holds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InventoryBody {
    /// Tables, summaries among them.
    pub(crate) tables: Vec<TableInventoryBody>,
    /// Octets of the log.
    pub(crate) log_bytes: u64,
    /// Octets of Parquet files, summaries apart.
    pub(crate) parquet_bytes: u64,
    /// Octets of summaries.
    pub(crate) summary_bytes: u64,
    /// Octets of files a day of measuring; null while not known.
    pub(crate) bytes_a_day: Option<u64>,
    /// Octets that can still be written; null where the system does not say.
    pub(crate) room_bytes: Option<u64>,
    /// Spans of at least 10 s without a row.
    pub(crate) gaps: Vec<GapBody>,
    /// Files that cannot be read wholly.
    pub(crate) problems: Vec<ProblemBody>,
    /// How the collector did in the newest 10 minutes; null without intervals.
    pub(crate) collector: Option<CollectorBody>,
}

/// What there is of one table.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TableInventoryBody {
    /// The table's name.
    pub(crate) name: String,
    /// Rows, in the log and in files.
    pub(crate) rows: u64,
    /// Rows of these in the log.
    pub(crate) log_rows: u64,
    /// Octets of its files.
    pub(crate) parquet_bytes: u64,
    /// How many Parquet files it has.
    pub(crate) files: u64,
    /// The first instant.
    pub(crate) from_us: Option<i64>,
    /// The last instant.
    pub(crate) to_us: Option<i64>,
}

/// A span without a row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GapBody {
    /// The stream whose writer did not write.
    pub(crate) stream: String,
    /// The last row before.
    pub(crate) from_us: i64,
    /// The first row after.
    pub(crate) to_us: i64,
}

/// How the collector did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CollectorBody {
    /// Intervals that were looked at.
    pub(crate) intervals: u64,
    /// When the first request left after its due instant, median.
    pub(crate) start_us_p50: Option<i64>,
    /// The same, 99th percentile: the jitter of asking.
    pub(crate) start_us_p99: Option<i64>,
    /// When the last answer had been received, 99th percentile.
    pub(crate) complete_us_p99: Option<i64>,
    /// When the last row was handed to the kernel, 99th percentile.
    pub(crate) kept_us_p99: Option<i64>,
    /// Intervals that its own late wake-up spoiled.
    pub(crate) stalled: u64,
    /// Datagrams that its own socket dropped.
    pub(crate) socket_drops: u64,
    /// Datagrams that belonged to no open request.
    pub(crate) strays: u64,
}

/// Looks at every file's header. Blocks.
pub(crate) fn read(opened: &Opened) -> Result<InventoryBody, ApiError> {
    let dir = opened.recording.dir();
    let found = inventory::inventory(dir).map_err(|error| ApiError::internal(&error))?;
    let bytes_a_day = found.bytes_a_day();
    let problems = problems(opened, &found.problems);
    let tables = found.tables.into_iter().map(|table| TableInventoryBody {
        name: table.name,
        rows: table.rows,
        log_rows: table.log_rows,
        parquet_bytes: table.parquet_bytes,
        files: table.files,
        from_us: table.times.map(|(from, _)| micros(from)),
        to_us: table.times.map(|(_, to)| micros(to)),
    });
    let gaps = found.streams.into_iter().flat_map(|stream| {
        let name = stream.name;
        stream.gaps.into_iter().map(move |(from, to)| GapBody {
            stream: name.clone(),
            from_us: micros(from),
            to_us: micros(to),
        })
    });
    Ok(InventoryBody {
        tables: tables.collect(),
        log_bytes: found.log_bytes,
        parquet_bytes: found.parquet_bytes,
        summary_bytes: found.summary_bytes,
        bytes_a_day,
        room_bytes: found.room_bytes,
        gaps: gaps.collect(),
        problems,
        collector: conduct(opened)?,
    })
}

/// What the inventory found, and what reads of whole files met so far.
fn problems(opened: &Opened, found: &[meikyo_recording::read::Problem]) -> Vec<ProblemBody> {
    let mut problems: Vec<_> = found.iter().map(|problem| opened.named(problem)).collect();
    problems.extend(opened.problems_met());
    problems.sort();
    problems.dedup_by(|a, b| a.file == b.file);
    problem_bodies(problems)
}

#[derive(Default)]
struct Conduct {
    intervals: u64,
    start: Vec<i64>,
    complete: Vec<i64>,
    kept: Vec<i64>,
    stalled: u64,
    /// The least and the greatest of each counter.
    drops: Option<(u64, u64)>,
    strays: Option<(u64, u64)>,
}

fn conduct(opened: &Opened) -> Result<Option<CollectorBody>, ApiError> {
    let Some((_, newest)) = opened.times()? else { return Ok(None) };
    let Some(health) = opened.name_for(Role::Health)? else { return Ok(None) };
    let names = ["time", "start_us", "complete_us", "kept_us", "stalled", "socket_drops", "strays"];
    let selection = Selection {
        columns: Some(names.map(str::to_owned).to_vec()),
        from: Some(newest.before(CONDUCT_SPAN)),
        ..Selection::all(&health)
    };
    let Ok(scan) = opened.recording.scan(&selection) else { return Ok(None) };
    let mut conduct = Conduct::default();
    for batch in scan {
        conduct.add(&batch?);
    }
    let of = |values: &mut Vec<i64>, share: usize| {
        values.sort_unstable();
        values.get(values.len().saturating_sub(1) * share / 100).copied()
    };
    let counted = |ends: Option<(u64, u64)>| ends.map_or(0, |(least, most)| most - least);
    Ok((conduct.intervals > 0).then(|| CollectorBody {
        intervals: conduct.intervals,
        start_us_p50: of(&mut conduct.start, 50),
        start_us_p99: of(&mut conduct.start, 99),
        complete_us_p99: of(&mut conduct.complete, 99),
        kept_us_p99: of(&mut conduct.kept, 99),
        stalled: conduct.stalled,
        socket_drops: counted(conduct.drops),
        strays: counted(conduct.strays),
    }))
}

impl Conduct {
    fn add(&mut self, batch: &RecordBatch) {
        self.intervals += batch.num_rows() as u64;
        self.start.extend(signed(batch, "start_us").into_iter().flatten());
        self.complete.extend(signed(batch, "complete_us").into_iter().flatten());
        self.kept.extend(signed(batch, "kept_us").into_iter().flatten());
        self.stalled += number(batch, "stalled").into_iter().flatten().sum::<u64>();
        for (ends, name) in [(&mut self.drops, "socket_drops"), (&mut self.strays, "strays")] {
            for value in number(batch, name).into_iter().flatten() {
                let (least, most) = ends.unwrap_or((value, value));
                *ends = Some((least.min(value), most.max(value)));
            }
        }
    }
}
