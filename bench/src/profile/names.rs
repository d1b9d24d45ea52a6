//! Whether functions have the names that perf gives them, on the same samples: what `perf record` took of a mix of
//! programs is imported and looked up here, and `perf script` says how perf names each sample.
//!
//! Samples of perf are in the order of its rings, those of a recording by block; compared is, by address in a
//! process, what each of the two calls it. An address agrees if perf names it so, or if both have no name.
//! Symbols that lie at the same place are all right.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use meikyo_console::failure::Failure;
use meikyo_console::output::real;
use meikyo_profile::STREAM;
use meikyo_profile::export::{ExportOptions, Format, Hashing, export};
use meikyo_profile::import::{ImportOptions, import};
use meikyo_profile::tables::all;
use meikyo_profile::wanted::Wanted;
use meikyo_recording::{Kind, Recording, StreamOptions, StreamWriter, WhenFull};
use meikyo_units::{Nanos, WallTime};
use serde::Serialize;

use crate::placement::{Placement, spawn};
use crate::progress;

/// What of the samples has the same name.
#[derive(Debug, Serialize)]
pub(super) struct NamesRow {
    samples: u64,
    /// Of those that perf names.
    pub(super) agreeing_percent: f64,
    /// Of all samples in files with symbols, as perf knows them.
    pub(super) named_percent: f64,
    reach_percent: f64,
    /// What perf calls otherwise, with most samples first.
    differing: Vec<Differing>,
}

#[derive(Debug, Serialize)]
struct Differing {
    here: String,
    perf: String,
    samples: u64,
}

/// Samples of a span of some programs; `None` where perf is not installed.
pub(super) fn measured(
    line: &str,
    directory: &Path,
    span: Nanos,
) -> Result<Option<NamesRow>, Failure> {
    if Command::new("perf").arg("--version").output().is_err() {
        progress("perf is not installed (Debian package linux-perf): no names to compare with");
        return Ok(None);
    }
    progress(&format!("names beside perf, {span}"));
    let path = directory.join("names.data");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-a", "-e", "cpu-clock", "-F", "1000", "-o"]).arg(&path).arg("--");
    record.args(super::ended_after(span, line));
    let (status, _) = spawn(record, Placement::default())?.wait(span + Nanos::from_secs(120))?;
    if !path.exists() {
        return Err(Failure::new(format!("perf record ended with {status}")));
    }
    let file = std::fs::read(&path)?;
    let options = ImportOptions { host: None, begin: None, written: WallTime::now() };
    let dir = directory.join("names");
    let kept =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(&dir, Kind::Measured, STREAM, all(), kept)?;
    let mut blocks = Vec::new();
    import(&file, &options, &mut |block| blocks.push(block))?;
    for block in blocks {
        writer.packed(block)?;
    }
    writer.close()?;
    let recording = Recording::open(&dir)?;
    let mut ours = Vec::new();
    let hashing = Hashing::default();
    let options = ExportOptions { wanted: Wanted::EVERYTHING, format: Format::PerfScript, hashing };
    export(&recording, &options, &mut ours)?;
    let ours = of_paragraphs(&String::from_utf8_lossy(&ours));
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "pid,ip,sym", "-i"]).arg(&path);
    let output = script.output()?;
    let perf = of_lines(&String::from_utf8_lossy(&output.stdout));
    Ok(Some(compared(&ours, &perf)))
}

/// What names an address of a process has, and how many samples it has.
type Names = BTreeMap<(u64, u64), (BTreeSet<String>, u64)>;

fn note(names: &mut Names, pid: u64, ip: u64, name: &str) {
    let (of_address, samples) = names.entry((pid, ip)).or_default();
    of_address.insert(name.to_owned());
    *samples += 1;
}

/// The text of an export: a line with `pid/tid`, and a line with address and name below.
fn of_paragraphs(text: &str) -> Names {
    let mut names = Names::new();
    for paragraph in text.split_terminator("\n\n") {
        let mut lines = paragraph.lines();
        let ids = lines.next().and_then(|line| line.split_whitespace().nth(1));
        let pid = ids.and_then(|ids| ids.split_once('/')?.0.parse().ok());
        let frame = lines.next().and_then(|line| line.trim_start().split_once(' '));
        if let (Some(pid), Some((ip, rest))) = (pid, frame)
            && let Ok(ip) = u64::from_str_radix(ip, 16)
        {
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            note(&mut names, pid, ip, name);
        }
    }
    names
}

