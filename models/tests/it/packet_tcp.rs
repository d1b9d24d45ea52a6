//! TCP of the packet method against closed forms.

use meikyo_models::prediction::npb::cg_exchange;
use meikyo_models::prediction::packet::{self, Control, PacketOptions, PacketRun, Stack, Tcp};
use meikyo_models::prediction::{LookAgain, Messaging, Network, Op, RankProgram, Script, Steps};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use crate::packet::{
    BYTES, CONTROL_NS, DROPPING, FRAME_NS, FRAMES, HOP_NS, LATENCY, PAUSED, PAYLOAD, all_to_all,
    at_once, network, network_at, pipeline, placement, run,
};

const OLD: Tcp =
    Tcp { stack: Stack::Linux26, control: Control::NewReno, window: Bytes::new(1 << 20) };
const NEW: Tcp = Tcp { stack: Stack::Linux, control: Control::Cubic, window: Bytes::new(1 << 20) };

fn with(options: PacketOptions, tcp: Tcp) -> PacketOptions {
    PacketOptions { tcp: Some(tcp), ..options }
}

/// From a frame's beginning to the end of its acknowledgement, along so many lanes each way.
fn round_trip(lanes: u64) -> u64 {
    lanes * (FRAME_NS + HOP_NS) + lanes * (CONTROL_NS + HOP_NS)
}

#[test]
fn one_flow_reaches_the_rate_of_its_cable() {
    let network = network("mesh 2", 3, false);
    for tcp in [OLD, NEW] {
        let run = run(&network, &[(0, 3, BYTES)], with(PAUSED, tcp));
        // As long as its window is smaller than the round trip, the cable idles for the rest of that: at
        // most one round trip for each time that the window grows by a half, from 3 to less than 6.
        let idle = 2 * round_trip(3);
        let time = run.time.get();
        assert!((pipeline(3, FRAMES)..=pipeline(3, FRAMES) + idle).contains(&time), "{run:?}");
        assert_eq!(run.lost, 0);
        // Data once, and an acknowledgement for two of them at least.
        assert!((3 * FRAMES * 3 / 2..=3 * FRAMES * 2).contains(&run.hops), "{run:?}");
    }
}

#[test]
fn a_window_below_the_round_trip_is_what_decides() {
    // One segment at a time, each acknowledged at once or after 40 ms: the first 16 at once.
    let network = network("mesh 2", 3, false);
    let tcp = Tcp { window: Bytes::new(PAYLOAD), ..OLD };
    let run = run(&network, &[(0, 3, 16 * PAYLOAD)], with(PAUSED, tcp));
    assert_eq!(run.time, Nanos::new(15 * round_trip(3) + pipeline(3, 1)));
    let run = self::run(&network, &[(0, 3, 18 * PAYLOAD)], with(PAUSED, tcp));
    let company = 40_000_000;
    assert_eq!(run.time, Nanos::new(17 * round_trip(3) + company + pipeline(3, 1)));
}

#[test]
fn two_flows_share_a_cable() {
    let network = network("mesh 2", 3, false);
    let messages = [(0, 3, 5 * BYTES), (1, 4, 5 * BYTES)];
    for tcp in [OLD, NEW] {
        for options in [PAUSED, DROPPING] {
            // Two windows fit into the queue.
            let options = PacketOptions { port_buffer: Bytes::new(262_144), ..options };
            let tcp = Tcp { window: Bytes::new(65_536), ..tcp };
            let run = run(&network, &messages, with(options, tcp));
            let ideal = pipeline(3, 10 * FRAMES);
            assert!((ideal..ideal + ideal / 10).contains(&run.time.get()), "{run:?}");
            // Both receivers waited nearly as long as all of it took: two senders, two receivers.
            let waited = run.spent.iter().map(|(_, span)| span.get()).sum::<u64>();
            assert!(waited > 2 * ideal * 8 / 10, "{run:?}");
        }
    }
}

