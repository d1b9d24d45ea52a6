//! Chord look-ups against the protocol by its definition, and against the paper's mean.

use meikyo_models::Report;
use meikyo_models::chord::{Chord, ChordNode, Identifiers, Routing};
use meikyo_sim::{Options, Scheduler, Unobserved};
use meikyo_units::Nanos;

fn chord(nodes: u32, identifiers: Identifiers, routing: Routing) -> Chord {
    Chord {
        nodes,
        identifiers,
        routing,
        lookups: 40,
        interarrival: Nanos::from_millis(20),
        delay_min: Nanos::from_millis(1),
        delay: Nanos::from_millis(5),
        seed: 7,
        keeps_found: true,
    }
}

fn run(chord: &Chord, scheduler: Scheduler, threads: usize) -> Report {
    let report = chord.run(&Options::new(scheduler, threads), &mut Unobserved);
    Report { effort: Default::default(), ..report.expect("the ring keeps the rules") }
}

fn nodes(chord: &Chord) -> Vec<ChordNode> {
    let options = Options::new(Scheduler::Sequential, 1);
    meikyo_sim::run(chord.model(), &options).expect("the ring keeps the rules").lps
}

/// How far one goes round the circle from `from` to `to`, a whole round if they are the same.
fn way(from: u64, to: u64) -> u128 {
    match u128::from(to.wrapping_sub(from)) {
        0 => 1 << 64,
        way => way,
    }
}

/// The node at the place, or the next one round the circle: every node is looked at.
fn successor(identifiers: &[u64], place: u64) -> usize {
    let at_or_after = |node: &usize| u128::from(identifiers[*node].wrapping_sub(place));
    (0..identifiers.len()).min_by_key(at_or_after).expect("there are nodes")
}

/// The protocol by figure 5 of the paper: 64 fingers, of which the closest before the key is asked next,
/// as long as the key is not between a node and its successor.
fn by_definition(identifiers: &[u64], from: usize, key: u64) -> (usize, u32) {
    let (mut node, mut hops) = (from, 0);
    loop {
        let own = identifiers[node];
        let next = successor(identifiers, own.wrapping_add(1));
        if way(own, key) <= way(own, identifiers[next]) {
            return (next, hops);
        }
        let fingers = (0..64).map(|power| successor(identifiers, own.wrapping_add(1 << power)));
        let before = fingers.filter(|finger| way(own, identifiers[*finger]) < way(own, key));
        let closest = before.max_by_key(|finger| way(own, identifiers[*finger]));
        node = closest.expect("the successor is before the key");
        hops += 1;
    }
}

#[test]
fn every_look_up_ends_at_the_true_successor_by_the_way_of_the_protocol() {
    for routing in [Routing::Recursive, Routing::Iterative] {
        for (count, places) in [
            (2, Identifiers::Hashed),
            (3, Identifiers::Even),
            (50, Identifiers::Hashed),
            (64, Identifiers::Even),
            (100, Identifiers::Even),
        ] {
            let nodes = nodes(&chord(count, places, routing));
            let identifiers: Vec<_> = nodes.iter().map(ChordNode::identifier).collect();
            let mut messages = 0;
            for (from, node) in nodes.iter().enumerate() {
                assert_eq!(node.found().len(), 40, "node {from} of {count}");
                for found in node.found() {
                    let owner = successor(&identifiers, found.key);
                    let (by_protocol, hops) = by_definition(&identifiers, from, found.key);
                    assert_eq!(by_protocol, owner, "the protocol is right");
                    let what = format!("{:x} from node {from} of {count}", found.key);
                    assert_eq!(usize::try_from(found.node.get()), Ok(owner), "{what}");
                    assert_eq!(found.hops, hops, "{what}");
                    messages += match (routing, hops) {
                        (_, 0) => 0,
                        (Routing::Recursive, hops) => u64::from(hops) + 1,
                        (Routing::Iterative, hops) => 2 * u64::from(hops),
                    };
                }
            }
            let report = run(&chord(count, places, routing), Scheduler::Sequential, 1);
            let figure = |name| report.figure(name).expect(name).to_string();
            assert_eq!(figure("messages_total"), messages.to_string());
            assert_eq!(figure("lookups_total"), (40 * count).to_string());
        }
    }
}

/// Of 2^k nodes at equal distances, a key drawn evenly lies behind each with the same probability, and
/// the way there is as many steps as its number of nodes has ones in binary: k / 2 in the mean, with a
/// variance of k / 4.
#[test]
fn hops_are_half_the_binary_logarithm_of_the_nodes() {
    for exponent in [1_u32, 4, 7, 10] {
        let even = chord(1 << exponent, Identifiers::Even, Routing::Recursive);
        let report = run(&even, Scheduler::Sequential, 1);
        let figure = |name| report.figure(name).expect(name);
        let expected = f64::from(exponent) / 2.0;
        let error = (f64::from(exponent) / 4.0 / figure("lookups_total")).sqrt();
        let mean = figure("hops_mean");
        assert!((mean - expected).abs() < 4.0 * error, "2^{exponent}: {mean}, not {expected}");
        assert!((figure("hops_mean_expected") - expected).abs() < 1e-12);
        assert!(figure("hops_p99") <= f64::from(exponent));
    }
    // Nodes that are anywhere: the paper's mean is of the order of its sum, not exact.
    for nodes in [64, 256, 1000] {
        let hashed = chord(nodes, Identifiers::Hashed, Routing::Recursive);
        let mean = run(&hashed, Scheduler::Sequential, 1).figure("hops_mean").expect("look-ups");
        let expected = f64::from(nodes).log2() / 2.0;
        assert!((mean / expected - 1.0).abs() < 0.1, "{nodes}: {mean}, not {expected}");
    }
}

/// With a delay that is always the same, a look-up takes as long as its messages, one after another.
#[test]
fn a_look_up_takes_as_long_as_its_messages() {
    let delay = Nanos::from_millis(3);
    for (routing, per_hop, answer) in
        [(Routing::Recursive, 1.0, 1.0), (Routing::Iterative, 2.0, 0.0)]
    {
        let ring = chord(32, Identifiers::Hashed, routing);
        let ring = Chord { delay_min: delay, delay, ..ring };
        let report = run(&ring, Scheduler::Sequential, 1);
        let kept = nodes(&ring);
        let hops = kept.iter().flat_map(ChordNode::found).map(|found| f64::from(found.hops));
        let times = hops.map(|hops| if hops > 0.5 { hops * per_hop + answer } else { 0.0 });
        let mean = times.sum::<f64>() / (32.0 * 40.0) * 3000.0;
        let found = report.figure("latency_us_mean").expect("there are look-ups");
        assert!((found / mean - 1.0).abs() < 1e-9, "{routing:?}: {found}, not {mean}");
    }
}

#[test]
fn every_scheduler_gives_the_same_report() {
    for routing in [Routing::Recursive, Routing::Iterative] {
        let ring = chord(60, Identifiers::Hashed, routing);
        let truth = run(&ring, Scheduler::Sequential, 1);
        for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Check] {
            for threads in [1, 2, 4] {
                assert_eq!(run(&ring, scheduler, threads), truth, "{scheduler:?} {threads}");
            }
        }
    }
}
