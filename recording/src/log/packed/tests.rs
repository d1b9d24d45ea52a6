use proptest::prelude::*;

use super::*;
use crate::log::tests::put_row;
use crate::packed::{CodedReader, PackedRows, Packer};
use crate::schema::{Column as SchemaColumn, Meaning};

fn schema_of(columns: &[(&str, ColumnKind)]) -> TableSchema {
    let columns =
        columns.iter().map(|(name, kind)| SchemaColumn::new(name, *kind, Meaning::Gauge, ""));
    TableSchema::new("t", "", columns.collect())
}

fn schema() -> TableSchema {
    schema_of(&[
        ("unsigned", ColumnKind::U64),
        ("signed", ColumnKind::I64),
        ("real", ColumnKind::F64),
        ("symbol", ColumnKind::Symbol),
        ("text", ColumnKind::Text),
    ])
}

type Row = (i64, Option<u64>, Option<i64>, Option<f64>, Option<u8>, Option<String>);

fn packed(rows: &[Row]) -> PackedRows {
    let mut packer = Packer::new(schema());
    for (time, unsigned, signed, real, symbol, text) in rows {
        let symbol = symbol.map(|symbol| packer.symbol(&format!("host{symbol}")));
        let values = (*unsigned, *signed, *real, symbol, text.as_deref());
        put_row(packer.batch(), *time, values);
    }
    packer.pack().unwrap()
}

