//! Many runs of one scenario: replications, sweeps, and what is made of them.

use super::{example, json, run};
use crate::running::text;

/// A queue with room for four, small enough to be run many times.
fn queue(more: &[&str]) -> Vec<String> {
    let file = example("simulate-queue.toml");
    let start = ["simulate", &file, "--set", "customers=2_000", "--set", "capacity=4"];
    start.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn replications_are_the_runs_of_the_next_seeds_with_their_mean_and_its_interval() {
    let arguments = queue(&["--replications", "5", "--confidence", "90%"]);
    let study = json(&words(&arguments));
    assert_eq!(study["schema"], "meikyo.simulate.study/1");
    assert_eq!(
        (study["replications"].as_u64(), study["confidence"].as_f64()),
        (Some(5), Some(0.9))
    );
    let point = &study["points"][0];
    let share = &point["figures"]["turned_away_share"];
    let values: Vec<f64> =
        share["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    for (at, value) in values.iter().enumerate() {
        let alone = json(&words(&queue(&["--set", &format!("seed={}", at + 1)])));
        assert_eq!(alone["figures"]["turned_away_share"].as_f64(), Some(*value), "{at}");
        assert_eq!(alone["result_digest"], point["result_digests"][at]);
    }
    // Student's t of four degrees of freedom leaves 10 % outside 2.1318.
    let mean = values.iter().sum::<f64>() / 5.0;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 4.0;
    let half_width = 2.131_846_8 * (variance / 5.0).sqrt();
    let near = |found: &serde_json::Value, expected: f64| {
        assert!((found.as_f64().unwrap() / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    };
    near(&share["mean"], mean);
    near(&share["half_width"], half_width);
    near(&share["low"], mean - half_width);
    near(&share["high"], mean + half_width);
    let waits = &point["statistics"][0];
    assert_eq!(waits["name"], "wait_us");
    let binned: u64 = waits["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["count"].as_u64().unwrap())
        .sum();
    assert_eq!(waits["count"].as_u64(), Some(binned));
    assert!(waits["p50"]["mean"].as_f64() <= waits["p99"]["mean"].as_f64());

    let shown = String::from_utf8(run(&words(&arguments)).stdout).unwrap();
    for word in ["± 90%", "turned_away_share", "p99", "replications"] {
        assert!(shown.contains(word), "`{word}` is not in {shown}");
    }
}

#[test]
fn a_sweep_has_a_line_of_values_for_each_point_and_a_curve_for_each_other_key() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("away.svg");
    let file = picture.display().to_string();
    let arguments = queue(&[
        "--sweep",
        "capacity=1..3",
        "servers=1",
        "seed=5,9",
        "--replications",
        "4",
        "--csv",
        "--svg",
        &file,
        "--plot",
        "turned_away_share",
    ]);
    let output = run(&words(&arguments));
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> =
        printed.split_terminator("\r\n").map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 7, "{printed}");
    assert_eq!(lines[0][..3], ["capacity", "servers", "seed"]);
    let column = |name: &str| lines[0].iter().position(|known| *known == name).expect(name);
    let number = |line: &[&str], name: &str| line[column(name)].parse::<f64>().expect(name);
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len());
        let mean = number(line, "turned_away_share");
        assert!(number(line, "turned_away_share_low") < mean);
        assert!(number(line, "turned_away_share_high") > mean);
        assert!(number(line, "queues.wait_us.p99") >= number(line, "queues.wait_us.p50"));
    }
    let svg = std::fs::read_to_string(picture).unwrap();
    assert_eq!(svg.matches("class=\"curve\"").count(), 2);
    assert_eq!(svg.matches("class=\"interval\"").count(), 6);
    assert_eq!(svg.matches("class=\"expected\"").count(), 2);
    for words in ["servers = 1, seed = 5", "95% confidence, 4 runs each", ">capacity<"] {
        assert!(svg.contains(words), "`{words}` is not in {svg}");
    }
}

