//! `meikyo config init` against a real `snmpd` and a farm.

use std::fs;
use std::net::Ipv4Addr;

use super::{meikyo, stderr, stdout};
use crate::running::Farm;
use crate::snmpd::Snmpd;

#[test]
fn a_file_is_written_of_what_a_real_agent_shows_and_is_right() {
    let lines = "rocommunity a-secret-word\nsysName Node07.example.org\ndisk /\n";
    let Some(agent) = Snmpd::start_with(lines, Ipv4Addr::LOCALHOST) else { return };
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    fs::write(dir.join("community"), "a-secret-word\n").unwrap();
    fs::write(dir.join("wrong"), "another-word\n").unwrap();
    let address = agent.address.to_string();
    // Nothing listens at the discard port of this address.
    let arguments = ["config", "init", &address, "127.0.0.9:9", "--timeout", "300ms"];
    let unasked = meikyo(dir, &arguments);
    assert_eq!(unasked.status.code(), Some(2), "nothing is tried that was not told");
    assert!(stderr(&unasked).contains("--community"), "{}", stderr(&unasked));
    let wrong = meikyo(dir, &[&arguments[..], &["--community", "file:wrong"]].concat());
    assert_eq!(wrong.status.code(), Some(1), "{}", stderr(&wrong));
    assert!(stdout(&wrong).starts_with("nothing answers"), "{}", stdout(&wrong));
    assert!(!dir.join("cluster.toml").exists());

    let told = ["--community", "file:wrong", "--community", "file:community"];
    let right = meikyo(dir, &[&arguments[..], &told].concat());
    assert_eq!(right.status.code(), Some(0), "{}", stderr(&right));
    let said = stdout(&right);
    assert!(said.starts_with("cluster.toml: 1 host, 0 switches\n"), "{said}");
    assert!(said.contains("no answer from 1 of them: 127.0.0.9:9"), "{said}");
    let text = fs::read_to_string(dir.join("cluster.toml")).unwrap();
    assert!(text.contains("name = \"node07\"") && text.contains("disk:/ every 10s"), "{text}");
    assert!(text.contains("community = \"file:community\""), "{text}");
    assert!(!text.contains("a-secret-word"), "{text}");
    let checked = meikyo(dir, &["config", "check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stdout(&checked));
    // Everything that the file measures is there.
    let probed = meikyo(dir, &["probe", "--json"]);
    let probed: serde_json::Value = serde_json::from_slice(&probed.stdout).unwrap();
    assert_eq!((&probed["ok"], &probed["answering"]), (&true.into(), &1.into()), "{probed}");

    let again = meikyo(dir, &[&arguments[..], &told].concat());
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("cluster.toml is there already"), "{}", stderr(&again));
    let forced = meikyo(dir, &[&arguments[..], &told, &["--force", "--json"]].concat());
    let forced: serde_json::Value = serde_json::from_slice(&forced.stdout).unwrap();
    assert_eq!(forced["devices"][0]["name"], "node07");
    assert_eq!(forced["silent"][0], "127.0.0.9:9");
}

#[test]
fn a_range_of_addresses_becomes_hosts_and_switches() {
    let farm = Farm::start_with(3, &["--switches", "1"]);
    let written = fs::read_to_string(farm.cluster()).unwrap();
    let cluster = meikyo_cluster::parse(&written, &farm.cluster()).unwrap();
    let port = cluster.devices[0].address.port().to_string();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("community"), "public\n").unwrap();
    let arguments = [
        "config",
        "init",
        "127.1.0.[1-5]",
        "--port",
        &port,
        "--community",
        "file:community",
        "--timeout",
        "2s",
        "--json",
    ];
    let output = meikyo(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let roles: Vec<_> =
        document["devices"].as_array().unwrap().iter().map(|of| &of["role"]).collect();
    assert_eq!(roles.len(), 4, "{document}");
    assert_eq!(document["silent"].as_array().unwrap().len(), 1, "{document}");
    let own = directory.path().join("cluster.toml");
    let made = meikyo_cluster::parse(&fs::read_to_string(&own).unwrap(), &own).unwrap();
    let addresses = |cluster: &meikyo_cluster::Cluster| -> Vec<_> {
        cluster.devices.iter().map(|device| device.address).collect()
    };
    assert_eq!(addresses(&made), addresses(&cluster));
    // An agent that answers, but not to this user, is not called silent alone.
    let asked =
        ["config", "init", "127.1.0.1", "--port", &port, "--user", "nobody", "--out", "other.toml"];
    let refused = meikyo(directory.path(), &asked);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let said = format!(
        "127.1.0.1:{port} answers, but the agent refuses: the agent does not know the user"
    );
    assert!(stdout(&refused).contains(&said), "{}", stdout(&refused));
}
