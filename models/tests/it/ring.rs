//! A ring of switches: closed forms, bounds, and the law.

use meikyo_models::Report;
use meikyo_models::ring::Ring;
use meikyo_models::simplenet::Link;
use meikyo_sim::{Options, Scheduler, Unobserved};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

fn ring(switches: u32, messages_per_switch: u32, journeys: u32) -> Ring {
    let link = Link { start_up: Nanos::from_micros(2), rate: BitsPerSecond::GIGABIT };
    let size = Bytes::new(1500);
    Ring { switches, messages_per_switch, journeys, size, link, seed: 3 }
}

fn run(ring: &Ring, scheduler: Scheduler, threads: usize) -> Report {
    let report = ring.run(&Options::new(scheduler, threads), &mut Unobserved);
    Report { effort: Default::default(), ..report.expect("the ring keeps the rules") }
}

#[test]
fn messages_take_the_hops_that_their_closed_form_says_and_none_is_lost() {
    for (switches, messages, journeys) in [(2, 1, 50), (9, 1, 2000), (24, 40, 40)] {
        let report = run(&ring(switches, messages, journeys), Scheduler::Sequential, 1);
        let figure = |name| report.figure(name).expect(name);
        let total = f64::from(switches * messages * journeys);
        assert!((figure("journeys_total") - total).abs() < 0.5);
        assert!((figure("hops_mean") / figure("hops_mean_expected") - 1.0).abs() < 0.02);
        assert!(figure("journeys_per_s") <= 1.03 * figure("bound_per_s"), "{:?}", report.figures);
    }
    // A message alone between two switches never waits: one hop of 14 us each time.
    let alone = run(&ring(2, 1, 50), Scheduler::Sequential, 1);
    assert_eq!(alone.end.as_nanos(), 50 * 14_000);
    // Messages for every link: the clockwise ones, which carry more, are hardly ever idle.
    let full = run(&ring(24, 40, 40), Scheduler::Sequential, 1);
    let (name, busy) = full.bottleneck.expect("links are busy");
    assert!(name.starts_with("clockwise port of switch") && busy > 0.9, "{name} {busy}");
}

#[test]
fn every_scheduler_gives_the_same_report() {
    let ring = ring(24, 4, 30);
    let truth = run(&ring, Scheduler::Sequential, 1);
    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Check] {
        for threads in [1, 2, 4] {
            assert_eq!(run(&ring, scheduler, threads), truth, "{scheduler:?} {threads}");
        }
    }
}
