//! Which values of a device the rules look at: found out when its plan or the rules are set.

use std::collections::BTreeMap;
use std::sync::Arc;

use meikyo_cluster::{AlertRule, Condition, LevelUnit, Threshold, Watched, What};
use meikyo_recording::alerts::CLEARED;
use meikyo_recording::schema::{Hint, Meaning, Unit};
use meikyo_units::WallTime;
use meikyo_units::glob::matches;

use super::standing::Standing;
use super::{
    Counter, CounterWidth, DeviceAlerts, FrozenWatch, SilenceWatch, ValueKey, ValueWatch, Watching,
    is_frozen, text,
};
use crate::plan::{Convert, RowPlan};
use crate::poll::device::{Device, asked};
use crate::poll::rows::{Event, Rows};
use crate::tables::{Table, schema, storage};

/// Makes the watches of a device anew. What it has learned of values that are still watched by the
/// same rules stays; alerts that nothing can clear any more are cleared with the reason.
pub(in crate::poll) fn compile(
    device: &mut Device,
    rules: &Arc<[AlertRule]>,
    now: WallTime,
    rows: &mut Rows,
) {
    let own: Vec<usize> =
        (0..rules.len()).filter(|&rule| rules[rule].is_for(&device.label)).collect();
    let old = device.alerts.take();
    if own.is_empty() && old.is_none() {
        return;
    }
    let mut new = DeviceAlerts {
        rules: Arc::clone(rules),
        values: Vec::new(),
        silences: Vec::new(),
        frozen: Vec::new(),
    };
    if old.is_none() {
        device.watching = Watching::default();
    }
    for &rule in &own {
        match &rules[rule].condition {
            Condition::Threshold(threshold) => {
                watch_values(device, rule, threshold, &mut new.values);
            }
            Condition::Silent { .. } => {
                let (standing, since) = (Standing::default(), now);
                new.silences.push(SilenceWatch { rule, standing, since });
            }
            Condition::Frozen { watched } => {
                watch_tables(device, rule, watched.as_ref(), &mut new.frozen);
            }
        }
    }
    new.values.sort_by_key(|watch| (watch.series, watch.rule));
    if let Some(old) = old {
        carry_over(*old, &mut new, device, now, rows);
    }
    device.watching.values = !new.values.is_empty();
    device.watching.is_silent = new.silences.iter().any(|watch| watch.standing.is_raised());
    let watches = new.values.len() + new.silences.len() + new.frozen.len();
    device.alerts = (watches > 0).then(|| Box::new(new));
}

/// Clears every alert of a device that is raised, with the reason.
pub(in crate::poll) fn withdraw(device: &mut Device, now: WallTime, why: &str, rows: &mut Rows) {
    let Some(alerts) = device.alerts.take() else { return };
    device.watching = Watching::default();
    for raised in alerts.raised() {
        clear(raised, device, now, why, rows);
    }
}

/// Values of the rows that a threshold is about.
fn watch_values(
    device: &Device,
    rule: usize,
    threshold: &Threshold,
    watches: &mut Vec<ValueWatch>,
) {
    let watched = &threshold.watched;
    let is_share = threshold.raise.unit() == LevelUnit::PercentOfSize;
    for (position, row) in device.rows.iter().enumerate() {
        if !is_watched(watched, row) {
            continue;
        }
        let (instance, first) = device.targets[position];
        let columns = &schema(row.table).columns;
        let is_size = |column: usize| columns[column].name == storage::TOTAL_BYTES.name();
        let size = asked(row).position(|value| is_share && is_size(value.column));
        if is_share && size.is_none() {
            continue;
        }
        for (slot, value) in asked(row).enumerate() {
            if !watched.has_column(&columns[value.column].name) {
                continue;
            }
            watches.push(ValueWatch {
                rule,
                key: ValueKey { table: row.table, instance, column: value.column },
                series: first + slot,
                row: position,
                counter: counter(row, value.column),
                size,
                standing: Standing::default(),
                object: None,
            });
        }
    }
}

/// Whether a rule's words mean a row.
fn is_watched(watched: &Watched, row: &RowPlan) -> bool {
    let table = match &watched.what {
        What::Interface(_) | What::Interfaces => Some(Table::Interfaces),
        What::Disk(_) => Some(Table::Storage),
        What::Load => Some(Table::Load),
        What::Cpu => Some(Table::Cpu),
        What::Memory => Some(Table::Memory),
        What::Parts { kind, .. } => Table::named(kind.table),
        What::Object(_) => Some(Table::Objects),
        What::Uptime => None,
    };
    let named = |pattern: &str| row.instance.as_ref().is_some_and(|name| matches(pattern, name));
    table == Some(row.table) && watched.pattern().is_none_or(named)
}

/// What is needed for the rate of a column; `None` if it does not count.
pub(in crate::poll) fn counter(row: &RowPlan, column: usize) -> Option<Counter> {
    let own = &schema(row.table).columns[column];
    let slot = |hint: Hint| {
        let column = schema(row.table).hint(hint)?;
        asked(row).position(|value| value.column == column)
    };
    let constant = |hint: Hint| {
        let column = schema(row.table).hint(hint)?;
        row.values.iter().find(|value| value.column == column).map(|value| &value.convert)
    };
    let width = match (row.table, own.meaning) {
        // The agent's type says whether it counts; how wide it is, is not kept.
        (Table::Objects, _) => CounterWidth::Unknown,
        (_, Meaning::Counter32) => CounterWidth::Narrow,
        (_, Meaning::Counter64) => match constant(Hint::CounterBits) {
            Some(Convert::Constant(32)) => CounterWidth::Narrow,
            _ => CounterWidth::Wide,
        },
        _ => return None,
    };
    Some(Counter {
        every: row.every,
        width,
        octets: own.unit() == Some(Unit::Octets),
        speed: slot(Hint::LineRate),
        discontinuity: slot(Hint::Discontinuity),
        ..Counter::default()
    })
}

