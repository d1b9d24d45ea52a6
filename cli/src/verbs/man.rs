//! `meikyo man`: the manual pages, one for the program and one for each verb.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;

use crate::grammar::{examples_of, reference, without_help};

/// Write the manual pages.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory to write them to; it is created if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present = "markdown")]
    out: Option<PathBuf>,
    /// Print the grammar of the command line and a table of all verbs instead, as Markdown
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
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
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<Answer, Failure> {
    let Some(out) = &args.out else {
        output::print(&reference::document(command))?;
        return Ok(Answer::Yes);
    };
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| WritePageError { path, source }
    };
    fs::create_dir_all(out).map_err(failed(out))?;
    let mut command = without_help(command);
    // Fills in the options that every verb inherits.
    command.build();
    let mut pages = Vec::new();
    collect("meikyo", &command, &mut pages);
    let mut written = String::new();
    for (name, command) in pages {
        let path = out.join(format!("{name}.1"));
        let mut page = Vec::new();
        render(&name, command, &mut page).map_err(failed(&path))?;
        fs::write(&path, page).map_err(failed(&path))?;
        written += &format!("{}\n", path.display());
    }
    output::print(&written)?;
    Ok(Answer::Yes)
}

/// A page for the command and for each below it: `meikyo`, `meikyo-config`, `meikyo-config-check`.
fn collect(name: &str, command: &Command, pages: &mut Vec<(String, Command)>) {
    for below in command.get_subcommands() {
        collect(&format!("{name}-{}", below.get_name()), below, pages);
    }
    pages.push((name.to_owned(), command.clone()));
}

/// Writes one page, with examples and exit codes; of what has verbs below it, those of its verbs.
fn render(name: &str, command: Command, page: &mut dyn Write) -> io::Result<()> {
    let verb = name.trim_start_matches("meikyo").trim_start_matches('-').replace('-', " ");
    let has_verbs = command.has_subcommands();
    let has_options = command.get_arguments().next().is_some();
    let man = Man::new(command).title(name);
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    if has_options {
        man.render_options_section(page)?;
    }
    if has_verbs {
        man.render_subcommands_section(page)?;
    }
    let mut more = Roff::new();
    more.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in reference::exit_status(&verb) {
        more.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    more.control("SH", ["EXAMPLES"]);
    for example in examples_of(&verb) {
        more.control("PP", []).text([bold(example)]);
    }
    more.to_writer(page)?;
    man.render_version_section(page)
}
