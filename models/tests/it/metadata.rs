//! The metadata service: the paper's figures, and the law.

use std::num::{NonZeroU16, NonZeroU32};

use meikyo_models::Report;
use meikyo_models::metadata_service::{Directories, Load, Metadata, Mix, Workload};
use meikyo_models::prediction::packet::{Stack, Tcp};
use meikyo_models::simplenet::Switching;
use meikyo_models::storage::Medium;
use meikyo_sim::{Line, LineContent, Observer, Options, Progress, Scheduler, Unobserved};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

use crate::metadata_ethernet::{on_ethernet, tcp, with};

fn run(metadata: &Metadata, scheduler: Scheduler, threads: usize) -> Report {
    metadata
        .run(&Options::new(scheduler, threads), &mut Unobserved)
        .expect("the service keeps its own rules")
}

fn sequential(metadata: &Metadata) -> Report {
    run(metadata, Scheduler::Sequential, 1)
}

pub(crate) fn figure(report: &Report, name: &str) -> f64 {
    report.figure(name).unwrap_or_else(|| panic!("{name} is in {:?}", report.figures))
}

#[track_caller]
fn assert_between_mva_and_bound(report: &Report) {
    let [mva, found, bound] =
        ["mva_per_s", "creates_per_s", "bound_per_s"].map(|name| figure(report, name));
    assert!((0.995 * mva..=1.005 * bound).contains(&found), "{mva} <= {found} <= {bound}");
}

#[test]
fn two_servers_saturate_at_60340_creates_a_second_whatever_the_store_takes() {
    for (store_us, operations) in [(0, 300), (500, 1000), (1000, 300)] {
        let mut metadata = Metadata::paper(2, 352, operations);
        metadata.store = Medium::Delay(Nanos::from_micros(store_us));
        let report = sequential(&metadata);
        let rate = figure(&report, "creates_per_s");
        assert!((rate / 60_340.0 - 1.0).abs() < 0.005, "{store_us} us: {rate}");
        assert_between_mva_and_bound(&report);
        let (name, busy) = report.bottleneck.expect("something was busy");
        assert!(name.starts_with("sending interface of server"), "{name}");
        assert!(busy > 0.95, "{busy}");
    }
}

#[test]
fn a_short_start_up_leaves_88_clients_unsaturated() {
    let mut metadata = Metadata::paper(2, 88, 500);
    metadata.net_startup = Nanos::from_micros(10);
    let report = sequential(&metadata);
    assert_between_mva_and_bound(&report);
    let (_, busy) = report.bottleneck.clone().expect("something was busy");
    assert!(busy < 0.85, "{busy}");
    assert!(figure(&report, "creates_per_s") < 0.85 * 179_469.0);
}

/// Every kind of switch, of store and of load that theory covers, from far below saturation to beyond.
#[test]
fn theory_holds_for_every_kind_of_switch_and_store() {
    let paper = Metadata::paper(4, 1, 400);
    let mixed = Mix { create: 1, stat: 2, lookup: 1, unlink: 0, list: 0 };
    let rate = "20MiB/s".parse().expect("it is a rate");
    let kinds = [
        Metadata { switching: Switching::PerPort, ..paper.clone() },
        Metadata { switching: Switching::PerNetwork, ..paper.clone() },
        Metadata { switching: Switching::Shared, ..paper.clone() },
        Metadata { store: Medium::Queue(Nanos::from_micros(70)), ..paper.clone() },
        Metadata { store: Medium::Device { seek: Nanos::from_micros(9), rate }, ..paper.clone() },
        Metadata { load: Load::Closed { think: Nanos::from_micros(300) }, ..paper.clone() },
        Metadata { workload: Workload::Mix(mixed), ..paper.clone() },
        Metadata { payload_size: Bytes::new(4000), ..paper },
    ];
    for kind in kinds {
        for clients in [2, 16, 120] {
            let clients = NonZeroU32::new(clients).expect("not 0");
            // What is drawn differs from operation to operation, and evens out over many.
            let drawn = matches!(kind.workload, Workload::Mix(_));
            let operations = if drawn { 40_000 / clients } else { kind.operations };
            let report = sequential(&Metadata { clients, operations, ..kind.clone() });
            let [mva, found, bound] =
                ["mva_per_s", "operations_per_s", "bound_per_s"].map(|name| figure(&report, name));
            assert!(
                (0.99 * mva..=1.01 * bound).contains(&found),
                "{mva} <= {found} <= {bound}: {clients} clients, {kind:?}"
            );
        }
    }
}

