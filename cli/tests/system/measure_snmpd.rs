//! What `meikyo measure` records of real `snmpd`s, by v2c and by v3; the truth is this machine's
//! own `/proc` and `stat`.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::config::real_agent::{memory_total_kilobytes, received_octets};
use crate::running::{instant, is_ok, meikyo, rows, text};
use crate::snmpd::Snmpd;

const PASSWORD: &str = "correct-horse-battery";
const HOSTS: [&str; 2] = ["plain", "secured"];

/// Bytes of the file system `/`, as coreutils say.
fn bytes_of_root() -> u64 {
    let output = Command::new("stat").args(["-f", "-c", "%b %S", "/"]).output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    let (blocks, size) = answer.trim().split_once(' ').unwrap();
    blocks.parse::<u64>().unwrap() * size.parse::<u64>().unwrap()
}

/// The values of a column of one host in the order of time.
fn values(recording: &Path, table: &str, host: &str, column: &str) -> Vec<u64> {
    let mut rows = rows(recording, table);
    rows.retain(|row| row["device"] == host);
    rows.sort_by_key(|row| instant(&row["time"]));
    rows.iter().map(|row| row[column].as_u64().unwrap_or_else(|| panic!("{row}"))).collect()
}

/// Polls of a host that were not answered in time, after it was first measured.
fn failures(recording: &Path, host: &str) -> Vec<Value> {
    let of_host = |table| rows(recording, table).into_iter().filter(|row| row["device"] == host);
    let measured = of_host("memory").map(|row| instant(&row["time"])).min().unwrap();
    of_host("polls").filter(|row| instant(&row["time"]) >= measured && !is_ok(row)).collect()
}

