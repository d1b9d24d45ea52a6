//! `meikyo fabric predict`: how long a program takes on this fabric, and on what else its switches and
//! cables could make.

mod figure;
mod hostfile;
mod recorded;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, bytes_text, span_text};
use meikyo_console::side_by_side;
use meikyo_fabric::{Described, Plan, PlanOptions, Trunk, Wiring, plan};
use meikyo_models::parameters::Choice;
use meikyo_models::prediction::{
    self, Background, Frames, PredictError, Prediction, Settings, Skeleton, TopologyKind, variant,
};
use serde_json::{Value, json};

use meikyo_units::{BitsPerSecond, Nanos, in_one_line};

use super::FileArgs;
use crate::verbs::trace::files as trace_files;

/// Arguments of `meikyo fabric predict`.
#[derive(Debug, Args)]
pub(super) struct PredictArgs {
    #[command(flatten)]
    input: FileArgs,
    /// The program: hpl, one of the NAS Parallel Benchmarks (ep, is, cg, mg, ft, lu, bt, sp), or trace:DIR
    /// with what `meikyo trace` recorded
    #[arg(long, value_parser = wanted)]
    program: Wanted,
    /// File with the parameters of machine and program, as examples/predict-hpl.toml [default: the
    /// defaults of all keys]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Method of calculation: static, flow or packet [default: packet for a NAS benchmark, else flow]
    #[arg(long)]
    method: Option<String>,
    /// Class of a NAS benchmark, from a to d
    #[arg(long)]
    class: Option<String>,
    /// Number of ranks of a NAS benchmark
    #[arg(long)]
    ranks: Option<u32>,
    /// The order N of the matrix
    #[arg(long)]
    n: Option<u64>,
    /// The block size NB
    #[arg(long)]
    nb: Option<u64>,
    /// Process rows and columns, as 18x25 [default: one rank on each host, as square as can be, where no
    /// machine file says]
    #[arg(long, value_name = "PxQ", value_parser = grid)]
    grid: Option<(u32, u32)>,
    /// Set a key of the machine or the program: placement=round-robin
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The hosts of the ranks in their order, one a line as in a hostfile of MPI: `node01`,
    /// `node01 slots=2` or `node01:2`
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// Traffic of others while the program runs, at a constant rate of data; may be given several times:
    /// node01:node05:200Mbit/s
    #[arg(long, value_name = "FROM:TO:RATE", value_parser = background)]
    background: Vec<Background>,
    /// Predict with so many seeds, from the key `seed` on, and tell how much the times differ: where streams
    /// are hashed to, and what is drawn, decides
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,
    /// Also predict for other topologies of the same switches and hosts:
    /// tree,ring,mesh,torus,complete
    #[arg(long, value_name = "TOPOLOGIES", value_delimiter = ',', value_parser = kind)]
    compare: Vec<TopologyKind>,
    /// Cables per link of these, as 1..6
    #[arg(long, value_name = "RANGE", default_value = "1..1", value_parser = cables, requires = "compare")]
    cables: RangeInclusive<u16>,
    /// Also write what the ports of the switches carry on this fabric over time into a recording of kind
    /// simulated, which `meikyo serve --cluster` shows on the fabric
    #[arg(long, value_name = "RECORDING")]
    out: Option<PathBuf>,
    /// Draw the rates of these over the cables per link into this file, as SVG
    #[arg(long, value_name = "FILE", requires = "compare")]
    figure: Option<PathBuf>,
}

/// A program by name.
#[derive(Debug, Clone)]
enum Wanted {
    Known(Skeleton),
    Recorded(PathBuf),
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if let Some(path) = text.strip_prefix("trace:").filter(|path| !path.is_empty()) {
        return Ok(Wanted::Recorded(PathBuf::from(path)));
    }
    let words = || Skeleton::words().collect::<Vec<_>>().join(", ");
    let known = || format!("known are {} and trace:DIR", words());
    Skeleton::named(text).map(Wanted::Known).ok_or_else(known)
}

fn background(text: &str) -> Result<Background, String> {
    let mut words = text.splitn(3, ':');
    let (from, to, rate) = (words.next(), words.next(), words.next());
    let all = from.zip(to).zip(rate);
    let ((from, to), rate) = all.ok_or("write it as `node01:node05:200Mbit/s`")?;
    let rate: BitsPerSecond = rate.parse().map_err(|error| in_one_line(&error))?;
    if rate.get() == 0 {
        return Err("a rate of nothing is no traffic".to_owned());
    }
    Ok(Background { from: from.to_owned(), to: to.to_owned(), rate })
}

