//! One recording that is looked at: its tables, the numbers of its series, what is wrong with it.
//!
//! A series keeps its number as long as the recording is open, so that a page can hold on to it;
//! numbers are dense per table. What was looked up in a finished file is not looked up again.

mod devices;
mod roles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use meikyo_recording::read::Problem;
use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::health;
use meikyo_recording::summary::SUFFIX;
use meikyo_recording::{ReadError, Recording, Selection, TableSchema, inventory, layout};
use meikyo_units::WallTime;

pub use devices::Device;

use crate::columns::number;
use crate::series::SeriesOfTable;

/// Problems with files that are remembered.
const PROBLEMS_MAX: usize = 1_000;

/// A file that could not be read wholly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileProblem {
    /// The file, relative to the recording's directory.
    pub file: String,
    /// What is wrong with it, for people.
    pub what: String,
}

/// Problems with files in their order, each file once: several reads of one request meet the same
/// damage in other octets.
pub(crate) fn once_a_file(mut problems: Vec<FileProblem>) -> Vec<FileProblem> {
    problems.sort();
    problems.dedup_by(|a, b| a.file == b.file);
    problems
}

/// The instants that relative times are relative to.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The first instant that the recording has.
    pub from: WallTime,
    /// The instant that `now` stands for: the clock's while it runs, its end when finished.
    pub now: WallTime,
}

/// One recording that is looked at.
#[derive(Debug)]
pub struct Opened {
    /// Short name that no other recording of its [`Catalog`](crate::Catalog) has.
    pub id: String,
    /// The recording, for reading it in other ways.
    pub recording: Recording,
    /// The series of each table that was asked for.
    series: Mutex<BTreeMap<String, SeriesOfTable>>,
    /// Names of tables by what they are for, as far as they were looked up.
    roles: Mutex<BTreeMap<Role, String>>,
    problems: Mutex<BTreeSet<FileProblem>>,
}

/// The last part of a directory's path, in letters that can stand in an address.
pub(crate) fn name_of(dir: &Path) -> String {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.unwrap_or_default().chars().map(safe).collect();
    let name = name.trim_start_matches('.').to_owned();
    if name.is_empty() { "recording".into() } else { name }
}

impl Opened {
    /// Opens the recording in a directory.
    ///
    /// # Errors
    /// When there is none, or it is of a newer format.
    pub fn open(dir: &Path, id: impl Into<String>) -> Result<Self, ReadError> {
        Ok(Self {
            id: id.into(),
            recording: Recording::open(dir)?,
            series: Mutex::default(),
            roles: Mutex::default(),
            problems: Mutex::default(),
        })
    }

    /// Its name for people, which is that of its directory.
    pub fn name(&self) -> String {
        name_of(self.recording.dir())
    }

    /// Whether a writer has the recording now.
    pub fn is_running(&self) -> bool {
        inventory::live_streams(self.recording.dir()).is_ok_and(|streams| !streams.is_empty())
    }

