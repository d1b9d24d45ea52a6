//! Rows for other programs, streamed: Parquet or CSV.
//!
//! A thread writes while the client takes; what is on the way is bounded by [`WAITING_MAX`] pieces,
//! so that a slow client makes the thread wait and nothing grows.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Field, Schema};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use meikyo_live::{Opened, label_names};
use meikyo_recording::Selection;
use meikyo_recording::query::{self, View};
use meikyo_recording::schema::Hint;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::errors::ApiError;
use crate::parameters::Parameters;

/// Pieces of [`PIECE`] octets that may wait for the client.
const WAITING_MAX: usize = 8;
/// Octets of a piece.
const PIECE: usize = 128 << 10;

/// What is exported, and as what.
#[derive(Debug)]
pub(crate) struct Export {
    selection: Selection,
    view: View,
    parquet: bool,
}

impl Export {
    /// Reads the query of a request.
    pub(crate) fn parse(opened: &Opened, query: Option<&str>) -> Result<Self, ApiError> {
        let mut parameters = Parameters::parse(query)?;
        let name = parameters.need("table")?;
        let table = opened.table(&name)?;
        let (from, to) = parameters.span(opened.span()?)?;
        let parquet = match parameters.take("format").as_deref() {
            None | Some("parquet") => true,
            Some("csv") => false,
            Some(other) => {
                let text = format!("`format` is `parquet` or `csv`, not `{other}`");
                return Err(ApiError::bad(text, "format"));
            }
        };
        let columns: Option<Vec<String>> = parameters
            .take("columns")
            .map(|columns| columns.split(',').map(str::to_owned).collect());
        if let Some(unknown) =
            columns.iter().flatten().find(|column| table.column(column).is_none())
        {
            let text = format!("table `{name}` has no column `{unknown}`");
            return Err(ApiError::bad(text, "columns"));
        }
        let labels = parameters.labels(&label_names(&table))?;
        let joins = table.answers().is_some() && table.hint(Hint::Answer).is_some();
        Ok(Self {
            view: if joins { View::Received } else { View::Readings },
            selection: Selection { table: name, columns, labels, from: Some(from), to: Some(to) },
            parquet,
        })
    }

    /// The answer, whose body `write` fills.
    pub(crate) fn answer(&self, receiver: Receiver<io::Result<Bytes>>) -> Response {
        let (kind, ending) = if self.parquet {
            ("application/vnd.apache.parquet", "parquet")
        } else {
            ("text/csv; charset=utf-8", "csv")
        };
        let file = format!("attachment; filename=\"{}.{ending}\"", self.selection.table);
        let headers =
            [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, file)];
        (headers, Body::new(Pieces(receiver))).into_response()
    }

    /// Writes the rows. Blocks while files are read and while the client does not take.
    pub(crate) fn write(&self, opened: &Opened, sender: Sender<io::Result<Bytes>>) {
        let mut sink = Sink { sender, piece: Vec::new() };
        if let Err(error) = self.write_rows(opened, &mut sink) {
            tracing::debug!(?error, "an export ended early");
            // The client sees that the body is not whole.
            let broken = io::Error::other("the export ended early");
            drop(sink.sender.blocking_send(Err(broken)));
        }
    }

    fn write_rows(&self, opened: &Opened, sink: &mut Sink) -> Result<(), ApiError> {
        let recording = &opened.recording;
        if self.parquet {
            let mut writer: Option<ArrowWriter<&mut Sink>> = None;
            let mut place = Some(sink);
            query::run(recording, &self.selection, self.view, |rows| {
                if let Some(sink) = place.take() {
                    let zstd = Compression::ZSTD(ZstdLevel::default());
                    let properties = WriterProperties::builder().set_compression(zstd).build();
                    let opened = ArrowWriter::try_new(sink, rows.schema(), Some(properties));
                    writer = Some(opened.map_err(|error| ApiError::internal(&error))?);
                }
                match &mut writer {
                    Some(writer) => writer.write(rows).map_err(|error| ApiError::internal(&error)),
                    None => Ok(()),
                }
            })?;
            if let Some(writer) = writer {
                let sink = writer.into_inner().map_err(|error| ApiError::internal(&error))?;
                sink.flush().map_err(|error| ApiError::internal(&error))?;
            }
            return Ok(());
        }
        let mut named = false;
        query::run(recording, &self.selection, self.view, |rows| {
            let mut writer = WriterBuilder::new().with_header(!named).build(&mut *sink);
            named = true;
            writer.write(&plain(rows)?).map_err(ApiError::from)
        })?;
        sink.flush().map_err(|error| ApiError::internal(&error))
    }
}

/// The rows with dictionaries as texts and times in a zone that can be written.
fn plain(rows: &RecordBatch) -> Result<RecordBatch, ApiError> {
    let schema = rows.schema();
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        if matches!(field.data_type(), DataType::Dictionary(..)) {
            fields.push(Field::new(field.name(), DataType::Utf8, true));
            columns.push(cast(column, &DataType::Utf8)?);
        } else if let DataType::Timestamp(unit, Some(_)) = field.data_type() {
            // The same instants; a zone that needs no table of zones to be written.
            let kind = DataType::Timestamp(*unit, Some("+00:00".into()));
            fields.push(Field::new(field.name(), kind.clone(), true));
            columns.push(cast(column, &kind)?);
        } else {
            fields.push(field.as_ref().clone());
            columns.push(column.clone());
        }
    }
    Ok(RecordBatch::try_new(std::sync::Arc::new(Schema::new(fields)), columns)?)
}

/// Where an export is written to.
pub(crate) fn pipe() -> (Sender<io::Result<Bytes>>, Receiver<io::Result<Bytes>>) {
    channel(WAITING_MAX)
}

/// Hands pieces to the client.
struct Sink {
    sender: Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Write for Sink {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(octets);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client has gone");
        self.sender.blocking_send(Ok(piece)).map_err(gone)
    }
}

/// The body that the client takes.
struct Pieces(Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