#[test]
fn both_ways_at_once_take_little_longer_than_one() {
    let network = network("mesh 2", 3, false);
    let run = run(&network, &[(0, 3, BYTES), (3, 0, BYTES)], with(PAUSED, OLD));
    // While the windows are small, acknowledgements wait behind data.
    assert!(run.time.get() <= pipeline(3, FRAMES) + 4 * round_trip(3), "{run:?}");
    // Data once each way; acknowledgements that have frames of their own are for two segments.
    assert!(run.hops < 3 * 2 * (FRAMES + FRAMES / 2), "{run:?}");
}

#[test]
fn two_segments_of_a_connection_wait_at_the_card_and_others_come_behind_those() {
    let network = network("mesh 2", 3, false);
    // All eight segments may be under way at once, and are before the second message is sent.
    let run = run(&network, &[(0, 1, 8 * PAYLOAD), (0, 2, PAYLOAD)], with(PAUSED, NEW));
    let waited: u64 = run.spent.iter().map(|(_, span)| span.get()).sum();
    // One is on its way to the switch by then.
    assert_eq!(waited, pipeline(2, 9) + pipeline(2, 4));
}

/// Segments a round trip of a message of so many segments with such losses.
fn segments_a_round_trip(tcp: Tcp, spoiled_ppm: u32, segments: u32) -> f64 {
    let network = network("mesh 2", 3, false);
    // A round trip that is not short beside a time-out.
    let hop_delay = Nanos::from_millis(5);
    let options = PacketOptions { hop_delay, spoiled_ppm, ..with(DROPPING, tcp) };
    let run = run(&network, &[(0, 1, u64::from(segments) * PAYLOAD)], options);
    let round_trip = 4.0 * hop_delay.as_secs_f64() + 2e-9 * 13_024.0;
    f64::from(segments) / (run.time.as_secs_f64() / round_trip)
}

#[test]
fn throughput_under_losses_is_what_mathis_says() {
    // Mathis, Semke, Mahdavi, Ott: "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm"
    // (1997): sqrt(3 / (2 b p)) segments a round trip, where a window grows by one for every b windows.
    // Linux 2.6 counts acknowledgements, one for two segments; today's counts segments. Spoiled
    // frames are drawn at the only switch, for data; lost acknowledgements matter little.
    let newreno = Tcp { control: Control::NewReno, ..NEW };
    for (tcp, b) in [(OLD, 2.0), (newreno, 1.0)] {
        for ppm in [1_000_u32, 4_000] {
            let mathis = (1.5 / (b * f64::from(ppm) / 1e6)).sqrt();
            let reached = segments_a_round_trip(tcp, ppm, 60_000);
            let share = reached / mathis;
            assert!((0.75..1.2).contains(&share), "{ppm} ppm, b = {b}: {reached} of {mathis}");
        }
    }
    // CUBIC gives up less after a loss, and is never slower than NewReno (RFC 9438, section 4.3).
    // Of 600 losses in each run, the mean is known to a few percent.
    let [cubic, other] = [NEW, newreno].map(|tcp| segments_a_round_trip(tcp, 1_000, 600_000));
    assert!(cubic > other * 0.95, "{cubic}, {other}");
}

/// Two hosts send `frames` each to a third one at the same time, whose queue holds `room`.
fn lost_tail(tcp: Tcp, frames: u64, room: u64) -> PacketRun {
    let network = network("mesh 2", 3, false);
    let options = PacketOptions { port_buffer: Bytes::new(room * 1538), ..with(DROPPING, tcp) };
    let bytes = frames * PAYLOAD;
    run(&network, &[(1, 0, bytes), (2, 0, bytes)], options)
}

