//! Rows for other programs, streamed: Parquet or CSV.
//!
//! A thread writes while the client takes; what is on the way is bounded by [`WAITING_MAX`] pieces,
//! so that a slow client makes the thread wait and nothing grows.
//!
//! What is known to be missing when an export begins is told by a header. Damage that is found on the way
//! cannot be told by one any more: the body is broken off instead of ended, and since the damage is known
//! from then on, the next export tells it by the header.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use meikyo_live::export::{self, Format};
use meikyo_live::{FileProblem, Opened, label_names};
use meikyo_recording::query::{self, View};
use meikyo_recording::{Selection, TableSchema, layout};
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
    format: Format,
    /// What is known to be wrong with files that may hold such rows.
    known: BTreeSet<FileProblem>,
}

impl Export {
    /// Reads the query of a request.
    pub(crate) fn parse(opened: &Opened, query: Option<&str>) -> Result<Self, ApiError> {
        let mut parameters = Parameters::parse(query)?;
        let name = parameters.need("table")?;
        let table = opened.table(&name)?;
        let (from, to) = parameters.span(opened.span()?)?;
        let format = match parameters.optional("format").as_deref() {
            None | Some("parquet") => Format::Parquet,
            Some("csv") => Format::Csv,
            Some(other) => {
                let text = format!("`format` is `parquet` or `csv`, not `{other}`");
                return Err(ApiError::bad(text, "format"));
            }
        };
        let columns: Option<Vec<String>> = parameters
            .optional("columns")
            .map(|columns| columns.split(',').map(str::to_owned).collect());
        if let Some(unknown) =
            columns.iter().flatten().find(|column| table.column(column).is_none())
        {
            let text = format!("table `{name}` has no column `{unknown}`");
            return Err(ApiError::bad(text, "columns"));
        }
        let labels = parameters.labels(&label_names(&table))?;
        let selection = Selection { table: name, columns, labels, from: Some(from), to: Some(to) };
        let view = export::view_of(&table);
        let known = known_problems(opened, &table, &selection, view)?;
        Ok(Self { selection, view, format, known })
    }

    /// The answer, whose body `write` fills.
    pub(crate) fn answer(&self, receiver: Receiver<io::Result<Bytes>>) -> Response {
        let kind = match self.format {
            Format::Parquet => "application/vnd.apache.parquet",
            Format::Csv => "text/csv; charset=utf-8",
        };
        let (table, ending) = (&self.selection.table, self.format.extension());
        let file = format!("attachment; filename=\"{table}.{ending}\"");
        let headers =
            [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, file)];
        let problems = [("meikyo-problems", self.known.len().to_string())];
        (headers, problems, Body::new(Pieces(receiver))).into_response()
    }

    /// Writes the rows. Blocks while files are read and while the client does not take.
    pub(crate) fn write(&self, opened: &Opened, sender: Sender<io::Result<Bytes>>) {
        let sink = Sink { sender: sender.clone(), piece: Vec::new() };
        if let Err(error) = self.write_rows(opened, sink) {
            tracing::debug!(?error, "an export ended early");
            // The client sees that the body is not whole.
            let broken = io::Error::other("the export ended early");
            drop(sender.blocking_send(Err(broken)));
        }
    }

    fn write_rows(&self, opened: &Opened, sink: Sink) -> Result<(), ApiError> {
        let mut rows_out = export::Export::new(self.format, sink);
        let outcome = query::run(&opened.recording, &self.selection, self.view, |rows| {
            rows_out.write(rows).map_err(|error| ApiError::internal(&error))
        })?;
        rows_out.finish().map_err(|error| ApiError::internal(&error))?;
        let met: Vec<_> = outcome.problems.iter().map(|problem| opened.problem(problem)).collect();
        match met.into_iter().find(|problem| !self.known.contains(problem)) {
            None => Ok(()),
            Some(FileProblem { file, what }) => {
                let error = io::Error::other(format!("`{file}`: {what}; rows are missing"));
                Err(ApiError::internal(&error))
            }
        }
    }
}

/// What is known to be wrong with files that may hold rows of a selection: what their list says, and
/// what other answers met in them.
fn known_problems(
    opened: &Opened,
    table: &TableSchema,
    selection: &Selection,
    view: View,
) -> Result<BTreeSet<FileProblem>, ApiError> {
    let joined = table.answers().filter(|_| view == View::Received);
    let tables: Vec<&str> = [&*table.name].into_iter().chain(joined).collect();
    let mut known = BTreeSet::new();
    for &name in &tables {
        let Selection { from, to, .. } = *selection;
        let scan = opened.recording.scan(&Selection { from, to, ..Selection::all(name) })?;
        known.extend(scan.problems().iter().map(|problem| opened.problem(problem)));
    }
    let concerns = |problem: &FileProblem| {
        let directory = problem.file.split('/').next().unwrap_or_default();
        directory == layout::LOG || tables.contains(&directory)
    };
    known.extend(opened.problems_met().into_iter().filter(concerns));
    Ok(known)
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
