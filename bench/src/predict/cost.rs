//! What a frame on a cable costs, beside an event of PHOLD on the same kernel in the same run, what a
//! second thread saves, and what an exchange takes by flows, by packets and by SMPI ([`smpi`]).
//!
//! Every run is checked: each host must have got what all others sent it, a shift of long messages around all
//! hosts must take what its frames take one after the other, and two threads must come to the same result as
//! one.

mod smpi;

use std::sync::atomic::{AtomicU32, Ordering};

use meikyo_console::failure::Failure;
use meikyo_console::output::{self, TextTable, real};
use meikyo_console::side_by_side;
use meikyo_fabric::{PlanOptions, SwitchModel, Topology, Wiring, cable_uniform, plan};
use meikyo_models::phold::Phold;
use meikyo_models::prediction::flow::{self, FlowOptions};
use meikyo_models::prediction::packet::{self, Control, PacketOptions, PacketRun, Stack, Tcp};
use meikyo_models::prediction::{
    Congestion, Deal, LanePlace, LookAgain, Messaging, Network, Placement, RankProgram, Rates,
    Script, Steps, variant,
};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};
use serde::Serialize;

use super::now;
use crate::placement::own_usage;
use crate::progress;
use crate::statistics::Observations;
use smpi::Smpi;

/// PHOLD with 1,024 LPs and 8 events each, of which a tenth go to any LP, for so many of its seconds.
const PHOLD: Phold = Phold {
    lps: 1024,
    events_per_lp: 8,
    remote: 0.1,
    lookahead: Nanos::from_millis(100),
    mean: Nanos::SECOND,
    work: 0,
    seed: 1,
    series: false,
};
const PHOLD_END: Nanos = Nanos::from_secs(250);

/// What each host sends to every other, and to the next one where that is all.
const BYTES: u64 = 65_536;
const BYTES_SHIFTED: u64 = 10_000 * PAYLOAD;
/// Data of a full frame, and what it takes on a cable in ns.
const PAYLOAD: u64 = 1448;
const FRAME_NS: u64 = 12_304;
const HOP_DELAY: Nanos = Nanos::from_micros(3);
const LATENCY: Nanos = Nanos::from_micros(50);

/// The fabric of 64 switches, and hosts on each.
const MANY: &str = "torus 8x8";
const HOSTS_OF_MANY: usize = 4;
/// How often it is run on one thread and on two.
const ROUNDS: usize = 5;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    /// From each host to every other, all begun at once.
    AllToAll,
    /// The same one after the other, to the next host first, as MPI libraries exchange messages of this size.
    Pairwise,
    /// A long message from each host to the next one.
    Shift,
}

/// The cost of the frames of one run.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    pub(super) traffic: &'static str,
    pub(super) tcp: bool,
    pub(super) hops: u64,
    pub(super) events: u64,
    pub(super) seconds: f64,
    pub(super) hop_ns: f64,
    pub(super) phold_event_ns: f64,
    /// How many events of PHOLD one hop costs, and how many it may.
    pub(super) ratio: f64,
    pub(super) ratio_max: f64,
    /// The greatest size of the whole process until its end.
    pub(super) peak_rss_bytes: u64,
}

/// The same run on one thread and on two, several times, alternating.
#[derive(Debug, Serialize)]
pub(super) struct Threads {
    pub(super) topology: &'static str,
    pub(super) hosts: usize,
    pub(super) hops: u64,
    pub(super) rounds: Vec<Round>,
    /// The median of the rounds.
    pub(super) speedup: f64,
    pub(super) speedup_min: f64,
}

/// One run on one thread, and one on two.
#[derive(Debug, Serialize)]
pub(super) struct Round {
    pub(super) seconds_one: f64,
    pub(super) seconds_two: f64,
    pub(super) speedup: f64,
    /// How long a cache line takes to another thread and back, before the run on two threads and after it: hosts of
    /// virtual machines move their processors, so that they share a cache at one time and none at another. Nothing
    /// where both threads share one core.
    pub(super) round_trips_ns: Option<[f64; 2]>,
}

