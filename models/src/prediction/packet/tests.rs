//! Trains against the same run with an event for every frame.

use std::sync::Arc;

use meikyo_fabric::{PlanOptions, SwitchModel, Topology, cable_uniform, plan};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use proptest::prelude::*;

use super::host::Program;
use super::known::{PAYLOAD, Shared};
use super::{PacketOptions, PacketRun, run_shared};
use crate::prediction::ranks::number;
use crate::prediction::{
    Deal, LookAgain, Messaging, Network, Op, Placement, RankProgram, Rates, Script,
};

const FRAME_NS: u64 = 12_304;

fn network(topology: &str) -> Network {
    let topology: Topology = topology.parse().expect("a topology");
    let model = SwitchModel::named("powerconnect-6248").expect("a model");
    let wiring = cable_uniform(&topology, &model, 2).expect("enough ports");
    let plan = plan(&wiring, &PlanOptions::new(Some(topology))).expect("a plan");
    let within_host = BitsPerSecond::new(8_000_000_000);
    let rates = Rates { payload_share: 1448.0 / 1538.0, within_host };
    Network::new(&wiring, &plan, rates, 1)
}

/// A message: after how many frames' time of computing it is sent, from where to where, and how much.
type Message = (u64, [prop::sample::Index; 2], u64);

/// All ranks send what they have to in the order of the list, and wait for all at the end.
fn program(ranks: usize, messages: &[Message], step: u64) -> RankProgram {
    let mut ops: Vec<Vec<Op>> = vec![Vec::new(); ranks];
    let ends = |[from, to]: [prop::sample::Index; 2]| [from.index(ranks), to.index(ranks)];
    let messages = messages.iter().map(|&(frames, at, bytes)| (frames, ends(at), bytes));
    let messages = messages.filter(|(_, [from, to], _)| from != to);
    for (_, [from, to], _) in messages.clone() {
        ops[to].push(Op::Receive { from: number(from), tag: 0 });
    }
    for (frames, [from, to], bytes) in messages {
        if frames > 0 {
            let span = Nanos::new(frames * step);
            ops[from].push(Op::Compute { span, what: "compute" });
        }
        ops[from].push(Op::Send { to: number(to), tag: 0, bytes });
    }
    let scripts = ops.into_iter().map(|mut ops| {
        ops.push(Op::Wait { what: "wait" });
        let mut script = Script::default();
        script.repeat(1, ops);
        script
    });
    RankProgram::new(scripts.collect())
}

fn run(
    network: &Network,
    program: &RankProgram,
    options: PacketOptions,
    trains: bool,
) -> (PacketRun, u64) {
    let hosts = network.hosts();
    let placement = Placement::new(Deal::Block, hosts, hosts, 1, 1).expect("a slot for each rank");
    let hosts = (0..hosts).map(|rank| placement.host(rank)).collect();
    let mut shared = Shared::new(network.clone(), &program.pairs(), hosts, options);
    assert!(shared.trains);
    shared.trains = trains;
    let program = Arc::new(Program::new(program.clone(), program.ranks()));
    let scheduling = Options::new(Scheduler::Sequential, 1);
    let run = run_shared(&Arc::new(shared), &program, &scheduling).expect("it ends");
    let events = run.events;
    (PacketRun { events: 0, ..run }, events)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn trains_leave_and_arrive_as_their_frames_do(
        topology in prop::sample::select(vec!["mesh 2", "mesh 4", "tree 3", "torus 3x3"]),
        pause in any::<bool>(),
        port_buffer in 9_000_u64..60_000,
        memory in prop::option::of(20_000_u64..90_000),
        eager_max in prop::sample::select(vec![0, 20_000, 1 << 40]),
        step in prop::sample::select(vec![1_001, FRAME_NS / 2, FRAME_NS]),
        messages in prop::collection::vec(
            (0..30_u64, any::<[prop::sample::Index; 2]>(), 0..300_000_u64),
            1..40,
        ),
    ) {
        let network = network(topology);
        let program = program(network.hosts(), &messages, step);
        let options = PacketOptions {
            messaging: Messaging { latency: Nanos::new(50_000), eager_max: Bytes::new(eager_max), look_again: LookAgain::AT_ONCE },
            hop_delay: Nanos::new(1_000),
            pause,
            port_buffer: Bytes::new(port_buffer),
            memory: memory.map(Bytes::new),
            time_out: Nanos::from_millis(2),
            spoiled_ppm: 0,
            tcp: None,
            shaped: false,
            courses: true,
        };
        let [(one, _), (other, _)] = [true, false].map(|trains| run(&network, &program, options, trains));
        prop_assert_eq!(one, other);
    }
}

#[test]
fn a_message_that_nothing_disturbs_is_a_few_events() {
    // Three lanes, of which the last one has no events; announced, asked for and told.
    let network = network("mesh 2");
    let mut scripts = vec![Script::default(); 4];
    let bytes = 100_000 * u64::from(PAYLOAD);
    scripts[0].repeat(1, vec![Op::Send { to: 3, tag: 0, bytes }, Op::Wait { what: "wait" }]);
    scripts[3].repeat(1, vec![Op::Receive { from: 0, tag: 0 }, Op::Wait { what: "wait" }]);
    let program = RankProgram::new(scripts);
    let options = PacketOptions {
        messaging: Messaging {
            latency: Nanos::new(50_000),
            eager_max: Bytes::new(0),
            look_again: LookAgain::AT_ONCE,
        },
        hop_delay: Nanos::new(1_000),
        pause: true,
        port_buffer: Bytes::new(32_768),
        memory: None,
        time_out: Nanos::from_millis(2),
        spoiled_ppm: 0,
        tcp: None,
        shaped: false,
        courses: false,
    };
    let [(one, events), (other, more)] =
        [true, false].map(|trains| run(&network, &program, options, trains));
    assert_eq!(one, other);
    assert!(events < 30, "{events}");
    assert!(more > 200_000, "{more}");
}
