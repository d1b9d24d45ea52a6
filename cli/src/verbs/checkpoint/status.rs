//! `meikyo checkpoint status`: how a daemon and its group stand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use meikyo_checkpoint::daemon::{Answer as Told, Cost, Request, Status};
use meikyo_checkpoint::interval::{Risk, daly, lost_share, young};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, bytes_text, real, span_text, terminal_width};
use meikyo_units::Nanos;
use serde_json::json;

use super::levels;
use super::plan::{DETECTION, INTERFERENCE_PERCENT, MTBF};
use super::program::asked;
use super::site::Site;

/// Rows of a column that is as high as the highest.
const ROWS: u64 = 6;

/// How wide output is that goes to no terminal.
const WIDTH: usize = 100;

/// Whose status is shown, and how.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The daemon's directory, or that of a job of `run`
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Mean time between failures of one host, for the best interval
    #[arg(long, value_name = "SPAN", default_value = MTBF)]
    mtbf: Nanos,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows the status; the answer is no when a host does not answer, or this one is no member.
pub(super) fn run(args: &StatusArgs) -> Result<Answer, Failure> {
    let status = status_of(&args.directory)?;
    let optimum = Optimum::of(&status, args.mtbf);
    if args.json {
        output::print_json(&json!({
            "schema": "meikyo.checkpoint.status/1",
            "status": status,
            "optimum": optimum.map(|optimum| json!({
                "cost_s": optimum.cost.as_secs_f64(),
                "every_s": optimum.every.map(Nanos::as_secs_f64),
                "lost_share": optimum.lost_share,
                "interval_s": optimum.daly.as_secs_f64(),
                "interval_young_s": optimum.young.as_secs_f64(),
                "least_lost_share": optimum.least,
            })),
        }))?;
    } else {
        output::print(&text(&status, optimum.as_ref(), args.mtbf))?;
    }
    let is_well = status.is_member && status.hosts.iter().all(|word| word == "alive");
    Ok(if is_well { Answer::Yes } else { Answer::No })
}

/// Of the daemon of a directory, or of the first of a job that answers.
fn status_of(directory: &Path) -> Result<Status, Failure> {
    if let Ok(site) = Site::read(directory) {
        let answered = site.hosts.iter().find_map(|host| site.status(host));
        return answered.ok_or_else(|| {
            let directory = directory.display();
            Failure::new(format!("no daemon of the job in `{directory}` answers"))
                .hint(format!("meikyo checkpoint restart --directory {directory} goes on with it"))
        });
    }
    match asked(directory, &Request::Status)? {
        Told::Status(status) => Ok(*status),
        _ => Err(Failure::new("the daemon sent an unexpected answer")),
    }
}

/// What checkpoints cost the program, against what they would cost at the best interval.
#[derive(Debug, Clone, Copy)]
struct Optimum {
    cost: Nanos,
    every: Option<Nanos>,
    lost_share: Option<f64>,
    daly: Nanos,
    young: Nanos,
    least: f64,
}

impl Optimum {
    /// Of the newest save; nothing before there is one, or where nobody knows how long the program stood still.
    fn of(status: &Status, mtbf: Nanos) -> Option<Self> {
        let saved = status.cost.as_ref()?;
        let behind = saved.seconds * f64::from(INTERFERENCE_PERCENT) / 100.0;
        let cost = Nanos::from_secs_f64(saved.stop_seconds? + behind);
        let hosts = status.hosts.len().max(1) as u64;
        // What is lost is rebuilt about as fast as it was written, and the program falls back on the one before.
        let restart = DETECTION + Nanos::from_secs_f64(2.0 * saved.seconds);
        let risk = Risk { cost, restart, between_failures: Nanos::new(mtbf.get() / hosts) };
        let every = status.every_seconds.map(Nanos::from_secs_f64);
        let best = daly(&risk);
        Some(Self {
            cost,
            every,
            lost_share: every.map(|every| lost_share(&risk, every)),
            daly: best,
            young: young(&risk),
            least: lost_share(&risk, best),
        })
    }
}