fn read_back(rows: &PackedRows) -> Vec<Row> {
    let (batch, texts) = rows.unpack(&schema()).unwrap();
    let symbol = |row| {
        let number = usize::try_from(batch.bits(4, row)?).unwrap();
        Some(texts[number].strip_prefix("host").unwrap().parse().unwrap())
    };
    (0..batch.rows())
        .map(|row| {
            (
                batch.bits(0, row).unwrap().cast_signed(),
                batch.bits(1, row),
                batch.bits(2, row).map(u64::cast_signed),
                batch.bits(3, row).map(f64::from_bits),
                symbol(row),
                batch.text(5, row).map(str::to_owned),
            )
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn rows_come_back_as_they_were(rows: Vec<Row>) {
        prop_assume!(!rows.is_empty());
        prop_assume!(rows.iter().all(|row| row.3.is_none_or(|real| !real.is_nan())));
        let made = packed(&rows);
        let received = PackedRows::received(made.payload().to_vec(), made.checksum()).unwrap();
        prop_assert_eq!(&received, &made);
        prop_assert_eq!(made.times().0, rows.iter().map(|row| row.0).min().unwrap());
        prop_assert_eq!(made.times().1, rows.iter().map(|row| row.0).max().unwrap());
        prop_assert_eq!(read_back(&received), rows);
    }

    #[test]
    fn no_octets_make_a_reader_panic(octets: Vec<u8>, version in 0_u8..3) {
        let octets = [vec![version], octets].concat();
        let checksum = crc32fast::hash(&octets);
        if let Ok(rows) = PackedRows::received(octets, checksum) {
            drop(rows.unpack(&schema()));
        }
    }

    #[test]
    fn no_change_of_a_block_makes_a_reader_panic(
        rows: Vec<Row>,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_stored: bool,
    ) {
        prop_assume!(!rows.is_empty());
        let block = packed(&rows);
        let mut octets = if is_stored { stored(&block) } else { block.payload().to_vec() };
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        let checksum = crc32fast::hash(&octets);
        if let Ok(rows) = PackedRows::received(octets, checksum)
            && let Ok((batch, _)) = rows.unpack(&schema())
        {
            assert_eq!(batch.rows(), rows.rows());
        }
    }
}

/// The same rows in sections that are not compressed, so that changes reach what is in them.
fn stored(rows: &PackedRows) -> Vec<u8> {
    let (mut batch, texts) = rows.unpack(&schema()).unwrap();
    let mut sections = SectionWriter::storing();
    pack(&schema(), &mut batch, &texts, &mut sections).unwrap()
}

/// A block of version 1 made octet by octet as `docs/recording-format.md` describes it: two rows of 5 s and 7 s
/// with a symbol and a text, the second of which is null.
fn by_the_document() -> Vec<u8> {
    let mut octets = vec![1, 0];
    octets.extend_from_slice(&3_u16.to_le_bytes());
    octets.extend_from_slice(&2_u32.to_le_bytes());
    octets.extend_from_slice(&5_000_000_000_i64.to_le_bytes());
    octets.extend_from_slice(&7_000_000_000_i64.to_le_bytes());
    let mut body = Vec::new();
    body.extend_from_slice(&2_u32.to_le_bytes());
    for text in ["node1", "node2"] {
        body.extend_from_slice(&5_u32.to_le_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    // Times as differences: 0 and 2 s beyond 0 s, 4 octets each.
    body.push(1);
    body.extend_from_slice(&5_000_000_000_i64.to_le_bytes());
    body.extend_from_slice(&[1, 4]);
    body.extend_from_slice(&0_u64.to_le_bytes());
    body.extend_from_slice(&0_u32.to_le_bytes());
    body.extend_from_slice(&2_000_000_000_u32.to_le_bytes());
    // Symbols 1 and 0 as values of an octet.
    body.extend_from_slice(&[0, 1, 1]);
    body.extend_from_slice(&0_u64.to_le_bytes());
    body.extend_from_slice(&[1, 0]);
    // Texts as values: both end at 2, the second is null.
    body.extend_from_slice(&[0, 2, 0]);
    body.extend_from_slice(&2_u64.to_le_bytes());
    body.push(0b10);
    body.extend_from_slice(&2_u32.to_le_bytes());
    body.extend_from_slice(b"ab");
    octets.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
    octets.extend_from_slice(&[1, 0, 0, 0]);
    octets.extend_from_slice(b"t");
    for (kind, name) in [(0, "time"), (1, "host"), (2, "note")] {
        octets.extend_from_slice(&[kind, u8::try_from(name.len()).unwrap()]);
        octets.extend_from_slice(name.as_bytes());
    }
    [octets, body].concat()
}

fn received(octets: Vec<u8>) -> Result<PackedRows, UnpackError> {
    let checksum = crc32fast::hash(&octets);
    PackedRows::received(octets, checksum)
}

#[test]
fn a_block_is_what_the_document_says() {
    let rows = received(by_the_document()).unwrap();
    assert_eq!((rows.table(), rows.rows()), ("t", 2));
    assert_eq!(rows.times(), (5_000_000_000, 7_000_000_000));
    let schema = schema_of(&[("host", ColumnKind::Symbol), ("note", ColumnKind::Text)]);
    let (batch, texts) = rows.unpack(&schema).unwrap();
    let host = |row| &*texts[usize::try_from(batch.bits(1, row).unwrap()).unwrap()];
    assert_eq!([host(0), host(1)], ["node2", "node1"]);
    assert_eq!([batch.bits(0, 0), batch.bits(0, 1)], [Some(5_000_000_000), Some(7_000_000_000)]);
    assert_eq!([batch.text(2, 0), batch.text(2, 1)], [Some("ab"), None]);
}

#[test]
fn columns_are_found_by_name_and_kind_and_others_are_null() {
    let rows = received(by_the_document()).unwrap();
    // In another order, one that the block does not have, and one that is of another kind now.
    let schema = schema_of(&[
        ("later", ColumnKind::U64),
        ("note", ColumnKind::Text),
        ("host", ColumnKind::Text),
    ]);
    let (batch, _) = rows.unpack(&schema).unwrap();
    assert_eq!(batch.rows(), 2);
    assert_eq!([batch.bits(1, 0), batch.bits(3, 0)], [None, None]);
    assert_eq!(batch.text(2, 0), Some("ab"));
    let other = TableSchema { name: "u".into(), ..schema };
    assert!(matches!(rows.unpack(&other), Err(UnpackError::Table { .. })));
}

#[test]
fn claims_beyond_the_limits_are_refused_before_they_are_believed() {
    let whole = by_the_document();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut octets = whole.clone();
        change(&mut octets);
        received(octets).unwrap_err().to_string()
    };
    let rows = refused(&|octets| octets[4..8].fill(0xff));
    assert!(rows.contains("at most 1048576 are allowed"), "{rows}");
    let body = refused(&|octets| octets[24..28].fill(0xff));
    assert!(body.contains("at most 16777216 are allowed"), "{body}");
    let version = refused(&|octets| octets[0] = 3);
    assert!(version.contains("version 3"), "{version}");
    let cut = refused(&|octets| octets.truncate(20));
    assert!(cut.contains("cut off"), "{cut}");
    let mut changed = whole.clone();
    changed[40] ^= 1;
    let error = PackedRows::received(changed, crc32fast::hash(&whole)).unwrap_err();
    assert!(matches!(error, UnpackError::Checksum { .. }), "{error}");
}

#[test]
fn a_body_that_is_not_what_it_says_is_told() {
    let schema = schema_of(&[("host", ColumnKind::Symbol), ("note", ColumnKind::Text)]);
    let told = |octets: Vec<u8>| received(octets).unwrap().unpack(&schema).unwrap_err().to_string();
    // A time outside of the span by which readers pass over the block.
    let mut late = by_the_document();
    late[16..24].copy_from_slice(&6_999_999_999_i64.to_le_bytes());
    assert!(told(late).contains("its times"));
    // A symbol without a text: the octets of the symbols are behind form, width and base.
    let mut symbol = by_the_document();
    let at = symbol.len() - (3 + 8 + 1 + 4 + 2) - 2;
    assert_eq!(symbol[at..at + 2], [1, 0]);
    symbol[at] = 2;
    assert!(told(symbol).contains("no text"));
    // More octets than are claimed, compressed to a few.
    let mut bomb = by_the_document();
    let body = bomb.len() - Prefix::read(&bomb).unwrap().body_len;
    bomb.truncate(body);
    bomb[1] = ZSTD;
    bomb.extend_from_slice(&zstd::bulk::compress(&vec![0; 1 << 26], 1).unwrap());
    assert!(told(bomb).contains("damaged"));
}

#[test]
fn rows_that_are_too_many_are_refused_and_the_next_block_begins_empty() {
    let mut packer = Packer::new(schema_of(&[("a", ColumnKind::U64)]));
    assert_eq!(packer.pack(), Err(PackError::Empty));
    for row in 0..=CELLS_MAX / 2 {
        packer.batch().begin_row(i64::try_from(row).unwrap());
    }
    let error = packer.pack().unwrap_err().to_string();
    assert!(error.contains("1048578 values is larger than 1048576"), "{error}");
    packer.batch().begin_row(1);
    assert_eq!(packer.pack().unwrap().rows(), 1);
}

#[test]
fn regular_times_and_counters_take_few_octets() {
    let mut packer =
        Packer::new(schema_of(&[("host", ColumnKind::Symbol), ("count", ColumnKind::U64)]));
    let host = packer.symbol("node001");
    for row in 0..10_000_u64 {
        let batch = packer.batch();
        batch.begin_row(1_700_000_000_000_000_000 + row.cast_signed() * 1_000_000);
        batch.put_symbol(1, host);
        batch.put_u64(2, 5_000_000_000 + row * 1_000);
    }
    // Differences that are all alike but the first: nothing is left but an octet a row, which zstd
    // makes short.
    let octets = packer.pack().unwrap().payload().len();
    assert!(octets < 1_000, "{octets} octets");
}

/// Rows of a table of samples, whose columns take every form that a body has.
#[derive(Debug, Clone)]
struct Samples {
    times: Vec<i64>,
    threads: Vec<u64>,
    addresses: Vec<u64>,
    stacks: Vec<Option<String>>,
}

fn samples_schema() -> TableSchema {
    schema_of(&[
        ("thread", ColumnKind::U64),
        ("process", ColumnKind::U64),
        ("address", ColumnKind::U64),
        ("stack", ColumnKind::Text),
    ])
}

impl Samples {
    fn packed(&self) -> PackedRows {
        let mut packer = Packer::new(samples_schema());
        for row in 0..self.times.len() {
            let batch = packer.batch();
            batch.begin_row(self.times[row]);
            batch.put_u64(1, self.threads[row]);
            if self.threads[row] != 3 {
                batch.put_u64(2, self.threads[row] / 2 * 1_000_003);
            }
            batch.put_u64(3, self.addresses[row]);
            if let Some(stack) = &self.stacks[row] {
                batch.put_text(4, stack);
            }
        }
        packer.pack().unwrap()
    }
}

fn samples() -> impl Strategy<Value = Samples> {
    let stack = prop::option::of(prop::sample::select(vec!["", "a", "a;b", "a;bé", "a;bè;c", "x"]));
    let row = (0_i64..3_000_000, 0_u64..5, 0_u64..400, stack);
    prop::collection::vec(row, 1..700).prop_map(|rows| {
        let mut time = 1_700_000_000_000_000_000;
        let mut samples =
            Samples { times: vec![], threads: vec![], addresses: vec![], stacks: vec![] };
        for (step, thread, address, stack) in rows {
            time += step;
            samples.times.push(time);
            samples.threads.push(thread);
            samples.addresses.push(0xffff_ffff_8100_0000 + address * address * 17);
            samples.stacks.push(stack.map(str::to_owned));
        }
        samples
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_form_of_a_column_comes_back(samples in samples()) {
        let rows = samples.packed();
        let (batch, _) = rows.unpack(&samples_schema()).unwrap();
        for row in 0..samples.times.len() {
            prop_assert_eq!(batch.bits(0, row), Some(samples.times[row].cast_unsigned()));
            let thread = samples.threads[row];
            prop_assert_eq!(batch.bits(1, row), Some(thread));
            prop_assert_eq!(batch.bits(2, row), (thread != 3).then_some(thread / 2 * 1_000_003));
            prop_assert_eq!(batch.bits(3, row), Some(samples.addresses[row]));
            prop_assert_eq!(batch.text(4, row), samples.stacks[row].as_deref());
        }
    }

    #[test]
    fn values_that_a_block_keeps_once_are_those_of_its_rows(samples in samples()) {
        let (schema, rows) = (samples_schema(), samples.packed());
        let (batch, _) = rows.unpack(&schema).unwrap();
        let mut reader = CodedReader::default();
        for wanted in [vec![1, 2, 3, 4], vec![4, 1], vec![3]] {
            let coded = reader.read(&rows, &schema, &wanted).unwrap();
            // Nothing is told of a column that follows from one which is not wanted.
            prop_assert!(coded.is_some() || wanted.len() < 4);
            let Some(coded) = coded else { continue };
            prop_assert_eq!(coded.rows(), batch.rows());
            for (at, &column) in wanted.iter().enumerate() {
                for row in 0..batch.rows() {
                    let place = coded.place(at, row);
                    prop_assert!(place < coded.kept(at));
                    if column == 4 {
                        prop_assert_eq!(coded.text(at, place), batch.text(column, row));
                    } else {
                        prop_assert_eq!(coded.bits(at, place), batch.bits(column, row));
                    }
                }
                let first = batch.bits(column, 0);
                let is_only = (0..batch.rows()).all(|row| batch.bits(column, row) == first);
                if column != 4 && is_only {
                    prop_assert_eq!(coded.only(at), Some(first));
                } else if column != 4 {
                    prop_assert_eq!(coded.only(at), None);
                }
            }
        }
    }

    #[test]
    fn no_change_of_any_form_makes_a_reader_panic(
        samples in samples(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (mut batch, texts) = samples.packed().unpack(&samples_schema()).unwrap();
        let mut sections = SectionWriter::storing();
        let mut octets = pack(&samples_schema(), &mut batch, &texts, &mut sections).unwrap();
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        if let Ok(rows) = received(octets)
            && let Ok((batch, _)) = rows.unpack(&samples_schema())
        {
            prop_assert_eq!(batch.rows(), rows.rows());
            let coded = CodedReader::default().read(&rows, &samples_schema(), &[1, 2, 3, 4]);
            let Ok(Some(coded)) = coded else { return Ok(()) };
            for row in 0..batch.rows() {
                for at in 0..3 {
                    prop_assert_eq!(coded.bits(at, coded.place(at, row)), batch.bits(at + 1, row));
                }
                prop_assert_eq!(coded.text(3, coded.place(3, row)), batch.text(4, row));
            }
        }
    }
}

/// What `docs/recording-format.md` says of version 2, octet by octet: three rows with a column of
/// each form but plain, no section of which is long enough to be compressed.
fn sections_by_the_document() -> Vec<u8> {
    let mut octets = vec![2, 0];
    octets.extend_from_slice(&6_u16.to_le_bytes());
    octets.extend_from_slice(&3_u32.to_le_bytes());
    octets.extend_from_slice(&5_000_i64.to_le_bytes());
    octets.extend_from_slice(&9_000_i64.to_le_bytes());
    let mut body = vec![2, 8 << 1, 3];
    body.extend_from_slice(b"one");
    body.push(3);
    body.extend_from_slice(b"two");
    // Steps from 5,000: twice 1,000 and then one unit of 1,000 twice more, which is 4 and has 3 bits.
    body.push(2);
    for number in [5_000_u64, 1_000, 1_000] {
        body.extend_from_slice(&number.to_le_bytes());
    }
    body.extend_from_slice(&[2 << 1, 0, 3 << 1, 1 << 1, 0]);
    // A dictionary of 7 and 9, which is 2 above it: magnitudes 3 bits 11., 2 bits 10; rest 1.
    body.extend_from_slice(&[3, 0, 2, 2 << 1, 3 << 1 | 1, 2 << 1, 1 << 1, 1, 3 << 1, 0, 1, 0]);
    // What follows from column 1: null and 4, which as a number near zero is 8 and has 4 bits.
    body.extend_from_slice(&[4, 1, 1, 2 << 1, 0, 1, 1 << 1, 4 << 1, 1 << 1, 0]);
    // Nothing.
    body.push(0);
    // A dictionary of null and the symbol 1.
    body.extend_from_slice(&[3, 1, 2, 1 << 1, 1, 0, 3 << 1, 1, 0, 1]);
    // A dictionary of the texts `ab` and `abc`, which shares 2 octets and has 1 of its own.
    body.extend_from_slice(&[3, 0, 2, 2 << 1, 0, 2 << 1, 0, 2 << 1, 2 << 1, 1, 0]);
    body.extend_from_slice(&[3 << 1, b'a', b'b', b'c', 3 << 1, 1, 1, 0]);
    // Octets of all sections: words, steps, numbers, what follows, symbols, texts.
    let plain = 8 + (2 + 1) + (2 + 1 + 3) + (2 + 1 + 1) + (1 + 3) + (2 + 2 + 3 + 3);
    octets.extend_from_slice(&u32::to_le_bytes(plain));
    octets.extend_from_slice(&[1, 0, 0, 0]);
    octets.extend_from_slice(b"t");
    for (kind, name) in [(0, "time"), (3, "a"), (4, "b"), (5, "c"), (1, "host"), (2, "note")] {
        octets.extend_from_slice(&[kind, u8::try_from(name.len()).unwrap()]);
        octets.extend_from_slice(name.as_bytes());
    }
    [octets, body].concat()
}

#[test]
fn a_block_of_sections_is_what_the_document_says() {
    let rows = received(sections_by_the_document()).unwrap();
    let schema = schema_of(&[
        ("a", ColumnKind::U64),
        ("b", ColumnKind::I64),
        ("c", ColumnKind::F64),
        ("host", ColumnKind::Symbol),
        ("note", ColumnKind::Text),
    ]);
    let (batch, texts) = rows.unpack(&schema).unwrap();
    let column = |at| [0, 1, 2].map(|row| batch.bits(at, row));
    assert_eq!(column(0), [Some(5_000), Some(6_000), Some(9_000)]);
    assert_eq!(column(1), [Some(7), Some(9), Some(7)]);
    assert_eq!(column(2), [None, Some(4), None]);
    assert_eq!(column(3), [None; 3]);
    assert_eq!((column(4), &*texts[1]), ([Some(1), None, Some(1)], "two"));
    assert_eq!([0, 1, 2].map(|row| batch.text(5, row)), [Some("abc"), Some("abc"), Some("ab")]);
}

#[test]
fn sections_that_are_more_than_was_claimed_are_told() {
    let schema = schema_of(&[("a", ColumnKind::U64)]);
    let told = |octets: Vec<u8>| received(octets).unwrap().unpack(&schema).unwrap_err().to_string();
    for claimed in [0, 10, 36, 1_000] {
        let mut octets = sections_by_the_document();
        octets[24..28].copy_from_slice(&u32::to_le_bytes(claimed));
        assert!(told(octets).starts_with("the block cannot be read"), "{claimed}");
    }
}

#[test]
fn more_texts_than_values_are_refused_before_memory_is_taken_for_them() {
    for (count, is_refused) in [(CELLS_MAX, false), (CELLS_MAX + 1, true)] {
        let mut body = Vec::new();
        put_varint(count as u64, &mut body);
        // Texts without an octet, in a section that is stored as it is.
        put_varint(2 * count as u64, &mut body);
        body.resize(body.len() + count, 0);
        let mut asked = 0;
        let mut number = |_: &str| {
            asked += 1;
            Some(0)
        };
        let (mut room, mut reader) = (BODY_MAX, SectionReader::default());
        let numbers = words_of(&mut Octets(&body), &mut room, &mut reader, &mut number);
        assert_eq!(numbers.is_none(), is_refused, "{count} texts");
        assert_eq!(asked, if is_refused { 0 } else { count });
    }
}
