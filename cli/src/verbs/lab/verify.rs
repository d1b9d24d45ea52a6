//! `meikyo lab verify`: what was planned, held against what real bridges do.

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, counted};
use meikyo_lab::{Findings, VerifyOptions};
use serde::Serialize;

use super::{Model, Which, milliseconds, model, roles};

/// More pairs than this are not all followed, unless it is asked for.
const PAIRS_MAX: usize = 4_000;
/// How many pairs that are wrong are named.
const NAMED_MAX: usize = 10;

/// Arguments of `meikyo lab verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    which: Which,
    /// Check at most this many pairs, spread over all
    #[arg(long, value_name = "N", default_value_t = PAIRS_MAX)]
    pairs: usize,
    /// How long no frame may arrive until all are considered to have arrived
    #[arg(long, value_name = "SPAN", default_value = "5ms", value_parser = milliseconds)]
    quiet: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The findings as a document.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    #[serde(flatten)]
    findings: Findings,
}

pub(super) fn run(args: &VerifyArgs) -> Result<Answer, Failure> {
    let (directory, record) = args.which.record()?;
    let Model { wiring, configuration, .. } = model(&record.cluster)?;
    let options = VerifyOptions { pairs_max: args.pairs, quiet_ms: args.quiet, patience_ms: 1_000 };
    let roles = roles::roles()?;
    let findings = meikyo_lab::verify(&directory, &roles, &wiring, &configuration, &options)?;
    let answer = if findings.good { Answer::Yes } else { Answer::No };
    if args.json {
        output::print_json(&Document { schema: "meikyo.lab.verify/1", findings })?;
    } else {
        output::print(&text(&findings))?;
    }
    Ok(answer)
}

fn text(found: &Findings) -> String {
    let named = |list: &[String]| match list {
        [] => String::new(),
        list => {
            let first: Vec<&str> = list.iter().take(NAMED_MAX).map(String::as_str).collect();
            format!(": {}{}", first.join(", "), if list.len() > NAMED_MAX { " .." } else { "" })
        }
    };
    let but = |list: &[String]| match list {
        [] => String::new(),
        list => format!("; not{}", named(list)),
    };
    let beside = found.kernel_frames.iter();
    let beside: Vec<String> = beside.map(|(way, frames)| format!("{frames} {way}")).collect();
    let entries: u64 = found.table_entries_due.iter().sum();
    format!(
        "{} on {}\n\
         {} of {} answered{}\n\
         a broadcast of every host: {} copies, {} due\n\
         frames to one host that others got, too: {} before priming, {} after\n\
         {} of {} took the planned path{}\n\
         frames of the kernels' own on the way (ARP, IGMP): {}{}\n\
         table entries: {}, {entries} due\n",
        counted(found.hosts, "host"),
        counted(found.switches, "switch"),
        found.pairs - found.pairs_without_answer.len(),
        counted(found.pairs, "pair"),
        but(&found.pairs_without_answer),
        found.broadcast_copies,
        found.broadcast_copies_due,
        found.flooded_copies_unprimed,
        found.flooded_copies,
        found.pairs_followed - found.pairs_elsewhere.len(),
        counted(found.pairs_followed, "pair"),
        but(&found.pairs_elsewhere),
        found.kernel_frames.values().sum::<u64>(),
        named(&beside),
        found.table_entries.iter().sum::<usize>(),
    )
}