fn text(status: &Status, optimum: Option<&Optimum>, mtbf: Nanos) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let whole: Vec<String> = status.whole.iter().map(u64::to_string).collect();
    let mut text = format!(
        "committed generation {}, step {}; being written: {}\n\
         whole on this host: {}\nmembership version {}{}; {}\n{}\n{}",
        number(status.committed),
        number(status.step),
        number(status.open),
        if whole.is_empty() { "none".to_owned() } else { whole.join(", ") },
        status.version,
        if status.is_member { "" } else { "; this host is no member" },
        status.scheme,
        status.last.as_deref().map_or_else(String::new, |last| format!("last: {last}\n")),
        columns(status, terminal_width().unwrap_or(WIDTH)),
    );
    if let Some(cost) = &status.cost {
        text += &cost_text(cost);
    }
    if let Some(optimum) = optimum {
        text += &optimum_text(optimum, mtbf);
    }
    text += &levels::text(status);
    if let Some(step) = status.drained_step {
        let every = status.drain_every_seconds.map(Nanos::from_secs_f64).map(span_text);
        let every = every.map_or_else(String::new, |every| format!(", one is every {every}"));
        writeln!(text, "step {step} is on the shared file system{every}")
            .expect("strings take everything");
    }
    text
}

/// The group as columns of blocks: of each host its image, and above it the parity that it keeps for others.
fn columns(status: &Status, width_max: usize) -> String {
    let places = 0..status.hosts.len();
    let name =
        |place: usize| status.names.get(place).map_or_else(|| place.to_string(), Clone::clone);
    let state = |place: usize| {
        let own = if place == status.place { "here" } else { "alive" };
        if status.hosts[place] == "alive" { own.to_owned() } else { status.hosts[place].clone() }
    };
    let highest = status.stored.iter().map(|part| part.image_bytes + part.parity_bytes).max();
    let highest = highest.unwrap_or(0).max(1);
    // Anything takes a row at least.
    let rows = |bytes: u64| bytes.saturating_mul(ROWS).div_ceil(highest);
    let block = |place: usize, row: u64| {
        let Some(part) = status.stored.get(place) else { return "" };
        let image = rows(part.image_bytes);
        match status.hosts[place].as_str() {
            _ if row >= image + rows(part.parity_bytes) => "",
            "dead" => "····",
            _ if row < image => "████",
            _ => "▒▒▒▒",
        }
    };
    let width =
        places.clone().map(|place| name(place).len()).max().unwrap_or(0).max("suspected".len());
    let each = (width_max / (width + 1)).max(1);
    let mut text = String::new();
    for first in places.step_by(each) {
        let shown = first..(first + each).min(status.hosts.len());
        let mut line = |cell: &dyn Fn(usize) -> String| {
            let cells = shown.clone().map(|place| format!("{:width$}", cell(place)));
            writeln!(text, "{}", cells.collect::<Vec<_>>().join(" ").trim_end())
                .expect("strings take everything");
        };
        if !status.stored.is_empty() {
            (0..=ROWS).rev().for_each(|row| line(&|place| block(place, row).to_owned()));
        }
        line(&name);
        line(&state);
        if !status.stored.is_empty() {
            line(&|place| bytes_text(status.stored[place].image_bytes));
        }
    }
    if !status.stored.is_empty() {
        text += "████ image  ▒▒▒▒ parity for others  ···· lost with its host\n\n";
    }
    text
}

fn cost_text(cost: &Cost) -> String {
    let made_of = cost.made_of.map_or_else(String::new, |base| format!(" out of {base}"));
    let stop = cost.stop_seconds;
    let stop = stop.map(|stop| format!(", the program stood still for {:.1} ms", stop * 1e3));
    format!(
        "last save: generation {}{made_of} in {:.2} s ({:.2} s of a processor{}): {} of {} changed, {} sent\n",
        cost.generation,
        cost.seconds,
        cost.cpu_seconds,
        stop.unwrap_or_default(),
        bytes_text(cost.changed_bytes),
        bytes_text(cost.bytes),
        bytes_text(cost.sent_bytes),
    )
}

