//! Ranges against brute force over the raw rows.

use std::collections::BTreeMap;
use std::io::Cursor;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{
    Float32Type, Float64Type, Int64Type, TimestampNanosecondType, UInt32Type, UInt64Type,
};
use meikyo_recording::series::Texts;
use meikyo_recording::{Recording, Selection};
use meikyo_units::Nanos;
use serde_json::Value;

use crate::client::serve;
use crate::recorded::{HOSTS, SPAN, START, recording};

/// What a pixel must hold: least, mean, greatest, readings.
pub(crate) type Pixel = (f64, f64, f64, u64);

/// µs since the epoch, `seconds` after the start.
fn at_us(seconds: u64) -> i64 {
    (START + Nanos::from_secs(seconds)).as_nanos() / 1_000
}

/// Pixels by device and bin.
pub(crate) fn pixels(body: &Value) -> BTreeMap<(String, u64), Pixel> {
    let mut found = BTreeMap::new();
    for row in body["rows"].as_array().unwrap() {
        let device = row["labels"]["device"].as_str().unwrap();
        for (place, bin) in row["bins"].as_array().unwrap().iter().enumerate() {
            let of = |name: &str| row[name][place].as_f64().unwrap();
            let count = row["count"][place].as_u64().unwrap();
            let pixel = (of("min"), of("mean"), of("max"), count);
            found.insert((device.to_owned(), bin.as_u64().unwrap()), pixel);
        }
    }
    found
}

pub(crate) fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2e-5 * a.abs().max(b.abs()).max(1e-9)
}

fn assert_same(got: &BTreeMap<(String, u64), Pixel>, expected: &BTreeMap<(String, u64), Pixel>) {
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (place, pixel) in got {
        let other = expected[place];
        let same = near(pixel.0, other.0) && near(pixel.1, other.1) && near(pixel.2, other.2);
        assert!(same && pixel.3 == other.3, "{place:?}: {pixel:?}, expected {other:?}");
    }
}

/// Readings of `load_1min` by device: time and value.
fn loads() -> BTreeMap<String, Vec<(i64, f64)>> {
    let columns = ["time", "device", "load_1min"].map(str::to_owned).to_vec();
    let selection = Selection { columns: Some(columns), ..Selection::all("load") };
    let mut loads: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
    for batch in Recording::open(recording()).unwrap().scan(&selection).unwrap() {
        let batch = batch.unwrap();
        let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
        let devices = Texts::new(batch.column(1)).unwrap();
        let values = batch.column(2).as_primitive::<Float64Type>();
        for row in (0..batch.num_rows()).filter(|&row| values.is_valid(row)) {
            let device = devices.get(row).unwrap().to_owned();
            loads.entry(device).or_default().push((times.value(row), values.value(row)));
        }
    }
    loads
}

/// What the pixels of a gauge must be.
fn brute_gauge(body: &Value) -> BTreeMap<(String, u64), Pixel> {
    let from = body["from_us"].as_i64().unwrap() * 1_000;
    let length = body["bin_us"].as_i64().unwrap() * 1_000;
    let bins = body["bins"].as_i64().unwrap();
    let mut pixels: BTreeMap<(String, u64), Vec<f64>> = BTreeMap::new();
    for (device, readings) in loads() {
        for (time, value) in readings {
            let bin = (time - from).div_euclid(length);
            if (0..bins).contains(&bin) {
                let place = (device.clone(), u64::try_from(bin).unwrap());
                pixels.entry(place).or_default().push(value);
            }
        }
    }
    let fold = |values: Vec<f64>| {
        let count = u32::try_from(values.len()).unwrap();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, values.iter().sum::<f64>() / f64::from(count), most, u64::from(count))
    };
    pixels.into_iter().map(|(place, values)| (place, fold(values))).collect()
}

