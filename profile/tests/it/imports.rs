//! `perf.data` files that the real `perf record` wrote, compared with what the real `perf script` says of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use meikyo_profile::STREAM;
use meikyo_profile::block;
use meikyo_profile::import::{ImportOptions, Imported, import};
use meikyo_profile::perf_data::{PerfData, PerfDataError};
use meikyo_profile::report::{self, By, Of, ReportOptions};
use meikyo_profile::tables::{all, samples};
use meikyo_profile::wanted::Wanted;
use meikyo_recording::{Kind, PackedRows, Recording, StreamOptions, StreamWriter, WhenFull};
use meikyo_units::WallTime;
use proptest::prelude::*;

use crate::may_sample;
use crate::programs::{Program, compiled};

/// What a sample is: time in ns, CPU, process, thread, address.
type Seen = (u64, u32, u32, u32, u64);

const OPTIONS: ImportOptions = ImportOptions {
    host: None,
    begin: None,
    written: WallTime::from_nanos(1_795_294_799_000_000_000),
};

/// A file of some samples; `None` where perf is not installed.
fn recorded(directory: &Path, arguments: &[&str], program: &Path) -> Option<std::path::PathBuf> {
    let path = directory.join("perf.data");
    let mut command = Command::new("perf");
    // The kernel tells build IDs: perf 6.1 can crash when it reads them itself.
    command.args(["record", "-q", "--buildid-mmap", "-e", "cpu-clock", "-F", "1000", "-o"]);
    command.arg(&path);
    command.args(arguments).arg("--").arg(program).arg("300");
    let Ok(output) = command.output() else {
        meikyo_testing::lacking("perf, which Debian has in linux-perf");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(path)
}

fn script(path: &Path, fields: &str) -> String {
    let mut command = Command::new("perf");
    command.args(["script", "--ns", "--no-inline", "-F", fields, "-i"]).arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn imported(file: &[u8]) -> (Imported, Vec<PackedRows>) {
    let mut blocks = Vec::new();
    let told = import(file, &OPTIONS, &mut |block| blocks.push(block)).unwrap();
    (told, blocks)
}

fn written(dir: &Path, blocks: Vec<PackedRows>) -> Recording {
    let options =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Measured, STREAM, all(), options).unwrap();
    blocks.into_iter().for_each(|block| writer.packed(block).unwrap());
    writer.close().unwrap();
    Recording::open(dir).unwrap()
}

/// Every sample with its time between the first and the last, CPU, process, thread and address.
#[test]
fn samples_of_a_file_of_perf_are_those_that_perf_itself_reads() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(Program::Calls).filter(|_| may_sample()) else { return };
    let program = program.path();
    for arguments in [&["-a"][..], &["-a", "-g"], &["-C", "0", "--sample-cpu"], &[]] {
        let Some(path) = recorded(directory.path(), arguments, program) else { return };
        let file = std::fs::read(&path).unwrap();
        let has_cpu = !arguments.is_empty();
        let fields = if has_cpu { "tid,pid,cpu,time,ip" } else { "tid,pid,time,ip" };
        let mut expected: Vec<Seen> = Vec::new();
        // A line: `7/8 [001] 1602.034924547: ffffffff821d11c0`; with callers it ends at the time, and the
        // instruction is the first of the lines below.
        let text = script(&path, fields);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut words = line.split_whitespace();
            let ids = words.next().and_then(|word| word.split_once('/'));
            // What it prints as -1 is the greatest number that the file can hold.
            let number = |text: &str| u32::try_from(text.parse::<i64>().ok()? & 0xffff_ffff).ok();
            let Some((pid, tid)) = ids.and_then(|(pid, tid)| Some((number(pid)?, number(tid)?)))
            else {
                continue;
            };
            let cpu = if has_cpu { words.next().unwrap().trim_matches(['[', ']']) } else { "0" };
            let (seconds, nanos) =
                words.next().unwrap().trim_end_matches(':').split_once('.').unwrap();
            let time =
                seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap();
            // A stack may be empty, of the idle process for one.
            let ip =
                words.next().or_else(|| lines.next()?.split_whitespace().next()).unwrap_or("0");
            let address = u64::from_str_radix(ip, 16).unwrap();
            expected.push((time, number(cpu).unwrap(), pid, tid, address));
        }
        let (told, blocks) = imported(&file);
        assert_eq!((told.unread, told.other_samples), (0, 0), "{arguments:?}: {told:?}");
        let mut found: Vec<Seen> = Vec::new();
        for rows in blocks.iter().filter(|rows| rows.table() == samples::NAME) {
            let block = block::read(rows).unwrap();
            let cpu = u32::try_from(block.cpu.unwrap()).unwrap();
            let seen = block
                .samples
                .iter()
                .map(|of| (of.time.cast_unsigned(), cpu, of.pid, of.tid, of.address));
            found.extend(seen);
        }
        for all in [&mut expected, &mut found] {
            if arguments.contains(&"-g") {
                // With callers perf prints offsets in files in place of addresses of programs.
                all.iter_mut().for_each(|seen| {
                    if seen.4 < 1 << 63 {
                        seen.4 = 0;
                    }
                });
            }
            all.sort_unstable();
        }
        assert!(expected.len() > 50, "{arguments:?}: {}", expected.len());
        // The clocks differ by the same span for all.
        let (first, first_found) = (expected[0].0, found[0].0);
        expected.iter_mut().for_each(|seen| seen.0 -= first);
        found.iter_mut().for_each(|seen| seen.0 -= first_found);
        if arguments.contains(&"-g") {
            // Nor does it print where the kernel was when that could not be followed to its begin.
            let printed = found.iter_mut().zip(&expected).filter(|(_, expected)| expected.4 == 0);
            printed.for_each(|(found, _)| found.4 = 0);
        }
        assert_eq!(found, expected, "{arguments:?}");
    }
}

