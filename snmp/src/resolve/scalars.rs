//! Load, CPU and memory: one row a device (UCD-SNMP-MIB).

use super::walked::Walked;
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::plan::{Convert, RowPlan};
use crate::tables::Table;

/// A table of one row a device.
pub(super) struct Scalars {
    table: Table,
    /// What people call it.
    title: &'static str,
    /// The subtree that holds all of it.
    root: &'static [u32],
    columns: &'static [Column],
}

/// A column and the object instances that it may come from, the best first.
struct Column {
    name: &'static str,
    sources: &'static [(&'static [u32], Convert)],
}

const fn column(name: &'static str, sources: &'static [(&'static [u32], Convert)]) -> Column {
    Column { name, sources }
}

/// laLoadInt, in hundredths.
pub(super) const LOAD: Scalars = Scalars {
    table: Table::Load,
    title: "load averages",
    root: &[1, 3, 6, 1, 4, 1, 2021, 10],
    columns: &[
        column("load_1min", &[(&[1, 5, 1], Convert::Decimal(-2))]),
        column("load_5min", &[(&[1, 5, 2], Convert::Decimal(-2))]),
        column("load_15min", &[(&[1, 5, 3], Convert::Decimal(-2))]),
    ],
};

/// ssCpuRaw*.
pub(super) const CPU: Scalars = Scalars {
    table: Table::Cpu,
    title: "CPU times",
    root: &[1, 3, 6, 1, 4, 1, 2021, 11],
    columns: &[
        column("user_ticks", &[(&[50, 0], Convert::Unsigned)]),
        column("nice_ticks", &[(&[51, 0], Convert::Unsigned)]),
        column("system_ticks", &[(&[52, 0], Convert::Unsigned)]),
        column("idle_ticks", &[(&[53, 0], Convert::Unsigned)]),
        column("wait_ticks", &[(&[54, 0], Convert::Unsigned)]),
        column("interrupt_ticks", &[(&[56, 0], Convert::Unsigned)]),
        column("softirq_ticks", &[(&[61, 0], Convert::Unsigned)]),
        column("steal_ticks", &[(&[64, 0], Convert::Unsigned)]),
    ],
};

const KILOBYTES: Convert = Convert::Scaled(1024);

/// mem*X (64 bits) where the agent has them, else mem* (32 bits, which stop at 2 TB).
pub(super) const MEMORY: Scalars = Scalars {
    table: Table::Memory,
    title: "memory",
    root: &[1, 3, 6, 1, 4, 1, 2021, 4],
    columns: &[
        column("total_bytes", &[(&[20, 0], KILOBYTES), (&[5, 0], KILOBYTES)]),
        column("available_bytes", &[(&[21, 0], KILOBYTES), (&[6, 0], KILOBYTES)]),
        column("buffer_bytes", &[(&[25, 0], KILOBYTES), (&[14, 0], KILOBYTES)]),
        column("cached_bytes", &[(&[26, 0], KILOBYTES), (&[15, 0], KILOBYTES)]),
        column("swap_total_bytes", &[(&[18, 0], KILOBYTES), (&[3, 0], KILOBYTES)]),
        column("swap_available_bytes", &[(&[19, 0], KILOBYTES), (&[4, 0], KILOBYTES)]),
    ],
};

impl Scalars {
    /// The subtree that holds all columns.
    pub(super) fn walks(&self) -> [Oid; 1] {
        [Oid::from_slice(self.root)]
    }

    /// Adds the row of what is wanted and there.
    pub(super) fn resolve(&self, wanted: &mut Wanted<'_>, walked: &Walked<'_>) {
        let mut values = Vec::new();
        let mut missing = Vec::new();
        for column in self.columns.iter().filter(|column| wanted.wants(column.name)) {
            let there = column.sources.iter().find_map(|(instance, convert)| {
                walked.cell(self.root, instance).map(|_| (instance, convert))
            });
            match there {
                Some((instance, convert)) => {
                    let oid = Oid::from_slice(self.root).child(instance);
                    values.push(value(self.table, column.name, oid, convert.clone()));
                }
                None => missing.push(column.name),
            }
        }
        if values.is_empty() {
            wanted.hidden(self.title, &[self.root]);
            return;
        }
        let has = |values: &[crate::plan::ValuePlan]| -> Vec<String> {
            let schema = crate::tables::schema(self.table);
            values.iter().map(|value| schema.columns[value.column].name.clone()).collect()
        };
        missing.retain(|name| wanted.insists_on(name));
        for name in missing {
            let fault = Fault::NoColumn { column: name.to_owned(), of: self.title.to_owned() };
            wanted.problem(fault, has(&values));
        }
        let every = wanted.every();
        wanted.rows.push(RowPlan {
            table: self.table,
            instance: None,
            guard: None,
            named: true,
            values,
            every,
            declared_refresh: None,
        });
    }
}
