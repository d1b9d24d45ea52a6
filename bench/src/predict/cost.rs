//! What a frame on a cable costs, beside an event of PHOLD on the same kernel in the same run.

use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_fabric::{PlanOptions, Wiring};
use meikyo_models::phold::Phold;
use meikyo_models::prediction::packet::{self, Control, PacketOptions, Stack, Tcp};
use meikyo_models::prediction::{
    Deal, Messaging, Network, Placement, RankProgram, Rates, Script, Steps, variant,
};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};
use serde::Serialize;

use super::now;
use crate::placement::own_usage;
use crate::progress;

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

/// What each host sends to every other.
const BYTES: u64 = 65_536;

/// The cost of the frames of one run.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
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

/// Measures an all-to-all exchange of all hosts, without TCP and with.
pub(super) fn costs(wiring: &Wiring) -> Result<Vec<Cost>, Failure> {
    progress("cost of a frame: PHOLD");
    let mut options = Options::new(Scheduler::Sequential, 1);
    options.until = SimTime::START + PHOLD_END;
    let before = own_usage()?.cpu;
    let outcome = meikyo_sim::run(PHOLD.model(), &options)?;
    let used = own_usage()?.cpu.saturating_sub(before);
    let phold_event_ns = used.as_secs_f64() * 1e9 / real(outcome.events.max(1));
    [false, true].into_iter().map(|tcp| cost(wiring, tcp, phold_event_ns)).collect()
}

fn cost(wiring: &Wiring, tcp: bool, phold_event_ns: f64) -> Result<Cost, Failure> {
    progress(&format!("cost of a frame, TCP {}", if tcp { "on" } else { "off" }));
    let (wiring, plan) = variant(wiring, &PlanOptions::new(None), "torus 4x2", 3)?;
    let within_host = BitsPerSecond::new(4_000_000_000);
    let network =
        Network::new(&wiring, &plan, Rates { payload_share: 1448.0 / 1538.0, within_host }, 1);
    let hosts = network.hosts();
    let placement = Placement::new(Deal::Block, hosts, hosts, 1, 1)?;
    let script = |own: u32, ranks: u32| {
        let mut steps = Steps::of(own);
        (1..ranks).for_each(|by| steps.receive((own + ranks - by) % ranks, 0));
        (1..ranks).for_each(|by| steps.send((own + by) % ranks, 0, BYTES));
        steps.wait("all-to-all");
        let mut script = Script::default();
        script.repeat(1, steps.finish());
        script
    };
    let ranks = u32::try_from(hosts)?;
    let program = RankProgram::new((0..ranks).map(|own| script(own, ranks)).collect());
    let window = Bytes::new(BYTES);
    let options = PacketOptions {
        messaging: Messaging {
            latency: Nanos::from_micros(50),
            eager_max: Bytes::new(BYTES),
            look_again: Nanos::ZERO,
        },
        hop_delay: Nanos::from_micros(3),
        pause: true,
        port_buffer: Bytes::new(262_144),
        memory: None,
        time_out: Nanos::from_millis(200),
        spoiled_ppm: 0,
        tcp: tcp.then_some(Tcp { stack: Stack::Linux26, control: Control::Cubic, window }),
        shaped: false,
        courses: false,
    };
    let (start, before) = (now(), own_usage()?.cpu);
    let run = packet::run(&network, &program, &placement, options)?;
    let usage = own_usage()?;
    let used = usage.cpu.saturating_sub(before);
    let hop_ns = used.as_secs_f64() * 1e9 / real(run.hops.max(1));
    Ok(Cost {
        tcp,
        hops: run.hops,
        events: run.events,
        seconds: start.elapsed().as_secs_f64(),
        hop_ns,
        phold_event_ns,
        ratio: hop_ns / phold_event_ns,
        ratio_max: if tcp { 3.0 } else { 1.5 },
        peak_rss_bytes: usage.peak_rss.get(),
    })
}
