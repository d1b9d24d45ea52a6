//! `meikyo bench predict`: predictions beside what "Performance Evaluation of VLAN-Ethernet Topologies on
//! PC Clusters" measured on `SuperNova` (225 hosts, 8 switches PowerConnect 6248).
//!
//! All rows of HPL are predicted from one file, `predict/supernova.toml`. One number is fitted, the rate of a
//! processor's matrix products, on one row that is marked; every row is printed. Of the NAS Parallel
//! Benchmarks the paper states gains of one topology over another ([`npb`]); nothing is fitted there. What real
//! programs do on cables of namespaces is measured and predicted apart ([`lab`]).

mod compared;
mod cost;
mod lab;
mod npb;

use std::time::Instant;

use meikyo_console::benches::predict::PredictBenchArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable};
use meikyo_console::side_by_side;
use meikyo_fabric::{PlanOptions, SwitchModel, Topology, Wiring, cable_uniform};
use meikyo_models::prediction::{self, Prediction, Program, Settings, Skeleton, variant};
use serde::Serialize;

use crate::machine::Machine;
use crate::placement::own_usage;
use crate::progress;
use crate::statistics::Observations;
use compared::{Compared, named};

/// What all rows are predicted from.
const INPUT: &str = include_str!("predict/supernova.toml");

/// Hosts of `SuperNova`: 28 on each switch, 29 on the first.
const HOSTS: usize = 225;

/// A run of the paper.
#[derive(Debug, Clone, Copy)]
struct Measured {
    topology: &'static str,
    cables: u16,
    gflops: f64,
    /// How the figure follows from what the paper prints.
    source: &'static str,
    /// Whether the solution failed HPL's own check.
    failed_check: bool,
}

const fn measured(
    topology: &'static str,
    cables: u16,
    gflops: f64,
    source: &'static str,
) -> Measured {
    Measured { topology, cables, gflops, source, failed_check: false }
}

/// Every run of HPL on `SuperNova` of which the paper prints a number; Rpeak is 1620 GFLOPS.
const HPL: [Measured; 6] = [
    Measured {
        failed_check: true,
        ..measured("tree 8", 1, 559.0, "1081 / 1.935: \"93.5 % faster than tree (1 link)\"")
    },
    measured("tree 8", 6, 1033.0, "24.6 GFLOPS for each of 42 links; 63.8 % of Rpeak"),
    measured("complete 8", 1, 1070.0, "38.2 GFLOPS for each of 28 links; 66.0 % of Rpeak"),
    Measured { failed_check: true, ..measured("complete 8", 2, 1081.0, "printed: 1081, 66.7 %") },
    measured("torus 4x2", 3, 1074.0, "66.3 % of Rpeak"),
    measured("mesh 4x2", 3, 1022.0, "63.1 % of Rpeak"),
];

/// The row that the rate of matrix products is fitted on.
const FITTED: usize = 1;

#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    of: Compared,
    source: &'static str,
    failed_check: bool,
    time_s: f64,
    time_s_least: f64,
    time_s_without_overlap: f64,
    busiest: String,
    busiest_share: f64,
    predicted_seeds_min: f64,
    predicted_seeds_max: f64,
}

/// All rows of HPL, and what it took to predict them.
#[derive(Debug, Serialize)]
struct Linpack {
    fitted_values: usize,
    mflop_per_s: u64,
    error_median: f64,
    error_max: f64,
    order_right: bool,
    rows: Vec<Row>,
    /// What all rows took with their first seeds, side by side on as many threads, and in seconds of a processor.
    rows_seconds: f64,
    rows_seconds_max: f64,
    rows_cpu_seconds: f64,
    threads: usize,
    /// The greatest size of the process until their end.
    rows_peak_rss_bytes: u64,
    rows_peak_rss_bytes_max: u64,
}

/// What predicting all of them may take.
const ROWS_SECONDS_MAX: f64 = 10.0;
const ROWS_PEAK_MAX: u64 = 100_000_000;

impl Linpack {
    fn reached(&self) -> bool {
        self.rows_seconds <= ROWS_SECONDS_MAX && self.rows_peak_rss_bytes <= ROWS_PEAK_MAX
    }
}

