//! Watching one recording, for a face that draws by itself.
//!
//! The same values as those of the page: counters as rates between the instants at which agents
//! update them, missing values missing. A running recording is followed by one thread of low
//! priority, a past is read by whoever asks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::answers;
use meikyo_recording::{Column, ReadError, Recording, TableSchema};
use meikyo_units::{Nanos, WallTime};

use crate::drawable::drawable;
use crate::follow::Follower;
use crate::frames::Step;
use crate::opened::{Device, Opened, name_of};
use crate::past;
use crate::queue::Queue;
use crate::staleness::{self, Held};
use crate::wish::Wish;

/// The columns of a table that are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The table's name.
    pub table: &'a str,
    /// Names of columns; those that the recording does not have are left out.
    pub columns: &'a [&'a str],
}

/// A table of readings that nobody asked for by name, with what its declaration says of it: a face
/// shows it without knowing what it measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The table's name.
    pub table: String,
    /// What a device has several of in it, `sensor`; the table's heading where it has one row.
    pub noun: String,
    /// The columns that are shown without being asked for, in their order.
    pub columns: Vec<OtherColumn>,
}

/// A column of such a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherColumn {
    /// The column's name in the table.
    pub name: String,
    /// One or two words for people.
    pub words: String,
    /// The unit as people write it, of a counter that of its rate; empty for plain numbers.
    pub unit: String,
}

impl Other {
    /// The table, if it has readings of devices that are worth showing unasked.
    fn if_shown(table: &TableSchema) -> Option<Self> {
        let is_shown = |column: &&Column| {
            (column.listed || column.shown.is_some()) && drawable(table, &column.name).is_ok()
        };
        let columns: Vec<_> = table.columns.iter().filter(is_shown).map(OtherColumn::new).collect();
        let has_devices = table.column(answers::DEVICE.name()).is_some();
        let fits = table.role() == Role::Readings && has_devices && !columns.is_empty();
        fits.then(|| Self {
            table: table.name.clone(),
            noun: table.part().map_or_else(|| table.title(), |part| part.noun),
            columns,
        })
    }
}

impl OtherColumn {
    fn new(column: &Column) -> Self {
        let unit = column.unit().map_or("", |unit| unit.symbol());
        Self {
            name: column.name.clone(),
            words: column.words(),
            unit: if column.counts() { format!("{unit}/s") } else { unit.to_owned() },
        }
    }
}

/// A recording that is watched.
#[derive(Debug)]
pub struct Watch {
    opened: Arc<Opened>,
    follower: Follower,
    wishes: Vec<Wish>,
    others: Vec<Other>,
}

impl Watch {
    /// Opens the recording in `dir`. Tables that it does not have are left out; those of a
    /// measurement that has just begun come with the next [`Watch::open`].
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(dir: &Path, wanted: &[Wanted<'_>]) -> Result<Self, ReadError> {
        let opened = Arc::new(Opened::open(dir, name_of(dir))?);
        let tables = opened.tables()?;
        if let Some(answers) = opened.table_for(Role::Answers)? {
            opened.with_series(&answers, |_| ())?;
        }
        let mut wishes = Vec::new();
        for Wanted { table, columns } in wanted {
            let Some(table) = tables.get(*table) else { continue };
            let columns = columns.iter().filter_map(|column| table.column(column)).collect();
            wishes.push(Wish { table: table.clone(), columns });
        }
        let is_wanted = |name: &str| wanted.iter().any(|wanted| wanted.table == name);
        let mut others = Vec::new();
        for table in tables.values().filter(|table| !is_wanted(&table.name)) {
            let Some(other) = Other::if_shown(table) else { continue };
            let columns = other.columns.iter().filter_map(|column| table.column(&column.name));
            wishes.push(Wish { table: table.clone(), columns: columns.collect() });
            others.push(other);
        }
        Ok(Self { follower: Follower::new(Arc::clone(&opened)), opened, wishes, others })
    }

    /// The tables of readings that were not asked for and are watched too, by name.
    pub fn others(&self) -> &[Other] {
        &self.others
    }

    /// The recording, for reading it in other ways.
    pub fn recording(&self) -> &Recording {
        &self.opened.recording
    }

    /// What is wrong with the recording, as far as its manifest and footers show it or a read met
    /// it: rows may be missing.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn problems(&self) -> Result<Vec<String>, ReadError> {
        let mut problems = self.opened.problems_listed()?;
        problems.extend(self.opened.problems_met());
        problems.sort();
        problems.dedup();
        Ok(problems.into_iter().map(|found| format!("`{}`: {}", found.file, found.what)).collect())
    }

