//! Damaged recordings: every answer of every reader is that of the whole recording, or what is wrong
//! is told. No reader panics, and none hangs.
//!
//! The short form runs with the other tests. `./x soak damage --for 60min` goes on for longer; the
//! seed of each damage is printed when an answer is wrong, and `MEIKYO_SOAK_SEED` repeats it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage {
    pub(crate) mod answers;
    pub(crate) mod harm;
    pub(crate) mod made;
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use arrow::array::AsArray as _;
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use damage::answers::{Answers, answers};
use damage::harm::{Random, fifo, harm};
use damage::made::{ages_apart, append, make, name_of, names_in_turn};
use meikyo_recording::{Recording, Selection, check, compact, inventory};
use meikyo_testing::files::copy_tree;

/// How long all readers together may take for one damaged recording.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the short form goes on.
const SHORT: Duration = Duration::from_secs(12);

#[test]
fn every_damage_is_told_or_harmless() {
    let seconds = std::env::var("MEIKYO_SOAK_SECONDS").ok().map(|text| text.parse().unwrap());
    let lasting = seconds.map_or(SHORT, Duration::from_secs);
    let only: Option<u64> =
        std::env::var("MEIKYO_SOAK_SEED").ok().map(|seed| seed.parse().unwrap());
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    make(&whole);
    let expected = answers(&whole);
    assert!(expected.is_whole(), "the whole recording: {expected:#?}");
    assert!(expected.rows() > 1_000);
    let begin = now();
    let (mut seed, mut told, mut harmless) = (only.unwrap_or(1), 0_u64, 0_u64);
    loop {
        let damaged = base.path().join("damaged");
        copy_tree(&whole, &damaged).unwrap();
        let what = harm(&damaged, &mut Random::new(seed));
        let found = answers_in_time(&damaged, seed, &what);
        match judge(&expected, &found) {
            Ok(true) => harmless += 1,
            Ok(false) => told += 1,
            Err(error) => panic!("MEIKYO_SOAK_SEED={seed}: {what:?}: {error}"),
        }
        std::fs::remove_dir_all(&damaged).unwrap();
        if only.is_some() || now().duration_since(begin) > lasting {
            break;
        }
        seed += 1;
    }
    tell(&format!("{seed} damages: {told} told, {harmless} changed no answer"));
}

#[expect(clippy::print_stdout, reason = "what a long run has shown")]
fn tell(text: &str) {
    println!("{text}");
}

/// Whether no answer has changed; wrong answers that nobody tells of are errors.
fn judge(expected: &Answers, found: &Answers) -> Result<bool, String> {
    for (name, expected) in &expected.answers {
        let answer = &found.answers[name];
        if answer.text != expected.text && !answer.told {
            return Err(format!("`{name}` is wrong, and nobody is told"));
        }
        // What a reader of rows tells, `check` must tell, too.
        if answer.told && !found.answers["check"].told {
            return Err(format!("`{name}` tells of damage, and `check` does not"));
        }
        if answer.text != expected.text && !found.answers["check"].told {
            return Err(format!("`{name}` is wrong, and `check` says whole"));
        }
    }
    Ok(!found.answers.values().any(|answer| answer.told))
}

fn answers_in_time(dir: &Path, seed: u64, what: &[String]) -> Answers {
    let (sender, receiver) = channel();
    let dir = dir.to_path_buf();
    std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| answers(&dir)));
        drop(sender.send(result));
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => panic!("MEIKYO_SOAK_SEED={seed}: {what:?}: a reader panicked"),
        Err(_) => panic!("MEIKYO_SOAK_SEED={seed}: {what:?}: a reader hangs"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the run ends after a time of the clock on the wall")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn notes_of_a_stream_that_cannot_be_read_are_told() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    make(&whole);
    for name in ["manifest", "progress"] {
        let dir = base.path().join(name);
        copy_tree(&whole, &dir).unwrap();
        let notes = dir.join("log/a").join(name);
        std::fs::remove_file(&notes).unwrap();
        std::fs::create_dir(&notes).unwrap();
        let found = answers_in_time(&dir, 0, &[format!("make a directory of {name}")]);
        for (reader, answer) in &found.answers {
            // What tables there are is noted elsewhere, and none of this stream has alerts.
            let needs_no_notes = matches!(&**reader, "tables" | "alerts");
            assert!(answer.told || needs_no_notes, "{name}: `{reader}` says nothing");
        }
        let told = check::check(&dir).unwrap().damage;
        let of_notes: Vec<_> = told.iter().filter(|problem| problem.path == notes).collect();
        assert_eq!(of_notes.len(), 1, "{told:?}");
        // It is there: who looks for it must not be told that it is missing.
        assert!(of_notes[0].what.contains("no regular file"), "{told:?}");
    }
}

