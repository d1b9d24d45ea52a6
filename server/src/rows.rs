//! Rows as they are: readings with their polls, events, findings about freshness.

use arrow::array::RecordBatch;
use meikyo_live::columns::{number, text, times};
use meikyo_live::values::{JSON_INTEGER_MAX, Value, Values};
use meikyo_live::{Event, Opened, events_of, label_names};
use meikyo_recording::query::{self, View};
use meikyo_recording::read::Problem;
use meikyo_recording::schema::role::answers;
use meikyo_recording::schema::{Role, State};
use meikyo_recording::{ReadError, Selection};
use serde::Serialize;
use utoipa::ToSchema;

use crate::errors::ApiError;
use crate::parameters::{Parameters, micros};
use crate::socket::messages::EventBody;
use crate::wire::{ProblemBody, problem_bodies};

/// Most rows of one answer.
const ROWS_MAX: u32 = 100_000;

/// Rows, newest last.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowsBody {
    /// Names of the columns; times are µs since 1970.
    pub(crate) columns: Vec<String>,
    /// The values of each row in that order; numbers beyond 2^53 as texts, null where missing.
    pub(crate) rows: Vec<Vec<serde_json::Value>>,
    /// Whether there are more rows than were asked for.
    pub(crate) truncated: bool,
    /// Files that could not be read.
    pub(crate) problems: Vec<ProblemBody>,
}

/// Events, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsBody {
    /// The newest ones of the time.
    pub(crate) events: Vec<EventBody>,
    /// Whether there are more than were asked for.
    pub(crate) truncated: bool,
    /// Files that could not be read: events of them are missing.
    pub(crate) problems: Vec<ProblemBody>,
}

/// The selection that a query asks for, and most rows.
fn selection(
    opened: &Opened,
    table: &str,
    parameters: Parameters,
) -> Result<(Selection, usize), ApiError> {
    let mut parameters = parameters;
    let schema = opened.table(table)?;
    let (from, to) = parameters.span(opened.span()?)?;
    let limit = parameters.number("limit", 1_000, 1..=ROWS_MAX)?;
    let columns = parameters.optional("columns");
    let columns = columns.map(|names| names.split(',').map(str::to_owned).collect());
    let labels = parameters.labels(&label_names(&schema))?;
    let selection =
        Selection { table: table.into(), columns, labels, from: Some(from), to: Some(to) };
    Ok((selection, limit as usize))
}

/// Raw readings, each with the receive time, round trip and state of the poll that brought it.
pub(crate) fn readings(opened: &Opened, query: Option<&str>) -> Result<RowsBody, ApiError> {
    let mut parameters = Parameters::parse(query)?;
    let table = parameters.need("table")?;
    let (selection, limit) = selection(opened, &table, parameters)?;
    let schema = opened.table(&table)?;
    let joined = schema.answers();
    let joins = joined.is_some();
    let polls = joined.map(|joined| poll_facts(opened, joined, &selection)).transpose()?;
    let (polls, of_polls) = polls.unwrap_or_default();
    let mut body =
        RowsBody { columns: Vec::new(), rows: Vec::new(), truncated: false, problems: Vec::new() };
    let view = if joins { View::Received } else { View::Readings };
    let mut found: Vec<(i64, Vec<serde_json::Value>)> = Vec::new();
    let outcome = query::run(&opened.recording, &selection, view, |batch| {
        if body.columns.is_empty() {
            body.columns =
                batch.schema().fields().iter().map(|field| named(field.name())).collect();
            if joins {
                body.columns.push("state".into());
            }
        }
        take_rows(batch, joins.then_some(&polls), &mut found);
        // The newest are kept; half as many again are held so that this is done seldom.
        if found.len() > 2 * limit {
            body.truncated = true;
            keep_newest(&mut found, limit);
        }
        Ok::<_, ApiError>(())
    })?;
    body.truncated |= found.len() > limit;
    keep_newest(&mut found, limit);
    body.rows = found.into_iter().map(|(_, row)| row).collect();
    let mut problems = [outcome.problems, of_polls].concat();
    problems.sort();
    problems.dedup();
    body.problems = problems_met(opened, &problems);
    Ok(body)
}

fn keep_newest(rows: &mut Vec<(i64, Vec<serde_json::Value>)>, limit: usize) {
    rows.sort_by_key(|(time, _)| *time);
    rows.drain(..rows.len().saturating_sub(limit));
}

fn named(column: &str) -> String {
    match column {
        "time" | "received" => format!("{column}_us"),
        other => other.to_owned(),
    }
}

/// The state of polls by device, due instant and PDU.
type PollFacts = std::collections::BTreeMap<(String, i64, u64), String>;

