//! `meikyo lab status` and `meikyo lab down`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, counted};
use meikyo_lab::{
    Blueprint, Counters, Directory, Done, Engine, Entry, Purpose, Record, Status, Task,
};
use meikyo_units::WallTime;
use serde_json::json;

use super::{Which, roles};

/// Arguments of `meikyo lab status`.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    which: Which,
    /// Include the counters of every port
    #[arg(long)]
    ports: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Arguments of `meikyo lab down`.
#[derive(Debug, Args)]
pub(super) struct DownArgs {
    #[command(flatten)]
    which: Which,
}

const SCHEMA: &str = "meikyo.lab.status/1";

pub(super) fn run(args: &StatusArgs) -> Result<Answer, Failure> {
    let directory = args.which.directory()?;
    let Ok(status) = meikyo_lab::status(&directory) else {
        if directory.record().is_err() {
            if args.json {
                output::print_json(&json!({ "schema": SCHEMA, "running": false }))?;
            } else {
                output::print("no lab runs\n")?;
            }
            return Ok(Answer::No);
        }
        let text = format!("the lab in {} has died", directory.path().display());
        return Err(Failure::new(text).hint("meikyo lab down"));
    };
    let roles = roles::roles()?;
    let ask = |task| meikyo_lab::ask(&directory, &roles, &task);
    let (Done::Tables(tables), Done::Counters(counters), Done::Names { switches, hosts }) =
        (ask(Task::Tables)?, ask(Task::Counters)?, ask(Task::Names)?)
    else {
        return Err(Failure::new("the lab sent an unexpected answer"));
    };
    let cut = cut_links(&directory.blueprint()?, &counters);
    let up_s = WallTime::now().since(WallTime::from_nanos(status.record.asked_ns)).as_secs_f64();
    if args.json {
        let switches: Vec<_> = switches
            .iter()
            .zip(tables.iter().zip(&counters))
            .map(|(name, (table, ports))| {
                json!({ "switch": name, "table_entries": table.len(), "ports": ports })
            })
            .collect();
        output::print_json(&json!({
            "schema": SCHEMA,
            "running": true,
            "name": status.record.name,
            "directory": directory.path(),
            "files": status.record.files,
            "engine": engine_word(&status),
            "kernel": status.ready.kernel,
            "up_s": up_s,
            "commands": status.commands,
            "resident_bytes": status.resident_bytes,
            "hosts": hosts,
            "cut": cut.iter().map(|(link, own)| json!({
                "link": link, "cables": own.cables, "cables_cut": own.cut,
            })).collect::<Vec<_>>(),
            "switches": switches,
        }))?;
        return Ok(Answer::Yes);
    }
    let mut text = format!(
        "{}: up for {up_s:.0} s on {} (Linux {}), {} MiB resident, {} commands\n\
         can be written inside: {}\nhosts: {}\n\n",
        status.record.name,
        engine_word(&status),
        status.ready.kernel,
        status.resident_bytes >> 20,
        status.commands,
        status.record.files.display(),
        meikyo_cluster::fold(&hosts),
    );
    let table = port_table(&switches, &tables, &counters, args.ports);
    text.push_str(&table.to_string());
    for (link, Link { cables, cut }) in cut {
        writeln!(text, "{link}: {cut} of {cables} cables cut").expect("a string takes all");
    }
    output::print(&text)?;
    Ok(Answer::Yes)
}

/// What each switch has learned and counted.
fn port_table(
    switches: &[String],
    tables: &[Vec<Entry>],
    counters: &[BTreeMap<String, Counters>],
    each_port: bool,
) -> TextTable {
    let mut table = TextTable::new(&["switch", "table entries", "frames in", "frames out"]);
    for (name, (learned, ports)) in switches.iter().zip(tables.iter().zip(counters)) {
        let real = || ports.iter().filter(|(device, _)| device.starts_with("swp"));
        let row = |name: String, learned: String, received: u64, sent: u64| {
            [name, learned, received.to_string(), sent.to_string()]
        };
        let received = real().map(|(_, port)| port.received_frames).sum();
        let sent = real().map(|(_, port)| port.sent_frames).sum();
        table.row(row(name.clone(), learned.len().to_string(), received, sent));
        if each_port {
            for (device, port) in real() {
                let name = format!("  {device}");
                table.row(row(name, String::new(), port.received_frames, port.sent_frames));
            }
        }
    }
    table
}

