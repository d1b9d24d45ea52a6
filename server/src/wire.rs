//! What is sent as JSON: the types that the OpenAPI document describes.
//!
//! Times are µs since the epoch of the recording, which every JSON reader can hold exactly.

use std::collections::BTreeMap;

use meikyo_live::{Bins, FileProblem, Opened};
use meikyo_profile::tables::samples;
use meikyo_recording::{ReadError, TableSchema, series};
use serde::Serialize;
use utoipa::ToSchema;

use crate::column_units::{meaning_of, role_of, unit_of};
use crate::parameters::micros;

/// A recording as the API describes it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RecordingBody {
    /// Short and stable name in addresses.
    pub(crate) id: String,
    /// Name for people: its directory.
    pub(crate) name: String,
    /// `measured` or `simulated`.
    pub(crate) kind: String,
    /// Whether somebody writes it now.
    pub(crate) running: bool,
    /// The first instant; null while it has no rows.
    pub(crate) from_us: Option<i64>,
    /// The last instant; null while it has no rows.
    pub(crate) to_us: Option<i64>,
    /// The shortest span between two polls of a device; null when not known.
    pub(crate) interval_us: Option<u64>,
    /// Its devices, in the order of the cluster file where that is known.
    pub(crate) devices: Vec<DeviceBody>,
    /// What rows there are, by table.
    pub(crate) tables: Vec<TableBody>,
}

impl RecordingBody {
    /// The recording as it stands. Blocks while files are read.
    pub(crate) fn new(opened: &Opened) -> Result<Self, ReadError> {
        let times = opened.times()?;
        let interval = times.map(|(_, to)| opened.interval_us(to, &mut Vec::new())).transpose()?;
        let devices = (0..).zip(opened.devices()?).map(|(ordinal, device)| DeviceBody {
            ordinal,
            name: device.name,
            role: device.role,
            group: device.group,
            agent: device
                .agent
                .map(|agent| AgentBody { address: agent.address, version: agent.version }),
        });
        Ok(Self {
            id: opened.id.clone(),
            name: opened.name(),
            kind: opened.recording.identity().kind.word().to_owned(),
            running: opened.is_running(),
            from_us: times.map(|(from, _)| micros(from)),
            to_us: times.map(|(_, to)| micros(to)),
            interval_us: interval.flatten(),
            devices: devices.collect(),
            tables: opened.tables()?.values().map(TableBody::new).collect(),
        })
    }

    /// What of it whoever sees only some samples may know.
    pub(crate) fn of_samples(mut self) -> Self {
        self.devices.clear();
        self.tables.retain(|table| table.name == samples::NAME);
        self
    }
}

/// A device as its recording knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct DeviceBody {
    /// Position in the list.
    pub(crate) ordinal: u32,
    /// Name, as in the label `device`.
    pub(crate) name: String,
    /// `host`, `switch` or `unknown`.
    pub(crate) role: &'static str,
    /// The group it stands in, for example a rack.
    pub(crate) group: Option<String>,
    /// How it is asked; null when that is not known.
    pub(crate) agent: Option<AgentBody>,
}

/// The agent of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct AgentBody {
    /// Address and port.
    pub(crate) address: String,
    /// Version of SNMP: `1`, `2c` or `3`.
    pub(crate) version: String,
}

/// A table as its writer declared it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TableBody {
    /// The name by which requests ask for it.
    pub(crate) name: String,
    /// What it is for: `readings`, `answers` (how devices' intervals ended), `health`, `requests`,
    /// `findings` (how often values are updated), `events`, `clocks`, `samples` (of processors) or
    /// `context` (what explains them).
    pub(crate) role: &'static str,
    /// What people call it, as a heading.
    pub(crate) title: String,
    /// What a device has several series of in it; null where it has one.
    pub(crate) part: Option<PartBody>,
    /// One sentence for people.
    pub(crate) doc: String,
    /// The columns that name a series.
    pub(crate) labels: Vec<String>,
    /// All columns but `time`.
    pub(crate) columns: Vec<ColumnBody>,
}

