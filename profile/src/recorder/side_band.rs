//! Rows that explain samples, on their way into blocks of their tables.

use std::collections::BTreeMap;

use meikyo_recording::{Batch, PackError, PackedRows, Packer, Symbol, TableSchema};
use meikyo_units::Nanos;

use super::mapped_files::{MappedAt, MappedFiles};
use super::perf_maps::{self, PerfMaps};
use crate::aging::put_place;
use crate::analysis::{Finding, Summary};
use crate::block::{FILLED, write_stack};
use crate::clock::Offset;
use crate::existing::Thread;
use crate::governor::percent;
use crate::mapping::Mapping;
use crate::off_cpu::{Same, Spans};
use crate::records::{Ids, Record};
use crate::symbols::perf_map;
use crate::tables::{
    cgroups, clocks, findings, jit_symbols, losses, mappings, off_cpu, rates, summaries, threads,
};

/// Rows at which a block is handed on before its second is over, and octets that each takes at most
/// without its names.
const BLOCK_ROWS_MAX: usize = 5_000;
const ROW_OCTETS: usize = 64;

/// Octets of names at which it is.
const BLOCK_NAMES_MAX: usize = FILLED - BLOCK_ROWS_MAX * ROW_OCTETS;

/// Octets of a name that are kept at most: a path has no more.
const NAME_MAX: usize = 4_096;

/// What the kernel calls code that it maps itself, and about which no compiler tells anything.
const MAPPED_BY_KERNEL: [&str; 3] = ["[vdso]", "[vsyscall]", "[uprobes]"];

