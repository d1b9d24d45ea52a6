//! `meikyo fabric verify`: live switches, read over SNMP, against the plan and the cable list.

use clap::Args;
use meikyo_cluster::Device;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::{CheckOptions, Observed, SwitchId, check, verify};
use meikyo_snmp::{Client, ClientOptions, Credentials};
use serde_json::json;

use meikyo_units::in_one_line;

use super::site::{self, Planned};
use super::{FileArgs, bridge};

/// How often a request is sent again to a switch that is silent.
const RETRIES: u32 = 2;

/// Arguments of `meikyo fabric verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    input: FileArgs,
    /// Only this switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
}

pub(super) fn run(args: &VerifyArgs) -> Result<Answer, Failure> {
    let planned = site::planned(&args.input)?;
    let named = args.switch.as_ref().map(|name| site::switch_named(&planned.wiring, name));
    let only = named.transpose()?;
    let report = check(&planned.wiring, &planned.configuration, &CheckOptions::INTACT);
    let mut table = TextTable::new(&["switch", "what is not as planned"]);
    let mut rows = Vec::new();
    let mut switches = Vec::new();
    for switch in planned.switches().filter(|own| only.is_none_or(|only| only == *own)) {
        let name = planned.name(switch);
        let mut told = |text: String| {
            rows.push(json!({ "switch": name, "finding": text }));
            table.row([name.to_owned(), text]);
        };
        match read(&planned, &args.input, switch) {
            Err(problem) => told(problem),
            Ok(observed) => {
                let findings = verify(&planned.wiring, &planned.configuration, switch, &observed);
                findings.iter().for_each(|own| told(own.in_words(&planned.wiring)));
                switches.push(json!({
                    "switch": name,
                    "hosts_learned": observed.learned.len(),
                    "table_entries_planned": report.table_entries.get(switch.place()),
                    "neighbours_heard": observed.neighbours.len(),
                }));
            }
        }
    }
    let (good, none_read) = (rows.is_empty(), switches.is_empty());
    if args.input.json {
        output::print_json(&json!({
            "schema": "meikyo.fabric.verify/1", "switches": switches, "findings": rows,
        }))?;
    } else if good {
        output::print("all switches and cables are as planned\n")?;
    } else {
        output::print(&table.to_string())?;
    }
    if none_read {
        return Err(Failure::new("no switch could be compared")
            .hint("meikyo probe says what keeps them from answering"));
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}

/// What a switch says; or why it says nothing.
pub(super) fn read(
    planned: &Planned,
    input: &FileArgs,
    switch: SwitchId,
) -> Result<Observed, String> {
    let name = planned.name(switch);
    let device: &Device = planned
        .cluster
        .devices
        .iter()
        .find(|device| device.name == name)
        .ok_or("the file says no address of it")?;
    let base = input.cluster.file.parent().unwrap_or_else(|| std::path::Path::new(""));
    let credentials =
        Credentials::resolve(&device.snmp.access, base).map_err(|error| in_one_line(&error))?;
    let options = ClientOptions { timeout: device.snmp.timeout, retries: RETRIES };
    let mut client = Client::connect(device.address, credentials, options)
        .map_err(|error| in_one_line(&error))?;
    let mut walk = |subtree| client.walk(&subtree).map_err(|error| in_one_line(&error));
    bridge::observed(&planned.wiring, switch, &mut walk)
}
