//! Packed rows on their way into the log.

use super::*;
use crate::{PackedRows, Packer, UnpackError};

/// A block of rows of table `b` with these times and values.
pub(super) fn block(rows: &[(i64, u64)]) -> PackedRows {
    let mut packer = Packer::new(tables()[1].clone());
    for &(time, value) in rows {
        packer.batch().begin_row(time);
        packer.batch().put_u64(1, value);
    }
    packer.pack().unwrap()
}

/// Codec, rows, times, checksum and payload of a frame.
type Frame<'a> = (u16, u32, [i64; 2], u32, &'a [u8]);

/// The frames of a segment by the octets of their headers.
fn frames(octets: &[u8]) -> Vec<Frame<'_>> {
    let mut found = Vec::new();
    let mut rest = octets;
    while let Some((header, behind)) = rest.split_first_chunk::<56>() {
        assert_eq!(&header[..4], b"MKYF");
        let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let i64_at = |at: usize| i64::from_le_bytes(header[at..at + 8].try_into().unwrap());
        let (payload, behind) = behind.split_at(usize::try_from(u32_at(4)).unwrap());
        let codec = u16::from_le_bytes([header[8], header[9]]);
        found.push((codec, u32_at(12), [i64_at(24), i64_at(32)], u32_at(40), payload));
        rest = behind;
    }
    found
}

#[test]
fn the_octets_of_a_block_are_in_the_log_as_they_came() {
    let dir = tempfile::tempdir().unwrap();
    let made = block(&[(7, 70), (5, 50), (6, 60)]);
    let block = PackedRows::received(made.payload().to_vec(), made.checksum()).unwrap();
    let mut writer = open(dir.path(), options());
    put(&mut writer, 4, 40);
    writer.packed(block).unwrap();
    put(&mut writer, 8, 80);
    writer.mark(1);
    assert_eq!(wait_for(&mut writer, 1).lost_rows, 0);
    let (_, path) = layout::segments_of(&layout::stream_dir(dir.path(), "s")).unwrap().remove(0);
    let octets = std::fs::read(path).unwrap();
    let packed: Vec<_> = frames(&octets).into_iter().filter(|frame| frame.0 == 3).collect();
    assert_eq!(packed, [(3, 3, [5, 7], made.checksum(), made.payload())]);
    assert_eq!(crc32fast::hash(packed[0].4), made.checksum());
    let values: Vec<_> = rows_in_log(dir.path()).into_iter().map(|row| row.2).collect();
    assert_eq!(values, ["40", "70", "50", "60", "80"], "in the order of submission");
    assert_eq!(writer.close().unwrap().counters.rows_kept, 5);
}

#[test]
fn a_block_of_a_table_that_the_stream_does_not_have_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut packer = Packer::new(TableSchema::new("c", "", Vec::new()));
    packer.batch().begin_row(1);
    let mut writer = open(dir.path(), options());
    let error = writer.packed(packer.pack().unwrap()).unwrap_err();
    assert_eq!(error, UnknownTableError { table: "c".into() });
}

#[test]
fn a_block_whose_body_is_wrong_costs_only_itself_and_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path(), StreamOptions::COLLECTOR);
    put(&mut writer, 4, 40);
    let made = block(&[(5, 50)]);
    let mut payload = made.payload().to_vec();
    payload.pop();
    assert!(matches!(
        PackedRows::received(payload.clone(), made.checksum()),
        Err(UnpackError::Checksum { .. })
    ));
    // A sender that packs wrongly, and sums what it made.
    let checksum = crc32fast::hash(&payload);
    writer.packed(PackedRows::received(payload.clone(), checksum).unwrap()).unwrap();
    put(&mut writer, 6, 60);
    writer.close().unwrap();
    let aside = layout::segment_path(dir.path(), "s", 1).with_extension("log.damaged");
    let octets = std::fs::read(aside).unwrap();
    assert!(frames(&octets).iter().any(|frame| frame.4 == payload));
    let recording = crate::Recording::open(dir.path()).unwrap();
    let mut scan = recording.scan(&crate::Selection::all("b")).unwrap();
    let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 2);
    assert_eq!(scan.problems().len(), 1, "{:?}", scan.problems());
}

#[test]
fn a_block_fits_a_table_that_has_its_columns_with_their_kinds() {
    let made = block(&[(1, 10)]);
    let of = |name: &str, columns: &[(&str, ColumnKind)]| {
        let column = |&(name, kind): &(&str, _)| Column::new(name, kind, Meaning::Gauge, "");
        TableSchema::new(name, "", columns.iter().map(column).collect())
    };
    let (value, more) = (("value", ColumnKind::U64), ("more", ColumnKind::Text));
    for columns in [&[value][..], &[value, more], &[more, value]] {
        made.fits(&of("b", columns)).unwrap();
    }
    for columns in [&[][..], &[more], &[("value", ColumnKind::F64)]] {
        let error = made.fits(&of("b", columns)).unwrap_err();
        assert!(matches!(error, UnpackError::Column { .. }), "{error}");
    }
    let other = made.fits(&of("a", &[value])).unwrap_err();
    assert!(matches!(other, UnpackError::Table { .. }));
    // The same column twice, which no packer writes.
    let twice = [value, value];
    let mut packer = Packer::new(of("b", &twice));
    packer.batch().begin_row(1);
    let error = packer.pack().unwrap().fits(&of("b", &twice)).unwrap_err();
    assert!(matches!(error, UnpackError::Column { .. }), "{error}");
}

#[test]
fn the_texts_of_one_column_are_those_of_its_rows() {
    let kinds = [("host", ColumnKind::Symbol), ("name", ColumnKind::Text)];
    let column = |(name, kind)| Column::new(name, kind, Meaning::Label, "");
    let mut packer = Packer::new(TableSchema::new("b", "", kinds.map(column).to_vec()));
    let [one, other, _unused] = ["one", "other", "unused"].map(|text| packer.symbol(text));
    for (row, host) in [Some(one), None, Some(other), Some(one)].into_iter().enumerate() {
        packer.batch().begin_row(1);
        host.iter().for_each(|host| packer.batch().put_symbol(1, *host));
        packer.batch().put_text(2, &format!("name {}", row % 2));
    }
    let made = packer.pack().unwrap();
    let texts = |column: &str| made.texts_of(column).unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(texts("host"), ["one", "other"]);
    assert_eq!(texts("name"), ["name 0", "name 1"]);
    assert_eq!(texts("time"), Vec::<String>::new());
    assert_eq!(texts("nothing"), Vec::<String>::new());
}
