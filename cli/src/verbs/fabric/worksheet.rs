//! `meikyo fabric worksheet`: for the person who sets a switch that has no command line.

use std::path::PathBuf;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_fabric::{WorksheetFormat, worksheet};
use serde_json::json;

use super::{FileArgs, configure, site};

/// Arguments of `meikyo fabric worksheet`.
#[derive(Debug, Args)]
pub(super) struct WorksheetArgs {
    #[command(flatten)]
    input: FileArgs,
    /// The format: `text`, `html` or `csv`
    #[arg(long, default_value = "text")]
    format: WorksheetFormat,
    /// Write one file for each switch into this directory
    #[arg(long, value_name = "DIR", required_unless_present = "switch")]
    out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "out")]
    force: bool,
    /// Print only the worksheet of this switch
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    switch: Option<String>,
}

pub(super) fn run(args: &WorksheetArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    planned.prove(&planned.configuration)?;
    let only =
        args.switch.as_ref().map(|name| site::switch_named(&planned.wiring, name)).transpose()?;
    let sheets: Vec<(String, String, String)> = planned
        .switches()
        .filter(|own| only.is_none_or(|only| only == *own))
        .map(|own| {
            let sheet = worksheet(&planned.wiring, &planned.configuration, own);
            let name = planned.name(own).to_owned();
            let file = format!("{name}.{}", args.format.file_ending());
            (name, file, sheet.render(args.format))
        })
        .collect();
    if let Some(directory) = &args.out {
        let files = sheets.iter().map(|(_, file, text)| (file.as_str(), text.as_str()));
        configure::write(directory, files, args.force)?;
    }
    let path = |file: &str| args.out.as_ref().map(|directory| directory.join(file));
    if args.input.json {
        let sheets: Vec<_> = sheets
            .iter()
            .map(|(name, file, text)| {
                let text = args.out.is_none().then_some(text);
                json!({ "switch": name, "path": path(file), "text": text })
            })
            .collect();
        output::print_json(
            &json!({ "schema": "meikyo.fabric.worksheet/1", "worksheets": sheets }),
        )?;
        return Ok(Answer::Yes);
    }
    for (_, file, text) in &sheets {
        match path(file) {
            Some(path) => output::print(&format!("{}\n", path.display()))?,
            None => output::print_document(text)?,
        }
    }
    Ok(Answer::Yes)
}