    /// Whether a collector writes it now.
    pub fn is_running(&self) -> bool {
        self.opened.is_running()
    }

    /// Its first and its last instant; `None` while it has no rows.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn times(&self) -> Result<Option<(WallTime, WallTime)>, ReadError> {
        self.opened.times()
    }

    /// The shortest span between two polls in the minute before `newest`.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn interval(&self, newest: WallTime) -> Result<Option<Nanos>, ReadError> {
        // What was met is in `problems`.
        Ok(self.opened.interval_us(newest, &mut Vec::new())?.map(Nanos::from_micros))
    }

    /// How agents update values that their answers hold older ones of, at an instant, by device.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn held(&self, at: WallTime) -> Result<BTreeMap<String, Held>, ReadError> {
        // What was met is in `problems`.
        staleness::held(&self.opened, at, &mut Vec::new())
    }

    /// Its devices, in the order of the cluster file; those that only rows name come last.
    ///
    /// # Errors
    /// When the series cannot be looked up.
    pub fn devices(&self) -> Result<Vec<Device>, ReadError> {
        self.opened.devices()
    }

    /// Whether the recording has some of these tables, or others worth showing, by now, and did not
    /// when it was opened.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn lacks_tables(&self, wanted: &[Wanted<'_>]) -> Result<bool, ReadError> {
        let tables = self.opened.tables()?;
        let watched = |name: &str| self.wishes.iter().any(|wish| wish.table.name == name);
        let is_wanted = |name: &str| wanted.iter().any(|wanted| wanted.table == name);
        let mut new = tables.values().filter(|table| !watched(&table.name));
        Ok(new.any(|table| is_wanted(&table.name) || Other::if_shown(table).is_some()))
    }

    /// The labels of the series of a table that are known by now, by number from `from` on.
    pub fn labels(&self, table: &str, from: usize) -> Vec<Vec<String>> {
        let wish = self.wishes.iter().find(|wish| wish.table.name == table);
        wish.map_or_else(Vec::new, |wish| {
            let known = |labels: &[Vec<String>]| labels.get(from..).unwrap_or_default().to_vec();
            self.opened.with_known_series(&wish.table, |series| known(series.labels()))
        })
    }

    /// Follows the recording while it is written.
    pub fn live(&self) -> Live {
        let subscribe = |wish: &Wish| self.follower.subscribe(wish.clone());
        Live { queues: self.wishes.iter().map(subscribe).collect() }
    }

    /// The past from an instant on; rates are known some seconds behind it.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn past(&self, from: WallTime) -> Result<Past, ReadError> {
        Ok(Past(past::Past::begin(&self.opened, &self.wishes, from)?))
    }
}

/// What is new, until it is dropped.
#[derive(Debug)]
pub struct Live {
    /// One a table; every one of them gets everything.
    queues: Vec<Arc<Queue>>,
}

impl Live {
    /// What came since the last time, and how many steps were dropped because they were not taken
    /// for 2 s.
    pub fn drain(&self) -> (Vec<Arc<Step>>, u64) {
        let mut drained = self.queues.iter().map(|queue| queue.drain());
        let first = drained.next().unwrap_or_default();
        drained.for_each(drop);
        first
    }
}

/// A past that is read piece by piece.
#[derive(Debug)]
pub struct Past(past::Past);

impl Past {
    /// What came since the last piece up to `to`, exclusive, in order of time. A piece is held in
    /// memory whole.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn read(&mut self, to: WallTime) -> Result<Vec<Step>, ReadError> {
        self.0.read(to)
    }
}
