//! `meikyo config show`: every setting with its origin.

use std::collections::BTreeMap;
use std::path::Path;

use meikyo_cluster::{
    Access, AlertRule, Condition, Device, DeviceKind, Measure, Origin, Origins, Resolved,
    SnmpSettings, TableKeep, fold,
};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use serde::Serialize;
use serde_json::{Value, json};

use super::FileArgs;

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    schema: &'static str,
    name: &'a str,
    file: &'a Path,
    keep_ns: Option<String>,
    keep_line: Option<usize>,
    keep_tables: Vec<Value>,
    devices: Vec<Value>,
    alerts: Vec<Value>,
    spares: &'a [String],
}

pub(super) fn run(args: &FileArgs) -> Result<Answer, Failure> {
    let resolved = super::load(args)?;
    if args.json {
        output::print_json(&document(&resolved))?;
    } else {
        output::print(&text(&resolved))?;
    }
    Ok(Answer::Yes)
}

fn document(resolved: &Resolved) -> Shown<'_> {
    let cluster = &resolved.cluster;
    Shown {
        schema: "meikyo.config.show/1",
        name: &cluster.name,
        file: &cluster.path,
        // Spans beyond 104 days do not fit the numbers of JSON readers.
        keep_ns: cluster.keep.map(|keep| keep.get().to_string()),
        keep_line: resolved.keep_origin.line(),
        keep_tables: cluster.keep_tables.iter().map(table_document).collect(),
        devices: cluster.devices.iter().zip(&resolved.origins).map(device_document).collect(),
        alerts: cluster.rules().iter().map(alert_document).collect(),
        spares: &cluster.checkpoint.spares,
    }
}

fn table_document(of: &TableKeep) -> Value {
    json!({ "table": of.table, "keep_ns": of.keep.get().to_string(), "line": of.place.line })
}

fn alert_document(rule: &AlertRule) -> Value {
    let (kind, value) = match &rule.condition {
        Condition::Threshold(threshold) => (threshold.side.word(), Some(&threshold.watched)),
        Condition::Silent { .. } => ("silent", None),
        Condition::Frozen { watched } => ("frozen", watched.as_ref()),
    };
    let mut document = json!({
        "name": rule.name,
        "line": (!rule.is_default()).then_some(rule.place.line),
        "kind": kind,
        "value": value.map(|watched| &watched.text),
        "devices": rule.devices,
    });
    match &rule.condition {
        Condition::Threshold(threshold) => {
            document["level"] = json!(threshold.raise.to_string());
            document["clear"] = json!(threshold.clear.to_string());
            document["for_us"] = json!(threshold.lasting.as_micros());
        }
        Condition::Silent { span } => document["silent_us"] = json!(span.as_micros()),
        Condition::Frozen { .. } => {}
    }
    document
}

fn device_document((device, origins): (&Device, &Origins)) -> Value {
    let snmp = &device.snmp;
    let sourced = |value: Value, origin: Origin| json!({ "value": value, "line": origin.line() });
    let measure = |measure: &Measure| {
        json!({
            "text": measure.text,
            "every_us": measure.every.unwrap_or(snmp.interval).as_micros(),
            "line": measure.place.line,
        })
    };
    json!({
        "name": device.name,
        "kind": kind(device.kind),
        "group": sourced(json!(device.group), origins.group),
        "address": sourced(json!(device.address.ip().to_string()), origins.address),
        "port": sourced(json!(device.address.port()), origins.port),
        "version": sourced(json!(snmp.access.version()), origins.version),
        "credentials": sourced(json!(credentials(&snmp.access)), origins.credentials),
        "write": sourced(json!(snmp.write_access.as_ref().map(write_credentials)), origins.write),
        "interval_us": sourced(json!(snmp.interval.as_micros()), origins.interval),
        "timeout_us": sourced(json!(snmp.timeout.as_micros()), origins.timeout),
        "rate_max": sourced(json!(snmp.rate_max), origins.rate_max),
        "measure": device.measure.iter().map(measure).collect::<Vec<_>>(),
    })
}

fn from(origin: Origin) -> String {
    match origin {
        Origin::Default => "built in".into(),
        Origin::Line(line) => format!("line {line}"),
        Origin::Set => "set beside the file".into(),
    }
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Host => "host",
        DeviceKind::Switch => "switch",
    }
}

