//! The watermark under disks that are slow, fail, or lose files.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::packed::block;
use super::*;

/// A disk that answers each sync as it is told to, and says when it is asked.
struct Disk {
    asked: Receiver<()>,
    answers: Sender<io::Result<()>>,
}

impl Disk {
    fn new() -> (Self, sync::SyncData) {
        let (tell, asked) = channel();
        let (answers, wait) = channel();
        let sync = move |_: &File| {
            tell.send(()).ok();
            // Without a test that answers, the disk is quick.
            wait.recv().unwrap_or(Ok(()))
        };
        (Self { asked, answers }, Box::new(sync))
    }

    /// Waits until a sync is under way.
    fn is_asked(&self) {
        self.asked.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    fn answer(&self, result: io::Result<()>) {
        self.answers.send(result).unwrap();
    }
}

fn open_with(dir: &Path, sync_data: sync::SyncData, options: StreamOptions) -> StreamWriter {
    StreamWriter::open_synced_by(sync_data, dir, Kind::Measured, ("s", tables()), options).unwrap()
}

fn quick() -> StreamOptions {
    StreamOptions { sync_every: Nanos::from_millis(1), ..options() }
}

const PATIENCE: Nanos = Nanos::from_secs(10);

#[test]
fn a_frame_is_acknowledged_when_the_disk_has_answered_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, sync_data) = Disk::new();
    let mut writer = open_with(dir.path(), sync_data, quick());
    let watermark = writer.watermark();
    writer.packed(block(&[(1, 10)])).unwrap();
    writer.mark(1);
    let first = wait_for(&mut writer, 1);
    // The head and the block.
    assert_eq!((first.sequence, first.lost_rows), (2, 0));
    disk.is_asked();
    // Under way, and a frame more is written meanwhile: it is not of this sync.
    put(&mut writer, 2, 20);
    writer.mark(2);
    let second = wait_for(&mut writer, 2);
    assert_eq!(watermark.wait(first.sequence, Nanos::from_millis(20)), Synced::default());
    disk.answer(Ok(()));
    let synced = watermark.wait(first.sequence, PATIENCE);
    assert_eq!((synced.sequence, synced.is_stopped), (first.sequence, false));
    assert!(synced.sequence < second.sequence && synced.bytes > 0);
    disk.is_asked();
    assert_eq!(writer.synced(), synced);
    disk.answer(Ok(()));
    let synced = watermark.wait(second.sequence, PATIENCE);
    assert_eq!(synced.sequence, second.sequence);
    assert_eq!(synced.bytes, writer.counters().bytes_kept);
    drop(disk);
    writer.close().unwrap();
}

#[test]
fn what_comes_after_a_quiet_time_does_not_wait_for_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions { sync_every: Nanos::from_secs(3_600), ..options() };
    let mut writer = open(dir.path(), options);
    for (number, sequence) in [(1, 2), (2, 3)] {
        put(&mut writer, number, 10);
        assert_eq!(writer.watermark().wait(sequence, PATIENCE).sequence, sequence);
    }
    writer.close().unwrap();
}

#[test]
fn after_a_sync_that_failed_nothing_is_acknowledged_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, sync_data) = Disk::new();
    let mut writer = open_with(dir.path(), sync_data, quick());
    let watermark = writer.watermark();
    put(&mut writer, 1, 10);
    disk.is_asked();
    disk.answer(Err(io::Error::other("the disk is broken")));
    let stopped = watermark.wait(2, PATIENCE);
    assert_eq!(stopped, Synced { sequence: 0, bytes: 0, is_stopped: true });
    // The kernel may have dropped what it could not write, and says so once only.
    drop(disk);
    put(&mut writer, 2, 20);
    writer.sync_now().unwrap();
    assert_eq!(watermark.get(), stopped);
    writer.close().unwrap();
    assert_eq!(watermark.get(), stopped);
}

