//! `meikyo bench predict --lab`: real Open MPI on 8 hosts in namespaces of this machine, beside what is predicted of it.
//!
//! Cables carry 4 Mbit/s, so slow that the processor is idle beside them: 8 hosts, 4 switches, and every frame goes the way that
//! the plan and the hash of the prediction say ([`site`]). Each pattern of messages is one list of steps for each rank
//! ([`patterns`]), which is played by real ranks and predicted by every method.
//!
//! Two numbers are fitted, to one message on one switch in two sizes: what of a cable's rate is left for data, and
//! what passes without data. Everything else is what the hosts are set up with.

mod linpack;
mod patterns;
mod site;

use std::fmt::Write as _;
use std::path::Path;
use std::thread;

use meikyo_console::benches::predict::LabExtent;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, real};
use meikyo_fabric::{PlanOptions, SwitchModel, Topology, Wiring, cable_uniform};
use meikyo_models::prediction::flow::{self, FlowOptions};
use meikyo_models::prediction::hpl::Hpl;
use meikyo_models::prediction::packet::{self, Control, PacketOptions, Stack, Tcp};
use meikyo_models::prediction::{
    Congestion, Deal, LookAgain, Messaging, Network, Placement, RankProgram, Rates, bounds,
    connection, variant,
};
use meikyo_spaces::links::Shape;
use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use serde::Serialize;

use super::compared::{Compared, named};
use super::now;
use crate::machine::{Machine, load_average};
use crate::progress;
use crate::statistics::Observations;
use patterns::Pattern;
use site::{Played, Site};

const HOSTS: u32 = 8;
const RATE: BitsPerSecond = BitsPerSecond::new(4_000_000);

/// What hosts let others have under way to them, and what waits for a cable at most: four windows with their
/// headers, as many as ever share a cable here, and half of one more, so that a queue seldom drops.
const WINDOW: Bytes = Bytes::new(65_536);
const QUEUE: Bytes = Bytes::new(327_680);
/// What a cable sends at once after a rest: a frame, and a fifth of one so that no rate is lost to timers that are late.
const BURST: Bytes = Bytes::new(1_816);

/// The largest message that Open MPI sends before its receiver asks for it (`btl_tcp_eager_limit`).
const EAGER_MAX: Bytes = Bytes::new(65_536);

/// How often a rank of the patterns that waits looks again: so seldom that the processors are idle, and that chance comes
/// from these looks, which are predicted, more than from processors that are late.
const LOOK_AGAIN: Nanos = Nanos::from_millis(2);

const KB: u64 = 1 << 10;
const SHORT: u64 = 16 * KB;
/// What stands for longer ones where time is short.
const BRIEF: u64 = 64 * KB;
const MIDDLE: u64 = 256 * KB;
const LONG: u64 = 1024 * KB;
/// How often what is short is measured.
const ROUNDS_OF_SHORT: usize = 9;
/// With so many seeds exchanges are predicted in which chance decides who comes first.
const SEEDS_OF_RACES: u64 = 15;

/// So many topologies are measured at once: their hosts have nothing in common but idle processors.
const AT_ONCE: usize = 3;

/// What errors may be: the median of all, the greatest at 1 MB and at 16 KB, and that of the data on any cable.
const REACH_MEDIAN: f64 = 0.10;
const REACH_LONG: f64 = 0.20;
const REACH_SHORT: f64 = 0.30;
const REACH_CARRIED: f64 = 0.02;
/// Times that are further apart than this are to be in the right order, unless so many standard errors of their difference are
/// more: two means of a dozen runs that chance decides differ by a tenth now and then where nothing tells the topologies apart.
const APART: f64 = 1.10;
const BY_CHANCE: f64 = 2.0;

/// What tables call HPL, whose messages have no size of their own.
const HPL: &str = "HPL";

/// How times are predicted: by the busiest cable alone, by streams, by frames.
const METHODS: [&str; 3] = ["static", "flow", "packet"];

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Fitted {
    /// The share of a cable's rate that is left for data.
    payload_share: f64,
    /// What passes from program to program without data.
    latency_s: f64,
    /// The same of HPL's messages, which are many and small; nothing where HPL is not run.
    latency_hpl_s: Option<f64>,
}

