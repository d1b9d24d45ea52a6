//! The whole cluster file against the real devices.

use std::collections::BTreeMap;

use meikyo_cluster::{Cluster, fold};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_console::printable::line;
use meikyo_snmp::probe::{Inspected, inspect};
use serde::Serialize;

use super::ProbeArgs;

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    ok: bool,
    devices: usize,
    answering: usize,
    values: usize,
    problems: Vec<Row>,
}

/// A problem, with all devices that have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Row {
    line: usize,
    devices: String,
    devices_count: usize,
    measure: Option<String>,
    problem: String,
    has: Vec<String>,
    remedy: Option<String>,
    add: Vec<String>,
}

pub(super) fn run(args: &ProbeArgs, cluster: &Cluster) -> Result<Answer, Failure> {
    let inspected = inspect(cluster)?;
    let values = inspected.iter().filter_map(|device| device.result.as_ref().ok());
    let document = Document {
        schema: "meikyo.probe.file/1",
        file: args.cluster.file.display().to_string(),
        ok: inspected
            .iter()
            .all(|device| device.result.as_ref().is_ok_and(|(_, problems)| problems.is_empty())),
        devices: cluster.devices.len(),
        answering: inspected.iter().filter(|device| device.result.is_ok()).count(),
        values: values.flat_map(|(plan, _)| &plan.rows).map(|row| row.values.len()).sum(),
        problems: rows(cluster, &inspected),
    };
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(&text(&document))?;
    }
    Ok(if document.ok { Answer::Yes } else { Answer::No })
}

/// The problems, devices with the same one together, in the order of the file.
fn rows(cluster: &Cluster, inspected: &[Inspected]) -> Vec<Row> {
    let mut same: BTreeMap<Row, Vec<String>> = BTreeMap::new();
    let mut insert = |row: Row, device: &str| same.entry(row).or_default().push(device.to_owned());
    for one in inspected {
        let device = &cluster.devices[one.device];
        match &one.result {
            Err(trouble) => {
                // The address is in the text; what is common to many is the reason.
                let row = Row {
                    line: device.place.line,
                    devices: String::new(),
                    devices_count: 0,
                    measure: None,
                    problem: trouble.text.replace(&format!(" at {}", device.address), ""),
                    has: Vec::new(),
                    remedy: Some(trouble.remedy.replace(
                        &format!("no agent listens at {}", device.address),
                        &format!("no agent listens at its port {}", device.address.port()),
                    )),
                    add: Vec::new(),
                };
                insert(row, &device.name);
            }
            Ok((_, problems)) => {
                for problem in problems {
                    let row = Row {
                        line: problem.line,
                        devices: String::new(),
                        devices_count: 0,
                        measure: problem.measure.clone(),
                        problem: problem.fault.to_string(),
                        has: problem.has.clone(),
                        remedy: None,
                        add: problem.add.clone(),
                    };
                    insert(row, &device.name);
                }
            }
        }
    }
    let row = |(row, names): (Row, Vec<String>)| Row {
        devices: fold(&names),
        devices_count: names.len(),
        ..row
    };
    same.into_iter().map(row).collect()
}

fn text(document: &Document) -> String {
    let Document { file, devices, answering, values, .. } = document;
    let mut text =
        format!("{file}: {devices} devices, {answering} answer, {values} values can be measured\n");
    for row in &document.problems {
        text += &format!("\n{file}:{}: {}", row.line, row.devices);
        if row.devices_count > 1 {
            text += &format!(" ({} devices)", row.devices_count);
        }
        if let Some(measure) = &row.measure {
            text += &format!(", `{}`", line(measure));
        }
        text += &format!(": {}\n", line(&row.problem));
        if !row.has.is_empty() {
            text += &format!("  there is: {}\n", line(&row.has.join(", ")));
        }
        if let Some(remedy) = &row.remedy {
            text += &format!("  remedy: {}\n", line(remedy));
        }
        text += &lines_to_add(row.add.iter());
    }
    text
}

/// The `snmpd.conf` lines that are missing, as a block that can be copied.
pub(super) fn lines_to_add<'a>(lines: impl Iterator<Item = &'a String>) -> String {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "  remedy: add to snmpd.conf (with the agent's own view in the place of systemonly) and \
         restart snmpd:\n",
    );
    for to_add in lines {
        text += &format!("    {}\n", line(to_add));
    }
    text
}
