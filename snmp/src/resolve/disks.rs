//! Disks by path: dskTable (UCD-SNMP-MIB), or else hrStorageTable (RFC 2790).

use super::names;
use super::walked::{Walked, name_of};
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::plan::{Convert, Guard, RowPlan};
use crate::tables::Table;

const DSK_TABLE: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 9];
const DSK_ENTRY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 9, 1];
const DSK_PATH: u32 = 2;
const DSK_TOTAL_LOW: u32 = 11;

const HR_STORAGE_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 3];
const HR_STORAGE_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1];
const HR_STORAGE_DESCR: u32 = 3;
const HR_STORAGE_ALLOCATION_UNITS: u32 = 4;
const HR_STORAGE_SIZE: u32 = 5;
const HR_STORAGE_USED: u32 = 6;

/// Columns of dskEntry: 32 bits (kB, stops at 2 TB), and low and high half of 64 bits.
const DSK: &[(&str, u32, u32, u32)] =
    &[("total_bytes", 6, 11, 12), ("available_bytes", 7, 13, 14), ("used_bytes", 8, 15, 16)];

fn column(entry: &[u32], column: u32) -> Oid {
    Oid::from_slice(entry).child(&[column])
}

/// Paths of both tables, whether dskTable has 64 bits, and the units of hrStorageTable.
pub(super) fn walks() -> [Oid; 4] {
    [
        column(DSK_ENTRY, DSK_PATH),
        column(DSK_ENTRY, DSK_TOTAL_LOW),
        column(HR_STORAGE_ENTRY, HR_STORAGE_DESCR),
        column(HR_STORAGE_ENTRY, HR_STORAGE_ALLOCATION_UNITS),
    ]
}

/// `disk:PATH`.
pub(super) fn one(wanted: &mut Wanted<'_>, walked: &Walked<'_>, path: &str) {
    let mut shared = None;
    let mut find = |column: &Oid| {
        let named = walked.below(column.as_slice());
        let mut named = named.filter(|(_, value)| name_of(value).as_deref() == Some(path)).map(
            |(index, value)| {
                let expected = value.as_octets().unwrap_or_default().to_vec();
                (index, Guard { oid: column.child(index), expected })
            },
        );
        let found = named.next();
        // What is mounted over another file system hides it: an agent that asks by path, as net-snmp
        // does, says the same of both.
        let others = named.count();
        shared = found.as_ref().filter(|_| others > 0).map(|(index, _)| {
            format!(
                "{} disks are called `{path}`: the one at index {} is measured",
                others + 1,
                names::arcs(index)
            )
        });
        found
    };
    let (paths, descriptions) =
        (column(DSK_ENTRY, DSK_PATH), column(HR_STORAGE_ENTRY, HR_STORAGE_DESCR));
    if let Some((index, guard)) = find(&paths) {
        from_dsk_table(wanted, walked, path, index, guard);
    } else if let Some((index, guard)) = find(&descriptions) {
        from_storage_table(wanted, walked, path, index, guard);
    } else if walked.hides(&[paths.as_slice(), descriptions.as_slice()]) {
        wanted.hidden("disks", &[DSK_TABLE, HR_STORAGE_TABLE]);
        if let Some(problem) = wanted.problems.last_mut() {
            problem.add.push(disk_line(path));
        }
    } else {
        let mut has: Vec<_> = [&paths, &descriptions]
            .into_iter()
            .flat_map(|names| walked.below(names.as_slice()))
            .filter_map(|(_, value)| name_of(value))
            .filter(|name| name.starts_with('/') || name.contains(":\\"))
            .collect();
        has.sort();
        has.dedup();
        wanted.watched.extend(
            [&paths, &descriptions]
                .into_iter()
                .filter_map(|names| walked.next_row(names.as_slice())),
        );
        wanted.problem(Fault::NoDisk { path: path.to_owned() }, has);
        if let Some(problem) = wanted.problems.last_mut() {
            problem.add.push(disk_line(path));
        }
    }
    wanted.remarks.extend(shared);
}

fn disk_line(path: &str) -> String {
    if path.contains(' ') { format!("disk \"{path}\"") } else { format!("disk {path}") }
}

fn from_dsk_table(
    wanted: &mut Wanted<'_>,
    walked: &Walked<'_>,
    path: &str,
    index: &[u32],
    guard: Guard,
) {
    const KILOBYTE: u64 = 1024;
    let at = |number: u32| column(DSK_ENTRY, number).child(index);
    let wide = walked.get(at(DSK_TOTAL_LOW).as_slice()).is_some();
    let values = DSK
        .iter()
        .filter(|(name, ..)| wanted.wants(name))
        .map(|&(name, narrow, low, high)| {
            let (oid, convert) = if wide {
                (at(low), Convert::LowHigh { high: at(high), factor: KILOBYTE })
            } else {
                (at(narrow), Convert::Scaled(KILOBYTE))
            };
            value(Table::Storage, name, oid, convert)
        })
        .collect();
    push(wanted, path, guard, values);
}

fn from_storage_table(
    wanted: &mut Wanted<'_>,
    walked: &Walked<'_>,
    path: &str,
    index: &[u32],
    guard: Guard,
) {
    let at = |number: u32| column(HR_STORAGE_ENTRY, number).child(index);
    let units = walked.get(at(HR_STORAGE_ALLOCATION_UNITS).as_slice());
    let Some(units) = units.and_then(crate::Value::as_u64) else {
        let object = at(HR_STORAGE_ALLOCATION_UNITS).to_string();
        wanted.problem(Fault::NoObject { object }, Vec::new());
        return;
    };
    if wanted.insists_on("available_bytes") {
        let fault =
            Fault::NoColumn { column: "available_bytes".into(), of: "hrStorageTable".into() };
        wanted.problem(fault, vec!["total_bytes".into(), "used_bytes".into()]);
        if let Some(problem) = wanted.problems.last_mut() {
            problem.add.push(disk_line(path));
        }
    }
    let values: Vec<_> = [("total_bytes", HR_STORAGE_SIZE), ("used_bytes", HR_STORAGE_USED)]
        .into_iter()
        .filter(|(name, _)| wanted.wants(name))
        .map(|(name, number)| value(Table::Storage, name, at(number), Convert::Scaled(units)))
        .collect();
    push(wanted, path, guard, values);
}

fn push(wanted: &mut Wanted<'_>, path: &str, guard: Guard, values: Vec<crate::plan::ValuePlan>) {
    wanted.rows.push(RowPlan {
        table: Table::Storage,
        instance: Some(path.to_owned()),
        guard: Some(guard),
        named: true,
        values,
        every: wanted.every(),
        declared_refresh: None,
    });
}
