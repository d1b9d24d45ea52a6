//! What the requests about one recording have in common: how they are read, and how they are
//! described.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use meikyo_live::Opened;
use utoipa::{IntoParams, IntoResponses};

use crate::access::Proof;
use crate::errors::{ApiError, ErrorBody};
use crate::state::{Server, Shared};

/// A request about one recording.
#[derive(Debug)]
pub(crate) struct Asked {
    server: Shared,
    id: String,
    query: Option<String>,
    /// Whose samples may be seen, jobs and users; everybody's when there are none.
    visible: Vec<String>,
}

impl FromRequestParts<Shared> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Shared) -> Result<Self, ApiError> {
        let id = Path::<String>::from_request_parts(parts, server).await;
        let Path(id) = id.map_err(|error| ApiError::unknown(error.body_text(), "id"))?;
        let query = parts.uri.query().map(str::to_owned);
        let visible = parts.extensions.get().map(Proof::visible).unwrap_or_default();
        Ok(Self { server: server.clone(), id, query, visible })
    }
}

impl Asked {
    /// What `read` makes of the recording and the query, on a thread that may block.
    pub(crate) async fn answer<T: Send + 'static>(
        self,
        read: impl FnOnce(&Server, &Arc<Opened>, Option<&str>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.answer_visible(|server, opened, query, _| read(server, opened, query)).await
    }

    /// As [`Asked::answer`], of requests that tokens for the samples of some jobs open: `read` is told whose
    /// samples may be seen.
    pub(crate) async fn answer_visible<T: Send + 'static>(
        self,
        read: impl FnOnce(&Server, &Arc<Opened>, Option<&str>, Vec<String>) -> Result<T, ApiError>
        + Send
        + 'static,
    ) -> Result<T, ApiError> {
        let Self { server, id, query, visible } = self;
        let read = move |server: &Server| {
            let opened = server.recording(&id)?;
            read(server, &opened, query.as_deref(), visible)
        };
        server.blocking(read).await
    }
}

/// Which recording.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "described only; `Asked` reads it")]
pub(crate) struct Id {
    /// the recording's id
    id: String,
}

/// Which time.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described only; `parameters` reads them")]
pub(crate) struct Span {
    /// µs since 1970, RFC 3339, `-15min` (before now, or before the end of a finished recording) or
    /// `now`; the begin when absent
    from: Option<String>,
    /// as `from`, exclusive; the end when absent
    to: Option<String>,
}

/// Which samples are asked about.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described only; `parameters` reads them")]
pub(crate) struct Cpus {
    /// only these hosts, `*` and `?` stand for any text; also repeatedly
    host: Option<Vec<String>>,
    /// only CPUs of these numbers; also repeatedly
    cpu: Option<Vec<u32>>,
}

/// Which devices are asked about.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described only; `parameters` reads them")]
pub(crate) struct Devices {
    /// only these, `*` and `?` stand for any text; can be repeated
    device: Option<Vec<String>>,
}

/// How many rows.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "described only; `parameters` reads them")]
pub(crate) struct Newest {
    /// at most so many, the newest; 1000 when absent
    limit: Option<u32>,
}

/// Why there is no answer.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "described only; `ApiError` is what is answered")]
pub(crate) enum Refused {
    /// what is asked for cannot be understood
    #[response(status = 400)]
    Wrong(ErrorBody),
    /// there is no such recording, table or column
    #[response(status = 404)]
    Unknown(ErrorBody),
    /// too much is asked for at once
    #[response(status = 503)]
    Busy(ErrorBody),
}
