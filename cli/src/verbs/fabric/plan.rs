//! `meikyo fabric plan`: VLANs, their trees, and what they cost.

use clap::Args;
use meikyo_cluster::Routing;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, counted};
use meikyo_fabric::{
    Bisection, Certainty, Described, HostId, Loads, Pattern, Plan, PlanOptions, PlannedVlan,
    Priming, VlanSet, Warning, Wiring, bisection, diameter, loads, plan, warnings,
};
use meikyo_units::BitsPerSecond;
use serde_json::{Value, json};

use super::FileArgs;

/// Arguments of `meikyo fabric plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    input: FileArgs,
}

pub(super) fn run(args: &PlanArgs) -> Result<Answer, Failure> {
    let (_, Described { wiring, options }) = super::described(&args.input)?;
    let plan = plan(&wiring, &options).map_err(super::unplannable)?;
    let traffic = Traffic::new(&wiring, &plan, &options);
    if args.input.json {
        output::print_json(&document(&wiring, &plan, &traffic))?;
    } else {
        output::print(&text(&wiring, &plan, &traffic))?;
    }
    Ok(Answer::Yes)
}

/// What the plan makes of traffic.
struct Traffic {
    bisection: Bisection,
    diameter: usize,
    /// By pattern.
    loads: [(&'static str, Loads); 3],
    warnings: Vec<Warning>,
    /// What would take load off a hot spot, the best first; empty where there is none.
    reliefs: Vec<Relief>,
}

/// Another plan of the same wiring, whose busiest cable carries less.
struct Relief {
    /// What to write in `[fabric]`.
    setting: &'static str,
    pairs_per_cable: f64,
}

impl Traffic {
    fn new(wiring: &Wiring, plan: &Plan, options: &PlanOptions) -> Self {
        let hosts = wiring.hosts.len();
        let opposite: Vec<HostId> =
            (0..hosts).map(|host| HostId::new((host + hosts / 2) % hosts)).collect();
        let of = |pattern: Pattern<'_>| loads(wiring, plan, pattern);
        let all_to_all = of(Pattern::AllToAll);
        let warnings = warnings(wiring, &all_to_all);
        let hot_spot = warnings.iter().find_map(|warning| match warning {
            Warning::HotSpot { busiest, .. } => Some(busiest.pairs_per_cable),
            _ => None,
        });
        Self {
            bisection: bisection(wiring, options.topology.as_ref()),
            diameter: diameter(wiring, plan),
            loads: [
                ("all_to_all", all_to_all),
                ("opposite", of(Pattern::Permutation(&opposite))),
                ("neighbours", of(Pattern::Neighbours)),
            ],
            warnings,
            reliefs: hot_spot.map_or_else(Vec::new, |now| reliefs(wiring, options, now)),
        }
    }

    fn bisection_bit_per_s(&self, wiring: &Wiring) -> u64 {
        let cables = self.bisection.cables as u64;
        wiring.rate.get().saturating_mul(cables)
    }
}

/// Plans whose busiest cable carries less than `now` pairs of hosts, the best first.
fn reliefs(wiring: &Wiring, options: &PlanOptions, now: f64) -> Vec<Relief> {
    let with = |routing| PlanOptions { routing, ..options.clone() };
    let mut others = vec![
        ("routing = \"acyclic\"", with(Routing::Acyclic)),
        ("routing = \"up-down\"", with(Routing::UpDown)),
        ("routing = \"minimal\"", with(Routing::Minimal)),
        ("routing = \"dimension-order\"", with(Routing::DimensionOrder)),
    ];
    if options.flow_control {
        let without = PlanOptions { flow_control: false, ..options.clone() };
        others.push(("flow_control = false", without));
    }
    let relief = |(setting, options): (&'static str, PlanOptions)| {
        let plan = plan(wiring, &options).ok()?;
        let busiest = loads(wiring, &plan, Pattern::AllToAll).busiest(wiring)?;
        let pairs_per_cable = busiest.pairs_per_cable;
        (pairs_per_cable < now).then_some(Relief { setting, pairs_per_cable })
    };
    let mut reliefs: Vec<Relief> = others.into_iter().filter_map(relief).collect();
    reliefs.sort_by(|one, other| one.pairs_per_cable.total_cmp(&other.pairs_per_cable));
    reliefs
}

/// The warnings as lines, with what would help against a hot spot.
fn warning_lines(wiring: &Wiring, traffic: &Traffic) -> String {
    let mut text = String::new();
    for warning in &traffic.warnings {
        text += &format!("warning: {}\n", warning.in_words(wiring));
        if matches!(warning, Warning::HotSpot { .. }) {
            for Relief { setting, pairs_per_cable } in &traffic.reliefs {
                text +=
                    &format!("  with `{setting}` the busiest would carry {pairs_per_cable:.0}\n");
            }
            if traffic.reliefs.is_empty() {
                text += "  no other routing carries less; more cables there (`cables`) would\n";
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

const fn certainty_word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Tried => "tried",
        Certainty::Formula => "formula",
        Certainty::AtMost => "at_most",
    }
}

fn priming_word(priming: &Priming) -> &'static str {
    match priming {
        Priming::None => "none",
        Priming::Broadcast(_) => "broadcast",
        Priming::Directed(_) => "directed",
    }
}

fn document(wiring: &Wiring, plan: &Plan, traffic: &Traffic) -> Value {
    let vlan = |planned: &PlannedVlan| {
        json!({
            "vlan": planned.vlan.id(),
            "trunks": planned.trunks.iter().map(|trunk| wiring.trunk_name(*trunk)).collect::<Vec<_>>(),
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
        "diameter_switches": traffic.diameter,
        "bisection": {
            "cables": traffic.bisection.cables,
            "bit_per_s": traffic.bisection_bit_per_s(wiring),
            "certainty": certainty_word(traffic.bisection.certainty),
        },
        "loads": traffic.loads.iter().map(|(pattern, loads)| {
            let busiest = loads.busiest(wiring).map(|busiest| json!({
                "from": wiring.switches[busiest.from.place()].name,
                "to": wiring.switches[busiest.to.place()].name,
                "pairs": busiest.pairs,
                "pairs_per_cable": busiest.pairs_per_cable,
            }));
            json!({
                "pattern": pattern,
                "pairs_per_cable_mean": loads.mean(wiring),
                "busiest": busiest,
            })
        }).collect::<Vec<_>>(),
        "warnings": super::shown_warnings(wiring, &traffic.warnings),
        "reliefs": traffic.reliefs.iter().map(|relief| json!({
            "setting": relief.setting,
            "pairs_per_cable": relief.pairs_per_cable,
        })).collect::<Vec<_>>(),
    })
}

fn load_table(wiring: &Wiring, traffic: &Traffic) -> TextTable {
    let mut table = TextTable::new(&["traffic", "busiest trunk", "pairs a cable", "mean"]);
    for (pattern, loads) in &traffic.loads {
        let Some(busiest) = loads.busiest(wiring) else { continue };
        let name = |at: meikyo_fabric::SwitchId| wiring.switches[at.place()].name.as_str();
        table.row([
            pattern.replace('_', " "),
            format!("{} to {}", name(busiest.from), name(busiest.to)),
            format!("{:.1}", busiest.pairs_per_cable),
            format!("{:.1}", loads.mean(wiring)),
        ]);
    }
    table
}

fn text(wiring: &Wiring, plan: &Plan, traffic: &Traffic) -> String {
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
    let working = if plan.working.len() == 1 { "VLAN" } else { "VLANs" };
    let fewest = if plan.fewest { ", and fewer are impossible" } else { "" };
    format!(
        "{}, {}, {}; routing {}, the {} chooses the VLAN\n\
         {} working {working} ({vlans}){fewest}; priming {}; at most {} table entries\n\
         at most {} switches on a path; bisection {}{} cables, {}\n\n{table}\n{}{}",
        counted(wiring.hosts.len(), "host"),
        counted(wiring.switches.len(), "switch"),
        counted(wiring.trunks.len(), "trunk"),
        plan.routing.word(),
        plan.tagging.word(),
        plan.working.len(),
        priming_word(&plan.priming),
        plan.table_entries.iter().max().copied().unwrap_or(0),
        traffic.diameter,
        if traffic.bisection.certainty == Certainty::AtMost { "at most " } else { "" },
        traffic.bisection.cables,
        BitsPerSecond::new(traffic.bisection_bit_per_s(wiring)),
        load_table(wiring, traffic),
        warning_lines(wiring, traffic),
    )
}
