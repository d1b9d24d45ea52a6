//! `meikyo fabric plan`: VLANs, their trees, and what they cost.

use clap::Args;
use meikyo_fabric::{Described, Plan, PlannedVlan, Priming, VlanSet, Wiring, plan};
use serde_json::{Value, json};

use super::FileArgs;
use crate::failure::{Answer, Failure};
use crate::output::{self, TextTable};

/// Arguments of `meikyo fabric plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    input: FileArgs,
}

pub(super) fn run(args: &PlanArgs) -> Result<Answer, Failure> {
    let (_, Described { wiring, options }) = super::described(&args.input)?;
    let plan = plan(&wiring, &options).map_err(super::unplannable)?;
    if args.input.json {
        output::print_json(&document(&wiring, &plan))?;
    } else {
        output::print(&text(&wiring, &plan))?;
    }
    Ok(Answer::Yes)
}

fn priming_word(priming: &Priming) -> &'static str {
    match priming {
        Priming::None => "none",
        Priming::Broadcast(_) => "broadcast",
        Priming::Directed(_) => "directed",
    }
}

fn document(wiring: &Wiring, plan: &Plan) -> Value {
    let vlan = |planned: &PlannedVlan| {
        json!({
            "vlan": planned.vlan.id(),
            "trunks": planned.trunks.iter().map(|trunk| super::trunk_name(wiring, *trunk)).collect::<Vec<_>>(),
            "sources": planned.sources.iter().map(|at| &wiring.switches[at.place()].name).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "meikyo.fabric.plan/1",
        "routing": plan.routing.word(),
        "tagging": plan.tagging.word(),
        "hosts": wiring.hosts.len(),
        "switches": wiring.switches.len(),
        "trunks": wiring.trunks.len(),
        "working": plan.working.iter().map(vlan).collect::<Vec<_>>(),
        "fewest": plan.fewest,
        "spare": plan.spare.iter().map(vlan).collect::<Vec<_>>(),
        "management": plan.management.as_ref().map(vlan),
        "spread": plan.spread,
        "priming": priming_word(&plan.priming),
        "table_entries_max": plan.table_entries.iter().max(),
    })
}

fn text(wiring: &Wiring, plan: &Plan) -> String {
    let mut table = TextTable::new(&["VLAN", "for", "trunks", "switches that send in it"]);
    let kinds = [("frames", plan.working.as_slice()), ("failures", plan.spare.as_slice())];
    let management = plan.management.as_slice();
    for (kind, vlans) in kinds.into_iter().chain([("management", management)]) {
        for planned in vlans {
            let sources: Vec<String> =
                planned.sources.iter().map(|at| wiring.switches[at.place()].name.clone()).collect();
            table.row([
                planned.vlan.to_string(),
                kind.to_owned(),
                planned.trunks.len().to_string(),
                meikyo_cluster::fold(&sources),
            ]);
        }
    }
    let vlans: VlanSet = plan.working.iter().map(|planned| planned.vlan).collect();
    let fewest = if plan.fewest { ", and fewer are impossible" } else { "" };
    format!(
        "{} hosts, {} switches, {} trunks; routing {}, the {} chooses the VLAN\n\
         {} working VLANs ({vlans}){fewest}; priming {}; at most {} table entries\n\n{table}",
        wiring.hosts.len(),
        wiring.switches.len(),
        wiring.trunks.len(),
        plan.routing.word(),
        plan.tagging.word(),
        plan.working.len(),
        priming_word(&plan.priming),
        plan.table_entries.iter().max().copied().unwrap_or(0),
    )
}
