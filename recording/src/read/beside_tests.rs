//! Requests beside a log of other tables: what they touch is counted, and what they say is what a
//! walk over all frames says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::*;
use crate::compact::compact_recording;
use crate::inventory::{Inventory, inventory};
use crate::log::{FrameHeader, HEADER_LEN};
use crate::schema::{Column, ColumnKind, Meaning};
use crate::segment::IndexBuilder;
use crate::writer::{StreamOptions, StreamWriter};
use crate::{Kind, Packer, WhenFull};

const SECOND: i64 = 1_000_000_000;

fn table(name: &str) -> TableSchema {
    let columns = vec![
        Column::new("device", ColumnKind::Symbol, Meaning::Label, ""),
        Column::new("value", ColumnKind::U64, Meaning::Gauge, ""),
    ];
    TableSchema::new(name, "", columns)
}

fn open(dir: &Path, stream: &str, tables: &[&str]) -> StreamWriter {
    let options = StreamOptions {
        compact: false,
        segment_rows: 400,
        when_full: WhenFull::Wait,
        ..StreamOptions::COLLECTOR
    };
    let tables = tables.iter().map(|name| table(name)).collect();
    StreamWriter::open(dir, Kind::Simulated, stream, tables, options).unwrap()
}

/// Rows of two tables in one stream, with a hole of 20 s in the middle and new symbols now and then.
fn write_measured(dir: &Path) {
    let mut writer = open(dir, "snmp", &["load", "cpu"]);
    for second in (0..100_i64).filter(|second| !(40..60).contains(second)) {
        for at in 0..2 {
            let mut batch = writer.batch(at);
            for row in 0..if at == 0 || second % 30 == 0 { 5 } else { 0 } {
                batch.begin_row(second * SECOND + row);
                batch.put_symbol(1, writer.symbol(&format!("node{}", (second + row) / 10)));
                batch.put_u64(2, second.unsigned_abs());
            }
            writer.submit(batch);
        }
        writer.sync_now().unwrap();
    }
    writer.close().unwrap();
}

/// A stream of blocks of another table.
fn write_profile(dir: &Path, blocks: i64) {
    let mut writer = open(dir, "profile", &["samples"]);
    for block in 0..blocks {
        let mut packer = Packer::new(table("samples"));
        let device = packer.symbol("node1");
        for row in 0..200_i64 {
            packer.batch().begin_row(block * SECOND / 10 + row);
            packer.batch().put_symbol(1, device);
            packer.batch().put_u64(2, row.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        writer.packed(packer.pack().unwrap()).unwrap();
    }
    writer.close().unwrap();
}

fn scanned(recording: &Recording, selection: &Selection) -> (u64, ReadCost) {
    let mut scan = recording.scan(selection).unwrap();
    let rows = scan.by_ref().map(|batch| batch.unwrap().num_rows() as u64).sum();
    assert_eq!(scan.problems(), []);
    (rows, scan.cost())
}

#[test]
fn a_request_opens_only_segments_that_hold_its_table() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for (dir, blocks) in dirs.iter().zip([0, 300]) {
        write_measured(dir.path());
        write_profile(dir.path(), blocks);
    }
    let [alone, beside] = dirs.each_ref().map(|dir| Recording::open(dir.path()).unwrap());
    let segments = beside.listing(&Wanted::ALL).unwrap().segments.len();
    assert!(segments > 150, "{segments} segments");
    for table in ["load", "cpu"] {
        let of_table = |recording: &Recording| {
            recording.listing(&Wanted::table(table)).unwrap().segments.len()
        };
        assert_eq!(of_table(&alone), of_table(&beside), "no other segment is even listed");
    }
    let late =
        Selection { from: Some(WallTime::from_nanos(60 * SECOND)), ..Selection::all("load") };
    for selection in [Selection::all("load"), Selection::all("cpu"), late] {
        let (alone, beside) = (scanned(&alone, &selection), scanned(&beside, &selection));
        assert!(alone.0 > 0 && alone.1.segments_opened > 0);
        assert_eq!(alone, beside, "{selection:?}");
    }
    let [alone, beside] = dirs.each_ref().map(|dir| inventory(dir.path()).unwrap());
    assert_eq!(beside.cost, ReadCost::default());
    let rows = |inventory: &Inventory| {
        let tables = inventory.tables.iter();
        tables.map(|table| (table.name.clone(), table.rows, table.times)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&beside)[..2], rows(&alone)[..]);
    assert_eq!(rows(&beside)[2].1, 300 * 200);
}

#[test]
fn frames_of_other_tables_in_a_segment_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    write_measured(dir.path());
    let recording = Recording::open(dir.path()).unwrap();
    let (load, cpu) = (Selection::all("load"), Selection::all("cpu"));
    let (load, cpu) = (scanned(&recording, &load), scanned(&recording, &cpu));
    assert_eq!((load.0, cpu.0), (400, 20));
    assert!(cpu.1.bytes_read * 10 < load.1.bytes_read, "{cpu:?} {load:?}");
}

