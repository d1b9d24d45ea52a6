//! Symbol columns against the reader of `parquet`, and their page index against the rows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use arrow::datatypes::Int32Type;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use proptest::prelude::*;

use crate::parquet_file::chunk::PAGE_ROWS;
use crate::parquet_file::read_back::{file, reader};
use crate::schema::{Column, ColumnKind, Meaning, TableSchema};
use crate::series;

type Texts = Vec<Option<String>>;

fn table() -> TableSchema {
    let device = Column::new("device", ColumnKind::Symbol, Meaning::Label, "");
    TableSchema::new("t", "", vec![device])
}

/// A batch of those texts, its dictionary in order of appearance behind a word that is not used.
fn batch(texts: &[Option<String>]) -> RecordBatch {
    let mut words = vec!["unused".to_owned()];
    let mut key = |text: &String| {
        let known = words.iter().position(|word| word == text);
        let at = known.unwrap_or_else(|| {
            words.push(text.clone());
            words.len() - 1
        });
        i32::try_from(at).unwrap()
    };
    let keys: Int32Array =
        texts.iter().map(|text| text.as_ref().map(&mut key)).collect::<Vec<_>>().into();
    let words: ArrayRef = Arc::new(StringArray::from(words));
    let times = TimestampNanosecondArray::from_iter_values(0..i64::try_from(texts.len()).unwrap());
    let devices = DictionaryArray::<Int32Type>::try_new(keys, words).unwrap();
    let columns: Vec<ArrayRef> = vec![Arc::new(times.with_timezone("UTC")), Arc::new(devices)];
    RecordBatch::try_new(series::arrow_schema(&table()), columns).unwrap()
}

fn devices(builder: ParquetRecordBatchReaderBuilder<Bytes>) -> Texts {
    let batches = builder.build().unwrap().map(Result::unwrap);
    batches
        .flat_map(|rows| {
            let texts = series::texts(&rows, "device").unwrap();
            (0..rows.num_rows()).map(|row| texts.get(row).map(str::to_owned)).collect::<Texts>()
        })
        .collect()
}

/// Runs of a few texts and of null, as rows of one batch.
fn runs() -> impl Strategy<Value = Texts> {
    let text = prop_oneof![
        4 => "[a-dé]{0,2}".prop_map(Some),
        1 => "n[0-9]{3}".prop_map(Some),
        1 => Just(None),
    ];
    let rows = prop_oneof![8 => 1_usize..20, 1 => 1_usize..25_000];
    prop::collection::vec((text, rows), 0..40).prop_map(|runs| {
        runs.into_iter().flat_map(|(text, rows)| std::iter::repeat_n(text, rows)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_runs_are_read_back_and_every_page_says_what_is_in_it(
        batches in prop::collection::vec(runs(), 1..4),
    ) {
        let all: Texts = batches.iter().flatten().cloned().collect();
        prop_assume!(!all.is_empty());
        let file = file(&table(), batches.iter().map(|rows| batch(rows)));
        prop_assert_eq!(&devices(reader(&file)), &all);
        let metadata = reader(&file).metadata().clone();
        let chunk = metadata.row_group(0).column(1);
        let statistics = chunk.statistics().unwrap();
        let octets = |text: Option<&String>| text.map(|text| text.as_bytes().to_vec());
        let least = octets(all.iter().flatten().min());
        let greatest = octets(all.iter().flatten().max());
        prop_assert_eq!(statistics.min_bytes_opt().map(<[u8]>::to_vec), least);
        prop_assert_eq!(statistics.max_bytes_opt().map(<[u8]>::to_vec), greatest);
        let nulls = all.iter().filter(|text| text.is_none()).count() as u64;
        prop_assert_eq!(statistics.null_count_opt(), Some(nulls));
        let pages = all.chunks(PAGE_ROWS).collect::<Vec<_>>();
        let index = metadata.page_index_for_row_group(0).column_index(1).unwrap().clone();
        prop_assert_eq!(index.num_pages(), pages.len() as u64);
        for (at, page) in pages.iter().enumerate() {
            let nulls = page.iter().filter(|text| text.is_none()).count();
            prop_assert_eq!(index.null_count(at), i64::try_from(nulls).ok());
            prop_assert_eq!(index.is_null_page(at), nulls == page.len());
        }
    }
}

#[test]
fn a_page_is_read_without_those_before_it() {
    let of = |page: usize| vec![Some(format!("device{page}")); PAGE_ROWS];
    let pages: Vec<_> = (0..5).map(of).collect();
    let file = file(&table(), pages.iter().map(|texts| batch(texts)));
    let location = |page: usize| {
        let metadata = reader(&file).metadata().clone();
        metadata.page_index_for_row_group(0).page_locations(1).unwrap()[page].clone()
    };
    // What is not read may be anything.
    let mut damaged = file.to_vec();
    for page in [0, 1, 2, 4] {
        let begin = usize::try_from(location(page).offset).unwrap();
        let len = usize::try_from(location(page).compressed_page_size).unwrap();
        damaged[begin..begin + len].fill(0xff);
    }
    let wanted = vec![RowSelector::skip(3 * PAGE_ROWS + 5), RowSelector::select(10)];
    let projected = reader(&damaged.into());
    let mask = parquet::arrow::ProjectionMask::leaves(projected.parquet_schema(), [1]);
    let selected = projected.with_projection(mask).with_row_selection(RowSelection::from(wanted));
    assert_eq!(devices(selected), vec![Some("device3".to_owned()); 10]);
}