fn grid(text: &str) -> Result<(u32, u32), String> {
    let sides = text.split_once('x').and_then(|(p, q)| Some((p.parse().ok()?, q.parse().ok()?)));
    sides.filter(|&(p, q)| p > 0 && q > 0).ok_or_else(|| "write rows and columns as `18x25`".into())
}

fn kind(text: &str) -> Result<TopologyKind, String> {
    let found = TopologyKind::ALL.iter().find(|kind| kind.word() == text);
    found.copied().ok_or_else(|| format!("known are {}", TopologyKind::WORDS.join(", ")))
}

fn cables(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok());
    let range = range.filter(|&(first, last)| 1 <= first && first <= last);
    range.map(|(first, last)| first..=last).ok_or_else(|| "write a range as `1..6`".into())
}

/// One fabric, and what is predicted for it or why not.
struct Row {
    topology: String,
    cables_per_link: Option<u16>,
    cables: usize,
    predicted: Result<Prediction, String>,
    /// The times with all seeds, if there are several.
    times: Vec<Nanos>,
}

pub(super) fn run(args: &PredictArgs) -> Result<Answer, Failure> {
    let (_, Described { wiring, options }) = super::described(&args.input)?;
    let settings = settings(args, wiring.hosts.len())?;
    let own_plan = plan(&wiring, &options).map_err(super::unplannable)?;
    let input = settings.input();
    let input = if args.out.is_some() { input.with_courses() } else { input };
    let own = prediction::predict(&wiring, &own_plan, &input).map_err(|error| {
        let hint = match error {
            PredictError::TooManyMessages { .. } => {
                "choose a smaller --n, or leave `--method packet` out"
            }
            PredictError::Background(_) => {
                "`--background` takes hosts of the cluster file, and less than a cable carries of data"
            }
            PredictError::List(_) => "name hosts of the cluster file, one for each rank",
            PredictError::Ranks(_) => "choose another number with `--ranks`",
            PredictError::Placement(_) if *settings.skeleton() != Skeleton::Hpl => {
                "fewer `--ranks`, or `--set slots=2`, would change that"
            }
            _ => "--grid, or slots and memory in the machine file, would change that",
        };
        Failure::new(error).hint(hint)
    })?;
    let times = times(args, &wiring, &own_plan, &settings, own.time)?;
    let name = options.topology.as_ref().map_or_else(|| "as linked".into(), ToString::to_string);
    let own = Row {
        topology: format!("{name} (this one)"),
        cables_per_link: None,
        cables: count_cables(&wiring),
        predicted: Ok(own),
        times,
    };
    if let (Some(dir), Ok(predicted)) = (&args.out, &own.predicted) {
        recorded::write(dir, &wiring, predicted)?;
    }
    let mut others = others(args, &wiring, &options, &settings);
    others.sort_by_key(|row| row.cables);
    let rows: Vec<Row> = std::iter::once(own).chain(others).collect();
    if let Some(file) = &args.figure {
        figure::write(file, &rows)?;
    }
    if args.input.json {
        output::print_json(&document(&settings, &rows))?;
    } else {
        output::print(&text(&settings, &rows))?;
    }
    Ok(Answer::Yes)
}

fn settings(args: &PredictArgs, hosts: usize) -> Result<Settings, Failure> {
    let program = match &args.program {
        Wanted::Known(skeleton) => skeleton.clone(),
        Wanted::Recorded(path) => Skeleton::Trace(Arc::new(trace_files::read(path)?)),
    };
    let mut settings = match &args.machine {
        Some(path) => {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::new(format!("cannot read `{file}`: {error}")))?;
            Settings::parse(program, &text, &file)?
        }
        None => Settings::new(program),
    };
    let is_hpl = *settings.skeleton() == Skeleton::Hpl;
    let is_set = |setting: &String| {
        setting.split('=').next().is_some_and(|key| matches!(key.trim(), "p" | "q"))
    };
    let is_open = is_hpl && args.machine.is_none() && !args.set.iter().any(is_set);
    let all = if is_open { squarest(hosts) } else { None };
    let (p, q) = args.grid.or(all).unzip();
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let given = [
        ("n", args.n.map(|n| n.to_string())),
        ("nb", args.nb.map(|nb| nb.to_string())),
        ("p", number(p)),
        ("q", number(q)),
        ("class", args.class.as_ref().map(|class| class.to_lowercase())),
        ("ranks", number(args.ranks)),
        ("method", args.method.clone()),
    ];
    for (key, value) in given {
        if let Some(value) = value {
            settings.set(key, &value)?;
        }
    }
    for setting in &args.set {
        let pair = setting.split_once('=').filter(|(key, _)| !key.trim().is_empty());
        let (key, value) = pair.ok_or_else(|| {
            Failure::new(format!("`{setting}` sets nothing")).hint("--set placement=round-robin")
        })?;
        settings.set(key.trim(), value.trim())?;
    }
    settings.beside(args.background.clone());
    if let Some(path) = &args.hostfile {
        settings.place(hostfile::read(path)?);
    }
    Ok(settings)
}