/// What was lost, by second, kind and CPU: when the first was noticed, and how many.
type Losses = BTreeMap<(i64, &'static str, Option<u32>), (i64, u64)>;

/// Rows of every table but samples.
#[derive(Debug)]
pub(crate) struct SideBand {
    host: String,
    mappings: Table,
    threads: Table,
    cgroups: Table,
    jit_symbols: Table,
    rates: Table,
    losses: Table,
    clocks: Table,
    summaries: Table,
    findings: Table,
    off_cpu: Table,
    stack: String,
    full: Vec<Result<PackedRows, PackError>>,
    lost: Losses,
    /// Of processes with code that is of no file that names it.
    maps: PerfMaps,
    files: MappedFiles,
}

/// Rows of a table.
#[derive(Debug)]
struct Table {
    packer: Packer,
    /// Octets of the names in the block that is being filled.
    names: usize,
}

impl Table {
    fn new(schema: TableSchema) -> Self {
        Self { packer: Packer::new(schema), names: 0 }
    }

    /// Ends the block when it is full or a row with names of some octets would make it so. Words of a
    /// block are its own, so this comes before any of them.
    fn make_room(&mut self, names: usize, full: &mut Vec<Result<PackedRows, PackError>>) {
        let rows = self.packer.batch().rows();
        if rows >= BLOCK_ROWS_MAX || (rows > 0 && self.names + names > BLOCK_NAMES_MAX) {
            full.push(self.packer.pack());
            self.names = 0;
        }
        self.names += names;
    }

    /// Begins a row.
    fn row(&mut self, host: &str, time: i64) -> (&mut Batch, Symbol) {
        let host = self.packer.symbol(host);
        let batch = self.packer.batch();
        batch.begin_row(time);
        (batch, host)
    }
}

impl SideBand {
    pub(crate) fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            mappings: Table::new(mappings::schema()),
            threads: Table::new(threads::schema()),
            cgroups: Table::new(cgroups::schema()),
            jit_symbols: Table::new(jit_symbols::schema()),
            rates: Table::new(rates::schema()),
            losses: Table::new(losses::schema()),
            clocks: Table::new(clocks::schema()),
            summaries: Table::new(summaries::schema()),
            findings: Table::new(findings::schema()),
            off_cpu: Table::new(off_cpu::schema()),
            stack: String::new(),
            full: Vec::new(),
            lost: Losses::new(),
            maps: PerfMaps::default(),
            files: MappedFiles::default(),
        }
    }

    /// Where the file with a build ID was mapped last.
    pub(super) fn file(&self, build_id: &str) -> Option<MappedAt> {
        self.files.at(build_id)
    }

    /// What the kernel tells beside samples.
    pub(crate) fn told(&mut self, record: &Record<'_>, wall: impl Fn(u64) -> i64) {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        match *record {
            Record::Mapping { time, ids, range, build_id, inode, path } => {
                let mapping = Mapping::told(ids.pid, range, (path, build_id, inode));
                self.mapping(wall(time), &mapping);
            }
            Record::Name { time, ids, is_exec, name } => {
                let event = if is_exec { "exec" } else { "name" };
                self.thread(wall(time), event, ids, None, Some(&text(name)));
            }
            Record::Fork { time, ids, parent } => {
                self.thread(wall(time), "fork", ids, Some(parent), None);
            }
            Record::Exit { time, ids } => {
                self.thread(wall(time), "exit", ids, None, None);
                self.maps.thread_ended(ids);
            }
            _ => {}
        }
    }

    pub(crate) fn mapping(&mut self, time: i64, mapping: &Mapping) {
        if let Some(build_id) = &mapping.build_id {
            self.files.note(build_id, &mapping.path, mapping.pid);
        }
        if mapping.build_id.is_none()
            && !MAPPED_BY_KERNEL.contains(&&*mapping.path)
            && let Some(pid) = mapping.pid
        {
            self.maps.follow(pid);
        }
        let path = self.name(time, &mapping.path);
        self.mappings.make_room(path.len(), &mut self.full);
        let (batch, host) = self.mappings.row(&self.host, time);
        batch.put(mappings::HOST, host);
        if let Some(pid) = mapping.pid {
            batch.put(mappings::PID, pid.into());
        }
        batch.put(mappings::ADDRESS, mapping.address);
        batch.put(mappings::SIZE_BYTES, mapping.size);
        batch.put(mappings::OFFSET_BYTES, mapping.offset);
        batch.put(mappings::PATH, path);
        if let Some(build_id) = &mapping.build_id {
            batch.put(mappings::BUILD_ID, build_id);
        }
        if let Some(inode) = mapping.inode {
            batch.put(mappings::INODE, inode);
        }
    }

    pub(crate) fn thread_there(&mut self, time: i64, thread: &Thread) {
        let ids = Ids { pid: thread.pid, tid: thread.tid };
        self.thread(time, "there", ids, None, Some(&thread.name));
    }

    fn thread(
        &mut self,
        time: i64,
        event: &str,
        ids: Ids,
        parent: Option<Ids>,
        name: Option<&str>,
    ) {
        let name = name.map(|name| self.name(time, name));
        self.threads.make_room(name.map_or(0, str::len), &mut self.full);
        let event = self.threads.packer.symbol(event);
        let (batch, host) = self.threads.row(&self.host, time);
        batch.put(threads::HOST, host);
        batch.put(threads::EVENT, event);
        batch.put(threads::TID, ids.tid.into());
        batch.put(threads::PID, ids.pid.into());
        if let Some(parent) = parent {
            batch.put(threads::PARENT_PID, parent.pid.into());
            batch.put(threads::PARENT_TID, parent.tid.into());
        }
        if let Some(name) = name {
            batch.put(threads::CALLED, name);
        }
    }

    pub(super) fn cgroup(&mut self, time: i64, cgroup: u64, path: &str) {
        let path = self.name(time, path);
        self.cgroups.make_room(path.len(), &mut self.full);
        let (batch, host) = self.cgroups.row(&self.host, time);
        batch.put(cgroups::HOST, host);
        batch.put(cgroups::CGROUP, cgroup);
        batch.put(cgroups::PATH, path);
    }

    /// Something was lost: what of a second, a kind and a CPU is lost becomes one row.
    pub(crate) fn lost(&mut self, time: i64, loss: &'static str, cpu: Option<u32>, count: u64) {
        let key = (time.div_euclid(Nanos::SECOND.get().cast_signed()), loss, cpu);
        self.lost.entry(key).or_insert((time, 0)).1 += count;
    }

    fn write_losses(&mut self) {
        for ((_, loss, cpu), (time, count)) in std::mem::take(&mut self.lost) {
            self.losses.make_room(0, &mut self.full);
            let loss = self.losses.packer.symbol(loss);
            let (batch, host) = self.losses.row(&self.host, time);
            batch.put(losses::HOST, host);
            batch.put(losses::LOSS, loss);
            if let Some(cpu) = cpu {
                batch.put(losses::CPU, cpu.into());
            }
            batch.put(losses::COUNT, count);
        }
    }

    /// As much of a name as is kept; that it was cut is counted.
    fn name<'a>(&mut self, time: i64, name: &'a str) -> &'a str {
        let kept = &name[..name.floor_char_boundary(NAME_MAX)];
        if kept.len() < name.len() {
            self.lost(time, "name_cut", None, 1);
        }
        kept
    }

    /// A row of `rates`: period and interrupt, disturbance and budget in millionths.
    pub(crate) fn rate(
        &mut self,
        time: i64,
        reason: &str,
        [period, interrupt]: [Nanos; 2],
        [disturbance, budget]: [Option<u64>; 2],
    ) {
        self.rates.make_room(0, &mut self.full);
        let reason = self.rates.packer.symbol(reason);
        let (batch, host) = self.rates.row(&self.host, time);
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

    /// What a CPU did in the second that begins at a time.
    pub(super) fn summary(&mut self, time: i64, cpu: u32, summary: &Summary) {
        let all = (summary.samples > 0).then_some((None, summary.samples));
        let places =
            summary.places.iter().map(|place| (Some((place.pid, place.address)), place.samples));
        for (place, samples) in all.into_iter().chain(places) {
            self.summaries.make_room(0, &mut self.full);
            let (batch, host) = self.summaries.row(&self.host, time);
            put_place(batch, (host, cpu.into()), place, samples);
        }
        for finding in &summary.findings {
            let (word, before, found) = match *finding {
                Finding::Phase { distance } => ("phase", None, distance),
                Finding::Outlier { busy, median } => ("outlier", Some(median), busy),
            };
            self.findings.make_room(0, &mut self.full);
            let word = self.findings.packer.symbol(word);
            let (batch, host) = self.findings.row(&self.host, time);
            batch.put(findings::HOST, host);
            batch.put(findings::CPU, cpu.into());
            batch.put(findings::FINDING, word);
            if let Some(before) = before {
                batch.put(findings::BEFORE, before);
            }
            batch.put(findings::FOUND, found);
        }
    }

    /// Time that a thread was off the CPU.
    pub(super) fn off_cpu(&mut self, same: &Same, spans: &Spans) {
        write_stack(&same.callers, &mut self.stack);
        self.off_cpu.make_room(self.stack.len() + ROW_OCTETS, &mut self.full);
        let reason = self.off_cpu.packer.symbol(same.reason.word());
        let (batch, host) = self.off_cpu.row(&self.host, spans.first);
        batch.put(off_cpu::HOST, host);
        batch.put(off_cpu::CPU, same.cpu.into());
        batch.put(off_cpu::TID, same.tid.into());
        batch.put(off_cpu::PID, same.pid.into());
        batch.put(off_cpu::REASON, reason);
        batch.put(off_cpu::SPANS, spans.count);
        batch.put(off_cpu::OFF_NS, spans.total_ns);
        batch.put(off_cpu::LONGEST_NS, spans.longest_ns);
        batch.put(off_cpu::ADDRESS, same.address);
        if let Some(cgroup) = same.cgroup {
            batch.put(off_cpu::CGROUP, cgroup);
        }
        batch.put(off_cpu::STACK, &self.stack);
    }

    pub(super) fn clock(&mut self, time: i64, offset: Offset) {
        let (batch, host) = self.clocks.row(&self.host, time);
        batch.put(clocks::HOST, host);
        batch.put(clocks::MONOTONIC_NS, offset.at);
    }

    /// What compilers at run time have written since the last look.
    pub(super) fn perf_maps(
        &mut self,
        time: i64,
        which: perf_maps::Which,
        sink: &mut impl FnMut(PackedRows),
    ) -> Result<(), PackError> {
        let mut maps = std::mem::take(&mut self.maps);
        let mut looked = Ok(());
        maps.look(which, |of| {
            let read = of.read(|line| {
                if let Some(function) = perf_map::parse(line) {
                    self.made(time, of.pid, function);
                }
            });
            if read.is_cut {
                self.lost(time, "perf_map_cut", None, 1);
            }
            if looked.is_ok() {
                looked = self.flush_full(sink);
            }
            read
        });
        self.maps = maps;
        looked
    }

    /// From now on everything is told again, as to one who has heard nothing.
    pub(super) fn forget_told(&mut self) {
        self.maps.forget_read();
    }

    fn made(&mut self, time: i64, pid: u32, function: perf_map::MadeFunction<'_>) {
        let name = self.name(time, function.name);
        self.jit_symbols.make_room(name.len(), &mut self.full);
        let (batch, host) = self.jit_symbols.row(&self.host, time);
        batch.put(jit_symbols::HOST, host);
        batch.put(jit_symbols::PID, pid.into());
        batch.put(jit_symbols::ADDRESS, function.address);
        batch.put(jit_symbols::SIZE_BYTES, function.size);
        batch.put(jit_symbols::FUNCTION, name);
    }

    /// Hands on the rows so far.
    pub(crate) fn flush(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), PackError> {
        self.write_losses();
        self.flush_full(sink)?;
        for table in [
            &mut self.mappings,
            &mut self.threads,
            &mut self.cgroups,
            &mut self.jit_symbols,
            &mut self.rates,
            &mut self.losses,
            &mut self.clocks,
            &mut self.summaries,
            &mut self.findings,
            &mut self.off_cpu,
        ] {
            table.names = 0;
            match table.packer.pack() {
                Err(PackError::Empty) => {}
                block => sink(block?),
            }
        }
        Ok(())
    }

    fn flush_full(&mut self, sink: &mut impl FnMut(PackedRows)) -> Result<(), PackError> {
        for block in std::mem::take(&mut self.full) {
            sink(block?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushed(side: &mut SideBand) -> Vec<PackedRows> {
        let mut blocks = Vec::new();
        side.flush(&mut |block| blocks.push(block)).unwrap();
        blocks
    }

    /// The rows of a table in some blocks, and a number of each of them.
    fn rows(blocks: &[PackedRows], schema: &TableSchema, column: usize) -> Vec<Option<u64>> {
        let of_table = blocks.iter().filter(|block| *block.table() == *schema.name);
        let batches = of_table.map(|block| block.unpack(schema).unwrap().0);
        let of_batch = |batch: Batch| {
            (0..batch.rows()).map(move |row| batch.bits(column, row)).collect::<Vec<_>>()
        };
        batches.flat_map(of_batch).collect()
    }

    #[test]
    fn long_names_are_cut_and_many_of_them_fill_more_than_a_block() {
        let mut side = SideBand::new("node001");
        let long = "ä".repeat(9_000_000);
        let count = 5_000;
        for number in 0..count {
            let name = if number == 0 { &*long } else { &long[..4_000] };
            side.made(7, 1, perf_map::MadeFunction { address: number, size: 1, name });
        }
        let blocks = flushed(&mut side);
        let made = jit_symbols::schema();
        let found = rows(&blocks, &made, jit_symbols::ADDRESS.position());
        assert_eq!(found, (0..count).map(Some).collect::<Vec<_>>());
        let (first, _) = blocks[0].unpack(&made).unwrap();
        assert_eq!(first.text(jit_symbols::FUNCTION.position(), 0), Some(&long[..4_096]));
        assert_eq!(rows(&blocks, &losses::schema(), losses::COUNT.position()), [Some(1)]);
    }

    #[test]
    fn losses_of_a_second_and_a_cpu_are_one_row() {
        let mut side = SideBand::new("node001");
        for number in 0..1_000 {
            side.lost(number * 2_000_000, "cut", Some(3), 1);
            side.lost(number, "ring_full", Some(3), 2);
        }
        side.lost(5, "cut", None, 7);
        let blocks = flushed(&mut side);
        let mut counts = rows(&blocks, &losses::schema(), losses::COUNT.position());
        counts.sort_unstable();
        assert_eq!(counts, [7, 500, 500, 2_000].map(Some));
        assert!(flushed(&mut side).is_empty());
    }

    #[test]
    fn perf_maps_are_looked_for_wherever_no_build_id_names_code() {
        let mut side = SideBand::new("node001");
        let me = std::process::id();
        let map = |pid, path: &str, build_id: Option<&str>| Mapping {
            pid: Some(pid),
            address: 0,
            size: 1,
            offset: 0,
            path: path.to_owned(),
            build_id: build_id.map(str::to_owned),
            inode: None,
        };
        for (pid, path, build_id) in [
            (me, "/memfd:doublemapper (deleted)", None),
            (u32::MAX, "//anon", None),
            (2, "/usr/lib/libc.so.6", Some("ab")),
            (3, "[vdso]", None),
        ] {
            side.mapping(0, &map(pid, path, build_id));
        }
        assert_eq!(side.maps.processes().collect::<Vec<_>>(), [me, u32::MAX]);
    }
}
