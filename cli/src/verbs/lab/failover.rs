//! `meikyo lab failover`: links fail, the failure plan is applied, and how long that takes.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_fabric::TrunkId;
use meikyo_lab::{Recovery, fail_over};
use serde::Serialize;

use super::{Model, Which, milliseconds, model, roles};
use crate::verbs::fabric::site;

/// Arguments of `meikyo lab failover`.
#[derive(Debug, Args)]
pub(super) struct FailoverArgs {
    #[command(flatten)]
    which: Which,
    /// Only the links between these two switches [default: each in turn]
    #[arg(value_name = "SWITCH:SWITCH")]
    link: Option<String>,
    /// How long to wait for the answer to a ping
    #[arg(long, value_name = "SPAN", default_value = "200ms", value_parser = milliseconds)]
    patience: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    trunks: Vec<Row>,
}

/// One trunk.
#[derive(Debug, Serialize)]
struct Row {
    trunk: String,
    #[serde(flatten)]
    recovery: Recovery,
}

pub(super) fn run(args: &FailoverArgs) -> Result<Answer, Failure> {
    let (directory, record) = args.which.record()?;
    let Model { wiring, configuration, .. } = model(&record.cluster)?;
    let trunks = match &args.link {
        Some(link) => site::trunks_between(&wiring, link)?,
        None => (0..wiring.trunks.len()).map(TrunkId::new).collect(),
    };
    let roles = roles::roles()?;
    meikyo_lab::prime(&directory, &roles, &wiring, &configuration)?;
    let mut rows = Vec::new();
    for trunk in trunks {
        let recovery = fail_over(&directory, &roles, &wiring, &configuration, trunk, args.patience)
            .map_err(|error| {
                Failure::new(error)
                    .hint("`spare = true` in `[fabric]` plans VLANs for the failure of a trunk")
            })?;
        rows.push(Row { trunk: wiring.trunk_name(trunk), recovery });
    }
    let good = rows.iter().all(|row| row.recovery.good);
    if args.json {
        output::print_json(&Document { schema: "meikyo.lab.failover/1", trunks: rows })?;
    } else {
        output::print(&text(&rows))?;
    }
    Ok(if good { Answer::Yes } else { Answer::No })
}

fn text(rows: &[Row]) -> String {
    let mut table = TextTable::new(&[
        "trunk",
        "pairs lost",
        "promised",
        "ports moved",
        "noticed ms",
        "moved ms",
        "answered ms",
        "not restored",
    ]);
    let milliseconds = |micros: u64| format!("{}.{}", micros / 1_000, micros % 1_000 / 100);
    for Row { trunk, recovery: own } in rows {
        let lost = own.pairs_not_restored.iter().chain(&own.pairs_lost_after_mending);
        let lost: Vec<&str> = lost.map(String::as_str).collect();
        table.row([
            trunk.clone(),
            own.pairs_lost_at_cut.to_string(),
            format!("{} of {}", own.pairs_promised, own.pairs),
            own.ports_moved.to_string(),
            milliseconds(own.noticed_us),
            milliseconds(own.applied_us),
            own.answered_us.map_or_else(|| "never".to_owned(), milliseconds),
            if lost.is_empty() { "none".to_owned() } else { lost.join(", ") },
        ]);
    }
    format!("{table}Times are measured from the cut.\n")
}