/// The same by itself.
#[derive(Debug, Serialize)]
struct LinpackReport {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    linpack: Linpack,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    linpack: Linpack,
    /// Whether every gain that the paper states is a gain here.
    gains_right: bool,
    gain_error_median: f64,
    /// The same of the gains that are predicted with TCP of Linux 2.6.
    gain_error_median_tcp: f64,
    gains: Vec<npb::Gain>,
    #[serde(flatten)]
    costs: cost::Costs,
}

/// The same of frames alone.
#[derive(Debug, Serialize)]
struct CostReport {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    costs: cost::Costs,
}

/// Predicts every row; the answer is yes once they are printed, whatever they say.
pub(crate) fn run(args: &PredictBenchArgs) -> Result<Answer, Failure> {
    if let Some(extent) = args.lab {
        return lab::run(extent, args.json);
    }
    if args.cost {
        return cost_alone(args.json);
    }
    let machine = Machine::observe();
    let wiring = supernova()?;
    let linpack = linpack(&wiring, args.seeds)?;
    if args.hpl {
        return hpl_alone(machine, linpack, args.json);
    }
    let costs = cost::costs(&wiring)?;
    let report = report(machine, linpack, npb::gains(&wiring)?, costs);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(Answer::Yes)
}

/// Prints the rows of HPL; the answer is whether it took what it may.
fn hpl_alone(machine: Machine, linpack: Linpack, json: bool) -> Result<Answer, Failure> {
    let answer = if linpack.reached() { Answer::Yes } else { Answer::No };
    if json {
        let schema = "meikyo.bench.predict.hpl/1";
        output::print_json(&LinpackReport { schema, machine, linpack })?;
    } else {
        output::print(&format!("{}\n{machine}", linpack_text(&linpack)))?;
    }
    Ok(answer)
}

/// Fits one number, and predicts every row.
fn linpack(wiring: &Wiring, seeds: u16) -> Result<Linpack, Failure> {
    let mut settings = Settings::parse(Skeleton::Hpl, INPUT, "supernova.toml")?;
    let mflop_per_s = fit(wiring, &mut settings)?;
    let before = own_usage()?.cpu;
    let start = now();
    let first = predicted(wiring, &settings, &[settings.input().seed])?;
    let rows_seconds = start.elapsed().as_secs_f64();
    let usage = own_usage()?;
    let rows_cpu_seconds = usage.cpu.saturating_sub(before).as_secs_f64();
    let seed = settings.input().seed;
    let others: Vec<u64> = (1..u64::from(seeds)).map(|more| seed + more).collect();
    let others = predicted(wiring, &settings, &others)?;
    let per_row = others.len() / HPL.len();
    let of_row = |at: usize| others.iter().skip(at * per_row).take(per_row);
    let rows: Vec<Row> = (0..HPL.len()).map(|at| row(at, &first[at], of_row(at))).collect();
    let counted = rows.iter().filter(|row| !row.of.fitted);
    let errors = Observations::new(counted.map(|row| row.of.error.abs()).collect());
    Ok(Linpack {
        fitted_values: rows.iter().filter(|row| row.of.fitted).count(),
        mflop_per_s,
        error_median: errors.median().unwrap_or(0.0),
        error_max: errors.percentile(100).unwrap_or(0.0),
        order_right: order_right(&rows),
        rows_seconds,
        rows_seconds_max: ROWS_SECONDS_MAX,
        threads: side_by_side::cores().min(HPL.len()),
        rows_cpu_seconds,
        rows_peak_rss_bytes: usage.peak_rss.get(),
        rows_peak_rss_bytes_max: ROWS_PEAK_MAX,
        rows,
    })
}

/// Measures what frames cost; the answer is whether that is what it may be.
fn cost_alone(json: bool) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let costs = cost::costs(&supernova()?)?;
    let answer = if costs.reached() { Answer::Yes } else { Answer::No };
    if json {
        output::print_json(&CostReport { schema: "meikyo.bench.predict.cost/1", machine, costs })?;
    } else {
        output::print(&format!("{}\n{machine}", cost::text(&costs)))?;
    }
    Ok(answer)
}

