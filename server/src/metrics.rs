//! `/metrics`: the newest value of every series and Meikyo's own health, as Prometheus text
//! (exposition format 0.0.4).
//!
//! Counters are handed out as they are, so that Prometheus can take its own rates; it sees one
//! reading of the 150 that came since it asked last. Values of recordings that nobody writes any
//! more, and values that have not come for five minutes, are left out: that is how Prometheus knows
//! that they are gone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array as _, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use meikyo_recording::schema::Role;
use meikyo_recording::{Column, ReadError, Recording, Selection, TableSchema};
use meikyo_units::{Nanos, WallTime};

use crate::access::Tokens;
use crate::catalog::Opened;
use crate::columns::{text, times};
use crate::counts::Closed;
use crate::errors::ApiError;
use crate::range::{drawable, label_names};
use crate::state::Server;

/// How far back the log is read at most.
const LOOK_BACK: Nanos = Nanos::from_secs(15);
/// How long a value counts that does not come again.
const FRESH: Nanos = Nanos::from_secs(300);
/// Most values that are handed out.
const VALUES_MAX: usize = 400_000;

/// The newest values, remembered between two questions, since slow objects come seldom.
#[derive(Debug, Default)]
pub(crate) struct Newest(Mutex<BTreeMap<String, OfRecording>>);

#[derive(Debug, Default)]
struct OfRecording {
    read_to: Option<WallTime>,
    /// By name of the metric: whether it is a counter, its help, its values by labels.
    metrics: BTreeMap<String, Metric>,
}

#[derive(Debug, Default)]
struct Metric {
    counter: bool,
    help: String,
    values: BTreeMap<String, (i64, f64)>,
}

/// The text. Blocks while logs are read.
pub(crate) fn text_of(server: &Server) -> Result<String, ApiError> {
    let now = WallTime::now();
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut all = server.newest.0.lock().unwrap_or_else(PoisonError::into_inner);
    for opened in server.catalog.all() {
        let running = opened.is_running();
        let id = format!("recording=\"{}\"", escaped(&opened.id));
        own(
            &mut metrics,
            "recording_running",
            "1 while somebody writes the recording",
            &id,
            if running { 1.0 } else { 0.0 },
        );
        if !running {
            all.remove(&opened.id);
            continue;
        }
        let of = all.entry(opened.id.clone()).or_default();
        of.refresh(opened, now)?;
        for (name, metric) in &of.metrics {
            let into = metrics.entry(name.clone()).or_default();
            into.counter = metric.counter;
            into.help.clone_from(&metric.help);
            let values = metric.values.iter();
            into.values.extend(values.map(|(labels, value)| (labels.clone(), *value)));
        }
    }
    drop(all);
    of_server(&mut metrics, server);
    if let Some(bytes) = resident_bytes() {
        own(&mut metrics, "server_resident_bytes", "memory of this process", "", bytes);
    }
    Ok(rendered(&metrics))
}

/// Who is connected, and what was refused, closed and lost.
fn of_server(metrics: &mut BTreeMap<String, Metric>, server: &Server) {
    let count = |held: usize| u32::try_from(held).map_or(f64::INFINITY, f64::from);
    let (connections, viewers) = (&server.connections, &server.viewers);
    let help = "connections that are open, WebSockets not counted";
    own(metrics, "server_connections", help, "", count(connections.held()));
    let help = "sockets of viewers that are open";
    own(metrics, "server_viewers", help, "", count(viewers.held()));
    let help = "requests refused since their client asked too often";
    own(metrics, "server_refused_requests_total", help, "", real(server.access.rates.refused()));
    let help = "tokens refused unseen since their client showed too many wrong ones";
    let tokens = server.access.tokens.as_ref().map_or(0, Tokens::refused);
    own(metrics, "server_refused_tokens_total", help, "", real(tokens));
    let help = "connections that were closed or not taken, by reason";
    for why in Closed::ALL {
        let by_rooms = match why {
            Closed::Displaced => connections.displaced() + viewers.displaced(),
            Closed::Full => connections.refused() + viewers.refused(),
            _ => 0,
        };
        let labels = format!("reason=\"{}\"", why.name());
        let closed = real(server.counts.closed(why) + by_rooms);
        own(metrics, "server_closed_connections_total", help, &labels, closed);
    }
    let help = "steps that viewers who were too slow did not get";
    own(metrics, "server_lost_steps_total", help, "", real(server.counts.lost_steps()));
}

fn own(metrics: &mut BTreeMap<String, Metric>, name: &str, help: &str, labels: &str, value: f64) {
    let metric = metrics.entry(format!("meikyo_{name}")).or_default();
    metric.help = help.to_owned();
    metric.counter = name.ends_with("_total");
    metric.values.insert(labels.to_owned(), (0, value));
}

