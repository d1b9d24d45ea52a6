//! `./x demo`: this machine through a real `snmpd`, and a simulated cluster of 64 hosts and 4 switches,
//! measured every 0.1 s, every reading kept, and seen live in the browser. Where somebody sits at a
//! terminal, the measurement then goes on until Ctrl-C.

mod background;
mod cluster;

use std::io::IsTerminal as _;
use std::net::TcpListener;
use std::path::Path;

use anyhow::Context as _;

use crate::demo::background::{Background, snmpd};
use crate::demo::cluster::Cluster;
use crate::program::{Program, cargo, program};
use crate::web::Page;
use crate::{python, web};

/// Hosts and switches of the simulated cluster.
const HOSTS: u32 = 64;
const SWITCHES: u32 = 4;
/// How long it is measured.
const SPAN: &str = "20s";
/// Everything that the demo makes, below the workspace's root.
const DIRECTORY: &str = "target/demo";

/// Runs the demo; whether every step went well.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    if let Page::Lacking(what) = web::build(root)? {
        println!("the page is left out, the server will say so: {what}");
    }
    let built =
        cargo(root, &["build", "--release", "--locked", "--package", "meikyo-cli"]).run()?;
    anyhow::ensure!(built, "the release build failed");
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
    let farm = Background::start(
        meikyo(
            root,
            &[
                "agents",
                "--count",
                &HOSTS.to_string(),
                "--switches",
                &SWITCHES.to_string(),
                "--port",
                "0",
            ],
        ),
        |line| {
            let address =
                line.strip_prefix("ready: ")?.split(' ').find(|word| word.contains(':'))?;
            address.rsplit_once(':')?.1.parse().ok()
        },
    )?;
    let cluster = Cluster {
        hosts: HOSTS,
        switches: SWITCHES,
        farm_port: farm.port(),
        real_port: real.as_ref().map(Background::port),
    };
    cluster.write(&directory)?;
    let well = measure_and_look(root, real.is_some())?;
    println!("\nthe cluster file:  {DIRECTORY}/cluster.toml");
    println!("the recording:     {DIRECTORY}/recording");
    if !std::io::stdout().is_terminal() {
        println!("look at it:        meikyo serve {DIRECTORY}/recording");
        return Ok(well);
    }
    let page = page_address()?;
    println!("\nthe measurement goes on until Ctrl-C; the page: http://{page}/");
    let (file, recording) = (format!("{DIRECTORY}/cluster.toml"), format!("{DIRECTORY}/recording"));
    let measured =
        ["measure", "--quiet", "--cluster", &file, "--out", &recording, "--serve", &page];
    Ok(well & shown(root, &measured)?)
}

fn measure_and_look(root: &Path, real: bool) -> anyhow::Result<bool> {
    let file = format!("{DIRECTORY}/cluster.toml");
    let recording = format!("{DIRECTORY}/recording");
    println!("\n{HOSTS} simulated hosts, {SWITCHES} switches, every 0.1 s for {SPAN}:");
    let page = page_address()?;
    println!("(the page while it runs: http://{page}/)");
    let measured =
        ["measure", "--cluster", &file, "--out", &recording, "--for", SPAN, "--serve", &page];
    let mut well = shown(root, &measured)?;
    well &= shown(root, &["recording", "info", &recording])?;
    let device = if real { "this-machine" } else { "node001" };
    let interface = if real { "lo" } else { "eth0" };
    let columns = "in_octets,out_octets";
    well &= shown(
        root,
        &[
            "query",
            &recording,
            "interfaces",
            "--device",
            device,
            "--label",
            &format!("interface={interface}"),
            "--columns",
            columns,
            "--every",
            "5s",
        ],
    )?;
    match python::environment(root) {
        Ok(interpreter) => {
            println!("\nthe same files in DuckDB and pandas:");
            let script = ["examples/open_recording.py", recording.as_str()];
            well &= program(root, &interpreter, &script).run()?;
        }
        Err(reason) => println!("\nDuckDB is left out: {reason}"),
    }
    Ok(well)
}

/// Where the page is served: at the usual port, or at a free one where somebody has that.
fn page_address() -> anyhow::Result<String> {
    let listener =
        TcpListener::bind("127.0.0.1:8420").or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let address = listener.and_then(|listener| listener.local_addr());
    Ok(address.context("no port is free for the page")?.to_string())
}

fn shown(root: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    println!();
    meikyo(root, arguments).run()
}

/// The program as built for release, shown as a person would type it.
fn meikyo(root: &Path, arguments: &[&str]) -> Program {
    let path = root.join("target/release/meikyo");
    program(root, &path.to_string_lossy(), arguments).shown_as("meikyo")
}
