//! Files of a table as tests write them, and as the reader of `parquet` opens them.

use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::PageIndexPolicy;

use super::{Facts, TableFile};
use crate::format::Kind;
use crate::layout::ParquetName;
use crate::schema::TableSchema;

/// The octets of a file of those batches.
pub(super) fn file(schema: &TableSchema, batches: impl IntoIterator<Item = RecordBatch>) -> Bytes {
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = ParquetName { stream: "s".into(), first: 1, last: 2 };
    let facts = Facts { name: &name, kind: Kind::Simulated, schema };
    let mut written = TableFile::new(file.reopen().unwrap(), &facts).unwrap();
    for batch in batches {
        written.write(&batch).unwrap();
    }
    written.finish().unwrap();
    std::fs::read(file.path()).unwrap().into()
}

/// A reader that has the page index.
pub(super) fn reader(file: &Bytes) -> ParquetRecordBatchReaderBuilder<Bytes> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap()
}
