//! `meikyo fabric deploy --snmp`: the steps of a deployment, set over SNMP.
//!
//! What the switches have is read, the steps to the plan are those of every deployment, and each is shown
//! as the objects that are set. A switch that is not as it should be before its step gets nothing; what
//! is set is read back; a step that fails is taken back.

mod changes;
mod session;
mod tables;

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_fabric::deploy::{Step, Why, plan_deployment};
use meikyo_fabric::dialect::{SwitchState, differences};
use meikyo_fabric::{SwitchId, SwitchModel, Vlan};
use meikyo_units::{Nanos, WallTime};
use serde_json::{Value, json};

use self::changes::{Change, changes, filtering};
use self::session::Session;
use self::tables::{Tables, compared};
use super::super::site::{self, Planned};
use super::{DeployArgs, confirm, unsafe_order};

/// How long a switch that is not as it should be is left alone before it is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Differences that are told of a switch.
const TOLD: usize = 3;

/// A switch, and what it holds.
struct Reached {
    switch: SwitchId,
    session: Session,
    tables: Tables,
}

/// A step, ready to be carried out.
struct Ready {
    switch: SwitchId,
    why: String,
    before: SwitchState,
    after: SwitchState,
    /// What is set, and how it is called.
    changes: Vec<(Change, String)>,
}

/// What is to be done.
struct Work {
    steps: Vec<Ready>,
    /// The switches whose management VLAN has to be set by hand before it goes on.
    by_hand: Vec<SwitchId>,
}

pub(super) fn run(args: &DeployArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    planned.prove(&planned.configuration)?;
    let mut reached = reach(&planned, args)?;
    let targets = targets(&planned);
    let work = work(&planned, args, &reached, &targets)?;
    if args.dry_run && args.input.json {
        output::print_json(&document(&planned, &work, &reached))?;
        return Ok(Answer::Yes);
    }
    output::print(&in_words(&planned, &work, &reached))?;
    if args.dry_run {
        output::print("nothing was sent\n")?;
        return Ok(Answer::Yes);
    }
    if !work.steps.is_empty() && !args.yes {
        confirm(work.steps.len())?;
    }
    let all = work.steps.len();
    for (number, own) in (1..).zip(&work.steps) {
        let switch = planned.name(own.switch);
        output::print(&format!("step {number} of {all}: {switch}: {}\n", own.why))?;
        let reached = &mut reached[own.switch.place()];
        step(&planned, reached, own, &targets, args.patience).map_err(|problem| {
            Failure::new(format!("step {number} of {all} failed at `{switch}`: {problem}"))
                .hint("the steps before it stay; the same command goes on from there")
        })?;
    }
    stays(&planned, &mut reached, &work, &targets)?;
    if work.by_hand.is_empty() {
        output::print("all is set and read back; nothing is saved yet: save it at each switch\n")?;
        return Ok(Answer::Yes);
    }
    Ok(Answer::No)
}

/// Opens the way to every switch and reads what it holds.
fn reach(planned: &Planned, args: &DeployArgs) -> Result<Vec<Reached>, Failure> {
    let base = args.input.cluster.file.parent().unwrap_or_else(|| std::path::Path::new(""));
    let open = |switch: SwitchId| {
        let name = planned.name(switch);
        let device = planned.cluster.devices.iter().find(|device| device.name == name);
        let device = device.ok_or_else(|| "the file says no address of it".to_owned())?;
        let mut session = Session::open(device, base)?;
        let tables = session.tables(model(planned, switch))?;
        Ok(Reached { switch, session, tables })
    };
    let open = |switch| {
        open(switch).map_err(|problem: String| {
            Failure::new(format!("`{}`: {problem}", planned.name(switch)))
                .hint("every switch is read before anything is set; `meikyo probe` says more")
        })
    };
    planned.switches().map(open).collect()
}

fn model(planned: &Planned, switch: SwitchId) -> &SwitchModel {
    &planned.wiring.switches[switch.place()].model
}

/// The planned states. Without a manager in the file switches are reached by other ways.
fn targets(planned: &Planned) -> Vec<SwitchState> {
    let mut states = planned.states();
    if planned.options.manager.is_none() {
        states.iter_mut().for_each(|state| state.management = None);
    }
    states.into_iter().map(compared).collect()
}