fn optimum_text(optimum: &Optimum, mtbf: Nanos) -> String {
    let percent = |share: f64| format!("{:.3} %", share * 100.0);
    let days = real(mtbf.get()) / 86_400e9;
    let now = optimum.every.zip(optimum.lost_share).map_or_else(String::new, |(every, lost)| {
        format!("; every {}, as now, {} of the time is lost", span_text(every), percent(lost))
    });
    format!(
        "a checkpoint takes {} of the program's time{now}\n\
         best interval: {} (Daly; Young: {}), at which {} of the time is lost if a host fails once in {days:.0} days\n",
        span_text(optimum.cost),
        span_text(optimum.daly),
        span_text(optimum.young),
        percent(optimum.least),
    )
}

#[cfg(test)]
mod tests {
    use meikyo_checkpoint::daemon::StoredPart;

    use super::*;

    fn status() -> Status {
        let cost = Cost {
            generation: 7,
            made_of: Some(6),
            bytes: 3_000,
            changed_bytes: 1_000,
            sent_bytes: 1_001,
            received_bytes: 1_001,
            seconds: 20.0,
            cpu_seconds: 0.5,
            stop_seconds: Some(0.5),
        };
        Status {
            place: 1,
            is_member: true,
            version: 1,
            committed: Some(7),
            run: Some(1),
            step: Some(70),
            open: None,
            handed: None,
            whole: vec![6, 7],
            hosts: ["alive", "alive", "dead"].map(str::to_owned).into(),
            cost: Some(Box::new(cost)),
            last: None,
            names: ["one", "two", "three"].map(str::to_owned).into(),
            scheme: "ring".to_owned(),
            stored: [3_000, 1_500, 3_000]
                .map(|image_bytes| StoredPart { image_bytes, parity_bytes: 1_500 })
                .into(),
            every_seconds: Some(60.0),
            drained_step: Some(60),
            drain_every_seconds: Some(3_600.0),
            levels: Vec::new(),
            freed: None,
        }
    }

    #[test]
    fn hosts_are_columns_of_their_blocks() {
        let expected = "\
            ▒▒▒▒                ····\n\
            ▒▒▒▒                ····\n\
            ████      ▒▒▒▒      ····\n\
            ████      ▒▒▒▒      ····\n\
            ████      ████      ····\n\
            ████      ████      ····\n\
            one       two       three\n\
            alive     here      dead\n\
            3.0 kB    1.5 kB    3.0 kB\n";
        let text = columns(&status(), 80);
        assert!(text.trim_start_matches('\n').starts_with(expected), "{text}");
        // What does not fit stands below.
        let narrow = columns(&status(), 20);
        assert!(narrow.contains("one       two\n") && narrow.contains("\nthree\n"), "{narrow}");
    }

    #[test]
    fn cost_is_compared_with_that_of_the_best_interval() {
        // Half a second still and 5 % of 20 s; a host fails once in 3,000,000 s, so one of three in 1,000,000 s.
        let optimum = Optimum::of(&status(), Nanos::from_secs(3_000_000)).unwrap();
        assert_eq!(optimum.cost, Nanos::from_millis(1_500));
        // sqrt(2 * 1.5 * 1e6) = 1732.05 s.
        assert!((optimum.young.as_secs_f64() - 1_732.05).abs() < 0.01);
        // 1.5 s of 61.5, and what failures take: 30 s of repeated work and 42 s of restart in 1e6.
        let lost = optimum.lost_share.unwrap();
        assert!((lost - (1.5 / 61.5 + 72.0 / 1e6)).abs() < 2e-5, "{lost}");
        assert!(optimum.least < 0.002 && optimum.least > 0.001, "{}", optimum.least);
        let mut unsaved = status();
        unsaved.cost = None;
        assert!(Optimum::of(&unsaved, Nanos::from_secs(1)).is_none());
    }
}
