//! Packed rows become the same files as the same rows that were submitted one by one; segments with
//! frames of unknown kinds are never deleted.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::tests::{Row, put_row, rows, rows_of, schema, submit};
use super::{Summaries, compact};
use crate::files::list;
use crate::layout::{self, ParquetFile};
use crate::log::FrameHeader;
use crate::{Kind, Packer, Recording, Selection, StreamOptions, StreamWriter, TableSchema, check};

fn writer(dir: &Path, compact: bool) -> StreamWriter {
    let options = StreamOptions { compact, ..StreamOptions::COLLECTOR };
    StreamWriter::open(dir, Kind::Simulated, "s", vec![schema()], options).unwrap()
}

fn submit_packed(writer: &mut StreamWriter, rows: &[Row], schema: TableSchema) {
    let mut packer = Packer::new(schema);
    for row in rows {
        let symbols = [&row.device, &row.interface].map(|text| {
            let text = text.as_deref()?;
            Some(packer.symbol(text))
        });
        put_row(packer.batch(), row, symbols);
    }
    writer.packed(packer.pack().unwrap()).unwrap();
}

/// What the files of a recording hold, by table and hour, and the octets of summaries.
fn files(dir: &Path) -> Vec<(String, i64, Vec<Row>)> {
    let rows = |file: &ParquetFile| if file.table == "t" { rows_of(file) } else { Vec::new() };
    let listed = list(dir).unwrap().parquet;
    listed.iter().map(|file| (file.table.clone(), file.hour, rows(file))).collect()
}

fn scanned(dir: &Path, table: &str) -> Vec<String> {
    let recording = Recording::open(dir).unwrap();
    let mut scan = recording.scan(&Selection::all(table)).unwrap();
    let batches: Vec<_> = scan.by_ref().map(Result::unwrap).collect();
    assert_eq!(scan.problems(), []);
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            lines.push(format!("{:?}", batch.slice(row, 1).columns()));
        }
    }
    lines.sort();
    lines
}

#[test]
fn packed_rows_and_plain_ones_become_the_same_files() {
    let all = rows(3_000);
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for (dir, is_packed) in dirs.iter().zip([false, true]) {
        let mut writer = writer(dir.path(), true);
        for (at, chunk) in all.chunks(100).enumerate() {
            // Some texts are met packed first, others plain first.
            if is_packed && at % 3 != 1 {
                submit_packed(&mut writer, chunk, schema());
            } else {
                submit(&mut writer, chunk);
            }
        }
        writer.close().unwrap();
        assert_eq!(check::check(dir.path()).unwrap().damage, []);
    }
    let [plain, packed] = dirs.each_ref().map(|dir| files(dir.path()));
    assert_eq!(plain.iter().map(|file| file.2.len()).sum::<usize>(), 3_000);
    assert_eq!(plain, packed);
    let [plain, packed] = dirs.each_ref().map(|dir| scanned(dir.path(), "t.summary"));
    assert!(plain.len() > 100);
    assert_eq!(plain, packed);
}

#[test]
fn packed_rows_in_the_log_are_read_like_those_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = writer(dir.path(), false);
    let all = rows(900);
    for (at, chunk) in all.chunks(50).enumerate() {
        if at % 2 == 0 {
            submit_packed(&mut log, chunk, schema());
        } else {
            submit(&mut log, chunk);
        }
    }
    log.close().unwrap();
    let as_texts = |table: &str| {
        let recording = Recording::open(dir.path()).unwrap();
        let mut scan = recording.scan(&Selection::all(table)).unwrap();
        let batches: Vec<_> = scan.by_ref().map(Result::unwrap).collect();
        assert_eq!(scan.problems(), []);
        let mut rows: Vec<_> = batches.iter().flat_map(super::tests::rows_of_scan).collect();
        rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
        rows
    };
    let of_log = as_texts("t");
    assert_eq!(of_log.len(), 900);
    writer(dir.path(), true).close().unwrap();
    assert!(list(dir.path()).unwrap().segments.is_empty());
    assert_eq!(as_texts("t"), of_log);
}

#[test]
fn a_block_of_another_version_of_the_table_fills_nulls() {
    let dir = tempfile::tempdir().unwrap();
    let mut earlier = schema();
    earlier.columns.retain(|column| column.name != "text");
    let mut log = writer(dir.path(), true);
    let all = rows(100);
    let mut packer = Packer::new(earlier);
    for row in &all {
        let device = row.device.as_deref().map(|text| packer.symbol(text));
        put_row(packer.batch(), &Row { text: None, ..row.clone() }, [device, None]);
    }
    log.packed(packer.pack().unwrap()).unwrap();
    log.close().unwrap();
    let found: Vec<_> = files(dir.path()).into_iter().flat_map(|file| file.2).collect();
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|row| row.text.is_none() && row.interface.is_none()));
    let sum = |rows: &[Row]| rows.iter().filter_map(|row| row.signed).sum::<i64>();
    assert_eq!(sum(&found), sum(&all));
}

