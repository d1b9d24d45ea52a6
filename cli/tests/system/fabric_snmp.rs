//! `meikyo fabric deploy --snmp` with simulated switches; net-snmp's `snmpwalk` says what they have then.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Output;

use serde_json::Value;

use crate::running::{Farm, meikyo};
use crate::snmpd::{installed, net_snmp};

/// `dot1qVlanStaticEgressPorts`, `dot1qVlanStaticUntaggedPorts`, `dot1qPvid` (RFC 4363).
const EGRESS: &str = "1.3.6.1.2.1.17.7.1.4.3.1.2";
const UNTAGGED: &str = "1.3.6.1.2.1.17.7.1.4.3.1.4";
const PVID: &str = "1.3.6.1.2.1.17.7.1.4.5.1.1";

const COMMUNITIES: &str = r#"{ version = "2c", community = "env:MEIKYO_COMMUNITY", timeout = "300ms", write = { version = "2c", community = "env:MEIKYO_WRITE" } }"#;
const USER: &str = r#"{ user = "meikyo", timeout = "300ms", auth = { protocol = "SHA-256", password = "env:MEIKYO_AUTH" }, privacy = { protocol = "AES-128", password = "env:MEIKYO_PRIVACY" }, write = { user = "meikyo", auth = { protocol = "SHA-256", password = "env:MEIKYO_AUTH" }, privacy = { protocol = "AES-128", password = "env:MEIKYO_PRIVACY" } } }"#;

/// Three simulated switches that are a ring of two hosts each, as delivered.
struct Ring {
    farm: Farm,
    port: u16,
}

impl Ring {
    fn start(snmp: &str, fabric: &str, faults: &[&str]) -> Self {
        let mut arguments = vec!["--switches", "3", "--ports", "12"];
        for own in faults {
            arguments.extend(["--fault", own]);
        }
        let farm = Farm::start_with(1, &arguments);
        let written = fs::read_to_string(farm.cluster()).unwrap();
        let port = written.lines().find_map(|line| line.strip_prefix("port = ")).unwrap();
        let port: u16 = port.parse().unwrap();
        let text = format!(
            r#"name = "ring"
measure = ["interfaces"]
snmp = {snmp}

[fabric]
topology = "ring 3"
model = "small"
{fabric}

[fabric.models.small]
ports = 12

[[hosts]]
name = "h[1-6]"
address = "10.0.0.[1-6]"

[[switches]]
name = "sw[1-3]"
address = ["127.1.0.2:{port}", "127.1.0.3:{port}", "127.1.0.4:{port}"]
"#
        );
        fs::write(farm.directory.path().join("ring.toml"), text).unwrap();
        Self { farm, port }
    }

    fn fabric(&self, arguments: &[&str]) -> Output {
        let mut command = meikyo();
        command.arg("fabric").args(arguments).args(["--cluster", "ring.toml"]);
        command.current_dir(self.farm.directory.path()).env_remove("MEIKYO_CLUSTER");
        command.env("MEIKYO_COMMUNITY", "public").env("MEIKYO_WRITE", "private");
        command.env("MEIKYO_AUTH", "simulated-authentication");
        command.env("MEIKYO_PRIVACY", "simulated-privacy").output().unwrap()
    }

    /// What a command prints that must end with this code, on standard error if it is 2.
    fn printed(&self, arguments: &[&str], code: i32) -> String {
        let Output { status, stdout, stderr } = self.fabric(arguments);
        let (said, error) =
            (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert_eq!(status.code(), Some(code), "{arguments:?}: {said}{error}");
        if code == 2 { error } else { said }
    }

    fn deploy(&self, code: i32) -> String {
        self.printed(&["deploy", "--snmp", "--yes", "--patience", "1s"], code)
    }

    fn dry_run(&self) -> String {
        self.printed(&["deploy", "--snmp", "--dry-run"], 0)
    }

    fn walked(&self, switch: u8, object: &str) -> BTreeMap<u32, String> {
        let address = SocketAddr::from((Ipv4Addr::new(127, 1, 0, 1 + switch), self.port));
        let said = net_snmp(address, "snmpwalk", &["-v2c", "-c", "public", "-Ox"], &[object]);
        let row = |line: &str| {
            let (oid, value) = line.split_once(' ').unwrap();
            (oid.rsplit('.').next().unwrap().parse().unwrap(), value.to_owned())
        };
        said.lines().map(row).collect()
    }

    /// Compares what `snmpwalk` says of every switch with the worksheet that a person would click.
    fn is_as_on_the_worksheets(&self) {
        for switch in 1..=3 {
            let name = format!("sw{switch}");
            let sheet = self.printed(&["worksheet", "--switch", &name, "--format", "csv"], 0);
            let lines: Vec<Vec<&str>> =
                sheet.lines().map(|line| line.split(',').collect()).collect();
            let (egress, untagged) = (self.walked(switch, EGRESS), self.walked(switch, UNTAGGED));
            let pvids = self.walked(switch, PVID);
            for line in &lines[3..] {
                for (port, cell) in lines[0][1..].iter().zip(&line[1..]) {
                    let port: u32 = port.parse().unwrap();
                    if line[0] == "PVID" {
                        assert!(*cell == "none" || pvids[&port] == *cell, "{name}, port {port}");
                        continue;
                    }
                    let vlan: u32 = line[0].parse().unwrap();
                    let has = |rows: &BTreeMap<u32, String>| {
                        rows.get(&vlan).is_some_and(|octets| bit(octets, port))
                    };
                    let found = match (has(&egress), has(&untagged)) {
                        (true, true) => "U",
                        (true, false) => "T",
                        (false, _) => "-",
                    };
                    assert_eq!(found, *cell, "{name}, port {port}, VLAN {vlan}");
                }
            }
        }
    }
}

/// Whether a list of ports, as `"80 10 "`, holds one.
fn bit(octets: &str, port: u32) -> bool {
    let octets: Vec<u8> = octets
        .trim_matches('"')
        .split_whitespace()
        .map(|octet| u8::from_str_radix(octet, 16).unwrap())
        .collect();
    let place = usize::try_from((port - 1) / 8).unwrap();
    octets.get(place).is_some_and(|octet| octet & (0x80 >> ((port - 1) % 8)) != 0)
}

fn has_snmpwalk() -> bool {
    let there = installed("snmpwalk");
    if !there {
        meikyo_testing::lacking("snmpwalk is not installed (Debian package snmp)");
    }
    there
}

#[test]
fn a_dry_run_sends_nothing_and_then_the_switches_get_what_the_worksheets_say() {
    if !has_snmpwalk() {
        return;
    }
    for snmp in [COMMUNITIES, USER] {
        let ring = Ring::start(snmp, "", &[]);
        let first = ring.dry_run();
        assert!(first.contains("step 1 of ") && first.ends_with("nothing was sent\n"), "{first}");
        assert_eq!(ring.walked(1, PVID).values().filter(|pvid| *pvid == "1").count(), 12);
        assert_eq!(ring.dry_run(), first, "nothing has changed");
        let document = ring.printed(&["deploy", "--snmp", "--dry-run", "--json"], 0);
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["schema"], "meikyo.fabric.deploy.snmp/1");
        assert_eq!(document["steps"][0]["switch"], "sw1");

        let done = ring.deploy(0);
        assert!(done.contains("all is set and read back"), "{done}");
        ring.is_as_on_the_worksheets();
        let again = ring.dry_run();
        assert!(again.contains("the switches have the planned settings"), "{again}");
    }
}

