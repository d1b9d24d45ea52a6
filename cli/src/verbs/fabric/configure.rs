//! `meikyo fabric configure`, `templates` and `diff`: the texts of switches and hosts.

use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::dialect::{Templates, differences, host_text};
use meikyo_fabric::{HostId, HostSettings};
use serde_json::json;

use super::FileArgs;
use super::site::{self, Planned, TextArgs};

const SCHEMA: &str = "meikyo.fabric.configure/1";

/// Arguments of `meikyo fabric configure`.
#[derive(Debug, Args)]
pub(super) struct ConfigureArgs {
    #[command(flatten)]
    input: FileArgs,
    #[command(flatten)]
    texts: TextArgs,
    /// Write one file for each switch, and for each host that tags its frames, into this directory
    #[arg(long, value_name = "DIR", required_unless_present = "switch")]
    out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "out")]
    force: bool,
    /// Print the configuration of this switch instead
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    switch: Option<String>,
    /// The interface of hosts that tag their frames
    #[arg(long, value_name = "NAME", default_value = "eth0")]
    interface: String,
}

/// Arguments of `meikyo fabric templates`.
#[derive(Debug, Args)]
pub(super) struct TemplatesArgs {
    /// The directory for the templates
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

/// Arguments of `meikyo fabric diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    input: FileArgs,
    #[command(flatten)]
    texts: TextArgs,
    /// The directory with the switches' configurations: `NAME.cfg` or `NAME.sh` for each
    #[arg(long, value_name = "DIR")]
    config: PathBuf,
}

/// A text that is ready to be written.
struct Text {
    of: String,
    kind: &'static str,
    dialect: String,
    file: String,
    text: String,
}

pub(super) fn run(args: &ConfigureArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    planned.prove(&planned.configuration)?;
    let only =
        args.switch.as_ref().map(|name| site::switch_named(&planned.wiring, name)).transpose()?;
    let templates = args.texts.templates()?;
    let states = planned.states();
    let mut texts = Vec::new();
    for switch in planned.switches().filter(|own| only.is_none_or(|only| only == *own)) {
        let dialect = planned.dialect(switch, &args.texts)?;
        let text = templates
            .render(dialect, &planned.wiring, switch, &states[switch.place()])
            .map_err(Failure::new)?;
        let of = planned.name(switch).to_owned();
        let file = site::file_name(&of, dialect);
        texts.push(Text { of, kind: "switch", dialect: dialect.to_string(), file, text });
    }
    if let (Some(_), [text]) = (only, &texts[..]) {
        if args.input.json {
            let text = json!({
                "of": text.of, "kind": text.kind, "dialect": text.dialect, "path": null,
                "lines": text.text.lines().count(), "text": text.text,
            });
            output::print_json(&json!({ "schema": SCHEMA, "texts": [text] }))?;
        } else {
            output::print_document(&text.text)?;
        }
        return Ok(Answer::Yes);
    }
    texts.extend(host_texts(&planned, &args.interface)?);
    // All texts are made before the first is written.
    if let Some(directory) = &args.out {
        let files = texts.iter().map(|own| (own.file.as_str(), own.text.as_str()));
        write(directory, files, args.force)?;
    }
    tell(args, &texts)?;
    Ok(Answer::Yes)
}

fn host_texts(planned: &Planned, interface: &str) -> Result<Vec<Text>, Failure> {
    let mut texts = Vec::new();
    for (place, settings) in planned.configuration.hosts.iter().enumerate() {
        if matches!(settings, HostSettings::Untagged) {
            continue;
        }
        let host = HostId::new(place);
        let text = host_text(&planned.wiring, &planned.configuration, host, interface)
            .map_err(Failure::new)?;
        if let Some(text) = text {
            let of = planned.host_name(host).to_owned();
            let file = format!("{of}.tc");
            texts.push(Text { of, kind: "host", dialect: "tc".into(), file, text });
        }
    }
    Ok(texts)
}

fn tell(args: &ConfigureArgs, texts: &[Text]) -> Result<(), Failure> {
    let directory = args.out.as_deref().unwrap_or_else(|| Path::new("."));
    if args.input.json {
        let text = |own: &Text| {
            json!({
                "of": own.of, "kind": own.kind, "dialect": own.dialect,
                "path": directory.join(&own.file), "lines": own.text.lines().count(),
            })
        };
        let texts: Vec<_> = texts.iter().map(text).collect();
        output::print_json(&json!({ "schema": SCHEMA, "texts": texts }))?;
        return Ok(());
    }
    let mut table = TextTable::new(&["of", "dialect", "lines", "file"]);
    for own in texts {
        let file = directory.join(&own.file).display().to_string();
        table.row([
            own.of.clone(),
            own.dialect.clone(),
            own.text.lines().count().to_string(),
            file,
        ]);
    }
    Ok(output::print(&table.to_string())?)
}

/// Writes files into a directory, which is made if it is missing; none if one of them is there already,
/// unless `force` says so.
pub(super) fn write<'a>(
    directory: &Path,
    files: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    force: bool,
) -> Result<(), Failure> {
    if !force {
        let paths: Vec<PathBuf> = files.clone().map(|(name, _)| directory.join(name)).collect();
        site::refuse_existing(paths.iter().map(PathBuf::as_path))?;
    }
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", directory.display())))?;
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

pub(super) fn write_templates(args: &TemplatesArgs) -> Result<Answer, Failure> {
    let directory = &args.out;
    let files = Templates::files();
    write(directory, files.iter().map(|(name, text)| (name.as_str(), *text)), args.force)?;
    for (name, _) in &files {
        output::print(&format!("{}\n", directory.join(name).display()))?;
    }
    Ok(Answer::Yes)
}

pub(super) fn diff(args: &DiffArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    let found = planned.read(&args.config, &args.texts)?;
    let mut table = TextTable::new(&["switch", "port", "what", "planned", "found"]);
    let mut rows = Vec::new();
    for (switch, (meant, is)) in planned.switches().zip(planned.states().iter().zip(&found)) {
        // Where nothing is planned of it, the management VLAN is the site's own.
        let mut is = is.clone();
        is.management = is.management.filter(|_| meant.management.is_some());
        for own in differences(meant, &is) {
            let port = own.port.map_or_else(String::new, |port| port.to_string());
            let name = planned.name(switch);
            rows.push(json!({
                "switch": name, "port": own.port.map(|port| port.0), "what": own.what,
                "planned": own.before, "found": own.after,
            }));
            table.row([name.to_owned(), port, own.what.to_owned(), own.before, own.after]);
        }
    }
    let same = rows.is_empty();
    if args.input.json {
        let document = json!({ "schema": "meikyo.fabric.diff/1", "differences": rows });
        output::print_json(&document)?;
    } else if same {
        output::print("all switches have the planned settings\n")?;
    } else {
        output::print(&table.to_string())?;
    }
    Ok(if same { Answer::Yes } else { Answer::No })
}
