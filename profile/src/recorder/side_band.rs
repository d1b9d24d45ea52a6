//! Rows that explain samples, on their way into blocks of their tables.

use std::collections::BTreeSet;
use std::path::PathBuf;

use meikyo_recording::{Batch, PackError, PackedRows, Packer, Symbol};
use meikyo_units::Nanos;

use crate::clock::Offset;
use crate::existing::{Mapping, Thread, hexadecimal};
use crate::records::{Ids, Record};
use crate::symbols::perf_map;
use crate::tables::{cgroups, clocks, jit_symbols, losses, mappings, rates, threads};

/// Rows at which a block is handed on before its second is over.
const BLOCK_ROWS_MAX: usize = 20_000;

/// Rows of every table but samples.
#[derive(Debug)]
pub(super) struct SideBand {
    host: String,
    mappings: Packer,
    threads: Packer,
    cgroups: Packer,
    jit_symbols: Packer,
    rates: Packer,
    losses: Packer,
    clocks: Packer,
    full: Vec<Result<PackedRows, PackError>>,
    /// Processes with code that no file holds.
    anonymous: BTreeSet<u32>,
}

impl SideBand {
    pub(super) fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            mappings: Packer::new(mappings::schema()),
            threads: Packer::new(threads::schema()),
            cgroups: Packer::new(cgroups::schema()),
            jit_symbols: Packer::new(jit_symbols::schema()),
            rates: Packer::new(rates::schema()),
            losses: Packer::new(losses::schema()),
            clocks: Packer::new(clocks::schema()),
            full: Vec::new(),
            anonymous: BTreeSet::new(),
        }
    }

    /// What the kernel tells beside samples.
    pub(super) fn told(&mut self, record: &Record<'_>, wall: impl Fn(u64) -> i64) {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        match *record {
            Record::Mapping { time, ids, range, build_id, path } => {
                let mapping = Mapping {
                    pid: Some(ids.pid),
                    address: range[0],
                    size: range[1],
                    offset: range[2],
                    path: text(path),
                    build_id: (!build_id.is_empty()).then(|| hexadecimal(build_id)),
                };
                self.mapping(wall(time), &mapping);
            }
            Record::Name { time, ids, is_exec, name } => {
                let event = if is_exec { "exec" } else { "name" };
                self.thread(wall(time), event, ids, None, Some(&text(name)));
            }
            Record::Fork { time, ids, parent } => {
                self.thread(wall(time), "fork", ids, Some(parent), None);
            }
            Record::Exit { time, ids } => self.thread(wall(time), "exit", ids, None, None),
            _ => {}
        }
    }

    pub(super) fn mapping(&mut self, time: i64, mapping: &Mapping) {
        if mapping.path == "//anon"
            && let Some(pid) = mapping.pid
        {
            self.anonymous.insert(pid);
        }
        make_room(&mut self.mappings, &mut self.full);
        let (batch, host) = row(&mut self.mappings, &self.host, time);
        batch.put(mappings::HOST, host);
        if let Some(pid) = mapping.pid {
            batch.put(mappings::PID, pid.into());
        }
        batch.put(mappings::ADDRESS, mapping.address);
        batch.put(mappings::SIZE_BYTES, mapping.size);
        batch.put(mappings::OFFSET_BYTES, mapping.offset);
        batch.put(mappings::PATH, &mapping.path);
        if let Some(build_id) = &mapping.build_id {
            batch.put(mappings::BUILD_ID, build_id);
        }
    }

    pub(super) fn thread_there(&mut self, time: i64, thread: &Thread) {
        let ids = Ids { pid: thread.pid, tid: thread.tid };
        self.thread(time, "there", ids, None, Some(&thread.name));
    }

    fn thread(
        &mut self,
        time: i64,
        event: &str,
        ids: Ids,
        parent: Option<u32>,
        name: Option<&str>,
    ) {
        make_room(&mut self.threads, &mut self.full);
        let event = self.threads.symbol(event);
        let (batch, host) = row(&mut self.threads, &self.host, time);
        batch.put(threads::HOST, host);
        batch.put(threads::EVENT, event);
        batch.put(threads::TID, ids.tid.into());
        batch.put(threads::PID, ids.pid.into());
        if let Some(parent) = parent {
            batch.put(threads::PARENT_PID, parent.into());
        }
        if let Some(name) = name {
            batch.put(threads::CALLED, name);
        }
    }

    pub(super) fn cgroup(&mut self, time: i64, cgroup: u64, path: &str) {
        make_room(&mut self.cgroups, &mut self.full);
        let (batch, host) = row(&mut self.cgroups, &self.host, time);
        batch.put(cgroups::HOST, host);
        batch.put(cgroups::CGROUP, cgroup);
        batch.put(cgroups::PATH, path);
    }

    pub(super) fn lost(&mut self, time: i64, loss: &str, cpu: u32, count: u64) {
        make_room(&mut self.losses, &mut self.full);
        let loss = self.losses.symbol(loss);
        let (batch, host) = row(&mut self.losses, &self.host, time);
        batch.put(losses::HOST, host);
        batch.put(losses::LOSS, loss);
        batch.put(losses::CPU, cpu.into());
        batch.put(losses::COUNT, count);
    }

    /// A row of `rates`: period and interrupt, disturbance and budget in millionths.
    pub(super) fn rate(
        &mut self,
        time: i64,
        reason: &str,
        [period, interrupt]: [Nanos; 2],
        [disturbance, budget]: [Option<u64>; 2],
    ) {
        make_room(&mut self.rates, &mut self.full);
        let reason = self.rates.symbol(reason);
        let (batch, host) = row(&mut self.rates, &self.host, time);
        batch.put(rates::HOST, host);
        batch.put(rates::REASON, reason);
        batch.put(rates::PERIOD_NS, period.get());
        batch.put(rates::INTERRUPT_NS, interrupt.get());
        if let Some(disturbance) = disturbance {
            batch.put(rates::DISTURBANCE_PERCENT, percent(disturbance));
        }
        if let Some(budget) = budget {
            batch.put(rates::BUDGET_PERCENT, percent(budget));
        }
    }

    pub(super) fn clock(&mut self, time: i64, offset: Offset) {
        let (batch, host) = row(&mut self.clocks, &self.host, time);
        batch.put(clocks::HOST, host);
        batch.put(clocks::MONOTONIC_NS, offset.at);
    }

    /// What compilers at run time have left about processes with code that no file holds.
    pub(super) fn perf_maps(&mut self, time: i64) {
        for pid in std::mem::take(&mut self.anonymous) {
            for file in perf_map_files(pid) {
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                for symbol in text.lines().filter_map(perf_map::parse) {
                    make_room(&mut self.jit_symbols, &mut self.full);
                    let (batch, host) = row(&mut self.jit_symbols, &self.host, time);
                    batch.put(jit_symbols::HOST, host);
                    batch.put(jit_symbols::PID, pid.into());
                    batch.put(jit_symbols::ADDRESS, symbol.address);
                    batch.put(jit_symbols::SIZE_BYTES, symbol.size);
                    batch.put(jit_symbols::FUNCTION, symbol.name);
                }
                break;
            }
        }
    }

    /// Hands on the rows so far.
    pub(super) fn flush(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), PackError> {
        for block in std::mem::take(&mut self.full) {
            sink(block?);
        }
        for packer in [
            &mut self.mappings,
            &mut self.threads,
            &mut self.cgroups,
            &mut self.jit_symbols,
            &mut self.rates,
            &mut self.losses,
            &mut self.clocks,
        ] {
            match packer.pack() {
                Err(PackError::Empty) => {}
                block => sink(block?),
            }
        }
        Ok(())
    }
}

