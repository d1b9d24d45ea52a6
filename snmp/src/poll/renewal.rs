//! When a device's names are resolved again while it is measured, and what became of them.
//!
//! Three things ask for it: a guard that does not hold, an object of [`crate::plan::Watched`] that
//! has changed, and time. The device is measured on meanwhile, since every row carries its guard.
//! What the agent does not show any more stays in the plan, so that it is read again in the interval
//! in which it returns.
//!
//! # Cost
//! The watched objects travel with a request that is sent anyway, every [`LOOK_EVERY`]; an answer
//! between two looks costs one comparison of instants. A periodic resolution comes so rarely that
//! its requests are a thousandth of the polls. After a change the device is resolved at once, and
//! ever more rarely, up to that period, while it does not settle.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_recording::Symbol;
use meikyo_units::{Nanos, WallTime};

use crate::Version;
use crate::plan::{DevicePlan, RowPlan, Watched};
use crate::poll::device::Device;
use crate::poll::request::{Answer, Layout};
use crate::poll::rows::{Event, Rows};
use crate::tables::Table;

/// How often the watched objects are asked. net-snmp takes up to 3 s to notice a new interface;
/// the rest of ten seconds is for the walk.
const LOOK_EVERY: Nanos = Nanos::from_secs(4);

/// Devices take turns, so that no interval has to prepare the looks of all of them.
const TURNS: u32 = 40;

/// The shortest span between two resolutions of a device that changes.
const GAP_MIN: Nanos = Nanos::from_secs(2);

/// The shortest span between two resolutions of a device that does not.
const PERIOD_MIN: Nanos = Nanos::from_secs(300);

/// Polls that pay for one request of a resolution.
const POLLS_PER_REQUEST: u64 = 1_000;

/// Most vanished rows of a device that stay in its plan, apart from those that the cluster file
/// names.
const KEPT_MAX: usize = 4;

/// Most names of vanished rows that are remembered for a device, to tell those that return from new
/// ones.
const FORGOTTEN_MAX: usize = 1_024;

/// Changes of one kind that are told one by one.
const SINGLE_MAX: usize = 4;

/// Names that one event lists at most.
const LISTED_MAX: usize = 12;

/// Whether the agent shows a row of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Shown,
    /// Its guard does not hold; the next resolution tells why.
    Lost,
    /// As before, and the event is written.
    Gone,
}

/// What asked for a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A guard or a watched object; also a restart.
    Change,
    /// Time.
    Period,
}

/// What the poll core keeps of a device for this.
#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) watched: Vec<Watched>,
    /// When it is looked, after each multiple of [`LOOK_EVERY`].
    turn: Nanos,
    remarks: Vec<String>,
    /// By row of the plan.
    presence: Vec<Presence>,
    /// Rows that are not shown.
    absent: usize,
    /// What vanished and is not in the plan any more.
    forgotten: BTreeSet<(Table, String)>,
    /// A resolution is under way.
    pub(super) asked: Option<Cause>,
    /// Something has changed since the last resolution was asked for.
    wanted: bool,
    /// Span between two periodic resolutions.
    period: Nanos,
    periodic_at: WallTime,
    /// Span after the next resolution in which there is no other.
    gap: Nanos,
    /// The end of the last one.
    not_before: WallTime,
    interval: Nanos,
}

impl Renewal {
    pub(super) fn new(interval: Nanos, ordinal: u32) -> Self {
        Self {
            watched: Vec::new(),
            turn: Nanos::new(LOOK_EVERY.get() / u64::from(TURNS) * u64::from(ordinal % TURNS)),
            remarks: Vec::new(),
            presence: Vec::new(),
            absent: 0,
            forgotten: BTreeSet::new(),
            asked: None,
            wanted: false,
            period: PERIOD_MIN,
            periodic_at: WallTime::default(),
            gap: GAP_MIN,
            not_before: WallTime::default(),
            interval,
        }
    }

    /// The device is asked at another interval.
    pub(super) fn set_interval(&mut self, interval: Nanos) {
        self.interval = interval;
    }

    /// When it is looked again after a look.
    fn next_look(&self, looked: WallTime) -> WallTime {
        let turn = looked.floor(LOOK_EVERY) + self.turn;
        if turn > looked { turn } else { turn + LOOK_EVERY }
    }

    /// The real-time clock was set.
    pub(super) fn clock_stepped(&mut self, moved: &dyn Fn(WallTime) -> WallTime) {
        self.periodic_at = moved(self.periodic_at);
        self.not_before = moved(self.not_before);
    }

