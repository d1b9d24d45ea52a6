//! `meikyo fabric prime` on the hosts of a lab: what real bridges have learned of it.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use meikyo_units::WallTime;
use serde_json::Value;

use crate::lab::Lab;
use crate::running::{PATIENCE, Process, meikyo, ring, text};

const HOSTS: [&str; 8] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"];
const SWITCHES: [&str; 4] = ["sw1", "sw2", "sw3", "sw4"];

/// By VLAN the addresses that a bridge has learned.
type Table = BTreeMap<u64, BTreeSet<String>>;

impl Lab<'_> {
    /// Brings a ring up, with its cluster file where commands inside find it; false where nothing can
    /// run a lab.
    fn up_as_ring(&self, more: &str) -> bool {
        let up = self.up(&ring("linux-bridge", more), &[]).is_some();
        if up {
            let inside = self.0.join("lab/files/cluster.toml");
            std::fs::copy(self.0.join("cluster.toml"), inside).unwrap();
        }
        up
    }

    fn said(&self, arguments: &[&str]) -> String {
        let said = self.call(arguments);
        assert!(said.status.success(), "{arguments:?}: {}", text(&said));
        String::from_utf8(said.stdout).unwrap()
    }

    fn prime(&self, host: &str) -> Value {
        let arguments =
            ["meikyo", "fabric", "prime", "--cluster", "cluster.toml", "--host", host, "--json"];
        serde_json::from_str(&self.said(&[&["exec", host, "--"], &arguments[..]].concat())).unwrap()
    }

    /// Primes again and again until the process ends.
    fn primes_by_a_timer(&self, host: &str) -> Process {
        #[rustfmt::skip]
        let mut command = self.command(&[
            "exec", host, "--", "meikyo", "fabric", "prime", "--cluster", "cluster.toml", "--host", host, "--timer",
        ]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Process(command.spawn().unwrap())
    }

    fn tables(&self) -> Vec<Table> {
        let of_switch = |switch: &&str| {
            let said =
                self.said(&["exec", switch, "--", "bridge", "-j", "fdb", "show", "br", "br0"]);
            let entries: Vec<Value> = serde_json::from_str(&said).unwrap();
            let mut table = Table::new();
            for entry in entries.iter().filter(|entry| entry["state"] != "permanent") {
                if let (Some(vlan), Some(mac)) = (entry["vlan"].as_u64(), entry["mac"].as_str()) {
                    table.entry(vlan).or_default().insert(mac.to_owned());
                }
            }
            table
        };
        SWITCHES.iter().map(of_switch).collect()
    }

    fn macs(&self) -> Vec<String> {
        let address = ["cat", "/sys/class/net/eth0/address"];
        let of_host = |host: &&str| self.said(&[&["exec", host, "--"], &address[..]].concat());
        HOSTS.iter().map(of_host).map(|mac| mac.trim().to_owned()).collect()
    }
}

/// How many addresses `meikyo fabric prime` says that a switch learns, by VLAN.
fn vlans(switch: &Value) -> BTreeMap<u64, u64> {
    let of_vlan = |own: &Value| Some((own["vlan"].as_u64()?, own["table_entries"].as_u64()?));
    switch["vlans"].as_array().unwrap().iter().map(|own| of_vlan(own).unwrap()).collect()
}

/// Asks again and again until there is an answer.
fn at_last<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = WallTime::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(WallTime::now() < deadline, "{what}");
    }
}

