//! The packet method against closed forms, and against the other methods.

use meikyo_fabric::{PlanOptions, SwitchModel, Topology, cable_uniform, plan};
use meikyo_models::prediction::flow::{self, FlowOptions};
use meikyo_models::prediction::packet::{self, PacketError, PacketOptions, PacketRun};
use meikyo_models::prediction::{
    Congestion, Deal, LookAgain, Messaging, Network, Op, Placement, RankProgram, Rates, Script,
    bounds,
};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

/// Data of a full frame, and what it takes on a cable: 1,538 octets at 1 Gbit/s.
pub(crate) const PAYLOAD: u64 = 1448;
pub(crate) const FRAME_NS: u64 = 12_304;
/// A frame without data, preamble and gap included.
pub(crate) const CONTROL_NS: u64 = 720;
pub(crate) const HOP_NS: u64 = 1_000;
pub(crate) const LATENCY: u64 = 50_000;
/// Full frames of a message.
pub(crate) const FRAMES: u64 = 200;
pub(crate) const BYTES: u64 = FRAMES * PAYLOAD;

pub(crate) fn network(topology: &str, hosts: usize, cyclic: bool) -> Network {
    network_at(topology, hosts, cyclic, BitsPerSecond::GIGABIT)
}

pub(crate) fn network_at(
    topology: &str,
    hosts: usize,
    cyclic: bool,
    rate: BitsPerSecond,
) -> Network {
    let topology: Topology = topology.parse().expect("a topology");
    let model = SwitchModel::named("powerconnect-6248").expect("a model");
    let mut wiring = cable_uniform(&topology, &model, hosts).expect("enough ports");
    wiring.rate = rate;
    let mut options = PlanOptions::new(Some(topology));
    options.flow_control = !cyclic;
    let plan = plan(&wiring, &options).expect("a plan");
    let within_host = BitsPerSecond::new(8_000_000_000);
    let rates = Rates { payload_share: 1448.0 / 1538.0, within_host };
    Network::new(&wiring, &plan, rates, 1)
}

pub(crate) const PAUSED: PacketOptions = PacketOptions {
    messaging: Messaging {
        latency: Nanos::new(LATENCY),
        eager_max: Bytes::new(1 << 40),
        look_again: LookAgain::AT_ONCE,
    },
    hop_delay: Nanos::new(HOP_NS),
    pause: true,
    port_buffer: Bytes::new(32_768),
    memory: None,
    time_out: Nanos::from_millis(200),
    spoiled_ppm: 0,
    tcp: None,
    shaped: false,
    courses: false,
};
pub(crate) const DROPPING: PacketOptions = PacketOptions { pause: false, ..PAUSED };

fn rendezvous(options: PacketOptions) -> PacketOptions {
    let messaging = Messaging { eager_max: Bytes::default(), ..options.messaging };
    PacketOptions { messaging, ..options }
}

/// Rank `n` runs on host `n`: all receives and sends of these messages at once.
pub(crate) fn at_once(ranks: usize, messages: &[(u32, u32, u64)]) -> RankProgram {
    let script = |rank: usize| {
        let rank = u32::try_from(rank).expect("few ranks");
        let receives = messages.iter().filter(|(_, to, _)| *to == rank);
        let receives = receives.map(|&(from, ..)| Op::Receive { from, tag: 0 });
        let sends = messages.iter().filter(|(from, ..)| *from == rank);
        let sends = sends.map(|&(_, to, bytes)| Op::Send { to, tag: 0, bytes });
        let mut script = Script::default();
        let wait = [Op::Wait { what: "wait" }];
        script.repeat(1, receives.chain(sends).chain(wait).collect::<Vec<_>>());
        script
    };
    RankProgram::new((0..ranks).map(script).collect())
}

pub(crate) fn placement(network: &Network) -> Placement {
    Placement::new(Deal::Block, network.hosts(), network.hosts(), 1, 1)
        .expect("a slot for each rank")
}

