//! A small HPL as it is, Debian's `hpcc`, on the hosts of the lab.
//!
//! `hpcc` runs other benchmarks first. So cables are fast until HPL begins, which a preloaded library holds back until
//! they are slow (`gate.c`). The time is what HPL says itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

use meikyo_console::failure::Failure;
use meikyo_models::prediction::Network;
use meikyo_models::prediction::hpl::{Broadcast, GridOrder, Hpl};
use meikyo_spaces::links::Shape;
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use super::site::{self, Hosts, LAUNCHER};
use crate::predict::now;

/// Where Debian's package has it.
pub(super) const PROGRAM: &str = "/usr/bin/hpcc";

/// The library that holds HPL back.
const GATE: &str = include_str!("gate.c");

/// Ranks that wait leave the processor to others: what comes before HPL takes minutes otherwise, since each host believes
/// that the processors of this machine are all its own.
const YIELD: &str = "--mca mpi_yield_when_idle 1";

/// What is run: small enough for slow cables. Of its matrix products nothing is to be seen there.
pub(super) const RUN: Hpl = Hpl {
    order: 384,
    block: 32,
    rows: 2,
    columns: 4,
    grid_order: GridOrder::RowMajor,
    look_ahead: 1,
    broadcast: Broadcast::RingModified,
    flop_per_s: 1e9,
    panel_share: 0.5,
    latency: Nanos::ZERO,
    seed: 1,
};

/// What cables carry before HPL begins.
const FAST: Shape =
    Shape { rate: BitsPerSecond::GIGABIT, burst: Bytes::new(65_536), queue: Bytes::new(1 << 20) };

/// How long it may take until HPL begins, and until it has ended.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(5);

/// What `hpcc` reads: HPL's own input, with long swaps and equilibration, and nothing of its own.
fn input(run: &Hpl) -> String {
    let Hpl { order, block, rows, columns, look_ahead, .. } = run;
    format!(
        "HPLinpack benchmark input file\nthe lab\nHPL.out      output file name\n\
         8            device out\n1            # of problems sizes (N)\n{order}          Ns\n\
         1            # of NBs\n{block}           NBs\n0            PMAP: row-major\n\
         1            # of process grids (P x Q)\n{rows}            Ps\n{columns}            Qs\n\
         16.0         threshold\n1            # of panel fact\n2            PFACTs: right\n\
         1            # of recursive stopping criterium\n4            NBMINs\n\
         1            # of panels in recursion\n2            NDIVs\n1            # of recursive panel fact.\n\
         1            RFACTs: Crout\n1            # of broadcast\n1            BCASTs: modified ring\n\
         1            # of lookahead depth\n{look_ahead}            DEPTHs\n1            SWAP: long\n\
         64           swapping threshold\n0            L1: transposed\n0            U: transposed\n\
         1            Equilibration\n8            memory alignment in double\n\
         ##### for PTRANS #####\n0            Number of additional problem sizes\n1200         values of N\n\
         0            number of additional blocking sizes\n40           values of NB\n"
    )
}

/// Compiles the library that holds HPL back.
pub(super) fn build(directory: &Path) -> Result<PathBuf, Failure> {
    site::compile(directory, "gate", GATE, &["-shared", "-fPIC"])
}

/// Runs HPL with a rank on each of the first hosts of a network, as many as its grid has. Gives what it says that it took.
pub(super) fn run(
    network: &Network,
    slow: Shape,
    window: Bytes,
    run: &Hpl,
    gate: &Path,
) -> Result<Nanos, Failure> {
    let mut hosts = Hosts::start(network, FAST, window)?;
    let home = hosts.home().to_owned();
    fs::write(home.join("hpccinf.txt"), input(run))?;
    let [there, gate] = [&home, gate].map(|path| path.display().to_string());
    let command = format!(
        "-wdir '{there}' {YIELD} -x LD_PRELOAD='{gate}' -x MEIKYO_GATE='{there}' \
         -x OMP_NUM_THREADS=1 {PROGRAM}"
    );
    let mut launcher = Ended(hosts.launch(run.ranks(), &command)?);
    let here = || (0..run.ranks()).all(|rank| home.join(format!("here.{rank}")).exists());
    await_until(&hosts, &mut launcher.0, "begin HPL", || here().then_some(()))?;
    hosts.network.reshape(&slow)?;
    fs::write(home.join("open"), [])?;
    let report = home.join("hpccoutf.txt");
    await_until(&hosts, &mut launcher.0, "end HPL", || {
        told(&fs::read_to_string(&report).unwrap_or_default())
    })
}

/// A launcher, ended when this goes.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Looks again and again until there is an answer.
fn await_until<T>(
    hosts: &Hosts,
    launcher: &mut Child,
    what: &str,
    mut answer: impl FnMut() -> Option<T>,
) -> Result<T, Failure> {
    let start = now();
    loop {
        let status = launcher.try_wait()?;
        if let Some(answer) = answer() {
            return Ok(answer);
        }
        if let Some(status) = status {
            return Err(Failure::new(format!(
                "`{LAUNCHER}` ended with {status}: {}",
                hosts.said()
            )));
        }
        if start.elapsed() > PATIENCE {
            let said = hosts.said();
            return Err(Failure::new(format!(
                "`hpcc` does not {what} within {PATIENCE:?}: {said}"
            )));
        }
        thread::park_timeout(PAUSE);
    }
}

/// The time in HPL's table: a line with the variant, `N`, `NB`, `P`, `Q`, seconds and GFLOPS.
fn told(report: &str) -> Option<Nanos> {
    let whole = &report[..report.rfind('\n')?];
    let line = whole.lines().find(|line| line.starts_with("WR") || line.starts_with("WC"))?;
    let seconds: f64 = line.split_whitespace().nth(5)?.parse().ok()?;
    Some(Nanos::from_secs_f64(seconds))
}

/// Whether `hpcc` is there.
pub(super) fn lacking() -> Option<Failure> {
    if Path::new(PROGRAM).is_file() {
        return None;
    }
    Some(Failure::new(format!("there is no `{PROGRAM}` here")).hint("`apt-get install hpcc`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time_is_read_from_its_table() {
        let report = "T/V                N    NB     P     Q               Time                 Gflops\n\
                      ------\n\
                      WR11C2R4         384    32     2     4              17.25              2.200e-03\n";
        assert_eq!(told(report), Some(Nanos::from_millis(17_250)));
        // It may not be written whole yet.
        assert_eq!(
            told("T/V                N    NB\nWR11C2R4         384    32     2     4    1"),
            None
        );
        assert_eq!(told(""), None);
    }

    #[test]
    fn it_is_told_order_block_and_grid_where_it_reads_them() {
        let input = input(&RUN);
        let words =
            |line: usize| input.lines().nth(line - 1).unwrap().split_whitespace().next().unwrap();
        assert_eq!([6, 8, 11, 12, 25].map(words), ["384", "32", "2", "4", "1"]);
    }
}
