//! Which interface of an agent bears which name (IF-MIB, RFC 2863).
//!
//! An interface is called by its `ifName`, or by its `ifDescr` or `ifAlias` where the ones before
//! are empty. Nothing obliges an agent to make these unique, so interfaces that share a name are
//! told apart by the first of `ifDescr`, `ifAlias` and `ifIndex` that differs among all of them.
//!
//! net-snmp shows a deleted interface for five minutes more (`interface_fadeout`), beside the one
//! that was made anew under its name. Such a dead row bears no name.

use std::collections::{BTreeMap, BTreeSet};

use super::walked::{Walked, name_of};
use crate::plan::Guard;
use crate::{Oid, Value};

pub(super) const IF_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];
pub(super) const IF_X_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1];

/// A column of a table.
pub(super) fn cell(entry: &[u32], column: u32) -> Vec<u32> {
    [entry, &[column]].concat()
}

const IF_NAME: u32 = 1;
const IF_ALIAS: u32 = 18;
const IF_DESCR: u32 = 2;
const IF_ADMIN_STATUS: u32 = 7;
const IF_OPER_STATUS: u32 = 8;
const IF_LAST_CHANGE: u32 = 9;

/// `down` of `ifAdminStatus` and of `ifOperStatus`.
const DOWN: u64 = 2;

/// By how much the instants of a deletion and of what was made in its place may be out of order:
/// net-snmp notices both when it reads its interfaces anew.
const SAME_MOMENT_CS: u64 = 100;

/// Names that a remark lists at most.
const LISTED_MAX: usize = 4;

/// A text that may name an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Name,
    Descr,
    Alias,
}

impl Text {
    /// In the order in which they are preferred.
    const ALL: [Self; 3] = [Self::Name, Self::Descr, Self::Alias];

    fn column(self) -> Vec<u32> {
        match self {
            Self::Name => cell(IF_X_ENTRY, IF_NAME),
            Self::Descr => cell(IF_ENTRY, IF_DESCR),
            Self::Alias => cell(IF_X_ENTRY, IF_ALIAS),
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Name => "ifName",
            Self::Descr => "ifDescr",
            Self::Alias => "ifAlias",
        }
    }
}

/// The columns that names are made of.
pub(super) fn walks() -> Vec<Oid> {
    let status = [IF_ADMIN_STATUS, IF_OPER_STATUS, IF_LAST_CHANGE];
    let texts = Text::ALL.into_iter().map(Text::column);
    let columns = texts.chain(status.into_iter().map(|column| cell(IF_ENTRY, column)));
    columns.map(|column| Oid::from_slice(&column)).collect()
}

/// An interface under the name that no other one of the agent has.
#[derive(Debug, Clone)]
pub(super) struct Interface<'a> {
    pub(super) index: &'a [u32],
    pub(super) name: String,
    /// What it is called, also if others are called the same; empty if nothing names it.
    pub(super) called: String,
    /// `None` if the agent has no text at all for it.
    pub(super) guard: Option<Guard>,
    /// Whether it has a row in `ifXTable`.
    pub(super) extended: bool,
}

/// The interfaces of an agent in the order of their indexes, and what a person should know of their
/// names.
#[derive(Debug, Default)]
pub(super) struct Named<'a> {
    pub(super) interfaces: Vec<Interface<'a>>,
    pub(super) remarks: Vec<Remark>,
}

/// What a person should know of a name that several interfaces have, or none.
#[derive(Debug, Clone)]
pub(super) struct Remark {
    /// The name; empty of interfaces without one.
    pub(super) called: String,
    pub(super) text: String,
}

/// A row of the agent's interface tables.
struct Row<'a> {
    index: &'a [u32],
    /// In the order of [`Text::ALL`]; empty where there is none.
    texts: [String; 3],
    /// Which of them names it.
    by: Option<Text>,
}