pub(crate) fn run(
    network: &Network,
    messages: &[(u32, u32, u64)],
    options: PacketOptions,
) -> PacketRun {
    let program = at_once(network.hosts(), messages);
    packet::run(network, &program, &placement(network), options).expect("it ends")
}

/// What it takes until the last of `frames` frames that follow each other on one cable has come, when
/// the first of them has to go along `lanes`.
pub(crate) fn pipeline(lanes: u64, frames: u64) -> u64 {
    lanes * (FRAME_NS + HOP_NS) + (frames - 1) * FRAME_NS + LATENCY
}

#[test]
fn a_message_is_its_frames_and_the_way_of_the_last() {
    let network = network("mesh 2", 3, false);
    let alone = |to, options| run(&network, &[(0, to, BYTES)], options);
    let same_switch = alone(1, PAUSED);
    assert_eq!(same_switch.time, Nanos::new(pipeline(2, FRAMES)));
    assert_eq!(same_switch.hops, 2 * FRAMES);
    assert_eq!(alone(3, DROPPING).time, Nanos::new(pipeline(3, FRAMES)));
    // Announced and asked for, three lanes each way.
    let control = 3 * (CONTROL_NS + HOP_NS) + LATENCY;
    let asked = alone(3, rendezvous(PAUSED)).time;
    assert_eq!(asked, Nanos::new(2 * control + pipeline(3, FRAMES)));
}

#[test]
fn streams_on_one_cable_follow_each_other_without_a_gap() {
    let network = network("mesh 2", 3, false);
    for streams in 1..=3_u64 {
        let messages: Vec<_> = (0..3_u32).take(usize::try_from(streams).unwrap()).collect();
        let messages: Vec<_> = messages.into_iter().map(|at| (at, at + 3, BYTES)).collect();
        let run = run(&network, &messages, PAUSED);
        assert_eq!(run.time, Nanos::new(pipeline(3, streams * FRAMES)), "{streams} streams");
        assert_eq!(run.lost, 0);
    }
}

#[test]
fn a_ring_shift_is_as_fast_as_one_message() {
    let network = network("mesh 2", 4, false);
    let messages: Vec<_> = (0..8).map(|at| (at, (at + 1) % 8, BYTES)).collect();
    let run = run(&network, &messages, DROPPING);
    assert_eq!(run.time, Nanos::new(pipeline(3, FRAMES)));
    assert_eq!((run.lost, run.stops), (0, 0));
}

#[test]
fn an_incast_with_pause_frames_loses_nothing_and_keeps_the_cable_full() {
    let network = network("mesh 2", 4, false);
    let run = run(&network, &[(1, 0, BYTES), (2, 0, BYTES), (3, 0, BYTES)], PAUSED);
    assert_eq!(run.time, Nanos::new(pipeline(2, 3 * FRAMES)));
    assert_eq!(run.lost, 0);
    assert!(run.stops > 0);
    assert!(run.queued_max <= Bytes::new(3 * PAUSED.port_buffer.get()), "{run:?}");
}

#[test]
fn an_incast_without_pause_frames_loses_what_neither_cable_nor_queue_takes() {
    // 200 frames leave while three times as many come, and 240 find room: 160 are lost. They come
    // again two at a time, which the queue has room for.
    let network = network("mesh 2", 4, false);
    let room = FRAMES * 6 / 5;
    let options = PacketOptions { port_buffer: Bytes::new(room * 1538), ..DROPPING };
    let run = run(&network, &[(1, 0, BYTES), (2, 0, BYTES), (3, 0, BYTES)], options);
    let lost = 2 * FRAMES - room;
    assert!(run.lost.abs_diff(lost) <= 2, "{run:?}");
    let time_out = options.time_out.get();
    let longest = time_out + pipeline(2, 3 * FRAMES);
    assert!((time_out..=longest).contains(&run.time.get()), "{run:?}");
    // Each lost frame went along its host's cable twice.
    assert_eq!(run.hops, 6 * FRAMES + run.lost);
    // A memory that is smaller than the shares of the inputs loses frames in spite of pause frames.
    let small = PacketOptions { memory: Some(Bytes::new(40_000)), ..PAUSED };
    let messages = [(1, 0, BYTES), (2, 0, BYTES), (3, 0, BYTES)];
    assert!(self::run(&network, &messages, small).lost > 0);
}

