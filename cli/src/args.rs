//! The command line as typed.

use clap::{Parser, Subcommand};
use meikyo_console::benches::BenchArgs;

use crate::top::TopArgs;
use crate::verbs::agent::AgentArgs;
use crate::verbs::alerts::AlertsArgs;
use crate::verbs::checkpoint::CheckpointArgs;
use crate::verbs::completions::CompletionsArgs;
use crate::verbs::config::ConfigArgs;
use crate::verbs::export::ExportArgs;
use crate::verbs::fabric::FabricArgs;
use crate::verbs::farm::FarmArgs;
use crate::verbs::lab::LabArgs;
use crate::verbs::man::ManArgs;
use crate::verbs::mark::MarkArgs;
use crate::verbs::measure::MeasureArgs;
use crate::verbs::probe::ProbeArgs;
use crate::verbs::profile::ProfileArgs;
use crate::verbs::query::QueryArgs;
use crate::verbs::recording::RecordingArgs;
use crate::verbs::serve::ServeArgs;
use crate::verbs::simulate::SimulateArgs;
use crate::verbs::trace::TraceArgs;

/// What Meikyo is, in two lines of the help.
const ABOUT: &str = "\
Meikyo measures, profiles and predicts clusters of commodity machines and Ethernet,
and keeps their long runs alive.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "meikyo",
    about = ABOUT,
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// One capability or tool a verb.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Measure(MeasureArgs),
    Profile(ProfileArgs),
    Serve(Box<ServeArgs>),
    Top(TopArgs),
    Fabric(FabricArgs),
    Lab(LabArgs),
    Simulate(SimulateArgs),
    Trace(TraceArgs),
    Checkpoint(CheckpointArgs),
    Mark(MarkArgs),
    Alerts(AlertsArgs),
    Recording(RecordingArgs),
    Config(ConfigArgs),
    Probe(ProbeArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Agent(Box<AgentArgs>),
    Farm(Box<FarmArgs>),
    Query(QueryArgs),
    Export(ExportArgs),
    Bench(BenchArgs),
}
