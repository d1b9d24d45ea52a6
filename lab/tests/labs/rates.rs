//! A lab whose links are shaped carries the chosen rate, and no more, both ways.

use std::collections::BTreeMap;

use meikyo_fabric::dialect::port_interface;
use meikyo_lab::{Counters, Done, Task};
use meikyo_units::{BitsPerSecond, Nanos, WallTime};

use crate::running::{Fabric, Lab, fabric, lab};

/// Sends datagrams to a host until it is stopped, as fast as its link takes them.
const SENDER: &str = "use Socket; socket(S, PF_INET, SOCK_DGRAM, 0); \
    bind(S, sockaddr_in(9999, INADDR_ANY)); $to = sockaddr_in(9999, inet_aton($ARGV[0])); \
    while (1) { send(S, 'x' x 1400, 0, $to) }";
/// Who sends to whom, of two hosts on each of two switches, and where more comes than goes on: at the
/// interfaces of the hosts, at both ends of the trunk, at ports to hosts.
const NEIGHBOURS: Traffic =
    Traffic { pairs: [(0, 1), (1, 0), (2, 3), (3, 2)], full: Full::FromHosts };
const ACROSS: Traffic = Traffic { pairs: [(0, 2), (1, 3), (2, 0), (3, 1)], full: Full::Trunk };
const TO_ONE: Traffic = Traffic { pairs: [(1, 0), (2, 0), (3, 2), (0, 2)], full: Full::ToHosts };
/// For how long bytes are counted, at least, and until when that must be done.
const WINDOW: Nanos = Nanos::from_secs(4);
const PATIENCE: Nanos = Nanos::from_secs(60);
/// More than a token bucket saves up and queues hold.
const WARM_BYTES: u64 = 200_000;
/// How much less than the rate a busy machine may carry, and how much more a counter may show, in
/// hundredths.
const LEAST: u64 = 60;
const MOST: u64 = 105;

struct Traffic {
    pairs: [(usize, usize); 4],
    full: Full,
}

enum Full {
    FromHosts,
    Trunk,
    ToHosts,
}

#[test]
fn a_shaped_link_carries_its_rate_and_no_more_both_ways() {
    let slower: &[Traffic] = &[ACROSS];
    for (megabits, traffics) in [(4, &[NEIGHBOURS, ACROSS, TO_ONE] as &[_]), (1, slower)] {
        let rate = BitsPerSecond::new(megabits * 1_000_000);
        let fabric = fabric("mesh 2", 2, |_| {});
        let Some(lab) = lab(&fabric, Some(rate)) else { return };
        for traffic in traffics {
            let before = reading(&lab);
            let senders = traffic.pairs.map(|pair| send(&fabric, &lab, pair));
            compare(&lab, &before, &full_ports(&fabric, traffic), rate);
            for sender in senders {
                shell(&lab, None, "kill $0", &[&sender]);
            }
        }
    }
}

/// Has one host send to another; by which number the sender is stopped.
fn send(fabric: &Fabric, lab: &Lab, (from, to): (usize, usize)) -> String {
    let to = meikyo_lab::host_address(to).to_string();
    let script = "perl -e \"$0\" $1 < /dev/null > /dev/null 2>&1 & echo $!";
    shell(lab, Some(&fabric.wiring.hosts[from].name), script, &[SENDER, &to])
}

/// What a script says on a host, or outside of all.
fn shell(lab: &Lab, host: Option<&str>, script: &str, words: &[&str]) -> String {
    let said = lab.exec(host, &[&["sh", "-c", script], words].concat(), b"");
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.errors));
    String::from_utf8(said.output).expect("it is text").trim().to_owned()
}

/// What a port has counted: of a switch, by its device; sent by it, or received.
type Port = (usize, String, bool);

fn compare(lab: &Lab, before: &Reading, full: &[Port], rate: BitsPerSecond) {
    let start = WallTime::now();
    let mut first = reading(lab);
    while full.iter().any(|port| bytes(&first, port) - bytes(before, port) < WARM_BYTES) {
        assert!(WallTime::now().since(start) < PATIENCE, "{first:?}");
        first = reading(lab);
    }
    let mut last = reading(lab);
    while last.before.since(first.after) < WINDOW {
        last = reading(lab);
    }
    // When a counter was read lies between two instants; each bound takes the one that is against it.
    let due = |span: Nanos| u128::from(rate.get()) * u128::from(span.get()) / 8_000_000_000;
    let (longest, shortest) = (last.after.since(first.before), last.before.since(first.after));
    for port in full {
        let carried = u128::from(bytes(&last, port) - bytes(&first, port));
        let told = format!("{port:?} at {rate}: {carried} bytes in {shortest} to {longest}");
        assert!(carried * 100 >= due(shortest) * u128::from(LEAST), "{told}");
        assert!(carried * 100 <= due(longest) * u128::from(MOST), "{told}");
    }
}

fn full_ports(fabric: &Fabric, traffic: &Traffic) -> Vec<Port> {
    let at = |host: usize, sent| {
        let host = &fabric.wiring.hosts[host];
        (host.switch.place(), port_interface(host.ports[0]), sent)
    };
    let trunk = fabric.wiring.trunks[0].ends.iter();
    match traffic.full {
        Full::FromHosts => traffic.pairs.iter().map(|&(from, _)| at(from, false)).collect(),
        Full::Trunk => {
            trunk.map(|end| (end.switch.place(), port_interface(end.ports[0]), true)).collect()
        }
        Full::ToHosts => traffic.pairs.iter().map(|&(_, to)| at(to, true)).collect(),
    }
}

/// Counters, and between which instants they were read.
#[derive(Debug)]
struct Reading {
    before: WallTime,
    counters: Vec<BTreeMap<String, Counters>>,
    after: WallTime,
}

fn reading(lab: &Lab) -> Reading {
    let before = WallTime::now();
    let Done::Counters(counters) = lab.ask(&Task::Counters) else { panic!("no counters") };
    Reading { before, counters, after: WallTime::now() }
}

fn bytes(reading: &Reading, (switch, device, sent): &Port) -> u64 {
    let counters = reading.counters[*switch][device];
    if *sent { counters.sent_bytes } else { counters.received_bytes }
}
