//! `meikyo bench profile`: what samples of several kinds of program take, and what taking them costs.
//!
//! Each kind of program runs for a span and is sampled at 1 kHz into blocks, which are decoded and
//! compared with what was counted. The same samples are then packed with fewer and fewer columns,
//! which says what each field takes. The CPU time is that of this process between the first and the
//! last sample, with encoding and without writing. Beside `perf record` stands what this process used
//! with its start, in which it measures what a sample takes, as `perf` with the start of its own. The
//! agent's row is of the whole path: `meikyo profile agent` into `meikyo serve --ingest`.
//! [`mod@transfer`] is the paper's experiment.

mod agent;
mod flames;
mod latency;
mod names;
mod transfer;
mod waking;

use std::path::Path;
use std::process::Command;

use meikyo_console::benches::profile::{Part, ProfileArgs};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, real};
use meikyo_profile::HeldProgram;
use meikyo_profile::block::{self, Sample};
use meikyo_profile::recorder::{Recorder, RecorderOptions};
use meikyo_profile::sampler::{Clock, Phase, SamplerOptions, Target};
use meikyo_profile::tables::samples;
use meikyo_recording::{PackedRows, Packer, TableSchema};
use meikyo_units::Nanos;
use serde::Serialize;

use agent::AgentRow;
use flames::FlameRow;
use latency::LatencyRow;
use names::NamesRow;
use transfer::TransferRow;

use crate::machine::Machine;
use crate::placement::{Placement, own_usage, spawn};
use crate::progress;

/// A program that does one thing, and all of them at once with whatever else runs on this host.
const STEADY: &str = "steady loop";
const MIX: &str = "mix, whole host";

/// What a sample of these may take in full blocks, bytes.
const STEADY_BYTES_MAX: f64 = 4.0;
const MIX_BYTES_MAX: f64 = 5.7;

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    interrupt_ns: u64,
    programs: Vec<Row>,
    agents: Vec<AgentRow>,
    latencies: Vec<LatencyRow>,
    flames: Vec<FlameRow>,
    names: Option<NamesRow>,
    transfers: Vec<TransferRow>,
    /// Of one core, start included, for the steady loop.
    perf_cpu_with_start_percent: Option<f64>,
    reach_steady_bytes: f64,
    reach_mix_bytes: f64,
}

/// One kind of program.
#[derive(Debug, Serialize)]
struct Row {
    program: &'static str,
    samples: u64,
    lost: u64,
    bytes_per_sample: f64,
    time_bytes: f64,
    thread_and_process_bytes: f64,
    address_bytes: f64,
    rest_bytes: f64,
    whole_microseconds_bytes: f64,
    samples_per_block: f64,
    agent_cpu_percent: f64,
    agent_cpu_with_start_percent: f64,
}

/// Runs the bench; the answer is no when samples take more than they may.
pub(crate) fn run(args: &ProfileArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let directory = tempfile::tempdir()?;
    let steady = compiled(directory.path())?;
    let (mut programs, mut interrupt_ns, mut mixed) = (Vec::new(), 0, Vec::new());
    for (program, line) in kinds(&steady) {
        let is_sent = program == MIX && wanted(Part::Transfer);
        if wanted(Part::Programs) || is_sent {
            progress(&format!("{program}, {}", args.span));
            let (row, interrupt, blocks) = sampled(program, &line, args.span)?;
            interrupt_ns = interrupt.get();
            programs.push(row);
            mixed = blocks;
        }
    }
    let perf_cpu_with_start_percent = match wanted(Part::Programs) {
        true => perf(&steady, directory.path(), args.span)?,
        false => None,
    };
    let agents = match wanted(Part::Agent) {
        true => agent::measured(&steady, directory.path(), args.span)?,
        false => Vec::new(),
    };
    let latencies = match wanted(Part::Latency) {
        true => latency::measured(&steady, directory.path(), args.span)?,
        false => Vec::new(),
    };
    let flames = match wanted(Part::Flames) {
        true => flames::measured(directory.path())?,
        false => Vec::new(),
    };
    let mix = kinds(&steady).into_iter().find(|(program, _)| *program == MIX);
    let names = match mix {
        Some((_, line)) if wanted(Part::Names) => {
            names::measured(&line, directory.path(), args.span)?
        }
        _ => None,
    };
    let transfers = match wanted(Part::Transfer) {
        true => transfer::measured(&mixed, directory.path())?,
        false => Vec::new(),
    };
    let report = Report {
        schema: "meikyo.bench.profile/4",
        machine,
        interrupt_ns,
        programs,
        agents,
        latencies,
        flames,
        names,
        transfers,
        perf_cpu_with_start_percent,
        reach_steady_bytes: STEADY_BYTES_MAX,
        reach_mix_bytes: MIX_BYTES_MAX,
    };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(if is_reached(&report) { Answer::Yes } else { Answer::No })
}

