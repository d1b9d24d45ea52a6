//! `meikyo fabric`: VLAN-routed Ethernet planned, proven, configured.

mod bridge;
mod cables;
mod check;
mod configure;
mod deploy;
mod failover;
mod plan;
mod predict;
mod prime;
pub(crate) mod shown;
pub(in crate::verbs) mod site;
mod verify;
mod worksheet;

use std::path::Path;

use clap::{Args, Subcommand};
use meikyo_cluster::{Cluster, load};
use meikyo_console::failure::{Answer, Failure};
use meikyo_fabric::{DescribeError, Described, PlanError, Warning, Wiring, describe};
use serde_json::{Value, json};

use crate::row_arguments::ClusterArgument;
use crate::verbs::config::explained;

/// Plan VLAN-routed Ethernet, prove the plan, and configure switches and hosts.
#[derive(Debug, Args)]
pub(crate) struct FabricArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Plan the VLANs and assign each host to one; show the load of links and tables
    Plan(plan::PlanArgs),
    /// Predict how long a program takes, here and on other topologies
    Predict(predict::PredictArgs),
    /// Prove that the plan, or the switches' configurations, are correct, or show a counterexample
    Check(check::CheckArgs),
    /// Write the configuration of each switch, and of each host that tags its frames
    Configure(configure::ConfigureArgs),
    /// Write the built-in configuration templates, to be edited
    Templates(configure::TemplatesArgs),
    /// Compare the switches' configurations with the plan; exit 1 if they differ
    Diff(configure::DiffArgs),
    /// Plan or carry out the steps from the current settings to the plan; every intermediate state
    /// is checked
    Deploy(deploy::DeployArgs),
    /// Show what to change when a trunk fails; exit 1 if pairs that are still connected would be
    /// lost
    Failover(failover::FailoverArgs),
    /// Read the switches over SNMP and compare VLANs and cables with the plan; exit 1 if they differ
    Verify(verify::VerifyArgs),
    /// Send the frames that teach the switches where this host is, once or periodically
    Prime(prime::PrimeArgs),
    /// List what is plugged into each port
    Cables(cables::CablesArgs),
    /// List which ports are in which VLAN, for switches that are configured in a browser
    Worksheet(worksheet::WorksheetArgs),
    /// Draw the fabric as SVG with selectable VLANs
    Draw(cables::DrawArgs),
}

/// The file, and how to print.
#[derive(Debug, Args)]
struct FileArgs {
    #[command(flatten)]
    cluster: ClusterArgument,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// If the cluster file is wrong, what it describes cannot be built, or the output cannot be written.
pub(crate) fn run(args: &FabricArgs) -> Result<Answer, Failure> {
    match &args.what {
        What::Plan(args) => plan::run(args),
        What::Predict(args) => predict::run(args),
        What::Check(args) => check::run(args),
        What::Configure(args) => configure::run(args),
        What::Templates(args) => configure::write_templates(args),
        What::Diff(args) => configure::diff(args),
        What::Deploy(args) => deploy::run(args),
        What::Failover(args) => failover::run(args),
        What::Verify(args) => verify::run(args),
        What::Prime(args) => prime::run(args),
        What::Cables(args) => cables::list(args),
        What::Worksheet(args) => worksheet::run(args),
        What::Draw(args) => cables::drawing(args),
    }
}

/// The cluster and the fabric that its file describes.
fn described(args: &FileArgs) -> Result<(Cluster, Described), Failure> {
    let hint = "docs/cluster-file.md says what `[fabric]` and `[[links]]` allow";
    let cluster = load(&args.cluster.file).map_err(|error| explained(error, hint.to_owned()))?;
    let described = describe(&cluster)
        .map_err(|error| Failure::new(misdescribed(&args.cluster.file, &error)).hint(hint))?;
    Ok((cluster, described))
}

/// What is wrong with the fabric of a file, with its place as the file's other mistakes have it.
pub(in crate::verbs) fn misdescribed(file: &Path, error: &DescribeError) -> String {
    let file = file.display();
    match error {
        DescribeError::Missing => format!("{file}: {error}"),
        DescribeError::Value { place, key, text } => {
            format!("{file}:{}: {key}: {text}", place.line)
        }
        DescribeError::Cabling { place, text } => format!("{file}:{}: {text}", place.line),
    }
}

/// Warnings for programs.
fn shown_warnings(wiring: &Wiring, warnings: &[Warning]) -> Vec<Value> {
    let shown = |warning: &Warning| json!({"kind": warning.kind(), "text": warning.in_words(wiring).to_string()});
    warnings.iter().map(shown).collect()
}

fn unplannable(error: PlanError) -> Failure {
    Failure::new(error).hint("docs/fabric.md says which routings and models there are")
}