/// The credentials as words; secrets are references.
fn credentials(access: &Access) -> String {
    match access {
        Access::Unstated => "none".into(),
        Access::V1 { community } | Access::V2c { community } => format!("community {community}"),
        Access::V3 { user, auth, privacy } => {
            let mut text = format!("user {user}");
            if let Some((protocol, secret)) = auth {
                text += &format!(", auth {protocol} {secret}");
            }
            if let Some((protocol, secret)) = privacy {
                text += &format!(", privacy {protocol} {secret}");
            }
            text
        }
    }
}

fn write_credentials(access: &Access) -> String {
    format!("version {}, {}", access.version(), credentials(access))
}

fn text(resolved: &Resolved) -> String {
    let cluster = &resolved.cluster;
    let keep = cluster.keep.map_or_else(|| "everything".to_owned(), |keep| keep.to_string());
    let mut text = format!(
        "cluster {}, {} devices, from {}\nkeep {keep} ({})\n",
        cluster.name,
        cluster.devices.len(),
        cluster.path.display(),
        from(resolved.keep_origin)
    );
    for of in &cluster.keep_tables {
        text += &format!("keep {} of {} (line {})\n", of.keep, of.table, of.place.line);
    }
    let spares = &cluster.checkpoint.spares;
    if !spares.is_empty() {
        text += &format!("spares {}\n", fold(spares));
    }
    for (device, origins, devices) in alike(resolved) {
        text += &block(device, origins, &devices);
    }
    text + &alerts(&cluster.rules())
}

/// The rules of alerts; nothing where there are none.
fn alerts(rules: &[AlertRule]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&["rule", "from", "raised by", "devices"]);
    for rule in rules {
        let devices = if rule.devices.is_empty() { "all".into() } else { fold(&rule.devices) };
        let from = if rule.is_default() {
            "built in".to_owned()
        } else {
            format!("line {}", rule.place.line)
        };
        table.row([rule.name.clone(), from, rule.condition.to_string(), devices]);
    }
    let indented: String = table.to_string().lines().map(|line| format!("  {line}\n")).collect();
    format!("\nalerts ({})\n{indented}", rules.len())
}

/// Devices that differ in name and address only, together, in the order of the file.
fn alike(resolved: &Resolved) -> Vec<(&Device, &Origins, Vec<&Device>)> {
    let mut blocks: Vec<(&Device, &Origins, Vec<&Device>)> = Vec::new();
    // By entry, group and port: everything else follows from these.
    let mut positions: BTreeMap<(Origins, Option<&str>, u16), usize> = BTreeMap::new();
    for (device, origins) in resolved.cluster.devices.iter().zip(&resolved.origins) {
        let key = (*origins, device.group.as_deref(), device.address.port());
        let position = *positions.entry(key).or_insert_with(|| {
            blocks.push((device, origins, Vec::new()));
            blocks.len() - 1
        });
        blocks[position].2.push(device);
    }
    blocks
}

fn block(device: &Device, origins: &Origins, devices: &[&Device]) -> String {
    let names: Vec<_> = devices.iter().map(|device| device.name.clone()).collect();
    let addresses: Vec<_> = devices.iter().map(|device| device.address.ip().to_string()).collect();
    let heading = format!("{} {}", kind(device.kind), fold(&names));
    let SnmpSettings { access, write_access, interval, timeout, rate_max } = &device.snmp;
    let mut table = TextTable::new(&["setting", "from", "value"]);
    let mut row = |setting: &str, value: String, origin: String| {
        table.row([setting.to_owned(), origin, value]);
    };
    row("address", fold(&addresses), from(origins.address));
    row("port", device.address.port().to_string(), from(origins.port));
    if let Some(group) = &device.group {
        row("group", group.clone(), from(origins.group));
    }
    row("version", access.version().into(), from(origins.version));
    row("credentials", credentials(access), from(origins.credentials));
    if let Some(write) = write_access {
        row("write", write_credentials(write), from(origins.write));
    }
    row("interval", interval.to_string(), from(origins.interval));
    row("timeout", timeout.to_string(), from(origins.timeout));
    row("rate_max", format!("{rate_max} requests/s"), from(origins.rate_max));
    for measure in &device.measure {
        row("measure", measure.text.clone(), format!("line {}", measure.place.line));
    }
    let indented: String = table.to_string().lines().map(|line| format!("  {line}\n")).collect();
    format!("\n{heading} ({})\n{indented}", devices.len())
}