/// Everything that readers say of the two tables.
fn answers(dir: &Path) -> String {
    let recording = Recording::open(dir).unwrap();
    let of_table = |table: &str| {
        let mut scan = recording.scan(&Selection::all(table)).unwrap();
        let rows: Vec<_> = scan.by_ref().map(Result::unwrap).collect();
        let late =
            Selection { from: Some(WallTime::from_nanos(80 * SECOND)), ..Selection::all(table) };
        let late: Vec<_> = recording.scan(&late).unwrap().map(Result::unwrap).collect();
        let span = recording.span(table).unwrap();
        let begin = recording.log_begin(table).unwrap();
        let hours = recording.hours(table).unwrap();
        format!("{rows:?} {late:?} {span:?} {begin:?} {hours:?} {:?}", scan.problems())
    };
    let tables = recording.catalogue().unwrap();
    let Inventory { tables: found, streams, problems, log_bytes, .. } = inventory(dir).unwrap();
    let texts = ["load", "cpu"].map(of_table);
    format!("{texts:?} {tables:?} {found:?} {streams:?} {problems:?} {log_bytes}")
}

#[test]
fn indexes_of_any_part_of_a_segment_change_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    let tables = vec![table("load"), table("cpu")];
    let mut writer = StreamWriter::open(dir.path(), Kind::Simulated, "s", tables, options).unwrap();
    for second in [0, 1, 30, 31, 5_000, 2, 90, 91] {
        for at in 0..2 {
            let mut batch = writer.batch(at);
            if second % 2 == i64::try_from(at).unwrap() || second == 90 {
                batch.begin_row(second * SECOND);
                batch.put_symbol(1, writer.symbol(&format!("node{second}")));
            }
            writer.submit(batch);
        }
        writer.sync_now().unwrap();
    }
    writer.close().unwrap();
    let listed = || files::list(dir.path()).unwrap().segments;
    for segment in listed() {
        assert!(
            SegmentIndex::read_beside(&segment)
                .is_some_and(|index| { index.bytes == segment.file.metadata().unwrap().len() })
        );
    }
    let whole = answers(dir.path());
    for segment in listed() {
        fs::remove_file(segment.path.with_extension("index")).unwrap();
    }
    assert_eq!(answers(dir.path()), whole, "without any index");
    for segment in listed() {
        let octets = fs::read(&segment.path).unwrap();
        let reader = SegmentReader::open(&segment.path).unwrap().unwrap();
        let (mut builder, mut at) = (IndexBuilder::new(reader.head()), 0);
        while at < octets.len() {
            let header = FrameHeader::decode(&octets[at..]).unwrap();
            builder.add(&header);
            at += HEADER_LEN + header.payload_len;
            builder.index().unwrap().write(&segment.path).unwrap();
            let index = SegmentIndex::read_beside(&segment).unwrap();
            assert_eq!(index.bytes, at as u64);
            assert_eq!(answers(dir.path()), whole, "{at} of {} octets", octets.len());
        }
    }
}