impl TableBody {
    fn new(table: &TableSchema) -> Self {
        let columns = table.columns.iter().skip(1).map(|column| ColumnBody {
            name: column.name.clone(),
            meaning: meaning_of(column),
            unit: unit_of(column),
            doc: column.doc.clone(),
            words: column.words(),
            shown: column.shown,
            listed: column.listed,
            beside: column.beside.clone(),
            joins: column.joins.clone(),
            order: column.order(),
        });
        let part = table.part().map(|part| PartBody { noun: part.noun, greatest: part.greatest });
        Self {
            name: table.name.clone(),
            role: role_of(table),
            title: table.title(),
            part,
            doc: table.doc.clone(),
            labels: series::labels(table).map(|label| table.columns[label].name.clone()).collect(),
            columns: columns.collect(),
        }
    }
}

/// What a device has several of.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PartBody {
    /// One of them: `interface`.
    pub(crate) noun: String,
    /// What the one with the greatest value is: `busiest`.
    pub(crate) greatest: String,
}

/// A column as its writer declared it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ColumnBody {
    /// The name by which requests ask for it.
    pub(crate) name: String,
    /// `gauge`, `counter`, `state`, `label` or `detail`.
    pub(crate) meaning: &'static str,
    /// Unit of its values as they are drawn, counters as rates: `octets/s`; empty when none.
    pub(crate) unit: String,
    /// One sentence for people.
    pub(crate) doc: String,
    /// One or two words for people: `disk used`.
    pub(crate) words: String,
    /// Place among what is shown without being asked for, from 1; null for what is only shown when
    /// chosen.
    pub(crate) shown: Option<u8>,
    /// Whether its newest value is a fact about a device, read as a number.
    pub(crate) listed: bool,
    /// The column that is looked at together with it: the other direction of a link.
    pub(crate) beside: Option<String>,
    /// The table whose row of the same time, device and value of this column explains the row.
    pub(crate) joins: Option<String>,
    /// The words of a state, from best to worst; empty for other columns.
    pub(crate) order: Vec<String>,
}

/// One series: what agrees in all labels.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SeriesBody {
    /// Number of the series in its table, the same as long as the server runs.
    pub(crate) ordinal: u32,
    /// The labels by name.
    pub(crate) labels: BTreeMap<String, String>,
}

/// A file that could not be read wholly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// The file, relative to the recording.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

impl From<FileProblem> for ProblemBody {
    fn from(FileProblem { file, what }: FileProblem) -> Self {
        Self { file, what }
    }
}

/// Problems in the words of the API.
pub(crate) fn problem_bodies(problems: Vec<FileProblem>) -> Vec<ProblemBody> {
    problems.into_iter().map(ProblemBody::from).collect()
}

/// How many pixels there are.
pub(crate) fn bins_told(bins: Bins) -> u32 {
    u32::try_from(bins.count()).expect("at most `WIDTH_MAX` and one")
}

/// Values per series and pixel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RangeBody {
    /// The begin of bin 0.
    pub(crate) from_us: i64,
    /// The length of a bin.
    pub(crate) bin_us: i64,
    /// Bins from `from` to `to`.
    pub(crate) bins: u32,
    /// The span of the summaries that were read, ms; 0 where raw readings were.
    pub(crate) level_ms: u64,
    /// Unit of the values.
    pub(crate) unit: String,
    /// The series, or folded rows of neighbouring series, that have values.
    pub(crate) rows: Vec<RangeRowBody>,
    /// Series a row; 1 when nothing was folded.
    pub(crate) series_per_row: u32,
    /// Files that could not be read: what they held is missing from the rows.
    pub(crate) problems: Vec<ProblemBody>,
}

/// Values of one row; columns of equal length.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RangeRowBody {
    /// Ordinal of the series, or of the row.
    pub(crate) series: u32,
    /// The labels of the series, or of the first one of the row.
    pub(crate) labels: BTreeMap<String, String>,
    /// The bins that have a value.
    #[serde(rename = "bins")]
    pub(crate) of_bins: Vec<u32>,
    /// The least value in each of them.
    pub(crate) min: Vec<f32>,
    /// The mean, weighted by readings or by known time.
    pub(crate) mean: Vec<f32>,
    /// The greatest.
    pub(crate) max: Vec<f32>,
    /// How many readings.
    pub(crate) count: Vec<u32>,
}