/// Ends a block that is full. Words of a block are its own, so this comes before any of them.
fn make_room(packer: &mut Packer, full: &mut Vec<Result<PackedRows, PackError>>) {
    if packer.batch().rows() >= BLOCK_ROWS_MAX {
        full.push(packer.pack());
    }
}

/// Begins a row.
fn row<'a>(packer: &'a mut Packer, host: &str, time: i64) -> (&'a mut Batch, Symbol) {
    let host = packer.symbol(host);
    let batch = packer.batch();
    batch.begin_row(time);
    (batch, host)
}

/// Millionths as hundredths.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53, where it is exact")]
fn percent(ppm: u64) -> f64 {
    ppm as f64 / 10_000.0
}

/// Where a process leaves its map: in `/tmp` as it sees it, by its number as it knows it, which in a
/// container is another one.
fn perf_map_files(pid: u32) -> Vec<PathBuf> {
    let inside = std::fs::read_to_string(format!("/proc/{pid}/status")).ok().and_then(|status| {
        let line =
            status.lines().find_map(|line| line.strip_prefix("NSpid:").map(str::to_owned))?;
        line.split_whitespace().last()?.parse::<u32>().ok()
    });
    let inside = inside.unwrap_or(pid);
    vec![
        PathBuf::from(format!("/proc/{pid}")).join(format!("root/tmp/perf-{inside}.map")),
        PathBuf::from(format!("/tmp/perf-{pid}.map")),
    ]
}