    /// The names are being resolved before anything is asked again; what they were is known if the
    /// device was `measured`.
    pub(super) fn restarted(&mut self, measured: bool) {
        self.asked = measured.then_some(Cause::Change);
    }

    /// The names must be resolved again as soon as that is allowed.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// The resolution that was asked for has failed; it is tried again.
    pub(super) fn failed(&mut self) {
        self.wanted |= self.asked.take() == Some(Cause::Change);
    }

    /// Takes down whether a row is shown.
    fn set(&mut self, row: usize, presence: Presence) {
        let was = std::mem::replace(&mut self.presence[row], presence);
        self.absent += usize::from(presence != Presence::Shown);
        self.absent -= usize::from(was != Presence::Shown);
    }

    /// Whether the names are to be resolved now; if so, that is under way from now on.
    fn take_due(&mut self, now: WallTime) -> bool {
        if self.asked.is_some() || now < self.not_before {
            return false;
        }
        let cause = match (self.wanted, now >= self.periodic_at) {
            (true, _) => Cause::Change,
            (false, true) => Cause::Period,
            (false, false) => return false,
        };
        self.pace(now, cause);
        self.asked = Some(cause);
        true
    }

    /// The agent restarted: whether its names are to be resolved before anything else is asked. One that
    /// seems to restart again and again is measured on meanwhile, as other changes are: two agents
    /// that answer in turn at one address, say, of which each has been up for a time of its own.
    pub(super) fn begins_anew(&mut self, now: WallTime) -> bool {
        let may = now >= self.not_before;
        if may {
            self.pace(now, Cause::Change);
        }
        self.wanted = !may;
        may
    }

    /// A resolution begins: when the next one may.
    fn pace(&mut self, now: WallTime, cause: Cause) {
        // Settled for a whole period: the next changes are followed closely again.
        if now >= self.not_before + self.period {
            self.gap = GAP_MIN;
        }
        self.not_before = now + self.gap;
        if cause == Cause::Change {
            self.gap = (self.gap * 2).min(self.period);
        }
        self.periodic_at = now + self.period;
        self.wanted = false;
    }
}

/// Whether an answer needs a look.
#[inline]
pub(super) fn is_due(device: &Device, answer: &Answer, received: WallTime) -> bool {
    !answer.renamed.is_empty() || received >= device.look_at || device.lacks_rows
}

/// Looks at what an answer says of the names; `true` if they are to be resolved again now.
pub(super) fn look(
    device: &mut Device,
    layout: &Layout,
    answer: &Answer,
    (due, received): (WallTime, WallTime),
    rows: &mut Rows,
) -> bool {
    let mut back = Vec::new();
    for (position, &planned) in layout.planned.iter().enumerate() {
        let shown = !answer.renamed.contains(&position);
        let Some(&presence) = device.renewal.presence.get(planned) else { continue };
        match (presence, shown) {
            (Presence::Shown, false) => device.renewal.set(planned, Presence::Lost),
            (Presence::Lost, true) => {
                device.renewal.set(planned, Presence::Shown);
                continue;
            }
            (Presence::Gone, true) => back.extend(returned(device, planned)),
            _ => continue,
        }
        device.renewal.wanted = true;
    }
    let changes = Changes { back, ..Changes::default() };
    changes.write(device.name, due, rows);
    let renewal = &mut device.renewal;
    device.lacks_rows = renewal.absent > 0;
    if !answer.watched.is_empty() {
        let changed = |(watched, now): (&Watched, &Option<u64>)| watched.seen != *now;
        renewal.wanted |= renewal.watched.iter().zip(&answer.watched).any(changed);
    }
    if !answer.watched.is_empty() || (renewal.watched.is_empty() && received >= device.look_at) {
        device.look_at = renewal.next_look(received);
    }
    renewal.take_due(received)
}

/// A vanished row is shown again, with all others of its label.
fn returned(device: &mut Device, planned: usize) -> Option<Change> {
    let own = label(&device.rows[planned])?;
    let same = (0..device.rows.len()).filter(|&row| label(&device.rows[row]) == Some(own));
    let same: Vec<usize> = same.collect();
    for &row in &same {
        device.renewal.set(row, Presence::Shown);
    }
    let row = &device.rows[planned];
    Some(Change { table: row.table, name: row.instance.clone()?, text: String::new() })
}

