//! What is made from the list of keys, and files that must fit it.

use std::fs;
use std::path::{Path, PathBuf};

use meikyo_cluster::{agent_lines, load, schema};
use serde_json::Value;

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(in_repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every key of the schema with the sections that it stands in.
fn keys(schema: &Value, path: &str, found: &mut Vec<String>) {
    for below in ["items", "additionalProperties"] {
        keys_of_value(&schema[below], path, found);
    }
    keys_of_value(schema, path, found);
}

fn keys_of_value(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.push(path.clone());
        keys(property, &path, found);
    }
}

#[test]
fn the_schema_for_editors_is_not_stale() {
    let remedy = "run `meikyo config schema > docs/cluster.schema.json`";
    assert!(read("docs/cluster.schema.json") == schema(), "{remedy}");
}

#[test]
fn the_reference_explains_every_key_with_its_words() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut found = Vec::new();
    keys(&schema, "", &mut found);
    assert!(found.len() > 50, "{found:?}");
    let reference = read("docs/cluster-file.md");
    for path in found {
        let key = path.rsplit('.').next().unwrap();
        assert!(reference.contains(&format!("`{key}`")), "docs/cluster-file.md lacks `{path}`");
    }
}

#[test]
fn the_examples_of_the_reference_are_right() {
    let reference = read("docs/cluster-file.md");
    let blocks: Vec<_> =
        reference.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let read = meikyo_cluster::parse(block, Path::new("cluster.toml"));
        assert!(read.is_ok(), "{block}\n{}", read.unwrap_err());
    }
}

#[test]
fn the_example_has_every_key() {
    let cluster = load(&in_repository("examples/cluster.toml")).unwrap();
    assert_eq!(cluster.devices.len(), 232);
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut found = Vec::new();
    keys(&schema, "", &mut found);
    let example = read("examples/cluster.toml");
    for path in found {
        let key = path.rsplit('.').next().unwrap();
        assert!(example.contains(key), "examples/cluster.toml lacks `{path}`");
    }
}

#[test]
fn hosts_with_the_same_lines_stand_together_and_switches_have_none() {
    let cluster = load(&in_repository("examples/cluster.toml")).unwrap();
    let agents = agent_lines(&cluster, |_| None);
    let hosts: Vec<_> = agents.iter().map(|agent| (agent.hosts.as_str(), agent.count)).collect();
    assert_eq!(hosts, [("node[001-225]", 225), ("gpu[1-4]", 4), ("login", 1)]);
    insta::assert_snapshot!(agents[0].lines.join("\n"), @r#"
agentAddress udp:161
# What is measured, read-only. sysUpTime goes with every request.
view meikyo included .1.3.6.1.2.1.1.3
# How long the agent caches: nsCacheTable (NET-SNMP-AGENT-MIB).
view meikyo included .1.3.6.1.4.1.8072.1.5.3
# ifNumber (RFC 2863)
view meikyo included .1.3.6.1.2.1.2.1
# ifTable (RFC 2863)
view meikyo included .1.3.6.1.2.1.2.2
# ifXTable (RFC 2863)
view meikyo included .1.3.6.1.2.1.31.1.1
# ifTableLastChange (RFC 2863)
view meikyo included .1.3.6.1.2.1.31.1.5
# laTable (UCD-SNMP-MIB)
view meikyo included .1.3.6.1.4.1.2021.10
# systemStats (UCD-SNMP-MIB)
view meikyo included .1.3.6.1.4.1.2021.11
# memory (UCD-SNMP-MIB)
view meikyo included .1.3.6.1.4.1.2021.4
# dskTable (UCD-SNMP-MIB)
view meikyo included .1.3.6.1.4.1.2021.9
disk /
# Who may read. Put each secret in the place of its <reference>.
createUser meikyo SHA-256 "<file:secrets/auth>" AES "<env:MEIKYO_PRIVACY>"
rouser meikyo priv -V meikyo
createUser meikyo-write SHA-256 "<file:secrets/write-auth>" AES "<file:secrets/write-privacy>"
rwuser meikyo-write priv -V meikyo-write
# What `meikyo measure --freshen` sets: nsCacheTimeout.
view meikyo-write included .1.3.6.1.4.1.8072.1.5.3.1.2
"#);
    assert_eq!(agents[2].lines[0], "agentAddress udp6:1610");
}

#[test]
fn objects_are_shown_by_their_oid() {
    let text = r#"
        name = "x"
        measure = ["ifHCInOctets.3", "1.3.6.1.2.1.1.5.0", "fooBar.0"]
        snmp = { version = "2c", community = "env:C" }
        hosts = [{ name = "a", address = "10.0.0.1" }]
    "#;
    let cluster = meikyo_cluster::parse(text, Path::new("cluster.toml")).unwrap();
    let oid_of =
        |name: &str| (name == "ifHCInOctets.3").then(|| "1.3.6.1.2.1.31.1.1.1.6.3".to_owned());
    let lines = agent_lines(&cluster, oid_of).remove(0).lines;
    for line in [
        "view meikyo included .1.3.6.1.2.1.31.1.1.1.6.3",
        "view meikyo included .1.3.6.1.2.1.1.5.0",
        "# fooBar.0: not a known object, write its OID",
    ] {
        assert!(lines.iter().any(|known| known == line), "{line} is missing in {lines:#?}");
    }
}
