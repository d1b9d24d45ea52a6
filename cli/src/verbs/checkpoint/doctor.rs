//! `meikyo checkpoint doctor`: says before a job starts whether its program can be captured as it is, by capturing it once.

use std::path::PathBuf;

use clap::Args;
use meikyo_checkpoint::capture::criu::Criu;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_units::Nanos;
use serde_json::json;

use super::run::{Trial, on_trial};
use super::{as_is, criu};

/// A program to be examined.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// CRIU 4.2 or newer
    #[arg(long, value_name = "FILE", env = "MEIKYO_CRIU", default_value = "criu")]
    criu: PathBuf,
    /// Run on N containers of this machine
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=16))]
    local: u16,
    /// When to capture the program, after it has begun
    #[arg(long, value_name = "SPAN", default_value = "2s")]
    after: Nanos,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// The program, as `run --as-is` is given it; it is ended once it was captured
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Captures the program once; the answer is no when that is not possible.
pub(super) fn run(args: &DoctorArgs) -> Result<Answer, Failure> {
    let criu = criu::working(&args.criu)?;
    let (major, minor) = Criu::new(&criu).version()?;
    let home = tempfile::tempdir()?;
    let trial = Trial {
        criu: criu.clone(),
        hosts: args.local.into(),
        spares: 0,
        after: args.after,
        command: &args.command,
    };
    let mut site = on_trial(home.path(), trial)?;
    let found = as_is::examine(&mut site)?;
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.checkpoint.doctor/1",
            "criu": criu.to_string_lossy(),
            "criu_version": format!("{major}.{minor}"),
            "can_be_captured": found.is_ok(),
            "text": found.as_ref().unwrap_or_else(|why| why),
        }))?;
    } else {
        let verdict = match &found {
            Ok(text) => format!("the program can be captured: {text}"),
            Err(why) => why.clone(),
        };
        output::print(&format!("CRIU {major}.{minor} works here\n{verdict}\n"))?;
    }
    Ok(if found.is_ok() { Answer::Yes } else { Answer::No })
}