/// Switches and hosts; how they are joined is the row's.
fn supernova() -> Result<Wiring, Failure> {
    let model = SwitchModel::named("powerconnect-6248").expect("it is built in");
    let topology: Topology = "tree 8".parse()?;
    let mut wiring = cable_uniform(&topology, &model, HOSTS.div_ceil(8))?;
    // The first switch keeps 29 hosts, the others 28.
    let mut on_switch = vec![0; wiring.switches.len()];
    wiring.hosts.retain(|host| {
        let at = host.switch.place();
        on_switch[at] += 1;
        on_switch[at] <= HOSTS / 8 + usize::from(at < HOSTS % 8)
    });
    Ok(wiring)
}

fn predict(
    wiring: &Wiring,
    settings: &Settings,
    topology: &str,
    cables: u16,
) -> Result<Prediction, Failure> {
    let (wiring, plan) = variant(wiring, &PlanOptions::new(None), topology, cables)?;
    Ok(prediction::predict(&wiring, &plan, &settings.input())?)
}

/// Sets the rate of matrix products so that the fitted row comes out; gives it in MFLOP/s.
///
/// Time is nearly proportional to the reciprocal of that rate, so that each step of this iteration leaves a
/// small share of the error.
fn fit(wiring: &Wiring, settings: &mut Settings) -> Result<u64, Failure> {
    const STEPS: usize = 8;
    const NEAR: f64 = 5e-4;
    let wanted = HPL[FITTED];
    let Program::Hpl(hpl) = settings.input().program else { unreachable!("the file is of HPL") };
    let mut rate = hpl.flop_per_s / 1e6;
    for step in 1..=STEPS {
        let mflop_per_s = whole(rate);
        settings.set("mflop_per_s", &mflop_per_s.to_string())?;
        let predicted = predict(wiring, settings, wanted.topology, wanted.cables)?.rate;
        progress(&format!("fit, step {step}: {mflop_per_s} MFLOP/s gives {predicted:.1} GFLOPS"));
        let off = wanted.gflops / predicted;
        if (off - 1.0).abs() < NEAR {
            return Ok(mflop_per_s);
        }
        rate *= off;
    }
    Err(Failure::new("no rate of matrix products gives the row that it is fitted on"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate of some thousands; `as` saturates"
)]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

/// What is predicted for all rows with all of these seeds, row by row, and how long each took.
fn predicted(
    wiring: &Wiring,
    settings: &Settings,
    seeds: &[u64],
) -> Result<Vec<(Prediction, f64)>, Failure> {
    let runs = HPL.iter().flat_map(|row| seeds.iter().map(move |seed| (row, *seed)));
    let runs: Vec<(&Measured, u64)> = runs.collect();
    let one = |&(row, seed): &(&Measured, u64)| {
        let mut settings = settings.clone();
        settings.set("seed", &seed.to_string())?;
        let start = now();
        let predicted = predict(wiring, &settings, row.topology, row.cables)?;
        Ok((predicted, start.elapsed().as_secs_f64()))
    };
    let told = |done| progress(&format!("{done} of {} runs of HPL are predicted", runs.len()));
    side_by_side::each(&runs, side_by_side::cores(), one, told).into_iter().collect()
}

fn row<'a>(
    at: usize,
    (first, seconds): &(Prediction, f64),
    others: impl Iterator<Item = &'a (Prediction, f64)>,
) -> Row {
    let Measured { topology, cables, gflops, source, failed_check } = HPL[at];
    let others = others.map(|(other, _)| other.rate);
    let all: Vec<f64> = std::iter::once(first.rate).chain(others).collect();
    let busiest = first.busiest.first();
    let what = ["hpl".to_owned(), named((topology, cables))];
    let rates = [gflops, first.rate];
    Row {
        of: Compared::new(what, "flow", rates, "GFLOPS", *seconds).fitted(at == FITTED),
        source,
        failed_check,
        time_s: first.time.as_secs_f64(),
        time_s_least: first.bounds.least().as_secs_f64(),
        time_s_without_overlap: first.bounds.in_turn().as_secs_f64(),
        busiest: busiest.map_or_else(String::new, |busy| busy.lane.clone()),
        busiest_share: busiest.map_or(0.0, |busy| busy.share),
        predicted_seeds_min: all.iter().copied().fold(f64::INFINITY, f64::min),
        predicted_seeds_max: all.iter().copied().fold(0.0, f64::max),
    }
}

