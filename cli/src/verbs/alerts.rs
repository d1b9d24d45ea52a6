//! `meikyo alerts`: what is raised in a recording, and what people say to it.

use clap::{Args, Subcommand};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_console::printable;
use meikyo_live::rules;
use meikyo_recording::alerts::{self, Alert, Said};
use meikyo_recording::control::{self, AlertRequest, AlertWord, Request};
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;

use crate::row_arguments::{SpokenTo, open};

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
    #[command(flatten)]
    recording: SpokenTo,
    /// Include alerts that have been cleared
    #[arg(long)]
    all: bool,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Say {
    /// Acknowledge alerts: one, those of a rule, or all
    Acknowledge(SayArgs),
    /// Silence alerts for some time, even if they are cleared and raised again
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
    /// The rule; alone, all of its raised alerts
    #[arg(required_unless_present = "all")]
    rule: Option<String>,
    /// The device of the alert; without OBJECT, all alerts of the rule for this device
    device: Option<String>,
    /// The object of the alert, for example `interfaces.eth0.out_octets`
    object: Option<String>,
    /// All raised alerts
    #[arg(long, conflicts_with = "rule")]
    all: bool,
    /// Your name, for the record
    #[arg(long, value_name = "NAME", env = "USER")]
    by: Option<String>,
    #[command(flatten)]
    recording: SpokenTo,
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    schema: &'static str,
    recording: String,
    /// Whether anything is alerted of.
    rules_set: bool,
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
    let dir = &which.recording.dir;
    let hint = format!("list raised alerts: meikyo alerts --recording {}", dir.display());
    let meant = which.meant()?;
    if meant.is_empty() {
        let rule =
            which.rule.as_ref().map_or_else(String::new, |rule| format!(" of rule `{rule}`"));
        return Err(Failure::new(format!("no alert{rule} is raised")).hint(hint));
    }
    let done = match span {
        Some(span) => format!("silenced for {span}"),
        None => "acknowledged".to_owned(),
    };
    for (rule, device, object) in meant {
        let about = object.as_ref().map(|object| format!(", `{object}`")).unwrap_or_default();
        let said = format!("{done}: `{rule}` of `{device}`{about}");
        let (for_us, by) = (span.map(Nanos::as_micros), which.by.clone());
        let request = AlertRequest { action, rule, device, object, for_us, by };
        control::ask(dir, &Request::Alert(request))
            .map_err(|error| Failure::from(error).hint(hint.as_str()))?;
        output::print(&format!("{}\n", printable::line(&said)))?;
    }
    Ok(Answer::Yes)
}

/// Rule, device and object of an alert.
type Key = (String, String, Option<String>);

impl SayArgs {
    /// The alerts that are meant. One that is named as far as a person can name it is asked for as it
    /// is written: whoever measures knows best whether there is such a one.
    fn meant(&self) -> Result<Vec<Key>, Failure> {
        if let (Some(rule), Some(device), Some(_)) = (&self.rule, &self.device, &self.object) {
            return Ok(vec![(rule.clone(), device.clone(), self.object.clone())]);
        }
        let (alerts, _) = alerts::read(&open(&self.recording.dir)?)?;
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|it| it == own);
        let meant: Vec<Key> = alerts
            .into_iter()
            .filter(|alert| alert.cleared.is_none())
            .filter(|alert| is(&self.rule, &alert.rule) && is(&self.device, &alert.device))
            .map(|alert| (alert.rule, alert.device, alert.object))
            .collect();
        match (&self.rule, &self.device) {
            (Some(rule), Some(device)) if meant.is_empty() => {
                Ok(vec![(rule.clone(), device.clone(), None)])
            }
            _ => Ok(meant),
        }
    }
}

/// Exit code 1 says that something is raised that nobody has answered, or could not be read.
fn list(args: &ListArgs) -> Result<Answer, Failure> {
    let recording = open(&args.recording.dir)?;
    let (alerts, problems) = alerts::read(&recording)?;
    let rules_set = rules::are_set(&recording)?;
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
            recording: args.recording.dir.display().to_string(),
            rules_set,
            alerts: wanted.iter().map(|alert| row(alert, now)).collect(),
            problems,
        })?;
    } else {
        output::print(&text(&wanted, args.all, now))?;
        if !rules_set {
            output::say("meikyo: no alert rules are set, so that nothing is alerted of now");
        }
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
    let mut table = TextTable::new(&["since", "for", "state", "device", "what"]);
    for alert in alerts {
        let until = |at: Option<WallTime>| at.map_or_else(String::new, |at| at.to_string());
        let state = match state(alert, now) {
            "silenced" => format!("silenced until {}", until(alert.silenced_until)),
            "cleared" => format!("until {}", until(alert.cleared.as_ref().map(|said| said.at))),
            word => word.to_owned(),
        };
        let since = alert.raised.at.to_string();
        let end = alert.cleared.as_ref().map_or(now, |said| said.at);
        let lasting = about(end.since(alert.raised.at));
        table.row([since, lasting, state, alert.device.clone(), alert.raised.text.clone()]);
    }
    table.to_string()
}

/// A span in its one or two greatest units, rounded down: `29 min`, `3 h 5 min`.
fn about(span: Nanos) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let seconds = span.get() / Nanos::SECOND.get();
    let greatest = UNITS.iter().position(|(_, size)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let (unit, size) = UNITS[greatest];
    let whole = format!("{} {unit}", seconds / size);
    // Seconds are told only of what lasts for seconds.
    match UNITS.get(greatest + 1).filter(|(unit, _)| *unit != "s") {
        Some((smaller, part)) if seconds % size >= *part => {
            format!("{whole} {} {smaller}", seconds % size / part)
        }
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_their_greatest_units() {
        let told = |seconds| about(Nanos::from_secs(seconds));
        assert_eq!(told(0), "0 s");
        assert_eq!(told(59), "59 s");
        assert_eq!(told(29 * 60 + 59), "29 min");
        assert_eq!(told(3 * 3_600 + 5 * 60), "3 h 5 min");
        assert_eq!(told(3 * 3_600 + 59), "3 h");
        assert_eq!(told(2 * 86_400 + 4 * 3_600), "2 d 4 h");
    }
}
