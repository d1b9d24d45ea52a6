//! Rows for other programs, batch by batch: CSV or Parquet, wherever they go.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use meikyo_recording::TableSchema;
use meikyo_recording::query::View;
use meikyo_recording::schema::Hint;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::csv::csv;

/// What kind of file rows are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values, as [`csv()`](crate::csv()) writes them.
    Csv,
    /// Apache Parquet, compressed with zstd.
    Parquet,
}

impl Format {
    /// The ending of such a file's name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// How the rows of a table are seen by those who take them elsewhere: with exact receive times where
/// an answer brought them.
pub fn view_of(table: &TableSchema) -> View {
    let joins = table.answers().is_some() && table.hint(Hint::Answer).is_some();
    if joins { View::Received } else { View::Readings }
}

/// Rows on their way into a file or to a client.
#[derive(Debug)]
pub struct Export<W: Write + Send> {
    format: Format,
    written: Written<W>,
}

#[derive(Debug)]
enum Written<W: Write + Send> {
    /// The columns are not known yet.
    Nothing(W),
    Csv(W),
    Parquet(Box<ArrowWriter<W>>),
    /// The sink went with an error.
    Failed,
}

impl<W: Write + Send> Export<W> {
    /// An export into `sink`, of which nothing is written before the first batch.
    pub fn new(format: Format, sink: W) -> Self {
        Self { format, written: Written::Nothing(sink) }
    }

    /// Writes a batch; all of them have the same columns.
    ///
    /// # Errors
    /// When the sink refuses.
    ///
    /// # Panics
    /// When an earlier write failed.
    pub fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.written = match std::mem::replace(&mut self.written, Written::Failed) {
            Written::Nothing(mut sink) if self.format == Format::Csv => {
                sink.write_all(csv(rows, true).as_bytes())?;
                Written::Csv(sink)
            }
            Written::Nothing(sink) => {
                let zstd = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(zstd).build();
                let mut writer = ArrowWriter::try_new(sink, rows.schema(), Some(properties))?;
                writer.write(rows)?;
                Written::Parquet(Box::new(writer))
            }
            Written::Csv(mut sink) => {
                sink.write_all(csv(rows, false).as_bytes())?;
                Written::Csv(sink)
            }
            Written::Parquet(mut writer) => {
                writer.write(rows)?;
                Written::Parquet(writer)
            }
            Written::Failed => panic!("an export goes on after it failed"),
        };
        Ok(())
    }

    /// Writes what has to stand behind the rows, and gives the sink back, flushed.
    ///
    /// # Errors
    /// When the sink refuses.
    ///
    /// # Panics
    /// When an earlier write failed.
    pub fn finish(self) -> io::Result<W> {
        let mut sink = match self.written {
            Written::Nothing(sink) | Written::Csv(sink) => sink,
            Written::Parquet(writer) => writer.into_inner()?,
            Written::Failed => panic!("an export goes on after it failed"),
        };
        sink.flush()?;
        Ok(sink)
    }
}
