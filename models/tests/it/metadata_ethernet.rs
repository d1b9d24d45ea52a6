//! The metadata service on Ethernet: closed forms, cables that are full, queues that overflow.

use std::num::NonZeroU16;

use meikyo_models::Report;
use meikyo_models::metadata_service::{Ethernet, Metadata, Mix, RootList, Workload};
use meikyo_models::prediction::Messaging;
use meikyo_models::prediction::packet::{Control, PacketOptions, Stack, Tcp};
use meikyo_models::storage::Medium;
use meikyo_sim::{Options, Scheduler, Unobserved};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

use crate::metadata::figure;
use crate::packet::PAUSED;

/// What a frame with 512 octets takes at 1 Gbit/s, with 90 of headers, preamble and gap.
const FRAME_NS: u64 = (512 + 90) * 8;
const FULL_NS: u64 = 1538 * 8;
const HOP_NS: u64 = 3_000;
const LATENCY_NS: u64 = 30_000;
const ONE_WAY_NS: u64 = 3 * (FRAME_NS + HOP_NS) + LATENCY_NS;
const STORE_NS: u64 = 500_000;

pub(crate) fn on_ethernet(servers: u16, clients: u32, operations: u32) -> Metadata {
    let one = NonZeroU16::new(1).expect("1 is not 0");
    let messaging = Messaging { latency: Nanos::new(LATENCY_NS), ..PAUSED.messaging };
    let packet = PacketOptions {
        messaging,
        hop_delay: Nanos::new(HOP_NS),
        port_buffer: Bytes::new(262_144),
        ..PAUSED
    };
    let ethernet = Ethernet {
        cable_rate: BitsPerSecond::GIGABIT,
        trunk_cables: one,
        server_cards: one,
        client_switches: one,
        packet,
    };
    Metadata {
        ethernet: Some(ethernet),
        root_list: RootList::Known,
        ..Metadata::paper(servers, clients, operations)
    }
}

/// The same with other switches and cables.
pub(crate) fn with(metadata: Metadata, change: impl FnOnce(&mut Ethernet)) -> Metadata {
    let mut metadata = metadata;
    change(metadata.ethernet.as_mut().expect("it is on Ethernet"));
    metadata
}

pub(crate) fn tcp(stack: Stack) -> Tcp {
    Tcp { stack, control: Control::Cubic, window: Bytes::new(65_536) }
}

fn us(ns: u64) -> f64 {
    f64::from(u32::try_from(ns).expect("below 4 s")) / 1e3
}

/// Full cables of frames with 512 octets, as a rate.
fn cables(per_s: f64) -> f64 {
    per_s * us(FRAME_NS) / 1e6
}

fn run(metadata: &Metadata) -> Report {
    metadata
        .run(&Options::new(Scheduler::Sequential, 1), &mut Unobserved)
        .expect("the service keeps its own rules")
}

#[test]
fn a_lone_client_needs_exactly_the_sum_of_frames_and_hops() {
    let create = 2 * ONE_WAY_NS + STORE_NS;
    let in_step = Metadata { stagger: Some(Nanos::ZERO), ..on_ethernet(3, 1, 10) };
    let report = run(&in_step);
    let response = report.statistics[0].total();
    for found in [response.least, response.greatest] {
        assert!((found - us(create)).abs() < 1e-6, "{found}");
    }
    for none in ["frames_lost_total", "pauses_total", "queued_bytes_max"] {
        assert!(figure(&report, none) < 1e-9, "{none}");
    }
    // Two frames: the full one is stored and forwarded, and the last one is behind it on each cable.
    let two = Metadata { payload_size: Bytes::new(1448 + 512), ..in_step };
    let report = run(&two);
    let one_way = 3 * (FULL_NS + HOP_NS) + FRAME_NS + LATENCY_NS;
    let longer = report.statistics[0].total().greatest;
    assert!((longer - us(2 * one_way + STORE_NS)).abs() < 1e-6, "{longer}");
}

