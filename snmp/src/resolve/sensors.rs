//! Sensors by name: `entPhySensorTable` (RFC 3433), whose names stand in `entPhysicalTable`
//! (ENTITY-MIB, RFC 6933), and the tables of LM-SENSORS-MIB, which net-snmp fills from lm-sensors.
//!
//! A sensor is called by `entPhysicalName`, or by `entPhysicalDescr` where that is empty, or as
//! lm-sensors calls it. Those of one name are told apart by what they measure and their index.

use std::collections::{BTreeMap, BTreeSet};

use super::walked::{Walked, name_of};
use super::{Fault, Wanted, value};
use crate::Oid;
use crate::plan::{Convert, Guard, RowPlan};
use crate::tables::{Table, sensors};

const ENT_PHYSICAL_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 47, 1, 1, 1];
const ENT_PHYSICAL_DESCR: u32 = 2;
const ENT_PHYSICAL_NAME: u32 = 7;

const ENT_SENSOR_TABLE: &[u32] = &[1, 3, 6, 1, 2, 1, 99, 1, 1];
const ENT_SENSOR_TYPE: u32 = 1;
const ENT_SENSOR_SCALE: u32 = 2;
const ENT_SENSOR_PRECISION: u32 = 3;
const ENT_SENSOR_VALUE: u32 = 4;
const ENT_SENSOR_OPER_STATUS: u32 = 5;

/// `units` among the names of powers of a thousand (RFC 3433, `EntitySensorDataScale`).
const UNITS: i64 = 9;

const LM_SENSORS: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 13, 16];
const LM_DEVICE: u32 = 2;
const LM_VALUE: u32 = 3;
/// Tables of LM-SENSORS-MIB with their column and the power of ten: thousandths of a degree, turns
/// a minute, thousandths of a volt.
const LM_TABLES: [(u32, &str, i8); 3] =
    [(2, sensors::CELSIUS.name(), -3), (3, sensors::RPM.name(), 0), (4, sensors::VOLTS.name(), -3)];

fn cell(table: &[u32], column: u32) -> Oid {
    Oid::from_slice(table).child(&[1, column])
}

fn lm_cell(table: u32, column: u32) -> Oid {
    Oid::from_slice(LM_SENSORS).child(&[table, 1, column])
}

/// The names, and what says how the values are scaled.
pub(super) fn walks() -> Vec<Oid> {
    let names = [ENT_PHYSICAL_DESCR, ENT_PHYSICAL_NAME].map(|of| cell(ENT_PHYSICAL_TABLE, of));
    let scales = [ENT_SENSOR_TYPE, ENT_SENSOR_SCALE, ENT_SENSOR_PRECISION];
    let scales = scales.map(|of| cell(ENT_SENSOR_TABLE, of));
    let devices = LM_TABLES.map(|(table, ..)| lm_cell(table, LM_DEVICE));
    names.into_iter().chain(scales).chain(devices).collect()
}

/// One sensor of an agent.
struct Sensor {
    /// No other of the agent has this name.
    name: String,
    guard: Option<Guard>,
    column: &'static str,
    value: Oid,
    convert: Convert,
    status: Option<Oid>,
}

/// `sensors`, or with a name `sensor:NAME`.
pub(super) fn resolve(wanted: &mut Wanted<'_>, walked: &Walked<'_>, name: Option<&str>) {
    let mut found = found(walked);
    if found.is_empty() {
        wanted.hidden("sensors", &[ENT_SENSOR_TABLE, ENT_PHYSICAL_TABLE, LM_SENSORS]);
        return;
    }
    if let Some(name) = name {
        let names: Vec<_> = found.iter().map(|sensor| sensor.name.clone()).collect();
        found.retain(|sensor| sensor.name == name);
        if found.is_empty() {
            let fault = Fault::NoPart { noun: "sensor", name: name.to_owned() };
            wanted.problem(fault, names);
            return;
        }
    }
    let has: BTreeSet<_> = found.iter().map(|sensor| sensor.column).collect();
    let status = sensors::OPER_STATUS.name();
    for column in wanted.measure.columns.clone() {
        if column != status && !has.contains(column.as_str()) {
            let has = has.iter().map(|column| (*column).to_owned()).collect();
            wanted.problem(Fault::NoColumn { column, of: "sensors".into() }, has);
        }
    }
    for sensor in found {
        add(wanted, sensor, name.is_some());
    }
}

