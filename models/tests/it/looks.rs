//! Ranks that look from time to time at what has come, by packets and by flows.

use meikyo_models::prediction::flow::{self, FlowOptions};
use meikyo_models::prediction::packet::{self, Control, PacketOptions, Stack, Tcp};
use meikyo_models::prediction::{
    Congestion, LookAgain, Messaging, Network, Op, RankProgram, Script,
};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{Bytes, Nanos};

use crate::packet::{BYTES, PAUSED, network, placement};

const MESSAGING: Messaging = Messaging {
    latency: Nanos::new(1_000),
    eager_max: Bytes::new(4_000),
    look_again: LookAgain::AT_ONCE,
};
const TCP: Tcp = Tcp { stack: Stack::Linux, control: Control::Cubic, window: Bytes::new(1 << 20) };
const WAIT: Op = Op::Wait { what: "messages" };

fn send(to: u32, tag: u32, bytes: u64) -> Op {
    Op::Send { to, tag, bytes }
}

fn receive(from: u32, tag: u32) -> Op {
    Op::Receive { from, tag }
}

fn program(scripts: [Vec<Op>; 2]) -> RankProgram {
    let script = |ops: Vec<Op>| {
        let mut script = Script::default();
        script.repeat(1, ops);
        script
    };
    RankProgram::new(scripts.map(script).into())
}

fn packets(look_again: LookAgain) -> PacketOptions {
    let messaging = Messaging { look_again, ..MESSAGING };
    PacketOptions { messaging, tcp: Some(TCP), ..PAUSED }
}

/// How long a program takes by packets and by flows.
fn times(network: &Network, program: &RankProgram, look_again: LookAgain) -> [Nanos; 2] {
    let placement = placement(network);
    let packet = packet::run(network, program, &placement, packets(look_again)).expect("it ends");
    let messaging = Messaging { look_again, ..MESSAGING };
    let congestion = Congestion::NONE;
    let options = FlowOptions { messaging, congestion, patience: 0, courses: false };
    let flow = flow::run(network, program.actors(&placement), options).expect("it ends");
    [packet.time, flow.time]
}

#[test]
fn a_message_waits_for_half_of_the_time_between_looks_for_each_that_it_needs() {
    const SEEDS: u32 = 300;
    let network = network("mesh 2", 1, false);
    let every = Nanos::from_millis(1);
    // Its receiver goes on at a look. A large message needs two before that: of its receiver, which hears that it is
    // there, and of its sender, which hears that it is asked for.
    for (bytes, looks) in [(1_000, 1.0), (BYTES, 3.0)] {
        let program = program([vec![send(1, 0, bytes)], vec![receive(0, 0), WAIT]]);
        let at_once = times(&network, &program, LookAgain::AT_ONCE);
        let mut late_s = [0.0; 2];
        for seed in (0..SEEDS).map(u64::from) {
            let looking = times(&network, &program, LookAgain { every, seed });
            for ((late_s, with), without) in late_s.iter_mut().zip(looking).zip(at_once) {
                assert!(with >= without, "{with}, and {without} without looks");
                let late = with.saturating_sub(without);
                assert!(late.as_secs_f64() < looks * every.as_secs_f64(), "{late} of {looks}");
                *late_s += late.as_secs_f64();
            }
        }
        // The sum of so many times that are spread evenly: its deviation is a thirtieth of a span at most.
        for late_s in late_s {
            let mean = late_s / f64::from(SEEDS) / every.as_secs_f64();
            assert!((mean - looks / 2.0).abs() < 0.1, "{mean} of {looks} looks");
        }
    }
}

#[test]
fn a_rank_hears_everything_that_has_come_before_it_goes_on() {
    // Rank 0 sends a small message and announces a large one; rank 1 receives the small one first. If it goes on at
    // once, it announces its own large message before it hears of the other, so that both are asked for before
    // either is under way. If it looks later, it hears of the other first and asks for that: its own is asked for behind
    // all data of the other.
    let network = network("mesh 2", 1, false);
    let large = 10 * BYTES;
    let program = program([
        vec![send(1, 1, 1_000), send(1, 2, large), receive(1, 3), WAIT],
        vec![receive(0, 1), WAIT, receive(0, 2), send(0, 3, large), WAIT],
    ]);
    let alone = self::program([vec![send(1, 0, large)], vec![receive(0, 0), WAIT]]);
    let one = times(&network, &alone, LookAgain::AT_ONCE).map(|time| time.as_secs_f64());
    let at_once = times(&network, &program, LookAgain::AT_ONCE).map(|time| time.as_secs_f64());
    for (time, one) in at_once.into_iter().zip(one) {
        assert!(time < 1.3 * one, "{time} s, and {one} s one way");
    }
    let every = Nanos::from_millis(2);
    for seed in 0..20 {
        let looking = times(&network, &program, LookAgain { every, seed });
        for (time, one) in looking.into_iter().zip(one) {
            assert!(time.as_secs_f64() > 1.9 * one, "{time}, and {one} s one way");
        }
    }
}

#[test]
fn looks_are_the_same_under_every_scheduler() {
    let network = network("torus 3x3", 2, false);
    let exchange = |own: u32, by: u32| {
        let other = own ^ by;
        [receive(other, by), send(other, by, BYTES / 4), WAIT]
    };
    let script = |own| {
        let mut script = Script::default();
        script.repeat(
            1,
            [1, 2, 4, 8].into_iter().flat_map(|by| exchange(own, by)).collect::<Vec<_>>(),
        );
        script
    };
    let program = RankProgram::new((0..16).map(script).collect());
    let options = packets(LookAgain { every: Nanos::from_micros(200), seed: 7 });
    let run = |scheduler, threads| {
        let (placement, scheduling) = (placement(&network), Options::new(scheduler, threads));
        packet::run_under(&network, &program, &placement, options, &scheduling).expect("it ends")
    };
    let one = run(Scheduler::Sequential, 1);
    for (scheduler, threads) in [
        (Scheduler::Conservative, 2),
        (Scheduler::Optimistic, 2),
        (Scheduler::Optimistic, 3),
        (Scheduler::Check, 1),
    ] {
        assert_eq!(run(scheduler, threads), one, "{scheduler:?} on {threads}");
    }
}
