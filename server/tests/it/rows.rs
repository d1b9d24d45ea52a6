//! Health, states, rows, exports and the inventory, against scans of the recording.

use std::collections::BTreeMap;

use meikyo_recording::series::Texts;
use meikyo_recording::{Recording, Selection};
use meikyo_units::Nanos;
use serde_json::Value;

use crate::client::serve;
use crate::ranges::id;
use crate::recorded::{HOSTS, START, recording};

/// How many polls ended in which state.
fn states() -> BTreeMap<String, u64> {
    let selection = Selection { columns: Some(vec!["state".into()]), ..Selection::all("polls") };
    let mut counts = BTreeMap::new();
    for batch in Recording::open(recording()).unwrap().scan(&selection).unwrap() {
        let batch = batch.unwrap();
        let states = Texts::new(batch.column(0)).unwrap();
        for row in 0..batch.num_rows() {
            *counts.entry(states.get(row).unwrap().to_owned()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn the_time_bar_counts_every_device_interval_once() {
    let served = serve(recording());
    let body = served.json(&format!("recordings/{}/health?width=100", id(&served)));
    let states = states();
    for (key, word) in [
        ("ok", "ok"),
        ("late", "late"),
        ("missed", "missed"),
        ("error", "error"),
        ("skipped", "skipped"),
    ] {
        let expected = states.get(word).copied().unwrap_or(0);
        assert_eq!(body["totals"][key], expected, "{key}");
        let bins = body["bins"][key].as_array().unwrap();
        assert_eq!(bins.iter().map(|of| of.as_u64().unwrap()).sum::<u64>(), expected, "{key}");
    }
    assert!(states["missed"] + states.get("skipped").copied().unwrap_or(0) > 20);
    assert_eq!(body["silent"], Value::Array(Vec::new()));
    assert_eq!(body["intervals_per_s"], 10.0);
    let then = (START + Nanos::from_secs(320)).as_nanos() / 1_000;
    let body = served.json(&format!("recordings/{}/health?to={then}", id(&served)));
    assert_eq!(body["silent"], Value::Array(vec!["node003".into()]));
}

#[test]
fn the_silent_device_alone_has_worse_states_than_ok() {
    let served = serve(recording());
    for width in [20, 100, 600] {
        let body = served.json(&format!("recordings/{}/states?width={width}", id(&served)));
        let begin = body["from_us"].as_i64().unwrap();
        let length = body["bin_us"].as_i64().unwrap();
        let rows = body["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["device"] == "node003").unwrap();
        assert!(row["worst"].as_array().unwrap().contains(&Value::from(4)), "missed: {row}");
        let from = (START + Nanos::from_secs(299)).as_nanos() / 1_000;
        let to = (START + Nanos::from_secs(333)).as_nanos() / 1_000;
        for (bin, worst) in
            row["bins"].as_array().unwrap().iter().zip(row["worst"].as_array().unwrap())
        {
            let at = begin + bin.as_i64().unwrap() * length;
            let silent = at < to && at + length > from;
            assert!(silent || worst.as_u64() < Some(4), "{at}: {worst}");
        }
        // What was well in a whole file is not read: no bin of the silence may be lost by that.
        let missed = row["bins"].as_array().unwrap().iter().zip(row["worst"].as_array().unwrap());
        let missed: Vec<_> = missed
            .filter(|(_, worst)| **worst == 4)
            .map(|(bin, _)| bin.as_i64().unwrap())
            .collect();
        let first = (from + 1_000_000 - begin).div_euclid(length);
        let last = (to - 4_000_000 - begin).div_euclid(length);
        assert!((first..=last).all(|bin| missed.contains(&bin)), "{width}: {missed:?}");
    }
}

#[test]
fn readings_are_the_rows_with_their_receive_times() {
    let served = serve(recording());
    let id = id(&served);
    let from = (START + Nanos::from_secs(100)).as_nanos() / 1_000;
    let to = from + 1_000_000;
    let path =
        format!("recordings/{id}/readings?table=interfaces&device=node001&from={from}&to={to}");
    let body = served.json(&path);
    let columns: Vec<_> =
        body["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let rows = body["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    assert_eq!(body["truncated"], false);
    for row in rows {
        let due = row[at("time_us")].as_i64().unwrap();
        let received = row[at("received_us")].as_i64().unwrap();
        assert!((from..to).contains(&due) && received > due && received < due + 100_000);
        assert_eq!(row[at("state")], "ok");
        assert_eq!(row[at("device")], "node001");
    }
    let few = served.json(&format!("{path}&limit=3"));
    assert_eq!(
        (few["rows"].as_array().unwrap().as_slice(), &few["truncated"]),
        (&rows[7..], &Value::Bool(true))
    );
}

#[test]
fn exports_hold_the_same_rows() {
    let served = serve(recording());
    let id = id(&served);
    let from = (START + Nanos::from_secs(590)).as_nanos() / 1_000;
    let path = format!(
        "/api/v1/recordings/{id}/export?table=load&from={from}&to={}&columns=time,device,load_1min",
        from + 20_000_000
    );
    let csv = served.get(&format!("{path}&format=csv"));
    assert_eq!(csv.header("content-disposition"), "attachment; filename=\"load.csv\"");
    let text = csv.text();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("time,received,device,load_1min"), "{}", lines[0]);
    let devices = HOSTS as usize;
    assert!(lines.len() > 200 * devices, "{} lines", lines.len());
    let parquet = served.get(&path);
    assert!(parquet.body.starts_with(b"PAR1") && parquet.body.ends_with(b"PAR1"));
    let bytes = axum::body::Bytes::from(parquet.body);
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(bytes, 1_024);
    let rows: usize = reader.unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, lines.len() - 1);
    let wrong = served.get(&format!("/api/v1/recordings/{id}/export?table=load&columns=nothing"));
    assert_eq!(wrong.status, 400);
}

#[test]
fn recordings_are_described_and_their_inventory_counts_rows() {
    let served = serve(recording());
    let recordings = served.json("recordings");
    let only = &recordings[0];
    assert_eq!((&only["kind"], &only["running"]), (&"measured".into(), &Value::Bool(false)));
    assert_eq!(only["interval_us"], 100_000);
    assert_eq!(only["devices"].as_array().unwrap().len(), HOSTS as usize + 1);
    let tables = only["tables"].as_array().unwrap();
    let interfaces = tables.iter().find(|table| table["name"] == "interfaces").unwrap();
    assert_eq!(interfaces["labels"], serde_json::json!(["device", "interface"]));
    let columns = interfaces["columns"].as_array().unwrap();
    let octets = columns.iter().find(|column| column["name"] == "in_octets").unwrap();
    assert_eq!((&octets["meaning"], &octets["unit"]), (&"counter".into(), &"octets/s".into()));
    let inventory = served.json(&format!("recordings/{}/inventory", id(&served)));
    let polls = inventory["tables"].as_array().unwrap();
    let polls = polls.iter().find(|table| table["name"] == "polls").unwrap();
    assert_eq!(polls["rows"], states().values().sum::<u64>());
    assert_eq!(inventory["problems"], Value::Array(Vec::new()));
    assert!(inventory["collector"]["intervals"].as_u64().unwrap() > 5_000);
    let events = served.json(&format!("recordings/{}/events", id(&served)));
    let told = events["events"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|event| [&event["device"], &event["event"]]).collect();
    let silent = Value::from("node003");
    let [failing, answering] = ["failing", "answering"].map(Value::from);
    assert_eq!(told, [[&silent, &failing], [&silent, &answering]]);
    let freshness = served.json(&format!("recordings/{}/freshness?device=node001", id(&served)));
    assert!(!freshness["rows"].as_array().unwrap().is_empty());
    assert_eq!(served.json("alerts"), Value::Array(Vec::new()));
    assert_eq!(served.ask("POST", "/api/v1/alerts/x/acknowledge", "", "").status, 404);
}
