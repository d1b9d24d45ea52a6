mod packed;
mod removal;
mod synced;

use std::time::Duration;

use super::*;
use crate::layout;
use crate::schema::{Column, ColumnKind, Meaning};
use crate::segment::SegmentReader;

fn tables() -> Vec<TableSchema> {
    let column = |name: &str, kind| Column::new(name, kind, Meaning::Gauge, "");
    vec![
        TableSchema::new("a", "", vec![column("device", ColumnKind::Symbol)]),
        TableSchema::new("b", "", vec![column("value", ColumnKind::U64)]),
    ]
}

fn options() -> StreamOptions {
    StreamOptions { compact: false, ..StreamOptions::COLLECTOR }
}

fn open(dir: &Path, options: StreamOptions) -> StreamWriter {
    StreamWriter::open(dir, Kind::Measured, "s", tables(), options).unwrap()
}

/// (table, time, text of the symbol or value) of every row in the log.
fn rows_in_log(dir: &Path) -> Vec<(usize, i64, String)> {
    let mut rows = Vec::new();
    for (_, path) in layout::segments_of(&layout::stream_dir(dir, "s")).unwrap() {
        let mut segment = SegmentReader::open(&path).unwrap().unwrap();
        assert_eq!(segment.head().tables, tables());
        while let Some(frame) = segment.next_rows(|_| true).unwrap() {
            let mut batch = Batch::new(frame.table, &tables()[frame.table]);
            segment.decode(&frame, &mut batch).unwrap();
            for row in 0..batch.rows() {
                let bits = batch.columns[1].bits[row];
                let text = match frame.table {
                    0 => segment.symbol(bits).unwrap().to_owned(),
                    _ => bits.to_string(),
                };
                rows.push((frame.table, batch.columns[0].bits[row].cast_signed(), text));
            }
        }
        assert_eq!(segment.ending().torn_bytes, 0);
        assert_eq!(segment.ending().damaged_bytes, 0);
    }
    rows
}

fn put(writer: &mut StreamWriter, time: i64, value: u64) {
    let mut batch = writer.batch(1);
    batch.begin_row(time);
    batch.put_u64(1, value);
    writer.submit(batch);
}

fn wait_for(writer: &mut StreamWriter, token: u64) -> Kept {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    for _ in 0..1_000 {
        let found = writer.take_kept().find(|kept| kept.token == token);
        if let Some(kept) = found {
            return kept;
        }
        // A receive that times out is a sleep that ends early when the sender goes.
        assert!(receiver.recv_timeout(Duration::from_millis(10)).is_err());
    }
    drop(sender);
    panic!("token {token} did not come back within 10 s");
}

#[test]
fn rows_are_in_the_file_when_their_mark_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), options());
    let device = writer.symbol("node001");
    assert_eq!(writer.symbol("node001"), device);
    let mut batch = writer.batch(0);
    batch.begin_row(5);
    batch.put_symbol(1, device);
    writer.submit(batch);
    put(&mut writer, 6, 60);
    writer.mark(17);
    let kept = wait_for(&mut writer, 17);
    assert_eq!(kept.lost_rows, 0);
    let expected = vec![(0, 5, "node001".to_owned()), (1, 6, "60".to_owned())];
    assert_eq!(rows_in_log(dir.path()), expected);
    writer.sync_now().unwrap();
    let counters = writer.counters();
    assert_eq!((counters.rows_kept, counters.rows_dropped), (2, 0));
    assert_eq!(counters.bytes_synced, counters.bytes_kept);
    assert!(counters.last_sync.is_some());
    writer.close().unwrap();
    assert_eq!(rows_in_log(dir.path()), expected);
}

#[test]
fn a_second_writer_of_a_stream_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), options());
    let second = StreamWriter::open(dir.path(), Kind::Measured, "s", tables(), options());
    let message = second.unwrap_err().to_string();
    assert!(message.contains("already has a writer"), "{message}");
    let other = StreamWriter::open(dir.path(), Kind::Measured, "t", tables(), options());
    other.unwrap().close().unwrap();
    drop(first);
    open(dir.path(), options()).close().unwrap();
}