/// An all-to-all exchange of all hosts, pairwise, by three simulators in turn.
#[derive(Debug, Serialize)]
pub(super) struct Exchange {
    pub(super) flow: Simulated,
    pub(super) packet: Simulated,
    /// Nothing where `SimGrid` is not installed.
    pub(super) smpi: Option<Simulated>,
}

/// What a simulator took, round by round, and what it says that the exchange takes.
#[derive(Debug, Serialize)]
pub(super) struct Simulated {
    pub(super) rounds: Vec<f64>,
    pub(super) seconds: f64,
    /// What `seconds`, their median, may be.
    pub(super) seconds_max: Option<f64>,
    pub(super) predicted_s: f64,
}

impl Simulated {
    fn new(runs: &[(Nanos, f64)], seconds_max: Option<f64>) -> Self {
        let rounds: Vec<f64> = runs.iter().map(|(_, seconds)| *seconds).collect();
        let seconds = Observations::new(rounds.clone()).median().expect("there are rounds");
        let predicted_s = runs[0].0.as_secs_f64();
        Self { rounds, seconds, seconds_max, predicted_s }
    }

    fn reached(&self) -> bool {
        self.seconds_max.is_none_or(|most| self.seconds <= most)
    }
}

/// All that is measured here.
#[derive(Debug, Serialize)]
pub(super) struct Costs {
    #[serde(rename = "costs")]
    pub(super) rows: Vec<Cost>,
    pub(super) exchange: Exchange,
    pub(super) threads: Threads,
}

/// Measures all-to-all exchanges of all hosts, without TCP and with, a shift, and one of the former on two threads.
pub(super) fn costs(wiring: &Wiring) -> Result<Costs, Failure> {
    progress("cost of a frame: PHOLD");
    let mut options = Options::new(Scheduler::Sequential, 1);
    options.until = SimTime::START + PHOLD_END;
    let before = own_usage()?.cpu;
    let outcome = meikyo_sim::run(PHOLD.model(), &options)?;
    let used = own_usage()?.cpu.saturating_sub(before);
    let phold_event_ns = used.as_secs_f64() * 1e9 / real(outcome.events.max(1));
    let (wiring, plan) = variant(wiring, &PlanOptions::new(None), "torus 4x2", 3)?;
    let network = Network::new(&wiring, &plan, rates(), 1);
    let kinds = [
        (Traffic::Pairwise, false),
        (Traffic::Pairwise, true),
        (Traffic::AllToAll, false),
        (Traffic::AllToAll, true),
        (Traffic::Shift, false),
    ];
    let rows = kinds.into_iter().map(|kind| cost(&network, kind, phold_event_ns));
    let rows = rows.collect::<Result<_, _>>()?;
    Ok(Costs { rows, exchange: exchange(&network)?, threads: threads()? })
}

/// The pairwise exchange without TCP, several times by each simulator.
fn exchange(network: &Network) -> Result<Exchange, Failure> {
    let hosts = network.hosts();
    let placement = Placement::new(Deal::Block, hosts, hosts, 1, 1)?;
    let program = program(hosts, Traffic::Pairwise)?;
    let packets = options(false);
    let messaging = packets.messaging;
    let streams_max = usize::try_from(packets.port_buffer.get() / BYTES)?;
    let window = Bytes::new(BYTES);
    let congestion = Congestion { streams_max, pause: true, full_share: 1.0, window };
    let flows = FlowOptions { messaging, congestion, patience: 0, courses: false };
    let rate = real(BitsPerSecond::GIGABIT.get()) / 8.0;
    let smpi = Smpi::prepare(network, rate, HOP_DELAY, BYTES)?;
    let [mut flow, mut packet, mut by_smpi] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        progress("an exchange by flows, by packets and by SMPI");
        let start = now();
        let run = flow::run(network, program.actors(&placement), flows)?;
        flow.push((run.time, start.elapsed().as_secs_f64()));
        let start = now();
        let run = packet::run(network, &program, &placement, packets)?;
        packet.push((run.time, start.elapsed().as_secs_f64()));
        verify(network, (Traffic::Pairwise, false), &run)?;
        if let Some(smpi) = &smpi {
            let run = smpi.run()?;
            by_smpi.push((run.time, run.seconds));
        }
    }
    Ok(Exchange {
        flow: Simulated::new(&flow, Some(0.5)),
        packet: Simulated::new(&packet, Some(1.0)),
        smpi: smpi.map(|_| Simulated::new(&by_smpi, None)),
    })
}

