//! Interfaces by name (IF-MIB, RFC 2863).

use super::walked::{Walked, name_of};
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::plan::{Convert, Guard, RowPlan};
use crate::tables::Table;

const IF_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];
const IF_X_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
const IF_X_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1];

const IF_DESCR: u32 = 2;
const IF_NAME: u32 = 1;
const IF_HIGH_SPEED: u32 = 15;
const IF_OPER_STATUS: u32 = 8;
const IF_COUNTER_DISCONTINUITY_TIME: u32 = 19;

/// Counters with their place in `ifXEntry` (64 bits) and in `ifEntry` (32 bits).
const WIDE: &[(&str, u32, u32)] =
    &[("in_octets", 6, 10), ("out_octets", 10, 16), ("in_packets", 7, 11), ("out_packets", 11, 17)];

/// Counters that have 32 bits only, in `ifEntry`.
const NARROW: &[(&str, u32)] =
    &[("in_errors", 14), ("out_errors", 20), ("in_discards", 13), ("out_discards", 19)];

fn cell(entry: &[u32], column: u32) -> Vec<u32> {
    [entry, &[column]].concat()
}

/// Names of both tables, and one counter each of octets and packets, which tell whether the agent
/// has 64 bits: other columns of a row come with these.
pub(super) fn walks() -> [Oid; 4] {
    [(IF_ENTRY, IF_DESCR), (IF_X_ENTRY, IF_NAME), (IF_X_ENTRY, 6), (IF_X_ENTRY, 7)]
        .map(|(entry, column)| Oid::from_slice(&cell(entry, column)))
}

/// An interface of the agent.
struct Interface<'a> {
    index: &'a [u32],
    name: String,
    guard: Guard,
    /// Whether it has a row in `ifXTable`.
    extended: bool,
}

/// The interfaces with their names: `ifName`, or `ifDescr` of those that have none.
fn interfaces<'a>(walked: &Walked<'a>) -> Vec<Interface<'a>> {
    let mut found: Vec<Interface<'a>> = Vec::new();
    for (entry, column) in [(IF_X_ENTRY, IF_NAME), (IF_ENTRY, IF_DESCR)] {
        let column = cell(entry, column);
        for (index, value) in walked.below(&column) {
            let (Some(name), Some(octets)) = (name_of(value), value.as_octets()) else { continue };
            if name.is_empty() || found.iter().any(|interface| interface.index == index) {
                continue;
            }
            let guard =
                Guard { oid: Oid::from_slice(&column).child(index), expected: octets.to_vec() };
            found.push(Interface { index, name, guard, extended: entry == IF_X_ENTRY });
        }
    }
    found.sort_by_key(|interface| interface.index);
    found
}

/// `interface:NAME`.
pub(super) fn one(wanted: &mut Wanted<'_>, walked: &Walked<'_>, name: &str) {
    let found = interfaces(walked);
    let mut same: Vec<_> = found.iter().filter(|interface| interface.name == name).collect();
    let by_description;
    if same.is_empty() {
        by_description = described(walked, name);
        same = by_description.iter().collect();
    }
    match same[..] {
        [interface] => add(wanted, walked, interface, name),
        [] if found.is_empty() => hidden(wanted),
        [] => {
            let names = found.into_iter().map(|interface| interface.name).collect();
            wanted.problem(Fault::NoInterface { name: name.to_owned() }, names);
        }
        _ => ambiguous(wanted, name, &same),
    }
}

/// `interfaces`: all of them.
pub(super) fn all(wanted: &mut Wanted<'_>, walked: &Walked<'_>) {
    let found = interfaces(walked);
    if found.is_empty() {
        hidden(wanted);
        return;
    }
    let same = |name: &str| found.iter().filter(|other| other.name == name).collect::<Vec<_>>();
    for (position, interface) in found.iter().enumerate() {
        let same = same(&interface.name);
        if same.len() == 1 {
            add(wanted, walked, interface, &interface.name);
        } else if !found[..position].iter().any(|other| other.name == interface.name) {
            ambiguous(wanted, &interface.name, &same);
        }
    }
}