#[test]
fn segments_end_at_multiples_of_the_span_and_at_the_row_limit() {
    let dir = tempfile::tempdir().unwrap();
    let span = options().segment_span;
    let limited = StreamOptions { segment_rows: 10, ..options() };
    let mut writer = open(dir.path(), limited);
    let start = WallTime::now().floor(span).as_nanos();
    let step = span_of(span);
    // Two spans, a late row of the first in the second, a clock that steps back by an hour.
    for (time, value) in [(0, 0), (step - 1, 1), (step, 2), (step - 1, 3), (-6 * step, 4)] {
        put(&mut writer, start + time, value);
    }
    for value in 5..26 {
        put(&mut writer, start - 6 * step, value);
    }
    writer.close().unwrap();
    let segments = layout::segments_of(&layout::stream_dir(dir.path(), "s")).unwrap();
    assert_eq!(segments.len(), 5, "{segments:?}");
    let values: Vec<_> = rows_in_log(dir.path()).into_iter().map(|row| row.2).collect();
    let expected: Vec<_> = (0..26).map(|value: u64| value.to_string()).collect();
    assert_eq!(values, expected, "the order is the order of submission");
}

fn span_of(span: Nanos) -> i64 {
    i64::try_from(span.get()).unwrap()
}

#[test]
fn a_torn_tail_is_cut_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), options());
    put(&mut writer, 1, 10);
    writer.sync_now().unwrap();
    put(&mut writer, 2, 20);
    writer.close().unwrap();
    let (_, path) = layout::segments_of(&layout::stream_dir(dir.path(), "s")).unwrap().remove(0);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();

    let mut writer = open(dir.path(), options());
    let incidents = writer.take_incidents();
    // What is cut had been handed to the kernel: that is told, too.
    let kinds: Vec<_> = incidents.iter().map(|incident| incident.kind).collect();
    assert_eq!(kinds, [IncidentKind::TornTail, IncidentKind::Damage]);
    let counters = writer.counters();
    put(&mut writer, 3, 30);
    writer.close().unwrap();
    let values: Vec<_> = rows_in_log(dir.path()).into_iter().map(|row| row.2).collect();
    assert_eq!(values, ["10", "30"]);
    let cut = counters.torn_bytes_cut;
    assert!(cut > 50 && cut < whole.len() as u64, "{cut} bytes");
}

#[test]
fn damage_inside_a_segment_costs_only_the_frame_that_it_is_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), options());
    for value in [10_u64, 20, 30] {
        put(&mut writer, value.cast_signed(), value);
        writer.sync_now().unwrap();
    }
    writer.close().unwrap();
    let (_, path) = layout::segments_of(&layout::stream_dir(dir.path(), "s")).unwrap().remove(0);
    let mut octets = std::fs::read(&path).unwrap();
    let frame = (octets.len() - 56) / 4;
    let middle = octets.len() - 100;
    octets[middle] ^= 1;
    std::fs::write(&path, &octets).unwrap();

    let mut segment = SegmentReader::open(&path).unwrap().unwrap();
    let mut times = Vec::new();
    while let Some(header) = segment.next_rows(|_| true).unwrap() {
        times.push(header.least_time);
    }
    assert_eq!(times, [10, 30]);
    let ending = segment.ending();
    assert_eq!(ending.torn_bytes, 0);
    assert!(ending.damaged_bytes > 56 && ending.damaged_bytes < frame as u64, "{ending:?}");
    let mut writer = open(dir.path(), options());
    assert_eq!(writer.take_incidents()[0].kind, IncidentKind::Damage);
}

#[test]
fn rows_that_do_not_fit_into_the_queue_are_dropped_counted_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), StreamOptions { queue_batches: 1, ..options() });
    let mut submitted = 0;
    while writer.counters().batches_dropped < 3 {
        for _ in 0..1_000 {
            put(&mut writer, 1, submitted);
            submitted += 1;
        }
        assert!(submitted < 100_000_000, "the queue never became full");
    }
    writer.mark(1);
    let lost = wait_for(&mut writer, 1).lost_rows;
    put(&mut writer, 2, submitted);
    let incidents = writer.take_incidents();
    assert_eq!(incidents[0].kind, IncidentKind::QueueFull);
    assert!(incidents.iter().any(|incident| incident.kind == IncidentKind::Resumed));
    let counters = writer.close().unwrap().counters;
    assert_eq!(counters.rows_dropped, lost);
    assert_eq!(counters.rows_kept + counters.rows_dropped, submitted + 1);
    assert_eq!(rows_in_log(dir.path()).len() as u64, counters.rows_kept);
}

#[test]
fn a_writer_that_waits_drops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = StreamOptions { queue_batches: 2, when_full: WhenFull::Wait, ..options() };
    let mut writer = open(dir.path(), waiting);
    for value in 0..20_000 {
        put(&mut writer, 1, value);
    }
    let counters = writer.close().unwrap().counters;
    assert_eq!((counters.rows_kept, counters.rows_dropped), (20_000, 0));
    assert_eq!(rows_in_log(dir.path()).len(), 20_000);
}
