//! `meikyo man`: the manual pages, one for the program and one for each verb.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;

/// Write the manual pages.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory that they are written to, made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Why the manual pages could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the manual page `{path}`")]
struct WritePageError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the pages of a program, whose command line is `command`.
///
/// # Errors
/// If the pages cannot be written.
pub(crate) fn run(args: &ManArgs, mut command: Command) -> Result<Answer, Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| WritePageError { path, source }
    };
    fs::create_dir_all(&args.out).map_err(failed(&args.out))?;
    // Fills in the options that every verb inherits.
    command.build();
    let mut pages = Vec::new();
    collect("meikyo", &command, &mut pages);
    let mut written = String::new();
    for (name, command) in pages {
        let path = args.out.join(format!("{name}.1"));
        let mut page = Vec::new();
        clap_mangen::Man::new(command).title(name).render(&mut page).map_err(failed(&path))?;
        fs::write(&path, page).map_err(failed(&path))?;
        written += &format!("{}\n", path.display());
    }
    output::print(&written)?;
    Ok(Answer::Yes)
}

/// A page for the command and for each below it: `meikyo`, `meikyo-config`, `meikyo-config-check`.
fn collect(name: &str, command: &Command, pages: &mut Vec<(String, Command)>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(&format!("{name}-{}", below.get_name()), below, pages);
    }
    pages.push((name.to_owned(), command.clone()));
}
