//! The emulator does what switches do.

use meikyo_fabric::emulator::{Emulator, Harm, harm};
use meikyo_fabric::{CheckOptions, Fault, HostId, Learning, Priming, SwitchId, Verdict, check};
use meikyo_units::Nanos;

use crate::random::Random;
use crate::shapes::{PLAIN, Style, good, shapes};

fn host(place: usize) -> HostId {
    HostId::new(place)
}

#[test]
fn a_broadcast_makes_one_copy_for_each_other_host() {
    for shape in shapes(&mut Random::new(7)) {
        let (wiring, configuration) = good(&shape, PLAIN);
        let mut emulator = Emulator::new(&wiring, &configuration);
        for from in 0..wiring.hosts.len() {
            let mut received = emulator.broadcast(host(from)).received;
            received.sort_unstable();
            let others = (0..wiring.hosts.len()).filter(|&to| to != from);
            let others: Vec<_> = others.map(|to| (host(to), None)).collect();
            assert_eq!(received, others, "{}", shape.name);
        }
    }
}

#[test]
fn without_priming_answers_flood_for_ever() {
    let shape = &shapes(&mut Random::new(7))[0];
    let (wiring, mut configuration) = good(shape, PLAIN);
    configuration.priming = Priming::None;
    let mut emulator = Emulator::new(&wiring, &configuration);
    emulator.announce();
    for _ in 0..3 {
        // Hosts 0 and 7 are on neighbours of the ring: their frames go in VLANs 101 and 104.
        assert_eq!(emulator.unicast(host(0), host(7)).received.len(), 7);
        assert_eq!(emulator.unicast(host(7), host(0)).received.len(), 7);
    }
    let report = check(&wiring, &configuration, &CheckOptions::INTACT);
    assert!(report.faults.iter().all(|fault| matches!(fault, Fault::Flood { .. })));
    assert_eq!(report.verdict(), Verdict::Refused);
}

#[test]
fn addresses_age_and_priming_again_heals() {
    let shape = &shapes(&mut Random::new(7))[1];
    for directed in [false, true] {
        let (wiring, mut configuration) = good(shape, Style { directed, ..PLAIN });
        let ageing = Nanos::from_secs(300);
        configuration.switches.iter_mut().for_each(|switch| switch.ageing = Some(ageing));
        let report = check(&wiring, &configuration, &CheckOptions::INTACT);
        assert_eq!(report.prime_every, Some(Nanos::from_secs(150)));
        let mut emulator = Emulator::new(&wiring, &configuration);
        emulator.announce();
        emulator.prime();
        emulator.wait(Nanos::from_secs(299));
        assert_eq!(emulator.unicast(host(0), host(9)).floods, []);
        emulator.wait(Nanos::from_secs(2));
        assert_eq!(emulator.unicast(host(0), host(9)).received.len(), wiring.hosts.len() - 1);
        emulator.announce();
        emulator.prime();
        assert_eq!(emulator.unicast(host(0), host(9)).received, [(host(9), None)]);
        for switch in 0..wiring.switches.len() {
            let entries = u64::try_from(emulator.entries(SwitchId::new(switch))).unwrap();
            assert_eq!(entries, report.table_entries[switch]);
        }
    }
}

#[test]
fn shared_learning_goes_wrong_where_the_checker_says_so() {
    for shape in shapes(&mut Random::new(7)) {
        for place in 0..shape.hosts.len() {
            for directed in [false, true] {
                let (mut wiring, configuration) = good(&shape, Style { directed, ..PLAIN });
                wiring.switches[place].model.learning = Learning::Shared;
                let harm = harm(&wiring, &configuration);
                let report = check(&wiring, &configuration, &CheckOptions::INTACT);
                let moves = |switch: &SwitchId| switch.place() == place;
                let refused = report
                    .faults
                    .iter()
                    .any(|f| matches!(f, Fault::Moved { switch, .. } if moves(switch)));
                assert_eq!(refused, !harm.is_empty(), "{} s{place} {harm:?}", shape.name);
                // In a tree all VLANs are the same.
                assert!(!refused || shape.name != "tree");
            }
        }
    }
}

#[test]
fn a_table_that_is_too_small_by_one_overflows() {
    let shape = &shapes(&mut Random::new(7))[2];
    let (mut wiring, configuration) = good(shape, Style { directed: true, ..PLAIN });
    let needed = check(&wiring, &configuration, &CheckOptions::INTACT).table_entries[3];
    let needed = u32::try_from(needed).unwrap();
    wiring.switches[3].model.table_entries = needed;
    assert_eq!(harm(&wiring, &configuration), []);
    wiring.switches[3].model.table_entries = needed - 1;
    assert!(harm(&wiring, &configuration).contains(&Harm::TableFull(SwitchId::new(3))));
    let report = check(&wiring, &configuration, &CheckOptions::INTACT);
    let full = Fault::TableFull {
        switch: SwitchId::new(3),
        entries: u64::from(needed),
        limit: needed - 1,
    };
    assert_eq!(report.faults, [full]);
}