fn rates() -> Rates {
    let within_host = BitsPerSecond::new(4_000_000_000);
    Rates { payload_share: 1448.0 / 1538.0, within_host }
}

fn options(tcp: bool) -> PacketOptions {
    let window = Bytes::new(BYTES);
    PacketOptions {
        messaging: Messaging {
            latency: LATENCY,
            eager_max: Bytes::new(1 << 30),
            look_again: LookAgain::AT_ONCE,
        },
        hop_delay: HOP_DELAY,
        pause: true,
        port_buffer: Bytes::new(262_144),
        memory: None,
        time_out: Nanos::from_millis(200),
        spoiled_ppm: 0,
        tcp: tcp.then_some(Tcp { stack: Stack::Linux26, control: Control::Cubic, window }),
        shaped: false,
        courses: false,
    }
}

/// What all hosts do, one rank each.
fn program(hosts: usize, traffic: Traffic) -> Result<RankProgram, Failure> {
    let ranks = u32::try_from(hosts)?;
    let script = |own: u32| {
        let mut steps = Steps::of(own);
        let (most, bytes) = match traffic {
            Traffic::AllToAll | Traffic::Pairwise => (ranks, BYTES),
            Traffic::Shift => (2, BYTES_SHIFTED),
        };
        let receive = |steps: &mut Steps, by| steps.receive((own + ranks - by) % ranks, 0);
        let send = |steps: &mut Steps, by| steps.send((own + by) % ranks, 0, bytes);
        if traffic == Traffic::Pairwise {
            for by in 1..most {
                receive(&mut steps, by);
                send(&mut steps, by);
                steps.wait("exchange");
            }
        } else {
            (1..most).for_each(|by| receive(&mut steps, by));
            (1..most).for_each(|by| send(&mut steps, by));
            steps.wait("exchange");
        }
        let mut script = Script::default();
        script.repeat(1, steps.finish());
        script
    };
    Ok(RankProgram::new((0..ranks).map(script).collect()))
}

fn cost(
    network: &Network,
    (traffic, tcp): (Traffic, bool),
    phold_event_ns: f64,
) -> Result<Cost, Failure> {
    progress(&format!("cost of a frame, {traffic:?}, TCP {}", if tcp { "on" } else { "off" }));
    let hosts = network.hosts();
    let placement = Placement::new(Deal::Block, hosts, hosts, 1, 1)?;
    let program = program(hosts, traffic)?;
    let (start, before) = (now(), own_usage()?.cpu);
    let run = packet::run(network, &program, &placement, options(tcp))?;
    let usage = own_usage()?;
    let used = usage.cpu.saturating_sub(before);
    let seconds = start.elapsed().as_secs_f64();
    verify(network, (traffic, tcp), &run)?;
    let hop_ns = used.as_secs_f64() * 1e9 / real(run.hops.max(1));
    Ok(Cost {
        traffic: match traffic {
            Traffic::AllToAll => "all-to-all, 64 KiB, at once",
            Traffic::Pairwise => "all-to-all, 64 KiB, pairwise",
            Traffic::Shift => "shift, 13.8 MiB",
        },
        tcp,
        hops: run.hops,
        events: run.events,
        seconds,
        hop_ns,
        phold_event_ns,
        ratio: hop_ns / phold_event_ns,
        ratio_max: if tcp { 3.0 } else { 1.5 },
        peak_rss_bytes: usage.peak_rss.get(),
    })
}