#[test]
fn an_index_that_does_not_fit_its_segment_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    write_profile(dir.path(), 2);
    let segment = || files::list(dir.path()).unwrap().segments.remove(0);
    let path = segment().path;
    assert!(SegmentIndex::read_beside(&segment()).is_some());
    let (octets, index) =
        (fs::read(&path).unwrap(), fs::read(path.with_extension("index")).unwrap());
    fs::write(&path, &octets[..octets.len() - 1]).unwrap();
    assert_eq!(SegmentIndex::read_beside(&segment()), None, "truncated");
    let headers = [0, octets.len() - usize::from(last_frame(&octets))];
    for at in headers {
        let mut changed = octets.clone();
        changed[at + 16] ^= 1;
        fs::write(&path, changed).unwrap();
        assert_eq!(SegmentIndex::read_beside(&segment()), None, "octet {at}");
    }
    fs::write(&path, &octets).unwrap();
    for at in 0..index.len() {
        let mut changed = index.clone();
        changed[at] ^= 1;
        fs::write(path.with_extension("index"), changed).unwrap();
        assert_eq!(SegmentIndex::read_beside(&segment()), None, "octet {at} of the index");
    }
    fs::write(path.with_extension("index"), &index).unwrap();
    assert!(SegmentIndex::read_beside(&segment()).is_some());
    let other = SegmentFile { stream: "other".into(), ..segment() };
    assert_eq!(SegmentIndex::read_beside(&other), None, "of another stream");
}

/// What `info` says of a recording, and how many segments it had to open for it.
fn told(dir: &Path) -> (String, u64) {
    let Inventory { tables, streams, problems, log_bytes, cost, .. } = inventory(dir).unwrap();
    let catalogue = Recording::open(dir).unwrap().catalogue().unwrap();
    (format!("{tables:?} {streams:?} {problems:?} {log_bytes} {catalogue:?}"), cost.segments_opened)
}

#[test]
fn what_ended_segments_hold_is_known_without_opening_them() {
    let dir = tempfile::tempdir().unwrap();
    write_measured(dir.path());
    write_profile(dir.path(), 9);
    let ended = layout::stream_dir(dir.path(), "profile").join("ended.json");
    let recording = Recording::open(dir.path()).unwrap();
    let listing = recording.listing_of_all().unwrap();
    let all = recording.listing(&Wanted::ALL).unwrap().segments.len();
    assert_eq!((listing.segments.len(), listing.known.len()), (0, all));
    assert!(all > 5);
    let (whole, opened) = told(dir.path());
    assert_eq!(opened, 0);
    let noted = fs::read(&ended).unwrap();
    for at in (0..noted.len()).step_by(7) {
        let mut changed = noted.clone();
        changed[at] ^= 1;
        fs::write(&ended, changed).unwrap();
        assert_eq!(told(dir.path()).0, whole, "octet {at} of the list");
    }
    fs::remove_file(&ended).unwrap();
    assert_eq!(told(dir.path()).0, whole, "without the list");
    // Of another stream, as a person copies who wants to help.
    fs::copy(layout::stream_dir(dir.path(), "snmp").join("ended.json"), &ended).unwrap();
    assert_eq!(told(dir.path()).0, whole, "with another stream's list");
}

