//! What a simulated host or switch serves: every instance of its objects.

use super::bridge;
use super::objects::{COUNTERS_PER_INTERFACE, DISK_TOTAL_KIB, Form, Moving, Shape, Source, Tree};
use crate::agent::Instances;
use crate::{Oid, Value};

/// 1.3.6.1.2.1.1, the system group (RFC 3418).
const SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 1];
/// ifNumber (RFC 2863).
const IF_NUMBER: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 1];
/// ifEntry (RFC 2863).
const IF_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];
/// ifXEntry (RFC 2863).
const IF_X_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
/// hrSystemUptime (RFC 2790).
const HR_SYSTEM_UPTIME: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 1, 1];
/// hrMemorySize (RFC 2790).
const HR_MEMORY_SIZE: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 2];
/// hrStorageEntry (RFC 2790).
const HR_STORAGE_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1];
/// memory of UCD-SNMP-MIB.
const UCD_MEMORY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 4];
/// dskEntry of UCD-SNMP-MIB.
const DSK_ENTRY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 9, 1];
/// laEntry of UCD-SNMP-MIB.
const LA_ENTRY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 10, 1];
/// systemStats of UCD-SNMP-MIB.
const SYSTEM_STATS: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 11];
/// lmSensors of LM-SENSORS-MIB.
const LM_SENSORS: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 13, 16];
/// entPhysicalEntry (RFC 6933).
const ENT_PHYSICAL_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1];
/// entPhySensorEntry (RFC 3433).
const ENT_SENSOR_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 99, 1, 1, 1];
/// nsCacheEntry of NET-SNMP-AGENT-MIB.
const NS_CACHE_ENTRY: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 1, 5, 3, 1];
/// The index of the interface table's row in nsCacheTable: 1.3.6.1.2.1.2.2.
const IF_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2];
/// snmpEngine (RFC 3411).
const SNMP_ENGINE: &[u32] = &[1, 3, 6, 1, 6, 3, 10, 2, 1];

/// Kibibytes of memory of a simulated host.
const MEMORY_TOTAL_KIB: u64 = 64 << 20;

/// The instances of machines of one shape.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    pub(crate) instances: Instances,
    pub(crate) sources: Vec<Source>,
}

impl Layout {
    pub(crate) fn new(shape: Shape) -> Self {
        let mut tree = Tree::default();
        system(&mut tree);
        if !shape.host {
            bridge::instances(&mut tree, &shape);
        }
        let mut count = 0;
        for (number, name) in (0..).zip(&shape.interfaces) {
            if !shape.detached.contains(name) {
                interface(&mut tree, &shape, number, name);
                count += 1;
            }
        }
        tree.fixed(IF_NUMBER, &[0], Value::Integer(count));
        if shape.host {
            host(&mut tree);
            sensors_of_host(&mut tree);
        } else {
            sensors_of_switch(&mut tree);
        }
        for (number, path) in (0..).zip(&shape.disks) {
            if !shape.detached.contains(path) {
                disk(&mut tree, number, path);
            }
        }
        tree.builder.retain(|oid| !shape.hidden.iter().any(|hidden| oid.starts_with(hidden)));
        let (instances, sources) = tree.builder.finish();
        Self { shape, instances, sources }
    }

    /// Whether the value of instance `position` moves.
    pub(crate) fn is_moving(&self, position: usize) -> bool {
        matches!(self.sources.get(position), Some(Source::Moving(..)))
    }

    /// What instance `position` is about, for the truth file: an interface's name, a disk's path.
    pub(crate) fn subject(&self, position: usize) -> &str {
        let Some(Source::Moving(moving, _)) = self.sources.get(position) else { return "" };
        let name = match *moving {
            Moving::Count { slot, .. } => {
                self.shape.interfaces.get(usize::from(slot / COUNTERS_PER_INTERFACE))
            }
            Moving::DiskUsed(disk) | Moving::DiskAvailable(disk) | Moving::DiskPercent(disk) => {
                self.shape.disks.get(usize::from(disk))
            }
            _ => None,
        };
        name.map_or("", String::as_str)
    }
}

