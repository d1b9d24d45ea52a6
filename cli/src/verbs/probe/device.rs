//! One device, looked at closely.

use meikyo_cluster::{Cluster, Device};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, span_text};
use meikyo_console::printable::line;
use meikyo_snmp::Credentials;
use meikyo_snmp::freshness::{Class, Finding};
use meikyo_snmp::probe::{Cost, ProbeError, ProbeOptions, Report, Trouble, Watched, probe};
use meikyo_units::Nanos;
use serde::Serialize;

use super::{ProbeArgs, file::lines_to_add};

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    device: String,
    address: String,
    answers: bool,
    problems: Vec<ProblemRow>,
    #[serde(flatten)]
    seen: Option<Seen>,
}

#[derive(Debug, Serialize)]
struct ProblemRow {
    line: usize,
    measure: Option<String>,
    problem: String,
    has: Vec<String>,
    remedy: Option<String>,
    add: Vec<String>,
}

/// What was seen of a device that answers.
#[derive(Debug, Serialize)]
struct Seen {
    description: Option<String>,
    name: Option<String>,
    uptime_s: Option<u64>,
    answers_count: usize,
    lost_count: usize,
    round_trip_us_min: u64,
    round_trip_us_median: u64,
    round_trip_us_p99: u64,
    interval_us: u64,
    requests_per_interval: usize,
    agent_core_percent_max: f64,
    agent_core_percent: Option<f64>,
    agent_cpu_us_per_poll: Option<f64>,
    values: Vec<ValueRow>,
}

#[derive(Debug, Serialize)]
struct ValueRow {
    table: String,
    instance: Option<String>,
    column: String,
    oid: String,
    value: Option<String>,
    declared_us: Option<u64>,
    class: Option<&'static str>,
    source: Option<&'static str>,
    period_us: Option<u64>,
    period_us_min: Option<u64>,
    period_us_max: Option<u64>,
    moved_count: usize,
}

pub(super) fn run(args: &ProbeArgs, cluster: &Cluster, device: &Device) -> Result<Answer, Failure> {
    let options = ProbeOptions { every: args.every, watch: args.watch, agent_pid: args.agent_pid };
    let result = match Credentials::resolve(&device.snmp.access, cluster.base()) {
        Err(error) => Err(Trouble::of_credentials(&error)),
        Ok(credentials) => match probe(device, credentials, &options) {
            Ok(report) => Ok(report),
            // What the person named is wrong, not the device.
            Err(error @ ProbeError::Cpu(_)) => {
                let hint = Trouble::of_probe(device, &error).remedy;
                return Err(Failure::new(error).hint(hint));
            }
            Err(error) => Err(Trouble::of_probe(device, &error)),
        },
    };
    let document = document(device, &result);
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(&text(args, device, &document, &result))?;
    }
    Ok(if document.problems.is_empty() { Answer::Yes } else { Answer::No })
}

fn document(device: &Device, result: &Result<Report, Trouble>) -> Document {
    let problems = match result {
        Err(trouble) => vec![ProblemRow {
            line: device.place.line,
            measure: None,
            problem: trouble.text.clone(),
            has: Vec::new(),
            remedy: Some(trouble.remedy.clone()),
            add: Vec::new(),
        }],
        Ok(report) => {
            let row = |problem: &meikyo_snmp::resolve::Problem| ProblemRow {
                line: problem.line,
                measure: problem.measure.clone(),
                problem: problem.fault.to_string(),
                has: problem.has.clone(),
                remedy: None,
                add: problem.add.clone(),
            };
            report.problems.iter().map(row).collect()
        }
    };
    Document {
        schema: "meikyo.probe.device/1",
        device: device.name.clone(),
        address: device.address.to_string(),
        answers: result.is_ok(),
        problems,
        seen: result.as_ref().ok().map(seen),
    }
}

fn seen(report: &Report) -> Seen {
    let Report { identity, latency, cost, .. } = report;
    let per_poll = |cpu: &meikyo_snmp::probe::CpuTime| {
        let polls = u32::try_from(cpu.polls.max(1)).map_or(f64::INFINITY, f64::from);
        cpu.used.as_secs_f64() * 1e6 / polls
    };
    Seen {
        description: identity.description.clone(),
        name: identity.name.clone(),
        uptime_s: identity.uptime.map(|uptime| uptime.get() / 1_000_000_000),
        answers_count: latency.answers,
        lost_count: latency.lost,
        round_trip_us_min: latency.least.as_micros(),
        round_trip_us_median: latency.median.as_micros(),
        round_trip_us_p99: latency.p99.as_micros(),
        interval_us: cost.interval.as_micros(),
        requests_per_interval: cost.requests,
        agent_core_percent_max: cost.share_max * 100.0,
        agent_core_percent: cost.measured.map(|cpu| cpu.share * 100.0),
        agent_cpu_us_per_poll: cost.measured.as_ref().map(per_poll),
        values: report.values.iter().map(value_row).collect(),
    }
}