#[test]
fn pause_frames_stop_what_else_a_card_sends() {
    // Hosts 0 to 2 send over the one cable; host 0 also to host 3, on its own switch.
    let network = network("mesh 2", 4, false);
    let messages = [(0, 4, BYTES), (1, 5, BYTES), (2, 6, BYTES), (0, 3, BYTES)];
    let roomy = PacketOptions { port_buffer: Bytes::new(1 << 30), ..DROPPING };
    let spent = |options| {
        let run = run(&network, &messages, options);
        assert_eq!(run.lost, 0);
        assert_eq!(run.time, Nanos::new(pipeline(3, 3 * FRAMES)), "the cable is full in any case");
        run.spent[0].1.get()
    };
    // With room for all of it the other message takes two thirds of the time, and hosts 1 and 2, twice
    // as fast as host 0, have sent after five sixths. Stopped, all of them take the time of the full
    // cable: two messages' more, but for what the queues take at once.
    let more = spent(PAUSED) - spent(roomy);
    let message = FRAMES * FRAME_NS;
    assert!((3 * message / 2..=2 * message).contains(&more), "{more} of {message}");
}

fn real(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("a short run"))
}

/// Every pair of hosts: what a program of one step can be at most.
pub(crate) fn all_to_all(hosts: u32, bytes: u64) -> Vec<(u32, u32, u64)> {
    let pairs = (0..hosts).flat_map(|from| (1..hosts).map(move |by| (from, (from + by) % hosts)));
    pairs.map(|(from, to)| (from, to, bytes)).collect()
}

#[test]
fn no_method_is_faster_than_what_has_to_be_carried() {
    for (topology, hosts) in [("tree 8", 2), ("torus 4x2", 2), ("complete 4", 3)] {
        let network = network(topology, hosts, false);
        let count = u32::try_from(network.hosts()).unwrap();
        for (messages, name) in [
            (all_to_all(count, 20 * PAYLOAD), "all-to-all"),
            ((0..count).map(|at| (at, (at * 7 + 3) % count, BYTES)).collect(), "scattered"),
            ((1..count).map(|at| (at, 0, 30 * PAYLOAD)).collect(), "incast"),
        ] {
            let program = at_once(network.hosts(), &messages);
            let placement = placement(&network);
            let least = bounds(&network, program.actors(&placement)).least();
            let options = FlowOptions {
                messaging: PAUSED.messaging,
                congestion: Congestion::NONE,
                patience: 0,
                courses: true,
            };
            let flow = flow::run(&network, program.actors(&placement), options).unwrap();
            let packet = run(&network, &messages, PacketOptions { courses: true, ..PAUSED });
            for (courses, carried) in
                [(&flow.courses, &flow.carried), (&packet.courses, &packet.carried)]
            {
                let courses = courses.as_ref().unwrap();
                let lanes = courses.carried.iter().zip(carried).zip(network.lanes());
                for ((course, carried), lane) in lanes {
                    assert!(course.is_sorted());
                    assert_eq!(course.last(), Some(carried));
                    let whole = lane.bytes_per_s * 1e-9;
                    let mut before = 0.0;
                    for (until, octets) in courses.until.iter().zip(course) {
                        // No lane is faster than its rate, to a frame and a nanosecond.
                        let most = real(until.get()) * whole + 3000.0;
                        assert!(real(octets.get()) <= most, "{topology}, {name}");
                        before = real(octets.get());
                    }
                    assert!((before - real(carried.get())).abs() < 0.5);
                }
            }
            assert!(least <= flow.time, "{topology}, {name}");
            // Streams share cables with acknowledgements, which packets without TCP do not have.
            let share = network.rates().acknowledged_share();
            let alone_s = flow.time.as_secs_f64() * (1.0 - share);
            assert!(alone_s <= packet.time.as_secs_f64(), "{topology}, {name}");
            // Both take the same ways.
            assert_eq!(flow.carried, packet.carried, "{topology}, {name}");
            assert_eq!(packet.lost, 0);
        }
    }
}

