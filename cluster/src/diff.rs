//! What a changed cluster file means for a running collector.

use std::collections::BTreeMap;

use meikyo_units::Nanos;

use crate::{AlertRule, Cluster, Device};

/// The devices that a changed file adds, removes and changes; all others go on untouched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference<'a> {
    /// Devices that are new, in the order of the new file.
    pub added: Vec<&'a Device>,
    /// Devices that are gone, in the order of the old file.
    pub removed: Vec<&'a Device>,
    /// Devices whose name is in both files and something that matters differs, in the order of the
    /// new file.
    pub changed: Vec<Change<'a>>,
    /// Whether `keep` differs, of all tables or of some.
    pub keep_changed: bool,
    /// Whether the rules of alerts differ, in meaning or order.
    pub alerts_changed: bool,
}

/// One device before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The device as the old file has it.
    pub old: &'a Device,
    /// As it is to be.
    pub new: &'a Device,
}

impl Change<'_> {
    /// Whether the agent has to be met anew: address or credentials differ.
    pub fn is_other_agent(&self) -> bool {
        self.old.address != self.new.address || self.old.snmp.access != self.new.snmp.access
    }
}

impl Difference<'_> {
    /// Whether the two files mean the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && !self.keep_changed
            && !self.alerts_changed
    }
}

/// What differs between two files. Names identify devices; lines, comments and the order of the
/// file do not matter. Time is `n log n` in the number of devices.
pub fn diff<'a>(old: &'a Cluster, new: &'a Cluster) -> Difference<'a> {
    let by_name = |cluster: &'a Cluster| -> BTreeMap<&'a str, &'a Device> {
        cluster.devices.iter().map(|device| (device.name.as_str(), device)).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    let (old_rules, new_rules) = (old.rules(), new.rules());
    let alike = |(old, new): (&AlertRule, &AlertRule)| old.means_the_same(new);
    let mut difference = Difference {
        keep_changed: old.keep != new.keep || keep_of_tables(old) != keep_of_tables(new),
        alerts_changed: old_rules.len() != new_rules.len()
            || !old_rules.iter().zip(&new_rules).all(alike),
        ..Difference::default()
    };
    for device in &new.devices {
        match before.get(device.name.as_str()) {
            None => difference.added.push(device),
            Some(old) if !means_the_same(old, device) => {
                difference.changed.push(Change { old, new: device });
            }
            Some(_) => {}
        }
    }
    let is_gone = |device: &&Device| !after.contains_key(device.name.as_str());
    difference.removed = old.devices.iter().filter(is_gone).collect();
    difference
}

/// Equal except for the places in the file and the words that say the same.
/// How long tables are kept that are kept for another time than others.
fn keep_of_tables(cluster: &Cluster) -> BTreeMap<&str, Nanos> {
    cluster.keep_tables.iter().map(|of| (of.table.as_str(), of.keep)).collect()
}

fn means_the_same(a: &Device, b: &Device) -> bool {
    let measures = |device: &'_ Device| -> Vec<_> {
        let measures = device.measure.iter();
        measures.map(|m| (m.what.clone(), m.columns.clone(), m.every)).collect()
    };
    a.kind == b.kind
        && a.group == b.group
        && a.address == b.address
        && a.snmp == b.snmp
        && measures(a) == measures(b)
}