fn text(text: &str) -> Value {
    Value::OctetString(text.into())
}

fn system(tree: &mut Tree) {
    tree.cell(SYSTEM, 1, &[0], text("Meikyo simulated agent"));
    let linux = Oid::from_slice(&[1, 3, 6, 1, 4, 1, 8072, 3, 2, 10]);
    tree.cell(SYSTEM, 2, &[0], Value::ObjectId(linux));
    tree.moving(SYSTEM, 3, &[0], Moving::Uptime, Form::TimeTicks);
    tree.cell(SYSTEM, 4, &[0], text("nobody: this agent is simulated"));
    tree.add(SYSTEM, 5, &[0], Source::Name);
    tree.cell(SYSTEM, 6, &[0], text("this process"));
    tree.cell(SYSTEM, 7, &[0], Value::Integer(72));
    tree.moving(SNMP_ENGINE, 2, &[0], Moving::EngineBoots, Form::Integer);
    tree.moving(SNMP_ENGINE, 3, &[0], Moving::EngineTime, Form::Integer);
    tree.moving(NS_CACHE_ENTRY, 2, IF_TABLE, Moving::CacheTimeout, Form::Integer);
    tree.cell(NS_CACHE_ENTRY, 3, IF_TABLE, Value::Integer(1));
}

fn interface(tree: &mut Tree, shape: &Shape, number: u16, name: &str) {
    let index = [shape.if_index(number.into())];
    let loopback = shape.host && number == 0;
    let kind = if loopback { 24 } else { 6 };
    let count = |offset: u16, shift: u8| Moving::Count {
        slot: number * COUNTERS_PER_INTERFACE + offset,
        shift,
    };
    let fixed_numbers = [(1, i64::from(index[0])), (3, kind), (4, 1500), (7, 1), (8, 1)];
    for (column, value) in fixed_numbers {
        tree.cell(IF_ENTRY, column, &index, Value::Integer(value));
    }
    tree.cell(IF_ENTRY, 2, &index, text(name));
    tree.cell(IF_ENTRY, 5, &index, Value::Gauge32(u32::MAX));
    let address = Source::PhysicalAddress(u8::try_from(number & 0xff).expect("masked to 8 bits"));
    tree.add(IF_ENTRY, 6, &index, address);
    tree.cell(IF_ENTRY, 9, &index, Value::TimeTicks(0));
    for (column, offset, shift) in [(10, 0, 0), (16, 1, 0), (11, 2, 10), (17, 3, 10)] {
        tree.moving(IF_ENTRY, column, &index, count(offset, shift), Form::Counter32);
    }
    for column in [13, 14, 15, 19, 20] {
        tree.cell(IF_ENTRY, column, &index, Value::Counter32(0));
    }
    tree.cell(IF_X_ENTRY, 1, &index, text(name));
    for column in 2..=5 {
        tree.cell(IF_X_ENTRY, column, &index, Value::Counter32(0));
    }
    for (column, offset, shift) in [(6, 0, 0), (10, 1, 0), (7, 2, 10), (11, 3, 10)] {
        tree.moving(IF_X_ENTRY, column, &index, count(offset, shift), Form::Counter64);
    }
    for column in [8, 9, 12, 13] {
        tree.cell(IF_X_ENTRY, column, &index, Value::Counter64(0));
    }
    tree.cell(IF_X_ENTRY, 15, &index, Value::Gauge32(10_000));
    tree.cell(IF_X_ENTRY, 16, &index, Value::Integer(2));
    tree.cell(IF_X_ENTRY, 17, &index, Value::Integer(if loopback { 2 } else { 1 }));
    tree.cell(IF_X_ENTRY, 18, &index, text(""));
    tree.moving(IF_X_ENTRY, 19, &index, Moving::Discontinuity, Form::TimeTicks);
}

