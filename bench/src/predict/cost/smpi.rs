//! The same all-to-all exchange by SMPI, where `SimGrid` is installed: the platform file has the lanes of the prediction as links,
//! and its routes.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use meikyo_console::failure::Failure;
use meikyo_models::prediction::{LaneEnd, Network, connection};
use meikyo_units::Nanos;

const PROGRAM: &str = include_str!("exchange.c");
/// What builds the program and what runs it: `apt-get install libsimgrid-dev`.
const COMPILER: &str = "smpicc";
const LAUNCHER: &str = "smpirun";

#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// What the exchange takes, as SMPI says.
    pub(super) time: Nanos,
    /// What SMPI took for the exchange, without reading the platform file.
    pub(super) seconds: f64,
}

/// The program and the platform, ready to be run.
#[derive(Debug)]
pub(super) struct Smpi {
    directory: tempfile::TempDir,
    hosts: usize,
    bytes: u64,
}

impl Smpi {
    /// Prepares the exchange of so many octets on a network; nothing where `SimGrid` is not installed.
    pub(super) fn prepare(
        network: &Network,
        lane_rate: f64,
        lane_delay: Nanos,
        bytes: u64,
    ) -> Result<Option<Self>, Failure> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        fs::write(at("exchange.c"), PROGRAM)?;
        let mut compiler = Command::new(COMPILER);
        compiler.args(["-O2", "exchange.c", "-o", "exchange"]).current_dir(directory.path());
        let Ok(built) = compiler.output() else { return Ok(None) };
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).trim().to_owned();
            return Err(Failure::new(format!(
                "`{COMPILER}` does not compile the exchange: {said}"
            )));
        }
        fs::write(at("platform.xml"), platform(network, lane_rate, lane_delay))?;
        let names = (0..network.hosts()).map(|host| format!("h{host}\n"));
        fs::write(at("hosts"), names.collect::<String>())?;
        Ok(Some(Self { directory, hosts: network.hosts(), bytes }))
    }

    /// Has SMPI simulate the exchange once; an error where it ends without saying what that took.
    pub(super) fn run(&self) -> Result<Run, Failure> {
        let ranks = self.hosts.to_string();
        let mut launcher = Command::new(LAUNCHER);
        launcher.args(["-np", &ranks, "-platform", "platform.xml", "-hostfile", "hosts"]);
        launcher.args(["--cfg=smpi/simulate-computation:no", "./exchange"]);
        launcher.arg(self.bytes.to_string()).current_dir(self.directory.path());
        let output = launcher.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines().find_map(result).ok_or_else(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or_default();
            Failure::new(format!("`{LAUNCHER}` did not say what the exchange took: {last}"))
        })
    }
}

/// `exchanged`, and two numbers of seconds: simulated, and of this machine.
fn result(line: &str) -> Option<Run> {
    let mut words = line.strip_prefix("exchanged ")?.split(' ').map(str::parse::<f64>);
    let (time_s, seconds) = (words.next()?.ok()?, words.next()?.ok()?);
    Some(Run { time: Nanos::from_secs_f64(time_s), seconds })
}

/// Hosts, a link for each lane, and the route of each pair of hosts.
fn platform(network: &Network, lane_rate: f64, lane_delay: Nanos) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
         <platform version=\"4.1\"><zone id=\"fabric\" routing=\"Full\">\n",
    );
    let mut add = |line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("a text takes all that is written");
    };
    for host in 0..network.hosts() {
        add(format_args!("<host id=\"h{host}\" speed=\"1Gf\"/>\n"));
    }
    let delay_ns = lane_delay.get();
    for lane in 0..network.lanes().len() {
        if network.ends(lane).iter().all(|end| matches!(end, LaneEnd::Host(_))) {
            continue;
        }
        add(format_args!(
            "<link id=\"l{lane}\" bandwidth=\"{lane_rate}Bps\" latency=\"{delay_ns}ns\"/>\n"
        ));
    }
    let mut way = Vec::new();
    for from in 0..network.hosts() {
        for to in (0..network.hosts()).filter(|to| *to != from) {
            way.clear();
            network.route(from, to, connection(from, to), &mut way);
            add(format_args!("<route src=\"h{from}\" dst=\"h{to}\" symmetrical=\"NO\">"));
            for lane in &way {
                add(format_args!("<link_ctn id=\"l{lane}\"/>"));
            }
            add(format_args!("</route>\n"));
        }
    }
    text.push_str("</zone></platform>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_is_read() {
        let run = result("exchanged 0.191570 1.167002").unwrap();
        assert_eq!((run.time, run.seconds), (Nanos::from_micros(191_570), 1.167_002));
        for line in ["exchanged 1", "exchanged a b", "[0.0] [xbt_cfg/INFO]", ""] {
            assert!(result(line).is_none(), "{line}");
        }
    }
}