/// A topology, with so many cables for each link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    topology: &'static str,
    cables: u16,
}

impl Case {
    fn name(self) -> String {
        if self == ONE_SWITCH {
            return "one switch".to_owned();
        }
        named((self.topology, self.cables))
    }
}

/// Only hosts on the same one of both speak with each other.
const ONE_SWITCH: Case = Case { topology: "star 2", cables: 1 };

#[derive(Debug, Clone, Serialize)]
struct Row {
    #[serde(flatten)]
    of: Compared,
    bytes: u64,
    /// Runs of which `measured` is the mean, and the least and the greatest of their times. Where chance decides there are
    /// few times that they can take, far from each other, and which of these is in the middle changes from one dozen of
    /// runs to the next.
    runs: usize,
    measured_min: f64,
    measured_max: f64,
    /// The standard error of that mean; 0 for a single run.
    measured_error: f64,
    /// The same of predictions with several seeds.
    seeds: usize,
    predicted_min: f64,
    predicted_max: f64,
    /// How far the data on any cable are from what was predicted, as a share of that.
    carried_error: f64,
    /// Segments that hosts sent again.
    sent_again: u64,
}

/// What the errors of a method come to.
#[derive(Debug, Serialize)]
struct Summary {
    method: &'static str,
    rows: usize,
    error_median: f64,
    error_max_16_kb: f64,
    error_max_256_kb: f64,
    error_max_1_mb: f64,
    carried_error_max: f64,
    /// Of pairs of topologies that a pattern's times differ on by more than a tenth, and by more than chance, all and those in the
    /// wrong order.
    pairs: usize,
    pairs_wrong: usize,
    reached: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    load_average_1min_after: f64,
    hosts: u32,
    rate: BitsPerSecond,
    window_bytes: u64,
    queue_bytes: u64,
    fitted: Fitted,
    fitted_values: usize,
    summaries: Vec<Summary>,
    rows: Vec<Row>,
}

/// Measures and predicts; the answer is whether packets reach what they have to. By flows ranks come to an exchange at other
/// times, since these know of no frames, and that decides where messages wait for each other.
pub(super) fn run(extent: LabExtent, json: bool) -> Result<Answer, Failure> {
    let hpl = (extent == LabExtent::Full).then(linpack::lacking).flatten();
    if let Some(failure) = site::lacking().or(hpl) {
        return Err(failure);
    }
    let machine = Machine::observe();
    let scratch = tempfile::tempdir()?;
    let player = site::build(scratch.path(), LOOK_AGAIN)?;
    let (mut fitted, mut rows) = calibrate(&player)?;
    for cases in cases(extent).chunks(AT_ONCE) {
        let all = thread::scope(|scope| {
            let measure = |case: &Case| {
                let (case, player) = (*case, &player);
                scope.spawn(move || measure(case, extent, fitted, player))
            };
            let threads: Vec<_> = cases.iter().map(measure).collect();
            let done = threads.into_iter();
            let done = done.map(|case| case.join().expect("no topology panics"));
            done.collect::<Result<Vec<_>, Failure>>()
        });
        rows.extend(all?.into_iter().flatten());
    }
    if extent == LabExtent::Full {
        let gate = linpack::build(scratch.path())?;
        let linpack = Linpack { gate: &gate, fitted };
        let (latency_s, fitted_rows) = linpack.calibrate()?;
        fitted.latency_hpl_s = Some(latency_s);
        rows.extend(fitted_rows);
        for case in cases(extent) {
            rows.extend(linpack.measure(case, latency_s)?);
        }
    }
    let report = Report {
        schema: "meikyo.bench.predict.lab/1",
        machine,
        load_average_1min_after: load_average(),
        hosts: HOSTS,
        rate: RATE,
        window_bytes: WINDOW.get(),
        queue_bytes: QUEUE.get(),
        fitted,
        fitted_values: 2 + usize::from(fitted.latency_hpl_s.is_some()),
        summaries: METHODS.map(|method| summary(method, &rows)).into(),
        rows,
    };
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    let reached = |summary: &Summary| summary.method == METHODS[2] && summary.reached;
    Ok(if report.summaries.iter().any(reached) { Answer::Yes } else { Answer::No })
}

