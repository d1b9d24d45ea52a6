//! What all readers of a recording say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use meikyo_recording::query::{self, View};
use meikyo_recording::{ReadError, Recording, Selection, alerts, check, inventory};
use meikyo_units::{Nanos, WallTime};

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether the reader says that something is wrong.
    pub(crate) told: bool,
}

#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) answers: BTreeMap<String, Answer>,
}

impl Answers {
    pub(crate) fn is_whole(&self) -> bool {
        !self.answers.values().any(|answer| answer.told)
    }

    pub(crate) fn rows(&self) -> usize {
        self.answers["interfaces Readings"].text.lines().count()
    }
}

/// Asks every reader.
pub(crate) fn answers(dir: &Path) -> Answers {
    let mut answers = BTreeMap::new();
    for table in ["polls", "interfaces", "polls.summary", "interfaces.summary"] {
        for view in views(table) {
            let selection = Selection::all(table);
            answers.insert(format!("{table} {view:?}"), queried(dir, &selection, view));
        }
    }
    let at =
        |seconds: i64| WallTime::from_nanos(1_795_294_200_000_000_000 + seconds * 1_000_000_000);
    let part = Selection {
        labels: vec![("device".into(), vec!["a2".into()])],
        columns: Some(vec!["time".into(), "in_octets".into()]),
        from: Some(at(300)),
        to: Some(at(650)),
        ..Selection::all("interfaces")
    };
    answers.insert("a part".into(), queried(dir, &part, View::Readings));
    answers.insert("check".into(), checked(dir));
    answers.insert("info".into(), informed(dir));
    answers.insert("tables".into(), catalogued(dir));
    answers.insert("alerts".into(), alerted(dir));
    Answers { answers }
}

fn views(table: &str) -> Vec<View> {
    if table.ends_with(".summary") {
        return vec![View::Readings];
    }
    vec![View::Readings, View::Received, View::Rates, View::Every(Nanos::from_secs(10))]
}

fn refused(error: &ReadError) -> Answer {
    Answer { text: format!("refused: {error}"), told: true }
}

fn queried(dir: &Path, selection: &Selection, view: View) -> Answer {
    let recording = match Recording::open(dir) {
        Ok(recording) => recording,
        Err(error) => return refused(&error),
    };
    let mut lines = Vec::new();
    let outcome = query::run(&recording, selection, view, |rows| {
        lines.extend(lines_of(rows));
        Ok::<_, ReadError>(())
    });
    match outcome {
        // Rows of several files have no order among each other.
        Ok(outcome) => {
            lines.sort();
            Answer { text: lines.join("\n"), told: !outcome.problems.is_empty() }
        }
        Err(error) => refused(&error),
    }
}

fn lines_of(rows: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let plain = |column: &ArrayRef| match column.data_type() {
        // Names of time zones are not compiled in.
        DataType::Timestamp(..) => cast(column, &DataType::Int64).unwrap(),
        _ => column.clone(),
    };
    let plain: Vec<_> = rows.columns().iter().map(plain).collect();
    let columns: Vec<_> =
        plain.iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let line = |row| {
        columns.iter().fold(String::new(), |mut line, column| {
            write!(line, "{} ", column.value(row)).unwrap();
            line
        })
    };
    (0..rows.num_rows()).map(line).collect()
}

fn checked(dir: &Path) -> Answer {
    match check::check(dir) {
        Ok(report) => {
            let text = report.rows.to_string();
            Answer { text, told: !report.damage.is_empty() }
        }
        Err(error) => Answer { text: error.to_string(), told: true },
    }
}

fn informed(dir: &Path) -> Answer {
    match inventory::inventory(dir) {
        Ok(found) => {
            let rows: Vec<_> =
                found.tables.iter().map(|table| (&*table.name, table.rows, table.times)).collect();
            Answer { text: format!("{rows:?}"), told: !found.problems.is_empty() }
        }
        Err(error) => Answer { text: error.to_string(), told: true },
    }
}

fn catalogued(dir: &Path) -> Answer {
    let found = Recording::open(dir).and_then(|recording| recording.catalogue());
    match found {
        Ok((tables, problems)) => {
            let names: Vec<_> = tables.into_keys().collect();
            Answer { text: names.join(" "), told: !problems.is_empty() }
        }
        Err(error) => refused(&error),
    }
}

fn alerted(dir: &Path) -> Answer {
    let recording = match Recording::open(dir) {
        Ok(recording) => recording,
        Err(error) => return refused(&error),
    };
    match alerts::read(&recording) {
        Ok((found, problems)) => Answer { text: format!("{found:?}"), told: !problems.is_empty() },
        Err(error) => refused(&error),
    }
}
