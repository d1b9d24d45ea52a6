//! `meikyo fabric cables` and `draw`: for the person who plugs, and for the one who looks.

use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_fabric::{Cable, CableEnd, CableList, Described, cables, draw};
use serde_json::{Value, json};

use super::{FileArgs, site};
use crate::row_arguments::ClusterArgument;

/// Arguments of `meikyo fabric cables`.
#[derive(Debug, Args)]
pub(super) struct CablesArgs {
    #[command(flatten)]
    input: FileArgs,
    /// Only this switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
}

/// Arguments of `meikyo fabric draw`.
#[derive(Debug, Args)]
pub(super) struct DrawArgs {
    #[command(flatten)]
    cluster: ClusterArgument,
    /// The SVG file; standard output by default
    #[arg(long, value_name = "SVG")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

pub(super) fn list(args: &CablesArgs) -> Result<Answer, Failure> {
    let (_, Described { wiring, .. }) = super::described(&args.input)?;
    let named = args.switch.as_ref().map(|name| site::switch_named(&wiring, name));
    let switch = named.transpose()?;
    if !args.input.json {
        output::print(&CableList { wiring: &wiring, switch }.to_string())?;
        return Ok(Answer::Yes);
    }
    let all = (0..wiring.switches.len()).map(meikyo_fabric::SwitchId::new);
    let switches: Vec<Value> = all
        .filter(|own| switch.is_none_or(|only| only == *own))
        .map(|own| {
            let cable = |cable: Cable| match cable.to {
                CableEnd::Host(host) => {
                    json!({ "port": cable.port.0, "host": wiring.hosts[host.place()].name })
                }
                CableEnd::Switch { switch, port, .. } => json!({
                    "port": cable.port.0,
                    "switch": wiring.switches[switch.place()].name,
                    "switch_port": port.0,
                }),
            };
            let list: Vec<Value> = cables(&wiring, own).into_iter().map(cable).collect();
            json!({ "switch": wiring.switches[own.place()].name, "cables": list })
        })
        .collect();
    output::print_json(&json!({ "schema": "meikyo.fabric.cables/1", "switches": switches }))?;
    Ok(Answer::Yes)
}

pub(super) fn drawing(args: &DrawArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&FileArgs { cluster: args.cluster.clone(), json: false })?;
    let layout = planned.options.topology.as_ref().map(|topology| topology.layout());
    let svg = draw(&planned.wiring, &planned.configuration, layout.as_ref());
    match &args.out {
        None => output::print_document(&svg)?,
        Some(path) => {
            if !args.force {
                site::refuse_existing(std::iter::once(path.as_path()))?;
            }
            std::fs::write(path, svg).map_err(|error| {
                Failure::new(format!("cannot write {}: {error}", path.display()))
            })?;
        }
    }
    Ok(Answer::Yes)
}