#[test]
fn hosts_that_prime_teach_the_bridges_what_was_said() {
    let directory = tempfile::tempdir().unwrap();
    let lab = Lab(directory.path());
    if !lab.up_as_ring("spare = true") {
        return;
    }
    assert!(lab.tables().iter().all(BTreeMap::is_empty), "nobody has said anything");
    let documents: Vec<Value> = HOSTS.iter().map(|host| lab.prime(host)).collect();
    let promised = &documents[0]["switches"];
    assert!(documents.iter().all(|document| document["switches"] == *promised));
    let macs: BTreeSet<String> = lab.macs().into_iter().collect();
    assert_eq!(macs.len(), HOSTS.len());
    let checked = meikyo()
        .args(["fabric", "check", "--cluster", "cluster.toml", "--json"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    for (place, table) in lab.tables().iter().enumerate() {
        let told = &promised[place];
        assert_eq!(told["switch"], SWITCHES[place]);
        let counts = vlans(told);
        assert!(counts.len() > 1, "a ring has several trees");
        let learned = |known: &BTreeSet<String>| u64::try_from(known.len()).unwrap();
        let found = table.iter().map(|(vlan, known)| (*vlan, learned(known))).collect();
        assert_eq!(counts, found, "{told}");
        assert!(table.values().all(|known| known.is_subset(&macs)), "{table:?}");
        let all: u64 = counts.values().sum();
        assert_eq!(checked["tables"][place]["entries"].as_u64(), Some(all), "{checked}");
    }
    // Spare VLANs were primed, too: when a trunk fails nothing has to be learned.
    let failed: Value =
        serde_json::from_str(&lab.said(&["failover", "sw1:sw2", "--json"])).unwrap();
    let row = &failed["trunks"][0];
    assert_eq!((&row["pairs"], &row["pairs_promised"]), (&56.into(), &56.into()));
    assert_eq!(row["pairs_not_restored"].as_array().map(Vec::len), Some(0), "{row}");
    assert!(row["applied_us"].as_u64().unwrap() < row["answered_us"].as_u64().unwrap(), "{row}");
}

#[test]
fn hosts_that_prime_by_a_timer_are_never_forgotten_and_others_are() {
    let directory = tempfile::tempdir().unwrap();
    let lab = Lab(directory.path());
    if !lab.up_as_ring("ageing = \"10s\"") {
        return;
    }
    let macs = lab.macs();
    let (silent, others) = macs.split_last().unwrap();
    let timers: Vec<Process> = HOSTS[..7].iter().map(|host| lab.primes_by_a_timer(host)).collect();
    let knows = |table: &Table, mac: &String| table.values().any(|known| known.contains(mac));
    let vlans = vlans(&lab.prime(HOSTS[7])["switches"][0]);
    let all_know = |tables: &[Table], mac: &String| {
        let knows = |table: &Table, vlan| table.get(vlan).is_some_and(|known| known.contains(mac));
        tables.iter().all(|table| vlans.keys().all(|vlan| knows(table, vlan)))
    };
    at_last("all timers run", || {
        let tables = lab.tables();
        others.iter().all(|mac| all_know(&tables, mac)).then_some(())
    });
    // Twice somebody who primes only once is learned and forgotten again: that takes the whole ageing
    // time each, two periods of the timers.
    for _ in 0..2 {
        lab.prime(HOSTS[7]);
        at_last("who primed once is known", || all_know(&lab.tables(), silent).then_some(()));
        at_last("who primed once is forgotten", || {
            let tables = lab.tables();
            for mac in others {
                assert!(all_know(&tables, mac), "{mac} was forgotten: {tables:?}");
            }
            (!tables.iter().any(|table| knows(table, silent))).then_some(())
        });
    }
    // Without the timers everybody is forgotten.
    drop(timers);
    at_last("all are forgotten", || lab.tables().iter().all(BTreeMap::is_empty).then_some(()));
}

#[test]
fn who_is_not_the_host_does_not_speak_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cluster.toml");
    // Addresses for documentation (RFC 5737) are nobody's; loopback is everybody's.
    for (address, told) in [
        ("192.0.2.[1-8]", "the cluster file gives it 192.0.2.3, that no interface has here"),
        ("127.0.0.[1-8]", "the cluster file gives it 127.0.0.3, that every machine has here"),
    ] {
        let cluster = ring("linux-bridge", "").replace("10.0.0.[1-8]", address);
        std::fs::write(&file, cluster).unwrap();
        let prime = |more: &[&str]| {
            let mut command = meikyo();
            command
                .args(["fabric", "prime", "--cluster"])
                .arg(&file)
                .args(["--host", "h3"])
                .args(more);
            command.output().unwrap()
        };
        // Where there is no such interface nothing could go wrong, in either direction.
        let said = prime(&["--interface", "none0"]);
        assert_eq!((said.status.code(), said.stdout.len()), (Some(2), 0), "{}", text(&said));
        for word in [told, "nothing was sent", "--dry-run", "--any-address", "meikyo lab exec h3"] {
            assert!(text(&said).contains(word), "{word}: {}", text(&said));
        }
        assert!(prime(&["--dry-run"]).status.success());
        let anyway = prime(&["--interface", "none0", "--any-address"]);
        assert!(text(&anyway).contains("there is no Ethernet interface `none0`"));
    }
}
