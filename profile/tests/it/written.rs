//! Recordings whose rows are written by hand.

use std::path::Path;

use meikyo_profile::STREAM;
use meikyo_profile::tables::{all, jit_symbols, mappings, samples, threads};
use meikyo_recording::{
    ColumnKind, Kind, PackedRows, Packer, Recording, StreamOptions, StreamWriter, WhenFull,
};
use tempfile::TempDir;

pub(crate) const SECOND: i64 = 1_000_000_000;

/// A recording that is written by hand.
pub(crate) struct Written {
    directory: TempDir,
    packers: Vec<Packer>,
    blocks: Vec<PackedRows>,
}

impl Written {
    pub(crate) fn new() -> Self {
        let packers = all().into_iter().map(Packer::new).collect();
        Self { directory: tempfile::tempdir().unwrap(), packers, blocks: Vec::new() }
    }

    /// A row: table, time in s, words by column, numbers by column.
    pub(crate) fn row(
        &mut self,
        table: &str,
        time: i64,
        words: &[(&str, &str)],
        numbers: &[(&str, u64)],
    ) {
        self.row_at(table, time * SECOND, words, numbers);
    }

    /// A row: table, time in ns, words by column, numbers by column.
    pub(crate) fn row_at(
        &mut self,
        table: &str,
        time: i64,
        words: &[(&str, &str)],
        numbers: &[(&str, u64)],
    ) {
        let schema = all().into_iter().find(|schema| schema.name == table).unwrap();
        let at = all().iter().position(|schema| schema.name == table).unwrap();
        let packer = &mut self.packers[at];
        let position =
            |name: &str| schema.columns.iter().position(|column| column.name == name).unwrap();
        let is_symbol = |column: &str| schema.columns[position(column)].kind == ColumnKind::Symbol;
        let symbols: Vec<_> = words
            .iter()
            .filter(|(column, _)| is_symbol(column))
            .map(|(column, word)| (position(column), packer.symbol(word)))
            .collect();
        let batch = packer.batch();
        batch.begin_row(time);
        symbols.into_iter().for_each(|(column, symbol)| batch.put_symbol(column, symbol));
        for (column, word) in words.iter().filter(|word| !is_symbol(word.0)) {
            batch.put_text(position(column), word);
        }
        numbers.iter().for_each(|(column, number)| batch.put_u64(position(column), *number));
    }

    pub(crate) fn sample(&mut self, host: &str, time: i64, [pid, tid, address]: [u64; 3]) {
        let numbers = [("cpu", 0), ("pid", pid), ("tid", tid), ("address", address)];
        self.row(samples::NAME, time, &[("host", host)], &numbers);
    }

    pub(crate) fn thread(
        &mut self,
        host: &str,
        time: i64,
        (event, name): (&str, &str),
        [pid, tid]: [u64; 2],
    ) {
        let words = [("host", host), ("event", event), ("name", name)];
        self.row(threads::NAME, time, &words, &[("pid", pid), ("tid", tid)]);
    }

    pub(crate) fn mapping(&mut self, host: &str, time: i64, pid: u64, path: &str) {
        let numbers = [("pid", pid), ("address", 0x1000), ("size_bytes", 0x1000)];
        let words = [("host", host), ("path", path), ("build_id", "ab")];
        self.row(mappings::NAME, time, &words, &numbers);
    }

    /// A function that a compiler made at run time, of 16 octets.
    pub(crate) fn made(&mut self, host: &str, time: i64, pid: u64, (address, name): (u64, &str)) {
        let numbers = [("pid", pid), ("address", address), ("size_bytes", 16)];
        self.row(jit_symbols::NAME, time, &[("host", host), ("name", name)], &numbers);
    }

    /// Ends a block: rows that are written from now on are in other ones.
    pub(crate) fn end_block(&mut self) {
        let filled = self.packers.iter_mut().filter_map(|packer| packer.pack().ok());
        self.blocks.extend(filled);
    }

    /// The recording.
    pub(crate) fn recording(&mut self) -> Recording {
        let options =
            StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
        self.end_block();
        let dir: &Path = self.directory.path();
        let mut writer = StreamWriter::open(dir, Kind::Measured, STREAM, all(), options).unwrap();
        self.blocks.drain(..).for_each(|block| writer.packed(block).unwrap());
        writer.close().unwrap();
        Recording::open(dir).unwrap()
    }
}