/// The states of the polls of a selection, and what of them could not be read.
fn poll_facts(
    opened: &Opened,
    table: &str,
    selection: &Selection,
) -> Result<(PollFacts, Vec<Problem>), ApiError> {
    let mut facts = PollFacts::new();
    let device = answers::DEVICE.name();
    let columns = ["time", device, answers::PDU.name(), answers::STATE.name()];
    let of_polls = Selection {
        table: table.into(),
        columns: Some(columns.map(str::to_owned).to_vec()),
        labels: selection.labels.iter().filter(|(name, _)| name == device).cloned().collect(),
        ..selection.clone()
    };
    let mut scan = match opened.recording.scan(&of_polls) {
        Ok(scan) => scan,
        Err(ReadError::UnknownTable { .. }) => return Ok((facts, Vec::new())),
        Err(error) => return Err(error.into()),
    };
    for batch in &mut scan {
        let batch = batch?;
        let pdus = number(&batch, answers::PDU.name());
        for (row, &time) in times(&batch).iter().enumerate() {
            let word = |name: &str| text(&batch, name, row).unwrap_or_default();
            let state = word(answers::STATE.name());
            // What is ok need not be remembered.
            if state != State::Ok.word() {
                let pdu = pdus.get(row).copied().flatten().unwrap_or(0);
                facts.insert((word(device).to_owned(), time, pdu), state.to_owned());
            }
        }
    }
    Ok((facts, scan.problems().to_vec()))
}

fn take_rows(
    batch: &RecordBatch,
    polls: Option<&PollFacts>,
    rows: &mut Vec<(i64, Vec<serde_json::Value>)>,
) {
    let pdus = number(batch, answers::PDU.name());
    let columns: Vec<_> = batch.columns().iter().map(Values::new).collect();
    for (row, &time) in times(batch).iter().enumerate() {
        let mut values: Vec<_> = columns.iter().map(|column| json(column.value(row))).collect();
        if let Some(polls) = polls {
            let device = text(batch, answers::DEVICE.name(), row);
            let device = device.unwrap_or_default().to_owned();
            let pdu = pdus.get(row).copied().flatten().unwrap_or(0);
            let state = polls.get(&(device, time, pdu)).map_or(State::Ok.word(), String::as_str);
            values.push(state.into());
        }
        rows.push((time, values));
    }
}

/// What happened. Where no time is asked for it is all of it: what is told of a recording as such stands
/// before its first reading or behind its last one.
pub(crate) fn events(opened: &Opened, query: Option<&str>) -> Result<EventsBody, ApiError> {
    let Some(table) = opened.table_for(Role::Events)? else {
        let problems = problem_bodies(opened.problems_listed()?);
        return Ok(EventsBody { events: Vec::new(), truncated: false, problems });
    };
    let parameters = Parameters::parse(query)?;
    let (begins, ends) = (parameters.has("from"), parameters.has("to"));
    let (selection, limit) = selection(opened, &table.name, parameters)?;
    let selection = Selection {
        columns: None,
        from: selection.from.filter(|_| begins),
        to: selection.to.filter(|_| ends),
        ..selection
    };
    let mut events: Vec<Event> = Vec::new();
    let mut scan = opened.recording.scan(&selection)?;
    for batch in &mut scan {
        events.extend(events_of(&batch?));
    }
    events.sort_by_key(|event| event.time);
    let truncated = events.len() > limit;
    events.drain(..events.len().saturating_sub(limit));
    let events = events.iter().map(EventBody::new).collect();
    Ok(EventsBody { events, truncated, problems: problems_met(opened, scan.problems()) })
}

/// What is known of how often values are updated.
pub(crate) fn freshness(opened: &Opened, query: Option<&str>) -> Result<RowsBody, ApiError> {
    let Some(table) = opened.table_for(Role::Findings)? else {
        let (columns, rows) = (Vec::new(), Vec::new());
        let problems = problem_bodies(opened.problems_listed()?);
        return Ok(RowsBody { columns, rows, truncated: false, problems });
    };
    let (selection, limit) = selection(opened, &table.name, Parameters::parse(query)?)?;
    let mut found = Vec::new();
    let mut columns = Vec::new();
    let mut scan = opened.recording.scan(&selection)?;
    for batch in &mut scan {
        let batch = batch?;
        columns = batch.schema().fields().iter().map(|field| named(field.name())).collect();
        take_rows(&batch, None, &mut found);
    }
    let truncated = found.len() > limit;
    keep_newest(&mut found, limit);
    let rows = found.into_iter().map(|(_, row)| row).collect();
    let problems = problems_met(opened, scan.problems());
    Ok(RowsBody { columns, rows, truncated, problems })
}

/// The problems of a read, which are remembered.
fn problems_met(opened: &Opened, problems: &[Problem]) -> Vec<ProblemBody> {
    problems.iter().map(|problem| opened.problem(problem).into()).collect()
}

/// A value as JSON; times as µs, numbers beyond 2^53 as texts.
fn json(value: Value<'_>) -> serde_json::Value {
    match value {
        Value::Missing => serde_json::Value::Null,
        Value::Time(time) => micros(time).into(),
        Value::Text(text) => text.into(),
        Value::Unsigned(value) if value > JSON_INTEGER_MAX => value.to_string().into(),
        Value::Signed(value) if value.unsigned_abs() > JSON_INTEGER_MAX => value.to_string().into(),
        Value::Unsigned(value) => value.into(),
        Value::Signed(value) => value.into(),
        // What is no number has no form in JSON.
        Value::Real(value) => value.into(),
    }
}