#[test]
fn a_run_ends_with_the_last_message_or_within_it_and_nothing_is_busy_for_longer() {
    let one = Metadata { stagger: Some(Nanos::ZERO), ..on_ethernet(1, 1, 1) };
    let report = run(&one);
    assert_eq!(report.end, SimTime::from_nanos(2 * ONE_WAY_NS + STORE_NS));
    // Within the first frame, and within the store.
    for until in [FRAME_NS / 2, ONE_WAY_NS + STORE_NS / 4] {
        let options = Options::new(Scheduler::Sequential, 1).until(SimTime::from_nanos(until));
        let report = one.run(&options, &mut Unobserved).expect("it is stopped");
        assert!(report.end <= SimTime::from_nanos(until));
        assert!(report.busiest.iter().all(|(_, share)| *share <= 1.0), "{:?}", report.busiest);
    }
}

#[test]
fn a_device_stores_what_a_message_carries() {
    let rate = "8MB/s".parse().expect("a rate");
    let store = Medium::Device { seek: Nanos::from_micros(100), rate };
    let report = run(&Metadata { stagger: Some(Nanos::ZERO), store, ..on_ethernet(1, 1, 3) });
    // 512 octets at 8 MB/s.
    let create = us(2 * ONE_WAY_NS) + 100.0 + 64.0;
    assert!((report.statistics[0].total().greatest - create).abs() < 1e-6);
}

