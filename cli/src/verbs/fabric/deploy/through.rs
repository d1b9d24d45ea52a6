//! Carrying a deployment out: a program of the site's takes each step to its switch.
#![expect(clippy::disallowed_methods, reason = "starts what the person names to reach a switch")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use meikyo_console::failure::Failure;
use meikyo_console::output;
use meikyo_fabric::deploy::{confirmation, guarded_delivery};
use meikyo_fabric::dialect::{Dialect, SwitchState};
use meikyo_fabric::{SwitchId, verify_settings};
use meikyo_units::{Nanos, WallTime};

use super::super::site::Planned;
use super::super::verify;
use super::{DeployArgs, Ready, confirm, in_words, seconds};

/// Where switches with a shell keep the files of a step: a directory of root's, gone when they restart.
const STEPS: &str = "/run/meikyo";

/// What is replaced in the command.
const PLACEHOLDERS: [&str; 2] = ["{switch}", "{address}"];

/// How long a switch that is not as it should be is left alone before it is read again.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long the answers of a program that has ended are waited for.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// What `timeout` (coreutils) ends with when the time was over.
const OUT_OF_TIME: i32 = 124;

/// Carries out all steps; what fails is taken back on its switch, and nothing more is done.
pub(super) fn carry_out(
    planned: &Planned,
    ready: &[Ready],
    args: &DeployArgs,
    command: &str,
) -> Result<(), Failure> {
    check_command(ready, command)?;
    output::print(&in_words(planned, ready))?;
    if !ready.is_empty() && !args.yes {
        confirm(ready.len())?;
    }
    for (number, own) in (1..).zip(ready) {
        let (all, switch) = (ready.len(), planned.name(own.step.switch));
        output::print(&format!("step {number} of {all}: {switch}: {}\n", own.step.why))?;
        let way = Way { command: &command_for(planned, own.step.switch, command), args };
        step(planned, &way, own).map_err(|problem| {
            Failure::new(format!("step {number} of {all} failed at `{switch}`: {problem}"))
                .hint("the steps before it remain; read the switches' configurations and deploy from these")
        })?;
    }
    Ok(())
}

fn step(planned: &Planned, way: &Way<'_>, own: &Ready) -> Result<(), String> {
    let switch = own.step.switch;
    if way.args.verify {
        as_it_should_be(planned, way.args, switch, &own.step.before, Nanos::ZERO)
            .map_err(|problem| format!("{problem}; nothing was sent to it"))?;
    }
    way.carry_out(own)?;
    if way.args.verify {
        as_it_should_be(planned, way.args, switch, &own.step.after, way.args.patience)
            .map_err(|problem| format!("{problem}; {}", way.take_back(own)))?;
    }
    Ok(())
}

fn check_command(ready: &[Ready], command: &str) -> Result<(), Failure> {
    let known = format!("`--through` replaces `{}`", PLACEHOLDERS.join("` and `"));
    for (begin, _) in command.match_indices('{') {
        let rest = &command[begin..];
        let Some(end) = rest.find('}') else { continue };
        let word = &rest[..=end];
        let is_word = end > 1 && word[1..end].chars().all(|letter| letter.is_ascii_lowercase());
        if is_word && !command[..begin].ends_with('$') && !PLACEHOLDERS.contains(&word) {
            return Err(Failure::new(format!("`{word}` is not known")).hint(known));
        }
    }
    let several = ready.iter().any(|own| own.step.switch != ready[0].step.switch);
    if several && !PLACEHOLDERS.iter().any(|word| command.contains(word)) {
        let text = format!("`{command}` would send the steps of all switches to one");
        return Err(Failure::new(text).hint(known));
    }
    Ok(())
}

fn command_for(planned: &Planned, switch: SwitchId, command: &str) -> String {
    let name = planned.name(switch);
    let device = planned.cluster.devices.iter().find(|device| device.name == name);
    let address = device.map_or_else(String::new, |device| device.address.ip().to_string());
    let [of_name, of_address] = PLACEHOLDERS;
    command.replace(of_name, name).replace(of_address, &address)
}

