//! Sensors of real agents, see `walks/README.md`.

use super::names::recorded;
use super::*;

const ARISTA: &str = include_str!("../walks/arista-dcs-7150s.snmprec");
const LM_SENSORS: &str = include_str!("../walks/linux-lm-sensors.snmprec");

/// The rows of a walk: name, and for each value its column and what it is in the unit of that.
fn measured(measure: &str, walk: &str) -> Vec<(String, Vec<(String, f64)>)> {
    let varbinds = recorded(walk);
    let (plan, problems) = plan(&device(measure), &varbinds);
    assert_eq!(problems, []);
    let read = |oid: &Oid| {
        let found = varbinds.iter().find(|(walked, _)| walked == oid).unwrap();
        f64::from(i32::try_from(found.1.as_i64().unwrap()).unwrap())
    };
    let of_row = |row: &RowPlan| {
        // Its name stands in the agent's answer where the guard says.
        let guard = row.guard.as_ref().unwrap();
        let named = varbinds.iter().find(|(walked, _)| *walked == guard.oid).unwrap();
        assert_eq!(named.1.as_octets(), Some(&guard.expected[..]));
        let value = |value: &ValuePlan| {
            let name = schema(row.table).columns[value.column].name.clone();
            let power = match value.convert {
                Convert::Decimal(exponent) => 10_f64.powi(exponent.into()),
                _ => 1.0,
            };
            (name, read(&value.oid) * power)
        };
        (row.instance.clone().unwrap(), row.values.iter().map(value).collect())
    };
    plan.rows.iter().map(of_row).collect()
}

#[test]
fn an_arista_switch_tells_degrees_volts_amperes_and_watts_in_their_units() {
    // Beside each value the walk has what the switch itself shows: 28.2 Celsius, 12.42 Volts, 5.09 mA
    // and 0.6015 mW. The fan is unavailable.
    let expected = [
        ("Cpu temp sensor", "celsius", 28.2, 1.0),
        ("CpucardPwrCon Rail1 12V standby", "volts", 12.42, 1.0),
        ("DOM TX Bias Sensor for Ethernet5", "amperes", 0.005_09, 1.0),
        ("DOM TX Power Sensor for Ethernet5", "watts", 0.000_601_5, 1.0),
        ("Fan Tray 1 Fan 1 Sensor 1", "rpm", 0.0, 2.0),
    ];
    let rows = measured("\"sensors\"", ARISTA);
    assert_eq!(rows.len(), expected.len());
    for ((name, values), (wanted, column, value, status)) in rows.into_iter().zip(expected) {
        assert_eq!((&*name, values.len()), (wanted, 2));
        assert_eq!((&*values[0].0, &*values[1].0), (column, "oper_status"));
        assert!((values[0].1 - value).abs() < 1e-12, "{name}: {}", values[0].1);
        assert!((values[1].1 - status).abs() < 1e-12, "{name}: {}", values[1].1);
    }
}

#[test]
fn lm_sensors_are_found_by_the_names_that_they_have_on_the_host() {
    let rows = measured("\"sensors(celsius)\"", LM_SENSORS);
    let names: Vec<_> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Core 0", "Core 1", "Core 2", "Core 3"]);
    assert_eq!(rows[0].1, [("celsius".to_owned(), 100.0)]);
    let one = measured("\"sensor:Core 2\"", LM_SENSORS);
    assert_eq!(one.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["Core 2"]);
}

#[test]
fn sensors_of_one_name_are_told_apart_and_unknown_ones_are_told() {
    let walk = LM_SENSORS.replace("436f72652031", "436f72652030");
    let (found, problems) = plan(&device("\"sensors\""), &recorded(&walk));
    assert_eq!(problems, []);
    let names: Vec<_> = found.rows.iter().filter_map(|row| row.instance.as_deref()).collect();
    assert_eq!(names, ["Core 0 celsius 1", "Core 0 celsius 2", "Core 2", "Core 3"]);
    let (_, problems) = plan(&device("\"sensor:fan9\", \"sensors(rpm)\""), &recorded(&walk));
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(texts[0].contains("the agent has no sensor `fan9`"), "{}", texts[0]);
    assert!(texts[1].contains("the agent has no `rpm` among its sensors"), "{}", texts[1]);
    let (_, problems) = plan(&device("\"sensors\""), &agent());
    assert!(problems[0].to_string().contains("the agent shows no sensors"));
}

#[test]
fn every_kind_of_parts_of_the_cluster_file_is_resolved_into_its_table() {
    for kind in PartKind::ALL {
        let table = Table::named(kind.table).unwrap();
        assert!(parts(kind).is_some() && schema(table).part.is_some(), "{}", kind.all);
    }
}
