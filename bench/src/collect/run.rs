//! One run: farm and collector as processes, a real recording, and the comparison with the truth.

use meikyo_console::benches::collect::Speech;
use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_recording::layout;
use meikyo_units::Nanos;

use crate::bare::{self, BareLoop};
use crate::cluster_text::ClusterText;
use crate::collect::compaction::Watch;
use crate::collect::numbers::Numbers;
use crate::collector::{Collector, CollectorPlan};
use crate::farm_process::{FarmPlan, FarmProcess, device_name};
use crate::machine::load_average;
use crate::placement::Placement;
use crate::progress;
use crate::reading::{self, Intervals};
use crate::values::Values;
use crate::verification::{self, Agents};

/// Spans of the bare loop beside a run.
const BARE_SPAN: Nanos = Nanos::from_secs(5);

/// What is run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Agents that answer.
    pub(crate) agents: u32,
    /// Agents that never do, in the cluster file behind the others.
    pub(crate) dead: u32,
    pub(crate) values: Values,
    pub(crate) every: Nanos,
    pub(crate) span: Nanos,
    pub(crate) speech: Speech,
    pub(crate) realtime: bool,
    pub(crate) cache: String,
    pub(crate) bare: bool,
}

/// Runs it once.
pub(crate) fn once(plan: &Plan) -> Result<Numbers, Failure> {
    let scratch = tempfile::tempdir()?;
    let (truth, recording) = (scratch.path().join("truth"), scratch.path().join("recording"));
    let load_average_1min = load_average();
    let cores = Cores::of_this_machine(plan.realtime);
    let farm = FarmProcess::start(&FarmPlan {
        agents: plan.agents,
        cache: &plan.cache,
        step: plan.every,
        truth: &truth,
        speech: plan.speech,
        placement: cores.farm,
    })?;
    let bare_cpu_us_per_poll = if plan.bare { Some(bare_cost(plan, &farm, cores)?) } else { None };
    let devices = farm.devices(0..plan.agents + plan.dead);
    let (speech, every) = (plan.speech, plan.every);
    let measure = plan.values.measure();
    let file = ClusterText { name: "bench", devices: &devices, speech, every, measure }
        .write(scratch.path())?;
    let mut collector = Collector::start(&CollectorPlan {
        cluster_file: &file,
        recording: &recording,
        span: plan.span,
        placement: cores.collector,
        realtime: plan.realtime,
        freshen: false,
    })?;
    let watch = Watch::start(collector.pid(), layout::stream_dir(&recording, meikyo_snmp::STREAM))?;
    let usage = collector.finish()?;
    farm.finish()?;
    let compactions = watch.finish(&recording, plan.every)?;
    for line in compactions.excess() {
        progress(&line);
    }

    let intervals = Intervals::read(&recording, plan.every)?;
    let verdict = verification::compare(&recording, &truth, plan.values, &farm_agents(plan))?;
    for line in &verdict.examples {
        progress(line);
    }
    Ok(Numbers {
        agents: (plan.agents + plan.dead).into(),
        every: plan.every,
        intervals: intervals.count,
        states: intervals.states,
        stalls: intervals.stalls,
        values_verified: verdict.values_equal,
        values_wrong: verdict.values_wrong,
        completion_us: intervals.kept_us,
        received_us: intervals.complete_us,
        sent_us: intervals.sent_us,
        start_us: intervals.start_us,
        cpu_us_per_poll: usage.cpu.as_secs_f64() * 1e6 / real(verdict.polls.max(1)),
        bytes_per_value: real(reading::bytes_without_summaries(&recording)?)
            / real((verdict.values_equal + verdict.values_wrong).max(1)),
        peak_rss_bytes: usage.peak_rss.get(),
        bare_cpu_us_per_poll,
        load_average_1min,
        compactions,
    })
}

/// The agent of every device; the dead ones have none.
fn farm_agents(plan: &Plan) -> Agents {
    (0..plan.agents).zip(0..).map(|(ordinal, agent)| (device_name(ordinal), agent)).collect()
}

/// CPU time a round trip of the bare loop against the same farm, µs.
fn bare_cost(plan: &Plan, farm: &FarmProcess, cores: Cores) -> Result<f64, Failure> {
    let request = plan.values.request();
    let requests: Vec<_> =
        (0..plan.agents).map(|ordinal| (farm.address(ordinal), request.clone())).collect();
    let rounds = BARE_SPAN.get() / plan.every.get().max(1);
    let cost = bare::run(&BareLoop {
        requests: &requests,
        every: plan.every,
        rounds,
        placement: cores.collector_realtime(plan.realtime),
    })?;
    if cost.answers == 0 {
        return Err(Failure::new("the bare loop got no answer from the farm"));
    }
    if cost.lost > 0 {
        progress(&format!("the bare loop lost {} of {} answers", cost.lost, cost.answers));
    }
    Ok(cost.cpu.as_secs_f64() * 1e6 / real(cost.answers))
}

/// Who runs where: the collector on the first core, the farm on the last.
#[derive(Debug, Clone, Copy)]
struct Cores {
    collector: Placement,
    farm: Placement,
}

impl Cores {
    fn of_this_machine(realtime: bool) -> Self {
        let farm = Placement::elsewhere(realtime);
        // The collector asks for real-time priority itself, for one of its threads.
        Self { collector: Placement { core: farm.core.map(|_| 0), realtime: false }, farm }
    }

    fn collector_realtime(self, realtime: bool) -> Placement {
        Placement { realtime, ..self.collector }
    }
}
