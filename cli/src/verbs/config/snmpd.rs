//! `meikyo config snmpd`: what has to stand in `snmpd.conf` of the hosts.

use meikyo_cluster::{AgentLines, agent_lines};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_snmp::objects;
use serde::Serialize;

use super::FileArgs;

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Agents {
    schema: &'static str,
    agents: Vec<AgentRow>,
}

#[derive(Debug, Serialize)]
struct AgentRow {
    hosts: String,
    count: usize,
    lines: Vec<String>,
}

pub(super) fn run(args: &FileArgs) -> Result<Answer, Failure> {
    let cluster = super::load(args)?.cluster;
    let agents = agent_lines(&cluster, |name| Some(objects::lookup(name).ok()?.oid.to_string()));
    if args.json {
        let row = |AgentLines { hosts, count, lines }| AgentRow { hosts, count, lines };
        let agents = agents.into_iter().map(row).collect();
        output::print_json(&Agents { schema: "meikyo.config.snmpd/1", agents })?;
        return Ok(Answer::Yes);
    }
    let mut text = String::new();
    for AgentLines { hosts, count, lines } in &agents {
        if !text.is_empty() {
            text.push('\n');
        }
        let machines = counted(*count, "host");
        text += &format!("# snmpd.conf of {hosts} ({machines}); replaces the whole file.\n");
        text += &lines.join("\n");
        text.push('\n');
    }
    if agents.is_empty() {
        text = format!("# `{}` has no hosts; switches have no snmpd.conf.\n", cluster.name);
    }
    output::print_document(&text)?;
    Ok(Answer::Yes)
}