#[test]
fn cables_of_several_trunks_and_cards_are_told_apart() {
    let busy = Metadata { store: Medium::Delay(Nanos::ZERO), ..on_ethernet(2, 64, 100) };
    let two = NonZeroU16::new(2).expect("not 0");
    let report = run(&with(busy, |ethernet| {
        (ethernet.client_switches, ethernet.server_cards) = (two, two);
    }));
    let mut names: Vec<&String> = report.busiest.iter().map(|(name, _)| name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{:?}", report.busiest);
    assert!(names.iter().any(|name| name.starts_with("trunk to servers, cable 1")), "{names:?}");
}

#[test]
fn a_cable_to_a_server_is_full_at_the_rate_of_its_frames_and_more_cards_carry_more() {
    let busy = Metadata { store: Medium::Delay(Nanos::ZERO), ..on_ethernet(1, 64, 400) };
    // Each client stays on one of the cards, so that four are not all full.
    let count = |count| NonZeroU16::new(count).expect("not 0");
    for (cards, least, most) in [(1, 0.97, 1.0), (4, 1.5, 4.0)] {
        let busy = with(busy.clone(), |ethernet| {
            ethernet.server_cards = count(cards);
            ethernet.trunk_cables = count(16);
        });
        let report = run(&busy);
        let rate = cables(figure(&report, "creates_per_s"));
        assert!((least..=most).contains(&rate), "{cards} cards: {rate}");
        let (name, share) = report.bottleneck.clone().expect("something was busy");
        if cards == 1 {
            assert!(
                ["sending card of server 0", "switch port to server 0"].contains(&name.as_str()),
                "{name}"
            );
            assert!(share > 0.95, "{share}");
        }
    }
}

#[test]
fn the_trunk_is_the_bottleneck_where_servers_have_cables_enough() {
    let metadata = Metadata { store: Medium::Delay(Nanos::ZERO), ..on_ethernet(8, 64, 200) };
    let report = run(&metadata);
    let rate = cables(figure(&report, "creates_per_s"));
    assert!((0.95..=1.0).contains(&rate), "{rate}");
    let (name, _) = report.bottleneck.expect("something was busy");
    assert!(name.starts_with("trunk to "), "{name}");
    // Two switches of clients have twice as many cables.
    let two =
        with(metadata, |ethernet| ethernet.client_switches = NonZeroU16::new(2).expect("not 0"));
    let twice = cables(figure(&run(&two), "creates_per_s"));
    assert!((1.4..=2.0).contains(&twice), "{twice}");
}

#[test]
fn full_queues_stop_senders_or_lose_frames_that_come_again_and_nothing_is_done_twice() {
    // 64 clients at once, each with a listing of many frames: what comes together at the trunk is more than it holds.
    let listing = Mix { create: 1, stat: 0, lookup: 0, unlink: 0, list: 1 };
    let crowded = Metadata {
        workload: Workload::Mix(listing),
        stagger: Some(Nanos::ZERO),
        ..on_ethernet(4, 64, 30)
    };
    let small = |ethernet: &mut Ethernet| {
        ethernet.packet.port_buffer = Bytes::new(24_000);
        ethernet.packet.time_out = Nanos::from_millis(2);
    };
    let paused = with(crowded, small);
    let lossy = with(paused.clone(), |ethernet| ethernet.packet.pause = false);
    let by_tcp = |stack| with(lossy.clone(), |ethernet| ethernet.packet.tcp = Some(tcp(stack)));
    for (name, metadata, loses) in [
        ("paused", paused.clone(), false),
        ("lossy", lossy.clone(), true),
        ("Linux 2.6", by_tcp(Stack::Linux26), true),
        ("Linux", by_tcp(Stack::Linux), true),
    ] {
        let report = run(&metadata);
        assert!((figure(&report, "operations_total") - 64.0 * 30.0).abs() < 1e-9, "{name}");
        assert!(figure(&report, "refused_total") < 1e-9, "{name}");
        let [lost, pauses, queued] =
            ["frames_lost_total", "pauses_total", "queued_bytes_max"].map(|of| figure(&report, of));
        assert_eq!(lost > 0.0, loses, "{name}: {lost} lost");
        assert_eq!(pauses > 0.0, !loses, "{name}: {pauses} pauses");
        // No port holds more than it may.
        let ports = 64.0 + 4.0 + 2.0;
        assert!(queued > 10_000.0 && queued <= ports * 24_000.0, "{name}: {queued} octets");
    }
}

#[test]
fn what_does_not_fit_on_switches_is_refused_with_what_would() {
    let text = |more: &str| {
        let text = format!("model = \"metadata\"\nnetwork = \"ethernet\"\n{more}\n");
        match meikyo_models::scenario::Scenario::parse(&text, "a.toml") {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(text(""), "");
    assert!(
        text("clients = 70000").contains("more `client_switches`"),
        "{}",
        text("clients = 70000")
    );
    assert!(text("clients = 60000\nservers = 100\nclient_switches = 2").contains("4000000"));
    assert!(text("servers = 100\nserver_cards = 1000").contains("`server_cards`"));
    assert!(text("clients = 2\nclient_switches = 3").contains("more than the 2 clients"));
    // With TCP a pair takes more.
    let tcp = "clients = 20000\nservers = 100\ntcp = \"linux\"";
    assert!(text(tcp).contains("with TCP 1000000"), "{}", text(tcp));
    // What is decided by others.
    assert!(
        text("window = \"8kB\"").contains("has an effect only with tcp = "),
        "{}",
        text("window = \"8kB\"")
    );
    assert!(text("switch_lps = 4").contains("only with network = "), "{}", text("switch_lps = 4"));
    let drawn = |more: &str| text(&format!("stagger = \"0s\"\nseed = 7\n{more}"));
    assert!(drawn("").contains("nothing is drawn"), "{}", drawn(""));
    for more in ["trunk_cables = 2", "server_cards = 2", "spoiled_ppm = 1"] {
        assert_eq!(drawn(more), "");
    }
    // Keys of the other network have no effect here.
    assert!(text("net_startup = \"1us\"").contains("network"));
    let simple = "model = \"metadata\"\ntrunk_cables = 2\n";
    assert!(meikyo_models::scenario::Scenario::parse(simple, "a.toml").is_err());
}