/// The cables of a link between two switches.
#[derive(Debug, Default)]
struct Link {
    cables: usize,
    cut: usize,
}

/// The links of which some cable is cut, as `sw1:sw2`.
fn cut_links(
    blueprint: &Blueprint,
    counters: &[BTreeMap<String, Counters>],
) -> BTreeMap<String, Link> {
    let switches: BTreeMap<usize, &BTreeMap<String, Counters>> =
        blueprint.switches().map(|(space, _)| space).zip(counters).collect();
    let mut links: BTreeMap<String, Link> = BTreeMap::new();
    for cable in blueprint.cables.iter().filter(|cable| cable.purpose == Purpose::Trunk) {
        let names = cable.ends.each_ref().map(|end| blueprint.spaces[end.space].name.as_str());
        let is_down = cable.ends.iter().any(|end| {
            let port = switches.get(&end.space).and_then(|ports| ports.get(&end.device));
            port.is_some_and(|port| !port.up)
        });
        let link = links.entry(names.join(":")).or_default();
        link.cables += 1;
        link.cut += usize::from(is_down);
    }
    links.retain(|_, link| link.cut > 0);
    links
}

fn engine_word(status: &Status) -> &'static str {
    match status.record.engine {
        Engine::Namespaces => "namespaces",
        Engine::UserModeLinux { .. } => "user-mode Linux",
    }
}

pub(super) fn down(args: &DownArgs) -> Result<Answer, Failure> {
    let directory = args.which.directory()?;
    let is_named = args.which.lab.is_some();
    if let Some(owner) = directory.owner().filter(|&owner| !may_end(owner, is_named)) {
        let text = format!("the lab in {} belongs to user {owner}", directory.path().display());
        return Err(Failure::new(text).hint("`--lab DIR` names one of your own"));
    }
    if !is_named {
        let running = meikyo_lab::running(&roles::roles()?);
        let is_alone = running.iter().all(|(own, _)| *own == directory);
        if !is_alone {
            let each = running.iter().map(|(own, record)| in_words(own, record));
            let each: Vec<String> = each.collect();
            let text = format!("which lab? There is {}", each.join("; there is "));
            let hint = format!("meikyo lab down --lab {}", running[0].0.path().display());
            return Err(Failure::new(text).hint(hint));
        }
    }
    let what = match directory.record() {
        Ok(record) => in_words(&directory, &record),
        Err(_) => format!("what is left of a lab in {}", directory.path().display()),
    };
    if directory.is_of_a_lab() {
        super::say(&format!("ending {what}"));
    }
    let said = if meikyo_lab::down(&directory)? {
        format!("ended; {} is gone", directory.path().display())
    } else {
        format!("no lab was in {}", directory.path().display())
    };
    super::say(&said);
    Ok(Answer::Yes)
}

/// Root ends the lab of somebody else if that is what was named.
fn may_end(owner: u32, is_named: bool) -> bool {
    let user = meikyo_lab::user();
    owner == user || (is_named && user == 0)
}

/// Which lab that is, for whoever is about to end it.
fn in_words(directory: &Directory, record: &Record) -> String {
    let up = WallTime::now().since(WallTime::from_nanos(record.asked_ns)).as_secs_f64();
    format!(
        "`{}` in {}: {} and {}, up for {up:.0} s",
        record.name,
        directory.path().display(),
        counted(record.switches, "switch"),
        counted(record.hosts, "host"),
    )
}