fn rendered(metrics: &BTreeMap<String, Metric>) -> String {
    let mut text = String::new();
    let mut left = VALUES_MAX;
    for (name, metric) in metrics {
        let kind = if metric.counter { "counter" } else { "gauge" };
        let help = metric.help.replace('\\', "\\\\").replace('\n', " ");
        let head = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        head.expect("writing to a string cannot fail");
        for (labels, (_, value)) in metric.values.iter().take(left) {
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            writeln!(text, "{name}{braces} {value}").expect("writing to a string cannot fail");
        }
        left = left.saturating_sub(metric.values.len());
    }
    text
}

impl OfRecording {
    fn refresh(&mut self, opened: &Opened, now: WallTime) -> Result<(), ApiError> {
        let from = self.read_to.unwrap_or_default().max(now.before(LOOK_BACK));
        for table in opened.tables()?.into_values() {
            let labels = label_names(&table);
            let is_told = match table.role() {
                Role::Readings | Role::Answers | Role::Clocks => !labels.is_empty(),
                Role::Health => true,
                Role::Requests | Role::Events | Role::Findings => false,
            };
            if !is_told {
                continue;
            }
            let columns: Vec<_> =
                table.columns.iter().filter(|of| drawable(&table, &of.name).is_ok()).collect();
            if !columns.is_empty() {
                self.read(opened, &table, &labels, &columns, from)?;
            }
        }
        self.read_to = Some(now.before(Nanos::from_secs(2)));
        let least = now.before(FRESH).as_nanos();
        for metric in self.metrics.values_mut() {
            metric.values.retain(|_, (time, _)| *time >= least);
        }
        self.metrics.retain(|_, metric| !metric.values.is_empty());
        Ok(())
    }

    fn read(
        &mut self,
        opened: &Opened,
        table: &TableSchema,
        labels: &[String],
        columns: &[&Column],
        from: WallTime,
    ) -> Result<(), ApiError> {
        let names = std::iter::once("time".to_owned()).chain(labels.iter().cloned());
        let selection = Selection {
            columns: Some(names.chain(columns.iter().map(|column| column.name.clone())).collect()),
            from: Some(from),
            ..Selection::all(&table.name)
        };
        for batch in scan(&opened.recording, &selection)? {
            let batch = batch?;
            let newest = newest_rows(&batch, labels);
            for column in columns {
                let Some(values) = batch.column_by_name(&column.name) else { continue };
                let values = cast(values, &DataType::Float64)?;
                self.take(opened, table, column, &values, &newest);
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        opened: &Opened,
        table: &TableSchema,
        column: &Column,
        values: &ArrayRef,
        newest: &BTreeMap<String, (i64, usize)>,
    ) {
        use arrow::array::AsArray as _;
        let counter = column.counts();
        let ending = if counter { "_total" } else { "" };
        let name = format!("meikyo_{}_{}{ending}", plain(&table.name), plain(&column.name));
        let values = values.as_primitive::<Float64Type>();
        for (labels, &(time, row)) in newest.iter().filter(|(_, (_, row))| values.is_valid(*row)) {
            let metric = self.metrics.entry(name.clone()).or_insert_with(|| Metric {
                counter,
                help: column.doc.clone(),
                values: BTreeMap::new(),
            });
            let labels = format!("recording=\"{}\"{labels}", escaped(&opened.id));
            let kept = metric.values.entry(labels).or_insert((time, 0.0));
            if time >= kept.0 {
                *kept = (time, values.value(row));
            }
        }
    }
}

fn scan(recording: &Recording, selection: &Selection) -> Result<meikyo_recording::Scan, ReadError> {
    recording.scan(selection)
}

/// The newest row of each series: its labels as they are written, its time, its place.
fn newest_rows(batch: &RecordBatch, labels: &[String]) -> BTreeMap<String, (i64, usize)> {
    let mut newest = BTreeMap::new();
    let columns: Vec<ArrayRef> =
        labels.iter().filter_map(|label| batch.column_by_name(label).cloned()).collect();
    let runs = meikyo_recording::series::runs(&columns, batch.num_rows()).unwrap_or_default();
    for run in runs {
        let mut written = String::new();
        for label in labels {
            let value = text(batch, label, run.start).unwrap_or_default();
            write!(written, ",{}=\"{}\"", plain(label), escaped(value))
                .expect("writing to a string cannot fail");
        }
        // Rows of a series are in order of time.
        let last = run.end - 1;
        newest.insert(written, (times(batch)[last], last));
    }
    newest
}

/// A name of letters, digits and `_`.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// What this process has in memory.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(real(kib * 1_024))
}

#[expect(clippy::cast_precision_loss, reason = "exact to 2^53, as Prometheus itself is")]
fn real(number: u64) -> f64 {
    number as f64
}