#[test]
fn unreadable_progress_of_a_stream_without_rows_is_told() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("whole");
    make(&dir);
    let progress = dir.join("log/c/progress");
    std::fs::create_dir_all(&progress).unwrap();
    let told = check::check(&dir).unwrap().damage;
    assert!(told.iter().any(|problem| problem.path == progress), "{told:?}");
}

#[test]
fn a_damaged_line_of_a_manifest_is_told_to_whom_its_files_concern() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("whole");
    make(&dir);
    let manifest = dir.join("log/a/manifest");
    let mut octets = std::fs::read(&manifest).unwrap();
    let of_last_line = octets.len() - 10;
    octets[of_last_line] ^= 1;
    std::fs::write(&manifest, octets).unwrap();
    let recording = Recording::open(&dir).unwrap();
    let mut scan = recording.scan(&Selection::all("interfaces")).unwrap();
    assert!(scan.by_ref().all(|batch| batch.is_ok()));
    let is_told =
        |path: &Path, what: &str| path == manifest && what.contains("1 lines are damaged");
    assert!(scan.problems().iter().any(|problem| is_told(&problem.path, &problem.what)));
    let checked = check::check(&dir).unwrap().damage;
    assert!(checked.iter().any(|damage| is_told(&damage.path, &damage.what)), "{checked:?}");
}

#[test]
fn a_part_of_a_segment_that_was_compacted_is_left_out_and_told() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("whole");
    append(&dir, "a", false);
    let log = dir.join("log/a");
    let segment = std::fs::read(log.join("0000000001.log")).unwrap();
    append(&dir, "a", true);
    assert!(!log.join("0000000001.log").exists(), "it was not compacted");
    let expected = answers(&dir);
    assert!(expected.is_whole(), "{expected:#?}");
    // Its frames from the third on, as a copy of the log would have them that was begun anew there.
    let begins: Vec<_> = segment.windows(4).enumerate().filter(|(_, at)| at == b"MKYF").collect();
    let part = &segment[begins[2].0..];
    let sequence = u64::from_le_bytes(part[16..24].try_into().unwrap());
    let path = log.join(format!("{sequence:010}.log"));
    std::fs::write(&path, part).unwrap();
    let found = answers(&dir);
    for (reader, answer) in &found.answers {
        let rows_are_told = !matches!(&**reader, "info" | "check");
        assert!(!rows_are_told || answer.text == expected.answers[reader].text, "`{reader}`");
    }
    assert_eq!(judge(&expected, &found), Ok(false));
    let told = check::check(&dir).unwrap().damage;
    assert!(told.iter().any(|problem| problem.path == path), "{told:?}");
}

/// The frames of a segment, as docs/recording-format.md describes them.
fn frames_of(mut segment: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((header, behind)) = segment.split_at_checked(56) {
        let length = u32::from_le_bytes(header[4..8].try_into().unwrap());
        let (payload, behind) = behind.split_at(usize::try_from(length).unwrap());
        frames.push((header.to_vec(), payload.to_vec()));
        segment = behind;
    }
    frames
}

/// A segment of frames whose checksums are right, whatever they hold.
fn sealed(frames: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut segment = Vec::new();
    for (header, payload) in frames {
        let mut header = header.clone();
        header[40..44].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        let crc = crc32fast::hash(&header[..52]);
        header[52..].copy_from_slice(&crc.to_le_bytes());
        segment.extend_from_slice(&header);
        segment.extend_from_slice(payload);
    }
    segment
}

/// Header and payload.
type Frame = (Vec<u8>, Vec<u8>);

/// A recording in the log alone, its first segment, and the frames of that.
fn logged(dir: &Path) -> (PathBuf, Vec<Frame>) {
    append(dir, "a", false);
    let segment = dir.join("log/a/0000000001.log");
    let frames = frames_of(&std::fs::read(&segment).unwrap());
    (segment, frames)
}

