//! `meikyo fabric deploy`: the steps from what the switches have to what is planned.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::{ArgGroup, Args};
use meikyo_fabric::deploy::{
    DeployError, Step, StepTexts, confirmation, guarded_delivery, guarded_script, lost_session,
    plan_deployment, step_texts,
};
use meikyo_fabric::dialect::{Dialect, SwitchState};
use meikyo_units::Nanos;
use serde_json::{Value, json};

use super::site::{self, Planned, TextArgs};
use super::{FileArgs, configure};
use crate::failure::{Answer, Failure};
use crate::output;

/// Arguments of `meikyo fabric deploy`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("how").required(true).args(["dry_run", "write", "through"])))]
pub(super) struct DeployArgs {
    #[command(flatten)]
    input: FileArgs,
    #[command(flatten)]
    texts: TextArgs,
    /// What the switches have now: a directory with their texts, or `factory`
    #[arg(long, value_name = "DIR|factory")]
    from: String,
    /// Print the steps with what is typed; nothing is written or sent
    #[arg(long)]
    dry_run: bool,
    /// Write what is typed, and what takes it back, into this directory; nothing is sent
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Carry out: run this command for each step, `{switch}` and `{address}` replaced, with the text
    /// as its input; the first that fails is taken back, and ends it. Where the text is a script, the
    /// switch takes a step back by itself unless the command is run again to confirm it
    #[arg(long, value_name = "COMMAND")]
    through: Option<String>,
    /// How long switches with a shell wait for a step to be confirmed before they take it back
    #[arg(long, value_name = "SPAN", default_value = "120s")]
    confirm_within: Nanos,
}

/// Where switches with a shell keep the files of a step: a directory of root's, gone when they restart.
const STEPS: &str = "/run/meikyo";

/// A step, ready to be carried out.
struct Ready {
    /// `03-sw1`.
    name: String,
    step: Step,
    dialect: Dialect,
    texts: StepTexts,
}

pub(super) fn run(args: &DeployArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    planned.prove(&planned.configuration)?;
    let now = match args.from.as_str() {
        "factory" => factory(&planned, &args.texts)?,
        directory => planned.read(directory.as_ref(), &args.texts)?,
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
        carry_out(&planned, &ready, command, seconds(args.confirm_within))?;
    } else if let Some(directory) = &args.write {
        let files = files(&planned, &ready, args.confirm_within);
        configure::write(
            directory,
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())),
        )?;
        let told =
            format!("{} steps written to {}; nothing was sent\n", ready.len(), directory.display());
        output::print(&told)?;
    } else if args.input.json {
        output::print_json(&document(&planned, &ready))?;
    } else {
        output::print(&told(&planned, &ready))?;
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

fn told(planned: &Planned, ready: &[Ready]) -> String {
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
            "every state on the way is free of loops, and the manager reaches every switch{}\n\
             nothing was sent\n",
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
        if has_shell(*dialect) {
            let guarded = guarded_script(name, seconds(confirm_within));
            files.push((format!("{name}.guarded.sh"), guarded));
        }
    }
    files.push(("steps.txt".to_owned(), list));
    files
}

/// Whether a switch carries out scripts, and so can wait for a step to be confirmed.
fn has_shell(dialect: Dialect) -> bool {
    dialect.file_ending() == "sh"
}

/// In whole seconds, at least one.
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

/// Carries out all steps; what fails is taken back on its switch, and nothing more is done.
fn carry_out(
    planned: &Planned,
    ready: &[Ready],
    command: &str,
    confirm_within_s: u32,
) -> Result<(), Failure> {
    for (number, own) in (1..).zip(ready) {
        let switch = planned.name(own.step.switch);
        let device = planned.cluster.devices.iter().find(|device| device.name == switch);
        let address = device.map_or_else(String::new, |device| device.address.ip().to_string());
        let command = command.replace("{switch}", switch).replace("{address}", &address);
        let all = ready.len();
        output::print(&format!("step {number} of {all}: {switch}: {}\n", own.step.why))?;
        if let Err((problem, back)) = carry_out_step(own, &command, confirm_within_s) {
            let text = format!("step {number} of {all} failed at `{switch}`: {problem}; {back}");
            return Err(Failure::new(text)
                .hint("the steps before it stay; read the switches again and deploy from that"));
        }
    }
    Ok(())
}

/// Carries out one step. If it fails: why, and what became of it.
fn carry_out_step(
    own: &Ready,
    command: &str,
    confirm_within_s: u32,
) -> Result<(), (String, String)> {
    if has_shell(own.dialect) {
        let delivery = guarded_delivery(STEPS, &own.name, confirm_within_s, &own.texts);
        return send(command, &delivery)
            .and_then(|()| send(command, &confirmation(STEPS, &own.name)))
            .map_err(|problem| {
                let back = format!(
                    "if it was carried out there, it is taken back within {confirm_within_s} s"
                );
                (problem, back)
            });
    }
    send(command, &own.texts.apply).map_err(|problem| {
        let back = match send(command, &own.texts.roll_back) {
            Ok(()) => "it was taken back there".to_owned(),
            Err(problem) => format!("taking it back failed, too: {problem}"),
        };
        (problem, back)
    })
}

/// Runs a command with this input; an error if it cannot be run, or says that it failed.
fn send(command: &str, input: &str) -> Result<(), String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run `{command}`: {error}"))?;
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    let status = child.wait().map_err(|error| format!("cannot wait for `{command}`: {error}"))?;
    match (status.success(), written) {
        (false, _) => Err(format!("`{command}` ended with {status}")),
        (true, Err(error)) => Err(format!("`{command}` did not read its input: {error}")),
        (true, Ok(())) => Ok(()),
    }
}