/// The agent's names are resolved: vanished rows are put into the new plan, and what has changed is
/// written down unless the cluster file asked for something else. `false` if the requests stay as
/// they are.
pub(super) fn succeed(
    device: &mut Device,
    plan: &mut DevicePlan,
    now: WallTime,
    rows: &mut Rows,
) -> bool {
    let cause = device.renewal.asked.take();
    let old = by_label(&device.rows, &device.renewal.presence);
    let new = by_label(&plan.rows, &[]);
    let forgotten = &device.renewal.forgotten;
    let changes = if cause.is_some() { compare(&old, &new, forgotten) } else { Changes::default() };
    let keeps = cause.is_some() && device.session.version() != Version::V1;
    let kept = if keeps { kept(&device.rows, &new, cause) } else { Vec::new() };
    changes.write(device.name, now, rows);

    let renewal = &mut device.renewal;
    let labels = |rows: &[RowPlan]| -> BTreeSet<(Table, String)> {
        rows.iter().filter_map(label).map(|(table, name)| (table, name.to_owned())).collect()
    };
    let planned = &labels(&plan.rows) | &labels(&kept);
    let vanished = &labels(&device.rows) - &planned;
    renewal.forgotten = &renewal.forgotten - &planned;
    if cause.is_some() {
        let room = FORGOTTEN_MAX.saturating_sub(renewal.forgotten.len());
        renewal.forgotten.extend(vanished.into_iter().take(room));
    }
    renewal.presence = vec![Presence::Shown; plan.rows.len()];
    renewal.presence.resize(plan.rows.len() + kept.len(), Presence::Gone);
    renewal.absent = kept.len();
    device.lacks_rows = renewal.absent > 0;
    plan.rows.extend(kept);
    renewal.period =
        (renewal.interval * POLLS_PER_REQUEST * u64::from(plan.requests)).max(PERIOD_MIN);
    // The devices of a cluster start together and need not be walked together for ever.
    let spread = if cause.is_some() { 0 } else { spread(&device.label) };
    renewal.periodic_at = now + renewal.period + Nanos::new(renewal.period.get() / 64 * spread);
    let remarks = std::mem::take(&mut plan.remarks);
    for text in remarks.iter().filter(|remark| !renewal.remarks.contains(remark)) {
        let event = Event { device: Some(device.name), text, ..Event::default() };
        rows.event(now, "shared_name", event);
    }
    renewal.remarks = remarks;
    let watched = std::mem::replace(&mut renewal.watched, std::mem::take(&mut plan.watched));
    let oids =
        |watched: &[Watched]| watched.iter().map(|each| each.oid.clone()).collect::<Vec<_>>();
    device.rows != plan.rows || oids(&watched) != oids(&renewal.watched)
}

/// A number below 64 that differs among the devices of a cluster.
fn spread(label: &str) -> u64 {
    label.bytes().fold(0, |sum: u64, octet| (sum * 31 + u64::from(octet)) % 64)
}

/// The rows to keep of a plan, whose labels the new one does not have. Where another row took the
/// place, nothing can return to it.
fn kept(old: &[RowPlan], new: &Labels<'_>, cause: Option<Cause>) -> Vec<RowPlan> {
    let vanished = |row: &&RowPlan| {
        label(row).is_some_and(|label| {
            !new.contains_key(&label)
                && !new.iter().any(|((table, _), (at, _))| *table == row.table && *at == place(row))
        })
    };
    let mut labels = BTreeSet::new();
    let mut kept = Vec::new();
    for row in old.iter().filter(vanished) {
        let label = label(row);
        let has_room = cause == Some(Cause::Change) && labels.len() < KEPT_MAX;
        if row.named || labels.contains(&label) || has_room {
            if !row.named {
                labels.insert(label);
            }
            kept.push(row.clone());
        }
    }
    kept
}

/// A row's table and name; `None` of rows that are not found by name.
fn label(row: &RowPlan) -> Option<(Table, &str)> {
    row.guard.as_ref()?;
    Some((row.table, row.instance.as_deref()?))
}

/// The index of a row in the agent's table.
fn place(row: &RowPlan) -> Option<u32> {
    row.guard.as_ref()?.oid.as_slice().last().copied()
}

/// Rows by label, with their places.
type Labels<'a> = BTreeMap<(Table, &'a str), (Option<u32>, Presence)>;