#[test]
fn a_segment_that_is_not_as_it_ended_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    write_profile(dir.path(), 9);
    let segments = layout::segments_of(&layout::stream_dir(dir.path(), "profile")).unwrap();
    let [(_, one), (_, other), ..] = &segments[..] else { panic!("two segments") };
    let (whole, _) = told(dir.path());
    let octets = fs::read(one).unwrap();
    assert_eq!(octets.len(), fs::read(other).unwrap().len(), "of one length");

    let aside = one.with_extension("aside");
    let swap = || {
        fs::rename(one, &aside).unwrap();
        fs::rename(other, one).unwrap();
        fs::rename(&aside, other).unwrap();
    };
    swap();
    assert!(told(dir.path()).0.contains("its name says that it begins with frame"), "swapped");
    swap();
    assert_eq!(told(dir.path()).0, whole, "swapped back");

    let of_then = fs::metadata(one).unwrap().modified().unwrap();
    fs::write(one, &octets[..octets.len() - 9]).unwrap();
    File::options().write(true).open(one).unwrap().set_modified(of_then).unwrap();
    assert!(told(dir.path()).0.contains("it is truncated"), "truncated, with its old time");
    fs::write(one, &octets).unwrap();
    assert_eq!(told(dir.path()), (whole.clone(), 0), "written anew: its index is believed");
    let mut changed = octets.clone();
    changed[16] ^= 1;
    fs::write(one, changed).unwrap();
    assert_ne!(told(dir.path()).0, whole, "one bit of its first header");
    fs::remove_file(one).unwrap();
    assert!(told(dir.path()).0.contains("missing"), "removed");
    std::os::unix::fs::symlink(other, one).unwrap();
    assert_ne!(told(dir.path()).0, whole, "a link to another one");
}

#[test]
fn who_keeps_a_recording_open_is_told_what_came_since() {
    let dir = tempfile::tempdir().unwrap();
    write_profile(dir.path(), 9);
    let kept = Recording::open(dir.path()).unwrap();
    let told_the_same = || {
        let anew = Recording::open(dir.path()).unwrap();
        assert_eq!(kept.catalogue().unwrap(), anew.catalogue().unwrap());
        let firsts = |recording: &Recording| {
            let known = recording.listing_of_all().unwrap().known;
            known.iter().map(|segment| segment.ended.first()).collect::<Vec<_>>()
        };
        assert_eq!(firsts(&kept), firsts(&anew));
        firsts(&kept).len()
    };
    let before = told_the_same();
    write_profile(dir.path(), 9);
    assert!(told_the_same() > before, "further segments have ended");
    open(dir.path(), "profile", &["samples", "calls"]).close().unwrap();
    told_the_same();
    assert!(kept.tables().unwrap().contains_key("calls"));
    let whole = told_the_same();
    let (_, one) =
        layout::segments_of(&layout::stream_dir(dir.path(), "profile")).unwrap().remove(0);
    let octets = fs::read(&one).unwrap();
    fs::write(&one, &octets[..octets.len() - 9]).unwrap();
    assert_eq!(told_the_same(), whole - 1, "one is not as it ended");
}

#[test]
fn a_stream_that_was_copied_under_another_name_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    write_profile(dir.path(), 9);
    let [from, to] = ["profile", "other"].map(|stream| layout::stream_dir(dir.path(), stream));
    fs::create_dir(&to).unwrap();
    for (name, path) in layout::entries(&from).unwrap() {
        fs::copy(&path, to.join(&name)).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        File::options().write(true).open(to.join(&name)).unwrap().set_modified(modified).unwrap();
    }
    assert!(told(dir.path()).0.contains("it belongs elsewhere: its stream is `profile`"));
}

/// Octets of the last frame.
fn last_frame(octets: &[u8]) -> u16 {
    let (mut at, mut last) = (0, 0);
    while at < octets.len() {
        last = HEADER_LEN + FrameHeader::decode(&octets[at..]).unwrap().payload_len;
        at += last;
    }
    u16::try_from(last).unwrap()
}

#[test]
fn indexes_go_with_their_segments_and_recovery_makes_them_anew() {
    let dir = tempfile::tempdir().unwrap();
    write_profile(dir.path(), 4);
    let stream_dir = layout::stream_dir(dir.path(), "profile");
    let indexes = || {
        let entries = layout::entries(&stream_dir).unwrap().into_iter();
        entries.map(|(name, _)| name).filter(|name| name.ends_with(".index")).collect::<Vec<_>>()
    };
    let made = indexes();
    assert_eq!(made.len(), 2);
    made.iter().for_each(|name| fs::remove_file(stream_dir.join(name)).unwrap());
    fs::write(stream_dir.join("0000009999.index"), "of a segment that is gone").unwrap();
    open(dir.path(), "profile", &["samples"]).close().unwrap();
    assert_eq!(indexes(), made);
    compact_recording(dir.path()).unwrap();
    assert_eq!(indexes(), Vec::<String>::new());
}