impl Row<'_> {
    fn text(&self, text: Text) -> &str {
        &self.texts[text as usize]
    }

    fn called(&self) -> &str {
        self.by.map_or("", |by| self.text(by))
    }
}

/// The interfaces with a name each.
pub(super) fn named<'a>(walked: &Walked<'a>) -> Named<'a> {
    let mut rows = rows(walked);
    let mut remarks = Vec::new();
    leave_out_dead(walked, &mut rows, &mut remarks);
    let mut groups: BTreeMap<&str, Vec<&Row<'_>>> = BTreeMap::new();
    for row in &rows {
        groups.entry(row.called()).or_default().push(row);
    }
    let mut taken: BTreeSet<&str> = groups.keys().copied().collect();
    let mut interfaces = Vec::new();
    for (called, group) in &groups {
        let single = group.len() == 1 && !called.is_empty();
        let by = if single { group[0].by } else { told_apart_by(group, &taken) };
        for row in group {
            let name = match by {
                Some(by) => row.text(by).to_owned(),
                None => format!("{called}#{}", arcs(row.index)),
            };
            interfaces.push(Interface {
                index: row.index,
                name,
                called: (*called).to_owned(),
                guard: guard(walked, row, by.or(row.by)),
                extended: walked.cell(&Text::Name.column(), row.index).is_some(),
            });
        }
        if !single {
            let from = interfaces.len() - group.len();
            let text = remark(called, by, &interfaces[from..]);
            remarks.push(Remark { called: (*called).to_owned(), text });
            taken.extend(group.iter().filter_map(|row| Some(row.text(by?))));
        }
    }
    interfaces.sort_by_key(|interface| interface.index);
    Named { interfaces, remarks }
}

/// All rows that any of the walked columns shows.
fn rows<'a>(walked: &Walked<'a>) -> Vec<Row<'a>> {
    let counters = [(IF_X_ENTRY, 6), (IF_X_ENTRY, 7), (IF_ENTRY, IF_OPER_STATUS)];
    let columns = Text::ALL.into_iter().map(Text::column);
    let mut indexes: BTreeSet<&[u32]> = BTreeSet::new();
    for column in columns.chain(counters.map(|(entry, column)| cell(entry, column))) {
        indexes.extend(walked.below(&column).map(|(index, _)| index));
    }
    let text = |text: Text, index: &[u32]| {
        walked.cell(&text.column(), index).and_then(name_of).unwrap_or_default()
    };
    let row = |index| {
        let texts = Text::ALL.map(|kind| text(kind, index));
        let by = Text::ALL.into_iter().find(|&kind| !texts[kind as usize].is_empty());
        Row { index, texts, by }
    };
    indexes.into_iter().map(row).collect()
}

/// Leaves out rows of interfaces that were deleted, where another row of the same texts took over.
fn leave_out_dead(walked: &Walked<'_>, rows: &mut Vec<Row<'_>>, remarks: &mut Vec<Remark>) {
    let mut same: BTreeMap<[String; 3], Vec<&[u32]>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.by.is_some()) {
        same.entry(row.texts.clone()).or_default().push(row.index);
    }
    for (texts, indexes) in same {
        let Some(living) = living(walked, &indexes) else { continue };
        rows.retain(|row| row.index == living || !indexes.contains(&row.index));
        let called = texts.iter().find(|text| !text.is_empty()).map_or("", String::as_str);
        let text = format!(
            "{} interfaces are called `{called}`: the one at ifIndex {} is measured, since the \
             agent took down the others before it",
            indexes.len(),
            arcs(living)
        );
        remarks.push(Remark { called: called.to_owned(), text });
    }
}