#[test]
fn a_run_is_the_same_under_every_scheduler() {
    let network = network("torus 3x3", 2, false);
    let program = at_once(18, &all_to_all(18, 5 * PAYLOAD + 7));
    for options in [rendezvous(PAUSED), DROPPING] {
        let options = PacketOptions { port_buffer: Bytes::new(8_000), ..options };
        let run = |scheduler, threads| {
            let scheduling = Options::new(scheduler, threads);
            let placement = placement(&network);
            packet::run_under(&network, &program, &placement, options, &scheduling).unwrap()
        };
        let one = run(Scheduler::Sequential, 1);
        assert!(one.stops > 0 || one.lost > 0);
        for (scheduler, threads) in [
            (Scheduler::Conservative, 2),
            (Scheduler::Conservative, 3),
            (Scheduler::Optimistic, 2),
            (Scheduler::Optimistic, 3),
            (Scheduler::Auto, 2),
            (Scheduler::Check, 1),
        ] {
            assert_eq!(run(scheduler, threads), one, "{scheduler:?} on {threads}");
        }
    }
}

#[test]
fn a_rank_waits_for_one_message_while_another_one_is_open() {
    // Rank 1 sends what rank 0 asked for first only after rank 0 has sent twice: to wait for all would be
    // for ever.
    let network = network("mesh 2", 1, false);
    let wait = Op::Wait { what: "wait" };
    let send = |to, tag| Op::Send { to, tag, bytes: BYTES };
    let receive = |from, tag| Op::Receive { from, tag };
    let one = |begun| Op::WaitFor { begun, what: "wait" };
    let mut scripts = [Script::default(), Script::default()];
    scripts[0].repeat(1, vec![receive(1, 9), send(1, 1), one(1), send(1, 2), one(2), wait]);
    let own = vec![receive(0, 1), wait, receive(0, 2), one(1), send(0, 9), one(2)];
    scripts[1].repeat(1, own);
    let program = RankProgram::new(scripts.into());
    let placement = placement(&network);
    let options = rendezvous(PAUSED);
    let packet = packet::run(&network, &program, &placement, options).expect("it ends");
    let messaging = options.messaging;
    let congestion = Congestion::NONE;
    let options = FlowOptions { messaging, congestion, patience: 0, courses: false };
    let flow = flow::run(&network, program.actors(&placement), options).expect("it ends");
    // One after the other.
    assert!(packet.time.get() > 3 * FRAMES * FRAME_NS && flow.time.get() > 3 * FRAMES * FRAME_NS);
}

#[test]
fn queues_that_wait_for_each_other_are_a_deadlock_that_names_them() {
    // Shortest ways around a ring: each trunk waits for the next one, since none of its frames may go.
    let network = network("ring 8", 4, true);
    let messages: Vec<_> = (0..32).map(|at| (at, (at + 12) % 32, BYTES)).collect();
    let program = at_once(32, &messages);
    let error = packet::run(&network, &program, &placement(&network), PAUSED).unwrap_err();
    let PacketError::Deadlock { source, stopped } = &error else { panic!("{error}") };
    assert!(!source.waiting.is_empty() && stopped.len() >= 8, "{source}, {stopped:?}");
    assert!(error.to_string().contains("stopped by pause frames: "), "{error}");
    // Nobody sends what rank 1 waits for.
    let mut script = Script::default();
    script.repeat(1, vec![Op::Receive { from: 0, tag: 3 }, Op::Wait { what: "wait" }]);
    let program = RankProgram::new(vec![Script::default(), script]);
    let error = packet::run(&network, &program, &placement(&network), PAUSED).unwrap_err();
    let PacketError::Deadlock { source, stopped } = error else { panic!("{error}") };
    assert_eq!(
        source.to_string(),
        "deadlock after 0ns: 1 of 2 actors wait, 1 to receive from 0 (tag 3)"
    );
    assert!(stopped.is_empty());
}
