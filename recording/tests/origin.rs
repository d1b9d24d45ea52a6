//! Ranges against a plain set, and what a stream knows of its blocks across kills and compaction.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use meikyo_units::Nanos;
use proptest::prelude::*;

use meikyo_recording::origin::Ranges;
use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, Origin, PackedRows, Packer, Received, Source, StreamOptions,
    StreamWriter, TableSchema, WhenFull, files, layout,
};

proptest! {
    #[test]
    fn ranges_are_a_set(
        steps in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 1..40),
        asked in (0_u64..50, 0_u64..20),
    ) {
        let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
        for (adds, first, more) in steps {
            let last = first + more;
            if adds {
                ranges.add(first, last);
                set.extend(first..=last);
            } else {
                ranges.remove(first, last);
                set.retain(|number| !(first..=last).contains(number));
            }
            let listed: Vec<_> = ranges.iter().collect();
            // Neighbours are one range.
            prop_assert!(listed.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{listed:?}");
            let numbers: BTreeSet<_> = listed.iter().flat_map(|&(a, b)| a..=b).collect();
            prop_assert_eq!(&numbers, &set);
        }
        let (first, last) = (asked.0, asked.0 + asked.1);
        let known: BTreeSet<_> = set.range(first..=last).copied().collect();
        let within: BTreeSet<_> = ranges.within(first, last).flat_map(|(a, b)| a..=b).collect();
        prop_assert_eq!(&within, &known);
        let holes: BTreeSet<_> = ranges.holes(first, last).flat_map(|(a, b)| a..=b).collect();
        let expected = (first..=last).filter(|number| !set.contains(number)).collect();
        prop_assert_eq!(holes, expected);
        prop_assert_eq!(ranges.missing(first, last), asked.1 + 1 - known.len() as u64);
        prop_assert!((0..70).all(|number| ranges.holds(number) == set.contains(&number)));
        prop_assert_eq!(ranges.last(), set.last().copied());
    }
}

#[test]
fn the_last_number_of_all_can_be_added_and_taken_out() {
    let mut ranges = Ranges::default();
    ranges.add(5, u64::MAX);
    ranges.add(u64::MAX, u64::MAX);
    assert_eq!(ranges.iter().collect::<Vec<_>>(), [(5, u64::MAX)]);
    assert_eq!(ranges.missing(0, u64::MAX), 5);
    assert_eq!(ranges.holes(1, u64::MAX).collect::<Vec<_>>(), [(1, 4)]);
    ranges.remove(7, u64::MAX);
    let holes = [(1, 4), (7, u64::MAX)];
    assert_eq!(ranges.holes(1, u64::MAX).collect::<Vec<_>>(), holes);
    assert_eq!(ranges.iter().collect::<Vec<_>>(), [(5, 6)]);
}

fn source(boot: u64) -> Source {
    Source { sender: "node001".into(), boot, stream: "s".into() }
}

fn table() -> TableSchema {
    let value = Column::new("value", ColumnKind::U64, Meaning::Gauge, "");
    TableSchema::new("t", "", vec![value])
}

fn block(boot: u64, number: u64) -> PackedRows {
    let mut packer = Packer::new(table());
    packer.batch().begin_row(1_795_294_799_000_000_000 + i64::try_from(number).unwrap());
    packer.batch().put_u64(1, number);
    let origin = Origin { source: source(boot), first: number, last: number };
    packer.pack().unwrap().with_origin(&origin).unwrap()
}

#[test]
fn a_block_carries_its_origin_and_its_rows_stay_the_same() {
    let stamped = block(3, 7);
    let octets = stamped.payload().to_vec();
    let received = PackedRows::received(octets, stamped.checksum()).unwrap();
    let origin = Origin { source: source(3), first: 7, last: 7 };
    assert_eq!(received.origin(), Some(&origin));
    assert_eq!(received, stamped);
    let (batch, _) = received.unpack(&table()).unwrap();
    assert_eq!((batch.rows(), batch.bits(1, 0)), (1, Some(7)));
    let long = Origin { source: Source { sender: "x".repeat(256), ..source(1) }, ..origin };
    assert!(stamped.with_origin(&long).is_err());
}

fn options() -> StreamOptions {
    StreamOptions {
        segment_rows: 4,
        sync_every: Nanos::from_millis(1),
        when_full: WhenFull::Wait,
        ..StreamOptions::COLLECTOR
    }
}

fn open(dir: &Path, compact: bool) -> StreamWriter {
    let options = StreamOptions { compact, ..options() };
    StreamWriter::open(dir, Kind::Measured, "s", vec![table()], options).unwrap()
}

#[test]
fn who_opens_a_stream_learns_which_blocks_it_has_in_segments_and_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Received::default();
    // Blocks in segments that are left, then all of them compacted, then both.
    for (boot, compact) in [(1, false), (2, true), (3, false), (4, true)] {
        let mut writer = open(dir.path(), compact);
        assert_eq!(writer.received(), &expected, "boot {boot}");
        for number in [1, 2, 3, 5, 6, 9, 10, 11, 12] {
            let block = block(boot, number);
            expected.add(block.origin().unwrap());
            writer.packed(block).unwrap();
        }
        if compact {
            writer.close().unwrap();
            let left = files::list(dir.path()).unwrap().segments;
            assert!(left.is_empty());
        }
    }
    assert_eq!(
        expected.ranges_of(&source(2)).unwrap().iter().collect::<Vec<_>>(),
        [(1, 3), (5, 6), (9, 12)]
    );
    let writer = open(dir.path(), true);
    assert_eq!(writer.received(), &expected);
}

#[test]
fn what_compaction_noted_and_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), true);
    writer.packed(block(1, 1)).unwrap();
    writer.close().unwrap();
    let path = layout::stream_dir(dir.path(), "s").join("received.json");
    let mut octets = fs::read(&path).unwrap();
    octets[20] ^= 1;
    fs::write(&path, octets).unwrap();
    let mut writer = open(dir.path(), true);
    assert!(writer.received().is_empty());
    let told = writer.take_incidents();
    assert!(told.iter().any(|incident| incident.text.contains("received.json")), "{told:?}");
}