#[test]
fn the_beginning_is_left_out_by_a_span_or_as_far_as_statistics_need_to_settle() {
    let file = example("simulate-queue.toml");
    let start = ["simulate", &file, "--set", "interarrival=1us", "--set", "service=900ns"];
    let start = [&start[..], &["--set", "customers=4_000"]].concat();
    let count = |more: &[&str]| {
        let document = json(&[&start[..], more].concat());
        (document["statistics"][0]["count"].as_u64().unwrap(), document)
    };
    let (all, whole) = count(&[]);
    let (rest, warm) = count(&["--warmup", "2ms"]);
    assert_eq!(all, 4_000);
    assert!((1_500..2_500).contains(&rest), "{rest}");
    assert_eq!(whole["events"], warm["events"]);
    let study = json(&[&start[..], &["--warmup", "auto", "--replications", "10"]].concat());
    let point = &study["points"][0];
    let left_out: u64 = point["warmup"]["ns"].as_str().unwrap().parse().unwrap();
    assert!(left_out > 0 && left_out < 4_000_000, "{left_out}");
    assert_eq!(point["warmup"]["statistic"], "wait_us");
    assert!(point["statistics"][0]["count"].as_u64().unwrap() < 40_000);
}

/// The model `metadata` has a key of its own for it, which decides about its rates.
#[test]
fn a_model_that_has_a_warm_up_of_its_own_is_told() {
    let file = example("simulate-metadata.toml");
    let small = ["simulate", &file, "--set", "servers=2", "--set", "clients=8"];
    let small = [&small[..], &["--set", "operations=60"]].concat();
    let told = json(&[&small[..], &["--warmup", "20ms"]].concat());
    let set = json(&[&small[..], &["--set", "warmup=20ms"]].concat());
    for figure in ["create_per_s", "operations_per_s", "response_us_mean", "steady_from_s"] {
        assert_eq!(told["figures"][figure], set["figures"][figure], "{figure}");
    }
    assert!(told["statistics"][0]["count"].as_u64() < set["statistics"][0]["count"].as_u64());
}

#[test]
fn a_run_by_itself_tells_how_values_are_spread() {
    let arguments = queue(&[]);
    let document = json(&words(&arguments));
    let waits = &document["statistics"][0];
    for key in ["deviation", "p50", "p90", "p95", "p99"] {
        assert!(waits[key].is_f64(), "{key}: {waits}");
    }
    let first = &waits["histogram"][0];
    assert_eq!((first["from"].as_f64(), first["to"].as_f64()), (Some(0.0), Some(0.0)));
    assert!(first["count"].as_u64() > Some(100), "many find a free server: {first}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("waits.svg").display().to_string();
    let output = run(&words(&queue(&["--svg", &file, "--plot", "wait_us"])));
    assert!(output.status.success(), "{}", text(&output));
    assert!(std::fs::read_to_string(&file).unwrap().matches("class=\"bar\"").count() > 5);
}

#[test]
fn what_cannot_be_drawn_or_repeated_is_refused_with_what_could_be() {
    let refused = |arguments: &[String], words: &[&str]| {
        let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty(), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is not in {said}");
        }
    };
    let sweep = ["--sweep", "capacity=2,3", "--svg", "x.svg", "--plot", "hops_mean"];
    refused(&queue(&sweep), &["does not tell `hops_mean`", "--plot takes one of busy_share"]);
    let single = ["--svg", "x.svg", "--plot", "busy_share"];
    refused(&queue(&single), &["`busy_share` has no values", "wait_us", "--sweep"]);
    let nowhere = ["--svg", "nowhere/x.svg", "--plot", "wait_us"];
    refused(&queue(&nowhere), &["cannot write `nowhere/x.svg`"]);
    let metadata = example("simulate-metadata.toml");
    let idle = ["simulate", &metadata, "--set", "stagger=0s"];
    let idle = [&idle[..], &["--replications", "3"]].concat();
    let idle: Vec<String> = idle.into_iter().map(str::to_owned).collect();
    refused(&idle, &["replications would all be the same", "stagger"]);
}