#[test]
fn senseless_frames_with_right_checksums_are_told_and_the_remedy_for_them_works() {
    // Symbols and rows, by their codecs.
    for codec in [1, 2] {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("recording");
        let (segment, mut frames) = logged(&dir);
        let whole = answers(&dir);
        let of_kind = |frame: &&mut (Vec<u8>, Vec<u8>)| frame.0[8] == codec;
        let (_, payload) = frames.iter_mut().find(of_kind).unwrap();
        payload.fill(0xff);
        std::fs::write(&segment, sealed(&frames)).unwrap();
        let found = answers_in_time(&dir, 0, &[format!("codec {codec}")]);
        assert_eq!(judge(&whole, &found), Ok(false), "codec {codec}");
        let told = check::check(&dir).unwrap().damage;
        assert!(told.iter().any(|problem| problem.path == segment), "{told:?}");
        // What `meikyo recording check` says to do.
        compact::compact_recording(&dir).unwrap();
        assert!(!segment.exists(), "it was compacted");
        let after = answers(&dir);
        for reader in ["interfaces Readings", "polls Readings", "a part"] {
            // Where texts are lost, rows stay and lack their names.
            let rows = |answers: &Answers| answers.answers[reader].text.lines().count();
            assert_eq!(rows(&after), rows(&found), "codec {codec}: `{reader}`");
            assert!(after.answers[reader].told, "codec {codec}: `{reader}`");
        }
        assert!(after.rows() > 0, "codec {codec}");
    }
}