#[test]
fn who_follows_passes_over_what_is_not_wanted_and_over_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    write_measured(dir.path());
    let recording = Recording::open(dir.path()).unwrap();
    let segments = || recording.listing(&Wanted::ALL).unwrap().segments;
    let rows = |name: &str, from: i64| {
        let of_segment = |segment| {
            let wanted =
                |table: &TableSchema, span: (i64, i64)| table.name == name && span.1 >= from;
            let mut reader = SegmentReader::open_where(segment, wanted).unwrap().unwrap();
            let tables = &reader.head().tables;
            let place = tables.iter().position(|table| table.name == name).unwrap();
            let is_wanted =
                |header: &FrameHeader| header.table == place && header.greatest_time >= from;
            let mut rows = 0;
            while let Some(header) = reader.next_rows(is_wanted).unwrap() {
                rows += header.rows;
            }
            rows
        };
        segments().into_iter().map(of_segment).sum::<usize>()
    };
    // Eighty seconds with 5 rows of one table, and four with 5 of the other.
    assert_eq!([rows("load", 0), rows("cpu", 0)], [400, 20]);
    assert_eq!([rows("load", 90 * SECOND), rows("cpu", 61 * SECOND)], [50, 5]);
    for segment in segments() {
        let mut nothing = SegmentReader::open_where(segment, |_, _| false).unwrap().unwrap();
        assert_eq!(nothing.next_rows(|_| true).unwrap(), None, "all frames are described");
    }
}

/// A compacted recording of one hour, and its file of Parquet.
fn compacted(dir: &Path) -> PathBuf {
    let mut writer = open(dir, "snmp", &["load"]);
    for second in 0..10 {
        let mut batch = writer.batch(0);
        batch.begin_row(second * SECOND);
        batch.put_symbol(1, writer.symbol("node1"));
        batch.put_u64(2, second.unsigned_abs());
        writer.submit(batch);
    }
    writer.close().unwrap();
    compact_recording(dir).unwrap();
    let hour = layout::hour_dir(dir, "load", 0);
    let files: Vec<_> = fs::read_dir(hour).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// What a scan tells when `change` happens between its listing and its reading.
fn told_after(change: impl FnOnce(&Path, &Path)) -> Vec<Problem> {
    let dir = tempfile::tempdir().unwrap();
    let file = compacted(dir.path());
    let recording = Recording::open(dir.path()).unwrap();
    let mut scan = recording.scan(&Selection::all("load")).unwrap();
    fs::remove_file(&file).unwrap();
    change(dir.path(), &file);
    let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 0);
    scan.problems().to_vec()
}

#[test]
fn a_file_that_vanishes_while_it_is_read_is_missed_unless_it_was_deleted_or_is_compacted_anew() {
    let stream = |dir: &Path| layout::stream_dir(dir, "snmp");
    let is_missing = |told: &[Problem]| told.len() == 1 && told[0].what == "it is missing";
    assert!(is_missing(&told_after(|_, _| ())));
    let told = told_after(|dir, _| {
        let manifest = stream(dir).join(crate::manifest::FILE_NAME);
        fs::remove_file(&manifest).unwrap();
        fs::create_dir(&manifest).unwrap();
    });
    assert!(is_missing(&told), "nobody knows whether it was deleted: {told:?}");
    let told = told_after(|dir, _| {
        let hours = [("load".to_owned(), 1)].into();
        crate::manifest::delete_before(&stream(dir), &hours).unwrap();
    });
    assert_eq!(told, [], "it was deleted");
    let told = told_after(|dir, _| {
        // As it stands before its compaction, which is done again.
        fs::write(layout::segment_path(dir, "snmp", 1), "").unwrap();
    });
    assert_eq!(told, [], "its rows are in the log");
}
