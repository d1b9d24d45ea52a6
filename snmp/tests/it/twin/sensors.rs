//! Sensors: what is recorded is what the agents held, in the unit of its column.

use super::*;

/// What the farm's host and switch show: agent, object, name, column, and what one of it is.
const SENSORS: [(u32, &str, &str, &str, f64); 7] = [
    (0, "1.3.6.1.4.1.2021.13.16.2.1.3.1", "Core 0", "celsius", 0.001),
    (0, "1.3.6.1.4.1.2021.13.16.2.1.3.2", "Core 1", "celsius", 0.001),
    (0, "1.3.6.1.4.1.2021.13.16.3.1.3.1", "fan1", "rpm", 1.0),
    (0, "1.3.6.1.4.1.2021.13.16.4.1.3.1", "in0", "volts", 0.001),
    (1, "1.3.6.1.2.1.99.1.1.1.4.1001", "Inlet temperature", "celsius", 0.1),
    (1, "1.3.6.1.2.1.99.1.1.1.4.1002", "Fan 1", "rpm", 1.0),
    (1, "1.3.6.1.2.1.99.1.1.1.4.1003", "PSU 1 power", "watts", 0.001),
];

#[test]
#[expect(clippy::cast_precision_loss, reason = "an oracle: values below 10^5")]
fn every_sensor_is_recorded_as_its_agent_held_it() {
    let memory = Memory::default();
    let options = FarmOptions::new(1, 1);
    let names = [0, 1].map(|agent| options.name(agent));
    let mut twin = twin(&memory, options, "\"sensors\"");
    twin.run_until(START + Nanos::from_secs(8));
    let mut expected: BTreeMap<(String, String, i64), (&str, f64)> = BTreeMap::new();
    for (agent, requests) in finish(twin) {
        for request in requests {
            let due = request.received.floor(INTERVAL).as_nanos();
            for (object, &answered) in request.objects.iter().zip(&request.answered) {
                let oid = object.oid.to_string();
                let known = SENSORS.iter().find(|sensor| sensor.0 == agent && sensor.1 == oid);
                let Some((_, _, name, column, one)) = known else { continue };
                let key = (names[agent as usize].clone(), (*name).to_owned(), due);
                expected.insert(key, (column, answered as f64 * one));
            }
        }
    }
    let rows = rows(&memory, "sensors");
    assert!(expected.len() > 400, "{}", expected.len());
    assert_eq!(rows.len(), expected.len());
    for row in rows {
        let key = (row["device"].clone(), row["sensor"].clone(), row["time"].parse().unwrap());
        let (column, value) = expected[&key];
        let columns = ["celsius", "rpm", "watts", "volts", "amperes"];
        let recorded: Vec<_> = columns.into_iter().filter(|of| row.contains_key(*of)).collect();
        assert_eq!(recorded, [column], "{row:?}");
        let recorded: f64 = row[column].parse().unwrap();
        assert!((recorded - value).abs() < 1e-9, "{recorded} and not {value}: {row:?}");
        let of_switch = row["device"] == names[1];
        assert_eq!(row.get("oper_status").map(String::as_str), of_switch.then_some("1"));
    }
}