/// Rows and columns of as many ranks, as near to a square as can be, with no more rows than columns.
fn squarest(ranks: usize) -> Option<(u32, u32)> {
    let ranks = u32::try_from(ranks).ok().filter(|&ranks| ranks > 0)?;
    let rows = (1..=ranks.isqrt()).rev().find(|rows| ranks % rows == 0)?;
    Some((rows, ranks / rows))
}

/// The other topologies that were asked for.
fn others(
    args: &PredictArgs,
    wiring: &Wiring,
    options: &PlanOptions,
    settings: &Settings,
) -> Vec<Row> {
    let switches = wiring.switches.len();
    let with_cables = |kind: &TopologyKind| {
        let topology = kind.written(switches);
        args.cables.clone().map(move |cables| (topology.clone(), cables))
    };
    let wanted: Vec<(String, u16)> = args.compare.iter().flat_map(with_cables).collect();
    let row = |(topology, cables_per_link): &(String, u16)| {
        let made = variant(wiring, options, topology, *cables_per_link);
        let (cables, found) = match made {
            Ok((wiring, plan)) => {
                let found = predict(&wiring, &plan, settings).and_then(|predicted| {
                    let times = times(args, &wiring, &plan, settings, predicted.time);
                    Ok((predicted, times.map_err(|error| in_one_line(&error))?))
                });
                (count_cables(&wiring), found)
            }
            Err(error) => (usize::MAX, Err(in_one_line(&error))),
        };
        let (predicted, times) = match found {
            Ok((predicted, times)) => (Ok(predicted), times),
            Err(why) => (Err(why), Vec::new()),
        };
        let (topology, cables_per_link) = (topology.clone(), Some(*cables_per_link));
        Row { topology, cables_per_link, cables, predicted, times }
    };
    side_by_side::each(&wanted, side_by_side::cores(), row, |_| ())
}

fn predict(wiring: &Wiring, plan: &Plan, settings: &Settings) -> Result<Prediction, String> {
    prediction::predict(wiring, plan, &settings.input()).map_err(|error| in_one_line(&error))
}

/// The times with all seeds that were asked for, of which the first is known; nothing if that is all.
fn times(
    args: &PredictArgs,
    wiring: &Wiring,
    plan: &Plan,
    settings: &Settings,
    first: Nanos,
) -> Result<Vec<Nanos>, PredictError> {
    if args.seeds == 1 {
        return Ok(Vec::new());
    }
    let seed = settings.input().seed;
    let more = (1..u64::from(args.seeds)).map(|more| {
        let mut settings = settings.clone();
        let seed = seed.wrapping_add(more) & (u64::MAX >> 1);
        settings.set("seed", &seed.to_string()).expect("every prediction has a seed");
        Ok(prediction::predict(wiring, plan, &settings.input())?.time)
    });
    std::iter::once(Ok(first)).chain(more).collect()
}

fn count_cables(wiring: &Wiring) -> usize {
    wiring.trunks.iter().map(Trunk::cables).sum()
}

fn document(settings: &Settings, rows: &[Row]) -> Value {
    let method = settings.input().method.word();
    let rate = match settings.skeleton() {
        Skeleton::Hpl => "gflops",
        Skeleton::Npb(_) => "mops_per_rank",
        Skeleton::Trace(_) => "runs_per_hour",
    };
    let shown = |row: &Row| {
        let mut shown = json!({
            "topology": row.topology,
            "cables_per_link": row.cables_per_link,
            "method": method,
        });
        match &row.predicted {
            Ok(predicted) => {
                shown["cables"] = json!(row.cables);
                shown["time_s"] = json!(predicted.time.as_secs_f64());
                shown[rate] = json!(predicted.rate);
                if let Some([run, all]) = predicted.sampled {
                    shown["iterations_run"] = json!(run);
                    shown["iterations"] = json!(all);
                }
                if let Some(frames) = predicted.frames {
                    shown["frame_hops"] = json!(frames.hops);
                    shown["frames_lost"] = json!(frames.lost);
                    shown["pauses"] = json!(frames.stops);
                }
                if !row.times.is_empty() {
                    let seconds = row.times.iter().map(|time| time.as_secs_f64());
                    shown["time_s_of_seeds"] = seconds.collect();
                }
                shown["time_s_least"] = json!(predicted.bounds.least().as_secs_f64());
                shown["time_s_without_overlap"] = json!(predicted.bounds.in_turn().as_secs_f64());
                shown["breakdown"] = breakdown(predicted);
                shown["busiest"] = busiest(predicted);
            }
            Err(reason) => shown["refused"] = json!(reason),
        }
        shown
    };
    let setting =
        |setting: &meikyo_models::scenario::Setting| (setting.key.to_owned(), json!(setting.value));
    json!({
        "schema": "meikyo.fabric.predict/1",
        "program": settings.skeleton().word(),
        "background": settings.background().iter().map(|Background { from, to, rate }| {
            json!({"from": from, "to": to, "bits_per_s": rate.get()})
        }).collect::<Vec<_>>(),
        "settings": settings.settings().iter().map(setting).collect::<serde_json::Map<_, _>>(),
        "rows": rows.iter().map(shown).collect::<Vec<_>>(),
    })
}

