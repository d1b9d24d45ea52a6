//! `meikyo fabric check` as a person calls it.

use std::path::{Path, PathBuf};
use std::process::Output;

use meikyo_fabric::dialect::{Dialect, render};
use meikyo_fabric::{SwitchId, describe, plan};
use serde_json::Value;

use crate::running::{meikyo, ring, text};

fn file(dir: &Path) -> String {
    let file = dir.join("cluster.toml");
    std::fs::write(&file, ring("powerconnect-6248", "spare = true"))
        .expect("a temporary directory can be written to");
    file.display().to_string()
}

fn check(arguments: &[&str]) -> Output {
    meikyo()
        .args(["fabric", "check", "--cluster"])
        .args(arguments)
        .output()
        .expect("the binary runs")
}

/// Writes the switches' texts as they are planned, and says where.
fn texts(dir: &Path, file: &str) -> PathBuf {
    let cluster = meikyo_cluster::load(Path::new(file)).expect("the file is right");
    let described = describe(&cluster).expect("the ring can be wired");
    let wiring = described.wiring;
    let configuration =
        plan(&wiring, &described.options).expect("the ring can be planned").configuration(&wiring);
    let config = dir.join("config");
    std::fs::create_dir(&config).expect("a temporary directory can be written to");
    let dialect: Dialect = "powerconnect-6248".parse().expect("the table has it");
    for (place, switch) in wiring.switches.iter().enumerate() {
        let switch_id = SwitchId::new(place);
        let text = render(dialect, &wiring, &configuration, switch_id)
            .expect("a PowerConnect can do what is planned for it");
        std::fs::write(config.join(format!("{}.cfg", switch.name)), text)
            .expect("a temporary directory can be written to");
    }
    config
}

#[test]
fn what_is_planned_is_good_and_so_is_what_is_written_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path());
    let output = check(&[&file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let config = texts(dir.path(), &file).display().to_string();
    let output = check(&[&file, "--config", &config, "--each-failure", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], "good");
    assert_eq!(report["hosts"], 8);
    assert_eq!(report["failures"].as_array().unwrap().len(), 4);
    assert_eq!(report["faults"], Value::Array(Vec::new()));
}

#[test]
fn a_text_with_a_mistake_is_refused_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path());
    let config = texts(dir.path(), &file);
    let of_switch = config.join("sw1.cfg");
    let good = std::fs::read_to_string(&of_switch).unwrap();
    let config = config.display().to_string();

    // Host 1's frames go in a VLAN that its port is no member of.
    let mut lines: Vec<&str> = good.lines().collect();
    let pvid = lines.iter().position(|line| line.trim().starts_with("switchport general pvid"));
    lines.remove(pvid.expect("host ports have a PVID"));
    std::fs::write(&of_switch, lines.join("\n") + "\n").unwrap();
    let output = check(&[&file, "--config", &config]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let refused = String::from_utf8(output.stdout).unwrap();
    assert!(refused.contains("frames of host `h1` are dropped at its port"), "{refused}");

    std::fs::write(&of_switch, "no such command\n").unwrap();
    let output = check(&[&file, "--config", &config]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("sw1.cfg"), "{}", text(&output));

    std::fs::remove_file(&of_switch).unwrap();
    let output = check(&[&file, "--config", &config]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("cannot read"), "{}", text(&output));
}

#[test]
fn the_way_between_two_hosts_is_shown_in_both_directions() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path());
    let output = check(&[&file, "--path", "h1", "h5", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (there, back) = (&report["path"]["there"], &report["path"]["back"]);
    assert_eq!((&there[0]["from"], &there[1]["to"]), (&"sw1".into(), &"sw3".into()));
    assert_eq!((&back[0]["from"], &back[1]["to"]), (&"sw3".into(), &"sw1".into()));
    let output = check(&[&file, "--path", "h1", "h9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("`h9`"), "{}", text(&output));
}

#[test]
fn a_file_with_a_fabric_alone_can_be_planned_and_not_measured() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cluster.toml");
    std::fs::write(
        &file,
        "name = \"plan\"\n[fabric]\ntopology = \"ring 3\"\n\
         [[hosts]]\nname = \"h[1-3]\"\naddress = \"10.0.0.[1-3]\"\n\
         [[switches]]\nname = \"sw[1-3]\"\naddress = \"10.0.1.[1-3]\"\n",
    )
    .unwrap();
    let file = file.display().to_string();
    let output = check(&[&file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let out = dir.path().join("recording").display().to_string();
    let measure = ["measure", "--cluster", &file, "--out", &out, "--for", "1s"];
    let output = meikyo().args(measure).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("has no `[snmp]`"), "{}", text(&output));
}

#[test]
fn a_hot_spot_is_told_with_what_would_help() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cluster.toml");
    std::fs::write(
        &file,
        "name = \"random\"\n[fabric]\ntopology = \"random-regular 200 degree 8 seed 1\"\n\
         routing = \"up-down\"\n[[hosts]]\nname = \"h[1-400]\"\naddress = \"10.0.[0-3].[1-100]\"\n\
         [[switches]]\nname = \"sw[1-200]\"\naddress = \"10.1.0.[1-200]\"\n",
    )
    .unwrap();
    let file = file.display().to_string();
    let output = meikyo().args(["fabric", "plan", "--cluster", &file, "--json"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let busiest = plan["loads"][0]["busiest"]["pairs_per_cable"].as_f64().unwrap();
    let mean = plan["loads"][0]["pairs_per_cable_mean"].as_f64().unwrap();
    assert!(busiest > 3.0 * mean, "{busiest} against {mean}");
    assert_eq!(plan["warnings"][0]["kind"], "hot_spot");
    assert_eq!(plan["reliefs"][0]["setting"], "routing = \"acyclic\"");
    assert!(plan["reliefs"][0]["pairs_per_cable"].as_f64().unwrap() < busiest / 2.0);
}
