//! `meikyo mark`: a person's or a script's mark in a running recording.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_recording::control::{self, Request};

use crate::row_arguments::SpokenTo;

/// Write a note into a running recording, for example that a parameter was changed
#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    /// What was done
    text: String,
    #[command(flatten)]
    recording: SpokenTo,
}

/// Puts the mark into `events`.
pub(crate) fn run(args: &MarkArgs) -> Result<Answer, Failure> {
    let said = args.text.trim();
    if said.is_empty() {
        return Err(Failure::new("a mark needs a text that says what was done")
            .hint("meikyo mark \"threshold changed to 20 %\""));
    }
    control::ask(&args.recording.dir, &Request::Mark(said.to_owned())).map_err(|error| {
        Failure::from(error).hint(
            "marks are written by a running `meikyo measure`, on the machine that measures; name its \
             `--out` with --recording",
        )
    })?;
    output::print(&format!("marked in {}: {said}\n", args.recording.dir.display()))?;
    Ok(Answer::Yes)
}