/// What perf prints: process, address and name in a line.
fn of_lines(text: &str) -> Names {
    let mut names = Names::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok());
        let ip = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        if let (Some(pid), Some(ip)) = (pid, ip) {
            note(&mut names, pid, ip, &words.collect::<Vec<_>>().join(" "));
        }
    }
    names
}

/// Whether both name the same function: perf leaves out parameters and what a function returns.
fn is_same(here: &str, perf: &str) -> bool {
    let squeezed = |name: &str| name.replace(' ', "");
    let plain = |name: &str| {
        // A function of a trait says whose it is first, and has no shorter name.
        if name.starts_with('<') {
            return String::new();
        }
        let name = name.replace("(anonymous namespace)", "{anonymous}");
        let end = name.find(['(', '<']).filter(|&end| end > 0).unwrap_or(name.len());
        name[..end].rsplit(' ').next().unwrap_or_default().to_owned()
    };
    here == perf
        || squeezed(here).contains(&squeezed(perf))
        || (!plain(perf).is_empty() && plain(here) == plain(perf))
}

fn compared(ours: &Names, perf: &Names) -> NamesRow {
    let is_named = |name: &&String| !name.is_empty() && *name != "[unknown]";
    let (mut samples, mut named_by_perf, mut agreeing, mut named_here) = (0, 0, 0, 0);
    let mut differing: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (address, (of_perf, count)) in perf {
        samples += count;
        let Some(perf_name) = of_perf.iter().find(is_named) else { continue };
        named_by_perf += count;
        let here = ours.get(address).and_then(|(names, _)| names.iter().find(is_named));
        named_here += if here.is_some() { *count } else { 0 };
        let agrees = |here: &String| of_perf.iter().any(|name| is_same(here, name));
        if here.is_some_and(agrees) {
            agreeing += count;
        } else {
            let here = here.map_or("[unknown]", String::as_str).to_owned();
            *differing.entry((here, perf_name.clone())).or_default() += count;
        }
    }
    let percent = |part: u64| 100.0 * real(part) / real(named_by_perf.max(1));
    let mut differing: Vec<_> = differing
        .into_iter()
        .map(|((here, perf), samples)| Differing { here, perf, samples })
        .collect();
    differing.sort_by_key(|of| std::cmp::Reverse(of.samples));
    differing.truncate(10);
    NamesRow {
        samples,
        agreeing_percent: percent(agreeing),
        named_percent: percent(named_here),
        reach_percent: 99.0,
        differing,
    }
}

/// The row for people.
pub(super) fn text(row: &NamesRow) -> String {
    let NamesRow { samples, agreeing_percent, named_percent, reach_percent, differing } = row;
    let mut text = format!(
        "of {samples} samples those that perf names are called the same here by {agreeing_percent:.2} %, and named by \
         {named_percent:.2} % (aim {reach_percent} %)\n"
    );
    for Differing { here, perf, samples } in differing {
        text += &format!("  {samples} samples: `{here}` here, `{perf}` there\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_the_same_with_and_without_parameters() {
        assert!(is_same("void f<int>(int, char)", "f<int>") && is_same("a::b(int)", "a::b"));
        assert!(is_same("(anonymous namespace)::X::y(int)", "(anonymous namespace)::X::y"));
        assert!(!is_same("(anonymous namespace)::X::z(int)", "(anonymous namespace)::X::y"));
        assert!(!is_same("<A as B>::f", "<C as B>::f") && !is_same("[unknown]", "f"));
    }

    #[test]
    fn names_are_compared_by_address_and_process() {
        let ours = of_paragraphs(
            "sh 7/7 [000] 1.000: 1 cpu-clock: \n\t            10 f (a)\n\nsh 7/7 [000] 2.000: 1 \
             cpu-clock: \n\t            20 [unknown] (a)\n\nsh 8/8 [001] 2.000: 1 cpu-clock: \n\t    10 g (b)\n\n",
        );
        let perf = of_lines("  7  10 f\n  7  20 h\n  8  10 f\n  8  30 [unknown]\n  7  10 f\n");
        let row = compared(&ours, &perf);
        assert_eq!((row.samples, row.differing.len()), (5, 2));
        assert!(
            (row.agreeing_percent - 50.0).abs() < 1e-9 && (row.named_percent - 75.0).abs() < 1e-9
        );
    }
}