/// The VLAN in which the switches are reached now.
fn reached_in(planned: &Planned, args: &DeployArgs) -> Option<Vlan> {
    planned.options.manager.map(|_| args.reached_in.unwrap_or(Vlan::DEFAULT))
}

fn work(
    planned: &Planned,
    args: &DeployArgs,
    reached: &[Reached],
    targets: &[SwitchState],
) -> Result<Work, Failure> {
    let management = reached_in(planned, args);
    let now: Vec<SwitchState> = reached
        .iter()
        .zip(targets)
        .map(|(own, target)| compared(own.tables.state(target, management)))
        .collect();
    let manager = planned.options.manager;
    let mut order: Vec<Step> = plan_deployment(&planned.wiring, &now, targets, manager)
        .map_err(|error| unsafe_order(&error))?;
    let mut by_hand = Vec::new();
    if let Some(first) = order.iter().position(|step| step.why == Why::Manage) {
        let manage = order.iter().filter(|step| step.why == Why::Manage);
        by_hand = manage.map(|step| step.switch).collect();
        order.truncate(first);
    }
    let mut tables: Vec<Tables> = reached.iter().map(|own| own.tables.clone()).collect();
    let mut steps = Vec::new();
    // First of all, since what is proven of the steps holds for ports that do so.
    for (own, now) in reached.iter().zip(&now) {
        let changes = filtering(&own.tables);
        if !changes.is_empty() {
            let tables = &mut tables[own.switch.place()];
            let (before, after) = (now.clone(), now.clone());
            let why = "drop frames of VLANs that a port is not in".to_owned();
            let changes = told(tables, changes);
            steps.push(Ready { switch: own.switch, why, before, after, changes });
        }
    }
    for Step { switch, why, before, after } in order {
        let (before, after) = (compared(before), compared(after));
        let tables = &mut tables[switch.place()];
        let changes = changes(tables, &after)
            .map_err(|problem| Failure::new(format!("`{}`: {problem}", planned.name(switch))))?;
        let changes = told(tables, changes);
        steps.push(Ready { switch, why: why.to_string(), before, after, changes });
    }
    Ok(Work { steps, by_hand })
}

/// Changes with how they are called, carried out on the tables.
fn told(tables: &mut Tables, changes: Vec<Change>) -> Vec<(Change, String)> {
    let tell = |change: Change| {
        tables.apply(&change);
        let words = tables.in_words(&change);
        (change, words)
    };
    changes.into_iter().map(tell).collect()
}

fn step(
    planned: &Planned,
    reached: &mut Reached,
    own: &Ready,
    targets: &[SwitchState],
    patience: Nanos,
) -> Result<(), String> {
    let switch = model(planned, own.switch);
    let target = &targets[own.switch.place()];
    as_it_should_be(reached, switch, target, &own.before, Nanos::ZERO)
        .map_err(|problem| format!("{problem}; nothing was sent to it"))?;
    let done = own
        .changes
        .iter()
        .try_for_each(|(change, _)| reached.session.carry_out(&reached.tables, change))
        .and_then(|()| as_it_should_be(reached, switch, target, &own.after, patience));
    done.map_err(|problem| {
        let restarted = match reached.session.has_restarted() {
            Ok(true) => ", which has restarted meanwhile, so that what was not saved is gone",
            _ => "",
        };
        format!("{problem}{restarted}; {}", take_back(reached, switch, target, own, patience))
    })
}

/// Sets what there was before a step; in words, what came of it.
fn take_back(
    reached: &mut Reached,
    model: &SwitchModel,
    target: &SwitchState,
    own: &Ready,
    patience: Nanos,
) -> String {
    let mut back = || {
        let mut tables = reached.session.tables(model)?;
        for change in changes(&tables, &own.before)? {
            reached.session.carry_out(&tables, &change)?;
            tables.apply(&change);
        }
        as_it_should_be(reached, model, target, &own.before, patience)
    };
    match back() {
        Ok(()) => "it was taken back there".to_owned(),
        Err(problem) => format!("taking it back failed, too: {problem}"),
    }
}

