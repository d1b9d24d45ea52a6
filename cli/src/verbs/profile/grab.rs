//! `meikyo profile grab`: samples that stayed on their host, sent after all.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_units::Nanos;
use serde_json::json;

use super::door::{self, Reply};
use crate::this_host::host_name;

/// Have the agent on this host send the newest samples, which it only sums up
#[derive(Debug, Args)]
pub(crate) struct GrabArgs {
    /// How far back; the agent keeps what its --ring says
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    last: Nanos,
    /// The agent's name; this host's name where none is given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Asks the agent.
pub(super) fn run(args: &GrabArgs) -> Result<Answer, Failure> {
    let name = args.name.clone().unwrap_or_else(host_name);
    let reply = door::ask(&name, args.last).map_err(|error| {
        Failure::new(format!("no agent `{name}` that sums up can be asked: {error}"))
            .hint("it is one that runs as `meikyo profile agent --summary --server URL`")
    })?;
    let (blocks, samples, sent_before) = match reply {
        Reply::Grabbed { blocks, samples, sent_before } => (blocks, samples, sent_before),
        Reply::Refused(why) => {
            return Err(Failure::new(format!("the agent `{name}` refuses: {why}")));
        }
    };
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.profile.grab/1", "blocks": blocks, "samples": samples,
            "samples_sent_before": sent_before,
        }))?;
    } else {
        output::print(&format!(
            "sent {} in {}; {} of the same span had been sent before\n",
            counted(samples, "sample"),
            counted(blocks, "block"),
            counted(sent_before, "sample"),
        ))?;
    }
    Ok(Answer::Yes)
}