fn is_reached(report: &Report) -> bool {
    [(STEADY, STEADY_BYTES_MAX), (MIX, MIX_BYTES_MAX)].into_iter().all(|(program, most)| {
        let row = report.programs.iter().find(|row| row.program == program);
        row.is_none_or(|row| row.samples > 0 && row.bytes_per_sample <= most)
    })
}

/// The programs, each as a line of a shell that runs until it is ended.
fn kinds(steady: &str) -> Vec<(&'static str, String)> {
    let build = format!("cc -O2 -c {steady}.c -o /dev/null");
    let python = "python3 -c 'import json\nwhile True: json.loads(json.dumps([{\"a\": i} for i in range(9999)]))'";
    let idle = "while :; do sleep 0.02; done";
    let forever = |line: &str| format!("while :; do {line}; done");
    let mut kinds = vec![
        (STEADY, format!("exec {steady} 1000000000")),
        ("compiler", forever(&build)),
        ("Python", format!("exec {python}")),
        ("mostly idle", idle.to_owned()),
        (MIX, format!("{steady} 1000000000 & {python} & {}", forever(&build))),
    ];
    let mpi = format!("{steady}.mpi");
    if Path::new(&mpi).exists() {
        kinds.insert(1, ("MPI, two ranks", format!("exec mpirun.mpich -n 2 {mpi}")));
    }
    kinds
}

/// Samples a program for a span: what it took, what a sample takes from the program, the blocks.
fn sampled(
    program: &'static str,
    line: &str,
    span: Nanos,
) -> Result<(Row, Nanos, Vec<PackedRows>), Failure> {
    let mut held = HeldProgram::start(&ended_after(span, line))?;
    let options = RecorderOptions {
        host: "bench".to_owned(),
        sampling: SamplerOptions {
            clock: Clock::CpuClock,
            period: Nanos::from_millis(1),
            phase: Phase::Staggered,
            stacks: None,
            cgroups: false,
            off_cpu: false,
            on_exec: program != MIX,
        },
        whole_microseconds: false,
        budget_ppm: None,
        retell_every: None,
        flight: None,
    };
    let (target, pids) = match program {
        MIX => (Target::Everything, None),
        _ => (Target::Processes(vec![held.pid()]), Some([held.pid()])),
    };
    let start = own_usage()?.cpu;
    let mut recorder = Recorder::open(&target, pids.as_ref().map(<[u32; 1]>::as_slice), &options)?;
    let mut blocks = Vec::new();
    let mut sink = |block: PackedRows| {
        if block.table() == samples::NAME {
            blocks.push(block);
        }
    };
    recorder.begin()?;
    let before = own_usage()?.cpu;
    held.release()?;
    while held.ended()?.is_none() {
        if recorder.wait(Nanos::SECOND, &[]) {
            recorder.turn(&mut sink)?;
        }
    }
    recorder.finish(&mut sink)?;
    let used = own_usage()?.cpu;
    let (agent, with_start) = (used.saturating_sub(before), used.saturating_sub(start));
    let counts = recorder.counts();
    let sizes = Sizes::of(&blocks)?;
    if sizes.samples != counts.samples {
        let told = format!("{} samples in the blocks of {}", sizes.samples, counts.samples);
        return Err(Failure::new(told));
    }
    let of_sample = |octets: usize| real(octets as u64) / real(counts.samples.max(1));
    let sampled_ns = real(counts.samples) * real(options.sampling.period.get());
    let [time, threads, addresses, whole, rounded] = sizes.octets;
    let row = Row {
        program,
        samples: counts.samples,
        lost: counts.lost,
        bytes_per_sample: of_sample(whole),
        time_bytes: of_sample(time),
        thread_and_process_bytes: of_sample(threads.saturating_sub(time)),
        address_bytes: of_sample(addresses.saturating_sub(threads)),
        rest_bytes: of_sample(whole.saturating_sub(addresses)),
        whole_microseconds_bytes: of_sample(rounded),
        samples_per_block: real(counts.samples) / real(counts.blocks.max(1)),
        agent_cpu_percent: 100.0 * real(agent.get()) / sampled_ns.max(1.0),
        agent_cpu_with_start_percent: 100.0 * real(with_start.get()) / real(span.get().max(1)),
    };
    Ok((row, recorder.interrupt(), blocks))
}

