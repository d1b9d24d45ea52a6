//! Interfaces by name (IF-MIB, RFC 2863).

use meikyo_cluster::What;

use super::names::{self, IF_ENTRY, IF_X_ENTRY, Interface, Named, cell};
use super::walked::Walked;
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::plan::{Convert, RowPlan, Watched};
use crate::tables::Table;

/// `ifTableLastChange` and `ifNumber`: one of them changes with every interface that an agent adds.
const SIGNS: [&[u32]; 2] = [&[1, 3, 6, 1, 2, 1, 31, 1, 5], &[1, 3, 6, 1, 2, 1, 2, 1]];
const IF_X_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1];

const IF_HIGH_SPEED: u32 = 15;
const IF_OPER_STATUS: u32 = 8;
const IF_COUNTER_DISCONTINUITY_TIME: u32 = 19;

/// Counters with their place in `ifXEntry` (64 bits) and in `ifEntry` (32 bits).
const WIDE: &[(&str, u32, u32)] =
    &[("in_octets", 6, 10), ("out_octets", 10, 16), ("in_packets", 7, 11), ("out_packets", 11, 17)];

/// Counters that have 32 bits only, in `ifEntry`.
const NARROW: &[(&str, u32)] =
    &[("in_errors", 14), ("out_errors", 20), ("in_discards", 13), ("out_discards", 19)];

/// What names are made of, one counter each of octets and packets, which tell whether the agent has
/// 64 bits (other columns of a row come with these), and what tells that there are other interfaces.
pub(super) fn walks() -> Vec<Oid> {
    let counters = [6, 7].map(|column| Oid::from_slice(&cell(IF_X_ENTRY, column)));
    let signs = SIGNS.map(Oid::from_slice);
    names::walks().into_iter().chain(counters).chain(signs).collect()
}

/// What tells that the agent has other interfaces than before: `ifTableLastChange` and `ifNumber`,
/// or of an agent that shows neither the place of the next interface.
pub(super) fn watched(walked: &Walked<'_>) -> Vec<Watched> {
    let scalars = SIGNS.iter().filter_map(|object| {
        let seen = walked.cell(object, &[0])?.as_u64()?;
        Some(Watched { oid: Oid::from_slice(object).child(&[0]), seen: Some(seen) })
    });
    let watched: Vec<_> = scalars.collect();
    if watched.is_empty() {
        walked.next_row(&cell(IF_ENTRY, 2)).into_iter().collect()
    } else {
        watched
    }
}

/// `interface:NAME`.
pub(super) fn one(wanted: &mut Wanted<'_>, walked: &Walked<'_>, name: &str) {
    let Named { interfaces: found, remarks } = names::named(walked);
    let of_name = remarks.into_iter().filter(|remark| remark.called == name);
    wanted.remarks.extend(of_name.map(|remark| remark.text));
    if let Some(interface) = found.iter().find(|interface| interface.name == name) {
        return add(wanted, walked, interface, name);
    }
    let called: Vec<_> = found.iter().filter(|interface| interface.called == name).collect();
    let described: Vec<_> =
        found.iter().filter(|interface| names::is_described(walked, interface, name)).collect();
    let same = if called.is_empty() { described } else { called };
    match same[..] {
        [interface] => add(wanted, walked, &names::by_description(walked, interface), name),
        [] if found.is_empty() => hidden(wanted),
        [] => {
            let names = found.into_iter().map(|interface| interface.name).collect();
            wanted.problem(Fault::NoInterface { name: name.to_owned() }, names);
        }
        _ => {
            let names = same.iter().map(|interface| interface.name.clone()).collect();
            wanted.problem(Fault::Ambiguous { name: name.to_owned(), count: same.len() }, names);
        }
    }
}

/// `interfaces`: all of them.
pub(super) fn all(wanted: &mut Wanted<'_>, walked: &Walked<'_>) {
    let found = names::named(walked);
    if found.interfaces.is_empty() {
        hidden(wanted);
        return;
    }
    wanted.remarks.extend(found.remarks.into_iter().map(|remark| remark.text));
    for interface in &found.interfaces {
        add(wanted, walked, interface, &interface.name);
    }
}

fn hidden(wanted: &mut Wanted<'_>) {
    wanted.hidden("interfaces", &[super::IF_TABLE, IF_X_TABLE]);
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
        let nothing = Oid::from_slice(IF_ENTRY);
        values.push(value(table, "counter_bits", nothing, Convert::Constant(bits)));
    }
    // Without it, a counter that an interface began anew looks like one that wrapped.
    if counts && interface.extended {
        let oid = at(IF_X_ENTRY, IF_COUNTER_DISCONTINUITY_TIME);
        values.push(value(table, "discontinuity_cs", oid, Convert::Unsigned));
    }
    wanted.rows.push(RowPlan {
        table,
        instance: Some(name.to_owned()),
        guard: interface.guard.clone(),
        named: !matches!(wanted.measure.what, What::Interfaces),
        values,
        every: wanted.every(),
        declared_refresh: None,
    });
}
