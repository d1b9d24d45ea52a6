//! `meikyo bench predict --lab` as a person calls it: real Open MPI beside what is predicted of it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::running::{meikyo, text};

/// What a person can do something about: the machine lacks a right or a program.
fn is_lacking(said: &str) -> bool {
    ["only root can make", "there is no `mpi"].iter().any(|lack| said.contains(lack))
}

/// The short form, on a machine that other tests keep busy: what goes over the cables is as
/// streams say there, too, and no time is below what the busiest cable needs.
#[test]
fn real_ranks_put_the_predicted_data_on_every_cable_in_no_less_than_the_least_time() {
    let output = meikyo().args(["bench", "predict", "--lab=short", "--json"]).output().unwrap();
    let said = text(&output);
    if is_lacking(&said) {
        meikyo_testing::lacking(said.trim());
        return;
    }
    // Whether times are near is for an idle machine: the answer may be no.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["fitted_values"], 2);
    let rows = report["rows"].as_array().unwrap();
    // Two sizes on one switch and seven patterns of two sizes on two topologies, by three methods.
    assert_eq!(rows.len(), 3 * (2 + 2 * 2 * 7));
    let keys: BTreeSet<&str> = rows[0].as_object().unwrap().keys().map(String::as_str).collect();
    for key in "program topology method measured predicted error fitted seconds".split(' ') {
        assert!(keys.contains(key), "{keys:?}");
    }
    for row in rows.iter().filter(|row| row["fitted"] == false) {
        let number = |key: &str| row[key].as_f64().unwrap();
        // Segments that are sent again are counted again; a pattern without any has what it should.
        if row["sent_again"] == 0 && row["method"] == "flow" {
            assert!(number("carried_error") <= 0.02, "{row}");
        }
        // Whatever was fitted on a busy machine, a message passes a cable of 4 Mbit/s in no less than its time,
        // but for a frame and a fifth of one, which go at once on each of four cables.
        let least = (number("bytes") - 4.0 * 1_816.0) * 8.0 / 4e6;
        assert!(number("measured") >= least, "{row}");
    }
}

#[test]
fn seeds_are_for_the_rows_of_the_paper() {
    let output = meikyo().args(["bench", "predict", "--lab", "--seeds", "2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("cannot be used with"), "{}", text(&output));
}
