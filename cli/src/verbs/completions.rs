//! `meikyo completions`: what a shell needs to complete our verbs and options.

use clap::{Args, Command};
use clap_complete::Shell;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;

/// Print the completions for a shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    shell: Shell,
}

/// Prints the completions of a program, whose command line is `command`.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "meikyo", &mut script);
    output::print_document(&String::from_utf8_lossy(&script))?;
    Ok(Answer::Yes)
}
