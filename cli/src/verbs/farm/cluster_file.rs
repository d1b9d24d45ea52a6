//! The cluster file of a farm, so that it can be measured as it is.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use meikyo_cluster::Problem;
use meikyo_console::failure::Failure;
use meikyo_snmp::farm::{AUTH_PASSWORD, FarmOptions, PRIVACY_PASSWORD};

use super::FarmArgs;
use crate::verbs::config::unknown_objects;

/// What it is called.
pub(super) const NAME: &str = "cluster.toml";

/// The secrets of every farm, by the end of their reference; none of them guards anything.
const SECRETS: [(&str, &str); 4] = [
    ("COMMUNITY", "public"),
    ("WRITE_COMMUNITY", "private"),
    ("AUTH", AUTH_PASSWORD),
    ("PRIVACY", PRIVACY_PASSWORD),
];

/// The text; `refer` is what every reference to a secret begins with.
///
/// # Errors
/// If what is to be measured cannot be.
pub(super) fn text(
    args: &FarmArgs,
    options: &FarmOptions,
    port: u16,
    refer: &str,
) -> Result<String, Failure> {
    let text = unchecked(args, options, port, refer);
    let refused = |problem: &Problem| {
        Failure::new(format!("{}: {}", problem.key, problem.text))
            .hint("docs/cluster-file.md says what a file needs, and what can be measured")
    };
    match meikyo_cluster::parse(&text, Path::new(NAME)) {
        Ok(cluster) => match unknown_objects(&cluster) {
            Some(problems) => Err(refused(&problems.listed[0])),
            None => Ok(text),
        },
        Err(error) => Err(error.problems().first().map(refused).unwrap_or_else(|| error.into())),
    }
}

fn unchecked(args: &FarmArgs, options: &FarmOptions, port: u16, refer: &str) -> String {
    let mut text = String::from("# The cluster of a farm of simulated agents.\n");
    let variable = refer.strip_prefix("env:");
    if let Some(variable) = variable {
        for (name, value) in SECRETS {
            line(&mut text, &format!("# export {variable}{name}={value}"));
        }
    }
    let reference = |name: &str| match variable {
        Some(_) => format!("\"{refer}{name}\""),
        None => format!("\"{refer}{}\"", name.to_lowercase()),
    };
    line(&mut text, "name = \"simulated\"");
    let measured: Vec<_> = args.measure.iter().map(|words| format!("{words:?}")).collect();
    line(&mut text, &format!("measure = [{}]", measured.join(", ")));
    line(&mut text, "\n[snmp]");
    line(&mut text, &format!("version = \"{}\"", args.snmp_version));
    if args.snmp_version == "3" {
        line(&mut text, "user = \"meikyo\"");
        let (auth, privacy) = (reference("AUTH"), reference("PRIVACY"));
        line(&mut text, &format!("auth = {{ protocol = \"SHA-256\", password = {auth} }}"));
        line(&mut text, &format!("privacy = {{ protocol = \"AES-128\", password = {privacy} }}"));
    } else {
        line(&mut text, &format!("community = {}", reference("COMMUNITY")));
    }
    let write = reference("WRITE_COMMUNITY");
    line(&mut text, &format!("write = {{ version = \"2c\", community = {write} }}"));
    line(&mut text, &format!("port = {port}"));
    line(&mut text, &format!("interval = \"{}\"", args.interval));
    devices(&mut text, "hosts", 0..options.hosts, options);
    devices(&mut text, "switches", options.hosts..options.agents(), options);
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

fn devices(
    text: &mut String,
    section: &str,
    ordinals: std::ops::Range<u32>,
    options: &FarmOptions,
) {
    if ordinals.is_empty() {
        return;
    }
    let names: Vec<String> = ordinals.clone().map(|ordinal| options.name(ordinal)).collect();
    let addresses: Vec<String> =
        ordinals.map(|ordinal| options.address(ordinal).to_string()).collect();
    line(text, &format!("\n[[{section}]]"));
    line(text, &format!("name = \"{}\"", meikyo_cluster::fold(&names)));
    line(text, &format!("address = \"{}\"", meikyo_cluster::fold(&addresses)));
    if section == "switches" {
        line(text, "measure = [\"interfaces(in_octets,out_octets)\"]");
    }
}

/// Writes `cluster.toml` and the secrets that it refers to into `directory`.
pub(super) fn write(
    args: &FarmArgs,
    options: &FarmOptions,
    port: u16,
    directory: &Path,
) -> Result<(), Failure> {
    let failed = |error| {
        Failure::new(format!("cannot write the cluster file to `{}`: {error}", directory.display()))
    };
    fs::create_dir_all(directory).map_err(failed)?;
    for (name, value) in SECRETS {
        let path = directory.join(name.to_lowercase());
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        writeln!(file, "{value}").map_err(failed)?;
    }
    let text = text(args, options, port, "file:")?;
    fs::write(directory.join(NAME), text).map_err(failed)
}