/// Reads a switch until it has this state, or the time is over; what it has otherwise.
fn as_it_should_be(
    reached: &mut Reached,
    model: &SwitchModel,
    target: &SwitchState,
    due: &SwitchState,
    patience: Nanos,
) -> Result<(), String> {
    let until = WallTime::now() + patience;
    loop {
        let problem = match reached.session.tables(model) {
            Err(problem) => problem,
            Ok(tables) => {
                let found = compared(tables.state(target, due.management));
                reached.tables = tables;
                let differ = differences(due, &found);
                if differ.is_empty() {
                    return Ok(());
                }
                let first: Vec<String> =
                    differ.iter().take(TOLD).map(ToString::to_string).collect();
                let more = match differ.len().saturating_sub(TOLD) {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                format!("it is not as expected: {}{more}", first.join(", "))
            }
        };
        if WallTime::now() >= until {
            return Err(problem);
        }
        thread::park_timeout(READ_AGAIN_AFTER);
    }
}

/// Reads every switch once more: one that restarted since its last step has lost what it was told.
fn stays(
    planned: &Planned,
    reached: &mut [Reached],
    work: &Work,
    targets: &[SwitchState],
) -> Result<(), Failure> {
    for own in reached {
        let Some(last) = work.steps.iter().rev().find(|step| step.switch == own.switch) else {
            continue;
        };
        let place = own.switch.place();
        let model = model(planned, own.switch);
        as_it_should_be(own, model, &targets[place], &last.after, Nanos::ZERO).map_err(
            |problem| {
                let restarted = match own.session.has_restarted() {
                    Ok(true) => " any more, since it has restarted",
                    _ => " any more",
                };
                Failure::new(format!(
                    "`{}` does not have what it was told{restarted}: {problem}",
                    planned.name(own.switch)
                ))
                .hint("the same command goes on from what the switches have now")
            },
        )?;
    }
    Ok(())
}

fn in_words(planned: &Planned, work: &Work, reached: &[Reached]) -> String {
    let mut text = String::new();
    let mut put = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("writing to a string cannot fail");
    };
    let all = work.steps.len();
    for (number, own) in (1..).zip(&work.steps) {
        put(format_args!("step {number} of {all}: {}: {}\n", planned.name(own.switch), own.why));
        for (_, words) in &own.changes {
            put(format_args!("    {words}\n"));
        }
    }
    for own in reached {
        for what in own.tables.silent_about() {
            let name = planned.name(own.switch);
            put(format_args!("`{name}` does not say {what}: check it by hand\n"));
        }
    }
    if all == 0 && work.by_hand.is_empty() {
        put(format_args!("the switches have the planned settings\n"));
    } else if all > 0 {
        put(format_args!(
            "every state on the way is free of loops, and the manager reaches every switch{}\n",
            if planned.options.manager.is_some() { "" } else { " by its own ways (no `manager`)" }
        ));
    }
    if !work.by_hand.is_empty() {
        let names: Vec<&str> = work.by_hand.iter().map(|own| planned.name(*own)).collect();
        let vlan = planned.management().map_or_else(String::new, |vlan| format!(" to {vlan}"));
        put(format_args!(
            "after that, set the management VLAN{vlan} by hand at {}; no standard object of SNMP does \
             that. Then go on with `--reached-in`\n",
            names.join(", ")
        ));
    }
    text
}

