//! `meikyo fabric failover`: what to do when a trunk fails.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::dialect::SwitchState;
use meikyo_fabric::{
    CheckOptions, Failover, FailoverError, HostId, ManagedFrom, TrunkId, Verdict, check,
    plan_failover,
};
use serde_json::{Value, json};

use super::FileArgs;
use super::site::{self, Planned, TextArgs};

/// Arguments of `meikyo fabric failover`.
#[derive(Debug, Args)]
pub(super) struct FailoverArgs {
    #[command(flatten)]
    input: FileArgs,
    #[command(flatten)]
    texts: TextArgs,
    /// Show the changes and commands for a failure of the trunk between these switches [default:
    /// every trunk]
    #[arg(long, value_name = "SWITCH:SWITCH")]
    link: Option<String>,
    /// Do not print the commands
    #[arg(long)]
    no_texts: bool,
}

/// The plan for one trunk, and what the checker says of it.
struct Case {
    trunk: TrunkId,
    plan: Result<Failover, FailoverError>,
    fault: Option<String>,
}

pub(super) fn run(args: &FailoverArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    planned.prove(&planned.configuration)?;
    let trunks = match &args.link {
        Some(link) => site::trunks_between(&planned.wiring, link)?,
        None => (0..planned.wiring.trunks.len()).map(TrunkId::new).collect(),
    };
    let managed = planned.management().zip(planned.options.manager).map(|(vlan, manager)| {
        ManagedFrom { vlan, switch: planned.wiring.hosts[manager.place()].switch }
    });
    let cases: Vec<Case> = trunks.iter().map(|trunk| case(&planned, *trunk, managed)).collect();
    let good = cases.iter().all(|case| case.plan.is_ok() && case.fault.is_none());
    if args.input.json {
        let trunks: Vec<Value> = cases.iter().map(|case| document(&planned, case)).collect();
        output::print_json(&json!({ "schema": "meikyo.fabric.failover/1", "trunks": trunks }))?;
    } else if args.link.is_none() {
        output::print(&table(&planned, &cases))?;
    } else {
        for case in &cases {
            output::print(&in_words(&planned, case))?;
            if let (Ok(plan), false) = (&case.plan, args.no_texts) {
                output::print(&to_type(&planned, plan, &args.texts)?)?;
            }
        }
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}

fn case(planned: &Planned, trunk: TrunkId, managed: Option<ManagedFrom>) -> Case {
    let Planned { wiring, configuration, .. } = planned;
    let plan = plan_failover(wiring, configuration, trunk, managed);
    let fault = plan.as_ref().ok().and_then(|plan| {
        let after = plan.applied(wiring, configuration);
        let report = check(wiring, &after, &CheckOptions::failed(trunk));
        let fault = report.faults.first().map(|own| own.in_words(wiring).to_string());
        (report.verdict() == Verdict::Refused).then(|| fault.unwrap_or_default())
    });
    Case { trunk, plan, fault }
}

fn names(planned: &Planned, hosts: &[HostId]) -> String {
    let names: Vec<String> = hosts.iter().map(|host| planned.host_name(*host).to_owned()).collect();
    meikyo_cluster::fold(&names)
}

fn table(planned: &Planned, cases: &[Case]) -> String {
    let mut table = TextTable::new(&["trunk", "hosts moved", "VLANs", "lost", "checked"]);
    for case in cases {
        let name = planned.wiring.trunk_name(case.trunk);
        match &case.plan {
            Err(error) => {
                table.row([name, String::new(), String::new(), String::new(), error.to_string()])
            }
            Ok(plan) => {
                let to: meikyo_fabric::VlanSet = plan.moves.iter().map(|own| own.to).collect();
                let parts: Vec<String> =
                    plan.parts.iter().map(|part| part.len().to_string()).collect();
                let lost = match parts.len() {
                    0 => "none".to_owned(),
                    _ => format!("pairs between parts of {} hosts", parts.join(" and ")),
                };
                let verdict = case.fault.clone().unwrap_or_else(|| "good".to_owned());
                table.row([name, plan.moves.len().to_string(), to.to_string(), lost, verdict]);
            }
        }
    }
    table.to_string()
}

fn in_words(planned: &Planned, case: &Case) -> String {
    let name = planned.wiring.trunk_name(case.trunk);
    let plan = match &case.plan {
        Ok(plan) => plan,
        Err(error) => return format!("{name}: {error}\n"),
    };
    let mut text = format!("{name} has failed: {} hosts move\n", plan.moves.len());
    let mut table = TextTable::new(&["switch", "port", "host", "from VLAN", "to VLAN"]);
    for own in &plan.moves {
        let host = &planned.wiring.hosts[own.host.place()];
        let ports: Vec<String> = host.ports.iter().map(ToString::to_string).collect();
        table.row([
            planned.name(host.switch).to_owned(),
            ports.join("+"),
            host.name.clone(),
            own.from.to_string(),
            own.to.to_string(),
        ]);
    }
    if !plan.moves.is_empty() {
        text += &table.to_string();
    }
    if !plan.parts.is_empty() {
        text += "hosts of different parts lose each other:\n";
        for part in &plan.parts {
            text += &format!("  {}\n", names(planned, part));
        }
    }
    if !plan.unmanaged.is_empty() {
        let cut: Vec<String> =
            plan.unmanaged.iter().map(|own| planned.name(*own).to_owned()).collect();
        text += &format!(
            "not reachable in the management VLAN meanwhile: {}\n",
            meikyo_cluster::fold(&cut)
        );
    }
    text + &match &case.fault {
        None => "checked: good\n".to_owned(),
        Some(fault) => format!("checked: refused: {fault}\n"),
    }
}

/// What to type on each switch that has hosts to move.
fn to_type(planned: &Planned, plan: &Failover, texts: &TextArgs) -> Result<String, Failure> {
    let templates = texts.templates()?;
    let after = plan.applied(&planned.wiring, &planned.configuration);
    let mut all = String::new();
    for switch in planned.switches() {
        let [was, is] = [&planned.configuration, &after].map(|own| {
            SwitchState::managed(own.switches[switch.place()].clone(), planned.management())
        });
        if was != is {
            let dialect = planned.dialect(switch, texts)?;
            let text = templates.render_change(dialect, &planned.wiring, switch, &was, &is);
            all += &format!("\n{}", text.map_err(Failure::new)?);
        }
    }
    Ok(all)
}

fn document(planned: &Planned, case: &Case) -> Value {
    let trunk = planned.wiring.trunk_name(case.trunk);
    let plan = match &case.plan {
        Ok(plan) => plan,
        Err(error) => return json!({ "trunk": trunk, "problem": error.to_string() }),
    };
    let moves: Vec<Value> = plan
        .moves
        .iter()
        .map(|own| {
            let host = &planned.wiring.hosts[own.host.place()];
            let ports: Vec<u16> = host.ports.iter().map(|port| port.0).collect();
            json!({
                "host": host.name, "switch": planned.name(host.switch), "ports": ports,
                "from_vlan": own.from.id(), "to_vlan": own.to.id(),
            })
        })
        .collect();
    let parts: Vec<Vec<&str>> = plan
        .parts
        .iter()
        .map(|part| part.iter().map(|host| planned.host_name(*host)).collect())
        .collect();
    let unmanaged: Vec<&str> = plan.unmanaged.iter().map(|own| planned.name(*own)).collect();
    json!({
        "trunk": trunk, "moves": moves, "parts": parts, "unmanaged": unmanaged,
        "verdict": if case.fault.is_none() { "good" } else { "refused" },
        "fault": case.fault,
    })
}