#[test]
fn a_lone_client_needs_exactly_the_sum_of_the_hops() {
    // 6 start-ups, 2 receptions at 125 MiB/s, 4 at 1250 MiB/s, the store: 719,464 ns.
    let in_step = Metadata { stagger: Some(Nanos::ZERO), ..Metadata::paper(3, 1, 10) };
    let report = sequential(&in_step);
    let response = &report.statistics[0].total();
    let create: u32 = 6 * 32_000 + 2 * 11_444 + 4 * 1_144 + 500_000;
    assert!((response.least - f64::from(create) / 1000.0).abs() < 1e-9);
    // The first one also fetches the server list, without the store.
    assert!((response.greatest - f64::from(2 * create - 500_000) / 1000.0).abs() < 1e-9);
    assert_eq!(report.end, SimTime::from_nanos(11 * 719_464 - 500_000));
    assert_eq!(report.events, 7 * 11);
}

/// Services of every kind of load, work, switch and store.
fn services() -> Vec<(&'static str, Metadata)> {
    let paper = Metadata::paper(3, 24, 12);
    let width = NonZeroU16::new(2).expect("2 is not 0");
    let mix = Workload::Mix(Mix { create: 3, stat: 4, lookup: 2, unlink: 2, list: 1 });
    let open = Load::Open { interarrival: Nanos::from_micros(400), in_flight_max: 3 };
    vec![
        ("create", paper.clone()),
        (
            "own directories",
            Metadata {
                workload: Workload::Mdtest,
                directories: Directories::Own { width },
                store: Medium::Queue(Nanos::from_micros(40)),
                ..paper.clone()
            },
        ),
        (
            "mdtest through one port each",
            Metadata {
                workload: Workload::Mdtest,
                switching: Switching::PerPort,
                load: Load::Closed { think: Nanos::from_micros(7) },
                ..paper.clone()
            },
        ),
        (
            "mix through one interface",
            Metadata {
                workload: mix,
                switching: Switching::Shared,
                read_latency: Nanos::from_micros(3),
                ..paper.clone()
            },
        ),
        ("open mix", Metadata { workload: mix, load: open, operations: 40, ..paper.clone() }),
        ("crowded instants", crowded(&paper)),
        ("no start-up", Metadata { net_startup: Nanos::ZERO, ..paper }),
        ("ethernet", Metadata { load: Load::Closed { think: Nanos::ZERO }, ..small_queues(None) }),
        (
            "ethernet with TCP that loses frames",
            Metadata { load: open, operations: 40, ..small_queues(Some(tcp(Stack::Linux))) },
        ),
    ]
}

/// Two switches of clients and queues of a few frames, which listings fill.
fn small_queues(tcp: Option<Tcp>) -> Metadata {
    let mix = Workload::Mix(Mix { create: 2, stat: 1, lookup: 0, unlink: 0, list: 3 });
    let metadata = Metadata { workload: mix, stagger: Some(Nanos::ZERO), ..on_ethernet(3, 24, 12) };
    with(metadata, |ethernet| {
        ethernet.client_switches = NonZeroU16::new(2).expect("not 0");
        ethernet.packet.port_buffer = Bytes::new(16_000);
        ethernet.packet.pause = tcp.is_none();
        ethernet.packet.time_out = Nanos::from_millis(1);
        ethernet.packet.tcp = tcp;
    })
}

