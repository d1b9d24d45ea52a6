//! `meikyo alerts`: what is raised in a recording, and what people say to it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_console::printable;
use meikyo_recording::Recording;
use meikyo_recording::alerts::{self, Alert, Said};
use meikyo_recording::control::{self, AlertRequest, AlertWord, Request};
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;

/// List a recording's alerts; acknowledge or silence those of a running measurement
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AlertsArgs {
    #[command(flatten)]
    list: ListArgs,
    #[command(subcommand)]
    say: Option<Say>,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// The recording's directory
    #[arg(value_name = "DIR", default_value = "recording", env = "MEIKYO_RECORDING")]
    recording: PathBuf,
    /// Also those that are over
    #[arg(long)]
    all: bool,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Say {
    /// Note that somebody has seen an alert
    Acknowledge(SayArgs),
    /// Keep an alert quiet for some time, also when it is cleared and raised again
    Silence {
        #[command(flatten)]
        which: SayArgs,
        /// For how long, at most 30 days
        #[arg(long = "for", value_name = "SPAN", default_value = "1h")]
        span: Nanos,
    },
}

#[derive(Debug, Args)]
struct SayArgs {
    /// The rule of the cluster file
    rule: String,
    /// The device that the alert is about
    device: String,
    /// What it is about, for example `interfaces.eth0.out_octets`; nothing for a silent device
    object: Option<String>,
    /// Who says it
    #[arg(long, value_name = "NAME", env = "USER")]
    by: Option<String>,
    /// The recording that a measurement is writing
    #[arg(long, value_name = "DIR", default_value = "recording", env = "MEIKYO_RECORDING")]
    recording: PathBuf,
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    schema: &'static str,
    recording: String,
    alerts: Vec<Row<'a>>,
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    rule: &'a str,
    device: &'a str,
    object: Option<&'a str>,
    state: &'static str,
    text: &'a str,
    raised_us: i64,
    cleared_us: Option<i64>,
    cleared_text: Option<&'a str>,
    acknowledged_us: Option<i64>,
    acknowledged_text: Option<&'a str>,
    silenced_until_us: Option<i64>,
}

/// Lists, or says.
pub(crate) fn run(args: &AlertsArgs) -> Result<Answer, Failure> {
    match &args.say {
        None => list(&args.list),
        Some(Say::Acknowledge(which)) => say(which, AlertWord::Acknowledge, None),
        Some(Say::Silence { which, span }) => say(which, AlertWord::Silence, Some(*span)),
    }
}

fn say(which: &SayArgs, action: AlertWord, span: Option<Nanos>) -> Result<Answer, Failure> {
    let request = AlertRequest {
        action,
        rule: which.rule.clone(),
        device: which.device.clone(),
        object: which.object.clone(),
        for_us: span.map(Nanos::as_micros),
        by: which.by.clone(),
    };
    control::ask(&which.recording, &Request::Alert(request)).map_err(|error| {
        Failure::from(error).hint(format!(
            "what is raised is listed by: meikyo alerts {}",
            which.recording.display()
        ))
    })?;
    let done = match span {
        Some(span) => format!("silenced for {span}"),
        None => "acknowledged".to_owned(),
    };
    let about = which.object.as_ref().map(|object| format!(", `{object}`")).unwrap_or_default();
    let said = format!("{done}: `{}` of `{}`{about}", which.rule, which.device);
    output::print(&format!("{}\n", printable::line(&said)))?;
    Ok(Answer::Yes)
}

/// Exit code 1 says that something is raised that nobody has answered, or could not be read.
fn list(args: &ListArgs) -> Result<Answer, Failure> {
    let recording = Recording::open(&args.recording)?;
    let (alerts, problems) = alerts::read(&recording)?;
    let now = WallTime::now();
    let wanted: Vec<&Alert> =
        alerts.iter().filter(|alert| args.all || alert.cleared.is_none()).collect();
    let problems: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.path.display(), problem.what))
        .collect();
    let whole = problems.is_empty();
    if args.json {
        output::print_json(&Listed {
            schema: "meikyo.alerts/1",
            recording: args.recording.display().to_string(),
            alerts: wanted.iter().map(|alert| row(alert, now)).collect(),
            problems,
        })?;
    } else {
        output::print(&text(&wanted, args.all, now))?;
        for problem in problems {
            tracing::warn!("not read wholly: {problem}");
        }
    }
    let pressing = alerts.iter().any(|alert| alert.is_pressing(now));
    Ok(if pressing || !whole { Answer::No } else { Answer::Yes })
}

fn state(alert: &Alert, now: WallTime) -> &'static str {
    if alert.cleared.is_some() {
        "cleared"
    } else if alert.silenced_until.is_some_and(|until| until > now) {
        "silenced"
    } else if alert.acknowledged.is_some() {
        "acknowledged"
    } else {
        "raised"
    }
}

fn row(alert: &Alert, now: WallTime) -> Row<'_> {
    let us = |at: WallTime| at.as_nanos().div_euclid(1_000);
    let at = |said: &Option<Said>| said.as_ref().map(|said| us(said.at));
    Row {
        rule: &alert.rule,
        device: &alert.device,
        object: alert.object.as_deref(),
        state: state(alert, now),
        text: &alert.raised.text,
        raised_us: us(alert.raised.at),
        cleared_us: at(&alert.cleared),
        cleared_text: alert.cleared.as_ref().map(|said| said.text.as_str()),
        acknowledged_us: at(&alert.acknowledged),
        acknowledged_text: alert.acknowledged.as_ref().map(|said| said.text.as_str()),
        silenced_until_us: alert.silenced_until.map(us),
    }
}

fn text(alerts: &[&Alert], all: bool, now: WallTime) -> String {
    if alerts.is_empty() {
        return if all { "no alert was raised\n" } else { "no alert is raised\n" }.to_owned();
    }
    let mut table = TextTable::new(&["since", "state", "device", "what"]);
    for alert in alerts {
        let until = |at: Option<WallTime>| at.map_or_else(String::new, |at| at.to_string());
        let state = match state(alert, now) {
            "silenced" => format!("silenced until {}", until(alert.silenced_until)),
            "cleared" => format!("until {}", until(alert.cleared.as_ref().map(|said| said.at))),
            word => word.to_owned(),
        };
        let since = alert.raised.at.to_string();
        table.row([since, state, alert.device.clone(), alert.raised.text.clone()]);
    }
    table.to_string()
}
