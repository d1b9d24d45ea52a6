//! `meikyo profile report`, `top` and `diff`: what samples say.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, real};
use meikyo_profile::governor::percent;
use meikyo_profile::report::{self, By, NOT_KNOWN, Of, Report, ReportOptions};
use meikyo_profile::tables::{off_cpu, samples, summaries};
use meikyo_recording::Recording;
use meikyo_units::{Nanos, WallTime};
use serde_json::{Value, json};

use super::chosen::ChosenArgs;
use crate::missing_rows;
use crate::row_arguments::{RecordingArgument, TimeArguments, open};

/// Takes what samples can be counted by, in the words of the engine.
fn by_parser() -> impl TypedValueParser<Value = By> {
    let values = By::ALL.map(|by| PossibleValue::new(by.name()).help(by.words()));
    PossibleValuesParser::new(values).map(|name| {
        let found = By::ALL.into_iter().find(|by| by.name() == name);
        found.expect("only possible values are let through")
    })
}

/// What is counted, and how it is printed.
#[derive(Debug, Args)]
struct CountArgs {
    /// What to count samples by
    #[arg(long, value_name = "WHAT", value_parser = by_parser(), default_value = By::Function.name())]
    by: By,
    #[command(flatten)]
    chosen: ChosenArgs,
    /// Maximum number of lines
    #[arg(long, value_name = "N", default_value_t = 30)]
    lines: usize,
    /// Count what hosts have summed up (`meikyo profile agent --summary`) in place of samples
    #[arg(long)]
    summary: bool,
    /// Count how long threads were off the CPU (`meikyo profile record --off-cpu`), by the function from
    /// which they went into the kernel
    #[arg(long, conflicts_with = "summary")]
    off_cpu: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Count the samples of a recording
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    #[command(flatten)]
    count: CountArgs,
    #[command(flatten)]
    times: TimeArguments,
}

/// Count the newest samples of a recording
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    recording: RecordingArgument,
    #[command(flatten)]
    count: CountArgs,
    /// How far back from the newest sample
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    last: Nanos,
}

/// Compare two profiles: functions whose share of samples changed
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The recording before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The recording after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    #[command(flatten)]
    count: CountArgs,
}

impl CountArgs {
    fn options(&self, span: [Option<WallTime>; 2]) -> ReportOptions {
        let of = match (self.summary, self.off_cpu) {
            (true, _) => Of::Summaries,
            (false, true) => Of::OffCpu,
            (false, false) => Of::Samples,
        };
        ReportOptions { by: self.by, wanted: self.chosen.wanted(span), of }
    }

    /// The table that is counted.
    fn table(&self) -> &'static str {
        match (self.summary, self.off_cpu) {
            (true, _) => summaries::NAME,
            (false, true) => off_cpu::NAME,
            (false, false) => samples::NAME,
        }
    }
}

/// Carries out `meikyo profile report`.
pub(super) fn run(args: &ReportArgs) -> Result<Answer, Failure> {
    let recording = opened(&args.recording.dir)?;
    let (from, to) = args.times.instants(&recording, args.count.table())?;
    print(&report::report(&recording, &args.count.options([from, to]))?, &args.count)
}

/// Carries out `meikyo profile top`.
pub(super) fn top(args: &TopArgs) -> Result<Answer, Failure> {
    let recording = opened(&args.recording.dir)?;
    let end = recording.span(args.count.table())?.map(|(_, end)| end);
    let from = end.map(|end| end.before(args.last));
    print(&report::report(&recording, &args.count.options([from, None]))?, &args.count)
}

/// Carries out `meikyo profile diff`.
pub(super) fn diff(args: &DiffArgs) -> Result<Answer, Failure> {
    let options = args.count.options([None, None]);
    let [before, after] = [&args.before, &args.after].map(|dir| {
        let recording = opened(dir)?;
        Ok::<_, Failure>(report::report(&recording, &options)?)
    });
    let (before, after) = (before?, after?);
    let mut differences = report::compare(&before, &after);
    differences.retain(|it| it.share_ppm[0] != it.share_ppm[1]);
    let shown = differences.iter().take(args.count.lines);
    let unit = unit(&before);
    if args.count.json {
        let lines: Vec<Value> = shown
            .map(|it| {
                let [one, other] = ["before", "after"].map(|of| format!("{unit}_{of}"));
                json!({
                    "name": it.name, "file": it.file,
                    one: it.own[0], other: it.own[1],
                    "percent_before": percent(it.share_ppm[0]),
                    "percent_after": percent(it.share_ppm[1]),
                })
            })
            .collect();
        let [one, other] = ["before", "after"].map(|of| format!("{unit}_{of}"));
        output::print_json(&json!({
            "schema": "meikyo.profile.diff/1", one: before.samples, other: after.samples,
            "lines": lines,
        }))?;
    } else {
        let mut table = TextTable::new(&["before", "after", "change", "file", "name"]);
        for it in shown {
            let [one, other] = it.share_ppm.map(percent);
            let cells =
                [format!("{one:.2}%"), format!("{other:.2}%"), format!("{:+.2}%", other - one)];
            table.row(cells.into_iter().chain([it.file.clone(), it.name.clone()]));
        }
        output::print(&table.fitted(output::terminal_width()).to_string())?;
    }
    let mut answer = Answer::Yes;
    for (report, dir) in [(&before, &args.before), (&after, &args.after)] {
        if !told_of_samples(report, &args.count, &format!(" in `{}`", dir.display())) {
            answer = Answer::No;
        }
    }
    let problems = [before.problems, after.problems].concat();
    Ok(if answer == Answer::Yes { missing_rows::tell(&problems) } else { answer })
}

