//! The VLANs of a simulated switch, read and set by net-snmp's own tools.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread;

use meikyo_snmp::farm::{self, Event, Farm, FarmOptions, FarmSocket, Stop};
use meikyo_units::WallTime;

use crate::snmpd::{installed, net_snmp};

/// `dot1qVlanStaticEntry` (RFC 4363).
const STATIC: &str = "1.3.6.1.2.1.17.7.1.4.3.1";
/// `dot1qPortVlanEntry` (RFC 4363).
const PORT: &str = "1.3.6.1.2.1.17.7.1.4.5.1";

/// Asks a switch of 12 ports by these faults; `None`, and the reason printed, without net-snmp.
fn with_switch(faults: &str, ask: impl FnOnce(SocketAddr)) {
    if !["snmpget", "snmpset", "snmpwalk"].iter().all(|tool| installed(tool)) {
        return meikyo_testing::lacking("snmpset is not installed (Debian package snmp)");
    }
    let options = FarmOptions { ports: 12, ..FarmOptions::new(0, 1) };
    let events = Event::faults(faults, &options).into_iter();
    let mut farm = Farm::new(options, WallTime::now());
    farm.schedule(events.filter(|_| !faults.is_empty()));
    let socket = FarmSocket::bind(0).unwrap();
    let address = SocketAddr::from((Ipv4Addr::new(127, 1, 0, 1), socket.port().unwrap()));
    let (stop, trigger) = Stop::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| farm::run(&mut farm, &socket, &stop, None).unwrap());
        // Ends the farm also where an assertion fails.
        let trigger = trigger;
        ask(address);
        drop(trigger);
    });
}

/// What `snmpset` says, and whether it was done.
fn set(address: SocketAddr, objects: &[&str]) -> (bool, String) {
    let output = Command::new("snmpset")
        .args(["-v2c", "-c", "private", "-r", "0", "-OnqUe", &address.to_string()])
        .args(objects)
        .env("MIBS", "")
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn walked(address: SocketAddr, object: &str) -> Vec<String> {
    let said = net_snmp(address, "snmpwalk", &["-v2c", "-c", "public", "-Ox"], &[object]);
    said.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn a_vlan_is_made_filled_used_and_taken_away() {
    with_switch("", |address| {
        assert_eq!(walked(address, &format!("{STATIC}.2")), [format!(".{STATIC}.2.1 \"FF F0 \"")]);
        let row = format!("{STATIC}.5.101");
        assert!(set(address, &[&row, "i", "4"]).0);
        let (egress, untagged) = (format!("{STATIC}.2.101"), format!("{STATIC}.4.101"));
        assert!(set(address, &[&egress, "x", "8010", &untagged, "x", "8000"]).0);
        let pvid = format!("{PORT}.1.1");
        assert!(set(address, &[&pvid, "u", "101"]).0);
        assert_eq!(
            walked(address, &format!("{STATIC}.2")),
            [format!(".{STATIC}.2.1 \"FF F0 \""), format!(".{STATIC}.2.101 \"80 10 \"")]
        );
        assert_eq!(walked(address, &pvid), [format!(".{pvid} 101")]);
        // Not while it is a PVID, and never VLAN 1.
        assert!(!set(address, &[&row, "i", "6"]).0);
        assert!(set(address, &[&pvid, "u", "1"]).0);
        assert!(set(address, &[&row, "i", "6"]).0);
        assert!(!set(address, &[&format!("{STATIC}.5.1"), "i", "6"]).0);
        assert_eq!(walked(address, &format!("{STATIC}.5")), [format!(".{STATIC}.5.1 1")]);
    });
}

#[test]
fn what_contradicts_itself_is_refused_with_the_status_of_the_standard() {
    with_switch("", |address| {
        for (object, kind, value, status) in [
            (format!("{PORT}.1.1"), "u", "200", "inconsistentValue"),
            (format!("{PORT}.1.1"), "i", "1", "wrongType"),
            (format!("{PORT}.2.1"), "i", "3", "wrongValue"),
            (format!("{STATIC}.2.101"), "x", "80", "inconsistentName"),
            (format!("{STATIC}.2.1"), "x", "800000", "wrongLength"),
            (format!("{STATIC}.2.1"), "x", "000f", "wrongValue"),
            (format!("{STATIC}.5.1"), "i", "4", "inconsistentValue"),
            ("1.3.6.1.2.1.1.7.0".to_owned(), "i", "1", "notWritable"),
        ] {
            let (done, said) = set(address, &[&object, kind, value]);
            assert!(!done && said.contains(status), "{object} {value}: {said}");
        }
        // All or none (RFC 3416, 4.2.5).
        let (good, bad) = (format!("{PORT}.3.1"), format!("{PORT}.1.2"));
        assert!(!set(address, &[&good, "i", "1", &bad, "u", "200"]).0);
        assert_eq!(walked(address, &good), [format!(".{good} 2")]);
    });
}

#[test]
fn a_switch_that_wants_rows_to_wait_lets_them_be_made_so_only() {
    with_switch("create=wait", |address| {
        let row = format!("{STATIC}.5.101");
        assert!(!set(address, &[&row, "i", "4"]).0);
        assert!(set(address, &[&row, "i", "5"]).0);
        assert_eq!(walked(address, &row), [format!(".{row} 2")], "notInService");
        assert!(set(address, &[&row, "i", "1"]).0);
    });
}

#[test]
fn numbered_sets_are_refused_lost_forgotten_or_the_last_before_a_restart() {
    let pvid = format!("{PORT}.3.1");
    with_switch("refuse_set=1 lose_set=2 forget_set=4 reboot_at_set=5", |address| {
        let (done, said) = set(address, &[&pvid, "i", "1"]);
        assert!(!done && said.contains("genError"), "{said}");
        let (done, said) = set(address, &[&pvid, "i", "1"]);
        assert!(!done && said.contains("Timeout"), "{said}");
        assert_eq!(walked(address, &pvid), [format!(".{pvid} 1")], "set, and not answered");
        assert!(set(address, &[&pvid, "i", "1"]).0);
        assert!(set(address, &[&pvid, "i", "2"]).0);
        assert_eq!(walked(address, &pvid), [format!(".{pvid} 1")], "answered, and not set");
        assert!(!set(address, &[&pvid, "i", "1"]).0);
        assert_eq!(walked(address, &pvid), [format!(".{pvid} 2")], "as delivered");
    });
}