fn cases(extent: LabExtent) -> Vec<Case> {
    let topologies: &[&str] = match extent {
        LabExtent::Full => &["tree 4", "ring 4", "complete 4"],
        LabExtent::Short => &["tree 4", "complete 4"],
    };
    let cables = if extent == LabExtent::Full { 1..=2 } else { 1..=1 };
    let cases =
        cables.flat_map(|cables| topologies.iter().map(move |topology| Case { topology, cables }));
    cases.collect()
}

/// The sizes of messages, and how often each pattern is played with them.
fn sizes(extent: LabExtent) -> &'static [(u64, usize)] {
    match extent {
        LabExtent::Full => &[(SHORT, ROUNDS_OF_SHORT), (MIDDLE, 1), (LONG, 1)],
        LabExtent::Short => &[(SHORT, 1), (BRIEF, 1)],
    }
}

fn shape() -> Shape {
    Shape { rate: RATE, burst: BURST, queue: QUEUE }
}

/// Hosts and switches of a topology, as a prediction has them.
fn network(case: Case, payload_share: f64) -> Result<Network, Failure> {
    let model = SwitchModel::named("generic").expect("it is built in");
    let topology: Topology = case.topology.parse()?;
    let switches = topology.graph().switches();
    let mut wiring: Wiring = cable_uniform(&topology, &model, usize::try_from(HOSTS)? / switches)?;
    wiring.rate = RATE;
    let (wiring, plan) = variant(&wiring, &PlanOptions::new(None), case.topology, case.cables)?;
    let within_host = BitsPerSecond::new(4_000_000_000);
    Ok(Network::new(&wiring, &plan, Rates { payload_share, within_host }, 1))
}

/// One message on one switch, long and short: what is left for data follows from the difference, and what passes without
/// data from the rest, less what its receiver waits for its look.
fn calibrate(player: &Path) -> Result<(Fitted, Vec<Row>), Failure> {
    progress("one switch, to fit two numbers");
    let unfitted = network(ONE_SWITCH, 1.0)?;
    let pattern = Pattern::OneWay(neighbour(&unfitted));
    let mut site = Site::start(&unfitted, shape(), WINDOW, player)?;
    let sizes = [(SHORT, ROUNDS_OF_SHORT), (LONG, 1)];
    let mut played = Vec::new();
    for (bytes, rounds) in sizes {
        played.push(play(&mut site, &pattern.program(HOSTS, bytes), rounds, PATIENCE)?);
    }
    let [short_s, long_s] = [0, 1].map(|at: usize| mean(&played[at].times));
    let bytes_per_s = real(LONG - SHORT) / (long_s - short_s);
    let rate = real(RATE.get()) / 8.0;
    let payload_share = (bytes_per_s / rate).clamp(0.5, 1.0);
    // Its receiver looks half of a pause after the data have come, as a rule.
    let look_s = LOOK_AGAIN.as_secs_f64() / 2.0;
    let latency_s = (short_s - look_s - real(SHORT) / (payload_share * rate)).max(0.0);
    let fitted = Fitted { payload_share, latency_s, latency_hpl_s: None };
    let network = network(ONE_SWITCH, payload_share)?;
    let mut rows = Vec::new();
    for ((bytes, _), played) in sizes.into_iter().zip(&played) {
        let program = pattern.program(HOSTS, bytes);
        rows.extend(
            predicted(&network, &program, fitted, LOOK_AGAIN, 1)?
                .map(|predicted| row(ONE_SWITCH, pattern.name(), bytes, played, &predicted, true)),
        );
    }
    Ok((fitted, rows))
}

/// The last host on the switch of the first: there is a cable to the switch and one from it between them.
fn neighbour(network: &Network) -> u32 {
    let lanes = |other: u32| {
        let (to, mut lanes) = (place(other), Vec::new());
        network.route(0, to, connection(0, to), &mut lanes);
        lanes.len()
    };
    (1..HOSTS).rev().find(|other| lanes(*other) == 2).unwrap_or(1)
}

