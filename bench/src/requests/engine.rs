//! The engine's side: the real collector and a real recording in this process, since a cluster file
//! does not let one agent be asked as a thousand devices.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use meikyo_console::benches::collect::Speech;
use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_recording::{Kind, StreamOptions, StreamWriter};
use meikyo_snmp::collector::{Collector, CollectorOptions, Command, Ends};
use meikyo_snmp::plan::DevicePlan;
use meikyo_snmp::poll::{DeviceSpec, Pace};
use meikyo_snmp::system::Waker;
use meikyo_snmp::{Client, ClientOptions, Credentials, resolve, tables};
use meikyo_units::{Nanos, WallTime};

use crate::cluster_text::ClusterText;
use crate::farm_process::FarmProcess;
use crate::paper::requests::EACH;
use crate::placement::wait_until;
use crate::reading::Intervals;
use crate::values::Values;
use crate::verification::Agents;

/// Requests to each agent in one interval.
const EACH_INTERVAL: u32 = 1_000;
/// Span of an interval; far more than it takes.
const EVERY: Nanos = Nanos::from_millis(200);

/// What the engine did.
#[derive(Debug)]
pub(crate) struct EngineRun {
    /// From the due instants until everything was kept, over all intervals.
    pub(crate) seconds: f64,
    /// What it kept, to be compared with the farm's truth, and the agent of each of its devices.
    pub(crate) recording: PathBuf,
    pub(crate) agents: Agents,
    /// The objects of a request, for the other side.
    pub(crate) objects: Vec<String>,
}

/// Asks, keeps, and compares with the farm's truth.
pub(crate) fn run(farm: &FarmProcess, scratch: &Path) -> Result<EngineRun, Failure> {
    let measure = Values::Five.measure();
    let (specs, plans) = asked_often(farm, scratch, measure)?;
    let recording = scratch.join("recording");
    let options = StreamOptions::COLLECTOR;
    let writer =
        StreamWriter::open(&recording, Kind::Measured, "snmp", tables::schemas(), options)?;
    let (commands, to_collector) = mpsc::channel();
    let (notices, _notices) = mpsc::channel();
    let (status, _status) = mpsc::sync_channel(1);
    let waker = Arc::new(Waker::new()?);
    let ends = Ends { commands: to_collector, notices, status, waker: Arc::clone(&waker) };
    let options = CollectorOptions { pace: Pace::AtOnce, realtime: false };
    let mut collector = Collector::new(writer, &specs, options, "bench", ends)?;
    // The first half of the devices is the first agent.
    let half = usize::try_from(EACH_INTERVAL)?;
    let agents =
        specs.iter().enumerate().map(|(at, spec)| (spec.name.clone(), at / half)).collect();
    for (ordinal, plan) in (0..).zip(plans) {
        collector.poller().set_plan(WallTime::now(), ordinal, plan);
    }
    let intervals = EACH.div_ceil(EACH_INTERVAL.into());
    let thread = collector.start()?;
    // One more, for the interval that has begun already, and a half, so that the last one ends.
    let half = Nanos::new(EVERY.get() / 2);
    wait_until(WallTime::now().floor(EVERY) + EVERY * (intervals + 1) + half)?;
    commands.send(Command::Stop)?;
    waker.wake();
    let writer = thread.join().map_err(|_| Failure::new("the collector's thread panicked"))?;
    writer.close()?;

    let kept = Intervals::read(&recording, EVERY)?;
    let asked = kept.count * 2 * u64::from(EACH_INTERVAL);
    if kept.states.ok != asked {
        let states = kept.states;
        return Err(Failure::new(format!("of {asked} requests not all were ok: {states:?}")));
    }
    let mean_us = kept.kept_us.mean().ok_or_else(|| Failure::new("no interval was kept"))?;
    Ok(EngineRun {
        seconds: mean_us * real(intervals) / 1e6,
        recording,
        agents,
        objects: Values::Five.object_list(),
    })
}

/// The two agents of the farm, each as many devices as it is asked in one interval.
fn asked_often(
    farm: &FarmProcess,
    scratch: &Path,
    measure: &[&str],
) -> Result<(Vec<DeviceSpec>, Vec<DevicePlan>), Failure> {
    let devices = farm.devices(0..2);
    let text = ClusterText {
        name: "bench",
        devices: &devices,
        speech: Speech::V2c,
        every: EVERY,
        measure,
    };
    let cluster = meikyo_cluster::load(&text.write(scratch)?)?;
    let (mut specs, mut plans) = (Vec::new(), Vec::new());
    for device in &cluster.devices {
        let credentials = Credentials::resolve(&device.snmp.access, scratch)?;
        let mut client = Client::connect(
            device.address,
            credentials.clone(),
            ClientOptions { timeout: Nanos::SECOND, retries: 3 },
        )?;
        let mut walked = Vec::new();
        for subtree in resolve::walks_for(device) {
            walked.extend(client.walk(&subtree)?);
        }
        let (plan, _) = resolve::plan(device, &walked);
        for number in 0..EACH_INTERVAL {
            let name = format!("{}-{number}", device.name);
            plans.push(DevicePlan { name: name.clone(), ..plan.clone() });
            specs.push(DeviceSpec {
                name,
                address: device.address,
                credentials: credentials.clone(),
                interval: EVERY,
                timeout: device.snmp.timeout,
                rate_max: device.snmp.rate_max,
            });
        }
    }
    Ok((specs, plans))
}
