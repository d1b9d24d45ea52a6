//! Reports of recordings whose rows are written by hand: what they must say is known.

use meikyo_profile::report::{self, By, Report, ReportOptions};
use meikyo_profile::tables::{all, jit_symbols, mappings, samples, threads};
use meikyo_profile::{STREAM, symbols::Unnamed};
use meikyo_recording::{Kind, Packer, Recording, StreamOptions, StreamWriter, WhenFull};
use tempfile::TempDir;

const SECOND: i64 = 1_000_000_000;

/// A recording that is written by hand.
struct Written {
    directory: TempDir,
    packers: Vec<Packer>,
}

impl Written {
    fn new() -> Self {
        let packers = all().into_iter().map(Packer::new).collect();
        Self { directory: tempfile::tempdir().unwrap(), packers }
    }

    /// A row: table, time in s, words by column, numbers by column.
    fn row(&mut self, table: &str, time: i64, words: &[(&str, &str)], numbers: &[(&str, u64)]) {
        let schema = all().into_iter().find(|schema| schema.name == table).unwrap();
        let at = all().iter().position(|schema| schema.name == table).unwrap();
        let packer = &mut self.packers[at];
        let position =
            |name: &str| schema.columns.iter().position(|column| column.name == name).unwrap();
        let symbols: Vec<_> = words
            .iter()
            .filter(|(column, _)| ["host", "event"].contains(column))
            .map(|(column, word)| (position(column), packer.symbol(word)))
            .collect();
        let batch = packer.batch();
        batch.begin_row(time * SECOND);
        symbols.into_iter().for_each(|(column, symbol)| batch.put_symbol(column, symbol));
        for (column, word) in words.iter().filter(|word| !["host", "event"].contains(&word.0)) {
            batch.put_text(position(column), word);
        }
        numbers.iter().for_each(|(column, number)| batch.put_u64(position(column), *number));
    }

    fn sample(&mut self, host: &str, time: i64, [pid, tid, address]: [u64; 3]) {
        let numbers = [("cpu", 0), ("pid", pid), ("tid", tid), ("address", address)];
        self.row(samples::NAME, time, &[("host", host)], &numbers);
    }

    fn thread(&mut self, host: &str, time: i64, (event, name): (&str, &str), [pid, tid]: [u64; 2]) {
        let words = [("host", host), ("event", event), ("name", name)];
        self.row(threads::NAME, time, &words, &[("pid", pid), ("tid", tid)]);
    }

    fn mapping(&mut self, host: &str, time: i64, pid: u64, path: &str) {
        let numbers = [("pid", pid), ("address", 0x1000), ("size_bytes", 0x1000)];
        let words = [("host", host), ("path", path), ("build_id", "ab")];
        self.row(mappings::NAME, time, &words, &numbers);
    }

    /// The report: name or file of each line, and its samples.
    fn report(self, by: By) -> (Report, Vec<(String, u64)>) {
        self.report_of(by, None)
    }

    /// As [`Written::report`], of a host.
    fn report_of(mut self, by: By, host: Option<&str>) -> (Report, Vec<(String, u64)>) {
        let options =
            StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
        let dir = self.directory.path();
        let mut writer = StreamWriter::open(dir, Kind::Measured, STREAM, all(), options).unwrap();
        for packer in &mut self.packers {
            if packer.batch().rows() > 0 {
                writer.packed(packer.pack().unwrap()).unwrap();
            }
        }
        writer.close().unwrap();
        let host = host.map(str::to_owned);
        let options = ReportOptions { by, from: None, until: None, pid: None, host };
        let report = report::report(&Recording::open(dir).unwrap(), &options).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let lines = report.lines.iter().map(|line| (line.name.clone(), line.own)).collect();
        (report, lines)
    }
}

fn lines(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, own)| ((*name).to_owned(), *own)).collect()
}