/// Reads a switch until it has these settings, or the time is over; what it has otherwise.
fn as_it_should_be(
    planned: &Planned,
    args: &DeployArgs,
    switch: SwitchId,
    due: &SwitchState,
    patience: Nanos,
) -> Result<(), String> {
    let until = WallTime::now() + patience;
    loop {
        let problem = match verify::read(planned, &args.input, switch) {
            Err(problem) => problem,
            Ok(observed) => match verify_settings(&due.settings, &observed).first() {
                None => return Ok(()),
                Some(finding) => {
                    format!("it is not as expected: {}", finding.in_words(&planned.wiring))
                }
            },
        };
        if WallTime::now() >= until {
            return Err(problem);
        }
        thread::park_timeout(READ_AGAIN_AFTER);
    }
}

/// The site's way to one switch.
struct Way<'a> {
    command: &'a str,
    args: &'a DeployArgs,
}

impl Way<'_> {
    /// Carries out a step; one that fails is taken back.
    fn carry_out(&self, own: &Ready) -> Result<(), String> {
        if own.dialect.has_shell() {
            let within = seconds(self.args.confirm_within);
            let delivery = guarded_delivery(STEPS, &own.name, within, &own.texts);
            let back = || {
                format!("if it was carried out there, the switch rolls it back within {within} s")
            };
            return self
                .send(own.dialect, &delivery)
                .and_then(|()| self.send(own.dialect, &confirmation(STEPS, &own.name)))
                .map_err(|problem| format!("{problem}; {}", back()));
        }
        self.send(own.dialect, &own.texts.apply)
            .map_err(|problem| format!("{problem}; {}", self.take_back(own)))
    }

    /// Takes a step back; in words, what came of it.
    fn take_back(&self, own: &Ready) -> String {
        match self.send(own.dialect, &own.texts.roll_back) {
            Ok(()) => "it was taken back there".to_owned(),
            Err(problem) => format!("rolling it back failed, too: {problem}"),
        }
    }

    /// Runs the command with this input and shows what it answers; an error if it cannot be run, says
    /// that it failed, takes too long, or the switch refuses a line.
    fn send(&self, dialect: Dialect, input: &str) -> Result<(), String> {
        let command = self.command;
        let patience = seconds(self.args.patience).to_string();
        let mut child = Command::new("timeout")
            .args(["--kill-after=5", &patience, "sh", "-c", &format!("{{ {command}\n}} 2>&1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run `{command}`: {error}"))?;
        let mut stdin = child.stdin.take().expect("its input is a pipe");
        let input = input.to_owned();
        let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
        let refusal = refusal(dialect, &mut child);
        let status = child.wait().map_err(|error| format!("cannot wait for it: {error}"))?;
        if status.code() == Some(OUT_OF_TIME) {
            return Err(format!("`{command}` did not end within {patience} s"));
        }
        if !status.success() {
            return Err(format!("`{command}` ended with {status}"));
        }
        if let Some(refusal) = refusal {
            return Err(format!("the switch answered `{refusal}`"));
        }
        let written = writer.join().expect("writing to a pipe does not panic");
        written.map_err(|error| format!("`{command}` did not read its input: {error}"))
    }
}

/// Shows what a program answers until it ends; the first line by which the switch refuses something.
fn refusal(dialect: Dialect, child: &mut Child) -> Option<String> {
    let answers = answers(child);
    let mut refusal = None;
    loop {
        match answers.recv_timeout(LAST_ANSWERS) {
            Ok(line) => {
                let shown = line.trim_end().replace(char::is_control, " ");
                // Nobody may be reading what is shown; the step goes on all the same.
                drop(output::print(&format!("    {shown}\n")));
                if refusal.is_none() && dialect.refuses(&line) {
                    refusal = Some(shown.trim().to_owned());
                }
            }
            // A program that stays behind may keep the pipe open: a shared connection of ssh.
            Err(RecvTimeoutError::Timeout) if matches!(child.try_wait(), Ok(None)) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return refusal,
        }
    }
}

/// The lines that a program prints.
fn answers(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().expect("its output is a pipe");
    let (lines, answers) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    answers
}
