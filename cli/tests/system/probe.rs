//! `meikyo probe`: the real binary against a real `snmpd` with Debian's default view.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Output};

use crate::snmpd::Snmpd;

/// An agent that shows everything to `public` and, as Debian's, next to nothing to `debian`.
const CONFIGURATION: &str = "view systemonly included .1.3.6.1.2.1.1\n\
                             view systemonly included .1.3.6.1.2.1.25.1\n\
                             rocommunity debian default -V systemonly\n\
                             rocommunity public default\n";

struct Agent {
    agent: Snmpd,
    directory: tempfile::TempDir,
}

impl Agent {
    /// Starts one on every loopback address; `None` where there is no `snmpd`.
    fn start() -> Option<Self> {
        let agent = Snmpd::start_with(CONFIGURATION, Ipv4Addr::UNSPECIFIED)?;
        let agent = Self { agent, directory: tempfile::tempdir().unwrap() };
        agent.secret("public", "public");
        Some(agent)
    }

    /// A file with a community that only its owner can read.
    fn secret(&self, name: &str, community: &str) {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = file.open(self.directory.path().join(name)).unwrap();
        std::io::Write::write_all(&mut file, community.as_bytes()).unwrap();
    }

    /// Runs `meikyo probe` with a cluster file of these hosts.
    fn probe(&self, hosts: &str, args: &[&str]) -> Output {
        let text = format!(
            "name = \"test\"\nmeasure = [\"interface:lo\"]\n\
             snmp = {{ version = \"2c\", community = \"file:public\", timeout = \"500ms\" }}\n{}",
            hosts.replace("PORT", &self.agent.address.port().to_string())
        );
        fs::write(self.directory.path().join("cluster.toml"), text).unwrap();
        Command::new(env!("CARGO_BIN_EXE_meikyo"))
            .arg("probe")
            .args(args)
            .current_dir(self.directory.path())
            .output()
            .unwrap()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_cluster_that_has_everything_is_answered_with_yes() {
    let Some(agent) = Agent::start() else { return };
    let hosts = "[[hosts]]\nname = \"node[1-2]\"\naddress = \"127.0.0.[1-2]:PORT\"\n";
    let output = agent.probe(hosts, &[]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("cluster.toml: 2 devices, 2 answer, "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn debians_default_view_is_told_with_the_lines_that_open_it() {
    let Some(agent) = Agent::start() else { return };
    agent.secret("debian", "debian");
    let hosts = "[[hosts]]\nname = \"node[1-2]\"\naddress = \"127.0.0.[1-2]:PORT\"\n\
                 snmp = { community = \"file:debian\" }\n";
    let output = agent.probe(hosts, &[]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("node[1-2] (2 devices), `interface:lo`: the agent shows no interfaces"));
    assert!(text.contains("    view systemonly included .1.3.6.1.2.1.2.2\n"), "{text}");
    let output = agent.probe(hosts, &["node1", "--for", "100ms"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("    view systemonly included .1.3.6.1.2.1.31.1.1\n"), "{text}");
}

#[test]
fn each_fault_has_one_message_with_place_and_remedy_and_the_rest_goes_on() {
    let Some(agent) = Agent::start() else { return };
    agent.secret("wrong", "another word");
    let hosts = "[[hosts]]\nname = \"good\"\naddress = \"127.0.0.1:PORT\"\n\
                 [[hosts]]\nname = \"wrong\"\naddress = \"127.0.0.2:PORT\"\n\
                 snmp = { community = \"file:wrong\" }\n\
                 [[hosts]]\nname = \"silent\"\naddress = \"127.0.0.3:9\"\n\
                 [[hosts]]\nname = \"unset\"\naddress = \"127.0.0.4:PORT\"\n\
                 snmp = { community = \"file:nowhere\" }\n\
                 [[hosts]]\nname = \"unknown\"\naddress = \"127.0.0.5:PORT\"\n\
                 measure = [\"noSuchThing.7\", \"interface:eth77\"]\n";
    let output = agent.probe(hosts, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["devices"], &document["answering"]), (&5.into(), &2.into()));
    let problems = document["problems"].as_array().unwrap();
    let of = |name: &str| -> Vec<_> {
        problems.iter().filter(|problem| problem["devices"] == name).collect()
    };
    let remedy = |name: &str| of(name)[0]["remedy"].as_str().unwrap().to_owned();
    for (name, count, line) in
        [("good", 0, 0), ("wrong", 1, 7), ("silent", 1, 11), ("unset", 1, 14), ("unknown", 2, 21)]
    {
        let problems = of(name);
        assert_eq!(problems.len(), count, "{document}");
        assert!(problems.iter().all(|problem| problem["line"] == line), "{name}: {problems:?}");
    }
    assert!(remedy("wrong").contains("`file:wrong` is another"), "{}", remedy("wrong"));
    assert!(remedy("silent").contains("no agent listens"), "{}", remedy("silent"));
    assert!(of("unset")[0]["problem"].as_str().unwrap().contains("nowhere"));
    assert!(
        of("unknown").iter().any(|one| one["problem"].as_str().unwrap().contains("noSuchThing"))
    );
    let eth77 = of("unknown").into_iter().find(|one| one["measure"] == "interface:eth77").unwrap();
    assert!(eth77["has"].as_array().unwrap().iter().any(|name| name == "lo"), "{eth77}");
    assert!(!stdout(&output).contains("another word"), "a secret was printed");
}

#[test]
fn one_device_is_told_with_declared_and_observed_refresh_and_its_cost() {
    let Some(agent) = Agent::start() else { return };
    let hosts = "[[hosts]]\nname = \"node1\"\naddress = \"127.0.0.1:PORT\"\n\
                 measure = [\"interface:lo(in_octets)\"]\n";
    let pid = agent.agent.pid().to_string();
    let output = agent.probe(hosts, &["node1", "--json", "--for", "11s", "--agent-pid", &pid]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["answers"], true);
    assert!(document["round_trip_us_median"].as_u64().unwrap() > 0, "{document}");
    assert!(document["agent_core_percent"].as_f64().unwrap() > 0.0, "{document}");
    let octets = &document["values"][0];
    assert_eq!(octets["declared_us"], 3_000_000);
    assert_eq!((&octets["class"], &octets["source"]), (&"periodic".into(), &"observed".into()));
    let period = octets["period_us"].as_u64().unwrap();
    assert!((2_800_000..3_200_000).contains(&period), "{document}");
}

#[test]
fn what_cannot_be_done_is_not_done() {
    let Some(agent) = Agent::start() else { return };
    let hosts = "[[hosts]]\nname = \"node1\"\naddress = \"127.0.0.1:PORT\"\n";
    let output = agent.probe(hosts, &["node7"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "error: `cluster.toml` has no device `node7`\nhint: it has node1\n");
    let output = agent.probe("[[hosts]]\nnames = 7\n", &[]);
    assert_eq!(output.status.code(), Some(2));
}
