//! Which instances this host has.

use super::{Roots, kernel};
use crate::agent::{Instances, InstancesBuilder};
use crate::{Oid, Value};

/// Where the value of an instance comes from; tables with their row and column.
#[derive(Debug, Clone)]
pub(super) enum What {
    Fixed(Value),
    Uptime,
    EngineBoots,
    EngineTime,
    HostUptime,
    Name,
    InterfaceCount,
    Interface(usize, u32),
    InterfaceX(usize, u32),
    Disk(usize, u32),
    DiskStorage(usize, u32),
    Load(usize, u32),
    Cpu(u32),
    Memory(u32),
    MemoryStorage(u32),
    MemorySize,
}

/// What decides which instances there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// ifIndex of each interface.
    pub(super) interfaces: Vec<u32>,
    /// How many disks.
    pub(super) disks: usize,
}

const SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 1];
const IF_NUMBER: &[u32] = &[1, 3, 6, 1, 2, 1, 2];
const IF_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];
const IF_X_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
const HR_SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 1];
const HR_STORAGE: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2];
const HR_STORAGE_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1];
const UCD_MEMORY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 4];
const DSK_ENTRY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 9, 1];
const LA_ENTRY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 10, 1];
const SYSTEM_STATS: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 11];
const SNMP_ENGINE: &[u32] = &[1, 3, 6, 1, 6, 3, 10, 2, 1];

/// Columns that are served, RFC 2863, UCD-SNMP-MIB and RFC 2790.
const IF_COLUMNS: &[u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17, 19, 20];
const IF_X_COLUMNS: &[u32] = &[1, 2, 6, 7, 8, 10, 11, 15, 17, 18, 19];
const DSK_COLUMNS: &[u32] = &[1, 2, 3, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 100];
const LA_COLUMNS: &[u32] = &[1, 2, 3, 5, 6];
const CPU_SCALARS: &[u32] = &[50, 51, 52, 53, 54, 55, 56, 61, 64, 65, 66];
const MEMORY_SCALARS: &[u32] = &[1, 2, 3, 4, 5, 6, 11, 13, 14, 15];
const STORAGE_COLUMNS: &[u32] = &[1, 2, 3, 4, 5, 6];

impl Shape {
    pub(super) fn instances(&self, roots: &Roots) -> (Instances, Vec<What>) {
        let mut builder = InstancesBuilder::default();
        let mut add = |table: &[u32], column: u32, index: &[u32], what: What| {
            builder.add(&Oid::from_slice(table).child(&[column]), index, what);
        };
        let text = |text: &str| What::Fixed(Value::OctetString(text.into()));
        add(SYSTEM, 1, &[0], text(&kernel::description(roots)));
        // zeroDotZero: this project has no enterprise number of its own, and is not net-snmp.
        add(SYSTEM, 2, &[0], What::Fixed(Value::ObjectId(Oid::from_slice(&[0, 0]))));
        add(SYSTEM, 3, &[0], What::Uptime);
        add(SYSTEM, 4, &[0], text(""));
        add(SYSTEM, 5, &[0], What::Name);
        add(SYSTEM, 6, &[0], text(""));
        add(SYSTEM, 7, &[0], What::Fixed(Value::Integer(72)));
        add(SNMP_ENGINE, 2, &[0], What::EngineBoots);
        add(SNMP_ENGINE, 3, &[0], What::EngineTime);
        add(HR_SYSTEM, 1, &[0], What::HostUptime);
        add(HR_STORAGE, 2, &[0], What::MemorySize);
        add(IF_NUMBER, 1, &[0], What::InterfaceCount);
        for (number, &index) in self.interfaces.iter().enumerate() {
            for &column in IF_COLUMNS {
                add(IF_ENTRY, column, &[index], What::Interface(number, column));
            }
            for &column in IF_X_COLUMNS {
                add(IF_X_ENTRY, column, &[index], What::InterfaceX(number, column));
            }
        }
        for (number, index) in (0..self.disks).zip(1..) {
            for &column in DSK_COLUMNS {
                let what = match column {
                    1 => What::Fixed(Value::Integer(index.into())),
                    _ => What::Disk(number, column),
                };
                add(DSK_ENTRY, column, &[index], what);
            }
            // As net-snmp numbers them: memory below 31, file systems from there on.
            let index = index + 30;
            for &column in STORAGE_COLUMNS {
                let what = match column {
                    1 => What::Fixed(Value::Integer(index.into())),
                    _ => What::DiskStorage(number, column),
                };
                add(HR_STORAGE_ENTRY, column, &[index], what);
            }
        }
        for (term, index) in (0..3).zip(1..) {
            for &column in LA_COLUMNS {
                let what = match column {
                    1 => What::Fixed(Value::Integer(index.into())),
                    2 => text(["Load-1", "Load-5", "Load-15"][term]),
                    _ => What::Load(term, column),
                };
                add(LA_ENTRY, column, &[index], what);
            }
        }
        for &scalar in CPU_SCALARS {
            add(SYSTEM_STATS, scalar, &[0], What::Cpu(scalar));
        }
        for &scalar in MEMORY_SCALARS {
            add(UCD_MEMORY, scalar, &[0], What::Memory(scalar));
        }
        for &column in STORAGE_COLUMNS {
            add(HR_STORAGE_ENTRY, column, &[1], What::MemoryStorage(column));
        }
        builder.finish()
    }
}
