//! Queues against what theory knows of them.

use meikyo_models::Report;
use meikyo_models::queueing::{Closed, Open, Service};
use meikyo_sim::{Options, Scheduler, Unobserved};
use meikyo_units::Nanos;

fn open(service: Service, servers: u32, customers: u32) -> Open {
    let interarrival = Nanos::from_micros(20);
    Open {
        queues: 8,
        interarrival,
        service,
        servers,
        capacity: None,
        customers,
        seed: 1,
        series: false,
    }
}

fn closed(service: Nanos, jobs: u32) -> Closed {
    Closed {
        customers: 20,
        stations: 3,
        service: Service::Exponential(service),
        think: Nanos::from_micros(40),
        hop: Nanos::from_micros(5),
        jobs,
        seed: 1,
    }
}

fn options() -> Options {
    Options::new(Scheduler::Sequential, 1)
}

#[track_caller]
fn assert_within(report: &Report, found: &str, expected: &str, share: f64) {
    let [found, expected] = [found, expected].map(|name| report.figure(name).expect(name));
    assert!((found / expected - 1.0).abs() < share, "{found} against {expected}");
}

/// 10^7 events together: within 1 % of the closed forms.
#[test]
fn mm1_md1_and_mmc_wait_as_their_closed_forms_say() {
    let micros = Nanos::from_micros;
    let mut events = 0;
    for (service, servers) in [
        (Service::Exponential(micros(10)), 1),
        (Service::Constant(micros(14)), 1),
        (Service::Exponential(micros(30)), 3),
    ] {
        let report = open(service, servers, 210_000).run(&options(), &mut Unobserved);
        let report = report.expect("the queue keeps the rules");
        events += report.events;
        assert_within(&report, "wait_us_mean", "wait_us_expected", 0.01);
        assert_within(&report, "busy_share", "busy_share_expected", 0.01);
    }
    assert!(events > 10_000_000, "{events}");
}

/// What a queue with room for a few does: below, at and near what its servers can do. Of 480,000
/// customers the share that is turned away deviates by about 1 %, since they come in bursts.
#[test]
fn queues_that_turn_customers_away_do_what_their_closed_forms_say() {
    for (service_us, servers, capacity) in [(10, 1, 1), (16, 1, 4), (20, 1, 9), (50, 3, 5)] {
        let service = Service::Exponential(Nanos::from_micros(service_us));
        let open = Open { capacity: Some(capacity), ..open(service, servers, 60_000) };
        let report = open.run(&options(), &mut Unobserved).expect("the queue keeps the rules");
        assert_within(&report, "turned_away_share", "turned_away_share_expected", 0.05);
        assert_within(&report, "busy_share", "busy_share_expected", 0.02);
        if capacity > servers {
            assert_within(&report, "wait_us_mean", "wait_us_expected", 0.05);
            assert_within(&report, "queued_mean", "queued_mean_expected", 0.05);
        }
        assert_eq!(report.figure("overloaded_by_factor"), None);
    }
}

/// Servers cannot be busy for more than all of the time; customers that come three times as fast as they
/// are served are told as such.
#[test]
fn an_overloaded_queue_says_so_and_expects_no_more_than_all_servers_busy() {
    for (service_us, overload) in [(10, None), (60, Some(3.0))] {
        let service = Service::Constant(Nanos::from_micros(service_us));
        let report = open(service, 1, 1_000).run(&options(), &mut Unobserved);
        let report = report.expect("the queue keeps the rules");
        assert_eq!(report.figure("overloaded_by_factor"), overload);
        let expected = report.figure("busy_share_expected");
        assert_eq!(expected, Some(if overload.is_some() { 1.0 } else { 0.5 }));
    }
}

/// Low, middle and full load; each within 1 % of mean value analysis, which is exact here.
#[test]
fn closed_networks_do_what_mean_value_analysis_says() {
    for service_us in [1, 6, 30] {
        let closed = closed(Nanos::from_micros(service_us), 40_000);
        let report = closed.run(&options(), &mut Unobserved).expect("it keeps the rules");
        assert_within(&report, "jobs_per_s", "mva_per_s", 0.01);
        assert_within(&report, "response_us_mean", "response_us_expected", 0.01);
        let bound = report.figure("bound_per_s").expect("there is a bound");
        assert!(report.figure("jobs_per_s").expect("there is a rate") < bound * 1.01);
    }
}

#[test]
fn every_scheduler_gives_the_same_report() {
    let result = |mut report: Report| {
        report.effort = Default::default();
        report
    };
    let (open, closed) =
        (open(Service::Exponential(Nanos::from_micros(15)), 2, 500), closed(Nanos::new(9000), 200));
    let run = |options: Options| {
        let open = open.run(&options, &mut Unobserved).expect("it keeps the rules");
        let closed = closed.run(&options, &mut Unobserved).expect("it keeps the rules");
        [result(open), result(closed)]
    };
    let truth = run(options());
    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Check] {
        for threads in [1, 2, 4] {
            assert_eq!(run(Options::new(scheduler, threads)), truth, "{scheduler:?} {threads}");
        }
    }
}