/// Whether every host got what was sent to it, and a shift took what it takes.
fn verify(
    network: &Network,
    (traffic, tcp): (Traffic, bool),
    run: &PacketRun,
) -> Result<(), Failure> {
    let hosts = network.hosts();
    let wanted = match traffic {
        Traffic::AllToAll | Traffic::Pairwise => BYTES * (u64::try_from(hosts)? - 1),
        Traffic::Shift => BYTES_SHIFTED,
    };
    let mut got = vec![0; hosts];
    for (lane, carried) in network.lanes().iter().zip(&run.carried) {
        if let LanePlace::ToHost { host, .. } = lane.place {
            got[host] += carried.get();
        }
    }
    // TCP sends some frames again that a long queue holds back.
    if got.iter().any(|got| *got < wanted || *got > wanted && !tcp) {
        return Err(Failure::new("wrong: a host has not got what was sent to it"));
    }
    if traffic == Traffic::Shift {
        let lanes = (0..hosts).map(|host| {
            let (to, mut lanes) = ((host + 1) % hosts, Vec::new());
            let label = meikyo_models::prediction::connection(host, to);
            network.route(host, to, label, &mut lanes);
            lanes.len()
        });
        // No two messages share a cable: the longest way decides.
        let lanes = u64::try_from(lanes.max().unwrap_or(0))?;
        let frames = BYTES_SHIFTED / PAYLOAD;
        let hop = FRAME_NS + HOP_DELAY.get();
        let time = lanes * hop + (frames - 1) * FRAME_NS + LATENCY.get();
        if run.time.get() != time {
            let text = format!("wrong: a shift takes {} and not {}", run.time, Nanos::new(time));
            return Err(Failure::new(text));
        }
    }
    Ok(())
}

/// An exchange over many switches on one thread and on two.
fn threads() -> Result<Threads, Failure> {
    let topology: Topology = MANY.parse()?;
    let model = SwitchModel::named("generic-256k").expect("it is built in");
    let wiring = cable_uniform(&topology, &model, HOSTS_OF_MANY)?;
    let plan = plan(&wiring, &PlanOptions::new(Some(topology)))?;
    let network = Network::new(&wiring, &plan, rates(), 1);
    let hosts = network.hosts();
    let placement = Placement::new(Deal::Block, hosts, hosts, 1, 1)?;
    let program = program(hosts, Traffic::AllToAll)?;
    let run = |scheduler, threads| -> Result<(PacketRun, f64), Failure> {
        progress(&format!("{MANY} on {threads} threads"));
        let start = now();
        let scheduling = Options::new(scheduler, threads);
        let run = packet::run_under(&network, &program, &placement, options(false), &scheduling)?;
        Ok((run, start.elapsed().as_secs_f64()))
    };
    let (mut rounds, mut hops) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (one, seconds_one) = run(Scheduler::Sequential, 1)?;
        let before = round_trip_ns();
        let (two, seconds_two) = run(Scheduler::Conservative, 2)?;
        let round_trips_ns = before.zip(round_trip_ns()).map(|(before, after)| [before, after]);
        verify(&network, (Traffic::AllToAll, false), &one)?;
        if one != two {
            return Err(Failure::new("wrong: two threads come to another result than one"));
        }
        hops = one.hops;
        let speedup = seconds_one / seconds_two;
        rounds.push(Round { seconds_one, seconds_two, speedup, round_trips_ns });
    }
    let speedups = rounds.iter().map(|round: &Round| round.speedup).collect();
    let speedup = Observations::new(speedups).median().expect("there are rounds");
    Ok(Threads { topology: MANY, hosts, hops, rounds, speedup, speedup_min: 1.5 })
}