fn host(tree: &mut Tree) {
    for (term, name) in (0..).zip(["Load-1", "Load-5", "Load-15"]) {
        let index = [u32::from(term) + 1];
        tree.cell(LA_ENTRY, 1, &index, Value::Integer(index[0].into()));
        tree.cell(LA_ENTRY, 2, &index, text(name));
        tree.moving(LA_ENTRY, 3, &index, Moving::Load(term), Form::HundredthsText);
        tree.moving(LA_ENTRY, 5, &index, Moving::Load(term), Form::Integer);
    }
    for (column, kind) in [(50, 0), (52, 1), (53, 2), (54, 3)] {
        tree.moving(SYSTEM_STATS, column, &[0], Moving::Cpu(kind), Form::Counter32);
    }
    for column in [51, 56, 61, 64] {
        tree.cell(SYSTEM_STATS, column, &[0], Value::Counter32(0));
    }
    let total = i64::try_from(MEMORY_TOTAL_KIB).expect("a small constant");
    for (column, value) in [(1, 0), (3, 0), (4, 0), (5, total), (12, 16_000)] {
        tree.cell(UCD_MEMORY, column, &[0], Value::Integer(value));
    }
    tree.cell(UCD_MEMORY, 2, &[0], text("swap"));
    let free = u32::try_from(MEMORY_TOTAL_KIB / 4).expect("a small constant");
    let [few, some, many] = [1 << 6, 1 << 17, 1 << 18];
    for (column, least, spread) in [(6, free, many), (14, 500_000, few), (15, 2 * free, some)] {
        let moving = Moving::Gauge { stream: 0, least, spread };
        tree.moving(UCD_MEMORY, column, &[0], moving, Form::Integer);
    }
    tree.builder.add(
        &Oid::from_slice(HR_SYSTEM_UPTIME),
        &[0],
        Source::Moving(Moving::HostUptime, Form::TimeTicks),
    );
    tree.fixed(HR_MEMORY_SIZE, &[0], Value::Integer(total));
}

/// Two temperatures, a fan and a voltage, as lm-sensors tells them to net-snmp.
fn sensors_of_host(tree: &mut Tree) {
    let all: [(u32, u32, &str, u8, u32, u32); 4] = [
        (2, 1, "Core 0", 1, 45_000, 20_000),
        (2, 2, "Core 1", 2, 44_000, 20_000),
        (3, 1, "fan1", 3, 1_200, 900),
        (4, 1, "in0", 4, 11_900, 200),
    ];
    for (table, index, name, stream, least, spread) in all {
        let table = [LM_SENSORS, &[table, 1]].concat();
        tree.cell(&table, 1, &[index], Value::Integer(index.into()));
        tree.cell(&table, 2, &[index], text(name));
        let moving = Moving::Gauge { stream, least, spread };
        tree.moving(&table, 3, &[index], moving, Form::Gauge32);
    }
}

/// A temperature to a tenth of a degree, a fan and a power supply in thousandths of a watt.
fn sensors_of_switch(tree: &mut Tree) {
    let all: [(u32, &str, [i64; 3], u32, u32); 3] = [
        (1_001, "Inlet temperature", [8, 9, 1], 215, 100),
        (1_002, "Fan 1", [10, 9, 0], 4_000, 1_500),
        (1_003, "PSU 1 power", [6, 8, 0], 84_000, 9_000),
    ];
    for (stream, (index, name, [kind, scale, precision], least, spread)) in (1..).zip(all) {
        tree.cell(ENT_PHYSICAL_ENTRY, 2, &[index], text("sensor"));
        tree.cell(ENT_PHYSICAL_ENTRY, 7, &[index], text(name));
        for (column, value) in [(1, kind), (2, scale), (3, precision), (5, 1)] {
            tree.cell(ENT_SENSOR_ENTRY, column, &[index], Value::Integer(value));
        }
        let moving = Moving::Gauge { stream, least, spread };
        tree.moving(ENT_SENSOR_ENTRY, 4, &[index], moving, Form::Integer);
    }
}