/// Interfaces whose `ifDescr` is the name, though their `ifName` is another.
fn described<'a>(walked: &Walked<'a>, name: &str) -> Vec<Interface<'a>> {
    let column = cell(IF_ENTRY, IF_DESCR);
    let same = walked.below(&column).filter(|(_, value)| name_of(value).as_deref() == Some(name));
    same.map(|(index, value)| Interface {
        index,
        name: name.to_owned(),
        guard: Guard {
            oid: Oid::from_slice(&column).child(index),
            expected: value.as_octets().unwrap_or_default().to_vec(),
        },
        extended: walked.cell(&cell(IF_X_ENTRY, IF_NAME), index).is_some(),
    })
    .collect()
}

fn hidden(wanted: &mut Wanted<'_>) {
    wanted.hidden("interfaces", &[super::IF_TABLE, IF_X_TABLE]);
}

fn ambiguous(wanted: &mut Wanted<'_>, name: &str, same: &[&Interface<'_>]) {
    let index = |interface: &&Interface<'_>| {
        let arcs: Vec<_> = interface.index.iter().map(u32::to_string).collect();
        format!("ifIndex {}", arcs.join("."))
    };
    let indexes = same.iter().map(index).collect();
    wanted.problem(Fault::Ambiguous { name: name.to_owned(), count: same.len() }, indexes);
}

fn add(wanted: &mut Wanted<'_>, walked: &Walked<'_>, interface: &Interface<'_>, name: &str) {
    let table = Table::Interfaces;
    let at =
        |entry: &[u32], column: u32| Oid::from_slice(&cell(entry, column)).child(interface.index);
    let wide_octets = walked.cell(&cell(IF_X_ENTRY, 6), interface.index).is_some();
    let wide_packets = walked.cell(&cell(IF_X_ENTRY, 7), interface.index).is_some();
    let mut values = Vec::new();
    let mut bits = None;
    for &(column, wide, narrow) in WIDE.iter().filter(|(column, ..)| wanted.wants(column)) {
        let is_wide = if column.ends_with("octets") { wide_octets } else { wide_packets };
        let oid = if is_wide { at(IF_X_ENTRY, wide) } else { at(IF_ENTRY, narrow) };
        values.push(value(table, column, oid, Convert::Unsigned));
        let width = if is_wide { 64 } else { 32 };
        bits = Some(bits.map_or(width, |bits: u64| bits.min(width)));
    }
    for &(column, narrow) in NARROW.iter().filter(|(column, _)| wanted.wants(column)) {
        values.push(value(table, column, at(IF_ENTRY, narrow), Convert::Unsigned));
    }
    let counts = !values.is_empty();
    if wanted.wants("speed_mbps") && interface.extended {
        values.push(value(table, "speed_mbps", at(IF_X_ENTRY, IF_HIGH_SPEED), Convert::Unsigned));
    }
    if wanted.wants("oper_status") {
        values.push(value(table, "oper_status", at(IF_ENTRY, IF_OPER_STATUS), Convert::Unsigned));
    }
    if let Some(bits) = bits {
        let guard = interface.guard.oid.clone();
        values.push(value(table, "counter_bits", guard, Convert::Constant(bits)));
    }
    // Without it, a counter that an interface began anew looks like one that wrapped.
    if counts && interface.extended {
        let oid = at(IF_X_ENTRY, IF_COUNTER_DISCONTINUITY_TIME);
        values.push(value(table, "discontinuity_cs", oid, Convert::Unsigned));
    }
    wanted.rows.push(RowPlan {
        table,
        instance: Some(name.to_owned()),
        guard: Some(interface.guard.clone()),
        values,
        every: wanted.every(),
        declared_refresh: None,
    });
}
