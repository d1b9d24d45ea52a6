//! A log segment: any file is read to its end, and every octet is whole, damaged or torn.
//!
//! Frames have checksums that a fuzzer does not guess. The first octet of the input says whether what
//! follows is the file as it is, or what whole frames are made of (see `framed`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_recording::Batch;
use meikyo_recording::segment::SegmentReader;

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, rest)) = bytes.split_first() else { return };
    let octets = if form % 2 == 0 { rest.to_vec() } else { framed(rest) };
    let path = std::env::temp_dir().join(format!("meikyo-fuzz-{}.log", std::process::id()));
    std::fs::write(&path, &octets).expect("room for a file");
    let file = std::fs::File::open(&path).expect("it was just written");
    let Ok(Some(mut reader)) = SegmentReader::from_file(file, "segment".as_ref()) else { return };
    let tables = reader.head().tables.clone();
    if tables.iter().any(|table| table.columns.is_empty()) {
        return;
    }
    let mut batches: Vec<_> =
        tables.iter().enumerate().map(|(at, table)| Batch::new(at, table)).collect();
    while let Some(header) = reader.next_rows(|_| true).expect("the file can be read") {
        if reader.decode(&header, &mut batches[header.table]).is_ok() {
            assert_eq!(batches[header.table].rows(), header.rows);
        }
    }
    let ending = reader.ending();
    assert!(ending.whole_bytes + ending.torn_bytes <= octets.len() as u64);
    assert!(ending.damaged_bytes <= ending.whole_bytes);
});

/// Whole frames: of each its codec and its rows in an octet, the length of its payload in two, and the
/// payload; before them a head of one table that has a column of each kind.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut sequence = 1;
    frame(&mut octets, (0, 0, sequence), HEAD.as_bytes());
    while let Some((&[codec, rows, low, high], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        sequence += 1;
        frame(&mut octets, (codec, rows, sequence), payload);
        rest = behind;
    }
    octets
}

const HEAD: &str = r#"{"format":1,"kind":"measured","stream":"s","tables":[{"name":"t","doc":"","columns":[
{"name":"time","kind":"time","meaning":"label","doc":""},{"name":"a","kind":"symbol","meaning":"label","doc":""},
{"name":"b","kind":"text","meaning":"detail","doc":""},{"name":"c","kind":"u64","meaning":"gauge","doc":""},
{"name":"d","kind":"i64","meaning":"gauge","doc":""},{"name":"e","kind":"f64","meaning":"gauge","doc":""}]}]}"#;

/// Appends a frame as docs/recording-format.md describes it.
fn frame(octets: &mut Vec<u8>, (codec, rows, sequence): (u8, u8, u64), payload: &[u8]) {
    let mut header = [0; 56];
    header[..4].copy_from_slice(b"MKYF");
    let length = u32::try_from(payload.len()).expect("a head, or 16 bits");
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8] = codec;
    header[12] = rows;
    header[16..24].copy_from_slice(&sequence.to_le_bytes());
    header[40..44].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    let crc = crc32fast::hash(&header[..52]);
    header[52..].copy_from_slice(&crc.to_le_bytes());
    octets.extend_from_slice(&header);
    octets.extend_from_slice(payload);
}
