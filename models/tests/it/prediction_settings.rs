//! What is part of a prediction's input beside machine and program: who runs where, traffic of others, and loads only.

use std::sync::Arc;

use meikyo_fabric::{Plan, PlanOptions, SwitchModel, Topology, Wiring, cable_uniform, plan};
use meikyo_models::prediction::trace::{Trace, TraceFile};
use meikyo_models::prediction::{self, Background, PredictError, Prediction, Settings, Skeleton};
use meikyo_units::{BitsPerSecond, Nanos};

/// What a cable of 1 Gbit/s carries for programs, in bytes a second.
const DATA_PER_S: f64 = 125e6 * 1448.0 / 1538.0;
const BYTES: u32 = 50_000_000;

fn fabric(hosts: usize) -> (Wiring, Plan) {
    let topology: Topology = "complete 2".parse().expect("a topology");
    let model = SwitchModel::named("powerconnect-6248").expect("a model");
    let wiring = cable_uniform(&topology, &model, hosts).expect("enough ports");
    let plan = plan(&wiring, &PlanOptions::new(Some(topology))).expect("a plan");
    (wiring, plan)
}

fn settings(text: &str, method: &str) -> Settings {
    let file = TraceFile { name: "trace".into(), text: text.into() };
    let trace = Trace::parse(&[file]).expect("a trace");
    let mut settings = Settings::new(Skeleton::Trace(Arc::new(trace)));
    settings.set("method", method).expect("a method");
    settings
}

/// Rank 0 sends to rank 1.
fn one_message() -> String {
    format!("0 send 1 3 {BYTES}\n1 recv 0 3 {BYTES}\n")
}

fn predict(hosts: usize, settings: &Settings) -> Prediction {
    let (wiring, plan) = fabric(hosts);
    prediction::predict(&wiring, &plan, &settings.input()).expect("it ends")
}

fn stream(from: &str, to: &str, share: f64) -> Background {
    let rate = Nanos::from_secs_f64(share * DATA_PER_S * 8.0 / 1e9).get();
    Background { from: from.into(), to: to.into(), rate: BitsPerSecond::new(rate) }
}

#[track_caller]
fn assert_near(found: Nanos, expected_s: f64, share: f64) {
    let found_s = found.as_secs_f64();
    assert!((found_s / expected_s - 1.0).abs() < share, "{found_s} s, not {expected_s} s");
}

#[test]
fn half_a_cable_that_others_take_doubles_the_time_by_every_method() {
    let alone_s = f64::from(BYTES) / DATA_PER_S;
    // Rank 1 is on the other switch, where hosts 2 and 3 are.
    for (method, share) in [("static", 0.002), ("flow", 0.01), ("packet", 0.02)] {
        let mut settings = settings(&one_message(), method);
        settings.place(vec!["h0".into(), "h2".into()]);
        assert_near(predict(2, &settings).time, alone_s, share);
        // Between other hosts, on the only cable between the switches.
        settings.beside(vec![stream("h1", "h3", 0.5)]);
        assert_near(predict(2, &settings).time, 2.0 * alone_s, share);
        // The other way it takes nothing.
        settings.beside(vec![stream("h3", "h1", 0.5)]);
        assert_near(predict(2, &settings).time, alone_s, share);
        assert!(!predict(2, &settings).breakdown.iter().any(|(what, _)| *what == "background"));
    }
}

#[test]
fn background_traffic_that_cannot_be_is_refused() {
    let refused = |background| {
        let mut settings = settings(&one_message(), "packet");
        settings.beside(vec![background]);
        let (wiring, plan) = fabric(2);
        let error = prediction::predict(&wiring, &plan, &settings.input()).unwrap_err();
        assert!(matches!(error, PredictError::Background(_)), "{error}");
        error.to_string()
    };
    assert!(refused(stream("h0", "nobody", 0.1)).contains("`nobody`"));
    assert!(refused(stream("h0", "h0", 0.1)).contains("itself"));
    assert!(
        refused(stream("h0", "h2", 1.01))
            .contains("leaves the program nothing of a cable: from h0")
    );
}

#[test]
fn ranks_run_where_a_list_says() {
    let mut settings = settings(&one_message(), "flow");
    // On one switch the cable between the switches carries nothing.
    for (to, crosses) in [("h1", false), ("h3", true)] {
        settings.place(vec!["h0".into(), to.into(), "h2".into()]);
        let predicted = predict(2, &settings);
        let between = predicted.busiest.iter().find(|busy| busy.lane.starts_with("s0 to s1"));
        let carried = between.map_or(0, |busy| busy.carried.get());
        assert_eq!(carried > 0, crosses, "{:?}", predicted.busiest);
    }
    let (wiring, plan) = fabric(2);
    let mut refused = |list: &[&str]| {
        settings.place(list.iter().map(|host| (*host).to_owned()).collect());
        prediction::predict(&wiring, &plan, &settings.input()).unwrap_err().to_string()
    };
    assert!(refused(&["h0"]).contains("1 places for 2 ranks"));
    assert!(refused(&["h0", "h9"]).contains("rank 1 is to run on `h9`"));
}

#[test]
fn loads_alone_give_what_is_computed_or_carried_and_between_both_what_theory_says() {
    // Nobody sends.
    let computes = settings("0 compute 2e9\n1 compute 1e9\n", "static");
    assert_near(predict(2, &computes).time, 2.0, 1e-9);
    // One station: whoever is there, it is busy all the time.
    let bound = predict(2, &settings(&one_message(), "static"));
    assert_near(bound.time, f64::from(BYTES) / DATA_PER_S, 1e-6);
    // Two ranks compute for a second each and send to each other, each over cables of its own. For two customers, a delay of
    // 1 s and one station of demand d mean value analysis gives X(1) = 1 / (1 + d), Q(1) = d X(1), and
    // X(2) = 2 / (1 + d (1 + Q(1))).
    let octets = 119_000_000;
    let mut both = settings(
        &format!(
            "0 compute 1e9\n0 isend 1 3 {octets}\n0 recv 1 3 {octets}\n0 waitall\n1 compute 1e9\n1 isend 0 3 {octets}\n\
             1 recv 0 3 {octets}\n1 waitall\n"
        ),
        "static",
    );
    both.place(vec!["h0".into(), "h2".into()]);
    let demand = f64::from(octets) / DATA_PER_S / 2.0;
    let queued = demand / (1.0 + demand);
    let expected = 1.0 + demand * (1.0 + queued);
    assert_near(predict(2, &both).time, expected, 1e-6);
}
