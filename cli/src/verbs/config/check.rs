//! `meikyo config check`: everything that is wrong with a cluster file.

use std::collections::BTreeSet;
use std::path::Path;

use meikyo_cluster::{
    Access, Cluster, Device, DeviceKind, LoadError, Problems, Secret, load_checked,
};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use serde::Serialize;

use super::{FileArgs, problems};

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    schema: &'static str,
    file: &'a Path,
    ok: bool,
    hosts: usize,
    switches: usize,
    measures: usize,
    problems: Vec<ProblemRow<'a>>,
    problems_unlisted: usize,
    warnings: Vec<String>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ProblemRow<'a> {
    line: Option<usize>,
    key: &'a str,
    text: &'a str,
}

pub(super) fn run(args: &FileArgs) -> Result<Answer, Failure> {
    match load_checked(&args.cluster.file, problems::of_object) {
        Ok(resolved) => match problems::of_file(&resolved) {
            Some(problems) => refuse(args, &problems),
            None => accept(args, &resolved.cluster),
        },
        Err(LoadError::Invalid(problems)) => refuse(args, &problems),
        Err(error) => Err(super::unreadable(error)),
    }
}

fn accept(args: &FileArgs, cluster: &Cluster) -> Result<Answer, Failure> {
    let of_kind = |kind| cluster.devices.iter().filter(|device| device.kind == kind).count();
    let checked = Checked {
        schema: SCHEMA,
        file: &args.cluster.file,
        ok: true,
        hosts: of_kind(DeviceKind::Host),
        switches: of_kind(DeviceKind::Switch),
        measures: cluster.devices.iter().map(|device| device.measure.len()).sum(),
        problems: Vec::new(),
        problems_unlisted: 0,
        warnings: warnings(cluster),
        notes: timeout_note(cluster).into_iter().collect(),
    };
    if args.json {
        output::print_json(&checked)?;
        return Ok(Answer::Yes);
    }
    let file = args.cluster.file.display();
    let mut text: String =
        checked.warnings.iter().map(|warning| format!("{file}: warning: {warning}\n")).collect();
    text.extend(checked.notes.iter().map(|note| format!("{file}: note: {note}\n")));
    text += &format!(
        "{file}: cluster `{}` is valid: {}, {}, {} to measure\n",
        cluster.name,
        counted(checked.hosts, "host"),
        counted(checked.switches, "switch"),
        counted(checked.measures, "thing"),
    );
    output::print(&text)?;
    Ok(Answer::Yes)
}

fn refuse(args: &FileArgs, problems: &Problems) -> Result<Answer, Failure> {
    if args.json {
        output::print_json(&Checked {
            schema: SCHEMA,
            file: &args.cluster.file,
            ok: false,
            hosts: 0,
            switches: 0,
            measures: 0,
            problems: problems
                .listed
                .iter()
                .map(|problem| ProblemRow {
                    line: problem.line,
                    key: &problem.key,
                    text: &problem.text,
                })
                .collect(),
            problems_unlisted: problems.unlisted,
            warnings: Vec::new(),
            notes: Vec::new(),
        })?;
    } else {
        output::print(&format!("{problems}\n"))?;
    }
    Ok(Answer::No)
}

const SCHEMA: &str = "meikyo.config.check/1";

/// What is right in the file and will still hurt: secrets that cannot be read here, or that others
/// can read too.
fn warnings(cluster: &Cluster) -> Vec<String> {
    let mut secrets = BTreeSet::new();
    for device in &cluster.devices {
        let write = device.snmp.write_access.as_ref();
        for access in std::iter::once(&device.snmp.access).chain(write) {
            match access {
                Access::Unstated => {}
                Access::V1 { community } | Access::V2c { community } => {
                    secrets.insert(community);
                }
                Access::V3 { auth, privacy, .. } => {
                    secrets.extend(auth.iter().map(|(_, secret)| secret));
                    secrets.extend(privacy.iter().map(|(_, secret)| secret));
                }
            }
        }
    }
    secrets.into_iter().filter_map(|secret| warning(secret, cluster.base())).collect()
}

/// What a timeout means that is longer than the interval, for the devices that are waited for over
/// most intervals.
fn timeout_note(cluster: &Cluster) -> Option<String> {
    let spans = |device: &Device| (device.snmp.timeout, device.snmp.interval);
    let intervals = |device: &&Device| {
        let (timeout, interval) = spans(device);
        timeout.get() / interval.get().max(1)
    };
    let longer = cluster.devices.iter().filter(|device| device.snmp.timeout > device.snmp.interval);
    let longest = longer.max_by_key(intervals)?;
    let (timeout, interval) = spans(longest);
    let alike =
        cluster.devices.iter().filter(|device| spans(device) == (timeout, interval)).count();
    Some(format!(
        "timeout {timeout} is longer than interval {interval} (devices: {alike}): a lost packet is \
         asked for again within its interval; an agent that is slower than its interval is waited \
         for, and up to {} intervals are skipped meanwhile",
        intervals(&longest)
    ))
}

fn warning(secret: &Secret, base: &Path) -> Option<String> {
    if let Err(error) = secret.read(base) {
        return Some(format!("`{secret}`: {error}"));
    }
    let Secret::File(path) = secret else { return None };
    is_open_to_others(&base.join(path))
        .then(|| format!("`{secret}` can be read by every user of this machine; `chmod o-rwx` it"))
}

fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o007 != 0)
}
