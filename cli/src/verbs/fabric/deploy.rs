//! `meikyo fabric deploy`: the steps from what the switches have to what is planned.

mod over_snmp;
mod through;

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_fabric::Vlan;
use meikyo_fabric::deploy::{
    DeployError, Step, StepTexts, guarded_script, lost_session, plan_deployment, step_texts,
};
use meikyo_fabric::dialect::{Dialect, SwitchState};
use meikyo_units::Nanos;
use serde_json::{Value, json};

use super::site::{self, Planned, TextArgs};
use super::{FileArgs, configure};

/// Arguments of `meikyo fabric deploy`.
#[derive(Debug, Args)]
#[command(group(
    ArgGroup::new("how").required(true).multiple(true).args(["dry_run", "out", "through", "snmp"])
))]
pub(super) struct DeployArgs {
    #[command(flatten)]
    input: FileArgs,
    #[command(flatten)]
    texts: TextArgs,
    /// The switches' current settings: a directory with their configurations, or `factory`
    #[arg(long, value_name = "DIR|factory", required_unless_present = "snmp")]
    current: Option<String>,
    /// Print the steps and their commands; nothing is written or sent
    #[arg(long)]
    dry_run: bool,
    /// Write the commands of each step and of its roll-back into this directory; nothing is sent
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dry_run", "through"])]
    out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "out", conflicts_with_all = ["dry_run", "through"])]
    force: bool,
    /// Carry out the steps: show them, ask, then run this command for each, with `{switch}` and
    /// `{address}` replaced and the configuration as its input. The first step that fails is rolled
    /// back and ends the deployment. A switch with a shell rolls a step back by itself unless the
    /// command is run again to confirm it
    #[arg(long, value_name = "COMMAND", conflicts_with = "dry_run")]
    through: Option<String>,
    /// Set VLANs and PVIDs over SNMP (Q-BRIDGE-MIB), with the credentials of `snmp.write`: read the
    /// switches, show the steps, ask, set and read back; with --dry-run only read and show
    #[arg(long, conflicts_with_all = ["current", "out", "through", "dialect", "templates", "verify"])]
    snmp: bool,
    /// VLAN in which the manager reaches the switches now [default: 1]
    #[arg(long, value_name = "VLAN", requires = "snmp")]
    reached_in: Option<Vlan>,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with_all = ["dry_run", "out"])]
    yes: bool,
    /// Read each switch over SNMP before and after its step; unexpected VLANs end the deployment
    #[arg(long, conflicts_with_all = ["dry_run", "out"])]
    verify: bool,
    /// Time limit for a step, and for reading the switch after it
    #[arg(long, value_name = "SPAN", default_value = "60s", conflicts_with_all = ["dry_run", "out"])]
    patience: Nanos,
    /// How long switches with a shell wait for the confirmation of a step before they roll it back
    #[arg(long, value_name = "SPAN", default_value = "120s")]
    confirm_within: Nanos,
}

/// A step, ready to be carried out.
struct Ready {
    /// `03-sw1`.
    name: String,
    step: Step,
    dialect: Dialect,
    texts: StepTexts,
}

pub(super) fn run(args: &DeployArgs) -> Result<Answer, Failure> {
    if args.snmp {
        return over_snmp::run(args);
    }
    let planned = site::planned(&args.input)?;
    planned.prove(&planned.configuration)?;
    let now = match args.current.as_deref() {
        None | Some("factory") => factory(&planned, &args.texts)?,
        Some(directory) => planned.read(directory.as_ref(), &args.texts)?,
    };
    let manager = planned.options.manager;
    let steps = plan_deployment(&planned.wiring, &now, &planned.states(), manager)
        .map_err(|error| unsafe_order(&error))?;
    let templates = args.texts.templates()?;
    let width = steps.len().to_string().len();
    let mut ready = Vec::new();
    for (number, step) in (1..).zip(steps) {
        let dialect = planned.dialect(step.switch, &args.texts)?;
        let texts =
            step_texts(&templates, dialect, &planned.wiring, &step).map_err(Failure::new)?;
        let name = format!("{number:0width$}-{}", planned.name(step.switch));
        ready.push(Ready { name, step, dialect, texts });
    }
    if let Some(command) = &args.through {
        through::carry_out(&planned, &ready, args, command)?;
    } else if let Some(directory) = &args.out {
        let files = files(&planned, &ready, args.confirm_within);
        let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        configure::write(directory, files, args.force)?;
        let told =
            format!("{} steps written to {}; nothing was sent\n", ready.len(), directory.display());
        output::print(&told)?;
    } else if args.input.json {
        output::print_json(&document(&planned, &ready))?;
    } else {
        output::print(&in_words(&planned, &ready))?;
        output::print("nothing was sent\n")?;
    }
    Ok(Answer::Yes)
}

