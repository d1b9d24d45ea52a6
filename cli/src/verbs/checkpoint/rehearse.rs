//! `meikyo checkpoint rehearse`: loses a host on purpose, and says how long it takes until the program runs again on a spare.

use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, span_text};
use meikyo_units::Nanos;
use serde_json::json;

use super::run::{Trial, on_trial};
use super::{as_is, criu};

/// A program, and the host that it loses.
#[derive(Debug, Args)]
pub(crate) struct RehearseArgs {
    /// Kill this host once a checkpoint is whole: node1 to nodeN
    #[arg(long, value_name = "HOST")]
    kill: String,
    /// CRIU 4.2 or newer
    #[arg(long, value_name = "FILE", env = "MEIKYO_CRIU", default_value = "criu")]
    criu: PathBuf,
    /// Run on N containers of this machine; one more stands ready
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(3..=16))]
    local: u16,
    /// Capture the program so long after its begin
    #[arg(long, value_name = "SPAN", default_value = "2s")]
    after: Nanos,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// The program, as `run --as-is` is given it; it is ended once it runs again
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Loses a host; the answer is no when the program cannot be captured.
pub(super) fn run(args: &RehearseArgs) -> Result<Answer, Failure> {
    let criu = criu::working(&args.criu)?;
    let home = tempfile::tempdir()?;
    let hosts = usize::from(args.local);
    let (after, command) = (args.after, &args.command[..]);
    let mut site = on_trial(home.path(), Trial { criu, hosts, spares: 1, after, command })?;
    let place = site.hosts.iter().position(|host| host.name == args.kill).ok_or_else(|| {
        Failure::new(format!("`{}` is no host of the program", args.kill))
            .hint(format!("its hosts are node1 to node{hosts}; --local N takes others"))
    })?;
    let found = as_is::rehearse(&mut site, place)?;
    if args.json {
        let times = found.as_ref().ok();
        output::print_json(&json!({
            "schema": "meikyo.checkpoint.rehearse/1",
            "killed": args.kill,
            "runs_again": times.is_some(),
            "checkpoint": times.map(|times| times.step),
            "noticed_s": times.map(|times| times.noticed.as_secs_f64()),
            "data_s": times.map(|times| times.data.as_secs_f64()),
            "running_s": times.map(|times| times.running.as_secs_f64()),
            "text": found.as_ref().err(),
        }))?;
    } else {
        let text = match &found {
            Ok(times) => format!(
                "{} was killed, which was noticed after {}\n\
                 all hosts had checkpoint {} after {}, and the program ran again on a spare after {}\n",
                args.kill,
                span_text(times.noticed),
                times.step,
                span_text(times.data),
                span_text(times.running),
            ),
            Err(why) => format!("{why}\n"),
        };
        output::print(&text)?;
    }
    Ok(if found.is_ok() { Answer::Yes } else { Answer::No })
}