#[test]
fn a_gauge_is_the_same_from_summaries_and_from_readings_as_by_hand() {
    let served = serve(recording());
    for (from, to, width, level_ms) in [
        (0, SPAN.get() / 1_000_000_000, 20, 60_000),
        (0, 1_260, 100, 10_000),
        (250, 700, 300, 1_000),
        (290, 340, 200, 0),
    ] {
        let path = format!(
            "recordings/{}/range?table=load&column=load_1min&from={}&to={}&width={width}",
            id(&served),
            at_us(from),
            at_us(to)
        );
        let body = served.json(&path);
        assert_eq!(body["level_ms"], level_ms, "{path}");
        assert_eq!(body["problems"], Value::Array(Vec::new()));
        let got = pixels(&body);
        assert!(!got.is_empty());
        assert_same(&got, &brute_gauge(&body));
    }
}

#[test]
fn a_device_that_was_silent_has_no_pixels_then() {
    let served = serve(recording());
    let path = format!(
        "recordings/{}/range?table=load&column=load_1min&device=node003&from={}&to={}&width=100",
        id(&served),
        at_us(295),
        at_us(340)
    );
    let got = pixels(&served.json(&path));
    let silent = got.keys().filter(|(_, bin)| (12..=76).contains(bin)).count();
    assert_eq!(silent, 0, "of 100 pixels of 0.5 s those from 6 s to 35 s: {got:?}");
    assert!(got.len() > 15);
}

/// Readings of `in_octets` with their receive times, by device.
fn counters() -> BTreeMap<String, Vec<(i64, u64)>> {
    let recording = Recording::open(recording()).unwrap();
    let mut received: BTreeMap<(String, i64), i64> = BTreeMap::new();
    let columns = ["time", "device", "received_us"].map(str::to_owned).to_vec();
    let selection = Selection { columns: Some(columns), ..Selection::all("polls") };
    for batch in recording.scan(&selection).unwrap() {
        let batch = batch.unwrap();
        let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
        let devices = Texts::new(batch.column(1)).unwrap();
        let after = batch.column(2).as_primitive::<Int64Type>();
        for row in (0..batch.num_rows()).filter(|&row| after.is_valid(row)) {
            let key = (devices.get(row).unwrap().to_owned(), times.value(row));
            received.insert(key, times.value(row) + after.value(row) * 1_000);
        }
    }
    let mut counters: BTreeMap<String, Vec<(i64, u64)>> = BTreeMap::new();
    let columns = ["time", "device", "in_octets"].map(str::to_owned).to_vec();
    let selection = Selection { columns: Some(columns), ..Selection::all("interfaces") };
    for batch in recording.scan(&selection).unwrap() {
        let batch = batch.unwrap();
        let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
        let devices = Texts::new(batch.column(1)).unwrap();
        let values = batch.column(2).as_primitive::<UInt64Type>();
        for row in (0..batch.num_rows()).filter(|&row| values.is_valid(row)) {
            let device = devices.get(row).unwrap().to_owned();
            let at = received[&(device.clone(), times.value(row))];
            counters.entry(device).or_default().push((at, values.value(row)));
        }
    }
    counters.values_mut().for_each(|readings| readings.sort_unstable());
    counters
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "octets of minutes are below 2^53")]
fn a_counter_is_its_rate_between_two_answers_from_summaries_and_readings() {
    let served = serve(recording());
    let counters = counters();
    for (from, to, width) in [(60, 260, 100), (100, 130, 300), (400, 1_200, 60)] {
        let path = format!(
            "recordings/{}/range?table=interfaces&column=in_octets&from={}&to={}&width={width}",
            id(&served),
            at_us(from),
            at_us(to)
        );
        let body = served.json(&path);
        assert_eq!(body["unit"], "octets/s");
        let begin = body["from_us"].as_i64().unwrap() * 1_000;
        let length = body["bin_us"].as_i64().unwrap() * 1_000;
        let mut compared = 0;
        for ((device, bin), (min, mean, max, _)) in pixels(&body) {
            let from = begin + i64::try_from(bin).unwrap() * length;
            let to = from + length;
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            let (mut counted, mut covered) = (0.0, 0.0);
            for pair in counters[&device].windows(2) {
                let overlap = pair[1].0.min(to) - pair[0].0.max(from);
                if overlap > 0 {
                    let rate = (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0) as f64;
                    least = least.min(rate * 1e9);
                    most = most.max(rate * 1e9);
                    counted += rate * overlap as f64;
                    covered += overlap as f64;
                }
            }
            let expected = (least, counted * 1e9 / covered, most);
            let got = (min, mean, max);
            let same =
                near(min, least) && near(max, most) && (mean / expected.1 - 1.0).abs() < 1e-3;
            assert!(same, "{device} bin {bin}: {got:?}, expected {expected:?}");
            compared += 1;
        }
        assert!(compared > 100, "{compared} pixels");
    }
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "octets of minutes are below 2^53")]
fn a_rate_lies_on_request_where_the_reading_was_due_that_brought_it() {
    const INTERVAL: i64 = 100_000_000;
    let served = serve(recording());
    let counters = counters();
    // From files, over the silence of a device, and where two files meet.
    for (from, to) in [(100, 130), (290, 335), (590, 610)] {
        let path = format!(
            "recordings/{}/range?table=interfaces&column=in_octets&rates=read&from={}&to={}&width={}",
            id(&served),
            at_us(from),
            at_us(to),
            (to - from) * 10,
        );
        let body = served.json(&path);
        assert_eq!((&body["level_ms"], &body["bin_us"]), (&Value::from(0), &Value::from(100_000)));
        let begin = body["from_us"].as_i64().unwrap() * 1_000;
        let mut expected = BTreeMap::new();
        for (device, readings) in &counters {
            for pair in readings.windows(2) {
                let due = pair[1].0 - pair[1].0.rem_euclid(INTERVAL);
                let Ok(bin) = u64::try_from((due - begin).div_euclid(INTERVAL)) else { continue };
                if bin < (to - from) * 10 {
                    let rate = (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0) as f64;
                    let rate = rate * 1e9;
                    expected.insert((device.clone(), bin), (rate, rate, rate, 1));
                }
            }
        }
        assert!(expected.len() > 600, "{} pixels", expected.len());
        assert_same(&pixels(&body), &expected);
    }
}