fn place(host: u32) -> usize {
    usize::try_from(host).expect("32 bits are a place")
}

/// How long a run may take that nothing is known of.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Plays a program so often, and gives all times with what was carried last.
fn play(
    site: &mut Site,
    program: &RankProgram,
    rounds: usize,
    patience: Nanos,
) -> Result<Played, Failure> {
    let mut played = site.play(program, patience)?;
    for _ in 1..rounds {
        let next = site.play(program, patience)?;
        played.times.extend(next.times);
        played = Played { times: played.times, again: played.again + next.again, ..next };
    }
    Ok(played)
}

fn seconds(times: &[Nanos]) -> Observations {
    Observations::new(times.iter().map(|time| time.as_secs_f64()).collect())
}

/// The mean of some times, in seconds.
fn mean(times: &[Nanos]) -> f64 {
    seconds(times).mean().expect("there is a time")
}

/// Measures all patterns on a topology.
fn measure(
    case: Case,
    extent: LabExtent,
    fitted: Fitted,
    player: &Path,
) -> Result<Vec<Row>, Failure> {
    let network = network(case, fitted.payload_share)?;
    let mut site = Site::start(&network, shape(), WINDOW, player)?;
    let mut rows = Vec::new();
    for &(bytes, rounds) in sizes(extent) {
        for pattern in Pattern::ALL {
            let program = pattern.program(HOSTS, bytes);
            let races = if extent == LabExtent::Full { pattern.races() } else { 1 };
            let seeds = if races > 1 { SEEDS_OF_RACES } else { 1 };
            let predicted = predicted(&network, &program, fitted, LOOK_AGAIN, seeds)?;
            let longest = predicted.iter().flat_map(|one| one.times.iter().copied()).max();
            let longest_s = longest.unwrap_or(PATIENCE).as_secs_f64();
            let patience = Nanos::from_secs_f64(10.0 * longest_s) + PATIENCE;
            let played = play(&mut site, &program, rounds.max(races), patience)?;
            progress(&format!(
                "{}: {}, {} KB: {:.3} s",
                case.name(),
                pattern.name(),
                bytes / KB,
                mean(&played.times)
            ));
            rows.extend(
                predicted
                    .map(|predicted| row(case, pattern.name(), bytes, &played, &predicted, false)),
            );
        }
    }
    Ok(rows)
}

/// HPL on a topology, or on one switch to fit a number.
struct Linpack<'a> {
    gate: &'a Path,
    fitted: Fitted,
}

impl Linpack<'_> {
    fn run(&self, case: Case, run: &Hpl) -> Result<(Network, Played), Failure> {
        let network = network(case, self.fitted.payload_share)?;
        let time = linpack::run(&network, shape(), WINDOW, run, self.gate)?;
        progress(&format!("{}: HPL: {:.3} s", case.name(), time.as_secs_f64()));
        Ok((network, Played { times: vec![time], carried: Vec::new(), again: 0 }))
    }

    fn predicted(
        &self,
        network: &Network,
        run: &Hpl,
        latency_s: f64,
    ) -> Result<[Predicted; 3], Failure> {
        let fitted = Fitted { latency_s, ..self.fitted };
        // Its ranks look all the time.
        predicted(network, &run.program(&run.drawn_pivots()), fitted, Nanos::ZERO, 1)
    }

    /// Fits what a message of HPL takes beyond its data, to a run on one switch by the flow method.
    fn calibrate(&self) -> Result<(f64, Vec<Row>), Failure> {
        const STEPS: u32 = 12;
        let run = Hpl { rows: 2, columns: 2, ..linpack::RUN };
        let (network, played) = self.run(ONE_SWITCH, &run)?;
        let (mut least_s, mut most_s) = (0.0, 0.02);
        for _ in 0..STEPS {
            let middle_s = f64::midpoint(least_s, most_s);
            let [_, flow, _] = self.predicted(&network, &run, middle_s)?;
            if flow.times < played.times {
                least_s = middle_s;
            } else {
                most_s = middle_s;
            }
        }
        let all = self.predicted(&network, &run, least_s)?;
        let rows = all.map(|one| row(ONE_SWITCH, HPL.to_owned(), 0, &played, &one, true));
        Ok((least_s, rows.into()))
    }

    fn measure(&self, case: Case, latency_s: f64) -> Result<Vec<Row>, Failure> {
        let (network, played) = self.run(case, &linpack::RUN)?;
        let all = self.predicted(&network, &linpack::RUN, latency_s)?;
        let all = all.map(|one| row(case, HPL.to_owned(), 0, &played, &one, false));
        Ok(all.into())
    }
}