#[test]
fn no_frame_with_a_right_checksum_makes_a_reader_or_compaction_panic_or_hang() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    let (_, frames) = logged(&whole);
    for seed in 1..=40 {
        let dir = base.path().join("damaged");
        copy_tree(&whole, &dir).unwrap();
        let mut random = Random::new(seed);
        let mut frames = frames.clone();
        // The head says what the others are.
        let frame = 1 + random.below(frames.len() - 1);
        for _ in 0..=random.below(4) {
            let payload = &mut frames[frame].1;
            let at = random.below(payload.len());
            payload[at] = [0, 0xff, 0x7f, payload[at] ^ 1 << random.below(8)][random.below(4)];
        }
        std::fs::write(dir.join("log/a/0000000001.log"), sealed(&frames)).unwrap();
        let what = [format!("other octets in frame {frame}")];
        answers_in_time(&dir, seed, &what);
        compact::compact_recording(&dir).unwrap();
        answers_in_time(&dir, seed, &what);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// The name and the number of each row of a recording of [`names_in_turn`], and whether anything is
/// told.
fn names_of(dir: &Path) -> (Vec<(Option<String>, u64)>, bool) {
    let recording = Recording::open(dir).unwrap();
    let mut scan = recording.scan(&Selection::all("numbers")).unwrap();
    let mut found = Vec::new();
    for batch in &mut scan {
        let batch = batch.unwrap();
        let names = cast(batch.column_by_name("device").unwrap(), &DataType::Utf8).unwrap();
        let names = names.as_string::<i32>();
        let numbers = batch.column_by_name("number").unwrap().as_primitive::<UInt64Type>();
        found.extend(
            names.iter().zip(numbers).map(|(name, of)| (name.map(str::to_owned), of.unwrap())),
        );
    }
    (found, !scan.problems().is_empty())
}

#[test]
fn no_senseless_frame_of_symbols_gives_a_row_the_name_of_another() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    names_in_turn(&whole);
    let segment = Path::new("log/a/0000000001.log");
    let frames = frames_of(&std::fs::read(whole.join(segment)).unwrap());
    let (rows, told) = names_of(&whole);
    assert!(!told && rows.iter().all(|(name, number)| *name == Some(name_of(*number))));
    let of_symbols = frames.iter().enumerate().filter(|(_, frame)| frame.0[8] == 1);
    let of_symbols: Vec<_> = of_symbols.map(|(at, _)| at).collect();
    assert!(of_symbols.len() > 3, "{of_symbols:?}");
    let mut unnamed = 0;
    for (order, &frame) in of_symbols[..3].iter().enumerate() {
        // The number of the first one, and of each how long its text is; the texts themselves are
        // whatever somebody wrote.
        for (at, to) in (0..8).flat_map(|at| [0, 1, 2, 3, 5, 0xff].map(|to| (at, to))) {
            let mut frames = frames.clone();
            if frames[frame].1[at] == to {
                continue;
            }
            frames[frame].1[at] = to;
            let dir = base.path().join("damaged");
            copy_tree(&whole, &dir).unwrap();
            std::fs::write(dir.join(segment), sealed(&frames)).unwrap();
            for state in ["in the log", "compacted"] {
                let what = format!("octet {at} of frame {frame} is {to}, {state}");
                let (found, told) = names_of(&dir);
                assert!(told && found.len() == rows.len(), "{what}");
                for (name, number) in found {
                    unnamed += usize::from(name.is_none());
                    // The others keep theirs.
                    let is_named_by = order as u64 + 1 == number;
                    assert!(name.is_some() || is_named_by, "{what}: {number}");
                    assert!(name.is_none_or(|name| name == name_of(number)), "{what}: {number}");
                }
                assert!(!check::check(&dir).unwrap().damage.is_empty(), "{what}");
                compact::compact_recording(&dir).unwrap();
            }
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
    assert!(unnamed > 0);
}

#[test]
fn rows_that_are_ages_apart_are_read_and_compacted_like_all_others() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("recording");
    let rows = ages_apart(&dir);
    let whole = answers_in_time(&dir, 0, &["write rows that are ages apart".into()]);
    // There are no summaries yet.
    let has_rows = |reader: &str| !reader.contains("summary");
    assert!(whole.answers.iter().all(|(of, answer)| !has_rows(of) || !answer.told), "{whole:#?}");
    let compacted = compact::compact_recording(&dir).unwrap();
    assert!(
        matches!(&compacted[..], [(_, compact::StreamOutcome::Compacted(made, 1))] if made.rows == rows),
        "{compacted:?}"
    );
    let after = answers_in_time(&dir, 0, &["compact them".into()]);
    assert!(after.is_whole(), "{after:#?}");
    let of_rows = |reader: &str| reader.starts_with("polls ") || reader.starts_with("interfaces ");
    for (reader, answer) in whole.answers.iter().filter(|(reader, _)| of_rows(reader)) {
        assert_eq!(after.answers[reader].text, answer.text, "`{reader}`");
    }
    // Each in the hour that it lies in.
    let mut dates: Vec<_> = std::fs::read_dir(dir.join("polls"))
        .unwrap()
        .map(|date| date.unwrap().file_name().into_string().unwrap())
        .collect();
    dates.sort();
    assert_eq!(dates, ["date=1970-01-01", "date=2026-11-21", "date=2250-01-01"]);
}

#[test]
fn rows_of_another_time_than_their_frame_says_are_left_out_and_told() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    let (segment, frames) = logged(&whole);
    let expected = answers(&whole);
    // The least and the greatest time of the rows.
    for field in [24..32, 32..40] {
        let mut frames = frames.clone();
        let rows = frames.iter_mut().filter(|frame| frame.0[8] == 2).nth(3).unwrap();
        let time = i64::from_le_bytes(rows.0[field.clone()].try_into().unwrap());
        let other = if field.start == 24 { time + 1 } else { time - 1 };
        rows.0[field].copy_from_slice(&other.to_le_bytes());
        let dir = base.path().join("damaged");
        copy_tree(&whole, &dir).unwrap();
        let segment = dir.join(segment.strip_prefix(&whole).unwrap());
        std::fs::write(&segment, sealed(&frames)).unwrap();
        let found = answers(&dir);
        assert_eq!(judge(&expected, &found), Ok(false));
        compact::compact_recording(&dir).unwrap();
        assert!(segment.with_extension("log.damaged").exists(), "somebody may rescue it");
        let after = answers(&dir);
        for reader in ["interfaces Readings", "polls Readings"] {
            assert_eq!(after.answers[reader].text, found.answers[reader].text, "`{reader}`");
            assert!(after.answers[reader].told, "`{reader}`");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_manifest_that_is_gone_is_told_once_and_not_by_each_of_its_files() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("whole");
    make(&dir);
    let manifest = dir.join("log/a/manifest");
    std::fs::remove_file(&manifest).unwrap();
    let report = check::check(&dir).unwrap();
    let of_files: Vec<_> = report
        .damage
        .iter()
        .filter(|damage| damage.path.extension().is_some_and(|of| of == "parquet"))
        .collect();
    assert!(of_files.is_empty(), "{of_files:?}");
    let told: Vec<_> = report.damage.iter().filter(|damage| damage.path == manifest).collect();
    let is_missing = |what: &str| what.starts_with("it is missing: ");
    assert!(matches!(&told[..], [damage] if is_missing(&damage.what)), "{told:?}");
    assert_eq!(report.unverified_files, 0, "no earlier version wrote them");
}

/// What is done to a recording, in words and as a function of its directory.
type Harm = (&'static str, fn(&Path));

/// What is done to a recording as [`make`] makes it: to its files below a stream, and to segments.
fn harms() -> Vec<Harm> {
    fn log(dir: &Path, name: &str) -> PathBuf {
        dir.join("log/a").join(name)
    }
    fn segments(dir: &Path) -> Vec<PathBuf> {
        let found = std::fs::read_dir(dir.join("log/a")).unwrap().map(|of| of.unwrap().path());
        let mut found: Vec<_> =
            found.filter(|path| path.extension().is_some_and(|of| of == "log")).collect();
        found.sort();
        assert_eq!(found.len(), 3, "{found:?}");
        found
    }
    fn fifo_of(path: &Path) {
        std::fs::remove_file(path).unwrap();
        fifo(path);
    }
    fn rewrite(segment: &Path, change: impl FnOnce(&mut Vec<Frame>)) {
        let mut frames = frames_of(&std::fs::read(segment).unwrap());
        change(&mut frames);
        std::fs::write(segment, sealed(&frames)).unwrap();
    }
    vec![
        ("remove the progress", |dir| std::fs::remove_file(log(dir, "progress")).unwrap()),
        ("remove the first segment", |dir| std::fs::remove_file(&segments(dir)[0]).unwrap()),
        ("remove the middle segment", |dir| std::fs::remove_file(&segments(dir)[1]).unwrap()),
        ("remove the last segment", |dir| std::fs::remove_file(&segments(dir)[2]).unwrap()),
        ("remove all segments", |dir| {
            segments(dir).iter().for_each(|segment| std::fs::remove_file(segment).unwrap());
        }),
        ("give a segment another number", |dir| {
            std::fs::rename(&segments(dir)[2], log(dir, "0000900000.log")).unwrap();
        }),
        ("leave out a frame", |dir| rewrite(&segments(dir)[1], |frames| drop(frames.remove(20)))),
        ("repeat a frame", |dir| {
            rewrite(&segments(dir)[1], |frames| frames.insert(20, frames[20].clone()));
        }),
        ("leave out the last frames", |dir| {
            rewrite(&segments(dir)[2], |frames| frames.truncate(frames.len() - 5));
        }),
        ("make a FIFO of a segment", |dir| fifo_of(&segments(dir)[1])),
        ("make a FIFO of a file", |dir| fifo_of(&files_of(dir, "interfaces")[0])),
        ("make a FIFO of the manifest", |dir| fifo_of(&log(dir, "manifest"))),
        ("make a FIFO of the progress", |dir| fifo_of(&log(dir, "progress"))),
    ]
}

#[test]
fn whatever_is_missing_or_in_the_wrong_place_is_told_by_whoever_reads_rows() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    make(&whole);
    let expected = answers(&whole);
    for (what, harm) in harms() {
        let dir = base.path().join("damaged");
        copy_tree(&whole, &dir).unwrap();
        harm(&dir);
        let found = answers_in_time(&dir, 0, &[what.into()]);
        assert_eq!(judge(&expected, &found), Ok(false), "{what}");
        for reader in ["check", "info", "interfaces Readings", "polls Readings"] {
            let of_file = what == "make a FIFO of a file" && reader == "polls Readings";
            assert!(found.answers[reader].told || of_file, "{what}: `{reader}` says nothing");
        }
        if what == "repeat a frame" {
            let rows = |answers: &Answers| answers.answers["interfaces Readings"].text.clone();
            assert_eq!(rows(&found), rows(&expected), "no row counts twice");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// The rows that version 0.1.0 itself reads of what it wrote.
const ROWS_OF_0_1_0: [(&str, usize); 4] =
    [("load", 1796), ("polls", 1798), ("intervals", 899), ("load.summary", 208)];

fn written_by_0_1_0(to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damage/written_by_0.1.0");
    copy_tree(&from, to).unwrap();
    // Repositories do not keep empty files with care.
    std::fs::write(to.join("log/snmp/lock"), "").unwrap();
}

#[test]
fn what_an_earlier_version_wrote_is_read_and_counted_as_unverified() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("old");
    written_by_0_1_0(&dir);
    let report = check::check(&dir).unwrap();
    assert_eq!(report.damage, []);
    assert!(report.unverified_files > 0 && report.unverified_files == report.files);
    let found = inventory::inventory(&dir).unwrap();
    assert_eq!((found.problems, found.unverified_files), (Vec::new(), report.files));
    let recording = Recording::open(&dir).unwrap();
    for (table, rows) in ROWS_OF_0_1_0 {
        let mut scan = recording.scan(&Selection::all(table)).unwrap();
        let found: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!((found, scan.problems()), (rows, &[][..]), "{table}");
    }
}

/// The Parquet files of a table, by name.
fn files_of(dir: &Path, table: &str) -> Vec<PathBuf> {
    let (mut found, mut within) = (Vec::new(), vec![dir.join(table)]);
    while let Some(path) = within.pop() {
        if path.is_dir() {
            within.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn files_without_a_manifest_that_stand_in_the_wrong_place_are_left_out_and_told() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("old");
    let told = |path: &Path, what: &str| {
        let [checked, listed] = [
            check::check(&dir).unwrap().damage.into_iter().map(|of| (of.path, of.what)).collect(),
            inventory::inventory(&dir)
                .unwrap()
                .problems
                .into_iter()
                .map(|of| (of.path, of.what))
                .collect::<Vec<_>>(),
        ];
        for problems in [checked, listed] {
            let is_told = problems.iter().any(|(at, why)| at == path && why.contains(what));
            assert!(is_told, "{what}: {problems:?}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    };
    written_by_0_1_0(&dir);
    let [load, polls] = ["load", "polls"].map(|table| files_of(&dir, table).remove(0));
    std::fs::copy(&polls, &load).unwrap();
    told(&load, "its table is `polls`");
    // Under the numbers of other frames, and of another stream.
    for (name, what) in [("snmp-900001-900002", "`meikyo.first`"), ("other-1-2", "`meikyo.stream`")]
    {
        written_by_0_1_0(&dir);
        let load = files_of(&dir, "load").remove(0);
        let moved = load.with_file_name(format!("{name}.parquet"));
        std::fs::rename(&load, &moved).unwrap();
        told(&moved, what);
    }
    written_by_0_1_0(&dir);
    let load = files_of(&dir, "load").remove(0);
    let name = load.file_stem().unwrap().to_str().unwrap().to_owned();
    let [first, last] = [1, 2].map(|at| name.split('-').nth(at).unwrap().parse::<u64>().unwrap());
    let again = load.with_file_name(format!("snmp-{}-{last}.parquet", first + 1));
    std::fs::copy(&load, &again).unwrap();
    told(&again, "overlaps");
}

#[test]
fn every_octet_behind_the_pages_has_a_checksum_that_every_reader_compares() {
    let base = tempfile::tempdir().unwrap();
    let whole = base.path().join("whole");
    append(&whole, "a", true);
    let file = files_of(&whole, "interfaces").remove(0);
    let octets = std::fs::read(&file).unwrap();
    let dir = base.path().join("damaged");
    copy_tree(&whole, &dir).unwrap();
    let file = dir.join(file.strip_prefix(&whole).unwrap());
    let end = octets.len();
    let footer = u32::from_le_bytes(octets[end - 8..end - 4].try_into().unwrap());
    let footer = usize::try_from(footer).unwrap();
    let told = |what: &str| {
        let recording = Recording::open(&dir).unwrap();
        let mut scan = recording.scan(&Selection::all("interfaces")).unwrap();
        assert!(scan.by_ref().all(|batch| batch.is_ok()));
        let listed = inventory::inventory(&dir).unwrap().problems;
        for problems in [scan.problems(), &listed] {
            let is_told = problems.iter().any(|of| of.path == file && of.what.contains(what));
            assert!(is_told, "{what}: {problems:?}");
        }
    };
    for at in (end - 8 - footer..end).step_by(footer / 40) {
        let mut changed = octets.clone();
        changed[at] ^= 1;
        std::fs::write(&file, changed).unwrap();
        told("it does not have its checksum");
    }
    std::fs::write(&file, [&octets[..], b"more"].concat()).unwrap();
    told("octets, and ");
}

#[test]
fn a_writer_goes_on_with_what_an_earlier_version_wrote() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("old");
    written_by_0_1_0(&dir);
    let before = check::check(&dir).unwrap();
    append(&dir, "snmp", false);
    let report = check::check(&dir).unwrap();
    assert_eq!(report.damage, [], "rows in the log");
    assert!(report.rows > before.rows);
    append(&dir, "snmp", true);
    let report = check::check(&dir).unwrap();
    assert_eq!(report.damage, [], "compacted");
    assert_eq!(report.unverified_files, before.unverified_files);
    assert!(report.files > before.files);
}

#[test]
fn no_damage_of_an_earlier_recording_makes_a_reader_panic_or_hang() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("old");
    for seed in 1..=40 {
        written_by_0_1_0(&dir);
        let what = harm(&dir, &mut Random::new(seed));
        answers_in_time(&dir, seed, &what);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
