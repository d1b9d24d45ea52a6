//! Packed rows from anywhere: any octets are a block or refused, and a block that is read has the rows
//! that it says and takes bounded memory.
//!
//! The first octet says whether the rest is the block as it is, or its body is put behind a prefix of
//! either version that is right, so that the fuzzer reaches the columns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_recording::{CodedReader, Column, ColumnKind, Meaning, PackedRows, TableSchema};

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, rest)) = bytes.split_first() else { return };
    let octets = match form % 3 {
        0 => rest.to_vec(),
        version => with_prefix(version, rest),
    };
    let checksum = crc32fast::hash(&octets);
    let Ok(rows) = PackedRows::received(octets, checksum) else { return };
    assert!(rows.rows() > 0 && rows.times().0 <= rows.times().1);
    let Ok((batch, texts)) = rows.unpack(&schema()) else { return };
    assert_eq!(batch.rows(), rows.rows());
    for row in 0..batch.rows() {
        let time = batch.bits(0, row).expect("every row has a time").cast_signed();
        assert!((rows.times().0..=rows.times().1).contains(&time));
        if let Some(symbol) = batch.bits(1, row) {
            assert!(usize::try_from(symbol).is_ok_and(|symbol| symbol < texts.len()));
        }
        batch.text(2, row);
    }
    // A block that is read by its different values has the same ones.
    let Ok(Some(coded)) = CodedReader::default().read(&rows, &schema(), &[1, 2, 3]) else { return };
    for row in 0..batch.rows() {
        let [symbol, text, number] = [0, 1, 2].map(|at| (at, coded.place(at, row)));
        assert_eq!(coded.bits(number.0, number.1), batch.bits(3, row));
        assert_eq!(coded.text(text.0, text.1), batch.text(2, row));
        let word = coded.bits(symbol.0, symbol.1).and_then(|symbol| coded.word(symbol));
        let of_batch = batch.bits(1, row).and_then(|symbol| usize::try_from(symbol).ok());
        assert_eq!(word, of_batch.and_then(|symbol| texts.get(symbol)).map(String::as_str));
    }
});

fn schema() -> TableSchema {
    let column = |name, kind| Column::new(name, kind, Meaning::Gauge, "");
    let columns = vec![
        column("a", ColumnKind::Symbol),
        column("b", ColumnKind::Text),
        column("c", ColumnKind::U64),
        column("d", ColumnKind::I64),
        column("e", ColumnKind::F64),
    ];
    TableSchema::new("t", "", columns)
}

/// A prefix as docs/recording-format.md describes it, of as many rows as the first octet of the body
/// says. A body of version 1 is stored; the sections of version 2 have as many octets as the next two
/// say.
fn with_prefix(version: u8, body: &[u8]) -> Vec<u8> {
    let (&rows, body) = body.split_first().unwrap_or((&0, &[]));
    let (length, body) = match (version, body) {
        (2, [low, high, body @ ..]) => (u16::from_le_bytes([*low, *high]).into(), body),
        _ => (u32::try_from(body.len()).unwrap_or(u32::MAX), body),
    };
    let mut octets = vec![version, 0, 6, 0];
    octets.extend_from_slice(&u32::from(rows).to_le_bytes());
    octets.extend_from_slice(&i64::MIN.to_le_bytes());
    octets.extend_from_slice(&i64::MAX.to_le_bytes());
    octets.extend_from_slice(&length.to_le_bytes());
    octets.extend_from_slice(&[1, 0, 0, 0]);
    octets.extend_from_slice(b"t\x00\x04time\x01\x01a\x02\x01b\x03\x01c\x04\x01d\x05\x01e");
    octets.extend_from_slice(body);
    octets
}
