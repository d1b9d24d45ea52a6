//! `meikyo bench agent`: what ten requests a second cost a real `snmpd`, with its caches and without
//! (requirement 3 of the paper: no load on what is measured).

use meikyo_console::benches::agent::AgentCostArgs;
use meikyo_console::benches::collect::Speech;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;

use crate::cluster_text::ClusterText;
use crate::collector::{Collector, CollectorPlan};
use crate::machine::Machine;
use crate::placement::{Placement, wait_until};
use crate::real_agent::{RealAgent, RealAgentError};

/// Share of a core that an agent may take, in per cent, with its caches and without.
const REACH_PERCENT: (f64, f64) = (0.1, 1.0);
/// The values that are asked for.
const MEASURED: [&str; 3] =
    ["interface:lo(in_octets,out_octets)", "disk:/(used_bytes)", "load(load_1min)"];
/// The collector resolves names and fills the agent's caches before the window begins.
const SETTLE: Nanos = Nanos::from_secs(3);

/// Shares of one core, in per cent.
#[derive(Debug, Serialize)]
struct AgentCost {
    schema: &'static str,
    machine: Machine,
    interval_ms: f64,
    window_s: f64,
    idle_core_percent: f64,
    /// Asked for nothing but `sysUpTime.0`: no manager can ask for less.
    floor_core_percent: f64,
    cached_core_percent: f64,
    freshened_core_percent: f64,
}

/// Runs the bench; the answer is whether both shares are within reach.
pub(crate) fn run(args: &AgentCostArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let scratch = tempfile::tempdir()?;
    let mut agent = RealAgent::start(scratch.path(), Placement { core: Some(0), realtime: false })
        .map_err(|error| match error {
            RealAgentError::Missing => {
                Failure::new(error).hint("`apt-get install snmpd`, or `./x bench` does it")
            }
            error => Failure::new(error),
        })?;
    let devices = [("real".into(), ([127, 0, 0, 1], agent.port).into())];
    let idle = share_over(&mut agent, args.span)?;
    let mut polled = |name: &str, measure: &[&str], freshen: bool| -> Result<f64, Failure> {
        let text = ClusterText {
            name: "bench",
            devices: &devices,
            speech: Speech::V2c,
            every: args.every,
            measure,
        };
        let plan = CollectorPlan {
            cluster_file: &text.write(scratch.path())?,
            recording: &scratch.path().join(name),
            span: SETTLE + args.span + Nanos::SECOND,
            placement: Placement::default(),
            realtime: false,
            freshen,
        };
        let collector = Collector::start(&plan)?;
        wait_until(WallTime::now() + SETTLE)?;
        let share = share_over(&mut agent, args.span)?;
        collector.finish()?;
        Ok(share)
    };
    let cost = AgentCost {
        schema: "meikyo.bench.agent/1",
        machine,
        interval_ms: args.every.as_secs_f64() * 1e3,
        window_s: args.span.as_secs_f64(),
        idle_core_percent: idle,
        floor_core_percent: polled("floor", &["uptime"], false)?,
        cached_core_percent: polled("cached", &MEASURED, false)?,
        freshened_core_percent: polled("freshened", &MEASURED, true)?,
    };
    if args.json {
        output::print_json(&cost)?
    } else {
        output::print(&text_of(&cost))?
    }
    let (cached, freshened) = REACH_PERCENT;
    let reached = cost.cached_core_percent <= cached && cost.freshened_core_percent <= freshened;
    Ok(if reached { Answer::Yes } else { Answer::No })
}

/// The agent's share of a core over the next `span`, in per cent.
fn share_over(agent: &mut RealAgent, span: Nanos) -> Result<f64, Failure> {
    let (cpu, begin) = (agent.cpu()?, WallTime::now());
    wait_until(begin + span)?;
    let used = agent.cpu()?.saturating_sub(cpu);
    Ok(used.as_secs_f64() / WallTime::now().since(begin).as_secs_f64() * 100.0)
}

fn text_of(cost: &AgentCost) -> String {
    let (cached, freshened) = REACH_PERCENT;
    format!(
        "{}a real snmpd, asked for 4 objects every {} ms, over {} s each; share of one core:\n  \
         idle       {:.3} %\n  floor      {:.3} %   (sysUpTime.0 alone)\n  \
         polled     {:.3} %   (reach {cached} %)\n  freshened  {:.3} %   (reach {freshened} %)\n",
        cost.machine,
        cost.interval_ms,
        cost.window_s,
        cost.idle_core_percent,
        cost.floor_core_percent,
        cost.cached_core_percent,
        cost.freshened_core_percent
    )
}