#[test]
fn what_a_disk_refused_is_written_anew_before_it_is_believed() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, sync_data) = Disk::new();
    let mut writer = open_with(dir.path(), sync_data, quick());
    put(&mut writer, 1, 10);
    disk.is_asked();
    disk.answer(Err(io::Error::other("the disk is broken")));
    assert!(writer.watermark().wait(2, PATIENCE).is_stopped);
    drop(disk);
    drop(writer);
    let stream_dir = layout::stream_dir(dir.path(), "s");
    let segment = || {
        let (_, path) = layout::segments_of(&stream_dir).unwrap().remove(0);
        (std::fs::metadata(&path).unwrap().ino(), std::fs::read(&path).unwrap())
    };
    // The kernel takes these octets for written, and would say so when it is asked again.
    let (file, octets) = segment();
    let writer = open(dir.path(), options());
    assert!(!writer.synced().is_stopped);
    let anew = segment();
    assert!(anew.0 != file && anew.1 == octets, "it must be another file, which is synced");
    drop(writer);
    drop(open(dir.path(), options()));
    assert_eq!(segment(), anew, "once is enough");
    assert_eq!(rows_in_log(dir.path()), [(1, 1, "10".into())]);
}

#[test]
fn a_segment_that_failed_holds_up_the_segments_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, sync_data) = Disk::new();
    let never = StreamOptions { sync_every: Nanos::from_secs(3_600), ..options() };
    let mut writer = open_with(dir.path(), sync_data, never);
    let watermark = writer.watermark();
    let span = span_of(options().segment_span);
    put(&mut writer, 0, 10);
    // The next span: the first segment ends, and is asked for by itself.
    put(&mut writer, span, 20);
    disk.is_asked();
    disk.answer(Err(io::Error::other("the disk is broken")));
    drop(disk);
    writer.sync_now().unwrap();
    let synced = watermark.get();
    assert_eq!((synced.sequence, synced.is_stopped), (0, true));
    writer.close().unwrap();
}

#[test]
fn a_segment_that_was_removed_before_it_was_synced_is_not_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, sync_data) = Disk::new();
    let options = StreamOptions { when_removed: WhenRemoved::Drop, ..options() };
    let mut writer = open_with(dir.path(), sync_data, options);
    let watermark = writer.watermark();
    put(&mut writer, 1, 10);
    writer.mark(1);
    assert_eq!(wait_for(&mut writer, 1).lost_rows, 0);
    disk.is_asked();
    std::fs::remove_file(layout::segment_path(dir.path(), "s", 1)).unwrap();
    disk.answer(Ok(()));
    drop(disk);
    let stopped = watermark.wait(2, PATIENCE);
    assert_eq!(stopped, Synced { sequence: 0, bytes: 0, is_stopped: true });
}

#[test]
fn a_segment_that_is_compacted_while_the_disk_is_asked_for_it_is_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, sync_data) = Disk::new();
    let mut writer = open_with(dir.path(), sync_data, StreamOptions { compact: true, ..quick() });
    let watermark = writer.watermark();
    put(&mut writer, 0, 10);
    disk.is_asked();
    // The next span: the segment ends and is compacted, and the first answer is still to come.
    put(&mut writer, span_of(options().segment_span), 20);
    let segment = layout::segment_path(dir.path(), "s", 1);
    let deadline = WallTime::now() + PATIENCE;
    while segment.exists() {
        assert!(WallTime::now() < deadline, "it is not compacted");
        std::thread::yield_now();
    }
    disk.answer(Ok(()));
    drop(disk);
    writer.sync_now().unwrap();
    let synced = watermark.get();
    assert!(synced.sequence >= 4 && !synced.is_stopped, "{synced:?}");
    writer.close().unwrap();
}

#[test]
fn the_watermark_of_a_new_writer_begins_behind_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), quick());
    put(&mut writer, 1, 10);
    writer.close().unwrap();
    let writer = open(dir.path(), quick());
    assert_eq!(writer.synced(), Synced { sequence: 2, bytes: 0, is_stopped: false });
}