/// What a cache line takes to a thread on another core and back, where there is one.
fn round_trip_ns() -> Option<f64> {
    const TRIPS: u32 = 200_000;
    if side_by_side::cores() < 2 {
        return None;
    }
    let (there, back) = (Apart(AtomicU32::new(0)), Apart(AtomicU32::new(0)));
    let wait = |Apart(place): &Apart, trip| {
        while place.load(Ordering::Acquire) != trip {
            std::hint::spin_loop();
        }
    };
    let nanos = std::thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 1..=TRIPS {
                wait(&there, trip);
                back.0.store(trip, Ordering::Release);
            }
        });
        let start = now();
        for trip in 1..=TRIPS {
            there.0.store(trip, Ordering::Release);
            wait(&back, trip);
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(TRIPS)
    });
    Some(nanos)
}

/// A number on cache lines of its own.
#[repr(align(128))]
struct Apart(AtomicU32);

impl Costs {
    /// Whether no hop costs more than it may, and the second thread saves what it should.
    pub(super) fn reached(&self) -> bool {
        self.rows.iter().all(|row| row.ratio <= row.ratio_max)
            && self.threads.speedup >= self.threads.speedup_min
            && self.exchange.flow.reached()
            && self.exchange.packet.reached()
    }
}

/// The costs in words.
pub(super) fn text(costs: &Costs) -> String {
    let mut table = TextTable::new(&[
        "225 hosts, torus 4x2 (3 links)",
        "TCP",
        "hops",
        "events",
        "seconds",
        "ns a hop",
        "ns an event of PHOLD",
        "ratio",
        "at most",
        "peak memory",
    ]);
    for cost in &costs.rows {
        table.row([
            cost.traffic.to_owned(),
            if cost.tcp { "on" } else { "off" }.to_owned(),
            cost.hops.to_string(),
            cost.events.to_string(),
            format!("{:.2}", cost.seconds),
            format!("{:.0}", cost.hop_ns),
            format!("{:.0}", cost.phold_event_ns),
            format!("{:.2}", cost.ratio),
            format!("{:.1}", cost.ratio_max),
            output::bytes_text(cost.peak_rss_bytes),
        ]);
    }
    let threads = &costs.threads;
    let mut rounds = TextTable::new(&[
        "one thread, s",
        "two, s",
        "faster by",
        "a cache line there and back before, ns",
        "after",
    ]);
    for round in &threads.rounds {
        let trips = round.round_trips_ns.map(|trips| trips.map(|nanos| format!("{nanos:.0}")));
        let [before, after] = trips.unwrap_or_default();
        rounds.row([
            format!("{:.2}", round.seconds_one),
            format!("{:.2}", round.seconds_two),
            format!("{:.2} x", round.speedup),
            before,
            after,
        ]);
    }
    let exchange = exchange_table(&costs.exchange);
    format!(
        "{table}\n{exchange}\n{}, {} hosts, all-to-all at once, {} hops: median {:.2} x on two threads ({:.1} x aimed at)\n{rounds}",
        threads.topology, threads.hosts, threads.hops, threads.speedup, threads.speedup_min,
    )
}

fn exchange_table(exchange: &Exchange) -> TextTable {
    let mut table = TextTable::new(&[
        "all-to-all, 64 KiB, pairwise",
        "seconds, median",
        "at most",
        "all rounds",
        "predicted, s",
    ]);
    let Exchange { flow, packet, smpi } = exchange;
    for (name, simulated) in
        [("flow", Some(flow)), ("packet", Some(packet)), ("SMPI", smpi.as_ref())]
    {
        let Some(Simulated { rounds, seconds, seconds_max, predicted_s }) = simulated else {
            let lacking = [name, "not installed (`apt-get install libsimgrid-dev`)", "", "", ""];
            table.row(lacking.map(str::to_owned));
            continue;
        };
        let rounds: Vec<String> = rounds.iter().map(|seconds| format!("{seconds:.2}")).collect();
        table.row([
            name.to_owned(),
            format!("{seconds:.2}"),
            seconds_max.map_or_else(String::new, |most| format!("{most:.1}")),
            rounds.join(", "),
            format!("{predicted_s:.4}"),
        ]);
    }
    table
}