/// The words of a program that a shell runs and that is ended after a span, with what it began.
fn ended_after(span: Nanos, line: &str) -> Vec<String> {
    let seconds = format!("{}", span.as_secs_f64());
    ["timeout", &seconds, "sh", "-c", line].map(str::to_owned).to_vec()
}

/// What blocks take with more and more columns, whose names in each block count with them.
struct Sizes {
    samples: u64,
    /// With times; with threads and processes too; with addresses too; as they are; as they are with
    /// times in whole microseconds.
    octets: [usize; 5],
}

impl Sizes {
    fn of(blocks: &[PackedRows]) -> Result<Self, Failure> {
        const COLUMNS: [&[&str]; 3] =
            [&["time"], &["time", "tid", "pid"], &["time", "tid", "pid", "address"]];
        let mut sizes = Self { samples: 0, octets: [0; 5] };
        for whole in blocks {
            let read = block::read(whole)?.samples;
            sizes.samples += read.len() as u64;
            for (octets, columns) in sizes.octets.iter_mut().zip(COLUMNS) {
                *octets += packed(&read, columns, 1)?;
            }
            let exact = packed(&read, COLUMNS[2], 1)?;
            let saved = exact.saturating_sub(packed(&read, COLUMNS[2], MICROSECOND)?);
            sizes.octets[3] += whole.payload().len();
            sizes.octets[4] += whole.payload().len().saturating_sub(saved);
        }
        Ok(sizes)
    }
}

const MICROSECOND: i64 = 1_000;

/// Octets of a block of some columns of samples, with times that are multiples of `unit` ns.
fn packed(read: &[Sample], columns: &[&str], unit: i64) -> Result<usize, Failure> {
    let whole = samples::schema();
    let kept = whole.columns.iter().filter(|column| columns.contains(&&*column.name)).cloned();
    let mut packer = Packer::new(TableSchema { columns: kept.collect(), ..whole.clone() });
    for sample in read {
        let batch = packer.batch();
        batch.begin_row(sample.time - sample.time.rem_euclid(unit));
        let values = [sample.tid.into(), sample.pid.into(), sample.address];
        for (position, value) in (1..columns.len()).zip(values) {
            batch.put_u64(position, value);
        }
    }
    Ok(packer.pack()?.payload().len())
}