fn breakdown(predicted: &Prediction) -> Value {
    let shares = predicted.breakdown.iter();
    shares.map(|(what, share)| json!({"what": what, "share": share})).collect()
}

fn busiest(predicted: &Prediction) -> Value {
    let busy = predicted.busiest.iter();
    busy.map(
        |busy| json!({"lane": busy.lane, "carried_bytes": busy.carried.get(), "share": busy.share}),
    )
    .collect()
}

fn text(settings: &Settings, rows: &[Row]) -> String {
    let first = rows.first().and_then(|row| row.predicted.as_ref().ok());
    let rate = first.map_or("rate", |predicted| predicted.unit);
    let mut table = TextTable::new(&[
        "topology",
        "cables",
        "in all",
        "time",
        rate,
        "at least",
        "no overlap",
        "busiest cable",
        "used",
    ]);
    let mut refused = String::new();
    for row in rows {
        let each = row.cables_per_link.map_or_else(String::new, |cables| cables.to_string());
        match &row.predicted {
            Ok(predicted) => {
                let busiest = predicted.busiest.first();
                table.row([
                    row.topology.clone(),
                    each,
                    row.cables.to_string(),
                    span_text(predicted.time),
                    format!("{:.1}", predicted.rate),
                    span_text(predicted.bounds.least()),
                    span_text(predicted.bounds.in_turn()),
                    busiest.map_or_else(String::new, |busy| busy.lane.clone()),
                    busiest.map_or_else(String::new, |busy| format!("{:.0} %", busy.share * 100.0)),
                ]);
            }
            Err(reason) => {
                let each = if each.is_empty() { String::new() } else { format!(" ({each})") };
                refused += &format!("refused: {}{each}: {reason}\n", row.topology);
            }
        }
    }
    let mut text = format!("{table}\n{refused}");
    text += &spreads(rows);
    if let Some(own) = first {
        if let Some([run, all]) = own.sampled {
            text += &format!("from {run} of {all} iterations, which are alike\n");
        }
        if let Some(frames) = own.frames {
            let Frames { hops, lost, stops } = frames;
            text += &format!("{hops} frames on cables, {lost} lost, {stops} pauses\n");
        }
        for (what, share) in &own.breakdown {
            text += &format!("{:5.1} % {what}\n", share * 100.0);
        }
        text += "\n";
        for busy in own.busiest.iter().take(3) {
            let (lane, carried) = (&busy.lane, bytes_text(busy.carried.get()));
            text += &format!("{lane}: {carried}, {:.0} % of what it could\n", busy.share * 100.0);
        }
    }
    text + "\n" + &what_holds(settings)
}

/// How much times differ by seeds, where several were asked for.
fn spreads(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let (Some(least), Some(most)) = (row.times.iter().min(), row.times.iter().max()) else {
            continue;
        };
        let cables =
            row.cables_per_link.map_or_else(String::new, |cables| format!(", {cables} cables"));
        text += &format!(
            "{}{cables}: {} to {} with {} seeds\n",
            row.topology,
            span_text(*least),
            span_text(*most),
            row.times.len()
        );
    }
    text
}

/// Every setting, so that an answer says what it is an answer to.
fn what_holds(settings: &Settings) -> String {
    let told: Vec<String> = settings
        .settings()
        .into_iter()
        .filter_map(|setting| Some(format!("{} = {}", setting.key, setting.value?)))
        .collect();
    let background = settings.background().iter();
    let beside = background
        .map(|Background { from, to, rate }| format!("beside {rate} from {from} to {to}\n"));
    format!("with {}\n{}", told.join(", "), beside.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::squarest;

    #[test]
    fn grids_hold_all_ranks_and_are_as_square_as_can_be() {
        let grids = [1, 7, 12, 32, 225].map(squarest);
        let expected = [(1, 1), (1, 7), (3, 4), (4, 8), (15, 15)].map(Some);
        assert_eq!(grids, expected);
        assert_eq!(squarest(0), None);
    }
}