/// The labels of a plan; rows without a presence are shown.
fn by_label<'a>(rows: &'a [RowPlan], presence: &[Presence]) -> Labels<'a> {
    let presence = presence.iter().copied().chain(std::iter::repeat(Presence::Shown));
    let labelled = rows.iter().zip(presence);
    labelled.filter_map(|(row, presence)| Some((label(row)?, (place(row), presence)))).collect()
}

/// What became of one row.
#[derive(Debug)]
struct Change {
    table: Table,
    name: String,
    /// What is told beside its name.
    text: String,
}

/// What became of the rows of a device.
#[derive(Debug, Default)]
struct Changes {
    gone: Vec<Change>,
    back: Vec<Change>,
    moved: Vec<Change>,
    appeared: Vec<Change>,
}

/// How a new plan differs from the one before.
fn compare(old: &Labels<'_>, new: &Labels<'_>, forgotten: &BTreeSet<(Table, String)>) -> Changes {
    let mut changes = Changes::default();
    let change = |(table, name): (Table, &str), text| Change { table, name: name.into(), text };
    for (&label, &(at, _)) in new {
        match old.get(&label) {
            None if forgotten.contains(&(label.0, label.1.to_owned())) => {
                changes.back.push(change(label, String::new()));
            }
            None => changes.appeared.push(change(label, String::new())),
            Some(&(was, presence)) if was != at => {
                let index = if label.0 == Table::Interfaces { "ifIndex" } else { "index" };
                let number = |place: Option<u32>| {
                    place.map_or_else(|| "none".to_owned(), |at| at.to_string())
                };
                let text = format!(" at {index} {}, was {}", number(at), number(was));
                let gone = presence == Presence::Gone;
                let list = if gone { &mut changes.back } else { &mut changes.moved };
                list.push(change(label, text));
            }
            Some((_, Presence::Gone)) => changes.back.push(change(label, String::new())),
            Some(_) => {}
        }
    }
    for (&label, &(_, presence)) in old {
        if presence != Presence::Gone && !new.contains_key(&label) {
            changes.gone.push(change(label, String::new()));
        }
    }
    changes
}

impl Changes {
    /// Writes an event for each, or one for many.
    fn write(&self, device: Symbol, time: WallTime, rows: &mut Rows) {
        let kinds = [
            ("gone", &self.gone, "", "gone"),
            ("back", &self.back, "", "back"),
            ("renumbered", &self.moved, "", "renumbered:"),
            ("appeared", &self.appeared, "new ", ""),
        ];
        for (kind, changes, before, after) in kinds {
            for table in [Table::Interfaces, Table::Storage] {
                let of_table: Vec<_> = changes.iter().filter(|each| each.table == table).collect();
                let noun = if table == Table::Interfaces { "interface" } else { "disk" };
                let verb = |verb: &str| {
                    if after.is_empty() { String::new() } else { format!(" {verb} {after}") }
                };
                if of_table.len() <= SINGLE_MAX {
                    for Change { name, text, .. } in of_table {
                        let text = format!("{before}{noun} `{name}`{}{text}", verb("is"));
                        let (device, object) = (Some(device), Some(&**name));
                        rows.event(time, kind, Event { device, object, text: &text, count: None });
                    }
                    continue;
                }
                let listed = of_table.iter().take(LISTED_MAX);
                let listed: Vec<_> =
                    listed.map(|Change { name, text, .. }| format!("`{name}`{text}")).collect();
                let more = of_table.len().saturating_sub(LISTED_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let count = of_table.len();
                let text =
                    format!("{count} {before}{noun}s{}: {}{more}", verb("are"), listed.join(", "));
                let count = Some(count as u64);
                rows.event(
                    time,
                    kind,
                    Event { device: Some(device), object: None, text: &text, count },
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_looked_at_together_take_turns_from_then_on() {
        let together = WallTime::from_nanos(1_767_225_601_234_567_890);
        let intervals = Nanos::from_millis(100);
        let mut looks = BTreeMap::<u64, u32>::new();
        for ordinal in 0..4_000 {
            let renewal = Renewal::new(intervals, ordinal);
            let first = renewal.next_look(together);
            assert!(first > together && first.since(together) <= LOOK_EVERY);
            let received = first + Nanos::from_micros(300);
            assert_eq!(renewal.next_look(received), first + LOOK_EVERY);
            *looks.entry(first.since(together).get() / intervals.get()).or_default() += 1;
        }
        assert_eq!(looks, (0..40).map(|interval| (interval, 100)).collect());
    }
}