/// The functions of the samples, as perf names them.
#[test]
fn functions_of_a_file_of_perf_are_named_as_perf_names_them() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(Program::Calls).filter(|_| may_sample()) else { return };
    let program = program.path();
    let Some(path) = recorded(directory.path(), &[], program) else { return };
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let text = script(&path, "ip,sym");
    for line in text.lines() {
        let Some((_, name)) = line.trim_start().split_once(' ') else { continue };
        *expected.entry(name.trim().to_owned()).or_default() += 1;
    }
    let (told, blocks) = imported(&std::fs::read(&path).unwrap());
    let recording = written(&directory.path().join("rec"), blocks);
    let options = ReportOptions { by: By::Function, wanted: Wanted::EVERYTHING, of: Of::Samples };
    let report = report::report(&recording, &options).unwrap();
    assert_eq!(report.samples, told.samples);
    // Symbols at the same address have several names, of which either may be taken.
    let mut agreeing = 0;
    for line in &report.lines {
        let of_perf = expected.get(&line.name).copied().unwrap_or(0);
        agreeing += line.own.min(of_perf);
    }
    let named = expected.iter().filter(|(name, _)| *name != "[unknown]").map(|(_, count)| count);
    let named: u64 = named.sum();
    assert!(
        agreeing * 100 >= named * 97,
        "{agreeing} of {named}: {expected:?}\n{:?}",
        report.lines
    );
    assert!(expected.contains_key("longer"), "{expected:?}");
}

#[test]
fn what_is_no_such_file_is_told_from_one_that_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(PerfData::open(b"PERFILE").err(), Some(PerfDataError::Foreign));
    assert_eq!(PerfData::open(b"").err(), Some(PerfDataError::Foreign));
    let piped = [&b"PERFILE2"[..], &16_u64.to_le_bytes()].concat();
    assert_eq!(PerfData::open(&piped).err(), Some(PerfDataError::Piped));
    let Some(program) = compiled(Program::Calls).filter(|_| may_sample()) else { return };
    let program = program.path();
    let Some(path) = recorded(directory.path(), &[], program) else { return };
    let file = std::fs::read(&path).unwrap();
    // Wherever it is cut it is read or refused, and no sample is made up.
    let all = imported(&file).0.samples;
    for end in (0..file.len()).step_by(97) {
        if let Ok(told) = import(&file[..end], &OPTIONS, &mut |_| ()) {
            assert!(told.samples <= all, "{end}");
        }
    }
}

proptest! {
    #[test]
    fn any_octets_behind_a_header_are_read_or_refused(
        octets in proptest::collection::vec(any::<u8>(), 0..2_000),
        words in proptest::collection::vec(0_u64..3_000, 9),
    ) {
        let mut words = words;
        words[0] = 104;
        words[1] = 80 + words[1] % 3 * 8;
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = [&b"PERFILE2"[..], &header, &octets].concat();
        if let Ok(data) = PerfData::open(&file) {
            let mut read = 0;
            drop(data.records(|_| read += 1));
            prop_assert!(read <= octets.len());
        }
    }
}