/// The one of several rows of the same texts that is no remnant of a deleted interface; `None` if
/// they are different interfaces.
///
/// What net-snmp 5.9 shows of a deleted interface: both states `down`, and as `ifLastChange` the
/// instant at which that was noticed. Linux gives what is made anew the next higher index.
fn living<'a>(walked: &Walked<'_>, indexes: &[&'a [u32]]) -> Option<&'a [u32]> {
    if indexes.len() < 2 {
        return None;
    }
    let number =
        |column, index: &[u32]| walked.cell(&cell(IF_ENTRY, column), index).and_then(Value::as_u64);
    let is_down = |index: &[u32]| {
        [IF_ADMIN_STATUS, IF_OPER_STATUS].map(|column| number(column, index)) == [Some(DOWN); 2]
    };
    let mut up = indexes.iter().copied().filter(|index| !is_down(index));
    let living = match (up.next(), up.next()) {
        (Some(one), None) => one,
        (None, _) => indexes.iter().copied().max()?,
        _ => return None,
    };
    let changed = |index: &[u32]| number(IF_LAST_CHANGE, index);
    let since = changed(living)?;
    let is_remnant = |&index: &&[u32]| {
        changed(index).is_some_and(|at| at > 0 && at <= since.saturating_add(SAME_MOMENT_CS))
    };
    indexes.iter().filter(|&&index| index != living).all(is_remnant).then_some(living)
}

/// The first text that tells these rows apart, from each other and from all names that are taken;
/// `None` if only the index does.
fn told_apart_by(group: &[&Row<'_>], taken: &BTreeSet<&str>) -> Option<Text> {
    [Text::Descr, Text::Alias].into_iter().find(|&text| {
        let mut texts = BTreeSet::new();
        group.iter().all(|row| {
            let own = row.text(text);
            !own.is_empty() && !taken.contains(own) && texts.insert(own)
        })
    })
}

/// The guard of a row: the text that names it, or an empty one that must stay so.
fn guard(walked: &Walked<'_>, row: &Row<'_>, by: Option<Text>) -> Option<Guard> {
    let shown = |&text: &Text| walked.cell(&text.column(), row.index).is_some();
    let text = by.or_else(|| Text::ALL.into_iter().find(shown))?;
    let column = text.column();
    let expected = walked.cell(&column, row.index)?.as_octets()?.to_vec();
    Some(Guard { oid: Oid::from_slice(&column).child(row.index), expected })
}

/// Whether `ifDescr` of an interface is this.
pub(super) fn is_described(walked: &Walked<'_>, interface: &Interface<'_>, name: &str) -> bool {
    let descr = walked.cell(&Text::Descr.column(), interface.index);
    descr.and_then(name_of).as_deref() == Some(name)
}

/// The same interface, guarded by its `ifDescr` if that is not its name anyway.
pub(super) fn by_description<'a>(walked: &Walked<'_>, interface: &Interface<'a>) -> Interface<'a> {
    let descr = walked.cell(&Text::Descr.column(), interface.index).and_then(Value::as_octets);
    let guard = descr.map(|octets| Guard {
        oid: Oid::from_slice(&Text::Descr.column()).child(interface.index),
        expected: octets.to_vec(),
    });
    Interface { guard, ..interface.clone() }
}

fn remark(called: &str, by: Option<Text>, interfaces: &[Interface<'_>]) -> String {
    let count = interfaces.len();
    let what = match (count, called) {
        (1, "") => "an interface has no name".to_owned(),
        (_, "") => format!("{count} interfaces have no name"),
        _ => format!("{count} interfaces are called `{called}`"),
    };
    let how = by.map_or("ifIndex", Text::word);
    let listed: Vec<_> =
        interfaces.iter().take(LISTED_MAX).map(|each| format!("`{}`", each.name)).collect();
    let more = count.saturating_sub(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let verb = if count == 1 { "it is" } else { "they are" };
    format!("{what}: {verb} recorded by {how}, as {}{more}", listed.join(", "))
}

/// An index as people write it.
pub(super) fn arcs(index: &[u32]) -> String {
    let arcs: Vec<_> = index.iter().map(u32::to_string).collect();
    arcs.join(".")
}
