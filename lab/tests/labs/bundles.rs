//! Bundles: all their cables together carry what is planned, and what one of them carried goes over the
//! others when it is cut.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeMap;

use meikyo_fabric::dialect::port_interface;
use meikyo_fabric::{Bundling, Pattern, TrunkEnd, loads};
use meikyo_lab::{Counters, Done, Frame, Purpose, Task, VerifyOptions, verify};
use meikyo_units::{Nanos, WallTime};

use crate::running::{Cabling, Fabric, Lab, cabled_fabric, lab};

const OPTIONS: VerifyOptions = VerifyOptions { pairs_max: 300, quiet_ms: 4, patience_ms: 2_000 };
/// A frame of the lab's own, as counters count it, a message of LACP (IEEE 802.1AX, 6.4.2.3), and one of ARP (RFC 826).
const FRAME_BYTES: u64 = 60;
const LACP_BYTES: u64 = 124;
const ARP_BYTES: u64 = 42;
/// How long a bundle may take to notice what became of a cable.
const PATIENCE: Nanos = Nanos::from_secs(20);

#[test]
fn bundles_that_are_set_so_carry_what_is_planned_and_survive_a_cable() {
    carry_and_survive(Bundling::Static, 1);
}

#[test]
fn bundles_that_agree_by_lacp_carry_what_is_planned_and_survive_a_cable() {
    carry_and_survive(Bundling::Lacp, 2);
}

fn carry_and_survive(bundling: Bundling, ports_per_host: u16) {
    let cabling = Cabling { ports_per_host, cables_per_link: 2 };
    let fabric = cabled_fabric("ring 4", 2, cabling, |options| options.bundling = bundling);
    let Some(lab) = lab(&fabric, None) else { return };
    holds(&fabric, &lab);
    let whole = all_to_all(&fabric, &lab);
    carries_the_plan(&fabric, &whole, bundling);
    let end = &fabric.wiring.trunks[0].ends[0];
    assert!(both(end, &whole).iter().all(|&(frames, _)| frames > 0), "{whole:?}");
    let blueprint = lab.directory.blueprint().unwrap();
    let first = blueprint.cables.iter().position(|cable| cable.purpose == Purpose::Trunk).unwrap();
    lab.ask(&Task::SetCable { cable: first, up: false });
    await_all_pairs(&lab);
    holds(&fabric, &lab);
    let halved = all_to_all(&fabric, &lab);
    carries_the_plan(&fabric, &halved, bundling);
    let [cut, other] = both(end, &halved);
    assert!(cut.0 == 0 && other.0 > 0, "what is cut carries nothing: {cut:?}, {other:?}");
    lab.ask(&Task::SetCable { cable: first, up: true });
    let deadline = WallTime::now() + PATIENCE;
    while both(end, &all_to_all(&fabric, &lab)).iter().any(|&(frames, _)| frames == 0) {
        assert!(WallTime::now() < deadline, "a cable that was mended is not used again");
    }
    holds(&fabric, &lab);
}

fn holds(fabric: &Fabric, lab: &Lab) {
    let (wiring, configuration) = (&fabric.wiring, &fabric.configuration);
    let found = verify(&lab.directory, &lab.roles, wiring, configuration, &OPTIONS).unwrap();
    assert!(found.good, "{found:?}");
}

/// A cut cable is noticed a little later than it is cut.
fn await_all_pairs(lab: &Lab) {
    let deadline = WallTime::now() + PATIENCE;
    loop {
        match lab.ask(&Task::PingAll { patience_ms: 500 }) {
            Done::Pinged { lost, .. } if lost.is_empty() => return,
            said => assert!(WallTime::now() < deadline, "{said:?}"),
        }
    }
}

/// Frames and bytes that each port of each switch sends while every host sends a frame to every other.
type Sent = BTreeMap<(usize, String), (u64, u64)>;

fn all_to_all(fabric: &Fabric, lab: &Lab) -> Sent {
    let hosts = 0..fabric.wiring.hosts.len();
    let pairs = hosts.clone().flat_map(|from| hosts.clone().map(move |to| (from, to)));
    let frame = |(from, to)| Frame { from, to: Some(to), vlan: None };
    let frames = pairs.filter(|(from, to)| from != to).map(frame).collect();
    let before = counted(lab);
    lab.ask(&Task::Send { frames, each: false, quiet_ms: OPTIONS.quiet_ms });
    let after = counted(lab);
    let mut sent = Sent::new();
    for (switch, (before, after)) in before.iter().zip(&after).enumerate() {
        for (device, now) in after {
            let then = before[device];
            let more = (now.sent_frames - then.sent_frames, now.sent_bytes - then.sent_bytes);
            sent.insert((switch, device.clone()), more);
        }
    }
    sent
}

fn counted(lab: &Lab) -> Vec<BTreeMap<String, Counters>> {
    match lab.ask(&Task::Counters) {
        Done::Counters(counters) => counters,
        done => panic!("{done:?}"),
    }
}

/// What the two cables of a bundle's end sent.
fn both(end: &TrunkEnd, sent: &Sent) -> [(u64, u64); 2] {
    [0, 1].map(|nth| sent[&(end.switch.place(), port_interface(end.ports[nth]))])
}

fn carries_the_plan(fabric: &Fabric, sent: &Sent, bundling: Bundling) {
    let planned = loads(&fabric.wiring, &fabric.plan, Pattern::AllToAll);
    for (trunk, due) in fabric.wiring.trunks.iter().zip(&planned.pairs) {
        for (end, &due) in trunk.ends.iter().zip(due) {
            let [one, other] = both(end, sent);
            let (frames, bytes) = (one.0 + other.0, one.1 + other.1);
            // Beside frames there is nothing but messages of LACP, and hosts that ask whether a neighbour is still there
            // to whom they spoke five seconds ago.
            let (messages, octets) = (frames - due, bytes - due * FRAME_BYTES);
            let longer = LACP_BYTES - ARP_BYTES;
            let of_lacp = octets.saturating_sub(messages * ARP_BYTES) / longer;
            let expected = messages * ARP_BYTES + of_lacp * longer;
            assert_eq!(octets, expected, "{trunk:?}: {sent:?}");
            let most = if bundling == Bundling::Lacp { messages } else { 0 };
            assert!(of_lacp <= most, "{trunk:?}: {sent:?}");
        }
    }
}
