//! What a writer does when its files are taken away.

use std::fs;
use std::time::Duration;

use super::super::*;
use super::{options, put, rows_in_log, wait_for};
use crate::layout;

/// The incidents of a writer until one of `kind` is among them.
fn incidents_until(writer: &StreamWriter, kind: IncidentKind) -> Vec<Incident> {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let mut all = Vec::new();
    for _ in 0..1_000 {
        all.extend(writer.shared.take_incidents());
        if all.iter().any(|incident| incident.kind == kind) {
            return all;
        }
        // A receive that times out is a sleep that ends early when the sender goes.
        assert!(receiver.recv_timeout(Duration::from_millis(10)).is_err());
    }
    drop(sender);
    panic!("nothing was told within 10 s: {all:?}");
}

/// Submits rows with the values from `first` on and waits until they are written.
fn write(writer: &mut StreamWriter, first: u64, count: u64) -> Kept {
    for value in first..first + count {
        put(writer, 1_000_000_000_000 + value.cast_signed(), value);
    }
    writer.mark(first);
    wait_for(writer, first)
}

fn values(dir: &Path) -> Vec<u64> {
    rows_in_log(dir).into_iter().map(|(_, _, text)| text.parse().unwrap()).collect()
}

fn simulated(dir: &Path, options: StreamOptions) -> StreamWriter {
    StreamWriter::open(dir, Kind::Simulated, "s", super::tables(), options).unwrap()
}

#[test]
fn a_recording_that_is_removed_is_told_and_begun_anew_and_every_row_is_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("a/recording");
    let mut writer = simulated(&dir, options());
    assert_eq!(write(&mut writer, 0, 5).lost_rows, 0);
    fs::remove_dir_all(scratch.path().join("a")).unwrap();
    let told = incidents_until(&writer, IncidentKind::Renewed);
    let removed = told.iter().find(|told| told.kind == IncidentKind::Removed).unwrap();
    assert_eq!(removed.rows, 5, "{}", removed.text);
    for part in [dir.to_str().unwrap(), "was removed"] {
        assert!(removed.text.contains(part), "{}", removed.text);
    }
    let counters = writer.counters();
    assert_eq!((counters.rows_kept, counters.rows_dropped), (0, 5));
    // What is counted as lost is also said by the mark that follows.
    assert_eq!(write(&mut writer, 100, 7).lost_rows, 5);
    assert_eq!(write(&mut writer, 200, 1).lost_rows, 0);
    let counters = writer.counters();
    assert_eq!((counters.rows_kept, counters.rows_dropped), (8, 5));
    assert_eq!(values(&dir), (100..107).chain([200]).collect::<Vec<_>>());
    // The new one is a recording as any other, and locked.
    let second = StreamWriter::open(&dir, Kind::Simulated, "s", super::tables(), options());
    assert!(second.unwrap_err().to_string().contains("already has a writer"));
    writer.close().unwrap();
    assert_eq!(crate::format::read(&dir).unwrap().kind, Kind::Simulated);
}

#[test]
fn without_renewal_rows_are_dropped_and_counted_until_the_recording_is_back() {
    let scratch = tempfile::tempdir().unwrap();
    let [dir, aside] = ["recording", "aside"].map(|name| scratch.path().join(name));
    let options = StreamOptions { when_removed: WhenRemoved::Drop, ..options() };
    let mut writer = simulated(&dir, options);
    write(&mut writer, 0, 5);
    fs::rename(&dir, &aside).unwrap();
    let told = incidents_until(&writer, IncidentKind::Removed);
    // What was written is still in it.
    assert!(told.iter().any(|told| told.text.contains("was moved away") && told.rows == 0));
    assert_eq!(write(&mut writer, 100, 7).lost_rows, 7);
    assert!(!dir.exists());
    fs::rename(&aside, &dir).unwrap();
    let kept = (0..1_000).find(|round| write(&mut writer, 1_000 + round, 1).lost_rows == 0);
    let kept = 1_000 + kept.unwrap();
    let counters = writer.counters();
    assert_eq!((counters.rows_kept, counters.rows_dropped), (6, 7 + kept - 1_000));
    assert_eq!(values(&dir), [0, 1, 2, 3, 4, kept]);
    writer.close().unwrap();
}

#[test]
fn a_segment_that_is_removed_alone_is_told_and_the_next_one_begun() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = simulated(dir.path(), options());
    write(&mut writer, 0, 5);
    let stream = layout::stream_dir(dir.path(), "s");
    let (_, segment) = layout::segments_of(&stream).unwrap().remove(0);
    fs::remove_file(&segment).unwrap();
    let told = incidents_until(&writer, IncidentKind::Removed);
    let text = &told[0].text;
    assert!(told[0].rows == 5 && text.contains(segment.to_str().unwrap()), "{text}");
    assert_eq!(write(&mut writer, 100, 3).lost_rows, 5);
    let counters = writer.counters();
    assert_eq!((counters.rows_kept, counters.rows_dropped), (3, 5));
    assert_eq!(values(dir.path()), [100, 101, 102]);
    writer.close().unwrap();
}

#[test]
fn a_writer_that_ends_without_its_recording_does_not_say_that_rows_are_in_the_log() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("recording");
    let options = StreamOptions { compact: true, when_removed: WhenRemoved::Drop, ..options() };
    let mut writer = simulated(&dir, options);
    write(&mut writer, 0, 5);
    fs::remove_dir_all(&dir).unwrap();
    let counters = writer.close().unwrap().counters;
    assert_eq!((counters.rows_kept, counters.rows_dropped), (0, 5));
}

#[test]
fn a_step_of_the_clock_begins_one_segment_whatever_is_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = simulated(dir.path(), options());
    let span = i64::try_from(options().segment_span.get()).unwrap();
    let mut value = 0_u64;
    let mut rows = |writer: &mut StreamWriter, slots: [i64; 2]| {
        // Answers to requests of before the step come among those of after it.
        for slot in slots.into_iter().cycle().take(40) {
            put(writer, slot * span + value.cast_signed(), value);
            value += 1;
        }
    };
    rows(&mut writer, [1_000, 1_000]);
    rows(&mut writer, [994, 1_000]);
    rows(&mut writer, [994, 994]);
    rows(&mut writer, [1_200, 994]);
    writer.close().unwrap();
    assert_eq!(values(dir.path()).len(), 160);
    let segments = layout::segments_of(&layout::stream_dir(dir.path(), "s")).unwrap();
    assert_eq!(segments.len(), 3);
}