fn document(planned: &Planned, work: &Work, reached: &[Reached]) -> Value {
    let step = |own: &Ready| {
        let tables = &reached[own.switch.place()].tables;
        let change = |(change, words): &(Change, String)| {
            let objects: Vec<String> =
                tables.objects(change).iter().map(|(oid, _)| oid.to_string()).collect();
            json!({ "change": words, "objects": objects })
        };
        let changes: Vec<Value> = own.changes.iter().map(change).collect();
        json!({ "switch": planned.name(own.switch), "why": own.why, "changes": changes })
    };
    let steps: Vec<Value> = work.steps.iter().map(step).collect();
    let by_hand: Vec<&str> = work.by_hand.iter().map(|own| planned.name(*own)).collect();
    json!({ "schema": "meikyo.fabric.deploy.snmp/1", "steps": steps, "by_hand": by_hand })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use meikyo_fabric::deploy::check_state;
    use meikyo_fabric::{PlanOptions, PortNumber, Topology, Wiring, cable_uniform, plan};

    use super::tables::{ALL_FRAMES, Members, NO, NO_PAUSE, Place, YES};
    use super::*;

    /// A switch as delivered: every port an untagged member of VLAN 1, a spanning tree protocol on.
    fn delivered(ports: u16) -> Tables {
        let numbers = || 1..=u32::from(ports);
        let all = |value: u64| -> BTreeMap<u32, u64> { numbers().map(|at| (at, value)).collect() };
        let place = |port: u16| {
            let number = u32::from(port);
            (PortNumber(port), Place { bridge: number, interface: number, bundled: false })
        };
        let members: BTreeSet<u32> = numbers().collect();
        let members = Members { egress: members.clone(), untagged: members };
        Tables {
            places: (1..=ports).map(place).collect(),
            octets: usize::from(ports).div_ceil(8),
            vlans: BTreeMap::from([(Vlan::DEFAULT, members)]),
            pvids: numbers().map(|at| (at, Vlan::DEFAULT)).collect(),
            frames: all(ALL_FRAMES),
            filtering: all(NO),
            stp: all(YES),
            pause: all(NO_PAUSE),
            admin: all(YES),
            ageing: Some(300),
        }
    }

    fn planned(topology: &str, vlans: &str) -> (Wiring, Vec<SwitchState>) {
        let topology: Topology = topology.parse().unwrap();
        let mut model = SwitchModel::named("generic").unwrap();
        model.ports = 12;
        let wiring = cable_uniform(&topology, &model, 2).unwrap();
        let vlans = Some(vlans.parse().unwrap());
        let plan = plan(&wiring, &PlanOptions { vlans, ..PlanOptions::new(Some(topology)) });
        let configuration = plan.unwrap().configuration(&wiring);
        let states = meikyo_fabric::deploy::planned_states(&configuration, None);
        (wiring, states.into_iter().map(compared).collect())
    }

    /// Carries out every single change of every step; after each one nothing may go round.
    fn carried_out(
        wiring: &Wiring,
        mut tables: Vec<Tables>,
        targets: &[SwitchState],
    ) -> Vec<Tables> {
        for own in &mut tables {
            filtering(own).iter().for_each(|change| own.apply(change));
        }
        let states = |tables: &[Tables]| -> Vec<SwitchState> {
            let both = tables.iter().zip(targets);
            both.map(|(own, target)| compared(own.state(target, None))).collect()
        };
        let steps = plan_deployment(wiring, &states(&tables), targets, None).unwrap();
        for Step { switch, after, .. } in steps {
            for change in changes(&tables[switch.place()], &compared(after)).unwrap() {
                tables[switch.place()].apply(&change);
                check_state(wiring, &states(&tables), None).unwrap();
            }
        }
        assert_eq!(states(&tables), targets);
        tables
    }

    #[test]
    fn nothing_goes_round_after_any_single_set() {
        for (first, then) in [("ring 4", "ring 4"), ("torus 3x3", "torus 3x3")] {
            let (wiring, targets) = planned(first, "101-199");
            let tables = (0..targets.len()).map(|_| delivered(12)).collect();
            let tables = carried_out(&wiring, tables, &targets);
            // From there to other VLANs.
            let (_, targets) = planned(then, "201-299");
            let tables = carried_out(&wiring, tables, &targets);
            assert!(tables.iter().all(|own| own.vlans.keys().all(|vlan| vlan.id() != 101)));
        }
    }

    #[test]
    fn what_cannot_be_said_over_snmp_is_told_before_anything_is_set() {
        let (_, targets) = planned("ring 3", "101-199");
        let bundled = |state: &SwitchState| {
            let mut state = state.clone();
            state.settings.ports.last_mut().unwrap().ports.push(PortNumber(6));
            state
        };
        let refused = changes(&delivered(12), &bundled(&targets[0])).unwrap_err();
        assert!(refused.contains("are no bundle yet; bundles are made by hand first"), "{refused}");
        let mut forever = targets[0].clone();
        forever.settings.ageing = None;
        let refused = changes(&delivered(12), &forever).unwrap_err();
        assert!(refused.contains("kept for ever"), "{refused}");
        let mut deaf = targets[0].clone();
        deaf.settings.ports[0].accept_tagged = false;
        let refused = changes(&delivered(12), &deaf).unwrap_err();
        assert!(refused.contains("port 1 should drop frames with a tag"), "{refused}");
    }
}