    /// The tables but summaries, by name.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn tables(&self) -> Result<BTreeMap<String, TableSchema>, ReadError> {
        let mut tables = self.recording.tables()?;
        tables.retain(|name, _| !name.ends_with(SUFFIX));
        Ok(tables)
    }

    /// The schema of one table, which is no summary.
    ///
    /// # Errors
    /// [`ReadError::UnknownTable`] when there is none of that name, or the recording cannot be read.
    pub fn table(&self, name: &str) -> Result<TableSchema, ReadError> {
        if name.ends_with(SUFFIX) || !layout::is_name(name) {
            return Err(ReadError::UnknownTable {
                dir: self.recording.dir().to_path_buf(),
                table: name.to_owned(),
                known: self.tables()?.into_keys().collect(),
            });
        }
        self.recording.table(name)
    }

    /// The first and the last instant; `None` while there are no rows.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn times(&self) -> Result<Option<(WallTime, WallTime)>, ReadError> {
        for role in [Role::Health, Role::Answers] {
            let Some(table) = self.name_for(role)? else { continue };
            // Where some of it is missing, other tables say more.
            let (span, problems) = self.recording.span_told(&table)?;
            if span.is_some() && problems.is_empty() {
                return Ok(span);
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

    /// What relative times are relative to.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn span(&self) -> Result<Span, ReadError> {
        let times = self.times()?;
        let running = self.is_running() && self.recording.identity().clock == "CLOCK_REALTIME";
        let end = times.map(|(_, to)| WallTime::from_nanos(to.as_nanos().saturating_add(1)));
        let now = if running { WallTime::now() } else { end.unwrap_or_default() };
        Ok(Span { from: times.map_or(now, |(from, _)| from), now })
    }

    /// Does something with the series of a table, brought up to date.
    ///
    /// # Errors
    /// When files or log cannot be read.
    pub fn with_series<T>(
        &self,
        table: &TableSchema,
        take: impl FnOnce(&mut SeriesOfTable) -> T,
    ) -> Result<T, ReadError> {
        let mut all = self.all_series();
        let of_table = all.entry(table.name.clone()).or_insert_with(|| SeriesOfTable::new(table));
        of_table.refresh(&self.recording)?;
        for problem in of_table.problems() {
            self.problem(problem);
        }
        Ok(take(of_table))
    }

    /// What is wrong with the files from which the series of a table are known, as far as it can
    /// concern rows between two instants: rows of series that nobody knows are drawn nowhere. As
    /// [`Opened::with_series`] found it last.
    pub(crate) fn series_problems(
        &self,
        table: &TableSchema,
        (from, to): (WallTime, WallTime),
    ) -> Vec<FileProblem> {
        let hours = layout::hour_of(from.as_nanos())..=layout::hour_of(to.as_nanos());
        let concerns =
            |path: &Path| layout::hour_of_file(path).is_none_or(|hour| hours.contains(&hour));
        self.with_known_series(table, |series| {
            let problems = series.problems().into_iter();
            problems.filter(|found| concerns(&found.path)).map(|found| self.named(found)).collect()
        })
    }

    /// As [`Opened::with_series`], of the series that are known already: nothing is read.
    pub fn with_known_series<T>(
        &self,
        table: &TableSchema,
        take: impl FnOnce(&mut SeriesOfTable) -> T,
    ) -> T {
        let mut all = self.all_series();
        take(all.entry(table.name.clone()).or_insert_with(|| SeriesOfTable::new(table)))
    }

    /// The number of a device among the series of answers; `None` before those were looked at.
    pub fn device_number(&self, device: &str) -> Option<u32> {
        let answers = self.known_for(Role::Answers)?;
        let mut all = self.all_series();
        Some(all.get_mut(&answers)?.ordinal(vec![device.to_owned()]))
    }

    /// The shortest span between two polls that the newest rows about health name; `problems` takes
    /// what could not be read.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn interval_us(
        &self,
        newest: WallTime,
        problems: &mut Vec<FileProblem>,
    ) -> Result<Option<u64>, ReadError> {
        let Some(health) = self.name_for(Role::Health)? else { return Ok(None) };
        let selection = Selection {
            columns: Some(vec![health::INTERVAL_US.name().into()]),
            from: Some(newest.before(meikyo_units::Nanos::from_secs(60))),
            ..Selection::all(&health)
        };
        let mut scan = match self.recording.scan(&selection) {
            Ok(scan) => scan,
            Err(ReadError::UnknownTable { .. } | ReadError::UnknownColumn { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut least = None;
        for batch in &mut scan {
            let spans = number(&batch?, health::INTERVAL_US.name());
            least = spans.into_iter().flatten().chain(least).filter(|us| *us > 0).min();
        }
        problems.extend(scan.problems().iter().map(|problem| self.problem(problem)));
        Ok(least)
    }

    /// A problem that a read met, named relative to the recording; it is remembered.
    pub fn problem(&self, problem: &Problem) -> FileProblem {
        let named = self.named(problem);
        let mut met = self.problems();
        if met.len() < PROBLEMS_MAX {
            met.insert(named.clone());
        }
        named
    }

    /// What is wrong with the recording, as far as that is seen without reading rows.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn problems_listed(&self) -> Result<Vec<FileProblem>, ReadError> {
        let (_, found) = self.recording.catalogue()?;
        Ok(found.iter().map(|problem| self.named(problem)).collect())
    }

    /// The problems that reads met so far.
    pub fn problems_met(&self) -> Vec<FileProblem> {
        let met = self.problems();
        met.iter().cloned().collect()
    }

    /// A problem with a file, named relative to the recording.
    pub fn named(&self, problem: &Problem) -> FileProblem {
        let file = problem.path.strip_prefix(self.recording.dir()).unwrap_or(&problem.path);
        FileProblem { file: file.display().to_string(), what: problem.what.clone() }
    }

    fn all_series(&self) -> MutexGuard<'_, BTreeMap<String, SeriesOfTable>> {
        self.series.lock().expect(NUMBERS)
    }

    fn problems(&self) -> MutexGuard<'_, BTreeSet<FileProblem>> {
        self.problems.lock().expect("nothing that holds the problems can panic")
    }
}

/// A thread that panicked while it numbered series may have left them half done: values would be
/// told of the wrong device, and no answer is better.
const NUMBERS: &str = "no thread panicked while it numbered series";