#[test]
fn what_real_agents_say_by_v2c_and_v3_is_what_proc_says() {
    let before = received_octets("lo");
    let lines = format!(
        "rocommunity public\ncreateUser monitor SHA-256 \"{PASSWORD}\" AES \"{PASSWORD}\"\n\
         rouser monitor authpriv\n"
    );
    let Some(plain) = Snmpd::start_with(&lines, Ipv4Addr::LOCALHOST) else { return };
    let Some(secured) = Snmpd::start_with(&lines, Ipv4Addr::LOCALHOST) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = HOSTS;
    // Longer than the default interval, so that a busy machine makes no answer late.
    let file = format!(
        "name = \"two\"\nmeasure = [\"interface:lo\", \"memory\", \"disk:/\"]\n\
         [snmp]\ninterval = \"250ms\"\n\
         [[hosts]]\nname = \"{first}\"\naddress = \"{}\"\n\
         snmp = {{ version = \"2c\", community = \"env:MEIKYO_TEST_COMMUNITY\" }}\n\
         [[hosts]]\nname = \"{second}\"\naddress = \"{}\"\n\
         [hosts.snmp]\nuser = \"monitor\"\n\
         auth = {{ protocol = \"SHA-256\", password = \"env:MEIKYO_TEST_PASSWORD\" }}\n\
         privacy = {{ protocol = \"AES-128\", password = \"env:MEIKYO_TEST_PASSWORD\" }}\n",
        plain.address, secured.address
    );
    fs::write(directory.path().join("cluster.toml"), file).unwrap();
    // snmpd reads its interfaces anew every 3 s: long enough to see the counter move.
    let measured = meikyo()
        .current_dir(directory.path())
        .args(["measure", "--quiet", "--for", "4s"])
        .env("MEIKYO_TEST_COMMUNITY", "public")
        .env("MEIKYO_TEST_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    let after = received_octets("lo");
    assert!(measured.status.success(), "{}", text(&measured));

    let recording = directory.path().join("recording");
    for host in HOSTS {
        assert_eq!(failures(&recording, host), Vec::<Value>::new(), "polls of {host}");
        let octets = values(&recording, "interfaces", host, "in_octets");
        assert!(octets.len() >= 10, "{host}: {octets:?}");
        let inside = octets.iter().all(|octets| (before..=after).contains(octets));
        assert!(inside, "{host}: {octets:?} and not from {before} to {after}");
        assert!(octets.is_sorted() && octets.first() < octets.last(), "{host}: {octets:?}");
        // snmpd counts memory in kB and the disk in blocks.
        let memory = values(&recording, "memory", host, "total_bytes");
        assert!(memory.len() >= 10, "{host}: {memory:?}");
        let total = memory_total_kilobytes() * 1024;
        assert!(memory.iter().all(|bytes| *bytes == total), "{host}: {memory:?}, not {total}");
        let disk = values(&recording, "storage", host, "total_bytes");
        assert!(disk.len() >= 10, "{host}: {disk:?}");
        let total = bytes_of_root();
        assert!(disk.iter().all(|bytes| *bytes == total), "{host}: {disk:?}, not {total}");
    }
}

#[test]
fn devices_behind_one_address_are_told_apart_by_community_and_user() {
    // Who asks as `two` sees the system group and nothing else; `three` is a user of SNMPv3.
    let lines = format!(
        "view systemonly included .1.3.6.1.2.1.1\nrocommunity one\n\
         rocommunity two default -V systemonly\ncreateUser three SHA-256 \"{PASSWORD}\"\n\
         rouser three auth\nsysName truth\n"
    );
    let Some(agent) = Snmpd::start_with(&lines, Ipv4Addr::LOCALHOST) else { return };
    let directory = tempfile::tempdir().unwrap();
    let community = |name: &str| {
        format!("snmp = {{ version = \"2c\", community = \"env:MEIKYO_TEST_{name}\" }}\n")
    };
    let host =
        |name: &str| format!("[[hosts]]\nname = \"{name}\"\naddress = \"{}\"\n", agent.address);
    let file = [
        "name = \"one\"\nmeasure = [\"sysName.0\", \"memory\"]\n".to_owned(),
        host("one") + &community("ONE"),
        host("two") + &community("TWO"),
        host("wrong") + &community("WRONG"),
        host("three")
            + "[hosts.snmp]\nuser = \"three\"\nauth = { protocol = \"SHA-256\", password = \
               \"env:MEIKYO_TEST_PASSWORD\" }\n",
    ];
    fs::write(directory.path().join("cluster.toml"), file.concat()).unwrap();
    let measured = meikyo()
        .current_dir(directory.path())
        .args(["measure", "--quiet", "--for", "4s"])
        .envs([("MEIKYO_TEST_ONE", "one"), ("MEIKYO_TEST_TWO", "two")])
        .envs([("MEIKYO_TEST_WRONG", "wrong"), ("MEIKYO_TEST_PASSWORD", PASSWORD)])
        .output()
        .unwrap();
    assert!(measured.status.success(), "{}", text(&measured));
    let recording = directory.path().join("recording");
    let devices = |table: &str, holds: &dyn Fn(&Value) -> bool| {
        let rows = rows(&recording, table).into_iter().filter(|row| holds(row));
        rows.map(|row| row["device"].as_str().unwrap().to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let all = |_: &Value| true;
    assert_eq!(devices("memory", &all), ["one", "three"].map(str::to_owned).into());
    assert_eq!(devices("objects", &all), ["one", "three", "two"].map(str::to_owned).into());
    assert_eq!(devices("polls", &is_ok), ["one", "three", "two"].map(str::to_owned).into());
}

#[test]
fn an_agent_that_wants_encryption_tells_so_with_what_to_write() {
    let lines = format!(
        "createUser monitor SHA-256 \"{PASSWORD}\" AES \"{PASSWORD}\"\nrouser monitor authpriv\n"
    );
    let Some(agent) = Snmpd::start_with(&lines, Ipv4Addr::LOCALHOST) else { return };
    let directory = tempfile::tempdir().unwrap();
    let auth = "auth = { protocol = \"SHA-256\", password = \"env:MEIKYO_TEST_PASSWORD\" }\n";
    for (auth, level, keys) in [
        ("", "(noAuthNoPriv)", "give `auth` and `privacy`"),
        (auth, "(authNoPriv)", "give `privacy`"),
    ] {
        let file = format!(
            "name = \"one\"\nmeasure = [\"memory\"]\n[snmp]\nuser = \"monitor\"\n{auth}\
             [[hosts]]\nname = \"host\"\naddress = \"{}\"\n",
            agent.address
        );
        fs::write(directory.path().join("cluster.toml"), file).unwrap();
        for arguments in [
            &["probe"][..],
            &["probe", "host", "--for", "1s"],
            &["measure", "--for", "2s", "--out", keys],
        ] {
            let mut command = meikyo();
            command.current_dir(directory.path()).args(arguments);
            let output = command.env("MEIKYO_TEST_PASSWORD", PASSWORD).output().unwrap();
            let said = text(&output) + &String::from_utf8(output.stdout).unwrap();
            assert!(said.contains(level) && said.contains(keys), "{arguments:?}: {said}");
            assert!(!said.contains("another SNMP version"), "{arguments:?}: {said}");
        }
    }
}
