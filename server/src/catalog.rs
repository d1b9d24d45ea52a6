//! The recordings that are served: what they are, their tables, and their series by number.
//!
//! A series keeps its number as long as the server runs, so that a page can hold on to it; numbers
//! are dense per table. What was looked up in a finished file is not looked up again.

mod devices;
mod roles;
mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::health;
use meikyo_recording::summary::SUFFIX;
use meikyo_recording::{ReadError, Recording, Selection, TableSchema, inventory};
use meikyo_units::WallTime;

pub(crate) use series::{SeriesOfTable, ordinals_of_runs};

use crate::column_units::{meaning_of, role_of, unit_of};
use crate::errors::ApiError;
use crate::follow::Follower;
use crate::live::SharedMessages;
use crate::parameters::{Span, micros};
use crate::wire::{ColumnBody, PartBody, ProblemBody, RecordingBody, TableBody};

/// Problems with files that are remembered.
const PROBLEMS_MAX: usize = 1_000;

/// The recordings, in the order in which they were named.
#[derive(Debug)]
pub(crate) struct Catalog {
    recordings: Vec<Arc<Opened>>,
}

/// One recording that is served.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Short name in addresses.
    pub(crate) id: String,
    /// The recording.
    pub(crate) recording: Recording,
    /// The series of each table that was asked for.
    series: Mutex<BTreeMap<String, SeriesOfTable>>,
    /// Names of tables by what they are for, as far as they were looked up.
    roles: Mutex<BTreeMap<Role, String>>,
    problems: Mutex<BTreeSet<ProblemBody>>,
    /// Follows its log while somebody looks.
    pub(crate) follower: Arc<Follower>,
    /// What its viewers get in common.
    pub(crate) messages: SharedMessages,
}

impl Catalog {
    /// Opens the recordings in some directories.
    pub(crate) fn open(dirs: &[PathBuf]) -> Result<Self, ReadError> {
        let mut recordings: Vec<Arc<Opened>> = Vec::new();
        for dir in dirs {
            let recording = Recording::open(dir)?;
            let name = name_of(dir);
            let taken = |id: &str| recordings.iter().any(|other| other.id == id);
            let mut ids = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}")));
            let id = ids.find(|id| !taken(id)).expect("the numbers do not end");
            let (series, roles) = (Mutex::default(), Mutex::default());
            let follower = Arc::default();
            let problems = Mutex::default();
            let messages = SharedMessages::default();
            let opened = Opened { id, recording, series, roles, problems, follower, messages };
            recordings.push(Arc::new(opened));
        }
        Ok(Self { recordings })
    }

    /// All recordings.
    pub(crate) fn all(&self) -> &[Arc<Opened>] {
        &self.recordings
    }

    /// Looks up the series of all tables, so that the first view need not wait for it.
    pub(crate) fn warm(&self) {
        for opened in &self.recordings {
            for table in opened.tables().unwrap_or_default().values() {
                if let Err(error) = opened.with_series(table, |_| ()) {
                    tracing::warn!(?error, recording = opened.id, "series are not known yet");
                }
            }
        }
    }

    /// Ends everything that follows a recording.
    pub(crate) fn stop(&self) {
        self.recordings.iter().for_each(|opened| opened.follower.stop());
    }

    /// The recording of that id.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<Opened>, ApiError> {
        let found = self.recordings.iter().find(|opened| opened.id == id);
        found.cloned().ok_or_else(|| {
            let known: Vec<_> = self.recordings.iter().map(|opened| opened.id.as_str()).collect();
            let text = format!("there is no recording `{id}`; there are {}", known.join(", "));
            ApiError::unknown(text, "id")
        })
    }
}

/// The last part of a directory's path that can stand in an address.
fn name_of(dir: &Path) -> String {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.unwrap_or_default().chars().map(safe).collect();
    let name = name.trim_start_matches('.').to_owned();
    if name.is_empty() { "recording".into() } else { name }
}

impl Opened {
    /// Whether a writer has the recording now.
    pub(crate) fn is_running(&self) -> bool {
        inventory::live_streams(self.recording.dir()).is_ok_and(|streams| !streams.is_empty())
    }

    /// The tables but summaries, by name.
    pub(crate) fn tables(&self) -> Result<BTreeMap<String, TableSchema>, ReadError> {
        let mut tables = self.recording.tables()?;
        tables.retain(|name, _| !name.ends_with(SUFFIX));
        Ok(tables)
    }

    /// The schema of one table, which is no summary.
    pub(crate) fn table(&self, name: &str) -> Result<TableSchema, ApiError> {
        if name.ends_with(SUFFIX) || !meikyo_recording::layout::is_name(name) {
            let text = format!("there is no table `{name}`; `GET api/v1/recordings` lists them");
            return Err(ApiError::unknown(text, "table"));
        }
        Ok(self.recording.table(name)?)
    }

    /// The first and the last instant; `None` while there are no rows.
    pub(crate) fn times(&self) -> Result<Option<(WallTime, WallTime)>, ReadError> {
        for role in [Role::Health, Role::Answers] {
            let Some(table) = self.name_for(role)? else { continue };
            if let Some(span) = self.recording.span(&table)? {
                return Ok(Some(span));
            }
        }
        let mut times: Option<(WallTime, WallTime)> = None;
        for name in self.tables()?.keys() {
            if let Some((from, to)) = self.recording.span(name)? {
                let (least, greatest) = times.unwrap_or((from, to));
                times = Some((least.min(from), greatest.max(to)));
            }
        }
        Ok(times)
    }