/// What a method says.
struct Predicted {
    method: &'static str,
    /// With one seed after the other.
    times: Vec<Nanos>,
    /// With the first one for each lane of the network; nothing by the static method.
    carried: Option<Vec<Bytes>>,
    seconds: f64,
}

impl Predicted {
    /// Runs a method with some seeds.
    fn by(
        method: &'static str,
        seeds: u64,
        run: impl Fn(u64) -> Result<(Nanos, Option<Vec<Bytes>>), Failure>,
    ) -> Result<Self, Failure> {
        let start = now();
        let all = (0..seeds).map(run).collect::<Result<Vec<_>, _>>()?;
        let seconds = start.elapsed().as_secs_f64();
        let (times, carried): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let carried = carried.into_iter().next().flatten();
        Ok(Self { method, times, carried, seconds })
    }
}

fn predicted(
    network: &Network,
    program: &RankProgram,
    fitted: Fitted,
    look_again: Nanos,
    seeds: u64,
) -> Result<[Predicted; 3], Failure> {
    let hosts = network.hosts();
    let placement = Placement::new(Deal::Block, program.ranks(), hosts, 1, 1)?;
    let messaging = |seed| Messaging {
        latency: Nanos::from_secs_f64(fitted.latency_s),
        eager_max: EAGER_MAX,
        look_again: LookAgain { every: look_again, seed },
    };
    let bound = Predicted::by(METHODS[0], 1, |_| {
        Ok((bounds(network, program.actors(&placement)).least(), None))
    })?;
    let congestion = Congestion {
        streams_max: usize::try_from(QUEUE.get() / WINDOW.get())?,
        pause: false,
        full_share: 1.0,
        window: WINDOW,
    };
    let flow = Predicted::by(METHODS[1], seeds, |seed| {
        let messaging = messaging(seed);
        let options = FlowOptions { messaging, congestion, patience: 0, courses: false };
        let run = flow::run(network, program.actors(&placement), options)?;
        Ok((run.time, Some(run.carried)))
    })?;
    let packet = Predicted::by(METHODS[2], seeds, |seed| {
        let options = PacketOptions {
            messaging: messaging(seed),
            hop_delay: Nanos::from_micros(3),
            pause: false,
            port_buffer: QUEUE,
            memory: None,
            time_out: Nanos::from_millis(200),
            spoiled_ppm: 0,
            shaped: true,
            courses: false,
            tcp: Some(Tcp { stack: Stack::Linux, control: Control::Cubic, window: WINDOW }),
        };
        let run = packet::run(network, program, &placement, options)?;
        Ok((run.time, Some(run.carried)))
    })?;
    Ok([bound, flow, packet])
}

fn row(
    case: Case,
    program: String,
    bytes: u64,
    played: &Played,
    predicted: &Predicted,
    fitted: bool,
) -> Row {
    let [measured, times] = [&played.times, &predicted.times].map(|times| seconds(times));
    let means = [&measured, &times].map(|all| all.mean().expect("there is a time"));
    let ends = |all: &Observations| [0, 100].map(|percent| all.percentile(percent).unwrap_or(0.0));
    let ([measured_min, measured_max], [predicted_min, predicted_max]) =
        (ends(&measured), ends(&times));
    let carried = predicted.carried.as_deref().filter(|_| !played.carried.is_empty());
    let what = [program, case.name()];
    let Predicted { method, seconds, .. } = *predicted;
    Row {
        of: Compared::new(what, method, means, "s", seconds).fitted(fitted),
        bytes,
        runs: measured.len(),
        measured_min,
        measured_max,
        measured_error: measured.standard_error(),
        seeds: times.len(),
        predicted_min,
        predicted_max,
        carried_error: carried.map_or(0.0, |carried| carried_error(&played.carried, carried)),
        sent_again: played.again,
    }
}