#[test]
fn arrow_says_the_same_as_json_and_its_headers_the_facts() {
    let served = serve(recording());
    let path = format!("recordings/{}/range?table=load&column=load_5min&width=50", id(&served));
    let body = served.json(&path);
    let answer = served.get(&format!("/api/v1/{path}&format=arrow"));
    assert_eq!(answer.header("content-type"), "application/vnd.apache.arrow.stream");
    for (header, key) in [
        ("meikyo-from-us", "from_us"),
        ("meikyo-bin-us", "bin_us"),
        ("meikyo-bins", "bins"),
        ("meikyo-level", "level_ms"),
    ] {
        assert_eq!(answer.header(header), body[key].to_string(), "{header}");
    }
    assert_eq!(answer.header("meikyo-unit"), "tasks");
    let reader = arrow::ipc::reader::StreamReader::try_new(Cursor::new(answer.body), None).unwrap();
    let mut rows = 0;
    let of_json: BTreeMap<u64, &Value> = body["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["series"].as_u64().unwrap(), row))
        .collect();
    for batch in reader {
        let batch = batch.unwrap();
        let bins = batch.column(0).as_primitive::<UInt32Type>();
        let series = batch.column(1).as_primitive::<UInt32Type>();
        let max = batch.column_by_name("max").unwrap().as_primitive::<Float32Type>();
        for row in 0..batch.num_rows() {
            let of = of_json[&u64::from(series.value(row))];
            let bin = Value::from(bins.value(row));
            let place = of["bins"].as_array().unwrap().iter().position(|of| *of == bin).unwrap();
            assert!(near(of["max"][place].as_f64().unwrap(), f64::from(max.value(row))));
            rows += 1;
        }
    }
    let expected: usize = of_json.values().map(|row| row["bins"].as_array().unwrap().len()).sum();
    assert_eq!(rows, expected);
}

#[test]
fn an_arrow_answer_carries_only_what_is_wanted() {
    let served = serve(recording());
    let path = format!("/api/v1/recordings/{}/range?table=load&column=load_1min", id(&served));
    let columns = |values: &str| {
        let answer = served.get(&format!("{path}&format=arrow{values}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body = Cursor::new(answer.body);
        let mut reader = arrow::ipc::reader::StreamReader::try_new(body, None).unwrap();
        reader.next().unwrap().unwrap()
    };
    let (whole, slim) = (columns(""), columns("&values=max,count"));
    let names: Vec<_> = slim.schema().fields().iter().map(|of| of.name().clone()).collect();
    assert_eq!(names, ["bin", "series", "max", "count"]);
    assert!(names.iter().all(|name| whole.column_by_name(name) == slim.column_by_name(name)));
    assert_eq!(whole.num_columns(), 6);
    let wrong = served.get(&format!("{path}&values=max,median"));
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("`median`"), "{}", wrong.text());
}

#[test]
fn rows_fold_to_the_greatest_of_their_neighbours() {
    let served = serve(recording());
    let path = format!("recordings/{}/range?table=load&column=load_1min&width=30", id(&served));
    let whole = served.json(&path);
    let folded = served.json(&format!("{path}&fold=3"));
    assert_eq!(folded["series_per_row"], 2);
    let mut expected: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for row in whole["rows"].as_array().unwrap() {
        for (place, bin) in row["bins"].as_array().unwrap().iter().enumerate() {
            let max = row["max"][place].as_f64().unwrap();
            let key = (row["series"].as_u64().unwrap() / 2, bin.as_u64().unwrap());
            let most = expected.entry(key).or_insert(max);
            *most = most.max(max);
        }
    }
    let mut got = BTreeMap::new();
    for row in folded["rows"].as_array().unwrap() {
        for (place, bin) in row["bins"].as_array().unwrap().iter().enumerate() {
            let key = (row["series"].as_u64().unwrap(), bin.as_u64().unwrap());
            got.insert(key, row["max"][place].as_f64().unwrap());
        }
    }
    assert_eq!(got, expected);
}

#[test]
fn labels_choose_series_and_wrong_questions_are_told_what_there_is() {
    let served = serve(recording());
    let id = id(&served);
    let series = served.json(&format!("recordings/{id}/series?table=interfaces"));
    assert_eq!(series.as_array().unwrap().len(), HOSTS as usize, "the switch has no `eth0`");
    let ordinals: Vec<_> =
        series.as_array().unwrap().iter().map(|of| of["ordinal"].as_u64().unwrap()).collect();
    assert!((0..).zip(&ordinals).all(|(place, ordinal)| place == *ordinal), "dense");
    let some = served.json(&format!("recordings/{id}/series?table=load&device=node00*&device=x"));
    assert_eq!(some.as_array().unwrap().len(), HOSTS as usize);
    for (query, status, told) in [
        ("table=load&column=load_1min&colour=red", 400, "labels: device"),
        ("table=load&column=nothing", 400, "load_1min"),
        ("table=load&column=device", 400, "load_1min"),
        ("table=none&column=x", 404, "interfaces"),
        ("table=load.summary&column=x", 404, "no table"),
        ("table=../load&column=x", 404, "no table"),
        ("column=x", 400, "`table` is missing"),
        ("table=load&column=load_1min&width=0", 400, "from 1 to"),
        ("table=load&column=load_1min&rates=all", 400, "`counted` or `read`"),
        ("table=load&column=load_1min&from=now&to=-1min", 400, "not before"),
        ("table=load&column=load_1min&from=yesterday", 400, "-15min"),
    ] {
        let answer = served.get(&format!("/api/v1/recordings/{id}/range?{query}"));
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        assert!(answer.text().contains(told), "{query}: {}", answer.text());
    }
}

/// The id of the only recording.
pub(crate) fn id(served: &crate::client::Served) -> String {
    served.json("recordings")[0]["id"].as_str().unwrap().to_owned()
}