#[test]
fn a_lost_tail_costs_a_time_out_unless_it_is_probed_for() {
    // Two frames come while one leaves, and come first: one frame more waits after each pair. With room for
    // three of them the third one of one sender finds none, and nothing that follows tells its sender.
    let least = DROPPING.time_out.get();
    let most = least + 6 * round_trip(2) + LATENCY;
    for tcp in [OLD, NEW] {
        let run = lost_tail(tcp, 3, 3);
        assert_eq!(run.lost, 1, "{run:?}");
        assert!((least..=most).contains(&run.time.get()), "{run:?}");
    }
    // Of eight from each in one window, the last six of one sender are lost. Today's asks after them, two
    // round trips and 8 ms later, and sends them again once it hears that only the last one has come.
    let probed = lost_tail(NEW, 8, 3);
    assert_eq!(probed.lost, 6, "{probed:?}");
    let most = 8_000_000 + 9 * round_trip(2) + 14 * FRAME_NS + LATENCY;
    assert!((8_000_000..=most).contains(&probed.time.get()), "{probed:?}");
}

/// Octets of data on all cables.
fn carried(run: &PacketRun) -> u64 {
    run.carried.iter().map(|bytes| bytes.get()).sum()
}

#[test]
fn nothing_is_sent_again_while_a_round_trip_grows_to_seconds() {
    // Four streams share a cable in each direction, and the acknowledgements of the ones wait behind the data of
    // the others. No queue is ever full.
    let network = network_at("mesh 2", 4, false, BitsPerSecond::new(4_000_000));
    let bytes = 1 << 20;
    let messages = [(0, 4), (4, 1), (1, 5), (5, 2), (2, 6), (6, 3), (3, 7), (7, 0)];
    let messages = messages.map(|(from, to)| (from, to, bytes));
    let window = Bytes::new(262_144);
    for tcp in [OLD, NEW] {
        let options = PacketOptions { port_buffer: Bytes::new(1 << 30), ..DROPPING };
        let run = run(&network, &messages, with(options, Tcp { window, ..tcp }));
        assert_eq!(run.lost, 0);
        assert_eq!(carried(&run), 3 * 8 * bytes, "{run:?}");
        // What waits in a switch alone is a second of its cable and more.
        assert!(run.queued_max > Bytes::new(500_000), "{run:?}");
    }
}

#[test]
fn nothing_is_probed_for_that_still_waits_at_its_card() {
    // Parts of sums of CG in small messages over slow cables: the last segments of some wait at their cards behind those of
    // others for longer than it takes until a segment is probed for.
    const RANKS: u32 = 8;
    let bytes = 16_384;
    let network = network_at("complete 4", 2, false, BitsPerSecond::new(4_000_000));
    let script = |rank| {
        let mut steps = Steps::of(rank);
        cg_exchange(RANKS, bytes, &mut steps);
        let mut script = Script::default();
        script.repeat(1, steps.finish());
        script
    };
    let program = RankProgram::new((0..RANKS).map(script).collect());
    let tcp = Tcp { window: Bytes::new(65_536), ..NEW };
    let sends_nothing_again = |seed: &u64| {
        let look_again = LookAgain { every: Nanos::from_millis(2), seed: *seed };
        let messaging = Messaging { look_again, ..DROPPING.messaging };
        let port_buffer = Bytes::new(327_680);
        let options = PacketOptions { messaging, shaped: true, port_buffer, ..with(DROPPING, tcp) };
        let run = packet::run(&network, &program, &placement(&network), options).expect("it ends");
        carried(&run).is_multiple_of(bytes)
    };
    // A sender does not know what waits in the queue of a switch, so that it sends something again with a few of the seeds;
    // without the look at its card it does with all of them.
    assert!((0..8).filter(sends_nothing_again).count() >= 5);
}

