//! Disks that are full, directories that cannot be written.

use std::fs;
use std::path::Path;
use std::process::Command;

use meikyo_recording::{IncidentKind, Kind, StreamOptions, StreamWriter, WhenFull, layout};

use super::rows::{self, read};

fn options() -> StreamOptions {
    StreamOptions { when_full: WhenFull::Wait, compact: false, ..StreamOptions::COLLECTOR }
}

/// Starts this binary with a role in a mount namespace of its own, on a tmpfs of 2 MiB.
///
/// `false`, with the reason printed, where the machine does not allow that.
fn on_a_small_disk(role: &str, before: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=2m meikyo '{}'", dir.path().display());
    let allowed = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    let reason = match allowed {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("`unshare` cannot be started: {error}")),
    };
    if let Some(reason) = reason {
        meikyo_testing::skipped(&format!("a small disk needs a mount namespace: {reason}"));
        return false;
    }
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "{mount} && {before} exec '{}' --exact started_process --nocapture --test-threads=1",
        exe.display()
    );
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .current_dir(dir.path())
        .env("MEIKYO_CRASH_ROLE", role)
        .env("MEIKYO_CRASH_DIR", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    true
}

#[test]
fn a_full_disk_costs_counted_rows_and_writing_goes_on_when_there_is_room() {
    on_a_small_disk("fill", "");
}

#[test]
fn a_disk_that_cannot_be_written_is_refused_with_its_place() {
    on_a_small_disk("read_only", "mount -o remount,ro \"$MEIKYO_CRASH_DIR\" &&");
}

/// The rows that the marks reported lost so far.
fn lost(writer: &mut StreamWriter) -> u64 {
    writer.take_kept().map(|kept| kept.lost_rows).sum()
}

/// In the started process: fills the disk, makes room, and compares.
pub(crate) fn fill_a_small_disk(dir: &Path) {
    let ballast = dir.join("ballast");
    fs::write(&ballast, vec![1; 512 << 10]).unwrap();
    let recording = dir.join("recording");
    let mut writer =
        StreamWriter::open(&recording, Kind::Measured, "s", rows::tables(), options()).unwrap();
    let mut submitted = 0;
    let mut incidents = Vec::new();
    let mut lost_rows = 0;
    let mut write_until = |writer: &mut StreamWriter, kind| {
        for _ in 0..20_000 {
            rows::submit(writer, 0, 0, submitted..submitted + 500);
            submitted += 500;
            writer.mark(submitted);
            lost_rows += lost(writer);
            incidents.append(&mut writer.take_incidents());
            if incidents.last().is_some_and(|incident| incident.kind == kind) {
                return;
            }
        }
        panic!("{kind:?} was not reported after {submitted} rows");
    };
    write_until(&mut writer, IncidentKind::DiskRefused);
    fs::remove_file(&ballast).unwrap();
    write_until(&mut writer, IncidentKind::Resumed);
    write_until(&mut writer, IncidentKind::DiskRefused);
    assert!(writer.sync_now().is_ok(), "what is kept can be synced");
    lost_rows += lost(&mut writer);
    let counters = writer.close().unwrap().counters;
    assert!(counters.rows_dropped > 0 && counters.disk_errors > 0);
    assert_eq!(counters.rows_kept + counters.rows_dropped, submitted);
    assert_eq!(lost_rows, counters.rows_dropped, "marks and counters agree");

    let mut found = read(&recording);
    assert_eq!((found.torn_bytes, found.damaged_bytes), (0, 0), "torn frames were cut");
    let rows = found.sorted(0, 0);
    assert_eq!(rows.len() as u64, counters.rows_kept);
    assert!(rows.last().is_some_and(|last| *last < submitted));

    // There is no room to compact; that is told, and nothing is lost by it.
    let compacting = StreamOptions { compact: true, ..options() };
    let writer =
        StreamWriter::open(&recording, Kind::Measured, "s", rows::tables(), compacting).unwrap();
    let closed = writer.close();
    assert_eq!(read(&recording).sorted(0, 0).len() as u64, counters.rows_kept, "{closed:?}");
}

/// In the started process: the disk is mounted read-only.
pub(crate) fn open_where_nothing_can_be_written(dir: &Path) {
    let recording = dir.join("recording");
    let opened = StreamWriter::open(&recording, Kind::Measured, "s", rows::tables(), options());
    let mut error: &dyn std::error::Error = &opened.unwrap_err();
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    assert!(text.contains(&recording.display().to_string()), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
}

#[test]
fn a_directory_that_is_lost_while_writing_costs_counted_rows_until_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let limited = StreamOptions { segment_rows: 100, ..options() };
    let mut writer =
        StreamWriter::open(dir.path(), Kind::Measured, "s", rows::tables(), limited).unwrap();
    rows::submit(&mut writer, 0, 0, 0..100);
    writer.sync_now().unwrap();
    // The segment is full; the next one finds a file where its directory was.
    let log = layout::stream_dir(dir.path(), "s");
    let aside = dir.path().join("aside");
    fs::rename(&log, &aside).unwrap();
    fs::write(&log, "in the way").unwrap();
    rows::submit(&mut writer, 0, 0, 100..200);
    writer.mark(1);
    assert!(writer.sync_now().is_err());
    let counters = writer.counters();
    assert_eq!((counters.rows_kept, counters.rows_dropped), (100, 100));
    fs::remove_file(&log).unwrap();
    fs::rename(&aside, &log).unwrap();
    rows::submit(&mut writer, 0, 0, 200..300);
    writer.sync_now().unwrap();
    let kinds: Vec<_> = writer.take_incidents().into_iter().map(|it| (it.kind, it.rows)).collect();
    assert_eq!(kinds, [(IncidentKind::DiskRefused, 100), (IncidentKind::Resumed, 100)]);
    let counters = writer.close().unwrap().counters;
    assert_eq!((counters.rows_kept, counters.rows_dropped), (200, 100));
    let mut found = read(dir.path());
    let expected: Vec<u64> = (0..100).chain(200..300).collect();
    assert_eq!(found.sorted(0, 0), expected);
}