#[test]
fn rows_that_begin_as_they_have_to_and_answers_that_get_lost_are_no_trouble() {
    if !has_snmpwalk() {
        return;
    }
    for fault in ["create=wait", "create=go", "lose_set=30"] {
        let ring = Ring::start(COMMUNITIES, "", &[fault]);
        ring.deploy(0);
        ring.is_as_on_the_worksheets();
    }
}

#[test]
fn a_set_that_is_refused_takes_its_step_back_and_the_next_run_goes_on() {
    if !has_snmpwalk() {
        return;
    }
    let ring = Ring::start(COMMUNITIES, "", &["refuse_set=35 status=17 switch02"]);
    let told = ring.deploy(2);
    assert!(told.contains("failed at `sw2`: "), "{told}");
    assert!(told.contains("notWritable") && told.contains("set it by hand"), "{told}");
    assert!(told.contains("; it was taken back there"), "{told}");
    ring.deploy(0);
    ring.is_as_on_the_worksheets();
}

#[test]
fn a_yes_that_was_not_kept_fails_the_step() {
    if !has_snmpwalk() {
        return;
    }
    let ring = Ring::start(COMMUNITIES, "", &["forget_set=35 switch02"]);
    let told = ring.deploy(2);
    assert!(told.contains("failed at `sw2`: "), "{told}");
    assert!(told.contains("the switch said yes and did not do it"), "{told}");
    ring.deploy(0);
    ring.is_as_on_the_worksheets();
}

#[test]
fn a_switch_that_lets_nothing_be_set_stays_as_it_is() {
    let ring = Ring::start(COMMUNITIES, "", &["refuse_sets=100% status=17"]);
    let before = ring.dry_run();
    let told = ring.deploy(2);
    assert!(told.contains("step 1 of ") && told.contains("it was taken back there"), "{told}");
    assert_eq!(ring.dry_run(), before);
}

#[test]
fn a_switch_that_restarts_meanwhile_is_noticed() {
    if !has_snmpwalk() {
        return;
    }
    let ring = Ring::start(COMMUNITIES, "", &["reboot_at_set=35 switch02"]);
    let told = ring.deploy(2);
    assert!(told.contains("failed at `sw2`: "), "{told}");
    assert!(told.contains("which has restarted meanwhile"), "{told}");
    ring.deploy(0);
    ring.is_as_on_the_worksheets();
}

#[test]
fn the_management_vlan_is_set_by_hand_between_two_runs() {
    if !has_snmpwalk() {
        return;
    }
    let fabric = "management_vlan = 4000\nmanager = \"h1\"";
    let ring = Ring::start(COMMUNITIES, fabric, &[]);
    let told = ring.deploy(1);
    assert!(told.contains("set the management VLAN to 4000 by hand at sw1, sw2, sw3"), "{told}");
    let arguments = ["deploy", "--snmp", "--yes", "--patience", "1s", "--reached-in", "4000"];
    ring.printed(&arguments, 0);
    ring.is_as_on_the_worksheets();
}

#[test]
fn what_may_not_be_written_is_told_before_anything_is_sent() {
    let read_only = r#"{ version = "2c", community = "env:MEIKYO_COMMUNITY" }"#;
    let ring = Ring::start(read_only, "", &[]);
    let told = ring.printed(&["deploy", "--snmp", "--dry-run"], 2);
    assert!(told.contains("`sw1`: the file has no credentials that may write"), "{told}");
    let both = ring.printed(&["deploy", "--snmp", "--current", "factory", "--dry-run"], 2);
    assert!(both.contains("cannot be used with"), "{both}");
}