    /// What times in requests are relative to.
    pub(crate) fn span(&self) -> Result<Span, ApiError> {
        let times = self.times()?;
        let running = self.is_running() && self.recording.identity().clock == "CLOCK_REALTIME";
        let end = times.map(|(_, to)| WallTime::from_nanos(to.as_nanos().saturating_add(1)));
        let now = if running { WallTime::now() } else { end.unwrap_or_default() };
        Ok(Span { from: times.map_or(now, |(from, _)| from), now })
    }

    /// Does something with the series of a table, brought up to date.
    pub(crate) fn with_series<T>(
        &self,
        table: &TableSchema,
        take: impl FnOnce(&mut SeriesOfTable) -> T,
    ) -> Result<T, ApiError> {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let of_table = all.entry(table.name.clone()).or_insert_with(|| SeriesOfTable::new(table));
        of_table.refresh(&self.recording)?;
        Ok(take(of_table))
    }

    /// As [`Opened::with_series`], of the series that are known already: nothing is read.
    pub(crate) fn with_known_series<T>(
        &self,
        table: &TableSchema,
        take: impl FnOnce(&mut SeriesOfTable) -> T,
    ) -> T {
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        take(all.entry(table.name.clone()).or_insert_with(|| SeriesOfTable::new(table)))
    }

    /// The number of a device among the series of answers; `None` before those were looked at.
    pub(crate) fn device_number(&self, device: &str) -> Option<u32> {
        let answers = self.known_for(Role::Answers)?;
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        Some(all.get_mut(&answers)?.ordinal(vec![device.to_owned()]))
    }

    /// The shortest span between two polls that the newest rows about health name.
    pub(crate) fn interval_us(&self, newest: WallTime) -> Result<Option<u64>, ReadError> {
        let Some(health) = self.name_for(Role::Health)? else { return Ok(None) };
        let selection = Selection {
            columns: Some(vec![health::INTERVAL_US.name().into()]),
            from: Some(newest.before(meikyo_units::Nanos::from_secs(60))),
            ..Selection::all(&health)
        };
        let scan = match self.recording.scan(&selection) {
            Ok(scan) => scan,
            Err(ReadError::UnknownTable { .. } | ReadError::UnknownColumn { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut least = None;
        for batch in scan {
            let spans = crate::columns::number(&batch?, health::INTERVAL_US.name());
            least = spans.into_iter().flatten().chain(least).filter(|us| *us > 0).min();
        }
        Ok(least)
    }

    /// A problem that a read met, named relative to the recording; it is remembered.
    pub(crate) fn problem(&self, problem: &meikyo_recording::read::Problem) -> ProblemBody {
        let named = self.named(problem);
        let mut met = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() < PROBLEMS_MAX {
            met.insert(named.clone());
        }
        named
    }

    /// The problems that reads met so far.
    pub(crate) fn problems_met(&self) -> Vec<ProblemBody> {
        let met = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        met.iter().cloned().collect()
    }

    /// A problem with a file, named relative to the recording.
    pub(crate) fn named(&self, problem: &meikyo_recording::read::Problem) -> ProblemBody {
        let file = problem.path.strip_prefix(self.recording.dir()).unwrap_or(&problem.path);
        ProblemBody { file: file.display().to_string(), what: problem.what.clone() }
    }

    /// The recording as the API describes it.
    pub(crate) fn body(&self) -> Result<RecordingBody, ApiError> {
        let times = self.times()?;
        let tables = self.tables()?;
        Ok(RecordingBody {
            id: self.id.clone(),
            name: name_of(self.recording.dir()),
            kind: self.recording.identity().kind.word().to_owned(),
            running: self.is_running(),
            from_us: times.map(|(from, _)| micros(from)),
            to_us: times.map(|(_, to)| micros(to)),
            interval_us: times.map(|(_, to)| self.interval_us(to)).transpose()?.flatten(),
            devices: self.devices(tables.values().find(|table| table.role() == Role::Answers))?,
            tables: tables.values().map(table_body).collect(),
        })
    }
}

fn table_body(table: &TableSchema) -> TableBody {
    let labels = meikyo_recording::series::labels(table);
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
    TableBody {
        name: table.name.clone(),
        role: role_of(table),
        title: table.title(),
        part,
        doc: table.doc.clone(),
        labels: labels.map(|label| table.columns[label].name.clone()).collect(),
        columns: columns.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_names_of_directories_and_differ() {
        let dir = tempfile::tempdir().unwrap();
        let mut dirs = Vec::new();
        for name in ["a/run 1", "b/run 1", "c/.x"] {
            let recording = dir.path().join(name);
            meikyo_recording::format::create(&recording, meikyo_recording::Kind::Measured).unwrap();
            dirs.push(recording);
        }
        let catalog = Catalog::open(&dirs).unwrap();
        let ids: Vec<_> = catalog.all().iter().map(|opened| opened.id.as_str()).collect();
        assert_eq!(ids, ["run-1", "run-1-2", "x"]);
        assert!(catalog.get("run-1-2").is_ok());
        assert!(catalog.get("..").unwrap_err().body().error.contains("run-1, run-1-2, x"));
    }
}