/// CPU time that `perf record` uses for the steady loop, its start included, % of one core; `None` where
/// it is not installed.
fn perf(steady: &str, directory: &Path, span: Nanos) -> Result<Option<f64>, Failure> {
    if Command::new("perf").arg("--version").output().is_err() {
        progress("perf is not installed (Debian package linux-perf): nothing to compare with");
        return Ok(None);
    }
    progress(&format!("perf record, {span}"));
    let line = format!("exec {steady} 1000000000");
    let mut held = HeldProgram::start(&ended_after(span, &line))?;
    let data = directory.join("perf.data");
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-F", "1000", "-o"]).arg(&data);
    command.args(["-p", &held.pid().to_string()]);
    let mut perf = spawn(command, Placement::default())?;
    while !std::fs::metadata(&data).is_ok_and(|facts| facts.len() > 0) {
        if let Some(status) = perf.child().try_wait()? {
            return Err(Failure::new(format!("perf record ended before it sampled: {status}"))
                .hint("see what it says: perf record -e cpu-clock -- true"));
        }
        std::thread::yield_now();
    }
    held.release()?;
    let (_, usage) = perf.wait(span + Nanos::from_secs(60))?;
    held.ended()?;
    Ok(Some(100.0 * real(usage.cpu.get()) / real(span.get().max(1))))
}

/// Compiles the steady loop; its path.
fn compiled(directory: &Path) -> Result<String, Failure> {
    let path = directory.join("steady");
    let path = path.to_string_lossy().into_owned();
    let source = format!("{path}.c");
    std::fs::write(&source, include_str!("../../profile/tests/it/matrix.c"))?;
    let compiler = Command::new("cc").args(["-O2", "-o", &path, &source]).output();
    let failed = |why: String| Failure::new(why).hint("apt-get install gcc libc6-dev");
    match compiler {
        Ok(output) if output.status.success() => {
            compile_mpi(&path)?;
            Ok(path)
        }
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => Err(failed(format!("there is no C compiler: {error}"))),
    }
}

/// Compiles the program of two ranks, where there is an MPI library.
fn compile_mpi(steady: &str) -> Result<(), Failure> {
    let source = format!("{steady}.mpi.c");
    std::fs::write(&source, include_str!("profile/ranks.c"))?;
    let program = format!("{steady}.mpi");
    let mut compiler = Command::new("mpicc.mpich");
    compiler.args(["-O2", "-o", &program, &source]);
    match compiler.output() {
        Ok(output) if output.status.success() => {}
        _ => progress("there is no MPI (Debian packages mpich, libmpich-dev): no samples of it"),
    }
    Ok(())
}

fn text(report: &Report) -> String {
    let mut table = TextTable::new(&[
        "program",
        "samples",
        "a block",
        "bytes",
        "time",
        "thread",
        "address",
        "rest",
        "in us",
        "agent CPU",
    ]);
    for row in &report.programs {
        let bytes = [
            row.bytes_per_sample,
            row.time_bytes,
            row.thread_and_process_bytes,
            row.address_bytes,
            row.rest_bytes,
            row.whole_microseconds_bytes,
        ];
        let a_block = format!("{:.0}", row.samples_per_block);
        let cells = [row.program.to_owned(), row.samples.to_string(), a_block];
        let cells = cells.into_iter().chain(bytes.map(|bytes| format!("{bytes:.2}")));
        table.row(cells.chain([format!("{:.4}%", row.agent_cpu_percent)]));
    }
    let ours = report.programs.first().map_or(0.0, |row| row.agent_cpu_with_start_percent);
    let perf = report.perf_cpu_with_start_percent.map_or_else(String::new, |percent| {
        format!(
            "steady loop, start included: this program {ours:.2} % of a core, perf record {percent:.2} %\n"
        )
    });
    let agents: String = report.agents.iter().map(agent::text).collect();
    let programs = if report.programs.is_empty() {
        String::new()
    } else {
        format!(
            "\n{table}\nbytes a sample, at most {} for the steady loop and {} for the mix; a sample takes {:.1} us \
             from the program that it interrupts\n",
            report.reach_steady_bytes,
            report.reach_mix_bytes,
            real(report.interrupt_ns) / 1_000.0,
        )
    };
    let transfers = if report.transfers.is_empty() {
        String::new()
    } else {
        format!("\n{}", transfer::text(&report.transfers))
    };
    let more = latency::text(&report.latencies) + &flames::text(&report.flames);
    let names = report.names.as_ref().map_or_else(String::new, names::text);
    format!("{}\n{programs}{agents}{perf}{more}{names}{transfers}", report.machine)
}
