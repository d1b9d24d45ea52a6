//! `./x demo`: this machine through a real `snmpd`, and a simulated cluster of 64 hosts and 4 switches,
//! measured every 0.1 s, every reading kept, and seen live in the browser. Where somebody sits at a
//! terminal, the measurement then goes on until Ctrl-C.

mod background;
mod cluster;
mod compile;
mod next;
mod spans;

use std::io::IsTerminal as _;
use std::net::TcpListener;
use std::path::Path;

use anyhow::Context as _;

use crate::demo::background::{Background, snmpd};
use crate::demo::cluster::Cluster;
use crate::demo::compile::PROGRAM;
use crate::demo::spans::Spans;
use crate::program::{Program, program};
use crate::{python, web};

/// Hosts and switches of the simulated cluster.
const HOSTS: u32 = 64;
const SWITCHES: u32 = 4;
/// How long it is measured.
const SPAN: &str = "20s";
/// Everything that the demo makes, below the workspace's root.
const DIRECTORY: &str = "target/demo";
/// Held by `x` while it installs Debian's packages, and what `x` says of them.
const PACKAGES_LOCK: &str = "target/demo-packages.lock";
const PACKAGES_LOG: &str = "target/demo-packages.log";

/// Runs the demo; whether every step went well.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let mut spans = Spans::begin();
    let python = prepare(root, &mut spans)?;
    let directory = root.join(DIRECTORY);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot remove `{}`", directory.display()))?;
    }
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make `{}`", directory.display()))?;

    let real = match snmpd(&directory) {
        Ok(real) => Some(real),
        Err(error) => {
            println!("this machine is left out: {error:#}");
            None
        }
    };
    let farm = farm(root)?;
    let cluster = Cluster {
        hosts: HOSTS,
        switches: SWITCHES,
        farm_port: farm.port(),
        real_port: real.as_ref().map(Background::port),
    };
    cluster.write(&directory)?;
    let measured = measure(root)?;
    spans.end("measure", format!("{HOSTS} simulated hosts and {SWITCHES} switches"));
    let well = read_back(root, &python)?;
    spans.end("read", "the same files in DuckDB and pandas");

    println!("\n{spans}");
    let recording = format!("{DIRECTORY}/recording");
    let page = std::io::stdout().is_terminal().then(page_address).transpose()?;
    println!("measured: {measured}");
    if let Some(page) = &page {
        println!("the page: http://{page}/ (still measuring; Ctrl-C ends it)");
    }
    let steps = next::steps(&recording);
    let missing = next::missing(root, &steps);
    anyhow::ensure!(missing.is_empty(), "the demo did not make {}", missing.join(" and "));
    for (step, lead) in steps.iter().zip(std::iter::once("try next:").chain(std::iter::repeat("")))
    {
        println!("{lead:9} {}    # {}", step.command, step.does);
    }
    let Some(page) = page else { return Ok(well) };
    let file = format!("{DIRECTORY}/cluster.toml");
    let on = ["measure", "--quiet", "--cluster", &file, "--out", &recording, "--serve", &page];
    Ok(well & meikyo(root, &on).quiet_run()?)
}

/// Builds the page and the program, while Debian's and then Python's packages are installed; Python's
/// interpreter, or why there is none.
fn prepare(root: &Path, spans: &mut Spans) -> anyhow::Result<Result<String, String>> {
    std::thread::scope(|scope| {
        let python = scope.spawn(|| {
            wait_for_packages(root);
            python::environment(root)
        });
        match web::lacking(root) {
            Some(what) => println!("the page is left out, the server will say so: {what}"),
            None => {
                web::install(root)?;
                spans.end("download", "the tools that build the page");
                web::build_quietly(root)?;
                spans.end("page", "types checked, scripts bundled");
            }
        }
        let crates = compile::program(root)?;
        let what = "crates, while Debian's and Python's packages are installed";
        spans.end("compile", format!("{crates} {what}"));
        let python = python.join().expect("it has no reason to panic");
        spans.end("wait", "for what was still being installed");
        Ok(python)
    })
}

/// Waits until `x` has installed what it set out to, and repeats what went wrong.
fn wait_for_packages(root: &Path) {
    if !root.join(PACKAGES_LOCK).exists() {
        return;
    }
    if let Err(error) = program(root, "flock", &[PACKAGES_LOCK, "true"]).output() {
        println!("whether Debian's packages are installed is not known: {error:#}");
    }
    let log = std::fs::read_to_string(root.join(PACKAGES_LOG)).unwrap_or_default();
    for line in log.lines().filter(|line| line.starts_with("x: ") || line.starts_with("hint: ")) {
        println!("{line}");
    }
}

/// The simulated hosts and switches, which answer on the loopback network.
fn farm(root: &Path) -> anyhow::Result<Background> {
    let (hosts, switches) = (HOSTS.to_string(), SWITCHES.to_string());
    let farm = ["farm", "--count", &hosts, "--switches", &switches, "--port", "0"];
    Background::start(meikyo(root, &farm), |line| {
        let address = line.strip_prefix("ready: ")?.split(' ').find(|word| word.contains(':'))?;
        address.rsplit_once(':')?.1.parse().ok()
    })
}

/// Measures everything, with the page beside; what the program said of it, as one line.
fn measure(root: &Path) -> anyhow::Result<String> {
    let file = format!("{DIRECTORY}/cluster.toml");
    let recording = format!("{DIRECTORY}/recording");
    let page = page_address()?;
    println!("measuring for {SPAN}, every 0.1 s; the page while it runs: http://{page}/");
    let measure = [
        &["measure", "--quiet", "--cluster", &file, "--out", &recording],
        &["--for", SPAN, "--serve", &page][..],
    ];
    let said = meikyo(root, &measure.concat()).said()?;
    // What it counted, without the page's address.
    let counts =
        said.lines().filter(|line| line.starts_with("ok ") || line.starts_with(char::is_numeric));
    Ok(counts.collect::<Vec<_>>().join("; "))
}

/// Reads the recording with the program and with what data people use; whether both can.
fn read_back(root: &Path, python: &Result<String, String>) -> anyhow::Result<bool> {
    let recording = format!("{DIRECTORY}/recording");
    meikyo(root, &["recording", "info", &recording]).output()?;
    match python {
        Ok(interpreter) => {
            println!("the same files in DuckDB and pandas:");
            program(root, interpreter, &["examples/open_recording.py", &recording]).quiet_run()
        }
        Err(reason) => {
            println!("DuckDB is left out: {reason}");
            Ok(true)
        }
    }
}

/// Where the page is served: at the usual port, or at a free one where somebody has that.
fn page_address() -> anyhow::Result<String> {
    let listener =
        TcpListener::bind("127.0.0.1:8420").or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let address = listener.and_then(|listener| listener.local_addr());
    Ok(address.context("no port is free for the page")?.to_string())
}

/// The program as built for the demo.
fn meikyo(root: &Path, arguments: &[&str]) -> Program {
    program(root, &root.join(PROGRAM).to_string_lossy(), arguments).shown_as("meikyo")
}