/// How far the data on any lane are from what is predicted, as a share of that; where nothing is, as a share of the most.
fn carried_error(measured: &[Bytes], predicted: &[Bytes]) -> f64 {
    let most = predicted.iter().map(|bytes| bytes.get()).max().unwrap_or(0).max(1);
    let of_lane = |(measured, predicted): (&Bytes, &Bytes)| {
        let of = if predicted.get() == 0 { most } else { predicted.get() };
        real(measured.get().abs_diff(predicted.get())) / real(of)
    };
    measured.iter().zip(predicted).map(of_lane).fold(0.0, f64::max)
}

fn summary(method: &'static str, rows: &[Row]) -> Summary {
    let own: Vec<&Row> =
        rows.iter().filter(|row| row.of.method == method && !row.of.fitted).collect();
    let errors = |bytes: Option<u64>| {
        let own = own.iter().filter(|row| bytes.is_none_or(|bytes| row.bytes == bytes));
        Observations::new(own.map(|row| row.of.error.abs()).collect())
    };
    let most = |bytes| errors(Some(bytes)).percentile(100).unwrap_or(0.0);
    let (pairs, pairs_wrong) = order(&own);
    let error_median = errors(None).median().unwrap_or(0.0);
    let carried_error_max = own.iter().map(|row| row.carried_error).fold(0.0, f64::max);
    let reached = error_median <= REACH_MEDIAN
        && most(LONG) <= REACH_LONG
        && most(SHORT) <= REACH_SHORT
        && carried_error_max <= REACH_CARRIED
        && pairs_wrong == 0;
    Summary {
        method,
        rows: own.len(),
        error_median,
        error_max_16_kb: most(SHORT),
        error_max_256_kb: most(MIDDLE),
        error_max_1_mb: most(LONG),
        carried_error_max,
        pairs,
        pairs_wrong,
        reached,
    }
}

/// Pairs of topologies on which the same pattern's times are apart, and how many of them are predicted in the other order.
fn order(rows: &[&Row]) -> (usize, usize) {
    let (mut pairs, mut wrong) = (0, 0);
    for one in rows {
        let same = |other: &&&Row| other.of.program == one.of.program && other.bytes == one.bytes;
        let apart = |other: &&&Row| {
            let chance = BY_CHANCE * one.measured_error.hypot(other.measured_error);
            let [less, more] = [one.of.measured, other.of.measured];
            more > less * APART && more > less + chance
        };
        for other in rows.iter().filter(same).filter(apart) {
            pairs += 1;
            wrong += usize::from(other.of.predicted <= one.of.predicted);
        }
    }
    (pairs, wrong)
}

fn rows_table(rows: &[Row]) -> TextTable {
    let mut table = TextTable::new(&[
        "program",
        "KB",
        "topology",
        "measured s",
        "runs",
        "static",
        "flow",
        "packet",
        "data on cables",
        "sent again",
    ]);
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let spread = |[mean, least, most]: [f64; 3]| {
        let several =
            if least < most { format!(" ({least:.3} to {most:.3})") } else { String::new() };
        format!("{mean:.3}{several}")
    };
    let of_seeds = |row: &Row| {
        let spread = if row.seeds > 1 {
            format!(" ({:.3} to {:.3} s)", row.predicted_min, row.predicted_max)
        } else {
            String::new()
        };
        format!("{}{spread}", percent(row.of.error))
    };
    for rows in rows.chunks(METHODS.len()) {
        let [bound, flow, packet] = rows else { continue };
        let mark = if bound.of.fitted { ", fitted" } else { "" };
        table.row([
            format!("{}{mark}", bound.of.program),
            if bound.bytes > 0 { (bound.bytes / KB).to_string() } else { String::new() },
            bound.of.topology.clone(),
            spread([bound.of.measured, bound.measured_min, bound.measured_max]),
            bound.runs.to_string(),
            percent(bound.of.error),
            of_seeds(flow),
            of_seeds(packet),
            format!("{:.2} %", flow.carried_error * 100.0),
            bound.sent_again.to_string(),
        ]);
    }
    table
}

