//! The paper's figures 3 and 4: an interval's time against the number of hosts.
//!
//! Figure 3 is the least time over the intervals until all values are kept, for six sets of values;
//! figure 4 splits that of all five values into its parts. The paper gives numbers for 241 hosts and
//! all five values only; the rest of its figures is curves, which are not read off here.

use meikyo_console::benches::collect::CollectArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use serde_json::json;

use crate::collect::numbers::Numbers;
use crate::collect::run::{Plan, once};
use crate::collect::{answer, planned};
use crate::machine::Machine;
use crate::paper::FIVE_VALUES_241 as PAPER;
use crate::progress;
use crate::values::Values;

/// Numbers of hosts, up to the paper's greatest.
const HOSTS: [u32; 8] = [32, 64, 96, 128, 160, 192, 224, 241];

/// Runs figure 3; the answer is yes when every value was right.
pub(crate) fn three(args: &CollectArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let (mut series, mut runs) = (Vec::new(), Vec::new());
    for values in Values::ALL {
        let mut points = Vec::new();
        for agents in HOSTS {
            progress(&format!("{} of {agents} hosts", values.words()));
            let run = once(&Plan { agents, values, ..planned(args) })?;
            points.push(ms(run.completion_us.least()));
            runs.push(run);
        }
        series.push((values, points));
    }
    if args.json {
        let list: Vec<_> = series
            .iter()
            .map(|(values, points)| json!({ "values": values.words(), "kept_ms_min": points }))
            .collect();
        output::print_json(&json!({
            "schema": "meikyo.bench.collect.figure3/1",
            "machine": machine,
            "hosts": HOSTS,
            "series": list,
            "paper": { "hosts": PAPER.hosts, "values": Values::Five.words(), "kept_ms_min": PAPER.kept_ms },
        }))?;
        return Ok(answer(&runs));
    }
    let mut headings = vec!["hosts".to_owned()];
    headings.extend(series.iter().map(|(values, _)| values.words().to_owned()));
    let headings: Vec<_> = headings.iter().map(String::as_str).collect();
    let mut table = TextTable::new(&headings);
    for (at, hosts) in HOSTS.iter().enumerate() {
        let cells = series.iter().map(|(_, points)| format!("{:.3}", points[at]));
        table.row(std::iter::once(hosts.to_string()).chain(cells));
    }
    output::print(&format!(
        "{machine}\nleast time over the intervals until all values are kept, ms (figure 3)\n{table}\
         the paper: {} hosts, all five values: {} ms\n",
        PAPER.hosts, PAPER.kept_ms
    ))?;
    Ok(answer(&runs))
}

/// Runs figure 4; the answer is yes when every value was right.
pub(crate) fn four(args: &CollectArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let (mut points, mut runs) = (Vec::new(), Vec::new());
    for agents in HOSTS {
        progress(&format!("{agents} hosts"));
        let run = once(&Plan { agents, ..planned(args) })?;
        points.push((agents, parts(&run)));
        runs.push(run);
    }
    if args.json {
        let list: Vec<_> = points
            .iter()
            .map(|(hosts, [sent, received, kept])| {
                json!({ "hosts": hosts, "sent_ms_min": sent, "received_ms_min": received, "kept_ms_min": kept })
            })
            .collect();
        output::print_json(&json!({
            "schema": "meikyo.bench.collect.figure4/1",
            "machine": machine,
            "points": list,
            "paper": {
                "hosts": PAPER.hosts,
                "sent_ms_min": PAPER.sent_ms,
                "received_ms_min": PAPER.received_ms,
                "kept_ms_min": PAPER.kept_ms,
            },
        }))?;
        return Ok(answer(&runs));
    }
    let mut table = TextTable::new(&["hosts", "requests sent", "responses in", "complete"]);
    for (hosts, parts) in &points {
        let cells = parts.iter().map(|part| format!("{part:.3}"));
        table.row(std::iter::once(hosts.to_string()).chain(cells));
    }
    let paper = [PAPER.sent_ms, PAPER.received_ms, PAPER.kept_ms].map(|ms| format!("{ms:.1}"));
    table.row(std::iter::once(format!("paper, {}", PAPER.hosts)).chain(paper));
    output::print(&format!(
        "{machine}\nall five values, least time over the intervals, ms (figure 4)\n{table}"
    ))?;
    Ok(answer(&runs))
}

fn parts(run: &Numbers) -> [f64; 3] {
    [run.sent_us.least(), run.received_us.least(), run.completion_us.least()].map(ms)
}

fn ms(micros: Option<f64>) -> f64 {
    micros.unwrap_or(f64::NAN) / 1e3
}