fn value_row(value: &Watched) -> ValueRow {
    let class = value.found.map(|found| found.class);
    let (period, least, greatest) = match class {
        Some(Class::Periodic { period, .. }) => (Some(period), None, None),
        Some(Class::Irregular { least, mean, greatest }) => {
            (Some(mean), Some(least), Some(greatest))
        }
        _ => (None, None, None),
    };
    ValueRow {
        table: meikyo_snmp::tables::schema(value.table).name.clone(),
        instance: value.instance.clone(),
        column: value.column.clone(),
        oid: value.oid.to_string(),
        value: value.in_unit(),
        declared_us: value.declared.map(Nanos::as_micros),
        class: class.map(Class::word),
        source: value.found.map(|found| found.source.word()),
        period_us: period.map(Nanos::as_micros),
        period_us_min: least.map(Nanos::as_micros),
        period_us_max: greatest.map(Nanos::as_micros),
        moved_count: value.moved,
    }
}

fn text(
    args: &ProbeArgs,
    device: &Device,
    document: &Document,
    result: &Result<Report, Trouble>,
) -> String {
    let mut text = format!("{} at {}", device.name, device.address);
    if let Ok(report) = result {
        text += &report_text(args, report);
    } else {
        text.push('\n');
    }
    for problem in &document.problems {
        text += &format!("\n{}:{}: ", args.cluster.file.display(), problem.line);
        if let Some(measure) = &problem.measure {
            text += &format!("`{}`: ", line(measure));
        }
        text += &format!("{}\n", line(&problem.problem));
        if !problem.has.is_empty() {
            text += &format!("  there is: {}\n", line(&problem.has.join(", ")));
        }
        if let Some(remedy) = &problem.remedy {
            text += &format!("  remedy: {}\n", line(remedy));
        }
        text += &lines_to_add(problem.add.iter());
    }
    text
}

fn report_text(args: &ProbeArgs, report: &Report) -> String {
    let latency = &report.latency;
    let identity = &report.identity;
    let mut text = String::new();
    if let Some(name) = &identity.name {
        text += &format!(", calls itself {}", line(name));
    }
    if let Some(uptime) = identity.uptime {
        text += &format!(
            ", agent up {}",
            span_text(Nanos::from_secs(uptime.get() / Nanos::SECOND.get()))
        );
    }
    text.push('\n');
    if let Some(description) = &identity.description {
        text += &format!("  {}\n", line(description));
    }
    text += &format!(
        "  round trip: median {}, 99 of 100 within {} ({} answers, {} lost)\n",
        span_text(latency.median),
        span_text(latency.p99),
        latency.answers,
        latency.lost
    );
    text += &cost_text(&report.cost);
    let mut table = TextTable::new(&["value", "now", "declared", "observed", "moved"]);
    for value in &report.values {
        table.row(cells(value));
    }
    if !report.values.is_empty() {
        text += &format!("\n{table}");
        text += &format!(
            "\nWatched for {}. A value that moved fewer than three times needs longer (`--for`).\n",
            args.watch
        );
    }
    text
}

fn cost_text(cost: &Cost) -> String {
    let every = format!(
        "polled every {} ({} {} each)",
        cost.interval,
        cost.requests,
        if cost.requests == 1 { "request" } else { "requests" }
    );
    match cost.measured {
        Some(cpu) => format!(
            "  cost, {every}: {:.3} % of a core ({} of CPU in {})\n",
            cpu.share * 100.0,
            span_text(cpu.used),
            span_text(cpu.elapsed)
        ),
        None => format!(
            "  cost, {every}: at most {:.2} % of a core, from the round trips, network included\n",
            cost.share_max * 100.0
        ),
    }
}

fn cells(value: &Watched) -> [String; 5] {
    let schema = meikyo_snmp::tables::schema(value.table);
    let name = match &value.instance {
        Some(instance) => format!("{} {instance} {}", schema.name, value.column),
        None => format!("{} {}", schema.name, value.column),
    };
    let now = value.in_unit().unwrap_or_else(|| "none".to_owned());
    let declared = value.declared.map_or_else(String::new, span_text);
    let observed = match value.found {
        Some(Finding { class, source: meikyo_snmp::freshness::Source::Observed }) => {
            class.to_string()
        }
        _ => value.longest.map_or_else(
            || "not seen moving often enough".to_owned(),
            |longest| format!("moves up to {} apart", span_text(longest)),
        ),
    };
    [name, now, declared, observed, value.moved.to_string()]
}