fn factory(planned: &Planned, texts: &TextArgs) -> Result<Vec<SwitchState>, Failure> {
    let state = |switch: meikyo_fabric::SwitchId| {
        let dialect = planned.dialect(switch, texts)?;
        Ok(SwitchState::factory(dialect, &planned.wiring.switches[switch.place()].model))
    };
    planned.switches().map(state).collect()
}

fn unsafe_order(error: &DeployError) -> Failure {
    let hint = match error {
        DeployError::Unsafe { step: 0, .. } => {
            "bring the switches to a state that the manager reaches, without loops"
        }
        DeployError::Unsafe { .. } => {
            "keep the management VLAN's tree, or choose another VLAN for it and deploy from `factory`"
        }
        DeployError::SameManagement { .. } => {
            "docs/fabric-deployment.md says from what a fabric can be deployed"
        }
    };
    Failure::new(error.clone()).hint(hint)
}

/// Asks whether so many steps are to be carried out.
fn confirm(steps: usize) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::new("cannot ask for confirmation: standard input is not a terminal")
            .hint("`--yes` carries out the steps without asking"));
    }
    output::print(&format!("carry out these {steps} steps? [y/N] "))?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    if answer.trim().eq_ignore_ascii_case("y") {
        return Ok(());
    }
    Err(Failure::new("nothing was sent"))
}

fn in_words(planned: &Planned, ready: &[Ready]) -> String {
    let mut text = String::new();
    let mut put = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("writing to a string cannot fail");
    };
    for (number, own) in (1..).zip(ready) {
        let (all, switch) = (ready.len(), planned.name(own.step.switch));
        put(format_args!("step {number} of {all}: {switch}: {}\n", own.step.why));
        for line in own.texts.apply.lines() {
            put(format_args!("    {line}\n"));
        }
    }
    let mut dialects: Vec<Dialect> = ready.iter().map(|own| own.dialect).collect();
    dialects.sort();
    dialects.dedup();
    for dialect in dialects {
        put(format_args!("if the session is lost ({dialect}): {}\n", lost_session(dialect)));
    }
    match ready.len() {
        0 => put(format_args!("the switches have the planned settings\n")),
        _ => put(format_args!(
            "every state on the way is free of loops, and the manager reaches every switch{}\n",
            if planned.options.manager.is_some() { "" } else { " by its own ways (no `manager`)" }
        )),
    }
    text
}

fn files(planned: &Planned, ready: &[Ready], confirm_within: Nanos) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut list = String::new();
    for Ready { name, step, dialect, texts } in ready {
        let ending = dialect.file_ending();
        list += &format!("{name}.{ending}: {}: {}\n", planned.name(step.switch), step.why);
        files.push((format!("{name}.{ending}"), texts.apply.clone()));
        files.push((format!("{name}.rollback.{ending}"), texts.roll_back.clone()));
        if dialect.has_shell() {
            let guarded = guarded_script(name, seconds(confirm_within));
            files.push((format!("{name}.guarded.sh"), guarded));
        }
    }
    files.push(("steps.txt".to_owned(), list));
    files
}

/// In whole seconds, at least one; saturates at the 136 years that a switch can be told.
fn seconds(span: Nanos) -> u32 {
    u32::try_from(span.get() / 1_000_000_000).unwrap_or(u32::MAX).max(1)
}

fn document(planned: &Planned, ready: &[Ready]) -> Value {
    let step = |own: &Ready| {
        json!({
            "switch": planned.name(own.step.switch), "why": own.step.why.to_string(),
            "dialect": own.dialect.name(), "apply": own.texts.apply,
            "roll_back": own.texts.roll_back,
        })
    };
    let steps: Vec<Value> = ready.iter().map(step).collect();
    json!({ "schema": "meikyo.fabric.deploy/1", "steps": steps })
}
