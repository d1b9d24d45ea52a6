//! What is asked for beside the sockets, every 10 s: devices, tables, how agents update their values.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use meikyo_live::staleness::{Finding, Findings, Held};
use meikyo_recording::schema::role::findings;
use meikyo_transport::shell::Target;
use meikyo_units::{Nanos, WallTime, in_one_line};
use serde::Deserialize;
use serde_json::Value;

use super::News;
use crate::top::clusters::remote::said;

/// How often it is asked.
const EVERY: Nanos = Nanos::from_secs(10);

/// How often the thread looks whether anybody still wants to know.
const LOOK: Nanos = Nanos::from_millis(500);

/// What stands in the place of a table's name where everything is lost.
const FACTS: &str = "";

/// What is known of a recording beside its values.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) is_running: bool,
    pub(super) is_simulated: bool,
    pub(super) times: Option<(WallTime, WallTime)>,
    pub(super) interval: Option<Nanos>,
    devices: Vec<DeviceSaid>,
    pub(super) tables: Vec<TableSaid>,
    pub(super) rules_set: bool,
    pub(super) held: BTreeMap<String, Held>,
}

#[derive(Debug, Deserialize)]
struct RecordingSaid {
    id: String,
    name: String,
    kind: String,
    running: bool,
    from_us: Option<i64>,
    to_us: Option<i64>,
    interval_us: Option<u64>,
    devices: Vec<DeviceSaid>,
    tables: Vec<TableSaid>,
}

#[derive(Debug, Deserialize)]
struct DeviceSaid {
    name: String,
    role: String,
    group: Option<String>,
}

/// A table of a recording.
#[derive(Debug, Deserialize)]
pub(super) struct TableSaid {
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    pub(super) columns: Vec<ColumnSaid>,
}

/// A column of a table.
#[derive(Debug, Deserialize)]
pub(super) struct ColumnSaid {
    pub(super) name: String,
    meaning: String,
}

impl ColumnSaid {
    /// Whether a server gives its values live.
    pub(super) fn is_drawable(&self) -> bool {
        ["gauge", "counter"].contains(&&*self.meaning)
    }
}

#[derive(Debug, Deserialize)]
struct RulesSaid {
    set: bool,
}

/// Rows as the server gives them, each a list of values.
#[derive(Debug, Deserialize)]
struct RowsSaid {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Facts {
    /// What the server says of a recording; an error is for people.
    pub(super) fn ask(target: &Target, recording: &str) -> Result<Self, String> {
        let in_words = |error| in_one_line(&error);
        let all: Vec<RecordingSaid> = said(target, "recordings").map_err(in_words)?;
        let found = all.into_iter().find(|of| of.id == recording);
        let found = found.ok_or("the server has this cluster no more")?;
        let of = |what: &str| format!("recordings/{recording}/{what}");
        let rules: RulesSaid = said(target, &of("alert-rules")).map_err(in_words)?;
        let rows: RowsSaid = said(target, &of("freshness?limit=100000")).map_err(in_words)?;
        let instant = |us: i64| WallTime::from_nanos(us.saturating_mul(1_000));
        Ok(Self {
            name: found.name,
            is_running: found.running,
            is_simulated: found.kind == "simulated",
            times: found.from_us.map(instant).zip(found.to_us.map(instant)),
            interval: found.interval_us.map(Nanos::from_micros),
            devices: found.devices,
            tables: found.tables,
            rules_set: rules.set,
            held: held(&rows),
        })
    }

    /// The devices, in the order of the cluster file.
    pub(super) fn devices(&self) -> impl Iterator<Item = meikyo_live::Device> + '_ {
        self.devices.iter().map(|said| meikyo_live::Device {
            name: said.name.clone(),
            role: match &*said.role {
                "host" => "host",
                "switch" => "switch",
                _ => "unknown",
            },
            group: said.group.clone(),
            agent: None,
        })
    }
}

/// How agents update their values, by device.
fn held(said: &RowsSaid) -> BTreeMap<String, Held> {
    let mut newest = Findings::default();
    for row in &said.rows {
        let value = |name: &str| {
            let at = said.columns.iter().position(|column| column == name)?;
            row.get(at)
        };
        let text = |name: &str| value(name).and_then(Value::as_str);
        let label = |name: &str| text(name).unwrap_or_default();
        let Some(time_us) = value("time_us").and_then(Value::as_i64) else { continue };
        let time = time_us.saturating_mul(1_000);
        let after_us = value(findings::PHASE_US.name()).and_then(Value::as_i64);
        let object = [findings::TABLE, findings::INSTANCE, findings::COLUMN];
        newest.take(Finding {
            time,
            device: label(findings::DEVICE.name()),
            object: object.map(|of| label(of.name())),
            class: text(findings::CLASS.name()),
            period: value(findings::PERIOD_US.name())
                .and_then(Value::as_u64)
                .map(|us| Nanos::new(us.saturating_mul(1_000))),
            phase: after_us.map(|us| time.saturating_add(us.saturating_mul(1_000))),
        });
    }
    newest.held()
}

/// Asks again and again until nobody wants to know.
pub(super) fn keep_asking(
    target: &Target,
    recording: &str,
    tell: &SyncSender<News>,
    is_over: &AtomicBool,
) {
    loop {
        let mut due = WallTime::now() + EVERY;
        while WallTime::now() < due {
            std::thread::park_timeout(LOOK.to_std());
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            // A clock that was set back makes nobody wait for longer.
            due = due.min(WallTime::now() + EVERY);
        }
        let is_heard = match Facts::ask(target, recording) {
            Ok(facts) => {
                let news = [News::Facts(facts), News::Trouble(FACTS, None)];
                news.into_iter().all(|news| tell.send(news).is_ok())
            }
            Err(text) => tell.send(News::Trouble(FACTS, Some(text))).is_ok(),
        };
        if !is_heard {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_that_agents_cache_are_as_old_as_their_caches_make_them() {
        let rows = r#"{"columns": ["time_us", "device", "table", "instance", "column", "class", "period_us", "phase_us"],
            "rows": [
                [9000000, "node001", "interfaces", "eth0", "in_octets", "periodic", 3000000, -500000],
                [1000000, "node001", "interfaces", "eth0", "in_octets", "frozen", null, null],
                [9000000, "node002", "load", null, "load_1min", "unchanged", null, null]
            ], "truncated": false, "problems": []}"#;
        let held = held(&serde_json::from_str(rows).unwrap());
        assert_eq!(held.len(), 1, "{held:?}");
        // Updated at 8.5 s, 11.5 s, ...: at 13 s the value is 1.5 s old.
        let answered = WallTime::from_nanos(13_000_000_000);
        let found = held["node001"].behind(answered);
        assert_eq!(found, (Nanos::from_millis(1_500), "interfaces eth0 in_octets"));
    }

    proptest! {
        #[test]
        fn no_row_of_a_server_breaks_it(
            columns in proptest::collection::vec("time_us|device|class|period_us|phase_us|x", 0..8),
            numbers in proptest::collection::vec(proptest::collection::vec(any::<i64>(), 0..9), 0..4),
            class in "periodic|frozen|.{0,4}",
        ) {
            let row = |numbers: Vec<i64>| {
                let mut row: Vec<Value> = numbers.into_iter().map(Value::from).collect();
                row.push(class.clone().into());
                row
            };
            let rows = numbers.into_iter().map(row).collect();
            let held = held(&RowsSaid { columns, rows });
            for held in held.values() {
                let _ = held.behind(WallTime::from_nanos(1));
            }
        }
    }
}