/// Tables that polling itself moves, so that standing still is a sign: a disk may be idle for hours.
const MOVED_BY_POLLING: [Table; 2] = [Table::Interfaces, Table::Cpu];

/// One watch for every table that has a watched value.
fn watch_tables(
    device: &Device,
    rule: usize,
    watched: Option<&Watched>,
    watches: &mut Vec<FrozenWatch>,
) {
    let mut tables: BTreeMap<Table, Vec<usize>> = BTreeMap::new();
    for (position, row) in device.rows.iter().enumerate() {
        let is_meant = match watched {
            Some(watched) => is_watched(watched, row),
            None => MOVED_BY_POLLING.contains(&row.table),
        };
        if !is_meant {
            continue;
        }
        let columns = &schema(row.table).columns;
        for (slot, value) in asked(row).enumerate() {
            if watched.is_none_or(|watched| watched.has_column(&columns[value.column].name)) {
                tables.entry(row.table).or_default().push(device.targets[position].1 + slot);
            }
        }
    }
    watches.extend(tables.into_iter().map(|(table, series)| {
        let found = series.iter().copied().find(|&series| is_frozen(&device.series[series]));
        FrozenWatch { rule, table, series, found, standing: Standing::default() }
    }));
}

/// One raised alert: its rule, what it is about, and how it stands.
pub(super) struct Raised<'a> {
    pub(super) rule: &'a AlertRule,
    pub(super) object: Option<&'a str>,
    pub(super) standing: Standing,
}

impl DeviceAlerts {
    pub(super) fn raised(&self) -> impl Iterator<Item = Raised<'_>> {
        let values = self.values.iter().map(|watch| {
            let object = watch.object.as_deref();
            Raised { rule: &self.rules[watch.rule], object, standing: watch.standing }
        });
        let silences = self.silences.iter().map(|watch| Raised {
            rule: &self.rules[watch.rule],
            object: None,
            standing: watch.standing,
        });
        let frozen = self.frozen.iter().map(|watch| Raised {
            rule: &self.rules[watch.rule],
            object: Some(&schema(watch.table).name),
            standing: watch.standing,
        });
        values.chain(silences).chain(frozen).filter(|raised| raised.standing.is_raised())
    }
}

fn clear(raised: Raised<'_>, device: &Device, now: WallTime, why: &str, rows: &mut Rows) {
    let Raised { rule, object, mut standing } = raised;
    let text = text::withdrawn(rule, why);
    let event = Event { device: Some(device.name), object, text: &text, count: None };
    rows.event(standing.tell(now), CLEARED, event);
}

/// Hands what the old watches know to those of the new ones that are the same, and clears the rest.
fn carry_over(
    mut old: DeviceAlerts,
    new: &mut DeviceAlerts,
    device: &Device,
    now: WallTime,
    rows: &mut Rows,
) {
    let by_name: BTreeMap<&str, usize> =
        new.rules.iter().enumerate().map(|(at, rule)| (rule.name.as_str(), at)).collect();
    let same: Vec<Option<usize>> = old
        .rules
        .iter()
        .map(|rule| {
            let at = *by_name.get(rule.name.as_str())?;
            new.rules[at].means_the_same(rule).then_some(at)
        })
        .collect();
    let mut values: BTreeMap<(usize, ValueKey), &mut ValueWatch> =
        new.values.iter_mut().map(|watch| ((watch.rule, watch.key), watch)).collect();
    old.values.retain_mut(|watch| {
        let Some(rule) = same[watch.rule] else { return true };
        let Some(heir) = values.remove(&(rule, watch.key)) else { return true };
        heir.standing = watch.standing;
        heir.object = watch.object.take();
        if let (Some(heir), Some(counter)) = (&mut heir.counter, &watch.counter) {
            (heir.rate, heir.discontinued) = (counter.rate, counter.discontinued);
        }
        false
    });
    old.silences.retain(|watch| {
        let heir = new.silences.iter_mut().find(|heir| Some(heir.rule) == same[watch.rule]);
        let Some(heir) = heir else { return true };
        (heir.standing, heir.since) = (watch.standing, watch.since);
        false
    });
    old.frozen.retain(|watch| {
        let is_same = |heir: &&mut FrozenWatch| {
            Some(heir.rule) == same[watch.rule] && heir.table == watch.table
        };
        let Some(heir) = new.frozen.iter_mut().find(is_same) else { return true };
        heir.standing = watch.standing;
        false
    });
    for raised in old.raised() {
        let known = by_name.get(raised.rule.name.as_str()).map(|&at| &new.rules[at]);
        let why = match known {
            None => "the rule was removed",
            Some(rule) if !rule.means_the_same(raised.rule) => "the rule has changed",
            Some(_) => "it is not measured any more",
        };
        clear(raised, device, now, why, rows);
    }
}