/// Makes the second frame of rows of the only segment one of a kind that nobody knows.
fn make_unknown(dir: &Path) -> PathBuf {
    let segment = list(dir).unwrap().segments.remove(0).path;
    let octets = fs::read(&segment).unwrap();
    let (mut at, mut rows) = (0, 0);
    loop {
        let header = FrameHeader::decode(&octets[at..]).unwrap();
        rows += usize::from(header.codec.has_rows());
        if rows == 2 {
            break;
        }
        at += 56 + header.payload_len;
    }
    let mut header = octets[at..at + 56].to_vec();
    header[8..10].copy_from_slice(&777_u16.to_le_bytes());
    let crc = crc32fast::hash(&header[..52]);
    header[52..].copy_from_slice(&crc.to_le_bytes());
    let file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
    file.write_all_at(&header, u64::try_from(at).unwrap()).unwrap();
    // What a writer of that version would have noted itself.
    drop(fs::remove_file(segment.with_extension("index")));
    segment
}

fn with_unknown_frame(dir: &Path) -> PathBuf {
    let mut log = writer(dir, false);
    rows(300).chunks(100).for_each(|chunk| submit(&mut log, chunk));
    log.close().unwrap();
    make_unknown(dir)
}

fn told(dir: &Path) -> [Vec<String>; 3] {
    let recording = Recording::open(dir).unwrap();
    let mut scan = recording.scan(&Selection::all("t")).unwrap();
    let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 200);
    let scanned = scan.problems().iter().map(|problem| problem.what.clone()).collect();
    let of_check = check::check(dir).unwrap().damage;
    let of_check = of_check.into_iter().map(|damage| damage.what).collect();
    let of_info = crate::inventory::inventory(dir).unwrap().problems;
    [scanned, of_check, of_info.into_iter().map(|problem| problem.what).collect()]
}

#[test]
fn frames_of_an_unknown_kind_are_kept_by_compaction_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let segment = with_unknown_frame(dir.path());
    let whole = fs::read(&segment).unwrap();
    for problems in told(dir.path()) {
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("1 frames are of a kind"), "{problems:?}");
    }
    let compacted = compact(dir.path(), &segment, &mut Summaries::default()).unwrap();
    assert_eq!((compacted.rows, compacted.unknown_frames, compacted.unread_frames), (200, 1, 0));
    // The known rows are in files that count, and nothing of the segment is gone.
    let listing = list(dir.path()).unwrap();
    assert_eq!((listing.segments.len(), listing.hidden.len()), (0, 0));
    let aside = segment.with_extension("log.unknown");
    assert_eq!(fs::read(&aside).unwrap(), whole);
    for problems in told(dir.path()) {
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("of a kind that the version"), "{problems:?}");
    }
    // Neither a writer that recovers nor one that deletes what is too old takes it away.
    writer(dir.path(), true).close().unwrap();
    let limit = meikyo_units::WallTime::from_nanos(i64::MAX);
    crate::retention::delete_before(dir.path(), "s", |_| Some(limit));
    assert_eq!(fs::read(&aside).unwrap(), whole);
    assert!(list(dir.path()).unwrap().parquet.is_empty());
}

#[test]
fn a_segment_of_unknown_frames_alone_survives_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = writer(dir.path(), false);
    submit(&mut log, &rows(10));
    log.close().unwrap();
    let segment = list(dir.path()).unwrap().segments.remove(0).path;
    let octets = fs::read(&segment).unwrap();
    let mut changed = octets.clone();
    let mut at = 0;
    while at < octets.len() {
        let header = FrameHeader::decode(&octets[at..]).unwrap();
        if header.codec.has_rows() {
            changed[at + 8..at + 10].copy_from_slice(&777_u16.to_le_bytes());
            let crc = crc32fast::hash(&changed[at..at + 52]);
            changed[at + 52..at + 56].copy_from_slice(&crc.to_le_bytes());
        }
        at += 56 + header.payload_len;
    }
    fs::write(&segment, &changed).unwrap();
    drop(fs::remove_file(segment.with_extension("index")));
    writer(dir.path(), false).close().unwrap();
    assert_eq!(fs::read(&segment).unwrap(), changed);
    writer(dir.path(), true).close().unwrap();
    assert_eq!(fs::read(segment.with_extension("log.unknown")).unwrap(), changed);
    assert_eq!(layout::last_sequence(dir.path(), "s").unwrap(), 3);
}