fn disk(tree: &mut Tree, number: u8, path: &str) {
    let index = [u32::from(number) + 1];
    let total = i64::try_from(DISK_TOTAL_KIB).expect("a small constant");
    let (used, available) = (Moving::DiskUsed(number), Moving::DiskAvailable(number));
    for (column, value) in [(1, index[0].into()), (4, 100_000), (5, -1), (6, total), (100, 0)] {
        tree.cell(DSK_ENTRY, column, &index, Value::Integer(value));
    }
    tree.cell(DSK_ENTRY, 2, &index, text(path));
    tree.cell(DSK_ENTRY, 3, &index, text(&format!("/dev/sd{}", index[0])));
    tree.moving(DSK_ENTRY, 7, &index, available, Form::Integer);
    tree.moving(DSK_ENTRY, 8, &index, used, Form::Integer);
    tree.moving(DSK_ENTRY, 9, &index, Moving::DiskPercent(number), Form::Integer);
    tree.cell(
        DSK_ENTRY,
        11,
        &index,
        Value::Gauge32(u32::try_from(DISK_TOTAL_KIB).expect("a small constant")),
    );
    tree.cell(DSK_ENTRY, 12, &index, Value::Gauge32(0));
    tree.moving(DSK_ENTRY, 13, &index, available, Form::Gauge32);
    tree.moving(DSK_ENTRY, 14, &index, available, Form::HighGauge32);
    tree.moving(DSK_ENTRY, 15, &index, used, Form::Gauge32);
    tree.moving(DSK_ENTRY, 16, &index, used, Form::HighGauge32);
    tree.cell(DSK_ENTRY, 101, &index, text(""));
    // hrStorageFixedDisk, in units of 4 KiB as Linux file systems mostly are; net-snmp numbers
    // file systems from 31 on.
    let index = [u32::from(number) + 31];
    let fixed_disk = Oid::from_slice(&[1, 3, 6, 1, 2, 1, 25, 2, 1, 4]);
    tree.cell(HR_STORAGE_ENTRY, 1, &index, Value::Integer(index[0].into()));
    tree.cell(HR_STORAGE_ENTRY, 2, &index, Value::ObjectId(fixed_disk));
    tree.cell(HR_STORAGE_ENTRY, 3, &index, text(path));
    tree.cell(HR_STORAGE_ENTRY, 4, &index, Value::Integer(1024));
    tree.cell(HR_STORAGE_ENTRY, 5, &index, Value::Integer(total));
    tree.moving(HR_STORAGE_ENTRY, 6, &index, used, Form::Integer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rotation: u32) -> Shape {
        let interfaces = ["lo", "eth0", "eth1", "ib0"].map(String::from).to_vec();
        Shape {
            interfaces,
            disks: vec!["/".into()],
            host: true,
            rotation,
            hidden: Vec::new(),
            detached: Vec::new(),
            vlans: Vec::new(),
        }
    }

    #[test]
    fn renumbering_moves_every_interface_but_the_first() {
        let indexes = |rotation| -> Vec<u32> {
            (0..4).map(|interface| shape(rotation).if_index(interface)).collect()
        };
        assert_eq!(indexes(0), [1, 2, 3, 4]);
        assert_eq!(indexes(1), [1, 3, 4, 2]);
        assert_eq!(indexes(3), [1, 2, 3, 4]);
    }

    #[test]
    fn a_hidden_subtree_is_missing_as_a_whole() {
        let hidden = vec!["1.3.6.1.2.1.31".parse().unwrap()];
        let layout = Layout::new(Shape { hidden, ..shape(0) });
        let whole = Layout::new(shape(0));
        assert_eq!(whole.instances.len() - layout.instances.len(), 4 * 18);
        let name = Oid::from_slice(IF_X_ENTRY).child(&[1, 2]).encoded();
        assert_eq!(layout.instances.find(&name), crate::agent::Find::NoObject);
    }

    #[test]
    fn the_subject_of_a_counter_is_its_interface_whatever_its_index() {
        for (rotation, index) in [(0, 2), (1, 3)] {
            let layout = Layout::new(shape(rotation));
            let octets = Oid::from_slice(IF_X_ENTRY).child(&[6, index]).encoded();
            let crate::agent::Find::At(position) = layout.instances.find(&octets) else {
                panic!("ifHCInOctets.{index} is missing");
            };
            assert_eq!(layout.subject(position), "eth0");
        }
    }
}