/// Everything takes a dozen nanoseconds or so: many messages come at one instant.
fn crowded(paper: &Metadata) -> Metadata {
    let rate = BitsPerSecond::new(1_000_000_000_000);
    Metadata {
        net_startup: Nanos::ZERO,
        client_rate: rate,
        server_rate: rate,
        switch_rate: rate,
        store: Medium::Delay(Nanos::new(12)),
        load: Load::Open { interarrival: Nanos::new(20), in_flight_max: 1000 },
        workload: Workload::Mix(Mix { create: 1, stat: 1, lookup: 1, unlink: 0, list: 1 }),
        operations: 40,
        ..paper.clone()
    }
}

/// All of a report that must not depend on how it was run.
fn result(mut report: Report) -> Report {
    report.effort = Default::default();
    report
}

#[test]
fn every_scheduler_gives_the_same_report() {
    for (what, metadata) in services() {
        let truth = result(sequential(&metadata));
        assert!(truth.events > 1000 && truth.waiting.is_empty(), "{what}: {truth:?}");
        for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Auto] {
            for threads in [1, 2, 4] {
                let report = run(&metadata, scheduler, threads);
                assert_eq!(result(report), truth, "{what}, {scheduler:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn no_change_escapes_the_undo_log() {
    for (what, metadata) in services() {
        let truth = result(sequential(&metadata));
        assert_eq!(result(run(&metadata, Scheduler::Check, 1)), truth, "{what}");
    }
}

#[test]
fn dividing_the_switches_changes_no_instant_and_no_answer() {
    for (what, mut metadata) in services() {
        let reports = [1, 2, 7].map(|lps| {
            metadata.switch_lps = NonZeroU32::new(lps).expect("not 0");
            sequential(&metadata)
        });
        for report in &reports[1..] {
            assert_eq!(report.statistics, reports[0].statistics, "{what}");
            assert_eq!(report.figures, reports[0].figures, "{what}");
            assert_eq!(report.end, reports[0].end, "{what}");
        }
    }
}

#[test]
fn nothing_is_refused_where_clients_keep_to_their_own_files() {
    for (what, metadata) in services() {
        let report = sequential(&metadata);
        let total = figure(&report, "operations_total") + figure(&report, "turned_away_total");
        let open = matches!(metadata.load, Load::Open { .. });
        let own = f64::from(u32::from(metadata.directories != Directories::One));
        let each =
            if metadata.workload == Workload::Mdtest { 3.0 * 12.0 + 2.0 * own } else { 12.0 };
        assert!(open || (total - 24.0 * each).abs() < 1e-9, "{what}: {total}");
        assert!(open || figure(&report, "refused_total") < 1e-9, "{what}");
    }
}

/// When each completed operation began.
struct Beginnings(Vec<u64>);

impl Observer for Beginnings {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            if let LineContent::Value { value, .. } = line.content {
                let response = Nanos::from_secs_f64(value / 1e6);
                self.0.push(line.key.time.as_nanos() - response.get());
            }
        }
    }
    fn progress(&mut self, _progress: &Progress) {}
}

/// What an answer brings is known when it is there, not before: a completion is recorded at its
/// instant, and an operation is in flight until then, however long the answer takes to arrive.
#[test]
fn open_loop_clients_begin_when_the_seed_says_on_any_network() {
    let mut metadata = Metadata::paper(3, 5, 50);
    metadata.load = Load::Open { interarrival: Nanos::from_micros(600), in_flight_max: 1_000_000 };
    let [fast, slow] = ["125MiB/s", "2MiB/s"].map(|rate| {
        metadata.client_rate = rate.parse().expect("it is a rate");
        let mut beginnings = Beginnings(Vec::new());
        let options = Options::new(Scheduler::Sequential, 1);
        metadata.run(&options, &mut beginnings).expect("the service keeps its own rules");
        beginnings.0.sort_unstable();
        beginnings.0
    });
    assert_eq!(fast.len(), 250);
    assert_eq!(fast, slow);
}