fn text(report: &Report) -> String {
    let table = rows_table(&report.rows);
    let mut sums = TextTable::new(&[
        "method",
        "rows",
        "median error",
        "at most: 16 KB",
        "256 KB",
        "1 MB",
        "data on cables",
        "order wrong",
        "reached",
    ]);
    for sum in &report.summaries {
        let share = |share: f64| format!("{:.1} %", share * 100.0);
        sums.row([
            sum.method.to_owned(),
            sum.rows.to_string(),
            share(sum.error_median),
            share(sum.error_max_16_kb),
            share(sum.error_max_256_kb),
            share(sum.error_max_1_mb),
            share(sum.carried_error_max),
            format!("{} of {}", sum.pairs_wrong, sum.pairs),
            if sum.reached { "yes" } else { "no" }.to_owned(),
        ]);
    }
    let Fitted { payload_share, latency_s, latency_hpl_s } = report.fitted;
    let hpl = latency_hpl_s.map(|seconds| format!(", {:.3} ms of HPL", seconds * 1e3));
    let mut text = format!("{table}\n{sums}\n");
    let written = write!(
        text,
        "{HOSTS} hosts with Open MPI, cables of {RATE}, windows of {WINDOW}, queues of {QUEUE}\n\
         fitted on one switch: {:.1} % of a cable's rate for data, {:.3} ms without data{}\n\
         {}load average afterwards {}\n",
        payload_share * 100.0,
        latency_s * 1e3,
        hpl.unwrap_or_default(),
        report.machine,
        report.load_average_1min_after,
    );
    written.expect("a text takes all that is written");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(topology: &str, measured: f64, predicted: f64) -> Row {
        let what = ["shift by 1".to_owned(), topology.to_owned()];
        Row {
            of: Compared::new(what, METHODS[1], [measured, predicted], "s", 0.0),
            bytes: LONG,
            runs: 1,
            measured_min: measured,
            measured_max: measured,
            measured_error: 0.0,
            seeds: 1,
            predicted_min: predicted,
            predicted_max: predicted,
            carried_error: 0.0,
            sent_again: 0,
        }
    }

    #[test]
    fn order_counts_only_times_that_are_apart() {
        let rows = [row("one", 1.0, 1.0), row("two", 1.05, 0.9), row("three", 2.0, 1.0)];
        // The first two are too near to each other; the third is after both, and predicted so for the second only.
        assert_eq!(order(&rows.iter().collect::<Vec<_>>()), (2, 1));
        // Chance of 0.4 and 0.3 s leaves a second between the first and the third, and not more.
        let by_chance = |seconds: f64| {
            let [first, _, third] = rows.each_ref();
            let other = Row { measured_error: 0.3, ..third.clone() };
            order(&[&Row { measured_error: seconds, ..first.clone() }, &other])
        };
        assert_eq!(by_chance(0.39), (1, 1));
        assert_eq!(by_chance(0.41), (0, 0));
        let sum = summary(METHODS[1], &rows);
        assert!((sum.error_max_1_mb - 0.5).abs() < 1e-9 && !sum.reached, "{sum:?}");
        let right = [row("one", 1.0, 1.05), row("three", 2.0, 1.9)];
        assert!(summary(METHODS[1], &right).reached);
        assert_eq!(summary(METHODS[2], &right).rows, 0);
    }

    #[test]
    fn data_where_none_is_predicted_count_against_the_most() {
        let bytes = |counts: [u64; 3]| counts.map(Bytes::new);
        let error = carried_error(&bytes([1_010, 0, 0]), &bytes([1_000, 0, 0]));
        assert!((error - 0.01).abs() < 1e-9);
        let error = carried_error(&bytes([1_000, 50, 0]), &bytes([1_000, 0, 0]));
        assert!((error - 0.05).abs() < 1e-9);
        assert!((carried_error(&bytes([0; 3]), &bytes([0, 7, 0])) - 1.0).abs() < 1e-9);
    }
}