/// Whether there are samples in a report; where not, that is said.
fn told_of_samples(report: &Report, args: &CountArgs, place: &str) -> bool {
    if report.samples == 0 {
        let of = args.chosen.words();
        let what = match (args.summary, args.off_cpu) {
            (true, _) => "are no sums of seconds, which are recorded with --summary,",
            (false, true) => "is no time off the CPU, which is recorded with --off-cpu,",
            (false, false) => "are no samples",
        };
        output::say(&format!("meikyo: there {what}{of}{place}"));
    }
    report.samples > 0
}

pub(super) fn opened(dir: &Path) -> Result<Recording, Failure> {
    let recording = open(dir)?;
    if !recording.tables()?.contains_key(samples::NAME) {
        return Err(Failure::new(format!("`{}` holds no profile", dir.display()))
            .hint(format!("meikyo profile record --out {} --all --for 10s", dir.display())));
    }
    Ok(recording)
}

fn print(report: &Report, args: &CountArgs) -> Result<Answer, Failure> {
    if args.json {
        output::print_json(&document(report, args.lines))?;
    } else {
        output::print(&text(report, args.lines))?;
    }
    let is_by_group = matches!(args.by, By::Cgroup | By::Job);
    if is_by_group && !report.lines.is_empty() && report.lines.iter().all(|it| it.name == NOT_KNOWN)
    {
        output::say(
            "meikyo: control groups were not recorded; `profile record --cgroups` records them",
        );
    }
    let answer = missing_rows::tell(&report.problems);
    Ok(if told_of_samples(report, args, " in that span") { answer } else { Answer::No })
}

/// What a report counts, as a key of JSON.
fn unit(report: &Report) -> &'static str {
    if report.off_cpu.is_some() { "off_cpu_ns" } else { "samples" }
}

fn document(report: &Report, lines: usize) -> Value {
    let unit = unit(report);
    let lines: Vec<Value> = report
        .lines
        .iter()
        .take(lines)
        .map(|line| {
            json!({
                "name": line.name, "file": line.file, unit: line.own,
                format!("{unit}_with_callees"): line.total, "percent": share(line.own, report),
                "percent_with_callees": share(line.total, report),
            })
        })
        .collect();
    let unnamed: serde_json::Map<String, Value> =
        report.unnamed.iter().map(|(why, count)| (why.word().to_owned(), json!(count))).collect();
    let losses: serde_json::Map<String, Value> =
        report.losses.iter().map(|loss| (loss.what.clone(), json!(loss.count))).collect();
    json!({
        "schema": "meikyo.profile.report/1", unit: report.samples,
        "samples_summed_up": report.summed_up,
        "off_cpu_spans": report.off_cpu.map(|of| of.spans),
        "preempted_ns": report.off_cpu.map(|of| of.preempted_ns),
        "from": report.span.map(|span| span.0.to_string()),
        "to": report.span.map(|span| span.1.to_string()),
        "lines": lines, "unnamed": unnamed, "losses": losses,
    })
}

fn text(report: &Report, lines: usize) -> String {
    let counted = if report.off_cpu.is_some() { "time" } else { "samples" };
    let mut table = TextTable::new(&["own", "with callees", counted, "file", "name"]);
    let amount = |amount: u64| match report.off_cpu {
        Some(_) => format!("{:.3}s", real(amount) / 1e9),
        None => amount.to_string(),
    };
    for line in report.lines.iter().take(lines) {
        table.row([
            format!("{:.2}%", share(line.own, report)),
            format!("{:.2}%", share(line.total, report)),
            amount(line.own),
            line.file.clone(),
            line.name.clone(),
        ]);
    }
    let mut text = table.fitted(output::terminal_width()).to_string();
    let unnamed: u64 = report.unnamed.iter().map(|(_, count)| count).sum();
    match report.off_cpu {
        Some(of) => {
            text += &format!(
                "{} off the CPU in {} spans, {} of it while others ran; {} without a name",
                amount(report.samples),
                of.spans,
                amount(of.preempted_ns),
                amount(unnamed),
            );
        }
        None => text += &format!("{} samples, {unnamed} without a name", report.samples),
    }
    let reasons: Vec<_> =
        report.unnamed.iter().map(|(why, of)| format!("{} {}", why.word(), amount(*of))).collect();
    if !reasons.is_empty() {
        text += &format!(" ({})", reasons.join(", "));
    }
    text.push('\n');
    if report.summed_up > 0 {
        text += &format!(
            "{} more samples are known as sums only: count those with --summary\n",
            report.summed_up
        );
    }
    for loss in &report.losses {
        text += &format!("lost: {} {}\n", loss.what, loss.count);
    }
    text
}

/// The share of all samples, %.
fn share(count: u64, report: &Report) -> f64 {
    100.0 * real(count) / real(report.samples.max(1))
}