#[test]
fn a_thread_is_called_as_the_thread_that_began_it_whatever_order_rows_come_in() {
    let mut written = Written::new();
    // CPU 1 was read before CPU 0: what began thread 9 was named in a row behind its own.
    let words = [("host", "a"), ("event", "fork")];
    let numbers = [("pid", 7), ("tid", 9), ("parent_pid", 7), ("parent_tid", 8)];
    written.row(threads::NAME, 20, &words, &numbers);
    written.thread("a", 10, ("there", "main"), [7, 7]);
    written.thread("a", 11, ("name", "worker"), [7, 8]);
    written.thread("a", 30, ("name", "own"), [7, 9]);
    for time in [25, 26, 35] {
        written.sample("a", time, [7, 9, 0x1000]);
    }
    assert_eq!(written.report(By::Thread).1, lines(&[("worker", 2), ("own", 1)]));
}

#[test]
fn the_same_number_is_another_process_on_each_host_and_in_each_recording_that_is_continued() {
    let mut written = Written::new();
    for (host, time, name) in [("a", 10, "first"), ("b", 10, "other"), ("a", 50, "second")] {
        written.thread(host, time, ("there", name), [7, 7]);
        written.mapping(host, time, 7, &format!("/none/{name}"));
        written.sample(host, time + 1, [7, 7, 0x1800]);
    }
    // Nothing is known to be mapped there in the second recording.
    written.mapping("a", 10, 8, "/none/gone");
    written.thread("a", 50, ("there", "x"), [8, 8]);
    written.sample("a", 60, [8, 8, 0x1800]);
    let (report, found) = written.report(By::File);
    let one = |name: &str| (format!("/none/{name}"), 1);
    let expected = [one("first"), one("other"), one("second"), ("[unknown]".to_owned(), 1)];
    let sorted = |mut lines: Vec<(String, u64)>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(found), sorted(expected.to_vec()));
    assert_eq!(report.unnamed, [(Unnamed::NotMapped, 1), (Unnamed::NoFile, 3)]);
}

#[test]
fn what_a_compiler_made_is_of_the_host_and_the_recording_that_it_was_read_in() {
    let mut written = Written::new();
    for (host, end, name) in [("a", 20, "old"), ("b", 20, "other"), ("a", 60, "new")] {
        written.thread(host, end - 10, ("there", "x"), [7, 7]);
        let numbers = [("pid", 7), ("address", 0x5000), ("size_bytes", 0x10)];
        let words = [("host", host), ("name", name)];
        written.row(jit_symbols::NAME, end, &words, &numbers);
        written.sample(host, end - 5, [7, 7, 0x500f]);
        written.sample(host, end - 4, [7, 7, 0x5010]);
    }
    // Another recording goes on, and nothing was read of it yet.
    written.thread("a", 65, ("there", "x"), [7, 7]);
    written.sample("a", 70, [7, 7, 0x500f]);
    let expected = lines(&[("[unknown]", 4), ("new", 1), ("old", 1), ("other", 1)]);
    assert_eq!(written.report(By::Function).1, expected);
}

#[test]
fn addresses_of_another_kernel_are_counted_as_such_and_not_named() {
    let mut written = Written::new();
    let begin = 0xffff_ffff_8100_0000;
    let numbers = [("address", begin), ("size_bytes", 0x20_0000)];
    let words = [("host", "a"), ("path", "[kernel]"), ("build_id", "ab")];
    written.row(mappings::NAME, 10, &words, &numbers);
    written.sample("a", 11, [7, 7, begin + 16]);
    let (report, found) = written.report(By::Function);
    assert_eq!(found, lines(&[("[unknown]", 1)]));
    assert_eq!(
        (&*report.lines[0].file, &report.unnamed),
        ("[kernel]", &vec![(Unnamed::OtherKernel, 1)])
    );
}

#[test]
fn samples_of_many_hosts_are_counted_by_host_and_those_of_one_alone() {
    let both = || {
        let mut written = Written::new();
        written.thread("a", 10, ("there", "x"), [7, 7]);
        written.thread("b", 10, ("there", "y"), [7, 7]);
        for (host, time) in [("a", 11), ("b", 12), ("b", 13)] {
            written.sample(host, time, [7, 7, 0x1000]);
        }
        written
    };
    assert_eq!(both().report(By::Host).1, lines(&[("b", 2), ("a", 1)]));
    assert_eq!(both().report_of(By::Process, Some("b")).1, lines(&[("y", 2)]));
    assert_eq!(both().report_of(By::Process, Some("c")).1, lines(&[]));
}