fn report(machine: Machine, linpack: Linpack, gains: Vec<npb::Gain>, costs: cost::Costs) -> Report {
    let [without, with] = npb::TCPS.map(|tcp| {
        let own = gains.iter().filter(|gain| gain.tcp == tcp);
        Observations::new(own.map(|gain| gain.of.error.abs()).collect()).median().unwrap_or(0.0)
    });
    Report {
        schema: "meikyo.bench.predict/1",
        machine,
        linpack,
        gains_right: gains.iter().all(|gain| gain.of.predicted > 0.0),
        gain_error_median: without,
        gain_error_median_tcp: with,
        gains,
        costs,
    }
}

/// Whether of any two rows that were measured more than 2 % apart the better one is predicted to be
/// better.
fn order_right(rows: &[Row]) -> bool {
    rows.iter().all(|one| {
        let worse = rows.iter().filter(|other| one.of.measured > other.of.measured * 1.02);
        worse.into_iter().all(|other| one.of.predicted > other.of.predicted)
    })
}

#[expect(clippy::disallowed_methods, reason = "a bench measures wall time")]
fn now() -> Instant {
    Instant::now()
}

fn linpack_text(linpack: &Linpack) -> String {
    let mut table = TextTable::new(&[
        "program",
        "topology",
        "method",
        "measured",
        "predicted",
        "error",
        "seeds",
        "without overlap",
        "busiest cable",
        "used",
        "seconds",
        "note",
    ]);
    for row in &linpack.rows {
        let notes = [
            row.of.fitted.then_some("fitted on this row"),
            row.failed_check.then_some("the run failed HPL's check"),
        ];
        table.row([
            row.of.program.clone(),
            row.of.topology.clone(),
            row.of.method.to_owned(),
            format!("{:.0}", row.of.measured),
            format!("{:.0}", row.of.predicted),
            format!("{:+.1} %", row.of.error * 100.0),
            format!("{:.0} to {:.0}", row.predicted_seeds_min, row.predicted_seeds_max),
            format!("{:.0} s", row.time_s_without_overlap),
            row.busiest.clone(),
            format!("{:.0} %", row.busiest_share * 100.0),
            format!("{:.1}", row.of.seconds),
            notes.into_iter().flatten().collect::<Vec<_>>().join(", "),
        ]);
    }
    format!(
        "{table}\n{} fitted value: {} MFLOP/s of a processor in matrix products\n\
         all rows but that: median error {:.1} %, at most {:.1} %; order of rows that differ by more than \
         2 % {}\nall rows together, on {} threads: {:.1} s ({:.0} s at most), {:.1} s of a processor, peak memory {} ({} \
         at most)\n",
        linpack.fitted_values,
        linpack.mflop_per_s,
        linpack.error_median * 100.0,
        linpack.error_max * 100.0,
        if linpack.order_right { "right" } else { "wrong" },
        linpack.threads,
        linpack.rows_seconds,
        linpack.rows_seconds_max,
        linpack.rows_cpu_seconds,
        output::bytes_text(linpack.rows_peak_rss_bytes),
        output::bytes_text(linpack.rows_peak_rss_bytes_max),
    )
}

fn text(report: &Report) -> String {
    format!(
        "{}\n{}\n{} of {} gains are predicted to be gains; median error {:.0} %, with TCP {:.0} %\n\n{}\n{}",
        linpack_text(&report.linpack),
        gains(&report.gains),
        report.gains.iter().filter(|gain| gain.of.predicted > 0.0).count(),
        report.gains.len(),
        report.gain_error_median * 100.0,
        report.gain_error_median_tcp * 100.0,
        cost::text(&report.costs),
        report.machine,
    )
}

fn gains(gains: &[npb::Gain]) -> TextTable {
    let mut table = TextTable::new(&[
        "program",
        "gain in points of tree 8 (1 link)",
        "method",
        "TCP",
        "measured",
        "predicted",
        "error",
        "Mop/s a rank: better, worse, tree",
        "seconds",
    ]);
    for gain in gains {
        let [better, worse, base] = gain.rates;
        table.row([
            gain.of.program.clone(),
            gain.of.topology.clone(),
            gain.of.method.to_owned(),
            gain.tcp.to_owned(),
            format!("{:+.1}", gain.of.measured),
            format!("{:+.1}", gain.of.predicted),
            format!("{:+.0} %", gain.of.error * 100.0),
            format!("{better:.1}, {worse:.1}, {base:.1}"),
            format!("{:.1}", gain.of.seconds),
        ]);
    }
    table
}
