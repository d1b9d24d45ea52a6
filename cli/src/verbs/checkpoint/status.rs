//! `meikyo checkpoint status`: how a daemon and its group stand.

use std::path::PathBuf;

use clap::Args;
use meikyo_checkpoint::daemon::{Answer as Told, Request, Status};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, bytes_text};
use serde_json::json;

use super::program::asked;

/// Whose status is shown, and how.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The daemon's directory
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows the status; the answer is no when a host does not answer, or this one is no member.
pub(super) fn run(args: &StatusArgs) -> Result<Answer, Failure> {
    let Told::Status(status) = asked(&args.directory, &Request::Status)? else {
        return Err(Failure::new("the daemon sent an unexpected answer"));
    };
    if args.json {
        output::print_json(&json!({ "schema": "meikyo.checkpoint.status/1", "status": status }))?;
    } else {
        output::print(&text(&status))?;
    }
    let is_well = status.is_member && status.hosts.iter().all(|word| word == "alive");
    Ok(if is_well { Answer::Yes } else { Answer::No })
}

fn text(status: &Status) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let mut table = TextTable::new(&["place", "is"]);
    for (place, word) in status.hosts.iter().enumerate() {
        let own = if place == status.place { " (this host)" } else { "" };
        table.row([place.to_string(), format!("{word}{own}")]);
    }
    let cost = status.cost.as_ref().map_or_else(String::new, |cost| {
        let made_of = cost.made_of.map_or_else(String::new, |base| format!(" out of {base}"));
        let stop = cost.stop_seconds.map(|stop| format!(", the program stood still for {:.1} ms", stop * 1e3));
        let stop = stop.unwrap_or_default();
        format!(
            "last save: generation {}{made_of} in {:.2} s ({:.2} s of a processor{stop}): {} of {} changed, {} sent\n",
            cost.generation,
            cost.seconds,
            cost.cpu_seconds,
            bytes_text(cost.changed_bytes),
            bytes_text(cost.bytes),
            bytes_text(cost.sent_bytes),
        )
    });
    let whole: Vec<String> = status.whole.iter().map(u64::to_string).collect();
    format!(
        "committed generation {}, step {}; being written: {}\n\
         whole on this host: {}\nmembership version {}{}\n{}\n{cost}{table}",
        number(status.committed),
        number(status.step),
        number(status.open),
        if whole.is_empty() { "none".to_owned() } else { whole.join(", ") },
        status.version,
        if status.is_member { "" } else { "; this host is no member" },
        status.last.as_deref().map_or_else(String::new, |last| format!("last: {last}\n")),
    )
}