#[test]
fn a_false_time_out_sends_one_segment_again() {
    // The first round trip takes 300 ms, the first time-out comes after 200: one segment goes again. The
    // acknowledgements that come then are of what was sent before, so that the window opens as if nothing were.
    let network = network("mesh 2", 3, false);
    let way = 150_000_000;
    let options = PacketOptions { hop_delay: Nanos::new(way / 2), ..DROPPING };
    for (tcp, round_trips, segments) in [(OLD, 2, 3 + 6 + 12), (NEW, 1, 10 + 20)] {
        let run = run(&network, &[(0, 1, segments * PAYLOAD)], with(options, tcp));
        assert_eq!(carried(&run), 2 * (segments + 1) * PAYLOAD, "{tcp:?}: {run:?}");
        let least = way + round_trips * 2 * way;
        let most = least + 3 * segments * FRAME_NS + LATENCY;
        assert!((least..most).contains(&run.time.get()), "{tcp:?}: {run:?}");
    }
}

#[test]
fn an_incast_is_ruined_by_time_outs_unless_pause_frames_stop_it() {
    let network = network("mesh 2", 20, false);
    let messages: Vec<_> = (1..20).map(|from| (from, 0, 20 * PAYLOAD)).collect();
    let ideal = pipeline(2, 19 * 20);
    for tcp in [OLD, NEW] {
        let paused = run(&network, &messages, with(PAUSED, tcp));
        assert_eq!(paused.lost, 0);
        assert!(paused.time.get() < ideal * 11 / 10, "{paused:?}");
        let dropping = run(&network, &messages, with(DROPPING, tcp));
        assert!(dropping.lost > 0);
        assert!(dropping.time > DROPPING.time_out, "{dropping:?}");
    }
}

#[test]
fn a_run_with_tcp_is_the_same_under_every_scheduler() {
    let network = network("torus 3x3", 2, false);
    let program = at_once(18, &all_to_all(18, 5 * PAYLOAD + 7));
    let small = Messaging { eager_max: Bytes::new(1), ..PAUSED.messaging };
    for options in [PacketOptions { messaging: small, ..PAUSED }, DROPPING] {
        for tcp in [OLD, NEW] {
            let options = PacketOptions {
                port_buffer: Bytes::new(12_000),
                spoiled_ppm: 2_000,
                ..with(options, tcp)
            };
            let run = |scheduler, threads| {
                let scheduling = Options::new(scheduler, threads);
                let placement = placement(&network);
                packet::run_under(&network, &program, &placement, options, &scheduling).unwrap()
            };
            let one = run(Scheduler::Sequential, 1);
            assert!(one.lost > 0);
            for (scheduler, threads) in
                [(Scheduler::Conservative, 2), (Scheduler::Optimistic, 2), (Scheduler::Check, 1)]
            {
                assert_eq!(run(scheduler, threads), one, "{scheduler:?} on {threads}");
            }
        }
    }
}

/// Everything arrives once and in order, whatever is lost: the program would not end otherwise, and its
/// receives would take the wrong messages.
#[test]
fn a_connection_loses_nothing_at_any_rate_of_losses() {
    let network: Network = network("mesh 2", 3, false);
    for spoiled_ppm in [10_000, 50_000, 150_000] {
        for tcp in [OLD, NEW] {
            let mut scripts = vec![Script::default(); 6];
            let sizes = [1, PAYLOAD, 3 * PAYLOAD + 5, 0, 40 * PAYLOAD];
            let ops = |op: &dyn Fn(u32, u64) -> Op| -> Vec<Op> {
                let steps = (0_u32..).zip(sizes).map(|(tag, bytes)| op(tag, bytes));
                steps.chain([Op::Wait { what: "wait" }]).collect()
            };
            scripts[0].repeat(4, ops(&|tag, bytes| Op::Send { to: 3, tag, bytes }));
            scripts[3].repeat(4, ops(&|tag, _| Op::Receive { from: 0, tag }));
            let program = RankProgram::new(scripts);
            let options = PacketOptions { spoiled_ppm, ..with(DROPPING, tcp) };
            let run = packet::run(&network, &program, &placement(&network), options);
            let run = run.unwrap_or_else(|error| panic!("{spoiled_ppm} {tcp:?}: {error}"));
            assert!(run.lost > 0);
        }
    }
}