fn add(wanted: &mut Wanted<'_>, sensor: Sensor, named: bool) {
    let mut values = Vec::new();
    if wanted.wants(sensor.column) {
        values.push(value(Table::Sensors, sensor.column, sensor.value, sensor.convert));
    }
    let status = sensors::OPER_STATUS.name();
    if let Some(oid) = sensor.status.filter(|_| wanted.wants(status)) {
        values.push(value(Table::Sensors, status, oid, Convert::Unsigned));
    }
    if values.is_empty() {
        return;
    }
    wanted.rows.push(RowPlan {
        table: Table::Sensors,
        instance: Some(sensor.name),
        guard: sensor.guard,
        named,
        values,
        every: wanted.every(),
        declared_refresh: None,
    });
}

/// The sensors of both MIBs. An agent that shows one in both, under one name, is asked once.
fn found(walked: &Walked<'_>) -> Vec<Sensor> {
    let mut all = of_entities(walked);
    for table in LM_TABLES {
        of_lm_sensors(walked, table, &mut all);
    }
    let mut called: BTreeMap<String, usize> = BTreeMap::new();
    for (_, sensor) in &all {
        *called.entry(sensor.name.clone()).or_default() += 1;
    }
    let mut taken = BTreeSet::new();
    let mut sensors = Vec::new();
    for (index, mut sensor) in all {
        if sensor.name.is_empty() || called.get(&sensor.name).is_some_and(|&count| count > 1) {
            let index: Vec<_> = index.iter().map(u32::to_string).collect();
            let told_apart = format!("{} {} {}", sensor.name, sensor.column, index.join("."));
            sensor.name = told_apart.trim_start().to_owned();
        }
        if taken.insert(sensor.name.clone()) {
            sensors.push(sensor);
        }
    }
    sensors
}

/// The sensors of one table of LM-SENSORS-MIB, by index.
fn of_lm_sensors(
    walked: &Walked<'_>,
    (table, column, exponent): (u32, &'static str, i8),
    found: &mut Vec<(Vec<u32>, Sensor)>,
) {
    let devices = lm_cell(table, LM_DEVICE);
    for (index, device) in walked.below(devices.as_slice()) {
        let expected = device.as_octets().unwrap_or_default().to_vec();
        let sensor = Sensor {
            name: name_of(device).unwrap_or_default(),
            guard: Some(Guard { oid: devices.child(index), expected }),
            column,
            value: lm_cell(table, LM_VALUE).child(index),
            convert: Convert::Decimal(exponent),
            status: None,
        };
        found.push((index.to_vec(), sensor));
    }
}

/// The sensors of `entPhySensorTable` that measure what the table has a column for, by index.
fn of_entities(walked: &Walked<'_>) -> Vec<(Vec<u32>, Sensor)> {
    let kinds = cell(ENT_SENSOR_TABLE, ENT_SENSOR_TYPE);
    let at = |column: u32, index: &[u32]| cell(ENT_SENSOR_TABLE, column).child(index);
    let number = |column: u32, index: &[u32]| walked.get(at(column, index).as_slice())?.as_i64();
    let mut found = Vec::new();
    for (index, kind) in walked.below(kinds.as_slice()) {
        let Some(column) = kind.as_i64().and_then(column_of) else { continue };
        let scale = number(ENT_SENSOR_SCALE, index).unwrap_or(UNITS);
        // Below 0 it is the number of digits that can be trusted.
        let precision = number(ENT_SENSOR_PRECISION, index).unwrap_or(0).max(0);
        let Ok(exponent) = i8::try_from((scale - UNITS) * 3 - precision) else { continue };
        let texts = [ENT_PHYSICAL_NAME, ENT_PHYSICAL_DESCR].into_iter().filter_map(|column| {
            let oid = cell(ENT_PHYSICAL_TABLE, column).child(index);
            let text = walked.get(oid.as_slice())?;
            Some((oid, name_of(text)?, text.as_octets()?.to_vec()))
        });
        let named = texts.into_iter().find(|(_, name, _)| !name.is_empty());
        let (name, guard) = match named {
            Some((oid, name, expected)) => (name, Some(Guard { oid, expected })),
            None => (String::new(), None),
        };
        let sensor = Sensor {
            name,
            guard,
            column,
            value: at(ENT_SENSOR_VALUE, index),
            convert: Convert::Decimal(exponent),
            status: Some(at(ENT_SENSOR_OPER_STATUS, index)),
        };
        found.push((index.to_vec(), sensor));
    }
    found
}

/// The column for a type of sensor (RFC 3433, `EntitySensorDataType`); `None` for what has none, as
/// frequency and humidity.
fn column_of(kind: i64) -> Option<&'static str> {
    match kind {
        // Alternating and direct.
        3 | 4 => Some(sensors::VOLTS.name()),
        5 => Some(sensors::AMPERES.name()),
        6 => Some(sensors::WATTS.name()),
        8 => Some(sensors::CELSIUS.name()),
        10 => Some(sensors::RPM.name()),
        _ => None,
    }
}
